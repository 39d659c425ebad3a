"""Interpolation of values at scattered points."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.scipy.interpolate.triangulated import Scattered
from funcgrad.typing import Array, ArrayLike

__all__ = ["LinearNDInterpolator"]


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
