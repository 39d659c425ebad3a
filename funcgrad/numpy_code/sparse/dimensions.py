"""Sparse arrays of traced values with one axis, or with more than two, as ``scipy.sparse.coo_array`` makes them."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.conversions import is_traced
from funcgrad.numpy_code.own import known_value
from funcgrad.numpy_code.sparse.recognition import call_function, sparse_class


class CoordinateArray:
    """Sparse array of traced values and their coordinates, with any number of axes but two.

    Operations compute with the dense array; coordinates of results follow from those of the operands.

    Args:
        data: the values.
        coords: an array of coordinates for each axis.
        shape: the lengths of the axes.
    """

    __array_ufunc__ = None
    call_function = call_function
    format = "coo"

    def __init__(self, data: Any, coords: Any, shape: Any) -> None:
        self.data, self.coords = data, tuple(np.asarray(axis) for axis in coords)
        self._shape = tuple(int(n) for n in shape)  # functions of SciPy set it

    __class__ = property(lambda self: sys.modules["scipy.sparse"].coo_array)
    shape = property(lambda self: self._shape)
    ndim = property(lambda self: len(self._shape))
    dtype = property(lambda self: self.data.dtype)
    nnz = property(lambda self: self.data.size)
    T = property(lambda self: self.transpose())

    @staticmethod
    def type_of(x: Any) -> Any:
        """Return what ``type(x)`` is in rebuilt code."""
        return import_module("funcgrad.numpy_code.sparse.objects").replacement_class(x.__class__)

    def toarray(self) -> Any:
        """Return the dense array."""
        dense = fnp.zeros(self._shape, self.data.dtype)
        fnp.add.at(dense, self.coords, self.data)
        return dense

    todense = toarray

    def stored(self) -> Any:
        """Return where the array has values."""
        found = np.zeros(self._shape, bool)
        found[self.coords] = True
        return found

    def copy(self) -> Any:
        """Return a copy."""
        return CoordinateArray(self.data.copy(), self.coords, self._shape)

    def tocoo(self, copy: bool = False) -> Any:
        """Return the array itself, or a copy."""
        return self.copy() if copy else self

    def astype(self, dtype: Any, **kwargs: Any) -> Any:
        """Return the array with another dtype."""
        return CoordinateArray(self.data.astype(dtype), self.coords, self._shape)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """Return the array with its axes in another order."""
        order = np.arange(self.ndim)[::-1] if axes is None else np.asarray(axes) % self.ndim
        return CoordinateArray(self.data, [self.coords[i] for i in order], [self._shape[i] for i in order])

    def reshape(self, *shape: Any, order: Any = "C", copy: bool = False) -> Any:
        """Return the values in the same order with another shape."""
        shape = np.empty(self._shape, bool).reshape(*shape).shape
        flat = np.ravel_multi_index(self.coords, self._shape, order=order)
        return sparse_of(self.data, np.unravel_index(flat, shape, order), shape)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the sum of the values, or a dense array of sums along axes."""
        return self.toarray().sum(axis, dtype, out)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the mean of all elements, or a dense array of means along axes."""
        return self.toarray().mean(axis, dtype, out)

    def max(self, axis: Any = None, **kwargs: Any) -> Any:
        """Return the largest element, or a sparse array of the largest along an axis."""
        return self._reduced("max", axis, **kwargs)

    def min(self, axis: Any = None, **kwargs: Any) -> Any:
        """Return the smallest element, or a sparse array of the smallest along an axis."""
        return self._reduced("min", axis, **kwargs)

    def _reduced(self, name: str, axis: Any, **kwargs: Any) -> Any:
        found = getattr(self.toarray(), name)(axis=axis, **kwargs)
        return found if not found.shape else sparse_where(found, self.stored().any(axis=axis))

    def multiply(self, other: Any) -> Any:
        """Return the elementwise product, which has values where both factors have them."""
        there = (
            other.stored()
            if isinstance(other, CoordinateArray)
            else dense_of(other) != 0
            if _is_sparse(other)
            else True
        )
        return sparse_where(self.toarray() * dense_of(other), self.stored() & there)

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Return the powers of the values."""
        whole = self.summed() if dtype is None else self.summed().astype(dtype)
        return CoordinateArray(whole.data**n, whole.coords, self._shape)

    __pow__ = power

    def dot(self, other: Any) -> Any:
        """Return the matrix product."""
        return self @ other

    def summed(self) -> Any:
        """Return the array with one value for each place."""
        return sparse_where(self.toarray(), self.stored())

    def tensordot(self, other: Any, axes: Any = 2) -> Any:
        """Return the sums of products along the given axes, a number or a sparse array."""
        found = fnp.tensordot(self.toarray(), dense_of(other), axes)
        return sparse_where(found, np.ones(found.shape, bool)) if found.shape and _is_sparse(other) else found

    def __matmul__(self, other: Any) -> Any:
        found = fnp.matmul(self.toarray(), dense_of(other))
        return sparse_where(found, np.ones(found.shape, bool)) if found.shape and _is_sparse(other) else found

    def __rmatmul__(self, other: Any) -> Any:
        return fnp.matmul(dense_of(other), self.toarray())

    def __mul__(self, other: Any) -> Any:
        if np.shape(other):
            return self.multiply(other)
        return CoordinateArray(self.data * other, self.coords, self._shape)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * (1.0 / other)

    def __neg__(self) -> Any:
        return self * -1.0

    def __abs__(self) -> Any:
        whole = self.summed()
        return CoordinateArray(abs(whole.data), whole.coords, self._shape)

    def __getitem__(self, key: Any) -> Any:
        found = self.toarray()[key]
        return sparse_where(found, self.stored()[key]) if found.shape else found

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"coo_array of traced values with {len(vars(self).get('_shape', ()))} axes has no attribute {name!r}. Use "
            "A.toarray()."
        )


def _sum_operator(name: str, right: bool = False) -> Callable[..., Any]:
    apply = getattr(operator, name)

    def operate(self: CoordinateArray, other: Any) -> Any:
        pair = (dense_of(other), self.toarray()) if right else (self.toarray(), dense_of(other))
        return sparse_where(apply(*pair), self.stored() | _places(other)) if _is_sparse(other) else apply(*pair)

    return operate


for _name in ("add", "sub"):
    setattr(CoordinateArray, f"__{_name}__", _sum_operator(_name))
    setattr(CoordinateArray, f"__r{_name}__", _sum_operator(_name, right=True))


def _comparison(name: str) -> Callable[..., Any]:
    """Return a comparison of the elements, which returns SciPy's array of truth values."""
    apply = getattr(operator, name)

    def compare(self: CoordinateArray, other: Any) -> Any:
        return self.type_of(self)(known_value(apply(self.toarray(), dense_of(other)), name))

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(CoordinateArray, f"__{_name}__", _comparison(_name))


def _is_sparse(x: Any) -> bool:
    return hasattr(x, "toarray")


def _places(x: Any) -> Any:
    """Return where a sparse array has values."""
    return x.stored() if type(x) is CoordinateArray else np.asarray(x.toarray()) != 0


def dense_of(x: Any) -> Any:
    """Return a sparse array as a dense one; any other value unchanged."""
    return x.toarray() if _is_sparse(x) else x


def sparse_where(dense: Any, there: Any) -> Any:
    """Return the sparse array that has the elements of ``dense`` where ``there`` is true."""
    places = np.nonzero(there)
    return sparse_of(dense[places], places, dense.shape)


def sparse_of(data: Any, coords: Any, shape: Any) -> Any:
    """Return the sparse array of traced values with these coordinates; one with two axes is a matrix."""
    if len(shape) != 2:
        return CoordinateArray(data, coords, shape)
    make = import_module("funcgrad.numpy_code.sparse.objects").replacement_class(sys.modules["scipy.sparse"].coo_array)
    return make((data, tuple(coords)), shape, traced=True)


def item_method(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``__getitem__`` of arrays with two axes, of which one row or column has one axis."""

    def item(self: Any, key: Any) -> Any:
        keys = key if type(key) is tuple else (key, slice(None))
        is_number = [issubclass(type(k), (int, np.integer)) for k in keys]
        if len(keys) != 2 or sum(is_number) != 1 or type(keys[is_number.index(False)]) is not slice:
            return plain(self, key)
        axis = is_number.index(True)
        at = range(self.shape[axis])[keys[axis]]  # which raises an IndexError
        line = slice(at, at + 1)
        part = plain(self, (line, keys[1]) if axis == 0 else (keys[0], line))
        return CoordinateArray(part.values, (part.places()[1 - axis],), (part.shape[1 - axis],))

    return item


def extreme_method(name: str) -> Callable[..., Any]:
    """Return the method ``max`` or ``min`` of matrices, whose results along an axis are sparse as SciPy's."""

    def extreme(self: Any, axis: Any = None, out: Any = None, **options: Any) -> Any:
        objects, base = import_module("funcgrad.numpy_code.sparse.objects"), sparse_class("SparseArray")
        like = getattr(objects.placeholder(self).copy(), name)(axis, out, **options)  # SciPy sums duplicates in place
        if type(axis) is tuple:
            axis = axis[0] if len(axis) == 1 else None
        if options.get("explicit"):
            self = import_module("funcgrad.numpy_code.sparse.members").without_zeros(self.copy())
        found = getattr(base, name)(self, axis, **options)
        if not _is_sparse(like):
            return found
        there = base.getnnz(self, axis) > 0
        data, coords = found[np.flatnonzero(there)], np.nonzero(there.reshape(like.shape))
        if like.ndim != 2:
            return CoordinateArray(data, coords, like.shape)
        return objects.replacement_class(type(like))((data, coords), like.shape, traced=True)

    return extreme


def expand_dims(A: Any, /, *, axis: int = 0) -> Any:
    """Compute ``scipy.sparse.expand_dims``: insert an axis of length one.

    Raises:
        ValueError: there is no such place for an axis.
    """
    if not -A.ndim - 2 < axis <= A.ndim:
        raise ValueError(f"Invalid axis {axis} for N={A.ndim}. Must be in [-N-1, N].")
    given, at = A.tocoo(), axis if axis >= 0 else axis + A.ndim + 1
    coords, shape = list(given.coords), list(given.shape)
    coords.insert(at, np.zeros_like(coords[0]))
    shape.insert(at, 1)
    return sparse_of(given.data, coords, shape)


def with_other_axes(name: str, given: Any, shape: Any) -> Any:
    """Return what ``coo_array`` or ``csr_array`` makes of ``given`` if it has not two axes and is traced; else None.

    Args:
        name: the name of the class.
        given: an array, or values and their coordinates.
        shape: the shape, if the program gives it.
    """
    if name not in ("coo_array", "csr_array"):
        return None
    if type(given) is CoordinateArray:
        return given.copy()
    if is_traced(given):
        return None if given.ndim == 2 else sparse_where(given, np.ones(given.shape, bool))
    is_pair = name == "coo_array" and isinstance(given, tuple) and len(given) == 2 and is_traced(given[0])
    if not is_pair or np.ndim(given[1][0]) == 0 or len(given[1]) == 2:
        return None
    coords = [np.asarray(axis) for axis in given[1]]
    return CoordinateArray(given[0], coords, [axis.max() + 1 for axis in coords] if shape is None else shape)
