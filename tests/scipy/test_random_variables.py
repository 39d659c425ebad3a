"""SciPy's random variables, such as ``stats.Normal(mu=x)``: transformed, truncated, and outside of their supports."""

import numpy as np
import pytest
import scipy
import scipy.stats as st
from helpers import at_least, differences
from scipy.optimize import elementwise

from funcgrad import grad, jvp, vmap

pytestmark = pytest.mark.filterwarnings("ignore")  # SciPy's code warns of logarithms of 0
Gamma = st.make_distribution(st.gamma)
POINTS = np.array([-0.1, 0.3, 0.0, 1.0, 3.0, -np.inf, np.inf])
PROBABILITIES = np.array([0.0, 0.3, 1.0])


def finite_sum(x):
    return np.sum(np.where(np.isfinite(x), x, 0.0))


#: Random variables with a parameter.
VARIABLES = {
    "normal": (lambda a: st.Normal(mu=0.2, sigma=a), 1.3),
    "uniform": (lambda a: st.Uniform(a=0, b=a), 1.3),
    "moved": (lambda a: Gamma(a=2.5) * a + 0.3, 1.3),
    "mirrored": (lambda a: Gamma(a=2.5) * a + 0.3, -1.3),
    "truncated": (lambda a: st.truncate(st.Normal(mu=0.1, sigma=a), -1, 1.5), 1.3),
    "half truncated": (lambda a: st.truncate(st.Normal(mu=0.1, sigma=0.8), ub=a), 1.3),
    "moved and truncated": (lambda a: st.truncate(st.Normal() * a + 0.3, lb=-0.5), 1.3),
    "exponential": (lambda a: st.exp(st.Normal(mu=0.1, sigma=a)), 1.3),
    "logarithm": (lambda a: st.log(Gamma(a=a)), 1.3),
    "reciprocal": (lambda a: 1 / Gamma(a=a), 2.5),
    "folded": (lambda a: abs(st.Normal(mu=0.1, sigma=a)), 1.3),
    "folded uniform": (lambda a: abs(st.Uniform(a=-0.5, b=a)), 1.3),
    "order statistic": (lambda a: st.order_statistic(st.Normal(mu=0.1, sigma=a), r=1, n=3), 1.3),
    "mixture": (lambda a: st.Mixture([st.Normal(sigma=a), st.Normal(mu=a)], weights=[0.3, 0.7]), 1.3),
}
if at_least(scipy, "1.16.0"):  # SciPy 1.15 calls one of its functions with too many arguments
    VARIABLES["square"] = (lambda a: Gamma(a=a) ** 2, 1.3)


def check(f, x, order=2, rtol=1e-6):
    slope = differences(f, x)
    np.testing.assert_allclose([grad(f)(x), jvp(f, (x,), (1.0,))[1]], slope, rtol, 1e-8)
    if order == 2:
        np.testing.assert_allclose(grad(grad(f))(x), differences(grad(f), x), rtol, 1e-7)


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "logcdf", "ccdf", "logccdf"])
@pytest.mark.parametrize("name", VARIABLES)
def test_inside_and_outside_of_support(name, method):
    make, at = VARIABLES[name]
    given = getattr(make(at), method)(POINTS)
    points = POINTS[~np.isnan(given)]  # SciPy's gamma density is NaN at infinity
    order = 2 if method in ("logpdf", "cdf", "ccdf") else 1  # the others are functions of these
    check(lambda a: finite_sum(getattr(make(a), method)(points)), at, order)
    check(lambda x: getattr(make(at), method)(x), float(make(at).icdf(0.4)), order)


@pytest.mark.parametrize("method", ["icdf", "iccdf"])
@pytest.mark.parametrize("name", [name for name in VARIABLES if name != "mixture"])
def test_quantiles_at_ends_of_support(name, method):
    make, at = VARIABLES[name]
    check(lambda a: finite_sum(getattr(make(a), method)(PROBABILITIES)), at)


def test_quantiles_found_by_search():
    make = VARIABLES["square" if "square" in VARIABLES else "logarithm"][0]
    check(lambda a: make(a).icdf(0.5), 1.3)
    check(lambda p: make(1.3).ilogccdf(p), -0.3)
    check(lambda a: VARIABLES["mixture"][0](a).icdf(0.3), 1.3)
    slope = grad(lambda a: make(a).icdf(0.5))
    np.testing.assert_allclose(vmap(slope)(np.array([1.3, 1.5])), [slope(1.3), slope(1.5)], 1e-9)
    slope = grad(lambda a: make(np.stack([a, -a])).icdf(0.5)[0])  # the other shape is not allowed
    np.testing.assert_allclose(slope(1.3), grad(lambda a: make(a).icdf(0.5))(1.3))


ENTROPIES = {"normal": lambda p: st.Normal(sigma=p)}
ENTROPIES |= {"counts": lambda p: st.Binomial(n=10, p=p)} if hasattr(st, "Binomial") else {}  # missing in SciPy 1.15


@pytest.mark.parametrize("name", ENTROPIES)
def test_entropy(name):
    check(lambda p: ENTROPIES[name](p).entropy(), 0.4)


def test_brackets_found_by_search():
    """Check that the ends of brackets are constants: the root has the derivative of its equation."""

    def root(a):
        bracket = elementwise.bracket_root(lambda x: x**3 - a, 0.0).bracket
        return elementwise.find_root(lambda x: x**3 - a, bracket).x

    def minimum(a):
        bracket = elementwise.bracket_minimum(lambda x: (x**2 - a) ** 2, 1.0).bracket
        return elementwise.find_minimum(lambda x: (x**2 - a) ** 2, bracket).x

    for f in (root, minimum):
        check(f, 3.0)
        np.testing.assert_allclose(vmap(grad(f))(np.array([2.0, 3.0])), [grad(f)(2.0), grad(f)(3.0)])


def test_modes_have_the_derivative_of_the_maximum():
    mode, s = lambda s: st.exp(st.Normal(mu=0.2, sigma=s)).mode(), 0.5
    exact = np.exp(0.2 - s * s)  # the mode of the lognormal distribution
    np.testing.assert_allclose([mode(s), grad(mode)(s)], [exact, -2 * s * exact], 1e-6)
    np.testing.assert_allclose(grad(grad(mode))(s), (4 * s * s - 2) * exact, 1e-6)


@pytest.mark.parametrize("moment", ["mean", "variance", "skewness", "entropy", "median"])
@pytest.mark.parametrize(
    "name", [n for n in ("exponential", "half truncated", "square", "truncated") if n in VARIABLES]
)
def test_moments(name, moment):
    make, at = VARIABLES[name]
    at = 0.4 if name == "exponential" else at
    check(lambda a: getattr(make(a), moment)(), at, order=1)
