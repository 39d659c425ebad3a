"""Abstract values: what the fast paths of operations need to know about a value, without its numbers.

The *aval* of an array of doubles is its shape, that of a number is its type; other values have None and take the
general path. A tracer's ``form`` remembers the aval of its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core import Tracer

__all__ = ["DOUBLE", "are_doubles", "aval_of", "beside_doubles", "common_aval", "constant_beside"]

ndarray = np.ndarray
as_array = np.array
float64 = np.float64
DOUBLE, _SINGLE = np.dtype(float64), np.dtype(np.float32)
_NUMBERS = frozenset((int, float, float64))


def aval_of(v: Any) -> Any:
    """The aval of a value, or of the innermost value of a tracer, as the running function sees it.

    Example:
        >>> aval_of(np.ones((2, 3))), aval_of(np.ones(2, np.float32)), aval_of(2.0)
        ((2, 3), None, <class 'float'>)
    """
    while type(v) is Tracer and v._trace.differentiates:
        v = v._val
    if type(v) is ndarray:
        return v.shape if v.dtype is DOUBLE else None
    if type(v) is float64 or type(v) is float:
        return type(v)
    if type(v) is Tracer and v._trace.hidden:
        whole = aval_of(v._val)
        return whole[1:] if type(whole) is tuple else None
    return v.form if type(v) is Tracer else None


def common_aval(v: Any, w: Any, closed: frozenset[type]) -> Any:
    """The aval of the result for two values if nothing broadcasts or promotes, else None.

    ``closed`` are types of numbers with which the operation is Python's own.
    """
    while type(v) is Tracer and v._trace.differentiates:  # no call of aval_of, which takes as long
        v = v._val
    while type(w) is Tracer and w._trace.differentiates:
        w = w._val
    if type(v) is ndarray:
        return v.shape if type(w) is ndarray and v.dtype is w.dtype is DOUBLE and v.shape == w.shape else None
    if type(v) is float64:
        return float64 if type(w) is float64 or type(w) is float else None
    if type(v) is float:
        return float64 if type(w) is float64 else float if type(w) is float in closed else None
    found = aval_of(v)
    return found if found is not None and found == aval_of(w) else None


def are_doubles(values: Sequence[Any]) -> bool:
    """Whether these are numbers, a double of NumPy's among them."""
    kinds = set(map(type, values))
    return float64 in kinds and _NUMBERS.issuperset(kinds)


class _Doubles(dict[float, ndarray]):
    """Numbers as arrays without axes, made when first asked for."""

    def __missing__(self, number: float) -> ndarray:
        made = as_array(number, DOUBLE)
        if number:  # 0 and -0 are one key
            if len(self) >= 1_000:
                self.clear()
            self[number] = made
        return made


#: What stands for a number beside doubles: NumPy takes an array without axes in half the time, forwards and back.
beside_doubles = _Doubles()


def constant_beside(v: Any, constant: Any, aval: Any, closed: frozenset[type], converts: bool) -> Any:
    """What stands for ``constant`` beside the value ``v``, None where they promote or broadcast.

    Args:
        v: the value.
        constant: what it meets.
        aval: that of ``v``, None where nobody has looked.
        closed: types of numbers with which the operation is Python's own.
        converts: whether the operation takes an array without axes for a number.
    """
    kind = type(constant)
    if aval is None:
        aval = aval_of(v)
    if aval is float:
        return constant if kind is float64 or ((kind is float or kind is int) and float in closed) else None
    if kind is float or kind is int:
        if aval is not None:
            return beside_doubles[constant] if converts and type(v) is ndarray else constant
        if type(v) is ndarray and v.dtype is _SINGLE and converts:
            return as_array(constant, _SINGLE)
        return None
    if kind is float64:
        return None if aval is None else constant
    if kind is ndarray and constant.dtype is DOUBLE and type(aval) is tuple:
        return constant if constant.shape == aval or not constant.shape else None
    return None
