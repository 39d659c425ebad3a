"""Hermite series of the probabilists' polynomials.

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
    "hermedomain", "hermezero", "hermeone", "hermex", "hermeline", "hermeadd", "hermesub", "hermemulx", "hermemul",
    "hermediv", "hermepow", "hermeval", "hermeval2d", "hermeval3d", "hermevalnd", "hermegrid2d", "hermegrid3d",
    "hermeder", "hermeint", "hermefromroots", "hermeroots", "hermecompanion", "hermevander", "hermevander2d",
    "hermevander3d", "hermefit", "hermetrim", "poly2herme", "herme2poly", "hermegauss", "hermeweight", "HermiteE",
]  # fmt: skip

_numpy = np.polynomial.hermite_e
_series = series("herme")

hermedomain = _numpy.hermedomain
hermezero = _numpy.hermezero
hermeone = _numpy.hermeone
hermex = _numpy.hermex

hermeline = _series.line
hermeadd = _series.add
hermesub = _series.sub
hermemulx = _series.mulx
hermemul = _series.mul
hermediv = _series.div
hermepow = _series.pow
hermeval = _series.val
hermeval2d = _series.val2d
hermeval3d = _series.val3d
hermevalnd = _series.valnd
hermegrid2d = _series.grid2d
hermegrid3d = _series.grid3d
hermeder = _series.der
hermeint = _series.integral
hermefromroots = _series.fromroots
hermeroots = _series.roots
hermecompanion = _series.companion
hermevander = _series.vander
hermevander2d = _series.vander2d
hermevander3d = _series.vander3d
hermefit = _series.fit
hermetrim = _series.trim
poly2herme = _series.from_powers
herme2poly = _series.to_powers
hermegauss = _numpy.hermegauss


def hermeweight(x: ArrayLike) -> Array:
    """Return the weight function of the orthogonal polynomials at ``x``.

    Example:
        >>> from funcgrad.numpy.polynomial.hermite_e import hermeweight
        >>> hermeweight(0.0)
        np.float64(1.0)
    """
    x = as_value(x)
    return exp(-0.5 * x**2)


class HermiteE(TracedSeries, _numpy.HermiteE, prefix="herme"):
    """NumPy's ``HermiteE`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import HermiteE
        >>> grad(lambda c: HermiteE([0.0, c]).deriv()(0.5))(2.0)
        np.float64(1.0)
    """
