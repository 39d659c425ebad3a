"""Metaclasses of rebuilt classes: a program finds in a rebuilt class what it finds in its own class."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, MappingProxyType
from typing import Any

__all__ = ["STAMPS", "TRANSLATE", "members_of", "rebuilt_metaclass"]

#: Attribute under which a rebuilt class keeps the translator that built it.
TRANSLATE = "_⟨translate⟩"
#: Attribute under which a rebuilt class keeps the members that it and its bases were built from.
STAMPS = "_⟨stamps⟩"
#: Names in a rebuilt class that its original need not have.
_ADDED = frozenset(
    (
        *(STAMPS, TRANSLATE, "__delattr__", "__dict__", "__doc__", "__getattr__", "__hash__", "__module__"),
        *("__original__", "__parameters__", "__slots__", "__weakref__"),
    )
)

#: What a class itself holds: ``vars(cls)``, which a metaclass may redefine.
members_of = type.__dict__["__dict__"].__get__

_KINDS: dict[type, type] = {}


def rebuilt_metaclass(kind: Any) -> Any:
    """Return the rebuilt metaclass, for which instances of the original class are instances of the rebuilt class."""
    found = _KINDS.get(kind)
    if found is None:
        namespace = {
            "__instancecheck__": lambda cls, x: (
                isinstance(x, members_of(cls)["__original__"])
                if "__original__" in members_of(cls)
                else kind.__instancecheck__(cls, x)
            ),
            "__subclasscheck__": lambda cls, x: (
                members_of(cls)["__original__"] in type.mro(x)  # an abstract class asks its subclasses
                if "__original__" in members_of(cls)
                else kind.__subclasscheck__(cls, x)
            ),
            "__subclasses__": lambda cls: _subclasses(cls, kind),
            "__dict__": property(_members_for_program),
            "__class__": property(lambda cls: kind),
        }
        if type(kind.__call__) is FunctionType:
            namespace["__call__"] = _call_rebuilt
        # metaclasses that the bases may have
        above = [rebuilt_metaclass(base) for base in kind.__bases__ if base is not object]
        found = _KINDS[kind] = type(kind)(kind.__name__, (kind, *above), namespace)
    return found


def _members_for_program(cls: type) -> Mapping[str, Any]:
    """Return ``vars(cls)``; of a rebuilt class, all members of its original, in their order, replaced where needed."""
    own = members_of(cls)
    if STAMPS not in own:  # not rebuilt, or not yet complete
        return own
    given = members_of(own["__original__"])
    found = {name: _for_program(own.get(name, value)) for name, value in given.items()}
    written = {name: value for name, value in own.items() if name not in given and name not in _ADDED}
    return MappingProxyType({**found, **written})


def _for_program(member: Any) -> Any:
    """Return what stands for ``member`` in the program: some members are translated when they are looked up."""
    replacement = getattr(type(member), "member_for_program", None)
    return member if replacement is None else replacement(member)


def _call_rebuilt(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make an object of a rebuilt class by the method ``__call__`` of the program's metaclass, rebuilt."""
    call, translate = type(members_of(cls).get("__original__", cls)).__call__, members_of(cls).get(TRANSLATE)
    if translate is None:
        return call(cls, *args, **kwargs)
    return translate(translate(call)[0](cls, *args, **kwargs))[0]  # it may return an object that was made before


def _subclasses(cls: Any, kind: Any) -> list[type]:
    """Return the replacements for the classes that a program derived from the original of ``cls``."""
    source, translate = members_of(cls).get("__original__", cls), members_of(cls).get(TRANSLATE)
    found = kind.__subclasses__(source)
    return found if translate is None else [translate(c)[0] for c in found if "__original__" not in members_of(c)]
