"""Powers, products and roots of matrices, and functions of ``numpy`` under their names in ``numpy.linalg``.

``matmul``, ``matrix_transpose`` and ``vecdot`` are the functions of ``funcgrad.numpy``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.kinds.linear import broadcast_to
from funcgrad.numpy import diagonals, products
from funcgrad.numpy.creation import as_buffer, as_value
from funcgrad.numpy.linalg.solving import check_square, inv
from funcgrad.numpy.plain_values.peeking import is_numpy_only, is_plain
from funcgrad.numpy.products import contract, matmul, vecdot
from funcgrad.numpy.shaping import matrix_transpose
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import matrix_functions as prim
from funcgrad.primitives.products import LETTERS
from funcgrad.primitives.products import matmul as product
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot", "expm", "logm", "sqrtm",
]  # fmt: skip


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Return square matrices raised to the integer power ``n``; negative powers are powers of the inverse.

    Args:
        a: matrices in the last two axes.
        n: the exponent. The power 0 is the identity, and its derivative is zero.

    Raises:
        TypeError: ``n`` is not an integer.
        LinAlgError: a matrix is not square, or singular while ``n`` is negative.

    Example:
        >>> fnp.linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 3)
        array([[1., 3.],
               [0., 1.]])
    """
    a = as_value(a)
    if is_numpy_only(a):
        return np.linalg.matrix_power(a, n)
    shape = backend.shape_of(check_square("matrix_power", a))
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError(
            f"matrix_power: the exponent is an integer, got {n!r}. Take expm and logm for others."
        ) from error
    if n == 0:
        return as_buffer(broadcast_to(np.eye(shape[-1], dtype=backend.dtype_of(a)), to=shape).copy())
    power, n = (a, n) if n > 0 else (inv(a), -n)
    ans = None
    while True:  # the bits of n from the lowest; power is squared for each bit
        if n & 1:
            ans = power if ans is None else product(ans, power)
        n >>= 1
        if not n:
            return ans
        power = product(power, power)


def multi_dot(arrays: Sequence[ArrayLike], *, out: Any = None) -> Array:
    """Return the product of several matrices, multiplied in an order that takes few operations.

    Args:
        arrays: two matrices or more; the first and the last may be vectors.
        out: an array for the result.

    Raises:
        ValueError: fewer than two arrays, or lengths that do not match.
        LinAlgError: an array that is not a matrix.

    Example:
        >>> fnp.linalg.multi_dot([np.ones(2), np.ones((2, 3)), np.ones((3, 2)), np.ones(2)])
        np.float64(12.0)
    """
    if out is not None:
        return compute_into(multi_dot, out, arrays)
    factors = [as_value(a) for a in arrays]
    if is_plain(*factors):
        return np.linalg.multi_dot(factors)
    if len(factors) < 2:
        raise ValueError(f"multi_dot: two arrays or more are needed, got {len(factors)}. Pass a list of them.")
    if len(factors) == 2:
        return products.dot(*factors)
    ends = (0, len(factors) - 1)
    for i, factor in enumerate(factors):
        rank = len(backend.shape_of(factor))
        if rank != 2 and not (rank == 1 and i in ends):
            raise LinAlgError(f"multi_dot: factor {i} must be a matrix, got {describe(factor)}. Take matmul of stacks.")
    terms = [LETTERS[i : i + 2] for i in range(len(factors))]
    if len(backend.shape_of(factors[0])) == 1:
        terms[0] = terms[0][1:]
    if len(backend.shape_of(factors[-1])) == 1:
        terms[-1] = terms[-1][:1]
    for left, right in pairwise(factors):
        if backend.shape_of(left)[-1] != backend.shape_of(right)[0]:
            raise ShapeError(f"multi_dot: columns meet rows, got {describe(left)} and {describe(right)}. Check them.")
    open_letters = terms[0][:-1] + terms[-1][1:]
    return contract(tuple(terms), open_letters, factors)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return the cross product of vectors with three components along ``axis``; the other axes broadcast.

    Raises:
        ValueError: vectors of another length.

    Example:
        >>> fnp.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
        array([0., 0., 1.])
    """
    x1, x2 = as_value(x1), as_value(x2)
    if backend.shape_of(x1)[axis] != 3 or backend.shape_of(x2)[axis] != 3:
        raise ShapeError(
            f"cross: vectors have three components, got {describe(x1)} and {describe(x2)} along axis "
            f"{axis}. Append zeros."
        )
    return products.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return all products of an element of one vector and an element of another.

    Raises:
        ValueError: an argument is not a vector.

    Example:
        >>> fnp.linalg.outer([1.0, 2.0], [3.0, 4.0])
        array([[3., 4.],
               [6., 8.]])
    """
    x1, x2 = as_value(x1), as_value(x2)
    if len(backend.shape_of(x1)) != 1 or len(backend.shape_of(x2)) != 1:
        raise ShapeError(f"outer: two vectors are needed, got {describe(x1)} and {describe(x2)}. Flatten them first.")
    return products.outer(x1, x2)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2) -> Array:
    """Return the sum of products over a number of axes, or over two lists of axes; see ``funcgrad.numpy.tensordot``.

    Example:
        >>> fnp.linalg.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=1)
        array([[3., 3.],
               [3., 3.]])
    """
    return products.tensordot(x1, x2, axes)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of the matrices in the last two axes.

    Raises:
        ValueError: fewer than two axes.

    Example:
        >>> fnp.linalg.diagonal([[1, 2], [3, 4]], offset=1)
        array([2])
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sums along a diagonal of the matrices in the last two axes.

    Args:
        x: an array with two axes or more.
        offset: the diagonal; positive numbers mean diagonals above the main diagonal.
        dtype: the dtype to sum in.

    Raises:
        ValueError: fewer than two axes.

    Example:
        >>> fnp.linalg.trace(np.ones((3, 2, 2)))
        array([2., 2., 2.])
    """
    return products.trace(x, offset, -2, -1, dtype)


def expm(a: ArrayLike) -> Array:
    """Return the exponential of square matrices.

    Derivatives of any order are exact at any matrix, whatever its eigenvalues.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> fnp.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
        array([[1., 1.],
               [0., 1.]])
    """
    return prim.expm(check_square("linalg.expm", a))


def sqrtm(a: ArrayLike) -> Array:
    """Return the principal square root of square matrices: its eigenvalues have positive real parts.

    The root of a real matrix is real unless the matrix has negative eigenvalues; a negative eigenvalue has its root on
    the positive imaginary axis. The result is NaN if there is no root; the derivative is NaN if an eigenvalue is zero.
    On JAX arrays the roots of real matrices are real, or NaN.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> fnp.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).round(12)
        array([[2., 0.],
               [0., 3.]])
    """
    a = check_square("linalg.sqrtm", a)
    return prim.sqrtm(a, base=backend.shape_of(a)[-1])


def logm(a: ArrayLike) -> Array:
    """Return the principal logarithm of square matrices: the imaginary parts of its eigenvalues lie in (-pi, pi].

    The logarithm of a real matrix is real unless the matrix has negative eigenvalues. The result is NaN if an
    eigenvalue is zero: no logarithm exists. On JAX arrays the logarithms of real matrices are real, or NaN.

    Raises:
        LinAlgError: matrices that are not square.

    Example:
        >>> fnp.linalg.logm([[1.0, 2.0], [0.0, 1.0]]).round(12)
        array([[0., 2.],
               [0., 0.]])
    """
    a = check_square("linalg.logm", a)
    return prim.logm(a, base=backend.shape_of(a)[-1])
