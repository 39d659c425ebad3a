"""Struve, Airy and spherical Bessel functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import less, where
from funcgrad.primitives.elementwise import is_complex, sqrt
from funcgrad.primitives.special.bessel import order_rate
from funcgrad.primitives.special.partials import analytic, in_double, refused

__all__ = ["airy", "airye", "bessel_jn_of", "modstruve", "spherical", "spherical_slope", "struve"]

# ---- Struve functions --------------------------------------------------------------------------------------


def _struve_term(xp: Any, k: int, v: Any, x: Any) -> Any:
    """The derivative of order k of ``(x / 2)**v / (2 * sqrt(pi) * gamma(v + 3/2))``."""
    factor = special(xp, "rgamma")(v + 1.5) / (2 * math.sqrt(math.pi))
    for j in range(k):
        factor = factor * (v - j) / 2
    return xp.where(factor == 0, 0, factor * (x / 2) ** xp.where(factor == 0, 0, v - k))


def _struve(name: str, sign: int) -> Callable[..., Any]:
    """Derivatives in x by DLMF 11.4.23 and 11.4.24, for the modified function 11.4.25 and 11.4.26."""

    def fun(xp: Any, k: int, v: Any, x: Any) -> Any:
        if not k:
            return special(xp, name)(v, x)
        pair = fun(xp, k - 1, v - 1, x) + sign * fun(xp, k - 1, v + 1, x)
        return in_double(xp, lambda v, x: _struve_term(xp, k - 1, v, x), v, x) + pair / 2

    return fun


#: ``struve(v, x, *, orders)``, see ``analytic``.
struve: Operation = analytic("struve", _struve("struve", -1), lambda xp, v, x: [order_rate(xp, v, x)])
modstruve: Operation = analytic("modstruve", _struve("modstruve", 1), lambda xp, v, x: [order_rate(xp, v, x)])

# ---- Airy functions ----------------------------------------------------------------------------------------

#: ``airy(x)``: Ai, its derivative, Bi, its derivative. They solve ``y'' = x * y`` (DLMF 9.2.1).
airy: Operation = primitive(
    "airy",
    lambda xp, x: special(xp, "airy")(x),
    jvps=[lambda t, x, ans: (t * ans[1], t * (x * ans[0]), t * ans[3], t * (x * ans[2]))],
    batch="elementwise",
    multiple=True,
)


def _airye_slopes(x: Any, ans: Any) -> tuple[Any, Any, Any, Any]:
    """The scaling is ``exp(2/3 * x**1.5)`` for Ai, which is not real for x < 0, and its inverse for Bi, 1 for x < 0."""
    if is_complex(x):
        refused("airye", "a complex z", "The scaling is not analytic: take airy")()
    negative = less(x, 0)
    root = sqrt(where(negative, 0, x))
    ai, aip, bi, bip = ans
    return aip + root * ai, x * ai + root * aip, bip - root * bi, x * bi - root * bip


def _airye_vjp(ct: Any, x: Any, ans: Any) -> Any:
    """Of the results that nothing depends on, None says so: for x < 0 two of them are NaN."""
    parts = [c * slope for c, slope in zip(ct, _airye_slopes(x, ans), strict=True) if c is not None]
    return sum(parts[1:], parts[0])


airye: Operation = primitive(
    "airye",
    lambda xp, x: special(xp, "airye")(x),
    vjps=[_airye_vjp],
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
    lower = fun(where(less(n, 1), 0, n - 1), x, name=name)
    return (below * n * lower + above * (n + 1) * fun(n + 1, x, name=name)) / (2 * n + 1)


def _constant_order(t: Any, *, name: str) -> Any:
    return refused(name, "n", "The order is a whole number: take jv, yv, iv or kv")()


#: ``spherical(n, x, *, name)``: one of the spherical Bessel functions.
spherical: Operation = primitive(
    "spherical",
    _spherical(False),
    jvps=[_constant_order, lambda t, x, y, *, name: t * spherical_slope(x, y, name=name)],
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
