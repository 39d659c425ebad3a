"""In-place writes to memory that nothing else refers to: filling n elements costs n writes, not n copies.

A write goes level by level, from the innermost trace down to the ndarray. The ndarray is written to in place if nothing
else refers to it or to the tracers around it. Each level adds what it adds for the primitive ``write``: reverse mode a
record, forward mode the same write to the tangent, a batch an axis. Backward passes write zeros to cotangents in the
same way.

If both sides of a write share memory, NumPy may write one element after the other. ``x[:] = x[::-1]`` reads all
elements before it writes. ``x[mask] = x[::-1]``, with a mask of all axes, and ``x.flat[...] = x[::-1]`` do not: late
reads see early writes. For traced arrays NumPy makes the same write to an array of element positions, which then
tells for each element where its value comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTrace
from funcgrad.core import DOUBLE, Tracer, describe, shallow_copy, tracer_of
from funcgrad.errors import InputError
from funcgrad.forward import ForwardTrace
from funcgrad.graph import GraphTrace
from funcgrad.kinds.linear import conform, imag, real, reshape, to_batch
from funcgrad.kinds.rules import ARRAY_MAKER
from funcgrad.numpy.concretization import user_line
from funcgrad.numpy.layout import with_layout_of
from funcgrad.ownership import is_unshared_argument
from funcgrad.primitives.accumulating import copy_with_own_memory
from funcgrad.primitives.comparison import where
from funcgrad.primitives.index_spec import is_static, parse_index
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.writing import write
from funcgrad.reverse import ReverseTrace, make_recorder, vjp_of_each
from funcgrad.typing import Shape
from funcgrad.views import array_with_layout_of
from funcgrad.writable import has_unshared, is_buffer, rebind, refresh_views, root_of, steps_of, take_steps, views_of

ndarray = np.ndarray
float64 = np.float64
_NUMPY = frozenset((ndarray, int, float, complex, np.float64, np.float32, np.int64))
_ARRAY = frozenset((ndarray,))


def can_overwrite(x: Any, index: Any, y: Any, ignore_observers: bool = False) -> bool:
    """Whether ``overwrite`` can write ``y`` to ``x[index]``; the primitive ``write`` does the other cases.

    ``ignore_observers`` ignores open blocks that observe operations.
    """
    batched = (0 if type(x) is ndarray else _fast_path_flags(x, _ARRAY, ignore_observers)) | _fast_path_flags(
        y, _NUMPY, ignore_observers
    )
    if batched & _UNKNOWN:
        return False
    return not batched or is_static(index) or (type(index) is ndarray and index.dtype.kind in "iu")


#: Flags in the result of ``_fast_path_flags``: a batch, and a value without a fast path.
_BATCH, _UNKNOWN = 1, 2


def _fast_path_flags(x: Any, kinds: frozenset[type], ignore_observers: bool) -> int:
    """Return flags: whether ``x`` is a batch, and whether its plain value is not of ``kinds`` or has no fast path."""
    found = 0
    while type(x) is Tracer:
        trace = x._trace
        if type(trace) not in _OVERWRITERS or not (trace.fast or ignore_observers or trace.may_use_fast_path()):
            return _UNKNOWN
        if trace.hidden_axes:
            found |= _BATCH
        elif type(trace) is ForwardTrace:
            found |= _fast_path_flags(x.link, kinds, ignore_observers)
        x = x._val
    return found if type(x) in kinds else _UNKNOWN


def overwrite(x: Any, index: Any, y: Any, alone: bool) -> Any:
    """Return ``x`` with ``y`` at ``index``, written in place if ``alone``: nothing else refers to ``x``."""
    if type(x) is ndarray and type(y) in _NUMPY:
        if not alone:
            x = x.copy("K")
        x[index] = y
        return x
    x_is_here, y_is_here = isinstance(x, Tracer), isinstance(y, Tracer)
    if x_is_here and y_is_here and y._trace is not x._trace:
        x_is_here, y_is_here = x._trace.level > y._trace.level, y._trace.level > x._trace.level
    overwriter = _OVERWRITERS[type((x if x_is_here else y)._trace)]
    if overwriter is _overwrite_forward:
        return _overwrite_forward(x, index, y, x_is_here, y_is_here, alone)
    if x_is_here:
        alone = alone and has_unshared(x, "_val")
    return overwriter(x, index, y, x_is_here, y_is_here, x._val if x_is_here else x, alone)


def _overwrite_reverse(x: Any, index: Any, y: Any, x_is_here: bool, y_is_here: bool, old: Any, alone: bool) -> Tracer:
    """Overwrite in reverse mode."""
    trace, w = (x if x_is_here else y)._trace, y._val if y_is_here else y
    shape, dtype = ((), DOUBLE) if type(w) is float64 or type(w) is float else backend.shape_and_dtype_of(w)
    first, second = y.node if y_is_here else None, x.node if x_is_here else None
    ans = overwrite(old, index, w, alone)
    if x_is_here and y_is_here:
        return _record_both(trace, ans, first, second, index, shape, dtype)
    return (
        _record_array(trace, ans, second, index)
        if x_is_here
        else _record_written(trace, ans, first, index, shape, dtype)
    )


def _overwrite_forward(x: Any, index: Any, y: Any, x_is_here: bool, y_is_here: bool, alone: bool) -> Tracer:
    """Overwrite in forward mode; value and tangent in place if ``alone`` and only ``x`` refers to them."""
    if x_is_here:
        own_tangent, own_value = alone and has_unshared(x, "link"), alone and has_unshared(x, "_val")
        tangent = overwrite(x.link, index, y.link if y_is_here else 0.0, own_tangent)
        value = overwrite(x._val, index, y._val if y_is_here else y, own_value)
    else:
        zeros = np.zeros(*backend.shape_and_dtype_of(x))
        tangent, value = overwrite(zeros, index, y.link, True), overwrite(x, index, y._val, alone)
    return tracer_of(value, (x if x_is_here else y)._trace, tangent)


def _overwrite_batch(x: Any, index: Any, y: Any, x_is_here: bool, y_is_here: bool, old: Any, alone: bool) -> Tracer:
    """Overwrite in a batch, whose axis comes first."""
    trace = (x if x_is_here else y)._trace
    w = y._val if y_is_here else y
    if y_is_here:
        have = w.shape[1:] if type(w) is ndarray else backend.shape_of(w)[1:]
        rank = old.ndim - x_is_here if type(old) is ndarray else len(x.shape)
        missing = rank_of_item(index, rank) - len(have)
        w = reshape(w, to=(trace.size, *(1,) * missing, *have)) if missing > 0 else w
        w = reshape(w, to=(trace.size, *have[-missing:])) if missing < 0 else w
    if not x_is_here:
        old, alone = to_batch(old, trace.size), False
    whole = (slice(None), *index) if type(index) is tuple else (slice(None), index)
    return tracer_of(overwrite(old, whole, w, alone), trace)


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


def _overwrite_graph(x: Any, index: Any, y: Any, x_is_here: bool, y_is_here: bool, old: Any, alone: bool) -> Tracer:
    """Overwrite in a graph, recorded as the primitive ``write``."""
    trace = (x if x_is_here else y)._trace
    spec, arrays, _ = parse_index(index, backend.shape_of(x))
    operands = [x if x_is_here else _copy_for_graph(old), y if y_is_here else _copy_for_graph(y), *arrays]
    slots = tuple([trace.slot_of(a) for a in operands])
    ans = overwrite(old, index, y._val if y_is_here else y, alone)
    made: Tracer = trace.record_result(write.primitive, slots, {"spec": spec}, ans)
    return made


def _copy_for_graph(x: Any) -> Any:
    """Return a copy of ``x`` (shallow for a tracer) for a graph to keep, because the program may write to ``x``."""
    if isinstance(x, Tracer):
        return shallow_copy(x)
    return x.copy("K") if type(x) is ndarray else x


_OVERWRITERS: dict[type, Callable[..., Any]] = {
    ReverseTrace: _overwrite_reverse,
    ForwardTrace: _overwrite_forward,
    BatchTrace: _overwrite_batch,
    GraphTrace: _overwrite_graph,
}


def _written_cotangent(ct: Any, index: Any, shape: Shape, dtype: Any) -> Any:
    """Return the cotangent of the value that was written."""
    if type(ct) is ndarray and dtype is DOUBLE and type(one := ct[index]) is float64 and not shape:  # frequent case
        return one
    rest = len(backend.shape_of(ct)) - index.ndim if type(index) is ndarray and index.dtype.kind == "b" else -1
    if len(shape) <= rest:  # the same order of additions as for a traced mask
        part = where(index.reshape(*index.shape, *(1,) * rest), ct, 0.0)
    else:
        part = copy_with_own_memory(getitem(ct, index))
    extra = len(shape) - len(backend.shape_of(part))
    if extra > 0:  # leading axes of length 1, which NumPy drops
        return reshape(conform(part, shape[extra:], dtype), to=shape)
    return conform(part, shape, dtype)


def _array_cotangent(ct: Any, index: Any) -> Any:
    """Return the cotangent of the array that was written to; change it in place if only the backward pass holds it."""
    alone = is_unshared_argument(ct)  # before the next call adds a reference
    return _with_zeros_at(ct, index, alone)


def _with_zeros_at(ct: Any, index: Any, alone: bool) -> Any:
    """Return a cotangent with zeros at the elements that were overwritten."""
    if type(ct) is ndarray:
        if not alone:
            ct = ct.copy()
        ct[index] = 0
        return ct
    if can_overwrite(ct, index, 0.0):
        return overwrite(ct, index, 0.0, alone)
    spec, arrays, to = parse_index(index, backend.shape_of(ct))
    ans = write(ct if to is None else reshape(ct, to=to), 0.0, *arrays, spec=spec)
    return ans if to is None else reshape(ans, to=backend.shape_of(ct))


_SHARED = {"__name__": __name__, "cleared": _array_cotangent, "written": _written_cotangent}
_ARRAY_RULE, _WRITTEN_RULE = "cleared(ct, index)", "written(ct, index, shape, dtype)"


def _recorder(answers: list[str], saved: list[str]) -> Callable[..., Tracer]:
    """Return the function that records a write; the written value is the first parent, because its rule only reads."""
    return make_recorder(vjp_of_each("write", answers, saved, _SHARED), ["first", "second"][: len(answers)], saved)


_record_array = _recorder([_ARRAY_RULE], ["index"])
_record_written = _recorder([_WRITTEN_RULE], ["index", "shape", "dtype"])
_record_both = _recorder([_WRITTEN_RULE, _ARRAY_RULE], ["index", "shape", "dtype"])


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


def write_by_mask(x: Tracer, index: Any, y: Any) -> bool:
    """Call ``write_in_order`` for ``x[index] = y``; return False if ``index`` is not a boolean mask of all axes."""
    mask = index[0] if type(index) is tuple and len(index) == 1 else index
    if type(mask) is list:
        mask = ARRAY_MAKER[0](mask)
    elif is_buffer(mask):
        mask = mask._val
    if type(mask) is not ndarray or mask.dtype.kind != "b" or not mask.ndim == len(x.shape) > 0:
        return False

    def write(target: ndarray, source: ndarray) -> None:
        target[mask] = source

    return write_in_order(x, y, write)


def write_in_order(x: Tracer, y: Any, write: Callable[[ndarray, ndarray], None]) -> bool:
    """Write ``y`` to ``x`` as NumPy does if both are views of one traced array; the caller holds ``write_lock``.

    Args:
        x: the array to write to.
        y: the array to write.
        write: the function that does the write for arrays of NumPy, ``write(x, y)``.

    Returns:
        Whether the write was done; False if ``x`` and ``y`` are not views of one traced array or do not overlap.

    Raises:
        InputError: a view is a real or imaginary part, so that positions cannot tell what NumPy does.
    """
    root = root_of(x)
    if not isinstance(y, Tracer) or root_of(y) is not root or is_buffer(root) or prod(y.shape) < 2:
        return False
    mine, theirs = steps_of(x), steps_of(y)
    if any(step is real or step is imag for step, _ in (*mine, *theirs)):
        raise InputError(
            f"x[mask] = y: both are real or imaginary parts of one array, got {describe(x)}{user_line()}. Write a "
            "copy: x[mask] = y.copy()."
        )
    places = np.empty_like(array_with_layout_of(root), dtype=np.intp)
    places[...] = np.arange(places.size).reshape(places.shape)
    target, source = take_steps(places, mine), take_steps(places, theirs)
    if not np.may_share_memory(target, source):
        return False
    write(target, source)
    rebind(root, with_layout_of(root, getitem(reshape(shallow_copy(root), to=(places.size,)), places)))
    views_of(root).written = True
    refresh_views(root)
    return True
