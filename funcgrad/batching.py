"""Vectorisation: a batched value hides its leading axis from the function.

Inside a ``vmap`` the batch axis of every batched value stands first; ``in_axes`` and ``out_axes`` are
honoured by moving axes on the way in and out. A rule therefore only has to know *which* arguments are
batched, never *where*.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, refuse_closure, tracer_of, traces_of, twin
from funcgrad.errors import ConcretizationError
from funcgrad.running import noted

__all__ = ["BatchTrace", "in_batch", "is_batched", "named_axes", "row_of_all", "shared"]

#: The traces of the enclosing ``vmap``s that gave their axis a name.
named_axes: ContextVar[Mapping[Any, BatchTrace]] = ContextVar("named_axes", default=MappingProxyType({}))


class BatchTrace(Trace):
    """One run of a function over a batch of ``size`` examples at once."""

    __slots__ = ("size",)
    shown = "BatchTracer"
    hidden = 1

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def leaf(self, value: Any) -> Tracer:
        """An input of the function, the batch axis first; the function must not write to it."""
        made = tracer_of(twin(value), self)
        made.alias = READ_ONLY
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` on whole batches."""
        if params.get("over") is self:  # a collective over this very axis, which None tells its rule
            params = {**params, "over": None}
        lowered, batched = list(args), [False] * len(args)
        for position, arg in enumerate(args):
            if type(arg) is Tracer and arg._trace is self:
                lowered[position], batched[position] = arg._val, True
        size = self if primitive.calls else self.size
        try:
            ans, flags = primitive.batch(size, tuple(lowered), tuple(batched), params)
        except ConcretizationError as error:  # who catches it goes on in another way
            noted(error)
            raise
        if not primitive.multiple:
            return tracer_of(ans, self) if flags else ans
        refuse_closure(self, primitive, ans, params, lowered)
        if isinstance(flags, bool):
            flags = (flags,) * len(ans)
        return tuple(tracer_of(a, self) if f else a for a, f in zip(ans, flags, strict=True))


def shared(x: Any) -> Any:
    """The value of one example of a ``vmap`` where all examples have the same one, else ``x``.

    By it Python may go on: code that checks its arguments knows nothing of examples.
    """
    while is_batched(x):
        row = row_of_all(x._val)
        if row is None:
            break
        x = row
    return x


def row_of_all(whole: Any) -> Any:
    """The first of the rows of ``whole`` where all are the same; None where they differ, or nobody knows."""
    bottom = whole
    while isinstance(bottom, Tracer):
        bottom = bottom._val
    if backend.is_stand_in(bottom) or not backend.shape_of(whole)[0] or not bool(np.all(whole == (row := whole[0]))):
        return None
    return row


def is_batched(x: Any) -> bool:
    """Whether ``x`` is a value of a ``vmap``, its innermost trace."""
    return type(x) is Tracer and type(x._trace) is BatchTrace


def in_batch(x: Any) -> bool:
    """Whether ``x`` is a value of a ``vmap``, perhaps behind traces of derivatives."""
    return any(type(trace) is BatchTrace for trace in traces_of([x]))
