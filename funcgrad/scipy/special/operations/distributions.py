"""Distribution functions as ``scipy.special`` has them, and their inverses in every argument.

All are incomplete gamma or beta functions, so their partial derivatives are made of those of ``gammainc`` and
``betainc`` and of the densities. The inverse in an argument has the probability in the place of that argument; its
derivatives follow from the same partial derivatives by the implicit function theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import power
from funcgrad.primitives.comparison import floor, less, where
from funcgrad.primitives.elementwise import exp, log, log1p
from funcgrad.scipy.special.operations.convex import boxcox_slope
from funcgrad.scipy.special.operations.error_functions import ndtri
from funcgrad.scipy.special.operations.incomplete_beta import beta_density, betainc_parameter
from funcgrad.scipy.special.operations.incomplete_gamma import gamma_density, gammainc_parameter
from funcgrad.scipy.special.operations.kernels import kernel
from funcgrad.scipy.special.operations.partials import refused

__all__ = [
    "bdtr", "bdtrc", "bdtri", "bdtrin", "btdtria", "btdtrib", "chdtr", "chdtrc", "chdtri", "chdtriv", "fdtr", "fdtrc",
    "fdtri", "fdtridfd", "gdtr", "gdtrc", "gdtria", "gdtrib", "gdtrix", "nbdtr", "nbdtrc", "nbdtri", "nbdtrik",
    "nbdtrin", "nrdtrimn", "nrdtrisd", "pdtr", "pdtrc", "pdtri", "pdtrik", "tklmbda",
]  # fmt: skip

#: For each argument the partial derivative, a function of all arguments, or the name of a whole number that has none.
Partials = tuple[Callable[..., Any] | str, ...]


def _defined(name: str, rules: list[Any], of_jax: Callable[..., Any] | None) -> Operation:
    """An elementwise operation of two or three arguments, from rules of a tuple of arguments and the result."""

    def named(rule: Any) -> Any:
        if isinstance(rule, str):
            return refused(name, rule, "It is a whole number: pass it as a constant")
        return (lambda x, y, ans: rule((x, y), ans)) if len(rules) == 2 else lambda x, y, z, ans: rule((x, y, z), ans)

    dx, dy, dz = [*map(named, rules), None][:3]
    return elementwise(name, kernel(name, of_jax), dx=dx, dy=dy, dz=dz)


def _function(name: str, partials: Partials, of_jax: Callable[..., Any] | None, sign: float = 1.0) -> Operation:
    """A distribution function, or with ``sign=-1`` what is left of 1."""

    def rule(partial: Any) -> Any:
        return partial if isinstance(partial, str) else lambda args, ans: sign * partial(*args)

    return _defined(name, [rule(partial) for partial in partials], of_jax)


def _inverse(name: str, partials: Partials, position: int, sign: float = 1.0) -> Operation:
    """The inverse in one argument, or with ``sign=-1`` that of what is left of 1."""

    def rule(i: int) -> Any:
        partial: Any = partials[i]
        if isinstance(partial, str):
            return partial

        def implicit(args: tuple[Any, ...], ans: Any) -> Any:
            point = (*args[:position], ans, *args[position + 1 :])
            slope = partials[position](*point)  # type: ignore[operator]
            return sign / slope if i == position else -partial(*point) / slope

        return implicit

    return _defined(name, [rule(i) for i in range(len(partials))], None)


# ---- incomplete gamma functions ------------------------------------------------------------------------------

CHI_SQUARE: Partials = (
    lambda v, x: 0.5 * gammainc_parameter(0.5 * v, 0.5 * x, order=1),
    lambda v, x: 0.5 * gamma_density(0.5 * v, 0.5 * x),
)
GAMMA: Partials = (
    lambda a, b, x: x * gamma_density(b, a * x),
    lambda a, b, x: gammainc_parameter(b, a * x, order=1),
    lambda a, b, x: a * gamma_density(b, a * x),
)
#: In the mean; the number of events is a whole one, but in the inverse in it.
POISSON: Partials = ("k", lambda k, m: -gamma_density(floor(k) + 1, m))
POISSON_REAL: Partials = (lambda k, m: -gammainc_parameter(k + 1, m, order=1), lambda k, m: -gamma_density(k + 1, m))

chdtr: Operation = _function("chdtr", CHI_SQUARE, lambda xp, v, x: special(xp, "gammainc")(v / 2, x / 2))
chdtrc: Operation = _function("chdtrc", CHI_SQUARE, lambda xp, v, x: special(xp, "gammaincc")(v / 2, x / 2), -1.0)
chdtri: Operation = _inverse("chdtri", CHI_SQUARE, 1, -1.0)
chdtriv: Operation = _inverse("chdtriv", CHI_SQUARE, 0)
gdtr: Operation = _function("gdtr", GAMMA, lambda xp, a, b, x: special(xp, "gammainc")(b, a * x))
gdtrc: Operation = _function("gdtrc", GAMMA, lambda xp, a, b, x: special(xp, "gammaincc")(b, a * x), -1.0)
gdtria: Operation = _inverse("gdtria", GAMMA, 0)
gdtrib: Operation = _inverse("gdtrib", GAMMA, 1)
gdtrix: Operation = _inverse("gdtrix", GAMMA, 2)
pdtr: Operation = _function("pdtr", POISSON, lambda xp, k, m: special(xp, "gammaincc")(xp.floor(k) + 1, m))
pdtrc: Operation = _function("pdtrc", POISSON, lambda xp, k, m: special(xp, "gammainc")(xp.floor(k) + 1, m), -1.0)
pdtri: Operation = _inverse("pdtri", POISSON, 1)
pdtrik: Operation = _inverse("pdtrik", POISSON_REAL, 0)

# ---- incomplete beta functions -------------------------------------------------------------------------------

BETA: Partials = (
    lambda a, b, x: betainc_parameter(a, b, x, orders=(1, 0)),
    lambda a, b, x: betainc_parameter(a, b, x, orders=(0, 1)),
    lambda a, b, x: beta_density(a, b, x),
)


def _ratio(n: Any, d: Any, x: Any) -> Any:
    """Where ``fdtr`` evaluates the incomplete beta function."""
    return n * x / (d + n * x)


def _ratio_density(n: Any, d: Any, x: Any) -> Any:
    """The smaller of the ratio and what is left of 1 is what the density is made of, or digits are lost."""
    above, total = n * x, d + n * x
    upper = less(d, above)
    first, second = where(upper, d, n), where(upper, n, d)
    return beta_density(0.5 * first, 0.5 * second, where(upper, d, above) / total) / total / total


FISHER: Partials = (
    lambda n, d, x: (
        0.5 * betainc_parameter(0.5 * n, 0.5 * d, _ratio(n, d, x), orders=(1, 0)) + d * x * _ratio_density(n, d, x)
    ),
    lambda n, d, x: (
        0.5 * betainc_parameter(0.5 * n, 0.5 * d, _ratio(n, d, x), orders=(0, 1)) - n * x * _ratio_density(n, d, x)
    ),
    lambda n, d, x: n * d * _ratio_density(n, d, x),
)


def _binomial_slope(k: Any, n: Any, p: Any) -> Any:
    """In the probability of an event; of all n events it is certain that there are not more."""
    k, all_events = floor(k), less(n, floor(k) + 1)
    return where(all_events, 0, -beta_density(k + 1, where(all_events, 1, n - k), p))


BINOMIAL: Partials = ("k", "n", _binomial_slope)
#: For the inverses in the numbers of events and trials, which are real numbers there.
BINOMIAL_REAL: Partials = (
    lambda k, n, p: (
        betainc_parameter(n - k, k + 1, 1 - p, orders=(0, 1)) - betainc_parameter(n - k, k + 1, 1 - p, orders=(1, 0))
    ),
    lambda k, n, p: betainc_parameter(n - k, k + 1, 1 - p, orders=(1, 0)),
    lambda k, n, p: -beta_density(k + 1, n - k, p),
)
NEGATIVE_BINOMIAL_REAL: Partials = (
    lambda k, n, p: betainc_parameter(n, k + 1, p, orders=(0, 1)),
    lambda k, n, p: betainc_parameter(n, k + 1, p, orders=(1, 0)),
    lambda k, n, p: beta_density(n, k + 1, p),
)
NEGATIVE_BINOMIAL: Partials = ("k", "n", lambda k, n, p: beta_density(n, floor(k) + 1, p))


def _of_ratio(xp: Any, n: Any, d: Any, x: Any) -> Any:
    return special(xp, "betainc")(n / 2, d / 2, _ratio(n, d, x))


def _binomial_of_jax(xp: Any, k: Any, n: Any, p: Any) -> Any:
    """``bdtrc`` on JAX arrays."""
    k = xp.floor(k)
    return xp.where(k >= n, 0.0, special(xp, "betainc")(k + 1, xp.maximum(n - k, 1), p))


fdtr: Operation = _function("fdtr", FISHER, _of_ratio)
fdtrc: Operation = _function("fdtrc", FISHER, lambda xp, n, d, x: _of_ratio(xp, d, n, 1 / x), -1.0)
fdtri: Operation = _inverse("fdtri", FISHER, 2)
fdtridfd: Operation = _inverse("fdtridfd", FISHER, 1)
btdtria: Operation = _inverse("btdtria", BETA, 0)
btdtrib: Operation = _inverse("btdtrib", BETA, 1)
bdtr: Operation = _function("bdtr", BINOMIAL, lambda xp, k, n, p: 1 - _binomial_of_jax(xp, k, n, p))
bdtrc: Operation = _function("bdtrc", BINOMIAL, _binomial_of_jax, -1.0)
bdtri: Operation = _inverse("bdtri", BINOMIAL, 2)
nbdtr: Operation = _function(
    "nbdtr", NEGATIVE_BINOMIAL, lambda xp, k, n, p: special(xp, "betainc")(n, xp.floor(k) + 1, p)
)
nbdtrc: Operation = _function(
    "nbdtrc", NEGATIVE_BINOMIAL, lambda xp, k, n, p: special(xp, "betainc")(xp.floor(k) + 1, n, 1 - p), -1.0
)
nbdtri: Operation = _inverse("nbdtri", NEGATIVE_BINOMIAL, 2)
bdtrin: Operation = _inverse("bdtrin", BINOMIAL_REAL, 1)
nbdtrik: Operation = _inverse("nbdtrik", NEGATIVE_BINOMIAL_REAL, 0)
nbdtrin: Operation = _inverse("nbdtrin", NEGATIVE_BINOMIAL_REAL, 1)

# ---- others --------------------------------------------------------------------------------------------------


def _quantile_slope(ans: Any) -> Any:
    """The derivative of ``ndtri`` where its value is ``ans``."""
    return math.sqrt(2 * math.pi) * exp(0.5 * ans * ans)


#: The mean and the deviation of a normal distribution: ``x - std ndtri(p)``, ``(x - mn) / ndtri(p)``.
nrdtrimn: Operation = elementwise(
    "nrdtrimn",
    kernel("nrdtrimn", lambda xp, p, std, x: x - std * special(xp, "ndtri")(p)),
    dx=lambda x, y: -y * _quantile_slope(ndtri(x)),
    dy=lambda x: -ndtri(x),
    dz=1,
)
nrdtrisd: Operation = elementwise(
    "nrdtrisd",
    kernel("nrdtrisd", lambda xp, mn, p, x: (x - mn) / special(xp, "ndtri")(p)),
    dx=lambda y: -1 / ndtri(y),
    dy=lambda y, ans: -ans * _quantile_slope(ndtri(y)) / ndtri(y),
    dz=lambda y: 1 / ndtri(y),
)


def _tukey_rate(y: Any, ans: Any) -> Any:
    """The derivative of the quantile function ``boxcox(p, y) - boxcox(1 - p, y)`` in p."""
    return power(ans, y - 1) + power(1 - ans, y - 1)


tklmbda: Operation = elementwise(
    "tklmbda",
    kernel("tklmbda"),
    dx=lambda y, ans: 1 / _tukey_rate(y, ans),
    dy=lambda y, ans: (boxcox_slope(log1p(-ans), y) - boxcox_slope(log(ans), y)) / _tukey_rate(y, ans),
)
