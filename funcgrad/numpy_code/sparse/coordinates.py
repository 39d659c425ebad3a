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


def diagonal_coordinates(shape: Any, data: Any, offsets: Any) -> Any:
    """Return values and coordinates of diagonals: ``data`` has a diagonal in each row, aligned by column."""
    data, offsets = fnp.atleast_2d(data), np.atleast_1d(np.asarray(offsets))
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    return data[inside], (rows[inside], columns[inside])


def block_coordinates(shape: Any, data: Any, places: Any) -> Any:
    """Return values and coordinates of the elements of blocks, stored as in ``bsr_matrix``."""
    (indices, indptr), (_, m, n) = places, data.shape
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[:, None, None] * m + np.arange(m)[:, None]
    columns = np.asarray(indices)[:, None, None] * n + np.arange(n)
    return data.reshape(-1), tuple(x.ravel() for x in np.broadcast_arrays(rows, columns))


def changes_module() -> Any:
    """Return the module for writes to sparse matrices, which is imported at the first call."""
    return import_module("funcgrad.scipy.sparse.changes")


# Members of matrices made of coordinates and values, which keep the order in which they were given.


def _values_in_order(self: Any) -> Any:
    order = self.structure.order
    return self.values_as_given if order is None else self.values_as_given[order]


def _set_values(self: Any, values: Any) -> None:
    order = self.structure.order
    self.values_as_given = values if order is None else values[np.argsort(order)]


def _set_data(self: Any, values: Any) -> None:
    self.values_as_given = self.with_data(values).values if self.structure.order is None else values


def _coordinates(self: Any) -> tuple[Any, Any]:
    rows, columns = self.places()
    back = slice(None) if self.structure.order is None else np.argsort(self.structure.order)
    return rows[back], columns[back]


def _setdiag(self: Any, values: Any, k: int = 0) -> None:
    """Compute ``coo_array.setdiag``: drop the elements on the diagonal, and append the written ones."""
    rows, columns, values = self.diagonal_of(values, k)
    if not len(rows):
        return
    kept = (self.col - self.row != k) | (self.row > max(rows))
    places = np.append(self.row[kept], rows), np.append(self.col[kept], columns)
    data = fnp.concatenate([self.values_as_given[kept], values])
    self._note(rows * self.shape[1] + columns, values)
    self.take(type(self)((data, places), self.shape, traced=True))


def _sum_duplicates(self: Any) -> None:
    """Compute ``coo_array.sum_duplicates``, with the order of coordinates that SciPy produces."""
    theirs = type(self).scipy_class((np.ones(self.nnz), self.coords), shape=self.shape)
    theirs.sum_duplicates()
    if theirs.nnz < self.nnz or not np.array_equal(theirs.row, self.row) or not np.array_equal(theirs.col, self.col):
        whole = self.summed()
        first, _, order = whole._found(*((theirs.col, theirs.row) if whole.transposed else theirs.coords))
        self.take(type(self)((whole.values[order[first]], (theirs.row, theirs.col)), self.shape, traced=True))


def _keep_elements(self: Any, kept: Any) -> None:
    rows, columns = self.coords
    self.take(type(self)((self.values_as_given[kept], (rows[kept], columns[kept])), self.shape, traced=True))


def _no_assignment(self: Any, key: Any, value: Any) -> None:
    raise TypeError(f"{type(self).__name__!r} object does not support item assignment")


COO_METHODS: dict[str, Any] = {
    "__setitem__": _no_assignment,
    "values": property(_values_in_order, _set_values),
    "data": property(lambda self: self.values_as_given, _set_data),
    "stored": property(lambda self: self.values_as_given, _set_data),
    "row": property(lambda self: self.coords[0]),
    "col": property(lambda self: self.coords[1]),
    "coords": property(_coordinates),
    "setdiag": _setdiag,
    "keep": _keep_elements,
    "sum_duplicates": _sum_duplicates,
}
