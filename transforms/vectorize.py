"""``vmap``: applies a function, written for one example, to a whole batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Never, ParamSpec, TypeAlias

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, is_batched, is_in_batch, named_axes
from funcgrad.core import (
    Tracer,
    check_open,
    describe,
    is_array,
    is_in_transform,
    is_plain_float,
    own_results,
    plain_value,
    shallow_copy,
)
from funcgrad.errors import InputError, ShapeError
from funcgrad.foreign_nodes import LEAVES
from funcgrad.graph import report_answer
from funcgrad.kinds.linear import permute, to_batch
from funcgrad.shared_state import open_path
from funcgrad.transforms.arguments import check_leaf
from funcgrad.transforms.transformed import Transformed, check_callable, hide_extra_arguments
from funcgrad.typing import PyTree
from funcgrad.writable import as_inner_results

P = ParamSpec("P")
#: Function that names the argument of a leaf, given the leaf's number. It is slow, so only errors call it.
Where: TypeAlias = Callable[[int], str]


@hide_extra_arguments
def vmap(
    fun: Callable[P, Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    **_others: Never,
) -> Callable[P, Any]:
    """Apply ``fun``, written for one example, to a whole batch along an axis of its arguments.

    Args:
        fun: a function of one example.
        in_axes: which axis of the arguments to map over: an int (possibly negative), None for an
            argument that is the same for all examples, or a tuple with an entry per positional
            argument, each an int, None, or a tree of them that is a prefix of the argument. Keyword
            arguments are always mapped over axis 0.
        out_axes: which axis of the results is the mapped one, given like ``in_axes``. None promises that a result
            does not depend on the example.
        axis_name: a hashable name for the mapped axis, for collectives such as ``psum`` inside ``fun``.
        axis_size: the number of examples, needed only when nothing is mapped.

    Returns:
        A function of batches.

    Raises:
        ValueError: sizes that disagree, an array of too small a rank, ``in_axes`` of the wrong length
            or structure, nothing to map over, ``out_axes`` of None for a result that is batched.

    Example:
        >>> from funcgrad import grad, vmap
        >>> vmap(grad(lambda w, x: (w * x) ** 2), in_axes=(None, 0))(2.0, np.array([1.0, 2.0]))
        array([ 4., 16.])
    """
    check_callable("vmap", fun, _others)
    if not isinstance(in_axes, (int, tuple, list, type(None))) or isinstance(in_axes, bool):
        raise InputError(
            f"vmap: in_axes must be an int, None, or a tuple with an entry per positional argument, got "
            f"{describe(in_axes)}. {_hint_for_in_axes(in_axes)}"
        )
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    summary = "Vectorized version of {fun}: maps it over an axis of its arguments."
    return Transformed(run_vmap, fun, (in_axes, out_axes, axis_name, axis_size), summary)


def _hint_for_in_axes(given: Any) -> str:
    """Return advice for an invalid value of ``in_axes``."""
    if is_array(given):
        return "Write vmap(f)(x), not vmap(f, x)."
    return "Wrap a tree for the first argument as (tree,)."


def run_vmap(fun: Callable[..., Any], options: tuple[Any, Any, Any, int | None], args: Any, kwargs: Any) -> Any:
    """Run a call of ``vmap(fun)``."""
    in_axes, out_axes, axis_name, axis_size = options
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ShapeError(
            f"vmap: in_axes has {len(in_axes)} entries for {len(args)} positional arguments, got {in_axes}. "
            "Give one entry per positional argument."
        )
    plain = not kwargs and LEAVES.issuperset(map(type, args))  # then the arguments are the leaves
    leaves, spec = (list(args), None) if plain else tree.flatten((args, kwargs))
    positional = len(leaves) if spec is None else spec.children()[0].num_leaves

    def where(number: int) -> str:
        return _argument_in_words(tree.flatten_with_path((args, kwargs))[0][number])

    axes = [*_axis_per_leaf("in_axes", in_axes, args, positional), *[0] * (len(leaves) - positional)]
    axes, size = _resolve_axes(leaves, axes, where, axis_size)
    scope = named_axes.get()
    trace = BatchTrace(size)
    try:
        if axis_name is not None:
            named_axes.set({**scope, axis_name: trace})
        wrapped = [
            leaf if axis is None else trace.leaf(moveaxis(leaf, axis, 0))
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        new_args, new_kwargs = (wrapped, kwargs) if spec is None else spec.unflatten(wrapped)
        path = open_path.get()
        run = fun if path is None else path.mapping(trace, fun)
        out = run(*new_args, **new_kwargs)
        results, out_spec = ([out], None) if type(out) in LEAVES else tree.flatten(out)
        out_places = _axis_per_leaf("out_axes", out_axes, out, len(results))
        placed = [
            _move_batch_axis(trace, leaf, axis, i)
            for i, (leaf, axis) in enumerate(zip(results, out_places, strict=True))
        ]
    finally:
        named_axes.set(scope)
        trace.close()
    del wrapped, new_args, new_kwargs, out, results, run  # the caller alone owns the values from now on
    own_results(placed)
    if is_in_transform():
        placed = as_inner_results(placed, (args, kwargs))
    return placed[0] if out_spec is None else out_spec.unflatten(placed)


def is_true_for_any_example(answer: Any) -> bool:
    """Whether ``answer`` is true for any example of every enclosing ``vmap``. A graph that records the run notes that.

    A loop asks this, because it goes on until the last example is done.
    """
    while is_in_batch(answer):
        if not is_batched(answer):
            return bool(np.any(report_answer(answer, plain_value(answer))))
        answer = fnp.any(answer._val)
    return bool(answer)


def _axis_per_leaf(name: str, axes: Any, value: PyTree, count: int) -> list[Any]:
    """Return the entry of ``axes``, a prefix tree of ``value``, for each of the ``count`` leaves of ``value``."""
    if axes is None or isinstance(axes, int):
        return [axes] * count
    try:
        return tree.broadcast_prefix(axes, value)
    except ValueError as error:
        raise ShapeError(
            f"vmap: {name} does not fit, got {axes} for a value of structure {tree.drawn(tree.structure(value))}. "
            f"It must be an int, None, or a prefix of that structure. ({error})"
        ) from None


def _resolve_axes(
    leaves: list[Any], axes: list[Any], where: Where, axis_size: int | None
) -> tuple[list[int | None], int]:
    """Return the axis of each leaf as a non-negative number, and the number of examples, on which all leaves agree."""
    found, sizes = [], []
    for number, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is not None:
            axis, size = _axis_and_size(leaf, axis, number, where)
            sizes.append((size, axis, number))
        found.append(axis)
    different = {size for size, _, _ in sizes} | ({axis_size} if axis_size is not None else set())
    if not different:
        raise ShapeError(
            "vmap: there is nothing to map over, got in_axes of None for every argument. Map over an axis of at "
            "least one argument, or pass axis_size."
        )
    if len(different) > 1:
        lines = [f"  {where(number)}: axis {axis} has size {size}" for size, axis, number in sizes]
        lines += [f"  axis_size: {axis_size}"] * (axis_size is not None)
        raise ShapeError(
            "vmap: the sizes of the mapped axes disagree, got\n" + "\n".join(lines) + "\nThey must be equal. Choose "
            "other axes with in_axes, or None for what is not mapped."
        )
    return found, different.pop()


def _axis_and_size(leaf: Any, axis: Any, number: int, where: Where) -> tuple[int, int]:
    """Return ``axis`` of ``leaf`` as a non-negative number, and its length."""
    if not is_plain_float(leaf):
        check_leaf("vmap", leaf, lambda: where(number))
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise InputError(
            f"vmap: in_axes must hold ints and None, got {describe(axis)} for {where(number)}. Name an axis."
        )
    shape = leaf.shape if type(leaf) is np.ndarray else backend.shape_of(leaf)
    rank = len(shape)
    if not -rank <= axis < rank:
        raise ShapeError(
            f"vmap: {where(number)} has rank {rank}, got in_axes={axis} for it. {_hint_for_rank(rank, where(number))}"
        )
    return axis % rank, shape[axis]


def _hint_for_rank(rank: int, where: str) -> str:
    """Return advice for an argument without the axis to map over. A list of numbers is often meant as an array."""
    if where.startswith("keyword"):
        return "Keyword arguments are mapped over axis 0: pass it by position, with None for it in in_axes."
    if not rank and re.fullmatch(r"argument \d+\[\d+\]", where):
        return "A list is a container of arrays: pass numpy.asarray(x), or None for what is the same for all examples."
    return "Map over one of its axes, or use None for an argument that is the same for all examples."


def _argument_in_words(path: str) -> str:
    """Return a key path into ``(args, kwargs)`` in words."""
    if path.startswith("[0][") and "]" in path[4:]:
        number, rest = path[4:].split("]", 1)
        return f"argument {number}{rest}"
    return f"keyword argument {path[3:]}"


def moveaxis(x: Any, source: int, target: int) -> Any:
    """Move the axis ``source`` of ``x`` to ``target``; both are non-negative."""
    if source == target:
        return x
    axes = [a for a in range(len(backend.shape_of(x))) if a != source]
    axes.insert(target, source)
    return permute(x, axes=tuple(axes))


def _move_batch_axis(trace: BatchTrace, leaf: Any, axis: Any, number: int) -> Any:
    """Return a result leaf of the function with its batch axis where ``out_axes`` requests it."""
    batched = type(leaf) is Tracer and leaf._trace is trace
    if type(leaf) is Tracer and not batched:
        check_open(leaf)
    if axis is None:
        if batched:
            raise ShapeError(
                f"vmap: result leaf {number} depends on the example, got out_axes=None for it. Name in "
                "out_axes the axis of the result that holds the examples."
            )
        return shallow_copy(leaf)
    if not isinstance(leaf, Tracer):
        check_leaf("vmap", leaf, lambda: f"result leaf {number} of the function")
    value = shallow_copy(leaf._val) if batched else to_batch(shallow_copy(leaf), trace.size)
    if type(axis) is int and axis == 0:
        return value
    rank = len(backend.shape_of(value))
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        raise ShapeError(
            f"vmap: out_axes={axis!r} is out of range for result leaf {number}, which has {rank} "
            f"{'axes' if rank > 1 else 'axis'} with that of the batch. Choose an axis from {-rank} to {rank - 1}."
        )
    return moveaxis(value, 0, axis % rank)
