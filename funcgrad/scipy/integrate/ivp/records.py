"""The steps of SciPy's solvers as linear relations between states and slopes.

Every method here is a general linear method (Butcher, Numerical Methods for Ordinary Differential Equations, chapter
5): with the state ``S`` in ``r`` rows and the slopes ``X`` of ``s`` stages, one step is

    X = f(T, U S + V X),    S' = P S + Q X.

A Runge-Kutta method has one row, the value. BDF has eight: the value and its backward differences. LSODA has the value
and its scaled derivatives, see ``nordsieck``. LSODA with short states, and a caller's own solver, whose formula is not
known, are recorded as collocation at Radau's points, whose limit is the same solution.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.nordsieck import (
    LsodaNote,
    nordsieck_steps,
    note_lsoda,
    step_data,
    with_evaluation_buffer,
)

#: Largest length of a short state: dense Jacobians of all its stages are computed at once.
SHORT = 24
#: Number of stages of a step with unknown formula: SciPy's LSODA takes longer steps than its Radau.
_STAGES = 4


class Record(NamedTuple):
    """The steps of one solution.

    Attributes:
        S: states at the ends of steps, ``(N + 1, r, n)``, real.
        X: slopes of stages, ``(N, s, n)``.
        T: times of stages, ``(N, s)``.
        U: ``(N, s, r)``.
        V: ``(N, s, s)``.
        P: ``(N, r, r)``.
        Q: ``(N, r, s)``.
        TS: the weights of a state in the interpolant's coefficients, ``(N, d, r)``.
        TX: the weights of slopes in the interpolant's coefficients, ``(N, d, s)``.
        origin: the time from which the interpolant counts, ``(N,)``.
        scale: the interpolant's unit of time, ``(N,)``.
        first: the factor with which the first slope enters the first state, 0 if it does not.
        times: the ends of steps, ``(N + 1,)``.
        result: SciPy's result.
    """

    S: Any
    X: Any
    T: Any
    U: Any
    V: Any
    P: Any
    Q: Any
    TS: Any
    TX: Any
    origin: Any
    scale: Any
    first: float
    times: Any
    result: Any


class Scheme(NamedTuple):
    """The way in which steps of a method are recorded.

    Attributes:
        implicit: whether stages depend on later ones or on themselves.
        sparse: whether the solver takes sparse Jacobians.
        ahead: 1 if the interpolant begins with the state after a step, 0 if it begins with the state before.
        watch: ``watch(solver)`` is called before a step and returns what must be remembered.
        note: ``note(solver, remembered)`` is called after a step.
        arrays_of_run: ``arrays_of_run(notes, packing, dense, slopes)`` makes the arrays of a record.
        arrays_of_part: like ``arrays_of_run``, for some steps in the middle of a run.
        recording_class: for long states, turns the solver's class into a class that keeps more of a step for ``note``.
    """

    implicit: bool
    sparse: bool
    ahead: int
    watch: Callable[[Any], Any]
    note: Callable[[Any, Any], Any]
    arrays_of_run: Callable[..., dict[str, Any]]
    arrays_of_part: Callable[..., dict[str, Any]]
    recording_class: Callable[[Any], Any] = lambda method: method


def scheme_of(method: type) -> Scheme:
    """Return how steps of a solver class are recorded."""
    integrate = import_scipy("integrate.solve_ivp", "scipy.integrate")
    if method in (integrate.RK23, integrate.RK45, integrate.DOP853):
        arrays_of_run: Any = _explicit(method)
        return Scheme(False, False, 0, lambda solver: None, _note_explicit, arrays_of_run, arrays_of_run)
    if method is integrate.Radau:
        arrays_of_run = partial(_collocation, 3)
        return Scheme(True, True, 0, lambda solver: None, _note_radau, arrays_of_run, arrays_of_run)
    if method is integrate.BDF:
        return Scheme(True, True, 1, _watch_bdf, _note_bdf, _bdf, _bdf)
    if method is integrate.LSODA:
        return Scheme(True, False, 0, lambda solver: solver.y, note_lsoda, _lsoda, _lsoda_part, with_evaluation_buffer)
    arrays_of_run = partial(_collocation, _STAGES)
    return Scheme(True, False, 0, lambda solver: solver.y, _note_dense, arrays_of_run, arrays_of_run)


def _note_explicit(solver: Any, _: Any) -> Any:
    return solver.t_old, solver.t, solver.y_old, solver.y, solver.K.copy()


class _Explicit:
    """An explicit Runge-Kutta method, from its table."""

    def __init__(self, method: Any) -> None:
        self.count = method.n_stages
        A, B, C = method.A, method.B, method.C
        table = np.zeros((self.count + 1, self.count + 1))
        table[:-1, : A.shape[1]] = A
        table[-1, :-1] = B
        nodes, weights = np.append(C, 1.0), np.append(B, 0.0)
        extra = getattr(method, "A_EXTRA", None)
        if extra is not None:  # stages for the interpolant of DOP853
            more = len(extra)
            whole = np.zeros((len(table) + more, len(table) + more))
            whole[: len(table), : len(table)] = table
            whole[len(table) :, : extra.shape[1]] = extra
            table, nodes = whole, np.append(nodes, method.C_EXTRA)
            weights = np.append(weights, np.zeros(more))
            self.inside = _dop853_powers(method)
        else:
            self.inside = method.P
        self.table, self.nodes, self.weights = table, nodes, weights

    def __call__(self, notes: list[Any], packing: Any, dense: bool, slopes: Callable[..., Any]) -> dict[str, Any]:
        """Return the arrays of a record; ``dense`` adds the stages that only the interpolant needs."""
        t_old, t, y_old, y, K = _columns(notes)
        h = t - t_old
        count = len(self.table) if dense else self.count
        known = min(count, K.shape[1])
        X = np.empty((len(h), count, packing.real(y[:1]).shape[-1]))
        X[:, :known] = packing.real(K[:, :known])
        before = packing.real(y_old)
        T = t_old[:, None] + self.nodes[:count] * h[:, None]
        T[:, 0] = t_old
        for i in range(known, count):
            stage = before + h[:, None] * np.einsum("k,nkj->nj", self.table[i, :i], X[:, :i])
            X[:, i] = slopes(T[:, i], stage)
        one = np.ones((len(h), 1, 1))
        powers = self.inside.T if dense else np.zeros((0, count))  # (degree, stage)
        return {
            "S": np.concatenate([before, packing.real(y[-1:])])[:, None],
            "X": X,
            "T": T,
            "U": np.ones((len(h), count, 1)),
            "V": h[:, None, None] * self.table[:count, :count],
            "P": one,
            "Q": h[:, None, None] * self.weights[None, None, :count],
            **_polynomial(h, powers, count),
            "origin": t_old,
            "scale": h,
        }


@lru_cache(maxsize=8)
def _explicit(method: Any) -> _Explicit:
    return _Explicit(method)


def _polynomial(h: Any, powers: Any, count: int) -> dict[str, Any]:
    """Return coefficients of the value and of ``h`` times slopes, for rising powers from 0 on."""
    TX = np.zeros((len(powers) + 1, count))
    TX[1:] = powers
    TS = np.zeros((len(powers) + 1, 1))
    TS[0] = 1.0
    return {"TS": np.broadcast_to(TS, (len(h), *TS.shape)), "TX": h[:, None, None] * TX}


def _dop853_powers(method: Any) -> Any:
    """Return DOP853's interpolant in powers of the fraction of the step (Hairer, Norsett and Wanner, I, II.6).

    The interpolant is ``F_0 x + F_1 x (1 - x) + F_2 x x (1 - x) + ...``, where the ``F`` are sums of slopes.
    """
    stages = method.n_stages + 1 + len(method.A_EXTRA)
    B = np.append(method.B, np.zeros(stages - len(method.B)))
    first, last = np.zeros(stages), np.zeros(stages)
    first[0], last[method.n_stages] = 1.0, 1.0
    F = np.concatenate([[B, first - B, 2 * B - first - last], method.D])
    found, factor = np.zeros((stages, len(F))), np.polynomial.Polynomial([1.0])
    for k, row in enumerate(F):
        factor = factor * np.polynomial.Polynomial([1.0, -1.0] if k % 2 else [0.0, 1.0])
        found[:, : k + 1] += np.outer(row, np.append(factor.coef, np.zeros(k + 2))[1 : k + 2])
    return found


def _columns(notes: list[Any]) -> tuple[Any, ...]:
    return tuple(np.array(column) for column in zip(*notes, strict=True))


def _note_radau(solver: Any, _: Any) -> Any:
    return solver.t_old, solver.t, solver.y_old, solver.y, solver.Z


def _note_dense(solver: Any, before: Any) -> Any:
    """Return the data of a step of which only the interpolant is known."""
    nodes = _radau(_STAGES)[0]
    inside = solver.dense_output()(solver.t_old + (solver.t - solver.t_old) * nodes).T - before
    inside[-1] = solver.y - before
    return solver.t_old, solver.t, before, solver.y, inside


def _lsoda(notes: list[LsodaNote], packing: Any, dense: bool, slopes: Callable[..., Any]) -> dict[str, Any]:
    """Record LSODA's own steps for long states; for short ones, collocation, which takes all steps together."""
    own = nordsieck_steps(notes) if len(notes[0].y) > SHORT else None
    return _lsoda_part(notes, packing, dense, slopes) if own is None else own


def _lsoda_part(notes: list[LsodaNote], packing: Any, dense: bool, slopes: Callable[..., Any]) -> dict[str, Any]:
    """Record steps as collocation through values of the interpolants, all steps of one order together.

    Long states that are never stiff are recorded as DOP853 steps of the same lengths, which need no factorisation.
    """
    if len(notes[0].y) > SHORT and not step_data(notes).stiff.any():
        explicit = import_scipy("integrate.solve_ivp", "scipy.integrate").DOP853
        unknown = np.empty((0, len(notes[0].y)))
        return _explicit(explicit)([(*note[:4], unknown) for note in notes], packing, dense, slopes)
    t_old, t, y_old, y = _columns([note[:4] for note in notes])
    order, next_order, _, length, next_length, _ = step_data(notes)
    times = t_old[:, None] + (t - t_old)[:, None] * _radau(_STAGES)[0]
    inside = np.empty((len(notes), _STAGES, y.shape[1]))
    for k in np.unique(order).tolist():
        of = np.flatnonzero(order == k)
        scaled = np.stack([notes[i].rows(k + 1) for i in of.tolist()])
        lowered = next_order[of] < k
        scaled[lowered, -1] *= ((next_length[of] / length[of]) ** k)[lowered, None]
        x = (times[of] - t[of, None]) / next_length[of, None]
        inside[of] = np.matmul(x[..., None] ** np.arange(k + 1), scaled)
    inside -= y_old[:, None]
    inside[:, -1] = y - y_old
    return _collocated(_STAGES, (t_old, t, y_old, y, inside), packing)


@lru_cache
def _radau(stages: int) -> tuple[Any, Any, Any, Any]:
    """Return Radau IIA: nodes, table, its inverse, and the polynomial through the stages in terms of their slopes.

    The nodes are the zeros of the difference of two Legendre polynomials. The table integrates the polynomials that are
    1 at one node and 0 at the others (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.5).
    """
    difference = np.zeros(stages + 1)
    difference[-2:] = -1.0, 1.0
    nodes = (np.sort(np.polynomial.legendre.legroots(difference).real) + 1) / 2
    nodes[-1] = 1.0
    degrees = np.arange(1, stages + 1)
    powers = np.linalg.inv(nodes[:, None] ** (degrees - 1)) / degrees[:, None]
    table = nodes[:, None] ** degrees @ powers
    return nodes, table, np.linalg.inv(table), powers


def _collocation(
    stages: int, notes: list[Any], packing: Any, dense: bool, slopes: Callable[..., Any]
) -> dict[str, Any]:
    return _collocated(stages, _columns(notes), packing)


def _collocated(stages: int, columns: tuple[Any, ...], packing: Any) -> dict[str, Any]:
    t_old, t, y_old, y, Z = columns
    h = t - t_old
    nodes, table, inverse, powers = _radau(stages)
    return {
        "S": np.concatenate([packing.real(y_old), packing.real(y[-1:])])[:, None],
        "X": np.matmul(inverse, packing.real(Z)) / h[:, None, None],
        "T": t_old[:, None] + nodes * h[:, None],
        "U": np.ones((len(h), stages, 1)),
        "V": h[:, None, None] * table,
        "P": np.ones((len(h), 1, 1)),
        "Q": h[:, None, None] * table[-1:],
        **_polynomial(h, powers, stages),
        "origin": t_old,
        "scale": h,
    }


class _BdfNote(NamedTuple):
    """Data of one step of BDF."""

    t_old: float
    t: float
    y_old: Any
    y: Any
    order: int
    first: float  # the nominal length of the step
    length_fraction: float  # the length of the step relative to the nominal length
    next_order: int  # the order of the next step
    length_ratio: float  # the length of the next step relative to this step
    scale: float  # the length of the next step


def _watch_bdf(solver: Any) -> Any:
    if solver.t_old is None:
        solver.D[2:] = 0.0  # SciPy subtracts these entries before it has set them: arbitrary values may make it warn
    return solver.h_abs, solver.order, solver.y


def _note_bdf(solver: Any, before: Any) -> _BdfNote:
    h_abs, order, y_old = before
    taken = abs(solver.t - solver.t_old)
    length_fraction = taken / h_abs
    return _BdfNote(
        solver.t_old,
        solver.t,
        y_old,
        solver.y,
        order,
        h_abs * solver.direction,
        1.0 if abs(length_fraction - 1) < 1e-10 else length_fraction,
        solver.order,
        solver.h_abs / taken,
        solver.h_abs * solver.direction,
    )


def _rescaled(order: int, factor: float) -> Any:
    """Return the effect of a step change on the differences (Shampine and Reichelt, The MATLAB ODE suite)."""

    def differences(factor: float) -> Any:
        rows, columns = np.arange(1, order + 1)[:, None], np.arange(1, order + 1)
        found = np.zeros((order + 1, order + 1))
        found[0] = 1.0
        found[1:, 1:] = (rows - 1 - factor * columns) / rows
        return np.cumprod(found, axis=0)

    whole = np.eye(8)
    if factor != 1.0:
        whole[: order + 1, : order + 1] = (differences(factor) @ differences(1.0)).T
    return whole


@lru_cache(maxsize=64)
def _bdf_step(order: int) -> tuple[Any, Any, Any, Any]:
    """Return ``predicts``, ``psi``, ``update`` and ``enters`` of a step whose differences fit its length.

    With ``d`` the correction, the new differences are ``update @ D + enters * d``; ``alpha`` follows ``enters``.
    """
    kappa = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
    gamma = np.append(0.0, np.cumsum(1 / np.arange(1, 6)))
    alpha = (1 - kappa) * gamma
    predicts, psi = np.zeros(8), np.zeros(8)
    predicts[: order + 1] = 1.0
    psi[1 : order + 1] = gamma[1 : order + 1] / alpha[order]
    update, enters = np.eye(8), np.zeros(8)
    enters[: order + 3] = 1.0
    update[order + 2] = 0.0
    update[order + 2, order + 1] = -1.0
    update[order + 1] = 0.0
    for i in range(order + 1):
        update[i, i : order + 1] = 1.0
    return predicts, psi, update, np.append(enters, alpha[order])


def _bdf(
    notes: list[_BdfNote], packing: Any, dense: bool, slopes: Callable[..., Any], start: Any = None
) -> dict[str, Any]:
    """Return the arrays of a record; ``start`` holds the rows before the first step, if they are known."""
    count = len(notes)
    if start is None:
        y = packing.real(notes[0].y_old)
        start = np.zeros((8, len(y)))
        start[:2] = y, notes[0].first * slopes(np.array([notes[0].t_old]), y[None])[0]
    U, V = np.empty((count, 1, 8)), np.empty((count, 1, 1))
    P, Q = np.empty((count, 8, 8)), np.empty((count, 8, 1))
    TS = np.zeros((count, 6, 8))
    S, X = np.zeros((count + 1, *start.shape)), np.empty((count, 1, start.shape[1]))
    S[0] = start
    ends = packing.real(np.array([note.y for note in notes]))
    for n, note in enumerate(notes):
        predicts, psi, update, (*enters, alpha) = _bdf_step(note.order)
        before, after = _rescaled(note.order, note.length_fraction), _rescaled(note.next_order, note.length_ratio)
        c, enters = (note.t - note.t_old) / alpha, after @ np.array(enters)
        U[n, 0], V[n] = (predicts - psi) @ before, c
        P[n] = (after @ update - np.outer(enters, psi)) @ before
        Q[n, :, 0] = c * enters
        TS[n] = _bdf_inside(note.next_order)
        X[n, 0] = (ends[n] - U[n, 0] @ S[n]) / c
        S[n + 1] = P[n] @ S[n] + Q[n] * X[n]
    S[1:, 0] = ends
    t = np.array([note.t for note in notes])
    return {
        "S": S,
        "X": X,
        "T": t[:, None],
        "U": U,
        "V": V,
        "P": P,
        "Q": Q,
        "TS": TS,
        "TX": np.zeros((count, 6, 1)),
        "origin": t,
        "scale": np.array([note.scale for note in notes]),
        "first": notes[0].first,
    }


@lru_cache(maxsize=64)
def _bdf_inside(order: int) -> Any:
    """Return the polynomial through the last values, one row for each power of the time in units of steps."""
    found = np.zeros((6, 8))
    factor = np.polynomial.Polynomial([1.0])
    for i in range(order + 1):
        found[: i + 1, i] = factor.coef
        factor = factor * np.polynomial.Polynomial([i, 1.0]) / (i + 1.0)
    return found


def padded(records: list[Record], name: str) -> Any:
    """Stack one array of all records; shorter ones are padded with steps that change nothing."""
    if len(records) == 1:
        return getattr(records[0], name)
    arrays = [getattr(record, name) for record in records]
    steps = max(len(record.T) for record in records)
    wanted = steps + (name in ("S", "times"))
    if len({array.shape[1:] for array in arrays}) > 1:
        arrays = _widened(arrays, name)
    return np.stack([_extended(array, wanted, name) for array in arrays])


def _widened(arrays: list[Any], name: str) -> list[Any]:
    """Pad the arrays to the same numbers of stages and rows; added ones have no weight."""
    most = np.max([array.shape[1:] for array in arrays], axis=0)
    wide = []
    for array in arrays:
        ways = [(0, 0), *[(0, n) for n in most - array.shape[1:]]]
        if name in ("T", "U"):  # stages are repeated, rows are not
            array = np.pad(array, [*ways[:2], *[(0, 0)] * (array.ndim - 2)], "edge")
            ways[1] = (0, 0)
        wide.append(np.pad(array, ways))
    return wide


def _extended(array: Any, wanted: int, name: str) -> Any:
    missing = wanted - len(array)
    if not missing:
        return array
    last = np.zeros_like(array[-1]) if name in ("V", "Q", "X", "TX") else array[-1]
    if name == "P":
        last = np.eye(array.shape[-1])
    return np.concatenate([array, np.broadcast_to(last, (missing, *last.shape))])
