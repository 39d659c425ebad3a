"""The solution between its steps, with derivatives in time too."""

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


def with_derivatives_of(value: Any, y: Any) -> Any:
    """Return the constant ``value`` with the derivatives of ``y``."""
    return value + (y - stop_gradient(y))


def advanced(flow: Callable[..., Any], t: Any, y: Any, by: Any, values: Sequence[Any]) -> Any:
    """Return the state at ``t + by`` from the state at ``t``, or many in rows; ``by`` is zero but has derivatives.

    This is one step of the classical Runge-Kutta method. Up to order four its derivatives in ``by`` are the solution's.
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
        TS: the weights of a state in the coefficients.
        TX: the weights of slopes in the coefficients.
        origin: the time at which the time of each step begins.
        scale: the unit of the time of each step.
        ahead: 1 if the polynomials use the state after a step, 0 for the state before.
    """

    S: Any
    X: Any
    TS: Any
    TX: Any
    origin: Any
    scale: Any
    ahead: int

    def at(self, t: Any, steps: Any) -> Any:
        """Return the real states, ``(m, n)``, at the times ``t``; ``steps`` holds the index of each time's step."""

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
    """Return SciPy's ``OdeSolution`` with derivatives. It is defined at first use, which is when SciPy is loaded."""
    scipy: Any = import_scipy("integrate.solve_ivp", "scipy.integrate")

    class OdeSolution(scipy.OdeSolution):  # type: ignore[misc]
        """The solution at any time: SciPy's values, and derivatives in time and in the values it depends on."""

        def __init__(self, plain: Any, at: Callable[[Any], Any]) -> None:
            self.__dict__.update(plain.__dict__)
            self._at = at

        def __call__(self, t: Any) -> Any:
            """Return the states at ``t``: a vector, or a column for each time."""
            t = as_value(t)
            if len(backend.shape_of(t)) > 1:
                raise ShapeError(f"integrate.OdeSolution: t must be a number or a vector, got {describe(t)}.")
            y = self._at(fnp.reshape(fnp.astype(t, float), (-1,)))
            return y if backend.shape_of(t) else tree.map(lambda leaf: leaf[..., 0], y)

    return OdeSolution


def steps_containing(times: Any, t: Any, side: Literal["left", "right"]) -> Any:
    """Return the indices of the steps that contain the times ``t``; ``side`` is as in SciPy's solution."""
    rising = times[-1] >= times[0]
    ordered = times if rising else times[::-1]
    found = np.clip(np.searchsorted(ordered, t, side=side if rising else _OTHER[side]) - 1, 0, len(times) - 2)
    return found if rising else len(times) - 2 - found


_OTHER: dict[str, Literal["left", "right"]] = {"left": "right", "right": "left"}
