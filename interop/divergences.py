"""Where JAX is known to give another derivative, and why funcgrad does not follow it.

The cross-check looks here while it runs the function on JAX arrays, and says in its report what it met.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad.core import Primitive

__all__ = ["KNOWN", "Divergence", "known"]


class Divergence(NamedTuple):
    """One known difference.

    Attributes:
        primitive: the name of the primitive where it occurs.
        applies: ``applies(values, params)``, whether it does for these NumPy values and parameters.
        says: what JAX gives, what funcgrad gives, and why.
    """

    primitive: str
    applies: Callable[[Sequence[Any], dict[str, Any]], bool]
    says: str


def _float_power_at_zero(values: Sequence[Any], params: dict[str, Any]) -> bool:
    base, exponent = values
    flat = (exponent == 0) | (exponent == 1)
    return exponent.dtype.kind in "fc" and bool(np.any((base == 0) & flat))


def _always(values: Sequence[Any], params: dict[str, Any]) -> bool:
    return True


_POWER = (
    "x**0.0 at x = 0: JAX's derivative is nan, as is the second derivative of x**1.0. funcgrad gives 0, as both do "
    "for integer exponents."
)

KNOWN = (
    Divergence("power", _float_power_at_zero, _POWER),
    Divergence("float_power", _float_power_at_zero, _POWER),
    Divergence(
        "partition",
        _always,
        "partition leaves the order on both sides of its pivot open: JAX's is not NumPy's, which funcgrad follows, "
        "nor is its choice among equal elements.",
    ),
)


def known(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[str]:
    """What is known of JAX's derivative of ``primitive`` at these values (concrete JAX or NumPy ones).

    Example:
        >>> from funcgrad.primitives.arithmetic import power
        >>> [text[:20] for text in known(power.primitive, (np.zeros(2), 1.0), {})]
        ['x**0.0 at x = 0: JAX']
        >>> known(power.primitive, (np.ones(2), 1.0), {})
        []
    """
    entries = [entry for entry in KNOWN if entry.primitive == primitive.name]
    if not entries:
        return []
    values = [np.asarray(a) for a in args]
    return [entry.says for entry in entries if entry.applies(values, params)]
