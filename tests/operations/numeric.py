"""The independent referee: directional derivatives from values alone.

It knows nothing of rules, tapes or JAX. Central differences are extrapolated (Richardson) and come with
an estimate of their own error, from which the tolerance follows. Where the function also computes with
complex numbers and agrees, the complex step takes over: it has no cancellation, so it is exact to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

STEP = 4e-3  # the widest; samples keep a distance from kinks that is larger
LEVELS = 5  # at most: no more are asked once ENOUGH is known
ENOUGH = 1e-10
COMPLEX_STEP = 1e-40

Function = Callable[..., Sequence[Any]]
#: For each result its derivative and how far a right answer may be from it.
Found = list[tuple[np.ndarray, float]]


def derivative(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Found:
    """The derivative of ``fun`` along ``tangents``, as well as values can tell."""
    found = differences(fun, primals, tangents)
    exact = complex_step(fun, primals, tangents)
    if exact is None or any(e.shape != d.shape for e, (d, _) in zip(exact, found, strict=True)):
        return found
    best = []
    for e, (d, allowed) in zip(exact, found, strict=True):
        # Where the complex function is not the analytic continuation of the real one, the two differ by far.
        sure = np.isfinite(e).all() and allowed <= 1e-6 * size(d)
        agrees = sure and np.abs(e - d).max(initial=0.0) <= 10 * allowed
        best.append((e, 1e-12 * size(e)) if agrees else (d, allowed))
    return best


def differences(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Found:
    """Central differences, extrapolated to step zero."""

    def central(h: float) -> list[np.ndarray]:
        above = fun(*moved(primals, tangents, h))
        below = fun(*moved(primals, tangents, -h))
        return [np.asarray((np.asarray(a) - np.asarray(b)) / (2 * h)) for a, b in zip(above, below, strict=True)]

    steps = [central(STEP / 2**k) for k in range(LEVELS - 2)]
    while True:
        found = [extrapolated([step[i] for step in steps]) for i in range(len(steps[0]))]
        if len(steps) == LEVELS or all(allowed <= ENOUGH * size(d) for d, allowed in found):
            return found
        steps.append(central(STEP / 2 ** len(steps)))


def extrapolated(column: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The best entry of Neville's table over differences at halved steps, and what it may be off by."""
    best, error = column[-1], float("inf")
    previous = column
    for order in range(1, len(column)):
        factor = 4.0**order
        current = [(factor * fine - coarse) / (factor - 1) for coarse, fine in pairwise(previous)]
        for k, entry in enumerate(current):
            # how much it moved from both entries it is made of
            moves = max(distance(entry, previous[k]), distance(entry, previous[k + 1]))
            if moves < error:
                best, error = entry, moves
        previous = current
    return best, 20 * error + 1e-11 * size(best)


def complex_step(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> list[np.ndarray] | None:
    """``imag(f(x + ih t)) / h``; None where the function does not take complex numbers."""
    if any(np.asarray(x).dtype.kind == "c" for x in primals):
        return None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # a function that drops imaginary parts
            outs = fun(*moved(primals, tangents, 1j * COMPLEX_STEP))
            return [np.asarray(np.imag(out) / COMPLEX_STEP) for out in outs]
    except Exception:  # whatever a function says that does not know complex numbers
        return None


def moved(primals: Sequence[Any], tangents: Sequence[Any], h: complex) -> list[Any]:
    """``x + h t``, scalars staying scalars."""
    return [x + h * t for x, t in zip(primals, tangents, strict=True)]


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference."""
    return float(np.abs(a - b).max(initial=0.0))


def size(x: np.ndarray) -> float:
    """The largest number, but not below one: values of that size went into the differences."""
    return max(1.0, float(np.abs(x).max(initial=0.0)))


def assert_within(got: Any, want: np.ndarray, allowed: float, what: str, eps: float = 0.0) -> None:
    """``got`` is as near to the referee's ``want`` as the referee can tell.

    ``eps`` is the rounding of the values, which limits how sure the referee can be.
    """
    got = np.asarray(got)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    assert np.isfinite(want).all(), f"{what}: the referee finds no derivative here, {want}: choose another sample"
    limit = max(1e-6, min(1e5 * eps, 0.1)) * size(want)
    assert allowed <= limit, f"{what}: the referee is unsure by {allowed:.1e}: choose another sample"
    error = float(np.abs(got - want).max(initial=0.0))
    assert error <= allowed, f"{what}: off by {error:.2e}, allowed {allowed:.2e}\ngot  {got}\nwant {want}"
