"""Minima."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import ConvergenceError, InputError
from funcgrad.scipy.optimize.bounds import Box, box_of, solved_within
from funcgrad.scipy.optimize.solutions import as_tuple, dependent, like, newton_step, plain, routine_of
from funcgrad.scipy.optimize.systems import reported
from funcgrad.transforms.gradients import grad, value_and_grad
from funcgrad.transforms.implicit import solved
from funcgrad.transforms.jacobians import hessian
from funcgrad.transforms.products import hvp
from funcgrad.transforms.transformed import check_callable
from funcgrad.writable import inside

__all__ = ["minimize", "minimize_scalar"]

Function = Callable[..., Any]
#: Methods that need derivatives: they get funcgrad's where none are given.
_NEEDS = {
    **dict.fromkeys(("newton-cg", "trust-ncg", "trust-krylov"), frozenset(("jac", "hessp"))),
    **dict.fromkeys(("dogleg", "trust-exact"), frozenset(("jac", "hess"))),
}
#: A Newton step, relative to the variables, that a minimum may still be away.
_FAR = 1e-3


def minimize(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Function | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A minimum of a function of a vector, by any of SciPy's methods.

    Differentiable in ``args``, in what ``fun`` closes over, and in bounds that hold a variable in place, to any order.
    It does not depend on ``x0``. The derivative of ``fun`` is zero at a minimum: that is the equation which is
    differentiated. It is as exact as ``tol`` leaves the minimum.

    Args:
        fun: ``fun(x, *args)``, one real number; with ``jac=True`` its gradient besides.
        x0: where to begin, a vector.
        args: further arguments of ``fun``.
        method: one of SciPy's.
        jac: the gradient. Where one is given, funcgrad's own is taken inside a transform; so are ``hess`` and
            ``hessp``. Where none is given, methods that need derivatives get funcgrad's; others measure them.
        hess: the Hessian.
        hessp: products with the Hessian.
        bounds: a pair for each variable, None for no bound, or SciPy's ``Bounds``.
        constraints: as SciPy; not inside a transform.
        tol: the tolerance.
        callback: as SciPy.
        options: SciPy's, for the method.

    Returns:
        SciPy's ``OptimizeResult``; ``x`` and ``fun`` are differentiable. Inside ``vmap`` it has these and ``success``
        only.

    Raises:
        InputError: constraints inside a transform (a ``TypeError``).
        ArithmeticError: no minimum was found inside a transform, or the Hessian is singular there.

    Example:
        >>> import numpy as np
        >>> from funcgrad import jacobian
        >>> f = lambda x, a: (x[0] - a[0]) ** 2 + (x[1] - a[0] * a[1]) ** 2
        >>> jacobian(lambda a: minimize(f, np.zeros(2), (a,)).x)(np.array([1.0, 2.0])).round(6)
        array([[1., 0.],
               [2., 1.]])
    """
    call, routine = "optimize.minimize", routine_of("minimize")
    check_callable(call, fun)
    given = {"method": method, "tol": tol, "callback": callback, "options": options}
    wanted = {name for name, g in (("jac", jac), ("hess", hess), ("hessp", hessp)) if callable(g) or g is True}
    needed = _NEEDS.get(str(method).lower(), frozenset())
    if not inside():
        own: dict[str, Any] = {"fun": fun, "args": args, "jac": jac, "hess": hess, "hessp": hessp}
        if not wanted and needed:
            own = _functions(lambda x: fun(x, *as_tuple(args)), needed)
        return routine(x0=x0, bounds=bounds, constraints=constraints, **own, **given)
    if constraints is not None and np.size(constraints):
        raise InputError(
            f"{call}: minima under constraints are not differentiated, got constraints inside a transform. Write the "
            "equations of Lagrange and solve them with root, or put the constraints into the variables."
        )
    held = as_tuple(args)

    def f(x: Any) -> Any:
        value = fun(x, *held)
        return fnp.reshape(value[0] if jac is True else value, ())

    return _minimum(f, x0, bounds, given, wanted or needed)


def _minimum(f: Function, x0: Any, bounds: Any, given: dict[str, Any], wanted: Set[str]) -> Any:
    """SciPy's report on the minimum of ``f``, with what depends on what ``f`` holds."""
    call, routine, reports = "optimize.minimize", routine_of("minimize"), []
    start = fnp.reshape(fnp.asarray(x0) * 1.0, (-1,))
    box = box_of(call, bounds, start.shape[0], pairs=True)

    def run(f: Function, start: Any, box: Box | None) -> Any:
        limits = None if box is None else np.stack(box, -1)
        found = routine(**_functions(f, wanted), x0=start, bounds=limits, **given)
        reports.append(found)
        if not found.success:
            _check_minimum(call, f, found, box)
        return found.x

    x = dependent(call, _stationary(grad(f), box), solved_within(call, f, start, box, run))
    return reported(reports, x, fun=f(x))


def _functions(f: Function, wanted: Set[str]) -> dict[str, Any]:
    """What SciPy is to call, on plain values: the function and those derivatives that are wanted."""
    found: dict[str, Any] = {"fun": lambda x: plain(f(x))}
    if "jac" in wanted:
        found = {"fun": lambda x: tuple(map(plain, value_and_grad(f)(x))), "jac": True}
    if "hess" in wanted:
        found["hess"] = lambda x: plain(hessian(f)(x))
    if "hessp" in wanted:
        found["hessp"] = lambda x, v: plain(hvp(f, (x,), (v,))[0])
    return found


def _stationary(slope: Function, box: Box | None) -> Function:
    if box is None:
        return lambda x: like(slope(x), x)
    return lambda x: like(box.stationary(x, slope), x)


def _check_minimum(call: str, f: Function, found: Any, box: Box | None) -> None:
    """Refuse to differentiate where SciPy gave up, unless that was for want of digits."""
    if newton_step(call, _stationary(grad(f), box), found.x) > _FAR:
        raise ConvergenceError(
            f"{call}: what is not a minimum has no derivative, got {found.message!r} from SciPy. Begin nearer to it, "
            "or allow more steps."
        )


def minimize_scalar(
    fun: Function,
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: str | None = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A minimum of a function of one number, by Brent's method, by golden section or within bounds.

    Differentiable in ``args`` and in what ``fun`` closes over, to any order; where the minimum is at a bound, in that.

    Args:
        fun: ``fun(x, *args)``, one real number for another.
        bracket: two or three numbers to begin with.
        bounds: the interval of the method "bounded".
        args: further arguments of ``fun``.
        method: "brent", "golden" or "bounded".
        tol: the tolerance.
        options: SciPy's, for the method.

    Returns:
        SciPy's ``OptimizeResult``; ``x`` and ``fun`` are differentiable. Inside ``vmap`` it has these and ``success``
        only.

    Raises:
        ArithmeticError: no minimum was found inside a transform, or the second derivative is 0 there.

    Example:
        >>> from funcgrad import grad
        >>> float(grad(lambda a: minimize_scalar(lambda x: (x - a**2) ** 2).x)(1.5).round(6))
        3.0
    """
    call, routine = "optimize.minimize_scalar", routine_of("minimize_scalar")
    check_callable(call, fun)
    given = {"method": method, "tol": tol, "options": options}
    if not inside():
        return routine(fun, bracket, bounds, args, **given)
    held, reports = as_tuple(args), []
    starts = tuple(fnp.asarray(b) * 1.0 for b in (bracket or bounds or (0.0,)))

    def f(x: Any) -> Any:
        return fnp.reshape(fun(x, *held), ())

    def run(at: Function, begin: Any) -> Any:
        ends = [float(plain(b)) for b in begin]
        where = {"bracket": ends} if bracket else {"bounds": ends} if bounds else {}
        found = routine(lambda x: plain(at((x, *begin[1:]))), **where, **given)
        reports.append(found)
        x = np.float64(found.x)
        if bounds and not bracket:
            x = _at_end(lambda x: at((x, *begin[1:])), x, ends, options)
        inner = not bounds or x not in ends
        if inner and newton_step(call, grad(lambda x: at((x, *begin[1:]))), x) > _FAR:
            raise ConvergenceError(
                f"{call}: what is not a minimum has no derivative, got {found.message!r} from SciPy. Give other "
                "bounds, or allow more steps."
            )
        return x

    found = solved(call, lambda begin: f(begin[0]), starts, run, starts[0])
    box = Box(*starts) if bounds and not bracket else None
    x = dependent(call, _stationary(grad(f), box), found)
    return reported(reports, x, fun=f(x))


def _at_end(f: Function, x: Any, ends: list[float], options: dict[str, Any] | None) -> Any:
    """The end of the interval that ``f`` falls towards, where the tolerance lets ``x`` come no nearer; else ``x``."""
    near = 10 * (options or {}).get("xatol", 1e-5)
    slope = plain(grad(f)(x))
    low, high = map(np.float64, ends)
    if x - low <= near and slope > 0:
        return low
    return high if high - x <= near and slope < 0 else x
