"""Minima.

A minimum is the point where the gradient is zero, so its derivative is one linear system with the Hessian there.
Unknowns at an active bound stay at the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.bounds import (
    GRADIENT_FREE_METHODS,
    HESSIAN_METHODS,
    HVP_METHODS,
    are_fixed,
    bounded_stationarity,
    default_method,
    pairs,
)
from funcgrad.scipy.optimize.constraints import (
    as_constraints,
    equations,
    for_scipy,
    hoist_closure,
    settle_all,
    values_of,
)
from funcgrad.scipy.optimize.implicit import (
    Problem,
    as_args,
    check_smooth,
    depends,
    differentiable_root,
    number,
    result_with,
    search,
    vector,
)
from funcgrad.transforms.gradients import grad, value_and_grad
from funcgrad.transforms.jacobians import hessian
from funcgrad.transforms.products import jvp
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["minimize", "minimize_scalar"]


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a minimum of ``fun`` near ``x0``, with exact derivatives for the methods that use derivatives.

    The minimum is differentiable in ``args``, in ``bounds`` and in values that ``fun`` closes over, to any order;
    ``x0`` is a constant. Unknowns at an active bound move with the bound, and the others move as if these were fixed.
    An unknown at its bound with a zero gradient is a kink. Active constraints stay equations, by the Karush-Kuhn-Tucker
    conditions. The derivative is as exact as the minimum, so choose a small ``tol``.
    ``funcgrad.interop.scipy.minimize`` takes parameters that are trees.

    Args:
        fun: ``fun(x, *args)`` returns one real number; if ``jac`` is True, a pair of the number and the gradient.
        x0: the first guess, a vector or a number.
        args: further arguments, arrays or trees of arrays; a tuple, or a single argument.
        method: the name of one of SciPy's methods, or a function in SciPy's form.
        jac: the gradient, whether ``fun`` returns it, or the name of SciPy's finite differences. The default is exact,
            or finite differences if ``fun`` has no derivative.
        hess: the Hessian, or another value that SciPy accepts; exact by default.
        hessp: the Hessian times a vector; exact by default.
        bounds: SciPy's ``Bounds``, or a pair for each unknown, of numbers or None; the numbers may be traced.
        constraints: SciPy's constraints, one or several. Their functions, limits and arguments may be traced too.
        tol: SciPy's tolerance.
        callback: called after each iteration, with plain values.
        options: SciPy's options for the method.

    Returns:
        SciPy's ``OptimizeResult``. For traced values it holds ``x``, ``fun`` and ``jac``, which have derivatives, and
        SciPy's counts, flags and messages. Fields that the steps of the search leave, such as ``hess_inv``, raise an
        error.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the Hessian at the minimum is singular, or active constraints with traced values depend on each
            other, and a derivative is requested.
        NotDifferentiableError: ``fun`` has a kink at the minimum, and a derivative is requested (a ``TypeError``).
        StagingError: values that are abstract inside ``jax.jit`` (a ``TypeError``).

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> def rosenbrock(x, a):
        ...     return (a - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2
        >>> jacobian(lambda a: optimize.minimize(rosenbrock, np.zeros(2), a, tol=1e-10).x)(1.0).round(4)
        array([1., 2.])
    """
    call, args = "optimize.minimize", as_args(args)
    check_callable(call, fun)
    fun, jac = isolated(fun, args), isolated(jac, args) if callable(jac) else jac
    size = int(fnp.size(x0))
    together = jac is not None and not callable(jac) and not isinstance(jac, str) and bool(jac)

    def value(x: Any) -> Any:
        return _one_number(call, fun(x, *args)[0] if together else fun(x, *args))

    within = None if bounds is None else pairs(bounds, size)
    fixed = are_fixed(bounds, within)
    kind = default_method(method, bounds, constraints)

    guess = fnp.reshape(fnp.astype(as_value(x0), float), (size,))
    limits = as_constraints(constraints)
    limited = [hoist_closure(call, one, guess) for one in limits]
    options = {"method": method, "tol": tol, "callback": callback, "options": options}

    def solve(problem: Problem, x0: Any, within: Any, parts: Any) -> Any:
        start = vector(call, x0)
        known = [
            one._replace(fun=f, low=a, high=b, args=rest) for one, (f, a, b, rest) in zip(limited, parts, strict=True)
        ]
        given = _Derivatives(problem, start, kind, together, jac, hess, hessp)
        box = bounds if fixed else list(zip(*(vector(call, end) for end in within), strict=True))
        slopes = {"jac": given.jac, "hess": given.hess, "hessp": given.hessp}
        under = for_scipy(problem, known, 1.0 * np.atleast_1d(start))
        found = import_scipy(call).minimize(given.fun, start, bounds=box, constraints=under, **slopes, **options)
        return np.concatenate([found.x, *found.v]) if is_interior else found.x, found

    parts, is_interior = [one[1:] for one in limited], bool(limited) and kind == "trust-constr"
    found, forces = search(call, fun, args, (x0, None if fixed else within, parts), solve, guess), None
    if is_interior and fnp.size(found.x) > size:  # false for a batch without examples
        found, forces = found._replace(x=found.x[:size]), found.x[size:]
    if fixed and not depends((found.x, value(found.x), values_of(limited, found.x))):
        settle_all((fun, jac), args, limits, found.x)
        return found.result
    if limited:
        equation, root = equations(value, limited, found.x, within, forces)
        x = differentiable_root(call, equation, found._replace(x=root), found.facts["success"])[:size]
    else:
        equation = bounded_stationarity(grad(value), found.x, within)
        there = value(found.x)
        check_smooth(call, there, equation, found.x)
        x = differentiable_root(call, equation, found, found.facts["success"], least=there)
    least, slope_there = value_and_grad(value)(x)
    settle_all((fun, jac), args, limits, x)
    slopes = {"jac": slope_there, **({"grad": slope_there} if kind == "trust-constr" else {})}
    return result_with(call, import_scipy(call).OptimizeResult, found, x=x, fun=least, **slopes)


def _one_number(call: str, y: Any) -> Any:
    y = as_value(y)
    if np.size(y) != 1:
        raise InputError(f"{call}: fun must give one real number, got {describe(y)}. Sum the numbers.")
    return fnp.reshape(y, ())


class _Derivatives:
    """The function and derivatives that SciPy's ``minimize`` receives for the method ``kind``."""

    def __init__(
        self, problem: Problem, start: Any, kind: str, together: bool, jac: Any, hess: Any, hessp: Any
    ) -> None:
        def scalar(x: Any) -> Any:
            return _one_number(problem.call, problem.fun(x)[0] if together else problem.fun(x))

        point = 1.0 * np.atleast_1d(start)
        self.fun: Any = problem
        self.jac = problem.plain_derivative(jac, grad(scalar)) if callable(jac) else jac
        self.hess = problem.plain_derivative(hess, hessian(scalar)) if callable(hess) else hess

        def product(x: Any, v: Any) -> Any:
            direction = np.ravel(v).astype(np.float64)  # SciPy may pass a column, or integers
            return jvp(grad(scalar), (x,), (direction,))[1]

        self.hessp = problem.plain_derivative(hessp, product) if callable(hessp) else hessp
        if (
            jac is None
            and kind not in GRADIENT_FREE_METHODS
            and (both := problem.exact(value_and_grad(scalar), point)) is not None
        ):
            self.fun, self.jac = both, True
        if hess is not None or hessp is not None:
            return
        if kind in HESSIAN_METHODS:
            self.hess = problem.exact(hessian(scalar), point)
        elif kind in HVP_METHODS or not kind:
            self.hessp = problem.exact(product, point, point)


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: str | None = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a minimum of a function of one number, by SciPy's methods without derivatives.

    The derivatives and errors are those of ``minimize``.

    Args:
        fun: ``fun(x, *args)`` returns a number for a number ``x``.
        bracket: two or three numbers to begin with; they have zero derivative.
        bounds: two numbers, for method "bounded".
        args: further arguments; a tuple, or a single argument.
        method: "brent", "golden" or "bounded".
        tol: SciPy's tolerance.
        options: SciPy's options for the method.

    Returns:
        SciPy's ``OptimizeResult``. For traced values ``x`` and ``fun`` have derivatives.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the second derivative at the minimum is zero, and a derivative is requested.

    Example:
        >>> from funcgrad.scipy import optimize
        >>> grad(lambda a: optimize.minimize_scalar(lambda x: np.exp(x) - a * x).x)(2.0).round(6)
        np.float64(0.5)
    """
    call, args = "optimize.minimize_scalar", as_args(args)
    check_callable(call, fun)
    fun = isolated(fun, args)
    optimize = import_scipy(call)
    within = None if bounds is None else tuple([fnp.astype(as_value(end), float) for end in bounds])

    def value(x: Any) -> Any:
        return _one_number(call, fun(x, *args))

    def solve(problem: Problem, bracket: Any, within: Any) -> Any:
        found = optimize.minimize_scalar(
            problem,
            None if bracket is None else [number(call, x) for x in bracket],
            None if within is None else [number(call, x) for x in within],
            (),
            method,
            tol,
            options,
        )
        return found.x, found

    guess = 1.0 * bracket[0] if bracket is not None else 0.5 if within is None else 0.5 * (within[0] + within[1])
    found = search(call, fun, args, (bracket, within), solve, guess)
    if (within is None or is_plain(*within)) and not depends((found.x, value(found.x))):
        settle(fun, found.x, *args)
        return found.result
    equation = bounded_stationarity(grad(value), found.x, within)
    there = value(found.x)
    check_smooth(call, there, equation, found.x)
    x = differentiable_root(call, equation, found, found.facts["success"], least=there)
    settle(fun, x, *args)
    return result_with(call, optimize.OptimizeResult, found, x=x, fun=value(x))
