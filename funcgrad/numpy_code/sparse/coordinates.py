"""Sparse matrices from coordinates and values: arrays, diagonals, blocks, and ``coo_array`` with its order."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.conversions import is_traced


def every_element(x: Any) -> Any:
    """Return values and coordinates of all elements of a traced array: an element that is 0 may have a derivative."""
    if not is_traced(x) and not isinstance(x, list):
        return x
    x = fnp.atleast_2d(x)
    rows, columns = np.indices(x.shape).reshape(2, -1)
    return x.reshape(-1), (rows, columns)


def of_diagonals(shape: Any, data: Any, offsets: Any) -> Any:
    """Return values and coordinates of diagonals: ``data`` has a diagonal in each row, aligned by column."""
    data, offsets = fnp.atleast_2d(data), np.atleast_1d(np.asarray(offsets))
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    return data[inside], (rows[inside], columns[inside])


def of_blocks(shape: Any, data: Any, places: Any) -> Any:
    """Return values and coordinates of the elements of blocks, stored as in ``bsr_matrix``."""
    (indices, indptr), (_, m, n) = places, data.shape
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[:, None, None] * m + np.arange(m)[:, None]
    columns = np.asarray(indices)[:, None, None] * n + np.arange(n)
    return data.reshape(-1), tuple(x.ravel() for x in np.broadcast_arrays(rows, columns))


def changes() -> Any:
    """Return the module for writes to sparse matrices, which is imported at the first call."""
    return import_module("funcgrad.scipy.sparse.changes")


# Members of matrices made of coordinates and values, which keep the order in which they were given.


def _in_order(self: Any) -> Any:
    order = self.structure.order
    return self.given if order is None else self.given[order]


def _put_back(self: Any, values: Any) -> None:
    order = self.structure.order
    self.given = values if order is None else values[np.argsort(order)]


def _give(self: Any, values: Any) -> None:
    self.given = self.with_data(values).values if self.structure.order is None else values


def _as_given(self: Any) -> tuple[Any, Any]:
    rows, columns = self.places()
    back = slice(None) if self.structure.order is None else np.argsort(self.structure.order)
    return rows[back], columns[back]


def _diagonal_set(self: Any, values: Any, k: int = 0) -> None:
    """Compute ``coo_array.setdiag``: drop the elements on the diagonal, and append the written ones."""
    rows, columns, values = self.diagonal_of(values, k)
    if not len(rows):
        return
    kept = (self.col - self.row != k) | (self.row > max(rows))
    places = np.append(self.row[kept], rows), np.append(self.col[kept], columns)
    data = fnp.concatenate([self.given[kept], values])
    self._note(rows * self.shape[1] + columns, values)
    self.take(type(self)((data, places), self.shape, traced=True))


def _sum_given(self: Any) -> None:
    """Compute ``coo_array.sum_duplicates``, with the order of coordinates that SciPy produces."""
    theirs = type(self).theirs((np.ones(self.nnz), self.coords), shape=self.shape)
    theirs.sum_duplicates()
    if theirs.nnz < self.nnz or not np.array_equal(theirs.row, self.row) or not np.array_equal(theirs.col, self.col):
        whole = self.summed()
        first, _, order = whole._found(*((theirs.col, theirs.row) if whole.transposed else theirs.coords))
        self.take(type(self)((whole.values[order[first]], (theirs.row, theirs.col)), self.shape, traced=True))


def _keep_given(self: Any, kept: Any) -> None:
    rows, columns = self.coords
    self.take(type(self)((self.given[kept], (rows[kept], columns[kept])), self.shape, traced=True))


def _no_assignment(self: Any, key: Any, value: Any) -> None:
    raise TypeError(f"{type(self).__name__!r} object does not support item assignment")


COORDINATES: dict[str, Any] = {
    "__setitem__": _no_assignment,
    "values": property(_in_order, _put_back),
    "data": property(lambda self: self.given, _give),
    "stored": property(lambda self: self.given, _give),
    "row": property(lambda self: self.coords[0]),
    "col": property(lambda self: self.coords[1]),
    "coords": property(_as_given),
    "setdiag": _diagonal_set,
    "keep": _keep_given,
    "sum_duplicates": _sum_given,
}
