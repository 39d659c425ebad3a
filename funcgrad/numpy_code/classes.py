"""Rebuilt classes, derived from the user's classes with rebuilt methods, and objects viewed through them."""

from __future__ import annotations

import operator
from abc import ABCMeta
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from enum import EnumMeta
from functools import _lru_cache_wrapper, cached_property, partial, partialmethod, singledispatchmethod
from inspect import getattr_static
from threading import RLock
from types import BuiltinMethodType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

from funcgrad import tree
from funcgrad.backend import is_array_class
from funcgrad.numpy_code.array_classes import array_class
from funcgrad.numpy_code.array_functions import PROTOCOLS, accepting_numpys
from funcgrad.numpy_code.conversions import as_format_string
from funcgrad.numpy_code.enumerations import SOURCE, enumeration, is_rebuilt_enumeration
from funcgrad.numpy_code.metaclasses import STAMPS, TRANSLATE, members_of, mro_of, rebuilt_metaclass
from funcgrad.numpy_code.names import original_module
from funcgrad.numpy_code.objects import DECORATED, rebuild_decorated
from funcgrad.numpy_code.replacements import LatestCache

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
        if is_up_to_date(found):
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

#: Attributes of a class, a getter for those that were rebuilt, and the values that the getter returned then.
_Stamp = tuple[Any, Callable[[Any], Any], Any]


def _stamp(cls: type, members: dict[str, Any]) -> list[_Stamp]:
    names = [name for name in members if name in members_of(cls)]
    get = operator.itemgetter(*names) if names else None
    return [] if get is None else [(members_of(cls), get, get(members_of(cls)))]


def can_become_stale(made: Any) -> bool:
    """Whether ``made`` is a class that was rebuilt from one with methods or properties."""
    return isinstance(made, type) and bool(members_of(made).get(STAMPS))


def is_up_to_date(made: type) -> bool:
    """Whether the class that ``made`` was built from, and its bases, still have the same methods and properties."""
    try:
        for members, get, found in members_of(made).get(STAMPS, ()):
            if get(members) != found:
                return False
    except KeyError:  # a member is gone
        return False
    return True


def forget(cls: type, translate: Any) -> None:
    """Drop the rebuilt ``cls`` and its bases, so that the next request rebuilds them."""
    for kind in mro_of(cls):
        translate.classes.pop(kind, None)
        translate.viewers.pop(kind, None)


def _rebuilt_class(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    bases = [b if is_kept(b) else class_of(b, translate, is_kept) for b in cls.__bases__]
    member = _lazy_member if _is_lenient(type(cls)) else _rebuilt_member
    theirs = _NAMEDTUPLE_MEMBERS if tuple in cls.__bases__ else ()
    members = {name: member(value, translate) for name, value in members_of(cls).items() if name not in theirs}
    members = {name: member for name, member in members.items() if member is not members_of(cls)[name]}
    members |= {name: accepting_numpys(members[name], translate) for name in PROTOCOLS if name in members}
    if is_namedtuple_class(cls) and not members and all(map(operator.is_, bases, cls.__bases__)):
        return cls  # no methods of the program
    constants = {
        name: _TranslatedAttribute(cls, name, translate)
        for name, value in members_of(cls).items()
        if name not in members and _may_need_translation(name, value, translate)
    }
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    if "__hash__" in members_of(cls):  # otherwise a class that defines ``__eq__`` would have no hash
        names["__hash__"] = members_of(cls)["__hash__"]
    try:
        kind = rebuilt_metaclass(type(cls))
        others = [b for b in bases if b not in mro_of(cls)]
        # only one of several tuple bases may add the place of ``__dict__``
        has_place = cls.__dictoffset__ or (is_namedtuple_class(cls) and others)
        make = partial(_new_class, kind, is_kept)
        first = cls if has_place else make(cls.__name__, (cls,), _names_with_place(cls))
        hooks = {**_attribute_hooks(cls, translate), **_state_hook(cls, translate)}
        hooks |= {"__original__": cls, TRANSLATE: translate}
        made = _derived(make, cls, (first, *others), {**names, **members, **hooks})
    except Exception:  # the class does not allow subclasses
        return cls
    above = [stamp for base in bases if not is_kept(base) for stamp in members_of(base).get(STAMPS, ())]
    for name, constant in constants.items():  # afterwards, because a metaclass may compute with the members
        type.__setattr__(made, name, constant)
    type.__setattr__(made, STAMPS, (*_stamp(cls, members | constants), *above))
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
    if is_array_class(cls):
        return _array_class if _layout_of(cls) is np.ndarray else None
    if is_rebuilt_enumeration(cls):
        return _enumeration
    return _rebuilt_class if _may_differ(cls) else None


def _lazy_or_translated(translate: Any, base: type, name: str, value: Any) -> Any:
    """Return a member for a class that is not derived from the original: a method or a translated attribute."""
    found = _lazy_member(value, translate)
    if found is value and _may_need_translation(name, value, translate):
        return _TranslatedAttribute(base, name, translate)
    return found


def _enumeration(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    made: type = enumeration(cls, translate, partial(_lazy_or_translated, translate))
    return made


def _array_class(cls: type, translate: Any, is_kept: Callable[[type], bool]) -> type:
    bases = [b if is_kept(b) else class_of(b, translate, is_kept) for b in cls.__bases__]
    return array_class(cls, translate, bases, partial(_lazy_or_translated, translate))


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
    return all(base in _OPEN or base.__flags__ & _HEAP_TYPE for base in mro_of(cls))


#: Classes of Python whose objects hold nothing except what a program puts into them.
_CONTAINER_BASES = (OrderedDict, defaultdict, dict, deque, list, tuple)
_OPEN = (object, *_CONTAINER_BASES)


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


def _function_of(member: Any) -> Any:
    return member.__func__ if type(member) in (staticmethod, classmethod) else member


class _LazyMember:
    """Method that is rebuilt at its first lookup: programs use few of the methods of their classes."""

    __slots__ = ("member", "name", "owner", "translate")

    def __init__(self, member: Any, translate: Any) -> None:
        self.member, self.translate = member, translate
        self.owner: Any = None
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def rebuild(self) -> Any:
        """Rebuild the member and return it; put it into the class in place of this object if it lasts."""
        member = self.member
        functions = (member.fget, member.fset, member.fdel) if type(member) is property else (_function_of(member),)
        lasts = [self.translate(f)[1] for f in functions if f is not None]
        built = _rebuilt_member(member, self.translate)
        if all(lasts) and self.owner is not None and members_of(self.owner).get(self.name) is self:
            type.__setattr__(self.owner, self.name, built)
        return built

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        return self.rebuild().__get__(obj, cls)

    member_for_program = rebuild

    @property
    def __isabstractmethod__(self) -> bool:
        return bool(getattr(self.member, "__isabstractmethod__", False))


def _may_need_translation(name: str, value: Any, translate: Any) -> bool:
    """Whether a class's attribute is not a method and may need a replacement: an array, a table, an object."""
    return (
        not (name.startswith("__") and name.endswith("__"))
        and name not in _NOT_CONSTANT
        and type(value) not in translate.unreplaced_types
        and not hasattr(type(value), "__get__")
    )


_NOT_CONSTANT = frozenset(("_abc_impl", "_fields", "_field_defaults"))


class _TranslatedAttribute:
    """Class attribute that is not a method, translated at each lookup: an array, a table of functions, an object."""

    __slots__ = ("name", "owner", "translate")

    def __init__(self, owner: type, name: str, translate: Any) -> None:
        self.owner, self.name, self.translate = owner, name, translate

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        value = members_of(self.owner).get(self.name, _GONE)
        if value is _GONE:
            raise AttributeError(f"type object {self.owner.__name__!r} has no attribute {self.name!r}")
        found, always = self.translate(value)
        if not always and type(value) is not np.ndarray:
            self.translate.memo().setdefault(id(value), (value, found))  # a table is translated once per run
        return found

    def member_for_program(self) -> Any:
        return self.__get__(None)


_GONE: Any = object()


class _DescriptorBase:
    """Descriptor of a user's class, translated in each run: its methods are rebuilt, and it may hold arrays."""

    __slots__ = ("member", "translate")

    def __init__(self, member: Any, translate: Any) -> None:
        self.member, self.translate = member, translate

    def _rebuilt(self) -> Any:
        return self.translate(self.member)[0]

    @property
    def __isabstractmethod__(self) -> bool:
        return bool(getattr(self.member, "__isabstractmethod__", False))


class _Descriptor(_DescriptorBase):
    """Descriptor that an attribute of the object with the same name hides."""

    __slots__ = ()

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        rebuilt = self._rebuilt()
        found = rebuilt.__get__(obj, cls) if hasattr(type(rebuilt), "__get__") else rebuilt
        return self.translate(found)[0] if rebuilt is self.member else found


class _SetDescriptor(_DescriptorBase):
    """Descriptor without ``__get__``, which only sees writes: a read finds the attribute of the object itself.

    Where there is none, and in the class, a read finds this descriptor, which has the attributes of the program's.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rebuilt(), name)

    def __set__(self, obj: Any, value: Any) -> None:
        self._rebuilt().__set__(obj, value)

    def __delete__(self, obj: Any) -> None:
        self._rebuilt().__delete__(obj)


class _DataDescriptor(_SetDescriptor, _Descriptor):
    """Descriptor that takes precedence over an attribute of the object with the same name."""

    __slots__ = ()


class _LazyMethod(_LazyMember):
    """Function, static or plain, that is rebuilt at its first lookup."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the rebuilt function, for code that takes it from the dictionary of the class."""
        return self.rebuild()(*args, **kwargs)


class _LazyProperty(_LazyMember):
    """Property, which takes precedence over an attribute of the object with the same name."""

    __slots__ = ()

    def __set__(self, obj: Any, value: Any) -> None:
        self.rebuild().__set__(obj, value)

    def __delete__(self, obj: Any) -> None:
        self.rebuild().__delete__(obj)


#: Placeholders for members of a class until their first lookup, by the type of the member.
_LAZY_KINDS = {FunctionType: _LazyMethod, staticmethod: _LazyMethod, classmethod: _LazyMember, property: _LazyProperty}


def _is_lenient(kind: Any) -> bool:
    """Whether a metaclass accepts any members: it makes classes as ``type`` does."""
    return kind.__new__ in (type.__new__, ABCMeta.__new__) and kind.__init__ is type.__init__


def _lazy_member(member: Any, translate: Any) -> Any:
    kind = _LAZY_KINDS.get(type(member))
    return _rebuilt_member(member, translate) if kind is None else kind(member, translate)


def _rebuilt_member(member: Any, translate: Any) -> Any:
    """Return a member of a class, rebuilt if it is a method of any kind."""
    if type(member) is FunctionType:
        return translate(member)[0]
    if type(member) is _lru_cache_wrapper:
        return _Descriptor(member, translate)
    if type(member) in (staticmethod, classmethod):
        built = translate(member.__func__)[0]
        return member if built is member.__func__ else type(member)(built)
    if type(member) is property:
        get, put, delete = [translate(f)[0] for f in (member.fget, member.fset, member.fdel)]
        return property(get, put, delete, member.__doc__)
    if type(member) is cached_property:
        cached = cached_property(translate(member.func)[0])
        cached.attrname = member.attrname
        return cached
    if type(member) is partialmethod:
        return partialmethod(translate(member.func)[0], *member.args, **member.keywords)
    if type(member) is singledispatchmethod:
        dispatching = singledispatchmethod(_rebuilt_member(member.func, translate))
        for cls, method in member.dispatcher.registry.items():
            dispatching.register(cls, _rebuilt_member(method, translate))
        return dispatching
    if type(member) is partial and hasattr(partial, "__get__"):  # a descriptor from Python 3.13 on
        return _Descriptor(member, translate)
    if f"{type(member).__module__}.{type(member).__name__}" in DECORATED:
        return rebuild_decorated(member, translate)
    if any(type(getattr(type(member), name, None)) is FunctionType for name in ("__get__", "__set__")):
        member = _with_rebuilt_accessors(member, translate) if isinstance(member, property) else member
        reads, writes = [hasattr(type(member), name) for name in ("__get__", "__set__")]
        kind = _Descriptor if not writes else _DataDescriptor if reads else _SetDescriptor
        return kind(member, translate)
    return as_format_string(member)


def _with_rebuilt_accessors(member: property, translate: Any) -> property:
    """Return a property of a class that the program derived from ``property``, with its functions rebuilt."""
    made = property.__new__(type(member))
    get, put, delete = [translate(f)[0] for f in (member.fget, member.fset, member.fdel)]
    property.__init__(made, get, put, delete, member.__doc__)
    vars(made).update(vars(member))
    return made


def _dict(obj: Any) -> Any:
    """Return the attribute dictionary of ``obj``, even if its class redefines ``__dict__``; None if it has none."""
    kind = type(obj)
    known = _DICTS.get(kind)
    if known is None:
        known = _DICTS[kind] = _dict_of(kind)[0]
    return known(obj)


_DICTS = LatestCache()


def _dict_of(kind: type) -> tuple[Any, Any]:
    """Return the getter and the setter of the attribute dictionary of a class's objects."""
    for cls in mro_of(kind):
        found = members_of(cls).get("__dict__")
        if found is not None and type(found) is not property:
            return found.__get__, found.__set__
    return lambda obj: None, None


def _raw(source: Any, name: str) -> tuple[bool, Any]:
    """Return whether ``source`` itself has an attribute of this name, and its value."""
    own = _dict(source)
    if own is not None and name in own:
        return True, own[name]
    slot = getattr(type(source), name, None)
    if type(slot) is MemberDescriptorType:
        try:
            return True, slot.__get__(source)
        except AttributeError:
            pass
    return False, None


def _attribute_hooks(cls: type, translate: Any) -> dict[str, Any]:
    """Return the methods that let a class view objects: attributes are fetched when they are looked up."""
    original_getattr = getattr(cls, "__getattr__", None)
    delattr_of: Any = cls.__delattr__
    if original_getattr is not None:
        original_getattr = translate(original_getattr)[0]

    def fetch_attribute(self: Any, name: str) -> Any:
        own = _dict(self)
        source = own.get(SOURCE) if own is not None else None
        if source is not None:
            given = _dict(source)
            if given is not None and name in given:
                if type(given[name]) is np.ndarray and translate.shares_buffers:
                    translate.array_attributes.add(name)  # from now on, each view has it from the beginning
                own[name] = value = translate(given[name])[0]
                return value
            has, value = _raw(source, name)
            if has:
                value = translate(value)[0]
                _set_attribute(self, name, value)
                return value
        if original_getattr is not None:
            return original_getattr(self, name)
        if (member := getattr_static(type(self), name, None)) is not None and hasattr(type(member), "__get__"):
            return member.__get__(self, type(self))  # raises its own AttributeError again, which brought Python here
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def all_attributes(self: Any) -> Any:
        _fetch_all(self, translate)
        return _dict(self)

    def delete(self: Any, name: str) -> None:
        _fetch_all(self, translate)
        delattr_of(self, name)

    def set_dict(self: Any, value: Any) -> None:
        _dict_of(cls)[1](self, value)

    return {"__getattr__": fetch_attribute, "__delattr__": delete, "__dict__": property(all_attributes, set_dict)}


def _state_hook(cls: Any, translate: Any) -> dict[str, Any]:
    """Return the method by which ``copy.copy`` and ``copy.deepcopy`` copy all attributes, not the viewed object."""

    def state(self: Any) -> Any:
        _fetch_all(self, translate)
        return object.__getstate__(self)

    return {"__getstate__": state} if cls.__getstate__ is object.__getstate__ else {}


def _set_attribute(obj: Any, name: str, value: Any) -> None:
    slot = getattr(type(obj), name, None)
    if type(slot) is MemberDescriptorType:
        slot.__set__(obj, value)
    else:
        _dict(obj)[name] = value


def _fetch_all(obj: Any, translate: Any) -> None:
    """Fetch all attributes of the object that ``obj`` is a view of, and forget that object."""
    own = _dict(obj)
    source = None if own is None else own.pop(SOURCE, None)
    if source is None:
        return
    given = dict(_dict(source) or {})
    for name, value in given.items():
        if name not in own:
            own[name] = translate(value)[0]
    ordered = {name: own[name] for name in given} | own  # a program may loop over the attributes
    own.clear()
    own.update(ordered)
    for name in _slots(type(source)):
        has, value = _raw(source, name)
        if has and not _raw(obj, name)[0]:
            _set_attribute(obj, name, translate(value)[0])


def _slots(cls: type) -> list[str]:
    return [
        name
        for base in mro_of(cls)
        for name, member in members_of(base).items()
        if type(member) is MemberDescriptorType
    ]


def _layout_of(kind: type) -> type:
    """Return the first base that is written in C and makes the objects of a class."""
    bases: tuple[type, ...] = mro_of(kind)
    return next(base for base in bases if type(members_of(base).get("__new__")) is BuiltinMethodType)


def _holds_data_of_c(kind: type) -> bool:
    """Whether ``object.__new__`` cannot make an object of this class, because a base is written in C.

    Containers of Python do not count.
    """
    return _layout_of(kind) not in _OPEN


def make_viewer(kind: type, cls: type, translate: Any) -> Callable[[Any], Any]:
    """Return a function that views objects of ``kind`` through ``cls``, the class that was rebuilt from ``kind``.

    Writes to a view do not change the object.
    """
    if _holds_data_of_c(kind):
        return lambda obj: obj
    container_base = next((base for base in _CONTAINER_BASES if issubclass(kind, base)), None)
    if container_base is None:
        return _object_viewer(kind, cls, translate)
    return partial(_container_view, cls, container_base, _dict_of(kind)[0], _dict_of(cls)[1], _slots(kind), translate)


def _object_viewer(kind: type, cls: type, translate: Any) -> Callable[[Any], Any]:
    """Return a function that views objects, which are no containers, as ``make_viewer`` does."""
    made, dict_of, set_dict = partial(object.__new__, cls), _dict_of(kind)[0], _dict_of(cls)[1]
    unreplaced, read = translate.unreplaced_types, translate.array_attributes
    read_only_buffer = translate.read_only_buffer
    stamps = members_of(cls).get(STAMPS, ())
    # a ``__getattribute__`` of the program may read by ``object.__getattribute__``, which calls no ``__getattr__``
    at_once = any("__getattribute__" in members_of(base) for base in mro_of(kind)[:-1])
    slots = _slots(kind) if at_once else []

    def rebuild_and_view(obj: Any) -> Any:
        forget(kind, translate)
        return translate(obj)[0]

    def make_view(obj: Any) -> Any:
        try:
            for members, get, found in stamps:  # same check as ``is_up_to_date``, without a call
                if get(members) != found:
                    return rebuild_and_view(obj)
        except KeyError:
            return rebuild_and_view(obj)
        view: Any = made()
        given = dict_of(obj) or {}
        own = dict.copy(given)  # whatever subclass of dict the program uses
        for name, value in given.items():
            sort = type(value)
            if sort in unreplaced:
                continue
            if sort is np.ndarray and name in read and value.dtype.kind in "fciu":
                own[name] = read_only_buffer(value)
            elif at_once or hasattr(cls, name):  # else lookups would find the class's, not call ``__getattr__``
                translate.memo().setdefault(id(obj), (obj, view))  # ``obj`` may refer to itself, as by methods
                own[name] = translate(value)[0]
            elif sort is not np.ndarray or value.dtype.kind != "b":
                del own[name]
        own[SOURCE] = obj
        set_dict(view, own)
        _fill_slots(view, obj, slots, translate)
        return view

    return make_view


def _container_view(
    cls: type, container_base: Any, dict_of: Any, set_dict: Any, slots: list[str], translate: Any, obj: Any
) -> Any:
    """Return a list, tuple or dictionary of a user's class with the members and attributes of ``obj``, translated."""
    view: Any
    if container_base is tuple:
        view = tuple.__new__(cls, [translate(x)[0] for x in tuple.__iter__(obj)])
    else:
        view = container_base.__new__(cls)
        translate.memo().setdefault(id(obj), (obj, view))  # ``obj`` may refer to itself
        if issubclass(container_base, dict):
            container_base.update(view, translate(dict(obj))[0])
        else:
            members = [translate(x)[0] for x in container_base.__iter__(obj)]
            container_base.__init__(view, members, *((obj.maxlen,) if container_base is deque else ()))
    given = dict_of(obj) or {}
    if given is obj:  # its items are its attributes
        set_dict(view, view)
    elif given:
        set_dict(view, {name: translate(value)[0] for name, value in dict.items(given)})
    _fill_slots(view, obj, slots, translate)  # such as the default of a ``defaultdict``
    return view


def _fill_slots(view: Any, obj: Any, slots: list[str], translate: Any) -> None:
    for name in slots:
        has, value = _raw(obj, name)
        if has:
            _set_attribute(view, name, translate(value)[0])


def has_rebuilt_class(obj: Any) -> bool:
    """Whether the class of ``obj`` was rebuilt."""
    return "__original__" in members_of(type(obj)) and isinstance(members_of(type(obj))["__original__"], type)


def viewed_object(obj: Any) -> Any:
    """Return the object that ``obj`` is a view of; ``obj`` itself if it is not a view."""
    return (_dict(obj) or {}).get(SOURCE, obj)


def plain_copy(obj: Any, plain: Callable[[Any], Any]) -> Any:
    """Return a copy of ``obj``, a view or an object of a rebuilt class, as an object of the original class.

    Args:
        obj: the object.
        plain: returns the plain value for the value of an attribute.
    """
    own = dict(_dict(obj))
    source = own.pop(SOURCE, None)
    given = {} if source is None else dict(_dict(source))
    for name, value in own.items():
        if name not in given or not _is_unchanged(value, given[name]):
            given[name] = plain_copy(value, plain) if has_rebuilt_class(value) else plain(value)
    made = object.__new__(members_of(type(obj)).get("__original__", type(obj)))
    _dict(made).update(given)
    return made


def original(obj: Any) -> Any:
    """Return ``obj`` as an object of its original class: the viewed object if nothing was written to the view."""
    own = _dict(obj)
    source = own.get(SOURCE)
    if source is not None and all(name == SOURCE or _is_unchanged(own[name], _raw(source, name)[1]) for name in own):
        return source
    _fetch_all(obj, lambda value: (value, True))
    for name, value in own.items():
        if has_rebuilt_class(value):
            own[name] = original(value)
        elif isinstance(value, ModuleType):  # such as an array namespace, which SciPy compares
            own[name] = original_module(value) or value
    with suppress(TypeError):  # a class with slots only has no room for the ``__dict__`` of its view
        obj.__class__ = members_of(type(obj))["__original__"]
    return obj


def _is_unchanged(value: Any, given: Any) -> bool:
    """Whether ``value`` is ``given`` or its replacement. True for every callable ``given``."""
    if value is given or (isinstance(value, ModuleType) and original_module(value) is given):
        return True
    return callable(given) or (has_rebuilt_class(value) and _dict(value).get(SOURCE) is given)
