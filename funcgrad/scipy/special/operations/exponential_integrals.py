"""Exponential, sine and cosine integrals, and Spence's function: their derivatives are elementary (DLMF 6.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import isinf, less, where
from funcgrad.primitives.elementwise import cos, exp, log, sin, sinc
from funcgrad.scipy.special.operations.convex import log1p_quotient, sinh_quotient
from funcgrad.scipy.special.operations.kernels import kernel
from funcgrad.scipy.special.operations.partials import refused, shifted

__all__ = ["exp1", "expi", "expn", "shichi", "sici", "spence"]

#: ``exp(x) / x``. Its derivative is one product: a difference of two quotients is ``inf - inf`` where they overflow.
_exp_quotient: Operation = elementwise("exp_quotient", lambda xp, x: xp.exp(x) / x, dx=lambda x, ans: ans * (1 - 1 / x))
expi: Operation = elementwise("expi", kernel("expi"), dx=lambda x: _exp_quotient(x))
exp1: Operation = elementwise("exp1", kernel("exp1"), dx=lambda x: _exp_quotient(-x))


def _expn_partial(x: Any, y: Any, ans: Any) -> Any:
    """``-expn(n - 1, y)``; of the orders 0 and 1 by the recurrence DLMF 8.19.12 from ``ans``."""
    low = less(x, 2)
    if not isinstance(low, (Tracer, np.ndarray, np.generic)):  # of another library: its values may be unknown
        return where(low, _lowest(x, where(low, y, 1), ans), -expn(where(low, 1, shifted(x, -1)), y))
    if isinstance(low, Tracer) or (np.any(low) and not np.all(low)):
        return where(low, _lowest(x, where(low, y, 1), ans), -expn(where(low, 1, shifted(x, -1)), y))
    return _lowest(x, y, ans) if np.any(low) else -expn(shifted(x, -1), y)


def _lowest(n: Any, x: Any, ans: Any) -> Any:
    return (shifted(n, -1) * ans - exp(-x)) / x


#: ``expn(n, x)``, in x.
expn: Operation = elementwise(
    "expn", kernel("expn"), dx=refused("expn", "n", "It is an integer: pass it as a constant"), dy=_expn_partial
)


def _oscillating(fun: Callable[..., Any], x: Any) -> Any:
    """``fun(x) / x`` for a sine or cosine, which has no value at infinity where the quotient is 0."""
    return fun(where(isinf(x), 0, x)) / x


def _sine_quotient(x: Any) -> Any:
    """``sin(x) / x``."""
    small = less(absolute(x), 1)
    near = sinc(where(small, x, 0) * (1 / math.pi), order=0)
    return where(small, near, _oscillating(sin, where(small, 1, x)))


def _two_integrals(name: str, first: Any, second: Any) -> Operation:
    """A function with two results, whose derivatives are ``first(x)`` and ``second(x)``.

    The cotangent of a result that nothing depends on is None: 0 times the infinite slope of the other at 0 is NaN.
    """

    def pull(ct: Any, x: Any) -> Any:
        if ct[1] is None:
            return ct[0] * first(x)
        slope = ct[1] * second(x)
        return slope if ct[0] is None else ct[0] * first(x) + slope

    def push(t: Any, x: Any) -> Any:
        return t * first(x), t * second(x)

    return primitive(name, kernel(name), vjps=[pull], jvps=[push], batch="elementwise", multiple=True, sparse=True)


sici: Operation = _two_integrals("sici", _sine_quotient, lambda x: _oscillating(cos, x))
shichi: Operation = _two_integrals(
    "shichi", lambda x: sinh_quotient(x, order=0), lambda x: 0.5 * (_exp_quotient(x) - _exp_quotient(-x))
)


def _spence_partial(x: Any) -> Any:
    """``log(x) / (1 - x)``, -1 at 1."""
    small = less(x, 0.5)
    near = where(small, x, 0.5)
    return where(small, log(near) / (1 - near), -log1p_quotient(where(small, 0, x - 1), order=0))


spence: Operation = elementwise("spence", kernel("spence"), dx=_spence_partial)
