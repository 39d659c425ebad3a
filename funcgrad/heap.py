"""Memory that the process keeps from one call for the next.

Large arrays live for a moment. GNU's C library gives what they leave back to the system at once, and the next ones
are handed over page by page, zeroed: half of the time of elementwise work on arrays of some hundred kilobytes and up.
It learns otherwise where a program frees a block of its largest size, 32 MiB: from then on blocks up to that size come
from the process's own memory, of which up to 64 MiB stay when they are free (mallopt(3), "dynamic mmap threshold").
A program that handles images or long series has done so by the way. Here the first transform does it on purpose: it
asks for such a block and never touches it, so that no page of it is ever there.

``FUNCGRAD_KEEP_MEMORY=0`` in the environment lets it be, and so do settings of the C library's own,
``MALLOC_TRIM_THRESHOLD_`` and the like. Elsewhere than on Linux nothing is done.
"""

from __future__ import annotations

import os
import sys

import numpy as np

__all__ = ["LARGEST", "keep", "unasked"]

#: Whether nobody has asked yet.
unasked = True

#: The largest block from which the C library learns, with room for what it writes beside it.
LARGEST = 32 * 2**20 - 3 * 4096


def keep() -> bool:
    """Let the C library keep what large arrays leave. The first run of a transform in a process calls it.

    Returns:
        Whether it was asked to.
    """
    global unasked
    unasked = False
    if sys.platform != "linux" or os.environ.get("FUNCGRAD_KEEP_MEMORY") == "0":
        return False
    try:
        np.empty(LARGEST, np.uint8)
    except MemoryError:  # the process may not have so much, then there is nothing to keep
        return False
    return True
