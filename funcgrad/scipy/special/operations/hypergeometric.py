"""Hypergeometric functions: derivatives in the argument by shifted parameters, in the parameters by differences.

The derivative of order k in the argument is the function itself with all parameters raised by k, times a quotient of
Pochhammer's symbols: DLMF 13.3.16, 13.3.23, 15.5.2.

Derivatives of orthogonal polynomials, spherical harmonics and Legendre functions in the argument are polynomials of the
next lower degree with raised parameters (DLMF table 18.9.1 and 18.9.15 to 18.9.26). The functions are polynomials in
the parameters too; derivatives in the parameters are central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy, private_special, special
from funcgrad.primitives.arithmetic import absolute, power
from funcgrad.primitives.comparison import equal, floor, greater, less, logical_and, where
from funcgrad.primitives.elementwise import exp, sin, sqrt
from funcgrad.scipy.special.operations.gamma_functions import poch
from funcgrad.scipy.special.operations.partials import (
    analytic,
    in_double,
    may_hold,
    of_all_orders,
    pointwise,
    pole_rate,
    refused,
    scipy_operation,
    span_rate,
    summed,
)


def _pole_rate(xp: Any, rate: Any, b: Any, *above: Any) -> Any:
    """Return ``rate``, but near b = 0 or a negative integer the rate of a pole there; NaN at the pole.

    If a parameter in the numerator, among ``above``, is such an integer, the series ends before the poles below it.
    """
    lowest = -np.inf
    for a in above:
        lowest = xp.where((a <= 0) & (a == xp.rint(a)), xp.maximum(lowest, a + 1), lowest)
    nearest = xp.maximum(xp.minimum(xp.rint(b), 0), lowest)
    distance = xp.where(lowest > 0, np.inf, xp.abs(b - nearest))
    return xp.maximum(rate, pole_rate(xp, xp.where(distance == 0, xp.nan, distance)))


def _raised(name: str, above: int) -> Callable[..., Any]:
    """Return the derivatives in the argument; ``above`` parameters are in the numerator, the others divide."""

    def fun(xp: Any, k: int, *args: Any) -> Any:
        if not k:
            return special(xp, name)(*args)
        *parameters, z = args
        rising = [prod([p + j for j in range(k)], start=1.0) for p in parameters]
        top, ended = prod(rising[:above]), False
        for p in parameters[:above]:  # a series that has ended is 1 or, beyond that, 0; SciPy may have inf there
            ended = ended | ((p + k == 0) & (name == "hyp1f1"))
        equal_ones = sum(p == q for p in parameters[:above] for q in parameters[above:]) > 0
        value = xp.where(ended, 1.0, special(xp, name)(*[p + k for p in parameters], z))
        gone = (top == 0) & ((name == "hyp1f1") | xp.logical_not(equal_ones))  # SciPy cancels equal ones of hyp2f1
        ratio = xp.where(gone, 0.0, top) / xp.where(gone, 1.0, prod(rising[above:]))
        return (xp.where(gone, 0.0, value) * ratio)[()]

    return fun


def _hyp1f1_rates(xp: Any, a: Any, b: Any, x: Any) -> list[Any]:
    growth = 1.6 + xp.log1p(xp.abs(x))
    return [growth, _pole_rate(xp, growth, b, a)]


def _hyp2f1_rates(xp: Any, a: Any, b: Any, c: Any, z: Any) -> list[Any]:
    growth = 1.6 + xp.abs(xp.log(xp.abs(xp.where(z == 1, 2, 1 - z))))
    first, second = (xp.where(p == c, 1.0, p) for p in (a, b))  # SciPy cancels equal ones, at this point only
    return [growth, growth, _pole_rate(xp, growth, c, first, second)]


#: ``hyp0f1(v, z, *, orders)`` and so on: see ``analytic``.
hyp0f1: Operation = analytic(
    "hyp0f1", 2, _raised("hyp0f1", 0), lambda xp, v, z: [_pole_rate(xp, 1.6 + 0 * xp.abs(z), v)]
)
hyp1f1: Operation = analytic("hyp1f1", 3, _raised("hyp1f1", 1), _hyp1f1_rates)
hyp2f1: Operation = analytic("hyp2f1", 4, _raised("hyp2f1", 2), _hyp2f1_rates)

# ---- Tricomi's function ------------------------------------------------------------------------------------


def _tricomi(a: Any, b: Any, x: Any, orders: tuple[int, ...]) -> Any:
    """Return derivatives of the integral of DLMF 13.4.4 by a sum over ``u = log(t)``, as in ``elliptic``.

    NaN where the sum has too many terms: for derivatives in a alone at tiny a, and for huge a or b.
    """
    a, b, x = np.broadcast_arrays(a, b, x)
    i, j, k = orders
    rate = a + (j + k > 0)  # rate far to the left: a factor of t or log(1 + t) makes the integrand fall even at a = 0
    valid = (rate > 1e-3) & (a > 0) & (x > 0) & (a + np.abs(b) < 1e8)
    a, b, x = (np.where(valid, v, 1.0) for v in (a, b, x))
    rate = a + (j + k > 0)
    low = np.minimum(0, -np.log(x)) - (45 + 5 * i) / rate
    high = np.log((60 + 2 * np.abs(a) + 2 * np.abs(b) + 10 * k) / x + 1)
    step = np.minimum(0.2, 0.5 / np.sqrt(a + np.abs(b) + 1))

    def term(n: Any) -> Any:
        u = low + n * step
        t = np.exp(u)
        log1 = np.log1p(t)
        size = np.exp(a * u + (b - a - 1) * log1 - x * t)
        return np.where(u <= high, size * (u - log1) ** i * log1**j * (-t) ** k, 0)

    total = summed(term, int(np.max((high - low) / step, initial=0)) + 2, x)
    return np.where(valid, total * step, np.nan)


#: Least a of the integral. Below, where it has too many terms or does not exist, the recurrence in a takes over.
_LEAST = 1e-3
_STEPS = 10_000


def _of_gamma(a: Any, i: int) -> list[Any]:
    """Return ``1 / gamma(a)`` and its derivatives to order i: the derivative is ``-digamma(a)`` times the function."""
    sp = import_scipy("scipy.special.hyperu", "scipy.special")
    rates, found = [sp.polygamma(m, a) for m in range(i)], [sp.rgamma(a)]
    for m in range(i):
        found.append(-sum(comb(m, n) * rates[n] * found[m - n] for n in range(m + 1)))
    return found


def _by_integral(a: Any, b: Any, x: Any, orders: tuple[int, ...]) -> Any:
    """Return the derivative of U for positive a, an integral over t divided by ``gamma(a)``: DLMF 13.4.4."""
    i, j, k = orders
    factors = _of_gamma(a, i)
    return sum(comb(i, m) * factors[i - m] * _tricomi(a, b, x, (m, j, k)) for m in range(i + 1))


def _lowered_in_a(a: Any, b: Any, x: Any, one: Any, two: Any, orders: tuple[int, ...]) -> Any:
    """Return the derivative of U at ``a`` from those at ``a + 1`` and ``a + 2``, by the product rule: DLMF 13.3.7."""
    i, j, k = orders
    found = (2 * a + 2 + x - b) * one[i, j, k] - (a + 1) * (a + 2 - b) * two[i, j, k]
    if i:
        found = found + i * (2 * one[i - 1, j, k] - (2 * a + 3 - b) * two[i - 1, j, k])
    if j:
        found = found - j * (one[i, j - 1, k] - (a + 1) * two[i, j - 1, k])
    if k:
        found = found + k * one[i, j, k - 1]
    if i > 1:
        found = found - i * (i - 1) * two[i - 2, j, k]
    return found + i * j * two[i - 1, j - 1, k] if i and j else found


def _by_recurrence(a: Any, b: Any, x: Any, orders: tuple[int, int, int]) -> Any:
    """Return the derivative of U for other a, down from two values between 1 and 3; NaN for a too far below."""
    steps = np.ceil(1 - a)
    valid = (steps <= _STEPS) & (x > 0)
    a, b, x, steps = (np.where(valid, v, 1.0) for v in (a, b, x, steps))
    each = list(product(*[range(n + 1) for n in orders]))
    one, two = [{n: _by_integral(a + (steps + up), b, x, n) for n in each} for up in (0, 1)]
    for left in range(int(np.max(steps, initial=0)), 0, -1):
        at, going = a + (left - 1), left <= steps
        zero = {n: _lowered_in_a(at, b, x, one, two, n) for n in each}
        # at a = 0 the function is 1, and a polynomial below: the recurrence would lose that where terms are huge
        zero = {n: np.where(at == 0, float(n == (0, 0, 0)), zero[n]) if not n[0] else zero[n] for n in each}
        two = {n: np.where(going, one[n], two[n]) for n in each}
        one = {n: np.where(going, zero[n], one[n]) for n in each}
    return np.where(valid, one[orders], np.nan)


def _hyperu_partial(xp: Any, a: Any, b: Any, x: Any, *, orders: tuple[int, int, int]) -> Any:
    def partial(a: Any, b: Any, x: Any) -> Any:
        a, b, x = np.broadcast_arrays(a, b, x)
        above = a > _LEAST
        with np.errstate(invalid="ignore", over="ignore"):
            found = _by_integral(np.where(above, a, 1.0), b, x, orders)
            return found if np.all(above) else np.where(above, found, _by_recurrence(a, b, x, orders))

    return in_double(np, partial, a, b, x)


#: ``hyperu_partial(a, b, x, *, orders)``: derivative of ``hyperu(a, b, x)`` of these orders.
hyperu_partial: Operation = of_all_orders("hyperu_partial", _hyperu_partial, 3)


def _hyperu_dx(x: Any, y: Any, z: Any) -> Any:
    """Return the derivative by ``hyperu_partial``: SciPy's has 8 digits in places. At 0 and far below: DLMF 13.3.22."""
    inside = logical_and(greater(x, -_STEPS + 1), greater(z, 0))
    partial = hyperu_partial(where(inside, x, 1.0), y, where(inside, z, 1.0), orders=(0, 0, 1))
    return where(inside, partial, -x * hyperu(where(inside, 0.0, x + 1), y + 1, z))


hyperu: Operation = scipy_operation(
    "hyperu",
    dx=lambda x, y, z: hyperu_partial(x, y, z, orders=(1, 0, 0)),
    dy=lambda x, y, z: hyperu_partial(x, y, z, orders=(0, 1, 0)),
    dz=_hyperu_dx,
)


#: ``x * exp(x) * exp1(x)``, which is ``1 - hyperu(1, 0, x)``, for positive x.
scaled_exp1: Operation = elementwise(
    "scaled_exp1",
    lambda xp, x: private_special(xp, "_scaled_exp1")(x),
    dx=lambda x: -hyperu_partial(1.0, 0.0, x, orders=(0, 0, 1)),
)


#: Wright's function ``sum(x**k / k! / gamma(a * k + b))`` and its logarithm, DLMF 10.46.1, at constant parameters.
wright_bessel: Operation = scipy_operation(
    "wright_bessel",
    dx=refused("wright_bessel", "a"),
    dy=refused("wright_bessel", "b"),
    dz=lambda x, y, z: wright_bessel(x, x + y, z),
)
log_wright_bessel: Operation = scipy_operation(
    "log_wright_bessel",
    dx=refused("log_wright_bessel", "a"),
    dy=refused("log_wright_bessel", "b"),
    dz=lambda x, y, z, ans: exp(log_wright_bessel(x, x + y, z) - ans),
)

#: Family of each derivative: ``(factor, name, parameters)``, a function of the degree n and the parameters.
_LOWERED: dict[str, Callable[..., tuple[Any, str, tuple[Any, ...]]]] = {
    "eval_legendre": lambda n: (1.0, "eval_gegenbauer", (1.5,)),
    "eval_chebyt": lambda n: (n, "eval_chebyu", ()),
    "eval_chebyu": lambda n: (2.0, "eval_gegenbauer", (2.0,)),
    "eval_hermite": lambda n: (2.0 * n, "eval_hermite", ()),
    "eval_hermitenorm": lambda n: (1.0 * n, "eval_hermitenorm", ()),
    "eval_laguerre": lambda n: (-1.0, "eval_genlaguerre", (1.0,)),
    "eval_genlaguerre": lambda n, a: (-1.0, "eval_genlaguerre", (a + 1,)),
    "eval_gegenbauer": lambda n, a: (2 * a, "eval_gegenbauer", (a + 1,)),
    "eval_jacobi": lambda n, a, b: ((n + a + b + 1) / 2, "eval_jacobi", (a + 1, b + 1)),
}


#: The polynomial of a whole degree below 0, as a factor and another degree; other families are constants there.
_REFLECTED: dict[str, Callable[..., Any]] = {
    "eval_legendre": lambda n: (1.0, -1 - n),
    "eval_chebyt": lambda n: (1.0, -n),
    "eval_chebyu": lambda n: (-1.0, -2 - n),
}


def _lowered(xp: Any, k: int, name: str, n: Any, parameters: tuple[Any, ...], x: Any) -> Any:
    """Return the derivative of order k in x of the polynomial, 0 where the degree falls below 0."""
    if not k:
        return special(xp, name)(n, *parameters, x)
    below, sign, nothing = (n < 0) & (n == xp.rint(n)), 1.0, 0.0
    if may_hold(below):
        nothing = special(xp, name)(n, *parameters, x) * 0  # NaN where SciPy has no value
        if name in _REFLECTED:
            sign, mirrored = _REFLECTED[name](n)
            n, sign = xp.where(below, mirrored, n), xp.where(below, sign, 1.0)
    factor, lower, raised = _LOWERED[name](n, *parameters)
    constant = (n == 0) | ((n < 0) & below)
    slope = _lowered(xp, k - 1, lower, xp.where(constant, 0, n - 1), raised, x)
    return xp.where(constant, nothing, sign * factor * slope)


def _polynomial(name: str, parameters: int = 0) -> Operation:
    """Define ``eval_...(n, *parameters, x, *, orders)``, see ``analytic``: the degree is a constant."""

    def value(xp: Any, k: int, n: Any, *rest: Any) -> Any:
        return _lowered(xp, k, name, n, rest[:-1], rest[-1])

    def rates(xp: Any, n: Any, *rest: Any) -> list[Any]:
        """Return the rates; at a degree that is not whole the function has a factor like ``gamma(n + alpha + 1)``."""
        each: list[Any] = [2.0 + xp.log1p(xp.abs(n)) for _ in rest[:-1]]
        if each:
            twice = 2 if name == "eval_gegenbauer" else 1
            if dtype_of(n).kind == "f":
                pole = _pole_rate(xp, each[0] / twice, n + twice * rest[0] + (2 - twice)) * twice
                each[0] = xp.where((n == xp.rint(n)) & (n >= 0), each[0], pole)
            gap = xp.abs(rest[0] - xp.minimum(xp.rint(twice * rest[0]), -1) / twice)  # to where SciPy's value is NaN
            each[0] = xp.maximum(each[0], span_rate(xp, xp.where(gap == 0, np.inf, gap)))
        return [0.0, *each]

    return analytic(name, parameters + 2, value, rates, degree="n")


eval_legendre: Operation = _polynomial("eval_legendre")
eval_chebyt: Operation = _polynomial("eval_chebyt")
eval_chebyu: Operation = _polynomial("eval_chebyu")
eval_hermite: Operation = _polynomial("eval_hermite")
eval_hermitenorm: Operation = _polynomial("eval_hermitenorm")
eval_laguerre: Operation = _polynomial("eval_laguerre")
eval_genlaguerre: Operation = _polynomial("eval_genlaguerre", 1)
eval_gegenbauer: Operation = _polynomial("eval_gegenbauer", 1)
eval_jacobi: Operation = _polynomial("eval_jacobi", 2)

# ---- Legendre functions and spherical harmonics ------------------------------------------------------------


def _lpmv_slope(x: Any, y: Any, z: Any) -> Any:
    """Return ``((v + m) * P[v-1] - v * z * P[v]) / (1 - z**2)``, DLMF 14.10.5. SciPy has NaN for P[v-1] at m = -v."""
    end = equal(absolute(z), 1)
    inner = where(end, 0.5, z) if may_hold(end) else z
    below = lpmv(where(equal(y + x, 0), 0.0, x), y - 1, inner)
    slope = ((y + x) * below - y * inner * lpmv(x, y, inner)) / ((1 - inner) * (1 + inner))
    return where(end, _lpmv_slope_at_end(x, y, where(end, z, 0.5)), slope) if may_hold(end) else slope


def _lpmv_slope_at_end(m: Any, v: Any, z: Any) -> Any:
    """Return the slope of ``(1 - z**2)**(m/2)`` times a Gegenbauer polynomial, which is P: DLMF 14.3.21, 14.9.3."""
    order = absolute(m)
    degree = where(less(v, -0.5), -1.0 - v, v) - order
    nothing = logical_and(less(degree, 0), equal(degree, floor(degree)))
    n, order = where(nothing, 0.0, degree), where(nothing, 0.0, order)
    flat, steep = [eval_gegenbauer(n, order + 0.5, z, orders=(0, 0, k)) for k in (0, 1)]
    square, half = (1 - z) * (1 + z), 0.5 * order
    bend = where(equal(order, 0), 0.0, order * z * power(square, where(equal(order, 0), 1.0, half) - 1))
    below = less(m, 0)
    factor = poch(0.5, order) * power(where(below, 2.0, -2.0), order)
    share = 1 / where(below, poch(n + 1, where(below, 2 * order, 0.0)), 1.0)
    return where(nothing, 0.0, factor * share) * (power(square, half) * steep - bend * flat)


#: ``lpmv(m, v, z)``: SciPy's associated Legendre function of order m and degree v, with the phase (-1)**m.
lpmv: Operation = scipy_operation(
    "lpmv",
    dx=refused("lpmv", "m", "The order is a whole number"),
    dy=refused("lpmv", "v", "The degree is a constant"),
    dz=_lpmv_slope,
)


def _sph_harm_y(xp: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    if xp is np:
        return import_scipy("scipy.special.sph_harm_y", "scipy.special").sph_harm_y(n, m, theta, phi)
    n, m = np.asarray(n), np.asarray(m)
    shape = np.broadcast_shapes(n.shape, m.shape, np.shape(theta), np.shape(phi))
    outside = np.broadcast_to(abs(m) > n, shape)
    flat = [xp.ravel(xp.broadcast_to(a, shape)) for a in (n, np.where(abs(m) > n, 0, m), theta, phi)]
    return xp.where(outside, 0, special(xp, "sph_harm_y")(*flat, n_max=int(n.max(initial=0))).reshape(shape))


def _ladder(steps: Any) -> Any:
    """Return the factor of a neighbouring order, 0 for an order beyond the degree, where the function is 0."""
    return sqrt(where(greater(steps, 0), steps, 0) * 0.25)


def _in_theta(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    """Return the derivative by the ladder of orders, finite at the poles: DLMF 14.30.1 with 14.10.4 and 14.10.5.

    Beyond the poles SciPy's function is that of the polar angle there, so the slope has the opposite sign.
    """
    above = _ladder((n - m) * (n + m + 1)) * exp(phi * -1j) * sph_harm_y(n, m + 1, theta, phi)
    below = _ladder((n + m) * (n - m + 1)) * exp(phi * 1j) * sph_harm_y(n, m - 1, theta, phi)
    return where(less(sin(theta), 0.0), -1.0, 1.0) * (above - below)


#: ``sph_harm_y(n, m, theta, phi)``: spherical harmonic of degree n and order m.
sph_harm_y: Operation = pointwise(
    "sph_harm_y",
    _sph_harm_y,
    refused("sph_harm_y", "n", "The degree is a whole number"),
    refused("sph_harm_y", "m", "The order is a whole number"),
    _in_theta,
    lambda n, m, theta, phi: m * 1j * sph_harm_y(n, m, theta, phi),
)
