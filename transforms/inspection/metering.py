"""Measurements for ``profile``: time and bytes of operations and of their VJP rules, each with line and stage.

Times are exclusive. An operation inside another one (the rule of an inner transform, the function that a custom rule
runs) is measured separately, and its time is subtracted from the outer one. The meter's own time is never included.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from funcgrad import blocks
from funcgrad.core import Primitive, Trace, Tracer
from funcgrad.graph import PipelineStage, Source
from funcgrad.numpy.plain_values.concretization import user_frame
from funcgrad.reverse import Record, call_vjp, operation_of, parents_of, result_vjp, saved_by, vjp_of
from funcgrad.transforms.debugging import VjpWithOrigin, values_in, with_origin
from funcgrad.transforms.origins import Origin, Origins


class Row(NamedTuple):
    """Cost of one operation on one line: all its calls together.

    Attributes:
        operation: the operation's name; None if the row is the sum of several operations.
        source: the user's line that called the operation; None if it is unknown or if there are several lines.
        stage: the stage of the pipeline; None outside of a pipeline or if there are several stages.
        calls: the number of calls.
        forward: the seconds of the calls, recording included.
        backward: the seconds of the operation's VJP rule.
        kernel: the part of ``forward`` that the array library took.
        saved: the bytes that the tape keeps for the operation; a value that several operations keep counts for each.
        results: the bytes of the operation's results.
    """

    operation: str | None
    source: Source | None
    stage: PipelineStage | None
    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    kernel: float = 0.0
    saved: int = 0
    results: int = 0


@dataclass(eq=False, slots=True)
class _Account:
    """Figures of a row while they are collected."""

    origin: Origin
    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    kernel: float = 0.0
    saved: int = 0
    results: int = 0


@dataclass(eq=False, slots=True)
class _Event:
    """Operation or VJP rule that is running.

    Attributes:
        account: the account to charge.
        frame: the user's innermost frame when the event began; a different one later means that user code runs inside.
        primitive: the operation; None for a VJP rule.
        start: the time when the event began.
        own: the meter's own seconds until then.
        inner: the seconds of events inside.
        computing: whether the operation's kernel runs.
    """

    account: _Account
    frame: FrameType | None
    primitive: Primitive | None
    start: float = 0.0
    own: float = 0.0
    inner: float = 0.0
    computing: bool = False


class _VjpWithAccount(VjpWithOrigin):
    """VJP rule that knows its account."""

    __slots__ = ("account",)

    def __init__(self, vjp: Callable[[Any, Record], Any], account: _Account) -> None:
        super().__init__(vjp, account.origin)
        self.account = account


class Meter:
    """Meter of the thread that made it; it serves as the ``meter`` of a watcher and as a runner of kernels.

    Args:
        ends: the code of the frame at which the search for pipelines ends.
        wait_until_ready: waits until the arrays in its argument are computed, if their library computes them later.

    Attributes:
        stage: the current stage of the pipeline, if the pipeline reports it.
        own: the seconds that the meter itself took.
        inside: the seconds of operations and VJP rules since ``inside`` was last set to zero.
        saved: the bytes that tapes keep, each value counted once.
    """

    def __init__(self, ends: CodeType, wait_until_ready: Callable[[Any], None] | None = None) -> None:
        self.stage: PipelineStage | None = None
        self.own = self.inside = 0.0
        self.saved = 0
        self._ends, self._wait_until_ready = ends, wait_until_ready
        self._thread = get_ident()
        self._outer_runner: Any = blocks.current().runner
        self._origins = Origins()
        self._accounts: dict[tuple[str, Source | None, PipelineStage | None], _Account] = {}
        self._stages: dict[Source | None, PipelineStage | None] = {}
        self._events: list[_Event] = []
        self._counted: dict[int, Callable[[], Any]] = {}

    def rows(self) -> tuple[Row, ...]:
        """Return the measurements, in the order of first calls."""
        return tuple(
            Row(*key, a.calls, a.forward, a.backward, a.kernel, a.saved, a.results) for key, a in self._accounts.items()
        )

    def forget(self) -> None:
        """Drop the references to frames and arrays."""
        self._origins.forget()
        self._events.clear()
        self._counted.clear()

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let ``trace`` process the operation, and measure it."""
        if get_ident() != self._thread:
            return trace.process(primitive, args, params)
        entered = perf_counter()
        event, again = self._begin_operation(getattr(params.get("rules"), "name", primitive.name), primitive, entered)
        try:
            ans = trace.process(primitive, args, params)
            if self._wait_until_ready is not None:
                self._wait_until_ready(ans)
        finally:
            ended = self._end_event(event, forward=True)
        account = event.account
        if not again:
            account.calls += 1
            account.results += sum(_bytes_in(ans).values())
        ans = with_origin(trace, ans, lambda node: self._vjp_with_account(node, account))
        self.own += perf_counter() - ended
        return ans

    def run(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute an operation on plain values: a part of the running event, or a separate operation on constants."""
        if get_ident() != self._thread:
            return self._compute(primitive, args, params)
        entered = perf_counter()
        top = self._events[-1] if self._events else None
        if top is None or (_runs_user_code(top) and top.frame is not user_frame()):
            event, _ = self._begin_operation(primitive.name, primitive, entered)
            try:
                ans = self._kernel(event, primitive, args, params)
            finally:
                ended = self._end_event(event, forward=True)
            event.account.calls += 1
            event.account.results += sum(_bytes_in(ans).values())
            self.own += perf_counter() - ended
            return ans
        self.own += perf_counter() - entered
        if top.computing or top.primitive is None:
            return self._compute(primitive, args, params)
        return self._kernel(top, primitive, args, params)

    def begin_pass(self) -> Callable[[Any, Record], Any]:
        """Return the function that calls the VJP rules of a backward pass that begins now."""
        entered = perf_counter()
        frame = user_frame()
        self.own += perf_counter() - entered

        def call(ct: Any, node: Record) -> Any:
            if get_ident() != self._thread:
                return call_vjp(ct, node)
            entered = perf_counter()
            account = self._account_of(parents_of(node)[0] if vjp_of(node) is result_vjp else node)
            event = self._begin_event(account, frame, None, entered)
            try:
                pulled = call_vjp(ct, node)
                if self._wait_until_ready is not None:
                    self._wait_until_ready(pulled)
                return pulled
            finally:
                self.own += perf_counter() - self._end_event(event, forward=False)

        return call

    def _begin_operation(self, name: str, primitive: Primitive, entered: float) -> tuple[_Event, bool]:
        """Return a new event, and whether it repeats the event around it, one level further out."""
        top = self._events[-1] if self._events else None
        frame = user_frame() if top is None or _runs_user_code(top) else top.frame
        if top is not None and top.frame is frame:
            account = self._account(name, top.account.origin)
            return self._begin_event(account, frame, primitive, entered), top.primitive is primitive
        source = self._origins.line(frame)
        stage = self.stage or self._origins.stage(lambda f, found: f.f_code is self._ends)
        if stage is None and top is not None:
            stage = self._stages.get(source)  # operations that a pullback repeats run outside of the pipeline
        self._stages[source] = stage
        return self._begin_event(self._account(name, Origin(source, stage)), frame, primitive, entered), False

    def _account_of(self, node: Record) -> _Account:
        """Return the account of the VJP rule of a record, which may have been recorded without a meter."""
        vjp = vjp_of(node)
        if type(vjp) is _VjpWithAccount:
            return vjp.account
        return self._account(operation_of(node), getattr(vjp, "origin", None) or Origin(None, None))

    def _account(self, name: str, origin: Origin) -> _Account:
        key = (name, *origin)
        found = self._accounts.get(key)
        if found is None:
            found = self._accounts[key] = _Account(origin)
        return found

    def _begin_event(
        self, account: _Account, frame: FrameType | None, primitive: Primitive | None, entered: float
    ) -> _Event:
        """Push and return a new event that begins now; the time since ``entered`` is the meter's own."""
        event = _Event(account, frame, primitive)
        self._events.append(event)
        event.start = perf_counter()
        self.own += event.start - entered
        event.own = self.own
        return event

    def _end_event(self, event: _Event, *, forward: bool) -> float:
        """Charge an event to its account, and return the time when the event ended."""
        now = perf_counter()
        taken = now - event.start - (self.own - event.own)
        while self._events and self._events.pop() is not event:  # an interrupt may have left an event behind
            pass
        if self._events:
            self._events[-1].inner += taken
        else:
            self.inside += taken
        if forward:
            event.account.forward += taken - event.inner
        else:
            event.account.backward += taken - event.inner
        return now

    def _kernel(self, event: _Event, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute as the kernel of an event; events inside are charged separately."""
        own, inner = self.own, event.inner
        event.computing = True
        start = perf_counter()
        try:
            ans = self._compute(primitive, args, params)
            if self._wait_until_ready is not None:
                self._wait_until_ready(ans)
            return ans
        finally:
            event.account.kernel += perf_counter() - start - (self.own - own) - (event.inner - inner)
            event.computing = False

    def mark(self) -> Callable[[], None]:
        """Return a function for runs that are done again; the meter counts both, because both take time."""
        return (lambda: None) if self._outer_runner is None else self._outer_runner.mark()

    def _compute(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        outer = self._outer_runner
        return primitive.compute(args, params) if outer is None else outer.run(primitive, args, params)

    def _vjp_with_account(self, node: Record, account: _Account) -> _VjpWithAccount:
        """Return the VJP rule of a new record, and count the bytes of the record."""
        for key, (array, size) in _arrays_in(saved_by(node)).items():
            account.saved += size
            known = self._counted.get(key)
            if known is None or known() is not array:
                self._counted[key] = _weak_reference(array)
                self.saved += size
        return _VjpWithAccount(vjp_of(node), account)


def _runs_user_code(event: _Event) -> bool:
    """Whether user functions may run inside; looking for their frames takes longer than many an operation."""
    return event.primitive is None or event.primitive.runs_user_code


def _arrays_in(x: Any) -> dict[int, tuple[Any, int]]:
    """Return the arrays anywhere in ``x``, also in tracers: by identity, each array with its bytes.

    An ndarray without axes belongs to a constant number and is left out.
    """
    found = [v for v in values_in(x) if hasattr(v, "nbytes") and not (type(v) is np.ndarray and not v.ndim)]
    return {id(v): (v, int(v.nbytes)) for v in found}


def _bytes_in(x: Any) -> dict[int, int]:
    if type(x) is np.ndarray:
        return {0: x.nbytes}
    value = x._val if isinstance(x, Tracer) else x
    if type(value) is np.ndarray:  # the most frequent cases
        return {0: value.nbytes}
    return {key: size for key, (_, size) in _arrays_in(x).items()}


def _weak_reference(x: Any) -> Callable[[], Any]:
    """Return a function that returns ``x`` while it lives; a NumPy scalar takes no weak reference and stays alive."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x
