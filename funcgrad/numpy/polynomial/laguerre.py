"""Laguerre series.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.elementwise import exp
from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "lagdomain", "lagzero", "lagone", "lagx", "lagline", "lagadd", "lagsub", "lagmulx", "lagmul", "lagdiv", "lagpow",
    "lagval", "lagval2d", "lagval3d", "lagvalnd", "laggrid2d", "laggrid3d", "lagder", "lagint", "lagfromroots",
    "lagroots", "lagcompanion", "lagvander", "lagvander2d", "lagvander3d", "lagfit", "lagtrim", "poly2lag", "lag2poly",
    "laggauss", "lagweight", "Laguerre",
]  # fmt: skip

_numpy = np.polynomial.laguerre
_series = series("lag")

lagdomain = _numpy.lagdomain
lagzero = _numpy.lagzero
lagone = _numpy.lagone
lagx = _numpy.lagx

lagline = _series.line
lagadd = _series.add
lagsub = _series.sub
lagmulx = _series.mulx
lagmul = _series.mul
lagdiv = _series.div
lagpow = _series.pow
lagval = _series.val
lagval2d = _series.val2d
lagval3d = _series.val3d
lagvalnd = _series.valnd
laggrid2d = _series.grid2d
laggrid3d = _series.grid3d
lagder = _series.der
lagint = _series.integral
lagfromroots = _series.fromroots
lagroots = _series.roots
lagcompanion = _series.companion
lagvander = _series.vander
lagvander2d = _series.vander2d
lagvander3d = _series.vander3d
lagfit = _series.fit
lagtrim = _series.trim
poly2lag = _series.from_powers
lag2poly = _series.to_powers
laggauss = _numpy.laggauss


def lagweight(x: ArrayLike) -> Array:
    """Return the weight function of the orthogonal polynomials at ``x``.

    Example:
        >>> from funcgrad.numpy.polynomial.laguerre import lagweight
        >>> lagweight(0.0)
        np.float64(1.0)
    """
    x = as_value(x)
    return exp(-x)


class Laguerre(TracedSeries, _numpy.Laguerre, prefix="lag"):
    """NumPy's ``Laguerre`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Laguerre
        >>> grad(lambda c: Laguerre([0.0, c]).deriv()(0.5))(2.0)
        np.float64(-1.0)
    """
