"""Noncentral distribution functions, of chi-square, F and Student's t, and their inverses in every argument.

The values are SciPy's. The derivative in x is the density. In the degrees of freedom the functions are analytic, and
differences over many points are as good as the values, see ``partials``; likewise in the noncentrality of Student's t.
The noncentrality of the other two must not be negative. Those functions are mixtures of central ones with Poisson's
weights, ``exp(-nc/2) (nc/2)**j / j!`` for ``2 j`` more degrees of freedom (N. L. Johnson, S. Kotz and N. Balakrishnan,
Continuous Univariate Distributions 2, 1995, chapters 29 and 30). Therefore the derivative in the noncentrality is half
the difference that two more degrees of freedom make.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad.kinds.rules import Operation
from funcgrad.optional import private_special
from funcgrad.scipy.special.operations.distributions import MANY_DEGREES
from funcgrad.scipy.special.operations.partials import (
    difference_quotient,
    in_double,
    may_hold,
    of_all_orders,
    pointwise,
    pole_rate,
    zero_where_search_failed,
)


class _Family(NamedTuple):
    """Functions of a distribution, of ``(x, degrees of freedom ..., noncentrality)``.

    Attributes:
        lower: ``lower(xp, *args)``, the distribution function.
        upper: the complement, 1 minus ``lower``.
        density: the density.
        rates: how fast the functions change with each argument except a noncentrality of Poisson's weights, see
            ``partials.difference_quotient``.
        shifted_args: returns the arguments with ``step`` times two more degrees of freedom, and the factor of the
            density there; None if the noncentrality may be negative.
    """

    lower: Callable[..., Any]
    upper: Callable[..., Any]
    density: Callable[..., Any]
    rates: Callable[..., list[Any]]
    shifted_args: Callable[..., tuple[tuple[Any, ...], Any]] | None


def _scipy_function(name: str, order: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Return the ``impl`` that calls SciPy's function with the arguments in this order.

    Where the function raises, as Boost does if a factor overflows, the result is NaN.
    """

    def fun(xp: Any, *args: Any) -> Any:
        scipy_function, given = private_special(xp, name), [args[i] for i in order] if order else args

        def one(*args: Any) -> Any:
            try:
                return scipy_function(*args)
            except OverflowError:
                return math.nan

        try:
            return scipy_function(*given)
        except OverflowError:
            return np.vectorize(one, [np.float64])(*given)

    return fun


def _chi2_rates(xp: Any, x: Any, df: Any, nc: Any) -> list[Any]:
    size = xp.abs(xp.log(x / (df + nc)))
    return [pole_rate(xp, x) + 0.5 + df / (2 * x), pole_rate(xp, df) + 1 + 0.5 * size]


def _f_rates(xp: Any, x: Any, dfn: Any, dfd: Any, nc: Any) -> list[Any]:
    share = dfn * x / (dfn * x + dfd)
    of_x = pole_rate(xp, x) + (dfn + (dfn + dfd) * share + nc) / (2 * x)
    return [of_x, pole_rate(xp, dfn) + 1 - xp.log(share), pole_rate(xp, dfd) + 1 + xp.log1p(dfn * x / dfd)]


def _t_rates(xp: Any, x: Any, df: Any, nc: Any) -> list[Any]:
    radius = xp.hypot(x, xp.sqrt(df))
    size = xp.abs(x) / radius * ((df + 1) / radius)
    of_df = pole_rate(xp, df) + 1 + xp.log(radius) - 0.5 * xp.log(df)
    return [pole_rate(xp, radius) + 1 + size + xp.abs(nc), of_df, 1 + xp.abs(nc) + xp.minimum(xp.abs(x), 40)]


#: Beyond it, in its own units, a density is a power times the tail; SciPy's functions overflow there.
_FAR = 1e17


def _density_by_scipy(name: str, xp: Any, family: _Family, args: Any) -> Any:
    """Return SciPy's density; where it is NaN, the slope of the tail."""
    found = _scipy_function(name)(xp, *args)
    missing = found != found
    if not may_hold(missing):
        return found
    slope = _slope_of_tail(xp, family, xp.broadcast_arrays(*args), (1,) + (0,) * (len(args) - 1))
    return xp.where(missing, slope, found)


def _by_tail(name: str, xp: Any, family: _Family, far: Any, tail: Any, args: Any) -> Any:
    """Return the density, but ``tail()`` where the first argument is far from the middle."""
    if not may_hold(far):
        return _density_by_scipy(name, xp, family, args)
    near = _density_by_scipy(name, xp, family, (xp.where(far, 1.0, args[0]), *args[1:]))
    return xp.where(far, tail(), near)


def _f_density(xp: Any, x: Any, dfn: Any, dfd: Any, nc: Any) -> Any:
    odds, size = x / dfd * dfn, dfn + dfd + nc
    low, high = (x > 0) & (odds * size < 1 / _FAR), (x < math.inf) & (odds > size * _FAR)

    def tail() -> Any:
        args = x, dfn, dfd, nc
        return xp.where(low, dfn * _F.lower(xp, *args), dfd * _F.upper(xp, *args)) / (2 * xp.where(x == 0, 1, x))

    return _by_tail("_ncf_pdf", xp, _F, low | high, tail, (x, dfn, dfd, nc))


def _t_density(xp: Any, x: Any, df: Any, nc: Any) -> Any:
    distance = xp.abs(x)
    far = (distance < math.inf) & (distance > (1 + df) * (1 + xp.abs(nc)) * _FAR)

    def tail() -> Any:
        return df * xp.where(x > 0, _T.upper(xp, x, df, nc), _T.lower(xp, x, df, nc)) / xp.where(far, distance, 1)

    return _by_tail("_nct_pdf", xp, _T, far, tail, (x, df, nc))


_CHI2 = _Family(
    _scipy_function("chndtr"),
    _scipy_function("_ncx2_sf"),
    _scipy_function("_ncx2_pdf"),
    _chi2_rates,
    lambda step, x, df, nc: ((x, df + 2 * step, nc), 1.0),
)
_F = _Family(
    _scipy_function("ncfdtr", (1, 2, 3, 0)),
    _scipy_function("_ncf_sf"),
    _f_density,
    _f_rates,
    lambda step, x, dfn, dfd, nc: (
        (x * dfn / (dfn + 2 * step), dfn + 2 * step, dfd, nc),
        dfn / (dfn + 2 * step),
    ),
)
_T = _Family(_scipy_function("nctdtr", (1, 2, 0)), _scipy_function("_nct_sf"), _t_density, _t_rates, None)


def _shifted(xp: Any, family: _Family, fun: Callable[..., Any], n: int, is_density: bool) -> Callable[..., Any]:
    """Return the derivative of order n of ``fun`` in a noncentrality of Poisson's weights."""
    shifted_args: Any = family.shifted_args

    def derivative(*args: Any) -> Any:
        total = 0.0
        for step in range(n + 1):
            moved, factor = shifted_args(step, *args)
            total = total + math.comb(n, step) * (-1) ** (n - step) * (factor if is_density else 1.0) * fun(xp, *moved)
        return total / 2.0**n

    return derivative


def _derivative(xp: Any, family: _Family, fun: Callable[..., Any], args: Any, orders: Any, is_density: bool) -> Any:
    among, n, rates = list(orders), orders[-1], family.rates(xp, *args)
    if family.shifted_args is None:
        return difference_quotient(xp, lambda *a: fun(xp, *a), args, rates, among)
    among[-1] = 0
    return difference_quotient(xp, _shifted(xp, family, fun, n, is_density), args, [*rates, 0.0], among)


def _slope_of_tail(xp: Any, family: _Family, args: Any, orders: tuple[int, ...]) -> Any:
    """Return the derivative of the distribution function by differences of the smaller tail."""
    below, above = [_derivative(xp, family, fun, args, orders, False) for fun in (family.lower, family.upper)]
    return xp.where(family.lower(xp, *args) < 0.5, below, -above)


def _slope(family: _Family) -> Callable[..., Any]:
    """Return the ``impl`` that computes the derivative of the distribution function of some ``orders``, not all 0."""

    def impl(xp: Any, *args: Any, orders: tuple[int, ...]) -> Any:
        def computed(*args: Any) -> Any:
            args = xp.broadcast_arrays(*args)
            if orders[0]:
                rest = (orders[0] - 1, *orders[1:])
                return _derivative(xp, family, family.density, args, rest, True) if any(rest) else density(*args)
            return _slope_of_tail(xp, family, args, orders)

        def density(*args: Any) -> Any:
            return family.density(xp, *args)

        def guarded(*given: Any) -> Any:
            args = list(xp.broadcast_arrays(*given))
            if family is _T and not orders[1]:  # with infinitely many degrees of freedom it is a normal distribution
                args[1] = xp.where(args[1] == math.inf, MANY_DEGREES, args[1])
            x, *degrees = args[:-1]
            known = sum(args) == sum(args)
            inside = known & (xp.abs(x) < math.inf) & ((x > 0) | (family.shifted_args is None))
            for v in degrees:
                inside, known = inside & (v > 0) & (v < math.inf), known & (v > 0)
            safe = [xp.where(inside, v, 1.0) for v in args]
            return xp.where(inside, computed(*safe), xp.where(known, 0.0, math.nan))

        return in_double(xp, computed if orders[0] and not any(orders[1:]) and orders[0] == 1 else guarded, *args)

    return impl


ncx2_slope: Operation = of_all_orders("ncx2_slope", _slope(_CHI2), 3)
ncf_slope: Operation = of_all_orders("ncf_slope", _slope(_F), 4)
nct_slope: Operation = of_all_orders("nct_slope", _slope(_T), 3)


def _first(count: int, i: int) -> tuple[int, ...]:
    return tuple([int(j == i) for j in range(count)])


def _function(name: str, fun: Callable[..., Any], slope: Operation, count: int, sign: float = 1.0) -> Operation:
    """Define a distribution function, or with ``sign=-1`` its complement, 1 minus the function."""

    def partial(i: int) -> Callable[..., Any]:
        return lambda *args: sign * slope(*args, orders=_first(count, i))

    return pointwise(name, fun, *[partial(i) for i in range(count)])


def _inverse(
    name: str, fun: Callable[..., Any], slope: Operation, count: int, position: int, sign: float = 1.0
) -> Operation:
    """Define the inverse in one argument, which the probability replaces. SciPy searches for all but the first."""

    def partial(i: int) -> Callable[..., Any]:
        def rule(*args: Any) -> Any:
            def implicit(ans: Any) -> Any:
                point = [*args[:position], ans, *args[position + 1 :]]
                rate = slope(*point, orders=_first(count, position))
                return sign / rate if i == position else -slope(*point, orders=_first(count, i)) / rate

            return zero_where_search_failed(made(*args), implicit) if position else implicit(made(*args))

        return rule

    made: Operation = pointwise(name, fun, *[partial(i) for i in range(count)])
    return made


def _density(slope: Operation, count: int) -> Callable[..., Any]:
    return lambda *args: slope(*args, orders=_first(count, 0))


ncx2_density, ncf_density, nct_density = _density(ncx2_slope, 3), _density(ncf_slope, 4), _density(nct_slope, 3)

chndtr: Operation = _function("chndtr", _CHI2.lower, ncx2_slope, 3)
ncx2_sf: Operation = _function("ncx2_sf", _CHI2.upper, ncx2_slope, 3, -1.0)
chndtrix: Operation = _inverse("chndtrix", _scipy_function("chndtrix"), ncx2_slope, 3, 0)
ncx2_isf: Operation = _inverse("ncx2_isf", _scipy_function("_ncx2_isf"), ncx2_slope, 3, 0, -1.0)
chndtridf: Operation = _inverse("chndtridf", _scipy_function("chndtridf"), ncx2_slope, 3, 1)
chndtrinc: Operation = _inverse("chndtrinc", _scipy_function("chndtrinc"), ncx2_slope, 3, 2)

ncfdtr: Operation = _function("ncfdtr", _F.lower, ncf_slope, 4)
ncf_sf: Operation = _function("ncf_sf", _F.upper, ncf_slope, 4, -1.0)
ncfdtri: Operation = _inverse("ncfdtri", _scipy_function("ncfdtri", (1, 2, 3, 0)), ncf_slope, 4, 0)
ncf_isf: Operation = _inverse("ncf_isf", _scipy_function("_ncf_isf"), ncf_slope, 4, 0, -1.0)
ncfdtridfn: Operation = _inverse("ncfdtridfn", _scipy_function("ncfdtridfn", (1, 2, 3, 0)), ncf_slope, 4, 1)
ncfdtridfd: Operation = _inverse("ncfdtridfd", _scipy_function("ncfdtridfd", (1, 2, 3, 0)), ncf_slope, 4, 2)
ncfdtrinc: Operation = _inverse("ncfdtrinc", _scipy_function("ncfdtrinc", (1, 2, 3, 0)), ncf_slope, 4, 3)

nctdtr: Operation = _function("nctdtr", _T.lower, nct_slope, 3)
nct_sf: Operation = _function("nct_sf", _T.upper, nct_slope, 3, -1.0)
nctdtrit: Operation = _inverse("nctdtrit", _scipy_function("nctdtrit", (1, 2, 0)), nct_slope, 3, 0)
#: Quantile function by Boost, as ``stats.nct`` computes it before SciPy 1.17.
nct_ppf: Operation = _inverse("nct_ppf", _scipy_function("_nct_ppf"), nct_slope, 3, 0)
nct_isf: Operation = _inverse("nct_isf", _scipy_function("_nct_isf"), nct_slope, 3, 0, -1.0)
nctdtridf: Operation = _inverse("nctdtridf", _scipy_function("nctdtridf", (1, 2, 0)), nct_slope, 3, 1)
nctdtrinc: Operation = _inverse("nctdtrinc", _scipy_function("nctdtrinc", (1, 2, 0)), nct_slope, 3, 2)
