"""Helpers for definitions of special functions: kernels by name, many arguments, derivatives in parameters.

Few special functions have a formula for the derivative in a parameter, such as the order of a Bessel function. But
nearly all are analytic in the parameter, and then central differences over many points are as good as the values. With
21 points and a step over which the function changes by a factor of at most about 1.3, the truncation error is below
1e-15 of the function. The remaining error is the rounding of the values, amplified by the order of the derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.linear import astype
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import equal, greater, less, logical_and, logical_or, trunc, where

#: Highest order of derivatives by differences: each order costs a digit.
HIGHEST = 4
_POINTS = 10  # on either side
#: Largest step, in units of the length over which the function changes by a factor of e.
_STEP = 0.25
#: Number of terms of a sum that are computed at once.
_BLOCK = 100_000


def pointwise(name: str, impl: Callable[..., Any], *partials: Callable[..., Any]) -> Operation:
    """Define an elementwise operation of any number of arguments, with static parameters.

    Args:
        name: its name.
        impl: ``impl(xp, *args, **params)``.
        partials: for each argument its ``partial(*args, **params)``.

    Example:
        >>> area = pointwise("area", lambda xp, x, y: x * y, lambda x, y: y, lambda x, y: x)
        >>> area(2.0, 3.0)
        6.0
    """

    def rule(partial: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t, args, **params: t * partial(*args, **params)

    rules = [rule(partial) for partial in partials]
    operation = primitive(name, impl, vjps=rules, jvps=rules, batch="elementwise")
    operation.__module__ = impl.__module__  # the module that defines the operation, so that pickle finds it
    return operation


def of_all_orders(
    name: str, impl: Callable[..., Any], count: int, others: Mapping[int, Callable[..., Any]] = MappingProxyType({})
) -> Operation:
    """Define ``name(*args, *, orders)``, the partial derivatives of a function: a derivative raises one of the orders.

    Args:
        name: its name.
        impl: ``impl(xp, *args, orders)``.
        count: the number of arguments.
        others: the partial derivatives in arguments, by their positions, that do not raise an order.
    """

    def raised(i: int) -> Callable[..., Any]:
        return lambda *args, orders: made(*args, orders=tuple([n + (j == i) for j, n in enumerate(orders)]))

    made = pointwise(name, impl, *[others.get(i, raised(i)) for i in range(count)])
    return made


def refused(call: str, argument: str, instead: str = "Pass it as a constant: stop_gradient") -> Callable[..., Any]:
    """Return a partial derivative that raises, for an argument in which there is no derivative."""

    def partial(*args: Any, **params: Any) -> Any:
        raise NotDifferentiableError(
            f"scipy.special.{call}: it has no derivative in {argument}, got a traced {argument}. {instead}."
        )

    return partial


def shifted(v: Any, by: int) -> Any:
    """Return ``v + by`` for a parameter that may be an integer; unsigned integers become signed, for values below 0."""
    return (astype(v, to=np.dtype(np.int64)) if dtype_of(v).kind in "bu" else v) + by


def whole(n: Any) -> Any:
    """Return ``n`` truncated towards 0 to a whole number, as SciPy does where its function takes one."""
    return trunc(n) if type(n) is not int and dtype_of(n).kind == "f" else n


def _wide(xp: Any, v: Any) -> Any:
    """Return ``v``; integers as int64, because logarithms of small integer dtypes have low precision."""
    return v if type(v) is int or dtype_of(v).kind not in "biu" else xp.asarray(v, xp.int64)


@cache
def _weights(order: int) -> tuple[tuple[int, float], ...]:
    """Return points and weights of the central difference of this order: Lagrange's polynomial, differentiated at 0."""
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
    """Return a partial derivative of ``fun``, which is analytic near ``args``, by central differences.

    Args:
        xp: the array namespace.
        fun: an elementwise function.
        args: the point, one array per argument.
        rates: how fast ``fun`` changes with each argument: ``abs(fun(v + z)) <= abs(fun(v)) * exp(rate * abs(z))``,
            more or less. Near a pole it is the rate of ``pole_rate``.
        orders: order of the derivative in each argument; their sum is at most ``HIGHEST``.

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
            h = xp.exp2(xp.floor(xp.log2(_STEP / rates[i])))  # a power of two: the points are exact
            points, weights = (xp.asarray(column, h.dtype) for column in zip(*_weights(order), strict=True))
            spread[i] = args[i] + points.reshape(-1, *(1,) * axes) * h
            sums.append((weights, h**order))
            axes += 1
    ans = fun(*spread)
    for weights, scale in reversed(sums):
        ans = _symmetric_sum(xp, weights, ans) / scale
    return ans


def _symmetric_sum(xp: Any, weights: Any, values: Any) -> Any:
    """Return the sum of ``weights * values`` along axis 0, in pairs: odd differences of even functions are 0.

    The order of the additions is the same for every shape: BLAS rounds differently for one example than for several.
    """
    half, sign = len(weights) // 2, -1 if len(weights) % 2 == 0 else 1
    pairs, total = values[:half] + sign * values[::-1][:half], 0.0
    for i in range(half):
        total = total + weights[i] * pairs[i]
    return total + weights[half] * values[half] if sign > 0 else total


def analytic(
    name: str, count: int, fun: Callable[..., Any], rates: Callable[..., Sequence[Any]], degree: str | None = None
) -> Operation:
    """Define ``name(*parameters, x, *, orders)``: partial derivatives of a function of parameters and an argument.

    Args:
        name: its name.
        count: the number of arguments.
        fun: ``fun(xp, k, *parameters, x)``, the derivative of order k in x.
        rates: ``rates(xp, *parameters, x)``, the rates of all parameters for ``difference_quotient``.
        degree: name of the first parameter if it has no derivative; then that parameter may be an integer.
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

    impl.__module__ = fun.__module__
    constant = {} if degree is None else {0: refused(name, degree, "It is a constant: stop_gradient")}
    return of_all_orders(name, impl, count, constant)


def summed(term: Callable[[Any], Any], count: int, like: Any) -> Any:
    """Return ``term(0) + ... + term(count - 1)``, NumPy arrays shaped like ``like``; term takes a column of numbers."""
    total = np.zeros_like(like)
    block = max(1, _BLOCK // max(total.size, 1))
    for start in range(0, count, block):
        k = np.arange(start, min(start + block, count)).reshape(-1, *(1,) * total.ndim)
        total = total + np.sum(term(k), axis=0)
    return total


def pole_rate(xp: Any, distance: Any) -> Any:
    """Return the rate, for ``difference_quotient``, of a function with a pole at this distance."""
    return 32 * _STEP / xp.abs(distance)


def span_rate(xp: Any, gap: Any) -> Any:
    """Return the rate for which all points of ``difference_quotient`` are nearer than ``gap``."""
    return (_POINTS + 0.5) * _STEP / gap


def polygamma(xp: Any, n: int, x: Any) -> Any:
    """Return the derivative of order ``n`` of the digamma function; 0 is the function itself."""
    return special(xp, "polygamma")(n, x) if n else special(xp, "digamma")(x)


def may_hold(condition: Any) -> bool:
    """Whether ``condition`` holds for any element; True if the values are unknown."""
    return bool(np.any(condition)) if issubclass(type(condition), (np.ndarray, np.generic)) else True


def in_double(xp: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)`` in the dtype of SciPy's ufuncs, computed in double precision for NumPy arrays.

    Example:
        >>> import numpy
        >>> in_double(numpy, lambda x: x / 3, numpy.float32(1.0))
        np.float32(0.33333334)
    """
    dtype = xp.result_type(xp.result_type(*args), xp.float32)  # Python numbers alone give double precision
    if xp.__name__ != "numpy":
        return fun(*[xp.asarray(a, dtype) for a in args])
    wide = [xp.asarray(a, xp.result_type(xp.asarray(a).dtype, xp.float64)) for a in args]
    with xp.errstate(all="ignore"):  # SciPy's functions are silent too
        ans = fun(*wide)
    return ans.astype(xp.result_type(dtype, xp.complex64) if ans.dtype.kind == "c" else dtype)[()]


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def kernel(name: str, of_jax: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the ``impl`` of a primitive that computes SciPy's function ``name``.

    Args:
        name: the name in ``scipy.special``.
        of_jax: ``of_jax(xp, *args)`` for JAX arrays, if ``jax.scipy.special`` has no function of this name.

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


def scipy_operation(name: str, of_jax: Callable[..., Any] | None = None, **rules: Any) -> Operation:
    """Define an ``elementwise`` operation with the ``kernel`` of that name and these ``rules``."""
    operation = elementwise(name, kernel(name, of_jax), **rules)
    homes = [rule.__module__ for rule in rules.values() if callable(rule)]
    operation.__module__ = next(home for home in homes if home != __name__)  # the module that defines it, for pickle
    return operation


def derivatives(name: str, value: Callable[..., Any] | None, derivative: Callable[..., Any]) -> Operation:
    """Define a function of one argument and all its derivatives: ``operation(x, order=n)``.

    Args:
        name: its name.
        value: ``value(xp, x)``, the function; None if ``derivative`` computes order 0 too.
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
    operation.__module__ = derivative.__module__  # the module that defines the operation, so that pickle finds it
    return operation


def stirling_error(xp: Any, a: Any) -> Any:
    """Return ``gammaln(a) - ((a - 1/2) log(a) - a + log(2 pi) / 2)``, by DLMF 5.11.1 for large a."""
    large = a > 10
    near, far = xp.where(large, 1, a), xp.where(large, a, 10)
    series, square = 0, far * far
    for c in reversed(_STIRLING):
        series = series / square + c
    exact = special(xp, "gammaln")(near) - ((near - 0.5) * xp.log(near) - near + 0.5 * math.log(2 * math.pi))
    return xp.where(large, series / far, exact)


def log_beta(xp: Any, a: Any, b: Any) -> Any:
    """Return the logarithm of the beta function, by DLMF 5.12.1 and 5.11.1: JAX's has seven digits between 8 and 50."""
    if xp.__name__ == "numpy":
        return special(xp, "betaln")(a, b)
    gammaln = special(xp, "gammaln")
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    total, far = small + large, large > 10
    safe, beyond = xp.where(far, large, 11), xp.where(far, total, 11)
    step = small * (1 - xp.log(beyond)) - (safe - 0.5) * xp.log1p(xp.where(far, small, 0) / safe)
    step = step + stirling_error(xp, safe) - stirling_error(xp, beyond)
    return gammaln(small) + xp.where(far, step, gammaln(large) - gammaln(total))


# ---- distribution functions and their inverses ---------------------------------------------------------------

#: Per argument: the partial derivative, a function of all arguments, or the name of an integer argument without one.
Partials = tuple[Callable[..., Any] | str, ...]


def _defined(
    name: str, partials: Partials, rule: Callable[[int], Callable[..., Any]], of_jax: Callable[..., Any] | None
) -> Operation:
    """Define an elementwise operation of two or three arguments; ``rule(i)`` takes the arguments and the result."""

    def named(i: int) -> Any:
        partial, compute = partials[i], rule(i)
        if isinstance(partial, str):
            return refused(name, partial, "It is a whole number: pass it as a constant")
        if len(partials) == 2:
            return lambda x, y, ans: compute((x, y), ans)
        return lambda x, y, z, ans: compute((x, y, z), ans)

    dx, dy, dz = [*map(named, range(len(partials))), None][:3]
    made: Operation = elementwise(name, kernel(name, of_jax), dx=dx, dy=dy, dz=dz)
    made.__module__ = next(p.__module__ for p in partials if callable(p))  # the module that defines it, for pickle
    return made


def distribution(
    name: str, partials: Partials, of_jax: Callable[..., Any] | None = None, sign: float = 1.0
) -> Operation:
    """Define a distribution function, or with ``sign=-1`` its complement, 1 minus the function."""

    def rule(i: int) -> Callable[..., Any]:
        partial: Any = partials[i]
        return (lambda args, ans: partial(*args)) if sign > 0 else lambda args, ans: -partial(*args)

    return _defined(name, partials, rule, of_jax)


def zero_where_search_failed(ans: Any, slope: Callable[[Any], Any]) -> Any:
    """Return ``slope(ans)`` for a result of SciPy's search; 0 at the ends of the range, where the search gives up."""
    size = absolute(ans)
    nowhere = logical_or(less(size, 1e-40), greater(size, 9e9))
    return where(nowhere, 0, slope(where(nowhere, 1, ans)))


def inverse(name: str, partials: Partials, position: int, sign: float = 1.0, searched: bool = False) -> Operation:
    """Define the inverse of a distribution function in one argument, or with ``sign=-1`` that of its complement.

    ``searched`` says that SciPy finds the result by a search: derivatives are 0 where the search gives up.
    """

    def rule(i: int) -> Callable[..., Any]:
        partial: Any = partials[i]

        def implicit(args: tuple[Any, ...], ans: Any) -> Any:
            def slope(ans: Any) -> Any:
                point = (*args[:position], ans, *args[position + 1 :])
                rate = partials[position](*point)  # type: ignore[operator]
                if i == position:
                    return sign / rate
                shift = partial(*point)  # at an end of the support, which does not move, both are 0
                return -shift / where(logical_and(equal(shift, 0), equal(rate, 0)), 1, rate)

            return zero_where_search_failed(ans, slope) if searched else slope(ans)

        return implicit

    return _defined(name, partials, rule, None)
