"""Derivatives of Bessel functions by name; spherical Bessel, Struve and Airy functions.

Whole orders and numbers of derivatives are constants. The kernels are SciPy's, for NumPy arrays; ``bessel_jn`` is JAX's
function and takes its arrays.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, NotDifferentiableError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.faces import rows
from funcgrad.numpy.joining import stack
from funcgrad.numpy.reducing import as_floating
from funcgrad.scipy.special.operations import bessel_related as prim
from funcgrad.scipy.special.operations.bessel import hankel1, hankel2, iv, jv, kv, yv
from funcgrad.scipy.special.operations.partials import shifted
from funcgrad.scipy.special.ufunc import table
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "airy", "airye", "bessel_jn", "h1vp", "h2vp", "ivp", "jvp", "kvp", "modstruve", "spherical_in", "spherical_jn",
    "spherical_kn", "spherical_yn", "struve", "yvp",
]  # fmt: skip

row = table(__name__)

# fmt: off
struve = row("struve(v, x)", lambda v, x: prim.struve(v, x, orders=(0, 0)),
    """The Struve function of real order ``v`` at ``x``.

    Its derivative in x is DLMF 11.4.23 and 11.4.24 together; that in v comes from differences
    and is NaN for negative x.""", "grad(fsp.struve, 1)(0.0, 1.0).round(10)", "np.float64(0.4381624362)")
modstruve = row("modstruve(v, x)", lambda v, x: prim.modstruve(v, x, orders=(0, 0)),
    """The modified Struve function of real order ``v`` at ``x``.

    Its derivative in x is DLMF 11.4.25 and 11.4.26 together; that in v comes from differences and is NaN for negative
    x. Its error is about 1e-13 of the function itself, which is much larger than the derivative where x is large.""",
    "grad(fsp.modstruve, 1)(0.0, 1.0).round(10)", "np.float64(0.8633841534)")
airy = row("airy(z) -> tuple[Array, Array, Array, Array]", prim.airy,
    """The Airy functions and their derivatives: Ai, Ai', Bi, Bi'. They solve ``y'' = z * y``, DLMF 9.2.1.

    Complex z are supported.""", "grad(lambda z: fsp.airy(z)[1])(1.0).round(10)", "np.float64(0.1352924163)")
airye = row("airye(z) -> tuple[Array, Array, Array, Array]", prim.airye,
    """The Airy functions, scaled: Ai and Ai' times ``exp(2/3 * z**1.5)``, Bi and Bi' times ``exp(-2/3 * z**1.5)``.

    For negative z the first two are NaN, and the others are not scaled.

    Raises:
        NotDifferentiableError: a derivative for complex z, of which the scaling is no analytic function.""",
    "grad(lambda z: fsp.airye(z)[0])(1.0).round(10)", "np.float64(-0.0464632442)")
# fmt: on


# ---- derivatives -------------------------------------------------------------------------------------------


def _derivative(call: str, fun: Any, v: ArrayLike, z: ArrayLike, n: int, phase: int) -> Array:
    """``sum(phase**k * binom(n, k) * fun(v - n + 2 * k, z)) / 2**n``, DLMF 10.6.7 and 10.29.5, added as SciPy does."""
    try:
        order = operator.index(n)
    except TypeError:
        raise InputError(f"{call}: n is not a whole number, got {describe(n)}. Pass an int.") from None
    if order < 0:
        raise ShapeError(f"{call}: n is negative, got {order}. Pass the order of a derivative.")
    v, z = as_value(v), as_value(z)
    if not order:
        return fun(v, z)
    factor, total = 1.0, fun(shifted(v, -order), z)
    for k in range(1, order + 1):
        factor = phase * (factor * (order - k + 1)) / k
        total = total + factor * fun(shifted(v, 2 * k - order), z)
    return total / 2.0**order


#: What is differentiated, and the sign of every other term.
_BESSEL = {
    "jvp": (jv, -1),
    "yvp": (yv, -1),
    "ivp": (iv, 1),
    "kvp": (kv, 1),
    "h1vp": (hankel1, -1),
    "h2vp": (hankel2, -1),
}


@rows
def _derived(name: str, v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    fun, phase = _BESSEL[name]
    total = _derivative(name, fun, v, z, n, phase)
    return (-1) ** n * total if n and name == "kvp" else total


# fmt: off
jvp = _derived("jvp",
    """The derivative of order n of ``jv(v, z)`` in z, DLMF 10.6.7.

    Args:
        v: the order, real.
        z: the argument, real or complex.
        n: how often to differentiate: a constant.

    Raises:
        InputError: n is no whole number.
        ValueError: n is negative.""", "fsp.jvp(0, 1.0).round(10)", "np.float64(-0.4400505857)")
yvp = _derived("yvp",
    "The derivative of order n of ``yv(v, z)`` in z, DLMF 10.6.7; arguments as for ``jvp``.",
    "fsp.yvp(0, 1.0).round(10)", "np.float64(0.7812128213)")
ivp = _derived("ivp",
    "The derivative of order n of ``iv(v, z)`` in z, DLMF 10.29.5; arguments as for ``jvp``.",
    "fsp.ivp(0, 1.0).round(10)", "np.float64(0.565159104)")
kvp = _derived("kvp",
    "The derivative of order n of ``kv(v, z)`` in z, DLMF 10.29.5; arguments as for ``jvp``.",
    "fsp.kvp(0, 1.0).round(10)", "np.float64(-0.6019072302)")
h1vp = _derived("h1vp",
    "The derivative of order n of ``hankel1(v, z)`` in z, DLMF 10.6.7; arguments as for ``jvp``.",
    "fsp.h1vp(0, 1.0).round(10)", "np.complex128(-0.4400505857+0.7812128213j)")
h2vp = _derived("h2vp",
    "The derivative of order n of ``hankel2(v, z)`` in z, DLMF 10.6.7; arguments as for ``jvp``.",
    "fsp.h2vp(0, 1.0).round(10)", "np.complex128(-0.4400505857-0.7812128213j)")
# fmt: on


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of the orders 0 to v, along a new first axis, as JAX has them.

    Args:
        z: real numbers.
        v: the highest order, a constant.
        n_iter: how many steps JAX's recurrence takes on its arrays, about ``abs(z) + 30``: with fewer its values are
            wrong, and in single precision many of them give NaN for small z. On NumPy arrays there is none.

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


@rows
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
    """The spherical Bessel function of the first kind, or its derivative, which is DLMF 10.51.2.

    Args:
        n: the order, whole and not negative: a constant.
        z: the argument, real or complex.
        derivative: whether to give the derivative in z.

    Raises:
        NotDifferentiableError: a derivative in n.""", "grad(fsp.spherical_jn, 1)(0, 1.0).round(10)",
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
