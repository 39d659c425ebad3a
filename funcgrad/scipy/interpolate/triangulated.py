"""Scattered points, and the simplices between them."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import concrete_or_none, shared_numbers
from funcgrad.optional import import_scipy
from funcgrad.typing import Array, ArrayLike

__all__ = ["Scattered", "coordinates", "is_single"]


class Scattered:
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
        given = isinstance(points, spatial.Delaunay)
        self.call, self.values, self.fill_value = call, as_value(values), fill_value
        self.points: Any = points.points if given else fnp.astype(coordinates(points), float)
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
        self.tri = points if given else spatial.Delaunay(shared_numbers(self.points))

    def __call__(self, *args: Any, simplex_tolerance: float = 1.0) -> Array:
        """Return the values at points: an array of shape (..., d), or d arrays of coordinates.

        Args:
            args: the points.
            simplex_tolerance: how far a point may lie outside of a simplex, in units of the rounding error.
        """
        xi = coordinates(args[0] if len(args) == 1 else args)
        dimension = backend.shape_of(self.points)[1]
        if backend.shape_of(xi)[-1:] != (dimension,):
            raise ShapeError(
                f"interpolate.{self.call}: the last axis of xi must be {dimension} long, got {describe(xi)}."
            )
        flat = (fnp.reshape(xi, (-1, dimension)) - self.origin) / self.unit
        simplices = self._containing_simplices(flat, simplex_tolerance * 100 * np.finfo(float).eps)
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

    def _containing_simplices(self, points: Array, tolerance: float) -> Any:
        """Return the index of the simplex that contains each point, -1 outside of all simplices."""
        if is_single(points):
            return self.tri.find_simplex(concrete_or_none(points), tol=tolerance)
        vertices = np.asarray(concrete_or_none(self.points))[
            self.tri.simplices
        ]  # several examples: each simplex is tried
        inverses = np.linalg.inv(np.swapaxes(vertices[:, :-1] - vertices[:, -1:], 1, 2))
        shares = fnp.einsum("sij,psj->psi", inverses, points[:, None] - vertices[:, -1])
        least = fnp.minimum(fnp.min(shares, axis=2), 1 - fnp.sum(shares, axis=2))
        return fnp.where(fnp.max(least, axis=1) < -tolerance, -1, fnp.argmax(least, axis=1))


def is_single(points: Any) -> bool:
    """Whether the numbers of points are known, and are not a batch of examples."""
    plain = concrete_or_none(points)
    return plain is not None and plain.shape == backend.shape_of(points)


def coordinates(points: Any) -> Array:
    """Return points along the last axis, from an array or a tuple of coordinates."""
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*[as_value(x) for x in points]), axis=-1)
    points = fnp.asarray(points)
    return points[None] if fnp.ndim(points) == 1 else points  # SciPy returns an array for one point, too
