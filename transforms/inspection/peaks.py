"""The peak of memory in parts of a run, by ``tracemalloc``: that of the whole process, all threads together."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Peaks"]

_lock = threading.Lock()
_active: list[Peaks] = []
_started = False


class Peaks:
    """While this block is open memory is traced; several may be open at once.

    Attributes:
        found: by the name of a part the most bytes in use, above those in use before the first part.

    Example:
        >>> with Peaks() as peaks:
        ...     with peaks.part("first"):
        ...         _ = bytes(100_000)
        >>> peaks.found["first"] >= 100_000
        True
    """

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self._before: int | None = None
        self._seen = 0

    def __enter__(self) -> Peaks:
        global _started
        with _lock:
            _active.append(self)
            if not tracemalloc.is_tracing():
                tracemalloc.start()
                _started = True
        return self

    def __exit__(self, *exc: object) -> None:
        global _started
        with _lock:
            _active.remove(self)
            if _started and not _active:
                tracemalloc.stop()
                _started = False

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The block of a part."""
        _begin_anew()
        self._seen = 0
        if self._before is None:
            self._before = tracemalloc.get_traced_memory()[0]
        yield
        self.found[name] = max(self._seen, tracemalloc.get_traced_memory()[1]) - self._before


def _begin_anew() -> None:
    """Let the peak begin anew, for all who measure it: there is only one."""
    with _lock:
        peak = tracemalloc.get_traced_memory()[1]
        for one in _active:
            one._seen = max(one._seen, peak)
        tracemalloc.reset_peak()
