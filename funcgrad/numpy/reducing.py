"""Helpers of reductions for NumPy's arguments ``axis``, ``dtype``, ``keepdims``, ``initial`` and ``where``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, plain_value
from funcgrad.kinds.linear import broadcast_to, permute, reduce_sum, reshape
from funcgrad.numpy.axes import keepdims_shape, normalize_axes
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.primitives.arithmetic import multiply
from funcgrad.primitives.comparison import isnan
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.reductions import count_nonzero, reduce_max, reduce_min
from funcgrad.typing import Array, ArrayLike, Axes, Shape
from funcgrad.views import inverse_permutation
from funcgrad.writable import as_number, is_buffer, make_buffer

P = ParamSpec("P")
R = TypeVar("R")


def objects_by_numpy(function: Callable[P, R]) -> Callable[P, R]:
    """Give arrays of Python objects to NumPy's function of this name, which finds the NaN among the objects."""
    of_numpy: Callable[P, R] = getattr(np, function.__name__)

    @wraps(function)
    def either(*args: P.args, **kwargs: P.kwargs) -> R:
        if args and type(args[0]) is np.ndarray and args[0].dtype == object and is_plain(*args, *kwargs.values()):
            return of_numpy(*args, **kwargs)
        return function(*args, **kwargs)

    return either


def as_dtype(a: Array, dtype: Any) -> Array:
    """Convert ``a`` to ``dtype``; return ``a`` itself if ``dtype`` is None or the dtype of ``a``."""
    if dtype is None or backend.dtype_of(a) == dtype:
        return a
    return as_scalar(astype(a, dtype))


def as_floating(a: Array) -> Array:
    """Convert integers and booleans to floating-point numbers of the library's default precision."""
    return multiply(a, 1.0) if backend.dtype_of(a).kind in "iub" else a


def as_inexact(a: ArrayLike) -> Array:
    """Convert integers and booleans to double precision, which SciPy does in every library."""
    a = as_value(a)
    return a if backend.is_inexact(a) else astype(a, float)


def as_double(a: ArrayLike) -> Array:
    """Convert an array to double precision, real or complex."""
    a = as_value(a)
    return astype(a, complex if backend.dtype_of(a).kind == "c" else float)


def as_scalar(a: Array) -> Array:
    """Return an array without axes as a scalar, as NumPy's reductions do; return any other array unchanged."""
    value = plain_value(a)
    if type(value) is not np.ndarray or value.shape:
        return as_number(a)
    return as_number(getitem(a, ())) if type(a) is Tracer else value[()]


def can_be_nan(a: Array) -> bool:
    """Whether the dtype of ``a`` has NaN; integers and booleans have none."""
    return backend.is_inexact(a)


#: Operations that accept ``keepdims``.
_WITH_KEEPDIMS = frozenset((reduce_sum, reduce_max, reduce_min))


def reduce_axes(operation: Callable[..., Any], a: Array, axis: Axes, keepdims: bool, **params: Any) -> Array:
    """Apply ``operation`` over NumPy's ``axis``; if ``keepdims``, keep the reduced axes with length 1."""
    shape = backend.shape_of(a)
    axes = normalize_axes(axis, len(shape), of_numbers=True)
    if not keepdims:
        return operation(a, axis=axes, **params)
    if shape and operation in _WITH_KEEPDIMS:
        return operation(a, axis=axes, **params, keepdims=True)
    ans = operation(a, axis=axes, **params)
    if is_buffer(a) and not backend.shape_of(ans):  # not a number: an array that the program can write to
        value = ans._val if is_buffer(ans) else ans
        ans = make_buffer(np.asarray(value) if isinstance(value, np.generic) else value)
    return reshape(ans, to=keepdims_shape(shape, axes))


def fill_where_false(a: Array, where: ArrayLike | bool, fill: Any) -> Array:
    """Return ``a`` with ``fill`` where the mask ``where`` is False.

    Raises:
        ValueError: ``where`` does not broadcast to the shape of ``a``.
    """
    if where is True:
        return a
    where = as_value(where)
    shape = backend.shape_of(a)
    if np.broadcast_shapes(backend.shape_of(where), shape) != shape:
        raise ValueError(f"where of shape {backend.shape_of(where)} does not broadcast to the shape {shape}")
    return choose(where, a, keeping_dtype(fill, a))


def fill_nan(a: ArrayLike, fill: float) -> Array:
    """Return ``a`` with ``fill`` in place of NaN."""
    a = as_value(a)
    return choose(isnan(a), keeping_dtype(fill, a), a) if can_be_nan(a) else a


def keeping_dtype(number: Any, a: Array) -> Any:
    """Return ``number`` in a form that keeps the dtype of ``a``; NumPy promotes bfloat16 with Python numbers."""
    dtype = backend.dtype_of(a)
    return dtype.type(number) if dtype.kind == "V" and isinstance(number, (int, float)) else number


def count_of_elements(a: Array, axis: Axes, where: ArrayLike | bool, keepdims: bool = False) -> Any:
    """Return how many elements a reduction of ``a`` uses: a number, or an array of numbers if a mask is given."""
    shape = backend.shape_of(a)
    if where is True:
        return math.prod([shape[i] for i in normalize_axes(axis, len(shape))])
    return reduce_axes(count_nonzero, broadcast_to(as_value(where), to=shape), axis, keepdims)


def identity_of_extremum(name: str, dtype: Any) -> Any:
    """Return the value of ``dtype`` that the extremum ``name``, "max" or "minimum" say, never chooses over another."""
    largest = name in ("max", "maximum")
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if largest else np.iinfo(dtype).max
    if dtype.kind == "b":
        return not largest
    return -math.inf if largest else math.inf


def split_axes(shape: Shape, axis: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes that remain and the axes that are reduced."""
    axes = normalize_axes(axis, len(shape))
    return tuple([i for i in range(len(shape)) if i not in axes]), axes


def merge_axes(a: Array, axis: Axes) -> Array:
    """Return ``a`` with the reduced axes merged into one trailing axis."""
    shape = backend.shape_of(a)
    stay, axes = split_axes(shape, axis)
    order = stay + axes
    if order != tuple(range(len(shape))):
        a = permute(a, axes=order)
    if len(axes) == 1:
        return a
    return reshape(a, to=(*[shape[i] for i in stay], math.prod([shape[i] for i in axes])))


def aligned_weights(weights: Array, a: Array, axis: Axes) -> Array:
    """Arrange weights of the shape of ``a``, or with the lengths of ``axis``, so that they broadcast to ``a``.

    Raises:
        TypeError: weights of another shape and no ``axis``.
        ValueError: weights that do not fit ``axis``.
    """
    shape, have = backend.shape_of(a), backend.shape_of(weights)
    if have == shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = normalize_axes(axis, len(shape))
    if have != tuple([shape[i] for i in axes]):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    order = inverse_permutation(axes)
    lengths = tuple([n if i in axes else 1 for i, n in enumerate(shape)])
    return reshape(permute(weights, axes=order), to=lengths)
