"""Functions rebuilt from their code, with other global names and other closure variables."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import EnumMeta
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from funcgrad.backend import is_array_class
from funcgrad.core import Tracer
from funcgrad.numpy_code.bisections import halves_intervals
from funcgrad.numpy_code.calls import IdentityCache, with_calls
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.examples import is_public, with_example_loop
from funcgrad.numpy_code.local_calls import with_local_calls
from funcgrad.numpy_code.members import Stamp, are_up_to_date, stamps_of
from funcgrad.numpy_code.metaclasses import members_of
from funcgrad.numpy_code.names import public_modules_of
from funcgrad.numpy_code.replacements import PLAIN_TYPES, Run, current_run
from funcgrad.numpy_code.scope import globals_object, globals_of, replaced_calls
from funcgrad.numpy_code.searches import warning_of_search

_EMPTY: Any = object()
#: Types of global values that do not refer to a function.
_INERT = PLAIN_TYPES | {np.ndarray, ModuleType, BuiltinFunctionType, np.ufunc}
#: The empty set, which most functions need: one object for all, because the garbage collector visits each.
_NOTHING: frozenset[str] = frozenset()
_VARIABLES = {"DEREF": IdentityCache(), "GLOBAL": IdentityCache()}


def assigned_variables(code: CodeType, *, scope: str = "DEREF") -> frozenset[str]:
    """Return the variables outside of a function that it, or a function inside it, assigns to.

    Args:
        code: the function's code.
        scope: "DEREF" for closure variables, declared ``nonlocal``; "GLOBAL" for those declared ``global``.
    """
    known: frozenset[str] | None = _VARIABLES[scope].get(code)
    if known is None:
        known = _find_assigned(code, scope)
        _VARIABLES[scope].put(code, known)
    return known


def _find_assigned(code: CodeType, scope: str) -> frozenset[str]:
    if scope == "DEREF" and not code.co_freevars:
        return _NOTHING
    setting = {dis.opmap[f"STORE_{scope}"], dis.opmap[f"DELETE_{scope}"]}
    own: set[str] = set()
    if not setting.isdisjoint(code.co_code[::2]):  # few do, and iterating over the instructions is slow
        own = {i.argval for i in dis.get_instructions(code) if i.opcode in setting}
    inner = [assigned_variables(const, scope=scope) for const in code.co_consts if type(const) is CodeType]
    every = frozenset(own.union(*inner)) or _NOTHING
    return every if scope == "GLOBAL" or every is _NOTHING else every.intersection(code.co_freevars)


class _UnchangedClass:
    """Stands among closure variables for a class that a variable or a default holds.

    Args:
        stamps: those of the rebuilt class.
    """

    __slots__ = ("stamps",)

    def __init__(self, stamps: tuple[Stamp, ...]) -> None:
        self.stamps = stamps

    @property
    def cell_contents(self) -> bool:
        """Whether the class still has the members that were rebuilt."""
        return are_up_to_date(self.stamps)


#: Closure variables, with the values that they hold.
_Cells = list[tuple[Any, Any]]
#: A rebuilt function, and the values of the closure variables of it and its parts at that time.
Built = tuple[Callable[..., Any], _Cells]


def has_same_values(contents: _Cells) -> bool:
    """Whether the variables still hold the same values."""
    try:
        for cell, value in contents:
            if cell.cell_contents is not value:
                return False
    except ValueError:  # a variable no longer has a value
        return False
    return True


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return _EMPTY


@dataclass(slots=True)
class _Plan:
    """Facts that all rebuilt functions with the same code share: a loop makes such functions again and again.

    Attributes:
        code: the code of the rebuilt functions, not the original: when an original is replaced, it is
            freed, and sets ``may_be_stale``.
        module: the module of the first function with this code.
        free: names of the closure variables.
        assigned_cells: those that stay the program's own, because the functions assign to them.
        assigned: global names that the functions assign to.
        assigns: whether ``assigned_cells`` or ``assigned`` has names.
        bisects: whether the functions halve an interval, as bisections do.
    """

    code: CodeType
    module: str
    free: tuple[str, ...]
    assigned_cells: frozenset[str]
    assigned: frozenset[str]
    assigns: bool
    bisects: bool


def _plan_of(fun: FunctionType, translate: Any) -> _Plan:
    code = fun.__code__
    plan: _Plan | None = translate.plans.get(code)
    if plan is None:
        source = with_local_calls(code, fun.__globals__, of_arrays=translate.replaces_arrays)
        made = with_calls(source, replaced_calls(fun.__globals__))
        shared, assigned = assigned_variables(code), assigned_variables(code, scope="GLOBAL")
        own, sets = made.replace() if made is code else made, bool(shared or assigned)
        plan = _Plan(own, fun.__module__, code.co_freevars, shared, assigned, sets, halves_intervals(code))
        translate.plans.put(code, plan)
    return plan


def rebuild(fun: FunctionType, translate: Any) -> tuple[FunctionType, bool]:
    """Return ``fun`` rebuilt from its code, and whether the result is valid in every run without another check.

    Closure variables are read at each request, because their values may have changed.
    """
    if globals_object(fun.__globals__) is not None:
        return fun, True  # rebuilt already
    memo = translate.memo()
    if id(fun) in memo:
        found: FunctionType = memo[id(fun)][1]
        return found, False
    plan, names = _plan_of(fun, translate), globals_of(fun.__globals__, translate)
    if plan.assigned:
        names.note_assigned(plan.assigned)
        names = globals_of(fun.__globals__, translate)  # which also hands the assigned values over at the end
    cells, watched, changed = _cells(fun, plan)
    built = FunctionType(plan.code, names.fast, fun.__name__, None, cells)
    memo[id(fun)] = fun, built  # before the values it refers to, which may be ``fun`` itself
    lasting = not plan.assigned  # assigned values are handed over at the end of each run
    if changed or fun.__defaults__ or fun.__kwdefaults__:
        lasting = _fill(built, watched, changed, fun, translate) and lasting
    attributes = _attributes(fun, translate)
    if attributes is None:
        built.__dict__ = fun.__dict__  # shared: the program may set attributes of ``fun`` later
        lasting = lasting and all(x is not None for x in fun.__dict__.values())  # a function may stand there later
    else:
        built.__dict__, lasting = attributes, False
        current_run().at_end(functools.partial(_hand_over, fun.__dict__, attributes, dict(attributes)))
    built.__doc__, built.__qualname__, built.__module__ = fun.__doc__, fun.__qualname__, fun.__module__
    built.__annotations__ = fun.__annotations__
    shown: Any = built
    if is_public(fun, public_modules_of(fun)):
        shown = with_example_loop(built, f"{fun.__module__}.{fun.__name__}")
    elif plan.bisects:
        shown = warning_of_search(built, fun)
    if lasting:
        imported = translate.imported_globals.get(fun.__globals__.get("__name__")) is names
        if watched or fun.__closure__ or not (imported or _is_inert(fun.__globals__)):
            translate.closures[fun] = shown, watched  # a small cache: the rebuilt function may refer to ``fun``
        else:
            translate.functions.put(fun, shown)
        del memo[id(fun)]
    elif shown is not built:
        memo[id(fun)] = fun, shown
    return shown, lasting and not watched


def _attributes(fun: FunctionType, translate: Any) -> dict[str, Any] | None:
    """Return the attributes of a function with replacements among them; None if no attribute needs one.

    A decorator may keep a vectorized form of the function there, and a program a table of functions or classes.
    ``__wrapped__`` is only shown to those who inspect.
    """
    held = {name: x for name, x in fun.__dict__.items() if type(x) not in PLAIN_TYPES and name != "__wrapped__"}
    found = {name: translate(x)[0] for name, x in held.items()}
    return {**fun.__dict__, **found} if any(found[name] is not x for name, x in held.items()) else None


def _hand_over(theirs: dict[str, Any], ours: dict[str, Any], before: dict[str, Any]) -> None:
    """Give a program's function the attributes that the run set."""
    theirs.update({name: x for name, x in ours.items() if x is not before.get(name, _EMPTY)})


def _is_inert(names: dict[str, Any]) -> bool:
    """Whether no global value can refer to a function; ``exec`` adds the builtins as a dictionary."""
    return all(type(value) in _INERT or name == "__builtins__" for name, value in names.items())


def rebuild_closure(fun: FunctionType, translate: Any, run: Run, begins: bool) -> tuple[Built, bool] | None:
    """Return ``fun`` rebuilt at once, and whether it lasts while its closure variables keep their values.

    ``begins`` says whether the function begins the run.

    A loop makes such functions again and again, and runs each once. Nothing keeps the rebuilt function, so
    it has the code and the closure variables only. If its code is not known, or a variable has a value for which the
    replacement is not known, the result is None.
    """
    plan: _Plan | None = translate.plans.get(fun.__code__)
    if plan is None or plan.assigns or plan.module != fun.__module__ or fun.__defaults__ or fun.__kwdefaults__:
        return None
    kept, lasting, cells, watched = translate.unreplaced_types, True, [], []
    for cell in fun.__closure__ or ():
        value = _content(cell)
        kind, new = type(value), cell
        if kind not in kept:
            if kind in translate.viewers:
                new, lasting = CellType(translate.owner(value, run, begins)), False
            elif kind is FunctionType and (known := translate.functions.get(value)) is not None:
                new = CellType(known)
            elif kind is ModuleType:  # imported by the function that made this one
                new = CellType(translate(value)[0])
            else:
                return None
        cells.append(new)
        watched.append((cell, value))
    names = globals_of(fun.__globals__, translate).fast
    return (FunctionType(plan.code, names, None, None, tuple(cells)), watched), lasting


def _cells(fun: FunctionType, plan: _Plan) -> tuple[tuple[CellType, ...], _Cells, _Cells]:
    """Make new closure variables for the rebuilt ``fun`` where the values may need a replacement.

    Returns:
        The variables, those of ``fun`` with their values, and the new variables with the program's values.
    """
    cells: list[CellType] = []
    watched: _Cells = []
    changed: _Cells = []
    for name, cell in zip(plan.free, fun.__closure__ or (), strict=True):
        new, value = cell, _content(cell)
        if value is not _EMPTY and name not in plan.assigned_cells:
            watched.append((cell, value))  # plain numbers, too: a function may be assigned later
            # ``super`` continues after the user's class, if the rebuilt one is derived from it
            is_kept = name == "__class__" and not is_array_class(value) and not isinstance(value, EnumMeta)
            if not is_kept and type(value) not in PLAIN_TYPES:
                new = CellType()
                changed.append((new, value))
        cells.append(new)
    return tuple(cells), watched, changed


def _fill(built: FunctionType, watched: _Cells, changed: _Cells, fun: FunctionType, translate: Any) -> bool:
    """Set the translated variables and defaults of ``built``. Return whether they last while ``watched`` stays."""
    lasting = True

    def of(value: Any) -> Any:
        nonlocal lasting
        found, always = translate(value)
        if stamps := stamps_of(found):
            watched.append((_UnchangedClass(stamps), True))
        if not always:
            part = translate.closures.get(value) if type(value) is FunctionType else None
            if part is not None and part[0] is found:
                watched.extend(part[1])
            else:
                lasting = False
        return found

    for cell, value in changed:
        cell.cell_contents = of(value)
    if fun.__defaults__:
        built.__defaults__ = tuple([of(value) for value in fun.__defaults__])
    if fun.__kwdefaults__:
        built.__kwdefaults__ = {name: of(value) for name, value in fun.__kwdefaults__.items()}
    return lasting


_dispatching: Any = functools.singledispatch(lambda x: x)
#: Code that all functions of ``functools.singledispatch`` share.
_DISPATCHING = _dispatching.__code__


def rebuild_singledispatch(fun: FunctionType, translate: Any) -> Callable[..., Any] | None:
    """Return the replacement for a function of ``functools.singledispatch``; None for another function."""
    if fun.__code__ is not _DISPATCHING:
        return None
    dispatch: Any = vars(fun)["dispatch"]

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        kind = args[0].__class__ if args else object
        chosen = translate(dispatch(members_of(kind).get("__original__", kind)))[0] if args else fun
        return chosen(*args, **kwargs)

    return call


def rebuild_lru_cache(fun: Any, translate: Any) -> tuple[Any, bool]:
    """Return the replacement for a function of ``functools.lru_cache``, with a cache that lasts for one run.

    Keys of traced values are their identities, not their numbers. If the program has used its own cache, calls with
    numbers, texts and classes ask that one: it may hold an object that the program has changed since.
    """
    inner, _ = translate(fun.__wrapped__)
    results: dict[Any, Any] = {}
    held: list[Any] = []

    @functools.wraps(fun)
    def of_run(*args: Any, **kwargs: Any) -> Any:
        theirs, named = _plain(args), {name: _plain(x) for name, x in kwargs.items()}
        if theirs is not _EMPTY and all(x is not _EMPTY for x in named.values()) and fun.cache_info().currsize:
            return translate(fun(*theirs, **named))[0]
        given: tuple[Any, ...] = (*args, *kwargs.items())
        if holds_traced(args) or holds_traced(kwargs.values()):
            key: Any = (tuple([_key(x) for x in args]), tuple([(name, _key(x)) for name, x in kwargs.items()]))
        else:
            key = (given, tuple([type(x) for x in args])) if fun.cache_parameters()["typed"] else (given, ())
        if key not in results:
            held.append(given)
            results[key] = inner(*args, **kwargs)
        return results[key]

    def cache_clear() -> None:
        results.clear()
        fun.cache_clear()

    vars(of_run).update(cache_clear=cache_clear, cache_info=fun.cache_info)
    return of_run, False


def _plain(x: Any) -> Any:
    """Return a number, a text, a class or a tuple of them, as the program has it; ``_EMPTY`` for anything else."""
    if type(x) is tuple:
        parts = tuple(map(_plain, x))
        return _EMPTY if any(part is _EMPTY for part in parts) else parts
    if isinstance(x, type):
        return members_of(x).get("__original__", x)
    return x if type(x) in PLAIN_TYPES else _EMPTY


def _key(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_key(part) for part in x])
    return ("traced", id(x)) if isinstance(x, Tracer) else x
