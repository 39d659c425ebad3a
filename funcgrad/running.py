"""Which runs of transforms have not finished, and how threads share the tracers that a program writes to.

Writes are made one after the other, under ``changing``: a write reads what it changes. They store what changes without
a call in between, so who reads ``value``, ``_trace`` and ``link`` of a tracer without a call in between, and takes no
lock, finds what belongs together: CPython switches between threads at calls and jumps. The record of an operation takes
its number after it has read those of its parents, which are the older ones then.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import RLock, get_ident
from typing import Any, Final, TypeVar
from weakref import ref

__all__ = [
    "Repetition",
    "at_work",
    "changing",
    "noted",
    "open_traces",
    "refused",
    "repeating",
    "repeating_anywhere",
    "running",
]

E = TypeVar("E", bound=Exception)

#: Who lets a tracer refer to another value holds this. One lock for all, as a write may look at other arrays. What is
#: done under it ends in a name and is returned after it, so that an interrupt behind the last call lets go of it too.
changing: Final = RLock()
#: The runs (``core.Trace``) that have not finished, by level.
open_traces: dict[int, ref[Any]] = {}
#: By the thread that runs a transform what was refused while it did, here or in a thread that works for it, until
#: somebody has seen it: the function may have caught the error, and gone on in another way. Nothing was, where that is
#: empty, but a text shows a traced number: the function may read a number from it.
refused: dict[int, str] = {}


def noted(error: E, message: str = "") -> E:
    """``error``, to be raised, which is remembered in ``refused`` by its text or ``message``."""
    refused[get_ident()] = message or str(error)
    return error


class Repetition:
    """A part of a run that is repeated: finished runs work once more.

    Attributes:
        start: the level of the first of them.
        below: the level from which on runs have nothing to do with it.
        traces: those among them that are known.
        thread: the thread that repeats it.
        joined: whether threads that it started have worked on it.
    """

    __slots__ = ("below", "joined", "start", "thread", "traces")

    def __init__(self, start: int, below: int, traces: tuple[Any, ...]) -> None:
        self.start, self.below, self.traces = start, below, traces
        self.thread, self.joined = get_ident(), False


#: What is repeated in this context.
repeating: ContextVar[tuple[Repetition, ...]] = ContextVar("repeating", default=())
#: What is repeated in all threads. One that a repeated function starts may have a context that knows of nothing.
repeating_anywhere: dict[Repetition, None] = {}


def at_work() -> list[Any]:
    """The runs that have not finished, and those that are repeated in this context."""
    return [*running(), *[trace for run in repeating.get() for trace in run.traces]]


def running() -> list[Any]:
    """The runs that have not finished, in all threads, the oldest first.

    One that an interrupt kept from being closed is gone with the last that refers to it.
    """
    found = []
    for level, known in list(open_traces.items()):
        trace = known()
        if trace is None:
            open_traces.pop(level, None)
        else:
            found.append(trace)
    return found
