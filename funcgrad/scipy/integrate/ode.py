"""Ordinary differential equations: ``odeint`` and ``solve_ivp``, by the pair of Dormand and Prince.

The sizes of steps are chosen by values, of all examples of a ``vmap`` together, and are constants to every
derivative; each step is a sum of values of the function, through which all modes and orders pass. The other way is the
adjoint equation, which keeps no step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConvergenceError, InputError, ShapeError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.creation import as_value
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import Array, ArrayLike

__all__ = ["OdeResult", "odeint", "solve_ivp"]

#: ``f(y, t, *leaves)``, the right-hand side.
Flow = Callable[..., Any]

# Dormand and Prince, A family of embedded Runge-Kutta formulae, 1980, table 2
_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_ERRORS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class _Control(NamedTuple):
    """How steps are chosen: tolerances, and a fixed number of steps or the largest number of them."""

    call: str
    rtol: Any
    atol: Any
    steps: int | None
    most: int
    largest: float


def odeint(
    func: Callable[..., Any],
    y0: ArrayLike,
    t: ArrayLike,
    args: tuple[Any, ...] = (),
    Dfun: Any = None,
    col_deriv: Any = 0,
    full_output: Any = 0,
    ml: int | None = None,
    mu: int | None = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: Any = 0,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: Any = 0,
    tfirst: bool = False,
    *,
    steps: int | None = None,
    adjoint: bool = False,
) -> Array:
    """The solution of ``dy/dt = func(y, t, *args)`` with ``y(t[0]) = y0`` at the times ``t``.

    Differentiable in ``y0``, ``t`` and ``args``, and without ``adjoint`` in what ``func`` closes over. SciPy's
    signature; the method is the explicit one of Dormand and Prince, so that stiff equations take many steps, and hints
    for SciPy's method (``Dfun`` to ``mu``, ``h0``, ``hmin`` to ``printmessg``) have no effect.

    Args:
        func: the right-hand side, an array like ``y0``; it is called with traced values.
        y0: the first value, of any shape; a number counts as an array of one.
        t: times, in order.
        args: further arguments, arrays or trees of arrays.
        Dfun: no effect.
        col_deriv: no effect.
        full_output: only 0.
        ml: no effect.
        mu: no effect.
        rtol: the relative error of a step, 1.49e-8 by default.
        atol: the absolute error of a step, the same.
        tcrit: no effect: no step passes an output time.
        h0: no effect.
        hmax: the largest step, 0 for any.
        hmin: no effect.
        ixpr: no effect.
        mxstep: steps between two times at most; 0 for 10 000.
        mxhnil: no effect.
        mxordn: no effect.
        mxords: no effect.
        printmessg: no effect.
        tfirst: whether ``func`` takes ``t`` before ``y``.
        steps: a number of equal steps between each two times in place of chosen ones. Then it runs under ``jax.jit``.
        adjoint: whether reverse mode solves the adjoint equation backwards, in memory that does not grow with the
            steps (Chen et al., Neural ordinary differential equations, 2018); else it goes back through the steps.

    Returns:
        The values, of shape ``(len(t), *y0.shape)``.

    Raises:
        TypeError: ``full_output``; values known only later, without ``steps``.
        ValueError: a right-hand side of another shape.
        ConvergenceError: too many steps, or values that are not finite.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> grow = lambda y, t, k: k * y
        >>> odeint(grow, 1.0, np.array([0.0, 1.0]), (0.5,)).round(6)
        array([[1.      ],
               [1.648721]])
        >>> grad(lambda k: odeint(grow, 1.0, np.array([0.0, 1.0]), (k,), adjoint=True)[1, 0])(0.5).round(6)
        np.float64(1.648721)
    """
    check_callable("integrate.odeint", func)
    if full_output:
        raise InputError("integrate.odeint: there is no information on steps, got full_output. Leave it out.")
    rtol, atol = (1.49012e-8 if tol is None else tol for tol in (rtol, atol))
    control = _Control("integrate.odeint", rtol, atol, steps, mxstep or 10_000, hmax or math.inf)
    flow, moving = _flow(func, args, tfirst)
    y0, t = _start(y0), _inexact(as_value(t))
    if len(backend.shape_of(t)) != 1:
        raise ShapeError(f"{control.call}: t must be a vector of times, got {describe(t)}.")
    return (_adjoint if adjoint else _through)(flow, control, y0, t, *moving)


def _flow(func: Callable[..., Any], args: Any, tfirst: bool) -> tuple[Flow, list[Any]]:
    """``func`` as a function of the value, the time and the floating leaves of ``args``, and these leaves."""
    leaves, spec = tree.flatten(args if isinstance(args, tuple) else (args,))
    live = [i for i, leaf in enumerate(leaves) if _moves(leaf)]

    def flow(y: Any, t: Any, *values: Any) -> Any:
        full = list(leaves)
        for i, value in zip(live, values, strict=True):
            full[i] = value
        others = tree.unflatten(spec, full)
        return func(t, y, *others) if tfirst else func(y, t, *others)

    return flow, [leaves[i] for i in live]


def _moves(leaf: Any) -> bool:
    return (isinstance(leaf, Tracer) or backend.is_value(leaf)) and backend.is_inexact(leaf)


def _start(y0: Any) -> Any:
    y0 = _inexact(as_value(y0))
    return y0 if backend.shape_of(y0) else fnp.reshape(y0, (1,))


def _inexact(x: Any) -> Any:
    return x if backend.is_inexact(x) else fnp.astype(x, float)


def _through(flow: Flow, control: _Control, y0: Any, t: Any, *leaves: Any) -> Any:
    """The solution, each step of which is differentiable."""
    run = _Run(flow, control, leaves, y0)
    ys = [y0]
    for i in range(1, backend.shape_of(t)[0]):
        ys.append(run.across(ys[-1], t[i - 1], t[i])[-1][1])
    return fnp.stack(ys)


class _Run:
    """One solution on its way."""

    def __init__(self, flow: Flow, control: _Control, leaves: Sequence[Any], y0: Any) -> None:
        self.flow, self.control, self.leaves = flow, control, leaves
        self.shape, self.dtype = backend.shape_of(y0), backend.dtype_of(y0)
        self.real = np.empty(0, self.dtype).real.dtype
        self.size: float | None = None  # of the next step
        self.evaluations = 0

    def slope(self, y: Any, t: Any) -> Any:
        """The right-hand side, in the dtype of the values."""
        self.evaluations += 1
        found = as_value(self.flow(y, t, *self.leaves))
        if backend.shape_of(found) != self.shape:
            raise ShapeError(
                f"{self.control.call}: func must return an array like y, got {describe(found)}, expected "
                f"{list(self.shape)}."
            )
        return found if backend.dtype_of(found) == self.dtype else fnp.astype(found, self.dtype)

    def across(self, y: Any, start: Any, stop: Any) -> list[tuple[Any, Any]]:
        """Times and values behind each step from ``start`` to ``stop``."""
        length = fnp.astype(stop - start, self.real)
        first = self.slope(y, start)
        if self.control.steps is not None:
            return self._evenly(y, start, length, first)
        whole = float(np.abs(_numbers(self.control.call, length)).max(initial=0.0))
        if self.size is None:
            self.size = self._first_size(y, first)
        path: list[tuple[Any, Any]] = []
        done, count = 0.0, 0
        while done < 1:
            count += 1
            share = min(1 - done, min(self.size, self.control.largest) / whole) if whole else 1.0
            last = done + share > 1 - 1e-12
            share = 1 - done if last else share
            with np.errstate(over="ignore", invalid="ignore"):  # such a step is tried again, shorter
                moved, slope, error = self._step(y, start + done * length, share * length, first)
                size = self._error(y, moved, error)
            if not size <= 1 and whole:  # NaN too
                self.size = share * whole * (max(0.2, 0.9 * size**-0.2) if math.isfinite(size) else 0.1)
                if count > self.control.most or self.size < 1e-13 * whole:
                    self._give_up(count)
                continue
            if count > self.control.most:
                self._give_up(count)
            proposed = share * whole * min(10.0, 0.9 * max(size, 1e-10) ** -0.2)
            # what was cut off at an output time says little of how long the next may be
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
        """The value after a step of ``h``, the slope there, and an estimate of the error."""
        slopes = [first]
        for node, weights in zip(_NODES[1:], _STAGES[1:], strict=True):
            slopes.append(self.slope(y + h * _weighted(weights, slopes), t + node * h))
        moved = y + h * _weighted(_WEIGHTS, slopes)
        slopes.append(self.slope(moved, t + h))
        return moved, slopes[-1], h * _weighted(_ERRORS, slopes)

    def _error(self, y: Any, moved: Any, error: Any) -> float:
        """The error of a step, 1 being what is allowed; the worst of all examples."""
        old, new, off = [np.abs(_numbers(self.control.call, x)).astype(float) for x in (y, moved, error)]
        ratio = (off / (self.control.atol + self.control.rtol * np.maximum(old, new))) ** 2
        axes = tuple(range(-len(self.shape), 0))
        return float(np.sqrt(np.mean(ratio, axis=axes).max(initial=0.0))) if ratio.size else 0.0

    def _first_size(self, y: Any, slope: Any) -> float:
        """A first step: Hairer, Norsett and Wanner, Solving ordinary differential equations I, II.4."""
        value, change = [np.abs(_numbers(self.control.call, x)).astype(float) for x in (y, slope)]
        scale = self.control.atol + self.control.rtol * value
        sizes = [float(np.sqrt(np.mean((x / scale) ** 2))) if x.size else 0.0 for x in (value, change)]
        tiny = any(not 1e-5 < x < math.inf for x in sizes)
        return 1e-6 if tiny else 0.01 * sizes[0] / sizes[1]

    def _give_up(self, count: int) -> None:
        raise ConvergenceError(
            f"{self.control.call}: the steps became too many or too small, got {count} between two times. The "
            "equation is stiff or its solution not finite: allow more (mxstep), or larger errors (rtol, atol)."
        )


def _weighted(weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    total: Any = None
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            total = weight * slope if total is None else total + weight * slope
    return total


def _numbers(call: str, x: Any) -> np.ndarray:
    """The numbers behind ``x``, those of all examples of a ``vmap`` together."""
    while isinstance(x, Tracer):
        x = x.value
    try:
        return np.asarray(x)
    except TypeError as error:
        raise InputError(
            f"{call}: steps are chosen by values, got a value that is known only later. Pass steps=n for n equal steps."
        ) from error


def _adjoint(flow: Flow, control: _Control, y0: Any, t: Any, *leaves: Any) -> Any:
    """The solution, with the adjoint equation for reverse mode; forward mode goes through the steps."""
    if backend.dtype_of(y0).kind == "c":
        raise InputError(f"{control.call}: adjoint=True is for real values, got {describe(y0)}. Leave it out.")

    def fun(*values: Any) -> list[Any]:
        return [_through(flow, control, *values)]

    def fwd(*values: Any) -> tuple[list[Any], Any]:
        ys = custom_call(*values, rules=rules)[0]
        return [ys], (ys, *values)

    def push(values: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        value, pushed = jvp(lambda *some: _through(flow, control, *some), tuple(values), tuple(tangents))
        return [value], [pushed]

    def bwd(residuals: Any, cts: list[Any]) -> list[Any]:
        return _backwards(flow, control, residuals, cts[0])

    rules = CustomRules(control.call, fun, fwd, bwd, push)
    return custom_call(y0, t, *leaves, rules=rules)[0]


def _backwards(flow: Flow, control: _Control, residuals: Any, ct: Any) -> list[Any]:
    """The cotangents of ``y0``, ``t`` and the leaves, by the adjoint equation from the last time to the first.

    Its state is the value, the cotangent of the value, and those of the leaves, in one vector.
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
        slope, pull = vjp(lambda y, *some: as_value(flow(y, -s, *some)), y, *values)
        return joined([-slope, *pull(fnp.astype(adjoint, backend.dtype_of(slope)))])

    def slope(i: int) -> Any:
        return as_value(flow(ys[i], t[i], *leaves))

    adjoint = ct[-1]
    sums = [backend.zeros_like(leaf) for leaf in leaves]
    times: list[Any] = []
    for i in range(backend.shape_of(t)[0] - 1, 0, -1):
        times.append(fnp.sum(ct[i] * slope(i)))
        state = joined([ys[i], adjoint, *sums])
        ends = fnp.stack([-t[i], -t[i - 1]])
        _, adjoint, *sums = split(_adjoint(back, control, state, ends, *leaves)[-1])
        if i == 1:
            times.append(-fnp.sum(adjoint * slope(0)))
        adjoint = adjoint + ct[i - 1]
    if not times:
        times.append(backend.zeros_like(t[0]))
    found = [fnp.astype(s, backend.dtype_of(leaf)) for s, leaf in zip(sums, leaves, strict=True)]
    return [adjoint, fnp.astype(fnp.stack(times[::-1]), backend.dtype_of(t)), *found]


class OdeResult(NamedTuple):
    """What ``solve_ivp`` returns.

    Attributes:
        t: the times.
        y: the values, one column for each time.
        nfev: how often the right-hand side was computed.
        status: 0, the end was reached.
        message: the same in words.
        success: True.
    """

    t: Any
    y: Any
    nfev: int
    status: int = 0
    message: str = "The solver successfully reached the end of the integration interval."
    success: bool = True


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: ArrayLike,
    method: str = "RK45",
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    max_step: float = math.inf,
) -> OdeResult:
    """The solution of ``dy/dt = fun(t, y, *args)`` on an interval, as ``scipy.integrate.solve_ivp``.

    Differentiable through its steps; see ``odeint``, which also has the adjoint equation.

    Args:
        fun: the right-hand side, a vector.
        t_span: the first and the last time.
        y0: the first value, a vector.
        method: only "RK45", the pair of Dormand and Prince.
        t_eval: times in the interval, in order; None for those of the steps.
        dense_output: only False.
        events: only None.
        vectorized: no effect.
        args: further arguments.
        rtol: the relative error of a step.
        atol: the absolute error of a step.
        max_step: the largest step.

    Raises:
        TypeError: another method, events, dense output.
        ConvergenceError: too many steps, or values that are not finite.

    Example:
        >>> import numpy as np
        >>> solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[1.0], rtol=1e-8, atol=1e-8).y.round(6)
        array([[0.367879]])
    """
    check_callable("integrate.solve_ivp", fun)
    if method != "RK45" or dense_output or events is not None:
        raise InputError(
            f"integrate.solve_ivp: only RK45 without events and dense output is differentiable, got method={method!r}, "
            f"dense_output={dense_output}, events={events}. Leave them out."
        )
    control = _Control("integrate.solve_ivp", rtol, atol, None, 100_000, max_step)
    y = _start(y0)
    run = _Run(lambda y, t: fun(t, y, *(args or ())), control, (), y)
    start, stop = [_inexact(as_value(t)) for t in t_span]
    if t_eval is None:
        path = [(start, y), *run.across(y, start, stop)]
    else:
        path, before = [], start
        wanted = _inexact(as_value(t_eval))
        for i in range(backend.shape_of(wanted)[0]):
            y = run.across(y, before, wanted[i])[-1][1]
            before = wanted[i]
            path.append((before, y))
    times, values = [fnp.stack(column) for column in zip(*path, strict=True)]
    return OdeResult(times, fnp.moveaxis(values, 0, -1), run.evaluations)
