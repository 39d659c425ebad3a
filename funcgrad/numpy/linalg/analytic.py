"""The exponential, the square root and the logarithm of matrices, which NumPy does not have."""

from __future__ import annotations

import numpy as np

from funcgrad import backend
from funcgrad.numpy.creation import as_value
from funcgrad.primitives import matrix_functions as prim
from funcgrad.typing import Array, ArrayLike

__all__ = ["expm", "logm", "sqrtm"]


def _square(name: str, a: ArrayLike) -> Array:
    """``a`` as an array of square matrices."""
    a = as_value(a)
    shape = backend.shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise np.linalg.LinAlgError(
            f"linalg.{name}: the last two axes must be of equal length, got shape {shape}. Pass square matrices."
        )
    return a


def expm(a: ArrayLike) -> Array:
    """The exponential of square matrices.

    The derivative is exact at any matrix, of any order; eigenvalues play no role.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> fnp.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
        array([[1., 1.],
               [0., 1.]])
    """
    return prim.expm(_square("expm", a))


def sqrtm(a: ArrayLike) -> Array:
    """The principal square root of square matrices: its eigenvalues have positive real parts.

    Of a real matrix it is real unless that has negative eigenvalues; an eigenvalue on the negative axis has
    its root on the positive imaginary one. It is NaN where there is no root, and so is the derivative where
    an eigenvalue is zero. On JAX arrays the roots of real matrices are real, or NaN.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> fnp.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).round(12)
        array([[2., 0.],
               [0., 3.]])
    """
    a = _square("sqrtm", a)
    return prim.sqrtm(a, base=backend.shape_of(a)[-1])


def logm(a: ArrayLike) -> Array:
    """The principal logarithm of square matrices: the imaginary parts of its eigenvalues lie in (-pi, pi].

    Of a real matrix it is real unless that has negative eigenvalues. It is NaN where there is no logarithm: where an
    eigenvalue is zero. On JAX arrays the logarithms of real matrices are real, or NaN.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> fnp.linalg.logm([[1.0, 2.0], [0.0, 1.0]]).round(12)
        array([[0., 2.],
               [0., 0.]])
    """
    a = _square("logm", a)
    return prim.logm(a, base=backend.shape_of(a)[-1])
