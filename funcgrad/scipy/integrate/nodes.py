"""Integrands evaluated at all nodes of an interval at once, though SciPy asks for one node after the other.

``quad`` and ``quad_vec`` of SciPy apply a Gauss-Kronrod rule to an interval, and then to the halves of one of the
intervals that they know. The first node of a rule therefore tells which nodes follow, and a derivative is evaluated at
all of them in one run of ``vmap``, which takes little longer than one node does: Python's work for each operation
dominates. This is a forecast only: a node that is not foreseen is evaluated alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from funcgrad.numpy.plain_values.concretization import forget_refusal

Parts = Sequence[Any]


class Rule(NamedTuple):
    """Nodes in an interval from -1 to 1, in SciPy's order; and the points ``x`` of positions in an interval."""

    offsets: np.ndarray
    places: Callable[[np.ndarray], np.ndarray]

    def first(self, low: float, high: float) -> float:
        """Return the first of the nodes."""
        position = 0.5 * (low + high) + 0.5 * (high - low) * float(self.offsets[0])
        return position if self.places is _itself else float(np.ravel(self.places(np.array([position])))[0])

    def nodes(self, low: float, high: float) -> list[float]:
        """Return the points of the interval between ``low`` and ``high``, rounded as SciPy rounds them."""
        found: list[float] = self.places(0.5 * (low + high) + 0.5 * (high - low) * self.offsets).tolist()
        return found


#: Positive Kronrod nodes of QUADPACK's rules; Piessens et al. (1983), QUADPACK, routines QK15 and QK21.
_KRONROD_15 = (
    *(0.9914553711208126, 0.9491079123427585, 0.8648644233597691, 0.7415311855993945),
    *(0.5860872354676911, 0.4058451513773972, 0.20778495500789848),
)
_KRONROD_21 = (
    *(0.9956571630258081, 0.9739065285171717, 0.9301574913557082, 0.8650633666889845, 0.7808177265864169),
    *(0.6794095682990244, 0.5627571346686047, 0.4333953941292472, 0.2943928627014602, 0.14887433898163122),
)
#: The order of ``quad``: the middle, then pairs of nodes left and right of it. That of ``quad_vec``: from high to low.
_OUTWARDS_15, _OUTWARDS_21 = [
    np.array([0.0, *(side * node for node in nodes for side in (-1.0, 1.0))]) for nodes in (_KRONROD_15, _KRONROD_21)
]
_DOWNWARDS_15, _DOWNWARDS_21 = [
    np.array([*nodes, 0.0, *(-node for node in reversed(nodes))]) for nodes in (_KRONROD_15, _KRONROD_21)
]


def _itself(t: np.ndarray) -> np.ndarray:
    """Return the points of positions in a finite interval."""
    return t


def rule_of_quad(a: float, b: float, points: Any = None) -> tuple[Rule, list[float]]:
    """Return the rule of SciPy's ``quad`` from ``a`` to ``b``, and the limits of its first intervals."""
    low, high = min(a, b), max(a, b)
    if math.isfinite(high - low):
        breaks = sorted({float(x) for x in points if low < x < high} if points is not None else ())
        return Rule(_OUTWARDS_21, _itself), [low, *breaks, high]
    places = _both_sides if math.isinf(low) and math.isinf(high) else _half_line(low, high)
    return Rule(_OUTWARDS_15, places), [0.0, 1.0]


def rule_of_quad_vec(a: float, b: float, points: Any, quadrature: str | None) -> tuple[Rule, list[float]]:
    """Return the same of SciPy's ``quad_vec``; no intervals for a rule whose intervals share nodes, or with points."""
    is_finite = math.isfinite(b - a)
    offsets = _DOWNWARDS_21 if quadrature == "gk21" or (quadrature is None and is_finite) else _DOWNWARDS_15
    if points is not None or quadrature == "trapezoid":
        return Rule(offsets, _itself), []
    if is_finite:
        return Rule(offsets, _itself), [a, b]
    if math.isfinite(a) or math.isfinite(b):
        return Rule(offsets, _half_line(a, b)), [0.0, 1.0]
    return Rule(offsets, lambda t: (1.0 - np.abs(t)) / t), [-1.0, 0.0, 1.0]


def _half_line(a: float, b: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the points of positions from 0, where infinity is, to 1."""
    start, end = (a, b) if math.isfinite(a) else (b, a)
    return lambda t: start + math.copysign(1.0, end) * (1.0 - t) / t


def _both_sides(t: np.ndarray) -> np.ndarray:
    """Return two points for each position, as QUADPACK folds the line at 0."""
    right = (1.0 - t) / t
    return np.stack([right, -right], axis=-1).ravel()


def first_nodes(rule: Rule, edges: Sequence[float]) -> list[float]:
    """Return the nodes of the intervals between ``edges``."""
    return [x for low, high in pairwise(edges) for x in rule.nodes(low, high)]


#: After more failures in a row than these, a function is evaluated at one number after the other.
_MOST_FAILURES = 5


class Sampled:
    """The parts of a function as a function of ``x``; values are kept up to ``limit`` bytes, for other parts.

    Args:
        fun: returns a list of parts for a number.
        at_once: returns a list of parts, each with one row for each number of an array; None for a function of large
            arrays, for which Python's work matters less than the memory for many rows.
    """

    limit = 100_000_000  # like the cache of ``quad_vec``

    def __init__(self, fun: Callable[[float], Parts], at_once: Callable[[np.ndarray], Parts] | None) -> None:
        self.fun, self.at_once = fun, at_once
        self.known: dict[float, Parts] = {}
        self.size = 0
        self._kinds: list[Any] = []
        self._failures = 0
        #: Pairs of numbers between which the function branches.
        self._places: list[tuple[float, float]] = []
        self._rule: Rule | None = None
        #: Intervals that SciPy turns to one after the other, by the first node of each.
        self._next: dict[float, list[tuple[float, float]]] = {}

    def foresee(self, rule: Rule, edges: Sequence[float]) -> None:
        """Expect an integral by ``rule`` over the intervals between ``edges``."""
        self._rule, self._next = rule, {}
        self._expect(rule, list(pairwise(edges)))

    def learn(self, numbers: list[float], parts: Parts) -> None:
        """Store values that are known: ``parts`` have one row for each number."""
        self._kinds = [(part.shape[1:], part.dtype) for part in parts]
        self._keep(numbers, list(zip(*parts, strict=True)))

    def has_kinds(self, parts: Parts) -> bool:
        """Whether ``parts``, with a row for each number, have shapes and dtypes of the values that are known."""
        return [(part.shape[1:], part.dtype) for part in parts] == self._kinds

    def __call__(self, x: float) -> Parts:
        """Return the parts at ``x``."""
        if self.at_once is not None and self._rule is not None and x in self._next:
            self._turn_to(self._rule, self._next[x])
        found = self.known.get(x)
        if found is None:
            found = self.fun(x)
            self._kinds = self._kinds or [(np.shape(part), part.dtype) for part in found]
            self._keep([x], [found])
        return found

    def _expect(self, rule: Rule, intervals: list[tuple[float, float]]) -> None:
        self._next.update((rule.first(*interval), intervals) for interval in intervals)

    def _turn_to(self, rule: Rule, intervals: list[tuple[float, float]]) -> None:
        """Evaluate the nodes of intervals; the two halves of each may come next."""
        nodes = [rule.nodes(*interval) for interval in intervals]
        for (low, high), (first, *_) in zip(intervals, nodes, strict=True):
            self._next.pop(first, None)  # first nodes of the shortest intervals coincide
            middle = 0.5 * (low + high)
            self._expect(rule, [(low, middle), (middle, high)])
        if self._kinds:  # the first value of all shows what kinds of results are right
            self._evaluate(sorted(x for some in nodes for x in some if x not in self.known))

    def _evaluate(self, numbers: list[float]) -> None:
        """Evaluate the function at sorted numbers, at once between the places where it is known to branch."""
        places, self._places = sorted(self._places), []
        for low, high in places:
            self._try([x for x in numbers if x <= low])
            inside = [x for x in numbers if low < x < high]
            if inside:
                self._halve([low, *inside, high])
            else:
                self._places.append((low, high))
            numbers = [x for x in numbers if x >= high]
        self._try(numbers)

    def _try(self, numbers: list[float]) -> bool:
        """Evaluate the function at sorted numbers at once, or else at parts of these; return whether it took all."""
        if len(numbers) < 2:
            return True
        if self._failures > _MOST_FAILURES:
            return False
        rows = self._rows(numbers)
        if rows is None:
            self._failures += 1
            self._halve(numbers)
            return False
        self._failures = 0
        self._keep(numbers, rows)
        return True

    def _halve(self, numbers: list[float]) -> None:
        """Evaluate the function at each half of sorted numbers; note where it branches between these."""
        half = len(numbers) // 2
        left, right = numbers[:half], numbers[half:]
        taken = [self._try(left), self._try(right)]
        if all(taken):
            self._places.append((left[-1], right[0]))

    def _rows(self, wanted: list[float]) -> list[Parts] | None:
        """Return the parts at each of the numbers; None if the function does not take them at once."""
        assert self.at_once is not None
        try:
            parts = self.at_once(np.array(wanted))
        except Exception:  # it branches on x, say; an error of the function itself comes again when it runs alone
            forget_refusal()
            return None
        return list(zip(*parts, strict=True)) if self.has_kinds(parts) else None

    def _keep(self, numbers: list[float], values: list[Parts]) -> None:
        self.size += sum(part.nbytes for parts in values for part in parts)
        if self.size <= self.limit:
            self.known.update(zip(numbers, values, strict=True))
