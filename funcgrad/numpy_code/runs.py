"""One run of functions that were built anew: what stands for whom while it lasts.

An object of the user's is looked at through another of a class that was built anew, and an array that traced values
may be written to through a buffer. Both are new in every run, and the same whoever asks in one run: what the
functions write to them is seen by all of them, and by nobody afterwards.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import ref

import numpy as np

from funcgrad.numpy.concretization import keeping

_PYTHONS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range)
#: Types of values that stand for themselves wherever they are.
PLAIN = frozenset((*_PYTHONS, np.dtype, *[np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"]))


class Latest(OrderedDict[Any, Any]):
    """What was made of so many objects lately. It may hold the object itself, so that no weak reference would do."""

    size = 1024

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > self.size:
            with suppress(KeyError):  # another thread took it out
                self.popitem(last=False)


class Few(Latest):
    """Those that hold data of the program's."""

    size = 64


class Run:
    """What stands for whom in one run.

    Attributes:
        open: whether the functions run still.
        memos: by the level, see ``translation``, and by the ``id`` of a value the value and what stands for it.
        owner: the object whose method began the run, what it is looked at through and the level, before these are
            among the memos: most runs ask for nothing else.
        endings: what is to be done when the run ends.
        texts: the traced numbers that texts were made of, with the texts.
        used: whether anything may be among the memos, the endings or the texts.
    """

    __slots__ = ("__weakref__", "endings", "memos", "open", "owner", "texts", "used")

    def __init__(self) -> None:
        self.open = self.used = False
        self.memos: dict[int, dict[int, tuple[Any, Any]]] = {}
        self.owner: tuple[Any, Any, int] | None = None
        self.endings: list[Callable[[], None]] = []
        self.texts: list[Any] = []

    def memo(self, level: int) -> dict[int, tuple[Any, Any]]:
        """What stands for whom on a level."""
        memos, owner = self.memos, self.owner
        memo = memos.get(level)
        if memo is None:
            self.used = True
            memo = memos[level] = {}
        if owner is not None:
            self.owner = None
            self.memo(owner[2])[id(owner[0])] = owner[:2]
        return memo

    def shows(self, x: Any, text: str) -> None:
        """Note that ``text`` was made of ``x``."""
        self.used = True
        self.texts.append((x, text))

    def at_end(self, ending: Callable[[], None]) -> None:
        """Have this done when the run ends, once."""
        self.used = True
        if ending not in self.endings:
            self.endings.append(ending)


#: The runs of all threads: a thread that a function starts works for the run of that function, if there is but one.
_RUNS: list[ref[Run]] = []


def current() -> Run:
    """The run that asks; a new one where none is known, as in a generator that is used after its run."""
    run: Run | None = keeping.run
    if run is not None and run.open:
        return run
    active = [found for known in list(_RUNS) if (found := known()) is not None and found.open]
    return active[0] if len(active) == 1 else Run()


def of_thread() -> Run:
    """The run of this thread, the same one time after time, which is ``open`` or not."""
    run: Run | None = keeping.run
    if run is None:
        run = keeping.run = Run()
        _RUNS.append(ref(run, _RUNS.remove))
    return run


def leave(run: Run) -> None:
    """The end of a run that began here."""
    run.open, run.used, run.owner = False, False, None
    run.memos.clear()
    if run.endings or run.texts:
        endings, run.endings, run.texts = run.endings, [], []
        for ending in endings:
            ending()
