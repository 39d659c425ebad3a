"""The result of a run, assembled from its steps so that the result has derivatives.

A search under ``vmap``, or an integrand that closes over traced values, is recorded once and evaluated elsewhere. Steps
depend on values, so such a recording holds a whole run as one operation that starts over: SciPy steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, ShapeError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.scipy.integrate.ivp.derivatives import Derivatives
from funcgrad.scipy.integrate.ivp.records import padded
from funcgrad.scipy.integrate.ivp.runs import Runs, event_times
from funcgrad.scipy.integrate.ivp.solutions import Path, advanced, solution_class, steps_containing, with_derivatives_of
from funcgrad.scipy.optimize.implicit import as_one_operation
from funcgrad.scipy.settings import constant_array
from funcgrad.transforms.closures import example_by_example
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.stopping import stop_gradient

_CALL = "integrate.solve_ivp"


class Solution:
    """The result of a run, assembled from its steps.

    Args:
        runs: SciPy's runs.
        derivatives: the operations of the method.
        number: the index of the run; for a batch, one index for each example.
        start: the first state as a vector.
        t0: the first time.
        tf: the last time.
        t_eval: the requested times; empty if there are none.
        values: the values that the functions depend on.

    Attributes:
        restart: makes an answer from another start, other times and values.
    """

    restart: Callable[..., Solution]

    def __init__(
        self,
        runs: Runs,
        derivatives: Derivatives,
        number: Any,
        start: Any,
        t0: Any,
        tf: Any,
        t_eval: Any,
        values: Sequence[Any],
    ) -> None:
        self.arguments, self.runs, self.packing, self.flow = runs.arguments, runs, runs.packing, runs.flow
        self.number, self.start, self.t0, self.tf = number, start, t0, tf
        self.t_eval, self.values, self.derivatives = t_eval, list(values), derivatives
        # a traced number is looked up even if there is one run: it may be evaluated later for other runs
        self.is_single_run = not isinstance(number, Tracer)
        recorded: list[Any] = [self.recorded_array(name) for name in ("S", "X", "T", "U", "V", "P", "Q")]
        S, X = derivatives(self._first_rows(), recorded[0], recorded[1], recorded[2:], self.values)
        TS, TX, origin, scale = (self.recorded_array(name) for name in ("TS", "TX", "origin", "scale"))
        self.path = Path(S, X, TS, TX, origin, scale, runs.scheme.ahead)

    def recorded_array(self, name: str) -> Any:
        """Return the array ``name`` of the record; for a batch, that of each example."""
        whole = padded(self.runs.records, name)
        if self.is_single_run:
            return whole
        return self.for_each_example(whole if len(self.runs.records) > 1 else whole[None])

    def for_each_example(self, whole: Any) -> Any:
        """Return the entry of each example."""
        return fnp.take(np.asarray(whole), self.number, axis=0)

    def _first_rows(self) -> Any:
        """Return the rows of the first state at the constant first time, with the derivative in ``t0``."""
        start = self.packing.real(self.start)
        fixed = stop_gradient(self.t0)
        if self.t0 is not fixed:
            start = advanced(self.flow, self.t0, start, fixed - self.t0, self.values)
        rows = max(record.S.shape[1] for record in self.runs.records)
        if rows == 1:
            return start[None]
        first = (
            self.recorded_array("first")
            if self.is_single_run
            else self.for_each_example([record.first for record in self.runs.records])
        )
        slope = self.flow(fixed, start, *self.values)
        return fnp.concatenate([start[None], (first * slope)[None], np.zeros((rows - 2, self.flow.size))])

    def result(self, states: Any = None, times: Any = None) -> Any:
        """Return SciPy's result, with other ``states`` and ``times`` if they are given."""
        records = [record.result for record in self.runs.records]
        made = type(records[0])()
        for name in ("nfev", "njev", "nlu", "status", "success"):
            found = [result[name] for result in records]
            made[name] = found[0] if len(found) == 1 else self.for_each_example(found)
        messages = [result.message for result in records]
        made.message = messages[0] if len(set(messages)) == 1 else messages
        made.t_events, made.y_events = self._events() if self.arguments.events is not None else (None, None)
        made.t = self.times() if times is None else times
        made.y = self.states() if states is None else states
        made.sol = self._sol() if self.arguments.dense_output else None
        made.y = self.packing.unpacked(made.y)
        if made.y_events is not None:
            made.y_events = [self._rows(y) for y in made.y_events]
        return made

    def _rows(self, y: Any) -> Any:
        """Return states at events in the caller's form, one per row."""
        if not self.packing.is_tree:
            return y
        return tree.map(lambda leaf: fnp.moveaxis(leaf, -1, 0), self.packing.unpacked(fnp.moveaxis(y, 0, -1)))

    def at(self, t: Any, steps: Any) -> Any:
        """Return the states at ``t`` in rows, in the caller's dtype."""
        return self.packing.from_real(self.real_at(t, steps))

    def real_at(self, t: Any, steps: Any) -> Any:
        """Return the real states at ``t`` in rows.

        The derivative in time is that of the interpolant for explicit methods, and else the more exact right-hand side.
        """
        fixed = stop_gradient(t)
        if t is fixed or not self.runs.scheme.implicit:
            return self.path.at(t, steps)
        return advanced(self.flow.slopes, fixed, self.path.at(fixed, steps), t - fixed, self.values)

    def steps_of(self, times: Any, side: Literal["left", "right"]) -> Any:
        """Return the indices of the steps that contain the constant ``times``."""

        def one(t: Any, number: Any) -> list[Any]:
            return [steps_containing(self.runs.records[int(number)].times, constant_array(_CALL, t), side)]

        return as_one_operation(_CALL, one, [times, self.number])[0]

    def times(self) -> Any:
        """Return ``t`` of the result."""
        t = plain_states(self.runs, self.number)[0]
        count = backend.shape_of(t)[0]
        if self.arguments.t_eval is not None:
            return with_derivatives_of(t, self.t_eval[:count]) if count else t
        ended = self._status()
        if self._has_constant_ends and ended != 1:
            return fnp.copy(t)  # the caller may write to the result
        end = self.terminal[0] if ended == 1 else self.tf if ended == 0 else t[-1]
        parts = [fnp.reshape(self.t0, (1,)), t[1:-1], fnp.reshape(end, (1,))]
        return with_derivatives_of(t, fnp.concatenate(parts[:count] if count > 1 else parts[:1]))

    def states(self) -> Any:
        """Return ``y`` of the result, one column for each time."""
        y = plain_states(self.runs, self.number)[1]
        count = backend.shape_of(y)[-1] if len(backend.shape_of(y)) > 1 else 0
        if self.arguments.t_eval is not None:
            if not count:
                return y
            wanted = self.t_eval[:count]
            found = self.at(wanted, self.steps_of(stop_gradient(wanted), "left"))
            return with_derivatives_of(y, fnp.moveaxis(found, 0, -1))
        if self._has_constant_ends and self._status() == 0:
            return fnp.moveaxis(self.packing.from_real(self.path.S[:count, 0]), 0, -1)
        rows = [self.start[None], self.packing.from_real(self.path.S[1 : count - 1, 0])]
        if count > 1:
            rows.append(self._last_state(count - 1)[None])
        return with_derivatives_of(y, fnp.moveaxis(fnp.concatenate(rows), 0, -1))

    @property
    def _has_constant_ends(self) -> bool:
        """Whether both ends are constants."""
        return all(t is stop_gradient(t) for t in (self.t0, self.tf))

    def _status(self) -> int:
        """Return the status with which all runs ended."""
        ended = [int(record.result.status) for record in self.runs.records]
        if len(set(ended)) > 1:
            raise ShapeError(f"{_CALL}: under vmap all examples must end alike, got status {ended}. Pass t_eval.")
        return ended[0]

    def _last_state(self, step: int) -> Any:
        """Return the last state: at the event that ended the run, or at the last time."""
        ended, real = self._status(), self.path.S[step, 0]
        if ended == 1:
            return self.terminal[1]
        fixed = stop_gradient(self.tf)
        if ended == 0 and self.tf is not fixed:
            real = advanced(self.flow, fixed, real, self.tf - fixed, self.values)
        return self.packing.from_real(real)

    def _events(self) -> tuple[list[Any], list[Any]]:
        """Return the times of events, and the states there."""
        results = [record.result for record in self.runs.records]
        times: list[Any] = []
        states: list[Any] = []
        for i, event in enumerate(self.runs.events):
            t = select_run(self.number, "times of events", [result.t_events[i] for result in results])
            y = select_run(self.number, "times of events", [np.asarray(result.y_events[i]) for result in results])
            if backend.shape_of(t)[0]:
                steps = self.steps_of(t, "left")
                t = event_times(event, t, partial(self.real_at, steps=steps), self.values)
                y = with_derivatives_of(y, self.at(t, steps))
            times.append(t)
            states.append(y)
        self._keep_terminal(results, times, states)
        return times, states

    def _keep_terminal(self, results: list[Any], times: list[Any], states: list[Any]) -> None:
        """Store the time and the state of the event that ended the run."""
        if all(result.status == 1 for result in results):  # events occur as often in every run, so one ended all
            i = self._ending_event(results[0])
            self.terminal = (times[i][-1], states[i][-1])

    def _ending_event(self, result: Any) -> int:
        """Return the index of the event that occurred as often as it may."""
        numbers = [getattr(event, "terminal", None) or np.inf for event in self.arguments.events or ()]
        return next(i for i, (t, most) in enumerate(zip(result.t_events, numbers, strict=True)) if len(t) >= most)

    def _sol(self) -> Any:
        """Return the solution between steps."""
        plain = self.runs.records[0].result.sol
        side: Literal["left", "right"] = "left" if (plain.side == "left") == plain.ascending else "right"

        def at(times: Any) -> Any:
            fixed = stop_gradient(times)

            def one(t: Any, number: Any) -> list[Any]:
                return [self.runs.records[int(number)].result.sol(constant_array(_CALL, t))]

            value = as_one_operation(_CALL, one, [fixed, self.number])[0]
            found = fnp.moveaxis(self.at(times, self.steps_of(fixed, side)), 0, -1)
            return self.packing.unpacked(with_derivatives_of(value, found))

        return solution_class()(plain, at)


def select_run(number: Any, what: str, arrays: list[Any]) -> Any:
    """Select the array of the run ``number`` from one array for each run; under ``vmap`` their shapes must agree."""
    if not isinstance(number, Tracer):
        return arrays[0]
    if len({array.shape for array in arrays}) > 1:
        raise ShapeError(
            f"{_CALL}: under vmap the number of {what} must be the same in every example, got "
            f"{sorted({array.shape[-1] if array.ndim else 0 for array in arrays})}. Pass t_eval, or solve one example "
            "after the other."
        )
    return fnp.take(np.stack(arrays), number, axis=0)


def plain_states(runs: Runs, number: Any) -> tuple[Any, Any]:
    """Return SciPy's ``t`` and ``y``."""
    results = [record.result for record in runs.records]
    t = select_run(number, "times", [np.asarray(result.t) for result in results])
    return t, select_run(number, "times", [np.asarray(result.y) for result in results])


def run_as_operation(restart: Callable[..., Solution], leaves: Sequence[Any], count: int) -> tuple[Any, Any]:
    """Compute times and states, ``t`` and ``y``, as one operation on the values that determine them.

    Args:
        restart: makes the answer from these values.
        leaves: the first state, both ends, the requested times, and the values that the functions depend on.
        count: the number of times when the function was recorded.

    Raises:
        ConcretizationError: other values lead to another number of times (a ``TypeError``).
    """

    def outputs(*some: Any) -> tuple[Any, Any]:
        found = restart(*some)
        t, y = found.times(), found.states()
        if backend.shape_of(t)[0] != count:
            raise ConcretizationError(
                f"{_CALL}: a function that was recorded with {count} times was run again with other values, for which "
                f"there are {backend.shape_of(t)[0]}. Pass t_eval, or what it closes over in the args of what calls it."
            )
        return t, y

    def fwd(*some: Any) -> tuple[list[Any], Any]:
        return list(custom_call(*some, rules=rules)), some

    def bwd(some: Any, cts: list[Any]) -> list[Any]:
        return list(vjp(outputs, *some)[1](tuple(cts)))

    def jvp_rule(some: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        return list(custom_call(*some, rules=rules)), list(jvp(outputs, tuple(some), tuple(tangents))[1])

    def run(*some: Any) -> list[Any]:
        return example_by_example(lambda *plain: list(outputs(*plain)), some)

    rules = CustomRules(_CALL, run, fwd, bwd, jvp_rule)
    t, y = custom_call(*leaves, rules=rules)
    return t, y
