"""The error function and its relatives (Gaussian, Dawson's, Fresnel's, Owen's integrals); exponential integrals.

Every derivative is elementary. Where such a formula would cancel (``erfcx`` and ``dawsn`` far from 0), the
derivatives are separate operations, see ``_erfcx`` and ``_dawsn``. The exponential, sine and cosine integrals and
Spence's function have the derivatives of DLMF 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.linear import imag, real
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import absolute, clip, divide, reciprocal
from funcgrad.primitives.comparison import equal, isinf, less, where
from funcgrad.primitives.elementwise import cos, exp, is_complex, log, real_part, sin, sinc
from funcgrad.scipy.special.operations.convex import log1p_quotient, sinh_quotient
from funcgrad.scipy.special.operations.partials import (
    derivatives,
    in_double,
    kernel,
    pointwise,
    refused,
    scipy_operation,
    shifted,
    whole,
)

ROOT_PI = math.sqrt(math.pi)
ROOT_2 = math.sqrt(2.0)
ROOT_2PI = math.sqrt(2.0 * math.pi)


def _bounded(x: Any) -> Any:
    """Return ``x``, a factor of a Gaussian, clipped to [-40, 40]: the Gaussian is 0 beyond, and inf * 0 is NaN."""
    return x if is_complex(x) else clip(x, -40, 40)


gaussian: Operation = elementwise("gaussian", lambda xp, x: xp.exp(-x * x), dx=lambda x, ans: -2 * (_bounded(x) * ans))
#: Standard normal density.
normal_density: Operation = elementwise(
    "normal_density", lambda xp, x: xp.exp(-0.5 * x * x) * (1 / ROOT_2PI), dx=lambda x, ans: -_bounded(x) * ans
)

erf: Operation = scipy_operation("erf", dx=lambda x: 2 / ROOT_PI * gaussian(x))
erfc: Operation = scipy_operation("erfc", dx=lambda x: -2 / ROOT_PI * gaussian(x))
erfinv: Operation = scipy_operation("erfinv", dx=lambda ans: ROOT_PI / 2 * exp(ans * ans))
erfcinv: Operation = scipy_operation(
    "erfcinv", lambda xp, y: -special(xp, "ndtri")(y / 2) / ROOT_2, dx=lambda ans: -ROOT_PI / 2 * exp(ans * ans)
)
erfi: Operation = scipy_operation(
    "erfi", lambda xp, x: 2 / ROOT_PI * xp.exp(x * x) * special(xp, "dawsn")(x), dx=lambda x: 2 / ROOT_PI * exp(x * x)
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def _erfcx(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of ``exp(x**2) * erfc(x)``.

    The recurrence ``w_1 = 2 x w_0 - 2 / sqrt(pi)``, ``w_(n+1) = 2 x w_n + 2 n w_(n-1)`` (from DLMF 7.10.1) cancels for
    large x. There Gauss's formula computes ``w_n = (-1)**n 2**(n+1) / sqrt(pi) * int_0^inf t**n exp(-t**2 - 2 x t) dt``
    (DLMF 7.7.1, differentiated), up to where the integrand has vanished.
    """
    near, far = xp.where(x < 1, x, 1), xp.where(x < 1, 1, x)
    before = special(xp, "erfcx")(near)
    last = 2 * near * before - 2 / ROOT_PI
    for n in range(1, order):
        last, before = 2 * near * last + 2 * n * before, last
    end = 60 / (far + xp.sqrt(far * far + 60))
    t = end[..., None] * xp.asarray((_NODES + 1) / 2, x.dtype)
    integrand = t**order * xp.exp(-t * (t + 2 * far[..., None]))
    integral = xp.sum(integrand * xp.asarray(_WEIGHTS / 2, x.dtype), axis=-1) * end
    return xp.where(x < 1, last, (-1) ** order * 2 ** (order + 1) / ROOT_PI * integral)


#: ``erfcx(x, *, order)``: derivative of this order.
erfcx: Operation = derivatives("erfcx", kernel("erfcx"), _erfcx)

_DAWSON_TERMS = 24


def _dawsn(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of Dawson's integral.

    The recurrence ``D_1 = 1 - 2 x D_0``, ``D_(n+1) = -2 x D_n - 2 n D_(n-1)`` (DLMF 7.10.3, 7.10.4) cancels for large
    x. There the asymptotic series ``D = sum_k (2k-1)!! / (2**(k+1) x**(2k+1))`` (DLMF 7.12.1 with 7.5.1) is
    differentiated term by term; off the real axis D also has the term ``sqrt(pi) i exp(-x**2) / 2`` (7.4.3).
    """
    large = xp.abs(x) > 7
    near, far = xp.where(large, 1, x), xp.where(large, x, 8)
    exact = _descended(near, special(xp, "dawsn")(near), 1, order)
    inverse, series = 1 / (far * far), 0
    for k in reversed(range(_DAWSON_TERMS)):
        factor = math.prod(range(2 * k - 1, 0, -2)) * math.perm(2 * k + order, order) / 2 ** (k + 1)
        series = series * inverse + factor
    series = (-1) ** order * series / far ** (order + 1)
    if xp.iscomplexobj(x):
        wave = ROOT_PI / 2j * xp.sign(-far.imag) * xp.exp(-xp.where(large, far * far, 64))
        series = series + _descended(far, wave, 0, order)
    return xp.where(large, series, exact)


#: ``dawsn(x, *, order)``: derivative of this order.
dawsn: Operation = derivatives("dawsn", kernel("dawsn"), _dawsn)


def _wofz(xp: Any, z: Any, *, order: int) -> Any:
    """Return the derivative of this order of the Faddeeva function.

    The derivatives obey Dawson's recurrence, from ``w_1 = 2 i / sqrt(pi) - 2 z w_0`` (DLMF 7.10.2, 7.10.3), which
    cancels for large z. There they are those of the asymptotic series ``i / sqrt(pi) sum_k (1/2)_k / z**(2k+1)``
    (DLMF 7.12.1), and below the real axis also of ``2 exp(-z**2)`` (DLMF 7.4.3).
    """
    if order == 0:
        return special(xp, "wofz")(z)
    return in_double(xp, lambda z: _wofz_derivative(xp, z, order), z)


def _wofz_derivative(xp: Any, z: Any, order: int) -> Any:
    large = xp.abs(z) > 8
    near, far = xp.where(large, 1, z), xp.where(large, z, 8)
    below = large & (far.imag < 0)
    wave = 2 * xp.exp(-xp.where(below, far * far, 600))
    exact = _descended(near, special(xp, "wofz")(near), 2j / ROOT_PI, order)
    inverse, series = 1 / (far * far), 0
    for k in reversed(range(_WOFZ_TERMS)):
        factor = math.prod([0.5 + i for i in range(k)]) * math.perm(2 * k + order, order)
        series = series * inverse + factor
    series = 1j / ROOT_PI * (-1) ** order * series / far ** (order + 1)
    return xp.where(large, series + xp.where(below, _descended(far, wave, 0, order), 0), exact)


def _descended(x: Any, value: Any, constant: Any, order: int) -> Any:
    """Return f_n, n = ``order``, from ``f_1 = constant - 2 x f_0`` and ``f_(n+1) = -2 x f_n - 2 n f_(n-1)``."""
    last, before = constant - 2 * x * value, value
    for n in range(1, order):
        last, before = -2 * x * last - 2 * n * before, last
    return last


_WOFZ_TERMS = 20

#: ``wofz(z, *, order)``: derivative of this order.
wofz: Operation = pointwise("wofz", _wofz, lambda x, *, order: wofz(x * (1 + 0j), order=order + 1))

ndtr: Operation = scipy_operation("ndtr", dx=normal_density)
ndtri: Operation = scipy_operation("ndtri", dx=lambda ans: ROOT_2PI * exp(0.5 * ans * ans))


def _inverse_mills(x: Any) -> Any:
    """Return the normal density over its integral, without overflow or loss of digits far to the left."""
    left = less(real_part(x), 0)
    below = math.sqrt(2 / math.pi) / erfcx(where(left, x, 0) * (-1 / ROOT_2), order=0)
    above = where(left, 0, x)  # for positive x erfcx, and with it its derivatives, would overflow
    return where(left, below, normal_density(above) / ndtr(above))


log_ndtr: Operation = scipy_operation("log_ndtr", dx=_inverse_mills)
ndtri_exp: Operation = scipy_operation(
    "ndtri_exp", lambda xp, y: special(xp, "ndtri")(xp.exp(y)), dx=lambda t, ans: t / _inverse_mills(ans)
)


owens_t: Operation = scipy_operation(
    "owens_t",
    dx=lambda x, y: -0.5 * normal_density(x) * erf(x * y * (1 / ROOT_2)),
    dy=lambda x, y: exp(-0.5 * x * x * (1 + y * y)) / (2 * math.pi * (1 + y * y)),
)


def _two_integrals(name: str, first: Any, second: Any) -> Operation:
    """Define a function with two results, whose derivatives are ``first(x)`` and ``second(x)``.

    An unused result has the cotangent None and adds no term: 0 times the infinite slope of ``second`` at 0 is NaN.
    """

    def vjp(ct: Any, x: Any) -> Any:
        if ct[1] is None:
            return ct[0] * first(x)
        slope = ct[1] * second(x)
        return slope if ct[0] is None else ct[0] * first(x) + slope

    def jvp(t: Any, x: Any) -> Any:
        return t * first(x), t * second(x)

    return primitive(name, kernel(name), vjps=[vjp], jvps=[jvp], batch="elementwise", multiple=True, none_for_zero=True)


def _quarter_turns(x: Any) -> Any:
    """Return the angle in Fresnel's integrals."""
    return x * x * (math.pi / 2)


#: ``fresnel(x)``: S and C.
fresnel: Operation = _two_integrals("fresnel", lambda x: sin(_quarter_turns(x)), lambda x: cos(_quarter_turns(x)))


def _voigt_point(x: Any, y: Any, z: Any) -> Any:
    """Return the point at which the profile evaluates ``wofz``."""
    return (x + 1j * z) / (y * ROOT_2)


def _voigt_slope(x: Any, y: Any, z: Any, direction: Any) -> Any:
    """Return the derivative of the profile as ``_voigt_point`` moves in a direction, times ``sqrt(2) y``.

    The derivative in the width is the width times the second one in x: convolution with a Gaussian is a flow of heat.
    """
    return real(wofz(_voigt_point(x, y, z), order=1) * direction) / (2 * ROOT_PI * y * y)


def _lorentz_slope(x: Any, z: Any, order: int, direction: Any) -> Any:
    """Return a derivative of the profile of width 0, which is Lorentz's, as the point moves in a direction."""
    factor = (-1) ** (order + 1) * math.factorial(order) / math.pi
    return factor * imag(divide(direction, (x + 1j * z) ** (order + 1)))


def _voigt(y: Any, slope: Callable[[Any], Any], at_zero: Callable[[], Any]) -> Any:
    """Return ``slope(y)``, or at width 0 its limit."""
    narrow = equal(y, 0)
    return where(narrow, at_zero(), slope(where(narrow, 1.0, y)))


voigt_profile: Operation = scipy_operation(
    "voigt_profile",
    lambda xp, x, sigma, gamma: xp.real(special(xp, "wofz")(_voigt_point(x, sigma, gamma))) / (sigma * ROOT_2PI),
    dx=lambda x, y, z: _voigt(y, lambda y: _voigt_slope(x, y, z, 1.0), lambda: _lorentz_slope(x, z, 1, 1.0)),
    dy=lambda x, y, z: _voigt(
        y,
        lambda width: real(wofz(_voigt_point(x, width, z), order=2)) / (2 * ROOT_2PI * width * width),
        lambda: y * _lorentz_slope(x, z, 2, 1.0),
    ),
    dz=lambda x, y, z: _voigt(y, lambda y: _voigt_slope(x, y, z, 1j), lambda: _lorentz_slope(x, z, 1, 1j)),
)


#: ``exp(x) / x``. Its derivative is one product: a difference of two quotients is ``inf - inf`` where they overflow.
exp_quotient: Operation = elementwise(
    "exp_quotient", lambda xp, x: xp.exp(x) / x, dx=lambda x, ans: ans * (1 - reciprocal(x))
)
expi: Operation = scipy_operation("expi", dx=lambda x: exp_quotient(x))
exp1: Operation = scipy_operation("exp1", dx=lambda x: exp_quotient(-x))


def _expn_partial(x: Any, y: Any, ans: Any) -> Any:
    """Return ``-expn(n - 1, y)``; for the orders 0 and 1 by the recurrence DLMF 8.19.12 from ``ans``."""
    x = whole(x)
    low = less(x, 2)
    if isinstance(low, (np.ndarray, np.generic)) and (np.all(low) or not np.any(low)):
        return _lowest(x, y, ans) if np.any(low) else -expn(shifted(x, -1), y)
    return where(low, _lowest(x, where(low, y, 1), ans), -expn(where(low, 1, shifted(x, -1)), y))


def _lowest(n: Any, x: Any, ans: Any) -> Any:
    return (shifted(n, -1) * ans - exp(-x)) / x


#: ``expn(n, x)``, differentiable in x.
expn: Operation = scipy_operation(
    "expn", dx=refused("expn", "n", "It is an integer: pass it as a constant"), dy=_expn_partial
)


def _oscillating(fun: Callable[..., Any], x: Any) -> Any:
    """Return ``fun(x) / x`` for a sine or cosine; 0 at infinity, where the sine and cosine have no value."""
    return fun(where(isinf(x), 0, x)) / x


def _sine_quotient(x: Any) -> Any:
    """Return ``sin(x) / x``."""
    small = less(absolute(x), 1)
    near = sinc(where(small, x, 0) * (1 / math.pi), order=0)
    return where(small, near, _oscillating(sin, where(small, 1, x)))


sici: Operation = _two_integrals("sici", _sine_quotient, lambda x: _oscillating(cos, x))
shichi: Operation = _two_integrals(
    "shichi", lambda x: sinh_quotient(x, order=0), lambda x: 0.5 * (exp_quotient(x) - exp_quotient(-x))
)


def _spence_partial(x: Any) -> Any:
    """Return ``log(x) / (1 - x)``, -1 at 1."""
    small = less(real_part(x), 0.5)
    near = where(small, x, 0.5)
    return where(small, log(near) / (1 - near), -log1p_quotient(where(small, 0, x - 1), order=0))


spence: Operation = scipy_operation("spence", dx=_spence_partial)
