"""Elliptic integrals and functions: all derivatives are integrals of one kind, computed by one quadrature.

The substitution ``t = exp(u)`` turns the integral over t > 0 of ``t**rise * prod((t + x)**-power)`` into one over the
whole line. Its integrand decays exponentially to both sides and is analytic up to a distance of pi from the line. There
the trapezoidal rule with step 0.4 is exact to rounding, and the sum has no cancellation. Differentiation raises a
power.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.kinds import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import as_numpy_number
from funcgrad.primitives.comparison import equal, greater, less, logical_or, where
from funcgrad.primitives.elementwise import log, sin, sqrt
from funcgrad.scipy.special.operations.partials import (
    in_double,
    kernel,
    may_hold,
    pointwise,
    refused,
    scipy_operation,
    summed,
)

_STEP = 0.4
_DIGITS = 40.0  # how far the integrand is followed: until it has fallen by exp(-40)

# ---- Carlson's integrals -----------------------------------------------------------------------------------


def _quadrature(rise: int, powers: tuple[float, ...], *args: Any) -> Any:
    """Return the integral over t > 0 of ``t**rise * prod((t + x)**-power)``, infinite where it diverges.

    The integral is homogeneous: a number near their middle divides the arguments first, so that no power overflows.
    """
    pairs = [(x, p) for x, p in zip(np.broadcast_arrays(*args), powers, strict=True) if p]
    infinite = np.logical_or.reduce([x == np.inf for x, _ in pairs])
    pairs = [(np.where(infinite & (x > 0), 1.0, x), p) for x, p in pairs]
    positive = [np.where(x > 0, x, np.nan) for x, _ in pairs]
    at_zero = rise + 1 - sum(p * (x == 0) for x, p in pairs)
    low, high = np.log2(np.fmin.reduce(positive)), np.log2(np.fmax.reduce(positive))
    middle = 2 * np.rint((low + high) / 8)  # even: powers with halves are exact too
    middle = np.where(np.isfinite(middle), middle, 0)
    root = np.exp2(middle * (rise + 1 - sum(powers)))  # the root of the factor of the integral
    unit = np.exp2(-middle)
    pairs, positive = [(x * unit * unit, p) for x, p in pairs], [x * unit * unit for x in positive]
    low = np.log(np.fmin.reduce(positive)) - _DIGITS / np.where(at_zero > 0, at_zero, np.nan)
    high = np.log(np.fmax.reduce(positive)) + _DIGITS / (sum(powers) - rise - 1)

    part = (rise + 1) / sum(powers)  # each denominator takes its share of the factors of t, so that nothing overflows

    def term(k: Any) -> Any:
        u = low + k * _STEP
        t, share, product = np.exp(u), np.exp(part * u), 1.0
        for x, p in pairs:
            product = product * (share / (t + x)) ** p
        return np.where(u <= high, product, 0)

    steps = int(np.max(high - low, initial=0, where=np.isfinite(high - low)) / _STEP) + 2
    total = summed(term, steps, low) * root * root
    valid = np.logical_and.reduce([x >= 0 for x, _ in pairs])
    total = np.where(infinite, 0, total * _STEP)
    return np.where(valid, np.where(at_zero > 0, total, np.inf), np.nan)


def _carlson(xp: Any, *args: Any, rise: int, powers: tuple[float, ...]) -> Any:
    if any(dtype_of(a).kind == "c" for a in args):
        refused("ellipr*", "complex input", "Only real arguments have a derivative")()
    return in_double(np, lambda *args: _quadrature(rise, powers, *args), *args)


def _raised(i: int) -> Callable[..., Any]:
    """Return the derivative in argument i."""

    def partial(*args: Any, rise: int, powers: tuple[float, ...]) -> Any:
        more = tuple([p + (j == i) for j, p in enumerate(powers)])
        return -powers[i] * carlson(*args, rise=rise, powers=more)

    return partial


#: ``carlson(w, x, y, z, *, rise, powers)``: see ``_quadrature``; a power of 0 leaves its argument out.
carlson: Operation = pointwise("carlson", _carlson, *[_raised(i) for i in range(4)])


def _integral(factor: float, powers: tuple[float, ...], *args: Any, rise: int = 0) -> Any:
    """Return ``factor * carlson(...)`` of up to four arguments."""
    missing = 4 - len(args)
    return factor * carlson(*args, *(1.0,) * missing, rise=rise, powers=(*powers, *(0.0,) * missing))


#: R_C, R_D, R_F and R_G by their integrals, DLMF 19.2.17, 19.16.5, 19.16.1 and (differentiated) 19.23.7.
def _elliprc_dx(x: Any, y: Any, ans: Any) -> Any:
    """Return the derivative in x; for y < 0, R_C is a principal value that solves the same differential equations."""
    negative = less(y, 0)
    integral = _integral(-0.25, (1.5, 1.0), x, where(negative, 1.0, y))
    if not may_hold(negative):
        return integral
    return where(negative, (ans - 1 / sqrt(x)) / (2 * where(negative, y - x, 1.0)), integral)


def _elliprc_dy(x: Any, y: Any, ans: Any) -> Any:
    negative = less(y, 0)
    integral = _integral(-0.5, (0.5, 2.0), x, where(negative, 1.0, y))
    if not may_hold(negative):
        return integral
    return where(negative, (ans - sqrt(x) / where(negative, y, 1.0)) / (2 * where(negative, x - y, 1.0)), integral)


elliprc: Operation = scipy_operation("elliprc", dx=_elliprc_dx, dy=_elliprc_dy)


def _of_carlson(name: str, factor: float, powers: tuple[float, ...], rise: int = 0) -> Operation:
    """Define ``factor`` times the integral of these powers, in three arguments."""

    def partial(i: int) -> Callable[..., Any]:
        raised = tuple([p + (j == i) for j, p in enumerate(powers)])
        return lambda x, y, z: _integral(-powers[i] * factor, raised, x, y, z, rise=rise)

    return scipy_operation(name, dx=partial(0), dy=partial(1), dz=partial(2))


elliprd: Operation = _of_carlson("elliprd", 1.5, (0.5, 0.5, 1.5))
elliprf: Operation = _of_carlson("elliprf", 0.5, (0.5, 0.5, 0.5))
elliprg: Operation = _of_carlson("elliprg", -0.25, (0.5, 0.5, 0.5), rise=1)


def _slope_rj(x: Any, y: Any, z: Any, p: Any) -> Any:
    """Return the derivative of R_J in x by partial fractions, which hold for the principal value too."""
    return (elliprj(x, y, z, p) - elliprd(y, z, x)) / (2 * (p - x))


def _share_rj(x: Any, y: Any, z: Any, p: Any) -> Any:
    """Return x times the derivative of R_J in x."""
    zero = equal(x, 0)
    return where(zero, 0.0, x * _slope_rj(where(zero, 1.0, x), y, z, p))


def _slope_rj_dp(x: Any, y: Any, z: Any, p: Any) -> Any:
    """Return the derivative of R_J in p, from Euler's theorem: R_J is homogeneous of degree -3/2."""
    rest = _share_rj(x, y, z, p) + _share_rj(y, x, z, p) + _share_rj(z, x, y, p)
    return (elliprj(x, y, z, p) * -1.5 - rest) / p


def _elliprj_partial(factor: float, powers: tuple[float, ...], principal: Callable[..., Any]) -> Callable[..., Any]:
    """Return a derivative of R_J; for p < 0, where R_J is a principal value, it is ``principal(x, y, z, p)``."""

    def partial(x: Any, y: Any, z: Any, p: Any) -> Any:
        negative = less(p, 0)
        integral = _integral(factor, powers, x, y, z, where(negative, 1.0, p))
        if not may_hold(negative):
            return integral
        return where(negative, principal(x, y, z, where(negative, p, -1.0)), integral)

    return partial


#: R_J, DLMF 19.16.2.
elliprj: Operation = pointwise(
    "elliprj",
    kernel("elliprj"),
    _elliprj_partial(-0.75, (1.5, 0.5, 0.5, 1.0), _slope_rj),
    _elliprj_partial(-0.75, (0.5, 1.5, 0.5, 1.0), lambda x, y, z, p: _slope_rj(y, x, z, p)),
    _elliprj_partial(-0.75, (0.5, 0.5, 1.5, 1.0), lambda x, y, z, p: _slope_rj(z, x, y, p)),
    _elliprj_partial(-1.5, (0.5, 0.5, 0.5, 2.0), _slope_rj_dp),
)
elliprj.__module__ = __name__  # where pickle finds it


def _agm_partial(x: Any, y: Any, ans: Any) -> Any:
    """Return the derivative in x of ``pi / (2 * R_F(0, x**2, y**2))``, DLMF 19.8.5, without overflow of squares."""
    ratio = as_numpy_number(y) / x
    extreme = logical_or(greater(ratio, _EXTREME), less(ratio, 1 / _EXTREME))
    if not may_hold(extreme):
        return _agm_by_integral(ans / x, ratio)
    first, second = where(extreme, 1.0, x), where(extreme, 1.0, y)
    mean = where(extreme, 1.0, ans)
    return where(extreme, _agm_far_apart(x, y), _agm_by_integral(mean / first, second / first))


def _agm_by_integral(share: Any, ratio: Any) -> Any:
    return share**2 * _integral(1 / math.pi, (0.5, 1.5, 0.5), 0.0, 1.0, ratio * ratio)


#: Ratio beyond which ``agm(x, y)`` is ``pi / 2 * big / log(4 * big / small)`` to rounding (DLMF 19.8.5, 19.9.1).
_EXTREME = 1e15


def _agm_far_apart(x: Any, y: Any) -> Any:
    """Return the derivative of ``agm`` in x where the arguments are far apart."""
    smaller = less(x, y)
    small, big = where(smaller, x, y), where(smaller, y, x)
    length = log(4 * big) - log(small)
    rate = math.pi / 2 / length
    in_small = rate * (1 / length) * (big / small)
    return where(smaller, where(equal(small, 0), math.inf, in_small), rate * (1 - 1 / length))


agm: Operation = scipy_operation(
    "agm", dx=lambda x, y, ans: _agm_partial(x, y, ans), dy=lambda x, y, ans: _agm_partial(y, x, ans)
)

# ---- Legendre's integrals ----------------------------------------------------------------------------------

#: DLMF 19.4.1 and 19.4.2, as integrals of one sign: there is no cancellation at m = 0.
ellipk: Operation = scipy_operation("ellipk", dx=lambda x: _integral(0.25, (0.5, 1.5, 0.5), 0.0, 1 - x, 1.0))
ellipkm1: Operation = scipy_operation("ellipkm1", dx=lambda x: _integral(-0.25, (0.5, 1.5, 0.5), 0.0, x, 1.0))
ellipe: Operation = scipy_operation("ellipe", dx=lambda x: _integral(-0.25, (0.5, 0.5, 1.5), 0.0, 1 - x, 1.0))


def _legendre_integral(xp: Any, phi: Any, m: Any, *, k: int, q: int) -> Any:
    """Return the integral from 0 to phi of ``sin(t)**(2 * k) * (1 - m * sin(t)**2)**(-q / 2)``, by half turns."""
    powers = (0.5, q / 2, k + 1 - q / 2)

    def computed(phi: Any, m: Any) -> Any:
        turns = np.rint(phi / math.pi)
        sine = np.sin(phi - turns * math.pi)
        square = sine * sine
        part = sine ** (2 * k + 1) * _quadrature(0, powers, np.cos(phi) ** 2, 1 - m * square, np.ones(()))
        if np.any(turns):
            part = part + np.where(turns == 0, 0, 2 * turns * _quadrature(0, powers, np.zeros(()), 1 - m, np.ones(())))
        return part / 2

    return in_double(np, computed, phi, m)


def _legendre_integrand(phi: Any, m: Any, *, k: int, q: int) -> Any:
    square = sin(phi) ** 2
    return square**k * (1 - m * square) ** (-q / 2)


legendre_integral: Operation = pointwise(
    "legendre_integral",
    _legendre_integral,
    _legendre_integrand,
    lambda phi, m, *, k, q: legendre_integral(phi, m, k=k + 1, q=q + 2) * (q / 2),
)
ellipkinc: Operation = scipy_operation(
    "ellipkinc",
    dx=lambda x, y: _legendre_integrand(x, y, k=0, q=1),
    dy=lambda x, y: legendre_integral(x, y, k=1, q=3) * 0.5,
)
ellipeinc: Operation = scipy_operation(
    "ellipeinc",
    dx=lambda x, y: _legendre_integrand(x, y, k=0, q=-1),
    dy=lambda x, y: legendre_integral(x, y, k=1, q=1) * -0.5,
)

# ---- Jacobi's functions ------------------------------------------------------------------------------------


def _along(t: Any, turned: Any, m: Any, ans: Any) -> tuple[Any, Any, Any, Any]:
    """Return tangents of sn, cn, dn and the amplitude when the amplitude moves by ``t * turned``, at constant m."""
    sn, cn, dn, _ = ans
    moved = t * turned
    return (moved * cn, -moved * sn, -moved * (m * sn * cn / dn), moved)


def _ellipj_dm(t: Any, x: Any, y: Any, ans: Any) -> tuple[Any, Any, Any, Any]:
    """Return tangents in m, with ``F(amplitude, m) = u``, ``dn**2 = 1 - m * sn**2`` (DLMF 22.20.1, 22.6.1)."""
    sn, _, dn, amplitude = ans
    sn_dot, cn_dot, dn_dot, turned = _along(t, dn * legendre_integral(amplitude, y, k=1, q=3) * -0.5, y, ans)
    return (sn_dot, cn_dot, dn_dot - t * (sn * sn / dn * 0.5), turned)


#: ``ellipj(u, m)``: sn, cn, dn and the amplitude. Derivatives in u: DLMF 22.13.1.
ellipj: Operation = primitive(
    "ellipj",
    lambda xp, u, m: special(xp, "ellipj")(u, m),
    jvps=[lambda t, x, y, ans: _along(t, ans[2], y, ans), _ellipj_dm],
    batch="elementwise",
    multiple=True,
)
