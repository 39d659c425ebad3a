"""Effects of a function on the objects that it can reach, while a solver calls it with values of its own.

A solver calls a function many times: with constants, and inside transforms, whose traced values are of no use
afterwards. A method of a program's object may keep some of these values: in attributes, in a cache, in arrays. So calls
inside transforms leave nothing behind. When the solution is known, one more call at the solution leaves there what
depends on traced values, with its derivatives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import is_
from types import CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from funcgrad import tree
from funcgrad.core import READ_ONLY, Tracer, is_in_transform, shallow_copy
from funcgrad.numpy_code.enumerations import SOURCE
from funcgrad.numpy_code.functions import assigned_variables
from funcgrad.numpy_code.libraries import package_of
from funcgrad.numpy_code.metaclasses import members_of
from funcgrad.numpy_code.object_views import fetched_attributes, has_rebuilt_class
from funcgrad.numpy_code.reachable import (
    DATA,
    contents,
    in_slots,
    is_of_library,
    named_values,
    names_in,
    slots_of,
)
from funcgrad.numpy_code.rebuilding import SelfRebuilding
from funcgrad.numpy_code.replacements import current_run
from funcgrad.numpy_code.scope import globals_object
from funcgrad.shared_state import write_lock
from funcgrad.writable import is_buffer, refresh_views, root_of

#: Largest numbers of items of a container and of values that are looked at, and of objects whose state is compared in
#: each call. What is nearest to the function comes first; objects behind large tables are data.
_MOST_ITEMS, _MOST_VALUES, _MOST_HOLDERS = 300, 3_000, 300
#: Packages whose objects hold functions of programs.
_OPENED = ("funcgrad", "functools", "scipy", "toolz")
_EMPTY: Any = object()


class _Slots:
    """Attributes of an object that its class keeps in slots."""

    def __init__(self, obj: Any, slots: list[MemberDescriptorType]) -> None:
        self.obj, self.slots = obj, slots

    def read(self) -> list[Any]:
        """Return the attributes."""
        return [getattr(self.obj, slot.__name__, _EMPTY) for slot in self.slots]

    def write(self, values: list[Any]) -> None:
        """Set the attributes."""
        for slot, value in zip(self.slots, values, strict=True):
            if value is not _EMPTY:
                slot.__set__(self.obj, value)
            elif getattr(self.obj, slot.__name__, _EMPTY) is not _EMPTY:
                slot.__delete__(self.obj)


class SideEffects:
    """State of all that a function can reach, as before a solver calls it.

    Args:
        fun: the function.
        roots: what else it gets.

    Attributes:
        fun: the function.
        was_written: whether a call has changed anything.
    """

    def __init__(self, fun: Callable[..., Any], roots: Iterable[Any]) -> None:
        self.fun, self.was_written = fun, False
        replaced = [x for memo in list(current_run().memos.values()) for _, x in list(memo.values())]
        views = filter(has_rebuilt_class, replaced)
        near = islice(_reached([fun, *roots, *views]), _MOST_VALUES)
        self._holders = list(islice(filter(_is_holder, near), _MOST_HOLDERS))
        self._before = self._state()
        self._may_differ = False  # from the state before

    def __bool__(self) -> bool:
        return bool(self._holders)

    def _state(self) -> list[Any]:
        return list(map(_read, self._holders))

    def _is_as_before(self) -> bool:
        return all(map(_is_unchanged, self._holders, self._before))

    def _restore(self, state: list[Any]) -> None:
        for holder, values in zip(self._holders, state, strict=True):
            if not _is_unchanged(holder, values):
                _write(holder, values)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, which may leave something behind."""
        self._may_differ = True
        return self.fun(*args, **kwargs)

    def without_trace(self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function: it finds all as before the search, and after the call nothing has changed."""
        now = self._before
        if self._may_differ:
            now = self._state()
            self._restore(self._before)
        try:
            found = fun(*args, **kwargs)
            # a function may return an array or a list that it has written to
            return found if self._is_as_before() else tree.map(shallow_copy, found)
        finally:
            if not self._is_as_before():
                self.was_written = True
                self._restore(self._before)
            if now is not self._before:
                self._restore(now)

    def settle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call the function with the solution; keep what it leaves that depends on traced values."""
        if is_in_transform() and not self.was_written and self._is_as_before():
            return  # outside of transforms, calls may have written to views of objects
        found, self._may_differ = self._state(), True
        self._restore(self._before)
        self.fun(*args, **kwargs)
        for holder, before, values, new in zip(self._holders, self._before, found, self._state(), strict=True):
            _write(holder, _merged(holder, before, values, new))


def isolated(fun: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Return ``fun`` such that its calls leave nothing behind; ``fun`` itself if it can reach no object.

    Args:
        fun: a user's function.
        args: further arguments that it gets.
    """
    effects = SideEffects(fun, args)
    if not effects:
        return fun
    fun = fun if is_in_transform() else SelfRebuilding(fun)

    def call(*args: Any, **kwargs: Any) -> Any:  # ``closures.looks_at_tracers`` finds ``fun`` among its variables
        return effects.without_trace(fun, args, kwargs)

    call.effects = effects  # type: ignore[attr-defined]
    return call


def plain_form(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function in ``isolated(fun)``, whose calls leave behind what they write."""
    effects = getattr(fun, "effects", None)
    return effects.call if type(effects) is SideEffects else fun


def settle(fun: Any, *args: Any, **kwargs: Any) -> None:
    """Let ``fun``, made by ``isolated``, leave behind what a call with these arguments, the solution, leaves."""
    effects = getattr(fun, "effects", None)
    if type(effects) is SideEffects:
        effects.settle(args, kwargs)


def settle_each(functions: Iterable[Any], x: Any, args: tuple[Any, ...]) -> None:
    """Let a function and its derivatives leave behind what their calls at ``x``, the solution, leave."""
    for fun in functions:
        settle(fun, x, *args)


def _reached(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield what a program's function can change, the nearest first: variables, attributes, containers, arrays."""
    waiting, seen = deque(roots), {}
    while waiting:
        value = waiting.popleft()
        kind = type(value)
        if not (kind in DATA or id(value) in seen or issubclass(kind, (ModuleType, type))):
            seen[id(value)] = value
            yield value
            waiting += _inside(value, kind)


def _inside(value: Any, kind: type) -> list[Any]:
    if kind is FunctionType:
        return [*_assigned_cells(value), *contents(value), *_named_objects(value)]
    if kind is Tracer or kind is MethodType:
        return [root_of(value)] if kind is Tracer else [value.__func__, value.__self__]
    if kind is CellType or kind is _Slots:
        return []
    is_program = not is_of_library(kind)
    opened = is_program or package_of(kind.__module__) in _OPENED
    own, slots = (fetched_attributes(value), slots_of(kind)) if opened else (None, [])
    found = in_slots(value, slots)
    if own is not None:
        found += [own] if is_program else own.values()
    if is_program and (own_slots := [x for x in slots if "__slots__" in members_of(x.__objclass__)]):
        found.append(_Slots(value, own_slots))  # not members of compiled classes, which cannot be set
    if isinstance(value, dict):
        items = islice(dict.items(value), _MOST_ITEMS)
        found += [x for name, x in items if name is not SOURCE]  # a run does not change the object behind a view
    elif isinstance(value, (list, tuple, set, deque)):
        found += islice(iter(value), _MOST_ITEMS)
    return found


def _named_objects(fun: FunctionType) -> list[Any]:
    """Return the global objects that a program's function names. Functions among them can reach whole packages."""
    if is_of_library(fun):
        return []
    rebuilt = globals_object(fun.__globals__)
    if rebuilt is None:
        return [x for x in named_values(fun) if type(x) is not FunctionType]
    real = {name: rebuilt.real[name] for name in names_in(fun.__code__) if name in rebuilt.real}
    return [rebuilt[name] for name, x in real.items() if not issubclass(type(x), (FunctionType, ModuleType, type))]


def _assigned_cells(fun: FunctionType) -> list[CellType]:
    """Return the closure variables that a function assigns to."""
    assigned, free = assigned_variables(fun.__code__), fun.__code__.co_freevars
    return [cell for name, cell in zip(free, fun.__closure__ or (), strict=True) if name in assigned]


def _is_holder(value: Any) -> bool:
    if type(value) is Tracer:
        return value.alias is not READ_ONLY and root_of(value) is value
    return isinstance(value, (CellType, _Slots, deque, dict, list, set))


def _read(holder: Any) -> Any:
    if type(holder) is Tracer:
        if is_buffer(holder):
            shallow_copy(holder)  # marks the memory as shared: a write copies it first
        return [holder._val, holder._trace, holder.link]
    if type(holder) is _Slots:
        return holder.read()
    if type(holder) is CellType:
        try:
            return [holder.cell_contents]
        except ValueError:  # the variable has no value
            return []
    return dict(holder) if isinstance(holder, dict) else list(holder)


def _write(holder: Any, values: Any) -> None:
    if type(holder) is Tracer:
        with write_lock:
            holder._val, holder._trace, holder.link = values
            holder.aval = None
            refresh_views(holder)
    elif type(holder) is _Slots:
        holder.write(values)
    elif type(holder) is CellType:
        if values:
            holder.cell_contents = values[0]
        else:
            del holder.cell_contents
    elif isinstance(holder, list):
        holder[:] = values
    else:
        holder.clear()
        holder.extend(values) if isinstance(holder, deque) else holder.update(values)


def _is_unchanged(holder: Any, values: Any) -> bool:
    if type(values) is dict:
        return len(holder) == len(values) and all(map(is_, dict.values(holder), values.values()))
    now = holder if type(holder) is list else _read(holder)
    return len(now) == len(values) and all(map(is_, now, values))


def _merged(holder: Any, before: Any, found: Any, new: Any) -> Any:
    """Return what a search has ``found`` and left, with what only a call at the solution leaves, or leaves traced."""
    if len(found) == len(before) and all(map(is_, _items(found), _items(before))):
        return new
    if type(new) is dict:
        taken = {name: x for name, x in new.items() if found.get(name) is before.get(name) or _depends(x)}
        return found | taken
    if type(holder) is Tracer:
        return found if is_buffer(holder) else new
    if isinstance(holder, set) or len(found) != len(new):
        return found
    return [value if _depends(value) else old for value, old in zip(new, found, strict=True)]


def _items(values: Any) -> Any:
    return values.values() if type(values) is dict else values


def _depends(value: Any) -> bool:
    """Whether ``value`` is a traced value, or holds one."""
    return any(type(x) is Tracer and not is_buffer(x) for x in _reached([value]))
