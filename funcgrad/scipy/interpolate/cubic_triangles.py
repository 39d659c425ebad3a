"""Smooth interpolation of values at scattered points of a plane, by cubic polynomials in triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.scipy.interpolate.triangulated import Scattered
from funcgrad.scipy.sparse.linalg import spsolve
from funcgrad.scipy.sparse.matrices import csr_array
from funcgrad.typing import Array, ArrayLike

__all__ = ["CloughTocher2DInterpolator"]


class CloughTocher2DInterpolator(Scattered):
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
