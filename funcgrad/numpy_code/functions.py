"""Functions built anew from their code, with other global names and other variables that they close over."""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy_code.calls import ByIdentity, with_calls
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.local_calls import with_local_calls
from funcgrad.numpy_code.runs import PLAIN
from funcgrad.numpy_code.scope import Globals, globals_of, is_called, names_behind

__all__ = ["cached", "dispatching", "function", "variables_set"]

_EMPTY: Any = object()


_VARIABLES = {"DEREF": ByIdentity(), "GLOBAL": ByIdentity()}


def variables_set(code: CodeType, *, scope: str = "DEREF") -> frozenset[str]:
    """The variables outside of a function that it sets itself, or a function inside it does.

    Args:
        code: the function's code.
        scope: "DEREF" for those that it closes over, declared ``nonlocal``; "GLOBAL" for those declared ``global``.
    """
    known: frozenset[str] | None = _VARIABLES[scope].get(code)
    if known is None:
        known = _set_in(code, scope)
        _VARIABLES[scope].put(code, known)
    return known


def _set_in(code: CodeType, scope: str) -> frozenset[str]:
    if scope == "DEREF" and not code.co_freevars:
        return frozenset()
    setting = {dis.opmap[f"STORE_{scope}"], dis.opmap[f"DELETE_{scope}"]}
    own: set[str] = set()
    if not setting.isdisjoint(code.co_code[::2]):  # few do: to look at the instructions takes long
        own = {i.argval for i in dis.get_instructions(code) if i.opcode in setting}
    inner = [variables_set(const, scope=scope) for const in code.co_consts if type(const) is CodeType]
    every = frozenset(own.union(*inner))
    return every & frozenset(code.co_freevars) if scope == "DEREF" else every


class _Built:
    """A function that was built anew, and what the variables held then that it closes over."""

    __slots__ = ("contents", "fun")

    def __init__(self, fun: FunctionType, contents: list[tuple[CellType, Any]]) -> None:
        self.fun = fun
        self.contents = contents

    def still_fits(self) -> bool:
        """Whether the variables hold the same still."""
        return all(_content(cell) is value for cell, value in self.contents)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return _EMPTY


def function(fun: FunctionType, translate: Any) -> tuple[FunctionType, bool]:
    """``fun`` built anew from its code, and whether the same serves every run without being asked for again.

    What ``fun`` closes over is looked at whenever it is asked for: another value may be there.
    """
    if names_behind(fun.__globals__) is not None:
        return fun, True  # built anew already
    if fun.__closure__:
        known: _Built | None = translate.closures.get(fun)
        if known is not None and known.still_fits():
            return known.fun, not known.contents
    else:
        lasts = translate.functions.get(fun)
        if lasts is not None:
            return lasts, True
    memo = translate.memo()
    if id(fun) in memo:
        found: FunctionType = memo[id(fun)][1]
        return found, False
    built, replaced = _with_cells(fun, _names_of(fun, translate))
    memo[id(fun)] = fun, built  # before what it refers to, which may be itself
    lasting = _fill(built, replaced, fun, translate)
    if variables_set(fun.__code__, scope="GLOBAL"):
        lasting = False  # the end of each run that it takes part in hands over what it assigned
    if lasting:
        if fun.__closure__:
            translate.closures[fun] = _Built(built, replaced)
        else:
            translate.functions.put(fun, built)
        del memo[id(fun)]
    return built, lasting and not replaced


def _names_of(fun: FunctionType, translate: Any) -> Globals:
    names = globals_of(fun.__globals__, translate)
    assigned = variables_set(fun.__code__, scope="GLOBAL")
    if assigned:
        names.let_assign(assigned)
        names = globals_of(fun.__globals__, translate)  # which sees to it that they are handed over
    return names


def _with_cells(fun: FunctionType, names: Globals) -> tuple[FunctionType, list[tuple[CellType, Any]]]:
    """``fun`` with variables of its own where other values may stand in them, and those that these are instead of."""
    cells, replaced = [], []
    shared = variables_set(fun.__code__)
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        value = _content(cell)
        if name in shared or value is _EMPTY:
            cells.append(cell)
        else:  # of plain numbers too: functions may come to stand there
            cells.append(cell if name == "__class__" or type(value) in PLAIN else CellType())
            replaced.append((cell, value))
    source = with_local_calls(fun.__code__) if names.translate.lifts else fun.__code__
    code = with_calls(source, is_called(fun.__globals__))
    return FunctionType(code, names.fast, fun.__name__, None, tuple(cells)), replaced


def _fill(built: FunctionType, replaced: list[tuple[CellType, Any]], fun: FunctionType, translate: Any) -> bool:
    """Give ``built`` what ``fun`` has, translated. Whether that is so in every run."""
    lasting = True

    def of(value: Any) -> Any:
        nonlocal lasting
        found, always = translate(value)
        lasting = lasting and always
        return found

    values = {id(cell): value for cell, value in replaced}
    for new, old in zip(built.__closure__ or (), fun.__closure__ or (), strict=True):
        if new is not old:
            new.cell_contents = of(values[id(old)])
    built.__defaults__ = None if fun.__defaults__ is None else tuple([of(value) for value in fun.__defaults__])
    if fun.__kwdefaults__:
        built.__kwdefaults__ = {name: of(value) for name, value in fun.__kwdefaults__.items()}
    vars(built).update(vars(fun))
    built.__doc__, built.__qualname__, built.__module__ = fun.__doc__, fun.__qualname__, fun.__module__
    built.__annotations__ = fun.__annotations__
    return lasting


_dispatching: Any = functools.singledispatch(lambda x: x)
#: The code that all functions of ``functools.singledispatch`` share.
_DISPATCHING = _dispatching.__code__


def dispatching(fun: FunctionType, translate: Any) -> Callable[..., Any] | None:
    """What stands for a function of ``functools.singledispatch``; None for another function."""
    if fun.__code__ is not _DISPATCHING:
        return None
    dispatch: Any = vars(fun)["dispatch"]

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        chosen = translate(dispatch(args[0].__class__))[0] if args else fun
        return chosen(*args, **kwargs)

    return call


def cached(fun: Any, translate: Any) -> tuple[Any, bool]:
    """What stands for a function with a cache, of ``functools.lru_cache``: one with a cache for each run.

    Traced values are told apart by what they are, not by their numbers.
    """
    inner, _ = translate(fun.__wrapped__)
    results: dict[Any, Any] = {}
    held: list[Any] = []

    @functools.wraps(fun)
    def of_run(*args: Any, **kwargs: Any) -> Any:
        given: tuple[Any, ...] = (*args, *kwargs.items())
        if holds_traced(args) or holds_traced(kwargs.values()):
            key: Any = (tuple([_key(x) for x in args]), tuple([(name, _key(x)) for name, x in kwargs.items()]))
        else:
            key = (given, tuple([type(x) for x in args])) if fun.cache_parameters()["typed"] else (given, ())
        if key not in results:
            held.append(given)
            results[key] = inner(*args, **kwargs)
        return results[key]

    return of_run, False


def _key(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_key(part) for part in x])
    return ("traced", id(x)) if isinstance(x, Tracer) else x
