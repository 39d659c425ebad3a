"""SciPy's compiled functions of splines and piecewise polynomials, with derivatives; see ``table``.

Values, weights, coefficients, knots, data points and the points at which a spline is evaluated may be traced. The
piece in which a point lies, and the choice of the knots of a smoothing spline, are constants.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import describe
from funcgrad.errors import ConversionError, InputError
from funcgrad.numpy.plain_values.peeking import concrete_or_none, shared_numbers
from funcgrad.numpy_code.kernels.spline_values import basis, descends, piece_of, pieces, powers, spline
from funcgrad.numpy_code.own import known_value, own
from funcgrad.optional import import_scipy


def _evaluate(c: Any, knots: Any, x: Any, nu: int, extrapolate: Any, out: Any) -> None:
    """Compute ``_ppoly.evaluate``: piecewise polynomials ``c[k, piece, n]`` at ``x``."""
    out[...] = fnp.broadcast_to(pieces("PPoly", c, knots, x, nu, extrapolate), out.shape)


def _evaluate_nd(c: Any, knots: Any, orders: Any, x: Any, nu: Any, extrapolate: Any, out: Any) -> None:
    """Compute ``_ppoly.evaluate_nd``: piecewise polynomials ``c[k, piece, n]`` of several variables at ``x``.

    The indices ``k`` and ``piece`` each count the places of a grid with an axis for each variable.
    """
    if min(nu) < 0:
        raise ValueError("Order of derivative cannot be negative")
    piece: Any = 0
    outside: Any = False
    distances = []
    for column, ends in zip(x.T, knots, strict=True):
        place, beyond = piece_of(column, ends, bool(extrapolate))
        piece = piece * (len(ends) - 1) + place
        outside = fnp.logical_or(outside, beyond)
        distances.append((column - fnp.take(ends, place))[:, None])
    rows = fnp.take(c, piece, axis=1).reshape(*map(int, orders), *out.shape)
    for s, order, derivative in zip(distances, orders, nu, strict=True):
        rows = powers(list(rows), s, int(order), int(derivative)) + 0.0 * rows[0]
    out[...] = fnp.where(outside[:, None], np.nan, rows)


def _bernstein(c: Any, knots: Any, x: Any, nu: int, extrapolate: Any, out: Any) -> None:
    """Compute ``_ppoly.evaluate_bernstein``: piecewise polynomials ``c[k, piece, n]`` in Bernstein's basis at ``x``."""
    out[...] = fnp.broadcast_to(pieces("BPoly", c, knots, x, nu, extrapolate), out.shape)


def _integrate(c: Any, knots: Any, a: Any, b: Any, extrapolate: Any, out: Any) -> None:
    """Compute ``_ppoly.integrate``: the integral from ``a`` to ``b``, where ``b`` is not smaller."""
    knots = fnp.asarray(knots)
    (first, last), outside = piece_of(fnp.stack([a * 1.0, b * 1.0]), knots, bool(extrapolate))
    step, right = (-1, 0) if descends(knots) else (1, 1)
    pieces = np.arange(int(first), int(last) + step, step)
    left, inner = knots[pieces], knots[pieces[:-1] + right]
    ends = [fnp.concatenate([[a], inner]), fnp.concatenate([inner, [b]])]
    low, high = [powers([row[pieces] for row in c], (end - left)[:, None], len(c), -1) for end in ends]
    out[...] = fnp.where(fnp.any(outside), np.nan, fnp.sum(high - low, axis=0))


def _fix_continuity(c: Any, knots: Any, order: int) -> None:
    """Compute ``_ppoly.fix_continuity``: set lower coefficients so that derivatives up to ``order`` are continuous."""
    k = len(c)
    s = fnp.diff(fnp.asarray(knots))[:-1, None]
    for nu in range(order, -1, -1):
        at = k - nu - 1
        rest = powers([*c[:at, :-1], *[0.0 * c[0, :-1]] * (nu + 1)], s, k, nu) / math.factorial(nu)
        c[at, 1:] = c[at, 0] + fnp.cumsum(rest, axis=0)


def _evaluate_spline(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any, out: Any = None) -> Any:
    """Compute ``_dierckx.evaluate_spline``, to which SciPy before 1.16 passes ``out``."""
    value = spline(t, c, k, x, nu, extrapolate)
    if out is not None:
        out[...] = value
    return value


def _splder(t: Any, c: Any, k: int, x: Any, nu: int, ext: int = 0) -> tuple[Any, int]:
    """Compute ``dfitpack.splder``. ``ext`` is for points outside: extrapolate, zero, error, or the boundary's value.

    FITPACK has no derivative of the boundary's value: it extrapolates derivatives.
    """
    t = fnp.asarray(t)
    low, high = t[k], t[len(t) - k - 1]
    outside = fnp.logical_or(x < low, x > high)
    if ext == 2 and fnp.any(outside):
        return x, 1
    at = fnp.clip(x, low, high) if ext == 3 and nu == 0 else x
    value = spline(t, fnp.asarray(c)[:, None], k, at, nu, True)[:, 0]
    return (fnp.where(outside, 0.0, value) if ext == 1 else value), 0


def _spalde(t: Any, c: Any, k1: int, x: Any) -> tuple[Any, int]:
    """Compute ``dfitpack.spalde``: a spline and all of its derivatives at a point."""
    at = fnp.reshape(x, (1,))
    return fnp.stack([spline(t, fnp.asarray(c)[:, None], k1 - 1, at, nu, True)[0, 0] for nu in range(k1)]), 0


def _integrals(t: Any, c: Any, k: int, a: Any, b: Any) -> Any:
    """Return the integrals of splines with coefficients ``c[i, ...]``, which are zero outside of their knots."""
    t = fnp.asarray(t)
    n = len(t) - k - 1
    c = fnp.reshape(fnp.asarray(c)[:n], (n, -1))
    widths = (t[k + 1 : k + 1 + n] - t[:n])[:, None] / (k + 1)
    sums = fnp.concatenate([np.zeros((1, c.shape[1])), fnp.cumsum(c * widths, axis=0)])
    knots = fnp.concatenate([t[:1], t, t[-1:]])
    ends = fnp.clip(fnp.stack([a * 1.0, b * 1.0]), t[k], t[n])
    low, high = spline(knots, sums, k + 1, ends, 0, True)
    return high - low


def _coordinates(points: Any, ndim: Any = None) -> Any:
    """Compute ``_interpnd._ndim_coords_from_arrays``: points from arrays of coordinates."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*points), axis=-1)
    points = fnp.asarray(points)
    if points.ndim == 1:
        return points.reshape(-1, 1) if ndim is None else points.reshape(-1, ndim)
    return points


def _design(t: Any, k: int, x: Any, nu: int = 0) -> Any:
    """Return the ``nu``-th derivatives of all B-splines at ``x``, one per column, extrapolated outside of the knots."""
    return spline(t, np.eye(len(t) - k - 1), k, x, nu, True)


def _through(t: Any, k: int, x: Any, y: Any) -> Any:
    """Return the coefficients of the spline with knots ``t`` through the points, from a banded system."""
    if concrete_or_none(fnp.asarray(x), steers=False) is None:  # nor are the pieces of the points known
        return fnp.linalg.solve(_design(t, k, x), y)
    bands = fnp.zeros((len(x), 3 * k + 1))
    _coloc(x, t, k, bands)
    return own("scipy.linalg").solve_banded((k, k), bands.T[k:], y)


def _interpolating_knots(x: Any, k: int, low: Any, high: Any) -> Any:
    """Return FITPACK's knots of an interpolating spline: the points without the outermost ones, or their midpoints."""
    x, half = fnp.asarray(x) * 1.0, (k + 1) // 2
    inner = x[half : len(x) - half] if k % 2 else (x[half : len(x) - half] + x[half + 1 : len(x) - half + 1]) / 2
    return _clamped(x[0] if low is None else low, inner[: len(x) - k - 1], x[-1] if high is None else high, k)


def _clamped(low: Any, inner: Any, high: Any, k: int) -> Any:
    """Return knots whose first and last value have multiplicity ``k + 1``."""
    return fnp.concatenate([fnp.full(k + 1, low * 1.0), inner, fnp.full(k + 1, high * 1.0)])


def _nearest(x: Any, y: Any, w: Any, t: Any, k: int) -> tuple[Any, Any]:
    """Return the coefficients of the least-squares spline with knots ``t``, and the sum of squared residuals."""
    matrix, w = _design(t, k, x), fnp.ones(len(x)) if w is None else fnp.asarray(w)
    weights = w.reshape(-1, *[1] * (y.ndim - 1))
    c = fnp.linalg.lstsq(w[:, None] * matrix, weights * y, rcond=None)[0]
    return c, fnp.sum((weights * (y - matrix @ c)) ** 2)


def _smoothing(x: Any, y: Any, w: Any, xb: Any, xe: Any, k: int, s: Any) -> tuple[Any, Any, Any]:
    """Return a smoothing spline with the knots that FITPACK chooses, which are constant; ``y`` may have columns.

    The coefficients c minimise ``|w (y - A c)|^2 + |B c|^2 / p**2``, B c being jumps of the ``k``-th derivative;
    see P. Dierckx, "Algorithms for smoothing data with periodic and parametric splines" (1982). FITPACK stops when the
    first term is near ``s``: p is solved again from the term that FITPACK reached, and moves so that the term stays.
    """
    xb, xe = x[0] if xb is None else xb, x[-1] if xe is None else xe
    columns = y if y.ndim == 2 else y[:, None]
    w = fnp.ones(len(x)) if w is None else fnp.asarray(w)
    fit = import_scipy("interpolate.splprep", "scipy.interpolate").splprep
    given = [np.ascontiguousarray(shared_numbers(each)) for each in (columns.T, w, x, fnp.stack([xb, xe]) * 1.0)]
    found = fit(*given[:3], *given[3], k=k, s=s, full_output=True, quiet=1)
    knots, left = found[0][0][0], found[1]
    if len(knots) == len(x) + k + 1:  # no more knots are possible: an interpolating spline is still smoothed
        t = _interpolating_knots(x, k, xb, xe)
        if left <= 1e-20 * np.sum((given[1] * given[0]) ** 2):
            return t, _through(t, k, x, y), 0.0 * fnp.sum(y)
    else:
        t = _clamped(xb, fnp.take(x, np.searchsorted(given[2], knots[k + 1 : -k - 1])), xe, k)
    design, edges = w[:, None] * _design(t, k, x), t[k : len(t) - k]
    jumps = fnp.diff(_design(t, k, (edges[1:] + edges[:-1]) / 2, k), axis=0)
    right = fnp.concatenate([w[:, None] * columns, fnp.zeros((len(jumps), columns.shape[1]))])

    def at(p: Any) -> tuple[Any, Any]:
        c = fnp.linalg.lstsq(fnp.concatenate([design, jumps / p]), right, rcond=None)[0]
        return c, fnp.sum((right[: len(x)] - design @ c) ** 2)

    nearest, least = _nearest(x, columns, w, t, k)
    if not len(jumps) or abs(left - shared_numbers(least)) <= 1e-9 * left:
        c, total = nearest, least
    else:
        size = float(np.linalg.norm(shared_numbers(jumps)) / np.linalg.norm(shared_numbers(design)))
        residual = lambda q: fnp.log(at(size * fnp.exp(q))[1] / left)
        ratio = own("scipy.optimize").brentq(residual, -25.0, 25.0, xtol=1e-14)
        c, total = at(size * fnp.exp(ratio))
    return t, (c if y.ndim == 2 else c[:, 0]), total


def _fitted(task: int, x: Any, y: Any, w: Any, xb: Any, xe: Any, k: int, s: Any, t: Any) -> tuple[Any, Any, Any, int]:
    """Fit an interpolating spline, a smoothing spline, or with ``task`` -1 the least-squares one with knots ``t``.

    Returns:
        The knots, the coefficients, the sum of squared residuals, and FITPACK's code for how the spline was found.
    """
    if task == -1:
        knots = _clamped(xb, fnp.asarray(t)[k + 1 : len(t) - k - 1], xe, k)
        c, left = _nearest(x, y, w, knots, k)
    elif task == 0 and s == 0:
        knots, left = _interpolating_knots(x, k, xb, xe), 0.0
        c = _through(knots, k, x, y)
    else:
        knots, c, left = _smoothing(x, y, w, xb, xe, k, s)
    return knots, fnp.concatenate([c, np.zeros((k + 1, *c.shape[1:]))]), left, 0 if task or s else -1


def _curfit(
    task: int, x: Any, y: Any, w: Any, t: Any, wrk: Any, iwrk: Any, xb: Any, xe: Any, k: int, s: Any
) -> tuple[int, Any, Any, int]:
    """Compute ``dfitpack.curfit``, which writes the knots to ``t``."""
    knots, c, left, told = _fitted(task, x, y, w, xb, xe, k, s, t)
    t[: len(knots)] = knots
    return len(knots), c, left, told


def _fitpack_curfit(
    task: int, x: Any, y: Any, w: Any, xb: Any, xe: Any, k: int, s: Any, t: Any, wrk: Any, iwrk: Any
) -> tuple[int, Any, Any, Any, int]:
    """Compute ``_fitpack.curfit`` of SciPy 1.18, which returns the knots."""
    knots, c, left, told = _fitted(task, x, y, w, xb, xe, k, s, t)
    return len(knots), knots, c, left, told


def _fpcurf0(
    x: Any, y: Any, k: int, w: Any = None, xb: Any = None, xe: Any = None, s: Any = None, nest: Any = None
) -> tuple[Any, ...]:
    """Compute ``dfitpack.fpcurf0``, which ``InterpolatedUnivariateSpline`` calls: ``curfit`` with its arguments."""
    t, c, left, told = _fitted(0, x, y, w, xb, xe, k, len(x) if s is None else s, None)
    return x, y, w, xb, xe, k, s, len(t), t, c, left, None, None, told


def _fpcurfm1(x: Any, y: Any, k: int, t: Any, w: Any = None, xb: Any = None, xe: Any = None) -> tuple[Any, ...]:
    """Compute ``dfitpack.fpcurfm1``, which ``LSQUnivariateSpline`` calls."""
    t, c, left, told = _fitted(-1, x, y, w, xb, xe, k, -1, t)
    return x, y, w, xb, xe, k, -1.0, len(t), t, c, left, None, None, told


def _banded(a: Any, offset: Any, nc: int) -> Any:
    """Return the matrix whose rows ``a`` begin at the columns ``offset``."""
    columns = _common(offset)[:, None] + np.arange(a.shape[1])
    matrix = fnp.zeros((len(a), nc + a.shape[1]))
    matrix[np.arange(len(a))[:, None], columns] = a
    return matrix[:, :nc]


def _qr_reduce(a: Any, offset: Any, nc: int, y_w: Any, startrow: int = 1) -> None:
    """Compute ``_dierckx.qr_reduce``: write R to ``a``, whose rows begin at ``offset``, and Q^T y to ``y_w``."""
    q, r = fnp.linalg.qr(_banded(a, offset, nc))
    up = fnp.where(fnp.diagonal(r) < 0, -1.0, 1.0)  # FITPACK's rotations leave a positive diagonal
    wide = fnp.pad(r * up[:, None], [(0, 0), (0, a.shape[1])])
    a[:nc] = wide[np.arange(nc)[:, None], np.arange(nc)[:, None] + np.arange(a.shape[1])]
    a[nc:] = 0.0
    y_w[:nc] = (q * up).T @ y_w
    offset[:nc] = np.arange(nc)


def _fpback(a: Any, nc: int, *given: Any) -> Any:
    """Compute ``_dierckx.fpback``: the least-squares coefficients and, since SciPy 1.17, the squared residuals."""
    c = fnp.linalg.solve(_banded(a[:nc], np.arange(nc), nc), given[-1][:nc])
    if len(given) == 1:
        return c
    x, y, t, k, w, _ = given
    each = fnp.sum((w[:, None] * (y - _design(t, k, x) @ c)) ** 2, axis=1)
    return c, each, fnp.sum(each)


def _common(places: Any) -> Any:
    """Return indices of pieces, which all examples of a ``vmap`` must share."""
    values, shape = concrete_or_none(places), np.shape(places)
    if values is not None and values.shape != shape:
        every = values.reshape(-1, *shape)
        if (every == every[:1]).all():
            return every[0]
    return np.asarray(shared_numbers(places))


def _find_interval(t: Any, k: int, x: Any, start: int, extrapolate: bool) -> int:
    find = import_scipy("interpolate.make_interp_spline", "scipy.interpolate._dierckx").find_interval
    place: int = find(np.ascontiguousarray(shared_numbers(t)), k, float(shared_numbers(x)), start, extrapolate)
    return place


def _all_splines(t: Any, k: int, x: Any, place: int, nu: int = 0) -> Any:
    """Compute ``_dierckx.evaluate_all_bspl``: derivatives of the B-splines that are not zero in a piece.

    In the piece after the last one, the last of these B-splines ends behind the knots, at any point.
    """
    missing = place + k + 2 - len(t)
    t = fnp.concatenate([t, t[-1] + np.arange(1.0, missing + 1)]) if missing > 0 else t
    return spline(t, np.eye(len(t) - k - 1)[:, place - k : place + 1], k, fnp.reshape(x, (1,)), nu, True)[0]


def _next_knot(x: Any, t: Any, k: int, left: Any) -> Any:
    """Compute ``_dierckx.fpknot``: the point that becomes a knot, where the residuals are largest."""
    choose = import_scipy("interpolate.generate_knots", "scipy.interpolate._dierckx").fpknot
    given = [np.ascontiguousarray(shared_numbers(each)) for each in (x, t, left)]
    return fnp.asarray(x)[int(np.searchsorted(given[0], choose(given[0], given[1], k, given[2])))]


def _rows(x: Any, t: Any, k: int) -> tuple[Any, Any]:
    """Return the ``k + 1`` B-splines that are not zero at each point, and the index of the first of them."""
    t = fnp.asarray(t)
    place = fnp.clip(fnp.searchsorted(t, x, "right") - 1, k, len(t) - k - 2)
    return fnp.stack(basis(t, k, x, place), axis=-1), _common(place) - k


def _data_matrix(x: Any, t: Any, k: int, w: Any, extrapolate: bool = False) -> tuple[Any, Any, int]:
    """Compute ``_dierckx.data_matrix``: the matrix of B-splines at points, without its zeros."""
    rows, offset = _rows(x, t, k)
    return w[:, None] * rows, offset, len(t) - k - 1


def _coloc(x: Any, t: Any, k: int, ab: Any, offset: int = 0) -> None:
    """Compute ``_dierckx._coloc``: the matrix of B-splines at points, as diagonals in the columns of ``ab``."""
    rows, first = _rows(x, t, k)
    for a in range(k + 1):
        columns = first + a
        ab[columns, 2 * k + np.arange(len(first)) + offset - columns] = rows[:, a]


def _sproot(t: Any, c: Any, mest: int = 0) -> tuple[Any, int, int]:
    """Compute ``dfitpack.sproot``: the zeros of a cubic spline. Two Newton steps give them derivatives."""
    t, c = fnp.asarray(t), fnp.asarray(c)
    root = import_scipy("interpolate.sproot", "scipy.interpolate").sproot(
        (shared_numbers(t), shared_numbers(c), 3), mest
    )
    for _ in range(2):
        value, slope = (spline(t, c[:, None], 3, root, nu, True)[:, 0] for nu in (0, 1))
        root = root - value / slope
    return root, root.shape[0], 0


def _fpchec(*given: Any) -> int:
    """Call ``_fitpack.fpchec``, before SciPy 1.18 ``dfitpack.fpchec``: 0 if the knots suit the points."""
    name = "scipy.interpolate._fitpack"
    module = import_scipy("interpolate.LSQUnivariateSpline", name)
    if not hasattr(module, "fpchec"):
        module = import_scipy("interpolate.LSQUnivariateSpline", name.replace("_fitpack", "_dfitpack"))
    told: int = module.fpchec(*[shared_numbers(x) if fnp.ndim(x) else x for x in given])
    return told


def _dblint(tx: Any, ty: Any, c: Any, kx: int, ky: int, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
    """Compute ``dfitpack.dblint``: the integral of a spline of two variables over a rectangle."""
    nx, ny = len(tx) - kx - 1, len(ty) - ky - 1
    of_x = _integrals(tx, fnp.reshape(fnp.asarray(c)[: nx * ny], (nx, ny)), kx, xa, xb)
    return _integrals(ty, of_x, ky, ya, yb)[0]


def _parcur(
    x: Any,
    w: Any,
    u: Any,
    ub: Any,
    ue: Any,
    k: int,
    task: int,
    ipar: Any,
    s: Any,
    t: Any,
    nest: int,
    wrk: Any,
    iwrk: Any,
    per: Any,
) -> tuple[Any, Any, dict[str, Any]]:
    """Compute ``_fitpack._parcur``: a curve through or near points, parametrised by the length of its chords."""
    points = fnp.reshape(x, (len(u), -1))
    if per:
        raise ConversionError("interpolate.splprep: a curve through traced values cannot be periodic. Pass per=False.")
    if not ipar:
        run = fnp.cumsum(fnp.sqrt(fnp.sum(fnp.diff(points, axis=0) ** 2, axis=1)))
        u = fnp.concatenate([np.zeros(1), run / run[-1]])
        ub, ue = 0.0, 1.0
    knots, c, left, told = _fitted(task, u, points, w, ub, ue, k, s, t)
    c = fnp.ravel(c[: len(knots) - k - 1].T)
    return knots, c, {"u": u, "ub": ub, "ue": ue, "wrk": wrk, "iwrk": iwrk, "ier": told, "fp": left}


def _norm_eq_lsq(x: Any, t: Any, k: int, y: Any, w: Any, ab: Any, rhs: Any) -> None:
    """Compute ``_dierckx._norm_eq_lsq``: the normal equations of the least-squares spline, diagonals in columns."""
    matrix = _design(t, k, x)
    weighted = matrix * (w * w)[:, None]
    square = weighted.T @ matrix
    for d in range(k + 1):
        ab[: len(ab) - d, d] = fnp.diagonal(square, -d)
    rhs[...] = weighted.T @ y


def _insert(per: Any, t: Any, c: Any, k: int, x: Any, m: int) -> tuple[Any, Any, int]:
    """Compute ``_fitpack._insert``: the same spline with ``m`` more knots at ``x``, by Boehm's formula."""
    t = fnp.asarray(t) * 1.0
    c = fnp.asarray(c)[: len(t) - k - 1]
    for _ in range(m):
        last = operator.index(fnp.clip(fnp.searchsorted(t, x, "right") - 1, k, len(t) - k - 2))
        knots, ends = t[last - k + 1 : last + 1], t[last + 1 : last + k + 1]
        share = (x - knots) / (ends - knots)
        between = share * c[last - k + 1 : last + 1] + (1 - share) * c[last - k : last]
        c = fnp.concatenate([c[: last - k + 1], between, c[last:]])
        t = fnp.concatenate([t[: last + 1], fnp.reshape(x * 1.0, (1,)), t[last + 1 :]])
        if per:
            t, c = _closed(t, c, k, last + 1)
    return t, fnp.concatenate([c, np.zeros(k + 1)]), 0


def _closed(t: Any, c: Any, k: int, new: int) -> tuple[Any, Any]:
    """Repeat the knot ``t[new]`` of a periodic spline, and the coefficients that it changed, at the other end."""
    end = len(t) - k - 1
    period, first = t[end] - t[k], len(c) - k
    if new >= first:
        return fnp.concatenate([t[end - k : end] - period, t[k:]]), fnp.concatenate([c[first:], c[k:]])
    if new <= 2 * k:
        return fnp.concatenate([t[: end + 1], t[k + 1 : 2 * k + 1] + period]), fnp.concatenate([c[:first], c[:k]])
    return t, c


def _surface(tx: Any, ty: Any, c: Any, kx: int, ky: int, dx: int, dy: int, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return the B-splines of each axis at the points, clipped to the knots, and the matrix of coefficients."""

    def along(t: Any, k: int, at: Any, nu: int) -> Any:
        return _design(t, k, fnp.clip(fnp.atleast_1d(at), t[k], t[len(t) - k - 1]), nu)

    shape = len(tx) - kx - 1, len(ty) - ky - 1
    return along(tx, kx, x, dx), along(ty, ky, y, dy), fnp.reshape(fnp.asarray(c)[: shape[0] * shape[1]], shape)


def _parder(tx: Any, ty: Any, c: Any, kx: int, ky: int, dx: int, dy: int, x: Any, y: Any) -> tuple[Any, int]:
    """Compute ``dfitpack.parder``: a partial derivative of a spline of two variables on a grid."""
    of_x, of_y, matrix = _surface(tx, ty, c, kx, ky, dx, dy, x, y)
    return of_x @ matrix @ of_y.T, 0


def _pardeu(tx: Any, ty: Any, c: Any, kx: int, ky: int, dx: int, dy: int, x: Any, y: Any) -> tuple[Any, int]:
    """Compute ``dfitpack.pardeu``: a partial derivative of a spline of two variables at points."""
    of_x, of_y, matrix = _surface(tx, ty, c, kx, ky, dx, dy, x, y)
    return fnp.sum(of_x @ matrix * of_y, axis=1), 0


def _bispev(tx: Any, ty: Any, c: Any, kx: int, ky: int, x: Any, y: Any) -> tuple[Any, int]:
    """Compute ``dfitpack.bispev``: a spline of two variables on a grid."""
    return _parder(tx, ty, c, kx, ky, 0, 0, x, y)


def _bispeu(tx: Any, ty: Any, c: Any, kx: int, ky: int, x: Any, y: Any) -> tuple[Any, int]:
    """Compute ``dfitpack.bispeu``: a spline of two variables at points."""
    return _pardeu(tx, ty, c, kx, ky, 0, 0, x, y)


def _regrid(
    x: Any,
    y: Any,
    z: Any,
    xb: Any = None,
    xe: Any = None,
    yb: Any = None,
    ye: Any = None,
    kx: int = 3,
    ky: int = 3,
    s: Any = 0.0,
    maxit: int = 20,
) -> tuple[Any, ...]:
    """Compute ``dfitpack.regrid_smth``: the interpolating spline of two variables for values on a grid."""
    if s != 0:
        raise ConversionError(
            f"scipy.interpolate: FITPACK chooses the knots of a smoothing surface by the data, which have no rule, "
            f"got s={s} and traced data. Pass s=0 to interpolate."
        )
    tx, ty = _interpolating_knots(x, kx, xb, xe), _interpolating_knots(y, ky, yb, ye)
    along_x = _through(tx, kx, x, fnp.reshape(z, (len(x), len(y))))
    c = _through(ty, ky, y, along_x.T).T
    return len(tx), tx, len(ty), ty, fnp.ravel(c), 0.0, -1


def real_roots(c: Any, x: Any, y: Any, report_discont: bool, extrapolate: bool) -> list[Any]:
    """Compute ``_ppoly.real_roots``: where piecewise polynomials equal ``y``, one array for each column of ``c``.

    SciPy finds the roots. Two Newton steps from there leave the roots where they are and give them derivatives.
    A double root moves with the square root of a change, so its derivatives are infinite or NaN.
    """
    plain_c, knots = [np.ascontiguousarray(known_value(a, "PPoly.solve")) for a in (c, x)]
    level = float(known_value(y, "PPoly.solve"))
    find = import_scipy("interpolate.PPoly.solve", "scipy.interpolate._ppoly").real_roots
    found = []
    for column, start in enumerate(find(plain_c, knots, level, report_discont, extrapolate)):
        piece = np.asarray(piece_of(start, knots, True)[0])
        of_piece, left = fnp.asarray(c)[:, piece, column], fnp.asarray(x)[piece]
        crosses, root = None, start
        for _ in range(2):
            value, slope = -1.0 * y, 0.0
            s = root - left
            for power, row in enumerate(of_piece[::-1]):
                value, slope = value + row * s**power, slope + (power * row * s ** (power - 1) if power else 0.0)
            if crosses is None:  # a root at a jump of the curve does not move with the values
                largest = abs(plain_c[-1, :, column]).max(initial=0)
                crosses = abs(np.asarray(known_value(value, "PPoly.solve"))) <= 1e-6 * (abs(level) + largest)
            double = crosses & (np.asarray(known_value(slope, "PPoly.solve")) == 0.0)
            root = root - fnp.where(crosses, value / fnp.where(crosses & ~double, slope, 1.0), 0.0)
            if double.any():
                change = fnp.where(double, value - known_value(value, "PPoly.solve"), 1.0)
                root = root + fnp.where(double, fnp.sqrt(change), 0.0)
        found.append(root)
    return found


def surface(points: Any, values: Any, xi: Any, bounds_error: bool, fill_value: Any) -> Any:
    """Compute ``scipy.interpolate.interpn`` for "splinef2d", the interpolating spline of two variables.

    Raises:
        ValueError: not two axes, extrapolation without ``fill_value``, or points outside of the grid.
    """
    values = fnp.asarray(values)
    if len(points) != 2 or values.ndim != 2:
        raise ValueError("The method splinef2d can only be used for scalar data with one point per coordinate")
    if not bounds_error and fill_value is None:
        raise ValueError("The method splinef2d does not support extrapolation.")
    grid = [np.asarray(axis, float) for axis in points]
    xi = _coordinates(xi, ndim=2)
    columns = xi.reshape(-1, 2).T
    inside = [(axis[0] <= x) & (x <= axis[-1]) for axis, x in zip(grid, columns, strict=True)]
    for i, each in enumerate(inside):
        if bounds_error and not fnp.all(each):
            raise ValueError(f"One of the requested xi is out of bounds in dimension {i}")
    _, tx, _, ty, c, _, _ = _regrid(grid[0], grid[1], values)
    held = [fnp.where(each, x, axis[0]) for each, axis, x in zip(inside, grid, columns, strict=True)]
    found = fnp.where(inside[0] & inside[1], _bispeu(tx, ty, c, 3, 3, *held)[0], fill_value)
    return found.reshape(xi.shape[:-1])


def _ndbspline(self: Any, xi: Any, *, nu: Any = None, extrapolate: Any = None) -> Any:
    """Compute ``NdBSpline.__call__``: a tensor product of splines, summed axis by axis."""
    extrapolate, ndim = self.extrapolate if extrapolate is None else extrapolate, len(self.t)
    xi = fnp.asarray(xi, dtype=float)
    if xi.shape[-1] != ndim:
        raise ValueError(f"Shapes: xi.shape={xi.shape} and ndim={ndim}")
    columns = xi.reshape(-1, ndim).T
    value: Any = fnp.asarray(self.c)
    outside: Any = False
    for axis, (t, k, x, order) in enumerate(
        zip(self.t, self.k, columns, [0] * ndim if nu is None else nu, strict=True)
    ):
        splines = _design(t, int(k), x, int(order))
        value = fnp.einsum("pn,pn...->p..." if axis else "pn,n...->p...", splines, value)
        outside = outside | (x < t[k]) | (x > t[len(t) - k - 1])
    value = value if extrapolate else fnp.where(outside.reshape(-1, *[1] * (value.ndim - 1)), np.nan, value)
    return value.reshape(*xi.shape[:-1], *value.shape[1:])


def _of_real(fun: Callable[..., Any], *, drops: bool = True) -> Callable[..., Any]:
    """Return a function of FITPACK that ``drops`` imaginary parts, as before SciPy 1.18, or refuses complex numbers."""

    def is_complex(x: Any) -> bool:
        return getattr(getattr(x, "dtype", None), "kind", "") == "c"

    def real(x: Any) -> Any:
        return fnp.real(x) if is_complex(x) else x

    def call(*args: Any, **kwargs: Any) -> Any:
        if not drops and (found := list(filter(is_complex, args))):
            raise InputError(
                f"scipy.interpolate: numbers must be real, got {describe(found[0])}. Take both parts apart."
            )
        return fun(*map(real, args), **{name: real(x) for name, x in kwargs.items()})

    return call


_real_only = partial(_of_real, drops=False)


def _pchip_slopes(x: Any, y: Any, xp: Any = None) -> Any:
    """Compute ``PchipInterpolator._find_derivatives`` in classes derived from it; ``x`` has as many axes as ``y``."""
    h = fnp.diff(x, axis=0)
    return own("scipy.interpolate.curves").monotone_slopes(h, fnp.diff(y, axis=0) / h)


#: FITPACK's functions that have the same names in SciPy 1.18 and before, in different modules.
_FITPACK: dict[str, Callable[..., Any]] = {
    "bispeu": _bispeu,
    "bispev": _bispev,
    "dblint": _dblint,
    "fpchec": _fpchec,
    "pardeu": _pardeu,
    "parder": _parder,
    "spalde": _spalde,
    "splev": lambda t, c, k, x, ext=0: _splder(t, c, k, x, 0, ext),
    "sproot": _sproot,
}
#: FITPACK's functions by the names of the wrapper before SciPy 1.18.
_DFITPACK: dict[str, Callable[..., Any]] = {
    **_FITPACK,
    "curfit": _curfit,
    "fpcurf0": _fpcurf0,
    "fpcurfm1": _fpcurfm1,
    "regrid_smth": _regrid,
    "splder": _splder,
    "splint": lambda *args: (_integrals(*args)[0], None),
}

SPLINES: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.interpolate._cubic", "PchipInterpolator._find_derivatives"): _pchip_slopes,
    ("scipy.interpolate._ppoly", "evaluate"): _evaluate,
    ("scipy.interpolate._ppoly", "evaluate_bernstein"): _bernstein,
    ("scipy.interpolate._ppoly", "evaluate_nd"): _evaluate_nd,
    ("scipy.interpolate._ppoly", "integrate"): _integrate,
    ("scipy.interpolate._ppoly", "fix_continuity"): _fix_continuity,
    ("scipy.interpolate._ppoly", "real_roots"): real_roots,
    ("scipy.interpolate._dierckx", "evaluate_spline"): _evaluate_spline,
    ("scipy.interpolate._dierckx", "_coloc"): _coloc,
    ("scipy.interpolate._dierckx", "_norm_eq_lsq"): _norm_eq_lsq,
    ("scipy.interpolate._dierckx", "data_matrix"): _data_matrix,
    ("scipy.interpolate._dierckx", "evaluate_all_bspl"): _all_splines,
    ("scipy.interpolate._dierckx", "find_interval"): _find_interval,
    ("scipy.interpolate._dierckx", "fpknot"): _next_knot,
    ("scipy.interpolate._dierckx", "fpback"): _fpback,
    ("scipy.interpolate._dierckx", "qr_reduce"): _qr_reduce,
    ("scipy.interpolate._interpnd", "_ndim_coords_from_arrays"): _coordinates,
    ("scipy.interpolate._fitpack", "_insert"): _real_only(_insert),
    ("scipy.interpolate._fitpack", "_parcur"): _real_only(_parcur),
    # with the names, order of arguments and results of SciPy 1.18, as in the next five lines
    ("scipy.interpolate._fitpack", "insert"): _real_only(_insert),
    ("scipy.interpolate._fitpack", "parcur"): _real_only(_parcur),
    ("scipy.interpolate._fitpack", "curfit"): _real_only(_fitpack_curfit),
    ("scipy.interpolate._fitpack", "regrid"): _real_only(lambda task, *args: _regrid(*args[:10])),
    ("scipy.interpolate._fitpack", "splder"): _of_real(
        lambda t, c, k, nu, x, ext=0: _splder(t, c, k, x, nu, ext), drops=False
    ),
    ("scipy.interpolate._fitpack", "splint"): _real_only(lambda *args: _integrals(*args)[0]),
    ("scipy.interpolate._ndbspline", "NdBSpline.__call__"): _ndbspline,
    **{("scipy.interpolate._fitpack", name): _real_only(ours) for name, ours in _FITPACK.items()},
    **{("scipy.interpolate._dfitpack", name): _of_real(ours) for name, ours in _DFITPACK.items()},
}
