"""The backward pass overwrites only arrays without another owner: large cotangents and its own products."""

import ast
from pathlib import Path

import numpy as np
import pytest
from helpers import in_one_test
from operations.cases import rows

import funcgrad.numpy as fnp
from funcgrad import checkpoint, custom_vjp, grad, jacfwd, jvp, linearize, ownership, tree, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.extend import elementwise
from funcgrad.forward import ForwardTrace
from funcgrad.numpy.writes.items import compose_indices

ROOT = Path(__file__).parents[2]
SIZE = 20_000
RNG = np.random.default_rng(0)
X, Y, CT = RNG.normal(size=(3, SIZE))


def chain(x, y):
    """Multiply with a constant, another value and itself; sums pass one cotangent to both arguments."""
    z = x * 0.5 + y
    z = z * y + z
    z = fnp.exp(z * 0.1) * z
    return z * 2.0 + x * x


def by_parts(fun, *args):
    """Compute ``fun`` piece by piece: the pieces are so small that none is overwritten."""
    parts = [fun(*piece) for piece in zip(*[np.split(a, SIZE // 1000) for a in args], strict=True)]
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def pulled(x, y, ct):
    return vjp(chain, x, y)[1](ct)


def pushed(x, y, t):
    return jvp(chain, (x, y), (t, t))


def test_arrays_exceed_large_threshold():
    assert ownership.LARGE <= SIZE
    assert ownership.LARGE > 1000  # the pieces are smaller


@pytest.mark.parametrize("fun", [pulled, pushed])
def test_large_arrays_match_small_ones(fun):
    before = X.copy(), Y.copy(), CT.copy()
    for found, expected in zip(fun(X, Y, CT), by_parts(fun, X, Y, CT), strict=True):
        np.testing.assert_array_equal(found, expected)
    for given, kept in zip((X, Y, CT), before, strict=True):
        np.testing.assert_array_equal(given, kept)


def test_pullback_called_twice():
    _, pullback = vjp(chain, X, Y)
    first, kept = pullback(CT), CT.copy()
    for found, expected in zip(pullback(CT), first, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(CT, kept)
    out, push = linearize(chain, X, Y)
    np.testing.assert_array_equal(push(CT, CT), push(CT, CT))
    np.testing.assert_array_equal(out, chain(X, Y))


def test_shared_cotangents_are_not_changed():
    constant = np.full(SIZE, 3.0)
    seen = []

    @custom_vjp
    def stop_here(x):
        return x

    def backward(_, ct):
        seen.append(constant)
        return (constant,)

    stop_here.defvjp(lambda x: (x, None), backward)
    found = grad(lambda x: fnp.sum(stop_here(x * 0.5)))(X)
    np.testing.assert_array_equal(found, np.full(SIZE, 1.5))
    np.testing.assert_array_equal(constant, np.full(SIZE, 3.0))
    assert seen[0] is constant


def test_cotangent_shared_by_two_values():
    def f(x, y):
        return fnp.sum((x * 2.0 + y * 3.0) * CT)

    found = grad(f, argnums=(0, 1))(X, Y)
    np.testing.assert_array_equal(found[0], CT * 2.0)
    np.testing.assert_array_equal(found[1], CT * 3.0)


def test_second_order_and_batches():
    def slope(x):
        return grad(lambda x: fnp.sum(chain(x, Y)))(x)

    found = jvp(slope, (X,), (CT,))[1]
    small = by_parts(lambda x, y, t: jvp(lambda x: grad(lambda x: fnp.sum(chain(x, y)))(x), (x,), (t,))[1:], X, Y, CT)
    np.testing.assert_allclose(found, small[0], rtol=1e-12)
    rows = X.reshape(4, -1)
    batched = vmap(lambda row: grad(lambda row: fnp.sum(row * row * 0.5))(row))(rows)
    np.testing.assert_array_equal(batched, rows)


def observed(see):
    """Return an identity function that passes its cotangent to ``see`` and returns the result of ``see``."""

    @custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, None), lambda _, ct: (see(ct),))
    return same


def addressed():
    """Return a list of addresses, and functions that append the address of a cotangent: copied, or as it comes."""
    addresses = []

    def made(ct):
        fresh = ct * 1.0
        addresses.append(fresh.ctypes.data)
        return fresh

    def noted(ct):
        addresses.append(ct.ctypes.data)
        return ct

    return addresses, made, noted


@pytest.mark.counts
@pytest.mark.parametrize("factor", [0.5, Y, Y[:1], Y[:4, None]], ids=["number", "array", "one", "column"])
def test_unshared_arrays_are_reused(factor):
    """The product with a constant needs no new array: the address stays the same while the old array is alive."""
    addresses, made, noted = addressed()
    x, ct = (a.reshape(4, -1) if np.ndim(factor) == 2 else a for a in (X, CT))

    _, pullback = vjp(lambda x: observed(made)(observed(noted)(x) * factor), x)
    pullback(ct)  # the first call makes the rules
    addresses.clear()
    np.testing.assert_array_equal(pullback(ct)[0], ct * factor)
    assert addresses[0] == addresses[1]


@pytest.mark.counts
@pytest.mark.parametrize("value", [lambda x: 0.0, lambda x: x[0]], ids=["constant", "traced"])
def test_write_clears_cotangent_in_place(value):
    """A copy here would mean that each write of a loop copies the whole array in the backward pass."""
    addresses, made, noted = addressed()

    def written(x):
        y = fnp.copy(observed(noted)(x))
        y[3] = value(x)
        return observed(made)(y)

    kept = CT.copy()
    expected = CT.copy()
    expected[3] = 0.0
    expected[0] += CT[3] * (value(X) != 0.0)
    vjp(written, X)[1](CT)  # the first calls look for arrays that change and make the rules, and refer to arrays
    addresses.clear()
    np.testing.assert_array_equal(vjp(written, X)[1](CT)[0], expected)
    np.testing.assert_array_equal(CT, kept)
    assert addresses[0] == addresses[1]


def test_partial_derivative_of_other_shape_is_kept():
    """The partial derivative has the shape of one argument, the product has the broadcast shape of both."""
    scaled = elementwise("scaled", lambda xp, x, y: x * y * y, dx=lambda y: y * y, dy=lambda x, y: 2.0 * x * y)
    x, y = RNG.normal(size=(3, 1)), X[None]
    out, tangent = jvp(scaled, (x, y), (x, y))
    np.testing.assert_allclose(out, x * y * y)
    np.testing.assert_allclose(tangent, 3.0 * x * y * y)
    of_x, of_y = vjp(scaled, x, y)[1](np.ones((3, SIZE)))
    np.testing.assert_allclose(of_x, np.full((3, 1), np.sum(y * y)))
    np.testing.assert_allclose(of_y, 2.0 * y * x.sum())


# ---- cost of writes -------------------------------------------------------------------------------------------


def memory(x):
    """Return the addresses of all arrays that a traced value represents, tangents included."""
    found = set()
    while isinstance(x, Tracer):
        if isinstance(x._trace, ForwardTrace):
            found |= memory(x.tangent)
        x = x._val
    return found | {x.ctypes.data}


def by_number(y, x, i):
    y[i] = y[i - 1] * 0.5 + x[i]


def by_addition(y, x, i):
    y[i] += x[i] * x[i]


def by_slice(y, x, i):
    y[i : i + 2] = x[:2] * x[i]


def by_place(y, x, i):
    y[np.array([i, 0])] = x[:2] * x[i]


def by_constant(y, x, i):
    y[i] = 2.0


def by_product(y, x, i):
    y[i] = y[i - 1] * y[i - 2] * x[i]


def by_row(y, x, i):
    y[i] = fnp.sin(y[i - 1]) * x[i]


def by_column(y, x, i):
    y[:, i] = fnp.sin(y[:, i - 1]) * x[i]


def by_block(y, x, i):
    y[1:3, i] = fnp.sin(y[1:3, i - 1]) * y[1:3, i - 2] * x[i]


#: Functions that write, and the shape of the array that they write to.
WRITES = [
    *[(write, (50,)) for write in (by_number, by_addition, by_slice, by_place, by_constant, by_product)],
    (by_row, (50, 5)),
    (by_column, (5, 50)),
    (by_block, (5, 50)),
]

WRITTEN_IN = {
    "grad": lambda f, x: grad(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "linearize": lambda f, x: linearize(f, x),
    "vmap": lambda f, x: vmap(f)(np.stack([x, x])),
    "vmap(grad)": lambda f, x: vmap(grad(f))(np.stack([x, x])),
    "vmap(jvp)": lambda f, x: vmap(lambda x: jvp(f, (x,), (x,)))(np.stack([x, x])),
    "grad(vmap)": lambda f, x: grad(lambda x: fnp.sum(vmap(f)(fnp.stack([x, x]))))(x),
    "grad(grad)": lambda f, x: grad(lambda x: fnp.sum(grad(f)(x)))(x),
    "jvp(grad)": lambda f, x: jvp(grad(f), (x,), (x,)),
    "jacfwd": lambda f, x: jacfwd(lambda t: f(x * t[0] + t[1]))(np.ones(2)),
    "checkpoint": lambda f, x: grad(checkpoint(f))(x),
}


@pytest.mark.counts
@pytest.mark.parametrize("mode", WRITTEN_IN)
@pytest.mark.parametrize(("write", "shape"), WRITES, ids=lambda w: getattr(w, "__name__", ""))
def test_writes_go_to_unshared_memory(write, shape, mode):
    """The first writes copy the array at most once, when it becomes traced; further writes copy nothing."""
    moved = []

    def fun(x):
        y = fnp.zeros(shape)
        y[(0,) * y.ndim] = x[0]
        write(y, x, 2)
        write(y, x, 3)
        for i in range(4, 40):
            before = memory(y)
            write(y, x, i)
            moved.append(memory(y) != before)
        return fnp.sum(y * y)

    x = np.linspace(0.5, 1.5, 50)
    WRITTEN_IN[mode](fun, x)  # the first call looks for arrays that change, and refers to them
    moved.clear()
    WRITTEN_IN[mode](fun, x)
    assert moved
    assert not any(moved)


def test_recorded_tangent_is_not_overwritten():
    """The array was used before the write, so an outer tape keeps its value and tangent."""

    def f(x):
        y = x * 1.0
        total = fnp.sum(y**3)
        y[0] = x[1] * y[0]
        return total + fnp.sum(y**3)

    def by_hand(x):
        y = x * 1.0
        z = fnp.concatenate([(x[1] * y[0])[None], y[1:]])
        return fnp.sum(y**3) + fnp.sum(z**3)

    x, t = X[:3], Y[:3]
    transforms = [
        lambda f: jvp(grad(f), (x,), (t,))[1],
        lambda f: grad(lambda x: fnp.sum(grad(f)(x) * t))(x),
        lambda f: vmap(grad(f))(np.stack([x, t])),
        lambda f: grad(f)(x),
    ]
    for transform in transforms:
        np.testing.assert_allclose(transform(f), transform(by_hand), rtol=1e-12)


def row(y):
    return y[2]


def column(y):
    return y[:, 1]


def block(y):
    return y[1:3, 2]


VIEWS_OF_PARTS = {
    "ravel": lambda v: v.ravel(),
    "reshape": lambda v: v.reshape(2, -1),
    "T": lambda v: v.reshape(-1, 2).T,
    "slice": lambda v: v[::-1],
    "flatten": lambda v: v.flatten(),
    "fancy": lambda v: v[[0, 1]],
    "none": lambda v: v,
}


@pytest.mark.parametrize("view", VIEWS_OF_PARTS)
@pytest.mark.parametrize("part", [row, column, block])
@pytest.mark.parametrize("kept", [False, True])
def test_parts_are_views_where_numpy_has_views(part, view, kept):
    """A part read from a written array has memory of its own, but behaves as NumPy's view or copy does."""

    def fun(x, fnp):
        y = fnp.zeros((12, 12))
        for i in range(12):
            y[i] = x[:12] * x[i]
        v = part(y)
        w = VIEWS_OF_PARTS[view](v)
        w[(0,) * w.ndim] = x[1] * 7.0
        y[2, 2] = x[3] * 5.0
        w[(-1,) * w.ndim] = w[(0,) * w.ndim] * x[4]
        if kept:
            y[2] = y[2] + w[(0,) * w.ndim]
        return y, v, w

    x = np.linspace(0.5, 2.5, 12)
    expected = fun(x, np)
    run = lambda x: fun(x, fnp)
    for found in (vjp(run, x)[0], jvp(run, (x,), (x,))[0], linearize(run, x)[0]):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    for a, b in zip(vmap(run)(np.stack([x, x + 1.0])), zip(expected, fun(x + 1.0, np), strict=True), strict=True):
        np.testing.assert_allclose(a, np.stack(b), rtol=1e-14)


def test_linear_function_overwrites_only_own_arrays():
    """The linear function of ``linearize`` writes in place to results no longer needed, never to its input."""

    def fun(x):
        y = x * 2.0
        kept = fnp.sum(y**2)
        for i in range(1, 5):
            y[i] = y[i - 1] * x[i]
        return y, kept

    x, t = X[:5], Y[:5]
    push = linearize(fun, x)[1]
    given = t.copy()
    for found in (push(t), push(t)):
        for a, b in zip(found, jvp(fun, (x,), (t,))[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    np.testing.assert_array_equal(t, given)
    each = vmap(push)(np.stack([t, x]))
    np.testing.assert_allclose(each[0][1], jvp(fun, (x,), (x,))[1][0], rtol=1e-14)


@pytest.mark.parametrize("n", range(5))
def test_composed_index_equals_two_indices(n):
    """Compose every slice with every slice and integer, empty slices included."""
    whole, ends = np.arange(n), [None, *range(-n - 2, n + 3)]
    slices = [slice(a, b, step) for a in ends for b in ends for step in (None, 2, -1, -2)]
    for first in slices:
        part = whole[first]
        for second in [*slices[:: max(1, 2 * n - 3)], *range(-len(part), len(part))]:
            index = compose_indices((n,), [first, second])
            assert whole[index].tolist() == part[second].tolist()


def random_step(rng, rank):
    """Return an index of integers, slices and perhaps an ellipsis, or another order of the axes."""
    if rng.random() < 0.25:
        return list(map(int, rng.permutation(rank)))
    bounds = [None, -3, -1, 0, 1, 2, 4]
    entries = [
        int(rng.integers(-1, 1)) if rng.random() < 0.4 else slice(*rng.choice(bounds, 2), rng.choice([None, 1, 2, -1]))
        for _ in range(rng.integers(0, rank + 1))
    ]
    if rng.random() < 0.3:
        entries.insert(rng.integers(0, len(entries) + 1), ...)
    return entries[0] if len(entries) == 1 and rng.random() < 0.7 else tuple(entries)


@in_one_test({"seed": range(400)})
def test_composed_index_equals_several_indices(seed):
    """Compose steps through an array of several axes, transposes included, until NumPy refuses a step."""
    rng = np.random.default_rng(seed)
    shape = tuple(map(int, rng.integers(1, 5, size=rng.integers(1, 4))))
    whole = np.arange(np.prod(shape)).reshape(shape)
    part, steps = whole, []
    for _ in range(4):
        step = random_step(rng, part.ndim)
        try:
            part = part.transpose(step) if type(step) is list else part[step]
        except IndexError:
            assert compose_indices(shape, [*steps, step]) is None
            break
        steps.append(step)
        index = compose_indices(shape, steps)
        if index is not None:
            np.testing.assert_array_equal(whole[index], part)
        else:
            assert any(type(step) is list for step in steps)


@pytest.mark.parametrize("mode", WRITTEN_IN)
@pytest.mark.parametrize(
    ("shape", "index"), [((3, 2), slice(None, None, 2)), ((3, 2), 1), ((3, 2), np.array([0, 2])), ((4,), slice(1, 1))]
)
def test_leading_unit_axes_are_dropped(shape, index, mode):
    def fun(x, fnp=fnp):
        y = fnp.outer(x[:3], x[1:3]) if len(shape) == 2 else x * 2.0
        y[index] = y[None, None][..., index, :] * x[0] if len(shape) == 2 else y[None, index]
        return fnp.sum(y * y)

    def by_hand(x):
        y = fnp.outer(x[:3], x[1:3]) if len(shape) == 2 else x * 2.0
        scale = np.ones(shape)
        moved = np.zeros(shape)
        moved[index] = 1.0
        return fnp.sum((y * (scale - moved) + y * moved * x[0]) ** 2) if len(shape) == 2 else fnp.sum(y * y)

    x = np.linspace(0.5, 1.5, 4)
    np.testing.assert_allclose(fun(x), fun(x, np))
    for found, wanted in zip(
        tree.leaves(WRITTEN_IN[mode](fun, x))[:1], tree.leaves(WRITTEN_IN[mode](by_hand, x))[:1], strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def large(value, shape):
    """Repeat the entries of ``value``, which are in the domain of the operation."""
    return np.resize(value, shape)


def first_of(fun):
    return lambda *args: fun(*args)[0]


def broadcasting_cases():
    """Yield elementwise operations on several arrays, without SciPy's: these take long and add no kinds of rules."""
    for row in (row for row in rows() if not row.op.name.startswith("scipy.")):
        for case in row.cases:
            values = [case.values[i] for i in case.live]
            if len(values) < 2 or any(type(x) is not np.ndarray or x.dtype != float or not x.size for x in values):
                continue
            fun = first_of(case.of_live(case.fun))
            try:
                few, more = [fun(*[large(x, (n, 2)) for x in values]) for n in (3, 6)]
                thin = [
                    fun(*[large(x, (2,) if i == thin else (6, 2)) for i, x in enumerate(values)]) for thin in (0, 1)
                ]
            except Exception:  # the operation refuses these shapes, so it is not elementwise
                continue
            shapes = [getattr(out, "shape", None) for out in (few, more, *thin)]
            if shapes == [(3, 2), (6, 2), (6, 2), (6, 2)] and np.array_equal(few, more[:3], equal_nan=True):
                yield pytest.param(fun, values, id=case.id)
                break  # other cases of the same operation have other shapes


@pytest.mark.parametrize(("fun", "values"), [*broadcasting_cases()])
def test_each_large_argument_has_its_own_cotangent(fun, values):
    length, columns = 110, 100
    assert length * columns >= ownership.LARGE
    weights = np.cos(np.arange(length * columns)).reshape(length, columns)

    def loss(*args):
        return fnp.sum(fun(*args) * weights)

    numbers = tuple(range(len(values)))
    for thin in numbers:
        args = [large(x, (columns,) if i == thin else (length, columns)) for i, x in enumerate(values)]
        together = grad(loss, argnums=numbers)(*args)
        for i, found in enumerate(together):
            np.testing.assert_array_equal(found, grad(loss, argnums=i)(*args))
        whole = [np.broadcast_to(x, (length, columns)).copy() for x in args]
        for found, one in zip(together, grad(loss, argnums=numbers)(*whole), strict=True):
            np.testing.assert_allclose(found, one if one.shape == found.shape else one.sum(0), rtol=1e-10, atol=1e-10)


#: Functions that may overwrite an argument, and the position of that argument; ``_times_slope`` passes it on.
OVERWRITING = {"scaled": 1, "_times_slope": 2}


def named(calls, name):
    """Return the calls of ``name`` that pass a variable as the argument that may be overwritten."""
    found = [x for x in calls if isinstance(x, ast.Call) and getattr(x.func, "id", "") == name]
    return [call for call in found if isinstance(call.args[OVERWRITING[name]], ast.Name)]


@pytest.mark.parametrize("name", OVERWRITING)
def test_overwritten_variables_are_not_used_again(name):
    """Since Python 3.14 the reference count does not tell a caller's variable from a temporary value."""
    paths = [path for top in ("funcgrad", "transforms", "interop") for path in (ROOT / top).rglob("*.py")]
    texts = {path: path.read_text() for path in paths if path.parts[-2] in ("kinds", "primitives", "operations")}
    modules = {path: ast.parse(text) for path, text in texts.items() if f"{name}(" in text}
    assert modules
    for path, module in modules.items():
        for function in [x for x in ast.walk(module) if isinstance(x, ast.FunctionDef)]:
            last = [call for x in ast.walk(function) if isinstance(x, ast.Return) for call in named(ast.walk(x), name)]
            for call in named(ast.walk(function), name):
                used = call.args[OVERWRITING[name]].id
                after = [
                    x for x in ast.walk(function) if isinstance(x, ast.Name) and x.id == used and x.lineno > call.lineno
                ]
                assert call in last or not after, f"{path}:{call.lineno}"
