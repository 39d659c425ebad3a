"""Kalman filter of statsmodels, whose own is compiled: the likelihood of a state-space model with traced matrices.

Durbin and Koopman, *Time Series Analysis by State Space Methods* (2nd ed., 2012): the filter is equation 4.24, the
likelihood 7.2. All of statsmodels' methods to filter compute this likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import ConversionError
from funcgrad.numpy.creation import as_buffer
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import shared_numbers
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.kernels.wrapping import Built, around

#: Attributes of statsmodels' models: matrices and vectors whose last axis is time, of length 1 if they are constant.
_PARTS = ("_design", "_obs_intercept", "_obs_cov", "_transition", "_state_intercept", "_selection", "_state_cov")
#: Bits of ``filter_method`` and value of ``filter_timing`` in statsmodels.
_CONCENTRATED, _BEGINS_FILTERED = 0x100, 1


@around
def _filter_of_models(built: Built, model: Any, *args: Any, complex_step: bool = False, **options: Any) -> Any:
    """Wrap ``KalmanFilter._filter``: a model with traced matrices, or a traced initial state, is filtered here."""
    parts = [getattr(model, name) for name in _PARTS]
    start = _first_state(model, parts, complex_step)
    if not holds_traced((*parts, *start, model.endog)):
        return built(model, *args, complex_step=complex_step, **options)
    if np.any(shared_numbers(start[1])):
        raise ConversionError(
            "statsmodels: an exactly diffuse initial state is for plain matrices only, got traced ones"
            f"{user_line()}. Use the initialization 'approximate_diffuse'."
        )
    return _filtered(model, parts, start[0], start[2])


def _first_state(model: Any, parts: list[Any], complex_step: bool) -> tuple[Any, Any, Any]:
    """Return mean, diffuse covariance and stationary covariance of the first state, complex if a matrix is."""
    n, dtype = model.k_states, fnp.result_type(*parts)
    mean, diffuse, stationary = [as_buffer(np.zeros(shape, dtype)) for shape in (n, (n, n), (n, n))]
    given = {
        "model": model,
        "initial_state_mean": mean,
        "initial_diffuse_state_cov": diffuse,
        "initial_stationary_state_cov": stationary,
    }
    if complex_step:
        _initialize(model.initialization, tuple(range(n)), {**given, "complex_step": True})
    else:
        model.initialization(**given)
    return mean, diffuse, stationary


def _initialize(initialization: Any, states: tuple[int, ...], given: dict[str, Any]) -> None:
    """Initialize these states, block by block: statsmodels' own recursion forgets that a step is complex."""
    if initialization.initialization_type is not None:
        initialization(index=states, **given)
    for places, block in initialization.blocks.items():
        _initialize(block, tuple(np.array(states)[list(places)]), given)


def _log_determinant(x: Any) -> Any:
    """Return the logarithm of the determinant; of complex matrices too, whose phase statsmodels follows."""
    sign, size = fnp.linalg.slogdet(x)
    return size + fnp.log(sign) if x.dtype.kind == "c" else size


class _Found:
    """Results of a filter that statsmodels reads to compute the likelihood."""

    def __init__(self, **found: Any) -> None:
        self.__dict__.update(found)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ConversionError(
            f"statsmodels: of a filter with traced matrices only the likelihood is there, got a request for its {name}"
            f"{user_line()}. Call loglike or loglikeobs."
        )


def _parts_at(parts: list[Any], time: int) -> list[Any]:
    return [part[..., min(time, part.shape[-1] - 1)] for part in parts]


def _filtered(model: Any, parts: list[Any], state: Any, cov: Any) -> _Found:
    """Filter the observations of a model from the mean and the covariance of its first state."""
    concentrated = bool(model.filter_method & _CONCENTRATED)
    observed = fnp.asarray(model.endog)
    missing = np.isnan(np.asarray(shared_numbers(observed)))
    varies = max(part.shape[-1] for part in parts) > 1
    likelihoods, scales = [], []
    for time, gone in enumerate(missing.T):
        if time == 0 or varies:
            design_now, shift, noise, transition, drift, selection, shocks = _parts_at(parts, time)
            shocks = selection @ shocks @ selection.T
        if time == 0 and model.filter_timing == _BEGINS_FILTERED:
            state, cov = transition @ state + drift, transition @ cov @ transition.T + shocks
        seen = np.flatnonzero(~gone)
        likelihood = scale = 0.0
        if len(seen):
            design = design_now[seen]
            error = observed[seen, time] - shift[seen] - design @ state
            gain = cov @ design.T
            error_cov = design @ gain + noise[np.ix_(seen, seen)]
            solved = fnp.linalg.solve(error_cov, fnp.concatenate([error[:, None], gain.T], axis=1))
            scale = error @ solved[:, 0]
            size = len(seen) * math.log(2 * math.pi) + _log_determinant(error_cov)
            likelihood = -0.5 * (size if concentrated else size + scale)
            state, cov = state + gain @ solved[:, 0], cov - gain @ solved[:, 1:]
        likelihoods.append(likelihood)
        scales.append(scale)
        state, cov = transition @ state + drift, transition @ cov @ transition.T + shocks
        cov = (cov + cov.T) / 2
    model._statespaces = {**model._statespaces, model.prefix: _Found(nmissing=missing.sum(0))}
    return _Found(
        loglikelihood=fnp.stack(likelihoods),
        scale=fnp.stack(scales),
        nobs_diffuse=0,
        nobs_kendog_univariate_singular=0,
    )


STATE_SPACE: dict[tuple[str, str], Callable[..., Any]] = {
    ("statsmodels.tsa.statespace.kalman_filter", "KalmanFilter._filter"): _filter_of_models,
}
