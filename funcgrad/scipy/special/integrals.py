"""Exponential, sine, cosine and hyperbolic integrals, and Spence's function."""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from funcgrad.scipy.special.operations import exponential_integrals as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "expi",
    "exp1",
    "expn",
    "sici",
    "shichi",
    "spence",
]


@ufunc(prim.expi)
def expi(x: ArrayLike, /) -> Array:
    """The exponential integral Ei, ``int_-inf^x exp(t) / t dt``; real or complex (DLMF 6.2.5).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.expi(1.0).round(6)
        np.float64(1.895118)
    """


@ufunc(prim.exp1)
def exp1(z: ArrayLike, /) -> Array:
    """The exponential integral E1, ``int_z^inf exp(-t) / t dt``; real or complex (DLMF 6.2.1).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.exp1(1.0).round(6)
        np.float64(0.219384)
    """


@ufunc(prim.expn)
def expn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The generalised exponential integral ``int_1^inf exp(-x t) / t**n dt``, for ``x >= 0`` (DLMF 8.19.3).

    The order ``n`` is an integer, or an array of such; it has no derivative, and asking for one raises.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.expn(2, 1.0).round(6)
        np.float64(0.148496)
    """


@ufunc(prim.sici)
def sici(x: ArrayLike, /) -> tuple[Array, Array]:
    """The sine and the cosine integral, of ``sin(t) / t`` from 0 and of ``cos(t) / t`` from infinity (DLMF 6.2).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> si, ci = fsp.sici(1.0)
        >>> si.round(6), ci.round(6)
        (np.float64(0.946083), np.float64(0.337404))
    """


@ufunc(prim.shichi)
def shichi(x: ArrayLike, /) -> tuple[Array, Array]:
    """The hyperbolic sine and cosine integrals (DLMF 6.2.15, 6.2.16).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> shi, chi = fsp.shichi(1.0)
        >>> shi.round(6), chi.round(6)
        (np.float64(1.057251), np.float64(0.837867))
    """


@ufunc(prim.spence)
def spence(z: ArrayLike, /) -> Array:
    """Spence's function or dilogarithm, ``int_1^z log(t) / (1 - t) dt``; real or complex (DLMF 25.12.2).

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.spence([0.0, 1.0]).round(6)
        array([1.644934, 0.      ])
    """
