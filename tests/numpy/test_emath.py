"""Functions of real numbers with complex results; windows and overlapping views: writes and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from operations.spec import array

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jvp, trace, vjp, vmap
from funcgrad.errors import BranchError, InputError, ReadOnlyError, ShapeError
from funcgrad.numpy.lib.stride_tricks import as_strided, sliding_window_view

NEGATIVE, LARGE, MIXED = np.array([-1.5, -0.3]), np.array([1.5, -2.5]), np.array([-0.5, 2.5])
OUTSIDE = {
    "sqrt": (NEGATIVE, MIXED),
    "log": (NEGATIVE, MIXED),
    "log2": (NEGATIVE, MIXED),
    "log10": (NEGATIVE, MIXED),
    "arccos": (LARGE, MIXED),
    "arcsin": (LARGE, MIXED),
    "arctanh": (LARGE, MIXED),
}
CASES = [(name, x) for name, points in OUTSIDE.items() for x in points]


@pytest.mark.parametrize(("name", "x"), CASES)
def test_results_outside_domain_are_complex(name, x):
    ours, theirs = getattr(fnp.emath, name), getattr(np.emath, name)
    want = theirs(x)
    assert want.dtype == complex
    for fun in (ours, theirs):  # NumPy's function dispatches to ours
        value, pullback = vjp(fun, x)
        np.testing.assert_allclose(value, want, rtol=1e-15)
        assert pullback(value)[0].dtype == x.dtype
    slope = (theirs(x + 1e-5) - theirs(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(jvp(ours, (x,), (np.ones(2),))[1], slope, rtol=1e-8)
    check_grads(lambda x: ours(x).real + 2 * ours(x).imag, (x,), order=2)


@pytest.mark.parametrize(("name", "x"), CASES)
def test_complex_results_on_jax_arrays(name, x):
    ours = getattr(fnp.emath, name)
    value, pushed = jvp(ours, (jnp.asarray(x),), (jnp.ones(2),))
    np.testing.assert_allclose(value, getattr(np.emath, name)(x), rtol=1e-13, atol=1e-15)
    step = (ours(jnp.asarray(x + 1e-5)) - ours(jnp.asarray(x - 1e-5))) / 2e-5
    np.testing.assert_allclose(pushed, step, rtol=1e-8)
    with pytest.raises(InputError, match=r"emath\.\w+: whether its results are complex depends on values"):
        jax.jit(ours)(jnp.asarray(x))


def test_powers_and_logarithms_with_two_arguments():
    for fun, args in (("power", (NEGATIVE, np.array([0.5, 3.0]))), ("logn", (LARGE[:1] * -1, NEGATIVE))):
        ours, theirs = getattr(fnp.emath, fun), getattr(np.emath, fun)
        np.testing.assert_allclose(vjp(ours, *args)[0], theirs(*args), rtol=1e-14)
        check_grads(lambda *a, ours=ours: ours(*a).real + 2 * ours(*a).imag, args, order=2)
    powers = np.array([-1, 2])
    np.testing.assert_allclose(vjp(lambda x: fnp.emath.power(x, powers), LARGE)[0], np.emath.power(LARGE, powers))
    assert vjp(lambda x: fnp.emath.power(x, 2), np.array([2.0]))[0].dtype == float


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int64", "bool"])
def test_dtypes_match_numpy(dtype):
    for x in (
        (np.array([1, 0], dtype), np.array([1, 0], dtype) - np.array([0, 2]).astype(dtype))
        if dtype != "bool"
        else (np.array([True, False]),)
    ):
        assert vmap(fnp.emath.sqrt)(x[None]).dtype == np.emath.sqrt(x).dtype


def test_one_example_outside_domain_makes_batch_complex():
    x = np.array([[4.0, 1.0], [-4.0, 1.0]])
    np.testing.assert_array_equal(vmap(fnp.emath.sqrt)(x), np.emath.sqrt(x))


def test_graph_for_other_branch_raises():
    graph = trace(lambda x: fnp.emath.sqrt(x))(np.ones(2))
    np.testing.assert_array_equal(graph(np.array([4.0, 9.0])), [2.0, 3.0])
    with pytest.raises(BranchError):
        graph(-np.ones(2))


def test_names_match_numpy():
    assert set(np.emath.__all__) == set(fnp.emath.__all__)
    assert fnp.lib.scimath is fnp.emath
    assert fnp.lib.stride_tricks.sliding_window_view is sliding_window_view
    assert fnp.lib.stride_tricks.as_strided is as_strided
    with pytest.raises(AttributeError, match="no differentiable function"):
        _ = fnp.lib.stride_tricks.broadcast_shapes


# ---- windows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "window", "axis"),
    [((6,), 1, None), ((6,), 6, 0), ((6,), 5, -1), ((4, 5), (2, 3), None), ((4, 5), 2, 1), ((3, 6), (2, 3), (1, 1))],
)
def test_sliding_window_view_and_its_transpose(shape, window, axis):
    x, numpys = array(*shape), np.lib.stride_tricks.sliding_window_view
    want = numpys(x, window, axis)
    for fun in (sliding_window_view, numpys):
        value, pullback = vjp(lambda x, fun=fun: fun(x, window, axis), x)
        np.testing.assert_array_equal(value, want)
    ct = np.cos(np.arange(want.size)).reshape(want.shape)
    places = numpys(np.arange(x.size).reshape(shape), window, axis)
    overlaps = np.bincount(places.ravel(), ct.ravel(), x.size).reshape(shape)
    np.testing.assert_allclose(pullback(ct)[0], overlaps, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(sliding_window_view(jnp.asarray(x), window, axis), want)
    on_jax = jax.grad(lambda x: jnp.sum(sliding_window_view(x, window, axis) * ct))(jnp.asarray(x))
    np.testing.assert_allclose(on_jax, overlaps, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("x", "shape", "strides"),
    [
        (array(6), (3, 2), (16, 8)),
        (array(6), (4, 3), (8, 8)),
        (array(3, 4), (2, 3, 2, 2), (32, 8, 32, 8)),
        (array(3, 4).T, (4, 3), None),
        (array(3, 4).T, (3,), (40,)),
        (array(4), None, (0,)),
        (array(4).astype(np.float32), (3, 2), (4, 4)),
    ],
)
def test_as_strided_matches_numpy(x, shape, strides):
    numpys = np.lib.stride_tricks.as_strided
    want = numpys(x, shape, strides)
    ct = np.cos(np.arange(want.size)).reshape(want.shape).astype(x.dtype)
    for fun in (as_strided, numpys):
        value, pullback = vjp(lambda x, fun=fun: fun(x, shape, strides), x)
        np.testing.assert_array_equal(value, want)
        slope = pullback(ct)[0]
        assert slope.dtype == x.dtype
        np.testing.assert_allclose(np.vdot(slope, x), np.vdot(ct, want), rtol=2e-6 if x.itemsize == 4 else 1e-13)


def test_as_strided_sees_writes():
    def fun(x):
        y = x * 1.0
        pairs = as_strided(y, (2, 2), (8, 8))
        y[1] = 5.0 * x[0]
        return fnp.sum(pairs**2)

    np.testing.assert_array_equal(grad(fun)(np.array([1.0, 2.0, 3.0])), [102.0, 0.0, 6.0])
    with pytest.raises(ValueError, match="whose own are"):
        grad(lambda x: as_strided(x, (2,), (16,)).sum())(np.ones(2))
    with pytest.raises(ValueError, match="mismatch in length of strides and shape"):
        grad(lambda x: as_strided(x, (2,), (8, 8)).sum())(np.ones(2))
    with pytest.raises(ReadOnlyError):
        grad(lambda x: as_strided(x * 1.0, (2,), (8,), writeable=False).fill(0.0))(np.ones(2))
    with pytest.raises(ReadOnlyError):
        grad(lambda x: as_strided(x, (2,), (8,)).fill(0.0))(np.ones(2))


def test_moving_average():
    found = jacfwd(lambda x: np.mean(np.lib.stride_tricks.sliding_window_view(x, 2), axis=-1))(np.arange(3.0))
    np.testing.assert_array_equal(found, [[0.5, 0.5, 0], [0, 0.5, 0.5]])


def test_sliding_windows_see_writes_to_base():
    def fun(x):
        a = fnp.zeros(4)
        w = sliding_window_view(a, 2)
        a[1] = x
        return fnp.sum(w * w)

    assert grad(fun)(3.0) == 12.0


def test_sliding_windows_are_read_only_unless_asked_for():
    def fun(x, **how):
        w = sliding_window_view(2 * x, 2, **how)
        w[0] = 0.0
        return fnp.sum(w)

    with pytest.raises(ReadOnlyError):
        grad(fun)(np.ones(3))
    np.testing.assert_array_equal(grad(lambda x: fun(x, writeable=True))(np.ones(3)), [0.0, 0.0, 2.0])


@pytest.mark.parametrize(("window", "axis"), [(4, None), (-1, None), ((1, 1), None), (1, (0, 0)), (1, 1)])
def test_invalid_sliding_windows_raise(window, axis):
    with pytest.raises(ValueError, match=r".+"):
        np.lib.stride_tricks.sliding_window_view(np.ones(3), window, axis)
    with pytest.raises(ValueError, match=r".+"):
        vjp(lambda x: sliding_window_view(x, window, axis), np.ones(3))


# ---- strides ----------------------------------------------------------------------------------------------


def patches(x, k):
    """Return patches of an image by strides, as image code does."""
    return np.lib.stride_tricks.as_strided(x, (x.shape[0] - k + 1, x.shape[1] - k + 1, k, k), x.strides + x.strides)


@pytest.mark.parametrize(
    "lying",
    [lambda x: x * 1, lambda x: (x * 1).T, lambda x: (x * 1)[::-1, ::2], lambda x: (x * 1)[1:, 1:]],
    ids=["whole", "transposed", "backwards", "a part"],
)
def test_as_strided_on_views(lying):
    w = np.cos(np.arange(4.0)).reshape(2, 2)

    def fun(x):
        return (np.tensordot(patches(lying(x), 2), w, 2) ** 2).sum()

    def windows(x):
        return (np.tensordot(sliding_window_view(lying(x), (2, 2)), w, 2) ** 2).sum()

    x = array(5, 6)
    assert fun(x) == windows(x)
    np.testing.assert_allclose(grad(fun)(x), grad(windows)(x), rtol=1e-13)
    np.testing.assert_allclose(hessian(fun)(x), hessian(windows)(x), rtol=1e-12, atol=1e-12)
    batch = np.stack([x, -x, x + 1])
    np.testing.assert_allclose(vmap(grad(fun))(batch), vmap(grad(windows))(batch), rtol=1e-12)


def test_as_strided_stays_within_array():
    def fun(x, change):
        a = x * 1.0
        shown = np.lib.stride_tricks.as_strided(a, (3, 2), (8, 8))
        change(a, shown)
        return (shown * shown).sum()

    x = np.arange(1.0, 5.0)
    found = grad(fun)(x, lambda a, shown: a.__setitem__(0, 3 * a[3]))  # elements 1 and 3 appear twice
    np.testing.assert_array_equal(found, [0.0, 8.0, 12.0, 80.0])
    found = grad(fun)(x, lambda a, shown: shown.__setitem__(0, 0.0))
    np.testing.assert_array_equal(found, [0.0, 0.0, 12.0, 8.0])
    with pytest.raises(InputError, match="several times"):
        grad(fun)(x, lambda a, shown: shown.fill(0.0))
    for strides, shape in (((8,), (5,)), ((4,), (2,)), ((-8,), (2,))):
        with pytest.raises(ShapeError, match=r"as_strided: .* whose own are \(8,\)"):
            grad(lambda x, k=strides, n=shape: fnp.lib.stride_tricks.as_strided(2 * x, n, k).sum())(x)
