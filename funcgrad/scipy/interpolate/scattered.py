"""Interpolation of values at scattered points."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import shared_numbers
from funcgrad.optional import import_scipy
from funcgrad.scipy.interpolate.triangulated import Scattered, coordinates, is_single
from funcgrad.typing import Array, ArrayLike

__all__ = ["LinearNDInterpolator", "NearestNDInterpolator"]


class LinearNDInterpolator(Scattered):
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
        self.points: Any = fnp.astype(coordinates(x), float)
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
        xi = coordinates(args[0] if len(args) == 1 else args)
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
