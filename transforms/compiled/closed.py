"""Arrays and numbers that a function closes over: in closures, globals, and reachable containers and objects.

A recorded program is valid as long as these are unchanged. The search looks at Python objects only; it does not see
what a function reads from elsewhere, such as a file.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
from funcgrad.core import Tracer
from funcgrad.transforms.transformed import Transformed

ndarray = np.ndarray
#: Types whose objects are compared by value.
_PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None), np.dtype)
#: Packages whose modules and objects count as constants.
_LIBRARIES = frozenset(
    ("funcgrad", "numpy", "scipy", "toolz", "cytoolz", "jax", "jaxlib", "optree", *sys.stdlib_module_names)
)
_MAX_OBJECTS = 5_000  # largest number of places to look at
_SMALL = 1 << 16  # largest size in bytes of an array that is compared as bytes


class _Reference(NamedTuple):
    """Place of an object: ``expression`` is Python code that reads it, with ``{h}`` for holder and ``{k}`` for key."""

    expression: str
    holder: Any
    key: Any = None
    immutable: bool = False  # whether the object at this place cannot change

    def read(self) -> Any:
        return _READ[self.expression](self.holder, self.key)


_READ: dict[str, Callable[[Any, Any], Any]] = {
    "{h}.cell_contents": lambda h, k: h.cell_contents,
    "{h}[{k}]": lambda h, k: h[k],
    "len({h})": lambda h, k: len(h),
    "getattr({h}, {k})": getattr,
    "{h}": lambda h, k: h,
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
                elif type(found) is ndarray:
                    self.arrays[id(found)] = found
                elif not isinstance(found, _PLAIN) and not _is_fixed(found, self._own_packages):
                    waiting.append(found)
                if not reference.immutable:
                    self._contents.append((reference, found))

    def _generate_check(self) -> Callable[[], bool]:
        """Generate a function that returns whether everything is unchanged; every call runs it."""
        namespace: dict[str, Any] = {"equal": _equal, "same_number": _is_same_number}
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
        return _is_library(x.__module__, own_packages) and not _may_hold_user_code(x.__module__)
    holds_others = isinstance(x, (dict, list, tuple, functools.partial, MethodType))
    if _is_library(type(x).__module__, own_packages) and not holds_others:
        return not _may_hold_user_code(type(x).__module__)
    return isinstance(x, (BuiltinFunctionType, np.ufunc, type))


def _may_hold_user_code(name: str | None) -> bool:
    """Whether functions and objects of a library's module contain functions of the user."""
    return (name or "").startswith(("funcgrad.transforms", "funcgrad.interop", "toolz", "cytoolz", "functools"))


def _references(x: Any, names: set[str], own_packages: frozenset[str]) -> Iterator[_Reference]:
    """Yield the places inside ``x``; for modules and classes only those whose names are used."""
    if isinstance(x, FunctionType):
        yield from _references_of_function(x, own_packages)
    elif isinstance(x, MethodType):
        yield from _fixed_references(x.__func__, x.__self__)
    elif isinstance(x, functools.partial):
        yield from _fixed_references(x.func, *x.args, *x.keywords.values())
    elif type(x) is dict or type(x) is list:
        yield _Reference("len({h})", x)
        yield from (_Reference("{h}[{k}]", x, key) for key in (x if type(x) is dict else range(len(x))))
    elif isinstance(x, tuple):
        yield from _fixed_references(*x)
    elif isinstance(x, Transformed):  # its compiled programs do not count
        yield from _fixed_references(x.fun, x.options)
    elif isinstance(x, ModuleType):
        yield from (_Reference("{h}[{k}]", x.__dict__, name) for name in names & x.__dict__.keys())
    else:
        yield from _references_of_object(x, names, own_packages)


def _fixed_references(*values: Any) -> list[_Reference]:
    """Return the places of values that their holder cannot change."""
    return [_Reference("{h}", value, immutable=True) for value in values]


def _references_of_function(x: FunctionType, own_packages: frozenset[str]) -> Iterator[_Reference]:
    library = _is_library(x.__module__, own_packages)
    for cell in x.__closure__ or ():
        yield _Reference("{h}.cell_contents", cell, immutable=library)
    yield from _fixed_references(*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())
    if not library:
        names = [name for name in _names_used(x.__code__) if name in x.__globals__]
        yield from (_Reference("{h}[{k}]", x.__globals__, name) for name in names)


def _references_of_object(x: Any, names: set[str], own_packages: frozenset[str]) -> Iterator[_Reference]:
    library = _is_library(type(x).__module__, own_packages)
    attributes = getattr(x, "__dict__", None)
    if isinstance(attributes, dict):
        yield from (_Reference("{h}[{k}]", attributes, name, library) for name in attributes)
    for kind in type(x).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__"):
                yield _Reference("getattr({h}, {k})", x, name, library)
        if not _is_library(kind.__module__, own_packages):
            methods = [(name, value) for name, value in kind.__dict__.items() if isinstance(value, FunctionType)]
            yield from _fixed_references(*[value for name, value in methods if name in names or name == "__call__"])
    if library and not isinstance(attributes, dict) and (func := getattr(x, "func", None)) is not None:  # toolz.curry
        yield from _fixed_references(func)
    if tree.is_container(type(x)) and attributes is None:
        yield from _fixed_references(*tree.leaves(x))


@functools.lru_cache(maxsize=1024)
def _names_used(code: CodeType) -> frozenset[str]:
    """Return the names that a function's code uses, including its inner functions."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names_used(constant)
    return frozenset(found)
