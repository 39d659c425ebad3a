"""Where the values of special functions come from, and families of derivatives as one operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.scipy.special.operations.partials import in_double, pointwise

__all__ = ["derivatives", "kernel", "log_beta", "stirling_error"]

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def kernel(name: str, of_jax: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The ``impl`` of a primitive that computes what SciPy's function ``name`` does.

    Args:
        name: the name in ``scipy.special``.
        of_jax: ``of_jax(xp, *args)`` for arrays of JAX where ``jax.scipy.special`` has no function of this name.

    Example:
        >>> import numpy
        >>> kernel("erf")(numpy, 0.0)
        np.float64(0.0)
    """

    def impl(xp: Any, *args: Any) -> Any:
        if of_jax is not None and xp.__name__ != "numpy":
            return of_jax(xp, *args)
        return special(xp, name)(*args)

    return impl


def derivatives(name: str, value: Callable[..., Any] | None, derivative: Callable[..., Any]) -> Operation:
    """A function of one argument and all its derivatives: ``operation(x, order=n)``.

    Args:
        name: its name.
        value: ``value(xp, x)``, the function; None where ``derivative`` gives that too.
        derivative: ``derivative(xp, x, order)``, called in double precision.

    Example:
        >>> import numpy
        >>> exponential = derivatives("exponential", None, lambda xp, x, order: xp.exp(x))
        >>> exponential(0.0, order=3)
        np.float64(1.0)
    """

    def impl(xp: Any, x: Any, *, order: int) -> Any:
        if order == 0 and value is not None:
            return value(xp, x)
        return in_double(xp, lambda x: derivative(xp, x, order), x)

    operation = pointwise(name, impl, lambda x, *, order: operation(x, order=order + 1))
    operation.__module__ = derivative.__module__  # where it stands, so that it pickles
    return operation


def stirling_error(xp: Any, a: Any) -> Any:
    """``gammaln(a) - ((a - 1/2) log(a) - a + log(2 pi) / 2)``, by DLMF 5.11.1 for large a."""
    large = a > 10
    near, far = xp.where(large, 1, a), xp.where(large, a, 10)
    series, square = 0, far * far
    for c in reversed(_STIRLING):
        series = series / square + c
    exact = special(xp, "gammaln")(near) - ((near - 0.5) * xp.log(near) - near + 0.5 * math.log(2 * math.pi))
    return xp.where(large, series / far, exact)


def log_beta(xp: Any, a: Any, b: Any) -> Any:
    """The logarithm of the beta function, by DLMF 5.12.1 and 5.11.1: JAX's own has seven digits between 8 and 50."""
    if xp.__name__ == "numpy":
        return special(xp, "betaln")(a, b)
    gammaln = special(xp, "gammaln")
    small, large = xp.minimum(a, b), xp.maximum(a, b)
    total, far = small + large, large > 10
    safe, beyond = xp.where(far, large, 11), xp.where(far, total, 11)
    step = small * (1 - xp.log(beyond)) - (safe - 0.5) * xp.log1p(xp.where(far, small, 0) / safe)
    step = step + stirling_error(xp, safe) - stirling_error(xp, beyond)
    return gammaln(small) + xp.where(far, step, gammaln(large) - gammaln(total))
