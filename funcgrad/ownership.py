"""Whether anybody else holds an array: then it must not be overwritten.

Reference counts tell. What a lone array counts depends on the interpreter, so it is measured, by the same
steps as it is asked later. Without the interpreter's lock the counts of other threads are not seen, and
nothing counts as alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["argument_is_alone", "entry_is_alone", "held_by", "is_alone", "is_alone_in", "kept_apart"]

_LOCKED = getattr(sys, "_is_gil_enabled", lambda: True)()


def held_by(holder: Any, name: str) -> int:
    """How many references there are to the attribute ``name`` of ``holder``."""
    return sys.getrefcount(getattr(holder, name))


class _Holder:
    __slots__ = ("value",)

    value: Any


def _lone_attribute() -> int:
    holder = _Holder()
    holder.value = np.empty(1)
    return held_by(holder, "value")


def is_alone_in(holder: Any, name: str) -> bool:
    """Whether the attribute ``name`` of ``holder`` is an ndarray with its own memory that nobody else holds.

    Example:
        >>> from types import SimpleNamespace
        >>> box = SimpleNamespace(value=np.ones(2))
        >>> is_alone_in(box, "value")
        True
        >>> other = box.value[:1]
        >>> is_alone_in(box, "value")
        False
    """
    value = getattr(holder, name)
    if value.base is not None or not value.flags.writeable:
        return False
    del value
    return held_by(holder, name) == _ATTRIBUTE


def is_alone(holder: Any, name: str) -> bool:
    """Whether nobody but ``holder`` has its attribute ``name``, a tracer or an ndarray with its own memory."""
    if type(getattr(holder, name)) is np.ndarray:
        return is_alone_in(holder, name)
    return held_by(holder, name) == _ATTRIBUTE


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _as_argument(ct: Any, node: Any) -> int:
    return _references(ct)


def _lone_argument() -> int:
    ct = np.empty(1)
    return _as_argument(ct, None)


def _references_at(values: list[Any], i: int) -> int:
    return sys.getrefcount(values[i])


def kept_apart(values: list[Any], given: Sequence[Any] = ()) -> list[Any]:
    """``values`` with copies of the arrays that somebody else holds, a tape for instance: all can be written to then.

    Those that were ``given`` to the function that made the values are handed through.

    Example:
        >>> held = np.ones(2)
        >>> mine, other = kept_apart([held, np.zeros(2)])
        >>> mine is held, other
        (False, array([0., 0.]))
    """
    through = set(map(id, given))
    return [
        values[i].copy("K") if _is_shared(values, i) and id(values[i]) not in through else values[i]
        for i in range(len(values))
    ]


def entry_is_alone(values: list[Any], i: int) -> bool:
    """Whether nobody but the list ``values`` holds its entry ``i``, a tracer or an ndarray with its own memory."""
    if type(values[i]) is np.ndarray and (values[i].base is not None or not values[i].flags.writeable):
        return False
    return _references_at(values, i) == _ENTRY


def _is_shared(values: list[Any], i: int) -> bool:
    if type(values[i]) is not np.ndarray or not values[i].flags.writeable:
        return False
    return values[i].base is not None or _references_at(values, i) != _ENTRY


_ENTRY = _references_at([np.empty(1)], 0) if _LOCKED else -1
_ATTRIBUTE = _lone_attribute() if _LOCKED else -1
_ARGUMENT = _lone_argument() if _LOCKED else -1


def argument_is_alone(ct: Any) -> bool:
    """Whether only the function that asks, whose argument ``ct`` is, and its caller hold that ndarray or tracer."""
    if sys.getrefcount(ct) != _ARGUMENT:
        return False
    return type(ct) is not np.ndarray or bool(ct.base is None and ct.flags.writeable)
