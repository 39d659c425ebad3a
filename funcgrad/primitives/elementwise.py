"""Transcendental functions: exponentials, logarithms, circular and hyperbolic functions, and sinc.

The derivatives neither overflow nor cancel where the true value is finite. On a branch cut of a complex
function they belong to the same side as the value. NumPy tells the sides apart by the sign of a zero,
which ``x - -1`` keeps and ``1 + x`` does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.linear import conj, real
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.comparison import equal, where

LN2, LN10 = math.log(2.0), math.log(10.0)
RADIAN, DEGREE = 180.0 / math.pi, math.pi / 180.0


def is_complex(x: Any) -> bool:
    """Whether ``x`` has a complex dtype."""
    return dtype_of(x).kind == "c"


def conjugated(x: Any) -> Any:
    """Return ``x``, conjugated if it is complex."""
    return conj(x) if is_complex(x) else x


def real_part(x: Any) -> Any:
    """Return the real part of ``x`` if it is complex, else ``x``."""
    return real(x) if is_complex(x) else x


def is_regular(x: Any) -> bool:
    """Whether ``x`` is known to be a NumPy array or float64 without zeros, infinities and NaNs."""
    if type(x) is np.float64:
        return x != 0 and math.isfinite(x)
    count = np.count_nonzero
    return type(x) is np.ndarray and count(x) == x.size and count(np.isfinite(x)) == x.size


#: At a complex 0 both parts of the derivative are NaN; ``t / 0`` would give (infinity, NaN), which has a direction.
sqrt: Operation = elementwise("sqrt", dx=lambda t, ans: t * (0.5 / ans) if is_complex(ans) else t * 0.5 / ans)

exp: Operation = elementwise("exp", dx="ans")
exp2: Operation = elementwise("exp2", dx=lambda ans: ans * LN2)
expm1: Operation = elementwise("expm1", dx=exp)
log: Operation = elementwise("log", dx=lambda t, x: t / x)
log2: Operation = elementwise("log2", dx=lambda t, x: t * (1 / LN2) / x)
log10: Operation = elementwise("log10", dx=lambda t, x: t * (1 / LN10) / x)
log1p: Operation = elementwise("log1p", dx=lambda t, x: t / (x - -1.0))


#: NumPy accepts an array without axes faster than a Python number, which it has to convert first.
_ONE = np.array(1.0)


def _logistic(xp: Any, x: Any) -> Any:
    if type(x) is np.ndarray and x.dtype.kind == "f" and x.ndim:
        if x.itemsize > 2 and 0 < x.size < 1_000 and x.item(x.argmin()) > -80.0:  # faster than ``errstate``
            power = np.exp(-x)
        else:
            with np.errstate(over="ignore"):  # where exp(-x) is infinite, its reciprocal is the correct 0
                power = np.exp(-x)
        power += _ONE if power.dtype is _ONE.dtype else 1.0
        return np.reciprocal(power, out=power)
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1, small) / (1 + small)


def _slope_of_logistic(ans: Any) -> Any:
    return ans * ((_ONE if type(ans) is np.ndarray and ans.dtype is _ONE.dtype else 1.0) - ans)


#: ``1 / (1 + exp(-x))``, without overflow.
logistic: Operation = elementwise("logistic", _logistic, dx=_slope_of_logistic)


def _above(xp: Any, x: Any, y: Any) -> Any:
    """Return ``x - y``, but minus infinity where both are: two terms of exp(-inf) = 0 have no share in their sum."""
    differs = xp.logical_or(x != y, x > -xp.inf)
    if xp is not np:
        return xp.where(differs, x - y, -xp.inf)
    out = np.full(np.shape(differs), -np.inf, np.result_type(x, y))
    return np.subtract(x, y, out=out, where=differs)[()]


_excess: Operation = elementwise("excess", _above, dx=1, dy=-1)
logaddexp: Operation = elementwise(
    "logaddexp", dx=lambda x, y: logistic(_excess(x, y)), dy=lambda x, y: logistic(_excess(y, x))
)
logaddexp2: Operation = elementwise(
    "logaddexp2", dx=lambda x, y: logistic(_excess(x, y) * LN2), dy=lambda x, y: logistic(_excess(y, x) * LN2)
)

cos: Operation = elementwise("cos", dx=lambda x: -sin(x))
sin: Operation = elementwise("sin", dx=cos)
tan: Operation = elementwise("tan", dx=lambda ans: ans * ans + 1.0)
cosh: Operation = elementwise("cosh", dx=lambda x: sinh(x))
sinh: Operation = elementwise("sinh", dx=cosh)


def _one_minus_square(xp: Any, x: Any) -> Any:
    """Return ``1 - x * x``, with one new array instead of two."""
    squared = x * x
    if type(squared) is not np.ndarray:
        return 1.0 - squared
    if squared.size < 1_000 and squared.dtype is _ONE.dtype:
        return _ONE - squared  # faster than a call with a keyword
    return np.subtract(_ONE if squared.dtype is _ONE.dtype else 1.0, squared, out=squared)


one_minus_square: Operation = elementwise("one_minus_square", _one_minus_square, dx=lambda x: x * -2.0)


def _slope_of_tanh(ans: Any) -> Any:
    if type(ans) is not np.ndarray:
        return one_minus_square(ans)
    if ans.dtype is _ONE.dtype and ans.size < 1_000:
        return _ONE - ans * ans
    return _one_minus_square(np, ans)


tanh: Operation = elementwise("tanh", dx=_slope_of_tanh)

deg2rad: Operation = elementwise("deg2rad", dx=DEGREE)
radians: Operation = elementwise("radians", dx=DEGREE)
rad2deg: Operation = elementwise("rad2deg", dx=RADIAN)
degrees: Operation = elementwise("degrees", dx=RADIAN)


def _cosine_of_arcsin(x: Any) -> Any:
    """Return ``sqrt(1 - x**2)``, without cancellation near -1 and 1."""
    return sqrt(-(x - 1) * (x - -1)) if is_complex(x) else sqrt((1 - x) * (x + 1))


def _secant_of_arctan(t: Any, x: Any) -> Any:
    """Return ``t / (1 + x**2)``."""
    if is_complex(x):
        return t / (x * x + 1)
    h = hypot(x, 1)
    return t / h / h


arcsin: Operation = elementwise("arcsin", dx=lambda t, x: t / _cosine_of_arcsin(x))
arccos: Operation = elementwise("arccos", dx=lambda t, x: -t / _cosine_of_arcsin(x))
arctan: Operation = elementwise("arctan", dx=_secant_of_arctan)
arcsinh: Operation = elementwise("arcsinh", dx=lambda t, x: t / (sqrt(x * x - -1) if is_complex(x) else hypot(x, 1)))
arccosh: Operation = elementwise("arccosh", dx=lambda t, x: t / sqrt(x - 1) / sqrt(x - -1))
arctanh: Operation = elementwise("arctanh", dx=lambda t, x: t / ((1 - x) * (x + 1)))


def _direction(xp: Any, x: Any, y: Any) -> Any:
    """Return ``x / hypot(x, y)``; where x or y is infinite, its limit in the direction that ``arctan2`` takes."""
    r = xp.hypot(x, y)
    if xp is np and is_regular(r):
        return x / r
    x, y = xp.asarray(x, r.dtype), xp.asarray(y, r.dtype)
    of_infinite = [xp.where(xp.isinf(z), xp.copysign(xp.ones_like(r), z), xp.zeros_like(r)) for z in (x, y)]
    infinite = xp.isinf(x) | xp.isinf(y)
    far = xp.isinf(r)  # ``hypot`` overflows where neither x nor y is infinite
    x, y = [xp.where(infinite, u, xp.where(far, z * 0.25, z)) for u, z in zip(of_infinite, (x, y), strict=True)]
    r = xp.hypot(x, y)
    origin = r == 0
    return xp.where(origin, xp.nan, x / xp.where(origin, 1, r)).astype(r.dtype)[()]


#: ``direction(x, y)``: ``x / hypot(x, y)``, the cosine of ``arctan2(y, x)``; NaN at the origin. Its partial derivatives
#: are those of the cosine, without a difference of nearly equal numbers.
direction: Operation = elementwise(
    "direction",
    _direction,
    dx=lambda t, x, y: t * direction(y, x) * (direction(y, x) / hypot(x, y)),
    dy=lambda t, x, y: -t * direction(y, x) * (direction(x, y) / hypot(x, y)),
)


def _hypot_partial(x: Any, y: Any, ans: Any) -> Any:
    """Return ``x / ans``, and 1/2 at the origin."""
    if is_regular(ans):
        return x / ans
    origin = equal(ans, 0)
    return where(origin, 0.5, direction(where(origin, 1, x), y))


def _arctan2_partial(t: Any, x: Any, y: Any) -> Any:
    """Return ``t * y / (x**2 + y**2)``; the squares alone could overflow or underflow."""
    r = hypot(x, y)
    return t * (y / r) / r if is_regular(r) else t * direction(y, x) / r


hypot: Operation = elementwise("hypot", dx=_hypot_partial, dy=lambda x, y, ans: _hypot_partial(y, x, ans))
arctan2: Operation = elementwise("arctan2", dx=_arctan2_partial, dy=lambda t, x, y: -_arctan2_partial(t, y, x))


def _sinc(xp: Any, x: Any, *, order: int) -> Any:
    """Return the derivative of ``sin(pi x) / (pi x)`` of this order.

    With u = pi x and f(u) = sin(u) / u, differentiating u f = sin n times gives the recurrence
    ``u f_n = sin_n - n f_(n-1)``. It loses accuracy for small u, where the Taylor series is used instead.
    """
    if order == 0:
        return xp.sinc(x)
    u = math.pi * x
    limit = max(1.0, order / 2)
    small = xp.abs(u) < limit
    far, near = xp.where(small, 1, u), xp.where(small, u, 0)
    cycle = [xp.sin(far), xp.cos(far)]
    cycle += [-cycle[0], -cycle[1]]
    recurrent = cycle[0] / far
    for n in range(1, order + 1):
        recurrent = (cycle[n % 4] - n * recurrent) / far
    square, series = near * near, 0
    for k in reversed(range((order + 1) // 2, (order + 1) // 2 + 10 + order)):
        series = series * square + (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - order))
    return math.pi**order * xp.where(small, near * series if order % 2 else series, recurrent)


#: ``sinc(x, *, order)``: the derivative of ``sinc`` of this order. Derivatives at 0 are exact to any order.
sinc: Operation = primitive(
    "sinc",
    _sinc,
    vjps=[lambda ct, x, *, order: ct * sinc(x, order=order + 1)],
    jvps=[lambda t, x, *, order: t * sinc(x, order=order + 1)],
    batch="elementwise",
)
