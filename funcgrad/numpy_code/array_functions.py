"""NumPy's functions in rebuilt code for classes that define ``__array_function__``: they call it, as NumPy's do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, wraps
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import DISPATCHER, is_table_class
from funcgrad.core import Tracer
from funcgrad.numpy_code.replacements import PLAIN_TYPES
from funcgrad.writable import Proxy

_HOMES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.lib.scimath", "numpy.lib.stride_tricks")
#: Most frequent types of arguments without ``__array_function__`` of their own.
_ORDINARY = PLAIN_TYPES | {Tracer, np.ndarray}


def defines_functions(kind: type) -> bool:
    """Whether a class computes NumPy's functions itself, by ``__array_function__``, or must not lose its arithmetic.

    Example:
        >>> defines_functions(np.ndarray), defines_functions(np.ma.MaskedArray)
        (False, False)
    """
    if issubclass(kind, Proxy):
        return getattr(kind, "has_own_functions", False) or getattr(kind, "has_own_arithmetic", False)
    known = kind in _ORDINARY or issubclass(kind, (type, Tracer)) or is_table_class(kind)
    return not known and getattr(kind, "__array_function__", None) not in (None, np.ndarray.__array_function__)


def numpy_function(fun: Any) -> Any:
    """Return the function of NumPy that ``fun``, one of funcgrad, replaces, if it dispatches; else None."""
    name, inner = getattr(fun, "__name__", ""), fun
    while inner is not None:
        for home in _HOMES:
            if getattr(sys.modules.get(f"funcgrad.{home}"), name, None) is inner:
                found = getattr(sys.modules[home], name, None)
                return found if type(found) is DISPATCHER else None
        inner = getattr(inner, "__wrapped__", None)
    return None


def accepting_numpys(method: Any, translate: Any) -> Any:
    """Return ``__array_ufunc__`` or ``__array_function__``, rebuilt, such that it gets functions of funcgrad.

    Compiled code calls it with the functions of NumPy, with which rebuilt code does not compare.
    """

    def call(self: Any, fun: Any, *args: Any, **kwargs: Any) -> Any:
        fun = translate(fun)[0] if type(fun) in (np.ufunc, DISPATCHER) else fun
        return method.__get__(self, type(self))(fun, *args, **kwargs)

    return call


#: Methods that get a function of NumPy as their first argument.
PROTOCOLS = ("__array_ufunc__", "__array_function__")


def _owners(values: Any) -> Iterator[Any]:
    """Yield the values that compute NumPy's functions themselves, also those in lists and tuples."""
    for x in values:
        kind = type(x)
        if kind in (list, tuple):
            if not set(map(type, x)) <= _ORDINARY:
                yield from _owners(x)
        elif kind not in _ORDINARY and defines_functions(kind):
            yield x


#: Types known to have no ``__array_function__`` of their own: most calls look them up here only.
_CHECKED = set(_ORDINARY)


def _has_owner(values: Iterable[Any]) -> bool:
    """Whether ``_owners`` yields a value."""
    for x in values:
        kind = type(x)
        if kind in _CHECKED:
            continue
        if kind is list or kind is tuple:
            if not _CHECKED.issuperset(map(type, x)) and _has_owner(x):
                return True
        elif defines_functions(kind):
            return True
        else:
            _CHECKED.add(kind)
    return False


@cache
def dispatching(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of funcgrad such that it calls ``__array_function__`` of its arguments if NumPy's does."""
    numpys = numpy_function(fun)
    if numpys is None or getattr(fun, "dispatches", False):
        return fun

    plain, are_ordinary = getattr(fun, "of_arrays", fun), _ORDINARY.issuperset

    @wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and are_ordinary(map(type, args)):  # what an operation on a few numbers can afford
            return plain(*args)
        if _has_owner(args) or _has_owner(kwargs.values()):
            return _call_owner(made, list(_owners((*args, *kwargs.values()))), args, kwargs)
        return fun(*args, **kwargs)

    def implementation(*args: Any, **kwargs: Any) -> Any:
        owner: Any = next((x for x in _owners((*args, *kwargs.values())) if isinstance(x, Proxy)), None)
        return fun(*args, **kwargs) if owner is None else owner.run_numpys_code(numpys, fun, args, kwargs)

    made.__module__ = numpys.__module__  # classes may compare names
    vars(made).update(dispatches=True, _implementation=implementation)
    return made


def _call_owner(fun: Any, owners: list[Any], args: Any, kwargs: Any) -> Any:
    kinds: list[type] = []
    for x in owners:
        if type(x) not in kinds:  # a class goes before those that it derives from
            at = next((i for i, kind in enumerate(kinds) if issubclass(type(x), kind)), len(kinds))
            kinds.insert(at, type(x))
    for kind in kinds:
        owner: Any = next(x for x in owners if type(x) is kind)
        found = owner.__array_function__(fun, tuple(kinds), args, kwargs)
        if found is not NotImplemented:
            return found
    raise TypeError(
        f"no implementation found for '{fun.__module__}.{fun.__name__}' on types that implement __array_function__: "
        f"{kinds}"
    )


class ArrayConverter:
    """Counterpart of the class with which NumPy's own Python code converts arguments and wraps results."""

    def __init__(self, *given: Any) -> None:
        self.given = given

    @property
    def scalar_input(self) -> tuple[bool, ...]:
        """Whether each argument is a number of Python or NumPy."""
        return tuple([not isinstance(x, Proxy) and bool(np.isscalar(x)) for x in self.given])

    def as_arrays(self, subok: bool = True, pyscalars: Any = None) -> tuple[Any, ...]:
        """Return the arguments as arrays; with ``subok`` also as arrays of a program's class."""
        return tuple([fnp.asanyarray(x) if subok else fnp.asarray(x) for x in self.given])

    def __getitem__(self, i: int) -> Any:
        return self.as_arrays(subok=False)[i]

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> Any:
        """Return the dtype to which NumPy promotes the arguments."""
        given = [x if type(x) in PLAIN_TYPES else fnp.asanyarray(x).dtype for x in self.given]
        found = fnp.result_type(*given, *(() if extra_dtype is None else (extra_dtype,)))
        return np.result_type(found, 0.0) if ensure_inexact and found.kind in "biu" else found

    def wrap(self, arr: Any, /, to_scalar: bool | None = None) -> Any:
        """Return ``arr`` as an array of the class of an argument."""
        owner: Any = next((x for x in self.given if isinstance(x, Proxy) and hasattr(x, "numpy_class")), None)
        return arr if owner is None else owner.__array_wrap__(arr.as_array() if isinstance(arr, Proxy) else arr)
