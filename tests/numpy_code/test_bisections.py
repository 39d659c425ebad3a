"""Bisections of a program's own: no derivative goes through them, so a warning names what to use."""

import math
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import brentq

from funcgrad import custom_root, grad, jvp, vmap
from funcgrad.interop import jit
from funcgrad.numpy_code.bisections import halves_intervals

MESSAGE = r"a bisection only compares, .* at .*test_bisections\.py:\d+\. Use scipy\.optimize\.brentq, or "


def square_root(x):
    low, high = 0.0, 2.0
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        if middle * middle > x:
            high = middle
        else:
            low = middle
    return middle


def from_bounds(x):
    low, high = 0.0, 2.0 * x
    for _ in range(50):
        middle = low + (high - low) / 2
        if math.exp(middle) > 3.0 * x:
            high = middle
        else:
            low = middle
    return low


def solve(f, guess, low=0.0, high=2.0):
    while high - low > 1e-12:
        middle = (low + high) / 2
        if f(middle) > 0:
            high = middle
        else:
            low = middle
    return middle


class Solver:
    def __init__(self, target):
        self.target = target

    def run(self, low=0.0, high=2.0):
        while high - low > 1e-12:
            middle = (low + high) / 2.0
            if middle**2 > self.target:
                high = middle
            else:
                low = middle
        return middle


SEARCHES = {
    "function": (square_root, "square_root: "),
    "bounds": (from_bounds, "from_bounds: "),
    "function that closes over": (lambda x: solve(lambda t: t * t - x, 1.0), "solve: "),
    "object": (lambda x: Solver(x).run(), r"Solver\.run: "),
    "inner function": (lambda x: _with_inner(x), "_with_inner: "),
}


def _with_inner(x):
    def found(low, high):
        while high - low > 1e-12:
            middle = (low + high) / 2.0
            if middle**2 > x:
                high = middle
            else:
                low = middle
        return middle

    return found(0.0, 2.0)


@pytest.mark.parametrize("name", SEARCHES)
def test_bisections_of_traced_values_warn(name):
    f, begin = SEARCHES[name]
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=begin + MESSAGE):
            grad(f)(1.5)
        with pytest.warns(RuntimeWarning, match=begin + MESSAGE):
            jvp(f, (1.5,), (1.0,))


def test_the_warning_points_at_the_line_of_the_call():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        grad(square_root)(1.5)
        line = sys._getframe().f_lineno - 1
    assert [(one.filename, one.lineno) for one in found] == [(__file__, line)]


def place(table, x):
    low, high = 0, len(table)
    while high - low > 1:
        middle = (low + high) // 2
        if table[middle] > x:
            high = middle
        else:
            low = middle
    return low


def interpolated(x):
    table = np.array([0.0, 1.0, 4.0, 9.0])
    i = place(table, x)
    return i + (x - table[i]) / (table[i + 1] - table[i])


def averaged(x):
    a, b = x, 1.0
    for _ in range(6):
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a


def halved(x):
    step = x
    while step > 1e-3:
        step = (step + 0.0) / 2
    return step


RIGHT = {
    "constants": (lambda x: solve(lambda t: t * t - 2.0, 1.0) * x, math.sqrt(2.0)),
    "search for an index": (interpolated, 1 / 3),
    "brentq": (lambda x: brentq(lambda t: t * t - x, 0.0, 2.0), 0.5 / math.sqrt(1.5)),
    "custom_root": (lambda x: custom_root(lambda t: t * t - x, 1.0, solve), 0.5 / math.sqrt(1.5)),
    "means": (averaged, None),
    "halves": (halved, None),
}


@pytest.mark.parametrize("name", RIGHT)
def test_other_functions_do_not_warn(name):
    f, want = RIGHT[name]
    want = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6 if want is None else want
    assert grad(f)(1.5) == pytest.approx(want, rel=1e-8)
    assert jvp(f, (1.5,), (1.0,))[1] == pytest.approx(want, rel=1e-8)


def test_values_without_derivatives_do_not_warn():
    assert jit(square_root, backend="numpy")(1.44) == square_root(1.44)
    assert vmap(lambda x: square_root(1.44) * x)(np.ones(2)).tolist() == [square_root(1.44)] * 2


def test_which_codes_halve_intervals():
    yes = (square_root, from_bounds, solve, Solver.run, _with_inner)
    assert all(halves_intervals(f.__code__) for f in yes)
    assert not any(halves_intervals(f.__code__) for f in (place, interpolated, averaged, halved, brentq))
