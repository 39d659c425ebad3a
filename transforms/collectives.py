"""Collectives: operations across the examples inside ``vmap(f, axis_name=...)``.

Each takes the name of an axis, or a tuple of names: the examples of all these axes, of which the last counts fastest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, named_axes
from funcgrad.core import describe
from funcgrad.errors import AxisNameError, ShapeError
from funcgrad.kinds.linear import reduce_sum, reshape
from funcgrad.primitives import collective
from funcgrad.primitives.comparison import where
from funcgrad.primitives.indexing import getitem
from funcgrad.transforms.vectorize import moveaxis
from funcgrad.typing import Array, PyTree


def _axes(call: str, name: Any) -> tuple[BatchTrace, ...]:
    """Return the axes of this name, or of a tuple of names."""
    scope = named_axes.get()
    if isinstance(name, tuple) and name not in scope:
        return tuple(axis for part in name for axis in _axes(call, part))
    if name not in scope:
        known = ", ".join(map(repr, scope)) or "none"
        raise AxisNameError(
            f"{call}: unbound axis name {name!r}, got axes in scope: {known}. "
            f"Call it inside vmap(f, axis_name={name!r})."
        )
    return (scope[name],)


def _size(over: Sequence[BatchTrace]) -> int:
    return math.prod(axis.size for axis in over)


def _index(over: Sequence[BatchTrace]) -> Any:
    """Return the number of the example among those of all axes; the last axis counts fastest."""
    index: Any = np.intp(0)
    for axis in over:
        index = index * axis.size + collective.axis_index(axis, np)
    return index


def _gather(x: Any, over: Sequence[BatchTrace]) -> Any:
    """Stack the values of all examples along a new first axis."""
    shape = backend.shape_of(x)
    for axis in reversed(over):
        x = collective.all_gather(x, over=axis, position=0)
    return x if len(over) == 1 else reshape(x, to=(_size(over), *shape))


def axis_index(axis_name: Any) -> Array:
    """Return the index of the example along the axis ``axis_name``, from 0.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.

    Example:
        >>> from funcgrad import axis_index, vmap
        >>> vmap(lambda x: x * axis_index("i"), axis_name="i")(np.ones(3))
        array([0., 1., 2.])
    """
    return _index(_axes("axis_index", axis_name))


def all_gather(x: PyTree, axis_name: Any, axis: int = 0, tiled: bool = False) -> PyTree:
    """Stack the values of ``x`` in all examples along the axis ``axis_name``, at ``axis`` of the result.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        axis: where the examples stand in the result.
        tiled: join the values along the axis that they have there, in place of stacking them along a new one.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.
        ValueError: the result has no such axis.

    Example:
        >>> from funcgrad import all_gather, vmap
        >>> vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.array([1.0, 2.0]))
        array([[1., 2.],
               [1., 2.]])
    """
    over = _axes("all_gather", axis_name)

    def stacked(leaf: Any) -> Any:
        shape = backend.shape_of(leaf)
        rank = len(shape) + (not tiled)
        if not -rank <= axis < rank:
            raise ShapeError(
                f"all_gather: axis must be from {-rank} to {rank - 1} for a value of {len(shape)} axes, got {axis}. "
                f"Pass the place of the {'joined' if tiled else 'new'} axis."
            )
        place = axis % rank
        found = moveaxis(_gather(leaf, over), 0, place)
        return reshape(found, to=(*shape[:place], -1, *shape[place + 1 :])) if tiled else found

    return tree.map(stacked, x)


def _own_part(x: Any, axis: int, over: Sequence[BatchTrace]) -> Any:
    """Return the part of ``x`` at the example's index along ``axis``, which has a place for each example."""
    return getitem(x, (*(slice(None),) * axis, _index(over)))


def _in_parts(call: str, name: str, x: Any, axis: int, tiled: bool, size: int) -> tuple[Any, int]:
    """Return ``x`` with a part for each of ``size`` examples along ``axis``, which is returned as a positive number."""
    shape = backend.shape_of(x)
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"{call}: {name} must name an axis of x, got {axis} for {describe(x)}. Pass one that it has.")
    axis %= len(shape)
    if shape[axis] % size if tiled else shape[axis] != size:
        needed = f"a multiple of {size}" if tiled else str(size)
        raise ShapeError(
            f"{call}: axis {name}={axis} must have length {needed}, a part for each example, got {describe(x)}. "
            f"Pass {'an axis of such a length' if tiled else 'tiled=True for parts of several elements'}."
        )
    return (reshape(x, to=(*shape[:axis], size, -1, *shape[axis + 1 :])) if tiled else x), axis


def all_to_all(x: PyTree, axis_name: Any, split_axis: int, concat_axis: int, tiled: bool = False) -> PyTree:
    """Send a part of ``x`` to each example along ``axis_name``, and stack the parts that the example receives.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        split_axis: the axis of the parts: part ``i`` goes to example ``i``.
        concat_axis: where the received parts stand in the result, part ``i`` from example ``i``.
        tiled: cut ``split_axis`` into equal pieces, and join the pieces along ``concat_axis``, which ``x`` has; else
            ``split_axis`` has the length of the axis and goes, and ``concat_axis`` is new.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.
        ValueError: ``x`` has no such axis, or the axis has another length.

    Example:
        >>> from funcgrad import all_to_all, vmap
        >>> vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([[1., 3.],
               [2., 4.]])
    """
    over = _axes("all_to_all", axis_name)

    def exchanged(leaf: Any) -> Any:
        parts, axis = _in_parts("all_to_all", "split_axis", leaf, split_axis, tiled, _size(over))
        received = _own_part(_gather(parts, over), axis + 1, over)
        rank = len(backend.shape_of(leaf))
        if not -rank <= concat_axis < rank:
            raise ShapeError(
                f"all_to_all: concat_axis must be from {-rank} to {rank - 1}, got {concat_axis} for {describe(leaf)}. "
                "Pass an axis of the result."
            )
        found = moveaxis(received, 0, place := concat_axis % rank)
        shape = backend.shape_of(found)
        return reshape(found, to=(*shape[:place], -1, *shape[place + 2 :])) if tiled else found

    return tree.map(exchanged, x)


def psum_scatter(x: PyTree, axis_name: Any, *, scatter_dimension: int = 0, tiled: bool = False) -> PyTree:
    """Sum ``x`` over all examples along ``axis_name``, and return the example's part of the sum.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis, or a tuple of names.
        scatter_dimension: the axis of the parts: example ``i`` gets part ``i``.
        tiled: cut this axis into equal pieces; else it has the length of the axis ``axis_name``, and goes.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.
        ValueError: ``x`` has no such axis, or the axis has another length.

    Example:
        >>> from funcgrad import psum_scatter, vmap
        >>> vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([4., 6.])
    """
    over = _axes("psum_scatter", axis_name)

    def scattered(leaf: Any) -> Any:
        parts, axis = _in_parts("psum_scatter", "scatter_dimension", leaf, scatter_dimension, tiled, _size(over))
        return _own_part(psum(parts, axis_name), axis, over)

    return tree.map(scattered, x)


def psum(x: PyTree, axis_name: Any) -> PyTree:
    """Sum ``x`` over all examples along the axis ``axis_name``, leaf by leaf.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.

    Example:
        >>> from funcgrad import psum, vmap
        >>> vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
        array([0.25, 0.75])
    """
    over = _axes("psum", axis_name)
    return tree.map(lambda leaf: reduce_sum(_gather(leaf, over), axis=(0,)), x)


def pmean(x: PyTree, axis_name: Any) -> PyTree:
    """Average ``x`` over all examples along the axis ``axis_name``, leaf by leaf.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.

    Example:
        >>> from funcgrad import pmean, vmap
        >>> vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
        array([-1.,  1.])
    """
    size = _size(_axes("pmean", axis_name))
    return tree.map(lambda leaf: leaf / size, psum(x, axis_name))


def pmax(x: PyTree, axis_name: Any) -> PyTree:
    """Return the maximum of ``x`` over all examples along ``axis_name``, leaf by leaf; ties share the derivative.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.

    Example:
        >>> from funcgrad import pmax, vmap
        >>> vmap(lambda x: x - pmax(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
        array([-2.,  0.])
    """
    over = _axes("pmax", axis_name)
    return tree.map(lambda leaf: _gather(leaf, over).max(axis=0), x)


def pmin(x: PyTree, axis_name: Any) -> PyTree:
    """Return the minimum of ``x`` over all examples along ``axis_name``, leaf by leaf; ties share the derivative.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.

    Example:
        >>> from funcgrad import pmin, vmap
        >>> vmap(lambda x: x - pmin(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
        array([0., 2.])
    """
    over = _axes("pmin", axis_name)
    return tree.map(lambda leaf: _gather(leaf, over).min(axis=0), x)


def ppermute(x: PyTree, axis_name: Any, perm: Sequence[tuple[int, int]]) -> PyTree:
    """Send ``x`` between examples along the axis ``axis_name``.

    ``perm`` lists pairs (from, to). An example that receives nothing gets zeros.

    Raises:
        NameError: no enclosing ``vmap`` has this axis name.
        ValueError: a pair names an example that does not exist, or two pairs send to one example.

    Example:
        >>> from funcgrad import ppermute, vmap
        >>> vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(np.array([1.0, 2.0, 3.0]))
        array([0., 1., 2.])
    """
    over = _axes("ppermute", axis_name)
    size = _size(over)
    source, receives = np.zeros(size, int), np.zeros(size, bool)
    for start, stop in perm:
        if not (0 <= start < size and 0 <= stop < size):
            raise ShapeError(
                f"ppermute: perm must name examples from 0 to {size - 1}, got {(start, stop)}. Pass pairs (from, to)."
            )
        if receives[stop]:
            raise ShapeError(
                f"ppermute: an example receives from one example at most, got two pairs to {stop}. Add the values with "
                "psum, or send them in two calls."
            )
        source[stop], receives[stop] = start, True
    index = _index(over)

    def permuted(leaf: Any) -> Any:
        received = getitem(_gather(leaf, over), getitem(source, index))
        return where(getitem(receives, index), received, backend.dtype_of(leaf).type(0))

    return tree.map(permuted, x)
