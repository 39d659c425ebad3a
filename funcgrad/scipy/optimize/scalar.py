"""Roots of functions of one number, and of each number of an array by itself.

The derivative is that of the implicit function: where ``f(x, a) = 0``, ``dx = -df/da da / (df/dx)``. Brackets and
guesses are where the search begins, and the root does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.faces import rows
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.implicit import (
    Found,
    Problem,
    answer,
    as_args,
    depends,
    number,
    one_by_one,
    search,
    with_fields,
)
from funcgrad.transforms.products import jvp
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["bisect", "brenth", "brentq", "newton", "ridder", "root_scalar", "toms748"]

_RTOL = 4 * np.finfo(float).eps


@rows
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
    "The root of ``f`` between ``a`` and ``b`` by bisection; arguments, results and errors are those of ``brentq``.",
    "round(optimize.bisect(lambda x, a: x**3 - a, 0.0, 3.0, (8.0,)), 9)", "2.0")
ridder = _between("ridder", "The root of ``f`` between ``a`` and ``b`` by Ridder's method; see ``brentq``.",
    "round(optimize.ridder(lambda x, a: x**3 - a, 0.0, 3.0, (8.0,)), 9)", "2.0")
brentq = _between("brentq", """The root of ``f`` between ``a`` and ``b`` by Brent's method.

    Differentiable in ``args`` and in what ``f`` closes over, to any order: one division by the derivative of ``f`` at
    the root. In ``a`` and ``b`` it is constant.

    Args:
        f: ``f(x, *args)``, a real number for a number.
        a: one end, where ``f`` has another sign than at the other.
        b: the other end.
        args: further arguments, arrays or trees of arrays. Anything but a tuple is taken for a single one.
        xtol: the absolute error that is allowed.
        rtol: the relative one.
        maxiter: the most iterations.
        full_output: whether to return SciPy's ``RootResults`` too.
        disp: whether not to converge is an error.

    Returns:
        The root; with ``full_output`` the root and the ``RootResults``.

    Raises:
        ValueError: no change of sign.
        RuntimeError: no convergence.
        ConvergenceError: no convergence, with ``disp=False`` and traced values (an ``ArithmeticError``).
        LinAlgError: the derivative of ``f`` at the root is zero, and one of the root is asked for.
        InputError: values that JAX knows only later, inside ``jax.jit`` (a ``TypeError``).""",
    "root = lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 3.0)\ngrad(root)(8.0).round(9)",
    "np.float64(0.083333333)")
brenth = _between("brenth",
    "The root of ``f`` between ``a`` and ``b`` by Brent's method with hyperbolic extrapolation; see ``brentq``.",
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
    """The root of ``f`` between ``a`` and ``b`` by Algorithm 748; see ``brentq``.

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
    optimize = import_scipy(call)
    routine = getattr(optimize, name)

    def solve(problem: Problem, a: Any, b: Any) -> Any:
        return routine(problem, number(call, a), number(call, b), full_output=True, disp=disp, **options)

    root, result = _root_of(call, f, args, search(call, f, args, ends, solve, 1.0 * ends[0]))
    return (root, result) if full_output else root


def _root_of(call: str, f: Callable[..., Any], args: tuple[Any, ...], found: Found) -> tuple[Any, Any]:
    """The root and the result with it."""
    if not depends((found.x, f(found.x, *args))):
        return found.x, found.result
    root = answer(call, lambda x: f(x, *args), found, found.facts["converged"])
    return root, with_fields(import_scipy(call).RootResults, found.facts, root=root)


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
    """A root of ``func`` near ``x0``, or of each element near that of ``x0``: by Newton, Halley or the secant method.

    Which method it is follows from the derivatives that are given, as in SciPy; the derivative of the root needs
    none. See ``brentq`` for what it is and for what is raised.

    Args:
        func: ``func(x, *args)``; of an array element by element.
        x0: the first guess, real or complex.
        fprime: the derivative of ``func``, for Newton's method.
        args: further arguments; a tuple, or one.
        tol: the last step that is allowed.
        maxiter: the most iterations.
        fprime2: the second derivative, for Halley's method.
        x1: a second guess for the secant method.
        rtol: the last step, relative to the root.
        full_output: whether to return SciPy's ``RootResults`` too; of an array which elements have converged
            and at which the derivative was zero.
        disp: whether not to converge is an error.

    Returns:
        The root, or roots in the shape of ``x0``.

    Raises:
        RuntimeError: no convergence.
        ConvergenceError: no convergence, with ``disp=False`` and traced values; ``func`` of an array is not element
            by element (an ``ArithmeticError``).

    Example:
        >>> from funcgrad import jacobian
        >>> from funcgrad.scipy import optimize
        >>> jacobian(lambda a: optimize.newton(lambda x: x**3 - a, np.ones(2)))(np.array([1.0, 8.0])).round(6)
        array([[0.333333, 0.      ],
               [0.      , 0.083333]])
    """
    call, args = "optimize.newton", as_args(args, unpacks=True)
    check_callable(call, func)
    optimize = import_scipy(call)
    several = np.size(x0) > 1

    def solve(problem: Problem, x0: Any, x1: Any) -> Any:
        orders = _orders(problem.fun)
        given = (fprime, fprime2)
        first, second = (None if f is None else problem.given(f, own) for f, own in zip(given, orders, strict=True))
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
        return (root, result) if full_output else root
    if not depends((found.x, func(found.x, *args))):
        return found.result["whole"] if full_output else found.x
    root = answer(call, lambda x: func(x, *args), found, found.facts["converged"], one_by_one)
    return Roots(root, found.facts["converged"], found.facts["zero_der"]) if full_output else root


class Roots(NamedTuple):
    """What ``newton`` tells of an array with ``full_output``: SciPy's own class is a private one."""

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
    """A root of a function of one number, by the method of that name; see ``brentq`` for its derivative.

    Newton's and Halley's methods get exact derivatives where none are given.

    Args:
        f: ``f(x, *args)``; where ``fprime`` or ``fprime2`` is True, it returns the derivatives as well.
        args: further arguments; a tuple, or one.
        method: one of SciPy's, by default one that fits what is given.
        bracket: two numbers between which ``f`` changes its sign.
        fprime: the derivative, or whether ``f`` returns it.
        fprime2: the second derivative, or whether ``f`` returns it.
        x0: the first guess.
        x1: a second one.
        xtol: the absolute error that is allowed.
        rtol: the relative one.
        maxiter: the most iterations.
        options: SciPy's, for the method.

    Returns:
        SciPy's ``RootResults``, whose ``root`` has derivatives.

    Raises:
        ConvergenceError: no convergence, and a derivative is asked for (an ``ArithmeticError``).
        LinAlgError: the derivative of ``f`` at the root is zero, and one of the root is asked for.

    Example:
        >>> from funcgrad.scipy import optimize
        >>> grad(lambda a: optimize.root_scalar(lambda x: x**3 - a, x0=1.0, method="halley").root)(8.0).round(9)
        np.float64(0.083333333)
    """
    call, args = "optimize.root_scalar", as_args(args)
    check_callable(call, f)
    optimize = import_scipy(call)
    together = any(flag is not None and not callable(flag) and bool(flag) for flag in (fprime, fprime2))
    settings = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options}

    def value(x: Any, *args: Any) -> Any:
        return f(x, *args)[0] if together else f(x, *args)

    def solve(problem: Problem, bracket: Any, x0: Any, x1: Any) -> Any:
        x0, x1 = number(call, x0), number(call, x1)
        given = (fprime, fprime2)
        orders = _orders(lambda x: value(x, *problem.args) if together else problem.fun(x))
        known = [problem.given(d, own) if callable(d) else d for d, own in zip(given, orders, strict=True)]
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
    return _root_of(call, value, args, search(call, f, args, (bracket, x0, x1), solve, guess))[1]


def _slopes(problem: Problem, method: str | None, x0: Any, x1: Any, given: list[Any]) -> list[Any]:
    """The derivatives that the method takes: those that are given, and else exact ones."""
    name = "newton" if method is None and x1 is None else str(method).lower()
    wanted = {"newton": 1, "halley": 2}.get(name, 0)
    orders = _orders(problem.fun)
    return [problem.exact(orders[i], x0) if known is None and i < wanted else known for i, known in enumerate(given)]


def _orders(fun: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The first and the second derivative, of each number by itself."""
    slope = _slope(fun)
    return slope, _slope(slope)


def _slope(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(fun, (1.0 * x,), (1.0 + 0.0 * x,))[1]
