"""Reverse mode: the tape, the run that writes its records, and the backward pass over them.

A record is a flat tuple of data and a static rule, never a closure::

    (number, pull, *parents, *saved)

Numbers fall from 0 in the order of execution. ``pull(ct, record)`` answers with a pair ``(parent, cotangent)`` for each
parent, the cotangent None for zero; it knows how many parents there are, and what is saved behind them. A leaf is
``(number, None)``.

Only this module knows the places in a record: rules get the values that they name; readers call the functions below.

A heap of records gives the youngest first. That is a topological order, in which the backward pass visits them. It
keeps only the frontier: a visited record and its saved values are dropped at once, unless the tape is held elsewhere.
Records point to their parents only, so reference counting frees a record as soon as nothing refers to it. Nothing
recurses.

Sparse cotangents wait until the pass visits their record: reading ``x[i]`` n times gives n small cotangents of parts,
not n arrays of the size of ``x``; products with a matrix that many operations share are multiplied at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from heapq import heappop, heappush, heappushpop
from operator import is_not, itemgetter
from typing import Any, Protocol, TypeAlias

import numpy as np

from funcgrad import backend, blocks, generated
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, refuse_closure, tracer_of, twin

__all__ = [
    "CotangentAccumulator",
    "Node",
    "Pull",
    "ReverseTrace",
    "SparseCotangent",
    "Unfinished",
    "backward",
    "called",
    "each_saved",
    "is_sparse",
    "leaf",
    "marked",
    "number_of",
    "operation_of",
    "parents_of",
    "pull_for_all",
    "pull_in",
    "pull_of_each",
    "reachable",
    "record",
    "recorded",
    "recorder",
    "saved_by",
    "to_part",
    "with_parents",
    "with_pull",
    "with_saved",
]

ndarray = np.ndarray
float64 = np.float64
_DOUBLE = np.dtype(float64)
Node: TypeAlias = tuple[Any, ...]

#: The text that makes a record in a template: of the parents and the saved values, with a comma behind each.
RECORD = "(next(numbers), {pull}, {parents}{saved})"


class Pull(Protocol):
    """How a cotangent goes back through a record, the same for all records of an operation that have these parents.

    Attributes:
        operation: the name of the operation; for a rule that serves several, a function of the saved values.
        parents: their places in a record.
        arrays: the places of saved values that may hold arrays; shapes and dtypes follow.
    """

    operation: Any
    parents: slice
    arrays: slice

    def __call__(self, ct: Any, record: Node, /) -> Any:
        """A pair for each parent: the parent, and its cotangent or None."""


#: The place of a record in the order of execution, counted downwards.
number_of: Callable[[Node], int] = itemgetter(0)
#: What pulls a cotangent through a record; None for a leaf.
pull_in: Callable[[Node], Any] = itemgetter(1)


def leaf(number: int) -> Node:
    """The record of an input."""
    return (number, None)


def recorded(number: int, pull: Pull, parents: Sequence[Node], saved: Sequence[Any]) -> Node:
    """The record of an operation."""
    return (number, pull, *parents, *saved)


def pull_of_each(
    operation: str, answers: Sequence[str], saved: Sequence[str], shared: dict[str, Any], **rules: Any
) -> Pull:
    """The pull of a record with a parent for each of ``answers``.

    Args:
        operation: the name of the operation.
        answers: for each parent the expression that gives its cotangent: of ``ct``, of what is saved, of rules.
        saved: the names of what is saved, in order.
        shared: the names that the expressions share with those of other operations, see ``generated``.
        rules: what its other names stand for.

    Example:
        >>> pull = pull_of_each("multiply", ["ct * y", "ct * x"], ["x", "y"], globals())
        >>> pull(2.0, (-2, pull, (0, None), (-1, None), 3.0, 4.0))
        (((0, None), 8.0), ((-1, None), 6.0))
    """
    parents = [f"parent_{i}" for i in range(len(answers))]
    pairs = ", ".join(f"({parent}, {answer})" for parent, answer in zip(parents, answers, strict=True))
    text = (
        "def operation(ct, record):\n"
        f"    _, _, {', '.join([*parents, *saved])} = record\n"
        f"    return {pairs}{',' * (len(parents) == 1)}\n"
    )
    static = [name.partition("_")[0] in _STATIC for name in saved]
    few = max([i + 1 for i, one in enumerate(static) if not one], default=0)
    made: Pull = marked(generated.function(operation, text, shared, **rules), operation, len(parents), few)
    return made


#: Names of saved values that are not arrays and hold none: ``like_1`` is a shape and a dtype.
_STATIC = frozenset(("dtype", "like", "shape"))


@cache
def pull_for_all(operation: Any, rule: Callable[..., Sequence[Any]], parents: int) -> Any:
    """The pull of a record whose ``rule(ct, *saved)`` gives the cotangents of all parents at once.

    Example:
        >>> pull = pull_for_all("swap", lambda ct, x: (ct[1], ct[0]), 2)
        >>> pull((1.0, 2.0), (-2, pull, (0, None), (-1, None), 3.0))
        (((0, None), 2.0), ((-1, None), 1.0))
    """
    end = 2 + parents

    def pull(ct: Any, record: Node) -> Any:
        return tuple(zip(record[2:end], rule(ct, *record[end:]), strict=False))

    return marked(pull, operation, parents)


def marked(pull: Any, operation: Any, parents: int, arrays: int | None = None) -> Any:
    """``pull`` as the ``Pull`` of an operation. The first ``arrays`` saved values may hold arrays, else all."""
    end = 2 + parents
    pull.operation, pull.parents = operation, slice(2, end)
    pull.arrays = slice(end, None if arrays is None else end + arrays)
    return pull


def called(ct: Any, node: Node) -> Any:
    """The pairs that the pull of a record returns for a cotangent."""
    return node[1](ct, node)


def operation_of(node: Node) -> str:
    """The name of the operation that a record belongs to; "part" for one of several results of its parent."""
    name = node[1].operation
    return name if isinstance(name, str) else name(*saved_by(node))


def parents_of(node: Node) -> tuple[Node, ...]:
    """The records that a record depends on."""
    return () if node[1] is None else node[node[1].parents]


def saved_by(node: Node) -> tuple[Any, ...]:
    """The values that a record saved, in order."""
    return () if node[1] is None else node[node[1].parents.stop :]


def with_pull(node: Node, pull: Any) -> Node:
    """The same record with another pull."""
    return (node[0], pull, *node[2:])


def with_parents(node: Node, parents: Sequence[Node]) -> Node:
    """The same record with other parents, as many."""
    return (*node[:2], *parents, *saved_by(node))


def reachable(ends: Sequence[Node | None]) -> dict[int, Node]:
    """All records that a backward pass from ``ends`` may visit, by their place in the order of execution."""
    found: dict[int, Node] = {}
    waiting = [node for node in ends if node is not None]
    while waiting:
        node = waiting.pop()
        if (place := -node[0]) not in found:
            found[place] = node
            if node[1] is not None:
                waiting += node[node[1].parents]
    return found


def each_saved(ends: Sequence[Node | None]) -> list[Any]:
    """The arrays saved by all records that a backward pass from ``ends`` may visit, each record once."""
    seen: set[int] = set()
    saved: list[Any] = []
    waiting = [node for node in ends if node is not None]
    for node in waiting:  # which grows
        if (pull := node[1]) is not None and node[0] not in seen:
            seen.add(node[0])
            waiting += node[pull.parents]
            saved += node[pull.arrays]
    return saved


def with_saved(ends: Sequence[Node | None], change: Callable[[Any], Any]) -> list[Node | None]:
    """The same records, in which ``change(x)`` stands for each value ``x`` that was saved.

    A record that would not change, nor any record that it depends on, is kept.
    """
    records = reachable(ends)
    made: dict[int, Node] = {}  # those that are not themselves, by their numbers
    for place in sorted(records):
        if (pull := (node := records[place])[1]) is not None:
            parents = [made.get(p[0], p) for p in node[pull.parents]]
            new = (*node[:2], *parents, *map(change, node[pull.parents.stop :]))
            if any(map(is_not, node, new)):
                made[node[0]] = new
    return [None if node is None else made.get(node[0], node) for node in ends]


class Unfinished:
    """A cotangent that is not one array, or one number."""

    __slots__ = ()

    def materialize(self) -> Any:
        """The cotangent as an array."""
        raise NotImplementedError


class SparseCotangent(tuple[Any, ...], Unfinished):
    """A cotangent that is not written out. Subclasses say what its entries are, and how several make one array."""

    __slots__ = ()

    #: So many may wait for one record; where there are more, they are put together.
    most = sys.maxsize

    @staticmethod
    def put_together(entries: list[Any]) -> Any:
        """The sum of sparse cotangents of this class, before which a whole one may stand."""
        raise NotImplementedError

    def materialize(self) -> Any:
        """The cotangent as an array."""
        return self.put_together([self])


class CotangentAccumulator(Unfinished):
    """The parts of a cotangent so far, in order: whole ones are one sum, which stands first.

    Args:
        old: what came first, whole or sparse.
        new: what came next; one of the two is sparse.
    """

    __slots__ = ("entries", "kind", "most")

    def __init__(self, old: Any, new: Any) -> None:
        first = old if issubclass(type(old), SparseCotangent) else new
        self.kind: type[SparseCotangent] = type(first)  # of most of them
        self.most: int = first.most
        self.entries = [old, new] if first is new or issubclass(type(new), SparseCotangent) else [new, old]

    def add(self, ct: Any) -> bool:
        """Add a cotangent, None for zero; False for a whole one beside another: they are to be summed first."""
        entries = self.entries
        if type(ct) is self.kind or issubclass(type(ct), SparseCotangent):
            entries.append(ct)
            if len(entries) > self.most:
                self.entries = [self.materialize()]
        elif ct is None:
            pass
        elif issubclass(type(entries[0]), SparseCotangent):
            entries.insert(0, ct)
        else:
            return False
        return True

    def materialize(self) -> Any:
        """The cotangent as an array."""
        entries = self.entries
        kind = type(entries[0])
        if issubclass(kind, SparseCotangent) and len(set(map(type, entries))) == 1:  # the commonest
            self.entries = []
            return kind.put_together(entries)
        kinds = sorted({type(entry) for entry in entries if is_sparse(entry)}, key=_most)
        for kind in kinds[:-1]:  # an array may be read and multiplied, say
            others = [entry for entry in entries if is_sparse(entry) and type(entry) is not kind]
            mine = [entry for entry in entries if not is_sparse(entry) or type(entry) is kind]
            entries = [kind.put_together(mine), *others]
        if entries is self.entries:
            entries, self.entries = entries, []
        return kinds[-1].put_together(entries) if kinds else entries[0]


def _most(kind: type[SparseCotangent]) -> int:
    return kind.most


def is_sparse(ct: Any) -> bool:
    """Whether ``ct`` is a sparse cotangent; ``isinstance`` would ask a traced value for the class it stands for."""
    return issubclass(type(ct), SparseCotangent)


class ResultCotangent(SparseCotangent):
    """The cotangent of one of several results of an operation: its place, the number of results, the cotangent."""

    __slots__ = ()

    @staticmethod
    def put_together(entries: list[Any]) -> list[Any]:
        """The cotangents of all results, None for zero."""
        whole: list[Any] = [None] * entries[0][1]
        for position, _, ct in entries:
            whole[position] = ct if whole[position] is None else whole[position] + ct
        return whole


#: The pull of the record of one of several results.
to_part: Any = pull_of_each("part", ["ResultCotangent((position, results, ct))"], ["position", "results"], globals())


class ReverseTrace(Trace):
    """One run of a function whose pullback is wanted. Records are numbered 0, -1, -2 and so on."""

    __slots__ = ()
    shown = "ReverseTracer"
    differentiates = numbered = True

    def upcoming(self) -> int:
        """The number that the next record will have. It is not taken: the leaves of the tape are numbered from 0."""
        return int(repr(self.counter)[len("count(") : -len(", -1)")])

    def leaf(self, value: Any) -> Tracer:
        """An input of the function, which must not write to it."""
        made = Tracer()
        made._trace, made.node, made.alias = self, leaf(next(self.counter)), READ_ONLY
        if type(value) is ndarray:
            made._val, made.form = value, value.shape if value.dtype is _DOUBLE else None
        elif type(value) is float64:
            made._val, made.form = value, float64
        else:
            made._val, made.form = twin(value) if type(value) is Tracer else value, None
        return made

    def recorded(self, ans: Any, pull: Pull, parents: Sequence[Node], saved: Sequence[Any]) -> Tracer:
        """The tracer of a result, with a new record."""
        made = Tracer()
        made._val, made._trace, made.form = ans, self, None
        made.node = recorded(next(self.counter), pull, parents, saved)
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level out and record how to pull a cotangent back through it."""
        traced, parents, lowered = [], [], list(args)
        for position, arg in enumerate(args):
            if type(arg) is Tracer and arg._trace is self:
                lowered[position], parent = arg._val, arg.node
                traced.append(position)
                parents.append(parent)
        if primitive.reverse is None:
            return primitive.lowered(tuple(lowered), params)
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
    made: Callable[..., Tracer] = generated.function(f"record_{pull.operation}", text, globals(), pull=pull)
    return made


_RECORDER = """
def operation(trace, ans, {parents}{saved}):
    made, numbers = Tracer(), trace.numbers or trace.counter
    made._val, made._trace, made.form = ans, trace, None
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
    results = [out._val if m else out for out, m in zip(outs, mine, strict=True)]
    nodes = [out.node if m else None for out, m in zip(outs, mine, strict=True)]
    return [twin(x) for x in results], nodes


def backward(seeds: list[tuple[Node, Any]], leaves: int) -> list[Any]:
    """Pull cotangents back from ``seeds`` to the leaves.

    Args:
        seeds: ``(record, cotangent)`` for each output that lies on the tape. The list is emptied, so that
            the pass holds no more of the tape than it has still to visit.
        leaves: how many leaves the tape has: its first records.

    Returns:
        The cotangent of each leaf, None where it is zero.
    """
    owned: set[int] = set()  # numbers whose cotangent is a buffer made here
    pending: dict[int, Any] = {}  # by number: the cotangent gathered so far
    heap = [_END]
    if len(seeds) == 1 and seeds[0][1] is not None:  # the commonest; no variable may hold the record
        heap.insert(0, seeds[0][0])
        pending[seeds[0][0][0]] = seeds[0][1]
    else:
        _arrive(pending, heap, owned, seeds)
    seeds.clear()
    _visit(pending, heap, owned)
    results: list[Any] = list(map(pending.get, range(0, -leaves, -1)))
    for place, ct in enumerate(results):
        if issubclass(type(ct), Unfinished):
            results[place] = ct.materialize()
    return results


#: Older than every leaf: what is left of a heap when all has been visited.
_END: Node = (1, None)
#: Sums of so few numbers get new memory, which costs nothing: NumPy keeps such pieces.
_SMALL = 128


def _visit(pending: dict[int, Any], heap: list[Node], owned: set[int]) -> None:
    """Visit the records in order, until the next one is a leaf: then there are cotangents of leaves only."""
    looking = None if blocks.here() is None else blocks.watching()
    watch: Any = None if looking is None else looking.backward_pass(pending)
    node, last = heappop(heap), None
    try:
        while (pull := node[1]) is not None:
            ct = pending.pop(node[0])
            if (kind := type(ct)) is not ndarray and kind is not float64 and issubclass(kind, Unfinished):
                ct = ct.materialize()
            pairs = pull(ct, node) if watch is None else watch.pull(ct, node)
            for parent, ct in pairs:
                if (number := parent[0]) in pending:
                    old = pending[number]
                    if type(old) is type(ct) is ndarray and ct.size < _SMALL:
                        pending[number] = old + ct
                    elif type(old) is not CotangentAccumulator or not old.add(ct):
                        pending[number] = _combined(number, old, ct, owned)
                    old = None  # a pull gets the only reference
                elif ct is not None:
                    pending[number] = ct
                    if last is not None:
                        heappush(heap, last)
                    last = parent
            node = heappop(heap) if last is None else heappushpop(heap, last)
            last = pairs = None
    except Exception as error:
        _name_operation(error, node)
        raise


def _arrive(pending: dict[int, Any], heap: list[Node], owned: set[int], seeds: list[tuple[Node, Any]]) -> None:
    """The cotangents that a pass begins with."""
    for node, ct in seeds:
        number = number_of(node)
        if (old := pending.get(number)) is not None:
            if type(old) is not CotangentAccumulator or not old.add(ct):
                pending[number] = _combined(number, old, ct, owned)
        elif ct is not None:
            pending[number] = ct
            heappush(heap, node)


def _combined(number: int, old: Any, new: Any, owned: set[int]) -> Any:
    """The sum with the cotangent that waits, in place once the buffer is this pass's own."""
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
    if type(old) is CotangentAccumulator:  # and both have a whole one
        old.entries[0] = _combined(number, old.entries[0], new, owned)
        return old
    if issubclass(type(new), SparseCotangent) or issubclass(type(old), SparseCotangent):
        return CotangentAccumulator(old, new)
    return old + new


def _name_operation(error: Exception, node: Node) -> None:
    """Tell with an error of the backward pass which operation was being pulled back through."""
    if node and getattr(error, "operation", None) != operation_of(node):
        origin = getattr(pull_in(node), "origin", None)
        where = (
            ". To know the line that asked for it, put `with debug_nans():` around the call"
            if origin is None
            else f", asked for {origin}"
        )
        error.add_note(f"In the pullback of {operation_of(node)}{where}.")
