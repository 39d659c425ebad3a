"""Wasserstein's distance of weighted points, the least cost of a transport between them.

SciPy solves for prices, which are not unique: all may rise together. So the solution has no derivative, but the cost
has: the plan of the transport is a vertex, which stays where the costs change, and moves with the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import NotDifferentiableError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.examples import with_example_loop
from funcgrad.numpy_code.own import known_value, own
from funcgrad.optional import import_scipy

_NAME = "stats.wasserstein_distance_nd"
#: Share of the mean weight below which the plan transports nothing.
_NOTHING = 1e-9


def distance_of_points(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``wasserstein_distance_nd``; samples of one axis have a distance without a linear program."""

    def distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
        given = [u_values, v_values, u_weights, v_weights]
        if fnp.ndim(u_values) != 2 or fnp.ndim(v_values) != 2:
            return built(*given)
        u, v = fnp.asarray(u_values), fnp.asarray(v_values)
        weights = [None if x is None else fnp.asarray(x) for x in given[2:]]
        if not any(isinstance(x, Tracer) for x in (u, v, *weights)):
            return built(*given)
        plain = [known_value(x, _NAME) for x in (u, v, *weights)]
        found = import_scipy(_NAME, "scipy.stats").wasserstein_distance_nd(*plain)
        cost = fnp.ravel(own("scipy.spatial.distance").cdist(u, v))
        total = _cost_of_transport(cost, [_shares(x, len(y)) for x, y in zip(weights, (u, v), strict=True)])
        return found + (total - own("transforms.stopping").stop_gradient(total))

    return with_example_loop(distance, f"scipy.{_NAME}")


def _shares(weights: Any, count: int) -> Any:
    return np.full(count, 1 / count) if weights is None else weights / fnp.sum(weights)


def _cost_of_transport(cost: Any, shares: list[Any]) -> Any:
    """Return the least cost; the plan has a derivative in the shares if it uses a tree of pairs of points."""
    m, n = map(len, shares)
    sums = np.vstack([np.repeat(np.eye(m), n, axis=1), np.tile(np.eye(n), m)])
    limits = fnp.concatenate(shares)
    values = [np.asarray(known_value(x, _NAME)) for x in (cost, limits)]
    plan = import_scipy(_NAME, "scipy.optimize").linprog(values[0], A_eq=sums, b_eq=values[1]).x
    if not any(isinstance(x, Tracer) for x in shares):
        return plan @ cost
    used = np.flatnonzero(plan > _NOTHING / max(m, n))
    if len(used) != m + n - 1:
        raise NotDifferentiableError(
            f"scipy.{_NAME}: the weights of some points together are equal to those of some others, where the distance "
            f"has a kink, got traced weights{user_line()}. Change the weights slightly, or pass them as constants."
        )
    return fnp.linalg.solve(sums[1:, used], limits[1:]) @ cost[used]
