"""What callables are made of: partials, methods, compositions and curries of toolz, transformed functions, closures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import CellType, MethodType
from typing import Any

import toolz
from toolz.functoolz import Compose

from funcgrad.transforms.transformed import Transformed

__all__ = ["is_filled", "made_of", "parts_of"]


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
