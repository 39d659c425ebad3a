"""Functions of rotations in SciPy's Python code, which ``RigidTransform`` and ``RotationSpline`` call.

SciPy's functions divide by the angle, which has no derivative at no rotation, and leave a matrix as it is if it is a
rotation already, so that the derivative would be that of another matrix near it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy_code.kernels.wrapping import Built, around
from funcgrad.numpy_code.own import own


def _quaternions() -> Any:
    return own("scipy.spatial.quaternions")


def _from_rotvec(rotvec: Any, degrees: bool = False) -> Any:
    return _quaternions().from_rotvec(rotvec * (math.pi / 180.0) if degrees else rotvec)


def _as_rotvec(quat: Any, degrees: bool = False) -> Any:
    found = _quaternions().as_rotvec(quat)
    return found * (180.0 / math.pi) if degrees else found


def _from_matrix(matrix: Any, assume_valid: bool = False) -> Any:
    return _quaternions().from_matrix(matrix, assume_valid)


#: Coefficients of series in the squared angle t**2: of (1 - cos t) / t**2, (t - sin t) / t**3,
#: (2 - 2 cos t - t sin t) / t**4, (3 sin t - t cos t - 2 t) / t**5 and, with Bernoulli's numbers,
#: (1 - t / 2 cot(t / 2)) / t**2.
_ONE_MINUS_COSINE = [(-1) ** k / math.factorial(2 * k + 2) for k in range(10)]
_MINUS_SINE = [(-1) ** k / math.factorial(2 * k + 3) for k in range(10)]
_SINE_AND_COSINE = [(-1) ** k * (2 * k + 2) / math.factorial(2 * k + 4) for k in range(10)]
_COSINE_AND_SINE = [(-1) ** (k + 1) * (2 * k + 2) / math.factorial(2 * k + 5) for k in range(10)]
_BERNOULLI = (1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730, 7 / 6, 3617 / 510, 43867 / 798, 174611 / 330)
_COTANGENT = [b / math.factorial(2 * k + 2) for k, b in enumerate(_BERNOULLI)]


def _of_angle(terms: list[float], formula: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of the squared angle: the series up to 1, and the formula with the angle beyond."""

    def compute(square: Any) -> Any:
        near = square <= 1.0
        angle = fnp.sqrt(fnp.where(near, 1.0, square))
        return fnp.where(near, _quaternions().series(terms, fnp.where(near, square, 0.0)), formula(angle))

    return compute


def _translating(once: Callable[[Any], Any], twice: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the matrix ``I + once(t**2) K + twice(t**2) K**2`` of cross products ``K`` with a rotation vector."""

    def transform(rot_vec: Any) -> Any:
        x, y, z = (rot_vec[..., i] for i in range(3))
        none = 0.0 * x
        rows = [[none, -z, y], [z, none, -x], [-y, x, none]]
        across = fnp.stack([fnp.stack(row, axis=-1) for row in rows], axis=-2)
        square = fnp.sum(rot_vec * rot_vec, axis=-1)[..., None, None]
        return np.eye(3, dtype=rot_vec.dtype) + once(square) * across + twice(square) * across @ across

    return transform


_of_one_minus_cosine = _of_angle(_ONE_MINUS_COSINE, lambda t: (1.0 - fnp.cos(t)) / t**2)
_of_minus_sine = _of_angle(_MINUS_SINE, lambda t: (t - fnp.sin(t)) / t**3)
_of_cotangent = _of_angle(_COTANGENT, lambda t: (1.0 - 0.5 * t / fnp.tan(0.5 * t)) / t**2)
_of_sine_and_cosine = _of_angle(_SINE_AND_COSINE, lambda t: (2.0 - 2.0 * fnp.cos(t) - t * fnp.sin(t)) / t**4)
_of_cosine_and_sine = _of_angle(_COSINE_AND_SINE, lambda t: (3.0 * fnp.sin(t) - t * fnp.cos(t) - 2.0 * t) / t**5)


def _angular_acceleration_nonlinear_term(rotvecs: Any, rotvecs_dot: Any) -> Any:
    """Compute the part of the angular acceleration that is quadratic in the derivative of the rotation vectors."""
    square = fnp.sum(rotvecs * rotvecs, axis=1)[:, None]
    along = fnp.sum(rotvecs * rotvecs_dot, axis=1)[:, None]
    across = fnp.cross(rotvecs, rotvecs_dot)
    turned = _of_sine_and_cosine(square) * across + _of_cosine_and_sine(square) * fnp.cross(rotvecs, across)
    return along * turned + _of_minus_sine(square) * fnp.cross(rotvecs_dot, across)


@around
def with_all_steps(built: Built, self: Any, *args: Any) -> Any:
    """Wrap ``_solve_for_angular_rates``: a derivative needs more steps than the value, if the first guess is exact."""
    self.TOL = -1.0  # no step ends the iteration before MAX_ITER
    return built(self, *args)


_HOME = "scipy.spatial.transform."
ROTATIONS: dict[tuple[str, str], Callable[..., Any]] = {
    (f"{_HOME}_rotation_xp", "from_rotvec"): _from_rotvec,
    (f"{_HOME}_rotation_xp", "as_rotvec"): _as_rotvec,
    (f"{_HOME}_rotation_xp", "from_matrix"): _from_matrix,
    (f"{_HOME}_rigid_transform_xp", "_compute_se3_exp_translation_transform"): _translating(
        _of_one_minus_cosine, _of_minus_sine
    ),
    (f"{_HOME}_rigid_transform_xp", "_compute_se3_log_translation_transform"): _translating(
        lambda square: -0.5, _of_cotangent
    ),
    (f"{_HOME}_rotation_spline", "_angular_rate_to_rotvec_dot_matrix"): _translating(lambda square: 0.5, _of_cotangent),
    (f"{_HOME}_rotation_spline", "_rotvec_dot_to_angular_rate_matrix"): _translating(
        lambda square: -_of_one_minus_cosine(square), _of_minus_sine
    ),
    (f"{_HOME}_rotation_spline", "_angular_acceleration_nonlinear_term"): _angular_acceleration_nonlinear_term,
}
