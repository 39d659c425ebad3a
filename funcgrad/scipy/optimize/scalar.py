"""Roots of functions of one number, and of elementwise functions of an array.

The implicit function theorem gives the derivative: if ``f(x, a) = 0``, then ``dx = -df/da da / (df/dx)``. Brackets and
guesses only start the search; the derivative of a root with respect to them is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.shaping import size
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.implicit import (
    Problem,
    SearchResult,
    as_args,
    depends,
    differentiable_root,
    number,
    one_by_one,
    result_with,
    search,
)
from funcgrad.transforms.products import jvp
from funcgrad.transforms.side_effects import isolated, settle, settle_each
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["bisect", "brenth", "brentq", "newton", "ridder", "root_scalar", "toms748"]

_RTOL = 4 * np.finfo(float).eps


@function_table
def _between(
    name: str,
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    xtol: float = 2e-12,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    return _bracketed(name, f, (a, b), args, full_output, disp, xtol=xtol, rtol=rtol, maxiter=maxiter)


# fmt: off
bisect = _between("bisect",
    "Find the root of ``f`` between ``a`` and ``b`` by bisection; arguments, results and errors as for ``brentq``.",
    "round(optimize.bisect(lambda x, a: x**3 - a, 0.0, 3.0, (8.0,)), 9)", "2.0")
ridder = _between("ridder", "Find the root of ``f`` between ``a`` and ``b`` by Ridder's method; see ``brentq``.",
    "round(optimize.ridder(lambda x, a: x**3 - a, 0.0, 3.0, (8.0,)), 9)", "2.0")
brentq = _between("brentq", """Find the root of ``f`` between ``a`` and ``b`` by Brent's method.

    The root is differentiable to any order in ``args`` and in the values that ``f`` closes over, by one division by the
    derivative of ``f`` at the root. The derivatives in ``a`` and ``b`` are 0.

    Args:
        f: ``f(x, *args)``, which maps a number to a real number.
        a: one end of the interval; ``f`` has different signs at ``a`` and ``b``.
        b: the other end.
        args: further arguments, arrays or trees of arrays; a tuple, or a single argument.
        xtol: the allowed absolute error.
        rtol: the allowed relative error.
        maxiter: the largest number of iterations.
        full_output: whether to return SciPy's ``RootResults`` too.
        disp: whether to raise an error if there is no convergence.

    Returns:
        The root; with ``full_output`` the root and the ``RootResults``.

    Raises:
        ValueError: ``f`` does not change its sign.
        RuntimeError: no convergence.
        ConvergenceError: no convergence, with ``disp=False`` and traced values (an ``ArithmeticError``).
        LinAlgError: the derivative of ``f`` at the root is zero, and a derivative of the root is requested.
        StagingError: the call is inside ``jax.jit``, where values are unknown (a ``TypeError``).""",
    "root = lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 3.0)\ngrad(root)(8.0).round(9)",
    "np.float64(0.083333333)")
brenth = _between("brenth",
    "Find the root of ``f`` between ``a`` and ``b`` by Brent's method with hyperbolic extrapolation; see ``brentq``.",
    "round(optimize.brenth(lambda x, a: x**3 - a, 0.0, 3.0, (8.0,)), 9)", "2.0")
# fmt: on


def toms748(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    k: int = 1,
    xtol: float = 2e-12,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find the root of ``f`` between ``a`` and ``b`` by Algorithm 748; see ``brentq``.

    Example:
        >>> from funcgrad.scipy import optimize
        >>> round(float(optimize.toms748(lambda x, a: x**3 - a, 0.0, 3.0, (8.0,))), 9)
        2.0
    """
    return _bracketed("toms748", f, (a, b), args, full_output, disp, k=k, xtol=xtol, rtol=rtol, maxiter=maxiter)


def _bracketed(
    name: str, f: Callable[..., Any], ends: tuple[Any, Any], args: Any, full_output: bool, disp: bool, **options: Any
) -> Any:
    call, args = f"optimize.{name}", as_args(args)
    check_callable(call, f)
    f = isolated(f, args)
    optimize = import_scipy(call)
    routine = getattr(optimize, name)

    def solve(problem: Problem, a: Any, b: Any) -> Any:
        return routine(problem, number(call, a), number(call, b), full_output=True, disp=disp, **options)

    root, result = _root_of(call, f, args, search(call, f, args, ends, solve, 1.0 * ends[0]))
    settle(f, root, *args)
    return (root, result) if full_output else root


def _root_of(call: str, f: Callable[..., Any], args: tuple[Any, ...], found: SearchResult) -> tuple[Any, Any]:
    """Return the root and SciPy's result, both with derivatives if anything is traced."""
    if not depends((found.x, f(found.x, *args))):
        return found.x, found.result
    root = differentiable_root(call, lambda x: f(x, *args), found, found.facts["converged"])
    return root, result_with(call, import_scipy(call).RootResults, found, root=root)


def newton(
    func: Callable[..., Any],
    x0: ArrayLike,
    fprime: Callable[..., Any] | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable[..., Any] | None = None,
    x1: ArrayLike | None = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find a root of ``func`` near ``x0``, elementwise for arrays, by Newton's, Halley's or the secant method.

    The given derivatives select the method, as in SciPy. The derivative of the root does not need them. See ``brentq``
    for this derivative and the errors.

    Args:
        func: ``func(x, *args)``; elementwise for an array.
        x0: the first guess, real or complex.
        fprime: the derivative of ``func``, for Newton's method.
        args: further arguments; a tuple, or a single argument.
        tol: the largest allowed last step.
        maxiter: the largest number of iterations.
        fprime2: the second derivative, for Halley's method.
        x1: a second guess for the secant method.
        rtol: the largest allowed last step, relative to the root.
        full_output: whether to return SciPy's ``RootResults`` too; for an array, which elements have converged and at
            which elements the derivative was zero.
        disp: whether to raise an error if there is no convergence.

    Returns:
        The root, or roots in the shape of ``x0``.

    Raises:
        RuntimeError: no convergence.
        ConvergenceError: no convergence, with ``disp=False`` and traced values; or ``func`` of an array is not
            elementwise (an ``ArithmeticError``).

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> jacobian(lambda a: optimize.newton(lambda x: x**3 - a, np.ones(2)))(np.array([1.0, 8.0])).round(6)
        array([[0.333333, 0.      ],
               [0.      , 0.083333]])
    """
    call, args = "optimize.newton", as_args(args, unpacks=True)
    check_callable(call, func)
    func = isolated(func, args)
    fprime, fprime2 = (isolated(d, args) if callable(d) else d for d in (fprime, fprime2))
    optimize = import_scipy(call)
    several = size(x0) > 1

    def solve(problem: Problem, x0: Any, x1: Any) -> Any:
        orders = _orders(problem.fun)
        given = (fprime, fprime2)
        first, second = (
            None if f is None else problem.plain_derivative(f, own) for f, own in zip(given, orders, strict=True)
        )
        made = optimize.newton(
            problem,
            number(call, x0),
            first,
            tol=tol,
            maxiter=maxiter,
            fprime2=second,
            x1=number(call, x1),
            rtol=rtol,
            full_output=True,
            disp=disp,
        )
        return (made[0], {"converged": made[1], "zero_der": made[2], "whole": made}) if several else made

    found = search(call, func, args, (x0, x1), solve, as_value(x0))
    if not several:
        root, result = _root_of(call, func, args, found)
        settle_each((func, fprime, fprime2), root, args)
        return (root, result) if full_output else root
    if not depends((found.x, func(found.x, *args))):
        settle_each((func, fprime, fprime2), found.x, args)
        return found.result["whole"] if full_output else found.x
    root = differentiable_root(call, lambda x: func(x, *args), found, found.facts["converged"], one_by_one)
    settle_each((func, fprime, fprime2), root, args)
    return Roots(root, found.facts["converged"], found.facts["zero_der"]) if full_output else root


class Roots(NamedTuple):
    """Result of ``newton`` for an array with ``full_output``; SciPy's class for it is private."""

    root: Any
    converged: Any
    zero_der: Any


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: ArrayLike | None = None,
    x1: ArrayLike | None = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a function of one number, by the given method; see ``brentq`` for its derivative.

    Newton's and Halley's methods get exact derivatives if the caller gives none.

    Args:
        f: ``f(x, *args)``; if ``fprime`` or ``fprime2`` is True, ``f`` returns the derivatives as well.
        args: further arguments; a tuple, or a single argument.
        method: one of SciPy's methods; the default fits the other arguments.
        bracket: two numbers between which ``f`` changes its sign.
        fprime: the derivative, or whether ``f`` returns it.
        fprime2: the second derivative, or whether ``f`` returns it.
        x0: the first guess.
        x1: a second guess.
        xtol: the allowed absolute error.
        rtol: the allowed relative error.
        maxiter: the largest number of iterations.
        options: SciPy's options for the method.

    Returns:
        SciPy's ``RootResults``, whose ``root`` has derivatives.

    Raises:
        ConvergenceError: no convergence, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the derivative of ``f`` at the root is zero, and a derivative of the root is requested.

    Example:
        >>> from funcgrad.scipy import optimize
        >>> grad(lambda a: optimize.root_scalar(lambda x: x**3 - a, x0=1.0, method="halley").root)(8.0).round(9)
        np.float64(0.083333333)
    """
    call, args = "optimize.root_scalar", as_args(args)
    check_callable(call, f)
    f = isolated(f, args)
    fprime, fprime2 = (isolated(d, args) if callable(d) else d for d in (fprime, fprime2))
    optimize = import_scipy(call)
    together = any(flag is not None and not callable(flag) and bool(flag) for flag in (fprime, fprime2))
    settings = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options}

    def value(x: Any, *args: Any) -> Any:
        return f(x, *args)[0] if together else f(x, *args)

    def solve(problem: Problem, bracket: Any, x0: Any, x1: Any) -> Any:
        x0, x1 = number(call, x0), number(call, x1)
        given = (fprime, fprime2)
        orders = _orders(lambda x: value(x, *problem.args) if together else problem.fun(x))
        known = [problem.plain_derivative(d, own) if callable(d) else d for d, own in zip(given, orders, strict=True)]
        exact = not together and x0 is not None and bracket is None
        first, second = _slopes(problem, method, x0, x1, known) if exact else known
        found = optimize.root_scalar(
            problem,
            method=method,
            bracket=None if bracket is None else [number(call, end) for end in bracket],
            fprime=first,
            fprime2=second,
            x0=x0,
            x1=x1,
            **settings,
        )
        return found.root, found

    guess = x0 if x0 is not None else 0.0 if bracket is None else 1.0 * bracket[0]
    root, result = _root_of(call, value, args, search(call, f, args, (bracket, x0, x1), solve, guess))
    settle_each((f, fprime, fprime2), root, args)
    return result


def _slopes(problem: Problem, method: str | None, x0: Any, x1: Any, given: list[Any]) -> list[Any]:
    """Return the derivatives that the method uses: the given ones, or exact ones where none is given."""
    name = "newton" if method is None and x1 is None else str(method).lower()
    wanted = {"newton": 1, "halley": 2}.get(name, 0)
    orders = _orders(problem.fun)
    return [problem.exact(orders[i], x0) if known is None and i < wanted else known for i, known in enumerate(given)]


def _orders(fun: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return the first and the second derivative of an elementwise function."""
    slope = _slope(fun)
    return slope, _slope(slope)


def _slope(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(fun, (1.0 * x,), (1.0 + 0.0 * x,))[1]
