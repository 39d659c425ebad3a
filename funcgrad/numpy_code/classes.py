"""Classes built anew: derived from the user's, with methods that were built anew, and objects seen through them."""

from __future__ import annotations

import operator
from abc import ABCMeta
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from enum import EnumMeta
from functools import cached_property, partial, partialmethod, singledispatchmethod
from threading import RLock
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.numpy_code.conversions import filled
from funcgrad.numpy_code.names import module_behind
from funcgrad.numpy_code.runs import Latest

#: Where an object says what it is looked at instead of.
_SOURCE = "⟨source⟩"
#: Where a class says what built it anew.
_TRANSLATE = "⟨translate⟩"
#: Where it says what it and those above it were built from.
_STAMPS = "⟨stamps⟩"
_HEAP_TYPE = 1 << 9  # Python's flag of a class that Python code made


def class_of(cls: type, translate: Any, is_known: Callable[[type], bool]) -> type:
    """A class derived from ``cls`` whose methods are built anew; ``cls`` itself where it cannot be.

    Args:
        cls: a class of the user's.
        translate: see ``translation.Translator``.
        is_known: whether a class stays as it is.
    """
    found: type | None = translate.classes.get(cls)
    if found is not None:
        if fits(found):
            return found
        forget(cls, translate)
    if "__original__" in vars(cls) or not _may_differ(cls):
        return cls
    with _MAKING:  # other threads wait until it is there
        found = translate.classes.get(cls) or translate.begun.get(cls)
        if found is None:
            translate.begun[cls] = cls  # its methods may refer to it: they find what it became when they are called
            try:
                found = translate.classes[cls] = _made(cls, translate, is_known)
                if is_named(cls) and found is not cls:
                    _NAMED.add(found)
            finally:
                del translate.begun[cls]
    return found


#: Held while a class is built anew.
_MAKING = RLock()

#: The attributes of a class, what takes from them those that were built anew, and what that found then.
_Stamp = tuple[Any, Callable[[Any], Any], Any]


def _stamp(cls: type, members: dict[str, Any]) -> list[_Stamp]:
    names = [name for name in members if name in vars(cls)]
    get = operator.itemgetter(*names) if names else None
    return [] if get is None else [(vars(cls), get, get(vars(cls)))]


def may_change(made: Any) -> bool:
    """Whether ``made`` is a class that was built from one with methods or properties."""
    return isinstance(made, type) and bool(vars(made).get(_STAMPS))


def fits(made: type) -> bool:
    """Whether the class that ``made`` was built from, and those above, have the same methods and properties still."""
    try:
        for members, get, found in vars(made).get(_STAMPS, ()):
            if get(members) != found:
                return False
    except KeyError:  # one is gone
        return False
    return True


def forget(cls: type, translate: Any) -> None:
    """Build ``cls`` anew, and what it derives from, when they are asked for."""
    for kind in cls.__mro__:
        translate.classes.pop(kind, None)
        translate.objects.pop(kind, None)


def _made(cls: type, translate: Any, is_known: Callable[[type], bool]) -> type:
    bases = [b if is_known(b) else class_of(b, translate, is_known) for b in cls.__bases__]
    is_lenient = _is_lenient(type(cls))
    member = _later if is_lenient else _member
    theirs = _OF_NAMED if tuple in cls.__bases__ else ()
    members = {name: member(value, translate) for name, value in vars(cls).items() if name not in theirs}
    members = {name: member for name, member in members.items() if member is not vars(cls)[name]}
    if is_named(cls) and not members and all(map(operator.is_, bases, cls.__bases__)):
        return cls  # without methods of the program's own
    if is_lenient:
        members |= {name: _Constant(cls, name, translate) for name in _constants(cls, members, translate)}
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    if "__hash__" in vars(cls):  # else a class that defines ``__eq__`` has none
        names["__hash__"] = vars(cls)["__hash__"]
    try:
        kind = _kind(type(cls))
        others = [b for b in bases if b not in cls.__mro__]
        has_place = cls.__dictoffset__ or (is_named(cls) and others)  # of tuples only one base may add it
        first = cls if has_place else kind(cls.__name__, (cls,), {"__module__": cls.__module__, "__original__": cls})
        made = _derived(
            kind,
            cls,
            (first, *others),
            {**names, **members, **_hooks(cls, members, translate), "__original__": cls, _TRANSLATE: translate},
        )
    except Exception:  # the class lets nobody derive from it
        return cls
    above = [stamp for base in bases if not is_known(base) for stamp in vars(base).get(_STAMPS, ())]
    type.__setattr__(made, _STAMPS, (*_stamp(cls, members), *above))
    return made


class _Nobody:
    """What a class is derived from at first that nobody is to be told of."""


def _derived(kind: Any, cls: Any, bases: tuple[type, ...], names: dict[str, Any]) -> type:
    """The class with these bases. Their ``__init_subclass__``, which may note it, is not called where that can be."""
    if hasattr(cls.__init_subclass__, "__func__"):
        with suppress(TypeError):  # of classes whose objects lie in memory in another way
            made: type = kind(cls.__name__, (_Nobody,), names)
            made.__bases__ = bases
            return made
    found: type = kind(cls.__name__, bases, names)
    return found


def _may_differ(cls: type) -> bool:
    """Whether a class may have another in its place: others know these by their very class, or they hold C's data."""
    if is_named(cls):
        return True
    if isinstance(cls, EnumMeta) or issubclass(cls, BaseException) or tree.is_container(cls):
        return False
    return all(base in _OPEN or base.__flags__ & _HEAP_TYPE for base in cls.__mro__)


#: Classes of Python's own whose objects hold nothing but what a program puts into them.
_HOLDING = (OrderedDict, defaultdict, dict, deque, list, tuple)
_OPEN = (object, *_HOLDING)


def is_named(cls: type) -> bool:
    """Whether a class is one of named tuples."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make")


#: What Python itself writes into a class of named tuples.
_OF_NAMED = frozenset(
    (
        "__new__",
        "_fields",
        "_field_defaults",
        "_make",
        "_replace",
        "__replace__",
        "_asdict",
        "__repr__",
        "__getnewargs__",
    )
)


#: Classes of named tuples that were built anew.
_NAMED: set[type] = set()


def named(value: Any, translate: Any, is_known: Callable[[type], bool]) -> Any:
    """A named tuple of the class that is built anew, whose members are translated; itself where nothing is."""
    cls, members = class_of(type(value), translate, is_known), list(value)
    found = [translate(x)[0] for x in members]
    return value if cls is type(value) and all(map(operator.is_, found, members)) else tuple.__new__(cls, found)


def originals(out: Any) -> Any:
    """``out`` with named tuples of their original classes, in lists and dictionaries too; itself without any."""
    kind = type(out)
    if not _NAMED:
        return out
    if kind is dict:
        parts = {name: originals(x) for name, x in out.items()}
        return parts if any(parts[name] is not x for name, x in out.items()) else out
    if not issubclass(kind, (tuple, list)):
        return out
    found = [originals(x) for x in out]
    if issubclass(kind, tuple) and is_seen(out):
        return tuple.__new__(vars(kind)["__original__"], found)
    is_same = kind not in (tuple, list) or all(map(operator.is_, found, out))
    return out if is_same else kind(found)


_KINDS: dict[type, type] = {}


def _kind(kind: Any) -> Any:
    """The class of the class: one for which objects of the original are objects of the class built anew, too."""
    found = _KINDS.get(kind)
    if found is None:
        namespace = {
            "__instancecheck__": lambda cls, x: (
                isinstance(x, cls.__dict__.get("__original__", cls))
                if "__original__" in cls.__dict__
                else kind.__instancecheck__(cls, x)
            ),
            "__subclasscheck__": lambda cls, x: (
                cls.__dict__["__original__"] in type.mro(x)  # an abstract class asks the classes that derive from it
                if "__original__" in cls.__dict__
                else kind.__subclasscheck__(cls, x)
            ),
            "__subclasses__": lambda cls: _subclasses(cls, kind),
        }
        above = [_kind(base) for base in kind.__bases__ if base is not object]  # as bases of the class may have
        found = _KINDS[kind] = type(kind)(kind.__name__, (kind, *above), namespace)
    return found


def _subclasses(cls: Any, kind: Any) -> list[type]:
    """What stands for the classes that a program derived from the original of ``cls``."""
    source, translate = cls.__dict__.get("__original__", cls), cls.__dict__.get(_TRANSLATE)
    found = kind.__subclasses__(source)
    return found if translate is None else [translate(c)[0] for c in found if "__original__" not in vars(c)]


class _Later:
    """A method that is built anew when it is first asked for: programs use few of the methods of their classes."""

    __slots__ = ("member", "name", "owner", "translate")

    def __init__(self, member: Any, translate: Any) -> None:
        self.member, self.translate = member, translate
        self.owner: Any = None
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def built(self) -> Any:
        """What takes its place in the class from now on."""
        built = _member(self.member, self.translate)
        if self.owner is not None and vars(self.owner).get(self.name) is self:
            type.__setattr__(self.owner, self.name, built)
        return built

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        return self.built().__get__(obj, cls)

    @property
    def __isabstractmethod__(self) -> bool:
        return bool(getattr(self.member, "__isabstractmethod__", False))


def _constants(cls: type, members: dict[str, Any], translate: Any) -> list[str]:
    """The names of what a class has that is no method, and for which something else may stand: arrays, tables."""
    return [
        name
        for name, value in vars(cls).items()
        if name not in members
        and not (name.startswith("__") and name.endswith("__"))
        and name not in _NOT_CONSTANT
        and type(value) not in translate.kept
        and not hasattr(type(value), "__get__")
    ]


_NOT_CONSTANT = frozenset(("_abc_impl", "_fields", "_field_defaults"))


class _Constant:
    """What a class has that is no method, as it is when it is asked for: an array, a table of functions, an object."""

    __slots__ = ("name", "owner", "translate")

    def __init__(self, owner: type, name: str, translate: Any) -> None:
        self.owner, self.name, self.translate = owner, name, translate

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        value = vars(self.owner).get(self.name, _GONE)
        if value is _GONE:
            raise AttributeError(f"type object {self.owner.__name__!r} has no attribute {self.name!r}")
        found, always = self.translate(value)
        if not always and type(value) is not np.ndarray:
            self.translate.memo().setdefault(id(value), (value, found))  # a table is gone through once in a run
        return found


_GONE: Any = object()


class _LaterMethod(_Later):
    """A function."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, for who takes it from the dictionary of the class."""
        return self.built()(*args, **kwargs)


class _LaterProperty(_Later):
    """A property, which goes before what an object has itself under its name."""

    __slots__ = ()

    def __set__(self, obj: Any, value: Any) -> None:
        self.built().__set__(obj, value)

    def __delete__(self, obj: Any) -> None:
        self.built().__delete__(obj)


#: What stands at first for a member of a class.
_LATER = {FunctionType: _LaterMethod, staticmethod: _LaterMethod, classmethod: _Later, property: _LaterProperty}


def _is_lenient(kind: Any) -> bool:
    """Whether it does not matter to a class of classes what their members are: it makes them as Python does."""
    return kind.__new__ in (type.__new__, ABCMeta.__new__) and kind.__init__ is type.__init__


def _later(member: Any, translate: Any) -> Any:
    kind = _LATER.get(type(member))
    return _member(member, translate) if kind is None else kind(member, translate)


def _member(member: Any, translate: Any) -> Any:
    """A member of a class, built anew if it is a method in any form."""
    if type(member) is FunctionType:
        return translate(member)[0]
    if type(member) in (staticmethod, classmethod):
        built = translate(member.__func__)[0]
        return member if built is member.__func__ else type(member)(built)
    if type(member) is property:
        get, put, delete = [translate(f)[0] for f in (member.fget, member.fset, member.fdel)]
        return property(get, put, delete, member.__doc__)
    if type(member) is cached_property:
        return _cached_property(member, translate)
    if type(member) is partialmethod:
        return partialmethod(translate(member.func)[0], *member.args, **member.keywords)
    if type(member) is singledispatchmethod:
        return _dispatching(member, translate)
    return filled(member)


def _dispatching(member: singledispatchmethod[Any], translate: Any) -> Any:
    built = singledispatchmethod(_member(member.func, translate))
    for cls, method in member.dispatcher.registry.items():
        built.register(cls, _member(method, translate))
    return built


def _cached_property(member: cached_property[Any], translate: Any) -> Any:
    built = cached_property(translate(member.func)[0])
    built.attrname = member.attrname
    return built


def _dict(obj: Any) -> Any:
    """The attributes that ``obj`` has itself, whatever its class makes of ``__dict__``; None where it has no place."""
    kind = type(obj)
    known = _DICTS.get(kind)
    if known is None:
        known = _DICTS[kind] = _dict_of(kind)[0]
    return known(obj)


_DICTS = Latest()


def _dict_of(kind: type) -> tuple[Any, Any]:
    """What gets the attributes that objects of a class have themselves, and what sets them."""
    for cls in kind.__mro__:
        found = vars(cls).get("__dict__")
        if found is not None and type(found) is not property:
            return found.__get__, found.__set__
    return lambda obj: None, None


def _raw(source: Any, name: str) -> tuple[bool, Any]:
    """Whether ``source`` has an attribute of its own of this name, and what it is."""
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


def _hooks(cls: type, members: dict[str, Any], translate: Any) -> dict[str, Any]:
    """What lets objects be looked at through a class: attributes are fetched when they are asked for."""
    theirs = getattr(cls, "__getattr__", None)
    delattr_of: Any = cls.__delattr__
    if theirs is not None:
        theirs = translate(theirs)[0]

    def fetched(self: Any, name: str) -> Any:
        own = _dict(self)
        source = own.get(_SOURCE) if own is not None else None
        if source is not None:
            given = _dict(source)
            if given is not None and name in given:
                if type(given[name]) is np.ndarray and translate.lasts:
                    translate.read.add(name)  # from now on it is there when the run begins
                own[name] = value = translate(given[name])[0]
                return value
            has, value = _raw(source, name)
            if has:
                value = translate(value)[0]
                _put(self, name, value)
                return value
        if theirs is not None:
            return theirs(self, name)
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def everything(self: Any) -> Any:
        _fetch_all(self, translate)
        return _dict(self)

    def delete(self: Any, name: str) -> None:
        _fetch_all(self, translate)
        delattr_of(self, name)

    def let_have(self: Any, value: Any) -> None:
        _dict_of(cls)[1](self, value)

    return {"__getattr__": fetched, "__delattr__": delete, "__dict__": property(everything, let_have)}


def _put(obj: Any, name: str, value: Any) -> None:
    slot = getattr(type(obj), name, None)
    if type(slot) is MemberDescriptorType:
        slot.__set__(obj, value)
    else:
        _dict(obj)[name] = value


def _fetch_all(obj: Any, translate: Any) -> None:
    """Let ``obj`` have everything that it is looked at instead of has, and forget about that."""
    own = _dict(obj)
    source = None if own is None else own.pop(_SOURCE, None)
    if source is None:
        return
    for name, value in list((_dict(source) or {}).items()):
        if name not in own:
            own[name] = translate(value)[0]
    for name in _slots(type(source)):
        has, value = _raw(source, name)
        if has and not _raw(obj, name)[0]:
            _put(obj, name, translate(value)[0])


def _slots(cls: type) -> list[str]:
    return [name for base in cls.__mro__ for name, member in vars(base).items() if type(member) is MemberDescriptorType]


def viewer(kind: type, cls: type, translate: Any) -> Callable[[Any], Any]:
    """What looks at objects of the class ``kind`` through ``cls``, which is built anew from it.

    What is written to what it makes the object itself does not have.
    """
    made, of, let_have = partial(object.__new__, cls), _dict_of(kind)[0], _dict_of(cls)[1]
    held = next((base for base in _HOLDING if issubclass(kind, base)), None)
    if held is not None:
        return partial(_filled, cls, held, of, let_have, translate)
    kept, read, readable = translate.kept, translate.read, translate.readable
    stamps = vars(cls).get(_STAMPS, ())

    def renewed(obj: Any) -> Any:
        forget(kind, translate)
        return translate(obj)[0]

    def seen(obj: Any) -> Any:
        try:
            for members, get, found in stamps:  # as ``fits`` does, without a call
                if get(members) != found:
                    return renewed(obj)
        except KeyError:
            return renewed(obj)
        view: Any = made()
        given = of(obj) or {}
        own = dict.copy(given)  # whatever class of dictionaries the program has chosen
        for name, value in given.items():
            sort = type(value)
            if sort in kept:
                continue
            if sort is np.ndarray and name in read and value.dtype.kind in "fciu":
                own[name] = readable(value)
            elif hasattr(cls, name):  # where the class has something of that name
                translate.memo().setdefault(id(obj), (obj, view))  # for what refers to it, as a method of its own
                own[name] = translate(value)[0]
            elif sort is not np.ndarray or value.dtype.kind != "b":
                del own[name]
        own[_SOURCE] = obj
        let_have(view, own)
        return view

    return seen


def _filled(cls: type, held: Any, of: Any, let_have: Any, translate: Any, obj: Any) -> Any:
    """A list, tuple or dictionary of a program's own class with the members of ``obj`` and its attributes."""
    view: Any
    if held is tuple:
        view = tuple.__new__(cls, [translate(x)[0] for x in tuple.__iter__(obj)])
    else:
        view = held.__new__(cls)
        if issubclass(held, dict):
            members = translate(dict(obj))[0]
            held.__init__(view, *((translate(obj.default_factory)[0],) if held is defaultdict else ()), members)
        else:
            members = [translate(x)[0] for x in held.__iter__(obj)]
            held.__init__(view, members, *((obj.maxlen,) if held is deque else ()))
    given = of(obj) or {}
    if given is obj:  # its items are its attributes
        let_have(view, view)
    elif given:
        let_have(view, {name: translate(value)[0] for name, value in dict.items(given)})
    return view


def is_seen(obj: Any) -> bool:
    """Whether ``obj`` is of a class that was built anew."""
    return "__original__" in vars(type(obj)) and isinstance(vars(type(obj))["__original__"], type)


def source_of(obj: Any) -> Any:
    """What ``obj`` is looked at instead of; itself where it is no such view."""
    return (_dict(obj) or {}).get(_SOURCE, obj)


def original(obj: Any) -> Any:
    """``obj`` as one of its original class: what it is looked at instead of, where nothing was written to it."""
    own = _dict(obj)
    source = own.get(_SOURCE)
    if source is not None and all(name == _SOURCE or _is_same(own[name], _raw(source, name)[1]) for name in own):
        return source
    _fetch_all(obj, lambda value: (value, True))
    for name, value in own.items():
        if is_seen(value):
            own[name] = original(value)
        elif isinstance(value, ModuleType):  # such as the namespace of its arrays, which SciPy compares
            own[name] = module_behind(value) or value
    with suppress(TypeError):  # of classes with slots only, which have no place for what this one has
        obj.__class__ = vars(type(obj))["__original__"]
    return obj


def _is_same(value: Any, given: Any) -> bool:
    """Whether ``value`` is what was ``given``, or stands for it."""
    if value is given or (isinstance(value, ModuleType) and module_behind(value) is given):
        return True
    return callable(given) or (is_seen(value) and _dict(value).get(_SOURCE) is given)
