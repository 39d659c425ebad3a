"""Arrays and numbers that a function closes over: in closures, globals, and reachable classes, containers and objects.

A recorded program is valid as long as these are unchanged. The search looks at Python objects only; it does not see
what a function reads from elsewhere, such as a file.
"""

from __future__ import annotations

import builtins
import functools
import operator
import sys
import threading
import weakref
from abc import ABCMeta, get_cache_token
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from gc import get_referents
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import Tracer
from funcgrad.numpy.tables.containers import LIBRARIES
from funcgrad.numpy_code import CheckedForWrites, Rebuilt, SelfRebuilding
from funcgrad.transforms.transformed import Transformed

ndarray = np.ndarray
#: Types whose objects are compared by value.
_PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None), np.dtype)
#: Packages whose modules and objects count as constants.
_LIBRARIES = frozenset(
    ("funcgrad", "numpy", "scipy", "toolz", "cytoolz", "jax", "jaxlib", "optree", *sys.stdlib_module_names)
)
#: Modules of Python whose objects hold values of the user, which may change.
_CHANGING = ("argparse", "collections", "types")
#: Modules of libraries whose functions and objects hold functions and values of the user.
_HOLDING = (*_CHANGING, "functools", "toolz", "cytoolz", "funcgrad.transforms", "funcgrad.interop")
#: Types of libraries whose objects hold values of the user.
_HOLDERS = (dict, list, tuple, set, frozenset, deque, MappingProxyType)
#: Types of members of classes that hold functions, and the attributes in which they do.
_PARTS_OF_MEMBERS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((staticmethod, classmethod), ("__func__",)),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.singledispatchmethod: ("func", "dispatcher"),
}
#: Types of attributes that are compared in objects of libraries; others are caches, or do not change.
_DATA = frozenset((ndarray, np.float64, np.bool_, bool, int, float, complex, str, tuple, list))
_MAX_RESULTS = 100  # largest number of results in a cache to look at
_MAX_OBJECTS = 5_000  # largest number of places to look at
_SMALL = 1 << 16  # largest size in bytes of an array that is compared as bytes


class _Reference(NamedTuple):
    """Place of an object: ``expression`` is Python code that reads it, with ``{h}`` for holder and ``{k}`` for key."""

    expression: str
    holder: Any
    key: Any = None
    immutable: bool = False  # whether the object at this place cannot change
    settles: bool = False  # whether the first run may change it: functions keep results as new attributes

    def read(self) -> Any:
        return _READ[self.expression](self.holder, self.key)


_READ: dict[str, Callable[[Any, Any], Any]] = {
    "{h}.cell_contents": lambda h, k: h.cell_contents,
    "{h}.__code__": lambda h, k: h.__code__,
    "{h}.__defaults__": lambda h, k: h.__defaults__,
    "{h}.__kwdefaults__": lambda h, k: h.__kwdefaults__,
    "{h}.__mro__": lambda h, k: h.__mro__,
    "{h}[{k}]": lambda h, k: h[k],
    "len({h})": lambda h, k: len(h),
    "getattr({h}, {k})": getattr,
    "{h}": lambda h, k: h,
    "{h}()": lambda h, k: h(),
    "{h}.get({k})": lambda h, k: h.get(k),
    "type({h})": lambda h, k: type(h),
    "dict.__getitem__({h}, {k})": dict.__getitem__,
    "list.__getitem__({h}, {k})": list.__getitem__,
    "has_same({h}, {k})": lambda h, k: _has_same(h, k),
    "{h}.keys().isdisjoint({k})": lambda h, k: h.keys().isdisjoint(k),
    "has_numbers({h}, {k})": lambda h, k: _has_numbers(h, k),
}


class ReachableObjects:
    """Places that a function can reach, and the objects found there.

    Attributes:
        arrays: the arrays that were found, by identity.
        is_complete: whether all places were looked at.
        has_tracers: whether values of running transforms were found.
        names: the names that the functions use.
    """

    def __init__(self, fun: Any) -> None:
        self.arrays: dict[int, ndarray] = {}
        self.is_complete, self.has_tracers = True, False
        modules = [getattr(x, "__module__", None) or "" for x in _with_inner(fun)]
        self._own_packages = frozenset(module.partition(".")[0] for module in modules)
        self._contents: list[tuple[_Reference, Any]] = []
        self.names: set[str] = set()
        count = -1
        while count != len(self.names):  # a function may name what stands in a module that was looked at before
            count = len(self.names)
            self._contents = []
            self._walk(fun)
        self._copies = [(x, x.tobytes() if x.nbytes <= _SMALL else x.copy()) for x in self.arrays.values()]
        self.is_unchanged = self._generate_check() if self._contents or self._copies else lambda: True

    def is_valid(self) -> bool:
        """Return ``is_unchanged()``, or False if it raises an error, for example because a name was deleted."""
        try:
            return self.is_unchanged()
        except Exception:
            return False

    def reaches(self, x: ndarray) -> bool:
        """Whether ``x`` is one of the arrays, or a view of one."""
        base: Any = x
        while type(base) is ndarray:
            if id(base) in self.arrays:
                return True
            base = base.base
        return False

    def _walk(self, fun: Any) -> None:
        waiting, seen = [fun], set()
        while waiting:
            x = waiting.pop()
            if id(x) in seen:
                continue
            seen.add(id(x))
            if isinstance(x, FunctionType):
                self.names |= _names_used(x.__code__)
            for reference in _references(x, self.names, self._own_packages):
                if len(self._contents) >= _MAX_OBJECTS:
                    self.is_complete = False
                    return
                try:
                    found = reference.read()
                except Exception:  # an empty cell, for example
                    continue
                if issubclass(type(found), Tracer):
                    self.has_tracers = True
                elif isinstance(found, ndarray) and not isinstance(found, np.memmap):  # a file may be too large to copy
                    array = found if type(found) is ndarray else np.asarray(found)
                    self.arrays[id(array)] = array
                    if array is not found:
                        waiting.append(found)
                elif not isinstance(found, _PLAIN) and not _is_fixed(found, self._own_packages):
                    waiting.append(found)
                if not reference.immutable:
                    self._contents.append((reference, found))

    def settle(self) -> None:
        """Take it for unchanged that objects and classes have new attributes."""
        for n, (reference, _) in enumerate(self._contents):
            if reference.settles:
                self._namespace[f"f{n}"] = reference.read()

    def _generate_check(self) -> Callable[[], bool]:
        """Generate a function that returns whether everything is unchanged; every call runs it."""
        namespace: dict[str, Any] = {"equal": _equal, "same_number": _is_same_number, "has_same": _has_same}
        namespace["has_numbers"] = _has_numbers
        self._namespace = namespace
        lines = ["def is_unchanged():"]
        for n, (reference, found) in enumerate(self._contents):
            namespace[f"h{n}"], namespace[f"k{n}"], namespace[f"f{n}"] = reference.holder, reference.key, found
            now = reference.expression.format(h=f"h{n}", k=f"k{n}")
            also = f" and not same_number({now}, f{n})" if isinstance(found, _PLAIN) else ""
            lines.append(f"    if {now} is not f{n}{also}: return False")
        for n, (x, copy) in enumerate(self._copies):
            namespace[f"a{n}"], namespace[f"s{n}"] = x, copy
            test = f"a{n}.tobytes() != s{n}" if type(copy) is bytes else f"not equal(a{n}, s{n})"
            lines.append(f"    if {test}: return False")
        exec("\n".join([*lines, "    return True"]), namespace)
        is_unchanged: Callable[[], bool] = namespace["is_unchanged"]
        return is_unchanged


def _is_same_number(now: Any, found: Any) -> bool:
    """Whether a number is unchanged; NaN equals NaN."""
    return type(now) is type(found) and bool(now == found or (now != now and found != found))


def _equal(x: ndarray, copy: ndarray) -> bool:
    if x.shape != copy.shape or x.dtype != copy.dtype:
        return False
    if x.flags.c_contiguous and copy.flags.c_contiguous:
        return bool((x.reshape(-1).view(np.uint8) == copy.reshape(-1).view(np.uint8)).all())
    return x.tobytes() == copy.tobytes()


def _has_numbers(table: Any, copy: ndarray) -> bool:
    """Whether a table of another library has the same numbers as before."""
    return _equal(np.asarray(table), copy)


def _with_inner(fun: Any) -> Iterator[Any]:
    """Yield the function, and the functions inside its transforms and partials."""
    while fun is not None:
        yield fun
        fun = getattr(fun, "fun", None) or getattr(fun, "func", None)


def _is_library(name: str | None, own_packages: frozenset[str]) -> bool:
    """Whether a module belongs to a library, known here or installed, and not to the function's own package."""
    package = (name or "").partition(".")[0]
    return package in _LIBRARIES or (package not in own_packages and _is_installed(package))


@functools.lru_cache(maxsize=1024)
def _is_installed(package: str) -> bool:
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _is_fixed(x: Any, own_packages: frozenset[str]) -> bool:
    """Whether ``x`` belongs to a library, so that its contents are not searched."""
    if isinstance(x, ModuleType):
        return _is_library(x.__name__, own_packages)
    if isinstance(x, FunctionType):
        return _is_library(x.__module__, own_packages) and not _holds_others(x.__module__)
    if isinstance(x, type):
        return _is_library(x.__module__, own_packages)
    if isinstance(x, (BuiltinFunctionType, np.ufunc)):
        return not _is_of_python(x)
    kind = type(x)
    opened = isinstance(x, (*_HOLDERS, *_PARTS_OF_MEMBERS, *_READ_AT_ONCE)) or _holds_data(kind)
    return not opened and _is_library(kind.__module__, own_packages) and not _holds_others(kind.__module__)


def _holds_others(name: str | None) -> bool:
    """Whether functions and objects of a library's module hold functions or values of the user."""
    return (name or "").startswith(_HOLDING)


def _holds_data(kind: type) -> bool:
    """Whether objects of a class of NumPy, SciPy or an installed package may hold numbers: polynomials, models, tables.

    Objects of Python, funcgrad and JAX do not change.
    """
    return kind.__module__.partition(".")[0] not in _LIBRARIES - {"numpy", "scipy"}


def _is_of_python(x: Any) -> bool:
    """Whether ``x`` is a ufunc that ``numpy.frompyfunc`` has made."""
    return isinstance(x, np.ufunc) and x.__name__.endswith("(vectorized)")


def _has_same(values: Iterable[Any], others: tuple[Any, ...]) -> bool:
    """Whether a container has the same objects as before."""
    now = tuple(values)
    return len(now) == len(others) and all(map(operator.is_, now, others))


def _references(x: Any, names: set[str], own_packages: frozenset[str]) -> Iterator[_Reference]:
    """Yield the places inside ``x``; for modules and classes only those whose names are used."""
    if isinstance(x, FunctionType):
        yield from _references_of_function(x, own_packages)
    elif type(x) is dict or type(x) is list or isinstance(x, MappingProxyType):
        yield _Reference("len({h})", x)
        yield from (_Reference("{h}[{k}]", x, key) for key in (range(len(x)) if type(x) is list else x))
    elif type(x) in _PARTS_OF_MEMBERS:
        yield from _fixed_references(*[getattr(x, name, None) for name in _PARTS_OF_MEMBERS[type(x)]])
    elif isinstance(x, tuple(_READ_AT_ONCE)):
        yield from next(read(x, names) for kind, read in _READ_AT_ONCE.items() if isinstance(x, kind))
    elif isinstance(x, type):
        yield from _references_of_class(x, names, own_packages)
    elif type(x).__module__.partition(".")[0] in LIBRARIES:
        with suppress(TypeError):  # a table of several arrays
            numbers = np.array(np.asarray(x))  # pandas 2.2 copies nothing in ``np.array(x)``
            if numbers.dtype.kind in "biufc":
                yield _Reference("has_numbers({h}, {k})", x, numbers)
    elif isinstance(x, Transformed):  # its compiled programs do not count
        yield from _fixed_references(x.fun, x.options)
    elif isinstance(x, ModuleType):
        known, used = x.__dict__, {*names, "__getattr__"}
        yield from (_Reference("{h}[{k}]", known, name) for name in used & known.keys())
        if "__getattr__" in known:
            yield _Reference("{h}.keys().isdisjoint({k})", known, frozenset(used - known.keys()))
    else:
        yield from _references_of_object(x, names, own_packages)


def _fixed_references(*values: Any) -> list[_Reference]:
    """Return the places of values that their holder cannot change."""
    return [_Reference("{h}", value, immutable=True) for value in values]


def _references_of_function(x: FunctionType, own_packages: frozenset[str]) -> Iterator[_Reference]:
    library = _is_library(x.__module__, own_packages)
    for cell in x.__closure__ or ():
        yield _Reference("{h}.cell_contents", cell, immutable=library)
    yield from _fixed_references(*(x.__defaults__ or ()), *((x.__kwdefaults__,) if x.__kwdefaults__ else ()))
    if not library:  # reloaders replace the code and the defaults of a function
        yield _Reference("{h}.__code__", x, settles=hasattr(x, "primitive"))  # compiled in the first call
        yield from (_Reference(f"{{h}}.{name}", x) for name in ("__defaults__", "__kwdefaults__") if getattr(x, name))
        names, known = _names_used(x.__code__), x.__globals__
        if not _EVALUATING.isdisjoint(names):
            names = names | known.keys()
        yield from (_Reference("{h}[{k}]", known, name) for name in names if name in known)
        if absent := _BUILTIN_NAMES & names - known.keys():
            yield _Reference("{h}.keys().isdisjoint({k})", known, absent)
        yield from (_Reference("{h}[{k}]", x.__dict__, name) for name in x.__dict__)


#: Functions with which code may read any global name.
_EVALUATING = frozenset(("eval", "exec", "globals"))
#: Built-in names, which a module may define itself later.
_BUILTIN_NAMES = frozenset(dir(builtins))


def _references_of_class(x: type, names: set[str], own_packages: frozenset[str]) -> Iterator[_Reference]:
    """Yield the places in a class of the user, and its bases: members whose names are used, and special methods."""
    members = vars(x)
    yield _Reference("{h}.__mro__", x)
    yield _Reference("len({h})", members, settles=True)
    for name, value in members.items():
        is_special = name[:2] == name[-2:] == "__" and isinstance(value, (FunctionType, *_PARTS_OF_MEMBERS))
        if is_special or name in names:
            yield _Reference("{h}[{k}]", members, name)
    if isinstance(x, ABCMeta):  # other classes may be registered
        yield _Reference("{h}()", get_cache_token)
    kinds = (type(x), *x.__mro__[1:])
    yield from _fixed_references(*[kind for kind in kinds if not _is_library(kind.__module__, own_packages)])


def _references_of_object(x: Any, names: set[str], own_packages: frozenset[str]) -> Iterator[_Reference]:
    kind = type(x)
    is_known = _is_library(kind.__module__, own_packages)
    library = is_known and not kind.__module__.startswith(_CHANGING)
    attributes = getattr(x, "__dict__", None)
    if isinstance(attributes, dict):
        opened = not library or kind.__module__.startswith((*_HOLDING, "numpy", "scipy"))  # of others, only data
        kinds = {name: type(value) for name, value in attributes.items()}
        yield from (
            _Reference("{h}[{k}]", attributes, name, library and part not in _DATA)
            for name, part in kinds.items()
            if opened or part in _DATA or part is dict
        )
        if not library:
            yield _Reference("len({h})", attributes, settles=True)
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__"):
                is_fixed = library and type(getattr(x, name, None)) not in _DATA
                yield _Reference("getattr({h}, {k})", x, name, is_fixed)
    if not is_known:
        yield _Reference("type({h})", x)
    yield from _references_of_items(x)
    if library and not isinstance(attributes, dict) and (func := getattr(x, "func", None)) is not None:  # toolz.curry
        yield from _fixed_references(func)
    if tree.is_container(type(x)) and attributes is None:
        yield from _fixed_references(*tree.leaves(x))


def _references_of_items(x: Any) -> Iterator[_Reference]:
    """Yield the places in a container of another class than ``dict`` and ``list``."""
    if isinstance(x, dict):
        yield _Reference("len({h})", x)
        yield from (_Reference("dict.__getitem__({h}, {k})", x, key) for key in dict.keys(x))
    elif isinstance(x, list):
        yield _Reference("len({h})", x)
        yield from (_Reference("list.__getitem__({h}, {k})", x, i) for i in range(list.__len__(x)))
    elif isinstance(x, tuple):
        yield from _fixed_references(*tuple.__iter__(x))
    elif isinstance(x, (set, deque)):
        yield _Reference("has_same({h}, {k})", x, tuple(x))
        yield from _fixed_references(*x)


def _cached(x: Any, names: set[str]) -> list[_Reference]:
    """Return the places that a function of ``functools.lru_cache`` reads: its own, and the results in the cache."""
    parts = [part for part in get_referents(x) if part is not x.__dict__]
    tables = [part for part in parts if type(part) is dict and len(part) == x.cache_info().currsize]
    if not tables:  # a cache without a size
        return _fixed_references(*parts)
    table = tables[-1]  # of all results; it grows, and another dictionary before it is a result
    known = [_Reference("{h}[{k}]", table, key) for key in islice(table, _MAX_RESULTS)]
    known += [] if table else [_Reference("len({h})", table, settles=True)]
    return [*known, *_fixed_references(*[part for part in parts if part is not table])]


#: Objects of Python that hold others, and functions that return the places in them.
_READ_AT_ONCE: dict[type, Callable[[Any, set[str]], list[_Reference]]] = {
    weakref.ref: lambda x, names: [_Reference("{h}()", x)],
    ContextVar: lambda x, names: [_Reference("{h}.get({k})", x)],
    threading.local: lambda x, names: [_Reference("getattr({h}, {k})", x, name) for name in names & vars(x).keys()],
    functools._lru_cache_wrapper: _cached,
    **dict.fromkeys((CheckedForWrites, Rebuilt, SelfRebuilding), lambda x, names: _fixed_references(x.fun)),
    **dict.fromkeys((np.vectorize, fnp.vectorize), lambda x, names: [_Reference("getattr({h}, {k})", x, "pyfunc")]),
    MethodType: lambda x, names: _fixed_references(x.__func__, x.__self__),
    functools.partial: lambda x, names: _fixed_references(x.func, *x.args, x.keywords),
    np.ufunc: lambda x, names: _fixed_references(*filter(callable, get_referents(x))),
}


@functools.lru_cache(maxsize=1024)
def _names_used(code: CodeType) -> frozenset[str]:
    """Return the names that a function's code uses, also in texts, including its inner functions."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names_used(constant)
        elif isinstance(constant, str) and constant.isidentifier():  # as in ``getattr(settings, "rate")``
            found.add(constant)
    return frozenset(found)
