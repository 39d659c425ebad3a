"""The order of an array's axes in memory, on which depends what NumPy makes as a view.

``x.T * 2`` lies in memory as ``x.T`` does, so ``(x.T * 2).T.reshape(-1)`` is a view and ``(x.T * 2).reshape(-1)`` is
none. A traced array lies in memory as NumPy's would, also after a write. Arrays of other libraries count as in C order.
"""

from __future__ import annotations

from typing import Any

from funcgrad.core import Tracer
from funcgrad.primitives.shaping import arranged
from funcgrad.views import axes_in_memory, layout


def in_order(x: Tracer, order: str) -> Any:
    """``x`` with its axes in "C", "F" or, for as they are, "K" order: ``x`` itself where it is, else a copy.

    It is a copy also where "K" would have left gaps between the elements.
    """
    like = layout(x)
    flags = like.flags
    fitting = {"C": flags.c_contiguous, "F": flags.f_contiguous}
    if fitting.get(order, flags.c_contiguous or flags.f_contiguous):
        return x
    axes = axes_in_memory(like)
    if order == "C" or (order == "A" and not flags.f_contiguous):
        axes = tuple(range(like.ndim))
    elif order == "F":
        axes = tuple(range(like.ndim - 1, -1, -1))
    return arranged(x, axes=axes)


def as_before(x: Tracer, new: Any) -> Any:
    """``new``, which takes the place of ``x``, with its axes in memory as those of ``x``."""
    if len(x.shape) < 2 or not isinstance(new, Tracer):
        return new
    like, made = layout(x), layout(new)
    if (like.flags.c_contiguous and made.flags.c_contiguous) or like.strides == made.strides:
        return new
    return arranged(new, axes=axes_in_memory(like))
