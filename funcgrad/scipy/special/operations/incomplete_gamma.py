"""The regularised incomplete gamma functions and their inverses, differentiable in both arguments to any order.

With the density ``p(t) = t**(a-1) exp(-t) / gamma(a)`` the derivatives of ``gammainc(a, x)`` in a are the integrals
from 0 to x of ``p(t) B_n(t)``, where B_n is Bell's polynomial in ``log(t) - digamma(a)`` and the negative polygammas
of a. Over all t they integrate to 0, so either tail will do; the one beyond x, seen from the mode, is integrated by
``quadrature.tail``. That needs no series, and is as good for large a as for small.
"""

from __future__ import annotations

import math
from typing import Any

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import equal, greater, where
from funcgrad.primitives.elementwise import log
from funcgrad.scipy.special.operations.gamma_functions import digamma, psi
from funcgrad.scipy.special.operations.partials import in_double, of_scipy, pointwise, stirling_error
from funcgrad.scipy.special.operations.quadrature import DEPTH, bell, tail

__all__ = ["gamma_density", "gammainc", "gammainc_parameter", "gammaincc", "gammainccinv", "gammaincinv"]


def _log_density(xp: Any, a: Any, x: Any) -> Any:
    """``a log(x) - x - gammaln(a)``; around a large a the big terms cancel before rounding (C. Loader, 2000)."""
    ratio = (x - a) / a
    deviance = xp.where(xp.abs(ratio) < 0.5, xp.log1p(ratio), xp.log(x / a)) - ratio
    stirling = a * deviance - stirling_error(xp, a) + 0.5 * (xp.log(a) - math.log(2 * math.pi))
    return xp.where(a > 10, stirling, a * xp.log(x) - x - special(xp, "gammaln")(a))


def _density(xp: Any, a: Any, x: Any) -> Any:
    def compute(a: Any, x: Any) -> Any:
        inside = (a > 0) & (x > 0)
        b, t = xp.where(inside, a, 1), xp.where(inside & (x < math.inf), x, 1)
        found = xp.where(x == math.inf, 0, xp.exp(_log_density(xp, b, t) - xp.log(t)))
        return xp.where(inside, found, xp.where(x == 0, xp.where(a > 1, 0, xp.where(a == 1, 1, math.inf)), math.nan))

    return in_double(xp, compute, a, x)


def _density_slope(a: Any, x: Any, ans: Any) -> Any:
    """``ans * ((a - 1) / x - 1)``; at 0 the density of ``a - 1`` less ``ans``, which is the same."""
    origin, above = equal(x, 0), greater(a, 1)
    at_zero = where(above, gamma_density(where(above, a - 1, 1), x), 0) - ans
    return where(origin, at_zero, ans * ((a - 1) / where(origin, 1, x) - 1))


#: ``gamma_density(a, x)``: the density ``x**(a-1) exp(-x) / gamma(a)``.
gamma_density: Operation = elementwise(
    "gamma_density",
    _density,
    dx=lambda x, y, ans: ans * (log(y) - digamma(x)),
    dy=lambda x, y, ans: _density_slope(x, y, ans),
)


def _lower_length(xp: Any, a: Any, x: Any) -> Any:
    """Where ``a s - x (1 - exp(-s))`` is ``DEPTH``, for x <= a, by Newton's method from the right."""
    v = DEPTH / a
    s = v + xp.sqrt(2 * v)
    for _ in range(5):
        s = s - (a * s + x * xp.expm1(-s) - DEPTH) / (a - x * xp.exp(-s))
    return s


def _upper_length(xp: Any, a: Any, x: Any) -> Any:
    """Where ``(t - x) - a log(t / x)``, with ``t = x exp(s)``, is ``DEPTH``, for x >= a."""
    t = x + DEPTH + xp.sqrt(2 * DEPTH * x)
    for _ in range(5):
        t = t - ((t - x) - a * xp.log(t / x) - DEPTH) * t / (t - a)
    return xp.log(t / x)


def _parameter(xp: Any, a: Any, x: Any, order: int) -> Any:
    """The derivative in a of this order, for positive a and x."""
    upper = x >= a
    sign = xp.where(upper, 1.0, -1.0)
    below, above = xp.where(upper, a, x), xp.where(upper, x, a)
    length = xp.where(upper, _upper_length(xp, a, above), _lower_length(xp, a, below))
    bend = xp.where(upper, -xp.log(x), 0)
    slopes = [-special(xp, "digamma")(a + 1)]
    slopes += [-special(xp, "polygamma")(k - 1, a + 1) for k in range(2, order + 1)]
    p, t0, log_t0, direction, *wide = [v[..., None] for v in (a, x, xp.log(x), sign, *slopes)]

    def integrand(s: Any) -> Any:
        z = direction * s
        factor = bell(lambda k, _: wide[k - 1] + (log_t0 + z if k == 1 else 0), order, first=p)
        return factor * xp.exp(p * z - t0 * xp.expm1(z))

    return -sign * xp.exp(_log_density(xp, a, x)) * tail(xp, integrand, length, bend)


def _gammainc_parameter(xp: Any, a: Any, x: Any, *, order: int) -> Any:
    def compute(a: Any, x: Any) -> Any:
        a, x = xp.broadcast_arrays(a, x)
        inside = (a > 0) & (x > 0) & (x < math.inf) & (a < math.inf)
        found = _parameter(xp, xp.where(inside, a, 1), xp.where(inside, x, 1), order)
        ends = (x == 0) | (x == math.inf) | ((a == math.inf) & (x > 0))
        return xp.where(inside, found, xp.where((a > 0) & ends, 0, math.nan))

    return in_double(xp, compute, a, x)


def _density_parameter(x: Any, y: Any, *, order: int) -> Any:
    """The derivative of the density in a of this order."""

    def slope(k: int, _: int) -> Any:
        return log(y) - digamma(x + 1) if k == 1 else -psi(x + 1, order=k - 1)

    return gamma_density(x, y) * bell(slope, order, first=x)


#: ``gammainc_parameter(a, x, *, order)``: the derivative of ``gammainc`` in a of this order, 1 or more.
gammainc_parameter: Operation = pointwise(
    "gammainc_parameter",
    _gammainc_parameter,
    lambda x, y, *, order: gammainc_parameter(x, y, order=order + 1),
    _density_parameter,
)

gammainc: Operation = of_scipy(
    "gammainc", dx=lambda x, y: gammainc_parameter(x, y, order=1), dy=lambda x, y: gamma_density(x, y)
)
gammaincc: Operation = of_scipy(
    "gammaincc", dx=lambda x, y: -gammainc_parameter(x, y, order=1), dy=lambda x, y: -gamma_density(x, y)
)

gammaincinv: Operation = of_scipy(
    "gammaincinv",
    dx=lambda x, ans: -gammainc_parameter(x, ans, order=1) / gamma_density(x, ans),
    dy=lambda x, ans: 1 / gamma_density(x, ans),
)
gammainccinv: Operation = of_scipy(
    "gammainccinv",
    dx=lambda x, ans: -gammainc_parameter(x, ans, order=1) / gamma_density(x, ans),
    dy=lambda x, ans: -1 / gamma_density(x, ans),
)
