"""``odeint`` with SciPy's values and with derivatives."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe, is_in_transform
from funcgrad.errors import ConvergenceError, InputError, ShapeError
from funcgrad.graph import is_on_graph
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_inexact
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp import solving
from funcgrad.scipy.integrate.ivp.flows import is_foreign
from funcgrad.scipy.integrate.ivp.pieces import Snapshots
from funcgrad.scipy.integrate.ivp.portable import Control, adjoint_solution, flow_of, start_of, through_steps
from funcgrad.scipy.integrate.ivp.runs import Runs, SolveArguments
from funcgrad.scipy.integrate.ivp.solutions import with_derivatives_of
from funcgrad.scipy.optimize.implicit import as_args, as_one_operation
from funcgrad.scipy.settings import constant_array, constant_settings
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import Array, ArrayLike
from funcgrad.writable import outside_transforms

__all__ = ["odeint"]

_CALL = "integrate.odeint"


def odeint(
    func: Callable[..., Any],
    y0: ArrayLike,
    t: ArrayLike,
    args: Any = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: int | None = None,
    mu: int | None = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: Any = 0,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: Any = 0,
    tfirst: bool = False,
    *,
    steps: int | None = None,
    adjoint: bool = False,
    budget: int | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Array:
    """Solve ``dy/dt = func(y, t, *args)`` with ``y(t[0]) = y0`` at the times ``t``.

    Values are SciPy's. The solution is differentiable in ``y0``, ``t``, ``args`` and values that ``func`` closes over,
    to any order: by collocation on the steps that SciPy's LSODA solver takes with the same tolerances, or by the
    adjoint equation. JAX arrays, complex values and ``steps`` select the explicit Dormand-Prince method. Hints for
    SciPy's method (``Dfun`` to ``mu``, ``tcrit``, ``h0``, ``hmin`` to ``printmessg``) then have no effect.

    Args:
        func: the right-hand side, an array like ``y0``; it is called with traced values.
        y0: the first value, of any shape; a number counts as an array with one entry.
        t: ordered times.
        args: further arguments, arrays or trees of arrays.
        Dfun: the Jacobian of ``func``.
        col_deriv: whether ``Dfun`` returns the transposed Jacobian.
        full_output: whether to return information on the steps too, with plain values only.
        ml: the number of diagonals of the Jacobian below the main diagonal.
        mu: the number of diagonals of the Jacobian above the main diagonal.
        rtol: the relative error of a step, 1.49e-8 by default.
        atol: the absolute error of a step, 1.49e-8 by default.
        tcrit: times that no step may pass.
        h0: the first step; 0 lets the solver choose.
        hmax: the largest step; 0 for no limit.
        hmin: the smallest step.
        ixpr: whether to print when the method changes.
        mxstep: the largest number of steps between two times; 0 for SciPy's default.
        mxhnil: the largest number of messages.
        mxordn: the highest order of the method for non-stiff equations.
        mxords: the highest order of the method for stiff equations.
        printmessg: whether to print a message.
        tfirst: whether ``func`` takes ``t`` before ``y``.
        steps: a number of equal steps between consecutive times, not adaptive ones; it then runs under ``jax.jit``.
        adjoint: whether reverse mode solves the adjoint equation backwards along the solution; if not, derivatives are
            those of the steps.
        budget: how many states to keep on the way, for runs whose steps do not fit into memory. The backward pass steps
            again from these states, as in ``checkpoint_chain``. It needs SciPy 1.17 or later.
        store: a folder for these states, in place of memory. No files remain there.

    Returns:
        The values, of shape ``(len(t), *y0.shape)``.

    Raises:
        TypeError: ``full_output`` with traced values; abstract values of ``jax.jit`` without ``steps``.
        ValueError: the right-hand side has another shape than ``y``.
        ConvergenceError: too many steps, or values that are not finite, and a derivative is requested.

    Example:
        >>> from funcgrad.scipy.integrate import odeint
        >>> grow = lambda y, t, k: k * y
        >>> odeint(grow, 1.0, np.array([0.0, 1.0]), (0.5,)).round(6)
        array([[1.      ],
               [1.648721]])
        >>> grad(lambda k: odeint(grow, 1.0, np.array([0.0, 1.0]), (k,), adjoint=True)[1, 0])(0.5).round(6)
        np.float64(1.648721)
    """
    hints = {
        "Dfun": Dfun, "col_deriv": col_deriv, "ml": ml, "mu": mu, "rtol": rtol, "atol": atol, "tcrit": tcrit,
        "h0": h0, "hmax": hmax, "hmin": hmin, "ixpr": ixpr, "mxstep": mxstep, "mxhnil": mxhnil, "mxordn": mxordn,
        "mxords": mxords, "printmessg": printmessg,
    }  # fmt: skip
    hints = constant_settings(_CALL, hints)
    kept = _snapshot_settings(budget, store, steps, adjoint)
    return _solve(func, as_value(y0), as_value(t), as_args(args), full_output, tfirst, steps, adjoint, hints, kept)


def _snapshot_settings(budget: int | None, store: Any, steps: int | None, adjoint: bool) -> Snapshots | None:
    """Return how to keep few states, or None to keep all steps."""
    if budget is None and store is None:
        return None
    if steps is not None or adjoint:
        raise InputError(
            f"{_CALL}: store and budget go with chosen steps and without adjoint, got steps={steps}, "
            f"adjoint={adjoint}. Leave them out."
        )
    return Snapshots(budget, store, _CALL)


def _solve(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...],
    full_output: Any,
    tfirst: bool,
    steps: int | None,
    adjoint: bool,
    hints: dict[str, Any],
    snapshots: Snapshots | None,
) -> Any:
    """Solve by SciPy alone, by SciPy with derivatives, or by portable steps."""
    check_callable(_CALL, func)
    if len(backend.shape_of(t)) != 1:
        raise ShapeError(f"{_CALL}: t must be a vector of times, got {describe(t)}.")
    if not is_in_transform() and steps is None and is_plain(y0, t, *tree.leaves(args)) and _is_supported_by_scipy(y0):
        found = import_scipy(_CALL, "scipy.integrate")
        return found.odeint(func, y0, t, args, full_output=full_output, tfirst=tfirst, **hints)
    if full_output:
        raise InputError(f"{_CALL}: full_output is for plain values and chosen steps, got others. Leave it out.")
    if steps is not None or is_foreign(y0, t, args) or backend.dtype_of(y0).kind == "c":
        if snapshots is not None:
            raise InputError(
                f"{_CALL}: store and budget go with real arrays of NumPy, got y0 {describe(y0)}. Leave them out, or go "
                "through parts of the times with checkpoint_chain."
            )
        return _portable(func, start_of(y0), as_inexact(t), args, tfirst, steps, adjoint, hints)
    given, func = func, isolated(func, *args) if is_in_transform() else func
    solution = _Solution(func, y0, as_inexact(t), args, tfirst, hints)
    found = solution.values(adjoint) if snapshots is None else solution.in_pieces(snapshots)
    if func is not given and backend.shape_of(t)[0]:
        settle(func, *((t[-1], found[-1]) if tfirst else (found[-1], t[-1])), *args)
    return found


def _is_supported_by_scipy(y0: Any) -> bool:
    return len(backend.shape_of(y0)) < 2 and backend.dtype_of(y0).kind != "c"


def _portable(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...],
    tfirst: bool,
    steps: int | None,
    adjoint: bool,
    hints: dict[str, Any],
) -> Any:
    """Solve by steps that also run on JAX arrays."""
    rtol, atol = (1.49012e-8 if hints[name] is None else hints[name] for name in ("rtol", "atol"))
    control = Control(_CALL, rtol, atol, steps, hints["mxstep"] or 10_000, hints["hmax"] or math.inf)
    flow, moving = flow_of(func, args, tfirst)
    return (adjoint_solution if adjoint else through_steps)(flow, control, y0, t, *moving)


class _Solution:
    """SciPy's values, with derivatives from the steps that SciPy's LSODA solver takes with the same tolerances."""

    def __init__(
        self, func: Callable[..., Any], y0: Any, t: Any, args: tuple[Any, ...], tfirst: bool, hints: dict[str, Any]
    ) -> None:
        self.func, self.y0, self.t, self.args, self.tfirst, self.hints = func, y0, t, args, tfirst, hints
        self.shape = backend.shape_of(y0) or (1,)

    def slope(self, t: Any, y: Any, *args: Any) -> Any:
        """Return the right-hand side as a vector, for a state that is a vector."""
        y = fnp.reshape(y, self.shape) if len(self.shape) > 1 else y
        found = as_value(self.func(t, y, *args) if self.tfirst else self.func(y, t, *args))
        if backend.shape_of(found) not in (self.shape, () if self.shape == (1,) else self.shape):
            raise ShapeError(
                f"{_CALL}: func must return an array like y, got {describe(found)}, expected {list(self.shape)}."
            )
        return fnp.ravel(found)

    def values(self, adjoint: bool) -> Any:
        """Return the solution at all times."""
        adjoint = adjoint and backend.shape_of(self.t)[0] > 1  # there is nothing to solve for one time
        solution = solving.traced_solution(self._solve_arguments(adjoint, adjoint))
        self._check(record.result for record in solution.runs.records)
        if adjoint:
            found = fnp.moveaxis(solving.adjoint_states(solution), 0, -1)
        else:
            found = solution.at(self.t, solution.steps_of(stop_gradient(self.t), "left"))
        if is_on_graph(solution.number):
            again = solving.traced_solution(self._solve_arguments(True, True))
            found = fnp.moveaxis(solving.recorded_columns(again)[1], 0, -1)
        return self._with_values(solution.runs, solution.values, found)

    def in_pieces(self, snapshots: Snapshots) -> Any:
        """Return the solution at all times, keeping only a few states."""
        pieces = solving.run_in_pieces(self._solve_arguments(True, False), snapshots)
        self._check([pieces.result])
        return self._with_values(pieces.runs, pieces.values, fnp.moveaxis(pieces.states(), 0, -1))

    def _solve_arguments(self, at_times: bool, dense: bool) -> SolveArguments:
        hints = self.hints
        options = {name: 1.49012e-8 if hints[name] is None else hints[name] for name in ("rtol", "atol")}
        options |= {"max_step": hints["hmax"] or math.inf, "first_step": hints["h0"] or None}
        max_steps = (hints["mxstep"] or 500) * backend.shape_of(self.t)[0]
        return SolveArguments(
            self.slope, (self.t[0], self.t[-1]), fnp.ravel(self.y0), solving.method_class("LSODA"),
            self.t if at_times else None, dense, None, False, self.args, options, max_steps,
        )  # fmt: skip

    def _check(self, results: Iterable[Any]) -> None:
        failed = [result.message for result in results if result.status < 0]
        if failed:
            raise ConvergenceError(
                f"{_CALL}: the steps are too many or too small, got {failed[0]!r}. The solution may not be finite: "
                "ask for a shorter time, allow more steps (mxstep), or larger errors (rtol, atol)."
            )

    def _with_values(self, runs: Runs, values: Sequence[Any], found: Any) -> Any:
        """Return SciPy's values with the derivatives of ``found``."""
        given = stop_gradient([fnp.ravel(self.y0), self.t, *values])
        value = as_one_operation(_CALL, lambda *some: self._scipy_values(runs, *some), given)[0]
        return fnp.reshape(with_derivatives_of(value, found), (*backend.shape_of(self.t), *self.shape))

    def _scipy_values(self, runs: Runs, y0: Any, t: Any, *values: Any) -> list[Any]:
        """Return the result of SciPy's ``odeint`` for plain numbers."""
        hints = dict(self.hints)
        fixed = tuple([constant_array(_CALL, value)[()] for value in values])
        if hints["Dfun"] is not None:
            jacobian, args = hints["Dfun"], runs.parameters.with_values(fixed)
            hints["Dfun"] = lambda t, y: jacobian(t, y, *args) if self.tfirst else jacobian(y, t, *args)
        plain = import_scipy(_CALL, "scipy.integrate").odeint
        slope = lambda t, y: runs.flow.vector(t, y, *fixed)
        with outside_transforms():
            return [plain(slope, constant_array(_CALL, y0), constant_array(_CALL, t), tfirst=True, **hints)]
