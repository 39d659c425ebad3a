"""Functions of ``numpy.lib.stride_tricks``: arrays that repeat elements, such as sliding windows."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.core import Tracer, describe
from funcgrad.errors import ShapeError
from funcgrad.numpy.axes import as_shape, normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.writes.memory_views import strided
from funcgrad.primitives.windows import windows
from funcgrad.typing import Array, ArrayLike, Shape
from funcgrad.views import array_with_layout_of, make_read_only, note_view
from funcgrad.writable import ONCE, View, is_buffer

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(
    x: ArrayLike, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Array:
    """Return the elements of ``x`` at the memory distances ``strides``.

    A traced value has the memory layout that the array has in the same program without derivatives. Only rebuilt code
    can read the ``strides`` of a traced value.

    Args:
        x: an array.
        shape: the shape of the result, by default the shape of ``x``.
        strides: for each axis of the result the distance between neighbours, in bytes; by default those of ``x``.
        subok: as in NumPy.
        writeable: as in NumPy; a write that names an element of ``x`` several times raises an error.

    Raises:
        ShapeError: an element of the result lies outside of a traced value, or between two of its elements.

    Example:
        >>> from funcgrad.numpy.lib.stride_tricks import as_strided
        >>> grad(lambda x: as_strided(x, (3, 2), (8, 8)).sum())(np.ones(4))
        array([1., 2., 2., 1.])
    """
    x = as_value(x)
    if namespace_of(x) is np:
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
    lies = array_with_layout_of(x)
    to = lies.shape if shape is None else as_shape(shape)
    apart = lies.strides if strides is None else as_shape(strides)
    places = _places(lies, to, apart)
    if places is None:
        raise ShapeError(
            f"as_strided: a part lies outside of the memory of the array or between its elements, got shape={to}, "
            f"strides={strides} and {describe(x)}, whose own are {lies.strides}. Ask for elements of the array only."
        )
    params: dict[str, Any] = {"places": places, "shape": to, "strides": apart, "own": lies.strides}
    made = strided(x, **params)
    if isinstance(x, Tracer):
        note_view(x, made, strided, params)
        if type(alias := made.alias) is View:
            alias.has_own_memory = alias.has_own_memory or not is_buffer(made)
            if not alias.locked and np.unique(places).size < places.size:
                alias.locked = ONCE
    return made if writeable else make_read_only(made)


def _places(lies: np.ndarray, shape: Shape, strides: tuple[int, ...]) -> np.ndarray | None:
    """Return positions in C order of the elements at the distances ``strides``; None if a distance has no element."""
    wanted, own = _distances(shape, strides), _distances(lies.shape, lies.strides).reshape(-1)
    order = np.argsort(own, kind="stable")
    at = np.searchsorted(own, wanted, sorter=order)
    found: np.ndarray = order[np.minimum(at, own.size - 1)] if own.size else at
    return None if wanted.size and not (own.size and (own[found] == wanted).all()) else found


def _distances(shape: Shape, strides: tuple[int, ...]) -> np.ndarray:
    """Return the distance of each element from the first one, in bytes."""
    if len(strides) != len(shape):
        raise ValueError("mismatch in length of strides and shape")
    far = np.zeros((), np.int64)
    for n, step in zip(shape, strides, strict=True):
        far = far[..., None] + np.arange(n) * step
    return far


def sliding_window_view(
    x: ArrayLike, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """Return all windows of ``x``: the axes of ``x`` give their positions, trailing axes their contents.

    Args:
        x: an array.
        window_shape: the length of a window, or the lengths along each of ``axis``.
        axis: the axis or axes along which windows slide, by default all; an axis may occur twice.
        subok: as in NumPy.
        writeable: as in NumPy; a write that names an element of ``x`` several times raises an error.

    Raises:
        ValueError: not as many lengths as axes, or a window that is negative or longer than its axis.

    Example:
        >>> from funcgrad.numpy.lib.stride_tricks import sliding_window_view
        >>> sliding_window_view([1, 2, 3, 4], 3)
        array([[1, 2, 3],
               [2, 3, 4]])
    """
    x = as_value(x)
    if namespace_of(x) is np:
        return np.lib.stride_tricks.sliding_window_view(x, window_shape, axis, subok=subok, writeable=writeable)
    lengths, axes = _lengths_and_axes(backend.shape_of(x), window_shape, axis)
    if writeable:
        apart, left = array_with_layout_of(x).strides, list(backend.shape_of(x))
        for n, a in zip(lengths, axes, strict=True):
            left[a] -= n - 1
        return as_strided(x, (*left, *lengths), (*apart, *[apart[a] for a in axes]))
    params = {"window": lengths, "axis": axes}
    made = windows(x, **params)
    if isinstance(x, Tracer):
        note_view(x, made, windows, params)  # NumPy's result does not tell whose view it is
    return make_read_only(made)


def _lengths_and_axes(shape: Any, window: Any, axis: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    lengths = tuple(map(operator.index, window)) if np.iterable(window) else (operator.index(window),)
    if axis is None:
        axes = tuple(range(len(shape)))
    else:
        axes = tuple([normalize_axis(a, len(shape)) for a in (axis if np.iterable(axis) else (axis,))])
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
