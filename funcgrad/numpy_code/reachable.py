"""Code and objects that a function can reach, found without running it, and what is asked about them.

What the code names is looked up in globals, closure variables, modules and attributes. Whatever cannot be told without
running the function counts as code that changes arrays.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType, NoneType
from typing import Any

import numpy as np

from funcgrad.numpy_code.libraries import is_kept, package_of
from funcgrad.numpy_code.mathematics import NUMBER_MODULES

#: Number of values from which on there is too much to look at.
_MOST_VALUES = 3_000
#: Types of values that hold no function to be looked at.
_DATA = frozenset((bool, int, float, complex, str, bytes, NoneType, np.ndarray, np.ufunc, BuiltinFunctionType))
_CONTAINERS: dict[type, Any] = {dict: dict.values, list: list.__iter__, tuple: tuple.__iter__, set: set.__iter__}
_PACKAGES = frozenset(("numpy", "scipy", *NUMBER_MODULES))
#: Flag of classes that a program made, see ``Py_TPFLAGS_HEAPTYPE`` in Python's C interface.
_MADE = 1 << 9


def reachable(fun: Any) -> Iterator[Any]:
    """Yield ``fun`` and the functions, objects and classes that it can reach by names and attributes.

    Functions of libraries are included, but not what they reach.
    """
    waiting: list[Any] = [fun]
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind in _DATA or id(value) in seen or kind is ModuleType:
            continue
        seen[id(value)] = value
        yield value
        if kind is FunctionType:
            waiting += () if _is_of_library(value) else [*_named(value), *contents(value)]
        elif kind is MethodType:
            waiting += [value.__func__, value.__self__]
        elif kind is type or issubclass(kind, type):
            waiting += _defined_in(value)
        else:
            waiting += [*attributes(value), *_in_slots(value), *_defined_in(kind)]
            for base, items in _CONTAINERS.items():
                if issubclass(kind, base):
                    waiting += islice(items(value), _MOST_VALUES)


def own_codes(values: Iterable[Any]) -> Iterator[CodeType]:
    """Yield the codes of the functions among ``values`` that are not of a library."""
    for value in values:
        if type(value) is FunctionType and not _is_of_library(value):
            yield value.__code__


def _named(fun: FunctionType) -> list[Any]:
    """Return the global values that the code of ``fun`` names, and what it names in modules."""
    names = names_in(fun.__code__)
    found = [fun.__globals__[name] for name in names if name in fun.__globals__]
    modules = {id(x): x for x in found if isinstance(x, ModuleType)}
    waiting = list(modules.values())
    while waiting:
        inside = vars(waiting.pop())
        for value in [inside[name] for name in names if name in inside]:
            found.append(value)
            if isinstance(value, ModuleType) and id(value) not in modules:
                modules[id(value)] = value
                waiting.append(value)
    return found


def names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a code, and in the codes of functions inside."""
    return set(code.co_names).union(*[names_in(c) for c in code.co_consts if type(c) is CodeType])


def _is_of_library(x: FunctionType | type) -> bool:
    """Whether a function or class is of Python, or of a package whose code is not looked at."""
    if isinstance(x, type):
        return not x.__flags__ & _MADE or _is_library(x.__module__)
    return _is_library(x.__globals__.get("__name__"))


def _is_library(module: Any) -> bool:
    return package_of(module) in _PACKAGES or is_kept(module)


def _defined_in(kind: type) -> list[Any]:
    return [x for base in kind.__mro__ if not _is_of_library(base) for x in vars(base).values()]


def _in_slots(value: Any) -> list[Any]:
    """Return what an object holds in slots, such as the functions of properties and of partial functions."""
    found = []
    for slot in [x for base in type(value).__mro__ for x in vars(base).values() if type(x) is MemberDescriptorType]:
        try:
            found.append(slot.__get__(value))
        except AttributeError:  # the slot is empty
            pass
    return found


def attributes(value: Any) -> list[Any]:
    """Return the attributes of an object without asking its class, which may make attributes up."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none, or its class computes it
        return []
    return list(own.values()) if type(own) is dict else []


def contents(fun: FunctionType) -> list[Any]:
    """Return the values of the defaults and closure variables of a function."""
    found = list(fun.__defaults__) if fun.__defaults__ else []
    if fun.__kwdefaults__:
        found += fun.__kwdefaults__.values()
    for cell in fun.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # the variable has no value yet
            pass
    return found


_OPERATORS = "iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift setitem"
_METHODS = "at byteswap fill itemset partition put resize setfield shuffle sort"
_FUNCTIONS = "copyto fill_diagonal nan_to_num place put_along_axis putmask"
_UNKNOWN = "__import__ attrgetter eval exec getattr globals import_module methodcaller setattr"
#: Names of what changes an array, and of ways to reach code that has no name here.
_CHANGING = {f"{mark}{name}{mark}" for name in _OPERATORS.split() for mark in ("", "__")}.union(
    *[names.split() for names in (_METHODS, _FUNCTIONS, _UNKNOWN)]
)
#: Attributes of an array to which a program may write.
_WRITTEN = frozenset(("flat", "imag", "real"))
#: Functions with their number of positional arguments if the last one is ``out``; ufuncs know theirs.
_WITH_OUT = {"dot": 3, "clip": 4, "round": 3, "around": 3, "cumsum": 4, "cumprod": 4, "take": 4}


def may_change_arrays(fun: Any) -> bool:
    """Whether code that ``fun`` can reach has steps that change arrays, or there is too much of it to tell."""
    values = list(islice(reachable(fun), _MOST_VALUES))
    return len(values) == _MOST_VALUES or any(map(_changes, own_codes(values)))


def _changes(code: CodeType) -> bool:
    """Whether a step of the code, or of code inside, may change an array, or imports a module."""
    if not _CHANGING.isdisjoint(code.co_names):
        return True
    depth = 0
    waiting: list[tuple[int, int]] = []  # loaded functions with ``out``: the depth of the stack, most arguments
    for step in dis.get_instructions(code):
        name, what = step.opname, step.argval
        if name in ("STORE_SUBSCR", "STORE_SLICE") or (name == "BINARY_OP" and step.argrepr.endswith("=")):
            return True
        if (name == "STORE_ATTR" and what in _WRITTEN) or (name == "IMPORT_NAME" and not _is_library(what)):
            return True
        depth += dis.stack_effect(step.opcode, step.arg, jump=False)
        if name.startswith("LOAD_") and type(what) is str:
            most = _WITH_OUT.get(what) or getattr(vars(np).get(what), "nargs", None)
            waiting += [] if most is None else [(depth, most)]
        while name.startswith("CALL") and waiting and depth <= waiting[-1][0]:
            if waiting.pop()[1] == step.arg:
                return True
    return any(_changes(c) if type(c) is CodeType else type(c) is tuple and _has_out(c) for c in code.co_consts)


def _has_out(keywords: Iterable[Any]) -> bool:
    return any(type(x) is str and (x in ("out", "inplace") or x.startswith("overwrite_")) for x in keywords)


def calls_minpack(fun: Any) -> bool:
    """Whether ``fun`` can reach SciPy's functions that call MINPACK, which prints errors of the functions it calls."""
    module = sys.modules.get("scipy.optimize")
    if module is None:
        return False
    wanted = {id(module.root), id(module.fsolve), id(module.leastsq)}
    return any(id(value) in wanted for value in islice(reachable(fun), _MOST_VALUES))


def held_codes(fun: Any) -> tuple[int, ...]:
    """Return the ``id`` of the codes of the functions that ``fun`` holds, which differ between wrappers with one code.

    They are in its closure variables, in the attributes of the object of a method or of a callable object, and in those
    of these functions.
    """
    found: list[int] = []
    _add_held(fun, found, 3)
    return tuple(found)


def _add_held(fun: Any, found: list[int], depth: int) -> None:
    if type(fun) is FunctionType:
        values = contents(fun)
    elif type(fun) is MethodType:
        values = attributes(fun.__self__)
    else:
        values = [fun.func, *fun.args] if isinstance(fun, partial) else attributes(fun)
    for value in values:
        kind = type(value)
        if kind is FunctionType:
            found.append(id(value.__code__))
            if depth and value.__closure__:
                _add_held(value, found, depth - 1)
        elif kind is MethodType and depth:
            if type(value.__func__) is FunctionType:
                found.append(id(value.__func__.__code__))
            _add_held(value, found, depth - 1)
