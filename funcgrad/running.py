"""Which runs of transforms have not finished."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from weakref import ref

__all__ = ["at_work", "open_traces", "repeating", "running"]

#: The runs (``core.Trace``) that have not finished, by level.
open_traces: dict[int, ref[Any]] = {}


#: Levels ``(from, below, traces)`` of finished runs that work once more, because a part of them is repeated, and those
#: among them that are known.
repeating: ContextVar[tuple[tuple[int, int, tuple[Any, ...]], ...]] = ContextVar("repeating", default=())


def at_work() -> list[Any]:
    """The runs that have not finished, and those that are repeated in this context."""
    return [*running(), *[trace for _, _, traces in repeating.get() for trace in traces]]


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
