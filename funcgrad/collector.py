"""Python's cyclic collector beside long tapes.

A tape is many small tuples, none of them garbage while it is being recorded, and the collector looks at all of them
each time the objects of the process have become a quarter more: up to half of the time of a million records. So

- where nearly all that has come since the last full collection is of kinds that make no cycles by themselves, as
  records are, all of it is left out of this one and of the next until a recording ends. Garbage is then a smaller
  part of what has been made than the collector itself lets wait;
- otherwise it goes through everything once, and what has survived is left out of the next ones.

The collector is not paused: what is made later is collected as always, and ``gc.collect()`` leaves nothing out.

What has survived the middle generation only must stay: to leave that out too saves a little more, but of a program that
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
#: Such a share of other objects than records among new ones makes it worth looking for garbage.
_FEW = 1 / 8
#: Whether something is left out now.
sparing = False


def spare(recorded: Callable[[], int], kinds: tuple[type, ...]) -> None:
    """From now on leave out what has been looked at, or need not be, while tapes grow.

    ``recorded()`` says how many records the open tapes have, ``kinds`` what they consist of. A program that uses
    ``gc.freeze`` itself is let alone.
    """
    growing, before = False, 0

    def watch(phase: str, info: dict[str, Any]) -> None:
        global sparing
        nonlocal growing, before
        if info["generation"] != 2:
            return
        if phase == "start":
            automatic = gc.isenabled() and gc.get_count()[0] > gc.get_threshold()[0]  # nobody has asked for it
            if sparing and not automatic:
                release()
            now = recorded()
            new, before = (now - before if now > before else now), now
            growing = automatic and now >= LONG and new > 0 and (sparing or not gc.get_freeze_count())
            if not growing or _others(gc.get_objects(generation=2)[-new:], kinds) > _FEW:
                return  # it goes through what is not left out; "stop" follows
        if growing:
            gc.freeze()
            sparing = True

    if sys.version_info < (3, 14):  # later collectors go through the objects in small steps
        gc.callbacks.append(watch)


def _others(objects: list[Any], kinds: tuple[type, ...]) -> float:
    """How many of some objects are of other kinds, as a share; about a thousand are looked at."""
    some = objects[:: len(objects) // 1_000 + 1]
    return sum(not issubclass(type(x), kinds) for x in some) / (len(some) or 1)


def release() -> None:
    """Leave out nothing any more."""
    global sparing
    sparing = False
    gc.unfreeze()
