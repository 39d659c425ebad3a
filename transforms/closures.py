"""Closed-over values made arguments: a function of leaves alone, and the values that the function closed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from types import FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, split_into_examples
from funcgrad.core import Tracer, is_array, tracer_of
from funcgrad.errors import BranchError, ConcretizationError, NotDifferentiableError
from funcgrad.graph import GraphTrace, add_decision
from funcgrad.keeping import copy_shared_constants
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code import run_or_rebuild
from funcgrad.numpy_code.reachable import values_held
from funcgrad.numpy_code.refusals import is_own
from funcgrad.transforms.arguments import check_results
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.typing import PyTree
from funcgrad.writable import identity_key

R = TypeVar("R")


class RecordedClosure:
    """Recorded run of ``fun`` at ``x``, as a function of the leaves of ``x`` and of ``captured``.

    A call near ``x`` takes the branches that the run took and uses the numbers that arrays had then. Pullbacks call it
    again later, and the program may have written to its arrays by then.

    Args:
        call: the public call, for messages.
        fun: a function of one tree.
        x: the argument of the run.
        checks_branches: whether to refuse values for which the function would take other branches.
        lasting: whether calls come after possible writes to arrays; if not, it holds the arrays themselves.
        reruns_decisions: whether outer runs need not record the decisions of this run, because it looks for other
            branches itself.

    Attributes:
        captured: the tracers, and the arrays of other libraries, that the function closes over.
        outs: the leaves of the result of the run.
        out_spec: the structure of the result.
        recording: the recorded operations.
    """

    def __init__(
        self,
        call: str,
        fun: Callable[[Any], Any],
        x: PyTree,
        *,
        checks_branches: bool = False,
        lasting: bool = True,
        reruns_decisions: bool = False,
    ) -> None:
        self.call = call
        leaves, spec = tree.flatten(x)
        kind = RerunDecisionTrace if reruns_decisions else DecisionTrace if checks_branches else GraphTrace

        def record(fun: Callable[[Any], Any]) -> tuple[GraphTrace, PyTree]:
            trace = kind()
            try:
                return trace, fun(tree.unflatten(spec, [trace.input(leaf) for leaf in leaves]))
            finally:
                trace.close()

        trace, out = run_or_rebuild(fun, record)
        found, self.out_spec = tree.flatten(out)
        check_results(call, found)
        self.outs = [leaf._val if type(leaf) is Tracer and leaf._trace is trace else leaf for leaf in found]
        self.recording = recording = trace.recording(
            found, trace.decisions if isinstance(trace, DecisionTrace) else None
        )
        del trace  # the trace refers to the same arrays
        self.captured: list[Any] = []
        slots: dict[Any, int] = {}
        duplicates: dict[int, int] = {}  # the first slot of a value, by each further slot of the value
        for slot, x in list(recording.constants.items()):
            if isinstance(x, Tracer) or backend.is_of_other_library(x):
                del recording.constants[slot]
                duplicates[slot] = slots.setdefault(identity_key(x), slot)
                if duplicates[slot] == slot:
                    recording.inputs.append(slot)
                    self.captured.append(x)
        recording.rename(duplicates)
        if lasting:
            copy_shared_constants(recording)

    def __call__(self, x: PyTree, captured: Sequence[Any]) -> PyTree:
        """Evaluate the function at ``x``, a tree like the first one; ``captured`` replaces the captured values."""
        return tree.unflatten(self.out_spec, self.recording.evaluate(*tree.leaves(x), *captured))


def looks_at_tracers(fun: Any, depth: int = 4) -> bool:
    """Whether a function, or a function that it holds, closes over traced values, at which it may only look.

    A pullback that runs after the end of the transform cannot call such a function, but what was recorded of it. What
    functions of funcgrad hold are arguments.
    """
    if isinstance(fun, partial):
        held = [fun.func, *fun.args, *fun.keywords.values()]
    elif type(fun) in (FunctionType, MethodType):
        held = values_held(fun)
    else:
        return False
    values = [] if is_own(getattr(fun, "__func__", fun)) else held
    return depth > 0 and (
        any(isinstance(x, Tracer) or (type(x) in (tuple, list) and Tracer in map(type, x)) for x in values)
        or any(looks_at_tracers(x, depth - 1) for x in held)
    )


class BranchRecordings:
    """``fun`` as a function of the leaves of ``x`` and of ``captured``, whichever branches it takes.

    ``fun`` is recorded once for each path through its branches. Only ``solve_with_new_branches``, which can run
    ``fun``, records new paths.

    Args:
        call: the public call, for messages.
        fun: a function of one tree.
        x: the argument of the first run.

    Attributes:
        captured: the values that ``fun`` closes over on all recorded paths.
    """

    def __init__(self, call: str, fun: Callable[[Any], Any], x: PyTree) -> None:
        self.call, self.fun = call, fun
        self.captured: list[Any] = []
        #: The path taken latest first, each with the index in ``captured`` of its first value.
        self._recordings: list[tuple[RecordedClosure, int]] = []
        self._may_record = False
        self._last: list[Any] = []
        self._record(x)

    def __call__(self, x: PyTree, captured: Sequence[Any]) -> PyTree:
        """Evaluate the function at ``x``, with ``captured`` in place of the values that it closes over.

        Raises:
            BranchError: the function takes a new path. In ``solve_with_new_branches`` the next call knows this path.
        """
        for number, entry in enumerate(self._recordings):
            try:
                found = self._evaluate(entry, x, captured)
            except BranchError:
                continue
            if number:
                self._recordings = [entry, *[other for other in self._recordings if other is not entry]]
            return found
        may_record = self._may_record and len(self._recordings) < _MAX_RECORDINGS
        if not may_record or Tracer in map(type, tree.leaves(x)) or self._is_last(x):
            raise BranchError(
                f"{self.call}: the function closes over traced values, and takes a branch or reads an element that it "
                "did not need for the value. Pass these values in args."
            )
        self._record(x)
        return self._evaluate(self._recordings[0], x, captured)

    @property
    def largest(self) -> int:
        """Number of elements of the largest result of an operation on the recorded paths."""
        steps = [step for closure, _ in self._recordings for step in closure.recording.operations]
        return max([math.prod(shape) for step in steps for shape in step.shapes], default=1)

    def _is_last(self, x: PyTree) -> bool:
        """Whether the last recording was made at ``x``: one more would take the same path."""
        leaves = tree.leaves(x)
        return len(leaves) == len(self._last) and all(map(np.array_equal, leaves, self._last))

    def _record(self, x: PyTree) -> None:
        x = tree.map(lambda leaf: np.array(leaf) if type(leaf) is np.ndarray else leaf, x)  # a solver reuses its memory
        leaves = tree.leaves(x)
        self._last = [] if Tracer in map(type, leaves) else leaves
        closure = RecordedClosure(self.call, self.fun, x, reruns_decisions=True)
        self._recordings.insert(0, (closure, len(self.captured)))
        self.captured += closure.captured

    def _evaluate(self, entry: tuple[RecordedClosure, int], x: PyTree, captured: Sequence[Any]) -> PyTree:
        """Evaluate the recording. If it is newer than ``captured``, the values that it captured are constants."""
        closure, first = entry
        given = captured[first : first + len(closure.captured)]
        if len(given) < len(closure.captured):
            given = stop_gradient(closure.captured)
            if not self._may_record or Tracer in map(type, (*given, *captured)):
                raise BranchError(f"{self.call}: a way was found just now.")
        return closure(x, given)


#: Largest number of paths that a function may take.
_MAX_RECORDINGS = 1000


def solve_with_new_branches(recordings: Sequence[BranchRecordings], solve: Callable[[], R]) -> R:
    """Return ``solve()``; call it again if functions in it took paths on which they close over further values."""
    before = [one._may_record for one in recordings]
    while True:
        known = [len(one.captured) for one in recordings]
        for one in recordings:
            one._may_record = True
        try:
            found = solve()
        except BranchError:
            if known == [len(one.captured) for one in recordings]:
                raise
            continue
        finally:
            for one, finds in zip(recordings, before, strict=True):
                one._may_record = finds
        if known == [len(one.captured) for one in recordings]:
            return found


class DecisionTrace(GraphTrace):
    """Run that records the answers by which Python took its branches."""

    __slots__ = ("decisions",)

    def __init__(self) -> None:
        super().__init__()
        self.decisions: dict[int, Any] = {}

    def note_decision(self, tracer: Tracer, answer: Any) -> None:
        """Record the answer."""
        add_decision(self.decisions, tracer.slot, answer)


class RerunDecisionTrace(DecisionTrace):
    """Run whose decisions are made again wherever it is repeated, so that outer runs need not record them."""

    __slots__ = ()
    reruns_on_change = True


def example_by_example(
    fun: Callable[..., list[Any]],
    leaves: Sequence[Any],
    prepare: Callable[[list[Any]], Iterable[Callable[..., list[Any]]]] | None = None,
) -> list[Any]:
    """Call ``fun`` on whole batches; if it does not take them, on each example of the innermost ``vmap`` in turn.

    ``prepare`` takes all examples and returns the function for each of them, which may know what the others share.
    """
    try:
        return fun(*leaves)
    except (ConcretizationError, NotDifferentiableError):
        forget_refusal()
        split = split_into_examples(leaves)
        if split is None:
            raise
        within, examples = split
        funs: Iterable[Callable[..., list[Any]]] = repeat(fun)
        if prepare is not None:
            examples = iter(every := list(examples))
            funs = prepare(every)
        results = [example_by_example(one, example, prepare) for example, one in zip(examples, funs, strict=False)]
        return [_stacked(parts, within) for parts in zip(*results, strict=True)]


def _stacked(parts: Sequence[Any], within: BatchTrace) -> Any:
    """Return the results of all examples as one array, or as a list if they are not arrays."""
    if all(map(is_array, parts)):
        return tracer_of(fnp.stack(parts), within)
    return list(parts)
