"""What stands in funcgrad for a name of NumPy, SciPy or Python's ``math``, for ``from_numpy``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.hints import of_math

__all__ = ["Names", "counterpart", "is_mirrored"]

#: Names of ``math`` that mean something else in NumPy, or that are about integers.
_OTHERS = frozenset(("dist", "gcd", "isclose", "lcm"))


def is_mirrored(module: str) -> bool:
    """Whether names of ``module`` have counterparts: it is of NumPy or SciPy, or ``math``."""
    return module.partition(".")[0] in ("numpy", "scipy") or module == "math"


@cache
def _own(module: str) -> ModuleType | None:
    """The module of funcgrad that mirrors ``module``."""
    if not is_mirrored(module) or module == "math" or find_spec(f"funcgrad.{module.partition('.')[0]}") is None:
        return None
    try:
        return import_module(f"funcgrad.{module}")
    except ModuleNotFoundError:
        return None


def counterpart(value: Any) -> Any:
    """The function or class of funcgrad that has the public name of ``value`` of NumPy or SciPy, else ``value``.

    Example:
        >>> counterpart(np.concatenate) is fnp.concatenate, counterpart(np.float64) is np.float64
        (True, True)
    """
    if not _may_differ(value):
        return value
    name = getattr(value, "__name__", None) or getattr(value, "name", None)  # a distribution of SciPy
    if not isinstance(name, str):
        return value
    for home in _homes(value):
        if getattr(sys.modules.get(home), name, None) is value:
            return _of_math(name) if home == "math" else getattr(_own(home), name, value)
    return value


def _homes(value: Any) -> list[str]:
    """The public modules that may hold ``value``."""
    if isinstance(value, np.ufunc):
        return ["numpy", "scipy.special"]
    module = getattr(value, "__module__", None) or type(value).__module__
    if not isinstance(module, str) or not is_mirrored(module):
        return []
    return [".".join(module.split(".")[:2]), module, "numpy"]


@cache
def _of_math(name: str) -> Any:
    """The function ``name`` of ``math``, which of traced values is NumPy's."""
    plain = getattr(math, name)
    path = of_math(name) if callable(plain) and name not in _OTHERS else ""
    if not path:
        return plain

    @wraps(plain)
    def either(*args: Any) -> Any:
        if not any(isinstance(x, Tracer) or (type(x) in (list, tuple) and _holds(x)) for x in args):
            return plain(*args)
        if name == "log" and len(args) == 2:
            return fnp.log(args[0]) / fnp.log(args[1])
        home, _, found = path.rpartition(".")
        return getattr(_own(home), found)(*[fnp.stack(x) if type(x) in (list, tuple) else x for x in args])

    return either


def _holds(values: Any) -> bool:
    return any(isinstance(x, Tracer) for x in values)


class Names(ModuleType):
    """A module whose names are funcgrad's, or what ``find`` makes of them.

    Args:
        module: the module itself.
        find: ``find(value)`` gives what stands for a value that funcgrad has no name for.
    """

    module: ModuleType
    find: Callable[[Any], Any]

    def __init__(self, module: ModuleType, find: Callable[[Any], Any]) -> None:
        super().__init__(module.__name__, module.__doc__)
        vars(self).update(module=module, find=find)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.module, name)
        if not is_mirrored(self.__name__):
            return self.find(value)
        own = None if isinstance(value, ModuleType) or not _may_differ(value) else _own(self.__name__)
        if own is not None and name in getattr(own, "__all__", ()):
            value = getattr(own, name)
        else:
            value = _of_math(name) if self.__name__ == "math" else self.find(value)
        vars(self)[name] = value  # found at once the next time
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.module)


def _may_differ(value: Any) -> bool:
    """Whether another object may stand for ``value``: a function or class, but none of arrays and numbers."""
    return not (isinstance(value, type) and issubclass(value, (np.generic, np.ndarray)))
