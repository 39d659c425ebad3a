"""Order of an array's axes in memory, which decides which results of NumPy are views.

``x.T * 2`` has the memory layout of ``x.T``, so ``(x.T * 2).T.reshape(-1)`` is a view and ``(x.T * 2).reshape(-1)`` is
not. A traced array is laid out as NumPy's would be, also after a write. Arrays of other libraries count as in C order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.primitives.shaping import arranged
from funcgrad.views import array_with_layout_of, axes_in_memory


def in_memory_order(x: Tracer, order: Any) -> Any:
    """Return ``x`` with its axes in memory in "C", "F", "A" or "K" order: ``x`` itself if in order, else a copy.

    "K" keeps the order of the axes, but copies an ``x`` that is neither C- nor F-contiguous.
    """
    order = order.upper() if isinstance(order, str) else order
    like = array_with_layout_of(x)
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


def in_c_order(x: Any) -> Any:
    """Return ``x`` with its axes in memory in "C" order, in which NumPy makes some of its results."""
    return in_memory_order(x, "C") if isinstance(x, Tracer) and len(x.shape) > 1 else x


def with_layout_of_ufunc(made: Any, args: Sequence[Any]) -> Any:
    """Return ``made``, computed from each element of ``args``, with the memory order that a ufunc's result has."""
    if not isinstance(made, Tracer) or len(made.shape) < 2:
        return made
    operands: list[Any] = [array_with_layout_of(x) for x in args]
    like = np.nditer([*operands, None], flags=["zerosize_ok"]).operands[-1]
    return made if like.flags.c_contiguous else arranged(made, axes=axes_in_memory(like))


def with_layout_of(x: Tracer, new: Any) -> Any:
    """Return ``new``, which replaces ``x``, with the memory order of the axes of ``x``."""
    if len(x.shape) < 2 or not isinstance(new, Tracer):
        return new
    like, made = array_with_layout_of(x), array_with_layout_of(new)
    if (like.flags.c_contiguous and made.flags.c_contiguous) or like.strides == made.strides:
        return new
    return arranged(new, axes=axes_in_memory(like))
