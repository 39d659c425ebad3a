"""Array libraries: which library a value belongs to, and the shape and the dtype of the value.

One dictionary maps exact types to array namespaces; a type is added at its first lookup. NumPy arrays,
NumPy scalars and Python numbers belong to NumPy; JAX arrays and JAX tracers belong to JAX. This module never
imports JAX, but looks it up in ``sys.modules``: a program that holds a JAX array has imported JAX.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from funcgrad.errors import typed_repr
from funcgrad.optional import loaded_jax
from funcgrad.typing import Shape

#: The module ``numpy`` or ``jax.numpy``.
ArrayNamespace: TypeAlias = Any

FLOAT0 = np.dtype([("float0", "V")])  # the dtype JAX gives to the gradient of an integer

_NAMESPACES: dict[type, ArrayNamespace | None] = {np.ndarray: np, bool: np, int: np, float: np, complex: np}
_CLASSES_WITHOUT_NUMBERS = (
    np.matrix,
    np.str_,
    np.bytes_,
    np.void,
    np.object_,
    np.datetime64,
    np.timedelta64,
)
_PYTHON_DTYPES: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def namespace_of(x: Any) -> ArrayNamespace | None:
    """Return the array namespace that ``x`` belongs to, or None if ``x`` is neither an array nor a number."""
    kind = type(x)
    try:
        return _NAMESPACES[kind]
    except KeyError:
        pass
    found: ArrayNamespace | None = None
    if issubclass(kind, (np.ndarray, np.generic)):
        if not issubclass(kind, _CLASSES_WITHOUT_NUMBERS) and not is_masked(kind) and not _has_own_arithmetic(kind):
            found = np
    elif issubclass(kind, (int, float, complex)):  # an IntEnum, say
        found = np
        _PYTHON_DTYPES[kind] = next(_PYTHON_DTYPES[base] for base in kind.__mro__ if base in _PYTHON_DTYPES)
    else:
        jax = loaded_jax()
        if jax is None or not hasattr(jax, "Array"):
            return None  # not stored, because JAX may be imported later
        if isinstance(x, jax.Array):  # JAX tracers are recognised by the instance, not by the class
            found = jax.numpy
    _NAMESPACES[kind] = found
    return found


def is_masked(kind: type) -> bool:
    """Whether a class is a class of masked arrays, without importing ``numpy.ma``, a fifth of all import time."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and issubclass(kind, masked.MaskedArray)


#: Type of NumPy's functions that call ``__array_function__``.
DISPATCHER = type(np.concatenate)
#: Members of ndarray that a class may define without computing in its own way.
_DESCRIBING = frozenset((
    "__array_finalize__", "__array_priority__", "__class_getitem__", "__copy__", "__deepcopy__", "__doc__",
    "__format__", "__hash__", "__init__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__setstate__",
    "__str__",
))  # fmt: skip
_COMPUTING = tuple([name for name in vars(np.ndarray) if name not in _DESCRIBING])


def _has_own_arithmetic(kind: type) -> bool:
    """Whether a subclass of ndarray computes in its own way (units, for example), which no rule here knows."""
    names = _COMPUTING if is_array_class(kind) else ("__array_ufunc__", "__array_function__")
    return issubclass(kind, np.ndarray) and any(getattr(kind, n) is not getattr(np.ndarray, n) for n in names)


def is_array_class(kind: type) -> bool:
    """Whether a class is a program's class derived from ndarray that rebuilt code replaces.

    Example:
        >>> is_array_class(np.ndarray), is_array_class(np.matrix)
        (False, False)
    """
    if not issubclass(kind, np.ndarray) or kind is np.ndarray:
        return False
    above = kind.__mro__[: kind.__mro__.index(np.ndarray)]
    of_numpy = any(base.__module__.partition(".")[0] == "numpy" for base in above)
    return not of_numpy and kind.__array_ufunc__ is not None


def namespace(values: Any) -> ArrayNamespace:
    """Return the array namespace that computes with ``values``: JAX's if any value belongs to JAX, else NumPy's."""
    for value in values:
        found = _NAMESPACES.get(type(value)) or namespace_of(value)
        if found is not None and found is not np:
            return found
    return np


def is_value(x: Any) -> bool:
    """Whether ``x`` is an array or a number that a primitive can compute with."""
    kind = type(x)
    found = _NAMESPACES.get(kind) or namespace_of(x)
    if found is not np or kind in _PYTHON_DTYPES:
        return found is not None
    return _is_number(x.dtype)


def is_of_other_library(x: Any) -> bool:
    """Whether ``x`` is an array of another library than NumPy, such as JAX."""
    return namespace_of(x) not in (None, np)


def is_sequence(x: Any) -> bool:
    """Whether ``x`` is a sequence that NumPy converts to an array: a list, a tuple (also a named one) or a deque."""
    return issubclass(type(x), (list, tuple, deque))


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fciub" or (dtype.kind == "V" and _is_ml_dtype(dtype))


def _is_ml_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype of kind "V" holds numbers, such as bfloat16; the scalars of all others are records or bytes."""
    return not issubclass(dtype.type, np.void)


#: Subclasses of ``ndarray`` with their own arithmetic whose arrays are plain arrays when combined with traced values.
ARRAY_CLASSES: set[type] = set()


def is_table(x: Any) -> bool:
    """Whether ``x`` is a pandas or xarray table of numbers, or an array of one of the ``ARRAY_CLASSES``.

    An operation of such a table and an array uses the values of the table, without labels.
    """
    kind = type(x)
    if kind in ARRAY_CLASSES:
        return True
    if not is_table_class(kind):
        return False
    if hasattr(kind, "_constructor_sliced"):  # a frame
        return all(getattr(dtype, "kind", "O") in "biufc" for dtype in x.dtypes)
    dtype = getattr(x, "dtype", None)
    return dtype is not None and getattr(dtype, "kind", "O") in "biufc"


def is_table_class(kind: type) -> bool:
    """Whether a class is a table class of pandas or xarray, or derives from one."""
    if not hasattr(kind, "__array__") or issubclass(kind, np.ndarray):
        return False
    return any(base.__module__.partition(".")[0] in ("pandas", "xarray") for base in kind.__mro__)


def values_of(table: Any) -> Any:
    """Return the values of a table without labels; the values are traced if the table holds traced values."""
    if hasattr(type(table), "_constructor_sliced"):  # a frame; if columns are traced, of a class of funcgrad
        return table.to_numpy()
    inside: Any = getattr(getattr(table, "array", table), "held", getattr(table, "data", None))
    return inside.as_array() if hasattr(inside, "as_array") else np.asarray(table)


#: Advice for numbers that NumPy stores as objects, such as fractions.
_AS_FLOAT = "Convert it: float(x)."


def problem_and_remedy(x: Any) -> tuple[str, str]:
    """Return, for messages, why ``x`` is not a value and what to do about it.

    Example:
        >>> problem_and_remedy(np.array([None, 1.0]))
        ('is not an array or a number: it holds Python objects, got object[2]', 'Convert it: x.astype(float).')
    """
    kind, dtype = getattr(type(x), "type_of", type)(x), getattr(x, "dtype", None)
    if not issubclass(kind, (np.ndarray, np.generic)) or not isinstance(dtype, np.dtype):
        if callable(getattr(x, "tocsr", None)):
            return (
                f"is a sparse matrix, got {kind.__name__}",
                "Multiply with funcgrad.numpy.matmul(A, x), or make it dense: A.toarray().",
            )
        remedy = "Pass arrays, numbers, or nested lists of them through funcgrad.numpy.asarray."
        return f"is not an array or a number, got {typed_repr(x)}", _AS_FLOAT if issubclass(kind, Number) else remedy
    got = f"got {dtype}{list(x.shape)}" if kind is np.ndarray else f"got {kind.__name__} of {dtype}{list(x.shape)}"
    what, remedy = "is an instance of an ndarray subclass", "Convert it: numpy.asarray(x)."
    if is_masked(kind):
        what = "is a masked array"
        remedy = "Pass data and mask as two arrays, and choose with where(mask, 0, data)."
    elif not _is_number(dtype):
        what, remedy = next((w, r) for kinds, w, r in _WITHOUT_NUMBERS if dtype.kind in kinds)
    return f"is not an array or a number: it {what}, {got}", remedy


#: NumPy's error message for an object whose ``__array__`` returns a traced array.
NO_ARRAY = "__array__ method not producing an array"


def override_of(x: Any) -> Any:
    """Return the ``__array_ufunc__`` by which a user class overrides NumPy's ufuncs; None of other classes."""
    kind = type(x)
    is_known = issubclass(kind, (np.ndarray, np.generic)) or is_table_class(kind)
    return None if is_known else getattr(kind, "__array_ufunc__", None)


def defines_array(x: Any) -> bool:
    """Whether ``x`` converts itself to an array by ``__array__`` and does not override NumPy's functions."""
    kind = type(x)
    if not hasattr(kind, "__array__") or issubclass(kind, (np.ndarray, np.generic)) or is_table_class(kind):
        return False
    return not any(hasattr(kind, name) for name in ("__array_ufunc__", "__array_function__", "tocsr"))


def takes_over_operators(x: Any) -> bool:
    """Whether an ndarray leaves operators to ``x``, an operand that is not a value.

    It leaves them to objects that define ``__array_ufunc__``, to objects with an ``__array_priority__`` above 0, and
    to objects that are not arrays, numbers or sequences.

    Example:
        >>> takes_over_operators(object()), takes_over_operators("text")
        (True, False)
    """
    kind = type(x)
    if issubclass(kind, (np.ndarray, np.generic, Number, Sequence)) or is_table_class(kind):
        return False
    if hasattr(kind, "__array_ufunc__"):
        return True
    if hasattr(kind, "tocsr"):  # a sparse matrix of SciPy, whose code takes no traced values
        return False
    return getattr(x, "__array_priority__", 0.0) > 0.0 or not hasattr(kind, "__array__")


#: Kinds of dtypes that are not numbers, with the content of such arrays and advice.
_WITHOUT_NUMBERS = (
    ("O", "holds Python objects", "Convert it: x.astype(float)."),
    ("SUT", "holds text", "Encode it as numbers, or leave it out of the arguments: close over it."),
    ("Mm", "holds dates or times", "Convert it to numbers: (x - start) / numpy.timedelta64(1, 's')."),
    ("V", "holds records", "Pass the fields that are numbers, x['name'], as separate arrays."),
)


def is_date_or_text(x: Any) -> bool:
    """Whether ``x`` is a text, or an array or a NumPy scalar of dates, times or texts."""
    return isinstance(x, (str, bytes)) or (issubclass(type(x), (np.ndarray, np.generic)) and x.dtype.kind in "MmSUT")


def has_foreign_byte_order(x: Any) -> bool:
    """Whether ``x`` is an ndarray whose byte order is not native."""
    return issubclass(type(x), np.ndarray) and not x.dtype.isnative


def shape_of(x: Any) -> Shape:
    """Return the shape of an array, tracer or number."""
    return () if type(x) in _PYTHON_DTYPES else x.shape


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return the NumPy dtype of an array, tracer or number."""
    dtype: np.dtype[Any] = _PYTHON_DTYPES[type(x)] if type(x) in _PYTHON_DTYPES else x.dtype  # noqa: SIM401  (numbers have none)
    return dtype


def shape_and_dtype_of(x: Any) -> tuple[Shape, np.dtype[Any]]:
    """Return the shape and the dtype of an array, tracer or number."""
    return ((), _PYTHON_DTYPES[type(x)]) if type(x) in _PYTHON_DTYPES else (x.shape, x.dtype)


def is_inexact(x: Any) -> bool:
    """Whether ``x`` has a floating or complex dtype, so that a derivative can flow through it."""
    dtype = dtype_of(x)
    if dtype.kind in "fc":
        return True
    # the float types of ml_dtypes (bfloat16, float8) and its narrow integers are of kind "V"
    return dtype.kind == "V" and _is_ml_dtype(dtype) and not dtype.name.lstrip("u").startswith("int")


def is_jax_tracer(x: Any) -> bool:
    """Whether ``x`` is a JAX tracer, inside a JAX transform; NumPy's functions cannot compute with it."""
    kind = type(x)
    if kind in _NAMESPACES and _NAMESPACES[kind] is np:
        return False
    jax = loaded_jax()
    return jax is not None and hasattr(jax, "core") and isinstance(x, jax.core.Tracer)


def zeros_like(x: Any) -> Any:
    """Return zeros of the shape, dtype and library of ``x``; float0 zeros for an integer ``x``."""
    return _filled(x, 0)


def with_zeros(values: Sequence[Any], likes: Sequence[Any]) -> list[Any]:
    """Return tangents or cotangents ``values`` with zeros in place of None, like the entries of ``likes``."""
    return [zeros_like(like) if value is None else value for value, like in zip(values, likes, strict=True)]


def ones_like(x: Any) -> Any:
    """Return ones of the shape, dtype and library of ``x``."""
    return _filled(x, 1)


def library_of(x: Any) -> ArrayNamespace:
    """Return the array namespace of ``x``, or of the plain value in the end if ``x`` is a tracer."""
    while namespace_of(x) is None and hasattr(x, "_val"):  # a tracer
        x = x._val
    return namespace((x,))


def native_dtype(xp: Any, dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as tracers of values of ``xp`` have it, in native byte order.

    JAX has no dtypes of 64 bits unless x64 mode is on.
    """
    found: np.dtype[Any] = np.dtype(dtype)
    if not found.isnative:
        found = found.newbyteorder("=")
    if xp is not np:
        found = loaded_jax().dtypes.canonicalize_dtype(found)
    return found


def detached(xp: Any, x: Any) -> Any:
    """Return ``x``, a value of the array namespace ``xp``, as a constant for the derivatives of that library."""
    return x if xp is np else xp.asarray(loaded_jax().lax.stop_gradient(x))  # stop_gradient(1.0) is not an array


_DOUBLES = (np.float64(0), np.float64(1))


def _filled(x: Any, value: int) -> Any:
    if type(x) is np.float64 or type(x) is float:
        return _DOUBLES[value]
    shape, dtype = shape_of(x), dtype_of(x)
    if not is_inexact(x):
        return np.zeros(shape, FLOAT0)
    xp = library_of(x)
    if xp is np:
        return np.full(shape, value, dtype) if shape else dtype.type(value)
    return taken_like(x, xp.full(shape, value, dtype))


def taken_like(x: Any, made: Any) -> Any:
    """Return ``made``, an array of another library, as a traced value if ``x`` is one that stands for a NumPy array.

    A function that takes its arguments for NumPy arrays, as under ``jit``, then takes ``made`` for one too.
    """
    while hasattr(x, "_val"):
        if x._trace.as_numpy:
            return x._trace.wrap(made)
        x = x._val
    return made
