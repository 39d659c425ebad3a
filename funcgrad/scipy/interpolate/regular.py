"""Interpolation of values on a grid of any number of axes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.interpolate.curves import PchipInterpolator, cardinal_splines, interval_of, with_trailing_axes
from funcgrad.typing import Array, ArrayLike

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """Interpolation on a grid; differentiable in values, in queries and in the grid.

    Args:
        points: for each axis of the grid its points, increasing or decreasing.
        values: the values; axes after those of the grid are kept.
        method: "linear" or "nearest", which has zero derivative in the query; or splines along each axis: "slinear",
            "cubic", "quintic" or "pchip".
        bounds_error: whether a query outside raises.
        fill_value: the value outside; None extrapolates.

    Raises:
        ValueError: another ``method``, too few points for it, complex numbers with "pchip", shapes that do not match,
            points that neither increase nor decrease, a query outside.

    Example:
        >>> grid = RegularGridInterpolator(([0.0, 1.0], [0.0, 2.0]), [[0.0, 2.0], [1.0, 3.0]])
        >>> grid([[0.5, 1.0], [1.0, 0.5]])
        array([1.5, 1.5])
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        self.grid = [fnp.astype(p, float) for p in map(as_value, points)]
        self._check(method)
        values = as_value(values)
        self.values = values if backend.dtype_of(values).kind in "fc" else fnp.astype(values, float)
        lengths = tuple(backend.shape_of(p)[0] for p in self.grid)
        if backend.shape_of(self.values)[: len(lengths)] != lengths or min(lengths) < 2:
            raise ShapeError(
                f"interpolate.RegularGridInterpolator: values must begin with the axes of the grid, got "
                f"{describe(self.values)} for points {list(lengths)}."
            )
        if method == "pchip" and backend.dtype_of(self.values).kind == "c":
            raise ValueError("interpolate.RegularGridInterpolator: pchip takes real values only. Use their real parts.")
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        for axis, p in enumerate(self.grid):
            if any_true(_falls, p):
                self.grid[axis], self.values = p[::-1], fnp.flip(self.values, axis)
            if any_true(lambda p: ~(p[..., 1:] > p[..., :-1]), self.grid[axis]):
                raise ShapeError(
                    f"interpolate.RegularGridInterpolator: points must rise or fall along axis {axis}, got "
                    f"{describe(p)} that do neither. Sort them, and values with them."
                )

    def __call__(self, xi: Any, method: str | None = None, *, nu: Sequence[int] | None = None) -> Array:
        """Return the values at ``xi``, points along the last axis or a tuple of coordinates.

        Args:
            xi: the points.
            method: a method other than that of the object.
            nu: for splines, the order of the derivative along each axis.
        """
        method = method or self.method
        self._check(method)
        if nu is not None and method not in _DEGREES:
            raise ValueError(f"Can only compute derivatives for methods {list(_DEGREES)}, got {method!r}.")
        if nu is not None and np.shape(nu) != (len(self.grid),):
            raise ValueError(f"Invalid number of derivative orders nu, got {nu!r} for {len(self.grid)} axes.")
        if isinstance(xi, tuple):
            xi = fnp.stack(fnp.broadcast_arrays(*[as_value(x) for x in xi]), axis=-1)
        xi = as_value(xi)
        if backend.shape_of(xi)[-1:] != (len(self.grid),):
            if len(self.grid) != 1:
                raise ShapeError(
                    f"interpolate.RegularGridInterpolator: the last axis of xi must be {len(self.grid)} long, got "
                    f"{describe(xi)}."
                )
            xi = xi[..., None]
        coordinates = [fnp.atleast_1d(xi[..., i]) for i in range(len(self.grid))]
        cells, shares = zip(*[self._cell(p, q) for p, q in zip(self.grid, coordinates, strict=True)], strict=True)
        extra = len(backend.shape_of(self.values)) - len(self.grid)
        if method in _DEGREES:
            found = self._smooth(coordinates, _DEGREES[method], [0] * len(self.grid) if nu is None else nu)
        elif method == "pchip":
            found = self._monotone(coordinates)
        else:
            found = self._nearest(cells, shares) if method == "nearest" else self._linear(cells, shares, extra)
        if self.fill_value is not None:
            outside: Any = False
            for p, q in zip(self.grid, coordinates, strict=True):
                outside = outside | (q < p[0]) | (q > p[-1])
            found = fnp.where(with_trailing_axes(outside, extra), self.fill_value, found)
        missing = functools.reduce(fnp.logical_or, map(fnp.isnan, coordinates))
        return fnp.where(with_trailing_axes(missing, extra), np.nan, found)

    def _check(self, method: str) -> None:
        """Check that ``method`` is the name of a method, and that the grid has enough points for it.

        Raises:
            ValueError: there is no such method, or there are too few points.
        """
        if method not in ("linear", "nearest", *_FEWEST):
            raise ValueError(
                f"Method {method!r} is not defined: interpolate.RegularGridInterpolator has linear, nearest, slinear, "
                "cubic, quintic and pchip."
            )
        fewest = _FEWEST.get(method, 0)
        for axis, p in enumerate(self.grid):
            if (count := backend.shape_of(p)[0]) < fewest:
                raise ValueError(
                    f"There are {count} points in dimension {axis}, but method {method} requires at least {fewest} "
                    "points per dimension: interpolate.RegularGridInterpolator."
                )

    def _cell(self, points: Array, q: Array) -> tuple[Array, Array]:
        """Return the interval that contains ``q``, and the fraction of the interval before ``q``."""
        if self.bounds_error and any_true(lambda outside: outside, (q < points[0]) | (q > points[-1])):
            values: Any = concrete_or_none(q)
            raise ValueError(
                "One of the requested xi is out of bounds: interpolate.RegularGridInterpolator, got "
                f"{values.min()} to {values.max()}. Pass bounds_error=False."
            )
        cell = interval_of(points, q)
        start = getitem(points, cell)
        return cell, (q - start) / (getitem(points, cell + 1) - start)

    def _nearest(self, cells: Sequence[Array], shares: Sequence[Array]) -> Array:
        at = [cell + fnp.where(share <= 0.5, 0, 1) for cell, share in zip(cells, shares, strict=True)]
        return getitem(self.values, tuple(at))

    def _linear(self, cells: Sequence[Array], shares: Sequence[Array], extra: int) -> Array:
        """Sum over the corners of the cell, each weighted with the volume of the opposite part."""
        total: Any = None
        for corner in itertools.product((0, 1), repeat=len(cells)):
            at = tuple([cell + step for cell, step in zip(cells, corner, strict=True)])
            weight: Any = None
            for share, step in zip(shares, corner, strict=True):
                part = share if step else 1.0 - share
                weight = part if weight is None else weight * part
            term = getitem(self.values, at) * with_trailing_axes(weight, extra)
            total = term if total is None else total + term
        return total

    def _smooth(self, coordinates: Sequence[Array], degree: int, nu: Sequence[int]) -> Array:
        """Apply splines along each axis: the weight of a grid value is a product of one factor for each axis."""
        shape = backend.shape_of(coordinates[0])
        found = self.values[None]
        for points, q, order in zip(self.grid, coordinates, nu, strict=True):
            shares = cardinal_splines(points, degree)(fnp.ravel(q), order)
            found = fnp.einsum("qi,qi...->q...", shares, fnp.broadcast_to(found, (len(shares), *found.shape[1:])))
        return fnp.reshape(found, (*shape, *backend.shape_of(found)[1:]))

    def _monotone(self, coordinates: Sequence[Array]) -> Array:
        """Interpolate monotonically along the last axis, and for each query along the axes before it in turn."""
        shape = backend.shape_of(coordinates[0])
        queries = [fnp.ravel(q) for q in coordinates]
        last = len(self.grid) - 1
        first = PchipInterpolator(self.grid[last], self.values, axis=last)(queries[last])
        found = list(fnp.moveaxis(first, last, 0))
        for axis in reversed(range(last)):
            found = [
                PchipInterpolator(self.grid[axis], part, axis=axis)(q)
                for part, q in zip(found, queries[axis], strict=True)
            ]
        return fnp.reshape(fnp.stack(found), (*shape, *backend.shape_of(self.values)[last + 1 :]))


#: Degrees of the methods that are linear in the values.
_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5, "slinear_legacy": 1, "cubic_legacy": 3, "quintic_legacy": 5}
#: How many points a method needs along each axis.
_FEWEST = {"pchip": 4, **{method: degree + 1 for method, degree in _DEGREES.items()}}


def _falls(p: Array) -> Array:
    return p[..., 0] > p[..., -1]
