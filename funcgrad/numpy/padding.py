"""What ``pad`` puts around an array in each of its modes, axis by axis, so that the last axis has the corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import broadcast_to
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.quantiles import median
from funcgrad.numpy.ranges import linspace
from funcgrad.numpy.reductions import max, mean, min
from funcgrad.numpy.rounding import rint
from funcgrad.numpy.shaping import moveaxis
from funcgrad.primitives import shaping as prim
from funcgrad.primitives.indexing import getitem, pad_zeros
from funcgrad.typing import Array

__all__ = ["OPTIONS", "bordered", "by_function"]

Widths: TypeAlias = tuple[tuple[int, int], ...]

#: The option of each mode.
OPTIONS = {
    "constant": "constant_values",
    "edge": None,
    "empty": None,
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": None,
}
_STATISTICS: dict[str, Callable[..., Array]] = {"maximum": max, "mean": mean, "median": median, "minimum": min}


def bordered(x: Array, widths: Widths, mode: str, given: Any) -> Array:
    """``x`` with a border of ``widths`` along each axis; ``given`` is the option of ``mode``, None for its default.

    Raises:
        ValueError: an empty axis that is to be continued, or a statistic of no elements.

    Example:
        >>> bordered(np.array([1.0, 3.0]), ((2, 1),), "reflect", "odd")
        array([-3., -1.,  1.,  3.,  5.])
    """
    if mode == "empty" or (mode == "constant" and given is None):
        return pad_zeros(x, widths=widths) if widths else x
    if mode == "constant":
        return _constant(x, widths, given)
    shape = backend.shape_of(x)
    for axis, width in enumerate(widths):
        if width == (0, 0):
            continue
        if not shape[axis]:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
        if 0 in shape:
            x = pad_zeros(x, widths=tuple([width if i == axis else (0, 0) for i in range(len(shape))]))
        elif mode == "linear_ramp":
            x = _ramp(x, axis, width, _pair(given, 0, axis, len(shape)))
        elif mode in _STATISTICS:
            lengths = [None if n is None else int(n) for n in _pair(given, None, axis, len(shape))]
            x = _statistic(x, axis, width, lengths, _STATISTICS[mode])
        elif given == "odd" and shape[axis] > 1:
            x = _odd(x, axis, width, int(mode == "reflect"))
        else:
            x = _take(x, axis, np.pad(np.arange(shape[axis]), width, mode))  # type: ignore[call-overload]
    return x


def by_function(x: Array, widths: Widths, function: Callable[..., Any], options: dict[str, Any]) -> Array:
    """Zeros around ``x``, for ``function(vector, width, axis, options)`` to write over, along each axis in turn."""
    padded = pad_zeros(x, widths=widths)
    for axis in range(len(widths)):
        view = moveaxis(padded, axis, -1)
        for place in np.ndindex(view.shape[:-1]):
            function(view[(*place, ...)], widths[axis], axis, options)
    return padded


def _take(x: Array, axis: int, places: Any) -> Array:
    return getitem(x, (*(slice(None),) * axis, places))


def _pair(given: Any, default: Any, axis: int, rank: int) -> Any:
    """What is given for both sides of ``axis``: one value for all, one pair for all, or a pair for each axis."""
    if given is None:
        return default, default
    pairs = broadcast_to(as_value(given), to=(rank, 2))
    return getitem(pairs, (axis, 0)), getitem(pairs, (axis, 1))


def _around(x: Array, axis: int, before: Array, after: Array) -> Array:
    return prim.concatenate(before, x, after, axis=axis)


def _filled(x: Array, axis: int, n: int, block: Array) -> Array:
    """``block``, a number or what has length 1 along ``axis``, ``n`` times along it."""
    shape = backend.shape_of(x)
    return broadcast_to(block, to=(*shape[:axis], n, *shape[axis + 1 :]))


def _constant(x: Array, widths: Widths, values: Any) -> Array:
    values = astype(as_value(values), backend.dtype_of(x))
    for axis, (before, after) in enumerate(widths):
        first, last = _pair(values, 0, axis, len(widths))
        x = _around(x, axis, _filled(x, axis, before, first), _filled(x, axis, after, last))
    return x


def _ramp(x: Array, axis: int, width: tuple[int, int], ends: Any) -> Array:
    """Even steps from an end value to the edge."""
    sides = []
    for n, end, edge in zip(width, ends, (0, -1), strict=True):
        steps = linspace(end, _take(x, axis, edge), n, endpoint=False, dtype=backend.dtype_of(x), axis=axis)
        sides.append(_take(steps, axis, slice(None, None, -1)) if edge else steps)
    return _around(x, axis, *sides)


def _statistic(x: Array, axis: int, width: tuple[int, int], lengths: Any, function: Callable[..., Array]) -> Array:
    """A statistic of so many elements from the edge; None stands for all of them."""
    n, dtype = backend.shape_of(x)[axis], backend.dtype_of(x)
    sides = []
    for count, length, front in zip(width, lengths, (True, False), strict=True):
        used = n if length is None or length > n else length
        if not used and function in (max, min):
            raise ValueError("stat_length of 0 yields no value for padding")
        block = function(_take(x, axis, slice(0, used) if front else slice(n - used, n)), axis=axis, keepdims=True)
        if dtype.kind in "iu":
            block = rint(block)
        sides.append(_filled(x, axis, count, astype(block, dtype)))
    return _around(x, axis, *sides)


def _odd(x: Array, axis: int, width: tuple[int, int], skipped: int) -> Array:
    """Twice the edge minus the elements mirrored at it, again and again; ``skipped`` is 1 if not the edge."""
    before, after = width
    most = backend.shape_of(x)[axis] - skipped
    while before or after:
        n, m, have = np.minimum(before, most), np.minimum(after, most), backend.shape_of(x)[axis]
        left = 2 * _take(x, axis, slice(0, 1)) - _take(x, axis, slice(skipped, skipped + n))
        right = 2 * _take(x, axis, slice(have - 1, have)) - _take(x, axis, slice(have - skipped - m, have - skipped))
        turned = slice(None, None, -1)
        x = _around(x, axis, _take(left, axis, turned), _take(right, axis, turned))
        before, after = before - n, after - m
    return x
