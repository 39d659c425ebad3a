"""Closed-over values made arguments: a function of leaves alone, and the values that the function closed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, is_batched
from funcgrad.core import Tracer, tracer_of
from funcgrad.errors import BranchError, ConcretizationError, NotDifferentiableError
from funcgrad.graph import GraphTrace, remember
from funcgrad.keeping import recording_apart
from funcgrad.numpy.concretization import forgive
from funcgrad.transforms.arguments import check_results
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.typing import PyTree
from funcgrad.writable import identity

__all__ = ["Hoisted", "Steered", "Ways", "example_by_example", "in_a_loop", "solved"]

R = TypeVar("R")


class Hoisted:
    """Recorded run of ``fun`` at ``x``, as a function of the leaves of ``x`` and of ``held``.

    A call near ``x`` takes the branches that the run took and uses the numbers that arrays had then. Pullbacks call it
    again later, and the program may have written to its arrays by then.

    Args:
        call: the public call, for messages.
        fun: a function of one tree.
        x: the argument of the run.
        steered: whether to refuse values for which the function would take other branches.
        lasting: whether calls come after possible writes to arrays; if not, it holds the arrays themselves.
        alone: whether outer runs need not record the decisions of this run, because it looks for other branches itself.

    Attributes:
        held: the tracers, and the arrays of other libraries, that the function closes over.
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
        steered: bool = False,
        lasting: bool = True,
        alone: bool = False,
    ) -> None:
        self.call = call
        leaves, self.spec = tree.flatten(x)
        trace = Alone() if alone else Steered() if steered else GraphTrace()
        try:
            out = fun(tree.unflatten(self.spec, [trace.input(leaf) for leaf in leaves]))
        finally:
            trace.close()
        found, self.out_spec = tree.flatten(out)
        check_results(call, found)
        self.outs = [leaf._val if type(leaf) is Tracer and leaf._trace is trace else leaf for leaf in found]
        self.recording = recording = trace.recording(found, trace.decisions if isinstance(trace, Steered) else None)
        del trace  # the trace refers to the same arrays
        self.held: list[Any] = []
        slots: dict[Any, int] = {}
        again: dict[int, int] = {}  # the first slot of a value, by each further slot of the value
        for slot, x in list(recording.constants.items()):
            if isinstance(x, Tracer) or backend.namespace_of(x) not in (None, np):
                del recording.constants[slot]
                again[slot] = slots.setdefault(identity(x), slot)
                if again[slot] == slot:
                    recording.inputs.append(slot)
                    self.held.append(x)
        recording.rename(again)
        if lasting:
            recording_apart(recording)

    def __call__(self, x: PyTree, held: Sequence[Any]) -> PyTree:
        """Evaluate the function at ``x``, a tree like the first one, with ``held`` in place of the held values."""
        return tree.unflatten(self.out_spec, self.recording.evaluate(*tree.leaves(x), *held))


class Ways:
    """``fun`` as a function of the leaves of ``x`` and of ``held``, whichever branches it takes.

    ``fun`` is recorded once for each way through its branches. Only ``solved``, which can run ``fun``, finds new ways.

    Args:
        call: the public call, for messages.
        fun: a function of one tree.
        x: the argument of the first run.

    Attributes:
        held: the values that ``fun`` closes over on all known ways.
    """

    def __init__(self, call: str, fun: Callable[[Any], Any], x: PyTree) -> None:
        self.call, self.fun = call, fun
        self.held: list[Any] = []
        self._known: list[tuple[Hoisted, int]] = []  # latest taken first, with the index in ``held`` of its first value
        self._finds = False
        self._find(x)

    def __call__(self, x: PyTree, held: Sequence[Any]) -> PyTree:
        """Evaluate the function at ``x``, with ``held`` in place of the held values.

        Raises:
            BranchError: the function takes an unknown way. In ``solved`` the next call knows this way.
        """
        for number, way in enumerate(self._known):
            try:
                found = self._along(way, x, held)
            except BranchError:
                continue
            if number:
                self._known = [way, *[other for other in self._known if other is not way]]
            return found
        if not self._finds or len(self._known) >= _MANY or any(isinstance(leaf, Tracer) for leaf in tree.leaves(x)):
            raise BranchError(
                f"{self.call}: a function that closes over traced values takes a branch that it has not taken before. "
                "Pass these values in args, or choose by funcgrad.numpy.where in place of `if`."
            )
        self._find(x)
        return self._along(self._known[0], x, held)

    def _find(self, x: PyTree) -> None:
        way = Hoisted(self.call, self.fun, x, steered=True, alone=True)
        self._known.insert(0, (way, len(self.held)))
        self.held += way.held

    def _along(self, way: tuple[Hoisted, int], x: PyTree, held: Sequence[Any]) -> PyTree:
        """Evaluate the function along ``way``. If ``way`` is newer than ``held``, its own held values are constants."""
        hoisted, first = way
        given = held[first : first + len(hoisted.held)]
        if len(given) < len(hoisted.held):
            given = stop_gradient(hoisted.held)
            if not self._finds or any(isinstance(leaf, Tracer) for leaf in (*given, *held)):
                raise BranchError(f"{self.call}: a way was found just now.")
        return hoisted(x, given)


#: Largest number of ways that a function may take.
_MANY = 1000


def solved(ways: Sequence[Ways], solve: Callable[[], R]) -> R:
    """Return ``solve()``; call it again if functions in it took ways on which they close over further values."""
    before = [ways._finds for ways in ways]
    while True:
        known = [len(one.held) for one in ways]
        for one in ways:
            one._finds = True
        try:
            found = solve()
        except BranchError:
            if known == [len(one.held) for one in ways]:
                raise
            continue
        finally:
            for one, finds in zip(ways, before, strict=True):
                one._finds = finds
        if known == [len(one.held) for one in ways]:
            return found


class Steered(GraphTrace):
    """Run that records the answers by which Python took its branches."""

    __slots__ = ("decisions",)

    def __init__(self) -> None:
        super().__init__()
        self.decisions: dict[int, Any] = {}

    def decide(self, tracer: Tracer, answer: Any) -> None:
        """Record the answer."""
        remember(self.decisions, tracer.slot, answer)


class Alone(Steered):
    """Run whose decisions are made again wherever it is repeated, so that outer runs need not record them."""

    __slots__ = ()
    asks_again = True


def example_by_example(fun: Callable[..., list[Any]], leaves: Sequence[Any]) -> list[Any]:
    """Call ``fun`` on whole batches; if ``fun`` does not take them, on one example after the other."""
    try:
        return fun(*leaves)
    except (ConcretizationError, NotDifferentiableError):
        forgive()
        found = in_a_loop(fun, leaves)
        if found is None:
            raise
        return found


def in_a_loop(fun: Callable[..., list[Any]], leaves: Sequence[Any]) -> list[Any] | None:
    """Call ``fun`` on each example of the innermost ``vmap`` of ``leaves`` in turn; return None without a ``vmap``."""
    traces = [leaf._trace for leaf in leaves if is_batched(leaf)]
    if not traces:
        return None
    within = max(traces, key=lambda trace: trace.level)
    assert isinstance(within, BatchTrace)
    mine = [type(leaf) is Tracer and leaf._trace is within for leaf in leaves]
    results = [
        example_by_example(fun, [leaf._val[i] if m else leaf for leaf, m in zip(leaves, mine, strict=True)])
        for i in range(within.size)
    ]
    return [_joined(parts, within) for parts in zip(*results, strict=True)]


def _joined(parts: Sequence[Any], within: BatchTrace) -> Any:
    """Return the results of all examples as one array, or as a list if they are not arrays."""
    if all(isinstance(part, Tracer) or backend.is_value(part) for part in parts):
        return tracer_of(fnp.stack(parts), within)
    return list(parts)
