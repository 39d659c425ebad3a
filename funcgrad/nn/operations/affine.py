"""Matrix product plus a bias, as one operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import REAL, Tracer
from funcgrad.graph import stands_for_array
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import broadcast_to, fast_sum, unbroadcast
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.products import (
    ProductCotangent,
    RowsCotangent,
    can_be_deferred,
    fast_matmul,
    matmul,
    swap_last_axes,
)
from funcgrad.typing import Array, Shape

ndarray = np.ndarray


def _impl(xp: Any, x: Any, y: Any, z: Any) -> Any:
    if xp is not np:
        return xp.matmul(x, y) + z
    ans = x.dot(y)
    ans += z[None] if len(ans) == 1 else z  # equal shapes take NumPy half the time
    return ans


def _dx(ct: Array, y: Array) -> Array:
    return ct.dot(y.T) if type(ct) is type(y) is ndarray else fast_matmul(ct, swap_last_axes(y))


def _dy(ct: Array, x: Array) -> Any:
    if type(ct) is type(x) is ndarray:
        return ProductCotangent((x, ct)) if len(ct) == 1 or can_be_deferred(ct, x) else x.T.dot(ct)
    if stands_for_array(ct) and stands_for_array(x) and can_be_deferred(ct, x):
        return ProductCotangent((x, ct))
    return fast_matmul(swap_last_axes(x), ct)


def _dz(ct: Array, x: Array, shape: Shape) -> Any:
    if type(ct) is type(x) is ndarray:
        return RowsCotangent((ct,)) if len(ct) == 1 or can_be_deferred(ct, x) else fast_sum(ct, (0,))
    if stands_for_array(ct) and stands_for_array(x) and can_be_deferred(ct, x):
        return RowsCotangent((ct,))
    return unbroadcast(ct, shape)


def _batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    x, y, z = args
    whole = matmul.primitive.batch(size, (x, y), batched[:2], {})[0] if any(batched[:2]) else matmul(x, y)
    return whole + (z.reshape((size, 1, *z.shape[1:])) if batched[2] else z), True


#: ``biased_product(x, y, z)``: ``x @ y + z`` of two matrices and a vector of one dtype, see ``is_biased_product``.
biased_product: Operation = primitive(
    "linear",
    _impl,
    vjps=[_dx, _dy, _dz],
    jvps=[
        lambda t, y: matmul(t, y),
        lambda t, x: matmul(x, t),
        lambda t, ans: broadcast_to(t, to=backend.shape_of(ans)),
    ],
    batch=_batch,
    conforms=lambda x, y, z: type(x) is type(y) is type(z) is ndarray,
)


def is_biased_product(x: Any, y: Any, z: Any) -> bool:
    """Whether ``biased_product`` applies: two real matrices that fit, and a vector, all of one dtype."""
    v = x._val if type(x) is Tracer else x  # an ndarray has faster attributes than a tracer
    w = y._val if type(y) is Tracer else y
    b = z._val if type(z) is Tracer else z
    if not type(v) is type(w) is type(b) is ndarray:
        for a in (v, w, b):
            if type(a) is not ndarray and not issubclass(type(a), Tracer):
                return False
    dtype = w.dtype
    if not v.dtype is dtype is b.dtype or dtype not in REAL or not v.ndim == 2 == w.ndim:
        return False
    inputs, outputs = w.shape
    return bool(v.shape[1] == inputs and b.shape == (outputs,))
