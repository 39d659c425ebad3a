"""Arithmetic, powers, remainders and parts of numbers.

Arguments broadcast against each other and promote as NumPy's do. With ``dtype`` the computation is done
in that dtype. The derivative of ``|x|`` at 0 is 1, as JAX has it.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

import numpy as np

from funcgrad.backend import dtype_of, library_of
from funcgrad.core import Tracer
from funcgrad.kinds.linear import conj as conjugated
from funcgrad.kinds.linear import imag as imaginary_part
from funcgrad.kinds.linear import real as real_part
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.ufunc import Table, ufunc
from funcgrad.primitives import arithmetic as prim
from funcgrad.primitives import comparison, elementwise
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import locked
from funcgrad.writable import is_number

__all__ = [
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "positive", "reciprocal", "power", "pow",
    "float_power", "square", "sqrt", "cbrt", "absolute", "abs", "fabs", "sign", "copysign", "heaviside", "remainder",
    "mod", "fmod", "floor_divide", "divmod", "modf", "frexp", "ldexp", "conj", "conjugate", "real", "imag", "angle",
]  # fmt: skip

table = Table(__name__)

# fmt: off
add = table.binary(np.add, prim.add, "The sum.", "fnp.add([1.0, 2.0], 3.0)", "array([4., 5.])")
subtract = table.binary(np.subtract, prim.subtract, "The difference ``x1 - x2``.", "fnp.subtract([1.0, 2.0], 3.0)",
    "array([-2., -1.])")
multiply = table.binary(np.multiply, prim.multiply, "The product.", "fnp.multiply([1.0, 2.0], 3.0)", "array([3., 6.])")
divide = table.binary(np.divide, prim.divide, "The quotient ``x1 / x2``.", "fnp.divide([1.0, 2.0], 4.0)",
    "array([0.25, 0.5 ])")
true_divide = divide
negative = table.unary(np.negative, prim.negative, "``-x``.", "fnp.negative([1.0, -2.0])", "array([-1.,  2.])")
positive = table.unary(np.positive, prim.positive, "``+x``: a copy of ``x``.", "fnp.positive([1.0, -2.0])",
    "array([ 1., -2.])")
reciprocal = table.unary(np.reciprocal, prim.reciprocal, "``1 / x``. The derivative at 0 is minus infinity.",
    "fnp.reciprocal([2.0, 4.0])", "array([0.5 , 0.25])")
power = table.binary(np.power, prim.power, """``x1`` to the power ``x2``.

    Where ``x2`` is 0 the derivative in ``x1`` is 0, at 0 too. At ``x1`` = 0 the derivative in ``x2`` is 0
    where ``x2`` is positive and NaN elsewhere; where ``x1`` is negative it is NaN.

    Raises:
        ValueError: an integer to a negative integer power.""", "fnp.power([1.0, 2.0, 3.0], 2)", "array([1., 4., 9.])")
pow = power
square = table.unary(np.square, prim.square, "``x * x``.", "fnp.square([1.0, -2.0])", "array([1., 4.])")
sqrt = table.unary(np.sqrt, elementwise.sqrt, "The square root. The derivative at 0 is infinity.",
    "fnp.sqrt([4.0, 9.0])", "array([2., 3.])")
cbrt = table.unary(np.cbrt, prim.cbrt, "The cube root. The derivative at 0 is infinity.", "fnp.cbrt([1.0, -8.0])",
    "array([ 1., -2.])")
absolute = table.unary(np.absolute, prim.absolute, """The absolute value, of complex numbers too.

    The derivative at 0 is 1 for real numbers (and the second one 0); for complex numbers it is 0.""",
    "fnp.absolute([-1.5, 3 + 4j])", "array([1.5, 5. ])")
abs = absolute
fabs = table.unary(np.fabs, prim.fabs, """The absolute value of real numbers, as floats. The derivative at 0 is 1.

    Raises:
        TypeError: complex numbers.""", "fnp.fabs([-1, 2])", "array([1., 2.])")
copysign = table.binary(np.copysign, prim.copysign, """``x1`` with the sign of ``x2``.

    The derivative in ``x1`` at 0 is that of the absolute value, 1, with the sign of ``x2``; in ``x2`` it
    is 0 everywhere.

    Raises:
        TypeError: complex numbers.""", "fnp.copysign([1.0, -2.0], -3.0)", "array([-1., -2.])")
heaviside = table.binary(np.heaviside, prim.heaviside,
    """0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0.

    The derivative in ``x1`` is 0 everywhere; in ``x2`` it is 1 where ``x1`` is 0.

    Raises:
        TypeError: complex numbers.""", "fnp.heaviside([-1.0, 0.0, 1.0], 0.5)", "array([0. , 0.5, 1. ])")
remainder = table.binary(np.remainder, prim.remainder,
    """What is left of ``x1`` after division by ``x2``, with the sign of ``x2``, as Python's ``%``.

    The derivative in ``x1`` is 1 and in ``x2`` ``-floor_divide(x1, x2)``, at the jumps too.

    Raises:
        TypeError: complex numbers.""", "fnp.remainder([7.0, -7.0], 3.0)", "array([1., 2.])")
mod = remainder
fmod = table.binary(np.fmod, prim.fmod,
    """What is left of ``x1`` after division by ``x2``, with the sign of ``x1``, as C's ``fmod``.

    The derivative in ``x1`` is 1 and in ``x2`` ``-trunc(x1 / x2)``, at the jumps too.

    Raises:
        TypeError: complex numbers.""", "fnp.fmod([7.0, -7.0], 3.0)", "array([ 1., -1.])")
floor_divide = table.binary(np.floor_divide, comparison.floor_divide,
    """The largest whole number not above ``x1 / x2``. Its derivative is 0.

    Raises:
        TypeError: complex numbers.""", "fnp.floor_divide([7.0, -7.0], 3.0)", "array([ 2., -3.])")
ldexp = table.binary(np.ldexp, prim.ldexp, """``x1 * 2**x2`` for integers ``x2``.

    Raises:
        TypeError: ``x2`` is not of an integer dtype.""", "fnp.ldexp([0.75, -0.5], [3, 0])", "array([ 6. , -0.5])")
conj = table.unary(np.conj, conjugated,
    "The complex conjugate. Cotangents are conjugated too: a pullback is the plain transpose.",
    "fnp.conj([1 + 2j, 3.0])", "array([1.-2.j, 3.-0.j])", name="conj")
conjugate = conj
# fmt: on


@ufunc(np.float_power)
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``power``, computed in double precision at least. Integers may have negative powers.

    Example:
        >>> fnp.float_power([1, 2], -2)
        array([1.  , 0.25])
    """
    x1, x2 = as_value(x1), as_value(x2)
    if library_of(x1) is np and library_of(x2) is np:
        wide = np.result_type(np.result_type(dtype_of(x1), np.float64), dtype_of(x2))  # all three: not with bfloat16
        x1, x2 = astype(x1, wide), astype(x2, wide)
    return prim.float_power(x1, x2)


@ufunc(np.sign)
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 by the sign of ``x``; of complex numbers ``x / abs(x)``.

    The derivative for real numbers is 0 everywhere. For complex numbers it is not, except at 0.

    Example:
        >>> fnp.sign([-2.0, 0.0, 3.0])
        array([-1.,  0.,  1.])
    """
    if isinstance(x, Tracer) and x.dtype.kind == "c":
        return prim.unit(x)
    return comparison.sign(x)


@ufunc(np.divmod)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """``(floor_divide(x1, x2), remainder(x1, x2))``.

    Example:
        >>> fnp.divmod(7.0, 3.0)
        (np.float64(2.0), np.float64(1.0))
    """
    return comparison.floor_divide(x1, x2), prim.remainder(x1, x2)


@ufunc(np.modf)
def modf(x: ArrayLike, /) -> tuple[Array, Array]:
    """The fractional and the integral part, both with the sign of ``x``.

    The derivative of the first is 1, at whole numbers too; of the second 0.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> fnp.modf([1.5, -0.25])
        (array([ 0.5 , -0.25]), array([ 1., -0.]))
    """
    return prim.fractional(x), comparison.integral(x)


@ufunc(np.frexp)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """The mantissa, from 0.5 to 1 in size, and the exponent of 2, an integer, which has no derivative.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> fnp.frexp([6.0, -0.5])
        (array([ 0.75, -0.5 ]), array([3, 0], dtype=int32))
    """
    return prim.mantissa(x), comparison.exponent(x)


def real(val: ArrayLike) -> Array:
    """The real part.

    Example:
        >>> fnp.real([1 + 2j, 3.0])
        array([1., 3.])
    """
    val = as_value(val)
    return real_part(val) if dtype_of(val).kind == "c" or not isinstance(val, Tracer) else val


def imag(val: ArrayLike) -> Array:
    """The imaginary part; of real numbers 0.

    Example:
        >>> fnp.imag([1 + 2j, 3.0])
        array([2., 0.])
    """
    val = as_value(val)
    made = imaginary_part(val)
    if dtype_of(val).kind == "c" or (isinstance(val, Tracer) and is_number(val)):
        return made
    return locked(made)  # as the zeros are that NumPy gives for an array


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers in radians, or in degrees with ``deg=True``.

    The derivative at 0 is NaN; for real numbers, where the angle is 0 or pi, it is 0.

    Example:
        >>> fnp.angle([1.0, 1j], deg=True)
        array([ 0., 90.])
    """
    z = as_value(z)
    if dtype_of(z).kind == "c":
        found = elementwise.arctan2(imaginary_part(z), real_part(z))
    else:
        found = comparison.angle_of_real(z)
    return found * elementwise.RADIAN if deg else found
