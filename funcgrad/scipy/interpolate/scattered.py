"""Interpolation of values at scattered points."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import known
from funcgrad.optional import import_scipy
from funcgrad.typing import Array, ArrayLike

__all__ = ["LinearNDInterpolator"]


class LinearNDInterpolator:
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
        spatial = import_scipy("interpolate.LinearNDInterpolator", "scipy.spatial")
        given = isinstance(points, spatial.Delaunay)
        self.points = points.points if given else fnp.astype(_coordinates(points), float)
        self.values, self.fill_value = as_value(values), fill_value
        if backend.shape_of(self.values)[:1] != backend.shape_of(self.points)[:1]:
            raise ShapeError(
                "interpolate.LinearNDInterpolator: values must have one entry for each point, got "
                f"{describe(self.values)} for points {describe(self.points)}."
            )
        plain = known(self.points)
        if plain is None or plain.shape != backend.shape_of(self.points):
            plain = np.asarray(self.points)  # of many examples, which have not one triangulation: refused
        low, wide = plain.min(axis=0), np.ptp(plain, axis=0)
        scaled = rescale and not given
        self._origin: Any = low if scaled else 0.0
        self._unit: Any = np.where(wide > 0, wide, 1.0) if scaled else 1.0
        self.tri = points if given else spatial.Delaunay((plain - self._origin) / self._unit)

    def __call__(self, *args: Any, simplex_tolerance: float = 1.0) -> Array:
        """The values at points: an array of shape (..., d), or d arrays of coordinates.

        Args:
            args: the points.
            simplex_tolerance: how far a point may lie outside of a simplex, as a multiple of what rounding makes.
        """
        xi = _coordinates(args[0] if len(args) == 1 else args)
        dimension = backend.shape_of(self.points)[1]
        if backend.shape_of(xi)[-1:] != (dimension,):
            raise ShapeError(
                f"interpolate.LinearNDInterpolator: the last axis of xi must be {dimension} long, got {describe(xi)}."
            )
        flat = fnp.reshape(xi, (-1, dimension))
        places = self._places(flat, simplex_tolerance * 100 * np.finfo(float).eps)
        corners = fnp.take(self.tri.simplices, places, axis=0)
        vertices = fnp.take(self.points, corners, axis=0)
        edges = fnp.swapaxes(vertices[:, :-1] - vertices[:, -1:], 1, 2)
        shares = fnp.linalg.solve(edges, (flat - vertices[:, -1])[..., None])[..., 0]
        weights = fnp.concatenate([shares, 1 - fnp.sum(shares, axis=1, keepdims=True)], axis=1)
        found = fnp.einsum("pv,pv...->p...", weights, fnp.take(self.values, corners, axis=0))
        behind = backend.shape_of(found)[1:]
        outside = fnp.reshape(places < 0, (-1, *[1] * len(behind)))
        return fnp.reshape(fnp.where(outside, self.fill_value, found), (*backend.shape_of(xi)[:-1], *behind))

    def _places(self, points: Array, tolerance: float) -> Any:
        """The number of the simplex that each point lies in, -1 outside of all."""
        plain = known(points)
        if plain is not None and plain.shape == backend.shape_of(points):
            return self.tri.find_simplex((plain - self._origin) / self._unit, tol=tolerance)
        vertices = np.asarray(known(self.points))[self.tri.simplices]  # of many examples: each simplex is tried
        inverses = np.linalg.inv(np.swapaxes(vertices[:, :-1] - vertices[:, -1:], 1, 2))
        shares = fnp.einsum("sij,psj->psi", inverses, points[:, None] - vertices[:, -1])
        least = fnp.minimum(fnp.min(shares, axis=2), 1 - fnp.sum(shares, axis=2))
        return fnp.where(fnp.max(least, axis=1) < -tolerance, -1, fnp.argmax(least, axis=1))


def _coordinates(points: Any) -> Array:
    """Points along the last axis, of an array or a tuple of coordinates."""
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*[as_value(x) for x in points]), axis=-1)
    return fnp.asarray(points)
