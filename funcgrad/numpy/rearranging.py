"""Functions that flip, rotate, repeat, pad, insert or delete elements of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.core import Tracer
from funcgrad.kinds.linear import broadcast_to, reshape
from funcgrad.numpy.axes import as_shape, means_all_axes, normalize_axes, normalize_axis
from funcgrad.numpy.creation import as_buffer, as_value, astype, copy
from funcgrad.numpy.elementwise import rint
from funcgrad.numpy.layout import in_c_order, in_memory_order
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_numpy_only, is_plain
from funcgrad.numpy.quantiles import median
from funcgrad.numpy.ranges import linspace
from funcgrad.numpy.reductions import max as largest
from funcgrad.numpy.reductions import mean
from funcgrad.numpy.reductions import min as smallest
from funcgrad.numpy.shaping import moveaxis, ravel, swapaxes
from funcgrad.primitives import shaping as prim
from funcgrad.primitives.arithmetic import add, remainder, subtract
from funcgrad.primitives.comparison import where
from funcgrad.primitives.index_spec import is_unknown
from funcgrad.primitives.indexing import getitem, pad_zeros
from funcgrad.typing import Array, ArrayLike, Axes, Axis
from funcgrad.writable import is_buffer

__all__ = ["delete", "flip", "fliplr", "flipud", "insert", "pad", "repeat", "resize", "roll", "rot90", "tile"]


def _concrete_count(name: str, what: str, value: Any) -> Any:
    """Return a plain count or position, which determines shapes: all examples of a vmap must share it."""
    return concrete(value, f"{name}: {what}") if isinstance(value, Tracer) else value


def _as_unknown(value: Any) -> Array | None:
    """Return integers that have no one value here as an array; None for all else."""
    if not is_plain(value) and not isinstance(value, slice) and is_unknown(value := as_value(value)):
        return astype(value, int) if backend.dtype_of(value).kind in "iu" else None
    return None


def _take(x: Array, axis: int, places: Any) -> Array:
    return getitem(x, (*(slice(None),) * axis, places))


def _gather(x: Array, axis: int, places: np.ndarray) -> Array:
    found = _take(x, axis, places)
    # indexing leaves the axes in another memory order
    return in_memory_order(found, "C") if isinstance(found, Tracer) else found


def flip(m: ArrayLike, axis: Any = None) -> Array:
    """Return ``m`` with the order of its elements reversed along ``axis``, by default along all axes.

    Example:
        >>> fnp.flip([[1, 2], [3, 4]], 0)
        array([[3, 4],
               [1, 2]])
    """
    m = as_value(m)
    if namespace_of(m) is np:
        return np.flip(m, axis)
    axes = normalize_axes(axis, len(m.shape))
    if axes:
        return prim.flip(m, axis=axes)
    return m if m.shape else getitem(m, ())  # a number, as in NumPy


def flipud(m: ArrayLike) -> Array:
    """Return ``m`` reversed along its first axis.

    Raises:
        ValueError: ``m`` has no axes.

    Example:
        >>> fnp.flipud([1, 2, 3])
        array([3, 2, 1])
    """
    m = as_value(m)
    if len(backend.shape_of(m)) < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


def fliplr(m: ArrayLike) -> Array:
    """Return ``m`` reversed along its second axis.

    Raises:
        ValueError: fewer than two axes.

    Example:
        >>> fnp.fliplr([[1, 2, 3]])
        array([[3, 2, 1]])
    """
    m = as_value(m)
    if len(backend.shape_of(m)) < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return ``m`` rotated ``k`` times by 90 degrees, from the first of ``axes`` towards the second.

    Raises:
        ValueError: ``axes`` are not two different axes.

    Example:
        >>> fnp.rot90([[1, 2], [3, 4]])
        array([[2, 4],
               [1, 3]])
    """
    m = as_value(m)
    if namespace_of(m) is np:
        return np.rot90(m, k, axes)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = normalize_axes(axes, len(m.shape))
    turns = k % 4
    if turns == 0:
        return m
    if turns == 2:
        return prim.flip(m, axis=(first, second))
    if turns == 1:
        return swapaxes(prim.flip(m, axis=(second,)), first, second)
    return prim.flip(swapaxes(m, first, second), axis=(second,))


def roll(a: ArrayLike, shift: int | tuple[int, ...], axis: Axes = None) -> Array:
    """Return ``a`` shifted along ``axis``; elements shifted past the end reappear at the beginning.

    Args:
        a: an array.
        shift: the number of positions, one for each axis or one for all; examples of a ``vmap`` may differ in it.
        axis: one axis or several; None rolls the flattened elements.

    Raises:
        ValueError: ``shift`` and ``axis`` do not match.

    Example:
        >>> fnp.roll([1, 2, 3, 4], 1)
        array([4, 1, 2, 3])
    """
    unknown = None if type(shift) is int else _as_unknown(shift)
    if unknown is not None:
        return _roll_unknown(as_value(a), unknown, axis)
    shift = _concrete_count("roll", "shift", shift)
    a = as_value(a)
    if namespace_of(a) is np:
        return np.roll(a, shift, axis)
    rank = len(a.shape)
    if axis is None:
        if rank != 1:
            return reshape(roll(ravel(a), shift, 0), to=a.shape)
        axis = 0
    if type(shift) is int and type(axis) is int:
        return prim.roll(a, shift=(shift,), axis=(normalize_axis(axis, rank),))
    pairs = np.broadcast(np.asarray(shift), np.asarray(axis))
    _check_shifts(pairs.ndim)
    shifts, axes = zip(*pairs, strict=True) if pairs.size else ((), ())
    whole = tuple([operator.index(s) for s in shifts])
    return prim.roll(a, shift=whole, axis=tuple([normalize_axis(i, rank) for i in axes]))


def _check_shifts(rank: int) -> None:
    if rank > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")


def _roll_unknown(a: Array, shift: Array, axis: Axes) -> Array:
    shape = backend.shape_of(a)
    if axis is None:
        return reshape(_roll_unknown(ravel(a), shift, 0), to=shape)
    steps = np.broadcast_shapes(backend.shape_of(shift), np.shape(axis), (1,))
    _check_shifts(len(steps))
    shift, axes = broadcast_to(shift, to=steps), np.broadcast_to(axis, steps)
    for i, along in enumerate(axes.tolist()):
        along = normalize_axis(along, len(shape))
        a = _take(a, along, remainder(subtract(np.arange(shape[along]), getitem(shift, i)), max(shape[along], 1)))
    return a


def tile(A: ArrayLike, reps: Any) -> Array:
    """Return ``A`` repeated ``reps`` times along each axis.

    Example:
        >>> fnp.tile([1, 2], (2, 2))
        array([[1, 2, 1, 2],
               [1, 2, 1, 2]])
    """
    x = as_value(A)
    if namespace_of(x) is np and is_plain(reps):
        return np.tile(x, reps)
    times = as_shape(_concrete_count("tile", "reps", reps))
    have = backend.shape_of(x)
    rank = max(len(have), len(times))
    lengths = (*(1,) * (rank - len(have)), *have)
    times = (*(1,) * (rank - len(times)), *times)
    parts, copies = [], []  # a repeated axis becomes two: the copies, then the elements
    for n, r in zip(lengths, times, strict=True):
        parts += [n] if r == 1 else [1, n]
        copies += [n] if r == 1 else [r, n]
    x = broadcast_to(reshape(x, to=tuple(parts)), to=tuple(copies)) if len(parts) > rank else copy(x)
    tiled = reshape(x, to=tuple([n * r for n, r in zip(lengths, times, strict=True)]))
    return copy(tiled) if is_buffer(tiled) else tiled  # it may be a read-only view


def repeat(a: ArrayLike, repeats: Any, axis: Axis = None) -> Array:
    """Return ``a`` with each element repeated, all equally often or each with its own count.

    Args:
        a: an array.
        repeats: an integer, or one for each position along ``axis``. The counts determine the shape of the
            result, so all examples of a ``vmap`` must share them.
        axis: the axis; None repeats the flattened elements.

    Raises:
        ValueError: negative counts, or a wrong number of them.
        ConcretizationError: counts that differ between examples.

    Example:
        >>> fnp.repeat([1, 2], [2, 1])
        array([1, 1, 2])
    """
    repeats = _concrete_count("repeat", "repeats", repeats)
    a = as_value(a)
    if namespace_of(a) is np:
        return np.repeat(a, repeats, axis)
    if means_all_axes(axis, len(backend.shape_of(a))):
        a, axis = ravel(a), 0
    have = backend.shape_of(a)
    axis = normalize_axis(axis, len(have))
    places = np.repeat(np.arange(have[axis]), repeats)  # NumPy checks the counts
    if np.ndim(repeats):
        return in_c_order(_gather(a, axis, places))
    before, after = have[:axis], have[axis + 1 :]
    apart = reshape(a, to=(*before, have[axis], 1, *after))
    spread = broadcast_to(apart, to=(*before, have[axis], int(repeats), *after))
    return in_c_order(reshape(spread, to=(*before, places.size, *after)))


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """Return the elements of ``a`` in ``new_shape``, repeated as needed; zeros if ``a`` is empty.

    Raises:
        ValueError: a negative length.

    Example:
        >>> fnp.resize([1, 2, 3], (2, 2))
        array([[1, 2],
               [3, 1]])
    """
    a = as_value(a)
    if namespace_of(a) is np:
        return np.resize(a, new_shape)
    to = as_shape(new_shape)
    if any(n < 0 for n in to):
        raise ValueError("all elements of `new_shape` must be non-negative")
    have, need = prod(backend.shape_of(a)), prod(to)
    if not have or not need:
        return as_buffer(backend.library_of(a).zeros(to, a.dtype))
    long = tile(ravel(a), -(-need // have))
    return reshape(getitem(long, slice(0, need)), to=to)


def pad(array: ArrayLike, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """Return ``array`` padded with a border.

    Borders from statistics pass the derivative of the statistic; equal elements share the derivative of a maximum.

    Args:
        array: an array.
        pad_width: how many elements before and after: a number, a pair, a pair for each axis, or a
            dictionary from axes to pairs or numbers.
        mode: "constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
            "symmetric", "wrap", or a function that writes to each vector of the padded array, as in NumPy.
        **kwargs: ``constant_values`` for "constant" and ``end_values`` for "linear_ramp", which both may be traced;
            ``stat_length`` for statistics, the number of elements from the edge to use; ``reflect_type`` for "reflect"
            and "symmetric", "even" or "odd"; any keywords for a function.

    Raises:
        ValueError: an unknown mode, an option of another mode, negative widths, an empty axis that a mode cannot
            extend, or a statistic of no elements.

    Example:
        >>> fnp.pad([1, 2], (1, 2), constant_values=7)
        array([7, 1, 2, 7, 7])
        >>> grad(lambda x: fnp.pad(x, (0, 1), "reflect", reflect_type="odd")[-1])(fnp.array([1.0, 2.0]))
        array([-1.,  2.])
    """
    x = as_value(array)
    if is_numpy_only(x) and all(map(_is_plain, kwargs.values())):
        return np.pad(x, pad_width, mode, **kwargs)
    widths = _widths(pad_width, len(backend.shape_of(x)))
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ValueError(f"mode {mode!r} is not supported")
    unknown = kwargs.keys() - {_OPTIONS[mode]}
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    given = next(iter(kwargs.values()), None)
    if mode == "constant" and _is_plain(given) and not np.any(given):
        given = None
    if not widths:
        return copy(x)
    made = _pad_by_mode(x, widths, mode, given)
    return in_memory_order(made, "C") if isinstance(made, Tracer) else made


def _is_plain(values: Any) -> bool:
    if isinstance(values, (tuple, list)):
        return all(_is_plain(v) for v in values)
    return namespace_of(values) in (None, np) and not isinstance(values, Tracer)


def _fixed_widths(widths: Any) -> Any:
    if type(widths) in (list, tuple):
        return [_fixed_widths(w) for w in widths]
    return _concrete_count("pad", "pad_width", widths)


def _widths(pad_width: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """Return ``pad_width`` as (before, after) for each axis."""
    if isinstance(pad_width, dict):
        given = {normalize_axis(axis, rank): width for axis, width in pad_width.items()}
        pad_width = [np.broadcast_to(given.get(i, 0), (2,)).tolist() for i in range(rank)] or 0
    whole = np.asarray(_fixed_widths(pad_width))
    if whole.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(whole, (rank, 2)).tolist()
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError("index can't contain negative values")
    return tuple([(before, after) for before, after in pairs])


def _one_unknown(obj: Any) -> Array | None:
    """Return one position that has no one value here; None for all else."""
    unknown = _as_unknown(obj)
    return unknown if unknown is not None and backend.shape_of(unknown) in ((), (1,)) else None


def _in_range(place: Array, n: int, last: int) -> Array:
    """Return one place from 0 to ``last`` on an axis of length ``n``, from whose end negative places count."""
    place = reshape(place, to=())
    if any_true(lambda place: (place < -n) | (place > last), place):
        values: Any = concrete_or_none(place)
        wrong = values[(values < -n) | (values > last)]
        raise IndexError(f"index {wrong[0]} is out of bounds for axis with size {n}")
    return where(place < 0, add(place, n), place)


def delete(arr: ArrayLike, obj: Any, axis: Axis = None) -> Array:
    """Return ``arr`` without the positions ``obj`` along ``axis``.

    Args:
        arr: an array.
        obj: an integer, a slice, or a list of integers or booleans.
        axis: the axis; None deletes from the flattened elements.

    Raises:
        IndexError: a position out of range.
        ConcretizationError: several positions that differ between the examples of a ``vmap``.

    Example:
        >>> fnp.delete([1, 2, 3], 1)
        array([1, 3])
    """
    place = _one_unknown(obj)
    if place is not None:
        arr, axis = (ravel(arr), 0) if axis is None else (as_value(arr), axis)
        axis = normalize_axis(axis, len(backend.shape_of(arr)))
        kept = np.arange(backend.shape_of(arr)[axis] - 1)
        return _take(arr, axis, add(kept, kept >= _in_range(place, len(kept) + 1, len(kept))))
    obj = _concrete_count("delete", "obj", obj)
    arr = as_value(arr)
    if namespace_of(arr) is np:
        return np.delete(arr, obj, axis)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis(axis, len(arr.shape))
    places = np.delete(np.arange(arr.shape[axis]), obj)
    if np.ndim(obj) and np.size(obj) != 1:  # NumPy uses an index here
        return _take(arr, axis, places)
    return _gather(arr, axis, places)


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: Axis = None) -> Array:
    """Return ``arr`` with ``values`` inserted before the positions ``obj`` along ``axis``.

    The derivative flows to ``arr`` and to ``values``, which are converted to the dtype of ``arr``.

    Args:
        arr: an array.
        obj: an integer, a slice, or a list of integers or booleans.
        values: the values to insert, which broadcast.
        axis: the axis; None inserts into the flattened elements.

    Raises:
        IndexError: a position out of range.
        ValueError: ``values`` do not broadcast.
        ConcretizationError: several positions that differ between the examples of a ``vmap``.

    Example:
        >>> fnp.insert([1, 2, 3], 1, 9)
        array([1, 9, 2, 3])
    """
    place = _one_unknown(obj)
    if place is not None:
        together = insert(arr, np.zeros(backend.shape_of(place), int), values, axis)  # the new ones first
        arr, axis = (ravel(arr), 0) if axis is None else (as_value(arr), axis)
        axis = normalize_axis(axis, len(backend.shape_of(arr)))
        n, places = backend.shape_of(arr)[axis], np.arange(backend.shape_of(together)[axis])
        place, new = _in_range(place, n, n), len(places) - n
        after = where(places < add(place, new), subtract(places, place), places)
        return _take(together, axis, where(places < place, add(places, new), after))
    obj = _concrete_count("insert", "obj", obj)
    if is_plain(arr, values):  # NumPy converts values to the dtype of arr, which may have fields
        return np.insert(arr, obj, values, axis)
    arr, values = as_value(arr), as_value(values)
    if axis is None:
        arr, axis = ravel(arr), 0
    values = astype(values, backend.dtype_of(arr))
    have, put = backend.shape_of(arr), backend.shape_of(values)
    n, m = prod(have), prod(put)
    # NumPy determines the positions: number the old and the new elements, and insert the numbers
    places = np.insert(np.arange(n).reshape(have), obj, np.arange(n, n + m).reshape(put), axis)
    together = prim.concatenate(reshape(arr, to=(n,)), reshape(values, to=(m,)), axis=0)
    return getitem(together, places)


Widths: TypeAlias = tuple[tuple[int, int], ...]

#: Name of the option of each mode.
_OPTIONS: dict[str, str | None] = {
    **dict.fromkeys(("edge", "empty", "wrap")),
    **dict.fromkeys(("maximum", "mean", "median", "minimum"), "stat_length"),
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    "constant": "constant_values",
    "linear_ramp": "end_values",
}
_STATISTICS: dict[str, Callable[..., Array]] = {"maximum": largest, "mean": mean, "median": median, "minimum": smallest}


def _pad_by_mode(x: Array, widths: Widths, mode: str, given: Any) -> Array:
    """Return ``x`` with a border of ``widths``; ``given`` is the option of ``mode``, None for its default."""
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
            x = _ramp(x, axis, width, _option_pair(given, 0, axis, len(shape)))
        elif mode in _STATISTICS:
            lengths = [None if n is None else int(n) for n in _option_pair(given, None, axis, len(shape))]
            x = _statistic(x, axis, width, lengths, _STATISTICS[mode])
        elif given == "odd" and shape[axis] > 1:
            x = _pad_odd(x, axis, width, int(mode == "reflect"))
        else:
            x = _take(x, axis, np.pad(np.arange(shape[axis]), width, mode))  # type: ignore[call-overload]
    return x


def _pad_by_function(x: Array, widths: Widths, function: Callable[..., Any], options: dict[str, Any]) -> Array:
    """Pad ``x`` with zeros and let ``function(vector, width, axis, options)`` overwrite them, axis by axis."""
    padded = pad_zeros(x, widths=widths)
    for axis in range(len(widths)):
        view = moveaxis(padded, axis, -1)
        for place in np.ndindex(view.shape[:-1]):
            function(view[(*place, ...)], widths[axis], axis, options)
    return padded


def _option_pair(given: Any, default: Any, axis: int, rank: int) -> Any:
    """Return the option for both sides of ``axis``, given as one value, one pair, or a pair for each axis."""
    if given is None:
        return default, default
    pairs = broadcast_to(as_value(given), to=(rank, 2))
    return getitem(pairs, (axis, 0)), getitem(pairs, (axis, 1))


def _filled(x: Array, axis: int, n: int, block: Array) -> Array:
    """Return ``block``, a number or an array of length 1 along ``axis``, repeated ``n`` times along ``axis``."""
    shape = backend.shape_of(x)
    return broadcast_to(block, to=(*shape[:axis], n, *shape[axis + 1 :]))


def _constant(x: Array, widths: Widths, values: Any) -> Array:
    values = astype(as_value(values), backend.dtype_of(x))
    for axis, (before, after) in enumerate(widths):
        first, last = _option_pair(values, 0, axis, len(widths))
        x = prim.concatenate(_filled(x, axis, before, first), x, _filled(x, axis, after, last), axis=axis)
    return x


def _ramp(x: Array, axis: int, width: tuple[int, int], ends: Any) -> Array:
    """Pad with even steps from an end value to the edge."""
    sides = []
    for n, end, edge in zip(width, ends, (0, -1), strict=True):
        steps = linspace(end, _take(x, axis, edge), n, endpoint=False, dtype=backend.dtype_of(x), axis=axis)
        sides.append(_take(steps, axis, slice(None, None, -1)) if edge else steps)
    return prim.concatenate(sides[0], x, sides[1], axis=axis)


def _statistic(x: Array, axis: int, width: tuple[int, int], lengths: Any, function: Callable[..., Array]) -> Array:
    """Pad with a statistic of ``lengths`` elements from each edge; None means all elements."""
    n, dtype = backend.shape_of(x)[axis], backend.dtype_of(x)
    sides = []
    for count, length, front in zip(width, lengths, (True, False), strict=True):
        used = n if length is None or length > n else length
        if not used and function in (largest, smallest):
            raise ValueError("stat_length of 0 yields no value for padding")
        block = function(_take(x, axis, slice(0, used) if front else slice(n - used, n)), axis=axis, keepdims=True)
        if dtype.kind in "iu":
            block = rint(block)
        sides.append(_filled(x, axis, count, astype(block, dtype)))
    return prim.concatenate(sides[0], x, sides[1], axis=axis)


def _pad_odd(x: Array, axis: int, width: tuple[int, int], skipped: int) -> Array:
    """Pad repeatedly with twice the edge minus the mirrored elements; ``skipped`` is 1 to leave out the edge."""
    before, after = width
    most = backend.shape_of(x)[axis] - skipped
    while before or after:
        n, m, have = np.minimum(before, most), np.minimum(after, most), backend.shape_of(x)[axis]
        left = 2 * _take(x, axis, slice(0, 1)) - _take(x, axis, slice(skipped, skipped + n))
        right = 2 * _take(x, axis, slice(have - 1, have)) - _take(x, axis, slice(have - skipped - m, have - skipped))
        turned = slice(None, None, -1)
        x = prim.concatenate(_take(left, axis, turned), x, _take(right, axis, turned), axis=axis)
        before, after = before - n, after - m
    return x
