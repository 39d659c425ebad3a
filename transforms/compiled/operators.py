"""Operations of which NumPy rounds Python's operators otherwise than its functions.

``x ** y`` of two numbers is C's power, ``np.power(x, y)`` the loop of arrays, which differs in the last bit of one
result in twenty. Products, powers and absolute values of complex numbers are others, and products in place. Which of
them a program calls, the operators of a tracer of a graph say, see ``graph.GraphTrace.by_operator``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core import Primitive, Tracer
from funcgrad.transforms.compiled.copies import copy_of
from funcgrad.transforms.compiled.graphs import fact_of

__all__ = ["DIFFERING", "INFIX", "doubtful", "operator_for"]

ndarray = np.ndarray


def _never(*args: Any) -> Any:
    raise NotImplementedError("a recorded operator has no rules")


def _as_operator(name: str, compute: Callable[..., Any]) -> Primitive:
    """A primitive that ``compute`` computes; graphs that are recorded once are only computed."""
    made = Primitive(name, lambda xp, *args: compute(*args), None, None, _never)
    made.call = compute
    return made


def _multiplied_in_place(x: Any, y: Any) -> Any:
    made = copy_of(x)
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


def operator_for(name: str, values: Sequence[Any], in_place: bool) -> Primitive | None:
    """What computes an operator as Python does; None where that is what computes the operation.

    Args:
        name: the operation's.
        values: what the operator is asked for.
        in_place: whether it is one such as ``*=``.
    """
    if any(issubclass(type(x), Tracer) for x in values):  # of another run, in which nobody sees the number
        return None
    arrays = ndarray in map(type, values)
    if not any(map(_is_complex, values)):
        return INFIX[name] if name == "power" and not arrays else None
    if not arrays:
        return INFIX[name]
    if name == "multiply" and in_place and type(values[0]) is ndarray:
        return _IN_PLACE if values[0].size == 1 or not fact_of(values[0]).contiguous else None
    return INFIX[name] if name == "power" else None


def doubtful(name: str, args: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether it cannot be known if an operator or a function was called.

    An operator with a number of NumPy's on the left is one of that number, which asks its right operand by the same
    name as the function does.
    """
    return issubclass(type(args[0]), np.generic) and len(args) == 2 and operator_for(name, values, False) is not None


def _is_complex(x: Any) -> bool:
    return type(x) is complex or (isinstance(x, (ndarray, np.generic)) and x.dtype.kind == "c")
