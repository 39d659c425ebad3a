"""Binary elementwise operations at 0, at infinity, and with extreme squares: both orders, both modes.

The referee evaluates formulas for the partial derivatives in mpmath numbers, whose exponents are unbounded. It
replaces an infinite argument by two very large ones: if both give the same double, that is the limit.
"""

import itertools
import math
from functools import cache

import mpmath
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, jacfwd, vmap

INF = math.inf
POINTS = [0.0, 1.5, -1.5, 2.0, 1e300, -1e300, 1e-300, -1e-300, INF, -INF]
ZERO, ONE = mpmath.mpf(0), mpmath.mpf(1)
CONSTANT = (lambda x, y: ZERO,) * 3


def square_sum(x, y):
    return x * x + y * y


def logistic(d):
    if abs(d) > 1e5:
        return mpmath.mpf(d > 0)
    return 1 / (1 + mpmath.exp(-d))


def power(x, y):
    if x > 0 and abs(y) > 1e6 and x != 1:  # overflows every double, or underflows
        return mpmath.mpf(10) ** (5000 if (x > 1) == (y > 0) else -5000)
    return mpmath.power(x, y)


def curved(scale):
    slope = lambda x, y: logistic((x - y) * scale)
    bend = lambda x, y: scale * slope(x, y) * slope(y, x)
    return slope, lambda x, y: slope(y, x), bend, lambda x, y: -bend(x, y), bend


def rounded(x, y):
    return mpmath.floor(x / y) if x / y > 0 else mpmath.ceil(x / y)


#: Partial derivatives in x, y, xx, xy and yy.
PARTIALS = {
    "arctan2": (
        lambda x, y: y / square_sum(x, y),
        lambda x, y: -x / square_sum(x, y),
        lambda x, y: -2 * x * y / square_sum(x, y) ** 2,
        lambda x, y: (x * x - y * y) / square_sum(x, y) ** 2,
        lambda x, y: 2 * x * y / square_sum(x, y) ** 2,
    ),
    "hypot": (
        lambda x, y: x / mpmath.sqrt(square_sum(x, y)),
        lambda x, y: y / mpmath.sqrt(square_sum(x, y)),
        lambda x, y: y * y / square_sum(x, y) ** 1.5,
        lambda x, y: -x * y / square_sum(x, y) ** 1.5,
        lambda x, y: x * x / square_sum(x, y) ** 1.5,
    ),
    "logaddexp": curved(ONE),
    "logaddexp2": curved(mpmath.log(2)),
    "add": (lambda x, y: ONE, lambda x, y: ONE, *CONSTANT),
    "subtract": (lambda x, y: ONE, lambda x, y: -ONE, *CONSTANT),
    "multiply": (lambda x, y: y, lambda x, y: x, lambda x, y: ZERO, lambda x, y: ONE, lambda x, y: ZERO),
    "divide": (
        lambda x, y: 1 / y,
        lambda x, y: -x / y**2,
        lambda x, y: ZERO,
        lambda x, y: -1 / y**2,
        lambda x, y: 2 * x / y**3,
    ),
    "power": (
        lambda x, y: y * power(x, y - 1),
        lambda x, y: power(x, y) * mpmath.log(x),
        lambda x, y: y * (y - 1) * power(x, y - 2),
        lambda x, y: power(x, y - 1) * (1 + y * mpmath.log(x)),
        lambda x, y: power(x, y) * mpmath.log(x) ** 2,
    ),
    "copysign": (lambda x, y: mpmath.sign(x) * mpmath.sign(y), lambda x, y: ZERO, *CONSTANT),
    "remainder": (lambda x, y: ONE, lambda x, y: -mpmath.floor(x / y), *CONSTANT),
    "fmod": (lambda x, y: ONE, lambda x, y: -rounded(x, y), *CONSTANT),
    "maximum": (lambda x, y: mpmath.mpf(x > y), lambda x, y: mpmath.mpf(y > x), *CONSTANT),
    "minimum": (lambda x, y: mpmath.mpf(x < y), lambda x, y: mpmath.mpf(y < x), *CONSTANT),
}
#: Operations with the points and partial derivatives of another operation: mpmath is slow.
SAME = {"fmax": "maximum", "fmin": "minimum", "float_power": "power", "mod": "remainder", "true_divide": "divide"}
PARTIALS |= {name: PARTIALS[other] for name, other in SAME.items()}
KINKS = {
    **dict.fromkeys(("arctan2", "hypot"), lambda x, y: x == y == 0),
    **dict.fromkeys(("maximum", "minimum"), lambda x, y: x == y),
    **dict.fromkeys(("remainder", "fmod", "divide"), lambda x, y: y == 0),
    "power": lambda x, y: x == 0,
    "copysign": lambda x, y: x == 0 or y == 0,
}


def double(value):
    if isinstance(value, mpmath.mpc) or mpmath.isnan(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return INF if value > 0 else -INF


def limit(partial, x, y):
    """Return the limit of ``partial`` at (x, y), or NaN if there is none."""
    found = []
    for size in (330, 660):
        wide = [mpmath.mpf(10) ** size * (1 if v > 0 else -1) if math.isinf(v) else mpmath.mpf(v) for v in (x, y)]
        try:
            found.append(double(partial(*wide)))
        except (ZeroDivisionError, ValueError):
            return math.nan
    return found[0] if found[0] == found[1] else math.nan


@cache
def wanted(name, how):
    """Return the points and the partial derivatives there."""
    return list(points_and_partials(name, how))


def points_and_partials(name, how):
    partial = PARTIALS[name][["x", "y", "xx", "xy", "yy"].index(how)]
    for x, y in itertools.product(POINTS, POINTS):
        if math.isinf(x) and (math.isinf(y) or name in ("remainder", "fmod")):
            continue
        if KINKS.get(name, lambda x, y: False)(x, y):
            continue
        small = min(abs(v) if v else INF for v in (x, y))
        if len(how) == 2 and small < 1e-200:  # squares of 1 / small may overflow although the result does not
            continue
        want = limit(partial, x, y)
        if not math.isnan(want):
            yield x, y, want


def derived(name, how, transform):
    fun = getattr(fnp, name)
    for letter in how:
        fun = transform(fun, "xy".index(letter))
    return fun


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("transform", [grad, jacfwd])
@pytest.mark.parametrize("how", ["x", "y", "xx", "xy", "yy"])
@pytest.mark.parametrize("name", PARTIALS)
def test_partials_at_extremes(name, how, transform):
    points = wanted(SAME.get(name, name), how)
    assert len(points) > 8
    fun = derived(name, how, transform)
    x, y, want = (np.array(column) for column in zip(*points, strict=True))
    for got in ([fun(a, b) for a, b in zip(x, y, strict=True)], vmap(fun)(x, y)):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-16)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hypot_at_infinity_follows_arctan2():
    for x, y in itertools.product((INF, -INF, 1.0, -3.0), (INF, -INF)):
        angle = np.arctan2(y, x)
        for transform in (grad, jacfwd):
            np.testing.assert_allclose(transform(fnp.hypot, (0, 1))(x, y), (np.cos(angle), np.sin(angle)), atol=1e-15)
            np.testing.assert_array_equal(transform(fnp.arctan2, (0, 1))(y, x), (0.0, 0.0))
    np.testing.assert_allclose(grad(fnp.hypot)(1.5e308, 1.5e308), math.sqrt(0.5))
