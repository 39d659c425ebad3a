"""Elliptic integrals and functions, as SciPy has them: the parameter is m, the square of the modulus.

Derivatives of any order are integrals of one form, of which none cancels: they are good to about 1e-14.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from funcgrad.scipy.special.operations import elliptic as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "agm",
    "ellipe",
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "elliprc",
    "elliprd",
    "elliprf",
    "elliprg",
    "elliprj",
]


@ufunc(prim.ellipk)
def ellipk(m: ArrayLike, /) -> Array:
    """The complete elliptic integral of the first kind. The derivative at 1 is infinite.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.ellipk)(0.0).round(10)
        np.float64(0.3926990817)
    """


@ufunc(prim.ellipkm1)
def ellipkm1(p: ArrayLike, /) -> Array:
    """``ellipk(1 - p)``, accurate for small p.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.ellipkm1)(1.0).round(10)
        np.float64(-0.3926990817)
    """


@ufunc(prim.ellipe)
def ellipe(m: ArrayLike, /) -> Array:
    """The complete elliptic integral of the second kind. The derivative at 1 is minus infinity.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.ellipe)(0.0).round(10)
        np.float64(-0.3926990817)
    """


@ufunc(prim.ellipkinc)
def ellipkinc(phi: ArrayLike, m: ArrayLike, /) -> Array:
    """The incomplete elliptic integral of the first kind up to the angle ``phi``, with parameter ``m``, DLMF 19.2.4.

    The derivative in m is half the integral of ``sin(t)**2 / (1 - m * sin(t)**2)**1.5``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.ellipkinc, 1)(1.0, 0.0).round(10)
        np.float64(0.1363378216)
    """


@ufunc(prim.ellipeinc)
def ellipeinc(phi: ArrayLike, m: ArrayLike, /) -> Array:
    """The incomplete elliptic integral of the second kind up to the angle ``phi``, with parameter ``m``, DLMF 19.2.5.

    The derivative in m is minus half the integral of ``sin(t)**2 / sqrt(1 - m * sin(t)**2)``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.ellipeinc, 1)(1.0, 0.0).round(10)
        np.float64(-0.1363378216)
    """


@ufunc(prim.elliprc)
def elliprc(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Carlson's degenerate elliptic integral ``R_C(x, y)``, DLMF 19.2.17.

    Derivatives are integrals of the same form. Arguments are real and
    not negative: the derivative is NaN for others, and complex ones raise.

    Raises:
        NotDifferentiableError: a derivative for complex arguments.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.elliprc)(1.0, 2.0).round(10)
        np.float64(-0.1073009183)
    """


@ufunc(prim.elliprd)
def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Carlson's elliptic integral ``R_D(x, y, z)``, symmetric in ``x`` and ``y``, DLMF 19.16.5.

    Derivatives are integrals of the same form. Arguments are real and
    not negative: the derivative is NaN for others, and complex ones raise.

    Raises:
        NotDifferentiableError: a derivative for complex arguments.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.elliprd)(1.0, 2.0, 3.0).round(10)
        np.float64(-0.0671629841)
    """


@ufunc(prim.elliprf)
def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Carlson's symmetric elliptic integral ``R_F(x, y, z)``, DLMF 19.16.1.

    Derivatives are integrals of the same form. Arguments are real and
    not negative: the derivative is NaN for others, and complex ones raise.

    Raises:
        NotDifferentiableError: a derivative for complex arguments.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.elliprf)(1.0, 2.0, 3.0).round(10)
        np.float64(-0.0931853696)
    """


@ufunc(prim.elliprg)
def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Array:
    """Carlson's symmetric elliptic integral ``R_G(x, y, z)``, DLMF 19.16.3.

    Derivatives are integrals of the same form. Arguments are real and
    not negative: the derivative is NaN for others, and complex ones raise.

    Raises:
        NotDifferentiableError: a derivative for complex arguments.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.elliprg)(1.0, 2.0, 3.0).round(10)
        np.float64(0.1351437991)
    """


@ufunc(prim.elliprj)
def elliprj(x: ArrayLike, y: ArrayLike, z: ArrayLike, p: ArrayLike, /) -> Array:
    """Carlson's elliptic integral ``R_J(x, y, z, p)``, symmetric in ``x``, ``y`` and ``z``, DLMF 19.16.2.

    Derivatives are integrals of the same form. Arguments are real and
    not negative: the derivative is NaN for others, and complex ones raise.

    Raises:
        NotDifferentiableError: a derivative for complex arguments.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.elliprj)(1.0, 2.0, 3.0, 4.0).round(10)
        np.float64(-0.0532106863)
    """


@ufunc(prim.ellipj)
def ellipj(u: ArrayLike, m: ArrayLike, /) -> tuple[Array, Array, Array, Array]:
    """Jacobi's elliptic functions sn, cn, dn and the amplitude, for m from 0 to 1; derivatives in u: DLMF 22.13.1.

    The amplitude p keeps ``ellipkinc(p, m) = u``, from which the derivatives in m come.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(lambda u, m: fsp.ellipj(u, m)[0], 1)(1.0, 0.5).round(10)
        np.float64(-0.0800484189)
    """


@ufunc(prim.agm)
def agm(a: ArrayLike, b: ArrayLike, /) -> Array:
    """The arithmetic-geometric mean of ``a`` and ``b``, two numbers of one sign; derivatives from DLMF 19.8.5.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.agm)(1.0, 1.0).round(10)
        np.float64(0.5)
    """
