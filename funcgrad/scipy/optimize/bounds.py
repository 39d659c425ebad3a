"""SciPy's forms of bounds, the equation of a minimum within bounds, and the derivatives that each method uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import Tracer
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.transforms.stopping import stop_gradient

Limits = tuple[Any, Any]


def limits(bounds: Any, size: int) -> Limits:
    """Return lower and upper bounds of ``size`` unknowns, from SciPy's ``Bounds`` or a pair of arrays or numbers."""
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    return _spread(low, size), _spread(high, size)


def pairs(bounds: Any, size: int) -> Limits:
    """Return lower and upper bounds from the form that ``minimize`` takes: a pair per unknown, None if unbounded."""
    if hasattr(bounds, "lb"):
        return limits(bounds, size)
    if isinstance(bounds, (Tracer, np.ndarray)) and bounds.dtype != object:
        bounds = fnp.swapaxes(bounds, 0, 1)
        return _spread(bounds[0], size), _spread(bounds[1], size)
    columns = list(zip(*bounds, strict=True))
    low, high = (
        [filler if end is None else end for end in column]
        for column, filler in zip(columns, (-np.inf, np.inf), strict=True)
    )
    return _joined(low), _joined(high)


def _joined(numbers: list[Any]) -> Any:
    if is_plain(*numbers):
        return np.array(numbers, float)
    return fnp.stack([fnp.reshape(fnp.astype(as_value(x), float), ()) for x in numbers])


def _spread(x: Any, size: int) -> Any:
    return fnp.broadcast_to(fnp.astype(as_value(x), float), (size,))


#: Largest distance from a bound that may be active, relative to that of both bounds and to ``1 + abs(x)``.
_NEAR = 0.01


def bounded_stationarity(gradient: Callable[[Any], Any], x: Any, within: Limits | None) -> Callable[[Any], Any]:
    """Return the equation of a minimum within bounds: zero gradient, or the unknown equals its active bound.

    A bound is active if the unknown is near it, and the gradient still pushes against it almost there: the gradient at
    ``x`` alone is that of a minimum nearby, times the unknown scale of the function. Active bounds are determined at
    ``x`` and the derivative assumes that they stay active. A zero gradient at a bound is a kink.
    """
    if within is None:
        return gradient
    low, high = within
    at, floor, ceiling = (stop_gradient(v) for v in (x, low, high))
    reach = _NEAR * fnp.minimum(ceiling - floor, 1 + fnp.abs(at))
    near_low = at - floor <= reach
    near_high = fnp.logical_and(ceiling - at <= reach, fnp.logical_not(near_low))
    # not at the bound itself, where the function may be undefined
    almost = at + 0.9 * (fnp.where(near_low, floor, fnp.where(near_high, ceiling, at)) - at)
    slope = stop_gradient(gradient(almost))
    down = fnp.logical_and(near_low, fnp.logical_or(at <= floor, slope > 0))
    up = fnp.logical_and(near_high, fnp.logical_or(at >= ceiling, slope < 0))
    low, high = fnp.where(down, low, 0.0), fnp.where(up, high, 0.0)

    def equation(x: Any) -> Any:
        return fnp.where(down, x - low, fnp.where(up, x - high, gradient(x)))

    return equation


def are_fixed(bounds: Any, within: Limits | None) -> bool:
    """Whether neither ``bounds``, in any form, nor ``within``, the arrays made of them, contain a traced value."""
    traced = Tracer in map(type, tree.leaves(bounds))
    return not traced and (within is None or is_plain(*within))


#: Methods of ``minimize`` that use no gradient, Hessian-vector products, whole Hessians. The others use gradients.
GRADIENT_FREE_METHODS = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
HVP_METHODS = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
HESSIAN_METHODS = frozenset(("dogleg", "trust-exact"))
#: Methods of ``root`` that take a Jacobian.
JACOBIAN_METHODS = frozenset(("hybr", "lm"))


def default_method(method: Any, bounds: Any, constraints: Any) -> str:
    """Return the method of ``minimize`` in lower case (default: SciPy's choice); an empty text for a function."""
    if method is None:
        return "slsqp" if constraints else "bfgs" if bounds is None else "l-bfgs-b"
    return "" if callable(method) else str(method).lower()
