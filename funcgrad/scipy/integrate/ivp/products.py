"""Products with the Jacobians of many stages, one after the other, as long sweeps need them.

A pullback of Python's engine costs more than the right-hand side of a few hundred numbers. Here the part that does not
depend on the vector is computed for all stages at once, as a batch; what is left, the linear part, is recorded once,
written down as straight NumPy code, and run for each stage with the numbers of that stage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.batching import is_batched
from funcgrad.errors import ConcretizationError, InputError, NotDifferentiableError
from funcgrad.scipy.integrate.ivp.flows import Flow
from funcgrad.transforms.closures import Hoisted
from funcgrad.transforms.compiled.straight import straight
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.vectorize import vmap

__all__ = ["Products"]

_CALL = "integrate.solve_ivp"
#: Products of longer states cost more than Python does, and what they need takes memory.
_LONG = 1 << 13
#: For how many products it pays to write the linear part down: that takes as long as thirty of them.
_MANY = 40


class Products:
    """Products of the Jacobian at each of many places with a vector, or of the transposed one.

    Args:
        flow: the right-hand side.
        T: the times of the places, ``(m,)``, or ``(m, s)`` where each place has several stages.
        Y: the states there, ``(m, n)`` or ``(m, s, n)``.
        values: what the right-hand side depends on besides.
        transposed: whether products with the transposed Jacobians are wanted.
    """

    def __init__(self, flow: Flow, T: Any, Y: Any, values: tuple[Any, ...], transposed: bool) -> None:
        self.flow, self.T, self.Y, self.values, self.transposed = flow, T, Y, values, transposed
        self._recorded: list[Hoisted] = []
        self._held: list[tuple[bool, Any]] = []  # whether there is one for each place
        self._program: Callable[..., Any] | None = None
        if len(Y) > 1 and Y.shape[-1] <= _LONG and not flow.one_by_one:
            try:
                vmap(self._record)(T, Y)
            except (ConcretizationError, NotDifferentiableError, InputError, TypeError, IndexError):
                self._recorded.clear()  # the function looks at values
        if self._recorded and len(Y) > _MANY:
            example = np.linspace(0.5, 1.5, Y[0].size).reshape(Y.shape[1:])
            self._program = straight(self._recorded[0], example, self._held_at(0))

    def _record(self, t: Any, y: Any) -> Any:
        """Record the product at one place, of which the numbers are those of all."""
        recorded = Hoisted(_CALL, self._product(t, y), np.zeros(self.Y.shape[1:]))
        held = [(is_batched(value), value) for value in recorded.held]
        self._held = [(mine, value.value if mine else value) for mine, value in held]
        self._recorded.append(recorded)
        return t

    def _product(self, t: Any, y: Any) -> Any:
        slope = self.flow if self.Y.ndim == 2 else self.flow.many
        fun = lambda y: slope(t, y, *self.values)
        if self.transposed:
            pull = vjp(fun, y)[1]
            return lambda v: pull(v)[0]
        return lambda v: jvp(fun, (y,), (v,))[1]

    def _held_at(self, i: int) -> list[Any]:
        return [value[i] if mine else value for mine, value in self._held]

    def __call__(self, i: int, v: Any) -> Any:
        """The product at place ``i`` with ``v``."""
        if self._program is not None:
            return self._program(v, *self._held_at(i))
        if self._recorded:
            return self._recorded[0](v, self._held_at(i))
        return self._product(float(self.T[i]) if self.Y.ndim == 2 else self.T[i], self.Y[i])(v)
