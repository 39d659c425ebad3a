"""What the solvers share: plain calls of functions, and solutions that depend on what the function holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import ConvergenceError, InputError
from funcgrad.optional import import_scipy
from funcgrad.transforms.implicit import custom_root
from funcgrad.transforms.products import jvp
from funcgrad.transforms.solvers import dense_solve
from funcgrad.transforms.staging import batched
from funcgrad.transforms.stopping import no_grad
from funcgrad.typing import PyTree

__all__ = [
    "as_tuple",
    "check_converged",
    "dependent",
    "like",
    "newton_step",
    "no_derivative",
    "no_report",
    "plain",
    "routine_of",
    "solve_linear",
]


def routine_of(name: str) -> Any:
    """The function ``name`` of ``scipy.optimize``."""
    return getattr(import_scipy(f"optimize.{name}", "scipy.optimize"), name)


def as_tuple(args: Any) -> tuple[Any, ...]:
    """``args`` of a solver, which may be a single one."""
    return args if isinstance(args, tuple) else (args,)


def plain(value: Any) -> Any:
    """``value`` as a plain array, or a number of NumPy where it has no axes.

    Raises:
        ConcretizationError: it is batched; then solvers are run example by example.
    """
    made = np.asarray(value)
    return made if made.shape else made[()]


def like(value: Any, x: Any) -> Any:
    """``value``, a result of the user's function, in the dtype of the unknown."""
    return fnp.astype(fnp.asarray(value), backend.dtype_of(x))


def dependent(
    call: str, residual: Callable[[Any], Any], found: PyTree, tangent_solve: Callable[..., Any] | None = None
) -> Any:
    """``found``, a root of ``residual`` as a constant, as one that depends on what ``residual`` closes over."""
    residual.__name__ = call
    return custom_root(residual, found, lambda f, x: x, tangent_solve or solve_linear(call))


def solve_linear(call: str) -> Callable[[Callable[[Any], Any], Any], Any]:
    """``dense_solve`` whose error says what a singular system means here."""

    def solve(matvec: Callable[[Any], Any], b: Any) -> Any:
        try:
            return dense_solve(matvec, b)
        except np.linalg.LinAlgError as error:
            raise no_derivative(call) from error

    return solve


def no_derivative(call: str) -> ConvergenceError:
    """The error where the equation of a solution cannot be solved for its derivative."""
    return ConvergenceError(
        f"{call}: the solution has no derivative, got a singular derivative of the equation that it solves: a multiple "
        "root, or a minimum that is not one point. Change the equation or the starting point."
    )


def check_converged(call: str, converged: Any, message: Any) -> None:
    """Refuse to differentiate what is no solution.

    Raises:
        ConvergenceError: not everything has converged (an ``ArithmeticError``).
    """
    if not np.all(converged):
        raise ConvergenceError(
            f"{call}: what is not a solution has no derivative, got {message!r} from SciPy. Begin nearer to the "
            "solution, or allow more steps."
        )


def no_report(call: str, x: Any) -> None:
    """Refuse a report on one run of the solver where there was one for each example of a ``vmap``."""
    leaf = x
    if isinstance(leaf, Tracer) and batched(leaf):
        raise InputError(
            f"{call}: full_output tells of one run of the solver, got a vmap, in which there is one for each example. "
            "Leave it out, or take one example at a time: funcgrad.control.map(f, xs)."
        )


def newton_step(call: str, slope: Callable[[Any], Any], x: Any) -> float:
    """How far Newton's method would still go from ``x``, relative to it; infinite where there is no such step."""
    with no_grad():
        at = plain(x)
        try:
            step = dense_solve(lambda v: jvp(slope, (at,), (v,))[1], slope(at))
        except np.linalg.LinAlgError:
            return np.inf
    return float(np.max(np.abs(plain(step)), initial=0.0) / (1 + np.max(np.abs(at), initial=0.0)))
