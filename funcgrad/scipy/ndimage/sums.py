"""Weighted sums over neighbours: correlation, convolution, means, Gaussian filters and their derivatives.

All filters use the helpers ``prepared`` to ``shift_of``: dtype of the result, axes, entries for each axis, names of
borders.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe, plain_value
from funcgrad.errors import ConcretizationError, InputError, ShapeError
from funcgrad.graph import report_answer
from funcgrad.kinds.linear import conj
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain_zero
from funcgrad.numpy.reducing import as_inexact
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import flip
from funcgrad.scipy.ndimage.operations import correlate_axes, uniform_axis
from funcgrad.scipy.own_code import mirror_rows, mirrors
from funcgrad.typing import Array, ArrayLike, Shape

__all__ = [
    "convolve", "correlate", "correlate1d", "uniform_filter1d", "gaussian_filter", "gaussian_filter1d",
]  # fmt: skip


def _around(x: Array, lengths: Shape, origins: Shape, cval: ArrayLike) -> tuple[Array, tuple[slice, ...]]:
    """Return ``x`` padded with ``cval``, as far as windows reach, and the slices of ``x`` in the padded array."""
    before = [m // 2 + o for m, o in zip(lengths, origins, strict=True)]
    widths = [(b, m - 1 - b) for m, b in zip(lengths, before, strict=True)]
    part = tuple([slice(b, b + n) for b, n in zip(before, backend.shape_of(x), strict=True)])
    return fnp.pad(x, widths, constant_values=cval), part


def _correlated(x: Array, weights: Array, mode: str, cval: ArrayLike, origins: Shape) -> Array:
    if mode != "constant" or is_plain_zero(cval):
        return correlate_axes(x, weights, mode=mode, origins=origins)
    x, part = _around(x, backend.shape_of(weights), origins, cval)
    return getitem(correlate_axes(x, weights, mode=mode, origins=origins), part)


def _weights(weights: ArrayLike, *, conjugated: bool) -> Array:
    """Return weights in double precision, as SciPy does."""
    weights = as_value(weights)
    if backend.dtype_of(weights).kind == "c":
        return conj(weights) if conjugated else weights
    return as_inexact(weights)


def along(call: str, x: Array, weights: Array, axis: int, dtype: Any, mode: str, cval: ArrayLike, origin: int) -> Array:
    """Compute the sums along one axis with ``weights``, not conjugated, in ``dtype``."""
    shape = backend.shape_of(weights)
    if len(shape) != 1 or not shape[0]:
        raise ShapeError(f"ndimage.{call}: weights must be a vector that is not empty, got {describe(weights)}.")
    rank = len(backend.shape_of(x))
    axis, origin = normalize_axis(axis, rank), shift_of(call, origin, shape[0])
    weights = fnp.reshape(weights, tuple([shape[0] if i == axis else 1 for i in range(rank)]))
    origins = tuple([origin if i == axis else 0 for i in range(rank)])
    found = _correlated(x, weights, mode_of(call, mode, x), cval, origins)
    return fnp.astype(found, dtype)


@mirrors
def correlate1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Correlate with ``weights`` along one axis; differentiable in ``input``, ``weights`` and ``cval``.

    Args:
        input: an array.
        weights: a vector.
        axis: the axis.
        output: the dtype of the result; the default is that of ``input``.
        mode: the values beyond the border: "reflect" or "grid-mirror" (d c b a | a b c d | d c b a), "mirror"
            (d c b | a b c d | c b a), "nearest", "wrap" or "grid-wrap", "constant" or "grid-constant".
        cval: the value beyond the border for "constant".
        origin: number of elements by which the window is moved to the left.

    Raises:
        TypeError: a traced call with an array for ``output``, or with an integer result.
        ValueError: the axis, mode or origin is invalid.

    Example:
        >>> from funcgrad.scipy.ndimage import correlate1d
        >>> correlate1d([1.0, 2.0, 4.0], [1.0, 0.0, -1.0])
        array([-1., -3., -2.])
        >>> grad(lambda w: correlate1d([1.0, 2.0, 4.0], w)[0])(np.array([1.0, 0.0, -1.0]))
        array([1., 1., 2.])
    """
    weights = _weights(weights, conjugated=True)
    x, dtype = prepared("correlate1d", input, output, complex=backend.dtype_of(weights).kind == "c")
    return along("correlate1d", x, weights, axis, dtype, mode, cval, origin)


@mirror_rows
def _in_all_axes(
    name: str,
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Array:
    weights = _weights(weights, conjugated=name == "correlate")
    x, dtype = prepared(name, input, output, complex=backend.dtype_of(weights).kind == "c")
    rank = len(backend.shape_of(x))
    chosen = axes_of(name, axes, rank)
    lengths = backend.shape_of(weights)
    if len(lengths) != len(chosen) or 0 in lengths:
        raise ShapeError(
            f"ndimage.{name}: weights must have one axis, not empty, for each of {len(chosen)} axes, got "
            f"{describe(weights)}."
        )
    given: list[int] = one_per_axis(name, "origin", origin, len(chosen))
    if name == "convolve":
        weights = flip(weights, axis=tuple(range(len(lengths))))
        given = [-o if m & 1 else -o - 1 for o, m in zip(given, lengths, strict=True)]
    # SciPy assigns the axes of the weights to the array's axes in rising order, whatever the order of ``axes``.
    whole, origins = [1] * rank, [0] * rank
    for axis, m in zip(sorted(chosen), lengths, strict=True):
        whole[axis] = m
    for axis, o in zip(chosen if len(chosen) < rank else range(rank), given, strict=True):
        origins[axis] = shift_of(name, o, whole[axis])
    found = _correlated(x, fnp.reshape(weights, tuple(whole)), mode_of(name, mode, x), cval, tuple(origins))
    return fnp.astype(found, dtype)


# fmt: off
correlate = _in_all_axes("correlate",
    """Correlate with an array of ``weights``; differentiable in ``input``, ``weights`` and ``cval``.

    Args:
        input: an array.
        weights: an array with an axis for each of ``axes``.
        output: as for ``correlate1d``, like ``mode`` and ``cval``.
        mode: the border.
        cval: the value beyond the border.
        origin: one number for all axes, or one for each.
        axes: the axes; the default is all.

    Raises:
        TypeError: as for ``correlate1d``.
        ValueError: as for ``correlate1d``, or ``weights`` has another number of axes.""",
    'correlate([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], mode="constant")',
    "array([[0., 1.], [1., 5.]])")
convolve = _in_all_axes("convolve", "Convolve with an array of ``weights``; arguments as for ``correlate``.",
    'convolve([[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], mode="constant")', "array([[5., 4.], [4., 0.]])")
# fmt: on


# ---- means -------------------------------------------------------------------------------------------------


@mirrors
def uniform_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Compute the mean of ``size`` neighbours along one axis; arguments as for ``correlate1d``.

    Example:
        >>> from funcgrad.scipy.ndimage import uniform_filter1d
        >>> uniform_filter1d([3.0, 0.0, 6.0], 3)
        array([2., 3., 4.])
    """
    x, dtype = prepared("uniform_filter1d", input, output)
    if size < 1:
        raise ShapeError(f"ndimage.uniform_filter1d: size must be positive, got {size}.")
    rank = len(backend.shape_of(x))
    axis, mode, size = normalize_axis(axis, rank), mode_of("uniform_filter1d", mode, x), int(size)
    origin = shift_of("uniform_filter1d", origin, size)
    if mode != "constant" or is_plain_zero(cval):
        return fnp.astype(uniform_axis(x, axis=axis, size=size, mode=mode, origin=origin), dtype)
    lengths = tuple([size if i == axis else 1 for i in range(rank)])
    x, part = _around(x, lengths, tuple([origin if i == axis else 0 for i in range(rank)]), cval)
    return fnp.astype(getitem(uniform_axis(x, axis=axis, size=size, mode=mode, origin=origin), part), dtype)


_MODES = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "mirror": "mirror",
    "nearest": "nearest",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def prepared(call: str, input: ArrayLike, output: Any, *, complex: bool = False) -> tuple[Array, np.dtype[Any]]:
    """Return the array in the precision of the computation, and the dtype of the result.

    Raises:
        InputError: ``output`` is an array, or the result is of integers, which have no derivative.
    """
    if not (output is None or isinstance(output, (type, str, np.dtype))):
        raise InputError(
            f"ndimage.{call}: output must be a dtype or None, got {type(output).__name__}. Assign the result instead."
        )
    x = as_value(input)
    have = backend.dtype_of(x)
    dtype = have if output is None else np.dtype(output)
    if dtype.kind in "biu":
        raise InputError(
            f"ndimage.{call}: the result has the dtype of input, or output, and integers have no derivative, got "
            f"{describe(x)} and output={output}. Convert the input, or pass output=float."
        )
    if complex or have.kind == "c":
        dtype = np.promote_types(dtype, np.complex64)
    wide = np.promote_types(have, dtype) if dtype.kind != "V" else dtype
    wide = wide if have.kind == "c" else np.empty(0, wide).real.dtype
    return (x if wide == have else fnp.astype(x, wide)), dtype


def axes_of(call: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Return the axes as non-negative numbers; None means all axes.

    Raises:
        ShapeError: an axis is out of range, or given twice.
    """
    given = range(rank) if axes is None else axes if isinstance(axes, Iterable) else (axes,)
    found = [operator.index(axis) for axis in given]
    if any(not -rank <= axis < rank for axis in found) or len({axis % rank for axis in found}) < len(found):
        raise ShapeError(f"ndimage.{call}: axes must be different axes of an array of {rank}, got {axes}.")
    return tuple([axis % rank for axis in found])


def one_per_axis(call: str, name: str, given: Any, count: int) -> list[Any]:
    """Return ``given`` as one entry for each of ``count`` axes, from a single entry or a sequence.

    Raises:
        ShapeError: the sequence has another length.
    """
    if isinstance(given, str) or given is None or (not isinstance(given, (list, tuple)) and not fnp.ndim(given)):
        return [given] * count
    listed = [given[i] for i in range(len(given))]
    if len(listed) != count:
        raise ShapeError(f"ndimage.{call}: {name} must be one, or one for each axis, got {len(listed)} for {count}.")
    return listed


def mode_of(call: str, mode: Any, x: Array) -> str:
    """Return the standard name of a border, "constant" for an array without elements, which has no border.

    Raises:
        ShapeError: there is no such border.
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise ShapeError(f"ndimage.{call}: mode must be one of {', '.join(_MODES)}, got {mode!r}.")
    return _MODES[mode] if prod(backend.shape_of(x)) else "constant"


def shift_of(call: str, origin: Any, length: int) -> int:
    """Return the origin of a window of ``length``, which must lie in the window.

    Raises:
        ShapeError: the origin lies outside of the window.
    """
    origin = operator.index(origin)
    if not -(length // 2) <= origin <= (length - 1) // 2:
        raise ShapeError(
            f"ndimage.{call}: origin must leave the place inside of its window of {length}, got {origin}. Take one "
            f"from {-(length // 2)} to {(length - 1) // 2}."
        )
    return int(origin)


def plain_values(x: Any) -> np.ndarray | None:
    """Return the NumPy values of ``x``, of all examples of a ``vmap`` together; None if JAX traces ``x``."""
    x = plain_value(x)
    return None if backend.is_jax_tracer(x) else np.asarray(x)


def _radius(call: str, sigma: Array, truncate: float, radius: Any) -> int:
    """Return the number of elements that the kernel reaches to a side, the same for all examples of a ``vmap``."""
    if radius is not None:
        given = operator.index(radius)
        if given < 0:
            raise ShapeError(f"ndimage.{call}: radius must not be negative, got {radius}.")
        return int(given)
    reach = fnp.astype(fnp.floor(truncate * sigma + 0.5), int)
    values = plain_values(reach)
    if values is None or not values.size or values.min() != values.max():
        raise ConcretizationError(
            f"ndimage.{call}: the length of the kernel depends on sigma, which is not known here or differs between "
            f"the examples of a vmap, got {describe(sigma)}. Pass radius."
        )
    return int(report_answer(reach, values).flat[0])


def _kernel(sigma: Array, order: int, radius: int) -> Array:
    """Return a derivative of the Gaussian curve, normalised to the sum 1 and reversed for a correlation.

    Each derivative multiplies the curve by a polynomial q; the next polynomial is ``q' - q * x / sigma**2``.
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


def _is_identity(sigma: Array) -> bool:
    """Whether the curve is so narrow that the filter changes nothing."""
    values = plain_values(sigma)
    return (
        values is not None
        and values.size > 0
        and bool(values.max() <= 1e-15 and report_answer(sigma, values) is values)
    )


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
    """Smooth with a Gaussian curve along one axis; differentiable in ``input``, ``sigma`` and ``cval``.

    The derivative in ``sigma`` is taken at a fixed reach of the kernel.

    Args:
        input: an array.
        sigma: the width of the curve.
        axis: the axis.
        order: the order of the derivative of the curve; 0 is the curve itself.
        output: the dtype of the result; the default is that of ``input``.
        mode: as for ``correlate1d``.
        cval: the value beyond the border for "constant".
        truncate: reach of the kernel to both sides, in multiples of ``sigma``.
        radius: reach of the kernel in elements, in place of ``truncate``; needed if JAX traces ``sigma``.

    Raises:
        TypeError: a traced call with an array for ``output``, or with an integer result; a ``sigma`` whose value is
            unknown.
        ValueError: the axis, mode or order is invalid.

    Example:
        >>> from funcgrad.scipy.ndimage import gaussian_filter1d
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
    """Smooth with a Gaussian curve along all axes, or ``axes``.

    ``sigma``, ``order``, ``mode`` and ``radius`` are one for all axes, or one for each; the rest is as for
    ``gaussian_filter1d``.

    Example:
        >>> from funcgrad.scipy.ndimage import gaussian_filter
        >>> gaussian_filter([[0.0, 0.0], [0.0, 1.0]], 0.5).round(3)
        array([[0.011, 0.096], [0.096, 0.797]])
    """
    x, dtype = prepared("gaussian_filter", input, output)
    chosen = axes_of("gaussian_filter", axes, len(backend.shape_of(x)))
    sigmas, orders, modes, reaches = [
        one_per_axis("gaussian_filter", name, given, len(chosen))
        for name, given in (("sigma", sigma), ("order", order), ("mode", mode), ("radius", radius))
    ]
    for axis, s, o, how, reach in zip(chosen, map(as_value, sigmas), orders, modes, reaches, strict=True):
        if not _is_identity(s):
            x = _smoothed("gaussian_filter", x, s, axis, o, dtype, how, cval, truncate, reach)
    return fnp.astype(x, dtype)
