"""``solve_ivp``: SciPy's solvers step, and what they did is differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.adjoint import Adjoint
from funcgrad.scipy.integrate.ivp.answers import Answer
from funcgrad.scipy.integrate.ivp.derivatives import Derivatives
from funcgrad.scipy.integrate.ivp.events import Event
from funcgrad.scipy.integrate.ivp.flows import Flow, Packing, Parameters
from funcgrad.scipy.integrate.ivp.patterns import Pattern
from funcgrad.scipy.integrate.ivp.recorded import is_recorded, run_anew
from funcgrad.scipy.integrate.ivp.runs import Question, Runs
from funcgrad.scipy.optimize.implicit import as_one_operation
from funcgrad.transforms.stopping import stop_gradient

__all__ = [
    "METHODS",
    "adjoint_states",
    "method_class",
    "plain_solution",
    "recorded_columns",
    "result_of",
    "traced_solution",
]

_CALL = "integrate.solve_ivp"
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


def method_class(method: Any) -> Any:
    """The solver's class.

    Raises:
        ValueError: there is no such method.
    """
    integrate = import_scipy(_CALL, "scipy.integrate")
    if isinstance(method, str) and method in METHODS:
        return getattr(integrate, method)
    if isinstance(method, type) and issubclass(method, integrate.OdeSolver):
        return method
    raise ValueError(f"`method` must be one of {list(METHODS)} or OdeSolver class.")


def plain_solution(asked: Question) -> Any:
    """SciPy's result of plain values."""
    solve = import_scipy(_CALL, "scipy.integrate").solve_ivp
    given = (asked.t_span, asked.y0, asked.method, asked.t_eval, asked.dense_output)
    is_tree = type(asked.y0) is not np.ndarray and Packing.needed(asked.y0)
    if not is_tree and not isinstance(asked.options.get("jac"), str):
        return solve(asked.fun, *given, asked.events, asked.vectorized, asked.args, **asked.options)
    return result_of(traced_solution(asked))


def traced_solution(asked: Question) -> Answer:
    """What SciPy finds, with derivatives."""
    packing = Packing(_CALL, asked.y0)
    t0, tf = (fnp.astype(as_value(t), float) for t in asked.t_span)
    parameters = Parameters(_CALL, asked.args or (), stop_gradient(t0), packing.unpacked(packing.vector))
    fun = parameters.opened(asked.fun)
    events = [Event(event, parameters.opened(event), packing) for event in asked.events or ()]
    flow = Flow(packing, fun, asked.vectorized)
    t_eval = np.zeros(0) if asked.t_eval is None else fnp.astype(as_value(asked.t_eval), float)
    pattern = asked.options.get("jac_sparsity")
    sparse = None if pattern is None or packing.is_complex else Pattern(pattern, packing.size)

    def answer(start: Any, t0: Any, tf: Any, t_eval: Any, *values: Any) -> Answer:
        runs = Runs(asked, packing, flow, events, parameters)
        found = as_one_operation(_CALL, runs.run, stop_gradient([start, t0, tf, t_eval, *values]))
        runs.complete = True
        if not runs.records:
            raise InputError(f"{_CALL}: there is nothing to solve, got a batch without an example.")
        derivatives = Derivatives(flow, sparse, runs.scheme.implicit)
        made = Answer(runs, derivatives, found[0], start, t0, tf, t_eval, values)
        made.anew = answer
        return made

    return answer(packing.vector, t0, tf, t_eval, *parameters.values)


def result_of(answer: Answer) -> Any:
    """SciPy's result, with derivatives; in a function that is recorded it is one operation."""
    asked = answer.asked
    if not is_recorded(answer.number) or asked.events is not None or asked.dense_output:
        return answer.result()
    t, y = recorded_columns(answer)
    return answer.result(y, t)


def recorded_columns(answer: Answer) -> tuple[Any, Any]:
    """Times and states of an answer, as one operation that may be run again with other values."""
    leaves = (answer.start, answer.t0, answer.tf, answer.t_eval, *answer.values)
    return run_anew(answer.anew, leaves, len(answer.runs.records[0].result.t))


def adjoint_states(answer: Answer) -> Any:
    """The states of an answer that has a solution between steps, with the adjoint equation for reverse mode."""
    run = Adjoint(answer.runs, answer.derivatives)
    return run(answer.number, answer.start, answer.t0, answer.tf, answer.t_eval, answer.values)
