"""Reverse mode: the values on a tape, and the run that records them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, refuse_closure, tracer_of, twin
from funcgrad.generated import function
from funcgrad.records import RECORD, Node, Pull, leaf, recorded, to_part

__all__ = ["ReverseTrace", "record", "recorder"]

ndarray = np.ndarray
float64 = np.float64
_DOUBLE = np.dtype(float64)


class ReverseTrace(Trace):
    """One run of a function whose pullback is wanted. Records are numbered 0, -1, -2 and so on."""

    __slots__ = ()
    shown = "ReverseTracer"
    differentiates = True

    def __init__(self) -> None:
        Trace.__init__(self, count(0, -1))

    def upcoming(self) -> int:
        """The number that the next record will have. It is not taken: the leaves of the tape are numbered from 0."""
        return int(repr(self.counter)[len("count(") : -len(", -1)")])

    def leaf(self, value: Any) -> Tracer:
        """An input of the function, which must not write to it."""
        made = Tracer()
        made._trace, made.node, made.alias = self, leaf(next(self.counter)), READ_ONLY
        if type(value) is ndarray:
            made.value, made.form = value, value.shape if value.dtype is _DOUBLE else None
        elif type(value) is float64:
            made.value, made.form = value, float64
        else:
            made.value, made.form = twin(value) if type(value) is Tracer else value, None
        return made

    def recorded(self, ans: Any, pull: Pull, parents: Sequence[Node], saved: Sequence[Any]) -> Tracer:
        """The tracer of a result, with a new record."""
        made = Tracer()
        made.value, made._trace, made.form = ans, self, None
        made.node = recorded(next(self.counter), pull, parents, saved)
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level out and record how to pull a cotangent back through it."""
        traced, parents, lowered = [], [], list(args)
        for position, arg in enumerate(args):
            if type(arg) is Tracer and arg._trace is self:
                lowered[position], parent = arg.value, arg.node
                traced.append(position)
                parents.append(parent)
        if primitive.reverse is None:
            return primitive.call(*lowered, **params)
        ans, pull, saved = primitive.reverse(tuple(lowered), tuple(traced), params)
        if pull is None:
            return ans
        node = recorded(next(self.counter), pull, parents, saved)
        if not primitive.multiple:
            return tracer_of(ans, self, node)
        refuse_closure(self, primitive, ans, params)
        return tuple(
            self.recorded(a, to_part, (node,), (i, len(ans))) if backend.is_inexact(a) else a for i, a in enumerate(ans)
        )


def recorder(pull: Pull, parents: Sequence[str], saved: Sequence[str]) -> Callable[..., Tracer]:
    """``made(trace, ans, *parents, *saved)``: the tracer of a result, as ``ReverseTrace.recorded`` makes it, sooner."""
    names = {"parents": ", ".join(parents), "saved": "".join(f", {name}" for name in saved)}
    text = _RECORDER.format(record=RECORD.format(pull="pull", **names), **names)
    made: Callable[..., Tracer] = function(f"record_{pull.operation}", text, globals(), pull=pull)
    return made


_RECORDER = """
def operation(trace, ans, {parents}{saved}):
    made, numbers = Tracer(), trace.numbers or trace.counter
    made.value, made._trace, made.form = ans, trace, None
    made.node = {record}
    return made
"""


def record(fun: Callable[..., list[Any]], leaves: Sequence[Any]) -> tuple[list[Any], list[Node | None]]:
    """Run ``fun`` on leaves of a new tape.

    Returns:
        The results, and for each its record on the tape, None where it does not depend on the leaves.
        ``backward`` from these records with ``len(leaves)`` is the pullback.
    """
    trace = ReverseTrace()
    try:
        outs = fun(*[trace.leaf(leaf) for leaf in leaves])
    finally:
        trace.close()
    mine = [type(out) is Tracer and out._trace is trace for out in outs]
    results = [out.value if m else out for out, m in zip(outs, mine, strict=True)]
    nodes = [out.node if m else None for out, m in zip(outs, mine, strict=True)]
    return [twin(x) for x in results], nodes
