"""Memory that the process keeps from one call for the next.

Large arrays live for a moment. GNU's C library returns their memory to the system at once, and gets memory for the next
ones page by page, zeroed: half of the time of elementwise work on arrays of some hundred kilobytes and up. So the
first transform of a process tells it to take arrays of up to 32 MiB from the process's own memory, and to return free
memory at the end of that only above 256 MiB. See mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD; the library raises
the first by itself once a program has freed a block of that size.

``FUNCGRAD_KEEP_MEMORY`` in the environment sets another number of MiB; 0 leaves the library unchanged. So do settings
for it in the environment, such as ``MALLOC_TRIM_THRESHOLD_``, and other C libraries.
"""

from __future__ import annotations

import ctypes
import os
import sys

from funcgrad.errors import InputError

__all__ = ["keep", "unasked"]

#: True until the first call of ``keep``.
unasked = True
#: MiB that are kept, and the MiB of the largest array that they are kept for.
KEPT, LARGEST = 256, 32
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # their numbers in malloc.h


def keep() -> bool:
    """Let the C library keep what large arrays leave. The first run of a transform in a process calls it.

    Returns:
        Whether it does now.

    Raises:
        InputError: ``FUNCGRAD_KEEP_MEMORY`` is no number of MiB.
    """
    global unasked
    kept = _wanted()
    unasked = False
    if not kept or sys.platform != "linux" or _settled():
        return False
    try:
        tell = ctypes.pythonapi.mallopt  # kept there, where a library object of its own would be garbage
    except AttributeError:  # not GNU's
        return False
    return bool(tell(_M_MMAP_THRESHOLD, LARGEST << 20) and tell(_M_TRIM_THRESHOLD, kept << 20))


def _wanted() -> int:
    """MiB to keep."""
    asked = os.environ.get("FUNCGRAD_KEEP_MEMORY", str(KEPT))
    if not asked.isdecimal() or int(asked) > 2047:  # mallopt takes an int of C
        raise InputError(
            f"FUNCGRAD_KEEP_MEMORY in the environment must be a number of MiB from 0 to 2047, got {asked!r}. "
            "Set it to 0 to leave the C library as it is, or unset it."
        )
    return int(asked)


def _settled() -> bool:
    """Whether the environment says how the C library is to do it."""
    return any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")
