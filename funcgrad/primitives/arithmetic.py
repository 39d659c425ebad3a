"""Arithmetic, powers, integer and fractional parts, and the minimum and maximum of two arrays."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.core import DOUBLE, plain_value
from funcgrad.kinds import elementwise
from funcgrad.kinds.linear import astype, conj, scaled
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.comparison import (
    copied_slope,
    equal,
    exponent,
    first_is_greater,
    first_is_less,
    floor_divide,
    greater,
    isinf,
    logical_and,
    logical_not,
    logical_or,
    rint,
    share_of_greater,
    slope,
    where,
)
from funcgrad.primitives.elementwise import is_complex, is_regular, log, real_part
from funcgrad.primitives.sparse import sparse_multiply

_NUMBERS = frozenset((int, float))  # other number types may promote
_ONES = {float: np.float64(1.0), complex: np.complex128(1.0)}
_PYTHON = _NUMBERS | _ONES.keys()
_MANY = 1_000

add: Operation = elementwise("add", dx=1, dy=1, operator=operator.add)
subtract: Operation = elementwise("subtract", dx=1, dy=-1, operator=operator.sub)
#: ``multiply(x, y)``. With a matrix of SciPy's older sparse classes this is the matrix product, as in SciPy.
multiply: Operation = elementwise("multiply", dx="y", dy="x", operator=operator.mul, foreign=sparse_multiply)
divide: Operation = elementwise(
    "divide",
    dx=lambda t, y: t / y,
    dy=lambda t, y, ans: -(t / y) * ans,  # in this order no intermediate product is larger than the result
    operator=operator.truediv,
)
negative: Operation = elementwise("negative", dx=-1, operator=operator.neg)
positive: Operation = elementwise("positive", dx=1, operator=operator.pos)
reciprocal: Operation = elementwise("reciprocal", dx=lambda ans: -(ans * ans))
square: Operation = elementwise("square", dx=lambda t, x: scaled(x, _doubled(t)))
cbrt: Operation = elementwise("cbrt", dx=lambda t, ans: t / ans / ans / 3)


def as_numpy_number(x: Any, other: Any = 0.0) -> Any:
    """Return ``x``, if a Python float or complex next to a Python number, as a NumPy number, which raises no errors."""
    one = _ONES.get(type(plain_value(x)))
    return x if one is None or type(plain_value(other)) not in _PYTHON else x * one


def _doubled(t: Any) -> Any:
    """Return ``2 t``, where values repeated along broadcast axes are doubled only once."""
    if type(t) is np.ndarray:
        if t.size >= _MANY and 0 in t.strides:
            once = t[tuple([slice(1) if step == 0 else slice(None) for step in t.strides])]
            return np.broadcast_to(once * 2.0, t.shape)
        if t.dtype is DOUBLE:
            return t + t  # equally exact, and NumPy need not convert a Python number
    return t * 2.0


def _exponent_in_result_dtype(y: Any, other: np.dtype[Any]) -> Any:
    """Return exponents in the dtype of their powers: 1 less than the smallest integer would wrap around."""
    try:
        to = np.result_type(dtype_of(y), other)
    except TypeError:  # bfloat16 has no dtype in common with wide integers, though ufuncs accept both
        to = np.dtype(float)
    return astype(y, to=to)


def _power_rule(t: Any, x: Any, y: Any) -> Any:
    """Return ``t * y * x**(y - 1)``; where y is 0 the result is 0, whatever x is."""
    if type(y) in _NUMBERS and y == 2:
        return scaled(x, _doubled(t))
    return scaled(t, _power_dx(x, y))


def _power_dx(x: Any, y: Any) -> Any:
    if type(y) in _NUMBERS and not math.isinf(y):
        return y * power(as_numpy_number(x), y - 1) if y else 0
    dtype_y, dtype_x = dtype_of(y), dtype_of(x)
    if dtype_y.kind in "biu" or (dtype_y.kind == dtype_x.kind and dtype_y.itemsize < dtype_x.itemsize):
        y = _exponent_in_result_dtype(y, dtype_x)
    if is_regular(y):
        return y * power(as_numpy_number(x), y - 1)
    # Only 0 * 0**-1 and inf * 0 need special care. Elsewhere the formula stays, so that its derivatives are right.
    corner = logical_and(equal(x, 0), equal(y, 0))
    lower = power(as_numpy_number(x), where(corner, 1, y - 1))
    return where(logical_and(isinf(y), equal(lower, 0)), 0, y) * lower


def _power_dy(x: Any, y: Any, ans: Any) -> Any:
    """Return ``log(x) * x**y``; at x = 0 it is 0 for positive y and NaN for other y."""
    if is_complex(ans) and not is_complex(x):
        x = astype(x, to=dtype_of(ans))  # a negative x then has a logarithm
    if type(x) in _NUMBERS and x != 0 and not math.isinf(x):
        return (math.log(x) if x > 0 else math.nan) * ans
    if is_regular(x):
        return log(x) * ans
    zero = equal(x, 0)
    undefined = logical_and(zero, logical_not(greater(real_part(y), 0)))
    at_zero = ans * astype(where(undefined, math.nan, 1), to=dtype_of(ans))  # complex numbers have no order
    if type(x) in _NUMBERS and x == 0:
        return at_zero
    flat = logical_and(isinf(x), equal(ans, 0))  # for negative y, inf**y is 0 whatever y is
    return where(zero, at_zero, log(where(logical_or(zero, flat), 1, x)) * ans)


power: Operation = elementwise("power", dx=_power_rule, dy=_power_dy, operator=operator.pow)
float_power: Operation = elementwise("float_power", dx=_power_rule, dy=_power_dy)

#: In both modes the remainder is ``x - n * y``, where the whole number n is constant between the jumps.
remainder: Operation = elementwise("remainder", dx=1, dy=lambda x, y: -floor_divide(x, y), operator=operator.mod)
fmod: Operation = elementwise("fmod", dx=1, dy=lambda x, y, ans: -rint((x - ans) / y))

#: The next float is the first argument plus a rounding error, which counts as a constant.
nextafter: Operation = elementwise("nextafter", dx=1, arity=2)

#: Results of ``modf`` and ``frexp`` that carry a derivative.
fractional: Operation = elementwise("fractional", lambda xp, x: xp.modf(x)[0], dx=1)
mantissa: Operation = elementwise("mantissa", lambda xp, x: xp.frexp(x)[0], dx=lambda t, x: ldexp(t, -exponent(x)))
ldexp: Operation = elementwise("ldexp", dx=lambda t, y: ldexp(t, y), arity=2)


def _joined(xp: Any, x: Any, y: Any) -> Any:
    if xp is not np:
        return x + 1j * y
    x, y = np.asarray(x), np.asarray(y)
    ans = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x, y, np.complex64))
    ans.real, ans.imag = x, y
    return ans[()]


#: ``complex_of(x, y)``: the complex number with these real parts. A sum ``x + 1j * y`` has 0.0 for an imaginary part
#: of -0.0, which is on the other side of a branch cut, and NaN beside an infinite one.
complex_of: Operation = elementwise("complex_of", _joined, dx=1, dy=lambda t: t * 1j)


def unit(x: Any) -> Any:
    """Return ``x / abs(x)`` of complex ``x``; the result at 0 is 0."""
    r = absolute(x)
    origin = equal(r, 0)
    return where(origin, 0, x / where(origin, 1, r))


absolute: Operation = elementwise(
    "absolute",
    dx=lambda x: conj(unit(x)) if is_complex(x) else slope(x),
    operator=operator.abs,
    foreign=lambda x: abs(x) if hasattr(x, "tocsr") else None,  # a sparse matrix
)
fabs: Operation = elementwise("fabs", dx=lambda x: slope(x))
copysign: Operation = elementwise("copysign", dx=lambda x, y: copied_slope(x, y), arity=2)
heaviside: Operation = elementwise("heaviside", dx=None, dy=lambda t, x: where(equal(x, 0), t, 0))

maximum: Operation = elementwise(
    "maximum", dx=lambda x, y: share_of_greater(x, y), dy=lambda x, y: share_of_greater(y, x)
)
minimum: Operation = elementwise(
    "minimum", dx=lambda x, y: share_of_greater(y, x), dy=lambda x, y: share_of_greater(x, y)
)
fmax: Operation = elementwise(
    "fmax",
    dx=lambda t, x, y: where(first_is_greater(x, y), t, 0),
    dy=lambda t, x, y: where(first_is_greater(x, y), 0, t),
)
fmin: Operation = elementwise(
    "fmin",
    dx=lambda t, x, y: where(first_is_less(x, y), t, 0),
    dy=lambda t, x, y: where(first_is_less(x, y), 0, t),
)
#: ``clip(x, lower, upper)``: ``minimum(maximum(x, lower), upper)``, with the derivatives of this composition.
clip: Operation = elementwise(
    "clip",
    dx=lambda x, y, z: share_of_greater(x, y) * share_of_greater(z, maximum(x, y)),
    dy=lambda x, y, z: share_of_greater(y, x) * share_of_greater(z, maximum(x, y)),
    dz=lambda x, y, z: share_of_greater(maximum(x, y), z),
)
