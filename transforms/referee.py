"""Referee that uses no derivative rule: it measures directional derivatives from values of the function alone.

First derivatives come from the complex step if the function allows it: for an analytic f,
``Im f(x + i h t) / h`` has no subtraction, so h can be tiny and the error is rounding. A trial finds out whether f
allows it: f must accept complex arrays, and along the imaginary axis f must change as central
differences say it does along the real axis (Cauchy and Riemann; ``abs`` or ``conj`` fail there).
Otherwise central differences with steps halved again and again are extrapolated to step zero
(Richardson's scheme). The value is the entry of the extrapolation table that disagrees least with its
neighbours (Ridders' choice), and the amount of the disagreement is the error estimate.

A function may compute in single precision where nothing shows it. So its rounding errors are measured too, unless the
differences agree with the derivative that is checked. They are measured from the sixth and fifth differences of a few
near values (Hamming's method, as in Moré and Wild, "Estimating computational noise"): differences of a smooth function
vanish there, and rounding errors remain.

A direction costs a few dozen values of f, whatever the dimension.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from math import comb
from typing import Any, NamedTuple, TypeAlias

import numpy as np

#: A list of arrays or numbers: a point, a direction.
Leaves: TypeAlias = list[Any]

EPSILON = float(np.finfo(float).eps)
FIRST_STEP = 0.25  # relative to the scale of the point, which the directions carry
STEPS = 22  # number of steps, each half of the one before; the last is about 1e-7
COLUMNS = 6  # number of columns of the extrapolation table, one for each power of the step
RELATIVE_ERROR = 1e-11  # relative error at which no smaller step is tried
CONFIRMING_ERROR = 1e-8  # relative error at which no smaller step is tried if differences only confirm a complex step
ACCURATE_FRACTION = 1e-2  # fraction of the allowed error of a derivative at which its measurement is accurate enough
COMPLEX_STEP = 1e-30
NOISE_STEP = 2.0**-17  # spacing of the values whose differences show rounding errors
COARSE_NOISE = 1e-12  # relative rounding error above which a function does not compute in double precision


class Estimate(NamedTuple):
    """Result of an extrapolation table, element by element: a value, and how far it may be off."""

    value: np.ndarray
    error: np.ndarray


class ValuesOnBothSides(NamedTuple):
    """Values at a step to the right, in the middle and to the left, and the size of their rounding errors."""

    step: float
    right: np.ndarray
    middle: np.ndarray
    left: np.ndarray
    rounding: np.ndarray


class Measured(NamedTuple):
    """Directional derivative as the referee measures it.

    Attributes:
        value: the derivative, one number for each result of the function; nan if there is none.
        error: an estimate of the error of ``value``, infinite if there is none.
        jump: by how much the slopes on both sides differ, 0 where the function is smooth.
        method: the method of the measurement.
    """

    value: np.ndarray
    error: np.ndarray
    jump: np.ndarray
    method: str


def extrapolate(
    rows: Iterable[tuple[Any, Any]],
    powers: Iterable[int],
    relative_error: float = RELATIVE_ERROR,
    allowed: Callable[[np.ndarray], Any] | None = None,
) -> Estimate:
    """Extrapolate ``rows``, approximations with steps each half of the one before, to step zero.

    Args:
        rows: pairs of arrays of one shape, an approximation and its rounding error; not all rows are used
            if the error is small enough before.
        powers: the powers of the step in the error of a row, one column of the table for each.
        relative_error: the relative error that is small enough.
        allowed: returns how far these values may be off, if that is known: a small part of it is small enough too.

    Example:
        >>> from math import sin
        >>> steps = (0.4, 0.2, 0.1, 0.05)
        >>> slopes = [(np.array((sin(1 + h) - sin(1 - h)) / (2 * h)), 1e-16 / h) for h in steps]
        >>> limit = extrapolate(slopes, (2, 4, 6))
        >>> print(f"{limit.value:.8f}, {limit.error < 1e-7}")
        0.54030231, True
    """
    best = error = None
    before: list[Any] = []
    powers = list(powers)
    for row, rounding in rows:
        table = [row]
        if best is None or error is None:
            best, error = np.full(np.shape(row), np.nan), np.full(np.shape(row), np.inf)
        for power, old in zip(powers, before, strict=False):
            factor = 2.0**power
            new = (factor * table[-1] - old) / (factor - 1)
            off = np.maximum(abs(new - table[-1]), abs(new - old)) + rounding
            better = off < error  # False for nan
            best, error = np.where(better, new, best), np.where(better, off, error)
            table.append(new)
        before = table
        # the next, smaller step has twice the rounding error: an error below that cannot become smaller
        if len(table) > 3:
            limit = _accurate_error(best, relative_error, allowed)
            if np.all((error <= limit) | (error <= 2 * rounding)):
                break
    if best is None or error is None:
        raise ValueError("extrapolate: there is no row to begin with.")
    return Estimate(best, error)


def _accurate_error(value: Any, relative_error: float, allowed: Callable[[np.ndarray], Any] | None) -> Any:
    """Return the error of ``value`` that is small enough, see ``extrapolate``."""
    return np.maximum(relative_error * abs(value), ACCURATE_FRACTION * allowed(value) if allowed else 0.0)


@dataclass(eq=False)
class Referee:
    """Referee that measures derivatives of ``fun`` at ``point``.

    Args:
        fun: takes leaves and returns a one-dimensional array, real at ``point`` and around it.
        point: arrays and numbers, real or complex.
        real: whether point and results are real, so that a complex step may be tried.
        allowed: returns how far derivatives of these values may be off, if that is known; by default each is measured
            as well as possible.

    Attributes:
        middle: the values at ``point``, if they are known.
    """

    fun: Callable[[Leaves], np.ndarray]
    point: Leaves
    _: KW_ONLY
    real: bool = True
    allowed: Callable[[np.ndarray], Any] | None = None
    middle: np.ndarray | None = field(default=None, init=False)
    _known_noise: np.ndarray | None = field(default=None, init=False)

    def first_derivative(self, direction: Leaves, claim: np.ndarray | None = None) -> Measured:
        """Return the derivative along ``direction``, with less effort if it turns out to be ``claim``."""
        known: list[tuple[np.ndarray, np.ndarray]] = []  # the values that all measurements below share
        exact = self._complex_step(self.point, direction)
        if exact is not None and (self._is_near(exact, claim) or not np.any(self._noise(direction))):
            measured = _measure_slope(self._values_on_both_sides(direction, known), "differences", CONFIRMING_ERROR)
            if np.all(abs(exact - measured.value) <= _complex_step_tolerance(measured)):
                return Measured(exact, 8 * EPSILON * abs(exact), measured.jump, "complex step")
        if self._known_noise is None and claim is not None:
            measured = _measure_slope(self._values_on_both_sides(direction, known), "differences", allowed=self.allowed)
            if self._confirms(measured, claim):
                return measured
        rows = self._values_on_both_sides(direction, known, self._noise(direction))
        return _measure_slope(rows, "differences", allowed=self.allowed)

    def _confirms(self, measured: Measured, claim: np.ndarray) -> bool:
        """Whether a measurement that takes rounding errors for those of doubles agrees with ``claim``, at no kink.

        Coarse rounding errors would make the measurement look better than it is, but not the claim.
        """
        accurate = np.all(measured.error <= _accurate_error(measured.value, RELATIVE_ERROR, self.allowed))
        return bool(accurate and self._is_near(measured.value, claim) and not np.any(measured.jump))

    def _is_near(self, value: np.ndarray, claim: np.ndarray | None) -> bool:
        return claim is not None and bool(np.all(abs(value - claim) <= (self.allowed(claim) if self.allowed else 0.0)))

    def second_derivative(self, along: Leaves, across: Leaves, first: Measured) -> Measured:
        """Return the mixed second derivative along two directions; ``first`` is the derivative ``along`` the first."""
        if first.method == "complex step":
            measured = _measure_slope(self._complex_slopes(along, across, first.value), "differences of complex steps")
            if np.all(np.isfinite(measured.error)):
                return measured
        return _measure_slope(self._real_slopes(along, across), "differences of differences")

    def has_kink(self, direction: Leaves, measured: Measured, across: Leaves | None = None) -> bool:
        """Whether the derivative, measured along ``direction``, is not linear in it: then there is no derivative.

        This finds kinks at which the slopes of both sides are the same: the derivatives along two parts
        of the direction do not add up. With ``across``, it examines the second derivative, by parts of ``across``.
        """
        parts = _split_direction(direction if across is None else across)
        if across is None:
            found = [self.first_derivative(part) for part in parts]
        else:
            found = [self.second_derivative(direction, part, self.first_derivative(direction)) for part in parts]
        off = abs(found[0].value + found[1].value - measured.value)
        error = 100 * (found[0].error + found[1].error + measured.error) + 1e-6 * abs(measured.value)
        return bool(np.any(off > error))

    def _values_on_both_sides(
        self, direction: Leaves, known: list[tuple[np.ndarray, np.ndarray]], noise: Any = 0.0
    ) -> Iterator[ValuesOnBothSides]:
        """Yield values with smaller and smaller steps; ``known`` holds those of the first steps."""
        if self.middle is None:
            self.middle = self._values_at(0.0, direction)
        for number, h in enumerate(_step_sizes()):
            if number == len(known):
                known.append((self._values_at(h, direction), self._values_at(-h, direction)))
            right, left = known[number]
            yield ValuesOnBothSides(h, right, self.middle, left, 2 * EPSILON * (abs(right) + abs(left)) + noise)

    def _complex_slopes(self, along: Leaves, across: Leaves, middle: np.ndarray) -> Iterator[ValuesOnBothSides]:
        """Yield derivatives along one direction, on both sides of the point in the other direction."""
        nowhere = np.full(np.shape(middle), np.nan)
        for h in _step_sizes():
            right, left = [self._complex_step(_moved(self.point, s, across), along) for s in (h, -h)]
            right, left = nowhere if right is None else right, nowhere if left is None else left
            yield ValuesOnBothSides(h, right, middle, left, 2 * EPSILON * (abs(right) + abs(left)))

    def _real_slopes(self, along: Leaves, across: Leaves) -> Iterator[ValuesOnBothSides]:
        """Yield the values of ``_complex_slopes``, computed by differences with the same step."""
        plus = [a + b for a, b in zip(along, across, strict=True)]
        minus = [a - b for a, b in zip(along, across, strict=True)]
        noise = self._noise(along)
        for h in _step_sizes():
            ahead = [self._values_at(h, way) for way in (plus, along, minus)]
            behind = [self._values_at(-h, way) for way in (minus, along, plus)]
            right, middle, left = [(a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)]
            rounding = (2 * EPSILON * np.add.reduce([abs(v) for v in (*ahead, *behind)]) + 3 * noise) / (3 * h)
            yield ValuesOnBothSides(h, right, middle, left, rounding)

    def _noise(self, direction: Leaves) -> np.ndarray:
        """Return the rounding errors of values near the point, measured once; 0 if they are those of doubles."""
        if self._known_noise is None:
            values = [self._values_at(k * NOISE_STEP, direction) for k in range(1, 9)]
            self._known_noise = _rounding_errors(values) if len({v.shape for v in values}) == 1 else np.zeros(1)
        return self._known_noise

    def _values_at(self, step: float, direction: Leaves) -> np.ndarray:
        """Return the function's values a real step away, nan where the function is not defined."""
        try:
            with np.errstate(all="ignore"):
                return self.fun(_moved(self.point, step, direction))
        except (ArithmeticError, ValueError):  # math domain error, a matrix that is not positive definite
            if step == 0:
                raise
            return np.full(1, np.nan)

    def _complex_step(self, point: Leaves, direction: Leaves) -> np.ndarray | None:
        """Return the derivative at ``point`` by a complex step, or None if the function takes none."""
        if not self.real:
            return None
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            try:
                values = self.fun(_moved(point, COMPLEX_STEP * 1j, direction))
            except Exception:  # a function not made for complex numbers may refuse them in any way
                return None
        return np.imag(values) / COMPLEX_STEP


def _rounding_errors(values: list[np.ndarray]) -> np.ndarray:
    """Return the rounding errors in ``values`` at equal distances, element by element; 0 where they are below coarse.

    A difference of order k adds up independent errors with binomial weights, whose squares add up to binomial(2k, k).
    """
    table = np.stack(values)
    with np.errstate(all="ignore"):
        found = [np.max(abs(np.diff(table, k, axis=0)), axis=0) / np.sqrt(comb(2 * k, k)) for k in (5, 6)]
        noise: np.ndarray = np.minimum(*found)
        coarse = noise > COARSE_NOISE * np.max(abs(table), axis=0)  # False for nan
    return np.where(coarse, noise, 0.0)


def _measure_slope(
    rows: Iterable[ValuesOnBothSides],
    method: str,
    relative_error: float = RELATIVE_ERROR,
    allowed: Callable[[np.ndarray], Any] | None = None,
) -> Measured:
    """Return the derivative from values on both sides, and by how much it differs between the sides."""
    seen: list[ValuesOnBothSides] = []

    def differences() -> Iterator[tuple[Any, Any]]:
        for row in rows:
            seen.append(row)
            yield (row.right - row.left) / (2 * row.step), row.rounding / row.step

    slope = extrapolate(differences(), range(2, 2 * COLUMNS + 2, 2), relative_error, allowed)
    # the slopes of the two sides differ by the jump and by odd powers of the step
    bends = [((s.right - 2 * s.middle + s.left) / s.step, 4 * s.rounding / s.step) for s in seen]
    jump = extrapolate(bends, range(1, 2 * COLUMNS + 1, 2))
    kink = abs(jump.value) > 100 * jump.error + 1e-6 * abs(slope.value)
    return Measured(slope.value, slope.error, np.where(kink, jump.value, 0.0), method)


def _complex_step_tolerance(measured: Measured) -> np.ndarray:
    """Return how far an analytic function's complex step may be off its differences; -1 at a kink."""
    smooth = np.isfinite(measured.error) & (measured.jump == 0)
    return np.where(smooth, 100 * measured.error + 1e-6 * abs(measured.value), -1.0)


def _split_direction(direction: Leaves) -> tuple[Leaves, Leaves]:
    """Split ``direction`` into two directions that add up to it, neither of them proportional to it."""
    rng = np.random.default_rng(0)
    share = [rng.uniform(0.1, 0.9, np.shape(t)) for t in direction]
    other = [rng.uniform(0.1, 0.9, np.shape(t)) for t in direction]
    parts = [
        s * np.real(t) + 1j * o * np.imag(t) if np.iscomplexobj(t) else s * t
        for t, s, o in zip(direction, share, other, strict=True)
    ]
    return parts, [t - part for t, part in zip(direction, parts, strict=True)]


def _step_sizes() -> Iterator[float]:
    return (FIRST_STEP / 2**k for k in range(STEPS))


def _moved(point: Leaves, step: complex, direction: Leaves) -> Leaves:
    return [x + step * t for x, t in zip(point, direction, strict=True)]
