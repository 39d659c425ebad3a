"""SciPy's distributions, unchanged, in ``vmap``: on both sides of supports, in far tails, where shapes vanish."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from helpers import differences
from scipy.stats._distr_params import distcont, distdiscrete

import funcgrad.scipy.special as fsp
from funcgrad import grad, hessian, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
from funcgrad.errors import ConcretizationError, ConversionError, NotDifferentiableError
from funcgrad.scipy import stats

pytestmark = pytest.mark.filterwarnings("ignore")  # SciPy's code warns of logarithms of 0
SLOW = {"gausshyper", "genhyperbolic", "geninvgauss", "kstwo", "ksone", "levy_stable", "studentized_range"}
CONTINUOUS = {name: args for name, args in distcont if isinstance(name, str) and name not in SLOW}
DISCRETE = {name: args for name, args in distdiscrete if isinstance(name, str)}


def agree(f, *batch, name=""):
    """Check ``vmap`` of ``f`` against one example after another."""
    want = [f(*[x[i] for x in batch]) for i in range(len(batch[0]))]
    np.testing.assert_allclose(vmap(f)(*batch), want, rtol=1e-8, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("method", ["logpdf", "logsf", "ppf"])
def test_batch_inside_and_outside_support(method):
    for name, shapes in CONTINUOUS.items():
        distribution = getattr(scipy.stats, name)
        of = getattr(distribution, method)
        low, high = distribution.ppf([0.15, 0.8], *shapes)
        xs = np.array([0.2, 0.85, 1.3] if method == "ppf" else [low, high, low - 40.0])
        batch = np.stack([[x, *shapes, 0.0, 1.0] for x in xs])

        def f(p, of=of):
            return of(p[0], *p[1:])

        agree(grad(f), batch, name=name)


def test_discrete_batch_inside_and_outside_support():
    for name in ("boltzmann", "dlaplace", "logser", "planck", "poisson", "yulesimon", "zipf"):
        logpmf, shapes = getattr(scipy.stats, name).logpmf, DISCRETE[name]
        ks = np.array([[1.0, -3.0], [2.0, 4.0], [-1.0, 1.0]])
        agree(
            grad(lambda a, k, of=logpmf, rest=shapes[1:]: of(k, a, *rest).sum()), np.full(3, shapes[0]), ks, name=name
        )


#: Distributions of counts: a count, the differentiated parameter, parameters before and after.
COUNTS = {
    "betabinom": (3, 2.3, (5,), (0.6,)),
    "logser": (3, 0.6, (), ()),
    "nbinom": (3, 0.4, (5,), ()),
    "yulesimon": (3, 11.0, (), ()),
    "zipfian": (3, 1.25, (), (10,)),
}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_discrete_distributions(name):
    k, p, before, after = COUNTS[name]
    distribution = getattr(scipy.stats, name)
    for method in ("logpmf", "sf", "mean", "entropy"):
        of, at = getattr(distribution, method), (k,) if method in ("logpmf", "sf") else ()

        def f(p, of=of, at=at):
            return of(*at, *before, p, *after)

        want = differences(lambda p, f=f: float(f(p[0])), np.array([p]), 1e-5)[0]
        assert grad(f)(p) == pytest.approx(want, rel=1e-5, abs=1e-9), method
    middle = distribution.ppf(0.3, *before, p, *after)
    assert grad(lambda loc: distribution.ppf(0.3, *before, p, *after, loc=loc) * loc)(2.0) == middle + 4.0


@pytest.mark.parametrize("method", ["pdf", "logcdf", "sf"])
def test_nested_transforms(method):
    alpha = getattr(scipy.stats.alpha, method)
    xs, shapes = np.array([[-1.0, 2.0], [1.0, 1.5], [-2.0, -3.0]]), np.array([2.0, 5.5, 7.0])

    def f(x, a):
        return alpha(x, a).sum()

    agree(f, xs, shapes)
    agree(grad(f, 1), xs, shapes)
    agree(jacfwd(f, 1), xs, shapes)
    agree(hessian(f), xs, shapes)
    for x, a in zip(xs[0], shapes, strict=False):
        np.testing.assert_allclose(
            vmap(vmap(grad(alpha), (0, None)), (None, 0))(xs[0], shapes)[0, 0], grad(alpha)(xs[0, 0], 2.0)
        )
        assert vmap(grad(lambda a, x: alpha(x, a)), (None, 0))(a, xs[0])[1] == pytest.approx(
            grad(alpha, 1)(xs[0, 1], a)
        )
        assert np.isfinite(grad(alpha, 1)(x, a))
    weights = np.arange(1.0, 4.0)
    got = grad(lambda a: (vmap(lambda x: f(x, a))(xs) * weights).sum())(2.3)
    assert got == pytest.approx(grad(lambda a: sum(f(x, a) * w for x, w in zip(xs, weights, strict=True)))(2.3))


class Exponential(scipy.stats.rv_continuous):
    """Distribution that stores its rate as an attribute."""

    def __init__(self, rate):
        self.rate = rate
        super().__init__()

    def _pdf(self, x):
        return self.rate * np.exp(-self.rate * x) * (x > 0)


def test_distribution_with_closure_over_traced_value():
    agree(grad(lambda rate: Exponential(rate).pdf(0.3)), np.array([1.0, 2.0]))


def test_functions_that_use_apply_where():
    agree(grad(lambda x: scipy.special.spherical_jn(2, x)), np.array([0.0, 1.5, 7.0]))
    agree(grad(lambda c: scipy.stats.genpareto.entropy(c) + scipy.stats.genpareto.mean(c)), np.array([0.1, 0.2, -0.1]))
    with pytest.raises(ConcretizationError, match="one value was asked for"):
        vmap(lambda x: scipy.stats.norm.pdf(x) if x > 0 else x)(np.array([1.0, -1.0]))


FAR = [
    ("gumbel_r", "logsf", 1e4),
    ("gumbel_l", "cdf", 1e4),
    ("alpha", "logcdf", 1e-3),
    ("burr", "sf", 1e6),
    ("crystalball", "logsf", 1e3),
    ("dweibull", "logcdf", -1e4),
    ("exponpow", "logpdf", 1e4),
    ("exponpow", "cdf", 1e8),
    ("foldnorm", "logpdf", 1e5),
    ("genexpon", "logsf", 1e8),
    ("gamma", "pdf", 0.0),
    ("beta", "pdf", 0.0),
    ("chi2", "pdf", 0.0),
    ("argus", "pdf", 1.0),
    ("triang", "logpdf", 0.0),
]


@pytest.mark.parametrize(("name", "method", "x"), FAR)
def test_vanished_density_has_zero_derivative(name, method, x):
    of, p = getattr(getattr(scipy.stats, name), method), np.array([x, *CONTINUOUS[name], 0.0, 1.0])
    assert not np.any(grad(lambda p: of(p[0], *p[1:]))(p))
    near = np.array([getattr(scipy.stats, name).median(*CONTINUOUS[name]), *p[1:]])
    agree(grad(lambda p: of(p[0], *p[1:])), np.stack([p, near]))
    both = grad(lambda q: of(np.array([x, near[0]]), *q).sum())(p[1:])
    np.testing.assert_allclose(both, grad(lambda p: of(p[0], *p[1:]))(near)[1:], rtol=1e-9, atol=1e-14)


def test_expectations_with_vanishing_density():
    def f(x):
        return scipy.stats.gumbel_r.expect(lambda t: np.exp(-t * t) * x[0], loc=x[1], scale=x[2])

    p = np.array([0.6, 1.4, 0.9])
    np.testing.assert_allclose(grad(f)(p), differences(f, p, 1e-5), rtol=1e-6)
    agree(grad(f), np.stack([p, 1.3 * p]))


@pytest.mark.parametrize("options", [{"points": [0.7]}, {"weight": "cos", "wvar": 1.5}], ids=["points", "weight"])
def test_expectations_in_terms_of_the_variable(options):
    """Options of ``quad`` that name points or a weight of the variable itself."""

    def f(p):
        return scipy.stats.norm.expect(
            lambda t: np.abs(t - p[0]) ** 3, loc=p[1], scale=p[2], lb=-2.0, ub=2.5, **options
        )

    p = np.array([0.6, 0.2, 0.9])
    np.testing.assert_allclose(grad(f)(p), differences(f, p, 1e-4), rtol=1e-6)
    np.testing.assert_allclose(jacrev(grad(f))(p), differences(grad(f), p, 1e-4), rtol=1e-5, atol=1e-7)


def test_expectations_with_moving_ends():
    """Check second derivatives in location and scale: at the end that moves, the density has an infinite slope."""
    f = lambda p: scipy.stats.gamma(p[0], p[1], p[2]).expect(lambda x: x**2)
    exact = lambda p: p[2] ** 2 * (p[0] ** 2 + p[0]) + 2 * p[0] * p[1] * p[2] + p[1] ** 2
    p = np.array([1.7, 0.2, 1.3])
    np.testing.assert_allclose(jacrev(grad(f))(p), hessian(exact)(p), rtol=1e-9)
    part = lambda p: scipy.stats.gamma.expect(np.sin, (1.7,), p[0], p[1], ub=2.9, conditional=True)
    np.testing.assert_allclose(grad(part)(p[1:]), differences(part, p[1:]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(jacrev(grad(part))(p[1:]), differences(grad(part), p[1:]), rtol=1e-8, atol=1e-10)


def pearson3(x, skew):
    b = 2 / skew
    return mp.log(abs(b)) + (b * b - 1) * mp.log(b * x + b * b) - b * x - b * b - mp.loggamma(b * b)


@pytest.mark.parametrize("x", [0.3, -1.7])
def test_pearson3_without_skewness(x):
    with mp.workdps(60):
        first, second = [
            mp.diff(lambda s: pearson3(mp.mpf(x), s), mp.mpf("1e-12"), n, h=mp.mpf("1e-18")) for n in (1, 2)
        ]
    logpdf = scipy.stats.pearson3.logpdf
    assert grad(logpdf, 1)(x, 0.0) == pytest.approx(float(first), rel=1e-9)
    assert grad(grad(logpdf, 1), 1)(x, 0.0) == pytest.approx(float(second), rel=1e-9)
    for method in ("cdf", "sf", "logpdf"):
        of = getattr(scipy.stats.pearson3, method)
        assert grad(of, 1)(x, 0.0) == pytest.approx((of(x, 1e-3) - of(x, -1e-3)) / 2e-3, rel=1e-3)
    ppf = scipy.stats.pearson3.ppf
    assert grad(ppf, 1)(0.2, 0.0) == pytest.approx((ppf(0.2, 1e-3) - ppf(0.2, -1e-3)) / 2e-3, rel=1e-5)


@pytest.mark.parametrize("shapes", [(0.0, 0.0), (0.1, 0.0), (0.0, 0.1), (0.2, -0.3)])
def test_kappa4_where_shapes_vanish(shapes):
    for method in ("pdf", "logcdf", "sf", "ppf"):
        of, p = getattr(scipy.stats.kappa4, method), np.array([0.3, *shapes])
        steps = 1e-4 * np.eye(3)
        want = [(of(*(p + s)) - of(*(p - s))) / 2e-4 for s in steps]
        got = grad(lambda p, of=of: of(*p))(p)
        fine = np.isfinite(want)  # SciPy's quantiles are NaN on one side
        np.testing.assert_allclose(got[fine], np.array(want)[fine], rtol=1e-6, atol=1e-8, err_msg=method)


@pytest.mark.parametrize("shapes", [(0.3, 0.4), (-0.3, -0.2), (0.02, 0.3), (1.5, 0.0)])
def test_kappa4_entropy_in_shapes_that_move_the_support(shapes):
    entropy, p = scipy.stats.kappa4.entropy, np.array(shapes)
    want = [(entropy(*(p + s)) - entropy(*(p - s))) / 2e-3 for s in 1e-3 * np.eye(2)]
    slope = grad(lambda p: entropy(*p))
    np.testing.assert_allclose(slope(p), want, rtol=1e-5)
    np.testing.assert_allclose(vmap(slope)(np.array([p, p + 0.01])), [slope(p), slope(p + 0.01)], rtol=1e-12)


@pytest.mark.parametrize("skew", [0.1, -1.7, 2.3])
def test_pearson3_entropy_whose_density_may_be_infinite_at_its_end(skew):
    alpha = 4 / skew**2  # that of the gamma distribution, scaled
    want = -2 * alpha / skew * (1 + (1 - alpha) * scipy.special.polygamma(1, alpha)) + 1 / skew
    assert grad(scipy.stats.pearson3.entropy)(skew) == pytest.approx(want, rel=1e-3 if skew == 0.1 else 1e-12)


def test_kappa4_expectation_in_shapes_that_move_the_support():
    def mean(h):  # far more accurate than requested, in half of the time of the default
        return scipy.stats.kappa4.expect(np.sin, args=(h, 0.4), epsabs=1e-6, epsrel=1e-6)

    for h in (0.3, -0.3):
        assert grad(mean)(h) == pytest.approx((mean(h + 1e-4) - mean(h - 1e-4)) / 2e-4, rel=1e-6)


@pytest.mark.filterwarnings("error::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("transform", [grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]])
def test_expectation_where_the_derivative_of_the_density_is_infinite_at_an_end_that_moves(transform):
    mean = lambda c: scipy.stats.genhalflogistic.expect(args=(c,))
    assert transform(mean)(2.0) == pytest.approx((mean(2.0 + 1e-4) - mean(2.0 - 1e-4)) / 2e-4, rel=1e-5)


def test_expectation_where_the_density_jumps_at_an_end_that_moves_with_the_shape():
    """SciPy's density of tukeylambda is 0 at the end itself, and about 1 beside it."""
    mean = lambda a: scipy.stats.tukeylambda.expect(lambda x: np.exp(-x * x), (a,), 0.3, 1.7)
    assert grad(mean)(3.1) == pytest.approx((mean(3.1 + 1e-4) - mean(3.1 - 1e-4)) / 2e-4, rel=1e-6)


@pytest.mark.parametrize(("name", "shapes"), [("ncf", (3.0, 9.5, 1.2)), ("nct", (9.0, 1.2)), ("nct", (5.5, -0.3))])
def test_skewness_and_kurtosis_of_noncentral_distributions(name, shapes):
    p, distribution = np.array(shapes), getattr(scipy.stats, name)
    for moment in "sk":
        of = lambda p, moment=moment: distribution.stats(*p, moments=moment) + 0.0
        value, slope = value_and_grad(of)(p)
        assert value == pytest.approx(of(p), rel=1e-11)
        np.testing.assert_allclose(slope, differences(of, p), rtol=1e-6)
        agree(grad(of), np.stack([p, 1.1 * p]))
        assert np.isnan(value_and_grad(of)(np.full_like(p, 2.0))[0])


@pytest.mark.parametrize(("name", "shapes"), [("gamma", (1.0,)), ("weibull_min", (1.0,)), ("beta", (1.0, 2.0))])
def test_density_at_an_end_where_it_is_finite(name, shapes):
    """Check scale and value at the end itself, and second derivatives in the scale."""
    of = getattr(scipy.stats, name).logpdf
    assert grad(of)(0.0, *shapes) == -1.0
    in_scale = lambda s: of(0.0, *shapes, 0.0, s)
    assert grad(in_scale)(2.0) == -0.5
    assert grad(grad(in_scale))(2.0) == 0.25
    x = np.array([0.0, 0.1, 0.3])
    slopes = vmap(grad(lambda x, s: of(x, *shapes, 0.0, s), 1), in_axes=(0, None))(x, 2.0)
    np.testing.assert_allclose(
        slopes, differences(lambda s: of(x, *shapes, 0.0, s[0]), np.array([2.0]))[:, 0], rtol=1e-8
    )


def test_left_tail_of_skewnorm():
    """Check where the probability is a difference of nearly equal numbers: the slopes have formulas of their own."""
    a, x = 3.0, np.array([-0.4, -1.5, -1.8, -5.0, -np.inf, np.inf])
    for of, sign in ((scipy.stats.skewnorm.cdf, 1), (scipy.stats.skewnorm.sf, -1)):
        slopes = vmap(grad(of, (0, 1)), in_axes=(0, None))(sign * x, sign * a)
        np.testing.assert_allclose(slopes[0], sign * scipy.stats.skewnorm.pdf(x, a), rtol=1e-9)
        in_shape = -np.exp(-(x**2) * (1 + a * a) / 2) / (np.pi * (1 + a * a))
        np.testing.assert_allclose(slopes[1], sign * in_shape, rtol=1e-9)
    with mp.workdps(30):
        want = mp.quad(lambda t: 2 * mp.npdf(t) * mp.ncdf(a * t), np.linspace(-12, -2, 30).tolist())
    assert stats.skewnorm.cdf(-2.0, a) == pytest.approx(float(want), rel=1e-11)
    ends = lambda a: scipy.stats.skewnorm.interval(0.8, a)[1]
    assert grad(ends)(1.3) == pytest.approx((ends(1.3 + 1e-4) - ends(1.3 - 1e-4)) / 2e-4, rel=1e-6)


def test_tail_of_dpareto_lognorm():
    """Far out the survival function is that of a Pareto distribution, ``x**-a * exp(a * u + (a * s)**2 / 2)``."""
    p = np.array([1e20, 0.3, 1.2, 1.5, 2.0])
    slope = grad(lambda p: scipy.stats.dpareto_lognorm.logsf(*p))(p)
    np.testing.assert_allclose(slope[:3], [-1.5e-20, 1.5, 1.5**2 * 1.2], rtol=1e-12)
    x = np.array([-1.0, 0.0, 2.0, np.inf])
    slopes = vmap(grad(lambda x: scipy.stats.dpareto_lognorm.sf(x, *p[1:])))(x)
    np.testing.assert_allclose(slopes, [0.0, 0.0, -scipy.stats.dpareto_lognorm.pdf(2.0, *p[1:]), 0.0], rtol=1e-12)


def mixture(nc, of):
    return mp.nsum(lambda j: mp.exp(-nc / 2) * (nc / 2) ** j / mp.factorial(j) * of(j), [0, mp.inf])


def chndtr(x, df, nc):
    return mixture(nc, lambda j: mp.gammainc(df / 2 + j, 0, x / 2, regularized=True))


def ncfdtr(dfn, dfd, nc, x):
    return mixture(nc, lambda j: mp.betainc(dfn / 2 + j, dfd / 2, 0, dfn * x / (dfn * x + dfd), regularized=True))


def nctdtr(df, nc, t):
    def density(s):
        return 2 * (df / 2) ** (df / 2) / mp.gamma(df / 2) * s ** (df - 1) * mp.exp(-df * s * s / 2)

    return mp.quad(lambda s: mp.ncdf(t * s - nc) * density(s), [0, 0.5, 1, 1.5, 2, 3, 6])


NONCENTRAL = [
    (fsp.chndtr, chndtr, (1.2, 3.0, 0.5)),
    (fsp.chndtr, chndtr, (30.0, 4.4, 3.0)),
    (fsp.ncfdtr, ncfdtr, (3.0, 6.0, 0.5, 1.2)),
    (fsp.ncfdtr, ncfdtr, (4.4, 20.0, 3.0, 5.0)),
    (fsp.nctdtr, nctdtr, (3.0, 0.5, 1.2)),
    (fsp.nctdtr, nctdtr, (4.4, 1.0, -0.7)),
]


@pytest.mark.parametrize(("fun", "exact", "point"), NONCENTRAL)
def test_noncentral_distribution_functions(fun, exact, point):
    for i in range(len(point)):
        rest = list(map(mp.mpf, point))
        want = mp.diff(lambda v, i=i, rest=rest: exact(*rest[:i], v, *rest[i + 1 :]), rest[i])
        assert grad(fun, i)(*point) == pytest.approx(float(want), rel=2e-12), i
    found = hessian(lambda p: fun(*p))(np.array(point))
    np.testing.assert_allclose(found, found.T, rtol=1e-9)
    want = differences(lambda p: float(np.sum(grad(lambda p: fun(*p))(p))), np.array(point), 1e-4)
    np.testing.assert_allclose(found.sum(axis=0), want, rtol=1e-6, atol=1e-9)


INVERSES = [
    (fsp.chndtridf, fsp.chndtr, 1, (3.0, 0.3, 0.7)),
    (fsp.chndtrinc, fsp.chndtr, 2, (6.0, 2.3, 0.4)),
    (fsp.ncfdtridfd, fsp.ncfdtr, 1, (2.3, 0.5, 0.7, 1.3)),
    (fsp.ncfdtridfn, fsp.ncfdtr, 0, (0.61, 6.0, 0.5, 1.2)),
    (fsp.ncfdtrinc, fsp.ncfdtr, 2, (2.3, 6.0, 0.5, 1.5)),
    (fsp.nctdtridf, fsp.nctdtr, 0, (0.6, 1.0, 1.4)),
    (fsp.nctdtrinc, fsp.nctdtr, 1, (3.0, 0.5, 1.5)),
]


@pytest.mark.parametrize(("inverse", "fun", "place", "point"), INVERSES)
def test_noncentral_inverses_by_search(inverse, fun, place, point):
    ans = inverse(*point)
    there = (*point[:place], ans, *point[place + 1 :])
    assert fun(*there) == pytest.approx(point[place], rel=1e-5)
    for i in range(len(point)):
        want = 1 / grad(fun, place)(*there) * (1.0 if i == place else -grad(fun, i)(*there))
        assert grad(inverse, i)(*point) == pytest.approx(want, rel=1e-9), i


def test_moments_beside_one_that_does_not_exist():
    """The third moment of this distribution does not exist."""
    slope = grad(scipy.stats.burr.mean, (0, 1))(3.0, 1.0)
    assert slope[1] == pytest.approx(differences(lambda d: scipy.stats.burr.mean(3.0, d), 1.0), rel=1e-7)
    assert grad(scipy.stats.fisk.var)(3.0) == pytest.approx(differences(scipy.stats.fisk.var, 3.0), rel=1e-7)
    assert np.isfinite(slope[0])


def test_zero_concentration():
    """The scaled Bessel function of these densities has a kink there, the densities have none."""
    logpdf = lambda k: scipy.stats.vonmises.logpdf(0.7, k) + scipy.stats.rice.logpdf(0.7, k)
    np.testing.assert_allclose(grad(logpdf)(0.0), np.cos(0.7), rtol=1e-14)
    np.testing.assert_allclose(grad(grad(logpdf))(0.0), -0.5 + 0.5 * 0.7**2 - 1, rtol=1e-14)
    assert grad(scipy.stats.vonmises.entropy)(0.0) == 0


def test_zero_noncentrality():
    assert grad(scipy.stats.ncx2.cdf, 2)(2.0, 3.0, 0.0) == pytest.approx(-scipy.stats.chi2.pdf(2.0, 5.0), rel=1e-12)
    log_slope = grad(scipy.stats.ncx2.logpdf, 2)(2.0, 3.0, 0.0)
    assert log_slope == pytest.approx((2.0 / 3.0 - 1) / 2, rel=1e-12)
    curve = scipy.stats.ncx2.logpdf(2.0, 3.0, [1e-3, 2e-3, 3e-3])
    want = (curve[0] - 2 * curve[1] + curve[2]) / 1e-6
    assert grad(grad(scipy.stats.ncx2.logpdf, 2), 2)(2.0, 3.0, 2e-3) == pytest.approx(want, rel=1e-3)
    assert grad(grad(scipy.stats.ncx2.logpdf, 2), 2)(2.0, 3.0, 0.0) == pytest.approx(want, rel=1e-2)
    assert np.isfinite(grad(fsp.ncfdtr, 2)(3.0, 5.0, 0.0, 1.2))


COMPILED = {
    "geninvgauss": (2.3, 1.5),
    "landau": (),
    "nct": (14.0, 0.24),
    "ncx2": (3.5, 1.2),
    "ncf": (27.0, 27.0, 0.4),
    "cosine": (),
    "rice": (0.7,),
    "vonmises_line": (2.3,),
    "wald": (),
}
OF_STATISTICS = {"ksone": (10,), "kstwo": (10,), "kstwobign": ()}


def test_compiled_distributions():
    for name, args in COMPILED.items():
        distribution = getattr(scipy.stats, name)
        for method in ("logpdf", "cdf", "logsf", "ppf", "isf"):
            of, x = (
                getattr(distribution, method),
                0.3 if method in ("ppf", "isf") else float(distribution.median(*args)),
            )
            p = np.array([x, *args])

            def f(p, of=of):
                return of(*p)

            got, want = grad(f)(p), differences(lambda p, f=f: float(f(p)), p, 1e-5)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-8, err_msg=f"{name}.{method}")


def test_distributions_of_test_statistics():
    for name, args in OF_STATISTICS.items():
        distribution = getattr(scipy.stats, name)
        for method in ("pdf", "logcdf", "sf", "ppf", "isf"):
            of, x = (
                getattr(distribution, method),
                0.3 if method in ("ppf", "isf") else float(distribution.ppf(0.6, *args)),
            )
            want = differences(lambda x, of=of, args=args: float(of(x[0], *args)), np.array([x]), 1e-5)[0]
            assert grad(of)(x, *args) == pytest.approx(want, rel=1e-5), (name, method)
    with pytest.raises(NotDifferentiableError, match="whole number"):
        grad(scipy.stats.ksone.sf, 1)(0.3, 10.0)


NORMAL = scipy.stats.multivariate_normal


@pytest.mark.parametrize(
    "f",
    [
        lambda p: NORMAL.cdf(p[:1], [0.1], [[p[2]]]),
        lambda p: NORMAL.cdf([p[0], np.inf], [0.1, 0.2], [[p[1], p[2]], [p[2], 2.0]]),
        lambda p: NORMAL.cdf(p[:2], [0.1, 0.2], [[1.0 + p[0], p[2]], [p[2], 2.0]], lower_limit=[-1.0, p[0] - 0.5]),
        lambda p: NORMAL.logcdf([p[:2], p[1:]], None, [[1.0, p[2]], [p[2], 2.0 + p[1]]]).sum(),
    ],
    ids=["one variable", "one bound", "four bounds", "several points"],
)
def test_bivariate_normal_probabilities_between_bounds(f):
    p = np.array([0.6, 1.4, 0.3])
    np.testing.assert_allclose(grad(f)(p), differences(f, p), rtol=1e-9, atol=1e-11)
    agree(grad(f), np.stack([p, 1.1 * p]))


def test_higher_dimensional_normal_cdf_raises():
    with pytest.raises(ConversionError, match="compiled code"):
        grad(lambda x: NORMAL.cdf(x, None, np.eye(3)))(np.ones(3))


def test_bivariate_normal_cdf():
    def f(p):
        return scipy.stats.multivariate_normal.cdf(p[:2], [0.0, 0.1], [[p[3], p[2]], [p[2], 2.0]])

    p = np.array([0.6, 1.4, 0.3, 1.1])
    np.testing.assert_allclose(grad(f)(p), differences(f, p, 1e-5), rtol=1e-7)
    np.testing.assert_allclose(
        hessian(f)(p), [differences(lambda q, i=i: grad(f)(q)[i], p, 1e-5) for i in range(4)], rtol=1e-6, atol=1e-8
    )


FREQUENCIES = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 2.0], [0.1, 0.0, 0.7]])
OTHERS = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 4.0], [2.0, 2.0, 1.0]])


def test_entropy_depends_on_its_base():
    f = lambda base: scipy.stats.entropy(FREQUENCIES, base=base, axis=None)
    assert grad(f)(2.0) == pytest.approx((f(2.001) - f(1.999)) / 0.002, rel=1e-6)
    assert vmap(grad(f))(np.array([2.0, 3.0]))[0] == grad(f)(2.0)


@pytest.mark.parametrize("other", [None, OTHERS, OTHERS[0]], ids=["alone", "two", "broadcast"])
@pytest.mark.parametrize(
    "options", [{}, {"axis": 1}, {"axis": -1, "base": 3.0}, {"keepdims": True}, {"nan_policy": "omit"}], ids=str
)
def test_entropy_of_zero_counts(other, options):
    entropy = lambda p, q: scipy.stats.entropy(p, q, **options)
    value, pullback = vjp(lambda p: entropy(p, other), FREQUENCIES)
    np.testing.assert_allclose(value, entropy(FREQUENCIES, other), rtol=1e-13, atol=1e-15)
    (slope,) = pullback(np.ones(value.shape))
    assert (slope[FREQUENCIES == 0] == 0).all()
    moved = np.where(FREQUENCIES > 0, np.random.default_rng(0).normal(size=FREQUENCIES.shape), 0.0)
    h = 1e-6
    around = np.sum(entropy(FREQUENCIES + h * moved, other) - entropy(FREQUENCIES - h * moved, other)) / (2 * h)
    np.testing.assert_allclose(np.sum(slope * moved), around, rtol=1e-8)
    np.testing.assert_allclose(jvp(lambda p: entropy(p, other), (FREQUENCIES,), (moved,))[1].sum(), around, rtol=1e-8)


def test_entropy_without_missing_counts():
    x, holes = np.array([1.0, 3.0]), np.array([1.0, np.nan, 3.0])
    omit = grad(lambda x: scipy.stats.entropy(x, nan_policy="omit"))(holes)
    np.testing.assert_allclose(omit, np.insert(grad(scipy.stats.entropy)(x), 1, 0.0))
    with pytest.raises(ValueError, match="contains nan"):
        grad(lambda x: scipy.stats.entropy(x, nan_policy="raise"))(holes)
    np.testing.assert_allclose(
        vmap(grad(scipy.stats.entropy))(FREQUENCIES), [grad(scipy.stats.entropy)(p) for p in FREQUENCIES]
    )
    np.testing.assert_allclose(hessian(scipy.stats.entropy)(x), jacfwd(grad(scipy.stats.entropy))(x))


@pytest.mark.parametrize(("name", "args"), [("nbinom", (3.5, 0.3)), ("bernoulli", (0.3,)), ("geom", (0.3,))])
@pytest.mark.parametrize("moment", range(4))
def test_moments_of_discrete_distributions(name, args, moment):
    fun = lambda *args: getattr(scipy.stats, name).stats(*args, moments="mvsk")[moment]
    for i, x in enumerate(args):
        vary = lambda x, i=i: fun(*args[:i], x, *args[i + 1 :])
        assert grad(vary)(x) == pytest.approx(differences(vary, x), rel=1e-6, abs=1e-9)


def test_median_of_a_symmetric_distribution_does_not_depend_on_its_shape():
    assert grad(lambda a: scipy.stats.dgamma.ppf(0.5, a))(1.3) == 0.0


@pytest.mark.parametrize("q", [0.3, 0.5])
def test_gennorm_quantiles_around_the_centre(q):
    for distribution in (scipy.stats.gennorm, stats.gennorm):
        for i in (0, 1):
            slope = grad(distribution.ppf, i)
            near = differences(lambda v, i=i: scipy.stats.gennorm.ppf(*((v, 2.3) if i == 0 else (q, v))), (q, 2.3)[i])
            assert slope(q, 2.3) == pytest.approx(near, rel=1e-5, abs=1e-8)
            assert np.isfinite(grad(slope, i)(q, 2.3))


def mp_scaled_exp1(x):
    return x * mp.exp(x) * mp.e1(x)


@pytest.mark.parametrize("x", [0.02, 0.7, 4.0, 300.0])
def test_entropies_with_exponential_integrals(x):
    formulas = {
        "gompertz": lambda c: 1 - mp.log(c) - mp_scaled_exp1(c) / c,
        "invgauss": lambda m: (1 + mp.log(2 * mp.pi) + 3 * mp.log(m)) / 2 - 1.5 * mp_scaled_exp1(2 / m) * m / 2,
    }
    for name, formula in formulas.items():
        slope = grad(getattr(scipy.stats, name).entropy)
        with mp.workdps(40):
            first, second = (float(mp.diff(formula, mp.mpf(x), n)) for n in (1, 2))
        np.testing.assert_allclose([slope(x), grad(slope)(x)], [first, second], rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(vmap(slope)(np.array([x, 2 * x])), [slope(x), slope(2 * x)], err_msg=name)


@pytest.mark.parametrize(
    ("name", "method", "shapes"),
    [
        ("dweibull", "cdf", (2.07,)),
        ("exponpow", "logcdf", (2.7,)),
        ("kappa4", "pdf", (0.1, 0.0)),
        ("kstwobign", "logpdf", ()),
        ("ncx2", "logpdf", (21.0, 1.06)),
        ("alpha", "ppf", (3.57,)),
        ("betaprime", "isf", (5.0, 6.0)),
    ],
)
def test_infinite_elements_beside_others(name, method, shapes):
    """Check that elements at infinity, or as far out as that, are constants, and add no NaN to those beside them."""
    distribution = getattr(scipy.stats, name)
    x = np.array([0.0, 0.3, 1.0] if method in ("ppf", "isf") else [*distribution.ppf([0.3], *shapes), 1e300, np.inf])

    def total(p):
        found = getattr(distribution, method)(x, *p)
        return np.sum(np.where(np.isfinite(found) & (np.abs(found) < 1e99), found, 0.0))

    p = np.array([*shapes, 0.0, 1.7])
    np.testing.assert_allclose(grad(total)(p), differences(total, p), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jacfwd(total)(p), grad(total)(p), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "shapes"), [("ncf", (27.0, 9.0, 0.4)), ("nct", (14.0, 0.24))])
@pytest.mark.parametrize("method", ["mean", "var"])
def test_moments_of_noncentral_distributions(name, shapes, method):
    f, p = (lambda p: getattr(getattr(scipy.stats, name), method)(*p)), np.array(shapes)
    assert jvp(f, (p,), (p,))[0] == pytest.approx(f(p), rel=1e-12)
    np.testing.assert_allclose(grad(f)(p), differences(f, p), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize("name", ["dgamma", "dweibull"])
def test_median_of_two_sided_distributions_has_the_slope_of_both_sides(name, method):
    slope = grad(lambda q: getattr(getattr(scipy.stats, name), method)(q, 1.0))
    assert slope(0.5) == pytest.approx(2.0 if method == "ppf" else -2.0)


CENTRED = {"laplace": (), "gennorm": (0.9,), "laplace_asymmetric": (1.3,), "skewcauchy": (0.4,), "loglaplace": (1.7,)}


@pytest.mark.parametrize("name", [*CENTRED, "dgamma", "dweibull"])
def test_probabilities_at_the_centre_have_the_density_as_derivative(name):
    """The density has a kink there; the probabilities have none."""
    shapes = CENTRED.get(name, (1.0,))
    law = getattr(scipy.stats, name)
    x = 1.0 if name == "loglaplace" else 0.0
    density, below, above = law.pdf(x, *shapes), law.cdf(x, *shapes), law.sf(x, *shapes)
    wanted = {"cdf": density, "sf": -density, "logcdf": density / below, "logsf": -density / above}
    for method, want in wanted.items():
        fun = lambda x, method=method: getattr(law, method)(x, *shapes)
        np.testing.assert_allclose(grad(fun)(x), want, rtol=1e-12)
        np.testing.assert_allclose(jvp(fun, (x,), (1.0,))[1], want, rtol=1e-12)
        np.testing.assert_allclose(vmap(grad(fun))(np.array([x, 2.0]))[0], want, rtol=1e-12)


@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf", "pdf", "logpdf"])
@pytest.mark.parametrize("name", ["argus", "erlang", "cosine", "norm", "laplace"])
def test_points_in_tuples_and_lists(name, method):
    shapes = {"argus": (1.0,), "erlang": (10,)}.get(name, ())
    call = getattr(getattr(scipy.stats, name), method)
    with np.errstate(divide="ignore"):
        for end in (1.0, np.inf, 0.5):
            want = jvp(lambda t: call(np.stack([t, end]), *shapes), (0.3,), (1.0,))  # noqa: B023
            for kind in (tuple, list):
                value, tangent = jvp(lambda t: call(kind([t, end]), *shapes), (0.3,), (1.0,))  # noqa: B023
                np.testing.assert_allclose(value, call(kind([0.3, end]), *shapes), rtol=1e-13)
                np.testing.assert_allclose(tangent, want[1], rtol=1e-13)


@pytest.mark.parametrize("p", [0.4, 2.3])
def test_geninvgauss_at_the_end_of_its_support(p):
    for x in (0.0, np.array([0.0, 0.5])):
        value, pullback = vjp(lambda x, p: scipy.stats.geninvgauss.pdf(x, p, 1.5), x, p)
        np.testing.assert_allclose(value, scipy.stats.geninvgauss.pdf(x, p, 1.5), rtol=1e-13)
        of_x, of_p = pullback(np.ones_like(value)[()])
        assert np.ravel(of_x)[0] == 0.0
        assert np.isfinite(of_p)
