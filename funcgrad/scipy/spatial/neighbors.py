"""The nearest of many points: which points these are is a constant; their distances have derivatives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import concrete_or_none, is_plain, shared_numbers
from funcgrad.optional import import_scipy
from funcgrad.scipy.spatial import metrics
from funcgrad.typing import Array, ArrayLike

__all__ = ["KDTree", "cKDTree"]


class KDTree:
    """Tree of points that finds neighbors of other points; distances are differentiable in both sets of points.

    Which points are nearest is a constant. Where they change, a distance has a kink.

    Args:
        data: the points, of shape (n, d).
        leafsize: as in SciPy, like ``compact_nodes``, ``copy_data`` and ``balanced_tree``.
        boxsize: lengths of a periodic box; 0 for an axis that is not periodic.

    Raises:
        MissingExtraError: SciPy is not installed.

    Example:
        >>> tree = KDTree([[0.0, 0.0], [3.0, 0.0]])
        >>> tree.query([3.0, 4.0])[0]
        4.0
        >>> grad(lambda x: tree.query(x)[0])(np.array([3.0, 4.0]))
        array([0., 1.])
    """

    def __init__(
        self,
        data: ArrayLike,
        leafsize: int = 10,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: ArrayLike | None = None,
    ) -> None:
        points = as_value(data)
        make = import_scipy("spatial.KDTree", "scipy.spatial").KDTree
        plain = concrete_or_none(points)
        if plain is not None and plain.shape == backend.shape_of(points):
            self._hold(points, make(plain, leafsize, compact_nodes, copy_data, balanced_tree, boxsize))
        else:  # vmap or JAX: a model tree checks the points and has the sizes
            model = make(np.zeros(backend.shape_of(points)), boxsize=boxsize)
            self._hold(points, None, model)

    def _hold(self, points: Any, tree: Any, model: Any = None) -> None:
        model = tree if model is None else model
        self.data, self.plain = points, tree
        self.n, self.m, self.boxsize = model.n, model.m, model.boxsize

    @classmethod
    def of(cls, tree: Any) -> KDTree:
        """Return a ``KDTree`` that wraps a tree of SciPy."""
        made = cls.__new__(cls)
        made._hold(tree.data, tree)
        return made

    def query(
        self,
        x: ArrayLike,
        k: Any = 1,
        eps: float = 0.0,
        p: float = 2.0,
        distance_upper_bound: float = np.inf,
        workers: int = 1,
    ) -> tuple[Any, Any]:
        """Return the distances to the nearest points, and the indices of these points.

        Args:
            x: points, of shape (..., d).
            k: number of neighbors, or a list of their ranks, from 1 on.
            eps: a returned point may be farther than the true neighbor, by a factor of up to ``1 + eps``.
            p: order of Minkowski's distance.
            distance_upper_bound: a point this far away is no neighbor: then the distance is infinite and the index n.
            workers: number of processors.

        Returns:
            Distances and indices, of shape (...) for ``k=1``, otherwise (..., k).

        Raises:
            ShapeError: points of ``x`` have another dimension.
        """
        x = as_value(x)
        if is_plain(x, self.data):
            found: tuple[Any, Any] = self.plain.query(x, k, eps, p, distance_upper_bound, workers)
            return found
        if backend.shape_of(x)[-1:] != (self.m,):
            raise ShapeError(f"spatial.KDTree.query: the last axis of x must be {self.m} long, got {describe(x)}.")
        places = self._places(x, k, eps, p, distance_upper_bound, workers)
        missing = places >= self.n
        point = x if len(backend.shape_of(places)) < len(backend.shape_of(x)) else x[..., None, :]
        nearest = fnp.take(self.data, fnp.where(missing, 0, places), axis=0)
        distances = self._distances(point, nearest, p)
        return fnp.where(missing, np.inf, distances)[()], places

    def _places(self, x: Array, k: Any, eps: float, p: float, bound: float, workers: int) -> Any:
        plain = concrete_or_none(x)
        if self.plain is not None and plain is not None and plain.shape == backend.shape_of(x):
            return self.plain.query(plain, k, eps, p, bound, workers)[1]
        # under vmap or JAX: compare all distances
        far = self._distances(x[..., None, :], self.data, p)
        order = fnp.argsort(far, axis=-1, stable=True)
        order = fnp.where(fnp.take_along_axis(far, order, axis=-1) < bound, order, self.n)
        wanted = np.arange(1, k + 1) if isinstance(k, (int, np.integer)) else np.asarray(k)
        n = self.n
        places = fnp.where(wanted > n, n, fnp.take(order, np.minimum(wanted, n) - 1, axis=-1))
        return places[..., 0] if isinstance(k, (int, np.integer)) and k == 1 else places

    def _distances(self, x: Array, y: Array, p: float) -> Array:
        box = self.boxsize
        if box is None:
            return metrics.minkowski(x, y, p)
        apart = x - y
        around = np.where(box > 0, box, 1.0)  # the nearest of all periodic images
        apart = fnp.where(box > 0, apart - around * fnp.round(apart / around), apart)
        return metrics.minkowski(apart, np.zeros(self.m), p)

    def query_ball_point(self, x: ArrayLike, r: ArrayLike, *args: Any, **options: Any) -> Any:
        """Return the indices of all points within ``r`` of ``x``, which are constants. Arguments as in SciPy.

        Raises:
            ConcretizationError: the examples of a ``vmap`` have different points within ``r``.
        """
        x = as_value(x)
        places, points = _examples(x), _examples(self.data)
        make = import_scipy("spatial.KDTree", "scipy.spatial").KDTree
        trees = [make(one, boxsize=self.boxsize) for one in points] if self.plain is None else [self.plain]
        radius = shared_numbers(as_value(r))
        found = [
            trees[i % len(trees)].query_ball_point(places[i % len(places)], radius, *args, **options)
            for i in range(max(len(places), len(trees)))
        ]
        if any(np.any(one != found[0]) for one in found):
            raise ConcretizationError(
                f"spatial.KDTree.query_ball_point: the {len(found)} examples of a vmap have different points within r, "
                f"got {describe(x)}. Take tree.query(x, k, distance_upper_bound=r), which finds k points in each."
            )
        return found[0]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of SciPy's tree: any for constant points, those in ``_CONSTANT`` for traced points."""
        if name.startswith("_") or name in ("plain", "data"):
            raise AttributeError(name)
        if name in _OF_TWO_TREES and self.plain is not None:
            return partial(self._between, name)
        if not is_plain(self.data) and (self.plain is None or name not in _CONSTANT):
            raise AttributeError(
                f"spatial.KDTree: {name} of traced points has no derivative here. Take query, or compute it from data."
            )
        return getattr(self.plain, name)

    def _between(self, name: str, other: Any, *args: Any, **options: Any) -> Any:
        """Call a method of SciPy's tree with another tree; the integers that it returns do not change with points."""
        tree = other.plain if isinstance(other, KDTree) else other
        known = _OF_TWO_TREES[name] or is_plain(self.data, other.data)
        if tree is None or not known or not is_plain(*args, *options.values()):
            raise InputError(
                f"spatial.KDTree.{name}: traced points, or weights, have no derivative here, got a tree of "
                f"{describe(other.data)}. Take query, or compute it from data."
            )
        return getattr(self.plain, name)(tree, *args, **options)


def _examples(x: Any) -> Any:
    """Return the plain values of ``x`` in each example of a ``vmap``; of one if all share them."""
    values, shape = concrete_or_none(x), backend.shape_of(x)
    values = np.asarray(x) if values is None else values
    return values.reshape(-1, *shape)


#: Names of attributes that do not change with the points, or only say which points there are.
_CONSTANT = frozenset(("indices", "leafsize", "query_pairs", "size"))
#: Methods that take another tree, and whether their results only say which points are near.
_OF_TWO_TREES = {"count_neighbors": True, "query_ball_tree": True, "sparse_distance_matrix": False}
cKDTree = KDTree  # noqa: N816 - SciPy's second name
