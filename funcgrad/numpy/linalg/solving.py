"""Inverses, systems of equations, determinants, and Cholesky factors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.kinds.linear import permute, reshape
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_numpy_only, is_plain
from funcgrad.numpy.reducing import as_floating
from funcgrad.primitives import determinants, solving
from funcgrad.typing import Array, ArrayLike

__all__ = ["cholesky", "det", "inv", "slogdet", "solve", "tensorinv", "tensorsolve"]

#: NumPy's class of results, a pair with the names ``sign`` and ``logabsdet``.
SlogdetResult: Any = type(np.linalg.slogdet(np.ones((1, 1))))


def check_square(name: str, a: ArrayLike, remedy: str = "Check its shape.") -> Array:
    """Return ``a`` as an array, after a check that its matrices are square.

    Raises:
        LinAlgError: fewer than two axes, or the last two have different lengths.

    Example:
        >>> check_square("expm", [[2]])
        array([[2]])
    """
    a = as_value(a)
    shape = backend.shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise LinAlgError(f"{name}: square matrices in the last two axes are needed, got {describe(a)}. {remedy}")
    return a


def square(name: str, a: ArrayLike) -> Array:
    """Return ``a`` in a floating dtype, after a check that its matrices are square, see ``check_square``.

    Example:
        >>> square("inv", np.array([[2]]))
        array([[2.]])
    """
    return as_floating(check_square(name, a, "Check its shape, or take lstsq or pinv."))


def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices.

    Args:
        a: matrices in the last two axes. Integers are converted to floating-point numbers.

    Raises:
        LinAlgError: a matrix is singular, or not square. On JAX arrays a singular one gives NaN or infinity.
        TypeError: a dtype that LAPACK does not have, such as float16.

    Example:
        >>> fnp.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    a = as_value(a)
    if is_numpy_only(a):
        return np.linalg.inv(a)
    return solving.inv(square("inv", a))


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the solution ``x`` of the linear equations ``a @ x = b``.

    The derivative solves one more system with ``a``, transposed in reverse mode.

    Args:
        a: square matrices in the last two axes; the leading axes broadcast with the leading axes of ``b``.
        b: a vector if it has exactly one axis; otherwise matrices whose columns are right-hand sides.

    Raises:
        LinAlgError: a matrix is singular, or not square. On JAX arrays a singular one gives NaN or infinity.
        ValueError: lengths that do not match.
        TypeError: a dtype that LAPACK does not have, such as float16.

    Example:
        >>> fnp.linalg.solve(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
        array([1., 2.])
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.linalg.solve(a, b)
    a = square("solve", a)
    shape = backend.shape_of(b)
    if not shape or shape[-2:][0] != backend.shape_of(a)[-1]:
        raise ValueError(
            f"solve: as many right-hand sides as rows are needed, got {describe(a)} and {describe(b)}. Of two "
            "axes and more, b has the equations in the last axis but one."
        )
    if len(shape) > 1:
        return solving.solve(a, b)
    x = solving.solve(a, reshape(b, to=(*shape, 1)))
    return reshape(x, to=backend.shape_of(x)[:-1])


def det(a: ArrayLike) -> Array:
    """Return the determinants of square matrices.

    The gradient is the matrix of cofactors. Derivatives of every order are exact at singular matrices too, whatever
    their rank. From the third order on, a derivative of order k of matrices with n > 3 rows takes time and memory of
    the order of ``n ** k``.

    Args:
        a: matrices in the last two axes.

    Raises:
        LinAlgError: a matrix is not square.
        TypeError: a dtype that LAPACK does not have, such as float16.

    Example:
        >>> grad(fnp.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]]))
        array([[ 4., -2.],
               [-2.,  1.]])
    """
    a = as_value(a)
    if is_numpy_only(a):
        return np.linalg.det(a)
    return determinants.det(square("det", a))


def slogdet(a: ArrayLike) -> Any:
    """Return the sign and the logarithm of the absolute value of determinants, without overflow.

    A complex sign has absolute value 1, depends on the matrix and has a derivative. The derivative of the logarithm
    is the transposed inverse; at a singular matrix the derivative is infinite or NaN.

    Args:
        a: square matrices in the last two axes.

    Returns:
        A named tuple of ``sign`` and ``logabsdet``, 0 and minus infinity for a singular matrix.

    Raises:
        LinAlgError: a matrix is not square.
        TypeError: a dtype that LAPACK does not have, such as float16.

    Example:
        >>> fnp.linalg.slogdet(np.array([[0.0, 1.0], [1.0, 0.0]]))
        SlogdetResult(sign=np.float64(-1.0), logabsdet=np.float64(0.0))
    """
    a = as_value(a)
    if is_numpy_only(a):
        return np.linalg.slogdet(a)
    return SlogdetResult(*determinants.slogdet(square("slogdet", a)))


def cholesky(a: ArrayLike, /, *, upper: bool = False) -> Array:
    """Return the triangular factors L of Hermitian positive-definite matrices ``a = L @ L.mT.conj()``.

    Only one triangle of ``a`` is read, as in NumPy. If ``a`` is Hermitian, so is its gradient, and a gradient step
    keeps ``a`` Hermitian. If it is not, or diagonal, the derivative is in the triangle that is read.

    Args:
        a: matrices in the last two axes.
        upper: whether to read the upper triangle and return the upper factor, the adjoint of L.

    Raises:
        LinAlgError: a matrix is not square, or not positive definite, which gives NaN on JAX arrays.
        TypeError: a dtype that LAPACK does not have, such as float16.

    Example:
        >>> fnp.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 10.0]]))
        array([[2., 0.],
               [1., 3.]])
    """
    a = as_value(a)
    if is_numpy_only(a):
        return np.linalg.cholesky(a, upper=upper)
    return solving.cholesky(square("cholesky", a), upper=bool(upper))


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of ``a`` as a matrix; its first ``ind`` axes are the rows, the other axes the columns.

    Args:
        a: an array; the products of the lengths of both groups of axes must be equal.
        ind: the number of axes that are the rows, at least 1.

    Returns:
        An array with the two groups of axes exchanged: ``tensordot(tensorinv(a, ind), a, ind)`` is the identity.

    Raises:
        ValueError: ``ind`` is not positive.
        LinAlgError: the matrix is singular, or not square.

    Example:
        >>> fnp.linalg.tensorinv(np.eye(6).reshape(2, 3, 6), ind=2).shape
        (6, 2, 3)
    """
    a = as_value(a)
    if is_numpy_only(a):
        return np.linalg.tensorinv(a, ind)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind counts the axes of the rows, got {ind}. It is at least 1.")
    shape = backend.shape_of(a)
    rows, columns = shape[:ind], shape[ind:]
    inverse = inv(reshape(a, to=(prod(columns), prod(rows))))
    return reshape(inverse, to=(*columns, *rows))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Return the solution ``x`` of ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: an array of shape ``b.shape + x.shape``; ``b`` and ``x`` have equal numbers of elements.
        b: the right-hand side.
        axes: axes of ``a`` to move to its end first, in this order.

    Raises:
        LinAlgError: unequal numbers of elements, or a singular matrix.

    Example:
        >>> fnp.linalg.tensorsolve(2 * np.eye(6).reshape(2, 3, 6), np.ones((2, 3)))
        array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.linalg.tensorsolve(a, b, axes)
    shape = backend.shape_of(a)
    order = list(range(len(shape)))
    for axis in axes or ():
        order.remove(axis)
        order.append(axis)
    unknowns = tuple([shape[i] for i in order])[-(len(shape) - len(backend.shape_of(b))) :]
    n = prod(unknowns)
    if prod(shape) != n**2:
        raise LinAlgError(
            f"tensorsolve: as many equations as unknowns are needed, got {describe(a)} and {describe(b)}. The "
            "first axes of a, as many as b has, stand for the equations."
        )
    matrix = reshape(permute(a, axes=tuple(order)), to=(n, n))
    return reshape(solve(matrix, reshape(b, to=(prod(backend.shape_of(b)),))), to=unknowns)
