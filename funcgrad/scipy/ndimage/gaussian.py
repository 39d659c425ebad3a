"""Filters with the bell curve and its derivatives; differentiable in the width too."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ConcretizationError, ShapeError
from funcgrad.graph import steer
from funcgrad.numpy.creation import as_value
from funcgrad.primitives.norms import flat_root
from funcgrad.scipy.mirror import mirrors
from funcgrad.scipy.ndimage.arguments import axes_of, entries, prepared, value_of
from funcgrad.scipy.ndimage.sums import along
from funcgrad.typing import Array, ArrayLike

__all__ = ["gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude"]


def _radius(call: str, sigma: Array, truncate: float, radius: Any) -> int:
    """How far the kernel reaches; a number of elements, the same for all examples of a ``vmap``."""
    if radius is not None:
        given = operator.index(radius)
        if given < 0:
            raise ShapeError(f"ndimage.{call}: radius must not be negative, got {radius}.")
        return int(given)
    reach = fnp.astype(fnp.floor(truncate * sigma + 0.5), int)
    values = value_of(reach)
    if values is None or not values.size or values.min() != values.max():
        raise ConcretizationError(
            f"ndimage.{call}: the length of the kernel depends on sigma, which is not known here or differs between "
            f"the examples of a vmap, got {describe(sigma)}. Pass radius."
        )
    return int(steer(reach, values).flat[0])


def _kernel(sigma: Array, order: int, radius: int) -> Array:
    """A derivative of the bell curve whose values have the sum 1, turned round for a correlation.

    Each derivative multiplies the curve with a polynomial q, whose successor is ``q' - q * x / sigma**2``.
    """
    x = np.arange(-radius, radius + 1.0)
    square = sigma * sigma
    curve = fnp.exp(-0.5 / square * x**2)
    curve = curve / fnp.sum(curve)
    if not order:
        return curve
    q: list[Any] = [1.0] + [0.0] * order
    for _ in range(order):
        slopes = [(i + 1) * c for i, c in enumerate(q[1:])] + [0.0]
        q = [s - c / square for s, c in zip(slopes, [0.0, *q[:-1]], strict=True)]
    values = q[-1] * np.ones(len(x))
    for c in q[-2::-1]:
        values = values * x + c
    return fnp.flip(values * curve)


def _is_nothing(sigma: Array) -> bool:
    """Whether the curve is so narrow that it leaves everything as it is."""
    values = value_of(sigma)
    return values is not None and values.size > 0 and bool(values.max() <= 1e-15 and steer(sigma, values) is values)


def _smoothed(
    call: str,
    x: Array,
    sigma: Any,
    axis: int,
    order: int,
    dtype: Any,
    mode: str,
    cval: Any,
    truncate: float,
    radius: Any,
) -> Array:
    order = operator.index(order)
    if order < 0:
        raise ShapeError(f"ndimage.{call}: order must not be negative, got {order}.")
    if backend.shape_of(sigma):
        raise ShapeError(f"ndimage.{call}: sigma must be one number for each axis, got {describe(sigma)}.")
    sigma = fnp.astype(sigma, float)
    weights = _kernel(sigma, order, _radius(call, sigma, truncate, radius))
    return along(call, x, weights, axis, dtype, mode, cval, 0)


@mirrors
def gaussian_filter1d(
    input: ArrayLike,
    sigma: ArrayLike,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Array:
    """Smoothing with a bell curve along one axis; differentiable in ``input``, ``sigma`` and ``cval``.

    In ``sigma`` the derivative is that with the reach of the kernel held fixed.

    Args:
        input: an array.
        sigma: the width of the curve.
        axis: the axis.
        order: which derivative of the curve to take.
        output: the dtype of the result; by default that of ``input``.
        mode: as for ``correlate1d``.
        cval: the value beyond the border for "constant".
        truncate: by how many widths the kernel reaches to both sides.
        radius: by how many elements, instead; needed where ``sigma`` is traced by JAX.

    Raises:
        TypeError: a traced call with an array for ``output``, or whose result would be of integers; a ``sigma``
            whose value is not known.
        ValueError: an axis, a mode or an order that there is not.

    Example:
        >>> gaussian_filter1d([0.0, 1.0, 0.0], 0.5, radius=1).round(6)
        array([0.106507, 0.786986, 0.106507])
        >>> grad(lambda s: gaussian_filter1d([0.0, 1.0, 0.0], s)[1])(0.5).round(6)
        np.float64(-1.35298)
    """
    x, dtype = prepared("gaussian_filter1d", input, output)
    return _smoothed("gaussian_filter1d", x, as_value(sigma), axis, order, dtype, mode, cval, truncate, radius)


@mirrors
def gaussian_filter(
    input: ArrayLike,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Array:
    """Smoothing with a bell curve along all axes, or ``axes``.

    ``sigma``, ``order``, ``mode`` and ``radius`` are one for all axes, or one for each; else as ``gaussian_filter1d``.

    Example:
        >>> gaussian_filter([[0.0, 0.0], [0.0, 1.0]], 0.5).round(3)
        array([[0.011, 0.096], [0.096, 0.797]])
    """
    x, dtype = prepared("gaussian_filter", input, output)
    return _filtered("gaussian_filter", x, sigma, order, dtype, mode, cval, truncate, radius, axes)


def _filtered(
    call: str,
    x: Array,
    sigma: Any,
    order: Any,
    dtype: Any,
    mode: Any,
    cval: Any,
    truncate: float = 4.0,
    radius: Any = None,
    axes: Any = None,
) -> Array:
    chosen = axes_of(call, axes, len(backend.shape_of(x)))
    sigmas, orders, modes, reaches = [
        entries(call, name, given, len(chosen))
        for name, given in (("sigma", sigma), ("order", order), ("mode", mode), ("radius", radius))
    ]
    for axis, s, o, how, reach in zip(chosen, map(as_value, sigmas), orders, modes, reaches, strict=True):
        if not _is_nothing(s):
            x = _smoothed(call, x, s, axis, o, dtype, how, cval, truncate, reach)
    return fnp.astype(x, dtype)


@mirrors
def gaussian_gradient_magnitude(
    input: ArrayLike,
    sigma: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: Any = None,
    **kwargs: Any,
) -> Array:
    """The length of the gradient by ``gaussian_filter``, which takes ``kwargs``; where it is 0 its derivative is 0.

    Example:
        >>> gaussian_gradient_magnitude([0.0, 1.0, 2.0], 1.0).round(6)
        array([0.349418, 0.698837, 0.349418])
    """
    x, dtype = prepared("gaussian_gradient_magnitude", input, output)
    rank = len(backend.shape_of(x))
    chosen = axes_of("gaussian_gradient_magnitude", axes, rank)

    modes = entries("gaussian_gradient_magnitude", "mode", mode, len(chosen))
    squares = []
    for axis, how in zip(chosen, modes, strict=True):
        orders = [1 if i == axis else 0 for i in range(rank)]
        term = _filtered("gaussian_gradient_magnitude", x, sigma, orders, dtype, how, cval, **kwargs)
        squares.append(term * term)
    if not squares:
        return fnp.astype(x, dtype)
    return flat_root(sum(squares[1:], squares[0]))
