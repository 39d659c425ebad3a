"""Initial value problems: ``solve_ivp``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe, is_in_transform
from funcgrad.errors import InputError
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_inexact
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp import solving
from funcgrad.scipy.integrate.ivp.flows import is_foreign
from funcgrad.scipy.integrate.ivp.pieces import RESTARTABLE, Snapshots
from funcgrad.scipy.integrate.ivp.portable import TABLES, Control, Run, start_of
from funcgrad.scipy.integrate.ivp.runs import SolveArguments
from funcgrad.scipy.settings import constant_settings
from funcgrad.transforms.side_effects import isolated, settle
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike

__all__ = ["solve_ivp"]


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: ArrayLike,
    method: Any = "RK45",
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    *,
    steps: int | None = None,
    adjoint: bool = False,
    budget: int | None = None,
    store: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Solve ``dy/dt = fun(t, y, *args)`` on an interval, as ``scipy.integrate.solve_ivp`` does.

    SciPy's solver takes the steps; times, values, events and counts equal SciPy's bit for bit. Derivatives, of any
    order and in both modes, are those of the steps: explicit steps are differentiated exactly, steps of Radau and BDF
    through the equations that they solve, steps of LSODA and of your own solver class by collocation on the same steps.
    Derivatives exist in ``y0``, ``args`` and values that the functions close over, in both ends, in ``t_eval`` and
    through the times and states of events. Step lengths and tolerances are constants.

    Args:
        fun: the right-hand side; a vector, or a tree like ``y0``.
        t_span: the first and the last time. The derivative in an end is that of the solution, not of the length of the
            step there.
        y0: the first value, a vector, real or complex; or a tree of arrays, such as a dictionary.
        method: "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA", or a solver class.
        t_eval: ordered times in the interval; None for the times of the steps.
        dense_output: whether the result has ``sol``, the solution between steps; it is differentiable in time too.
        events: a function ``event(t, y, *args)`` whose zeros are located, or several, with SciPy's attributes
            ``terminal`` and ``direction``.
        vectorized: whether ``fun`` takes columns of states.
        args: further arguments, arrays or trees of arrays.
        steps: a number of equal steps between consecutive times, in place of adaptive steps, for "RK23", "RK45" or
            "DOP853"; then nothing looks at values, and it runs under ``jax.jit``.
        adjoint: whether reverse mode solves the adjoint equation backwards along the solution, by the same method and
            tolerances; if not, derivatives are those of the steps. It excludes events and ``dense_output``.
        budget: how many states to keep on the way, for runs whose steps do not fit into memory. The backward pass steps
            again from these states with SciPy's solver, as in ``checkpoint_chain``. It needs one of the six named
            methods (LSODA: SciPy 1.17 or later) and ``t_eval``, and excludes events and ``dense_output``.
        store: a folder for these states, in place of memory. Its files have no names, so no files remain there.
            Without ``budget`` enough states are kept that no step is repeated more than twice.
        options: options of the solver: ``rtol``, ``atol``, ``max_step``, ``first_step``, ``jac``, ``jac_sparsity``, ...
            ``jac="exact"`` gives Radau, BDF and LSODA the exact Jacobian in place of finite differences.

    Returns:
        SciPy's result: ``t``, ``y`` with one column for each time (for a tree, one such array for each leaf), ``sol``,
        ``t_events``, ``y_events``, ``nfev``, ``njev``, ``nlu``, ``status``, ``message``, ``success``.

    Raises:
        ValueError: SciPy's errors; under ``vmap``, numbers of times or events that differ between examples.
        TypeError: abstract values, inside ``jax.jit``, without ``steps``.
        LinAlgError: an event touches zero without crossing it, and the derivative of its time is requested.

    Example:
        >>> from funcgrad.scipy.integrate import solve_ivp
        >>> solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[1.0], rtol=1e-8, atol=1e-8).y.round(6)
        array([[0.367879]])
        >>> def last(k):
        ...     return solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], "Radau", rtol=1e-8, atol=1e-8).y[0, -1]
        >>> grad(last)(2.0).round(6)
        np.float64(-0.135335)
    """
    check_callable("integrate.solve_ivp", fun)
    if steps is not None or is_foreign(y0, t_span, t_eval, args):
        return _portable(fun, t_span, y0, method, t_eval, dense_output, events, args, steps, options)
    if args is not None and not isinstance(args, (tuple, list)):
        raise InputError(f"integrate.solve_ivp: args must be a tuple, got {describe(args)}. Pass args=(value,).")
    options = constant_settings("integrate.solve_ivp", options)
    given, fun = fun, isolated(fun, *(args or ())) if is_in_transform() else fun
    several = events if events is None else (events,) if callable(events) else tuple(events)
    solver = solving.method_class(method)
    arguments = SolveArguments(fun, tuple(t_span), y0, solver, t_eval, dense_output, several, vectorized, args, options)
    if budget is None and store is None:
        found = _solve_at_once(arguments, adjoint)
    else:
        found = _in_pieces(arguments, Snapshots(budget, store), adjoint)
    if fun is not given:
        end = (found.t[-1], tree.map(lambda y: y[..., -1], found.y)) if len(found.t) else (t_span[0], y0)
        settle(fun, *end, *(args or ()))
    return found


def _in_pieces(arguments: SolveArguments, snapshots: Snapshots, adjoint: bool) -> Any:
    """Solve while keeping only a few states."""
    name = arguments.method.__name__
    whole = arguments.t_eval is None or arguments.events is not None or arguments.dense_output or adjoint
    if whole or name not in RESTARTABLE or solving.method_class(name) is not arguments.method:
        raise InputError(
            f"integrate.solve_ivp: store and budget go with {', '.join(RESTARTABLE)} and t_eval, without events, "
            f"dense_output and adjoint, got method={name}, t_eval={describe(arguments.t_eval)}, "
            f"events={arguments.events}, dense_output={arguments.dense_output}, adjoint={adjoint}. For others, go "
            "through parts of the interval with checkpoint_chain(store=folder)."
        )
    if _is_plain(arguments):
        return solving.plain_solution(arguments)
    return solving.solution_in_pieces(arguments, snapshots)


def _is_plain(arguments: SolveArguments) -> bool:
    """Whether no value of the call can be traced."""
    values = arguments.t_span, arguments.t_eval, *tree.leaves((arguments.y0, arguments.args))
    return not is_in_transform() and is_plain(*values)


def _solve_at_once(arguments: SolveArguments, adjoint: bool) -> Any:
    """Return SciPy's result, with derivatives if anything may be traced."""
    if _is_plain(arguments):
        return solving.plain_solution(arguments)
    if not adjoint:
        return solving.result_of(solving.traced_solution(arguments))
    if arguments.events is not None or arguments.dense_output:
        raise InputError(
            f"integrate.solve_ivp: adjoint=True goes without events and dense_output, got events={arguments.events}, "
            f"dense_output={arguments.dense_output}. Leave it out: then derivatives go through the steps."
        )
    solution = solving.traced_solution(arguments._replace(dense_output=True))
    made = solution.result(solving.adjoint_states(solution))
    made.sol = None
    return made


def _portable(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: Any,
    t_eval: Any,
    dense_output: bool,
    events: Any,
    args: tuple[Any, ...] | None,
    steps: int | None,
    options: dict[str, Any],
) -> Any:
    """Solve by steps that also run on JAX arrays."""
    call = "integrate.solve_ivp"
    rest = options.keys() - {"rtol", "atol", "max_step"}
    if method not in TABLES or dense_output or events is not None or rest:
        raise InputError(
            f"{call}: equal steps, and JAX's arrays, go with {', '.join(TABLES)} without events and dense output, got "
            f"method={method!r}, dense_output={dense_output}, events={events}, {sorted(rest)}. Leave them out."
        )
    tolerances = options.get("rtol", 1e-3), options.get("atol", 1e-6)
    control = Control(call, *tolerances, steps, 100_000, options.get("max_step", math.inf), method)
    y = start_of(y0)
    run = Run(lambda y, t: fun(t, y, *(args or ())), control, (), y)
    start, stop = [as_inexact(t) for t in t_span]
    if t_eval is None:
        path = [(start, y), *run.across(y, start, stop)]
    else:
        path, before = [], start
        wanted = as_inexact(t_eval)
        for i in range(backend.shape_of(wanted)[0]):
            y = run.across(y, before, wanted[i])[-1][1]
            before = wanted[i]
            path.append((before, y))
    times, values = [fnp.stack(column) for column in zip(*path, strict=True)]
    empty = import_scipy(call, "scipy.optimize").OptimizeResult()
    message = "The solver successfully reached the end of the integration interval."
    found = {"t": times, "y": fnp.moveaxis(values, 0, -1), "sol": None, "t_events": None, "y_events": None}
    counts = {"nfev": run.evaluations, "njev": 0, "nlu": 0, "status": 0, "message": message, "success": True}
    empty.update(found, **counts)
    return empty
