"""Compiled functions, which take plain values only: called with constants, refused for traced values."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from threading import get_ident
from types import BuiltinFunctionType
from typing import Any, NoReturn

import funcgrad.numpy as fnp
from funcgrad.backend import is_table_class, values_of
from funcgrad.core import READ_ONLY, Tracer, describe
from funcgrad.errors import ConversionError
from funcgrad.numpy.masked import data_of
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.conversions import holds_traced, is_traced
from funcgrad.numpy_code.examples import is_public, with_example_loop
from funcgrad.numpy_code.kernels.solvers import solve_by_factors
from funcgrad.numpy_code.kernels.table import kernel
from funcgrad.numpy_code.matrices import arrays_of
from funcgrad.numpy_code.names import public_modules_of
from funcgrad.numpy_code.sparse.objects import as_traceable, has_traced_values, plain_matrix
from funcgrad.shared_state import pending_refusals
from funcgrad.writable import is_buffer, root_of, unshare

#: Names of the types of functions that Cython, f2py, Numba and others make.
_TYPES = frozenset(("cython_function_or_method", "fortran", "fused_cython_function", "CPUDispatcher"))


def is_compiled(value: Any, is_kept: Callable[[Any], bool]) -> bool:
    """Whether ``value`` is a compiled function; for builtins, neither a tracer's method nor known to ``is_kept``."""
    if type(value) is BuiltinFunctionType:
        return not isinstance(value.__self__, Tracer) and not is_kept(value)
    return type(value).__name__ in _TYPES


def python_counterpart(fun: Any) -> Any:
    """Return the function of the same name in Python that the package of a compiled function has; else None.

    It is in the module whose name has the suffix ``_python``, or in the module ``slow`` of the package. Packages with
    compiled loops have such modules for users who cannot compile, for other dtypes, and for their tests.
    """
    home = getattr(fun, "__module__", None)
    if not isinstance(home, str) or "." not in home or sys.modules.get(home) is None:
        return None
    package = home.partition(".")[0]
    names = [name for name in (f"{home}_python", f"{package}.slow") if find_spec(name) is not None]
    found = [getattr(import_module(name), getattr(fun, "__name__", ""), None) for name in names]
    return next((x for x in found if x is not None and x is not fun), None)


def wrap_compiled(fun: Any, traced_form: Any = None) -> Any:
    """Return ``fun`` such that it is called with plain values: it unwraps constants and refuses traced values.

    Args:
        fun: a compiled function.
        traced_form: a replacement that takes traced values; its attribute ``takes_masked`` says that it takes masked
            arrays and matrices of them as they are.
    """
    ours = kernel(fun) or traced_form
    takes_masked = getattr(ours, "takes_masked", False)
    if ours is not None and is_public(fun, public_modules_of(fun)):
        ours = with_example_loop(ours, f"{fun.__module__}.{fun.__name__}")

    @functools.wraps(fun, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [*args, *kwargs.values()]
        given += [arrays_of(data_of(x)) for x in given] if takes_masked else []
        if holds_traced(given) or any(map(has_traced_values, given)):
            if ours is not None:
                return ours(*args, **kwargs)
            refuse(fun, given)
        if ours is not None and any(is_table_class(type(x)) for x in given):  # whose values may be traced
            return call(*map(_without_labels, args), **{name: _without_labels(x) for name, x in kwargs.items()})
        found = fun(*map(_unwrapped, args), **{name: _unwrapped(x) for name, x in kwargs.items()})
        return Factors(found) if type(found).__name__ == "SuperLU" else as_traceable(found)

    return _Choice(fun, call) if type(fun).__name__ == "fused_cython_function" else call


def _without_labels(x: Any) -> Any:
    return values_of(x) if is_table_class(type(x)) else x


class _Choice:
    """Compiled function of arrays of several dtypes: ``fun[dtype]`` is the one for a dtype."""

    def __init__(self, fun: Any, call: Callable[..., Any]) -> None:
        self.fun, self.__wrapped__ = fun, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __getitem__(self, dtype: Any) -> Any:
        return wrap_compiled(self.fun[dtype])


class Factors:
    """SuperLU's factors of a constant matrix, from ``splu`` or ``spilu``: right-hand sides may be traced.

    Args:
        made: SciPy's object.
    """

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return as_traceable(getattr(self.made, name))

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve the system, the transposed system ("T") or the adjoint system ("H")."""
        if not is_traced(rhs):
            return self.made.solve(_unwrapped(rhs), trans)
        if trans == "H":
            return fnp.conj(self.solve(fnp.conj(rhs), "T"))
        if rhs.ndim < 2:
            return solve_by_factors(rhs, factors=self.made, transposed=trans == "T")
        return solve_by_factors(rhs.T, factors=self.made, transposed=trans == "T").T


def _unwrapped(x: Any) -> Any:
    """Return the array of a buffer, which may be written to, also inside lists and tuples.

    A list without buffers is passed itself: compiled code may reorder its members.
    """
    if is_buffer(x):
        if x.alias is not READ_ONLY:
            unshare(root_of(x))
        return x._val
    if type(x) not in (list, tuple):
        return plain_matrix(x)
    members = list(map(_unwrapped, x))
    return x if all(map(operator.is_, members, x)) else type(x)(members)


def refuse(fun: Any, args: list[Any]) -> NoReturn:
    """Raise an error that says where compiled code would lose the derivative."""
    home = getattr(fun, "__module__", None) or type(fun).__module__
    own = getattr(fun, "__name__", type(fun).__name__).rpartition(" ")[2]  # "function dpotrf" of f2py
    name = own if home == "builtins" else f"{home}.{own}"
    found: Any = next((x for x in args if is_traced(x)), args)
    shown = describe(found) if is_traced(found) else "matrix or list with one"
    error = ConversionError(
        f"{name}: it is compiled code, which accepts no traced values, so the derivative ends there, got a traced "
        f"{shown}{user_line()}. Give the function a derivative of its own with funcgrad.custom_vjp or custom_jvp, or "
        "use funcgrad's functions instead."
    )
    error.compiled = not (is_traced(found) and found.dtype.kind in "biu")  # an integer may be known in one example
    pending_refusals[get_ident()] = str(error)
    try:
        raise error
    finally:
        del error  # it holds this frame
