"""Hermite series of the probabilists' polynomials.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series

__all__ = [
    "hermedomain", "hermezero", "hermeone", "hermex", "hermeline", "hermeadd", "hermesub", "hermemulx", "hermemul",
    "hermediv", "hermepow", "hermeval", "hermeval2d", "hermeval3d", "hermevalnd", "hermegrid2d", "hermegrid3d",
    "hermeder", "hermeint", "hermefromroots", "hermeroots", "hermecompanion", "hermevander", "hermevander2d",
    "hermevander3d", "hermefit", "hermetrim", "poly2herme", "herme2poly", "hermegauss", "hermeweight", "HermiteE",
]  # fmt: skip

_numpy = np.polynomial.hermite_e
_series = series("herme")

hermedomain, hermezero, hermeone, hermex = _numpy.hermedomain, _numpy.hermezero, _numpy.hermeone, _numpy.hermex
hermeline, hermeadd, hermesub = _series.line, _series.add, _series.sub
hermemulx, hermemul, hermediv, hermepow = _series.mulx, _series.mul, _series.div, _series.pow
hermeval, hermeval2d, hermeval3d, hermevalnd = _series.val, _series.val2d, _series.val3d, _series.valnd
hermegrid2d, hermegrid3d = _series.grid2d, _series.grid3d
hermeder, hermeint = _series.der, _series.integral
hermefromroots, hermeroots, hermecompanion = _series.fromroots, _series.roots, _series.companion
hermevander, hermevander2d, hermevander3d = _series.vander, _series.vander2d, _series.vander3d
hermefit, hermetrim = _series.fit, _series.trim
poly2herme, herme2poly = _series.from_powers, _series.to_powers
hermegauss = _numpy.hermegauss
hermeweight = _series.weight


class HermiteE(TracedSeries, _numpy.HermiteE, prefix="herme"):
    """NumPy's ``HermiteE`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import HermiteE
        >>> grad(lambda c: HermiteE([0.0, c]).deriv()(0.5))(2.0)
        np.float64(1.0)
    """
