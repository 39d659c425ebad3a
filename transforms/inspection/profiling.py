"""``profile``: measures time and memory of each operation of a function and of its gradient."""

from __future__ import annotations

import operator
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import compress
from time import perf_counter
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.core import describe, replace_at
from funcgrad.errors import InputError
from funcgrad.optional import loaded_jax
from funcgrad.reverse import backward, record_function
from funcgrad.transforms.arguments import (
    argument_positions,
    check_leaves,
    check_results,
    leaf_path,
    merge_leaves,
    split_aux,
)
from funcgrad.transforms.debugging import meter_block, values_in
from funcgrad.transforms.inspection.metering import Meter, Row
from funcgrad.transforms.inspection.profile_report import Pass, Profile
from funcgrad.transforms.inspection.tracing import with_stage_reports
from funcgrad.transforms.transformed import (
    Argnums,
    Transformed,
    check_argnums,
    check_callable,
    name_of,
    raise_funcgrad_error,
)

_lock = threading.Lock()
_active: list[Peaks] = []
_started = False


class Peaks:
    """Block in which the memory of the whole process is traced; several blocks may be open at once.

    Attributes:
        bytes_in_use: for each part, by name, the largest number of bytes in use, above those before the first part.

    Example:
        >>> with Peaks() as peaks:
        ...     with peaks.part("first"):
        ...         _ = bytes(100_000)
        >>> peaks.bytes_in_use["first"] >= 100_000
        True
    """

    def __init__(self) -> None:
        self.bytes_in_use: dict[str, int] = {}
        self._before: int | None = None
        self._highest = 0

    def __enter__(self) -> Peaks:
        global _started
        with _lock:
            _active.append(self)
            if not tracemalloc.is_tracing():
                tracemalloc.start()
                _started = True
        return self

    def __exit__(self, *exc: object) -> None:
        global _started
        with _lock:
            _active.remove(self)
            if _started and not _active:
                tracemalloc.stop()
                _started = False

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure the code of a ``with`` block as a part."""
        _reset_peak()
        self._highest = 0
        if self._before is None:
            self._before = tracemalloc.get_traced_memory()[0]
        yield
        self.bytes_in_use[name] = max(self._highest, tracemalloc.get_traced_memory()[1]) - self._before


def _reset_peak() -> None:
    """Reset the peak and tell all open blocks its value: ``tracemalloc`` has only one peak."""
    with _lock:
        peak = tracemalloc.get_traced_memory()[1]
        for one in _active:
            one._highest = max(one._highest, peak)
        tracemalloc.reset_peak()


P = ParamSpec("P")
#: Function that makes a block for each pass: ``phase("forward")`` and ``phase("backward")``.
Phase = Callable[[str], AbstractContextManager[None]]


class _Options(NamedTuple):
    argnums: Argnums | None
    has_aux: bool
    runs: int
    memory: bool


def profile(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] | None = 0,
    has_aux: bool = False,
    runs: int = 1,
    memory: bool = True,
) -> Callable[P, Profile]:
    """Return a function that runs ``fun`` and its pullback and returns a ``Profile``: time and memory by operation.

    For a scalar function the passes compute value and gradient. For other results every floating leaf gets a cotangent
    of ones. The profile has, for each operation, line of the program and stage of a toolz pipeline, the seconds forward
    and backward, the bytes that the tape saves and the bytes of the results; it also has the peak of memory.

    ``fun`` runs once to warm up and, under ``tracemalloc``, to find the peak; then ``runs`` times without a profiler;
    then ``runs`` times with each operation timed. Operations on values that are differentiated or mapped are measured,
    at all levels; operations on ordinary arrays, and Python, are the rest of a pass, ``Profile.elsewhere``. Other
    threads are not measured.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        argnums: which positional arguments to differentiate. None differentiates nothing: the profile then measures
            the run of ``fun`` itself, with the passes of the transforms inside.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``.
        runs: the number of timed runs; the figures are those of the quickest run.
        memory: whether to measure the peak of memory, which makes the first run slower.

    Raises:
        TypeError: no floating-point leaf to differentiate; ``runs`` is not a positive integer; also as ``vjp``.

    Example:
        >>> from funcgrad import compose_left, profile
        >>> found = profile(compose_left(fnp.square, fnp.sin, fnp.sum))(np.ones(1000))
        >>> [(row.operation, str(row.stage), row.calls, row.saved) for row in found.operations]
        [('square', '1 square', 1, 8000), ('sin', '2 sin', 1, 8000), ('reduce_sum', '3 sum', 1, 0)]
        >>> found.saved
        16000
    """
    check_callable("profile", fun)
    chosen = None if argnums is None else check_argnums("profile", argnums)
    try:
        count = operator.index(runs)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"profile: runs must be a positive integer, got {describe(runs)}. Leave it out for one run.")
    options = _Options(chosen, has_aux, count, memory)
    return Transformed(run_profile, fun, options, "What {fun} and its pullback take, by operation.")


def run_profile(fun: Callable[..., Any], options: _Options, args: Any, kwargs: Any) -> Profile:
    """Run a call of ``profile(fun)``."""
    call = _Call(fun, options, args, kwargs)
    peaks = Peaks()
    with peaks if options.memory else nullcontext():
        results = call.passes(fun, peaks.part if options.memory else _time_passes({}))
    if any(backend.library_of(x) is not np for x in results):
        call.wait_until_ready = _wait_until_ready
    plain, found = [], []
    for _ in range(options.runs):
        times: dict[str, float] = {}
        call.passes(fun, _time_passes(times))
        plain.append(times)
        found.append(_measure(call))
    seconds = min(plain, key=lambda times: sum(times.values()))
    best = min(found, key=lambda measured: sum(measured.times.values()))
    passes = [
        Pass(name, seconds[name], measured, max(measured - best.inside[name], 0.0), peaks.bytes_in_use.get(name))
        for name, measured in best.times.items()
    ]
    return Profile(name_of(fun), best.rows, passes, own=best.own, saved=best.saved)


class _MeasuredRun(NamedTuple):
    """Measured run: rows, and by pass its seconds and the seconds of the operations and VJP rules in it."""

    rows: tuple[Row, ...]
    times: dict[str, float]
    inside: dict[str, float]
    own: float
    saved: int


def _measure(call: _Call) -> _MeasuredRun:
    """Run ``call`` and measure it operation by operation."""
    meter = Meter(_Call.passes.__code__, call.wait_until_ready)
    times: dict[str, float] = {}
    inside: dict[str, float] = {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        meter.inside = 0.0
        begun, own = perf_counter(), meter.own
        yield
        times[name], inside[name] = perf_counter() - begun - (meter.own - own), meter.inside

    try:
        with blocks.runner_block(meter), meter_block(meter):
            call.passes(with_stage_reports(call.fun, meter), phase)
        return _MeasuredRun(meter.rows(), times, inside, meter.own, meter.saved)
    finally:
        meter.forget()


def _time_passes(times: dict[str, float]) -> Phase:
    """Return a ``Phase`` that notes in ``times`` how long each pass takes."""

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        begun = perf_counter()
        yield
        times[name] = perf_counter() - begun

    return phase


class _Call:
    """One call of the profiled function.

    Attributes:
        wait_until_ready: waits for arrays that their library computes later; None if there are no such arrays.
    """

    def __init__(self, fun: Callable[..., Any], options: _Options, args: Any, kwargs: Any) -> None:
        self.fun, self.args, self.kwargs = fun, args, kwargs
        self.wait_until_ready: Callable[[Any], None] | None = None
        self._has_aux = options.has_aux
        self._chosen = () if options.argnums is None else argument_positions("profile", options.argnums, args)
        self._leaves, self._spec = tree.flatten(tuple(args[i] for i in self._chosen))
        self._live = check_leaves("profile", self._leaves, partial(leaf_path, args, self._chosen))
        if self._chosen and not any(self._live):
            given = ", ".join(map(describe, self._leaves[:3])) or "no array at all"
            raise InputError(
                f"profile: argnums={options.argnums} must name an argument with a floating-point leaf, got {given}. "
                "Name another one, or pass argnums=None to measure the function without its pullback."
            )

    def passes(self, fun: Callable[..., Any], phase: Phase) -> list[Any]:
        """Run the function in ``phase("forward")`` and its pullback in ``phase("backward")``; return the results."""
        with phase("forward"):
            if self._chosen:
                moving = list(compress(self._leaves, self._live))
                results, nodes = record_function(lambda *new: self._results(fun, new), moving)
            else:
                results, nodes = self._results(fun, ()), []
            if self.wait_until_ready is not None:
                self.wait_until_ready(results)
        seeds = [(n, backend.ones_like(x)) for n, x in zip(nodes, results, strict=bool(nodes)) if n is not None]
        nodes.clear()  # without these references the backward pass frees the tape as it goes
        if not self._chosen:
            return results
        with phase("backward"):
            cts = backward(seeds, len(moving))
            if self.wait_until_ready is not None:
                self.wait_until_ready(cts)
        return [*results, *(ct for ct in cts if ct is not None)]

    def _results(self, fun: Callable[..., Any], moving: Sequence[Any]) -> list[Any]:
        """Return the leaves of the result for these values of the differentiated leaves."""
        args = self.args
        if moving:
            leaves = merge_leaves(self._leaves, self._live, moving)
            args = replace_at(args, self._chosen, tree.unflatten(self._spec, leaves))
        try:
            out = fun(*args, **self.kwargs)
        except Exception as error:
            raise_funcgrad_error(error)
            raise
        if self._has_aux:
            out, _ = split_aux("profile", out)
        flat: list[Any] = tree.flatten(out)[0]
        if self._chosen:
            check_results("profile", flat)
        return flat


def _wait_until_ready(x: Any) -> None:
    """Wait for the arrays in ``x``: JAX may return arrays before it has computed them."""
    jax = loaded_jax()
    for value in values_in(x):
        if jax is not None and isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            value.block_until_ready()
