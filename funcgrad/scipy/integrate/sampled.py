"""The running integral of samples by Simpson's rule. The other rules for samples are SciPy's code."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.reducing import as_inexact
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["cumulative_simpson"]


def _running(parts: Array, initial: Any, axis: int) -> Array:
    """Return the running sums of ``parts``, after ``initial``, with the last axis moved to ``axis``."""
    sums = fnp.cumsum(parts, axis=-1)
    if initial is not None:
        initial = as_value(initial)
        shape = (*backend.shape_of(sums)[:-1], 1)
        if len(backend.shape_of(initial)) > 1:
            initial = fnp.moveaxis(initial, axis, -1)
        first = fnp.broadcast_to(fnp.astype(initial, backend.dtype_of(sums)), shape)
        sums = fnp.concatenate([first, first + sums], axis=-1)
    return fnp.moveaxis(sums, -1, axis)


@mirrors
def cumulative_simpson(
    y: ArrayLike, *, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1, initial: ArrayLike | None = None
) -> Array:
    """Return the running integral of the samples ``y`` along ``axis`` by Simpson's rule.

    Args:
        y: the samples; fewer than three are integrated by the trapezoidal rule.
        x: the sample points: along the axis, or for each sample.
        dx: the distance of samples, if there is no ``x``.
        axis: the axis.
        initial: the first entry of the result, added to the rest; None to begin with the first integral.

    Raises:
        ValueError: shapes that do not match.

    Example:
        >>> from funcgrad.scipy.integrate import cumulative_simpson
        >>> cumulative_simpson([0.0, 1.0, 4.0], initial=0.0).round(6)
        array([0.      , 0.333333, 2.666667])
    """
    dx = steps = as_value(dx)
    y = as_inexact(fnp.moveaxis(as_value(y), axis, -1))
    n = backend.shape_of(y)[-1]
    if x is not None:
        x = as_inexact(as_value(x))
        x = fnp.moveaxis(x, axis, -1) if len(backend.shape_of(x)) > 1 else x
        if backend.shape_of(x)[-1] != n:
            raise ShapeError(
                f"integrate.cumulative_simpson: x must be as long as y along the axis, got {describe(x)} for "
                f"{describe(y)}."
            )
        steps = fnp.diff(x, axis=-1)
    steps = fnp.broadcast_to(steps, (*backend.shape_of(steps)[:-1], max(n - 1, 0)))
    for told in (dx if x is None and n > 2 else None, initial):  # Python numbers promote like arrays
        if told is not None:
            y = fnp.astype(y, np.result_type(backend.dtype_of(y), backend.dtype_of(as_inexact(told))))
    if n < 3:
        return _running(steps * (y[..., 1:] + y[..., :-1]) / 2.0, initial, axis)
    ahead, behind = _halves(y, steps), _halves(y[..., ::-1], steps[..., ::-1])[..., ::-1]
    count = n - 1  # intervals: even ones are the first of a parabola, odd ones its second
    first = np.arange(count) % 2 == 0
    if n % 2 == 0:
        first[-1] = False
    places = np.arange(count)
    parts = fnp.where(first, ahead[..., np.minimum(places, n - 3)], behind[..., np.maximum(places - 1, 0)])
    return _running(parts, initial, axis)


def _halves(y: Array, steps: Array) -> Array:
    """Integrate the parabola through three consecutive samples over its first interval, for all samples."""
    h, after = steps[..., :-1], steps[..., 1:]
    share, ratio = h / (h + after), h / after
    outer = y[..., :-2] * (3.0 - share) + y[..., 1:-1] * (3.0 + share * ratio + share)
    return h / 6.0 * (outer - y[..., 2:] * (share * ratio))
