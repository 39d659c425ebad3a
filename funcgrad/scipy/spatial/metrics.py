"""Distances between vectors along the last axis, which broadcast over all others.

Where two vectors, or two of their elements, are equal, roots and absolute values have the derivative zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain
from funcgrad.primitives.norms import abs_flat_at_zero, sqrt_flat_at_zero
from funcgrad.scipy.special import rel_entr
from funcgrad.typing import Array


def _total(x: Array, w: Array | None) -> Array:
    return fnp.sum(x if w is None else w * x, axis=-1)


def sqeuclidean(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return the sum of squared differences."""
    apart = u - v
    return _total(apart * apart, w)


def euclidean(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return the length of the difference."""
    apart = u - v
    squares = fnp.real(apart * fnp.conj(apart)) if backend.dtype_of(apart).kind == "c" else apart * apart
    return sqrt_flat_at_zero(_total(squares, w))


def cityblock(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return the sum of absolute differences."""
    return _total(abs_flat_at_zero(u - v), w)


def chebyshev(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return the largest absolute difference of elements whose weight is not zero."""
    apart = abs_flat_at_zero(u - v)
    return fnp.max(apart if w is None else fnp.where(w > 0, apart, 0.0), axis=-1)


def minkowski(u: Array, v: Array, p: Any = 2, w: Array | None = None) -> Array:
    """Return the ``p``-th root of the sum of ``p``-th powers of absolute differences."""
    if is_plain(p):
        if p <= 0:
            raise ShapeError(f"spatial.distance.minkowski: p must be greater than 0, got {p}.")
        simple = {1: cityblock, 2: euclidean, np.inf: chebyshev}.get(float(p))
        if simple is not None:
            return simple(u, v, w)
    apart = abs_flat_at_zero(u - v)
    none = apart == 0
    total = _total(fnp.where(none, 0.0, fnp.where(none, 1.0, apart) ** p), w)
    same = total == 0
    return fnp.where(same, 0.0, fnp.where(same, 1.0, total) ** (1.0 / p))


def correlation(u: Array, v: Array, w: Array | None = None, centered: bool = True) -> Array:
    """Return 1 minus the correlation of the elements."""
    if w is not None:
        w = w / fnp.sum(w)
    if centered:
        u, v = (x - (fnp.mean(x, axis=-1) if w is None else _total(x, w))[..., None] for x in (u, v))
    return 1.0 - _total(u * v, w) / fnp.sqrt(_total(u * u, w) * _total(v * v, w))


def cosine(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return 1 minus the cosine of the angle between the vectors."""
    return correlation(u, v, w, centered=False)


def canberra(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return the sum of absolute differences, each divided by the sum of both absolute values."""
    sizes = abs_flat_at_zero(u) + abs_flat_at_zero(v)
    none = sizes == 0
    return _total(fnp.where(none, 0.0, abs_flat_at_zero(u - v) / fnp.where(none, 1.0, sizes)), w)


def braycurtis(u: Array, v: Array, w: Array | None = None) -> Array:
    """Return the sum of absolute differences, divided by the sum of absolute sums."""
    return cityblock(u, v, w) / _total(abs_flat_at_zero(u + v), w)


def mahalanobis(u: Array, v: Array, VI: Array) -> Array:
    """Return the Mahalanobis length of the difference, with the inverse covariance ``VI``."""
    apart = u - v
    return sqrt_flat_at_zero(fnp.sum((apart @ VI) * apart, axis=-1))


def seuclidean(u: Array, v: Array, V: Array) -> Array:
    """Return the length of the difference, each element divided by the standard deviation, the root of ``V``."""
    return euclidean(u, v, 1.0 / V)


def jensenshannon(p: Array, q: Array, base: Any = None, axis: int = -1, keepdims: bool = False) -> Array:
    """Return the root of the Jensen-Shannon divergence: the mean divergence of both distributions from their mean.

    Probabilities that are exactly 0 are constants: their slopes are infinite.
    """
    empty = [x == 0 for x in (p, q)]
    shares = [fnp.where(none, 0.0, x) for x, none in zip((p, q), empty, strict=True)]
    shares = [x / fnp.sum(x, axis=axis, keepdims=True) for x in shares]
    middle = (shares[0] + shares[1]) / 2.0
    found = 0.0
    for x, none in zip(shares, empty, strict=True):
        terms = fnp.where(none, 0.0, rel_entr(fnp.where(none, 1.0, x), fnp.where(none, 1.0, middle)))
        found = found + fnp.sum(terms, axis=axis, keepdims=keepdims)
    return sqrt_flat_at_zero((found if base is None else found / fnp.log(base)) / 2.0)


#: Metrics by SciPy's names: the function, and SciPy's abbreviations of the name.
METRICS: dict[str, tuple[Callable[..., Array], str]] = {
    "braycurtis": (braycurtis, ""),
    "canberra": (canberra, ""),
    "chebyshev": (chebyshev, "chebychev cheby cheb ch"),
    "cityblock": (cityblock, "cblock cb c"),
    "correlation": (correlation, "co"),
    "cosine": (cosine, "cos"),
    "euclidean": (euclidean, "euclid eu e"),
    "jensenshannon": (jensenshannon, "js"),
    "mahalanobis": (mahalanobis, "mahal mah"),
    "minkowski": (minkowski, "mi m pnorm"),
    "seuclidean": (seuclidean, "se s"),
    "sqeuclidean": (sqeuclidean, "sqe sqeuclid"),
}
_SHORT = {short: name for name, (_, others) in METRICS.items() for short in others.split()}


def named(call: str, metric: str) -> str:
    """Return the full name of a metric.

    Raises:
        InputError: there is no such metric, or it is piecewise constant.
    """
    name = _SHORT.get(metric.lower(), metric.lower())
    if name not in METRICS:
        raise InputError(
            f"spatial.distance.{call}: metric must be one that is differentiable, got {metric!r}. Take one of "
            f"{', '.join(METRICS)}."
        )
    return name


def weights_of(call: str, w: Any) -> Array | None:
    """Return the weights in double precision, as SciPy does.

    Raises:
        ShapeError: the weights are not a vector, or a weight is negative.
    """
    if w is None:
        return None
    w = as_value(w)
    if len(backend.shape_of(w)) != 1:
        raise ShapeError(f"spatial.distance.{call}: w must be a vector, got {describe(w)}.")
    if any_true(lambda w: w < 0, w):
        values: Any = concrete_or_none(w)
        raise ShapeError(f"spatial.distance.{call}: w must not be negative, got {values.min()}.")
    return fnp.astype(w, float)
