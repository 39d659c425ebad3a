"""One run of functions that were built anew: what stands for whom while it lasts.

An object of the user's is looked at through another of a class that was built anew, and an array that traced values
may be written to through a buffer. Both are new in every run, and the same whoever asks in one run: what the
functions write to them is seen by all of them, and by nobody afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.numpy.concretization import keeping

__all__ = ["PLAIN", "Latest", "Run", "current", "enter", "leave"]

_PYTHONS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range)
#: Types of values that stand for themselves wherever they are.
PLAIN = frozenset((*_PYTHONS, np.dtype, *[np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"]))


class Latest(dict[Any, Any]):
    """What was made of so many objects lately. It may hold the object itself, so that no weak reference would do."""

    size = 1024

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        while len(self) > self.size:
            self.pop(next(iter(self)), None)


class Run:
    """What stands for whom in one run.

    Attributes:
        memos: by the ``id`` of a value the value and what stands for it: where constant arrays stay what they are, and
            where buffers stand for them, to which traced values can be written.
        endings: what is to be done when the run ends.
        texts: the traced numbers that texts were made of, with the texts.
    """

    __slots__ = ("endings", "memos", "texts")

    def __init__(self) -> None:
        self.memos: tuple[dict[int, tuple[Any, Any]], dict[int, tuple[Any, Any]]] = ({}, {})
        self.endings: list[Callable[[], None]] = []
        self.texts: list[Any] = []


#: The runs of all threads: a thread that a function starts works for the run of that function, if there is but one.
_ACTIVE: set[Run] = set()
#: Runs that have ended, to be used again.
_EMPTY: list[Run] = []


def current() -> Run:
    """The run that asks; a new one where none is known, as in a generator that is used after its run."""
    run: Run | None = keeping.run
    if run is not None:
        return run
    active = list(_ACTIVE)
    return active[0] if len(active) == 1 else Run()


def enter() -> Run:
    """A run that begins in this thread."""
    try:
        run = _EMPTY.pop()
    except IndexError:
        run = Run()
    keeping.run = run
    _ACTIVE.add(run)
    return run


def leave(run: Run) -> None:
    """The end of a run that began here."""
    keeping.run = None
    _ACTIVE.discard(run)
    if run.endings or run.texts:
        for ending in run.endings:
            ending()
        return
    plain, lifted = run.memos
    if plain:
        plain.clear()
    if lifted:
        lifted.clear()
    _EMPTY.append(run)
