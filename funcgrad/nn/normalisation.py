"""Normalisation and dropout, as pure functions: scales, statistics and masks are arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import reshape
from funcgrad.nn.activations import standardize
from funcgrad.nn.narrow import floating, restored, tell_shapes, widened
from funcgrad.numpy.axes import normalize_axes, normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.reductions import mean
from funcgrad.primitives.arithmetic import square
from funcgrad.primitives.comparison import where
from funcgrad.primitives.elementwise import sqrt
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = ["batch_norm", "dropout", "group_norm", "layer_norm", "rms_norm"]


def _scaled(x: Array, scale: ArrayLike | None, bias: ArrayLike | None, axes: tuple[int, ...]) -> Array:
    """Compute ``x * scale + bias`` with parameters that have the lengths of ``axes`` or broadcast to ``x``."""
    try:
        if scale is not None:
            x = x * _along(scale, backend.shape_of(x), axes)
        return x if bias is None else x + _along(bias, backend.shape_of(x), axes)
    except ValueError as error:
        fits = f"scale and bias have the lengths of the normalised axes {axes}"
        tell_shapes(error, fits, x=x, scale=scale, bias=bias)
        raise


def _along(parameter: ArrayLike, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    parameter = widened(as_value(parameter))
    have = backend.shape_of(parameter)
    rank = len(shape)
    if len(have) != len(axes) or not have or axes == tuple(range(rank - len(axes), rank)):
        return parameter
    return reshape(parameter, to=tuple([have[sorted(axes).index(i)] if i in axes else 1 for i in range(rank)]))


def layer_norm(
    x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, axis: Axes = -1, epsilon: float = 1e-5
) -> Array:
    """Compute ``(x - mean) / sqrt(variance + epsilon) * scale + bias``, with mean and variance along ``axis``.

    Args:
        x: an array.
        scale: an array to multiply by, with the lengths of ``axis``, or None.
        bias: an array to add, with the lengths of ``axis``, or None.
        axis: one axis, several, or None for all.
        epsilon: a small number, added to the variance to avoid division by 0.

    Example:
        >>> fnn.layer_norm([1.0, 3.0], scale=[2.0, 2.0], bias=[0.0, 1.0], epsilon=0.0)
        array([-2.,  3.])
    """
    x = floating(x)
    axes = normalize_axes(axis, len(backend.shape_of(x)))
    return restored(_scaled(standardize(widened(x), axes, epsilon=epsilon), scale, bias, axes), backend.dtype_of(x))


def rms_norm(x: ArrayLike, scale: ArrayLike | None = None, axis: Axes = -1, epsilon: float = 1e-6) -> Array:
    """Compute ``x / sqrt(mean(x**2) + epsilon) * scale``, the mean along ``axis``; arguments as in ``layer_norm``.

    Example:
        >>> fnn.rms_norm([3.0, 3.0], epsilon=0.0)
        array([1., 1.])
    """
    x = floating(x)
    axes = normalize_axes(axis, len(backend.shape_of(x)))
    wide = widened(x)
    normed = wide / sqrt(mean(square(wide), axes, keepdims=True) + epsilon)
    return restored(_scaled(normed, scale, None, axes), backend.dtype_of(x))


def batch_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> Array:
    """Normalise each feature over the batch, then scale and shift it.

    Args:
        x: an array.
        scale: a factor for each feature, or None.
        bias: a number to add for each feature, or None.
        mean: the mean of each feature, such as a running mean; by default the mean in ``x``.
        variance: the variance of each feature; by default the mean squared distance from ``mean`` in ``x``.
        axis: the axis of the features.
        epsilon: a small number, added to the variance to avoid division by 0.

    Example:
        >>> fnn.batch_norm([[1.0, 5.0], [3.0, 5.0]], bias=[0.0, 1.0], epsilon=0.0, variance=[1.0, 1.0])
        array([[-1.,  1.],
               [ 1.,  1.]])
    """
    x = floating(x)
    shape = backend.shape_of(x)
    feature = normalize_axis(axis, len(shape))
    others = tuple([i for i in range(len(shape)) if i != feature])
    mean, variance = (None if s is None else _along(s, shape, (feature,)) for s in (mean, variance))
    normed = standardize(widened(x), others, mean, variance, epsilon)
    return restored(_scaled(normed, scale, bias, (feature,)), backend.dtype_of(x))


def group_norm(
    x: ArrayLike, groups: int, scale: ArrayLike | None = None, bias: ArrayLike | None = None, epsilon: float = 1e-5
) -> Array:
    """Normalise each group of features, along axis 1, for each example.

    Args:
        x: an array of shape (batch, features, ...).
        groups: the number of groups of features.
        scale: a factor for each feature, or None.
        bias: a number to add for each feature, or None.
        epsilon: a small number, added to the variance to avoid division by 0.

    Raises:
        ShapeError: the number of groups does not divide the number of features (a ``ValueError``).

    Example:
        >>> fnn.group_norm([[1.0, 3.0, 0.0, 4.0]], 2, epsilon=0.0)
        array([[-1.,  1., -1.,  1.]])
    """
    x = floating(x)
    shape = backend.shape_of(x)
    if len(shape) < 2 or groups < 1 or shape[1] % groups:
        raise ShapeError(
            f"group_norm: axis 1 must divide into groups, got shape {shape} and {groups} groups. Give a number that "
            "divides the features."
        )
    apart = reshape(widened(x), to=(shape[0], groups, shape[1] // groups, *shape[2:]))
    normed = reshape(standardize(apart, tuple(range(2, len(shape) + 1)), epsilon=epsilon), to=shape)
    return restored(_scaled(normed, scale, bias, (1,)), backend.dtype_of(x))


def dropout(x: ArrayLike, rate: float, keep: Any) -> Array:
    """Replace some elements of ``x`` by 0, and divide the others by ``1 - rate``.

    Args:
        x: an array.
        rate: the fraction of the elements to drop, below 1.
        keep: the elements to keep: an array of booleans, or a ``numpy.random.Generator`` that draws this mask in the
            shape that ``x`` has here. Inside ``vmap`` all examples share one mask, and a compiled function draws only
            once: draw masks outside and pass them as arguments.

    Raises:
        InputError: ``keep`` is neither (a ``TypeError``).
        ShapeError: a rate below 0, or not below 1 (a ``ValueError``).

    Example:
        >>> fnn.dropout([1.0, 2.0, 3.0], 0.5, [True, False, True])
        array([2., 0., 6.])
    """
    x = floating(x)
    if not 0 <= rate < 1:
        raise ShapeError(f"dropout: rate must be at least 0 and below 1, got {rate!r}. Give the share to drop.")
    if isinstance(keep, np.random.Generator):
        keep = keep.random(backend.shape_of(x)) >= rate
    keep = as_value(keep)
    if backend.dtype_of(keep).kind != "b":
        raise InputError(
            f"dropout: keep must be booleans or a numpy.random.Generator, got {describe(keep)}. Pass a mask, such as "
            "rng.random(x.shape) >= rate, or rng = numpy.random.default_rng(seed)."
        )
    return restored(where(keep, widened(x) / (1 - rate), 0.0), backend.dtype_of(x))
