"""Sums, products, means, variances, extrema and counts, with variants that ignore NaN.

Elements that are ignored because they are NaN get a gradient of 0. If no element remains, the result is constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import broadcast_to, conj, real, reduce_sum
from funcgrad.numpy.axes import ALL_AXES, normalize_axes
from funcgrad.numpy.creation import as_value, copy
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.numpy.reducing import (
    aligned_weights,
    as_dtype,
    as_floating,
    as_scalar,
    can_be_nan,
    count_of_elements,
    fill_nan,
    fill_where_false,
    identity_of_extremum,
    keeping_dtype,
    objects_by_numpy,
    reduce_axes,
)
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import reductions
from funcgrad.primitives.arithmetic import add, divide, maximum, minimum, multiply, subtract
from funcgrad.primitives.comparison import isnan, logical_and, logical_not, logical_or
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.elementwise import sqrt
from funcgrad.typing import Array, ArrayLike, Axes, Scalar
from funcgrad.writable import is_selection

__all__ = [
    "all", "amax", "amin", "any", "average", "count_nonzero", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
    "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
]  # fmt: skip


_HALF = np.dtype(np.float16)


def _combine_initial(initial: ArrayLike, ans: Array, join: Callable[..., Any]) -> Array:
    return join(ans, _checked_initial(initial, backend.dtype_of(ans)))


def _checked_initial(initial: ArrayLike, dtype: Any) -> Array:
    """Convert ``initial`` to ``dtype``; raise an error if NumPy would not accept it."""
    value = as_value(initial)
    if backend.shape_of(value):
        raise ShapeError(f"initial must be one number, got {describe(value)}. Combine it with the result instead.")
    if backend.dtype_of(value).kind == "c" and dtype.kind != "c":
        raise InputError(f"initial must fit the dtype {dtype}, got {describe(value)}. Pass dtype=complex as well.")
    if type(value) in (int, float) and dtype.kind in "iu":
        info, whole = np.iinfo(dtype), int(value)
        if not info.min <= whole <= info.max:
            raise OverflowError(f"Python integer {whole} out of bounds for {dtype}")
    return as_dtype(value, dtype)


def sum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    """Return the sum of the elements along ``axis``, by default of all.

    Args:
        a: an array. Booleans are counted; small integers are added as 64-bit integers.
        axis: one axis, several, or None for all.
        dtype: the dtype to convert the elements to before adding.
        out: an array for the result.
        keepdims: keep the reduced axes, with length 1.
        initial: a number added to every sum.
        where: a mask that broadcasts to the shape of ``a`` and selects the elements to add.

    Raises:
        numpy.exceptions.AxisError: an axis out of range.
        ValueError: an axis named twice; a mask that does not fit.

    Example:
        >>> fnp.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
        array([4., 6.])
    """
    if out is not None:
        return compute_into(sum, out, a, axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    traced = isinstance(a, Tracer)
    if not traced and is_selection(a):
        return a.reduced(sum, axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    a = a if traced else as_value(a)
    if where is True and dtype is None:
        if not keepdims and initial is None:
            known = a.aval if traced else None  # the shape, for an array of doubles
            rank = len(known if type(known) is tuple else a.shape if traced else backend.shape_of(a))
            return reduce_sum(a, axis=ALL_AXES[rank] if axis is None else normalize_axes(axis, rank, of_numbers=True))
        ans = reduce_axes(reduce_sum, a, axis, keepdims)
    else:
        ans = as_dtype(reduce_axes(reduce_sum, fill_where_false(as_dtype(a, dtype), where, 0), axis, keepdims), dtype)
    return ans if initial is None else _combine_initial(initial, ans, add)


def prod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    """Return the product of the elements along ``axis``, by default of all; arguments as for ``sum``.

    The derivatives do not divide by elements, so the derivatives are exact however many elements are zero.

    Example:
        >>> fnp.prod([1.0, 2.0, 4.0])
        np.float64(8.0)
    """
    if out is not None:
        return compute_into(prod, out, a, axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    if is_selection(a):
        return a.reduced(prod, axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    a = fill_where_false(as_dtype(as_value(a), dtype), where, 1)
    ans = as_dtype(reduce_axes(reductions.reduce_prod, a, axis, keepdims), dtype)
    return ans if initial is None else _combine_initial(initial, ans, multiply)


def mean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | bool = True,
) -> Array:
    """Return the arithmetic mean of the elements along ``axis``, by default of all; arguments as for ``sum``.

    Integers are averaged as floating-point numbers; float16 is added in float32. The mean of no elements is NaN.

    Example:
        >>> fnp.mean([1, 2, 6])
        np.float64(3.0)
    """
    if out is not None:
        return compute_into(mean, out, a, axis, dtype=dtype, keepdims=keepdims, where=where)
    if type(a) is not Tracer and is_selection(a):
        return a.reduced(mean, axis, dtype=dtype, keepdims=keepdims, where=where)
    a = as_value(a)
    have = backend.dtype_of(a)
    if dtype is not None:
        a = as_dtype(a, dtype)
    elif have.kind in "iub":
        a = as_floating(a)
    elif have == _HALF:
        return as_dtype(mean(a, axis, np.float32, None, keepdims, where=where), np.float16)
    if where is True and not keepdims:
        shape = backend.shape_of(a)
        axes = normalize_axes(axis, len(shape))
        ans = reduce_sum(a, axis=axes) / math.prod([shape[i] for i in axes] if axis is not None else shape)
        return ans if dtype is None else as_dtype(ans, dtype)
    total = reduce_axes(reduce_sum, fill_where_false(a, where, 0), axis, keepdims)
    return as_dtype(total / _divisor(count_of_elements(a, axis, where, keepdims), total), dtype)


def _divisor(n: Any, total: Array) -> Any:
    """Return the count ``n`` in a form that leaves the dtype of ``total`` unchanged when dividing."""
    return n if type(n) is int else as_dtype(n, real(total).dtype)


def var(
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
    """Return the variance (mean squared distance from the mean) along ``axis``, by default of all elements.

    The variance of complex elements is real. If all elements are equal, the gradient is 0.

    Args:
        a: an array.
        axis: one axis, several, or None for all.
        dtype: the dtype to convert the elements to first.
        out: an array for the result.
        ddof: the sum of squares is divided by the number of elements minus ``ddof``, which may be traced.
        keepdims: keep the reduced axes, with length 1.
        where: a mask that broadcasts to the shape of ``a`` and selects the elements to use.
        mean: the mean, if it is known, with the reduced axes kept.
        correction: another name for ``ddof``.

    Raises:
        ValueError: both ``ddof`` and ``correction`` are given.
        InputError: an integer ``dtype``, in which NumPy truncates the mean and each square.

    Example:
        >>> fnp.var([1.0, 3.0, 5.0, 7.0])
        np.float64(5.0)
    """
    if out is not None:
        options = {"where": where, "mean": mean, "correction": correction}
        return compute_into(var, out, a, axis, dtype, ddof=ddof, keepdims=keepdims, **options)
    if type(a) is not Tracer and is_selection(a):
        options = {"ddof": ddof, "keepdims": keepdims, "where": where, "mean": mean, "correction": correction}
        return a.reduced(var, axis, dtype=dtype, **options)
    if correction is None:
        correction = ddof
    elif ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    given: Any = correction
    if isinstance(given, Tracer):
        whole = var(a, axis, dtype, None, 0, keepdims, where=where, mean=mean)
        n = count_of_elements(as_value(a), axis, where, keepdims)
        return as_dtype(multiply(whole, divide(n, maximum(subtract(n, given), 0))), backend.dtype_of(whole))
    a = as_value(a)
    if dtype is not None and np.dtype(dtype).kind not in "fcV":  # bfloat16 is of kind V
        raise InputError(
            f"var, std: dtype must be a floating-point one, got {np.dtype(dtype)}. Leave it out and convert the result."
        )
    if dtype is not None and "c" in (backend.dtype_of(a).kind, np.dtype(dtype).kind):
        a, mean = _in_complex(a, axis, dtype, where, mean)
        return as_dtype(var(a, axis, None, None, 0, keepdims, where=where, mean=mean, correction=correction), dtype)
    a = as_dtype(a, dtype)
    if where is True and mean is None:
        return reduce_axes(reductions.reduce_var, a, axis, keepdims, correction=correction)
    a = as_floating(a)
    if mean is None:
        total = reduce_axes(reduce_sum, fill_where_false(a, where, 0), axis, True)
        mean = divide(total, _divisor(count_of_elements(a, axis, where, True), total))
    distance = fill_where_false(subtract(a, as_value(mean)), where, 0)
    if backend.dtype_of(distance).kind == "c":
        squares = real(multiply(distance, conj(distance)))
    else:
        squares = multiply(distance, distance)
    total = reduce_axes(reduce_sum, squares, axis, keepdims)
    n = count_of_elements(a, axis, where, keepdims)
    if where is True:
        return total / (n - correction if n > correction else 0)
    return divide(total, maximum(subtract(_divisor(n, total), correction), 0))


def _in_complex(a: Array, axis: Axes, dtype: Any, where: Any, mean: Any) -> tuple[Array, Any]:
    """Convert ``a`` and its mean as NumPy does for a variance in ``dtype`` if ``a`` or ``dtype`` is complex."""
    if np.dtype(dtype).kind == "c":
        same = backend.dtype_of(a).kind == "c"
        return as_dtype(a, dtype if same else np.dtype(dtype).type().real.dtype), mean
    if mean is None:  # only the mean is real; the distances from the mean stay complex
        mean = divide(sum(a, axis, dtype, keepdims=True, where=where), count_of_elements(a, axis, where, True))
    return a, mean


def std(
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
    """Return the standard deviation of the elements along ``axis``, by default of all; arguments as for ``var``.

    If all elements are equal, the gradient is NaN.

    Example:
        >>> fnp.std([1.0, 5.0])
        np.float64(2.0)
    """
    if out is not None:
        options = {"where": where, "mean": mean, "correction": correction}
        return compute_into(std, out, a, axis, dtype, ddof=ddof, keepdims=keepdims, **options)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


@function_table
def _extremum(
    name: str,
    a: ArrayLike,
    axis: Axes = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    operation, join = (reductions.reduce_max, maximum) if name == "max" else (reductions.reduce_min, minimum)
    if out is not None:
        return compute_into(globals()[name], out, a, axis, keepdims=keepdims, initial=initial, where=where)
    if type(a) is not Tracer and is_selection(a):
        return a.reduced(globals()[name], axis, keepdims=keepdims, initial=initial, where=where)
    a = as_value(a)
    if initial is None:
        if where is not True:
            raise ValueError(f"{name}: with a mask nothing may remain, so where=... needs initial=... as well.")
        return reduce_axes(operation, a, axis, keepdims)
    dtype = backend.dtype_of(a)
    initial = _checked_initial(initial, dtype)
    if count_of_elements(a, axis, True) == 0:  # the empty sums are zeros of the shape of the result
        return as_dtype(add(reduce_axes(reduce_sum, a, axis, keepdims), initial), dtype)
    return join(
        reduce_axes(operation, fill_where_false(a, where, identity_of_extremum(name, dtype)), axis, keepdims), initial
    )


# fmt: off
max = _extremum("max", """The largest element along ``axis``, by default of all.

    All elements that attain the maximum share the gradient equally. If an element is NaN, the maximum and its
    gradient are NaN. Complex numbers are ordered by their real parts, then by their imaginary parts.

    Args:
        a: an array.
        axis: one axis, several, or None for all.
        out: an array for the result.
        keepdims: keep the reduced axes, with length 1.
        initial: a lower bound of the result.
        where: a mask that broadcasts to the shape of ``a`` and selects the elements to compare; needs ``initial``.

    Raises:
        ValueError: no elements to compare and no ``initial``; ``where`` without ``initial``.""",
    "fnp.max([[1.0, 5.0], [3.0, 2.0]], axis=1)", "array([5., 3.])")
min = _extremum("min", "The smallest element along ``axis``, by default of all; arguments and gradient as for ``max``.",
    "fnp.min([[1.0, 5.0], [3.0, 2.0]], axis=1)", "array([1., 2.])")
# fmt: on

amax = max
amin = min


def ptp(a: ArrayLike, axis: Axes = None, out: Any = None, keepdims: bool = False) -> Array:
    """Return the range of the elements along ``axis``: the maximum minus the minimum.

    Example:
        >>> fnp.ptp([4, 1, 9])
        np.int64(8)
    """
    if out is not None:
        return compute_into(ptp, out, a, axis, keepdims=keepdims)
    a = a if is_selection(a) else as_value(a)
    return subtract(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


def all(
    a: ArrayLike, axis: Axes = None, out: Any = None, keepdims: bool = False, *, where: ArrayLike | bool = True
) -> Array:
    """Return whether all elements along ``axis`` are true, that is nonzero; no derivative passes.

    Example:
        >>> fnp.all([[1, 0], [1, 1]], axis=1)
        array([False,  True])
    """
    if out is not None:
        return compute_into(all, out, a, axis, keepdims=keepdims, where=where)
    if is_selection(a):
        return a.reduced(all, axis, keepdims=keepdims, where=where)
    a = as_value(a)
    if where is not True:
        a = logical_or(a, logical_not(as_value(where)))
    return reduce_axes(reductions.reduce_all, a, axis, keepdims)


def any(
    a: ArrayLike, axis: Axes = None, out: Any = None, keepdims: bool = False, *, where: ArrayLike | bool = True
) -> Array:
    """Return whether any element along ``axis`` is true, that is nonzero; no derivative passes.

    Example:
        >>> fnp.any([[1, 0], [0, 0]], axis=1)
        array([ True, False])
    """
    if out is not None:
        return compute_into(any, out, a, axis, keepdims=keepdims, where=where)
    if is_selection(a):
        return a.reduced(any, axis, keepdims=keepdims, where=where)
    return reduce_axes(reductions.reduce_any, fill_where_false(as_value(a), where, False), axis, keepdims)


def count_nonzero(a: ArrayLike, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the number of nonzero elements along ``axis``; no derivative passes.

    Example:
        >>> fnp.count_nonzero([[0, 1], [2, 3]], axis=0)
        array([1, 2])
    """
    if is_selection(a):
        return sum(a != 0, axis, keepdims=keepdims)
    return reduce_axes(reductions.count_nonzero, as_value(a), axis, keepdims)


def average(
    a: ArrayLike, axis: Axes = None, weights: ArrayLike | None = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Return the weighted mean along ``axis``, by default of all elements.

    Args:
        a: an array.
        axis: one axis, several, or None for all.
        weights: an array of the shape of ``a``, or with the lengths of ``axis``; None means equal weights. The
            derivative passes to the weights too.
        returned: whether to return the sum of the weights as well.
        keepdims: keep the reduced axes, with length 1.

    Raises:
        TypeError: weights of another shape and no ``axis``.
        ValueError: weights that do not fit ``axis``.
        ZeroDivisionError: NumPy weights that sum to zero; traced weights that sum to zero give NaN.

    Example:
        >>> fnp.average([1.0, 2.0], weights=[3.0, 1.0])
        np.float64(1.25)
    """
    if is_selection(a):
        return _average_of_selection(a, axis, weights, returned, keepdims)
    a = as_value(a)
    if weights is None:
        ans = mean(a, axis, keepdims=keepdims)
        if not returned:
            return ans
        total = as_scalar(np.full((), count_of_elements(a, axis, True), backend.dtype_of(ans)))
    else:
        weights = aligned_weights(as_value(weights), a, axis)
        a = as_floating(a)
        dtype = np.result_type(backend.dtype_of(a), backend.dtype_of(weights))
        total = reduce_axes(reduce_sum, as_dtype(weights, dtype), axis, keepdims)
        if any_true(lambda total: total == 0, total):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        ans = divide(reduce_axes(reduce_sum, multiply(a, weights), axis, keepdims), total)
    if not returned:
        return ans
    shape = backend.shape_of(ans)
    return ans, total if backend.shape_of(total) == shape else copy(broadcast_to(total, to=shape))


def _average_of_selection(a: Any, axis: Axes, weights: Any, returned: bool, keepdims: bool) -> Any:
    if weights is not None and axis is None and not (is_selection(weights) and weights.ndim == a.ndim):
        a.refuse()
    total = sum(np.zeros_like(a) + (1.0 if weights is None else weights), axis, keepdims=keepdims)
    if weights is None:
        ans = mean(a, axis, keepdims=keepdims)
    elif any_true(lambda total: total == 0, total):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    else:
        ans = sum(a * weights, axis, keepdims=keepdims) / total
    return (ans, total) if returned else ans


def _where_not_nan(a: Array, where: ArrayLike | bool) -> Array | bool:
    """Return ``where`` restricted to the elements that are not NaN."""
    if not can_be_nan(a):
        return where
    number = logical_not(isnan(a))
    return number if where is True else logical_and(number, as_value(where))


@function_table
def _total_without_nan(
    name: str,
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    total, neutral = (sum, 0) if name == "nansum" else (prod, 1)
    return total(fill_nan(a, neutral), axis, dtype, out, keepdims, initial, where)


# fmt: off
nansum = objects_by_numpy(_total_without_nan("nansum",
    "The sum of the elements that are not NaN, 0 if all are NaN; arguments as for ``sum``.",
    'fnp.nansum([1.0, float("nan"), 2.0])', "np.float64(3.0)"))
nanprod = objects_by_numpy(_total_without_nan("nanprod",
    "The product of the elements that are not NaN, 1 if all are NaN; arguments as for ``prod``.",
    'fnp.nanprod([2.0, float("nan"), 3.0])', "np.float64(6.0)"))
# fmt: on


@objects_by_numpy
def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | bool = True,
) -> Array:
    """Return the mean of the elements that are not NaN, NaN if all are NaN; arguments as for ``mean``.

    Example:
        >>> fnp.nanmean([1.0, float("nan"), 2.0])
        np.float64(1.5)
    """
    a = as_value(a)
    _check_inexact(a, dtype, out)
    return mean(a, axis, dtype, out, keepdims, where=_where_not_nan(a, where))


@objects_by_numpy
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
    """Return the variance of the elements that are not NaN, NaN if all are NaN; arguments as for ``var``.

    Example:
        >>> fnp.nanvar([1.0, float("nan"), 5.0])
        np.float64(4.0)
    """
    a = as_value(a)
    _check_inexact(a, dtype, out)
    where = _where_not_nan(a, where)
    return var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)


def _check_inexact(a: Array, dtype: Any, out: Any) -> None:
    """Refuse integers for the result of elements that may be NaN, as NumPy does."""
    if not backend.is_inexact(a):
        return
    for name, to in (("dtype", dtype), ("out", getattr(out, "dtype", None))):
        if to is not None and np.dtype(to).kind in "biu":
            raise TypeError(f"If a is inexact, then {name} must be inexact")


@objects_by_numpy
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
    """Return the standard deviation of the elements that are not NaN, NaN if all are NaN; arguments as for ``var``.

    Example:
        >>> fnp.nanstd([1.0, float("nan"), 5.0])
        np.float64(2.0)
    """
    if out is not None:
        options = {"where": where, "mean": mean, "correction": correction}
        return compute_into(nanstd, out, a, axis, dtype, ddof=ddof, keepdims=keepdims, **options)
    return sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


@function_table
def _extremum_without_nan(
    name: str,
    a: ArrayLike,
    axis: Axes = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Scalar | None = None,
    where: ArrayLike | bool = True,
) -> Array:
    if out is not None:
        return compute_into(globals()[name], out, a, axis, keepdims=keepdims, initial=initial, where=where)
    a = as_value(a)
    extremum, last = (max, -math.inf) if name == "nanmax" else (min, math.inf)
    ans = extremum(fill_nan(a, last), axis, None, keepdims, initial, where)
    if initial is not None or not can_be_nan(a):
        return ans
    return as_scalar(choose(all(isnan(a), axis, None, keepdims), keeping_dtype(math.nan, ans), ans))


# fmt: off
nanmax = objects_by_numpy(_extremum_without_nan("nanmax",
    "The largest element that is not NaN, NaN if all are NaN; arguments and gradient as for ``max``.",
    'fnp.nanmax([1.0, float("nan"), 2.0])', "np.float64(2.0)"))
nanmin = objects_by_numpy(_extremum_without_nan("nanmin",
    "The smallest element that is not NaN, NaN if all are NaN; arguments and gradient as for ``max``.",
    'fnp.nanmin([1.0, float("nan"), 2.0])', "np.float64(1.0)"))
# fmt: on
