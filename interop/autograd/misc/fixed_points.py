"""Fixed points of parametrised maps, differentiated by implicit differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad import tree
from funcgrad.transforms import fixed_point as solved

__all__ = ["fixed_point"]

Map = Callable[[Any], Any]


def fixed_point(f: Callable[[Any], Map], a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float) -> Any:
    """Return the ``x`` with ``x = f(a)(x)``, found by iteration, and differentiated in ``a`` by iteration too.

    Args:
        f: a function of the parameters that returns a map.
        a: the parameters, any tree.
        x0: the starting point.
        distance: ``distance(x, x_prev)``; the iteration goes on while the distance is greater than ``tol``.
        tol: largest distance at which the iteration stops.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> heron = lambda a: lambda x: 0.5 * (x + a / x)
        >>> root = lambda a: fixed_point(heron, a, 1.0, lambda x, y: abs(x - y), 1e-12)
        >>> root(4.0), grad(root)(4.0)
        (2.0, np.float64(0.25))
    """

    def repeated(step: Map, start: Any) -> Any:
        x, previous = step(start), start
        while distance(x, previous) > tol:
            x, previous = step(x), x
        return x

    def linear(residual: Map, b: Any) -> Any:
        """Return the u with residual(u) = J u - u = b."""
        step = lambda u: tree.map(lambda r, u, b: r + u - b, residual(u), u, b)
        return repeated(step, tree.map(lambda leaf: -leaf, b))

    return solved(lambda x, a: f(a)(x), x0, a, solver=repeated, tangent_solve=linear)
