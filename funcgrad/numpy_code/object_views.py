"""Objects that a program made outside, viewed through their rebuilt classes; writes change the view only."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import BuiltinMethodType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from funcgrad.numpy_code.enumerations import SOURCE
from funcgrad.numpy_code.members import are_up_to_date, forget, stamps_of
from funcgrad.numpy_code.metaclasses import members_of, mro_of
from funcgrad.numpy_code.names import original_module
from funcgrad.numpy_code.reachable import dictionary_of
from funcgrad.numpy_code.replacements import LatestCache

#: Classes of Python whose objects hold nothing except what a program puts into them.
CONTAINER_BASES = (OrderedDict, defaultdict, dict, deque, list, tuple)
PYTHON_BASES = (object, *CONTAINER_BASES)


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


def _descriptor(kind: type, name: str) -> Any:
    """Return the descriptor of this name in a class, not in its metaclass, or None."""
    for base in mro_of(kind):
        if name in members_of(base):
            found = members_of(base)[name]
            return found if hasattr(type(found), "__get__") else None
    return None


def attribute_hooks(cls: type, translate: Any) -> dict[str, Any]:
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
        if (member := _descriptor(type(self), name)) is not None:
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


def state_hook(cls: Any, translate: Any) -> dict[str, Any]:
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


def fetched_attributes(obj: Any) -> dict[str, Any] | None:
    """Return the dictionary of the attributes of an object, for a view with all that it can fetch; None if unknown."""
    if not has_rebuilt_class(obj):
        return dictionary_of(obj)
    own: dict[str, Any] | None = _dict(obj)
    if own is not None and (source := own.get(SOURCE)) is not None:
        for name in list(_dict(source) or ()):
            if name not in own:
                getattr(obj, name)
    return own


def _slots(cls: type) -> list[str]:
    return [
        name
        for base in mro_of(cls)
        for name, member in members_of(base).items()
        if type(member) is MemberDescriptorType
    ]


def layout_of(kind: type) -> type:
    """Return the first base that is written in C and makes the objects of a class."""
    in_c = (base for base in mro_of(kind) if type(members_of(base).get("__new__")) is BuiltinMethodType)
    found: type = next(in_c)
    return found


def _holds_data_of_c(kind: type) -> bool:
    """Whether ``object.__new__`` cannot make an object of this class, because a base is written in C.

    Containers of Python do not count.
    """
    return layout_of(kind) not in PYTHON_BASES


def make_viewer(kind: type, cls: type, translate: Any) -> Callable[[Any], Any]:
    """Return a function that views objects of ``kind`` through ``cls``, the class that was rebuilt from ``kind``.

    Writes to a view do not change the object.
    """
    if _holds_data_of_c(kind):
        return lambda obj: obj
    container_base = next((base for base in CONTAINER_BASES if issubclass(kind, base)), None)
    if container_base is None:
        return _object_viewer(kind, cls, translate)
    view = partial(_container_view, cls, container_base, _dict_of(kind)[0], _dict_of(cls)[1], _slots(kind), translate)
    return lambda obj: view(obj) if are_up_to_date(stamps_of(cls)) else _viewed_anew(kind, translate, obj)


def _object_viewer(kind: type, cls: type, translate: Any) -> Callable[[Any], Any]:
    """Return a function that views objects, which are no containers, as ``make_viewer`` does."""
    made, dict_of, set_dict = partial(object.__new__, cls), _dict_of(kind)[0], _dict_of(cls)[1]
    unreplaced, read = translate.unreplaced_types, translate.array_attributes
    read_only_buffer, stamps = translate.read_only_buffer, stamps_of(cls)
    # a ``__getattribute__`` of the program may read by ``object.__getattribute__``, which calls no ``__getattr__``
    at_once = any("__getattribute__" in members_of(base) for base in mro_of(kind)[:-1])
    slots = _slots(kind) if at_once else []

    def make_view(obj: Any) -> Any:
        if not are_up_to_date(stamps):
            return _viewed_anew(kind, translate, obj)
        view: Any = made()
        given = dict_of(obj) or {}
        own = dict.copy(given)  # whatever subclass of dict the program uses
        for name, value in given.items():
            sort = type(value)
            if sort in unreplaced:
                continue
            if sort is np.ndarray and name in read and value.dtype.kind in "fciub":
                own[name] = read_only_buffer(value)
            elif at_once or hasattr(cls, name):  # else lookups would find the class's, not call ``__getattr__``
                translate.memo().setdefault(id(obj), (obj, view))  # ``obj`` may refer to itself, as by methods
                own[name] = translate(value)[0]
            else:
                del own[name]
        own[SOURCE] = obj
        set_dict(view, own)
        if slots:
            _fill_slots(view, obj, slots, translate)
        return view

    return make_view


def _viewed_anew(kind: type, translate: Any, obj: Any) -> Any:
    """View an object through a new rebuilt class, because its class has changed."""
    forget(kind, translate)
    return translate(obj)[0]


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
            container_base.update(view, translate(dict(container_base.items(obj)))[0])  # not by the class's own methods
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
