"""The independent referee: directional derivatives from values alone.

The referee uses no rules, no tapes and no JAX. Its central differences are extrapolated (Richardson) and come with
an estimate of their own error, which determines the tolerance. If the function also accepts complex numbers, and the
complex step agrees, the complex step replaces the differences: without cancellation it is exact up to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

STEP = 4e-3  # the largest step; samples stay farther away from kinks
LEVELS = 5  # at most: differences stop earlier if ENOUGH is reached
ENOUGH = 1e-10
COMPLEX_STEP = 1e-40

Function = Callable[..., Sequence[Any]]
#: For each result, its derivative and the allowed error.
Found = list[tuple[np.ndarray, float]]


def derivative(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Found:
    """Return the derivative of ``fun`` along ``tangents``, as accurately as values allow."""
    found = differences(fun, primals, tangents)
    exact = complex_step(fun, primals, tangents)
    if exact is None or any(e.shape != d.shape for e, (d, _) in zip(exact, found, strict=True)):
        return found
    best = []
    for e, (d, allowed) in zip(exact, found, strict=True):
        # If the complex function is not the analytic continuation of the real one, the two differ by far.
        sure = np.isfinite(e).all() and allowed <= 1e-6 * size(d)
        agrees = sure and np.abs(e - d).max(initial=0.0) <= 10 * allowed
        best.append((e, 1e-12 * size(e)) if agrees else (d, allowed))
    return best


def differences(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Found:
    """Return central differences, extrapolated to step zero."""

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
    """Return the best entry of Neville's table over differences at halved steps, and its possible error."""
    best, error = column[-1], float("inf")
    previous = column
    for order in range(1, len(column)):
        factor = 4.0**order
        current = [(factor * fine - coarse) / (factor - 1) for coarse, fine in pairwise(previous)]
        for k, entry in enumerate(current):
            # change from the two entries that it was computed from
            moves = max(distance(entry, previous[k]), distance(entry, previous[k + 1]))
            if moves < error:
                best, error = entry, moves
        previous = current
    return best, 20 * error + 1e-11 * size(best)


def complex_step(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> list[np.ndarray] | None:
    """Return ``imag(f(x + ih t)) / h``, or None if the function does not accept complex numbers."""
    if any(np.asarray(x).dtype.kind == "c" for x in primals):
        return None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # a function that drops imaginary parts
            outs = fun(*moved(primals, tangents, 1j * COMPLEX_STEP))
            return [np.asarray(np.imag(out) / COMPLEX_STEP) for out in outs]
    except Exception:  # a function without complex support may raise any error
        return None


def moved(primals: Sequence[Any], tangents: Sequence[Any], h: complex) -> list[Any]:
    """Return ``x + h t``; scalars stay scalars."""
    return [x + h * t for x, t in zip(primals, tangents, strict=True)]


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference."""
    return float(np.abs(a - b).max(initial=0.0))


def size(x: np.ndarray) -> float:
    """Return the largest absolute value, but at least one: the differences use values of that size."""
    return max(1.0, float(np.abs(x).max(initial=0.0)))


def assert_within(got: Any, want: np.ndarray, allowed: float, what: str, eps: float = 0.0) -> None:
    """Check that ``got`` is as close to the referee's ``want`` as the referee's accuracy allows.

    ``eps`` is the rounding unit of the values, which limits the referee's accuracy.
    """
    got = np.asarray(got)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    assert np.isfinite(want).all(), f"{what}: the referee finds no derivative here, {want}: choose another sample"
    limit = max(1e-6, min(1e5 * eps, 0.1)) * size(want)
    assert allowed <= limit, f"{what}: the referee is unsure by {allowed:.1e}: choose another sample"
    error = float(np.abs(got - want).max(initial=0.0))
    assert error <= allowed, f"{what}: off by {error:.2e}, allowed {allowed:.2e}\ngot  {got}\nwant {want}"
