"""Elementwise functions as NumPy has them: with options, methods and attributes.

    table = Table(__name__)
    exp = table.unary(np.exp, prim.exp, "``e**x``.", "fnp.exp([0.0, 1.0])", "array([1.        , 2.71828183])")

makes a function that is the code of ``prim.exp``, and that takes ``out``, ``where``, ``dtype`` and the
rest, has the methods ``reduce``, ``accumulate``, ``outer``, ``reduceat``, ``at``, and ``nin``, ``identity`` and so on.
What is more than one operation has a body, and ``ufunc`` as its decorator.
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
from funcgrad.generated import function
from funcgrad.numpy import ufunc_methods
from funcgrad.numpy.faces import documented, stub
from funcgrad.numpy.ufunc_methods import DEFAULTS, Ufunc, applied, applied_to_axes, check_options
from funcgrad.primitives.arithmetic import as_numpy
from funcgrad.typing import Array, ArrayLike

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Unary(Ufunc, Protocol[R_co]):
    """A ufunc of one argument."""

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
        """Compute it."""


class Binary(Ufunc, Protocol[R_co]):
    """A ufunc of two arguments."""

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
        """Compute it."""


class _Decorator(Protocol):
    @overload
    def __call__(self, stub: Callable[[ArrayLike], R]) -> Unary[R]: ...
    @overload
    def __call__(self, stub: Callable[[ArrayLike, ArrayLike], R]) -> Binary[R]: ...


class Table:
    """The ufuncs of ``module`` that are one operation each, a row for each: see the head of this file.

    A row has NumPy's ufunc, the operation, one line on it, an example and what that shows.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def unary(
        self, theirs: np.ufunc, own: Callable[..., Any], text: str, example: str, shows: str, name: str = ""
    ) -> Unary[Array]:
        """A ufunc of one argument, by default called as NumPy's is."""
        made: Unary[Array] = self._made(f"{name or theirs.__name__}(x)", theirs, own, text, example, shows)
        return made

    def binary(
        self, theirs: np.ufunc, own: Callable[..., Any], text: str, example: str, shows: str, name: str = ""
    ) -> Binary[Array]:
        """A ufunc of two arguments, by default called as NumPy's is."""
        made: Binary[Array] = self._made(f"{name or theirs.__name__}(x1, x2)", theirs, own, text, example, shows)
        return made

    def _made(self, call: str, theirs: np.ufunc, own: Callable[..., Any], *said: str) -> Any:
        return ufunc(theirs, own)(stub(self._module, call, documented(*said)))


def ufunc(theirs: np.ufunc, own: Callable[..., Any] | None = None) -> _Decorator:
    """Make a ufunc of a documented function of one or two arrays.

    Args:
        theirs: NumPy's ufunc.
        own: what computes it; by default the function itself.

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


#: Before the body of an operation, so that no step stands between the function and what it computes.
_OPTIONS = """
def operation({args}, /, out=None, **options):
    if out is not None or options:
        return applied(theirs, operation, ({args},), out, options)
"""


#: Before that of an operator: numbers of Python's become NumPy's, of which no quotient raises an error.
_OF_PYTHON = {
    1: "    if type(x) is Tracer and type(x.form) is not tuple:\n        x = as_numpy(x)\n",
    2: "    if type(x) in PYTHON or (type(x) is Tracer and type(x.form) is not tuple):\n"
    "        x, y = as_numpy(x, y), as_numpy(y, x)\n",
}
_PYTHON = frozenset((int, float, complex))


def is_operator(compute: Any) -> bool:
    """Whether what computes a ufunc is an operator of Python's as well."""
    return bool(getattr(getattr(compute, "primitive", None), "arithmetic", False))


def _with_options(theirs: np.ufunc, compute: Any) -> Callable[..., Any]:
    args = "x" if theirs.nin == 1 else "x, y"
    bare, body = f"def operation({args}, /):\n", f"    return operation({args})"
    shared = {"__name__": __name__, "operation": compute}
    if (text := getattr(compute, "text", "")).startswith(bare):
        body, shared = text.removeprefix(bare), compute.__globals__
    first = _OF_PYTHON[theirs.nin] if is_operator(compute) else ""
    text = _OPTIONS.format(args=args) + first + body
    known = {"theirs": theirs, "applied": applied, "as_numpy": as_numpy, "PYTHON": _PYTHON, "Tracer": Tracer}
    call: Callable[..., Any] = function(theirs.__name__, text, shared, **known)
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
    """``call`` with what is public of it."""
    _named(call, stub)
    call.__signature__ = _signature(stub, theirs.nout, DEFAULTS)
    call.ufunc, call.compute = theirs, compute
    for name in _ATTRIBUTES:
        setattr(call, name, getattr(theirs, name))
    for name in _METHODS:
        setattr(call, name, MethodType(getattr(ufunc_methods, name), call))
    return call


def _named(call: Any, stub: Callable[..., Any]) -> None:
    """Let ``call`` stand in the place of ``stub``, which nobody needs to find behind it."""
    wraps(stub)(call)
    del call.__wrapped__


def _signature(stub: Callable[..., Any], results: int, options: dict[str, Any]) -> inspect.Signature:
    """That of ``stub``, with ``out`` and options behind its arguments."""
    plain = inspect.signature(stub)
    given = [p for p in plain.parameters.values() if p.kind is Parameter.POSITIONAL_ONLY]
    return plain.replace(parameters=[*given, *_behind(results, tuple(options.items()))])


@cache
def _behind(results: int, options: tuple[tuple[str, Any], ...]) -> tuple[Parameter, ...]:
    """The same ones stand in a hundred signatures."""
    out = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None if results == 1 else (None,) * results)
    return (out, *[Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in options])


# ---- functions of vectors and matrices -----------------------------------------------------------------------


class GeneralizedUfunc(Protocol):
    """A ufunc of vectors and matrices; the axes before theirs broadcast.

    Attributes:
        ufunc: NumPy's own; None where this version of NumPy has none.
        compute: what it does to tracers, without options.
        signature: which axes it takes from its arguments, as NumPy writes that.
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
        """Compute it."""


_GENERAL: dict[str, Any] = {
    **{name: value for name, value in DEFAULTS.items() if name != "where"},
    "axes": None,
    "axis": None,
    "keepdims": False,
}


def gufunc(signature: str, own: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], GeneralizedUfunc]:
    """``ufunc`` for a function of vectors and matrices, which are the last axes of its two arguments.

    Args:
        signature: which axes it takes and gives, as NumPy writes that.
        own: what computes it; by default the function itself.

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
