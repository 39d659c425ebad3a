"""Interpolation of values at scattered points."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import single
from funcgrad.optional import import_scipy
from funcgrad.scipy.interpolate.triangulated import Scattered, coordinates, is_single
from funcgrad.typing import Array, ArrayLike

__all__ = ["LinearNDInterpolator", "NearestNDInterpolator"]


class LinearNDInterpolator(Scattered):
    """Values at scattered points, linear in each simplex between them; differentiable in values, points and queries.

    The simplices are those of Delaunay's triangulation. They are constants, whatever the points depend on.

    Args:
        points: the points, of shape (n, d), or the d arrays of their coordinates, or a ``scipy.spatial.Delaunay``.
        values: a value for each point, of shape (n, ...).
        fill_value: what stands outside of all simplices.
        rescale: whether the points are triangulated in the unit cube.

    Raises:
        MissingExtraError: SciPy is not installed.
        ShapeError: not as many values as points, or queries of another dimension.
        ConversionError: traced points in a ``vmap``, whose simplices would differ.

    Example:
        >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
        >>> LinearNDInterpolator(corners, [1.0, 2.0, 4.0])([[0.5, 0.25]])
        array([2.25])
    """

    def __init__(self, points: Any, values: ArrayLike, fill_value: ArrayLike = np.nan, rescale: bool = False) -> None:
        super().__init__("LinearNDInterpolator", points, values, fill_value, rescale)

    def _within(self, places: Any, points: Array) -> Array:
        corners = fnp.take(self.tri.simplices, places, axis=0)
        return fnp.einsum("pv,pv...->p...", self._shares(places, points), fnp.take(self.values, corners, axis=0))


class NearestNDInterpolator:
    """The value at the nearest of scattered points; differentiable in values.

    Which point is the nearest is a constant, whatever the points and the queries depend on.

    Args:
        x: the points, of shape (n, d), or the d arrays of their coordinates.
        y: a value for each point, of shape (n, ...).
        rescale: whether distances are those in the unit cube.
        tree_options: those of ``scipy.spatial.KDTree``.

    Raises:
        MissingExtraError: SciPy is not installed.
        ConversionError: options of a query, where points or queries differ between the examples of a ``vmap``.

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
        """The values at places: an array of shape (..., d), or d arrays of coordinates.

        Args:
            args: the places.
            query_options: those of ``scipy.spatial.KDTree.query``.
        """
        xi = coordinates(args[0] if len(args) == 1 else args)
        flat = (fnp.reshape(xi, (-1, backend.shape_of(self.points)[1])) - self.origin) / self.unit
        at = self._nearest(flat, query_options)
        found = fnp.take(self.values, fnp.minimum(at, len(self.values) - 1), axis=0)
        found = found if backend.dtype_of(found).kind == "c" else fnp.astype(found, float)
        behind = backend.shape_of(found)[1:]
        beyond = fnp.reshape(at == len(self.values), (-1, *[1] * len(behind)))  # of an upper bound
        return fnp.reshape(fnp.where(beyond, np.nan, found), (*backend.shape_of(xi)[:-1], *behind))

    def _nearest(self, places: Array, options: Any) -> Any:
        """The number of the nearest point of each place; of many examples the distances to all are computed."""
        if options or all(is_single(x) for x in (self.points, places)):
            if self.tree is None:
                spatial = import_scipy("interpolate.NearestNDInterpolator", "scipy.spatial")
                self.tree = spatial.cKDTree(single(self.points), **self.tree_options)
            return self.tree.query(single(places), **options)[1]
        return fnp.argmin(fnp.sum((places[:, None] - self.points) ** 2, axis=-1), axis=1)
