"""LSODA's own steps: linear relations between what it keeps, the value and its scaled derivatives (Nordsieck's array).

Of order ``q`` and length ``h`` it predicts by Pascal's triangle and corrects by one slope: with ``l`` the coefficients
of the method (Hindmarsh, ODEPACK; Byrne and Hindmarsh, 1975) and ``e = h f(t, y) - h y'`` the correction,

    z' = A z + l e,    y = (A z)_0 + l_0 e,    h y' = (A z)_1.

A change of the length scales the rows; a higher order adds a row made of ``e``, a lower one drops the last. Methods for
equations that are stiff solve for ``y``. Adams' method takes one to three evaluations, one after the other: the last
of those that were kept, if they follow from one another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from math import comb, factorial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial import polynomial

__all__ = ["LsodaNote", "evaluated", "note_lsoda", "numbers_of", "own_steps"]

#: The rows of a method of the highest order, 12.
_ROWS = 13
#: The most evaluations of Adams' method in a step.
_MOST = 3
#: How far relations may be from what was found, in units of their largest terms.
_CLOSE = 1e-11


_Slopes: TypeAlias = Callable[[Any, Any], Any]


class LsodaNote(NamedTuple):
    """What is known of one step: its ends, and a part of LSODA's memory behind it."""

    t_old: float
    t: float
    y_old: Any
    y: Any
    whole: Any
    real: Any
    tries: tuple[tuple[Any, Any], ...]  # the last evaluations: arguments and slopes

    def rows(self, count: int) -> Any:
        """The first rows behind the step, scaled by the length of the next one."""
        size = len(self.y)
        return self.real[_BEFORE : _BEFORE + count * size].reshape(count, size)


#: Where these parts begin; and how many numbers stand there before the rows.
_WHOLE, _REAL, _BEFORE = 11, 10, 10


def evaluated(method: Any) -> Any:
    """LSODA's class, which keeps the last evaluations of each step."""

    def begin(self: Any, fun: Callable[[Any, Any], Any], *args: Any, **options: Any) -> None:
        kept = self.tries = deque(maxlen=_MOST)

        def keeping(t: Any, y: Any) -> Any:
            slope = np.array(fun(t, y), float)
            kept.append((y.ravel().copy(), slope.ravel()))
            return slope

        method.__init__(self, keeping, *args, **options)

    return type(method.__name__, (method,), {"__init__": begin})


def note_lsoda(solver: Any, before: Any) -> LsodaNote:
    """What SciPy's ``dense_output`` takes from LSODA's memory, and more, in a tenth of its time."""
    integrator = solver._lsoda_solver._integrator
    whole = integrator.iwork[_WHOLE:19].copy()
    rows = 1 + max(whole[2].item(), whole[3].item())
    real = integrator.rwork[_REAL : _REAL + _BEFORE + rows * solver.n].copy()
    tries = getattr(solver, "tries", ())
    note = LsodaNote(solver.t_old, solver.t, before, solver.y, whole, real, () if whole[7] == 2 else tuple(tries))
    if tries:
        tries.clear()
    return note


class Numbers(NamedTuple):
    """Of all steps.

    Attributes:
        order: of the step.
        later: the order of the next one.
        length: of the step.
        longer: the length of the next one.
        stiff: whether it was a step for stiff equations.
    """

    order: Any
    later: Any
    length: Any
    longer: Any
    stiff: Any


def numbers_of(notes: list[LsodaNote]) -> Numbers:
    """By step what was noted."""
    whole = np.array([note.whole for note in notes])
    length, longer = np.array([note.real[:2] for note in notes]).T
    return Numbers(whole[:, 2], whole[:, 3], length, longer, whole[:, 7] == 2)


@lru_cache(maxsize=1)
def _tables() -> tuple[Any, Any]:
    """Pascal's triangle by order, and the coefficients by method (Adams, backward differences) and order."""
    pascal, el = np.zeros((_ROWS, _ROWS, _ROWS)), np.zeros((2, _ROWS, _ROWS))
    for q in range(1, _ROWS):
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
    """The steps as they are meant.

    Attributes:
        t: their ends.
        h: their lengths.
        predict: what predicts, ``(N, r, r)``.
        el: the coefficients, ``(N, r)``.
    """

    t: Any
    h: Any
    predict: Any
    el: Any

    @property
    def predicted(self) -> Any:
        """What the value behind a step is made of, besides its slope: ``(N, r)``."""
        return self.predict[:, 0] - self.el[:, :1] * self.predict[:, 1]


def own_steps(notes: list[LsodaNote], slopes: _Slopes) -> dict[str, Any] | None:
    """The arrays of a record; None where it did something else, as a new beginning after several failures.

    Args:
        notes: of all steps.
        slopes: the right-hand side at many times and states.
    """
    count, n = len(notes), len(notes[0].y)
    order, later, h, longer, stiff = numbers_of(notes)
    t = np.array([note.t for note in notes])
    rows = 1 + int(max(order.max(), later.max()))
    S = np.zeros((count + 1, rows, n))
    for i, (note, k) in enumerate(zip(notes, (later + 1).tolist(), strict=True)):
        S[i + 1, :k] = note.rows(k)
    S[0, 0] = notes[0].y_old
    S[0, 1] = h[0] * slopes(np.array([notes[0].t_old]), S[0, :1])[0]

    pascal, el = (table[..., :rows] for table in _tables())
    powers = np.arange(rows)
    predict = pascal[order, :rows] * ((h / np.append(h[0], longer[:-1]))[:, None] ** powers)[:, None]
    formula = _Formula(t, h, predict, el[stiff.astype(int), order])
    P, Q, TS, TX = _led(formula, order, later, longer)
    X = (S[1:, 1] / longer[:, None])[:, None]
    if not _fits(P, Q, S, X):
        return None
    S[1:, 0] = [note.y for note in notes]
    made = {"S": S, "P": P, "TS": TS, "origin": t, "scale": longer, "first": h[0]}
    if not stiff.any():
        found = _evaluations(formula, S, X[:, 0], (Q, TX), [note.tries for note in notes])
        if found is not None:
            return made | found
    U, V = formula.predicted[:, None], (h * formula.el[:, 0])[:, None, None]
    return made | {"X": X, "T": t[:, None], "U": U, "V": V, "Q": Q, "TX": TX}


def _led(formula: _Formula, order: Any, later: Any, longer: Any) -> tuple[Any, Any, Any, Any]:
    """How the rows behind a step follow from those before it and from the slope, and how the interpolant's do."""
    _, h, predict, el = formula
    powers = np.arange(el.shape[1])
    corrected, enters = predict - el[:, :, None] * predict[:, 1:2], h[:, None] * el
    scaled = (longer / h)[:, None] ** powers
    TS, TX = scaled[:, :, None] * corrected, (scaled * enters)[:, :, None]
    more = np.where(powers == (order + 1)[:, None], (el[np.arange(len(h)), order] / (order + 1))[:, None], 0.0)
    scaled = np.where(powers <= later[:, None], scaled, 0.0)
    P = scaled[:, :, None] * (corrected - more[:, :, None] * predict[:, 1:2])
    return P, (scaled * (enters + h[:, None] * more))[:, :, None], TS, TX


def _fits(P: Any, Q: Any, S: Any, X: Any) -> bool:
    """Whether the relations hold, for one sum of all states with random weights."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, S.shape[-1])
    rows, slope = (S @ weights)[..., None], X[:, 0] @ weights
    wrong = np.abs((P @ rows[:-1] - rows[1:])[..., 0] + Q[..., 0] * slope[:, None])
    rows, slope = (np.abs(S) @ weights)[..., None], np.abs(X[:, 0]) @ weights
    return bool(np.all(wrong <= _CLOSE * ((np.abs(P) @ rows[:-1])[..., 0] + np.abs(Q[..., 0]) * slope[:, None])))


def _evaluations(
    formula: _Formula, S: Any, X: Any, weights: tuple[Any, Any], tries: list[tuple[tuple[Any, Any], ...]]
) -> dict[str, Any] | None:
    """The stages of Adams' method, one for each evaluation; None where they do not lead to what was found.

    Args:
        formula: the steps.
        S: the rows before and behind them.
        X: the last slope in each.
        weights: with what it enters ``S`` and the interpolant.
        tries: the last evaluations of each.
    """
    t, h, predict, el = formula
    count, n = X.shape
    nothing = (np.full(n, np.nan),) * 2
    whole = np.array([[*[nothing] * (_MOST - len(mine)), *mine] for mine in tries])
    Y, F = whole[:, :, 0], whole[:, :, 1]
    predicted, moved = (np.matmul(predict[:, i : i + 1], S[:-1]) for i in (0, 1))
    by = (h * el[:, 0])[:, None, None]
    size = np.abs(X).max(-1) + np.abs(moved).max((-1, -2)) / np.abs(h)
    close = _CLOSE * (np.abs(predicted).max((-1, -2)) + np.abs(by[:, 0, 0]) * size)
    begins = np.abs(Y - predicted).max(-1) <= close[:, None]
    follows = np.abs(Y[:, 1:] - (predicted + by * F[:, :-1] - el[:, :1, None] * moved)).max(-1) <= close[:, None]
    ends = np.abs(F[:, -1] - X).max(-1) <= _CLOSE * size
    led = np.logical_and.accumulate(np.column_stack([ends, follows[:, ::-1]]), axis=1)[:, ::-1] & begins
    if not led.any(-1).all():
        return None
    first = led.argmax(-1)
    last = _MOST - 1 - first
    stages = int(last.max()) + 1
    steps, stage = np.arange(count)[:, None], np.arange(stages)
    later = (stage > 0) & (stage <= last[:, None])  # what has no further try has further stages without weight
    U = np.where(later[..., None], formula.predicted[:, None], predict[:, :1])
    V = np.zeros((count, stages, stages))
    V[:, stage[1:], stage[:-1]] = np.where(later[:, 1:], by[:, 0], 0.0)
    Q, TX = (weight * (last[:, None] == stage)[:, None] for weight in weights)
    X = F[steps, np.minimum(first[:, None] + stage, _MOST - 1)]
    return {"X": X, "T": np.repeat(t[:, None], stages, axis=1), "U": U, "V": V, "Q": Q, "TX": TX}
