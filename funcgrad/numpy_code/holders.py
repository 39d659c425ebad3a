"""Objects of Python's library that hold others: weak references, ``UserDict``, variables of a thread or a context."""

from __future__ import annotations

import weakref
from collections import ChainMap, UserDict, UserList
from collections.abc import Callable
from contextvars import ContextVar
from threading import local
from typing import Any

__all__ = ["HOLDERS"]

_Translate = Callable[[Any], tuple[Any, bool]]


class _TranslatedVariable:
    """Context variable whose value is translated when it is asked for."""

    def __init__(self, variable: ContextVar[Any], translate: _Translate) -> None:
        self.variable, self.translate = variable, translate

    def __getattr__(self, name: str) -> Any:
        return getattr(self.variable, name)

    def get(self, *default: Any) -> Any:
        return self.translate(self.variable.get(*default))[0]


def _reference(value: Any, translate: _Translate) -> Any:
    """Return a weak reference to the replacement, which lives until the run ends; ``value`` if there is none."""
    held = value()
    found = translate(held)[0]
    return value if found is held else type(value)(found)


def _proxy(value: Any, translate: _Translate) -> Any:
    held = value.__repr__.__self__  # a proxy passes on every lookup of an attribute
    found = translate(held)[0]
    return value if found is held else weakref.proxy(found)


def _weak_set(value: Any, translate: _Translate) -> Any:
    members = list(value)
    found = [translate(x)[0] for x in members]
    return type(value)(found) if _differ(found, members) else value


def _weak_dictionary(value: Any, translate: _Translate) -> Any:
    items = list(value.items())
    found = [(translate(key)[0], translate(x)[0]) for key, x in items]
    changed = any(_differ(new, old) for new, old in zip(found, items, strict=True))
    return type(value)(found) if changed else value


def _with_data(value: Any, translate: _Translate) -> Any:
    found = translate(value.data)[0]
    if found is value.data:
        return value
    made = type(value)()
    made.data = found
    return made


def _chain(value: Any, translate: _Translate) -> Any:
    found = [translate(part)[0] for part in value.maps]
    return type(value)(*found) if _differ(found, value.maps) else value


def _of_this_thread(value: Any, translate: _Translate) -> Any:
    """Return a ``threading.local`` that holds the replacements for what this thread stored."""
    given = dict(vars(value))
    found = translate(given)[0]
    if found is given:
        return value
    made = local()
    vars(made).update(found)
    return made


def _differ(found: Any, given: Any) -> bool:
    return any(new is not old for new, old in zip(found, given, strict=True))


#: Functions that rebuild an object of Python's library with what it holds, by type.
HOLDERS: dict[Any, Callable[[Any, _Translate], Any]] = {
    ChainMap: _chain,
    ContextVar: _TranslatedVariable,
    UserDict: _with_data,
    UserList: _with_data,
    local: _of_this_thread,
    weakref.WeakMethod: _reference,
    weakref.WeakSet: _weak_set,
    weakref.ref: _reference,
    **dict.fromkeys((weakref.CallableProxyType, weakref.ProxyType), _proxy),
    **dict.fromkeys((weakref.WeakKeyDictionary, weakref.WeakValueDictionary), _weak_dictionary),
}
