"""Writes to an array that a program made: ``x[i] = y``, ``x += y``, and helpers for other functions that write.

After a write the object refers to a new value, see ``writable``. If nothing else refers to the memory, the write
happens in place, so filling an array of n elements one by one costs n writes, not n copies.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend, blocks
from funcgrad.core import READ_ONLY, Tracer, aval_of, describe, is_array, shallow_copy
from funcgrad.errors import InputError, ReadOnlyError
from funcgrad.kinds.linear import astype, broadcast_to, imag, permute, real, reshape
from funcgrad.numpy.concretization import check_text, note_constant, strip_constant_tracers, user_line
from funcgrad.numpy.creation import as_value, with_float_numbers
from funcgrad.numpy.layout import with_layout_of
from funcgrad.numpy.overwriting import can_overwrite, compose_indices, overwrite, rank_of_item, write_by_mask
from funcgrad.primitives.comparison import where
from funcgrad.primitives.index_spec import Spec, copied_index, is_concrete, is_static, parse_index
from funcgrad.primitives.indexing import getitem, scatter_sum
from funcgrad.primitives.reductions import reduce_all
from funcgrad.primitives.writing import shape_of_region, winners, write
from funcgrad.shared_state import write_lock
from funcgrad.typing import Array, Shape
from funcgrad.writable import (
    CONSTANTS,
    Proxy,
    View,
    Views,
    ViewStep,
    has_unshared,
    is_buffer,
    is_number,
    rebind,
    refresh_views,
    root_of,
    steps_of,
    unshare,
    views_of,
)

ndarray = np.ndarray
_NUMPY = frozenset((ndarray, int, float, complex, np.float64, np.float32, np.int64))
#: Types that are known not to be tables.
_NUMPY_OR_TRACER = _NUMPY | {Tracer}


def set_item(x: Tracer, index: Any, y: Any) -> None:
    """Do ``x[index] = y`` by NumPy's rules; arrays that share memory with ``x`` see the write.

    Raises:
        ReadOnlyError: ``x`` is an argument of a transformed function, or read-only in NumPy too.
        InputError: traced numbers are written to integers, or complex numbers to real ones; or the write would
            exchange rows, see ``_watch_exchange``.
        IndexError, ValueError: as in NumPy, for an index or a shape that does not fit.
    """
    with write_lock:
        alias = getattr(x, "alias", None)
        views = getattr(alias.root, "alias", None) if type(alias) is View else alias
        if type(views) is Views and (views.half_exchange is not None or type(getattr(y, "alias", None)) is View):
            _watch_exchange(x, index, y, views)
        _set_item(x, index, y)


def _set_item(x: Tracer, index: Any, y: Any) -> None:
    alias = getattr(x, "alias", None)
    buffer = x._trace is CONSTANTS
    if not (alias is None and buffer) and not _can_write(x, alias):
        raise_read_only(x)
    if type(y) is Tracer and y._trace is CONSTANTS:
        if buffer and type(y._val) is ndarray and _write_concretely(x, alias, index, y._val):
            return  # no shallow copy of ``y`` is needed: its elements have been copied
        y = shallow_copy(y)
    elif type(y) not in _NUMPY_OR_TRACER:
        y = _as_array(x, y)
    if buffer and type(y) in _NUMPY and _write_concretely(x, alias, index, y):
        return
    if blocks.last_entered() is not None and blocks.current().min_level:
        _write_constant(x, index, y)
        return
    aval = aval_of(y)
    if aval is None or aval_of(x._val) is None:
        _check_dtype(x, y)
    if type(getattr(y, "alias", None)) is View and _is_item_of(x, index, y):
        return
    if type(index) is not int and write_by_mask(x, index, y):
        return
    if type(alias) is View:
        _write_through(x, alias, index, y)
    else:
        _write_root(x, index, y, aval)


def _as_array(x: Tracer, y: Any) -> Any:
    """Convert ``y`` for a write to ``x``: lists, tables and objects that define ``__array__`` or a number to arrays.

    Dates and texts are converted if ``x`` has such a dtype. As in NumPy, None becomes NaN for an inexact ``x``, and a
    text the number that it shows.
    """
    if isinstance(y, (str, bytes)) and x.dtype.kind in "iufc":
        return _number_in(y, x.dtype)
    if x.dtype.kind in "fc":
        if y is None:
            return np.asarray(None, x.dtype)[()]
        y = with_float_numbers(y)
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
        if type(index) is ndarray and index.dtype.kind == "b" and can_overwrite(x, index, y, ignore_observers=True):
            index = index.nonzero()  # then the record is a write, as on the fast path
        rebind(x, with_layout_of(x, with_items_set(shallow_copy(x), index, y)))
    views = getattr(x, "alias", None)
    if x._trace is not CONSTANTS:
        (views if type(views) is Views else views_of(x)).written = True
    if views:
        refresh_views(x)


def _write_constant(x: Tracer, index: Any, y: Any) -> None:
    """Do ``x[index] = y`` in a ``no_grad`` block: ``y`` is a constant; other elements keep their derivative."""
    y = strip_constant_tracers(y)
    with blocks.Block(lambda state: state._replace(min_level=0)):
        _set_item(x, index, y)


def _can_write(x: Tracer, alias: Any) -> bool:
    if type(alias) is View:
        return not alias.locked
    if alias is READ_ONLY:
        return False
    return alias is not None or is_buffer(x) or bool(x.shape)


def set_all_items(x: Tracer, y: Any) -> None:
    """Do ``x[...] = y``; take over a tracer ``y`` that was made for this and fits, without a copy."""
    with write_lock:
        alias = getattr(x, "alias", None)
        own = alias is not READ_ONLY and type(alias) is not View
        if own and isinstance(y, Tracer) and not is_buffer(y) and y.shape == x.shape and y.dtype == x.dtype:
            rebind(x, with_layout_of(x, y))
            refresh_views(x)
        else:
            _set_item(x, ..., y)


def raise_read_only(x: Any, call: str = "x[i] = y") -> NoReturn:
    """Raise the ReadOnlyError for a write to ``x``, made by the statement or the function ``call``."""
    if not x.shape and getattr(x, "alias", None) is not READ_ONLY:
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
    mine = getattr(y, "alias", None) if isinstance(y, Tracer) else None
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


def _check_dtype(x: Tracer, y: Any) -> None:
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
        new = new + 1j * imag(source) if part is real else real(source) + 1j * new
        new = astype(new, to=root.dtype) if backend.dtype_of(new) != root.dtype else new
    rebind(root, with_layout_of(root, new))
    refresh_views(root)


def cast_for_write(y: Any, x: Array) -> Any:
    """Convert ``y`` to the dtype of ``x``, for a write to ``x``.

    Raises:
        InputError: a derivative or an imaginary part would be lost.
    """
    _check_dtype(x, y)
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


_NUMBERS = frozenset((bool, int, float, complex))


def _is_traced(y: Any) -> bool:
    return backend.namespace_of(y) is not np


def as_where_mask(index: Any, shape: Shape, new: Shape) -> Any:
    """Return a mask in a shape for ``where``, else None; the True entries of a traced mask cannot always be counted."""
    index = index.as_array() if isinstance(index, Proxy) else index
    if type(index) is tuple or not hasattr(index, "dtype") or index.dtype.kind != "b":
        return None
    rank = len(index.shape)
    if not rank or index.shape != shape[:rank] or len(new) > len(shape) - rank:
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


def _never_repeats(index: Any, shape: Shape) -> bool:
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


def _write_directly(x: Any, index: Any, y: Any, aval: Any) -> bool:
    """Do the most common writes on a fast path, without a copy if nothing else refers to the memory.

    Returns:
        Whether the write was done; False for writes that need the general path.
    """
    buffer, one = x._trace is CONSTANTS, type(index) is int
    if not (one or is_concrete(index)) or not can_overwrite(x._val if buffer else x, index, y):
        return False
    if not (one or is_static(index)):
        if isinstance(y, Tracer) and not _never_repeats(index, x.shape):
            return False
        index = copied_index(index)
    have = aval if type(aval) is tuple else () if aval is not None else backend.shape_of(y)
    if have and len(have) > rank_of_item(index, len(x.shape)):
        y = without_excess_axes(y, np.broadcast_to(np.False_, x.shape)[index].shape)
    if not buffer:
        new = overwrite(x, index, y, True)
    elif isinstance(y, Tracer):
        new = overwrite(x._val, index, y, has_unshared(x, "_val"))
    else:
        return False
    rebind(x, new)
    return True


def in_place_operator(operation: Callable[[Any, Any], Any], symbol: str) -> Callable[[Any, Any], Any]:
    """Return the operator ``x += y`` for the operation ``x + y``: ``x`` and its views get a new value.

    A number has no memory: the operator returns a new value, to which Python binds the name. An argument that is an
    immutable array of JAX is treated in the same way.
    """

    def method(x: Any, y: Any) -> Any:
        alias = getattr(x, "alias", None)
        if is_number(x):
            return operation(x, y)
        if type(y) not in _NUMPY_OR_TRACER and backend.is_table(y):
            y = backend.values_of(y)
        if alias is READ_ONLY:
            if backend.library_of(x) is not np:
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
