"""Filters that choose one of the neighbours: the minimum, the maximum, the median, a percentile, a rank.

The derivative goes to the chosen element; of ties, to the first in the window.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.axes import normalize_axis
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.scipy.ndimage.operations import extend, rank_indices
from funcgrad.scipy.ndimage.sums import axes_of, mode_of, one_per_axis, prepared, shift_of
from funcgrad.scipy.own_code import mirror_rows, mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter", "minimum_filter1d", "percentile_filter",
    "rank_filter",
]  # fmt: skip


def _take_ranked(
    call: str, x: Array, footprint: np.ndarray, rank: int, mode: str, cval: Any, origins: list[int]
) -> Array:
    """Return for each place the element of that rank under the footprint."""
    shape = backend.shape_of(x)
    mode = mode_of(call, mode, x)
    before = [m // 2 + shift_of(call, o, m) for m, o in zip(footprint.shape, origins, strict=True)]
    widths = [(b, m - 1 - b) for m, b in zip(footprint.shape, before, strict=True)]
    if mode == "constant":
        x = fnp.pad(x, widths, constant_values=cval)
    else:
        for axis, (b, a) in enumerate(widths):
            x = extend(x, axis=axis, before=b, after=a, mode=mode) if b or a else x
    offsets = tuple([tuple([int(i) for i in place]) for place in np.argwhere(footprint)])
    at = rank_indices(x, offsets=offsets, shape=shape, rank=rank)
    flat = reshape(x, to=(prod(backend.shape_of(x)),))
    return reshape(take_along_axis(flat, reshape(at, to=(prod(shape),)), axis=0), to=shape)


def _numbers(call: str, input: Any, output: Any) -> tuple[Array, np.dtype[Any]]:
    x, dtype = prepared(call, input, output)
    if "c" in (dtype.kind, backend.dtype_of(x).kind):
        raise InputError(f"ndimage.{call}: complex numbers have no order, got {dtype}. Filter absolute values.")
    return x, dtype


def _extreme(
    call: str, x: Array, size: int, axis: int, dtype: Any, mode: str, cval: Any, origin: int, largest: bool
) -> Array:
    if size < 1:
        raise ShapeError(f"ndimage.{call}: size must be positive, got {size}.")
    rank = len(backend.shape_of(x))
    axis = normalize_axis(axis, rank)
    window = np.ones([int(size) if i == axis else 1 for i in range(rank)], bool)
    origins = [origin if i == axis else 0 for i in range(rank)]
    return fnp.astype(_take_ranked(call, x, window, int(size) - 1 if largest else 0, mode, cval, origins), dtype)


@mirror_rows
def _in_one_axis(
    name: str,
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    x, dtype = _numbers(name, input, output)
    return _extreme(name, x, size, axis, dtype, mode, cval, origin, name.startswith("max"))


# fmt: off
maximum_filter1d = _in_one_axis("maximum_filter1d",
    "The largest of ``size`` neighbours along one axis; arguments as for ``correlate1d``.",
    "maximum_filter1d([1.0, 3.0, 2.0, 0.0], 3)", "array([3., 3., 3., 2.])")
minimum_filter1d = _in_one_axis("minimum_filter1d",
    "The smallest of ``size`` neighbours along one axis; arguments as for ``correlate1d``.",
    "minimum_filter1d([1.0, 3.0, 2.0, 0.0], 3)", "array([1., 1., 0., 0.])")
# fmt: on


def _window(call: str, x: Array, size: Any, footprint: Any, origin: Any, axes: Any) -> tuple[np.ndarray, list[int]]:
    """Return the footprint and the origins, for all axes of ``x``."""
    rank = len(backend.shape_of(x))
    along = axes_of(call, axes, rank)
    if footprint is None:
        if size is None:
            raise InputError(f"ndimage.{call}: a window is needed, got neither size nor footprint. Pass one.")
        footprint = np.ones([operator.index(n) for n in one_per_axis(call, "size", size, len(along))], bool)
    footprint = np.asarray(fnp.not_equal(footprint, 0))  # which elements are 0 carries no derivative
    if footprint.ndim != len(along) or not footprint.any():
        raise ShapeError(
            f"ndimage.{call}: footprint must have one axis for each of {len(along)} axes, and an element, got shape "
            f"{footprint.shape}."
        )
    origins = [0] * rank
    for axis, o in zip(
        along if len(along) < rank else range(rank), one_per_axis(call, "origin", origin, len(along)), strict=True
    ):
        origins[axis] = o
    # SciPy assigns the axes of the footprint to the array's axes in rising order, whatever the order of ``axes``
    return np.expand_dims(footprint, tuple([i for i in range(rank) if i not in along])), origins


def _of_box(
    name: str,
    input: ArrayLike,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: ArrayLike = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """Return the median or the extremum, that in a box along one axis after the other, under a footprint at once."""
    if name == "median_filter":
        return _of_rank(name, input, None, size, footprint, output, mode, cval, origin, axes)
    x, dtype = _numbers(name, input, output)
    largest = name.startswith("max")
    if footprint is not None and not np.all(footprint):
        window, origins = _window(name, x, size, footprint, origin, axes)
        return fnp.astype(
            _take_ranked(name, x, window, int(window.sum()) - 1 if largest else 0, mode, cval, origins), dtype
        )
    size = size if footprint is None else np.shape(footprint)
    if size is None:
        raise InputError(f"ndimage.{name}: a window is needed, got neither size nor footprint. Pass one.")
    along = axes_of(name, axes, len(backend.shape_of(x)))
    sizes, modes, origins = [
        one_per_axis(name, what, given, len(along))
        for what, given in (("size", size), ("mode", mode), ("origin", origin))
    ]
    for axis, n, how, shift in zip(along, sizes, modes, origins, strict=True):
        x = _extreme(name, x, n, axis, dtype, how, cval, shift, largest) if n > 1 else x
    return fnp.astype(x, dtype)


_choice = mirror_rows(_of_box)

# fmt: off
maximum_filter = _choice("maximum_filter", """The largest of the neighbours in a box or a footprint.

    Args:
        input: an array of real numbers without NaN.
        size: the length of the box: one for all axes, or one for each axis.
        footprint: a boolean array that selects the neighbours; replaces ``size``.
        output: the dtype of the result; the default is the dtype of ``input``.
        mode: the border, as for ``correlate1d``; for a box one for all axes, or one for each axis.
        cval: the value beyond the border for mode "constant".
        origin: the shift of the window: one for all axes, or one for each axis.
        axes: the axes to filter; the default is all.

    Raises:
        TypeError: ``input`` is complex; or a traced call has no window, an array for ``output``, or an integer result.
        ValueError: a window, axis, mode or origin is invalid.
        RuntimeError: a plain call has no window or an invalid mode, as in SciPy.""",
    "grad(lambda x: np.sum(maximum_filter(x, 3)))(np.array([1.0, 3.0, 2.0, 0.0]))", "array([0., 3., 1., 0.])")
minimum_filter = _choice("minimum_filter", "The smallest of the neighbours; arguments as for ``maximum_filter``.",
    "minimum_filter([1.0, 3.0, 2.0, 0.0], 3)", "array([1., 1., 0., 0.])")
median_filter = _choice("median_filter",
    "The median of the neighbours, the upper one of an even number; arguments as for ``maximum_filter``.",
    "median_filter([1.0, 3.0, 2.0, 0.0], 3)", "array([1., 2., 2., 0.])")
# fmt: on


def _of_rank(call: str, input: Any, given: Any, size: Any, footprint: Any, output: Any, *rest: Any) -> Array:
    mode, cval, origin, axes = rest
    x, dtype = _numbers(call, input, output)
    window, origins = _window(call, x, size, footprint, origin, axes)
    count = int(window.sum())
    rank = _rank(call, given, count)
    if rank in (0, count - 1):  # SciPy filters these along one axis after the other, with a mode for each
        extreme = "minimum_filter" if rank == 0 else "maximum_filter"
        return _of_box(extreme, input, None, window, output, mode, cval, origins)
    return fnp.astype(_take_ranked(call, x, window, rank, mode, cval, origins), dtype)


def _rank(call: str, given: Any, count: int) -> int:
    """Return the index, in sorted order of ``count`` elements, of a rank or a percentile."""
    if call == "median_filter":
        return count // 2
    if call == "rank_filter":
        rank = operator.index(given)
        rank += count if rank < 0 else 0
        if not 0 <= rank < count:
            raise ShapeError(f"ndimage.rank_filter: rank must be one of {count} elements, got {given}.")
        return int(rank)
    percentile = float(given) + (100.0 if given < 0 else 0.0)
    if not 0.0 <= percentile <= 100.0:
        raise ShapeError(f"ndimage.percentile_filter: percentile must lie between -100 and 100, got {given}.")
    return count - 1 if percentile == 100.0 else int(count * percentile / 100.0)


@mirrors
def percentile_filter(
    input: ArrayLike,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """Return the neighbour at a percentile of the neighbours; arguments as for ``maximum_filter``.

    Example:
        >>> from funcgrad.scipy.ndimage import percentile_filter
        >>> percentile_filter([1.0, 3.0, 2.0, 0.0], 50, 3)
        array([1., 2., 2., 0.])
    """
    return _of_rank("percentile_filter", input, percentile, size, footprint, output, mode, cval, origin, axes)


@mirrors
def rank_filter(
    input: ArrayLike,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """Return the neighbour of a rank, negative ones counted from the largest; arguments as for ``maximum_filter``.

    Example:
        >>> from funcgrad.scipy.ndimage import rank_filter
        >>> rank_filter([1.0, 3.0, 2.0, 0.0], -2, 3)
        array([1., 2., 2., 0.])
    """
    return _of_rank("rank_filter", input, rank, size, footprint, output, mode, cval, origin, axes)
