"""Functions that join arrays and split arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.backend import is_sequence, namespace_of
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.graph import stands_for_array
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value, astype, copy
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.shaping import atleast_1d, atleast_2d, atleast_3d, ravel, result_type, transpose
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import shaping as prim
from funcgrad.primitives.indexing import getitem
from funcgrad.typing import Array, ArrayLike, Axis
from funcgrad.views import note_view

__all__ = [
    "append", "array_split", "block", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack",
    "split", "stack", "unstack", "vsplit", "vstack",
]  # fmt: skip


_NUMPYS = frozenset((np.ndarray,))
_ARRAYS = _NUMPYS | {Tracer}


def _joinable(arrays: Any) -> tuple[Sequence[Any], bool]:
    """Return the arrays to join, and whether all of them are NumPy's."""
    if type(arrays) is not list and type(arrays) is not tuple:
        if namespace_of(arrays) is np:  # an object array may hold tracers
            return (arrays, True) if arrays.dtype != object else _joinable(list(arrays))
        if is_sequence(arrays):
            return _joinable(list(arrays))
        if not hasattr(arrays, "shape"):
            raise InputError(
                f"concatenate: arrays to join must be given in a list or tuple, got {type(arrays).__name__}. "
                "Make a list of them."
            )
        return unstack(arrays), False
    kinds = set(map(type, arrays))
    if kinds <= _ARRAYS:  # fast path for the common case
        return arrays, kinds <= _NUMPYS
    for a in arrays:
        if namespace_of(a) is not np:
            break
    else:
        return arrays, True
    values = [as_value(a) for a in arrays]
    return values, not isinstance(a, Tracer) and all(namespace_of(a) is np for a in values)


def _in_dtype(arrays: Sequence[Array], dtype: Any, casting: Any) -> Sequence[Array]:
    have = result_type(*arrays)
    if not np.can_cast(have, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {have!r} to {np.dtype(dtype)!r} according to the rule '{casting}'"
        )
    return [astype(a, dtype) for a in arrays]


def _join_into(join: Callable[..., Array], out: Any, arrays: Any, axis: Any, dtype: Any, casting: Any) -> Array:
    if dtype is not None:
        raise TypeError(f"{join.__name__}() only takes `out` or `dtype` as an argument, but both were provided.")
    return compute_into(join, out, arrays, axis, casting=casting)


def concatenate(
    arrays: Sequence[ArrayLike] | Array,
    /,
    axis: Axis = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Array:
    """Join arrays one after the other along ``axis``.

    Args:
        arrays: arrays of the same shape, except along ``axis``.
        axis: the axis; None joins the flattened arrays.
        out: an array for the result.
        dtype: the dtype of the result, by default that of NumPy's promotion.
        casting: the conversions that are allowed for ``dtype``.

    Raises:
        TypeError: both ``out`` and ``dtype`` are given.
        ValueError: there are no arrays, an array has no axes, or the shapes do not fit each other.

    Example:
        >>> fnp.concatenate([[1, 2], [3.0]])
        array([1., 2., 3.])
    """
    if out is not None:
        return _join_into(concatenate, out, arrays, axis, dtype, casting)
    arrays, plain = _joinable(arrays)
    if plain:
        return np.concatenate(arrays, axis, dtype=dtype, casting=casting)
    if dtype is not None:
        arrays = _in_dtype(arrays, dtype, casting)
    if axis is None:
        arrays, axis = [ravel(a) for a in arrays], 0
    rank = len(backend.shape_of(arrays[0]))
    return prim.concatenate(
        *arrays, axis=axis if type(axis) is int and 0 <= axis < rank else normalize_axis(axis, rank)
    )


concat = concatenate


def stack(
    arrays: Sequence[ArrayLike] | Array,
    axis: int = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Array:
    """Join arrays of the same shape along a new axis, the axis ``axis`` of the result.

    The other arguments are those of ``concatenate``.

    Raises:
        TypeError: both ``out`` and ``dtype`` are given.
        ValueError: there are no arrays, or their shapes differ.

    Example:
        >>> fnp.stack([[1, 2], [3, 4]], axis=1)
        array([[1, 3],
               [2, 4]])
    """
    if out is not None:
        return _join_into(stack, out, arrays, axis, dtype, casting)
    arrays, plain = _joinable(arrays)
    if plain:
        return np.stack(arrays, axis, dtype=dtype, casting=casting)
    if dtype is not None:
        arrays = _in_dtype(arrays, dtype, casting)
    return prim.stack(*arrays, axis=normalize_axis(axis, len(backend.shape_of(arrays[0])) + 1))


def vstack(tup: Sequence[ArrayLike] | Array, *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Join arrays along the first axis; vectors become rows.

    Example:
        >>> fnp.vstack([[1, 2], [3, 4]])
        array([[1, 2],
               [3, 4]])
    """
    arrays, plain = _joinable(tup)
    if plain:
        return np.vstack(arrays, dtype=dtype, casting=casting)
    return concatenate([atleast_2d(a) for a in arrays], 0, dtype=dtype, casting=casting)


def hstack(tup: Sequence[ArrayLike] | Array, *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Join arrays along the second axis, or vectors along their only axis.

    Example:
        >>> fnp.hstack([[1, 2], [3, 4]])
        array([1, 2, 3, 4])
    """
    arrays, plain = _joinable(tup)
    if plain:
        return np.hstack(arrays, dtype=dtype, casting=casting)
    rows = [atleast_1d(a) for a in arrays]
    return concatenate(rows, 0 if len(rows[0].shape) == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Sequence[ArrayLike] | Array) -> Array:
    """Join arrays along the third axis.

    Example:
        >>> fnp.dstack([[1, 2], [3, 4]])
        array([[[1, 3],
                [2, 4]]])
    """
    arrays, plain = _joinable(tup)
    return np.dstack(arrays) if plain else concatenate([atleast_3d(a) for a in arrays], 2)


def column_stack(tup: Sequence[ArrayLike] | Array) -> Array:
    """Join arrays along the second axis; vectors become columns.

    Example:
        >>> fnp.column_stack([[1, 2], [3, 4]])
        array([[1, 3],
               [2, 4]])
    """
    arrays, plain = _joinable(tup)
    if plain:
        return np.column_stack(arrays)
    return concatenate([transpose(atleast_2d(a)) if len(backend.shape_of(a)) < 2 else a for a in arrays], 1)


def append(arr: ArrayLike, values: ArrayLike, axis: Axis = None) -> Array:
    """Append ``values`` to ``arr`` along ``axis``; None joins the flattened arrays.

    Example:
        >>> fnp.append([[1, 2]], 3)
        array([1, 2, 3])
    """
    if axis is None:
        arr, values = ravel(arr), ravel(values)  # as arrays, so that a number promotes as an array does
    return concatenate((arr, values), axis or 0)


def block(arrays: Any) -> Array:
    """Join nested lists of blocks: the innermost lists along the last axis, outer lists along the axes before.

    Raises:
        ValueError: a list is empty, the depths of the lists differ, or the shapes do not fit each other.
        TypeError: there is a tuple in place of a list.

    Example:
        >>> fnp.block([[np.ones((1, 1)), np.zeros((1, 2))]])
        array([[1., 0., 0.]])
    """
    leaves: list[tuple[int, Any]] = []
    _collect_leaves(arrays, 0, leaves)
    if all(namespace_of(a) is np for _, a in leaves):
        return np.block(arrays)
    depths = {depth for depth, _ in leaves}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched: blocks at depths {sorted(depths)}")
    (depth,) = depths
    rank = max([depth, *[len(backend.shape_of(a)) for _, a in leaves]])
    return _join_blocks(arrays, depth, rank) if depth else copy(_join_blocks(arrays, depth, rank))


def _collect_leaves(arrays: Any, depth: int, found: list[tuple[int, Any]]) -> None:
    if type(arrays) is tuple:
        raise TypeError(f"a tuple at depth {depth}: only lists can be used to arrange blocks")
    if type(arrays) is not list:
        found.append((depth, as_value(arrays)))
        return
    if not arrays:
        raise ValueError(f"List at depth {depth} cannot be empty")
    for item in arrays:
        _collect_leaves(item, depth + 1, found)


def _join_blocks(arrays: Any, depth: int, rank: int) -> Array:
    """Join blocks nested ``depth`` lists deep along the last ``depth`` of ``rank`` axes."""
    if depth:
        return concatenate([_join_blocks(a, depth - 1, rank) for a in arrays], rank - depth)
    a = as_value(arrays)
    have = backend.shape_of(a)
    return reshape(a, to=(*(1,) * (rank - len(have)), *have))


def _bounds(cuts: Any, n: int) -> list[tuple[int, int]]:
    """Return the start and end of each piece; a cut is interpreted as a bound of a slice."""
    if not hasattr(cuts, "__len__"):
        count = operator.index(cuts)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, longer = divmod(n, count)
        ends = list(accumulate([each + 1] * longer + [each] * (count - longer)))
        return list(pairwise([0, *ends]))
    spans = [slice(a, b).indices(n) for a, b in pairwise([0, *map(operator.index, cuts), n])]
    return [(a, max(a, b)) for a, b, _ in spans]


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split ``ary`` along ``axis``; a number of pieces gives lengths that differ by at most one.

    Args:
        ary: an array.
        indices_or_sections: the number of pieces, or the positions of the cuts.
        axis: the axis.

    Raises:
        ValueError: the number of pieces is not positive.

    Example:
        >>> fnp.array_split([1, 2, 3], 2)
        [array([1, 2]), array([3])]
    """
    x = as_value(ary)
    if namespace_of(x) is np and is_plain(indices_or_sections):
        return np.array_split(x, indices_or_sections, axis)
    have = backend.shape_of(x)
    axis = normalize_axis(axis, len(have))
    spans = _bounds(indices_or_sections, have[axis])
    starts, stops = zip(*spans, strict=True)
    places = [slice(start, stop) for start, stop in spans]
    if (*starts, have[axis]) != (0, *stops) or _reads_are_faster(x):  # cuts out of order: pieces may overlap
        return _read(x, axis, places)
    return list(_as_views(x, prim.split(x, at=starts, axis=axis), axis, places))


def _reads_are_faster(x: Array) -> bool:
    """Whether reading the parts one by one is faster than one operation with as many results."""
    return type(x) is Tracer and x._trace.counter is not None and stands_for_array(x._val)


def _read(x: Array, axis: int, places: Sequence[Any]) -> list[Array]:
    before = (slice(None),) * axis
    return [getitem(x, (*before, place) if axis else place) for place in places]


def _as_views(x: Array, parts: tuple[Array, ...], axis: int, places: Sequence[Any]) -> tuple[Array, ...]:
    """Register ``parts`` as views of ``x``, as in NumPy; ``places`` holds their indices along ``axis``."""
    if isinstance(x, Tracer):
        before = (slice(None),) * axis
        for part, place in zip(parts, places, strict=True):
            if isinstance(part, Tracer) and part.shape:
                note_view(x, part, getitem, {"index": (*before, place)})
    return parts


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split ``ary`` along ``axis``; a number of pieces gives pieces of equal length; arguments as for ``array_split``.

    Raises:
        ValueError: the number of pieces is not positive, or does not divide the length of the axis.

    Example:
        >>> fnp.split([1, 2, 3, 4], 2)
        [array([1, 2]), array([3, 4])]
    """
    x = as_value(ary)
    if not hasattr(indices_or_sections, "__len__"):
        have = backend.shape_of(x)
        if have[normalize_axis(axis, len(have))] % operator.index(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Split ``ary`` along its first axis.

    Raises:
        ValueError: ``ary`` has fewer than two axes, or the axis cannot be divided evenly.

    Example:
        >>> fnp.vsplit([[1, 2], [3, 4]], 2)
        [array([[1, 2]]), array([[3, 4]])]
    """
    return _split_last("vsplit", 2, 0, ary, indices_or_sections)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Split ``ary`` along its second axis, or a vector along its only axis.

    Raises:
        ValueError: ``ary`` has no axis, or the axis cannot be divided evenly.

    Example:
        >>> fnp.hsplit([1, 2, 3, 4], [1])
        [array([1]), array([2, 3, 4])]
    """
    x = as_value(ary)
    return _split_last("hsplit", 1, min(1, len(backend.shape_of(x)) - 1), x, indices_or_sections)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Split ``ary`` along its third axis.

    Raises:
        ValueError: ``ary`` has fewer than three axes, or the axis cannot be divided evenly.

    Example:
        >>> fnp.dsplit([[[1, 2]]], 2)
        [array([[[1]]]), array([[[2]]])]
    """
    return _split_last("dsplit", 3, 2, ary, indices_or_sections)


def _split_last(name: str, least: int, axis: int, ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    x = as_value(ary)
    if len(backend.shape_of(x)) < least:
        raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
    return split(x, indices_or_sections, axis)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split ``x`` along ``axis`` into the arrays whose ``stack`` is ``x``.

    Raises:
        ValueError: ``x`` has no axis.

    Example:
        >>> fnp.unstack([[1, 2], [3, 4]])
        (array([1, 2]), array([3, 4]))
    """
    x = as_value(x)
    rank = len(backend.shape_of(x))
    if not rank:
        raise ValueError("Input array must be at least 1-d.")
    axis = normalize_axis(axis, rank)
    if _reads_are_faster(x):
        return tuple(_read(x, axis, range(backend.shape_of(x)[axis])))
    return _as_views(x, prim.unstack(x, axis=axis), axis, range(backend.shape_of(x)[axis]))
