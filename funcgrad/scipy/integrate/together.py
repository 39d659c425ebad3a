"""Integrals of several functions over one interval, each to the given tolerances, by SciPy's adaptive routines.

An adaptive routine divides an interval where the function looks rough at a few points. It loses a narrow piece of a
function that is zero at all these points, and derivatives are often like that: the derivative in one of several
parameters may differ from zero on a narrow piece only. The functions here are parts of one function, say derivatives in
several parameters, and the parts that are rough lead to the others: a part whose own division of the interval is
coarse where another part needed a fine one is integrated again over the finest division.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from funcgrad.numpy.plain_values.peeking import warn
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.nodes import Sampled, rule_of_quad, rule_of_quad_vec

Fun = Callable[[float], Any]


def integrate_together(
    sampled: Sampled, a: float, b: float, count: int, options: dict[str, Any], points: Any
) -> list[Any]:
    """Integrate the first ``count`` parts of a function from ``a`` to ``b``; the other parts only help to divide.

    Numbers are integrated by ``quad``, arrays by ``quad_vec``.

    Args:
        sampled: the function.
        a: the lower limit.
        b: the upper limit.
        count: the number of parts to integrate.
        options: of ``quad``; or of ``quad_vec``, which has "norm" and integrates numbers too.
        points: where to break the interval, or None.
    """
    a, b = float(a), float(b)  # they may be arrays of JAX, which no dictionary takes as keys
    if b < a:
        return [-value for value in integrate_together(sampled, b, a, count, options, points)]
    options = {name: value for name, value in options.items() if name != "full_output"}
    forms = [(part.shape, part.dtype.kind == "c") for part in sampled(_middle(a, b))]
    parts = [_components(sampled, i, *form, options) for i, form in enumerate(forms)]
    alone = [[one.integrate(a, b, points) for one in components] for components in parts]
    finest = np.unique(np.concatenate([found.division for part in alone for found in part]))
    edges = _inner_points(finest, a, b)
    results = []
    for form, components, firsts in zip(forms[:count], parts, alone, strict=False):
        found = [
            one.integrate_pieces(a, b, edges) if _is_coarse(first.division, finest) else first
            for one, first in zip(components, firsts, strict=True)
        ]
        for warning in {one.warning for one in found if one.warning}:
            warn(warning, import_scipy("integrate.quad", "scipy.integrate").IntegrationWarning)
        results.append(_assembled([one.value for one in found], *form))
    return results


#: How much finer the division of another part may be: a rule of 15 points loses pieces of a tenth of an interval.
_COARSE = 4.0


def _is_coarse(own: np.ndarray, finest: np.ndarray) -> bool:
    """Whether an interval of the division ``own`` contains a far shorter one of ``finest``."""
    within = np.searchsorted(own, finest[:-1], side="right") - 1
    return bool((np.diff(own)[within] > _COARSE * np.diff(finest)).any())


class _Found(NamedTuple):
    """Integral of a function; the division of the interval, in the variable of ``_inner_points``; a warning or None."""

    value: Any
    division: np.ndarray
    warning: str | None


class _Number:
    """A real function that ``quad`` integrates."""

    def __init__(self, sampled: Sampled, fun: Fun, options: dict[str, Any]) -> None:
        self.sampled, self.fun, self.options = sampled, fun, options

    def integrate(self, a: float, b: float, points: Any) -> _Found:
        if "weight" not in self.options:
            self.sampled.foresee(*rule_of_quad(a, b, points))
        quad = import_scipy("integrate.quad", "scipy.integrate").quad
        value, _, info, *message = quad(self.fun, a, b, points=points, full_output=1, **self.options)
        return _Found(value, _division(info, a, b), message[0] if message else None)

    def integrate_pieces(self, a: float, b: float, edges: np.ndarray) -> _Found:
        """Integrate over the pieces between ``edges``, inner points of the interval."""
        fun, options = self.fun, {name: value for name, value in self.options.items() if name != "wopts"}
        weight = options.get("weight", "")
        if weight.startswith("alg"):  # belongs to the limits, not to those of each piece
            by = _algebraic_weight(options.pop("weight"), a, b, *options.pop("wvar"))
            fun, weight = lambda x: self.fun(x) * by(x), ""
        options["limit"] = options.get("limit", 50) + len(edges) + 2
        over = _Number(self.sampled, fun, options).integrate
        if weight:  # SciPy takes either a weight or points
            pieces = [over(low, high, None) for low, high in pairwise([a, *edges, b])]
        elif math.isfinite(b - a):
            return over(a, b, edges)
        else:
            pieces = [over(-math.inf, edges[0], None)] if a == -math.inf else []
            low, high = edges[0] if pieces else a, edges[-1] if b == math.inf else b
            pieces.append(over(low, high, edges))
            pieces += [over(edges[-1], math.inf, None)] if b == math.inf else []
        warning = next((piece.warning for piece in pieces if piece.warning), None)
        return _Found(math.fsum(piece.value for piece in pieces), np.array([a, b]), warning)


class _Array:
    """A function that ``quad_vec`` integrates."""

    def __init__(self, sampled: Sampled, fun: Fun, options: dict[str, Any]) -> None:
        self.sampled, self.fun, self.options = sampled, fun, options_of_quad_vec(options)

    def integrate(self, a: float, b: float, points: Any) -> _Found:
        self.sampled.foresee(*rule_of_quad_vec(float(a), float(b), points, self.options.get("quadrature")))
        quad_vec = import_scipy("integrate.quad_vec", "scipy.integrate").quad_vec
        value, _, info = quad_vec(self.fun, float(a), float(b), points=points, full_output=True, **self.options)
        return _Found(value, np.unique(info.intervals), None)

    integrate_pieces = integrate


def options_of_quad_vec(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of ``quad`` as those of ``quad_vec``, which has other defaults."""
    left_out = ("full_output", "limlst", "maxp1", "wopts")
    kept = {name: value for name, value in options.items() if name not in left_out}
    if "norm" not in options and kept.get("limit") == 50:
        kept["limit"] = 10_000
    return kept


def _components(
    sampled: Sampled, i: int, shape: tuple[int, ...], is_complex: bool, options: dict[str, Any]
) -> list[_Number | _Array]:
    """Return the functions that SciPy integrates for part ``i``: real numbers, or arrays unless there is a weight."""
    if "norm" in options or (shape and "weight" not in options):
        return [_Array(sampled, lambda x: sampled(x)[i], options)]
    if not shape and not is_complex:
        return [_Number(sampled, lambda x: float(sampled(x)[i]), options)]
    return [
        _Number(sampled, lambda x, j=j, sides=sides: getattr(sampled(x)[i].flat[j], sides), options)  # type: ignore[misc]
        for j in range(math.prod(shape))
        for sides in (("real", "imag") if is_complex else ("real",))
    ]


def _assembled(values: list[Any], shape: tuple[int, ...], is_complex: bool) -> Any:
    """Return the integral of a part from those of its components."""
    if len(values) == 1 and np.shape(values[0]) == shape:
        return np.asarray(values[0])[()]
    flat = np.asarray(values)
    return np.reshape(flat[::2] + 1j * flat[1::2] if is_complex else flat, shape)[()]


def _middle(a: float, b: float) -> float:
    """Return a point that SciPy's rules use."""
    if math.isfinite(a) and math.isfinite(b):
        return 0.5 * (a + b)
    return a + 1.0 if math.isfinite(a) else b - 1.0 if math.isfinite(b) else 1.0


def _division(info: dict[str, Any], a: float, b: float) -> np.ndarray:
    """Return the division of the interval by ``quad``, in the variable in which ``quad_vec`` returns it.

    That is ``x``; or from 0 to 1 for a half-line, with infinity at 0; or from -1 to 1, with both infinities at 0.
    """
    on_line = math.isinf(a) and math.isinf(b)
    whole = np.array([-1.0, 0.0, 1.0] if on_line else [a, b] if math.isfinite(b - a) else [0.0, 1.0])
    if "alist" not in info:  # infinite limits with a weight
        return whole
    ends = np.concatenate([info[side][: info["last"]] for side in ("alist", "blist")])
    return np.unique(np.concatenate([whole, ends, -ends] if on_line else [whole, ends]))


def _inner_points(division: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return the places ``x`` where ``division`` divides the interval."""
    if math.isfinite(b - a):
        return division[1:-1]
    t = division[division != 0.0]
    outwards = (1.0 - np.abs(t)) / t
    x = outwards if math.isinf(a) and math.isinf(b) else a + outwards if math.isfinite(a) else b - outwards
    return np.unique(x[(x > a) & (x < b)])


def _algebraic_weight(weight: str, a: float, b: float, p: float, q: float) -> Callable[[float], float]:
    """Return SciPy's weight ``"alg..."`` as a function of inner points."""

    def at(x: float) -> float:
        by: float = (x - a) ** p * (b - x) ** q
        by *= math.log(x - a) if weight in ("alg-loga", "alg-log") else 1.0
        return by * (math.log(b - x) if weight in ("alg-logb", "alg-log") else 1.0)

    return at
