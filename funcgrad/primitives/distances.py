"""Squared distances between all rows of two matrices, and the two sums over differences that their derivatives are.

The differences themselves, an array of three axes, are never held as a whole, and squares are not multiplied out: of
points that lie close together far from the origin nothing would be left. Axes before the last two hold examples.
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
from funcgrad.primitives.products import swapped, times
from funcgrad.typing import Array

__all__ = ["differences_along", "squared_distances", "summed_differences"]

_BLOCK = 1 << 17  # differences that are held at once: they stay in a core's cache


def _blocks(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Some rows of ``x`` at a time, and what they are apart from all of ``y``."""
    rows = max(1, _BLOCK // max(1, y.size))
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        yield part, x[part, None] - y


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
        for part, apart in _blocks(y[i], z[i]):
            ans[i][part] = np.matmul(x[i][part, None], apart)[:, 0]
    return ans


def _along(xp: Any, x: Any, y: Any, z: Any) -> Any:
    if xp is not np:
        return xp.einsum("...ik,...ijk->...ij", x, y[..., :, None, :] - z[..., None, :, :])
    ans = np.empty((*y.shape[:-1], z.shape[-2]))
    for i in np.ndindex(y.shape[:-2]):
        for part, apart in _blocks(y[i], z[i]):
            ans[i][part] = np.matmul(apart, x[i][part, :, None])[..., 0]
    return ans


def _rows(x: Array) -> Array:
    """The sum of each row, as a column."""
    shape = shape_of(x)
    return reshape(reduce_sum(x, axis=(len(shape) - 1,)), to=(*shape[:-1], 1))


#: ``squared_distances(x, y)``: of each row of ``x`` from each of ``y``, in double precision.
squared_distances: Operation = primitive(
    "squared_distances",
    _squared,
    vjps=[
        lambda ct, x, y: 2.0 * summed_differences(ct, x, y),
        lambda ct, x, y: 2.0 * summed_differences(swapped(ct), y, x),
    ],
    jvps=[
        lambda t, x, y: 2.0 * differences_along(t, x, y),
        lambda t, x, y: 2.0 * swapped(differences_along(t, y, x)),
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
        lambda ct, x: -times(swapped(x), ct),
    ],
    jvps=[
        lambda t, y, z: summed_differences(t, y, z),
        lambda t, x: t * _rows(x),
        lambda t, x: -times(x, t),
    ],
    batch="leading",
)

#: ``differences_along(x, y, z)``: the product of ``x[i]`` and ``y[i] - z[j]``, at each pair of rows i, j.
differences_along: Operation = primitive(
    "differences_along",
    _along,
    vjps=[
        lambda ct, y, z: summed_differences(ct, y, z),
        lambda ct, x: x * _rows(ct),
        lambda ct, x: -times(swapped(ct), x),
    ],
    jvps=[
        lambda t, y, z: differences_along(t, y, z),
        lambda t, x: _rows(x * t),
        lambda t, x: -times(x, swapped(t)),
    ],
    batch="leading",
)
