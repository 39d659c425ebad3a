"""Distributions: SciPy's values, traced too, and derivatives equal to differences of SciPy's values."""

import math
import warnings

import jax
import numpy as np
import pytest
import scipy.stats
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, jvp, trace, vjp, vmap
from funcgrad.errors import BranchError, InputError, ShapeError
from funcgrad.optional import double_precision
from funcgrad.scipy import stats

INF = math.inf

#: Parameters of shape of each continuous distribution, and points inside of the support.
CONTINUOUS = {
    "beta": ((2.5, 0.7), [0.1, 0.4, 0.93]),
    "cauchy": ((), [-3.0, 0.2, 5.0]),
    "chi": ((2.7,), [0.3, 1.4, 3.0]),
    "chi2": ((3.4,), [0.2, 2.5, 12.0]),
    "expon": ((), [0.1, 1.3, 6.0]),
    "exponnorm": ((1.7,), [-1.2, 0.4, 3.0]),
    "f": ((3.2, 7.5), [0.2, 1.1, 4.0]),
    "fisk": ((2.3,), [0.3, 1.2, 5.0]),
    "gamma": ((2.6,), [0.2, 1.9, 9.0]),
    "genextreme": ((0.3,), [-3.0, 0.4, 2.1]),
    "gennorm": ((1.6,), [-1.3, 0.4, 2.2]),
    "genpareto": ((-0.2,), [0.3, 1.8, 3.9]),
    "gumbel_l": ((), [-2.0, 0.3, 1.1]),
    "gumbel_r": ((), [-1.1, 0.3, 4.0]),
    "halfcauchy": ((), [0.3, 1.4, 6.0]),
    "halfnorm": ((), [0.3, 1.4, 3.0]),
    "invgamma": ((2.3,), [0.2, 0.7, 4.0]),
    "invgauss": ((0.8,), [0.2, 0.7, 2.5]),
    "laplace": ((), [-2.1, 0.3, 3.0]),
    "logistic": ((), [-2.1, 0.3, 4.0]),
    "loglaplace": ((1.7,), [0.2, 0.8, 3.0]),
    "lognorm": ((0.6,), [0.3, 1.2, 3.0]),
    "loguniform": ((0.5, 4.0), [0.7, 1.2, 3.3]),
    "lomax": ((1.4,), [0.2, 1.3, 7.0]),
    "maxwell": ((), [0.4, 1.3, 3.0]),
    "norm": ((), [-2.2, 0.3, 3.0]),
    "pareto": ((2.2,), [1.1, 1.9, 6.0]),
    "rayleigh": ((), [0.3, 1.4, 3.0]),
    "skewnorm": ((1.8,), [-0.7, 0.4, 2.2]),
    "t": ((3.7,), [-2.4, 0.3, 4.0]),
    "triang": ((0.3,), [0.1, 0.5, 0.9]),
    "truncnorm": ((-1.2, 2.5), [-0.8, 0.3, 2.2]),
    "uniform": ((), [0.1, 0.4, 0.9]),
    "vonmises": ((1.8,), [-2.0, 0.3, 2.9]),
    "weibull_max": ((1.7,), [-2.5, -1.1, -0.2]),
    "weibull_min": ((1.7,), [0.2, 1.1, 2.5]),
    "wrapcauchy": ((0.4,), [0.3, 2.0, 5.0]),
}
DISCRETE = {
    "bernoulli": (0.3,),
    "betabinom": (5.0, 1.4, 2.2),
    "binom": (5.0, 0.3),
    "geom": (0.3,),
    "nbinom": (2.6, 0.4),
    "poisson": (2.3,),
}
DENSITIES = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
QUANTILES = ("ppf", "isf")
LOC, SCALE = 0.4, 1.3


def cases(functions):
    return [(n, f) for n in CONTINUOUS for f in functions]


def traced(fun, *args):
    """Return the result of ``fun`` with every argument traced."""
    return vjp(fun, *[np.asarray(a, float) for a in args])[0]


def arguments(name, function):
    shapes, points = CONTINUOUS[name]
    x = np.array([0.1, 0.45, 0.9]) if function in QUANTILES else LOC + SCALE * np.array(points)
    return (x, *shapes, LOC, SCALE)


def slope(fun, x):
    """Compute the derivative by central differences of the eighth order."""
    h = 4e-3 * max(abs(x), 0.5)
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (fun(x + k * h) - fun(x - k * h)) for k, w in enumerate(weights, 1)) / h


def steeper(fun, args, i):
    """Compute the derivative of ``fun(*args)`` in argument i."""
    return slope(lambda v: fun(*args[:i], v, *args[i + 1 :]), args[i])


@pytest.mark.parametrize(("name", "function"), cases((*DENSITIES, *QUANTILES)))
def test_values_match_scipy(name, function):
    args = arguments(name, function)
    want = getattr(getattr(scipy.stats, name), function)(*args)
    ours = getattr(getattr(stats, name), function)
    assert np.array_equal(ours(*args), want)
    assert np.allclose(traced(ours, *args), want, rtol=2e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "function"), cases(("logpdf", "cdf", "logsf", "ppf", "isf")))
def test_derivatives_match_differences(name, function):
    args = arguments(name, function)
    theirs = getattr(getattr(scipy.stats, name), function)
    ours = getattr(getattr(stats, name), function)
    weights = np.array([1.0, -0.5, 2.0])
    found = grad(lambda *a: fnp.sum(weights * ours(*a)), tuple(range(len(args))))(*args)
    of_x = [weights[j] * slope(lambda v: theirs(v, *args[1:]), args[0][j]) for j in range(3)]
    assert np.allclose(found[0], of_x, rtol=2e-6, atol=1e-8)
    for i in range(1, len(args)):
        want = steeper(lambda *a: np.sum(weights * theirs(*a)), args, i)
        assert found[i] == pytest.approx(want, rel=2e-6, abs=1e-8), f"argument {i}"
        pushed = jvp(lambda v, i=i: fnp.sum(weights * ours(*args[:i], v, *args[i + 1 :])), (args[i],), (1.0,))[1]
        assert pushed == pytest.approx(found[i], rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("name", "function"), cases(("logpdf", "cdf", "ppf")))
def test_second_derivatives_match_differences(name, function):
    x, *parameters = arguments(name, function)
    args = (x[1], *parameters)
    ours = getattr(getattr(stats, name), function)
    for i in range(len(args)):
        first = grad(ours, i)
        for j in range(len(args)):
            found = grad(first, j)(*args)
            want = steeper(first, args, j)
            assert found == pytest.approx(want, rel=2e-6, abs=1e-7), f"arguments {i} and {j}"


@pytest.mark.parametrize("name", CONTINUOUS)
def test_outside_support_values_match_scipy(name):
    shapes, points = CONTINUOUS[name]
    theirs, dist = getattr(scipy.stats, name), getattr(stats, name)
    x = np.array([-50.0, points[1], 50.0, math.nan, -INF, INF])
    for function in DENSITIES:
        args = (x, *shapes, 0.0, 1.0)
        with np.errstate(all="ignore"):
            want = getattr(theirs, function)(*args)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = traced(getattr(dist, function), *args)
            pulled = vjp(getattr(dist, function), *args)[1](np.where(np.isinf(want), 0.0, 1.0))
        want = np.where((want == -INF) & (found < -700), found, want)  # some of funcgrad's functions reach further
        want = np.where(np.isinf(x) & np.isnan(want), found, want)  # and have values at infinity
        assert np.allclose(found, want, rtol=1e-9, atol=1e-14, equal_nan=True), function
        inside = vjp(getattr(dist, function), x[1], *args[1:])[1](np.float64(1.0))
        assert pulled[0][1] == pytest.approx(inside[0], rel=1e-12), function
        assert math.isnan(pulled[0][3])
        _, pull = vjp(lambda scale, f=function: getattr(dist, f)(np.delete(x, 3), *shapes, 0.0, scale), 1.0)
        assert np.isfinite(pull(np.where(np.isinf(np.delete(want, 3)), 0.0, 1.0))[0])


@pytest.mark.parametrize("name", CONTINUOUS)
def test_invalid_parameters_give_nan(name):
    shapes, points = CONTINUOUS[name]
    scale = np.array([1.0, -1.0, 0.0])
    for function in ("logpdf", "cdf", "ppf"):
        args = (0.4 if function == "ppf" else points[1], *shapes, 0.0, scale)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found, pull = vjp(getattr(getattr(stats, name), function), *args)
            of_scale = pull(np.ones(3))[-1]
        assert np.array_equal(np.isnan(found), [False, True, True])
        assert np.array_equal(np.isnan(of_scale), [False, True, True])


def test_invalid_shapes_give_nan_only_for_their_element():
    a = np.array([2.0, -1.0, math.nan])
    found, pull = vjp(lambda a: stats.gamma.logpdf(1.5, a), a)
    assert np.allclose(found, scipy.stats.gamma.logpdf(1.5, a), equal_nan=True)
    of_a = pull(np.ones(3))[0]
    assert np.array_equal(np.isnan(of_a), [False, True, True])
    assert of_a[0] == pytest.approx(grad(stats.gamma.logpdf, 1)(1.5, 2.0))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_quantiles_at_the_ends(name):
    shapes, _ = CONTINUOUS[name]
    q = np.array([0.0, 1.0, -0.5, 1.5, math.nan])
    for function in QUANTILES:
        want = getattr(getattr(scipy.stats, name), function)(q, *shapes, LOC, SCALE)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = traced(getattr(getattr(stats, name), function), q, *shapes, LOC, SCALE)
        assert np.allclose(found, want, equal_nan=True), function


@pytest.mark.parametrize(
    ("name", "function", "x", "shapes"),
    [
        ("norm", "logcdf", -40.0, ()),
        ("norm", "logsf", 300.0, ()),
        ("norm", "isf", 1e-200, ()),
        ("t", "cdf", -1e30, (2.5,)),
        ("t", "logpdf", 1e20, (1e9,)),
        ("gamma", "sf", 700.0, (3.0,)),
        ("gamma", "cdf", 1e-60, (3.0,)),
        ("beta", "sf", 1 - 1e-12, (2.0, 5.0)),
        ("chi2", "sf", 1000.0, (3.0,)),
        ("truncnorm", "logpdf", 41.0, (40.0, 42.0)),
        ("truncnorm", "logcdf", -41.0, (-42.0, -40.0)),
        ("truncnorm", "ppf", 1e-3, (30.0, INF)),
        ("logistic", "logsf", 500.0, ()),
        ("laplace", "logcdf", -700.0, ()),
        ("gumbel_r", "logcdf", -5.0, ()),
        ("cauchy", "sf", 1e20, ()),
        ("genextreme", "logpdf", 0.7, (0.0,)),
        ("genpareto", "cdf", 0.7, (1e-12,)),
        ("invgauss", "logsf", 200.0, (0.5,)),
        ("vonmises", "logpdf", 0.01, (1e6,)),
    ],
)
def test_tails_and_limits_match_scipy(name, function, x, shapes):
    want = getattr(getattr(scipy.stats, name), function)(x, *shapes)
    found = traced(getattr(getattr(stats, name), function), x, *shapes)
    assert found == pytest.approx(want, rel=1e-11, abs=0)
    derivatives = grad(getattr(getattr(stats, name), function), tuple(range(1 + len(shapes))))(x, *shapes)
    assert np.all(np.isfinite(derivatives))


MOMENTS = [
    (name, function)
    for name in (*CONTINUOUS, *DISCRETE)
    for function in ("mean", "var", "std", "entropy")
    if ("var" if function == "std" else function) in getattr(stats, name).formulas
]


@pytest.mark.parametrize(("name", "function"), MOMENTS)
def test_moments_match_scipy(name, function):
    shapes = CONTINUOUS[name][0] if name in CONTINUOUS else DISCRETE[name]
    args = (*shapes, LOC, SCALE) if name in CONTINUOUS else (*shapes, 2.0)
    want = getattr(getattr(scipy.stats, name), function)(*args)
    ours = getattr(getattr(stats, name), function)
    assert traced(ours, *args) == pytest.approx(want, rel=1e-10)
    found = grad(ours, tuple(range(len(args))))(*args)
    for i in range(len(args)):
        if name in ("binom", "betabinom") and i == 0:
            continue
        assert found[i] == pytest.approx(
            steeper(getattr(getattr(scipy.stats, name), function), args, i), rel=1e-6, abs=1e-8
        )


# ---- integers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name, function):
    shapes = DISCRETE[name]
    k = np.array([-1.0, 0.0, 1.0, 2.0, 2.5, 5.0, 8.0, math.nan, -INF, INF]) + 1
    theirs, ours = getattr(getattr(scipy.stats, name), function), getattr(getattr(stats, name), function)
    with np.errstate(all="ignore"):
        want = theirs(k, *shapes, 1)
    want = np.where(np.isinf(k) & np.isnan(want), 0.0 if function == "pmf" else -INF, want)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, pull = vjp(lambda *s: ours(k, *s, 1), *shapes)
        finite = np.isfinite(want)
        pulled = pull(np.where(finite, 1.0, 0.0))
    assert np.allclose(found, want, rtol=1e-11, atol=1e-13, equal_nan=True)
    assert np.all(np.isnan(pulled)), "the element that is NaN"
    finite &= np.isfinite(k)
    for i, value in enumerate(shapes):
        if value == int(value):
            continue
        of_finite = grad(lambda *s: fnp.sum(ours(k[finite], *s, 1)), i)(*shapes)
        want = steeper(lambda *s: np.sum(theirs(k[finite], *s, 1)), shapes, i)
        assert of_finite == pytest.approx(want, rel=1e-6, abs=1e-8)


# ---- vectors -----------------------------------------------------------------------------------------------

COV = np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.0]])
MEAN = np.array([0.3, -1.0, 0.5])
X = np.array([[0.1, 0.2, 0.3], [1.0, -2.0, 0.4]])
P = np.array([0.2, 0.3, 0.5])

VECTORS = {
    "normal": (lambda lib, x, m, c: lib.multivariate_normal.logpdf(x, m, c), (X, MEAN, COV)),
    "density": (lambda lib, x, m, c: lib.multivariate_normal.pdf(x, m, c), (X[0], MEAN, COV)),
    "normal of variances": (lambda lib, x, m, c: lib.multivariate_normal.logpdf(x, m, c), (X, MEAN, np.diag(COV))),
    "normal of one variance": (lambda lib, x, m, c: lib.multivariate_normal.logpdf(x, m, c), (X, MEAN, 1.7)),
    "normal numbers": (lambda lib, x, m, c: lib.multivariate_normal.logpdf(x, m, c), (X[0], 0.2, 1.7)),
    "entropy": (lambda lib, c: lib.multivariate_normal.entropy(None, c), (COV,)),
    "t": (lambda lib, x, m, c, n: lib.multivariate_t.logpdf(x, m, c, n), (X, MEAN, COV, 3.5)),
    "dirichlet": (lambda lib, a: lib.dirichlet.logpdf(P, a), (np.array([1.2, 0.7, 2.0]),)),
    "dirichlet of less": (lambda lib, x, a: lib.dirichlet.pdf(x, a), (P[:2], np.array([1.2, 0.7, 2.0]))),
    "dirichlet of a column": (lambda lib, x, a: lib.dirichlet.logpdf(x, a), (P[:2, None], np.array([1.2, 0.7, 2.0]))),
    "dirichlet entropy": (lambda lib, a: lib.dirichlet.entropy(a), (np.array([1.2, 0.7, 2.0]),)),
    "dirichlet mean": (lambda lib, a: lib.dirichlet.mean(a), (np.array([1.2, 0.7, 2.0]),)),
    "dirichlet variance": (lambda lib, a: lib.dirichlet.var(a), (np.array([1.2, 0.7, 2.0]),)),
    "multinomial": (lambda lib, p: lib.multinomial.logpmf([2, 1, 3], 6, p / p.sum()), (P,)),
    "multinomial of wrong sums": (lambda lib, p: lib.multinomial.pmf([[2, 1, 3], [2, 2, 3]], 6, p / p.sum()), (P,)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_distributions_of_vectors(name):
    fun, args = VECTORS[name]
    want = fun(scipy.stats, *args)
    found, pull = vjp(lambda *a: fun(stats, *a), *args)
    assert np.allclose(found, want, rtol=1e-12)
    assert np.shape(found) == np.shape(want)
    pulled = pull(np.ones_like(found))
    rng = np.random.default_rng(0)
    for i, arg in enumerate(args):
        t = rng.normal(size=np.shape(arg))
        t = t + t.T if np.ndim(arg) == 2 and np.shape(arg) == (3, 3) else t
        want = slope(
            lambda h, i=i, arg=arg, t=t: np.sum(fun(scipy.stats, *args[:i], arg + h / 8 * t, *args[i + 1 :])), 0.0
        )
        assert np.sum(pulled[i] * t) / 8 == pytest.approx(want, rel=1e-8), f"argument {i}"
        if np.shape(arg) == (3, 3):
            assert np.array_equal(pulled[i], pulled[i].T)


def test_shares_that_do_not_add_up_have_density_zero():
    logpdf = lambda x: stats.dirichlet.logpdf(x, [1.2, 0.7, 2.0])
    x = np.stack([P, P * 1.01, P.astype(np.float32)])
    assert np.allclose(vmap(logpdf)(x), [logpdf(P), -np.inf, logpdf(P)], rtol=1e-6)
    assert np.array_equal(grad(logpdf)(1.01 * P), np.zeros(3))


@pytest.mark.parametrize(
    "moment",
    [
        lambda lib, x: lib.poisson.entropy(x),
        lambda lib, x: lib.binom.entropy(5, x / 4),
        lambda lib, x: lib.skewnorm.entropy(x, 0.5, 2.0),
        lambda lib, x: lib.f.mean(2.0, 6 * x),
        lambda lib, x: lib.truncnorm(-x, 2.0).std(),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of a density that underflows, where 0 counts
def test_moments_without_a_formula(moment):
    """SciPy computes them by sums or integrals."""
    x = np.array([0.7, 1.3])
    want = [slope(lambda h, one=one: moment(scipy.stats, one + h / 8), 0.0) * 8 for one in x]
    assert [moment(stats, one) for one in x] == [moment(scipy.stats, one) for one in x]
    assert np.allclose([grad(lambda x: moment(stats, x))(one) for one in x], want, rtol=1e-6)
    assert np.allclose(vmap(grad(lambda x: moment(stats, x)))(x), want, rtol=1e-6)


# ---- densities of samples ----------------------------------------------------------------------------------


def rescaled(kde, bw_method):
    """Return an estimated density after its bandwidth has been set."""
    kde.set_bandwidth(bw_method)
    return kde


SAMPLE = np.array([[0.1, 0.7, -1.0, 2.0], [1.0, -0.4, 0.3, 0.2]])
KDES = {
    "of numbers": (lambda lib, d, x: lib.gaussian_kde(d).logpdf(x), (SAMPLE[0], np.array([0.3, 1.5]))),
    "of vectors": (lambda lib, d, x: lib.gaussian_kde(d).pdf(x), (SAMPLE, np.array([[0.3, 1.5], [0.0, 0.4]]))),
    "of another bandwidth": (
        lambda lib, d, x: rescaled(lib.gaussian_kde(d), 0.4).pdf(x) + rescaled(lib.gaussian_kde(d), "silverman").factor,
        (SAMPLE, np.array([[0.3, 1.5], [0.0, 0.4]])),
    ),
    "of a traced bandwidth": (
        lambda lib, d, x: rescaled(lib.gaussian_kde(d), x[0]).pdf(x) * rescaled(lib.gaussian_kde(d), None).log_det,
        (SAMPLE[0], np.array([0.3, 1.5])),
    ),
    "covariances": (
        lambda lib, d, x: (lib.gaussian_kde(d).inv_cov @ lib.gaussian_kde(d).cho_cov @ x).ravel(),
        (SAMPLE, np.array([0.3, 1.5])),
    ),
    "drawn": (lambda lib, d, x: lib.gaussian_kde(d).resample(3, 0)[0] * x[0], (SAMPLE[0], np.array([0.3]))),
    "at one point": (lambda lib, d, x: lib.gaussian_kde(d).pdf(x), (SAMPLE, np.array([0.3, 0.1]))),
    "between two": (
        lambda lib, d, x: lib.gaussian_kde(d).integrate_box_1d(x[0], x[1]),
        (SAMPLE[0], np.array([0.1, 0.9])),
    ),
    "above a number": (
        lambda lib, d, x: lib.gaussian_kde(d).integrate_box_1d(x[0], np.inf),
        (SAMPLE[0], np.array([0.1])),
    ),
    "below a number": (
        lambda lib, d, x: lib.gaussian_kde(d).integrate_box_1d(-np.inf, x[0]),
        (SAMPLE[0], np.array([0.1])),
    ),
    "with weights": (
        lambda lib, d, w: lib.gaussian_kde(d, "silverman", w)([0.3, 1.5]),
        (SAMPLE[0], np.array([1.0, 2.0, 0.5, 1.5])),
    ),
    "times a normal one": (
        lambda lib, d, m: lib.gaussian_kde(d).integrate_gaussian(m, np.eye(2) + m[:, None] * m),
        (SAMPLE, np.array([0.3, 0.9])),
    ),
    "times another": (
        lambda lib, d, e: lib.gaussian_kde(d).integrate_kde(lib.gaussian_kde(e)),
        (SAMPLE, np.cos(3 * SAMPLE[:, :3])),
    ),
    "in a box": (
        lambda lib, d, x: lib.gaussian_kde(d).integrate_box(x, x + 1),
        (SAMPLE, np.array([-0.3, 0.1])),
    ),
    "of one of two": (lambda lib, d, x: lib.gaussian_kde(d).marginal(-1)(x), (SAMPLE, np.array([0.3, 0.1]))),
    "with a factor": (lambda lib, d: lib.gaussian_kde(d, 0.4).logpdf([0.3, 1.5]), (SAMPLE[0],)),
}


if not at_least(scipy, "1.16.0"):  # older integrals over boxes are compiled
    del KDES["in a box"]


@pytest.mark.parametrize("name", KDES)
def test_densities_of_samples(name):
    fun, args = KDES[name]
    want = fun(scipy.stats, *args)
    assert np.array_equal(fun(stats, *args), want)
    found, pull = vjp(lambda *a: fun(stats, *a), *args)
    assert np.allclose(found, want, rtol=1e-12)
    pulled = pull(np.ones_like(found))
    for i, arg in enumerate(args):
        t = np.random.default_rng(0).normal(size=np.shape(arg)) / 8
        want = slope(lambda h, i=i, arg=arg, t=t: np.sum(fun(scipy.stats, *args[:i], arg + h * t, *args[i + 1 :])), 0.0)
        assert np.sum(pulled[i] * t) == pytest.approx(want, rel=1e-8), f"argument {i}"


# ---- calls -------------------------------------------------------------------------------------------------


def test_parameters_by_position_and_by_name():
    x = np.array([1.2, 3.0])
    want = scipy.stats.gamma.logpdf(x, 2.0, 0.5, 1.5)
    for call in (
        lambda x: stats.gamma.logpdf(x, 2.0, 0.5, 1.5),
        lambda x: stats.gamma.logpdf(x, a=2.0, loc=0.5, scale=1.5),
        lambda x: stats.gamma.logpdf(x, 2.0, scale=1.5, loc=0.5),
        lambda x: stats.gamma(2.0, scale=1.5, loc=0.5).logpdf(x),
    ):
        assert np.allclose(traced(call, x), want, rtol=1e-14)


def test_frozen_distributions_have_moments():
    assert grad(lambda a: stats.gamma(a, scale=2.0).mean())(3.0) == 2.0


def test_arguments_broadcast():
    x, a, scale = np.ones((3, 1)), np.array([1.0, 2.0]), np.ones((2, 1, 1))
    assert traced(lambda *args: stats.gamma.cdf(args[0], args[1], 0.0, args[2]), x, a, scale).shape == (2, 3, 2)
    assert vmap(lambda a: stats.gamma.ppf(0.3, a))(a).shape == (2,)


@pytest.mark.parametrize("function", [*DENSITIES, *QUANTILES])
def test_t_with_infinite_df_is_normal(function):
    df, x = np.array([2.5, INF]), 0.4
    want = getattr(scipy.stats.t, function)(x, df)
    found, pull = vjp(getattr(stats.t, function), x, df)
    assert np.allclose(found, want, rtol=1e-12)
    of_x, of_df = pull(np.ones(2))
    assert np.isfinite(of_x)
    assert of_df[0] != 0
    assert of_df[1] == 0


def test_graph_with_invalid_parameters():
    graph = trace(lambda x, s: stats.norm.logpdf(x, 0.0, s))(1.0, 2.0)
    assert graph(1.0, 3.0) == pytest.approx(scipy.stats.norm.logpdf(1.0, 0.0, 3.0))
    assert math.isnan(graph(1.0, -3.0))
    with pytest.raises(BranchError, match="got 300"):  # the number of terms depends on this value
        trace(lambda k: stats.vonmises.cdf(1.0, k))(2.0)(300.0)
    inner = trace(stats.beta.cdf)(0.5, 2.0, 3.0)
    assert inner(1.5, 2.0, 3.0) == 1.0
    assert math.isnan(inner(0.5, -2.0, 3.0))


def test_jit_outside_support_and_with_invalid_parameters():
    x, scale = np.array([-1.0, 0.5, 2.0]), np.array([1.0, 1.0, -1.0])
    with double_precision(jax):
        found = jax.jit(lambda x, s: stats.expon.logpdf(x, 0.0, s))(x, scale)
        of_scale = jax.jit(grad(lambda s: fnp.sum(stats.expon.pdf(x[:2], 0.0, s))))(scale[:2])
    assert np.allclose(found, scipy.stats.expon.logpdf(x, 0.0, scale), equal_nan=True)
    assert np.allclose(of_scale, [0.0, -0.5 * math.exp(-0.5)])


def test_integers_and_half_precision_become_double():
    found, pull = vjp(lambda x: stats.norm.logpdf(x, 0, 2), np.array([1.0, 2.0], np.float16))
    assert found.dtype == np.float64
    assert pull(np.ones(2))[0].dtype == np.float16


def test_gumbel_r_scale_has_derivative():
    """Check the scale of ``gumbel_r``, for which JAX raises an internal error."""
    found = grad(stats.gumbel_r.logpdf, 2)(1.0, 0.0, 2.0)
    assert found == pytest.approx(steeper(scipy.stats.gumbel_r.logpdf, (1.0, 0.0, 2.0), 2), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda x: stats.gamma.logpdf(x), TypeError, "'a'"),
        (lambda x: stats.norm.logpdf(x, 0, 1, 2), TypeError, "3 of them"),
        (lambda x: stats.norm.logpdf(x, 0, mean=1), TypeError, "'mean' is not a parameter"),
        (lambda x: stats.norm.logpdf(x, 0, loc=1), TypeError, "'loc' is given twice"),
        (lambda x: stats.norm.rvs(x), AttributeError, "'rvs'"),
        (lambda x: stats.vonmises.rvs(x), AttributeError, "'rvs'. Use one of .*, entropy, median; for constants"),
        (lambda x: stats.vonmises.cdf(x, 1e6), ValueError, "at most 1e5, got 1000000"),
        (lambda x: stats.poisson.pdf(x, 1.0), AttributeError, "'pdf'"),
        (lambda x: stats.multivariate_normal.rvs(x), AttributeError, "'rvs'"),
        (lambda x: stats.multivariate_normal.logpdf(x * np.ones(3), np.ones(2), np.eye(2)), ValueError, r"\[2, 3\]"),
        (lambda x: stats.gaussian_kde(x), ValueError, "two points"),
        (lambda x: stats.gaussian_kde(x * np.ones(3), "wide"), ValueError, "'wide'"),
        (lambda x: stats.gaussian_kde(x * np.ones(3), None, np.ones(2)), ValueError, "each of 3"),
        (lambda x: stats.gaussian_kde(x * np.arange(3.0)).pdf(np.ones((2, 2))), ValueError, "1 dimensions"),
        (lambda x: stats.dirichlet.logpdf(x * np.ones(3), np.ones(5)), ValueError, "as many rows"),
    ],
)
def test_errors_name_the_problem(call, error, says):
    with pytest.raises(error, match=says):
        vjp(call, 1.5)


@pytest.mark.parametrize("b", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_gennorm_cdf_derivative_is_density(b):
    for x in (-1.0, 0.0, 1.0):
        np.testing.assert_allclose(grad(stats.gennorm.cdf)(x, b), stats.gennorm.pdf(x, b), rtol=1e-12)
        np.testing.assert_allclose(grad(stats.gennorm.sf)(x, b), -stats.gennorm.pdf(x, b), rtol=1e-12)
    assert stats.gennorm.cdf(0.0, b) == 0.5


@pytest.mark.parametrize("name", ["norm", "gamma", "vonmises", "gennorm", "beta"])
def test_medians(name):
    shapes = {"norm": (), "gamma": (2.5,), "vonmises": (2.0,), "gennorm": (1.7,), "beta": (2.0, 0.7)}[name]
    fun = lambda *s: getattr(scipy.stats, name).median(*s)
    args = (*shapes, 0.4, 1.3)
    np.testing.assert_allclose(vjp(fun, *args)[0], fun(*args), rtol=1e-12, atol=1e-12)
    for i, slope in enumerate(vjp(fun, *args)[1](1.0)):
        away = [(*args[:i], args[i] + h, *args[i + 1 :]) for h in (1e-5, -1e-5)]
        assert slope == pytest.approx((fun(*away[0]) - fun(*away[1])) / 2e-5, rel=1e-6, abs=1e-9)
    frozen = lambda loc: getattr(scipy.stats, name)(*shapes, loc).median()
    assert grad(frozen)(0.4) == pytest.approx(1.0)
    assert repr(getattr(stats, name)(*shapes)) == f"<frozen <distribution {name}>>"


def test_density_of_multivariate_t():
    x, shape = np.array([[0.3, -1.0], [2.0, 0.5]]), np.array([[2.0, 0.3], [0.3, 1.0]])
    fun = lambda x: scipy.stats.multivariate_t.pdf(x, [0.1, 0.2], shape, 3.0)
    got, slope = jvp(fun, (x,), (x,))
    np.testing.assert_allclose(got, fun(x), rtol=1e-13)
    logarithm = lambda x: scipy.stats.multivariate_t.logpdf(x, [0.1, 0.2], shape, 3.0)
    np.testing.assert_allclose(slope, fun(x) * jvp(logarithm, (x,), (x,))[1], rtol=1e-12)
    normal = lambda x: scipy.stats.multivariate_normal.logpdf(x, [0.1, 0.2], shape)
    limit = lambda x: scipy.stats.multivariate_t.logpdf(x, [0.1, 0.2], shape, np.inf)
    if at_least(scipy, "1.16.0"):  # SciPy 1.15 calls one of its functions with too many arguments there
        np.testing.assert_allclose(jvp(limit, (x,), (x,)), jvp(normal, (x,), (x,)), rtol=1e-12)
    for df, want in ((3.0, fun), (np.inf, lambda x: np.exp(normal(x)))):
        own = lambda x, df=df: stats.multivariate_t.pdf(x, [0.1, 0.2], shape, df)
        np.testing.assert_allclose(jvp(own, (x,), (x,)), jvp(want, (x,), (x,)), rtol=1e-12)


def test_parameters_that_set_the_length_of_a_sum_are_numbers():
    for fun, says in (
        (lambda k: stats.vonmises.cdf(0.3, k), "vonmises.cdf: kappa must be a number"),
        (lambda n: stats.betabinom.cdf(3, n, 2.0, 2.5), "betabinom.cdf: n must be a number"),
    ):
        with pytest.raises(InputError, match=says):
            jax.jit(fun)(2.0)


def test_integrals_of_an_estimated_density_are_of_one_dimension():
    with pytest.raises(ShapeError, match="integrate_box_1d"):
        grad(lambda x: scipy.stats.gaussian_kde(x).integrate_box_1d(0.0, 1.0))(
            np.random.default_rng(0).normal(size=(2, 9))
        )


LARGE = {
    "binom": (lambda p: scipy.stats.binom.pmf(5_000_003, 20_000_000, p), 0.25, 2.0601261560821529e-4),
    "nbinom": (lambda p: scipy.stats.nbinom.pmf(10_000_000, 10_000_000, p), 0.5, 8.9206204692560990e-5),
    "poisson": (lambda mu: scipy.stats.poisson.pmf(10_000_000, mu), 1e7, 1.2615662504970279e-4),
}


@pytest.mark.parametrize("name", LARGE)
def test_probabilities_of_large_counts(name):
    """Logarithms of factorials of such counts would leave eight digits; the numbers are computed with 40 digits."""
    pmf, at, want = LARGE[name]
    np.testing.assert_allclose(traced(pmf, at), want, rtol=1e-14)


RISING, FALLING = np.polynomial.Polynomial([0, 1]), np.polynomial.Polynomial([1, -1])
POLYNOMIALS = {
    **{f"binom {k}": (scipy.stats.binom, (k, 5), math.comb(5, k) * RISING**k * FALLING ** (5 - k)) for k in range(6)},
    **{f"nbinom {k}": (scipy.stats.nbinom, (k, 3), math.comb(k + 2, k) * RISING**3 * FALLING**k) for k in range(4)},
    **{f"geom {k}": (scipy.stats.geom, (k,), RISING * FALLING ** (k - 1)) for k in range(1, 4)},
    "bernoulli 0": (scipy.stats.bernoulli, (0,), FALLING),
    "bernoulli 1": (scipy.stats.bernoulli, (1,), RISING),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_probabilities_have_derivatives_at_the_ends(name):
    """Logarithms of the probabilities have none."""
    distribution, count, want = POLYNOMIALS[name]
    pmf = lambda p: distribution.pmf(*count, p)
    for f, order in ((grad(pmf), 1), (jacfwd(grad(pmf)), 2), (grad(jacfwd(grad(pmf))), 3)):
        points = np.array([0.0, 0.3, 1.0])[name.startswith(("nbinom", "geom")) :]  # these need p > 0
        np.testing.assert_allclose(vmap(f)(points), want.deriv(order)(points), rtol=1e-12, atol=1e-12)


def test_wrapcauchy_at_the_middle():
    """A tangent there is infinite, and its derivatives leave no digits."""
    wrapped = scipy.stats.wrapcauchy
    density, cdf = lambda x: wrapped.pdf(x, 0.3), lambda x: wrapped.cdf(x, 0.3)
    ppf = lambda q: wrapped.ppf(q, 0.3)
    points = np.array([math.pi, 0.1, 1.5, 4.8])
    np.testing.assert_allclose(vmap(grad(cdf))(points), density(points), rtol=1e-14)
    for order in (1, 2):
        of_cdf, of_density = grad(cdf), density
        for derivative in (jacfwd, grad)[:order]:
            of_cdf, of_density = derivative(of_cdf), derivative(of_density)
        np.testing.assert_allclose(vmap(of_cdf)(points), vmap(of_density)(points), rtol=1e-12, atol=1e-16)
    third = grad(grad(grad(ppf)))(0.5)
    np.testing.assert_allclose(third, -grad(grad(density))(math.pi) / density(math.pi) ** 4, rtol=1e-12)
    np.testing.assert_allclose(grad(jacfwd(ppf))(0.5), 0.0, atol=1e-12)
