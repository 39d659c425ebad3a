"""Sequences of numbers, and grids made of them."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.concretization import concrete
from funcgrad.numpy.creation import as_value, astype, new
from funcgrad.numpy.creation import copy as copied
from funcgrad.numpy.peeking import is_numpys
from funcgrad.numpy.reducing import as_floating
from funcgrad.numpy.shaping import broadcast_arrays, moveaxis, result_type
from funcgrad.primitives.arithmetic import absolute, power
from funcgrad.primitives.comparison import floor, sign
from funcgrad.primitives.elementwise import exp, log
from funcgrad.typing import Array, ArrayLike, Scalar

__all__ = ["arange", "geomspace", "indices", "linspace", "logspace", "meshgrid"]


numpy: Any = np  # its annotations have no room for values of any kind


def arange(
    start_or_stop: Scalar, /, stop: Scalar | None = None, step: Scalar = 1, *, dtype: Any = None, device: Any = None
) -> Array:
    """Numbers from ``start`` to before ``stop``, ``step`` apart.

    The derivative flows to a traced ``start`` and ``step``. ``stop`` decides how many numbers there are,
    nothing else: its derivative is zero.

    Args:
        start_or_stop: the first number; ``stop`` when it is the only argument, and the first is 0.
        stop: where to end.
        step: the difference.
        dtype: the dtype, by default that of NumPy's promotion.
        device: as NumPy.

    Raises:
        ConcretizationError: a bound that is batched, so that the examples of a ``vmap`` might differ in length.

    Example:
        >>> fnp.arange(1.0, 3.0, 0.5)
        array([1. , 1.5, 2. , 2.5])
    """
    start, end = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    bounds = [start, end, step]
    if is_numpys(*bounds):
        return new(numpy.arange(start, end, step, dtype, device=device))
    plain = numpy.arange(*[_number(b) for b in bounds], dtype)
    if plain.dtype.kind not in "fc" or is_numpys(start, step):
        return new(plain)
    counts = np.arange(plain.size, dtype=plain.dtype)
    if dtype is None and backend.library_of(start + step) is not np:  # NumPy makes a float64 of every float
        counts = counts.astype(result_type(*bounds))
    return astype(start + step * counts, counts.dtype)


def _number(x: Any) -> Any:
    """The plain number of a bound; refused where the examples of a vmap have different ones."""
    x = concrete(x, "arange")
    # a JAX tracer that has a value gives it as a number only
    return x if namespace_of(x) is np else np.asarray(x.item(), x.dtype)[()]


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """``num`` numbers from ``start`` to ``stop``, evenly spaced; the derivative flows to both.

    Args:
        start: the first number, or an array of them.
        stop: the last number, or an array of them.
        num: how many.
        endpoint: whether ``stop`` is the last one; else it would come next.
        retstep: whether the distance between neighbours is returned, too.
        dtype: the dtype; an integer's rounds down, and has no derivative.
        axis: where the numbers stand in the result when the bounds are arrays.
        device: as NumPy.

    Raises:
        ValueError: a negative ``num``.

    Example:
        >>> fnp.linspace(0.0, 1.0, 5)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    num = operator.index(num)
    start, stop = as_value(start), as_value(stop)
    if is_numpys(start, stop):
        found = numpy.linspace(start, stop, num, endpoint, retstep, dtype, axis, device=device)
        return (new(found[0]), found[1]) if retstep else new(found)
    weights, intervals, inexact = _weights(num, endpoint, start, stop)
    start, stop = as_floating(start), as_floating(stop)
    made = start * (1 - weights) + stop * weights
    made = _finished(made, inexact if dtype is None else np.dtype(dtype), axis)
    if not retstep:
        return made
    return made, astype((stop - start) / intervals, inexact) if intervals > 0 else float("nan")


def _weights(num: int, endpoint: bool, *bounds: Array) -> tuple[np.ndarray, int, Any]:
    """How far along each number stands, as a column before the bounds; the number of steps; the dtype."""
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    intervals = num - 1 if endpoint else num
    inexact = np.dtype(result_type(*bounds, float(num)))
    rank = max([len(backend.shape_of(b)) for b in bounds])
    real = np.zeros(0, inexact).real.dtype
    weights = (np.arange(num) / max(intervals, 1)).astype(real).reshape(-1, *(1,) * rank)
    return weights, intervals, inexact


def _finished(made: Array, dtype: Any, axis: int) -> Array:
    if dtype.kind in "iu":
        made = floor(made)
    made = astype(made, dtype)
    return moveaxis(made, 0, axis) if axis != 0 else made


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """``base ** linspace(start, stop)``; the derivative flows to ``start``, ``stop`` and ``base``.

    Args:
        start: the first exponent, or an array of them.
        stop: the last exponent, or an array of them.
        num: how many.
        endpoint: whether ``stop`` is the last exponent.
        base: the base, or an array of them.
        dtype: the dtype of the result.
        axis: where the numbers stand in the result when the bounds are arrays.

    Example:
        >>> fnp.logspace(0.0, 2.0, 3)
        array([  1.,  10., 100.])
    """
    start, stop, base = as_value(start), as_value(stop), as_value(base)
    if is_numpys(start, stop, base):
        return numpy.logspace(start, stop, num, endpoint, base, dtype, axis)
    if backend.shape_of(base):
        start, stop, base = broadcast_arrays(start, stop, base)
    made = power(base, linspace(start, stop, num, endpoint))
    return _finished(made, backend.dtype_of(made) if dtype is None else np.dtype(dtype), axis)


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Array:
    """``num`` numbers from ``start`` to ``stop``, each the same multiple of the one before.

    The derivative flows to both bounds. Real bounds of different signs give NaN, complex ones a spiral.

    Args:
        start: the first number, not zero, or an array of them.
        stop: the last number, not zero, or an array of them.
        num: how many.
        endpoint: whether ``stop`` is the last one.
        dtype: the dtype of the result.
        axis: where the numbers stand in the result when the bounds are arrays.

    Raises:
        ValueError: a NumPy bound that is zero, a negative ``num``.

    Example:
        >>> fnp.geomspace(1.0, 8.0, 4)
        array([1., 2., 4., 8.])
    """
    start, stop = as_value(start), as_value(stop)
    if is_numpys(start, stop):
        return numpy.geomspace(start, stop, num, endpoint, dtype, axis)
    inexact = np.dtype(result_type(start, stop, 1.0))
    if dtype is not None or backend.library_of(start) is backend.library_of(stop) is np:
        inexact = np.result_type(inexact, np.dtype(dtype))  # NumPy computes in float64 at least
    start, stop = astype(start, inexact), astype(stop, inexact)
    weights, _, _ = _weights(operator.index(num), endpoint, start, stop)
    if inexact.kind == "c":
        made = start * exp(log(stop / start) * weights)
    else:
        side = sign(start)
        made = side * exp(log(absolute(start)) * (1 - weights) + log(stop * side) * weights)
    return _finished(made, inexact if dtype is None else np.dtype(dtype), axis)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """The coordinates of the points of a grid, one array for each axis.

    Args:
        *xi: the coordinates along each axis.
        copy: whether the arrays have memory of their own.
        sparse: whether each array has length 1 along the axes where it does not vary.
        indexing: "xy" for rows that are the second coordinate, "ij" for axes in the order of ``xi``.

    Raises:
        ValueError: another ``indexing``.

    Example:
        >>> fnp.meshgrid([1, 2], [3, 4], indexing="ij")
        (array([[1, 1],
               [2, 2]]), array([[3, 4],
               [3, 4]]))
    """
    values = [as_value(x) for x in xi]
    if is_numpys(*values):
        return tuple(numpy.meshgrid(*values, copy=copy, sparse=sparse, indexing=indexing))
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(values)
    places = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    sizes = [prod(backend.shape_of(x)) for x in values]
    open_grid = [
        reshape(x, to=tuple([n if i == p else 1 for i in range(rank)]))
        for x, n, p in zip(values, sizes, places, strict=True)
    ]
    whole = tuple(open_grid) if sparse else broadcast_arrays(*open_grid)
    return tuple([copied(x, "C") for x in whole]) if copy else whole


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The positions of all elements of an array of shape ``dimensions``, one array for each axis.

    Example:
        >>> fnp.indices((2, 2))[1]
        array([[0, 1],
               [0, 1]])
    """
    return numpy.indices(dimensions, dtype, sparse)
