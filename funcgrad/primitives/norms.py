"""The Euclidean norm, and square roots and absolute values whose slope at zero is zero."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import conj, expand_to, real, reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.comparison import equal, sign, where
from funcgrad.primitives.elementwise import conjugated, is_complex, real_part, sqrt
from funcgrad.typing import Array, Shape


def _euclidean(xp: Any, x: Any, *, axis: tuple[int, ...]) -> Any:
    x = xp.asarray(x)
    if xp is not np or len(axis) != x.ndim:
        squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
        return xp.sqrt(squares.sum(axis))
    flat = x.ravel(order="K")  # as in NumPy
    if x.dtype.kind == "c":
        return np.sqrt(flat.real.dot(flat.real) + flat.imag.dot(flat.imag))
    return np.sqrt(flat.dot(flat))


def _euclidean_jvp(t: Array, x: Array, ans: Array, *, axis: tuple[int, ...]) -> Array:
    total = reduce_sum(real_part(t * conjugated(x)), axis=axis)
    return total / ans if prod(backend.shape_of(x)) else total  # an empty sum has the derivative 0


def _euclidean_vjp(ct: Array, x: Array, ans: Array, shape: Shape, *, axis: tuple[int, ...]) -> Array:
    return expand_to(ct / ans, shape, axis=axis) * conjugated(x)


#: ``euclidean(x, *, axis)``: the square root of the sum of squared absolute values. Its derivative at zero is NaN.
euclidean: Operation = primitive("euclidean", _euclidean, vjps=[_euclidean_vjp], jvps=[_euclidean_jvp], batch="axis")


def sqrt_flat_at_zero(x: Array) -> Array:
    """Return the square root, with derivatives of zero at zero: distances of equal points then have zero gradients."""
    if type(x) is np.ndarray:
        return np.sqrt(x)
    none = equal(x, 0)
    return where(none, 0, sqrt(where(none, 1, x)))


def abs_flat_at_zero(x: Array) -> Array:
    """Return the absolute value, with a derivative of zero at zero, for the same reason as ``sqrt_flat_at_zero``."""
    if type(x) is np.ndarray:
        return np.abs(x)
    return sqrt_flat_at_zero(real(x * conj(x))) if is_complex(x) else x * sign(x)
