"""``solve_ivp``: SciPy's solvers take the steps, and these steps are differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.graph import is_on_graph
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.adjoint import Adjoint
from funcgrad.scipy.integrate.ivp.answers import Solution, run_as_operation
from funcgrad.scipy.integrate.ivp.derivatives import Derivatives
from funcgrad.scipy.integrate.ivp.flows import Flow, Packing, Parameters
from funcgrad.scipy.integrate.ivp.pieces import Pieces, Snapshots
from funcgrad.scipy.integrate.ivp.products import Pattern
from funcgrad.scipy.integrate.ivp.runs import Event, Runs, SolveArguments
from funcgrad.scipy.integrate.ivp.solutions import with_derivatives_of
from funcgrad.scipy.optimize.implicit import as_one_operation
from funcgrad.transforms.stopping import stop_gradient

_CALL = "integrate.solve_ivp"
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


def method_class(method: Any) -> Any:
    """Return the solver's class.

    Raises:
        ValueError: the method does not exist.
    """
    integrate = import_scipy(_CALL, "scipy.integrate")
    if isinstance(method, str) and method in METHODS:
        return getattr(integrate, method)
    if isinstance(method, type) and issubclass(method, integrate.OdeSolver):
        return method
    raise ValueError(f"`method` must be one of {list(METHODS)} or OdeSolver class.")


def plain_solution(arguments: SolveArguments) -> Any:
    """Return SciPy's result for plain values."""
    solve = import_scipy(_CALL, "scipy.integrate").solve_ivp
    given = (arguments.t_span, arguments.y0, arguments.method, arguments.t_eval, arguments.dense_output)
    is_tree = type(arguments.y0) is not np.ndarray and Packing.needed(arguments.y0)
    if not is_tree and not isinstance(arguments.options.get("jac"), str):
        return solve(arguments.fun, *given, arguments.events, arguments.vectorized, arguments.args, **arguments.options)
    return result_of(traced_solution(arguments))


class _Setting:
    """The arguments of a call, with the values that its functions depend on."""

    def __init__(self, arguments: SolveArguments) -> None:
        self.arguments = arguments
        self.packing = Packing(_CALL, arguments.y0)
        self.t0, self.tf = (fnp.astype(as_value(t), float) for t in arguments.t_span)
        self.parameters = Parameters(
            _CALL, arguments.args or (), stop_gradient(self.t0), self.packing.unpacked(self.packing.vector)
        )
        fun = self.parameters.hoist(arguments.fun)
        jac = arguments.options.get("jac")
        if callable(jac):
            self.arguments = arguments._replace(options={**arguments.options, "jac": self.parameters.hoist(jac)})
        self.events = [Event(event, self.parameters.hoist(event), self.packing) for event in arguments.events or ()]
        self.flow = Flow(self.packing, fun, arguments.vectorized)
        self.t_eval = np.zeros(0) if arguments.t_eval is None else fnp.astype(as_value(arguments.t_eval), float)
        pattern = arguments.options.get("jac_sparsity")
        self.sparse = None if pattern is None or self.packing.is_complex else Pattern(pattern, self.packing.size)

    def runs(self) -> Runs:
        """Return an object for SciPy's runs, with no run so far."""
        return Runs(self.arguments, self.packing, self.flow, self.events, self.parameters)

    def derivatives(self, runs: Runs) -> Derivatives:
        """Return the operations of the method."""
        return Derivatives(self.flow, self.sparse, runs.scheme.implicit)

    @property
    def leaves(self) -> tuple[Any, ...]:
        """Values that determine the solution, besides those that the functions depend on."""
        return (self.packing.vector, self.t0, self.tf, self.t_eval)


def traced_solution(arguments: SolveArguments) -> Solution:
    """Return the solution that SciPy finds, with derivatives."""
    setting = _Setting(arguments)
    return setting.parameters.solved(lambda values: _solve(setting, *setting.leaves, *values))


def _solve(setting: _Setting, start: Any, t0: Any, tf: Any, t_eval: Any, *values: Any) -> Solution:
    runs = setting.runs()
    found = as_one_operation(_CALL, runs.run, stop_gradient([start, t0, tf, t_eval, *values]))
    runs.complete = True
    if not runs.records:
        raise InputError(f"{_CALL}: there is nothing to solve, got a batch without an example.")
    solution = Solution(runs, setting.derivatives(runs), found[0], start, t0, tf, t_eval, values)
    solution.restart = partial(_solve, setting)
    return solution


def run_in_pieces(arguments: SolveArguments, snapshots: Snapshots) -> Pieces:
    """Return SciPy's run, whose steps are repeated in the backward pass."""
    setting = _Setting(arguments)

    def solve(values: Sequence[Any]) -> Pieces:
        runs = setting.runs()
        return Pieces(runs, setting.derivatives(runs), snapshots, setting.leaves, values)

    return setting.parameters.solved(solve)


def solution_in_pieces(arguments: SolveArguments, snapshots: Snapshots) -> Any:
    """Return SciPy's result, with derivatives from a run in pieces."""
    pieces = run_in_pieces(arguments, snapshots)
    made, y = pieces.result, pieces.states()
    made.t = with_derivatives_of(made.t, pieces.t_eval[: len(made.t)])
    made.y = pieces.runs.packing.unpacked(y)
    return made


def result_of(solution: Solution) -> Any:
    """Return SciPy's result with derivatives; while a function is recorded, the result is one operation."""
    arguments = solution.arguments
    if not is_on_graph(solution.number) or arguments.events is not None or arguments.dense_output:
        return solution.result()
    t, y = recorded_columns(solution)
    return solution.result(y, t)


def recorded_columns(solution: Solution) -> tuple[Any, Any]:
    """Return times and states of an answer, as one operation that can be repeated with other values."""
    leaves = (solution.start, solution.t0, solution.tf, solution.t_eval, *solution.values)
    return run_as_operation(solution.restart, leaves, len(solution.runs.records[0].result.t))


def adjoint_states(solution: Solution) -> Any:
    """Return the states of an answer with dense output, with the adjoint equation for reverse mode."""
    run = Adjoint(solution.runs, solution.derivatives)
    return run(solution.number, solution.start, solution.t0, solution.tf, solution.t_eval, solution.values)
