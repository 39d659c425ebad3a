"""Reads of parts of arrays: NumPy's rules under every transform, and the cost of many reads."""

import itertools
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.eager import run_eagerly

import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    debug_nans,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import ConcretizationError
from funcgrad.primitives.index_spec import getitem_of_array
from funcgrad.primitives.indexing import add_along_axis, getitem, scatter_sum, take_along_axis

SIZE = 3


# ---- random indices ----------------------------------------------------------------------------------------


class RandomIndex:
    """A random index of an array of ``shape``, with a placeholder for each of its integer arrays."""

    def __init__(self, rng, shape):
        self.rng, self.shape = rng, shape
        self.arrays = []
        self.common = tuple(rng.integers(1, 4, rng.integers(0, 3)))
        self.template = []
        used, ellipsis = 0, False
        while used < len(shape) and rng.random() < 0.95:
            kind = rng.choice(["new", "ellipsis", "bool", "int", "slice", "array", "mask"], p=self.WEIGHTS)
            if kind == "new":
                self.template.append(None)
            elif kind == "bool":
                self.template.append(bool(rng.random() < 0.8))
            elif kind == "ellipsis" and not ellipsis:
                self.template.append(...)
                ellipsis = True
                used += int(rng.integers(0, len(shape) - used + 1))
            elif kind in ("int", "slice", "array") or (kind == "mask" and not ellipsis):
                # behind an ellipsis the axis is unknown here: choose an entry that fits any axis
                self.template.append(getattr(self, kind)(min(shape) if ellipsis else shape[used]))
                used += 1

    WEIGHTS = (0.1, 0.1, 0.05, 0.2, 0.2, 0.3, 0.05)

    def int(self, n):
        return int(self.rng.integers(-n, n))

    def slice(self, n):
        bounds = [None if self.rng.random() < 0.4 else int(self.rng.integers(-n - 1, n + 2)) for _ in range(2)]
        return slice(*bounds, self.rng.choice([None, 1, 2, -1, -2]))

    def array(self, n):
        shape = tuple(1 if self.rng.random() < 0.3 else k for k in self.common)
        self.arrays.append(self.rng.integers(-n, n, shape[self.rng.integers(0, len(shape) + 1) :]))
        return "array"

    def mask(self, n):
        return self.rng.random(n) < 0.6

    def __call__(self, arrays):
        rest = iter(arrays)
        return tuple(next(rest) if isinstance(e, str) else e for e in self.template)


def random_reads(seed, count):
    """Yield random generators, arrays, and indices that NumPy accepts."""
    rng = np.random.default_rng(seed)
    while count:
        x = rng.normal(size=tuple(rng.integers(1, 5, rng.integers(0, 5))))
        index = RandomIndex(rng, x.shape)
        try:
            x[index(index.arrays)]
        except IndexError:
            continue
        count -= 1
        yield rng, x, index


def others(rng, a):
    """Return a stack of ``a`` and two arrays of its shape with other elements of the same range."""
    if a.dtype.kind == "f":
        return np.stack([a, a + 1, a * 2])
    flat = a.reshape(-1)
    return np.stack([a, flat[::-1].reshape(a.shape), rng.permutation(flat).reshape(a.shape)])


@pytest.mark.parametrize("seed", range(4))
def test_random_index_in_both_modes(seed):
    for rng, x, index in random_reads(seed, 150):
        key = index(index.arrays)
        want = x[key]
        got = getitem(x, key)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
        value, pullback = vjp(lambda x, key=key: x[key], x)
        np.testing.assert_array_equal(value, want)
        ct, expected = rng.normal(size=np.shape(want)), np.zeros_like(x)
        np.add.at(expected, key, ct)
        np.testing.assert_allclose(pullback(ct)[0], expected, atol=1e-14)
        t = rng.normal(size=x.shape)
        np.testing.assert_array_equal(jvp(lambda x, key=key: x[key], (x,), (t,))[1], np.asarray(t)[key])


@pytest.mark.parametrize("seed", range(4))
def test_random_index_under_vmap(seed):
    """Values and derivatives equal those of a loop, whether the array and the index arrays are batched or not."""
    for rng, x, index in random_reads(seed + 100, 60):

        def read(x, *arrays, index=index):
            return getitem(x, index(arrays))  # an ndarray does not accept a traced index

        def pulled(ct, table, *arrays, read=read):
            return vjp(lambda table: read(table, *arrays), table)[1](ct)[0]

        single = [x, *index.arrays]
        batch = [others(rng, a) for a in single]
        cts = rng.normal(size=(SIZE, *np.shape(read(*single))))
        for flags in itertools.product([0, None], repeat=len(single)):
            if all(f is None for f in flags):
                continue
            args = [a if f is None else b for a, b, f in zip(single, batch, flags, strict=True)]
            each = [[a if f is None else a[k] for a, f in zip(args, flags, strict=True)] for k in range(SIZE)]
            np.testing.assert_array_equal(vmap(read, flags)(*args), np.stack([read(*e) for e in each]))
            want = np.stack([pulled(ct, *e) for ct, e in zip(cts, each, strict=True)])
            np.testing.assert_allclose(vmap(pulled, (0, *flags))(cts, *args), want, atol=1e-14)
            outside = vjp(lambda x, args=args, flags=flags, read=read: vmap(read, flags)(x, *args[1:]), args[0])[1]
            total = want.sum(0) if flags[0] is None else want
            np.testing.assert_allclose(outside(cts)[0], total, atol=1e-13)


@pytest.mark.parametrize("seed", range(2))
def test_random_index_of_jax_arrays(seed):
    for rng, x, index in random_reads(seed + 200, 12):
        key = index(index.arrays)
        ct, expected = rng.normal(size=np.shape(x[key])), np.zeros_like(x)
        np.add.at(expected, key, ct)
        for arrays in (index.arrays, [jnp.asarray(a) for a in index.arrays]):
            value, pullback = vjp(lambda x, arrays=arrays, index=index: x[index(arrays)], jnp.asarray(x))
            np.testing.assert_array_equal(value, x[key])
            (ours,) = pullback(jnp.asarray(ct))
            assert isinstance(ours, jax.Array)
            np.testing.assert_allclose(ours, expected, atol=1e-14)
        traced = jax.jit(lambda x, *arrays, ct=ct, index=index: vjp(lambda x: x[index(arrays)], x)[1](ct)[0])
        np.testing.assert_allclose(traced(x, *index.arrays), expected, atol=1e-14)


# ---- what is refused ---------------------------------------------------------------------------------------

BAD = [
    5,
    -4,
    (0, 0),
    1.5,
    "text",
    [5],
    [1.5],
    np.array([0, 3]),
    np.array(1.0),
    np.array([0.0]),
    np.array([True, False]),
    np.array([[True]]),
    (..., ...),
    (slice(None), None, 0),
    ([0, 1], [0, 1]),
]


@pytest.mark.parametrize("index", BAD, ids=str)
def test_invalid_index_raises_as_numpy(index):
    x = np.arange(3.0)
    with pytest.raises(IndexError) as numpys:
        x[index]
    for attempt in (
        lambda: getitem(x, index),
        lambda: vjp(lambda x: x[index], x),
        lambda: jvp(lambda x: x[index], (x,), (x,)),
        lambda: vmap(lambda x: x[index])(np.stack([x, x])),
        lambda: linearize(lambda x: x[index], x),
        lambda: vmap(grad(lambda x: fnp.sum(x[index])))(np.stack([x, x])),
        lambda: getitem(jnp.asarray(x), index),
    ):
        with pytest.raises(IndexError) as ours:
            attempt()
        assert str(ours.value) == str(numpys.value)


def test_nonbroadcastable_index_arrays_raise():
    x = np.ones((3, 3))
    with pytest.raises(IndexError, match="shape mismatch"):
        vmap(lambda x: x[[0, 1], [0, 1, 2]])(np.stack([x, x]))


def test_traced_float_index_raises():
    with pytest.raises(IndexError, match="integer"):
        grad(lambda i: fnp.arange(3.0)[None, ...].sum() + getitem(np.arange(3.0), i))(1.0)


def test_batched_mask_error_names_where():
    xs = np.array([[1.0, -1.0], [2.0, 3.0]])
    for fun in (
        lambda x: x[x > 0],
        lambda x: fnp.sort(x[x > 0]),
        lambda x: x[x[1] > 0],
        lambda x: fnp.compress(x > 0, x),
        lambda x: fnp.extract(x > 0, x),
        lambda x: fnp.nonzero(x > 0),
        lambda x: fnp.flatnonzero(x > 0),
        lambda x: fnp.argwhere(x > 0),
    ):
        with pytest.raises(ConcretizationError, match="where"):
            vmap(fun)(xs)


def test_mask_from_traced_values():
    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x[x > 0] ** 2))(x), [2.0, 0.0, 6.0])
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x[(x > 0) & (x < 2)] ** 2))(x), [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(hessian(lambda x: fnp.sum(x[x > 0] ** 3))(x), np.diag([6.0, 0.0, 18.0]))
    # the same mask for every example
    mask = x > 0
    np.testing.assert_array_equal(vmap(lambda x: x[mask])(np.stack([x, -x])), [[1.0, 3.0], [-1.0, -3.0]])


def test_positions_of_nonzero_elements_are_constants():
    x = np.array([[0.0, 3.0], [4.0, 0.0]])
    for name in ("nonzero", "flatnonzero", "argwhere"):
        want = getattr(np, name)(x)
        np.testing.assert_array_equal(getattr(fnp, name)(x), want)
        for wrap in (lambda f: vjp(f, x)[0], lambda f: jvp(f, (x,), (x,))[0]):
            np.testing.assert_array_equal(wrap(getattr(fnp, name)), want)
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x[fnp.nonzero(x)] ** 2))(x), 2 * x)


# ---- many reads --------------------------------------------------------------------------------------------


def mixed_reads(x):
    """Read by numbers, slices and arrays, and read the whole array."""
    total = (x * x).sum()
    for i in range(5):
        total = total + x[i] ** 3 * x[(i + 1) % 5] + (x[-1] * x[1:4]).sum() + (x[[0, 2, 0]] ** 3).prod()
    return total


def test_mixed_reads_to_third_order():
    x = np.random.default_rng(0).normal(size=5)
    np.testing.assert_allclose(grad(mixed_reads)(x), jax.grad(mixed_reads_for_jax)(x), rtol=1e-12)
    want = run_eagerly(jax.hessian(mixed_reads_for_jax), x)
    for ours in (jacrev(grad(mixed_reads)), jacfwd(grad(mixed_reads)), jacrev(jacfwd(mixed_reads))):
        np.testing.assert_allclose(ours(x), want, rtol=1e-11, atol=1e-12)
    third = run_eagerly(jax.jacfwd(jax.hessian(mixed_reads_for_jax)), x)
    for ours in (jacrev(jacrev(grad(mixed_reads))), jacfwd(jacrev(grad(mixed_reads)))):
        np.testing.assert_allclose(ours(x), third, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(vmap(ours)(np.stack([x, x])), [third, third], rtol=1e-10, atol=1e-11)


def test_mixed_reads_of_jax_arrays():
    x = np.random.default_rng(0).normal(size=5)
    want = jax.grad(mixed_reads_for_jax)(x)
    np.testing.assert_allclose(grad(mixed_reads)(jnp.asarray(x)), want, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(grad(mixed_reads))(x), want, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(vmap(grad(mixed_reads)))(np.stack([x, x])), [want, want], rtol=1e-12)
    second = jax.jit(jax.hessian(mixed_reads_for_jax))(x)
    np.testing.assert_allclose(jax.jit(jacrev(grad(mixed_reads)))(x), second, rtol=1e-11, atol=1e-12)


def mixed_reads_for_jax(x):
    total = (x * x).sum()
    for i in range(5):
        total = total + x[i] ** 3 * x[(i + 1) % 5] + (x[-1] * x[1:4]).sum() + (x[np.array([0, 2, 0])] ** 3).prod()
    return total


@pytest.fixture
def made(monkeypatch):
    """Return a list that collects the sizes of all arrays of zeros that the test makes."""
    sizes = []
    zeros = np.zeros

    def counted(shape, *args, **kwargs):
        result = zeros(shape, *args, **kwargs)
        sizes.append(result.size)
        return result

    monkeypatch.setattr(np, "zeros", counted)
    return sizes


@pytest.mark.parametrize("n", [10, 100])
def test_reads_share_one_buffer(made, n):
    x = np.linspace(1.0, 2.0, n)

    def fun(x):
        return sum(x[i] ** 3 for i in range(n))

    np.testing.assert_allclose(grad(fun)(x), 3 * x**2)
    assert made.count(n) == 1
    made.clear()
    np.testing.assert_allclose(grad(lambda x: fnp.sum(grad(fun)(x)))(x), 6 * x)
    assert made.count(n) == 2  # one in the inner pass, one in the outer pass
    made.clear()
    np.testing.assert_allclose(grad(lambda x: sum(grad(fun)(x)[i] for i in range(2)))(x)[:2], 6 * x[:2])
    assert made.count(n) <= 6


def test_second_order_makes_one_scatter():
    from funcgrad.graph import GraphTrace

    def operations(n):
        trace = GraphTrace()
        grad(lambda x: sum(x[i] ** 2 for i in range(n)))(trace.input(np.ones(n)))
        return [step.primitive.name for step in trace.operations]

    for n in (5, 50):
        names = operations(n)
        assert names.count("scatter_sum") == 1
        assert names.count("getitem") == n
    assert len(operations(50)) < 11 * len(operations(5))


def test_index_array_changed_after_read():
    """A program may reuse and change one index array."""
    x, index = np.arange(4.0), np.array([0, 1])

    def fun(x):
        total = 0.0
        for _ in range(2):
            total = total + fnp.sum(x[index] * x[:, None][index, 0]) + fnp.sum(fnp.take_along_axis(x, index))
            index[:] += 2
        return total

    np.testing.assert_array_equal(grad(fun)(x), 2 * x + 1)


def test_duplicates_accumulate():
    x = np.arange(3.0)
    index = np.array([0, 2, 0, 0])
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x[index] * weights))(x), [1101.0, 0.0, 10.0])
    table = np.ones((3, 2))
    g = grad(lambda t: fnp.sum(t[index] * weights[:, None]))(table)
    np.testing.assert_array_equal(g, [[1101.0] * 2, [0.0] * 2, [10.0] * 2])
    g = grad(lambda t: fnp.sum(t[:, np.array([1, 1])]))(table)
    np.testing.assert_array_equal(g, [[0.0, 2.0]] * 3)
    g = grad(lambda t: fnp.sum(t[np.array([0, 0, 2]), np.array([1, 1, 0])]))(table)
    np.testing.assert_array_equal(g, [[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for index in (0, (slice(None), 1), np.array([1, 1, 0]), (np.array([0, 0]), np.array([2, 2])), np.eye(2, 3) > 0):
        value, pullback = vjp(lambda x, index=index: x[index], x)
        assert value.dtype == dtype
        (ct,) = pullback(np.ones(np.shape(value), dtype)[()])
        assert ct.dtype == dtype
        assert ct.shape == x.shape
        expected = np.zeros(x.shape)
        np.add.at(expected, index, 1)
        np.testing.assert_array_equal(ct, expected)


@pytest.mark.parametrize("shape", [(50, 7), (50, 3, 2), (50, 0)])
def test_many_rows_are_added_in_blocks(shape):
    """Rows with numbers from both ends, more than one piece of them, in first and in forward over reverse mode."""
    rows = np.random.default_rng(0).integers(-50, 50, (40, 500))
    weights = np.random.default_rng(1).normal(size=(*rows.shape, *shape[1:]))
    expected = np.zeros(shape)
    np.add.at(expected, rows, weights)
    table = np.ones(shape)
    f = lambda t: fnp.sum(t[rows] ** 2 * weights) / 2
    np.testing.assert_array_equal(grad(lambda t: fnp.sum(t[rows] * weights))(table), expected)
    np.testing.assert_allclose(jvp(grad(f), (table,), (table,))[1], expected, atol=1e-11)
    np.testing.assert_allclose(vjp(grad(f), table)[1](table)[0], expected, atol=1e-11)


def test_rows_are_added_without_index_table():
    rows = np.arange(200_000) % 50
    read, pullback = vjp(lambda t: t[rows], np.ones((50, 10)))
    tracemalloc.start()
    try:
        (gradient,) = pullback(read)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (gradient == 4_000).all()
    assert peak < read.nbytes / 4


def test_large_table_with_few_reads():
    """Few positions are added one by one, many positions by counting."""
    table = np.zeros((1000, 4))
    for index in (np.array([7, 7, 999]), np.tile(np.array([7, 7, 999]), 100)):
        g = grad(lambda t, index=index: fnp.sum(t[index, index % 4]))(table)
        assert g[7, 3] == np.count_nonzero(index == 7)
        assert g[999, 3] == np.count_nonzero(index == 999)
        assert g.sum() == index.size


def test_batched_index_from_argmax():
    xs = np.random.default_rng(0).normal(size=(4, 5))
    pick = lambda x: x[fnp.argmax(x)] ** 2
    np.testing.assert_allclose(vmap(pick)(xs), xs.max(1) ** 2)
    want = np.where(xs == xs.max(1, keepdims=True), 2 * xs, 0)
    np.testing.assert_allclose(vmap(grad(pick))(xs), want)
    np.testing.assert_allclose(grad(lambda xs: fnp.sum(vmap(pick)(xs)))(xs), want)


def test_unravel_index_under_vmap():
    xs = np.random.default_rng(0).normal(size=(4, 2, 3))

    def largest(x, order):
        return x[fnp.unravel_index(fnp.argmax(x if order == "C" else x.T), x.shape, order)]

    for order in "CF":
        np.testing.assert_array_equal(vmap(lambda x, order=order: largest(x, order))(xs), xs.max((1, 2)))
    there = np.array([[0, 2], [1, 0], [1, 1], [0, 0]])
    flat = vmap(lambda p: fnp.ravel_multi_index((p[0], p[1]), (2, 3)))(there)
    np.testing.assert_array_equal(flat, np.ravel_multi_index(tuple(there.T), (2, 3)))
    assert vmap(lambda i: fnp.unravel_index(i, (2, 3)))(np.array([1, 5], np.int8))[0].dtype == np.intp
    with pytest.raises(ValueError, match="index 6 is out of bounds for array with size 6"):
        vmap(lambda i: fnp.unravel_index(i, (2, 3)))(np.array([1, 6]))
    with pytest.raises(ValueError, match="invalid entry"):
        vmap(lambda p: fnp.ravel_multi_index((p[0], p[1]), (2, 3)))(np.array([[0, 3]]))
    with pytest.raises(ValueError, match="invalid entry"):
        vmap(lambda i: fnp.choose(i, [1.0, 2.0]))(np.array([0, 2]))


ROWS = np.array([[1.0, 2.0, 0.5], [1.1, 2.1, 0.4]])


def _written(x, place):
    y = fnp.zeros(3)
    y[[place]] = x[0] ** 2
    return y.sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, place: x[[place, 0]].prod(),
        lambda x, place: fnp.outer(x, x)[[place, 0], [0, place]].prod(),
        lambda x, place: fnp.outer(x, x)[np.ix_([0, place], [place])].sum(),
        _written,
        lambda x, place: x[0] ** int(place) * {"at 1": x[2]}[f"at {place}"] * (str(place) == f"{place:d}" == "1"),
        lambda x, place: fnp.polyder(x, place)[0] * x[0],
    ],
)
def test_batched_index_in_lists_and_strings(f):
    def at_largest(x):
        return f(x, fnp.argmax(x))

    for xs in (ROWS, ROWS[:1]):
        want = np.stack([grad(at_largest)(x) for x in xs])
        np.testing.assert_allclose(vmap(grad(at_largest))(xs), want, rtol=1e-14)


def test_index_lists_differ_between_examples():
    xs = np.array([[1.0, 2.0, 0.5], [0.4, 2.1, 9.0]])
    found = vmap(grad(lambda x: x[[fnp.argmax(x), 0]].prod()))(xs)
    np.testing.assert_array_equal(found, [[2.0, 1.0, 0.0], [9.0, 0.0, 0.4]])
    shown = []
    vmap(lambda x: (shown.append(f"{fnp.argmax(x)}"), x)[1])(xs)
    assert shown == ["[1 2]"]


def test_noninteger_positions_raise():
    for fun in (lambda x: fnp.take(x, x), lambda x: fnp.choose(x, [x, x]), lambda x: fnp.unravel_index(x, (9,))):
        with pytest.raises(TypeError, match="must be integers"):
            vjp(fun, np.array([0.0, 1.0]))
    with pytest.raises(IndexError, match="integer"):
        vjp(lambda x: fnp.take_along_axis(x, x), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="same number of dimensions"):
        vjp(lambda x: fnp.take_along_axis(x, np.array([[0]])), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="clipmode"):
        vjp(lambda x: fnp.take(x, np.array([0]), mode="other"), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="1-d"):
        vjp(lambda x: fnp.compress(np.ones((1, 1), bool), x), np.array([0.0, 1.0]))
    with pytest.raises(IndexError, match="out of bounds"):
        vjp(lambda x: fnp.take(x, np.array([2])), np.array([0.0, 1.0]))


def test_permutation_along_an_axis():
    """The hint that no element is read twice changes the algorithm, not the result."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4))
    y = rng.permuted(np.tile(np.arange(4), (3, 1)), axis=1)
    ct = rng.normal(size=(3, 4))
    for make in (np.asarray, jnp.asarray):
        free, promised = (
            vjp(lambda x, unique=unique: take_along_axis(x, y, axis=1, unique=unique), make(x))[1](make(ct))[0]
            for unique in (False, True)
        )
        np.testing.assert_array_equal(free, promised)
    back = vmap(lambda ct, y: add_along_axis(ct, y, axis=0, shape=(4,), unique=True))(ct, y)
    np.testing.assert_array_equal(back, promised)


def test_scatter_sum_is_linear():
    """Transpose several reads, with some arguments traced and some batched."""
    a, b, i = np.array([1.0, 2.0]), 5.0, np.array([2, 0])
    whole = {"specs": (("array",), (1,)), "shape": (3,), "dtype": np.dtype(float)}

    def fun(a, b, i):
        return scatter_sum(a, b, i, **whole)

    np.testing.assert_array_equal(fun(a, b, i), [2.0, 5.0, 1.0])
    np.testing.assert_array_equal(jvp(lambda a: fun(a, b, i), (a,), (a,))[1], [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(jvp(lambda b: fun(a, b, i), (b,), (1.0,))[1], [0.0, 1.0, 0.0])
    pulled = vjp(lambda a, b: fun(a, b, i), a, b)[1](np.array([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(pulled[0], [100.0, 1.0])
    assert pulled[1] == 10.0
    batched = np.stack([i, [0, 1]])
    np.testing.assert_array_equal(vmap(lambda i: fun(a, b, i))(batched), [[2.0, 5.0, 1.0], [1.0, 7.0, 0.0]])


@pytest.mark.parametrize(
    "index", [range(3), range(0), range(-1, -4, -2), (slice(None), range(2)), (range(2), None, [0, 1]), (..., range(4))]
)
def test_range_as_index(index):
    x = np.random.default_rng(0).normal(size=(4, 5))
    want = np.zeros_like(x)
    np.add.at(want, index, 2 * x[index])
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x[index] ** 2))(x), want)

    def written(x):
        made = fnp.zeros((4, 5))
        made[index] = x[index]
        return fnp.sum(made**2)

    np.testing.assert_array_equal(grad(written)(x), want)
    with pytest.raises(IndexError):
        grad(lambda x: fnp.sum(x[range(3, 9)]))(x)


def test_ix_of_positions_that_differ_between_examples():
    x, rows = np.arange(12.0).reshape(4, 3), np.array([[0, 3], [1, 1]])
    pick = lambda np, rows: x[np.ix_(rows, [0, 2])]
    np.testing.assert_array_equal(vmap(lambda rows: pick(fnp, rows))(rows), [pick(np, r) for r in rows])
    np.testing.assert_array_equal(jit(lambda rows: pick(np, rows))(rows[0]), pick(np, rows[0]))
    with pytest.raises(ConcretizationError, match="ix_: one value was asked for"):
        vmap(lambda mask: fnp.ix_(mask))(np.array([[True, False], [False, True]]))


def test_mode_none_means_raise():
    x, places = np.arange(4.0), np.array([1, 2])
    np.testing.assert_array_equal(grad(lambda x: np.take(x, places, mode=None).sum())(x), [0, 1, 1, 0])
    of_choice = lambda x: np.choose(places, [x, 2 * x, 3 * x], mode=None).sum()
    assert grad(of_choice)(1.0) == 5
    whole = vmap(lambda i: fnp.ravel_multi_index((i, i), (4, 4), mode=None))(places)
    np.testing.assert_array_equal(whole, [5, 10])

    def written(x):
        out = np.zeros(3)
        np.put(out, [0, -1], x, mode=None)
        return out @ [1.0, 2.0, 3.0]

    np.testing.assert_array_equal(grad(written)(np.ones(2)), [1, 3])
    for fun in (lambda x: np.take(x, 4, mode=None), lambda x: np.choose(4, [x, x], mode=None).sum()):
        with pytest.raises((IndexError, ValueError)):
            grad(fun)(x)


def test_ix_of_floats_keeps_derivative():
    x, y = np.array([0.5, 1.5, 2.5]), np.array([1.0, 3.0])
    weights = np.arange(6.0).reshape(3, 2)
    table = lambda x, y: (lambda a, b: fnp.sum(weights * a * b * b))(*np.ix_(x, y))
    want = weights @ y**2, 2 * y * (x @ weights)
    for got, w in zip(grad(table, (0, 1))(x, y), want, strict=True):
        np.testing.assert_allclose(got, w)
    tangent = jvp(table, (x, y), (x, y))[1]
    np.testing.assert_allclose(tangent, want[0] @ x + want[1] @ y)
    assert [part.shape for part in vmap(fnp.ix_)(np.ones((4, 3)), np.ones((4, 2)))] == [(4, 3, 1), (4, 1, 2)]
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(x[np.ix_([0, 2])]))(x), [1.0, 0.0, 1.0])
    of_lists = lambda x: (lambda a, b: np.sum(a * b * b))(*np.ix_([x, 2.0 * x], [1.0, x]))
    assert grad(of_lists)(2.0) == 3.0 + 9.0 * 2.0**2  # of 3 x (1 + x**2)
    np.testing.assert_array_equal(vmap(grad(of_lists))(np.array([1.0, 2.0])), [12.0, 39.0])


@pytest.mark.parametrize(
    "x", [np.arange(12.0).reshape(4, 3), np.arange(24).reshape(4, 2, 3), np.arange(4.0), np.eye(4).T]
)
@pytest.mark.parametrize("rows", [[0, -1, 2, 2], [[1, 3], [0, -4]], [], [True, False, True, False]])
@pytest.mark.parametrize("rest", [(), (slice(None),), (slice(0, 3, 1),), (slice(1, None),), (slice(None, None, -1),)])
def test_rows_match_numpy(x, rows, rest):
    """Check values, type, memory order and refusals on every path."""
    kinds = (bool,) if rows and type(rows[0]) is bool else (np.int64, np.int32, np.uint64)
    for array in (x, np.asfortranarray(x), x[::-1]):
        for index in [np.array(rows, kind) for kind in kinds if kind is not np.uint64 or np.min(rows, initial=0) >= 0]:
            whole = (index, *rest) if rest else index
            if len(rest) + max(1, index.ndim if index.dtype == bool else 1) > x.ndim:
                with pytest.raises(IndexError, match="too many indices"):
                    getitem_of_array(array, whole)
                continue
            found, right = getitem_of_array(array, whole), array[whole]
            np.testing.assert_array_equal(found, right, strict=True)
            assert (found.strides, found.flags.writeable) == (right.strides, right.flags.writeable)


@pytest.mark.parametrize("shape", [(4, 3), (0, 3), (4, 0)])
def test_out_of_range_rows_raise(shape):
    with pytest.raises(IndexError, match=r"out of bounds|empty"):
        getitem_of_array(np.ones(shape), np.array([shape[0]]))


@pytest.mark.parametrize("x", [np.array(0.7), np.array([0.7]), np.array([[0.7, -0.2], [0.3, 1.1]])], ids=np.shape)
@pytest.mark.parametrize("index", [..., 0, (0, 0), np.array([0, 0]), (slice(None), 0)], ids=str)
def test_sparse_and_dense_cotangents_in_second_derivative(x, index):
    """Cotangents of parts are added to that of the whole at every level; here that cotangent is a tracer."""
    index = index if np.ndim(x) == 2 or index is ... or (np.ndim(x) and type(index) is not tuple) else ()

    def f(x):
        return fnp.sum(x**3) + fnp.sum(x[index] ** 3) + fnp.sum(fnp.sin(x)[index] * x[index])

    weight = np.zeros(x.shape)
    np.add.at(weight, index, 1.0)
    # from x**3 and from x * sin(x), as often as the index names an element; elements do not mix
    want = 6 * x + weight * (6 * x + 2 * np.cos(x) - x * np.sin(x))
    np.testing.assert_allclose(grad(lambda x: fnp.sum(grad(f)(x)))(x), want, rtol=1e-13)
    np.testing.assert_allclose(jacfwd(grad(f))(x).reshape(x.size, x.size), np.diag(want.ravel()), rtol=1e-13)
    np.testing.assert_allclose(jacrev(grad(f))(x).reshape(x.size, x.size), np.diag(want.ravel()), rtol=1e-13)


def test_buffer_used_as_index_is_written_later():
    def read(x):
        rows = fnp.arange(3)
        part, pair = x[rows], x[rows, rows]
        rows[0] = 2
        return fnp.sum(part**2) + fnp.sum(pair**3)

    x = np.arange(1.0, 10.0).reshape(3, 3)
    np.testing.assert_allclose(grad(read)(x), 2 * x + 3 * np.diag(np.diag(x)) ** 2)
    np.testing.assert_allclose(jvp(grad(read), (x,), (x,))[1], 2 * x + 6 * np.diag(np.diag(x)) ** 2)


def test_float_buffer_as_index_raises_as_numpy():
    for index in (fnp.array(1.5), (fnp.array([0.5, 1.0]), 0)):
        with pytest.raises(IndexError):
            grad(lambda x, index=index: fnp.sum(x[index]))(np.ones((3, 3)))
    with pytest.raises(IndexError):
        grad(lambda x: fnp.sum(x[fnp.array([0.5, 1.0]), fnp.array(1)]))(np.ones((3, 3)))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_row_reads_in_hessian_products(whole, constant):
    rows, weights = np.array([2, 0, 2, 1]), np.arange(1.0, 13.0).reshape(4, 3)

    def cost(x):
        parts = weights * x[rows] + x[1:3].sum() if constant else x[rows] ** 3 + x[1]
        return fnp.sum(parts) + fnp.sum(x[rows, rows] * x[0, 0]) + (fnp.sum(x**4) if whole else 0.0)

    x = np.linspace(0.5, 2.0, 9).reshape(3, 3)
    v = np.cos(x)
    found = jvp(grad(cost), (x,), (v,))[1]
    eps = 1e-6
    np.testing.assert_allclose(found, (grad(cost)(x + eps * v) - grad(cost)(x - eps * v)) / (2 * eps), rtol=1e-7)
    np.testing.assert_array_equal(found, jvp(gradient_under_debug_nans(cost), (x,), (v,))[1])


@pytest.mark.parametrize("shape", [(1,), (2,), (2, 3)])
@pytest.mark.parametrize("index", [0, slice(1), np.array([0, -1, 0])], ids=repr)
def test_reads_in_checkpoint_rerun_by_forward_mode(shape, index):
    points = np.linspace(0.5, 2.0, int(np.prod(shape))).reshape(shape)

    def slope(x):
        return value_and_grad(lambda x: fnp.sum(x[index]) + 0.1 * fnp.sum(fnp.exp(-x)))(x)

    def pushed(run):
        def total(y):
            value, slope = jvp(run, (points * y,), (fnp.cos(points),))
            return value[0] + slope[0] + fnp.sum(value[1] * points) + fnp.sum(slope[1] * points)

        return grad(total)(points)

    np.testing.assert_allclose(pushed(checkpoint(slope)), pushed(slope), rtol=1e-13)


def gradient_under_debug_nans(cost):
    """Return the gradient inside ``debug_nans``, where operations take the general path."""

    def slope(x):
        with debug_nans():
            return grad(cost)(x)

    return slope


@pytest.mark.parametrize("batched", [False, True])
def test_empty_traced_index_is_a_mask_or_raises_as_numpy(batched):
    x = np.zeros((0, 2))
    wrap = (lambda f: lambda x: vmap(f)(np.stack([x, x]))[0]) if batched else (lambda f: lambda x: vjp(f, x)[0])
    assert wrap(lambda x: x[x > 0])(x).shape == (0,)
    assert wrap(lambda x: np.ones((0, 2))[x[:, 0] > 0])(x).shape == (0, 2)
    assert wrap(lambda x: x[[]])(x).shape == (0, 2)
    with pytest.raises(IndexError, match="must be of integer"):
        wrap(lambda x: x[x[:, 0]])(x)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: fnp.take_along_axis(x, np.array([[2, 0, 1]]), None), "`indices` must have a single dimension"),
        (lambda x: fnp.ravel_multi_index((fnp.argsort(x), 1), (3, 3), order="A"), "only 'C' or 'F' order is permitted"),
        (lambda x: fnp.unravel_index(fnp.argsort(x), (3, 3), order="A")[0], "only 'C' or 'F' order is permitted"),
        (lambda x: fnp.ravel_multi_index((fnp.argsort(x),), (3, 3)), "must be a sequence of length 2"),
    ],
)
def test_invalid_arguments_raise_in_every_mode(f, message):
    x = np.array([0.5, 2.0, -1.0])
    for run in (f, lambda x: vjp(f, x), lambda x: vmap(f)(np.stack([x, x[::-1]]))):
        with pytest.raises(ValueError, match=message):
            run(x)
