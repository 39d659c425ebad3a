"""What definitions of special functions share: kernels by name, many arguments, derivatives in parameters.

Few special functions have a formula for the derivative in a parameter (the order of a Bessel function, say). But
nearly all are analytic in it, and then central differences over many points are as good as the values: with 21
points and a step in which the function changes by a factor of about 1.5 the truncated rest is below 1e-15 of it, and
what remains is the values' own rounding, enlarged by the derivative's order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.linear import astype
from funcgrad.kinds.rules import Operation, positional_names
from funcgrad.optional import special
from funcgrad.primitives.comparison import trunc

#: The highest order of derivatives by differences: each costs a digit.
HIGHEST = 4
_POINTS = 10  # on either side
#: The step, in units of the length over which the function changes by a factor of e.
_STEP = 0.25
#: How many terms of a sum are computed at once.
_BLOCK = 100_000


def pointwise(name: str, impl: Callable[..., Any], *partials: Callable[..., Any]) -> Operation:
    """Define an elementwise operation of any number of arguments, with static parameters.

    Args:
        name: its name.
        impl: ``impl(xp, *args, **params)``.
        partials: for each argument ``partial(*args, **params)``.

    Example:
        >>> area = pointwise("area", lambda xp, x, y: x * y, lambda x, y: y, lambda x, y: x)
        >>> area(2.0, 3.0)
        6.0
    """

    def rule(partial: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t, args, **params: t * partial(*args, **params)

    rules = [rule(partial) for partial in partials]
    operation = primitive(name, impl, vjps=rules, jvps=rules, batch="elementwise")
    operation.__module__ = impl.__module__  # where it stands, so that it pickles
    return operation


def refused(call: str, argument: str, instead: str = "Pass it as a constant: stop_gradient") -> Callable[..., Any]:
    """A partial derivative that raises, for an argument in which there is none to be had."""

    def partial(*args: Any, **params: Any) -> Any:
        raise NotDifferentiableError(
            f"scipy.special.{call}: it has no derivative in {argument}, got a traced {argument}. {instead}."
        )

    return partial


def shifted(v: Any, by: int) -> Any:
    """``v + by`` for a parameter that may be an integer: unsigned ones have no number below 0."""
    return (astype(v, to=np.dtype(np.int64)) if dtype_of(v).kind in "bu" else v) + by


def whole(n: Any) -> Any:
    """The whole number that SciPy makes of ``n`` where its function takes one: the nearest towards 0."""
    return trunc(n) if type(n) is not int and dtype_of(n).kind == "f" else n


def _wide(xp: Any, v: Any) -> Any:
    """``v``, if whole numbers then the longest with a sign: logarithms of small ones are of little precision."""
    return v if type(v) is int or dtype_of(v).kind not in "biu" else xp.asarray(v, xp.int64)


@cache
def _weights(order: int) -> tuple[tuple[int, float], ...]:
    """Points and weights of the central difference of this order: Lagrange's polynomial, differentiated at 0."""
    points = range(-_POINTS, _POINTS + 1)
    found = []
    for k in points:
        product = [Fraction(1)]  # coefficients, from the constant on
        for other in points:
            if other != k:
                low, high = [Fraction(-other, k - other) * c for c in product], [c / (k - other) for c in product]
                product = [a + b for a, b in zip([*low, Fraction(0)], [Fraction(0), *high], strict=True)]
        if product[order]:
            found.append((k, float(product[order] * math.factorial(order))))
    return tuple(found)


def difference_quotient(
    xp: Any, fun: Callable[..., Any], args: Sequence[Any], rates: Sequence[Any], orders: Sequence[int]
) -> Any:
    """A partial derivative of ``fun``, which is analytic near ``args``, by central differences.

    Args:
        xp: the array namespace.
        fun: an elementwise function.
        args: where.
        rates: how fast it changes with each argument: ``abs(fun(v + z)) <= abs(fun(v)) * exp(rate * abs(z))``, more
            or less. Near a pole it is that of ``beside_pole``.
        orders: of the derivative in each argument, up to ``HIGHEST`` together.

    Example:
        >>> import numpy
        >>> difference_quotient(numpy, numpy.exp, [0.0], [1.0], [1]).round(13)
        np.float64(1.0)
    """
    if sum(orders) > HIGHEST:
        raise NotDifferentiableError(
            f"scipy.special: derivatives in a parameter are computed up to order {HIGHEST}, got a derivative of order "
            f"{sum(orders)}. Pass the parameter as a constant: stop_gradient."
        )
    spread, sums = list(args), []
    axes = max(xp.ndim(a) for a in (*args, *rates))
    for i, order in enumerate(orders):
        if order:
            h = xp.exp2(xp.floor(xp.log2(_STEP / rates[i])))  # a power of two: the points are as they should be
            points, weights = (xp.asarray(column, h.dtype) for column in zip(*_weights(order), strict=True))
            spread[i] = args[i] + points.reshape(-1, *(1,) * axes) * h
            sums.append((weights, h**order))
            axes += 1
    ans = fun(*spread)
    for weights, scale in reversed(sums):
        ans = _symmetric_sum(xp, weights, ans) / scale
    return ans


def _symmetric_sum(xp: Any, weights: Any, values: Any) -> Any:
    """The sum of ``weights * values`` along the first axis, in pairs: of an even function odd differences are 0.

    In this order whatever the shape: BLAS rounds otherwise for one example than for several.
    """
    half, sign = len(weights) // 2, -1 if len(weights) % 2 == 0 else 1
    pairs, total = values[:half] + sign * values[::-1][:half], 0.0
    for i in range(half):
        total = total + weights[i] * pairs[i]
    return total + weights[half] * values[half] if sign > 0 else total


def analytic(
    name: str, fun: Callable[..., Any], rates: Callable[..., Sequence[Any]], degree: str | None = None
) -> Operation:
    """Define ``name(*parameters, x, *, orders)``: partial derivatives of a function of parameters and an argument.

    Args:
        name: its name.
        fun: ``fun(xp, k, *parameters, x)``, the derivative of order k in x.
        rates: ``rates(xp, *parameters, x)``, those of all parameters for ``difference_quotient``.
        degree: what the first parameter is called if it has no derivative; then it may be an integer.
    """
    fixed = 0 if degree is None else 1

    def impl(xp: Any, *args: Any, orders: tuple[int, ...]) -> Any:
        *among, k = orders
        if any(orders):
            args = tuple([_wide(xp, a) for a in args])
        if not any(among):
            return fun(xp, k, *args)

        def computed(*rest: Any) -> Any:
            full = (*args[:fixed], *rest)
            return difference_quotient(xp, lambda *a: fun(xp, k, *a), full, [*rates(xp, *full), 0.0], [*among, 0])

        return in_double(xp, computed, *args[fixed:])

    def partial(i: int) -> Callable[..., Any]:
        return lambda *args, orders: made(*args, orders=tuple([n + (j == i) for j, n in enumerate(orders)]))

    partials = [partial(i) for i in range(len(positional_names(fun)) - 2)]
    if degree is not None:
        partials[0] = refused(name, degree, "It is a constant: stop_gradient")
    made: Operation = pointwise(name, impl, *partials)
    return made


def summed(term: Callable[[Any], Any], count: int, like: Any) -> Any:
    """``term(0) + ... + term(count - 1)`` of NumPy arrays of the shape of ``like``; term takes a column of numbers."""
    total = np.zeros_like(like)
    block = max(1, _BLOCK // max(total.size, 1))
    for start in range(0, count, block):
        k = np.arange(start, min(start + block, count)).reshape(-1, *(1,) * total.ndim)
        total = total + np.sum(term(k), axis=0)
    return total


def beside_pole(xp: Any, distance: Any) -> Any:
    """The rate, for ``difference_quotient``, of a function with a pole at this distance."""
    return 32 * _STEP / xp.abs(distance)


def in_double(xp: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """``fun(*args)`` computed in double precision, in the dtype that a ufunc of SciPy has for these arguments.

    Example:
        >>> import numpy
        >>> in_double(numpy, lambda x: x / 3, numpy.float32(1.0))
        np.float32(0.33333334)
    """
    dtype = xp.result_type(xp.result_type(*args), xp.float32)  # of Python numbers alone it is double precision
    if xp.__name__ != "numpy":
        return fun(*[xp.asarray(a, dtype) for a in args])
    wide = [xp.asarray(a, xp.result_type(xp.asarray(a).dtype, xp.float64)) for a in args]
    with xp.errstate(all="ignore"):  # SciPy's functions are silent too
        ans = fun(*wide)
    return ans.astype(xp.result_type(dtype, xp.complex64) if ans.dtype.kind == "c" else dtype)[()]


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def kernel(name: str, of_jax: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The ``impl`` of a primitive that computes what SciPy's function ``name`` does.

    Args:
        name: the name in ``scipy.special``.
        of_jax: ``of_jax(xp, *args)`` for arrays of JAX where ``jax.scipy.special`` has no function of this name.

    Example:
        >>> import numpy
        >>> kernel("erf")(numpy, 0.0)
        np.float64(0.0)
    """

    def impl(xp: Any, *args: Any) -> Any:
        if of_jax is not None and xp.__name__ != "numpy":
            return of_jax(xp, *args)
        return special(xp, name)(*args)

    return impl


def of_scipy(name: str, of_jax: Callable[..., Any] | None = None, **rules: Any) -> Operation:
    """``elementwise`` with the ``kernel`` of that name, and with these ``rules``."""
    operation = elementwise(name, kernel(name, of_jax), **rules)
    homes = [rule.__module__ for rule in rules.values() if callable(rule)]
    operation.__module__ = next(home for home in homes if home != __name__)  # where it stands, so that it pickles
    return operation


def derivatives(name: str, value: Callable[..., Any] | None, derivative: Callable[..., Any]) -> Operation:
    """A function of one argument and all its derivatives: ``operation(x, order=n)``.

    Args:
        name: its name.
        value: ``value(xp, x)``, the function; None where ``derivative`` gives that too.
        derivative: ``derivative(xp, x, order)``, called in double precision.

    Example:
        >>> import numpy
        >>> exponential = derivatives("exponential", None, lambda xp, x, order: xp.exp(x))
        >>> exponential(0.0, order=3)
        np.float64(1.0)
    """

    def impl(xp: Any, x: Any, *, order: int) -> Any:
        if order == 0 and value is not None:
            return value(xp, x)
        return in_double(xp, lambda x: derivative(xp, x, order), x)

    operation = pointwise(name, impl, lambda x, *, order: operation(x, order=order + 1))
    operation.__module__ = derivative.__module__  # where it stands, so that it pickles
    return operation


def stirling_error(xp: Any, a: Any) -> Any:
    """``gammaln(a) - ((a - 1/2) log(a) - a + log(2 pi) / 2)``, by DLMF 5.11.1 for large a."""
    large = a > 10
    near, far = xp.where(large, 1, a), xp.where(large, a, 10)
    series, square = 0, far * far
    for c in reversed(_STIRLING):
        series = series / square + c
    exact = special(xp, "gammaln")(near) - ((near - 0.5) * xp.log(near) - near + 0.5 * math.log(2 * math.pi))
    return xp.where(large, series / far, exact)


def log_beta(xp: Any, a: Any, b: Any) -> Any:
    """The logarithm of the beta function, by DLMF 5.12.1 and 5.11.1: JAX's own has seven digits between 8 and 50."""
    if xp.__name__ == "numpy":
        return special(xp, "betaln")(a, b)
    gammaln = special(xp, "gammaln")
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    total, far = small + large, large > 10
    safe, beyond = xp.where(far, large, 11), xp.where(far, total, 11)
    step = small * (1 - xp.log(beyond)) - (safe - 0.5) * xp.log1p(xp.where(far, small, 0) / safe)
    step = step + stirling_error(xp, safe) - stirling_error(xp, beyond)
    return gammaln(small) + xp.where(far, step, gammaln(large) - gammaln(total))
