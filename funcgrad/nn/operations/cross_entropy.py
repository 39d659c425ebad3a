"""Cross entropies of the softmax with a class, or with weights of classes; derivatives reuse the softmax.

The results are NaN for logits of +inf, like those of ``log_softmax``; logits of -inf are allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import align, reduce_sum, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.comparison import equal, isinf, logical_and, where
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.normalising import sum_of_cotangents, sum_of_products, sums
from funcgrad.primitives.reductions import log_softmax, minus_maximum, softmax_deviation

Axes = tuple[int, ...]


def weighted(weight: Any, value: Any) -> Any:
    """Compute ``weight * value``, and 0 where the weight is 0 and the value infinite."""
    return weight * where(logical_and(equal(weight, 0), isinf(value)), 0.0, value)


def _at(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows of an ndarray as a matrix, and the index of the elements ``y``, one integer for each row."""
    return x.reshape(-1, x.shape[-1]), (np.arange(y.size), y.reshape(-1))


def _class_cross_entropy(xp: Any, x: Any, y: Any) -> Any:
    if xp is not np:
        less = minus_maximum(xp, x, (x.ndim - 1,))
        parts = xp.exp(less)
        total = parts.sum(-1, keepdims=True)
        chosen = xp.take_along_axis(less, xp.asarray(y)[..., None], -1)
        return (xp.log(total) - chosen)[..., 0], parts / total
    x, y = np.asarray(x), np.asarray(y)
    parts = minus_maximum(np, x, (x.ndim - 1,))
    rows, places = _at(parts, y)
    chosen = rows[places].reshape(y.shape)
    np.exp(parts, out=parts)
    total = sums(parts, (x.ndim - 1,))
    parts /= total
    return np.log(total.reshape(y.shape)) - chosen, parts


def _excess(xp: Any, x: Any, y: Any, z: Any) -> Any:
    x, z = xp.asarray(x), xp.asarray(z)
    if xp is not np:
        return x[..., None] * (y - (xp.arange(y.shape[-1]) == z[..., None]))
    ans = np.multiply(x[..., None], y, order="C")  # C order, so that the matrix of rows is a view
    rows, places = _at(ans, z)
    rows[places] -= x.reshape(-1)
    return ans


def _chosen(x: Any, y: Any) -> Any:
    """Return ``x[y]`` along the last axis."""
    shape = backend.shape_of(y)
    return reshape(take_along_axis(x, reshape(y, to=(*shape, 1)), axis=len(shape)), to=shape)


def _column(x: Any) -> Any:
    return reshape(x, to=(*backend.shape_of(x), 1))


def _along_last(x: Any, y: Any) -> Any:
    """Sum the products of ``x`` and ``y`` along the last axis."""
    return reduce_sum(x * y, axis=(len(backend.shape_of(x)) - 1,))


#: ``excess(x, y, z)``: ``x * y`` along a new last axis, less ``x`` at index ``z``.
excess: Operation = primitive(
    "excess",
    _excess,
    vjps=[lambda ct, y, z: _along_last(ct, y) - _chosen(ct, z), lambda ct, x: ct * _column(x), None],
    jvps=[lambda t, y, z: excess(t, y, z), lambda t, x: t * _column(x), None],
    batch="leading",
)


def _pulled_from_class(cts: Any, ans: Any, y: Any) -> Any:
    (ct, of_shares), shares = cts, ans[1]
    rank = len(backend.shape_of(shares))
    return sum_of_cotangents(
        None if ct is None else excess(ct, shares, y),
        None if of_shares is None else softmax_deviation(of_shares, shares, axis=(rank - 1,)),
    )


def _pushed_to_class(t: Any, ans: Any, y: Any) -> Any:
    shares = ans[1]
    rank = len(backend.shape_of(shares))
    return _along_last(t, shares) - _chosen(t, y), softmax_deviation(t, shares, axis=(rank - 1,))


#: ``class_cross_entropy(x, y)``: ``-log_softmax(x)[y]`` along the last axis. The softmax is a residual.
class_cross_entropy: Operation = primitive(
    "class_cross_entropy",
    _class_cross_entropy,
    vjps=[_pulled_from_class, None],
    jvps=[_pushed_to_class, None],
    batch="leading",
    multiple=True,
    none_for_zero=True,
    residuals=1,
)


def _cross_entropy(xp: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    if xp is not np:
        less = minus_maximum(xp, x, axis)
        parts = xp.exp(less)
        total = parts.sum(axis, keepdims=True)
        logs = less - xp.log(total)
        return -(y * xp.where((y == 0) & xp.isinf(logs), 0.0, logs)).sum(axis), parts / total
    x, y = np.asarray(x), np.asarray(y)
    less = minus_maximum(np, x, axis)
    parts = np.exp(less)
    total = sums(parts, axis)
    with np.errstate(invalid="ignore"):
        inner = sum_of_products(y, less, axis)
    if not np.isfinite(inner).all():
        inner = sums(y * np.where((y == 0) & np.isinf(less), 0.0, less), axis)
    losses = np.log(total) * sums(y, axis) - inner
    parts /= total
    return losses.reshape([n for i, n in enumerate(x.shape) if i not in axis])[()], parts


def _effective(x: Any, y: Any) -> Any:
    """Return ``y``, without its derivative where ``y`` is 0 and ``x`` infinite."""
    return y if type(y) is np.ndarray else where(logical_and(equal(y, 0), isinf(x)), 0.0, y)


def _of_logits(cts: Any, x: Any, y: Any, ans: Any, *, axis: Axes) -> Any:
    """Compute ``softmax(x) * sum(y) - y`` times the cotangent."""
    (ct, of_shares), shares = cts, ans[1]
    found = None
    if ct is not None:
        y = _effective(x, y)
        ct = align(ct, backend.shape_of(shares), axis)
        found = shares * (ct * reduce_sum(y, axis=axis, keepdims=True)) - y * ct
    return sum_of_cotangents(found, None if of_shares is None else softmax_deviation(of_shares, shares, axis=axis))


def _of_weights(cts: Any, x: Any, y: Any, *, axis: Axes) -> Any:
    ct = cts[0]
    return None if ct is None else align(ct, backend.shape_of(x), axis) * _terms(x, y, axis)


def _terms(x: Any, y: Any, axis: Axes) -> Any:
    """Return the factors of the weights in the cross entropy."""
    logs = log_softmax(x, axis=axis)
    return -where(logical_and(equal(y, 0), isinf(logs)), 0.0, logs)


def _pushed_from_logits(t: Any, x: Any, y: Any, ans: Any, *, axis: Axes) -> Any:
    shares, y = ans[1], _effective(x, y)
    mean = reduce_sum(t * shares, axis=axis, keepdims=True)
    return reduce_sum(y * (mean - t), axis=axis), softmax_deviation(t, shares, axis=axis)


#: ``cross_entropy(x, y, *, axis)``: ``-sum(y * log_softmax(x))`` of two arguments of one shape. An infinite term with
#: weight 0 counts as 0. The softmax is a residual.
cross_entropy: Operation = primitive(
    "cross_entropy",
    _cross_entropy,
    vjps=[_of_logits, _of_weights],
    jvps=[
        _pushed_from_logits,
        lambda t, x, y, ans, *, axis: (reduce_sum(t * _terms(x, y, axis), axis=axis), backend.zeros_like(ans[1])),
    ],
    batch="axis",
    multiple=True,
    none_for_zero=True,
    residuals=1,
)
