"""Radial basis functions of ``scipy.interpolate``, with derivatives where points coincide; see ``table``.

SciPy's code first takes the root of the squared distance, which has no derivative at zero, though most of the
functions have one. So they are functions of the squared distance here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.primitives.norms import sqrt_flat_at_zero


def _thin_plate_spline(s: Any) -> Any:
    none = s == 0
    return fnp.where(none, 0.0, 0.5 * s * fnp.log(fnp.where(none, 1.0, s)))


#: Functions of the squared distance, by SciPy's names.
_OF_SQUARES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda s: -sqrt_flat_at_zero(s),
    "thin_plate_spline": _thin_plate_spline,
    "cubic": lambda s: s * sqrt_flat_at_zero(s),
    "quintic": lambda s: -s * s * sqrt_flat_at_zero(s),
    "multiquadric": lambda s: -fnp.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: 1.0 / fnp.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0),
    "gaussian": lambda s: fnp.exp(-s),
}


def _matrix(kernel: str, x: Any, y: Any) -> Any:
    """Return the function of the distances of all rows of ``x`` from all rows of ``y``."""
    apart = fnp.asarray(x)[:, None, :] - y
    return _OF_SQUARES[kernel](fnp.sum(apart * apart, axis=-1))


def _kernel_matrix(x: Any, kernel_func: Callable[..., Any], xp: Any) -> Any:
    return _matrix(kernel_func.__name__, x, x)


def _coefficients(
    x: Any, y: Any, kernel: str, epsilon: Any, powers: Any, shift: Any, scale: Any, xp: Any = None
) -> Any:
    """Compute ``_rbfinterp_xp._build_evaluation_coefficients``: the factors of the solution at each point."""
    monomials = fnp.prod(((x - shift) / scale)[:, None, :] ** powers, axis=-1)
    return fnp.concatenate([_matrix(kernel, x * epsilon, y * epsilon), monomials], axis=-1)


def _solved(
    y: Any, d: Any, smoothing: Any, kernel: str, epsilon: Any, powers: Any, xp: Any = None
) -> tuple[Any, Any, Any]:
    """Compute ``_build_and_solve_system``, compiled before SciPy 1.17, and still for ``neighbors``."""
    shift, scale = (fnp.max(y, axis=0) + fnp.min(y, axis=0)) / 2, (fnp.max(y, axis=0) - fnp.min(y, axis=0)) / 2
    scale = fnp.where(scale == 0, 1.0, scale)
    of_points = _coefficients(y, y, kernel, epsilon, powers, shift, scale)
    many, monomials = len(powers), of_points[:, len(y) :]
    of_powers = fnp.concatenate([monomials.T, fnp.zeros((many, many))], axis=1)
    system = fnp.concatenate([of_points + fnp.eye(len(y), len(y) + many) * fnp.reshape(smoothing, (-1, 1)), of_powers])
    return shift, scale, fnp.linalg.solve(system, fnp.concatenate([d, fnp.zeros((many, d.shape[1]))]))


RADIAL: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.interpolate._rbfinterp_xp", "kernel_matrix"): _kernel_matrix,
    ("scipy.interpolate._rbfinterp_xp", "_build_evaluation_coefficients"): _coefficients,
    ("scipy.interpolate._rbfinterp_np", "_build_and_solve_system"): _solved,
    ("scipy.interpolate._rbfinterp_np", "_build_evaluation_coefficients"): _coefficients,
    # of SciPy before 1.17, whose functions do not support array libraries
    ("scipy.interpolate._rbfinterp", "_build_and_solve_system"): _solved,
    ("scipy.interpolate._rbfinterp_pythran", "_build_evaluation_coefficients"): _coefficients,
}
