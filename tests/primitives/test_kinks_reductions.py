"""Reductions, running products and sorting where they are not smooth, and refusals.

The expected numbers are JAX's; each test compares with JAX, unless it states a reason.
"""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from helpers import at_least, close

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jit, jvp, vjp, vmap
from funcgrad.errors import InputError, ShapeError

same = partial(close, rtol=1e-14, atol=0)

NAN, INF = float("nan"), float("inf")


def check(name, x, gradient, tangent, **more):
    """Check reverse and forward mode, here and in JAX, along the direction 1, 2, 3, ..."""
    x = np.array(x)
    direction = 1.0 + np.arange(x.size).reshape(x.shape)
    ours = lambda x: getattr(fnp, name)(x, **more)
    theirs = lambda x: getattr(jax.nn if name in ("logsumexp", "softmax") else jnp, name)(x, **more)
    with np.errstate(all="ignore"):
        same(grad(ours)(x), gradient)
        same(jvp(ours, (x,), (direction,))[1], tangent)
    if name not in ("var", "std") or at_least(jax, "0.10.0"):  # older means of equal elements had rounding errors
        same(jax.grad(theirs)(jnp.array(x)), gradient)
        same(jax.jvp(theirs, (jnp.array(x),), (jnp.array(direction),))[1], tangent)


# ---- extrema -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "amax", "nanmax"])
@pytest.mark.parametrize(
    ("x", "gradient", "tangent"),
    [
        ([1.0, 3.0, 3.0], [0, 0.5, 0.5], 2.5),
        ([2.0, 2.0, 2.0], [1 / 3] * 3, 2.0),
        ([[1.0, 4.0], [4.0, 4.0]], [[0, 1 / 3], [1 / 3, 1 / 3]], 3.0),
        ([INF, 1.0, INF], [0.5, 0, 0.5], 2.0),
    ],
)
def test_ties_share_derivative(name, x, gradient, tangent):
    check(name, x, gradient, tangent)
    check(name.replace("max", "min"), np.negative(x), gradient, tangent)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "ptp"])
@pytest.mark.parametrize("x", [[1.0, NAN, 3.0], [NAN, NAN], [-INF, NAN]])
def test_extremum_of_nan(name, x):
    check(name, x, np.full(len(x), NAN), NAN)


@pytest.mark.parametrize("name", ["nanmax", "nanmin"])
def test_nanmax_and_nanmin_ignore_nan(name):
    check(name, [NAN, 2.0, NAN], [0, 1, 0], 2.0)
    check(name, [NAN, NAN], [0, 0], 0.0)
    assert np.isnan(getattr(fnp, name)(np.array([NAN, NAN])))


def test_ties_share_along_each_lane():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [5.0, 1.0, 0.0]])
    want = [[0, 0.5, 0.5], [1 / 3] * 3, [1, 0, 0]]
    same(grad(lambda x: fnp.sum(fnp.max(x, axis=1)))(x), want)
    same(vmap(grad(fnp.max))(x), want)
    same(grad(lambda x: fnp.sum(vmap(fnp.max)(x)))(x), want)
    same(vmap(lambda x: jvp(fnp.max, (x,), (np.array([1.0, 2.0, 3.0]),))[1])(x), [2.5, 2, 1])


def test_second_derivative_of_an_extremum_is_zero():
    x = np.array([1.0, 3.0, 3.0])
    same(hessian(fnp.max)(x), np.zeros((3, 3)))
    same(jax.hessian(jnp.max)(x), np.zeros((3, 3)))


def test_initial_shares_tie():
    check("max", [1.0, 3.0, 3.0], [0, 0.25, 0.25], 1.25, initial=3.0)
    check("max", [1.0, 3.0, 3.0], [0, 0, 0], 0.0, initial=5.0)
    check("max", [1.0, 3.0, 3.0], [0, 0.5, 0], 1.0, initial=3.0, where=np.array([True, True, False]))
    x = np.array([1.0, 3.0, 3.0])
    same(grad(lambda initial: fnp.max(x, initial=initial))(3.0), 0.5)


def test_extremum_of_empty_array():
    assert fnp.max(np.ones((0, 3)), axis=0, initial=2.0).tolist() == [2, 2, 2]
    same(grad(lambda initial: fnp.min(np.ones(0), initial=initial))(2.0), 1.0)
    with pytest.raises(ValueError, match="no identity"):
        fnp.max(np.ones((0, 3)), axis=0)
    with pytest.raises(ValueError, match="needs initial"):
        fnp.max(np.ones(3), where=np.array([True, False, True]))


def test_complex_extremum_is_lexicographic():
    z = np.array([1 + 2j, 3 - 1j, 3 + 1j, 3 + 1j])
    assert fnp.max(z) == np.max(z) == 3 + 1j
    assert fnp.argmax(z) == np.argmax(z) == 2
    same(grad(lambda z: fnp.real(fnp.max(z)))(z), [0, 0, 0.5, 0.5])
    same(jax.grad(lambda z: jnp.real(jnp.max(z)))(z), [0, 0, 0.5, 0.5])


def test_range_of_equal_elements():
    check("ptp", [2.0, 2.0, 2.0], [0, 0, 0], 0.0)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_positions_are_constants(name):
    x = np.array([2.0, 1.0, 2.0, 1.0])
    first = {"argmax": 0, "nanargmax": 0}.get(name, 1)
    assert getattr(fnp, name)(x) == first
    same(grad(lambda x: fnp.sum(x) * getattr(fnp, name)(x))(x), np.full(4, first))
    assert vmap(getattr(fnp, name))(np.stack([x, -x])).tolist() == [first, 1 - first]


def test_position_of_nan():
    x = np.array([1.0, NAN, NAN])
    assert (fnp.argmax(x), fnp.argmin(x), fnp.nanargmax(x), fnp.nanargmin(x)) == (1, 1, 0, 0)
    with pytest.raises(ValueError, match="All-NaN"):
        fnp.nanargmax(x[1:])


# ---- variance ----------------------------------------------------------------------------------------------


def test_variance_of_equal_elements():
    check("var", [2.0, 2.0, 2.0], [0, 0, 0], 0.0)
    check("nanvar", [2.0, NAN, 2.0], [0, 0, 0], 0.0)


@pytest.mark.parametrize("name", ["std", "nanstd"])
def test_standard_deviation_of_equal_elements(name):
    check(name, [2.0, 2.0, 2.0], [NAN, NAN, NAN], NAN)


def test_second_derivative_of_variance_of_equal_elements():
    want = 2 / 3 * (np.eye(3) - 1 / 3)
    same(hessian(fnp.var)(np.full(3, 2.0)), want)
    np.testing.assert_allclose(jax.hessian(jnp.var)(jnp.full(3, 2.0)), want, rtol=1e-12)


def test_too_few_degrees_of_freedom():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(invalid="ignore"):
        assert np.isnan(fnp.var(np.ones(1), ddof=1))
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(invalid="ignore"):
        assert np.isnan(grad(lambda x: fnp.var(x, ddof=1))(np.ones(1))).all()


def test_all_nan_lanes_are_constant():
    x = np.array([[NAN, NAN], [1.0, 3.0]])
    with np.errstate(all="ignore"):
        for function in (fnp.nanmean, fnp.nanvar, fnp.nanmedian, lambda x, axis: fnp.nanquantile(x, 0.3, axis)):
            value, pullback = vjp(lambda x, function=function: function(x, axis=1), x)
            assert np.isnan(value).tolist() == [True, False]
            pulled = pullback(np.ones(2))[0]
            assert pulled[0].tolist() == [0, 0]
            assert np.isfinite(pulled).all()


# ---- products ----------------------------------------------------------------------------------------------

ZEROS = [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 3.0], [0.0]]


@pytest.mark.parametrize("x", ZEROS)
def test_product_with_zeros(x):
    x = np.array(x)
    n = len(x)
    others = [np.prod(np.delete(x, i)) for i in range(n)]
    same(grad(fnp.prod)(x), others)
    same(jvp(fnp.prod, (x,), (np.arange(1.0, n + 1),))[1], np.dot(others, np.arange(1.0, n + 1)))
    want = [[0.0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(n)] for i in range(n)]
    same(hessian(fnp.prod)(x), want)
    same(jax.grad(jnp.prod)(x), others)


@pytest.mark.parametrize("x", ZEROS)
def test_running_product_with_zeros(x):
    x = np.array(x)
    n = len(x)
    weights = np.arange(1.0, n + 1)
    first = [sum(weights[k] * np.prod(np.delete(x[: k + 1], i)) for k in range(i, n)) for i in range(n)]
    same(grad(lambda x: fnp.sum(fnp.cumprod(x) * weights))(x), first)
    second = [
        [
            sum(weights[k] * np.prod(np.delete(x[: k + 1], [i, j])) for k in range(max(i, j), n)) if i != j else 0.0
            for j in range(n)
        ]
        for i in range(n)
    ]
    same(hessian(lambda x: fnp.sum(fnp.cumprod(x) * weights))(x), second)
    theirs = lambda x: jnp.sum(jnp.cumprod(x) * weights)
    same(jax.grad(theirs)(x), first)


# ---- sorting and quantiles ---------------------------------------------------------------------------------


def test_equal_elements_stay_in_order():
    x, weights = np.array([2.0, 2.0, 1.0]), np.array([1.0, 10.0, 100.0])
    same(grad(lambda x: fnp.sum(fnp.sort(x) * weights))(x), [10, 100, 1])
    same(jax.grad(lambda x: jnp.sum(jnp.sort(x) * weights))(x), [10, 100, 1])
    same(jvp(fnp.sort, (x,), (weights,))[1], [100, 1, 10])
    same(jax.jvp(jnp.sort, (x,), (weights,))[1], [100, 1, 10])
    same(grad(lambda x: fnp.sum(fnp.partition(x, 1) * weights))(x), [10, 100, 1])
    same(jvp(lambda x: fnp.partition(x, 1), (x,), (weights,))[1], [100, 1, 10])


@pytest.mark.parametrize("options", [{}, {"kind": "heapsort"}, {"kind": "stable"}, {"stable": True}, {"axis": 0}])
def test_argsort_of_equal_elements_is_numpys(options):
    ties = np.array([[1.0, 0.0] * 20, [2.0, 2.0, 1.0, 1.0] * 10])
    want = np.argsort(ties, **options)
    assert np.array_equal(fnp.argsort(ties, **options), want)
    orders = []
    written = lambda x: (orders.append(np.argsort(ties * x, **options)), x)[1]
    grad(written)(1.0)
    vmap(written)(np.ones(2))
    assert np.array_equal(orders[0], want)
    assert np.array_equal(fnp.argsort(jnp.asarray(ties)), np.argsort(ties, stable=True))


def test_nan_sorts_to_the_end():
    x = np.array([NAN, 1.0, NAN, 0.0])
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    same(fnp.sort(x), [0, 1, NAN, NAN])
    same(grad(lambda x: fnp.sum(fnp.sort(x) * weights))(x), [100, 10, 1000, 1])
    same(jax.grad(lambda x: jnp.sum(jnp.sort(x) * weights))(x), [100, 10, 1000, 1])


@pytest.mark.parametrize(
    ("x", "gradient", "tangent"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0, 0.5, 0.5, 0], 2.5),
        ([2.0, 2.0, 2.0], [0, 1, 0], 2.0),
        ([3.0, 3.0, 1.0], [1, 0, 0], 1.0),
        ([2.0, 2.0, 2.0, 2.0], [0, 0.5, 0.5, 0], 2.5),
        ([1.0, NAN, 3.0], [0, 0, 0], 0.0),
    ],
)
def test_median(x, gradient, tangent):
    check("median", x, gradient, tangent)


def test_quantile_of_equal_elements():
    check("quantile", [2.0, 2.0, 2.0], [0.5, 0.5, 0], 1.5, q=0.25)
    check("quantile", [1.0, NAN, 3.0], [0, 0, 0], 0.0, q=0.25)
    check("nanmedian", [1.0, NAN, 3.0], [0.5, 0, 0.5], 2.0)


@pytest.mark.parametrize(("q", "slope"), [(0.25, 2.0), (0.75, 4.0), (0.0, 0.0), (0.5, 0.0), (1.0, 0.0)])
def test_quantile_in_q(q, slope):
    """The derivative in q is that of linear interpolation between sorted positions, and zero at a position."""
    x = np.array([1.0, 2.0, 4.0])
    same(grad(lambda q: fnp.quantile(x, q))(q), slope)
    same(jvp(lambda q: fnp.percentile(x, q), (100 * q,), (100.0,))[1], slope)
    same(jax.grad(lambda q: jnp.quantile(x, q))(q), slope)


def test_quantile_next_to_infinity():
    assert fnp.median(np.array([1.0, INF])) == INF
    assert fnp.median(np.array([-INF, 1.0, INF])) == 1
    assert fnp.nanmedian(np.array([NAN, INF, INF, INF])) == INF
    assert fnp.quantile(np.array([1.0, 2.0, INF]), 0.25) == 1.5


# ---- exponential means -------------------------------------------------------------------------------------


def test_logsumexp_with_minus_infinity():
    p = 1 / (1 + np.exp(-1.0))
    check("logsumexp", [-INF, 0.0], [0, 1], 2.0)
    check("logsumexp", [-INF, 0.0, 1.0], [0, 1 - p, p], 2 + p)
    same(hessian(fnp.logsumexp)(np.array([-INF, 0.0])), np.zeros((2, 2)))


@pytest.mark.parametrize("weights", [None, np.array([2.0, -1.0, 0.5])])
def test_the_sign_of_a_complex_logsumexp_is_its_phase(weights):
    z = np.array([0.3 + 2.0j, -1.0 + 0.5j, 0.7 - 1.0j])
    found = fnp.logsumexp(z, b=weights, return_sign=True)
    for ours, theirs in zip(found, scipy.special.logsumexp(z, b=weights, return_sign=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    check_grads(lambda z: fnp.logsumexp(z, b=weights, return_sign=True), (z,))


@pytest.mark.parametrize("x", [[0.0, 0.0, -3.0], [0.0, -40.0], [-INF, 1.0], [1.0, 2.0, 3.0]])
def test_logsumexp_on_jax_arrays_has_both_derivatives(x):
    """JAX differentiates the operation itself, also where elements are equal."""
    x = jnp.array(x)
    same(jax.grad(fnp.logsumexp)(x), jax.grad(jax.nn.logsumexp)(x))
    close(jax.hessian(fnp.logsumexp)(x), jax.hessian(jax.nn.logsumexp)(x), rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("x", [[0.0, -40.0], [-1e-20, -45.0, -np.inf], [0.1, -3.0], [-0.6931, -0.6931]])
def test_logsumexp_near_zero_is_not_rounded(x):
    x = np.array(x)
    np.testing.assert_allclose(fnp.logsumexp(x), scipy.special.logsumexp(x), rtol=1e-14)
    np.testing.assert_allclose(jit(fnp.logsumexp)(x), fnp.logsumexp(x), rtol=1e-14, atol=1e-16)  # XLA's is rounded


def test_logsumexp_of_minus_infinity_alone():
    """Elements at -inf get no gradient, by a documented convention. (JAX's is NaN here, and 0 with a mask.)"""
    x = np.full(3, -INF)
    assert fnp.logsumexp(x) == -INF
    same(grad(fnp.logsumexp)(x), np.zeros(3))
    same(jvp(fnp.logsumexp, (x,), (np.ones(3),))[1], 0.0)
    same(hessian(fnp.logsumexp)(x), np.zeros((3, 3)))
    assert fnp.logsumexp(np.ones(0)) == -INF


def test_logsumexp_of_infinity():
    assert fnp.logsumexp(np.array([INF, 1.0])) == INF
    with np.errstate(invalid="ignore"):
        same(grad(fnp.logsumexp)(np.array([INF, 1.0])), [NAN, 0])
    same(jax.grad(jax.nn.logsumexp)(jnp.array([INF, 1.0])), [NAN, 0])


@pytest.mark.parametrize("x", [[1e4, 1e4], [-1e4, -1e4], [1e4, -1e4], [NAN, 800.0]])
def test_logsumexp_neither_overflows_nor_warns(x):
    want = jax.nn.logsumexp(jnp.array(x)), jax.grad(jax.nn.logsumexp)(jnp.array(x))
    got = fnp.logsumexp(np.array(x)), grad(fnp.logsumexp)(np.array(x))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-12)


def test_logsumexp_and_softmax_of_fully_masked_array():
    x, nothing = np.array([1.0, 2.0]), np.array([False, False])
    for function, theirs, value in (
        (fnp.logsumexp, jax.nn.logsumexp, -INF),
        (fnp.softmax, jax.nn.softmax, [0, 0]),
        (fnp.log_softmax, jax.nn.log_softmax, [-INF, -INF]),
    ):
        masked = lambda x, function=function: function(x, where=nothing)
        same(masked(x), value)
        same(theirs(x, where=nothing), value)
        out, pullback = vjp(masked, x)
        same(pullback(np.ones_like(out))[0], [0, 0])
        same(jvp(masked, (x,), (x,))[1], np.zeros(np.shape(value)))


def test_softmax_with_minus_infinity():
    x = np.array([-INF, 0.0, 0.0])
    same(fnp.softmax(x), [0, 0.5, 0.5])
    same(fnp.log_softmax(x)[1:], np.log([0.5, 0.5]))
    _, pullback = vjp(fnp.softmax, x)
    same(pullback(np.array([1.0, 2.0, 4.0]))[0], [0, -0.5, 0.5])
    _, pullback = vjp(fnp.log_softmax, x)
    same(pullback(np.array([1.0, 2.0, 4.0]))[0], [1, -1.5, 0.5])
    same(fnp.softmax(np.array([-INF, -INF])), [NAN, NAN])
    same(fnp.softmax(np.array([INF, 0.0])), [NAN, NAN])
    same(jax.nn.softmax(jnp.array([INF, 0.0])), [NAN, NAN])


def test_logsumexp_with_factors():
    x, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 0.0])
    total = np.dot(b, np.exp(x))
    value, sign = fnp.logsumexp(x, b=b, return_sign=True)
    same([value, sign], [np.log(-total), -1])
    assert np.isnan(fnp.logsumexp(x, b=b))
    # a factor of 0 has a derivative, too, which JAX leaves out
    by_b = grad(lambda b: fnp.logsumexp(x, b=b, return_sign=True)[0])(b)
    np.testing.assert_allclose(by_b, np.exp(x) / total, rtol=1e-14)
    assert fnp.logsumexp(np.array([INF, 0.0]), b=np.array([0.0, 1.0])) == 0
    assert fnp.logsumexp(np.array([1e4, 0.0]), b=np.array([0.0, 1.0])) == 0
    assert fnp.logsumexp(x, b=np.zeros(3)) == -INF
    value, sign = fnp.logsumexp(x, b=np.zeros(3), return_sign=True)
    assert (value, sign) == (-INF, 0)


# ---- NumPy's results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variance_with_complex_dtype(name):
    x = np.array([[1.0, 4.0, 2.0], [0.5, 3.0, 7.0]], np.float32)
    for options in ({}, {"ddof": 1}, {"where": np.array([True, False, True])}):
        ours = lambda x, o=options: getattr(fnp, name)(x, axis=1, dtype=np.complex128, **o)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # from NumPy's nan-functions
            want = getattr(np, name)(x.astype(float), axis=1, dtype=np.complex128, **options)
        value, pullback = vjp(ours, x)
        assert value.dtype == ours(x).dtype == want.dtype == np.complex128
        np.testing.assert_allclose(value, want, rtol=1e-14)
        (found,) = pullback(np.ones(2, complex))
        assert found.dtype == np.float32
        real = vjp(lambda x, o=options: getattr(fnp, name)(x, axis=1, dtype=np.float64, **o), x)[1](np.ones(2))[0]
        np.testing.assert_array_equal(found, real)


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "nansum"])
@pytest.mark.parametrize("initial", [-5, -5.0, 1e30, 1j, [7], np.array([7])])
def test_unsupported_initial_raises(name, initial):
    x = np.array([[1, 3], [4, 2]], np.uint8)
    kinds = (OverflowError, TypeError, ValueError)
    for fun in (getattr(np, name), getattr(fnp, name), lambda x, **kw: vmap(lambda x: getattr(fnp, name)(x, **kw))(x)):
        with pytest.raises(kinds):
            fun(x, initial=initial)


def test_dtypes_of_constants():
    assert fnp.sum(np.ones(3, bool)).dtype == np.int64
    assert fnp.sum(np.ones(3, np.int8)).dtype == np.int64
    assert fnp.sum(np.ones(3, np.int8), dtype=np.int8).dtype == np.int8
    assert fnp.mean(np.ones(3, np.int32)).dtype == np.float64
    assert fnp.mean(np.full(70000, 1, np.float16)) == 1
    assert fnp.cumsum(np.ones(3, bool)).dtype == np.int64
    assert fnp.var(np.ones(3, np.complex64)).dtype == np.float32
    assert fnp.sum(np.ones(3, np.float32), initial=np.float64(1)).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_keep_their_dtype(dtype):
    x = np.array([1.0, 3.0, 2.0], dtype)
    for function in (fnp.mean, fnp.std, fnp.max, fnp.prod, fnp.median, fnp.logsumexp):
        assert grad(function)(x).dtype == dtype
    assert grad(lambda x: fnp.sum(x, dtype=np.float64))(x).dtype == dtype


# ---- refusals ----------------------------------------------------------------------------------------------

X = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fnp.sum(X, axis=2), np.exceptions.AxisError, "axis 2"),
        (lambda: fnp.sum(X, axis=(0, 0)), ValueError, "duplicate"),
        (lambda: fnp.sum(X, where=np.ones((4, 2, 3), bool)), ValueError, "where of shape"),
        (lambda: fnp.var(X, ddof=1, correction=1), ValueError, "simultaneously"),
        (lambda: fnp.average(X, weights=[1.0, 2.0]), TypeError, "Axis must be specified"),
        (lambda: fnp.average(X, axis=1, weights=[1.0, 2.0]), ValueError, "consistent"),
        (lambda: fnp.average(X, axis=0, weights=[1.0, -1.0]), ZeroDivisionError, "sum to zero"),
        (lambda: fnp.cumulative_sum(X), ValueError, "axis=None"),
        (lambda: fnp.cumulative_prod(X), ValueError, "cumulative_prod"),
        (lambda: fnp.sort(X, order="f"), InputError, "order='f'"),
        (lambda: fnp.sort(1.0), np.exceptions.AxisError, "axis -1"),
        (lambda: fnp.partition(X, 3), ValueError, "out of bounds"),
        (lambda: fnp.searchsorted(X, 1.0), ShapeError, "one axis"),
        (lambda: fnp.searchsorted(X[0], 1.0, side="up"), ValueError, "'up'"),
        (lambda: fnp.quantile(X, 1.5), ValueError, "range"),
        (lambda: fnp.percentile(X, [3, 101]), ValueError, "range"),
        (lambda: fnp.quantile(X, 0.5, method="none"), ValueError, "'none'"),
        (lambda: fnp.quantile(X, 0.5, weights=X), ValueError, "inverted_cdf"),
        (lambda: fnp.quantile(X, 0.5, weights=-X, method="inverted_cdf"), ValueError, "non-negative"),
        (lambda: fnp.quantile(X + 1j, 0.5), InputError, "complex"),
    ],
)
def test_invalid_calls_raise(call, error, words):
    with pytest.raises(error, match=words):
        call()
