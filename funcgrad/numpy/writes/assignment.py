"""Writes to an array that a program made: ``x[i] = y``, ``x += y``, and helpers for other functions that write.

After a write the object refers to a new value, see ``writable``. If nothing else refers to the memory, the write
happens in place, so filling an array of n elements one by one costs n writes, not n copies.

A write in place goes level by level, from the innermost trace down to the ndarray. The ndarray is written to in place
if nothing else refers to it or to the tracers around it. Each level adds what it adds for the primitive ``write``:
reverse mode a record, forward mode the same write to the tangent, a batch an axis. Backward passes write zeros to
cotangents in the same way.

If both sides of a write share memory, NumPy may write one element after the other. ``x[:] = x[::-1]`` reads all
elements before it writes. ``x[mask] = x[::-1]``, with a mask of all axes, and ``x.flat[...] = x[::-1]`` do not: late
reads see early writes. For traced arrays NumPy makes the same write to an array of element positions, which then
tells for each element where its value comes from.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import prod
from typing import Any, NoReturn, cast

import numpy as np

from funcgrad import backend, blocks
from funcgrad.batching import BatchTrace
from funcgrad.core import DOUBLE, READ_ONLY, Tracer, aval_of, describe, is_array, shallow_copy, tracer_of
from funcgrad.errors import InputError, ReadOnlyError
from funcgrad.forward import ForwardTrace
from funcgrad.graph import GraphTrace
from funcgrad.kinds.arguments import ARRAY_MAKER
from funcgrad.kinds.linear import astype, conform, imag, permute, real, reshape, to_batch
from funcgrad.numpy.creation import as_value, with_float_numbers
from funcgrad.numpy.layout import with_layout_of
from funcgrad.numpy.plain_values.concretization import check_text, note_constant, strip_constant_tracers, user_line
from funcgrad.numpy.writes.items import (
    as_where_mask,
    check_dtype,
    compose_indices,
    never_repeats,
    rank_of_item,
    with_items_set,
    without_excess_axes,
)
from funcgrad.numpy.writes.memory_views import has_repeated_places, viewed_as, written_in_pairs
from funcgrad.ownership import SMALL, has_unshared, is_unshared_argument
from funcgrad.primitives.accumulating import copy_with_own_memory
from funcgrad.primitives.arithmetic import complex_of
from funcgrad.primitives.comparison import where
from funcgrad.primitives.index_spec import copied_index, is_concrete, is_static, parse_index, unknown_mask
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.writing import write
from funcgrad.reverse import ReverseTrace, make_recorder, vjp_of_each
from funcgrad.shared_state import write_lock
from funcgrad.typing import Shape
from funcgrad.views import array_with_layout_of
from funcgrad.writable import (
    CONSTANTS,
    ONCE,
    Proxy,
    View,
    Views,
    ViewStep,
    is_buffer,
    is_number,
    is_selection,
    rebind,
    refresh_views,
    root_of,
    steps_of,
    take_steps,
    unshare,
    views_of,
)

ndarray = np.ndarray
float64 = np.float64
_NUMPY = frozenset((ndarray, int, float, complex, np.float64, np.float32, np.int64))
#: Types that are known not to be tables.
_NUMPY_OR_TRACER = _NUMPY | {Tracer}
_ARRAY = frozenset((ndarray,))
#: Most frequent types of entries of an index.
_INDICES = frozenset((int, slice, ndarray, type(None), type(...), np.int64, list, Tracer))


def set_item(x: Tracer, index: Any, y: Any) -> None:
    """Do ``x[index] = y`` by NumPy's rules; arrays that share memory with ``x`` see the write.

    Raises:
        ReadOnlyError: ``x`` is an argument of a transformed function, or read-only in NumPy too.
        InputError: traced numbers are written to integers, or complex numbers to real ones; or the write would
            exchange rows, see ``_watch_exchange``.
        IndexError, ValueError: as in NumPy, for an index or a shape that does not fit.
    """
    with write_lock:
        alias = x.alias
        views = alias.root.alias if type(alias) is View else alias
        if type(views) is Views and (views.half_exchange is not None or (type(y) is Tracer and type(y.alias) is View)):
            _watch_exchange(x, index, y, views)
        _set_item(x, index, y)


def _set_item(x: Tracer, index: Any, y: Any) -> None:
    alias = x.alias
    buffer = x._trace is CONSTANTS
    first = index[0] if type(index) is tuple and index else index
    mixed = type(first) is Tracer and first is not index
    if mixed or type(first) not in _INDICES or type(y) not in _NUMPY_OR_TRACER:
        if _write_selection(x, index, first, y):
            return
        index, y = _without_objects(x, index, first, y)
    if not (alias is None and buffer) and not _can_write(x, alias, index):
        raise_read_only(x)
    if type(y) is Tracer and y._trace is CONSTANTS:
        if buffer and type(y._val) is ndarray and _write_concretely(x, alias, index, y._val):
            return  # no shallow copy of ``y`` is needed: its elements have been copied
        y = shallow_copy(y)
    elif type(y) is ndarray and y.dtype.kind == "O":  # its elements may be traced
        y = _as_array(x, y.tolist())
    if buffer and type(y) in _NUMPY and _write_concretely(x, alias, index, y):
        return
    if blocks.last_entered() is not None and is_in_no_grad():
        _write_constant(x, index, y)
        return
    aval = aval_of(y)
    if aval is None or aval_of(x._val) is None:
        check_dtype(x, y)
    is_done = type(y) is Tracer and type(y.alias) is View and _is_item_of(x, index, y)
    if is_done or (type(index) is not int and write_by_mask(x, index, y)):
        return
    if type(alias) is View:
        _write_through(x, alias, index, y)
    else:
        _write_root(x, index, y, aval)


def _write_selection(x: Any, index: Any, first: Any, y: Any) -> bool:
    """Do ``x[mask, 1] = y`` as ``x[:, 1][mask] = y`` for a mask that is not known; return whether ``x`` is written."""
    if is_selection(y) and is_in_no_grad():
        _write_constant(x, index, y)
        return True
    index = first.as_index(index) if is_selection(first) else index
    if type(index) is not tuple or len(index) < 2 or not is_static(index[1:]):
        return False
    if (mask := unknown_mask(index[0])) is None:
        return False
    if is_in_no_grad():
        _write_constant(x, index, y)
    else:
        _set_item(x[(*[slice(None)] * len(mask.shape), *index[1:])], mask, y)
    return True


def _without_objects(x: Tracer, index: Any, first: Any, y: Any) -> tuple[Any, Any]:
    """Return the index, which begins with ``first``, and the value of a write without objects that represent arrays."""
    index = first.as_index(index) if issubclass(type(first), Proxy) else index
    if issubclass(type(y), Proxy):
        return cast("Proxy", y).as_written(x, index)
    return index, y if type(y) in _NUMPY_OR_TRACER else _as_array(x, y)


def _as_array(x: Tracer, y: Any) -> Any:
    """Convert ``y`` for a write to ``x``: lists, tables and objects that define ``__array__`` or a number to arrays.

    Dates and texts are converted if ``x`` has such a dtype. As in NumPy, None becomes NaN for an inexact ``x``, and a
    text the number that it shows.
    """
    if isinstance(y, (range, array, memoryview)):
        return np.asarray(y)
    if isinstance(y, (str, bytes)) and x.dtype.kind in "iufc":
        return _number_in(y, x.dtype)
    if x.dtype.kind in "fc":
        if y is None:
            return np.asarray(None, x.dtype)[()]
        y = with_float_numbers(y, x.dtype)
    if backend.is_sequence(y) or backend.is_table(y) or backend.defines_array(y):
        return as_value(y)
    is_one = isinstance(y, (str, bytes)) or backend.is_date_or_text(y)
    return np.asarray(y) if is_one and x.dtype.kind in "MmSUT" else y


def _number_in(text: Any, dtype: Any) -> Any:
    """Return the number that a text shows; a text that shows none unchanged."""
    check_text(text)
    try:
        return np.asarray(text).astype(dtype)[()]
    except ValueError:
        return text


def _write_concretely(x: Tracer, alias: Any, index: Any, y: Any) -> bool:
    """Write an array or a number to a buffer if the index is concrete; return whether it was written."""
    if type(x._val) is not ndarray or not is_concrete(index) or (type(alias) is View and not is_buffer(alias.root)):
        return False
    if type(y) is ndarray and y.dtype.kind in "SU" and x.dtype.kind in "fc":
        check_text(y.ravel().tolist())  # NumPy parses numbers from these texts
    unshare(root_of(x))
    x._val[index] = y  # views share the memory
    return True


def _write_root(x: Tracer, index: Any, y: Any, aval: Any) -> None:
    """Write to an array that is not a view; ``aval`` is the aval of ``y``."""
    if not _write_directly(x, index, y, aval):
        is_mask = type(index) is ndarray and index.dtype.kind == "b" and index.shape == x.shape[: index.ndim]
        whole = x._val if x._trace is CONSTANTS and isinstance(y, Tracer) else x
        if is_mask and can_overwrite(whole, index, y, ignore_observers=True):
            index = index.nonzero()  # then the record is a write, as on the fast path
        rebind(x, with_layout_of(x, with_items_set(shallow_copy(x), index, y)))
    views = x.alias
    if x._trace is not CONSTANTS:
        (views if type(views) is Views else views_of(x)).written = True
    if views:
        refresh_views(x)


def _write_directly(x: Any, index: Any, y: Any, aval: Any) -> bool:
    """Do the most common writes on a fast path, without a copy if nothing else refers to the memory.

    Returns:
        Whether the write was done; False for writes that need the general path.
    """
    buffer, one = x._trace is CONSTANTS, type(index) is int
    if not (one or is_concrete(index)) or not can_overwrite(x._val if buffer else x, index, y):
        return False
    if not (one or is_static(index)):
        if isinstance(y, Tracer) and not never_repeats(index, x.shape):
            return False
        index = copied_index(index)
    have = aval if type(aval) is tuple else () if aval is not None else backend.shape_of(y)
    if have and len(have) > rank_of_item(index, len(x.shape)):
        y = without_excess_axes(y, np.broadcast_to(np.False_, x.shape)[index].shape)
    if buffer:
        rebind(x, overwrite(x._val, index, y, x._val.size > SMALL and has_unshared(x, "_val")))
    else:
        rebind(x, overwrite(x, index, y, True))
    return True


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
        if type(trace) not in _OVERWRITERS or not (trace.fast or ignore_observers or trace.may_write_directly()):
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
        alone = alone and x._val.size > SMALL and has_unshared(x, "_val")
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
        value = overwrite(x._val, index, y._val if y_is_here else y, own_value)
        tangent = overwrite(x.link, index, y.link if y_is_here else 0.0, own_tangent)
    else:
        zeros = np.zeros(*backend.shape_and_dtype_of(x))
        value, tangent = overwrite(x, index, y._val, alone), overwrite(zeros, index, y.link, True)
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


def _write_constant(x: Tracer, index: Any, y: Any) -> None:
    """Do ``x[index] = y`` in a ``no_grad`` block: ``y`` is a constant; other elements keep their derivative."""
    y = constant_for_write(y)
    with with_derivatives():
        _set_item(x, index, y)


def is_in_no_grad() -> bool:
    """Whether a ``no_grad`` block makes values constants."""
    return blocks.last_entered() is not None and bool(blocks.current().min_level)


def with_derivatives() -> blocks.Block:
    """Context manager inside a ``no_grad`` block in which derivatives pass, as for elements that a write keeps."""
    return blocks.Block(lambda state: state._replace(min_level=0))


def constant_for_write(y: Any) -> Any:
    """Return ``y``, which a ``no_grad`` block writes, as a constant."""
    return y.stopped() if is_selection(y) else strip_constant_tracers(y)


def _can_write(x: Tracer, alias: Any, index: Any) -> bool:
    if type(alias) is View:
        if alias.locked is ONCE and has_repeated_places(alias.root.shape, alias.steps, index):
            raise InputError(
                f"x[i] = y: x shows an element of {describe(alias.root)} several times, so what NumPy writes depends "
                f"on its order, got {describe(x)}{user_line()}. Write to the array itself."
            )
        return alias.locked is not True
    if alias is READ_ONLY:
        return False
    return alias is not None or is_buffer(x) or bool(x.shape)


def set_all_items(x: Tracer, y: Any) -> None:
    """Do ``x[...] = y``; take over a tracer ``y`` that was made for this and fits, without a copy."""
    with write_lock:
        alias = x.alias
        own = alias is not READ_ONLY and type(alias) is not View
        if own and isinstance(y, Tracer) and not is_buffer(y) and y.shape == x.shape and y.dtype == x.dtype:
            rebind(x, with_layout_of(x, y))
            refresh_views(x)
        else:
            _set_item(x, ..., y)


def raise_read_only(x: Any, call: str = "x[i] = y") -> NoReturn:
    """Raise the ReadOnlyError for a write to ``x``, made by the statement or the function ``call``."""
    if not x.shape and x.alias is not READ_ONLY:
        raise ReadOnlyError(
            f"{call}: a number cannot be written to, got {describe(x)}{user_line()}. Give the name a new value "
            "instead: x = y."
        )
    error = ReadOnlyError(
        f"{call}: an argument of a transformed function, or a view that NumPy makes read-only, cannot be written to, "
        f"got {describe(x)}{user_line()}. A function that changes its arguments is not pure; write to a copy: "
        "x = x.copy()."
    )
    try:
        if is_buffer(x):
            note_constant(error)
        raise error
    finally:
        del error  # the error refers to this frame: a reference cycle


def _watch_exchange(x: Tracer, index: Any, y: Any, views: Views) -> None:
    """Refuse the second half of ``x[i], x[j] = x[j], x[i]``, which NumPy's ``shuffle`` does to non-ndarrays.

    Both sides are views. After ``x[i] = x[j]``, the view ``x[i]`` that was taken before shows the new contents, those
    of ``x[j]``. The second write changes nothing: one row is lost and another row is there twice. NumPy does this to
    an ndarray too when a program exchanges rows in this way, but no program intends it.

    Args:
        x: the array to write to.
        index: the index of the write.
        y: the value to write.
        views: the views of the root of ``x``; they record whether the last write was a first half.
    """
    half_exchange, views.half_exchange = views.half_exchange, None
    mine = y.alias if isinstance(y, Tracer) else None
    if type(mine) is not View or mine.root is not root_of(x) or not mine.steps or not y.shape:
        return
    if (
        half_exchange is not None
        and any(r() is y for r in half_exchange[0])
        and _steps_lead_to(x, index, half_exchange[1])
    ):
        raise InputError(
            "shuffle(x), or x[i], x[j] = x[j], x[i]: rows are views, so that one would be lost and the other be there "
            f"twice, got {describe(x)}{user_line()}. Index with an order instead: x = x[rng.permutation(len(x))], or "
            "x[[i, j]] = x[[j, i]]."
        )
    there = [r for r in views if (v := r()) is not None and v is not y and _steps_lead_to(x, index, steps_of(v))]
    views.half_exchange = (there, mine.steps) if there else None


def _is_item_of(x: Tracer, index: Any, y: Any) -> bool:
    """Whether the view ``y`` is ``x[index]``, as at the end of ``x[index] += ...``: the write is already done."""
    mine: View = y.alias
    return mine.root is root_of(x) and _steps_lead_to(x, index, mine.steps)


def _steps_lead_to(x: Tracer, index: Any, steps: tuple[ViewStep, ...]) -> bool:
    """Whether ``steps`` lead from the root of ``x`` to ``x[index]``."""
    before = steps_of(x)
    if len(steps) != len(before) + 1 or not is_static(index):
        return False
    step, params = steps[-1]
    same_way = all(a is b for a, b in zip(before, steps, strict=False))
    return same_way and step is getitem and is_static(params["index"]) and bool(params["index"] == index)


def _write_through(x: Tracer, alias: View, index: Any, y: Any) -> None:
    """Write to a view, by writing to the elements of its root that the view shows."""
    root = alias.root
    if all(step is getitem or step is permute for step, _ in alias.steps) and is_static(index):
        steps = [params["index"] if step is getitem else list(params["axes"]) for step, params in alias.steps]
        if (whole := compose_indices(root.shape, [*steps, index])) is not None:
            _write_root(root, whole, y, aval_of(y))
            return
    if as_where_mask(index, x.shape, backend.shape_of(y)) is not None:
        index, y = ..., with_items_set(shallow_copy(x), index, y)
    if any(step is viewed_as for step, _ in alias.steps):
        rebind(root, with_layout_of(root, written_in_pairs(shallow_copy(root), alias.steps, index, y)))
        refresh_views(root)
        return
    shape: Shape = root.shape
    places: Any = np.arange(prod(shape)).reshape(shape)
    part: Any = None
    for step, params in alias.steps:
        if step is real or step is imag:  # at most one such step, because its result is real
            part = step
        else:
            places = step(places, **params)
    source = shallow_copy(root)
    half = source if part is None or backend.dtype_of(source).kind != "c" else part(source)
    new = reshape(with_items_set(reshape(half, to=(prod(shape),)), getitem(places, index), y), to=shape)
    if half is not source:
        new = complex_of(new, imag(source)) if part is real else complex_of(real(source), new)
        new = astype(new, to=root.dtype) if backend.dtype_of(new) != root.dtype else new
    rebind(root, with_layout_of(root, new))
    refresh_views(root)


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
    if not isinstance(y, Tracer) or root_of(y) is not root or prod(y.shape) < 2:
        return False
    mine, theirs = steps_of(x), steps_of(y)
    if any(step is real or step is imag or step is viewed_as for step, _ in (*mine, *theirs)):
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


def in_place_operator(operation: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    """Return the operator ``x += y`` for the operation ``x + y``: ``x`` and its views get a new value.

    A number has no memory: the operator returns a new value, to which Python binds the name. An argument that is an
    immutable array of JAX is treated in the same way, unless the function takes it for an ndarray, as under ``jit``:
    there another name of the array, or a view of it, would have to change too.
    """

    def method(x: Any, y: Any) -> Any:
        alias = x.alias
        if is_number(x):
            return operation(x, y)
        if type(y) not in _NUMPY_OR_TRACER and backend.is_table(y):
            y = backend.values_of(y)
        if alias is READ_ONLY:
            if not isinstance(x, ndarray):
                return operation(x, y)
            raise_read_only(x, f"x {symbol} y")
        result = operation(x, y)
        if not is_array(result):
            return result  # an object of the library of ``y``, whose operator took the array
        shape, dtype = backend.shape_and_dtype_of(result)
        if shape != x.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast shape {shape}"
            )
        if dtype != x.dtype:
            _check_cast(x, symbol, result)
            result = astype(result, to=x.dtype)
        set_all_items(x, result)
        return x

    return method


def _check_cast(x: Tracer, symbol: str, result: Any) -> None:
    if not np.can_cast(backend.dtype_of(result), x.dtype, "same_kind"):
        raise InputError(
            f"x {symbol} y: the result does not fit the dtype {x.dtype} of x, got {describe(result)}{user_line()}. "
            "Write x = x + y and the like, or make x with the dtype of the result."
        )
