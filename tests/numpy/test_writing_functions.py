"""NumPy's functions and methods that write, ``x.at`` and ``x.flat``: traced arrays behave like NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.eager import run_eagerly
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jacrev, jvp, no_grad, value_and_grad, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, ReadOnlyError

M = np.array([[0.5, -1.5, 2.5], [3.5, -0.25, 1.25]])
V = np.array([5.0, 6.0, 7.0])
MASK = np.array([[True, False, True], [False, True, True]])


def written(fun, *args):
    """Return a function that applies ``fun(a, *args)`` to a copy of ``a`` and returns the copy."""

    def changed(a, *args):
        a = a * 1
        fun(a, *args)
        return a

    return changed


def assert_as_in_numpy(fun, *args):
    """Check that ``fun`` writes to a traced first argument as to an ndarray, in every mode, with right derivatives."""
    changed = written(fun)
    want = changed(*args)
    out, pullback = vjp(changed, *args)
    assert out.dtype == want.dtype
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(vmap(changed)(*[np.stack([a, a]) for a in args])[1], want)
    rng = np.random.default_rng(0)
    tangents = tuple([rng.normal(size=np.shape(a)) for a in args])
    out, tangent = jvp(changed, args, tangents)
    np.testing.assert_array_equal(out, want)
    # writes are linear in all numbers
    moved = changed(*[a + t for a, t in zip(args, tangents, strict=True)])
    np.testing.assert_allclose(tangent, moved - want, rtol=1e-12, atol=1e-12)
    ct = rng.normal(size=want.shape)
    pulled = sum([np.vdot(c, t) for c, t in zip(pullback(ct), tangents, strict=True)])
    np.testing.assert_allclose(pulled, np.vdot(ct, tangent), rtol=1e-12)


CALLS = {
    "copyto": (lambda a, y: np.copyto(a, y), M, V),
    "copyto, more axes": (lambda a, y: np.copyto(a, y[None, None]), M, V),
    "copyto with a mask": (lambda a, y: np.copyto(a, y, where=MASK), M, V),
    "copyto with a mask of numbers": (lambda a, y: np.copyto(a, y[:1], where=[1, 0, 2]), M, V),
    "copyto of a number": (lambda a: np.copyto(a, 2), M),
    "put": (lambda a, y: np.put(a, [0, -1, 0], y), M, V),
    "put, repeated": (lambda a, y: np.put(a, [[0, 1], [2, 3]], y), M, V),
    "put, too much": (lambda a, y: np.put(a, 4, y), M, V),
    "put, wrapped": (lambda a, y: np.put(a, [7, -8, 3], y, mode="wrap"), M, V),
    "put, clipped": (lambda a, y: np.put(a, [70, -8, 3], y, mode="clip"), M, V),
    "put, nothing": (lambda a, y: np.put(a, [0, 1], y[:0]), M, V),
    "put nowhere": (lambda a, y: np.put(a, [], y), M, V),
    "put by truth values": (lambda a, y: np.put(a, [True, False], y), M, V),
    "place": (lambda a, y: np.place(a, MASK, y), M, V),
    "place by other numbers": (lambda a, y: np.place(a, [1, 0, 2, 0, 0, 3], y), M, V),
    "place nothing nowhere": (lambda a, y: np.place(a, np.zeros(6), y[:0]), M, V),
    "putmask": (lambda a, y: np.putmask(a, MASK, y), M, V),
    "putmask of the shape": (lambda a, y: np.putmask(a, MASK, y * np.ones((2, 1))), M, V),
    "putmask, nothing": (lambda a, y: np.putmask(a, MASK, y[:0]), M, V),
    "putmask, in one row": (lambda a, y: np.putmask(a, MASK.ravel(), y), M, V),
    "put_along_axis": (lambda a, y: np.put_along_axis(a, np.array([[1], [0]]), y[:2, None], 1), M, V),
    "put_along_axis, twice": (lambda a, y: np.put_along_axis(a, np.array([[1, 1, 0]]), y, -1), M, V),
    "put_along_axis, flat": (lambda a, y: np.put_along_axis(a, np.array([-1, 2, 2]), y, None), M, V),
    "fill_diagonal": (lambda a, y: np.fill_diagonal(a, y), M, V),
    "fill_diagonal of a tall one": (lambda a, y: np.fill_diagonal(a.T, y), np.ones((2, 5)), V),
    "fill_diagonal, wrapped": (lambda a, y: np.fill_diagonal(a.T, y, wrap=True), np.ones((2, 5)), V),
    "fill_diagonal of a cube": (lambda a, y: np.fill_diagonal(a, y[:2]), np.ones((3, 3, 3)), V),
    "fill_diagonal, by a part": (lambda a: np.fill_diagonal(a, a.ravel()[2:6]), np.outer(M, M)[:4, :4].copy()),
    "fill": (lambda a, y: a.fill(y[1]), M, V),
    "sort": (lambda a: a.sort(), M),
    "sort down": (lambda a: a.sort(0, kind="stable"), M),
    "partition": (lambda a: a.partition(1), M),
    "method put": (lambda a, y: a.put([1, 2], y), M, V),
    "real": (lambda a, y: setattr(a, "real", y), M, V),
    "flat": (lambda a, y: setattr(a, "flat", y), M, V),
    "flat, too much": (lambda a, y: setattr(a, "flat", np.concatenate([y, y, y])), M, V),
    "flat, nothing": (lambda a, y: setattr(a, "flat", y[:0]), M, V),
    "flat[i]": (lambda a, y: a.flat.__setitem__(-2, y[1]), M, V),
    "flat[slice]": (lambda a, y: a.flat.__setitem__(slice(None, None, 2), y[:2]), M, V),
    "flat[positions]": (lambda a, y: a.flat.__setitem__([4, 0], y), M, V),
    "flat[twice]": (lambda a, y: a.flat.__setitem__(np.array([0, 0]), y), M, V),
    "flat[mask]": (lambda a, y: a.flat.__setitem__(np.arange(6) % 2 == 0, y[:2]), M, V),
    "flat[...]": (lambda a, y: a.flat.__setitem__(..., y[0]), M, V),
    "flat[(i,)]": (lambda a, y: a.flat.__setitem__((3,), y[0]), M, V),
    "a view": (lambda a, y: np.copyto(a[:, 1:].T, y[:2]), M, V),
    "a view, put": (lambda a, y: np.put(a.T[1:], [0, 3], y), M, V),
    "a view, sorted": (lambda a: a[1, ::-1].sort(), M),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_write(name):
    assert_as_in_numpy(*CALLS[name])


def test_complex_parts():
    def f(x):
        z = x[:3] * (1 + 0j)
        z.imag = x[3:]
        z.real[1] = x[0] * 2
        z.T.imag[::2] *= 3.0
        return z.real @ np.arange(1.0, 4.0) + fnp.sum(z.imag**2)

    x = np.arange(1.0, 7.0)
    want = [1.0 + 4.0, 0.0, 3.0, 18 * 4.0, 2 * 5.0, 18 * 6.0]
    np.testing.assert_allclose(grad(f)(x), want)
    np.testing.assert_allclose(jacfwd(f)(x), want)
    np.testing.assert_allclose(vmap(grad(f))(x[None])[0], want)
    with pytest.raises(TypeError, match="array does not have imaginary part to set"):
        grad(lambda x: (setattr(x * 1, "imag", 1.0), x[0])[1])(x)


REFUSED = {
    "copyto": (lambda a: np.copyto(a, 1j), TypeError, "Cannot cast scalar"),
    "copyto, shape": (lambda a: np.copyto(a, a[0, :2]), ValueError, "could not broadcast input array from shape"),
    "copyto, mask": (lambda a: np.copyto(a, 1.0, where=np.ones((3, 2, 3), bool)), ValueError, "where mask from shape"),
    "copyto, casting": (lambda a: np.copyto(a, a, casting="odd"), ValueError, "casting"),
    "put": (lambda a: np.put(a, [0, 9], 1.0), IndexError, "index 9 is out of bounds for axis 0 with size 6"),
    "put, mode": (lambda a: np.put(a, 0, 1.0, mode="odd"), ValueError, "clipmode must be one of"),
    "place": (lambda a: np.place(a, [True], 1.0), ValueError, "place: mask and data must be the same size"),
    "place, nothing": (lambda a: np.place(a, MASK, []), ValueError, "Cannot insert from an empty array!"),
    "putmask": (lambda a: np.putmask(a, [True], 1.0), ValueError, "putmask: mask and data must be the same size"),
    "put_along_axis": (lambda a: np.put_along_axis(a, np.array([0.0]), 1.0, 0), IndexError, "`indices` must be an int"),
    "put_along_axis, axes": (
        lambda a: np.put_along_axis(a, np.array([0]), 1.0, 0),
        ValueError,
        "same number of dimens",
    ),
    "put_along_axis, flat": (lambda a: np.put_along_axis(a, np.eye(2, dtype=int), 1, None), ValueError, "single dim"),
    "put_along_axis, range": (lambda a: np.put_along_axis(a, np.array([[5]]), 1.0, 1), IndexError, "out of bounds"),
    "fill_diagonal": (lambda a: np.fill_diagonal(a[0], 1.0), ValueError, "array must be at least 2-d"),
    "fill_diagonal of a box": (lambda a: np.fill_diagonal(a[None], 1.0), ValueError, "must be of equal length"),
    "fill": (lambda a: a.fill(V), ValueError, "setting an array element with a sequence"),
    "sort": (lambda a: a.sort(axis=5), np.exceptions.AxisError, "out of bounds"),
    "flat[i]": (lambda a: a.flat.__setitem__(6, 1.0), IndexError, "index 6 is out of bounds for size 6"),
    "flat[i] = array": (lambda a: a.flat.__setitem__(0, V), ValueError, "Error setting single item of array"),
    "flat[i, j]": (lambda a: a.flat.__setitem__((0, 1), 1.0), IndexError, "too many indices for flat iterator"),
    "flat[None]": (lambda a: a.flat[None], IndexError, "are valid indices"),
}
if not at_least(np, "2.4.0"):  # older versions have another text
    del REFUSED["flat[i, j]"], REFUSED["flat[None]"]


def test_part_of_constant_array_is_written_in_order():
    """Check that rebuilt code writes one element after the other, as NumPy does, if no traced value is involved."""

    def fun(x):
        a, b = np.outer(M, M)[:4, :4].copy(), np.arange(6.0)
        np.fill_diagonal(a, a.ravel()[2:6])
        b.flat[1:] = b[:-1]
        a[0, 1], b[2] = x, b[2] * x
        return (a * a).sum() + (b * M.ravel()).sum()

    value, slope = value_and_grad(fun)(1.5)
    assert value == fun(1.5)
    assert slope == 3.0


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_calls_raise_as_numpy(name):
    change, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        change(M.copy())
    for run in (grad, lambda f: lambda x: vmap(f)(x[None])):
        with pytest.raises(error, match=message):
            run(lambda x: (change(x * 1), fnp.sum(x))[1])(M)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    "change",
    [
        lambda a, y: np.copyto(a, y),
        lambda a, y: np.put(a, [0, 1], y),
        lambda a, y: np.place(a, np.ones((2, 3), bool), y),
        lambda a, y: np.putmask(a, np.ones((2, 3), bool), y),
        lambda a, y: np.put_along_axis(a, np.array([[0]]), y[:1], 1),
        lambda a, y: fnp.fill_diagonal(a, y),
    ],
)
def test_functions_that_write_to_ndarrays(change):
    want = np.zeros((2, 3))
    change(want, V)

    def constants(x):
        a = np.zeros((2, 3))
        change(a, fnp.array(V))  # no traced value: NumPy writes
        with no_grad():
            change(a, x * 1.0)
        np.testing.assert_array_equal(a, want)
        change(a, x)
        return fnp.sum(x)

    with pytest.raises(ConcretizationError) as caught:
        grad(constants)(V)
    for part in ("numpy.", f"at {__file__}:", "make a with funcgrad.numpy.zeros, empty or copy"):
        assert part in str(caught.value)
    with pytest.raises(ReadOnlyError):
        grad(lambda x: (change(x, V), fnp.sum(x))[1])(M)


def test_functions_that_write_to_jax_arrays():
    with pytest.raises(InputError, match=r"put: an array of another library cannot be written to.*at\(x\)\[index\]"):
        fnp.put(jnp.ones(3), 0, 1.0)

    def f(x):
        y = x * 2.0
        np.put(y, [0, 1], x)
        y.sort()
        return y @ np.arange(6.0)

    x = M.reshape(-1)
    np.testing.assert_allclose(jax.jit(grad(f))(x), grad(f)(x))


def test_casting():
    def f(x):
        y = fnp.zeros(2)
        fnp.copyto(y, x * (1 + 2j), casting="unsafe")
        return y.sum()

    with pytest.warns(np.exceptions.ComplexWarning):
        slope = grad(f)(np.ones(2))
    np.testing.assert_array_equal(slope, [1.0, 1.0])
    with pytest.raises(TypeError, match="Cannot cast"):
        grad(lambda x: (fnp.copyto(fnp.zeros(2, int), x), x[0])[1])(np.ones(2))


def test_writes_with_batched_masks():
    batch = np.stack([M, -M])

    def f(a, y):
        a = fnp.copy(a)
        np.putmask(a, a > 0, y)
        np.place(a, a < -1, y)
        np.copyto(a, y[0], where=np.abs(a) < 0.3)
        return a

    want = np.stack([f(m, V) for m in batch])
    np.testing.assert_array_equal(vmap(f, in_axes=(0, None))(batch, V), want)
    slopes = np.stack([jacrev(f, 1)(m, V) for m in batch])
    np.testing.assert_array_equal(vmap(jacrev(f, 1), in_axes=(0, None))(batch, V), slopes)
    np.testing.assert_array_equal(jax.jit(jacrev(f, 1))(M, V), slopes[0])


# ---- x.at --------------------------------------------------------------------------------------------------


X = np.array([0.7, -1.2, 2.5, 0.4])
AT = {
    "set": lambda at, x: at(x)[1].set(x[0] * 3),
    "set a slice": lambda at, x: at(x)[::2].set(x[:2]),
    "set twice": lambda at, x: at(x)[np.array([0, 0])].set(x[:2]),
    "set a mask": lambda at, x: at(x)[np.array([True, False, False, True])].set(x[1]),
    "add": lambda at, x: at(x)[1:3].add(x[0]),
    "add twice": lambda at, x: at(x)[np.array([0, 0, 2])].add(x[:3] * 2),
    "subtract": lambda at, x: at(x)[np.array([0, 0, 2])].subtract(x[:3] * 2),
    "multiply": lambda at, x: at(x)[1:3].multiply(x[0]),
    "mul": lambda at, x: at(x)[-1].mul(x[0]),
    "divide": lambda at, x: at(x)[1:3].divide(x[0]),
    "power": lambda at, x: at(x)[np.array([0, 2])].power(x[3], unique_indices=True),
    "min": lambda at, x: at(x)[np.array([0, 1, 0])].min(x[:3] - 0.1),
    "max": lambda at, x: at(x)[np.array([0, 1, 0])].max(x[:3] - 0.1),
    "dropped": lambda at, x: at(x)[np.array([4, 0, -5, -1])].set(x, mode="drop"),
    "filled": lambda at, x: at(x)[np.array([4, 0, -5, -1])].add(x, mode="fill"),
    "clipped": lambda at, x: at(x)[np.array([9, 0])].add(x[:2], mode="clip"),
    "get": lambda at, x: at(x)[np.array([0, 0, 3])].get(),
    "get with a value": lambda at, x: at(x)[np.array([0, 9, -9])].get(mode="fill", fill_value=2.0),
    "get, clipped": lambda at, x: at(x)[np.array([0, 9, 2])].get(mode="clip"),
    "promised": lambda at, x: at(x)[np.array([0, 2])].multiply(
        x[1], unique_indices=True, indices_are_sorted=True, mode="promise_in_bounds"
    ),
    "matrix": lambda at, x: at(x.reshape(2, 2))[np.array([0, 1, 0]), 1].add(x[:3]),
    "matrix, dropped": lambda at, x: at(x.reshape(2, 2))[:, np.array([1, 7])].set(x.reshape(2, 2), mode="drop"),
    "integers": lambda at, x: at(x)[2].set(7),
}


@pytest.mark.parametrize("name", AT)
def test_at_matches_jax(name):
    change = AT[name]
    weights = np.cos(np.arange(float(np.size(change(fnp.at, X)))))

    def ours(x):
        return (change(fnp.at, x).reshape(-1) * weights).sum()

    def theirs(x):
        return (change(lambda x: x.at, jnp.asarray(x)).reshape(-1) * weights).sum()

    np.testing.assert_allclose(change(fnp.at, X), change(lambda x: x.at, jnp.asarray(X)), rtol=1e-14)
    batch = np.stack([X, X + 0.05])
    with np.errstate(all="ignore"):  # JAX evaluates both branches of ``where``
        want = run_eagerly(jax.grad(theirs), X)
        wanted = run_eagerly(jax.vmap(jax.grad(theirs)), batch)
    by_attribute = grad(lambda x: (change(lambda x: x.at, x).reshape(-1) * weights).sum())
    for slope in (grad(ours), jacfwd(ours), by_attribute):
        np.testing.assert_allclose(slope(X), want, rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(ours))(batch), wanted, rtol=1e-12)


def in_numpy(x, index, name, *values):
    """Compute with the ``at`` of the ufunc."""
    x = x.copy()
    getattr(np, name).at(x, index, *values)
    return x


@pytest.mark.parametrize(
    ("method", "ufunc"),
    [
        ("add", "add"),
        ("subtract", "subtract"),
        ("multiply", "multiply"),
        ("divide", "divide"),
        ("power", "power"),
        ("min", "minimum"),
        ("max", "maximum"),
    ],
)
def test_at_with_repeated_indices(method, ufunc):
    x, y = np.abs(M) + 0.5, np.array([0.3, 1.7, 0.9, 1.1, 0.6])
    rows, columns = np.array([0, 1, 0, 0, 1]), np.array([2, 1, 2, 2, 0])
    want = in_numpy(x, (rows, columns), ufunc, y)

    def f(x, y, rows):
        return getattr(fnp.at(x)[rows, columns], method)(y)

    np.testing.assert_allclose(f(x, y, rows), want, rtol=1e-14)
    complex_step = [
        [np.imag(in_numpy(x + 0j, (rows, columns), ufunc, y + 1e-30j * e)) / 1e-30 for e in np.eye(5)],
        [np.imag(in_numpy(x + 1e-30j * e, (rows, columns), ufunc, y + 0j)) / 1e-30 for e in np.eye(6).reshape(6, 2, 3)],
    ]
    slopes = jacrev(f, (1, 0))(x, y, rows)
    np.testing.assert_allclose(np.moveaxis(slopes[0], -1, 0), complex_step[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.moveaxis(slopes[1].reshape(2, 3, 6), -1, 0), complex_step[1], rtol=1e-12, atol=1e-14)
    for got, expected in zip(jacfwd(f, (1, 0))(x, y, rows), slopes, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
    # positions that differ between the examples
    batch = np.stack([rows, rows[::-1], 1 - rows])
    wants = np.stack([in_numpy(x, (r, columns), ufunc, y) for r in batch])
    np.testing.assert_allclose(vmap(f, in_axes=(None, None, 0))(x, y, batch), wants, rtol=1e-14)
    each = np.stack([jacrev(f, 1)(x, y, r) for r in batch])
    np.testing.assert_allclose(vmap(jacrev(f, 1), in_axes=(None, None, 0))(x, y, batch), each, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(jax.jit(jacrev(f, 1))(x, y, rows), each[0], rtol=1e-12, atol=1e-14)


def test_at_apply():
    index = np.array([0, 2, 0, 0])
    want = X.copy()
    for i in index:
        want[i] = np.sin(want[i])

    def f(x, index):
        return fnp.at(x)[index].apply(fnp.sin)

    np.testing.assert_allclose(f(X, index), want)
    slope = jacrev(f)(X, index)
    inner = np.cos(np.sin(np.sin(X[0]))) * np.cos(np.sin(X[0])) * np.cos(X[0])
    np.testing.assert_allclose(slope, np.diag([inner, 1.0, np.cos(X[2]), 1.0]))
    batch = np.stack([index, index[::-1]])
    np.testing.assert_allclose(vmap(jacrev(f), in_axes=(None, 0))(X, batch), [slope, slope])
    np.testing.assert_allclose(jax.jit(jacrev(f))(X, index), slope)
    # elements that are not selected get no infinite derivative
    roots = vmap(jacrev(lambda x, i: x.at[i].apply(fnp.sqrt)), in_axes=(None, 0))
    np.testing.assert_allclose(roots(np.array([4.0, 0.0]), np.array([[0], [0]])), [np.diag([0.25, 1.0])] * 2)
    masked = grad(lambda x: fnp.sum(fnp.at(x)[x > 0].apply(fnp.sqrt)))
    np.testing.assert_allclose(vmap(masked)(np.array([[4.0, 0.0]])), [[0.25, 1.0]])


def test_ties_in_at():
    def f(x, y):
        return fnp.sum(fnp.at(x)[np.array([0, 0])].max(y))

    for slopes in (grad(f, (0, 1)), jacfwd(f, (0, 1))):
        x, y = slopes(np.array([2.0, 5.0]), np.array([2.0, 2.0]))
        np.testing.assert_allclose(x, [1 / 3, 1.0])
        np.testing.assert_allclose(y, [1 / 3, 1 / 3])
    zero = grad(lambda x: fnp.sum(fnp.at(x)[np.array([1, 1])].multiply(x[:2])))(np.array([0.0, 3.0, 1.0]))
    np.testing.assert_allclose(zero, [1.0 + 9.0, 0.0, 1.0])


@pytest.mark.parametrize(("method", "given"), [("max", False), ("min", True)])
def test_at_extrema_of_booleans(method, given):
    x = np.array([given, given])
    change = lambda places: getattr(fnp.at(x)[places], method)(x)
    np.testing.assert_array_equal(vmap(change)(np.array([[0, 1], [1, 0]])), [x, x])


def test_at_leaves_argument_unchanged():
    def f(x):
        y = x.at[0].set(5.0)  # an update of an argument leaves the argument unchanged
        z = y.at[1:].add(1.0)
        y[1] = 0.0
        z[0] = x[3]
        w = x.at[np.array([9])].add(1.0, mode="drop")
        w[0] = 2.0
        return fnp.sum(y) + fnp.sum(z * z) + fnp.sum(w)

    np.testing.assert_allclose(grad(f)(X), [0.0, 2 * (X[1] + 1) + 1, 2 * (X[2] + 1) + 2, 2 * (X[3] + 1) + 2 + 2 * X[3]])
    x = X.copy()
    assert isinstance(fnp.at(x)[0].set(1.0), np.ndarray)
    np.testing.assert_array_equal(x, X)
    assert fnp.at([1, 2])[0].divide(2).dtype == float
    assert fnp.at([1, 2])[0].set(2.9).dtype == int
    assert isinstance(fnp.at(jnp.ones(2))[0].set(1.0), jax.Array)
    assert fnp.at(X)[0].get().shape == ()
    assert repr(fnp.at([1])[0]) == "at(array([1]))[0]"
    np.testing.assert_array_equal(fnp.at(np.arange(3))[[7, 1]].get(mode="fill"), [np.iinfo(int).min, 1])
    np.testing.assert_array_equal(fnp.at(np.arange(3.0))[7].get(mode="fill"), np.nan)
    np.testing.assert_array_equal(fnp.at(np.arange(3.0))[[7, -1]].get(mode="wrap"), [1.0, 2.0])
    np.testing.assert_array_equal(fnp.at(np.zeros(0))[[0]].get(mode="fill", fill_value=3.0), [3.0])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x: x.at[7].set(1.0), IndexError, "index 7 is out of bounds"),
        (lambda x: x.at[np.array([0, 7])].add(1.0), IndexError, "index 7 is out of bounds"),
        (lambda x: x.at[0, 0].set(1.0), IndexError, "too many indices"),
        (lambda x: x.at[0, 0].set(1.0, mode="drop"), IndexError, "too many indices"),
        (lambda x: x.at[0].set(1.0, mode="odd"), ValueError, r"x.at\[i\]: the mode must be one of None, 'promise"),
        (lambda x: x.at[:2].set(x[:3]), ValueError, "could not broadcast"),
        (lambda x: x.at[np.array([0, 0])].add(x[:3]), ValueError, "could not broadcast"),
        (lambda x: x.at[0].set(x[0] * 1j), InputError, "complex numbers are written"),
        (lambda x: fnp.zeros(3, int).at[0].add(x[0]), InputError, "would cut the derivative"),
        (lambda x: x.at[0].set("text"), InputError, "only numbers can be written"),
    ],
)
def test_invalid_at_raises(change, error, message):
    with pytest.raises(error, match=message):
        grad(lambda x: (change(x), x[0])[1])(X)


# ---- x.flat ------------------------------------------------------------------------------------------------


def test_flat_matches_numpy():
    assert_like_flatiter(lambda a: a.flat)
    assert_like_flatiter(lambda a: a.T.flat)
    assert_like_flatiter(lambda a: a[1, ::-1].flat)


def assert_like_flatiter(make):
    def seen(a):
        f = make(a)
        found = [len(f), f.index, f.coords, next(f), next(f), f.index, f.coords, list(f), f.coords]
        found += [f[0], f[-1], f.index, f[1:3], f[::-1], f[[0, 1]], f[np.array([[0, 1], [2, 0]])], f[...]]
        found += [f[()]] * at_least(np, "2.4.0")  # older versions kept the array's shape
        found += [f[np.arange(len(f)) % 2 == 0], f.copy(), f == 2.5, f > 1.0, f <= f, f != f, sum(make(a))]
        found += [np.sum(f), np.max(make(a)), np.sin(make(a)), np.concatenate([f, f]), f.base is a]
        return found

    def plain(a):
        f = make(a)
        return [fnp.array(f), fnp.asarray(f), fnp.sum(f), fnp.sin(f), fnp.stack([f, f])]

    want, more = (
        seen(M),
        [np.array(make(M)), np.array(make(M)), np.sum(make(M)), np.sin(make(M)), np.stack([make(M)] * 2)],
    )
    got = []
    vjp(lambda x: (got.append([numbers(v) for v in seen(x)]), got.append([numbers(v) for v in plain(x)]), x)[2], M)
    for g, w in zip([*got[0][:-1], *got[1]], [*want[:-1], *more], strict=True):
        np.testing.assert_array_equal(g, w)


def numbers(x):
    if isinstance(x, list):
        return [numbers(v) for v in x]
    while hasattr(x, "_trace"):
        x = x._val
    return x


def test_derivatives_of_flat():
    weights = np.arange(6.0)

    def f(x):
        return sum([v * v * w for v, w in zip(x.T.flat, weights, strict=True)]) + x.flat[1] ** 3 + fnp.sum(x.flat[4:])

    want = 2 * M * weights.reshape(3, 2).T
    want[0, 1] += 3 * M[0, 1] ** 2
    want[1, 1:] += 1.0
    np.testing.assert_allclose(grad(f)(M), want)
    np.testing.assert_allclose(jacfwd(f)(M), want)
    np.testing.assert_allclose(vmap(grad(f))(M[None])[0], want)
    np.testing.assert_allclose(jax.jit(grad(f))(M), want)


@pytest.mark.usefixtures("written")
def test_flat_reads_copies_and_writes_through():
    def f(x):
        y = x * 1.0
        part = y.flat[:2]
        part[0] = 100.0
        assert float(numbers(y)[0, 0]) == M[0, 0]
        iterator = y.flat
        first = next(iterator)
        y[0, 1] = 50.0  # not read yet
        second = next(iterator)
        for i in range(3, 6):
            y.flat[i] = y.flat[i - 3] * 2.0
        return first + second + fnp.sum(y)

    np.testing.assert_allclose(grad(f)(M), [[4.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    with pytest.raises(ReadOnlyError):
        grad(lambda x: (x.flat.__setitem__(0, 1.0), fnp.sum(x))[1])(M)
    with pytest.raises(ConcretizationError, match=r"numpy.asarray\(x\): converting a traced value"):
        grad(lambda x: (np.asarray(x.flat), fnp.sum(x))[1])(M)
    with pytest.raises(TypeError):
        hash(vmap(lambda x: x.flat)(M))


PICKED = np.array([True, False, True])


def test_traced_positions_must_be_integers():
    def f(x):
        z = fnp.zeros(3)
        fnp.put(z, fnp.floor(x), x)
        return z

    with pytest.raises(InputError, match=r"put: positions must be integers, got float64\[3\]"):
        vjp(f, np.array([0.2, 1.2, 2.2]))


def test_resized_views_raise():
    x = np.array([0.5, 2.1, -1.3])
    for view in (lambda x: fnp.outer(x, x).T, lambda x: fnp.outer(x, x)[0]):
        with pytest.raises(ValueError, match="it does not own its data"):
            vjp(lambda x, view=view: view(x).resize(4), x)

    def with_a_view(x):
        z = fnp.outer(x, x)
        part = z[0]
        z.resize(4)
        return part

    with pytest.raises(ValueError, match="references or is referenced by another array"):
        vjp(with_a_view, x)


@pytest.mark.parametrize(
    ("f", "wanted"),
    [
        (lambda x: x.at[PICKED].add(x[:2] * 2, mode="clip"), lambda x: x + np.array([2 * x[0], 0.0, 2 * x[1]])),
        (lambda x: x.at[PICKED,].get(mode="fill", fill_value=3.0), lambda x: x[PICKED]),
        (lambda x: x.at[x > 0].multiply(3.0, mode="drop"), lambda x: np.where(x > 0, 3.0 * x, x)),
        (
            lambda x: fnp.outer(x, x).at[PICKED, [0, 5]].multiply(3.0, mode="drop"),
            lambda x: np.outer(x, x) * np.array([[3.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
        ),
        (lambda x: fnp.outer(x, x).at[np.eye(3) > 0].get(mode="clip"), lambda x: np.diag(np.outer(x, x))),
    ],
)
def test_masks_with_a_mode(f, wanted):
    x = np.array([0.5, 2.1, -1.3])
    assert repr(vjp(lambda x: (x, repr(x.at)), x, has_aux=True)[2]).startswith("'at(")
    np.testing.assert_allclose(vjp(f, x)[0], wanted(x))
    columns = [(wanted(x + 1e-6 * e) - wanted(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    for jacobian in (jacrev, jacfwd):
        np.testing.assert_allclose(jacobian(f)(x), np.stack(columns, -1), atol=1e-8)


@pytest.mark.parametrize(("dtype", "b"), [(np.float64, np.float32), (np.float64, np.int64), (np.complex128, float)])
def test_add_at_converts_the_values(dtype, b):
    def f(x):
        z = fnp.zeros(3, dtype)
        fnp.add.at(z, [0, 0, 1], x)
        fnp.subtract.at(z, [2, 2], b(2))
        return z

    x = np.array([0.5, 2.25, -1.5])
    np.testing.assert_array_equal(
        vjp(f, x.astype(b) if b is np.float32 else x)[0], np.array([2.75, -1.5, -4], dtype), strict=True
    )
