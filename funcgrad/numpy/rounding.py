"""Rounding, the neighbours of a float, bits and integers, element by element.

No derivative passes through any of them: of rounding it is 0 where there is one, of integers there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy.output import into
from funcgrad.numpy.ufunc import Table
from funcgrad.primitives import comparison as prim
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "floor", "ceil", "trunc", "fix", "rint", "round", "around", "spacing", "nextafter", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_count", "invert", "bitwise_not", "bitwise_invert", "left_shift", "bitwise_left_shift",
    "right_shift", "bitwise_right_shift", "gcd", "lcm",
]  # fmt: skip

table = Table(__name__)

# fmt: off
floor = table.unary(np.floor, prim.floor, "The largest whole number not above ``x``.", "fnp.floor([1.5, -1.5])",
    "array([ 1., -2.])")
ceil = table.unary(np.ceil, prim.ceil, "The smallest whole number not below ``x``.", "fnp.ceil([1.5, -1.5])",
    "array([ 2., -1.])")
trunc = table.unary(np.trunc, prim.trunc, "The nearest whole number towards 0.", "fnp.trunc([1.5, -1.5])",
    "array([ 1., -1.])")
rint = table.unary(np.rint, prim.rint, "The nearest whole number, of two the even one.", "fnp.rint([0.5, 1.6])",
    "array([0., 2.])")
spacing = table.unary(np.spacing, prim.spacing, "The distance to the next larger float, with the sign of ``x``.",
    "fnp.spacing(1.0)", "np.float64(2.220446049250313e-16)")
nextafter = table.binary(np.nextafter, prim.nextafter,
    "The next float after ``x1`` in the direction of ``x2``, taken for a constant.", "fnp.nextafter(1.0, 2.0)",
    "np.float64(1.0000000000000002)")
bitwise_and = table.binary(np.bitwise_and, prim.bitwise_and, "The bits set in both integers.",
    "fnp.bitwise_and([5, 6], 3)", "array([1, 2])")
bitwise_or = table.binary(np.bitwise_or, prim.bitwise_or, "The bits set in one of the integers.",
    "fnp.bitwise_or([5, 6], 3)", "array([7, 7])")
bitwise_xor = table.binary(np.bitwise_xor, prim.bitwise_xor, "The bits set in exactly one of the integers.",
    "fnp.bitwise_xor([5, 6], 3)", "array([6, 5])")
bitwise_count = table.unary(np.bitwise_count, prim.bitwise_count,
    "How many bits are set in the absolute value of an integer.", "fnp.bitwise_count([5, 8])",
    "array([2, 1], dtype=uint8)")
invert = table.unary(np.invert, prim.invert, "The integer with every bit inverted; ``not`` of booleans.",
    "fnp.invert([5, -1])", "array([-6,  0])")
bitwise_not = invert
bitwise_invert = invert
left_shift = table.binary(np.left_shift, prim.left_shift, "``x1 * 2**x2`` of integers.", "fnp.left_shift([1, 3], 2)",
    "array([ 4, 12])")
bitwise_left_shift = left_shift
right_shift = table.binary(np.right_shift, prim.right_shift, "``x1 // 2**x2`` of integers.",
    "fnp.right_shift([4, 9], 2)", "array([1, 2])")
bitwise_right_shift = right_shift
gcd = table.binary(np.gcd, prim.gcd, "The greatest common divisor of integers.", "fnp.gcd([12, 18], 8)",
    "array([4, 2])")
lcm = table.binary(np.lcm, prim.lcm, "The least common multiple of integers.", "fnp.lcm([4, 6], 10)", "array([20, 30])")
# fmt: on


def fix(x: ArrayLike, out: Any = None) -> Array:
    """The nearest whole number towards 0.

    Example:
        >>> fnp.fix([1.5, -1.5])
        array([ 1., -1.])
    """
    return prim.fix(x) if out is None else into(fix, out, x)


def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """``a`` rounded to so many decimals, of two to the even one; negative ``decimals`` round to tens, hundreds.

    Example:
        >>> fnp.round([0.125, 12.5], 2), fnp.round(12.5, -1)
        (array([ 0.12, 12.5 ]), np.float64(10.0))
    """
    return prim.round(a, decimals=decimals) if out is None else into(round, out, a, decimals)


around = round
