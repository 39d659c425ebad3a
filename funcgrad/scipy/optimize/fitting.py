"""Nonlinear and linear least squares, and curves through measured points."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, is_in_transform
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy_code.rebuilding import SelfRebuilding
from funcgrad.optional import import_scipy
from funcgrad.scipy.linalg import cholesky, solve_triangular
from funcgrad.scipy.optimize.bounds import are_fixed, bounded_stationarity, limits
from funcgrad.scipy.optimize.implicit import (
    Problem,
    SearchResult,
    as_args,
    depends,
    differentiable_root,
    plain,
    result_with,
    search,
    vector,
)
from funcgrad.transforms.gradients import grad
from funcgrad.transforms.jacobians import jacfwd, jacrev
from funcgrad.transforms.products import jvp
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import Array, ArrayLike

__all__ = ["least_squares", "lsq_linear", "nnls", "curve_fit"]


#: Loss functions of squared residuals, by SciPy's names.
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
    """Find a minimum near ``x0`` of the sum of squared residuals, with an exact Jacobian.

    The solution is differentiable in ``args``, ``kwargs``, ``bounds`` and in values that ``fun`` closes over, to any
    order. The derivative is one linear system with the full Hessian of the sum, not the Gauss-Newton approximation.
    Unknowns at an active bound move with the bound, as in ``minimize``.

    Args:
        fun: ``fun(x, *args, **kwargs)`` returns the residuals, a vector.
        x0: the first guess.
        jac: the Jacobian, or the name of SciPy's finite differences. The default is exact; differences are taken if
            ``fun`` has no derivative, or if ``diff_step`` or ``jac_sparsity`` says how to take them.
        bounds: a pair of lower and upper bounds, which may be traced, or SciPy's ``Bounds``.
        method: "trf", "dogbox" or "lm".
        ftol: see ``scipy.optimize.least_squares``, also for ``xtol``, ``gtol``, ``x_scale``, ``diff_step``,
            ``tr_solver``, ``tr_options``, ``jac_sparsity``, ``max_nfev``, ``verbose`` and ``workers``.
        loss: the name of one of SciPy's losses, or a function of squared residuals in SciPy's form, composed of
            differentiable functions.
        f_scale: the residual from which the loss grows more slowly.
        args: further arguments; a tuple, or a single argument.
        kwargs: further keyword arguments.
        callback: called after each iteration, with plain values.

    Returns:
        SciPy's ``OptimizeResult``. For traced values it holds ``x``, ``cost``, ``fun``, ``grad`` and ``jac``, which
        have derivatives, and SciPy's counts, flags and messages.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the Hessian is singular, and a derivative is requested.

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
    # The oldest supported SciPy lacks some of these, and has another default for ``x_scale``.
    other = {"tr_options": tr_options, "callback": callback, "workers": workers, "x_scale": x_scale}
    known |= {key: value for key, value in other.items() if value is not None}
    return _squares(fun, x0, jac, bounds, loss, f_scale, (as_args(args, unpacks=True), kwargs or {}), known)


def _squares(
    fun: Callable[..., Any], x0: Any, jac: Any, bounds: Any, loss: Any, scale: float, args: Any, options: dict[str, Any]
) -> Any:
    """Compute ``least_squares``; ``options`` holds the arguments that only SciPy needs."""
    call = "optimize.least_squares"
    check_callable(call, fun)
    fun, jac = isolated(fun, args), isolated(jac, args) if callable(jac) else jac
    size = int(fnp.size(x0))
    within = limits(bounds, size)
    fixed = are_fixed(bounds, within)
    exact = isinstance(jac, str) and jac == "2-point" and options["diff_step"] is options["jac_sparsity"] is None

    def residuals(x: Any, args: Any, kwargs: Any) -> Any:
        return fun(x, *args, **kwargs)

    def solve(problem: Problem, x0: Any, within: Any) -> Any:
        start = vector(call, x0)
        of_caller = lambda x, args, kwargs: jac(x, *args, **kwargs)
        slope = problem.plain_derivative(of_caller, jacfwd(_flat(problem))) if callable(jac) else jac
        slope = (exact_jacobian(problem, start) if exact else None) or slope
        box = bounds if fixed else tuple([vector(call, end) for end in within])
        found = import_scipy(call).least_squares(problem, start, slope, box, loss=loss, f_scale=scale, **options)
        return found.x, found

    guess = fnp.reshape(1.0 * as_value(x0), (size,))
    found = search(call, residuals, args, (x0, None if fixed else within), solve, guess)
    if fixed and not depends((found.x, residuals(found.x, *args))):
        settle(fun, found.x, *args[0], **args[1])
        settle(jac, found.x, *args[0], **args[1])
        return found.result
    best = fitted(call, lambda x: fnp.ravel(as_value(residuals(x, *args))), found, within, loss, scale)
    settle(fun, best.x, *args[0], **args[1])
    settle(jac, best.x, *args[0], **args[1])
    return best


def fitted(call: str, residuals: Callable[[Any], Any], found: SearchResult, within: Any, loss: Any, scale: Any) -> Any:
    """Return the result of least squares with its derivatives."""
    rho = weight(loss)

    def cost(x: Any) -> Any:
        return 0.5 * scale**2 * fnp.sum(rho((residuals(x) / scale) ** 2))

    slope = grad(cost)
    x = differentiable_root(call, bounded_stationarity(slope, found.x, within), found, found.facts["success"])
    facts = {"active_mask": np.zeros(np.shape(found.x)[-1:]), **found.facts}  # SciPy's are floats without bounds
    found = found._replace(facts=facts)
    fields = {"x": x, "cost": cost(x), "grad": slope(x), "jac": _slopes(residuals, x, loss, scale), "fun": residuals(x)}
    return result_with(call, import_scipy(call).OptimizeResult, found, **fields)


def weight(loss: Any) -> Callable[[Any], Any]:
    """Return the loss as a function of squared residuals. A callable in SciPy's form returns derivatives too."""
    return (lambda z: loss(z)[0]) if callable(loss) else _LOSSES[loss]


def exact_jacobian(problem: Problem, x0: Any) -> Callable[..., Any] | None:
    """Return the Jacobian of residuals in the mode that computes less, or None if the residuals have no derivative."""
    point = 1.0 * np.atleast_1d(x0)
    forward = point.size <= np.size(problem(point))
    return problem.exact((jacfwd if forward else jacrev)(_flat(problem)), point)


def _flat(problem: Problem) -> Callable[[Any], Any]:
    return lambda x: fnp.ravel(as_value(problem.fun(x)))


def nnls(A: ArrayLike, b: ArrayLike, *, maxiter: int | None = None, **deprecated: Any) -> tuple[Array, Any]:
    """Find the ``x >= 0`` that minimizes the norm of ``A @ x - b``, and that norm.

    The solution is differentiable in ``A`` and ``b``, to any order: zero unknowns stay zero, and the others are a
    least-squares solution among themselves.

    Args:
        A: a matrix.
        b: a vector.
        maxiter: the largest number of iterations.
        deprecated: keyword arguments that SciPy still accepts.

    Raises:
        RuntimeError: no convergence.
        LinAlgError: the columns of the positive unknowns are linearly dependent, and a derivative is requested.

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
    x = differentiable_root(call, lambda x: fnp.where(zero, x, (A @ x - b) @ A), found, True)
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
    """Find the ``x`` within bounds that minimizes the norm of ``A @ x - b``.

    The solution is differentiable in ``A``, ``b`` and ``bounds``, to any order. ``minimize`` describes active bounds.

    Args:
        A: a matrix. A matrix of ``scipy.sparse`` or an operator is a constant, and needs a plain ``b``.
        b: a vector.
        bounds: a pair of lower and upper bounds, or SciPy's ``Bounds``.
        method: "trf" or "bvls".
        tol: the tolerance.
        lsq_solver: see ``scipy.optimize.lsq_linear``, also for ``lsmr_tol``, ``max_iter``, ``verbose`` and
            ``lsmr_maxiter``.

    Returns:
        SciPy's ``OptimizeResult``. For traced values it holds ``x``, ``cost`` and ``fun``, which have derivatives, and
        SciPy's counts, flags and messages.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the columns of the free unknowns are linearly dependent, and a derivative is requested.

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

    x = differentiable_root(
        call, bounded_stationarity(lambda x: residuals(x) @ whole, found.x, within), found, found.facts["success"]
    )
    fields = {"x": x, "cost": 0.5 * fnp.sum(residuals(x) ** 2), "fun": residuals(x)}
    facts = {"active_mask": np.zeros(np.shape(found.x)[-1:]), **found.facts}
    return result_with(call, optimize.OptimizeResult, found._replace(facts=facts), **fields)


def _is_operator(A: Any) -> bool:
    return not isinstance(A, (list, tuple, Tracer)) and backend.namespace_of(A) is None and not backend.is_value(A)


_CALL = "optimize.curve_fit"


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: ArrayLike,
    p0: Any = None,
    sigma: ArrayLike | None = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """Fit the parameters of ``f`` to measured points; return the parameters and their covariances.

    Both are differentiable in ``xdata``, ``ydata``, ``sigma``, ``bounds`` and in values that ``f`` closes over, to any
    order, so they show how a fit reacts to each point. See ``least_squares`` for the derivative and the errors.

    Args:
        f: ``f(xdata, *parameters)``.
        xdata: the points of measurement; anything that ``f`` takes.
        ydata: the measured values, a vector.
        p0: the first guess; its derivative is zero.
        sigma: standard deviations of ``ydata``, or their covariance matrix.
        absolute_sigma: whether ``sigma`` is absolute; if not, only its ratios count.
        check_finite: as in SciPy.
        bounds: a pair of lower and upper bounds, which may be traced, or SciPy's ``Bounds``.
        method: "lm", "trf" or "dogbox".
        jac: the Jacobian ``jac(xdata, *parameters)``, or the name of SciPy's finite differences; exact by default.
        full_output: as in SciPy, for plain values only.
        nan_policy: as in SciPy, for plain values only.
        kwargs: further options of SciPy's ``leastsq`` or ``least_squares``.

    Returns:
        Parameters and covariances. For traced values the covariances come from the exact Jacobian.

    Raises:
        RuntimeError: no convergence.
        LinAlgError: the curve does not depend on a parameter, and a derivative is requested.
        InputError: ``full_output`` or ``nan_policy`` with traced values (a ``TypeError``).
        StagingError: values that are abstract inside ``jax.jit`` (a ``TypeError``).

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> x = np.array([0.0, 1.0, 2.0])
        >>> line = lambda x, a, b: a + b * x
        >>> jacobian(lambda y: optimize.curve_fit(line, x, y)[0])(np.array([1.0, 2.0, 4.0])).round(6)
        array([[ 0.833333,  0.333333, -0.166667],
               [-0.5     , -0.      ,  0.5     ]])
    """
    options = {"absolute_sigma": absolute_sigma, "check_finite": check_finite, "method": method, **kwargs}
    if nan_policy is not None:  # SciPy omits points with NaN
        _check_plain("nan_policy", depends((xdata, ydata, sigma)))
        given = {"bounds": bounds, "jac": jac, "full_output": full_output, "nan_policy": nan_policy}
        return import_scipy(_CALL).curve_fit(f, xdata, ydata, p0, sigma, **given, **options)
    check_callable(_CALL, f)
    xdata = fnp.asarray(xdata, float) if isinstance(xdata, (list, tuple)) else xdata
    fit = _Curve(f, xdata, ydata, p0, sigma, bounds, jac, options)
    found = fit.search_result()
    if not fit.depends(found.x):
        fit.settle(found.x)
        return found.result["whole"] if full_output else found.result["whole"][:2]
    _check_plain("full_output", bool(full_output))
    loss, scale = kwargs.get("loss", "linear"), kwargs.get("f_scale", 1.0)
    residuals = fit.residuals()
    best = fitted(_CALL, residuals, found._replace(facts={"success": True}, result=[]), fit.within, loss, scale)
    fit.settle(best.x)
    return best.x, _covariances(best.jac, best.cost, absolute_sigma)


def _check_plain(option: str, refused: bool) -> None:
    if refused:
        raise InputError(f"{_CALL}: {option} is for plain values, got traced ones. Leave it out.")


class _Curve:
    """A curve and the points that it is fitted to."""

    def __init__(
        self, f: Any, xdata: Any, ydata: Any, p0: Any, sigma: Any, bounds: Any, jac: Any, options: dict[str, Any]
    ) -> None:
        self.f, self.ydata, self.p0, self.sigma = f, ydata, p0, sigma
        self._curve = isolated(f, xdata) if is_in_transform() else SelfRebuilding(f)  # an exact Jacobian runs it
        self.bounds, self.jac, self.options = bounds, jac, options
        self.xdata = (
            np.asarray(xdata, float) if isinstance(xdata, (list, tuple, np.ndarray)) and is_plain(xdata) else xdata
        )
        self.size = _count(f) if p0 is None else int(fnp.size(p0))
        self.within: Any = limits(bounds, self.size)
        self.fixed = are_fixed(bounds, self.within)

    def model(self, p: Any, xdata: Any) -> Any:
        """Return the values of the curve for the parameters in the vector ``p``."""
        return self._curve(xdata, *[p[i] for i in range(self.size)])

    def settle(self, p: Any) -> None:
        """Let the curve leave behind what it leaves after a call with the parameters of the fit."""
        settle(self._curve, self.xdata, *[p[i] for i in range(self.size)])

    def depends(self, p: Any) -> bool:
        """Whether any input is traced or an array of another library."""
        return not self.fixed or depends((p, self.ydata, self.sigma)) or depends(self.model(p, self.xdata))

    def residuals(self) -> Callable[[Any], Any]:
        """Return a function that computes the residuals in units of standard deviations."""
        weigh = _weighing(self.sigma)
        return lambda p: weigh(fnp.ravel(as_value(self.model(p, self.xdata))) - fnp.ravel(self.ydata))

    def search_result(self) -> SearchResult:
        """Find the parameters with SciPy."""
        start = (self.p0, self.ydata, self.sigma, None if self.fixed else self.within)
        guess = np.ones(self.size) if self.p0 is None else 1.0 * fnp.ravel(self.p0)
        return search(_CALL, self.model, (self.xdata,), start, self._solve, guess)

    def _solve(self, problem: Problem, p0: Any, ydata: Any, sigma: Any, within: Any) -> Any:
        @functools.wraps(self.f)  # SciPy counts the parameters of ``f``
        def curve(xdata: Any, *p: Any) -> Any:
            return problem(np.array(p))  # complex for complex steps

        p0, sigma = (None if x is None else vector(_CALL, x) for x in (p0, sigma))
        whole = import_scipy(_CALL).curve_fit(
            curve,
            plain(_CALL, problem.args[0]),
            vector(_CALL, ydata),
            p0,
            sigma,
            bounds=self.bounds if self.fixed else tuple([vector(_CALL, end) for end in within]),
            jac=self._jacobian(problem, np.ones(self.size) if p0 is None else p0),
            full_output=True,
            **self.options,
        )
        return whole[0], {"whole": whole}

    def _jacobian(self, problem: Problem, p0: Any) -> Any:
        """Return the argument ``jac`` for SciPy."""
        if callable(self.jac):
            given = problem.plain_derivative(lambda p, xdata: self.jac(xdata, *p), jacfwd(_flat(problem)))
            return lambda _, *p: given(np.array(p, float))
        if self.jac is not None or self.options.keys() & {"epsfcn", "diff_step"}:
            return self.jac
        made = exact_jacobian(problem, p0)
        return None if made is None else lambda _, *p: made(np.array(p, float))


def _count(f: Callable[..., Any]) -> int:
    """Return the number of parameters of a curve."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds for p in inspect.signature(f).parameters.values())
    if count < 2:
        raise ValueError("Unable to determine number of fit parameters.")
    return count - 1


def _weighing(sigma: Any) -> Callable[[Any], Any]:
    """Return the function that divides residuals by their standard deviations, or whitens them if ``sigma`` is 2-D."""
    if sigma is None:
        return lambda r: r
    if len(backend.shape_of(as_value(sigma))) < 2:
        return lambda r: r / sigma
    factor = cholesky(sigma, lower=True)
    return lambda r: solve_triangular(factor, r, lower=True)


def _slopes(residuals: Callable[[Any], Any], x: Any, loss: Any, scale: Any) -> Any:
    """Return the Jacobian with its rows weighted by derivatives of the loss, as in SciPy (Triggs et al., 1999)."""
    slopes = jacfwd(residuals)(x)
    if loss == "linear":
        return slopes
    z = (residuals(x) / scale) ** 2
    one = fnp.ones_like(z)
    first, second = jvp(lambda z: jvp(weight(loss), (z,), (one,))[1], (z,), (one,))
    return fnp.sqrt(fnp.maximum(first + 2 * second * z, np.finfo(float).eps))[:, None] * slopes


def _covariances(slopes: Any, cost: Any, absolute: bool) -> Any:
    spread = fnp.linalg.inv(slopes.T @ slopes)
    rows, columns = backend.shape_of(slopes)
    if absolute:
        return spread
    if rows <= columns:
        return fnp.full((columns, columns), np.inf)
    return spread * (2 * cost / (rows - columns))
