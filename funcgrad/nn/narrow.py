"""Dtypes of the functions of neural networks: integers become floating-point numbers, bfloat16 stays bfloat16."""

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
    """Convert ``x`` to floating-point numbers.

    Example:
        >>> floating([1, 2])
        array([1., 2.])
    """
    return as_floating(as_value(x))


def widened(x: Array) -> Array:
    """Convert ``x`` to float32 if its dtype is narrower: for sums, and for bfloat16, which NumPy would promote."""
    dtype = backend.dtype_of(x)
    return astype(x, to=_SINGLE) if dtype.kind == "V" or dtype == np.float16 else x


def restored(ans: Array, dtype: Any) -> Array:
    """Convert ``ans`` back to ``dtype``, the dtype of the arguments, if it is narrower than float32."""
    narrow = dtype.kind == "V" or dtype == np.float16
    return astype(ans, to=dtype) if narrow and backend.dtype_of(ans) != dtype else ans


def on_floats(function: Callable[..., Array]) -> Callable[..., Array]:
    """Wrap a function of one array (and options): convert by ``floating``, and compute narrow dtypes in float32."""

    @functools.wraps(function)
    def call(x: ArrayLike, *args: Any, **kwargs: Any) -> Array:
        value = x._val if type(x) is Tracer and x._trace.differentiates else x
        if type(value) is np.ndarray and value.dtype in _WIDE and value.ndim:  # fast path for the most frequent case
            return function(x, *args, **kwargs)
        if value is not x and x.dtype in _WIDE:
            return function(x, *args, **kwargs)
        x = floating(x)
        dtype = backend.dtype_of(x)
        return as_scalar(restored(function(widened(x), *args, **kwargs), dtype))

    return call


def tell_shapes(error: ValueError, fits: str, remedy: str = "", **arrays: Any) -> None:
    """Add a note to NumPy's error about shapes: the shapes that fit, and the given shapes by argument name.

    Example:
        >>> tell_shapes(error := ValueError("operands"), "kernel is (inputs, outputs)", x=np.ones((2, 3)), bias=None)
        >>> error.__notes__
        ['kernel is (inputs, outputs), got x (2, 3).']
    """
    shapes = [f"{name} {backend.shape_of(as_value(x))}" for name, x in arrays.items() if x is not None]
    error.add_note(f"{fits}, got {', '.join(shapes)}.{remedy}")
