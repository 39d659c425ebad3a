"""Conversion of nested containers of arrays to one vector and back."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.backend import shape_of

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of nested containers as a vector, and the function from vectors to such containers.

    Dictionaries are flattened in the order of their sorted keys. Both directions can be differentiated.

    Example:
        >>> flat, unflatten = flatten({"w": np.eye(2), "b": 3.0})
        >>> flat
        array([3., 1., 0., 0., 1.])
        >>> unflatten(flat)["w"]
        array([[1., 0.],
               [0., 1.]])
    """
    leaves, spec = tree.flatten(value)
    shapes = [shape_of(leaf) for leaf in leaves]
    ends = np.cumsum([prod(shape) for shape in shapes], dtype=int).tolist()

    def unflatten(vector: Any) -> Any:
        starts = [0, *ends[:-1]]
        pieces = [fnp.reshape(vector[i:j], s) for i, j, s in zip(starts, ends, shapes, strict=True)]
        # A copy: a program may write to the result, and to the vector.
        return tree.unflatten(spec, [fnp.array(piece) for piece in pieces])

    return fnp.concatenate([fnp.ravel(leaf) for leaf in leaves]) if leaves else np.array([]), unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """Return ``func`` from vectors to vectors, the function back into containers, and the vector of ``example``.

    Example:
        >>> flat_func, unflatten, flat = flatten_func(lambda p: {"a": 2 * p["a"]}, {"a": np.ones(2)})
        >>> flat_func(flat)
        array([2., 2.])
    """
    flat_example, unflatten = flatten(example)
    return lambda vector, *args: flatten(func(unflatten(vector), *args))[0], unflatten, flat_example
