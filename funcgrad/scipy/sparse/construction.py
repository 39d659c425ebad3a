"""Sparse matrices made of diagonals, of blocks, and of parts of other matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_floating
from funcgrad.optional import import_scipy
from funcgrad.scipy.sparse.matrices import (
    SparseArray,
    as_sparse,
    assembled,
    csr_array,
    dense_as_sparse,
    is_of_dense,
    rearrange,
)

__all__ = ["block_array", "diags_array", "eye_array", "hstack", "kron", "tril", "triu", "vstack"]


def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: tuple[int, int] | None = None,
    format: str | None = None,
    dtype: Any = np._NoValue,
) -> SparseArray:
    """Build the matrix with these diagonals.

    Args:
        diagonals: arrays, or numbers, which need a ``shape``; their values may be traced. One array is one diagonal.
            As in SciPy, of a longer array the first elements are taken.
        offsets: the index of each diagonal: 0 for the main one, positive above it.
        shape: rows and columns; by default a square just large enough for the first diagonal.
        format: ignored: there is one format here.
        dtype: the dtype; by default that of the values, but integers become floating-point numbers; None keeps them.

    Raises:
        ShapeError: lengths or offsets that do not match (a ``ValueError``).

    Example:
        >>> from funcgrad.scipy.sparse import diags_array
        >>> diags_array([np.array([1.0, 2.0]), 5.0], offsets=[0, 1], shape=(2, 2)).toarray()
        array([[1., 5.],
               [0., 2.]])
    """
    places = [int(k) for k in np.atleast_1d(offsets)]
    if len(set(places)) < len(places):
        raise ShapeError(f"sparse.diags_array: each diagonal needs its own offset, got {places}. Add the diagonals.")
    parts = _diagonals(diagonals, single=np.ndim(offsets) == 0)
    if len(parts) != len(places):
        raise ShapeError(
            f"sparse.diags_array: diagonals and offsets must have the same number, got {len(parts)} and {len(places)}."
        )
    if shape is None:
        side = backend.shape_of(parts[0])[0] + abs(places[0])
        shape = (side, side)
    data, rows, columns = [], [], []
    for part, k in zip(parts, places, strict=True):
        length = min(shape[0] + min(k, 0), shape[1] - max(k, 0))
        given = backend.shape_of(part)[0]
        if length < 0 or (given != 1 and given < length):
            raise ShapeError(
                f"sparse.diags_array: the diagonal {k} of {shape[0]} x {shape[1]} has {max(length, 0)} elements, got "
                f"{given}. Check it."
            )
        part = part if given <= length else part[:length]
        data.append(fnp.broadcast_to(part, (length,)))
        rows.append(np.arange(length) + max(-k, 0))
        columns.append(np.arange(length) + max(k, 0))
    values = fnp.concatenate(data)
    is_missing = dtype is np._NoValue or type(dtype) is object  # SciPy's code passes its own marker
    if is_missing:
        values = as_floating(values)
    elif dtype is not None:
        values = fnp.astype(values, dtype)
    return assembled(values, np.concatenate(rows), np.concatenate(columns), shape)


def _diagonals(given: Any, single: bool) -> list[Any]:
    """Return the diagonals as arrays; ``single``: whether a list of numbers is one diagonal."""
    if not isinstance(given, (list, tuple)):
        given = [given] if len(backend.shape_of(as_value(given))) == 1 else given
    elif single and (len(given) > 1 or not given):
        if any(isinstance(part, (list, tuple)) or len(backend.shape_of(as_value(part))) for part in given):
            raise ShapeError(f"sparse.diags_array: one offset is for one diagonal, got {len(given)}. Pass offsets.")
        given = [given]
    return [fnp.atleast_1d(fnp.array(part) if isinstance(part, (list, tuple)) else as_value(part)) for part in given]


def eye_array(
    m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: str | None = None
) -> SparseArray:
    """Build the matrix with ones on its ``k``-th diagonal.

    Args:
        m: the number of rows.
        n: the number of columns; by default ``m``.
        k: the index of the diagonal.
        dtype: the dtype.
        format: ignored: there is one format here.

    Example:
        >>> from funcgrad.scipy.sparse import eye_array
        >>> eye_array(2).toarray()
        array([[1., 0.],
               [0., 1.]])
    """
    return csr_array(import_scipy("sparse.eye_array", "scipy.sparse").eye_array(m, n, k=k, dtype=dtype))


def _part(call: str, x: Any) -> SparseArray:
    """Return a sparse or dense matrix as a ``SparseArray``; zeros of a plain dense matrix are dropped."""
    if not isinstance(x, (Tracer, np.ndarray, list)):
        return as_sparse(call, x)
    x = fnp.atleast_2d(x)
    if is_plain(x):
        return csr_array(x)
    made = dense_as_sparse(x)
    made.of_dense = True
    return made


def kron(A: Any, B: Any, format: str | None = None) -> SparseArray:
    """Return the Kronecker product of two sparse matrices.

    Args:
        A: a ``SparseArray``, or a sparse matrix of SciPy, or an array.
        B: likewise.
        format: ignored: there is one format here.

    Raises:
        InputError: an argument that is not sparse.

    Example:
        >>> from funcgrad.scipy.sparse import eye_array, kron
        >>> kron(eye_array(2), 3.0 * eye_array(1)).toarray()
        array([[3., 0.],
               [0., 3.]])
    """
    A, B = [_part("sparse.kron", x) for x in (A, B)]
    (rows, columns), (below, beside) = A.places(), B.places()
    (m, n), (p, q) = A.shape, B.shape
    data = fnp.ravel(A.values[:, None] * B.values)
    at = [
        np.ravel(outer[:, None] * length + inner) for outer, inner, length in ((rows, below, p), (columns, beside, q))
    ]
    made = assembled(data, at[0], at[1], (m * p, n * q))
    made.of_dense = A.of_dense or B.of_dense
    return made


def block_array(blocks: Sequence[Sequence[Any]], *, format: str | None = None, dtype: Any = None) -> SparseArray:
    """Build a matrix from blocks.

    Args:
        blocks: rows of sparse matrices or arrays, with None for a block of zeros.
        format: ignored: there is one format here.
        dtype: the dtype; by default that of the values.

    Raises:
        ValueError: shapes that do not match.

    Example:
        >>> from funcgrad.scipy.sparse import block_array, eye_array
        >>> block_array([[eye_array(1), None], [None, 2.0 * eye_array(1)]]).toarray()
        array([[1., 0.],
               [0., 2.]])
    """
    scipy = import_scipy("sparse.block_array", "scipy.sparse")
    whole = [_part("sparse.block_array", block) for row in blocks for block in row if block is not None]

    def arrange(*numbers: Any) -> Any:
        rest = iter(numbers)
        return scipy.block_array([[None if block is None else next(rest) for block in row] for row in blocks])

    made: SparseArray = rearrange(arrange, *whole)
    return made if dtype is None else made.with_data(fnp.astype(made.values, dtype))


def hstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArray:
    """Join sparse matrices side by side; see ``block_array``.

    Raises:
        ValueError: shapes that do not match.

    Example:
        >>> from funcgrad.scipy.sparse import eye_array, hstack
        >>> hstack([eye_array(1), 2.0 * eye_array(1)]).toarray()
        array([[1., 2.]])
    """
    return block_array([list(blocks)], dtype=dtype)


def vstack(blocks: Sequence[Any], format: str | None = None, dtype: Any = None) -> SparseArray:
    """Stack sparse matrices on top of each other; see ``block_array``.

    Raises:
        ValueError: shapes that do not match.

    Example:
        >>> from funcgrad.scipy.sparse import eye_array, vstack
        >>> vstack([eye_array(1), 2.0 * eye_array(1)]).toarray()
        array([[1.],
               [2.]])
    """
    return block_array([[block] for block in blocks], dtype=dtype)


@function_table
def _triangle(name: str, A: Any, k: int = 0, format: str | None = None) -> SparseArray:
    part = getattr(import_scipy(f"sparse.{name}", "scipy.sparse"), name)
    whole = _part(f"sparse.{name}", A)
    made: SparseArray = rearrange(lambda numbers: part(numbers, k), whole)
    made.of_dense = is_of_dense(whole)
    return made


# fmt: off
tril = _triangle("tril", """The part of a matrix, sparse or dense, on and below its ``k``-th diagonal.
""", "tril(eye_array(2), k=-1).nnz", "0")
triu = _triangle("triu", """The part of a matrix, sparse or dense, on and above its ``k``-th diagonal.
""", "triu(eye_array(2)).nnz", "2")
# fmt: on
