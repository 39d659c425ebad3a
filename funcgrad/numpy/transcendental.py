"""Exponentials, logarithms, circular and hyperbolic functions, and sinc.

All act element by element on real and, but for ``arctan2``, ``hypot``, ``logaddexp``, ``logaddexp2`` and the
changes of unit, on complex numbers; integers give floats. Those of two arguments broadcast and promote as NumPy's
do. With ``dtype`` the computation is done in that dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy.casting import cast
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


def exp(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``e**x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.exp([0.0, 1.0])
        array([1.        , 2.71828183])
    """
    return prim.exp(x) if dtype is None else prim.exp(*cast(np.exp, dtype, x))


def exp2(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``2**x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.exp2([0.0, 3.0])
        array([1., 8.])
    """
    return prim.exp2(x) if dtype is None else prim.exp2(*cast(np.exp2, dtype, x))


def expm1(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``exp(x) - 1``, accurate for small ``x``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.expm1(1e-10)
        np.float64(1.00000000005e-10)
    """
    return prim.expm1(x) if dtype is None else prim.expm1(*cast(np.expm1, dtype, x))


def log(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The natural logarithm. The derivative at 0 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log([1.0, 10.0])
        array([0.        , 2.30258509])
    """
    return prim.log(x) if dtype is None else prim.log(*cast(np.log, dtype, x))


def log2(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The logarithm to base 2. The derivative at 0 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log2([1.0, 8.0])
        array([0., 3.])
    """
    return prim.log2(x) if dtype is None else prim.log2(*cast(np.log2, dtype, x))


def log10(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The logarithm to base 10. The derivative at 0 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log10([1.0, 100.0])
        array([0., 2.])
    """
    return prim.log10(x) if dtype is None else prim.log10(*cast(np.log10, dtype, x))


def log1p(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``log(1 + x)``, accurate for small ``x``. The derivative at -1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.log1p(1e-10)
        np.float64(9.999999999500001e-11)
    """
    return prim.log1p(x) if dtype is None else prim.log1p(*cast(np.log1p, dtype, x))


def logaddexp(x1: ArrayLike, x2: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``log(exp(x1) + exp(x2))`` without overflow.

    The derivatives are the shares of the two exponentials: 1 and 0 where ``x2`` is minus infinity, NaN where
    both are.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.logaddexp(1000.0, 1000.0)
        np.float64(1000.6931471805599)
    """
    return prim.logaddexp(x1, x2) if dtype is None else prim.logaddexp(*cast(np.logaddexp, dtype, x1, x2))


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``log2(2**x1 + 2**x2)`` without overflow.

    The derivatives are the shares of the two powers: 1 and 0 where ``x2`` is minus infinity, NaN where
    both are.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.logaddexp2(1000.0, 1000.0)
        np.float64(1001.0)
    """
    return prim.logaddexp2(x1, x2) if dtype is None else prim.logaddexp2(*cast(np.logaddexp2, dtype, x1, x2))


def hypot(x1: ArrayLike, x2: ArrayLike, /, *, dtype: Any = None) -> Array:
    """``sqrt(x1**2 + x2**2)`` without overflow. The derivatives at the origin are 1/2.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.hypot(3.0, 4.0)
        np.float64(5.0)
    """
    return prim.hypot(x1, x2) if dtype is None else prim.hypot(*cast(np.hypot, dtype, x1, x2))


def sin(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The sine of an angle in radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.sin([0.0, 1.0])
        array([0.        , 0.84147098])
    """
    return prim.sin(x) if dtype is None else prim.sin(*cast(np.sin, dtype, x))


def cos(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The cosine of an angle in radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.cos([0.0, 1.0])
        array([1.        , 0.54030231])
    """
    return prim.cos(x) if dtype is None else prim.cos(*cast(np.cos, dtype, x))


def tan(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The tangent of an angle in radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.tan([0.0, 1.0])
        array([0.        , 1.55740772])
    """
    return prim.tan(x) if dtype is None else prim.tan(*cast(np.tan, dtype, x))


def arcsin(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The inverse sine. The derivative at -1 and 1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arcsin([0.0, 1.0])
        array([0.        , 1.57079633])
    """
    return prim.arcsin(x) if dtype is None else prim.arcsin(*cast(np.arcsin, dtype, x))


asin = arcsin


def arccos(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The inverse cosine. The derivative at -1 and 1 is minus infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arccos([0.0, 1.0])
        array([1.57079633, 0.        ])
    """
    return prim.arccos(x) if dtype is None else prim.arccos(*cast(np.arccos, dtype, x))


acos = arccos


def arctan(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The inverse tangent.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arctan([0.0, 1.0])
        array([0.        , 0.78539816])
    """
    return prim.arctan(x) if dtype is None else prim.arctan(*cast(np.arctan, dtype, x))


atan = arctan


def arctan2(x1: ArrayLike, x2: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The angle of the point (``x2``, ``x1``), from -pi to pi. The derivatives at the origin are NaN.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arctan2(1.0, -1.0)
        np.float64(2.356194490192345)
    """
    return prim.arctan2(x1, x2) if dtype is None else prim.arctan2(*cast(np.arctan2, dtype, x1, x2))


atan2 = arctan2


def sinh(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The hyperbolic sine.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.sinh([0.0, 1.0])
        array([0.        , 1.17520119])
    """
    return prim.sinh(x) if dtype is None else prim.sinh(*cast(np.sinh, dtype, x))


def cosh(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The hyperbolic cosine.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.cosh([0.0, 1.0])
        array([1.        , 1.54308063])
    """
    return prim.cosh(x) if dtype is None else prim.cosh(*cast(np.cosh, dtype, x))


def tanh(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The hyperbolic tangent.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.tanh([0.0, 1.0])
        array([0.        , 0.76159416])
    """
    return prim.tanh(x) if dtype is None else prim.tanh(*cast(np.tanh, dtype, x))


def arcsinh(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The inverse hyperbolic sine.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arcsinh([0.0, 1.0])
        array([0.        , 0.88137359])
    """
    return prim.arcsinh(x) if dtype is None else prim.arcsinh(*cast(np.arcsinh, dtype, x))


asinh = arcsinh


def arccosh(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The inverse hyperbolic cosine. The derivative at 1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arccosh([1.0, 2.0])
        array([0.       , 1.3169579])
    """
    return prim.arccosh(x) if dtype is None else prim.arccosh(*cast(np.arccosh, dtype, x))


acosh = arccosh


def arctanh(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """The inverse hyperbolic tangent. The derivative at -1 and 1 is infinity.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.arctanh([0.0, 0.5])
        array([0.        , 0.54930614])
    """
    return prim.arctanh(x) if dtype is None else prim.arctanh(*cast(np.arctanh, dtype, x))


atanh = arctanh


def sinc(x: ArrayLike) -> Array:
    """``sin(pi x) / (pi x)``, and 1 at 0. The derivatives at 0 are exact, to any order.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.sinc([0.0, 0.5])
        array([1.        , 0.63661977])
    """
    return prim.sinc(x, order=0)


def deg2rad(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """Degrees as radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.deg2rad(180.0)
        np.float64(3.141592653589793)
    """
    return prim.deg2rad(x) if dtype is None else prim.deg2rad(*cast(np.deg2rad, dtype, x))


def radians(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """Degrees as radians.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.radians(180.0)
        np.float64(3.141592653589793)
    """
    return prim.radians(x) if dtype is None else prim.radians(*cast(np.radians, dtype, x))


def rad2deg(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """Radians as degrees.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.rad2deg(3.0)
        np.float64(171.88733853924697)
    """
    return prim.rad2deg(x) if dtype is None else prim.rad2deg(*cast(np.rad2deg, dtype, x))


def degrees(x: ArrayLike, /, *, dtype: Any = None) -> Array:
    """Radians as degrees.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.degrees(3.0)
        np.float64(171.88733853924697)
    """
    return prim.degrees(x) if dtype is None else prim.degrees(*cast(np.degrees, dtype, x))
