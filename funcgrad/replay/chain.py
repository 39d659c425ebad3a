"""Chains: runs in steps that the backward pass repeats from states that the tape keeps.

A *chain* is a run in steps, each from one state to the next; a state is a tree of arrays. A step leaves one
record on every tape that it uses, whatever the step did. The records that the step itself made are
dropped. When the backward pass reaches the record of the step, it runs the step again from its state, records
the run, and continues through the new records. The new records have the same parents and the same order as the
first ones, so cotangents are added in the same order, and gradients are the same bit for bit.

Values that a step closes over need no special treatment. The finished traces that were open around the first run of
the step record again while it is repeated, see ``repetitions``: their tracers have kept their values and records.

The chain keeps states between steps up to a budget, and computes the others again from the last kept state
before them. It keeps those states that make this cheapest: with ``s`` states kept at a time, the
first one included, and no step run more than ``r`` times on the way to states, at most ``binomial(s + r, s)`` steps
can be reversed; both rules below reach that number.

Sources:
    A. Griewank, A. Walther, Algorithm 799: Revolve, ACM Transactions on Mathematical Software 26 (2000), for a
    known number of steps; Q. Wang, P. Moin, G. Iaccarino, Minimal repetition dynamic checkpointing algorithm for
    unsteady adjoint calculation, SIAM Journal on Scientific Computing 31 (2009), for an unknown number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import comb, inf
from typing import Any, NamedTuple, TypeAlias

from funcgrad import blocks, core, tree
from funcgrad.core import Trace, Tracer, plain_value, shallow_copy, tracer_of
from funcgrad.replay.chronicle import Digests, StepNumbers, are_close, digest
from funcgrad.replay.memory import Memory, replay_error
from funcgrad.reverse import (
    Record,
    ReverseTrace,
    as_vjp_rule,
    make_record,
    number_of,
    operation_of,
    parents_of,
    result_vjp,
    saved_by,
    vjp_of,
)
from funcgrad.shared_state import (
    Repetition,
    active_traces,
    all_repetitions,
    open_path,
    repetitions,
    unfinished_traces,
)
from funcgrad.writable import detached_copy


@lru_cache(maxsize=4096)
def split(steps: int, states: int) -> int:
    """Return the number of steps from a kept state to the next state to keep.

    Args:
        steps: the number of steps to reverse, at least 2.
        states: the number of states that may be kept, the current one included, at least 2.

    Example:
        >>> split(10, 3)
        4
    """
    repeats = 1
    while comb(states + repeats, states) < steps:
        repeats += 1
    return min(comb(states + repeats - 1, states), steps - comb(states + repeats - 2, states - 1))


def states_for(steps: int, repeats: int) -> int:
    """Return the fewest states, the first one included, for which no step is repeated more than ``repeats`` times.

    Example:
        >>> states_for(10_000, 3)
        38
    """
    states = 1
    while comb(states + repeats, states) < steps:
        states += 1
    return states


class Placement:
    """Choice of the states to keep in a run of unknown length.

    Args:
        budget: the number of states that may be kept after the first.

    Example:
        >>> placement, kept = Placement(2), [0]
        >>> for i in range(1, 7):
        ...     given_up = placement.next()
        ...     if given_up is not None:
        ...         del kept[given_up]
        ...     kept.append(i)
        >>> kept
        [0, 3, 6]
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._ranks: list[float] = [inf]  # the ranks of the kept states, in order

    def next(self) -> int | None:
        """Return the index of the kept state to replace by the current state; None within the budget."""
        ranks = self._ranks
        if len(ranks) <= self._budget:
            ranks.append(0)
            return None
        highest = ranks[-1]
        for index in range(len(ranks) - 2, 0, -1):
            if ranks[index] < highest:  # a later state of higher rank makes it dispensable
                del ranks[index]
                ranks.append(0)
                return index
            highest = max(highest, ranks[index])
        ranks[-1] += 1
        return len(ranks) - 1


#: Leaves of a tree, and its structure. The tracers among the leaves refer to the chain's records only by
#: their numbers: the chain keeps states, and states that referred to the chain would never be freed.
State: TypeAlias = tuple[list[Any], tree.PyTreeSpec]
#: Results that a step recorded on one tape, by the number of their record.
NewResults: TypeAlias = dict[int, Tracer]


class _RecordPlaceholder(NamedTuple):
    """Placeholder for the record of a result of a step, of which only the number is known.

    Attributes:
        number: the number of the record.
        vjp: None, as in a leaf.
        step: the number of the state that contains the result.
        position: the index of the result among the results that the step recorded.
    """

    number: int
    vjp: None
    step: int
    position: int


class _NotingCounter:
    """Iterator over the numbers of records in repetitions; it notes in these if other threads record, too."""

    __slots__ = ("numbers", "runs", "thread")

    def __init__(self, numbers: Iterator[int], runs: tuple[Repetition, ...]) -> None:
        self.numbers, self.runs, self.thread = numbers, runs, threading.get_ident()

    def __next__(self) -> int:
        if threading.get_ident() != self.thread:
            for run in self.runs:
                run.joined_by_threads = True
        return next(self.numbers)


@dataclass(eq=False, slots=True)
class _StepsOnTape:
    """Data of a chain about its steps on one tape.

    Attributes:
        steps: for each step the number of its record, the numbers of the records of its results, and a hash of what
            the step recorded.
        residuals: a digest of the values that user rules saved, for steps with such values.
        parents: the records that the steps depend on, other than those of steps, by number.
    """

    steps: StepNumbers = field(default_factory=StepNumbers)
    residuals: dict[int, dict[Any, float]] = field(default_factory=dict)
    parents: dict[int, Record] = field(default_factory=dict)


class Chain:
    """A run in steps that the backward pass repeats.

    Args:
        name: the name of the chain in messages and on the tape.
        step: ``step(i, tree, again) -> tree``, from state ``i`` to state ``i + 1``; ``again`` is False in the
            first run of the step, else True.
        start: state 0, a tree.
        budget: the number of states after the first that may be kept at a time.
        memory: the memory of results inside a step, for a chain of one step; None to keep none.
        store: the ``Store`` for leaves of kept states; None to keep them in memory.

    Attributes:
        done: the number of steps run so far, each counted once.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[int, Any, bool], Any],
        start: Any,
        budget: int = 0,
        memory: Memory | None = None,
        store: Any = None,
    ) -> None:
        self.name = name
        self._store = store
        self.done = 0
        self._step = step
        self._budget = budget
        self._memory = memory
        leaves, spec = tree.flatten(start)
        self._given: list[Any] | None = leaves  # the program's own objects, until the first step runs
        self._kept: list[tuple[int, State]] = [(0, ([detached_copy(x) for x in leaves], spec))]
        self._records: dict[ReverseTrace, _StepsOnTape] = {}
        self._answers: dict[int, Any] = {}  # those of ``open_path``, by step
        self._digests = Digests()
        self._context = copy_context()
        self._min_level, self._gate = blocks.current().min_level, blocks.current().gate
        self._in_threads = False
        self._level = core.next_level()
        self._lock = threading.RLock()

    def run(self, length: int) -> Any:
        """Run ``length`` steps and return the last state."""
        if not length or not _is_recording():
            steps = iter(range(length))
            return self._plain(lambda: next(steps, None) is not None)
        state = self._state(length - 1)
        if length > 1 and len(self._kept) <= self._budget:
            self._kept.append((length - 1, self._snapshot(state)))  # the backward pass begins with it
        return self._result(self._advance(length - 1, state))

    def run_while(self, more: Callable[[], bool]) -> Any:
        """Run steps while ``more()`` is true, and return the last state."""
        if not _is_recording():
            return self._plain(more)
        placement = Placement(self._budget)
        state = self._kept[0][1]
        while more():
            if self.done and self._budget:
                given_up = placement.next()
                if given_up is not None:
                    del self._kept[given_up]
                self._kept.append((self.done, self._snapshot(state)))
            state = self._advance(self.done, state)
        return self._result(state)

    def states(self) -> list[list[Any]]:
        """Return the leaves of the kept states."""
        return [leaves for _, (leaves, _) in self._kept]

    def _plain(self, more: Callable[[], bool]) -> Any:
        """Run steps while ``more()`` is true, without an open tape: keep no states. Return the last state."""
        _, spec = self._kept.pop()[1]
        carry, self._given = tree.unflatten(spec, self._given or ()), None
        while more():
            carry = self._step(self.done, carry, False)
            self.done += 1
        return carry

    def vjp(self, trace: ReverseTrace, number: int, cts: list[Any]) -> list[tuple[Record, Any]]:
        """Run the step to state ``number`` again, and pair its new records with the cotangents of that state.

        The new records are later than all records that the pass has yet to visit, so cotangents are added in the same
        order as without the repetition.
        """
        i = number - 1
        state = self._state(i, trace)
        next_numbers = self._next_numbers()
        leaves, _ = self._run_again(i, state, trace)
        self._compare(i, leaves)
        own = _new_results(leaves, next_numbers).get(trace, {})
        self._check_numbers(trace, i, own, next_numbers)
        return [(tracer.node, ct) for tracer, ct in zip(own.values(), cts, strict=True) if ct is not None]

    def _state(self, wanted: int, trace: ReverseTrace | None = None) -> State:
        """Return state number ``wanted``; keep states on the way to it according to the schedule.

        Drop the states after it, because a backward pass requests ever earlier states.
        """
        with self._lock:
            kept = self._kept
            while kept[-1][0] > wanted:
                kept.pop()
            number, state = kept[-1]
            if self._store is not None:
                state = [self._store.take(leaf) for leaf in state[0]], state[1]
            while number < wanted:
                free = self._budget - len(kept) + 1
                stop = number + split(wanted + 1 - number, free + 1) if free > 0 else wanted
                while number < stop:
                    state = self._advance(number, state, trace)
                    number += 1
                if number < wanted:
                    kept.append((number, self._snapshot(state)))
            return state

    def _snapshot(self, state: State) -> State:
        return state if self._store is None else ([self._store.put(leaf) for leaf in state[0]], state[1])

    def _advance(self, i: int, state: State, trace: ReverseTrace | None = None) -> State:
        """Compute state ``i + 1`` from state ``i``, with one record for the step on every tape."""
        next_numbers = self._next_numbers()
        leaves, spec = self._run_again(i, state, trace) if i < self.done else self._run(i, state)
        self._compare(i, leaves)
        placeholders: dict[tuple[Trace, int], Record] = {}
        for tape, own in _new_results(leaves, next_numbers).items():
            numbers = self._check_numbers(tape, i, own, next_numbers)
            for k, n in enumerate(own):
                placeholders[tape, n] = _RecordPlaceholder(numbers[k + 1], None, i + 1, k)
        self.done = max(self.done, i + 1)

        def placeholder_of(x: Tracer) -> Record:
            node: Record = x.node
            if self._is_step_result(node):  # a result of an earlier step that this step passed on
                (step,), (position, _) = parents_of(node), saved_by(node)
                return _RecordPlaceholder(number_of(node), None, saved_by(step)[2], position)
            return placeholders.get((x._trace, number_of(node)), node)

        return [_with_nodes(leaf, placeholder_of) for leaf in leaves], spec

    def _next_numbers(self) -> dict[Trace, int]:
        """Return, for each tape on which a step may record, the number of the next record.

        Tapes of other threads are included, because a function may start threads that record on its tape. A tape on
        which the step records nothing does not change.
        """
        next_numbers: dict[Trace, int] = {}
        for trace in (*active_traces(), *self._records):
            if isinstance(trace, ReverseTrace) and trace.level < self._level and trace not in next_numbers:
                next_numbers[trace] = trace.next_number()
        return next_numbers

    def _run(self, i: int, state: State) -> State:
        """Run step ``i`` and return state ``i + 1`` with the records that the step made."""
        leaves, spec = state
        again = i < self.done
        memory, gate = self._memory, self._gate and self._gate.renewed()
        scope: AbstractContextManager[None] = nullcontext()
        if memory is not None:
            scope = memory.repetition_block() if again else memory.first_run_block()
        gate_block = blocks.Block(lambda now: now._replace(gate=gate)) if gate is not None else nullcontext()
        node_of = self._record_lookup(whole=False)
        with scope, gate_block:
            given = [detached_copy(_with_nodes(x, node_of)) for x in leaves] if self._given is None else self._given
            self._given = None
            return tree.flatten(self._run_step(i, tree.unflatten(spec, given), again))

    def _run_step(self, i: int, state: Any, again: bool) -> Any:
        """Run step ``i``. Under ``jit`` another run takes the path of the first, whatever Python branches on."""
        path = open_path.get()
        if path is None:
            return self._step(i, state, again)
        if not again:
            answers = path.answers_from_now()
            out = self._step(i, state, again)
            self._answers[i] = answers()
            return out
        around = open_path.set(path.repeating(self._answers[i]))
        try:
            return self._step(i, state, again)
        finally:
            open_path.reset(around)

    def _run_again(self, i: int, state: State, trace: ReverseTrace | None) -> State:
        """Run step ``i`` again, with the context variables of the first run; traces from ``trace`` on record again."""
        if trace is None:
            return self._run_in_context(i, state, repetitions.get())
        mine = Repetition(trace.level, self._level, tuple(self._records))
        try:
            all_repetitions[mine] = None
            return self._run_in_context(i, state, (*repetitions.get(), mine))
        finally:
            all_repetitions.pop(mine, None)
            self._in_threads = self._in_threads or mine.joined_by_threads

    def _run_in_context(self, i: int, state: State, runs: tuple[Repetition, ...]) -> State:
        now = blocks.current()._replace(min_level=self._min_level, gate=self._gate)

        def run() -> State:
            repetitions.set(tuple(dict.fromkeys((*repetitions.get(), *runs))))
            if now != blocks.NO_BLOCK or self._memory is not None:
                with blocks.Block(lambda _: now):
                    return self._run(i, state)
            tapes = [tape for run in runs for tape in run.traces if run.start <= tape.level < run.below]
            tapes = [tape for tape in tapes if not tape.open]
            try:
                for tape in tapes:
                    tape.fast, tape.fast_counter = True, _NotingCounter(tape.counter, runs)
                return self._run(i, state)
            finally:
                for tape in tapes:
                    tape.leave_fast_path()

        return self._context.copy().run(run)

    def _result(self, state: State) -> Any:
        leaves, spec = state
        node_of = self._record_lookup(whole=True)
        return tree.unflatten(spec, [_with_nodes(leaf, node_of) for leaf in leaves])

    def _is_step_result(self, node: Record) -> bool:
        if vjp_of(node) is not result_vjp:
            return False
        (step,) = parents_of(node)
        return vjp_of(step).operation is _chain_name and saved_by(step)[0] is self

    def _record_lookup(self, whole: bool) -> Callable[[Tracer], Record]:
        """Make the function from a tracer of a state to its record; if ``whole``, records of steps have parents."""
        made: dict[tuple[Trace, int], Record] = {}

        def node_of(x: Tracer) -> Record:
            node: Record = x.node
            if type(node) is not _RecordPlaceholder:
                return node
            number, _, state_number, k = node
            record = self._records[x._trace]
            numbers, _ = record.steps.get(state_number - 1) or ((), 0)
            step = made.get((x._trace, state_number))
            if step is None:
                parents, saved = tuple(record.parents.values()) if whole else (), (self, x._trace, state_number)
                step = make_record(numbers[0], _vjp_through(len(parents)), parents, saved)
                made[x._trace, state_number] = step
            return make_record(number, result_vjp, (step,), (k, len(numbers) - 1))

        return node_of

    def _check_numbers(
        self, trace: ReverseTrace, i: int, own: NewResults, next_numbers: dict[Trace, int]
    ) -> tuple[int, ...]:
        """Return the numbers of the records of step ``i`` and of its results; check that a repetition agrees.

        Records of a step that uses threads are not compared: their order, and the views, differ from run to run.

        Raises:
            ReplayError: a repetition recorded something other than the first run.
        """
        parents, operations_hash, residuals = self._walk_records(own, next_numbers[trace])
        record = self._records.setdefault(trace, _StepsOnTape())
        found = record.steps.get(i)
        if found is None:
            numbers = tuple([next(trace.counter) for _ in range(len(own) + 1)])
            record.steps.add(i, numbers, operations_hash)
            record.parents.update(parents)
            if residuals:
                record.residuals[i] = digest(residuals)
            return numbers
        numbers, before = found
        if not self._in_threads:
            if before != operations_hash:
                raise replay_error(self.name, "other operations or shapes")
            if not are_close(record.residuals.get(i, {}), digest(residuals) if residuals else {}):
                raise replay_error(self.name, "other numbers saved by a function with own derivative rules")
        return numbers

    def _walk_records(self, own: NewResults, next_numbers: int) -> tuple[dict[int, Record], int, list[Any]]:
        """Return the parents outside the step, a hash of the records behind ``own``, and arrays saved by user rules."""
        parents: dict[int, Record] = {}
        found: dict[int, Any] = {}
        own_rules: dict[int, Record] = {}
        waiting = [tracer.node for tracer in own.values()]
        while waiting:
            node = waiting.pop()
            number = number_of(node)
            if number > next_numbers:
                if not self._is_step_result(node):
                    parents[number] = node
            elif number not in found:
                found[number] = operation_of(node)
                waiting.extend(parents_of(node))
                if callable(getattr(vjp_of(node), "operation", None)):
                    own_rules[number] = node
        results = tuple([(x.shape, x.dtype) for x in own.values()])
        arrays: list[Any] = []
        seen: set[int] = set()
        for number in sorted(own_rules):
            tree.visit_arrays(saved_by(own_rules[number]), arrays.append, seen, Chain)
        return parents, hash((results, *[found[number] for number in sorted(found)])), arrays

    def _compare(self, i: int, leaves: list[Any]) -> None:
        """Check that samples and means of state ``i + 1`` agree with those of the first run.

        Raises:
            ReplayError: they differ.
        """
        if not self._digests.agree(i, list(map(plain_value, leaves))):
            raise replay_error(self.name, "other numbers")


def _chain_name(chain: Chain, *_: Any) -> str:
    """Return the name of a record from its saved values."""
    return chain.name


@cache
def _vjp_through(parents: int) -> Any:
    """Make the VJP rule of the record of a step; it returns pairs of new records, which lead to the same parents."""

    def vjp(cts: Any, record: Record) -> list[tuple[Record, Any]]:
        chain, trace, number = saved_by(record)
        pairs: list[tuple[Record, Any]] = chain.vjp(trace, number, cts)
        return pairs

    return as_vjp_rule(vjp, _chain_name, parents)


def _is_recording() -> bool:
    """Whether a tape is open, or a run is being repeated in this context."""
    return bool(repetitions.get()) or any(isinstance(trace, ReverseTrace) for trace in unfinished_traces())


def _inner_tracers(x: Tracer) -> list[tuple[str, Tracer]]:
    """Return the attributes of ``x`` that are tracers of outer traces."""
    held = [("_val", x._val), ("link", x.link)]
    return [(name, value) for name, value in held if isinstance(value, Tracer)]


def _with_nodes(x: Any, node_of: Callable[[Tracer], Record]) -> Any:
    """Return ``x`` with the record that ``node_of`` returns for it, on each of its tapes."""
    if not isinstance(x, Tracer):
        return x
    if isinstance(x._trace, ReverseTrace) and not isinstance(x._val, Tracer):  # the common case
        node = node_of(x)
        return x if node is x.node else tracer_of(x._val, x._trace, node)
    changed: dict[str, Any] = {name: _with_nodes(value, node_of) for name, value in _inner_tracers(x)}
    if isinstance(x._trace, ReverseTrace):
        changed["link"] = node_of(x)
    if all(value is getattr(x, name) for name, value in changed.items()):
        return x
    copy = shallow_copy(x)
    for name, value in changed.items():
        setattr(copy, name, value)
    return copy


def _new_results(leaves: list[Any], next_numbers: dict[Trace, int]) -> dict[ReverseTrace, NewResults]:
    """Return, by tape, the values of a state recorded from ``next_numbers`` on, each once and in order."""
    found: dict[ReverseTrace, NewResults] = {}
    waiting = leaves[::-1]
    while waiting:
        x = waiting.pop()
        if isinstance(x, Tracer):
            if (
                isinstance(x._trace, ReverseTrace)
                and x._trace in next_numbers
                and number_of(x.node) <= next_numbers[x._trace]
            ):
                found.setdefault(x._trace, {}).setdefault(number_of(x.node), x)
            waiting.extend([value for _, value in _inner_tracers(x)])
    return found
