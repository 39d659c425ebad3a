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
    return bool(np.any((base == 0) & ((exponent == 0) | (exponent == 1)) & (np.asarray(exponent).dtype.kind != "i")))


def _ties(values: Sequence[Any], params: dict[str, Any]) -> bool:
    ordered = np.sort(values[0], params["axis"])
    return bool(np.any(np.diff(ordered, axis=params["axis"]) == 0))


KNOWN = (
    Divergence(
        "power",
        _float_power_at_zero,
        "x**0.0 at x = 0: JAX's derivative is nan, as is the second derivative of x**1.0. funcgrad gives 0, as for "
        "the integer exponents 0 and 1.",
    ),
    Divergence(
        "partition",
        _ties,
        "partition with equal elements: JAX's derivative depends on how its algorithm breaks the tie.",
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
