"""Convolution and correlation of arrays of any number of axes."""

from __future__ import annotations

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import conj
from funcgrad.numpy.creation import as_value
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.mirror import mirrors
from funcgrad.scipy.signal.operations import convolve_axes
from funcgrad.typing import Array, ArrayLike, Shape

__all__ = ["convolve", "convolve2d", "correlate2d"]


def _part(call: str, mode: str, x: Shape, y: Shape) -> tuple[slice, ...]:
    """Which part of the full convolution ``mode`` means."""
    if mode not in ("full", "same", "valid"):
        raise ShapeError(f"{call}: mode must be full, same or valid, got {mode!r}.")
    if mode == "valid" and not (
        all(n >= m for n, m in zip(x, y, strict=True)) or all(n <= m for n, m in zip(x, y, strict=True))
    ):
        raise ShapeError(f"{call}: for valid one array must be at least as long in all axes, got {x} and {y}.")
    parts = []
    for n, m in zip(x, y, strict=True):
        length = {"full": n + m - 1, "same": n, "valid": abs(n - m) + 1}[mode]
        start = (n + m - 1 - length) // 2
        parts.append(slice(start, start + length))
    return tuple(parts)


def _convolved(call: str, x: Array, y: Array, mode: str, method: str) -> Array:
    shapes = backend.shape_of(x), backend.shape_of(y)
    if len(shapes[0]) != len(shapes[1]):
        raise ShapeError(f"{call}: both arrays must have as many axes, got {shapes[0]} and {shapes[1]}.")
    if not shapes[0]:
        return x * y
    part = _part(call, mode, *shapes)
    return getitem(convolve_axes(x, y, rank=len(part), method=method), part)


@mirrors
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto") -> Array:
    """The convolution of two arrays over all axes.

    Args:
        in1: an array.
        in2: an array with as many axes.
        mode: "full" for all, "same" for the middle of the shape of ``in1``, "valid" for where one array lies within
            the other.
        method: "direct", "fft", or "auto" for the faster.

    Raises:
        ValueError: shapes that do not fit, an unknown mode.

    Example:
        >>> convolve([1.0, 2.0, 3.0], [1.0, 10.0])
        array([ 1., 12., 23., 30.])
    """
    x, y = as_value(in1), as_value(in2)
    return _convolved("signal.convolve", x, y, mode, method)


def _turned(y: Array) -> Array:
    """``y`` turned round in all axes, and conjugated."""
    y = fnp.flip(y)
    return conj(y) if backend.dtype_of(y).kind == "c" else y


@mirrors
def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Array:
    """The convolution of two matrices.

    Args:
        in1: a matrix.
        in2: a matrix.
        mode: as for ``convolve``.
        boundary: what stands around ``in1``: "fill" a value, "wrap" it again, "symm" its mirror image.
        fillvalue: that value.

    Raises:
        ValueError: shapes that do not fit, an unknown mode or boundary.

    Example:
        >>> convolve2d([[1.0, 2.0]], [[1.0, 10.0]], "same", boundary="wrap")
        array([[21., 12.]])
    """
    x, y = as_value(in1), as_value(in2)
    if len(backend.shape_of(x)) != 2 or len(backend.shape_of(y)) != 2:
        raise ShapeError(
            f"signal.convolve2d: both arrays must be matrices, got {backend.shape_of(x)} and {backend.shape_of(y)}."
        )
    if mode == "valid" or (boundary == "fill" and not fillvalue):
        return _convolved("signal.convolve2d", x, y, mode, "direct")
    modes = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
    if boundary not in modes:
        raise ShapeError(f"signal.convolve2d: boundary must be fill, wrap or symm, got {boundary!r}.")
    part = _part("signal.convolve2d", mode, backend.shape_of(x), backend.shape_of(y))
    widths = [(m - 1, m - 1) for m in backend.shape_of(y)]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    around = fnp.pad(x, widths, modes[boundary], **options)
    whole = convolve_axes(around, y, rank=2, method="direct")
    inner = tuple([slice(m - 1, n) for n, m in zip(backend.shape_of(around), backend.shape_of(y), strict=True)])
    return getitem(getitem(whole, inner), part)


@mirrors
def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill", fillvalue: float = 0
) -> Array:
    """The cross-correlation of two matrices; arguments as for ``convolve2d``, boundaries "fill" with zero when traced.

    Example:
        >>> correlate2d([[1.0, 2.0]], [[1.0, 10.0]])
        array([[10., 21.,  2.]])
    """
    x, y = as_value(in1), as_value(in2)
    if boundary != "fill" or fillvalue:
        raise InputError(
            f"signal.correlate2d: boundary={boundary!r} with fillvalue={fillvalue} is for plain values. Use convolve2d "
            "with in2[::-1, ::-1]."
        )
    if mode == "same":  # SciPy's middle: of an even length that behind it, elsewhere that before
        whole = _convolved("signal.correlate2d", x, _turned(y), "full", "direct")
        starts = [m // 2 for m in backend.shape_of(y)]
        return getitem(whole, tuple([slice(i, i + n) for i, n in zip(starts, backend.shape_of(x), strict=True)]))
    return _convolved("signal.correlate2d", x, _turned(y), mode, "direct")
