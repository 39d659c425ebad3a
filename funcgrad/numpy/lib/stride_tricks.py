"""Windows that slide over an array and elements at distances in memory, as in ``numpy.lib.stride_tricks``."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.core import Tracer, describe
from funcgrad.errors import NotDifferentiableError
from funcgrad.numpy.axes import one_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.indexing import take
from funcgrad.numpy.shaping import reshape
from funcgrad.primitives.windows import windows
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import layout, locked, share

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(
    x: ArrayLike, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Array:
    """The elements of ``x`` that stand at these distances in memory, which may be the same ones several times.

    Args:
        x: an array.
        shape: the shape of the result, by default that of ``x``.
        strides: the distances in bytes along each axis, by default those of ``x``. A traced value lies in memory as the
            array that it stands for, and has ``strides`` in functions that were written for NumPy.
        subok: as NumPy.
        writeable: as NumPy; elements of traced values can only be read.

    Raises:
        ValueError: what lies at these distances is no element of ``x``; not as many strides as axes.

    Example:
        >>> from funcgrad.numpy.lib.stride_tricks import as_strided
        >>> as_strided(np.arange(4), (3, 2), (8, 8))
        array([[0, 1],
               [1, 2],
               [2, 3]])
    """
    x = as_value(x)
    if namespace_of(x) is np:
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
    like = layout(x)
    shape = like.shape if shape is None else tuple(np.atleast_1d(shape).tolist())
    strides = like.strides if strides is None else tuple(np.atleast_1d(strides).tolist())
    if len(shape) != len(strides):
        raise ValueError(f"as_strided: one stride is needed for each axis, got strides={strides} for shape={shape}.")
    places = _places(like.shape, like.strides, shape, strides)
    if places is None:
        raise ValueError(
            f"as_strided: all must be elements of the array that it is given, got shape={shape} and strides={strides} "
            f"for an array of {list(like.shape)} with strides={like.strides}. Give it the whole array."
        )
    params = {"places": places}
    made = _at(x, **params)
    if isinstance(x, Tracer):
        share(x, made, _at, params)
    return locked(made)


def _at(x: Array, *, places: Any) -> Array:
    return take(reshape(x, -1), places, axis=0)


@lru_cache(maxsize=16)
def _places(own: Any, apart: Any, shape: Any, strides: Any) -> Any:
    """The places in an array of shape ``own``, in C order, of what lies at distances; None if something else does."""
    there, wanted = _distances(own, apart).ravel(), _distances(shape, strides)
    order = np.argsort(there, kind="stable")
    found = order[np.minimum(np.searchsorted(there, wanted, sorter=order), there.size - 1)] if there.size else wanted
    return found if wanted.size == 0 or (there.size and bool((there[found] == wanted).all())) else None


def _distances(shape: Any, strides: Any) -> Any:
    """How far the elements are from the first one, in bytes."""
    found = np.zeros((), np.int64)
    for n, stride in zip(shape, strides, strict=True):
        found = found[..., None] + np.arange(n) * stride
    return found


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
    raise AttributeError(f"{__name__}: there is no differentiable function of this name, got {name!r}.")
