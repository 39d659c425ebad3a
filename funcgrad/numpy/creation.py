"""Creation of arrays: from values, filled, and with the shape and dtype of other arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import is_of_other_library, is_sequence, library_of, namespace_of
from funcgrad.core import Tracer, aval_of, describe, is_in_transform, shallow_copy
from funcgrad.errors import InputError
from funcgrad.kinds.linear import astype as convert
from funcgrad.kinds.linear import broadcast_to, real, reshape
from funcgrad.numpy.axes import as_shape
from funcgrad.numpy.layout import in_c_order, in_memory_order, with_layout_of
from funcgrad.numpy.plain_values.concretization import check_text, elements_of, user_line
from funcgrad.primitives import shaping as prim
from funcgrad.primitives.arithmetic import as_numpy_number
from funcgrad.shared_state import write_lock
from funcgrad.typing import Array, ArrayLike, Scalar, Shape
from funcgrad.views import array_with_layout_of
from funcgrad.writable import Proxy, as_array, is_buffer, is_number, is_selection, make_buffer

__all__ = [
    "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "astype", "copy", "empty", "empty_like",
    "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip

_NUMBERS = frozenset((bool, int, float, complex))
#: Most common types of arguments. NumPy converts them correctly, so no further check is needed.
_COMMON_TYPES = _NUMBERS | {np.ndarray, np.float64}


def as_buffer(made: Array) -> Array:
    """Wrap a new array in a buffer inside a transformed function, so that traced values can be written to it."""
    if type(made) is np.ndarray and made.dtype.kind in "OV":
        if made.dtype.names and is_in_transform():
            return import_module("funcgrad.numpy.writes.records").records_of(made)
        return made  # an object array can hold tracers already
    writable = type(made) is np.ndarray or (not isinstance(made, Tracer) and namespace_of(made) is not np)
    return make_buffer(made) if writable and is_in_transform() else made


def _as_buffer_if_new(made: np.ndarray, given: Any) -> Array:
    """Return ``as_buffer(made)``, but ``made`` itself if it is ``given`` or a view of it, as if the dtypes are equal.

    A buffer has no base: code that looks whether an array is a copy would overwrite the array of its caller.
    """
    is_view = made.base is not None and isinstance(given, np.ndarray) and np.may_share_memory(made, given)
    return made if made is given or is_view else as_buffer(made)


def as_value(a: ArrayLike) -> Array:
    """Convert ``a`` to a value that a primitive takes: lists and tables become arrays, values pass unchanged."""
    if type(a) is np.ndarray or isinstance(a, (Tracer, np.ndarray)) or namespace_of(a) is not None:
        return a
    if isinstance(a, Proxy):
        return a.as_operand()
    if _needs_conversion_here(a):
        return _stack_nested(a)
    if hasattr(a, "tocoo"):  # NumPy would wrap a sparse matrix of SciPy in an array as one Python object
        what, remedy = backend.problem_and_remedy(a)
        raise InputError(f"asarray: the argument {what}. {remedy}")
    if backend.is_table(a):
        return backend.values_of(a)
    try:
        return np.asarray(a)
    except ValueError as error:
        return asarray(_retry_through_array_method(error, a))


def _retry_through_array_method(error: ValueError, x: Any) -> Any:
    """Replace each object in ``x`` whose ``__array__`` returns a traced value, which NumPy refuses, by that value."""
    if backend.NO_ARRAY not in str(error):
        raise error
    return _through_array_method(x)


def _through_array_method(x: Any) -> Any:
    """Return ``x.__array__()`` if ``x`` has that method, else ``x``; do this for the items of nested lists."""
    if is_sequence(x):
        return [_through_array_method(item) for item in x]
    return x.__array__() if hasattr(type(x), "__array__") and not isinstance(x, (np.ndarray, Tracer)) else x


def with_float_numbers(x: Any, dtype: Any = float) -> Any:
    """Replace objects in ``x`` that define ``__float__``, such as fractions, by the numbers that they return.

    NumPy takes such numbers as elements of an array of floating-point numbers, also if they are traced; None is NaN.

    Example:
        >>> from fractions import Fraction
        >>> with_float_numbers([Fraction(1, 4), 2, "text", None])
        [0.25, 2, 'text', np.float64(nan)]
    """
    kind = type(x)
    if is_sequence(x):
        known = set(map(type, x)) <= _NUMBERS
        missing = np.asarray(None, np.result_type(dtype, float))[()]
        return x if known else [missing if item is None else with_float_numbers(item, dtype) for item in x]
    if kind is np.ndarray and x.dtype == object:
        return with_float_numbers(x.tolist(), dtype)
    method: Any = getattr(kind, "__float__", None) or getattr(kind, "__index__", None)
    is_known = method is None or kind is Tracer or hasattr(kind, "__array__") or namespace_of(x) is not None
    return x if is_known else method(x)


def _without_objects(x: Any, dtype: Any) -> Any:
    """Return the nested list in an object array that holds tracers, if numbers are wanted; else ``x``."""
    if type(x) is not np.ndarray or x.dtype != object or np.dtype(dtype).kind not in "fc":
        return x
    return x.tolist() if any(isinstance(item, Tracer) for item in x.flat) else x


def _without_labels(x: Any) -> Any:
    """Return the values of a table; return anything else unchanged."""
    if type(x) in _COMMON_TYPES or type(x) in (list, Tracer):
        return x
    is_known = is_sequence(x) or namespace_of(x) is not None
    return x if is_known or not backend.is_table(x) else backend.values_of(x)


def _needs_conversion_here(x: Any) -> bool:
    """Whether NumPy would lose what ``x`` is: a tracer, an array of another library, or a list with one."""
    kind = type(x)
    if kind in _COMMON_TYPES:
        return False
    if kind is Tracer:
        return True
    if kind is list or is_sequence(x):
        # most lists are long and hold only numbers: the first test decides fast
        return not set(map(type, x)) <= _NUMBERS and any(_needs_conversion_here(item) for item in x)
    return isinstance(x, (Tracer, Proxy)) or is_of_other_library(x)


def _stack_nested(items: Any) -> Array:
    """Convert a nested list that holds tracers to one array."""
    parts = [
        item if not is_sequence(item) else _stack_nested(item) if _needs_conversion_here(item) else np.asarray(item)
        for item in items
    ]
    return in_c_order(prim.stack(*parts, axis=0))


def _as_object_array(items: Any) -> np.ndarray | None:
    """Convert a nested list of tracers and other objects to an object array; None if it is one array of numbers."""
    marks: dict[int, tuple[Any, Any]] = {}  # what stands for a tracer, or for an element of one, in NumPy's hands

    def mark(x: Any) -> Any:
        made: Any = object()
        if x.shape:
            made = np.empty(x.shape, object)
            for place in np.ndindex(x.shape):
                made[place] = mark(x[place])
        marks[id(made)] = made, x
        return made

    def marked(x: Any) -> Any:
        return [marked(item) for item in x] if is_sequence(x) else mark(x) if isinstance(x, Tracer) else x

    made = np.asarray(marked(items), object)
    numbers = (int, float, complex, np.number)
    if all(isinstance(x, numbers) or (id(x) in marks and type(x) is object) for x in made.flat):
        return None
    for place in np.ndindex(made.shape):
        if (known := marks.get(id(made[place]))) is not None:
            made[place] = known[1]
    return made


def _converted(a: Array, dtype: Any, copy: bool | None) -> Array:
    """Convert a tracer or an array of another library to ``dtype``; the latter is immutable and never copied.

    Numbers stay numbers where objects are asked for: programs take any dtype so, to look at the elements.
    """
    if dtype is None or np.dtype(dtype) in (a.dtype, np.dtype(object)):
        return _copy_in_order(a, "K") if copy else a
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return astype(a, dtype)


def _is_traced_array(a: Any) -> bool:
    """Whether ``a`` is a traced array with axes in double precision, as most are: there is nothing to convert."""
    shape = aval_of(a) if type(a) is Tracer else None
    return type(shape) is tuple and bool(shape)


def asarray(
    a: ArrayLike, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None
) -> Array:
    """Convert ``a`` to an array; lists and tuples of numbers, arrays and traced values are stacked.

    The derivative flows to every entry. A traced value or a JAX array is returned as it is, unless ``dtype``,
    ``order`` or ``copy`` require another array.

    Raises:
        ValueError: the entries have different shapes; or a copy is needed and ``copy=False``.

    Example:
        >>> fnp.asarray([[1, 2], [3, 4]], dtype=float)
        array([[1., 2.],
               [3., 4.]])
    """
    if dtype is order is copy is None and _is_traced_array(a):
        return a
    a = _without_labels(a)
    if dtype is not None:
        a = _without_objects(a, dtype)
        a = with_float_numbers(a, dtype) if is_sequence(a) and np.dtype(dtype).kind in "fc" else a
    if _needs_conversion_here(a):
        if type(a) is Tracer:
            a = as_numpy_number(a)
        elif is_sequence(a):
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            objects = _as_object_array(a) if dtype is not None and np.dtype(dtype) == object else None
            if objects is not None:
                return objects
            a, copy = _stack_nested(a), None
        elif isinstance(a, Proxy):
            if a.has_fields or a.is_selection:
                return asanyarray(a, dtype, copy=copy)
            a = a.as_array()
        made = _converted(a, dtype, copy)
        return _as_ordered_array(made, order) if isinstance(made, Tracer) else made
    try:
        made = np.asarray(a, dtype, order, device=device and on_host(device), copy=copy)
    except ValueError as error:
        return asarray(_retry_through_array_method(error, a), dtype, order, device=device, copy=copy)
    if dtype is not None and made.dtype.kind in "fc":
        check_text(a)
    return _as_buffer_if_new(made, a)


def array(
    object: ArrayLike,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
) -> Array:
    """Make a new array from a number, an array, or nested lists of both; traced entries are stacked.

    Args:
        object: the number, array or nested lists.
        dtype: the dtype; by default the dtype to which NumPy promotes all entries.
        copy: whether an array is copied, so that a write to the array or its copy does not show in the other.
        order: the order of the axes in memory, which decides what can be a view of the array.
        subok: as in NumPy; subclasses are not supported in derivatives.
        ndmin: the smallest number of axes; leading axes of length 1 are added.
        ndmax: the largest number of axes, since NumPy 2.4; sequences below become elements of ``dtype=object``.

    Raises:
        ValueError: the entries have different shapes, or more axes than ``ndmax`` allows; or a copy is needed and
            ``copy=False``.

    Example:
        >>> grad(lambda x: fnp.sum(fnp.array([[x, 1.0], [2.0, x * x]])))(3.0)
        np.float64(7.0)
    """
    if isinstance(object, Proxy) and (object.has_fields or (subok and issubclass(object.array_class(), np.ndarray))):
        kept: Any = asanyarray(object, dtype, copy=bool(copy))
        return kept if kept.ndim >= ndmin else kept.reshape((1,) * (ndmin - kept.ndim) + kept.shape)
    object = _without_labels(object)
    if dtype is not None:
        if is_sequence(object) and (type(dtype) is list or getattr(dtype, "names", None)) and is_in_transform():
            return import_module("funcgrad.numpy.writes.records").records_from_rows(object, dtype)
        object = _without_objects(object, dtype)
    limit: dict[str, Any] = {"ndmax": ndmax} if ndmax else {}
    if ndmax and dtype is not None and np.dtype(dtype) == np.object_:  # sequences, which may hold traced values
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **limit)
    if not _needs_conversion_here(object):
        try:
            made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **limit)
        except ValueError as error:
            told = _retry_through_array_method(error, object)
            return array(told, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, ndmax=ndmax)
        if dtype is not None and made.dtype.kind in "fc":
            check_text(object)
        return _as_buffer_if_new(made, object)
    copy = {"IF_NEEDED": None, "NEVER": False}.get(getattr(copy, "name", ""), copy)  # NumPy's _CopyMode too
    if is_selection(object):
        return asanyarray(object, dtype, copy=copy) if ndmin < 2 else object.refuse()
    is_new = is_sequence(object) and copy is not False
    made = _stack_nested(object) if is_new and dtype is None else asarray(object, dtype, copy=None if copy else copy)
    if 0 < ndmax < len(made.shape):
        raise ValueError(f"array: more axes than ndmax={ndmax} allows, got {describe(made)}. Pass dtype=object.")
    missing = ndmin - len(made.shape)
    made = reshape(made, to=(*(1,) * missing, *made.shape)) if missing > 0 else made
    if not isinstance(made, Tracer):
        return made
    if copy and not is_new:
        return _copy_in_order(made, order)
    return in_memory_order(made, order) if order in ("C", "F", "c", "f") else made


def asanyarray(
    a: ArrayLike, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None
) -> Array:
    """Convert ``a`` to an array, as ``asarray`` does, but pass subclasses of ndarray through.

    Example:
        >>> fnp.asanyarray((1, 2))
        array([1, 2])
    """
    if isinstance(a, Proxy) and issubclass(a.array_class(), np.ndarray):
        same = (a.has_fields or a.is_selection) and np.dtype(dtype) == a.dtype  # type: ignore[attr-defined]
        kept = dtype is None or same
        made: Any = a if kept else a.astype(dtype)  # type: ignore[attr-defined]
        return made.copy() if copy else made
    a = _without_labels(a)
    if _needs_conversion_here(a):
        return asarray(a, dtype, order, device=device, copy=copy)
    try:
        return np.asanyarray(a, dtype, order, device=device and on_host(device), copy=copy)
    except ValueError as error:
        return asarray(_retry_through_array_method(error, a), dtype, order, device=device, copy=copy)


def ascontiguousarray(a: ArrayLike, dtype: Any = None) -> Array:
    """Return ``a`` as an array of at least one axis; a NumPy array or traced value is in C order in memory.

    Example:
        >>> fnp.ascontiguousarray(2.0)
        array([2.])
    """
    a = _without_labels(a)
    return (
        array(a, dtype, copy=None, order="C", ndmin=1) if _needs_conversion_here(a) else np.ascontiguousarray(a, dtype)
    )


def asfortranarray(a: ArrayLike, dtype: Any = None) -> Array:
    """Return ``a`` as an array of at least one axis; a NumPy array or traced value is in Fortran order in memory.

    Example:
        >>> fnp.asfortranarray([[1, 2]]).flags.f_contiguous
        True
    """
    a = _without_labels(a)
    return array(a, dtype, copy=None, order="F", ndmin=1) if _needs_conversion_here(a) else np.asfortranarray(a, dtype)


def copy(a: ArrayLike, order: Any = "K", subok: Any = False) -> Array:
    """Copy ``a``; a write to the copy does not show in ``a``, nor a write to ``a`` in the copy.

    Example:
        >>> fnp.copy([1.0, 2.0])
        array([1., 2.])
    """
    if _is_traced_array(a):  # most frequent
        return _arranged_copy(a, order)
    made = array(a, order=order, subok=subok)
    return as_buffer(made) if is_of_other_library(made) else made


def _writable_copy(x: Tracer) -> Array:
    """Return a copy of a tracer that can be written to."""
    with write_lock:  # so that no other thread makes ``x`` traced at the same time
        if not is_buffer(x):
            return shallow_copy(x)
        return make_buffer(x._val.copy("K") if type(x._val) is np.ndarray else x._val)


def _copy_in_order(a: Array, order: str) -> Array:
    """Copy a tracer, with its axes in memory in ``order``; arrays of other libraries are not copied."""
    if not isinstance(a, Tracer):
        return as_buffer(a)
    return as_array(_arranged_copy(a, order))


def _arranged_copy(a: Tracer, order: str) -> Array:
    made = in_memory_order(a, order)
    return _writable_copy(a) if made is a else made


def requested_dtype(dtype: Any) -> Any:
    """Return ``np.dtype(dtype)``; for a class of dtypes, which conversions and ufuncs of NumPy take, its dtype.

    Example:
        >>> requested_dtype(np.dtypes.Float64DType), requested_dtype("f4")
        (dtype('float64'), dtype('float32'))
    """
    made: Any = dtype
    return made() if isinstance(dtype, type) and issubclass(dtype, np.dtype) else np.dtype(made)


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Convert ``x`` to another dtype.

    The cotangent is converted back to the dtype of ``x``. A conversion to integers or booleans is a step function:
    its derivative is zero. A conversion from complex to real takes the real part. ``object`` gives a NumPy array of
    the elements, each traced.

    Raises:
        TypeError: ``dtype`` is neither a dtype of numbers nor ``object``.

    Example:
        >>> fnp.astype(np.array([1.5, -2.5]), int)
        array([ 1, -2])
    """
    if issubclass(type(x), np.ndarray):
        return x.astype(dtype, copy=copy)
    if issubclass(type(x), np.generic):
        return x.astype(dtype)
    if isinstance(x, Proxy) and issubclass(x.array_class(), np.ndarray):
        return x.astype(dtype)  # type: ignore[attr-defined]
    x, to = as_value(x), requested_dtype(dtype)
    if is_buffer(x) and x.dtype.kind in "SU":  # such texts may show traced numbers
        texts = np.char.decode(x._val) if x.dtype.kind == "S" else x._val
        check_text(texts.ravel().tolist())
        return as_buffer(x._val.astype(to))
    if is_buffer(x) and (x.dtype.kind in "Mm" or to.kind in "Mm"):
        return as_buffer(x._val.astype(to))
    if to.kind == "O" and isinstance(x, Tracer):
        return elements_of(x) if x.shape or is_buffer(x) else x
    if backend.dtype_of(x) == to:
        made = _arranged_copy(x, "K") if copy and isinstance(x, Tracer) else x
    else:
        made = _cast(x, to)
    return as_array(made) if isinstance(x, Tracer) and not is_number(x) else made


def _cast(x: Any, to: Any) -> Array:
    """Convert ``x`` to a dtype that differs from its own."""
    if to.kind in "biu":
        return prim.cast(x, to=to)
    if to.kind not in "fcV" or to.fields:
        raise InputError(
            f"astype: {to} is no dtype of numbers, got {describe(x)}{user_line()}. Convert to a dtype of numbers; keep "
            "other objects in a list, and arrays by name in a dictionary."
        )
    if backend.dtype_of(x).kind == "c" and to.kind != "c":
        x = real(x)
    return convert(x, to=to)


def _plain_shape(shape: Any) -> Any:
    """Return a traced shape as integers; NumPy would hide the error about a length that is not known."""
    return as_shape(shape) if type(shape) is Tracer else shape


def on_host(device: Any) -> Any:
    """Return a device as NumPy takes it. For the device of a JAX array this is the CPU: JAX moves the array later."""
    return "cpu" if type(device).__module__.startswith("jax") else device


def zeros(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """Make an array of zeros of ``shape``, float64 by default.

    Example:
        >>> fnp.zeros((1, 2))
        array([[0., 0.]])
    """
    return as_buffer(np.zeros(_plain_shape(shape), dtype, order, device=device and on_host(device)))


def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """Make an array of ones of ``shape``, float64 by default.

    Example:
        >>> fnp.ones(2)
        array([1., 1.])
    """
    return as_buffer(np.ones(_plain_shape(shape), dtype, order, device=device and on_host(device)))


def empty(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """Make an array of ``shape`` with arbitrary contents, float64 by default.

    Example:
        >>> fnp.empty((2, 3)).shape
        (2, 3)
    """
    return as_buffer(np.empty(_plain_shape(shape), dtype, order, device=device and on_host(device)))


def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """Make an array of ``shape`` filled with ``fill_value``, a number or an array that broadcasts to ``shape``.

    The derivative flows to a traced ``fill_value``.

    Raises:
        ValueError: ``fill_value`` does not broadcast to ``shape``.

    Example:
        >>> grad(lambda c: fnp.sum(fnp.full((2, 3), c)))(1.5)
        np.float64(6.0)
    """
    if backend.defines_array(fill_value):
        fill_value = as_value(fill_value)
    floating = dtype is not None and np.dtype(dtype).kind in "fc"
    if floating:
        fill_value = with_float_numbers(fill_value)
    fill_value = _without_labels(fill_value)
    if not _needs_conversion_here(fill_value):
        if floating:
            check_text(fill_value)
        return as_buffer(np.full(_plain_shape(shape), fill_value, dtype, order, device=device and on_host(device)))
    made = broadcast_to(asarray(fill_value, dtype), to=as_shape(shape))
    return _as_ordered_array(made, order) if isinstance(made, Tracer) else made


def _as_ordered_array(made: Tracer, order: Any) -> Any:
    """Return ``made`` with its axes in memory in ``order``; a number becomes an array."""
    if is_number(made):
        return as_array(shallow_copy(made))
    return in_memory_order(made, order) if order in ("C", "F", "c", "f") else made


def _like(a: Array, dtype: Any, shape: Any) -> tuple[Shape, Any]:
    to = backend.shape_of(a) if shape is None else as_shape(shape)
    return to, backend.dtype_of(a) if dtype is None else dtype


def _full_like(a: ArrayLike, value: Any, dtype: Any, order: Any, shape: Any) -> Array:
    """Fill an array of the shape of ``a`` with ``value``, with the axes in memory as in ``a``."""
    a = asarray(a)
    to, dtype = _like(a, dtype, shape)
    if library_of(a) is np and len(to) > 1 and isinstance(a, Tracer):
        return np.full_like(array_with_layout_of(a), value, dtype, order, shape=shape)
    return library_of(a).full(to, value, dtype)


def zeros_like(
    a: ArrayLike, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Make zeros of the shape, dtype and library of ``a``; they are constants even if ``a`` is traced.

    Example:
        >>> fnp.zeros_like(np.ones(2, np.float32))
        array([0., 0.], dtype=float32)
    """
    a = _without_labels(a)
    if _needs_conversion_here(a):
        return as_buffer(_full_like(a, 0, dtype, order, shape))
    return as_buffer(np.zeros_like(a, dtype, order, subok, shape, device=device and on_host(device)))


def ones_like(
    a: ArrayLike, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Make ones of the shape, dtype and library of ``a``; they are constants even if ``a`` is traced.

    Example:
        >>> fnp.ones_like([[1, 2]])
        array([[1, 1]])
    """
    a = _without_labels(a)
    if _needs_conversion_here(a):
        return as_buffer(_full_like(a, 1, dtype, order, shape))
    return as_buffer(np.ones_like(a, dtype, order, subok, shape, device=device and on_host(device)))


def empty_like(
    prototype: ArrayLike,
    /,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Make an array of the shape, dtype and library of ``prototype`` with arbitrary contents.

    Example:
        >>> fnp.empty_like(np.ones((2, 3)), shape=4).shape
        (4,)
    """
    prototype = _without_labels(prototype)
    if _needs_conversion_here(prototype):
        return as_buffer(_full_like(prototype, 0, dtype, order, shape))
    return as_buffer(np.empty_like(prototype, dtype, order, subok, shape, device=device and on_host(device)))


def full_like(
    a: ArrayLike,
    fill_value: Scalar,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Make an array of the shape and dtype of ``a`` filled with ``fill_value``.

    The derivative flows to a traced ``fill_value`` but not to ``a``. If the dtype is an integer dtype, the
    value is truncated and its derivative is zero.

    Raises:
        ValueError: ``fill_value`` does not broadcast to the shape.

    Example:
        >>> grad(lambda c: fnp.sum(fnp.full_like(np.zeros(4), c)))(2.0)
        np.float64(4.0)
    """
    a, fill_value = _without_labels(a), _without_labels(fill_value)
    if not _needs_conversion_here(a) and not _needs_conversion_here(fill_value):
        return as_buffer(np.full_like(a, fill_value, dtype, order, subok, shape, device=device and on_host(device)))
    if not _needs_conversion_here(fill_value):
        return as_buffer(_full_like(a, fill_value, dtype, order, shape))
    a = asarray(a)
    to, dtype = _like(a, dtype, shape)
    made = full(to, fill_value, dtype)
    return with_layout_of(a, made) if shape is None and order in "KAka" and isinstance(a, Tracer) else made
