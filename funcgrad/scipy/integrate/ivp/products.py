"""Products with the Jacobians of many stages, one stage after the other, as long sweeps need them.

A pullback of Python's engine costs more than the right-hand side of a few hundred numbers. Here the part that does not
depend on the vector is computed for all stages at once, as a batch; what is left, the linear part, is recorded once
and run for each stage with the numbers of that stage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.batching import is_batched
from funcgrad.errors import ConcretizationError, InputError, NotDifferentiableError
from funcgrad.scipy.integrate.ivp.flows import Flow
from funcgrad.transforms.closures import Hoisted
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.vectorize import vmap

__all__ = ["Products"]

_CALL = "integrate.solve_ivp"
#: Products of longer states cost more than Python does, and what they need takes memory.
_LONG = 1 << 13


class Products:
    """Products of the Jacobian at each of many stages with a vector, or of the transposed one.

    Args:
        flow: the right-hand side.
        T: the times of the stages, ``(m,)``.
        Y: the states there, ``(m, n)``.
        values: what the right-hand side depends on besides.
        transposed: whether products with the transposed Jacobians are wanted.
    """

    def __init__(self, flow: Flow, T: Any, Y: Any, values: tuple[Any, ...], transposed: bool) -> None:
        self.flow, self.T, self.Y, self.values, self.transposed = flow, T, Y, values, transposed
        self._recorded: list[Hoisted] = []
        self._held: list[tuple[bool, Any]] = []  # whether there is one for each stage
        if len(Y) > 1 and Y.shape[1] <= _LONG and not flow.one_by_one:
            try:
                vmap(self._record)(T, Y)
            except (ConcretizationError, NotDifferentiableError, InputError, TypeError, IndexError):
                self._recorded.clear()  # the function looks at values

    def _record(self, t: Any, y: Any) -> Any:
        """Record the product at one stage, of which the numbers are those of all."""
        recorded = Hoisted(_CALL, self._product(t, y), np.zeros(self.Y.shape[1]))
        held = [(is_batched(value), value) for value in recorded.held]
        self._held = [(mine, value.value if mine else value) for mine, value in held]
        self._recorded.append(recorded)
        return t

    def _product(self, t: Any, y: Any) -> Any:
        fun = lambda y: self.flow(t, y, *self.values)
        if self.transposed:
            pull = vjp(fun, y)[1]
            return lambda v: pull(v)[0]
        return lambda v: jvp(fun, (y,), (v,))[1]

    def __call__(self, i: int, v: Any) -> Any:
        """The product at stage ``i`` with ``v``."""
        if self._recorded:
            return self._recorded[0](v, [value[i] if mine else value for mine, value in self._held])
        return self._product(float(self.T[i]), self.Y[i])(v)
