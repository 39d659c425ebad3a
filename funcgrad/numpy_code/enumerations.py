"""Enumerations of a program whose members have methods or functions as values, with these rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, EnumMeta, Flag
from types import FunctionType
from typing import Any

from funcgrad.numpy_code.replacements import PLAIN_TYPES


class _Enumeration(type):
    """Metaclass of the classes that replace enumerations; its members are those of the program, viewed.

    Attributes:
        __original__: the program's class.
        __translate__: see ``translation.Translator``.
        members: the members, by those of the program.
    """

    __original__: Any
    members: dict[Any, Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.members[cls.__original__(*args, **kwargs)]

    def __getitem__(cls, name: str) -> Any:
        return cls.members[cls.__original__[name]]

    def __iter__(cls) -> Iterator[Any]:
        return (cls.members[member] for member in cls.__original__)

    def __reversed__(cls) -> Iterator[Any]:
        return (cls.members[member] for member in reversed(cls.__original__))

    def __len__(cls) -> int:
        return len(cls.__original__)

    def __contains__(cls, x: Any) -> bool:
        return x in cls.members.values() or x in cls.__original__

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or isinstance(x, cls.__original__)

    @property
    def __members__(cls) -> dict[str, Any]:
        return {name: cls.members[member] for name, member in cls.__original__.__members__.items()}


class _Member:
    """Base of the classes that replace enumerations."""

    __slots__ = ("__dict__",)
    _name_: str

    def __hash__(self) -> int:
        return hash(self._original())

    def __eq__(self, other: object) -> bool:
        return self is other or self._original() is other

    def _original(self) -> Any:
        return type(self).__original__[self._name_]  # type: ignore[attr-defined]

    name = property(lambda self: self._name_)
    value = property(lambda self: self._value_)

    def __getattr__(self, name: str) -> Any:
        """Look up an attribute that is translated in each run: a function, an array."""
        own = vars(self._original())
        if name not in own:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return type(self).__translate__(own[name])[0]  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return repr(self._original())

    def __str__(self) -> str:
        return str(self._original())

    def __format__(self, spec: str) -> str:
        return format(self._original(), spec)


#: Members that the enumeration's metaclass adds to each class.
_OF_PYTHON = frozenset(dir(Enum)) | {"_generate_next_value_", "_new_member_", "_use_args_", "_member_names_"}


def is_rebuilt_enumeration(cls: Any) -> bool:
    """Whether a class is an enumeration with methods, or with values such as functions, that may convert values."""
    if not issubclass(type(cls), EnumMeta) or issubclass(cls, Flag) or cls._member_type_ is not object:
        return False
    if cls.__module__.partition(".")[0] in ("numpy", "scipy"):  # whose compiled code gets the members themselves
        return False
    if any(type(member._value_) not in PLAIN_TYPES for member in cls):
        return True
    own = [value for base in cls.__mro__ if base not in (Enum, object) for value in _methods(base).values()]
    return any(type(value) in (FunctionType, staticmethod, classmethod, property) for value in own)


def _methods(cls: Any) -> dict[str, Any]:
    members = getattr(cls, "__members__", {})
    kept = {"__init__", "__new__", *members, *_OF_PYTHON} - {"__call__", "__str__", "__format__", "__repr__"}
    return {name: x for name, x in vars(cls).items() if name not in kept and not name.startswith("_member")}


def enumeration(cls: Any, translate: Any, rebuilt: Callable[[type, str, Any], Any]) -> Any:
    """Return the class that replaces an enumeration.

    Args:
        cls: the enumeration.
        translate: see ``translation.Translator``.
        rebuilt: ``rebuilt(base, name, value)`` returns the replacement for a method or another attribute.
    """
    names: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    for base in reversed(cls.__mro__):
        if base not in (Enum, object):
            names |= {name: rebuilt(base, name, value) for name, value in _methods(base).items()}
    names |= {"__original__": cls, "__translate__": staticmethod(translate), "members": {}}
    made: Any = _Enumeration(cls.__name__, (_Member,), names)
    for name, member in cls.__members__.items():
        view = made.members.get(member)
        if view is None:
            view = object.__new__(made)
            vars(view).update({key: x for key, x in vars(member).items() if type(x) in PLAIN_TYPES})
            made.members[member] = view
        type.__setattr__(made, name, view)
    return made
