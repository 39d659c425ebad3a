"""Tails of log-concave densities, integrated by Gauss's formula on panels.

The derivatives of incomplete gamma and beta functions in their parameters are integrals of a density times a
polynomial in logarithms. In the logarithmic variable z (of t, or of t / (1 - t)) the density is log-concave and
analytic, and what happens in it happens near its mode, near one more place, or by pure exponentials. So a handful of
panels, with ends that follow from the parameters, integrates every tail to about 13 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["DEPTH", "bell", "polynomial", "tail"]

#: A tail is followed until the density has fallen by ``exp(-DEPTH)``.
DEPTH = 45.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
#: Panels end at these distances from the place where the density bends.
_EDGES = (-24.0, -3.0, 3.0, 24.0)


def tail(xp: Any, integrand: Callable[[Any], Any], length: Any, bend: Any) -> Any:
    """The integral of ``integrand`` from 0 to ``length``.

    Args:
        xp: the array namespace.
        integrand: a function of the distance from the start; it is given nodes along a new last axis.
        length: to where; an array.
        bend: at which distance the integrand changes its exponential rate, if that is beyond the start; an array.

    Example:
        >>> tail(np, lambda s: np.exp(-s), np.array(45.0), np.array(0.0)).round(14)
        np.float64(1.0)
    """
    centre = xp.maximum(bend, 0)
    inner = [xp.clip(centre + edge, 0, length) for edge in _EDGES]
    ends = [0 * length, *inner, length]
    nodes, weights = xp.asarray((_NODES + 1) / 2, length.dtype), xp.asarray(_WEIGHTS / 2, length.dtype)
    widths = [b - a for a, b in pairwise(ends)]
    points = [a[..., None] + w[..., None] * nodes for a, w in zip(ends[:-1], widths, strict=True)]
    scales = [w[..., None] * weights for w in widths]
    return xp.sum(integrand(xp.concatenate(points, axis=-1)) * xp.concatenate(scales, axis=-1), axis=-1)


def bell(slope: Callable[[int, int], Any], i: int, j: int = 0, *, first: Any, second: Any = 1.0) -> Any:
    """``d**i/da**i d**j/db**j`` of ``a b exp(g)``, over ``a b exp(g)``, from the derivatives of g.

    Those of ``exp(g)`` are Bell's complete polynomials. The densities have the factors a and b because in
    ``1 / gamma(a) = a / gamma(a + 1)`` the derivatives of the logarithm cancel for small a; here they are added.

    Args:
        slope: ``slope(k, m)``, the derivative of g of these orders.
        i: the order in a.
        j: the order in b.
        first: a.
        second: b.

    Example:
        >>> bell(lambda k, m: 2.0 if k == 1 else 3.0, 2, first=4.0)
        8.0
    """
    found = polynomial(slope, i, j)
    if i:
        found = found + i / first * polynomial(slope, i - 1, j)
    if j:
        found = found + j / second * polynomial(slope, i, j - 1)
    return found + i * j / (first * second) * polynomial(slope, i - 1, j - 1) if i and j else found


def polynomial(slope: Callable[[int, int], Any], i: int, j: int = 0) -> Any:
    """Bell's complete polynomial: ``d**i/da**i d**j/db**j exp(g) / exp(g)`` from the derivatives of g.

    Example:
        >>> polynomial(lambda k, m: 2.0 if k == 1 else 3.0, 2)
        7.0
    """
    if i == j == 0:
        return 1.0
    if i == 0:
        return polynomial(lambda k, m: slope(m, k), j, 0)
    return sum(
        math.comb(i - 1, k) * math.comb(j, m) * slope(k + 1, m) * polynomial(slope, i - 1 - k, j - m)
        for k in range(i)
        for m in range(j + 1)
    )
