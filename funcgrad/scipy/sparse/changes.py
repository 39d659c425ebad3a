"""What changes a sparse matrix where it stands: its diagonals, its elements, the order of its values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import InputError, ShapeError
from funcgrad.optional import import_scipy
from funcgrad.primitives.sparse import Structure
from funcgrad.writable import is_buffer

__all__ = ["Changing", "on_diagonal", "places_of", "written"]


def places_of(key: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """The rows and columns that an index means, as arrays of the shape that it selects."""
    if hasattr(key, "nonzero") and getattr(key, "ndim", 0) == 2:  # a mask
        key = key.nonzero()
    row, column = key if isinstance(key, tuple) else (key, slice(None))
    rows, columns = np.arange(shape[0])[row], np.arange(shape[1])[column]
    if isinstance(column, slice) or (isinstance(row, slice) and columns.ndim):
        rows = rows[..., None] if rows.ndim else rows  # a row of each
    rows, columns = np.broadcast_arrays(rows, columns)
    return rows, columns


def on_diagonal(values: Any, k: int, shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Rows, columns and values of what ``setdiag`` writes: a number everywhere, and of an array as much as there is.

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


def written(values: Any, at: Any, new: Any) -> Any:
    """``values`` with ``new`` at the places ``at``: written where they stand, or a copy where that cannot be."""
    if type(values) is np.ndarray and isinstance(new, Tracer):
        values = fnp.copy(values)
    if not isinstance(values, (np.ndarray, Tracer)):
        return fnp.at(values)[at].set(new)
    target: Any = values
    target[at] = new
    return target


def _numbers(major: Any, minor: Any, shape: tuple[int, int]) -> Any:
    """A number for each place."""
    return major.astype(np.int64) * shape[1] + minor


@functools.cache
def _sorts_diagonals() -> bool:
    """Whether SciPy puts the values of a matrix in order again after ``setdiag``, as since 1.17.

    Before, what is written comes last in its row, or column, and a large matrix is made anew where it has few of the
    places, not where it lacks many.
    """
    matrix = import_scipy("csr_array.setdiag", "scipy.sparse").csr_array(np.array([[0.0, 1.0]]))
    matrix.setdiag(1.0)
    return bool(matrix.has_sorted_indices and matrix.indices[0] == 0)


class Changing:
    """The methods of sparse matrices that change them, and what they tell of the order of the values.

    Values at places that the matrix has are written where they stand, so that who shares them sees it, as in SciPy.
    """

    values: Any
    structure: Structure
    transposed: bool
    #: Numbers of the places at which constant zeros were written: ``eliminate_zeros`` leaves them out.
    cleared: Any = np.zeros(0, np.int64)

    @property
    def stored(self) -> Any:
        """The array in which the values lie."""
        return self.values

    @stored.setter
    def stored(self, values: Any) -> None:
        self.values = values

    def take(self, other: Any) -> None:
        """Be the same matrix as ``other`` from now on."""
        self.structure, self.transposed, self.values = other.structure, other.transposed, other.values

    def _order(self) -> Any:
        """How the numbers of the places rise in the order in which the values stand."""
        structure = self.structure
        return np.diff(structure.rows.astype(np.int64) * structure.shape[1] + structure.indices)

    @property
    def has_sorted_indices(self) -> bool:
        """Whether the values of each row, or column, are in order."""
        return bool((self._order() >= 0).all())

    @property
    def has_canonical_format(self) -> bool:
        """Whether they are, and there is one for each place."""
        return bool((self._order() > 0).all())

    def sum_duplicates(self) -> None:
        """Add up values at the same place."""
        if not self.has_canonical_format:
            self.take(self.summed())

    def sort_indices(self) -> None:
        """Put the values of each row, or column, in order."""
        if not self.has_sorted_indices:
            a = self.structure
            order = np.lexsort((a.indices, a.rows))
            values = self.values[order]
            self.structure, self.values = Structure(a.indices[order], a.indptr, a.shape), values

    def sorted_indices(self) -> Any:
        """The matrix with the values of each row, or column, in order."""
        made = self.copy()
        made.sort_indices()
        return made

    def prune(self) -> None:
        """Nothing: no memory is left over."""

    def check_format(self, full_check: bool = True) -> None:
        """Nothing: the places were checked."""

    def eliminate_zeros(self) -> None:
        """Leave out constant zeros that were written.

        Raises:
            InputError: another value is zero, which may have a derivative.
        """
        if len(self.cleared):
            rows, columns = self.coords
            self.keep(~np.isin(rows.astype(np.int64) * self.shape[1] + columns, self.cleared))
        if not fnp.all(self.values != 0):
            raise InputError(
                "eliminate_zeros: a traced value that is zero now may have a derivative, got one. Leave the call out, "
                "as sums, products and solutions are the same; or make the matrix without that place."
            )

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write to the ``k``-th diagonal a number, or of a vector as much as either has.

        Raises:
            ShapeError: a diagonal outside of the matrix, or values of several axes (a ``ValueError``).
        """
        rows, columns, values = self.diagonal_of(values, k)
        if not self._replace_diagonal(rows, columns, values):
            self._write(rows, columns, values)

    def diagonal_of(self, values: Any, k: int) -> tuple[Any, Any, Any]:
        """What ``on_diagonal`` gives: a number has the dtype of the matrix, and a vector its own."""
        rows, columns, written = on_diagonal(values, k, self.shape)
        return rows, columns, written if fnp.ndim(values) else fnp.astype(written, self.dtype)

    def _replace_diagonal(self, rows: Any, columns: Any, values: Any) -> bool:
        """Take away what stands at these places and append ``values``; false where SciPy writes them into the matrix.

        It writes where the matrix has all the places, or is large and lacks few.
        """
        major, minor = (columns, rows) if self.transposed else (rows, columns)
        if (self._found(major, minor)[1] > 1).any():
            self.sum_duplicates()
        there = np.count_nonzero(self._found(major, minor)[1])
        sorts = _sorts_diagonals()
        lacking = len(rows) - there if sorts else len(self.structure.rows) - there
        if there == len(rows) or lacking < len(self.structure.rows) * 0.001:
            return False
        self._note(rows * self.shape[1] + columns, values)
        a = self.structure
        kept = ~np.isin(_numbers(a.rows, a.indices, a.shape), _numbers(major, minor, a.shape))
        whole = fnp.concatenate([self.values[kept], values])
        major, minor = np.append(a.rows[kept], major), np.append(a.indices[kept], minor)
        self._arrange(whole, major, minor, in_order=sorts and self.has_sorted_indices)
        return True

    def __setitem__(self, key: Any, value: Any) -> None:
        value = value.toarray() if hasattr(value, "toarray") else value
        rows, columns = places_of(key, self.shape)
        self._write(rows.ravel(), columns.ravel(), fnp.broadcast_to(fnp.asarray(value), rows.shape).reshape(-1))

    def keep(self, kept: Any) -> None:
        """Leave out the values where ``kept`` is false."""
        a = self.structure
        self._arrange(self.values[kept], a.rows[kept], a.indices[kept], in_order=False)

    def _arrange(self, values: Any, major: Any, minor: Any, in_order: bool) -> None:
        """Be the matrix of these values: of rows, or columns, after each other, each in order or as it was given."""
        shape = self.structure.shape
        order = np.lexsort((minor, major)) if in_order else np.argsort(major, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=shape[0]))])
        self.structure, self.values = Structure(minor[order], indptr, shape), values[order]

    def _write(self, rows: Any, columns: Any, values: Any) -> None:
        """Write ``values`` to these places; of several for one place the last."""
        last = len(rows) - 1 - np.unique((rows * self.shape[1] + columns)[::-1], return_index=True)[1]
        if len(last) < len(rows):
            rows, columns, values = rows[last], columns[last], values[last]
        self._note(rows * self.shape[1] + columns, values)
        major, minor = (columns, rows) if self.transposed else (rows, columns)
        first, many, order = self._found(major, minor)
        if (many > 1).any():
            self.sum_duplicates()
            first, many, order = self._found(major, minor)
        there, new = many > 0, many == 0
        if there.any():
            self.stored = written(self.stored, order[first[there]], values[there])
        if new.any():
            a = self.structure
            whole = fnp.concatenate([self.values, values[new]])
            major, minor = np.append(a.rows, major[new]), np.append(a.indices, minor[new])
            self._arrange(whole, major, minor, in_order=self.has_sorted_indices)

    def _found(self, major: Any, minor: Any) -> tuple[Any, Any, Any]:
        """Of each place the first value there and how many there are, as positions in an order of the values."""
        a = self.structure
        keys, wanted = _numbers(a.rows, a.indices, a.shape), _numbers(major, minor, a.shape)
        order = np.argsort(keys, kind="stable")
        first, end = (np.searchsorted(keys, wanted, side, sorter=order) for side in ("left", "right"))
        return first, end - first, order

    def _note(self, places: Any, values: Any) -> None:
        """Remember places at which constant zeros are written, and forget others."""
        is_zero = not isinstance(values, Tracer) or is_buffer(values)
        zero = np.asarray(values == 0) if is_zero else np.zeros(len(places), bool)
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

    # what matrices bring

    data: Any

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        raise NotImplementedError

    @property
    def coords(self) -> tuple[Any, Any]:
        """The row and the column of each of ``data``."""
        raise NotImplementedError

    def summed(self) -> Any:
        """The matrix with one value for each place."""
        raise NotImplementedError

    def copy(self) -> Any:
        """The matrix with values of its own."""
        raise NotImplementedError
