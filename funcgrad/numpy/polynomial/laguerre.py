"""Laguerre series.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series

__all__ = [
    "lagdomain", "lagzero", "lagone", "lagx", "lagline", "lagadd", "lagsub", "lagmulx", "lagmul", "lagdiv", "lagpow",
    "lagval", "lagval2d", "lagval3d", "lagvalnd", "laggrid2d", "laggrid3d", "lagder", "lagint", "lagfromroots",
    "lagroots", "lagcompanion", "lagvander", "lagvander2d", "lagvander3d", "lagfit", "lagtrim", "poly2lag", "lag2poly",
    "laggauss", "lagweight", "Laguerre",
]  # fmt: skip

_numpy = np.polynomial.laguerre
_series = series("lag")

lagdomain, lagzero, lagone, lagx = _numpy.lagdomain, _numpy.lagzero, _numpy.lagone, _numpy.lagx
lagline, lagadd, lagsub = _series.line, _series.add, _series.sub
lagmulx, lagmul, lagdiv, lagpow = _series.mulx, _series.mul, _series.div, _series.pow
lagval, lagval2d, lagval3d, lagvalnd = _series.val, _series.val2d, _series.val3d, _series.valnd
laggrid2d, laggrid3d = _series.grid2d, _series.grid3d
lagder, lagint = _series.der, _series.integral
lagfromroots, lagroots, lagcompanion = _series.fromroots, _series.roots, _series.companion
lagvander, lagvander2d, lagvander3d = _series.vander, _series.vander2d, _series.vander3d
lagfit, lagtrim = _series.fit, _series.trim
poly2lag, lag2poly = _series.from_powers, _series.to_powers
laggauss = _numpy.laggauss
lagweight = _series.weight


class Laguerre(TracedSeries, _numpy.Laguerre, prefix="lag"):
    """NumPy's ``Laguerre`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Laguerre
        >>> grad(lambda c: Laguerre([0.0, c]).deriv()(0.5))(2.0)
        np.float64(-1.0)
    """
