"""Set operations on arrays: unique elements, unions, intersections and differences.

Results are read from the positions of the elements, for equal elements from the first position; the derivative goes
there. The lengths of results depend on values, so inside ``vmap`` all functions but ``isin``, ``lexsort`` and
``sort_complex`` raise an error.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import reshape
from funcgrad.numpy import reductions
from funcgrad.numpy.axes import normalize_axes, normalize_axis
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.indexing import nonzero
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.shaping import ravel, result_type
from funcgrad.primitives import counting as prim
from funcgrad.primitives.comparison import logical_and, not_equal
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.sorting import sort
from funcgrad.typing import Array, ArrayLike, Axes, Axis

__all__ = [
    "intersect1d", "isin", "lexsort", "setdiff1d", "setxor1d", "sort_complex", "trim_zeros", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip

numpy: Any = np  # its annotations do not accept traced values

_All = type(np.unique_all(np.zeros(0)))
_Counts = type(np.unique_counts(np.zeros(0)))
_Inverse = type(np.unique_inverse(np.zeros(0)))


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axis = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the unique elements of ``ar`` in ascending order.

    The derivative goes to the first of equal elements.

    Args:
        ar: an array.
        return_index: whether to return the first position of each unique element too.
        return_inverse: whether to return, for each element of ``ar``, its index among the unique elements too.
        return_counts: whether to return the count of each unique element too.
        axis: the axis along which slices are compared; None compares the elements.
        equal_nan: whether all NaN count as equal.
        sorted: False for an order that NumPy chooses.

    Raises:
        ConcretizationError: the number of unique elements differs between the examples of a ``vmap``.
        numpy.exceptions.AxisError: an axis out of range.

    Example:
        >>> fnp.unique([3.0, 1.0, 3.0])
        array([1., 3.])
        >>> grad(lambda x: fnp.sum(fnp.unique(x)))(np.array([3.0, 1.0, 3.0]))
        array([1., 1., 0.])
    """
    if is_plain(ar):
        order = {} if sorted else {"sorted": False}
        return numpy.unique(ar, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan, **order)
    ar = as_value(ar)
    shape = backend.shape_of(ar)
    ordered = sorted or axis is not None or return_index or return_inverse or return_counts
    along = None if axis is None else normalize_axis(axis, len(shape))
    if along is None or len(shape) == 1:
        along, to = None, shape
        ar = ravel(ar)
    else:
        to = (shape[along],)
    whole = return_inverse or return_counts
    first, *rest = prim.unique_positions(ar, axis=along, equal_nan=equal_nan, ordered=ordered, with_counts=whole)
    found = [getitem(ar, (*(slice(None),) * (along or 0), first))]
    if return_index:
        found.append(first)
    if return_inverse:
        found.append(reshape(rest[0], to=to))
    if return_counts:
        found.append(rest[1])
    return tuple(found) if len(found) > 1 else found[0]


def unique_all(x: ArrayLike) -> Any:
    """Return the unique elements, their first positions, the index of each element among them, and counts.

    NaN are all different. The derivative goes to the first of equal elements.

    Example:
        >>> fnp.unique_all([3, 1, 3]).counts
        array([1, 2])
    """
    return _All(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: ArrayLike) -> Any:
    """Return the unique elements and their counts; see ``unique_all``.

    Example:
        >>> fnp.unique_counts([3, 1, 3]).values
        array([1, 3])
    """
    return _Counts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: ArrayLike) -> Any:
    """Return the unique elements and the index of each element among them; see ``unique_all``.

    Example:
        >>> fnp.unique_inverse([3, 1, 3]).inverse_indices
        array([1, 0, 1])
    """
    return _Inverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: ArrayLike) -> Array:
    """Return the unique elements in an order that NumPy chooses; see ``unique_all``.

    For traced values the order is ascending, which code for array namespaces relies on; in rebuilt code it is NumPy's.

    Example:
        >>> fnp.sort(fnp.unique_values([3, 1, 3]))
        array([1, 3])
    """
    return np.unique_values(x) if is_plain(x) else unique(x, equal_nan=False)


def union1d(ar1: ArrayLike, ar2: ArrayLike) -> Array:
    """Return the unique elements of two arrays, ascending; the derivative goes to the first of equal elements.

    Example:
        >>> fnp.union1d([3.0, 1.0], [2.0, 3.0])
        array([1., 2., 3.])
    """
    return unique(concatenate((as_value(ar1), as_value(ar2)), axis=None))


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the elements that are in both arrays, in ascending order; the derivative goes to ``ar1``.

    Args:
        ar1: an array.
        ar2: another array.
        assume_unique: whether the elements of each array are known to be unique.
        return_indices: whether to return their first positions in each flattened array too.

    Example:
        >>> fnp.intersect1d([3.0, 1.0, 2.0], [2.0, 3.0])
        array([2., 3.])
    """
    if is_plain(ar1, ar2):
        return numpy.intersect1d(ar1, ar2, assume_unique, return_indices)
    ar1, ar2 = ravel(ar1), ravel(ar2)
    first, second = prim.common_positions(ar1, ar2, assume_unique=assume_unique)
    values = astype(getitem(ar1, first), result_type(ar1, ar2))
    return (values, first, second) if return_indices else values


def _select(x: Array, mask: Array) -> Array:
    return getitem(x, nonzero(mask)[0])


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """Return the unique elements of ``ar1`` that are not in ``ar2``, in ascending order.

    Args:
        ar1: an array.
        ar2: another array, which receives no derivative.
        assume_unique: whether the elements of ``ar1`` are known to be unique; they then keep their order.

    Example:
        >>> fnp.setdiff1d([3.0, 1.0, 2.0], [2.0, 4.0])
        array([1., 3.])
    """
    if is_plain(ar1, ar2):
        return np.setdiff1d(ar1, ar2, assume_unique)
    ar1 = ravel(ar1) if assume_unique else unique(ar1)
    return _select(ar1, isin(ar1, ar2, invert=True))


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """Return the elements that are in exactly one of two arrays, in ascending order.

    Example:
        >>> fnp.setxor1d([3.0, 1.0, 2.0], [2.0, 4.0])
        array([1., 3., 4.])
    """
    if is_plain(ar1, ar2):
        return np.setxor1d(ar1, ar2, assume_unique)
    parts = [as_value(a) if assume_unique else unique(a) for a in (ar1, ar2)]
    whole = sort(concatenate(parts, axis=None), axis=0)
    if not backend.shape_of(whole)[0]:
        return whole
    changes = not_equal(getitem(whole, slice(1, None)), getitem(whole, slice(None, -1)))
    changes = concatenate([[True], changes, [True]])
    return _select(whole, logical_and(getitem(changes, slice(1, None)), getitem(changes, slice(None, -1))))


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Array:
    """Return a mask of the elements that are among ``test_elements``; no derivative passes.

    Args:
        element: an array.
        test_elements: another array, of any shape.
        assume_unique: whether the elements of each array are known to be unique.
        invert: whether to return the inverted mask.
        kind: NumPy's name of an algorithm; the result is the same for all.

    Example:
        >>> fnp.isin([[1, 2], [3, 4]], [4, 1])
        array([[ True, False],
               [False,  True]])
    """
    if is_plain(element, test_elements):
        return numpy.isin(element, test_elements, assume_unique, invert, kind=kind)
    options = {"assume_unique": assume_unique, "invert": invert, "kind": kind}
    return prim.isin(as_value(element), as_value(test_elements), **options)


def lexsort(keys: ArrayLike, axis: int = -1) -> Array:
    """Return the positions that sort by the last key, with ties broken by the key before it, and so on.

    No derivative passes.

    Args:
        keys: arrays of one shape, in a list or along the first axis of an array.
        axis: the axis to sort along.

    Example:
        >>> fnp.lexsort(([3, 1, 2], [1, 0, 1]))
        array([1, 2, 0])
    """
    if is_plain(keys):
        return numpy.lexsort(keys, axis)
    parts = keys if isinstance(keys, (list, tuple)) else [getitem(keys, i) for i in range(backend.shape_of(keys)[0])]
    parts = [as_value(part) for part in parts]
    rank = len(backend.shape_of(parts[0]))
    if not rank:
        return np.int64(0)  # one element, like NumPy
    return prim.lexsort(*parts, axis=normalize_axis(axis, rank))


def sort_complex(a: ArrayLike) -> Array:
    """Return ``a`` as complex numbers, sorted along the last axis by real, then by imaginary parts.

    Example:
        >>> fnp.sort_complex([2.0, 1 - 1j, 1 - 2j])
        array([1.-2.j, 1.-1.j, 2.+0.j])
    """
    if is_plain(a):
        return np.sort_complex(a)
    a = as_value(a)
    dtype = backend.dtype_of(a)
    a = sort(a, axis=normalize_axis(-1, len(backend.shape_of(a))))
    return a if dtype.kind == "c" else astype(a, {"g": "G"}.get(dtype.char, "F" if dtype.char in "bhBH" else "D"))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes = None) -> Any:
    """Return ``filt`` without the zeros at its ends; the derivative goes to the remaining elements.

    Args:
        filt: an array.
        trim: "f" to trim the front, "b" to trim the back, "fb" for both.
        axis: one axis, several, or None for all; only slices whose elements are all zero are trimmed.

    Raises:
        ValueError: another ``trim``.
        ConcretizationError: the zeros at the ends differ between the examples of a ``vmap``.

    Example:
        >>> fnp.trim_zeros(np.array([0.0, 1.0, 0.0, 2.0, 0.0]))
        array([1., 0., 2.])
    """
    if is_plain(filt):
        return numpy.trim_zeros(filt, trim) if axis is None else numpy.trim_zeros(filt, trim, axis)
    ends = trim.lower()
    if ends not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {ends!r}")
    filt = as_value(filt)
    rank = len(backend.shape_of(filt))
    cut = [slice(None)] * rank
    places = nonzero(filt) if rank else ()
    for i in normalize_axes(axis, rank):
        if not backend.shape_of(places[i])[0]:
            cut[i] = slice(0, 0)
        else:
            start = operator.index(reductions.min(places[i])) if "f" in ends else None
            stop = operator.index(reductions.max(places[i])) + 1 if "b" in ends else None
            cut[i] = slice(start, stop)
    return getitem(filt, tuple(cut))
