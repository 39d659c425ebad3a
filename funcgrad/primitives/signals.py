"""Convolution, linear interpolation, modified Bessel functions, sums and differences of neighbours, and phases.

Convolution and interpolation work along the last axis; leading axes broadcast and hold many examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.kinds import linear, multilinear, nondifferentiable, primitive
from funcgrad.kinds.linear import reshape
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.comparison import where
from funcgrad.primitives.indexing import add_along_axis, getitem, take_along_axis
from funcgrad.primitives.shaping import concatenate, flip
from funcgrad.typing import Shape


def broadcast_rows(*arrays: np.ndarray) -> list[np.ndarray]:
    """Broadcast all axes of NumPy arrays against each other but the last ones.

    Example:
        >>> [a.shape for a in broadcast_rows(np.ones((3, 2)), np.ones(5))]
        [(3, 2), (3, 5)]
    """
    outer = np.broadcast_shapes(*[a.shape[:-1] for a in arrays])
    return [np.broadcast_to(a, (*outer, a.shape[-1])) for a in arrays]


def of_each_row(fun: Callable[..., Any], *arrays: np.ndarray, length: int, dtype: Any) -> np.ndarray:
    """Compute ``fun`` for rows of NumPy arrays whose other axes broadcast; the results are rows of this length.

    Example:
        >>> of_each_row(np.convolve, np.ones((2, 3)), np.ones(2), length=4, dtype=float)
        array([[1., 2., 2., 1.],
               [1., 2., 2., 1.]])
    """
    whole = broadcast_rows(*arrays)
    ans = np.empty((*whole[0].shape[:-1], length), dtype)
    for i in np.ndindex(ans.shape[:-1]):
        ans[i] = fun(*[a[i] for a in whole])
    return ans


# ---- convolution -------------------------------------------------------------------------------------------


_SHORT = 2000  # number of products below which one ``einsum`` is faster than a call of ``np.convolve`` for each example


def _convolve(xp: Any, x: Any, y: Any, *, start: int, length: int) -> Any:
    """Slide the shorter array over a window of the longer one, so that only the needed entries are computed."""
    x, y = xp.asarray(x), xp.asarray(y)
    if x.shape[-1] < y.shape[-1]:
        x, y = y, x
    n, m = x.shape[-1], y.shape[-1]
    single = x.ndim == y.ndim == 1
    if single and start == 0 and length == n + m - 1:
        return xp.convolve(x, y)
    first, last = start - m + 1, start + length
    window = x[..., min(max(first, 0), n) : min(max(last, 0), n)]
    before = min(max(-first, 0), last - first)
    after = last - first - before - window.shape[-1]
    if before or after:
        window = xp.pad(window, ((0, 0),) * (x.ndim - 1) + ((before, after),))
    if single:
        return xp.convolve(window, y, "valid")
    if xp is not np:
        return _convolution_of_rows()(window, y)
    if length * m < _SHORT:
        views = np.lib.stride_tricks.sliding_window_view(window, m, axis=-1)
        # the order in which einsum adds depends on the layout in memory: a repeated run may have another one
        return np.einsum("...ij,...j->...i", views, np.ascontiguousarray(y[..., ::-1]))
    dtype = np.result_type(window, y)
    return of_each_row(lambda a, b: np.convolve(a, b, "valid"), window, y, length=length, dtype=dtype)


@cache
def _convolution_of_rows() -> Callable[[Any, Any], Any]:
    """Return the function that convolves rows of JAX arrays, as ``mode="valid"`` of ``convolve`` does."""
    jax = loaded_jax()
    of_pair = partial(jax.numpy.convolve, mode="valid")
    together = jax.numpy.vectorize(of_pair, signature="(n),(m)->(k)")

    def in_turn(x: Any, y: Any) -> Any:
        outer = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        rows = [jax.numpy.broadcast_to(a, (*outer, a.shape[-1])).reshape(math.prod(outer), a.shape[-1]) for a in (x, y)]
        found = jax.lax.map(lambda pair: of_pair(*pair), rows)
        return found.reshape(*outer, found.shape[-1])

    def convolved(x: Any, y: Any) -> Any:
        if 1 in (x.ndim, y.ndim):
            return together(x, y)
        # XLA takes pairs of rows for groups of channels, whose convolution is some thousand times as slow on a CPU
        return jax.lax.platform_dependent(x, y, cpu=in_turn, default=together)

    compiled: Callable[[Any, Any], Any] = jax.jit(convolved)
    return compiled


def _convolve_transpose(ct: Any, other: Any, shape: Shape, *, start: int, length: int) -> Any:
    """Convolve with the other factor reversed, and keep the part that has the length of this factor."""
    axes = shape_of(other)
    turned = flip(other, axis=(len(axes) - 1,))
    return convolve(ct, turned, start=axes[-1] - 1 - start, length=shape[-1])


#: ``convolve(x, y, *, start, length)``: ``sum(x[i] * y[k - i])`` over i, for ``length`` values of k from
#: ``start`` on; 0 where the arrays do not overlap.
convolve: Operation = multilinear(
    "convolve",
    _convolve,
    transposes=[
        lambda ct, y, shape, *, start, length: _convolve_transpose(ct, y, shape, start=start, length=length),
        lambda ct, x, shape, *, start, length: _convolve_transpose(ct, x, shape, start=start, length=length),
    ],
    batch="elementwise",
)

# ---- interpolation -----------------------------------------------------------------------------------------


def _interp(xp: Any, x: Any, y: Any, z: Any) -> Any:
    y, z = xp.asarray(y), xp.asarray(z)
    if y.ndim == z.ndim == 1:
        return xp.interp(x, y, z)
    if xp is not np:
        return xp.vectorize(xp.interp, signature="(k),(n),(n)->(k)")(x, y, z)
    return of_each_row(np.interp, x, y, z, length=x.shape[-1], dtype=complex if z.dtype.kind == "c" else float)


def _aligned(x: Any, rank: int) -> Any:
    shape = shape_of(x)
    return x if len(shape) == rank else reshape(x, to=(*(1,) * (rank - len(shape)), *shape))


def _take(x: Any, at: Any) -> Any:
    """Return ``x[..., at]``, where each example has its own positions."""
    if len(shape_of(x)) == 1:
        return getitem(x, at)
    rank = max(len(shape_of(x)), len(shape_of(at)))
    return take_along_axis(_aligned(x, rank), _aligned(at, rank), axis=rank - 1)


def _scatter(ct: Any, at: Any, n: int) -> Any:
    """Apply the transpose of ``_take`` from ``n`` elements."""
    shape = shape_of(ct)
    return add_along_axis(ct, _aligned(at, len(shape)), axis=len(shape) - 1, shape=(*shape[:-1], n))


def _cells(xp: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    y = xp.asarray(y)
    n = y.shape[-1]
    if y.ndim == 1:
        position = xp.searchsorted(y, x, side="right")
    elif xp is not np:
        position = xp.vectorize(lambda b, a: xp.searchsorted(b, a, side="right"), signature="(n),(k)->(k)")(y, x)
    else:
        x, y = broadcast_rows(x, y)
        position = of_each_row(lambda a, b: np.searchsorted(b, a, "right"), x, y, length=x.shape[-1], dtype=int)
    low = xp.clip(position - 1, 0, max(n - 2, 0))
    high = low + (1 if n > 1 else 0)
    before = x < y[..., :1]
    empty = (y[low] == y[high]) if y.ndim == 1 else xp.take_along_axis(y, low, -1) == xp.take_along_axis(y, high, -1)
    behind = (x > y[..., -1:]) | (empty & ~before)
    return low, high, before | behind, behind


#: ``cells(x, y)``: for each ``x`` the positions of the knots on both sides (at a knot, of this knot and the next,
#: except at the last), whether the line is level there, and if so whether it has the value of the upper knot.
cells: Operation = nondifferentiable("cells", _cells, multiple=True)


def _slope(x: Any, y: Any, z: Any) -> Any:
    """Return the derivative of ``interp`` in ``x``."""
    low, high, level, _ = cells(x, y)
    width = _take(y, high) - _take(y, low)
    return where(level, 0, (_take(z, high) - _take(z, low)) / where(level, 1, width))


def _knot_cotangent(ct: Any, x: Any, y: Any) -> Any:
    """Return the cotangent of the values at the knots: ``ct`` times the weights of the two knots next to ``x``."""
    low, high, level, upper = cells(x, y)
    start = _take(y, low)
    share = ct * where(level, upper, (x - start) / where(level, 1, _take(y, high) - start))
    parts, places = concatenate(ct - share, share, axis=_last(ct)), concatenate(low, high, axis=_last(low))
    return _scatter(parts, places, shape_of(y)[-1])


def _last(x: Any) -> int:
    return len(shape_of(x)) - 1


#: ``interp(x, y, z)``: the piecewise linear function with values ``z`` at the rising knots ``y``, at ``x``; it is
#: constant outside the knots. With the weights w of the two knots next to x it is ``sum(w * z)``. A shift of all
#: knots and x together changes nothing, so moving the knots by t changes the result by ``-slope * sum(w * t)``.
interp: Operation = primitive(
    "interp",
    _interp,
    vjps=[
        lambda ct, x, y, z: ct * _slope(x, y, z),
        lambda ct, x, y, z: -_knot_cotangent(ct * _slope(x, y, z), x, y),
        lambda ct, x, y: _knot_cotangent(ct, x, y),
    ],
    jvps=[
        lambda t, x, y, z: t * _slope(x, y, z),
        lambda t, x, y, z: -(_slope(x, y, z) * interp(x, y, t)),
        lambda t, x, y: interp(x, y, t),
    ],
    batch="elementwise",
)

# ---- modified Bessel functions -----------------------------------------------------------------------------


@lru_cache
def _expansions(order: int) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Return the least x for the asymptotic series, and the quotients of the terms of both series.

    The power series ``sum((x / 2)**(2 * k + n) / (k! * (k + n)!))`` has positive terms only; the asymptotic
    series is Digital Library of Mathematical Functions 10.40.1. At the limit both have double precision.
    """
    limit = 20.0 + order * order
    near: list[float] = []
    far: list[float] = []
    term = total = 1.0
    while term > 1e-18 * total:
        k = len(near) + 1
        near.append(1 / (4 * k * (k + order)))
        term *= limit * limit * near[-1]
        total += term
    term = 1.0
    while abs(term) > 1e-17:
        k = len(far) + 1
        far.append(((2 * k - 1) ** 2 - 4 * order * order) / (8 * k))
        term *= far[-1] / limit
    return limit, tuple(near), tuple(far)


def _bessel_i(xp: Any, x: Any, *, order: int) -> Any:
    """Evaluate one of the two series. Both are differentiable as written, so JAX's derivatives are right too."""
    if order == 0 and xp is np:
        return np.i0(x)[()]
    x = xp.asarray(x)
    limit, quotients, far_quotients = _expansions(order)

    def near(x: Any) -> Any:
        return (x / 2) ** order / math.factorial(order) * _nested(x * x, quotients)

    def far(x: Any) -> Any:
        size = abs(x)
        ans = xp.exp(size) / xp.sqrt(2 * math.pi * size) * _nested(1 / size, far_quotients)
        return ans * xp.sign(x) if order % 2 else ans

    small = abs(x) <= limit
    if xp is np:
        return np.piecewise(x, [small], [near, far])[()]
    return xp.where(small, near(xp.where(small, x, 0)), far(xp.where(small, limit, x)))


def _nested(x: Any, quotients: tuple[float, ...]) -> Any:
    """Compute ``1 + q1 * x * (1 + q2 * x * (1 + ...))``."""
    total: Any = 1
    for quotient in reversed(quotients):
        total = total * x * quotient + 1
    return total


def _bessel_i_rule(t: Any, x: Any, *, order: int) -> Any:
    """Compute ``(I[n - 1] + I[n + 1]) / 2``, where I[-1] is I[1]: without a division, so 0 is exact to any order."""
    if order == 0:
        return t * bessel_i(x, order=1)
    return t * ((bessel_i(x, order=order - 1) + bessel_i(x, order=order + 1)) * 0.5)


#: ``bessel_i(x, *, order)``: the modified Bessel function of the first kind, of a non-negative integer order.
bessel_i: Operation = primitive(
    "bessel_i", _bessel_i, vjps=[_bessel_i_rule], jvps=[_bessel_i_rule], batch="elementwise"
)

# ---- neighbours --------------------------------------------------------------------------------------------


def _neighbours(xp: Any, x: Any, *, axis: int, sign: int) -> Any:
    before = (slice(None),) * axis
    first, second = x[(*before, slice(None, -1))], x[(*before, slice(1, None))]
    return second + first if sign > 0 else second - first


def _neighbours_transpose(xp: Any, x: Any, *, axis: int, sign: int, n: int) -> Any:
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    if n < 2:
        return xp.zeros(shape, x.dtype)
    before = (slice(None),) * axis
    start, stop = (*before, slice(None, 1)), (*before, slice(-1, None))
    if xp is not np:
        inner = _neighbours(xp, x, axis=axis, sign=1) if sign > 0 else -_neighbours(xp, x, axis=axis, sign=-1)
        return xp.concatenate([sign * x[start], inner, x[stop]], axis)
    ans = np.empty(shape, x.dtype)
    ans[start], ans[stop] = sign * x[start], x[stop]
    first, second = x[(*before, slice(None, -1))], x[(*before, slice(1, None))]
    (np.add if sign > 0 else np.subtract)(first, second, out=ans[(*before, slice(1, -1))])
    return ans


#: ``neighbours(x, *, axis, sign)``: ``x[k + 1] + sign * x[k]`` at k, where ``sign`` is 1 or -1.
neighbours: Operation = linear(
    "neighbours",
    _neighbours,
    transpose=lambda ct, shape, *, axis, sign: neighbours_transpose(ct, axis=axis, sign=sign, n=shape[axis]),
    conforms=True,
    batch="axis",
)

#: ``neighbours_transpose(x, *, axis, sign, n)``: ``x[k - 1] + sign * x[k]`` for ``n`` values of k; 0 outside of ``x``.
neighbours_transpose: Operation = linear(
    "neighbours_transpose",
    _neighbours_transpose,
    transpose=lambda ct, *, axis, sign, n: neighbours(ct, axis=axis, sign=sign),
    conforms=True,
    batch="axis",
)

# ---- phases ------------------------------------------------------------------------------------------------


def _phase_turns(xp: Any, x: Any, y: Any, z: Any) -> Any:
    x, whole = xp.asarray(x), xp.result_type(x, y).kind in "iu"
    half = y // 2 if whole else y / 2
    wrapped = xp.mod(x + half, y) - half
    at_edge = (wrapped == -half) & (x > 0)
    wrapped = xp.where(at_edge & (y % 2 == 0) if whole else at_edge, half, wrapped)
    change = xp.where(abs(x) < z, 0, wrapped - x)
    return change // y if whole else xp.rint(change / y)


#: ``phase_turns(x, y, z)``: the number of periods ``y`` to add to the step ``x`` to make it shortest; 0 if the step
#: is shorter than ``z``.
phase_turns: Operation = nondifferentiable("phase_turns", _phase_turns)
