"""Reductions that leave NaN out. Its positions get a gradient of 0; where nothing is left the result is constant."""

from __future__ import annotations

import math
from typing import Any

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.output import into
from funcgrad.numpy.reducing import as_scalar, can_be_nan, weak
from funcgrad.numpy.reductions import all as every
from funcgrad.numpy.reductions import max as largest
from funcgrad.numpy.reductions import mean, prod, var
from funcgrad.numpy.reductions import min as smallest
from funcgrad.numpy.reductions import sum as total
from funcgrad.numpy.scans import cumprod, cumsum
from funcgrad.primitives.comparison import isnan, logical_and, logical_not
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.elementwise import sqrt
from funcgrad.typing import Array, ArrayLike, Axes, Axis, Scalar

__all__ = ["nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]


def _filled(a: ArrayLike, fill: float) -> Array:
    """``a`` with ``fill`` for NaN."""
    a = as_value(a)
    return choose(isnan(a), weak(fill, a), a) if can_be_nan(a) else a


def _selected(a: Array, where: ArrayLike | bool) -> Array | bool:
    """``where``, and not NaN."""
    if not can_be_nan(a):
        return where
    number = logical_not(isnan(a))
    return number if where is True else logical_and(number, as_value(where))


def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    """The sum of the elements that are not NaN, 0 where there is none; arguments as for ``sum``.

    Example:
        >>> fnp.nansum([1.0, float("nan"), 2.0])
        np.float64(3.0)
    """
    return total(_filled(a, 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    """The product of the elements that are not NaN, 1 where there is none; arguments as for ``prod``.

    Example:
        >>> fnp.nanprod([2.0, float("nan"), 3.0])
        np.float64(6.0)
    """
    return prod(_filled(a, 1), axis, dtype, out, keepdims, initial, where)


def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | bool = True,
) -> Array:
    """The mean of the elements that are not NaN, NaN where there is none; arguments as for ``mean``.

    Example:
        >>> fnp.nanmean([1.0, float("nan"), 2.0])
        np.float64(1.5)
    """
    a = as_value(a)
    return mean(a, axis, dtype, out, keepdims, where=_selected(a, where))


def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | bool = True,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The variance of the elements that are not NaN, NaN where there is none; arguments as for ``var``.

    Example:
        >>> fnp.nanvar([1.0, float("nan"), 5.0])
        np.float64(4.0)
    """
    a = as_value(a)
    selected = _selected(a, where)
    return var(a, axis, dtype, out, ddof, keepdims, where=selected, mean=mean, correction=correction)


def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | bool = True,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The standard deviation of the elements that are not NaN, NaN where there is none; arguments as for ``var``.

    Example:
        >>> fnp.nanstd([1.0, float("nan"), 5.0])
        np.float64(2.0)
    """
    if out is not None:
        options = {"where": where, "mean": mean, "correction": correction}
        return into(nanstd, out, a, axis, dtype, ddof=ddof, keepdims=keepdims, **options)
    return sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    """The largest element that is not NaN; NaN where there is none. Arguments and gradient as for ``max``.

    Example:
        >>> fnp.nanmax([1.0, float("nan"), 2.0])
        np.float64(2.0)
    """
    if out is not None:
        return into(nanmax, out, a, axis, keepdims=keepdims, initial=initial, where=where)
    a = as_value(a)
    ans = largest(_filled(a, -math.inf), axis, None, keepdims, initial, where)
    return _or_nan(ans, a, axis, keepdims, initial)


def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    """The smallest element that is not NaN; NaN where there is none. Arguments and gradient as for ``max``.

    Example:
        >>> fnp.nanmin([1.0, float("nan"), 2.0])
        np.float64(1.0)
    """
    if out is not None:
        return into(nanmin, out, a, axis, keepdims=keepdims, initial=initial, where=where)
    a = as_value(a)
    ans = smallest(_filled(a, math.inf), axis, None, keepdims, initial, where)
    return _or_nan(ans, a, axis, keepdims, initial)


def _or_nan(ans: Array, a: Array, axis: Axes, keepdims: bool, initial: Any) -> Array:
    """``ans``, NaN where nothing else was there to compare."""
    if initial is not None or not can_be_nan(a):
        return ans
    return as_scalar(choose(every(isnan(a), axis, None, keepdims), weak(math.nan, ans), ans))


def nancumsum(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """The running sums, NaN counting as 0; arguments as for ``cumsum``.

    Example:
        >>> fnp.nancumsum([1.0, float("nan"), 2.0])
        array([1., 1., 3.])
    """
    return cumsum(_filled(a, 0), axis, dtype, out)


def nancumprod(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """The running products, NaN counting as 1; arguments as for ``cumprod``.

    Example:
        >>> fnp.nancumprod([2.0, float("nan"), 3.0])
        array([2., 2., 6.])
    """
    return cumprod(_filled(a, 1), axis, dtype, out)
