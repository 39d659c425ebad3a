"""Products with the Jacobians of many stages, one after the other, as long sweeps need them.

A pullback of Python's engine costs more than the right-hand side of a few hundred numbers. Here the part that does not
depend on the vector is computed for all stages at once, as a batch; what is left, the linear part, is recorded once,
written down as straight NumPy code, and run for each stage with the numbers of that stage.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from funcgrad.batching import is_batched
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, InputError, NotDifferentiableError
from funcgrad.numpy_code.running import attempt
from funcgrad.scipy.integrate.ivp.flows import Flow
from funcgrad.transforms.closures import Hoisted
from funcgrad.transforms.compiled.straight import straight
from funcgrad.transforms.products import jvp, recorded, vjp
from funcgrad.transforms.vectorize import vmap

__all__ = ["Products", "pulled"]

_CALL = "integrate.solve_ivp"
#: Products of longer states cost more than Python does, and what they need takes memory.
_LONG = 1 << 13
#: For how many products it pays to write the linear part down: that takes as long as thirty of them.
_MANY = 40


def pulled(flow: Flow, T: Any, Y: Any, values: tuple[Any, ...], ct: Any) -> list[Any]:
    """The cotangents of ``values`` by those of the slopes of all states ``Y``."""
    return list(vjp(lambda *some: flow.many(T, Y, *some), *values)[1](ct)) if values else []


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
        self._run: Callable[..., Any] | None = None
        self._held: list[Any] = []  # for each place what the linear part needs there
        self._pull: Callable[[Any], Any] | None = None  # to the values, where all places are recorded together
        if len(Y) > 1 and Y.shape[-1] <= _LONG and not flow.one_by_one:
            try:
                self._record_all()
            except (ConcretizationError, NotDifferentiableError, InputError, TypeError, IndexError):
                self._run = self._pull = None  # the function looks at values

    def _record_all(self) -> None:
        """Record the product at one place, of which the numbers are those of all."""
        found: list[Hoisted] = []

        def slopes(*values: Any) -> Any:
            def slope(t: Any, y: Any) -> Any:
                value, product = self._product(t, y, values)
                found[:] = [Hoisted(_CALL, product, np.zeros(self.Y.shape[1:]))]
                return value

            return vmap(slope)(self.T, self.Y)

        if self.transposed and self.values:
            self._pull = _pulling(slopes, *self.values)[1]
        else:
            slopes(*self.values)
        recorded = found[0]
        columns = [_numbers(value.value) if is_batched(value) else repeat(_numbers(value)) for value in recorded.held]
        self._held = list(zip(*columns, strict=False)) if recorded.held else [()] * len(self.Y)
        self._run = lambda v, *held: recorded(v, held)
        if len(self.Y) > _MANY:
            example = np.linspace(0.5, 1.5, self.Y[0].size).reshape(self.Y.shape[1:])
            self._run = straight(recorded, example, self._held[0]) or self._run

    def _product(self, t: Any, y: Any, values: tuple[Any, ...]) -> tuple[Any, Callable[[Any], Any]]:
        """The slope at one place, and the product there."""
        slope = self.flow if self.Y.ndim == 2 else self.flow.many
        fun = lambda y: slope(t, y, *values)
        if self.transposed:
            value, pull = _pulling(fun, y)
            return value, lambda v: pull(v)[0]
        return y, lambda v: jvp(fun, (y,), (v,))[1]

    def __call__(self, i: int, v: Any) -> Any:
        """The product at place ``i`` with ``v``."""
        if self._run is not None:
            return self._run(v, *self._held[i])
        return self._product(float(self.T[i]) if self.Y.ndim == 2 else self.T[i], self.Y[i], self.values)[1](v)

    def pulled(self, ct: Any) -> list[Any]:
        """The cotangents of the values by those of the slopes at all places."""
        if self._pull is not None:
            return list(self._pull(ct))
        return pulled(self.flow, self.T, self.Y, self.values, ct)


def _pulling(fun: Callable[..., Any], *primals: Any) -> tuple[Any, ...]:
    """``vjp``, whose pullback is gone before anybody can write to an array."""
    found: tuple[Any, ...] = attempt(fun, lambda fun: recorded(fun, primals, False, {}, lasting=False))
    return found


def _numbers(x: Any) -> Any:
    """``x`` without tracers, all of which are of transforms that have ended."""
    while isinstance(x, Tracer):
        x = x.value
    return x
