"""Comparisons, logic and tests, element by element.

No derivative passes through any of them: where there is one it is 0. The results therefore leave the
trace of a derivative and may steer Python control flow there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.numpy.axes import all_axes
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.output import into
from funcgrad.numpy.ufunc import Table
from funcgrad.primitives import comparison as prim
from funcgrad.primitives.reductions import reduce_all
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
    "logical_not", "isnan", "isinf", "isfinite", "isneginf", "isposinf", "isreal", "iscomplex", "signbit", "isclose",
    "allclose", "array_equal",
]  # fmt: skip

table = Table(__name__)

# fmt: off
equal = table.binary(np.equal, prim.equal, "Where ``x1`` is equal to ``x2``.", "fnp.equal([1.0, 2.0], 2.0)",
    "array([False,  True])")
not_equal = table.binary(np.not_equal, prim.not_equal, "Where ``x1`` differs from ``x2``.",
    "fnp.not_equal([1.0, 2.0], 2.0)", "array([ True, False])")
less = table.binary(np.less, prim.less, "Where ``x1`` is less than ``x2``.", "fnp.less([1.0, 2.0], 2.0)",
    "array([ True, False])")
less_equal = table.binary(np.less_equal, prim.less_equal, "Where ``x1`` is at most ``x2``.",
    "fnp.less_equal([1.0, 2.0], 2.0)", "array([ True,  True])")
greater = table.binary(np.greater, prim.greater, "Where ``x1`` is greater than ``x2``.", "fnp.greater([1.0, 3.0], 2.0)",
    "array([False,  True])")
greater_equal = table.binary(np.greater_equal, prim.greater_equal, "Where ``x1`` is at least ``x2``.",
    "fnp.greater_equal([1.0, 2.0], 2.0)", "array([False,  True])")
logical_and = table.binary(np.logical_and, prim.logical_and, "Where neither is 0.", "fnp.logical_and([0, 1], [1, 2])",
    "array([False,  True])")
logical_or = table.binary(np.logical_or, prim.logical_or, "Where one is not 0.", "fnp.logical_or([0, 1], [0, 2])",
    "array([False,  True])")
logical_xor = table.binary(np.logical_xor, prim.logical_xor, "Where exactly one is not 0.",
    "fnp.logical_xor([0, 1], [1, 2])", "array([ True, False])")
logical_not = table.unary(np.logical_not, prim.logical_not, "Where ``x`` is 0.", "fnp.logical_not([0.0, 1.0])",
    "array([ True, False])")
isnan = table.unary(np.isnan, prim.isnan, "Where ``x`` is NaN.", 'fnp.isnan([1.0, float("nan")])',
    "array([False,  True])")
isinf = table.unary(np.isinf, prim.isinf, "Where ``x`` is infinite.", 'fnp.isinf([1.0, -float("inf")])',
    "array([False,  True])")
isfinite = table.unary(np.isfinite, prim.isfinite, "Where ``x`` is neither infinite nor NaN.",
    'fnp.isfinite([1.0, float("nan")])', "array([ True, False])")
signbit = table.unary(np.signbit, prim.signbit, "Where the sign bit is set: of negative numbers, and of -0.0.",
    "fnp.signbit([1.0, -0.0])", "array([False,  True])")
# fmt: on


def isneginf(x: ArrayLike, out: Any = None) -> Array:
    """Where ``x`` is minus infinity.

    Example:
        >>> fnp.isneginf([1.0, -float("inf")])
        array([False,  True])
    """
    return prim.isneginf(x) if out is None else into(isneginf, out, x)


def isposinf(x: ArrayLike, out: Any = None) -> Array:
    """Where ``x`` is plus infinity.

    Example:
        >>> fnp.isposinf([1.0, -float("inf")])
        array([False, False])
    """
    return prim.isposinf(x) if out is None else into(isposinf, out, x)


def isreal(x: ArrayLike) -> Array:
    """Where the imaginary part is 0.

    Example:
        >>> fnp.isreal([1.0, 1j])
        array([ True, False])
    """
    return prim.isreal(x)


def iscomplex(x: ArrayLike) -> Array:
    """Where the imaginary part is not 0.

    Example:
        >>> fnp.iscomplex([1.0, 1j])
        array([False,  True])
    """
    return prim.iscomplex(x)


def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Where ``abs(a - b) <= atol + rtol * abs(b)``, with ``equal_nan`` also where both are NaN.

    Example:
        >>> fnp.isclose([1.0, 1.1], 1.0000001)
        array([ True, False])
    """
    return prim.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _everywhere(x: Array) -> Any:
    """Whether every element is true: a Python bool, unless a vmap or JAX holds the answer back."""
    answer = reduce_all(x, axis=all_axes(len(shape_of(x))))
    return bool(answer) if type(answer) is np.bool_ else answer


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether ``isclose`` everywhere.

    Example:
        >>> fnp.allclose([1.0, 1.1], 1.0000001)
        False
    """
    return _everywhere(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Any:
    """Whether two arrays have the same shape and equal elements, with ``equal_nan`` NaN being equal to NaN.

    Example:
        >>> fnp.array_equal([1.0, 2.0], [1.0, 2.0])
        True
    """
    a1, a2 = as_value(a1), as_value(a2)
    if shape_of(a1) != shape_of(a2):
        return False
    same = prim.equal(a1, a2)
    if equal_nan:
        same = prim.logical_or(same, prim.logical_and(prim.isnan(a1), prim.isnan(a2)))
    return _everywhere(same)
