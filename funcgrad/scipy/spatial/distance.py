"""Distances between vectors, and between all pairs of rows, of ``scipy.spatial.distance``.

The distance 0 of equal vectors has the derivative zero here; where two elements are equal, the absolute value of their
difference has the derivative zero too.

Example:
    >>> from funcgrad.scipy.spatial import distance
    >>> grad(lambda x: np.sum(distance.cdist(x, x)))(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[-1.2, -1.6], [ 1.2,  1.6]])
"""

from __future__ import annotations

from functools import cache
from math import isqrt
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.plain_values.peeking import concrete_or_none, is_plain
from funcgrad.numpy.reducing import as_scalar
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.norms import sqrt_flat_at_zero
from funcgrad.scipy.own_code import own_code
from funcgrad.scipy.spatial import metrics
from funcgrad.scipy.spatial.operations import squared_distances
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "jensenshannon",
    "minkowski", "pdist", "squareform",
]  # fmt: skip


def _scipy(name: str) -> Any:
    return getattr(import_scipy(f"spatial.distance.{name}", "scipy.spatial.distance"), name)


# ---- all pairs ---------------------------------------------------------------------------------------------


def _matrix(call: str, x: ArrayLike) -> Array:
    """Return rows in double precision, as SciPy does."""
    x = as_value(x)
    if len(backend.shape_of(x)) != 2 or backend.dtype_of(x).kind == "c":
        raise ShapeError(f"spatial.distance.{call}: observations must be the rows of a real matrix, got {describe(x)}.")
    return fnp.astype(x, float)


def _without_out(call: str, out: Any) -> None:
    if out is not None:
        raise InputError(
            f"spatial.distance.{call}: out must be None, got {type(out).__name__}. Assign the result instead."
        )


def _options(call: str, name: str, rows: list[Array], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a metric; options not given are estimated from the rows, as in SciPy."""
    options = {key: value for key, value in given.items() if value is not None}
    if "w" in options:
        options["w"] = metrics.weights_of(call, options["w"])
    if name in ("seuclidean", "mahalanobis"):
        key = "V" if name == "seuclidean" else "VI"
        if key in options:
            options[key] = fnp.astype(as_value(options[key]), float)
            return options
        every = rows[0] if len(rows) == 1 else fnp.concatenate(rows)
        count, width = backend.shape_of(every)
        if key == "V":
            options["V"] = fnp.var(every, axis=0, ddof=1)
        elif count <= width:
            raise ShapeError(
                f"spatial.distance.{call}: the covariance of so few observations is singular, got {count} of {width}. "
                "Pass VI."
            )
        else:
            options["VI"] = fnp.linalg.inv(fnp.atleast_2d(fnp.cov(every.T))).T
    return options


def _by_name(call: str, metric: Any) -> str | None:
    """Return the name of a metric; None for a function that is neither SciPy's nor of this module."""
    if isinstance(metric, str):
        return metrics.named(call, metric)
    name = getattr(metric, "__name__", "")
    known_here = name in metrics.METRICS and getattr(metric, "__module__", "").endswith("scipy.spatial.distance")
    return name if known_here else None


def _as_scipy_knows(metric: Any) -> Any:
    return metric.__name__ if callable(metric) else metric


def cdist(XA: ArrayLike, XB: ArrayLike, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Array:
    """Compute the distances of all rows of one matrix from all rows of another.

    Differentiable in both matrices and in the options. Euclidean distances without weights need no array of three axes.

    Args:
        XA: m rows.
        XB: n rows of the same length.
        metric: the name of a metric that this module has as a function, or a function of two vectors.
        out: None: a result cannot be written into an array.
        **kwargs: the options of the metric: ``w``, ``p``, ``V``, ``VI``, ``base``. ``V`` and ``VI`` are estimated from
            the rows if they are left out.

    Returns:
        An array of shape (m, n) in double precision.

    Raises:
        ValueError: arguments are not rows of one length, or a weight is negative.
        TypeError: the metric is not differentiable, or ``out`` is an array.

    Example:
        >>> from funcgrad.scipy.spatial.distance import cdist
        >>> cdist([[0.0, 0.0]], [[3.0, 4.0], [1.0, 0.0]])
        array([[5., 1.]])
    """
    _without_out("cdist", out)
    if is_plain(XA, XB, *kwargs.values()) and (not callable(metric) or _by_name("cdist", metric)):
        return _scipy("cdist")(XA, XB, _as_scipy_knows(metric), **kwargs)
    x, y = _matrix("cdist", XA), _matrix("cdist", XB)
    if backend.shape_of(x)[1] != backend.shape_of(y)[1]:
        raise ShapeError(f"spatial.distance.cdist: rows must be of one length, got {describe(x)} and {describe(y)}.")
    name = _by_name("cdist", metric)
    if name is None:
        count, others = backend.shape_of(x)[0], backend.shape_of(y)[0]
        return fnp.stack([fnp.stack([metric(x[i], y[j], **kwargs) for j in range(others)]) for i in range(count)])
    if name in ("euclidean", "sqeuclidean") and not kwargs:
        squares = squared_distances(x, y)
        return squares if name == "sqeuclidean" else sqrt_flat_at_zero(squares)
    return metrics.METRICS[name][0](x[:, None], y[None], **_options("cdist", name, [x, y], kwargs))


def pdist(X: ArrayLike, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Array:
    """Compute the distances of all pairs of rows of a matrix, as a vector, which ``squareform`` makes a matrix.

    Arguments as for ``cdist``.

    Example:
        >>> from funcgrad.scipy.spatial.distance import pdist
        >>> pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).round(6)
        array([5.      , 1.      , 4.242641])
    """
    _without_out("pdist", out)
    if is_plain(X, *kwargs.values()) and (not callable(metric) or _by_name("pdist", metric)):
        return _scipy("pdist")(X, _as_scipy_knows(metric), **kwargs)
    x = _matrix("pdist", X)
    first, second = np.triu_indices(backend.shape_of(x)[0], 1)
    name = _by_name("pdist", metric)
    if name is None:
        return fnp.stack([metric(x[i], x[j], **kwargs) for i, j in zip(first, second, strict=True)])
    if name in ("euclidean", "sqeuclidean") and not kwargs:
        squares = getitem(squared_distances(x, x), (first, second))
        return squares if name == "sqeuclidean" else sqrt_flat_at_zero(squares)
    options = _options("pdist", name, [x], kwargs)
    return metrics.METRICS[name][0](getitem(x, first), getitem(x, second), **options)


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:
    """Convert the vector of ``pdist`` to the matrix of all distances, or the matrix to the vector.

    The derivative of a matrix goes to the entries above the diagonal, the only ones that are read.

    Args:
        X: a vector, or a symmetric matrix with zeros in its diagonal.
        force: "tovector" or "tomatrix", to refuse the other direction.
        checks: whether to check that the matrix is a distance matrix.

    Raises:
        ValueError: the matrix is not a distance matrix, or the length of the vector is invalid.

    Example:
        >>> from funcgrad.scipy.spatial.distance import squareform
        >>> squareform([5.0, 1.0, 4.0])
        array([[0., 5., 1.],
               [5., 0., 4.],
               [1., 4., 0.]])
    """
    if is_plain(X):
        return _scipy("squareform")(X, force, checks)
    X = as_value(X)
    shape = backend.shape_of(X)
    if len(shape) not in (1, 2) or force.lower() == ("tovector", "tomatrix")[len(shape) - 1]:
        raise ShapeError(
            f"spatial.distance.squareform: X must be a vector or a matrix, as force says, got {describe(X)}."
        )
    if len(shape) == 2:
        values = concrete_or_none(X)
        if shape[0] != shape[1]:
            raise ShapeError(f"spatial.distance.squareform: the matrix must be square, got {describe(X)}.")
        if checks and values is not None:
            for matrix in values.reshape(-1, *shape):
                _scipy("is_valid_dm")(matrix, throw=True, name="X")
        return getitem(X, np.triu_indices(shape[0], 1))
    n = isqrt(2 * shape[0]) + 1
    if n * (n - 1) != 2 * shape[0]:
        raise ShapeError(f"spatial.distance.squareform: the length must be that of all pairs, got {shape[0]}.")
    places = np.zeros((n, n), int)
    places[np.triu_indices(n, 1)] = np.arange(shape[0])
    if not shape[0]:
        return fnp.zeros((1, 1), backend.dtype_of(X))
    return fnp.where(np.eye(n, dtype=bool), 0, getitem(X, places + places.T))


# ---- two vectors -------------------------------------------------------------------------------------------


def _vectors(call: str, u: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    x, y = as_value(u), as_value(v)
    if len(backend.shape_of(x)) != 1 or backend.shape_of(x) != backend.shape_of(y):
        raise ShapeError(
            f"spatial.distance.{call}: u and v must be vectors of one length, got {describe(x)} and {describe(y)}."
        )
    return x, y


def _weighted(call: str, u: ArrayLike, v: ArrayLike, w: Any, **options: Any) -> Array:
    """Compute a metric with weights of two vectors."""
    if is_plain(u, v, w, *options.values()):
        return _scipy(call)(u, v, w=w, **options)
    x, y = _vectors(call, u, v)
    if call in ("canberra", "braycurtis"):  # SciPy converts the second argument to double precision
        y = fnp.astype(y, float)
    found = metrics.METRICS[call][0](x, y, w=metrics.weights_of(call, w), **options)
    return as_scalar(fnp.astype(found, float) if call == "euclidean" and _widens() else found)


@cache
def _widens() -> bool:
    """Whether SciPy's ``euclidean`` returns a Python float for any dtype, as before 1.18."""
    vector = np.ones(1, np.float32)
    return type(_scipy("euclidean")(vector, vector)) is not np.float32


@function_table
def _metric(name: str, u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    return _weighted(name, u, v, w)


# fmt: off
euclidean = _metric("euclidean", """The length of ``u - v``, with weights ``w`` of the squares.

    Raises:
        ValueError: ``u`` or ``v`` is not a vector, traced vectors have different lengths, or weights are negative.""",
    "float(euclidean([0.0, 0.0], [3.0, 4.0]))", "5.0")
cityblock = _metric("cityblock", "The sum of absolute differences, with weights ``w``.",
    "cityblock([0.0, 0.0], [3.0, 4.0])", "np.float64(7.0)")
chebyshev = _metric("chebyshev",
    "The largest absolute difference of elements whose weight is not zero. Equal maxima share the derivative.",
    "chebyshev([0.0, 0.0], [3.0, 4.0])", "np.float64(4.0)")
cosine = _metric("cosine", "The cosine distance: 1 minus the cosine of the angle between two vectors.",
    "cosine([1.0, 0.0], [0.0, 1.0])", "np.float64(1.0)")
canberra = _metric("canberra",
    "The sum of absolute differences, each divided by the sum of both absolute values; two zeros contribute 0.",
    "canberra([1.0, 0.0], [3.0, 0.0])", "np.float64(0.5)")
braycurtis = _metric("braycurtis", "The sum of absolute differences, divided by the sum of absolute sums.",
    "braycurtis([1.0, 0.0], [3.0, 0.0])", "np.float64(0.5)")
# fmt: on


def minkowski(u: ArrayLike, v: ArrayLike, p: ArrayLike = 2, w: ArrayLike | None = None) -> Array:
    """Return the ``p``-th root of the sum of ``p``-th powers of absolute differences; differentiable in ``p`` too.

    Example:
        >>> from funcgrad.scipy.spatial.distance import minkowski
        >>> minkowski([0.0, 0.0], [3.0, 4.0], 3).round(6)
        np.float64(4.497941)
    """
    return _weighted("minkowski", u, v, w, p=p)


def correlation(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None, centered: bool = True) -> Array:
    """Return 1 minus the correlation of the elements of two vectors.

    Example:
        >>> from funcgrad.scipy.spatial.distance import correlation
        >>> correlation([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
        np.float64(1.5)
    """
    return _weighted("correlation", u, v, w, centered=centered)


def jensenshannon(
    p: ArrayLike, q: ArrayLike, base: ArrayLike | None = None, *, axis: int = 0, keepdims: bool = False
) -> Array:
    """Return the root of the Jensen-Shannon divergence of distributions along ``axis``, normalised to the sum 1.

    Args:
        p: distributions.
        q: distributions.
        base: base of the logarithm; the default is e.
        axis: the axis of the distributions.
        keepdims: whether the axis stays, with length 1.

    Example:
        >>> from funcgrad.scipy.spatial.distance import jensenshannon
        >>> jensenshannon([1.0, 0.0], [0.0, 1.0], 2.0)
        np.float64(1.0)
    """
    if is_plain(p, q, base):
        return _scipy("jensenshannon")(p, q, base, axis=axis, keepdims=keepdims)
    return as_scalar(metrics.jensenshannon(as_value(p), as_value(q), base, axis, keepdims))


_listed, __getattr__ = own_code("spatial.distance", globals())
__all__ += _listed
