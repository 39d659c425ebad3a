"""Least squares, of any functions and of linear ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.bounds import are_fixed, held, limits
from funcgrad.scipy.optimize.implicit import Found, Problem, answer, as_args, depends, search, vector, with_fields
from funcgrad.transforms.gradients import grad
from funcgrad.transforms.jacobians import jacfwd, jacrev
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import Array, ArrayLike

__all__ = ["least_squares", "lsq_linear", "nnls"]

#: What squared residuals count for, by the names that SciPy has for it.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (fnp.sqrt(1 + z) - 1),
    "huber": lambda z: fnp.where(z <= 1, z, 2 * fnp.sqrt(fnp.where(z <= 1, 1.0, z)) - 1),
    "cauchy": fnp.log1p,
    "arctan": fnp.arctan,
}


def least_squares(
    fun: Callable[..., Any],
    x0: ArrayLike,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: dict[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    workers: Any = None,
) -> Any:
    """The smallest sum of squared residuals near ``x0``, with an exact Jacobian.

    Differentiable in ``args``, ``kwargs``, ``bounds`` and in what ``fun`` closes over, to any order: one linear system
    with the Hessian of the sum, of which no part is left out. Unknowns that a bound holds move with it, as in
    ``minimize``.

    Args:
        fun: ``fun(x, *args, **kwargs)`` gives the residuals, a vector.
        x0: the first guess.
        jac: the Jacobian, or the name of SciPy's differences; with the default it is exact, and by differences where
            ``fun`` has none, or where ``diff_step`` or ``jac_sparsity`` tell how these are made.
        bounds: a pair of lower and upper bounds, which may be traced, or SciPy's ``Bounds``.
        method: "trf", "dogbox" or "lm".
        ftol: see ``scipy.optimize.least_squares`` for this and what is not named here.
        xtol: see ``ftol``.
        gtol: see ``ftol``.
        x_scale: see ``ftol``.
        loss: the name of one of SciPy's, or a function of squared residuals as SciPy takes it, made of functions that
            have derivatives.
        f_scale: the residual from which the loss counts less.
        diff_step: see ``ftol``.
        tr_solver: see ``ftol``.
        tr_options: see ``ftol``.
        jac_sparsity: see ``ftol``.
        max_nfev: see ``ftol``.
        verbose: see ``ftol``.
        args: further arguments; a tuple, or one.
        kwargs: further arguments by name.
        callback: called after each iteration, with plain values.
        workers: see ``ftol``.

    Returns:
        SciPy's ``OptimizeResult``. Of traced values it has ``x``, ``cost``, ``fun`` and ``grad``, which have
        derivatives, and what counts and tells.

    Raises:
        ConvergenceError: no convergence, and a derivative is asked for (an ``ArithmeticError``).
        LinAlgError: the Hessian is singular, and a derivative is asked for.

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> t = np.array([0.0, 1.0, 2.0])
        >>> fit = lambda y: optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - y, np.ones(2)).x
        >>> jacobian(fit)(2.0 * np.exp(-0.5 * t)).round(3)
        array([[ 0.948,  0.171, -0.141],
               [ 0.333, -0.273, -0.454]])
    """
    known = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "diff_step": diff_step, "tr_solver": tr_solver}
    known |= {"jac_sparsity": jac_sparsity, "max_nfev": max_nfev, "verbose": verbose}
    # The oldest SciPy that will do has not all of these, and another default for the last.
    other = {"tr_options": tr_options, "callback": callback, "workers": workers, "x_scale": x_scale}
    known |= {key: value for key, value in other.items() if value is not None}
    return _squares(fun, x0, jac, bounds, loss, f_scale, (as_args(args), kwargs or {}), known)


def _squares(
    fun: Callable[..., Any], x0: Any, jac: Any, bounds: Any, loss: Any, scale: float, args: Any, options: dict[str, Any]
) -> Any:
    """``least_squares`` with what SciPy alone needs in ``options``."""
    call = "optimize.least_squares"
    check_callable(call, fun)
    size = int(np.size(x0))
    within = limits(bounds, size)
    fixed = are_fixed(bounds, within)
    exact = isinstance(jac, str) and jac == "2-point" and options["diff_step"] is options["jac_sparsity"] is None

    def residuals(x: Any, args: Any, kwargs: Any) -> Any:
        return fun(x, *args, **kwargs)

    def solve(problem: Problem, x0: Any, within: Any) -> Any:
        start = vector(call, x0)
        slope = problem.given(lambda x, args, kwargs: jac(x, *args, **kwargs)) if callable(jac) else jac
        slope = (exact_jacobian(problem, start) if exact else None) or slope
        box = bounds if fixed else tuple([vector(call, end) for end in within])
        found = import_scipy(call).least_squares(problem, start, slope, box, loss=loss, f_scale=scale, **options)
        return found.x, found

    guess = fnp.reshape(1.0 * as_value(x0), (size,))
    found = search(call, residuals, args, (x0, None if fixed else within), solve, guess)
    if fixed and not depends((found.x, residuals(found.x, *args))):
        return found.result
    return fitted(call, lambda x: fnp.ravel(as_value(residuals(x, *args))), found, within, loss, scale)


def fitted(call: str, residuals: Callable[[Any], Any], found: Found, within: Any, loss: Any, scale: Any) -> Any:
    """The result of least squares with its derivatives."""
    rho = weight(loss)

    def cost(x: Any) -> Any:
        return 0.5 * scale**2 * fnp.sum(rho((residuals(x) / scale) ** 2))

    slope = grad(cost)
    x = answer(call, held(slope, found.x, within), found, found.facts["success"])
    made = {"x": x, "cost": cost(x), "fun": residuals(x), "grad": slope(x)}
    return with_fields(import_scipy(call).OptimizeResult, found.facts, **made)


def weight(loss: Any) -> Callable[[Any], Any]:
    """What squared residuals count for. SciPy's own form gives the derivatives as well."""
    return (lambda z: loss(z)[0]) if callable(loss) else _LOSSES[loss]


def exact_jacobian(problem: Problem, x0: Any) -> Callable[..., Any] | None:
    """The Jacobian of residuals, by the mode with less to compute; None where they have none."""

    def flat(x: Any) -> Any:
        return fnp.ravel(as_value(problem.fun(x)))

    point = 1.0 * np.atleast_1d(x0)
    forward = point.size <= np.size(problem(point))
    return problem.exact((jacfwd if forward else jacrev)(flat), point)


def nnls(A: ArrayLike, b: ArrayLike, *, maxiter: int | None = None, **deprecated: Any) -> tuple[Array, Any]:
    """The ``x >= 0`` that brings ``A @ x`` nearest to ``b``, and the distance.

    Differentiable in ``A`` and ``b``, to any order: unknowns that are zero stay zero, and the others are those of
    least squares among themselves.

    Args:
        A: a matrix.
        b: a vector.
        maxiter: the most iterations.
        deprecated: what SciPy still takes.

    Raises:
        RuntimeError: no convergence.
        LinAlgError: the columns of unknowns above zero depend on each other, and a derivative is asked for.

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> jacobian(lambda b: optimize.nnls(np.eye(2), b)[0])(np.array([1.0, -1.0])) + 0.0
        array([[1., 0.],
               [0., 0.]])
    """
    call = "optimize.nnls"
    optimize = import_scipy(call)

    def solve(problem: Problem, A: Any, b: Any) -> Any:
        x, length = optimize.nnls(vector(call, A), vector(call, b), maxiter=maxiter, **deprecated)
        return x, {"rnorm": length}

    found = search(call, lambda x: x, (), (A, b), solve, np.zeros(backend.shape_of(as_value(A))[-1:]))
    if not depends((found.x, A, b)):
        return found.x, found.result["rnorm"]
    A, b = as_value(A), fnp.ravel(b)
    zero = found.x <= 0
    x = answer(call, lambda x: fnp.where(zero, x, (A @ x - b) @ A), found, True)
    return x, fnp.linalg.norm(A @ x - b)


def lsq_linear(
    A: ArrayLike,
    b: ArrayLike,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    tol: float = 1e-10,
    lsq_solver: str | None = None,
    lsmr_tol: Any = None,
    max_iter: int | None = None,
    verbose: int = 0,
    *,
    lsmr_maxiter: int | None = None,
) -> Any:
    """The ``x`` within bounds that brings ``A @ x`` nearest to ``b``.

    Differentiable in ``A``, ``b`` and ``bounds``, to any order; see ``minimize`` for unknowns at their bounds.

    Args:
        A: a matrix; one of ``scipy.sparse``, or an operator, as a constant and for plain ``b`` only.
        b: a vector.
        bounds: a pair of lower and upper bounds, or SciPy's ``Bounds``.
        method: "trf" or "bvls".
        tol: the tolerance.
        lsq_solver: see ``scipy.optimize.lsq_linear`` for this and what follows.
        lsmr_tol: see ``lsq_solver``.
        max_iter: see ``lsq_solver``.
        verbose: see ``lsq_solver``.
        lsmr_maxiter: see ``lsq_solver``.

    Returns:
        SciPy's ``OptimizeResult``. Of traced values it has ``x``, ``cost`` and ``fun``, which have derivatives, and
        what counts and tells.

    Raises:
        ConvergenceError: no convergence, and a derivative is asked for (an ``ArithmeticError``).
        LinAlgError: the columns of free unknowns depend on each other, and a derivative is asked for.

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> jacobian(lambda b: optimize.lsq_linear(np.eye(2), b, (0.0, 2.0)).x)(np.array([1.0, 3.0])).round(6) + 0.0
        array([[1., 0.],
               [0., 0.]])
    """
    call = "optimize.lsq_linear"
    optimize = import_scipy(call)
    whole = as_value(A) if isinstance(A, (list, tuple)) else A
    within = limits(bounds, whole.shape[1])
    fixed = are_fixed(bounds, within)
    options = {"lsmr_tol": lsmr_tol, "max_iter": max_iter, "verbose": verbose, "lsmr_maxiter": lsmr_maxiter}

    def solve(problem: Problem, A: Any, b: Any, within: Any) -> Any:
        matrix = A if _is_operator(A) else vector(call, A)
        box = bounds if fixed else tuple([vector(call, end) for end in within])
        found = optimize.lsq_linear(matrix, vector(call, b), box, method, tol, lsq_solver, **options)
        return found.x, found

    found = search(call, lambda x: x, (), (A, b, None if fixed else within), solve, np.zeros(whole.shape[1]))
    if fixed and not depends((found.x, () if _is_operator(A) else A, b)):
        return found.result

    def residuals(x: Any) -> Any:
        return fnp.matmul(whole, x) - fnp.ravel(b)

    x = answer(call, held(lambda x: residuals(x) @ whole, found.x, within), found, found.facts["success"])
    fields = {"x": x, "cost": 0.5 * fnp.sum(residuals(x) ** 2), "fun": residuals(x)}
    return with_fields(optimize.OptimizeResult, found.facts, **fields)


def _is_operator(A: Any) -> bool:
    return not isinstance(A, (list, tuple, Tracer)) and backend.namespace_of(A) is None and not backend.is_value(A)
