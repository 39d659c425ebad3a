"""Running sums and products, and the linear recurrence that differentiates running products.

``axis`` is a non-negative number. ``reverse`` starts from the end; ``exclusive`` leaves out the element itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.kinds import linear, primitive
from funcgrad.kinds.rules import Operation


def _cumsum(xp: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
    if reverse:
        return xp.flip(_cumsum(xp, xp.flip(x, axis), axis=axis), axis)
    if xp.__name__ != "jax.numpy":
        return xp.cumsum(x, axis)
    from funcgrad.optional import running_sum  # here, because programs that are saved as modules contain this function

    return running_sum(x, axis)


cumsum: Operation = linear(
    "cumsum",
    _cumsum,
    transpose=lambda ct, *, axis, reverse=False: cumsum(ct, axis=axis, reverse=not reverse),
    conforms=True,
    batch="axis",
)


def _shifted_by_one(xp: Any, x: Any, axis: int, by: int, fill: Any) -> Any:
    """Move ``x`` by one place along ``axis``, towards the end or the beginning."""
    n = x.shape[axis]
    if n == 0:
        return x
    before = (slice(None),) * axis
    if xp is np:
        made = np.empty(x.shape, x.dtype)
        to, kept, edge = (slice(1, n), slice(0, n - 1), 0) if by > 0 else (slice(0, n - 1), slice(1, n), n - 1)
        made[(*before, to)] = x[(*before, kept)]
        made[(*before, edge)] = fill
        return made
    edge = xp.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), fill, x.dtype)
    parts = [edge, x[(*before, slice(0, n - 1))]] if by > 0 else [x[(*before, slice(1, n))], edge]
    return xp.concatenate(parts, axis)


#: ``shift(x, *, axis, by)``: ``x[k - by]`` at ``k``, for ``by`` 1 or -1, and 0 at the free end.
shift: Operation = linear(
    "shift",
    lambda xp, x, *, axis, by: _shifted_by_one(xp, x, axis, by, 0),
    transpose=lambda ct, *, axis, by: shift(ct, axis=axis, by=-by),
    conforms=True,
    batch="axis",
)


def _scan(xp: Any, x: Any, y: Any) -> Any:
    """Compute ``recurrence`` along the first axis.

    Two steps combine to one step of the same form, so each level of this recursion halves their number. The work
    is the same as that of one step after the other, in a few array operations, and without a division.
    """
    n = x.shape[0]
    if n < 2:
        return y
    pairs = n // 2
    first, second = slice(0, 2 * pairs, 2), slice(1, None, 2)
    later = _scan(xp, x[second] * x[first], x[second] * y[first] + y[second])
    rest = slice(2, None, 2)
    earlier = xp.concatenate([y[:1], x[rest] * later[: (n - 1) // 2] + y[rest]])
    ans = xp.stack([earlier[:pairs], later], 1).reshape(2 * pairs, *y.shape[1:])
    return xp.concatenate([ans, earlier[pairs:]]) if n % 2 else ans


def _recurrence(xp: Any, x: Any, y: Any, *, axis: int, reverse: bool = False) -> Any:
    x, y = xp.moveaxis(x, axis, 0), xp.moveaxis(y, axis, 0)
    ans = _scan(xp, x[::-1], y[::-1])[::-1] if reverse else _scan(xp, x, y)
    return xp.moveaxis(ans, 0, axis)


def _recurrence_transpose(ct: Any, x: Any, axis: int, reverse: bool) -> Any:
    """Apply the transpose of ``y -> recurrence(x, y)``: the recurrence in the other direction."""
    return recurrence(shift(x, axis=axis, by=_step(not reverse)), ct, axis=axis, reverse=not reverse)


def _step(reverse: bool) -> int:
    return -1 if reverse else 1


#: ``recurrence(x, y, *, axis, reverse=False)``: ``ans[k] = x[k] * ans[k - 1] + y[k]``, from ``ans[-1] = 0``.
recurrence: Operation = primitive(
    "recurrence",
    _recurrence,
    vjps=[
        lambda ct, x, ans, *, axis, reverse=False: (
            _recurrence_transpose(ct, x, axis, reverse) * shift(ans, axis=axis, by=_step(reverse))
        ),
        lambda ct, x, *, axis, reverse=False: _recurrence_transpose(ct, x, axis, reverse),
    ],
    jvps=[
        lambda t, x, ans, *, axis, reverse=False: recurrence(
            x, t * shift(ans, axis=axis, by=_step(reverse)), axis=axis, reverse=reverse
        ),
        lambda t, x, *, axis, reverse=False: recurrence(x, t, axis=axis, reverse=reverse),
    ],
    batch="axis",
)


def _cumprod(xp: Any, x: Any, *, axis: int, reverse: bool = False, exclusive: bool = False) -> Any:
    if exclusive:
        x = _shifted_by_one(xp, x, axis, _step(reverse), 1)
    if not reverse:
        return x.cumprod(axis)
    backwards = (*(slice(None),) * axis, slice(None, None, -1))
    return x[backwards].cumprod(axis)[backwards]


def _cumprod_vjp(ct: Any, x: Any, *, axis: int, reverse: bool = False, exclusive: bool = False) -> Any:
    """Return the VJP from ``ans[k] = x[k] * ans[k - 1]``, whose transpose needs no division."""
    if exclusive:
        ct = shift(ct, axis=axis, by=-_step(reverse))
    return _recurrence_transpose(ct, x, axis, reverse) * cumprod(x, axis=axis, reverse=reverse, exclusive=True)


def _cumprod_jvp(t: Any, x: Any, *, axis: int, reverse: bool = False, exclusive: bool = False) -> Any:
    source = t * cumprod(x, axis=axis, reverse=reverse, exclusive=True)
    tangent = recurrence(x, source, axis=axis, reverse=reverse)
    return shift(tangent, axis=axis, by=_step(reverse)) if exclusive else tangent


cumprod: Operation = primitive("cumprod", _cumprod, vjps=[_cumprod_vjp], jvps=[_cumprod_jvp], batch="axis")
