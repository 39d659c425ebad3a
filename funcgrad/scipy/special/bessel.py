"""Bessel functions, and those that belong to them: Hankel, spherical Bessel, Struve and Airy functions.

Derivatives in the argument come from recurrences and are exact to rounding wherever the values are. Those in a real
order ``v`` come from an integral (``kv``, ``kve``: any order of derivative) or from central differences over 21 points
(about 1e-13 of the function, up to the fourth derivative). SciPy's kernels know NumPy arrays; JAX has ``i0``, ``i1``,
``i0e``, ``i1e`` and ``bessel_jn``.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from funcgrad.scipy.special.operations import bessel as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "j0",
    "j1",
    "y0",
    "y1",
    "i0",
    "i1",
    "i0e",
    "i1e",
    "k0",
    "k1",
    "k0e",
    "k1e",
    "jn",
    "jv",
    "jve",
    "yn",
    "yv",
    "yve",
    "iv",
    "ive",
    "kn",
    "kv",
    "kve",
    "hankel1",
    "hankel1e",
    "hankel2",
    "hankel2e",
]


@ufunc(prim.j0)
def j0(x: ArrayLike, /) -> Array:
    """The Bessel function of the first kind of order 0. Its derivative is ``-j1(x)``, DLMF 10.6.3.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.j0)(1.0).round(12)
        np.float64(-0.440050585745)
    """


@ufunc(prim.j1)
def j1(x: ArrayLike, /) -> Array:
    """The Bessel function of the first kind of order 1. Its derivative is ``(j0(x) - jn(2, x)) / 2``, DLMF 10.6.1.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.j1)(0.0).round(12)
        np.float64(0.5)
    """


@ufunc(prim.y0)
def y0(x: ArrayLike, /) -> Array:
    """The Bessel function of the second kind of order 0. Its derivative is ``-y1(x)``, DLMF 10.6.3.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.y0)(1.0).round(12)
        np.float64(0.7812128213)
    """


@ufunc(prim.y1)
def y1(x: ArrayLike, /) -> Array:
    """The Bessel function of the second kind of order 1. Its derivative is ``(y0(x) - yn(2, x)) / 2``, DLMF 10.6.1.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.y1)(1.0).round(12)
        np.float64(0.869469785516)
    """


@ufunc(prim.i0)
def i0(x: ArrayLike, /) -> Array:
    """The modified Bessel function of the first kind of order 0. Its derivative is ``i1(x)``, DLMF 10.29.3.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.i0)(1.0).round(12)
        np.float64(0.565159103992)
    """


@ufunc(prim.i1)
def i1(x: ArrayLike, /) -> Array:
    """The modified Bessel function of the first kind of order 1.

    Its derivative is ``(i0(x) + iv(2, x)) / 2``, DLMF 10.29.1.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.i1)(0.0).round(12)
        np.float64(0.5)
    """


@ufunc(lambda x: prim.scaled_bessel_i(x, order=0))
def i0e(x: ArrayLike, /) -> Array:
    """``exp(-abs(x)) * i0(x)``. At the kink at 0 the slope of ``abs`` counts as 0.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.i0e)(0.0).round(12)
        np.float64(0.0)
    """


@ufunc(lambda x: prim.scaled_bessel_i(x, order=1))
def i1e(x: ArrayLike, /) -> Array:
    """``exp(-abs(x)) * i1(x)``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.i1e)(0.0).round(12)
        np.float64(0.5)
    """


@ufunc(prim.k0)
def k0(x: ArrayLike, /) -> Array:
    """The modified Bessel function of the second kind of order 0. Its derivative is ``-k1(x)``, DLMF 10.29.3.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.k0)(1.0).round(12)
        np.float64(-0.601907230197)
    """


@ufunc(prim.k1)
def k1(x: ArrayLike, /) -> Array:
    """The modified Bessel function of the second kind of order 1.

    Its derivative is ``-(k0(x) + kn(2, x)) / 2``, DLMF 10.29.1.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.k1)(1.0).round(12)
        np.float64(-1.022931668438)
    """


@ufunc(prim.k0e)
def k0e(x: ArrayLike, /) -> Array:
    """``exp(x) * k0(x)``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.k0e)(1.0).round(12)
        np.float64(-0.491690406456)
    """


@ufunc(prim.k1e)
def k1e(x: ArrayLike, /) -> Array:
    """``exp(x) * k1(x)``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.k1e)(1.0).round(12)
        np.float64(-1.144463079807)
    """


@ufunc(prim.jv)
def jv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The Bessel function of the first kind of real order.

    The derivative in z is ``(jv(v - 1, z) - jv(v + 1, z)) / 2``, DLMF 10.6.1. That in v is NaN for negative z, where
    only whole orders give real numbers. Complex z are supported.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.jv)(0.5, 1.0).round(10)
        np.float64(-0.4081037814)
    """


@ufunc(prim.yv)
def yv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The Bessel function of the second kind of real order.

    The derivative in z is ``(yv(v - 1, z) - yv(v + 1, z)) / 2``, DLMF 10.6.1; at v = 0 that in v is
    ``-pi / 2 * j0(z)``, DLMF 10.15.4. Complex z are supported.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.yv)(0.5, 1.0).round(10)
        np.float64(-0.8490394201)
    """


@ufunc(prim.iv)
def iv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The modified Bessel function of the first kind of real order.

    The derivative in z is ``(iv(v - 1, z) + iv(v + 1, z)) / 2``, DLMF 10.29.1; at v = 0 that in v is ``-k0(z)``,
    DLMF 10.38.4. Complex z are supported.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.iv)(0.5, 1.0).round(10)
        np.float64(-0.7801261782)
    """


@ufunc(prim.kv)
def kv(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The modified Bessel function of the second kind of real order.

    The derivative in z is ``-(kv(v - 1, z) + kv(v + 1, z)) / 2``, DLMF 10.29.1; that in v is the integral 10.32.9,
    differentiated, to any order. Complex z are supported.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.kv)(0.5, 1.0).round(10)
        np.float64(0.166597245)
    """


@ufunc(prim.jve)
def jve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """``jv(v, z) * exp(-abs(z.imag))``, which for real z is ``jv(v, z)``.

    Raises:
        NotDifferentiableError: a derivative for complex z, of which it is no analytic function.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.jve)(0.5, 1.0).round(10)
        np.float64(-0.4081037814)
    """


@ufunc(prim.yve)
def yve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """``yv(v, z) * exp(-abs(z.imag))``, which for real z is ``yv(v, z)``.

    Raises:
        NotDifferentiableError: a derivative for complex z, of which it is no analytic function.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.yve)(0.5, 1.0).round(10)
        np.float64(-0.8490394201)
    """


@ufunc(prim.ive)
def ive(v: ArrayLike, z: ArrayLike, /) -> Array:
    """``iv(v, z) * exp(-abs(z.real))``. At the kink at 0 the slope of ``abs`` counts as 0.

    Raises:
        NotDifferentiableError: a derivative for complex z, of which it is no analytic function.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.ive)(0.5, 1000.0).round(10)
        np.float64(-6.311e-06)
    """


@ufunc(prim.kve)
def kve(v: ArrayLike, z: ArrayLike, /) -> Array:
    """``kv(v, z) * exp(z)``. Complex z are supported.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.kve)(0.5, 1000.0).round(10)
        np.float64(1.98067e-05)
    """


@ufunc(prim.hankel1)
def hankel1(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The Hankel function ``jv(v, z) + 1j * yv(v, z)``, which is complex. Derivatives as for ``jv``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import jvp
        >>> jvp(lambda z: fsp.hankel1(0.5, z), (1.0,), (1.0,))[1].round(10)
        np.complex128(0.0954005144+0.8869461412j)
    """


@ufunc(prim.hankel1e)
def hankel1e(v: ArrayLike, z: ArrayLike, /) -> Array:
    """``hankel1(v, z) * exp(-1j * z)``, which is complex.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import jvp
        >>> jvp(lambda z: fsp.hankel1e(0.5, z), (1.0,), (1.0,))[1].round(10)
        np.complex128(0.3989422804j)
    """


@ufunc(prim.hankel2)
def hankel2(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The Hankel function ``jv(v, z) - 1j * yv(v, z)``, which is complex. Derivatives as for ``jv``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import jvp
        >>> jvp(lambda z: fsp.hankel2(0.5, z), (1.0,), (1.0,))[1].round(10)
        np.complex128(0.0954005144-0.8869461412j)
    """


@ufunc(prim.hankel2e)
def hankel2e(v: ArrayLike, z: ArrayLike, /) -> Array:
    """``hankel2(v, z) * exp(1j * z)``, which is complex.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import jvp
        >>> jvp(lambda z: fsp.hankel2e(0.5, z), (1.0,), (1.0,))[1].round(10)
        np.complex128(-0.3989422804j)
    """


@ufunc(prim.yn)
def yn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Bessel function of the second kind of whole order ``n`` at ``x``.

    Raises:
        NotDifferentiableError: a derivative in n: take ``yv``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.yn, 1)(2, 1.0).round(12)
        np.float64(2.520152392332)
    """


@ufunc(prim.kn)
def kn(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The modified Bessel function of the second kind of whole order ``n`` at ``x``.

    Raises:
        NotDifferentiableError: a derivative in n: take ``kv``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.kn, 1)(2, 1.0).round(12)
        np.float64(-3.851585027468)
    """


#: SciPy's other name of it.
jn = jv
