"""Regularised incomplete gamma and beta functions and their inverses, differentiable in all arguments.

The density of the gamma distribution is ``p(t) = t**(a-1) exp(-t) / gamma(a)``. Derivatives of any order of
``gammainc(a, x)`` in a are the integrals from 0 to x of ``p(t) B_n(t)``, where B_n is Bell's polynomial in
``log(t) - digamma(a)`` and the negative polygammas of a. The integral over all t is 0, so either tail will do; ``tail``
integrates the tail beyond x, seen from the mode. No series is needed, and large a lose no accuracy.

The density of the beta distribution is ``p(t) = t**(a-1) (1-t)**(b-1) / beta(a, b)``. Derivatives of
``betainc(a, b, x)`` in a and b are the integrals from 0 to x of ``p(t)`` times Bell's polynomials in the derivatives of
its logarithm; the variable is ``z = log(t / (1 - t))``. Continued fractions differentiated term by term (R. J. Boik and
J. F. Robison-Cox, J. Stat. Software 3(1), 1998) give the first two orders; this scheme gives all, in a number of steps
that does not depend on the parameters.

``tail`` integrates by Gauss's formula on panels. In the logarithmic variable z (of t, or of t / (1 - t)) the density
is log-concave and analytic: it bends near its mode and near one more place, and is a pure exponential elsewhere.
Therefore a few panels, with ends that follow from the parameters, integrate every tail to about 13 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import power
from funcgrad.primitives.comparison import equal, greater, logical_or, where
from funcgrad.primitives.elementwise import log, log1p
from funcgrad.scipy.special.operations.gamma_functions import digamma, psi
from funcgrad.scipy.special.operations.partials import (
    Partials,
    distribution,
    in_double,
    inverse,
    log_beta,
    may_hold,
    of_all_orders,
    pointwise,
    polygamma,
    stirling_error,
)


def _log_density_of_beta(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Return ``a log(x) + b log(1-x) - betaln(a, b)``; for large a and b big terms cancel before they are rounded."""
    total = a + b
    surplus = x * total - a
    surplus = xp.where(b < a, b - (1 - x) * total, surplus)
    left, right = surplus / a, -surplus / b
    middle = (xp.abs(left) < 0.5) & (xp.abs(right) < 0.5)
    safe_left, safe_right = xp.where(middle, left, 0), xp.where(middle, right, 0)
    deviance = xp.where(
        middle,
        a * xp.log1p(safe_left) + b * xp.log1p(safe_right),
        a * xp.log(x * total / a) + b * (xp.log1p(-x) + xp.log(total / b)),
    )
    errors = stirling_error(xp, total) - stirling_error(xp, a) - stirling_error(xp, b)
    stirling = deviance + errors + 0.5 * xp.log(a / total * b / (2 * math.pi))
    plain = a * xp.log(x) + b * xp.log1p(-x) - log_beta(xp, a, b)
    return xp.where((a > 10) & (b > 10), stirling, plain)


def _density_of_beta(xp: Any, a: Any, b: Any, x: Any) -> Any:
    def compute(a: Any, b: Any, x: Any) -> Any:
        inside = (a > 0) & (b > 0) & (x > 0) & (x < 1)
        p, q, t = xp.where(inside, a, 1), xp.where(inside, b, 1), xp.where(inside, x, 0.5)
        found = xp.exp(_log_density_of_beta(xp, p, q, t) - xp.log(t) - xp.log1p(-t))
        edge = xp.where(x == 0, _at_edge(xp, a, b), xp.where(x == 1, _at_edge(xp, b, a), math.nan))
        return xp.where(inside, found, xp.where((a > 0) & (b > 0), edge, math.nan))

    return in_double(xp, compute, a, b, x)


def _at_edge(xp: Any, a: Any, b: Any) -> Any:
    return xp.where(a > 1, 0.0, xp.where(a == 1, b, math.inf))


#: ``beta_density(a, b, x)``: density ``x**(a-1) (1-x)**(b-1) / beta(a, b)``.
beta_density: Operation = elementwise(
    "beta_density",
    _density_of_beta,
    dx=lambda x, y, z, ans: ans * _slope(x, y, log(z), 1, 0),
    dy=lambda x, y, z, ans: ans * _slope(y, x, log1p(-z), 1, 0),
    dz=lambda x, y, z, ans: _slope_of_beta(x, y, z, ans),
)


def _slope_of_beta(a: Any, b: Any, x: Any, ans: Any) -> Any:
    """Return the slope of the density; at 0 and 1 the density may be 0, and the slope has smaller parameters."""
    start, stop = equal(x, 0), equal(x, 1)
    edge = logical_or(start, stop)
    if not may_hold(edge):
        return ans * ((a - 1) / x - (b - 1) / (1 - x))
    inner = where(edge, 0.5, x)
    inside = where(edge, 0, ans) * ((a - 1) / inner - (b - 1) / (1 - inner))
    low, high = where(start, x, 0), where(stop, x, 1)
    return where(start, _edge_slope(a, b, low), where(stop, -_edge_slope(b, a, 1 - high), inside))


def _edge_slope(a: Any, b: Any, x: Any) -> Any:
    """Return the slope of the density at x = 0."""
    above = greater(a, 1)
    steeper = (a + b - 1) * beta_density(where(above, a - 1, 1), b, x) - (b - 1) / (1 - x) * beta_density(a, b, x)
    level = where(equal(a, 1), -b * (b - 1) * power(1 - x, b - 2), -math.inf)
    return where(above, steeper, level)


def _slope(a: Any, b: Any, logarithm: Any, k: int, m: int) -> Any:
    """Return the derivative of ``a * logarithm + gammaln(a + b) - gammaln(a)``, k times in a and m times in b."""
    total = psi(a + b, order=k + m - 1)
    if m:
        return total
    slope = total - psi(a, order=k - 1)
    return logarithm + slope if k == 1 else slope


def _length(xp: Any, a: Any, b: Any, log_x: Any, log_y: Any) -> Any:
    """Return the length of the upper tail in z, from x at or beyond the mode ``a / (a + b)``; y is ``1 - x``.

    The exponent ``b (w + log(y)) - a log((1 - exp(-w)) / x)`` is convex in ``w = -log(1-t)``; Newton's method finds the
    w at which the exponent is ``DEPTH``.
    """
    bound, gaussian = (DEPTH - a * log_x) / b, DEPTH / b + xp.sqrt(2 * DEPTH / a) * xp.exp(log_x - log_y / 2)
    w = xp.minimum(bound, gaussian) - log_y
    for _ in range(6):
        value = b * (w + log_y) - a * (xp.log(-xp.expm1(-w)) - log_x)
        w = w - (value - DEPTH) / (b - a / xp.expm1(w))
    return w + xp.log(-xp.expm1(-w)) + log_y - log_x


def _softplus(xp: Any, z: Any) -> Any:
    return xp.maximum(z, 0) + xp.log1p(xp.exp(-xp.abs(z)))


def _parameter_of_beta(xp: Any, a: Any, b: Any, x: Any, i: int, j: int) -> Any:
    """Return the derivative of these orders in a and b, for positive a and b and 0 < x < 1."""
    upper = x * b >= a * (1 - x)
    sign = xp.where(upper, 1.0, -1.0)
    ends = xp.log(x), xp.log1p(-x)
    first, second = xp.where(upper, a, b), xp.where(upper, b, a)
    length = _length(xp, first, second, xp.where(upper, *ends), xp.where(upper, *ends[::-1]))
    start = ends[0] - ends[1]
    bend = -xp.log(xp.maximum(a + b, 1)) - sign * start
    slopes = {orders: slope[..., None] for orders, slope in _slopes(xp, a, b, i, j).items()}
    p, q, direction, z0, low, high = [v[..., None] for v in (a, b, sign, start, *ends)]

    def integrand(s: Any) -> Any:
        z = z0 + direction * s
        log_t, log_u = -_softplus(xp, -z), -_softplus(xp, z)
        logs = {(1, 0): log_t, (0, 1): log_u}
        factor = bell(lambda k, m: slopes[k, m] + logs.get((k, m), 0), i, j, first=p, second=q)
        return factor * xp.exp(p * (log_t - low) + q * (log_u - high))

    return -sign * xp.exp(_log_density_of_beta(xp, a, b, x)) * tail(xp, integrand, length, bend)


def _slopes(xp: Any, a: Any, b: Any, i: int, j: int) -> dict[tuple[int, int], Any]:
    """Return the derivatives up to these orders of ``gammaln(a + b) - gammaln(a + 1) - gammaln(b + 1)``."""
    total = {n: polygamma(xp, n, a + b) for n in range(i + j)}
    found = {(k, m): total[k + m - 1] for k in range(i + 1) for m in range(j + 1) if k + m}
    for k in range(1, i + 1):
        found[k, 0] = total[k - 1] - polygamma(xp, k - 1, a + 1)
    for m in range(1, j + 1):
        found[0, m] = total[m - 1] - polygamma(xp, m - 1, b + 1)
    return found


def _betainc_parameter(xp: Any, a: Any, b: Any, x: Any, *, orders: tuple[int, int]) -> Any:
    def compute(a: Any, b: Any, x: Any) -> Any:
        a, b, x = xp.broadcast_arrays(a, b, x)
        defined = (a > 0) & (b > 0) & (a < math.inf) & (b < math.inf)
        inside = defined & (x > 0) & (x < 1)
        safe = xp.where(inside, a, 1), xp.where(inside, b, 1), xp.where(inside, x, 0.5)
        found = _parameter_of_beta(xp, *safe, *orders)
        one_sided = (a > 0) & (b > 0) & ((a == math.inf) != (b == math.inf)) & (x > 0) & (x < 1)
        return xp.where(inside, found, xp.where((defined & ((x == 0) | (x == 1))) | one_sided, 0, math.nan))

    return in_double(xp, compute, a, b, x)


def _density_in_parameters(x: Any, y: Any, z: Any, *, orders: tuple[int, int]) -> Any:
    """Return the derivative of the density in a and b of these orders."""

    def slope(k: int, m: int) -> Any:
        return _slope(x + 1, y - 1, log(z), k, m) if k else _slope(y + 1, x - 1, log1p(-z), m, k)

    return beta_density(x, y, z) * bell(slope, *orders, first=x, second=y)


#: ``betainc_parameter(a, b, x, *, orders)``: derivative of ``betainc`` in a and b of these orders, not both 0.
betainc_parameter: Operation = of_all_orders("betainc_parameter", _betainc_parameter, 3, {2: _density_in_parameters})

_BETA: Partials = (
    lambda a, b, x: betainc_parameter(a, b, x, orders=(1, 0)),
    lambda a, b, x: betainc_parameter(a, b, x, orders=(0, 1)),
    lambda a, b, x: beta_density(a, b, x),
)
betainc: Operation = distribution("betainc", _BETA)
betaincc: Operation = distribution("betaincc", _BETA, lambda xp, a, b, x: special(xp, "betainc")(b, a, 1 - x), -1.0)
betaincinv: Operation = inverse("betaincinv", _BETA, 2)
betainccinv: Operation = inverse("betainccinv", _BETA, 2, -1.0)
btdtria: Operation = inverse("btdtria", _BETA, 0)
btdtrib: Operation = inverse("btdtrib", _BETA, 1)


#: Depth of a tail: the integral ends where the density has fallen by ``exp(-DEPTH)``.
DEPTH = 45.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
#: Distances of the ends of panels from the place where the density bends.
_EDGES = (-24.0, -3.0, 3.0, 24.0)


def tail(xp: Any, integrand: Callable[[Any], Any], length: Any, bend: Any) -> Any:
    """Return the integral of ``integrand`` from 0 to ``length``.

    Args:
        xp: the array namespace.
        integrand: a function of the distance from the start; its nodes are along a new last axis.
        length: the upper limit; an array.
        bend: the distance at which the integrand changes its exponential rate, if beyond the start; an array.

    Example:
        >>> tail(np, lambda s: np.exp(-s), np.array(45.0), np.array(0.0)).round(14)
        np.float64(1.0)
    """
    centre = xp.maximum(bend, 0)
    inner = [xp.clip(centre + edge, 0, length) for edge in _EDGES]
    ends = [0 * length, *inner, length]
    nodes, weights = xp.asarray((_NODES + 1) / 2, length.dtype), xp.asarray(_WEIGHTS / 2, length.dtype)
    widths = [b - a for a, b in pairwise(ends)]
    points = [a[..., None] + w[..., None] * nodes for a, w in zip(ends[:-1], widths, strict=True)]
    scales = [w[..., None] * weights for w in widths]
    return xp.sum(integrand(xp.concatenate(points, axis=-1)) * xp.concatenate(scales, axis=-1), axis=-1)


def bell(slope: Callable[[int, int], Any], i: int, j: int = 0, *, first: Any, second: Any = 1.0) -> Any:
    """Return ``d**i/da**i d**j/db**j`` of ``a b exp(g)``, over ``a b exp(g)``, from the derivatives of g.

    Derivatives of ``exp(g)`` give Bell's complete polynomials. The densities have the factors a and b, because in
    ``1 / gamma(a) = a / gamma(a + 1)`` the derivatives of the logarithm cancel for small a; here they are added.

    Args:
        slope: ``slope(k, m)``, the derivative of g of these orders.
        i: the order in a.
        j: the order in b.
        first: a.
        second: b.

    Example:
        >>> bell(lambda k, m: 2.0 if k == 1 else 3.0, 2, first=4.0)
        8.0
    """
    found = polynomial(slope, i, j)
    if i:
        found = found + i / first * polynomial(slope, i - 1, j)
    if j:
        found = found + j / second * polynomial(slope, i, j - 1)
    return found + i * j / (first * second) * polynomial(slope, i - 1, j - 1) if i and j else found


def polynomial(slope: Callable[[int, int], Any], i: int, j: int = 0) -> Any:
    """Return Bell's complete polynomial: ``d**i/da**i d**j/db**j exp(g) / exp(g)``, from the derivatives of g.

    Example:
        >>> polynomial(lambda k, m: 2.0 if k == 1 else 3.0, 2)
        7.0
    """
    if i == j == 0:
        return 1.0
    if i == 0:
        return polynomial(lambda k, m: slope(m, k), j, 0)
    return sum(
        math.comb(i - 1, k) * math.comb(j, m) * slope(k + 1, m) * polynomial(slope, i - 1 - k, j - m)
        for k in range(i)
        for m in range(j + 1)
    )


def _log_density(xp: Any, a: Any, x: Any) -> Any:
    """Return ``a log(x) - x - gammaln(a)``; near a large a big terms cancel before rounding (C. Loader, 2000)."""
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
    """Return ``ans * ((a - 1) / x - 1)``; at 0 the equal density of ``a - 1`` minus ``ans``."""
    origin, above = equal(x, 0), greater(a, 1)
    at_zero = where(above, gamma_density(where(above, a - 1, 1), x), 0) - ans
    return where(origin, at_zero, ans * ((a - 1) / where(origin, 1, x) - 1))


#: ``gamma_density(a, x)``: density ``x**(a-1) exp(-x) / gamma(a)``.
gamma_density: Operation = elementwise(
    "gamma_density",
    _density,
    dx=lambda x, y, ans: ans * (log(y) - digamma(x)),
    dy=lambda x, y, ans: _density_slope(x, y, ans),
)


def _lower_length(xp: Any, a: Any, x: Any) -> Any:
    """Return the s at which ``a s - x (1 - exp(-s))`` is ``DEPTH``, for x <= a, by Newton's method from the right."""
    v = DEPTH / a
    s = v + xp.sqrt(2 * v)
    for _ in range(5):
        s = s - (a * s + x * xp.expm1(-s) - DEPTH) / (a - x * xp.exp(-s))
    return s


def _upper_length(xp: Any, a: Any, x: Any) -> Any:
    """Return the s at which ``(t - x) - a log(t / x)``, with ``t = x exp(s)``, is ``DEPTH``, for x >= a."""
    t = x + DEPTH + xp.sqrt(2 * DEPTH * x)
    for _ in range(5):
        t = t - ((t - x) - a * xp.log(t / x) - DEPTH) * t / (t - a)
    return xp.log(t / x)


def _parameter(xp: Any, a: Any, x: Any, order: int) -> Any:
    """Return the derivative in a of this order, for positive a and x."""
    upper = x >= a
    sign = xp.where(upper, 1.0, -1.0)
    below, above = xp.where(upper, a, x), xp.where(upper, x, a)
    length = xp.where(upper, _upper_length(xp, a, above), _lower_length(xp, a, below))
    bend = xp.where(upper, -xp.log(x), 0)
    slopes = [-polygamma(xp, k, a + 1) for k in range(order)]
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
    """Return the derivative of the density in a of this order."""

    def slope(k: int, _: int) -> Any:
        return log(y) - digamma(x + 1) if k == 1 else -psi(x + 1, order=k - 1)

    return gamma_density(x, y) * bell(slope, order, first=x)


#: ``gammainc_parameter(a, x, *, order)``: derivative of ``gammainc`` in a of this order, 1 or more.
gammainc_parameter: Operation = pointwise(
    "gammainc_parameter",
    _gammainc_parameter,
    lambda x, y, *, order: gammainc_parameter(x, y, order=order + 1),
    _density_parameter,
)

_GAMMA: Partials = (lambda a, x: gammainc_parameter(a, x, order=1), lambda a, x: gamma_density(a, x))
gammainc: Operation = distribution("gammainc", _GAMMA)
gammaincc: Operation = distribution("gammaincc", _GAMMA, sign=-1.0)
gammaincinv: Operation = inverse("gammaincinv", _GAMMA, 1)
gammainccinv: Operation = inverse("gammainccinv", _GAMMA, 1, -1.0)
