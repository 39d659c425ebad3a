"""Convex hulls and triangulations: which points are corners is a constant; volumes and facets have derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.numpy.creation import as_buffer, as_value
from funcgrad.numpy.plain_values.peeking import concrete_or_none, is_plain, shared_numbers
from funcgrad.optional import import_scipy
from funcgrad.typing import Array, ArrayLike

__all__ = ["ConvexHull", "Delaunay"]


class _OfPoints:
    """Result of Qhull for plain points, with attributes that have derivatives in the points.

    Args:
        name: the name of SciPy's class.
        points: of shape (n, d).
        options: further arguments of SciPy's class.
    """

    def __init__(self, name: str, points: ArrayLike, *options: Any) -> None:
        self.points = points = as_value(points)
        make = getattr(import_scipy(f"spatial.{name}", "scipy.spatial"), name)
        self.plain = make(shared_numbers(points), *options)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of SciPy's object: any for plain points, those of the tables below for traced ones."""
        if name.startswith("_") or name in ("plain", "points"):
            raise AttributeError(name)
        kind = type(self).__name__
        if is_plain(self.points):
            found = getattr(self.plain, name)
            return as_buffer(found.copy()) if type(found) is np.ndarray and name in _TRACED[kind] else found
        if name in _TRACED[kind]:
            return _TRACED[kind][name](self)
        if name not in _CONSTANT[kind]:
            raise AttributeError(f"spatial.{kind}: {name} is for plain points. Compute it from points and simplices.")
        return getattr(self.plain, name)


class ConvexHull(_OfPoints):
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
        super().__init__("ConvexHull", points, incremental, qhull_options)


class Delaunay(_OfPoints):
    """Triangulation of points: its simplices, and the maps to barycentric coordinates in them.

    SciPy computes everything for plain points. Which points form a simplex is a constant. Arguments and errors as for
    ``ConvexHull``; ``furthest_site`` says whether to compute the triangulation of furthest sites.

    Attributes:
        points: the points.
        simplices: the indices of the points of each simplex.
        transform: for each simplex the matrix that maps ``x - r`` to barycentric coordinates, and below it ``r``, the
            last point of the simplex.

    Example:
        >>> mesh = Delaunay(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]))
        >>> mesh.simplices.shape, int(mesh.find_simplex(np.array([0.5, 0.5])))
        ((1, 3), 0)
    """

    def __init__(
        self,
        points: ArrayLike,
        furthest_site: bool = False,
        incremental: bool = False,
        qhull_options: str | None = None,
    ) -> None:
        super().__init__("Delaunay", points, furthest_site, incremental, qhull_options)

    @classmethod
    def of(cls, plain: Any) -> Delaunay:
        """Return SciPy's triangulation of plain points, whose methods take traced values."""
        made = object.__new__(cls)
        made.points, made.plain = plain.points, plain
        return made

    def find_simplex(self, xi: ArrayLike, bruteforce: bool = False, tol: float | None = None) -> Any:
        """Return the index of the simplex that contains each point, -1 outside; indices are constants."""
        xi = as_value(xi)
        if is_single(xi):
            return self.plain.find_simplex(concrete_or_none(xi), bruteforce, tol)
        *shape, d = backend.shape_of(xi)
        tolerance = 100 * np.finfo(float).eps if tol is None else tol
        return fnp.reshape(containing_simplices(self.plain, fnp.reshape(xi, (-1, d)), tolerance), shape)


def containing_simplices(mesh: Any, points: Array, tolerance: float) -> Any:
    """Return the index of the simplex that contains each point, -1 outside of all simplices.

    Args:
        mesh: SciPy's triangulation.
        points: of shape (n, d).
        tolerance: how far a point may lie outside of a simplex, as a barycentric coordinate.

    Example:
        >>> mesh = Delaunay(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])).plain
        >>> containing_simplices(mesh, np.array([[0.5, 0.5], [3.0, 0.0]]), 1e-12)
        array([ 0, -1], dtype=int32)
    """
    if is_single(points):
        return mesh.find_simplex(concrete_or_none(points), tol=tolerance)
    # several examples: each simplex is tried
    vertices = mesh.points[mesh.simplices]
    inverses = np.linalg.inv(np.swapaxes(vertices[:, :-1] - vertices[:, -1:], 1, 2))
    shares = fnp.einsum("sij,psj->psi", inverses, points[:, None] - vertices[:, -1])
    least = fnp.minimum(fnp.min(shares, axis=2), 1 - fnp.sum(shares, axis=2))
    return fnp.where(fnp.max(least, axis=1) < -tolerance, -1, fnp.argmax(least, axis=1))


def is_single(points: Any) -> bool:
    """Whether the numbers of points are known, and are not a batch of examples.

    Example:
        >>> is_single(np.ones((3, 2)))
        True
    """
    plain = concrete_or_none(points)
    return plain is not None and plain.shape == backend.shape_of(points)


def _corners(hull: _OfPoints) -> Any:
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


def _transform(mesh: Delaunay) -> Array:
    corners = _corners(mesh)
    last = corners[:, -1:]
    return fnp.concatenate([fnp.linalg.inv(fnp.swapaxes(corners[:, :-1] - last, 1, 2)), last], axis=1)


_BOUNDS: dict[str, Callable[[Any], Any]] = {
    "max_bound": lambda found: fnp.max(found.points, axis=0),
    "min_bound": lambda found: fnp.min(found.points, axis=0),
}
#: Attributes that have derivatives, by class.
_TRACED: dict[str, dict[str, Callable[[Any], Any]]] = {
    "ConvexHull": {"area": _area, "equations": _equations, "volume": _volume, **_BOUNDS},
    "Delaunay": {"transform": _transform, **_BOUNDS},
}
_COUNTS = ("coplanar", "ndim", "neighbors", "npoints", "nsimplex", "simplices", "vertices")
#: Names of attributes that only say which points there are, by class.
_CONSTANT = {
    "ConvexHull": frozenset((*_COUNTS, "good")),
    "Delaunay": frozenset((*_COUNTS, "convex_hull", "vertex_neighbor_vertices", "vertex_to_simplex")),
}
