"""Methods that code calls through a class of numbers or arrays: ``float.__add__(x, y)``, ``numpy.ndarray.sum(x)``.

Such a method takes objects of its class only. In rebuilt code it takes traced values of that class too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, wraps
from types import MethodDescriptorType, WrapperDescriptorType
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.numpy_code.array_classes import ArrayObject
from funcgrad.numpy_code.conversions import as_complex, as_float, as_int
from funcgrad.writable import Proxy

#: Classes of Python's numbers. Their operators return ``NotImplemented`` for operands of other classes.
_OF_PYTHON = (float, int, complex)
_TRACED = (Tracer, Proxy)
#: Functions for methods of which traced values have others.
_CONVERTING: dict[str, Callable[..., Any]] = {
    "__complex__": as_complex,
    "__float__": as_float,
    "__int__": as_int,
    "__repr__": str,
    "__str__": str,
}


def has_methods(value: Any) -> bool:
    """Whether ``value`` is a class of numbers or arrays whose methods take traced values in rebuilt code.

    Example:
        >>> has_methods(float), has_methods(np.ndarray), has_methods(str), has_methods(np.add)
        (True, True, False, False)
    """
    return isinstance(value, type) and (value in _OF_PYTHON or value is np.ndarray or issubclass(value, np.generic))


class Methods:
    """Attributes of a class of numbers or arrays, as ``method_of_class`` returns them.

    Example:
        >>> Methods(float).fromhex("0x1.8p0"), Methods(np.ndarray).sum(np.ones(3))
        (1.5, np.float64(3.0))
    """

    __slots__ = ("owner",)

    def __init__(self, owner: type) -> None:
        self.owner = owner

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":  # this object is no class
            return Methods
        owner = object.__getattribute__(self, "owner")
        if name == "__new__" and owner is np.ndarray:
            return _new_array
        return method_of_class(getattr(owner, name), owner)


def _new_array(cls: type, *args: Any, **kwargs: Any) -> Any:
    """Make an array of a class that is derived from ``numpy.ndarray``, or rebuilt from such a class."""
    base: Any = ArrayObject if issubclass(cls, ArrayObject) else np.ndarray
    return base.__new__(cls, *args, **kwargs)


def methods_of(kind: Any) -> Any:
    """Return ``Methods`` of a class of numbers or arrays; any other value unchanged."""
    return Methods(kind) if has_methods(kind) else kind


def method_of_class(method: Any, owner: Any = None) -> Any:
    """Return a method of a class of numbers or arrays such that it takes traced values too; others unchanged.

    Args:
        method: what code found in a class.
        owner: the class, if it is known; it may have inherited the method.

    Example:
        >>> method_of_class(float.__rsub__)(1.0, 3.0), method_of_class(str.upper) is str.upper
        (2.0, True)
    """
    if type(method) not in (WrapperDescriptorType, MethodDescriptorType):
        return method
    owner = method.__objclass__ if owner is None else owner
    return _taking_traced(method, owner) if has_methods(owner) else method


@cache
def _taking_traced(method: Any, owner: type) -> Any:
    name = method.__name__
    compute, swapped = vars(operator).get(name), False
    if compute is None and name.startswith("__r"):
        compute, swapped = vars(operator).get(f"__{name[3:]}"), True

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(issubclass(type(x), _TRACED) for x in (*args, *kwargs.values())):
            return method(*args, **kwargs)
        if owner in _OF_PYTHON and method(*map(_like, args)) is NotImplemented:
            return NotImplemented
        x = args[0]
        if issubclass(type(x), _TRACED) and issubclass(_class_of(x), owner):
            if name in _CONVERTING and owner in _OF_PYTHON:
                return _CONVERTING[name](x)
            base = ArrayObject if isinstance(x, ArrayObject) else type(x)
            return getattr(base, name).__get__(x)(*args[1:], **kwargs)
        if compute is None or issubclass(type(x), _TRACED):
            return method(*args, **kwargs)
        return compute(*(reversed(args) if swapped else args))

    return call


def _class_of(x: Any) -> type:
    found: type = x.array_class() if isinstance(x, Proxy) else x.__class__
    return found


def _like(x: Any) -> Any:
    """Return a plain value of the class of a traced one, for which a method decides whether it knows the class."""
    if not issubclass(type(x), Tracer):
        return x
    return np.ones(x.shape, x.dtype) if x.shape else x.__class__(1)
