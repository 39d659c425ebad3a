"""Arrays kept in files instead of memory, for runs whose snapshots are larger than it."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.core import Tracer, twin
from funcgrad.errors import InputError

__all__ = ["snapshots_in"]

#: Smaller arrays stay in memory, in bytes: a file has a block of that size at least.
_SMALL = 4096


def snapshots_in(call: str, folder: Any) -> Callable[[Any], Any]:
    """A function that writes a leaf to a file in ``folder`` and gives one that lies there.

    A file loses its name as soon as it is open, so that the system frees it when nobody needs the array any more,
    also where the process is killed. Where a system does not allow that, it is removed with the array.

    Args:
        call: the public call, for messages.
        folder: where the files are made; it must be there.

    Raises:
        InputError: there is no such folder (a ``TypeError``).
        OSError: when called, a file cannot be written, for instance because the disk is full.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     there = snapshots_in("checkpoint_chain", folder)(np.arange(1000.0))
        ...     print(there[-1], list(Path(folder).iterdir()))
        999.0 []
    """
    place = Path(os.fspath(folder)) if isinstance(folder, (str, os.PathLike)) else None
    if place is None or not place.is_dir():
        raise InputError(f"{call}: store must be a folder that is there, got {folder!r}. Make it, or leave it out.")

    def keep(x: Any) -> Any:
        if isinstance(x, Tracer):
            kept = keep(x.value)
            if kept is x.value:
                return x
            copy = twin(x)
            if isinstance(copy, Tracer):
                copy.value = kept
                return copy
            return kept  # a buffer's array
        return _mapped(call, x, place) if type(x) is np.ndarray and x.nbytes >= _SMALL and not x.dtype.hasobject else x

    return keep


def _mapped(call: str, x: Any, folder: Path) -> Any:
    """``x`` as an array of the same layout that lies in a file."""
    handle, name = tempfile.mkstemp(prefix="funcgrad-", suffix=".snapshot", dir=folder)
    order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(np.ascontiguousarray(x.T if order == "F" else x).view(np.uint8).data)
        mapped = np.memmap(name, x.dtype, "c", shape=x.shape, order=order)  # type: ignore[call-overload]
    except BaseException as error:
        _remove(name)
        if isinstance(error, OSError):
            raise OSError(
                error.errno,
                f"{call}: a snapshot of {x.nbytes} bytes cannot be written to {str(folder)!r}, got {error.strerror}. "
                "Make room, name another folder (store), or keep fewer snapshots (budget).",
            ) from error
        raise
    try:
        os.unlink(name)
    except OSError:
        weakref.finalize(mapped, _remove, name)
    return np.asarray(mapped)


def _remove(name: str) -> None:
    """Remove a file that may be gone."""
    try:
        os.unlink(name)
    except FileNotFoundError:
        pass
