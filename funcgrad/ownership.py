"""Whether an array is held elsewhere: then it must not be overwritten, and it is not the caller's own.

Reference counts tell. The count of an array with one holder depends on the interpreter, so it is measured, by the same
steps as in later checks. Without the interpreter's lock the counts of other threads are not seen, and interpreters
other than CPython count differently: there every array counts as shared, and everything is copied.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "Census",
    "LARGE",
    "argument_is_alone",
    "entry_is_alone",
    "held_by",
    "is_alone",
    "is_alone_in",
    "is_temporary",
    "note_shared",
    "own",
]

#: Of arrays with so many elements it pays to look whether they can be overwritten.
LARGE = 10_000
_LOCKED = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
ndarray = np.ndarray


def held_by(holder: Any, name: str) -> int:
    """How many references there are to the attribute ``name`` of ``holder``."""
    return sys.getrefcount(getattr(holder, name))


class _Holder:
    __slots__ = ("_val",)

    _val: Any


def _lone_attribute() -> int:
    holder = _Holder()
    holder._val = np.empty(1)
    return held_by(holder, "_val")


def is_alone_in(holder: Any, name: str) -> bool:
    """Whether the attribute ``name`` of ``holder`` is an ndarray with its own memory and no other holder.

    Example:
        >>> from types import SimpleNamespace
        >>> box = SimpleNamespace(_val=np.ones(2))
        >>> is_alone_in(box, "_val")
        True
        >>> other = box._val[:1]
        >>> is_alone_in(box, "_val")
        False
    """
    value = getattr(holder, name)
    if value.base is not None or not value.flags.writeable:
        return False
    del value
    return sys.getrefcount(getattr(holder, name)) == _ATTRIBUTE


def is_alone(holder: Any, name: str) -> bool:
    """Whether only ``holder`` has its attribute ``name``, a tracer or an ndarray with its own memory."""
    if type(getattr(holder, name)) is np.ndarray:
        return is_alone_in(holder, name)
    return held_by(holder, name) == _ATTRIBUTE


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _as_rule(ct: Any) -> int:
    return _references(ct)


def _as_pull(ct: Any, node: Any) -> int:
    return _as_rule(ct)


def _as_helper(ct: Any, partial: Any) -> int:
    return _references(partial)


def _lone_argument() -> int:
    ct = np.empty(1)
    return _as_pull(ct, None)


def _references_at(values: Sequence[Any], i: int) -> int:
    return sys.getrefcount(values[i])


def _references_of_base(values: Sequence[Any], i: int) -> int:
    return sys.getrefcount(values[i].base)


def own(values: list[Any]) -> list[Any]:
    """``values``, with copies of all arrays that are held elsewhere, or in another place of the list.

    This is the last step of every transform: its results belong to the caller alone. A local variable counts as a
    holder, so drop variables before the call: else the array is copied.

    Example:
        >>> held = np.ones(2)
        >>> mine, other, same = own([held, np.zeros(2), held])
        >>> mine is held, same is held, other
        (False, False, array([0., 0.]))
    """
    for i in range(len(values)):
        if type(values[i]) is not ndarray:
            continue
        # the commonest first: an array with its own memory
        alone = sys.getrefcount(values[i]) == _ENTRY and values[i].base is None and values[i].flags.writeable
        if not alone and not _is_own(values, i):
            values[i] = values[i].copy("K")
    return values


def entry_is_alone(values: list[Any], i: int) -> bool:
    """Whether only the list ``values`` holds its entry ``i``, a tracer or an ndarray with its own memory."""
    if type(values[i]) is ndarray and (values[i].base is not None or not values[i].flags.writeable):
        return False
    return _references_at(values, i) == _ENTRY


def _is_own(values: list[Any], i: int) -> bool:
    """Whether the memory of an array in a list is reached only through it."""
    if sys.getrefcount(values[i]) != _ENTRY:
        return False
    base = values[i].base
    if base is None:
        return bool(values[i].flags.writeable)
    # a view that is all of an array which only this view holds, such as a result that was given its shape
    whole = type(base) is ndarray and base.base is None and base.size == values[i].size and 0 not in values[i].strides
    del base
    # NumPy warns of who asks whether its broadcast arrays can be written to: these are none
    return whole and _references_of_base(values, i) == _BASE and bool(values[i].flags.writeable)


_ENTRY = _references_at([np.empty(1)], 0) if _LOCKED else -1
_BASE = _references_of_base([np.empty(2).reshape(2, 1)], 0) if _LOCKED else -1
_LISTED = sum(map(sys.getrefcount, [np.empty(1)])) if _LOCKED else -1
_ATTRIBUTE = _lone_attribute() if _LOCKED else -1
_ARGUMENT = _lone_argument() if _LOCKED else -1
_TEMPORARY = _as_helper(None, np.empty(1)) if _LOCKED else -1


def is_temporary(x: Any) -> bool:
    """Whether the argument ``x`` of the function that asks was made for this call only."""
    return sys.getrefcount(x) == _TEMPORARY


def argument_is_alone(ct: Any) -> bool:
    """Whether a backward pass alone holds the cotangent ``ct``, an ndarray or tracer.

    A function that a pull calls asks that, of its first argument, see ``reverse.pull_of_each``.
    """
    if sys.getrefcount(ct) != _ARGUMENT:
        return False
    return type(ct) is not np.ndarray or bool(ct.base is None and ct.flags.writeable)


def _first_count(values: list[Any]) -> int:
    for x in values:  # as ``note_shared`` goes
        return sys.getrefcount(x)
    return -1


_ITEM = _first_count([np.empty(1)]) + 1 if _LOCKED else -1  # who holds it, and the list


def note_shared(values: list[Any], note: Callable[[ndarray], None], skipped: frozenset[type]) -> list[Any]:
    """Call ``note`` with the arrays among ``values`` that may be shared; those that are no arrays.

    Args:
        values: a list, made for this call, of what others hold.
        note: called with an array that more than one of them holds, or anybody else, and with each view.
        skipped: the types of what is not to be returned.
    """
    others = []
    for x in values:
        if type(x) is ndarray:
            if sys.getrefcount(x) != _ITEM or x.base is not None:
                note(x)
        elif type(x) not in skipped:
            others.append(x)
    return others


class Census:
    """The arrays of a structure, and how many references the structure has to each.

    Example:
        >>> held = np.ones(2)
        >>> structure = [held, np.ones(2)]
        >>> census = Census()
        >>> census.note(structure[0])
        >>> census.note(structure[1])
        >>> list(census.copies()) == [id(held)]
        True
    """

    __slots__ = ("_noted", "note")

    def __init__(self) -> None:
        self._noted: list[Any] = []
        #: Count a reference of the structure to an array. Each must be counted.
        self.note: Callable[[ndarray], None] = self._noted.append

    def copies(self) -> dict[int, ndarray]:
        """Copies of the arrays that somebody else holds too, by the identity of the array."""
        arrays = list({id(x): x for x in self._noted}.values())
        bases = [i for i in range(len(arrays)) if arrays[i].base is not None]
        # nobody's count is below what the structure and this census hold, so the sums tell whether any is above it
        if not bases and sum(map(sys.getrefcount, arrays)) == _LISTED * len(arrays) + 2 * len(self._noted):
            return {}  # the commonest
        counts = Counter(map(id, self._noted))  # in the order of ``arrays``
        self._noted.clear()
        shared = [sys.getrefcount(arrays[i]) != _ENTRY + counts[id(arrays[i])] for i in range(len(arrays))]
        places = {key: i for i, key in enumerate(counts)}
        views: dict[int, int] = {}  # by the identity of an array: how many of the others are views of it
        for i in bases:
            # memory that is not NumPy's own may be written to by whoever gave it
            if type(arrays[i].base) is ndarray and arrays[i].base.base is None:
                views[id(arrays[i].base)] = views.get(id(arrays[i].base), 0) + 1
        for key, n in views.items():
            if key in places:
                i = places[key]
                shared[i] = sys.getrefcount(arrays[i]) != _ENTRY + counts[key] + n
        for i in bases:
            base = id(arrays[i].base)
            if not shared[i]:
                known = base in views and _references_of_base(arrays, i) == _BASE - 1 + views[base]
                shared[i] = shared[places[base]] if base in places else not known
        return {id(arrays[i]): arrays[i].copy("K") for i in range(len(arrays)) if shared[i]}
