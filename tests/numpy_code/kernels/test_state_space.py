"""Likelihoods of statsmodels' state-space models, as they stand: its compiled Kalman filter has a counterpart here."""

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.tsa.arima.model import ARIMA

from funcgrad import grad, hessian, jacfwd, jvp, value_and_grad, vmap
from funcgrad.errors import ConversionError

RNG = np.random.default_rng(0)
STEPS = 24
WALK = np.cumsum(RNG.normal(size=STEPS))
GAPS = np.where(np.isin(np.arange(STEPS), [3, 10, 11]), np.nan, WALK)
TWO = np.column_stack([WALK, np.roll(WALK, 3) + RNG.normal(size=STEPS)])
TWO_GAPS = np.where(np.arange(2 * STEPS).reshape(STEPS, 2) % 11 == 4, np.nan, TWO)
OTHER = RNG.normal(size=STEPS)
tsa = sm.tsa
MODELS = {
    "arma": lambda: ARIMA(WALK, order=(1, 0, 1)),
    "arima": lambda: ARIMA(WALK, order=(1, 1, 1)),
    "seasons and gaps": lambda: tsa.SARIMAX(GAPS, order=(1, 0, 0), seasonal_order=(1, 0, 0, 4)),
    "differences": lambda: tsa.SARIMAX(GAPS, order=(1, 1, 1), seasonal_order=(0, 1, 1, 4)),
    "concentrated scale": lambda: tsa.SARIMAX(GAPS, order=(2, 0, 0), concentrate_scale=True),
    "regressors": lambda: tsa.SARIMAX(WALK, exog=OTHER, order=(1, 0, 0)),
    "parameters that vary": lambda: tsa.SARIMAX(
        WALK, exog=OTHER, order=(1, 0, 0), mle_regression=False, time_varying_regression=True
    ),
    "hamilton": lambda: tsa.SARIMAX(WALK, order=(1, 0, 0), hamilton_representation=True),
    "trend and seasons": lambda: tsa.UnobservedComponents(WALK, "lltrend", seasonal=4),
    "cycle": lambda: tsa.UnobservedComponents(
        WALK, "rwalk", cycle=True, stochastic_cycle=True, damped_cycle=True, cycle_period_bounds=(2, 10)
    ),
    "several series": lambda: tsa.VARMAX(TWO, order=(1, 0)),
    "factors and gaps": lambda: tsa.DynamicFactor(TWO_GAPS, k_factors=1, factor_order=1),
    "smoothing": lambda: tsa.statespace.ExponentialSmoothing(WALK, trend=True),
}
pytestmark = pytest.mark.filterwarnings("ignore")  # of statsmodels, about what it chooses to begin with


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_gradient_matches_complex_step(make):
    model = make()
    params = np.asarray(model.start_params) * 0.9 + 0.02
    value, gradient = value_and_grad(model.loglike)(params)
    np.testing.assert_allclose(value, model.loglike(params), rtol=1e-10)
    exact = model.score(params, approx_complex_step=True)
    np.testing.assert_allclose(gradient, exact, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", ["seasons and gaps", "concentrated scale", "several series"])
def test_loglikeobs_second_derivatives_and_batches(name):
    model = MODELS[name]()
    params = np.asarray(model.start_params) * 0.9 + 0.02
    exact = model.score_obs(params, approx_complex_step=True)
    np.testing.assert_allclose(jacfwd(model.loglikeobs)(params), exact, rtol=1e-7, atol=1e-6)
    step = 1e-5
    moved = [[grad(model.loglike)(params + sign * step * e) for sign in (1, -1)] for e in np.eye(len(params))]
    differences = [(up - down) / (2 * step) for up, down in moved]
    np.testing.assert_allclose(hessian(model.loglike)(params), differences, rtol=1e-5, atol=1e-5)
    batch = np.stack([params, params * 0.95])
    np.testing.assert_allclose(
        vmap(grad(model.loglike))(batch), [grad(model.loglike)(row) for row in batch], rtol=1e-9, atol=1e-9
    )


def test_model_made_inside_function():
    def loglike(scale):
        model = sm.tsa.SARIMAX(WALK, order=(1, 0, 0))
        return model.loglike(np.array([0.5, scale]))

    step = 1e-6
    expected = (loglike(1.2 + step) - loglike(1.2 - step)) / (2 * step)
    np.testing.assert_allclose(grad(loglike)(1.2), expected, rtol=1e-7)


def test_exact_diffuse_initialization_raises():
    model = sm.tsa.UnobservedComponents(WALK, "llevel", use_exact_diffuse=True)
    with pytest.raises(ConversionError, match=r"exactly diffuse.*Use the initialization 'approximate_diffuse'"):
        grad(model.loglike)(np.array([1.0, 1.0]))
    assert np.isfinite(model.loglike(np.array([1.0, 1.0])))


def test_other_filter_results_raise():
    model = sm.tsa.SARIMAX(WALK, order=(1, 0, 0))
    with pytest.raises(ConversionError, match=r"only the likelihood is there.*Call loglike or loglikeobs"):
        grad(lambda params: model.filter(params).llf)(np.array([0.5, 1.2]))
    assert np.isfinite(model.filter(np.array([0.5, 1.2])).llf)


@pytest.mark.parametrize("name", ["arima", "parameters that vary", "trend and seasons", "several series"])
def test_derivatives_of_scores_by_complex_steps(name):
    """The filter of complex matrices follows the phase of determinants, and no transposition conjugates."""
    model = MODELS[name]()
    params = np.asarray(model.start_params) * 0.9 + 0.02
    score = lambda p: model.score(p, approx_complex_step=True)
    value, slope = jvp(score, (params,), (params,))
    np.testing.assert_allclose(value, score(params), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(slope, hessian(model.loglike)(params) @ params, rtol=1e-6, atol=1e-6)
