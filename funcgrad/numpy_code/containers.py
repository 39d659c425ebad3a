"""Containers of the program in rebuilt functions: containers of the same kind, with translated members."""

from __future__ import annotations

import copy
import functools
import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

from funcgrad.numpy_code.members import stamps_of
from funcgrad.numpy_code.replacements import PLAIN_TYPES, current_run
from funcgrad.writable import is_buffer

#: Types of containers that a program adds entries to while it runs.
_GROWING = frozenset((dict, list, OrderedDict, defaultdict, deque))
#: Types of containers that cannot change.
_FIXED = frozenset((tuple, frozenset))
CONTAINERS = _GROWING | _FIXED | {set, MappingProxyType}
#: Length of a dictionary whose values are translated when they are looked up: a registry, of which a run needs little.
_LARGE = 32


def translated_container(value: Any, translate: Any) -> tuple[Any, bool]:
    """Return a container of translated members, or ``value`` itself if no member changes; and whether it lasts."""
    kind = type(value)
    is_named = isinstance(value, (dict, MappingProxyType))
    keys, members = (list(value), list(value.values())) if is_named else ([], list(value))  # a registry may grow
    plain_keys = PLAIN_TYPES.issuperset(map(type, keys)) or all(map(is_plain_key, keys))
    if plain_keys and PLAIN_TYPES.issuperset(map(type, members)):
        return (value, True) if kind in _FIXED else _unchanged(value, translate)
    if len(members) > _LARGE and _is_known(translate.unchanged.get(id(value)), value, keys, members):
        return _unchanged(value, translate)
    if kind not in _FIXED:
        translate.memoise(value, value)  # it may contain itself
    found, lasts = [], plain_keys
    for place, member in enumerate(members):
        ours, always = translate(member)
        found.append(ours)
        lasts = lasts and always and not stamps_of(ours)  # the program may change its class
        if ours is not member and kind is dict and plain_keys and len(keys) > _LARGE and not _holds_array(member):
            known = dict(zip(keys[: place + 1], found, strict=True))
            return _in_this_run(value, Registry(value, translate, known), translate)
    names = keys if plain_keys else [key if is_plain_key(key) else translate(key)[0] for key in keys]
    is_unchanged = all(map(operator.is_, found, members)) and all(map(operator.is_, names, keys))
    if kind in _FIXED and lasts:
        return value if is_unchanged else kind(found), True
    if not is_unchanged:
        return _in_this_run(value, _refilled(kind, value, names, found, translate), translate)
    if lasts and len(members) > _LARGE:
        translate.unchanged[id(value)] = value, keys, members
    return _unchanged(value, translate)


def _is_known(known: tuple[Any, list[Any], list[Any]] | None, value: Any, keys: list[Any], members: list[Any]) -> bool:
    """Whether a container holds what it held when no member of it had to be replaced, in any run."""
    return (
        known is not None
        and known[0] is value
        and (len(known[1]), len(known[2])) == (len(keys), len(members))
        and all(map(operator.is_, known[1], keys))
        and all(map(operator.is_, known[2], members))
    )


def _unchanged(value: Any, translate: Any) -> tuple[Any, bool]:
    """Return ``value`` itself: what the run puts into the container stays there afterwards, as in a cache."""
    if type(value) in _GROWING:
        current_run().at_end(functools.partial(_unwrap_buffers, value))
    return _in_this_run(value, value, translate)


def _in_this_run(value: Any, found: Any, translate: Any) -> tuple[Any, bool]:
    """Return the replacement ``found``, which is valid until the run ends."""
    translate.memoise(value, found)
    return found, False


def _refilled(kind: type, value: Any, names: list[Any], found: list[Any], translate: Any) -> Any:
    if kind is defaultdict:
        return defaultdict(translate(value.default_factory)[0], zip(names, found, strict=True))
    if kind is MappingProxyType:
        return MappingProxyType(dict(zip(names, found, strict=True)))
    if kind in (dict, OrderedDict):
        return kind(zip(names, found, strict=True))
    return deque(found, value.maxlen) if kind is deque else kind(found)


def is_plain_key(key: Any) -> bool:
    """Whether a key of a dictionary needs no translation."""
    return type(key) in PLAIN_TYPES or (type(key) is tuple and all(map(is_plain_key, key)))


def _holds_array(member: Any) -> bool:
    """Whether the first value in nested containers is an array: they may be parameters, which transforms take apart."""
    while type(member) in CONTAINERS and member:
        member = next(iter(member.values() if isinstance(member, (dict, MappingProxyType)) else member))
    return isinstance(member, np.ndarray)


def _unwrap_buffers(container: Any) -> None:
    """Put arrays in place of the buffers that the run put into a user's container that replaced itself."""
    places = list(container.items() if isinstance(container, dict) else enumerate(container))
    for place, value in places:
        if is_buffer(value):
            container[place] = np.array(value._val)


def _of_whole(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of ``dict`` that first translates all values of a registry."""

    def run(self: Any, *args: Any) -> Any:
        for key in dict.keys(self):
            self[key]
        return method(self, *args)

    return run


class Registry(dict[Any, Any]):
    """A large dictionary whose values are translated when they are looked up, or all when it is used as a whole.

    Args:
        value: the dictionary of the program.
        translate: the translator.
        known: the values that have been translated, by key.
    """

    __slots__ = ("_known", "_translate")

    def __init__(self, value: dict[Any, Any], translate: Any, known: dict[Any, Any]) -> None:
        super().__init__(value)
        super().update(known)
        self._translate, self._known = translate, set(known)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return dict

    def as_is(self) -> dict[Any, Any]:
        """Return a copy in which other values than those looked up are not translated."""
        return dict(dict.items(self))

    @staticmethod
    def type_of(_: Any) -> type:
        """Return what ``type`` returns in rebuilt code."""
        return dict

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        if key not in self._known:
            self[key] = value = self._translate(value)[0]
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._known.add(key)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._known.discard(key)

    def __iter__(self) -> Iterator[Any]:  # with a method of its own, Python reads items one by one, as ``dict(d)``
        return iter(self.keys())

    def get(self, key: Any, default: Any = None) -> Any:
        """Return a translated value, or ``default``."""
        if key in self:
            return self[key]
        return default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return a translated value; insert ``default`` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Insert items."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)

    __eq__, __ne__ = _of_whole(dict.__eq__), _of_whole(dict.__ne__)
    __or__, __ror__, __repr__ = _of_whole(dict.__or__), _of_whole(dict.__ror__), _of_whole(dict.__repr__)
    copy, items, values = _of_whole(dict.copy), _of_whole(dict.items), _of_whole(dict.values)
    pop, popitem = _of_whole(dict.pop), _of_whole(dict.popitem)
