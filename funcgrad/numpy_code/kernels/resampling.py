"""Resampling: a statistic of one sample is computed of many samples at once.

SciPy does that for a statistic without the argument ``axis`` itself, but only with NumPy's arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from funcgrad.numpy_code.own import own
from funcgrad.optional import import_scipy


def _takes_axis(statistic: Any) -> bool:
    try:
        return "axis" in signature(statistic).parameters
    except (TypeError, ValueError):  # SciPy raises its own error
        return True


def _with_statistic_of_samples(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of resampling such that ``statistic`` need not take the argument ``axis``."""
    parameters = signature(built)

    @wraps(built)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError:  # an older name of an argument, which a decorator of SciPy takes, or SciPy's own error
            return built(*args, **kwargs)
        given, takes_many = bound.arguments, bound.arguments.get("vectorized")
        if takes_many is False or (takes_many is None and not _takes_axis(given["statistic"])):
            module = import_scipy("stats.bootstrap", "scipy.stats._resampling")
            made = own("numpy_code").run_anywhere(module._vectorize_statistic, (given["statistic"],), {})
            given.update(statistic=made, vectorized=True)
        return built(*bound.args, **bound.kwargs)

    return call


RESAMPLING: dict[tuple[str, str], Callable[[Any], Callable[..., Any]]] = {
    ("scipy.stats._resampling", name): _with_statistic_of_samples
    for name in ("bootstrap", "monte_carlo_test", "permutation_test")
}
