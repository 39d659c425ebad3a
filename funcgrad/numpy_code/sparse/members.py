"""Members of the classes that replace SciPy's sparse classes, and those of ``coo_array``, which keeps an order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.numpy_code.own import own
from funcgrad.numpy_code.sparse.recognition import changes_module


def raise_missing(self: Any, name: str) -> Any:
    """Raise the error for an attribute that a matrix of traced values does not have."""
    theirs = type(self).scipy_class
    advice = "" if name.startswith("_") or not hasattr(theirs, name) else ". Use A.toarray(), or a method that it has"
    raise AttributeError(f"{theirs.__name__} of traced values has no attribute {name!r}{advice}", name=name, obj=self)


def index_method(name: str) -> Callable[..., Any]:
    """Return a method whose result is an index, not an element, which Python may use."""
    return lambda self, *args, **kwargs: getattr(self.plain(name), name)(*args, **kwargs)


def _no_data(scipy_class: type) -> property:
    """Return a ``data`` that raises: this format keeps values in an array of several axes, here they are row by row."""
    name = scipy_class.__name__

    def refuse(_: Any) -> Any:
        raise InputError(f"{name}.data: traced values stand in no array of this form, got {name}. Use A.tocsr().data.")

    return property(refuse)


def without_zeros(self: Any) -> Any:
    """Drop the zeros of a matrix that stores the elements of a dense one: SciPy stores no zeros of a dense array.

    They stay until the program asks for the values or places, because an element that is 0 may have a derivative.

    Raises:
        InputError: the program has called ``eliminate_zeros``, and asks for values among which are zeros.
    """
    if self.of_dense != _KEPT and own("scipy.sparse.matrices").is_of_dense(self):
        there = concrete_or_none(getattr(self, "values_as_given", self.values) != 0)  # in a vmap, in any example
        kept = np.True_ if there is None else there.any(axis=tuple(range(there.ndim - 1)))
        if self.of_dense == _OFF_DIAGONAL:
            rows, columns = coordinates_in_order(self) if hasattr(self, "values_as_given") else self.places()
            kept = kept | (rows == columns)
        if not kept.all():
            if self.of_dense == _ELIMINATED:
                raise InputError(
                    "eliminate_zeros: a traced value that is zero now may have a derivative, got one among the stored "
                    "values that the program asks for. Leave the call out, or make the matrix without that place."
                )
            self.keep(kept)
        self.of_dense = False
    return self


#: Values of ``of_dense``: after ``eliminate_zeros``; while SciPy computes a Laplacian; in a Laplacian.
_ELIMINATED, _KEPT, _OFF_DIAGONAL = "eliminated", "kept", "off the diagonal"


def eliminate_zeros(self: Any) -> None:
    """Compute ``eliminate_zeros``; traced zeros stay until the program asks for what is stored."""
    if len(self.cleared):
        keys = changes_module().keys_of(*coordinates_in_order(self), self.shape)
        self.keep(~np.isin(keys, self.cleared))
    self.of_dense = _ELIMINATED


def laplacian_with_zeros(laplacian: Callable[..., Any]) -> Callable[..., Any]:
    """Return SciPy's function for sparse graphs such that zeros of a dense matrix keep their derivatives.

    It computes the diagonal from the matrix, and the rest from what is stored.
    """

    @wraps(laplacian)
    def call(graph: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(type(graph), "of_dense"):
            return laplacian(graph, *args, **kwargs)
        before, graph.of_dense = graph.of_dense, _KEPT
        try:
            found, degrees = laplacian(graph, *args, **kwargs)
        finally:
            graph.of_dense = before
        found.of_dense = _OFF_DIAGONAL if own("scipy.sparse.matrices").is_of_dense(graph) else False
        return found, degrees

    return call


def _copy_without_zeros(self: Any) -> Any:
    """Return ``without_zeros`` of another matrix with the same values."""
    made = object.__new__(type(self))
    vars(made).update(vars(self))
    return without_zeros(made)


def _of_stored(name: str, member: Any) -> Any:
    """Return a property or a method that shows what is stored."""
    pruned = _copy_without_zeros if name in _COUNTS else without_zeros
    if not isinstance(member, property):
        return wraps(member)(lambda self, *args, **kwargs: member(pruned(self), *args, **kwargs))
    get, put = cast("Callable[..., Any]", member.fget), member.fset
    write = None if put is None else lambda self, value: put(without_zeros(self), value)
    return property(lambda self: get(pruned(self)), write)


def members_of_stored(base: type, members: dict[str, Any]) -> dict[str, Any]:
    """Return the members that show what a matrix stores, for a class with these ``members`` and a base."""
    found = {name: members.get(name, getattr(base, name, None)) for name in _STORED}
    shown = {name: _of_stored(name, member) for name, member in found.items() if member is not None}
    power, of_stored = members["power"], _of_stored("power", members["power"])

    def power_of(self: Any, n: Any, *args: Any, **kwargs: Any) -> Any:
        return (power if isinstance(n, (int, float)) and n >= 1 else of_stored)(self, n, *args, **kwargs)

    return shown | {"power": wraps(power)(power_of)}


#: Members that count what is stored: zeros stay, and keep their derivatives.
_COUNTS = ("getnnz", "nnz", "nonzero", "size")
_STORED = ("col", "coords", "data", "indices", "indptr", "row", *_COUNTS)


# Members of matrices made of coordinates and values, which keep the order in which they were given.


def with_values(scipy_class: Any, x: Any, values: Any) -> Any:
    """Return a matrix of SciPy with the places of ``x`` and these values."""
    places, form = x.structure, scipy_class.__name__[:3]
    if form in ("csc", "csr"):
        return scipy_class((values, places.indices, places.indptr), shape=x.shape)
    coords = coordinates_in_order(x) if form == "coo" else x.places()
    return scipy_class(sys.modules["scipy.sparse"].coo_array((values, coords), shape=x.shape))


def _values_in_order(self: Any) -> Any:
    order = self.structure.order
    return self.values_as_given if order is None else self.values_as_given[order]


def _set_values(self: Any, values: Any) -> None:
    order = self.structure.order
    self.values_as_given = values if order is None else values[np.argsort(order)]


def _set_data(self: Any, values: Any) -> None:
    self.values_as_given = self.with_data(values).values if self.structure.order is None else values


def coordinates_in_order(self: Any) -> tuple[Any, Any]:
    """Return the row and the column of each value, in the order in which the values were given."""
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
    rows, columns = coordinates_in_order(self)
    self.take(type(self)((self.values_as_given[kept], (rows[kept], columns[kept])), self.shape, traced=True))


def _assign(self: Any, key: Any, value: Any) -> None:
    """Compute ``coo_array[key] = value``, as since SciPy 1.17: drop the elements at these places, and append others."""
    if not hasattr(type(self).scipy_class, "__setitem__"):
        raise TypeError(f"{type(self).__name__!r} object does not support item assignment")
    value = value.toarray() if hasattr(value, "toarray") else value
    rows, columns = changes_module().positions_of(key, self.shape)
    places, first = np.unique(changes_module().keys_of(rows, columns, self.shape), return_index=True)
    values = fnp.broadcast_to(fnp.asarray(value), rows.shape).reshape(-1)[first].astype(self.dtype)
    kept = ~np.isin(changes_module().keys_of(*self.coords, self.shape), places)
    self._note(places, values)
    whole = fnp.concatenate([self.values_as_given[kept], values])
    coords = [np.append(old[kept], new.ravel()[first]) for old, new in zip(self.coords, (rows, columns), strict=True)]
    self.take(type(self)((whole, tuple(coords)), self.shape, traced=True))


_COO_METHODS: dict[str, Any] = {
    "__setitem__": _assign,
    "values": property(_values_in_order, _set_values),
    "data": property(lambda self: self.values_as_given, _set_data),
    "stored": property(lambda self: self.values_as_given, _set_data),
    "row": property(lambda self: coordinates_in_order(self)[0]),
    "col": property(lambda self: coordinates_in_order(self)[1]),
    "coords": property(coordinates_in_order),
    "setdiag": _setdiag,
    "keep": _keep_elements,
    "sum_duplicates": _sum_duplicates,
}


def methods_of_format(form: str, scipy_class: type) -> dict[str, Any]:
    """Return the members that only classes of this format have, such as "coo"."""
    common = {"eliminate_zeros": eliminate_zeros}
    if form == "coo":
        return _COO_METHODS | common
    return common if form in ("csc", "csr") else {"data": _no_data(scipy_class)} | common
