"""Student's distribution function and its inverses, differentiable in the degrees of freedom to any order.

The derivatives of ``stdtr(df, t)`` in df are integrals of the density times Bell's polynomials in the derivatives of
its logarithm. They are 0 at infinity as at t = 0, so for abs(t) > 1 the tail beyond t is integrated, else what is
between 0 and t, both by ``quadrature.tail`` in the logarithm of t.
"""

from __future__ import annotations

import math
from typing import Any

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import isinf, where
from funcgrad.primitives.elementwise import expm1, log1p
from funcgrad.scipy.special.operations.kernels import derivatives, kernel
from funcgrad.scipy.special.operations.partials import in_double, pointwise
from funcgrad.scipy.special.operations.quadrature import DEPTH, polynomial, tail

__all__ = ["stdtr", "stdtr_parameter", "stdtridf", "stdtrit", "student_constant", "student_density"]

#: ``log(gamma((v+1)/2) / gamma(v/2) / sqrt(v/2))`` in powers of 1/v: 1, 3, 5, ...
_RATIO = (-1 / 4, 1 / 24, -1 / 20, 17 / 112, -31 / 36, 691 / 88)
_LARGE = 40.0


def _log_ratio(xp: Any, v: Any, order: int) -> Any:
    """The derivative of ``log(gamma((v+1)/2) / gamma(v/2) / sqrt(v/2))`` of this order."""
    large = v > _LARGE
    near, far = xp.where(large, 1, v), xp.where(large, v, _LARGE)
    series = 0
    for i, c in reversed(list(enumerate(_RATIO))):
        factor = (-1) ** order * math.factorial(2 * i + order) // math.factorial(2 * i)
        series = series / (far * far) + c * factor
    series = series / far ** (order + 1)
    if order == 0:
        gammaln = special(xp, "gammaln")
        exact = gammaln((near + 1) / 2) - gammaln(near / 2) - xp.log(near / 2) / 2
    else:
        exact = _polygamma(xp, order - 1, (near + 1) / 2) - _polygamma(xp, order - 1, near / 2)
        exact = exact / 2**order + (-1) ** order * math.factorial(order - 1) / (2 * near**order)
    return xp.where(large, series, exact)


def _polygamma(xp: Any, n: int, x: Any) -> Any:
    return special(xp, "polygamma")(n, x) if n else special(xp, "digamma")(x)


def _density(xp: Any, v: Any, t: Any) -> Any:
    def compute(v: Any, t: Any) -> Any:
        inside = v > 0
        w = xp.where(inside, v, 1)
        log_density = _log_ratio(xp, w, 0) - (w + 1) / 2 * xp.log1p(t * t / w) - math.log(2 * math.pi) / 2
        return xp.where(inside, xp.exp(log_density), math.nan)

    return in_double(xp, compute, v, t)


#: ``student_constant(v, *, order)``: the derivative of this order of the logarithm of the density's constant.
student_constant: Operation = derivatives("student_constant", None, _log_ratio)


def _density_slope(v: Any, t: Any) -> Any:
    """The derivative of the logarithm of the density in v."""
    square = t * t
    return student_constant(v, order=1) + 0.5 * ((square / v) * ((v + 1) / (v + square)) - log1p(square / v))


def _student_slope(v: Any, t: Any) -> Any:
    return t * ((v + 1) / (v + t * t))


#: ``student_density(v, t)``: the density of Student's distribution with v degrees of freedom.
student_density: Operation = elementwise(
    "student_density",
    _density,
    dx=lambda x, y, ans: ans * _density_slope(x, y),
    dy=lambda x, y, ans: -ans * _student_slope(x, where(isinf(y), 0, y)),
)


def _length(xp: Any, v: Any, square: Any) -> Any:
    """Where ``(v+1)/2 log((v + t**2 exp(2s)) / (v + t**2)) - s`` is ``DEPTH``, for t**2 >= 1, by Newton's method."""
    q = square / (v + square)
    s = (DEPTH + (v + 1) / 2 * -xp.log(q)) / v
    s = xp.minimum(s, 0.5 * xp.log1p(2 * (DEPTH + xp.sqrt(DEPTH * v)) / (v * q)) + DEPTH / v)
    for _ in range(6):
        rest = q + (1 - q) * xp.exp(-2 * s)
        s = s - ((v + 1) / 2 * (2 * s + xp.log(rest)) - s - DEPTH) / ((v + 1) * q / rest - 1)
    return s


def _parameter(xp: Any, v: Any, t: Any, order: int) -> Any:
    """The derivative in v of this order, for positive v and t."""
    outside = t >= 1
    length = xp.where(outside, _length(xp, v, xp.where(outside, t * t, 1)), DEPTH)
    bend = xp.where(outside, 0.5 * xp.log(v) - xp.log(t), 0)
    constants = [_log_ratio(xp, v, k)[..., None] for k in range(1, order + 1)]
    direction = xp.where(outside, 1.0, -1.0)[..., None]
    v_, start, limit = v[..., None], (2 * xp.log(t) - xp.log(v))[..., None], xp.log1p(t * t / v)[..., None]

    def integrand(s: Any) -> Any:
        u = start + 2 * direction * s
        log_sum = xp.maximum(u, 0) + xp.log1p(xp.exp(-xp.abs(u)))  # log(1 + t**2 / v), without overflow

        def slope(k: int, _: int) -> Any:
            if k == 1:
                return constants[0] + 0.5 * ((1 + 1 / v_) / (1 + xp.exp(-xp.maximum(u, -700))) - log_sum)
            powers = [(-1) ** (j - 1) * math.factorial(j - 1) * xp.expm1(-j * log_sum) / v_**j for j in (k, k - 1)]
            return constants[k - 1] - 0.5 * ((v_ + 1) * powers[0] + k * powers[1])

        return polynomial(slope, order) * xp.exp(direction * s - (v_ + 1) / 2 * (log_sum - limit))

    scale = t * xp.exp(_log_ratio(xp, v, 0) - (v + 1) / 2 * xp.log1p(t * t / v)) / math.sqrt(2 * math.pi)
    return xp.where(outside, -1.0, 1.0) * scale * tail(xp, integrand, length, bend)


def _stdtr_parameter(xp: Any, v: Any, t: Any, *, order: int) -> Any:
    def compute(v: Any, t: Any) -> Any:
        v, t = xp.broadcast_arrays(v, t)
        size = xp.abs(t)
        defined = (v > 0) & (v < math.inf) & (t == t)
        inside = defined & (size > 0) & (size < 1e150)
        found = xp.sign(t) * _parameter(xp, xp.where(inside, v, 1), xp.where(inside, size, 1), order)
        return xp.where(inside, found, xp.where(defined, 0, math.nan))

    return in_double(xp, compute, v, t)


def _density_parameter(x: Any, y: Any, *, order: int) -> Any:
    """The derivative of the density in v of this order."""
    log_sum = log1p(y * y / x)

    def slope(k: int, _: int) -> Any:
        if k == 1:
            return _density_slope(x, y)
        powers = [(-1) ** (j - 1) * math.factorial(j - 1) * expm1(-j * log_sum) / x**j for j in (k, k - 1)]
        return student_constant(x, order=k) - 0.5 * ((x + 1) * powers[0] + k * powers[1])

    return student_density(x, y) * polynomial(slope, order)


#: ``stdtr_parameter(v, t, *, order)``: the derivative of ``stdtr`` in v of this order, 1 or more.
stdtr_parameter: Operation = pointwise(
    "stdtr_parameter",
    _stdtr_parameter,
    lambda x, y, *, order: stdtr_parameter(x, y, order=order + 1),
    _density_parameter,
)


def _stdtr_of_jax(xp: Any, v: Any, t: Any) -> Any:
    tails = special(xp, "betainc")(v / 2, 0.5, v / (v + t * t)) / 2
    return xp.where(t < 0, tails, 1 - tails)


stdtr: Operation = elementwise(
    "stdtr",
    kernel("stdtr", _stdtr_of_jax),
    dx=lambda x, y: stdtr_parameter(x, y, order=1),
    dy=lambda x, y: student_density(x, y),
)
stdtrit: Operation = elementwise(
    "stdtrit",
    kernel("stdtrit"),
    dx=lambda x, ans: -stdtr_parameter(x, ans, order=1) / student_density(x, ans),
    dy=lambda x, ans: 1 / student_density(x, ans),
)
stdtridf: Operation = elementwise(
    "stdtridf",
    kernel("stdtridf"),
    dx=lambda y, ans: 1 / stdtr_parameter(ans, y, order=1),
    dy=lambda y, ans: -student_density(ans, y) / stdtr_parameter(ans, y, order=1),
)
