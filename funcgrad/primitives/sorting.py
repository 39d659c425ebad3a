"""Sorting, and the positions of extrema, quantiles and sorted elements.

``axis`` is a non-negative number. Positions are integers, so no derivative passes to them; it passes to the
elements at these positions. Rules sort stably: equal elements keep their order, so their position decides which of
them receives a gradient. NaN is sorted to the end.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import to_batch
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.indexing import add_along_axis, take_along_axis


def _position_of(name: str) -> Any:
    """Return code for the position of the first extremum; JAX lacks the positions of complex extrema."""

    def impl(xp: Any, x: Any, *, axis: int) -> Any:
        if xp is np or backend.dtype_of(x).kind != "c":
            return getattr(xp, name)(x, axis)
        hits, gaps = x == getattr(xp, name.replace("arg", ""))(x, axis, keepdims=True), xp.isnan(x)
        if name.startswith("nan"):
            return xp.where(xp.all(gaps, axis), -1, xp.argmax(hits, axis))
        return xp.argmax(xp.where(xp.any(gaps, axis, keepdims=True), gaps, hits), axis)

    return impl


argmax: Operation = nondifferentiable("argmax", _position_of("argmax"), batch="axis")
argmin: Operation = nondifferentiable("argmin", _position_of("argmin"), batch="axis")
nanargmax: Operation = nondifferentiable("nanargmax", _position_of("nanargmax"), batch="axis")
nanargmin: Operation = nondifferentiable("nanargmin", _position_of("nanargmin"), batch="axis")


def _argsort(xp: Any, x: Any, *, axis: int, kind: Any = "stable") -> Any:
    return np.argsort(x, axis, kind) if xp is np else xp.argsort(x, axis, stable=True)


#: ``argsort(x, *, axis, kind)``: ``kind`` is NumPy's, which decides the order of equal elements; JAX's order is stable.
argsort: Operation = nondifferentiable("argsort", _argsort, batch="axis")

sort: Operation = primitive(
    "sort",
    vjps=[lambda ct, x, shape, *, axis: add_along_axis(ct, argsort(x, axis=axis), axis=axis, shape=shape, unique=True)],
    jvps=[lambda t, x, *, axis: take_along_axis(t, argsort(x, axis=axis), axis=axis, unique=True)],
    batch="axis",
)


def _partition(name: str) -> Any:
    def impl(xp: Any, x: Any, *, kth: int | tuple[int, ...], axis: int) -> Any:
        if xp is np or (isinstance(kth, int) and backend.dtype_of(x).kind != "c"):
            return getattr(xp, name)(x, kth, axis)
        return getattr(xp, name.replace("partition", "sort"))(x, axis)  # a sorted array is partitioned everywhere

    return impl


argpartition: Operation = nondifferentiable("argpartition", _partition("argpartition"), batch="axis")


def _positions_in_source(x: Any, ans: Any, axis: int) -> Any:
    """Return the positions in ``x`` of the elements of ``ans``, its partition; equal elements keep their order."""
    rank = argsort(argsort(ans, axis=axis), axis=axis)
    return take_along_axis(argsort(x, axis=axis), rank, axis=axis)


#: ``partition(x, *, kth, axis)``: ``kth`` is a number or a tuple of numbers.
partition: Operation = primitive(
    "partition",
    _partition("partition"),
    vjps=[
        lambda ct, x, ans, shape, *, kth, axis: add_along_axis(
            ct, _positions_in_source(x, ans, axis), axis=axis, shape=shape, unique=True
        )
    ],
    jvps=[
        lambda t, x, ans, *, kth, axis: take_along_axis(t, _positions_in_source(x, ans, axis), axis=axis, unique=True)
    ],
    batch="axis",
)


def _searchsorted(xp: Any, x: Any, y: Any, *, side: str) -> Any:
    """Apply ``numpy.searchsorted`` to many sorted arrays: ``x[..., n]``, and ``y`` with the same leading axes."""
    x, y = xp.asarray(x), xp.asarray(y)
    if x.ndim == 1:
        return xp.searchsorted(x, y, side=side)
    *outer, n = x.shape
    wanted = y.reshape(*outer, prod(y.shape[len(outer) :]))  # -1 is ambiguous if there are no examples
    low = xp.zeros(wanted.shape, int)
    high = low + n
    for _ in range(n.bit_length()):  # binary search for all at once
        middle = (low + high) // 2
        here = xp.take_along_axis(x, xp.minimum(middle, n - 1), -1)
        first, second = (here, wanted) if side == "left" else (wanted, here)
        smaller = (first < second) | ((second != second) & (first == first))  # NaN is the largest
        further = (smaller if side == "left" else ~smaller) & (low < high)
        low, high = xp.where(further, middle + 1, low), xp.where(further, high, middle)
    return low.reshape(y.shape)


def _searchsorted_batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    x, y = args
    if not batched[0] and len(backend.shape_of(x)) > 1:
        x = to_batch(x, size)
    if not batched[1]:
        y = to_batch(y, size)
    return searchsorted(x, y, **params), True


#: ``searchsorted(x, y, *, side)``: leading axes of ``x``, which ``y`` then has too, hold many arrays.
searchsorted: Operation = nondifferentiable("searchsorted", _searchsorted, batch=_searchsorted_batch)

#: Quantile methods that interpolate, with their plotting position parameters alpha and beta.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def virtual_position(q: Any, n: Any, method: str) -> Any:
    """Return the position of the quantile ``q`` among ``n`` sorted numbers, as a real number counted from 0."""
    if method in ("inverted_cdf", "averaged_inverted_cdf"):
        return q * n - 1
    if method == "closest_observation":
        return q * n - 1 - 0.5
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return q * n + (q * (1 - alpha - beta) + alpha) - 1
    return q * (n - 1)


def _quantile_positions(xp: Any, q: Any, n: Any, *, method: str) -> tuple[Any, Any, Any]:
    position = xp.asarray(virtual_position(xp.asarray(q), n, method))
    low, high = xp.floor(position), xp.ceil(position)
    weight = xp.full(position.shape, 0.5)
    if method == "averaged_inverted_cdf":
        weight, high = xp.where(position == low, 0.5, 1.0), low + 1
    elif method == "lower":
        high = low
    elif method in ("higher", "inverted_cdf"):
        low = high
    elif method == "nearest":
        low = high = xp.round(position)
    elif method == "closest_observation":
        low = high = xp.where((position == low) & (low % 2 == 1), low, low + 1)
    last = xp.maximum(xp.asarray(n) - 1, 0)
    low, high = (xp.minimum(xp.maximum(p, 0), last).astype(int) for p in (low, high))
    return low, high, weight


#: ``quantile_positions(q, n, *, method)``: the positions of the lower and the upper neighbour of the quantile among
#: ``n`` sorted numbers, and, for methods that do not interpolate, the weight of the upper neighbour.
quantile_positions: Operation = nondifferentiable("quantile_positions", _quantile_positions, multiple=True)
