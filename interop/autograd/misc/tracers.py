"""HIPS autograd's ``misc.tracers``, as far as funcgrad needs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["const_graph"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return ``fun`` with its first arguments fixed. Nothing is cached between calls: each call runs ``fun`` again.

    Example:
        >>> const_graph(max, 3)(2)
        3
    """
    return partial(fun, *args, **kwargs)
