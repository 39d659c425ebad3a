"""Arrays kept in a file instead of memory, for runs whose snapshots are larger than it."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from funcgrad.core import Tracer, twin
from funcgrad.errors import InputError

__all__ = ["Store"]

#: Smaller arrays stay in memory, in bytes; larger ones begin at a multiple of it.
_SMALL = 4096


class Store:
    """One file without a name, in which arrays lie until they are taken out: their places are used again.

    The system frees the file when nobody needs it any more, also where the process is killed. Where a system knows no
    such files, it is removed when it is closed.

    Args:
        call: the public call, for messages.
        folder: where the file is made; it must be there.

    Raises:
        InputError: there is no such folder (a ``TypeError``).

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
            raise InputError(f"{call}: store must be a folder that is there, got {folder!r}. Make it, or leave it out.")
        self._lock, self._end = Lock(), 0
        self._free: dict[int, list[int]] = {}  # by their sizes the places that nobody needs any more

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def put(self, x: Any) -> Any:
        """What stands for ``x``, whose arrays lie in the file from now on.

        Raises:
            OSError: they cannot be written, for instance because the disk is full.
        """
        if isinstance(x, Tracer):
            return _with_value(x, self.put(x._val))
        if type(x) is not np.ndarray or x.nbytes < _SMALL or x.dtype.hasobject:
            return x
        size = -(-x.nbytes // _SMALL) * _SMALL
        order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
        try:
            return self._written(np.ascontiguousarray(x.T if order == "F" else x), _Place(self, size, x, order))
        except OSError as error:
            raise OSError(
                error.errno,
                f"{self.call}: a snapshot of {x.nbytes} bytes cannot be written to {str(self.folder)!r}, got "
                f"{error.strerror}. Make room, name another folder (store), or keep fewer snapshots (budget).",
            ) from error

    def take(self, x: Any) -> Any:
        """What ``put`` got: of arrays others of the same numbers and the same layout.

        Raises:
            OSError: the file is shorter than it was.
        """
        if isinstance(x, Tracer):
            return _with_value(x, self.take(x._val))
        if type(x) is not _Place:
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

    def _written(self, x: Any, place: _Place) -> _Place:
        rest = memoryview(x.reshape(-1).view(np.uint8))
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115  # closed when nobody has it
                    buffering=0, prefix="funcgrad-", suffix=".snapshots", dir=self.folder
                )
            free = self._free.setdefault(place.size, [])
            start = free.pop() if free else self._end
            self._file.seek(start)
            while rest:
                rest = rest[self._file.write(rest) :]
            self._end, place.start = max(self._end, start + place.size), start
        return place

    def free(self, place: _Place) -> None:
        """Let another array lie at ``place``."""
        if place.start >= 0:
            self._free[place.size].append(place.start)


class _Place:
    """An array in the file."""

    __slots__ = ("dtype", "nbytes", "order", "shape", "size", "start", "store")

    def __init__(self, store: Store, size: int, x: Any, order: Any) -> None:
        self.store, self.size, self.start = store, size, -1  # nowhere yet
        self.shape, self.dtype, self.nbytes, self.order = x.shape, x.dtype, x.nbytes, order

    def __del__(self) -> None:
        self.store.free(self)

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes in a file>"


def _with_value(x: Tracer, value: Any) -> Any:
    """A tracer like ``x`` that stands for ``value``; of a buffer the value."""
    if value is x._val:
        return x
    made = twin(x)
    if not isinstance(made, Tracer):
        return value
    made._val = value
    return made
