"""Roots of functions of one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.scipy.optimize.solutions import (
    as_tuple,
    check_converged,
    dependent,
    like,
    no_derivative,
    no_report,
    plain,
    routine_of,
)
from funcgrad.transforms.implicit import solved
from funcgrad.transforms.products import jvp
from funcgrad.transforms.staging import batched
from funcgrad.transforms.transformed import check_callable
from funcgrad.writable import inside

__all__ = ["bisect", "brenth", "brentq", "newton", "ridder", "root_scalar", "toms748"]

Function = Callable[..., Any]
_EPS4 = 4 * float(np.finfo(float).eps)


def _found(call: str, f: Function, starts: Sequence[Any], run: Callable[[Function, list[Any]], Any]) -> Any:
    """A root that ``run(plain_f, plain_starts)`` finds, as one that depends on what ``f`` holds."""

    def once(at: Function, begin: tuple[Any, ...]) -> Any:
        numbers = [plain(s) for s in begin]
        return run(lambda x: plain(at((x, *begin[1:]))), [None if s is None else s for s in numbers])

    root = solved(call, lambda begin: f(begin[0]), tuple(starts), once, starts[0])
    return dependent(call, lambda x: like(f(x), x), root)


def _bracketed(
    name: str, f: Function, a: Any, b: Any, args: Any, full_output: bool, disp: bool, options: dict[str, Any]
) -> Any:
    call, routine = f"optimize.{name}", routine_of(name)
    check_callable(call, f)
    if not inside():
        return routine(f, a, b, args, full_output=full_output, disp=disp, **options)
    reports = []

    def run(at: Function, ends: list[Any]) -> Any:
        root, report = routine(at, *map(float, ends), full_output=True, disp=disp, **options)
        check_converged(call, report.converged, report.flag)
        reports.append(report)
        return np.float64(root)

    held = as_tuple(args)
    x = _found(call, lambda x: f(x, *held), (a, b), run)
    if full_output:
        no_report(call, x)
    return (x, reports[0]) if full_output else x


_BRACKETED = """A root of ``f`` between ``a`` and ``b``, by {method}.

    Differentiable in ``args`` and in what ``f`` closes over, to any order. It does not depend on ``a`` and ``b``.

    Args:
        f: ``f(x, *args)``, one real number for another.
        a: one end of the interval; ``f`` has another sign there than at ``b``.
        b: the other end.
        args: further arguments of ``f``; anything but a tuple is taken for a single one.
        xtol: the absolute tolerance.
        rtol: the relative tolerance.
        maxiter: the most iterations.
        full_output: whether to return SciPy's report as well.
        disp: whether no convergence is an error; inside a transform it is one in any case.

    Raises:
        RuntimeError, ValueError: as SciPy: no convergence; no change of sign.
        ArithmeticError: no convergence where ``disp`` is False; the derivative of ``f`` is 0 at the root.

    Example:
        >>> from funcgrad import grad
        >>> from funcgrad.scipy.optimize import {name}
        >>> float(grad(lambda a: {name}(lambda x: x**3 - a, 0.0, 5.0))(8.0).round(9))
        0.083333333
    """


def _bracketing(name: str, method: str) -> Function:
    def find(
        f: Function,
        a: Any,
        b: Any,
        args: Any = (),
        xtol: float = 2e-12,
        rtol: float = _EPS4,
        maxiter: int = 100,
        full_output: bool = False,
        disp: bool = True,
    ) -> Any:
        options = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
        return _bracketed(name, f, a, b, args, full_output, disp, options)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = _BRACKETED.format(name=name, method=method)
    return find


brentq = _bracketing("brentq", "Brent's method with quadratic extrapolation")
brenth = _bracketing("brenth", "Brent's method with hyperbolic extrapolation")
bisect = _bracketing("bisect", "bisection")
ridder = _bracketing("ridder", "Ridders' method")


def toms748(
    f: Function,
    a: Any,
    b: Any,
    args: Any = (),
    k: int = 1,
    xtol: float = 2e-12,
    rtol: float = _EPS4,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """A root of ``f`` between ``a`` and ``b``, by algorithm 748 of Alefeld, Potra and Shi; else as ``brentq``.

    Args:
        f: ``f(x, *args)``, one real number for another.
        a: the lower end.
        b: the upper end.
        args: further arguments of ``f``.
        k: how many Newton steps of a cubic to take in each iteration.
        xtol: the absolute tolerance.
        rtol: the relative tolerance.
        maxiter: the most iterations.
        full_output: whether to return SciPy's report as well.
        disp: whether no convergence is an error.

    Example:
        >>> from funcgrad import grad
        >>> float(grad(lambda a: toms748(lambda x: x**3 - a, 0.0, 5.0))(8.0).round(9))
        0.083333333
    """
    options = {"k": k, "xtol": xtol, "rtol": rtol, "maxiter": maxiter}
    return _bracketed("toms748", f, a, b, args, full_output, disp, options)


def _slopes(at: Function, orders: int) -> tuple[Function | None, Function | None]:
    """The first and the second derivative of a function of one number, as far as ``orders`` asks for them."""

    def first(x: Any) -> Any:
        return jvp(at, (x,), (np.ones_like(x)[()],))[1]

    def second(x: Any) -> Any:
        return jvp(first, (x,), (np.ones_like(x)[()],))[1]

    return (lambda x: plain(first(x))) if orders else None, (lambda x: plain(second(x))) if orders > 1 else None


def newton(
    func: Function,
    x0: Any,
    fprime: Function | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Function | None = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """A root of ``func`` near ``x0``, by Newton's, Halley's or the secant method.

    Of an array ``x0`` there is one for each element. Differentiable in ``args`` and in what ``func`` closes over, to
    any order. It does not depend on ``x0``.

    Args:
        func: ``func(x, *args)``; of an array each element of the result depends on that of ``x`` alone.
        x0: where to begin.
        fprime: the derivative of ``func``. Inside a transform funcgrad's own is taken in its place.
        args: further arguments of ``func``.
        tol: the size of the last step.
        maxiter: the most iterations.
        fprime2: the second derivative, for Halley's method.
        x1: a second point for the secant method, which is used where there is no ``fprime``.
        rtol: the relative tolerance.
        full_output: whether to return SciPy's report as well.
        disp: whether no convergence is an error; inside a transform it is one in any case.

    Raises:
        RuntimeError: no convergence.
        ArithmeticError: no convergence where ``disp`` is False; the derivative of ``func`` is 0 at a root.

    Example:
        >>> import numpy as np
        >>> from funcgrad import jacobian
        >>> jacobian(lambda a: newton(lambda x: x**2 - a, np.ones(2)))(np.array([1.0, 4.0])).round(6)
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    call, routine = "optimize.newton", routine_of("newton")
    check_callable(call, func)
    options = {"tol": tol, "maxiter": maxiter, "rtol": rtol, "disp": disp}
    if not inside():
        return routine(func, x0, fprime, args, fprime2=fprime2, x1=x1, full_output=full_output, **options)
    held, reports = as_tuple(args), []
    orders = 0 if fprime is None else 1 if fprime2 is None else 2

    def run(f: Function, begin: tuple[Any, ...]) -> Any:
        start, *second = [plain(s) for s in begin]
        at = lambda x: plain(f((x, *begin[1:])))
        one, two = _slopes(lambda x: f((x, *begin[1:])), orders)
        found = routine(
            at, start * 1.0, one, fprime2=two, x1=second[0] if second else None, full_output=True, **options
        )
        report = found[1] if np.ndim(start) == 0 or np.size(start) == 1 else None
        converged = found[1] if report is None else report.converged
        check_converged(call, converged, "no convergence" if report is None else report.flag)
        reports.append(found[1:])
        return found[0] if np.ndim(found[0]) else np.asarray(found[0])[()]

    def f(x: Any) -> Any:
        return func(x, *held)

    x = solved(call, lambda begin: f(begin[0]), (x0,) if x1 is None else (x0, x1), run, x0)
    x = dependent(call, lambda x: like(f(x), x), x, _elementwise)
    if full_output:
        no_report(call, x)
    return (x, *reports[0]) if full_output else x


def _elementwise(matvec: Function, b: Any) -> Any:
    """Solve a system whose matrix is diagonal."""
    slopes = known = matvec(fnp.ones_like(b))
    while isinstance(known, Tracer):
        known = known.value
    if isinstance(known, (np.ndarray, np.generic)) and not np.all(known):
        raise no_derivative("optimize.newton")
    return b / slopes


def root_scalar(
    f: Function,
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """A root of a function of one number, by any of SciPy's methods.

    Differentiable in ``args`` and in what ``f`` closes over, to any order. It does not depend on where it begins.

    Args:
        f: ``f(x, *args)``, one number for another; with ``fprime=True`` its derivative besides, with ``fprime2=True``
            the second one too.
        args: further arguments of ``f``.
        method: one of SciPy's; by default one that fits what is given.
        bracket: two numbers where ``f`` has different signs.
        fprime: the derivative. Inside a transform funcgrad's own is taken in its place.
        fprime2: the second derivative.
        x0: where to begin.
        x1: a second point.
        xtol: the absolute tolerance.
        rtol: the relative tolerance.
        maxiter: the most iterations.
        options: SciPy's, for the method.

    Returns:
        SciPy's ``RootResults``; ``root`` is differentiable. Inside ``vmap`` it has ``root`` and ``converged`` only.

    Raises:
        ValueError: as SciPy.
        ArithmeticError: no convergence inside a transform; the derivative of ``f`` is 0 at the root.

    Example:
        >>> from funcgrad import grad
        >>> slope = grad(lambda a: root_scalar(lambda x: x**3 - a, bracket=(0.0, 5.0)).root)(8.0)
        >>> float(slope.round(9))
        0.083333333
    """
    call, routine = "optimize.root_scalar", routine_of("root_scalar")
    check_callable(call, f)
    given = {"method": method, "xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options}
    if not inside():
        return routine(f, args, bracket=bracket, fprime=fprime, fprime2=fprime2, x0=x0, x1=x1, **given)
    held, reports = as_tuple(args), []
    orders = 0 if not fprime else 1 if not fprime2 else 2
    several = fprime is True or fprime2 is True
    names, starts = _starts(call, bracket, x0, x1)

    def at(x: Any) -> Any:
        value = f(x, *held)
        return value[0] if several else value

    def run(f: Function, begin: tuple[Any, ...]) -> Any:
        numbers = dict(zip(names, [plain(s) for s in begin], strict=True))
        ends = {"bracket": [numbers.pop("a"), numbers.pop("b")]} if "a" in numbers else {}
        one, two = _slopes(lambda x: f((x, *begin[1:])), orders)
        found = routine(lambda x: plain(f((x, *begin[1:]))), fprime=one, fprime2=two, **ends, **numbers, **given)
        check_converged(call, found.converged, found.flag)
        reports.append(found)
        return np.asarray(found.root)[()]

    x = dependent(call, lambda x: like(at(x), x), solved(call, lambda begin: at(begin[0]), starts, run, starts[0]))
    if isinstance(x, Tracer) and batched(x):
        return routine_of("RootResults")(root=x, iterations=None, function_calls=None, flag=0, method=method)
    reports[0].root = x
    return reports[0]


def _starts(call: str, bracket: Any, x0: Any, x1: Any) -> tuple[list[str], tuple[Any, ...]]:
    """Where the solver begins, and under which names."""
    found = {} if bracket is None else dict(zip("ab", bracket, strict=True))
    found.update({name: x for name, x in (("x0", x0), ("x1", x1)) if x is not None})
    if not found:
        raise InputError(f"{call}: somewhere to begin is needed, got neither bracket nor x0. Give one of them.")
    return list(found), tuple(
        x if hasattr(x, "dtype") else np.float64(x) if type(x) is int else x for x in found.values()
    )
