"""Standardization of arrays to mean 0 and variance 1, and the sums that it needs, in few passes over the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.kinds import primitive
from funcgrad.kinds.linear import fast_sum, reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.typing import Shape

Axes = tuple[int, ...]

#: Number of elements below which NumPy's sum is fastest.
_FEW = 1_000
#: Number of elements above which NumPy's sum has smaller errors than a product with ones.
_LONG = 4_096
_MULTIPLIED = frozenset(map(np.dtype, ("float32", "float64")))


def sums(x: Any, axis: Axes) -> Any:
    """Return the sums of an ndarray along ``axis``, with the axes kept."""
    if x.size < _FEW or not axis:
        return np.add.reduce(x, axis, keepdims=True)
    if axis == (x.ndim - 1,) and x.shape[-1] <= _LONG and x.dtype in _MULTIPLIED:
        return (x @ np.ones(x.shape[-1], x.dtype))[..., None]
    return fast_sum(x, tuple(sorted(axis))).reshape([1 if i in axis else n for i, n in enumerate(x.shape)])


def sum_of_products(x: Any, y: Any, axis: Axes) -> Any:
    """Return the sums of ``x * y``, ndarrays of one shape, along ``axis``, with the axes kept."""
    if axis == (x.ndim - 1,) and x.dtype in _MULTIPLIED and x.dtype is y.dtype:
        return np.vecdot(x, y)[..., None]
    return sums(x * y, axis)


def sum_of_cotangents(first: Any, second: Any) -> Any:
    """Return the sum of two cotangents of one array; None represents 0."""
    return second if first is None else first if second is None else first + second


def _length(shape: Shape, axis: Axes) -> int:
    return math.prod([shape[i] for i in axis])


def _standardized(xp: Any, x: Any, *, axis: Axes, epsilon: float) -> Any:
    """Return the result and the root; the variance comes from the centred values, without cancellation."""
    x = xp.asarray(x)
    n = _length(x.shape, axis)
    if xp is not np or not x.ndim or not n:
        centred = x - xp.sum(x, axis, keepdims=True) / n
        root = xp.sqrt(xp.sum(centred * centred, axis, keepdims=True) / n + epsilon)
        return centred / root, root
    centred = x - sums(x, axis) / n
    root = sum_of_products(centred, centred, axis)
    root /= n
    root += epsilon
    np.sqrt(root, out=root)
    return np.divide(centred, root, out=centred), root


def _deviation(xp: Any, x: Any, y: Any, z: Any, *, axis: Axes) -> Any:
    n = _length(y.shape, axis)
    if xp is not np or type(x) is not np.ndarray or x.shape != y.shape or not x.ndim or not n:
        along = xp.sum(x * y, axis, keepdims=True) / n
        return (x - xp.sum(x, axis, keepdims=True) / n - y * along) / z
    ans = y * (sum_of_products(x, y, axis) / -n)
    ans += x
    ans -= sums(x, axis) / n
    ans /= z
    return ans


def _mean(x: Any, y: Any, axis: Axes) -> Any:
    """Return the mean of ``x * y``, with the axes kept."""
    return reduce_sum(x * y, axis=axis, keepdims=True) / _length(x.shape, axis)


#: ``deviation(x, y, z, *, axis)``: ``(x - mean(x) - y * mean(x * y)) / z``, where ``z`` has length 1 along ``axis``.
deviation: Operation = primitive(
    "deviation",
    _deviation,
    vjps=[
        lambda ct, y, z, *, axis: deviation(ct, y, z, axis=axis),
        lambda ct, x, y, z, *, axis: -(ct * _mean(x, y, axis) + x * _mean(ct, y, axis)) / z,
        lambda ct, z, ans, *, axis: -reduce_sum(ct * ans, axis=axis, keepdims=True) / z,
    ],
    jvps=[
        lambda t, y, z, *, axis: deviation(t, y, z, axis=axis),
        lambda t, x, y, z, *, axis: -(t * _mean(x, y, axis) + y * _mean(x, t, axis)) / z,
        lambda t, z, ans, *, axis: -t * ans / z,
    ],
    batch="axis",
)


def _standardized_vjp(cts: Any, ans: Any, *, axis: Axes, epsilon: float) -> Any:
    """Return the VJP: the Jacobian of the first result is symmetric, the gradient of the root is ``y / n``."""
    (ct, ct_root), (y, root) = cts, ans
    return sum_of_cotangents(
        None if ct is None else deviation(ct, y, root, axis=axis),
        None if ct_root is None else y * (ct_root / _length(y.shape, axis)),
    )


#: ``standardized(x, *, axis, epsilon)``: ``(x - mean) / root`` and, as a residual, the root of ``variance + epsilon``.
standardized: Operation = primitive(
    "standardized",
    _standardized,
    vjps=[_standardized_vjp],
    jvps=[lambda t, ans, *, axis, epsilon: (deviation(t, *ans, axis=axis), _mean(t, ans[0], axis))],
    batch="axis",
    multiple=True,
    none_for_zero=True,
    residuals=1,
)
