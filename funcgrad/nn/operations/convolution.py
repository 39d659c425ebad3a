"""Convolution of many arrays with many kernels: one bilinear operation whose transposes have the same form.

The operation is one sum: ``out[g, a, b, q]`` adds ``x[g, a, c, p] * y[g, b, c, k]`` over c and over all places p of
``x`` and k of ``y`` with ``stride * q + dilation * k == stretch * p + before`` along every spatial axis. This equation
treats the three places alike. A transpose therefore replaces one factor by the cotangent, and is again a sum over two
places. ``patches`` computes the operation for NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.kinds import multilinear
from funcgrad.kinds.linear import permute, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.nn.operations.patches import Geometry, convolved
from funcgrad.optional import loaded_jax
from funcgrad.primitives.shaping import flip
from funcgrad.typing import Array, Shape

__all__ = ["Geometry", "convolution"]


def _exchanged(x: Array) -> Array:
    """Exchange axes 1 and 2 of ``x``."""
    shape = shape_of(x)
    if shape[0] == 1:  # without the axis of groups XLA merges this transpose with those of layouts
        inner = permute(reshape(x, to=shape[1:]), axes=(1, 0, *range(2, len(shape) - 1)))
        return reshape(inner, to=(1, shape[2], shape[1], *shape[3:]))
    return permute(x, axes=(0, 2, 1, *range(3, len(shape))))


def _dx(ct: Array, y: Array, shape: Shape, *, geometry: Geometry) -> Array:
    """Compute the cotangent of ``x``: convolve ``ct`` with the flipped ``y``, whose origin moves to its end."""
    stride, before, stretch, dilation, _ = geometry
    lengths = shape_of(y)[3:]
    origin = tuple([r * (n - 1) - b for r, n, b in zip(dilation, lengths, before, strict=True)])
    turned = flip(y, axis=tuple(range(3, 3 + len(lengths)))) if lengths else y
    return convolution(ct, _exchanged(turned), geometry=Geometry(stretch, origin, stride, dilation, shape[3:]))


def _dy(ct: Array, x: Array, shape: Shape, *, geometry: Geometry) -> Array:
    """Compute the cotangent of ``y``: convolve ``x`` with ``ct`` as the kernel."""
    stride, before, stretch, dilation, _ = geometry
    turned = Geometry(dilation, before, stretch, stride, shape[3:])
    return _exchanged(convolution(_exchanged(x), _exchanged(ct), geometry=turned))


def _batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    """Batch the operation: treat a batch of ``x`` as more arrays, of ``y`` as more kernels, of both as more groups."""
    x, y = args
    (groups, a), b = shape_of(x)[1 - (not batched[0]) :][:2], shape_of(y)[1 + batched[1]]
    if all(batched):
        ans = convolution(*[reshape(v, to=(size * groups, *shape_of(v)[2:])) for v in args], **params)
        return reshape(ans, to=(size, groups, *shape_of(ans)[1:])), True
    position = 0 if batched[0] else 1
    whole = list(args)
    shape = shape_of(args[position])
    moved = permute(args[position], axes=(1, 0, *range(2, len(shape))))
    whole[position] = reshape(moved, to=(groups, size * shape[2], *shape[3:]))
    ans = convolution(*whole, **params)
    split = (groups, size, a, b) if batched[0] else (groups, a, size, b)
    ans = reshape(ans, to=(*split, *shape_of(ans)[3:]))
    front = 1 if batched[0] else 2
    return permute(ans, axes=(front, *[i for i in range(len(shape_of(ans))) if i != front])), True


# ---- JAX ---------------------------------------------------------------------------------------------------


def _convolution(xp: Any, x: Any, y: Any, *, geometry: Geometry) -> Any:
    x, y = xp.asarray(x), xp.asarray(y)
    dtype = xp.result_type(x, y)
    groups, a, c = x.shape[:3]
    b = y.shape[1]
    if 0 in (*x.shape, *y.shape, *geometry.out):
        return xp.zeros((groups, a, b, *geometry.out), dtype)
    if xp is np:
        narrow = dtype.kind == "V" or dtype == np.float16
        x, y = [v.astype(np.float32 if narrow else dtype, copy=False) for v in (x, y)]
        ans = convolved(x, y, geometry)
        return ans.astype(dtype) if narrow else ans
    # one group needs no exchange of axes, and XLA compiles faster without it
    left = x.astype(dtype) if groups == 1 else xp.swapaxes(x.astype(dtype), 0, 1)
    left = left.reshape(a, groups * c, *x.shape[3:])
    right = y.astype(dtype).reshape(groups * b, c, *y.shape[3:])
    stride, before, stretch, dilation, out = geometry
    spans = [s * (q - 1) + r * (k - 1) for s, q, r, k in zip(stride, out, dilation, y.shape[3:], strict=True)]
    after = [n - e * (p - 1) - o for n, e, p, o in zip(spans, stretch, x.shape[3:], before, strict=True)]
    ans = loaded_jax().lax.conv_general_dilated(
        left,
        right,
        stride,
        list(zip(before, after, strict=True)),
        lhs_dilation=stretch,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return ans.reshape(1, a, b, *out) if groups == 1 else xp.swapaxes(ans.reshape(a, groups, b, *out), 0, 1)


#: ``convolution(x, y, *, geometry)``: ``x`` of shape (g, a, c, *p) and ``y`` of (g, b, c, *k) give (g, a, b, *q).
convolution: Operation = multilinear("convolution", _convolution, transposes=[_dx, _dy], batch=_batch)
