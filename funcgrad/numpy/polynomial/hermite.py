"""Hermite series of the physicists' polynomials.

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
    "hermdomain", "hermzero", "hermone", "hermx", "hermline", "hermadd", "hermsub", "hermmulx", "hermmul", "hermdiv",
    "hermpow", "hermval", "hermval2d", "hermval3d", "hermvalnd", "hermgrid2d", "hermgrid3d", "hermder", "hermint",
    "hermfromroots", "hermroots", "hermcompanion", "hermvander", "hermvander2d", "hermvander3d", "hermfit", "hermtrim",
    "poly2herm", "herm2poly", "hermgauss", "hermweight", "Hermite",
]  # fmt: skip

_numpy = np.polynomial.hermite
_series = series("herm")

hermdomain = _numpy.hermdomain
hermzero = _numpy.hermzero
hermone = _numpy.hermone
hermx = _numpy.hermx

hermline = _series.line
hermadd = _series.add
hermsub = _series.sub
hermmulx = _series.mulx
hermmul = _series.mul
hermdiv = _series.div
hermpow = _series.pow
hermval = _series.val
hermval2d = _series.val2d
hermval3d = _series.val3d
hermvalnd = _series.valnd
hermgrid2d = _series.grid2d
hermgrid3d = _series.grid3d
hermder = _series.der
hermint = _series.integral
hermfromroots = _series.fromroots
hermroots = _series.roots
hermcompanion = _series.companion
hermvander = _series.vander
hermvander2d = _series.vander2d
hermvander3d = _series.vander3d
hermfit = _series.fit
hermtrim = _series.trim
poly2herm = _series.from_powers
herm2poly = _series.to_powers
hermgauss = _numpy.hermgauss


def hermweight(x: ArrayLike) -> Array:
    """Return the weight function of the orthogonal polynomials at ``x``.

    Example:
        >>> from funcgrad.numpy.polynomial.hermite import hermweight
        >>> hermweight(0.0)
        np.float64(1.0)
    """
    x = as_value(x)
    return exp(-(x**2))


class Hermite(TracedSeries, _numpy.Hermite, prefix="herm"):
    """NumPy's ``Hermite`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Hermite
        >>> grad(lambda c: Hermite([0.0, c]).deriv()(0.5))(2.0)
        np.float64(2.0)
    """
