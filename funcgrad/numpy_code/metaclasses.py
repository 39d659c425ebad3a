"""Metaclasses of rebuilt classes: a program finds in a rebuilt class what it finds in its own class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import get_ident
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from funcgrad.numpy_code.replacements import current_run

__all__ = ["STAMPS", "TRANSLATE", "members_of", "mro_of", "names_of", "rebuilt_metaclass", "set_until_end"]

#: Attribute under which a rebuilt class keeps the translator that built it.
TRANSLATE = "_⟨translate⟩"
#: Attribute under which a rebuilt class keeps the members that it and its bases were built from.
STAMPS = "_⟨stamps⟩"
#: Names in a rebuilt class that its original need not have.
_ADDED = frozenset(
    (
        *(STAMPS, TRANSLATE, "__delattr__", "__dict__", "__doc__", "__getattr__", "__getstate__", "__hash__"),
        *("__module__", "__original__", "__parameters__", "__slots__", "__weakref__"),
    )
)

#: What a class itself holds, ``vars(cls)``, and ``cls.__mro__``: a rebuilt metaclass redefines both for the program.
members_of, mro_of = type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__
#: What a module itself holds, ``vars(module)``: the replacement for a module redefines ``__dict__`` for the program.
names_of = vars(ModuleType)["__dict__"].__get__
_BASES = type.__dict__["__bases__"]

_KINDS: dict[type, type] = {}


def rebuilt_metaclass(kind: Any, translate: Any, is_kept: Callable[[type], bool], member_of: Callable[..., Any]) -> Any:
    """Return the rebuilt metaclass, for which instances of the original class are instances of the rebuilt class.

    Args:
        kind: a metaclass.
        translate: see ``translation.Translator``.
        is_kept: whether a class is used unchanged, so that only what a program asks of its classes is replaced.
        member_of: ``member_of(translate, kind, name, value)`` returns the member of the rebuilt metaclass.
    """
    is_program = not is_kept(kind)
    known = translate.classes if is_program else _KINDS
    found = known.get(kind)
    if found is None:
        namespace = _members_of_program(kind, translate, member_of) if is_program else {}
        namespace |= {
            "__instancecheck__": lambda cls, x: (
                isinstance(x, members_of(cls)["__original__"])
                if "__original__" in members_of(cls)
                else kind.__instancecheck__(cls, x)
            ),
            "__subclasscheck__": lambda cls, x: _is_subclass(cls, x, kind),
            "__subclasses__": lambda cls: _subclasses(cls, kind),
            "__dict__": property(_members_for_program),
            "__mro__": property(_mro_for_program),
            "__bases__": property(_bases_for_program, _BASES.__set__),
            "__base__": property(_base_for_program),
            "__class__": property(lambda cls: found if is_program else kind),
            "__setattr__": set_until_end(kind.__setattr__),
            "__delattr__": set_until_end(kind.__delattr__),
        }
        if type(kind.__call__) is FunctionType:
            namespace["__call__"] = lambda cls, *args, **kwargs: _call_rebuilt(kind, cls, args, kwargs)
        # metaclasses that the bases may have
        above = [
            rebuilt_metaclass(base, translate, is_kept, member_of) for base in kind.__bases__ if base is not object
        ]
        found = known[kind] = type(kind)(kind.__name__, (kind, *above), namespace)
    return found


class _Former:
    """Attribute that a rebuilt class had when a run began; an object to call at the end of the run.

    Objects of the same attribute are equal, so that a run keeps the first of them.
    """

    __slots__ = ("cls", "name", "value")

    def __init__(self, cls: type, name: str) -> None:
        self.cls, self.name, self.value = cls, name, members_of(cls).get(name, _GONE)

    def __hash__(self) -> int:
        return hash((id(self.cls), self.name))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Former and other.cls is self.cls and other.name == self.name

    def __call__(self) -> None:
        """Give the class its attribute again."""
        if self.value is not _GONE:
            type.__setattr__(self.cls, self.name, self.value)
        elif self.name in members_of(self.cls):
            type.__delattr__(self.cls, self.name)


def set_until_end(change: Callable[..., None]) -> Callable[..., None]:
    """Return ``__setattr__`` or ``__delattr__`` for metaclasses of rebuilt classes.

    Rebuilt code writes to the rebuilt class as it writes to the view of an object: the next run knows nothing of it.
    """

    def changed(cls: type, name: str, *value: Any) -> None:
        if STAMPS in members_of(cls):  # else the class is not complete
            current_run().at_end(_Former(cls, name))
        change(cls, name, *value)

    return changed


_GONE: Any = object()
#: Methods of a metaclass that make classes, which do not run again, or that are replaced.
_OF_METACLASS = frozenset(
    (
        *("__new__", "__init__", "__call__", "__prepare__", "mro", "__setattr__", "__delattr__", "__getattribute__"),
        *("__instancecheck__", "__subclasscheck__", "__subclasses__", "__dict__", "__weakref__", "__module__"),
        *("__qualname__", "__doc__"),
    )
)


def _members_of_program(kind: Any, translate: Any, member_of: Callable[..., Any]) -> dict[str, Any]:
    """Return the rebuilt members of a program's metaclass: methods of its classes, and tables such as a registry."""
    own = {name: value for name, value in vars(kind).items() if name not in _OF_METACLASS}
    members = {name: member_of(translate, kind, name, value) for name, value in own.items()}
    return {"__original__": kind} | {name: member for name, member in members.items() if member is not own[name]}


def _is_rebuilt(members: Mapping[str, Any]) -> bool:
    """Whether a class with these members is a rebuilt one, and complete."""
    return STAMPS in members and "__original__" in members


def _members_for_program(cls: type) -> Mapping[str, Any]:
    """Return ``vars(cls)``; of a rebuilt class, all members of its original, in their order, replaced where needed."""
    own: Mapping[str, Any] = members_of(cls)
    if not _is_rebuilt(own):
        return own
    given = members_of(own["__original__"])
    found = {name: _for_program(own.get(name, value)) for name, value in given.items()}
    written = {name: value for name, value in own.items() if name not in given and name not in _ADDED}
    return MappingProxyType({**found, **written})


def _mro_for_program(cls: type) -> tuple[type, ...]:
    """Return ``cls.__mro__`` without the classes from which rebuilt ones are derived."""
    known = [(kind, members_of(kind)) for kind in mro_of(cls)]
    hidden = {own["__original__"] for _, own in known if _is_rebuilt(own)}
    shown = [kind for kind, own in known if _is_rebuilt(own) or "__original__" not in own]
    return tuple([kind for kind in shown if kind not in hidden])


def _bases_for_program(cls: type) -> tuple[type, ...]:
    own = members_of(cls)
    if not _is_rebuilt(own):
        return _BASES.__get__(cls)  # type: ignore[no-any-return]
    return tuple([own[TRANSLATE](base)[0] for base in own["__original__"].__bases__])


def _base_for_program(cls: type) -> type:
    own = members_of(cls)
    if not _is_rebuilt(own):
        return type.__dict__["__base__"].__get__(cls)  # type: ignore[no-any-return]
    return own[TRANSLATE](own["__original__"].__base__)[0]  # type: ignore[no-any-return]


def _is_subclass(cls: Any, x: Any, kind: Any) -> bool:
    """Return ``issubclass(x, cls)``; of a rebuilt class, what its original answers."""
    source = members_of(cls).get("__original__")
    if source is None:
        return kind.__subclasscheck__(cls, x)  # type: ignore[no-any-return]
    if source in type.mro(x):
        return True
    question = source, members_of(x).get("__original__", x), get_ident()
    if kind.__subclasscheck__ == type.__subclasscheck__ or question in _QUESTIONS:
        return False  # an abstract class also asks its subclasses, such as ``cls``
    _QUESTIONS.add(question)
    try:
        return kind.__subclasscheck__(*question[:2])  # type: ignore[no-any-return]
    finally:
        _QUESTIONS.discard(question)


#: Pairs of classes that a thread is comparing.
_QUESTIONS: set[tuple[type, type, int]] = set()


def _for_program(member: Any) -> Any:
    """Return what stands for ``member`` in the program: some members are translated when they are looked up."""
    replacement = getattr(type(member), "member_for_program", None)
    return member if replacement is None else replacement(member)


def _call_rebuilt(kind: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    """Make an object of a rebuilt class by the method ``__call__`` of the program's metaclass, rebuilt."""
    translate = getattr(cls, TRANSLATE, None)  # a class that the function makes may have it from a base
    if translate is None:
        return kind.__call__(cls, *args, **kwargs)
    return translate(translate(kind.__call__)[0](cls, *args, **kwargs))[0]  # it may return an object made before


def _subclasses(cls: Any, kind: Any) -> list[type]:
    """Return the replacements for the classes that a program derived from the original of ``cls``."""
    source, translate = members_of(cls).get("__original__", cls), members_of(cls).get(TRANSLATE)
    found = kind.__subclasses__(source)
    return found if translate is None else [translate(c)[0] for c in found if "__original__" not in members_of(c)]
