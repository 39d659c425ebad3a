"""Convolution over all axes, and recursive filters along the last one."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.kinds import multilinear, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy, loaded_jax
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import concatenate, flip
from funcgrad.primitives.signals import convolve, of_each_row
from funcgrad.typing import Array, Shape


def _convolve_axes(xp: Any, x: Any, y: Any, *, rank: int, method: str) -> Any:
    x, y = xp.asarray(x), xp.asarray(y)
    outer = np.broadcast_shapes(x.shape[: x.ndim - rank], y.shape[: y.ndim - rank])
    shapes = x.shape[x.ndim - rank :], y.shape[y.ndim - rank :]
    if xp is np:
        routine = import_scipy("signal.convolve", "scipy.signal").convolve
    else:
        routine = importlib.import_module(xp.__name__.replace(".numpy", ".scipy.signal")).convolve
    options = ("full", method) if xp is np else ("full",)
    if not outer:
        return routine(x, y, *options)
    whole = [xp.broadcast_to(a, (*outer, *s)).reshape(-1, *s) for a, s in zip((x, y), shapes, strict=True)]
    to = (*outer, *[n + m - 1 for n, m in zip(*shapes, strict=True)])
    found = [routine(whole[0][i], whole[1][i], *options) for i in range(len(whole[0]))]
    return xp.stack(found).reshape(to) if found else xp.zeros(to, xp.result_type(x, y))


def _convolve_axes_transpose(ct: Array, other: Array, shape: Shape, *, rank: int, method: str) -> Array:
    """Convolve with the reversed other factor, and return the part that has the shape of this factor."""
    lengths = shape_of(other)
    axes = tuple(range(len(lengths) - rank, len(lengths)))
    whole = convolve_axes(ct, flip(other, axis=axes), rank=rank, method=method)
    pairs = zip(lengths[len(lengths) - rank :], shape[len(shape) - rank :], strict=True)
    return getitem(whole, (..., *[slice(m - 1, m - 1 + n) for m, n in pairs]))


#: ``convolve_axes(x, y, *, rank, method)``: full convolution over the last ``rank`` axes; other axes broadcast.
convolve_axes: Operation = multilinear(
    "convolve_axes",
    _convolve_axes,
    transposes=[
        lambda ct, y, shape, *, rank, method: _convolve_axes_transpose(ct, y, shape, rank=rank, method=method),
        lambda ct, x, shape, *, rank, method: _convolve_axes_transpose(ct, x, shape, rank=rank, method=method),
    ],
    batch="elementwise",
)


def _all_pole(xp: Any, x: Any, y: Any) -> Any:
    x, y = xp.asarray(x), xp.asarray(y)
    dtype = xp.result_type(x, y)
    if xp is not np:
        return _all_pole_in_jax(xp, x.astype(dtype), y.astype(dtype))
    lfilter = import_scipy("signal.lfilter", "scipy.signal").lfilter
    wide = np.float32 if dtype.char == "e" else dtype  # SciPy's filter has no float16
    if x.ndim == 1:
        return lfilter(np.ones(1, wide), np.concatenate([[1], x]).astype(wide), y.astype(wide), axis=-1).astype(dtype)
    return of_each_row(partial(_all_pole, np), x, y, length=y.shape[-1], dtype=dtype)


def _all_pole_in_jax(xp: Any, x: Any, y: Any) -> Any:
    outer = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    x = xp.broadcast_to(x, (*outer, x.shape[-1]))

    def step(state: Any, entering: Any) -> tuple[Any, Any]:
        out = entering - xp.sum(x * state, -1)
        return xp.concatenate([out[..., None], state[..., :-1]], -1), out

    rows = xp.moveaxis(xp.broadcast_to(y, (*outer, y.shape[-1])), -1, 0)
    return xp.moveaxis(loaded_jax().lax.scan(step, xp.zeros_like(x), rows)[1], 0, -1)


def _back_in_time(ct: Array, x: Array) -> Array:
    last = (len(shape_of(ct)) - 1,)
    return flip(all_pole(x, flip(ct, axis=last)), axis=last)


def _fed_back(x: Array, ans: Array) -> Array:
    """Return ``sum(x[i] * ans[k - 1 - i])`` over i, at k."""
    zero = getitem(x, (..., slice(0, 1))) * 0
    delayed = concatenate(zero, x, axis=len(shape_of(x)) - 1)
    return convolve(delayed, ans, start=0, length=shape_of(ans)[-1])


#: ``all_pole(x, y)``: ``ans[k] = y[k] - sum(x[i] * ans[k - 1 - i])`` over i, from rest, along the last axes.
all_pole: Operation = primitive(
    "all_pole",
    _all_pole,
    vjps=[lambda ct, x, ans, shape: _pulled_back(_back_in_time(ct, x), ans, shape), lambda ct, x: _back_in_time(ct, x)],
    jvps=[lambda t, x, ans: -all_pole(x, _fed_back(t, ans)), lambda t, x: all_pole(x, t)],
    batch="elementwise",
)


def _pulled_back(ct: Array, ans: Array, shape: Shape) -> Array:
    """Return minus the correlation of ``ct`` with ``ans``, at delays of 1 and more."""
    n = shape_of(ans)[-1]
    turned = flip(ans, axis=(len(shape_of(ans)) - 1,))
    return -convolve(ct, turned, start=n, length=shape[-1])
