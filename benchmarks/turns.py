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

#: Seconds of processor time for a pair, in rounds, and what a turn takes at the least.
BUDGET, TURN = 2.0, 1e-2


class EndedError(RuntimeError):
    """A process ended by itself.

    Args:
        stderr: what it said about that.
    """

    def __init__(self, stderr: str) -> None:
        super().__init__((stderr.strip() or "ended").splitlines()[-1])
        self.stderr = stderr


class Servant:
    """A process that runs ``measuring.serve``.

    Attributes:
        said: what it said first of all.
    """

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        self.said: dict[str, Any] = {}

    def listen(self) -> Any:
        """What it says next."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise EndedError(self._errors.read())
        return json.loads(line)

    def seconds(self, repeat: int) -> float:
        """Seconds of a call, of so many in a row."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{repeat}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and what it says next says so
        return float(self.listen())


@contextmanager
def started(commands: Mapping[str, list[str]], environment: Mapping[str, str]) -> Iterator[dict[str, Servant]]:
    """The processes of some commands, once all are ready; they end with the block."""
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
    """Seconds per call, in as many rounds as the time allows; of calls that take long, a few, the first among them."""
    first = {label: servant.said["first"] for label, servant in servants.items()}
    if (taken := sum(first.values())) > LONG:
        times = rounds_of(servants, int(taken < 5 * LONG), 1)
        return {label: [first[label], *times[label]] for label in servants}
    taken = sum(servant.seconds(1) for servant in servants.values())
    repeat = max(1, int(TURN / taken))
    return rounds_of(servants, 3 if quick else int(min(max(BUDGET / (taken * repeat), 3), 300)), repeat)


def rounds_of(servants: Mapping[str, Servant], rounds: int, repeat: int) -> Times:
    """A round after the other: A B, B A, ..."""
    times: Times = {label: [] for label in servants}
    order = list(servants)
    for _ in range(rounds):
        for label in order:
            times[label].append(servants[label].seconds(repeat))
        order.reverse()
    return times
