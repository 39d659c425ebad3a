"""Rounding, the neighbours of a float, bits and integers, element by element.

No derivative passes through any of them: of rounding it is 0 where there is one, of integers there is none.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy.output import into
from funcgrad.numpy.ufunc import ufunc
from funcgrad.primitives import comparison as prim
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "floor",
    "ceil",
    "trunc",
    "fix",
    "rint",
    "round",
    "around",
    "spacing",
    "nextafter",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_count",
    "invert",
    "bitwise_not",
    "bitwise_invert",
    "left_shift",
    "bitwise_left_shift",
    "right_shift",
    "bitwise_right_shift",
    "gcd",
    "lcm",
]


@ufunc(np.floor, prim.floor)
def floor(x: ArrayLike, /) -> Array:
    """The largest whole number not above ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.floor([1.5, -1.5])
        array([ 1., -2.])
    """


@ufunc(np.ceil, prim.ceil)
def ceil(x: ArrayLike, /) -> Array:
    """The smallest whole number not below ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.ceil([1.5, -1.5])
        array([ 2., -1.])
    """


@ufunc(np.trunc, prim.trunc)
def trunc(x: ArrayLike, /) -> Array:
    """The nearest whole number towards 0.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.trunc([1.5, -1.5])
        array([ 1., -1.])
    """


def fix(x: ArrayLike, out: Any = None) -> Array:
    """The nearest whole number towards 0.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fix([1.5, -1.5])
        array([ 1., -1.])
    """
    return prim.fix(x) if out is None else into(fix, out, x)


@ufunc(np.rint, prim.rint)
def rint(x: ArrayLike, /) -> Array:
    """The nearest whole number, of two the even one.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.rint([0.5, 1.6])
        array([0., 2.])
    """


def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """``a`` rounded to so many decimals, of two to the even one; negative ``decimals`` round to tens, hundreds.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.round([0.125, 12.5], 2), fnp.round(12.5, -1)
        (array([ 0.12, 12.5 ]), np.float64(10.0))
    """
    return prim.round(a, decimals=decimals) if out is None else into(round, out, a, decimals)


around = round


@ufunc(np.spacing, prim.spacing)
def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next larger float, with the sign of ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.spacing(1.0)
        np.float64(2.220446049250313e-16)
    """


@ufunc(np.nextafter, prim.nextafter)
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The next float after ``x1`` in the direction of ``x2``, taken for a constant.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.nextafter(1.0, 2.0)
        np.float64(1.0000000000000002)
    """


@ufunc(np.bitwise_and, prim.bitwise_and)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits set in both integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_and([5, 6], 3)
        array([1, 2])
    """


@ufunc(np.bitwise_or, prim.bitwise_or)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits set in one of the integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_or([5, 6], 3)
        array([7, 7])
    """


@ufunc(np.bitwise_xor, prim.bitwise_xor)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits set in exactly one of the integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_xor([5, 6], 3)
        array([6, 5])
    """


@ufunc(np.bitwise_count, prim.bitwise_count)
def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits are set in the absolute value of an integer.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_count([5, 8])
        array([2, 1], dtype=uint8)
    """


@ufunc(np.invert, prim.invert)
def invert(x: ArrayLike, /) -> Array:
    """The integer with every bit inverted; ``not`` of booleans.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.invert([5, -1])
        array([-6,  0])
    """


bitwise_not = invert
bitwise_invert = invert


@ufunc(np.left_shift, prim.left_shift)
def left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 * 2**x2`` of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.left_shift([1, 3], 2)
        array([ 4, 12])
    """


bitwise_left_shift = left_shift


@ufunc(np.right_shift, prim.right_shift)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 // 2**x2`` of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.right_shift([4, 9], 2)
        array([1, 2])
    """


bitwise_right_shift = right_shift


@ufunc(np.gcd, prim.gcd)
def gcd(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greatest common divisor of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.gcd([12, 18], 8)
        array([4, 2])
    """


@ufunc(np.lcm, prim.lcm)
def lcm(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The least common multiple of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.lcm([4, 6], 10)
        array([20, 30])
    """
