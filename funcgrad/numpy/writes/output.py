"""Writing results into existing arrays (``out=``), and calls on constant arrays.

A tracer that is passed as ``out`` represents the result afterwards and is returned, as NumPy returns the array that
it has written to. An ndarray cannot hold a traced value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Tracer, describe
from funcgrad.errors import ConversionError, InputError
from funcgrad.numpy.creation import astype
from funcgrad.numpy.plain_values.concretization import other_thread_remark, user_line
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.writes.assignment import raise_read_only, set_all_items
from funcgrad.shared_state import write_lock
from funcgrad.typing import Array, Shape
from funcgrad.writable import Proxy, Views, is_buffer, make_buffer, root_of, unshare


def compute_into(operation: Callable[..., Any], out: Any, *args: Any, **kwargs: Any) -> Any:
    """Write ``operation(*args, **kwargs)`` into ``out`` and return ``out``.

    If nothing is traced, NumPy's function of the same name is called, without keywords that are None. As with NumPy,
    sums for an ``out`` of higher precision are computed in its dtype, unless a ``dtype`` is given.

    Raises:
        ReadOnlyError: ``out`` is an argument of a transformed function.
        InputError: ``out`` cannot hold a traced value, or the dtype of the result.
        ValueError: ``out`` has another shape than the result.

    Example:
        >>> from funcgrad.numpy.reductions import sum
        >>> total = np.zeros(2)
        >>> compute_into(sum, total, [[1.0, 2.0], [3.0, 4.0]], 0) is total, total
        (True, array([4., 6.]))
    """
    if type(out) is tuple and len(out) == 1:  # NumPy accepts an array or a tuple of one array
        (out,) = out
    home = operation.__module__.removeprefix("funcgrad.numpy.").partition(".")[0]
    theirs = getattr(getattr(np, home) if home in ("linalg", "fft") else np, operation.__name__, None)
    if theirs is not None and is_plain(out, *args, *kwargs.values()):
        check_arrays(operation.__name__, [a for a in args if backend.is_masked(type(a))])
        ans = theirs(*args, out=out, **{name: value for name, value in kwargs.items() if value is not None})
        if issubclass(type(ans), np.generic):
            return ans  # dot returns the number that it has written to an array without axes
        # some functions of numpy.fft do not write to it
        return out if ans is out else write_out(operation.__name__, out, ans)
    if "dtype" in kwargs and kwargs["dtype"] is None:
        kwargs["dtype"] = accumulation_dtype(args[0], out)
    return write_out(operation.__name__, out, operation(*args, **kwargs), kwargs.get("casting", "same_kind"))


def check_arrays(name: str, values: Iterable[Any]) -> None:
    """Check that no array among ``values`` is of a subclass with its own arithmetic or holds anything but numbers.

    Raises:
        InputError: masked arrays, matrices, strings, objects, records.
    """
    for value in values:
        if issubclass(type(value), (np.ndarray, np.generic)) and not backend.is_value(value):
            problem, remedy = backend.problem_and_remedy(value)
            raise InputError(f"{name}: an argument {problem}. {remedy}")


def accumulation_dtype(a: Any, out: Any) -> Any:
    """Return the dtype to add the elements of ``a`` in if the result goes to ``out``; None for their own dtype."""
    if not hasattr(out, "dtype") or not hasattr(a, "dtype") or "V" in (a.dtype.kind, out.dtype.kind):
        return None
    to = np.result_type(a.dtype, out.dtype)
    return to if to != a.dtype and to.kind in "fc" else None


def write_out(name: str, out: Any, result: Array, casting: Any = "same_kind", *, stretch: bool = False) -> Any:
    """Write ``result`` into ``out`` and return ``out``.

    Args:
        name: the name of the called function, for messages.
        out: an array that the program made.
        result: the array to write.
        casting: the allowed conversions to the dtype of ``out``.
        stretch: whether the result may broadcast to the shape of ``out``.
    """
    if isinstance(out, Proxy) and (target := out.as_target()) is not out:
        write_out(name, target, result, casting, stretch=stretch)
        return out
    if backend.is_table_class(type(result)):
        result = backend.values_of(result)
    shape, have, new = _written_shape(name, out), backend.shape_of(result), backend.dtype_of(result)
    if shape != have and not (stretch and _fits(have, shape)):
        raise ValueError(
            f"{name}: the result does not fit the shape of out, got {describe(result)} for {describe(out)}. Make out "
            f"with shape {have}."
        )
    if new != out.dtype and not np.can_cast(new, out.dtype, casting):
        raise InputError(
            f"{name}: the result does not fit the dtype of out by casting={casting!r}, got {describe(result)} for "
            f"{describe(out)}{user_line()}. Make out with dtype={str(new)!r}."
        )
    if not isinstance(out, Tracer):
        if is_buffer(result):
            result = result._val
        if isinstance(result, Tracer) or backend.namespace_of(result) is not np:
            refuse_array(name, out)
        np.copyto(out, result, casting)
        return out
    if new != out.dtype:
        result = astype(result, out.dtype)
    set_all_items(out, result)
    return out


def _written_shape(name: str, out: Any) -> Shape:
    """Return the shape of ``out`` after checking that ``out`` is an array that can be written to."""
    if isinstance(out, Tracer):
        alias = out.alias
        if alias is READ_ONLY or (alias is None and not is_buffer(out) and not out.shape):
            raise_read_only(out, f"{name}(out=x)")
        if alias is None and not out.shape:
            out.alias = Views()  # keeps an array without axes an array, not a number
    elif not isinstance(out, np.ndarray):
        raise InputError(
            f"{name}: out must be an array that can be written to, got {describe(out)}. Make it with "
            "funcgrad.numpy.zeros or empty, or leave out=None and use what is returned."
        )
    shape: Shape = out.shape
    return shape


def _fits(have: Shape, shape: Shape) -> bool:
    return len(have) <= len(shape) and all(m in (1, n) for m, n in zip(have[::-1], shape[::-1], strict=False))


def refuse_array(name: str, out: Any) -> NoReturn:
    """Raise a ``ConversionError``: a traced value cannot be written into an ndarray."""
    remedy = (
        "Make the array with funcgrad.numpy.zeros, empty or copy (not numpy's), inside the transformed function; or"
    )
    elsewhere = other_thread_remark()
    if elsewhere:
        remedy = "Or"
    if not out.shape:
        remedy = "An array without axes is no more than a number:"
    raise ConversionError(
        f"{name}: a traced value cannot be written into an array of NumPy, got out={describe(out)} or an in-place "
        f"operator{user_line()}.{elsewhere} {remedy} use the result: write a = a + x for a += x."
    )


def are_constant(*values: Any) -> bool:
    """Whether all arrays in ``values``, nested or not, are NumPy's or buffers of NumPy arrays."""
    for value in values:
        if isinstance(value, Tracer):
            if not is_buffer(value) or type(value._val) is not np.ndarray:
                return False
        elif type(value) is dict:
            if not are_constant(*value.values()):
                return False
        elif isinstance(value, (list, tuple)):
            if not are_constant(*value):
                return False
        elif isinstance(value, Proxy) or backend.is_of_other_library(value):
            return False
    return True


def call_on_buffers(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``function`` on the arrays of buffers; arrays that ``function`` makes are returned as buffers."""
    held: dict[int, tuple[Tracer, np.ndarray]] = {}
    copies: dict[int, tuple[Any, np.ndarray]] = {}
    with write_lock:  # the function may write; meanwhile no other thread may replace the memory of a buffer
        ans = _wrap_buffers(
            function(*_unwrap_buffers(args, held, copies), **_unwrap_buffers(kwargs, held, copies)), held
        )
        for values, array in copies.values():
            if array.tobytes() != values._val.tobytes():  # comparing bytes tells NaN and -0 apart
                values[...] = array
    return ans


def _unwrap_buffers(values: Any, held: dict[int, Any], copies: dict[int, Any]) -> Any:
    """Replace buffers in ``values`` by their arrays and note each pair in ``held``.

    Views of tracers that are not buffers are copied, because a tape may hold the memory; ``copies`` keeps these copies.
    """
    if is_buffer(values):
        array = values._val
        if type(array) is np.ndarray:
            root = root_of(values)
            if root.alias is READ_ONLY:
                array = array.view()
                array.flags.writeable = False
            else:
                unshare(root)  # the function may write to the array while a tape holds it
                array = values._val
            if not is_buffer(root):
                _, array = copies.setdefault(id(values), (values, array.copy("K")))
        held[id(array)] = values, array
        return array
    if type(values) is dict:
        return {name: _unwrap_buffers(value, held, copies) for name, value in values.items()}
    return type(values)([_unwrap_buffers(v, held, copies) for v in values]) if type(values) in (tuple, list) else values


def _wrap_buffers(values: Any, held: dict[int, tuple[Tracer, np.ndarray]]) -> Any:
    """Replace arrays in ``values`` by buffers; an array that came from a buffer becomes that buffer again."""
    if type(values) is np.ndarray:
        if id(values) in held:
            return held[id(values)][0]
        made = make_buffer(values)
        if any(np.may_share_memory(values, array) for _, array in held.values()):
            made.alias = READ_ONLY  # no tracer knows how to rebuild this view
        return made
    if not isinstance(values, (tuple, list)):
        return values
    parts = [_wrap_buffers(v, held) for v in values]
    return type(values)(*parts) if hasattr(values, "_fields") else type(values)(parts)
