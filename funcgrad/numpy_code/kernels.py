"""What SciPy has compiled, with derivatives: its own Python code, built anew, calls these functions.

Each has the arguments of the compiled function, results that it writes to among them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import describe
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.distributions import DISTRIBUTIONS
from funcgrad.numpy_code.minima import MINIMA
from funcgrad.optional import import_scipy

__all__ = ["PYTHONS", "kernel"]


def _piece(x: Any, knots: Any, extrapolate: bool) -> tuple[Any, Any]:
    """The number of the piece that each point lies in, and whether it lies outside of all."""
    knots = np.asarray(knots)
    inside = fnp.searchsorted(knots, x, "right") - 1
    outside = fnp.logical_or(fnp.logical_or(x < knots[0], x > knots[-1]), fnp.isnan(x))
    return fnp.clip(inside, 0, len(knots) - 2), fnp.logical_and(outside, not extrapolate)


def _powers(c: Any, s: Any, order: int, nu: int) -> Any:
    """The ``nu``-th derivative (integral, where negative) of polynomials with ``order`` coefficients, highest first."""
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


def _evaluate(c: Any, knots: Any, x: Any, nu: int, extrapolate: Any, out: Any) -> None:
    """``_ppoly.evaluate``: piecewise polynomials ``c[k, piece, n]`` at ``x``."""
    place, outside = _piece(x, knots, bool(extrapolate))
    s = x - fnp.take(knots, place)
    value = _powers([fnp.take(row, place, axis=0) for row in c], s[:, None], len(c), nu)
    value = fnp.where(outside[:, None], np.nan, value)
    out[...] = fnp.broadcast_to(value, out.shape)


def _bernstein(c: Any, knots: Any, x: Any, nu: int, extrapolate: Any, out: Any) -> None:
    """``_ppoly.evaluate_bernstein``: piecewise polynomials ``c[k, piece, n]`` in Bernstein's basis at ``x``."""
    place, outside = _piece(x, knots, bool(extrapolate))
    knots = np.asarray(knots)
    width = (knots[place + 1] - knots[place])[:, None]
    rows = [fnp.take(row, place, axis=0) for row in c]
    for _ in range(nu):
        rows = [(len(rows) - 1) / width * (after - before) for before, after in pairwise(rows)]
    s = (x - knots[place])[:, None] / width
    while len(rows) > 1:  # de Casteljau's way
        rows = [before * (1 - s) + after * s for before, after in pairwise(rows)]
    value = fnp.where(outside[:, None], np.nan, rows[0] if rows else 0.0)
    out[...] = fnp.broadcast_to(value, out.shape)


def _integrate(c: Any, knots: Any, a: Any, b: Any, extrapolate: Any, out: Any) -> None:
    """``_ppoly.integrate``: the integral from ``a`` to ``b``, which is not smaller."""
    knots = np.asarray(knots)
    (first, last), outside = _piece(fnp.stack([a * 1.0, b * 1.0]), knots, bool(extrapolate))
    total = fnp.zeros(out.shape)
    for n in range(int(first), int(last) + 1):
        low = a if n == int(first) else knots[n]
        high = b if n == int(last) else knots[n + 1]
        rows = [row[n] for row in c]
        total = total + _powers(rows, high - knots[n], len(c), -1) - _powers(rows, low - knots[n], len(c), -1)
    out[...] = fnp.where(fnp.any(outside), np.nan, total)


def _fix_continuity(c: Any, knots: Any, order: int) -> None:
    """``_ppoly.fix_continuity``: lower coefficients such that derivatives up to ``order`` pass from piece to piece."""
    k = len(c)
    knots = np.asarray(knots)
    for n in range(1, c.shape[1]):
        s = knots[n] - knots[n - 1]
        for nu in range(order, -1, -1):
            value = _powers([c[i, n - 1] for i in range(k)], s, k, nu)
            factor = 1.0
            for j in range(2, nu + 1):
                factor *= j
            c[k - nu - 1, n] = value / factor


def _basis(t: Any, k: int, x: Any, place: Any) -> list[Any]:
    """The ``k + 1`` B-splines that are not zero in the piece ``place``, by the formula of de Boor and Cox."""
    values = [fnp.ones_like(x)]
    for degree in range(1, k + 1):
        saved: Any = 0.0
        new = []
        for r in range(degree):
            right, left = np.asarray(t)[place + r + 1], np.asarray(t)[place + 1 - degree + r]
            part = values[r] / fnp.where(right == left, 1.0, right - left)
            new.append(saved + (right - x) * part)
            saved = (x - left) * part
        values = [*new, saved]
    return values


def _spline(t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: Any) -> Any:
    """``_dierckx.evaluate_spline``: splines with coefficients ``c[i, n]`` at ``x``."""
    t, c = np.asarray(t), c[: len(t) - k - 1]
    for degree in range(k, k - nu, -1):
        widths = t[degree + 1 : len(t) - 1] - t[1 : len(t) - degree - 1]
        c = degree * (c[1:] - c[:-1]) / fnp.where(widths == 0, 1.0, widths)[:, None]
        t = t[1:-1]
    k = k - nu
    if k < 0:
        return fnp.zeros((len(x), c.shape[1]))
    n = len(t) - k - 1
    place = fnp.clip(fnp.searchsorted(t, x, "right") - 1, k, n - 1)
    place = np.asarray(place)
    values = _basis(t, k, x, place)
    out = sum([fnp.take(c, place - k + j, axis=0) * values[j][:, None] for j in range(k + 1)])
    outside = fnp.logical_or(x < t[k], x > t[n])
    return out if extrapolate else fnp.where(outside[:, None], np.nan, out)


def _splev(t: Any, c: Any, k: int, x: Any, ext: int = 0) -> tuple[Any, int]:
    return _splder(t, c, k, x, 0, ext)


def _splder(t: Any, c: Any, k: int, x: Any, nu: int, ext: int = 0) -> tuple[Any, int]:
    """``dfitpack.splder``: what is outside is as ``ext`` says: extrapolated, zero, an error, or the boundary's."""
    t = np.asarray(t)
    low, high = t[k], t[len(t) - k - 1]
    outside = fnp.logical_or(x < low, x > high)
    if ext == 2 and fnp.any(outside):
        return x, 1
    at = fnp.clip(x, low, high) if ext == 3 else x
    value = _spline(t, fnp.asarray(c)[:, None], k, at, nu, True)[:, 0]
    return (fnp.where(outside, 0.0, value) if ext == 1 else value), 0


def _spalde(t: Any, c: Any, k1: int, x: Any) -> tuple[Any, int]:
    """``dfitpack.spalde``: a spline at a point with all of its derivatives."""
    at = fnp.reshape(x, (1,))
    return fnp.stack([_spline(t, fnp.asarray(c)[:, None], k1 - 1, at, nu, True)[0, 0] for nu in range(k1)]), 0


def _splint(t: Any, c: Any, k: int, a: Any, b: Any) -> tuple[Any, Any]:
    """``dfitpack.splint``: the integral of a spline, which is zero outside of its knots."""
    t = np.asarray(t)
    n = len(t) - k - 1
    widths = (t[k + 1 : k + 1 + n] - t[:n]) / (k + 1)
    sums = fnp.concatenate([np.zeros(1), fnp.cumsum(fnp.asarray(c)[:n] * widths)])
    knots = np.concatenate([t[:1], t, t[-1:]])
    ends = fnp.clip(fnp.stack([a * 1.0, b * 1.0]), t[k], t[n])
    low, high = _spline(knots, sums[:, None], k + 1, ends, 0, True)[:, 0]
    return high - low, None


def _fitpack_splder(t: Any, c: Any, k: int, nu: int, x: Any, ext: int = 0) -> tuple[Any, int]:
    """``_fitpack.splder`` of SciPy 1.18, with another order of the arguments."""
    return _splder(t, c, k, x, nu, ext)


def _fitpack_splint(t: Any, c: Any, k: int, a: Any, b: Any) -> Any:
    """``_fitpack.splint`` of SciPy 1.18, which gives the integral alone."""
    return _splint(t, c, k, a, b)[0]


def _coordinates(points: Any, ndim: Any = None) -> Any:
    """``_interpnd._ndim_coords_from_arrays``: points from arrays of coordinates."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return fnp.stack(fnp.broadcast_arrays(*points), axis=-1)
    points = fnp.asarray(points)
    if points.ndim == 1:
        return points.reshape(-1, 1) if ndim is None else points.reshape(-1, ndim)
    return points


class _At:
    """``array_api_extra.at(x, idx).set(y)``: a new array with other values at some places."""

    def __init__(self, x: Any, idx: Any = None, /) -> None:
        self.x, self.idx = x, idx

    def __getitem__(self, idx: Any) -> _At:
        return _At(self.x, idx)


def _updating(name: str) -> Callable[..., Any]:
    def update(self: _At, y: Any, /, copy: bool | None = None, xp: Any = None) -> Any:
        return getattr(fnp.at(self.x)[self.idx], name)(y)

    return update


for _name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):
    setattr(_At, _name, _updating(_name))


def _nquad(
    func: Callable[..., Any], ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False
) -> tuple[Any, Any]:
    """``scipy.integrate.nquad``: integrals inside of integrals, the last variable being that of the outermost."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    quad = import_module("funcgrad.scipy.integrate").quad

    def level(i: int, outer: tuple[Any, ...]) -> Any:
        limits = ranges[i](*outer, *args) if callable(ranges[i]) else ranges[i]
        given = opts[i] if isinstance(opts, (list, tuple)) else opts or {}
        options = given(*outer, *args) if callable(given) else given

        def inner(x: Any) -> Any:
            return func(x, *outer, *args) if i == 0 else level(i - 1, (x, *outer))[0]

        return quad(inner, *limits, **options)

    found: tuple[Any, Any] = level(len(ranges) - 1, ())[:2]
    return found


def _namespace(*arrays: Any, **options: Any) -> Any:
    """``array_namespace``, by which SciPy asks arrays for their functions: traced, NumPy's and JAX's are of one."""
    return fnp


def _interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """``scipy.interpolate.interpn``."""
    table = import_module("funcgrad.scipy.interpolate").RegularGridInterpolator
    return table(points, values, method, bounds_error, fill_value)(xi)


def _upfirdn(
    h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: float = 0
) -> Any:
    """``scipy.signal.upfirdn``: zeros between the samples, a filter, and every so many samples of what it gives."""
    if mode not in ("constant", None) or cval != 0:
        raise ConversionError(
            f"signal.upfirdn: traced values can only be extended by zeros, got mode={mode!r} and cval={cval}. Pad them "
            "before."
        )
    h, x = fnp.asarray(h), fnp.moveaxis(fnp.asarray(x), axis, -1)
    n = x.shape[-1]
    wide = fnp.zeros((*x.shape[:-1], (n - 1) * up + 1), fnp.result_type(x, h))
    wide[..., ::up] = x
    size = wide.shape[-1] + len(h) - 1
    padded = fnp.pad(wide, [(0, 0)] * (x.ndim - 1) + [(len(h) - 1, len(h) - 1)])
    windows = fnp.lib.stride_tricks.sliding_window_view(padded, len(h), axis=-1)
    return fnp.moveaxis((windows @ h[::-1])[..., :size:down], -1, axis)


def _dense(ab: Any, below: int, above: int, n: int) -> Any:
    """The matrix whose diagonals are the rows of ``ab``, as LAPACK stores them."""
    full = fnp.zeros((n, n), fnp.result_type(ab, 1.0))
    for j in range(-below, above + 1):
        length = n - abs(j)
        rows = np.arange(length) + max(-j, 0)
        full[rows, rows + j] = ab[above - j, max(j, 0) : max(j, 0) + length]
    return full


def _gbsv(kl: int, ku: int, ab: Any, b: Any, **options: Any) -> tuple[Any, Any, Any, int]:
    """LAPACK's ``gbsv``: a system with a banded matrix. The factors, which SciPy does not use, are not given."""
    return None, None, fnp.linalg.solve(_dense(ab[kl:], kl, ku, ab.shape[1]), b), 0


def _symmetric(ab: Any, lower: int) -> Any:
    k, n = ab.shape[0] - 1, ab.shape[1]
    half = _dense(ab, k, 0, n) if lower else _dense(ab, 0, k, n)
    return half + half.T - fnp.diag(fnp.diag(half))


def _pbtrf(ab: Any, lower: int = 0, **options: Any) -> tuple[Any, int]:
    """LAPACK's ``pbtrf``: the Cholesky factor of a banded matrix, its diagonals as rows."""
    k, n = ab.shape[0] - 1, ab.shape[1]
    factor = fnp.linalg.cholesky(_symmetric(ab, lower))
    out = fnp.zeros(ab.shape)
    for j in range(k + 1):
        if lower:
            out[j, : n - j] = fnp.diagonal(factor, -j)
        else:
            out[k - j, j:] = fnp.diagonal(factor, -j)
    return out, 0


def _sbevd(ab: Any, compute_v: int = 1, lower: int = 0, **options: Any) -> tuple[Any, Any, int]:
    """LAPACK's ``sbevd``: the eigenvalues of a symmetric banded matrix."""
    values, vectors = fnp.linalg.eigh(_symmetric(ab, lower))
    return values, vectors, 0


def _siegel(y: Any, x: Any, method: str) -> tuple[Any, Any]:
    """``_stats_pythran.siegelslopes``: the median over the points of the median slope to the other points.

    Pairs with the same ``x`` are left out before they are divided: a NaN in their place, as SciPy 1.18 has it, would
    make the derivative NaN.
    """
    y, x = fnp.asarray(y), fnp.asarray(x)
    run = x[:, None] - x
    same = run == 0
    slopes = (y[:, None] - y) / fnp.where(same, 1.0, run)

    def middle(of_pairs: Any) -> Any:
        return fnp.median(fnp.nanmedian(fnp.where(same, np.nan, of_pairs), axis=-1))

    slope = middle(slopes)
    if method == "hierarchical":
        return slope, fnp.median(y - slope * x)
    return slope, middle(y[:, None] - slopes * x[:, None])


def _siegelslopes(y: Any, x: Any = None, method: str = "hierarchical", **options: Any) -> Any:
    """``scipy.stats.siegelslopes`` of SciPy 1.18, of vectors."""
    y = fnp.asarray(y) * 1.0
    x = fnp.arange(float(len(y))) if x is None else fnp.asarray(x) * 1.0
    given = {name: value for name, value in options.items() if value not in (None, "propagate", False)}
    if given or y.ndim != 1 or x.shape != y.shape or len(y) < 2 or method not in ("hierarchical", "separate"):
        raise ConversionError(
            "stats.siegelslopes: traced values must be two vectors of one length, of two points at least, got "
            f"{describe(y)} and {describe(x)} with method={method!r} and {given}. Call it for each vector."
        )
    return import_scipy("stats.siegelslopes", "scipy.stats._correlation").SiegelslopesResult(*_siegel(y, x, method))


_KERNELS: dict[tuple[str, str], Callable[..., Any]] = {
    **DISTRIBUTIONS,
    **MINIMA,
    ("scipy._lib._array_api", "array_namespace"): _namespace,
    ("scipy._lib.array_api_extra._lib._at", "at"): _At,
    ("scipy._external.array_api_extra._lib._at", "at"): _At,  # where SciPy 1.18 keeps it
    ("scipy.integrate._quadpack_py", "nquad"): _nquad,
    ("scipy.interpolate._rgi", "interpn"): _interpn,
    ("scipy.linalg._flapack", "dgbsv"): _gbsv,
    ("scipy.linalg._flapack", "dpbtrf"): _pbtrf,
    ("scipy.linalg._flapack", "dsbevd"): _sbevd,
    ("scipy.signal._upfirdn", "upfirdn"): _upfirdn,
    ("scipy.stats._stats_pythran", "siegelslopes"): _siegel,
    ("scipy.stats._correlation", "siegelslopes"): _siegelslopes,  # which SciPy has in Python since 1.18
    ("scipy.interpolate._ppoly", "evaluate"): _evaluate,
    ("scipy.interpolate._ppoly", "evaluate_bernstein"): _bernstein,
    ("scipy.interpolate._ppoly", "integrate"): _integrate,
    ("scipy.interpolate._ppoly", "fix_continuity"): _fix_continuity,
    ("scipy.interpolate._dierckx", "evaluate_spline"): _spline,
    ("scipy.interpolate._dfitpack", "splev"): _splev,
    ("scipy.interpolate._dfitpack", "splder"): _splder,
    ("scipy.interpolate._dfitpack", "spalde"): _spalde,
    ("scipy.interpolate._dfitpack", "splint"): _splint,
    ("scipy.interpolate._fitpack", "splev"): _splev,  # with SciPy 1.18 this and the next two
    ("scipy.interpolate._fitpack", "splder"): _fitpack_splder,
    ("scipy.interpolate._fitpack", "splint"): _fitpack_splint,
    ("scipy.interpolate._interpnd", "_ndim_coords_from_arrays"): _coordinates,
}


#: Modules of SciPy some of whose Python functions are here, too.
PYTHONS = frozenset(
    (
        "scipy._lib._array_api",
        "scipy._lib._array_api_override",  # where newer versions define array_namespace
        "scipy.integrate._quadpack_py",
        "scipy.interpolate._rgi",
        "scipy.signal._upfirdn",
        "scipy.stats._correlation",
        *[module for module, _ in (*DISTRIBUTIONS, *MINIMA)],
    )
)


def kernel(fun: Any) -> Callable[..., Any] | None:
    """What computes the same as ``fun``, a compiled function of SciPy, with derivatives; None where nothing does."""
    for (module, name), ours in _KERNELS.items():
        owner: Any = sys.modules.get(module)
        for part in name.split("."):  # a method of a class may be meant
            owner = getattr(owner, part, None)
        if owner is fun:
            return ours
    return None
