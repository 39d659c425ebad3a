"""``bind_checked`` for arguments of any type: sequences, tables, masked arrays, and objects that have operators."""

from __future__ import annotations

import operator
from array import array
from collections import UserList
from collections.abc import Callable
from numbers import Integral, Rational
from threading import get_ident
from typing import Any

import numpy as np

from funcgrad import backend, blocks, core
from funcgrad.core import Primitive, Tracer
from funcgrad.errors import ConversionError, InputError
from funcgrad.shared_state import pending_refusals
from funcgrad.writable import CONSTANTS, COPY_ON_WRITE, Proxy, as_buffer, is_buffer, shared_array, writable_result

_NUMBERS = frozenset((bool, int, float, complex, np.float64, np.float32, np.complex128))
#: Further sequences that NumPy converts to arrays, in addition to those of ``backend.is_sequence``.
_SEQUENCES = (range, array, UserList)
#: Names of reflected operators that are not the name of the operator with the prefix ``r``.
_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_COMPARISONS = frozenset((*_REFLECTED, "eq", "ne"))
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
    if _is_fraction(operand) and (primitive.operator not in _COMPARISONS or operand == float(operand)):
        # so do its operators, but comparisons do not round
        return primitive.call(*args[:position], float(operand), *args[position + 1 :], **params)
    if isinstance(operand, _SEQUENCES) or _holds_numbers(operand):
        items = _without_fractions(operand).tolist() if isinstance(operand, np.ndarray) else list(operand)
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
        type(item) in _NUMBERS or _is_fraction(item) or (isinstance(item, Tracer) and not item.shape) for item in x.flat
    )


def _is_fraction(x: Any) -> bool:
    return isinstance(x, Rational) and not isinstance(x, Integral)


def _without_fractions(x: np.ndarray) -> np.ndarray:
    """Return an array of objects with numbers in place of fractions."""
    found = x.copy()
    for i in np.ndindex(x.shape):
        if _is_fraction(x[i]):
            found[i] = float(x[i])
    return found


def _is_comparable(x: Any) -> bool:
    """Whether NumPy compares ``x``: None, dates, texts, or an array of objects, which may hold traced numbers."""
    is_array_of_objects = type(x) is np.ndarray and x.dtype == object
    return is_array_of_objects or x is None or backend.is_date_or_text(x)
