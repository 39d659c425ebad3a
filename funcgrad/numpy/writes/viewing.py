"""Memory of traced values: views under another dtype, new shapes in place, and attributes that are refused."""

from __future__ import annotations

import builtins
from math import prod
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Tracer, describe, shallow_copy
from funcgrad.errors import InputError, ReadOnlyError
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.axes import as_shape
from funcgrad.numpy.creation import copy
from funcgrad.numpy.plain_values.concretization import open_rebuilt_run
from funcgrad.numpy.plain_values.hints import counterpart_hint, user_line
from funcgrad.numpy.writes.memory_views import refuse_bits, viewable_dtypes, viewed_as
from funcgrad.primitives.shaping import concatenate
from funcgrad.shared_state import note_refusal, write_lock
from funcgrad.typing import Array
from funcgrad.views import array_with_layout_of, note_view
from funcgrad.writable import View, Views, is_buffer, rebind, root_of


def _refuse_class(x: Tracer, cls: builtins.type) -> NoReturn:
    """Raise an ``InputError``: a traced value cannot be an instance of an array class with its own arithmetic."""
    remedies: tuple[tuple[builtins.type, str], ...] = (  # by NumPy's class that ``cls`` is or derives from
        (np.matrix, "Use arrays of two axes: A @ B for A * B, numpy.linalg.matrix_power(A, n) for A**n"),
        (
            np.ma.MaskedArray,
            "Use an array and a separate mask: where(mask, fill, x), and sum(x, where=~mask) for reductions",
        ),
        (np.recarray, "Use a dictionary of arrays, one for each field; transforms take it as it is"),
        (np.memmap, "Compute with the array itself, and write the result of the transformed function to the file"),
        (np.ndarray, "Write the class as a container instead: register_pytree_node(cls, ...)"),
    )
    instead = next(text for base, text in remedies if issubclass(cls, base))
    error = InputError(
        f"{cls.__name__}(x): a traced value cannot be an instance of an ndarray subclass, got {describe(x)}"
        f"{user_line()}. {instead}."
    )
    raise note_refusal(error, f"{error} It is derived from ndarray.") if backend.is_array_class(cls) else error


def view(x: Tracer, dtype: Any = None, type: Any = None) -> Array:
    """Return ``x.view()``, possibly with complex numbers viewed as pairs of real numbers (last axis) or vice versa.

    Args:
        x: a traced value.
        dtype: the dtype of ``x``, the dtype of its real parts, or the complex dtype with such parts; for constants any.
        type: ``numpy.ndarray``, or None.

    Raises:
        InputError: another dtype or class, which would show bits; bits have no derivative.
        ValueError: the last axis is not contiguous as NumPy requires, or its length is odd.
    """
    if type is None and isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray):
        type, dtype = dtype, None
    if hasattr(of := type or dtype, "of_array"):  # what rebuilt code has for a class derived from ndarray
        return of.of_array(view(x), x)
    type = np.ndarray if type in backend.ARRAY_CLASSES else type
    if hasattr(dtype, "numpy_class"):  # what rebuilt code has for ``numpy.matrix``
        return dtype(x)
    if isinstance(type, builtins.type) and issubclass(type, np.ndarray) and type is not np.ndarray:
        _refuse_class(x, type)
    to = x.dtype if dtype is None else np.dtype(dtype)
    if is_buffer(x) and builtins.type(x._val) is np.ndarray and to.kind in "mM" and type is None:
        return x._val.view(to)  # times take no traced values
    # a constant needs no derivative, so its bits may be shown
    is_plain = is_buffer(x) and builtins.type(x._val) is np.ndarray and to.kind in "biufcSU"
    if type not in (None, np.ndarray) or (to not in viewable_dtypes(x.dtype) and not is_plain):
        refuse_bits(x, getattr(type, "__name__", to))
    array_with_layout_of(x).view(to)  # NumPy raises an error if the memory layout does not allow the view
    step = reshape if to == x.dtype else viewed_as
    params: dict[str, Any] = {"to": x.shape if to == x.dtype else to}
    made = step(x, **params)
    if to != x.dtype:
        note_view(x, made, step, params)
        if not is_buffer(made) and isinstance(made.alias, View):
            made.alias.has_own_memory = True
    return made


def set_shape(x: Tracer, shape: Any) -> None:
    """Set ``x.shape = shape``: the object shows the same memory in another shape.

    Raises:
        AttributeError: the memory layout of ``x`` does not allow the shape.
        ReadOnlyError: ``x`` is an argument of a transformed function.
    """
    _check_writable(x, "x.shape = ...", "x = x.reshape(shape)")
    step, params = reshape, {"to": _shape_in_place(array_with_layout_of(x), shape)}
    with write_lock:
        made, link, alias = step(_present_value(x), **params), x.link, x.alias
        if type(alias) is Views:  # views show the memory in its old shape: a new root tracer represents it from now on
            root = Tracer()
            root._val, root._trace, root.link, root.aval, root.alias = x._val, x._trace, x.link, x.aval, alias
            for view in [view for known in alias if (view := known()) is not None]:
                view.alias.root = root
            x.alias = None
            note_view(root, x, step, params)
        elif type(alias) is View:
            x.alias = View()
            x.alias.root, x.alias.steps = alias.root, (*alias.steps, (step, params))
            x.alias.locked, x.alias.has_own_memory = alias.locked, alias.has_own_memory
        rebind(x, made)
        if is_buffer(x):
            x.link = link  # the owner of the memory of a constant stays the same


def _shape_in_place(like: Any, shape: Any) -> tuple[int, ...]:
    """Return the shape after ``like.shape = shape``; NumPy checks it without the deprecated assignment."""
    whole: np.ndarray = np.reshape(like, shape)
    try:
        found: np.ndarray = np.reshape(like, shape, copy=False)
    except ValueError:
        raise AttributeError(
            f"x.shape = {shape}: incompatible shape for in-place modification, as x of shape {like.shape} does not lie "
            f"in memory as {whole.shape} needs it{user_line()}. Write x = x.reshape(shape), which makes a copy."
        ) from None
    return found.shape


def _present_value(x: Tracer) -> Any:
    """Return the present value of ``x``, which later changes of ``x`` leave alone."""
    return x._val if is_buffer(x) else shallow_copy(x)


def resize(x: Tracer, *shape: Any, refcheck: bool = True) -> None:
    """Resize ``x`` in place as ``x.resize(shape)``; new elements after the old ones are zeros.

    Raises:
        ValueError: ``x`` is a view, is not contiguous, or has views.
        ReadOnlyError: ``x`` is an argument of a transformed function.
    """
    _check_writable(x, "x.resize()", "x = numpy.pad(x, ...) or x = x[:n]")
    alias, to = x.alias, as_shape(shape[0] if len(shape) == 1 else shape)
    is_in_order = array_with_layout_of(x).flags.c_contiguous
    if is_in_order and prod(to) == prod(x.shape):  # the memory stays as it is, so that of a view can be resized too
        set_shape(x, to)
        return
    if type(alias) is View or not is_in_order:
        raise ValueError("cannot resize this array: it does not own its data")
    if alias and any(known() is not None for known in alias):
        raise ValueError("cannot resize an array that references or is referenced by another array in this way.")
    with write_lock:
        size = prod(x.shape)
        flat, missing = reshape(_present_value(x), to=(size,)), prod(to) - size
        flat = flat[: prod(to)] if missing < 0 else concatenate(flat, np.zeros(missing, x.dtype), axis=0)
        rebind(x, copy(reshape(flat, to=to)))


def _check_writable(x: Tracer, call: str, remedy: str) -> None:
    """Check that ``x`` is not an argument of a transformed function, which cannot be changed in place."""
    if x.alias is READ_ONLY:
        raise ReadOnlyError(
            f"{call}: an argument of a transformed function cannot be changed in place, got {describe(x)}{user_line()}."
            f" Write {remedy}."
        )


def refuse_dtype(x: Tracer, dtype: Any) -> NoReturn:
    """Raise an ``InputError`` for ``x.dtype = dtype``."""
    raise InputError(
        f"x.dtype = ...: a traced array keeps its dtype, got {dtype} and {describe(x)}{user_line()}. Write "
        "x = x.view(dtype) for the same bits, x = x.astype(dtype) for the same numbers."
    )


def _memory_attribute(name: str, what: str) -> property:
    def get(x: Tracer) -> Any:
        if open_rebuilt_run() is not None and name in ("flags", "strides"):  # rebuilt code may use them
            return getattr(array_with_layout_of(x), name)
        if open_rebuilt_run() is not None and name == "base":
            return root_of(x) if type(x.alias) is View else None
        raise AttributeError(
            f"x.{name}: a traced value has no memory of its own, got {describe(x)}{user_line()}.{counterpart_hint()} "
            "Use its shape, dtype, size, itemsize and nbytes, and funcgrad.numpy.lib.stride_tricks for "
            "windows that slide.",
            name=name,
            obj=x,
        )

    return property(get, doc=f"Not available: {what} of an ndarray.")


#: Attributes of memory; each access raises ``AttributeError``, so that ``hasattr`` is False.
ATTRIBUTES = {
    "base": _memory_attribute("base", "the owner of the memory"),
    "ctypes": _memory_attribute("ctypes", "the address"),
    "data": _memory_attribute("data", "the memory"),
    "flags": _memory_attribute("flags", "the layout"),
    "strides": _memory_attribute("strides", "the strides in memory"),
}
