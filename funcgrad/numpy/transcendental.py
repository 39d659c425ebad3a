"""Exponentials, logarithms, circular and hyperbolic functions, and sinc.

All act element by element on real and, but for ``arctan2``, ``hypot``, ``logaddexp``, ``logaddexp2`` and the
changes of unit, on complex numbers; integers give floats. Those of two arguments broadcast and promote as NumPy's
do. With ``dtype`` the computation is done in that dtype.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

import numpy as np

from funcgrad.numpy.ufunc import ufunc
from funcgrad.primitives import elementwise as prim
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "logaddexp",
    "logaddexp2",
    "hypot",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "asin",
    "arccos",
    "acos",
    "arctan",
    "atan",
    "arctan2",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "asinh",
    "arccosh",
    "acosh",
    "arctanh",
    "atanh",
    "sinc",
    "deg2rad",
    "radians",
    "rad2deg",
    "degrees",
]


@ufunc(np.exp, prim.exp)
def exp(x: ArrayLike, /) -> Array:
    """``e**x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.exp([0.0, 1.0])
        array([1.        , 2.71828183])
    """


@ufunc(np.exp2, prim.exp2)
def exp2(x: ArrayLike, /) -> Array:
    """``2**x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.exp2([0.0, 3.0])
        array([1., 8.])
    """


@ufunc(np.expm1, prim.expm1)
def expm1(x: ArrayLike, /) -> Array:
    """``exp(x) - 1``, accurate for small ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.expm1(1e-10)
        np.float64(1.00000000005e-10)
    """


@ufunc(np.log, prim.log)
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm. The derivative at 0 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log([1.0, 10.0])
        array([0.        , 2.30258509])
    """


@ufunc(np.log2, prim.log2)
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2. The derivative at 0 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log2([1.0, 8.0])
        array([0., 3.])
    """


@ufunc(np.log10, prim.log10)
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10. The derivative at 0 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log10([1.0, 100.0])
        array([0., 2.])
    """


@ufunc(np.log1p, prim.log1p)
def log1p(x: ArrayLike, /) -> Array:
    """``log(1 + x)``, accurate for small ``x``. The derivative at -1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log1p(1e-10)
        np.float64(9.999999999500001e-11)
    """


@ufunc(np.logaddexp, prim.logaddexp)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``log(exp(x1) + exp(x2))`` without overflow.

    The derivatives are the shares of the two exponentials: 1 and 0 where ``x2`` is minus infinity, NaN where
    both are.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.logaddexp(1000.0, 1000.0)
        np.float64(1000.6931471805599)
    """


@ufunc(np.logaddexp2, prim.logaddexp2)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``log2(2**x1 + 2**x2)`` without overflow.

    The derivatives are the shares of the two powers: 1 and 0 where ``x2`` is minus infinity, NaN where
    both are.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.logaddexp2(1000.0, 1000.0)
        np.float64(1001.0)
    """


@ufunc(np.hypot, prim.hypot)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``sqrt(x1**2 + x2**2)`` without overflow. The derivatives at the origin are 1/2.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.hypot(3.0, 4.0)
        np.float64(5.0)
    """


@ufunc(np.sin, prim.sin)
def sin(x: ArrayLike, /) -> Array:
    """The sine of an angle in radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.sin([0.0, 1.0])
        array([0.        , 0.84147098])
    """


@ufunc(np.cos, prim.cos)
def cos(x: ArrayLike, /) -> Array:
    """The cosine of an angle in radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.cos([0.0, 1.0])
        array([1.        , 0.54030231])
    """


@ufunc(np.tan, prim.tan)
def tan(x: ArrayLike, /) -> Array:
    """The tangent of an angle in radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.tan([0.0, 1.0])
        array([0.        , 1.55740772])
    """


@ufunc(np.arcsin, prim.arcsin)
def arcsin(x: ArrayLike, /) -> Array:
    """The inverse sine. The derivative at -1 and 1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arcsin([0.0, 1.0])
        array([0.        , 1.57079633])
    """


asin = arcsin


@ufunc(np.arccos, prim.arccos)
def arccos(x: ArrayLike, /) -> Array:
    """The inverse cosine. The derivative at -1 and 1 is minus infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arccos([0.0, 1.0])
        array([1.57079633, 0.        ])
    """


acos = arccos


@ufunc(np.arctan, prim.arctan)
def arctan(x: ArrayLike, /) -> Array:
    """The inverse tangent.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arctan([0.0, 1.0])
        array([0.        , 0.78539816])
    """


atan = arctan


@ufunc(np.arctan2, prim.arctan2)
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (``x2``, ``x1``), from -pi to pi. The derivatives at the origin are NaN.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arctan2(1.0, -1.0)
        np.float64(2.356194490192345)
    """


atan2 = arctan2


@ufunc(np.sinh, prim.sinh)
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.sinh([0.0, 1.0])
        array([0.        , 1.17520119])
    """


@ufunc(np.cosh, prim.cosh)
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.cosh([0.0, 1.0])
        array([1.        , 1.54308063])
    """


@ufunc(np.tanh, prim.tanh)
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.tanh([0.0, 1.0])
        array([0.        , 0.76159416])
    """


@ufunc(np.arcsinh, prim.arcsinh)
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic sine.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arcsinh([0.0, 1.0])
        array([0.        , 0.88137359])
    """


asinh = arcsinh


@ufunc(np.arccosh, prim.arccosh)
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic cosine. The derivative at 1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arccosh([1.0, 2.0])
        array([0.       , 1.3169579])
    """


acosh = arccosh


@ufunc(np.arctanh, prim.arctanh)
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse hyperbolic tangent. The derivative at -1 and 1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arctanh([0.0, 0.5])
        array([0.        , 0.54930614])
    """


atanh = arctanh


def sinc(x: ArrayLike) -> Array:
    """``sin(pi x) / (pi x)``, and 1 at 0. The derivatives at 0 are exact, to any order.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.sinc([0.0, 0.5])
        array([1.        , 0.63661977])
    """
    return prim.sinc(x, order=0)


@ufunc(np.deg2rad, prim.deg2rad)
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.deg2rad(180.0)
        np.float64(3.141592653589793)
    """


@ufunc(np.radians, prim.radians)
def radians(x: ArrayLike, /) -> Array:
    """Degrees as radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.radians(180.0)
        np.float64(3.141592653589793)
    """


@ufunc(np.rad2deg, prim.rad2deg)
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.rad2deg(3.0)
        np.float64(171.88733853924697)
    """


@ufunc(np.degrees, prim.degrees)
def degrees(x: ArrayLike, /) -> Array:
    """Radians as degrees.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.degrees(3.0)
        np.float64(171.88733853924697)
    """
