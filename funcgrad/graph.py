"""Graph capture: a run of a function as a list of operations that can be looked at and evaluated again.

The captured run computes real values, so Python control flow takes the branch that those values take.

A ``Recording`` is flat: operations by number, arguments as numbers. A ``Node`` is what a reader of a
graph or of a tape holds in hand: one operation with its facts and its parents.
"""

from __future__ import annotations

import linecache
import math
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, NoReturn

import numpy as np

from funcgrad import backend, blocks
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, refuse_closure, twin
from funcgrad.errors import BranchError
from funcgrad.ownership import entry_is_alone

__all__ = [
    "GraphTrace",
    "GraphTracer",
    "Node",
    "Note",
    "Operand",
    "Recording",
    "Ref",
    "Source",
    "Stage",
    "Step",
    "remember",
    "steer",
    "stands_for_array",
]


class Ref(NamedTuple):
    """Where a value comes from: input ``place`` when ``output`` is None, else a result of operation ``place``."""

    place: int
    output: int | None


class Source(NamedTuple):
    """A line of the user's program."""

    path: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """What stands there, as far as it can be read."""
        return linecache.getline(self.path, self.line).strip()

    def __str__(self) -> str:
        return f"{self.path.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


class Stage(NamedTuple):
    """A stage of a pipeline: its place, from 1, and the name of its function."""

    number: int
    name: str

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


class Note(NamedTuple):
    """What a recording that is made to be read keeps of an operation besides what evaluates it.

    Attributes:
        source: the user's line that asked for it.
        stage: the stage of the pipeline it belongs to.
        saved: the values that reverse mode would keep, as ``(identity, bytes)``; a value that several
            operations keep has one identity, a ``Ref`` where it is on the graph.
    """

    source: Source | None
    stage: Stage | None
    saved: tuple[tuple[Any, int], ...]


class Step(NamedTuple):
    """One operation: a primitive, its arguments (a ``Ref`` or a constant), parameters, shape and dtype of its result.

    Of an operation with several results there are tuples of shapes and of dtypes.
    """

    primitive: Primitive
    args: tuple[Any, ...]
    params: dict[str, Any]
    shape: tuple[Any, ...]
    dtype: Any
    note: Note | None = None

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each result."""
        return self.shape if self.primitive.multiple else (self.shape,)

    @property
    def dtypes(self) -> tuple[Any, ...]:
        """The dtype of each result."""
        return self.dtype if self.primitive.multiple else (self.dtype,)


def step_of(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], shape: Any, dtype: Any) -> Step:
    """The step of an operation with one result."""
    return tuple.__new__(Step, (primitive, args, params, shape, dtype, None))  # as the class does, sooner


class Operand(NamedTuple):
    """An argument that is computed or given: a node, and which of its results."""

    node: Node
    output: int


class Node:
    """One operation, input or leaf of a graph or of a tape. Compared and hashed by identity.

    Attributes:
        index: the operation's place in the order of execution, on a tape its record's; of an input its place.
        name: the operation's name, or the input's.
        kind: "operation" or "input".
        primitive: the primitive; None for inputs and on a tape.
        args: for each argument an ``Operand`` or a constant.
        params: static parameters.
        shapes: the shape of each result; empty on a tape, which does not know them.
        dtypes: the dtype of each result; empty on a tape.
        saved: the bytes that reverse mode keeps for this operation.
        source: the user's line, None where none is known.
        stage: the stage of the pipeline, None outside of one.
        decided: the answer where Python asked this value for a truth value, an index, or an array of either; None
            where it did not.
    """

    __slots__ = (
        "args",
        "decided",
        "dtypes",
        "index",
        "kind",
        "name",
        "params",
        "primitive",
        "saved",
        "shapes",
        "source",
        "stage",
    )

    def __init__(
        self,
        index: int,
        name: str,
        kind: str = "operation",
        *,
        args: tuple[Any, ...] = (),
        shapes: Sequence[tuple[int, ...]] = (),
        dtypes: Sequence[Any] = (),
        saved: int = 0,
        decided: Any = None,
    ) -> None:
        self.index, self.name, self.kind = index, name, kind
        self.args = args
        self.shapes, self.dtypes = tuple(shapes), tuple(dtypes)
        self.saved, self.decided = saved, decided
        self.primitive: Primitive | None = None
        self.params: dict[str, Any] = {}
        self.source: Source | None = None
        self.stage: Stage | None = None

    @property
    def parents(self) -> tuple[Node, ...]:
        """The nodes whose results this one takes, each once: one step backwards, as ``next_functions`` goes."""
        return tuple(dict.fromkeys(a.node for a in self.args if type(a) is Operand))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the first result, None on a tape."""
        return self.shapes[0] if self.shapes else None

    @property
    def dtype(self) -> Any:
        """The dtype of the first result, None on a tape."""
        return self.dtypes[0] if self.dtypes else None

    @property
    def bytes(self) -> int:
        """The bytes of all results."""
        return sum(math.prod(s) * d.itemsize for s, d in zip(self.shapes, self.dtypes, strict=True))

    def ancestors(self) -> list[Node]:
        """All that this node depends on, inputs included, each once and the nearest first."""
        found: dict[Node, None] = dict.fromkeys(self.parents)
        for node in (queue := list(found)):
            new = [p for p in node.parents if p not in found]
            found.update(dict.fromkeys(new))
            queue.extend(new)
        return list(found)

    def __repr__(self) -> str:
        results = ", ".join(f"{d}{list(s) if s else ''}" for s, d in zip(self.shapes, self.dtypes, strict=True))
        return f"<{self.kind} {self.index}: {self.name}{f' -> {results}' if results else ''}>"


class GraphTracer(Tracer):
    """A value of the captured run, and where in the graph it stands."""

    __slots__ = ()
    ref: Any = Tracer.__dict__["link"]

    def __init__(self, value: Any, trace: GraphTrace, ref: Ref) -> None:
        self.value = value
        self._trace: GraphTrace = trace
        self.ref = ref


class GraphTrace(Trace):
    """One run of a function whose operations are recorded in order."""

    __slots__ = ("inputs", "operations", "order")

    #: Whether what is recorded must give the same bits as a run without tracers.
    repeats = False

    def __init__(self) -> None:
        super().__init__()
        self.inputs = 0
        self.order = Lock()  # the function may compute in several threads
        self.operations: list[Step] = []

    def input(self, value: Any) -> GraphTracer:
        """The next input of the function, which must not write to it."""
        self.inputs += 1
        made = GraphTracer(twin(value), self, Ref(self.inputs - 1, None))
        made.alias = READ_ONLY
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``primitive`` and run it one level out."""
        lowered, places = list(args), list(args)
        for position, arg in enumerate(args):
            if type(arg) is GraphTracer and arg._trace is self:
                lowered[position], places[position] = arg.value, arg.ref
        refs = tuple(places)
        ans, noted = self.run(primitive, tuple(lowered), refs, params)
        if not primitive.multiple:
            step = step_of(primitive, refs, params, backend.shape_of(ans), backend.dtype_of(ans))
            return GraphTracer(ans, self, self.note(step, noted))
        refuse_closure(self, primitive, ans, params)
        shapes, dtypes = tuple([backend.shape_of(a) for a in ans]), tuple([backend.dtype_of(a) for a in ans])
        place = self.note(Step(primitive, refs, params, shapes, dtypes), noted).place
        return tuple(GraphTracer(a, self, Ref(place, i)) for i, a in enumerate(ans))

    def note(self, step: Step, noted: Callable[[int], Note] | None = None) -> Ref:
        """Add an operation; where its first result stands."""
        with self.order:
            index = len(self.operations)
            self.operations.append(step if noted is None else step._replace(note=noted(index)))
        return tuple.__new__(Ref, (index, 0))  # as the class does, sooner

    def run(
        self, primitive: Primitive, args: tuple[Any, ...], refs: tuple[Any, ...], params: dict[str, Any]
    ) -> tuple[Any, Callable[[int], Note] | None]:
        """The result of ``primitive`` one level out, and what notes something of it, once its place is known."""
        return primitive.call(*args, **params), None

    def by_operator(self, operation: Callable[..., Any], *args: Any, in_place: bool = False) -> Any:
        """What an operator of a tracer gives: what the function ``operation`` does, unless last bits are looked at."""
        return operation(*args)

    def by_rule(self, operation: Callable[..., Any], *args: Any, short: bool) -> Any:
        """The same where the rule of another transform asks, whose ``short`` case calls the operator of doubles."""
        return operation(*args)

    def decide(self, tracer: GraphTracer, answer: Any) -> None:
        """Python asked ``tracer`` for what it stands for and will steer by ``answer``: a bool, an int or an array."""

    def recording(self, outputs: Sequence[Any]) -> Recording:
        """What was recorded, as far as ``outputs`` (leaves, tracers or not) depend on it."""
        return Recording(self.inputs, self.operations, [self.place(out) for out in outputs])

    def place(self, leaf: Any) -> Any:
        """The ``Ref`` of a leaf that is on this graph, else the leaf."""
        return leaf.ref if type(leaf) is GraphTracer and leaf._trace is self else leaf


def stands_for_array(x: Any) -> bool:
    """Whether ``x`` is an ndarray, or one on a graph on which the same must be done as with an ndarray."""
    return type(x) is np.ndarray or (type(x) is GraphTracer and x._trace.repeats and type(x.value) is np.ndarray)


def remember(decisions: dict[Ref, Any], ref: Ref, answer: Any) -> None:
    """Add an answer to ``decisions``. An array says more than an integer, and that more than a truth value."""
    if ref not in decisions or _weight(answer) >= _weight(decisions[ref]):
        decisions[ref] = answer


def _weight(answer: Any) -> int:
    return 0 if type(answer) is bool else 1 if type(answer) is int else 2


def steer(x: Any, answer: Any) -> Any:
    """``answer``, by which Python goes on, made known to every graph that ``x`` is on."""
    while isinstance(x, Tracer):
        if type(x) is GraphTracer:
            x._trace.decide(x, answer.copy() if type(answer) is np.ndarray else answer)
        x = x.value
    return answer


class Recording:
    """A captured run: operations in order of execution.

    Attributes:
        inputs: the number of inputs.
        operations: the operations on which the outputs depend.
        outputs: for each output its ``Ref``, or a constant.
        decisions: by the ``Ref`` of a value the answer that it gave when Python steered by it.

    What has a shape or a dtype that depends on values is kept too: Python may have been steered by that.
    """

    def __init__(
        self, inputs: int, operations: list[Step], outputs: list[Any], decisions: dict[Ref, Any] | None = None
    ) -> None:
        self.inputs = inputs
        self.operations, self.outputs, self.decisions = _prune(operations, outputs, decisions or {})

    def __len__(self) -> int:
        return len(self.operations)

    def evaluate(self, *inputs: Any) -> list[Any]:
        """The outputs for other inputs, which may be tracers.

        Raises:
            BranchError: a value by which Python steered the captured run comes out otherwise, or a shape or
                dtype that depends on values.
        """
        results: list[Any] = []
        deciding: dict[int, list[Ref]] = {}
        for ref in self.decisions:
            if ref.output is None:
                self._check(ref, inputs[ref.place])
            else:
                deciding.setdefault(ref.place, []).append(ref)

        over = self._over
        for number, (primitive, refs, params, *_) in enumerate(self.operations):
            args = [a if type(a) is not Ref else inputs[a[0]] if a[1] is None else results[a[0]][a[1]] for a in refs]
            if number in over:
                for place in over[number]:
                    results[place] = None
            results.append(_again(primitive, args, params))
            if primitive.loose:
                self._check_kind(self.operations[number], results[-1])
            if number in deciding:
                for ref in deciding[number]:
                    self._check(ref, results[number][ref[1]])
        return [
            a if type(a) is not Ref else inputs[a[0]] if a[1] is None else results[a[0]][a[1]] for a in self.outputs
        ]

    @cached_property
    def _over(self) -> dict[int, list[int]]:
        """By the number of an operation: whose results are not needed any more once it has them."""
        last: dict[int, int] = {}
        for number, step in enumerate(self.operations):
            for a in step[1]:
                if type(a) is Ref and a[1] is not None:
                    last[a[0]] = number
        for out in self.outputs:
            if type(out) is Ref and out.output is not None:
                last.pop(out.place, None)
        found: dict[int, list[int]] = {}
        for place, number in last.items():
            found.setdefault(number, []).append(place)
        return found

    def _check(self, ref: Ref, value: Any) -> None:
        """Refuse to go on where the captured run would have gone another way."""
        answer: Any = self.decisions[ref]
        now: Any
        if type(answer) is bool or type(answer) is int:
            now = bool(value) if type(answer) is bool else operator.index(value)
            alike = now == answer
        else:
            now, answer = _bottom(value), _bottom(answer)
            rank = len(answer.shape)
            # the examples of a vmap stand in front
            alike = now.shape[len(now.shape) - rank :] == answer.shape and bool((now == answer).all())
        if not alike:
            _refuse(None if ref.output is None else self.operations[ref.place], now, answer)

    def _check_kind(self, step: Step, results: tuple[Any, ...]) -> None:
        """Refuse to go on with results of another shape or dtype: what comes after was made for the captured ones."""
        for ans, shape, dtype in zip(results, step.shapes, step.dtypes, strict=True):
            now = backend.dtype_of(ans)
            if backend.shape_of(ans) != shape or (now.kind == "c") != (dtype.kind == "c"):
                _refuse(step, f"{now}{list(backend.shape_of(ans))}", f"{dtype}{list(shape)}")


def _again(primitive: Primitive, args: list[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    """The results for other arguments. Of these the first is overwritten if nobody but the list holds it."""
    if primitive.reuse is not None and blocks.here() is None and entry_is_alone(args, 0):
        return (primitive.reuse(*args, **params),)
    ans = primitive.call(*args, **params)
    return ans if primitive.multiple else (ans,)


def _bottom(x: Any) -> Any:
    """The array that ``x`` stands for in the end."""
    while isinstance(x, Tracer):
        x = x.value
    return x if hasattr(x, "shape") else np.asarray(x)


def _refuse(step: Step | None, now: Any, answer: Any) -> NoReturn:
    """Refuse to repeat a run for what would go another way."""
    note = None if step is None else step.note
    where = f", decided at {note.source}" if note is not None and note.source is not None else ""
    with np.printoptions(threshold=20, edgeitems=2):
        raise BranchError(
            f"graph: the function takes another branch for these inputs than for those it was traced with{where}, "
            f"got {now}, traced {answer}. Trace it again with inputs of the new kind."
        )


def _needed(operations: list[Step], wanted: set[int]) -> set[int]:
    """The operations ``wanted`` and all that they depend on."""
    needed = set(wanted)
    if wanted:
        for index in range(max(wanted), -1, -1):
            if index in needed:
                for a in operations[index][1]:
                    if type(a) is Ref and a[1] is not None:
                        needed.add(a[0])
    return needed


def _prune(
    operations: list[Step], outputs: list[Any], decisions: dict[Ref, Any]
) -> tuple[list[Step], list[Any], dict[Ref, Any]]:
    """Only the operations that ``outputs`` and ``decisions`` need, and those of loose kinds, renumbered."""
    lasting = _needed(operations, {out.place for out in outputs if type(out) is Ref and out.output is not None})
    steering = {ref.place for ref in decisions if ref.output is not None}
    steering.update(i for i, step in enumerate(operations) if step.primitive.loose)
    needed = lasting | _needed(operations, steering)
    if len(lasting) == len(operations):
        return operations, outputs, decisions
    place = {old: new for new, old in enumerate(sorted(needed))}

    def moved(ref: Any) -> Any:
        return Ref(place[ref.place], ref.output) if type(ref) is Ref and ref.output is not None else ref

    def moved_note(old: int, note: Note | None) -> Note | None:
        saved = note.saved if note is not None and old in lasting else ()  # reverse mode drops what no output needs
        return note and note._replace(saved=tuple((moved(key), size) for key, size in saved))

    kept = [
        step._replace(args=tuple(moved(a) for a in step.args), note=moved_note(old, step.note))
        for old, step in ((old, operations[old]) for old in place)
    ]
    return kept, [moved(out) for out in outputs], {moved(ref): answer for ref, answer in decisions.items()}
