"""Squared distances between all rows of two matrices, and two sums over differences, for their derivatives.

The differences, an array of three axes, are never held as a whole. Squares are not multiplied out: for points that are
close together and far from the origin, all digits would cancel. Axes before the last two hold examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import reduce_sum, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy
from funcgrad.primitives.products import fast_matmul, swap_last_axes
from funcgrad.typing import Array

_BLOCK = 1 << 15  # number of differences held at once: they stay in a core's cache
_NARROW = 16  # columns; up to here a matrix product takes longer than one column after the other


def _parts(rows: int, width: int) -> Iterator[slice]:
    """Return slices of rows with ``width`` differences each, some rows at a time."""
    step = max(1, _BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))


def _one_summed(x: np.ndarray, y: np.ndarray, z: np.ndarray, ans: np.ndarray) -> None:
    if y.shape[1] > _NARROW:
        for part in _parts(len(y), z.size):
            ans[part] = np.matmul(x[part, None], y[part, None] - z)[:, 0]
        return
    columns = np.ascontiguousarray(z.T)
    for part in _parts(len(y), len(z)):
        for k, column in enumerate(columns):
            np.einsum("ij,ij->i", x[part], y[part, k, None] - column, out=ans[part, k])


def _one_along(x: np.ndarray, y: np.ndarray, z: np.ndarray, ans: np.ndarray) -> None:
    if y.shape[1] > _NARROW:
        for part in _parts(len(y), z.size):
            ans[part] = np.matmul(y[part, None] - z, x[part, :, None])[..., 0]
        return
    columns = np.ascontiguousarray(z.T)
    for part in _parts(len(y), len(z)):
        ans[part] = 0.0
        for k, column in enumerate(columns):
            apart = y[part, k, None] - column
            apart *= x[part, k, None]
            ans[part] += apart


def _squared(xp: Any, x: Any, y: Any) -> Any:
    if xp is not np:
        return xp.sum((x[..., :, None, :] - y[..., None, :, :]) ** 2, -1)
    cdist = import_scipy("spatial.distance.cdist", "scipy.spatial.distance").cdist
    ans = np.empty((*x.shape[:-1], y.shape[-2]))
    for i in np.ndindex(x.shape[:-2]):
        ans[i] = cdist(x[i], y[i], "sqeuclidean")
    return ans


def _summed(xp: Any, x: Any, y: Any, z: Any) -> Any:
    if xp is not np:
        return xp.einsum("...ij,...ijk->...ik", x, y[..., :, None, :] - z[..., None, :, :])
    ans = np.empty(y.shape)
    for i in np.ndindex(y.shape[:-2]):
        _one_summed(x[i], y[i], z[i], ans[i])
    return ans


def _along(xp: Any, x: Any, y: Any, z: Any) -> Any:
    if xp is not np:
        return xp.einsum("...ik,...ijk->...ij", x, y[..., :, None, :] - z[..., None, :, :])
    ans = np.empty((*y.shape[:-1], z.shape[-2]))
    for i in np.ndindex(y.shape[:-2]):
        _one_along(x[i], y[i], z[i], ans[i])
    return ans


def _rows(x: Array) -> Array:
    """Return the sum of each row, as a column."""
    shape = shape_of(x)
    return reshape(reduce_sum(x, axis=(len(shape) - 1,)), to=(*shape[:-1], 1))


#: ``squared_distances(x, y)``: squared distance of each row of ``x`` from each row of ``y``, in double precision.
squared_distances: Operation = primitive(
    "squared_distances",
    _squared,
    vjps=[
        lambda ct, x, y: 2.0 * summed_differences(ct, x, y),
        lambda ct, x, y: 2.0 * summed_differences(swap_last_axes(ct), y, x),
    ],
    jvps=[
        lambda t, x, y: 2.0 * differences_along(t, x, y),
        lambda t, x, y: 2.0 * swap_last_axes(differences_along(t, y, x)),
    ],
    batch="leading",
)

#: ``summed_differences(x, y, z)``: ``sum(x[i, j] * (y[i] - z[j]))`` over j, at each row i.
summed_differences: Operation = primitive(
    "summed_differences",
    _summed,
    vjps=[
        lambda ct, y, z: differences_along(ct, y, z),
        lambda ct, x: ct * _rows(x),
        lambda ct, x: -fast_matmul(swap_last_axes(x), ct),
    ],
    jvps=[lambda t, y, z: summed_differences(t, y, z), lambda t, x: t * _rows(x), lambda t, x: -fast_matmul(x, t)],
    batch="leading",
)

#: ``differences_along(x, y, z)``: inner product of ``x[i]`` and ``y[i] - z[j]``, at each pair of rows i, j.
differences_along: Operation = primitive(
    "differences_along",
    _along,
    vjps=[
        lambda ct, y, z: summed_differences(ct, y, z),
        lambda ct, x: x * _rows(ct),
        lambda ct, x: -fast_matmul(swap_last_axes(ct), x),
    ],
    jvps=[
        lambda t, y, z: differences_along(t, y, z),
        lambda t, x: _rows(x * t),
        lambda t, x: -fast_matmul(x, swap_last_axes(t)),
    ],
    batch="leading",
)
