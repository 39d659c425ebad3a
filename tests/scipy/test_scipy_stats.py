"""Functions of ``scipy.stats``, unchanged: value, both modes, second order, ``vmap`` where SciPy uses values."""

import functools
from inspect import signature

import numpy as np
import pytest
import scipy.special
import scipy.stats
from helpers import at_least, differences, traced

from funcgrad import grad, jacfwd, jacobian, jacrev, jvp, value_and_grad, vjp, vmap
from funcgrad.errors import ConcretizationError

pytestmark = pytest.mark.filterwarnings("ignore")  # SciPy's code warns of logarithms of 0, and of small samples
X = np.array([1.0, 1.8, -0.2, 0.5, -1.3, 0.7])
Y = np.array([1.02, 0.33, 0.21, 0.12, 0.74, -0.1])
LIMITS = (-1.25, 1.7)


def check(f, x, rtol=1e-5):
    """Check ``f``, whose result may be an array, against SciPy, differences, and one example after another."""

    def h(x):
        out = f(x)
        return np.sum(out * np.cos(np.arange(np.size(out))).reshape(np.shape(out)))

    value, slope = value_and_grad(h)(x)
    assert value == pytest.approx(h(x), rel=1e-9)
    np.testing.assert_allclose(slope, differences(h, x, 1e-5), rtol=rtol, atol=1e-7)
    direction = np.cos(np.arange(1.0, 1.0 + x.size)).reshape(x.shape)
    np.testing.assert_allclose(jvp(h, (x,), (direction,))[1], np.sum(slope * direction), rtol=1e-6, atol=1e-9)
    second = grad(lambda y: np.sum(grad(h)(y) * direction))(x)
    # the Hessian is symmetric: its product is the change of the gradient along the direction
    batch = np.stack([x + s * 1e-5 * direction for s in (1, -1)])
    ahead, behind = slopes = vmap(grad(h))(batch)
    np.testing.assert_allclose(second, (ahead - behind) / 2e-5, rtol=10 * rtol, atol=1e-6)
    np.testing.assert_allclose(slopes.mean(axis=0), slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(vmap(f)(batch), [f(row) for row in batch], rtol=1e-9, atol=1e-12)


STATISTICS = {
    "tvar": lambda x: scipy.stats.tvar(x, LIMITS),
    "tstd": lambda x: scipy.stats.tstd(x.reshape(2, 3), LIMITS, axis=1),
    "tsem": lambda x: scipy.stats.tsem(x, LIMITS),
    "tmean": lambda x: scipy.stats.tmean(x, LIMITS),
    "tmax": lambda x: scipy.stats.tmax(x, 1.3),
    "sem": lambda x: scipy.stats.sem(np.where(x > 1.5, np.nan, x), nan_policy="omit"),
    "gstd": lambda x: scipy.stats.gstd(np.where(x > 1.5, np.nan, np.exp(x)), nan_policy="omit"),
    "zmap": lambda x: scipy.stats.zmap(x, np.where(x > 1.5, np.nan, x), nan_policy="omit"),
    "zscore": lambda x: np.nan_to_num(scipy.stats.zscore(np.append(x, np.nan), nan_policy="omit")),
    "gzscore": lambda x: np.nan_to_num(scipy.stats.gzscore(np.append(np.exp(x), np.nan), nan_policy="omit")),
    "pearsonr": lambda x: scipy.stats.pearsonr(x, Y)[0],
    "spearmanr": lambda x: scipy.stats.spearmanr(x, Y)[0] * x,
    "rankdata": lambda x: scipy.stats.rankdata(x) * x,
    "mannwhitneyu": lambda x: scipy.stats.mannwhitneyu(x, Y)[0] * x,
    "yeojohnson": lambda x: scipy.stats.yeojohnson(x, 0.7),
    "theilslopes": lambda x: scipy.stats.theilslopes(x, Y)[0],
    "f_oneway": lambda x: scipy.stats.f_oneway(x, Y)[1],
    "fligner": lambda x: scipy.stats.fligner(x[:5], Y[:5])[0] * x,
    "sigmaclip": lambda x: scipy.stats.sigmaclip(x, 1.2, 1.2)[0],
}
if "nan_policy" not in signature(scipy.stats.gstd).parameters:  # before SciPy 1.17
    del STATISTICS["gstd"]


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_statistics(name):
    check(STATISTICS[name], X)


def test_differing_shapes_in_batch_raise():
    batch = np.stack([X, np.where(X == 1.8, 9.0, X)])
    assert scipy.stats.sigmaclip(batch[0], 2.0, 2.0)[0].shape != scipy.stats.sigmaclip(batch[1], 2.0, 2.0)[0].shape
    with pytest.raises(ConcretizationError, match="differs between the 2 examples of a vmap"):
        vmap(lambda x: scipy.stats.sigmaclip(x, 2.0, 2.0)[0])(batch)
    with pytest.raises(ConcretizationError, match="one value was asked for"):
        vmap(lambda x: x if x.sum() > 0 else -x)(np.stack([X, -X]))


MOMENTS = {
    "alpha.entropy": (lambda p: scipy.stats.alpha.entropy(p[0]), [3.57]),  # the density underflows
    "skewnorm.entropy": (lambda p: scipy.stats.skewnorm.entropy(p[0]), [1.2]),  # underflows before its derivative
    "exponpow.mean": (lambda p: scipy.stats.exponpow.mean(p[0]), [2.6]),  # a quantile is infinite
    "skellam.pmf": (lambda p: scipy.stats.skellam.pmf([-2, -1, 0, 1, 3], p[0], p[1]), [1.7, 2.0]),
    "dgamma.cdf": (lambda p: scipy.stats.dgamma.cdf(np.array([-1.5, 0.4, 2.0]), p[0], scale=p[1]), [1.5, 1.2]),
    "dgamma.sf": (lambda p: scipy.stats.dgamma.sf(np.array([-1.5, 0.4, 2.0]), p[0], scale=p[1]), [1.5, 1.2]),
    "dgamma.ppf": (lambda p: scipy.stats.dgamma.ppf(np.array([0.2, 0.6, 0.9]), p[0], scale=p[1]), [1.5, 1.2]),
    "dgamma.isf": (lambda p: scipy.stats.dgamma.isf(np.array([0.2, 0.6, 0.9]), p[0], scale=p[1]), [1.5, 1.2]),
    "skellam.cdf": (lambda p: scipy.stats.skellam.cdf([-2, -1, 0, 1, 3], p[0], p[1]), [1.7, 2.0]),
    "norminvgauss.isf": (
        lambda p: scipy.stats.norminvgauss.isf([[0.3], [0.7]], p[0], p[1], loc=[[0.1], [0.2]]),
        [1.3, 0.5],
    ),
    "halfgennorm.mean": (lambda p: scipy.stats.halfgennorm.mean(p[0], scale=p[1]), [0.67, 1.2]),
    "fisk.mean": (lambda p: scipy.stats.fisk.mean(p[0], p[1]), [3.1, 0.3]),
    "fisk().std": (lambda p: scipy.stats.fisk(p[0], scale=p[1]).std(), [4.3, 1.3]),
    "wrapcauchy.var": (lambda p: scipy.stats.wrapcauchy.var(p[0]), [0.31]),
    "invgamma().interval": (lambda p: scipy.stats.invgamma(p[0]).interval(p[1])[1], [4.07, 0.8]),
    "gamma().moment": (lambda p: scipy.stats.gamma(p[0]).moment(3), [2.0]),
    "genpareto.stats": (lambda p: np.stack(scipy.stats.genpareto.stats(p[0], scale=p[1])), [0.1, 1.2]),
    "beta.nnlf": (lambda p: scipy.stats.beta.nnlf((p[0], p[1], 0.0, 1.0), np.array([0.2, 0.7])), [2.0, 3.0]),
    "gengamma.logsf": (lambda p: scipy.stats.gengamma.logsf(np.array([0.5, 1.2]), 4.4, -3.1, scale=p[0]), [1.1]),
}


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_functions_of_distributions(name):
    f, p = MOMENTS[name]
    check(f, np.array(p), 1e-4)


@pytest.mark.parametrize("name", ["trimmed", "trimmed, of unequal variances", "named distribution"])
def test_functions_limited_to_numpy_arrays(name):
    """Check functions that SciPy refuses for arrays of other libraries."""
    ttest = functools.partial(scipy.stats.ttest_ind, trim=0.2)
    fun = {
        "trimmed": lambda x: ttest(x, np.sin(3 * x)).statistic,
        "trimmed, of unequal variances": lambda x: ttest(x, X**2, equal_var=False).pvalue,
        "named distribution": lambda x: scipy.stats.cramervonmises(x, "norm", (x[0],)).statistic,
    }[name]
    check(fun, X, 1e-6)
    np.testing.assert_allclose(vmap(grad(fun))(np.stack([X, 1.1 * X])), [grad(fun)(X), grad(fun)(1.1 * X)], rtol=1e-12)


def test_entropy_of_piecewise_density():
    p = np.array([1.2, 3.0])
    entropy = lambda p: scipy.stats.crystalball.entropy(*p)
    np.testing.assert_allclose(grad(entropy)(p), differences(entropy, p, 1e-4), rtol=1e-5)


def test_quantiles_of_single_number_are_scalars():
    q = np.array(0.3)
    for fun in (scipy.stats.arcsine.isf, lambda q: scipy.stats.genexpon.ppf(q, 1.0, 2.0, 3.0)):
        assert type(vjp(fun, q)[0]) is type(fun(q)) is np.float64
    limits = lambda x: scipy.stats.bayes_mvs(x)[0].minmax
    assert [type(end) for end in vjp(limits, X)[0]] == [np.float64, np.float64]


def test_expectile_of_sample_with_nan_is_nan():
    fun = lambda x: scipy.stats.expectile(x, 0.3)
    missing = np.where(X == 0.5, np.nan, X)
    assert np.isnan(value_and_grad(fun)(missing)[0])
    np.testing.assert_allclose(vmap(fun)(np.stack([X, missing])), [fun(X), np.nan])


PAIRS = np.stack([X, np.where(np.arange(6) == 2, np.nan, X**2), -X])
WITH_NAN = {
    "skew": lambda x, **k: scipy.stats.skew(x, axis=1, **k),
    "hmean": lambda x, **k: scipy.stats.hmean(np.abs(x), axis=1, **k),
    "tvar": lambda x, **k: scipy.stats.tvar(x, (-2.0, 2.0), axis=1, **k),
    "circmean": lambda x, **k: scipy.stats.circmean(x, axis=1, **k),
    "entropy": lambda x, **k: scipy.stats.entropy(np.abs(x), axis=1, **k),
    "ttest_ind": lambda x, **k: scipy.stats.ttest_ind(x, x**2 + 1.0, axis=1, **k).statistic,
    "ttest_rel": lambda x, **k: scipy.stats.ttest_rel(x, x**2 + 1.0, axis=1, **k).pvalue,
    "levene": lambda x, **k: scipy.stats.levene(x, x**2 + 1.0, axis=1, **k).statistic,
}
if at_least(scipy, "1.17.0"):  # earlier versions have no axis
    WITH_NAN["linregress"] = lambda x, **k: scipy.stats.linregress(x, np.sin(3 * x), axis=1, **k).slope
    WITH_NAN["theilslopes"] = lambda x, **k: scipy.stats.theilslopes(x, np.sin(3 * x), axis=1, **k)[0]


@pytest.mark.parametrize("name", WITH_NAN)
@pytest.mark.parametrize("nan_policy", ["omit", "propagate", "raise"])
def test_nan_policies(name, nan_policy):
    """Check samples along an axis with NaN in different places of each row; some functions have no axis argument."""
    fun = functools.partial(WITH_NAN[name], nan_policy=nan_policy)
    if nan_policy == "raise":
        with pytest.raises(ValueError, match="contains nan"):
            grad(lambda x: np.sum(fun(x)))(PAIRS)
        return
    for options in ({}, {"keepdims": True}):
        np.testing.assert_allclose(traced(functools.partial(fun, **options), PAIRS), fun(PAIRS, **options), rtol=1e-12)
    slopes = jacobian(lambda x: fun(x)[[0, 2] if nan_policy == "propagate" else [0, 1, 2]])(PAIRS)
    numbers = ~np.isnan(PAIRS)

    def of_numbers(values):
        x = PAIRS.copy()
        x[numbers] = values
        return fun(x)

    want = differences(of_numbers, PAIRS[numbers])
    want = want[[0, 2]] if nan_policy == "propagate" else want
    np.testing.assert_allclose(slopes[:, numbers], want, rtol=1e-6, atol=1e-8)


def test_nan_policies_in_batch():
    batch = np.stack([PAIRS, np.nan_to_num(PAIRS, nan=0.3)])
    for name in ("skew", "circmean", "levene"):
        fun = functools.partial(WITH_NAN[name], nan_policy="omit")
        np.testing.assert_allclose(vmap(fun)(batch), [fun(x) for x in batch], rtol=1e-12)
    with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
        vmap(lambda x: WITH_NAN["ttest_ind"](x, nan_policy="omit"))(batch)


def test_divergence_with_both_probabilities_zero():
    """Check that a zero class does not make the gradient NaN in all classes, which normalisation would mix."""
    p, q = np.array([0.2, 0.0, 0.8]), np.array([0.3, 0.0, 0.5])
    slope = grad(lambda q: scipy.stats.entropy(p, q))(q)
    np.testing.assert_allclose(slope[[0, 2]], differences(lambda r: scipy.stats.entropy(p, [r[0], 0, r[1]]), q[[0, 2]]))
    assert slope[1] == pytest.approx(1 / q.sum())
    assert grad(scipy.special.rel_entr, 1)(0.0, 0.0) == 0
    assert grad(scipy.special.kl_div, 1)(0.0, 0.0) == 1


def test_permutations_of_a_random_state():
    def statistic(x):
        mean = lambda a, b, axis: np.mean(a, axis) * np.mean(b, axis)
        given = {"permutation_type": "samples", "n_resamples": 9, "random_state": np.random.RandomState(3)}
        return np.sum(scipy.stats.permutation_test((x[:4], x[4:]), mean, **given).null_distribution)

    x = np.array([0.3, 1.2, -0.5, 2.0, 0.1, 0.7, -1.1, 0.4])
    np.testing.assert_allclose(grad(statistic)(x), differences(statistic, x), rtol=1e-7)


def test_comparison_with_a_single_observation():
    """The variance of one observation is NaN, and unused if both samples have one variance."""
    f = lambda one, several: np.stack(scipy.stats.ttest_ind(one, several))
    one, several = np.array([1.0]), np.array([2.0, 3.0, 5.0])
    slopes = jacrev(f, (0, 1))(one, several)
    np.testing.assert_allclose(slopes[0], differences(lambda x: f(x, several), one), rtol=1e-9)
    np.testing.assert_allclose(slopes[1], differences(lambda x: f(one, x), several), rtol=1e-9)
    curvature = jacfwd(jacrev(f))(one, several)
    np.testing.assert_allclose(curvature, differences(lambda x: jacrev(f)(x, several), one), rtol=1e-9)
    batch = vmap(jacrev(f), (0, None))(np.stack([one, one + 1]), several)
    np.testing.assert_allclose(batch[0], slopes[0], rtol=1e-14)
