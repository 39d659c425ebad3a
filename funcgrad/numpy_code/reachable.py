"""Code and objects that a function can reach, found without running it, and what is asked about them.

What the code names is looked up in globals, closure variables, modules and attributes.
"""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType, NoneType
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.numpy_code.bisections import halves_intervals
from funcgrad.numpy_code.calls import IdentityCache
from funcgrad.numpy_code.libraries import is_kept, module_of, package_of
from funcgrad.numpy_code.mathematics import NUMBER_MODULES
from funcgrad.numpy_code.metaclasses import members_of, mro_of, names_of

#: Number of values from which on there is too much to look at.
_MOST_VALUES = 3_000
#: Types of values that hold no function to be looked at.
DATA = frozenset((bool, int, float, complex, str, bytes, NoneType, np.ndarray, np.ufunc, BuiltinFunctionType))
_CONTAINERS: dict[type, Any] = {dict: dict.values, list: list.__iter__, tuple: tuple.__iter__, set: set.__iter__}
_PACKAGES = frozenset(("numpy", "scipy", *NUMBER_MODULES))
#: Types of values that run no code and choose no path, and of values that may choose the path of a function.
DATA_TYPES = frozenset((np.ndarray, np.float64, float, complex, tuple, list, dict, Tracer))
_CHOOSING = (bool, type(None))
#: Whether codes compare types or bisect.
_KNOWN = IdentityCache()
#: Flag of classes that a program made, see ``Py_TPFLAGS_HEAPTYPE`` in Python's C interface.
_MADE = 1 << 9


def reachable(fun: Any) -> Iterator[Any]:
    """Yield ``fun`` and the functions, objects and classes that it can reach by names and attributes.

    Functions of libraries are included, but not what they reach.
    """
    waiting: list[Any] = [fun]
    seen: dict[int, Any] = {}
    slots_by_kind: dict[type, list[MemberDescriptorType]] = {}
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind in DATA or id(value) in seen or issubclass(kind, ModuleType):
            continue
        if kind is dict and "__builtins__" in value and "__name__" in value:  # the names of a whole module
            continue
        seen[id(value)] = value
        yield value
        if kind is FunctionType:
            waiting += () if is_of_library(value) else [*named_values(value), *contents(value)]
        elif kind is MethodType:
            waiting += [value.__func__, value.__self__]
        elif kind is type or issubclass(kind, type):
            waiting += _defined_in(value)
        elif hasattr(kind, "apply_transform"):  # a transform: what it keeps between calls may hold whole modules
            waiting += [value.fun, value.options]
        else:
            slots = slots_by_kind.get(kind)
            if slots is None:
                slots = slots_by_kind[kind] = slots_of(kind)
                waiting += _defined_in(kind)
            waiting += attributes(value)
            waiting += in_slots(value, slots)
            for base, items in _CONTAINERS.items():
                if issubclass(kind, base):
                    with suppress(RuntimeError):  # the garbage collector, or another thread, adds or removes an entry
                        waiting += islice(items(value), _MOST_VALUES)


def own_codes(values: Iterable[Any]) -> Iterator[CodeType]:
    """Return the codes of the functions among ``values`` that are not of a library, nor made by funcgrad."""
    codes = (value.__code__ for value in values if type(value) is FunctionType and not is_of_library(value))
    return (code for code in codes if not code.co_filename.startswith("<funcgrad"))


def named_values(fun: FunctionType) -> list[Any]:
    """Return global values that the code of ``fun`` names, modules that it may import, and what it names in them."""
    names = names_in(fun.__code__)
    given = fun.__globals__
    found = [
        given[name] if name in given else sys.modules[name] for name in names if name in given or name in sys.modules
    ]
    modules = {id(x): x for x in found if isinstance(x, ModuleType)}
    waiting = list(modules.values())
    while waiting:
        inside = names_of(waiting.pop())
        for value in [inside[name] for name in names if name in inside]:
            found.append(value)
            if isinstance(value, ModuleType) and id(value) not in modules:
                modules[id(value)] = value
                waiting.append(value)
    return found


def names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a code, and in the codes of functions inside."""
    return set(code.co_names).union(*[names_in(c) for c in code.co_consts if type(c) is CodeType])


def is_of_library(x: Any) -> bool:
    """Whether a function or class is of Python, or of a package whose code is not looked at."""
    if isinstance(x, type):
        return not x.__flags__ & _MADE or _is_library(module_of(x))
    return type(x) is FunctionType and _is_library(x.__globals__.get("__name__"))


def _is_library(module: Any) -> bool:
    return package_of(module) in _PACKAGES or is_kept(module)


def _defined_in(kind: type) -> list[Any]:
    return [x for base in mro_of(kind) if not is_of_library(base) for x in members_of(base).values()]


def slots_of(kind: type) -> list[MemberDescriptorType]:
    """Return the slots of the objects of a class."""
    return [x for base in mro_of(kind) for x in members_of(base).values() if type(x) is MemberDescriptorType]


def in_slots(value: Any, slots: list[MemberDescriptorType]) -> list[Any]:
    """Return what an object holds in slots, such as the functions of properties and of partial functions."""
    found = []
    for slot in slots:
        try:
            found.append(slot.__get__(value))
        except AttributeError:  # the slot is empty
            pass
    return found


def dictionary_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object without asking its class, which may make attributes up; None if unknown."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none, or its class computes it
        return None
    return own if type(own) is dict else None


def attributes(value: Any) -> list[Any]:
    """Return the values of the attributes of an object."""
    return list((dictionary_of(value) or {}).values())


def contents(fun: FunctionType) -> list[Any]:
    """Return the values of the defaults and closure variables of a function."""
    found = list(fun.__defaults__) if fun.__defaults__ else []
    if fun.__kwdefaults__:
        found += fun.__kwdefaults__.values()
    if fun.__closure__:
        for cell in fun.__closure__:
            try:
                found.append(cell.cell_contents)
            except ValueError:  # the variable has no value yet
                pass
    return found


#: Names and texts in code that asks for methods: a traced number would answer as an array, which can be iterated over,
#: and an array as an object that has a hash.
_ABOUT_METHODS = frozenset(
    (
        *("Collection", "Container", "Hashable", "Iterable", "Reversible", "Sequence", "Sized", "SupportsIndex"),
        *("__getitem__", "__hash__", "__index__", "__iter__"),
    )
)


def asks_for_methods(code: CodeType) -> bool:
    """Whether a code, or that of a function inside, may ask whether a value has methods that arrays have."""
    texts = [x for x in code.co_consts if type(x) is str]
    return not _ABOUT_METHODS.isdisjoint((*code.co_names, *texts)) or any(
        asks_for_methods(x) for x in code.co_consts if type(x) is CodeType
    )


#: Names of types of numbers and arrays: a traced value is of none of them where code asks by ``type(x)``.
_NUMBER_TYPES = frozenset(
    (
        *("Complex", "Integral", "Number", "Real", "complex", "complex128", "complexfloating", "float", "float64"),
        *("floating", "generic", "inexact", "int", "integer", "ndarray", "number"),
    )
)
_COMPARISONS = frozenset(("COMPARE_OP", "CONTAINS_OP", "IS_OP"))
#: Number of instructions after ``type`` within which its result is compared.
_MOST_INSTRUCTIONS = 12


def compares_types(code: CodeType) -> bool:
    """Whether a code, or that of a function inside, may compare ``type(x)`` with a type of numbers or arrays.

    Example:
        >>> compares_types((lambda x: type(x) is float).__code__), compares_types((lambda x: type(x)()).__code__)
        (True, False)
    """
    if "type" in code.co_names:
        given = list(dis.get_instructions(code))
        if any(_is_compared(given, i) for i in _places_of("type", given)):
            return True
    return any(compares_types(x) for x in code.co_consts if type(x) is CodeType)


def _is_compared(given: list[dis.Instruction], start: int) -> bool:
    """Whether the type that is asked for at ``start`` is compared with a type of numbers or arrays, or with several."""
    before, after = given[max(start - 3, 0) : start], given[start + 1 : start + _MOST_INSTRUCTIONS]
    if any(one.argval == "issubclass" for one in before):
        return _names_numbers(after)
    calls = 1 if given[start].argval == "type" else 0
    for i, one in enumerate(after):
        calls -= one.opname.startswith("CALL")
        if calls < 0 or "JUMP" in one.opname:
            return False
        if one.opname in _COMPARISONS:
            return one.opname == "CONTAINS_OP" or _names_numbers(before[-1:] + after[:i])
        if one.opname.startswith("STORE_"):  # compared later
            return any(_is_compared(given, j) for j in _places_of(one.argval, given) if j > start)
    return False


def _places_of(name: str, given: list[dis.Instruction]) -> list[int]:
    """Return the indices of the instructions that load ``name``."""
    loads = ("LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME")
    return [i for i, one in enumerate(given) if one.argval == name and one.opname.startswith(loads)]


def _names_numbers(given: list[dis.Instruction]) -> bool:
    return any(type(one.argval) is str and one.argval in _NUMBER_TYPES for one in given)


#: Methods of loggers, which print the error of a text that cannot be filled, and go on.
_LOGGING = frozenset(("critical", "debug", "error", "exception", "info", "log", "warn", "warning"))
#: Places for numbers in a text, such as "%.3f".
_NUMBER_IN_TEXT = re.compile(r"%(?:\([^)]*\))?[#0 +-]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?[diouxXeEfFgG]")


def logs_numbers(code: CodeType) -> bool:
    """Whether a code, or that of a function inside, may fill a text that it logs with numbers."""
    texts = [x for x in code.co_consts if type(x) is str] if not _LOGGING.isdisjoint(code.co_names) else ()
    return any(map(_NUMBER_IN_TEXT.search, texts)) or any(
        logs_numbers(x) for x in code.co_consts if type(x) is CodeType
    )


#: What functions use, in modules of libraries, that are to run rebuilt from their first call: MINPACK, which prints the
#: errors of the functions that it calls, compiled powers of rotations, which treat some numbers apart, and solvers
#: whose steps have another derivative than the solution. Also of pandas, whose tables warn when they get objects.
_AT_ONCE = {
    "pandas": ("DataFrame", "Series"),
    "scipy.optimize": ("root", "fsolve", "leastsq"),
    "scipy.sparse.linalg": ("expm_multiply", "lsmr", "lsqr"),
    "scipy.spatial.transform": ("Rotation",),
}


def codes_and_needs(fun: Any, run: Any = None) -> tuple[list[CodeType], bool]:
    """Return the codes of the functions that ``fun`` can reach, and whether to run it rebuilt from its first call.

    So run functions that can reach tables or certain functions of SciPy, functions that log numbers or ask for methods
    or types, and bisections; but not those of one namespace, see ``from_array_api``. ``run`` is what calls ``fun``.
    """
    modules = ((sys.modules.get(home), names) for home, names in _AT_ONCE.items())
    at_once = {id(vars(module)[name]) for module, names in modules if module is not None for name in names}
    values = list(islice(reachable(fun), _MOST_VALUES))
    codes = list(own_codes(values))
    if any(id(value) in at_once or id(type(value)) in at_once for value in values):
        return codes, True
    runs = [run, *[vars(value).get("run") for value in values if hasattr(type(value), "apply_transform")]]
    of_one_namespace = any(getattr(one, "of_one_namespace", False) for one in runs)
    asked = (asks_for_methods, logs_numbers, _compares_or_bisects)  # the quickest first
    return codes, not of_one_namespace and any(any(map(ask, codes)) for ask in asked)


def _compares_or_bisects(code: CodeType) -> bool:
    known: bool | None = _KNOWN.get(code)
    if known is None:
        known = compares_types(code) or halves_intervals(code)
        _KNOWN.put(code, known)
    return known


def deciding(args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any = 0) -> tuple[Any, ...]:
    """Return what in a call may decide which code runs on traced values, for ``held_by``; an empty tuple if nothing."""
    if kwargs or argnums or not DATA_TYPES.issuperset(map(type, args)):
        return (*args, *kwargs.values(), str(argnums))
    return ()


def values_held(fun: FunctionType | MethodType) -> list[Any]:
    """Return what a function holds in closure variables and defaults, or a method in its object."""
    if type(fun) is MethodType:
        return attributes(fun.__self__)
    return contents(fun) if fun.__closure__ or fun.__defaults__ or fun.__kwdefaults__ else []


def has_fixed_contents(fun: FunctionType, depth: int = 3) -> bool:
    """Whether a function holds nothing that may choose another path later: nothing, or a library's own constants."""
    held = values_held(fun)
    return not held or (
        depth > 0
        and is_of_library(fun)
        and all(type(x) in DATA or (type(x) is FunctionType and has_fixed_contents(x, depth - 1)) for x in held)
    )


def held_by(fun: Any, args: tuple[Any, ...] = (), depth: int = 3) -> tuple[Any, ...]:
    """Return what decides, besides the code of ``fun``, which code its call runs: a tuple that can be compared.

    It has the ``id`` of the codes of functions and of the classes of objects, truth values, and the lengths of
    integers, which often are numbers of steps: arguments, closure variables, attributes of the object of a method or of
    a callable object, and what the functions among these hold. It also has arguments that are texts.
    """
    kind: Any = type(fun)
    found: list[Any] = []
    if kind is FunctionType or kind is MethodType:
        values = values_held(fun)
    elif issubclass(kind, partial):
        values, args = [fun.func], (*args, str(len(fun.args)), *fun.args, *fun.keywords, *fun.keywords.values())
    else:
        values = attributes(fun)
    if kind is not FunctionType:
        found.append(id(type(fun.__self__) if kind is MethodType else kind))
    for value in (*values, *args) if args else values:
        kind = type(value)
        if kind in DATA_TYPES:
            continue
        inner = value.__func__ if kind is MethodType else value
        if type(inner) is FunctionType:
            found += (id(inner.__code__), *(held_by(value, (), depth - 1) if depth else ()))
        elif kind is int:
            found.append(value.bit_length())
        elif kind in _CHOOSING:
            found.append(value)
        elif kind is not str:
            found.append(id(kind))
    return (*found, *[x for x in args if type(x) is str]) if args else tuple(found)
