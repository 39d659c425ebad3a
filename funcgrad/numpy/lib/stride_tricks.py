"""Windows that slide over an array, as ``numpy.lib.stride_tricks`` has them."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.core import Tracer, describe
from funcgrad.errors import NotDifferentiableError
from funcgrad.numpy.axes import one_axis
from funcgrad.numpy.creation import as_value
from funcgrad.primitives.windows import windows
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import locked, share

__all__ = ["sliding_window_view"]


def sliding_window_view(
    x: ArrayLike, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows of ``x``: the axes of ``x`` for their places, and behind them axes for what is in them.

    Args:
        x: an array.
        window_shape: the length of a window, or those along each of ``axis``.
        axis: the axis or axes along which windows slide, by default all; one may come twice.
        subok: as NumPy.
        writeable: as NumPy; windows of traced values can only be read.

    Raises:
        ValueError: not as many lengths as axes, or a window that is negative or longer than its axis.
        NotDifferentiableError: windows of traced values are to be written to.

    Example:
        >>> from funcgrad.numpy.lib.stride_tricks import sliding_window_view
        >>> sliding_window_view([1, 2, 3, 4], 3)
        array([[1, 2, 3],
               [2, 3, 4]])
    """
    x = as_value(x)
    if namespace_of(x) is np:
        return np.lib.stride_tricks.sliding_window_view(x, window_shape, axis, subok=subok, writeable=writeable)
    if writeable:
        raise NotDifferentiableError(
            f"sliding_window_view: elements stand in many windows, so those of traced values can only be read, got "
            f"writeable=True and {describe(x)}. Write to the array itself, or to a copy of the windows."
        )
    lengths, axes = _lengths_and_axes(backend.shape_of(x), window_shape, axis)
    params = {"window": lengths, "axis": axes}
    made = windows(x, **params)
    if isinstance(x, Tracer):
        share(x, made, windows, params)  # NumPy's own does not tell whose memory it is a view of
    return locked(made)


def _lengths_and_axes(shape: Any, window: Any, axis: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    lengths = tuple(map(operator.index, window)) if np.iterable(window) else (operator.index(window),)
    if axis is None:
        axes = tuple(range(len(shape)))
    else:
        axes = tuple([one_axis(a, len(shape)) for a in (axis if np.iterable(axis) else (axis,))])
    if len(lengths) != len(axes):
        raise ValueError(
            f"sliding_window_view: as many lengths are needed as there are axes to slide along, got window_shape="
            f"{window} and axis={axis} for an array of {list(shape)}. Name the axes."
        )
    left = list(shape)
    for n, a in zip(lengths, axes, strict=True):
        left[a] -= n - 1
        if n < 0 or left[a] < 1:
            raise ValueError(
                f"sliding_window_view: a window must fit into its axis, got a length of {n} along axis {a} of an array "
                f"of {list(shape)}. Take a shorter one."
            )
    return lengths, axes


def __getattr__(name: str) -> NoReturn:
    hint = " Take sliding_window_view, or index with an array of places." if name == "as_strided" else ""
    raise AttributeError(f"{__name__}: there is no differentiable function of this name, got {name!r}.{hint}")
