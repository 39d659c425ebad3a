"""What ``profile`` measures with: time and bytes of operations and of their pulls, each with line and stage.

Times are exclusive. An operation inside another one (the rule of an inner transform, the function that a custom rule
runs) is measured by itself, and its time is taken from that around it. So are the meter's own steps, from everything.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from funcgrad import blocks
from funcgrad.core import Primitive, Trace, Tracer
from funcgrad.graph import Source, Stage
from funcgrad.numpy.concretization import user_frame
from funcgrad.reverse import Node, called, operation_of, parents_of, pull_in, saved_by, to_part
from funcgrad.transforms.debugging import Located, located, values_in
from funcgrad.transforms.origins import Origin, Origins

__all__ = ["Meter", "Row"]


class Row(NamedTuple):
    """What one operation took on one line: all its calls together.

    Attributes:
        operation: its name; None where a row is the sum of several.
        source: the user's line that asked for it; None where it is not known, or of several.
        stage: the stage of the pipeline; None outside of one, or of several.
        calls: how often it was done.
        forward: the seconds that doing it took, recording included.
        backward: the seconds that pulling cotangents back through it took.
        kernel: those of ``forward`` that the array library took.
        saved: the bytes that the tape keeps for it; of a value that several operations keep each counts it.
        results: the bytes of its results.
    """

    operation: str | None
    source: Source | None
    stage: Stage | None
    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    kernel: float = 0.0
    saved: int = 0
    results: int = 0


class _Account:
    """The figures of a row while they are gathered."""

    __slots__ = ("backward", "calls", "forward", "kernel", "origin", "results", "saved")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.calls = self.saved = self.results = 0
        self.forward = self.backward = self.kernel = 0.0


class _Event:
    """An operation or a pull that is being done.

    Attributes:
        account: to whom it is charged.
        frame: the user's innermost frame when it began; inside of it another one means code of the user's.
        primitive: what is done; None for a pull.
        start: when it began.
        own: the meter's own seconds until then.
        inner: the seconds of events inside.
        computing: whether its kernel runs.
    """

    __slots__ = ("account", "computing", "frame", "inner", "own", "primitive", "start")

    def __init__(self, account: _Account, frame: FrameType | None, primitive: Primitive | None, own: float) -> None:
        self.account, self.frame, self.primitive, self.own = account, frame, primitive, own
        self.inner = 0.0
        self.computing = False
        self.start = perf_counter()


class _Metered(Located):
    """A pull that knows to whom it is charged."""

    __slots__ = ("account",)

    def __init__(self, pull: Callable[[Any, Node], Any], account: _Account) -> None:
        super().__init__(pull, account.origin)
        self.account = account


class Meter:
    """Measures what the thread that made it does, as the ``meter`` of a watch and as a runner of kernels.

    Args:
        ends: the code of the frame at which the search for pipelines ends.
        waits: what waits until the arrays among its arguments are computed, where that happens later.

    Attributes:
        stage: the stage at which the pipeline is, as far as it tells.
        own: the seconds that the meter itself took.
        inside: the seconds of operations and pulls since it was last set to zero.
        saved: the bytes that tapes keep, each value counted once.
    """

    def __init__(self, ends: CodeType, waits: Callable[[Any], None] | None = None) -> None:
        self.stage: Stage | None = None
        self.own = self.inside = 0.0
        self.saved = 0
        self._ends, self._waits = ends, waits
        self._thread = get_ident()
        self._outer: Any = blocks.current().runner
        self._origins = Origins()
        self._accounts: dict[tuple[str, Source | None, Stage | None], _Account] = {}
        self._stages: dict[Source | None, Stage | None] = {}
        self._events: list[_Event] = []
        self._kept: dict[int, Callable[[], Any]] = {}

    def rows(self) -> tuple[Row, ...]:
        """What was measured, in the order of first calls."""
        return tuple(
            Row(*key, a.calls, a.forward, a.backward, a.kernel, a.saved, a.results) for key, a in self._accounts.items()
        )

    def forget(self) -> None:
        """Let go of frames and arrays."""
        self._origins.forget()
        self._events.clear()
        self._kept.clear()

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let ``trace`` process the operation, and measure it."""
        if get_ident() != self._thread:
            return trace.process(primitive, args, params)
        entered = perf_counter()
        event, again = self._begun(getattr(params.get("rules"), "name", primitive.name), primitive, entered)
        try:
            ans = trace.process(primitive, args, params)
            if self._waits is not None:
                self._waits(ans)
        finally:
            ended = self._ended(event, forward=True)
        account = event.account
        if not again:
            account.calls += 1
            account.results += sum(_bytes_in(ans).values())
        ans = located(trace, ans, lambda node: self._metered(node, account))
        self.own += perf_counter() - ended
        return ans

    def run(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute an operation on plain values: a part of what is being done, or one of its own on constants."""
        if get_ident() != self._thread:
            return self._compute(primitive, args, params)
        entered = perf_counter()
        top = self._events[-1] if self._events else None
        if top is None or (_runs_users(top) and top.frame is not user_frame()):
            event, _ = self._begun(primitive.name, primitive, entered)
            try:
                ans = self._kernel(event, primitive, args, params)
            finally:
                ended = self._ended(event, forward=True)
            event.account.calls += 1
            event.account.results += sum(_bytes_in(ans).values())
            self.own += perf_counter() - ended
            return ans
        self.own += perf_counter() - entered
        if top.computing or top.primitive is None:
            return self._compute(primitive, args, params)
        return self._kernel(top, primitive, args, params)

    def begin_pass(self) -> Callable[[Any, Node], Any]:
        """What calls the pulls of a backward pass that begins now."""
        entered = perf_counter()
        frame = user_frame()
        self.own += perf_counter() - entered

        def call(ct: Any, node: Node) -> Any:
            if get_ident() != self._thread:
                return called(ct, node)
            entered = perf_counter()
            event = self._pushed(
                self._account_of(parents_of(node)[0] if pull_in(node) is to_part else node), frame, None, entered
            )
            try:
                pulled = called(ct, node)
                if self._waits is not None:
                    self._waits(pulled)
                return pulled
            finally:
                self.own += perf_counter() - self._ended(event, forward=False)

        return call

    def _begun(self, name: str, primitive: Primitive, entered: float) -> tuple[_Event, bool]:
        """A new event, and whether it is the one around it once more, one level further out."""
        top = self._events[-1] if self._events else None
        frame = user_frame() if top is None or _runs_users(top) else top.frame
        if top is not None and top.frame is frame:
            account = self._account(name, top.account.origin)
            return self._pushed(account, frame, primitive, entered), top.primitive is primitive
        source = self._origins.line(frame)
        stage = self.stage or self._origins.stage(lambda f, found: f.f_code is self._ends)
        if stage is None and top is not None:
            stage = self._stages.get(source)  # what a pullback runs again runs outside of the pipeline
        self._stages[source] = stage
        return self._pushed(self._account(name, Origin(source, stage)), frame, primitive, entered), False

    def _account_of(self, node: Node) -> _Account:
        """To whom the pull of a record is charged; it may have been made where nobody measured."""
        pull = pull_in(node)
        if type(pull) is _Metered:
            return pull.account
        return self._account(operation_of(node), getattr(pull, "origin", None) or Origin(None, None))

    def _account(self, name: str, origin: Origin) -> _Account:
        key = (name, *origin)
        found = self._accounts.get(key)
        if found is None:
            found = self._accounts[key] = _Account(origin)
        return found

    def _pushed(
        self, account: _Account, frame: FrameType | None, primitive: Primitive | None, entered: float
    ) -> _Event:
        """A new event, begun now; what came since ``entered`` is the meter's own."""
        event = _Event(account, frame, primitive, 0.0)
        self._events.append(event)
        event.start = perf_counter()
        self.own += event.start - entered
        event.own = self.own
        return event

    def _ended(self, event: _Event, *, forward: bool) -> float:
        """Charge for an event, and say when it ended."""
        now = perf_counter()
        taken = now - event.start - (self.own - event.own)
        while self._events and self._events.pop() is not event:  # one that an interrupt left behind
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
        """Compute as the kernel of an event; what other events do inside is theirs."""
        own, inner = self.own, event.inner
        event.computing = True
        start = perf_counter()
        try:
            ans = self._compute(primitive, args, params)
            if self._waits is not None:
                self._waits(ans)
            return ans
        finally:
            event.account.kernel += perf_counter() - start - (self.own - own) - (event.inner - inner)
            event.computing = False

    def _compute(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return primitive.compute(args, params) if self._outer is None else self._outer.run(primitive, args, params)

    def _metered(self, node: Node, account: _Account) -> _Metered:
        """The pull of a new record, and its bytes counted."""
        for key, (array, size) in _arrays_in(saved_by(node)).items():
            account.saved += size
            known = self._kept.get(key)
            if known is None or known() is not array:
                self._kept[key] = _reference(array)
                self.saved += size
        return _Metered(pull_in(node), account)


def _runs_users(event: _Event) -> bool:
    """Whether functions of the user's may run inside: to look for them takes longer than many an operation."""
    return event.primitive is None or event.primitive.calls


def _arrays_in(x: Any) -> dict[int, tuple[Any, int]]:
    """The arrays anywhere in ``x``, in tracers too: by identity, themselves and their bytes.

    An ndarray without axes is a constant number's.
    """
    found = [v for v in values_in(x) if hasattr(v, "nbytes") and not (type(v) is np.ndarray and not v.ndim)]
    return {id(v): (v, int(v.nbytes)) for v in found}


def _bytes_in(x: Any) -> dict[int, int]:
    if type(x) is np.ndarray:
        return {0: x.nbytes}
    value = x._val if isinstance(x, Tracer) else x
    if type(value) is np.ndarray:  # the common cases
        return {0: value.nbytes}
    return {key: size for key, (_, size) in _arrays_in(x).items()}


def _reference(x: Any) -> Callable[[], Any]:
    """What gives ``x`` as long as it lives; of NumPy's scalars, which nothing can refer to weakly, always."""
    try:
        return weakref.ref(x)
    except TypeError:
        return lambda: x
