"""Hermite series of the physicists' polynomials.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series

__all__ = [
    "hermdomain", "hermzero", "hermone", "hermx", "hermline", "hermadd", "hermsub", "hermmulx", "hermmul", "hermdiv",
    "hermpow", "hermval", "hermval2d", "hermval3d", "hermvalnd", "hermgrid2d", "hermgrid3d", "hermder", "hermint",
    "hermfromroots", "hermroots", "hermcompanion", "hermvander", "hermvander2d", "hermvander3d", "hermfit", "hermtrim",
    "poly2herm", "herm2poly", "hermgauss", "hermweight", "Hermite",
]  # fmt: skip

_numpy = np.polynomial.hermite
_series = series("herm")

hermdomain, hermzero, hermone, hermx = _numpy.hermdomain, _numpy.hermzero, _numpy.hermone, _numpy.hermx
hermline, hermadd, hermsub = _series.line, _series.add, _series.sub
hermmulx, hermmul, hermdiv, hermpow = _series.mulx, _series.mul, _series.div, _series.pow
hermval, hermval2d, hermval3d, hermvalnd = _series.val, _series.val2d, _series.val3d, _series.valnd
hermgrid2d, hermgrid3d = _series.grid2d, _series.grid3d
hermder, hermint = _series.der, _series.integral
hermfromroots, hermroots, hermcompanion = _series.fromroots, _series.roots, _series.companion
hermvander, hermvander2d, hermvander3d = _series.vander, _series.vander2d, _series.vander3d
hermfit, hermtrim = _series.fit, _series.trim
poly2herm, herm2poly = _series.from_powers, _series.to_powers
hermgauss = _numpy.hermgauss
hermweight = _series.weight


class Hermite(TracedSeries, _numpy.Hermite, prefix="herm"):
    """NumPy's ``Hermite`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Hermite
        >>> grad(lambda c: Hermite([0.0, c]).deriv()(0.5))(2.0)
        np.float64(2.0)
    """
