"""Hypergeometric functions: derivatives in the argument by shifted parameters, in the parameters by differences.

The derivative of order k in the argument is the function itself with all parameters raised by k, times a quotient of
Pochhammer's symbols: DLMF 13.3.16, 13.3.23, 15.5.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import greater, where
from funcgrad.scipy.special.operations.gamma_functions import digamma, rgamma
from funcgrad.scipy.special.operations.kernels import kernel
from funcgrad.scipy.special.operations.partials import analytic, beside_pole, in_double, pointwise, summed

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "hyperu_integral"]


def _rising(a: Any, k: int) -> Any:
    """Pochhammer's symbol."""
    product: Any = 1.0
    for j in range(k):
        product = product * (a + j)
    return product


def _pole_rate(xp: Any, rate: Any, b: Any) -> Any:
    """``rate``, but near to 0 or a negative integer b that of a pole; NaN in one."""
    nearest = xp.minimum(xp.rint(b), 0)
    distance = xp.abs(b - nearest)
    return xp.maximum(rate, beside_pole(xp, xp.where(distance == 0, xp.nan, distance)))


def _hyp0f1(xp: Any, k: int, v: Any, z: Any) -> Any:
    if not k:
        return special(xp, "hyp0f1")(v, z)
    return special(xp, "hyp0f1")(v + k, z) / _rising(v, k)


def _hyp1f1(xp: Any, k: int, a: Any, b: Any, x: Any) -> Any:
    if not k:
        return special(xp, "hyp1f1")(a, b, x)
    return special(xp, "hyp1f1")(a + k, b + k, x) * (_rising(a, k) / _rising(b, k))


def _hyp2f1(xp: Any, k: int, a: Any, b: Any, c: Any, z: Any) -> Any:
    if not k:
        return special(xp, "hyp2f1")(a, b, c, z)
    return special(xp, "hyp2f1")(a + k, b + k, c + k, z) * (_rising(a, k) * _rising(b, k) / _rising(c, k))


def _hyp0f1_rates(xp: Any, v: Any, z: Any) -> list[Any]:
    return [_pole_rate(xp, 1.6 + 0 * xp.abs(z), v)]


def _hyp1f1_rates(xp: Any, a: Any, b: Any, x: Any) -> list[Any]:
    growth = 1.6 + xp.log1p(xp.abs(x))
    return [growth, _pole_rate(xp, growth, b)]


def _hyp2f1_rates(xp: Any, a: Any, b: Any, c: Any, z: Any) -> list[Any]:
    growth = 1.6 + xp.abs(xp.log(xp.abs(xp.where(z == 1, 2, 1 - z))))
    return [growth, growth, _pole_rate(xp, growth, c)]


#: ``hyp0f1(v, z, *, orders)`` and so on: see ``analytic``.
hyp0f1: Operation = analytic("hyp0f1", _hyp0f1, _hyp0f1_rates)
hyp1f1: Operation = analytic("hyp1f1", _hyp1f1, _hyp1f1_rates)
hyp2f1: Operation = analytic("hyp2f1", _hyp2f1, _hyp2f1_rates)

# ---- Tricomi's function ------------------------------------------------------------------------------------


def _tricomi(a: Any, b: Any, x: Any, orders: tuple[int, int, int]) -> Any:
    """With ``t = exp(u)`` a sum of terms that vary slowly and vanish to both sides, see ``elliptic``.

    NaN where there are too many: of derivatives in a alone for tiny a, and for huge a or b.
    """
    a, b, x = np.broadcast_arrays(a, b, x)
    i, j, k = orders
    rate = a + (j + k > 0)  # of the integrand far to the left: a factor of t or log(1 + t) makes it fall by itself
    valid = (rate > 1e-3) & (a > 0) & (x > 0) & (a + np.abs(b) < 1e8)
    a, b, x = (np.where(valid, v, 1.0) for v in (a, b, x))
    rate = a + (j + k > 0)
    low = np.minimum(0, -np.log(x)) - (45 + 5 * i) / rate
    high = np.log((60 + 2 * np.abs(a) + 2 * np.abs(b) + 10 * k) / x + 1)
    step = np.minimum(0.2, 0.5 / np.sqrt(a + np.abs(b) + 1))

    def term(n: Any) -> Any:
        u = low + n * step
        t = np.exp(u)
        log1 = np.log1p(t)
        size = np.exp(a * u + (b - a - 1) * log1 - x * t)
        return np.where(u <= high, size * (u - log1) ** i * log1**j * (-t) ** k, 0)

    total = summed(term, int(np.max((high - low) / step, initial=0)) + 2, x)
    return np.where(valid, total * step, np.nan)


def _hyperu_integral(xp: Any, a: Any, b: Any, x: Any, *, orders: tuple[int, int, int]) -> Any:
    if xp is not np:
        special(xp, "hyperu")  # JAX has none, and says so
    return in_double(np, lambda a, b, x: _tricomi(a, b, x, orders), a, b, x)


def _in_a(a: Any, b: Any, x: Any, *, orders: tuple[int, int, int]) -> Any:
    i, j, k = orders
    return hyperu_integral(a, b, x, orders=(i + 1, j, k))


def _in_b(a: Any, b: Any, x: Any, *, orders: tuple[int, int, int]) -> Any:
    i, j, k = orders
    return hyperu_integral(a, b, x, orders=(i, j + 1, k))


def _in_x(a: Any, b: Any, x: Any, *, orders: tuple[int, int, int]) -> Any:
    i, j, k = orders
    return hyperu_integral(a, b, x, orders=(i, j, k + 1))


#: Derivatives of ``gamma(a) * hyperu(a, b, x)``, an integral over t for positive a (DLMF 13.4.4); NaN for others.
hyperu_integral: Operation = pointwise("hyperu_integral", _hyperu_integral, _in_a, _in_b, _in_x)


def _hyperu_dx(x: Any, y: Any, z: Any) -> Any:
    """The integral where it is, since SciPy's values are good to 8 digits in places; else DLMF 13.3.22."""
    inside = greater(x, 0)
    integral = rgamma(x) * hyperu_integral(where(inside, x, 1.0), y, z, orders=(0, 0, 1))
    return where(inside, integral, -x * hyperu(x + 1, y + 1, z))


hyperu: Operation = elementwise(
    "hyperu",
    kernel("hyperu"),
    dx=lambda x, y, z: (
        rgamma(x)
        * (hyperu_integral(x, y, z, orders=(1, 0, 0)) - digamma(x) * hyperu_integral(x, y, z, orders=(0, 0, 0)))
    ),
    dy=lambda x, y, z: rgamma(x) * hyperu_integral(x, y, z, orders=(0, 1, 0)),
    dz=_hyperu_dx,
)
