"""Struve, Airy and spherical Bessel functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import greater, less, less_equal, logical_or, where
from funcgrad.primitives.elementwise import is_complex, sqrt
from funcgrad.scipy.special.operations.bessel import order_rate
from funcgrad.scipy.special.operations.partials import analytic, in_double, pointwise, refused

__all__ = ["airy", "airye", "bessel_jn_of", "modstruve", "spherical", "spherical_slope", "struve"]

# ---- Struve functions --------------------------------------------------------------------------------------


def _struve_term(xp: Any, k: int, v: Any, x: Any) -> Any:
    """The derivative of order k of ``(x / 2)**v / (2 * sqrt(pi) * gamma(v + 3/2))``."""
    factor = special(xp, "rgamma")(v + 1.5) / (2 * math.sqrt(math.pi))
    for j in range(k):
        factor = factor * (v - j) / 2
    return xp.where(factor == 0, 0, factor * (x / 2) ** xp.where(factor == 0, 0, v - k))


def _struve_series(xp: Any, k: int, v: Any, x: Any, sign: int) -> Any:
    """The derivative of order k by the power series, DLMF 11.2.1 and 11.2.2, for x between -1 and 1."""
    total, rgamma = 0.0, special(xp, "rgamma")
    for m in range(12):
        factor = sign**m * rgamma(m + 1.5) * rgamma(m + v + 1.5) / 2.0**k
        for j in range(k):
            factor = factor * (2 * m + v + 1 - j)
        power = xp.where(factor == 0, 0, 2 * m + v + 1 - k)
        total = total + xp.where(factor == 0, 0, factor * (x / 2) ** power)
    return total


def _struve_tail(xp: Any, k: int, v: Any, x: Any) -> Any:
    """The derivative of order k of Struve's function from ``H = Y + K``, DLMF 11.2.5 and 11.6.1, for large x."""
    size, total, yv = xp.abs(x), 0.0, special(xp, "yv")
    for j in range(k + 1):
        total = total + (-1) ** j * math.comb(k, j) * yv(v - k + 2 * j, size) / 2.0**k
    for m in range(12):
        factor = math.gamma(m + 0.5) / math.pi * special(xp, "rgamma")(v + 0.5 - m) / 2.0**k
        for j in range(k):
            factor = factor * (v - 2 * m - 1 - j)
        total = total + factor * (size / 2) ** (v - 2 * m - 1 - k)
    odd = xp.where(v == xp.rint(v), xp.where((v + k) % 2 == 0, -1.0, 1.0), math.nan)
    return xp.where(x < 0, odd * total, total)


def _struve(name: str, sign: int) -> Callable[..., Any]:
    """Derivatives in x by DLMF 11.4.23 and 11.4.24, for the modified function 11.4.25 and 11.4.26."""

    def fun(xp: Any, k: int, v: Any, x: Any) -> Any:
        if not k:
            return special(xp, name)(v, x)
        pair = fun(xp, k - 1, v - 1, x) + sign * fun(xp, k - 1, v + 1, x)
        ans = in_double(xp, lambda v, x: _struve_term(xp, k - 1, v, x), v, x) + pair / 2
        near = xp.abs(x) < 1  # there the terms cancel
        series = in_double(xp, lambda v, x: _struve_series(xp, k, v, xp.where(near, x, 0.5), sign), v, x)
        ans = xp.where(near, series, ans)
        far = (xp.abs(x) > 40 + 2 * xp.abs(v)) & (sign < 0)
        if not np.any(far):
            return ans
        beyond = in_double(xp, lambda v, x: _struve_tail(xp, k, v, xp.where(far, x, 1e3)), v, x)
        return xp.where(far & ~np.isnan(beyond), beyond, ans)

    return fun


#: ``struve(v, x, *, orders)``, see ``analytic``.
struve: Operation = analytic("struve", _struve("struve", -1), lambda xp, v, x: [order_rate(xp, v, x)])
modstruve: Operation = analytic("modstruve", _struve("modstruve", 1), lambda xp, v, x: [order_rate(xp, v, x)])

# ---- Airy functions ----------------------------------------------------------------------------------------


def _contracted(slopes: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """The VJP rule of a function of one argument with several results.

    The cotangent of a result that nothing depends on is None: 0 times a slope of it that is no number is none either.
    """

    def vjp(ct: Any, x: Any, ans: Any) -> Any:
        parts = [c * slope for c, slope in zip(ct, slopes(x, ans), strict=True) if c is not None]
        return sum(parts[1:], parts[0])

    return vjp


def _airy_slopes(x: Any, ans: Any) -> tuple[Any, ...]:
    return ans[1], x * ans[0], ans[3], x * ans[2]


#: ``airy(x)``: Ai, its derivative, Bi, its derivative. They solve ``y'' = x * y`` (DLMF 9.2.1).
airy: Operation = primitive(
    "airy",
    lambda xp, x: special(xp, "airy")(x),
    vjps=[_contracted(_airy_slopes)],
    jvps=[lambda t, x, ans: tuple([t * slope for slope in _airy_slopes(x, ans)])],
    batch="elementwise",
    multiple=True,
    sparse=True,
)

#: Beyond this the derivatives of the scaled functions are those of their asymptotic series, DLMF 9.7.5 to 9.7.8: what
#: the scaling adds cancels nearly all of the rest.
_AIRY_FROM, _AIRY_TERMS = 20.0, 16


def _airye_tail(xp: Any, x: Any, *, which: int, order: int) -> Any:
    """The derivative of this order of a scaled Airy function, by the series in ``x**(-3/2)``."""

    def computed(x: Any) -> Any:
        start = -0.25 if which % 2 == 0 else 0.25
        sign, total, u, step = (-1.0 if which < 2 else 1.0), 0.0, 1.0, 1.5 * x**-1.5
        size = (1.0, -1.0, 2.0, 2.0)[which] / (2 * math.sqrt(math.pi)) * x ** (start - order)
        for k in range(_AIRY_TERMS):
            coefficient = u if which % 2 == 0 else u * (6 * k + 1) / (1 - 6 * k)
            falling = math.prod([start - 1.5 * k - j for j in range(order)])
            total = total + coefficient * falling * size
            u = u * (6 * k + 5) * (6 * k + 3) * (6 * k + 1) / (216 * (k + 1) * (2 * k + 1))
            size = size * (sign * step)
        return total

    return in_double(xp, computed, x)


#: ``airye_tail(x, *, which, order)``: the derivative of this order of a result of ``airye``, for large x.
airye_tail: Operation = pointwise(
    "airye_tail", _airye_tail, lambda x, *, which, order: airye_tail(x, which=which, order=order + 1)
)


def _airye_slopes(x: Any, ans: Any) -> tuple[Any, ...]:
    """The scaling is ``exp(2/3 * x**1.5)`` for Ai, which is not real for x < 0, and its inverse for Bi, 1 for x < 0."""
    if is_complex(x):
        refused("airye", "a complex z", "The scaling is not analytic: take airy")()
    far = greater(x, _AIRY_FROM)
    none = issubclass(type(far), (np.ndarray, np.generic)) and not np.any(far)
    near = where(less_equal(x, 0), 0, x) if none else where(logical_or(less_equal(x, 0), far), 0, x)
    root = sqrt(where(near == 0, 1, near)) * (near != 0)
    ai, aip, bi, bip = ans
    moving = (aip + root * ai, x * ai + root * aip, bip - root * bi, x * bi - root * bip)
    if none:
        return moving
    beyond = where(far, x, _AIRY_FROM)
    return tuple([where(far, airye_tail(beyond, which=i, order=1), slope) for i, slope in enumerate(moving)])


airye: Operation = primitive(
    "airye",
    lambda xp, x: special(xp, "airye")(x),
    vjps=[_contracted(_airye_slopes)],
    jvps=[lambda t, x, ans: tuple([t * slope for slope in _airye_slopes(x, ans)])],
    batch="elementwise",
    multiple=True,
    sparse=True,
)

# ---- spherical Bessel functions ----------------------------------------------------------------------------

#: How the neighbours n - 1 and n + 1 make up the derivative, times 2 n + 1: DLMF 10.51.2, 10.51.5.
_SIGNS = {"spherical_jn": (1, -1), "spherical_yn": (1, -1), "spherical_in": (1, 1), "spherical_kn": (-1, -1)}


def _spherical(derivative: bool) -> Callable[..., Any]:
    def impl(xp: Any, n: Any, x: Any, *, name: str) -> Any:
        if xp is not np:
            special(xp, name)  # JAX has none, and says so
        return special(np, name)(n, x, derivative)

    return impl


def _combined(fun: Operation, name: str, n: Any, x: Any) -> Any:
    """Order -1 is never needed: its factor is 0."""
    below, above = _SIGNS[name]
    lowest = less(n, 1)
    lower = where(lowest, 0, fun(where(lowest, 0, n - 1), where(lowest, 1, x), name=name))
    return (below * n * lower + above * (n + 1) * fun(n + 1, x, name=name)) / (2 * n + 1)


def _constant_order(t: Any, *, name: str) -> Any:
    return refused(name, "n", "The order is a whole number: take jv, yv, iv or kv")()


#: ``spherical(n, x, *, name)``: one of the spherical Bessel functions.
spherical: Operation = primitive(
    "spherical",
    _spherical(False),
    jvps=[_constant_order, lambda t, x, y, *, name: t * _combined(spherical, name, x, y)],
    batch="elementwise",
)
#: Its derivative in x.
spherical_slope: Operation = primitive(
    "spherical_slope",
    _spherical(True),
    jvps=[_constant_order, lambda t, x, y, *, name: t * _combined(spherical_slope, name, x, y)],
    batch="elementwise",
)

# ---- JAX's function of whole order -------------------------------------------------------------------------


def _bessel_jn_of(xp: Any, x: Any, *, order: int, n_iter: int) -> Any:
    return special(xp, "jv")(order, x) if xp is np else special(xp, "bessel_jn")(x, v=order, n_iter=n_iter)[order]


def _bessel_jn_rule(t: Any, x: Any, *, order: int, n_iter: int) -> Any:
    above = bessel_jn_of(x, order=order + 1, n_iter=n_iter)
    return t * ((bessel_jn_of(x, order=order - 1, n_iter=n_iter) - above) * 0.5 if order else -above)


#: ``bessel_jn_of(x, *, order, n_iter)``: the Bessel function of the first kind of one whole order.
bessel_jn_of: Operation = primitive(
    "bessel_jn_of", _bessel_jn_of, vjps=[_bessel_jn_rule], jvps=[_bessel_jn_rule], batch="elementwise"
)
