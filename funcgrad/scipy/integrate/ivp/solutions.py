"""The solution between its steps, with derivatives in time as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.transforms.stopping import stop_gradient


def valued(value: Any, y: Any) -> Any:
    """``value``, a constant, with the derivatives of ``y``."""
    return value + (y - stop_gradient(y))


def moved(flow: Callable[..., Any], t: Any, y: Any, by: Any, values: Sequence[Any]) -> Any:
    """The state at ``t + by`` from that at ``t``, or many in rows; ``by`` is zero but has derivatives, up to four.

    One step of the classical method of Runge and Kutta, whose derivatives in its length are those of the solution.
    """
    along = by[..., None] if backend.shape_of(by) else by
    half = 0.5 * along
    k1 = flow(t, y, *values)
    k2 = flow(t + 0.5 * by, y + half * k1, *values)
    k3 = flow(t + 0.5 * by, y + half * k2, *values)
    k4 = flow(t + by, y + along * k3, *values)
    return y + along / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


class Path(NamedTuple):
    """Steps and the polynomials between them.

    Attributes:
        S: states, ``(N + 1, r, n)``.
        X: slopes, ``(N, s, n)``.
        TS: what makes coefficients of a state.
        TX: what makes them of slopes.
        origin: where the time of each step begins.
        scale: its unit.
        ahead: 1 where the state behind a step is meant.
    """

    S: Any
    X: Any
    TS: Any
    TX: Any
    origin: Any
    scale: Any
    ahead: int

    def at(self, t: Any, steps: Any) -> Any:
        """The real states at the times ``t``, each within the step of the number in ``steps``: ``(m, n)``."""

        def take(a: Any, more: int = 0) -> Any:
            return fnp.take(a, steps + more, axis=0)

        rows: Any = fnp.einsum("mdr,mrj->mdj", take(self.TS), take(self.S, self.ahead))
        rows = rows + fnp.einsum("mdk,mkj->mdj", take(self.TX), take(self.X))
        x = ((t - take(self.origin)) / take(self.scale))[:, None]
        degrees = backend.shape_of(rows)[1]
        found = rows[:, degrees - 1]
        for power in reversed(range(degrees - 1)):
            found = found * x + rows[:, power]
        return found


@lru_cache(maxsize=1)
def solution_class() -> Any:
    """SciPy's ``OdeSolution``, which knows derivatives too. A class of SciPy's must not be loaded before it is used."""
    scipy: Any = import_scipy("integrate.solve_ivp", "scipy.integrate")

    class OdeSolution(scipy.OdeSolution):  # type: ignore[misc]
        """A solution at any time: SciPy's values, and derivatives in time and in what the solution depends on."""

        def __init__(self, plain: Any, at: Callable[[Any], Any]) -> None:
            self.__dict__.update(plain.__dict__)
            self._at = at

        def __call__(self, t: Any) -> Any:
            """The states at ``t``: a vector, or a column for each time."""
            t = as_value(t)
            if len(backend.shape_of(t)) > 1:
                raise ShapeError(f"integrate.OdeSolution: t must be a number or a vector, got {describe(t)}.")
            y = self._at(fnp.reshape(fnp.astype(t, float), (-1,)))
            return y if backend.shape_of(t) else tree.map(lambda leaf: leaf[..., 0], y)

    return OdeSolution


def segments(times: Any, t: Any, side: Literal["left", "right"]) -> Any:
    """The numbers of the steps that the times ``t`` are in; ``side`` as SciPy's solution has it."""
    rising = times[-1] >= times[0]
    ordered = times if rising else times[::-1]
    found = np.clip(np.searchsorted(ordered, t, side=side if rising else _OTHER[side]) - 1, 0, len(times) - 2)
    return found if rising else len(times) - 2 - found


_OTHER: dict[str, Literal["left", "right"]] = {"left": "right", "right": "left"}
