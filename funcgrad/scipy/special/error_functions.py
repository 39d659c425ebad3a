"""The error function and its relatives: Gaussian integrals, Dawson's and Fresnel's integrals, Owen's T."""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from functools import partial

from funcgrad.scipy.special.operations import error_functions as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "erf",
    "erfc",
    "erfcx",
    "erfi",
    "erfinv",
    "erfcinv",
    "wofz",
    "dawsn",
    "ndtr",
    "log_ndtr",
    "ndtri",
    "ndtri_exp",
    "owens_t",
    "fresnel",
    "voigt_profile",
]


@ufunc(prim.erf)
def erf(z: ArrayLike, /) -> Array:
    """The error function, ``2 / sqrt(pi) * int_0^z exp(-t**2) dt``; real or complex (DLMF 7.2.1).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.erf([0.0, 1.0]).round(6)
        array([0.      , 0.842701])
    """


@ufunc(prim.erfc)
def erfc(x: ArrayLike, /) -> Array:
    """``1 - erf(x)``, accurate where that vanishes (DLMF 7.2.2).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.erfc(10.0)
        np.float64(2.0884875837625446e-45)
    """


@ufunc(partial(prim.erfcx, order=0))
def erfcx(x: ArrayLike, /) -> Array:
    """``exp(x**2) * erfc(x)``, which neither overflows nor vanishes for large ``x``.

    All derivatives are accurate there too. Real numbers only.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> (1e16 * grad(fsp.erfcx)(1e8)).round(9)
        np.float64(-0.564189584)
    """


@ufunc(prim.erfi)
def erfi(z: ArrayLike, /) -> Array:
    """``-1j * erf(1j * z)``, ``2 / sqrt(pi) * int_0^z exp(t**2) dt`` (DLMF 7.5.1).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.erfi(1.0).round(6)
        np.float64(1.650426)
    """


@ufunc(prim.erfinv)
def erfinv(y: ArrayLike, /) -> Array:
    """The inverse of ``erf``: infinite at -1 and 1, NaN outside.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.erfinv(0.5).round(6)
        np.float64(0.476936)
    """


@ufunc(prim.erfcinv)
def erfcinv(y: ArrayLike, /) -> Array:
    """The inverse of ``erfc``: infinite at 0 and 2, NaN outside.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.erfcinv(0.5).round(6)
        np.float64(0.476936)
    """


@ufunc(partial(prim.wofz, order=0))
def wofz(z: ArrayLike, /) -> Array:
    """The Faddeeva function ``exp(-z**2) * erfc(-1j * z)``; the result is complex (DLMF 7.2.3).

    All derivatives are accurate for large ``z`` too.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.wofz(0.5j).round(6)
        np.complex128(0.61569+0j)
    """


@ufunc(partial(prim.dawsn, order=0))
def dawsn(x: ArrayLike, /) -> Array:
    """Dawson's integral, ``exp(-x**2) * int_0^x exp(t**2) dt`` (DLMF 7.2.5). Real numbers only.

    All derivatives are accurate also for large ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.dawsn(1.0).round(6)
        np.float64(0.53808)
    """


@ufunc(prim.ndtr)
def ndtr(x: ArrayLike, /) -> Array:
    """The distribution function of the standard normal distribution.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.ndtr(1.959963984540054).round(12)
        np.float64(0.975)
    """


@ufunc(prim.log_ndtr)
def log_ndtr(x: ArrayLike, /) -> Array:
    """The logarithm of ``ndtr``, where that vanishes too. Its derivative is accurate there.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.log_ndtr)(-1e6).round(9)
        np.float64(1000000.000001)
    """


@ufunc(prim.ndtri)
def ndtri(p: ArrayLike, /) -> Array:
    """The inverse of ``ndtr``: the quantile function of the standard normal distribution.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.ndtri(0.975).round(6)
        np.float64(1.959964)
    """


@ufunc(prim.ndtri_exp)
def ndtri_exp(y: ArrayLike, /) -> Array:
    """The inverse of ``log_ndtr``. JAX arrays: as far as ``exp(y)`` is a number above 0 and below 1.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.ndtri_exp(-1e4).round(6)
        np.float64(-141.37984)
    """


@ufunc(prim.owens_t)
def owens_t(h: ArrayLike, a: ArrayLike, /) -> Array:
    """Owen's T: ``int_0^a exp(-h**2 (1 + t**2) / 2) / (1 + t**2) dt / (2 pi)``.

    The derivatives in both arguments are elementary (D. B. Owen, Ann. Math. Statist. 27, 1956).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.owens_t(1.0, 1.0).round(6)
        np.float64(0.066742)
    """


@ufunc(prim.fresnel)
def fresnel(z: ArrayLike, /) -> tuple[Array, Array]:
    """Fresnel's integrals S and C, of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` from 0 to ``z`` (DLMF 7.2.7).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> s, c = fsp.fresnel(1.0)
        >>> s.round(6), c.round(6)
        (np.float64(0.438259), np.float64(0.779893))
    """


@ufunc(prim.voigt_profile)
def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike, /) -> Array:
    """The density at ``x`` of a normal variable of deviation ``sigma`` plus a Cauchy variable of half-width ``gamma``.

    Differentiable in all arguments, for positive ``sigma``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.voigt_profile(0.5, 1.0, 1.0).round(6)
        np.float64(0.19677)
    """
