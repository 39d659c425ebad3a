"""Matrices of which one triangle is read, and Cholesky factors."""

from __future__ import annotations

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.kinds.linear import astype
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.reducing import as_floating
from funcgrad.primitives import solving
from funcgrad.primitives.products import swapped
from funcgrad.primitives.shaping import tril, triu
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg.mirror import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["cho_factor", "cho_solve", "cholesky"]


def floating(a: ArrayLike) -> Array:
    """``a`` in a dtype that LAPACK has: integers become floating numbers, half precision single.

    Example:
        >>> floating([1, 2])
        array([1., 2.])
    """
    a = as_floating(as_value(a))
    return astype(a, to=np.dtype(np.float32)) if backend.dtype_of(a) == np.float16 else a


def double(a: Array) -> Array:
    """``a`` in double precision, in which SciPy computes some functions."""
    return astype(a, to=np.result_type(backend.dtype_of(a), np.float64))


def square(name: str, a: ArrayLike) -> Array:
    """Square matrices of floating numbers.

    Raises:
        LinAlgError: fewer than two axes, or the last two have different lengths.

    Example:
        >>> square("inv", [[2]])
        array([[2.]])
    """
    a = as_value(a)
    shape = backend.shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise np.linalg.LinAlgError(
            f"{name}: square matrices in the last two axes are needed, got {describe(a)}. Check its shape."
        )
    return floating(a)


def symmetric_of(a: Array, lower: bool) -> Array:
    """The symmetric matrix of one triangle of ``a``."""
    return tril(a, k=0) + swapped(tril(a, k=-1)) if lower else triu(a, k=0) + swapped(triu(a, k=1))


def hermitian_of(a: Array, lower: bool) -> Array:
    """The Hermitian matrix of one triangle of ``a``."""
    if backend.dtype_of(a).kind != "c":
        return symmetric_of(a, lower)
    strict = tril(a, k=-1) if lower else triu(a, k=1)
    return strict + adjoint(strict) + np.eye(a.shape[-1], dtype=np.int8) * a.real


@mirrors
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The triangular factors of Hermitian positive-definite matrices: ``a = U^H U``, or ``a = L L^H``.

    One triangle is read, and only it has a derivative. ``funcgrad.numpy.linalg.cholesky`` takes ``a`` for a Hermitian
    matrix instead, with Hermitian gradients.

    Args:
        a: matrices in the last two axes.
        lower: whether to read the lower triangle and return L.
        overwrite_a: for SciPy alone, as ``check_finite`` is.
        check_finite: see ``overwrite_a``.

    Raises:
        LinAlgError: a matrix is not positive definite, or not square. On JAX arrays that gives NaN.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cholesky([[4.0, 2.0], [2.0, 10.0]])
        array([[2., 1.],
               [0., 3.]])
    """
    return solving.cholesky(hermitian_of(square("cholesky", a), bool(lower)), upper=not lower)


@mirrors
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor for ``cho_solve``, and ``lower``.

    What SciPy leaves in the other triangle is open, and nobody reads it; of traced values it is zero.

    Args:
        a: matrices in the last two axes, of which one triangle is read.
        lower: whether that is the lower one.
        overwrite_a: for SciPy alone, as ``check_finite`` is.
        check_finite: see ``overwrite_a``.

    Raises:
        LinAlgError: a matrix is not positive definite, or not square. On JAX arrays that gives NaN.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cho_solve(linalg.cho_factor([[4.0, 2.0], [2.0, 10.0]]), [6.0, 12.0]).round(12)
        array([1., 1.])
    """
    return cholesky(a, lower), lower


@mirrors
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution ``x`` of ``a @ x = b``, given the Cholesky factor of ``a``.

    Args:
        c_and_lower: what ``cho_factor`` gives. Only the triangle has a derivative.
        b: a vector, or matrices of right-hand sides.
        overwrite_b: for SciPy alone, as ``check_finite`` is.
        check_finite: see ``overwrite_b``.

    Raises:
        ValueError: lengths that do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cho_solve(([[2.0, 1.0], [0.0, 3.0]], False), [6.0, 12.0]).round(12)
        array([1., 1.])
    """
    factor, lower = square("cho_solve", c_and_lower[0]), bool(c_and_lower[1])
    right = floating(b)
    vector = len(backend.shape_of(right)) == 1
    x = right[:, None] if vector else right
    for adjoint_one in (not lower, lower):
        part = factor.conj() if adjoint_one else factor
        x = solving.solve_triangular(part, x, lower=lower, transposed=adjoint_one, unit_diagonal=False)
    return x[..., 0] if vector else x
