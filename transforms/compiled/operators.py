"""Operations of which NumPy rounds Python's operators otherwise than its functions.

``x ** y`` of two numbers is C's power, ``np.power(x, y)`` the loop of arrays, which differs in the last bit of one
result in twenty. Products, powers and absolute values of complex numbers are others, and products in place. What a run
without tracers does is seen from who asks for the operation: an operator of the user's, a call, or the rules of an
outer transform.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.batching import BatchTracer
from funcgrad.core import Primitive, Tracer
from funcgrad.graph import GraphTracer

__all__ = ["DIFFERING", "INFIX", "operator_for"]

ndarray = np.ndarray
#: Types of numbers for which reverse and forward mode call Python's operator, see ``kinds.elementwise``.
_NUMBERS = frozenset((int, float, np.float64))
_RULES = frozenset(("funcgrad.core", "funcgrad.kinds.elementwise"))
_TEMPLATES = "<generated for funcgrad.kinds.elementwise>"
_BINDING = frozenset(("funcgrad.core", "funcgrad.kinds.rules"))
_PROTOCOLS = frozenset(("funcgrad.numpy.protocols", "funcgrad.numpy.ufunc_calls"))
_BINARY = dis.opmap["BINARY_OP"]


def _never(*args: Any) -> Any:
    raise NotImplementedError("a recorded operator has no rules")


def _as_operator(name: str, compute: Callable[..., Any]) -> Primitive:
    """A primitive that ``compute`` computes; graphs that are recorded once are only computed."""
    made = Primitive(name, lambda xp, *args: compute(*args), None, None, _never)
    made.call = compute
    return made


def _multiplied_in_place(x: Any, y: Any) -> Any:
    made = x.copy("K")
    made *= y
    return made


#: By the name of an operation, what Python's operator for it is, and the operator in place.
INFIX = {
    "multiply": _as_operator("infix_multiply", operator.mul),
    "power": _as_operator("infix_power", operator.pow),
    "absolute": _as_operator("infix_absolute", abs),
}
_IN_PLACE = _as_operator("multiply_in_place", _multiplied_in_place)
DIFFERING = frozenset(INFIX)


def operator_for(primitive: Primitive, values: list[Any], frame: Any) -> Primitive | None:
    """The operator by which a run without tracers computes an operation in ``DIFFERING``, None where it calls NumPy.

    Args:
        primitive: the operation.
        values: what it is computed of.
        frame: who asked for it.
    """
    name = primitive.name
    arrays = ndarray in map(type, values)
    if any(map(_is_complex, values)):
        in_place = arrays and name == "multiply" and type(values[0]) is ndarray and values[0].size == 1
        if arrays and name != "power" and not in_place:
            return None
    elif name != "power" or arrays:
        return None
    while frame.f_globals.get("__name__") in _BINDING:
        frame = frame.f_back
    if not _is_template(frame, name):
        return None
    given = [x for x in map(frame.f_locals.get, "xy") if isinstance(x, Tracer)]
    if any(type(x) is not GraphTracer for x in given):  # a constant, behind a transform's back
        return None
    asker = frame.f_back
    while asker.f_globals.get("__name__") in _PROTOCOLS:  # a number of NumPy's beside a tracer asks its class
        asker = asker.f_back
    module, code = asker.f_globals.get("__name__"), asker.f_code
    if _is_template(asker, name) or module in _RULES:
        return INFIX[name] if _by_rule(asker, name) and _are_doubles(values) else None
    if module == "funcgrad.numpy.assignment" and code.co_name == "method":
        return _IN_PLACE if name == "multiply" and arrays else INFIX[name]
    if name == "multiply" and arrays:
        return None
    if module == "funcgrad.numpy.methods" or code.co_code[asker.f_lasti] == _BINARY:
        return INFIX[name]
    return None


def _by_rule(asker: Any, name: str) -> bool:
    """Whether reverse or forward mode asks, which have short cases that call the operator; not a batch."""
    if asker.f_code.co_name == "computed":
        return True
    if asker.f_code.co_name == "<lambda>":  # from the rule of forward mode to the operation
        asker = asker.f_back
    return _is_template(asker, name) and not any(type(x) is BatchTracer for x in asker.f_locals.values())


def _are_doubles(values: list[Any]) -> bool:
    kinds = set(map(type, values))
    return np.float64 in kinds and _NUMBERS.issuperset(kinds)


def _is_template(frame: Any, name: str) -> bool:
    return bool(frame.f_code.co_filename == _TEMPLATES and frame.f_code.co_name == name)


def _is_complex(x: Any) -> bool:
    return type(x) is complex or (isinstance(x, (ndarray, np.generic)) and x.dtype.kind == "c")
