"""Functions of rotations in SciPy's Python code, which ``RigidTransform`` calls.

SciPy's functions divide by the angle, which has no derivative at no rotation, and leave a matrix as it is if it is a
rotation already, so that the derivative would be that of another matrix near it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
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


#: Coefficients of series in the squared angle t**2: of (1 - cos t) / t**2, (t - sin t) / t**3 and, with Bernoulli's
#: numbers, (1 - t / 2 cot(t / 2)) / t**2.
_ONE_MINUS_COSINE = [(-1) ** k / math.factorial(2 * k + 2) for k in range(10)]
_MINUS_SINE = [(-1) ** k / math.factorial(2 * k + 3) for k in range(10)]
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


_HOME = "scipy.spatial.transform."
ROTATIONS: dict[tuple[str, str], Callable[..., Any]] = {
    (f"{_HOME}_rotation_xp", "from_rotvec"): _from_rotvec,
    (f"{_HOME}_rotation_xp", "as_rotvec"): _as_rotvec,
    (f"{_HOME}_rotation_xp", "from_matrix"): _from_matrix,
    (f"{_HOME}_rigid_transform_xp", "_compute_se3_exp_translation_transform"): _translating(
        _of_angle(_ONE_MINUS_COSINE, lambda t: (1.0 - fnp.cos(t)) / t**2),
        _of_angle(_MINUS_SINE, lambda t: (t - fnp.sin(t)) / t**3),
    ),
    (f"{_HOME}_rigid_transform_xp", "_compute_se3_log_translation_transform"): _translating(
        lambda square: -0.5, _of_angle(_COTANGENT, lambda t: (1.0 - 0.5 * t / fnp.tan(0.5 * t)) / t**2)
    ),
}
