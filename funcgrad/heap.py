"""Memory that the process keeps from one call to the next, by settings of GNU's C library.

Most large arrays are freed soon. GNU's C library returns their memory to the system at once, and gets memory for new
arrays page by page, zeroed. That takes half of the time of elementwise work on arrays of a few hundred kilobytes and
more. The first transform of a process therefore tells the C library to allocate arrays of up to 32 MiB on the heap, and
to return free memory at the end of the heap only above 256 MiB. See mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.
The C library raises the first threshold by itself after a program has freed a block of that size.

The environment variable ``FUNCGRAD_KEEP_MEMORY`` sets another number of MiB than 256; 0 leaves the settings unchanged.
Settings of malloc in the environment, such as ``MALLOC_TRIM_THRESHOLD_``, take precedence. Other C libraries have none.
"""

from __future__ import annotations

import ctypes
import os
import sys

from funcgrad.errors import InputError

#: Whether ``configure_malloc`` has not been called yet.
not_configured = True
#: Number of MiB of free memory that the heap keeps, and size in MiB of the largest array that is put on the heap.
KEPT_MIB, LARGEST_MIB = 256, 32
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # their numbers in malloc.h


def configure_malloc() -> bool:
    """Let the C library keep the memory of freed large arrays. The first transform of a process calls this function.

    Returns:
        Whether the settings were changed.

    Raises:
        InputError: ``FUNCGRAD_KEEP_MEMORY`` is not a number of MiB.
    """
    global not_configured
    kept = _requested_mib()
    not_configured = False
    if not kept or sys.platform != "linux" or _is_set_by_user():
        return False
    try:
        mallopt = ctypes.pythonapi.mallopt  # pythonapi keeps the function; a new library object would become garbage
    except AttributeError:  # another C library
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGEST_MIB << 20) and mallopt(_M_TRIM_THRESHOLD, kept << 20))


def _requested_mib() -> int:
    asked = os.environ.get("FUNCGRAD_KEEP_MEMORY", str(KEPT_MIB))
    if not asked.isdecimal() or int(asked) > 2047:  # mallopt takes a C int
        raise InputError(
            f"FUNCGRAD_KEEP_MEMORY in the environment must be a number of MiB from 0 to 2047, got {asked!r}. "
            "Set it to 0 to leave the C library as it is, or unset it."
        )
    return int(asked)


def _is_set_by_user() -> bool:
    """Whether the environment already sets options of malloc."""
    return any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")
