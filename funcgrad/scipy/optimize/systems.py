"""Roots and fixed points of systems of equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.scipy.optimize.solutions import (
    as_tuple,
    check_converged,
    dependent,
    like,
    no_report,
    plain,
    routine_of,
)
from funcgrad.transforms.implicit import solved
from funcgrad.transforms.jacobians import jacfwd
from funcgrad.transforms.staging import batched
from funcgrad.transforms.transformed import check_callable
from funcgrad.writable import inside

__all__ = ["fixed_point", "fsolve", "root"]

Function = Callable[..., Any]


def _plainly(f: Function) -> Function:
    """``f`` as SciPy calls it: of arrays, which it has made itself."""
    return lambda x: plain(f(x))


def root(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Function | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A root of a system of equations, by any of SciPy's methods.

    Differentiable in ``args`` and in what ``fun`` closes over, to any order. It does not depend on ``x0``.

    Args:
        fun: ``fun(x, *args)``, an array of the shape of ``x``; with ``jac=True`` its Jacobian besides.
        x0: where to begin, a vector.
        args: further arguments of ``fun``.
        method: one of SciPy's.
        jac: the Jacobian. Where one is given, funcgrad's own is taken inside a transform.
        tol: the tolerance.
        callback: called after each iteration, by methods that do.
        options: SciPy's, for the method.

    Returns:
        SciPy's ``OptimizeResult``; ``x`` is differentiable. Inside ``vmap`` it has ``x`` and ``success`` only.

    Raises:
        ArithmeticError: no convergence inside a transform; the Jacobian is singular at the root.

    Example:
        >>> import numpy as np
        >>> from funcgrad import jacobian
        >>> f = lambda x, a: np.stack([x[0] + x[1] - a[0], x[0] * x[1] - a[1]])
        >>> jacobian(lambda a: root(f, np.array([2.0, 0.5]), (a,)).x)(np.array([3.0, 2.0])).round(6)
        array([[ 2., -1.],
               [-1.,  1.]])
    """
    call, routine = "optimize.root", routine_of("root")
    check_callable(call, fun)
    given = {"method": method, "tol": tol, "callback": callback, "options": options}
    if not inside():
        return routine(fun, x0, args, jac=jac, **given)
    held, reports = as_tuple(args), []

    def f(x: Any) -> Any:
        value = fun(x, *held)
        return fnp.asarray(value[0] if jac is True else value)

    def run(f: Function, start: Any) -> Any:
        slope = _plainly(jacfwd(f)) if callable(jac) or jac is True else None
        found = routine(_plainly(f), plain(start), jac=slope, **given)
        check_converged(call, found.success, found.message)
        reports.append(found)
        return found.x

    x = dependent(call, lambda x: like(f(x), x), solved(call, f, fnp.asarray(x0) * 1.0, run))
    return reported(reports, x)


def reported(reports: list[Any], x: Any, **others: Any) -> Any:
    """SciPy's report with ``x`` and ``others``; of a batch there is nothing else that holds for all examples."""
    if isinstance(x, Tracer) and batched(x):
        return routine_of("OptimizeResult")(x=x, success=True, **others)
    reports[0].update(x=x, **others)
    return reports[0]


def fsolve(
    func: Function,
    x0: Any,
    args: Any = (),
    fprime: Function | None = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: Any = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """A root of a system of equations, by MINPACK's hybrid method.

    Differentiable in ``args`` and in what ``func`` closes over, to any order. It does not depend on ``x0``.

    Args:
        func: ``func(x, *args)``, an array of the shape of ``x``, a vector.
        x0: where to begin.
        args: further arguments of ``func``.
        fprime: the Jacobian. Where one is given, funcgrad's own is taken inside a transform.
        full_output: whether to return SciPy's report as well.
        col_deriv: as SciPy, of ``fprime``.
        xtol: the tolerance.
        maxfev: the most evaluations.
        band: as SciPy, where the Jacobian is measured.
        epsfcn: as SciPy, where the Jacobian is measured.
        factor: how far the first step may go.
        diag: scales of the variables.

    Raises:
        ArithmeticError: no convergence inside a transform; the Jacobian is singular at the root.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> float(grad(lambda a: fsolve(lambda x: x**3 - a, 1.0)[0])(8.0).round(9))
        0.083333333
    """
    call, routine = "optimize.fsolve", routine_of("fsolve")
    check_callable(call, func)
    given = {"xtol": xtol, "maxfev": maxfev, "band": band, "epsfcn": epsfcn, "factor": factor, "diag": diag}
    if not inside():
        return routine(func, x0, args, fprime, full_output=full_output, col_deriv=col_deriv, **given)
    held, reports = as_tuple(args), []

    def f(x: Any) -> Any:
        return fnp.reshape(func(x, *held), (-1,))

    def run(f: Function, start: Any) -> Any:
        x, info, flag, message = routine(
            _plainly(f), plain(start), fprime=_plainly(jacfwd(f)), full_output=True, **given
        )
        check_converged(call, flag == 1, message)
        reports.append((info, flag, message))
        return x

    start = fnp.reshape(fnp.asarray(x0) * 1.0, (-1,))
    x = dependent(call, lambda x: like(f(x), x), solved(call, f, start, run))
    if full_output:
        no_report(call, x)
    return (x, *reports[0]) if full_output else x


def fixed_point(
    func: Function, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2"
) -> Any:
    """The ``x`` with ``x = func(x, *args)``, by Steffensen's accelerated iteration or a plain one.

    Differentiable in ``args`` and in what ``func`` closes over, to any order. It does not depend on ``x0``. For trees,
    and for Anderson's acceleration, there is ``funcgrad.fixed_point``.

    Args:
        func: ``func(x, *args)``, an array of the shape of ``x``.
        x0: where to begin.
        args: further arguments of ``func``.
        xtol: the tolerance.
        maxiter: the most iterations.
        method: "del2" or "iteration".

    Raises:
        RuntimeError: no convergence.
        ArithmeticError: the derivative of ``x - func(x)`` is singular at the fixed point.

    Example:
        >>> from funcgrad import grad
        >>> float(grad(lambda a: fixed_point(lambda x: 0.5 * (x + a / x), 1.0))(9.0).round(9))
        0.166666667
    """
    call, routine = "optimize.fixed_point", routine_of("fixed_point")
    check_callable(call, func)
    given = {"xtol": xtol, "maxiter": maxiter, "method": method}
    if not inside():
        return routine(func, x0, args, **given)
    held = as_tuple(args)

    def f(x: Any) -> Any:
        return func(x, *held)

    found = solved(call, f, fnp.asarray(x0) * 1.0, lambda f, start: plain(routine(_plainly(f), plain(start), **given)))
    return dependent(
        call, lambda x: x - like(f(x), x), np.asarray(found)[()] if isinstance(found, np.ndarray) else found
    )
