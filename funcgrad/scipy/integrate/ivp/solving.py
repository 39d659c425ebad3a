"""``solve_ivp``: SciPy's solvers take the steps, and these steps are differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.adjoint import Adjoint
from funcgrad.scipy.integrate.ivp.answers import Answer, is_recorded, run_anew
from funcgrad.scipy.integrate.ivp.derivatives import Derivatives
from funcgrad.scipy.integrate.ivp.flows import Flow, Packing, Parameters
from funcgrad.scipy.integrate.ivp.pieces import Pieces, Snapshots
from funcgrad.scipy.integrate.ivp.products import Pattern
from funcgrad.scipy.integrate.ivp.runs import Event, Question, Runs
from funcgrad.scipy.integrate.ivp.solutions import valued
from funcgrad.scipy.optimize.implicit import as_one_operation
from funcgrad.transforms.stopping import stop_gradient

__all__ = [
    "METHODS", "adjoint_states", "method_class", "plain_solution", "recorded_columns", "result_of", "run_in_pieces",
    "solution_in_pieces", "traced_solution",
]  # fmt: skip

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


def plain_solution(asked: Question) -> Any:
    """Return SciPy's result for plain values."""
    solve = import_scipy(_CALL, "scipy.integrate").solve_ivp
    given = (asked.t_span, asked.y0, asked.method, asked.t_eval, asked.dense_output)
    is_tree = type(asked.y0) is not np.ndarray and Packing.needed(asked.y0)
    if not is_tree and not isinstance(asked.options.get("jac"), str):
        return solve(asked.fun, *given, asked.events, asked.vectorized, asked.args, **asked.options)
    return result_of(traced_solution(asked))


class _Setting:
    """The arguments of a call, with the values that its functions depend on."""

    def __init__(self, asked: Question) -> None:
        self.asked = asked
        self.packing = Packing(_CALL, asked.y0)
        self.t0, self.tf = (fnp.astype(as_value(t), float) for t in asked.t_span)
        self.parameters = Parameters(
            _CALL, asked.args or (), stop_gradient(self.t0), self.packing.unpacked(self.packing.vector)
        )
        fun = self.parameters.opened(asked.fun)
        self.events = [Event(event, self.parameters.opened(event), self.packing) for event in asked.events or ()]
        self.flow = Flow(self.packing, fun, asked.vectorized)
        self.t_eval = np.zeros(0) if asked.t_eval is None else fnp.astype(as_value(asked.t_eval), float)
        pattern = asked.options.get("jac_sparsity")
        self.sparse = None if pattern is None or self.packing.is_complex else Pattern(pattern, self.packing.size)

    def runs(self) -> Runs:
        """Return an object for SciPy's runs, with no run so far."""
        return Runs(self.asked, self.packing, self.flow, self.events, self.parameters)

    def derivatives(self, runs: Runs) -> Derivatives:
        """Return the operations of the method."""
        return Derivatives(self.flow, self.sparse, runs.scheme.implicit)

    @property
    def leaves(self) -> tuple[Any, ...]:
        """Values that determine the solution, besides those that the functions depend on."""
        return (self.packing.vector, self.t0, self.tf, self.t_eval)


def traced_solution(asked: Question) -> Answer:
    """Return the solution that SciPy finds, with derivatives."""
    setting = _Setting(asked)
    return setting.parameters.solved(lambda values: _answer(setting, *setting.leaves, *values))


def _answer(setting: _Setting, start: Any, t0: Any, tf: Any, t_eval: Any, *values: Any) -> Answer:
    runs = setting.runs()
    found = as_one_operation(_CALL, runs.run, stop_gradient([start, t0, tf, t_eval, *values]))
    runs.complete = True
    if not runs.records:
        raise InputError(f"{_CALL}: there is nothing to solve, got a batch without an example.")
    made = Answer(runs, setting.derivatives(runs), found[0], start, t0, tf, t_eval, values)
    made.anew = partial(_answer, setting)
    return made


def run_in_pieces(asked: Question, snapshots: Snapshots) -> Pieces:
    """Return SciPy's run, whose steps are repeated in the backward pass."""
    setting = _Setting(asked)

    def solve(values: Sequence[Any]) -> Pieces:
        runs = setting.runs()
        return Pieces(runs, setting.derivatives(runs), snapshots, setting.leaves, values)

    return setting.parameters.solved(solve)


def solution_in_pieces(asked: Question, snapshots: Snapshots) -> Any:
    """Return SciPy's result, with derivatives from a run in pieces."""
    pieces = run_in_pieces(asked, snapshots)
    made, y = pieces.result, pieces.states()
    made.t = valued(made.t, pieces.t_eval[: len(made.t)])
    made.y = pieces.runs.packing.unpacked(y)
    return made


def result_of(answer: Answer) -> Any:
    """Return SciPy's result with derivatives; while a function is recorded, the result is one operation."""
    asked = answer.asked
    if not is_recorded(answer.number) or asked.events is not None or asked.dense_output:
        return answer.result()
    t, y = recorded_columns(answer)
    return answer.result(y, t)


def recorded_columns(answer: Answer) -> tuple[Any, Any]:
    """Return times and states of an answer, as one operation that can be repeated with other values."""
    leaves = (answer.start, answer.t0, answer.tf, answer.t_eval, *answer.values)
    return run_anew(answer.anew, leaves, len(answer.runs.records[0].result.t))


def adjoint_states(answer: Answer) -> Any:
    """Return the states of an answer with dense output, with the adjoint equation for reverse mode."""
    run = Adjoint(answer.runs, answer.derivatives)
    return run(answer.number, answer.start, answer.t0, answer.tf, answer.t_eval, answer.values)
