"""Explicit Runge-Kutta steps that every transform can trace, those of JAX included.

Step sizes depend on values, under ``vmap`` on those of all examples together, and are constants for every derivative;
each step is a sum of values of the function. With a fixed number of steps nothing looks at values, so ``jax.jit`` can
trace them. The alternative to differentiating the steps is the adjoint equation, which keeps no step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe, plain_value
from funcgrad.errors import ConvergenceError, InputError, ShapeError, StagingError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.reducing import as_inexact
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.flows import separate_leaves
from funcgrad.transforms.products import jvp, vjp

#: Type of a right-hand side ``f(y, t, *leaves)``.
Flow = Callable[..., Any]

#: Names of the methods that this module has.
TABLES = ("RK23", "RK45", "DOP853")


class _Table(NamedTuple):
    """An explicit Runge-Kutta method; ``errors`` has a weight for the slope at the end too."""

    nodes: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    errors: tuple[float, ...]
    order: int


@lru_cache
def _table(method: str) -> _Table:
    """Return SciPy's coefficients of a method."""
    of: Any = getattr(import_scipy("integrate.solve_ivp", "scipy.integrate"), method)
    stages = tuple(tuple(row[:i].tolist()) for i, row in enumerate(of.A))
    errors = of.E5 if method == "DOP853" else of.E
    return _Table(tuple(of.C.tolist()), stages, tuple(of.B.tolist()), tuple(errors.tolist()), of.order)


class Control(NamedTuple):
    """Settings of the steps: tolerances, and a fixed number of steps or the largest number of steps."""

    call: str
    rtol: Any
    atol: Any
    steps: int | None
    most: int
    largest: float
    method: str = "RK45"


def flow_of(func: Callable[..., Any], args: Any, tfirst: bool) -> tuple[Flow, list[Any]]:
    """Return ``func`` as a function of value, time and the inexact leaves of ``args``, and a list of these leaves."""
    at_point, values = separate_leaves(
        lambda point, *others: func(*point, *others), args if isinstance(args, tuple) else (args,)
    )
    return lambda y, t, *some: at_point((t, y) if tfirst else (y, t), *some), values


def start_of(y0: Any) -> Any:
    """Return the first value; a number counts as an array with one entry."""
    y0 = as_inexact(y0)
    return y0 if backend.shape_of(y0) else fnp.reshape(y0, (1,))


def through_steps(flow: Flow, control: Control, y0: Any, t: Any, *leaves: Any) -> Any:
    """Return the solution by steps, each of which is differentiable."""
    run = Run(flow, control, leaves, y0)
    ys = [y0]
    for i in range(1, backend.shape_of(t)[0]):
        ys.append(run.across(ys[-1], t[i - 1], t[i])[-1][1])
    return fnp.stack(ys)


class Run:
    """One solution in progress."""

    def __init__(self, flow: Flow, control: Control, leaves: Sequence[Any], y0: Any) -> None:
        self.flow, self.control, self.leaves = flow, control, leaves
        self.shape, self.dtype = backend.shape_of(y0), backend.dtype_of(y0)
        self.real = np.empty(0, self.dtype).real.dtype
        self.size: float | None = None  # size of the next step
        self.evaluations = 0
        self.table = _table(control.method)

    def slope(self, y: Any, t: Any) -> Any:
        """Return the right-hand side, in the dtype of the values."""
        self.evaluations += 1
        found = as_value(self.flow(y, t, *self.leaves))
        if backend.shape_of(found) != self.shape:
            raise ShapeError(
                f"{self.control.call}: func must return an array like y, got {describe(found)}, expected "
                f"{list(self.shape)}."
            )
        return found if backend.dtype_of(found) == self.dtype else fnp.astype(found, self.dtype)

    def across(self, y: Any, start: Any, stop: Any) -> list[tuple[Any, Any]]:
        """Return times and values after each step from ``start`` to ``stop``."""
        length = fnp.astype(stop - start, self.real)
        first = self.slope(y, start)
        if self.control.steps is not None:
            return self._evenly(y, start, length, first)
        whole = float(np.abs(_constant_array(self.control.call, length)).max(initial=0.0))
        if self.size is None:
            self.size = self._first_size(y, first)
        path: list[tuple[Any, Any]] = []
        power = -1 / self.table.order
        done, count = 0.0, 0
        while done < 1:
            count += 1
            share = min(1 - done, min(self.size, self.control.largest) / whole) if whole else 1.0
            last = done + share > 1 - 1e-12
            share = 1 - done if last else share
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is repeated, shorter
                moved, slope, error = self._step(y, start + done * length, share * length, first)
                size = self._error(y, moved, error)
            if not size <= 1 and whole:  # true for NaN too
                self.size = share * whole * (max(0.2, 0.9 * size**power) if math.isfinite(size) else 0.1)
                if count > self.control.most or self.size < 1e-13 * whole:
                    self._give_up(count)
                continue
            if count > self.control.most:
                self._give_up(count)
            proposed = share * whole * min(10.0, 0.9 * max(size, 1e-10) ** power)
            # a step that was cut off at an output time says little about the length of the next one
            self.size = max(self.size, proposed) if last else proposed
            done, y, first = (1.0 if last else done + share), moved, slope
            path.append((stop if last else start + done * length, y))
        return path

    def _evenly(self, y: Any, start: Any, length: Any, first: Any) -> list[tuple[Any, Any]]:
        n, path = self.control.steps or 1, []
        for i in range(n):
            y, first, _ = self._step(y, start + i / n * length, length * (1 / n), first)
            path.append((start + (i + 1) / n * length, y))
        return path

    def _step(self, y: Any, t: Any, h: Any, first: Any) -> tuple[Any, Any, Any]:
        """Return the value after a step of ``h``, the slope there, and an estimate of the error."""
        slopes = [first]
        for node, weights in zip(self.table.nodes[1:], self.table.stages[1:], strict=True):
            slopes.append(self.slope(y + h * _weighted(weights, slopes), t + node * h))
        moved = y + h * _weighted(self.table.weights, slopes)
        slopes.append(self.slope(moved, t + h))
        return moved, slopes[-1], h * _weighted(self.table.errors, slopes)

    def _error(self, y: Any, moved: Any, error: Any) -> float:
        """Return the error of a step in units of the tolerance; under ``vmap`` the largest of all examples."""
        old, new, off = [np.abs(_constant_array(self.control.call, x)).astype(float) for x in (y, moved, error)]
        ratio = (off / (self.control.atol + self.control.rtol * np.maximum(old, new))) ** 2
        axes = tuple(range(-len(self.shape), 0))
        return float(np.sqrt(np.mean(ratio, axis=axes).max(initial=0.0))) if ratio.size else 0.0

    def _first_size(self, y: Any, slope: Any) -> float:
        """Return a first step size (Hairer, Norsett and Wanner, Solving ordinary differential equations I, II.4)."""
        value, change = [np.abs(_constant_array(self.control.call, x)).astype(float) for x in (y, slope)]
        scale = self.control.atol + self.control.rtol * value
        sizes = [float(np.sqrt(np.mean((x / scale) ** 2))) if x.size else 0.0 for x in (value, change)]
        tiny = any(not 1e-5 < x < math.inf for x in sizes)
        return 1e-6 if tiny else 0.01 * sizes[0] / sizes[1]

    def _give_up(self, count: int) -> None:
        raise ConvergenceError(
            f"{self.control.call}: the steps are too many or too small, got {count} between two times. The "
            "equation is stiff or its solution not finite: allow more (mxstep), or larger errors (rtol, atol)."
        )


def _weighted(weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    total: Any = None
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            total = weight * slope if total is None else total + weight * slope
    return total


def _constant_array(call: str, x: Any) -> np.ndarray:
    """Return the numbers behind ``x``, those of all examples of a ``vmap`` together."""
    try:
        return np.asarray(plain_value(x))
    except TypeError as error:
        raise StagingError(
            f"{call}: steps are chosen by values, got a value that is unknown while JAX traces. Pass steps=n for "
            "n equal steps."
        ) from error


def adjoint_solution(flow: Flow, control: Control, y0: Any, t: Any, *leaves: Any) -> Any:
    """Return the solution, with the adjoint equation for reverse mode; forward mode differentiates the steps."""
    if backend.dtype_of(y0).kind == "c":
        raise InputError(f"{control.call}: adjoint=True is for real values, got {describe(y0)}. Leave it out.")

    def fun(*values: Any) -> list[Any]:
        return [through_steps(flow, control, *values)]

    def fwd(*values: Any) -> tuple[list[Any], Any]:
        ys = custom_call(*values, rules=rules)[0]
        return [ys], (ys, *values)

    def jvp_rule(values: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        value, pushed = jvp(lambda *some: through_steps(flow, control, *some), tuple(values), tuple(tangents))
        return [value], [pushed]

    def bwd(residuals: Any, cts: list[Any]) -> list[Any]:
        return _backwards(flow, control, residuals, cts[0])

    rules = CustomRules(control.call, fun, fwd, bwd, jvp_rule)
    return custom_call(y0, t, *leaves, rules=rules)[0]


def _backwards(flow: Flow, control: Control, residuals: Any, ct: Any) -> list[Any]:
    """Return the cotangents of ``y0``, ``t`` and the leaves, by the adjoint equation solved backwards in time.

    The state of the adjoint equation is one vector: the value, its cotangent, and the cotangents of the leaves.
    """
    ys, y0, t, *leaves = residuals
    shapes = [backend.shape_of(x) for x in (y0, y0, *leaves)]
    bounds = np.cumsum([0, *[math.prod(shape) for shape in shapes]]).tolist()

    def split(state: Any) -> list[Any]:
        parts = zip(bounds[:-1], bounds[1:], shapes, strict=True)
        return [fnp.reshape(state[a:b], shape) for a, b, shape in parts]

    def joined(parts: Sequence[Any]) -> Any:
        return fnp.concatenate([fnp.astype(fnp.ravel(p), backend.dtype_of(y0)) for p in parts])

    def back(state: Any, s: Any, *values: Any) -> Any:
        y, adjoint, *_ = split(state)
        slope, pullback = vjp(lambda y, *some: as_value(flow(y, -s, *some)), y, *values)
        return joined([-slope, *pullback(fnp.astype(adjoint, backend.dtype_of(slope)))])

    def slope(i: int) -> Any:
        return as_value(flow(ys[i], t[i], *leaves))

    adjoint = ct[-1]
    sums = [backend.zeros_like(leaf) for leaf in leaves]
    times: list[Any] = []
    for i in range(backend.shape_of(t)[0] - 1, 0, -1):
        times.append(fnp.sum(ct[i] * slope(i)))
        state = joined([ys[i], adjoint, *sums])
        ends = fnp.stack([-t[i], -t[i - 1]])
        _, adjoint, *sums = split(adjoint_solution(back, control, state, ends, *leaves)[-1])
        if i == 1:
            times.append(-fnp.sum(adjoint * slope(0)))
        adjoint = adjoint + ct[i - 1]
    if not times:
        times.append(backend.zeros_like(t[0]))
    found = [fnp.astype(s, backend.dtype_of(leaf)) for s, leaf in zip(sums, leaves, strict=True)]
    return [adjoint, fnp.astype(fnp.stack(times[::-1]), backend.dtype_of(t)), *found]
