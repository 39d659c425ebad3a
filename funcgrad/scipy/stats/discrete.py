"""Distributions of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.graph import report_answer
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.scipy import special as fsp
from funcgrad.scipy.special.operations.incomplete import beta_density, gamma_density
from funcgrad.scipy.stats.distribution import Discrete

__all__ = ["bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson"]

log = fnp.log


def _is_share(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


def _is_count(n: Any) -> Any:
    return (n >= 0) & (fnp.floor(n) == n)


def _entropy_of(p: Any) -> Any:
    return fsp.entr(p) + fsp.entr(1 - p)


def _log_choices(n: Any, k: Any) -> Any:
    """Return the logarithm of the number of ways to choose ``k`` of ``n``."""
    return fsp.gammaln(n + 1) - (fsp.gammaln(k + 1) + fsp.gammaln(n - k + 1))


bernoulli = Discrete(
    "bernoulli(p)",
    high=1.0,
    valid=_is_share,
    typical=(0.5,),
    logpmf=lambda k, p: fsp.xlogy(k, p) + fsp.xlog1py(1 - k, -p),
    pmf=lambda k, p: k * p + (1 - k) * (1 - p),
    cdf=lambda k, p: 1 - p + 0 * k,
    sf=lambda k, p: p + 0 * k,
    mean=lambda p: 1.0 * p,
    var=lambda p: p * (1 - p),
    entropy=_entropy_of,
)

binom = Discrete(
    "binom(n, p)",
    high=lambda n, p: n,
    valid=lambda n, p: _is_count(n) & _is_share(p),
    typical=(1.0, 0.5),
    logpmf=lambda k, n, p: _log_choices(n, k) + fsp.xlogy(k, p) + fsp.xlog1py(n - k, -p),
    pmf=lambda k, n, p: beta_density(k + 1, n - k + 1, p) / (n + 1),
    cdf=lambda k, n, p: fsp.betainc(n - k, k + 1, 1 - p),
    sf=lambda k, n, p: fsp.betainc(k + 1, n - k, p),
    mean=lambda n, p: n * p,
    var=lambda n, p: n * p * (1 - p),
)

nbinom = Discrete(
    "nbinom(n, p)",
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    typical=(1.0, 0.5),
    logpmf=lambda k, n, p: fsp.gammaln(n + k) - fsp.gammaln(k + 1) - fsp.gammaln(n) + n * log(p) + fsp.xlog1py(k, -p),
    pmf=lambda k, n, p: beta_density(n, k + 1, p) * (p / (n + k)),
    cdf=lambda k, n, p: fsp.betainc(n, k + 1, p),
    sf=lambda k, n, p: fsp.betainc(k + 1, n, 1 - p),
    mean=lambda n, p: n * (1 - p) / p,
    var=lambda n, p: n * (1 - p) / (p * p),
)

geom = Discrete(
    "geom(p)",
    low=1,
    valid=lambda p: (p > 0) & (p <= 1),
    typical=(0.5,),
    logpmf=lambda k, p: fsp.xlog1py(k - 1, -p) + log(p),
    pmf=lambda k, p: beta_density(1, k, p) * (p / k),
    cdf=lambda k, p: -fnp.expm1(fsp.xlog1py(k, -p)),
    logsf=lambda k, p: fsp.xlog1py(k, -p),
    mean=lambda p: 1 / p,
    var=lambda p: (1 - p) / (p * p),
    entropy=lambda p: _entropy_of(p) / p,
)

poisson = Discrete(
    "poisson(mu)",
    valid=lambda mu: mu >= 0,
    logpmf=lambda k, mu: fsp.xlogy(k, mu) - fsp.gammaln(k + 1) - mu,
    pmf=lambda k, mu: gamma_density(k + 1, mu) + 0 * mu,  # NaN for infinite mu, as in SciPy
    cdf=lambda k, mu: fsp.gammaincc(k + 1, mu),
    sf=lambda k, mu: fsp.gammainc(k + 1, mu),
    mean=lambda mu: 1.0 * mu,
    var=lambda mu: 1.0 * mu,
)


def _betabinom_sum(call: str, chosen: Any, n: Any, a: Any, b: Any) -> Any:
    """Sum the probabilities of the values that ``chosen`` selects, as SciPy does."""
    counts = report_answer(n, concrete_or_none(n))
    if counts is None:
        raise InputError(f"stats.betabinom.{call}: n must be a number, got one that JAX hides while it compiles.")
    values = np.arange(float(counts.max(initial=0.0)) + 1)
    n, a, b = [fnp.expand_dims(as_value(s), -1) for s in (n, a, b)]
    chosen = chosen(values) & (values <= n)
    log_p = betabinom.formulas["logpmf"](fnp.where(chosen, values, 0.0), n, a, b)
    return fnp.sum(fnp.where(chosen, fnp.exp(log_p), 0.0), axis=-1)


betabinom = Discrete(
    "betabinom(n, a, b)",
    high=lambda n, a, b: n,
    valid=lambda n, a, b: _is_count(n) & (a > 0) & (b > 0),
    typical=(1.0, 1.0, 1.0),
    logpmf=lambda k, n, a, b: (
        -log(n + 1) - fsp.betaln(n - k + 1, k + 1) + fsp.betaln(k + a, n - k + b) - fsp.betaln(a, b)
    ),
    cdf=lambda k, *shapes: _betabinom_sum("cdf", lambda j: j <= fnp.expand_dims(k, -1), *shapes),
    sf=lambda k, *shapes: _betabinom_sum("sf", lambda j: j > fnp.expand_dims(k, -1), *shapes),
    mean=lambda n, a, b: n * a / (a + b),
    var=lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1)),
)
