"""Enumerations of a program whose members have methods or functions as values, with these rebuilt."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from enum import Enum, EnumMeta, Flag, IntEnum, IntFlag, ReprEnum, StrEnum
from functools import partial
from types import FunctionType
from typing import Any

from funcgrad.numpy_code.metaclasses import set_until_end
from funcgrad.numpy_code.replacements import PLAIN_TYPES, current_run

#: Attributes of the members of an enumeration that a program does not change.
_KEPT = ("_name_", "_value_", "_sort_order_")
#: Attribute under which a view keeps the object that it replaces.
SOURCE = "⟨source⟩"


class _Enumeration(type):
    """Metaclass of the classes that replace enumerations; its members are those of the program, viewed.

    Attributes:
        __original__: the program's class.
        __translate__: see ``translation.Translator``.
        members: the members, by those of the program.
    """

    __original__: Any
    members: dict[Any, Any]
    __class__: Any = property(lambda cls: type(cls.__original__))

    __setattr__, __delattr__ = set_until_end(type.__setattr__), set_until_end(type.__delattr__)

    def view(cls, member: Any) -> Any:
        """Return the member for one of the program, or for a combination of its flags; any other value unchanged."""
        if type(member) is not cls.__original__:
            return member
        found = cls.members.get(member)
        if found is None:
            base = cls.__original__._member_type_
            found = base.__new__(cls, *([] if base is object else base.__getnewargs__(member)))
            vars(found).update({key: x for key, x in vars(member).items() if key in _KEPT and type(x) in PLAIN_TYPES})
            vars(found)[SOURCE] = member
            cls.members[member] = found
        return found

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.view(cls.__original__(*map(_original, args), **kwargs))

    def __getitem__(cls, name: str) -> Any:
        return cls.view(cls.__original__[name])

    def __iter__(cls) -> Iterator[Any]:
        return map(cls.view, cls.__original__)

    def __reversed__(cls) -> Iterator[Any]:
        return map(cls.view, reversed(cls.__original__))

    def __len__(cls) -> int:
        return len(cls.__original__)

    def __contains__(cls, x: Any) -> bool:
        return _original(x) in cls.__original__

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or isinstance(x, cls.__original__)

    @property
    def __members__(cls) -> dict[str, Any]:
        return {name: cls.view(member) for name, member in cls.__original__.__members__.items()}


def _original(x: Any) -> Any:
    """Return the program's member for one that replaces it; any other value unchanged."""
    return vars(x)[SOURCE] if isinstance(x, _Member) else x


class _Member:
    """Base of the classes that replace enumerations."""

    def __hash__(self) -> int:
        return hash(_original(self))

    def __eq__(self, other: object) -> bool:
        return bool(_original(self) == _original(other))

    name = property(lambda self: self._name_)
    value = property(lambda self: self._value_)

    def __getattr__(self, name: str) -> Any:
        """Look up an attribute of the program's member, which a program may change."""
        own = vars(_original(self))
        if name not in own:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return type(self).__translate__(own[name])[0]  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute until the run ends."""
        own = vars(self)
        if name not in own:
            current_run().at_end(partial(own.pop, name, None))
        own[name] = value

    def __repr__(self) -> str:
        return repr(_original(self))

    def __str__(self) -> str:
        return str(_original(self))

    def __format__(self, spec: str) -> str:
        return format(_original(self), spec)


def _combining(combine: Callable[..., Any]) -> Any:
    """Return the method that combines flags as the function of ``operator`` does."""

    def combined(self: Any, *other: Any) -> Any:
        return type(self).view(combine(_original(self), *map(_original, other)))

    return combined


class _Flags(_Member):
    """Base of the classes that replace enumerations of flags, which may be combined."""

    __and__ = __rand__ = _combining(operator.and_)
    __or__ = __ror__ = _combining(operator.or_)
    __xor__ = __rxor__ = _combining(operator.xor)
    __invert__ = _combining(operator.invert)

    def __iter__(self) -> Iterator[Any]:
        return map(type(self).view, _original(self))  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(_original(self))

    def __bool__(self) -> bool:
        return bool(_original(self))

    def __contains__(self, other: Any) -> bool:
        return _original(other) in _original(self)


#: Classes of Python whose methods the replacements do not need.
_BASES = frozenset((Enum, IntEnum, StrEnum, ReprEnum, Flag, IntFlag))
#: Members that Python adds to each enumeration, and those that make its members.
_OF_PYTHON = frozenset(
    (
        *dir(Enum),
        *("__dict__", "__init__", "__new__", "__weakref__"),
        *("_generate_next_value_", "_new_member_", "_use_args_"),
    )
) - {"__call__", "__format__", "__repr__", "__str__"}


def is_rebuilt_enumeration(cls: Any) -> bool:
    """Whether a class is an enumeration with methods, or with values such as functions, that may convert values."""
    if not issubclass(type(cls), EnumMeta) or cls._member_type_ not in (object, int, float, str):
        return False
    if cls.__module__.partition(".")[0] in ("numpy", "scipy"):  # whose compiled code gets the members themselves
        return False
    if any(type(member._value_) not in PLAIN_TYPES for member in cls):
        return True
    own = [value for base in own_classes(cls) for value in _methods(base).values()]
    return any(type(value) in (FunctionType, staticmethod, classmethod, property) for value in own)


def own_classes(cls: Any) -> list[Any]:
    """Return the program's classes among ``cls`` and its bases."""
    return [base for base in cls.__mro__ if base not in _BASES and base.__module__ != "builtins"]


def _methods(cls: Any) -> dict[str, Any]:
    kept = _OF_PYTHON.union(getattr(cls, "__members__", ()))
    own = {name: x for name, x in vars(cls).items() if name not in kept and not name.startswith("_member")}
    return {name: x for name, x in own.items() if getattr(x, "__module__", None) != "enum"}  # copied from its bases


def enumeration(cls: Any, translate: Any, rebuilt: Callable[[type, str, Any], Any]) -> Any:
    """Return the class that replaces an enumeration.

    Args:
        cls: the enumeration.
        translate: see ``translation.Translator``.
        rebuilt: ``rebuilt(base, name, value)`` returns the replacement for a method or another attribute.
    """
    names: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    for base in reversed(own_classes(cls)):
        names |= {name: rebuilt(base, name, value) for name, value in _methods(base).items()}
    names |= {"__original__": cls, "__translate__": staticmethod(translate), "members": {}}
    bases = (_Flags if issubclass(cls, Flag) else _Member, *({cls._member_type_} - {object}))
    made: Any = _Enumeration(cls.__name__, bases, names)
    for name, member in cls.__members__.items():
        type.__setattr__(made, name, made.view(member))
    return made
