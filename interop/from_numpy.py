"""``from_numpy``: functions written for NumPy and SciPy, with funcgrad's functions in their place.

The function is built once more from the same code. Where the code says ``np`` it finds a module that has funcgrad's
functions; where it names another function of the user's it finds that one, built anew in turn. The originals, and the
modules that they stand in, stay as they are.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable
from enum import EnumMeta
from functools import cached_property
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, ParamSpec
from weakref import WeakKeyDictionary

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.interop.numpy_names import Names, counterpart, is_mirrored
from funcgrad.transforms.callables import is_filled, made_of, parts_of, variables_set
from funcgrad.transforms.transformed import Transformed, check_callable

__all__ = ["from_numpy"]

P = ParamSpec("P")

#: Packages whose functions and classes stay as they are: they do not compute with NumPy, or mean what they do.
_KEPT = (sys.stdlib_module_names - {"math"}) | {
    "IPython",
    "PIL",
    "_pytest",
    "attr",
    "attrs",
    "autograd",
    "cupy",
    "cytoolz",
    "dask",
    "funcgrad",
    "h5py",
    "hypothesis",
    "jax",
    "jaxlib",
    "joblib",
    "matplotlib",
    "mypy",
    "numba",
    "opt_einsum",
    "optree",
    "pandas",
    "plotly",
    "polars",
    "pydantic",
    "pytest",
    "rich",
    "sklearn",
    "skimage",
    "sympy",
    "tensorflow",
    "toolz",
    "torch",
    "tqdm",
    "xarray",
}
#: What has been built, by what it was built from.
_FUNCTIONS: WeakKeyDictionary[FunctionType, FunctionType] = WeakKeyDictionary()
_CLASSES: WeakKeyDictionary[type, type] = WeakKeyDictionary()
_MODULES: dict[str, Names] = {}


def from_numpy(fun: Callable[P, Any]) -> Callable[P, Any]:
    """A function written with NumPy, SciPy and ``math``, with funcgrad's functions in their place.

    Much NumPy code needs no change at all: NumPy's functions lead to funcgrad's where they are given a traced value.
    Some do not ask, as ``np.array([x, y])`` and ``np.zeros(3)`` that is written to; nor do most of SciPy's, nor
    ``math.sin``. This is for code that uses these and that cannot be changed. In code of your own, write
    ``import funcgrad.numpy as np``.

    The functions that ``fun`` calls are reached too, in whichever module they stand, the classes that it makes objects
    of, imports inside of functions, defaults, and what functions close over. Not reached are methods of objects that
    were made outside, of named tuples and of registered containers, functions kept in containers, and functions that
    assign to global names: they stay as they are.

    Args:
        fun: a function, a method, an object that can be called, a partial, a pipeline, a transform of one of these.

    Returns:
        A function of the same arguments, to be transformed or called. Of plain values it gives what ``fun`` gives.

    Raises:
        InputError: ``fun`` cannot be called (a ``TypeError``).

    Example:
        >>> import math
        >>> import numpy as np
        >>> from funcgrad import compose, grad
        >>> from funcgrad.interop import from_numpy
        >>> grad(from_numpy(math.sin))(0.0)
        np.float64(1.0)
        >>> product = from_numpy(compose(np.prod, np.array))
        >>> grad(product)([2.0, 3.0])
        [np.float64(3.0), np.float64(2.0)]
    """
    check_callable("from_numpy", fun)
    return Transformed(run_from_numpy, fun, None, "{fun}, with funcgrad's functions for NumPy's.")


def run_from_numpy(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """What a ``from_numpy`` does when it is called."""
    own = type(fun)
    called = MethodType(own.__call__, fun) if _is_users(own) and not isinstance(fun, type) else fun
    return translated(called)(*args, **kwargs)


def translated(value: Any) -> Any:
    """What stands for ``value`` in a function that was built anew: mostly itself."""
    if type(value) is FunctionType and _is_users(value):
        return _function(value)
    if isinstance(value, ModuleType):
        return _module(value)
    if isinstance(value, type) and _is_users(value):
        return _class(value)
    if type(value) is np.vectorize:
        fun = translated(value.pyfunc)
        return fnp.vectorize(fun, value.otypes, value.__doc__, value.excluded, value.cache, value.signature)
    parts = parts_of(value)
    if parts:
        built = [translated(part) for part in parts]
        return value if all(map(operator.is_, built, parts)) else made_of(value, built)
    return counterpart(value)


def _is_users(value: Any) -> bool:
    """Whether a function or class stands outside of the packages that are known."""
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] not in _KEPT and not is_mirrored(module)


def _module(module: ModuleType) -> ModuleType:
    name = module.__name__
    if name.partition(".")[0] in _KEPT or isinstance(module, Names):
        return module
    known = _MODULES.get(name)
    if known is None or known.module is not module:
        known = _MODULES[name] = Names(module, translated)
    return known


class _Globals(dict[str, Any]):
    """The global names of a function that was built anew: those of its module, each translated when it is looked up.

    What Python looks up without asking, the names in the body of a class, it finds as they were.
    """

    def __init__(self, real: dict[str, Any]) -> None:
        given = real.get("__builtins__", builtins)
        names = vars(given) if isinstance(given, ModuleType) else given
        super().__init__(real, __builtins__={**names, "__import__": _importing(names["__import__"])})
        self.real = real
        self.known: dict[str, tuple[Any, Any]] = {}  # what was found, and what stands for it

    def __getitem__(self, name: str) -> Any:
        value = self.real[name]
        known = self.known.get(name)
        if known is None or known[0] is not value:
            known = self.known[name] = value, translated(value)
        return known[1]


def _importing(plain: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
    def found(*args: Any, **kwargs: Any) -> ModuleType:
        return _module(plain(*args, **kwargs))

    return found


def _function(fun: FunctionType) -> FunctionType:
    """``fun`` built anew from its code, once."""
    if fun in _FUNCTIONS:
        return _FUNCTIONS[fun]
    if isinstance(fun.__globals__, _Globals) or variables_set(fun.__code__, scope="GLOBAL"):
        return fun  # built anew already, or it would write to names that nobody else sees
    held = fun.__closure__ or ()
    ours = [_is_ours(cell) and name not in variables_set(fun.__code__) for name, cell in _cells(fun)]
    cells = tuple([CellType() if own else cell for own, cell in zip(ours, held, strict=True)])
    built = FunctionType(fun.__code__, _Globals(fun.__globals__), fun.__name__, None, cells)
    _FUNCTIONS[fun] = built  # before what it refers to, which may be itself
    for new, old in zip(cells, held, strict=True):
        if new is not old:
            new.cell_contents = translated(old.cell_contents)
    built.__defaults__ = None if fun.__defaults__ is None else tuple(map(translated, fun.__defaults__))
    if fun.__kwdefaults__:
        built.__kwdefaults__ = {name: translated(value) for name, value in fun.__kwdefaults__.items()}
    vars(built).update(vars(fun))
    built.__doc__, built.__qualname__, built.__module__ = fun.__doc__, fun.__qualname__, fun.__module__
    built.__annotations__ = fun.__annotations__
    return built


def _cells(fun: FunctionType) -> list[tuple[str, CellType]]:
    return list(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))


def _is_ours(cell: CellType) -> bool:
    """Whether what a variable holds may have another in its place. Of others the variable itself is shared."""
    return is_filled(cell) and (callable(cell.cell_contents) or isinstance(cell.cell_contents, ModuleType))


def _class(cls: type) -> type:
    """A class derived from ``cls`` whose methods are built anew; ``cls`` itself where none is."""
    if cls in _CLASSES:
        return _CLASSES[cls]
    if isinstance(cls, EnumMeta) or issubclass(cls, (tuple, BaseException)) or tree.is_container(cls):
        return cls  # what others know by its very class
    _CLASSES[cls] = cls  # its methods may refer to it; they will find what is noted here when they are called
    bases = [b for b in map(_class_or_same, cls.__bases__) if b not in cls.__bases__]
    members = {name: _member(member) for name, member in vars(cls).items()}
    members = {name: member for name, member in members.items() if member is not vars(cls)[name]}
    if members or bases:
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        kind: Any = type(cls)
        _CLASSES[cls] = kind(cls.__name__, (cls, *bases), {**names, **members})
    return _CLASSES[cls]


def _class_or_same(cls: type) -> type:
    return _class(cls) if _is_users(cls) else cls


def _member(member: Any) -> Any:
    """A member of a class, built anew if it is a method in any form."""
    if type(member) is FunctionType:
        return translated(member)
    if type(member) in (staticmethod, classmethod):
        built = translated(member.__func__)
        return member if built is member.__func__ else type(member)(built)
    if type(member) is property:
        get, put, delete = map(translated, (member.fget, member.fset, member.fdel))
        return property(get, put, delete, member.__doc__)
    if type(member) is cached_property:
        built = translated(member.func)
        return member if built is member.func else cached_property(built)
    return member
