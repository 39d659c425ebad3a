"""Parts of SciPy's distributions whose code has no derivative as it is written, though what they compute has one.

Quantiles are scaled bounds where they lie outside, infinite ones too; a choice between two formulas computes both, and
one of them is undefined: a zero times an infinity or a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp


def _special() -> Any:
    return import_module("funcgrad.scipy.special")


def _quantile(name: str) -> Callable[..., Any]:
    """``rv_continuous.ppf`` or ``isf``: the standard distribution's, scaled and moved."""

    def quantile(self: Any, q: Any, *args: Any, **kwds: Any) -> Any:
        parameters, loc, scale = self._parse_args(*args, **kwds)
        q, loc, scale, *shapes = fnp.broadcast_arrays(q, loc, scale, *parameters)
        low, high = self._get_support(*shapes)
        low, high = (high, low) if name == "isf" else (low, high)
        x = getattr(self, f"_{name}")(fnp.where(fnp.logical_and(q > 0, q < 1), q, 0.5), *shapes)
        x = fnp.where(q == 0, low, fnp.where(q == 1, high, x))
        allowed = fnp.logical_and(self._argcheck(*shapes), fnp.logical_and(scale > 0, (q >= 0) & (q <= 1)))
        return fnp.where(allowed, x * scale + loc, self.badvalue)

    return quantile


def _two_sided(below: Callable[[Any, Any], Any], above: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A function that has one formula for negative ``x`` and another for positive."""

    def chosen(self: Any, x: Any, a: Any) -> Any:
        size = fnp.abs(x)
        return fnp.where(x > 0, above(size, a), below(size, a))

    return chosen


def _gamma_quantile(q: Any, a: Any, upper: bool) -> Any:
    """The quantile of the double gamma distribution: that of one side, or its negative."""
    inverse = _special().gammainccinv
    is_high = q > 0.5 if not upper else q < 0.5
    tail = fnp.where(q > 0.5, 1 - q, q)
    x = inverse(a, 2 * tail)
    return fnp.where(is_high, x, -x)


def _log1mexp(x: Any) -> Any:
    """``log(1 - exp(x))`` of negative ``x``."""
    near = x > -math.log(2)
    return fnp.where(near, fnp.log(-fnp.expm1(fnp.where(near, x, -0.5))), fnp.log1p(-fnp.exp(fnp.where(near, -1.0, x))))


def _cosine_cdf(x: Any) -> Any:
    inside = fnp.clip(x, -np.pi, np.pi)
    return (np.pi + inside + fnp.sin(inside)) / (2 * np.pi)


def _demean(a: Any, mean: Any, axis: Any, **options: Any) -> Any:
    """``a - mean``; elements that are NaN, which SciPy leaves out later on, do not count in derivatives."""
    return fnp.where(fnp.isnan(a), np.nan, a - mean)


DISTRIBUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.stats._distn_infrastructure", "rv_continuous.ppf"): _quantile("ppf"),
    ("scipy.stats._distn_infrastructure", "rv_continuous.isf"): _quantile("isf"),
    ("scipy.stats._continuous_distns", "dgamma_gen._cdf"): _two_sided(
        lambda x, a: 0.5 * _special().gammaincc(a, x), lambda x, a: 0.5 + 0.5 * _special().gammainc(a, x)
    ),
    ("scipy.stats._continuous_distns", "dgamma_gen._sf"): _two_sided(
        lambda x, a: 0.5 + 0.5 * _special().gammainc(a, x), lambda x, a: 0.5 * _special().gammaincc(a, x)
    ),
    ("scipy.stats._continuous_distns", "dgamma_gen._ppf"): lambda self, q, a: _gamma_quantile(q, a, False),
    ("scipy.stats._continuous_distns", "dgamma_gen._isf"): lambda self, q, a: _gamma_quantile(q, a, True),
    ("scipy.stats._stats_py", "_demean"): _demean,
    ("scipy.special._ufuncs", "_log1mexp"): _log1mexp,
    ("scipy.special._ufuncs", "_beta_ppf"): lambda q, a, b: _special().betaincinv(a, b, q),
    ("scipy.special._ufuncs", "_cosine_cdf"): _cosine_cdf,
}
