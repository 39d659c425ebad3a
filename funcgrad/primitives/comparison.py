"""Comparisons, logic, tests, rounding, integer arithmetic, constants for derivatives, and ``where``.

All operations but ``where`` pass no derivative: most are step functions or functions of integers.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.batching import common_row
from funcgrad.kinds import elementwise, nondifferentiable
from funcgrad.kinds.linear import loop
from funcgrad.kinds.rules import Operation


def _rounded(xp: Any, x: Any, decimals: int = 0) -> Any:
    """A float of Python's as Python rounds it, by its exact decimals: 2.675 is below the middle of 2.67 and 2.68."""
    return x.__round__(decimals) if type(x) is float else xp.round(x, decimals=decimals)


stop_gradient: Operation = nondifferentiable("stop_gradient", backend.detached)
equal: Operation = nondifferentiable("equal", operator=operator.eq, arithmetic=True)
not_equal: Operation = nondifferentiable("not_equal", operator=operator.ne, arithmetic=True)
less: Operation = nondifferentiable("less", operator=operator.lt, arithmetic=True)
less_equal: Operation = nondifferentiable("less_equal", operator=operator.le, arithmetic=True)
greater: Operation = nondifferentiable("greater", operator=operator.gt, arithmetic=True)
greater_equal: Operation = nondifferentiable("greater_equal", operator=operator.ge, arithmetic=True)
logical_and: Operation = nondifferentiable("logical_and")
logical_or: Operation = nondifferentiable("logical_or")
logical_xor: Operation = nondifferentiable("logical_xor")
logical_not: Operation = nondifferentiable("logical_not")

isnan: Operation = nondifferentiable("isnan")
isinf: Operation = nondifferentiable("isinf")
isfinite: Operation = nondifferentiable("isfinite")
isneginf: Operation = nondifferentiable("isneginf")
isposinf: Operation = nondifferentiable("isposinf")
isreal: Operation = nondifferentiable("isreal")
iscomplex: Operation = nondifferentiable("iscomplex")
signbit: Operation = nondifferentiable("signbit")
isclose: Operation = nondifferentiable("isclose")  # rtol, atol and equal_nan are static

floor: Operation = nondifferentiable("floor")
ceil: Operation = nondifferentiable("ceil")
trunc: Operation = nondifferentiable("trunc")
rint: Operation = nondifferentiable("rint")
fix: Operation = nondifferentiable("fix", lambda xp, x: xp.trunc(x))
round: Operation = nondifferentiable("round", _rounded, arithmetic=True)  # decimals is static
floor_divide: Operation = nondifferentiable("floor_divide", operator=operator.floordiv, arithmetic=True)
spacing: Operation = nondifferentiable("spacing")

bitwise_and: Operation = nondifferentiable("bitwise_and", operator=operator.and_)
bitwise_or: Operation = nondifferentiable("bitwise_or", operator=operator.or_)
bitwise_xor: Operation = nondifferentiable("bitwise_xor", operator=operator.xor)
bitwise_count: Operation = nondifferentiable("bitwise_count")
invert: Operation = nondifferentiable("invert")
left_shift: Operation = nondifferentiable("left_shift", operator=operator.lshift)
right_shift: Operation = nondifferentiable("right_shift", operator=operator.rshift)
gcd: Operation = nondifferentiable("gcd")
lcm: Operation = nondifferentiable("lcm")

#: Sign of real numbers. The sign of a complex number is differentiable, see ``arithmetic.unit``.
sign: Operation = nondifferentiable("sign")
#: Angle of real numbers: 0 or pi.
angle_of_real: Operation = nondifferentiable("angle_of_real", lambda xp, x: xp.angle(x))
#: The second results of ``modf`` and ``frexp``; they are integers.
integral: Operation = nondifferentiable("integral", lambda xp, x: xp.modf(x)[1])
exponent: Operation = nondifferentiable("exponent", lambda xp, x: xp.frexp(x)[1])
#: Result of ``nan_to_num`` for values that carry no derivative.
nan_replaced: Operation = nondifferentiable("nan_replaced", lambda xp, x, **params: xp.nan_to_num(x, **params))

#: Integer dtypes as wide as each floating-point dtype.
_INTEGER_DTYPES = {np.dtype(f"f{n}"): np.dtype(f"i{n}") for n in (2, 4, 8)}
_MANY = 1_000


def _where(xp: Any, condition: Any, x: Any, y: Any) -> Any:
    if xp is np and type(condition) is np.ndarray and condition.size >= _MANY and condition.dtype == bool:
        if _is_zero(y) and type(x) is np.ndarray and x.shape == condition.shape and x.dtype in _INTEGER_DTYPES:
            return _masked(x, np.negative(condition.view(np.int8)).astype(_INTEGER_DTYPES[x.dtype]))
        if _is_zero(x) and type(y) is np.ndarray and y.shape == condition.shape and y.dtype in _INTEGER_DTYPES:
            return _masked(y, condition.astype(_INTEGER_DTYPES[y.dtype]) - 1)
    return xp.where(condition, x, y)


def _is_zero(x: Any) -> bool:
    return type(x) is int and x == 0


def _masked(x: Any, bits: Any) -> Any:
    """Return ``x`` where all ``bits`` of an entry are set, else zero: several times faster than NumPy's ``where``.

    A product with the mask would be as fast, but infinity times zero is NaN.
    """
    return np.bitwise_and(bits, x.view(bits.dtype), out=bits).view(x.dtype)


#: ``where(condition, x, y)``. The cotangent goes to the argument that the value came from.
where: Operation = elementwise(
    "where",
    _where,
    dx=None,
    dy=lambda t, x: where(x, t, 0),
    dz=lambda t, x: where(x, 0, t),
)


def _nonzero_batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    row = common_row(args[0])
    return (loop(nonzero, size, args, batched, params), True) if row is None else (nonzero(row), False)


nonzero: Operation = nondifferentiable("nonzero", batch=_nonzero_batch, multiple=True, data_dependent=True)


def _as_slope(rising: Any, dtype: Any) -> Any:
    """Return 1 where ``rising``, else -1."""
    return rising.astype(dtype) * 2 - 1


def _partial_dtype(xp: Any, x: Any, y: Any) -> Any:
    """Return a dtype for a partial derivative that promotes no result computed from ``x`` and ``y``."""
    try:
        return xp.result_type(x, y)
    except TypeError:  # bfloat16 has no dtype in common with some others, though ufuncs accept both
        return xp.float16


def _share_of_greater(xp: Any, x: Any, y: Any) -> Any:
    greater, least = xp.greater(x, y), xp.greater_equal(x, y)
    share = greater.astype(_partial_dtype(xp, x, y))
    if type(greater) is np.ndarray and np.count_nonzero(greater) == np.count_nonzero(least):  # no entries are equal
        return share
    return (share + least) * 0.5


# The derivatives of operations with kinks. They are constant between the kinks, and their own derivative is zero.

#: Derivative of the absolute value: 1 at 0, unlike the sign; -1 at NaN.
slope: Operation = nondifferentiable("slope", lambda xp, x: _as_slope(xp.greater_equal(x, 0), xp.result_type(x)))
#: Derivative of ``copysign`` in its first argument.
copied_slope: Operation = nondifferentiable(
    "copied_slope", lambda xp, x, y: _as_slope(xp.signbit(y) != (x >= 0), _partial_dtype(xp, x, y))
)
#: 1 where x > y, 1/2 where x == y, else 0, which includes NaN.
share_of_greater: Operation = nondifferentiable("share_of_greater", _share_of_greater)
#: Whether the first argument of ``fmax``, or of ``fmin``, is the result. Of equal arguments the second is.
first_is_greater: Operation = nondifferentiable("first_is_greater", lambda xp, x, y: xp.greater(x, y) | xp.isnan(y))
first_is_less: Operation = nondifferentiable("first_is_less", lambda xp, x, y: xp.less(x, y) | xp.isnan(y))
