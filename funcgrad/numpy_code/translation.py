"""What stands for a value in functions that are built anew: functions, classes, modules, objects and containers."""

from __future__ import annotations

import functools
import operator
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import toolz
from toolz.functoolz import Compose

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import READ_ONLY, Tracer
from funcgrad.numpy_code import objects
from funcgrad.numpy_code.classes import class_of, is_seen, seen
from funcgrad.numpy_code.compiled import compiled, is_compiled
from funcgrad.numpy_code.functions import cached, function
from funcgrad.numpy_code.kernels import kernel
from funcgrad.numpy_code.mathematics import MODULES
from funcgrad.numpy_code.names import Names, counterpart, is_mirrored
from funcgrad.numpy_code.runs import PLAIN, current
from funcgrad.numpy_code.sparse import is_sparse_class, made_of
from funcgrad.writable import LENT, Buffer, inside

__all__ = ["argument", "translated"]

#: Packages whose functions and classes stay as they are: they do not compute with NumPy, or mean what they do.
_KEPT = (sys.stdlib_module_names - set(MODULES) - {"__main__"}) | {
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
_MODULES: dict[str, Names] = {}
_CONTAINERS = frozenset((dict, list, tuple, set, frozenset, OrderedDict, defaultdict, deque, MappingProxyType))


def translated(value: Any) -> tuple[Any, bool]:
    """What stands for ``value``, mostly itself, and whether it does so in every run."""
    kind = type(value)
    if kind in PLAIN or issubclass(kind, Tracer):
        return value, True
    if kind is FunctionType:
        ours = kernel(value) if value.__module__ == "scipy.integrate._quadpack_py" else None
        if ours is not None:
            return ours, True
        return function(value, translated) if _is_rebuilt(value) else (counterpart(value), True)
    if isinstance(value, ModuleType):
        return _module(value), True
    if isinstance(value, type):
        return _class(value), True
    if kind is np.ndarray:
        return _constant(value)
    if kind in _CONTAINERS:
        return _container(value)
    return _other(value, kind)


def _is_kept(value: Any) -> bool:
    """Whether a function or class belongs to a package that stays as it is."""
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and (module.partition(".")[0] in _KEPT or module.partition(".")[0] == "numpy")


def _is_rebuilt(value: Any) -> bool:
    """Whether a function is built anew: it is no library's that is known, nor one that funcgrad has."""
    module = getattr(value, "__module__", None)
    if not isinstance(module, str):
        return True  # made of a text
    if module.partition(".")[0] in _KEPT:
        return False
    return not is_mirrored(module) or (module.startswith(("scipy.", "statistics")) and counterpart(value) is value)


def _module(module: ModuleType) -> ModuleType:
    name = module.__name__
    if name.partition(".")[0] in _KEPT or isinstance(module, Names):
        return module
    known = _MODULES.get(name)
    if known is None or known.module is not module:
        known = _MODULES[name] = Names(module, lambda value: translated(value)[0])
    return known


def _class(cls: type) -> type:
    if is_sparse_class(cls):
        made: type = made_of(cls)
        return made
    if is_mirrored(cls.__module__):
        known: Any = kernel(cls) if cls.__name__ == "at" else None
        if known is not None:
            return known  # type: ignore[no-any-return]
        ours: type = counterpart(cls)
        if ours is not cls or not cls.__module__.startswith(("scipy.", "statistics")):
            return ours
    return cls if _is_kept(cls) else class_of(cls, translated, _is_kept)


def _constant(value: Any) -> tuple[Any, bool]:
    """A constant array: a buffer where traced values may have to be written to it."""
    run = current()
    if not run.lifts or value.dtype.kind not in "iufc" or not inside():
        return value, False
    known = run.memo.get(id(value))
    if known is not None:
        return known[1], False
    base = value if value.base is None else value.base
    made = Buffer(value)
    made.link = LENT
    if base is not value or id(base) in run.memo:  # others share its memory: what is written to it they would not see
        made.alias = READ_ONLY
        if id(base) in run.memo and type(run.memo[id(base)][1]) is Buffer:
            run.memo[id(base)][1].alias = READ_ONLY
    return run.note(value, made), False


def argument(value: Any) -> Any:
    """What stands for an argument of a function that is run anew: of arrays what can only be read."""
    kind = type(value)
    if kind in PLAIN or issubclass(kind, Tracer):
        return value
    found = translated(value)[0]
    if kind is np.ndarray and type(found) is Buffer and getattr(found, "alias", None) is None:
        found.alias = READ_ONLY
    return found


def _container(value: Any) -> tuple[Any, bool]:
    """A container whose members are translated; the very one where nothing in it is."""
    run = current()
    known = run.memo.get(id(value))
    if known is not None:
        return known[1], False
    kind = type(value)
    members = value.values() if isinstance(value, (dict, MappingProxyType)) else value
    if all(type(member) in PLAIN for member in members):
        return value, False
    run.note(value, value)  # it may hold itself
    found = [translated(member)[0] for member in members]
    if all(map(operator.is_, found, members)):
        return value, False
    return run.note(value, _refilled(kind, value, found)), False


def _refilled(kind: type, value: Any, found: list[Any]) -> Any:
    if kind is defaultdict:
        return defaultdict(translated(value.default_factory)[0], zip(value, found, strict=True))
    if kind is MappingProxyType:
        return MappingProxyType(dict(zip(value, found, strict=True)))
    if kind in (dict, OrderedDict):
        return kind(zip(value, found, strict=True))
    return deque(found, value.maxlen) if kind is deque else kind(found)


def _other(value: Any, kind: type) -> tuple[Any, bool]:
    """An object that is no function, class, module, array or container."""
    run = current()
    known = run.memo.get(id(value))
    if known is not None:
        return known[1], False
    for makers in (_CALLABLES, objects.MAKERS):
        maker: Callable[[Any, Any], Any] | None = makers.get(kind) or makers.get(f"{kind.__module__}.{kind.__name__}")
        if maker is not None:
            return run.note(value, maker(value, translated)), False
    rebuild = getattr(kind, "_with_functions", None)
    if rebuild is not None:
        return run.note(value, rebuild(value, lambda part: translated(part)[0])), False
    ours = counterpart(value)
    if ours is not value:
        return ours, True
    if is_compiled(value, _is_kept_function):
        return compiled(value), True
    if is_seen(value) or tree.is_container(kind) or _is_kept(kind):
        return value, False
    cls = class_of(kind, translated, _is_kept)
    return (value, False) if cls is kind else (run.note(value, seen(value, cls, translated)), False)


def _is_kept_function(value: Any) -> bool:
    """Whether a function written in C is Python's or NumPy's own, which know traced values."""
    owner = getattr(value, "__self__", None)
    home = owner.__name__ if isinstance(owner, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(home, str):
        return True
    return home.partition(".")[0] in _KEPT or home.partition(".")[0] in ("numpy", "_operator", *MODULES)


def _method(value: Any, translate: Any) -> Any:
    return MethodType(translate(value.__func__)[0], translate(value.__self__)[0])


def _builtin(value: Any, translate: Any) -> Any:
    """A function written in C, or a method of an object: that of what stands for the object."""
    owner = value.__self__
    if owner is None or isinstance(owner, (ModuleType, type)):
        ours = counterpart(value)
        return compiled(value) if ours is value and is_compiled(value, _is_kept_function) else ours
    ours = translate(owner)[0]
    return value if ours is owner else getattr(ours, value.__name__)


def _partial(value: Any, translate: Any) -> Any:
    kwargs = {name: translate(x)[0] for name, x in value.keywords.items()}
    return type(value)(translate(value.func)[0], *[translate(x)[0] for x in value.args], **kwargs)


def _composed(value: Any, translate: Any) -> Any:
    return Compose(tuple(reversed([translate(part)[0] for part in (value.first, *value.funcs)])))


def _vectorized(value: Any, translate: Any) -> Any:
    fun = translate(value.pyfunc)[0]
    return fnp.vectorize(fun, value.otypes, value.__doc__, value.excluded, value.cache, value.signature)


#: How callables are built anew that are made of others.
_CALLABLES: dict[Any, Callable[[Any, Any], Any]] = {
    MethodType: _method,
    BuiltinFunctionType: _builtin,
    functools.partial: _partial,
    toolz.curry: _partial,
    Compose: _composed,
    SimpleNamespace: lambda value, translate: SimpleNamespace(**translate(vars(value))[0]),
    np.vectorize: _vectorized,
    functools._lru_cache_wrapper: lambda value, translate: cached(value, translate)[0],
    "numba.core.registry.CPUDispatcher": lambda value, translate: translate(value.py_func)[0],
}
