"""Medians, percentiles and quantiles.

All functions read sorted positions, so the derivative goes to the elements at these positions with the weights of
the interpolation; equal elements keep their order. If an element is NaN, the result is NaN and constant: the
gradient is 0. Functions with names that begin with "nan" ignore such elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe, plain_value
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to, permute, reshape
from funcgrad.numpy.axes import keepdims_shape
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.layout import in_memory_order
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.numpy.reducing import (
    aligned_weights,
    as_dtype,
    as_scalar,
    can_be_nan,
    keeping_dtype,
    merge_axes,
    objects_by_numpy,
    split_axes,
)
from funcgrad.numpy.reductions import mean, nanmean
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives.arithmetic import add, divide, multiply, subtract
from funcgrad.primitives.comparison import equal, greater_equal, isnan, logical_not
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.reductions import count_nonzero, reduce_any
from funcgrad.primitives.scans import cumsum
from funcgrad.primitives.sorting import argsort, quantile_positions, searchsorted, virtual_position
from funcgrad.typing import Array, ArrayLike, Axes, Shape

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_NO_INTERPOLATION = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_FIXED_WEIGHT = ("midpoint", "averaged_inverted_cdf")
_INTERPOLATION = "linear interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
_METHODS = (*_INTERPOLATION.split(), *_FIXED_WEIGHT, *_NO_INTERPOLATION)


def _in_numpy_shape(ans: Array, a: Array, axis: Axes, keepdims: bool, before: Shape = ()) -> Array:
    """Return ``ans``, one number for each lane of ``a`` and each quantile, in NumPy's shape.

    ``ans`` has the remaining axes and one trailing axis for all quantiles, whose axes ``before`` come first in the end.
    """
    shape = backend.shape_of(a)
    stay, axes = split_axes(shape, axis)
    rank = len(stay)
    if before:
        ans = permute(ans, axes=(rank, *range(rank)))
    rest = keepdims_shape(shape, axes) if keepdims else tuple([shape[i] for i in stay])
    ans = reshape(ans, to=(*before, *rest))
    if isinstance(ans, Tracer):
        ans = in_memory_order(ans, "C")
    return ans if keepdims else as_scalar(ans)


def _sorted_elements(lanes: Array, order: Array, places: Any) -> Array:
    """Return the elements at the positions ``places`` of the sorted lanes."""
    last = len(backend.shape_of(lanes)) - 1
    return take_along_axis(lanes, take_along_axis(order, places, axis=last), axis=last)


def _lanes(name: str, a: Array, axis: Axes) -> tuple[Array, Array]:
    """Return the elements with reduced axes merged into the last axis, and the positions that sort this axis."""
    lanes = merge_axes(a, axis)
    if backend.dtype_of(a).kind == "c" and name != "median":
        raise InputError(f"{name}: complex numbers do not interpolate, got {describe(a)}. Pass real numbers.")
    return lanes, argsort(lanes, axis=len(backend.shape_of(lanes)) - 1)


def _propagate_nan(ans: Array, lanes: Array) -> Array:
    """Return ``ans`` with NaN for lanes that contain NaN."""
    if not can_be_nan(lanes):
        return ans
    shape = backend.shape_of(lanes)
    bad = reduce_any(isnan(lanes), axis=(len(shape) - 1,))
    return choose(reshape(bad, to=(*shape[:-1], 1)), keeping_dtype(math.nan, ans), ans)


def _count_non_nan(lanes: Array) -> Array:
    """Return how many elements of each lane are not NaN; keep the axis of the lane."""
    shape = backend.shape_of(lanes)
    n = count_nonzero(logical_not(isnan(lanes)), axis=(len(shape) - 1,))
    return reshape(n, to=(*shape[:-1], 1))


def median(
    a: ArrayLike, axis: Axes = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return the median of the elements along ``axis``, by default of all.

    Args:
        a: an array.
        axis: one axis, several, or None for all.
        out: an array for the result.
        overwrite_input: accepted for compatibility with NumPy; the input is never written to.
        keepdims: keep the reduced axes, with length 1.

    Raises:
        numpy.exceptions.AxisError: an axis out of range.

    Example:
        >>> fnp.median([1.0, 4.0, 2.0, 10.0])
        np.float64(3.0)
    """
    if out is not None:
        return compute_into(median, out, a, axis, overwrite_input=overwrite_input, keepdims=keepdims)
    a = as_value(a)
    lanes, order = _lanes("median", a, axis)
    *outer, n = backend.shape_of(lanes)
    middle = np.arange((n - 1) // 2, n // 2 + 1) if n else np.arange(0)
    ans = mean(_sorted_elements(lanes, order, middle.reshape(*[1] * len(outer), -1)), -1, keepdims=True)
    return _in_numpy_shape(_propagate_nan(ans, lanes), a, axis, keepdims)


@objects_by_numpy
def nanmedian(
    a: ArrayLike, axis: Axes = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """Return the median of the elements that are not NaN, NaN if all are NaN; arguments as for ``median``.

    Example:
        >>> fnp.nanmedian([1.0, float("nan"), 4.0, 2.0])
        np.float64(2.0)
    """
    a = as_value(a)
    if not can_be_nan(a):
        return median(a, axis, out, overwrite_input, keepdims)
    if 0 in backend.shape_of(a):
        return nanmean(a, axis, None, out, keepdims)
    if out is not None:
        return compute_into(nanmedian, out, a, axis, overwrite_input=overwrite_input, keepdims=keepdims)
    lanes, order = _lanes("median", a, axis)
    n = _count_non_nan(lanes)
    low, high, _ = quantile_positions(0.5, n, method="midpoint")
    lower, upper = _sorted_elements(lanes, order, low), _sorted_elements(lanes, order, high)
    middle = choose(equal(low, high), lower, divide(add(lower, upper), 2))
    return _in_numpy_shape(choose(equal(n, 0), keeping_dtype(math.nan, middle), middle), a, axis, keepdims)


@function_table
def _quantiles(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute the function ``name`` of the table below."""
    if out is not None:
        return compute_into(globals()[name], out, a, q, axis, method=method, keepdims=keepdims, weights=weights)
    if method not in _METHODS:
        raise ValueError(f"{name}: no method of that name, got {method!r}. Use one of {', '.join(_METHODS)}.")
    a, ignores_nan = as_value(a), name.startswith("nan")
    if ignores_nan and 0 in backend.shape_of(a):
        return nanmean(a, axis, keepdims=keepdims)  # like NumPy, without checking q
    python = type(plain_value(q)) in (int, float)  # such a number does not promote its operand
    scale = 100 if name.endswith("percentile") else 1
    q = as_value(q) if scale == 1 else divide(as_value(q), scale)
    if any_true(lambda q: ~((q >= 0) & (q <= 1)), q):
        raise ValueError(f"{name}: q must be in the range [0, {scale}]")
    before = backend.shape_of(q)
    q = reshape(q, to=(math.prod(before),))
    lanes, order = _lanes(name, a, axis)
    skip = ignores_nan and can_be_nan(a)
    if weights is not None:
        spread = broadcast_to(aligned_weights(as_value(weights), a, axis), to=backend.shape_of(a))
        ans = _weighted(name, lanes, order, q, method, merge_axes(spread, axis), skip)
    else:
        ans = _interpolate(lanes, order, q, method, python, skip)
    return _in_numpy_shape(ans if skip else _propagate_nan(ans, lanes), a, axis, keepdims, before)


# fmt: off
quantile = _quantiles("quantile", """The quantiles ``q`` of the elements along ``axis``, by default of all.

    If ``method`` interpolates, ``q`` has a derivative too; at a sorted position that derivative is 0.

    Args:
        a: an array of real numbers.
        q: which quantiles to compute, from 0 to 1; the axes of ``q`` come first in the result.
        axis: one axis, several, or None for all.
        out: an array for the result.
        overwrite_input: accepted for compatibility with NumPy; the input is never written to.
        method: NumPy's name of the interpolation method.
        keepdims: keep the reduced axes, with length 1.
        weights: how often each element counts, in the shape of ``a`` or the length of ``axis``; only with
            ``method="inverted_cdf"``. Weights have no derivative.

    Raises:
        ValueError: ``q`` is out of range, ``method`` is unknown or does not support weights.
        TypeError: ``a`` is complex.""", "fnp.quantile([1.0, 2.0, 4.0], 0.75)", "np.float64(3.0)")
percentile = _quantiles("percentile", "The percentiles ``q``, from 0 to 100; otherwise as ``quantile``.",
    "fnp.percentile([1.0, 2.0, 4.0], 75)", "np.float64(3.0)")
nanquantile = objects_by_numpy(_quantiles("nanquantile",
    "The quantiles of the elements that are not NaN, or NaN if all are NaN; arguments as for ``quantile``.",
    'fnp.nanquantile([1.0, float("nan"), 2.0, 4.0], 0.75)', "np.float64(3.0)"))
nanpercentile = objects_by_numpy(_quantiles("nanpercentile",
    "The percentiles, from 0 to 100, of the elements that are not NaN; otherwise as ``nanquantile``.",
    'fnp.nanpercentile([1.0, float("nan"), 2.0, 4.0], 75)', "np.float64(3.0)"))
# fmt: on


def _interpolate(lanes: Array, order: Array, q: Array, method: str, python: bool, skip: bool) -> Array:
    """Return the quantiles of each lane along the last axis; ``skip`` leaves NaN out."""
    rank = len(backend.shape_of(lanes))
    n = _count_non_nan(lanes) if skip else backend.shape_of(lanes)[-1]
    q = reshape(q, to=(*(1,) * (rank - 1), *backend.shape_of(q)))
    dtype = backend.dtype_of(q)
    n = as_dtype(n, dtype) if skip and dtype.kind == "f" else n
    low, high, weight = quantile_positions(q, n, method=method)
    ans = lower = _sorted_elements(lanes, order, low)
    if method not in _NO_INTERPOLATION and (method != "linear" or dtype.kind == "f"):
        upper = _sorted_elements(lanes, order, high)
        if method not in _FIXED_WEIGHT:
            weight = subtract(virtual_position(q, n, method), low)
        if dtype.kind in "biu":
            dtype = np.result_type(dtype, np.float16)
        weight = as_dtype(weight, backend.dtype_of(lanes) if python and can_be_nan(lanes) else dtype)
        distance = subtract(upper, lower)
        # from the nearer side, so that rounding cannot leave the interval
        from_above = subtract(upper, multiply(distance, subtract(1, weight)))
        ans = choose(greater_equal(weight, 0.5), from_above, add(lower, multiply(distance, weight)))
    return choose(equal(n, 0), keeping_dtype(math.nan, ans), ans) if skip else ans


def _weighted(name: str, lanes: Array, order: Array, q: Array, method: str, weights: Array, skip: bool) -> Array:
    """Return the first element at which the running sum of the weights reaches the share ``q`` of all weights."""
    if method != "inverted_cdf":
        raise ValueError(f"{name}: only method 'inverted_cdf' supports weights, got {method!r}.")
    if any_true(lambda w: w < 0, weights):
        raise ValueError(f"{name}: weights must be non-negative.")
    if skip:
        weights = choose(isnan(lanes), 0, weights)
    *outer, n = backend.shape_of(lanes)
    last = len(outer)
    running = cumsum(take_along_axis(as_dtype(weights, np.float64), order, axis=last), axis=last)
    share = divide(running, take_along_axis(running, np.full((*[1] * last, 1), n - 1), axis=last))
    share = as_dtype(choose(equal(share, 0), -1, share), backend.dtype_of(q))  # leading weights of 0 never match
    wanted = broadcast_to(q, to=(*outer, *backend.shape_of(q)))
    if any_true(lambda share: share != share, share):
        raise ValueError(f"{name}: weights included NaN, inf or were all zero.")
    places = searchsorted(share, wanted, side="left")
    ans = _sorted_elements(lanes, order, choose(greater_equal(places, n), n - 1, places))
    return choose(equal(_count_non_nan(lanes), 0), keeping_dtype(math.nan, ans), ans) if skip else ans
