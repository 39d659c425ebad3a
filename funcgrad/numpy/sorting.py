"""Sorting, searches in sorted arrays, and positions of extrema."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import imag, real, reshape
from funcgrad.numpy.axes import keepdims_shape, means_all_axes, normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import sorting as prim
from funcgrad.primitives.comparison import isnan
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.shaping import flip
from funcgrad.typing import Array, ArrayLike, Axis

__all__ = ["argmax", "argmin", "argpartition", "argsort", "nanargmax", "nanargmin", "partition", "searchsorted", "sort"]


def _along(a: ArrayLike, axis: Axis, of_numbers: bool = False) -> tuple[Array, int]:
    """Return ``a`` and a non-negative axis; flatten if ``axis`` is None, or for a number if ``of_numbers``."""
    a = as_value(a)
    shape = backend.shape_of(a)
    if axis is None or (of_numbers and means_all_axes(axis, len(shape))):
        return reshape(a, to=(math.prod(shape),)), 0
    return a, normalize_axis(axis, len(shape))


def _refuse_order(name: str, order: Any) -> None:
    if order is not None:
        raise InputError(
            f"{name}: fields are ordered in structured arrays only, got order={order!r}. Leave order=None."
        )


def sort(
    a: ArrayLike,
    axis: Axis = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Array:
    """Return ``a`` with its elements in ascending order along ``axis``, by default the last; NaN come last.

    The derivative goes to the original position of each element; equal elements keep their order.

    Args:
        a: an array.
        axis: the axis, or None to flatten first.
        kind: NumPy's name of an algorithm; the result is the same for all.
        order: not supported.
        stable: accepted for compatibility with NumPy; sorting is always stable.
        descending: whether to sort in descending order, with NaN last as in NumPy since 2.5; equal elements keep
            their order too.

    Raises:
        numpy.exceptions.AxisError: an axis out of range.

    Example:
        >>> fnp.sort([3.0, 1.0, 2.0])
        array([1., 2., 3.])
    """
    _refuse_order("sort", order)
    a, along = _along(a, axis)
    if descending:
        return take_along_axis(a, _descending_order(a, along), axis=along, unique=True)
    return prim.sort(a, axis=along)


def argsort(
    a: ArrayLike,
    axis: Axis = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Array:
    """Return the positions that sort ``a`` along ``axis``; arguments as for ``sort``. No derivative passes.

    Equal elements are in NumPy's order, which depends on ``kind``; with ``stable=True``, for JAX arrays and in
    descending order they keep their order.

    Example:
        >>> fnp.argsort([3.0, 1.0, 2.0])
        array([1, 2, 0])
    """
    _refuse_order("argsort", order)
    a, along = _along(a, axis, of_numbers=True)
    if descending:
        return _descending_order(a, along)
    return prim.argsort(a, axis=along, kind="stable" if stable else kind or "quicksort")


def _descending_order(a: Array, axis: int) -> Array:
    """Return the positions that sort ``a`` in descending order, equal elements in their order and NaN last."""
    last = backend.shape_of(a)[axis] - 1
    order = last - flip(prim.argsort(flip(a, axis=(axis,)), axis=axis), axis=(axis,))
    if not backend.is_inexact(a):
        return order
    missing = isnan(a)
    if backend.dtype_of(a).kind == "c":  # NumPy sorts NaN in the imaginary part before NaN in the real part
        missing = isnan(real(a)) * 2 + isnan(imag(a))
    late = prim.argsort(take_along_axis(missing, order, axis=axis), axis=axis)
    return take_along_axis(order, late, axis=axis)


def partition(a: ArrayLike, kth: Any, axis: Axis = -1, kind: str = "introselect", order: None = None) -> Array:
    """Return ``a`` partitioned along ``axis``: the ``kth`` element of the sorted array after smaller elements.

    Args:
        a: an array.
        kth: a position to partition at, or several.
        axis: the axis, or None to flatten first.
        kind: accepted for compatibility with NumPy.
        order: not supported.

    Raises:
        ValueError: a position out of range.

    Example:
        >>> fnp.partition([3.0, 1.0, 2.0], 0)[0]
        np.float64(1.0)
    """
    _refuse_order("partition", order)
    a, along = _along(a, axis)
    return prim.partition(a, kth=_positions("partition", kth, a, along), axis=along)


def argpartition(a: ArrayLike, kth: Any, axis: Axis = -1, kind: str = "introselect", order: None = None) -> Array:
    """Return the positions that partition ``a``; arguments as for ``partition``. No derivative passes.

    Example:
        >>> fnp.argpartition([3.0, 1.0, 2.0], 0)[0]
        np.int64(1)
    """
    _refuse_order("argpartition", order)
    a, along = _along(a, axis, of_numbers=True)
    return prim.argpartition(a, kth=_positions("argpartition", kth, a, along), axis=along)


def _positions(name: str, kth: Any, a: Array, axis: int) -> int | tuple[int, ...]:
    n = backend.shape_of(a)[axis]
    several = isinstance(kth, (list, tuple)) or (isinstance(kth, np.ndarray) and kth.ndim > 0)
    numbers = [operator.index(k) for k in (kth if several else (kth,))]
    if 0 in backend.shape_of(a):  # nothing to partition, so NumPy takes any position
        return 0
    for k in numbers:
        if not -n <= k < n:
            raise ValueError(f"{name}: kth(={k}) out of bounds ({n})")
    found = tuple([k % n for k in numbers])
    return found if several else found[0]


@function_table
def _position(name: str, a: ArrayLike, axis: Axis = None, out: Any = None, *, keepdims: bool = False) -> Array:
    if out is not None:
        return compute_into(globals()[name], out, a, axis, keepdims=keepdims)
    a = as_value(a)
    shape = backend.shape_of(a)
    flat, along = _along(a, axis, of_numbers=True)
    ans = getattr(prim, name)(flat, axis=along)
    if not keepdims:
        return ans
    axes = tuple(range(len(shape))) if means_all_axes(axis, len(shape)) else (along,)
    return reshape(ans, to=keepdims_shape(shape, axes))


# fmt: off
argmax = _position("argmax",
    """The position of the first largest element along ``axis``, by default in the flattened array.

    No derivative passes. NaN counts as the largest.

    Args:
        a: an array.
        axis: the axis, or None to flatten first.
        out: an array for the result.
        keepdims: keep the axis, with length 1.

    Raises:
        ValueError: no elements to compare.""", "fnp.argmax([1.0, 3.0, 2.0])", "np.int64(1)")
argmin = _position("argmin",
    "The position of the first smallest element; arguments as for ``argmax``. NaN counts as the smallest.",
    "fnp.argmin([2.0, 1.0, 3.0])", "np.int64(1)")
nanargmax = _position("nanargmax",
    """The position of the first largest element that is not NaN; arguments as for ``argmax``.

    Raises:
        ValueError: all elements are NaN (for JAX arrays the position is then -1).""",
    'fnp.nanargmax([1.0, float("nan"), 3.0])', "np.int64(2)")
nanargmin = _position("nanargmin",
    "The position of the first smallest element that is not NaN; arguments as for ``nanargmax``.",
    'fnp.nanargmin([float("nan"), 3.0, 1.0])', "np.int64(2)")
# fmt: on


def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> Array:
    """Return the positions at which inserting ``v`` into the sorted ``a`` keeps ``a`` sorted; no derivative passes.

    Args:
        a: a sorted array of one axis.
        v: the values to insert, of any shape.
        side: "left" for positions before equal elements, "right" for positions after them.
        sorter: positions that sort ``a``, if ``a`` is not sorted.

    Raises:
        ValueError: ``a`` does not have exactly one axis; ``side`` is neither "left" nor "right"; ``sorter`` does not
            have the length of ``a`` or holds other numbers than its positions.
        TypeError: ``sorter`` does not hold integers.

    Example:
        >>> fnp.searchsorted([1.0, 2.0, 3.0], [0.5, 2.0], side="right")
        array([0, 2])
    """
    a, v = as_value(a), as_value(v)
    if len(backend.shape_of(a)) != 1:
        raise ShapeError(
            f"searchsorted: only an array of one axis is sorted, got {describe(a)}. vmap over the other axes."
        )
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}.")
    if sorter is not None:
        a = take_along_axis(a, _checked_sorter(as_value(sorter), backend.shape_of(a)[0]), axis=0)
    return prim.searchsorted(a, v, side=side)


def _checked_sorter(sorter: Array, n: int) -> Array:
    """Return the positions that sort ``n`` elements; raise NumPy's errors for others."""
    if backend.dtype_of(sorter).kind not in "iu":
        raise TypeError(f"searchsorted: sorter must only contain integers, got {describe(sorter)}.")
    if backend.shape_of(sorter) != (n,):
        raise ValueError(f"searchsorted: sorter must have the length of a, which is {n}, got {describe(sorter)}.")
    if any_true(lambda places: (places < 0) | (places >= n), sorter):
        raise ValueError(f"searchsorted: sorter must hold positions from 0 to {n - 1}. Pass argsort(a).")
    return sorter
