"""Derivatives of scaled Bessel functions: sums over neighbouring orders, and for large arguments asymptotic series."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.scipy.special.operations.partials import in_double

__all__ = ["neighbours", "scaled_series", "with_series"]

_SERIES_FROM, _SERIES_TERMS = 40.0, 30


def _far(xp: Any, v: Any, x: Any) -> Any:
    """Where the series has 16 digits: 30 terms of about ``(v**2 / (2 * x))**k / k!``."""
    return xp.abs(x) > xp.maximum(_SERIES_FROM, v * v / 4)


def scaled_series(xp: Any, v: Any, x: Any, sign: complex, order: int) -> Any:
    """The derivative of this order of ``x**(-1/2)`` times the series in ``sign / x``, for positive x."""
    total, term = 0.0, (-1) ** order * x ** (-0.5 - order)
    factor = math.prod([0.5 + j for j in range(order)])
    for k in range(_SERIES_TERMS):
        total = total + factor * term
        term = term * (sign * (4 * v * v - (2 * k + 1) ** 2) / (8 * (k + 1))) / x
        factor = factor * (k + 0.5 + order) / (k + 0.5)
    return total


def with_series(near: Callable[..., Any], series: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel ``near`` and, where there is a large argument, ``series``."""

    def impl(xp: Any, v: Any, x: Any, *, order: int) -> Any:
        if any(dtype_of(a).kind == "c" for a in (v, x)):
            return near(xp, v, x, order)

        def computed(v: Any, x: Any) -> Any:
            far = _far(xp, v, x)
            if xp is np and not np.any(far):
                return near(xp, v, x, order)
            ans = near(xp, v, xp.where(far, 1.0, x), order)
            return xp.where(far, series(xp, xp.where(far, v, 0.0), xp.where(far, x, _SERIES_FROM), order), ans)

        return in_double(xp, computed, v, x)

    return impl


def neighbours(fun: Callable[..., Any], v: Any, x: Any, order: int, sign: int, scale: Any) -> Any:
    """The derivative of ``exp(scale * x) * F`` of this order, times the inverse, where 2 F' is F[v-1] + F[v+1].

    With a sign of -1 it is ``-2 F'`` that is. ``fun`` gives F times the factor.
    """
    total = 0.0
    for j in range(order + 1):
        part = sum(math.comb(j, i) * fun(v - j + 2 * i, x) for i in range(j + 1)) * (sign / 2) ** j
        total = total + math.comb(order, j) * scale ** (order - j) * part
    return total
