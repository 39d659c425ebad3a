"""Extrema of segments, which are rows with the same number."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.backend import dtype_of, shape_of
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import reshape, to_batch
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.reducing import identity_of_extremum
from funcgrad.primitives.arithmetic import add, minimum
from funcgrad.primitives.comparison import less, where
from funcgrad.primitives.index_spec import ARRAY
from funcgrad.primitives.indexing import getitem, scatter_sum
from funcgrad.typing import Array


def _segment_extremum(xp: Any, x: Any, y: Any, *, count: int, name: str) -> Any:
    """Compute extrema; ``y`` contains the segment number of each row, ``count`` for rows in no segment."""
    ans = xp.full((count + 1, *x.shape[1:]), identity_of_extremum(name, x.dtype), x.dtype)
    if xp is not np:
        at = ans.at[y]
        return (at.max(x) if name == "maximum" else at.min(x))[:count]
    if len(y):
        order = np.argsort(y, kind="stable")
        numbers = y[order]
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        ans[numbers[starts]] = getattr(np, name).reduceat(x[order], starts, axis=0)
    return ans[:count]


def _segment_shares(xp: Any, x: Any, y: Any, ans: Any, *, count: int) -> Any:
    """Return 1/k at each of the k rows that equal the extremum of their segment, else 0; NaN where that is NaN."""
    rows = xp.minimum(y, max(count - 1, 0))
    inside = (y < count).reshape(-1, *(1,) * (x.ndim - 1))
    peak = ans[rows] if count else xp.zeros(x.shape, x.dtype)
    hits = (x == peak) & inside
    counts = xp.zeros((count + 1, *x.shape[1:]), int)
    if xp is np:
        np.add.at(counts, y, hits)
    else:
        counts = counts.at[y].add(hits)
    share = hits / xp.where(counts[y] == 0, 1, counts[y])
    return xp.where(inside & (peak != peak), np.nan, share).astype(x.dtype)


def _batch(of_shares: bool) -> Any:
    """Make the batching rule, which treats a batch as more segments, numbered from one example to the next."""

    def batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
        count = params["count"]
        x, y, *others = [a if b else to_batch(a, size) for a, b in zip(args, batched, strict=True)]
        _, n, *lengths = shape_of(x)
        # rows in no segment get the number after all segments of all examples
        numbers = where(less(y, count), add(y, count * np.arange(size)[:, None]), size * count)
        x, numbers = reshape(x, to=(size * n, *lengths)), reshape(numbers, to=(size * n,))
        others = [reshape(o, to=(size * count, *lengths)) for o in others]
        call = segment_shares if of_shares else segment_extremum
        ans = call(x, numbers, *others, **{**params, "count": size * count})
        return reshape(ans, to=(size, n if of_shares else count, *lengths)), True

    return batch


#: ``segment_shares(x, y, ans, *, count)``: the derivative of ``segment_extremum``.
segment_shares: Operation = nondifferentiable("segment_shares", _segment_shares, batch=_batch(of_shares=True))


def segment_total(t: Array, y: Any, count: int) -> Array:
    """Sum the rows of each segment."""
    shape = (count + 1, *shape_of(t)[1:])
    rest = [(0, n, 1) for n in shape[1:]]
    return getitem(scatter_sum(t, y, specs=((ARRAY, *rest),), shape=shape, dtype=dtype_of(t)), slice(0, count))


#: ``segment_extremum(x, y, *, count, name)``: the "maximum" or "minimum" of the rows of ``x`` with one number in ``y``.
segment_extremum: Operation = primitive(
    "segment_extremum",
    _segment_extremum,
    vjps=[  # rows in no segment get the cotangent of the last one: their share is 0
        lambda ct, x, y, ans, *, count, name: (
            getitem(ct, minimum(y, count - 1)) * segment_shares(x, y, ans, count=count) if count else x * 0
        ),
        None,
    ],
    jvps=[
        lambda t, x, y, ans, *, count, name: segment_total(t * segment_shares(x, y, ans, count=count), y, count),
        None,
    ],
    batch=_batch(of_shares=False),
)
