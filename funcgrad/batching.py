"""Vectorisation: a batched value hides its leading axis from the function.

The batch axis of every value inside a ``vmap`` is the leading one; ``vmap`` moves axes on the way in and out,
as ``in_axes`` and ``out_axes`` say. A batching rule therefore needs to know only *which* arguments are
batched, never along which axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import (
    READ_ONLY,
    Primitive,
    Trace,
    Tracer,
    are_tracers_of,
    plain_value,
    refuse_closure,
    shallow_copy,
    tracer_of,
    traces_of,
)
from funcgrad.errors import ConcretizationError
from funcgrad.shared_state import note_refusal

#: Traces of the enclosing ``vmap``s with a named axis, by that name.
named_axes: ContextVar[Mapping[Any, BatchTrace]] = ContextVar("named_axes", default=MappingProxyType({}))


class BatchTrace(Trace):
    """One run of a function over a batch of ``size`` examples at once."""

    __slots__ = ("size",)
    tracer_name = "BatchTracer"
    hidden_axes = 1

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def leaf(self, value: Any) -> Tracer:
        """Make a read-only input of the function from a value whose leading axis is the batch axis."""
        made = tracer_of(shallow_copy(value), self)
        made.alias = READ_ONLY
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` on whole batches."""
        if params.get("over") is self:  # a collective over this axis; None tells that to its batching rule
            params = {**params, "over": None}
        lowered, batched = list(args), [False] * len(args)
        for position, arg in enumerate(args):
            if type(arg) is Tracer and arg._trace is self:
                lowered[position], batched[position] = arg._val, True
        size = self if primitive.runs_user_code else self.size
        try:
            ans, flags = primitive.batch(size, tuple(lowered), tuple(batched), params)
        except ConcretizationError as error:  # noted, because the function may catch the error and go another way
            note_refusal(error)
            raise
        if not primitive.multiple:
            return tracer_of(ans, self) if flags else ans
        refuse_closure(self, primitive, ans, params, lowered)
        if isinstance(flags, bool):
            flags = (flags,) * len(ans)
        return tuple(tracer_of(a, self) if f else a for a, f in zip(ans, flags, strict=True))


def common_batch(x: Any, y: Any) -> BatchTrace | None:
    """Return the trace of a batch if whole batches of the two arguments broadcast like their examples, else None."""
    batched, other = (x, y) if type(x) is Tracer and type(x._trace) is BatchTrace else (y, x)
    if type(batched) is not Tracer or type(trace := batched._trace) is not BatchTrace or not trace.fast:
        return None
    if type(other) in (float, np.float64, int):
        return trace
    rank = _rank(batched._val)
    if type(other) is Tracer:
        return trace if other._trace is trace and _rank(other._val) == rank else None
    return trace if type(other) is np.ndarray and other.ndim < rank and other.dtype.kind in "fciub" else None


def _rank(x: Any) -> int:
    return x.ndim if type(x) is np.ndarray else len(backend.shape_of(x))


def unbatched_if_equal(x: Any) -> Any:
    """Return the value of one example of a ``vmap`` if the values of all examples are equal, else ``x``.

    Python may branch on this value: code that checks its arguments does not know of examples.
    """
    while is_batched(x):
        row = common_row(x._val)
        if row is None:
            break
        x = row
    return x


def common_row(whole: Any) -> Any:
    """Return the first row of ``whole`` if all rows are equal; None if they differ, are unknown, or there are none."""
    if backend.is_jax_tracer(plain_value(whole)) or not backend.shape_of(whole)[0]:
        return None
    row = whole[0]
    equal: Any = np.all(whole == row)
    while is_batched(equal):  # in a ``vmap`` around this one: in each of its examples
        equal = np.all(equal._val)
    return row if bool(equal) else None


def split_into_examples(leaves: Sequence[Any]) -> tuple[BatchTrace, Iterator[list[Any]]] | None:
    """Return the innermost ``vmap`` among ``leaves`` and the leaves of each example; None without a ``vmap``."""
    traces = [leaf._trace for leaf in leaves if is_batched(leaf)]
    if not traces:
        return None
    within: BatchTrace = max(traces, key=lambda trace: trace.level)
    pairs = list(zip(leaves, are_tracers_of(within, leaves), strict=True))
    return within, ([leaf._val[i] if mine else leaf for leaf, mine in pairs] for i in range(within.size))


def is_batched(x: Any) -> bool:
    """Whether the innermost trace of ``x`` is a ``vmap``."""
    return type(x) is Tracer and type(x._trace) is BatchTrace


def is_in_batch(x: Any) -> bool:
    """Whether any trace of ``x`` is a ``vmap``: the innermost one, or one further out."""
    return any(type(trace) is BatchTrace for trace in traces_of([x]))
