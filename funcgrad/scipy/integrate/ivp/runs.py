"""Runs of SciPy's solvers on plain values, with a record of the steps.

The times of events, zeros of functions along a solution, have derivatives by the implicit function theorem.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.flows import Flow, Packing, Parameters
from funcgrad.scipy.integrate.ivp.products import exact_jacobian
from funcgrad.scipy.integrate.ivp.records import SHORT, Record, Scheme, scheme_of
from funcgrad.scipy.integrate.ivp.solutions import with_derivatives_of
from funcgrad.scipy.settings import constant_array
from funcgrad.transforms.implicit import custom_root
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.writable import outside_transforms

_CALL = "integrate.solve_ivp"


class SolveArguments(NamedTuple):
    """The arguments of ``solve_ivp``.

    Attributes:
        fun: the right-hand side of states in the caller's form.
        t_span: the ends.
        y0: the first state.
        method: the solver's class.
        t_eval: the requested times, or None.
        dense_output: whether the solution between steps is requested.
        events: functions whose zeros are requested.
        vectorized: whether ``fun`` takes columns.
        args: further arguments, or None.
        options: the solver's options.
        max_steps: the largest number of steps, None for any number.
    """

    fun: Callable[..., Any]
    t_span: tuple[Any, Any]
    y0: Any
    method: Any
    t_eval: Any
    dense_output: bool
    events: tuple[Callable[..., Any], ...] | None
    vectorized: bool
    args: tuple[Any, ...] | None
    options: dict[str, Any]
    max_steps: int | None = None


def _constant(jac: Any) -> Any:
    """Return a caller's Jacobian as numbers: it only helps to find the steps, and may close over tracers."""
    if hasattr(jac, "tocsr"):
        return jac.plain(_CALL) if hasattr(jac, "plain") else jac
    return constant_array(_CALL, stop_gradient(fnp.asarray(jac)))


class Runs:
    """SciPy's runs: one, or one for each example of a ``vmap``. Operations carry the indices of the runs."""

    def __init__(
        self, arguments: SolveArguments, packing: Packing, flow: Flow, events: list[Event], parameters: Parameters
    ) -> None:
        self.arguments, self.packing, self.flow, self.events = arguments, packing, flow, events
        self.parameters = parameters
        self.scheme: Scheme = scheme_of(arguments.method)
        self.records: list[Record] = []
        self.complete = False  # whether new records are refused
        self._known: dict[Any, int] = {}

    def run(self, y0: Any, t0: Any, tf: Any, t_eval: Any, *values: Any) -> list[Any]:
        """Return the index of the record for these values; run SciPy if there is none."""
        plain = [constant_array(_CALL, x) for x in (y0, t0, tf, t_eval, *values)]
        key = tuple([(x.shape, x.dtype.str, x.tobytes()) for x in plain])
        if key not in self._known:
            if self.complete:
                raise ConcretizationError(
                    f"{_CALL}: steps follow from values, and a function that was recorded with those for some values "
                    "was run again with others. Pass what the function around the call closes over in its args."
                )
            with outside_transforms():
                self._run(*plain)
            self._known[key] = len(self.records) - 1
        return [np.int64(self._known[key])]

    def _run(self, y0: Any, t0: Any, tf: Any, t_eval: Any, *given: Any) -> None:
        arguments = self.arguments
        t_eval = None if arguments.t_eval is None else t_eval
        values = tuple([value[()] for value in given])
        notes: list[Any] = []
        solvers: list[Any] = []
        note = self.scheme.note
        solver = (
            arguments
            if self.packing.size <= SHORT
            else arguments._replace(method=self.scheme.recording_class(arguments.method))
        )
        result = import_scipy(_CALL, "scipy.integrate").solve_ivp(
            self.slope(values),
            (float(t0), float(tf)),
            y0,
            method=with_notes(
                solver, self.scheme.watch, lambda solver, before: notes.append(note(solver, before)), solvers
            ),
            t_eval=t_eval,
            dense_output=arguments.dense_output,
            events=[event.plain(values) for event in self.events] or None,
            vectorized=arguments.vectorized,
            **self.options(values),
        )
        dense = arguments.dense_output or t_eval is not None or bool(self.events)
        if arguments.dense_output and arguments.method.__name__ in ("BDF", "LSODA"):
            ends = result.sol.ts
            result.sol = type(result.sol)(ends, result.sol.interpolants, alt_segment=True)
        self.records.append(self._make_record(notes, result, float(t0), y0, dense, values))
        clear_solvers(arguments.method, solvers)
        notes.clear()  # the solver's class is a reference cycle, which is collected later

    def slope(self, values: tuple[Any, ...]) -> Callable[[Any, Any], Any]:
        """Return the right-hand side in SciPy's form."""
        if self.packing.is_tree:
            return lambda t, y: self.flow.vector(t, y, *values)
        return self.flow.fun.bound(values)

    def options(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Return the solver's options in SciPy's form."""
        options = dict(self.arguments.options)
        given = options.get("jac")
        if callable(given):
            jac = given.bound(values)
            options["jac"] = lambda t, y: _constant(jac(t, self.packing.unpacked(y)))
        elif isinstance(given, str):
            if given != "exact" or self.packing.is_complex:
                raise InputError(
                    f'{_CALL}: jac must be a function, a matrix, None, or "exact" for real states, got {given!r}.'
                )
            sparsity = options.pop("jac_sparsity", None)
            options["jac"] = exact_jacobian(self.flow, sparsity if self.scheme.sparse else None, values)
        elif given is not None:
            options["jac"] = _constant(given)
        return options

    def _make_record(self, notes: list[Any], result: Any, t0: float, y0: Any, dense: bool, values: Any) -> Record:

        def slopes(t: Any, y: Any) -> Any:
            if len(t) > 1:
                return self.flow.slopes(t, y, *values)
            return constant_array(_CALL, self.flow(float(t[0]), y[0], *values))[None]

        if not notes:  # nothing was integrated: record one step that changes nothing
            n = self.packing.real(np.atleast_1d(y0)).shape[-1]
            rows = np.zeros((2, 1, n)) + self.packing.real(y0)
            empty = {name: np.zeros(shape) for name, shape in _SHAPES.items()}
            empty["P"] = empty["TS"] = np.ones((1, 1, 1))  # the state after it, and within it, is that before it
            return Record(
                rows, np.zeros((1, 1, n)), **empty, origin=np.array([t0]), scale=np.ones(1), first=0.0,
                times=np.array([t0, t0]), result=result,
            )  # fmt: skip
        made = self.scheme.arrays_of_run(notes, self.packing, dense, slopes)
        times = np.array([notes[0][0], *[note[1] for note in notes]])
        return Record(**{"first": 0.0, **made}, times=times, result=result)


#: Shapes of the relations that are zero in a step that changes nothing.
_SHAPES = {"T": (1, 1), **dict.fromkeys(("U", "V", "Q", "TX"), (1, 1, 1))}


def clear_solvers(method: Any, solvers: list[Any]) -> None:
    """Clear solvers of a SciPy class: they are reference cycles, which keep all arrays until a garbage collection.

    From SciPy 1.17 on, each step of LSODA leaks a reference to its memory. Nothing reads the memory now: it is emptied.
    """
    for solver in solvers if method.__module__.startswith("scipy.") else ():
        if hasattr(solver, "_lsoda_solver"):
            inner = solver._lsoda_solver._integrator
            for memory in (inner.rwork, inner.iwork):
                memory.resize(0, refcheck=False)
        vars(solver).clear()
    solvers.clear()


def with_notes(
    arguments: SolveArguments, watch: Callable[[Any], Any], note: Callable[[Any, Any], None], solvers: list[Any]
) -> Any:
    """Return a subclass of the solver that calls ``watch`` before each step and ``note`` with its result after.

    Each new solver is appended to ``solvers``, for ``clear_solvers``.
    """
    method: Any = arguments.method
    max_steps, count = arguments.max_steps, itertools.count(1)

    def begin(self: Any, *args: Any, **options: Any) -> None:
        solvers.append(self)
        method.__init__(self, *args, **options)

    def step(self: Any) -> Any:
        before = watch(self)
        message = method.step(self)
        if self.status != "failed" and self.t != self.t_old and self.n:
            note(self, before)
        if next(count) == max_steps:  # steps that do not move count too
            self.status, message = "failed", "Excess work done on this call."
        return message

    return type(method.__name__, (method,), {"__init__": begin, "step": step})


class Event:
    """A function whose zeros are requested.

    Args:
        given: the caller's function, with ``terminal`` and ``direction``.
        fun: the caller's function as a function of ``t``, the state and all other values that it depends on.
        packing: the conversion between states and vectors.
    """

    def __init__(self, given: Callable[..., Any], fun: Callable[..., Any], packing: Packing) -> None:
        self.given, self.fun, self.packing = given, fun, packing

    def plain(self, values: Sequence[Any]) -> Callable[[Any, Any], Any]:
        """Return the function that SciPy calls."""

        def event(t: Any, y: Any) -> Any:
            return constant_array(_CALL, self.fun(t, self.packing.unpacked(y), *values))

        for name in ("terminal", "direction"):
            if hasattr(self.given, name):
                setattr(event, name, getattr(self.given, name))
        return event

    def __call__(self, t: Any, y: Any, values: Sequence[Any]) -> Any:
        """Return the value of the function at a time and a real state."""
        found = as_value(self.fun(t, self.packing.unpacked(self.packing.from_real(y)), *values))
        return fnp.astype(fnp.reshape(found, ()), float)


def event_times(event: Event, t: Any, along: Callable[[Any], Any], values: Sequence[Any]) -> Any:
    """Return the zeros ``t`` of one event, which are constants, with the derivatives of zeros.

    Args:
        event: the function.
        t: its zeros, in order.
        along: returns the real states at times near the zeros, in rows.
        values: the values that the function depends on.

    Raises:
        LinAlgError: the function touches zero without crossing it.
    """

    def equation(times: Any) -> Any:
        states = along(times)
        count = backend.shape_of(times)[0]
        return fnp.stack([event(times[i], states[i], values) for i in range(count)])

    return with_derivatives_of(t, custom_root(equation, t, lambda _, start: start, _solve_diagonal))


def _solve_diagonal(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve a linear system whose matrix is diagonal."""
    slopes = matvec(backend.ones_like(b))
    if np.any(constant_array(_CALL, slopes) == 0):
        raise np.linalg.LinAlgError(
            "integrate.solve_ivp: the time of an event that only touches zero has no derivative, got a slope of 0."
        )
    return b / slopes
