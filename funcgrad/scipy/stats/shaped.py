"""Continuous distributions with special functions: gamma, beta, Student's t and relatives; extreme values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError, ShapeError
from funcgrad.graph import report_answer
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.scipy import special as fsp
from funcgrad.scipy.special.operations.convex import log1p_quotient
from funcgrad.scipy.stats.continuous import EULER, LOG_2, LOG_PI, LOG_ROOT_2PI, log_normal
from funcgrad.scipy.stats.distribution import INF, Continuous, mirrored, true_if_known

__all__ = [
    "beta", "chi", "chi2", "exponnorm", "f", "gamma", "gennorm", "invgamma", "invgauss", "maxwell", "skewnorm", "t",
    "truncnorm", "vonmises", "genextreme", "genpareto", "weibull_max", "weibull_min",
]  # fmt: skip


exp, expm1, log, log1p, where = fnp.exp, fnp.expm1, fnp.log, fnp.log1p, fnp.where

gamma = Continuous(
    "gamma(a)",
    (0.0, INF),
    logpdf=lambda x, a: fsp.xlogy(a - 1, x) - x - fsp.gammaln(a),
    cdf=lambda x, a: fsp.gammainc(a, x),
    sf=lambda x, a: fsp.gammaincc(a, x),
    ppf=lambda q, a: fsp.gammaincinv(a, q),
    isf=lambda q, a: fsp.gammainccinv(a, q),
    mean=lambda a: 1.0 * a,
    var=lambda a: 1.0 * a,
    entropy=lambda a: fsp.psi(a) * (1 - a) + a + fsp.gammaln(a),
)

invgamma = Continuous(
    "invgamma(a)",
    (0.0, INF),
    closed=False,
    logpdf=lambda x, a: -(a + 1) * log(x) - fsp.gammaln(a) - 1 / x,
    cdf=lambda x, a: fsp.gammaincc(a, 1 / x),
    sf=lambda x, a: fsp.gammainc(a, 1 / x),
    ppf=lambda q, a: 1 / fsp.gammainccinv(a, q),
    isf=lambda q, a: 1 / fsp.gammaincinv(a, q),
    entropy=lambda a: a - (a + 1) * fsp.psi(a) + fsp.gammaln(a),
)

chi2 = Continuous(
    "chi2(df)",
    (0.0, INF),
    logpdf=lambda x, df: fsp.xlogy(df / 2 - 1, x) - x / 2 - fsp.gammaln(df / 2) - LOG_2 * df / 2,
    cdf=lambda x, df: fsp.gammainc(df / 2, x / 2),
    sf=lambda x, df: fsp.gammaincc(df / 2, x / 2),
    ppf=lambda q, df: 2 * fsp.gammaincinv(df / 2, q),
    isf=lambda q, df: 2 * fsp.gammainccinv(df / 2, q),
    mean=lambda df: 1.0 * df,
    var=lambda df: 2.0 * df,
    entropy=lambda df: df / 2 + LOG_2 + fsp.gammaln(df / 2) + (1 - df / 2) * fsp.psi(df / 2),
)

chi = Continuous(
    "chi(df)",
    (0.0, INF),
    logpdf=lambda x, df: (1 - df / 2) * LOG_2 - fsp.gammaln(df / 2) + fsp.xlogy(df - 1, x) - x * x / 2,
    cdf=lambda x, df: fsp.gammainc(df / 2, x * x / 2),
    sf=lambda x, df: fsp.gammaincc(df / 2, x * x / 2),
    ppf=lambda q, df: fnp.sqrt(2 * fsp.gammaincinv(df / 2, q)),
    isf=lambda q, df: fnp.sqrt(2 * fsp.gammainccinv(df / 2, q)),
)

maxwell = Continuous(
    "maxwell",
    (0.0, INF),
    closed=False,
    logpdf=lambda x: 0.5 * (LOG_2 - LOG_PI) + 2 * log(x) - x * x / 2,
    cdf=lambda x: fsp.gammainc(1.5, x * x / 2),
    sf=lambda x: fsp.gammaincc(1.5, x * x / 2),
    ppf=lambda q: fnp.sqrt(2 * fsp.gammaincinv(1.5, q)),
    isf=lambda q: fnp.sqrt(2 * fsp.gammainccinv(1.5, q)),
    mean=2 * math.sqrt(2 / math.pi),
    var=3 - 8 / math.pi,
)

beta = Continuous(
    "beta(a, b)",
    (0.0, 1.0),
    logpdf=lambda x, a, b: fsp.xlog1py(b - 1, -x) + fsp.xlogy(a - 1, x) - fsp.betaln(a, b),
    cdf=lambda x, a, b: fsp.betainc(a, b, x),
    sf=lambda x, a, b: fsp.betaincc(a, b, x),
    ppf=lambda q, a, b: fsp.betaincinv(a, b, q),
    isf=lambda q, a, b: fsp.betainccinv(a, b, q),
    mean=lambda a, b: a / (a + b),
    var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    entropy=lambda a, b: fsp.betaln(a, b) - (a - 1) * fsp.psi(a) - (b - 1) * fsp.psi(b) + (a + b - 2) * fsp.psi(a + b),
)

f = Continuous(
    "f(dfn, dfd)",
    (0.0, INF),
    logpdf=lambda x, n, m: (
        m / 2 * log(m)
        + n / 2 * log(n)
        + fsp.xlogy(n / 2 - 1, x)
        - ((n + m) / 2 * log(m + n * x) + fsp.betaln(n / 2, m / 2))
    ),
    cdf=lambda x, n, m: fsp.betainc(n / 2, m / 2, n * x / (m + n * x)),
    sf=lambda x, n, m: fsp.betainc(m / 2, n / 2, m / (m + n * x)),
    ppf=lambda q, n, m: _odds(fsp.betaincinv(n / 2, m / 2, q), fsp.betainccinv(m / 2, n / 2, q)) * m / n,
    isf=lambda q, n, m: _odds(fsp.betainccinv(n / 2, m / 2, q), fsp.betaincinv(m / 2, n / 2, q)) * m / n,
)


def _odds(y: Any, rest: Any) -> Any:
    """Return ``y / (1 - y)``, given ``rest``, which is ``1 - y``."""
    return y / rest


def _or_normal(of_t: Any, normal: Any) -> Any:
    """Return a formula that is ``of_t(x, df)``, and ``normal(x)`` where ``df`` is infinite."""

    def formula(x: Any, df: Any) -> Any:
        finite = true_if_known(fnp.isfinite(df))
        if finite is True:
            return of_t(x, df)
        return where(finite, of_t(x, where(finite, df, 1.0)), normal(x))

    return formula


t = Continuous(
    "t(df)",
    symmetric=True,
    logpdf=_or_normal(
        lambda x, df: -fsp.betaln(df / 2, 0.5) - 0.5 * log(df) - (df + 1) / 2 * log1p(x * x / df), log_normal
    ),
    cdf=_or_normal(lambda x, df: fsp.stdtr(df, x), fsp.ndtr),
    ppf=_or_normal(lambda q, df: fsp.stdtrit(df, q), fsp.ndtri),
    entropy=lambda df: (
        (df + 1) / 2 * (fsp.psi((df + 1) / 2) - fsp.psi(df / 2)) + 0.5 * log(df) + fsp.betaln(df / 2, 0.5)
    ),
)

# ---- relatives of the normal distribution ------------------------------------------------------------------


def _bounded(x: Any) -> Any:
    """Return ``x``, with infinity replaced by a constant that serves as well and has a derivative."""
    return where(abs(x) < 1e10, x, fnp.sign(x) * 1e10)


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal probability between ``a`` and ``b``, accurate in both tails."""
    a, b = _bounded(a), _bounded(b)
    right = a > 0
    middle = (a <= 0) & (b > 0)
    low, high = where(right, -b, a), where(right, -a, b)
    low, high = where(middle, -1.0, low), where(middle, 0.0, high)
    of_low, of_high = fsp.log_ndtr(low), fsp.log_ndtr(high)
    far = of_high + log1p(-exp(of_low - of_high))
    near = log1p(-fsp.ndtr(where(middle, a, -1.0)) - fsp.ndtr(where(middle, -b, -1.0)))
    return where(middle, near, far)


def _truncnorm_ppf(q: Any, a: Any, b: Any) -> Any:
    a, b = _bounded(a), _bounded(b)
    left = a < 0
    mass = _log_mass(a, b)
    from_left = fnp.logaddexp(fsp.log_ndtr(where(left, a, -1.0)), log(q) + mass)
    from_right = fnp.logaddexp(fsp.log_ndtr(where(left, -1.0, -b)), log1p(-q) + mass)
    return where(left, 1.0, -1.0) * fsp.ndtri_exp(where(left, from_left, from_right))


truncnorm = Continuous(
    "truncnorm(a, b)",
    (lambda a, b: a, lambda a, b: b),
    valid=lambda a, b: a < b,
    typical=(-1.0, 1.0),
    logpdf=lambda x, a, b: log_normal(x) - _log_mass(a, b),
    logcdf=lambda x, a, b: _log_mass(a, x) - _log_mass(a, b),
    logsf=lambda x, a, b: _log_mass(x, b) - _log_mass(a, b),
    ppf=_truncnorm_ppf,
    isf=lambda q, a, b: -_truncnorm_ppf(q, -b, -a),
)

_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(32)


def _skewnorm_cdf(x: Any, a: Any) -> Any:
    """Compute the cdf by Owen's T; where that cancels, by T's integral from ``a`` to infinity, of ``exp(-s)`` here."""
    far = fnp.logical_and(-a * x > 5, fnp.logical_and(x < 0, fnp.isfinite(x)))
    near, z = where(far, -1.0, x), where(far, a * x, 6.0)
    x = where(far, x, -1.0)
    square, steps = (x * x + z * z)[..., None], 2 * _NODES
    terms = _WEIGHTS / ((square + steps) * fnp.sqrt((z * z)[..., None] + steps))
    tail = -x / math.pi * exp(-0.5 * square[..., 0]) * fnp.sum(terms, axis=-1)
    return where(far, tail, fsp.ndtr(near) - 2 * fsp.owens_t(near, a))


skewnorm = Continuous(
    "skewnorm(a)",
    valid=fnp.isfinite,
    logpdf=lambda x, a: LOG_2 + log_normal(x) + fsp.log_ndtr(a * x),
    cdf=_skewnorm_cdf,
    sf=lambda x, a: _skewnorm_cdf(-x, -a),
    mean=lambda a: math.sqrt(2 / math.pi) * a / fnp.sqrt(1 + a * a),
    var=lambda a: 1 - 2 / math.pi * a * a / (1 + a * a),
)


def _exponnorm_tail(x: Any, rate: Any) -> Any:
    return exp(rate * (0.5 * rate - x) + fsp.log_ndtr(x - rate))


exponnorm = Continuous(
    "exponnorm(K)",
    logpdf=lambda x, k: (0.5 / k - x) / k + fsp.log_ndtr(x - 1 / k) - log(k),
    cdf=lambda x, k: fsp.ndtr(x) - _exponnorm_tail(x, 1 / k),
    sf=lambda x, k: fsp.ndtr(-x) + _exponnorm_tail(x, 1 / k),
    mean=lambda k: 1.0 * k,
    var=lambda k: 1 + k * k,
)


def _gennorm_tail(x: Any, b: Any) -> Any:
    """Return the probability of values up to ``x``."""
    centre = x == 0  # the chain rule multiplies 0 by infinity at 0, where the slope is the density
    half = 0.5 * fsp.gammaincc(1 / b, abs(where(centre, 1.0, x)) ** b)
    at_centre = 0.5 + x * (0.5 * b * exp(-fsp.gammaln(1 / b)))
    return where(centre, at_centre, where(x > 0, 1 - half, half))


gennorm = Continuous(
    "gennorm(beta)",
    symmetric=True,
    logpdf=lambda x, b: log(0.5 * b) - fsp.gammaln(1 / b) - abs(x) ** b,
    cdf=_gennorm_tail,
    ppf=lambda q, b: _gennorm_ppf(q, b),
    entropy=lambda b: 1 / b - log(0.5 * b) + fsp.gammaln(1 / b),
)


def _gennorm_ppf(q: Any, b: Any) -> Any:
    low, centre = q < 0.5, q == 0.5  # at the centre the root is 0, with an infinite slope
    size = fsp.gammainccinv(1 / b, 2 * where(low, q, where(centre, 0.25, 1 - q))) ** (1 / b)
    return where(centre, (q - 0.5) * (2 / b * fsp.gamma(1 / b)), where(low, -1.0, 1.0) * size)


def _vonmises_cdf(x: Any, kappa: Any) -> Any:
    """Integrate the Fourier series of the density (K. Mardia and P. Jupp, Directional Statistics, 2000, 3.5.4).

    Errors are about 1e-16. SciPy's errors are about 1e-6, as it uses the normal distribution for a kappa above 50.
    """
    values = report_answer(kappa, concrete_or_none(kappa))
    if values is None:
        raise InputError("stats.vonmises.cdf: kappa must be a number, got one that JAX hides while it compiles.")
    most = values.max(initial=0.0)
    if most > 1e5:
        raise ShapeError(f"stats.vonmises.cdf: kappa must be at most 1e5, got {most}. Take norm, scale kappa**-0.5.")
    j = np.arange(1.0, 20.0 + math.sqrt(80.0 * most))  # I_j is about exp(-j**2 / (2 * kappa)) times I_0
    angle, kappa = fnp.expand_dims(as_value(x), -1), fnp.expand_dims(as_value(kappa), -1)
    waves = fsp.ive(j, kappa) / fsp.i0e(kappa) * fnp.sin(j * angle) / j
    return 0.5 + x / (2 * math.pi) + fnp.sum(waves, axis=-1) / math.pi


def _log_of_turns(p: Any) -> Any:
    """Return the logarithm of a cdf that gains 1 each turn; NaN where it is negative, below the first half turn."""
    some = p > 0
    return where(p < -1e-9, math.nan, where(some, log(where(some, p, 1.0)), -INF))


vonmises = Continuous(
    "vonmises(kappa)",
    valid=lambda kappa: kappa >= 0,
    symmetric=True,
    logpdf=lambda x, kappa: kappa * fsp.cosm1(x) - 2 * LOG_ROOT_2PI - log(fsp.i0e(kappa)),
    cdf=_vonmises_cdf,
    logcdf=lambda x, kappa: _log_of_turns(_vonmises_cdf(x, kappa)),
    entropy=lambda kappa: -kappa * fsp.i1e(kappa) / fsp.i0e(kappa) + 2 * LOG_ROOT_2PI + log(fsp.i0e(kappa)) + kappa,
)


def _invgauss_tail(x: Any, mu: Any, side: int) -> Any:
    """Return the logarithm of the lower (1) or upper (-1) tail probability (G. Giner and G. Smyth, 2016)."""
    root = fnp.sqrt(x)
    near = fsp.log_ndtr(side * (x / mu - 1) / root)
    far = 2 / mu + fsp.log_ndtr(-(x / mu + 1) / root)
    return near + log1p(side * exp(far - near))


invgauss = Continuous(
    "invgauss(mu)",
    (0.0, INF),
    closed=False,
    logpdf=lambda x, mu: -LOG_ROOT_2PI - 1.5 * log(x) - (x / mu - 1) ** 2 / (2 * x),
    logcdf=lambda x, mu: _invgauss_tail(x, mu, 1),
    logsf=lambda x, mu: _invgauss_tail(x, mu, -1),
    mean=lambda mu: 1.0 * mu,
    var=lambda mu: mu**3,
)


def slope(z: Any) -> Any:
    """Return ``log(1 + z) / z``, which is 1 at 0."""
    return log1p_quotient(z, order=0)


weibull_min = Continuous(
    "weibull_min(c)",
    (0.0, INF),
    logpdf=lambda x, c: log(c) + fsp.xlogy(c - 1, x) - x**c,
    cdf=lambda x, c: -expm1(-(x**c)),
    logsf=lambda x, c: -(x**c),
    ppf=lambda q, c: (-log1p(-q)) ** (1 / c),
    isf=lambda q, c: (-log(q)) ** (1 / c),
    mean=lambda c: fsp.gamma(1 + 1 / c),
    var=lambda c: fsp.gamma(1 + 2 / c) - fsp.gamma(1 + 1 / c) ** 2,
    entropy=lambda c: -EULER / c - log(c) + (EULER + 1),
)

weibull_max = Continuous(
    "weibull_max(c)", (-INF, 0.0), **mirrored(weibull_min.formulas), entropy=weibull_min.formulas["entropy"]
)


def _end(side: int, c: Any) -> Any:
    """Return the end ``1 / c`` of the support if ``c`` has the sign of ``side``, else ``side`` times infinity."""
    ours = c * side > 0
    return where(ours, 1 / where(ours, c, 1.0), side * INF)


def _extreme_scale(x: Any, c: Any) -> Any:
    """Return ``log(1 - c x) / c``, which is ``-x`` where ``c`` is 0."""
    return -x * slope(-c * x)


genextreme = Continuous(
    "genextreme(c)",
    (lambda c: _end(-1, c), lambda c: _end(1, c)),
    closed=False,
    valid=fnp.isfinite,
    logpdf=lambda x, c: (1 - c) * _extreme_scale(x, c) - exp(_extreme_scale(x, c)),
    logcdf=lambda x, c: -exp(_extreme_scale(x, c)),
    sf=lambda x, c: -expm1(-exp(_extreme_scale(x, c))),
    ppf=lambda q, c: -log(-log(q)) * fsp.exprel(c * log(-log(q))),
    isf=lambda q, c: -log(-log1p(-q)) * fsp.exprel(c * log(-log1p(-q))),
    entropy=lambda c: EULER * (1 - c) + 1,
)


def _genpareto_logpdf(x: Any, c: Any) -> Any:
    far = abs(c) > 0.5  # if ``c`` is -1, ``1 + 1 / c`` is 0, and the logarithm may be infinite
    of_far = fsp.xlog1py(1 + 1 / where(far, c, 1.0), where(far, c * x, 0.0))
    return where(far, -of_far, -(c + 1) * x * slope(where(far, 0.0, c * x)))


genpareto = Continuous(
    "genpareto(c)",
    (0.0, lambda c: -_end(-1, c)),
    valid=fnp.isfinite,
    logpdf=_genpareto_logpdf,
    cdf=lambda x, c: -expm1(-x * slope(c * x)),
    logsf=lambda x, c: -x * slope(c * x),
    ppf=lambda q, c: -log1p(-q) * fsp.exprel(-c * log1p(-q)),
    isf=lambda q, c: -log(q) * fsp.exprel(-c * log(q)),
    entropy=lambda c: 1 + c,
)
