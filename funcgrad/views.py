"""Views: results that share memory with the array from which they were made, see ``writable``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Tracer, plain_value
from funcgrad.shared_state import write_lock
from funcgrad.writable import CONSTANTS, View, Views, copy_small, is_buffer, make_buffer, rebind, views_of

ndarray = np.ndarray


def shares_memory(value: ndarray, part: Any) -> bool:
    """Whether ``part``, made from ``value``, is a view of the same memory.

    Example:
        >>> x = np.ones((2, 3))
        >>> shares_memory(x, x[1:]), shares_memory(x, x[[1]]), shares_memory(x.T, x.T.reshape(6))
        (True, False, False)
    """
    if type(part) is not ndarray:
        return False
    base = part.base
    return base is not None and (base is value or base is value.base)


def axes_in_memory(x: ndarray) -> tuple[int, ...]:
    """Return the axes of ``x`` by decreasing stride, as they lie in memory.

    Example:
        >>> axes_in_memory(np.ones((2, 3)).T)
        (1, 0)
    """
    return tuple(sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis])))


def inverse_permutation(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes a transpose by ``axes``.

    Example:
        >>> inverse_permutation((2, 0, 1))
        (1, 2, 0)
    """
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def array_with_layout_of(x: Any) -> ndarray:
    """Return an array with the shape and memory layout that ``x`` has without transforms; its values are arbitrary."""
    if type(x) is ndarray:
        return x
    if not isinstance(x, Tracer):
        return np.empty(*backend.shape_and_dtype_of(x))
    alias = x.alias
    value, hidden = x._val, x._trace.hidden_axes
    if type(value) is ndarray and not hidden and not _has_own_memory(x):
        return value
    if type(alias) is View:
        found: ndarray = alias.take(array_with_layout_of(alias.root))
        return found
    if not hidden:
        return array_with_layout_of(value)
    whole = array_with_layout_of(value)
    one = whole[0, ...] if len(whole) else np.empty(whole.shape[1:], whole.dtype)
    if alias is READ_ONLY or one.flags.c_contiguous or one.flags.f_contiguous:
        return one
    axes = axes_in_memory(one)  # examples of a batch may be interleaved in memory; one example alone has no gaps
    packed = np.empty([one.shape[axis] for axis in axes], one.dtype)
    return packed.transpose(inverse_permutation(axes))


def _has_own_memory(x: Tracer) -> bool:
    alias = x.alias
    return type(alias) is View and alias.has_own_memory


def is_view(x: Tracer, made: Any, step: Callable[..., Any], params: dict[str, Any]) -> bool:
    """Whether ``made``, which is ``step(x, **params)``, would be a view of ``x`` in NumPy."""
    if not isinstance(made, Tracer) or made is x:
        return False
    if is_buffer(x) and type(x._val) is ndarray:
        return shares_memory(x._val, made._val)
    like = array_with_layout_of(x)
    return shares_memory(like, step(like, **params))


def note_if_view(x: Any, made: Any, step: Callable[..., Any], params: dict[str, Any], value: Any = None) -> Any:
    """Note ``made``, which is ``step(x, **params)``, as a view of ``x`` if NumPy makes a view; return ``made``.

    ``value`` is the value of ``x`` from which ``made`` was computed; None if the caller holds the lock ``write_lock``.
    """
    known = type(x) is type(made) is Tracer and made is not x and not x._trace.hidden_axes
    known = known and not _has_own_memory(x)
    if value is None and known:
        value = x._val
    if known and type(value) is type(made._val) is ndarray:  # the most frequent case, cheap to decide
        if shares_memory(value, made._val):
            note_view(x, made, step, params)
        return made
    if is_buffer(x) and type(x._val) is not ndarray and not isinstance(made, Tracer):
        like = array_with_layout_of(x)  # in another library, a view without axes looks like a number
        if shares_memory(like, step(like, **params)):
            made = make_buffer(made)
    if isinstance(x, Tracer) and is_view(x, made, step, params):
        note_view(x, made, step, params)
    return made


def note_view(x: Tracer, view: Any, step: Callable[..., Any], params: dict[str, Any]) -> None:
    """Note that ``view``, which is ``step(x, **params)``, shares the memory of ``x``; a number has no memory."""
    alias, aval = x.alias, x.aval
    if alias is READ_ONLY:
        # NumPy makes new arrays of numbers
        if (aval if type(aval) is tuple else x.shape) or type(plain_value(x)) is ndarray:
            view.alias = READ_ONLY
        return
    made = View()
    if type(alias) is View:
        made.root, made.steps = alias.root, (*alias.steps, (step, params))
        made.locked, made.has_own_memory = alias.locked, alias.has_own_memory
        known = alias.root.alias
    else:
        if alias is None:
            if not (aval if type(aval) is tuple else x.shape) and not is_buffer(x):
                return
            alias = views_of(x)
        made.root, made.steps = x, ((step, params),)
        made.locked = made.has_own_memory = False
        known = alias
    view.alias = made
    known.append(ref(view))
    if len(known) >= 16 and not len(known) & (len(known) - 1):  # at powers of two, so that it costs little
        with write_lock:
            n = len(known)
            known[:n] = [r for r in known[:n] if r() is not None]  # other threads append to it
    if view._trace is CONSTANTS:
        _retake_if_moved(view, made)
    elif known.written and known is alias:
        made.has_own_memory = True
        with write_lock:
            copy_small(view)


def _retake_if_moved(view: Tracer, alias: View) -> None:
    """Take ``view`` again if another thread moved its root to other memory before the view was noted."""
    with write_lock:
        root = alias.root
        old = is_buffer(root) and type(root._val) is type(view._val) is ndarray and view._val.size > 0
        if old and not shares_memory(root._val, view._val) and not np.may_share_memory(root._val, view._val):
            rebind(view, alias.take(make_buffer(root._val)))


def make_read_only(made: Any) -> Any:
    """Make ``made``, a view or a result with its own memory, read-only; return it."""
    if isinstance(made, Tracer):
        alias = made.alias
        if type(alias) is View:
            alias.locked = alias.has_own_memory = True  # the value may have memory of its own, unlike NumPy's view
        else:
            made.alias = READ_ONLY
    return made


def copy_small_part(x: Tracer, part: Tracer) -> None:
    """Copy a small ``part`` of ``x``, which is not noted as a view, if the program writes to ``x``.

    A tape may keep the part. The next write would then find that the memory of ``x`` is shared, and copy all of it.
    ``note_view`` does the same for views.
    """
    alias = x.alias
    if type(alias) is Views and alias.written:
        with write_lock:
            copy_small(part)
