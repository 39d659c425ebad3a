"""Searches of a program's own that halve an interval: they only compare, so no derivative goes through them.

Bisections in other packages would give a derivative of 0, or that of their first bounds, without a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, MethodType
from typing import Any

from funcgrad import tree
from funcgrad.core import Tracer, traces_of
from funcgrad.forward import ForwardTrace
from funcgrad.numpy.plain_values.peeking import warn
from funcgrad.numpy.writes.assignment import is_in_no_grad
from funcgrad.numpy_code.reachable import attributes, contents
from funcgrad.reverse import ReverseTrace


def warning_of_search(fun: FunctionType, original: FunctionType) -> Callable[..., Any]:
    """Return ``fun``, whose code halves an interval, such that it warns if it is called with traced values.

    Args:
        fun: the rebuilt function.
        original: the program's function.
    """
    code = original.__code__

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        held = [*contents_of(fun), *[part for x in tree.leaves((args, kwargs)) for part in _parts(x)]]
        if not is_in_no_grad() and any(isinstance(trace, (ForwardTrace, ReverseTrace)) for trace in traces_of(held)):
            warn(
                f"{original.__qualname__}: a bisection only compares, so its result has no derivative, or that of its "
                f"first bounds, got one with traced values, at {code.co_filename}:{code.co_firstlineno}. Use "
                "scipy.optimize.brentq, or give the result its derivative with funcgrad.custom_root.",
                RuntimeWarning,
            )
        return fun(*args, **kwargs)

    return call


def contents_of(fun: Any) -> list[Any]:
    """Return the values of the closure variables of a function."""
    return contents(fun) if type(fun) is FunctionType else []


def _parts(x: Any) -> list[Any]:
    """Return a traced value, or what a function or an object holds."""
    if isinstance(x, Tracer):
        return [x]
    if type(x) is MethodType:
        return [*contents_of(x.__func__), *attributes(x.__self__)]
    return contents_of(x) if type(x) is FunctionType else attributes(x)
