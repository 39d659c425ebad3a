"""Power series.

``Series`` in ``funcgrad.numpy.polynomial.series`` documents each function.
"""

from __future__ import annotations

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.polynomial.classes import TracedSeries
from funcgrad.numpy.polynomial.series import series
from funcgrad.numpy.polynomials import coefficients
from funcgrad.numpy.reducing import as_floating
from funcgrad.numpy.reductions import prod
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "polydomain", "polyzero", "polyone", "polyx", "polyline", "polyadd", "polysub", "polymulx", "polymul", "polydiv",
    "polypow", "polyval", "polyval2d", "polyval3d", "polyvalnd", "polygrid2d", "polygrid3d", "polyder", "polyint",
    "polyfromroots", "polyroots", "polycompanion", "polyvander", "polyvander2d", "polyvander3d", "polyfit", "polytrim",
    "polyvalfromroots", "Polynomial",
]  # fmt: skip

_numpy = np.polynomial.polynomial
_series = series("poly")

polydomain, polyzero, polyone, polyx = _numpy.polydomain, _numpy.polyzero, _numpy.polyone, _numpy.polyx
polyline, polyadd, polysub = _series.line, _series.add, _series.sub
polymulx, polymul, polydiv = _series.mulx, _series.mul, _series.div
polyval, polyval2d, polyval3d, polyvalnd = _series.val, _series.val2d, _series.val3d, _series.valnd
polygrid2d, polygrid3d = _series.grid2d, _series.grid3d
polyder, polyint = _series.der, _series.integral
polyfromroots, polyroots, polycompanion = _series.fromroots, _series.roots, _series.companion
polyvander, polyvander2d, polyvander3d = _series.vander, _series.vander2d, _series.vander3d
polyfit, polytrim = _series.fit, _series.trim


def polypow(c: ArrayLike, pow: int, maxpower: int | None = None) -> Array:
    """Return the series raised to an integer power that is not negative and not above ``maxpower``, if given.

    Raises:
        ValueError: another power.

    Example:
        >>> from funcgrad.numpy.polynomial.polynomial import polypow
        >>> polypow([1.0, 1.0], 3)
        array([1., 3., 3., 1.])
    """
    return _series.pow(c, pow, maxpower)


def polyvalfromroots(x: ArrayLike, r: ArrayLike, tensor: bool = True) -> Array:
    """Return the product of ``x - r`` over the zeros ``r``; the derivative flows to both.

    Args:
        x: the points.
        r: the zeros along the first axis; several polynomials along further axes.
        tensor: whether to evaluate every polynomial at every point; otherwise the further axes of ``r`` broadcast
            against ``x``.

    Raises:
        ValueError: ``tensor`` is False and ``x`` has as many axes as ``r``, or more.

    Example:
        >>> from funcgrad.numpy.polynomial.polynomial import polyvalfromroots
        >>> polyvalfromroots(3.0, [1.0, 2.0])
        np.float64(2.0)
    """
    if is_plain(x, r):
        return np.polynomial.polynomial.polyvalfromroots(x, r, tensor)
    x, r = as_value(x), as_floating(coefficients(r))
    points, zeros = shape_of(x), shape_of(r)
    if points and tensor:
        r = reshape(r, to=(*zeros, *(1,) * len(points)))
    elif points and len(points) >= len(zeros):
        raise ValueError("x.ndim must be < r.ndim when tensor == False")
    return prod(x - r, 0)


class Polynomial(TracedSeries, _numpy.Polynomial, prefix="poly"):
    """NumPy's ``Polynomial`` with coefficients and points that may be traced.

    Example:
        >>> from funcgrad.numpy.polynomial import Polynomial
        >>> grad(lambda c: Polynomial([0.0, c]).deriv()(0.5))(2.0)
        np.float64(1.0)
    """
