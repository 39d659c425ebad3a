"""Methods that rebuilt code calls through the class of arrays, such as ``numpy.ndarray.__setitem__(x, key, value)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.numpy_code.array_classes import ArrayObject


def method_of_ndarray(plain: Any) -> Callable[..., Any]:
    """Return a method of ``numpy.ndarray`` that also takes traced arrays and those of a program's classes.

    For an array of a program's class it is the method that the class derives from ndarray, not its own.

    Example:
        >>> method_of_ndarray(np.ndarray.__add__)(np.ones(2), 1.0)
        array([2., 2.])
    """
    name = plain.__name__

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        x = args[0] if args else None
        if issubclass(type(x), Tracer):
            return getattr(x, name)(*args[1:], **kwargs)
        kind = x if isinstance(x, type) else type(x)
        member = getattr(ArrayObject, name, None) if issubclass(kind, ArrayObject) else None
        if isinstance(member, property):
            return member.__get__(x)(*args[1:], **kwargs)
        return (plain if member is None else member)(*args, **kwargs)

    return call


class _ClassOfArrays:
    """``numpy.ndarray`` where rebuilt code calls the class or looks up an attribute of it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return np.ndarray(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(np.ndarray, name)
        return method_of_ndarray(found) if callable(found) else found


CLASS_OF_ARRAYS = _ClassOfArrays()
