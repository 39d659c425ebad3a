"""State of the process that all transforms and threads share: open runs, repetitions, refusals, the lock of writes.

A write reads what it changes, so writes happen one after the other, under the lock ``write_lock``. A write stores
``_val``, ``_trace`` and ``link`` of a tracer without a call in between. Code that reads all three without a call in
between needs no lock and finds consistent values, because CPython switches threads only at calls and at jumps
backwards. An operation reads the numbers of its parents' records before it takes the number of its own, so the parents
are older.
"""

from __future__ import annotations

from contextvars import ContextVar
from threading import RLock, get_ident
from typing import Any, Final, TypeVar
from weakref import ref

E = TypeVar("E", bound=Exception)

#: Lock that code holds while it makes a tracer refer to another value; one lock for all, since a write may read other
#: arrays. Code under the lock stores its result in a variable and returns the variable after the ``with`` block, so
#: that the lock is released even if an interrupt follows the last call.
write_lock: Final = RLock()
#: Runs (``core.Trace``) that have not finished, by level.
open_traces: dict[int, ref[Any]] = {}
#: Refused requests that are not reported yet: messages by the thread that runs the transform. The function may have
#: caught the error and continued. An empty message means that a text shows a traced number, which may be read from it;
#: its class is ``texts.Unshared`` if the text shows several.
pending_refusals: dict[int, str] = {}
#: Weak references to the paths of the calls that are followed, by thread. Paths note the answers on which Python
#: branches, see ``numpy_code.overwriting``; one that an interrupt kept from being ended disappears with its call.
followed_paths: dict[int, ref[Any]] = {}
#: Answers for the truth values on which Python branches in a function that JAX compiles: an object whose method
#: ``answer(x)`` returns True, False, or None if there is no answer. None where no answer can be given.
open_path: ContextVar[Any] = ContextVar("open_path", default=None)
#: Beginning of the error that Python has raised since 3.15 in place of the one that ``x`` raises in ``"%.3f" % x``.
FORMAT_ERROR: Final = "format argument"


def note_answer(answer: Any) -> None:
    """Note an answer on which Python branches, on the path that is followed in this thread, if there is one."""
    known = followed_paths.get(get_ident())
    path = None if known is None else known()
    if path is not None:
        path.take(answer)


def note_refusal(error: E, message: str = "") -> E:
    """Store ``message``, or else the text of ``error``, in ``pending_refusals``; return ``error``, to be raised."""
    pending_refusals[get_ident()] = message or str(error)
    return error


class Repetition:
    """Repetition of a part of a run, in which finished runs of transforms record again.

    Attributes:
        start: the lowest level of the finished runs that take part.
        below: the level from which on runs do not take part.
        traces: the known traces among these runs.
        thread: the thread that repeats the part.
        joined_by_threads: whether other threads, started by the repeated function, have taken part.
    """

    __slots__ = ("below", "joined_by_threads", "start", "thread", "traces")

    def __init__(self, start: int, below: int, traces: tuple[Any, ...]) -> None:
        self.start, self.below, self.traces = start, below, traces
        self.thread, self.joined_by_threads = get_ident(), False


#: Repetitions in this context.
repetitions: ContextVar[tuple[Repetition, ...]] = ContextVar("repeating", default=())
#: Repetitions in all threads. A thread that a repeated function starts may have an empty context.
all_repetitions: dict[Repetition, None] = {}


def active_traces() -> list[Any]:
    """Return the runs that have not finished, and the runs that are repeated in this context."""
    return [*unfinished_traces(), *[trace for run in repetitions.get() for trace in run.traces]]


def unfinished_traces() -> list[Any]:
    """Return the runs that have not finished, in all threads, oldest first.

    A run that an interrupt kept from being closed disappears with the last reference to it.
    """
    found = []
    for level, known in list(open_traces.items()):
        trace = known()
        if trace is None:
            open_traces.pop(level, None)
        else:
            found.append(trace)
    return found
