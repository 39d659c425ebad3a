"""Minima under constraints: SciPy's forms of constraints, and the Karush-Kuhn-Tucker equations.

At a minimum the gradient is a combination of the gradients of the active constraints, with multipliers as coefficients
(Nocedal and Wright, Numerical Optimization, 2006, equation 12.34). Active constraints are determined at the minimum and
the derivative assumes that they stay active. A zero multiplier of an active constraint is a kink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.batching import BatchTrace, is_in_batch
from funcgrad.core import is_in_transform
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.numpy_code.rebuilding import SelfRebuilding
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.bounds import Limits, bounded_stationarity
from funcgrad.scipy.optimize.implicit import Problem, differentiated, plain, vector
from funcgrad.shared_state import active_traces
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.gradients import grad
from funcgrad.transforms.jacobians import jacrev
from funcgrad.transforms.side_effects import isolated, settle, settle_each
from funcgrad.transforms.stopping import stop_gradient

#: Largest distance to the limit of an active constraint, relative to ``1 + abs(value)``; SciPy's methods come so near.
ACTIVE_TOLERANCE = 1e-5
#: Length of the independent part of a gradient, relative to the gradient, that counts as zero.
_DEPENDENT = 1e-8


class Constraint(NamedTuple):
    """A constraint ``low <= fun(x, *args) <= high``.

    Attributes:
        given: the constraint as the caller gave it; SciPy's settings are read from it.
        fun: a function, or the matrix of a linear function.
        low: the lower limits.
        high: the upper limits.
        args: further arguments.
    """

    given: Any
    fun: Any
    low: Any
    high: Any
    args: tuple[Any, ...]

    def value(self, x: Any) -> Any:
        """Return the constrained values at ``x`` as a vector."""
        y = self.fun(x, *self.args) if callable(self.fun) else fnp.atleast_2d(as_value(self.fun)) @ x
        y = fnp.reshape(fnp.asarray(y), (-1,))
        return y if backend.dtype_of(y).kind == "c" else fnp.astype(y, float)  # complex at SciPy's complex steps


def as_constraints(constraints: Any) -> list[Constraint]:
    """Return a list from one or several constraints: dictionaries, ``LinearConstraint``, ``NonlinearConstraint``."""
    given = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    found = [_as_constraint(one) for one in given]
    inside = is_in_transform()
    return [
        one._replace(fun=isolated(one.fun, one.args) if inside else SelfRebuilding(one.fun))
        if callable(one.fun)
        else one
        for one in found
    ]


def settle_all(functions: Sequence[Any], args: tuple[Any, ...], constraints: list[Constraint], x: Any) -> None:
    """Let functions and constraints leave behind what their calls at ``x``, the minimum, leave."""
    settle_each(functions, x, args)
    for one in constraints:
        settle(one.fun, x, *one.args)


def _as_constraint(given: Any) -> Constraint:
    if isinstance(given, dict):
        args = given.get("args", ())
        high = 0.0 if given["type"].lower() == "eq" else np.inf
        return Constraint(given, given["fun"], 0.0, high, args if isinstance(args, tuple) else (args,))
    if hasattr(given, "fun"):
        return Constraint(given, given.fun, given.lb, given.ub, ())
    matrix = given.A.toarray() if hasattr(given.A, "toarray") else given.A
    return Constraint(given, matrix, given.lb, given.ub, ())


def hoist_closure(call: str, one: Constraint, point: Any) -> Constraint:
    """Return ``one`` with the ``vmap`` batches that its function closes over turned into further arguments.

    The caller's Jacobian and Hessian may close over batches too: funcgrad's Jacobian and SciPy's BFGS replace them.
    """
    if not callable(one.fun) or not any(type(trace) is BatchTrace for trace in active_traces()):
        return one
    closure, given = RecordedClosure(call, one.value, point, checks_branches=True), one.given
    if not any(map(is_in_batch, closure.captured)):
        return one
    if isinstance(given, dict):
        given = {"type": given["type"]}
    else:
        hess = import_scipy(call).BFGS() if callable(given.hess) else given.hess
        kept = ("keep_feasible", "finite_diff_rel_step", "finite_diff_jac_sparsity")
        given = SimpleNamespace(jac="2-point", hess=hess, **{name: getattr(given, name) for name in kept})
    return Constraint(given, lambda x, *held: closure(x, held), one.low, one.high, tuple(closure.captured))


def for_scipy(problem: Problem, constraints: list[Constraint], point: Any) -> list[Any]:
    """Return the constraints as functions of plain values, with exact Jacobians where the caller gave none."""
    return [_for_scipy(problem, one, point) for one in constraints]


def _for_scipy(problem: Problem, one: Constraint, point: Any) -> Any:
    call, given = problem.call, one.given

    def value(x: Any) -> Any:
        return plain(call, one.value(x))

    if isinstance(given, dict):
        jac = given.get("jac")
        if callable(jac):
            jac = lambda x, *_: plain(call, given["jac"](x, *one.args))
        elif jac is None:
            jac = problem.exact(jacrev(one.value), point)
        return {"type": given["type"], "fun": lambda x, *_: value(x), **({"jac": jac} if jac is not None else {})}
    optimize, limits = import_scipy(call), (vector(call, one.low), vector(call, one.high))
    if not callable(one.fun):
        return optimize.LinearConstraint(vector(call, one.fun), *limits, given.keep_feasible)
    jac, hess = given.jac, given.hess
    if callable(jac):
        jac = lambda x: plain(call, given.jac(x))
    elif jac == "2-point":  # the default
        jac = problem.exact(jacrev(one.value), point) or jac
    if callable(hess):
        hess = lambda x, v: plain(call, given.hess(x, v))
    rest = (given.keep_feasible, given.finite_diff_rel_step, given.finite_diff_jac_sparsity)
    return optimize.NonlinearConstraint(value, *limits, jac, hess, *rest)


def values_of(constraints: list[Constraint], x: Any) -> Any:
    """Return all constrained values at ``x``, their lower limits and their upper limits."""
    if not constraints:
        return (np.empty(0),) * 3
    values = [one.value(x) for one in constraints]
    ends = [(fnp.astype(as_value(one.low), float), fnp.astype(as_value(one.high), float)) for one in constraints]
    low, high = ([fnp.broadcast_to(end[i], fnp.shape(y)) for end, y in zip(ends, values, strict=True)] for i in (0, 1))
    return tuple(fnp.concatenate(parts) for parts in (values, low, high))


def equations(
    value: Callable[[Any], Any], constraints: list[Constraint], x: Any, within: Limits | None, forces: Any = None
) -> tuple[Callable[[Any], Any], Any]:
    """Return the equations of a minimum at ``x`` in unknowns and multipliers, and the root of these equations.

    Args:
        value: the function.
        constraints: the constraints.
        x: the minimum.
        within: bounds of the unknowns.
        forces: the multipliers of an interior-point method for all constrained values, then for all bounds; positive at
            an upper limit. A distance to a limit, times its multiplier, is then a small number, not 0, so the distance
            to an active one may be any that is less than the multiplier. None for other methods.
    """
    size, slope = fnp.size(x), stop_gradient(grad(value)(x))
    fixed = stop_gradient(x)
    bounded = values_of(constraints, fixed)
    y, low, high = map(stop_gradient, bounded)
    jacobian = stop_gradient(jacrev(lambda x: values_of(constraints, x)[0])(x))
    push, push_of_bounds = (0.0, 0.0) if forces is None else (forces[: fnp.size(y)], forces[fnp.size(y) :])
    free = fnp.ones(size) if within is None else _is_inside(fixed, within, push_of_bounds)
    equal = low == high
    floor, ceiling = _at_limits(y, low, high, push)

    def multipliers(holds: Any, free: Any) -> Any:
        return fnp.linalg.pinv(fnp.swapaxes(jacobian * fnp.where(holds, 1.0, 0.0)[:, None] * free, 0, 1)) @ (
            slope * free
        )

    some = multipliers(fnp.logical_or(floor, ceiling), free)
    pushed = fnp.logical_or(fnp.logical_and(floor, some > 0), fnp.logical_and(ceiling, some < 0))
    holds = fnp.logical_or(equal, pushed)
    if not any(
        map(differentiated, (*bounded, *(within or ())))
    ):  # else dependent constraints may contradict each other
        kept = _independent(jacobian, free, holds)
        if within is not None and any_true(np.logical_not, kept == holds):
            left = lambda free: slope - fnp.matmul(multipliers(holds, free), jacobian)
            held = _held_by_constraints(fixed, within, push_of_bounds, free, left, fnp.size(y))
            free = free + held
            within = tuple(fnp.where(held > 0, side, end) for side, end in zip((-np.inf, np.inf), within, strict=True))
            kept = _independent(jacobian, free, holds)
        holds = kept
    root = fnp.concatenate([x, multipliers(holds, free)])

    def stationary(z: Any) -> Any:
        return grad(lambda x: value(x) - fnp.sum(z[size:] * values_of(constraints, x)[0]))(z[:size])

    def equation(z: Any) -> Any:
        y, low, high = values_of(constraints, z[:size])
        limit = fnp.where(holds, fnp.where(floor, low, high), 0.0)
        moved = bounded_stationarity(lambda x: stationary(fnp.concatenate([x, z[size:]])), z[:size], within)
        return fnp.concatenate([moved(z[:size]), fnp.where(holds, y - limit, z[size:])])

    return equation, root


def _at_limits(x: Any, low: Any, high: Any, push: Any) -> tuple[Any, Any]:
    """Return whether each number is at its lower limit, and whether it is at its upper limit only."""
    near = ACTIVE_TOLERANCE * (1 + fnp.abs(x))
    floor = x - low <= fnp.maximum(near, -push)
    return floor, fnp.logical_and(high - x <= fnp.maximum(near, push), fnp.logical_not(floor))


def _is_inside(x: Any, within: Limits, push: Any) -> Any:
    """Return 1 for each unknown that is not at a bound, else 0."""
    low, high = map(stop_gradient, within)
    return fnp.where(fnp.logical_or(*_at_limits(x, low, high, push)), 0.0, 1.0)


def _independent(jacobian: Any, free: Any, holds: Any) -> Any:
    """Return ``holds`` without constraints whose gradients in the free unknowns follow from those of others."""
    rows, whole = jacobian * free, fnp.linalg.norm(jacobian, axis=1)
    rows = rows / fnp.maximum(fnp.maximum(fnp.linalg.norm(rows, axis=1), _DEPENDENT * whole), 1e-300)[:, None]
    kept = []
    for i in range(fnp.size(holds)):
        length = fnp.linalg.norm(rows[i])
        kept.append(fnp.logical_and(holds[i], length > _DEPENDENT))
        unit = fnp.where(kept[i], rows[i] / fnp.maximum(length, _DEPENDENT), 0.0)
        rows = rows - fnp.outer(fnp.matmul(rows, unit), unit)
    return fnp.stack(kept) if kept else holds


def _held_by_constraints(x: Any, within: Limits, push: Any, free: Any, left: Callable[[Any], Any], most: int) -> Any:
    """Return 1 for each unknown at a bound that would leave it without the constraints, else 0.

    Multipliers are unknown until the slopes in as many such unknowns determine them. ``left(free)`` is the slope that
    the multipliers leave, if they balance the slopes in the unknowns ``free``.
    """
    low, high = map(stop_gradient, within)
    floor, ceiling = _at_limits(x, low, high, push)
    held = fnp.zeros(fnp.size(x))
    for _ in range(most):
        slope = left(free + held)
        inwards = fnp.where(low == high, 0.0, fnp.where(floor, -slope, fnp.where(ceiling, slope, 0.0)))
        worst = fnp.arange(fnp.size(x)) == fnp.argmax(inwards)
        pushed = inwards > ACTIVE_TOLERANCE * (1 + fnp.max(fnp.abs(slope)))
        held = held + fnp.where(fnp.logical_and(worst, pushed), 1.0, 0.0)
    return held
