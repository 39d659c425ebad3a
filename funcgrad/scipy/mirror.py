"""What SciPy computes itself: calls without traced values and without another library's arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from funcgrad.numpy.peeking import is_plain
from funcgrad.optional import import_scipy

__all__ = ["mirrors"]

P = ParamSpec("P")
R = TypeVar("R")


def mirrors(fun: Callable[P, R]) -> Callable[P, R]:
    """``fun``, but plain arguments go to the function of SciPy that has its name.

    Arguments that only SciPy's function has, as older versions do, are taken at their defaults.

    A function of ``funcgrad.scipy.linalg`` and of the modules in it mirrors one of ``scipy.linalg``.

    Example:
        >>> def det(a):
        ...     return "of traced values"
        >>> det.__module__ = "funcgrad.scipy.linalg"
        >>> mirrors(det)([[2.0]])
        np.float64(2.0)
    """
    name, home = fun.__name__, ".".join(fun.__module__.split(".")[1:3])
    own = frozenset(inspect.signature(fun).parameters)

    @wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        theirs: Any
        if is_plain(*args, *kwargs.values()):
            theirs = getattr(import_scipy(f"{home}.{name}", home), name)
            made: R = theirs(*args, **kwargs)
            return made
        if own.issuperset(kwargs):
            return fun(*args, **kwargs)
        theirs = getattr(import_scipy(f"{home}.{name}", home), name)
        known: Any = {n: x for n, x in kwargs.items() if n in own or not _is_default(theirs, n, x)}
        return fun(*args, **known)

    return call


def _is_default(fun: Callable[..., Any], name: str, value: Any) -> bool:
    """Whether ``value`` is what the argument is where nobody gives it."""
    given = inspect.signature(fun).parameters.get(name)
    return given is not None and value is given.default
