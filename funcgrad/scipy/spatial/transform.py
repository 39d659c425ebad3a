"""Rotations in space, and interpolation between them, of ``scipy.spatial.transform``.

Both classes are pytrees: functions of rotations can be differentiated and vectorised.

Example:
    >>> from funcgrad.scipy.spatial.transform import Rotation
    >>> grad(lambda v: Rotation.from_rotvec(v).apply([1.0, 0.0, 0.0])[1])(np.zeros(3))
    array([0., 0., 1.])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain, warn
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.norms import sqrt_flat_at_zero
from funcgrad.scipy.spatial import quaternions
from funcgrad.typing import Array, ArrayLike, Shape

__all__ = ["Rotation", "Slerp"]

_DEGREE = math.pi / 180.0


class Rotation:
    """Rotations in space: one, or an array of them of any shape.

    A pytree with one leaf, the unit quaternions. Methods and their arguments are SciPy's. All results of a rotation
    made from traced values are differentiable in these values.

    Args:
        quat: quaternions along the last axis, the scalar last.
        normalize: whether to divide the quaternions by their lengths.
        copy: no effect.
        scalar_first: whether the scalar is first.

    Raises:
        ValueError: a quaternion has length 0, or the last axis does not have length 4.

    Example:
        >>> turn = Rotation.from_euler("z", 90, degrees=True)
        >>> turn.apply([1.0, 0.0, 0.0]).round(12)
        array([0., 1., 0.])
        >>> (turn * turn).magnitude().round(12)
        np.float64(3.14159265359)
    """

    __slots__ = ("_quat",)

    def __init__(self, quat: ArrayLike, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> None:
        q = quaternions.double("Rotation", quat, 4)
        q = fnp.roll(q, -1, axis=-1) if scalar_first else q
        self._quat = quaternions.normalized(q) if normalize else q

    @classmethod
    def _of(cls, quat: Any) -> Rotation:
        """Return a rotation of ``quat``: unit quaternions, or what a transform puts in their place."""
        made = cls.__new__(cls)
        made._quat = quat
        return made

    # ---- made from -------------------------------------------------------------------------------------

    @staticmethod
    def from_quat(quat: ArrayLike, *, scalar_first: bool = False) -> Rotation:
        """Create rotations from quaternions of any length except 0.

        Example:
            >>> Rotation.from_quat([0.0, 0.0, 2.0, 0.0]).as_rotvec().round(6)
            array([0.      , 0.      , 3.141593])
        """
        return Rotation(quat, scalar_first=scalar_first)

    @staticmethod
    def from_matrix(matrix: ArrayLike, *, assume_valid: bool = False) -> Rotation:
        """Create the rotations nearest to matrices of shape (..., 3, 3).

        The derivative is that of the nearest rotation, also where the matrix is a rotation; with ``assume_valid`` it is
        the derivative of the formula for rotations.

        Raises:
            ValueError: a determinant is not positive.

        Example:
            >>> Rotation.from_matrix(2.0 * np.eye(3)).as_quat()
            array([0., 0., 0., 1.])
        """
        return Rotation._of(quaternions.from_matrix(matrix, assume_valid))

    @staticmethod
    def from_rotvec(rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Create rotations from axes times angles. Derivatives of every order exist at zero.

        Example:
            >>> Rotation.from_rotvec([0.0, 0.0, 90.0], degrees=True).as_quat().round(6)
            array([0.      , 0.      , 0.707107, 0.707107])
        """
        v = quaternions.double("Rotation.from_rotvec", rotvec, 3)
        return Rotation._of(quaternions.from_rotvec(v * _DEGREE if degrees else v))

    @staticmethod
    def from_euler(seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Create rotations from turns about axes: "xyz" about fixed axes, "XYZ" about axes that turn too.

        Raises:
            ValueError: the sequence is invalid, or has another length than ``angles``.

        Example:
            >>> Rotation.from_euler("xz", [90, 90], degrees=True).apply([1.0, 0.0, 0.0]).round(6)
            array([0., 1., 0.])
        """
        a = fnp.astype(as_value(angles), float)
        return Rotation._of(quaternions.from_euler(seq, a * _DEGREE if degrees else a))

    @staticmethod
    def from_davenport(axes: ArrayLike, order: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Create rotations from turns about any axes; ``order`` is "extrinsic" or "intrinsic", see ``from_euler``.

        Raises:
            ValueError: ``order`` is unknown, or there are not as many angles as axes.

        Example:
            >>> Rotation.from_davenport([0.0, 0.0, 1.0], "extrinsic", 90, degrees=True).as_rotvec(degrees=True).round(6)
            array([ 0.,  0., 90.])
        """
        axes = fnp.atleast_2d(quaternions.double("Rotation.from_davenport", axes, 3))
        turns = fnp.astype(as_value(angles), float)
        turns = turns[..., None] if backend.shape_of(axes)[0] == 1 and not turns.ndim else turns
        if order not in ("e", "extrinsic", "i", "intrinsic") or turns.shape[-1] != len(axes):
            raise ShapeError(
                "spatial.transform.Rotation.from_davenport: order must be 'extrinsic' or 'intrinsic', and there must be"
                f" an angle for each axis, got {order!r}, {describe(axes)} and {describe(turns)}."
            )
        axes = axes / fnp.linalg.norm(axes, axis=-1, keepdims=True)
        parts = [Rotation.from_rotvec(axes[i] * turns[..., i, None], degrees) for i in range(len(axes))]
        made = parts[0]
        for part in parts[1:]:
            made = part * made if order.startswith("e") else made * part
        return made

    @staticmethod
    def create_group(group: str, axis: str = "Z") -> Rotation:
        """Create the rotations of a symmetry group, such as "O" of a cube or "C4" of a square.

        Raises:
            ValueError: from SciPy: the group is unknown.

        Example:
            >>> len(Rotation.create_group("O"))
            24
        """
        theirs = import_scipy("spatial.transform.Rotation", "scipy.spatial.transform").Rotation
        return Rotation._of(theirs.create_group(group, axis=axis).as_quat())

    @staticmethod
    def from_mrp(mrp: ArrayLike) -> Rotation:
        """Create rotations from modified Rodrigues parameters: axes times tangents of a quarter of the angles.

        Example:
            >>> Rotation.from_mrp([0.0, 0.0, 1.0]).magnitude().round(6)
            np.float64(3.141593)
        """
        return Rotation._of(quaternions.from_mrp(quaternions.double("Rotation.from_mrp", mrp, 3)))

    @staticmethod
    def identity(num: int | None = None, *, shape: int | Shape | None = None) -> Rotation:
        """Create an identity rotation, or ``num``, or an array of ``shape``, of them.

        Raises:
            ValueError: both are given.

        Example:
            >>> len(Rotation.identity(3))
            3
        """
        if num is not None and shape is not None:
            raise ShapeError(f"spatial.transform.Rotation.identity: num or shape, got both, {num} and {shape}.")
        given = num if shape is None else shape
        outer = () if given is None else (given,) if isinstance(given, int) else tuple(given)
        return Rotation._of(np.broadcast_to(np.eye(4)[3], (*outer, 4)).copy())

    @staticmethod
    def concatenate(rotations: Rotation | Iterable[Rotation]) -> Rotation:
        """Concatenate rotations.

        Raises:
            TypeError: an element is not a Rotation.

        Example:
            >>> len(Rotation.concatenate([Rotation.identity(), Rotation.identity(2)]))
            3
        """
        if isinstance(rotations, Rotation):
            return rotations
        listed = list(rotations)
        if not listed or not all(isinstance(r, Rotation) for r in listed):
            raise InputError(
                f"spatial.transform.Rotation.concatenate: it takes Rotation objects, got {[type(r) for r in listed]}."
            )
        return Rotation._of(fnp.concatenate([r._quat[None] if r.single else r._quat for r in listed]))

    # ---- given as --------------------------------------------------------------------------------------

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Array:
        """Return quaternions; ``canonical`` ones have a scalar that is not negative.

        Example:
            >>> Rotation.identity().as_quat(scalar_first=True)
            array([1., 0., 0., 0.])
        """
        q = quaternions.canonical(self._quat) if canonical else self._quat
        return fnp.roll(q, 1, axis=-1) if scalar_first else fnp.copy(q)

    def as_matrix(self) -> Array:
        """Return matrices of shape (..., 3, 3).

        Example:
            >>> Rotation.from_euler("z", 90, degrees=True).as_matrix().round(12)[0]
            array([ 0., -1.,  0.])
        """
        return quaternions.as_matrix(self._quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return axes times angles from 0 to pi. Derivatives of every order exist at zero.

        Example:
            >>> Rotation.from_euler("z", 90, degrees=True).as_rotvec(degrees=True).round(6)
            array([ 0.,  0., 90.])
        """
        v = quaternions.as_rotvec(self._quat)
        return v / _DEGREE if degrees else v

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Array:
        """Return angles of turns about three axes, see ``from_euler``.

        If the first and last axes coincide (gimbal lock), the last angle is 0, with a warning, and derivatives are NaN.

        Example:
            >>> Rotation.from_euler("xyz", [10, 20, 30], degrees=True).as_euler("xyz", degrees=True).round(6)
            array([10., 20., 30.])
        """
        angles = quaternions.as_euler(self._quat, seq)
        middle = angles[..., 1] + (0.0 if seq[0] == seq[2] else math.pi / 2)
        if not suppress_warnings and any_true(lambda x: (abs(x) <= 1e-7) | (abs(abs(x) - math.pi) <= 1e-7), middle):
            warn("Gimbal lock detected. Setting third angle to zero.", UserWarning)
        return angles / _DEGREE if degrees else angles

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters, see ``from_mrp``.

        Example:
            >>> Rotation.from_euler("z", 180, degrees=True).as_mrp().round(6)
            array([0., 0., 1.])
        """
        return quaternions.as_mrp(self._quat)

    # ---- computed with ---------------------------------------------------------------------------------

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Rotate ``vectors``, or rotate them back; their leading axes broadcast against the shape of the rotations.

        Raises:
            ValueError: shapes do not match.

        Example:
            >>> Rotation.from_euler("z", 90, degrees=True).apply([0.0, 1.0, 0.0], inverse=True).round(12)
            array([1., 0., 0.])
        """
        v = quaternions.double("Rotation.apply", vectors, 3)
        matrix = self.as_matrix()
        self._check_shapes("apply", backend.shape_of(v)[:-1])
        return ((fnp.swapaxes(matrix, -1, -2) if inverse else matrix) @ v[..., None])[..., 0]

    def inv(self) -> Rotation:
        """Return the inverse rotations.

        Example:
            >>> turn = Rotation.from_rotvec([0.1, 0.2, 0.3])
            >>> (turn * turn.inv()).magnitude().round(12)
            np.float64(0.0)
        """
        return Rotation._of(quaternions.inverse(self._quat))

    def magnitude(self) -> Array:
        """Return the angles from 0 to pi; at the identity the derivative is zero.

        Example:
            >>> Rotation.from_rotvec([0.0, 3.0, 4.0]).magnitude().round(6)
            np.float64(1.283185)
        """
        return quaternions.magnitude(self._quat)

    def mean(self, weights: ArrayLike | None = None, axis: int | Shape | None = None) -> Rotation:
        """Return the mean over ``axis`` or all, the rotation with the least sum of squared distances of the matrices.

        Raises:
            ValueError: there are no rotations, or a weight is negative.

        Example:
            >>> Rotation.from_euler("z", [[10], [30]], degrees=True).mean().as_rotvec(degrees=True).round(6)
            array([ 0.,  0., 20.])
        """
        outer = self.shape
        if not math.prod(outer):
            raise ShapeError(f"spatial.transform.Rotation.mean: there are no rotations, got the shape {outer}.")
        q = self._quat
        k = q[..., :, None] * q[..., None, :]
        if weights is not None:
            w = fnp.astype(as_value(weights), float)
            if any_true(lambda w: w < 0, w):
                values: Any = concrete_or_none(w)
                raise ShapeError(f"spatial.transform.Rotation.mean: weights must not be negative, got {values.min()}.")
            k = w[..., None, None] * k
        given = range(len(outer)) if axis is None else (axis,) if isinstance(axis, int) else axis
        return Rotation._of(quaternions.average(fnp.mean(k, axis=tuple([i % len(outer) for i in given]))))

    def reduce(self, left: Rotation | None = None, right: Rotation | None = None, return_indices: bool = False) -> Any:
        """Return the ``l * self * r`` with the smallest angle, for ``l`` in ``left`` and ``r`` in ``right``.

        The choice is a constant.

        Returns:
            The rotations; with ``return_indices`` also the indices of ``l`` and ``r``, None for one that is not given.

        Example:
            >>> turn = Rotation.from_rotvec([0.0, 0.0, 1.7])
            >>> turn.reduce(Rotation.create_group("C4")).as_rotvec().round(6) + 0.0
            array([0.      , 0.      , 0.129204])
        """
        if left is None and right is None:
            return (self, None, None) if return_indices else self
        before, after = (Rotation.identity(1) if r is None else r for r in (left, right))
        many = Rotation._of(self._quat[..., None, None, :])
        every = Rotation._of(fnp.atleast_2d(before._quat)[:, None]) * many * Rotation._of(fnp.atleast_2d(after._quat))
        sizes = fnp.abs(every._quat[..., 3])
        best = fnp.argmax(fnp.reshape(sizes, (*sizes.shape[:-2], -1)), axis=-1)
        count = sizes.shape[-1]
        flat = fnp.reshape(every._quat, (*sizes.shape[:-2], -1, 4))
        found = Rotation._of(fnp.take_along_axis(flat, best[..., None, None], axis=-2)[..., 0, :])
        places = [None if given is None else i for given, i in zip((left, right), divmod(best, count), strict=True)]
        return (found, *places) if return_indices else found

    def approx_equal(self, other: Rotation, atol: float | None = None, degrees: bool = False) -> Array:
        """Return whether the angle between each rotation and ``other`` is less than ``atol``, by default 1e-8 radians.

        Example:
            >>> Rotation.identity().approx_equal(Rotation.from_rotvec([0.0, 0.0, 1e-9]))
            np.True_
        """
        limit = 1e-8 if atol is None else atol * _DEGREE if degrees else atol
        return (other * self.inv()).magnitude() < limit

    @staticmethod
    def align_vectors(
        a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, return_sensitivity: bool = False
    ) -> tuple[Rotation, Array]:
        """Return the rotation that brings vectors ``b`` closest to ``a``, and the root of the sum of squares left.

        Args:
            a: two vectors or more.
            b: as many vectors.
            weights: weights of the squares, all finite.
            return_sensitivity: False; only SciPy computes the sensitivity matrix.

        Raises:
            ValueError: the numbers of vectors differ, or a weight is negative or infinite.
            TypeError: ``return_sensitivity`` is True.

        Example:
            >>> turn, left = Rotation.align_vectors([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]], np.eye(3)[:2])
            >>> turn.as_rotvec(degrees=True).round(6)
            array([ 0.,  0., 90.])
        """
        if return_sensitivity:
            raise InputError(
                "spatial.transform.Rotation.align_vectors: return_sensitivity must be False, got True. Use SciPy's."
            )
        x, y = (quaternions.double("Rotation.align_vectors", v, 3) for v in (a, b))
        count = backend.shape_of(x)[0]
        if len(backend.shape_of(x)) != 2 or backend.shape_of(x) != backend.shape_of(y) or count < 2:
            raise ShapeError(
                "spatial.transform.Rotation.align_vectors: a and b must be two or more vectors, as many of both, got "
                f"{describe(x)} and {describe(y)}."
            )
        w = np.ones(count) if weights is None else fnp.astype(as_value(weights), float)
        if backend.shape_of(w) != (count,) or any_true(lambda w: ~((w >= 0) & fnp.isfinite(w)), w):
            raise ShapeError(
                f"spatial.transform.Rotation.align_vectors: weights must be a vector of {count} finite numbers, none "
                f"negative, got {describe(w)}."
            )
        found = Rotation._of(quaternions.aligning(x, y, w))
        apart = x - found.apply(y)
        return found, sqrt_flat_at_zero(fnp.sum(w * fnp.sum(apart * apart, axis=-1)))

    def __mul__(self, other: Rotation) -> Rotation:
        """Return the composition: first ``other``, then this rotation."""
        if not isinstance(other, Rotation):
            return NotImplemented
        self._check_shapes("__mul__", other.shape)
        return Rotation._of(quaternions.normalized(quaternions.composed(self._quat, other._quat)))

    def __pow__(self, n: ArrayLike, modulus: None = None) -> Rotation:
        """Return the rotation with ``n`` times the angle; differentiable in ``n``."""
        if modulus is not None:
            raise NotImplementedError("modulus not supported")
        if is_plain(n) and not np.ndim(n) and n in (-1, 1):
            return self if n == 1 else self.inv()
        return Rotation._of(quaternions.from_rotvec(as_value(n) * self.as_rotvec()))

    # ---- as an array -----------------------------------------------------------------------------------

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not an array of them."""
        return not self.shape

    @property
    def shape(self) -> Shape:
        """Shape of the array of rotations."""
        return backend.shape_of(self._quat)[:-1]

    def __len__(self) -> int:
        self._check_several("has no len()")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __setitem__(self, indexer: Any, value: Rotation) -> None:
        q = fnp.array(self._quat)
        q[indexer] = value._quat
        self._quat = q

    def __getitem__(self, indexer: Any) -> Rotation:
        self._check_several("is not subscriptable")
        return Rotation._of(getitem(self._quat, indexer))

    def __iter__(self) -> Iterator[Rotation]:
        self._check_several("is not iterable")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Rotation.from_quat({self._quat!r})"

    def _check_several(self, what: str) -> None:
        if self.single:
            raise InputError(f"Single rotation {what}: spatial.transform.Rotation, got one. Make it an array: r[None].")

    def _check_shapes(self, call: str, other: Shape) -> None:
        try:
            np.broadcast_shapes(self.shape, other)
        except ValueError as error:
            raise ShapeError(
                f"spatial.transform.Rotation.{call}: shapes must broadcast, got {self.shape} and {other}."
            ) from error


class Slerp:
    """Interpolation between rotations, at constant angular speed from one to the next.

    A pytree; differentiable in the times, the rotations, and the times of a call.

    Args:
        times: a vector of increasing times.
        rotations: one rotation for each time.

    Raises:
        TypeError: ``rotations`` is not a Rotation.
        ValueError: times do not increase, or are not as many as rotations; in a call, a time is out of range.

    Example:
        >>> ends = Rotation.from_euler("z", [[0], [90]], degrees=True)
        >>> Slerp([0.0, 1.0], ends)(0.5).as_rotvec(degrees=True).round(6)
        array([ 0.,  0., 45.])
    """

    __slots__ = ("rotations", "rotvecs", "times")

    def __init__(self, times: ArrayLike, rotations: Rotation) -> None:
        if not isinstance(rotations, Rotation):
            raise InputError(f"spatial.transform.Slerp: rotations must be a Rotation, got {type(rotations).__name__}.")
        t = fnp.astype(as_value(times), float)
        if len(rotations.shape) != 1 or backend.shape_of(t) != rotations.shape or len(rotations) < 2:
            raise ShapeError(
                f"spatial.transform.Slerp: there must be a time for each of two or more rotations, got {describe(t)} "
                f"for the shape {rotations.shape}."
            )
        if any_true(lambda t: fnp.diff(t, axis=-1) <= 0, t):
            raise ShapeError(
                f"spatial.transform.Slerp: times must be in strictly increasing order, got {concrete_or_none(t)}."
            )
        self.times, self.rotations = t, rotations[:-1]
        self.rotvecs = (self.rotations.inv() * rotations[1:]).as_rotvec()

    def __call__(self, times: ArrayLike) -> Rotation:
        """Return the rotation at a time, or at each of several times."""
        t = fnp.astype(as_value(times), float)
        if len(backend.shape_of(t)) > 1:
            raise ShapeError(f"spatial.transform.Slerp: times must be a number or a vector, got {describe(t)}.")
        values, ends = concrete_or_none(t), concrete_or_none(self.times)
        if values is None or ends is None or not values.size:
            pass
        elif values.min() < ends.min(axis=-1).max() or values.max() > ends.max(axis=-1).min():
            raise ShapeError(
                f"Interpolation times must be within the range: spatial.transform.Slerp, got {values.min()} to "
                f"{values.max()} outside of {ends.min()} to {ends.max()}."
            )
        last = backend.shape_of(self.times)[0] - 2
        place = fnp.clip(fnp.searchsorted(self.times, t) - 1, 0, last)
        start, stop = getitem(self.times, place), getitem(self.times, place + 1)
        turn = getitem(self.rotvecs, place) * ((t - start) / (stop - start))[..., None]
        return self.rotations[place] * Rotation._of(quaternions.from_rotvec(turn))


def _slerp(_: Any, parts: Iterable[Any]) -> Slerp:
    made = Slerp.__new__(Slerp)
    made.times, made.rotations, made.rotvecs = parts
    return made


tree.register_pytree_node(Rotation, lambda r: ((r._quat,), None), lambda _, parts: Rotation._of(*parts))
tree.register_pytree_node(Slerp, lambda s: ((s.times, s.rotations, s.rotvecs), None), _slerp)
