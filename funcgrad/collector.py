"""Python's cyclic collector beside long tapes.

A tape is many small tuples, none of them garbage while it is being recorded, and the collector looks at all of them
each time the objects of the process have become a quarter more: up to half of the time of a million records. So what
has survived a full collection, while a long tape grows, is left out of the next ones until a recording ends. The
collector is not paused: what is made later is collected as always, and ``gc.collect()`` leaves nothing out.

What has survived the middle generation only must stay: to leave that out too saves a tenth more, but of a program that
makes cycles which live for a while nearly all would be kept until the end.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["release", "spare", "sparing"]

#: Records that are worth it.
LONG = 1_000
#: Whether something is left out now.
sparing = False


def spare(recorded: Callable[[], int]) -> None:
    """From now on leave out what has survived while tapes grow; ``recorded()`` says how many records open ones have.

    A program that uses ``gc.freeze`` itself is let alone.
    """
    automatic, before = False, 0

    def watch(phase: str, info: dict[str, Any]) -> None:
        global sparing
        nonlocal automatic, before
        if info["generation"] != 2:
            return
        if phase == "start":
            automatic = gc.isenabled() and gc.get_count()[0] > gc.get_threshold()[0]  # nobody has asked for it
            if sparing and not automatic:
                release()
            return
        now = recorded()
        if automatic and now >= LONG and now > before and (sparing or not gc.get_freeze_count()):
            gc.freeze()
            sparing = True
        before = now

    if sys.version_info < (3, 14):  # later collectors go through the objects in small steps
        gc.callbacks.append(watch)


def release() -> None:
    """Leave out nothing any more."""
    global sparing
    sparing = False
    gc.unfreeze()
