"""Maxima, minima and means over windows; names and arguments as in ``flax.linen``, axes as in ``conv``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.nn.convolution import Ints, Padding, arranged, borders, per_axis
from funcgrad.nn.narrow import floating, restored, widened
from funcgrad.nn.operations.pooling import pool_max, window_sum
from funcgrad.numpy.axes import normalize_axes
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import with_signature_of
from funcgrad.primitives.arithmetic import negative
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import inverse_permutation

__all__ = ["avg_pool", "max_pool", "min_pool"]


def _pooled(
    call: str,
    operation: Callable[..., Array],
    inputs: Array,
    window_shape: Sequence[int],
    strides: int | Sequence[int] | None,
    padding: Padding,
    axes: Sequence[int] | None,
) -> Array:
    """Compute ``operation(inputs, *, window, strides, pads)``, which works on trailing axes, along ``axes``."""
    if isinstance(window_shape, int):
        raise InputError(
            f"{call}: window_shape must have a length for each axis of the window, got {describe(window_shape)}. "
            f"Write {(window_shape,) * 2} for a window of two axes."
        )
    window = per_axis(call, "window_shape", tuple(window_shape), len(window_shape))
    shape = backend.shape_of(inputs)
    rank, count = len(shape), len(window)
    if count > rank:
        raise ShapeError(f"{call}: a window of {count} axes needs as many in the array, got shape {shape}. Add axes.")
    chosen = tuple(range(rank - count, rank)) if axes is None else normalize_axes(tuple(axes), rank)
    if len(chosen) != count:
        raise ShapeError(
            f"{call}: axes must name {count} axes, one for each of the window, got {axes!r}. Name them all."
        )
    order = (*[i for i in range(rank) if i not in chosen], *chosen)
    steps = per_axis(call, "strides", strides, count)
    pads = borders(call, padding, tuple([shape[i] for i in chosen]), window, steps)
    ans = operation(arranged(inputs, order), window=window, strides=steps, pads=pads)
    return arranged(ans, inverse_permutation(order))


def max_pool(
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = "VALID",
    *,
    axes: Sequence[int] | None = None,
) -> Array:
    """Compute the maximum of each window. The first of equal maxima in a window gets the derivative, as in JAX.

    Args:
        inputs: an array, with any number of leading axes.
        window_shape: the lengths of the window.
        strides: the step of the window along each axis; 1 by default.
        padding: "SAME", "SAME_LOWER", "VALID", a number, or (before, after) for each axis. Borders are never chosen.
        axes: the axes along which the window moves; by default the last axes.

    Example:
        >>> fnn.max_pool(np.arange(16.0).reshape(4, 4), (2, 2), 2)
        array([[ 5.,  7.],
               [13., 15.]])
    """
    return _pooled("max_pool", pool_max, as_value(inputs), window_shape, strides, padding, axes)


@with_signature_of(max_pool)
def min_pool(inputs: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Compute the minimum of each window; the first of ties gets the derivative; arguments as for ``max_pool``.

    Example:
        >>> fnn.min_pool(np.array([3.0, 1.0, 2.0]), (2,))
        array([1., 1.])
    """
    return negative(max_pool(negative(floating(inputs)), *args, **kwargs))


def avg_pool(
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
    *,
    axes: Sequence[int] | None = None,
) -> Array:
    """Compute the mean of each window; arguments as in ``max_pool``.

    Args:
        inputs: an array.
        window_shape: the lengths of the window.
        strides: the step of the window along each axis; 1 by default.
        padding: borders of zeros.
        count_include_pad: whether the borders count; if not, a mean is over the elements of ``inputs`` in the window.
        axes: the axes along which the window moves; by default the last axes.

    Example:
        >>> fnn.avg_pool(np.array([1.0, 3.0, 5.0]), (2,), padding="SAME", count_include_pad=False)
        array([2., 4., 5.])
    """
    x = floating(inputs)
    dtype = backend.dtype_of(x)

    def means(x: Array, *, window: Ints, **options: Any) -> Array:
        lengths = backend.shape_of(x)[len(backend.shape_of(x)) - len(window) :]
        total = window_sum(x, window=window, lengths=lengths, **options)
        if count_include_pad:
            return total / float(np.prod(window, dtype=int))
        return total / window_sum(np.ones(lengths, backend.dtype_of(x)), window=window, lengths=lengths, **options)

    return restored(_pooled("avg_pool", means, widened(x), window_shape, strides, padding, axes), dtype)
