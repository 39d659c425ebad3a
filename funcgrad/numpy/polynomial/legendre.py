"""Legendre series.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "legdomain", "legzero", "legone", "legx", "legline", "legadd", "legsub", "legmulx", "legmul", "legdiv", "legpow",
    "legval", "legval2d", "legval3d", "legvalnd", "leggrid2d", "leggrid3d", "legder", "legint", "legfromroots",
    "legroots", "legcompanion", "legvander", "legvander2d", "legvander3d", "legfit", "legtrim", "poly2leg", "leg2poly",
    "leggauss", "legweight", "Legendre",
]  # fmt: skip

_numpy = np.polynomial.legendre
_series = series("leg")

legdomain = _numpy.legdomain
legzero = _numpy.legzero
legone = _numpy.legone
legx = _numpy.legx

legline = _series.line
legadd = _series.add
legsub = _series.sub
legmulx = _series.mulx
legmul = _series.mul
legdiv = _series.div
legpow = _series.pow
legval = _series.val
legval2d = _series.val2d
legval3d = _series.val3d
legvalnd = _series.valnd
leggrid2d = _series.grid2d
leggrid3d = _series.grid3d
legder = _series.der
legint = _series.integral
legfromroots = _series.fromroots
legroots = _series.roots
legcompanion = _series.companion
legvander = _series.vander
legvander2d = _series.vander2d
legvander3d = _series.vander3d
legfit = _series.fit
legtrim = _series.trim
poly2leg = _series.from_powers
leg2poly = _series.to_powers
leggauss = _numpy.leggauss


def legweight(x: ArrayLike) -> Array:
    """Return the weight function of the orthogonal polynomials at ``x``.

    Example:
        >>> from funcgrad.numpy.polynomial.legendre import legweight
        >>> legweight(0.5)
        1.0
    """
    x = as_value(x)
    return x * 0.0 + 1.0


class Legendre(TracedSeries, _numpy.Legendre, prefix="leg"):
    """NumPy's ``Legendre`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Legendre
        >>> grad(lambda c: Legendre([0.0, c]).deriv()(0.5))(2.0)
        np.float64(1.0)
    """
