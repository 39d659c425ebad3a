"""Dtypes of the functions of neural networks: integers become floating numbers, bfloat16 stays what it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.kinds.linear import astype
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.reducing import as_floating, as_scalar
from funcgrad.typing import Array, ArrayLike

_SINGLE = np.dtype(np.float32)
_WIDE = frozenset((_SINGLE, np.dtype(np.float64)))


def floating(x: ArrayLike) -> Array:
    """``x`` as floating numbers.

    Example:
        >>> floating([1, 2])
        array([1., 2.])
    """
    return as_floating(as_value(x))


def widened(x: Array) -> Array:
    """``x``, in float32 where its dtype is narrower: for sums, and for bfloat16, which NumPy would promote."""
    dtype = backend.dtype_of(x)
    return astype(x, to=_SINGLE) if dtype.kind == "V" or dtype == np.float16 else x


def restored(ans: Array, dtype: Any) -> Array:
    """``ans`` in ``dtype``, that of what it was computed from, if that was narrow."""
    narrow = dtype.kind == "V" or dtype == np.float16
    return astype(ans, to=dtype) if narrow and backend.dtype_of(ans) != dtype else ans


def on_floats(function: Callable[..., Array]) -> Callable[..., Array]:
    """Let a function of one array (and options) take what ``floating`` takes; narrow dtypes are computed in float32."""

    @functools.wraps(function)
    def call(x: ArrayLike, *args: Any, **kwargs: Any) -> Array:
        value = x._val if type(x) is Tracer and x._trace.differentiates else x
        if type(value) is np.ndarray and value.dtype in _WIDE and value.ndim:  # the commonest, with less ado
            return function(x, *args, **kwargs)
        if value is not x and x.dtype in _WIDE:
            return function(x, *args, **kwargs)
        x = floating(x)
        dtype = backend.dtype_of(x)
        return as_scalar(restored(function(widened(x), *args, **kwargs), dtype))

    return call


def tell_shapes(error: ValueError, fits: str, remedy: str = "", **arrays: Any) -> None:
    """Add to NumPy's error about shapes which ones were given, by the names of the arguments, and which ones fit.

    Example:
        >>> tell_shapes(error := ValueError("operands"), "kernel is (inputs, outputs)", x=np.ones((2, 3)), bias=None)
        >>> error.__notes__
        ['kernel is (inputs, outputs), got x (2, 3).']
    """
    shapes = [f"{name} {backend.shape_of(as_value(x))}" for name, x in arrays.items() if x is not None]
    error.add_note(f"{fits}, got {', '.join(shapes)}.{remedy}")
