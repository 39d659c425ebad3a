"""One run of functions that were built anew: what stands for whom while it lasts.

An object of the user's is looked at through another of a class that was built anew, and an array that traced values
may be written to through a buffer. Both are new in every run, and the same whoever asks in one run: what the
functions write to them is seen by all of them, and by nobody afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PLAIN", "Run", "current", "enter", "leave"]

_PYTHONS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range)
#: Types of values that stand for themselves wherever they are.
PLAIN = frozenset((*_PYTHONS, np.dtype, *[np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"]))


class Run:
    """What stands for whom in one run.

    Args:
        lifts: whether buffers stand for constant arrays, so that traced values can be written to them and
            NumPy's methods of them take traced values.
    """

    __slots__ = ("endings", "lifts", "memo")

    def __init__(self, lifts: bool = False) -> None:
        self.lifts = lifts
        self.memo: dict[int, tuple[Any, Any]] = {}
        self.endings: list[Callable[[], None]] = []

    def note(self, value: Any, found: Any) -> Any:
        """Let ``found`` stand for ``value`` until the run ends. The value is held, so that its ``id`` stays its own."""
        self.memo[id(value)] = value, found
        return found


class _Thread(threading.local):
    run: Run | None = None


_THREAD = _Thread()
#: The runs of all threads: a thread that a function starts works for the run of that function, if there is but one.
_ACTIVE: list[Run] = []


def current() -> Run:
    """The run that asks; a new one where none is known, as in a generator that is used after its run."""
    run = _THREAD.run
    if run is not None:
        return run
    return _ACTIVE[0] if len(_ACTIVE) == 1 else Run()


def enter(lifts: bool) -> tuple[Run, bool]:
    """The run of this thread, and whether it begins here. A run that lifts begins where one is that does not."""
    run = _THREAD.run
    if run is not None and (run.lifts or not lifts):
        return run, False
    if run is not None:
        run.lifts = True  # from now on: what has been found before is not lifted
        return run, False
    run = _THREAD.run = Run(lifts)
    _ACTIVE.append(run)
    return run, True


def leave(run: Run) -> None:
    """The end of a run that began here."""
    _THREAD.run = None
    _ACTIVE.remove(run)
    for ending in run.endings:
        ending()
