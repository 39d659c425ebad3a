"""Functions of NumPy and pandas that take tables of pandas and xarray with traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np

from funcgrad.backend import is_table_class

__all__ = ["accepting_tables", "choosing_by_plain_values"]

#: NumPy's functions that call the method of an object: for tables, missing numbers and labels are the table's.
_METHODS = frozenset(
    (
        *("all", "amax", "amin", "any", "argmax", "argmin", "argsort", "around", "clip", "cumprod", "cumsum", "max"),
        *("mean", "min", "prod", "repeat", "round", "searchsorted", "std", "sum", "take", "var"),
    )
)


@cache
def accepting_tables(home: str, name: str, operation: Any) -> Any:
    """Return funcgrad's ``operation`` such that it calls the method of a table, as NumPy's function does."""
    if home != "numpy" or name not in _METHODS:
        return operation
    theirs = getattr(np, name)

    @wraps(operation)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and is_table_class(type(args[0])):
            return theirs(*args, **kwargs)
        return operation(*args, **kwargs)

    return call


def choosing_by_plain_values(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of pandas that sorts numbers into classes, such that it uses their plain values."""

    @wraps(fun)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return fun(import_module("funcgrad.numpy.columns").plain_numbers(x), *args, **kwargs)

    return call
