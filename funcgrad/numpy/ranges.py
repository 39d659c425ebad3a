"""Sequences of numbers, grids, and helpers that build arrays from slices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy import index_exp, ndindex, s_

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.batching import is_in_batch
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to, permute, reshape
from funcgrad.numpy.creation import as_buffer, as_value, astype, on_host
from funcgrad.numpy.creation import copy as copied
from funcgrad.numpy.functional import nditer
from funcgrad.numpy.joining import concatenate, stack
from funcgrad.numpy.layout import in_c_order
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.peeking import is_numpy_only, is_plain
from funcgrad.numpy.reducing import as_floating
from funcgrad.numpy.shaping import broadcast_arrays, moveaxis, result_type
from funcgrad.primitives.arithmetic import power
from funcgrad.primitives.comparison import ceil, floor, sign
from funcgrad.primitives.counting import linspace as evenly_spaced
from funcgrad.primitives.elementwise import exp, log, log10
from funcgrad.primitives.indexing import getitem
from funcgrad.typing import Array, ArrayLike, Scalar

__all__ = [
    "arange", "geomspace", "indices", "linspace", "logspace", "meshgrid", "c_", "index_exp", "mask_indices", "mgrid",
    "ndenumerate", "ndindex", "nditer", "ogrid", "r_", "s_",
]  # fmt: skip


numpy: Any = np  # its annotations do not accept traced values


def arange(
    start_or_stop: Scalar,
    /,
    stop: Scalar | None = None,
    step: Scalar | None = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """Return numbers from ``start`` up to but without ``stop``, at distances ``step``.

    The derivative flows to a traced ``start`` and ``step``. ``stop`` only determines how many numbers there are: its
    derivative is zero.

    Args:
        start_or_stop: the first number, or ``stop`` if it is the only argument; the first number is then 0.
        stop: the end, which is not included.
        step: the difference between neighbours; None means 1.
        dtype: the dtype, by default by NumPy's promotion.
        device: as in NumPy.

    Raises:
        ConcretizationError: the examples of a ``vmap`` have different numbers of elements.

    Example:
        >>> fnp.arange(1.0, 3.0, 0.5)
        array([1. , 1.5, 2. , 2.5])
    """
    start, end = (0, start_or_stop) if stop is None else (start_or_stop, stop)
    step = 1 if step is None else step
    bounds = [start, end, step]
    if is_numpy_only(*bounds) or any(isinstance(b, str) for b in bounds):  # strings are dates
        return as_buffer(numpy.arange(start, end, step, dtype, device=device and on_host(device)))
    if any(map(is_in_batch, bounds)):  # the examples of a vmap may differ, but not in how many numbers there are
        size = max(int(concrete(ceil((end - start) / step), "arange")), 0)
        ones: list[Any] = [np.ones((), result_type(b))[()] for b in bounds]
        plain = np.empty(size, np.arange(*ones).dtype if dtype is None else dtype)
    else:
        plain = numpy.arange(*[_number(b) for b in bounds], dtype)
        if plain.dtype.kind not in "fc" or is_numpy_only(start, step):
            return as_buffer(plain)
    counts = np.arange(plain.size, dtype=plain.dtype)
    if dtype is None and backend.library_of(start + step) is not np:  # NumPy converts all floats to float64
        counts = counts.astype(result_type(*bounds))
    between = (start + step) - start  # NumPy's formula, so that results agree bit for bit
    made = astype(start + between * counts, counts.dtype)
    return as_buffer(made) if type(made) is np.ndarray else made


def _number(x: Any) -> Any:
    """Return the plain number of a bound."""
    x = concrete(x, "arange")
    # a JAX tracer with a value returns it only as a number
    return x if namespace_of(x) is np else np.asarray(x.item(), x.dtype)[()]


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``; the derivative flows to both bounds.

    Args:
        start: the first number, or an array of first numbers.
        stop: the last number, or an array of last numbers.
        num: how many numbers.
        endpoint: whether ``stop`` is the last number; otherwise ``stop`` would be the next one.
        retstep: whether to return the distance between neighbours too.
        dtype: the dtype; an integer dtype rounds down and has no derivative.
        axis: the axis of the numbers in the result if the bounds are arrays.
        device: as in NumPy.

    Raises:
        ValueError: a negative ``num``.

    Example:
        >>> fnp.linspace(0.0, 1.0, 5)
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    num = operator.index(num)
    start, stop = as_value(start), as_value(stop)
    if is_numpy_only(start, stop):
        found = numpy.linspace(start, stop, num, endpoint, retstep, dtype, axis, device=device and on_host(device))
        return (as_buffer(found[0]), found[1]) if retstep else as_buffer(found)
    inexact, intervals = _ends_dtype(num, start, stop), num - bool(endpoint)
    start, stop = as_floating(start), as_floating(stop)
    ends = broadcast_arrays(start, stop) if backend.shape_of(start) != backend.shape_of(stop) else (start, stop)
    made = evenly_spaced(*ends, num=num, endpoint=bool(endpoint), dtype=inexact)
    made = in_c_order(moveaxis(made, -1, 0)) if len(made.shape) > 1 else made
    made = _cast_and_move_axis(made, inexact if dtype is None else np.dtype(dtype), axis)
    if not retstep:
        return made
    return made, astype((stop - start) / intervals, inexact) if intervals > 0 else np.float64("nan")


def _ends_dtype(num: int, *bounds: Array) -> Any:
    """Return the inexact dtype of ``num`` numbers between bounds."""
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    return np.dtype(result_type(*bounds, float(num)))


def _index_column(num: int, inexact: Any, *bounds: Array) -> np.ndarray:
    """Return the numbers from 0 to ``num - 1`` along a new first axis that broadcasts with the bounds."""
    rank = max([len(backend.shape_of(b)) for b in bounds])
    return np.arange(num).astype(np.zeros(0, inexact).real.dtype).reshape(-1, *(1,) * rank)


def _with_exact_ends(made: Array, first: Array | None, last: Array | None) -> Array:
    """Replace the first and last numbers of ``made`` by the exact bounds."""
    shape = (1, *backend.shape_of(made)[1:])
    parts = [getitem(made, slice(0 if first is None else 1, None if last is None else -1))]
    if first is not None:
        parts.insert(0, broadcast_to(first, to=shape))
    if last is not None:
        parts.append(broadcast_to(last, to=shape))
    return concatenate(parts) if len(parts) > 1 else made


def _cast_and_move_axis(made: Array, dtype: Any, axis: int) -> Array:
    if dtype.kind in "iu":
        made = floor(made)
    made = astype(made, dtype) if backend.dtype_of(made) != dtype else made
    return moveaxis(made, 0, axis) if axis != 0 else made


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Return ``base ** linspace(start, stop)``; the derivative flows to ``start``, ``stop`` and ``base``.

    ``base`` is a number or an array of bases; the other arguments are those of ``linspace``, for the exponents.

    Example:
        >>> fnp.logspace(0.0, 2.0, 3)
        array([  1.,  10., 100.])
    """
    start, stop, base = as_value(start), as_value(stop), as_value(base)
    if is_numpy_only(start, stop, base):
        return as_buffer(numpy.logspace(start, stop, num, endpoint, base, dtype, axis))
    if backend.shape_of(base):
        start, stop, base = broadcast_arrays(start, stop, base)
    made = power(base, linspace(start, stop, num, endpoint))
    return _cast_and_move_axis(made, backend.dtype_of(made) if dtype is None else np.dtype(dtype), axis)


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Array:
    """Return ``num`` numbers from ``start`` to ``stop`` with a constant ratio (a geometric sequence).

    The derivative flows to both bounds. Neither may be zero. Real bounds of different signs give NaN, complex bounds a
    spiral. The arguments are those of ``linspace``.

    Raises:
        ValueError: a NumPy bound that is zero, or a negative ``num``.

    Example:
        >>> fnp.geomspace(1.0, 8.0, 4)
        array([1., 2., 4., 8.])
    """
    start, stop = as_value(start), as_value(stop)
    if is_numpy_only(start, stop):
        return as_buffer(numpy.geomspace(start, stop, num, endpoint, dtype, axis))
    inexact = np.dtype(result_type(start, stop, 1.0))
    if dtype is not None or backend.library_of(start) is backend.library_of(stop) is np:
        inexact = np.result_type(inexact, np.dtype(dtype))  # NumPy computes in float64 or more
    start, stop = astype(start, inexact), astype(stop, inexact)
    num = operator.index(num)
    if inexact.kind == "c":
        weights = _index_column(num, _ends_dtype(num, start, stop), start, stop) / max(num - bool(endpoint), 1)
        made = start * exp(log(stop / start) * weights)
    else:
        side = sign(start)
        start, stop = start / side, stop / side
        made = power(10.0, linspace(log10(start), log10(stop), num, endpoint))
    made = _with_exact_ends(made, start if num else None, stop if endpoint and num > 1 else None)
    made = made if inexact.kind == "c" else made * side
    return _cast_and_move_axis(made, inexact if dtype is None else np.dtype(dtype), axis)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Return the coordinates of the points of a grid, one array for each axis.

    Args:
        *xi: the coordinates along each axis.
        copy: whether to return copies instead of views.
        sparse: whether each array has length 1 along the axes where it does not vary.
        indexing: "xy" if rows are the second coordinate, "ij" for axes in the order of ``xi``.

    Raises:
        ValueError: another ``indexing``.

    Example:
        >>> fnp.meshgrid([1, 2], [3, 4], indexing="ij")
        (array([[1, 1],
               [2, 2]]), array([[3, 4],
               [3, 4]]))
    """
    values = [as_value(x) for x in xi]
    if is_numpy_only(*values):
        return tuple(numpy.meshgrid(*values, copy=copy, sparse=sparse, indexing=indexing))
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(values)
    places = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    sizes = [prod(backend.shape_of(x)) for x in values]
    open_grid = [
        reshape(x, to=tuple([n if i == p else 1 for i in range(rank)]))
        for x, n, p in zip(values, sizes, places, strict=True)
    ]
    whole = tuple(open_grid) if sparse else broadcast_arrays(*open_grid)
    return tuple([copied(x, "C") for x in whole]) if copy else whole


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """Return the positions of all elements of an array of shape ``dimensions``, one array for each axis.

    Example:
        >>> fnp.indices((2, 2))[1]
        array([[0, 1],
               [0, 1]])
    """
    made = numpy.indices(dimensions, dtype, sparse)
    return tuple(map(as_buffer, made)) if sparse else as_buffer(made)


def _imaginary_count(step: Any) -> int | None:
    """Return how many numbers a step such as ``5j`` requests; None for another step."""
    return int(np.abs(step)) if issubclass(type(step), (complex, np.complexfloating)) else None


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return (0 if part.start is None else part.start), part.stop, (1 if part.step is None else part.step)


class _Grid:
    """Class of ``mgrid`` and ``ogrid``, which return the coordinates of a grid if indexed with slices.

    ``start:stop:step`` means ``arange``: the derivative passes to ``start`` and ``step``, but not to ``stop``, which
    only determines how many numbers there are. ``start:stop:5j`` means five numbers from ``start`` to ``stop``; the
    derivative passes to both bounds.

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
            made = self._numpys[key]
            return tuple(map(as_buffer, made)) if isinstance(made, tuple) else as_buffer(made)
        if isinstance(key, slice) and _imaginary_count(key.step) is None:
            return arange(*_ends(key))
        parts = key if isinstance(key, tuple) else (key,)
        dtype = _grid_dtype(parts)
        axes = [astype(_coordinates(part), dtype) for part in parts]
        if isinstance(key, slice):
            return axes[0]
        grid = meshgrid(*axes, sparse=self._sparse, indexing="ij")
        return grid if self._sparse else stack(grid)


def _grid_dtype(parts: tuple[slice, ...]) -> Any:
    bounds: list[Any] = [0]
    for part in parts:
        start, stop, step = _ends(part)
        bounds += [start, stop, step if _imaginary_count(step) is None else abs(step)]
    return result_type(*bounds)


def _coordinates(part: slice) -> Array:
    start, stop, step = _ends(part)
    number = _imaginary_count(step)
    if number is None:
        return arange(start, stop, step)
    width = (stop - start) / (number - 1) if number != 1 else 1
    return np.arange(number) * width + start


mgrid = _Grid(np.mgrid, sparse=False)
ogrid = _Grid(np.ogrid, sparse=True)


class _Joiner:
    """Class of ``r_`` and ``c_``, which join the arrays, numbers and slices that they are indexed with.

    Slices mean the same as in ``mgrid``. A leading string of up to three integers gives the axis to join along, the
    least number of axes of each part, and the position of a part's axes among them. The derivative passes to all
    parts. Matrices ("r", "c", and matrices written in strings) raise an error if a part is traced.

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
            return as_buffer(self._numpys[key])
        items = key if isinstance(key, tuple) else (key,)
        axis, ndmin, own_axes = self._layout
        if isinstance(items[0], str):
            axis, ndmin, own_axes = self._directive(items[0])
            items = items[1:]
        parts: list[Any] = []
        kinds: list[Any] = []  # Python numbers, which take the dtypes of arrays, and the dtypes of arrays
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
        """Return the axis to join along, the least number of axes, and the position of a part's axes among them."""
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
    number = _imaginary_count(step)
    return arange(start, stop, step) if number is None else linspace(start, stop, number)


def _with_axes(part: Array, ndmin: int, own_axes: int) -> Array:
    """Return ``part`` with at least ``ndmin`` axes; its axes start at position ``own_axes``, -1 for the end."""
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
    """Return the positions where ``mask_func(ones((n, n)), k)`` is nonzero, one array for each axis.

    Example:
        >>> fnp.mask_indices(2, fnp.triu)
        (array([0, 0, 1]), array([0, 1, 1]))
    """
    return numpy.mask_indices(n, mask_func, k)  # type: ignore[no-any-return]


def ndenumerate(arr: ArrayLike) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return an iterator over positions and elements in C order; the derivative passes to each element.

    Example:
        >>> [(i, float(x)) for i, x in fnp.ndenumerate([[1.0, 2.0]])]
        [((0, 0), 1.0), ((0, 1), 2.0)]
    """
    if is_plain(arr):
        return np.ndenumerate(arr)
    x = as_value(arr)
    return ((i, getitem(x, i)) for i in np.ndindex(backend.shape_of(x)))
