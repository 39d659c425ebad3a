"""Values of B-splines at points. Where only the points are traced, one operation computes them by SciPy's own code."""

from __future__ import annotations

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


def spline(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Any:
    """Evaluate the ``nu``-th derivatives of splines with knots ``t`` and coefficients ``c[i, n]`` at ``x``."""
    t, c = fnp.asarray(t), c[: len(t) - k - 1]
    if is_plain(t, c) and backend.namespace_of(plain_value(x)) is np and np.ndim(x) == 1:
        return spline_values(
            x, np.asarray(t, float), np.asarray(c), k=int(k), nu=int(nu), extrapolate=bool(extrapolate)
        )
    return _by_formula(t, c, k, x, nu, extrapolate)


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


def _values(xp: Any, x: Any, t: Any, c: Any, *, k: int, nu: int, extrapolate: bool) -> Any:
    if xp is not np:  # a recorded run is repeated with arrays of JAX
        return _by_formula(t, c, k, x, nu, extrapolate)
    made = import_scipy("interpolate.BSpline", "scipy.interpolate").BSpline.construct_fast(t, c, k, extrapolate)
    return made(x, nu)


def _slope(x: Any, t: Any, c: Any, *, k: int, nu: int, extrapolate: bool) -> Any:
    # all later derivatives are zero too, and SciPy 1.15 writes outside of its memory there
    return spline_values(x, t, c, k=k, nu=min(nu + 1, k + 1), extrapolate=extrapolate)


def _batch(size: int, args: Any, batched: Any, params: dict[str, Any]) -> tuple[Any, bool]:
    x, t, c = args
    found = spline_values(fnp.reshape(x, (-1,)), t, c, **params)
    return fnp.reshape(found, (*backend.shape_of(x), c.shape[1])), True


#: The derivative in the points is a spline of one degree less; knots and coefficients are constants.
spline_values: Operation = primitive(
    "spline_values",
    _values,
    vjps=[
        lambda ct, x, y, z, *, k, nu, extrapolate: fnp.sum(
            ct * _slope(x, y, z, k=k, nu=nu, extrapolate=extrapolate), axis=-1
        ),
        None,
        None,
    ],
    jvps=[
        lambda t, x, y, z, *, k, nu, extrapolate: t[:, None] * _slope(x, y, z, k=k, nu=nu, extrapolate=extrapolate),
        None,
        None,
    ],
    batch=_batch,
)
