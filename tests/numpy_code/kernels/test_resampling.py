"""Resampling with statistics of one sample: draws are constants, the result has the derivative of the statistic."""

import numpy as np
import pytest
import scipy.stats
from helpers import differences

from funcgrad import grad, jvp, vmap

X = np.array([1.0, 2.0, 4.0, 3.0, 2.5, 0.5])
OPTIONS = {"n_resamples": 60, "method": "percentile"}


def statistic(v):
    return np.mean(v) ** 2


def generator():
    return np.random.default_rng(0)


RESULTS = {
    "bootstrap": lambda x: scipy.stats.bootstrap((x,), statistic, rng=generator(), **OPTIONS).standard_error,
    "bootstrap, not vectorized": lambda x: (
        scipy.stats.bootstrap(
            (x,), lambda v, axis=None: statistic(v), vectorized=False, rng=generator(), **OPTIONS
        ).confidence_interval.low
    ),
    "bootstrap, vectorized": lambda x: (
        scipy.stats.bootstrap(
            (x,), lambda v, axis: np.mean(v, axis=axis) ** 2, rng=generator(), **OPTIONS
        ).standard_error
    ),
    "permutation_test": lambda x: (
        scipy.stats.permutation_test(
            (x[:3], x[3:]), lambda a, b: np.mean(a) - np.mean(b) ** 2, rng=generator()
        ).statistic
    ),
    "null distribution": lambda x: scipy.stats.permutation_test(
        (x[:2], x[2:]), lambda a, b: np.mean(a) - np.mean(b) ** 2, rng=generator()
    ).null_distribution[3],
    "monte_carlo_test": lambda x: scipy.stats.monte_carlo_test(x, generator().normal, np.var, n_resamples=9).statistic,
}


@pytest.mark.parametrize("name", RESULTS)
def test_derivatives_in_the_sample(name):
    f = RESULTS[name]
    slope = differences(f, X)
    np.testing.assert_allclose(grad(f)(X), slope, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(jvp(f, (X,), (X,))[1], slope @ X, rtol=1e-7)
    bend = differences(lambda h: grad(f)(X + h * X), 0.0)
    np.testing.assert_allclose(jvp(grad(f), (X,), (X,))[1], bend, rtol=1e-5, atol=1e-7)
    rows = np.stack([X, 1.1 * X])
    np.testing.assert_allclose(vmap(grad(f))(rows)[0], slope, rtol=1e-7, atol=1e-10)


def test_errors_of_scipy():
    with pytest.raises(TypeError):
        grad(lambda x: scipy.stats.bootstrap((x,), 3.0, rng=generator()).standard_error)(X)
