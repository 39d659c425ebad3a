"""Curves through points: straight lines, steps, cubic splines, and cubics that overshoot less."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain
from funcgrad.numpy.reducing import as_double, as_inexact
from funcgrad.numpy_code import run_anywhere
from funcgrad.numpy_code.kernels.splines import real_roots
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.linalg.solving import solve_banded
from funcgrad.typing import Array, ArrayLike

__all__ = ["Akima1DInterpolator", "CubicSpline", "PchipInterpolator", "interp1d"]


def _knots(call: str, x: ArrayLike, y: ArrayLike, axis: int, *, real: bool = False) -> tuple[Array, Array]:
    """Check knots and values, which have to be ``real``; return the knots, and the values with their axis in front."""
    x, y = as_value(x), fnp.moveaxis(as_value(y), axis, 0)
    if len(backend.shape_of(x)) != 1 or backend.shape_of(x)[0] != backend.shape_of(y)[0]:
        raise ShapeError(
            f"{call}: x must be a vector as long as y along its axis, got {describe(x)} and {describe(y)}."
        )
    if backend.shape_of(x)[0] < 2:
        raise ShapeError(f"{call}: a curve needs at least two points, got {describe(x)}.")
    if backend.dtype_of(x).kind == "c" or (real and backend.dtype_of(y).kind == "c"):
        kept = "x and y" if real else "x"
        raise ShapeError(
            f"{call}: {kept} must be real, got {describe(x)} and {describe(y)}. Take real and imaginary parts."
        )
    if any_true(lambda x: ~(x[..., 1:] > x[..., :-1]), x):
        raise ShapeError(f"{call}: x must rise, got {describe(x)} that does not. Sort the points.")
    return x, y


def _column(x: Array, y: Array) -> Array:
    """Reshape the vector ``x`` so that it broadcasts along the first axis of ``y``."""
    return fnp.reshape(x, (*backend.shape_of(x), *[1] * (len(backend.shape_of(y)) - 1)))


def with_trailing_axes(q: Array, extra: int) -> Array:
    """Append ``extra`` axes of length 1 to ``q``."""
    return fnp.reshape(q, (*backend.shape_of(q), *[1] * extra))


def interval_of(x: Array, q: Array) -> Array:
    """Return the interval of each query; queries outside belong to the first or last interval."""
    return fnp.clip(fnp.searchsorted(x, q, side="right") - 1, 0, backend.shape_of(x)[0] - 2)


class _Curve:
    """Cubic polynomials between knots, from the slopes at the knots."""

    def __init__(self, x: Array, y: Array, slopes: Array, axis: int, extrapolate: bool | str) -> None:
        self.x, self.axis, self.extrapolate = x, axis, extrapolate
        h = _column(fnp.diff(x), y)
        rise = fnp.diff(y, axis=0) / h
        bend = (slopes[:-1] + slopes[1:] - 2.0 * rise) / h
        #: Coefficients of falling powers of the distance from the knot to the left, one row for each power.
        self.c: Any = fnp.stack([bend / h, (rise - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: bool | str | None = None) -> Array:
        """Return the curve, or its derivative of order ``nu``, at ``x``; NaN outside unless it is extrapolated.

        A derivative that jumps at a knot has the value of the interval to the right. ``extrapolate`` may be "periodic".
        """
        q = fnp.real(as_double(x))  # SciPy drops an imaginary part
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            q = self.x[0] + fnp.mod(q - self.x[0], self.x[-1] - self.x[0])
        place, extra = interval_of(self.x, q), len(backend.shape_of(self.c[0])) - 1
        distance = with_trailing_axes(q - getitem(self.x, place), extra)
        found: Any = None
        for power, c in self._powers():
            if power < nu:
                break
            factor = float(np.prod(np.arange(power, power - nu, -1)))
            term = getitem(c, place) * factor
            found = term if found is None else found * distance + term
        if found is None:
            found = fnp.zeros_like(getitem(self.c[0], place))
        if not extrapolate:
            outside = (q < self.x[0]) | (q > self.x[-1])
            found = fnp.where(with_trailing_axes(outside, extra), np.nan, found)
        return _move_query_axes(found, len(backend.shape_of(q)), self.axis, extra)

    def derivative(self, nu: int = 1) -> _Curve:
        """Return the derivative of order ``nu``, a curve."""
        if nu < 0:
            return self.antiderivative(-nu)
        made = self
        for _ in range(nu):
            c = [c * float(power) for power, c in made._powers() if power] or [fnp.zeros_like(made.c[0])]
            made = made._with_coefficients(fnp.stack(c), self.extrapolate)
        return made

    def antiderivative(self, nu: int = 1) -> _Curve:
        """Return the integral of order ``nu`` from the first knot on, a curve; a periodic one is not extrapolated."""
        if nu < 0:
            return self.derivative(-nu)
        made = self
        for _ in range(nu):
            c = [c / (power + 1.0) for power, c in made._powers()]
            h = _column(fnp.diff(self.x), c[0])
            steps = sum([row * h ** (len(c) - i) for i, row in enumerate(c)])
            start = fnp.concatenate([fnp.zeros_like(steps[:1]), fnp.cumsum(steps, axis=0)[:-1]])
            extrapolate = self.extrapolate if self.extrapolate != "periodic" else False
            made = made._with_coefficients(fnp.stack([*c, start]), extrapolate)
        return made

    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: bool | str | None = None) -> Array:
        """Integrate from ``a`` to ``b``, two numbers; the result is NaN if the curve is not extrapolated that far."""
        whole, extrapolate = self.antiderivative(), self.extrapolate if extrapolate is None else extrapolate
        if extrapolate != "periodic":
            return _without_axes(whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate))
        start, end = self.x[0], self.x[-1]

        def until(q: Array) -> Array:
            periods = fnp.floor((q - start) / (end - start))
            return periods * whole(end) + whole(q - periods * (end - start), extrapolate=True)

        return _without_axes(until(as_double(b)) - until(as_double(a)))

    def solve(self, y: Any = 0.0, discontinuity: bool = True, extrapolate: bool | str | None = None) -> Array:
        """Return the points where the curve is ``y``, a number; how many there are depends on the present values.

        Raises:
            InputError: a curve with several values.
        """
        if len(backend.shape_of(self.c[0])) != 1:
            raise InputError("interpolate.solve: the curve must have one value, got several. Take one curve for each.")
        wide = self.extrapolate if extrapolate is None else extrapolate
        found: Array = real_roots(self.c[..., None], self.x, y, discontinuity, bool(wide))[0]
        return found

    def roots(self, discontinuity: bool = True, extrapolate: bool | str | None = None) -> Array:
        """Return the points where the curve is zero; see ``solve``."""
        return self.solve(0.0, discontinuity, extrapolate)

    def _powers(self) -> list[tuple[int, Array]]:
        """Return the powers of the distance with their coefficients."""
        return list(zip(range(len(self.c) - 1, -1, -1), self.c, strict=True))

    def _with_coefficients(self, c: Array, extrapolate: bool | str) -> _Curve:
        """Return a curve with other coefficients."""
        made = object.__new__(_Curve)
        made.x, made.axis, made.extrapolate, made.c = self.x, self.axis, extrapolate, c
        return made


def _without_axes(found: Array) -> Array:
    """Return the value of a curve at a number: a traced one is an array, as SciPy's, which ``+=`` changes in place."""
    return fnp.asarray(found) if isinstance(found, Tracer) else found[()]


def _move_query_axes(found: Array, rank: int, axis: int, extra: int) -> Array:
    """Move the ``rank`` axes of the queries from the front to the former axis of the values."""
    axis = axis % (extra + 1)
    if not axis or not rank:
        return found if backend.shape_of(found) else _without_axes(found)
    return fnp.moveaxis(found, tuple(range(rank)), tuple(range(axis, axis + rank)))


class CubicSpline(_Curve):
    """The cubic spline through points: twice continuously differentiable.

    Args:
        x: the knots, increasing.
        y: the values, along ``axis``.
        axis: the axis of ``y``.
        bc_type: the conditions at the ends: "not-a-knot", "natural" (no curvature), "clamped" (no slope), or for each
            end one of them or ``(order, value)`` of a derivative of order 1 or 2; "periodic": both ends are one point.
        extrapolate: whether the first and last piece continue outside; the default is True. "periodic" repeats the
            curve, and is the default for periodic curves.

    Raises:
        ValueError: shapes that do not match, knots that do not increase, an unknown condition, two values of one point.

    Example:
        >>> spline = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])
        >>> spline(1.5).round(12), spline(1.5, 2).round(12)
        (np.float64(3.375), np.float64(9.0))
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        axis: int = 0,
        bc_type: Any = "not-a-knot",
        extrapolate: bool | str | None = None,
    ) -> None:
        x, y = _knots("interpolate.CubicSpline", as_double(x), as_double(y), axis)
        closed = isinstance(bc_type, str) and bc_type == "periodic"
        slopes = _periodic_slopes(x, y) if closed else _spline_slopes(x, y, _conditions(bc_type, y))
        if extrapolate is None:
            extrapolate = "periodic" if closed else True
        super().__init__(x, y, slopes, axis, extrapolate)


def _conditions(bc_type: Any, y: Array) -> list[Any]:
    """Return for each end None for "not-a-knot", or the order and the value of a derivative."""
    ends = [bc_type, bc_type] if isinstance(bc_type, str) else list(bc_type)
    names = {"not-a-knot": None, "natural": (2, 0.0), "clamped": (1, 0.0)}
    found = []
    for end in ends:
        if isinstance(end, str) and end in names:
            found.append(names[end])
        elif not isinstance(end, str) and len(end) == 2 and end[0] in (1, 2):
            found.append((end[0], as_value(end[1])))
        else:
            raise ShapeError(
                f"interpolate.CubicSpline: bc_type must be not-a-knot, natural, clamped, (order, value) or for both "
                f"ends periodic, got {end!r}."
            )
    if len(found) != 2:
        raise ShapeError(f"interpolate.CubicSpline: bc_type has one condition for each end, got {len(found)}.")
    return found


def _spline_slopes(x: Array, y: Array, ends: list[Any]) -> Array:
    """Return the slopes at the knots, from a tridiagonal system."""
    h = fnp.diff(x)
    wide = _column(h, y)
    rise = fnp.diff(y, axis=0) / wide
    n = backend.shape_of(x)[0]
    if n == 2:  # without a third point: as straight as the conditions allow
        ends = [(1, rise[0]) if end is None else end for end in ends]
    parabola = n == 3 and ends == [None, None]
    first = _end_row(h, wide, rise, ends[0], parabola, start=True)
    last = _end_row(h, wide, rise, ends[1], parabola, start=False)
    middle = 2.0 * (h[:-1] + h[1:])
    diagonal = fnp.concatenate([first[0][None], middle, last[0][None]])
    upper = fnp.concatenate([0.0 * h[:1], first[1][None], h[:-1]])
    lower = fnp.concatenate([h[1:], last[1][None], 0.0 * h[:1]])
    inner = 3.0 * (wide[1:] * rise[:-1] + wide[:-1] * rise[1:])
    right = fnp.concatenate([first[2][None], inner, last[2][None]])
    flat = fnp.reshape(right, (n, -1))
    return fnp.reshape(solve_banded((1, 1), fnp.stack([upper, diagonal, lower]), flat), backend.shape_of(right))


def _periodic_slopes(x: Array, y: Array) -> Array:
    """Return the slopes at the knots of a closed curve, from a tridiagonal system with two corners."""
    gap = y[0] - y[-1]
    if any_true(lambda apart: apart, abs(gap) > 1e-15 * (1.0 + abs(y[0]))):
        raise ShapeError(
            "interpolate.CubicSpline: the first and the last y of a periodic curve must be equal, got "
            f"{concrete_or_none(gap)} between."
        )
    h = fnp.diff(x)
    wide, n = _column(h, y), backend.shape_of(h)[0]
    rise = fnp.diff(y, axis=0) / wide
    left_h, left, left_rise = fnp.roll(h, 1), fnp.roll(wide, 1, axis=0), fnp.roll(rise, 1, axis=0)
    right = 3.0 * (wide * left_rise + left * rise)
    if n < 3:  # all slopes are equal
        slopes = right / (3.0 * (wide + left))
        return fnp.concatenate([slopes, slopes[:1]])
    # all slopes but the last, for a last slope of 0, and their decrease for each unit of it
    diagonal = 2.0 * (left_h + h)
    bands = fnp.stack([fnp.roll(left_h, 1)[:-1], diagonal[:-1], fnp.roll(h, -1)[:-1]])
    corners = fnp.concatenate([h[:1], 0.0 * h[1:-2], left_h[-2:-1]])
    flat = fnp.reshape(right, (n, -1))
    free = solve_banded((1, 1), bands, flat[:-1])
    loss = solve_banded((1, 1), bands, corners)
    near, far = h[-1], left_h[-1]
    last = flat[-1] - near * free[-1] - far * free[0]
    last = last / (diagonal[-1] - near * loss[-1] - far * loss[0])
    found = free - loss[:, None] * last
    return fnp.reshape(fnp.concatenate([found, last[None], found[:1]]), backend.shape_of(y))


def _end_row(
    h: Array, wide: Array, rise: Array, end: Any, parabola: bool, *, start: bool
) -> tuple[Array, Array, Array]:
    """Return the equation of one end: the entry on the diagonal, the entry next to it and the right side."""
    near, far = (0, 1) if start else (-1, -2)
    one = h[near] * 0.0 + 1.0
    if end is not None:
        order, value = end
        value = fnp.broadcast_to(value + 0.0 * rise[near], backend.shape_of(rise)[1:])
        if order == 1:
            return one, 0.0 * one, value
        sign = -0.5 if start else 0.5
        right = sign * value * wide[near] ** 2 + 3.0 * rise[near] * wide[near]
        return 2.0 * h[near], h[near], right
    if parabola:
        return one, one, 2.0 * rise[near]
    both = wide[near] + wide[far]
    right = (wide[near] + 2.0 * both) * wide[far] * rise[near] + wide[near] ** 2 * rise[far]
    return h[far], h[near] + h[far], right / both


class PchipInterpolator(_Curve):
    """Cubics through points that rise and fall where the points do (Fritsch and Butland, 1984).

    Arguments as for ``CubicSpline``.

    Example:
        >>> PchipInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])(1.5)
        np.float64(1.0)
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0, extrapolate: bool | None = None) -> None:
        x, y = _knots("interpolate.PchipInterpolator", as_double(x), as_double(y), axis, real=True)
        h = _column(fnp.diff(x), y)
        rise = fnp.diff(y, axis=0) / h
        super().__init__(x, y, monotone_slopes(h, rise), axis, extrapolate is not False)


def monotone_slopes(h: Array, rise: Array) -> Array:
    """Return weighted harmonic means of the slopes on both sides, 0 where the slopes differ in sign."""
    if backend.shape_of(h)[0] == 1:
        return fnp.concatenate([rise, rise])
    before, after = rise[:-1], rise[1:]
    flat = (fnp.sign(before) != fnp.sign(after)) | (before == 0.0) | (after == 0.0)
    left, right = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    before, after = (fnp.where(flat, 1.0, m) for m in (before, after))
    inner = fnp.where(flat, 0.0, (left + right) / (left / before + right / after))
    ends = [_monotone_end(h[i], h[j], rise[i], rise[j]) for i, j in ((0, 1), (-1, -2))]
    return fnp.concatenate([ends[0][None], inner, ends[1][None]])


def _monotone_end(h: Array, other: Array, rise: Array, next_rise: Array) -> Array:
    """Return the slope of the parabola through three points at the end, limited by the sign of the line there."""
    slope = ((2.0 * h + other) * rise - h * next_rise) / (h + other)
    steep = (fnp.sign(rise) != fnp.sign(next_rise)) & (fnp.abs(slope) > 3.0 * fnp.abs(rise))
    slope = fnp.where(steep, 3.0 * rise, slope)
    return fnp.where(fnp.sign(slope) != fnp.sign(rise), 0.0, slope)


class Akima1DInterpolator(_Curve):
    """Akima's cubics, whose slopes follow the neighbours (Akima, 1970), or their modification "makima".

    Arguments as for ``CubicSpline``; outside of the knots the curve is NaN unless ``extrapolate`` says otherwise.

    Example:
        >>> Akima1DInterpolator([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])(1.5)
        np.float64(2.25)
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: bool | None = None,
    ) -> None:
        x, y = _knots("interpolate.Akima1DInterpolator", as_double(x), as_double(y), axis, real=True)
        if method not in ("akima", "makima"):
            raise ShapeError(f"interpolate.Akima1DInterpolator: method must be akima or makima, got {method!r}.")
        rise = fnp.diff(y, axis=0) / _column(fnp.diff(x), y)
        two = backend.shape_of(x)[0] == 2
        slopes = fnp.concatenate([rise, rise]) if two else _akima_slopes(rise, method)
        super().__init__(x, y, slopes, axis, bool(extrapolate))


def _akima_slopes(rise: Array, method: str) -> Array:
    """Return means of the slopes on both sides, each weighted with the change of slope on the other side."""
    first = 2.0 * rise[:1] - rise[1:2]
    last = 2.0 * rise[-1:] - rise[-2:-1]
    m = fnp.concatenate([2.0 * first - rise[:1], first, rise, last, 2.0 * last - rise[-1:]])
    change = fnp.abs(fnp.diff(m, axis=0))
    if method == "makima":
        change = change + 0.5 * fnp.abs(m[1:] + m[:-1])
    left, right = change[2:], change[:-2]
    total = left + right
    clear = total > 1e-9 * fnp.max(total)
    weighted = (left * m[1:-2] + right * m[2:-1]) / fnp.where(clear, total, 1.0)
    return fnp.where(clear, weighted, 0.5 * (m[3:] + m[:-3]))


def cardinal_splines(points: Array, degree: int) -> Callable[[Array, int], Array]:
    """Return a function of ``q`` and an order: the splines that are 1 at one point and 0 at the others, at ``q``."""
    make = import_scipy("interpolate", "scipy.interpolate").make_interp_spline
    values = np.eye(backend.shape_of(points)[0])
    plain = is_plain(points)
    splines = make(np.asarray(points), values, degree) if plain else run_anywhere(make, (points, values, degree), {})
    return partial(_splines_at, splines, plain)


def _splines_at(splines: Any, plain: bool, q: Array, order: int) -> Array:
    found: Array = splines(q, order) if plain and is_plain(q) else run_anywhere(splines, (q, order), {})
    return found


#: Names of kinds of ``interp1d`` by their other names, among them degrees of splines.
_KINDS: dict[str | int, str | int] = {"slinear": "linear", 0: "zero", 1: "linear", "quadratic": 2, 3: "cubic"}


_STEPS = ("previous", "next", "nearest", "nearest-up", "zero")


class interp1d:  # noqa: N801  (SciPy's name)
    """A function through points, as in ``scipy.interpolate.interp1d``.

    Args:
        x: the knots.
        y: the values, along ``axis``.
        kind: "linear" or "slinear", "quadratic", "cubic", the degree of a spline, "previous", "next", "nearest",
            "nearest-up" or "zero". The last five are differentiable in the values; their derivative in the query is 0.
        axis: the axis of ``y``.
        copy: no effect.
        bounds_error: whether a query outside raises; by default it does unless ``fill_value`` is "extrapolate".
        fill_value: the value outside, a pair with one for each side, or "extrapolate".
        assume_sorted: whether the knots increase; if not, they are sorted.

    Raises:
        ValueError: shapes that do not match, a query outside.
        TypeError: another ``kind``.

    Example:
        >>> interp1d([0.0, 1.0, 3.0], [0.0, 10.0, 30.0])([0.5, 2.0])
        array([ 5., 20.])
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        kind: str | int = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        kind = _KINDS.get(kind, kind)
        if type(kind) is not int and kind not in ("linear", "cubic", *_STEPS):
            raise InputError(
                "interpolate.interp1d: kind must be linear, slinear, quadratic, cubic, a whole number or a kind of "
                f"steps, got {kind!r}."
            )
        x, y = as_inexact(x), as_inexact(y)
        self.axis = axis % len(backend.shape_of(y))
        if not assume_sorted:
            order = fnp.argsort(x, stable=True)
            x, y = fnp.take(x, order), fnp.take(y, order, axis=self.axis)
        self.x, self.y = _knots("interpolate.interp1d", x, y, self.axis)
        self.kind = kind
        self.spline = CubicSpline(self.x, self.y) if kind == "cubic" else None
        self.shares = cardinal_splines(self.x, kind) if isinstance(kind, int) else None  # once, not for each query
        self.extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        self.fill_value = fill_value
        self.bounds_error = not self.extrapolates if bounds_error is None else bounds_error

    def __call__(self, x: ArrayLike) -> Array:
        """Return the values at ``x``."""
        q = as_inexact(x)
        extra = len(backend.shape_of(self.y)) - 1
        self._check(q)
        found = self.spline(q) if self.spline is not None else self._between(q, extra)
        if not self.extrapolates:
            pair = isinstance(self.fill_value, tuple)
            below, above = self.fill_value if pair else (self.fill_value, self.fill_value)
            found = fnp.where(with_trailing_axes(q < self.x[0], extra), below, found)
            found = fnp.where(with_trailing_axes(q > self.x[-1], extra), above, found)
        elif self.kind in ("previous", "next"):  # one side has no such knot
            outside = q < self.x[0] if self.kind == "previous" else q > self.x[-1]
            found = fnp.where(with_trailing_axes(outside, extra), np.nan, found)
        return _move_query_axes(found, len(backend.shape_of(q)), self.axis, extra)

    def _between(self, q: Array, extra: int) -> Array:
        if self.shares is not None:
            shares = self.shares(fnp.ravel(q), 0)
            return fnp.reshape(fnp.tensordot(shares, self.y, 1), (*backend.shape_of(q), *backend.shape_of(self.y)[1:]))
        if self.kind == "linear":
            place = interval_of(self.x, q)
            start, stop = getitem(self.x, place), getitem(self.x, place + 1)
            low, high = getitem(self.y, place), getitem(self.y, place + 1)
            return low + with_trailing_axes((q - start) / (stop - start), extra) * (high - low)
        last = backend.shape_of(self.x)[0] - 1
        if self.kind in ("nearest", "nearest-up"):
            middles = (self.x[1:] + self.x[:-1]) / 2.0
            side = "left" if self.kind == "nearest" else "right"
            return getitem(self.y, fnp.clip(fnp.searchsorted(middles, q, side=side), 0, last))
        if self.kind == "next":
            return getitem(self.y, fnp.clip(fnp.searchsorted(self.x, q, side="left"), 0, last))
        return getitem(self.y, fnp.clip(fnp.searchsorted(self.x, q, side="right") - 1, 0, last))

    def _check(self, q: Array) -> None:
        if self.bounds_error and any_true(lambda outside: outside, (q < fnp.min(self.x)) | (q > fnp.max(self.x))):
            values: Any = concrete_or_none(q)
            raise ValueError(
                "A value in x_new is outside the interpolation range: interpolate.interp1d, got "
                f"{values.min()} to {values.max()}. Pass fill_value or bounds_error=False."
            )
