"""Systems with as many equations as unknowns, and fixed points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import warn
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.bounds import JACOBIAN_METHODS
from funcgrad.scipy.optimize.implicit import (
    Problem,
    SearchResult,
    as_args,
    depends,
    differentiable_root,
    result_with,
    search,
    vector,
)
from funcgrad.transforms.jacobians import jacfwd
from funcgrad.transforms.side_effects import isolated, settle, settle_each
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["fixed_point", "fsolve", "root"]


def _array(y: Any) -> Any:
    """Return the result of a user's function as an array; SciPy also accepts numbers in lists."""
    return fnp.array(y) if isinstance(y, (list, tuple)) else as_value(y)


def fsolve(
    func: Callable[..., Any],
    x0: ArrayLike,
    args: Any = (),
    fprime: Callable[..., Any] | None = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: tuple[int, int] | None = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Find a root of as many equations as unknowns, by MINPACK's hybrid method with an exact Jacobian.

    The root is differentiable in ``args`` and in values that ``func`` closes over, to any order. The derivative is one
    linear system with the Jacobian at the root. The derivative with respect to ``x0`` is zero.

    Args:
        func: ``func(x, *args)`` returns as many numbers as the vector ``x`` has.
        x0: the first guess.
        args: further arguments; a tuple, or a single argument.
        fprime: the Jacobian; by default the exact one, or finite differences if ``func`` has no derivative.
        full_output: whether to return more: see ``scipy.optimize.fsolve``.
        col_deriv: whether ``fprime`` returns the transposed Jacobian.
        xtol: the allowed relative error.
        maxfev: the largest number of calls of ``func``.
        band: the numbers of lower and upper diagonals of a banded Jacobian; selects finite differences.
        epsfcn: the step of finite differences; selects finite differences.
        factor: the first step.
        diag: scales of the unknowns.

    Returns:
        The root, a vector; with ``full_output`` also a dictionary, a flag that is 1 for success, and a message.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the Jacobian at the root is singular, and a derivative is requested.
        StagingError: values that are abstract inside ``jax.jit`` (a ``TypeError``).

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> def equations(p, r):
        ...     return fnp.stack([p[0] ** 2 + p[1] ** 2 - r**2, p[0] - p[1]])
        >>> jacobian(lambda r: optimize.fsolve(equations, np.ones(2), r))(1.0).round(6)
        array([0.707107, 0.707107])
    """
    call, args = "optimize.fsolve", as_args(args)
    check_callable(call, func)
    func, fprime = isolated(func, args), isolated(fprime, args) if callable(fprime) else fprime
    optimize = import_scipy(call)
    options = {"col_deriv": col_deriv, "xtol": xtol, "maxfev": maxfev, "band": band, "epsfcn": epsfcn}

    def solve(problem: Problem, x0: Any) -> Any:
        start = vector(call, x0)
        own = _jacobian(problem)
        turned = (lambda x: own(x).T) if col_deriv else own
        jacobian, transposed = None if fprime is None else problem.plain_derivative(fprime, turned), col_deriv
        if fprime is None and band is None and epsfcn is None:
            jacobian, transposed = _exact(problem, start.flatten()), 0
        chosen = {**options, "col_deriv": transposed, "factor": factor, "diag": diag}
        x, info, flag, said = optimize.fsolve(problem, start, fprime=jacobian, full_output=1, **chosen)
        return x, {**_counts(info), "ier": flag, "mesg": said, "all": info}

    found = search(call, func, args, (x0,), solve, fnp.astype(fnp.ravel(x0), float))
    x, facts = found.x, found.facts
    if not depends((x, func(x, *args))):
        settle_each((func, fprime), x, args)
        return (x, found.result["all"], facts["ier"], facts["mesg"]) if full_output else _warned(x, facts)
    x = differentiable_root(call, lambda x: _array(func(x, *args)), found, facts["ier"] == 1)
    settle_each((func, fprime), x, args)
    if not full_output:
        return x
    infos = [one["all"] for one in (found.result if type(found.result) is list else [found.result])]
    told = found._replace(facts=_counts(facts), result=infos)
    return x, result_with(call, dict, told, fvec=_array(func(x, *args))), facts["ier"], facts["mesg"]


def _counts(info: dict[str, Any]) -> dict[str, Any]:
    return {key: info[key] for key in ("nfev", "njev") if key in info}


def _warned(x: Any, facts: dict[str, Any]) -> Any:
    """Return ``x``; raise or warn as SciPy does when the caller does not request the flag."""
    if facts["ier"] == 0:
        raise TypeError(facts["mesg"])
    if facts["ier"] != 1:
        warn(facts["mesg"], RuntimeWarning)
    return x


def _jacobian(problem: Problem) -> Callable[..., Any]:
    """Return the Jacobian of the equations as a function that returns a matrix."""
    return jacfwd(lambda x: fnp.ravel(_array(problem.fun(x))))


def _exact(problem: Problem, x0: Any) -> Callable[..., Any] | None:
    """Return the exact Jacobian as a function of plain values, or None if ``problem`` has no derivative."""
    made = problem.exact(_jacobian(problem), 1.0 * np.ravel(x0))
    return None if made is None else lambda x: made(np.asarray(x, float))


def root(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of as many equations as unknowns; see ``fsolve`` for its derivative and the errors.

    Args:
        fun: ``fun(x, *args)``; if ``jac`` is True, ``fun`` returns the Jacobian as well.
        x0: the first guess.
        args: further arguments; a tuple, or a single argument.
        method: one of SciPy's methods. With lm, a root of more equations than unknowns has no derivative.
        jac: the Jacobian, or whether ``fun`` returns it. By default hybr and lm get an exact one, or finite differences
            if ``fun`` has no derivative.
        tol: SciPy's tolerance.
        callback: called after each iteration, with plain values.
        options: SciPy's options for the method.

    Returns:
        SciPy's ``OptimizeResult``. For traced values it holds ``x`` and ``fun``, which have derivatives, and SciPy's
        counts, flags and messages.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        ShapeError: more equations than unknowns, and a derivative is requested (a ``ValueError``).

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> jacobian(lambda a: optimize.root(lambda x: x**2 - a, np.ones(2)).x)(np.array([1.0, 4.0])).round(6)
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    call, args = "optimize.root", as_args(args)
    check_callable(call, fun)
    fun, jac = isolated(fun, args), isolated(jac, args) if callable(jac) else jac
    optimize = import_scipy(call)
    together = jac is not None and not callable(jac) and bool(jac)

    def value(x: Any) -> Any:
        return _array(fun(x, *args)[0] if together else fun(x, *args))

    def solve(problem: Problem, x0: Any) -> Any:
        start = vector(call, x0)
        jacobian = problem.plain_derivative(jac, _jacobian(problem)) if callable(jac) else jac
        if (
            not together
            and not callable(jac)
            and method in JACOBIAN_METHODS
            and not (options or {}).keys() & {"band", "eps"}
        ):
            jacobian = _exact(problem, start)
        found = optimize.root(problem, start, method=method, jac=jacobian, tol=tol, callback=callback, options=options)
        return found.x, found

    found = search(call, fun, args, (x0,), solve, fnp.astype(x0, float))
    result = value(found.x)
    if not depends((found.x, result)):
        settle_each((fun, jac), found.x, args)
        return found.result
    _check_count(call, backend.shape_of(result), backend.shape_of(found.x))
    x = differentiable_root(call, value, found, found.facts["success"])
    settle_each((fun, jac), x, args)
    there = value(x)
    if method not in JACOBIAN_METHODS:  # these methods return a vector for a function that returns a number
        there = fnp.reshape(there, backend.shape_of(x))
    return result_with(call, optimize.OptimizeResult, found, x=x, fun=there)


def _check_count(call: str, equations: tuple[int, ...], unknowns: tuple[int, ...]) -> None:
    if math.prod(equations) != math.prod(unknowns):
        raise ShapeError(
            f"{call}: with traced values there must be as many equations as unknowns, got {list(equations)} for "
            f"{list(unknowns)}. Take optimize.least_squares."
        )


def fixed_point(
    func: Callable[..., Any],
    x0: ArrayLike,
    args: Any = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """Find the ``x`` with ``func(x, *args) = x``, by iteration with Steffensen's acceleration.

    The fixed point is differentiable in ``args`` and in values that ``func`` closes over, to any order; its derivative
    with respect to ``x0`` is zero. ``funcgrad.fixed_point`` supports trees and other iterations.

    Args:
        func: ``func(x, *args)`` returns an array with the shape of ``x``.
        x0: the first guess.
        args: further arguments; a tuple, or a single argument.
        xtol: the allowed relative error.
        maxiter: the largest number of iterations.
        method: "del2", or "iteration" without the acceleration.

    Raises:
        RuntimeError: no convergence.
        LinAlgError: the fixed point is not isolated, and a derivative is requested.

    Example:
        >>> from funcgrad.scipy import optimize
        >>> grad(lambda a: optimize.fixed_point(lambda x: np.cos(a * x), 0.5))(1.0).round(6)
        np.float64(-0.297474)
    """
    call, args = "optimize.fixed_point", as_args(args, unpacks=True)
    check_callable(call, func)
    func = isolated(func, args)
    optimize = import_scipy(call)

    def solve(problem: Problem, x0: Any) -> Any:
        return optimize.fixed_point(problem, vector(call, x0), xtol=xtol, maxiter=maxiter, method=method), {}

    found: SearchResult = search(call, func, args, (x0,), solve, fnp.astype(x0, float))
    x = found.x
    if depends((x, func(x, *args))):
        x = differentiable_root(call, lambda x: _array(func(x, *args)) - x, found, True)
    settle(func, x, *args)
    return x
