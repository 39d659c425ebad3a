"""Names of rule arguments, which tell what a rule needs, and what the kinds of operation share.

A rule calls the arguments of a primitive ``x``, ``y`` and ``z`` by position, its result ``ans``, and a
tangent or cotangent ``t`` or ``ct``; static parameters are keyword-only. The tape saves exactly
the values that the rules of the differentiated arguments name.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeAlias

import numpy as np

from funcgrad import backend, core
from funcgrad.core import Primitive, Tracer, replace_at, tracer_of
from funcgrad.errors import InputError
from funcgrad.forward import ForwardTrace
from funcgrad.generated import make_function
from funcgrad.kinds.arguments import bind_checked
from funcgrad.reverse import backward, record_function
from funcgrad.writable import is_buffer, writable_result

ARGUMENT_NAMES = ("x", "y", "z")
_DEFINERS = ("funcgrad.kinds", "funcgrad.extend")
Rule: TypeAlias = Callable[..., Any]


class Operation(Protocol):
    """Result of a definer: a function of arrays, with the primitive that it applies."""

    __name__: str
    primitive: Primitive

    def __call__(self, /, *args: Any, **params: Any) -> Any:
        """Apply the operation."""


def _unpack_traced(
    args: tuple[Any, ...], numbers: frozenset[type]
) -> tuple[Any, tuple[Any, ...], tuple[int, ...], list[Any], bool] | None:
    """Take apart arguments that are tracers of one run of reverse mode on the fast path, ndarrays and numbers.

    Returns:
        None for other arguments; else the trace, the values of the arguments, the traced positions, their records, and
        whether the values of all tracers are ndarrays. ``numbers`` are the accepted types of numbers.
    """
    trace: Any = None
    plain = True
    values, traced, parents = [], [], []
    for position, arg in enumerate(args):
        if type(arg) is Tracer:
            if arg._trace is not trace:
                if trace is not None or arg._trace.fast_counter is None:
                    return None
                trace = arg._trace
            value = arg._val
            if type(value) is not np.ndarray:
                plain = False
            values.append(value)
            traced.append(position)
            parents.append(arg.node)
        elif (type(arg) is np.ndarray and arg.dtype.kind in "fciub") or type(arg) in numbers:
            values.append(arg)
        else:
            return None
    return None if trace is None else (trace, tuple(values), tuple(traced), parents, plain)


#: Global names of the templates of several kinds.
SHARED = {
    "EMPTY": {},
    "ForwardTrace": ForwardTrace,
    "NUMPY": frozenset((np.ndarray, float, int, complex, np.float64, np.float32, np.complex128)),
    "Tracer": Tracer,
    "WEAK": frozenset((float, int)),
    "__name__": __name__,
    "bind_checked": bind_checked,
    "ndarray": np.ndarray,
    "tracer_of": tracer_of,
    "unpack_traced": _unpack_traced,
    "writable_result": writable_result,
}

#: Template for any number of arguments, see ``make_any``.
_ANY = """
def operation(*args, **params):
    if {arity}(found := unpack_traced(args, {numbers})) is not None:
        trace, values, traced, parents, plain = found
        ans = {computed}
        ans, vjp, saved = plan_vjp(values, traced, params, ans)
        return writable_result(args, ans) if vjp is None else trace.record_result(ans, vjp, parents, saved)
    for arg in args:
        if {foreign}:
            return bind_checked(primitive, args, params)
    return kernel(*args, **params)
"""


def without_params(text: str) -> str:
    """Return a template for an operation without parameters: passing on an empty dictionary takes time."""
    return text.replace(", **params", "").replace("params", "EMPTY")


def make_any(
    primitive: Primitive,
    kernel: Callable[..., Any],
    plan_vjp: Callable[..., Any],
    *,
    arity: int | None = None,
    has_params: bool = True,
    computed: str = "kernel(*values, **params) if plain else operation(*values, **params)",
    foreign: str = "type(arg) is not ndarray",
    numbers: str = "WEAK",
    **values: Any,
) -> Operation:
    """Make the function of any number of arguments that programs call.

    Args:
        primitive: the operation.
        kernel: computes the operation on ndarrays.
        plan_vjp: ``plan_vjp(values, traced, params, ans) -> (ans, vjp, saved)``, see ``Primitive``.
        arity: the number of arguments that have rules; None for any number.
        has_params: whether the operation has parameters.
        computed: the expression for ``ans``, from the values of the arguments.
        foreign: the condition that an argument ``arg`` needs ``bind_checked`` in a call without tracers.
        numbers: the expression for the types of numbers that may stand beside traced arguments.
        values: the values of further names in these expressions.
    """
    known = "" if arity is None else f"len(args) == {arity} and "
    text = _ANY.format(arity=known, computed=computed, foreign=foreign, numbers=numbers)
    if not has_params:
        text = without_params(text)
    values |= {"primitive": primitive, "kernel": kernel, "plan_vjp": plan_vjp}
    made: Operation = make_function(primitive.name, text, SHARED, **values)
    return made


def positional_names(rule: Rule) -> tuple[str, ...]:
    """Return the names of the positional arguments of ``rule``.

    Example:
        >>> positional_names(lambda ct, x, *, axis: ct)
        ('ct', 'x')
    """
    if type(rule) is FunctionType:
        code = rule.__code__
        return code.co_varnames[: code.co_argcount]
    parameters = inspect.signature(rule).parameters.values()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def check_names(operation: str, names: Sequence[str], known: Iterable[str]) -> Sequence[str]:
    """Check that all ``names`` that a rule of ``operation`` needs are ``known``; return the names."""
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"{operation}: a rule names what it needs, got {', '.join(unknown)}. It may name {', '.join(known)}."
        )
    return names


def transposed_vjp(vjp: Callable[[list[Any]], list[Any]], results: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of ``results``, None for zero, by the transpose of a VJP rule, which is linear.

    Args:
        vjp: a function from cotangents of all results to cotangents of some arguments. It is recorded on a tape.
        results: the results of an operation.
        tangents: the tangents of these arguments.
    """
    live = [i for i, result in enumerate(results) if backend.is_inexact(result)]

    def of_live(*cts: Any) -> list[Any]:
        return vjp(replace_at(list(map(backend.zeros_like, results)), live, cts))

    _, nodes = record_function(of_live, [backend.zeros_like(results[i]) for i in live])
    seeds = [(node, t) for node, t in zip(nodes, tangents, strict=True) if node is not None]
    found = dict(zip(live, backward(seeds, len(live)), strict=True))
    return [found.get(i) for i in range(len(results))]


def checked_routine(name: Any, impl: Any, arity: int = 0) -> Any:
    """Return ``impl``, the routine of a new operation; a user's routine refuses parameters that are traced.

    The derivative by such a parameter would be lost, if the parameter belongs to another transform than the arrays.
    Check the name, and that ``impl`` takes the array namespace before ``arity`` arrays.

    Raises:
        InputError: the name is no text, or ``impl`` has too few parameters.
    """
    if not isinstance(name, str):
        raise InputError(
            f"extend: the first argument must be the name of the operation, got {core.describe(name)}. Write "
            'elementwise("name", routine, ...), and likewise for the other kinds.'
        )
    if (
        type(impl) is FunctionType
        and impl.__code__.co_argcount <= arity
        and not impl.__code__.co_flags & inspect.CO_VARARGS
    ):
        raise InputError(
            f"{name}: the routine must take the array namespace and {arity} arrays, got a function of "
            f"{impl.__code__.co_argcount}. Write lambda xp, x: ..., or numpy_only(routine) for a routine of NumPy."
        )
    return _refusing_traced(name, impl) if _is_users(impl) and _takes_parameters(impl, arity) else impl


def _is_users(impl: Any) -> bool:
    home = str(getattr(impl, "__module__", ""))
    return home == "funcgrad.extend" or not home.startswith("funcgrad.")  # in the former numpy_only wraps routines


def _takes_parameters(impl: Any, arity: int) -> bool:
    """Whether ``impl`` takes more than the array namespace and ``arity`` arrays."""
    if type(impl) is not FunctionType:
        return False
    code = impl.__code__
    return bool(code.co_kwonlyargcount or code.co_flags & inspect.CO_VARKEYWORDS or code.co_argcount > arity + 1)


def _refusing_traced(name: str, impl: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``impl`` as a routine that raises an ``InputError`` for a traced parameter."""

    @wraps(impl)
    def routine(xp: Any, *args: Any, **params: Any) -> Any:
        for key, value in params.items():
            for part in value if type(value) in (tuple, list) else (value,):
                if isinstance(part, Tracer) and not is_buffer(part):
                    raise InputError(
                        f"{name}: the parameter {key} cannot be traced, got {core.describe(part)}. Make it a "
                        "positional argument, which has a derivative rule, or pass stop_gradient(value)."
                    )
        return impl(xp, *args, **params)

    return routine


def finish_operation(primitive: Primitive, call: Callable[..., Any] | None = None) -> Operation:
    """Link a primitive and its function, by default ``bind``; set the function's name and module so that it pickles."""
    made: Any = call or primitive.call
    made.primitive = primitive
    made.__name__ = made.__qualname__ = primitive.name
    frame: Any = sys._getframe(1)
    while frame.f_globals["__name__"].startswith(_DEFINERS) and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    made.__module__ = frame.f_globals["__name__"]
    primitive.call = made
    operation: Operation = made
    return operation
