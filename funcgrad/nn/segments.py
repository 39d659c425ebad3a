"""Reductions over segments, which are rows with the same number. Names and arguments agree with ``jax.ops``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.kinds.linear import astype, reshape
from funcgrad.nn.narrow import floating
from funcgrad.nn.operations.segments import segment_extremum, segment_total
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import with_signature_of
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.sorting import argsort, searchsorted
from funcgrad.primitives.comparison import equal, greater_equal, less, logical_or, where
from funcgrad.primitives.indexing import getitem
from funcgrad.typing import Array, ArrayLike

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"]


def _numbered(
    call: str,
    data: Array,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
) -> tuple[Array, int]:
    """Return the segment numbers, with ``num_segments`` for rows in no segment, and the number of segments."""
    ids = as_value(segment_ids)
    if backend.dtype_of(ids).kind not in "iub":
        raise InputError(f"{call}: segment_ids must be integers, got {describe(ids)}. Convert them.")
    if not backend.shape_of(data) or backend.shape_of(ids) != backend.shape_of(data)[:1]:
        raise ShapeError(
            f"{call}: segment_ids must have a number for each row of data, got {describe(ids)} for {describe(data)}. "
            "The rows are along the first axis."
        )
    if num_segments is None:
        if isinstance(ids, Tracer) or backend.is_jax_tracer(ids):
            raise ConcretizationError(
                f"{call}: the number of segments depends on values that are not known here, got {describe(ids)}. "
                "Pass num_segments."
            )
        num_segments = int(np.asarray(ids).max(initial=-1)) + 1
    if num_segments < 0:
        raise ShapeError(f"{call}: num_segments must not be negative, got {num_segments}. Pass their number.")
    outside = logical_or(less(ids, 0), greater_equal(ids, num_segments))
    if type(outside) is np.ndarray and not outside.any():
        return ids, num_segments
    return where(outside, num_segments, ids), num_segments


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
) -> Array:
    """Sum the rows of ``data`` that have the same number.

    Args:
        data: an array; its rows are along the first axis.
        segment_ids: an integer for each row. Rows with a negative or too large integer belong to no segment.
        num_segments: the number of segments; by default one more than the largest of ``segment_ids``.
        indices_are_sorted: accepted for compatibility with JAX, and ignored.
        unique_indices: accepted for compatibility with JAX, and ignored.
        bucket_size: accepted for compatibility with JAX, and ignored.

    Raises:
        InputError: ``segment_ids`` are not integers (a ``TypeError``).
        ShapeError: ``segment_ids`` has not one integer for each row (a ``ValueError``).
        ConcretizationError: the numbers are traced and ``num_segments`` is not given.

    Example:
        >>> fnn.segment_sum([1.0, 2.0, 4.0], [0, 1, 0])
        array([5., 2.])
    """
    data = as_value(data)
    return segment_total(data, *_numbered("segment_sum", data, segment_ids, num_segments))


@with_signature_of(segment_sum)
def segment_mean(data: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Compute the means of the rows with the same number, 0 for no rows; arguments as for ``segment_sum``.

    Example:
        >>> fnn.segment_mean([1.0, 2.0, 4.0], [0, 2, 0])
        array([2.5, 0. , 2. ])
    """
    data = floating(data)
    ids, count = _numbered("segment_mean", data, *args, **kwargs)
    sizes = segment_total(np.ones(backend.shape_of(data)[0]), ids, count)
    sizes = reshape(where(equal(sizes, 0), 1.0, sizes), to=(count,) + (1,) * (len(backend.shape_of(data)) - 1))
    return segment_total(data, ids, count) / astype(sizes, to=backend.dtype_of(data))


@with_signature_of(segment_sum)
def segment_max(data: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Compute the maxima of the rows with the same number; arguments as for ``segment_sum``.

    Ties share the derivative: each of k equal rows gets 1/k. The maximum of no rows is -inf, or the least integer.

    Example:
        >>> fnn.segment_max([1.0, 2.0, 4.0], [0, 1, 0])
        array([4., 2.])
    """
    data = as_value(data)
    ids, count = _numbered("segment_max", data, *args, **kwargs)
    return segment_extremum(data, ids, count=count, name="maximum")


@with_signature_of(segment_sum)
def segment_min(data: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Compute the minima of rows with the same number; arguments as for ``segment_sum``, ties as in ``segment_max``.

    The minimum of no rows is inf, or the largest integer.

    Example:
        >>> fnn.segment_min([1.0, 2.0, 4.0], [0, 1, 0])
        array([1., 2.])
    """
    data = as_value(data)
    ids, count = _numbered("segment_min", data, *args, **kwargs)
    return segment_extremum(data, ids, count=count, name="minimum")


@with_signature_of(segment_sum)
def segment_prod(data: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Compute the products of the rows with the same number, 1 for no rows; arguments as for ``segment_sum``.

    Derivatives of every order are exact, however many rows are zero, because nothing is divided.

    Example:
        >>> fnn.segment_prod([3.0, 2.0, 4.0], [0, 1, 0])
        array([12.,  2.])
    """
    data = as_value(data)
    ids, count = _numbered("segment_prod", data, *args, **kwargs)
    n, *rest = backend.shape_of(data)
    ones: Any = np.ones((count, *rest), backend.dtype_of(data))
    if not n:
        return ones
    order = argsort(ids, stable=True)
    ids, rows = getitem(ids, order), getitem(data, order)
    for step in [2**k for k in range(math.ceil(math.log2(n)))]:
        # each row is the product of up to ``step`` rows of its segment up to itself, then of twice as many
        same = equal(getitem(ids, slice(step, None)), getitem(ids, slice(0, n - step)))
        factors = where(_as_column(same, rows), getitem(rows, slice(0, n - step)), ones.dtype.type(1))
        rows = concatenate([getitem(rows, slice(0, step)), getitem(rows, slice(step, None)) * factors])
    ends = searchsorted(ids, np.arange(count), side="right") - 1
    last = where(less(ends, 0), 0, ends)
    there = equal(getitem(ids, last), np.arange(count))
    return where(_as_column(there, rows), getitem(rows, last), ones)


def _as_column(x: Array, rows: Array) -> Array:
    """Reshape ``x``, a value for each row, so that it broadcasts with ``rows``."""
    return reshape(x, to=(*backend.shape_of(x), *(1,) * (len(backend.shape_of(rows)) - 1)))
