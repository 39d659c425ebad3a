"""HIPS autograd's ``numpy_wrapper``: the functions that it has in addition to NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import dtype_of, shape_of
from funcgrad.numpy.creation import as_value

__all__ = ["array_from_args", "concatenate", "concatenate_args", "make_diagonal", "metadata", "row_stack", "stack"]

row_stack = fnp.vstack


def concatenate(arr_list: Any, axis: int | None = 0) -> Any:
    """Join the arrays of any iterable, such as a ``map`` or the values of a dictionary, along ``axis``.

    Example:
        >>> concatenate(map(np.ones, (1, 2)))
        array([1., 1., 1.])
    """
    return fnp.concatenate(list(arr_list), axis)


def stack(arrays: Any, axis: int = 0) -> Any:
    """Join the arrays of any iterable along a new axis.

    Example:
        >>> stack({"a": 1.0, "b": 2.0}.values())
        array([1., 2.])
    """
    return fnp.stack(list(arrays), axis)


def concatenate_args(axis: int | None, *args: Any) -> Any:
    """Return ``concatenate(args, axis)``."""
    return fnp.concatenate(args, axis)


def array_from_args(array_args: Any, array_kwargs: Any, *args: Any) -> Any:
    """Return ``array(args, *array_args, **array_kwargs)``."""
    return fnp.array(list(args), *array_args, **array_kwargs)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the array whose diagonal along ``axis1`` and ``axis2`` is ``D``; the last axis of ``D`` runs along it.

    Example:
        >>> make_diagonal([1.0, 2.0])
        array([[1., 0.],
               [0., 2.]])
    """
    D = as_value(D)
    size = shape_of(D)[-1] + np.abs(offset)
    rows = np.arange(shape_of(D)[-1]) + max(-offset, 0)
    places = np.zeros((shape_of(D)[-1], size, size), dtype_of(D))
    places[np.arange(len(rows)), rows, rows + offset] = 1
    return fnp.moveaxis(fnp.tensordot(D, places, axes=1), (-2, -1), (axis1, axis2))


def metadata(A: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """Return the shape, the number of axes, the dtype, and whether the dtype is complex."""
    A = as_value(A)
    return shape_of(A), len(shape_of(A)), dtype_of(A), dtype_of(A).kind == "c"
