"""Which elements of an array an index names, and copies of arrays with other elements there."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe, is_array
from funcgrad.errors import InputError
from funcgrad.kinds.linear import astype, broadcast_to, reshape
from funcgrad.numpy.plain_values.concretization import user_line
from funcgrad.primitives.comparison import where
from funcgrad.primitives.index_spec import Spec, parse_index
from funcgrad.primitives.indexing import getitem, scatter_sum
from funcgrad.primitives.reductions import reduce_all
from funcgrad.primitives.writing import shape_of_region, winners, write
from funcgrad.typing import Array, Shape
from funcgrad.writable import Proxy

ndarray = np.ndarray
_NUMBERS = frozenset((bool, int, float, complex))


def compose_indices(shape: Shape, steps: list[Any]) -> Any:
    """Return one index equal to ``steps`` applied in turn; None for new axes, permuted results and bad indices.

    Args:
        shape: the shape of the array.
        steps: indices of integers, slices and ellipses, and lists that permute the axes.

    Example:
        >>> compose_indices((9, 2), [slice(1, None), 3]), compose_indices((9, 2), [(4,), 1])
        (4, (4, 1))
        >>> compose_indices((3,), [slice(None, None, -1), slice(3, None)])
        slice(0, 0, None)
        >>> compose_indices((3, 5), [(slice(None), 1), slice(1, None)]), compose_indices((3, 5), [[1, 0], 2])
        ((slice(1, 3, 1), 1), (slice(None, None, None), 2))
    """
    chosen: list[Any] = list(map(range, shape))  # remaining positions of each axis, or an integer where it is gone
    order = list(range(len(shape)))  # the axes of the array indexed so far
    for step in steps:
        if type(step) is list:
            order = [order[axis] for axis in step]
            continue
        entries = step if type(step) is tuple else (step,)
        if ... in entries:
            place = entries.index(...)
            rest = len(order) - len(entries) + 1
            entries = (*entries[:place], *[slice(None)] * rest, *entries[place + 1 :])
        if None in entries or len(entries) > len(order):
            return None
        try:
            for axis, entry in zip(order, entries, strict=False):
                chosen[axis] = chosen[axis][entry]
        except IndexError:  # NumPy will raise its own error
            return None
        order = [axis for axis in order if type(chosen[axis]) is range]
    if order != sorted(order):
        return None
    while chosen and chosen[-1] == range(shape[len(chosen) - 1]):
        chosen.pop()
    found = tuple([_as_slice(part, n) if type(part) is range else part for part, n in zip(chosen, shape, strict=False)])
    return found[0] if len(found) == 1 else found


def _as_slice(part: range, length: int) -> slice:
    """Return the slice that selects ``part`` of an axis."""
    if part == range(length):
        return slice(None)
    if not part:  # an empty range may start outside the axis
        return slice(0, 0)
    return slice(part.start, part.stop if part.stop >= 0 else None, part.step)  # a stop of -1 would count from the end


def rank_of_item(index: Any, rank: int) -> int:
    """Return the number of axes of ``x[index]`` for a concrete ``index`` and an array ``x`` with ``rank`` axes.

    Example:
        >>> rank_of_item((slice(None), 2), 3), rank_of_item((np.array([[0, 1]]), np.array([1])), 2)
        (2, 2)
        >>> rank_of_item(np.array([[True, False]]), 3), rank_of_item((None, ..., 0), 1)
        (2, 1)
    """
    made = 0  # axes that the arrays in the index make together
    for entry in index if type(index) is tuple else (index,):
        if entry is None:
            rank += 1
        elif type(entry) is ndarray:
            mask = entry.dtype.kind == "b"
            rank -= entry.ndim if mask else 1
            made = max(made, 1 if mask else entry.ndim)
        elif type(entry) is not slice and entry is not ...:
            rank -= 1
    return rank + made


def check_dtype(x: Tracer, y: Any) -> None:
    """Refuse a write that would lose a derivative or an imaginary part."""
    if isinstance(y, str) or not is_array(y):
        raise InputError(f"x[i] = y: only numbers can be written, got {describe(y)}{user_line()}. Convert it first.")
    kind, new = x.dtype.kind, backend.dtype_of(y).kind
    if new == "c" and kind != "c":
        raise InputError(
            f"x[i] = y: complex numbers are written to an array of dtype {x.dtype}, got {describe(y)}{user_line()}. "
            "Make the array with dtype=complex, or write y.real."
        )
    if kind in "biu" and isinstance(y, Tracer) and backend.is_inexact(y):
        raise InputError(
            f"x[i] = y: traced numbers are written to an array of dtype {x.dtype}, which would cut the derivative, got "
            f"{describe(y)}{user_line()}. Make the array with dtype=float; where rounding is meant, write "
            f"y.astype({str(x.dtype)!r})."
        )


def cast_for_write(y: Any, x: Array) -> Any:
    """Convert ``y`` to the dtype of ``x``, for a write to ``x``.

    Raises:
        InputError: a derivative or an imaginary part would be lost.
    """
    check_dtype(x, y)
    dtype = backend.dtype_of(x)
    if type(y) in _NUMBERS:
        return np.asarray(y).astype(dtype)[()]
    if backend.dtype_of(y) == dtype:
        return y
    return astype(y, to=dtype) if backend.is_inexact(y) and backend.is_inexact(x) else _cast(y, dtype)


def _cast(y: Any, dtype: Any) -> Any:
    """Convert a constant to another dtype."""
    array = y if isinstance(y, Tracer) or backend.namespace_of(y) is not np else np.asarray(y)
    return array.astype(dtype)


def with_items_set(x: Array, index: Any, y: Any, unique: bool = False) -> Array:
    """Return a new array, ``x`` with ``y`` at ``index``, in the dtype of ``x``; the last write to an element wins.

    ``unique=True`` promises that ``index`` names no element twice.
    """
    shape, dtype = backend.shape_and_dtype_of(x)
    other = type(y) not in _NUMBERS and backend.dtype_of(y) != dtype
    rounds = other and backend.is_inexact(y) and backend.is_inexact(x)
    y = _cast(y, dtype) if other and not rounds else y
    chosen = as_where_mask(index, shape, backend.shape_of(y))
    if chosen is not None:
        ans = where(chosen, dtype.type(y) if type(y) in _NUMBERS else y, x)
        return astype(ans, to=dtype) if backend.dtype_of(ans) != dtype else ans
    spec, arrays, to = parse_index(index, shape)
    if to is not None:
        x = reshape(x, to=to)
    region_shape = shape_of_region(spec, arrays, shape if to is None else to)
    y = without_excess_axes(y, region_shape)
    if arrays and not unique and _is_traced(y) and _may_repeat(spec, arrays, backend.shape_of(x)):
        ans = _write_last_values(x, y, spec, arrays, region_shape)
    else:  # ``write`` rounds, so its cotangent is first rounded, then summed, as for a write in place
        ans = write(x, y, *arrays, spec=spec)
    return ans if to is None else reshape(ans, to=shape)


def _is_traced(y: Any) -> bool:
    return backend.namespace_of(y) is not np


def as_where_mask(index: Any, shape: Shape, new: Shape) -> Any:
    """Return a mask in a shape for ``where``, else None; the True entries of a traced mask cannot always be counted."""
    index = index.as_array() if isinstance(index, Proxy) else index
    if type(index) is tuple or not hasattr(index, "dtype") or index.dtype.kind != "b":
        return None
    rank = len(index.shape)
    if index.shape != shape[:rank] or len(new) > len(shape) - rank:
        return None
    return reshape(index, to=(*index.shape, *(1,) * (len(shape) - rank)))


def without_excess_axes(y: Any, region_shape: Shape) -> Any:
    """Return ``y`` without leading axes of length 1 in excess of the axes of ``region_shape``.

    Raises:
        ValueError: ``y`` does not broadcast to ``region_shape``.
    """
    have = backend.shape_of(y)
    extra = len(have) - len(region_shape)
    fitting = have[extra:] if extra > 0 and prod(have[:extra]) == 1 else have
    if len(fitting) > len(region_shape) or any(
        m not in (1, n) for m, n in zip(fitting[::-1], region_shape[::-1], strict=False)
    ):
        raise ValueError(f"could not broadcast input array from shape {have} into shape {region_shape}")
    return reshape(y, to=fitting) if fitting != have else y


def _flat_positions(spec: Spec, arrays: tuple[Any, ...], shape: Shape) -> Any:
    """Return the flat positions, in C order, of the elements that an index names."""
    rest = iter(arrays)
    index = tuple([slice(*e) if type(e) is tuple else next(rest) if type(e) is str else e for e in spec])
    return getitem(np.arange(prod(shape)).reshape(shape), index)


def may_repeat(index: Any, shape: Shape) -> bool:
    """Whether ``index`` may name an element of an array of ``shape`` more than once."""
    spec, arrays, to = parse_index(index, shape)
    return bool(arrays) and _may_repeat(spec, arrays, shape if to is None else to)


def _may_repeat(spec: Spec, arrays: tuple[Any, ...], shape: Shape) -> bool:
    """Whether an index may name an element more than once; assumed if the values of the index arrays are unknown.

    The values are known in a recording: the answer is computed and becomes a decision of the recording.
    """
    if any(type(a) is not ndarray for a in arrays):
        if not any(backend.shape_of(a) for a in arrays):
            return False
        last = winners(_flat_positions(spec, arrays, shape), size=prod(shape))
        known = type(last) is Tracer and last._trace.is_bit_exact
        return not (known and reduce_all(last, axis=tuple(range(len(last.shape)))))
    if ... not in spec:  # slices name no element twice, so one element of each slice is enough
        lengths = iter(shape)
        shape = tuple([1 if type(e) is tuple else n for e in spec if e is not None for n in (next(lengths),)])
        spec = tuple([(0, 1, 1) if type(e) is tuple else e for e in spec])
    places = _flat_positions(spec, arrays, shape)
    named = np.zeros(prod(shape), bool)
    named[places] = True
    return bool(np.count_nonzero(named) != places.size)


def never_repeats(index: Any, shape: Shape) -> bool:
    """Whether arrays and slices certainly name no element twice; faster than ``may_repeat``, False when unsure."""
    entries = index if type(index) is tuple else (index,)
    arrays = [e for e in entries if type(e) is ndarray]
    if len(entries) > len(shape) or any(type(e) is not ndarray and type(e) is not slice for e in entries):
        return False
    if any(a.dtype.kind == "b" for a in arrays):
        return len(arrays) == 1
    lengths = tuple([n for e, n in zip(entries, shape, strict=False) if type(e) is ndarray])
    try:
        size = np.broadcast(*arrays).size
        if prod(lengths) > 100 * size + 1_000:  # few elements of a large array
            places = np.ravel_multi_index(tuple([a.astype(np.intp) for a in arrays]), lengths, mode="wrap")
            return np.unique(places).size == size
        named = np.zeros(lengths, bool)
        named[tuple(arrays)] = True
    except (IndexError, ValueError):  # the write itself raises NumPy's error for an index that does not fit
        return False
    return bool(np.count_nonzero(named) == size)


def _write_last_values(x: Array, y: Array, spec: Spec, arrays: tuple[Any, ...], region_shape: Shape) -> Array:
    """Do ``write`` with an index that may name elements more than once."""
    shape, dtype = backend.shape_and_dtype_of(x)
    last = winners(_flat_positions(spec, arrays, shape), size=prod(shape))
    zero = dtype.type(0)
    y = astype(y, to=dtype) if backend.dtype_of(y) != dtype else y
    kept = where(last, broadcast_to(y, to=region_shape), zero)
    cleared = write(x, zero, *arrays, spec=spec)
    return cleared + scatter_sum(kept, *arrays, specs=(spec,), shape=shape, dtype=dtype)
