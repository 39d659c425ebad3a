"""Covariances, correlations, histograms, and counts of elements."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.kinds.linear import conj, permute, real, reduce_sum, reshape
from funcgrad.numpy import reductions
from funcgrad.numpy.axes import ALL_AXES
from funcgrad.numpy.creation import as_buffer, as_value, astype
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain, warn
from funcgrad.numpy.shaping import ravel, result_type, squeeze
from funcgrad.primitives import counting as prim
from funcgrad.primitives.arithmetic import add, divide, multiply, subtract
from funcgrad.primitives.comparison import equal, greater, isfinite, less_equal, logical_and, where
from funcgrad.primitives.elementwise import sqrt
from funcgrad.primitives.indexing import add_along_axis, getitem
from funcgrad.primitives.products import matmul
from funcgrad.primitives.shaping import diagonal
from funcgrad.primitives.sorting import searchsorted
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "bincount", "corrcoef", "cov", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip


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
    """Return the covariance matrix of variables.

    Args:
        m: one variable in each row and one observation in each column; or one variable.
        y: more variables, in the same form.
        rowvar: whether the variables are rows, not columns.
        bias: whether to divide by the number of observations, not by one less.
        ddof: the number to subtract from the number of observations instead.
        fweights: how often each observation is repeated: integers, which have no derivative.
        aweights: the weight of each observation; the derivative passes to the weights too.
        dtype: the dtype, by default float64 or more.

    Raises:
        TypeError: floating ``fweights`` that are traced, or that are not integers.
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
        x, free = subtract(x, reductions.mean(x, 1, keepdims=True)), count - ddof
    else:
        total = reduce_sum(w, axis=(0,))
        if any_true(lambda total: total == 0, total):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        middle = divide(matmul(x, w), total)
        free = subtract(total, ddof)
        if ddof and a is not None:
            free = subtract(total, divide(multiply(reduce_sum(multiply(w, a), axis=(0,)), ddof), total))
        x = subtract(x, reshape(middle, to=(*middle.shape, 1)))
    inverse, weighted = _inverse_of_freedom(free), x if w is None else multiply(x, w)
    return squeeze(multiply(matmul(x, conj(permute(weighted, axes=(1, 0)))), inverse))


def _inverse_of_freedom(free: Any) -> Any:
    """Return one divided by the degrees of freedom; warn and return infinity if there are none."""
    if any_true(lambda free: less_equal(free, 0), free):
        warn("Degrees of freedom <= 0 for slice", RuntimeWarning)
    if type(free) is int:
        return 1 / free if free > 0 else float("inf")
    return divide(1.0, where(less_equal(free, 0), 0.0, free))


def _variables(m: Array, y: Array | None, rowvar: bool, dtype: Any) -> Array:
    """Return all variables, one in each row."""
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
    """Return checked weights of ``count`` observations as floating-point numbers."""
    weights = as_value(weights)
    shape = backend.shape_of(weights)
    if len(shape) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape != (count,):
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if any_true(lambda w: w < 0, weights):
        raise ValueError(f"{name} cannot be negative")
    return astype(weights, np.float64)


def _repeats(fweights: ArrayLike, count: int) -> Array:
    fweights = as_value(fweights)
    if isinstance(fweights, Tracer) and backend.is_inexact(fweights):
        raise InputError(
            f"cov: fweights say how often an observation is repeated and have no derivative, got "
            f"{describe(fweights)}. Pass fweights.astype(int), or weights that have one as aweights."
        )
    if any_true(lambda w: w != np.around(w), fweights):
        raise TypeError("fweights must be integer")
    return _weights("fweights", fweights, count)


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Return the matrix of correlation coefficients of variables; arguments as for ``cov``.

    The results are clipped to [-1, 1], which they leave only by rounding; the clipping has no derivative. The
    coefficients of a constant variable are NaN.

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
    return subtract(c, prim.rounding_over_one(c))


# ---- counts ------------------------------------------------------------------------------------------------


def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0) -> Array:
    """Return how often each of the numbers 0, 1, 2, ... occurs in ``x``, or the sum of its weights.

    The sums are linear in the weights; counts have no derivative.

    Args:
        x: non-negative integers, along one axis.
        weights: a weight for each element of ``x``.
        minlength: the least length of the result, which otherwise ends with the largest number in ``x``.

    Raises:
        ValueError: ``x`` has more or less than one axis or a negative number; another number of weights.
        TypeError: ``x`` is not of integers, or the weights are complex.
        ConcretizationError: in a ``vmap`` over ``x``, a number not below ``minlength``: examples might differ
            in length.

    Example:
        >>> fnp.bincount([0, 2, 2], weights=[1.0, 0.5, 0.25])
        array([1.  , 0.  , 0.75])
    """
    if is_plain(x, weights):
        return np.bincount(x, weights, minlength)
    x = as_value(x)
    shape = backend.shape_of(x)
    if len(shape) != 1:
        raise ValueError(f"object of too small or large depth for bincount: {len(shape)} axes, not 1")
    if backend.dtype_of(x).kind not in "iub":
        raise InputError(f"bincount: what is counted are integers, got {describe(x)}. Convert it with astype(int).")
    numbers = concrete_or_none(x, steers=False)
    if any_true(lambda x: x < 0, x):
        raise ValueError("'list' argument must have no negative elements")
    if weights is not None and backend.shape_of(weights := as_value(weights)) != shape:
        raise ValueError("The weights and list don't have the same length.")
    if not shape[0]:
        weights = None  # NumPy returns counts for an empty array
    places = astype(numbers if issubclass(type(x), np.ndarray) else x, int)  # a copy, because the tape keeps it
    return _sum_by_index(places, _as_double(weights), _length(x, numbers, operator.index(minlength)))


def _length(x: Array, numbers: np.ndarray | None, least: int) -> int:
    if least < 0:
        raise ValueError("'minlength' must not be negative")
    if not prod(backend.shape_of(x)) or (numbers is not None and not any_true(lambda x: x >= least, x)):
        return least
    try:
        return max(operator.index(reductions.max(x)) + 1, least)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"bincount: the length of the result differs between the examples of a vmap, got {describe(x)}. Pass "
            "minlength, larger than every number that is counted."
        ) from error


def _as_double(weights: Array | None) -> Array | None:
    """Convert weights to float64; NumPy raises its error if a dtype does not fit."""
    if weights is None:
        return None
    np.empty(0, backend.dtype_of(weights)).astype(float, casting="safe")
    return astype(weights, np.float64)


def _sum_by_index(places: Array, weights: Array | None, length: int) -> Array:
    """Return the sums of the weights for each index in ``places``; without weights the counts."""
    if weights is None:
        weights = np.ones(backend.shape_of(places), np.intp)
    return add_along_axis(weights, places, axis=0, shape=(length,))


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Array:
    """Return the index of the bin between the numbers ``bins`` of each element of ``x``; no derivative passes.

    Args:
        x: an array.
        bins: ascending or descending numbers.
        right: whether a bin includes its right end, not its left end.

    Raises:
        ValueError: ``bins`` are not monotonic.
        TypeError: ``x`` is complex.

    Example:
        >>> fnp.digitize([0.5, 1.0, 7.0], [0.0, 1.0, 2.0])
        array([1, 2, 3])
    """
    if is_plain(x, bins):
        return np.digitize(x, bins, right)
    x, bins = as_value(x), as_value(bins)
    if backend.dtype_of(x).kind == "c":
        raise TypeError("x may not be complex")
    n = prod(backend.shape_of(bins))
    if backend.shape_of(bins) != (n,):
        raise ValueError("object of too small or large depth for bins")
    if any_true(lambda x: (x[..., :-1] > x[..., 1:]).any(-1) & (x[..., :-1] < x[..., 1:]).any(-1), bins):
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side=side)
    if n < 2:
        return rising
    backwards = subtract(n, searchsorted(getitem(bins, slice(None, None, -1)), x, side=side))
    return where(less_equal(getitem(bins, 0), getitem(bins, -1)), rising, backwards)


# ---- histograms --------------------------------------------------------------------------------------------


def histogram(
    a: ArrayLike, bins: Any = 10, range: Any = None, density: bool | None = None, weights: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the number, or total weight, of the elements of ``a`` in each bin, and the edges of the bins.

    Counts are step functions, without derivatives with respect to ``a`` and the edges. Sums of weights are linear in
    the weights. Edges that come from ``range``, or from the smallest and the largest element, carry the derivatives of
    these numbers. A density carries them too, because it is divided by the widths of the bins.

    Args:
        a: an array, which is flattened.
        bins: a number of bins, their ascending edges, or the name of a rule for the number of bins.
        range: the first and the last edge, if ``bins`` is not an array.
        density: whether to divide by the widths and the sum, for an integral of 1.
        weights: a weight for each element.

    Raises:
        ValueError: a range that is not finite, descending edges, weights of another shape.
        TypeError: a rule together with weights.
        ConcretizationError: a rule that gives the examples of a ``vmap`` different numbers of bins.

    Example:
        >>> fnp.histogram([1.0, 2.0, 2.5, 5.0], bins=2)
        (array([3, 1]), array([1., 3., 5.]))
    """
    if is_plain(a, bins, range, weights):
        routine: Any = np.histogram
        counts, edges = routine(a, bins, range, density, weights)
        return counts, edges
    a, weights = _sample(a, weights)
    edges, uniform = _edges(a, bins, range, weights)
    places = _slots(astype(a, backend.dtype_of(edges)) if uniform else a, edges)
    slots = backend.shape_of(edges)[0] + 1
    if weights is None:
        sums = _sum_by_index(places, None, slots)
    else:
        own = backend.dtype_of(weights)
        sums = astype(_sum_by_index(places, astype(weights, result_type(own, np.float64)), slots), own)
    sums = getitem(sums, slice(1, -1))
    if density:
        sums = divide(divide(sums, astype(_widths(edges), np.float64)), reduce_sum(sums, axis=(0,)))
    return sums, edges


def _sample(a: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array | None]:
    """Return the elements and their weights, both along one axis."""
    a = as_value(a)
    if backend.dtype_of(a).kind == "b":
        warn(f"Converting input from {backend.dtype_of(a)} to {np.uint8} for compatibility.", RuntimeWarning)
        a = astype(a, np.uint8)
    if weights is not None:
        weights = as_value(weights)
        if backend.shape_of(weights) != backend.shape_of(a):
            raise ValueError("weights should have the same shape as a.")
        weights = ravel(weights)
    return ravel(a), weights


def _widths(edges: Array) -> Array:
    return subtract(getitem(edges, slice(1, None)), getitem(edges, slice(None, -1)))


def _slots(a: Array, edges: Array) -> Array:
    """Return the slot of each element: 0 before the bins, then a slot for each bin, the last for NaN and beyond."""
    found = searchsorted(edges, a, side="right")
    return subtract(found, equal(a, getitem(edges, -1)))  # the last bin includes its right edge


def _edges(a: Array, bins: Any, range: Any, weights: Any) -> tuple[Array, bool]:
    """Return the edges of the bins, and whether they are evenly spaced."""
    if _is_array(bins):
        return _given_edges("`bins`", bins), False
    if isinstance(bins, str) and weights is not None:
        raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
    first, last = _bounds(a, range)
    if isinstance(bins, str):
        number = operator.index(prim.estimated_bins(a, first, last, rule=bins))
    else:
        number = _number_of_bins("`bins`", bins)
    dtype = result_type(first, last, a)
    if dtype.kind in "iu":
        dtype = result_type(dtype, float)
    edges = prim.linspace(first, last, num=number + 1, endpoint=True, dtype=np.dtype(dtype))
    if any_true(lambda x: x[..., :-1] >= x[..., 1:], edges):
        raise ValueError(f"Too many bins for data range. Cannot create {number} finite-sized bins.")
    return as_buffer(edges), True


def _is_array(bins: Any) -> bool:
    return isinstance(bins, (list, tuple)) or len(getattr(bins, "shape", ())) > 0


def _number_of_bins(name: str, bins: Any) -> int:
    try:
        number = operator.index(bins)
    except ConcretizationError:
        raise
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, a string, or an array") from error
    if number < 1:
        raise ValueError(f"{name} must be positive, when an integer")
    return number


def _given_edges(name: str, bins: Any) -> Array:
    edges = as_value(bins)
    if len(backend.shape_of(edges)) != 1:
        raise ValueError(f"{name} must be 1d, when an array")
    if any_true(lambda x: x[..., :-1] > x[..., 1:], edges):
        raise ValueError(f"{name} must increase monotonically, when an array")
    return edges


def _bounds(a: Array, range: Any) -> tuple[Any, Any]:
    """Return the first and the last edge; their distance is 1 if ``a`` is empty or the two would be equal."""
    if range is not None:
        first, last = range
        if any_true(lambda falling: falling, greater(first, last)):
            raise ValueError("max must be larger than min in range parameter.")
    elif not prod(backend.shape_of(a)):
        first, last = 0, 1
    else:
        first, last = reductions.min(a), reductions.max(a)
    if any_true(lambda finite: ~finite, logical_and(isfinite(first), isfinite(last))):
        raise ValueError(f"{'autodetected' if range is None else 'supplied'} range of the bins is not finite")
    same = equal(first, last)
    if is_plain(same):
        return (subtract(first, 0.5), add(last, 0.5)) if same else (first, last)
    half = multiply(astype(same, result_type(first, last, 0.5)), 0.5)
    return subtract(first, half), add(last, half)


def histogram_bin_edges(a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None) -> Array:
    """Return the edges of the bins of ``histogram``; arguments, derivatives and errors as for ``histogram``.

    Example:
        >>> fnp.histogram_bin_edges([1.0, 2.0, 5.0], bins=2)
        array([1., 3., 5.])
    """
    if is_plain(a, bins, range, weights):
        return np.histogram_bin_edges(a, bins, range, weights)
    a, weights = _sample(a, weights)
    return _edges(a, bins, range, weights)[0]


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Array, Array, Array]:
    """Return the number of points with coordinates ``x`` and ``y`` in each bin, and the edges of the bins.

    Args:
        x: the first coordinates, along one axis.
        y: the second coordinates.
        bins: a number of bins or their edges, for both axes, or a list with a number or edges for each axis.
        range: the first and the last edge for each axis.
        density: as for ``histogram``, whose derivatives and errors apply here too.
        weights: a weight for each point.

    Example:
        >>> fnp.histogram2d([0.0, 1.0, 1.0], [0.0, 2.0, 1.5], bins=2)[0]
        array([[1., 0.],
               [0., 2.]])
    """
    if is_plain(x, y, bins, range, weights):
        return np.histogram2d(x, y, bins, range, density, weights)
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if _is_array(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    hist, edges = histogramdd([x, y], bins, range, density, weights)
    return hist, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike, bins: Any = 10, range: Any = None, density: bool | None = None, weights: ArrayLike | None = None
) -> tuple[Array, Any]:
    """Return the number of points in each bin of a grid, and the edges of the bins for each axis.

    Args:
        sample: one point in each row; or a list with an array of coordinates for each axis.
        bins: a number of bins for all axes, or a number or edges for each axis.
        range: the first and the last edge, or None, for each axis.
        density: as for ``histogram``, whose derivatives and errors apply here too.
        weights: a weight for each point.

    Example:
        >>> fnp.histogramdd([[0.0, 1.0, 1.0], [0.0, 2.0, 1.5]], bins=2)[0]
        array([[1., 0.],
               [0., 2.]])
    """
    if is_plain(sample, bins, range, weights):
        return np.histogramdd(sample, bins, range, density, weights)
    columns = _columns(sample)
    rank = len(columns)
    if not _is_array(bins):
        bins = [bins] * rank
    if len(bins) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * rank if range is None else range
    if len(ranges) != rank:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_axis_edges(i, x, n, r) for i, (x, n, r) in enumerate(zip(columns, bins, ranges, strict=True))]
    slots = [backend.shape_of(e)[0] + 1 for e in edges]
    places: Any = 0
    for x, e, n in zip(columns, edges, slots, strict=True):
        places = add(multiply(places, n), _slots(x, e))
    weights = None if weights is None else _as_double(as_value(weights))
    hist = astype(reshape(_sum_by_index(places, weights, prod(slots)), to=tuple(slots)), np.float64)
    hist = getitem(hist, (slice(1, -1),) * rank)
    if density:
        total = reduce_sum(hist, axis=ALL_AXES[rank])
        for i, e in enumerate(edges):
            hist = divide(hist, reshape(_widths(e), to=tuple([-2 + n if j == i else 1 for j, n in enumerate(slots)])))
        hist = divide(hist, total)
    return hist, edges


def _columns(sample: ArrayLike) -> list[Array]:
    """Return the coordinates of all points along each axis."""
    if hasattr(sample, "shape") and len(sample.shape) == 2:
        return [getitem(sample, (slice(None), i)) for i in range(sample.shape[1])]
    sample = as_value(sample)
    shape = backend.shape_of(sample)
    if len(shape) > 2:
        raise ValueError(f"histogramdd: points are the rows of a sample of two axes, got {describe(sample)}")
    return [ravel(sample)] if len(shape) < 2 else [getitem(sample, i) for i in range(shape[0])]


def _axis_edges(axis: int, x: Array, bins: Any, range: Any) -> Array:
    if _is_array(bins):
        return _given_edges(f"`bins[{axis}]`", bins)
    first, last = _bounds(x, range)
    dtype = np.dtype(result_type(first, last, 1.0))
    number = _number_of_bins(f"`bins[{axis}]`", bins)
    return prim.linspace(first, last, num=number + 1, endpoint=True, dtype=dtype)
