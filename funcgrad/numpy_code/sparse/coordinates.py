"""Values and coordinates of the elements of arrays, diagonals and blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.conversions import is_traced


def of_elements(x: Any, shape: Any) -> tuple[Any, Any]:
    """Return values and coordinates of all elements of a traced array, and the shape of the matrix.

    An element that is 0 may have a derivative.
    """
    if not is_traced(x) and not isinstance(x, list):
        return x, shape
    x = fnp.atleast_2d(x)
    rows, columns = np.indices(x.shape).reshape(2, x.size)
    return (x.reshape(-1), (rows, columns)), x.shape if shape is None else shape


def of_diagonals(shape: Any, data: Any, offsets: Any) -> Any:
    """Return values and coordinates of diagonals: ``data`` has a diagonal in each row, aligned by column."""
    data, offsets = fnp.atleast_2d(data), np.atleast_1d(np.asarray(offsets))
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    return data[inside], (rows[inside], columns[inside])


def of_blocks(data: Any, places: Any) -> Any:
    """Return values and coordinates of the elements of blocks, stored as in ``bsr_matrix``."""
    (indices, indptr), (_, m, n) = places, data.shape
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[:, None, None] * m + np.arange(m)[:, None]
    columns = np.asarray(indices)[:, None, None] * n + np.arange(n)
    return data.reshape(-1), tuple(x.ravel() for x in np.broadcast_arrays(rows, columns))
