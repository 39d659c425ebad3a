"""Reverse mode: a tape of linked records, and the backward pass over them.

What a record holds is said in ``records``. Numbers fall from 0, so that a heap of nodes gives the youngest
first. That is a topological order, in which the backward pass visits them. It keeps only the frontier: a node
and what it saved are dropped as soon as it has been passed, unless somebody else still holds the tape. Nodes
point to their parents only, so what nothing refers to any more is freed at once, by reference counting.
Nothing recurses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush, heappushpop
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend, blocks
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, raise_escaped, refuse_closure, repeated
from funcgrad.records import Node, operation_of, reading

__all__ = [
    "Parts",
    "ReverseTrace",
    "ReverseTracer",
    "Splice",
    "backward",
    "collecting",
    "is_part",
    "record",
    "to_part",
    "tracer_of",
]

Collect: TypeAlias = Callable[[list[Any]], Any]
ndarray = np.ndarray
float64 = np.float64


class ReverseTracer(Tracer):
    """A value on the tape: what it is (``value``) and how it came about (``node``).

    It is made empty and filled by ``tracer_of``, or by who cannot wait: a constructor in Python takes longer than both.
    """

    __slots__ = ()
    _trace: ReverseTrace
    node: Any = Tracer.__dict__["link"]


def tracer_of(value: Any, trace: ReverseTrace, node: Node) -> ReverseTracer:
    """The tracer of a value that ``trace`` has recorded."""
    made = ReverseTracer()
    made.value, made._trace, made.node, made.form = value, trace, node, None
    return made


class ReverseTrace(Trace):
    """One run of a function whose pullback is wanted.

    Attributes:
        numbers: gives the number of the next record: 0, -1, -2 and so on; it refuses once the trace is closed, which
            costs the recording of an operation nothing.
        all_numbers: the same, but never refuses.
    """

    __slots__ = ("all_numbers", "numbers")
    differentiates = True
    all_numbers: count[int]
    numbers: Iterator[int]

    def __init__(self) -> None:
        self.numbers = self.all_numbers = count(0, -1)
        Trace.__init__(self)  # from now on other threads see the trace

    def upcoming(self) -> int:
        """The number that the next record will have. It is not taken: the leaves of the tape are numbered from 0."""
        return int(repr(self.all_numbers)[len("count(") : -len(", -1)")])

    def leaf(self, value: Any) -> ReverseTracer:
        """An input of the function, which must not write to it."""
        made = tracer_of(value._twin() if isinstance(value, Tracer) else value, self, (next(self.numbers), None))
        made.alias = READ_ONLY
        if type(value) is float64:
            made.form = float64
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level out and record how to pull a cotangent back through it."""
        mine, parents, lowered = [], [], list(args)
        for position, arg in enumerate(args):
            if type(arg) is ReverseTracer and arg._trace is self:
                mine.append(position)
                lowered[position], parent = arg.value, arg.node
                parents.append(parent)
        if primitive.reverse is None:
            return primitive.call(*lowered, **params)
        ans, pull, saved = primitive.reverse(tuple(lowered), tuple(mine), params)
        if pull is None:
            return ans
        if len(parents) == 2 and getattr(pull, "pairs", False):  # cotangents then meet in the order of the short ways
            return tracer_of(ans, self, (next(self.numbers), pull, parents[0], parents[1], *saved))
        node = (next(self.numbers), pull, None, tuple(parents), *saved)
        if not primitive.multiple:
            return tracer_of(ans, self, node)
        refuse_closure(self, primitive, ans, params)
        return tuple(
            tracer_of(a, self, (next(self.numbers), to_part, node, None, i, len(ans))) if backend.is_inexact(a) else a
            for i, a in enumerate(ans)
        )

    def close(self) -> None:
        """Mark the function as finished: recording more raises ``EscapedTracerError``."""
        Trace.close(self)
        over = _Finished()
        over.level, over.numbers = self.level, self.all_numbers
        self.numbers = over


class _Finished:
    """Stands for the numbers of a run that is over: who asks for one has a tracer that has escaped.

    Not so while a part of the run is repeated. It does not hold the trace, which holds it.
    """

    __slots__ = ("level", "numbers")
    level: int
    numbers: Iterator[int]

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if repeated(self.level):
            return next(self.numbers)
        raise_escaped(ReverseTrace, self.level)


class Splice(list[tuple[Node, Any]]):
    """What a pull returns that recorded anew what its node stands for: nodes of that record, and their cotangents.

    The backward pass goes on through them. They are younger than all that the pass has still to visit, so
    cotangents meet in the same order as without the detour.
    """


class Parts(list[Any]):
    """What has been gathered of a cotangent: parts of it, behind the sum of the complete ones if there were any.

    A *part* is a tuple that begins with ``collect``: ``collect(gathered)`` makes the whole of such a list. Reading
    ``x[i]`` n times gives n small parts instead of n arrays of the size of ``x``; an operation with several results
    gets one part for each; products with a matrix wait until there are more.

    Attributes:
        most: so many entries at most, see ``collecting``.
    """

    __slots__ = ("most",)
    most: int

    def gather(self, part: tuple[Any, ...]) -> None:
        """Add a part."""
        self.append(part)
        if len(self) > self.most:
            self[:] = [_total(self)]


def collecting(most: int = sys.maxsize) -> Callable[[Collect], Collect]:
    """Say of a function ``collect`` how many entries may wait: where there are more, they are put together."""

    def decorate(collect: Collect) -> Collect:
        collect.most = most  # type: ignore[attr-defined]
        return collect

    return decorate


def is_part(x: Any) -> bool:
    """Whether a pull returned a part, and not the cotangents of several parents."""
    return type(x) is tuple and callable(x[0])


def _total(ct: Any) -> Any:
    """The cotangent of which ``ct`` is a part, or ``Parts``."""
    if type(ct) is tuple:
        return ct[0]([ct])
    ways = sorted({part[0] for part in ct if type(part) is tuple}, key=lambda collect: collect.most)
    if not ways:  # they have just been put together
        return ct[0]
    for collect in ways[:-1]:  # an array may be read and multiplied, say
        others = [part for part in ct if type(part) is tuple and part[0] is not collect]
        ct = [collect([part for part in ct if type(part) is not tuple or part[0] is collect]), *others]
    return ways[-1](ct)


@collecting()
def _collect_results(parts: list[Any]) -> list[Any]:
    """The cotangents of all results of one operation, None for zero."""
    whole: list[Any] = [None] * parts[0][2]
    for _, position, _, ct in parts:
        whole[position] = ct if whole[position] is None else whole[position] + ct
    return whole


def _of_result(ct: Any, position: int, results: int) -> tuple[Any, ...]:
    return _collect_results, position, results, ct


#: The pull of a record's part: one of several results.
to_part: Any = reading(_of_result)
to_part.operation = "part"


#: Sums of so few numbers get new memory, which costs nothing: NumPy keeps such pieces.
_SMALL = 128


def _combine(number: int, old: Any, new: Any, owned: set[int]) -> Any:
    """Add a cotangent to the one waiting, in place once the buffer is this pass's own."""
    if type(old) is ndarray and type(new) is ndarray:
        if number in owned:
            old += new
            return old
        owned.add(number)
        return old + new
    if type(old) is type(new) is float64:
        return old + new
    if new is None:
        return old
    if type(old) is Parts:
        if type(new) is tuple:
            old.gather(new)
        elif type(old[0]) is tuple:
            old.insert(0, new)
        else:
            old[0] = _combine(number, old[0], new, owned)
        return old
    if type(old) is tuple or type(new) is tuple:
        gathered = Parts((old, new) if type(new) is tuple else (new, old))
        gathered.most = (old if type(old) is tuple else new)[0].most
        return gathered
    return old + new


def record(fun: Callable[..., list[Any]], leaves: Sequence[Any]) -> tuple[list[Any], list[Node | None]]:
    """Run ``fun`` on leaves of a new tape.

    Returns:
        The results, and for each its node on the tape, None where it does not depend on the leaves.
        ``backward`` from these nodes with ``len(leaves)`` is the pullback.
    """
    trace = ReverseTrace()
    try:
        outs = fun(*[trace.leaf(leaf) for leaf in leaves])
    finally:
        trace.close()
    mine = [type(out) is ReverseTracer and out._trace is trace for out in outs]
    results = [out.value if m else out for out, m in zip(outs, mine, strict=True)]
    nodes = [out.node if m else None for out, m in zip(outs, mine, strict=True)]
    return [x._twin() if isinstance(x, Tracer) else x for x in results], nodes


def _name_operation(error: Exception, node: Node) -> None:
    """Tell with an error of the backward pass which operation was being pulled back through."""
    if node and getattr(error, "operation", None) != operation_of(node):
        origin = getattr(node[1], "origin", None)
        where = (
            ". To know the line that asked for it, put `with debug_nans():` around the call"
            if origin is None
            else f", asked for {origin}"
        )
        error.add_note(f"In the pullback of {operation_of(node)}{where}.")


def backward(seeds: list[tuple[Node, Any]], leaves: int) -> list[Any]:
    """Pull cotangents back from ``seeds`` to the leaves.

    Args:
        seeds: ``(node, cotangent)`` for each output that lies on the tape. The list is emptied, so that
            the pass holds no more of the tape than it has still to visit.
        leaves: how many leaves the tape has: its first records.

    Returns:
        The cotangent of each leaf, None where it is zero.
    """
    owned: set[int] = set()  # numbers whose cotangent is a buffer made here
    pending: dict[int, Any] = {}  # by number: the cotangent gathered so far
    _visit(pending, _seeded(seeds, pending, owned), owned)
    results = list(map(pending.get, range(0, -leaves, -1)))
    for leaf, ct in enumerate(results):
        if type(ct) is tuple or type(ct) is Parts:
            results[leaf] = _total(ct)
    return results


#: Older than every leaf: what is left of a heap when all has been visited.
_END: Node = (1, None)


def _seeded(seeds: list[tuple[Node, Any]], pending: dict[int, Any], owned: set[int]) -> list[Node]:
    """The heap to begin with."""
    if len(seeds) == 1 and seeds[0][1] is not None:  # the commonest
        node, pending[node[0]] = seeds.pop()
        return [node, _END]
    heap = [_END]
    for node, ct in seeds:
        _arrive(pending, heap, owned, node, ct)
    seeds.clear()
    return heap


def _arrive(pending: dict[int, Any], heap: list[Node], owned: set[int], node: Node, ct: Any) -> None:
    """A cotangent of what a node stands for, None for zero: it waits until the node is the next to be visited."""
    number = node[0]
    if number in pending:
        pending[number] = _combine(number, pending[number], ct, owned)
    elif ct is not None:
        pending[number] = ct
        heappush(heap, node)


def _arrive_all(pending: dict[int, Any], heap: list[Node], owned: set[int], parents: Any, cts: Any) -> None:
    """The same for many parents. A function, so that no variable of the pass holds the last of them any longer."""
    for parent, ct in cts if type(cts) is Splice else zip(parents, cts, strict=False):
        _arrive(pending, heap, owned, parent, ct)


def _visit(pending: dict[int, Any], heap: list[Node], owned: set[int]) -> None:
    """Visit the nodes in order, until the next one is a leaf: then there are cotangents of leaves only."""
    looking = blocks.watching()
    watch: Any = None if looking is None else looking.backward_pass(pending)
    node = heappop(heap)
    try:
        while node[1] is not None:
            ct = pending.pop(node[0])
            if (kind := type(ct)) is tuple or kind is Parts:
                ct = _total(ct)
            ct = watch.pull(ct, node) if watch else node[1](ct, node)
            parent, second = node[2], node[3]
            if second is not None:
                if parent is None:
                    _arrive_all(pending, heap, owned, second, ct)
                    node = heappop(heap)
                    continue
                ct, other = ct
                number = second[0]
                if number in pending:
                    old = pending[number]
                    joined = type(old) is type(other) is ndarray and other.size < _SMALL
                    pending[number] = old + other if joined else _combine(number, old, other, owned)
                elif other is not None:
                    pending[number] = other
                    heappush(heap, second)
                other = old = None  # what a pull is given nobody else holds
            number = parent[0]
            if number in pending:
                old = pending[number]
                joined = type(old) is type(ct) is ndarray and ct.size < _SMALL
                pending[number] = old + ct if joined else _combine(number, old, ct, owned)
                old = None
            elif ct is not None:
                pending[number] = ct
                node = heappushpop(heap, parent)  # itself, where it comes next
                continue
            node = heappop(heap)
    except Exception as error:
        _name_operation(error, node)
        raise
