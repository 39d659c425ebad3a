"""Elementwise functions: arithmetic, powers, exponentials, angles, rounding, bits, comparisons, logic.

Arguments broadcast and promote as in NumPy. ``dtype`` sets the dtype of the computation. The derivative of ``|x|``
at 0 is 1, as in JAX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.backend import dtype_of, is_sequence, library_of, shape_of
from funcgrad.core import Tracer
from funcgrad.kinds.linear import conj as conjugated
from funcgrad.kinds.linear import imag as imaginary_part
from funcgrad.kinds.linear import real as real_part
from funcgrad.numpy.axes import ALL_AXES
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.ufunc import Table, ufunc
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import arithmetic, comparison, elementwise
from funcgrad.primitives.reductions import reduce_all
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import make_read_only
from funcgrad.writable import is_number

__all__ = [
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "positive", "reciprocal", "power", "pow",
    "float_power", "square", "sqrt", "cbrt", "absolute", "abs", "fabs", "sign", "copysign", "heaviside", "remainder",
    "mod", "fmod", "floor_divide", "divmod", "modf", "frexp", "ldexp", "conj", "conjugate", "real", "imag", "angle",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "hypot", "sin", "cos", "tan",
    "arcsin", "asin", "arccos", "acos", "arctan", "atan", "arctan2", "atan2", "sinh", "cosh", "tanh", "arcsinh",
    "asinh", "arccosh", "acosh", "arctanh", "atanh", "sinc", "deg2rad", "radians", "rad2deg", "degrees", "floor",
    "ceil", "trunc", "fix", "rint", "round", "around", "spacing", "nextafter", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_count", "invert", "bitwise_not", "bitwise_invert", "left_shift", "bitwise_left_shift",
    "right_shift", "bitwise_right_shift", "gcd", "lcm", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite",
    "isneginf", "isposinf", "isreal", "iscomplex", "signbit", "isclose", "allclose", "array_equal",
]  # fmt: skip


table = Table(__name__)

# fmt: off
add = table.binary(np.add, arithmetic.add, "The sum ``x1 + x2``.", "fnp.add([1.0, 2.0], 3.0)", "array([4., 5.])")
subtract = table.binary(np.subtract, arithmetic.subtract, "The difference ``x1 - x2``.",
    "fnp.subtract([1.0, 2.0], 3.0)", "array([-2., -1.])")
multiply = table.binary(np.multiply, arithmetic.multiply, "The product ``x1 * x2``.",
    "fnp.multiply([1.0, 2.0], 3.0)", "array([3., 6.])")
divide = table.binary(np.divide, arithmetic.divide, "The quotient ``x1 / x2``.", "fnp.divide([1.0, 2.0], 4.0)",
    "array([0.25, 0.5 ])")
true_divide = divide
negative = table.unary(np.negative, arithmetic.negative, "The negative ``-x``.", "fnp.negative([1.0, -2.0])",
    "array([-1.,  2.])")
positive = table.unary(np.positive, arithmetic.positive, "A copy of ``x``, the result of ``+x``.",
    "fnp.positive([1.0, -2.0])", "array([ 1., -2.])")
reciprocal = table.unary(np.reciprocal, arithmetic.reciprocal,
    "The reciprocal ``1 / x``. The derivative at 0 is minus infinity.", "fnp.reciprocal([2.0, 4.0])",
    "array([0.5 , 0.25])")
power = table.binary(np.power, arithmetic.power, """The power ``x1**x2``.

    The derivative in ``x1`` is 0 where ``x2`` is 0, even if ``x1`` is 0. The derivative in ``x2`` is NaN for negative
    ``x1``; where ``x1`` is 0, it is 0 for positive ``x2`` and NaN otherwise.

    Raises:
        ValueError: an integer to a negative integer power.""", "fnp.power([1.0, 2.0, 3.0], 2)", "array([1., 4., 9.])")
pow = power
square = table.unary(np.square, arithmetic.square, "The square.", "fnp.square([1.0, -2.0])", "array([1., 4.])")
sqrt = table.unary(np.sqrt, elementwise.sqrt, "The square root. The derivative at 0 is infinity.",
    "fnp.sqrt([4.0, 9.0])", "array([2., 3.])")
cbrt = table.unary(np.cbrt, arithmetic.cbrt, "The cube root. The derivative at 0 is infinity.", "fnp.cbrt([1.0, -8.0])",
    "array([ 1., -2.])")
absolute = table.unary(np.absolute, arithmetic.absolute, """The absolute value of real or complex numbers.

    The derivative at 0 is 1 for real numbers (the second derivative is 0) and 0 for complex numbers.""",
    "fnp.absolute([-1.5, 3 + 4j])", "array([1.5, 5. ])")
abs = absolute
fabs = table.unary(np.fabs, arithmetic.fabs, """The absolute value of real numbers, as floats. The derivative at 0 is 1.

    Raises:
        TypeError: ``x`` is complex.""", "fnp.fabs([-1, 2])", "array([1., 2.])")
copysign = table.binary(np.copysign, arithmetic.copysign, """The absolute value of ``x1`` with the sign of ``x2``.

    The derivative in ``x1`` at 0 is 1 with the sign of ``x2``. The derivative in ``x2`` is 0 everywhere.

    Raises:
        TypeError: an argument is complex.""", "fnp.copysign([1.0, -2.0], -3.0)", "array([-1., -2.])")
heaviside = table.binary(np.heaviside, arithmetic.heaviside,
    """The Heaviside step function: 0 for negative ``x1``, 1 for positive ``x1``, and ``x2`` where ``x1`` is 0.

    The derivative in ``x1`` is 0 everywhere. The derivative in ``x2`` is 1 where ``x1`` is 0, and 0 elsewhere.

    Raises:
        TypeError: an argument is complex.""", "fnp.heaviside([-1.0, 0.0, 1.0], 0.5)", "array([0. , 0.5, 1. ])")
remainder = table.binary(np.remainder, arithmetic.remainder,
    """The remainder of the division ``x1 / x2``, with the sign of ``x2``, like Python's ``%``.

    The derivatives in ``x1`` and ``x2`` are 1 and ``-floor_divide(x1, x2)``, at the jumps too.

    Raises:
        TypeError: an argument is complex.""", "fnp.remainder([7.0, -7.0], 3.0)", "array([1., 2.])")
mod = remainder
fmod = table.binary(np.fmod, arithmetic.fmod,
    """The remainder of the division ``x1 / x2``, with the sign of ``x1``, like C's ``fmod``.

    The derivatives in ``x1`` and ``x2`` are 1 and ``-trunc(x1 / x2)``, at the jumps too.

    Raises:
        TypeError: an argument is complex.""", "fnp.fmod([7.0, -7.0], 3.0)", "array([ 1., -1.])")
floor_divide = table.binary(np.floor_divide, comparison.floor_divide,
    """The largest whole number not above ``x1 / x2``. Its derivative is 0.

    Raises:
        TypeError: an argument is complex.""", "fnp.floor_divide([7.0, -7.0], 3.0)", "array([ 2., -3.])")
ldexp = table.binary(np.ldexp, arithmetic.ldexp, """The product ``x1 * 2**x2`` for integers ``x2``.

    Raises:
        TypeError: the dtype of ``x2`` is not integer.""", "fnp.ldexp([0.75, -0.5], [3, 0])", "array([ 6. , -0.5])")
conj = table.unary(np.conj, conjugated,
    "The complex conjugate. Its VJP conjugates the cotangent: pullbacks are transposes without conjugation.",
    "fnp.conj([1 + 2j, 3.0])", "array([1.-2.j, 3.-0.j])", name="conj")
conjugate = conj
# fmt: on


@ufunc(np.float_power)
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``power`` in double precision at least. Integers may have negative powers.

    Example:
        >>> fnp.float_power([1, 2], -2)
        array([1.  , 0.25])
    """
    x1, x2 = as_value(x1), as_value(x2)
    if library_of(x1) is np and library_of(x2) is np:
        wide = np.result_type(np.result_type(dtype_of(x1), np.float64), dtype_of(x2))  # in one call bfloat16 fails
        x1, x2 = astype(x1, wide), astype(x2, wide)
    return arithmetic.float_power(x1, x2)


@ufunc(np.sign)
def sign(x: ArrayLike, /) -> Array:
    """Return -1, 0 or 1 by the sign of ``x``; for complex numbers return ``x / abs(x)``.

    The derivative for real numbers is 0 everywhere. For complex numbers the derivative is 0 only at 0 and for infinite
    ones.

    Example:
        >>> fnp.sign([-2.0, 0.0, 3.0])
        array([-1.,  0.,  1.])
    """
    x = as_value(x) if is_sequence(x) else x
    if isinstance(x, Tracer) and x.dtype.kind == "c":
        finite = comparison.isfinite(x)  # NumPy has numbers for infinite ones, and NaN for NaN
        return comparison.where(finite, arithmetic.unit(comparison.where(finite, x, 1)), comparison.sign(x))
    return comparison.sign(x)


@ufunc(np.divmod)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Compute ``(floor_divide(x1, x2), remainder(x1, x2))``.

    Example:
        >>> fnp.divmod(7.0, 3.0)
        (np.float64(2.0), np.float64(1.0))
    """
    x1, x2 = arithmetic.as_numpy_number(x1, x2), arithmetic.as_numpy_number(x2, x1)
    return comparison.floor_divide(x1, x2), arithmetic.remainder(x1, x2)


@ufunc(np.modf)
def modf(x: ArrayLike, /) -> tuple[Array, Array]:
    """Return the fractional and the integral part, both with the sign of ``x``.

    The derivative of the fractional part is 1, at whole numbers too; the derivative of the integral part is 0.

    Raises:
        TypeError: ``x`` is complex.

    Example:
        >>> fnp.modf([1.5, -0.25])
        (array([ 0.5 , -0.25]), array([ 1., -0.]))
    """
    return arithmetic.fractional(x), comparison.integral(x)


@ufunc(np.frexp)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Return the mantissa, of magnitude 0.5 to 1, and the exponent of 2, an integer without a derivative.

    Raises:
        TypeError: ``x`` is complex.

    Example:
        >>> fnp.frexp([6.0, -0.5])
        (array([ 0.75, -0.5 ]), array([3, 0], dtype=int32))
    """
    return arithmetic.mantissa(x), comparison.exponent(x)


def real(val: ArrayLike) -> Array:
    """Return the real part.

    Example:
        >>> fnp.real([1 + 2j, 3.0])
        array([1., 3.])
    """
    val = as_value(val)
    return real_part(val) if dtype_of(val).kind == "c" or not isinstance(val, Tracer) else val


def imag(val: ArrayLike) -> Array:
    """Return the imaginary part, which is 0 for real numbers.

    Example:
        >>> fnp.imag([1 + 2j, 3.0])
        array([2., 0.])
    """
    val = as_value(val)
    made = imaginary_part(val)
    if dtype_of(val).kind == "c" or (isinstance(val, Tracer) and is_number(val)):
        return made
    return make_read_only(made)  # the zeros that NumPy returns for a real array are read-only too


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the argument of complex numbers in radians, or in degrees with ``deg=True``.

    The derivative at 0 is NaN. For real numbers, whose angle is 0 or pi, the derivative is 0.

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


# fmt: off
exp = table.unary(np.exp, elementwise.exp, "The exponential.", "fnp.exp([0.0, 1.0])", "array([1.        , 2.71828183])")
exp2 = table.unary(np.exp2, elementwise.exp2, "The power ``2**x``.", "fnp.exp2([0.0, 3.0])", "array([1., 8.])")
expm1 = table.unary(np.expm1, elementwise.expm1, "The difference ``exp(x) - 1``, accurate for small ``x``.",
    "fnp.expm1(1e-10)", "np.float64(1.00000000005e-10)")
log = table.unary(np.log, elementwise.log, "The natural logarithm. The derivative at 0 is infinity.",
    "fnp.log([1.0, 10.0])", "array([0.        , 2.30258509])")
log2 = table.unary(np.log2, elementwise.log2, "The logarithm to base 2. The derivative at 0 is infinity.",
    "fnp.log2([1.0, 8.0])", "array([0., 3.])")
log10 = table.unary(np.log10, elementwise.log10, "The logarithm to base 10. The derivative at 0 is infinity.",
    "fnp.log10([1.0, 100.0])", "array([0., 2.])")
log1p = table.unary(np.log1p, elementwise.log1p,
    "The logarithm ``log(1 + x)``, accurate for small ``x``. The derivative at -1 is infinity.", "fnp.log1p(1e-10)",
    "np.float64(9.999999999500001e-11)")
logaddexp = table.binary(np.logaddexp, elementwise.logaddexp,
    """The logarithm of a sum of exponentials, ``log(exp(x1) + exp(x2))``, without overflow.

    The derivatives are the shares of the two exponentials in the sum: 1 and 0 if ``x2`` is minus infinity, both 0 if
    ``x1`` is too, as for ``logsumexp``.""", "fnp.logaddexp(1000.0, 1000.0)", "np.float64(1000.6931471805599)")
logaddexp2 = table.binary(np.logaddexp2, elementwise.logaddexp2,
    """The base-2 logarithm of a sum of powers, ``log2(2**x1 + 2**x2)``, without overflow.

    Its derivatives are those of ``logaddexp`` with powers of 2.""", "fnp.logaddexp2(1000.0, 1000.0)",
    "np.float64(1001.0)")
hypot = table.binary(np.hypot, elementwise.hypot,
    "The hypotenuse ``sqrt(x1**2 + x2**2)``, without overflow. The derivatives at the origin are 1/2.",
    "fnp.hypot(3.0, 4.0)", "np.float64(5.0)")
sin = table.unary(np.sin, elementwise.sin, "The sine of an angle in radians.", "fnp.sin([0.0, 1.0])",
    "array([0.        , 0.84147098])")
cos = table.unary(np.cos, elementwise.cos, "The cosine of an angle in radians.", "fnp.cos([0.0, 1.0])",
    "array([1.        , 0.54030231])")
tan = table.unary(np.tan, elementwise.tan, "The tangent of an angle in radians.", "fnp.tan([0.0, 1.0])",
    "array([0.        , 1.55740772])")
arcsin = table.unary(np.arcsin, elementwise.arcsin, "The inverse sine. The derivative at -1 and 1 is infinity.",
    "fnp.arcsin([0.0, 1.0])", "array([0.        , 1.57079633])")
asin = arcsin
arccos = table.unary(np.arccos, elementwise.arccos, "The inverse cosine. The derivative at -1 and 1 is minus infinity.",
    "fnp.arccos([0.0, 1.0])", "array([1.57079633, 0.        ])")
acos = arccos
arctan = table.unary(np.arctan, elementwise.arctan, "The inverse tangent.", "fnp.arctan([0.0, 1.0])",
    "array([0.        , 0.78539816])")
atan = arctan
arctan2 = table.binary(np.arctan2, elementwise.arctan2,
    "The angle of the point (``x2``, ``x1``), from -pi to pi. The derivatives at the origin are NaN.",
    "fnp.arctan2(1.0, -1.0)", "np.float64(2.356194490192345)")
atan2 = arctan2
sinh = table.unary(np.sinh, elementwise.sinh, "The hyperbolic sine.", "fnp.sinh([0.0, 1.0])",
    "array([0.        , 1.17520119])")
cosh = table.unary(np.cosh, elementwise.cosh, "The hyperbolic cosine.", "fnp.cosh([0.0, 1.0])",
    "array([1.        , 1.54308063])")
tanh = table.unary(np.tanh, elementwise.tanh, "The hyperbolic tangent.", "fnp.tanh([0.0, 1.0])",
    "array([0.        , 0.76159416])")
arcsinh = table.unary(np.arcsinh, elementwise.arcsinh, "The inverse hyperbolic sine.", "fnp.arcsinh([0.0, 1.0])",
    "array([0.        , 0.88137359])")
asinh = arcsinh
arccosh = table.unary(np.arccosh, elementwise.arccosh,
    "The inverse hyperbolic cosine. The derivative at 1 is infinity.", "fnp.arccosh([1.0, 2.0])",
    "array([0.       , 1.3169579])")
acosh = arccosh
arctanh = table.unary(np.arctanh, elementwise.arctanh,
    "The inverse hyperbolic tangent. The derivative at -1 and 1 is infinity.", "fnp.arctanh([0.0, 0.5])",
    "array([0.        , 0.54930614])")
atanh = arctanh
deg2rad = table.unary(np.deg2rad, elementwise.deg2rad, "The angle of ``x`` degrees in radians.", "fnp.deg2rad(180.0)",
    "np.float64(3.141592653589793)")
radians = table.unary(np.radians, elementwise.radians, "The angle of ``x`` degrees in radians.", "fnp.radians(180.0)",
    "np.float64(3.141592653589793)")
rad2deg = table.unary(np.rad2deg, elementwise.rad2deg, "The angle of ``x`` radians in degrees.", "fnp.rad2deg(3.0)",
    "np.float64(171.88733853924697)")
degrees = table.unary(np.degrees, elementwise.degrees, "The angle of ``x`` radians in degrees.", "fnp.degrees(3.0)",
    "np.float64(171.88733853924697)")
# fmt: on


def sinc(x: ArrayLike) -> Array:
    """Compute ``sin(pi x) / (pi x)``, which is 1 at 0. The derivatives at 0 are exact, to any order.

    Example:
        >>> fnp.sinc([0.0, 0.5])
        array([1.        , 0.63661977])
    """
    return elementwise.sinc(x, order=0)


# fmt: off
floor = table.unary(np.floor, comparison.floor, "The largest whole number not above ``x``.", "fnp.floor([1.5, -1.5])",
    "array([ 1., -2.])")
ceil = table.unary(np.ceil, comparison.ceil, "The smallest whole number not below ``x``.", "fnp.ceil([1.5, -1.5])",
    "array([ 2., -1.])")
trunc = table.unary(np.trunc, comparison.trunc, "The nearest whole number towards 0.", "fnp.trunc([1.5, -1.5])",
    "array([ 1., -1.])")
rint = table.unary(np.rint, comparison.rint, "The nearest whole number; ties go to the even one.",
    "fnp.rint([0.5, 1.6])", "array([0., 2.])")
spacing = table.unary(np.spacing, comparison.spacing, "The distance to the next larger float, with the sign of ``x``.",
    "fnp.spacing(1.0)", "np.float64(2.220446049250313e-16)")
nextafter = table.binary(np.nextafter, arithmetic.nextafter,
    "The next float after ``x1`` in the direction of ``x2``. Its derivatives are 1 and 0.", "fnp.nextafter(1.0, 2.0)",
    "np.float64(1.0000000000000002)")
bitwise_and = table.binary(np.bitwise_and, comparison.bitwise_and, "The bits set in both integers.",
    "fnp.bitwise_and([5, 6], 3)", "array([1, 2])")
bitwise_or = table.binary(np.bitwise_or, comparison.bitwise_or, "The bits set in at least one of the integers.",
    "fnp.bitwise_or([5, 6], 3)", "array([7, 7])")
bitwise_xor = table.binary(np.bitwise_xor, comparison.bitwise_xor, "The bits set in exactly one of the integers.",
    "fnp.bitwise_xor([5, 6], 3)", "array([6, 5])")
bitwise_count = table.unary(np.bitwise_count, comparison.bitwise_count,
    "The number of bits that are set in the absolute value of an integer.", "fnp.bitwise_count([5, 8])",
    "array([2, 1], dtype=uint8)")
invert = table.unary(np.invert, comparison.invert, "The integer with all bits inverted; for a boolean its negation.",
    "fnp.invert([5, -1])", "array([-6,  0])")
bitwise_not = invert
bitwise_invert = invert
left_shift = table.binary(np.left_shift, comparison.left_shift, "The product ``x1 * 2**x2`` of integers.",
    "fnp.left_shift([1, 3], 2)", "array([ 4, 12])")
bitwise_left_shift = left_shift
right_shift = table.binary(np.right_shift, comparison.right_shift, "The quotient ``x1 // 2**x2`` of integers.",
    "fnp.right_shift([4, 9], 2)", "array([1, 2])")
bitwise_right_shift = right_shift
gcd = table.binary(np.gcd, comparison.gcd, "The greatest common divisor of integers.", "fnp.gcd([12, 18], 8)",
    "array([4, 2])")
lcm = table.binary(np.lcm, comparison.lcm, "The least common multiple of integers.", "fnp.lcm([4, 6], 10)",
    "array([20, 30])")
# fmt: on


def fix(x: ArrayLike, out: Any = None) -> Array:
    """Round to the nearest whole number towards 0.

    Example:
        >>> fnp.fix([1.5, -1.5])
        array([ 1., -1.])
    """
    return comparison.fix(x) if out is None else compute_into(fix, out, x)


def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """Round ``a`` to ``decimals``, ties to even; negative ``decimals`` round to tens, hundreds, and so on.

    Example:
        >>> fnp.round([0.125, 12.5], 2), fnp.round(12.5, -1)
        (array([ 0.12, 12.5 ]), np.float64(10.0))
    """
    if out is not None:
        return compute_into(round, out, a, decimals)
    return comparison.round(arithmetic.as_numpy_number(a), decimals=decimals)


around = round


# fmt: off
equal = table.binary(np.equal, comparison.equal, "Whether ``x1`` is equal to ``x2``.", "fnp.equal([1.0, 2.0], 2.0)",
    "array([False,  True])")
not_equal = table.binary(np.not_equal, comparison.not_equal, "Whether ``x1`` differs from ``x2``.",
    "fnp.not_equal([1.0, 2.0], 2.0)", "array([ True, False])")
less = table.binary(np.less, comparison.less, "Whether ``x1`` is less than ``x2``.", "fnp.less([1.0, 2.0], 2.0)",
    "array([ True, False])")
less_equal = table.binary(np.less_equal, comparison.less_equal, "Whether ``x1`` is at most ``x2``.",
    "fnp.less_equal([1.0, 2.0], 2.0)", "array([ True,  True])")
greater = table.binary(np.greater, comparison.greater, "Whether ``x1`` is greater than ``x2``.",
    "fnp.greater([1.0, 3.0], 2.0)", "array([False,  True])")
greater_equal = table.binary(np.greater_equal, comparison.greater_equal, "Whether ``x1`` is at least ``x2``.",
    "fnp.greater_equal([1.0, 2.0], 2.0)", "array([False,  True])")
logical_and = table.binary(np.logical_and, comparison.logical_and, "Whether neither ``x1`` nor ``x2`` is 0.",
    "fnp.logical_and([0, 1], [1, 2])", "array([False,  True])")
logical_or = table.binary(np.logical_or, comparison.logical_or, "Whether ``x1`` or ``x2`` is not 0.",
    "fnp.logical_or([0, 1], [0, 2])", "array([False,  True])")
logical_xor = table.binary(np.logical_xor, comparison.logical_xor, "Whether exactly one of ``x1`` and ``x2`` is not 0.",
    "fnp.logical_xor([0, 1], [1, 2])", "array([ True, False])")
logical_not = table.unary(np.logical_not, comparison.logical_not, "Whether ``x`` is 0.", "fnp.logical_not([0.0, 1.0])",
    "array([ True, False])")
isnan = table.unary(np.isnan, comparison.isnan, "Whether ``x`` is NaN.", 'fnp.isnan([1.0, float("nan")])',
    "array([False,  True])")
isinf = table.unary(np.isinf, comparison.isinf, "Whether ``x`` is infinite.", 'fnp.isinf([1.0, -float("inf")])',
    "array([False,  True])")
isfinite = table.unary(np.isfinite, comparison.isfinite, "Whether ``x`` is neither infinite nor NaN.",
    'fnp.isfinite([1.0, float("nan")])', "array([ True, False])")
signbit = table.unary(np.signbit, comparison.signbit, "Whether the sign bit is set, as in negative numbers and -0.0.",
    "fnp.signbit([1.0, -0.0])", "array([False,  True])")
# fmt: on


def isneginf(x: ArrayLike, out: Any = None) -> Array:
    """Return where ``x`` is minus infinity.

    Example:
        >>> fnp.isneginf([1.0, -float("inf")])
        array([False,  True])
    """
    return comparison.isneginf(x) if out is None else compute_into(isneginf, out, x)


def isposinf(x: ArrayLike, out: Any = None) -> Array:
    """Return where ``x`` is plus infinity.

    Example:
        >>> fnp.isposinf([1.0, -float("inf")])
        array([False, False])
    """
    return comparison.isposinf(x) if out is None else compute_into(isposinf, out, x)


def isreal(x: ArrayLike) -> Array:
    """Return where the imaginary part is 0.

    Example:
        >>> fnp.isreal([1.0, 1j])
        array([ True, False])
    """
    return comparison.isreal(x)


def iscomplex(x: ArrayLike) -> Array:
    """Return where the imaginary part is not 0.

    Example:
        >>> fnp.iscomplex([1.0, 1j])
        array([False,  True])
    """
    return comparison.iscomplex(x)


def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Return where ``abs(a - b) <= atol + rtol * abs(b)`` holds, with ``equal_nan`` also where both are NaN.

    Example:
        >>> fnp.isclose([1.0, 1.1], 1.0000001)
        array([ True, False])
    """
    if is_plain(rtol, atol):
        return comparison.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    a, b = as_value(a), as_value(b)
    with np.errstate(invalid="ignore"):  # differences of infinities are invalid
        near = comparison.less_equal(arithmetic.absolute(a - b), atol + rtol * arithmetic.absolute(b))
    near = comparison.logical_or(comparison.logical_and(near, comparison.isfinite(b)), comparison.equal(a, b))
    missing = comparison.logical_and(comparison.isnan(a), comparison.isnan(b))
    return comparison.logical_or(near, missing) if equal_nan else near


def _everywhere(x: Array) -> Any:
    """Return whether every element is true, as a Python bool, unless the answer is a batch or abstract in JAX."""
    answer = reduce_all(x, axis=ALL_AXES[len(shape_of(x))])
    return bool(answer) if type(answer) is np.bool_ else answer


def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Return whether ``isclose`` holds everywhere.

    Example:
        >>> fnp.allclose([1.0, 1.1], 1.0000001)
        False
    """
    return _everywhere(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Any:
    """Return whether two arrays have the same shape and equal elements; with ``equal_nan``, NaN equals NaN.

    Example:
        >>> fnp.array_equal([1.0, 2.0], [1.0, 2.0])
        True
    """
    a1, a2 = as_value(a1), as_value(a2)
    if shape_of(a1) != shape_of(a2):
        return False
    same = comparison.equal(a1, a2)
    if equal_nan:
        same = comparison.logical_or(same, comparison.logical_and(comparison.isnan(a1), comparison.isnan(a2)))
    return _everywhere(same)
