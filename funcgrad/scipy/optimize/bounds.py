"""Bounds of the variables, as SciPy takes them, and which of them hold a solution in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import ShapeError
from funcgrad.scipy.optimize.solutions import plain
from funcgrad.transforms.implicit import solved

__all__ = ["Box", "box_of", "solved_within"]


class Box(NamedTuple):
    """The least and the largest value of each variable; they may be traced."""

    low: Any
    high: Any

    def stationary(self, x: Any, slope: Callable[[Any], Any]) -> Any:
        """What is zero at a minimum: the slope, or the distance to a bound that holds the variable against it."""
        found = slope(x)
        at_low = fnp.logical_and(self._near(x, self.low), fnp.greater(found, 0))
        at_high = fnp.logical_and(self._near(x, self.high), fnp.less(found, 0))
        inner = fnp.where(at_high, x - self._finite(self.high), found)
        return fnp.where(at_low, x - self._finite(self.low), inner)

    def _near(self, x: Any, bound: Any) -> Any:
        room = 1e-9 * (1 + fnp.abs(self._finite(bound)))
        return fnp.logical_and(fnp.isfinite(bound), fnp.less_equal(fnp.abs(x - self._finite(bound)), room))

    def _finite(self, bound: Any) -> Any:
        return fnp.where(fnp.isfinite(bound), bound, 0.0)


def solved_within(
    call: str, f: Callable[[Any], Any], start: Any, box: Box | None, run: Callable[[Any, Any, Box | None], Any]
) -> Any:
    """What ``run(f, start, box)`` finds for plain starts and bounds, a constant; see ``solved``."""

    def once(at: Callable[[Any], Any], begin: tuple[Any, ...]) -> Any:
        ends = begin[1:]
        return run(lambda x: at((x, *ends)), plain(begin[0]), Box(*map(plain, ends)) if ends else None)

    return solved(call, lambda begin: f(begin[0]), (start, *(box or ())), once, start)


def box_of(call: str, bounds: Any, n: int, *, pairs: bool) -> Box | None:
    """The box of ``bounds``; None where there are none.

    Args:
        call: the public call, for messages.
        bounds: SciPy's ``Bounds``, or a pair for each variable, or a pair of arrays; None for no bound.
        n: the number of variables.
        pairs: whether there is a pair for each variable.

    Raises:
        ShapeError: not as many bounds as variables (a ``ValueError``).
    """
    if bounds is None:
        return None
    if hasattr(bounds, "lb"):
        low, high = bounds.lb, bounds.ub
    elif pairs:
        rows = list(bounds)
        if len(rows) != n:
            raise ShapeError(f"{call}: a pair of bounds is needed for each of {n} variables, got {len(rows)} of them.")
        low, high = [-np.inf if a is None else a for a, _ in rows], [np.inf if b is None else b for _, b in rows]
    else:
        low, high = bounds
    ends = [fnp.broadcast_to(fnp.astype(fnp.asarray(end), float), (n,)) for end in (low, high)]
    if all(backend.namespace_of(end) is np and np.all(np.isinf(end)) for end in ends):
        return None
    return Box(*ends)
