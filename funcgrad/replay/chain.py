"""Runs that are repeated instead of remembered: the tape keeps where they began, and the backward pass runs them again.

A *chain* is a run in steps, each from one state to the next; a state is a tree of arrays. On every tape
that passes through it a step leaves one record, whatever it did: the records that it made itself are
dropped. When the backward pass reaches that record, the step is run again from its state and recorded,
and the pass goes on through the new records. They have the parents that the first
ones had, and stand in the same order, so cotangents are added up in the same order too: gradients are
the same to the last bit.

What a step closes over needs no care. While it is repeated, the finished traces that stood around its
first run work once more (``running.repeating``): their tracers have kept their values and their records.

States between steps are kept as far as the budget goes; the others are computed again from the last one
before them. Where states are kept is chosen so that this costs the fewest steps: with ``s`` states kept at a time, the
first one included, and no step run more than ``r`` times on the way to states, ``binomial(s + r, s)`` steps can be
reversed and no more; both rules below reach that.

Sources:
    A. Griewank, A. Walther, Algorithm 799: Revolve, ACM Transactions on Mathematical Software 26 (2000), for a
    known number of steps; Q. Wang, P. Moin, G. Iaccarino, Minimal repetition dynamic checkpointing algorithm for
    unsteady adjoint calculation, SIAM Journal on Scientific Computing 31 (2009), for an unknown one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import cache, lru_cache
from math import comb, inf
from typing import Any, NamedTuple, TypeAlias

from funcgrad import blocks, core, tree
from funcgrad.core import Trace, Tracer, tracer_of, twin
from funcgrad.replay.chronicle import Digests, StepNumbers, close, digest
from funcgrad.replay.memory import Memory, differs
from funcgrad.reverse import (
    Node,
    ReverseTrace,
    marked,
    number_of,
    operation_of,
    parents_of,
    pull_in,
    recorded,
    saved_by,
    to_part,
)
from funcgrad.running import Repetition, at_work, repeating, repeating_anywhere, running
from funcgrad.writable import bottom, twin_in_memory

__all__ = ["Chain", "Placement", "split", "states_for"]


@lru_cache(maxsize=4096)
def split(steps: int, states: int) -> int:
    """How far to go from a kept state before the next is kept.

    Args:
        steps: how many steps are to be reversed, at least 2.
        states: how many states may be kept, the one at hand included, at least 2.

    Example:
        >>> split(10, 3)
        4
    """
    repeats = 1
    while comb(states + repeats, states) < steps:
        repeats += 1
    return min(comb(states + repeats - 1, states), steps - comb(states + repeats - 2, states - 1))


def states_for(steps: int, repeats: int) -> int:
    """The fewest states, the first included, with which no step is repeated more than ``repeats`` times.

    Example:
        >>> states_for(10_000, 3)
        38
    """
    states = 1
    while comb(states + repeats, states) < steps:
        states += 1
    return states


class Placement:
    """Which states to keep while nobody knows how long the run will be.

    Args:
        budget: how many may be kept after the first.

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
        self._ranks: list[float] = [inf]  # of the kept states, in their order

    def next(self) -> int | None:
        """The place of the kept state to give up for the one that comes now; None where there is room."""
        ranks = self._ranks
        if len(ranks) <= self._budget:
            ranks.append(0)
            return None
        highest = ranks[-1]
        for place in range(len(ranks) - 2, 0, -1):
            if ranks[place] < highest:  # one after it does its work
                del ranks[place]
                ranks.append(0)
                return place
            highest = max(highest, ranks[place])
        ranks[-1] += 1
        return len(ranks) - 1


#: Leaves of a tree, and its structure. The tracers among them do not know the chain's records, only their
#: numbers: the chain keeps states, and states that kept the chain would never be freed.
State: TypeAlias = tuple[list[Any], tree.PyTreeSpec]
#: The results of a step that it recorded on one tape, by the number of their record.
Own: TypeAlias = dict[int, Tracer]


class _Place(NamedTuple):
    """What stands for the record of a result of a step while only its number is known.

    Attributes:
        number: the number of that record.
        pull: None, as of a leaf.
        step: the number of the state that the result is in.
        position: its place among the results that the step recorded.
    """

    number: int
    pull: None
    step: int
    position: int


class _Numbers:
    """What gives the numbers of records while parts of a run are repeated; it notes where other threads record too."""

    __slots__ = ("numbers", "runs", "thread")

    def __init__(self, numbers: Iterator[int], runs: tuple[Repetition, ...]) -> None:
        self.numbers, self.runs, self.thread = numbers, runs, threading.get_ident()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if threading.get_ident() != self.thread:
            for run in self.runs:
                run.joined = True
        return next(self.numbers)


class _Record:
    """What a chain knows of its steps on one tape.

    Attributes:
        steps: for each step the number of its record, and of its parts: one for each result of its own; and a mark
            of what it recorded.
        residuals: for steps in which rules of the user's saved something, a digest of it.
        parents: what the steps depend on besides each other, by number.
    """

    __slots__ = ("parents", "residuals", "steps")

    def __init__(self) -> None:
        self.steps = StepNumbers()
        self.residuals: dict[int, dict[Any, float]] = {}
        self.parents: dict[int, Node] = {}


class Chain:
    """A run in steps that the backward pass repeats.

    Args:
        name: what it is called in messages and on the tape.
        step: ``step(i, tree, again) -> tree``, from state ``i`` to state ``i + 1``; ``again`` unless it is
            the first time.
        start: state 0, a tree.
        budget: how many states after the first may be kept at a time.
        memory: what is kept of the operations inside the only step.
        store: where leaves of states that are kept lie, see ``Store``; None for memory.

    Attributes:
        done: how many steps have been run so far, each counted once.
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
        self._given: list[Any] | None = leaves  # until the first step has run: the program's own objects
        self._kept: list[tuple[int, State]] = [(0, ([twin_in_memory(x) for x in leaves], spec))]
        self._records: dict[ReverseTrace, _Record] = {}
        self._digests = Digests()
        self._context = copy_context()
        self._floor = blocks.current().floor
        self._in_threads = False
        self._born = core.next_level()
        self._lock = threading.RLock()

    def run(self, length: int) -> Any:
        """The state after ``length`` steps."""
        if not length or not _recording():
            steps = iter(range(length))
            return self._plain(lambda: next(steps, None) is not None)
        state = self._state(length - 1)
        if length > 1 and len(self._kept) <= self._budget:
            self._kept.append((length - 1, self._snapshot(state)))  # the backward pass begins with it
        return self._result(self._advance(length - 1, state))

    def run_while(self, more: Callable[[], bool]) -> Any:
        """The last state, where nobody knows before how many steps there are: they go on while ``more()``."""
        if not _recording():
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
        """The leaves of the states that are kept."""
        return [leaves for _, (leaves, _) in self._kept]

    def _plain(self, more: Callable[[], bool]) -> Any:
        """The last state where no tape is open: nothing will be run again."""
        _, spec = self._kept.pop()[1]
        carry, self._given = tree.unflatten(spec, self._given or ()), None
        while more():
            carry = self._step(self.done, carry, False)
            self.done += 1
        return carry

    def pull(self, trace: ReverseTrace, number: int, cts: list[Any]) -> list[tuple[Node, Any]]:
        """Run the step to state ``number`` again, and pair what it recorded with the cotangents of that state.

        The new records are younger than all that the pass has still to visit, so cotangents meet in the same order as
        without the detour.
        """
        i = number - 1
        state = self._state(i, trace)
        begun = self._begin()
        leaves, _ = self._again(i, state, trace)
        self._compare(i, leaves)
        own = _own(leaves, begun).get(trace, {})
        self._numbers(trace, i, own, begun)
        return [(tracer.node, ct) for tracer, ct in zip(own.values(), cts, strict=True) if ct is not None]

    def _state(self, wanted: int, trace: ReverseTrace | None = None) -> State:
        """State number ``wanted``, and on the way to it others kept as the schedule wants them.

        States after it are given up: a backward pass asks for ever earlier ones.
        """
        with self._lock:
            kept = self._kept
            while kept[-1][0] > wanted:
                kept.pop()
            place, state = kept[-1]
            if self._store is not None:
                state = [self._store.take(leaf) for leaf in state[0]], state[1]
            while place < wanted:
                free = self._budget - len(kept) + 1
                stop = place + split(wanted + 1 - place, free + 1) if free > 0 else wanted
                while place < stop:
                    state = self._advance(place, state, trace)
                    place += 1
                if place < wanted:
                    kept.append((place, self._snapshot(state)))
            return state

    def _snapshot(self, state: State) -> State:
        return state if self._store is None else ([self._store.put(leaf) for leaf in state[0]], state[1])

    def _advance(self, i: int, state: State, trace: ReverseTrace | None = None) -> State:
        """State ``i + 1`` from state ``i``, with one record for the step on every tape."""
        begun = self._begin()
        leaves, spec = self._again(i, state, trace) if i < self.done else self._run(i, state)
        self._compare(i, leaves)
        places: dict[tuple[Trace, int], Node] = {}
        for tape, own in _own(leaves, begun).items():
            numbers = self._numbers(tape, i, own, begun)
            places.update({(tape, n): _Place(numbers[k + 1], None, i + 1, k) for k, n in enumerate(own)})
        self.done = max(self.done, i + 1)

        def parted(x: Tracer) -> Node:
            node: Node = x.node
            if self._is_part(node):  # a result of an earlier step that was handed through
                (step,), (position, _) = parents_of(node), saved_by(node)
                return _Place(number_of(node), None, saved_by(step)[2], position)
            return places.get((x._trace, number_of(node)), node)

        return [_with_nodes(leaf, parted) for leaf in leaves], spec

    def _begin(self) -> dict[Trace, int]:
        """For each tape that a step may record on, the number with which what it records begins.

        Tapes of other threads are among them: a function may start threads that record on its tape. Those that it
        has nothing to do with are left as they are.
        """
        begun: dict[Trace, int] = {}
        for trace in (*at_work(), *self._records):
            if isinstance(trace, ReverseTrace) and trace.level < self._born and trace not in begun:
                begun[trace] = trace.upcoming()
        return begun

    def _run(self, i: int, state: State) -> State:
        """State ``i + 1`` as the step returns it: tracers have the records that it made."""
        leaves, spec = state
        again = i < self.done
        memory = self._memory
        scope: AbstractContextManager[None] = nullcontext()
        if memory is not None:
            scope = memory.fed() if again else memory.observed()
        joined = self._joined(whole=False)
        with scope:
            given = [twin_in_memory(_with_nodes(x, joined)) for x in leaves] if self._given is None else self._given
            self._given = None
            ended = tree.flatten(self._step(i, tree.unflatten(spec, given), again))
        return ended

    def _again(self, i: int, state: State, trace: ReverseTrace | None) -> State:
        """State ``i + 1`` once more: context variables as they were, the traces from ``trace`` on at work again."""
        if trace is None:
            return self._repeated(i, state, repeating.get())
        mine = Repetition(trace.level, self._born, tuple(self._records))
        try:
            repeating_anywhere[mine] = None
            return self._repeated(i, state, (*repeating.get(), mine))
        finally:
            repeating_anywhere.pop(mine, None)
            self._in_threads = self._in_threads or mine.joined

    def _repeated(self, i: int, state: State, runs: tuple[Repetition, ...]) -> State:
        now = blocks.current()._replace(floor=self._floor)

        def run() -> State:
            repeating.set(tuple(dict.fromkeys((*repeating.get(), *runs))))
            if now != blocks.NO_BLOCK or self._memory is not None:
                with blocks.Block(lambda _: now):
                    return self._run(i, state)
            tapes = [
                tape for run in runs for tape in run.traces if run.start <= tape.level < run.below and not tape.open
            ]
            try:
                for tape in tapes:
                    tape.live, tape.numbers = True, _Numbers(tape.counter, runs)
                return self._run(i, state)
            finally:
                for tape in tapes:
                    tape.rest()

        return self._context.copy().run(run)

    def _result(self, state: State) -> Any:
        leaves, spec = state
        joined = self._joined(whole=True)
        return tree.unflatten(spec, [_with_nodes(leaf, joined) for leaf in leaves])

    def _is_part(self, node: Node) -> bool:
        if pull_in(node) is not to_part:
            return False
        (step,) = parents_of(node)
        return pull_in(step).operation is _name and saved_by(step)[0] is self

    def _joined(self, whole: bool) -> Callable[[Tracer], Node]:
        """What gives the tracers of a state their records; ``whole`` ones know what they depend on."""
        made: dict[tuple[Trace, int], Node] = {}

        def joined(x: Tracer) -> Node:
            node: Node = x.node
            if type(node) is not _Place:
                return node
            number, _, place, k = node
            record = self._records[x._trace]
            numbers, _ = record.steps.get(place - 1) or ((), 0)
            step = made.get((x._trace, place))
            if step is None:
                parents = tuple(record.parents.values()) if whole else ()
                pull = _pull_through(len(parents))
                step = made[x._trace, place] = recorded(numbers[0], pull, parents, (self, x._trace, place))
            return recorded(number, to_part, (step,), (k, len(numbers) - 1))

        return joined

    def _numbers(self, trace: ReverseTrace, i: int, own: Own, begun: dict[Trace, int]) -> tuple[int, ...]:
        """The numbers of the record of step ``i`` and its parts. The first run makes them, others must do the same.

        What threads of the step record, in which order and after which views, differs from run to run.

        Raises:
            ReplayError: another run recorded something else.
        """
        parents, mark, residuals = self._walked(own, begun[trace])
        record = self._records.setdefault(trace, _Record())
        found = record.steps.get(i)
        if found is None:
            numbers = tuple([next(trace.counter) for _ in range(len(own) + 1)])
            record.steps.add(i, numbers, mark)
            record.parents.update(parents)
            if residuals:
                record.residuals[i] = digest(residuals)
            return numbers
        numbers, before = found
        if not self._in_threads:
            if before != mark:
                raise differs(self.name, "other operations or shapes")
            if not close(record.residuals.get(i, {}), digest(residuals) if residuals else {}):
                raise differs(self.name, "other numbers saved by a function with own derivative rules")
        return numbers

    def _walked(self, own: Own, begun: int) -> tuple[dict[int, Node], int, list[Any]]:
        """What the records behind ``own`` depend on, a mark of what they are, and the arrays that own rules saved."""
        parents: dict[int, Node] = {}
        found: dict[int, Any] = {}
        own_rules: dict[int, Node] = {}
        waiting = [tracer.node for tracer in own.values()]
        while waiting:
            node = waiting.pop()
            number = number_of(node)
            if number > begun:
                if not self._is_part(node):
                    parents[number] = node
            elif number not in found:
                found[number] = operation_of(node)
                waiting.extend(parents_of(node))
                if callable(getattr(pull_in(node), "operation", None)):
                    own_rules[number] = node
        results = tuple([(x.shape, x.dtype) for x in own.values()])
        arrays: list[Any] = []
        seen: set[int] = set()
        for number in sorted(own_rules):
            tree.visit_arrays(saved_by(own_rules[number]), arrays.append, seen, Chain)
        return parents, hash((results, *[found[number] for number in sorted(found)])), arrays

    def _compare(self, i: int, leaves: list[Any]) -> None:
        """Look at a few numbers of state ``i + 1``, and at sums of all: they must be those of the first run.

        Raises:
            ReplayError: they are others.
        """
        if not self._digests.agree(i, list(map(bottom, leaves))):
            raise differs(self.name, "other numbers")


def _name(chain: Chain, *_: Any) -> str:
    """What a record is called that saved these."""
    return chain.name


@cache
def _pull_through(parents: int) -> Any:
    """The pull of the record of a step: its pairs are of new records, which have these parents in the end."""

    def pull(cts: Any, record: Node) -> list[tuple[Node, Any]]:
        chain, trace, number = saved_by(record)
        pairs: list[tuple[Node, Any]] = chain.pull(trace, number, cts)
        return pairs

    return marked(pull, _name, parents)


def _recording() -> bool:
    """Whether there is a tape that records, or one that did and is being repeated."""
    return bool(repeating.get()) or any(isinstance(trace, ReverseTrace) for trace in running())


def _inner(x: Tracer) -> list[tuple[str, Tracer]]:
    """The tracers that ``x`` holds: of outer traces."""
    held = [("_val", x._val), ("link", x.link)]
    return [(name, value) for name, value in held if isinstance(value, Tracer)]


def _with_nodes(x: Any, node_of: Callable[[Tracer], Node]) -> Any:
    """``x``, on every tape that it is on with the record that ``node_of`` says."""
    if not isinstance(x, Tracer):
        return x
    if isinstance(x._trace, ReverseTrace) and not isinstance(x._val, Tracer):  # the common case
        node = node_of(x)
        return x if node is x.node else tracer_of(x._val, x._trace, node)
    changed: dict[str, Any] = {name: _with_nodes(value, node_of) for name, value in _inner(x)}
    if isinstance(x._trace, ReverseTrace):
        changed["link"] = node_of(x)
    if all(value is getattr(x, name) for name, value in changed.items()):
        return x
    copy = twin(x)
    for name, value in changed.items():
        setattr(copy, name, value)
    return copy


def _own(leaves: list[Any], begun: dict[Trace, int]) -> dict[ReverseTrace, Own]:
    """By tape, the values of a state that were recorded since ``begun``, each once and in order."""
    found: dict[ReverseTrace, Own] = {}
    waiting = leaves[::-1]
    while waiting:
        x = waiting.pop()
        if isinstance(x, Tracer):
            if isinstance(x._trace, ReverseTrace) and x._trace in begun and number_of(x.node) <= begun[x._trace]:
                found.setdefault(x._trace, {}).setdefault(number_of(x.node), x)
            waiting.extend([value for _, value in _inner(x)])
    return found
