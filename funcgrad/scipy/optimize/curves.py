"""Curves through measured points."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.scipy.linalg import cholesky, solve_triangular
from funcgrad.scipy.optimize.bounds import are_fixed, limits
from funcgrad.scipy.optimize.fitting import exact_jacobian, fitted, weight
from funcgrad.scipy.optimize.implicit import Found, Problem, depends, plain, search, vector
from funcgrad.transforms.jacobians import jacfwd
from funcgrad.transforms.products import jvp
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["curve_fit"]

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
    """The parameters with which ``f`` comes nearest to measured points, and their covariances.

    Both are differentiable in ``xdata``, ``ydata``, ``sigma``, ``bounds`` and in what ``f`` closes over, to any order:
    how a fit answers to each point. See ``least_squares`` for the derivative and for what is raised.

    Args:
        f: ``f(xdata, *parameters)``.
        xdata: where it was measured; whatever ``f`` takes.
        ydata: what was measured, a vector.
        p0: the first guess, on which the fit does not depend.
        sigma: standard deviations of ``ydata``, or their matrix of covariances.
        absolute_sigma: whether these are known, and not only their ratios.
        check_finite: as SciPy.
        bounds: a pair of lower and upper bounds, which may be traced, or SciPy's ``Bounds``.
        method: "lm", "trf" or "dogbox".
        jac: the Jacobian ``jac(xdata, *parameters)``, or the name of SciPy's differences; exact by default.
        full_output: as SciPy, of plain values.
        nan_policy: as SciPy, of plain values.
        kwargs: further options of SciPy's ``leastsq`` or ``least_squares``.

    Returns:
        Parameters and covariances; of traced values the covariances are those of the exact Jacobian.

    Raises:
        RuntimeError: no convergence.
        LinAlgError: a parameter does not matter, and a derivative is asked for.
        InputError: ``full_output`` or ``nan_policy`` of traced values, or what JAX knows only later (a ``TypeError``).

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
    if nan_policy is not None:  # SciPy leaves points out
        _check_plain("nan_policy", depends((xdata, ydata, sigma)))
        given = {"bounds": bounds, "jac": jac, "full_output": full_output, "nan_policy": nan_policy}
        return import_scipy(_CALL).curve_fit(f, xdata, ydata, p0, sigma, **given, **options)
    check_callable(_CALL, f)
    fit = _Curve(f, xdata, ydata, p0, sigma, bounds, jac, options)
    found = fit.searched()
    if not fit.depends(found.x):
        return found.result["whole"] if full_output else found.result["whole"][:2]
    _check_plain("full_output", bool(full_output))
    loss, scale = kwargs.get("loss", "linear"), kwargs.get("f_scale", 1.0)
    residuals = fit.residuals()
    best = fitted(_CALL, residuals, found._replace(facts={"success": True}), fit.within, loss, scale)
    return best.x, _covariances(_slopes(residuals, best.x, loss, scale), best.cost, absolute_sigma)


def _check_plain(option: str, refused: bool) -> None:
    if refused:
        raise InputError(f"{_CALL}: {option} is for plain values, got traced ones. Leave it out.")


class _Curve:
    """A curve and the points that it shall come near to."""

    def __init__(
        self, f: Any, xdata: Any, ydata: Any, p0: Any, sigma: Any, bounds: Any, jac: Any, options: dict[str, Any]
    ) -> None:
        self.f, self.ydata, self.p0, self.sigma = f, ydata, p0, sigma
        self.bounds, self.jac, self.options = bounds, jac, options
        self.xdata = (
            np.asarray(xdata, float) if isinstance(xdata, (list, tuple, np.ndarray)) and is_plain(xdata) else xdata
        )
        self.size = _count(f) if p0 is None else int(np.size(p0))
        self.within: Any = limits(bounds, self.size)
        self.fixed = are_fixed(bounds, self.within)

    def model(self, p: Any, xdata: Any) -> Any:
        """The curve, of parameters in one vector."""
        return self.f(xdata, *[p[i] for i in range(self.size)])

    def depends(self, p: Any) -> bool:
        """Whether anything is traced."""
        return not self.fixed or depends((p, self.ydata, self.sigma)) or depends(self.model(p, self.xdata))

    def residuals(self) -> Callable[[Any], Any]:
        """The distances from the points, in standard deviations."""
        weigh = _weighing(self.sigma)
        return lambda p: weigh(fnp.ravel(as_value(self.model(p, self.xdata))) - fnp.ravel(self.ydata))

    def searched(self) -> Found:
        """The parameters that SciPy finds."""
        start = (self.p0, self.ydata, self.sigma, None if self.fixed else self.within)
        guess = np.ones(self.size) if self.p0 is None else 1.0 * fnp.ravel(self.p0)
        return search(_CALL, self.model, (self.xdata,), start, self._solve, guess)

    def _solve(self, problem: Problem, p0: Any, ydata: Any, sigma: Any, within: Any) -> Any:
        @functools.wraps(self.f)  # SciPy counts its parameters
        def curve(xdata: Any, *p: Any) -> Any:
            return problem(np.array(p, float))

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
        """What SciPy is given for the Jacobian."""
        if callable(self.jac):
            return lambda _, *p: plain(_CALL, self.jac(*problem.args, *p))
        if self.jac is not None or self.options.keys() & {"epsfcn", "diff_step"}:
            return self.jac
        made = exact_jacobian(problem, p0)
        return None if made is None else lambda _, *p: made(np.array(p, float))


def _count(f: Callable[..., Any]) -> int:
    """How many parameters a curve has."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds for p in inspect.signature(f).parameters.values())
    if count < 2:
        raise ValueError("Unable to determine number of fit parameters.")
    return count - 1


def _weighing(sigma: Any) -> Callable[[Any], Any]:
    """What divides residuals by their standard deviations."""
    if sigma is None:
        return lambda r: r
    if len(backend.shape_of(as_value(sigma))) < 2:
        return lambda r: r / sigma
    factor = cholesky(sigma, lower=True)
    return lambda r: solve_triangular(factor, r, lower=True)


def _slopes(residuals: Callable[[Any], Any], x: Any, loss: Any, scale: Any) -> Any:
    """The Jacobian, its rows weighted as SciPy does by what the loss makes of the residuals (Triggs et al., 1999)."""
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
