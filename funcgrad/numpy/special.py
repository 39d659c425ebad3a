"""``logsumexp`` and its gradient, the softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import broadcast_to, reduce_sum, reshape
from funcgrad.numpy.axes import normalize_axes
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.reducing import as_floating, fill_where_false, reduce_axes
from funcgrad.numpy.shaping import result_type
from funcgrad.primitives import reductions as prim
from funcgrad.primitives.arithmetic import absolute, add, divide, multiply, subtract
from funcgrad.primitives.comparison import equal, less, sign
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.elementwise import exp, log
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = ["log_softmax", "logsumexp", "softmax"]


def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | bool | None = None,
) -> Any:
    """Return ``log(sum(b * exp(a)))`` along ``axis``, by default of all elements, without overflow.

    Without ``b`` the gradient is the softmax of ``a``, 0 at -inf. If every element is -inf, the result is -inf and
    the gradient is 0.

    Args:
        a: an array.
        axis: one axis, several, or None for all.
        b: factors that broadcast with ``a``. If a factor is 0 and exp overflows or is undefined, the element
            is left out.
        keepdims: keep the reduced axes, with length 1.
        return_sign: whether to return the logarithm of the sum's absolute value, and its sign, which for complex
            numbers is the sum divided by its absolute value. If False, the logarithm of a negative sum is NaN.
        where: a mask that broadcasts to the shape of ``a`` and selects the elements to use.

    Example:
        >>> fnp.logsumexp([1000.0, 0.0])
        np.float64(1000.0)
    """
    a = as_floating(as_value(a))
    if where is not None:
        a = fill_where_false(a, where, -math.inf)
    if b is None and not return_sign:
        return reduce_axes(prim.logsumexp, a, axis, keepdims)
    b = as_value(1.0 if b is None else b)
    shape = np.broadcast_shapes(backend.shape_of(a), backend.shape_of(b))
    dtype = result_type(a, b)
    a, b = broadcast_to(astype(a, dtype), to=shape), broadcast_to(astype(b, dtype), to=shape)
    axes = normalize_axes(axis, len(shape), of_numbers=True)
    peak = prim.weighted_peak(a, b, axis=axes)
    shifted = subtract(a, peak)
    shifted = choose(prim.vanishing_overflow(shifted, b), -math.inf, shifted)
    total = reduce_axes(reduce_sum, multiply(b, exp(shifted)), axes, keepdims)
    peak = reshape(peak, to=backend.shape_of(total))
    is_complex = backend.dtype_of(total).kind == "c"
    if is_complex and not return_sign:
        return add(log(total), peak)
    nothing = equal(total, 0)  # the logarithm is -inf there, without a warning
    size = choose(nothing, 1, absolute(total))
    ans = add(choose(nothing, -math.inf, log(size)), peak)
    if return_sign:
        return ans, divide(total, size) if is_complex else sign(total)
    return choose(less(total, 0), math.nan, ans)


def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | bool | None = None) -> Array:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, by default the last, without overflow.

    Args:
        x: an array.
        axis: one axis, several, or None for all.
        where: a mask that broadcasts to the shape of ``x`` and selects the elements to use; other elements get 0.

    Example:
        >>> fnp.softmax([1000.0, 1000.0])
        array([0.5, 0.5])
    """
    return _normalised(prim.softmax, x, axis, where, 0)


def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | bool | None = None) -> Array:
    """Return ``log(softmax(x))`` as ``x - logsumexp(x)``, without underflow; arguments as for ``softmax``.

    Elements for which ``where`` is False get -inf.

    Example:
        >>> fnp.log_softmax([0.0, 1000.0])
        array([-1000.,     0.])
    """
    return _normalised(prim.log_softmax, x, axis, where, -math.inf)


def _normalised(operation: Any, x: ArrayLike, axis: Axes, where: ArrayLike | bool | None, fill: float) -> Array:
    x = as_floating(as_value(x))
    axes = normalize_axes(axis, len(backend.shape_of(x)))
    if where is None or where is True:
        return operation(x, axis=axes)
    return fill_where_false(operation(fill_where_false(x, where, -math.inf), axis=axes), where, fill)
