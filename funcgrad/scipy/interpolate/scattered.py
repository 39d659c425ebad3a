"""Interpolation of values at scattered points: linear, nearest, and, in a plane, smooth by cubic polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import shared_numbers
from funcgrad.optional import import_scipy
from funcgrad.scipy.sparse.linalg import spsolve
from funcgrad.scipy.sparse.matrices import csr_array
from funcgrad.scipy.spatial.hulls import Delaunay, containing_simplices, is_single
from funcgrad.typing import Array, ArrayLike

__all__ = ["CloughTocher2DInterpolator", "LinearNDInterpolator", "NearestNDInterpolator"]


class _Scattered:
    """Values at scattered points, and the simplices of their Delaunay triangulation, which are constants.

    Args:
        call: the name of the class, for messages.
        points: the points, of shape (n, d), or the d arrays of their coordinates, or a ``scipy.spatial.Delaunay``.
        values: a value for each point, of shape (n, ...).
        fill_value: the value outside of all simplices.
        rescale: whether the points are scaled to the unit cube first.

    Attributes:
        points: the points, in the unit cube if they were scaled.
        origin: the offset that scaling subtracted from the points.
        unit: the lengths by which scaling divided the points.
    """

    def __init__(self, call: str, points: Any, values: ArrayLike, fill_value: ArrayLike, rescale: bool) -> None:
        spatial = import_scipy(f"interpolate.{call}", "scipy.spatial")
        given = isinstance(points, (spatial.Delaunay, Delaunay))
        self.call, self.values, self.fill_value = call, as_value(values), fill_value
        self.points: Any = points.points if given else fnp.astype(_coordinates(points), float)
        if backend.shape_of(self.values)[:1] != backend.shape_of(self.points)[:1]:
            raise ShapeError(
                f"interpolate.{call}: values must have one entry for each point, got "
                f"{describe(self.values)} for points {describe(self.points)}."
            )
        self.origin: Any = 0.0
        self.unit: Any = 1.0
        if rescale and not given:
            self.origin, wide = fnp.min(self.points, axis=0), fnp.ptp(self.points, axis=0)
            self.unit = fnp.where(wide > 0, wide, 1.0)
            self.points = (self.points - self.origin) / self.unit
        self.tri = getattr(points, "plain", points) if given else spatial.Delaunay(shared_numbers(self.points))

    def __call__(self, *args: Any, simplex_tolerance: float = 1.0) -> Array:
        """Return the values at points: an array of shape (..., d), or d arrays of coordinates.

        Args:
            args: the points.
            simplex_tolerance: how far a point may lie outside of a simplex, in units of the rounding error.
        """
        xi = _coordinates(args[0] if len(args) == 1 else args)
        dimension = backend.shape_of(self.points)[1]
        if backend.shape_of(xi)[-1:] != (dimension,):
            raise ShapeError(
                f"interpolate.{self.call}: the last axis of xi must be {dimension} long, got {describe(xi)}."
            )
        flat = (fnp.reshape(xi, (-1, dimension)) - self.origin) / self.unit
        simplices = containing_simplices(self.tri, flat, simplex_tolerance * 100 * np.finfo(float).eps)
        found = self._within(simplices, flat)
        trailing = backend.shape_of(found)[1:]
        outside = fnp.reshape(simplices < 0, (-1, *[1] * len(trailing)))
        return fnp.reshape(fnp.where(outside, self.fill_value, found), (*backend.shape_of(xi)[:-1], *trailing))

    def _within(self, simplices: Any, points: Array) -> Array:
        """Return the values at ``points``, which lie in the simplices with the indices ``simplices``."""
        raise NotImplementedError

    def _shares(self, simplices: Any, points: Array) -> Array:
        """Return the barycentric coordinates of points in simplices, of shape (n, d + 1)."""
        vertices = fnp.take(self.points, fnp.take(self.tri.simplices, simplices, axis=0), axis=0)
        edges = fnp.swapaxes(vertices[:, :-1] - vertices[:, -1:], 1, 2)
        shares = fnp.linalg.solve(edges, (points - vertices[:, -1])[..., None])[..., 0]
        return fnp.concatenate([shares, 1 - fnp.sum(shares, axis=1, keepdims=True)], axis=1)


def _coordinates(points: Any) -> Array:
    """Return points along the last axis, from an array or a tuple of coordinates."""
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*[as_value(x) for x in points]), axis=-1)
    points = fnp.asarray(points)
    return points[None] if fnp.ndim(points) == 1 else points  # SciPy returns an array for one point, too


class LinearNDInterpolator(_Scattered):
    """Linear interpolation in the simplices between scattered points; differentiable in values, points and queries.

    The simplices are those of the Delaunay triangulation, and constants even if the points are traced.

    Args:
        points: the points, of shape (n, d), or the d arrays of their coordinates, or a ``scipy.spatial.Delaunay``.
        values: a value for each point, of shape (n, ...).
        fill_value: the value outside of all simplices.
        rescale: whether the points are triangulated in the unit cube.

    Raises:
        MissingExtraError: SciPy is not installed.
        ShapeError: the numbers of values and points differ, or queries of another dimension.
        ConversionError: traced points in a ``vmap``, whose simplices would differ.

    Example:
        >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
        >>> LinearNDInterpolator(corners, [1.0, 2.0, 4.0])([[0.5, 0.25]])
        array([2.25])
    """

    def __init__(self, points: Any, values: ArrayLike, fill_value: ArrayLike = np.nan, rescale: bool = False) -> None:
        super().__init__("LinearNDInterpolator", points, values, fill_value, rescale)

    def _within(self, simplices: Any, points: Array) -> Array:
        corners = fnp.take(self.tri.simplices, simplices, axis=0)
        return fnp.einsum("pv,pv...->p...", self._shares(simplices, points), fnp.take(self.values, corners, axis=0))


class NearestNDInterpolator:
    """The value at the nearest of scattered points; differentiable in values.

    The choice of the nearest point is a constant, even if points and queries are traced.

    Args:
        x: the points, of shape (n, d), or the d arrays of their coordinates.
        y: a value for each point, of shape (n, ...).
        rescale: whether distances are measured in the unit cube.
        tree_options: options of ``scipy.spatial.KDTree``.

    Raises:
        MissingExtraError: SciPy is not installed.
        ConversionError: options of a query, if points or queries differ between the examples of a ``vmap``.

    Example:
        >>> NearestNDInterpolator([[0.0, 0.0], [1.0, 0.0]], [1.0, 2.0])([[0.7, 0.4]])
        array([2.])
    """

    def __init__(self, x: Any, y: ArrayLike, rescale: bool = False, tree_options: Any = None) -> None:
        self.points: Any = fnp.astype(_coordinates(x), float)
        self.values, self.tree_options = as_value(y), tree_options or {}
        self.tree: Any = None
        self.origin, self.unit = 0.0, 1.0
        if rescale:
            self.origin, wide = fnp.mean(self.points, axis=0), fnp.ptp(self.points, axis=0)
            self.unit = fnp.where(wide > 0, wide, 1.0)
            self.points = (self.points - self.origin) / self.unit

    def __call__(self, *args: Any, **query_options: Any) -> Array:
        """Return the values at query points: an array of shape (..., d), or d arrays of coordinates.

        Args:
            args: the query points.
            query_options: options of ``scipy.spatial.KDTree.query``.
        """
        xi = _coordinates(args[0] if len(args) == 1 else args)
        flat = (fnp.reshape(xi, (-1, backend.shape_of(self.points)[1])) - self.origin) / self.unit
        at = self._nearest(flat, query_options)
        found = fnp.take(self.values, fnp.minimum(at, len(self.values) - 1), axis=0)
        found = found if backend.dtype_of(found).kind == "c" else fnp.astype(found, float)
        trailing = backend.shape_of(found)[1:]
        beyond = fnp.reshape(at == len(self.values), (-1, *[1] * len(trailing)))  # none within the upper bound
        return fnp.reshape(fnp.where(beyond, np.nan, found), (*backend.shape_of(xi)[:-1], *trailing))

    def _nearest(self, queries: Array, options: Any) -> Any:
        """Return the index of the nearest point of each query; for a batch, from the distances to all points."""
        if options or all(is_single(x) for x in (self.points, queries)):
            if self.tree is None:
                spatial = import_scipy("interpolate.NearestNDInterpolator", "scipy.spatial")
                self.tree = spatial.cKDTree(shared_numbers(self.points), **self.tree_options)
            return self.tree.query(shared_numbers(queries), **options)[1]
        return fnp.argmin(fnp.sum((queries[:, None] - self.points) ** 2, axis=-1), axis=1)


class CloughTocher2DInterpolator(_Scattered):
    """Piecewise cubic interpolation at scattered points of a plane, with continuous slopes; differentiable in all.

    Each triangle has three cubic polynomials (Alfeld 1984; Farin 1986). The slopes at the points minimise the curvature
    along the edges (Nielson 1983; Renka and Cline 1984). SciPy iterates until the slopes change by less than ``tol``;
    here their linear equations are solved. So the values are SciPy's with a small ``tol``. The triangles are those of
    the Delaunay triangulation, and constants.

    Args:
        points: the points, of shape (n, 2), or two arrays of coordinates, or a ``scipy.spatial.Delaunay``.
        values: a value for each point, of shape (n, ...).
        fill_value: the value outside of all triangles.
        tol: SciPy's tolerance, without effect here.
        maxiter: SciPy's limit, without effect here.
        rescale: whether the points are scaled to the unit square first.

    Raises:
        MissingExtraError: SciPy is not installed.
        ShapeError: the numbers of values and points differ, or points of another dimension.
        ConversionError: traced points in a ``vmap``, whose triangles would differ.

    Example:
        >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
        >>> CloughTocher2DInterpolator(corners, [1.0, 2.0, 4.0, 5.0])([[0.5, 0.25]])
        array([2.25])
    """

    def __init__(
        self,
        points: Any,
        values: ArrayLike,
        fill_value: ArrayLike = np.nan,
        tol: float = 1e-6,
        maxiter: int = 400,
        rescale: bool = False,
    ) -> None:
        super().__init__("CloughTocher2DInterpolator", points, values, fill_value, rescale)
        if backend.shape_of(self.points)[1:] != (2,):
            raise ShapeError(
                "interpolate.CloughTocher2DInterpolator: points must lie in a plane, with shape (n, 2), got "
                f"{describe(self.points)}. Use LinearNDInterpolator or RBFInterpolator."
            )
        self.values = fnp.astype(self.values, fnp.result_type(self.values, float))
        shape = backend.shape_of(self.values)
        self._columns = fnp.reshape(self.values, (shape[0], -1))
        self._slopes = _slopes(self.tri, self.points, self._columns)

    def _within(self, simplices: Any, points: Array) -> Array:
        corners = fnp.take(self.tri.simplices, simplices, axis=0)
        found = _bernstein_polynomials(
            fnp.take(self._columns, corners, axis=0),
            fnp.take(self._slopes, corners, axis=0),
            fnp.take(self.points, corners, axis=0),
            self._towards(simplices),
        )(self._shares(simplices, points))
        return fnp.reshape(found, (-1, *backend.shape_of(self.values)[1:]))

    def _towards(self, simplices: Any) -> Array:
        """Return for each edge the direction of linear slope along it: to the middle of the triangle beyond it."""
        beyond = fnp.take(self.tri.neighbors, simplices, axis=0)
        directions = []
        for k in range(3):
            there = fnp.take(self.tri.simplices, beyond[:, k], axis=0)
            shares = self._shares(simplices, fnp.mean(fnp.take(self.points, there, axis=0), axis=1))
            a, b, is_last = shares[:, k - 2], shares[:, k - 1], beyond[:, k] < 0
            below = fnp.where(is_last, 1.0, 2 - 3 * b - 3 * a)
            directions.append(fnp.where(is_last, -0.5, (2 * b + a - 1) / below))  # at the border: away from the middle
        return fnp.stack(directions, axis=1)[..., None]


def _slopes(triangles: Any, points: Array, values: Array) -> Array:
    """Return the slopes at the points that minimise the curvature along all edges, of shape (n, 2, columns).

    Along an edge the interpolant is the Hermite cubic. The integral of its squared second derivative is, up to a
    constant, 4 (d d + d d' + d' d') - 12 (f' - f) (d + d') over the third power of the edge's length, with f and f' the
    values and d and d' the derivatives along the edge at its ends.
    """
    starts, ends = triangles.vertex_neighbor_vertices
    n, one = len(starts) - 1, np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    edges = fnp.take(points, ends, axis=0) - fnp.take(points, one, axis=0)
    scaled = edges / fnp.sum(edges**2, axis=1, keepdims=True) ** 1.5
    blocks = edges[:, :, None] * scaled[:, None, :]
    first = 2 * one[:, None, None] + np.arange(2)
    row, own, other = np.broadcast_arrays(fnp.swapaxes(first, 1, 2), first, 2 * ends[:, None, None] + np.arange(2))
    alone = np.flatnonzero(np.repeat(np.diff(starts) == 0, 2))  # points without a triangle
    data = [fnp.ravel(4 * blocks), fnp.ravel(2 * blocks), np.ones(len(alone))]
    rows, columns = [np.concatenate([a.ravel(), b.ravel(), alone]) for a, b in ((row, row), (own, other))]
    steps = fnp.take(values, ends, axis=0) - fnp.take(values, one, axis=0)
    pulls = fnp.reshape(6 * scaled[:, :, None] * steps[:, None, :], (2 * len(one), -1))
    summing = csr_array((np.ones(2 * len(one)), (row[:, :, 0].ravel(), np.arange(2 * len(one)))), (2 * n, 2 * len(one)))
    found = spsolve(csr_array((fnp.concatenate(data), (rows, columns)), (2 * n, 2 * n)), summing @ pulls)
    return fnp.reshape(found, (n, 2, -1))


def _bernstein_polynomials(f: Array, slopes: Array, vertices: Array, towards: Array) -> Any:
    """Return the polynomials of triangles, split at their middles, as a function of barycentric coordinates.

    Args:
        f: values at the vertices, of shape (n, 3, columns).
        slopes: the slopes at the vertices, of shape (n, 3, 2, columns).
        vertices: the vertices, of shape (n, 3, 2).
        towards: the direction of linear slope along each edge, of shape (n, 3, 1).
    """
    next_, before = [f + _along(_rotated_vertices(vertices, k) - vertices, slopes) / 3 for k in (1, 2)]
    inner = (next_ + before + f) / 3
    a, b = _rotated_vertices(f, 1), _rotated_vertices(f, 2)
    ab, ba = _rotated_vertices(next_, 1), _rotated_vertices(before, 2)
    across = (
        towards * (-a + 3 * ab - 3 * ba + b)
        - a
        + 2 * ab
        - ba
        + _rotated_vertices(inner, 1)
        + _rotated_vertices(inner, 2)
    ) / 2
    deep = (_rotated_vertices(across, 1) + _rotated_vertices(across, 2) + inner) / 3
    middle = fnp.mean(deep, axis=1)

    def at(shares: Array) -> Array:
        least = fnp.min(shares, axis=1, keepdims=True)
        x, m = (shares - least)[..., None], 3 * least[..., None]
        y, z = _rotated_vertices(x, 1), _rotated_vertices(x, 2)
        terms = (
            x**3 * f + 3 * x**2 * (y * next_ + z * before + m * inner) + 3 * x * m**2 * deep + 6 * m * y * z * across
        )
        return fnp.sum(terms, axis=1) + m[:, 0] ** 3 * middle

    return at


def _rotated_vertices(x: Array, k: int) -> Array:
    """Return for each vertex the entry of the ``k``-th vertex after it."""
    return fnp.roll(x, -k, axis=1)


def _along(edges: Array, slopes: Array) -> Array:
    return fnp.einsum("pvc,pvck->pvk", edges, slopes)
