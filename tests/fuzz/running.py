"""Runner of many random programs on several processes: progress, failures, a summary."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Found", "Summary", "Workers", "deadly", "examine", "fuzz"]

CHUNK = 50
ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "fuzz"
FRESH = 4000  # programs after which a process clears JAX's caches, which keep all that JAX ever traced


class Found(NamedTuple):
    """Result of one program."""

    number: int
    kind: str
    details: str
    script: str  # empty unless the program failed
    lines: int = 0


def examine(seed: int, number: int, seconds: float = 30.0) -> Found:
    """Make a program, judge it, and shrink a failing program."""
    from fuzz.generating import generate
    from fuzz.judging import judge
    from fuzz.reproducers import script
    from fuzz.shrinking import shrink

    program = generate(seed, number)
    verdict = judge(program)
    if not verdict.failed:
        return Found(number, verdict.kind, verdict.details, "")
    small = shrink(program, lambda p: _same(judge(p), verdict), seconds)
    again = judge(small)
    verdict = again if again.failed else verdict  # some programs fail at their first call only
    title = f"Random program {number} of SEED={seed}, made small."
    return Found(number, verdict.kind, verdict.details, script(small, verdict, title), len(small.lines))


def _same(one: Any, other: Any) -> bool:
    """Whether two verdicts are alike, including the class of what was raised."""
    raised = [v.details.split(":")[0] if "raises" in v.kind else "" for v in (one, other)]
    return one.kind == other.kind and raised[0] == raised[1]


def deadly(seed: int, number: int) -> Found:
    """Return the result for a program whose process ended while it ran; it cannot be made small here."""
    from fuzz.generating import generate
    from fuzz.judging import Verdict
    from fuzz.reproducers import script

    program, verdict = generate(seed, number), Verdict("the process died")
    title = f"Random program {number} of SEED={seed}."
    return Found(number, verdict.kind, "", script(program, verdict, title), len(program.lines))


def _prepare(parent: int) -> None:
    """Prepare each process: double precision on the CPU; the parent handles interrupts."""
    global _parent
    _parent = parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import jax

    jax.config.update("jax_enable_x64", True)
    gc.set_threshold(200_000, 50, 100)  # JAX makes many small objects that wait for garbage collection
    jax.config.update("jax_disable_most_optimizations", True)


_done = _parent = 0


def _chunk(seed: int, numbers: range) -> list[Found]:
    global _done
    import jax

    _done += len(numbers)
    if _done > FRESH:
        _done = 0
        jax.clear_caches()
    found = []
    for number in numbers:
        if os.getppid() != _parent:  # the parent died, and nothing waits for results
            os._exit(1)
        found.append(examine(seed, number))
    return found


@dataclass
class Summary:
    """Summary of the results so far."""

    seed: int
    start: int
    stop: int
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    finished: set[int] = field(default_factory=set)  # first numbers of chunks
    begun: float = field(default_factory=time.monotonic)

    def add(self, found: Found) -> None:
        """Count a result; write down what failed."""
        self.kinds[found.kind] += 1
        if found.kind in ("JAX refuses", "funcgrad refuses", "unfit", "known divergence of JAX", "ill-conditioned"):
            self.reasons[f"{found.kind}: {found.details[:90]}"] += 1
        if found.script:
            OUT.mkdir(parents=True, exist_ok=True)
            path = OUT / f"seed{self.seed}_{found.number}.py"
            path.write_text(found.script, encoding="utf-8")
            self.files.append(str(path.relative_to(ROOT)))

    @property
    def next(self) -> int:
        """First number that is not done, with all before it done."""
        at = self.start
        while at in self.finished:
            at += CHUNK
        return min(at, self.stop)

    def text(self) -> str:
        """Return the summary as readable text."""
        count, seconds = sum(self.kinds.values()), time.monotonic() - self.begun
        lines = [f"{count} programs in {seconds:.0f} s, {1e3 * seconds / max(count, 1):.0f} ms each"]
        lines += [f"  {n:7d}  {kind}" for kind, n in self.kinds.most_common()]
        lines += [f"  {n:7d}  {reason}" for reason, n in self.reasons.most_common(12)]
        if self.files:
            lines += ["failures:", *[f"  {path}" for path in self.files]]
        if self.next < self.stop:
            lines.append(f"to go on: make fuzz SEED={self.seed} START={self.next} N={self.stop - self.next}")
        return "\n".join(lines)


class Workers:
    """Processes, and the chunks that they work on."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.interrupted = False
        self.pending: dict[Future[list[Found]], range] = {}
        self.pool = self._started(jobs)

    def _started(self, jobs: int) -> ProcessPoolExecutor:
        context = get_context("spawn")
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare, initargs=(os.getpid(),))

    def submit(self, seed: int, numbers: range) -> None:
        """Submit these programs."""
        self.pending[self.pool.submit(_chunk, seed, numbers)] = numbers

    def results(self, seed: int, chunks: Iterator[range]) -> Iterator[tuple[range, list[Found]]]:
        """Generate the results in ``chunks``, in order of completion."""
        while True:
            while len(self.pending) < 2 * self.jobs and (chunk := next(chunks, None)) is not None:
                self.submit(seed, chunk)
            if not self.pending:
                return
            done, _ = wait(self.pending, timeout=1.0, return_when=FIRST_COMPLETED)
            if self.interrupted:
                raise KeyboardInterrupt
            for future in done:
                try:
                    found = future.result()
                except BrokenProcessPool:
                    yield from self.one_by_one(seed)
                    break
                yield self.pending.pop(future), found

    def one_by_one(self, seed: int) -> Iterator[tuple[range, list[Found]]]:
        """Generate the results of the chunks during which a process died, each program by itself."""
        lost, self.pending = list(self.pending.values()), {}
        self.pool = self._started(1)
        for numbers in lost:
            found = []
            for number in numbers:
                self.submit(seed, range(number, number + 1))
                try:
                    found += next(iter(self.pending)).result()
                except BrokenProcessPool:
                    found.append(deadly(seed, number))
                    self.pool = self._started(1)
                self.pending.clear()
            yield numbers, found
        self.pool.shutdown()
        self.pool = self._started(self.jobs)

    def interrupt(self, *_: object) -> None:
        """Remember an interrupt: Python drops the exception if it is raised in a callback of a weak reference."""
        self.interrupted = True
        raise KeyboardInterrupt

    def stop(self, at_once: bool) -> None:
        """End the processes, with ``at_once`` in the middle of their work.

        An interrupt may have come before ``pending`` knew of a chunk, or the pool of a process.
        """
        if at_once:
            for process in active_children():
                process.terminate()
        self.pool.shutdown(wait=not at_once, cancel_futures=True)


def fuzz(count: int, seed: int, start: int, jobs: int) -> Summary:
    """Examine programs ``start`` to ``start + count``; Ctrl-C ends the run early, with the results so far."""
    summary = Summary(seed, start, start + count)
    chunks = iter([range(n, min(n + CHUNK, start + count)) for n in range(start, start + count, CHUNK)])
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    workers, finished = Workers(jobs), False
    before = signal.signal(signal.SIGINT, workers.interrupt)
    try:
        print(f"programs {start} to {start + count - 1} of SEED={seed} on {jobs} processes", flush=True)
        with _Progress(summary) as progress:
            for numbers, found in workers.results(seed, chunks):
                summary.finished.add(numbers.start)
                for one in found:
                    summary.add(one)
                progress.show(found)
        finished = True
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
    finally:
        signal.signal(signal.SIGINT, before)
        workers.stop(at_once=not finished)
    return summary


class _Progress:
    """Progress bar on a terminal; failures are printed in any case."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self.printed = 0
        self.bar: Any = None
        try:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            return
        failed = TextColumn("[red]{task.fields[failed]} failed")
        self.bar = Progress(BarColumn(), MofNCompleteColumn(), failed, TimeRemainingColumn(), transient=True)
        self.task = self.bar.add_task("fuzz", total=summary.stop - summary.start, failed=0)

    def __enter__(self) -> _Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def show(self, found: list[Found]) -> None:
        """Show results that arrived."""
        say = print if self.bar is None else self.bar.console.out
        paths = iter(self.summary.files[self.printed :])
        for one in found:
            if one.script:
                say(f"{next(paths)}\n  {one.kind}: {one.details[:150]}")
        self.printed = len(self.summary.files)
        if self.bar is not None:
            self.bar.update(self.task, advance=len(found), failed=self.printed)
