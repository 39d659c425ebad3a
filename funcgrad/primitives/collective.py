"""``all_gather``, the collective from which all others are made: each example sees the values of all examples."""

from __future__ import annotations

from typing import Any

from funcgrad import backend
from funcgrad.batching import BatchTrace
from funcgrad.core import Tracer, join_repetition, tracer_of
from funcgrad.kinds.linear import linear, permute, reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.indexing import getitem


def axis_index(over: BatchTrace, xp: Any) -> Tracer:
    """Return the number of each example, counted from 0."""
    return tracer_of(xp.arange(over.size), over)


def _batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    """Batch ``all_gather``. Over this very axis ``over`` is None, and the result is the batch, unbatched."""
    (x,), over, position = args, params["over"], params["position"]
    if over is not None:
        return all_gather(x, over=over, position=position + 1), True
    axes = [*range(1, len(backend.shape_of(x)))]
    axes.insert(position, 0)  # the axes of vmaps inside this one come before those that are gathered
    return permute(x, axes=tuple(axes)) if position else x, False


def _transpose(ct: Any, *, over: BatchTrace, position: int) -> Any:
    """Return, for example i, the sum over all examples of their cotangents of entry i."""
    if not over.open and not join_repetition(over.level):  # a tape around the vmap: all examples had the same value
        return reduce_sum(ct, axis=(position,))
    total = reduce_sum(all_gather(ct, over=over, position=0), axis=(0,))
    index = axis_index(over, backend.library_of(ct))
    return getitem(total, (*[slice(None)] * position, index))


def _impl(xp: Any, x: Any, *, over: BatchTrace, position: int) -> Any:
    """Repeat a value that does not depend on the example."""
    shape = backend.shape_of(x)
    aligned = xp.reshape(x, (*shape[:position], 1, *shape[position:]))
    return xp.broadcast_to(aligned, (*shape[:position], over.size, *shape[position:]))


all_gather: Operation = linear("all_gather", _impl, transpose=_transpose, conforms=True, batch=_batch)
