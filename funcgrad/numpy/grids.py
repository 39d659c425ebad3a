"""Grids and rows written as slices, and going through the elements of an array one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy import index_exp, ndindex, s_

from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.kinds.linear import permute, reshape
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.iterating import nditer
from funcgrad.numpy.joining import concatenate, stack
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.ranges import arange, linspace, meshgrid
from funcgrad.numpy.shaping import result_type
from funcgrad.primitives.indexing import getitem
from funcgrad.typing import Array, ArrayLike

__all__ = ["c_", "index_exp", "mask_indices", "mgrid", "ndenumerate", "ndindex", "nditer", "ogrid", "r_", "s_"]

numpy: Any = np  # its annotations have no room for values of any kind


def _count(step: Any) -> int | None:
    """How many numbers a step such as ``5j`` asks for; None for another step."""
    return int(np.abs(step)) if issubclass(type(step), (complex, np.complexfloating)) else None


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return (0 if part.start is None else part.start), part.stop, (1 if part.step is None else part.step)


class _Grid:
    """What ``mgrid`` and ``ogrid`` are: indexed with slices, they give the coordinates of a grid.

    ``start:stop:step`` is ``arange``, and as there the derivative passes to ``start`` and ``step``, none to
    ``stop``, which decides how many numbers there are. ``start:stop:5j`` has five of them from ``start`` to
    ``stop``, which both receive the derivative.

    Example:
        >>> fnp.mgrid[0:2, 0:1:3j]
        array([[[0. , 0. , 0. ],
                [1. , 1. , 1. ]],
        <BLANKLINE>
               [[0. , 0.5, 1. ],
                [0. , 0.5, 1. ]]])
        >>> fnp.ogrid[0:2, 0:1:3j]
        (array([[0.],
               [1.]]), array([[0. , 0.5, 1. ]]))
    """

    def __init__(self, numpys: Any, *, sparse: bool) -> None:
        self._numpys = numpys
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if is_plain(key):
            return self._numpys[key]
        if isinstance(key, slice) and _count(key.step) is None:
            return arange(*_ends(key))
        parts = key if isinstance(key, tuple) else (key,)
        dtype = _grid_dtype(parts)
        axes = [astype(_coordinates(part), dtype) for part in parts]
        if isinstance(key, slice):
            return axes[0]
        grid = meshgrid(*axes, sparse=self._sparse, indexing="ij")
        return grid if self._sparse else stack(grid)


def _grid_dtype(parts: tuple[slice, ...]) -> Any:
    """The dtype of all coordinates together."""
    bounds: list[Any] = [0]
    for part in parts:
        start, stop, step = _ends(part)
        bounds += [start, stop, step if _count(step) is None else abs(step)]
    return result_type(*bounds)


def _coordinates(part: slice) -> Array:
    start, stop, step = _ends(part)
    number = _count(step)
    if number is None:
        return arange(start, stop, step)
    width = (stop - start) / (number - 1) if number != 1 else 1
    return np.arange(number) * width + start


mgrid = _Grid(np.mgrid, sparse=False)
ogrid = _Grid(np.ogrid, sparse=True)


class _Joiner:
    """What ``r_`` and ``c_`` are: indexed with arrays, numbers and slices, they join them along an axis.

    Slices are read as in ``mgrid``. A string of up to three integers in front says along which axis to
    join, to how many axes to bring arrays first, and where their own axes then stand. The derivative
    passes to everything that is joined. Matrices ("r", "c", and matrices written in strings) are refused
    when something is traced.

    Example:
        >>> fnp.r_[1.0, 2:4, [5.0, 6.0]]
        array([1., 2., 3., 5., 6.])
        >>> fnp.c_[[1, 2], [3, 4]]
        array([[1, 3],
               [2, 4]])
    """

    def __init__(self, name: str, numpys: Any, axis: int, ndmin: int, own_axes: int) -> None:
        self._name = name
        self._numpys = numpys
        self._layout = (axis, ndmin, own_axes)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            raise InputError(f"{self._name}: matrices are not supported, got {key!r}. Use block for blocks of arrays.")
        if is_plain(key):
            return self._numpys[key]
        items = key if isinstance(key, tuple) else (key,)
        axis, ndmin, own_axes = self._layout
        if isinstance(items[0], str):
            axis, ndmin, own_axes = self._directive(items[0])
            items = items[1:]
        parts: list[Any] = []
        kinds: list[Any] = []  # Python numbers, which adapt to the dtypes of arrays, and the dtypes of these
        for item in items:
            if isinstance(item, str):
                raise ValueError("special directives must be the first entry.")
            part = _row(item) if isinstance(item, slice) else as_value(item)
            kinds.append(part if type(part) in (bool, int, float, complex) else backend.dtype_of(part))
            parts.append(_with_axes(part, ndmin, own_axes))
        dtype = result_type(*kinds)
        return concatenate([astype(part, dtype) for part in parts], axis=axis)

    def __len__(self) -> int:
        return 0

    def _directive(self, text: str) -> tuple[int, int, int]:
        """The axis to join along, the least number of axes, and the place of an array's own axes among them."""
        if text in ("r", "c"):
            raise InputError(
                f"{self._name}: a matrix cannot be made of traced values, got {text!r}. Leave it out, and reshape."
            )
        try:
            numbers = [int(n) for n in text.split(",")[:3]]
        except ValueError as error:
            raise ValueError(f"unknown special directive {text!r}") from error
        return tuple(numbers + list(self._layout[len(numbers) :]))  # type: ignore[return-value]


def _row(part: slice) -> Array:
    start, stop, step = _ends(part)
    number = _count(step)
    return arange(start, stop, step) if number is None else linspace(start, stop, number)


def _with_axes(part: Array, ndmin: int, own_axes: int) -> Array:
    """``part`` with at least ``ndmin`` axes, its own ones standing from ``own_axes`` on, by default last."""
    shape = backend.shape_of(part)
    missing = ndmin - len(shape)
    if missing <= 0:
        return part
    part = reshape(part, to=(*(1,) * missing, *shape))
    if own_axes == -1:
        return part
    first = own_axes if own_axes >= 0 else own_axes + missing + 1
    axes = list(range(ndmin))
    return permute(part, axes=tuple(axes[:first] + axes[missing:] + axes[first:missing]))


r_ = _Joiner("r_", np.r_, axis=0, ndmin=1, own_axes=-1)
c_ = _Joiner("c_", np.c_, axis=-1, ndmin=2, own_axes=0)


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[np.ndarray, ...]:
    """Where ``mask_func(ones((n, n)), k)`` is not zero, as one array of positions per axis.

    Example:
        >>> fnp.mask_indices(2, fnp.triu)
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    return numpy.mask_indices(n, mask_func, k)  # type: ignore[no-any-return]


def ndenumerate(arr: ArrayLike) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The positions of all elements and the elements, in C order; the derivative passes to each element.

    Example:
        >>> [(i, float(x)) for i, x in fnp.ndenumerate([[1.0, 2.0]])]
        [((0, 0), 1.0), ((0, 1), 2.0)]
    """
    if is_plain(arr):
        return np.ndenumerate(arr)
    x = as_value(arr)
    return ((i, getitem(x, i)) for i in np.ndindex(backend.shape_of(x)))
