"""Members of rebuilt classes: methods that are rebuilt at their first lookup, and attributes translated at each."""

from __future__ import annotations

import operator
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from functools import _lru_cache_wrapper, cached_property, partial, partialmethod, singledispatchmethod
from types import FunctionType
from typing import Any

import numpy as np

from funcgrad.numpy_code.conversions import as_format_string
from funcgrad.numpy_code.metaclasses import STAMPS, members_of, mro_of
from funcgrad.numpy_code.objects import DECORATED, rebuild_decorated

#: Types of members that are equal only if they are the same.
_METHODS = frozenset((FunctionType, classmethod, property, staticmethod))


class Stamp:
    """Members of a program's class that its rebuilt class was built from, to see whether they are still there.

    Programs use few of the methods of their classes, so a method is noted when it is rebuilt, not before.

    Args:
        cls: the program's class.
        built: the names of the members that were rebuilt together with the class.
        members: what the class holds now, if not in its own dictionary only.

    Attributes:
        cls: the program's class.
        members: what the class holds now.
        count: the number of its members then.
        methods: a function that takes the noted methods out of ``members`` at once, and what it returned then.
        others: the same for other members: arrays and traced values cannot be compared.
    """

    __slots__ = ("_built", "cls", "count", "members", "methods", "others")

    def __init__(self, cls: type, built: Iterable[str], members: Mapping[str, Any] | None = None) -> None:
        self.cls = cls
        self.members: Mapping[str, Any] = members_of(cls) if members is None else members
        self.count = len(self.members)
        # a method may stand later where there is None now
        empty = [name for name, value in self.members.items() if value is None and not name.startswith("__")]
        self._built = {name: self.members[name] for name in (*built, *empty) if name in self.members}
        self._renew()

    def note(self, name: str, member: Any) -> None:
        """Note that ``member`` was rebuilt."""
        self._built[name] = member
        self._renew()

    def _renew(self) -> None:
        pairs = list(self._built.items())
        self.methods = getter_of([pair for pair in pairs if type(pair[1]) in _METHODS])
        self.others = getter_of([pair for pair in pairs if type(pair[1]) not in _METHODS])


def getter_of(pairs: list[tuple[str, Any]]) -> tuple[Callable[[Any], Any], tuple[Any, ...]]:
    """Return a getter that takes these names from a dictionary at once, and the values that it should find."""
    if not pairs:
        return lambda names: (), ()
    if len(pairs) == 1:  # with one name, itemgetter returns a value, not a tuple
        pairs = [*pairs, *pairs]
    return operator.itemgetter(*[name for name, _ in pairs]), tuple([value for _, value in pairs])


def are_up_to_date(stamps: Iterable[Stamp]) -> bool:
    """Whether the classes still have the members that were rebuilt."""
    try:
        for stamp in stamps:
            if len(stamp.members) != stamp.count:
                return False
            get, found = stamp.methods
            if found and get(stamp.members) != found:
                return False
            get, found = stamp.others
            if found and not all(map(operator.is_, get(stamp.members), found)):
                return False
    except (KeyError, ValueError):  # a member is gone, or an array stands in its place
        return False
    return True


def stamps_of(made: Any) -> tuple[Stamp, ...]:
    """Return the stamps of a rebuilt class, its own first, and then those of its bases; none for anything else."""
    return members_of(made).get(STAMPS, ()) if isinstance(made, type) else ()


def put_stamps(made: Any, own: Stamp, above: Iterable[Any]) -> None:
    """Give a rebuilt class its stamps: its ``own``, and those of its rebuilt bases and its metaclass, ``above`` it."""
    others = [stamp for kind in above for stamp in stamps_of(kind)]
    type.__setattr__(made, STAMPS, tuple(dict.fromkeys([own, *others])))


def forget(cls: type, translate: Any) -> None:
    """Drop the rebuilt ``cls``, its bases and their metaclasses, so that the next request rebuilds them."""
    for kind in (*mro_of(cls), *mro_of(type(cls))):
        translate.classes.pop(kind, None)
        translate.viewers.pop(kind, None)


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
        built = rebuilt_member(member, self.translate)
        if all(lasts) and self.owner is not None and members_of(self.owner).get(self.name) is self:
            type.__setattr__(self.owner, self.name, built)
            for stamp in stamps_of(self.owner)[:1]:
                stamp.note(self.name, member)
        return built

    def has_gone(self) -> bool:
        """Whether the program has replaced or deleted the member; if so, replace this object likewise."""
        own = {} if self.owner is None else members_of(self.owner)
        for stamp in own.get(STAMPS, ())[:1]:
            given = stamp.members.get(self.name, _GONE)
            if given is self.member:
                break
            if own.get(self.name) is not self:
                pass
            elif given is _GONE:
                type.__delattr__(self.owner, self.name)
            else:
                new = member_of_class(self.translate, stamp.cls, self.name, given)
                type.__setattr__(self.owner, self.name, new)
                if isinstance(new, _LazyMember):
                    new.__set_name__(self.owner, self.name)
                else:
                    stamp.note(self.name, given)
            return True
        return False

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        if not self.has_gone():
            return self.rebuild().__get__(obj, cls)
        new = members_of(self.owner).get(self.name, _GONE)
        if new is _GONE:
            return getattr(super(self.owner, cls if obj is None else obj), self.name)
        return new.__get__(obj, cls) if hasattr(type(new), "__get__") else new

    member_for_program = rebuild

    @property
    def __isabstractmethod__(self) -> bool:
        return bool(getattr(self.member, "__isabstractmethod__", False))


def may_need_translation(name: str, value: Any, translate: Any) -> bool:
    """Whether a class's attribute is not a method and may need a replacement: an array, a table, an object."""
    return (
        not (name.startswith("__") and name.endswith("__"))
        and name not in _NOT_CONSTANT
        and type(value) not in translate.unreplaced_types
        and not hasattr(type(value), "__get__")
    )


_NOT_CONSTANT = frozenset(("_abc_impl", "_fields", "_field_defaults"))


class TranslatedAttribute:
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
        """Return the translated attribute, which stands in ``vars(cls)`` for the program."""
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
        if self.has_gone():
            setattr(obj, self.name, value)
        else:
            self.rebuild().__set__(obj, value)

    def __delete__(self, obj: Any) -> None:
        if self.has_gone():
            delattr(obj, self.name)
        else:
            self.rebuild().__delete__(obj)


#: Placeholders for members of a class until their first lookup, by the type of the member.
_LAZY_KINDS = {FunctionType: _LazyMethod, staticmethod: _LazyMethod, classmethod: _LazyMember, property: _LazyProperty}


def is_lenient(kind: Any) -> bool:
    """Whether a metaclass accepts any members: it makes classes as ``type`` does."""
    return kind.__new__ in (type.__new__, ABCMeta.__new__) and kind.__init__ is type.__init__


def lazy_member(member: Any, translate: Any) -> Any:
    """Return a placeholder for a method, which rebuilds it at the first lookup; the rebuilt member for others."""
    kind = _LAZY_KINDS.get(type(member))
    return rebuilt_member(member, translate) if kind is None else kind(member, translate)


def member_of_class(translate: Any, cls: type, name: str, value: Any) -> Any:
    """Return the member of a rebuilt class for one of the program's class: a method, or an attribute to translate."""
    found = lazy_member(value, translate)
    if found is value and may_need_translation(name, value, translate):
        return TranslatedAttribute(cls, name, translate)
    return found


def built_names(made: type, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` under which a rebuilt class has members, and no placeholders for methods."""
    own = members_of(made)
    return [name for name in names if name in own and not isinstance(own[name], _LazyMember)]


def rebuilt_member(member: Any, translate: Any) -> Any:
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
        return _Descriptor(member, translate)
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


def rebuild_dispatching(member: singledispatchmethod[Any], translate: Any) -> singledispatchmethod[Any]:
    """Return a ``singledispatchmethod`` with the methods that are registered now, rebuilt."""
    made = singledispatchmethod(rebuilt_member(member.func, translate))
    for cls, method in member.dispatcher.registry.items():
        made.register(cls, rebuilt_member(method, translate))
    return made


def _with_rebuilt_accessors(member: property, translate: Any) -> property:
    """Return a property of a class that the program derived from ``property``, with its functions rebuilt."""
    made = property.__new__(type(member))
    get, put, delete = [translate(f)[0] for f in (member.fget, member.fset, member.fdel)]
    property.__init__(made, get, put, delete, member.__doc__)
    vars(made).update(vars(member))
    return made
