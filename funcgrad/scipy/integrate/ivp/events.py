"""Zeros of functions along a solution: their times by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.numpy.creation import as_value
from funcgrad.scipy.integrate.ivp.flows import Packing, numbers
from funcgrad.scipy.integrate.ivp.solutions import valued
from funcgrad.transforms.implicit import custom_root

__all__ = ["Event", "event_times"]

_CALL = "integrate.solve_ivp"


class Event:
    """A function whose zeros are wanted.

    Args:
        given: the caller's function, with ``terminal`` and ``direction``.
        fun: the same as a function of ``t``, the state and what it depends on.
        packing: how states become vectors.
    """

    def __init__(self, given: Callable[..., Any], fun: Callable[..., Any], packing: Packing) -> None:
        self.given, self.fun, self.packing = given, fun, packing

    def plain(self, values: Sequence[Any]) -> Callable[[Any, Any], Any]:
        """What SciPy calls."""

        def event(t: Any, y: Any) -> Any:
            return numbers(_CALL, self.fun(t, self.packing.unpacked(y), *values))

        for name in ("terminal", "direction"):
            if hasattr(self.given, name):
                setattr(event, name, getattr(self.given, name))
        return event

    def __call__(self, t: Any, y: Any, values: Sequence[Any]) -> Any:
        """The function of a time and a real state."""
        found = as_value(self.fun(t, self.packing.unpacked(self.packing.from_real(y)), *values))
        return fnp.astype(fnp.reshape(found, ()), float)


def event_times(event: Event, t: Any, along: Callable[[Any], Any], values: Sequence[Any]) -> Any:
    """The zeros ``t`` of one event, constants, with the derivatives of zeros.

    Args:
        event: the function.
        t: its zeros, in order.
        along: the real states at such times, in rows.
        values: what the function depends on.

    Raises:
        LinAlgError: the function does not cross zero but touches it.
    """

    def equation(times: Any) -> Any:
        states = along(times)
        count = backend.shape_of(times)[0]
        return fnp.stack([event(times[i], states[i], values) for i in range(count)])

    return valued(t, custom_root(equation, t, lambda _, start: start, _each_alone))


def _each_alone(matvec: Callable[[Any], Any], b: Any) -> Any:
    """The solution of a system whose matrix is diagonal."""
    slopes = matvec(backend.ones_like(b))
    if np.any(numbers(_CALL, slopes) == 0):
        raise np.linalg.LinAlgError(
            "integrate.solve_ivp: the time of an event that only touches zero has no derivative, got a slope of 0."
        )
    return b / slopes
