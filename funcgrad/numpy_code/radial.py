"""Radial basis functions of ``scipy.interpolate``, with derivatives where points coincide; see ``kernels``.

SciPy's own code takes the root of the squared distance first, which has no derivative at zero, though most of the
functions have one: they are functions of the squares here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.primitives.norms import flat_root


def _thin_plate_spline(s: Any) -> Any:
    none = s == 0
    return fnp.where(none, 0.0, 0.5 * s * fnp.log(fnp.where(none, 1.0, s)))


#: By SciPy's name the function of the squared distance.
_OF_SQUARES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda s: -flat_root(s),
    "thin_plate_spline": _thin_plate_spline,
    "cubic": lambda s: s * flat_root(s),
    "quintic": lambda s: -s * s * flat_root(s),
    "multiquadric": lambda s: -fnp.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: 1.0 / fnp.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0),
    "gaussian": lambda s: fnp.exp(-s),
}


def _matrix(kernel: str, x: Any, y: Any) -> Any:
    """The function of the distances of all rows of ``x`` from all of ``y``."""
    apart = fnp.asarray(x)[:, None, :] - y
    return _OF_SQUARES[kernel](fnp.sum(apart * apart, axis=-1))


def _kernel_matrix(x: Any, kernel_func: Callable[..., Any], xp: Any) -> Any:
    """``_rbfinterp_xp.kernel_matrix``."""
    return _matrix(kernel_func.__name__, x, x)


def _coefficients(x: Any, y: Any, kernel: str, epsilon: Any, powers: Any, shift: Any, scale: Any, xp: Any) -> Any:
    """``_rbfinterp_xp._build_evaluation_coefficients``: by what the solution is multiplied at each of the points."""
    monomials = fnp.prod(((x - shift) / scale)[:, None, :] ** powers, axis=-1)
    return fnp.concatenate([_matrix(kernel, x * epsilon, y * epsilon), monomials], axis=-1)


RADIAL: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.interpolate._rbfinterp_xp", "kernel_matrix"): _kernel_matrix,
    ("scipy.interpolate._rbfinterp_xp", "_build_evaluation_coefficients"): _coefficients,
}
