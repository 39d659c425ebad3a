"""Elementwise functions with the options, methods and attributes of NumPy's ufuncs.

    table = Table(__name__)
    exp = table.unary(np.exp, prim.exp, "``e**x``.", "fnp.exp([0.0, 1.0])", "array([1.        , 2.71828183])")

makes a function with the code of ``prim.exp`` that accepts ``out``, ``where``, ``dtype`` and the other options, and
that has the methods ``reduce``, ``accumulate``, ``outer``, ``reduceat``, ``at`` and attributes such as ``nin`` and
``identity``. A function of more than one operation has a body, and ``ufunc`` as its decorator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter
from types import MethodType
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from funcgrad.core import Tracer
from funcgrad.generated import make_function
from funcgrad.numpy.function_tables import docstring, stub
from funcgrad.numpy.ufunc_methods import DEFAULTS, Ufunc, apply_gufunc, apply_ufunc, check_options
from funcgrad.primitives.arithmetic import as_numpy_number
from funcgrad.typing import Array, ArrayLike

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Unary(Ufunc, Protocol[R_co]):
    """Protocol of a ufunc of one argument."""

    def __call__(
        self,
        x: ArrayLike,
        /,
        out: Any = None,
        *outs: Any,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> R_co:
        """Apply the ufunc."""


class Binary(Ufunc, Protocol[R_co]):
    """Protocol of a ufunc of two arguments."""

    def __call__(
        self,
        x1: ArrayLike,
        x2: ArrayLike,
        /,
        out: Any = None,
        *outs: Any,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> R_co:
        """Apply the ufunc."""


class _Decorator(Protocol):
    @overload
    def __call__(self, stub: Callable[[ArrayLike], R]) -> Unary[R]: ...
    @overload
    def __call__(self, stub: Callable[[ArrayLike, ArrayLike], R]) -> Binary[R]: ...


class Table:
    """Table of the ufuncs of ``module`` that are one operation each; the head of this file has an example.

    A row has NumPy's ufunc, the operation, a line of documentation, an example and its output.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def unary(
        self, numpy_ufunc: np.ufunc, operation: Callable[..., Any], text: str, example: str, shows: str, name: str = ""
    ) -> Unary[Array]:
        """Return a ufunc of one argument, by default with the name of NumPy's."""
        return self._made("x", numpy_ufunc, operation, name, text, example, shows)  # type: ignore[no-any-return]

    def binary(
        self, numpy_ufunc: np.ufunc, operation: Callable[..., Any], text: str, example: str, shows: str, name: str = ""
    ) -> Binary[Array]:
        """Return a ufunc of two arguments, by default with the name of NumPy's."""
        return self._made("x1, x2", numpy_ufunc, operation, name, text, example, shows)  # type: ignore[no-any-return]

    def _made(self, args: str, numpy_ufunc: np.ufunc, operation: Callable[..., Any], name: str, *row: str) -> Any:
        call = f"{name or numpy_ufunc.__name__}({args})"
        return ufunc(numpy_ufunc, operation)(stub(self._module, call, docstring(*row)))


def ufunc(numpy_ufunc: np.ufunc, operation: Callable[..., Any] | None = None) -> _Decorator:
    """Return a decorator that turns a documented function of one or two arrays into a ufunc.

    Args:
        numpy_ufunc: NumPy's ufunc.
        operation: the function that computes; by default the decorated function.

    Example:
        >>> @ufunc(np.hypot)
        ... def hypot(x1, x2, /):
        ...     return (x1**2 + x2**2) ** 0.5
        >>> hypot(3.0, np.array([4.0]), np.zeros(1)), hypot.reduce([3.0, 4.0]), hypot.nin
        (array([5.]), np.float64(5.0), 2)
    """

    def decorate(stub: Callable[..., Any]) -> Any:
        compute = operation or stub
        make = _with_options if numpy_ufunc.nout == 1 else _with_several_results
        return _with_ufunc_attributes(make(numpy_ufunc, compute), stub, numpy_ufunc, compute)

    return decorate


#: Code before the body of an operation; the body is inlined, which saves a call.
_OPTIONS = """
def operation({args}, /, out=None, **options):
    if out is not None or options:
        return apply_ufunc(numpy_ufunc, operation, ({args},), out, options)
"""


#: Code before the body of an operator: converts Python numbers to NumPy's, which may be divided by zero.
_CONVERT_PYTHON_NUMBERS = {
    1: "    if type(x) is Tracer and type(x.aval) is not tuple:\n        x = as_numpy(x)\n",
    2: "    if type(x) in PYTHON or (type(x) is Tracer and type(x.aval) is not tuple):\n"
    "        x, y = as_numpy(x, y), as_numpy(y, x)\n",
}
_PYTHON = frozenset((int, float, complex))


def is_operator(compute: Any) -> bool:
    """Whether the function that computes a ufunc is also one of Python's operators."""
    return bool(getattr(getattr(compute, "primitive", None), "arithmetic", False))


def _with_options(numpy_ufunc: np.ufunc, compute: Any) -> Callable[..., Any]:
    args = "x" if numpy_ufunc.nin == 1 else "x, y"
    bare, body = f"def operation({args}, /):\n", f"    return operation({args})"
    shared = {"__name__": __name__, "operation": compute}
    if (text := getattr(compute, "text", "")).startswith(bare):
        body, shared = text.removeprefix(bare), compute.__globals__
    first = _CONVERT_PYTHON_NUMBERS[numpy_ufunc.nin] if is_operator(compute) else ""
    text = _OPTIONS.format(args=args) + first + body
    known = {"numpy_ufunc": numpy_ufunc, "apply_ufunc": apply_ufunc, "as_numpy": as_numpy_number}
    call: Callable[..., Any] = make_function(numpy_ufunc.__name__, text, shared, PYTHON=_PYTHON, Tracer=Tracer, **known)
    return call


def _with_several_results(numpy_ufunc: np.ufunc, compute: Callable[..., Any]) -> Callable[..., Any]:
    n = numpy_ufunc.nin

    def call(*args: Any, out: Any = None, **options: Any) -> Any:
        if len(args) == n and out is None and not options:
            return compute(*args)
        if len(args) < n:
            raise TypeError(f"{numpy_ufunc.__name__}() takes {n} arguments, got {len(args)}")
        return apply_ufunc(
            numpy_ufunc, compute, args[:n], (*args[n:], None)[: numpy_ufunc.nout] if out is None else out, options
        )

    return call


_ATTRIBUTES = ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature")
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def _with_ufunc_attributes(
    call: Any, stub: Callable[..., Any], numpy_ufunc: np.ufunc, compute: Callable[..., Any]
) -> Any:
    """Set the public attributes and methods of a ufunc on ``call``."""
    _copy_metadata(call, stub)
    call.__signature__ = _signature(stub, numpy_ufunc.nout, DEFAULTS)
    call.ufunc, call.compute = numpy_ufunc, compute
    for name in _ATTRIBUTES:
        setattr(call, name, getattr(numpy_ufunc, name))
    for name in _METHODS:
        setattr(call, name, MethodType(getattr(Ufunc, name), call))
    return call


def _copy_metadata(call: Any, stub: Callable[..., Any]) -> None:
    """Give ``call`` the name and documentation of ``stub``, without a reference to ``stub``."""
    wraps(stub)(call)
    del call.__wrapped__


def _signature(stub: Callable[..., Any], results: int, options: dict[str, Any]) -> inspect.Signature:
    """Return the signature of ``stub`` with ``out`` and the options after its arguments."""
    plain = inspect.signature(stub)
    given = [p for p in plain.parameters.values() if p.kind is Parameter.POSITIONAL_ONLY]
    return plain.replace(parameters=[*given, *_option_parameters(results, tuple(options.items()))])


@cache
def _option_parameters(results: int, options: tuple[tuple[str, Any], ...]) -> tuple[Parameter, ...]:
    """Return the parameters ``out`` and options, cached because a hundred signatures share them."""
    out = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None if results == 1 else (None,) * results)
    return (out, *[Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in options])


# ---- functions of vectors and matrices -----------------------------------------------------------------------


class GeneralizedUfunc(Protocol):
    """Protocol of a ufunc of vectors and matrices; leading axes broadcast.

    Attributes:
        ufunc: NumPy's gufunc; None if this version of NumPy has none.
        compute: the function that computes with tracers, without options.
        signature: the core axes of arguments and result, in NumPy's notation.
    """

    __name__: str
    ufunc: np.ufunc | None
    compute: Callable[..., Any]
    nin: int
    nout: int
    signature: str

    def __call__(
        self,
        x1: ArrayLike,
        x2: ArrayLike,
        /,
        out: Any = None,
        *,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
        axes: Any = None,
        axis: int | None = None,
        keepdims: bool = False,
    ) -> Array:
        """Apply the ufunc."""


_GUFUNC_DEFAULTS: dict[str, Any] = {
    **{name: value for name, value in DEFAULTS.items() if name != "where"},
    "axes": None,
    "axis": None,
    "keepdims": False,
}


def gufunc(
    signature: str, operation: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], GeneralizedUfunc]:
    """Return a decorator like ``ufunc`` for a function of vectors or matrices, the trailing axes of two arguments.

    Args:
        signature: the core axes of arguments and result, in NumPy's notation.
        operation: the function that computes; by default the decorated function.

    Example:
        >>> @gufunc("(n),(n)->()")
        ... def vecdot(x1, x2, /):
        ...     return (x1 * x2).sum(-1)
        >>> vecdot(np.ones((3, 2)), np.ones((3, 1)), axis=0)
        array([3., 3.])
    """

    def decorate(stub: Callable[..., Any]) -> Any:
        numpy_ufunc = getattr(np, stub.__name__, None)
        compute = operation or stub
        known = frozenset((*_GUFUNC_DEFAULTS, "sig"))

        def call(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Any:
            if out is None and not options:
                return compute(x1, x2)
            check_options(stub.__name__, options, known)
            return apply_gufunc(stub.__name__, numpy_ufunc, compute, signature, (x1, x2), out, options)

        _copy_metadata(call, stub)
        general: Any = call
        general.__signature__ = _signature(stub, 1, _GUFUNC_DEFAULTS)
        general.ufunc, general.compute, general.signature = numpy_ufunc, compute, signature
        general.nin, general.nout = 2, 1
        return general

    return decorate
