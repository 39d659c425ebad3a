"""Functions as they are now: what they close over is bound to what it is at this moment.

``for w in weights: h = checkpoint(lambda h: h @ w)(h)`` makes functions that all read one variable. When
they run again in the backward pass, it has moved on.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import CellType, FunctionType, MethodType
from typing import Any

import toolz
from toolz.functoolz import Compose

from funcgrad.core import Tracer
from funcgrad.numpy_code.functions import variables_set
from funcgrad.transforms.transformed import Transformed
from funcgrad.writable import twin_in_memory

__all__ = ["frozen"]


def parts_of(x: Any) -> tuple[Any, ...]:
    """The functions that a callable is made of.

    Example:
        >>> parts_of(functools.partial(max, 1)), parts_of(toolz.compose(abs, len)), parts_of(abs)
        ((<built-in function max>,), (<built-in function len>, <built-in function abs>), ())
    """
    if type(x) is MethodType:
        return (x.__func__,)
    if type(x) is functools.partial or type(x) is toolz.curry:
        return (x.func,)
    if type(x) is Compose:
        return (x.first, *x.funcs)
    return (x.fun,) if type(x) is Transformed else ()


def made_of(x: Any, functions: Sequence[Any]) -> Any:
    """The callable that is to ``functions`` what ``x`` is to ``parts_of(x)``."""
    if type(x) is MethodType:
        return MethodType(functions[0], x.__self__)
    if type(x) is Compose:
        return Compose(tuple(reversed(functions)))
    if type(x) is Transformed:
        return Transformed(x.run, functions[0], x.options, x.says)
    return type(x)(functions[0], *x.args, **x.keywords)


def is_filled(cell: CellType) -> bool:
    """Whether a variable that is closed over has a value already."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def frozen(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun`` with its closed-over variables, and those of the functions it closes over, as they are now.

    Functions are looked for in partials, toolz's compositions and curries, methods and transformed
    functions too. Global variables, the insides of objects, and variables that one of the functions sets
    (``nonlocal``) stay shared.

    Example:
        >>> def make():
        ...     k = 1
        ...     now = frozen(lambda: k)
        ...     k = 2
        ...     return now
        >>> make()()
        1
    """
    functions: dict[int, FunctionType] = {}
    _collect(fun, functions)
    shared = {id(cell): cell for f in functions.values() for cell in _written(f)}
    now: Callable[..., Any] = _copy(fun, {}, shared) if functions else fun
    return now


def _collect(x: Any, found: dict[int, FunctionType]) -> None:
    """All functions with closed-over variables that ``x`` is made of or closes over."""
    if type(x) is not FunctionType:
        for part in parts_of(x):
            _collect(part, found)
    elif x.__closure__ is not None and id(x) not in found:
        found[id(x)] = x
        for cell in x.__closure__:
            if is_filled(cell):
                _collect(cell.cell_contents, found)


def _written(fun: FunctionType) -> list[CellType]:
    """Variables that ``fun`` itself sets: these it goes on sharing with everybody."""
    stores = variables_set(fun.__code__)
    return [cell for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True) if name in stores]


def _copy(x: Any, done: dict[int, Any], cells: dict[int, CellType]) -> Any:
    """``x`` with copies of its functions and of their variables; ``done`` and ``cells`` are those made so far."""
    if isinstance(x, Tracer):  # the program may write to it
        return twin_in_memory(x)
    if type(x) is not FunctionType:
        parts = parts_of(x)
        copies = [_copy(part, done, cells) for part in parts]
        return x if all(map(operator.is_, parts, copies)) else made_of(x, copies)
    if x.__closure__ is None:
        return x
    if id(x) in done:
        return done[id(x)]
    new = [cell for cell in x.__closure__ if id(cell) not in cells]
    cells.update({id(cell): CellType() for cell in new})
    own = tuple([cells[id(cell)] for cell in x.__closure__])
    copy = done[id(x)] = FunctionType(x.__code__, x.__globals__, x.__name__, x.__defaults__, own)
    copy.__kwdefaults__, copy.__qualname__, copy.__dict__ = x.__kwdefaults__, x.__qualname__, x.__dict__
    for cell in new:  # they may hold ``x`` itself
        if is_filled(cell):
            cells[id(cell)].cell_contents = _copy(cell.cell_contents, done, cells)
    return copy
