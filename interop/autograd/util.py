"""Small helpers of HIPS autograd's ``util``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["subval", "subvals"]


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """``x`` as a tuple in which for each pair ``(i, v)`` the entry ``i`` is ``v``.

    Example:
        >>> subvals((1, 2, 3), [(0, 10), (-1, 30)])
        (10, 2, 30)
    """
    entries = list(x)
    for i, v in ivs:
        entries[i] = v
    return tuple(entries)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """``x`` as a tuple whose entry ``i`` is ``v``.

    Example:
        >>> subval((1, 2), 1, 20)
        (1, 20)
    """
    return subvals(x, [(i, v)])
