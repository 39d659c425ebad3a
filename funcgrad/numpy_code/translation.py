"""Replacements for values in rebuilt functions: for functions, classes, modules, objects and containers."""

from __future__ import annotations

import functools
import gc
import random
import sys
from abc import ABCMeta
from collections import UserDict
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ref

import numpy as np
import toolz
from toolz.functoolz import Compose

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import READ_ONLY, Primitive, Tracer, describe, is_in_transform
from funcgrad.errors import ConversionError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code import objects, reading
from funcgrad.numpy_code.array_classes import ArrayObject, array_object, array_of
from funcgrad.numpy_code.array_functions import dispatching
from funcgrad.numpy_code.calls import IdentityCache
from funcgrad.numpy_code.class_methods import method_of_class
from funcgrad.numpy_code.classes import class_of, is_namedtuple_class, rebuilt_namedtuple
from funcgrad.numpy_code.compiled import Factors, is_compiled, python_counterpart, wrap_compiled
from funcgrad.numpy_code.containers import CONTAINERS, translated_container
from funcgrad.numpy_code.conversions import ABSTRACT, as_format_string, with_writable_results
from funcgrad.numpy_code.drawings import Drawing, is_of_drawing
from funcgrad.numpy_code.examples import is_public, with_example_loop
from funcgrad.numpy_code.functions import has_same_values, rebuild, rebuild_lru_cache, rebuild_singledispatch
from funcgrad.numpy_code.holders import HOLDERS
from funcgrad.numpy_code.kernels.table import MODULES_WITH_REPLACEMENTS, kernel, with_wrapper
from funcgrad.numpy_code.libraries import KEPT_PACKAGES, REBUILT_METHODS, is_kept, is_mirrored, module_of, package_of
from funcgrad.numpy_code.mathematics import NUMBER_MODULES
from funcgrad.numpy_code.members import rebuild_dispatching
from funcgrad.numpy_code.names import (
    Elementwise,
    MirrorModule,
    called,
    counterpart,
    original_module,
    public_modules_of,
)
from funcgrad.numpy_code.object_views import has_rebuilt_class, make_viewer
from funcgrad.numpy_code.random import PythonRandom
from funcgrad.numpy_code.replacements import PLAIN_TYPES, LatestCache, Run, SmallCache, current_run
from funcgrad.numpy_code.scope import WatchedNames, globals_object, globals_of, importing
from funcgrad.numpy_code.sparse.objects import replacement_class
from funcgrad.numpy_code.sparse.recognition import family_replacement, is_sparse_class, is_sparse_family
from funcgrad.writable import COPY_ON_WRITE, Proxy, is_buffer, make_buffer

_FUNCTIONS = (FunctionType, BuiltinFunctionType)
#: Packages that are not rebuilt, but whose names are replaced.
_MIRRORED = frozenset(
    (*reading.READER_MODULES, *reading.TABLE_CLASSES, "functools", "importlib", "itertools", "sympy", "sys", "warnings")
)
#: Function whose result is rebuilt: SymPy makes functions that compute with NumPy, SciPy and ``math``.
_MAKER_OF_FUNCTIONS = ("sympy.utilities.lambdify", "lambdify")
#: Beginnings of the names of modules that are replaced, and whose own Python code is rebuilt where funcgrad has none.
_IN_PYTHON = ("numpy.ma.", "numpy.polynomial.", "scipy.", "statistics")
#: Modules of funcgrad whose functions have the names of NumPy's and SciPy's functions.
_OWN = ("funcgrad.numpy", "funcgrad.scipy")

#: How much is rebuilt: functions only; constant arrays as well, so that their methods take traced values; or
#: constant arrays that traced values can be written to.
FUNCTIONS, READ_ONLY_ARRAYS, WRITABLE_ARRAYS = range(1, 4)


class Translator:
    """Callable that returns the replacement for a value in rebuilt functions.

    Args:
        level: ``FUNCTIONS``, ``READ_ONLY_ARRAYS`` (read-only buffers replace constant arrays) or ``WRITABLE_ARRAYS``
            (writable buffers do).

    Attributes:
        replaces_arrays: whether buffers replace constant arrays.
        shares_buffers: whether the same buffers serve every run, because nothing can be written to them.
        unreplaced_types: types of values that need no replacement.
        arrays: weak references to the read-only buffers, by the ``id`` of the array.
        array_attributes: names of attributes that were constant arrays.
        functions: rebuilt functions, by the function that they were built from.
        closures: rebuilt functions that close over variables.
        plans: what all functions with the same code share, by that code.
        classes: rebuilt classes, by the original class.
        in_progress: classes that are being rebuilt.
        viewers: by class, the function that views an object of this class through the rebuilt class.
        kept_kinds: classes of known libraries, whose objects stay as they are.
        unchanged: large containers none of whose members is replaced in any run, with these, by ``id``.
        globals: weak references to the ``Globals`` of modules, by the ``id`` of the module's dictionary.
        imported_globals: the ``Globals`` of modules that Python has imported, by module name.
        modules: replacements for modules, by module name.
        watched: the names of user modules.
        may_be_stale: whether a code from which functions were built is gone, so that a function may have new code now;
            then ``watched`` knows no names to compare.
    """

    def __init__(self, level: int) -> None:
        self.level, self.replaces_arrays, self.shares_buffers = level, level > FUNCTIONS, level == READ_ONLY_ARRAYS
        self.unreplaced_types = PLAIN_TYPES | {Tracer} if self.replaces_arrays else PLAIN_TYPES | {Tracer, np.ndarray}
        self.arrays: dict[int, Any] = {}
        self.array_attributes: set[str] = set()
        self.functions, self.plans = IdentityCache(), IdentityCache()
        self.closures, self.classes, self.viewers = SmallCache(), LatestCache(), LatestCache()
        self.kept_kinds, self.unchanged = LatestCache(), SmallCache()
        self.in_progress: dict[type, type] = {}
        self.globals: dict[int, Any] = {}
        self.imported_globals: dict[str, Any] = {}
        self.modules: dict[str, MirrorModule] = {}
        self.watched = WatchedNames()
        self.may_be_stale, forget = False, self.plans.forget

        def gone(plan: Any) -> None:
            forget(plan)
            self.may_be_stale = True
            self.watched.note_change()

        self.plans.forget = gone

    def is_stale(self) -> bool:
        """Whether a function no longer has the code that its replacement was built from, as after a reload."""
        self.may_be_stale = False
        functions = [known() for known in list(self.functions.entries.values())]
        built = [(fun, self.functions.get(fun)) for fun in functions if type(fun) is FunctionType]
        built += [(fun, found) for fun, (found, _) in list(self.closures.items())]
        self.may_be_stale = any(
            type(found) is FunctionType and globals_object(found.__globals__) and self.plans.get(fun.__code__) is None
            for fun, found in built
        )
        return self.may_be_stale

    def __call__(self, value: Any) -> tuple[Any, bool]:
        """Return the replacement for ``value`` (mostly ``value`` itself) and whether it is valid in every run."""
        kind = type(value)
        if kind is str:
            return as_format_string(value), True
        if kind in PLAIN_TYPES or issubclass(kind, Tracer):
            return value, True
        if kind is FunctionType:
            known = None if value.__closure__ else self.functions.get(value)
            if known is not None:
                return known, True
            closed = self.closures.get(value)
            if closed is not None and has_same_values(closed[1]):
                return closed[0], not closed[1]
            return self._function(value)
        if kind is np.ndarray:
            of_numbers = self.replaces_arrays and value.dtype.kind in "iufcb"
            return self._constant(value) if of_numbers else (value, value.dtype.kind != "O")
        if kind is MethodType:
            return _method(value, self), False
        if kind in self.viewers:
            return self.owner(value, current_run()), False
        if kind in self.kept_kinds:
            return value, True
        if isinstance(value, ModuleType):
            return self._module(value), True
        if isinstance(value, type):
            return self._class(value), True
        return self._container(value) if kind in CONTAINERS else self._other(value, kind)

    def memo(self) -> dict[int, tuple[Any, Any]]:
        """Return the replacements of the current run on this level: by ``id``, the value and its replacement."""
        return current_run().memo(self.level)

    def owner(self, value: Any, run: Run, begins: bool = False) -> Any:
        """Return the replacement for an object that a function needs; ``begins``: whether it begins the run."""
        viewer = self.viewers.get(type(value))
        if viewer is None:
            return self(value)[0]
        if begins and run.owner is None and not run.memos:
            view = viewer(value)
            run.owner = value, view, self.level
            return view
        memo = run.memo(self.level)
        known = memo.get(id(value))
        if known is None:
            known = memo[id(value)] = value, viewer(value)
        return known[1]

    def argument(self, value: Any) -> Any:
        """Return the replacement for an argument of a rebuilt function: for an array, a read-only one."""
        kind = type(value)
        if kind in PLAIN_TYPES or issubclass(kind, Tracer):
            return value
        found = self(value)[0]
        if kind is np.ndarray and is_buffer(found) and found.alias is None:
            found.alias = READ_ONLY
        return found

    def memoise(self, value: Any, found: Any) -> tuple[Any, bool]:
        """Replace ``value`` by ``found`` until the run ends. The memo holds ``value``, so its ``id`` is not reused."""
        self.memo()[id(value)] = value, found
        return found, False

    def replacement(self, fun: Any) -> Any:
        """Return ``fun``, a function of funcgrad or NumPy, such that it calls ``__array_function__`` if NumPy's does.

        On level ``WRITABLE_ARRAYS`` traced values can be written to its results.
        """
        if type(fun) not in _FUNCTIONS:
            return fun
        return dispatching(with_writable_results(fun) if self.level == WRITABLE_ARRAYS else fun)

    def rebuilt(self, fun: FunctionType) -> Any:
        """Return a function rebuilt from its code, also one that is otherwise replaced by a function of funcgrad."""
        return rebuild(fun, self)[0]

    def _function(self, value: FunctionType) -> tuple[Any, bool]:
        if module_of(value) in MODULES_WITH_REPLACEMENTS:
            return self._scipy_function(value)
        ours = rebuild_singledispatch(value, self)
        if ours is not None:
            return ours, True
        return rebuild(value, self) if _is_rebuilt(value) else (self._counterpart(value), True)

    def _counterpart(self, value: Any) -> Any:
        if is_of_drawing(value):
            return Drawing(value)
        if value is import_module or (value.__module__, value.__name__) == _MAKER_OF_FUNCTIONS:
            return importing(value, self)
        ours = reading.function_of_texts(counterpart(value))
        return self.replacement(ours) if _is_array_module(value.__module__) else ours

    def _scipy_function(self, value: FunctionType) -> tuple[Any, bool]:
        """Return the replacement for a function of a SciPy module in which rebuilding alone is not enough for some."""
        found, lasts = kernel(value), True
        if found is not None and is_public(value, public_modules_of(value)):
            found = with_example_loop(found, f"{value.__module__}.{value.__name__}")
        if found is None:
            found, lasts = rebuild(value, self) if _is_rebuilt(value) else (self._counterpart(value), True)
        whole = with_wrapper(value, found)
        if whole is found:
            return found, lasts
        if lasts:
            self.functions.put(value, whole)
        elif (closed := self.closures.get(value)) is not None:
            self.closures[value] = whole, closed[1]
        else:
            self.memoise(value, whole)
        return whole, lasts

    def _module(self, module: ModuleType) -> Any:
        name = module.__name__
        keeps = is_kept(name) and package_of(name) not in _MIRRORED
        if keeps and not (self.level == WRITABLE_ARRAYS and name.startswith(_OWN)):
            return Drawing(module) if is_of_drawing(module) else module
        if original_module(module) is not None:
            return module
        known = self.modules.get(name)
        if known is None or original_module(known) is not module:
            names = None if is_mirrored(name) else globals_of(vars(module), self)
            known = self.modules[name] = MirrorModule(module, self, names)
        return known

    def _class(self, cls: Any) -> Any:
        if type(cls) is ABCMeta and cls in ABSTRACT:
            return ABSTRACT[cls]
        if is_sparse_class(cls):
            return replacement_class(cls)
        if is_sparse_family(cls):
            return family_replacement(cls)
        if is_mirrored(cls.__module__):
            ours = (kernel(cls) if cls.__name__ == "at" else None) or counterpart(cls)
            if ours is not cls or not cls.__module__.startswith(("scipy.", "statistics")):
                return ours
        if not _is_kept(cls):
            return class_of(cls, self, _is_kept)
        return Drawing(cls) if is_of_drawing(cls) else cls

    def _constant(self, value: Any) -> tuple[Any, bool]:
        """Return a buffer for a constant array of numbers."""
        if self.shares_buffers:
            return self.read_only_buffer(value), True
        if not is_in_transform():
            return value, False
        memo, number = self.memo(), id(value)
        known = memo.get(number)
        if known is not None:
            return known[1], False
        made, base = make_buffer(value), value.base
        made.link = COPY_ON_WRITE
        memo[number] = value, made
        if base is None and -number not in memo:
            if not value.flags.writeable:
                made.alias = READ_ONLY
            return made, False
        base = value if base is None else base  # other arrays share its memory, and would not see a write to the buffer
        made.alias = READ_ONLY
        memo[-id(base)] = base, None
        if id(base) in memo and base is not value:
            _make_read_only(memo[id(base)][1], value)
        return made, False

    def read_only_buffer(self, value: Any) -> Tracer:
        """Return the read-only buffer that replaces a constant array in every run."""
        arrays, number = self.arrays, id(value)
        known = arrays.get(number)
        made = None if known is None else known()
        if made is None or made._val is not value:
            made = make_buffer(value)
            made.link, made.alias = COPY_ON_WRITE, READ_ONLY
            arrays[number] = ref(made, lambda _: arrays.pop(number, None))
        found: Tracer = made
        return found

    def _container(self, value: Any) -> tuple[Any, bool]:
        """Return a container of translated members; ``value`` itself if no member changes."""
        if value is sys.modules:
            return _Modules(self), True
        known = self.memo().get(id(value))
        return translated_container(value, self) if known is None else (known[1], False)

    def _other(self, value: Any, kind: type) -> tuple[Any, bool]:
        """Return the replacement for an object that is not a function, class, module, array or container."""
        if kind is BuiltinFunctionType and isinstance(value.__self__, (ModuleType, type, type(None))):
            known = self.functions.get(value)
            return self._builtin(value) if known is None else (known, True)
        known = self.memo().get(id(value))
        if known is not None:
            return known[1], False
        name = "random.Random" if issubclass(kind, random.Random) else f"{kind.__module__}.{kind.__name__}"
        rebuilder = _REBUILDERS.get(kind) or _REBUILDERS.get(name)
        if rebuilder is not None:
            return self.memoise(value, rebuilder(value, self))
        if name in objects.MAKERS:
            return self.memoise(value, objects.MAKERS[name](value))
        rebuild = getattr(kind, "_with_functions", None)
        if rebuild is not None:
            return self.memoise(value, rebuild(value, lambda part: self(part)[0]))
        if kind is np.ufunc and value.__name__.endswith("(vectorized)"):
            return self.memoise(value, _of_python_function(value, self))
        is_ufunc = kind is np.ufunc or kind.__module__ == "scipy.special._multiufuncs"  # the latter hold several ufuncs
        ours = (kernel(value) if is_ufunc else None) or counterpart(value)
        if ours is not value:
            if not _is_distribution_class(kind):
                return self.replacement(ours), True
            cls = class_of(kind, self, _is_kept)  # a distribution
            return self.memoise(value, objects.Distribution(ours, make_viewer(kind, cls, self)(value)))
        if is_compiled(value, _is_kept_function):
            return _compiled(value, self)
        if is_kept(module_of(kind)):
            return self._library_object(value, kind)
        if (
            has_rebuilt_class(value)
            or isinstance(value, Proxy)
            or (tree.is_container(kind) and not is_namedtuple_class(kind))
            or _is_kept(kind)
        ):
            return value, False
        return self._user_object(value, kind)

    def _builtin(self, value: Any) -> tuple[Any, bool]:
        """Return the replacement for a function written in C."""
        ours, lasts = reading.function_of_texts(counterpart(value)), True
        if ours is value and is_compiled(value, _is_kept_function):
            ours, lasts = _compiled(value, self)
        elif _is_array_module(value.__module__):
            ours = self.replacement(ours)
        if lasts:
            self.functions.put(value, ours)
        return ours, lasts

    def _library_object(self, value: Any, kind: type) -> tuple[Any, bool]:
        if is_of_drawing(value):
            return self.memoise(value, Drawing(value))
        self.kept_kinds[kind] = None
        return value, True

    def _user_object(self, value: Any, kind: type) -> tuple[Any, bool]:
        """Return the replacement for an object of a user's class."""
        if is_namedtuple_class(kind):
            return self.memoise(value, rebuilt_namedtuple(value, self, _is_kept))
        cls = class_of(kind, self, _is_kept)
        if cls is kind:
            return value, False
        if issubclass(kind, Enum):
            return self.memoise(value, cls.view(value))  # type: ignore[attr-defined]
        if issubclass(cls, ArrayObject):
            return self.memoise(value, array_object(value, cls, self))
        viewer = make_viewer(kind, cls, self)
        if not is_mirrored(kind.__module__):
            self.viewers[kind] = viewer
        return self.memoise(value, viewer(value))


class _Modules(UserDict[str, Any]):
    """``sys.modules`` with the replacements for modules, each translated when it is looked up."""

    def __init__(self, translate: Translator) -> None:
        self.translate, self.data = translate, sys.modules

    def __getitem__(self, name: str) -> Any:
        return self.translate(self.data[name])[0]


def _make_read_only(owner: Any, part: Any) -> None:
    """Make ``owner`` read-only: the program holds a part of its memory under another name.

    Raises:
        ConversionError: traced values were written to ``owner`` already.
    """
    owner = array_of(owner)
    if not is_buffer(owner) or owner.link is not COPY_ON_WRITE:
        raise ConversionError(
            "a constant array: traced values were written to it, and a part of its memory is read under another name, "
            f"got {describe(part)}{user_line()}. Make the array inside of the function, and take its parts there."
        )
    owner.alias = READ_ONLY


def _is_array_module(module: Any) -> bool:
    """Whether a module has functions of NumPy or SciPy, or funcgrad's functions of the same names."""
    return isinstance(module, str) and (is_mirrored(module) or module.startswith(_OWN))


def _is_kept(value: Any) -> bool:
    """Whether a function or class belongs to a package that is not rebuilt."""
    module = module_of(value)
    return package_of(module) == "numpy" or is_kept(module)


def _is_rebuilt(value: Any) -> bool:
    """Whether to rebuild a function: not an operation, not of a known library, without counterpart in funcgrad."""
    if isinstance(getattr(value, "primitive", None), Primitive):
        return False  # it computes with plain arrays, and its derivative comes from its rules
    module = module_of(value)
    if not isinstance(module, str):
        return True  # compiled from a text
    if is_kept(module):
        return module.startswith("xarray.") and value.__name__ in REBUILT_METHODS
    if not is_mirrored(module):
        return True
    in_python = module.startswith(_IN_PYTHON) or _is_of_numpys_code(module, value.__name__)
    return in_python and counterpart(value) is value


def _is_of_numpys_code(module: str, name: str) -> bool:
    """Whether a function is one that NumPy's own Python code calls, see ``ArrayObject.run_numpys_code``."""
    return module.startswith(("numpy._core.", "numpy.lib._")) and name.startswith("_")


def _is_kept_function(value: Any) -> bool:
    """Whether a function written in C is one of Python or NumPy, which handle traced values."""
    owner = getattr(value, "__self__", None)
    package = package_of(owner.__name__ if isinstance(owner, ModuleType) else getattr(value, "__module__", None))
    return package in KEPT_PACKAGES or package in (None, "numpy", "_operator", *NUMBER_MODULES)


def _is_distribution_class(kind: type) -> bool:
    return hasattr(kind, "_logpdf") or hasattr(kind, "_logpmf")


def is_of_own_distribution(method: MethodType) -> bool:
    """Whether funcgrad's distribution of the same name has this method of a SciPy distribution."""
    owner: Any = method.__self__
    ours = counterpart(owner) if _is_distribution_class(type(owner)) else owner
    return ours is not owner and ours.has(method.__name__)


def _method(value: Any, translate: Any) -> Any:
    owner = translate(value.__self__)[0]
    if type(owner) is PythonRandom:
        return getattr(owner, value.__name__)
    if type(owner) is objects.Distribution and owner.funcgrad_object.has(value.__name__):
        return getattr(owner.funcgrad_object, value.__name__)
    if type(value.__func__) not in (FunctionType, np.vectorize):
        return wrap_compiled(value) if owner is value.__self__ else getattr(owner, value.__name__)
    return MethodType(translate(value.__func__)[0], owner)


def _compiled(value: Any, translate: Any) -> tuple[Any, bool]:
    """Return the replacement for a compiled function of a package, and whether it is valid in every run."""
    in_python = python_counterpart(value)
    if in_python is None:
        return wrap_compiled(value), True
    traced_form, lasts = translate(in_python)
    return wrap_compiled(value, traced_form), lasts


def _builtin_method(value: Any, translate: Any) -> Any:
    """Return the same method of the replacement of the object. Functions of pybind11 look like methods, too."""
    ours = translate(value.__self__)[0]
    if ours is not value.__self__:
        return getattr(ours, value.__name__)
    return wrap_compiled(value) if is_compiled(value, _is_kept_function) else value


def _partial(value: Any, translate: Any) -> Any:
    kwargs = {name: translate(x)[0] for name, x in value.keywords.items()}
    func = called(translate(value.func)[0])
    return type(value)(func, *[translate(x)[0] for x in value.args], **kwargs)


def _composed(value: Any, translate: Any) -> Any:
    return Compose(tuple(reversed([translate(part)[0] for part in (value.first, *value.funcs)])))


def _vectorized(value: Any, translate: Any) -> Any:
    fun = translate(value.pyfunc)[0]
    return fnp.vectorize(fun, value.otypes, value.__doc__, value.excluded, value.cache, value.signature)


def _of_python_function(value: np.ufunc, translate: Any) -> Any:
    """Return the counterpart of a ufunc of ``numpy.frompyfunc``, whose function only the garbage collector tells."""
    found = list(filter(callable, gc.get_referents(value)))
    return (
        Elementwise(called(translate(found[0])[0]), value.nin, value.nout, identity=value.identity) if found else value
    )


#: Functions that rebuild objects with what they refer to, by type or by the type's full name.
_REBUILDERS: dict[Any, Callable[[Any, Any], Any]] = {
    BuiltinFunctionType: _builtin_method,
    MethodDescriptorType: lambda value, translate: method_of_class(value),
    WrapperDescriptorType: lambda value, translate: method_of_class(value),
    functools.partial: _partial,
    toolz.curry: _partial,
    Compose: _composed,
    SimpleNamespace: lambda value, translate: SimpleNamespace(**translate(vars(value))[0]),
    np.vectorize: _vectorized,
    fnp.vectorize: _vectorized,
    functools.singledispatchmethod: rebuild_dispatching,
    functools._lru_cache_wrapper: lambda value, translate: kernel(value) or rebuild_lru_cache(value, translate)[0],
    **HOLDERS,
    **objects.REBUILDERS,
    "builtins.SuperLU": lambda value, translate: Factors(value),
    "numba.core.registry.CPUDispatcher": lambda value, translate: translate(value.py_func)[0],
    "numba.np.ufunc.dufunc.DUFunc": lambda value, translate: Elementwise(
        translate(value._dispatcher.py_func)[0], value.nin, value.nout
    ),
}
