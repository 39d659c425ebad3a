"""Least squares."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.scipy.linalg import solve_triangular
from funcgrad.scipy.optimize.bounds import Box, box_of, solved_within
from funcgrad.scipy.optimize.solutions import as_tuple, check_converged, dependent, like, plain, routine_of
from funcgrad.scipy.optimize.systems import reported
from funcgrad.transforms.jacobians import jacfwd
from funcgrad.transforms.products import vjp
from funcgrad.transforms.transformed import check_callable
from funcgrad.writable import inside

__all__ = ["curve_fit", "least_squares"]

Function = Callable[..., Any]
#: What squared residuals count for, by SciPy's names.
_LOSSES: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (fnp.sqrt(1 + z) - 1),
    "huber": lambda z: fnp.where(z <= 1, z, 2 * fnp.sqrt(fnp.where(z <= 1, 1.0, z)) - 1),
    "cauchy": fnp.log1p,
    "arctan": fnp.arctan,
}


def least_squares(
    fun: Function,
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    *more: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The smallest sum of squares, or of a loss of squares, by SciPy's methods.

    Differentiable in ``args``, ``kwargs``, in what ``fun`` closes over, and in bounds that hold a variable in place, to
    any order. It does not depend on ``x0``.

    Args:
        fun: ``fun(x, *args, **kwargs)``, the residuals, a vector.
        x0: where to begin, a vector or a number.
        jac: as SciPy. Where it is a function, funcgrad's own is taken inside a transform.
        bounds: a pair of arrays or numbers, or SciPy's ``Bounds``.
        method: "trf", "dogbox" or "lm".
        ftol: the tolerance of the sum.
        xtol: the tolerance of the variables.
        gtol: the tolerance of the gradient.
        x_scale: scales of the variables.
        loss: "linear", "soft_l1", "huber", "cauchy" or "arctan"; SciPy's form of a function is for plain calls.
        f_scale: where a loss begins to differ from the square.
        more: SciPy's further arguments by position, for plain calls.
        args: further arguments of ``fun``.
        kwargs: the same by name.
        options: SciPy's other arguments.

    Returns:
        SciPy's ``OptimizeResult``; ``x``, ``fun`` and ``cost`` are differentiable. Inside ``vmap`` it has these and
        ``success`` only.

    Raises:
        InputError: a loss that is a function, inside a transform (a ``TypeError``).
        ArithmeticError: no convergence inside a transform; the solution is not one point.

    Example:
        >>> import numpy as np
        >>> from funcgrad import jacobian
        >>> t = np.array([0.0, 1.0, 2.0])
        >>> line = lambda y: least_squares(lambda p: p[0] + p[1] * t - y, np.zeros(2)).x
        >>> jacobian(line)(np.array([1.0, 2.0, 4.0]))[0].round(6)
        array([ 0.833333,  0.333333, -0.166667])
    """
    call, routine = "optimize.least_squares", routine_of("least_squares")
    check_callable(call, fun)
    given = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "loss": loss, "f_scale": f_scale, **options}
    if x_scale is not None:
        given["x_scale"] = x_scale
    if not inside():
        return routine(fun, x0, jac, bounds, args=args, kwargs=kwargs or {}, **given)
    if more or callable(loss) or loss not in _LOSSES:
        raise InputError(
            f"{call}: inside a transform loss is the name of one of SciPy's, and other arguments go by name, got "
            f"{loss!r}. Take one of {', '.join(_LOSSES)}."
        )
    held, named = as_tuple(args), kwargs or {}
    return _smallest(lambda x: fnp.reshape(fun(x, *held, **named), (-1,)), x0, jac, bounds, given)


def _smallest(f: Function, x0: Any, jac: Any, bounds: Any, given: dict[str, Any]) -> Any:
    """SciPy's report on the smallest cost of the residuals ``f``, with what depends on what ``f`` holds."""
    call, routine, reports = "optimize.least_squares", routine_of("least_squares"), []
    loss, f_scale = _LOSSES[given["loss"]], given["f_scale"]
    start = fnp.reshape(fnp.asarray(x0) * 1.0, (-1,))
    box = box_of(call, bounds, start.shape[0], pairs=False)

    def cost(residuals: Any) -> Any:
        return 0.5 * f_scale**2 * fnp.sum(loss((residuals / f_scale) ** 2))

    def run(f: Function, start: Any, box: Box | None) -> Any:
        limits = {} if box is None else {"bounds": tuple(box)}
        slope = (lambda x: plain(jacfwd(f)(x))) if callable(jac) else jac
        found = routine(lambda x: plain(f(x)), start, slope, **limits, **given)
        check_converged(call, found.success, found.message)
        reports.append(found)
        return found.x

    x = dependent(call, stationary(f, cost, box), solved_within(call, f, start, box, run))
    residuals = f(x)
    return reported(reports, x, fun=residuals, cost=cost(residuals))


def stationary(f: Function, cost: Function, box: Box | None) -> Function:
    """What is zero where the cost of the residuals is smallest."""

    def slope(x: Any) -> Any:
        residuals, pullback = vjp(f, x)
        return pullback(vjp(cost, residuals)[1](fnp.ones_like(cost(residuals)))[0])[0]

    return lambda x: like(slope(x) if box is None else box.stationary(x, slope), x)


def curve_fit(
    f: Function,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
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
    """The parameters with which a function fits data best, and their covariance.

    Both are differentiable in the data, in ``sigma``, in what ``f`` closes over, and in bounds that hold a parameter in
    place, to any order: how far the fit follows each point is ``jacobian`` of a call.

    Args:
        f: ``f(xdata, *parameters)``, values like ``ydata``.
        xdata: where the data were taken; anything that ``f`` takes.
        ydata: the data, a vector.
        p0: where to begin, by default ones.
        sigma: the standard deviations of the data, or their covariance matrix.
        absolute_sigma: whether ``sigma`` has units; else the covariance is scaled by the residuals.
        check_finite: as SciPy, of plain calls.
        bounds: a pair of arrays or numbers, or SciPy's ``Bounds``.
        method: "lm", "trf" or "dogbox".
        jac: the Jacobian in the parameters. Where one is given, funcgrad's own is taken inside a transform.
        full_output: whether to return SciPy's report as well, of plain calls.
        nan_policy: as SciPy, of plain calls.
        kwargs: SciPy's further arguments, for the method.

    Returns:
        The parameters and their covariance matrix.

    Raises:
        InputError: ``full_output`` or ``nan_policy`` inside a transform (a ``TypeError``).
        RuntimeError: no convergence.
        ArithmeticError: the best fit is not one point.

    Example:
        >>> import numpy as np
        >>> from funcgrad import jacobian
        >>> t = np.array([0.0, 1.0, 2.0])
        >>> fit = lambda y: curve_fit(lambda t, a, b: a + b * t, t, y)[0]
        >>> jacobian(fit)(np.array([1.0, 2.0, 4.0]))[0].round(6)
        array([ 0.833333,  0.333333, -0.166667])
    """
    call, routine = "optimize.curve_fit", routine_of("curve_fit")
    check_callable(call, f)
    if not inside():
        options = {"check_finite": check_finite, "bounds": bounds, "method": method, "jac": jac, **kwargs}
        more = {"full_output": full_output, "nan_policy": nan_policy}
        return routine(f, xdata, ydata, p0, sigma, absolute_sigma, **options, **more)
    if full_output or nan_policy is not None:
        raise InputError(
            f"{call}: full_output and nan_policy are for plain calls, got them inside a transform. Leave them out."
        )
    n = _count(call, f) if p0 is None else int(np.size(p0))
    box = box_of(call, bounds, n, pairs=False)
    start = _feasible(box, n) if p0 is None else fnp.reshape(fnp.asarray(p0) * 1.0, (-1,))
    weighted = _weights(sigma)

    def residuals(p: Any) -> Any:
        return weighted(fnp.reshape(f(xdata, *[p[i] for i in range(n)]), (-1,)) - fnp.reshape(ydata, (-1,)))

    p = _fit(residuals, start, box, callable(jac), {"method": method, **kwargs})
    return p, _covariance(residuals, p, absolute_sigma)


def _fit(residuals: Function, start: Any, box: Box | None, exact: bool, given: dict[str, Any]) -> Any:
    """The parameters with the smallest sum of squares."""
    call, routine = "optimize.curve_fit", routine_of("curve_fit")

    def run(at: Function, start: Any, box: Box | None) -> Any:
        rows = np.zeros(plain(at(start)).shape[0])
        limits = {} if box is None else {"bounds": tuple(box)}
        model = lambda _, *p: plain(at(np.array(p)))
        slope = (lambda _, *p: plain(jacfwd(at)(np.array(p)))) if exact else None
        return routine(model, rows, rows, start, jac=slope, **limits, **given)[0]

    squares = lambda r: 0.5 * fnp.sum(r * r)
    return dependent(call, stationary(residuals, squares, box), solved_within(call, residuals, start, box, run))


def _covariance(residuals: Function, p: Any, absolute: bool) -> Any:
    slopes = jacfwd(residuals)(p)
    rows, n = backend.shape_of(slopes)
    covariance = fnp.linalg.pinv(fnp.matmul(fnp.matrix_transpose(slopes), slopes), hermitian=True)
    if absolute:
        return covariance
    if rows <= n:
        warnings.warn("Covariance of the parameters could not be estimated", _warning(), stacklevel=4)
        return fnp.full((n, n), np.inf)
    return covariance * (fnp.sum(residuals(p) ** 2) / (rows - n))


def _warning() -> Any:
    return routine_of("OptimizeWarning")


def _count(call: str, f: Function) -> int:
    """How many parameters ``f`` has."""
    found = [
        p for p in inspect.signature(f).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(found) < 2:
        raise ValueError(f"{call}: the number of parameters cannot be told from f, got {f}. Give p0.")
    return len(found) - 1


def _feasible(box: Box | None, n: int) -> Any:
    """Where SciPy begins when it is not told."""
    if box is None:
        return np.ones(n)
    below, above = fnp.isfinite(box.low), fnp.isfinite(box.high)
    low, high = fnp.where(below, box.low, 0.0), fnp.where(above, box.high, 0.0)
    one_sided = fnp.where(below, low + 1, fnp.where(above, high - 1, 1.0))
    return fnp.where(fnp.logical_and(below, above), 0.5 * (low + high), one_sided)


def _weights(sigma: Any) -> Function:
    """What makes residuals independent and of variance one."""
    if sigma is None:
        return lambda r: r
    sigma = fnp.asarray(sigma)
    if len(sigma.shape) < 2:
        weights = 1.0 / sigma  # as SciPy, to the last digit
        return lambda r: r * weights
    factor = fnp.linalg.cholesky(sigma)
    return lambda r: solve_triangular(factor, r, lower=True)
