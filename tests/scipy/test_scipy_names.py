"""SciPy's public functions, unchanged, one by one: derivatives in both modes against differences, or an error."""

import importlib

import numpy as np
import pytest
import scipy.stats
import scipy_samples
from helpers import at_least, differences
from scipy.stats._distr_params import distcont

from funcgrad import grad, jvp, vmap
from funcgrad.errors import FuncgradError, NoRuleError

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.array([0.62, 1.41, 0.93, 1.77])
SAMPLES = [
    (module, name)
    for module, table in scipy_samples.TABLE.items()
    for name, sample in table.items()
    if sample is not None and hasattr(importlib.import_module(module), name)
]
REFUSED = [(module, name) for module, names in scipy_samples.REFUSED.items() for name in names]
if not at_least(scipy, "1.16.0"):  # older versions call numpy.mintypecode, which reads the elements
    REFUSED += [("scipy.signal", "lp2bp"), ("scipy.signal", "lp2bs")]
DENSITIES = {name: args for name, args in distcont if isinstance(name, str)}


def of(module, name):
    """Return a function that makes a number of the sample's result."""
    sample, home = scipy_samples.TABLE[module][name], importlib.import_module(module)

    def f(x):
        out = np.ravel(np.asarray(sample(home, x)))
        return np.sum(np.real(out) * np.cos(np.arange(out.size)))

    return f


def check(f, x, rtol):
    slope = grad(f)(x)
    np.testing.assert_allclose(slope, differences(f, x, 5e-6), rtol=rtol, atol=1e-6)
    direction = np.cos(np.arange(float(x.size)))
    np.testing.assert_allclose(jvp(f, (x,), (direction,))[1], slope @ direction, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("module", "name"), [pair for pair in SAMPLES if pair not in REFUSED])
def test_every_function_is_right_or_raises(module, name):
    check(of(module, name), X, scipy_samples.ROUGH.get(name, 1e-4))


@pytest.mark.parametrize("method", ["hierarchical", "separate"])
def test_siegelslopes_with_repeated_points(method):
    at = np.array([0.0, 0.3, 0.3, 1.1])
    for part in (0, 1):
        check(lambda x, part=part: scipy.stats.siegelslopes(np.sin(x), at, method)[part] * 2.0, X, 1e-4)
        check(lambda x, part=part: scipy.stats.siegelslopes(np.sin(3 * x), x, method)[part], X, 1e-4)
        check(lambda x, part=part: scipy.stats.siegelslopes(x, method=method)[part], X, 1e-4)


@pytest.mark.parametrize(("module", "name"), REFUSED)
def test_unsupported_functions_raise(module, name):
    with pytest.raises((FuncgradError, AttributeError)):
        grad(of(module, name))(X)


def density(name):
    distribution = getattr(scipy.stats, name)
    args = DENSITIES[name]
    return lambda p: distribution.pdf(p[0], *p[1:]), np.array([distribution.ppf(0.37, *args), *args], float)


@pytest.mark.parametrize("name", sorted(set(DENSITIES) - scipy_samples.REFUSED_DENSITIES - scipy_samples.WHOLE))
def test_densities(name):
    f, p = density(name)
    check(f, p, 2e-4)


@pytest.mark.parametrize("name", sorted(scipy_samples.REFUSED_DENSITIES))
def test_unsupported_densities_raise(name):
    f, p = density(name)
    distribution, shapes = getattr(scipy.stats, name), DENSITIES[name]
    for part in (f, lambda p: distribution(*p[1:]).cdf(p[0]), lambda p: distribution.ppf(0.4, *p[1:])):
        for run, given in ((grad(part), p), (vmap(grad(part)), np.stack([p, 1.01 * p]))):
            with pytest.raises(NoRuleError, match=rf"^scipy\.stats\.{name}: SciPy integrates it by compiled .* got"):
                run(given)
    constant = lambda x: distribution.pdf(p[0], *shapes) * x**2  # of constants it is a constant
    assert grad(constant)(3.0) == pytest.approx(6.0 * distribution.pdf(p[0], *shapes), rel=1e-14)


@pytest.mark.parametrize("name", sorted(scipy_samples.WHOLE))
def test_densities_with_integer_parameters(name):
    pdf, args = getattr(scipy.stats, name).pdf, DENSITIES[name]
    check(lambda x: pdf(x[0], *args), density(name)[1][:1], 1e-4)


def test_most_of_scipy_has_derivatives():
    every = len(SAMPLES) + len(DENSITIES)
    refused = len(REFUSED) + len(scipy_samples.REFUSED_DENSITIES)
    assert 1 - refused / every > 0.9
