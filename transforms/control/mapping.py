"""Maps along an axis: ``map`` computes one element after the other, ``associative_scan`` many at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import describe, own_results, shallow_copy
from funcgrad.errors import InputError, ShapeError
from funcgrad.transforms.control.carrying import checked_leaves
from funcgrad.transforms.control.loops import scan
from funcgrad.transforms.transformed import check_functions
from funcgrad.transforms.vectorize import vmap
from funcgrad.typing import PyTree
from funcgrad.writable import as_results


def map(f: Callable[[Any], Any], xs: PyTree, *, batch_size: int | None = None) -> Any:
    """Apply ``f`` to every element along the first axes of ``xs``, one after the other, and stack the results.

    The result equals that of ``vmap(f)(xs)``, with the memory of one element at a time, or of ``batch_size`` elements,
    which are computed at once. The steps run like those of ``scan``.

    Args:
        f: a function of one element.
        xs: a pytree of arrays with first axes of one length.
        batch_size: how many elements to compute at once by ``vmap``; 0 means all of them.

    Raises:
        TypeError: ``f`` is not callable, or a leaf of ``xs`` is not an array.
        ValueError: no first axis, lengths that disagree, a negative ``batch_size``.

    Example:
        >>> from funcgrad import control
        >>> control.map(lambda x: fnp.sum(x * x), np.arange(6.0).reshape(3, 2), batch_size=2)
        array([ 1., 13., 41.])
    """
    check_functions("map", f=f)
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    leaves, spec = checked_leaves("map", "xs", xs)
    sizes = {backend.shape_of(leaf)[:1] for leaf in leaves}
    if len(sizes) != 1 or () in sizes:
        raise ShapeError(
            f"map: the first axes of xs must have one length, got {[describe(leaf) for leaf in leaves]}. Pass arrays "
            "with one row for each element."
        )
    size = operator.index(batch_size)
    if size < 0:
        raise ShapeError(f"map: batch_size must not be negative, got {size}. Say how many to compute at once.")
    (length,) = sizes.pop()
    count = length // size if size else 0
    many = vmap(f)
    if not count:
        return many(xs)
    end = count * size
    chunks = [fnp.reshape(leaf[:end], (count, size, *backend.shape_of(leaf)[1:])) for leaf in leaves]
    ys = scan(lambda _, x: ((), many(x)), (), tree.unflatten(spec, chunks))[1]
    ys = tree.map(lambda y: fnp.reshape(y, (end, *backend.shape_of(y)[2:])), ys)
    if end == length:
        return ys
    rest = many(tree.unflatten(spec, [leaf[end:] for leaf in leaves]))
    return tree.map(lambda y, more: fnp.concatenate([y, more]), ys, rest)


def associative_scan(fn: Callable[[Any, Any], Any], elems: PyTree, reverse: bool = False, axis: int = 0) -> Any:
    """Return all partial results of combining the elements along an axis by ``fn``, which is associative.

    The scan takes about ``2 log2(n)`` calls of ``fn`` on many elements at once, instead of ``n`` calls on one. It
    computes the parallel prefix sums of Ladner and Fischer (1980): combine neighbours, scan the half as many results,
    and combine once more for the elements in between.

    Args:
        fn: ``fn(a, b)`` combines two trees like ``elems``, element by element along ``axis``, whatever its length;
            ``a`` comes before ``b``.
        elems: an array, or a pytree of arrays, whose ``axis`` has one length in all of them.
        reverse: whether to begin at the end.
        axis: the axis; a negative one counts from the end.

    Returns:
        A tree like ``elems``.

    Raises:
        TypeError: ``fn`` is not callable, or returns another structure.
        ValueError: no such axis, lengths that disagree; ``fn`` returns another shape.

    Example:
        >>> from funcgrad import associative_scan
        >>> associative_scan(lambda a, b: a * b, np.array([1.0, 2.0, 3.0, 4.0]))
        array([ 1.,  2.,  6., 24.])
        >>> matrices = np.array([[[1.0, 1.0], [0.0, 1.0]]] * 3)
        >>> associative_scan(lambda a, b: a @ b, matrices)[-1]
        array([[1., 3.],
               [0., 1.]])
    """
    check_functions("associative_scan", fn=fn)
    leaves, spec = checked_leaves("associative_scan", "elems", elems)
    if not leaves:
        return elems
    axes = [_axis(leaf, axis) for leaf in leaves]
    lengths = {backend.shape_of(leaf)[leaf_axis] for leaf, leaf_axis in zip(leaves, axes, strict=True)}
    if len(lengths) != 1:
        raise ShapeError(
            f"associative_scan: axis {axis} must have one length in all of elems, got {sorted(lengths)}. Cut them to "
            "one length."
        )
    leaves, prefixes = [fnp.asarray(leaf) for leaf in leaves], _Prefixes(fn, spec, axes)
    backwards = slice(None, None, -1)
    if reverse:
        results = prefixes.cut(prefixes.scan(prefixes.cut(leaves, backwards)), backwards)
    else:
        results = prefixes.scan(leaves)
    return tree.unflatten(spec, as_results(own_results([shallow_copy(x) for x in results]), elems))


def _axis(leaf: Any, axis: int) -> int:
    ndim = len(backend.shape_of(leaf))
    if not -ndim <= operator.index(axis) < ndim:
        raise ShapeError(f"associative_scan: there is no axis {axis}, got {describe(leaf)}. Pass arrays that have it.")
    return operator.index(axis) % ndim


def _slice_axis(x: Any, axis: int, part: slice) -> Any:
    return x[(*[slice(None)] * axis, part)]


class _Prefixes:
    """Recursion of ``associative_scan``, on leaves."""

    def __init__(self, fn: Callable[[Any, Any], Any], spec: tree.PyTreeSpec, axes: Sequence[int]) -> None:
        self.fn, self.spec, self.axes = fn, spec, axes

    def scan(self, leaves: list[Any]) -> list[Any]:
        length = backend.shape_of(leaves[0])[self.axes[0]]
        if length < 2:
            return leaves
        pairs = self.combine(self.cut(leaves, slice(0, -1, 2)), self.cut(leaves, slice(1, None, 2)))
        odd = self.scan(pairs)
        even = self.cut(leaves, slice(0, 1))
        if length > 2:
            between = self.cut(odd, slice(0, -1)) if length % 2 == 0 else odd
            later = self.combine(between, self.cut(leaves, slice(2, None, 2)))
            even = [fnp.concatenate([a, b], axis=axis) for a, b, axis in zip(even, later, self.axes, strict=True)]
        return [_interleaved(a, b, axis) for a, b, axis in zip(even, odd, self.axes, strict=True)]

    def cut(self, leaves: Sequence[Any], part: slice) -> list[Any]:
        return [_slice_axis(leaf, axis, part) for leaf, axis in zip(leaves, self.axes, strict=True)]

    def combine(self, a: list[Any], b: list[Any]) -> list[Any]:
        leaves, spec = checked_leaves(
            "associative_scan", "the result of fn", self.fn(tree.unflatten(self.spec, a), tree.unflatten(self.spec, b))
        )
        if spec != self.spec:
            raise InputError(
                f"associative_scan: fn must return the structure of its arguments, got {tree.drawn(spec)} from "
                f"{tree.drawn(self.spec)}. Return the same containers with the same keys."
            )
        for new, old in zip(leaves, b, strict=True):
            if backend.shape_of(new) != backend.shape_of(old):
                raise ShapeError(
                    f"associative_scan: fn must return the shapes of its arguments, got {backend.shape_of(new)} "
                    f"from {backend.shape_of(old)}. It is called with many elements at once."
                )
        return leaves


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Return the entries of both in turns; ``even`` has as many as ``odd`` or one more."""
    shape = backend.shape_of(odd)
    count = shape[axis]
    pairs = fnp.stack([_slice_axis(even, axis, slice(0, count)), odd], axis=axis + 1)
    joined = fnp.reshape(pairs, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    if backend.shape_of(even)[axis] == count:
        return joined
    return fnp.concatenate([joined, _slice_axis(even, axis, slice(count, None))], axis=axis)
