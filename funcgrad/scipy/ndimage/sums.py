"""Weighted sums over neighbours: correlation, convolution, means, differences."""

from __future__ import annotations

from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.kinds.linear import conj
from funcgrad.numpy.axes import one_axis
from funcgrad.numpy.creation import as_value
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import flip
from funcgrad.scipy.mirror import mirrors
from funcgrad.scipy.ndimage.arguments import axes_of, entries, mode_of, prepared, shift_of, zero
from funcgrad.scipy.ndimage.operations import correlate_axes, uniform_axis
from funcgrad.typing import Array, ArrayLike, Shape

__all__ = ["convolve", "correlate", "correlate1d", "uniform_filter1d"]


def _around(x: Array, lengths: Shape, origins: Shape, cval: ArrayLike) -> tuple[Array, tuple[slice, ...]]:
    """``x`` with ``cval`` around it, as far as windows reach, and where in that it stands."""
    before = [m // 2 + o for m, o in zip(lengths, origins, strict=True)]
    widths = [(b, m - 1 - b) for m, b in zip(lengths, before, strict=True)]
    part = tuple([slice(b, b + n) for b, n in zip(before, backend.shape_of(x), strict=True)])
    return fnp.pad(x, widths, constant_values=cval), part


def _correlated(x: Array, weights: Array, mode: str, cval: ArrayLike, origins: Shape) -> Array:
    if mode != "constant" or zero(cval):
        return correlate_axes(x, weights, mode=mode, origins=origins)
    x, part = _around(x, backend.shape_of(weights), origins, cval)
    return getitem(correlate_axes(x, weights, mode=mode, origins=origins), part)


def _weights(weights: ArrayLike, *, conjugated: bool) -> Array:
    """Weights are of double precision, as SciPy takes them."""
    weights = as_value(weights)
    if backend.dtype_of(weights).kind == "c":
        return conj(weights) if conjugated else weights
    return weights if backend.is_inexact(weights) else fnp.astype(weights, float)


def along(call: str, x: Array, weights: Array, axis: int, dtype: Any, mode: str, cval: ArrayLike, origin: int) -> Array:
    """The sums along one axis with ``weights``, not conjugated, in ``dtype``."""
    shape = backend.shape_of(weights)
    if len(shape) != 1 or not shape[0]:
        raise ShapeError(f"ndimage.{call}: weights must be a vector that is not empty, got {describe(weights)}.")
    rank = len(backend.shape_of(x))
    axis, origin = one_axis(axis, rank), shift_of(call, origin, shape[0])
    weights = fnp.reshape(weights, tuple([shape[0] if i == axis else 1 for i in range(rank)]))
    origins = tuple([origin if i == axis else 0 for i in range(rank)])
    found = _correlated(x, weights, mode_of(call, mode), cval, origins)
    return fnp.astype(found, dtype)


@mirrors
def correlate1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """The correlation with ``weights`` along one axis; differentiable in ``input``, ``weights`` and ``cval``.

    Args:
        input: an array.
        weights: a vector.
        axis: the axis.
        output: the dtype of the result; by default that of ``input``.
        mode: what stands beyond the border: "reflect" or "grid-mirror" (d c b a | a b c d | d c b a), "mirror"
            (d c b | a b c d | c b a), "nearest", "wrap" or "grid-wrap", "constant" or "grid-constant".
        cval: the value beyond the border for "constant".
        origin: by how much the window is moved to the left.

    Raises:
        TypeError: a traced call with an array for ``output``, or whose result would be of integers.
        ValueError: an axis, a mode or an origin that there is not.

    Example:
        >>> correlate1d([1.0, 2.0, 4.0], [1.0, 0.0, -1.0])
        array([-1., -3., -2.])
        >>> grad(lambda w: correlate1d([1.0, 2.0, 4.0], w)[0])(np.array([1.0, 0.0, -1.0]))
        array([1., 1., 2.])
    """
    weights = _weights(weights, conjugated=True)
    x, dtype = prepared("correlate1d", input, output, complex=backend.dtype_of(weights).kind == "c")
    return along("correlate1d", x, weights, axis, dtype, mode, cval, origin)


@mirrors
def correlate(
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The correlation with an array of ``weights``; differentiable in ``input``, ``weights`` and ``cval``.

    Args:
        input: an array.
        weights: an array with an axis for each of ``axes``.
        output: as for ``correlate1d``, also ``mode`` and ``cval``.
        mode: the border.
        cval: the value beyond it.
        origin: one for all axes, or one for each.
        axes: the axes; by default all.

    Raises:
        TypeError: as ``correlate1d``.
        ValueError: likewise; weights whose axes are not as many.

    Example:
        >>> correlate([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], mode="constant")
        array([[0., 1.], [1., 5.]])
    """
    return _in_all_axes("correlate", input, weights, output, mode, cval, origin, axes)


@mirrors
def convolve(
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    """The convolution with an array of ``weights``; arguments as for ``correlate``.

    Example:
        >>> convolve([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], mode="constant")
        array([[5., 4.], [4., 0.]])
    """
    return _in_all_axes("convolve", input, weights, output, mode, cval, origin, axes)


def _in_all_axes(
    call: str, input: Any, weights: Any, output: Any, mode: str, cval: Any, origin: Any, axes: Any
) -> Array:
    weights = _weights(weights, conjugated=call == "correlate")
    x, dtype = prepared(call, input, output, complex=backend.dtype_of(weights).kind == "c")
    rank = len(backend.shape_of(x))
    chosen = axes_of(call, axes, rank)
    lengths = backend.shape_of(weights)
    if len(lengths) != len(chosen) or 0 in lengths:
        raise ShapeError(
            f"ndimage.{call}: weights must have one axis, not empty, for each of {len(chosen)} axes, got "
            f"{describe(weights)}."
        )
    given: list[int] = entries(call, "origin", origin, len(chosen))
    if call == "convolve":
        weights = flip(weights, axis=tuple(range(len(lengths))))
        given = [-o if m & 1 else -o - 1 for o, m in zip(given, lengths, strict=True)]
    # SciPy adds axes to the weights in the order of theirs, whatever that of ``axes``
    whole, origins = [1] * rank, [0] * rank
    for axis, m in zip(sorted(chosen), lengths, strict=True):
        whole[axis] = m
    for axis, o in zip(chosen if len(chosen) < rank else range(rank), given, strict=True):
        origins[axis] = shift_of(call, o, whole[axis])
    found = _correlated(x, fnp.reshape(weights, tuple(whole)), mode_of(call, mode), cval, tuple(origins))
    return fnp.astype(found, dtype)


# ---- means -------------------------------------------------------------------------------------------------


@mirrors
def uniform_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """The mean of ``size`` neighbours along one axis; arguments as for ``correlate1d``.

    Example:
        >>> uniform_filter1d([3.0, 0.0, 6.0], 3)
        array([2., 3., 4.])
    """
    x, dtype = prepared("uniform_filter1d", input, output)
    if size < 1:
        raise ShapeError(f"ndimage.uniform_filter1d: size must be positive, got {size}.")
    rank = len(backend.shape_of(x))
    axis, mode, size = one_axis(axis, rank), mode_of("uniform_filter1d", mode), int(size)
    origin = shift_of("uniform_filter1d", origin, size)
    if mode != "constant" or zero(cval):
        return fnp.astype(uniform_axis(x, axis=axis, size=size, mode=mode, origin=origin), dtype)
    lengths = tuple([size if i == axis else 1 for i in range(rank)])
    x, part = _around(x, lengths, tuple([origin if i == axis else 0 for i in range(rank)]), cval)
    return fnp.astype(getitem(uniform_axis(x, axis=axis, size=size, mode=mode, origin=origin), part), dtype)
