"""In-place changes of a sparse matrix: its diagonals, its elements, the order of its values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import InputError, ShapeError
from funcgrad.optional import import_scipy
from funcgrad.primitives.sparse import Structure
from funcgrad.writable import is_buffer


def positions_of(key: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return the rows and columns that an index selects, as arrays of the selected shape."""
    if hasattr(key, "nonzero") and getattr(key, "ndim", 0) == 2:  # a mask
        key = key.nonzero()
    row, column = key if isinstance(key, tuple) else (key, slice(None))
    rows, columns = np.arange(shape[0])[row], np.arange(shape[1])[column]
    if isinstance(column, slice) or (isinstance(row, slice) and columns.ndim):
        rows = rows[..., None] if rows.ndim else rows  # combine each row with all columns
    rows, columns = np.broadcast_arrays(rows, columns)
    return rows, columns


def on_diagonal(values: Any, k: int, shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Return rows, columns and values of a ``setdiag``: a number goes everywhere, an array as far as it reaches.

    Raises:
        ShapeError: a diagonal outside of the matrix, or values of several axes (a ``ValueError``).
    """
    length = min(shape[0] + min(k, 0), shape[1] - max(k, 0))
    values = fnp.asarray(values)
    if length <= 0 or values.ndim > 1:
        raise ShapeError(
            f"setdiag: k must be a diagonal of {shape[0]} x {shape[1]} and values a number or a vector, got k={k} and "
            f"values of shape {list(values.shape)}. Check them."
        )
    length = min(length, len(values)) if values.ndim else length
    places = np.arange(length)
    values = values[:length] if values.ndim else fnp.broadcast_to(values, (length,))
    return places - min(k, 0), places + max(k, 0), values


def set_at(values: Any, at: Any, new: Any) -> Any:
    """Return ``values`` with ``new`` at the indices ``at``, written in place or, if that is impossible, in a copy."""
    if not isinstance(values, Tracer) and not type(values) is type(new) is np.ndarray:
        return fnp.at(values)[at].set(new)
    target: Any = values
    target[at] = new
    return target


def keys_of(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return an integer for each position, which increases row by row."""
    return np.asarray(rows, np.int64) * shape[1] + columns


def compressed(rows: Any, count: int) -> Any:
    """Return the index of the first value of each of ``count`` rows, followed by the number of values."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])


@functools.cache
def _sorts_diagonals() -> bool:
    """Whether SciPy sorts the values of a matrix after ``setdiag``, as since 1.17.

    Before 1.17 written values come last in their row, or column, and a large matrix is rebuilt if it has few of the
    positions, not if it lacks many.
    """
    matrix = import_scipy("csr_array.setdiag", "scipy.sparse").csr_array(np.array([[0.0, 1.0]]))
    matrix.setdiag(1.0)
    return bool(matrix.has_sorted_indices and matrix.indices[0] == 0)


class InPlaceMethods:
    """Methods of sparse matrices that change them in place, and properties of the order of the values.

    Values at positions that the matrix has are written in place, so all who share the values see them, as in SciPy.
    """

    values: Any
    structure: Structure
    transposed: bool
    #: Supplied by the subclass.
    data: Any
    copy: Any
    summed: Any
    #: Keys of the positions at which constant zeros were written: ``eliminate_zeros`` removes them.
    cleared: Any = np.zeros(0, np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        m, n = self.structure.shape
        return (n, m) if self.transposed else (m, n)

    @property
    def dtype(self) -> Any:
        """Dtype of the values."""
        return backend.dtype_of(self.values)

    def places(self) -> tuple[Any, Any]:
        """Return the row and the column of each value."""
        return self.structure.rows_and_columns(self.transposed)

    @property
    def coords(self) -> tuple[Any, Any]:
        """Row and column of each entry of ``data``."""
        return self.places()

    @property
    def stored(self) -> Any:
        """Array that holds the values."""
        return self.values

    @stored.setter
    def stored(self, values: Any) -> None:
        self.values = values

    def take(self, other: Any) -> None:
        """Become the same matrix as ``other``."""
        self.structure, self.transposed, self.values = other.structure, other.transposed, other.values

    def _order(self) -> Any:
        """Return the differences between keys of consecutive positions, in the order of the values."""
        a = self.structure
        return np.diff(keys_of(a.rows, a.indices, a.shape))

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the values of each row, or column, are in order."""
        return bool((self._order() >= 0).all())

    @property
    def has_canonical_format(self) -> bool:
        """Whether the values of each row, or column, are in order, with one value for each position."""
        return bool((self._order() > 0).all())

    def sum_duplicates(self) -> None:
        """Add up values at the same position."""
        if not self.has_canonical_format:
            self.take(self.summed())

    def sort_indices(self) -> None:
        """Sort the values of each row, or column."""
        if not self.has_sorted_indices:
            a = self.structure
            order = np.lexsort((a.indices, a.rows))
            values = self.values[order]
            self.structure, self.values = Structure(a.indices[order], a.indptr, a.shape), values

    def sorted_indices(self) -> Any:
        """Return a copy of the matrix with the values of each row, or column, sorted."""
        made = self.copy()
        made.sort_indices()
        return made

    def prune(self) -> None:
        """Do nothing: no memory is left over."""

    def check_format(self, full_check: bool = True) -> None:
        """Do nothing: the positions were checked."""

    def eliminate_zeros(self) -> None:
        """Remove constant zeros that were written.

        Raises:
            InputError: another value is zero, which may have a derivative.
        """
        if len(self.cleared):
            self.keep(~np.isin(keys_of(*self.coords, self.shape), self.cleared))
        if not fnp.all(self.values != 0):
            raise InputError(
                "eliminate_zeros: a traced value that is zero now may have a derivative, got one. Leave the call out, "
                "as sums, products and solutions are the same; or make the matrix without that place."
            )

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write a number to the ``k``-th diagonal, or a vector as far as both reach.

        Raises:
            ShapeError: a diagonal outside of the matrix, or values of several axes (a ``ValueError``).
        """
        rows, columns, values = self.diagonal_of(values, k)
        if not self._replace_diagonal(rows, columns, values):
            self._write(rows, columns, values)

    def diagonal_of(self, values: Any, k: int) -> tuple[Any, Any, Any]:
        """Return the result of ``on_diagonal``; a number takes the dtype of the matrix, a vector keeps its own."""
        rows, columns, new = on_diagonal(values, k, self.shape)
        return rows, columns, new if fnp.ndim(values) else fnp.astype(new, self.dtype)

    def _replace_diagonal(self, rows: Any, columns: Any, values: Any) -> bool:
        """Remove the values at these positions and append ``values``; return False if SciPy writes in place instead.

        SciPy writes in place if the matrix has all the positions, or is large and lacks few.
        """
        major, minor = (columns, rows) if self.transposed else (rows, columns)
        if (self._found(major, minor)[1] > 1).any():
            self.sum_duplicates()
        there = np.count_nonzero(self._found(major, minor)[1])
        sorts = _sorts_diagonals()
        lacking = len(rows) - there if sorts else len(self.structure.rows) - there
        if there == len(rows) or lacking < len(self.structure.rows) * 0.001:
            return False
        self._note(keys_of(rows, columns, self.shape), values)
        a = self.structure
        kept = ~np.isin(keys_of(a.rows, a.indices, a.shape), keys_of(major, minor, a.shape))
        whole = fnp.concatenate([self.values[kept], values])
        major, minor = np.append(a.rows[kept], major), np.append(a.indices[kept], minor)
        self._arrange(whole, major, minor, in_order=sorts and self.has_sorted_indices)
        return True

    def __setitem__(self, key: Any, value: Any) -> None:
        value = value.toarray() if hasattr(value, "toarray") else value
        rows, columns = positions_of(key, self.shape)
        self._write(rows.ravel(), columns.ravel(), fnp.broadcast_to(fnp.asarray(value), rows.shape).reshape(-1))

    def keep(self, kept: Any) -> None:
        """Remove the values where ``kept`` is false."""
        a = self.structure
        self._arrange(self.values[kept], a.rows[kept], a.indices[kept], in_order=False)

    def _arrange(self, values: Any, major: Any, minor: Any, in_order: bool) -> None:
        """Rebuild the matrix from these values; within each row, or column, sort them or keep the given order."""
        shape = self.structure.shape
        order = np.lexsort((minor, major)) if in_order else np.argsort(major, kind="stable")
        self.structure, self.values = Structure(minor[order], compressed(major, shape[0]), shape), values[order]

    def _write(self, rows: Any, columns: Any, values: Any) -> None:
        """Write ``values`` to these positions; the last value of a repeated position counts."""
        last = len(rows) - 1 - np.unique(keys_of(rows, columns, self.shape)[::-1], return_index=True)[1]
        if len(last) < len(rows):
            rows, columns, values = rows[last], columns[last], values[last]
        self._note(keys_of(rows, columns, self.shape), values)
        major, minor = (columns, rows) if self.transposed else (rows, columns)
        first, many, order = self._found(major, minor)
        if (many > 1).any():
            self.sum_duplicates()
            first, many, order = self._found(major, minor)
        there, new = many > 0, many == 0
        if there.any():
            self.stored = set_at(self.stored, order[first[there]], values[there])
        if new.any():
            a = self.structure
            whole = fnp.concatenate([self.values, values[new]])
            major, minor = np.append(a.rows, major[new]), np.append(a.indices, minor[new])
            self._arrange(whole, major, minor, in_order=self.has_sorted_indices)

    def _found(self, major: Any, minor: Any) -> tuple[Any, Any, Any]:
        """Return for each position the index of its first value and the number of its values, and the order of keys."""
        a = self.structure
        keys, wanted = keys_of(a.rows, a.indices, a.shape), keys_of(major, minor, a.shape)
        order = np.argsort(keys, kind="stable")
        first, end = (np.searchsorted(keys, wanted, side, sorter=order) for side in ("left", "right"))
        return first, end - first, order

    def _note(self, places: Any, values: Any) -> None:
        """Remember the positions at which constant zeros are written, and forget those of other values."""
        held = values._val if is_buffer(values) else values
        is_constant = not isinstance(held, Tracer) and not backend.is_jax_tracer(held)
        zero = np.asarray(held == 0) if is_constant else np.zeros(len(places), bool)
        self.cleared = np.union1d(np.setdiff1d(self.cleared, places), places[zero])

    def __imul__(self, other: Any) -> Any:
        if np.ndim(other):
            return NotImplemented
        self.stored *= other
        return self

    def __itruediv__(self, other: Any) -> Any:
        if np.ndim(other):
            return NotImplemented
        self.stored /= other
        return self
