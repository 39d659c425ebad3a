"""Bessel functions: derivatives in the argument by recurrences, in the order by an integral or by differences.

The recurrences (DLMF 10.6.1, 10.29.1) divide by nothing, so derivatives of any order are exact at 0 too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import slope
from funcgrad.primitives.elementwise import exp, is_complex
from funcgrad.primitives.signals import bessel_i
from funcgrad.scipy.special.operations.partials import (
    difference_quotient,
    in_double,
    pointwise,
    refused,
    scipy_operation,
    shifted,
    summed,
    whole,
)

_SERIES_FROM, _SERIES_TERMS = 40.0, 30


def _far(xp: Any, v: Any, x: Any) -> Any:
    """Return where the series has 16 digits: 30 terms of about ``(v**2 / (2 * x))**k / k!``."""
    return xp.abs(x) > xp.maximum(_SERIES_FROM, v * v / 4)


def scaled_series(xp: Any, v: Any, x: Any, sign: complex, order: int) -> Any:
    """Return the derivative of this order of ``x**(-1/2)`` times the series in ``sign / x``, for positive x."""
    total, term = 0.0, (-1) ** order * x ** (-0.5 - order)
    factor = math.prod([0.5 + j for j in range(order)])
    for k in range(_SERIES_TERMS):
        total = total + factor * term
        term = term * (sign * (4 * v * v - (2 * k + 1) ** 2) / (8 * (k + 1))) / x
        factor = factor * (k + 0.5 + order) / (k + 0.5)
    return total


def with_series(near: Callable[..., Any], series: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that computes ``series`` where the argument is large, otherwise ``near``."""

    def impl(xp: Any, v: Any, x: Any, *, order: int) -> Any:
        if any(dtype_of(a).kind == "c" for a in (v, x)):
            return near(xp, v, x, order)

        def computed(v: Any, x: Any) -> Any:
            far = _far(xp, v, x)
            if xp is np and not np.any(far):
                return near(xp, v, x, order)
            ans = near(xp, v, xp.where(far, 1.0, x), order)
            return xp.where(far, series(xp, xp.where(far, v, 0.0), xp.where(far, x, _SERIES_FROM), order), ans)

        return in_double(xp, computed, v, x)

    return impl


def neighbours(fun: Callable[..., Any], v: Any, x: Any, order: int, sign: int, scale: Any) -> Any:
    """Return the derivative of this order of ``exp(scale * x) * F``, where 2 F' is ``sign * (F[v-1] + F[v+1])``.

    ``fun`` computes ``exp(scale * x) * F``.
    """
    total = 0.0
    for j in range(order + 1):
        part = sum(math.comb(j, i) * fun(v - j + 2 * i, x) for i in range(j + 1)) * (sign / 2) ** j
        total = total + math.comb(order, j) * scale ** (order - j) * part
    return total


# ---- derivatives in the order ------------------------------------------------------------------------------


def order_rate(xp: Any, v: Any, x: Any) -> Any:
    """Return how fast Bessel functions change with the order: as ``(x / 2)**v / gamma(v + 1)`` for small x / v."""
    size = xp.abs(x)
    return xp.maximum(1.6, xp.log(2 * (xp.abs(v) + 1) / xp.where(size > 0, size, 1)))


def _by_differences(name: str, regular: bool = False) -> Callable[..., Any]:
    """Return the kernel of the derivative in the order; 0 at x = 0 for a ``regular`` function of positive order."""

    def derivative(xp: Any, v: Any, x: Any, *, order: int) -> Any:
        fun = special(xp, name)

        def computed(v: Any, x: Any) -> Any:
            ans = difference_quotient(xp, fun, (v, x), (order_rate(xp, v, x), 0.0), (order, 0))
            return xp.where((x == 0) & (v > 0), 0, ans) if regular else ans

        return in_double(xp, computed, v, x)

    return derivative


def _scaled_k_integral(xp: Any, v: Any, x: Any, *, order: int) -> Any:
    """Return ``exp(x)`` times the derivative of this order of ``kv(v, x)`` in v.

    It is the integral over t > 0 of ``t**n * exp(x - x * cosh(t))`` times ``cosh(v * t)``, or for odd n
    ``sinh(v * t)`` (DLMF 10.32.9). The integrand is analytic and even. Therefore the trapezoidal rule needs only as
    many points as the width of the peak, at ``asinh(v / x)``, requires: its error is below rounding.
    """
    if any(np.asarray(a).dtype.kind == "c" for a in (v, x)):
        return _by_differences("kve")(xp, v, x, order=order)
    return in_double(np, lambda v, x: _folded_sum(v, x, order), v, x)


def _k_integral(xp: Any, v: Any, x: Any, *, order: int) -> Any:
    """Return the derivative of ``kv`` in v from the scaled one."""
    half = xp.exp(-x / 2)  # its square underflows where the result does not
    return _scaled_k_integral(xp, v, x, order=order) * half * half


def _folded_sum(v: Any, x: Any, order: int) -> Any:
    """Sum from where the integrand matters: left of its peak its log falls by ``width * (s - 1 + exp(-s))``."""
    signs = np.sign(v) if order % 2 else 1
    v, x = np.broadcast_arrays(np.abs(v), x)
    width, peak = np.hypot(v, x), np.arcsinh(v / np.where(x > 0, x, np.nan))
    height = v * peak - v * (v / (width + x))
    beyond = height > 800  # the result overflows
    inside = (x > 0) & (x < np.inf) & ~beyond & (width < np.inf)
    v, x, peak, height = (np.where(inside, a, b) for a, b in ((v, 0.0), (x, 1.0), (peak, 0.0), (height, 0.0)))
    width = np.hypot(v, x)
    depth = 40 + 6 * order
    h = np.minimum(0.2, 0.55 / np.sqrt(width))
    first = np.maximum(0, np.floor((peak - depth / width - np.sqrt(2 * depth / width)) / h))
    reach: Any = (peak + np.arccosh(1 + depth / width)) / h - first

    def term(k: Any) -> Any:
        t = (k + 1 + first) * h
        size = np.exp(v * t - 2 * x * np.sinh(t / 2) ** 2 - height)
        return t**order * size * (-np.expm1(-2 * v * t) if order % 2 else 1 + np.exp(-2 * v * t)) / 2

    total = summed(term, 1 + int(np.max(reach, initial=0)), x)
    if not order:
        total = total + np.where(first > 0, 0, np.exp(-height) / 2)
    total = np.where(inside, total * h * np.exp(height), np.where(beyond, np.inf, 0.0))
    return signs * total if order % 2 else total


def _scaled_i(xp: Any, v: Any, x: Any, *, order: int) -> Any:
    """Return ``exp(-abs(x))`` times the derivative of this order of ``iv(v, x)`` in v.

    For large x the function is split: ``iv(v, x) + sin(pi * v) / pi * kv(v, x)`` is even in v (DLMF 10.27.2). Its
    differences around v = 0 vanish exactly, and the small derivative of the other term remains.
    """
    plain = _by_differences("ive", regular=True)(xp, v, x, order=order)

    def even(u: Any, x: Any) -> Any:
        size = np.abs(u)
        return special(np, "ive")(size, x) + np.sin(np.pi * size) / np.pi * special(np, "kve")(size, x) * np.exp(-2 * x)

    def apart(v: Any, x: Any) -> Any:
        large = x > 4 + 2 * np.abs(v)
        x = np.where(large, x, np.nan)
        total = difference_quotient(np, even, (v, x), (order_rate(np, v, x), 0.0), (order, 0))
        for j in range(order + 1):  # the derivatives of the sine, times those of kv
            sine = np.pi ** (j - 1) * (np.sin, np.cos)[j % 2](np.pi * v) * (-1) ** (j // 2)
            total = total - math.comb(order, j) * sine * _folded_sum(v, x, order - j) * np.exp(-2 * x)
        return total

    split = in_double(np, apart, v, x)
    return np.where(np.isnan(split), plain, split).astype(split.dtype)[()]


def _i_by_differences(xp: Any, v: Any, x: Any, *, order: int) -> Any:
    """Return the derivative of ``iv`` from the scaled function, which does not overflow at the neighbouring points."""
    if any(np.asarray(a).dtype.kind == "c" for a in (v, x)):
        return _by_differences("iv", regular=True)(xp, v, x, order=order)
    half = xp.exp(xp.abs(x) / 2)  # its square overflows where the result does not
    return _scaled_i(xp, v, x, order=order) * half * half


def _pair(fun: Operation, sign: int, factor: float = 0.5) -> Callable[..., Any]:
    """Return ``(fun(v - 1) + sign * fun(v + 1)) * factor``, for any derivative in the order."""

    def pair(v: Any, x: Any, **order: int) -> Any:
        below, above = fun(shifted(v, -1), x, **order), fun(shifted(v, 1), x, **order)
        return (below + above if sign > 0 else below - above) * factor

    return pair


def _in_order(
    name: str, impl: Callable[..., Any], sign: int, factor: float = 0.5, more: Callable[..., Any] | None = None
) -> Operation:
    """Define ``name(v, x, *, order)``, the derivative of this order in v.

    Its derivative in x is a ``_pair``, to which the scale of a function adds ``more(x, value)``.
    """

    def dx(v: Any, x: Any, *, order: int) -> Any:
        slope = _pair(made, sign, factor)(v, x, order=order)
        return slope if more is None else slope + more(x, made(v, x, order=order))

    made: Operation = pointwise(name, impl, lambda v, x, *, order: made(v, x, order=order + 1), dx)
    return made


jv_in_order: Operation = _in_order("jv_in_order", _by_differences("jv", regular=True), -1)
yv_in_order: Operation = _in_order("yv_in_order", _by_differences("yv"), -1)
iv_in_order: Operation = _in_order("iv_in_order", _i_by_differences, 1)
kv_in_order: Operation = _in_order("kv_in_order", _k_integral, 1, -0.5)
ive_in_order: Operation = _in_order("ive_in_order", _scaled_i, 1, more=lambda x, value: -slope(x) * value)
kve_in_order: Operation = _in_order("kve_in_order", _scaled_k_integral, 1, -0.5, lambda x, value: value)
hankel1_in_order: Operation = _in_order("hankel1_in_order", _by_differences("hankel1"), -1)
hankel2_in_order: Operation = _in_order("hankel2_in_order", _by_differences("hankel2"), -1)

# ---- real orders -------------------------------------------------------------------------------------------


def _bessel(name: str, in_order: Operation, sign: int, factor: float = 0.5) -> Operation:
    made: Operation = scipy_operation(
        name, dx=lambda x, y: in_order(x, y, order=1), dy=lambda x, y: _pair(made, sign, factor)(x, y)
    )
    return made


def _scaled(name: str, in_order: Operation, slope: Callable[..., Any]) -> Operation:
    """Define a scaled function, from derivatives in the order and in a real argument.

    A scaling by ``exp(-abs(part of z))`` is not analytic in a complex z.
    """
    refuse = refused(name, "complex z", "The scaling is not analytic: take the function without it")
    at_complex: Operation = pointwise(
        f"{name}_in_order_at_complex",
        _by_differences(name, regular=name != "yve"),
        lambda v, z, *, order: at_complex(v, z, order=order + 1),
        refuse,
    )
    return scipy_operation(
        name,
        dx=lambda x, y, ans: (at_complex if is_complex(y) else in_order)(x, y, order=1),
        dy=lambda x, y, ans: refuse() if is_complex(y) else slope(x, y),
    )


jv: Operation = _bessel("jv", jv_in_order, -1)
yv: Operation = _bessel("yv", yv_in_order, -1)
iv: Operation = _bessel("iv", iv_in_order, 1)
kv: Operation = _bessel("kv", kv_in_order, 1, -0.5)
hankel1: Operation = _bessel("hankel1", hankel1_in_order, -1)
hankel2: Operation = _bessel("hankel2", hankel2_in_order, -1)
#: For real numbers jve and yve are jv and yv.
jve: Operation = _scaled("jve", jv_in_order, _pair(jv, -1))
yve: Operation = _scaled("yve", yv_in_order, _pair(yv, -1))
ive: Operation = _scaled("ive", ive_in_order, lambda x, y: ive_slope(shifted(x, 0), y, order=1))
kve: Operation = scipy_operation(
    "kve", dx=lambda x, y: kve_in_order(x, y, order=1), dy=lambda x, y: kve_slope(shifted(x, 0), y, order=1)
)
#: Scaled Hankel functions. The factor ``exp(-1j * z)``, for hankel2e ``exp(1j * z)``, leaves the size of a power.
hankel1e: Operation = scipy_operation(
    "hankel1e",
    dx=lambda x, y: hankel1_in_order(x, y, order=1) * exp(y * -1j),
    dy=lambda x, y: hankel1e_slope(shifted(x, 0), y, order=1),
)
hankel2e: Operation = scipy_operation(
    "hankel2e",
    dx=lambda x, y: hankel2_in_order(x, y, order=1) * exp(y * 1j),
    dy=lambda x, y: hankel2e_slope(shifted(x, 0), y, order=1),
)

# ---- slopes of the scaled functions --------------------------------------------------------------------------
#
# In ``ive' = I' exp(-x) - ive`` all digits cancel except a share of 1 / (2 x). For large x, the derivatives are those
# of the asymptotic series DLMF 10.40.1 and 10.40.2, term by term.


def _kve_near(xp: Any, v: Any, x: Any, order: int, fun: Any = None) -> Any:
    """Return the derivative by recurrence; infinite near 0, where terms overflow to infinities of both signs."""
    total = neighbours(fun or special(xp, "kve"), v, x, order, -1, 1)
    missing = xp.isnan(total)
    if total.dtype.kind == "c" or not np.any(missing):  # only NumPy arrays arrive here: JAX has no kve
        return total
    return xp.where(missing & (x > 0) & (v == v), (-1) ** order * math.inf, total)


def _kve_series(xp: Any, v: Any, x: Any, order: int) -> Any:
    return math.sqrt(math.pi / 2) * scaled_series(xp, v, x, 1, order)


def _ive_near(xp: Any, v: Any, x: Any, order: int) -> Any:
    """Return the derivative by recurrence. At the kink of ``exp(-abs(x))`` at 0 its slope is that for positive x."""
    return neighbours(special(xp, "ive"), v, x, order, 1, _slope_of_scale(xp, x))


def _slope_of_scale(xp: Any, x: Any) -> Any:
    """Return the derivative of ``-abs(x)``, with the convention of ``absolute`` at 0."""
    return xp.where(x < 0, 1.0, -1.0)


def _ive_series(xp: Any, v: Any, x: Any, order: int) -> Any:
    """Return the derivative by the series; for negative x it is real for whole orders only, otherwise NaN."""
    whole = v == xp.rint(v)
    turned = xp.where(whole, xp.where((v + order) % 2 == 1, -1.0, 1.0), math.nan)
    return xp.where(x < 0, turned, 1.0) * scaled_series(xp, v, xp.abs(x), -1, order) / math.sqrt(2 * math.pi)


def _hankel(name: str, sign: int) -> Operation:
    """Define ``name_slope(v, x, *, order)``: derivative in x of this order, 1 or more, of a scaled Hankel function."""

    def near(xp: Any, v: Any, x: Any, order: int) -> Any:
        fun, total = special(xp, name), 0.0
        for j in range(order + 1):
            terms = [(-1) ** i * math.comb(j, i) * fun(v - j + 2 * i, x) for i in range(j + 1)]
            total = total + math.comb(order, j) * (-sign * 1j) ** (order - j) * sum(terms) / 2**j
        return total

    def series(xp: Any, v: Any, x: Any, order: int) -> Any:
        """Return the series DLMF 10.17.5 and 10.17.6; for negative x the value of ``near``, above the cut."""
        turned = xp.exp(-sign * 0.5j * math.pi * (v + 0.5)) * math.sqrt(2 / math.pi)
        return xp.where(x > 0, turned * scaled_series(xp, v, xp.abs(x), sign * 1j, order), near(xp, v, x, order))

    def in_order(v: Any, x: Any, *, order: int) -> Any:
        fun, total = (hankel1_in_order if sign > 0 else hankel2_in_order), 0.0
        for j in range(order + 1):
            terms = [(-1) ** i * math.comb(j, i) * fun(shifted(v, 2 * i - j), x, order=1) for i in range(j + 1)]
            total = total + math.comb(order, j) * (-sign * 1j) ** (order - j) * sum(terms[1:], terms[0]) * 0.5**j
        return total * exp(x * (-sign * 1j))

    made: Operation = pointwise(
        f"{name}_slope", with_series(near, series), in_order, lambda v, x, *, order: made(v, x, order=order + 1)
    )
    return made


hankel1e_slope: Operation = _hankel("hankel1e", 1)
hankel2e_slope: Operation = _hankel("hankel2e", -1)


#: ``kve_slope(v, x, *, order)``: derivative of ``kve`` in x of this order, 1 or more; likewise ``ive_slope``.
kve_slope: Operation = pointwise(
    "kve_slope",
    with_series(_kve_near, _kve_series),
    lambda v, x, *, order: neighbours(lambda v, x: kve_in_order(v, x, order=1), v, x, order, -1, 1),
    lambda v, x, *, order: kve_slope(v, x, order=order + 1),
)
ive_slope: Operation = pointwise(
    "ive_slope",
    with_series(_ive_near, _ive_series),
    lambda v, x, *, order: neighbours(lambda v, x: ive_in_order(v, x, order=1), v, x, order, 1, -slope(x)),
    lambda v, x, *, order: ive_slope(v, x, order=order + 1),
)


def _scaled_k_of_whole_order(xp: Any, x: Any, *, n: int, order: int) -> Any:
    def near(xp: Any, v: Any, x: Any, order: int) -> Any:
        @cache
        def value(v: int) -> Any:
            return special(xp, f"k{v}e")(x) if v < 2 else special(xp, "kve")(v, x)

        return _kve_near(xp, n, x, order, lambda v, x: value(abs(v)))

    return with_series(near, _kve_series)(xp, n, x, order=order)


#: ``scaled_k_slope(x, *, n, order)``: ``kve_slope`` of a constant whole order, whose kernels are faster.
scaled_k_slope: Operation = pointwise(
    "scaled_k_slope", _scaled_k_of_whole_order, lambda x, *, n, order: scaled_k_slope(x, n=n, order=order + 1)
)

# ---- whole orders ------------------------------------------------------------------------------------------

_whole = "The order is a whole number: yv and kv have a derivative in theirs"
yn: Operation = scipy_operation("yn", dx=refused("yn", "n", _whole), dy=lambda x, y: _pair(yn, -1)(whole(x), y))
kn: Operation = scipy_operation("kn", dx=refused("kn", "n", _whole), dy=lambda x, y: _pair(kn, 1, -0.5)(whole(x), y))
j0: Operation = scipy_operation("j0", dx=lambda x: -j1(x))
j1: Operation = scipy_operation("j1", dx=lambda x: (j0(x) - jv(2, x)) * 0.5)
y0: Operation = scipy_operation("y0", dx=lambda x: -y1(x))
y1: Operation = scipy_operation("y1", dx=lambda x: (y0(x) - yv(2, x)) * 0.5)
k0: Operation = scipy_operation("k0", dx=lambda x: -k1(x))
k1: Operation = scipy_operation("k1", dx=lambda x: (k0(x) + kv(2, x)) * -0.5)
k0e: Operation = scipy_operation("k0e", dx=lambda x: scaled_k_slope(x, n=0, order=1))
k1e: Operation = scipy_operation("k1e", dx=lambda x: scaled_k_slope(x, n=1, order=1))
i0: Operation = scipy_operation("i0", dx=lambda x: i1(x))
i1: Operation = scipy_operation("i1", dx=lambda x: (i0(x) + bessel_i(x, order=2)) * 0.5)


def _scaled_bessel_i(xp: Any, x: Any, *, order: int) -> Any:
    """Compute JAX arrays of order 2 or more by recurrence for large arguments, else by the series, DLMF 10.25.2."""
    if order < 2:
        return special(xp, f"i{order}e")(x)
    if xp is np:
        return special(xp, "ive")(order, x)
    limit = 20.0
    near = xp.abs(x) < limit
    small, large = xp.where(near, x, 0), xp.where(near, limit, x)
    below, ans = special(xp, "i0e")(large), special(xp, "i1e")(large)
    for n in range(1, order):
        below, ans = ans, below - 2 * n / large * ans
    series: Any = 1
    for k in reversed(range(1, 50)):
        series = 1 + series * small * small / (4 * k * (k + order))
    return xp.where(near, xp.exp(-xp.abs(small)) * (small / 2) ** order / math.factorial(order) * series, ans)


def _scaled_bessel_i_slope(xp: Any, x: Any, *, n: int, order: int) -> Any:
    def near(xp: Any, v: Any, x: Any, order: int) -> Any:
        @cache
        def value(v: int) -> Any:
            return _scaled_bessel_i(xp, x, order=v)

        return neighbours(lambda v, x: value(abs(v)), n, x, order, 1, _slope_of_scale(xp, x))

    return with_series(near, _ive_series)(xp, n, x, order=order)


#: ``scaled_bessel_i_slope(x, *, n, order)``: derivative of this order of ``scaled_bessel_i(x, order=n)``.
scaled_bessel_i_slope: Operation = pointwise(
    "scaled_bessel_i_slope",
    _scaled_bessel_i_slope,
    lambda x, *, n, order: scaled_bessel_i_slope(x, n=n, order=order + 1),
)


#: ``scaled_bessel_i(x, *, order)``: ``exp(-abs(x)) * I_n(x)`` of a whole order; orders 0 and 1 are i0e and i1e.
#: At the kink of ``exp(-abs(x))`` at 0 the slope is that for positive x, so that ``log(i0e(x)) + abs(x)`` has none.
scaled_bessel_i: Operation = pointwise(
    "scaled_bessel_i", _scaled_bessel_i, lambda x, *, order: scaled_bessel_i_slope(x, n=order, order=1)
)
