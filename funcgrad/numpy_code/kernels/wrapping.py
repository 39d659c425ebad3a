"""Wrappers of rebuilt functions, written as one function that gets the rebuilt function as its first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

#: A rebuilt function.
Built: TypeAlias = Callable[..., Any]


def around(compute: Callable[..., Any]) -> Callable[[Built], Built]:
    """Return the wrapper after which a rebuilt function ``built`` computes ``compute(built, ...)``.

    Example:
        >>> @around
        ... def of_size(built, x):
        ...     return built(abs(x))
        >>> of_size(float)(-3)
        3.0
    """
    return lambda built: lambda *args, **kwargs: compute(built, *args, **kwargs)
