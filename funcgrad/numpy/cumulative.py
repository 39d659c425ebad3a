"""Running sums and products, with variants that ignore NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.axes import means_all_axes, normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.reducing import as_dtype, fill_nan, objects_by_numpy
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import scans
from funcgrad.primitives.shaping import concatenate
from funcgrad.typing import Array, ArrayLike, Axis

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum"]


def _running(
    own: Callable[..., Array], scan: Callable[..., Array], a: ArrayLike, axis: Axis, dtype: Any, out: Any
) -> Array:
    if out is not None:
        return compute_into(own, out, a, axis, dtype=dtype)
    a = as_dtype(as_value(a), dtype)
    shape = backend.shape_of(a)
    if means_all_axes(axis, len(shape)):
        a, along = reshape(a, to=(math.prod(shape),)), 0
    else:
        along = normalize_axis(axis, len(shape))
    return as_dtype(scan(a, axis=along), dtype)


def cumsum(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """Return the running sums along ``axis``, by default of the flattened array.

    Args:
        a: an array.
        axis: the axis, or None to flatten first.
        dtype: the dtype to convert the elements to before adding.
        out: an array for the result.

    Raises:
        numpy.exceptions.AxisError: an axis out of range.

    Example:
        >>> fnp.cumsum([1, 2, 3])
        array([1, 3, 6])
    """
    return _running(cumsum, scans.cumsum, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """Return the running products along ``axis``, by default of the flattened array; arguments as for ``cumsum``.

    The derivatives do not divide by elements, so the derivatives are exact however many elements are zero.

    Example:
        >>> fnp.cumprod([1, 2, 3, 4])
        array([ 1,  2,  6, 24])
    """
    return _running(cumprod, scans.cumprod, a, axis, dtype, out)


def _cumulative(run: Callable[..., Array], x: ArrayLike, axis: Axis, dtype: Any, before: int | None) -> Array:
    x = as_value(x)
    shape = backend.shape_of(x)
    if means_all_axes(axis, len(shape)):
        if len(shape) > 1:
            raise ValueError(
                f"cumulative_{run.__name__[3:]}: an array of {len(shape)} axes needs the one to run along, "
                "got axis=None. Pass axis."
            )
        axis = 0
        x = reshape(x, to=shape or (1,))
    ans = run(x, axis, dtype)
    if before is None:
        return ans
    shape, along = backend.shape_of(ans), normalize_axis(axis, len(backend.shape_of(ans)))
    edge = np.full((*shape[:along], 1, *shape[along + 1 :]), before, backend.dtype_of(ans))
    return concatenate(edge, ans, axis=along)


def cumulative_sum(
    x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """Return the running sums along ``axis``, which is optional for an array of one axis.

    Args:
        x: an array.
        axis: the axis.
        dtype: the dtype to convert the elements to before adding.
        out: an array for the result.
        include_initial: whether to put a 0 before the first sum.

    Raises:
        ValueError: no ``axis`` is given, and ``x`` has more than one.

    Example:
        >>> fnp.cumulative_sum([1, 2, 3], include_initial=True)
        array([0, 1, 3, 6])
    """
    if out is not None:
        return compute_into(cumulative_sum, out, x, axis=axis, dtype=dtype, include_initial=include_initial)
    return _cumulative(cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """Return the running products along ``axis``; arguments as for ``cumulative_sum``, with an initial 1.

    Example:
        >>> fnp.cumulative_prod([2, 3], include_initial=True)
        array([1, 2, 6])
    """
    if out is not None:
        return compute_into(cumulative_prod, out, x, axis=axis, dtype=dtype, include_initial=include_initial)
    return _cumulative(cumprod, x, axis, dtype, 1 if include_initial else None)


@objects_by_numpy
def nancumsum(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """Return the running sums with NaN counted as 0; arguments as for ``cumsum``.

    Example:
        >>> fnp.nancumsum([1.0, float("nan"), 2.0])
        array([1., 1., 3.])
    """
    return cumsum(fill_nan(a, 0), axis, dtype, out)


@objects_by_numpy
def nancumprod(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """Return the running products with NaN counted as 1; arguments as for ``cumprod``.

    Example:
        >>> fnp.nancumprod([2.0, float("nan"), 3.0])
        array([2., 2., 6.])
    """
    return cumprod(fill_nan(a, 1), axis, dtype, out)
