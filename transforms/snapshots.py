"""Arrays kept in a file instead of memory, for runs whose snapshots are larger than the memory."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from funcgrad.core import Tracer, shallow_copy
from funcgrad.errors import InputError

#: Size in bytes below which arrays stay in memory; larger arrays begin at a multiple of it in the file.
_SMALL = 4096


class Store:
    """Unnamed file that stores arrays as long as their placeholders live, and then uses their space again.

    The system frees the file when no process has it open, even if the process is killed. On systems without unnamed
    files the file is removed when it is closed.

    Args:
        call: the public call, for messages.
        folder: the folder in which the file is made; it must exist.

    Raises:
        InputError: the folder does not exist (a ``TypeError``).

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store("checkpoint_chain", folder)
        ...     there = store.put(np.arange(1000.0))
        ...     print(there, store.take(there)[-1], list(Path(folder).iterdir()))
        <8000 bytes in a file> 999.0 []
    """

    def __init__(self, call: str, folder: Any) -> None:
        self._file: Any = None
        self.call, self.folder = call, Path(os.fspath(folder)) if isinstance(folder, (str, os.PathLike)) else None
        if self.folder is None or not self.folder.is_dir():
            raise InputError(f"{call}: store must be an existing folder, got {folder!r}. Make it, or leave it out.")
        self._lock, self._end = Lock(), 0
        self._free: dict[int, list[int]] = {}  # offsets of free space in the file, by size

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def put(self, x: Any) -> Any:
        """Write the arrays of ``x`` to the file and return a placeholder for ``x``. Small arrays stay in memory.

        Raises:
            OSError: the arrays cannot be written, for instance because the disk is full.
        """
        if isinstance(x, Tracer):
            return _with_value(x, self.put(x._val))
        if type(x) is not np.ndarray or x.nbytes < _SMALL or x.dtype.hasobject:
            return x
        size = -(-x.nbytes // _SMALL) * _SMALL
        order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
        try:
            return self._write(np.ascontiguousarray(x.T if order == "F" else x), _StoredArray(self, size, x, order))
        except OSError as error:
            raise OSError(
                error.errno,
                f"{self.call}: a snapshot of {x.nbytes} bytes cannot be written to {str(self.folder)!r}, got "
                f"{error.strerror}. Make room, name another folder (store), or keep fewer snapshots (budget).",
            ) from error

    def take(self, x: Any) -> Any:
        """Return the value that ``put`` received; arrays read from the file are new, with the same layout.

        Raises:
            OSError: the file is shorter than it was.
        """
        if isinstance(x, Tracer):
            return _with_value(x, self.take(x._val))
        if type(x) is not _StoredArray:
            return x
        found: Any = np.empty(x.shape, x.dtype, x.order)
        rest = memoryview((found.T if x.order == "F" else found).reshape(-1).view(np.uint8))
        with self._lock:
            self._file.seek(x.start)
            while rest:
                count = self._file.readinto(rest)
                if not count:
                    raise OSError(
                        errno.EIO,
                        f"{self.call}: a snapshot cannot be read from {str(self.folder)!r}, got {x.nbytes - len(rest)} "
                        f"of its {x.nbytes} bytes: something has cut the file short. Name another folder (store).",
                    )
                rest = rest[count:]
        return found

    def _write(self, x: Any, stored: _StoredArray) -> _StoredArray:
        rest = memoryview(x.reshape(-1).view(np.uint8))
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115  # closed together with the store
                    buffering=0, prefix="funcgrad-", suffix=".snapshots", dir=self.folder
                )
            free = self._free.setdefault(stored.size, [])
            start = free.pop() if free else self._end
            self._file.seek(start)
            while rest:
                rest = rest[self._file.write(rest) :]
            self._end, stored.start = max(self._end, start + stored.size), start
        return stored

    def free(self, stored: _StoredArray) -> None:
        """Release the space of ``stored`` for another array."""
        if stored.start >= 0:
            self._free[stored.size].append(stored.start)


class _StoredArray:
    """Placeholder for an array in the file."""

    __slots__ = ("dtype", "nbytes", "order", "shape", "size", "start", "store")

    def __init__(self, store: Store, size: int, x: Any, order: Any) -> None:
        self.store, self.size, self.start = store, size, -1  # not written yet
        self.shape, self.dtype, self.nbytes, self.order = x.shape, x.dtype, x.nbytes, order

    def __del__(self) -> None:
        self.store.free(self)

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes in a file>"


def _with_value(x: Tracer, value: Any) -> Any:
    """Return a tracer like ``x`` that holds ``value``; if ``x`` is a buffer, return ``value``."""
    if value is x._val:
        return x
    made = shallow_copy(x)
    if not isinstance(made, Tracer):
        return value
    made._val = value
    return made
