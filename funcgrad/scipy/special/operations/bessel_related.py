"""Struve, Airy, Kelvin, parabolic cylinder and spherical Bessel functions, and integrals of Bessel functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import imag, real
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import greater, less, less_equal, logical_or, where
from funcgrad.primitives.elementwise import exp, is_complex, sqrt
from funcgrad.scipy.special.operations.bessel import i0, j0, jv, k0, kv, order_rate, y0
from funcgrad.scipy.special.operations.partials import (
    analytic,
    in_double,
    kernel,
    may_hold,
    pointwise,
    refused,
    scipy_operation,
)

# ---- Struve functions --------------------------------------------------------------------------------------


def _struve_term(xp: Any, k: int, v: Any, x: Any) -> Any:
    """Return the derivative of order k of ``(x / 2)**v / (2 * sqrt(pi) * gamma(v + 3/2))``."""
    factor = special(xp, "rgamma")(v + 1.5) / (2 * math.sqrt(math.pi))
    for j in range(k):
        factor = factor * (v - j) / 2
    return xp.where(factor == 0, 0, factor * (x / 2) ** xp.where(factor == 0, 0, v - k))


def _struve_series(xp: Any, k: int, v: Any, x: Any, sign: int) -> Any:
    """Return the derivative of order k by the power series, DLMF 11.2.1 and 11.2.2, for x between -1 and 1."""
    total, rgamma = 0.0, special(xp, "rgamma")
    for m in range(12):
        factor = sign**m * rgamma(m + 1.5) * rgamma(m + v + 1.5) / 2.0**k
        for j in range(k):
            factor = factor * (2 * m + v + 1 - j)
        power = xp.where(factor == 0, 0, 2 * m + v + 1 - k)
        total = total + xp.where(factor == 0, 0, factor * (x / 2) ** power)
    return total


def _struve_tail(xp: Any, k: int, v: Any, x: Any) -> Any:
    """Return the derivative of order k of Struve's function from ``H = Y + K``, DLMF 11.2.5, 11.6.1, for large x."""
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
    """Return the function of derivatives in x, by DLMF 11.4.23, 11.4.24, or for ``modstruve`` 11.4.25, 11.4.26."""

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


#: ``struve(v, x, *, orders)``: see ``analytic``.
struve: Operation = analytic("struve", 2, _struve("struve", -1), lambda xp, v, x: [order_rate(xp, v, x)])
modstruve: Operation = analytic("modstruve", 2, _struve("modstruve", 1), lambda xp, v, x: [order_rate(xp, v, x)])

# ---- Airy functions ----------------------------------------------------------------------------------------


def _several(name: str, slopes: Callable[..., tuple[Any, ...]], constant: str = "") -> Operation:
    """Define an operation with several results.

    An unused result has the cotangent None and adds no term: 0 times a NaN slope would be NaN.

    Args:
        name: the name in SciPy.
        slopes: ``slopes(*args, ans)``, the derivative of each result in the last argument.
        constant: the name of the argument before it, which has no derivative; "" if there is only one argument.
    """

    def vjp(ct: Any, args: Any, ans: Any) -> Any:
        parts = [c * slope for c, slope in zip(ct, slopes(*args, ans), strict=True) if c is not None]
        total = sum(parts[1:], parts[0])
        return total if is_complex(args[-1]) else real(total)

    def jvp(t: Any, args: Any, ans: Any) -> Any:
        return tuple([t * slope for slope in slopes(*args, ans)])

    none = [lambda t, args: refused(name, constant)()] if constant else []
    made: Operation = primitive(
        name, kernel(name), vjps=[*none, vjp], jvps=[*none, jvp], batch="elementwise", multiple=True, none_for_zero=True
    )
    made.__module__ = __name__
    return made


#: ``airy(x)``: Ai, its derivative, Bi, its derivative. The functions solve ``y'' = x * y`` (DLMF 9.2.1).
airy: Operation = _several("airy", lambda x, ans: (ans[1], x * ans[0], ans[3], x * ans[2]))

#: Point beyond which the derivatives of the scaled functions come from their asymptotic series, DLMF 9.7.5 to 9.7.8:
#: there the term from the scaling cancels nearly all of the rest. Then the number of terms.
_AIRY_FROM, _AIRY_TERMS = 20.0, 16


def _airye_tail(xp: Any, x: Any, *, which: int, order: int) -> Any:
    """Return the derivative of this order of a scaled Airy function, by the series in ``x**(-3/2)``."""

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


#: ``airye_tail(x, *, which, order)``: derivative of this order of result ``which`` of ``airye``, for large x.
airye_tail: Operation = pointwise(
    "airye_tail", _airye_tail, lambda x, *, which, order: airye_tail(x, which=which, order=order + 1)
)


def _airye_slopes(x: Any, ans: Any) -> tuple[Any, ...]:
    """Return the slopes. Scales: ``exp(2/3 * x**1.5)`` for Ai (NaN if x < 0), its inverse for Bi (1 if x < 0)."""
    if is_complex(x):
        refused("airye", "complex z", "The scaling is not analytic: take airy")()
    far = greater(x, _AIRY_FROM)
    none = not may_hold(far)
    near = where(less_equal(x, 0), 0, x) if none else where(logical_or(less_equal(x, 0), far), 0, x)
    root = sqrt(where(near == 0, 1, near)) * (near != 0)
    ai, aip, bi, bip = ans
    moving = (aip + root * ai, x * ai + root * aip, bip - root * bi, x * bi - root * bip)
    if none:
        return moving
    beyond = where(far, x, _AIRY_FROM)
    return tuple([where(far, airye_tail(beyond, which=i, order=1), slope) for i, slope in enumerate(moving)])


airye: Operation = _several("airye", _airye_slopes)

# ---- integrals, parabolic cylinder functions ---------------------------------------------------------------


def _bend(x: Any, fun: Operation, sign: int) -> Any:
    """Return ``abs(fun(x) - 1) / x`` for j0 (``sign=-1``) or i0; near 0, where digits cancel, by the power series."""
    near = less(x * x, 1)
    small, large = where(near, x, 0), where(near, 1, x)
    series: Any = 1
    for k in reversed(range(2, 13)):
        series = 1 + sign * small * small / (4 * k * k) * series
    return where(near, small / 4 * series, sign * (fun(large) - 1) / large)


itj0y0: Operation = _several("itj0y0", lambda x, ans: (j0(x), y0(x)))
iti0k0: Operation = _several("iti0k0", lambda x, ans: (i0(x), k0(x)))
#: The divisor 0 becomes 1: the derivative at 0 is infinite because y0 and k0 are.
it2j0y0: Operation = _several("it2j0y0", lambda x, ans: (_bend(x, j0, -1), -y0(x) / where(x == 0, 1, x)))
it2i0k0: Operation = _several("it2i0k0", lambda x, ans: (_bend(x, i0, 1), -k0(x) / where(x == 0, 1, x)))


itairy: Operation = _several("itairy", lambda x, ans: (*airy(x)[::2], *airy(-x)[::2]))


def _of_order_0(fun: Operation, x: Any) -> Any:
    """Return a Struve function of order 0 at ``x``; the order has the dtype of ``x``."""
    return fun(dtype_of(x).type(0), x, orders=(0, 0))


itstruve0: Operation = scipy_operation("itstruve0", dx=lambda x: _of_order_0(struve, x))
itmodstruve0: Operation = scipy_operation("itmodstruve0", dx=lambda x: _of_order_0(modstruve, x))
it2struve0: Operation = scipy_operation(
    "it2struve0", dx=lambda x: where(x == 0, -2 / math.pi, -_of_order_0(struve, x) / where(x == 0, 1, x))
)


def _modfresnel(sign: int) -> Callable[..., tuple[Any, ...]]:
    """Return the slopes of the integral of ``exp(sign * 1j * t**2)`` from x on, and of its product with a phase."""
    start = complex(1, -sign) / math.sqrt(2 * math.pi)
    return lambda x, ans: (-exp(sign * 1j * (x * x)), -sign * 2j * x * ans[1] - start)


modfresnelp: Operation = _several("modfresnelp", _modfresnel(1))
modfresnelm: Operation = _several("modfresnelm", _modfresnel(-1))

#: Weber's equations, DLMF 12.2.2 and 12.2.3, at constant parameters.
pbdv: Operation = _several("pbdv", lambda v, x, ans: (ans[1], (x * x / 4 - v - 0.5) * ans[0]), "v")
pbvv: Operation = _several("pbvv", lambda v, x, ans: (ans[1], (x * x / 4 - v - 0.5) * ans[0]), "v")
pbwa: Operation = _several("pbwa", lambda a, x, ans: (ans[1], (a - x * x / 4) * ans[0]), "a")

# ---- Kelvin functions --------------------------------------------------------------------------------------


def _kelvin(name: str, part: Callable[..., Any], second: Callable[..., Any]) -> tuple[Operation, Operation]:
    """Define a Kelvin function and its derivative: a part of a Bessel function on a diagonal, DLMF 10.61.1, 10.61.2.

    Args:
        name: the name of the function; the name of the derivative has a p at the end.
        part: the real or the imaginary part.
        second: the second derivative of the Bessel function.
    """
    slope = scipy_operation(f"{name}p", dx=lambda x: part(second(x)))
    return scipy_operation(name, dx=lambda x: slope(x)), slope


_FALLING, _RISING = (-1 + 1j) / math.sqrt(2), (1 + 1j) / math.sqrt(2)


def _second_j(x: Any) -> Any:
    return (jv(2, _FALLING * x) - jv(0, _FALLING * x)) * -0.5j


def _second_k(x: Any) -> Any:
    return (kv(2, _RISING * x) + kv(0, _RISING * x)) * 0.5j


ber, berp = _kelvin("ber", real, _second_j)
bei, beip = _kelvin("bei", imag, _second_j)
ker, kerp = _kelvin("ker", real, _second_k)
kei, keip = _kelvin("kei", imag, _second_k)


def kelvin(x: Any) -> tuple[Any, ...]:
    """Return ``ber + 1j * bei`` and ``ker + 1j * kei``, and their derivatives."""
    pairs = (ber, bei), (ker, kei), (berp, beip), (kerp, keip)
    return tuple([first(x) + 1j * second(x) for first, second in pairs])


# ---- spherical Bessel functions ----------------------------------------------------------------------------

#: Signs of the neighbours n - 1 and n + 1 in the derivative times 2 n + 1: DLMF 10.51.2, 10.51.5.
_SIGNS = {"spherical_jn": (1, -1), "spherical_yn": (1, -1), "spherical_in": (1, 1), "spherical_kn": (-1, -1)}


def _combined(fun: Operation, name: str, n: Any, x: Any) -> Any:
    """Return the derivative in x from both neighbours; order -1 is never needed, because its factor is 0."""
    below, above = _SIGNS[name]
    lowest = less(n, 1)
    lower = where(lowest, 0, fun(where(lowest, 0, n - 1), where(lowest, 1, x), name=name))
    return (below * n * lower + above * (n + 1) * fun(n + 1, x, name=name)) / (2 * n + 1)


def _spherical(operation: str, derivative: bool) -> Operation:
    def impl(xp: Any, n: Any, x: Any, *, name: str) -> Any:
        if xp is not np:
            special(xp, name)  # raises for JAX arrays: JAX has no such function
        return special(np, name)(n, x, derivative)

    made: Operation = pointwise(
        operation,
        impl,
        lambda n, x, *, name: refused(name, "n", "The order is a whole number: take jv, yv, iv or kv")(),
        lambda n, x, *, name: _combined(made, name, n, x),
    )
    return made


#: ``spherical(n, x, *, name)``: one of the spherical Bessel functions; ``spherical_slope``: its derivative in x.
spherical: Operation = _spherical("spherical", False)
spherical_slope: Operation = _spherical("spherical_slope", True)

# ---- JAX's function of whole order -------------------------------------------------------------------------


def _bessel_jn_of(xp: Any, x: Any, *, order: int, n_iter: int) -> Any:
    return special(xp, "jv")(order, x) if xp is np else special(xp, "bessel_jn")(x, v=order, n_iter=n_iter)[order]


def _bessel_jn_slope(x: Any, *, order: int, n_iter: int) -> Any:
    above = bessel_jn_of(x, order=order + 1, n_iter=n_iter)
    return (bessel_jn_of(x, order=order - 1, n_iter=n_iter) - above) * 0.5 if order else -above


#: ``bessel_jn_of(x, *, order, n_iter)``: Bessel function of the first kind of one whole order.
bessel_jn_of: Operation = pointwise("bessel_jn_of", _bessel_jn_of, _bessel_jn_slope)
