"""Convex hulls: which points are corners is a constant; volume, area and facets have derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain, shared_numbers
from funcgrad.optional import import_scipy
from funcgrad.typing import Array, ArrayLike

__all__ = ["ConvexHull"]


class ConvexHull:
    """Convex hull of points: its facets, its volume and its area, which have derivatives in the points.

    SciPy computes everything for plain points. Which points are corners is a constant; where they change, there is a
    kink.

    Args:
        points: of shape (n, d).
        incremental: whether points may be added; for plain points only.
        qhull_options: settings of Qhull.

    Attributes:
        points: the points.
        equations: for each facet its outer normal, of length 1, and its offset.
        volume: the volume of the hull; in the plane its area.
        area: the surface area of the hull; in the plane its perimeter.

    Raises:
        MissingExtraError: SciPy is not installed.
        ConversionError: points differ between the examples of a ``vmap``.
        scipy.spatial.QhullError: from SciPy: all points lie in a plane.

    Example:
        >>> square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
        >>> hull = ConvexHull(square)
        >>> hull.volume, hull.area
        (4.0, 8.0)
        >>> grad(lambda points: ConvexHull(points).volume)(square)
        array([[-1., -1.],
               [ 1., -1.],
               [ 1.,  1.],
               [-1.,  1.]])
    """

    def __init__(self, points: ArrayLike, incremental: bool = False, qhull_options: str | None = None) -> None:
        self.points = points = as_value(points)
        make = import_scipy("spatial.ConvexHull", "scipy.spatial").ConvexHull
        self.plain = make(shared_numbers(points), incremental, qhull_options)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of SciPy's hull: any for plain points, ``_TRACED`` or ``_CONSTANT`` for traced ones."""
        if name.startswith("_") or name in ("plain", "points"):
            raise AttributeError(name)
        if is_plain(self.points):
            return getattr(self.plain, name)
        if name in _TRACED:
            return _TRACED[name](self)
        if name not in _CONSTANT:
            raise AttributeError(
                f"spatial.ConvexHull: {name} is for plain points. Compute it from points and simplices."
            )
        return getattr(self.plain, name)


def _corners(hull: ConvexHull) -> Any:
    return fnp.take(hull.points, hull.plain.simplices, axis=0)


def _volume(hull: ConvexHull) -> Array:
    """Sum the volumes of the simplices that the facets form with a point inside."""
    inside = fnp.mean(fnp.take(hull.points, hull.plain.vertices, axis=0), axis=0)
    return fnp.sum(fnp.abs(fnp.linalg.det(_corners(hull) - inside))) / math.factorial(hull.plain.ndim)


def _area(hull: ConvexHull) -> Array:
    corners = _corners(hull)
    edges = corners[:, 1:] - corners[:, :1]
    squares = fnp.linalg.det(edges @ fnp.swapaxes(edges, 1, 2))
    return fnp.sum(fnp.sqrt(squares)) / math.factorial(hull.plain.ndim - 1)


def _equations(hull: ConvexHull) -> Array:
    """Compute normals by the minors of the edges, as a cross product does in space."""
    corners, d = _corners(hull), hull.plain.ndim
    edges = corners[:, 1:] - corners[:, :1]
    minors = [(-1) ** i * fnp.linalg.det(edges[:, :, np.arange(d) != i]) for i in range(d)]
    normals = fnp.stack(minors, axis=1)
    outward = np.sign(np.sum(shared_numbers(normals) * hull.plain.equations[:, :-1], axis=1))[:, None]
    normals = normals * outward / fnp.linalg.norm(normals, axis=1, keepdims=True)
    return fnp.concatenate([normals, -fnp.sum(normals * corners[:, 0], axis=1)[:, None]], axis=1)


#: Attributes that have derivatives.
_TRACED = {
    "area": _area,
    "equations": _equations,
    "max_bound": lambda hull: fnp.max(hull.points, axis=0),
    "min_bound": lambda hull: fnp.min(hull.points, axis=0),
    "volume": _volume,
}
#: Names of attributes that only say which points there are.
_CONSTANT = frozenset(("coplanar", "good", "ndim", "neighbors", "npoints", "nsimplex", "simplices", "vertices"))
