"""Which array library a value belongs to, and what its shape and dtype are.

One dictionary from exact type to array namespace, filled at the first sight of a type. NumPy arrays,
NumPy scalars and Python numbers are NumPy's; JAX arrays and JAX tracers are JAX's. JAX is looked up
among the modules already imported, never imported from here: a program that holds a JAX array has it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from funcgrad.typing import Shape

__all__ = [
    "detached",
    "dtype_of",
    "is_inexact",
    "is_value",
    "library_of",
    "native_dtype",
    "namespace",
    "namespace_of",
    "ones_like",
    "shape_of",
    "zeros_like",
]

FLOAT0 = np.dtype([("float0", "V")])  # the dtype JAX gives to the gradient of an integer

_NAMESPACES: dict[type, Any] = {np.ndarray: np, bool: np, int: np, float: np, complex: np}
_REFUSED = (
    np.ma.MaskedArray,
    np.matrix,
    np.str_,
    np.bytes_,
    np.void,
    np.object_,
    np.datetime64,
    np.timedelta64,
)
_PYTHON_DTYPES = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def namespace_of(x: Any) -> Any:
    """The array namespace that ``x`` belongs to, or None when it is no array and no number.

    Example:
        >>> namespace_of(1.0).__name__
        'numpy'
        >>> namespace_of("text") is None
        True
    """
    kind = type(x)
    try:
        return _NAMESPACES[kind]
    except KeyError:
        pass
    found: Any = None
    if issubclass(kind, (np.ndarray, np.generic)):
        if not issubclass(kind, _REFUSED):
            found = np
    else:
        jax = sys.modules.get("jax")
        if jax is None or not hasattr(jax, "Array"):
            return None  # not remembered: JAX may be imported later
        if isinstance(x, jax.Array):  # of JAX's own tracers only the instance knows
            found = sys.modules["jax.numpy"]
    _NAMESPACES[kind] = found
    return found


def namespace(values: Any) -> Any:
    """The array namespace that computes with ``values``: JAX's when any of them is JAX's, else NumPy's.

    Example:
        >>> namespace([1.0, np.ones(3)]).__name__
        'numpy'
    """
    for value in values:
        found = _NAMESPACES.get(type(value)) or namespace_of(value)
        if found is not None and found is not np:
            return found
    return np


def is_value(x: Any) -> bool:
    """Whether ``x`` is an array or a number that a primitive can compute with.

    Example:
        >>> is_value(np.ones(2)), is_value(1.0), is_value("1.0"), is_value(None)
        (True, True, False, False)
    """
    kind = type(x)
    if (_NAMESPACES.get(kind) or namespace_of(x)) is None:
        return False
    return kind is not np.ndarray or x.dtype.kind not in "OSUVMm" or (x.dtype.kind == "V" and x.dtype.names is None)


def shape_of(x: Any) -> Shape:
    """The shape of an array, tracer or number.

    Example:
        >>> shape_of(2.0), shape_of(np.ones((2, 3)))
        ((), (2, 3))
    """
    return () if type(x) in _PYTHON_DTYPES else x.shape


def dtype_of(x: Any) -> np.dtype[Any]:
    """The NumPy dtype of an array, tracer or number.

    Example:
        >>> dtype_of(2.0), dtype_of(np.float32(1))
        (dtype('float64'), dtype('float32'))
    """
    dtype: np.dtype[Any] = _PYTHON_DTYPES[type(x)] if type(x) in _PYTHON_DTYPES else x.dtype  # noqa: SIM401  (numbers have none)
    return dtype


def is_inexact(x: Any) -> bool:
    """Whether ``x`` has a floating or complex dtype, so that a derivative can flow through it.

    Example:
        >>> is_inexact(1.0), is_inexact(1), is_inexact(np.ones(2, "complex64"))
        (True, False, True)
    """
    kind = dtype_of(x).kind
    # bfloat16 and the float8 types of ml_dtypes have kind "V" and no fields
    return kind in "fc" or (kind == "V" and dtype_of(x).names is None and dtype_of(x).itemsize > 0)


def zeros_like(x: Any) -> Any:
    """Zeros of the shape, dtype and library of ``x``; float0 zeros for an integer ``x``.

    Example:
        >>> zeros_like(np.ones(2, np.float32))
        array([0., 0.], dtype=float32)
    """
    return _filled(x, 0)


def ones_like(x: Any) -> Any:
    """Ones of the shape, dtype and library of ``x``.

    Example:
        >>> ones_like(3.0)
        np.float64(1.0)
    """
    return _filled(x, 1)


def library_of(x: Any) -> Any:
    """The array namespace of ``x``, or of what the tracer ``x`` stands for in the end.

    Example:
        >>> library_of(2.0).__name__
        'numpy'
    """
    while namespace_of(x) is None and hasattr(x, "value"):  # a tracer
        x = x.value
    return namespace((x,))


def native_dtype(xp: Any, dtype: Any) -> np.dtype[Any]:
    """``dtype`` as the array namespace ``xp`` has it: JAX has no 64 bits unless x64 mode is on.

    Example:
        >>> native_dtype(np, np.float64)
        dtype('float64')
    """
    convert = np.dtype if xp is np else sys.modules["jax"].dtypes.canonicalize_dtype
    found: np.dtype[Any] = convert(dtype)
    return found


def detached(xp: Any, x: Any) -> Any:
    """``x``, a value of the array namespace ``xp``, as a constant for that library's own derivatives.

    Example:
        >>> detached(np, 2.0)
        2.0
    """
    return x if xp is np else xp.asarray(sys.modules["jax"].lax.stop_gradient(x))  # of 1.0 it is no array


def _filled(x: Any, value: int) -> Any:
    shape, dtype = shape_of(x), dtype_of(x)
    if not is_inexact(x):
        return np.zeros(shape, FLOAT0)
    xp = library_of(x)
    if xp is np and not shape:
        return dtype.type(value)
    return xp.full(shape, value, dtype)
