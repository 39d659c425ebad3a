"""Spherical Bessel functions; Struve, Airy, Kelvin and Weber's functions, and integrals.

Whole orders are constants. The kernels are SciPy's, for NumPy arrays; ``bessel_jn`` is
JAX's function and takes JAX arrays too.
"""

from __future__ import annotations

import operator

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import NotDifferentiableError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.joining import stack
from funcgrad.numpy.reducing import as_floating
from funcgrad.scipy.special.operations import bessel_related as prim
from funcgrad.scipy.special.ufunc import table
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "airy", "airye", "bei", "beip", "ber", "berp", "bessel_jn", "it2i0k0", "it2j0y0", "it2struve0", "itairy", "iti0k0",
    "itj0y0", "itmodstruve0", "itstruve0", "kei", "keip", "kelvin", "ker", "kerp", "modfresnelm", "modfresnelp",
    "modstruve", "pbdv", "pbvv", "pbwa", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "struve",
]  # fmt: skip

row = table(__name__)

# fmt: off
struve = row("struve(v, x)", lambda v, x: prim.struve(v, x, orders=(0, 0)),
    """The Struve function of real order ``v`` at ``x``.

    The derivative in x combines DLMF 11.4.23 and 11.4.24. The derivative in v comes from finite differences and is NaN
    for negative x.""", "grad(fsp.struve, 1)(0.0, 1.0).round(10)", "np.float64(0.4381624362)")
modstruve = row("modstruve(v, x)", lambda v, x: prim.modstruve(v, x, orders=(0, 0)),
    """The modified Struve function of real order ``v`` at ``x``.

    The derivative in x combines DLMF 11.4.25 and 11.4.26. The derivative in v comes from finite differences and is NaN
    for negative x. Its error is about 1e-13 of the function, which for large x is much larger than the derivative.""",
    "grad(fsp.modstruve, 1)(0.0, 1.0).round(10)", "np.float64(0.8633841534)")
airy = row("airy(z) -> tuple[Array, Array, Array, Array]", prim.airy,
    """The Airy functions and their derivatives: Ai, Ai', Bi, Bi'. They solve ``y'' = z * y``, DLMF 9.2.1.

    Complex z are supported.""", "grad(lambda z: fsp.airy(z)[1])(1.0).round(10)", "np.float64(0.1352924163)")
airye = row("airye(z) -> tuple[Array, Array, Array, Array]", prim.airye,
    """The Airy functions, scaled: Ai and Ai' times ``exp(2/3 * z**1.5)``, Bi and Bi' times ``exp(-2/3 * z**1.5)``.

    For negative z, Ai and Ai' are NaN, and Bi and Bi' are not scaled.

    Raises:
        NotDifferentiableError: a derivative at complex z, where the scaling is not analytic, is requested.""",
    "grad(lambda z: fsp.airye(z)[0])(1.0).round(10)", "np.float64(-0.0464632442)")
itstruve0 = row("itstruve0(x)", prim.itstruve0, "The integral of ``struve(0, t)`` from 0 to ``x``.",
    "grad(fsp.itstruve0)(1.0).round(10)", "np.float64(0.568656627)")
it2struve0 = row("it2struve0(x)", prim.it2struve0, "The integral of ``struve(0, t) / t`` from ``x`` to infinity.",
    "grad(fsp.it2struve0)(1.0).round(10)", "np.float64(-0.568656627)")
itmodstruve0 = row("itmodstruve0(x)", prim.itmodstruve0, "The integral of ``modstruve(0, t)`` from 0 to ``x``.",
    "grad(fsp.itmodstruve0)(1.0).round(10)", "np.float64(0.7102431859)")
itj0y0 = row("itj0y0(x) -> tuple[Array, Array]", prim.itj0y0, "The integrals of ``j0`` and ``y0`` from 0 to ``x``.",
    "grad(lambda x: fsp.itj0y0(x)[0])(1.0).round(10)", "np.float64(0.7651976866)")
it2j0y0 = row("it2j0y0(x) -> tuple[Array, Array]", prim.it2j0y0,
    "The integrals of ``(1 - j0(t)) / t`` from 0 to ``x`` and of ``y0(t) / t`` from ``x`` to infinity.",
    "grad(lambda x: fsp.it2j0y0(x)[0])(1.0).round(10)", "np.float64(0.2348023134)")
iti0k0 = row("iti0k0(x) -> tuple[Array, Array]", prim.iti0k0, "The integrals of ``i0`` and ``k0`` from 0 to ``x``.",
    "grad(lambda x: fsp.iti0k0(x)[0])(1.0).round(10)", "np.float64(1.2660658778)")
it2i0k0 = row("it2i0k0(x) -> tuple[Array, Array]", prim.it2i0k0,
    "The integrals of ``(i0(t) - 1) / t`` from 0 to ``x`` and of ``k0(t) / t`` from ``x`` to infinity.",
    "grad(lambda x: fsp.it2i0k0(x)[0])(1.0).round(10)", "np.float64(0.2660658778)")
itairy = row("itairy(x) -> tuple[Array, Array, Array, Array]", prim.itairy,
    "The integrals of ``Ai(t)``, ``Bi(t)``, ``Ai(-t)`` and ``Bi(-t)`` from 0 to ``x``.",
    "grad(lambda x: fsp.itairy(x)[0])(1.0).round(10)", "np.float64(0.1352924163)")
modfresnelp = row("modfresnelp(x) -> tuple[Array, Array]", prim.modfresnelp,
    """The modified Fresnel integrals F and K: F is the integral of ``exp(1j * t**2)`` from ``x`` to infinity.

    K is F times ``exp(-1j * (x**2 + pi/4)) / sqrt(pi)``. Both are complex.""",
    "grad(lambda x: fsp.modfresnelp(x)[0].real)(1.0).round(10)", "np.float64(-0.5403023059)")
modfresnelm = row("modfresnelm(x) -> tuple[Array, Array]", prim.modfresnelm,
    "The complex conjugates of the results of ``modfresnelp``.",
    "grad(lambda x: fsp.modfresnelm(x)[0].imag)(1.0).round(10)", "np.float64(0.8414709848)")
pbdv = row("pbdv(v, x) -> tuple[Array, Array]", prim.pbdv,
    """The parabolic cylinder function D of order ``v`` at ``x``, and its derivative, DLMF 12.2.4.

    Raises:
        NotDifferentiableError: a derivative in v is requested.""",
    "grad(lambda x: fsp.pbdv(0.5, x)[0])(1.0).round(10)", "np.float64(-0.0945656087)")
pbvv = row("pbvv(v, x) -> tuple[Array, Array]", prim.pbvv,
    "The parabolic cylinder function V of order ``v`` at ``x``, and its derivative; see ``pbdv``.",
    "grad(lambda x: fsp.pbvv(0.5, x)[0])(1.0).round(10)", "np.float64(0.9226713556)")
pbwa = row("pbwa(a, x) -> tuple[Array, Array]", prim.pbwa,
    "The parabolic cylinder function W of parameter ``a`` at ``x``, and its derivative, DLMF 12.2.3; see ``pbdv``.",
    "grad(lambda x: fsp.pbwa(0.5, x)[0])(1.0).round(10)", "np.float64(-0.2901243887)")
ber = row("ber(x)", prim.ber, "Kelvin's function ber, the real part of ``jv(0, x * exp(0.75j * pi))``, DLMF 10.61.1.",
    "grad(fsp.ber)(1.0).round(10)", "np.float64(-0.0624457522)")
bei = row("bei(x)", prim.bei, "Kelvin's function bei, the imaginary part of ``jv(0, x * exp(0.75j * pi))``.",
    "grad(fsp.bei)(1.0).round(10)", "np.float64(0.4973965115)")
ker = row("ker(x)", prim.ker, "Kelvin's function ker, the real part of ``kv(0, x * exp(0.25j * pi))``, DLMF 10.61.2.",
    "grad(fsp.ker)(1.0).round(10)", "np.float64(-0.6946038911)")
kei = row("kei(x)", prim.kei, "Kelvin's function kei, the imaginary part of ``kv(0, x * exp(0.25j * pi))``.",
    "grad(fsp.kei)(1.0).round(10)", "np.float64(0.3523699133)")
berp = row("berp(x)", prim.berp, "The derivative of ``ber``.", "grad(fsp.berp)(1.0).round(10)",
    "np.float64(-0.1871202879)")
beip = row("beip(x)", prim.beip, "The derivative of ``bei``.", "grad(fsp.beip)(1.0).round(10)",
    "np.float64(0.4869852697)")
kerp = row("kerp(x)", prim.kerp, "The derivative of ``ker``.", "grad(fsp.kerp)(1.0).round(10)",
    "np.float64(1.1895985276)")
keip = row("keip(x)", prim.keip, "The derivative of ``kei``.", "grad(fsp.keip)(1.0).round(10)",
    "np.float64(-0.0656637046)")
kelvin = row("kelvin(x) -> tuple[Array, Array, Array, Array]", prim.kelvin,
    "Kelvin's functions: ``ber + 1j * bei``, ``ker + 1j * kei``, and the derivatives of both.",
    "grad(lambda x: fsp.kelvin(x)[0].imag)(1.0).round(10)", "np.float64(0.4973965115)")
# fmt: on


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Return the Bessel functions of the first kind of the orders 0 to v, along a new first axis, as JAX does.

    Args:
        z: real numbers.
        v: the highest order, a constant.
        n_iter: number of steps of JAX's recurrence on JAX arrays, about ``abs(z) + 30``: with fewer steps its values
            are wrong; in single precision many steps give NaN for small z. NumPy arrays need no recurrence.

    Raises:
        ValueError: z is complex, as in JAX.

    Example:
        >>> fsp.bessel_jn(1.0, v=1).round(10)
        array([0.76519769, 0.44005059])
    """
    z = as_floating(as_value(z))
    if backend.dtype_of(z).kind == "c":
        raise ShapeError(f"bessel_jn: complex numbers are not supported, got {describe(z)}. Take jv.")
    return stack([prim.bessel_jn_of(z, order=n, n_iter=n_iter) for n in range(operator.index(v) + 1)])


# ---- spherical Bessel functions ----------------------------------------------------------------------------


@function_table
def _spherical(name: str, n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    n = as_value(n)
    if backend.dtype_of(n).kind == "f":
        if isinstance(n, Tracer):
            raise NotDifferentiableError(
                f"scipy.special.{name}: it has no derivative in n, got {describe(n)}. The order is a whole number."
            )
        n = np.asarray(n, np.dtype("long"))
    return (prim.spherical_slope if derivative else prim.spherical)(n, as_value(z), name=name)


# fmt: off
spherical_jn = _spherical("spherical_jn",
    """The spherical Bessel function of the first kind, or its derivative, DLMF 10.51.2.

    Args:
        n: the order, a whole number, at least 0 and constant.
        z: the argument, real or complex.
        derivative: whether to return the derivative in z.

    Raises:
        NotDifferentiableError: a derivative in n is requested.""", "grad(fsp.spherical_jn, 1)(0, 1.0).round(10)",
    "np.float64(-0.3011686789)")
spherical_yn = _spherical("spherical_yn",
    "The spherical Bessel function of the second kind, or its derivative; arguments as for ``spherical_jn``.",
    "grad(fsp.spherical_yn, 1)(0, 1.0).round(10)", "np.float64(1.3817732907)")
spherical_in = _spherical("spherical_in",
    "The modified spherical Bessel function of the first kind, or its derivative; arguments as for ``spherical_jn``.",
    "grad(fsp.spherical_in, 1)(0, 1.0).round(10)", "np.float64(0.3678794412)")
spherical_kn = _spherical("spherical_kn",
    "The modified spherical Bessel function of the second kind, or its derivative; arguments as for ``spherical_jn``.",
    "grad(fsp.spherical_kn, 1)(0, 1.0).round(10)", "np.float64(-1.1557273498)")
# fmt: on
