"""LSODA's steps as linear relations between the rows of its Nordsieck array: the value and scaled derivatives.

A step of order ``q`` and length ``h`` predicts by Pascal's triangle and corrects by one slope. With ``l`` the
coefficients of the method (Hindmarsh, ODEPACK; Byrne and Hindmarsh, 1975) and ``e = h f(t, y) - h y'`` the correction,

    z' = A z + l e,    y = (A z)_0 + l_0 e,    h y' = (A z)_1.

A change of the length scales the rows; a higher order adds a row made of ``e``, a lower one drops the last row. Methods
for stiff equations solve for ``y``. Adams' method evaluates one to three times in sequence. The last evaluations of a
step become stages, if each follows from the evaluation before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb, factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import polynomial

#: Number of rows of a method of the highest order, 12.
_MAX_ROWS = 13
#: Largest number of evaluations of Adams' method in a step.
_MAX_EVALUATIONS = 3
#: Largest error of the relations for LSODA's results, in units of their largest terms.
_RELATION_TOLERANCE = 1e-12


class LsodaNote(NamedTuple):
    """Data of one step: its ends, and a part of LSODA's memory after the step."""

    t_old: float
    t: float
    y_old: Any
    y: Any
    order: int
    next_order: int  # the order of the next step
    stiff: bool  # whether the step used the method for stiff equations
    length: float
    next_length: float  # the length of the next step
    evaluations: int  # the number of evaluations
    rows_after: Any  # the rows after the step as one vector, scaled by the length of the next step
    buffer: Any  # the last evaluations of this step and of all steps before; None if they are not kept

    def rows(self, count: int) -> Any:
        """Return the first rows after the step."""
        return self.rows_after.reshape(-1, len(self.y))[:count]


#: Indices in LSODA's memory: of orders, of the method of the step (2 for stiff equations), of lengths and of rows.
_ORDERS, _METHOD, _LENGTHS, _ROW_DATA = 13, 18, 10, 20
#: Initial number of evaluations that fit.
_INITIAL_CAPACITY = 128


class _EvaluationBuffer:
    """The last evaluations of each step.

    Args:
        n: the length of a state.

    Attributes:
        first: the first slope of the run.
        evaluations: the number of evaluations in the current step.
        begin: the index of the first evaluation of the step; the last evaluations overwrite the others in turn.
        sums: dot products of the arguments with random weights.
        slopes: the results.
    """

    def __init__(self, n: int) -> None:
        self.evaluations = self.begin = 0
        self.first: Any = None
        self.sums, self.slopes = np.empty(_INITIAL_CAPACITY), np.empty((_INITIAL_CAPACITY, n))

    def next_step(self, stiff: bool) -> int:
        """Begin the next step; return the number of evaluations before. Those of a ``stiff`` step are not kept."""
        evaluations, self.evaluations = self.evaluations, 0
        self.begin += 0 if stiff else min(evaluations, _MAX_EVALUATIONS)
        if self.begin + _MAX_EVALUATIONS > len(self.sums):
            self.sums, self.slopes = (np.concatenate([x, np.empty_like(x)]) for x in (self.sums, self.slopes))
        return evaluations


@lru_cache(maxsize=8)
def with_evaluation_buffer(method: Any) -> Any:
    """Return a subclass of LSODA's class that keeps the last evaluations of each step."""

    def begin(self: Any, fun: Callable[[Any, Any], Any], t0: Any, y0: Any, *args: Any, **options: Any) -> None:
        buffer, weights = _EvaluationBuffer(len(y0)), _random_weights(len(y0))

        def recorded_fun(t: Any, y: Any) -> Any:
            slope = np.asarray(fun(t, y), float)
            index = buffer.begin + buffer.evaluations % _MAX_EVALUATIONS
            buffer.sums[index], buffer.slopes[index] = y.dot(weights), slope.ravel()
            buffer.evaluations += 1
            if buffer.first is None:
                buffer.first = slope.ravel().copy()
            return slope

        self.buffer = buffer
        method.__init__(self, recorded_fun, t0, y0, *args, **options)

    return type(method.__name__, (method,), {"__init__": begin})


def note_lsoda(solver: Any, before: Any) -> LsodaNote:
    """Return what SciPy's ``dense_output`` takes from LSODA's memory, and more, in a tenth of its time."""
    integrator = solver._lsoda_solver._integrator
    numbers, real = integrator.iwork[_ORDERS : _METHOD + 1].tolist(), integrator.rwork
    order, next_order, stiff = numbers[0], numbers[1], numbers[-1] == 2
    rows_after = real[_ROW_DATA : _ROW_DATA + (1 + max(order, next_order)) * solver.n].copy()
    buffer = getattr(solver, "buffer", None)
    evaluations = 0 if buffer is None else buffer.next_step(stiff)
    length, next_length = real[_LENGTHS : _LENGTHS + 2].tolist()
    return LsodaNote(
        solver.t_old,
        solver.t,
        before,
        solver.y,
        order,
        next_order,
        stiff,
        length,
        next_length,
        evaluations,
        rows_after,
        buffer,
    )


class StepData(NamedTuple):
    """Data of all steps, as arrays.

    Attributes:
        order: the order of the step.
        next_order: the order of the next step.
        stiff: whether the step used the method for stiff equations.
        length: the length of the step.
        next_length: the length of the next step.
        evaluations: the number of evaluations.
    """

    order: Any
    next_order: Any
    stiff: Any
    length: Any
    next_length: Any
    evaluations: Any


def step_data(notes: list[LsodaNote]) -> StepData:
    """Return the data of all notes, by step."""
    order, next_order, stiff, length, next_length, evaluations = np.array([note[4:10] for note in notes]).T
    return StepData(order.astype(int), next_order.astype(int), stiff != 0, length, next_length, evaluations.astype(int))


@lru_cache(maxsize=1)
def _tables() -> tuple[Any, Any]:
    """Return Pascal's triangle by order, and coefficients by method (Adams, backward differences) and order."""
    pascal, el = np.zeros((_MAX_ROWS, _MAX_ROWS, _MAX_ROWS)), np.zeros((2, _MAX_ROWS, _MAX_ROWS))
    for q in range(1, _MAX_ROWS):
        for j in range(q + 1):
            pascal[q, j, j : q + 1] = [comb(k, j) for k in range(j, q + 1)]
        product = polynomial.polyfromroots(-np.arange(1.0, q))
        whole = polynomial.polyint(product) / factorial(q - 1)
        el[0, q, : q + 1] = whole
        el[0, q, 0] = -polynomial.polyval(-1.0, whole)
        product = polynomial.polyfromroots(-np.arange(1.0, q + 1))
        el[1, q, : q + 1] = product / product[1]
    return pascal, el


class _Formula(NamedTuple):
    """The formulas of the steps.

    Attributes:
        t: the ends of the steps.
        h: the lengths of the steps.
        predict: the prediction matrices, ``(N, r, r)``.
        el: the coefficients, ``(N, r)``.
    """

    t: Any
    h: Any
    predict: Any
    el: Any

    @property
    def predicted(self) -> Any:
        """Weights of the rows before a step in the value after it, besides its slope: ``(N, r)``."""
        return self.predict[:, 0] - self.el[:, :1] * self.predict[:, 1]


def nordsieck_steps(notes: list[LsodaNote]) -> dict[str, Any] | None:
    """Return the arrays of a record; None if LSODA did something else, such as a restart after several failures.

    Args:
        notes: the notes of all steps.
    """
    count, n, buffer = len(notes), len(notes[0].y), notes[0].buffer
    order, next_order, stiff, h, next_length, evaluations = step_data(notes)
    t = np.array([note.t for note in notes])
    rows = 1 + int(max(order.max(), next_order.max()))
    blank = np.zeros(rows * n)
    parts = [blank]
    for note, size in zip(notes, ((next_order + 1) * n).tolist(), strict=True):
        parts += note.rows_after[:size], blank[size:]
    S = np.concatenate(parts).reshape(count + 1, rows, n)
    S[0, 0] = notes[0].y_old
    S[0, 1] = h[0] * buffer.first

    pascal, el = (table[..., :rows] for table in _tables())
    powers = np.arange(rows)
    predict = pascal[order, :rows] * ((h / np.append(h[0], next_length[:-1]))[:, None] ** powers)[:, None]
    formula = _Formula(t, h, predict, el[stiff.astype(int), order])
    P, Q, TS, TX = _step_relations(formula, order, next_order, next_length)
    X = S[1:, 1:2] / next_length[:, None, None]
    sums = _Sums(S, X[:, 0])
    if not _relations_hold(P, Q[..., 0], sums):
        return None
    S[1:, 0] = [note.y for note in notes]
    made = {"S": S, "P": P, "TS": TS, "origin": t, "scale": next_length, "first": h[0]}
    if not stiff.any():
        found = _stages_of_adams(formula, sums, (Q, TX), evaluations, buffer.sums, buffer.slopes[: buffer.begin])
        if found is not None:
            return made | found
    U, V = formula.predicted[:, None], (h * formula.el[:, 0])[:, None, None]
    return made | {"X": X, "T": t[:, None], "U": U, "V": V, "Q": Q, "TX": TX}


def _step_relations(formula: _Formula, order: Any, next_order: Any, next_length: Any) -> tuple[Any, Any, Any, Any]:
    """Return ``P, Q, TS, TX``: the rows after a step, and the interpolant's, from the rows before and the slope."""
    _, h, predict, el = formula
    powers = np.arange(el.shape[1])
    corrected, enters = predict - el[:, :, None] * predict[:, 1:2], h[:, None] * el
    scaled = (next_length / h)[:, None] ** powers
    TS, TX = scaled[:, :, None] * corrected, (scaled * enters)[:, :, None]
    more = np.where(powers == (order + 1)[:, None], (el[np.arange(len(h)), order] / (order + 1))[:, None], 0.0)
    scaled = np.where(powers <= next_order[:, None], scaled, 0.0)
    P = scaled[:, :, None] * (corrected - more[:, :, None] * predict[:, 1:2])
    return P, (scaled * (enters + h[:, None] * more))[:, :, None], TS, TX


class _Sums:
    """Dot products of all states with random weights, which test relations between states.

    Attributes:
        weights: the random weights, ``(n, )``.
        rows: dot products of ``S``.
        slope: dot products of ``X``.
        sizes: upper bounds of the dot products of ``abs(S)``.
        steep: upper bounds of the dot products of ``abs(X)``.
    """

    def __init__(self, S: Any, X: Any) -> None:
        self.weights = weights = _random_weights(S.shape[-1])
        self.rows, self.slope = S @ weights, X @ weights
        self.sizes, self.steep = (np.sqrt(np.vecdot(x, x) * weights.dot(weights)) for x in (S, X))


@lru_cache(maxsize=8)
def _random_weights(n: int) -> Any:
    return np.random.default_rng(0).uniform(0.5, 1.5, n)


def _relations_hold(P: Any, Q: Any, sums: _Sums) -> bool:
    """Whether the relations between rows hold."""
    wrong = np.abs(np.matvec(P, sums.rows[:-1]) - sums.rows[1:] + Q * sums.slope[:, None])
    return bool(
        np.all(wrong <= _RELATION_TOLERANCE * (np.matvec(np.abs(P), sums.sizes[:-1]) + np.abs(Q) * sums.steep[:, None]))
    )


def _stages_of_adams(
    formula: _Formula, sums: _Sums, weights: tuple[Any, Any], evaluations: Any, arguments: Any, slopes: Any
) -> dict[str, Any] | None:
    """Return the stages of Adams' method, one per evaluation; None if they do not lead to LSODA's result.

    Args:
        formula: the formulas of the steps.
        sums: dot products of the rows, and of the last slope in each step.
        weights: the weights of this slope in ``S`` and in the interpolant.
        evaluations: the number of evaluations in each step.
        arguments: dot products of the arguments of the evaluations that were kept.
        slopes: results of the evaluations that were kept.
    """
    if not evaluations.all():
        return None
    t, h, predict, el = formula
    count = len(t)
    buffered = np.minimum(evaluations, _MAX_EVALUATIONS)
    begin = np.cumsum(buffered) - buffered
    steps, indices = np.arange(count)[:, None], np.arange(_MAX_EVALUATIONS)
    exists = indices >= _MAX_EVALUATIONS - evaluations[:, None]
    # the last evaluation is last
    tries = begin[:, None] + np.where(exists, (evaluations[:, None] + indices) % _MAX_EVALUATIONS, 0)
    with np.errstate(invalid="ignore"):  # failed attempts may have evaluated to NaN
        F = (slopes @ sums.weights)[tries]
    Y = arguments[tries]
    ahead = predict[:, :2]  # rows that predict the value and the scaled slope
    predicted, moved = np.matvec(ahead, sums.rows[:-1]).T[..., None]
    sizes = np.matvec(np.abs(ahead), sums.sizes[:-1])
    by = (h * el[:, 0])[:, None]
    size = sums.steep + sizes[:, 1] / np.abs(h)
    close = _RELATION_TOLERANCE * (sizes[:, :1] + np.abs(by) * size[:, None])
    begins = (np.abs(Y - predicted) <= close) & exists
    follows = np.abs(Y[:, 1:] - (predicted + by * F[:, :-1] - el[:, :1] * moved)) <= close
    ends = np.abs(F[:, -1] - sums.slope) <= _RELATION_TOLERANCE * size
    leads = np.concatenate([follows, ends[:, None]], axis=1)  # to the next evaluation, or to the end
    led = np.logical_and.accumulate(leads[:, ::-1], axis=1)[:, ::-1] & begins
    if not led.any(-1).all():
        return None
    first = led.argmax(-1)
    last = _MAX_EVALUATIONS - 1 - first
    stages = int(last.max()) + 1
    stage = np.arange(stages)
    is_later_stage = (stage > 0) & (stage <= last[:, None])  # steps with fewer evaluations have stages without weight
    U = np.where(is_later_stage[..., None], formula.predicted[:, None], predict[:, :1])
    V = np.zeros((count, stages, stages))
    V[:, stage[1:], stage[:-1]] = np.where(is_later_stage[:, 1:], by, 0.0)
    Q, TX = (weight * (last[:, None] == stage)[:, None] for weight in weights)
    X = slopes[tries[steps, np.minimum(first[:, None] + stage, _MAX_EVALUATIONS - 1)]]
    return {"X": X, "T": np.repeat(t[:, None], stages, axis=1), "U": U, "V": V, "Q": Q, "TX": TX}
