"""Values of splines and piecewise polynomials at points.

Where only the points are traced, one operation computes them by SciPy's own code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import plain_value
from funcgrad.kinds.general import primitive
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.optional import import_scipy


def basis(t: Any, k: int, x: Any, place: Any) -> list[Any]:
    """Return the ``k + 1`` B-splines that are not zero in the piece ``place``, by the formula of de Boor and Cox."""
    values, t = [fnp.ones_like(x * 1.0)], fnp.asarray(t)
    for degree in range(1, k + 1):
        saved: Any = 0.0
        new = []
        for r in range(degree):
            right, left = fnp.take(t, place + r + 1), fnp.take(t, place + 1 - degree + r)
            part = values[r] / fnp.where(right == left, 1.0, right - left)
            new.append(saved + (right - x) * part)
            saved = (x - left) * part
        values = [*new, saved]
    return values


def descends(knots: Any) -> bool:
    """Whether knots fall; SciPy's piecewise polynomials take both orders."""
    return bool(knots[0] > knots[-1])


def piece_of(x: Any, knots: Any, extrapolate: bool) -> tuple[Any, Any]:
    """Return the index of the piece of each point, and whether the point lies outside of all pieces."""
    knots = fnp.asarray(knots)
    if descends(knots):
        return piece_of(-x, -knots, extrapolate)
    inside = fnp.searchsorted(knots, x, "right") - 1
    outside = fnp.logical_or(fnp.logical_or(x < knots[0], x > knots[-1]), fnp.isnan(x))
    return fnp.clip(inside, 0, len(knots) - 2), fnp.logical_and(outside, not extrapolate)


def powers(c: Any, s: Any, order: int, nu: int) -> Any:
    """Compute the ``nu``-th derivative (integral if < 0) of polynomials with ``order`` coefficients, highest first."""
    result: Any = 0.0
    for i in range(order):
        power = order - 1 - i
        if power < nu:
            break
        factor = 1.0
        for j in range(nu):
            factor *= power - j
        for j in range(-nu):
            factor /= power + 1 + j
        result = result * s + c[i] * factor if power - nu >= 0 and i else c[i] * factor
    return result * s ** (-nu) if nu < 0 else result


def spline(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Any:
    """Evaluate the ``nu``-th derivatives of splines with knots ``t`` and coefficients ``c[i, n]`` at ``x``."""
    t, c = fnp.asarray(t), c[: len(t) - k - 1]
    if _moves_alone(x, t, c):
        return spline_values(
            *(x, np.asarray(t, float), np.asarray(c)),
            form="BSpline",
            k=int(k),
            nu=int(nu),
            extrapolate=bool(extrapolate),
        )
    return _by_formula(t, c, k, x, nu, extrapolate)


def pieces(form: str, c: Any, knots: Any, x: Any, nu: int, extrapolate: Any) -> Any:
    """Evaluate the ``nu``-th derivatives of piecewise polynomials ``c[k, piece, n]`` at ``x``.

    ``form`` is the name of SciPy's class: "PPoly" for powers, "BPoly" for Bernstein's basis.
    """
    if _moves_alone(x, knots, c):
        options = {"form": form, "k": len(c) - 1, "nu": int(nu), "extrapolate": bool(extrapolate)}
        return spline_values(x, np.asarray(knots, float), np.asarray(c), **options)
    return _FORMULAS[form](knots, c, len(c) - 1, x, nu, extrapolate)


def _moves_alone(x: Any, *constants: Any) -> bool:
    """Whether of the arguments only ``x``, a vector, may be traced, and NumPy computes with it."""
    return is_plain(*constants) and backend.namespace_of(plain_value(x)) is np and np.ndim(x) == 1


def _by_powers(knots: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Any:
    place, outside = piece_of(x, knots, bool(extrapolate))
    s = x - fnp.take(fnp.asarray(knots), place)
    value = powers([fnp.take(row, place, axis=0) for row in c], s[:, None], k + 1, nu)
    return fnp.where(outside[:, None], np.nan, value)


def _by_bernstein(knots: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Any:
    place, outside = piece_of(x, knots, bool(extrapolate))
    knots = fnp.asarray(knots)
    left = fnp.take(knots, place)
    width = (fnp.take(knots, place + 1) - left)[:, None]
    rows = [fnp.take(row, place, axis=0) for row in c]
    for _ in range(nu):
        rows = [(len(rows) - 1) / width * (after - before) for before, after in pairwise(rows)]
    s = (x - left)[:, None] / width
    while len(rows) > 1:  # de Casteljau's algorithm
        rows = [before * (1 - s) + after * s for before, after in pairwise(rows)]
    return fnp.where(outside[:, None], np.nan, rows[0] if rows else 0.0)


def _by_formula(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Any:
    for degree in range(k, max(k - nu, 0), -1):
        widths = t[degree + 1 : len(t) - 1] - t[1 : len(t) - degree - 1]
        c = degree * (c[1:] - c[:-1]) / fnp.where(widths == 0, 1.0, widths)[:, None]
        t = t[1:-1]
    k = k - nu
    if k < 0:
        return fnp.zeros((len(x), c.shape[1]))
    n = len(t) - k - 1
    place = fnp.clip(fnp.searchsorted(t, x, "right") - 1, k, n - 1)
    values = basis(t, k, x, place)
    out = sum([fnp.take(c, place - k + j, axis=0) * values[j][:, None] for j in range(k + 1)])
    outside = fnp.logical_or(x < t[k], x > t[n])
    return out if extrapolate else fnp.where(outside[:, None], np.nan, out)


#: Formulas for all cases, by the name of SciPy's class.
_FORMULAS = {"BSpline": _by_formula, "PPoly": _by_powers, "BPoly": _by_bernstein}


def _values(xp: Any, x: Any, t: Any, c: Any, *, form: str, k: int, nu: int, extrapolate: bool) -> Any:
    if xp is not np:  # a recorded run is repeated with arrays of JAX
        return _FORMULAS[form](t, c, k, x, nu, extrapolate)
    kind = getattr(import_scipy(f"interpolate.{form}", "scipy.interpolate"), form)
    if form == "BPoly":  # what ``construct_fast`` makes of SciPy 1.18 computes with powers
        return kind(c, t, extrapolate)(x, nu)
    args = (t, c, k) if form == "BSpline" else (c, t)
    return kind.construct_fast(*args, extrapolate)(x, nu)


def _slope(x: Any, t: Any, c: Any, *, form: str, k: int, nu: int, extrapolate: bool) -> Any:
    # all later derivatives are zero too, and SciPy 1.15 writes outside of its memory there
    return spline_values(x, t, c, form=form, k=k, nu=min(nu + 1, k + 1), extrapolate=extrapolate)


def _batch(size: int, args: Any, batched: Any, params: dict[str, Any]) -> tuple[Any, bool]:
    x, t, c = args
    found = spline_values(fnp.reshape(x, (-1,)), t, c, **params)
    return fnp.reshape(found, (*backend.shape_of(x), c.shape[-1])), True


#: The derivative in the points is a curve of one degree less; knots and coefficients are constants.
spline_values: Operation = primitive(
    "spline_values",
    _values,
    vjps=[
        lambda ct, x, y, z, **params: fnp.sum(ct * _slope(x, y, z, **params), axis=-1),
        None,
        None,
    ],
    jvps=[
        lambda t, x, y, z, **params: t[:, None] * _slope(x, y, z, **params),
        None,
        None,
    ],
    batch=_batch,
)
