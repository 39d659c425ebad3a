"""Reading an array between its elements: where coordinates lead, which elements they meet, with what weights."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import ShapeError
from funcgrad.kinds.linear import reshape
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.ndimage.operations import sources, spline_axis
from funcgrad.typing import Array, Shape

__all__ = ["Reading", "coefficients", "sampled", "spline_mode"]

_MODES = {"grid-mirror": "reflect"}
#: How elements beyond the border follow from those inside, where that is not the mode itself.
_BEYOND = {"constant": "mirror", "wrap": "mirror", "grid-wrap": "wrap", "grid-constant": "nearest"}
_KNOWN = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap")
_BORDER = 12  # elements that SciPy puts around an array before it computes the spline, for modes without an exact one


class Reading:
    """How an array is read: what all functions that interpolate have in common.

    Raises:
        ShapeError: an order or a mode that there is not.
    """

    def __init__(self, call: str, order: int, mode: str, cval: Any, prefilter: bool) -> None:
        if order not in range(6):
            raise ShapeError(f"ndimage.{call}: order must be an integer from 0 to 5, got {order}.")
        if mode not in _KNOWN:
            raise ShapeError(f"ndimage.{call}: mode must be one of {', '.join(_KNOWN)}, got {mode!r}.")
        self.call, self.order, self.mode, self.cval = call, int(order), _MODES.get(mode, mode), cval
        self.prefilter = bool(prefilter) and order > 1
        self.border = _BORDER if self.prefilter and mode in ("nearest", "grid-constant") else 0


def spline_mode(mode: str) -> str:
    """The border that SciPy's filter of splines has for ``mode``."""
    if mode in ("reflect", "grid-mirror", "nearest"):
        return "reflect"
    return "grid-wrap" if mode == "grid-wrap" else "mirror"


def coefficients(x: Array, reading: Reading, rank: int) -> Array:
    """The coefficients of the spline through ``x`` along its last ``rank`` axes, with their border."""
    axes = range(len(backend.shape_of(x)) - rank, len(backend.shape_of(x)))
    if reading.border:
        widths = [(reading.border, reading.border) if i in axes else (0, 0) for i in range(axes.stop)]
        if reading.mode == "nearest":
            x = fnp.pad(x, widths, "edge")
        else:
            x = fnp.pad(x, widths, constant_values=reading.cval)
    if reading.prefilter:
        for axis in axes:
            x = spline_axis(x, axis=axis, order=reading.order, mode=spline_mode(reading.mode), transposed=False)
    return x


def _inside(c: Array, n: int, mode: str) -> Array:
    """The coordinate between 0 and ``n - 1`` that ``c`` stands for, by SciPy's formulas."""
    if mode in ("grid-constant", "nearest"):  # elements that are not there are replaced, not coordinates
        return c
    if mode == "constant":
        return fnp.where((c < 0) | (c > n - 1), 0.0, c)
    if n == 1:
        return 0.0 * c
    below, above = c < 0, c > n - 1
    if mode == "mirror":
        period = 2 * n - 2
        low = period * fnp.floor(-c / period) + c
        low = fnp.where(low <= 1 - n, low + period, -low)
        high = c - period * fnp.floor(c / period)
        high = fnp.where(high >= n, period - high, high)
    elif mode == "reflect":
        period = 2 * n
        low = fnp.where(c < -period, period * fnp.floor(-c / period) + c, c)
        low = fnp.where(low < -n, low + period, fnp.where(low > -1e-15, 1e-15, -low) - 1)
        high = c - period * fnp.floor(c / period)
        high = fnp.where(high >= n, period - high - 1, high)
    else:
        period = n - 1 if mode == "wrap" else n
        low = c + period * (fnp.floor(-c / period) + 1)
        high = c - period * fnp.floor(c / period)
    return fnp.where(below, low, fnp.where(above, high, c))


def _weights(u: Array, order: int) -> list[Array]:
    """The values at ``u``, between 0 and 1, of the B-splines that are not zero there (Cox and de Boor)."""
    found: list[Any] = [1.0]
    for degree in range(1, order + 1):
        saved: Any = 0.0
        for i, term in enumerate(found):
            term = term / degree
            found[i] = saved + (i + 1 - u) * term
            saved = (u + (degree - 1 - i)) * term
        found.append(saved)
    return found


def _met(c: Array, n: int, reading: Reading) -> tuple[Array, list[Array], Any]:
    """Which elements of an axis of ``n`` the coordinates ``c`` meet, their weights, and which of them there are.

    The elements stand along a new first axis. All are there but for "grid-constant".
    """
    order = reading.order
    floor = fnp.floor(c) if order & 1 else fnp.floor(c + 0.5)
    if order == 1 and n > 1 and reading.mode in ("constant", "nearest", "mirror", "wrap"):
        floor = fnp.where(c == n - 1, n - 2.0, floor)  # at the last element the slope is that before it
    share = c - floor if order & 1 else c + 0.5 - floor
    reach = order + 2
    # places far beyond the border are all the same where coordinates are not led back
    start = fnp.astype(fnp.clip(floor, -reach, n + reach), int) - order // 2
    steps = np.arange(order + 1).reshape(-1, *[1] * len(backend.shape_of(c)))
    places = start + steps
    table = sources(n, 2 * reach, 2 * reach, _BEYOND.get(reading.mode, reading.mode))
    there = (places >= 0) & (places < n) if reading.mode == "grid-constant" else None
    return getitem(table, places + 2 * reach), _weights(share, order), there


def sampled(x: Array, coordinates: Sequence[Array], reading: Reading) -> tuple[Array, Any]:
    """The coefficients ``x`` read at ``coordinates`` along its last axes, one array of them for each.

    Returns:
        The values, with the axes of ``x`` before those in front; which coordinates lie outside, None if that is no
        matter.
    """
    rank, shape = len(coordinates), backend.shape_of(x)
    batch, lengths = shape[: len(shape) - rank], shape[len(shape) - rank :]
    out = backend.shape_of(coordinates[0])
    flat, there, outside, weights = 0, None, None, []
    for i, (c, n) in enumerate(zip(coordinates, lengths, strict=True)):
        c = c + reading.border if reading.border else c
        if reading.mode == "constant":
            beyond = (c < 0) | (c > n - 1)
            outside = beyond if outside is None else outside | beyond
        places, shares, exists = _met(_inside(c, n, reading.mode), n, reading)
        to = (*(1,) * i, reading.order + 1, *(1,) * (rank - 1 - i), *out)
        flat = flat + reshape(places, to=to) * prod(lengths[i + 1 :])
        weights.append(shares)
        if exists is not None:
            exists = reshape(exists, to=to)
            there = exists if there is None else there & exists
    values = getitem(reshape(x, to=(*batch, prod(lengths))), (*(slice(None),) * len(batch), flat))
    if there is not None:
        values = fnp.where(there, values, reading.cval)
    return _weighted(values, weights, batch, out), outside


def _weighted(values: Array, weights: list[list[Array]], batch: Shape, out: Shape) -> Array:
    """The sum over the elements that each coordinate meets, one axis of them after the other."""
    skipped = (slice(None),) * len(batch)
    for shares in weights:
        if len(shares) == 1:
            values = getitem(values, (*skipped, 0))
            continue
        between = (1,) * (len(backend.shape_of(values)) - len(batch) - 1 - len(out))
        share = reshape(fnp.stack(shares), to=(len(shares), *between, *out))
        values = fnp.sum(values * share, axis=len(batch))
    return values
