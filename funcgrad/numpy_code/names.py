"""Replacements in funcgrad for names of NumPy, SciPy and Python's ``math``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial, reduce, wraps
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from types import BuiltinFunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.functional import Broadcast
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.writes.records import records_from_arrays, records_from_rows, records_of
from funcgrad.numpy_code.array_functions import ArrayConverter
from funcgrad.numpy_code.calls import names_owner, source_name
from funcgrad.numpy_code.class_methods import Methods
from funcgrad.numpy_code.conversions import (
    CONVERSIONS,
    plain_values,
    scalar_conversion,
    with_writable_results,
)
from funcgrad.numpy_code.examples import with_example_loop
from funcgrad.numpy_code.libraries import is_mirrored
from funcgrad.numpy_code.mathematics import NUMBER_MODULES, python_function
from funcgrad.numpy_code.matrices import accepting_objects, matrix_from_data, multiply, with_arrays_of_matrices
from funcgrad.numpy_code.metaclasses import members_of, names_of
from funcgrad.numpy_code.ordering import largest, ordered, smallest
from funcgrad.numpy_code.own import own
from funcgrad.numpy_code.random import Random
from funcgrad.numpy_code.reading import refusing_reader, refusing_traced, safe_getattr
from funcgrad.numpy_code.replacements import current_run
from funcgrad.numpy_code.saving import WRITERS, refusing_files_of_run, saving
from funcgrad.numpy_code.sparse.dimensions import expand_dims
from funcgrad.numpy_code.sparse.objects import with_scipy_format
from funcgrad.writable import Proxy


@cache
def _mirror_module(module: str) -> ModuleType | None:
    """Return the module of funcgrad that mirrors ``module``, or None."""
    if not is_mirrored(module) or module in NUMBER_MODULES or find_spec(f"funcgrad.{module.partition('.')[0]}") is None:
        return None
    try:
        return import_module(f"funcgrad.{module}")
    except ModuleNotFoundError:
        return None


def counterpart(value: Any) -> Any:
    """Return funcgrad's function or class with the public name of ``value`` in NumPy or SciPy, else ``value``.

    Example:
        >>> counterpart(np.append) is fnp.append, counterpart(np.float64) is np.float64
        (True, True)
    """
    if not _may_differ(value):
        return value
    name = safe_getattr(value, "__name__") or safe_getattr(value, "name")  # the latter is that of a SciPy distribution
    name = name or safe_getattr(safe_getattr(value, "_func"), "__name__")  # ``numpy.ma.zeros`` of NumPy before 2.3
    if not isinstance(name, str):
        return value
    for home in public_modules_of(value):
        public = getattr(sys.modules.get(home), name, None)
        if public is value or (public is not None and getattr(public, "__wrapped__", None) is value):
            return python_function(home, name) if home in NUMBER_MODULES else _replacement(home, name, value)
    return value


def _is_own_code(home: str, name: str) -> bool:
    """Whether the name of funcgrad's module is SciPy's own code."""
    return home.startswith("scipy.") and name in own("scipy.own_code").OWN_CODE.get(home.partition(".")[2], ())


def _replacement(home: str, name: str, value: Any) -> Any:
    try:
        other = (_extra_replacements() if "numpy.random" in sys.modules else _EXTRA_REPLACEMENTS).get(value)
    except TypeError:  # not hashable
        other = None
    if other is not None:
        return other
    if home in ("numpy.ma", "numpy.ma.core"):
        return _masked_replacement(name, value)
    if home == "numpy" and name in _ARRAY_MAKERS:
        ours = accepting_objects(home, name, getattr(fnp, name, value))
        ours = refusing_files_of_run(refusing_traced(ours)) if name in _TEXT_READERS else ours
        return with_writable_results(ours)
    if home == "scipy.sparse" and name == "expand_dims":
        return expand_dims
    mirror = _mirror_module(home)
    if mirror is None or name not in getattr(mirror, "__all__", ()) or _is_own_code(home, name):
        return value
    ours = getattr(mirror, name)
    if isinstance(value, type) and not isinstance(ours, type):
        return _class_like(value, ours)
    if home == "scipy.sparse" and callable(ours):
        return with_scipy_format(ours, value)
    if home == "scipy.ndimage" and callable(ours):
        return _with_output(ours)
    if home == "scipy.linalg" and callable(ours) and not isinstance(ours, type):
        return with_arrays_of_matrices(_with_overwriting(ours))
    return accepting_objects(home, name, ours)


#: Functions of NumPy that make arrays from their arguments, even if no argument is traced.
_ARRAY_MAKERS = frozenset(
    (
        *("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "frombuffer", "fromfile"),
        *("fromfunction", "fromiter", "fromstring", "genfromtxt", "loadtxt", "ravel", "reshape"),
    )
)
_TEXT_READERS = frozenset(("fromfile", "fromstring", "genfromtxt", "loadtxt"))


@cache
def _with_output(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``scipy.ndimage`` that writes to an array ``output``, as SciPy's Python code requests."""
    parameters = inspect.signature(fun)
    if "output" not in parameters.parameters:
        return fun

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs)
        output = given.arguments.get("output")
        if not isinstance(output, (np.ndarray, Tracer)):
            return fun(*args, **kwargs)
        given.arguments["output"] = None
        target: Any = output
        target[...] = fun(*given.args, **given.kwargs)
        return target

    return call


@cache
def _with_overwriting(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a solver of ``scipy.linalg`` that also writes to ``b`` if ``overwrite_b`` is true and ``b`` is a vector.

    SciPy does so where it can, and programs rely on it for vectors: they use ``b``, not the result.
    """
    names = list(inspect.signature(fun).parameters)
    if not {"b", "overwrite_b"} <= set(names) or fun.__name__ == "lstsq":
        return fun
    b_at, at = names.index("b"), names.index("overwrite_b")

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = fun(*args, **kwargs)
        if kwargs.get("overwrite_b") or (len(args) > at and args[at]):
            b = args[b_at] if len(args) > b_at else kwargs["b"]
            if isinstance(b, (np.ndarray, Tracer)) and fnp.ndim(b) == 1 and b.dtype == found.dtype:
                target: Any = b
                target[...] = found
        return found

    return call


class Elementwise:
    """Counterpart of ``numpy.frompyfunc``: calls a function of numbers with each element."""

    def __init__(self, func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> None:
        self.nin, self.nout, self.identity = nin, nout, identity
        self._of_each = fnp.vectorize(func)
        self._of_each.asks_for_dtypes = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results of all elements; for numbers, what the function returns, which no write changes."""
        found = self._of_each(*args, **kwargs)
        return tuple(map(_number, found)) if type(found) is tuple else _number(found)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None) -> Any:
        """Return the running results: ``self`` of the previous result and the next element."""
        rows = fnp.moveaxis(fnp.asarray(array), axis, 0)
        return fnp.moveaxis(fnp.stack(list(accumulate(rows, self))), 0, axis)

    def reduce(self, array: Any, axis: int = 0, dtype: Any = None) -> Any:
        """Return the last running result."""
        return reduce(self, fnp.moveaxis(fnp.asarray(array), axis, 0))

    def outer(self, a: Any, b: Any, /) -> Any:
        """Return the results of all pairs."""
        a, b = fnp.asarray(a), fnp.asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b)


def _number(x: Any) -> Any:
    """Return the number in an array without axes; other arrays unchanged."""
    return x if getattr(x, "shape", True) else x[()]


def _source(seed: Any = None) -> Any:
    """Return the counterpart of ``numpy.random.default_rng(seed)``."""
    return seed if type(seed) is Random else Random(np.random.default_rng(seed))


def _windows(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Any:
    """Return ``numpy.lib.stride_tricks.sliding_window_view``."""
    return fnp.lib.stride_tricks.sliding_window_view(x, window_shape, axis, writeable=writeable)


def _asserting(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``numpy.testing``, which has no result, such that it checks the values behind tracers."""
    tested = partial(concrete, request="numpy.testing", steers=False)

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*plain_values(args, tested), **plain_values(kwargs, tested))

    return call


def _masked_replacement(name: str, value: Any) -> Any:
    """Return the replacement for a function of ``numpy.ma``, or for its array class."""
    masked = import_module("funcgrad.numpy_code.masked")
    if name == "MaskedArray":
        return _class_like(value, masked.masked_array)
    return masked.function_of_masked_arrays(name, value)


class _ClassLike(type):
    """Metaclass of the replacements for NumPy classes whose objects a function makes."""

    numpy_class: Any
    make: Any

    def __instancecheck__(cls, x: Any) -> bool:
        if isinstance(x, cls.numpy_class):
            return True
        found = x.type_of(x) if hasattr(type(x), "type_of") else None
        return found is cls or (found is not None and issubclass(found, cls.numpy_class))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.make(*args, **kwargs)


@cache
def _class_like(numpy_class: Any, make: Callable[..., Any]) -> Any:
    members = {"numpy_class": numpy_class, "make": staticmethod(make), "__doc__": numpy_class.__doc__}
    return _ClassLike(numpy_class.__name__, (), members)


def _random_class(numpy_class: Any) -> Any:
    return _class_like(numpy_class, lambda *args, **kwargs: Random(numpy_class(*args, **kwargs)))


def _recarray(shape: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return ``numpy.recarray(shape, dtype)``."""
    return records_of(np.asarray(np.recarray(shape, dtype, *args, **kwargs)))


def _record_array(obj: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return ``numpy.rec.array`` or ``numpy.rec.fromrecords`` of a list of tuples, which may hold traced values."""
    if isinstance(obj, Proxy) and obj.has_fields and not args and kwargs.keys() <= {"copy"}:
        return fnp.asanyarray(obj, dtype, copy=kwargs.get("copy", True))
    if type(obj) in (list, tuple) and dtype is not None:
        return records_from_rows(obj, dtype)
    return records_of(np.asarray(np.rec.array(obj, dtype, *args, **kwargs)))


#: Functions of ``numpy.rec``.
_RECORD_FUNCTIONS = {"array": _record_array, "fromarrays": records_from_arrays, "fromrecords": _record_array}

#: Replacements for functions of NumPy that are not in funcgrad's namespaces.
_EXTRA_REPLACEMENTS: dict[Any, Any] = {
    np.asmatrix: partial(matrix_from_data, copy=False),
    np.matrix: _class_like(np.matrix, matrix_from_data),
    np.broadcast: Broadcast,
    np.recarray: _class_like(np.recarray, _recarray),
    **{getattr(np.rec, name): make for name, make in _RECORD_FUNCTIONS.items()},
    getattr(sys.modules.get("numpy._core._multiarray_umath"), "_array_converter", None): ArrayConverter,
    np.frompyfunc: Elementwise,
    np.load: refusing_files_of_run(np.load),
    np.multiply: multiply,
    np.unique_values: partial(fnp.unique, equal_nan=False, sorted=False),
    np.lib.stride_tricks.sliding_window_view: _windows,
    **{fun: saving(fun) for fun in WRITERS},
}


@cache
def _extra_replacements() -> dict[Any, Any]:
    """Return ``_EXTRA_REPLACEMENTS`` together with the entries for ``numpy.random``, which is imported already."""
    return {
        **_EXTRA_REPLACEMENTS,
        np.random.default_rng: _source,
        np.random.RandomState: _random_class(np.random.RandomState),
        np.random.Generator: _random_class(np.random.Generator),
    }


def public_modules_of(value: Any) -> list[str]:
    """Return the names of the public modules that may hold ``value``."""
    if isinstance(value, np.ufunc):
        return ["numpy", "scipy.special"]
    module = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(module, str) and module.removeprefix("_") in NUMBER_MODULES:
        module = module.removeprefix("_")  # Python keeps the compiled part of a module in another one, ``_statistics``
    if not isinstance(module, str) or not is_mirrored(module):
        return []
    parts = [part for part in module.split(".") if not part.startswith("_")]
    return list(dict.fromkeys([".".join(parts[:2]), ".".join(parts[:3]), module, "numpy"]))


def replacement_in_calls(value: Any) -> Any:
    """Return the replacement for ``value`` in a call, where a function may replace a class.

    Example:
        >>> replacement_in_calls(float)("1.5"), replacement_in_calls(np.float32)(2), replacement_in_calls(abs) is abs
        (1.5, np.float32(2.0), True)
    """
    if isinstance(value, type) and issubclass(value, np.number):
        return scalar_conversion(value)
    if issubclass(type(value), Tracer):
        return value
    found = None
    if isinstance(value, (type, BuiltinFunctionType)):  # the hash of other objects may be that of a traced number
        with suppress(TypeError):  # a class without a hash
            found = CONVERSIONS.get(value) or _MORE_CONVERSIONS.get(value)
    return refusing_reader(value) if found is None else found


def replacement_by_name(name: str, value: Any, others: Any = MappingProxyType({})) -> Any:
    """Return the replacement for ``value`` that code looks up by ``name``, which ``with_calls`` has put there.

    Args:
        name: made by ``call_name``, or by ``owner_name`` where code takes a method from a class.
        value: the value of the name in the source.
        others: functions that return other replacements in calls, by the name in the source.
    """
    return Methods(value) if names_owner(name) else others.get(source_name(name), replacement_in_calls)(value)


class MirrorModule(ModuleType):
    """Module whose names are funcgrad's, or what ``find`` returns for them.

    Python looks up missing names with ``__getattr__``, here an entry of the module's dictionary, as any module may
    have: lookups of present names are faster than in a class that defines ``__getattr__``.

    Args:
        module: the original module.
        find: the translator. ``find(value)`` returns the replacement for a value that funcgrad has no name for, and
            whether it is valid in every run; ``find.replacement(fun)`` returns the
            replacement for a function of funcgrad.
        names: the global names of a user's module, see ``scope.Globals``; None for modules of NumPy and SciPy.
    """

    def __init__(self, module: ModuleType, find: Any, names: Any = None) -> None:
        super().__init__(module.__name__, module.__doc__)
        own = names_of(self)
        own.update({name: vars(module).get(name) for name in ("__loader__", "__package__", "__spec__")})
        asked = _NameLookup(module, find, names, own)
        own.update({_LOOKUP_KEY: asked, "__getattr__": asked.get, "__dir__": partial(dir, module)})
        if names is not None:
            names.mirror_dict = own

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names of the module, with their replacements, as ``vars`` returns them too."""
        return _ModuleNames(self)

    def __setattr__(self, name: str, value: Any) -> None:
        own = names_of(self)
        asked = own[_LOOKUP_KEY]
        setattr(asked.module, name, value)
        own.pop(name, None)
        if asked.names is not None:
            asked.names.forget(name)


def original_module(names: ModuleType) -> ModuleType | None:
    """Return the module that ``names`` replaces if it is a ``MirrorModule``, else None."""
    asked = names_of(names).get(_LOOKUP_KEY)
    return None if asked is None else asked.module


class _ModuleNames(dict[str, Any]):
    """Names of a module, with their replacements. What a program stores here, the module gets."""

    def __init__(self, module: MirrorModule) -> None:
        own = names_of(module)
        asked = own[_LOOKUP_KEY]  # not ``getattr``: of a module without ``__annotations__`` it asks for ``__dict__``
        super().__init__({name: own[name] if name in own else asked.get(name) for name in vars(asked.module)})
        self.module = module

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)
        super().__setitem__(name, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Store names."""
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return the value of a name; store ``default`` if there is none."""
        if name not in self:
            self[name] = default
        return self[name]


def called(fun: Any) -> Any:
    """Return the replacement for a class or function of Python, such as ``float`` or ``max``, that a function calls."""
    return replacement_in_calls(fun) if isinstance(fun, (type, BuiltinFunctionType)) else fun


def _mapped(fun: Any, *rest: Any) -> Any:
    """Return ``map(fun, ...)``."""
    return map(called(fun), *rest)


def _partial_of(func: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Return ``functools.partial(func, ...)``."""
    return partial(called(func), *args, **kwargs)


def _reduced(fun: Any, *rest: Any) -> Any:
    """Return ``functools.reduce(fun, ...)``."""
    return reduce(called(fun), *rest)


def _accumulated(iterable: Any, func: Any = None, **kwargs: Any) -> Any:
    """Return ``itertools.accumulate(iterable, func, ...)``."""
    return accumulate(iterable, called(func), **kwargs)


def _identity(x: Any) -> int:
    """Return ``id(x)``; for the view of an object, the number of the object, by which a table may know it."""
    return id(current_run().replaced_by(x) if "__original__" in members_of(type(x)) else x)


#: Replacements in calls that look up others.
_MORE_CONVERSIONS: dict[Any, Any] = {
    map: _mapped, partial: _partial_of, reduce: _reduced, accumulate: _accumulated, id: _identity, max: largest,
    min: smallest, sorted: ordered,
}  # fmt: skip

#: Key under which a ``MirrorModule`` keeps its ``_NameLookup``. No name of a program can be equal to it.
_LOOKUP_KEY = "⟨asked⟩"


class _NameLookup(NamedTuple):
    """Lookup of the names of a ``MirrorModule``.

    ``mirror_dict`` is its dictionary, where Python finds a stored name the next time.
    """

    module: ModuleType
    find: Any
    names: Any
    mirror_dict: dict[str, Any]

    def get(self, name: str) -> Any:
        """Return the replacement for a name of the module."""
        names, plain = self.names, source_name(name)
        if names is not None and name in names:
            found, always = names[name], names.is_stable(name)
        elif plain:
            found, always = replacement_by_name(name, self.get(plain)), plain in self.mirror_dict
        else:
            found, always = self._look_up(name, getattr(self.module, name))
            always = always and names is None
        if always:
            self.mirror_dict[name] = found
        return found

    def _look_up(self, name: str, value: Any) -> Any:
        home = self.module.__name__
        if not is_mirrored(home) or isinstance(value, ModuleType):
            return self.find(value)
        if not _may_differ(value):
            return value, True
        if home in NUMBER_MODULES:
            is_function = callable(value) and not isinstance(value, type)
            ours = python_function(home, name) if is_function else value
            return self.find(value) if ours is value else (ours, True)
        if home == "numpy.testing" and name.startswith("assert_"):
            return with_example_loop(_asserting(value), f"numpy.testing.{name}"), True
        whole = isinstance(value, type) and home == "scipy.sparse"
        ours = value if whole or hasattr(value, "_random_state") else _replacement(home, name, value)
        return self.find(value) if ours is value else (self.find.replacement(ours), True)


def _may_differ(value: Any) -> bool:
    """Whether another object may replace ``value``: False for classes of arrays and numbers, except matrices."""
    is_of_arrays = isinstance(value, type) and issubclass(value, (np.generic, np.ndarray))
    return not is_of_arrays or value in (np.matrix, np.recarray) or value.__name__ == "MaskedArray"
