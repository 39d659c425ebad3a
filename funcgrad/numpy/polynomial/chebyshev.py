"""Chebyshev series of the first kind.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import as_count, series
from funcgrad.numpy.products import matmul
from funcgrad.typing import Array

__all__ = [
    "chebdomain", "chebzero", "chebone", "chebx", "chebline", "chebadd", "chebsub", "chebmulx", "chebmul", "chebdiv",
    "chebpow", "chebval", "chebval2d", "chebval3d", "chebvalnd", "chebgrid2d", "chebgrid3d", "chebder", "chebint",
    "chebfromroots", "chebroots", "chebcompanion", "chebvander", "chebvander2d", "chebvander3d", "chebfit", "chebtrim",
    "poly2cheb", "cheb2poly", "chebgauss", "chebweight", "chebpts1", "chebpts2", "chebinterpolate", "Chebyshev",
]  # fmt: skip

_numpy = np.polynomial.chebyshev
_series = series("cheb")

chebdomain, chebzero, chebone, chebx = _numpy.chebdomain, _numpy.chebzero, _numpy.chebone, _numpy.chebx
chebline, chebadd, chebsub = _series.line, _series.add, _series.sub
chebmulx, chebmul, chebdiv, chebpow = _series.mulx, _series.mul, _series.div, _series.pow
chebval, chebval2d, chebval3d, chebvalnd = _series.val, _series.val2d, _series.val3d, _series.valnd
chebgrid2d, chebgrid3d = _series.grid2d, _series.grid3d
chebder, chebint = _series.der, _series.integral
chebfromroots, chebroots, chebcompanion = _series.fromroots, _series.roots, _series.companion
chebvander, chebvander2d, chebvander3d = _series.vander, _series.vander2d, _series.vander3d
chebfit, chebtrim = _series.fit, _series.trim
poly2cheb, cheb2poly = _series.from_powers, _series.to_powers
chebgauss, chebpts1, chebpts2 = _numpy.chebgauss, _numpy.chebpts1, _numpy.chebpts2
chebweight = _series.weight


def chebinterpolate(func: Callable[..., Any], deg: int, args: tuple[Any, ...] = ()) -> Array:
    """Return the series of degree ``deg`` that equals ``func`` at the Chebyshev points of the first kind.

    The derivative flows to ``args`` and to values that ``func`` closes over.

    Args:
        func: a function of an array of points, and of ``args``.
        deg: the degree.
        args: further arguments.

    Raises:
        TypeError: a degree that is not an integer.
        ValueError: a negative degree.

    Example:
        >>> from funcgrad.numpy.polynomial.chebyshev import chebinterpolate
        >>> chebinterpolate(lambda x: 2.0 * x, 2).round(12) + 0.0
        array([0., 2., 0.])
    """
    order = as_count(deg, "deg") + 1
    points = chebpts1(order)
    factors = np.full(order, 2.0 / order)
    factors[0] /= 2
    return matmul(_numpy.chebvander(points, order - 1).T * factors[:, None], func(points, *args))


class Chebyshev(TracedSeries, _numpy.Chebyshev, prefix="cheb"):
    """NumPy's ``Chebyshev`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Chebyshev
        >>> grad(lambda c: Chebyshev([0.0, c]).deriv()(0.5))(2.0)
        np.float64(1.0)
    """
