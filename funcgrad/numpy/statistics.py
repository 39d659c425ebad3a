"""Covariances and correlations; histograms and counts are those of ``histograms``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.kinds.linear import conj, permute, real, reduce_sum, reshape
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.histograms import bincount, digitize, histogram, histogram2d, histogram_bin_edges, histogramdd
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.peeking import anywhere, is_plain, warn
from funcgrad.numpy.reductions import mean
from funcgrad.numpy.shaping import result_type, squeeze
from funcgrad.primitives.arithmetic import divide, multiply, subtract
from funcgrad.primitives.comparison import less_equal, where
from funcgrad.primitives.counting import rounding_over_one
from funcgrad.primitives.elementwise import sqrt
from funcgrad.primitives.products import matmul
from funcgrad.primitives.shaping import diagonal
from funcgrad.typing import Array, ArrayLike

__all__ = ["bincount", "corrcoef", "cov", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: Any = None,
) -> Array:
    """The covariances of variables, of each with each.

    Args:
        m: a variable per row, an observation per column; or one variable.
        y: more variables, in the same form.
        rowvar: whether the variables are rows, not columns.
        bias: whether to divide by the number of observations, not by one less.
        ddof: what to subtract from that number instead.
        fweights: how often each observation is repeated: integers, which have no derivative.
        aweights: the weight of each observation; the derivative passes to them too.
        dtype: the dtype, by default float64 at least.

    Raises:
        TypeError: floating ``fweights`` that are traced, or not whole numbers.
        ValueError: more than two axes; negative weights.
        RuntimeError: weights of another length or with more axes.

    Warns:
        RuntimeWarning: too few observations; the result is then not finite.

    Example:
        >>> fnp.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
        array([[ 1., -1.],
               [-1.,  1.]])
    """
    if is_plain(m, y, fweights, aweights):
        return np.cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype=dtype)
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    x = _variables(as_value(m), None if y is None else as_value(y), rowvar, dtype)
    count = backend.shape_of(x)[1]
    if not backend.shape_of(x)[0]:
        return np.empty((0, 0))
    a = None if aweights is None else _weights("aweights", aweights, count)
    w = a if fweights is None else _repeats(fweights, count)
    if a is not None and fweights is not None:
        w = multiply(w, a)
    if w is None:
        return squeeze(_products(subtract(x, mean(x, 1, keepdims=True)), None, _checked(count - ddof)))
    total = reduce_sum(w, axis=(0,))
    if anywhere(lambda total: total == 0, total):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    middle = divide(matmul(x, w), total)
    free = subtract(total, ddof)
    if ddof and a is not None:
        free = subtract(total, divide(multiply(reduce_sum(multiply(w, a), axis=(0,)), ddof), total))
    return squeeze(_products(subtract(x, reshape(middle, to=(*middle.shape, 1))), w, _checked(free)))


def _products(x: Array, w: Array | None, free: Any) -> Array:
    """The products of the deviations ``x`` summed over the observations, and divided by ``free``."""
    weighted = x if w is None else multiply(x, w)
    return multiply(matmul(x, conj(permute(weighted, axes=(1, 0)))), free)


def _checked(free: Any) -> Any:
    """One divided by the degrees of freedom; infinite, after a warning, where there are none."""
    if anywhere(lambda free: less_equal(free, 0), free):
        warn("Degrees of freedom <= 0 for slice", RuntimeWarning, 3)
    if type(free) is int:
        return 1 / free if free > 0 else float("inf")
    return divide(1.0, where(less_equal(free, 0), 0.0, free))


def _variables(m: Array, y: Array | None, rowvar: bool, dtype: Any) -> Array:
    """All variables, one in each row."""
    parts = [m] if y is None else [m, y]
    for name, part in zip("my", parts, strict=False):
        if len(backend.shape_of(part)) > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
    if dtype is None:
        dtype = result_type(*parts, np.float64)
    rows = []
    for position, part in enumerate(parts):
        part, shape = astype(part, dtype), backend.shape_of(part)
        if len(shape) < 2:
            part = reshape(part, to=(1, prod(shape)))
        vector = len(shape) == 1 if position == 0 else backend.shape_of(part)[0] == 1
        rows.append(part if rowvar or vector else permute(part, axes=(1, 0)))
    return rows[0] if y is None else concatenate(rows, axis=0)


def _weights(name: str, weights: ArrayLike, count: int) -> Array:
    """Weights of ``count`` observations as floating numbers."""
    weights = as_value(weights)
    shape = backend.shape_of(weights)
    if len(shape) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape != (count,):
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if anywhere(lambda w: w < 0, weights):
        raise ValueError(f"{name} cannot be negative")
    return astype(weights, np.float64)


def _repeats(fweights: ArrayLike, count: int) -> Array:
    fweights = as_value(fweights)
    if isinstance(fweights, Tracer) and backend.is_inexact(fweights):
        raise InputError(
            f"cov: fweights say how often an observation is repeated and have no derivative, got "
            f"{describe(fweights)}. Pass fweights.astype(int), or weights that have one as aweights."
        )
    if anywhere(lambda w: w != np.around(w), fweights):
        raise TypeError("fweights must be integer")
    return _weights("fweights", fweights, count)


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """The correlation coefficients of variables, of each with each; arguments as for ``cov``.

    The results are brought into -1 to 1, which they leave by rounding only: that has no derivative. Those
    of a variable that does not vary are NaN.

    Example:
        >>> fnp.corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]])
        array([[ 1., -1.],
               [-1.,  1.]])
    """
    if is_plain(x, y):
        return np.corrcoef(x, y, rowvar, dtype=dtype)
    c = cov(x, y, rowvar, dtype=dtype)
    shape = backend.shape_of(c)
    if not shape:
        return divide(c, c)
    deviation = sqrt(real(diagonal(c, offset=0)))
    c = divide(divide(c, reshape(deviation, to=(shape[0], 1))), deviation)
    return subtract(c, rounding_over_one(c))
