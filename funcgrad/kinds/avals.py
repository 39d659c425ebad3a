"""Abstract values: the facts about a value, without its numbers, that the fast paths of operations need.

The *aval* of an array of doubles is its shape, the aval of a number is its type. The aval of any other value is None:
such a value takes the general path. ``Tracer.aval`` caches the aval of a tracer's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core import Tracer

__all__ = ["DOUBLE", "are_doubles", "aval_of", "zero_dim_doubles", "common_aval", "promoted_constant"]

ndarray = np.ndarray
as_array = np.array
float64 = np.float64
DOUBLE, _SINGLE = np.dtype(float64), np.dtype(np.float32)
_NUMBERS = frozenset((int, float, float64))


def aval_of(v: Any) -> Any:
    """Return the aval of a value, or of the value inside a tracer, as the transformed function sees the value.

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
    if type(v) is Tracer and v._trace.hidden_axes:
        whole = aval_of(v._val)
        return whole[1:] if type(whole) is tuple else None
    return v.aval if type(v) is Tracer else None


def common_aval(v: Any, w: Any, floats: frozenset[type]) -> Any:
    """Return the aval of the result for two values if nothing broadcasts or promotes, else None.

    ``floats`` are types of numbers for which the operation is a Python operator.
    """
    while type(v) is Tracer and v._trace.differentiates:  # inline, because a call of aval_of takes as long
        v = v._val
    while type(w) is Tracer and w._trace.differentiates:
        w = w._val
    if type(v) is ndarray:
        return v.shape if type(w) is ndarray and v.dtype is w.dtype is DOUBLE and v.shape == w.shape else None
    if type(v) is float64:
        return float64 if type(w) is float64 or type(w) is float else None
    if type(v) is float:
        return float64 if type(w) is float64 else float if type(w) is float in floats else None
    found = aval_of(v)
    return found if found is not None and found == aval_of(w) else None


def are_doubles(values: Sequence[Any]) -> bool:
    """Whether all values are numbers and at least one is a NumPy double."""
    kinds = set(map(type, values))
    return float64 in kinds and _NUMBERS.issuperset(kinds)


class _Doubles(dict[float, ndarray]):
    """Cache of numbers as arrays without axes, made at first lookup."""

    def __missing__(self, number: float) -> ndarray:
        made = as_array(number, DOUBLE)
        if number:  # 0 is not cached: 0.0 and -0.0 are the same key
            if len(self) >= 1_000:
                self.clear()
            self[number] = made
        return made


#: Replacement for a number next to arrays of doubles: NumPy takes an array without axes in half the time.
zero_dim_doubles = _Doubles()


def promoted_constant(v: Any, constant: Any, aval: Any, floats: frozenset[type], converts: bool) -> Any:
    """Return the replacement for ``constant`` next to the value ``v``; None if the two promote or broadcast.

    Args:
        v: the value of the traced operand.
        constant: the other operand.
        aval: the aval of ``v``, None if it is unknown.
        floats: types of numbers for which the operation is a Python operator.
        converts: whether the operation may get an array without axes in place of a number.
    """
    kind = type(constant)
    if aval is None:
        aval = aval_of(v)
    if aval is float:
        return constant if kind is float64 or ((kind is float or kind is int) and float in floats) else None
    if kind is float or kind is int:
        if aval is not None:
            return zero_dim_doubles[constant] if converts and type(v) is ndarray else constant
        if type(v) is ndarray and v.dtype is _SINGLE and converts:
            return as_array(constant, _SINGLE)
        return None
    if kind is float64:
        return None if aval is None else constant
    if kind is ndarray and constant.dtype is DOUBLE and type(aval) is tuple:
        return constant if constant.shape == aval or not constant.shape else None
    return None
