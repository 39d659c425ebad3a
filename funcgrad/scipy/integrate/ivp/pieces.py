"""Runs longer than memory: SciPy steps once for the result, and again in the backward pass, piece by piece.

The run is cut into pieces of some steps, and a chain with snapshots goes through them. Between pieces the chain keeps
the state and all that SciPy's solver remembers, in memory or in files, so that a repeated piece takes the same steps
bit for bit. Slopes are kept for the steps of one piece at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from threading import RLock
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, shallow_copy
from funcgrad.errors import InputError
from funcgrad.graph import is_on_graph
from funcgrad.numpy.plain_values.concretization import strip_constant_tracers
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.derivatives import Derivatives
from funcgrad.scipy.integrate.ivp.records import Record
from funcgrad.scipy.integrate.ivp.runs import Runs, clear_solvers, with_notes
from funcgrad.scipy.integrate.ivp.solutions import Path, advanced, steps_containing, with_derivatives_of
from funcgrad.scipy.settings import constant_array
from funcgrad.transforms.checkpointing import checkpoint, checkpoint_chain
from funcgrad.transforms.snapshots import Store
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.writable import outside_transforms

#: Names of the methods whose solvers can begin in the middle.
RESTARTABLE = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
#: Approximate largest number of entries in the slopes of one piece.
_MAX_ENTRIES = 1 << 19
#: Names of a solver's attributes that do not change, or are written before they are read.
_UNCHANGED_ATTRIBUTES = frozenset(
    ("K", "K_extended", "I", "Z", "y", "y_old", "atol", "rtol", "gamma", "alpha", "error_const", "nfev", "njev", "nlu")
) | {"_lsoda_solver"}
#: Arrays in which the integrator behind SciPy's LSODA keeps its memory; complete from SciPy 1.17 on.
_LSODA_MEMORY = ("rwork", "iwork", "state_doubles", "state_ints")


class Snapshots(NamedTuple):
    """Settings that tell which states a long run keeps.

    Attributes:
        budget: the number of states at a time; None for enough that no step is repeated more than twice.
        store: a folder for the states, None for memory.
        call: the public call, for messages.
    """

    budget: int | None
    store: Any
    call: str = "integrate.solve_ivp"


class _OtherAttributes:
    """The attributes of a solver that are not arrays."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values


class Pieces:
    """One run with its requested times, whose states are kept as ``snapshots`` tells.

    Args:
        runs: SciPy's runs.
        derivatives: the operations of the method.
        snapshots: which states to keep.
        leaves: the first state as a vector, the first time, the last time, and the requested times.
        values: the values that the right-hand side depends on.
    """

    def __init__(
        self, runs: Runs, derivatives: Derivatives, snapshots: Snapshots, leaves: tuple[Any, ...], values: Sequence[Any]
    ) -> None:
        self.runs, self.derivatives, self.snapshots = runs, derivatives, snapshots
        self.start, self.t0, _, self.t_eval = leaves
        self.values, self.call = list(values), snapshots.call
        self._lock = RLock()
        if snapshots.store is not None:
            Store(self.call, snapshots.store)  # raises if it is not a folder
        given = [stop_gradient(x) for x in (*leaves, *values)]
        if any(is_on_graph(x) or isinstance(strip_constant_tracers(shallow_copy(x)), Tracer) for x in given):
            raise InputError(
                f"{self.call}: store and budget are for one run, got a batch or a function that is being recorded. "
                "Leave them out, or solve one example after the other."
            )
        self.plain = [constant_array(self.call, x) for x in given]
        with outside_transforms():
            self._first_run()

    def _first_run(self) -> None:
        """Run SciPy once; set its result, the times of its steps, and a solver at the beginning."""
        arguments = self.runs.arguments
        y0, t0, tf, t_eval, *given = self.plain
        values = tuple([value[()] for value in given])
        ends, solvers = array("d"), list[Any]()
        slope, options = self.runs.slope(values), self.runs.options(values)
        self.result = import_scipy(self.call, "scipy.integrate").solve_ivp(
            slope,
            (float(t0), float(tf)),
            y0,
            method=with_notes(arguments, lambda solver: None, lambda solver, _: ends.append(solver.t), solvers),
            t_eval=t_eval,
            vectorized=arguments.vectorized,
            **options,
        )
        clear_solvers(arguments.method, solvers)
        self.times = np.append(float(t0), ends)
        options = self.runs.options(values)
        self.solver = arguments.method(slope, float(t0), y0, float(tf), vectorized=arguments.vectorized, **options)
        self.factor = getattr(self.solver, "h_abs", 0.0) * self.solver.direction
        inner = _integrator(self.solver)
        if inner is not None and not all(hasattr(inner, name) for name in _LSODA_MEMORY):
            raise InputError(
                f"{self.call}: store and budget go with LSODA from SciPy 1.17 on, which can begin it in the middle, "
                "got an older one. Leave them out, or take another method."
            )

    def states(self) -> Any:
        """Return the states at the requested times, one per column."""
        y = self.result.y
        count = np.shape(y)[-1] if np.ndim(y) > 1 else 0
        if not count or len(self.times) == 1:
            raise InputError(
                f"{self.call}: store and budget need steps and times in t_eval, got {len(self.times) - 1} and {count}. "
                "Leave them out."
            )
        wanted = steps_containing(self.times, self.plain[3][:count], "left") // self._steps_per_piece
        seen = np.unique(wanted).tolist()
        if len(seen) > 1 and seen[0] > seen[-1]:
            seen.reverse()
        chains = [range(a + 1, b) for a, b in zip([-1, *seen[:-1]], seen, strict=True)]
        carry: Any = (self._first_rows(), self._solver_state())
        rows = []
        for chain, i in zip(chains, seen, strict=True):
            if chain:
                carry = checkpoint_chain(
                    self._state_after_piece,
                    carry,
                    chain,
                    args=(self.values,),
                    **self._chain_settings(sum(map(bool, chains))),
                )
            indices = np.flatnonzero(wanted == i)
            carry, found = checkpoint(partial(self._states_within, i))(carry, self.t_eval[indices], self.values)
            rows.append(found)
        found = self.runs.packing.from_real(fnp.concatenate(rows))
        return with_derivatives_of(y, fnp.moveaxis(found, 0, -1))

    def _chain_settings(self, chains: int) -> dict[str, Any]:
        """Return the settings of each of several chains, which share the budget."""
        budget, store, _ = self.snapshots
        return {"budget": None if budget is None else max(1, budget // chains), "store": store}

    @property
    def _steps_per_piece(self) -> int:
        """Number of steps of a piece."""
        slopes = len(getattr(self.solver, "K", ())) or 8
        return max(1, _MAX_ENTRIES // (slopes * max(1, int(self.derivatives.flow.size))))

    def _first_rows(self) -> Any:
        """Return the rows of the first state at the constant first time, with the derivative in ``t0``."""
        rows = 8 if self.runs.arguments.method.__name__ == "BDF" else 1
        start, fixed = self.runs.packing.real(self.start), stop_gradient(self.t0)
        if self.t0 is not fixed:
            start = advanced(self.derivatives.flow, self.t0, start, fixed - self.t0, self.values)
        if rows == 1:
            return start[None]
        slope = self.derivatives.flow(fixed, start, *self.values)
        return fnp.concatenate([start[None], (self.factor * slope)[None], np.zeros((rows - 2, len(slope)))])

    def _state_after_piece(self, carry: Any, i: int, values: Sequence[Any]) -> Any:
        """Return the state and the solver's attributes after piece ``i``."""
        record, after = self._take_steps(carry, i, False)
        S, _ = self._differentiable(carry, record, values)
        return fnp.copy(S[-1]), after  # a view would keep all states of the piece alive

    def _states_within(self, i: int, carry: Any, t: Any, values: Sequence[Any]) -> Any:
        """Return the state and the solver's attributes after piece ``i``, and states at times within it, in rows."""
        fixed = stop_gradient(t)
        times = self.times[i * self._steps_per_piece : (i + 1) * self._steps_per_piece + 1]
        steps = steps_containing(times, constant_array(self.call, fixed), "left")
        between = t is not fixed or not np.array_equal(times[steps + 1], constant_array(self.call, fixed))
        record, after = self._take_steps(carry, i, between)
        S, X = self._differentiable(carry, record, values)
        if not between:
            return (fnp.copy(S[-1]), after), fnp.take(S, steps + 1, axis=0)[:, 0]
        ahead = self.runs.scheme.ahead
        path = Path(S, X, record.TS, record.TX, record.origin, record.scale, ahead)
        if t is fixed or not self.runs.scheme.implicit:
            return (fnp.copy(S[-1]), after), path.at(t, steps)
        found = advanced(self.derivatives.flow.slopes, fixed, path.at(fixed, steps), t - fixed, values)
        return (fnp.copy(S[-1]), after), found

    def _differentiable(self, carry: Any, record: Record, values: Sequence[Any]) -> tuple[Any, Any]:
        mesh = [record.T, record.U, record.V, record.P, record.Q]
        return self.derivatives(carry[0], record.S, record.X, mesh, values)

    def _take_steps(self, carry: Any, i: int, dense: bool) -> tuple[Record, Any]:
        """Take the steps of piece ``i`` in plain numbers; return them and the solver's attributes after them."""
        rows, solver_state = carry
        with self._lock, outside_transforms():
            return self._take_plain_steps(constant_array(self.call, stop_gradient(rows)), solver_state, i, dense)

    def _take_plain_steps(self, rows: Any, solver_state: Any, i: int, dense: bool) -> tuple[Record, Any]:
        runs, solver = self.runs, self.solver
        packing, scheme = runs.packing, runs.scheme
        self._restore_solver_state(*solver_state)
        solver.y = packing.from_real(rows[0])
        if _integrator(solver) is not None:
            solver._lsoda_solver._y = solver.y.copy()
        values = tuple([value[()] for value in self.plain[4:]])
        count = min(self._steps_per_piece, len(self.times) - 1 - i * self._steps_per_piece)
        notes: list[Any] = []
        while len(notes) < count:
            before = scheme.watch(solver)
            solver.step()
            if solver.t != solver.t_old:
                notes.append(scheme.note(solver, before))
        slopes = lambda t, y: runs.flow.slopes(t, y, *values)
        start = {"start": rows} if len(rows) > 1 else {}
        made = scheme.arrays_of_part(notes, packing, dense, slopes, **start)
        times = np.array([notes[0][0], *[note[1] for note in notes]])
        return Record(**{"first": 0.0, **made}, times=times, result=None), self._solver_state()

    def _solver_state(self) -> tuple[dict[str, Any], _OtherAttributes]:
        """Return the solver's changing attributes: arrays, and the rest."""
        moving = {
            name: x
            for name, x in vars(self.solver).items()
            if name not in _UNCHANGED_ATTRIBUTES and type(x) is not FunctionType
        }
        inner = _integrator(self.solver)
        if inner is not None:
            moving.update({name: getattr(inner, name) for name in _LSODA_MEMORY}, istate=inner.call_args[3])
        arrays = {name: x for name, x in moving.items() if type(x) is np.ndarray}
        rest = {name: x for name, x in moving.items() if name not in arrays}
        return {name: x.copy() for name, x in arrays.items()}, _OtherAttributes(rest)

    def _restore_solver_state(self, arrays: dict[str, Any], rest: _OtherAttributes) -> None:
        """Set the solver's attributes to these values."""
        solver, inner = self.solver, _integrator(self.solver)
        moving = {**rest.values, **arrays}
        if inner is not None:
            for name in _LSODA_MEMORY:
                getattr(inner, name)[...] = moving.pop(name)
            inner.call_args[3] = moving.pop("istate")
            solver._lsoda_solver.t = moving["t"]
        vars(solver).update({name: np.array(x) if name in arrays else x for name, x in moving.items()})


def _integrator(solver: Any) -> Any:
    """Return the integrator behind SciPy's LSODA; None for another solver."""
    inner = getattr(solver, "_lsoda_solver", None)
    return None if inner is None else inner._integrator
