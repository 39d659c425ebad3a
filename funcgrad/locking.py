"""How threads share tracers that a program writes to.

Writes are made one after the other, under ``changing``: a write reads what it changes. They store what changes without
a call in between, so who reads ``value``, ``_trace`` and ``link`` of a tracer without a call in between, and takes no
lock, finds what belongs together: CPython switches between threads at calls and jumps. The record of an operation takes
its number after it has read those of its parents, which are the older ones then.
"""

from __future__ import annotations

import threading
from typing import Final

__all__ = ["changing"]

#: Who lets a tracer refer to another value holds this. One lock for all, as a write may look at other arrays. What is
#: done under it ends in a name and is returned after it, so that an interrupt behind the last call lets go of it too.
changing: Final = threading.RLock()
