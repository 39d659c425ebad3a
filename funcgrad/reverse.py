"""Reverse mode: the tape, the trace that writes its records, and the backward pass over the records.

A record is a flat tuple of data and a static VJP rule, never a closure::

    (number, vjp, *parents, *saved)

Numbers fall from 0 in the order of execution. The VJP rule ``vjp(ct, record)`` returns a pair ``(parent, cotangent)``
for each parent, with None for a zero cotangent. The rule knows the number of parents and the saved values that follow
them. A leaf is ``(number, None)``.

Only this module knows the layout of a record. Rules get the values that they name; other code calls functions below.

The backward pass takes records from a heap, latest first, which is a topological order. The pass keeps only the
frontier: it drops a visited record and its saved values at once, unless the tape is held elsewhere. Records
refer to their parents only, so reference counting frees a record as soon as nothing refers to it. No function here
is recursive.

Sparse cotangents are collected until the pass visits their record. Reading ``x[i]`` n times gives n small cotangents,
not n arrays of the size of ``x``. Products with a matrix that many operations share are computed as one product.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from heapq import heappop, heappush, heappushpop
from operator import attrgetter, itemgetter
from typing import Any, Protocol, TypeAlias

import numpy as np

from funcgrad import backend, blocks, generated
from funcgrad.core import (
    DOUBLE,
    READ_ONLY,
    Primitive,
    Trace,
    Tracer,
    are_tracers_of,
    own_results,
    refuse_closure,
    shallow_copy,
    tracer_of,
)

ndarray = np.ndarray
float64 = np.float64
Record: TypeAlias = tuple[Any, ...]

#: Expression that makes a record in a template: ``{parents}`` are names joined by commas, ``{saved}`` starts with one.
RECORD = "(next(counter), {vjp}, {parents}{saved})"


class VJP(Protocol):
    """VJP rule of a record, shared by all records of an operation with as many parents.

    Attributes:
        operation: the name of the operation, or for a rule that serves several, a function from saved values to it.
        parents: the slice of a record with the parents.
        arrays: the slice of a record with saved values that may hold arrays; saved shapes and dtypes follow.
    """

    operation: Any
    parents: slice
    arrays: slice

    def __call__(self, ct: Any, record: Record, /) -> Any:
        """Return a pair for each parent: the parent, and its cotangent or None."""


#: Function that returns the number of a record: its position in the order of execution, counted downwards.
number_of: Callable[[Record], int] = itemgetter(0)
#: Function that returns the VJP rule of a record; None for a leaf.
vjp_of: Callable[[Record], Any] = itemgetter(1)


def make_record(number: int, vjp: VJP, parents: Sequence[Record], saved: Sequence[Any]) -> Record:
    """Make the record of an operation."""
    return (number, vjp, *parents, *saved)


def vjp_of_each(
    operation: str, expressions: Sequence[str], saved: Sequence[str], shared: dict[str, Any], **rules: Any
) -> VJP:
    """Make the VJP rule of records that have a parent for each of ``expressions``.

    Args:
        operation: the name of the operation.
        expressions: for each parent the expression of its cotangent, in terms of ``ct``, saved values and ``rules``.
        saved: the names of the saved values, in order.
        shared: global names that the expressions share with those of other operations, see ``generated``.
        rules: the values of the other names in the expressions.

    Example:
        >>> vjp = vjp_of_each("multiply", ["ct * y", "ct * x"], ["x", "y"], globals())
        >>> vjp(2.0, (-2, vjp, (0, None), (-1, None), 3.0, 4.0))
        (((0, None), 8.0), ((-1, None), 6.0))
    """
    parents = [f"parent_{i}" for i in range(len(expressions))]
    pairs = ", ".join(f"({parent}, {expression})" for parent, expression in zip(parents, expressions, strict=True))
    text = (
        "def operation(ct, record):\n"
        f"    _, _, {', '.join([*parents, *saved])} = record\n"
        f"    return {pairs}{',' * (len(parents) == 1)}\n"
    )
    arrays = max([i for i, name in enumerate(saved, 1) if name.partition("_")[0] not in _STATIC], default=0)
    made: VJP = as_vjp_rule(generated.make_function(operation, text, shared, **rules), operation, len(parents), arrays)
    return made


#: Prefixes of the names of saved values that contain no array: ``like_1`` is a shape and a dtype.
_STATIC = frozenset(("dtype", "like", "shape"))


@cache
def vjp_for_all(operation: Any, rule: Callable[..., Sequence[Any]], parents: int) -> Any:
    """Make the VJP rule of records whose ``rule(ct, *saved)`` returns the cotangents of all parents.

    Example:
        >>> vjp = vjp_for_all("swap", lambda ct, x: (ct[1], ct[0]), 2)
        >>> vjp((1.0, 2.0), (-2, vjp, (0, None), (-1, None), 3.0))
        (((0, None), 2.0), ((-1, None), 1.0))
    """
    end = 2 + parents

    def vjp(ct: Any, record: Record) -> Any:
        return tuple(zip(record[2:end], rule(ct, *record[end:])))  # noqa: B905 - a keyword adds a third to the time

    return as_vjp_rule(vjp, operation, parents)


def as_vjp_rule(vjp: Any, operation: Any, parents: int, arrays: int | None = None) -> Any:
    """Set the attributes of ``VJP`` on ``vjp``; the first ``arrays`` saved values, None for all, may hold arrays."""
    end = 2 + parents
    vjp.operation, vjp.parents = operation, slice(2, end)
    vjp.arrays = slice(end, None if arrays is None else end + arrays)
    return vjp


def call_vjp(ct: Any, node: Record) -> Any:
    """Call the VJP rule of a record with a cotangent; return its pairs."""
    return node[1](ct, node)


def operation_of(node: Record) -> str:
    """Return the name of the operation that made a record; "part" for one of several results of its parent."""
    name = node[1].operation
    return name if isinstance(name, str) else name(*saved_by(node))


def parents_of(node: Record) -> tuple[Record, ...]:
    """Return the records of the arguments of a record's operation."""
    return () if node[1] is None else node[node[1].parents]


def saved_by(node: Record) -> tuple[Any, ...]:
    """Return the values that a record saved, in order."""
    return () if node[1] is None else node[node[1].parents.stop :]


def with_vjp(node: Record, vjp: Any) -> Record:
    """Copy a record with another VJP rule."""
    return (node[0], vjp, *node[2:])


def with_parents(node: Record, parents: Sequence[Record]) -> Record:
    """Copy a record with other parents, as many as before."""
    return (*node[:2], *parents, *saved_by(node))


def reachable(ends: Sequence[Record | None]) -> dict[int, Record]:
    """Return all records that a backward pass from ``ends`` may visit, by position in the order of execution."""
    found: dict[int, Record] = {}
    waiting = [node for node in ends if node is not None]
    while waiting:
        node = waiting.pop()
        if (position := -node[0]) not in found:
            found[position] = node
            if node[1] is not None:
                waiting += node[node[1].parents]
    return found


def all_saved(records: dict[int, Record]) -> list[Any]:
    """Return the saved values that may hold arrays, of all ``records``, see ``reachable``."""
    return [x for node in records.values() if node[1] is not None for x in node[node[1].arrays]]


def replace_saved(
    ends: Sequence[Record | None], records: dict[int, Record], new: dict[int, Any]
) -> list[Record | None]:
    """Replace saved values in ``records``, which are all that are reachable from ``ends``.

    Args:
        ends: the records with which the backward pass begins.
        records: see ``reachable``.
        new: the new values, by the ``id`` of the old value.

    Returns:
        The new ends. A record is kept if neither the record nor any record that it depends on changes.
    """
    made: dict[int, Record] = {}  # changed records, by number
    for position in sorted(records):
        node = records[position]
        vjp, place, fields = node[1], 2, None
        if vjp is None:
            continue
        for parent in node[vjp.parents]:
            if parent[0] in made:
                fields = list(node) if fields is None else fields
                fields[place] = made[parent[0]]
            place += 1
        for x in node[vjp.arrays]:
            if id(x) in new:
                fields = list(node) if fields is None else fields
                fields[place] = new[id(x)]
            place += 1
        if fields is not None:
            made[node[0]] = tuple(fields)
    return [None if node is None else made.get(node[0], node) for node in ends]


class PendingCotangent:
    """A cotangent that is not yet one array or number."""

    __slots__ = ()

    def materialize(self) -> Any:
        """Return the cotangent as an array."""
        raise NotImplementedError


class SparseCotangent(tuple[Any, ...], PendingCotangent):
    """A cotangent that is not yet written out as an array. Subclasses define the entries, and how to add several."""

    __slots__ = ()

    #: Largest number of sparse cotangents that are collected for one record; more than that are added at once.
    max_pending = sys.maxsize

    @staticmethod
    def sum_of(entries: list[Any]) -> Any:
        """Add sparse cotangents of this class; the first of ``entries`` may be a whole array instead."""
        raise NotImplementedError

    def materialize(self) -> Any:
        """Return the cotangent as an array."""
        return self.sum_of([self])


class CotangentAccumulator(PendingCotangent):
    """The summands of a cotangent so far, in order. Whole arrays among them are one sum, which comes first.

    Args:
        old: the first cotangent, a whole array or sparse.
        new: the second cotangent; at least one of the two is sparse.
    """

    __slots__ = ("entries", "kind", "max_pending")

    def __init__(self, old: Any, new: Any) -> None:
        first = old if issubclass(type(old), SparseCotangent) else new
        self.kind: type[SparseCotangent] = type(first)  # the class of most entries
        self.max_pending: int = first.max_pending
        self.entries = [old, new] if first is new or issubclass(type(new), SparseCotangent) else [new, old]

    def add(self, ct: Any) -> bool:
        """Add a cotangent, None for zero; return False for a second whole array: the caller must sum both first."""
        entries = self.entries
        if type(ct) is self.kind or issubclass(type(ct), SparseCotangent):
            entries.append(ct)
            if len(entries) > self.max_pending:
                self.entries = [self.materialize()]
        elif ct is None:
            pass
        elif issubclass(type(entries[0]), SparseCotangent):
            entries.insert(0, ct)
        else:
            return False
        return True

    def materialize(self) -> Any:
        """Return the cotangent as an array."""
        entries = self.entries
        kind = type(entries[0])
        if issubclass(kind, SparseCotangent) and len(set(map(type, entries))) == 1:  # the most frequent case
            self.entries = []
            return kind.sum_of(entries)
        kinds = sorted({type(entry) for entry in entries if is_sparse(entry)}, key=attrgetter("max_pending"))
        for kind in kinds[:-1]:  # several kinds: an array may be both indexed and multiplied, for example
            others = [entry for entry in entries if is_sparse(entry) and type(entry) is not kind]
            mine = [entry for entry in entries if not is_sparse(entry) or type(entry) is kind]
            entries = [kind.sum_of(mine), *others]
        if entries is self.entries:
            entries, self.entries = entries, []
        return kinds[-1].sum_of(entries) if kinds else entries[0]


def is_sparse(ct: Any) -> bool:
    """Whether ``ct`` is a sparse cotangent; ``isinstance`` would compute the class that a tracer represents."""
    return issubclass(type(ct), SparseCotangent)


class ResultCotangent(SparseCotangent):
    """Cotangent of one of several results of an operation: (index, number of results, cotangent)."""

    __slots__ = ()

    @staticmethod
    def sum_of(entries: list[Any]) -> list[Any]:
        """Return the cotangents of all results, None for zero."""
        whole: list[Any] = [None] * entries[0][1]
        for position, _, ct in entries:
            whole[position] = ct if whole[position] is None else whole[position] + ct
        return whole


#: VJP rule of the record of one of several results.
result_vjp: Any = vjp_of_each("part", ["ResultCotangent((position, results, ct))"], ["position", "results"], globals())


class ReverseTrace(Trace):
    """One run of a function that writes a tape for the pullback. Records are numbered 0, -1, -2 and so on."""

    __slots__ = ()
    tracer_name = "ReverseTracer"
    differentiates = makes_records = True

    def next_number(self) -> int:
        """Return the number that the next record will have, without taking it from the counter."""
        return int(repr(self.counter)[len("count(") : -len(", -1)")])

    def leaf(self, value: Any) -> Tracer:
        """Make a read-only input of the function."""
        made = Tracer()
        made._trace, made.node, made.alias = self, (next(self.counter), None), READ_ONLY
        if type(value) is ndarray:
            made._val, made.aval = value, value.shape if value.dtype is DOUBLE else None
        elif type(value) is float64:
            made._val, made.aval = value, float64
        else:
            made._val, made.aval = shallow_copy(value) if type(value) is Tracer else value, None
        return made

    def record_result(self, ans: Any, vjp: VJP, parents: Sequence[Record], saved: Sequence[Any]) -> Tracer:
        """Make the tracer of a result, with a new record."""
        made = Tracer()
        made._val, made._trace, made.alias = ans, self, None
        made.aval = ans.shape if type(ans) is ndarray and ans.dtype is DOUBLE else None
        made.node = (next(self.counter), vjp, *parents, *saved)
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level out and record its VJP rule."""
        traced, parents, lowered = [], [], list(args)
        for position, arg in enumerate(args):
            if type(arg) is Tracer and arg._trace is self:
                lowered[position], parent = arg._val, arg.node
                traced.append(position)
                parents.append(parent)
        if primitive.reverse is None:
            return primitive.call_lowered(tuple(lowered), params)
        ans, vjp, saved = primitive.reverse(tuple(lowered), tuple(traced), params)
        if vjp is None:
            return ans
        node = make_record(next(self.counter), vjp, parents, saved)
        if not primitive.multiple:
            return tracer_of(ans, self, node)
        refuse_closure(self, primitive, ans, params)
        return tuple(
            self.record_result(a, result_vjp, (node,), (i, len(ans))) if backend.is_inexact(a) else a
            for i, a in enumerate(ans)
        )


def make_recorder(vjp: VJP, parents: Sequence[str], saved: Sequence[str]) -> Callable[..., Tracer]:
    """Make ``made(trace, ans, *parents, *saved)``, a faster ``ReverseTrace.record_result`` for one VJP rule."""
    names = {"parents": ", ".join(parents), "saved": "".join(f", {name}" for name in saved)}
    text = _RECORDER.format(record=RECORD.format(vjp="vjp", **names), **names)
    made: Callable[..., Tracer] = generated.make_function(
        f"record_{vjp.operation}", text, globals(), vjp=vjp, __name__=vjp.__module__
    )
    return made


_RECORDER = """
def operation(trace, ans, {parents}{saved}):
    made, counter = Tracer(), trace.fast_counter or trace.counter
    made._val, made._trace, made.aval, made.alias = ans, trace, None, None
    made.node = {record}
    return made
"""


def record_function(
    fun: Callable[..., list[Any]], leaves: Sequence[Any], trace: ReverseTrace | None = None
) -> tuple[list[Any], list[Record | None]]:
    """Run ``fun`` on leaves of a new tape, that of ``trace`` if one is given.

    Returns:
        The results, and for each result its record on the tape, None if the result does not depend on the leaves.
        The pullback is ``backward`` from these records with ``len(leaves)``.
    """
    trace = trace or ReverseTrace()
    try:
        outs = fun(*[trace.leaf(leaf) for leaf in leaves])
    finally:
        trace.close()
    mine = are_tracers_of(trace, outs)
    results = [out._val if m else out for out, m in zip(outs, mine, strict=True)]
    nodes = [out.node if m else None for out, m in zip(outs, mine, strict=True)]
    return [shallow_copy(x) for x in results], nodes


def backward(seeds: list[tuple[Record, Any]], leaves: int) -> list[Any]:
    """Run the backward pass from ``seeds`` to the leaves.

    Args:
        seeds: ``(record, cotangent)`` for each output that is on the tape. The list is emptied, so that
            the pass holds only the part of the tape that it has yet to visit.
        leaves: the number of leaves, which are the first records of the tape.

    Returns:
        The cotangent of each leaf, None for zero.
    """
    owned: set[int] = set()  # numbers of records whose cotangent is a buffer that this pass allocated
    pending: dict[int, Any] = {}  # by number of a record: the sum of its cotangents so far
    heap = [_END]
    if len(seeds) == 1 and seeds[0][1] is not None:  # the most frequent case; no variable may hold the record
        heap.insert(0, seeds[0][0])
        pending[seeds[0][0][0]] = seeds[0][1]
    else:
        _seed(pending, heap, owned, seeds)
    seeds.clear()
    _visit(pending, heap, owned)
    results: list[Any] = list(map(pending.get, range(0, -leaves, -1)))
    for position, ct in enumerate(results):
        if issubclass(type(ct), PendingCotangent):
            results[position] = ct.materialize()
    return results


#: Sentinel at the end of a heap: it counts as older than every leaf.
_END: Record = (1, None)
#: Number of elements below which sums get new memory instead of reusing a buffer: NumPy caches small blocks.
_SMALL = 128


def _visit(  # noqa: C901, PLR0912 - calls for each record would cost a tenth
    pending: dict[int, Any], heap: list[Record], owned: set[int]
) -> None:
    """Visit the records in order, until only cotangents of leaves are left."""
    watcher = None if blocks.last_entered() is None else blocks.current().watcher
    observed: Any = None if watcher is None else watcher.backward_pass(pending)
    node, last, ct = heappop(heap), None, None
    try:
        while (vjp := node[1]) is not None:
            if ct is None:
                ct = pending.pop(node[0])
            if (kind := type(ct)) is not ndarray and kind is not float64 and issubclass(kind, PendingCotangent):
                ct = ct.materialize()
            pairs = vjp(ct, node) if observed is None else observed.vjp(ct, node)
            if len(pairs) == 1 and observed is None:
                ((parent, ct),) = pairs
                if ct is not None and parent[0] < heap[0][0]:  # it is newer than all that wait, as in a chain
                    node, pairs = parent, None
                    continue
            for parent, ct in pairs:
                if (number := parent[0]) in pending:
                    old = pending[number]
                    if type(old) is type(ct) is ndarray and ct.size < _SMALL:
                        pending[number] = old + ct
                    elif type(old) is not CotangentAccumulator or not old.add(ct):
                        pending[number] = _add_cotangents(number, old, ct, owned)
                    old = None  # the next VJP rule must get the only reference
                elif ct is not None:
                    pending[number] = ct
                    if last is not None:
                        heappush(heap, last)
                    last = parent
            node = heappop(heap) if last is None else heappushpop(heap, last)
            last = pairs = ct = None
        if ct is not None:
            pending[node[0]] = ct
    except Exception as error:
        _name_operation(error, node)
        raise


def _seed(pending: dict[int, Any], heap: list[Record], owned: set[int], seeds: list[tuple[Record, Any]]) -> None:
    """Add the cotangents with which a pass begins to ``pending``, and their records to ``heap``."""
    for node, ct in seeds:
        number = number_of(node)
        if (old := pending.get(number)) is not None:
            if type(old) is not CotangentAccumulator or not old.add(ct):
                pending[number] = _add_cotangents(number, old, ct, owned)
        elif ct is not None:
            pending[number] = ct
            heappush(heap, node)


def complete_derivatives(cts: list[Any], leaves: Sequence[Any]) -> list[Any]:
    """Return gradients that the caller owns: zeros for None, numbers for numbers. Changes ``cts`` in place.

    Args:
        cts: a cotangent per leaf, None for zero.
        leaves: the primals.
    """
    if len(cts) == 1 and type(cts[0]) is np.float64:  # the most frequent number, which is immutable
        return cts
    for i, leaf in enumerate(leaves):
        kind = type(cts[i])
        if kind is np.ndarray:
            if not cts[i].ndim and type(leaf) is not np.ndarray:
                cts[i] = cts[i][()]  # a number where a number went in
        elif cts[i] is None:
            cts[i] = backend.zeros_like(leaf)
        elif kind is Tracer and not cts[i]._trace.level:  # a buffer, from a rule that runs a user's function
            cts[i] = shallow_copy(cts[i])
        elif type(leaf) is float and kind is not np.float64 and issubclass(kind, np.generic):
            cts[i] = np.float64(cts[i])  # a Python float joins float32 arithmetic, but its gradient is a float64
    return own_results(cts) if np.ndarray in map(type, cts) else cts


def _add_cotangents(number: int, old: Any, new: Any, owned: set[int]) -> Any:
    """Add ``new`` to the pending cotangent ``old``, in place if this pass allocated the buffer."""
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
    if type(old) is CotangentAccumulator:  # it contains a whole array, and ``new`` is one
        old.entries[0] = _add_cotangents(number, old.entries[0], new, owned)
        return old
    if issubclass(type(new), SparseCotangent) or issubclass(type(old), SparseCotangent):
        return CotangentAccumulator(old, new)
    return old + new


def _name_operation(error: Exception, node: Record) -> None:
    """Add a note to an error of the backward pass that names the operation whose VJP rule was running."""
    if getattr(error, "operation", None) != operation_of(node):
        origin = getattr(vjp_of(node), "origin", None)
        where = (
            ". To know the line that asked for it, put `with debug_nans():` around the call"
            if origin is None
            else f", asked for {origin}"
        )
        error.add_note(f"In the pullback of {operation_of(node)}{where}.")
