"""Python's ``max``, ``min`` and ``sorted`` for numbers whose order is not the same in all examples of a ``vmap``.

Python asks which of two numbers is larger and branches on the answer. Where there is no single answer, the numbers are
selected example by example, with the derivatives of those selected. While JAX compiles, it is the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.primitives.index_spec import is_unknown


def _extreme(plain: Callable[..., Any], is_better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return ``max`` or ``min``; of equal numbers it returns the first, as Python's does."""

    @wraps(plain)
    def choose(*args: Any, key: Any = None, **kwargs: Any) -> Any:
        items = _items(args[0]) if len(args) == 1 else args
        is_known_call = len(items) > 1 and (not kwargs or (len(args) == 1 and kwargs.keys() == {"default"}))
        marks = items if key is None or not is_known_call else list(map(key, items))
        if not is_known_call or (key is None and Tracer not in map(type, items)):
            return plain(*(args if len(args) != 1 else (items,)), key=key, **kwargs)
        if Tracer not in map(type, marks):
            return items[plain(range(len(items)), key=marks.__getitem__)]
        found, best = items[0], marks[0]
        for x, mark in zip(items[1:], marks[1:], strict=True):
            better = is_better(mark, best)
            if _is_unknown(better) and _is_number(x) and _is_number(found):
                found, best = fnp.where(better, x, found), fnp.where(better, mark, best)
            elif better:
                found, best = x, mark
        return found

    return choose


largest, smallest = _extreme(max, operator.gt), _extreme(min, operator.lt)


@wraps(sorted)
def ordered(iterable: Iterable[Any], /, *, key: Any = None, reverse: bool = False) -> list[Any]:
    """Return the items in order; equal ones keep their order, as with Python's ``sorted``."""
    items = list(iterable)
    marks = items if key is None else list(map(key, items))
    if any(map(_is_unknown, marks)) and all(map(_is_number, (*items, *marks))):
        step = -1 if reverse else 1
        order = fnp.argsort(fnp.asarray(marks[::step]), stable=True)
        if is_unknown(order):
            return list(fnp.asarray(items[::step])[order][::step])
    return [items[i] for i in sorted(range(len(items)), key=marks.__getitem__, reverse=reverse)]


def _items(x: Any) -> Any:
    return x if type(x) in (list, tuple, np.ndarray) else list(x)


def _is_unknown(x: Any) -> bool:
    """Whether ``x`` is a traced number without a single value."""
    return type(x) is Tracer and not x.shape and is_unknown(x)


def _is_number(x: Any) -> bool:
    return not x.shape if type(x) is Tracer else isinstance(x, (int, float, np.number))
