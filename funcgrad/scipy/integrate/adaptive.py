"""Integrals of functions of one or several variables, by SciPy's adaptive ``quad`` or by Gauss quadrature.

The derivative of an integral with respect to a limit is the function there (Leibniz). The derivative with respect to an
argument of the function is the integral of the function's derivative. Both are again differentiable, which gives every
order and both modes. ``nquad`` nests such integrals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import is_in_batch
from funcgrad.core import is_in_transform, plain_value
from funcgrad.errors import ConcretizationError, ConversionError, InputError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy.plain_values.peeking import is_plain, shared_numbers
from funcgrad.numpy_code.examples import with_example_loop
from funcgrad.numpy_code.refusals import is_own
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.integral import Integral
from funcgrad.scipy.integrate.ivp.flows import separate_leaves
from funcgrad.scipy.settings import constant_settings
from funcgrad.transforms.closures import BranchRecordings, looks_at_tracers, solve_with_new_branches
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["fixed_quad", "quad", "quad_vec", "nquad"]


def fixed_quad(func: Callable[..., Any], a: ArrayLike, b: ArrayLike, args: tuple[Any, ...] = (), n: int = 5) -> Any:
    """Integrate ``func`` from ``a`` to ``b`` by Gauss-Legendre quadrature with ``n`` points.

    Args:
        func: ``func(x, *args)`` of an array of points, which runs along the last axis of the result.
        a: the lower limit, finite.
        b: the upper limit, finite.
        args: further arguments.
        n: the number of points: a polynomial of degree ``2 * n - 1`` is integrated exactly.

    Returns:
        The integral and None, as in SciPy.

    Raises:
        ValueError: an infinite limit.

    Example:
        >>> from funcgrad.scipy.integrate import fixed_quad
        >>> fixed_quad(lambda x, k: x**k, 0.0, 1.0, (4,), n=3)[0].round(12)
        np.float64(0.2)
    """
    dtype = np.dtype(float) if _widens() else fnp.result_type(a, b)
    a, b = as_value(a), as_value(b)
    if is_plain(a, b) and not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("Gaussian quadrature is only available for finite limits.")
    points, weights = [x.astype(dtype if dtype.kind in "fc" else float, copy=False) for x in _legendre(n)]
    y = (b - a) * (points + 1.0) / 2.0 + a
    return (b - a) / 2.0 * fnp.sum(weights * func(y, *args), axis=-1), None


@cache
def _widens() -> bool:
    """Whether SciPy's ``fixed_quad`` returns double precision for single-precision limits, as before SciPy 1.18."""
    scipy_function = import_scipy("integrate.fixed_quad", "scipy.integrate").fixed_quad
    return bool(scipy_function(np.exp, np.float32(0), np.float32(1))[0].dtype == float)


@lru_cache
def _legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    points, weights = import_scipy("integrate.fixed_quad", "scipy.special").roots_legendre(n)
    return np.real(points), weights


def quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Sequence[float] | None = None,
    weight: str | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Integrate ``func`` from ``a`` to ``b`` by SciPy's adaptive ``quad``; also estimate the error.

    The integral is differentiable in finite limits, ``args`` and values that ``func`` closes over, to any order: in
    limits by Leibniz's rule, else by the integral of the derivative, to the same tolerances. Where the integrand is
    exactly 0, like a density far out, a derivative that is not finite counts as 0. ``func`` may branch on ``x``.

    Args:
        func: ``func(x, *args)`` returns a number for a number ``x``.
        a: the lower limit; ``-numpy.inf`` is allowed.
        b: the upper limit.
        args: further arguments: arrays or trees of arrays. Anything but a tuple is a single argument.
        full_output: whether to return SciPy's further information too.
        epsabs: the allowed absolute error.
        epsrel: the allowed relative error.
        limit: the largest number of intervals.
        points: where to break the interval; traced points move with a jump of the integrand.
        weight: as in SciPy. Its frequency and its pole may be traced, its powers may not.
        options: see ``scipy.integrate.quad``.

    Raises:
        TypeError: the powers of a weight are traced.

    Example:
        >>> from funcgrad.scipy.integrate import quad
        >>> quad(lambda x, k: np.exp(-k * x), 0.0, np.inf, (2.0,))[0].round(9)
        np.float64(0.5)
        >>> grad(lambda k: quad(lambda x, k: np.exp(-k * x), 0.0, np.inf, (k,))[0])(2.0).round(9)
        np.float64(-0.25)
    """
    check_callable("integrate.quad", func)
    args = args if isinstance(args, tuple) else (args,)
    tolerances = constant_settings("integrate.quad", {"epsabs": epsabs, "epsrel": epsrel, "limit": limit})
    isolating = isolated(func, *args) if is_in_transform() and not is_own(func) else func
    flat, values = separate_leaves(isolating, args)
    routine = partial(
        import_scipy("integrate.quad", "scipy.integrate").quad,
        *(func, a, b, args, full_output),
        **{"points": points, "weight": weight, **tolerances, **options},
    )
    constant = is_plain(a, b, *tree.leaves(args), points, options.get("wvar"))
    known = _branches(flat, a, b, values)
    plain, branches = _plain_result(routine, constant, known)
    if plain is not None:
        return (np.float64(plain[0]), *plain[1:]) if isinstance(plain[0], float) else plain
    tolerances |= options | ({"full_output": 1} if full_output else {})
    tolerances.pop("wvar", None)
    ends = [fnp.astype(as_value(end), float) for end in (a, b)]

    def solve() -> tuple[Any, list[Any]]:
        whole, every = _hoist_closure(flat, values, branches)
        records = bool(branches)
        if weight is not None:
            return _weighted(weight, options.get("wvar"), whole, ends, every, tolerances, records)
        if points is None or is_plain(points):
            breaks = None if points is None else tuple(points)
            integral = Integral(whole, tolerances, breaks, records=records, together=_is_small(known))
            return integral(*ends, *every), integral.infos
        return _in_pieces(whole, ends, points, every, tolerances, records, _is_small(known))

    found, infos = solve_with_new_branches(branches, solve)
    settle(isolating, _representative_number(_point_between(a, b)), *args)
    return (*found, *infos[-1]) if full_output and infos else tuple(found)


def _in_pieces(
    func: Callable[..., Any],
    ends: list[Any],
    points: Any,
    values: list[Any],
    tolerances: dict[str, Any],
    records: bool,
    together: bool,
) -> tuple[list[Any], list[Any]]:
    """Sum the integrals between the break points, at which the integrand may jump."""
    points = fnp.sort(fnp.stack([fnp.astype(as_value(point), float) for point in points]))
    integral = Integral(func, tolerances, None, breaks=True, records=records, together=together)
    parts = [integral(low, high, *values) for low, high in pairwise([ends[0], *points, ends[1]])]
    return [sum(part[i] for part in parts) for i in (0, 1)], integral.infos


def _weighted(
    weight: str,
    given: Any,
    func: Callable[..., Any],
    ends: list[Any],
    values: list[Any],
    tolerances: dict[str, Any],
    records: bool,
) -> tuple[list[Any], list[Any]]:
    """Integrate with a weight of SciPy: its parameter is a constant, and the integrand carries the tangent."""
    infos: list[Any] = []

    def of(func: Callable[..., Any], name: str, fixed: Any, ends: list[Any], *values: Any) -> list[Any]:
        integral = Integral(func, {**tolerances, "weight": name, "wvar": fixed}, None, records=records)
        integral.infos = infos
        return list(integral(*ends, *values))

    if weight.startswith("alg"):
        return _algebraic(weight, given, func, ends, values, of), infos
    if is_plain(given):
        return of(func, weight, given, ends, *values), infos

    def moving(given: Any, ends: list[Any], values: list[Any]) -> list[Any]:
        if is_in_batch(given):
            raise ConcretizationError("integrate.quad: wvar is one number, got one for each example of a vmap.")
        fixed = np.asarray(shared_numbers(stop_gradient(as_value(given))))[()]
        moved = as_value(given) - fixed  # zero, but with a derivative
        if weight == "cauchy":
            shifted = lambda x, moved, *values: func(x + moved, *values)
            return of(shifted, weight, fixed, [end - moved for end in ends], moved, *values)
        other, sign = ("sin", -1.0) if weight == "cos" else ("cos", 1.0)
        along = lambda x, moved, *values: func(x, *values) * fnp.cos(moved * x)
        across = lambda x, moved, *values: func(x, *values) * fnp.sin(moved * x)
        straight = of(along, weight, fixed, ends, moved, *values)
        turned = of(across, other, fixed, ends, moved, *values)
        return [straight[0] + sign * turned[0], straight[1] + turned[1]]

    return with_example_loop(moving, "scipy.integrate.quad")(given, ends, values), infos


def _algebraic(
    weight: str, powers: Any, func: Callable[..., Any], ends: list[Any], values: list[Any], of: Callable[..., Any]
) -> list[Any]:
    """Integrate with weights ``(x - a)^p (b - x)^q`` and their logarithms, mapped to 0 to 1 because limits may move."""
    if not is_plain(powers):
        raise InputError(
            f"integrate.quad: the powers of weight={weight!r} have no derivative rule, got traced ones. Put the weight "
            "into func."
        )
    low, length = ends[0], ends[1] - ends[0]

    def inside(u: Any, low: Any, length: Any, *values: Any) -> Any:
        return func(low + length * u, *values) * length ** (1.0 + powers[0] + powers[1])

    log = fnp.log(length)
    parts = {
        "alg": [("alg", 1.0)],
        "alg-loga": [("alg-loga", 1.0), ("alg", log)],
        "alg-logb": [("alg-logb", 1.0), ("alg", log)],
        "alg-log": [("alg-log", 1.0), ("alg-loga", log), ("alg-logb", log), ("alg", log**2)],
    }[weight]
    found = [(by, of(inside, name, powers, [0.0, 1.0], low, length, *values)) for name, by in parts]
    return [sum(by * one[0] for by, one in found), sum(fnp.abs(by) * one[1] for by, one in found)]


def quad_vec(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    cache_size: float = 100e6,
    limit: int = 10_000,
    workers: Any = 1,
    points: Sequence[float] | None = None,
    quadrature: str | None = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> tuple[Any, ...]:
    """Integrate an array ``f(x, *args)`` of a number from ``a`` to ``b``; also estimate the error.

    See ``quad`` for the derivatives: in finite limits, ``args`` and values that ``f`` closes over, to any order.

    Args:
        f: returns an array for a number.
        a: the lower limit; ``-numpy.inf`` is allowed.
        b: the upper limit.
        epsabs: the allowed absolute error.
        epsrel: the allowed relative error.
        norm: the norm that measures errors of arrays: "2" or "max".
        cache_size: the memory for values that were computed, in bytes.
        limit: the largest number of intervals.
        workers: for several processes, with plain values only; see ``scipy.integrate.quad_vec``.
        points: where to break the interval.
        quadrature: the rule: "gk21", "gk15" or "trapezoid".
        full_output: whether to return information too, with plain values only.
        args: further arguments, arrays or trees of arrays.

    Raises:
        TypeError: ``full_output`` or ``workers`` with traced values.

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy.integrate import quad_vec
        >>> powers = lambda k: quad_vec(lambda x: x ** (k * np.arange(1.0, 3.0)), 0.0, 1.0)[0]
        >>> powers(1.0).round(6), jacobian(powers)(1.0).round(6)
        (array([0.5     , 0.333333]), array([-0.25    , -0.222222]))
    """
    check_callable("integrate.quad_vec", f)
    tolerances = constant_settings("integrate.quad_vec", {"epsabs": epsabs, "epsrel": epsrel, "limit": limit})
    rule = {"norm": norm, "cache_size": cache_size, "quadrature": quadrature}
    isolating = isolated(f, args) if is_in_transform() else f
    flat, values = separate_leaves(isolating, args if isinstance(args, tuple) else (args,))
    routine = partial(
        import_scipy("integrate.quad_vec", "scipy.integrate").quad_vec,
        *(f, a, b),
        **{**tolerances, **rule, "workers": workers, "points": points, "full_output": full_output, "args": args},
    )
    known = _branches(flat, a, b, values)
    plain, branches = _plain_result(routine, is_plain(a, b, *tree.leaves(args)), known)
    if plain is not None:
        return plain
    if full_output or workers != 1:
        raise InputError("integrate.quad_vec: full_output and workers are for plain values, got traced ones.")

    def solve() -> tuple[Any, Any]:
        whole, every = _hoist_closure(flat, values, branches)
        breaks = None if points is None else tuple(points)
        options = {**tolerances, **rule}
        integral = Integral(whole, options, breaks, records=bool(branches), together=_is_small(known))
        value, error = integral(*[fnp.astype(as_value(end), float) for end in (a, b)], *every)
        # SciPy evaluates at Python numbers, which do not widen single precision; this result gives the dtype
        slope = whole(_representative_number(_point_between(a, b)), *every)
        return fnp.astype(value, backend.dtype_of(as_value(slope))), error

    found = solve_with_new_branches(branches, solve)
    settle(isolating, _representative_number(_point_between(a, b)), *(args if isinstance(args, tuple) else (args,)))
    return found


def _representative_number(point: Any) -> float:
    """Return ``point`` as a Python number; for a batch that of the first example, or 0.5 without examples."""
    point = plain_value(point)
    return float(np.ravel(point)[0]) if np.size(point) else 0.5


def _branches(func: Callable[..., Any], a: Any, b: Any, values: list[Any]) -> list[BranchRecordings]:
    """Return the branches of ``func``, the first recorded at an inner point; an empty list outside of transforms."""
    if not is_in_transform():
        return []
    return [BranchRecordings("integrate.quad", lambda given: func(given[0], *given[1]), (_point_between(a, b), values))]


#: Size of an array for which NumPy's work is as much as Python's: many nodes at once would only take memory.
_SMALL = 1_000


def _is_small(known: list[BranchRecordings]) -> bool:
    """Whether the integrand computes with small arrays on the recorded branches; False if none is recorded."""
    return bool(known) and all(one.largest <= _SMALL for one in known)


def _plain_result(
    routine: Callable[[], tuple[Any, ...]], constant: bool, known: list[BranchRecordings]
) -> tuple[tuple[Any, ...] | None, list[BranchRecordings]]:
    """Return the result of SciPy's ``routine`` if nothing is traced, else None, and the branches that hold tracers."""
    branches = [one for one in known if one.captured or looks_at_tracers(one.fun)]
    if branches or not constant:
        return None, branches
    try:
        return routine(), branches
    except ConversionError:  # a traced value occurs on another branch than that of the middle
        if not known:
            raise
        forget_refusal()
        return None, known


def _hoist_closure(
    func: Callable[..., Any], values: list[Any], branches: list[BranchRecordings]
) -> tuple[Callable[..., Any], list[Any]]:
    """Return ``func`` with the values that it closes over as further arguments, and all values in a list."""
    if not branches:
        return func, values
    count, [closure] = len(values), branches
    return lambda x, *every: closure((x, list(every[:count])), every[count:]), [*values, *closure.captured]


def _point_between(a: Any, b: Any) -> Any:
    """Return a constant point between the limits."""
    ends = [as_value(a), as_value(b)]
    xp = np if is_plain(*ends) else fnp  # plain numbers take a tenth of the time so
    low, high = [xp.where(xp.isfinite(end), end, 0.0) for end in (ends if xp is np else stop_gradient(ends))]
    low = xp.where(xp.isfinite(a), low, high - 1.0)
    return 0.5 * (low + xp.where(xp.isfinite(b), high, low + 2.0))


def nquad(
    func: Callable[..., Any], ranges: Sequence[Any], args: Any = None, opts: Any = None, full_output: bool = False
) -> tuple[Any, ...]:
    """Integrate ``func(x0, x1, ..., *args)`` over several variables; ``x0`` is the innermost.

    See ``quad`` for the derivatives: in ``args``, values that the functions close over and finite limits, to any order.

    Args:
        func: returns a number for numbers.
        ranges: for each variable a pair of limits, or a function of the outer variables and ``args`` that returns the
            pair.
        args: further arguments; a tuple, or a single argument.
        opts: options of ``quad``, or a function of the outer variables that returns options; for all variables, or a
            list with one for each.
        full_output: whether to return a dictionary with the number of evaluations, with plain values only.

    Returns:
        The integral, and the largest estimate of an error.

    Raises:
        TypeError: ``full_output`` with traced values.

    Example:
        >>> from funcgrad.scipy.integrate import nquad
        >>> whole = lambda k: nquad(lambda x, y, k: x * y * k, [lambda y, k: (0.0, y), (0.0, 2.0)], (k,))[0]
        >>> round(whole(3.0), 9), grad(whole)(3.0).round(9)
        (6.0, np.float64(2.0))
    """
    check_callable("integrate.nquad", func)
    args = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
    plain = is_plain(*tree.leaves(args), *[end for pair in ranges if not callable(pair) for end in pair])
    if plain and not is_in_transform():
        scipy_function: Callable[..., tuple[Any, ...]] = import_scipy("integrate.nquad", "scipy.integrate").nquad
        return scipy_function(func, ranges, args, opts, full_output)
    if full_output:
        raise InputError("integrate.nquad: full_output is for plain values, got traced ones. Leave it out.")
    listed = list(opts) if isinstance(opts, (list, tuple)) else [opts or {}] * len(ranges)
    isolating = isolated(func, *args) if is_in_transform() else func
    found = _integrate_outer(isolating, list(ranges), listed, args, ())
    if isolating is not func:
        point: tuple[Any, ...] = ()
        for limits in reversed(ranges):
            low, high = limits(*point, *args) if callable(limits) else limits
            point = (_representative_number(_point_between(low, high)), *point)
        settle(isolating, *point, *args)
    return found


def _integrate_outer(
    func: Callable[..., Any], ranges: list[Any], opts: list[Any], args: Any, outer: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Integrate over the variables of ``ranges``; ``outer`` holds the values of the variables outside of these."""
    last, options = ranges[-1], opts[-1]
    low, high = last(*outer, *args) if callable(last) else last
    chosen = options(*outer, *args) if callable(options) else options

    def inner(x: Any) -> Any:
        if len(ranges) == 1:
            return func(x, *outer, *args)
        return _integrate_outer(func, ranges[:-1], opts[:-1], args, (x, *outer))[0]

    found: tuple[Any, ...] = quad(inner, low, high, **chosen)
    return found
