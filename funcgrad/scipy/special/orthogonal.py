"""Orthogonal polynomials, associated Legendre functions and spherical harmonics.

Degrees and orders are constants. A degree that is an integer gives a polynomial, another real one the function that
SciPy has for it.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from funcgrad.numpy.creation import as_value
from funcgrad.scipy.special.operations import orthogonal as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "eval_chebyc",
    "eval_chebys",
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_jacobi",
    "eval_laguerre",
    "eval_legendre",
    "eval_sh_chebyt",
    "eval_sh_chebyu",
    "eval_sh_legendre",
    "lpmv",
    "sph_harm_y",
]


@ufunc(lambda n, x: prim.eval_legendre(n, x, orders=(0, 0)))
def eval_legendre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Legendre polynomial of degree n.

    Its derivative in x is ``eval_gegenbauer(n - 1, 3 / 2, x)``, DLMF 18.7.9 with 18.9.19.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_legendre, 1)(3, 0.25).round(10)
        np.float64(-1.03125)
    """


@ufunc(lambda n, x: prim.eval_chebyt(n, x, orders=(0, 0)))
def eval_chebyt(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Chebyshev polynomial of the first kind of degree n.

    Its derivative in x is ``n * eval_chebyu(n - 1, x)``, DLMF 18.9.21.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_chebyt, 1)(3, 0.25).round(10)
        np.float64(-2.25)
    """


@ufunc(lambda n, x: prim.eval_chebyu(n, x, orders=(0, 0)))
def eval_chebyu(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Chebyshev polynomial of the second kind of degree n.

    Its derivative in x is ``2 * eval_gegenbauer(n - 1, 2, x)``, DLMF 18.9.19.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_chebyu, 1)(3, 0.25).round(10)
        np.float64(-2.5)
    """


@ufunc(lambda n, x: prim.eval_hermite(n, x, orders=(0, 0)))
def eval_hermite(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Hermite polynomial, the physicists' of degree n.

    Its derivative in x is ``2 * n * eval_hermite(n - 1, x)``, DLMF 18.9.25.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_hermite, 1)(3, 0.25).round(10)
        np.float64(-10.5)
    """


@ufunc(lambda n, x: prim.eval_hermitenorm(n, x, orders=(0, 0)))
def eval_hermitenorm(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Hermite polynomial, the probabilists' of degree n.

    Its derivative in x is ``n * eval_hermitenorm(n - 1, x)``, DLMF 18.9.27.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_hermitenorm, 1)(3, 0.25).round(10)
        np.float64(-2.8125)
    """


@ufunc(lambda n, x: prim.eval_laguerre(n, x, orders=(0, 0)))
def eval_laguerre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Laguerre polynomial of degree n.

    Its derivative in x is ``-eval_genlaguerre(n - 1, 1, x)``, DLMF 18.9.23.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_laguerre, 1)(3, 0.25).round(10)
        np.float64(-2.28125)
    """


@ufunc(lambda n, alpha, x: prim.eval_genlaguerre(n, alpha, x, orders=(0, 0, 0)))
def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Array:
    """The generalized Laguerre polynomial of degree n.

    Its derivative in x is ``-eval_genlaguerre(n - 1, alpha + 1, x)``, DLMF 18.9.23; that in alpha comes
    from differences.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_genlaguerre, 2)(3, 0.5, 0.25).round(10)
        np.float64(-3.53125)
    """


@ufunc(lambda n, alpha, x: prim.eval_gegenbauer(n, alpha, x, orders=(0, 0, 0)))
def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike, /) -> Array:
    """The Gegenbauer polynomial of degree n.

    Its derivative in x is ``2 * alpha * eval_gegenbauer(n - 1, alpha + 1, x)``, DLMF 18.9.19; that in alpha comes
    from differences.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_gegenbauer, 2)(3, 0.5, 0.25).round(10)
        np.float64(-1.03125)
    """


@ufunc(lambda n, alpha, beta, x: prim.eval_jacobi(n, alpha, beta, x, orders=(0, 0, 0, 0)))
def eval_jacobi(n: ArrayLike, alpha: ArrayLike, beta: ArrayLike, x: ArrayLike, /) -> Array:
    """The Jacobi polynomial of degree n.

    Its derivative in x is half of ``(n + alpha + beta + 1) *
    eval_jacobi(n - 1, alpha + 1, beta + 1, x)``, DLMF 18.9.15; those in the parameters come from differences.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_jacobi, 3)(3, 0.5, 0.5, 0.25).round(10)
        np.float64(-1.3671875)
    """


@ufunc(lambda n, x: eval_legendre(n, 2 * x - 1))
def eval_sh_legendre(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The shifted Legendre polynomial: ``eval_legendre(n, 2 * x - 1)``.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_sh_legendre, 1)(3, 0.25).round(10)
        np.float64(0.75)
    """


@ufunc(lambda n, x: eval_chebyt(n, 2 * x - 1))
def eval_sh_chebyt(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The shifted Chebyshev polynomial of the first kind: ``eval_chebyt(n, 2 * x - 1)``.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_sh_chebyt, 1)(3, 0.25).round(10)
        np.float64(0.0)
    """


@ufunc(lambda n, x: eval_chebyu(n, 2 * x - 1))
def eval_sh_chebyu(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The shifted Chebyshev polynomial of the second kind: ``eval_chebyu(n, 2 * x - 1)``.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_sh_chebyu, 1)(3, 0.25).round(10)
        np.float64(4.0)
    """


@ufunc(lambda n, x: 2 * eval_chebyt(n, x / 2))
def eval_chebyc(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Chebyshev polynomial of the first kind on [-2, 2]: ``2 * eval_chebyt(n, x / 2)``.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_chebyc, 1)(3, 0.25).round(10)
        np.float64(-2.8125)
    """


@ufunc(lambda n, x: eval_chebyu(n, x / 2))
def eval_chebys(n: ArrayLike, x: ArrayLike, /) -> Array:
    """The Chebyshev polynomial of the second kind on [-2, 2]: ``eval_chebyu(n, x / 2)``.

    Raises:
        NotDifferentiableError: a derivative in the degree n.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.eval_chebys, 1)(3, 0.25).round(10)
        np.float64(-1.8125)
    """


@ufunc(prim.lpmv)
def lpmv(m: ArrayLike, v: ArrayLike, x: ArrayLike, /) -> Array:
    """The associated Legendre function of the first kind at ``x``, of whole order ``m`` and degree ``v``.

    It has the factor (-1)**m.

    Its derivative in x is DLMF 14.10.5, which is NaN at -1 and 1.

    Raises:
        NotDifferentiableError: a derivative in m or v.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.lpmv, 2)(1, 2, 0.5).round(10)
        np.float64(-1.7320508076)
    """


def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike) -> Array:
    """The spherical harmonic of degree n and order m, complex, with the factor (-1)**m.

    The derivative in theta goes by the neighbouring orders and is exact at the poles too. JAX arrays are supported.
    SciPy has it from 1.15 on; with an older one ``sph_harm`` serves.

    Args:
        n: the degree, a constant.
        m: the order, from -n to n, a constant.
        theta: the polar angle, from 0 to pi.
        phi: the azimuthal angle.

    Raises:
        NotDifferentiableError: a derivative in n or m.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import jvp
        >>> jvp(lambda theta: fsp.sph_harm_y(1, 1, theta, 0.0), (0.0,), (1.0,))[1].round(10)
        np.complex128(-0.3454941495+0j)
    """
    return prim.sph_harm_y(as_value(n), as_value(m), as_value(theta), as_value(phi))
