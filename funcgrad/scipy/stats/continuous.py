"""Continuous distributions without shape parameters, or with shape parameters in elementary functions."""

from __future__ import annotations

import math
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.scipy import special as fsp
from funcgrad.scipy.stats.distribution import INF, Continuous, mirrored

__all__ = [
    "cauchy", "expon", "fisk", "gumbel_l", "gumbel_r", "halfcauchy", "halfnorm", "laplace", "logistic", "loglaplace",
    "lognorm", "loguniform", "lomax", "norm", "pareto", "rayleigh", "triang", "uniform", "wrapcauchy",
]  # fmt: skip

LOG_2 = math.log(2)
LOG_PI = math.log(math.pi)
LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
ROOT_2 = math.sqrt(2)
EULER = 0.5772156649015328606
exp, expm1, log, log1p, where = fnp.exp, fnp.expm1, fnp.log, fnp.log1p, fnp.where


def log_normal(x: Any) -> Any:
    """Return the logarithm of the standard normal density."""
    return x * x * -0.5 - LOG_ROOT_2PI


norm = Continuous(
    "norm",
    symmetric=True,
    logpdf=log_normal,
    cdf=fsp.ndtr,
    logcdf=fsp.log_ndtr,
    ppf=fsp.ndtri,
    mean=0.0,
    var=1.0,
    entropy=LOG_ROOT_2PI + 0.5,
)

cauchy = Continuous(
    "cauchy",
    symmetric=True,
    logpdf=lambda x: -LOG_PI - log1p(x * x),
    cdf=lambda x: fnp.arctan2(1.0, -x) / math.pi,
    ppf=lambda q: -1 / fnp.tan(math.pi * q),
    entropy=math.log(4 * math.pi),
)

halfcauchy = Continuous(
    "halfcauchy",
    (0.0, INF),
    logpdf=lambda x: LOG_2 - LOG_PI - log1p(x * x),
    cdf=lambda x: 2 / math.pi * fnp.arctan(x),
    sf=lambda x: 2 / math.pi * fnp.arctan2(1.0, x),
    ppf=lambda q: fnp.tan(math.pi / 2 * q),
    isf=lambda q: 1 / fnp.tan(math.pi / 2 * q),
    entropy=math.log(2 * math.pi),
)

expon = Continuous(
    "expon",
    (0.0, INF),
    logpdf=lambda x: -x,
    cdf=lambda x: -expm1(-x),
    logsf=lambda x: -x,
    ppf=lambda q: -log1p(-q),
    isf=lambda q: -log(q),
    mean=1.0,
    var=1.0,
    entropy=1.0,
)


def _laplace_cdf(x: Any) -> Any:
    half = 0.5 * exp(_towards_zero(x))
    return where(x > 0, 1 - half, half)


def _towards_zero(x: Any) -> Any:
    """Return ``-abs(x)`` with the slope 1 at 0, that of the negative side."""
    return where(x > 0, -x, x)


def _laplace_ppf(q: Any) -> Any:
    small = where(q > 0.5, 1 - q, q)
    return where(q > 0.5, -1.0, 1.0) * log(2 * small)


def _laplace_logcdf(x: Any) -> Any:
    below = _towards_zero(x)
    return where(x > 0, log1p(-0.5 * exp(below)), below - LOG_2)


laplace = Continuous(
    "laplace",
    symmetric=True,
    logpdf=lambda x: -abs(x) - LOG_2,
    cdf=_laplace_cdf,
    logcdf=_laplace_logcdf,
    ppf=_laplace_ppf,
    mean=0.0,
    var=2.0,
    entropy=LOG_2 + 1,
)


def _logistic_logpdf(x: Any) -> Any:
    y = -abs(x)
    return y - 2 * log1p(exp(y))


logistic = Continuous(
    "logistic",
    symmetric=True,
    logpdf=_logistic_logpdf,
    cdf=fsp.expit,
    logcdf=fsp.log_expit,
    ppf=fsp.logit,
    mean=0.0,
    var=math.pi**2 / 3,
    entropy=2.0,
)

gumbel_r = Continuous(
    "gumbel_r",
    logpdf=lambda x: -x - exp(-x),
    logcdf=lambda x: -exp(-x),
    sf=lambda x: -expm1(-exp(-x)),
    ppf=lambda q: -log(-log(q)),
    isf=lambda q: -log(-log1p(-q)),
    mean=EULER,
    var=math.pi**2 / 6,
    entropy=EULER + 1,
)

gumbel_l = Continuous("gumbel_l", **mirrored(gumbel_r.formulas), mean=-EULER, var=math.pi**2 / 6, entropy=EULER + 1)

halfnorm = Continuous(
    "halfnorm",
    (0.0, INF),
    logpdf=lambda x: x * x * -0.5 + (LOG_2 - LOG_ROOT_2PI),
    cdf=lambda x: fsp.erf(x / ROOT_2),
    sf=lambda x: 2 * fsp.ndtr(-x),
    logsf=lambda x: LOG_2 + fsp.log_ndtr(-x),
    ppf=lambda q: fsp.ndtri((1 + q) / 2),
    isf=lambda q: -fsp.ndtri(q / 2),
    mean=math.sqrt(2 / math.pi),
    var=1 - 2 / math.pi,
    entropy=0.5 * math.log(math.pi / 2) + 0.5,
)

rayleigh = Continuous(
    "rayleigh",
    (0.0, INF),
    closed=False,
    logpdf=lambda x: log(x) - 0.5 * x * x,
    cdf=lambda x: -expm1(-0.5 * x * x),
    logsf=lambda x: -0.5 * x * x,
    ppf=lambda q: fnp.sqrt(-2 * log1p(-q)),
    isf=lambda q: fnp.sqrt(-2 * log(q)),
    mean=math.sqrt(math.pi / 2),
    var=2 - math.pi / 2,
    entropy=EULER / 2 + 1 - 0.5 * LOG_2,
)

uniform = Continuous(
    "uniform",
    (0.0, 1.0),
    logpdf=lambda x: 0 * x,
    cdf=lambda x: 1.0 * x,
    sf=lambda x: 1 - x,
    ppf=lambda q: 1.0 * q,
    mean=0.5,
    var=1 / 12,
    entropy=0.0,
)

# ---- one or two shape parameters ---------------------------------------------------------------------------

pareto = Continuous(
    "pareto(b)",
    (1.0, INF),
    logpdf=lambda x, b: log(b) - (b + 1) * log(x),
    cdf=lambda x, b: -expm1(-b * log(x)),
    sf=lambda x, b: x**-b,
    logsf=lambda x, b: -b * log(x),
    ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: q ** (-1 / b),
    entropy=lambda b: 1 + 1 / b - log(b),
)

lomax = Continuous(
    "lomax(c)",
    (0.0, INF),
    logpdf=lambda x, c: log(c) - (c + 1) * log1p(x),
    cdf=lambda x, c: -expm1(-c * log1p(x)),
    logsf=lambda x, c: -c * log1p(x),
    ppf=lambda q, c: expm1(-log1p(-q) / c),
    isf=lambda q, c: q ** (-1 / c) - 1,
    entropy=lambda c: 1 + 1 / c - log(c),
)


def _fisk_logpdf(x: Any, c: Any) -> Any:
    small = x < 1
    large = where(small, 1.0, x)
    power = where(small, x, 1 / large) ** c
    return log(c) + fsp.xlogy(where(small, c - 1, -c - 1), x) - 2 * log1p(power)


fisk = Continuous(
    "fisk(c)",
    (0.0, INF),
    logpdf=_fisk_logpdf,
    cdf=lambda x, c: fsp.expit(c * log(x)),
    sf=lambda x, c: fsp.expit(-c * log(x)),
    logcdf=lambda x, c: fsp.log_expit(c * log(x)),
    logsf=lambda x, c: fsp.log_expit(-c * log(x)),
    ppf=lambda q, c: exp(fsp.logit(q) / c),
    isf=lambda q, c: exp(-fsp.logit(q) / c),
    entropy=lambda c: 2 - log(c),
)

lognorm = Continuous(
    "lognorm(s)",
    (0.0, INF),
    closed=False,
    logpdf=lambda x, s: log_normal(log(x) / s) - log(s) - log(x),
    cdf=lambda x, s: fsp.ndtr(log(x) / s),
    sf=lambda x, s: fsp.ndtr(-log(x) / s),
    logcdf=lambda x, s: fsp.log_ndtr(log(x) / s),
    logsf=lambda x, s: fsp.log_ndtr(-log(x) / s),
    ppf=lambda q, s: exp(s * fsp.ndtri(q)),
    isf=lambda q, s: exp(-s * fsp.ndtri(q)),
    mean=lambda s: exp(0.5 * s * s),
    var=lambda s: expm1(s * s) * exp(s * s),
    entropy=lambda s: LOG_ROOT_2PI + 0.5 + log(s),
)

loguniform = Continuous(
    "loguniform(a, b)",
    (lambda a, b: a, lambda a, b: b),
    valid=lambda a, b: (a > 0) & (b > a),
    typical=(1.0, 2.0),
    logpdf=lambda x, a, b: -log(x) - log(log(b) - log(a)),
    cdf=lambda x, a, b: (log(x) - log(a)) / (log(b) - log(a)),
    sf=lambda x, a, b: (log(b) - log(x)) / (log(b) - log(a)),
    ppf=lambda q, a, b: exp(log(a) + q * (log(b) - log(a))),
    isf=lambda q, a, b: exp(log(b) + q * (log(a) - log(b))),
    mean=lambda a, b: (b - a) / (log(b) - log(a)),
    entropy=lambda a, b: 0.5 * (log(a) + log(b)) + log(log(b) - log(a)),
)


def _loglaplace_tail(x: Any, c: Any) -> Any:
    half = 0.5 * exp(-c * abs(log(x)))
    return where(x < 1, half, 1 - half)


loglaplace = Continuous(
    "loglaplace(c)",
    (0.0, INF),
    logpdf=lambda x, c: log(c / 2) + fsp.xlogy(where(x < 1, c - 1, -c - 1), x),
    cdf=_loglaplace_tail,
    sf=lambda x, c: _loglaplace_tail(1 / x, c),
    ppf=lambda q, c: exp(_laplace_ppf(q) / c),
    isf=lambda q, c: exp(-_laplace_ppf(q) / c),
    entropy=lambda c: log(2 / c) + 1,
)


def _triang_logpdf(x: Any, c: Any) -> Any:
    rising = (x < c) | (c == 1)
    return log(2 * where(rising, x, 1 - x) / where(rising, c, 1 - c))


def _triang_cdf(x: Any, c: Any) -> Any:
    rising = (x < c) | (c == 1)
    up = x * x / where(rising, c, 1.0)
    return where(rising, up, 1 - (1 - x) * (1 - x) / where(rising, 1.0, 1 - c))


def _triang_ppf(q: Any, c: Any) -> Any:
    rising = (q < c) | (c == 1)
    root = fnp.sqrt(where(rising, c * q, (1 - c) * (1 - q)))
    return where(rising, root, 1 - root)


triang = Continuous(
    "triang(c)",
    (0.0, 1.0),
    valid=lambda c: (c >= 0) & (c <= 1),
    typical=(0.5,),
    logpdf=_triang_logpdf,
    cdf=_triang_cdf,
    ppf=_triang_ppf,
    mean=lambda c: (c + 1) / 3,
    var=lambda c: (1 - c + c * c) / 18,
    entropy=lambda c: 0.5 - LOG_2 + 0 * c,
)


def _stretched(angle: Any, by: Any) -> Any:
    """Return the angle from 0 to pi whose tangent is that of ``angle`` times ``by``, near pi/2 from the cotangents."""
    first, middle = angle < math.pi / 2, fnp.abs(angle - math.pi / 2) < math.pi / 4
    side = fnp.arctan(by * fnp.tan(where(middle, 0.0, where(first, angle, math.pi - angle))))
    center = math.pi / 2 + fnp.arctan(fnp.tan(where(middle, angle - math.pi / 2, 0.0)) / by)
    return where(middle, center, where(first, side, math.pi - side))


wrapcauchy = Continuous(
    "wrapcauchy(c)",
    (0.0, 2 * math.pi),
    valid=lambda c: (c > 0) & (c < 1),
    typical=(0.5,),
    logpdf=lambda x, c: log(1 - c * c) - log(2 * math.pi * (1 + c * c - 2 * c * fnp.cos(x))),
    cdf=lambda x, c: _stretched(x / 2, (1 + c) / (1 - c)) / math.pi,
    ppf=lambda q, c: 2 * _stretched(math.pi * q, (1 - c) / (1 + c)),
    entropy=lambda c: log(2 * math.pi * (1 - c * c)),
)
