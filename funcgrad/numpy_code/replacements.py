"""One run of rebuilt functions, and the replacements that are valid while the run lasts.

A user's object is viewed through an object of a rebuilt class, and an array that traced values may be written to
through a buffer. Every run makes new ones, and all functions of a run share them: what one function writes to
them is visible to the others, and gone when the run has ended.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import ref

import numpy as np

from funcgrad.numpy.plain_values.concretization import latest_rebuilt_run

_PYTHONS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range)
#: Types of values that never need a replacement.
PLAIN_TYPES = frozenset((*_PYTHONS, np.dtype, *[np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"]))


class LatestCache(OrderedDict[Any, Any]):
    """Cache of the ``size`` latest entries. An entry may hold its key, so that weak references would not work."""

    size = 1024

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > self.size:
            with suppress(KeyError):  # another thread removed it
                self.popitem(last=False)


class SmallCache(LatestCache):
    """Smaller cache, for entries that hold data of the program."""

    size = 64


class Run:
    """Replacements of values in one run.

    Attributes:
        open: whether the functions are still running.
        memos: by level (see ``translation``) and by the ``id`` of a value, the value and its replacement.
        owner: an object that the function which began the run needs, its view and the level. They move to the memos
            when a memo is first needed: most runs need none.
        endings: functions to call when the run ends.
        texts: the traced numbers from which texts were made, with the texts.
        first_text: the time at which the first of them was made.
        saved_to: the files to which traced values were written, with their names, see ``saving``.
        used: whether the memos, endings, texts or files may have entries.
    """

    __slots__ = ("__weakref__", "endings", "first_text", "memos", "open", "owner", "saved_to", "texts", "used")

    def __init__(self) -> None:
        self.open = self.used = False
        self.memos: dict[int, dict[int, tuple[Any, Any]]] = {}
        self.owner: tuple[Any, Any, int] | None = None
        self.endings: dict[Callable[[], None], None] = {}  # in order; a list would be searched for each container
        self.texts: list[Any] = []
        self.first_text = 0.0
        self.saved_to: list[tuple[Any, str]] = []

    def memo(self, level: int) -> dict[int, tuple[Any, Any]]:
        """Return the replacements on a level, by ``id``."""
        memos, owner = self.memos, self.owner
        memo = memos.get(level)
        if memo is None:
            self.used = True
            memo = memos[level] = {}
        if owner is not None:
            self.owner = None
            self.memo(owner[2])[id(owner[0])] = owner[:2]
        return memo

    def replaced_by(self, found: Any) -> Any:
        """Return the value of the program that ``found`` replaces in this run; ``found`` itself if there is none."""
        if self.owner is not None and self.owner[1] is found:
            return self.owner[0]
        pairs = (pair for memo in self.memos.values() for pair in memo.values())
        return next((value for value, ours in pairs if ours is found), found)

    def note_text(self, x: Any, text: str) -> None:
        """Note that ``text`` was made from ``x``."""
        if not self.texts:
            self.first_text = time.time()
        self.used = True
        self.texts.append((x, text))

    def note_file(self, file: Any, name: str) -> None:
        """Note that traced values were written to a file of this name."""
        self.used = True
        self.saved_to.append((file, name))

    def at_end(self, ending: Callable[[], None]) -> None:
        """Call ``ending`` when the run ends, once only."""
        self.used = True
        self.endings[ending] = None


#: The runs of all threads. A thread that a function starts takes part in its run if only one run is open.
_RUNS: list[ref[Run]] = []


def current_run() -> Run:
    """Return the run of the caller; a new one if none is known, as in a generator that is used after its run."""
    run: Run | None = latest_rebuilt_run.run
    if run is not None and run.open:
        return run
    active = _open_runs()
    return active[0] if len(active) == 1 else Run()


def _open_runs() -> list[Run]:
    return [found for known in list(_RUNS) if (found := known()) is not None and found.open]


def is_worker() -> bool:
    """Whether rebuilt code runs in a thread that a function started, so that it takes part in the only open run."""
    run: Run | None = latest_rebuilt_run.run
    return (run is None or not run.open) and len(_open_runs()) == 1


def run_of_thread() -> Run:
    """Return the run of this thread, always the same object, whether ``open`` or not."""
    run: Run | None = latest_rebuilt_run.run
    if run is None:
        run = latest_rebuilt_run.run = Run()
        _RUNS.append(ref(run, _RUNS.remove))
    return run


def end_run(run: Run) -> None:
    """End a run that began here."""
    run.memos.clear()
    run.saved_to.clear()
    run.open, run.used, run.owner = False, False, None
    if run.endings or run.texts:
        endings, run.endings, run.texts = run.endings, {}, []
        for ending in endings:
            ending()
