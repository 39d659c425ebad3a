"""Reverse mode: the values on a tape, and the run that records them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, refuse_closure, twin
from funcgrad.generated import function
from funcgrad.records import RECORD, Node, Pull, leaf, recorded, to_part

__all__ = ["ReverseTrace", "ReverseTracer", "record", "recorder", "tracer_of"]

ndarray = np.ndarray
float64 = np.float64
_DOUBLE = np.dtype(float64)


class ReverseTracer(Tracer):
    """A value on the tape: what it is (``value``) and how it came about (``node``).

    It is made empty and filled by ``tracer_of``, or by who cannot wait: a constructor in Python takes longer than both.
    """

    __slots__ = ()
    _trace: ReverseTrace
    node: Any = Tracer.__dict__["link"]


def tracer_of(value: Any, trace: ReverseTrace, node: Node, form: Any = None) -> ReverseTracer:
    """The tracer of a value that ``trace`` has recorded."""
    made = ReverseTracer()
    made.value, made._trace, made.node, made.form = value, trace, node, form
    return made


class ReverseTrace(Trace):
    """One run of a function whose pullback is wanted.

    Attributes:
        numbers: gives the number of the next record: 0, -1, -2 and so on. It is what ``live`` is while operations need
            to ask nobody.
    """

    __slots__ = ("numbers",)
    differentiates = True
    numbers: count[int]

    def __init__(self) -> None:
        self.numbers = count(0, -1)
        Trace.__init__(self, self.numbers)  # from now on other threads see the trace

    def upcoming(self) -> int:
        """The number that the next record will have. It is not taken: the leaves of the tape are numbered from 0."""
        return int(repr(self.numbers)[len("count(") : -len(", -1)")])

    def leaf(self, value: Any) -> ReverseTracer:
        """An input of the function, which must not write to it."""
        made = ReverseTracer()
        made._trace, made.node, made.alias = self, leaf(next(self.numbers)), READ_ONLY
        if type(value) is ndarray:
            made.value, made.form = value, value.shape if value.dtype is _DOUBLE else None
        elif type(value) is float64:
            made.value, made.form = value, float64
        else:
            made.value, made.form = twin(value) if issubclass(type(value), Tracer) else value, None
        return made

    def recorded(self, ans: Any, pull: Pull, parents: Sequence[Node], saved: Sequence[Any]) -> ReverseTracer:
        """The tracer of a result, with a new record."""
        made = ReverseTracer()
        made.value, made._trace, made.form = ans, self, None
        made.node = recorded(next(self.numbers), pull, parents, saved)
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level out and record how to pull a cotangent back through it."""
        traced, parents, lowered = [], [], list(args)
        for position, arg in enumerate(args):
            if type(arg) is ReverseTracer and arg._trace is self:
                lowered[position], parent = arg.value, arg.node
                traced.append(position)
                parents.append(parent)
        if primitive.reverse is None:
            return primitive.call(*lowered, **params)
        ans, pull, saved = primitive.reverse(tuple(lowered), tuple(traced), params)
        if pull is None:
            return ans
        node = recorded(next(self.numbers), pull, parents, saved)
        if not primitive.multiple:
            return tracer_of(ans, self, node)
        refuse_closure(self, primitive, ans, params)
        return tuple(
            self.recorded(a, to_part, (node,), (i, len(ans))) if backend.is_inexact(a) else a for i, a in enumerate(ans)
        )


def recorder(pull: Pull, parents: Sequence[str], saved: Sequence[str]) -> Callable[..., ReverseTracer]:
    """``made(trace, ans, *parents, *saved)``: the tracer of a result, as ``ReverseTrace.recorded`` makes it, sooner."""
    names = {"parents": ", ".join(parents), "saved": "".join(f", {name}" for name in saved)}
    text = _RECORDER.format(record=RECORD.format(pull="pull", **names), **names)
    made: Callable[..., ReverseTracer] = function(f"record_{pull.operation}", text, globals(), pull=pull)
    return made


_RECORDER = """
def operation(trace, ans, {parents}{saved}):
    made, numbers = ReverseTracer(), trace.live or trace.awake
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
    mine = [type(out) is ReverseTracer and out._trace is trace for out in outs]
    results = [out.value if m else out for out, m in zip(outs, mine, strict=True)]
    nodes = [out.node if m else None for out, m in zip(outs, mine, strict=True)]
    return [twin(x) for x in results], nodes
