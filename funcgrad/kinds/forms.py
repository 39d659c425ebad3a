"""What the quick ways of elementwise operations need to know of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTracer
from funcgrad.forward import ForwardTracer
from funcgrad.reverse import ReverseTracer

__all__ = [
    "DOUBLE",
    "REAL",
    "SCALARS",
    "SINGLE",
    "alike",
    "are_doubles",
    "beside",
    "beside_doubles",
    "bottom",
    "is_double",
    "keeps_dtype",
]

ndarray = np.ndarray
as_array = np.array
float64 = np.float64
SCALARS = frozenset((float, float64))
#: Dtypes of kind "V", such as bfloat16, meet Python numbers with promotion: only the general rules conform cotangents.
DOUBLE, SINGLE = np.dtype(float64), np.dtype(np.float32)
REAL = frozenset((DOUBLE, SINGLE))
#: What ``beside_doubles`` has made.
_constants: dict[float, ndarray] = {}


def beside_doubles(number: float) -> ndarray:
    """A number as an array without axes: NumPy takes it in half the time, forwards and back."""
    made = _constants.get(number)
    if made is None:
        made = as_array(number, DOUBLE)
        if number:  # 0 and -0 are one key
            if len(_constants) >= 1_000:
                _constants.clear()
            _constants[number] = made
    return made


def beside(v: Any, constant: Any, numbers: frozenset[type], convert: bool, form: Any = None) -> Any:
    """What stands for a constant beside ``v`` in a quick way, None where there is none.

    ``convert`` makes an array without axes of a Python number.
    """
    if form is not None and type(constant) is ndarray and constant.dtype is DOUBLE and constant.shape == form:
        return constant
    known = type(v) is ndarray
    found = v if known else bottom(v)
    if type(constant) is float or type(constant) is int:
        if type(found) is ndarray:
            if found.dtype is DOUBLE:
                return beside_doubles(constant) if convert and known else constant  # of a tracer, in its turn
            if found.dtype is SINGLE and known:
                return as_array(constant, SINGLE) if convert else constant
        elif type(v) in numbers or (type(found) is float64 and v is not found):
            return constant
    elif type(constant) is type(found) is ndarray and constant.dtype is found.dtype:
        alike = (not constant.shape or constant.shape == found.shape) if known else not constant.shape
        if alike and (found.dtype is DOUBLE or (found.dtype is SINGLE and known)):
            return constant
    return None


def is_double(v: Any) -> bool:
    """Whether a tracer holds a double number in the end, or an array of them."""
    while type(v) is ReverseTracer or type(v) is ForwardTracer:
        v = v.value
    return v.dtype is DOUBLE if type(v) is ndarray else type(v) is float64


def are_doubles(v: Any, w: Any) -> bool:
    """Whether two tracers hold double numbers in the end, or arrays of them of one shape."""
    while type(v) is ReverseTracer or type(v) is ForwardTracer:  # no call of bottom, which takes as long
        v = v.value
    while type(w) is ReverseTracer or type(w) is ForwardTracer:
        w = w.value
    if type(v) is ndarray:
        return type(w) is ndarray and v.dtype is w.dtype is DOUBLE and v.shape == w.shape
    return type(v) is type(w) is float64


def bottom(v: Any) -> Any:
    """What a tracer, and perhaps a tracer in it, holds in the end."""
    while type(v) is ReverseTracer or type(v) is ForwardTracer:
        v = v.value
    return v


def alike(v: Any, w: Any) -> bool:
    """Whether two values meet without broadcasting or promotion."""
    v, w = bottom(v), bottom(w)
    while type(v) is BatchTracer:
        if type(w) is not BatchTracer or w._trace is not v._trace:
            return False
        v, w = bottom(v.value), bottom(w.value)
    if type(v) is ndarray:
        dtype = v.dtype
        same = type(w) is ndarray and dtype is w.dtype and v.shape == w.shape
        return same and (dtype is DOUBLE or dtype.kind != "V")
    return type(v) in SCALARS and type(w) in SCALARS


def keeps_dtype(ans: Any, v: Any) -> bool:
    """Whether a result has the dtype of an argument: of NumPy's functions it is known, others may have fewer dtypes."""
    return backend.dtype_of(ans) == backend.dtype_of(v)
