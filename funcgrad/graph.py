"""Graph capture: a run of a function as a list of operations that can be inspected and evaluated again.

The captured run computes real values, so Python control flow takes the branch that these values select.

A ``Recording`` is flat. Each input, constant and result has a number, its *slot*, and an operation refers to its
arguments by their slots.
"""

from __future__ import annotations

import itertools
import linecache
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from funcgrad import backend, blocks
from funcgrad.core import (
    READ_ONLY,
    Primitive,
    Trace,
    Tracer,
    plain_value,
    refuse_closure,
    shallow_copy,
    tracer_of,
    traces_of,
)
from funcgrad.errors import BranchError, ConcretizationError
from funcgrad.ownership import is_first_unshared


class Source(NamedTuple):
    """Line of the user's program."""

    path: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """Text of the line, empty if the file cannot be read."""
        return linecache.getline(self.path, self.line).strip()

    def __str__(self) -> str:
        return f"{self.path.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


class PipelineStage(NamedTuple):
    """Stage of a pipeline: its number, counted from 1, and the name of its function."""

    number: int
    name: str

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


class Note(NamedTuple):
    """Further facts about an operation, in a recording for readers.

    Attributes:
        source: the user's line that called the operation.
        stage: the pipeline stage that the operation belongs to.
        saved: the values that reverse mode would save, as ``(identity, bytes)``; a value that several
            operations save has one identity, which is its slot if the value is on the graph.
    """

    source: Source | None
    stage: PipelineStage | None
    saved: tuple[tuple[Any, int], ...]


class Step(NamedTuple):
    """One operation: primitive, slots of its arguments, parameters, and slot, shape and dtype of its result.

    An operation with several results has tuples of slots, shapes and dtypes.
    """

    primitive: Primitive
    args: tuple[int, ...]
    params: dict[str, Any]
    out: Any
    shape: tuple[Any, ...]
    dtype: Any
    note: Note | None = None

    @property
    def outs(self) -> tuple[int, ...]:
        """Slot of each result."""
        return self.out if self.primitive.multiple else (self.out,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each result."""
        return self.shape if self.primitive.multiple else (self.shape,)

    @property
    def dtypes(self) -> tuple[Any, ...]:
        """Dtype of each result."""
        return self.dtype if self.primitive.multiple else (self.dtype,)


class GraphTrace(Trace):
    """One run of a function whose operations are recorded in order.

    Args:
        tangents_of: the public call, for messages, if the values are tangents that are not known yet. The values are
            then zeros, and Python cannot branch on them. Else empty.

    Attributes:
        inputs: the slots of the inputs.
        constants: the values that existed before the run and are not inputs, by slot.
        operations: the operations, each after all that it depends on, even if the function computes in several threads.
    """

    __slots__ = ("_slots", "constants", "inputs", "operations", "tangents_of")

    tracer_name = "GraphTracer"
    #: Whether the trace runs the function again if an answer differs, so that outer graphs need not note the answer.
    reruns_on_change = False

    def __init__(self, tangents_of: str = "") -> None:
        super().__init__()
        self.tangents_of = tangents_of
        self._slots = itertools.count()
        self.inputs: list[int] = []
        self.constants: dict[int, Any] = {}
        self.operations: list[Step] = []

    def input(self, value: Any) -> Tracer:
        """Make the next input of the function, which is read-only."""
        made = tracer_of(shallow_copy(value), self, next(self._slots))
        self.inputs.append(made.slot)
        made.alias = READ_ONLY
        return made

    def constant(self, x: Any) -> Any:
        """Return a new slot for a value that does not belong to this graph."""
        slot = next(self._slots)
        self.constants[slot] = x
        return slot

    def slot_of(self, x: Any) -> Any:
        """Return the slot of any value; a value of another graph, or a plain one, becomes a constant."""
        return x.slot if type(x) is Tracer and x._trace is self else self.constant(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``primitive`` and run it one level out."""
        lowered, arg_slots = list(args), []
        for position, arg in enumerate(args):
            mine = type(arg) is Tracer and arg._trace is self
            arg_slots.append(arg.slot if mine else self.constant(arg))
            if mine:
                lowered[position] = arg._val
        slots = tuple(arg_slots)
        ans, noted = self.run(primitive, tuple(lowered), slots, params)
        if not primitive.multiple:
            return self.record_result(primitive, slots, params, ans, noted)
        refuse_closure(self, primitive, ans, params)
        outs = tuple([next(self._slots) for _ in ans])
        shapes, dtypes = tuple([backend.shape_of(a) for a in ans]), tuple([backend.dtype_of(a) for a in ans])
        self.operations.append(Step(primitive, slots, params, outs, shapes, dtypes, noted and noted(outs)))
        return tuple([tracer_of(a, self, out) for a, out in zip(ans, outs, strict=True)])

    def record_result(
        self,
        primitive: Primitive,
        slots: tuple[int, ...],
        params: dict[str, Any],
        ans: Any,
        noted: Callable[[tuple[int, ...]], Note] | None = None,
    ) -> Tracer:
        """Append an operation with one result, ``ans``, and return the tracer of this result."""
        out = next(self._slots)
        known = type(ans) is np.float64 or type(ans) is np.ndarray
        shape, dtype = (ans.shape, ans.dtype) if known else backend.shape_and_dtype_of(ans)
        note = None if noted is None else noted((out,))
        self.operations.append(tuple.__new__(Step, (primitive, slots, params, out, shape, dtype, note)))  # faster
        return tracer_of(ans, self, out)

    def run(
        self, primitive: Primitive, args: tuple[Any, ...], slots: tuple[int, ...], params: dict[str, Any]
    ) -> tuple[Any, Callable[[tuple[int, ...]], Note] | None]:
        """Compute ``primitive`` one level out; return its result, and None or a function from its slots to a note."""
        return primitive.call(*args, **params), None

    def note_decision(self, tracer: Tracer, answer: Any) -> None:
        """Note that Python read ``tracer`` and will branch on ``answer``: a bool, an int or an array.

        Raises:
            ConcretizationError: ``tracer`` is a tangent, which is not known yet.
        """
        if self.tangents_of:
            raise ConcretizationError(
                f"{self.tangents_of}: Python asked for a number of a tangent, which is not known yet, got "
                f"{tracer.dtype}{list(tracer.shape)}. Use funcgrad.numpy.where in the rule that asks, or jvp."
            )

    def recording(self, outputs: Sequence[Any], decisions: dict[int, Any] | None = None) -> Recording:
        """Return a recording of the operations that ``outputs`` (leaves, tracers or not) or ``decisions`` depend on."""
        slots = [self.slot_of(out) for out in outputs]
        return Recording(self.inputs, self.constants, self.operations, slots, decisions)


def is_on_graph(x: Any) -> bool:
    """Whether any trace of ``x`` captures a graph, which will run for other values too."""
    return any(isinstance(trace, GraphTrace) for trace in traces_of([x]))


def stands_for_array(x: Any) -> bool:
    """Whether ``x`` is an ndarray, or a tracer of an ndarray on a graph that must give the same bits as without it."""
    return type(x) is np.ndarray or (type(x) is Tracer and x._trace.is_bit_exact and type(x._val) is np.ndarray)


def add_decision(decisions: dict[int, Any], slot: int, answer: Any) -> None:
    """Add an answer to ``decisions``. An array is kept rather than an integer, an integer rather than a truth value."""
    if slot not in decisions or _weight(answer) >= _weight(decisions[slot]):
        decisions[slot] = answer


def _weight(answer: Any) -> int:
    return 0 if type(answer) is bool else 1 if type(answer) is int else 2


def report_answer(x: Any, answer: Any) -> Any:
    """Report ``answer``, on which Python branches, to the graphs of ``x`` up to one with ``reruns_on_change``."""
    known = False
    while isinstance(x, Tracer):
        if isinstance(x._trace, GraphTrace) and (not known or x._trace.tangents_of):
            x._trace.note_decision(x, _of_one_example(answer, len(x.shape)) if type(answer) is np.ndarray else answer)
            known = known or x._trace.reruns_on_change
        x = x._val
    return answer


def _of_one_example(answer: Any, rank: int) -> Any:
    """Return a copy of ``answer``; that of one example if all examples of a ``vmap`` agree: they may run in turn."""
    axes = (0,) * (answer.ndim - rank)
    if axes and answer.size and (answer == answer[axes]).all():
        return np.array(answer[axes])
    return answer.copy()


class Recording:
    """A captured run: operations in order of execution.

    Attributes:
        inputs: the slots of the inputs.
        constants: the values that are the same in every run, by slot.
        operations: the operations on which the outputs depend.
        outputs: the slots of the outputs.
        decisions: the answers on which Python branched, by the slot of the value that gave the answer.

    Operations whose results have value-dependent shapes or dtypes are kept too: Python may have branched on these.
    """

    def __init__(
        self,
        inputs: list[int],
        constants: dict[int, Any],
        operations: list[Step],
        outputs: list[int],
        decisions: dict[int, Any] | None = None,
    ) -> None:
        self.inputs, self.constants, self.outputs, self.decisions = inputs, constants, outputs, decisions or {}
        self.operations = operations
        self._prune()

    def __len__(self) -> int:
        return len(self.operations)

    def rename(self, slots: dict[int, int]) -> None:
        """Replace each ``slot`` by ``slots[slot]`` in the arguments of operations and in the outputs."""
        if any(old != new for old, new in slots.items()):
            self.operations = [
                step._replace(args=tuple([slots.get(slot, slot) for slot in step.args])) for step in self.operations
            ]
            self.outputs = [slots.get(slot, slot) for slot in self.outputs]

    def evaluate(self, *inputs: Any) -> list[Any]:
        """Compute the outputs for other inputs, which may be tracers.

        Raises:
            BranchError: a value on which Python branched in the captured run, or a value-dependent shape or
                dtype, is different now.
        """
        values = {**self.constants, **dict(zip(self.inputs, inputs, strict=True))}
        for slot in self._decided_before:
            self._check(slot, values[slot])
        for step, over, decided in self._schedule:
            primitive, slots, params, out, *_ = step
            args = [values[slot] for slot in slots]
            for slot in over:
                del values[slot]
            ans = _apply_reusing(primitive, args, params)
            if primitive.data_dependent:
                self._check_kind(step, ans)
            if primitive.multiple:
                values.update(zip(out, ans, strict=True))
            else:
                values[out] = ans
            for slot in decided:
                self._check(slot, values[slot])
            ans = None  # drop this reference: only an unshared array is overwritten
        return [values[slot] for slot in self.outputs]

    @cached_property
    def _decided_before(self) -> list[int]:
        """Slots of inputs and constants on which Python branched."""
        return [slot for slot in (*self.constants, *self.inputs) if slot in self.decisions]

    @cached_property
    def _schedule(self) -> list[tuple[Step, list[int], list[int]]]:
        """Operations, each with the slots that no later one needs, and those of its results that Python branched on."""
        last: dict[int, int] = {}
        for number, step in enumerate(self.operations):
            last.update(dict.fromkeys(step.args, number))
        over: dict[int, list[int]] = {}
        for slot in last.keys() - self.constants.keys() - set(self.inputs) - set(self.outputs):
            over.setdefault(last[slot], []).append(slot)
        return [
            (step, over.get(number, []), [slot for slot in step.outs if slot in self.decisions])
            for number, step in enumerate(self.operations)
        ]

    def _prune(self) -> None:
        """Keep only operations that outputs, decisions or operations with data-dependent shapes need."""
        steps = self.operations
        lasting = _needed(steps, self.outputs)
        if len(lasting) == len(steps):
            return
        uncertain = [out for step in steps if step.primitive.data_dependent for out in step.outs]
        steering = _needed(steps, [*self.decisions, *uncertain])
        # reverse mode saves nothing for operations that no output needs
        self.operations = [
            step if number in lasting else step._replace(note=step.note and step.note._replace(saved=()))
            for number, step in enumerate(steps)
            if number in lasting or number in steering
        ]
        used = {slot for step in self.operations for slot in step.args}.union(self.outputs)
        self.constants = {slot: x for slot, x in self.constants.items() if slot in used}

    def _check(self, slot: int, value: Any) -> None:
        """Raise an error if a value on which Python branched differs from the answer in the captured run."""
        answer: Any = self.decisions[slot]
        now: Any
        if type(answer) is bool or type(answer) is int:
            now = bool(value) if type(answer) is bool else operator.index(value)
            alike = now == answer
        else:
            now, answer = _plain_array(value), _plain_array(answer)
            report_answer(value, now)  # an enclosing run takes the branch by the same answer
            rank = len(answer.shape)
            # a vmap adds leading axes
            alike = now.shape[len(now.shape) - rank :] == answer.shape and bool((now == answer).all())
        if not alike:
            _raise_branch_error(next((step for step in self.operations if slot in step.outs), None), now, answer)

    def _check_kind(self, step: Step, ans: Any) -> None:
        """Raise an error if shapes, or real or complex kind, of results changed: later operations do not fit these."""
        results = ans if step.primitive.multiple else (ans,)
        for ans, shape, dtype in zip(results, step.shapes, step.dtypes, strict=True):
            now = backend.dtype_of(ans)
            if backend.shape_of(ans) != shape or (now.kind == "c") != (dtype.kind == "c"):
                _raise_branch_error(step, f"{now}{list(backend.shape_of(ans))}", f"{dtype}{list(shape)}")


def _apply_reusing(primitive: Primitive, args: list[Any], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` to other arguments; overwrite the first argument if only the list ``args`` holds it."""
    if primitive.reuse is not None and blocks.last_entered() is None and is_first_unshared(args):
        return primitive.reuse(*args, **params)
    return primitive.call(*args, **params)


def _plain_array(x: Any) -> Any:
    """Return the plain array inside all tracers of ``x``."""
    x = plain_value(x)
    return x if hasattr(x, "shape") else np.asarray(x)


def _raise_branch_error(step: Step | None, now: Any, answer: Any) -> NoReturn:
    """Raise the error for inputs for which the function takes another branch."""
    note = None if step is None else step.note
    where = f", decided at {note.source}" if note is not None and note.source is not None else ""
    if type(answer) is np.ndarray:
        with np.printoptions(threshold=20, edgeitems=2):
            now, answer = str(now), str(answer)
    raise BranchError(
        f"graph: the function takes another branch for these inputs than for those it was traced with{where}, "
        f"got {now}, traced {answer}. Trace it again with inputs of the new kind."
    )


def _needed(steps: list[Step], wanted: Sequence[int]) -> set[int]:
    """Return the numbers of the operations that compute the slots ``wanted``, and of all that these depend on."""
    slots, found = set(wanted), set()
    for number in range(len(steps) - 1, -1, -1):
        step = steps[number]
        if step.out in slots if not step.primitive.multiple else not slots.isdisjoint(step.out):
            found.add(number)
            slots.update(step.args)
    return found
