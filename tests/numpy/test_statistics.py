"""Covariances, histograms and counts beyond the table of operations: ties, edges, refusals, ``vmap``."""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close, traced

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError

same = partial(close, rtol=1e-13)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 5))
WEIGHTS = RNG.uniform(0.5, 2.0, 5)


# ---- covariances -------------------------------------------------------------------------------------------

COVARIANCES = [
    ((X,), {}),
    ((X[0],), {}),
    ((X[0, 0],), {"bias": True}),
    ((X, X[1]), {"rowvar": True, "ddof": 0}),
    ((X.T, X[1]), {"rowvar": False}),
    ((X.T[:, :1], X[1][:, None]), {"rowvar": False}),
    ((X[:1].T,), {"rowvar": False, "dtype": np.float32}),
    ((X + 1j,), {"fweights": [1, 0, 2, 3, 1]}),
    ((X,), {"aweights": WEIGHTS, "ddof": 0}),
    ((X,), {"aweights": WEIGHTS, "ddof": 2.0}),
    ((np.empty((0, 4)),), {}),
]


@pytest.mark.parametrize(("args", "options"), COVARIANCES, ids=range(len(COVARIANCES)))
def test_cov_matches_numpy(args, options):
    got, want = traced(lambda *a: fnp.cov(*a, **options), *args), np.cov(*args, **options)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    same(got, want, rtol=1e-6 if got.dtype == np.float32 else 1e-13)


def test_cov_weights_have_derivatives():
    for options in ({}, {"ddof": 0}, {"fweights": np.array([1, 2, 1, 0, 3])}):
        check_grads(lambda x, w, o=options: fnp.cov(x, aweights=w, **o), (X, WEIGHTS), order=2)


def test_cov_of_one_observation_warns():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(all="ignore"):
        want = np.cov(X[:, :1])
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(all="ignore"):
        got = traced(fnp.cov, X[:, :1])
    assert np.isnan(want).all()
    assert np.isnan(got).all()


def test_cov_with_small_weights_warns_in_forward_mode():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(all="ignore"):
        value, _ = jvp(lambda w: fnp.cov(X[0], aweights=w, ddof=6), (WEIGHTS,), (WEIGHTS,))
    assert not np.isfinite(value)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"ddof": 1.5}, ValueError, "ddof must be integer"),
        ({"aweights": -WEIGHTS}, ValueError, "aweights cannot be negative"),
        ({"aweights": WEIGHTS * 0}, ZeroDivisionError, "sum to zero"),
        ({"aweights": WEIGHTS[:3]}, RuntimeError, "incompatible numbers of samples and aweights"),
        ({"aweights": X}, RuntimeError, "multidimensional aweights"),
        ({"fweights": [1, 0.5, 1, 1, 1]}, TypeError, "fweights must be integer"),
        ({"fweights": [1, -1, 1, 1, 1]}, ValueError, "fweights cannot be negative"),
        ({"fweights": X.astype(int)}, RuntimeError, "multidimensional fweights"),
        ({"y": np.ones((1, 1, 1))}, ValueError, "y has more than 2 dimensions"),
    ],
)
def test_invalid_cov_raises_as_numpy(options, error, text):
    with pytest.raises(error, match=text):
        traced(lambda x: fnp.cov(x, **options), X)
    with pytest.raises(error):
        np.cov(X, **options)


def test_cov_with_traced_fweights_raises():
    with pytest.raises(InputError, match=r"cov: fweights .* got float64\[5\]\. .*aweights"):
        grad(lambda f: fnp.cov(X[0], fweights=f))(np.ones(5))
    got = vmap(lambda f: fnp.cov(X, fweights=f))(np.array([[1, 2, 1, 0, 3], [1, 1, 1, 1, 1]]))
    same(got, [np.cov(X, fweights=[1, 2, 1, 0, 3]), np.cov(X)])


def test_corrcoef_one_has_derivatives_of_maximum():
    """The value is clipped at 1, but the curvature stays whole, neither halved nor zero."""

    def together(t):
        x = fnp.asarray([0.0, 1.0, 2.0 + t])
        return fnp.corrcoef(x, fnp.asarray([1.0, 3.0, 5.0]))[0, 1]

    def formula(t):
        x, y = fnp.asarray([0.0, 1.0, 2.0 + t]), fnp.asarray([1.0, 3.0, 5.0])
        x, y = x - fnp.mean(x), y - fnp.mean(y)
        return fnp.sum(x * y) / fnp.sqrt(fnp.sum(x * x) * fnp.sum(y * y))

    assert traced(together, 0.0) <= 1.0
    same(grad(together)(0.0), 0.0)
    same(jvp(together, (0.0,), (1.0,))[1], 0.0)
    same(hessian(together)(0.0), hessian(formula)(0.0))
    assert abs(hessian(together)(0.0)) > 0.05


def test_corrcoef_with_itself_is_constant():
    same(jacrev(lambda x: fnp.diagonal(fnp.corrcoef(x)))(X), np.zeros((3, 3, 5)))
    same(jacfwd(lambda x: fnp.diagonal(fnp.corrcoef(x)))(X), np.zeros((3, 3, 5)))
    same(grad(fnp.corrcoef)(X[0]), np.zeros(5))
    assert np.all(np.abs(traced(fnp.corrcoef, X)) <= 1)


def test_corrcoef_of_constant_data_is_nan():
    x = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]])
    with np.errstate(all="ignore"):
        assert np.isnan(grad(lambda x: fnp.corrcoef(x)[0, 1])(x)).all()
        assert np.isnan(jvp(lambda x: fnp.corrcoef(x)[0, 1], (x,), (x,))[1])


# ---- counts ------------------------------------------------------------------------------------------------


def test_bincount_of_empty_arrays_matches_numpy():
    nothing = np.zeros(0, int)
    got = traced(lambda w: fnp.bincount(nothing, w, 3), np.zeros(0))
    want = np.bincount(nothing, np.zeros(0), 3)
    assert got.dtype == want.dtype
    same(got, want)


def test_bincount_with_integer_and_boolean_weights():
    x = np.array([0, 2, 2])
    for weights in (np.array([1, 2, 3]), np.array([True, False, True])):
        got = vmap(lambda w: fnp.bincount(x, w))(weights[None])[0]
        want = np.bincount(x, weights)
        assert got.dtype == want.dtype
        same(got, want)


def test_bincount_copies_its_positions():
    x = np.array([0, 1, 1])
    _, pullback = vjp(lambda w: fnp.bincount(x, w), np.ones(3))
    x[:] = 0
    same(pullback(np.array([1.0, 2.0]))[0], [1.0, 2.0, 2.0])


def test_bincount_under_vmap():
    x = np.array([[0, 1, 1], [2, 0, 0]])
    same(vmap(lambda x: fnp.bincount(x, minlength=3))(x), [[1, 2, 0], [2, 0, 1]])
    weights = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    same(vmap(lambda x, w: fnp.bincount(x, w, 4))(x, weights), [[1, 5, 0, 0], [11, 0, 4, 0]])
    with pytest.raises(ConcretizationError, match=r"bincount: the length .* got int64\[3\]\. Pass minlength"):
        vmap(lambda x: fnp.bincount(x, minlength=2))(x)


@pytest.mark.parametrize(
    ("x", "options", "error"),
    [
        ([0, -1, 2], {}, ValueError),
        ([[0, 1, 1]], {}, ValueError),
        ([0, 1], {}, ValueError),
        ([0, 1, 1], {"minlength": -1}, ValueError),
        ([0.0, 1.0, 1.0], {}, TypeError),
    ],
)
def test_invalid_bincount_raises_as_numpy(x, options, error):
    with pytest.raises(error):
        traced(lambda w: fnp.bincount(np.array(x), w, **options), np.ones(3))
    with pytest.raises(error):
        np.bincount(np.array(x), np.ones(3), **options)


def test_bincount_with_complex_weights_raises():
    with pytest.raises(TypeError, match="safe"):
        traced(lambda w: fnp.bincount(np.array([0, 1]), w), np.ones(2) + 1j)


def test_bincount_of_traced_floats_raises():
    with pytest.raises(InputError, match=r"bincount: .* got float64\[2\]\. Convert it with astype"):
        grad(lambda x: fnp.sum(fnp.bincount(x, np.ones(2))))(np.array([0.0, 1.0]))


def test_digitize_increasing_and_decreasing_bins_under_vmap():
    bins = np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    for right in (False, True):
        got = vmap(lambda b, right=right: fnp.digitize(X, b, right))(bins)
        same(got, [np.digitize(X, b, right) for b in bins])
        same(jax.jit(lambda b, right=right: fnp.digitize(X, b, right))(bins[1]), got[1])
    same(vmap(lambda b: fnp.digitize(X, b))(bins[:, :1]), [np.digitize(X, b[:1]) for b in bins])


def test_invalid_digitize_raises():
    with pytest.raises(ValueError, match="monotonically"):
        vmap(lambda b: fnp.digitize(X, b))(np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]))
    with pytest.raises(TypeError, match="complex"):
        traced(lambda x: fnp.digitize(x, np.arange(3)), X + 1j)
    with pytest.raises(ValueError, match="depth"):
        traced(lambda x: fnp.digitize(x, X), X)


# ---- histograms --------------------------------------------------------------------------------------------


def samples():
    """Yield random elements and numbers of bins; many elements lie on an edge."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        bins = int(rng.integers(1, 12))
        low, high = np.sort(rng.normal(size=2) * 10)
        yield np.r_[np.linspace(low, high, bins + 1), rng.uniform(low, high, 20)].round(seed % 4 + 1), bins


def test_histogram_bins_match_numpy():
    for x, bins in samples():
        weights = np.arange(x.size) + 1.0
        want, edges = np.histogram(x, bins, weights=weights)
        for fun in (
            lambda x, n=bins, w=weights: fnp.histogram(x, n, weights=w),
            lambda x, n=bins, w=weights: vmap(lambda x: fnp.histogram(x, n, weights=w))(x[None]),
        ):
            got = traced(fun, x)
            assert np.array_equal(np.squeeze(got[1]), edges)
            assert np.array_equal(got[0].reshape(-1), want)
        assert np.array_equal(traced(lambda w, x=x, n=bins: fnp.histogram(x, n, weights=w)[0], weights), want)


def test_histogram_of_other_dtypes():
    for x in (np.array([3, 1, 4, 1, 5]), np.float32([0.1, 0.2, 0.7]), np.array([2**60, 2**60 + 5000, 2**61])):
        for bins in (3, np.array([0.15, 1, 4, 4, 5])):
            got = vmap(lambda x, bins=bins: fnp.histogram(x, bins))(x[None])
            for g, w in zip(got, np.histogram(x, bins), strict=True):
                assert g.dtype == w.dtype
                assert np.array_equal(g[0], w) or np.array_equal(g, w)


def test_histogram_of_booleans_warns():
    x = np.array([True, False, True])
    with pytest.warns(RuntimeWarning, match="Converting input from bool"):
        counts, _ = vmap(lambda x: fnp.histogram(x, 2))(x[None])
    same(counts, [[1, 2]])


def test_nan_is_not_counted():
    x = np.array([0.5, np.nan, 2.5])
    for options in ({"bins": 3, "range": (0, 3)}, {"bins": [0, 1, 2, 3]}):
        same(traced(lambda x, o=options: fnp.histogram(x, **o), x)[0], [1, 0, 1])
    same(traced(lambda x: fnp.histogramdd([x, x], 1, [(0, 3), (0, 3)])[0], x), [[2.0]])


def test_histogram_edges_have_derivatives_counts_do_not():
    x = np.array([1.0, 5.0, 2.0, 2.5])
    same(grad(lambda x: fnp.sum(fnp.histogram(x, 2)[0] * fnp.asarray([1.0, 2.0])))(x), np.zeros(4))
    want = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 1, 0, 0]]
    for jacobian in (jacrev, jacfwd):
        same(jacobian(lambda x: fnp.histogram(x, 2)[1])(x), want)
    same(jax.jacrev(lambda x: jnp.histogram(x, 2)[1])(x), want)


def test_histogram_edges_of_equal_elements_share_derivative():
    x = np.array([2.0, 2.0])
    for fun in (fnp.histogram_bin_edges, lambda x, n: vmap(lambda x: fnp.histogram_bin_edges(x, n))(x[None])[0]):
        value, pushed = jvp(lambda x, fun=fun: fun(x, 2), (x,), (np.array([1.0, 3.0]),))
        same(value, [1.5, 2.0, 2.5])
        same(pushed, [2.0, 2.0, 2.0])
        same(grad(lambda x, fun=fun: fun(x, 2)[0])(x), [0.5, 0.5])


def test_histogram_edge_and_range_arguments_have_derivatives():
    x = np.array([1.0, 5.0, 2.0, 2.5])
    edges = np.array([0.0, 2.25, 12.0])
    check_grads(lambda e: fnp.histogram(x, e, density=True), (edges,), order=2)
    check_grads(lambda a, b: fnp.histogram(x, 2, (a, b), True), (0.5, 6.5), order=2)
    check_grads(lambda x: fnp.histogram(x, 2, density=True), (x,), order=2)
    check_grads(lambda x, w: fnp.histogram2d(x, x * x, [2, edges], None, True, w), (x, x), order=2)
    check_grads(lambda x: fnp.histogramdd(fnp.stack([x, x * x], 1), 2, [None, (0.5, 30.0)], True), (x,), order=2)


@pytest.mark.parametrize("bins", [3, [2, 3], np.array([-3.0, 0.0, 1.0, 3.0]), [np.array([-3.0, 3.0]), 2]], ids=range(4))
def test_histogram2d_bins_match_numpy(bins):
    options = {"weights": WEIGHTS, "range": [[-3, 3], [-4, 4]]}
    got = traced(lambda x: fnp.histogram2d(x, X[1], bins, **options), X[0])
    for g, w in zip(got, np.histogram2d(X[0], X[1], bins, **options), strict=True):
        assert g.dtype == w.dtype
        same(g, w)


def test_invalid_histogram2d_raises_as_numpy():
    with pytest.raises(ValueError, match="dimension of bins"):
        traced(lambda x: fnp.histogram2d(x, X[1], [3]), X[0])
    with pytest.raises(ValueError, match="same length"):
        traced(lambda x: fnp.histogram2d(x, X[1, :2]), X[0])


def test_histogramdd_samples_match_numpy():
    for sample in (X.T, [X[0], X[1]], X[0], X[:, :0].T):
        got = traced(lambda s: fnp.histogramdd(s, 2), sample)
        want = np.histogramdd(sample, 2)
        same(got[0], want[0])
        assert type(got[1]) is type(want[1])
        for g, w in zip(got[1], want[1], strict=True):
            same(g, w)


def test_histogram_weights_keep_dtype_and_sum_in_double():
    for dtype in (np.float16, np.float32, np.int64, np.complex64):
        weights = np.full(3000, 1.0).astype(dtype)
        x = np.zeros(3000)
        got = vmap(lambda w: fnp.histogram(x, 1, weights=w)[0])(weights[None])[0]  # noqa: B023
        want = np.histogram(x, 1, weights=weights)[0]
        assert got.dtype == want.dtype
        assert got == want == 3000


@pytest.mark.parametrize("rule", ["auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt"])
def test_bin_rules_match_numpy(rule):
    x = np.random.default_rng(0).normal(size=50)
    for range in (None, (-1.0, 1.5)):
        for g, w in zip(
            traced(lambda x, r=range: fnp.histogram(x, rule, r), x), np.histogram(x, rule, range), strict=True
        ):
            assert np.array_equal(g, w)


def test_bin_rules_under_vmap_raise():
    with pytest.raises(ConcretizationError, match="the number of bins that a rule finds depends on the values"):
        vmap(lambda x: fnp.histogram(x, "auto"))(X)
    with pytest.raises(TypeError, match="weighted"):
        traced(lambda w: fnp.histogram(X[0], "auto", weights=w), WEIGHTS)
    with pytest.raises(ValueError, match="estimator"):
        traced(lambda x: fnp.histogram(x, "best"), X)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"range": (1, 0)}, ValueError, "max must be larger than min"),
        ({"range": (0, np.inf)}, ValueError, "not finite"),
        ({"bins": 0}, ValueError, "must be positive"),
        ({"bins": 2.5}, TypeError, "must be an integer"),
        ({"bins": X}, ValueError, "must be 1d"),
        ({"bins": [0, 2, 1]}, ValueError, "must increase monotonically"),
        ({"weights": WEIGHTS}, ValueError, "same shape"),
        ({"bins": 3, "range": (1.0, 1.0 + 3e-16)}, ValueError, "Too many bins"),
    ],
)
def test_invalid_histogram_raises_as_numpy(options, error, text):
    with pytest.raises(error, match=text):
        traced(lambda x: fnp.histogram(x, **options), X)
    with pytest.raises(error):
        np.histogram(X, **options)


def test_histogram_with_nan_range_raises():
    for run in (lambda x: traced(fnp.histogram, x), lambda x: vmap(fnp.histogram)(np.stack([x * 0, x]))):
        with pytest.raises(ValueError, match="autodetected range"):
            run(np.array([1.0, np.nan]))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((X.T, [1, 2]), "dimension of bins"),
        ((X.T, 2, [(0, 1)]), "one entry per dimension"),
        ((np.ones((2, 2, 2)), 2), "two axes"),
    ],
)
def test_invalid_histogramdd_raises_as_numpy(arguments, text):
    with pytest.raises(ValueError, match=text):
        traced(lambda s: fnp.histogramdd(s, *arguments[1:]), arguments[0])
    with pytest.raises(ValueError, match=r".*"):
        np.histogramdd(*arguments)


def test_numpy_functions_dispatch_on_tracers():
    x = np.array([1.0, 5.0, 2.0, 2.5])
    same(grad(lambda x: np.histogram(x, 2)[1][1])(x), [0.5, 0.5, 0, 0])
    same(grad(lambda w: np.bincount(np.array([1, 0]), w)[1])(np.ones(2)), [1, 0])
    same(grad(lambda x: np.cov(x))(x), grad(fnp.cov)(x))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("q", [0.5, [0.1, 0.7]])
def test_quantiles_of_empty_arrays_match_numpy(q, axis):
    for name in ("quantile", "nanquantile", "percentile", "nanpercentile", "median", "nanmedian"):
        args = () if "median" in name else (q,)
        for x in (np.zeros((0, 2)), np.zeros((2, 0))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                try:
                    want = getattr(np, name)(x, *args, axis=axis)
                except IndexError:
                    with pytest.raises(IndexError):
                        vjp(lambda x, name=name, args=args: getattr(fnp, name)(x, *args, axis=axis), x)
                    continue
                out, pullback = vjp(lambda x, name=name, args=args: getattr(fnp, name)(x, *args, axis=axis), x)
                np.testing.assert_array_equal(out, want, strict=True)
                assert pullback(np.ones_like(out))[0].shape == x.shape


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("options", [{}, {"axis": 0, "ddof": 1}, {"axis": 1, "keepdims": True, "where": X > -1.0}])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("name", ["var", "std"])
def test_complex_variance_with_dtype_matches_numpy(name, dtype, options):
    z = X + 1j * RNG.normal(size=X.shape)

    def fun(x):
        return getattr(np, name)(x, dtype=dtype, **options)

    def total(x):
        return np.sum(np.real(fun(x)))

    out, _ = vjp(fun, z)
    want = fun(z)
    assert type(out) is type(want)
    np.testing.assert_allclose(out, want, rtol=1e-6 if want.dtype.itemsize < 8 or dtype == "complex64" else 1e-14)
    assert out.dtype == want.dtype
    if dtype not in ("float32", "complex64"):
        t, h = RNG.normal(size=X.shape) + 1j * RNG.normal(size=X.shape), 1e-6
        difference = (total(z + h * t) - total(z - h * t)) / (2 * h)  # accurate to 1e-9
        np.testing.assert_allclose(jvp(total, (z,), (t,))[1], difference, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(np.real((grad(total)(z) * t).sum()), difference, rtol=1e-7, atol=1e-9)


NUMBERS = {
    "median": np.median,
    "nanmedian": np.nanmedian,
    "quantile": lambda x: np.quantile(x, 0.3),
    "nanpercentile": lambda x: np.nanpercentile(x, 30.0),
    "nanmax": np.nanmax,
    "cond": lambda x: np.linalg.cond(x[:3, :3]),
    "reduce": lambda x: np.hypot.reduce(x, axis=(0, 1), where=x > -9.0),
}


@pytest.mark.parametrize("fun", NUMBERS.values(), ids=NUMBERS)
def test_full_reductions_return_scalars_as_numpy(fun):
    x = np.where(np.arange(15.0).reshape(3, 5) == 11, np.nan, X) if fun in (np.nanmedian, np.nanmax) else X
    want = fun(x)
    for out in (vjp(fun, x)[0], jvp(fun, (x,), (x,))[0], jvp(fun, (x,), (x,))[1]):
        assert type(out) is type(want) is np.float64
    assert type(vjp(fun, x.astype(np.float32))[0]) is type(fun(x.astype(np.float32)))


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("options", [{}, {"axis": 1, "keepdims": True}, {"where": X > -1.0}, {"dtype": "f4"}])
def test_derivative_in_the_correction_of_a_variance(name, options):
    x = np.where(X > 1.0, np.nan, X) if name.startswith("nan") else X
    for fun in (getattr(np, name), lambda x, *, ddof, **options: getattr(fnp, name)(x, correction=ddof, **options)):
        h, d = 1e-2 if "dtype" in options else 1e-6, 0.5
        out, tangent = jvp(lambda d: fun(x, ddof=d, **options), (d,), (1.0,))  # noqa: B023
        want = fun(x, ddof=d, **options)
        assert type(out) is type(want)
        same(out, want)
        assert out.dtype == want.dtype
        difference = (fun(x, ddof=d + h, **options) - fun(x, ddof=d - h, **options)) / (2 * h)
        np.testing.assert_allclose(tangent, difference, rtol=1e-3 if "dtype" in options else 1e-8)
        slope = grad(lambda d: np.sum(fun(x, ddof=d, **options)))(d)  # noqa: B023
        np.testing.assert_allclose(slope, tangent.sum(), rtol=1e-6)
        batch = vmap(lambda d: fun(x, ddof=d, **options))(np.array([d, 1.0]))  # noqa: B023
        np.testing.assert_allclose(batch[1], fun(x, ddof=1.0, **options), rtol=1e-6)


@pytest.mark.parametrize("function", [fnp.var, fnp.std])
def test_variance_in_integers_is_refused(function):
    """NumPy truncates the mean and each square there."""
    with pytest.raises(InputError, match=r"var, std: dtype must be a floating-point one, got int64\. Leave it out"):
        grad(lambda x: function(x, dtype=np.int64) * 1.0)(X[0])


def test_the_number_of_bins_must_be_the_same_for_all_examples():
    x = np.array([0.5, 2.1, -1.3])
    for f in (lambda x: fnp.histogram(x, fnp.argmax(x) + 2)[0], lambda x: fnp.histogram2d(x, x, fnp.argmax(x) + 2)[0]):
        with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
            vmap(f)(np.stack([x, x[[1, 0, 2]]]))
