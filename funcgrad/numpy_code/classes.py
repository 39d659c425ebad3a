"""Rebuilt classes, derived from the user's classes with rebuilt methods."""

from __future__ import annotations

import operator
from collections import ChainMap
from collections.abc import Callable
from contextlib import suppress
from enum import EnumMeta
from functools import partial
from threading import RLock
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

from funcgrad import tree
from funcgrad.backend import is_array_class
from funcgrad.numpy_code.array_classes import array_class
from funcgrad.numpy_code.array_functions import PROTOCOLS, accepting_numpys
from funcgrad.numpy_code.enumerations import enumeration, is_rebuilt_enumeration, own_classes
from funcgrad.numpy_code.members import (
    Stamp,
    TranslatedAttribute,
    are_up_to_date,
    built_names,
    forget,
    is_lenient,
    lazy_member,
    may_need_translation,
    member_of_class,
    put_stamps,
    rebuilt_member,
    stamps_of,
)
from funcgrad.numpy_code.metaclasses import STAMPS, TRANSLATE, members_of, mro_of, rebuilt_metaclass
from funcgrad.numpy_code.object_views import PYTHON_BASES, attribute_hooks, has_rebuilt_class, layout_of, state_hook

_HEAP_TYPE = 1 << 9  # Python's flag of a class that Python code made


def class_of(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    """Return a class derived from ``cls`` with rebuilt methods; ``cls`` itself if that is not possible.

    Args:
        cls: a user's class.
        translate: see ``translation.Translator``.
        is_kept: whether a class is used unchanged.
    """
    found: type | None = translate.classes.get(cls)
    if found is not None:
        if are_up_to_date(stamps_of(found)):
            return found
        forget(cls, translate)
    build = _builder(cls)
    if build is None:
        return cls
    with _REBUILD_LOCK:  # other threads wait until the class is there
        found = translate.classes.get(cls) or translate.in_progress.get(cls)
        if found is None:
            translate.in_progress[cls] = cls  # its methods may refer to it; they get the rebuilt class at their calls
            try:
                found = translate.classes[cls] = build(cls, translate, is_kept)
                if is_namedtuple_class(cls) and found is not cls:
                    _REBUILT_NAMEDTUPLES.add(found)
            finally:
                del translate.in_progress[cls]
    return found


#: Lock that is held while a class is rebuilt.
_REBUILD_LOCK = RLock()


def _rebuilt_class(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    bases = [b if is_kept(b) else class_of(b, translate, is_kept) for b in cls.__bases__]
    member = lazy_member if is_lenient(type(cls)) else rebuilt_member
    theirs = _NAMEDTUPLE_MEMBERS if tuple in cls.__bases__ else ()
    members = {name: member(value, translate) for name, value in members_of(cls).items() if name not in theirs}
    members = {name: member for name, member in members.items() if member is not members_of(cls)[name]}
    members |= {name: accepting_numpys(members[name], translate) for name in PROTOCOLS if name in members}
    if is_namedtuple_class(cls) and not members and all(map(operator.is_, bases, cls.__bases__)):
        return cls  # no methods of the program
    constants = {
        name: TranslatedAttribute(cls, name, translate)
        for name, value in members_of(cls).items()
        if name not in members and may_need_translation(name, value, translate)
    }
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    if "__hash__" in members_of(cls):  # otherwise a class that defines ``__eq__`` would have no hash
        names["__hash__"] = members_of(cls)["__hash__"]
    try:
        kind = _metaclass(type(cls), translate, is_kept)
        others = [b for b in bases if b not in mro_of(cls)]
        # only one of several tuple bases may add the place of ``__dict__``
        has_place = cls.__dictoffset__ or (is_namedtuple_class(cls) and others)
        make = partial(_new_class, kind, is_kept)
        first = cls if has_place else make(cls.__name__, (cls,), _names_with_place(cls))
        hooks = {**attribute_hooks(cls, translate), **state_hook(cls, translate)}
        hooks |= {"__original__": cls, TRANSLATE: translate}
        made = _derived(make, cls, (first, *others), {**names, **members, **hooks})
    except Exception:  # the class does not allow subclasses
        return cls
    for name, constant in constants.items():  # afterwards, because a metaclass may compute with the members
        type.__setattr__(made, name, constant)
    put_stamps(made, Stamp(cls, built_names(made, members | constants)), (*bases, kind))
    if hasattr(cls, "__slots__"):  # ``first`` may have others
        type.__setattr__(made, "__slots__", cls.__slots__)
    if "__parameters__" in members_of(cls):  # ``Generic`` sets it for each subclass, and finds none for this one
        type.__setattr__(made, "__parameters__", members_of(cls)["__parameters__"])
    return made


def _names_with_place(cls: type) -> dict[str, Any]:
    """Return the names of a class derived from ``cls`` whose objects have a place for ``__dict__``."""
    names: dict[str, Any] = {"__module__": cls.__module__, "__original__": cls}
    if not cls.__itemsize__:  # explicitly, because the metaclass may add empty ``__slots__``
        names["__slots__"] = ("__dict__",) if cls.__weakrefoffset__ else ("__dict__", "__weakref__")
    return names


def _builder(cls: type) -> Callable[[type, Any, Callable[[type], bool]], type] | None:
    """Return the function that rebuilds a class; None for a class that is used unchanged."""
    if "__original__" in members_of(cls):
        return None
    if issubclass(cls, type):
        return _metaclass
    if is_array_class(cls):
        return _array_class if layout_of(cls) is np.ndarray else None
    if is_rebuilt_enumeration(cls):
        return _enumeration
    return _rebuilt_class if _may_differ(cls) else None


def _metaclass(kind: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    known = translate.classes
    if kind in known and not are_up_to_date(stamps_of(known[kind])):
        forget(kind, translate)
    made: type = rebuilt_metaclass(kind, translate, is_kept, member_of_class)
    for base in reversed(mro_of(kind)):
        if base in known and STAMPS not in members_of(known[base]):
            above = [known[other] for other in base.__bases__ if other in known]
            put_stamps(known[base], Stamp(base, built_names(known[base], members_of(base))), above)
    return made


def _enumeration(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    made: type = enumeration(cls, translate, partial(member_of_class, translate))
    members = ChainMap(*[members_of(base) for base in own_classes(cls)])
    put_stamps(made, Stamp(cls, built_names(made, members), members), ())
    return made


def _array_class(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    bases = [b if is_kept(b) else class_of(b, translate, is_kept) for b in cls.__bases__]
    made = array_class(cls, translate, bases, partial(member_of_class, translate))
    put_stamps(made, Stamp(cls, built_names(made, members_of(cls))), bases)
    return made


class _TemporaryBase:
    """First base of a rebuilt class, so that no ``__init_subclass__`` of the program's classes is called."""


class _TemporaryGeneric(Generic[TypeVar("T")]):  # type: ignore[misc]
    """First base of a rebuilt class that is derived from ``Generic``: its objects have another memory layout."""


def _derived(make: Any, cls: Any, bases: tuple[type, ...], names: dict[str, Any]) -> type:
    """Return the class with these bases, if possible without calling ``__init_subclass__``, which may register it."""
    if hasattr(cls.__init_subclass__, "__func__"):
        with suppress(TypeError):  # raised if the objects have another memory layout
            temporary = _TemporaryGeneric if issubclass(cls, Generic) else _TemporaryBase
            made: type = make(cls.__name__, (temporary,), names)
            made.__bases__ = bases
            return made
    found: type = make(cls.__name__, bases, names)
    return found


def _new_class(
    kind: Any, is_kept: Callable[[type], bool], name: str, bases: tuple[type, ...], names: dict[str, Any]
) -> type:
    """Make a class of the metaclass ``kind``, without the program's metaclasses: they have made the original."""
    library = next(base for base in mro_of(kind) if "__new__" in members_of(base) and (base is type or is_kept(base)))
    made: type = library.__new__(kind, name, bases, names)
    library.__init__(made, name, bases, names)
    return made


def _may_differ(cls: type) -> bool:
    """Whether a class may be replaced: not if others compare the class itself, or its objects hold data of C code."""
    if is_namedtuple_class(cls):
        return True
    if isinstance(cls, EnumMeta) or issubclass(cls, BaseException) or tree.is_container(cls):
        return False
    return all(base in _ALLOWED_BASES or base.__flags__ & _HEAP_TYPE for base in mro_of(cls))


#: Classes of Python from which a rebuilt class may be derived. Objects of ``ModuleType`` are replaced as modules.
_ALLOWED_BASES = frozenset((*PYTHON_BASES, ModuleType))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is a named tuple class."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


#: Members that Python itself adds to a named tuple class.
_NAMEDTUPLE_MEMBERS = frozenset(
    (
        *("__new__", "_fields", "_field_defaults", "_make", "_replace", "__replace__", "_asdict", "__repr__"),
        "__getnewargs__",
    )
)
#: Named tuple classes that were rebuilt.
_REBUILT_NAMEDTUPLES: set[type] = set()


def rebuilt_namedtuple(value: Any, translate: Any, is_kept: Callable[[type], bool]) -> Any:
    """Return a named tuple of the rebuilt class with translated members; ``value`` itself if nothing changes."""
    cls, members = class_of(type(value), translate, is_kept), list(value)
    found = [translate(x)[0] for x in members]
    return value if cls is type(value) and all(map(operator.is_, found, members)) else tuple.__new__(cls, found)


def with_original_namedtuples(out: Any) -> Any:
    """Return ``out`` with named tuples of their original classes, also inside lists and dictionaries."""
    kind = type(out)
    if not _REBUILT_NAMEDTUPLES:
        return out
    if kind is dict:
        parts = {name: with_original_namedtuples(x) for name, x in out.items()}
        return parts if any(parts[name] is not x for name, x in out.items()) else out
    if not issubclass(kind, (tuple, list)):
        return out
    found = [with_original_namedtuples(x) for x in out]
    if issubclass(kind, tuple) and has_rebuilt_class(out):
        return tuple.__new__(members_of(kind)["__original__"], found)
    is_same = kind not in (tuple, list) or all(map(operator.is_, found, out))
    return out if is_same else kind(found)
