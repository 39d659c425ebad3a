"""What stands in funcgrad for a name of NumPy, SciPy or Python's ``math``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.calls import written
from funcgrad.numpy_code.conversions import CONVERSIONS, scalar
from funcgrad.numpy_code.mathematics import MODULES, of_python
from funcgrad.numpy_code.random import Random

__all__ = ["Names", "counterpart", "is_mirrored", "when_called"]


def is_mirrored(module: str) -> bool:
    """Whether names of ``module`` have counterparts: it is of NumPy or SciPy, or ``math``."""
    return module.partition(".")[0] in ("numpy", "scipy") or module in MODULES


@cache
def _own(module: str) -> ModuleType | None:
    """The module of funcgrad that mirrors ``module``."""
    if not is_mirrored(module) or module in MODULES or find_spec(f"funcgrad.{module.partition('.')[0]}") is None:
        return None
    try:
        return import_module(f"funcgrad.{module}")
    except ModuleNotFoundError:
        return None


def counterpart(value: Any) -> Any:
    """The function or class of funcgrad that has the public name of ``value`` of NumPy or SciPy, else ``value``.

    Example:
        >>> import funcgrad.numpy as fnp
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
            return of_python(home, name) if home in MODULES else _of_own(home, name, value)
    return value


def _of_own(home: str, name: str, value: Any) -> Any:
    other = _OTHERS.get(value) if callable(value) else None
    if other is not None:
        return other
    own = _own(home)
    return getattr(own, name) if own is not None and name in getattr(own, "__all__", ()) else value


def _elementwise(fun: Callable[..., Any], nin: int, nout: int, **options: Any) -> Any:
    """``numpy.frompyfunc``: a function of numbers that is called with each element."""
    return fnp.vectorize(fun)


def _source(*args: Any) -> Any:
    """``numpy.random.default_rng``."""
    return Random(np.random.default_rng(*args))


class _Sources(type):
    """The class of what stands for a class of sources of random numbers."""

    theirs: Any

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.theirs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return Random(cls.theirs(*args, **kwargs))


def _sources(theirs: Any) -> Any:
    return _Sources(theirs.__name__, (), {"theirs": theirs, "__doc__": theirs.__doc__})


#: What stands for functions of NumPy that funcgrad does not have.
_OTHERS: dict[Any, Any] = {
    np.frompyfunc: _elementwise,
    np.random.default_rng: _source,
    np.random.RandomState: _sources(np.random.RandomState),
    np.random.Generator: _sources(np.random.Generator),
}


def _homes(value: Any) -> list[str]:
    """The public modules that may hold ``value``."""
    if isinstance(value, np.ufunc):
        return ["numpy", "scipy.special"]
    module = getattr(value, "__module__", None) or type(value).__module__
    if not isinstance(module, str) or not is_mirrored(module):
        return []
    parts = [part for part in module.split(".") if not part.startswith("_")]
    return list(dict.fromkeys([".".join(parts[:2]), ".".join(parts[:3]), module, "numpy"]))


def when_called(value: Any) -> Any:
    """What stands for ``value`` where it is called: a class may be a function there.

    Example:
        >>> when_called(float)("1.5"), when_called(np.float32)(2), when_called(len) is len
        (1.5, np.float32(2.0), True)
    """
    if isinstance(value, type) and issubclass(value, np.inexact):
        return scalar(value)
    try:
        return CONVERSIONS.get(value, value)
    except TypeError:  # it cannot be looked up
        return value


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
        plain = written(name)
        if plain:
            return when_called(getattr(self, plain))
        value = getattr(self.module, name)
        home = self.module.__name__
        if not is_mirrored(home):
            return self.find(value)
        if isinstance(value, ModuleType) or not _may_differ(value):
            value = self.find(value) if isinstance(value, ModuleType) else value
        elif home in MODULES:
            value = of_python(home, name) if callable(value) and not isinstance(value, type) else self.find(value)
        else:
            ours = value if home == "scipy.sparse" and isinstance(value, type) else _of_own(home, name, value)
            value = self.find(value) if ours is value else ours
        if type(value) is not np.ndarray:
            vars(self)[name] = value  # found at once the next time
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.module)


def _may_differ(value: Any) -> bool:
    """Whether another object may stand for ``value``: a function or class, but none of arrays and numbers."""
    return not (isinstance(value, type) and issubclass(value, (np.generic, np.ndarray)))
