"""Functions that read parts of arrays: by indices, by masks, along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.kinds.linear import permute
from funcgrad.numpy.axes import as_shape, means_all_axes, normalize_axis
from funcgrad.numpy.creation import as_value, astype, copy
from funcgrad.numpy.layout import in_memory_order
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none
from funcgrad.numpy.shaping import atleast_1d, broadcast_arrays, ravel, reshape, result_type
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import indexing as prim
from funcgrad.primitives.arithmetic import clip, remainder
from funcgrad.primitives.comparison import floor_divide
from funcgrad.primitives.comparison import nonzero as places
from funcgrad.primitives.index_spec import is_unknown
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import stack
from funcgrad.typing import Array, ArrayLike, Axis, Shape
from funcgrad.writable import as_number

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "getitem", "ix_", "nonzero", "ravel_multi_index",
    "take", "take_along_axis", "unravel_index",
]  # fmt: skip

Order: TypeAlias = Literal["C", "F"]
Mode: TypeAlias = Literal["raise", "wrap", "clip"]


def _is_numpy(*values: Any) -> bool:
    return Tracer not in map(type, values) and namespace(values) is np


def _is_outside(x: Any, n: int) -> bool:
    """Whether any of the integers ``x`` is not a position along an axis of length ``n``."""
    return any_true(lambda i: (i < 0) | (i >= n), x)


def _as_positions(name: str, given: Array) -> Array:
    """Convert ``given`` to integers: accept booleans, refuse floats."""
    kind = backend.dtype_of(given).kind
    if kind not in "iub":
        raise InputError(
            f"{name}: indices must be integers, got {describe(given)}. Convert them with astype(int), which is a "
            "constant for derivatives."
        )
    return given if kind in "iu" else astype(given, int)


def _bounded(name: str, indices: Array, n: int, mode: Mode) -> Array:
    """Bring ``indices`` into the range of ``n`` elements by ``mode``; "raise" leaves them to the read."""
    if mode in ("raise", None):
        return indices
    if mode == "wrap":
        return remainder(indices, n)
    if mode == "clip":
        return clip(indices, 0, n - 1)
    raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}') ({name})")


def take(a: ArrayLike, indices: ArrayLike, axis: Axis = None, out: Any = None, mode: Mode = "raise") -> Array:
    """Return the elements of ``a`` at ``indices`` along ``axis``, by default of the flattened array.

    Args:
        a: an array.
        indices: integers of any shape; this shape replaces ``axis`` in the result.
        axis: the axis to read along.
        out: an array for the result.
        mode: treatment of indices outside ``-n`` to ``n - 1``: "raise", "wrap" around, or "clip" (negative to 0).

    Raises:
        IndexError: an index is out of range in mode "raise".
        TypeError: ``indices`` are not integers.

    The cotangent of an element that is read several times is the sum of the cotangents of all reads.

    Example:
        >>> fnp.take([10.0, 20.0, 30.0], [2, 0, 0])
        array([30., 10., 10.])
        >>> fnp.take([10.0, 20.0, 30.0], 4, mode="wrap")
        np.float64(20.0)
    """
    if out is not None:
        return compute_into(take, out, a, indices, axis, mode=mode)
    a, given = as_value(a), as_value(indices)
    indices = astype(given, int) if isinstance(indices, (list, tuple)) and 0 in given.shape else given
    if _is_numpy(a, indices):
        return np.take(a, indices, axis, mode=mode)
    if means_all_axes(axis, len(a.shape)):
        a, axis = ravel(a), 0
    axis = normalize_axis(axis, len(a.shape))
    indices = _bounded("take", _as_positions("take", indices), max(a.shape[axis], 1), mode)
    if 0 in a.shape[:axis]:  # nothing is read, so NumPy does not check the indices
        return copy(reshape(a, (*a.shape[:axis], *backend.shape_of(indices), *a.shape[axis + 1 :])))
    found = getitem(a, (*(slice(None),) * axis, indices))
    if not isinstance(found, Tracer):
        return found
    if backend.shape_of(indices):
        return in_memory_order(found, "C")  # indexing alone would leave the axes in another order in memory
    return copy(found) if backend.shape_of(found) else as_number(found)


def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: Axis = -1) -> Array:
    """Return the elements of ``arr`` at ``indices`` along ``axis``, row by row, as for results of ``argsort``.

    Args:
        arr: an array.
        indices: integers with as many axes as ``arr``; all axes other than ``axis`` broadcast.
        axis: the axis to read along; None reads the flattened array.

    Raises:
        IndexError: an index is out of range or not an integer.
        ValueError: ``indices`` has another number of axes.

    Example:
        >>> fnp.take_along_axis([[10.0, 20.0], [30.0, 40.0]], [[1], [0]], axis=1)
        array([[20.],
               [30.]])
    """
    arr, indices = as_value(arr), as_value(indices)
    if _is_numpy(arr, indices):
        return np.take_along_axis(np.asarray(arr), np.asarray(indices), axis)
    shape = backend.shape_of(indices)
    if backend.dtype_of(indices).kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if len(shape) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        arr, axis = ravel(arr), 0
    if len(shape) != len(backend.shape_of(arr)):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    if type(indices) is np.ndarray:
        indices = indices.copy()  # the tape keeps the indices, and the program may change them before the pullback
    return prim.take_along_axis(arr, indices, axis=normalize_axis(axis, len(shape)))


def nonzero(a: ArrayLike) -> tuple[Array, ...]:
    """Return where ``a`` is not zero, as one array of positions per axis. The result is a constant for derivatives.

    Raises:
        ConcretizationError: the number of such elements differs between the examples of a ``vmap``.
        ValueError: ``a`` has no axis.

    Example:
        >>> fnp.nonzero([0.0, 3.0, 4.0])
        (array([1, 2]),)
    """
    a = as_value(a)
    if isinstance(a, Tracer) and a.shape:
        unknown: tuple[Array, ...] | None = import_module("funcgrad.numpy.selections").places_of(a)
        if unknown is not None:
            return unknown
    found: tuple[Array, ...] = places(a)
    return found


def flatnonzero(a: ArrayLike) -> Array:
    """Return where the flattened ``a`` is not zero. The result is a constant for derivatives.

    Raises:
        ConcretizationError: the number of such elements differs between the examples of a ``vmap``.

    Example:
        >>> fnp.flatnonzero([[0.0, 3.0], [4.0, 0.0]])
        array([1, 2])
    """
    return nonzero(ravel(a))[0]


def argwhere(a: ArrayLike) -> Array:
    """Return where ``a`` is not zero, one row of positions per element. The result is a constant for derivatives.

    Raises:
        ConcretizationError: the number of such elements differs between the examples of a ``vmap``.

    Example:
        >>> fnp.argwhere([[0.0, 3.0], [4.0, 0.0]])
        array([[0, 1],
               [1, 0]])
    """
    a = as_value(a)
    rows = permute(stack(*nonzero(atleast_1d(a)), axis=0), axes=(1, 0))
    return rows if backend.shape_of(a) else getitem(rows, (slice(None), slice(0)))


def compress(condition: ArrayLike, a: ArrayLike, axis: Axis = None, out: Any = None) -> Array:
    """Return the slices of ``a`` along ``axis`` for which ``condition`` is true.

    Args:
        condition: booleans with one axis; slices beyond its length are left out.
        a: an array.
        axis: the axis to choose along; None chooses from the flattened array.
        out: an array for the result.

    Raises:
        ConcretizationError: ``condition`` differs between the examples of a ``vmap``; use ``where``.
        IndexError: ``condition`` is true beyond the end of the axis.
        ValueError: ``condition`` has several axes.

    Example:
        >>> fnp.compress([True, False, True], [1.0, 2.0, 3.0])
        array([1., 3.])
    """
    if out is not None:
        return compute_into(compress, out, condition, a, axis)
    chosen = _concrete(condition, "compress: condition")
    if chosen.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, np.flatnonzero(chosen), axis)


def extract(condition: ArrayLike, arr: ArrayLike) -> Array:
    """Return the elements of ``arr`` for which ``condition`` is true, along one axis.

    Raises:
        ConcretizationError: ``condition`` differs between the examples of a ``vmap``; use ``where``.
        IndexError: ``condition`` is true beyond the end of ``arr``.

    Example:
        >>> fnp.extract([[True, False], [False, True]], [[1.0, 2.0], [3.0, 4.0]])
        array([1., 4.])
    """
    return take(ravel(arr), np.flatnonzero(_concrete(condition, "extract: condition")))


def _concrete(a: ArrayLike, request: str) -> np.ndarray:
    """Return ``a`` as an ndarray, because the shape of a result depends on it."""
    a = as_value(a)
    return np.asarray(concrete(a, request) if isinstance(a, Tracer) else a)


def choose(a: ArrayLike, choices: Sequence[ArrayLike] | Array, out: Any = None, mode: Mode = "raise") -> Array:
    """Return at each position the element of the choice that ``a`` names there; all arrays broadcast.

    Args:
        a: integers.
        choices: arrays to choose from, or one array with the choices along its first axis.
        out: an array for the result.
        mode: treatment of numbers outside 0 to n - 1: "raise", "wrap" around, or "clip".

    Raises:
        ValueError: a number is out of range in mode "raise".
        TypeError: ``a`` are not integers.

    Example:
        >>> fnp.choose([0, 1, 0], [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
        array([ 1., 20.,  3.])
    """
    if out is not None:
        return compute_into(choose, out, a, choices, mode=mode)
    if not isinstance(choices, (list, tuple)):
        choices = [getitem(choices, i) for i in range(backend.shape_of(choices)[0])]
    a, choices = as_value(a), [as_value(c) for c in choices]
    if _is_numpy(a, *choices):
        return np.choose(a, choices, mode=mode)
    n = len(choices)
    a = _as_positions("choose", a)
    if mode in ("raise", None) and _is_outside(a, n):
        raise ValueError("invalid entry in choice array")
    to = result_type(*choices)
    chosen, *arrays = broadcast_arrays(_bounded("choose", a, n, mode), *[astype(c, to) for c in choices])
    return getitem(prim.take_along_axis(stack(*arrays, axis=0), getitem(chosen, None), axis=0), 0)


def unravel_index(indices: ArrayLike, shape: Any, order: Order = "C") -> tuple[Array, ...]:
    """Convert positions in the flattened array to positions along each axis.

    Args:
        indices: integers.
        shape: the shape of the array.
        order: "C" if the last axis varies fastest, "F" if the first does.

    Raises:
        ValueError: a position is out of range.
        TypeError: ``indices`` are not integers.

    Example:
        >>> fnp.unravel_index([0, 5], (2, 3))
        (array([0, 1]), array([0, 2]))
    """
    indices, shape = as_value(indices), as_shape(shape)
    if _is_numpy(indices):
        return np.unravel_index(indices, shape, order)
    if _is_outside(indices, prod(shape)):
        values: Any = concrete_or_none(indices)
        worst = values.min() if values.min() < 0 else values.max()
        raise ValueError(f"index {worst} is out of bounds for array with size {prod(shape)}")
    rest = astype(_as_positions("unravel_index", indices), np.intp)
    found: list[Array] = []
    for n in _fastest_axis_first(shape, order):
        found.append(remainder(rest, n))
        rest = floor_divide(rest, n)
    return tuple(found if order == "F" else reversed(found))


def _fastest_axis_first(shape: Shape, order: Order) -> Sequence[int]:
    """Return the lengths of the axes, the fastest varying axis first."""
    if order not in ("C", "F"):
        raise ValueError(f"only 'C' or 'F' order is permitted, got {order!r}")
    return shape if order == "F" else shape[::-1]


def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Any, mode: Mode | tuple[Mode, ...] = "raise", order: Order = "C"
) -> Array:
    """Convert positions along each axis to positions in the flattened array.

    Args:
        multi_index: for each axis an array of integers; these arrays broadcast.
        dims: the shape of the array.
        mode: treatment of positions out of range, for all axes or for each: "raise", "wrap" around, or "clip".
        order: "C" if the last axis varies fastest, "F" if the first does.

    Raises:
        ValueError: a position is out of range in mode "raise".

    Example:
        >>> fnp.ravel_multi_index(([0, 1], [0, 2]), (2, 3))
        array([0, 5])
    """
    parts, dims = [as_value(i) for i in multi_index], as_shape(dims)
    if _is_numpy(*parts):
        return np.ravel_multi_index(tuple(parts), dims, mode, order)
    if len(parts) != len(dims):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(dims)}")
    modes: list[Mode] = list(mode) if isinstance(mode, (list, tuple)) else [mode] * len(dims)
    bounded: list[Array] = []
    for part, n, how in zip(parts, dims, modes, strict=True):
        if how == "raise" and _is_outside(part, n):
            raise ValueError("invalid entry in coordinates array")
        bounded.append(_bounded("ravel_multi_index", _as_positions("ravel_multi_index", part), n, how))
    step, total = 1, 0
    for part, n in zip(bounded if order == "F" else reversed(bounded), _fastest_axis_first(dims, order), strict=True):
        total = total + part * step
        step *= n
    return total


def _keeps_tracer(a: Array) -> bool:
    """Whether ``ix_`` reshapes ``a`` as it is: floats keep a derivative, positions may have no one value."""
    return isinstance(a, Tracer) if backend.is_inexact(a) else backend.dtype_of(a).kind in "iu" and is_unknown(a)


def ix_(*args: ArrayLike) -> tuple[np.ndarray, ...]:
    """Make from positions or masks along each axis an index that reads all their combinations.

    Floating arguments, which are not positions, become the axes of an open grid and keep their derivative.

    Raises:
        ConcretizationError: traced masks differ between the examples of a ``vmap``.
        ValueError: an argument does not have exactly one axis.

    Example:
        >>> np.arange(6).reshape(2, 3)[fnp.ix_([0, 1], [2, 0])]
        array([[2, 0],
               [5, 3]])
    """
    values = [as_value(a) for a in args]  # a list may hold traced numbers
    apart = [_keeps_tracer(v) for v in values]
    made: tuple[Any, ...] = np.ix_(
        *[
            np.empty(backend.shape_of(v)) if alone else _concrete(v, "ix_") if isinstance(v, Tracer) else a
            for a, v, alone in zip(args, values, apart, strict=True)
        ]
    )
    return tuple([reshape(v, m.shape) if alone else m for v, m, alone in zip(values, made, apart, strict=True)])
