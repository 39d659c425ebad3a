"""Making arrays: from values, filled, and like others."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import is_listed, library_of, namespace_of
from funcgrad.core import Tracer, describe, twin
from funcgrad.errors import InputError
from funcgrad.kinds.linear import astype as convert
from funcgrad.kinds.linear import broadcast_to, real, reshape
from funcgrad.numpy.axes import as_shape
from funcgrad.numpy.concretization import check_text, user_line
from funcgrad.numpy.layout import as_before, in_order
from funcgrad.primitives import shaping as prim
from funcgrad.primitives.arithmetic import as_numpy
from funcgrad.running import changing
from funcgrad.typing import Array, ArrayLike, Scalar, Shape
from funcgrad.views import layout
from funcgrad.writable import Proxy, as_array, buffer, inside, is_buffer, is_number

__all__ = [
    "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "astype", "copy", "empty", "empty_like",
    "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip

_NUMBERS = frozenset((bool, int, float, complex))
#: What is made an array of most often. What NumPy makes of it is right, and need not be asked for.
_COMMON = _NUMBERS | {np.ndarray, np.float64}


def new(made: Array) -> Array:
    """An array that was made just now: inside a transformed function it must take traced values when written to."""
    if type(made) is np.ndarray and made.dtype.kind in "OV":
        return made  # objects can be traced values, which are no numbers to an array; records have fields
    writable = type(made) is np.ndarray or (not isinstance(made, Tracer) and namespace_of(made) is not np)
    return buffer(made) if writable and inside() else made


def as_value(a: ArrayLike) -> Array:
    """``a`` as something a primitive takes: lists become arrays, everything else passes.

    Example:
        >>> as_value([1, 2])
        array([1, 2])
    """
    if type(a) is np.ndarray or isinstance(a, (Tracer, np.ndarray)) or namespace_of(a) is not None:
        return a
    if isinstance(a, Proxy):
        return a.taken()
    if _is_foreign(a):
        return _stacked(a)
    if hasattr(a, "tocsr"):  # SciPy's: NumPy would make an array of it that holds the matrix as a Python object
        what, remedy = backend.refusal(a)
        raise InputError(f"asarray: the argument {what}. {remedy}")
    if backend.is_table(a):
        return backend.values_of(a)
    try:
        return np.asarray(a)
    except ValueError as error:
        return asarray(_retold(error, a))


def _retold(error: ValueError, x: Any) -> Any:
    """``x``, of which NumPy made no array, with the arrays that its objects say by ``__array__`` they are: traced ones.

    Raises:
        ValueError: the ``error``, where it was another.
    """
    if backend.NO_ARRAY not in str(error):
        raise error
    return _told(x)


def _told(x: Any) -> Any:
    """The arrays that objects say they are, in nested lists too."""
    if is_listed(x):
        return [_told(item) for item in x]
    return x.__array__() if hasattr(type(x), "__array__") and not isinstance(x, (np.ndarray, Tracer)) else x


def _without_labels(x: Any) -> Any:
    """The values of a table; anything else as it is."""
    if type(x) in _COMMON or type(x) is list:
        return x
    is_known = is_listed(x) or namespace_of(x) is not None or isinstance(x, Tracer)
    return x if is_known or not backend.is_table(x) else backend.values_of(x)


def _is_foreign(x: Any) -> bool:
    """Whether NumPy would lose what ``x`` is: a tracer, an array of another library, or a list with one."""
    kind = type(x)
    if kind in _COMMON:
        return False
    if kind is Tracer:
        return True
    if kind is list or is_listed(x):
        # most lists are long and of numbers only: that is seen fast
        return not set(map(type, x)) <= _NUMBERS and any(_is_foreign(item) for item in x)
    return isinstance(x, (Tracer, Proxy)) or namespace_of(x) not in (None, np)


def _stacked(items: Any) -> Array:
    """A nested list that holds tracers, as one array."""
    parts = [
        item if not is_listed(item) else _stacked(item) if _is_foreign(item) else np.asarray(item) for item in items
    ]
    return prim.stack(*parts, axis=0)


def _of_objects(items: Any) -> np.ndarray | None:
    """A nested list of tracers and of what is no number, as an array of objects; None where all are arrays."""
    marks: dict[int, tuple[Any, Any]] = {}

    def marked(x: Any) -> Any:
        if is_listed(x):
            return [marked(item) for item in x]
        if not isinstance(x, Tracer):
            return x
        mark: Any = np.empty(x.shape, object) if x.shape else object()
        marks[id(mark)] = mark, x
        return mark

    made = np.asarray(marked(items), object)
    if all(id(x) in marks or x is None or isinstance(x, (int, float, complex, np.number)) for x in made.flat):
        return None
    for place, x in enumerate(made.flat):
        if id(x) in marks:
            made.flat[place] = marks[id(x)][1]
    return made


def _converted(a: Array, dtype: Any, copy: bool | None) -> Array:
    """A tracer or an array of another library in ``dtype``; the latter cannot be written to, and is not copied."""
    if dtype is None or np.dtype(dtype) == a.dtype:
        return _duplicate(a, "K") if copy else a
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return astype(a, dtype)


def asarray(
    a: ArrayLike, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None
) -> Array:
    """``a`` as an array: lists and tuples of numbers, arrays and traced values are stacked.

    The derivative flows to every entry. A traced value and a JAX array stay what they are, unless ``dtype``,
    ``order`` or ``copy`` ask for something else.

    Raises:
        ValueError: entries of different shapes; a copy is needed and ``copy=False``.

    Example:
        >>> fnp.asarray([[1, 2], [3, 4]], dtype=float)
        array([[1., 2.],
               [3., 4.]])
    """
    a = _without_labels(a)
    if _is_foreign(a):
        if type(a) is Tracer:
            a = as_numpy(a)
        elif is_listed(a):
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            objects = _of_objects(a) if dtype is not None and np.dtype(dtype) == object else None
            if objects is not None:
                return objects
            a, copy = _stacked(a), None
        elif isinstance(a, Proxy):
            a = a.whole()
        made = _converted(a, dtype, copy)
        return _with_memory(made, order) if isinstance(made, Tracer) else made
    try:
        made = np.asarray(a, dtype, order, device=device, copy=copy)
    except ValueError as error:
        return asarray(_retold(error, a), dtype, order, device=device, copy=copy)
    if isinstance(made, Tracer):
        return made
    if dtype is not None and made.dtype.kind in "fc":
        check_text(a)
    return made if made is a else new(made)


def array(
    object: ArrayLike,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Array:
    """A new array from a number, an array, or nested lists of them; traced entries are stacked.

    Args:
        object: what it is made of.
        dtype: the dtype; by default that of NumPy's promotion of all entries.
        copy: whether an array is copied, so that a write to one is not seen in the other.
        order: the order of the axes in memory, on which views of it depend.
        subok: as NumPy; subclasses are not supported in derivatives.
        ndmin: axes of length 1 are put in front up to this number of axes.

    Raises:
        ValueError: entries of different shapes; a copy is needed and ``copy=False``.

    Example:
        >>> grad(lambda x: fnp.sum(fnp.array([[x, 1.0], [2.0, x * x]])))(3.0)
        np.float64(7.0)
    """
    object = _without_labels(object)
    if not _is_foreign(object):
        try:
            made = np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
        except ValueError as error:
            told = _retold(error, object)
            return array(told, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
        if isinstance(made, Tracer):
            return made
        if dtype is not None and made.dtype.kind in "fc":
            check_text(object)
        return made if made is object else new(made)
    copy = {"IF_NEEDED": None, "NEVER": False}.get(getattr(copy, "name", ""), copy)  # also as array libraries say it
    made = asarray(object, dtype, copy=None if copy else copy)
    missing = ndmin - len(made.shape)
    made = reshape(made, to=(*(1,) * missing, *made.shape)) if missing > 0 else made
    if not isinstance(made, Tracer):
        return made
    return _duplicate(made, order) if copy else in_order(made, order) if order in ("C", "F") else made


def asanyarray(
    a: ArrayLike, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None
) -> Array:
    """``asarray``, except that subclasses of ndarray pass through.

    Example:
        >>> fnp.asanyarray((1, 2))
        array([1, 2])
    """
    if _is_foreign(a):
        return asarray(a, dtype, order, device=device, copy=copy)
    try:
        return np.asanyarray(a, dtype, order, device=device, copy=copy)
    except ValueError as error:
        return asarray(_retold(error, a), dtype, order, device=device, copy=copy)


def ascontiguousarray(a: ArrayLike, dtype: Any = None) -> Array:
    """``a`` as an array of at least one axis, in C order where it is NumPy's.

    Example:
        >>> fnp.ascontiguousarray(2.0)
        array([2.])
    """
    return array(a, dtype, copy=None, order="C", ndmin=1) if _is_foreign(a) else np.ascontiguousarray(a, dtype)


def asfortranarray(a: ArrayLike, dtype: Any = None) -> Array:
    """``a`` as an array of at least one axis, in Fortran order where it is NumPy's.

    Example:
        >>> fnp.asfortranarray([[1, 2]]).flags.f_contiguous
        True
    """
    return array(a, dtype, copy=None, order="F", ndmin=1) if _is_foreign(a) else np.asfortranarray(a, dtype)


def copy(a: ArrayLike, order: Any = "K", subok: Any = False) -> Array:
    """A copy: a write to one is not seen in the other.

    Example:
        >>> fnp.copy([1.0, 2.0])
        array([1., 2.])
    """
    return _duplicate(asarray(a), order) if _is_foreign(a) else new(np.copy(a, order, subok))


def _copied(x: Tracer) -> Array:
    """Another object that can be written to."""
    with changing:  # no other thread makes it traced meanwhile
        value = x._val if is_buffer(x) else None
        made = twin(x) if value is None else buffer(value.copy("K") if type(value) is np.ndarray else value)
    return made


def _duplicate(a: Array, order: str) -> Array:
    """A copy of a tracer, with the axes in this order in memory; an array of another library as it is."""
    if not isinstance(a, Tracer):
        return new(a)
    return as_array(_arranged_copy(a, order))


def _arranged_copy(a: Tracer, order: str) -> Array:
    made = in_order(a, order)
    return _copied(a) if made is a else made


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """``x`` in another dtype.

    The cotangent comes back in the dtype of ``x``. A change to integers or booleans is a step function:
    its derivative is zero. A change from complex to real takes the real part.

    Raises:
        TypeError: not a dtype.

    Example:
        >>> fnp.astype(np.array([1.5, -2.5]), int)
        array([ 1, -2])
    """
    if issubclass(type(x), np.ndarray):
        return x.astype(dtype, copy=copy)
    if issubclass(type(x), np.generic):
        return x.astype(dtype)
    x, to = as_value(x), np.dtype(dtype)
    if is_buffer(x) and x.dtype.kind in "SU":  # texts, which may show traced numbers
        texts = np.char.decode(x._val) if x.dtype.kind == "S" else x._val
        check_text(texts.ravel().tolist())
        return new(x._val.astype(to))
    if is_buffer(x) and (x.dtype.kind in "Mm" or to.kind in "Mm"):
        return new(x._val.astype(to))
    if backend.dtype_of(x) == to:
        made = _arranged_copy(x, "K") if copy and isinstance(x, Tracer) else x
    else:
        made = _cast(x, to)
    return as_array(made) if isinstance(x, Tracer) and not is_number(x) else made


def _cast(x: Any, to: Any) -> Array:
    """``x`` in another dtype than its own."""
    if to.kind in "biu":
        return prim.cast(x, to=to)
    if to.kind not in "fcV":
        raise InputError(
            f"astype: {to} is no dtype of numbers, got {describe(x)}{user_line()}. Convert to a number's dtype; keep "
            "other objects in a list."
        )
    if backend.dtype_of(x).kind == "c" and to.kind != "c":
        x = real(x)
    return convert(x, to=to)


def zeros(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """Zeros of ``shape``, float64 by default.

    Example:
        >>> fnp.zeros((1, 2))
        array([[0., 0.]])
    """
    return new(np.zeros(shape, dtype, order, device=device))


def ones(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """Ones of ``shape``, float64 by default.

    Example:
        >>> fnp.ones(2)
        array([1., 1.])
    """
    return new(np.ones(shape, dtype, order, device=device))


def empty(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """An array of ``shape`` with arbitrary contents, float64 by default.

    Example:
        >>> fnp.empty((2, 3)).shape
        (2, 3)
    """
    return new(np.empty(shape, dtype, order, device=device))


def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, order: Any = "C", *, device: Any = None) -> Array:
    """``fill_value``, a number or an array that broadcasts, all over ``shape``.

    The derivative flows to a traced ``fill_value``.

    Raises:
        ValueError: ``fill_value`` does not broadcast to ``shape``.

    Example:
        >>> grad(lambda c: fnp.sum(fnp.full((2, 3), c)))(1.5)
        np.float64(6.0)
    """
    if not _is_foreign(fill_value):
        if dtype is not None and np.dtype(dtype).kind in "fc":
            check_text(fill_value)
        return new(np.full(shape, fill_value, dtype, order, device=device))
    made = broadcast_to(asarray(fill_value, dtype), to=as_shape(shape))
    return _with_memory(made, order) if isinstance(made, Tracer) else made


def _with_memory(made: Tracer, order: Any) -> Any:
    """``made`` in this order, and an array where it is a number."""
    if is_number(made):
        return as_array(twin(made))
    return in_order(made, order) if order in ("C", "F") else made


def _like(a: Array, dtype: Any, shape: Any) -> tuple[Shape, Any]:
    to = backend.shape_of(a) if shape is None else as_shape(shape)
    return to, backend.dtype_of(a) if dtype is None else dtype


def _filled(a: ArrayLike, value: Any, dtype: Any, order: Any, shape: Any) -> Array:
    """``value`` all over the shape of ``a``, in the order of its axes in memory."""
    a = asarray(a)
    to, dtype = _like(a, dtype, shape)
    if library_of(a) is np and len(to) > 1 and isinstance(a, Tracer):
        return np.full_like(layout(a), value, dtype, order, shape=shape)
    return library_of(a).full(to, value, dtype)


def zeros_like(
    a: ArrayLike, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Zeros of the shape, dtype and library of ``a``: a constant, also where ``a`` is traced.

    Example:
        >>> fnp.zeros_like(np.ones(2, np.float32))
        array([0., 0.], dtype=float32)
    """
    if _is_foreign(a):
        return new(_filled(a, 0, dtype, order, shape))
    return new(np.zeros_like(a, dtype, order, subok, shape, device=device))


def ones_like(
    a: ArrayLike, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Ones of the shape, dtype and library of ``a``: a constant, also where ``a`` is traced.

    Example:
        >>> fnp.ones_like([[1, 2]])
        array([[1, 1]])
    """
    if _is_foreign(a):
        return new(_filled(a, 1, dtype, order, shape))
    return new(np.ones_like(a, dtype, order, subok, shape, device=device))


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
    """An array of the shape, dtype and library of ``prototype`` with arbitrary contents.

    Example:
        >>> fnp.empty_like(np.ones((2, 3)), shape=4).shape
        (4,)
    """
    if _is_foreign(prototype):
        return new(_filled(prototype, 0, dtype, order, shape))
    return new(np.empty_like(prototype, dtype, order, subok, shape, device=device))


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
    """``fill_value`` all over the shape of ``a``, in its dtype.

    The derivative flows to a traced ``fill_value``, none to ``a``. Where the dtype is an integer's, the
    value is rounded and its derivative is zero.

    Raises:
        ValueError: ``fill_value`` does not broadcast to the shape.

    Example:
        >>> grad(lambda c: fnp.sum(fnp.full_like(np.zeros(4), c)))(2.0)
        np.float64(4.0)
    """
    if not _is_foreign(a) and not _is_foreign(fill_value):
        return new(np.full_like(a, fill_value, dtype, order, subok, shape, device=device))
    if not _is_foreign(fill_value):
        return new(_filled(a, fill_value, dtype, order, shape))
    a = asarray(a)
    to, dtype = _like(a, dtype, shape)
    made = full(to, fill_value, dtype)
    return as_before(a, made) if shape is None and order in "KA" and isinstance(a, Tracer) else made
