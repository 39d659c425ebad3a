"""Exponentials, logarithms, circular and hyperbolic functions, and sinc.

All act element by element on real and, but for ``arctan2``, ``hypot``, ``logaddexp``, ``logaddexp2`` and the
changes of unit, on complex numbers; integers give floats. Those of two arguments broadcast and promote as NumPy's
do. With ``dtype`` the computation is done in that dtype.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.ufunc import Table
from funcgrad.primitives import elementwise as prim
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "hypot", "sin", "cos", "tan",
    "arcsin", "asin", "arccos", "acos", "arctan", "atan", "arctan2", "atan2", "sinh", "cosh", "tanh", "arcsinh",
    "asinh", "arccosh", "acosh", "arctanh", "atanh", "sinc", "deg2rad", "radians", "rad2deg", "degrees",
]  # fmt: skip

table = Table(__name__)

# fmt: off
exp = table.unary(np.exp, prim.exp, "``e**x``.", "fnp.exp([0.0, 1.0])", "array([1.        , 2.71828183])")
exp2 = table.unary(np.exp2, prim.exp2, "``2**x``.", "fnp.exp2([0.0, 3.0])", "array([1., 8.])")
expm1 = table.unary(np.expm1, prim.expm1, "``exp(x) - 1``, accurate for small ``x``.", "fnp.expm1(1e-10)",
    "np.float64(1.00000000005e-10)")
log = table.unary(np.log, prim.log, "The natural logarithm. The derivative at 0 is infinity.", "fnp.log([1.0, 10.0])",
    "array([0.        , 2.30258509])")
log2 = table.unary(np.log2, prim.log2, "The logarithm to base 2. The derivative at 0 is infinity.",
    "fnp.log2([1.0, 8.0])", "array([0., 3.])")
log10 = table.unary(np.log10, prim.log10, "The logarithm to base 10. The derivative at 0 is infinity.",
    "fnp.log10([1.0, 100.0])", "array([0., 2.])")
log1p = table.unary(np.log1p, prim.log1p, "``log(1 + x)``, accurate for small ``x``. The derivative at -1 is infinity.",
    "fnp.log1p(1e-10)", "np.float64(9.999999999500001e-11)")
logaddexp = table.binary(np.logaddexp, prim.logaddexp, """``log(exp(x1) + exp(x2))`` without overflow.

    The derivatives are the shares of the two exponentials: 1 and 0 where ``x2`` is minus infinity, NaN where
    both are.""", "fnp.logaddexp(1000.0, 1000.0)", "np.float64(1000.6931471805599)")
logaddexp2 = table.binary(np.logaddexp2, prim.logaddexp2, """``log2(2**x1 + 2**x2)`` without overflow.

    The derivatives are the shares of the two powers: 1 and 0 where ``x2`` is minus infinity, NaN where
    both are.""", "fnp.logaddexp2(1000.0, 1000.0)", "np.float64(1001.0)")
hypot = table.binary(np.hypot, prim.hypot,
    "``sqrt(x1**2 + x2**2)`` without overflow. The derivatives at the origin are 1/2.", "fnp.hypot(3.0, 4.0)",
    "np.float64(5.0)")
sin = table.unary(np.sin, prim.sin, "The sine of an angle in radians.", "fnp.sin([0.0, 1.0])",
    "array([0.        , 0.84147098])")
cos = table.unary(np.cos, prim.cos, "The cosine of an angle in radians.", "fnp.cos([0.0, 1.0])",
    "array([1.        , 0.54030231])")
tan = table.unary(np.tan, prim.tan, "The tangent of an angle in radians.", "fnp.tan([0.0, 1.0])",
    "array([0.        , 1.55740772])")
arcsin = table.unary(np.arcsin, prim.arcsin, "The inverse sine. The derivative at -1 and 1 is infinity.",
    "fnp.arcsin([0.0, 1.0])", "array([0.        , 1.57079633])")
asin = arcsin
arccos = table.unary(np.arccos, prim.arccos, "The inverse cosine. The derivative at -1 and 1 is minus infinity.",
    "fnp.arccos([0.0, 1.0])", "array([1.57079633, 0.        ])")
acos = arccos
arctan = table.unary(np.arctan, prim.arctan, "The inverse tangent.", "fnp.arctan([0.0, 1.0])",
    "array([0.        , 0.78539816])")
atan = arctan
arctan2 = table.binary(np.arctan2, prim.arctan2,
    "The angle of the point (``x2``, ``x1``), from -pi to pi. The derivatives at the origin are NaN.",
    "fnp.arctan2(1.0, -1.0)", "np.float64(2.356194490192345)")
atan2 = arctan2
sinh = table.unary(np.sinh, prim.sinh, "The hyperbolic sine.", "fnp.sinh([0.0, 1.0])",
    "array([0.        , 1.17520119])")
cosh = table.unary(np.cosh, prim.cosh, "The hyperbolic cosine.", "fnp.cosh([0.0, 1.0])",
    "array([1.        , 1.54308063])")
tanh = table.unary(np.tanh, prim.tanh, "The hyperbolic tangent.", "fnp.tanh([0.0, 1.0])",
    "array([0.        , 0.76159416])")
arcsinh = table.unary(np.arcsinh, prim.arcsinh, "The inverse hyperbolic sine.", "fnp.arcsinh([0.0, 1.0])",
    "array([0.        , 0.88137359])")
asinh = arcsinh
arccosh = table.unary(np.arccosh, prim.arccosh, "The inverse hyperbolic cosine. The derivative at 1 is infinity.",
    "fnp.arccosh([1.0, 2.0])", "array([0.       , 1.3169579])")
acosh = arccosh
arctanh = table.unary(np.arctanh, prim.arctanh,
    "The inverse hyperbolic tangent. The derivative at -1 and 1 is infinity.", "fnp.arctanh([0.0, 0.5])",
    "array([0.        , 0.54930614])")
atanh = arctanh
deg2rad = table.unary(np.deg2rad, prim.deg2rad, "Degrees as radians.", "fnp.deg2rad(180.0)",
    "np.float64(3.141592653589793)")
radians = table.unary(np.radians, prim.radians, "Degrees as radians.", "fnp.radians(180.0)",
    "np.float64(3.141592653589793)")
rad2deg = table.unary(np.rad2deg, prim.rad2deg, "Radians as degrees.", "fnp.rad2deg(3.0)",
    "np.float64(171.88733853924697)")
degrees = table.unary(np.degrees, prim.degrees, "Radians as degrees.", "fnp.degrees(3.0)",
    "np.float64(171.88733853924697)")
# fmt: on


def sinc(x: ArrayLike) -> Array:
    """``sin(pi x) / (pi x)``, and 1 at 0. The derivatives at 0 are exact, to any order.

    Example:
        >>> fnp.sinc([0.0, 0.5])
        array([1.        , 0.63661977])
    """
    return prim.sinc(x, order=0)
