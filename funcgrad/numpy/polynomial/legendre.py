"""Legendre series.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series

__all__ = [
    "legdomain", "legzero", "legone", "legx", "legline", "legadd", "legsub", "legmulx", "legmul", "legdiv", "legpow",
    "legval", "legval2d", "legval3d", "legvalnd", "leggrid2d", "leggrid3d", "legder", "legint", "legfromroots",
    "legroots", "legcompanion", "legvander", "legvander2d", "legvander3d", "legfit", "legtrim", "poly2leg", "leg2poly",
    "leggauss", "legweight", "Legendre",
]  # fmt: skip

_numpy = np.polynomial.legendre
_series = series("leg")

legdomain, legzero, legone, legx = _numpy.legdomain, _numpy.legzero, _numpy.legone, _numpy.legx
legline, legadd, legsub = _series.line, _series.add, _series.sub
legmulx, legmul, legdiv, legpow = _series.mulx, _series.mul, _series.div, _series.pow
legval, legval2d, legval3d, legvalnd = _series.val, _series.val2d, _series.val3d, _series.valnd
leggrid2d, leggrid3d = _series.grid2d, _series.grid3d
legder, legint = _series.der, _series.integral
legfromroots, legroots, legcompanion = _series.fromroots, _series.roots, _series.companion
legvander, legvander2d, legvander3d = _series.vander, _series.vander2d, _series.vander3d
legfit, legtrim = _series.fit, _series.trim
poly2leg, leg2poly = _series.from_powers, _series.to_powers
leggauss = _numpy.leggauss
legweight = _series.weight


class Legendre(TracedSeries, _numpy.Legendre, prefix="leg"):
    """NumPy's ``Legendre`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Legendre
        >>> grad(lambda c: Legendre([0.0, c]).deriv()(0.5))(2.0)
        np.float64(1.0)
    """
