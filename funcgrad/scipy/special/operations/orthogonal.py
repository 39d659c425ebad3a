"""Orthogonal polynomials, spherical harmonics and Legendre functions.

Derivatives in the argument are polynomials of the next lower degree with raised parameters (DLMF table 18.9.1 and
18.9.15 to 18.9.26), those in the parameters, of which they are polynomials too, central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy, special
from funcgrad.primitives.elementwise import exp, sqrt
from funcgrad.scipy.special.operations.kernels import kernel
from funcgrad.scipy.special.operations.partials import analytic, pointwise, refused

__all__ = [
    "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm",
    "eval_jacobi", "eval_laguerre", "eval_legendre", "lpmv", "sph_harm_y",
]  # fmt: skip

#: Of what family with which parameters the derivative is: ``(factor, name, parameters)`` of degree n and parameters.
_LOWERED: dict[str, Callable[..., tuple[Any, str, tuple[Any, ...]]]] = {
    "eval_legendre": lambda n: (1.0, "eval_gegenbauer", (1.5,)),
    "eval_chebyt": lambda n: (n, "eval_chebyu", ()),
    "eval_chebyu": lambda n: (2.0, "eval_gegenbauer", (2.0,)),
    "eval_hermite": lambda n: (2.0 * n, "eval_hermite", ()),
    "eval_hermitenorm": lambda n: (1.0 * n, "eval_hermitenorm", ()),
    "eval_laguerre": lambda n: (-1.0, "eval_genlaguerre", (1.0,)),
    "eval_genlaguerre": lambda n, a: (-1.0, "eval_genlaguerre", (a + 1,)),
    "eval_gegenbauer": lambda n, a: (2 * a, "eval_gegenbauer", (a + 1,)),
    "eval_jacobi": lambda n, a, b: ((n + a + b + 1) / 2, "eval_jacobi", (a + 1, b + 1)),
}


def _lowered(xp: Any, k: int, name: str, n: Any, parameters: tuple[Any, ...], x: Any) -> Any:
    """The derivative of order k in x of the polynomial, 0 where the degree falls below 0."""
    if not k:
        return special(xp, name)(n, *parameters, x)
    factor, lower, raised = _LOWERED[name](n, *parameters)
    constant = n == 0
    return xp.where(constant, 0, factor * _lowered(xp, k - 1, lower, xp.where(constant, 0, n - 1), raised, x))


def _polynomial(name: str, parameters: int = 0) -> Operation:
    """``eval_...(n, *parameters, x, *, orders)``, see ``analytic``: the degree is a constant."""

    def value(xp: Any, k: int, n: Any, *rest: Any) -> Any:
        return _lowered(xp, k, name, n, rest[:-1], rest[-1])

    shapes: list[Callable[..., Any]] = [
        lambda xp, k, n, x: value(xp, k, n, x),
        lambda xp, k, n, a, x: value(xp, k, n, a, x),
        lambda xp, k, n, a, b, x: value(xp, k, n, a, b, x),
    ]

    def rates(xp: Any, n: Any, *rest: Any) -> list[Any]:
        return [0.0, *[2.0 + xp.log1p(xp.abs(n)) for _ in rest[:-1]]]

    return analytic(name, shapes[parameters], rates, degree="n")


eval_legendre: Operation = _polynomial("eval_legendre")
eval_chebyt: Operation = _polynomial("eval_chebyt")
eval_chebyu: Operation = _polynomial("eval_chebyu")
eval_hermite: Operation = _polynomial("eval_hermite")
eval_hermitenorm: Operation = _polynomial("eval_hermitenorm")
eval_laguerre: Operation = _polynomial("eval_laguerre")
eval_genlaguerre: Operation = _polynomial("eval_genlaguerre", 1)
eval_gegenbauer: Operation = _polynomial("eval_gegenbauer", 1)
eval_jacobi: Operation = _polynomial("eval_jacobi", 2)

# ---- Legendre functions and spherical harmonics ------------------------------------------------------------


def _lpmv_slope(x: Any, y: Any, z: Any) -> Any:
    """DLMF 14.10.5: ``((v + m) * P[v - 1] - v * z * P[v]) / (1 - z**2)``."""
    return ((y + x) * lpmv(x, y - 1, z) - y * z * lpmv(x, y, z)) / ((1 - z) * (1 + z))


#: ``lpmv(m, v, z)``: SciPy's associated Legendre function of order m and degree v, with the phase (-1)**m.
lpmv: Operation = elementwise(
    "lpmv",
    kernel("lpmv"),
    dx=refused("lpmv", "m", "The order is a whole number"),
    dy=refused("lpmv", "v", "The degree is a constant"),
    dz=_lpmv_slope,
)


def _sph_harm_y(xp: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    if xp is np:
        return import_scipy("scipy.special.sph_harm_y", "scipy.special").sph_harm_y(n, m, theta, phi)
    n, m = np.asarray(n), np.asarray(m)
    shape = np.broadcast_shapes(n.shape, m.shape, np.shape(theta), np.shape(phi))
    outside = np.broadcast_to(abs(m) > n, shape)
    flat = [xp.ravel(xp.broadcast_to(a, shape)) for a in (n, np.where(abs(m) > n, 0, m), theta, phi)]
    return xp.where(outside, 0, special(xp, "sph_harm_y")(*flat, n_max=int(n.max(initial=0))).reshape(shape))


def _in_theta(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    """The ladder of the orders, which is finite at the poles: DLMF 14.30.1 with 14.10.4 and 14.10.5."""
    above = sqrt((n - m) * (n + m + 1) * 0.25) * exp(phi * -1j) * sph_harm_y(n, m + 1, theta, phi)
    below = sqrt((n + m) * (n - m + 1) * 0.25) * exp(phi * 1j) * sph_harm_y(n, m - 1, theta, phi)
    return above - below


#: ``sph_harm_y(n, m, theta, phi)``: the spherical harmonic of degree n and order m.
sph_harm_y: Operation = pointwise(
    "sph_harm_y",
    _sph_harm_y,
    refused("sph_harm_y", "n", "The degree is a whole number"),
    refused("sph_harm_y", "m", "The order is a whole number"),
    _in_theta,
    lambda n, m, theta, phi: m * 1j * sph_harm_y(n, m, theta, phi),
)
