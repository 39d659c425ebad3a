"""Differences, gradients on grids, integrals of samples, and unwrapped phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.graph import stands_for_array
from funcgrad.kinds.linear import broadcast_to, reduce_sum, reshape
from funcgrad.numpy.axes import normalize_axes, normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_dtype, as_floating
from funcgrad.primitives.arithmetic import add, divide, multiply, subtract
from funcgrad.primitives.comparison import not_equal
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.scans import cumsum
from funcgrad.primitives.shaping import concatenate
from funcgrad.primitives.signals import neighbours, phase_turns
from funcgrad.typing import Array, ArrayLike, Axes, Scalar, Shape

__all__ = ["diff", "ediff1d", "gradient", "trapezoid", "unwrap"]

_ABSENT: Any = np._NoValue  # NumPy's mark of a missing argument for which None is a valid value


def _part(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    return getitem(x, (*(slice(None),) * axis, slice(start, stop)))


def _column(x: Array, axis: int, rank: int) -> Array:
    """Reshape a vector so that its elements are along ``axis`` of ``rank`` axes."""
    (n,) = backend.shape_of(x)
    return reshape(x, to=tuple([n if i == axis else 1 for i in range(rank)]))


def _steps(x: Array, axis: int) -> Array:
    return neighbours(x, axis=axis, sign=-1)


def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike = _ABSENT, append: ArrayLike = _ABSENT) -> Array:
    """Compute the differences of neighbours along ``axis``, ``n`` times.

    Args:
        a: an array.
        n: the number of times; 0 returns ``a``.
        axis: the axis.
        prepend: a number or an array to put before ``a``, before the differences are taken.
        append: a number or an array to put after ``a``, before the differences are taken.

    Raises:
        ValueError: ``a`` has no axis, or ``n`` is negative.
        numpy.exceptions.AxisError: ``axis`` is out of range.

    Example:
        >>> fnp.diff([1, 2, 4, 8])
        array([1, 2, 4])
        >>> fnp.diff([1, 2, 4, 8], 2, prepend=0)
        array([0, 1, 2])
    """
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    a = as_value(a)
    ends = [None if e is _ABSENT else as_value(e) for e in (prepend, append)]
    if is_plain(a, *ends):
        return np.diff(a, n, axis, prepend, append)
    shape = backend.shape_of(a)
    if not shape:
        raise ValueError("diff requires input that is at least one dimensional")
    along = normalize_axis(axis, len(shape))
    if not (ends[0] is ends[1] is None):
        edge = tuple([1 if i == along else length for i, length in enumerate(shape)])
        before, behind = (e if e is None or backend.shape_of(e) else broadcast_to(e, to=edge) for e in ends)
        a = concatenate(*[part for part in (before, a, behind) if part is not None], axis=along)
    for _ in range(n):
        if backend.dtype_of(a).kind == "b":
            a = not_equal(_part(a, along, 1, None), _part(a, along, None, -1))
        else:
            a = _steps(a, along)
    return a


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Compute the differences of neighbours in the flattened ``ary``.

    Args:
        ary: an array.
        to_end: numbers to put after the differences.
        to_begin: numbers to put before the differences.

    Raises:
        TypeError: the dtype of ``to_end`` or ``to_begin`` does not fit the dtype of ``ary``.

    Example:
        >>> fnp.ediff1d([[1, 2], [4, 8]], to_end=-1)
        array([ 1,  2,  4, -1])
    """
    ary = as_value(ary)
    ends = [None if e is None else as_value(e) for e in (to_begin, to_end)]
    if is_plain(ary, *ends):
        return np.ediff1d(ary, to_end, to_begin)
    dtype = backend.dtype_of(ary)
    made = _steps(_flat(ary), 0)
    if ends[0] is ends[1] is None:
        return made
    parts = []
    for name, end in zip(("to_begin", "to_end"), ends, strict=True):
        if end is not None and not np.can_cast(backend.dtype_of(end), dtype, "same_kind"):
            raise TypeError(f"ediff1d: {name} must fit the dtype of ary, {dtype}, got {describe(end)}. Convert one.")
        parts.append([] if end is None else [as_dtype(_flat(end), dtype)])
    return concatenate(*parts[0], made, *parts[1], axis=0)


def _flat(x: Array) -> Array:
    shape = backend.shape_of(x)
    return x if len(shape) == 1 else reshape(x, to=(math.prod(shape),))


def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int = 1) -> Any:
    """Compute the gradient of samples on a grid, by central differences inside and one-sided ones at the edges.

    Inside, the error is of second order even if the spacing varies. The derivative flows to the samples and to
    the spacings.

    Args:
        f: the samples.
        varargs: the spacings: none for a spacing of 1, one number for all axes, or for each axis a number or the
            coordinates of its grid points.
        axis: one axis or several, by default all.
        edge_order: the order of the error at the edges, 1 or 2.

    Returns:
        The derivative along the axis; a tuple of derivatives unless there is exactly one axis.

    Raises:
        ValueError: too few samples; coordinates of the wrong length or shape; an unknown ``edge_order``.
        TypeError: the number of spacings does not fit the number of axes.

    Example:
        >>> fnp.gradient([1.0, 2.0, 4.0, 7.0, 11.0])
        array([1. , 1.5, 2.5, 3.5, 4. ])
        >>> fnp.gradient([0.0, 1.0, 9.0], [0.0, 1.0, 3.0], edge_order=2)
        array([0., 2., 6.])
    """
    f, given = as_value(f), [as_value(v) for v in varargs]
    if is_plain(f, *given):
        return np.gradient(f, *given, axis=axis, edge_order=edge_order)  # type: ignore[call-overload]
    shape = backend.shape_of(f)
    axes = normalize_axes(axis, len(shape))
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = _spacings(given, shape, axes)
    if any(shape[i] < edge_order + 1 for i in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required."
        )
    f = as_floating(f)
    made = [_gradient_along(f, h, i, edge_order) for i, h in zip(axes, spacings, strict=True)]
    return made[0] if len(made) == 1 else tuple(made)


def _spacings(given: Sequence[Array], shape: Shape, axes: tuple[int, ...]) -> Sequence[Array]:
    """Return for each axis the spacing: a number, or the distances of its grid points along that axis."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and not backend.shape_of(given[0]):
        return list(given) * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    return [_spacing(h, shape, axis) for h, axis in zip(given, axes, strict=True)]


def _spacing(h: Array, shape: Shape, axis: int) -> Array:
    have = backend.shape_of(h)
    if not have:
        return h
    if len(have) != 1:
        raise ValueError("distances must be either scalars or 1d")
    if have[0] != shape[axis]:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = _steps(as_floating(h), 0)
    if stands_for_array(steps) and bool((steps == steps[0]).all()):
        return steps[0]
    return _column(steps, axis, len(shape))


def _gradient_along(f: Array, h: Array, axis: int, edge_order: int) -> Array:
    """Compute the derivative along one axis; ``h`` is the one spacing, or the distances of neighbouring points."""
    uniform = not backend.shape_of(h)

    def samples(*places: int) -> list[Array]:
        return [_part(f, axis, i, i + 1 or None) for i in places]

    def step(i: int) -> Array:
        return h if uniform else _part(h, axis, i, i + 1 or None)

    before, behind = _part(f, axis, None, -2), _part(f, axis, 2, None)
    if uniform:
        inner = divide(subtract(behind, before), multiply(h, 2.0))
    else:
        weights = _central(_part(h, axis, None, -1), _part(h, axis, 1, None))
        inner = _weighted(weights, [before, _part(f, axis, 1, -1), behind])
    if edge_order == 1:
        first, last = (divide(subtract(b, a), step(i)) for i, (a, b) in ((0, samples(0, 1)), (-1, samples(-2, -1))))
    elif uniform:
        weights = (0.5, -2.0, 1.5)
        first = divide(_weighted(weights, samples(2, 1, 0)), -h)
        last = divide(_weighted(weights, samples(-3, -2, -1)), h)
    else:
        first = -_weighted(_one_sided(step(0), step(1)), samples(2, 1, 0))
        last = _weighted(_one_sided(step(-1), step(-2)), samples(-3, -2, -1))
    return as_dtype(concatenate(first, inner, last, axis=axis), backend.dtype_of(f))


def _weighted(weights: tuple[Array, ...], samples: list[Array]) -> Array:
    a, b, c = [multiply(w, s) for w, s in zip(weights, samples, strict=True)]
    return add(add(a, b), c)


def _central(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Return the weights of three samples for the derivative at the middle one, ``p`` and ``q`` from its neighbours.

    These weights, and those of ``_one_sided``, are exact for parabolas.
    """
    return -q / (p * (p + q)), (q - p) / (p * q), p / (q * (p + q))


def _one_sided(q: Array, p: Array) -> tuple[Array, Array, Array]:
    """Return the weights for the derivative at the last of three points, at distances ``p``, then ``q``."""
    return q / (p * (p + q)), -(q + p) / (p * q), (2.0 * q + p) / (q * (p + q))


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Compute the integral of the samples ``y`` along ``axis`` by the trapezoidal rule.

    Args:
        y: the samples.
        x: the sample points, along the axis or for each element of ``y``. The derivative flows to ``x`` too.
        dx: the distance of the sample points if ``x`` is not given.
        axis: the axis.

    Raises:
        numpy.exceptions.AxisError: ``axis`` is out of range.

    Example:
        >>> fnp.trapezoid([1.0, 2.0, 3.0], [0.0, 1.0, 3.0])
        np.float64(6.5)
    """
    y, spacing = as_value(y), as_value(dx if x is None else x)
    if is_plain(y, spacing):
        return np.trapezoid(y, x, dx, axis)
    rank = len(backend.shape_of(y))
    along = normalize_axis(axis, rank)
    if x is not None and len(backend.shape_of(spacing)) == 1:
        spacing = _column(_steps(spacing, 0), along, rank)
    elif x is not None:
        spacing = diff(spacing, axis=axis)
    areas = divide(multiply(spacing, neighbours(y, axis=along, sign=1)), 2.0)
    return reduce_sum(areas, axis=(normalize_axis(axis, len(backend.shape_of(areas))),))


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, *, period: Scalar = 2 * math.pi) -> Array:
    """Add whole periods to the phases ``p`` so that no step along ``axis`` exceeds half a period.

    The number of periods added is constant between the jumps. The derivative in ``p`` is therefore the identity;
    the derivative in ``period`` is the number of periods added.

    Args:
        p: phases, real numbers.
        discont: the smallest step at which periods are added, by default (and at least) half a period.
        axis: the axis.
        period: the length of a period.

    Raises:
        ValueError: ``p`` has no axis.
        TypeError: ``p`` is complex.

    Example:
        >>> fnp.unwrap([0, 2, 5, 7, 10], period=4)
        array([0, 2, 1, 3, 2])
    """
    p, period = as_value(p), as_value(period)
    limit = as_value(divide(period, 2) if discont is None else discont)
    if is_plain(p, period, limit):
        return np.unwrap(p, discont, axis, period=period)
    shape = backend.shape_of(p)
    if not shape:
        raise ValueError("unwrap requires phases along an axis")
    along = normalize_axis(axis, len(shape))
    turns = cumsum(phase_turns(_steps(p, along), period, limit), axis=along)
    rest = add(_part(p, along, 1, None), multiply(turns, period))
    return concatenate(_part(p, along, 0, 1), rest, axis=along)
