"""Unit quaternions, the scalar last, and conversions to other forms of rotations; all are along the last axis.

Near zero, series in the squared angle replace division by the angle, so that derivatives of every order are exact.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none
from funcgrad.primitives.norms import sqrt_flat_at_zero
from funcgrad.transforms import stop_gradient
from funcgrad.typing import Array, ArrayLike

#: Coefficients of the series of sin(t / 2) / t, cos(t / 2) and arctan(t) / t in t**2.
_SINE = [(-1) ** k / (2 ** (2 * k + 1) * math.factorial(2 * k + 1)) for k in range(10)]
_COSINE = [(-1) ** k / (4**k * math.factorial(2 * k)) for k in range(10)]
_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(16)]


def double(call: str, x: ArrayLike, length: int) -> Array:
    """Return vectors of ``length`` in double precision.

    Raises:
        ShapeError: the vectors have another length.
    """
    x = as_value(x)
    if backend.shape_of(x)[-1:] != (length,) or backend.dtype_of(x).kind == "c":
        raise ShapeError(f"spatial.transform.{call}: the last axis must have {length} real numbers, got {describe(x)}.")
    return fnp.astype(x, float)


def series(terms: list[float], x: Array) -> Array:
    """Return the sum of ``terms[k] * x**k``."""
    total: Any = terms[-1]
    for term in reversed(terms[:-1]):
        total = total * x + term
    return total


def _dot(x: Array, y: Array) -> Array:
    return fnp.sum(x * y, axis=-1, keepdims=True)


def normalized(q: Array) -> Array:
    """Return the quaternions divided by their lengths.

    Raises:
        ValueError: a quaternion has length 0.
    """
    size = fnp.sqrt(_dot(q, q))
    if any_true(lambda size: size == 0, size):
        raise ValueError("Found zero norm quaternions in `quat`: spatial.transform.Rotation. Leave them out.")
    return q / size


def canonical(q: Array) -> Array:
    """Return the one of q and -q whose scalar, or otherwise first element that is not zero, is positive."""
    x, y, z, w = (q[..., i] for i in range(4))
    last = fnp.where(w != 0, w, fnp.where(x != 0, x, fnp.where(y != 0, y, z)))
    return fnp.where((last < 0)[..., None], -q, q)


def composed(p: Array, q: Array) -> Array:
    """Return the product: first ``q``, then ``p``."""
    a, b = p[..., :3], q[..., :3]
    s, t = p[..., 3:], q[..., 3:]
    return fnp.concatenate([s * b + t * a + fnp.cross(a, b), s * t - _dot(a, b)], axis=-1)


def inverse(q: Array) -> Array:
    """Return the inverse rotation."""
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def from_rotvec(v: Array) -> Array:
    """Convert rotation vectors, axes times angles, to quaternions."""
    square = _dot(v, v)
    near = square <= 1.0
    little = fnp.where(near, square, 0.0)
    angle = fnp.sqrt(fnp.where(near, 1.0, square))
    scale = fnp.where(near, series(_SINE, little), fnp.sin(angle / 2) / angle)
    scalar = fnp.where(near, series(_COSINE, little), fnp.cos(angle / 2))
    return fnp.concatenate([scale * v, scalar], axis=-1)


def as_rotvec(q: Array) -> Array:
    """Convert quaternions to rotation vectors, axes times angles from 0 to pi."""
    q = canonical(q)
    v, w = q[..., :3], q[..., 3:]
    square = _dot(v, v)
    near = square <= 0.04 * w * w
    scalar = fnp.where(near, w, 1.0)
    little = fnp.where(near, square, 0.0) / (scalar * scalar)
    size = fnp.sqrt(fnp.where(near, 1.0, square))
    return fnp.where(near, 2.0 * series(_ARCTANGENT, little) / scalar, 2.0 * fnp.arctan2(size, w) / size) * v


def magnitude(q: Array) -> Array:
    """Return the angles from 0 to pi; at the identity the derivative is zero."""
    v, w = q[..., :3], q[..., 3]
    return 2.0 * fnp.arctan2(sqrt_flat_at_zero(fnp.sum(v * v, axis=-1)), fnp.abs(w))


def from_mrp(m: Array) -> Array:
    """Convert modified Rodrigues parameters, axes times tangents of a quarter of the angles, to quaternions."""
    square = _dot(m, m)
    return fnp.concatenate([2.0 * m, 1.0 - square], axis=-1) / (1.0 + square)


def as_mrp(q: Array) -> Array:
    """Convert quaternions to modified Rodrigues parameters, axes times tangents of a quarter of the angles."""
    w = q[..., 3:]
    sign = fnp.where(w < 0, -1.0, 1.0)
    return sign * q[..., :3] / (1.0 + sign * w)


def as_matrix(q: Array) -> Array:
    """Convert quaternions to matrices."""
    x, y, z, w = (q[..., i] for i in range(4))
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    xy, zw, xz, yw, yz, xw = x * y, z * w, x * z, y * w, y * z, x * w
    rows = [
        [xx - yy - zz + ww, 2.0 * (xy - zw), 2.0 * (xz + yw)],
        [2.0 * (xy + zw), -xx + yy - zz + ww, 2.0 * (yz - xw)],
        [2.0 * (xz - yw), 2.0 * (yz + xw), -xx - yy + zz + ww],
    ]
    return fnp.stack([fnp.stack(row, axis=-1) for row in rows], axis=-2)


# ---- matrices ----------------------------------------------------------------------------------------------


def from_matrix(matrix: ArrayLike, assume_valid: bool) -> Array:
    """Convert matrices to the quaternions of the nearest rotations.

    Raises:
        ShapeError: the matrices are not 3 x 3.
        ValueError: a determinant is not positive.
    """
    m = as_value(matrix)
    if backend.shape_of(m)[-2:] != (3, 3):
        raise ShapeError(f"spatial.transform.Rotation.from_matrix: matrix must be 3 x 3, got {describe(m)}.")
    m = fnp.astype(m, float)
    if not assume_valid:
        m = _orthogonal(m)
    # of four quaternions that differ in length only, take the largest: others may be 0 (Markley, 2008)
    a, b, c = (m[..., i, i] for i in range(3))
    yz, zx, xy = (m[..., i, j] - m[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    sums = [m[..., i, j] + m[..., j, i] for i, j in ((1, 0), (2, 0), (2, 1))]
    trace = a + b + c
    candidates = [
        [1.0 - trace + 2.0 * a, sums[0], sums[1], yz],
        [sums[0], 1.0 - trace + 2.0 * b, sums[2], zx],
        [sums[1], sums[2], 1.0 - trace + 2.0 * c, xy],
        [yz, zx, xy, 1.0 + trace],
    ]
    choice = fnp.argmax(fnp.stack([a, b, c, trace], axis=-1), axis=-1)[..., None]
    found = fnp.stack(candidates[3], axis=-1)
    for i in range(3):
        found = fnp.where(choice == i, fnp.stack(candidates[i], axis=-1), found)
    return normalized(found)


def _orthogonal(m: Array) -> Array:
    """Return the orthogonal polar factor, by Newton's iteration (Higham, 1986), whose derivatives converge too.

    A singular value decomposition would give this factor, but it has no derivative where singular values are equal, as
    they are for rotations.
    """
    steps = 12
    if concrete_or_none(m, steers=False) is not None:
        if backend.shape_of(m)[0] and any_true(lambda m: fnp.linalg.det(m) <= 0, m):
            raise ValueError(
                "Non-positive determinant (left-handed or null coordinate frame) in rotation matrix: "
                "spatial.transform.Rotation.from_matrix. Pass right-handed axes."
            )
        if not any_true(lambda m: ~(abs(m @ fnp.swapaxes(m, -1, -2) - np.eye(3)) <= 1e-12), m):
            if issubclass(type(m), np.ndarray):
                return m
            steps = 3  # one step for each order of derivatives, and one more
    m = m / fnp.cbrt(fnp.linalg.det(m))[..., None, None]
    for _ in range(steps):
        m = 0.5 * (m + fnp.swapaxes(fnp.linalg.inv(m), -1, -2))
    return m


def average(k: Array) -> Array:
    """Return the eigenvector of the largest eigenvalue of symmetric matrices.

    Other eigenvalues may be equal, where the full decomposition has no derivative. Therefore two steps of Newton's
    method start at the eigenvector, held fixed, and return it with derivatives.
    """
    values, vectors = fnp.linalg.eigh(stop_gradient(k))
    v, w = vectors[..., -1], values[..., -1]
    for _ in range(2):
        top = fnp.concatenate([k - w[..., None, None] * np.eye(4), -v[..., None]], axis=-1)
        below = fnp.concatenate([v, 0.0 * w[..., None]], axis=-1)[..., None, :]
        wrong = fnp.concatenate([(k @ v[..., None])[..., 0] - w[..., None] * v, 0.5 * (_dot(v, v) - 1.0)], axis=-1)
        step = fnp.linalg.solve(fnp.concatenate([top, below], axis=-2), wrong[..., None])[..., 0]
        v, w = v - step[..., :4], w - step[..., 4]
    return v


def aligning(a: Array, b: Array, w: Array) -> Array:
    """Return the rotation of ``b`` to ``a`` with the least sum of squares, weighted by ``w`` (Horn, 1987)."""
    m = fnp.swapaxes(w[:, None] * a, -1, -2) @ b
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    z = fnp.stack([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    top = fnp.concatenate([m + m.T - trace * np.eye(3), z[:, None]], axis=1)
    return average(fnp.concatenate([top, fnp.concatenate([z, trace[None]])[None]]))


# ---- angles about axes -------------------------------------------------------------------------------------


def _axes(call: str, seq: str, least: int) -> list[int]:
    """Return the axes that a sequence names, as numbers.

    Raises:
        ValueError: the sequence names other axes, or one axis twice in a row.
    """
    fits = least <= len(seq) <= 3 and (set(seq) <= set("xyz") or set(seq) <= set("XYZ"))
    if not fits or any(a == b for a, b in pairwise(seq)):
        raise ShapeError(
            f"spatial.transform.Rotation.{call}: seq must name {least} to 3 axes, of xyz or of XYZ, none twice in a "
            f"row, got {seq!r}."
        )
    return ["xyz".index(axis) for axis in seq.lower()]


def from_euler(seq: str, angles: Array) -> Array:
    """Convert turns about axes, one after the other, to quaternions; upper-case axes turn with the body.

    Raises:
        ShapeError: the sequence is invalid, or has another length than ``angles``.
    """
    axes = _axes("from_euler", seq, 1)
    angles = fnp.atleast_1d(angles)
    if backend.shape_of(angles)[-1] != len(axes):
        raise ShapeError(
            f"spatial.transform.Rotation.from_euler: the last axis of angles must have one for each of {seq!r}, got "
            f"{describe(angles)}."
        )
    found: Any = None
    for i, axis in enumerate(axes):
        half = angles[..., i : i + 1] / 2.0
        unit = np.eye(4)
        turn = fnp.sin(half) * unit[axis] + fnp.cos(half) * unit[3]
        if found is not None:
            turn = composed(found, turn) if seq.isupper() else composed(turn, found)
        found = turn
    return found


def as_euler(q: Array, seq: str) -> Array:
    """Convert to turns about three axes (Bernardes and Viollet, 2022); at gimbal lock the third angle is 0.

    Raises:
        ShapeError: the sequence is invalid.
    """
    axes = _axes("as_euler", seq, 3)
    extrinsic = seq.islower()
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = float((i - j) * (j - k) * (k - i) // 2)
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2.0 * fnp.arctan2(fnp.hypot(c, d), fnp.hypot(a, b))
    total, apart = fnp.arctan2(b, a), fnp.arctan2(d, c)
    at_start, at_end = fnp.abs(middle) <= 1e-7, fnp.abs(middle - math.pi) <= 1e-7
    locked = at_start | at_end
    only = fnp.where(at_start, 2.0 * total, (-2.0 if extrinsic else 2.0) * apart)
    first, third = total - apart, total + apart
    if not extrinsic:
        first, third = third, first
    # at gimbal lock SciPy keeps the first of the two angles about one axis
    first, third = fnp.where(locked, only, first), fnp.where(locked, 0.0, third)
    if not symmetric:
        first, third = (first, third * sign) if extrinsic else (first * sign, third)
        middle = middle - math.pi / 2
    found = fnp.stack([first, middle, third], axis=-1)
    return fnp.mod(found + math.pi, 2 * math.pi) - math.pi
