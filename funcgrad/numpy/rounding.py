"""Rounding, the neighbours of a float, bits and integers, element by element.

No derivative passes through any of them: of rounding it is 0 where there is one, of integers there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy.casting import cast
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


def floor(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The largest whole number not above ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.floor([1.5, -1.5])
        array([ 1., -2.])
    """
    return prim.floor(x) if dtype is None else prim.floor(*cast(np.floor, dtype, x))


def ceil(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The smallest whole number not below ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.ceil([1.5, -1.5])
        array([ 2., -1.])
    """
    return prim.ceil(x) if dtype is None else prim.ceil(*cast(np.ceil, dtype, x))


def trunc(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The nearest whole number towards 0.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.trunc([1.5, -1.5])
        array([ 1., -1.])
    """
    return prim.trunc(x) if dtype is None else prim.trunc(*cast(np.trunc, dtype, x))


def fix(x: ArrayLike) -> Array:
    """The nearest whole number towards 0.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fix([1.5, -1.5])
        array([ 1., -1.])
    """
    return prim.fix(x)


def rint(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The nearest whole number, of two the even one.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.rint([0.5, 1.6])
        array([0., 2.])
    """
    return prim.rint(x) if dtype is None else prim.rint(*cast(np.rint, dtype, x))


def round(a: ArrayLike, decimals: int = 0) -> Array:
    """``a`` rounded to so many decimals, of two to the even one; negative ``decimals`` round to tens, hundreds.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.round([0.125, 12.5], 2), fnp.round(12.5, -1)
        (array([ 0.12, 12.5 ]), np.float64(10.0))
    """
    return prim.round(a, decimals=decimals)


around = round


def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next larger float, with the sign of ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.spacing(1.0)
        np.float64(2.220446049250313e-16)
    """
    return prim.spacing(x)


def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The next float after ``x1`` in the direction of ``x2``, taken for a constant.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.nextafter(1.0, 2.0)
        np.float64(1.0000000000000002)
    """
    return prim.nextafter(x1, x2)


def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits set in both integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_and([5, 6], 3)
        array([1, 2])
    """
    return prim.bitwise_and(x1, x2)


def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits set in one of the integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_or([5, 6], 3)
        array([7, 7])
    """
    return prim.bitwise_or(x1, x2)


def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits set in exactly one of the integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_xor([5, 6], 3)
        array([6, 5])
    """
    return prim.bitwise_xor(x1, x2)


def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits are set in the absolute value of an integer.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.bitwise_count([5, 8])
        array([2, 1], dtype=uint8)
    """
    return prim.bitwise_count(x)


def invert(x: ArrayLike, /) -> Array:
    """The integer with every bit inverted; ``not`` of booleans.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.invert([5, -1])
        array([-6,  0])
    """
    return prim.invert(x)


bitwise_not = invert
bitwise_invert = invert


def left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 * 2**x2`` of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.left_shift([1, 3], 2)
        array([ 4, 12])
    """
    return prim.left_shift(x1, x2)


bitwise_left_shift = left_shift


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 // 2**x2`` of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.right_shift([4, 9], 2)
        array([1, 2])
    """
    return prim.right_shift(x1, x2)


bitwise_right_shift = right_shift


def gcd(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greatest common divisor of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.gcd([12, 18], 8)
        array([4, 2])
    """
    return prim.gcd(x1, x2)


def lcm(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The least common multiple of integers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.lcm([4, 6], 10)
        array([20, 30])
    """
    return prim.lcm(x1, x2)
