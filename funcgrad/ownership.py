"""Checks whether an array is shared: such an array must not be overwritten or handed to a caller as its own.

The checks use reference counts. The count of an array with one holder depends on the interpreter, so this module
measures it by the same steps as in later checks. Counts of other threads are not visible without the GIL, and
interpreters other than CPython count differently. There, every array counts as shared, and everything is copied.

Since Python 3.14 a call borrows the references of the caller's local variables, so ``is_temporary`` and
``is_unshared_argument`` do not see them. Code does not use a value after it has passed the value to a function that
asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

#: Number of elements from which on it pays to check whether an array can be overwritten.
LARGE = 10_000
#: Number of elements up to which a copy takes no longer than to check whether an array is shared.
SMALL = 16
_HAS_COUNTS = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
ndarray = np.ndarray


def _references_of(holder: Any, name: str) -> int:
    return sys.getrefcount(getattr(holder, name))


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _as_rule(ct: Any) -> int:
    return _references(ct)


def _as_vjp(ct: Any) -> int:
    return _as_rule(ct)


def _lone_argument() -> int:
    ct = np.empty(1)
    return _as_vjp(ct)


def _references_at(values: Sequence[Any], i: int) -> int:
    return sys.getrefcount(values[i])


def _references_of_base(values: Sequence[Any], i: int) -> int:
    return sys.getrefcount(values[i].base)


def has_unshared(holder: Any, name: str) -> bool:
    """Whether only ``holder`` refers to its attribute ``name``, a tracer or an ndarray with its own memory."""
    value = getattr(holder, name)
    if type(value) is ndarray and (value.base is not None or not value.flags.writeable):
        return False
    del value
    return _references_of(holder, name) == _ATTRIBUTE


def unshare(values: list[Any]) -> list[Any]:
    """Replace arrays that are shared, also within the list, by copies, in place; return ``values``.

    Example:
        >>> held = np.ones(2)
        >>> mine, other, same = unshare([held, np.zeros(2), held])
        >>> mine is held, same is held, other
        (False, False, array([0., 0.]))
    """
    for i in range(len(values)):
        if type(values[i]) is not ndarray:
            continue
        # fast path: an array with its own memory
        alone = sys.getrefcount(values[i]) == _ENTRY and values[i].base is None and values[i].flags.writeable
        if not alone and not has_unshared_memory(values, i):
            values[i] = values[i].copy("K")
    return values


def is_first_unshared(values: list[Any]) -> bool:
    """Whether only the list ``values`` refers to its first entry, a tracer or an ndarray with its own memory."""
    if type(values[0]) is ndarray and (values[0].base is not None or not values[0].flags.writeable):
        return False
    return _references_at(values, 0) == _ENTRY


def has_unshared_memory(values: list[Any], i: int, part: bool = False) -> bool:
    """Whether the memory of entry ``i``, an array, can be reached only through this entry.

    The entry may be a view of a whole array that only this view holds, such as a reshaped result; or, with ``part``,
    of a part of an array.
    """
    if sys.getrefcount(values[i]) != _ENTRY:
        return False
    base = values[i].base
    if base is None:
        return bool(values[i].flags.writeable)
    whole = type(base) is ndarray and base.base is None
    whole = whole and (part or (base.size == values[i].size and 0 not in values[i].strides))
    del base
    # ``flags.writeable`` of a broadcast array may warn; it is read last, when the array cannot be a broadcast one
    return whole and _references_of_base(values, i) == _BASE and bool(values[i].flags.writeable)


_ENTRY = _references_at([np.empty(1)], 0) if _HAS_COUNTS else -1
_BASE = _references_of_base([np.empty(2).reshape(2, 1)], 0) if _HAS_COUNTS else -1
_LISTED = sum(map(sys.getrefcount, [np.empty(1)])) if _HAS_COUNTS else -1
_ATTRIBUTE = _references_of(SimpleNamespace(array=np.empty(1)), "array") if _HAS_COUNTS else -1
_ARGUMENT = _lone_argument() if _HAS_COUNTS else -1
_TEMPORARY = _as_rule(np.empty(1)) if _HAS_COUNTS else -1


def is_temporary(x: Any) -> bool:
    """Whether the argument ``x`` of the calling function was made for this call only."""
    return sys.getrefcount(x) == _TEMPORARY


def is_unshared_argument(ct: Any) -> bool:
    """Whether only the backward pass holds the cotangent ``ct``, an ndarray or tracer.

    The caller must be a function that a VJP rule calls with ``ct`` as first argument, see ``reverse.vjp_of_each``.
    """
    if sys.getrefcount(ct) != _ARGUMENT:
        return False
    return type(ct) is not np.ndarray or bool(ct.base is None and ct.flags.writeable)


def _first_count(values: list[Any]) -> int:
    for x in values:  # the same loop as in ``note_shared``
        return sys.getrefcount(x)
    return -1


_ITEM = _first_count([np.empty(1)]) + 1 if _HAS_COUNTS else -1  # plus one for the holder besides the list


def note_shared(values: list[Any], note: Callable[[ndarray], None], skipped: frozenset[type]) -> list[Any]:
    """Call ``note`` with the arrays among ``values`` that may be shared; return the values that are not arrays.

    Args:
        values: a list, made for this call, of values in a structure.
        note: called with each view, and with each array that has more than one holder besides the list.
        skipped: types of values that are not returned.
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
    """The arrays of a structure, and the number of references that the structure has to each array.

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
        #: Function that counts a reference of the structure to an array. Call it for each reference.
        self.note: Callable[[ndarray], None] = self._noted.append

    def copies(self) -> dict[int, ndarray]:
        """Return copies of the arrays that have holders outside the structure, by the ``id`` of the array."""
        if not self._noted:
            return {}
        arrays = list({id(x): x for x in self._noted}.values())
        bases = [i for i in range(len(arrays)) if arrays[i].base is not None]
        # no count is below the references from structure and census, so equal sums mean that no count is above them
        if not bases and sum(map(sys.getrefcount, arrays)) == _LISTED * len(arrays) + 2 * len(self._noted):
            return {}  # the most frequent case
        counts: dict[int, int] = {}  # in the order of ``arrays``
        for key in map(id, self._noted):
            counts[key] = counts.get(key, 0) + 1
        self._noted.clear()
        shared = [sys.getrefcount(arrays[i]) != _ENTRY + n for i, n in enumerate(counts.values())]
        if bases:
            self._find_shared_views(arrays, bases, counts, shared)
        return {key: arrays[i].copy("K") for i, key in enumerate(counts) if shared[i]}

    @staticmethod
    def _find_shared_views(arrays: list[Any], bases: list[int], counts: dict[int, int], shared: list[bool]) -> None:
        """Correct ``shared`` for views, which hold their bases, and whose memory others may hold through a base.

        Args:
            arrays: the noted arrays.
            bases: the positions of views among them.
            counts: the number of references that the structure has to each array, by ``id``, in the same order.
            shared: whether each has other holders; changed in place.
        """
        indices = {key: i for i, key in enumerate(counts)}
        views: dict[int, int] = {}  # by the identity of an array: how many of the others are views of it
        for i in bases:
            # memory that NumPy does not own may be written to by its owner
            if type(arrays[i].base) is ndarray and arrays[i].base.base is None:
                views[id(arrays[i].base)] = views.get(id(arrays[i].base), 0) + 1
        for key, n in views.items():
            if key in indices:
                i = indices[key]
                shared[i] = sys.getrefcount(arrays[i]) != _ENTRY + counts[key] + n
        for i in bases:
            base = id(arrays[i].base)
            if not shared[i]:
                known = base in views and _references_of_base(arrays, i) == _BASE - 1 + views[base]
                shared[i] = shared[indices[base]] if base in indices else not known
