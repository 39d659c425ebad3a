"""Reads and writes of one element at a time: the cost must grow with the number of elements, not its square.

This module loads no other library: its objects would make garbage collection slow and the figures unsteady.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Claim, check_equal, interleave

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["one_by_one"]


def squares_read(x: Any) -> Any:
    return sum(x[i] ** 2 for i in range(x.shape[0]))


def squares(x: Any) -> Any:
    filled = fnp.zeros(x.shape[0])
    for i in range(x.shape[0]):
        filled[i] = x[i] ** 2
    return fnp.sum(filled)


def recurrence(x: Any) -> Any:
    """Compute a recurrence in which every element needs the previous one."""
    state = fnp.zeros(x.shape[0])
    state[0] = x[0]
    for i in range(1, x.shape[0]):
        state[i] = state[i - 1] * 0.5 + x[i]
    return fnp.sum(state)


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "sum(x[i]**2 for i in range(n))": (squares_read, lambda x: 2 * x),
    "out[i] = x[i]**2 in a loop": (squares, lambda x: 2 * x),
    "a[i] = a[i-1] * 0.5 + x[i]": (recurrence, lambda x: 2 - 0.5 ** np.arange(x.size - 1, -1, -1.0)),
}


def one_by_one(quick: bool) -> list[Claim]:
    """Measure the gradient of ``n`` reads of one array or writes into it."""
    sizes = [200 * 2**k for k in range(4 if quick else 7)]
    return [claim(name, *PROGRAMS[name], sizes, rounds=3 if quick else 9) for name in PROGRAMS]


def claim(name: str, program: Callable[..., Any], slope: Callable[..., Any], sizes: list[int], rounds: int) -> Claim:
    """Return the claim about the exponent with which the time grows."""
    gradient = grad(program)
    points = {n: np.linspace(-1, 1, n) for n in sizes}
    for point in points.values():
        check_equal(gradient(point), {"by hand": slope(point)})
    times = interleave({str(n): lambda point=point: gradient(point) for n, point in points.items()}, rounds)
    each = {n: statistics.median(times[str(n)]) / n * 1e6 for n in sizes}
    first, last = sizes[len(sizes) // 2], sizes[-1]
    exponent = 1 + math.log(each[last] / each[first]) / math.log(last / first)
    what, ours, before = f"{name}, n = {first:,} to {last:,}", f"{each[last]:.3g} us each", f"{each[first]:.3g} us each"
    return Claim(what, ours, before, exponent, 1.15, "exponent")
