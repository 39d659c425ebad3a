"""What SciPy computes itself: calls without traced values and without another library's arrays."""

from __future__ import annotations

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

    A function of ``funcgrad.scipy.linalg`` and of the modules in it mirrors one of ``scipy.linalg``.

    Example:
        >>> def det(a):
        ...     return "of traced values"
        >>> det.__module__ = "funcgrad.scipy.linalg"
        >>> mirrors(det)([[2.0]])
        np.float64(2.0)
    """
    name, home = fun.__name__, ".".join(fun.__module__.split(".")[1:3])

    @wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_plain(*args, *kwargs.values()):
            theirs: Any = getattr(import_scipy(f"{home}.{name}", home), name)
            made: R = theirs(*args, **kwargs)
            return made
        return fun(*args, **kwargs)

    return call
