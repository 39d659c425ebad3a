"""Names of rule arguments, which tell what a rule needs; ``bind_checked`` for arguments of any type.

A rule calls the arguments of a primitive ``x``, ``y`` and ``z`` by position, its result ``ans``, and a
tangent or cotangent ``t`` or ``ct``; static parameters are keyword-only. The tape saves exactly
the values that the rules of the differentiated arguments name.
"""

from __future__ import annotations

import inspect
import operator
import sys
from array import array
from collections import UserList
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from threading import get_ident
from types import FunctionType
from typing import Any, Protocol, TypeAlias

import numpy as np

from funcgrad import backend, blocks, core
from funcgrad.core import Primitive, Tracer, replace_at, tracer_of
from funcgrad.errors import ConversionError, InputError
from funcgrad.forward import ForwardTrace
from funcgrad.generated import make_function
from funcgrad.reverse import backward, record_function
from funcgrad.shared_state import pending_refusals
from funcgrad.writable import CONSTANTS, COPY_ON_WRITE, Proxy, as_buffer, is_buffer, shared_array, writable_result

ARGUMENT_NAMES = ("x", "y", "z")
_NUMBERS = frozenset((bool, int, float, complex, np.float64, np.float32))
_DEFINERS = ("funcgrad.kinds", "funcgrad.extend")
#: Further sequences that NumPy converts to arrays, in addition to those of ``backend.is_sequence``.
_SEQUENCES = (range, array, UserList)
Rule: TypeAlias = Callable[..., Any]


class Operation(Protocol):
    """Result of a definer: a function of arrays, with the primitive that it applies."""

    __name__: str
    primitive: Primitive

    def __call__(self, /, *args: Any, **params: Any) -> Any:
        """Apply the operation."""


#: Names of reflected operators that are not the name of the operator with the prefix ``r``.
_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
#: Versions of primitives for tables, which keep labels; they return ``NotImplemented`` if arrays do not fit the table.
TABLE_OPERATIONS: dict[Primitive, Callable[..., Any]] = {}
#: List with the function that computes an operation on NumPy's masked arrays, or returns ``NotImplemented``.
MASKED_OPERATION: list[Callable[[Primitive, tuple[Any, ...]], Any]] = []
#: List with the function that makes an array from a list or a tuple, which may contain traced values.
ARRAY_MAKER: list[Callable[[Any], Any]] = []


def bind_checked(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` like ``core.bind``, but check operands: NumPy would compute with objects and texts.

    The fast paths serve the common cases: tracers of one run, ordinary arrays and numbers.

    Raises:
        InputError: an argument is not an array or a number.
    """
    trace = None
    for arg in args:
        kind = type(arg)
        if kind is np.ndarray:
            if arg.dtype.kind not in "fciub":
                break
        elif kind not in _NUMBERS:
            if not isinstance(arg, Tracer) or (trace is not None and arg._trace is not trace):
                break
            trace = arg._trace
    else:
        if trace is None:
            plain = blocks.last_entered() is None
            return primitive.compute(args, params) if plain else primitive.evaluate(args, params)
        if trace.fast:
            ans = trace.process(primitive, args, params)
            return ans if isinstance(ans, Tracer) else writable_result(args, ans)
    return _bind_any(primitive, args, params)


def _bind_any(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` to arguments of any type, see ``bind_checked``."""
    traced = shared = False
    proxy: Proxy | None = None
    for position, arg in enumerate(args):
        if isinstance(arg, Tracer):
            traced, shared = True, shared or arg.link is COPY_ON_WRITE
            continue
        if type(arg) in _NUMBERS:
            continue
        if backend.is_sequence(arg):
            arg = ARRAY_MAKER[0](arg)
            args = (*args[:position], arg, *args[position + 1 :])
            if isinstance(arg, Tracer):
                return bind_checked(primitive, args, params)
        if isinstance(arg, Proxy):
            if (made := arg.replace_call(primitive.name, args)) is not None:
                return made
            arg, traced, proxy = arg.as_array(), True, arg
            args = (*args[:position], arg, *args[position + 1 :])
        elif not backend.is_value(arg):
            if (made := _compute_by_rules_of(arg, primitive, args)) is not NotImplemented:
                return made
            if backend.is_table(arg):
                arg = backend.values_of(arg)
                traced = traced or isinstance(arg, Tracer)
                args = (*args[:position], arg, *args[position + 1 :])
                continue
            return _bind_foreign(primitive, args, position, params)
        else:
            _note_lost_class(primitive, args, type(arg))
    if shared and (others := _with_shared_arrays(args)) is not None:
        return primitive.call(*others, **params)
    ans = core.bind(primitive, args, params)
    ans = ans if not traced or isinstance(ans, Tracer) else writable_result(args, ans)
    return ans if proxy is None else proxy.wrap(ans, primitive.name)


def _note_lost_class(primitive: Primitive, args: tuple[Any, ...], kind: type) -> None:
    """Note it if an operand is of a class derived from ndarray, which the result for a traced value is not.

    Rebuilt code has a class that takes traced values.
    """
    if kind is not np.ndarray and backend.is_array_class(kind) and any(isinstance(x, Tracer) for x in args):
        problem = f"an operand is of the class {kind.__name__}, derived from ndarray, which the result for a traced"
        text = f"{primitive.name}: {problem} value is not. Take numpy.asarray(x)."
        pending_refusals.setdefault(get_ident(), text)


def _compute_by_rules_of(x: Any, primitive: Primitive, args: tuple[Any, ...]) -> Any:
    """Compute an operation with a table or a masked array ``x`` by its own rules; else return ``NotImplemented``."""
    if backend.is_masked(type(x)):
        return MASKED_OPERATION[0](primitive, args)
    of_tables = TABLE_OPERATIONS.get(primitive) if backend.is_table(x) else None
    return NotImplemented if of_tables is None else of_tables(*args)


def _with_shared_arrays(args: tuple[Any, ...]) -> list[Any] | None:
    """Replace buffers whose memory is marked as shared by their arrays; return None if all arguments are constants."""
    found, traced = [], False
    for arg in args:
        if type(arg) is Tracer:
            if arg._trace is not CONSTANTS:
                traced = True
            elif (array := shared_array(arg)) is not None:
                arg = array
        found.append(arg)
    return found if traced else None


def _bind_foreign(primitive: Primitive, args: tuple[Any, ...], position: int, params: dict[str, Any]) -> Any:
    """Compute an operation whose argument at ``position`` is not a value, or raise ``InputError``."""
    if primitive.foreign is not None and (made := primitive.foreign(*args)) is not None:
        return made
    operand = args[position]
    if (made := _call_protocol_of(operand, primitive, args, params)) is not NotImplemented:
        return made
    if (made := _call_operator_of(primitive, args, position)) is not NotImplemented:
        return made
    if (made := _compute_other_constants(primitive, args, params)) is not NotImplemented:
        return made
    if isinstance(operand, _SEQUENCES) or _holds_numbers(operand):
        items = operand.tolist() if isinstance(operand, np.ndarray) else list(operand)
        return primitive.call(*args[:position], ARRAY_MAKER[0](items), *args[position + 1 :], **params)
    if backend.defines_array(operand):
        return primitive.call(*args[:position], ARRAY_MAKER[0](operand), *args[position + 1 :], **params)
    if (made := _call_method_of(operand, primitive, args, params)) is not NotImplemented:
        return made
    problem, remedy = backend.problem_and_remedy(operand)
    error = InputError(f"{primitive.name}: argument {position} {problem}. {remedy}")
    if backend.is_array_class(type(operand)):  # rebuilt code has a class that takes traced values
        pending_refusals[get_ident()] = f"{error} It is of a class derived from ndarray."
    raise error


def _call_protocol_of(operand: Any, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Call ``__array_ufunc__`` or ``__array_function__`` of an operand that has it; else return NotImplemented."""
    numpys = None if params else getattr(np, primitive.name, None)
    if isinstance(numpys, np.ufunc):
        override = backend.override_of(operand)
        return NotImplemented if override is None else override(operand, numpys, "__call__", *args)
    by_functions = getattr(type(operand), "__array_function__", None)
    if by_functions in (None, np.ndarray.__array_function__) or type(numpys) is not backend.DISPATCHER:
        return NotImplemented
    return by_functions(operand, numpys, (type(operand),), args, {})


def _call_method_of(operand: Any, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Call the method that NumPy's ufunc calls for an object: ``numpy.sin(x)`` is ``x.sin()``; else NotImplemented."""
    if params or len(args) > 1 or not isinstance(getattr(np, primitive.name, None), np.ufunc):
        return NotImplemented
    by_operator = _OBJECT_OPERATORS.get(primitive.name)
    if by_operator is not None:
        return by_operator(operand) if hasattr(type(operand), f"__{by_operator.__name__}__") else NotImplemented
    method = getattr(operand, primitive.name, None)
    return method() if callable(method) else NotImplemented


#: Ufuncs that NumPy computes for an object by an operator.
_OBJECT_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "absolute": abs, "negative": operator.neg, "positive": operator.pos,
}  # fmt: skip


def _call_operator_of(primitive: Primitive, args: tuple[Any, ...], position: int) -> Any:
    """Call the operator of the foreign operand at ``position``, if an ndarray would leave operators to the operand.

    Return ``NotImplemented`` if the operand has no such operator, or if its operator returns that.

    Raises:
        ConversionError: the operator returned that because its code could not convert a traced value.
    """
    name, operand = primitive.operator, args[position]
    other = args[1 - position] if name is not None and len(args) == 2 else None
    if name is None or not isinstance(other, Tracer) or not backend.takes_over_operators(operand):
        return NotImplemented
    name = name.strip("_") if position == 0 else _REFLECTED.get(name, "r" + name.strip("_"))
    method = getattr(type(operand), f"__{name}__", None)
    before = pending_refusals.get(get_ident())
    found = NotImplemented if method is None else method(operand, other)
    refusal = pending_refusals.get(get_ident())
    if found is NotImplemented and refusal and refusal is not before:
        raise ConversionError(refusal)
    return found


def _compute_other_constants(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Compute with NumPy on dates, times or texts and constants, such as ``start + numpy.arange(3)``.

    Also compute with arrays of objects, such as numbers with uncertainties, and constants. Return ``NotImplemented`` if
    an argument is traced or of another type, or if NumPy raises a ``TypeError``.
    """
    plain = tuple([x._val if is_buffer(x) else x for x in args])
    accepted = _is_comparable if primitive.name in ("equal", "not_equal") else _is_date_text_or_objects
    if not all(backend.is_value(x) or accepted(x) for x in plain) or Tracer in map(type, plain):
        return NotImplemented
    try:
        ans = primitive.compute(plain, params)
    except TypeError:
        return NotImplemented
    if not any(map(is_buffer, args)):
        return ans
    if primitive.multiple:
        return tuple([as_buffer(a, plain) for a in ans])
    return as_buffer(ans, plain) if isinstance(ans, (np.ndarray, np.generic)) and not _holds_objects(ans) else ans


def _is_date_text_or_objects(x: Any) -> bool:
    """Whether NumPy computes with ``x``: dates, texts, or an array of objects, whose operators it calls."""
    return backend.is_date_or_text(x) or _holds_objects(x)


def _holds_objects(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype == object


def _holds_numbers(x: Any) -> bool:
    """Whether ``x`` is an array of Python objects that are numbers, which may be traced."""
    return _holds_objects(x) and all(
        type(item) in _NUMBERS or (isinstance(item, Tracer) and not item.shape) for item in x.flat
    )


def _is_comparable(x: Any) -> bool:
    """Whether NumPy compares ``x``: None, dates, texts, or an array of objects, which may hold traced numbers."""
    is_array_of_objects = type(x) is np.ndarray and x.dtype == object
    return is_array_of_objects or x is None or backend.is_date_or_text(x)


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
    "NUMPY": frozenset((np.ndarray, float, int, np.float64, np.float32)),
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
