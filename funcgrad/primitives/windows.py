"""Sliding windows, and the addition of overlapping windows: each is the other's transpose.

``axis`` names the non-negative axes, one for each length in ``window``; an axis may occur twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.kinds.linear import linear
from funcgrad.kinds.rules import Operation

Ints = tuple[int, ...]


def _windows(xp: Any, x: Any, *, window: Ints, axis: Ints) -> Any:
    if xp is np:
        return np.lib.stride_tricks.sliding_window_view(x, window, axis)
    for w, a in zip(window, axis, strict=True):
        places = np.arange(x.shape[a] - w + 1)[:, None] + np.arange(w)
        x = xp.moveaxis(x[(*(slice(None),) * a, places)], a + 1, -1)
    return x


def _overlap_add(xp: Any, x: Any, *, window: Ints, axis: Ints) -> Any:
    for w, a in zip(reversed(window), reversed(axis), strict=True):
        before = (slice(None),) * a
        count = x.shape[a]
        to = xp.zeros((*x.shape[:a], count + w - 1, *x.shape[a + 1 : -1]), x.dtype)
        if xp is not np:
            places = np.arange(count)[:, None] + np.arange(w)
            x = to.at[(*before, places)].add(xp.moveaxis(x, -1, a + 1))
            continue
        x = np.moveaxis(x, -1, a + 1)
        if w <= count:
            for i in range(w):
                to[(*before, slice(i, i + count))] += x[(*before, slice(None), i)]
        else:
            for i in range(count):
                to[(*before, slice(i, i + w))] += x[(*before, i)]
        x = to
    return x


#: ``windows(x, *, window, axis)``: first the axes of window positions, then those inside a window. A view in NumPy.
windows: Operation = linear(
    "windows",
    _windows,
    transpose=lambda ct, *, window, axis: overlap_add(ct, window=window, axis=axis),
    conforms=True,
    batch="axis",
)

#: ``overlap_add(x, *, window, axis)``: the array of sums, over all windows, of the entries for the same element.
overlap_add: Operation = linear(
    "overlap_add",
    _overlap_add,
    transpose=lambda ct, *, window, axis: windows(ct, window=window, axis=axis),
    conforms=True,
    batch="axis",
)
