"""Functions of pandas and xarray that take tables with traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.batching import unbatched_if_equal
from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import check_text, refuse_conversion
from funcgrad.numpy_code.xarrays import accepted, adopt, of_arrays
from funcgrad.writable import is_buffer

__all__ = ["function_of_pandas", "function_of_xarray"]

#: Functions of pandas that sort numbers into classes, and functions whose tables a program may write to.
_CLASSIFYING = frozenset(("cut", "qcut"))
_FINDING_MISSING = frozenset(("isna", "isnull", "notna", "notnull"))
_LEAVING_OUT_MISSING = frozenset(("nanmax", "nanmean", "nanmedian", "nanmin", "nansum"))
_MAKING_TABLES = frozenset(("concat", "crosstab", "melt", "merge", "merge_asof", "merge_ordered", "pivot_table"))


def _evaluating(fun: Any) -> Any:
    """Return ``pandas.eval`` such that it finds the global names of rebuilt functions."""

    @wraps(fun)
    def call(expr: Any, *args: Any, level: int = 0, **kwargs: Any) -> Any:
        names = import_module("funcgrad.numpy.tables.frames").global_names(str(expr), level + 1)
        return fun(expr, *args, level=level + 1, **{"global_dict": names, **kwargs})

    return call


def _with_constant_labels(cls: Any) -> Any:
    """Return a class of labels of pandas, to be called: labels are constants, and traced values are refused."""

    def plain(x: Any) -> Any:
        if not isinstance(x, Tracer):
            return x
        if is_buffer(x):
            return np.array(x._val)
        refuse_conversion(x, f"pandas.{cls.__name__}(x)")

    def with_plain(fun: Any) -> Any:
        @wraps(fun, updated=())
        def made(*args: Any, **kwargs: Any) -> Any:
            return fun(*map(plain, args), **{name: plain(x) for name, x in kwargs.items()})

        return made

    found = with_plain(cls)
    for name in dir(cls):
        if name.startswith("from_"):  # class methods
            setattr(found, name, with_plain(getattr(cls, name)))
    return found


def _finding_missing(fun: Any) -> Any:
    """Return ``pandas.isna`` or ``notna`` such that it takes a traced array."""

    @wraps(fun)
    def call(obj: Any) -> Any:
        if not isinstance(obj, Tracer):
            return fun(obj)
        missing = unbatched_if_equal(fnp.isnan(obj))
        return fnp.logical_not(missing) if "not" in fun.__name__ else missing

    return call


def _without_missing(fun: Any) -> Any:
    """Return a function of arrays of pandas such that it takes a traced array, which pandas before 3.1 converts."""

    @wraps(fun)
    def call(values: Any, *, axis: Any = None, skipna: bool = True, **kwargs: Any) -> Any:
        if not isinstance(values, Tracer) or not skipna or kwargs:
            return fun(values, axis=axis, skipna=skipna, **kwargs)
        return getattr(fnp, fun.__name__)(values, axis=axis)

    return call


def function_of_pandas(fun: Any) -> Any:
    """Return a function of pandas such that it takes traced tables, and its tables take traced values.

    Example:
        >>> import pandas as pd
        >>> function_of_pandas(pd.to_datetime) is pd.to_datetime
        True
    """
    name = getattr(fun, "__name__", "")
    if name == "eval":
        return _evaluating(fun)
    if isinstance(fun, type) and name.endswith("Index"):
        return _with_constant_labels(fun)
    if name in _FINDING_MISSING:
        return _finding_missing(fun)
    if name in _LEAVING_OUT_MISSING:
        return _without_missing(fun)
    reads = name.startswith("read_") or name == "to_numeric"
    if not reads and (name not in _CLASSIFYING | _MAKING_TABLES or isinstance(fun, type)):
        return fun

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if reads:
            check_text((*args, *kwargs.values()))
        if name in _CLASSIFYING:
            first = import_module("funcgrad.numpy.tables.columns").plain_numbers(args[0])
            return fun(first, *args[1:], **kwargs)
        frames = import_module("funcgrad.numpy.tables.frames")

        def column(x: Any) -> Any:  # ``crosstab`` puts an array into a table
            return frames.as_table(x) if isinstance(x, Tracer) and not is_buffer(x) and len(x.shape) == 1 else x

        return frames.accept_traced(fun(*map(column, args), **{key: column(x) for key, x in kwargs.items()}))

    return call


def function_of_xarray(fun: Any) -> Any:
    """Return a function of xarray such that it takes traced arrays and numbers, and its tables take traced values.

    Example:
        >>> function_of_xarray(len) is len
        True
    """
    if type(fun) is not FunctionType:
        return fun
    applies = fun.__name__ == "apply_ufunc"

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if applies:
            args = (_of_arrays(args[0], len(args) - 1, kwargs), *args[1:])
        return adopt(fun(*accepted(args), **accepted(kwargs)))

    return call


def _of_arrays(func: Callable[..., Any], count: int, options: dict[str, Any]) -> Callable[..., Any]:
    """Return what ``xarray.apply_ufunc`` calls with the arrays in ``count`` tables: ``func`` takes the traced arrays.

    With ``vectorize``, the option is taken out of ``options``: funcgrad's ``vectorize`` calls ``func``.
    """
    func = partial(func, **(options.pop("kwargs", None) or {}))
    if options.pop("vectorize", False):
        axes = (options.get("input_core_dims") or [()] * count, options.get("output_core_dims", ((),)))
        excluded = options.get("exclude_dims") or ()  # their lengths may differ between the arguments
        keys = [
            [[(name, i, j) if name in excluded else name for name in dims] for j, dims in enumerate(side)]
            for i, side in enumerate(axes)
        ]
        names = {key: f"d{i}" for i, key in enumerate({key: 0 for side in keys for dims in side for key in dims})}
        sides = [",".join(f"({','.join(names[key] for key in dims)})" for dims in side) for side in keys]
        func = fnp.vectorize(func, signature="->".join(sides))
    return of_arrays(func)
