"""Sums and maxima over windows that slide along the trailing axes.

``window``, ``strides`` and ``pads``, the (before, after) of each axis, have one entry for each of these axes.
Borders are zeros for sums, and the least number of the dtype for maxima. All functions loop over the positions in the
window, and work on views of whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from funcgrad.kinds import linear, nondifferentiable, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.reducing import identity_of_extremum
from funcgrad.optional import loaded_jax
from funcgrad.primitives.comparison import where
from funcgrad.typing import Shape

Ints = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


def _padded(xp: Any, x: Any, pads: Pads, fill: Any) -> Any:
    """Add borders along the trailing axes of ``x``; a negative width removes elements."""
    if not any(map(any, pads)):
        return x
    front = x.ndim - len(pads)
    kept = tuple([slice(max(0, -low), n - max(0, -high)) for (low, high), n in zip(pads, x.shape[front:], strict=True)])
    widths = [(max(0, low), max(0, high)) for low, high in pads]
    return xp.pad(x[(..., *kept)], [(0, 0)] * front + widths, constant_values=fill)


def _views(window: Ints, strides: Ints, out: Shape) -> Iterator[tuple[Any, ...]]:
    """Yield, for each position in the window, in order, the index of the elements at this position of all windows."""
    for place in np.ndindex(window):
        yield (..., *[slice(i, i + s * (n - 1) + 1, s) for i, s, n in zip(place, strides, out, strict=True)])


def _last(shape: Shape, window: Ints) -> Ints:
    return shape[len(shape) - len(window) :]


def _out(shape: Shape, window: Ints, strides: Ints, pads: Pads) -> Ints:
    """Return the number of windows along each axis."""
    sizes = zip(_last(shape, window), pads, window, strides, strict=True)
    return tuple([max(0, (n + sum(p) - k) // s + 1) for n, p, k, s in sizes])


def _pool_max(xp: Any, x: Any, *, window: Ints, strides: Ints, pads: Pads) -> Any:
    x = xp.asarray(x)
    out = _out(x.shape, window, strides, pads)
    fill = identity_of_extremum("maximum", x.dtype)
    whole = _padded(xp, x, pads, fill)
    ans: Any = None
    for view in _views(window, strides, out):
        part = whole[view]
        if ans is None:
            ans = part.copy() if xp is np else part
        elif xp is np:
            np.maximum(ans, part, out=ans)
        else:
            ans = xp.where((part > ans) | (part != part), part, ans)  # the first of ties, also in JAX's derivatives
    return xp.full((*x.shape[: x.ndim - len(window)], *out), fill, x.dtype) if ans is None else ans


def _first_place(xp: Any, x: Any, ans: Any, *, window: Ints, strides: Ints, pads: Pads) -> Any:
    whole = _padded(xp, xp.asarray(x), pads, identity_of_extremum("maximum", x.dtype))
    dtype = np.int8 if prod(window) < 128 else np.int32
    place = xp.full(ans.shape, -1, dtype)
    views = list(_views(window, strides, _last(ans.shape, window)))
    numbers = xp is np and not np.isnan(ans).any()
    for number in reversed(range(len(views))):
        part = whole[views[number]]
        hit = part == ans if numbers else (part == ans) | (part != part)
        place = place + (dtype(number) - place) * hit.astype(dtype)  # several times as fast as ``where``
    return place


#: ``first_place(x, ans, ...)``: the first position in its window of each maximum ``ans``; NaN counts as a maximum.
first_place: Operation = nondifferentiable("first_place", _first_place, batch="leading")


def _spread_places(xp: Any, ct: Any, y: Any, *, window: Ints, strides: Ints, pads: Pads, lengths: Ints) -> Any:
    front = ct.ndim - len(window)
    whole = tuple([max(0, n + low + high) for n, (low, high) in zip(lengths, pads, strict=True)])
    total = xp.zeros((*ct.shape[:front], *whole), ct.dtype)
    apart = all(s >= k for s, k in zip(strides, window, strict=True))
    for number, view in enumerate(_views(window, strides, ct.shape[front:])):
        share = where(y == number, ct, 0)
        if xp is np and apart:
            total[view] = share
        elif xp is np:
            total[view] += share
        elif share.size:  # pad with zeros between and around, which XLA compiles faster than a scatter
            gaps = [(v.start, n - v.stop, v.step - 1) for v, n in zip(view[1:], whole, strict=True)]
            total = total + loaded_jax().lax.pad(share, xp.zeros((), ct.dtype), [(0, 0, 0)] * front + gaps)
    return _padded(xp, total, tuple([(-low, -high) for low, high in pads]), 0)


def _pick_places(xp: Any, x: Any, y: Any, *, window: Ints, strides: Ints, pads: Pads, lengths: Ints) -> Any:
    x = xp.asarray(x)
    whole = _padded(xp, x, pads, 0)
    ans = xp.zeros(y.shape, x.dtype)
    for number, view in enumerate(_views(window, strides, _last(y.shape, window))):
        ans = xp.where(y == number, whole[view], ans)
    return ans


#: ``spread_places(ct, y, *, ..., lengths)``: zeros of ``lengths`` along the trailing axes, with each ``ct`` added at
#: position ``y`` of its window.
spread_places: Operation = linear(
    "spread_places",
    _spread_places,
    transpose=lambda ct, y, **options: pick_places(ct, y, **options),
    conforms=True,
    batch="leading",
)
#: ``pick_places(x, y, *, ..., lengths)``, the transpose: the element at position ``y`` of each window of ``x``.
pick_places: Operation = linear(
    "pick_places",
    _pick_places,
    transpose=lambda ct, y, **options: spread_places(ct, y, **options),
    conforms=True,
    batch="leading",
)


#: ``pool_max(x, *, window, strides, pads)``: the maximum of each window. The first of ties gets the derivative.
pool_max: Operation = primitive(
    "pool_max",
    _pool_max,
    vjps=[
        lambda ct, x, ans, shape, *, window, **options: spread_places(
            ct, first_place(x, ans, window=window, **options), window=window, **options, lengths=_last(shape, window)
        )
    ],
    jvps=[
        lambda t, x, ans, shape, *, window, **options: pick_places(
            t, first_place(x, ans, window=window, **options), window=window, **options, lengths=_last(shape, window)
        )
    ],
    batch="leading",
)


def _window_sum(xp: Any, x: Any, *, window: Ints, strides: Ints, pads: Pads, lengths: Ints) -> Any:
    """Sum along one axis after another, each time on a shorter array."""
    x = xp.asarray(x)
    for i, (k, s, n) in enumerate(zip(window, strides, _out(x.shape, window, strides, pads), strict=True)):
        axis = x.ndim - len(window) + i
        low, high = pads[i]
        alone: Any = ((0, 0),) * i + ((low, high),) + ((0, 0),) * (len(window) - i - 1)
        whole, before = _padded(xp, x, alone, 0), (slice(None),) * axis
        total: Any = xp.zeros((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype)
        for j in range(k if n else 0):
            part = whole[(*before, slice(j, j + s * (n - 1) + 1, s))]
            total = np.add(total, part, out=total) if xp is np else total + part
        x = total
    return x


def _window_spread(xp: Any, ct: Any, *, window: Ints, strides: Ints, pads: Pads, lengths: Ints) -> Any:
    for i, (k, s, (low, high), n) in enumerate(zip(window, strides, pads, lengths, strict=True)):
        axis = ct.ndim - len(window) + i
        before, count = (slice(None),) * axis, ct.shape[axis]
        span = n + low + high  # the length with borders
        total = xp.zeros((*ct.shape[:axis], max(0, span), *ct.shape[axis + 1 :]), ct.dtype)
        for j in range(k if count else 0):
            view = (*before, slice(j, j + s * (count - 1) + 1, s))
            if xp is np:
                total[view] += ct
            else:  # no scatter for a view of the whole axis, see ``covers_all``
                total = total + ct if count == span else total.at[view].add(ct)
        back: Any = ((0, 0),) * i + ((-low, -high),) + ((0, 0),) * (len(window) - i - 1)
        ct = _padded(xp, total, back, 0)
    return ct


#: ``window_sum(x, *, window, strides, pads, lengths)``: the sum of each window; the trailing axes have ``lengths``.
window_sum: Operation = linear(
    "window_sum",
    _window_sum,
    transpose=lambda ct, **options: window_spread(ct, **options),
    conforms=True,
    batch="leading",
)
#: ``window_spread(ct, *, window, strides, pads, lengths)``, the transpose: each ``ct`` added to its whole window.
window_spread: Operation = linear(
    "window_spread",
    _window_spread,
    transpose=lambda ct, **options: window_sum(ct, **options),
    conforms=True,
    batch="leading",
)
