"""Diagonals and triangles of matrices, and matrices that are built from a rule."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.kinds.linear import broadcast_to, permute, reshape
from funcgrad.numpy.axes import normalize_axes
from funcgrad.numpy.creation import as_buffer, as_value, on_host
from funcgrad.numpy.plain_values.peeking import is_numpy_only
from funcgrad.numpy.shaping import ravel
from funcgrad.primitives import shaping as prim
from funcgrad.primitives.arithmetic import power
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import make_read_only

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye", "identity", "tri", "tril",
    "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the diagonals of the matrices that ``axis1`` and ``axis2`` span, along a new last axis.

    Args:
        a: an array of at least two axes.
        offset: the distance of the diagonal above the main diagonal; negative below it.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Raises:
        ValueError: ``a`` has fewer than two axes, or ``axis1`` and ``axis2`` are the same axis.

    Example:
        >>> fnp.diagonal([[1, 2], [3, 4]])
        array([1, 4])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.diagonal(a, offset, axis1, axis2)
    rank = len(backend.shape_of(a))
    if rank < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    if rank > 2 or (axis1, axis2) != (0, 1):  # not the most frequent case
        first, second = normalize_axes((axis1, axis2), rank)
        if (first, second) != (rank - 2, rank - 1):
            a = permute(a, axes=(*[i for i in range(rank) if i not in (first, second)], first, second))
    return make_read_only(prim.diagonal(a, offset=operator.index(offset)))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the diagonal of a matrix, or the matrix that has a vector as its diagonal and is zero elsewhere.

    Args:
        v: a matrix or a vector.
        k: the distance of the diagonal above the main diagonal; negative below it.

    Raises:
        ValueError: ``v`` has neither one nor two axes.

    Example:
        >>> fnp.diag([1, 2])
        array([[1, 0],
               [0, 2]])
        >>> fnp.diag([[1, 0], [0, 2]])
        array([1, 2])
    """
    v = as_value(v)
    if namespace_of(v) is np:
        return np.diag(v, k)
    shape = backend.shape_of(v)
    if len(shape) == 1:
        n = shape[0] + abs(k)
        return prim.from_diagonal(v, offset=operator.index(k), rows=n, columns=n)
    if len(shape) == 2:
        return make_read_only(prim.diagonal(v, offset=operator.index(k)))
    raise ValueError("Input must be 1- or 2-d.")


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return the matrix that has the elements of the flattened ``v`` on its diagonal ``k`` and is zero elsewhere.

    Example:
        >>> fnp.diagflat([[1], [2]])
        array([[1, 0],
               [0, 2]])
    """
    v = as_value(v)
    return np.diagflat(v, k) if namespace_of(v) is np else diag(ravel(v), k)


def _matrices(m: Array) -> Array:
    """Return ``m``, or, for a vector, the square matrix whose rows all are that vector, as in NumPy."""
    shape = backend.shape_of(m)
    if not shape:
        raise TypeError("an array of at least one axis is needed, got a number")
    return broadcast_to(m, to=(*shape, *shape)) if len(shape) == 1 else m


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return ``m`` with zeros above the diagonal ``k`` of its last two axes.

    Example:
        >>> fnp.tril([[1, 2], [3, 4]])
        array([[1, 0],
               [3, 4]])
    """
    m = as_value(m)
    return np.tril(m, k) if namespace_of(m) is np else prim.tril(_matrices(m), k=operator.index(k))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return ``m`` with zeros below the diagonal ``k`` of its last two axes.

    Example:
        >>> fnp.triu([[1, 2], [3, 4]])
        array([[1, 2],
               [0, 4]])
    """
    m = as_value(m)
    return np.triu(m, k) if namespace_of(m) is np else prim.triu(_matrices(m), k=operator.index(k))


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return the matrix of powers of the elements of a vector, one row for each element.

    Args:
        x: a vector.
        N: the number of columns, by default the length of ``x``.
        increasing: whether the powers grow to the right, from 0 to ``N - 1``.

    Raises:
        ValueError: ``x`` is not a vector.

    Example:
        >>> fnp.vander([1.0, 2.0], 3)
        array([[1., 1., 1.],
               [4., 2., 1.]])
    """
    x = as_value(x)
    if is_numpy_only(x):
        return np.vander(x, N, increasing)
    shape = backend.shape_of(x)
    if len(shape) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    powers = np.arange(shape[0] if N is None else N)
    return power(reshape(x, to=(*shape, 1)), powers if increasing else powers[::-1])


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: Any = "C", *, device: Any = None) -> Array:
    """Make the matrix with ones on its diagonal ``k`` and zeros elsewhere.

    Example:
        >>> fnp.eye(2)
        array([[1., 0.],
               [0., 1.]])
    """
    return as_buffer(np.eye(N, M, k, dtype, order, device=device and on_host(device)))


def identity(n: int, dtype: Any = None) -> Array:
    """Make the square matrix with ones on its main diagonal and zeros elsewhere.

    Example:
        >>> fnp.identity(2, int)
        array([[1, 0],
               [0, 1]])
    """
    return as_buffer(np.identity(n, dtype))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Array:
    """Make the matrix with ones on and below its diagonal ``k`` and zeros elsewhere.

    Example:
        >>> fnp.tri(2)
        array([[1., 0.],
               [1., 1.]])
    """
    return as_buffer(np.tri(N, M, k, dtype))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of the lower triangle of a matrix.

    Example:
        >>> fnp.tril_indices(2)
        (array([0, 1, 1]), array([0, 0, 1]))
    """
    return np.tril_indices(n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of the upper triangle of a matrix.

    Example:
        >>> fnp.triu_indices(2)
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    return np.triu_indices(n, k, m)


def _matrix_shape(name: str, arr: Array) -> tuple[int, int]:
    shape = backend.shape_of(arr)
    if len(shape) != 2:
        raise ValueError(f"{name}: a matrix is needed, got shape {shape}")
    return shape


def tril_indices_from(arr: Array, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of the lower triangle of ``arr``.

    Example:
        >>> fnp.tril_indices_from(np.eye(2))
        (array([0, 1, 1]), array([0, 0, 1]))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return np.tril_indices(rows, k, columns)


def triu_indices_from(arr: Array, k: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column indices of the upper triangle of ``arr``.

    Example:
        >>> fnp.triu_indices_from(np.eye(2))
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return np.triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[np.ndarray, ...]:
    """Return the indices of the main diagonal of an array of ``ndim`` axes of length ``n``.

    Example:
        >>> fnp.diag_indices(2)
        (array([0, 1]), array([0, 1]))
    """
    return np.diag_indices(n, ndim)


def diag_indices_from(arr: Array) -> tuple[np.ndarray, ...]:
    """Return the indices of the main diagonal of ``arr``, whose axes must all have the same length.

    Raises:
        ValueError: ``arr`` has fewer than two axes, or axes of different lengths.

    Example:
        >>> fnp.diag_indices_from(np.eye(2))
        (array([0, 1]), array([0, 1]))
    """
    shape = backend.shape_of(arr)
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return np.diag_indices(shape[0], len(shape))
