"""Roots and minima of many functions of one number at once, as in ``scipy.optimize.elementwise``.

SciPy searches with plain values. Each solution has the derivative that its own equation gives. Brackets are constants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import is_in_transform, plain_value
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.implicit import (
    as_args,
    by_position,
    depends,
    differentiable_root,
    one_by_one,
    plain,
    result_with,
    search,
)
from funcgrad.transforms.products import jvp
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["find_minimum", "find_root"]


def find_root(
    f: Callable[..., Any],
    init: tuple[ArrayLike, ArrayLike],
    /,
    *,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    tolerances: dict[str, float] | None = None,
    maxiter: int | None = None,
    callback: Callable[..., Any] | None = None,
) -> Any:
    """Find the root of each element of ``f`` within a bracket, by Chandrupatla's method.

    The root is differentiable in ``args``, ``kwargs`` and values that ``f`` closes over, to any order. Brackets are
    constants.

    Args:
        f: ``f(x, *args, **kwargs)``, computed elementwise.
        init: the lower and the upper ends, numbers or arrays.
        args: further arguments, which broadcast with the ends.
        kwargs: further arguments by name, which broadcast with the ends.
        tolerances: SciPy's ``xatol``, ``xrtol``, ``fatol`` and ``frtol``.
        maxiter: the largest number of iterations.
        callback: called after each iteration, with plain values.

    Returns:
        SciPy's result: ``x`` and ``f_x``, which have derivatives, ``success``, ``status``, ``nfev``, ``nit``, and the
        constants ``bracket`` and ``f_bracket``, which the result of a batch lacks.

    Raises:
        ConvergenceError: an element without NaN in further arguments has not converged, and a derivative is requested
            (an ``ArithmeticError``).

    Example:
        >>> from funcgrad.scipy.optimize import elementwise
        >>> grad(lambda a: elementwise.find_root(lambda x: x**3 - a, (0.0, 3.0)).x)(8.0).round(9)
        np.float64(0.083333333)
    """
    return _solve_elementwise("find_root", f, init, (args, kwargs), lambda f: f, tolerances, maxiter, callback)


def find_minimum(
    f: Callable[..., Any],
    init: tuple[ArrayLike, ArrayLike, ArrayLike],
    /,
    *,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    tolerances: dict[str, float] | None = None,
    maxiter: int = 100,
    callback: Callable[..., Any] | None = None,
) -> Any:
    """Find the minimum of each element of ``f`` within a bracket of three points, by Chandrupatla's method.

    Arguments, results and errors are those of ``find_root``. The minimum is the root of the derivative of ``f``.

    Example:
        >>> from funcgrad.scipy.optimize import elementwise
        >>> grad(lambda a: elementwise.find_minimum(lambda x: (x - a) ** 2 + a * x, (0.0, 0.5, 3.0)).x)(2.0)
        np.float64(0.5)
    """
    return _solve_elementwise("find_minimum", f, init, (args, kwargs), _slope, tolerances, maxiter, callback)


def _solve_elementwise(
    name: str,
    f: Callable[..., Any],
    init: Any,
    further: tuple[Any, dict[str, Any] | None],
    equation: Callable[[Callable[..., Any]], Callable[..., Any]],
    tolerances: Any,
    maxiter: Any,
    callback: Any,
) -> Any:
    call, init = f"optimize.elementwise.{name}", tuple(init)
    check_callable(call, f)
    given = isolated(f, further) if is_in_transform() else f
    f, args = by_position(given, as_args(further[0], unpacks=True), further[1])
    routine = getattr(import_scipy(call, "scipy.optimize.elementwise"), name)
    options = {"tolerances": tolerances, "maxiter": maxiter, "callback": callback}

    def solve(problem: Any, init: Any, args: Any) -> Any:
        init, args = plain(call, init), plain(call, args)
        result = routine(lambda *point: problem(point), init, args=args, **options)
        return result.x, result

    # SciPy calls ``f`` with the elements that it still searches, and with their elements of ``args``
    found = search(call, lambda point: f(*point), (), (init, args), solve, (1.0 * as_value(init[0]), *args))
    if not depends((found.x, f(found.x, *args))):
        return found.result
    solved = equation(f)
    known = [x for x in args if backend.namespace_of(plain_value(x)) is np]  # JAX may know an element only later
    success = reduce(fnp.logical_or, map(fnp.isnan, known), found.facts["success"])  # where NaN, the solution is, too
    x = differentiable_root(call, lambda x: solved(x, *args), found, success, one_by_one)
    settle(given, x, *as_args(further[0], unpacks=True), **(further[1] or {}))
    alone = type(found.result) is not list
    ends = {name: found.result[name] for name in ("bracket", "f_bracket") if alone}
    kind = import_scipy(call).OptimizeResult
    return result_with(call, kind, found, x=x, f_x=f(x, *args), **ends)


def _slope(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the elementwise derivative of ``f``."""
    return lambda x, *args: jvp(lambda x: f(x, *args), (x,), (backend.ones_like(x),))[1]
