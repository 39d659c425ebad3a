"""Hypergeometric functions: derivatives in the argument and in the parameters.

Those in parameters that come from central differences over 21 points are good to about 1e-13 of the function where
SciPy's values are; the fourth derivative is the last. At a pole of the function they are NaN.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from funcgrad.scipy.special.operations import hypergeometric as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hyperu",
]


@ufunc(lambda v, z: prim.hyp0f1(v, z, orders=(0, 0)))
def hyp0f1(v: ArrayLike, z: ArrayLike, /) -> Array:
    """The confluent limit function 0F1.

    Its derivative in z is ``hyp0f1(v + 1, z) / v``, DLMF 16.3.1; that in v comes from differences.
    Complex z are supported.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.hyp0f1)(0.5, 1.0).round(10)
        np.float64(-6.0726969045)
    """


@ufunc(lambda a, b, x: prim.hyp1f1(a, b, x, orders=(0, 0, 0)))
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Kummer's function M, 1F1.

    Its derivative in x is ``a / b * hyp1f1(a + 1, b + 1, x)``, DLMF 13.3.15; those in a and b come from differences.
    Complex x are supported. JAX arrays too, with the accuracy of JAX's kernel.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.hyp1f1)(0.5, 1.5, 1.0).round(10)
        np.float64(1.0250371354)
    """


@ufunc(lambda a, b, c, z: prim.hyp2f1(a, b, c, z, orders=(0, 0, 0, 0)))
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike, /) -> Array:
    """Gauss's function 2F1.

    Its derivative in z is ``a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)``, DLMF 15.5.1; those in a, b and c come from
    differences. Complex z are supported. JAX arrays too, with the accuracy of JAX's kernel.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.hyp2f1)(0.5, 1.5, 2.0, 0.3).round(10)
        np.float64(0.3003752441)
    """


@ufunc(prim.hyperu)
def hyperu(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """Tricomi's function U, for x > 0.

    Its derivatives come from the integral DLMF 13.4.4. For a <= 0, where there is none, that in x is
    ``-a * hyperu(a + 1, b + 1, x)``, DLMF 13.3.22, and those in a and b are NaN.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> grad(fsp.hyperu)(0.5, 1.5, 1.0).round(10)
        np.float64(-0.3309641863)
    """
