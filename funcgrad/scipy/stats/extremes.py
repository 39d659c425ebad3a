"""Continuous distributions of extreme values."""

from __future__ import annotations

from typing import Any

import funcgrad.numpy as fnp
from funcgrad.scipy import special as fsp
from funcgrad.scipy.special.operations.convex import log1p_quotient
from funcgrad.scipy.stats.continuous import EULER
from funcgrad.scipy.stats.distribution import INF, Continuous

__all__ = ["genextreme", "genpareto", "weibull_max", "weibull_min"]

exp, expm1, log, log1p, where = fnp.exp, fnp.expm1, fnp.log, fnp.log1p, fnp.where


def slope(z: Any) -> Any:
    """``log(1 + z) / z``, 1 at 0."""
    return log1p_quotient(z, order=0)


weibull_min = Continuous(
    name="weibull_min",
    shapes=("c",),
    support=(0.0, INF),
    formulas={
        "logpdf": lambda x, c: log(c) + fsp.xlogy(c - 1, x) - x**c,
        "cdf": lambda x, c: -expm1(-(x**c)),
        "sf": lambda x, c: exp(-(x**c)),
        "logsf": lambda x, c: -(x**c),
        "ppf": lambda q, c: (-log1p(-q)) ** (1 / c),
        "isf": lambda q, c: (-log(q)) ** (1 / c),
        "mean": lambda c: fsp.gamma(1 + 1 / c),
        "var": lambda c: fsp.gamma(1 + 2 / c) - fsp.gamma(1 + 1 / c) ** 2,
        "entropy": lambda c: -EULER / c - log(c) + (EULER + 1),
    },
)

weibull_max = Continuous(
    name="weibull_max",
    shapes=("c",),
    support=(-INF, 0.0),
    formulas={
        "logpdf": lambda x, c: log(c) + fsp.xlogy(c - 1, -x) - (-x) ** c,
        "cdf": lambda x, c: exp(-((-x) ** c)),
        "logcdf": lambda x, c: -((-x) ** c),
        "sf": lambda x, c: -expm1(-((-x) ** c)),
        "ppf": lambda q, c: -((-log(q)) ** (1 / c)),
        "isf": lambda q, c: -((-log1p(-q)) ** (1 / c)),
        "entropy": lambda c: -EULER / c - log(c) + (EULER + 1),
    },
)


def _end(side: int, c: Any) -> Any:
    """The end ``1 / c`` of the support, where ``c`` has the sign of ``side``; the other end is at infinity."""
    ours = c * side > 0
    return where(ours, 1 / where(ours, c, 1.0), side * INF)


def _extreme_scale(x: Any, c: Any) -> Any:
    """``log(1 - c x) / c``, ``-x`` where c is 0."""
    return -x * slope(-c * x)


genextreme = Continuous(
    name="genextreme",
    shapes=("c",),
    support=(lambda c: _end(-1, c), lambda c: _end(1, c)),
    closed=False,
    valid=lambda c: fnp.isfinite(c),
    formulas={
        "logpdf": lambda x, c: (1 - c) * _extreme_scale(x, c) - exp(_extreme_scale(x, c)),
        "cdf": lambda x, c: exp(-exp(_extreme_scale(x, c))),
        "logcdf": lambda x, c: -exp(_extreme_scale(x, c)),
        "sf": lambda x, c: -expm1(-exp(_extreme_scale(x, c))),
        "ppf": lambda q, c: -log(-log(q)) * fsp.exprel(c * log(-log(q))),
        "isf": lambda q, c: -log(-log1p(-q)) * fsp.exprel(c * log(-log1p(-q))),
        "entropy": lambda c: EULER * (1 - c) + 1,
    },
)


def _genpareto_logpdf(x: Any, c: Any) -> Any:
    far = abs(c) > 0.5  # there 1 + 1 / c may be 0, and the logarithm infinite
    of_far = fsp.xlog1py(1 + 1 / where(far, c, 1.0), where(far, c * x, 0.0))
    return where(far, -of_far, -(c + 1) * x * slope(where(far, 0.0, c * x)))


genpareto = Continuous(
    name="genpareto",
    shapes=("c",),
    support=(0.0, lambda c: -_end(-1, c)),
    valid=lambda c: fnp.isfinite(c),
    formulas={
        "logpdf": _genpareto_logpdf,
        "cdf": lambda x, c: -expm1(-x * slope(c * x)),
        "sf": lambda x, c: exp(-x * slope(c * x)),
        "logsf": lambda x, c: -x * slope(c * x),
        "ppf": lambda q, c: -log1p(-q) * fsp.exprel(-c * log1p(-q)),
        "isf": lambda q, c: -log(q) * fsp.exprel(-c * log(q)),
        "entropy": lambda c: 1 + c,
    },
)
