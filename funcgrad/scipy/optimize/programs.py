"""Linear programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.bounds import pairs
from funcgrad.scipy.optimize.constraints import ACTIVE_TOLERANCE, Constraint, equations
from funcgrad.scipy.optimize.implicit import Problem, depends, differentiable_root, result_with, search, vector
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.typing import ArrayLike

__all__ = ["linprog"]


def linprog(
    c: ArrayLike,
    A_ub: Any = None,
    b_ub: ArrayLike | None = None,
    A_eq: Any = None,
    b_eq: ArrayLike | None = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    x0: ArrayLike | None = None,
    integrality: ArrayLike | None = None,
) -> Any:
    """Minimize ``c @ x`` subject to ``A_ub @ x <= b_ub`` and ``A_eq @ x == b_eq``, within bounds.

    The solution is a vertex, where as many conditions are active as there are unknowns. The vertex moves with the
    active conditions; the minimal value also depends on ``c``. A change to another vertex is a kink.

    Args:
        c: the cost of each unknown.
        A_ub: a row for each inequality.
        b_ub: the upper limit of each inequality.
        A_eq: a row for each equation.
        b_eq: the right-hand side of each equation.
        bounds: a pair for each unknown, or one pair for all, of numbers or None.
        method: one of SciPy's methods.
        callback: called after each iteration, with plain values.
        options: SciPy's options for the method.
        x0: the first guess, for the methods that take one.
        integrality: which unknowns must be integers, in SciPy's codes; these have zero derivative.

    Returns:
        SciPy's ``OptimizeResult``. For traced values it holds ``x``, ``fun``, ``slack``, ``con``, the residuals and the
        marginals, which have derivatives, and SciPy's counts, flags and messages.

    Raises:
        ConvergenceError: no solution, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: active conditions depend on each other, and a derivative is requested.

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> A = np.array([[1.0, 2.0], [3.0, 1.0]])
        >>> jacobian(lambda b: optimize.linprog([-1.0, -1.0], A, b).x)(np.array([4.0, 6.0])).round(6)
        array([[-0.2,  0.4],
               [ 0.6, -0.2]])
    """
    call = "optimize.linprog"
    optimize = import_scipy(call)
    settings = {"method": method, "callback": callback, "options": options, "x0": x0, "integrality": integrality}
    if not depends((c, A_ub, b_ub, A_eq, b_eq, bounds)):
        return optimize.linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, **settings)
    cost = fnp.reshape(fnp.astype(as_value(c), float), (-1,))
    size = int(fnp.size(cost))
    first = bounds[0]
    one = len(bounds) == 2 and not isinstance(first, (tuple, list)) and not getattr(first, "ndim", 0)
    several = [bounds] * size if one else bounds
    within: Any = pairs([tuple(pair) for pair in several], size)
    rows = [_row(A, b) for A, b in ((A_ub, b_ub), (A_eq, b_eq))]

    def solve(problem: Problem, cost: Any, rows: Any, low: Any, high: Any) -> Any:
        numbers = [None if x is None else vector(call, x) for row in rows for x in row]
        box = list(zip(vector(call, low), vector(call, high), strict=True))
        found = optimize.linprog(vector(call, cost), *numbers, box, **settings)
        return (np.full(size, np.nan) if found.x is None else found.x), found

    found = search(call, lambda x: cost @ x, (), (cost, rows, *within), solve, np.zeros(size))
    limits = [Constraint(None, A, -np.inf, b, ()) for A, b in rows[:1] if A is not None]
    limits += [Constraint(None, A, b, b, ()) for A, b in rows[1:] if A is not None]
    if integrality is not None:
        at, kinds = stop_gradient(found.x), np.broadcast_to(integrality, (size,))
        stays = fnp.logical_or(np.isin(kinds, (1, 3)), fnp.logical_and(kinds == 2, at == 0))
        within = tuple(fnp.where(stays, at, end) for end in within)
    equation, root = equations(lambda x: cost @ x, limits, found.x, within)
    solved = differentiable_root(call, equation, found._replace(x=root), found.facts["success"])
    x, prices = solved[:size], solved[size:]
    left = {name: fnp.empty(0) if A is None else b - A @ x for name, (A, b) in zip(("slack", "con"), rows, strict=True)}
    parts, reduced = {}, cost
    for name, residual, (A, _) in zip(("ineqlin", "eqlin"), left.values(), rows, strict=True):
        count = fnp.size(residual)
        parts[name] = optimize.OptimizeResult(residual=residual, marginals=prices[:count])
        reduced = reduced if A is None else reduced - prices[:count] @ A
        prices = prices[count:]
    for name, residual in (("lower", x - within[0]), ("upper", within[1] - x)):
        held_there = stop_gradient(residual) <= ACTIVE_TOLERANCE * (1 + fnp.abs(stop_gradient(x)))
        parts[name] = optimize.OptimizeResult(residual=residual, marginals=fnp.where(held_there, reduced, 0.0))
    return result_with(call, optimize.OptimizeResult, found, x=x, fun=cost @ x, **left, **parts)


def _row(A: Any, b: Any) -> tuple[Any, Any]:
    """Return a matrix and a vector of limits; SciPy also accepts the limits as a column."""
    return None if A is None else _dense(A), None if b is None else fnp.reshape(_dense(b), (-1,))


def _dense(x: Any) -> Any:
    return fnp.astype(as_value(x.toarray() if hasattr(x, "toarray") else x), float)
