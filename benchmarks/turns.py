"""Two processes that are timed in turn."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from measuring import LONG
from timing import Times

__all__ = ["EndedError", "Servant", "in_turn", "started"]

#: Processor seconds for all rounds of a pair, and the least seconds of a turn.
BUDGET, TURN = 2.0, 1e-2


class EndedError(RuntimeError):
    """A process ended unexpectedly.

    Args:
        stderr: its error output.
    """

    def __init__(self, stderr: str) -> None:
        super().__init__((stderr.strip() or "ended").splitlines()[-1])
        self.stderr = stderr


class Servant:
    """Process that runs ``measuring.serve``.

    Attributes:
        said: its first message.
    """

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        self.said: dict[str, Any] = {}

    def listen(self) -> Any:
        """Return the next message of the process."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise EndedError(self._errors.read())
        return json.loads(line)

    def seconds(self, repeat: int) -> float:
        """Return the seconds per call, from ``repeat`` calls in a row."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{repeat}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended, and ``listen`` reports it
        return float(self.listen())


@contextmanager
def started(commands: Mapping[str, list[str]], environment: Mapping[str, str]) -> Iterator[dict[str, Servant]]:
    """Start processes by commands, and yield them once all are ready; they end with the block."""
    with ExitStack() as stack:
        servants = {}
        for label, words in commands.items():
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            pipe = subprocess.PIPE
            process = subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            servants[label] = Servant(process, errors)
        for servant in servants.values():
            servant.said = servant.listen()
        yield servants


def in_turn(servants: Mapping[str, Servant], quick: bool) -> Times:
    """Return seconds per call, in as many rounds as time allows; long calls run a few times, the first included."""
    first = {label: servant.said["first"] for label, servant in servants.items()}
    if (taken := sum(first.values())) > LONG:
        times = rounds_of(servants, int(taken < 5 * LONG), 1)
        return {label: [first[label], *times[label]] for label in servants}
    taken = sum(servant.seconds(1) for servant in servants.values())
    repeat = max(1, int(TURN / taken))
    return rounds_of(servants, 3 if quick else int(min(max(BUDGET / (taken * repeat), 3), 300)), repeat)


def rounds_of(servants: Mapping[str, Servant], rounds: int, repeat: int) -> Times:
    """Time in rounds, A B, B A, ..., and return the seconds per call."""
    times: Times = {label: [] for label in servants}
    order = list(servants)
    for _ in range(rounds):
        for label in order:
            times[label].append(servants[label].seconds(repeat))
        order.reverse()
    return times
