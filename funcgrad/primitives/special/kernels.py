"""Where the values of special functions come from, and families of derivatives as one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.special.partials import in_double, pointwise

__all__ = ["derivatives", "kernel"]


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
