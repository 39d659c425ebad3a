"""Functions of NumPy and pandas that take tables of pandas and xarray with traced values."""

from __future__ import annotations

import sys
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np

from funcgrad.backend import is_table_class
from funcgrad.core import Tracer

__all__ = ["accepting_tables", "function_of_pandas"]

#: NumPy's functions that call the method of an object: for tables, missing numbers and labels are the table's.
_METHODS = frozenset(
    (
        *("all", "amax", "amin", "any", "argmax", "argmin", "argsort", "around", "clip", "cumprod", "cumsum", "max"),
        *("mean", "min", "prod", "repeat", "round", "searchsorted", "std", "sum", "take", "var"),
    )
)
#: Types of arrays that are no tables: the quick look at them is what an operation on a few numbers can afford.
_ARRAYS = frozenset((Tracer, np.ndarray))


@cache
def accepting_tables(home: str, name: str, operation: Any) -> Any:
    """Return funcgrad's ``operation`` such that it calls the method of a table, as NumPy's function does."""
    if home != "numpy" or name not in _METHODS:
        return operation
    theirs = getattr(np, name)

    @wraps(operation)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) not in _ARRAYS and is_table_class(type(args[0])):
            return theirs(*args, **kwargs)
        return operation(*args, **kwargs)

    return call


#: Functions of pandas that sort numbers into classes, and functions whose tables a program may write to.
_CLASSIFYING = frozenset(("cut", "qcut"))
_MAKING_TABLES = frozenset(
    ("concat", "crosstab", "melt", "merge", "merge_asof", "merge_ordered", "pivot_table", "read_csv")
)


def _evaluating(fun: Any) -> Any:
    """Return ``pandas.eval`` such that it finds the global names of rebuilt functions."""

    @wraps(fun)
    def call(expr: Any, *args: Any, level: int = 0, **kwargs: Any) -> Any:
        names = import_module("funcgrad.numpy.frames").global_names(str(expr), sys._getframe(level + 1))
        return fun(expr, *args, level=level + 1, **{"global_dict": names, **kwargs})

    return call


def function_of_pandas(fun: Any) -> Any:
    """Return a function of pandas such that it takes traced tables, and its tables take traced values.

    Example:
        >>> import pandas as pd
        >>> function_of_pandas(pd.isna) is pd.isna
        True
    """
    name = getattr(fun, "__name__", None)
    if name == "eval":
        return _evaluating(fun)
    if name not in _CLASSIFYING | _MAKING_TABLES or isinstance(fun, type):
        return fun

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if name in _CLASSIFYING:
            first = import_module("funcgrad.numpy.columns").plain_numbers(args[0])
            return fun(first, *args[1:], **kwargs)
        return import_module("funcgrad.numpy.frames").accept_traced(fun(*args, **kwargs))

    return call
