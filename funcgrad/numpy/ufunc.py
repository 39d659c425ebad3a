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
from funcgrad.numpy import ufunc_methods
from funcgrad.numpy.faces import documented, stub
from funcgrad.numpy.ufunc_methods import DEFAULTS, Ufunc, applied, applied_to_axes, check_options
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
        self, theirs: np.ufunc, own: Callable[..., Any], text: str, example: str, shows: str, name: str = ""
    ) -> Unary[Array]:
        """Return a ufunc of one argument, by default with the name of NumPy's."""
        made: Unary[Array] = self._made(f"{name or theirs.__name__}(x)", theirs, own, text, example, shows)
        return made

    def binary(
        self, theirs: np.ufunc, own: Callable[..., Any], text: str, example: str, shows: str, name: str = ""
    ) -> Binary[Array]:
        """Return a ufunc of two arguments, by default with the name of NumPy's."""
        made: Binary[Array] = self._made(f"{name or theirs.__name__}(x1, x2)", theirs, own, text, example, shows)
        return made

    def _made(self, call: str, theirs: np.ufunc, own: Callable[..., Any], *said: str) -> Any:
        return ufunc(theirs, own)(stub(self._module, call, documented(*said)))


def ufunc(theirs: np.ufunc, own: Callable[..., Any] | None = None) -> _Decorator:
    """Return a decorator that turns a documented function of one or two arrays into a ufunc.

    Args:
        theirs: NumPy's ufunc.
        own: the function that computes; by default the decorated function.

    Example:
        >>> @ufunc(np.hypot)
        ... def hypot(x1, x2, /):
        ...     return (x1**2 + x2**2) ** 0.5
        >>> hypot(3.0, np.array([4.0]), np.zeros(1)), hypot.reduce([3.0, 4.0]), hypot.nin
        (array([5.]), np.float64(5.0), 2)
    """

    def decorate(stub: Callable[..., Any]) -> Any:
        compute = own or stub
        call = _with_options(theirs, compute) if theirs.nout == 1 else _with_several(theirs, compute)
        return _dressed(call, stub, theirs, compute)

    return decorate


#: Code before the body of an operation; the body is inlined, which saves a call.
_OPTIONS = """
def operation({args}, /, out=None, **options):
    if out is not None or options:
        return applied(theirs, operation, ({args},), out, options)
"""


#: Code before the body of an operator: converts Python numbers to NumPy's, which may be divided by zero.
_OF_PYTHON = {
    1: "    if type(x) is Tracer and type(x.aval) is not tuple:\n        x = as_numpy(x)\n",
    2: "    if type(x) in PYTHON or (type(x) is Tracer and type(x.aval) is not tuple):\n"
    "        x, y = as_numpy(x, y), as_numpy(y, x)\n",
}
_PYTHON = frozenset((int, float, complex))


def is_operator(compute: Any) -> bool:
    """Whether the function that computes a ufunc is also one of Python's operators."""
    return bool(getattr(getattr(compute, "primitive", None), "arithmetic", False))


def _with_options(theirs: np.ufunc, compute: Any) -> Callable[..., Any]:
    args = "x" if theirs.nin == 1 else "x, y"
    bare, body = f"def operation({args}, /):\n", f"    return operation({args})"
    shared = {"__name__": __name__, "operation": compute}
    if (text := getattr(compute, "text", "")).startswith(bare):
        body, shared = text.removeprefix(bare), compute.__globals__
    first = _OF_PYTHON[theirs.nin] if is_operator(compute) else ""
    text = _OPTIONS.format(args=args) + first + body
    known = {"theirs": theirs, "applied": applied, "as_numpy": as_numpy_number, "PYTHON": _PYTHON, "Tracer": Tracer}
    call: Callable[..., Any] = make_function(theirs.__name__, text, shared, **known)
    return call


def _with_several(theirs: np.ufunc, compute: Callable[..., Any]) -> Callable[..., Any]:
    n = theirs.nin

    def call(*args: Any, out: Any = None, **options: Any) -> Any:
        if len(args) == n and out is None and not options:
            return compute(*args)
        if len(args) < n:
            raise TypeError(f"{theirs.__name__}() takes {n} arguments, got {len(args)}")
        return applied(theirs, compute, args[:n], (*args[n:], None)[: theirs.nout] if out is None else out, options)

    return call


_ATTRIBUTES = ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature")
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def _dressed(call: Any, stub: Callable[..., Any], theirs: np.ufunc, compute: Callable[..., Any]) -> Any:
    """Set the public attributes and methods of a ufunc on ``call``."""
    _named(call, stub)
    call.__signature__ = _signature(stub, theirs.nout, DEFAULTS)
    call.ufunc, call.compute = theirs, compute
    for name in _ATTRIBUTES:
        setattr(call, name, getattr(theirs, name))
    for name in _METHODS:
        setattr(call, name, MethodType(getattr(ufunc_methods, name), call))
    return call


def _named(call: Any, stub: Callable[..., Any]) -> None:
    """Give ``call`` the name and documentation of ``stub``, without a reference to ``stub``."""
    wraps(stub)(call)
    del call.__wrapped__


def _signature(stub: Callable[..., Any], results: int, options: dict[str, Any]) -> inspect.Signature:
    """Return the signature of ``stub`` with ``out`` and the options after its arguments."""
    plain = inspect.signature(stub)
    given = [p for p in plain.parameters.values() if p.kind is Parameter.POSITIONAL_ONLY]
    return plain.replace(parameters=[*given, *_behind(results, tuple(options.items()))])


@cache
def _behind(results: int, options: tuple[tuple[str, Any], ...]) -> tuple[Parameter, ...]:
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


_GENERAL: dict[str, Any] = {
    **{name: value for name, value in DEFAULTS.items() if name != "where"},
    "axes": None,
    "axis": None,
    "keepdims": False,
}


def gufunc(signature: str, own: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], GeneralizedUfunc]:
    """Return a decorator like ``ufunc`` for a function of vectors or matrices, the trailing axes of two arguments.

    Args:
        signature: the core axes of arguments and result, in NumPy's notation.
        own: the function that computes; by default the decorated function.

    Example:
        >>> @gufunc("(n),(n)->()")
        ... def vecdot(x1, x2, /):
        ...     return (x1 * x2).sum(-1)
        >>> vecdot(np.ones((3, 2)), np.ones((3, 1)), axis=0)
        array([3., 3.])
    """

    def decorate(stub: Callable[..., Any]) -> Any:
        theirs = getattr(np, stub.__name__, None)
        compute = own or stub
        known = frozenset((*_GENERAL, "sig"))

        def call(x1: Any, x2: Any, /, out: Any = None, **options: Any) -> Any:
            if out is None and not options:
                return compute(x1, x2)
            check_options(stub.__name__, options, known)
            return applied_to_axes(stub.__name__, theirs, compute, signature, (x1, x2), out, options)

        _named(call, stub)
        general: Any = call
        general.__signature__ = _signature(stub, 1, _GENERAL)
        general.ufunc, general.compute, general.nin, general.nout, general.signature = theirs, compute, 2, 1, signature
        return general

    return decorate
