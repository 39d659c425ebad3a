"""Reductions: products, extrema, variance, counts, and the softmax and logsumexp of neural networks.

``axis`` is always a tuple of different non-negative numbers. Axes are dropped unless ``keepdims`` is true.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import align, permute, reduce_sum, reshape, scaled
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.elementwise import conjugated, exp, real_part
from funcgrad.primitives.normalising import sum_of_products, sums
from funcgrad.primitives.scans import cumprod
from funcgrad.typing import Shape

Axes = tuple[int, ...]


def _products_of_others(x: Any, shape: Shape, axis: Axes) -> Any:
    """Return, for each element, the product of the others that are reduced with it; exact, whatever is zero."""
    if len(axis) == 1:
        (along,) = axis
        before = cumprod(x, axis=along, exclusive=True)
        return before * cumprod(x, axis=along, exclusive=True, reverse=True)
    outer = tuple(i for i in range(len(shape)) if i not in axis)
    order = outer + axis
    moved = tuple(shape[i] for i in order)
    flat = (*moved[: len(outer)], math.prod(moved[len(outer) :]))
    others = _products_of_others(reshape(permute(x, axes=order), to=flat), flat, (len(outer),))
    return permute(reshape(others, to=moved), axes=tuple(order.index(i) for i in range(len(shape))))


reduce_prod: Operation = primitive(
    "reduce_prod",
    lambda xp, x, *, axis: np.multiply.reduce(x, axis) if xp is np else xp.prod(x, axis),
    vjps=[lambda ct, x, shape, *, axis: scaled(align(ct, shape, axis), _products_of_others(x, shape, axis))],
    jvps=[lambda t, x, shape, *, axis: reduce_sum(t * _products_of_others(x, shape, axis), axis=axis)],
    batch="axis",
)


def _tie_shares(xp: Any, x: Any, ans: Any, *, axis: Axes) -> Any:
    x, ans = xp.asarray(x), xp.asarray(ans)
    hits = x == ans.reshape([1 if i in axis else n for i, n in enumerate(x.shape)])
    if xp is not np and math.prod(x.shape[i] for i in axis) <= 2 / xp.finfo(x.dtype).eps:
        # XLA is fastest with one dtype, which can count so many elements. Nothing equals an extremum of NaN: 0 * inf.
        return hits * (1 / hits.sum(axis, x.real.dtype, keepdims=True))
    if xp is np and len(axis) == x.ndim:
        count = np.count_nonzero(hits)
        return hits * x.real.dtype.type(1 / count if count else math.nan)
    if xp is np and np.count_nonzero(hits) == ans.size == np.count_nonzero(ans == ans):
        return hits.astype(x.real.dtype)  # nothing is NaN, so each extremum has one element
    count = hits.sum(axis, keepdims=True)
    if xp is not np or not count.size or not count.item(count.argmin()):
        count = xp.where(count, count, math.nan)  # nothing equals an extremum that is NaN: the shares are undefined
    share = 1.0 / count
    return hits * share.astype(x.real.dtype)


#: ``tie_shares(x, ans, *, axis)``: 1/k at each of the k elements that equal the extremum ``ans``, else 0.
tie_shares: Operation = nondifferentiable("tie_shares", _tie_shares, batch="axis")


def _extremum(name: str, ufunc: np.ufunc, other: str) -> Operation:
    return primitive(
        name,
        lambda xp, x, *, axis, keepdims=False: (
            ufunc.reduce(x, axis, keepdims=keepdims) if xp is np else getattr(xp, other)(x, axis, keepdims=keepdims)
        ),
        vjps=[
            lambda ct, x, ans, shape, *, axis, keepdims=False: scaled(
                align(ct, shape, axis), tie_shares(x, ans, axis=axis)
            )
        ],
        jvps=[
            lambda t, x, ans, *, axis, keepdims=False: reduce_sum(
                t * tie_shares(x, ans, axis=axis), axis=axis, keepdims=keepdims
            )
        ],
        batch="axis",
    )


reduce_max: Operation = _extremum("reduce_max", np.maximum, "max")
reduce_min: Operation = _extremum("reduce_min", np.minimum, "min")


def _variance_gradient(x: Any, shape: Shape, axis: Axes, correction: float) -> Any:
    """Return the derivative of the variance: ``2 (x - mean) / (n - correction)``, conjugated.

    The dependence of the mean on ``x`` drops out, because the centred values add up to zero.
    """
    n = math.prod(shape[i] for i in axis)
    centred = x - reduce_sum(x, axis=axis, keepdims=True) / max(n, 1)
    scale = 2 / (n - correction) if n > correction else math.nan
    return conjugated(centred) * scale


def _var_jvp(t: Any, x: Any, shape: Shape, *, axis: Axes, correction: float) -> Any:
    return real_part(reduce_sum(t * _variance_gradient(x, shape, axis, correction), axis=axis))


#: ``reduce_var(x, *, axis, correction)``: the variance, which is real for complex ``x`` too.
reduce_var: Operation = primitive(
    "reduce_var",
    lambda xp, x, *, axis, correction: xp.var(x, axis, ddof=correction),
    vjps=[
        lambda ct, x, shape, *, axis, correction: scaled(
            align(ct, shape, axis), _variance_gradient(x, shape, axis, correction)
        )
    ],
    jvps=[_var_jvp],
    batch="axis",
)

reduce_all: Operation = nondifferentiable("reduce_all", lambda xp, x, *, axis: xp.all(x, axis), batch="axis")
reduce_any: Operation = nondifferentiable("reduce_any", lambda xp, x, *, axis: xp.any(x, axis), batch="axis")
count_nonzero: Operation = nondifferentiable(
    "count_nonzero", lambda xp, x, *, axis: xp.count_nonzero(x, axis), batch="axis"
)


def _peak(xp: Any, x: Any, axis: Axes) -> Any:
    """Return the largest real part (0 if that is not finite), to subtract before ``exp``; axes are kept."""
    peak = x.real.max(axis, keepdims=True, initial=-math.inf)
    return xp.where(xp.isfinite(peak), peak, xp.zeros((), peak.dtype))


def _exponentials(x: Any) -> Any:
    """Compute ``exp(x)`` in the memory of ``x``, a temporary array; a number has no memory."""
    return np.exp(x, out=x) if x.shape else np.exp(x)


#: Where a result is smaller, and so is the logarithm of the sum of ``exp(x - peak)``, this sum is close to 1, and
#: rounding it costs digits of the result.
_NEAR_ZERO = 0.1


def _logsumexp(xp: Any, x: Any, *, axis: Axes) -> Any:
    x = xp.asarray(x)
    if xp is np and x.dtype.kind == "f":
        peak = np.maximum.reduce(x, axis, keepdims=True, initial=-math.inf)
        if np.isfinite(peak).all():  # all sums are at least 1
            total = np.log(np.add.reduce(_exponentials(x - peak), axis))
            ans = total + peak.reshape(total.shape)
            near = abs(ans) < _NEAR_ZERO
            if not near.any() or not (near & (total < _NEAR_ZERO)).any():
                return ans
    peak = _peak(xp, x, axis)
    with np.errstate(divide="ignore", over="ignore"):  # log(0) is intended; only next to NaN can exp overflow
        total = _log_of_sum(xp, x - peak, axis)
    return total + peak.reshape(total.shape)


def _log_of_sum(xp: Any, x: Any, axis: Axes) -> Any:
    """Return ``log(sum(exp(x)))``; elements that are 0 are counted in NumPy, so that others are not rounded away.

    JAX differentiates this function itself, and its second derivative would not know the counted elements.
    """
    parts = xp.exp(x)
    if xp is not np or x.dtype.kind == "c":
        return xp.log(parts.sum(axis))
    count, rest = (x == 0).sum(axis, dtype=x.dtype), np.where(x == 0, 0, parts).sum(axis)
    some = np.where(count == 0, 1, count)
    return np.where(count == 0, np.log(rest), np.log1p(rest / some) + np.log(some))


def _shares(xp: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    if xp is np:
        kept = [1 if i in axis else n for i, n in enumerate(np.shape(x))]
        return _exponentials(x - np.where(y == -math.inf, 0, y).reshape(kept))
    # These are the exponentials of logsumexp, the most expensive part; XLA computes them only once.
    parts = xp.exp(x - _peak(xp, x, axis))
    total = parts.sum(axis, keepdims=True)
    return parts / xp.where(total == 0, 1, total)


def _softmax_deviation(xp: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    if xp is not np or type(x) is not np.ndarray or not x.ndim or x.shape != y.shape or x.dtype is not y.dtype:
        return (x - xp.sum(x * y, axis, keepdims=True)) * y
    ans = x - sum_of_products(x, y, axis)
    return np.multiply(ans, y, out=ans)


def _deviation_vjp_y(ct: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    mean = reduce_sum(x * y, axis=axis, keepdims=True)
    return ct * (x - mean) - x * reduce_sum(ct * y, axis=axis, keepdims=True)


def _deviation_jvp_y(t: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    mean = reduce_sum(x * y, axis=axis, keepdims=True)
    return t * (x - mean) - y * reduce_sum(x * t, axis=axis, keepdims=True)


#: ``softmax_deviation(x, y, *, axis)``: ``(x - sum(x * y)) * y``. For a tangent ``x`` and a softmax ``y`` this is the
#: tangent of the softmax; for a cotangent ``x`` it is the cotangent, because the Jacobian is symmetric.
softmax_deviation: Operation = primitive(
    "softmax_deviation",
    _softmax_deviation,
    vjps=[lambda ct, y, *, axis: softmax_deviation(ct, y, axis=axis), _deviation_vjp_y],
    jvps=[lambda t, y, *, axis: softmax_deviation(t, y, axis=axis), _deviation_jvp_y],
    batch="axis",
)


def _softmax_rule(t: Any, ans: Any, *, axis: Axes) -> Any:
    return softmax_deviation(t, ans, axis=axis)


#: ``shares(x, y, *, axis)``: the softmax of ``x``, whose logsumexp is ``y``; all 0 where every element is -inf. The
#: derivative in ``x`` includes the dependence of ``y`` on ``x``.
shares: Operation = primitive("shares", _shares, vjps=[_softmax_rule, None], jvps=[_softmax_rule, None], batch="axis")

#: ``logsumexp(x, *, axis)``: ``log(sum(exp(x)))`` without overflow; -inf where every element is -inf.
logsumexp: Operation = primitive(
    "logsumexp",
    _logsumexp,
    vjps=[lambda ct, x, ans, shape, *, axis: scaled(align(ct, shape, axis), shares(x, ans, axis=axis))],
    jvps=[lambda t, x, ans, *, axis: reduce_sum(t * shares(x, ans, axis=axis), axis=axis)],
    batch="axis",
)


def minus_maximum(xp: Any, x: Any, axis: Axes) -> Any:
    """Return ``x`` less its largest real part; all NaN where that is infinite, without a warning."""
    x = xp.asarray(x)
    real = x.real if x.dtype.kind == "c" else x
    with np.errstate(invalid="ignore"):
        if xp is np:
            return x - np.maximum.reduce(real, axis, keepdims=True, initial=-math.inf)
        return x - real.max(axis, keepdims=True, initial=-math.inf)


def _is_moderate(x: Any) -> bool:
    """Whether the exponentials of all elements of an ndarray, and their sums, are far from overflow and underflow."""
    if x.dtype.kind != "f" or x.itemsize < 4 or not x.size:
        return False
    return bool(x.item(x.argmin()) > -60 and x.item(x.argmax()) < 60)


def _softmax(xp: Any, x: Any, *, axis: Axes) -> Any:
    x = xp.asarray(x)
    if xp is not np or not x.shape:
        weights = xp.exp(minus_maximum(xp, x, axis))
        return weights / weights.sum(axis, keepdims=True)
    weights = np.exp(x) if _is_moderate(x) else _exponentials(minus_maximum(np, x, axis))
    weights /= sums(weights, axis)
    return weights


#: ``softmax(x, *, axis)``: positive numbers that add up to 1.
softmax: Operation = primitive("softmax", _softmax, vjps=[_softmax_rule], jvps=[_softmax_rule], batch="axis")


def _log_softmax(xp: Any, x: Any, *, axis: Axes) -> Any:
    less = minus_maximum(xp, x, axis)
    if xp is not np or not less.shape:
        return less - xp.log(xp.exp(less).sum(axis, keepdims=True))
    less -= np.log(sums(np.exp(less), axis))
    return less


#: ``log_softmax(x, *, axis)``: ``x - logsumexp(x)``.
log_softmax: Operation = primitive(
    "log_softmax",
    _log_softmax,
    vjps=[lambda ct, ans, *, axis: ct - exp(ans) * reduce_sum(ct, axis=axis, keepdims=True)],
    jvps=[lambda t, ans, *, axis: t - reduce_sum(t * exp(ans), axis=axis, keepdims=True)],
    batch="axis",
)

#: ``weighted_peak(x, y, *, axis)``: the largest real part of ``x`` where the weight ``y`` is not 0; 0 if not finite.
weighted_peak: Operation = nondifferentiable(
    "weighted_peak",
    lambda xp, x, y, *, axis: _peak(xp, xp.where(y == 0, -math.inf, xp.real(x)), axis),
    batch="axis",
)


def _vanishing_overflow(xp: Any, x: Any, y: Any) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return (y == 0) & ~xp.isfinite(xp.exp(x))


#: ``vanishing_overflow(x, y)``: the mask of ``y * exp(x)`` that should be 0 because ``y`` is 0, but would be NaN.
vanishing_overflow: Operation = nondifferentiable("vanishing_overflow", _vanishing_overflow)
