"""Sorting out axis arguments: what NumPy accepts in, non-negative numbers out."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad.typing import Axes, Shape

__all__ = ["all_axes", "kept", "one_axis", "some_axes"]


def one_axis(axis: Any, rank: int) -> int:
    """``axis`` as a number from 0 to ``rank - 1``.

    Raises:
        numpy.exceptions.AxisError: out of range.

    Example:
        >>> one_axis(-1, 3)
        2
    """
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise np.exceptions.AxisError(number, rank)
    return number % rank


def some_axes(axis: Axes, rank: int) -> tuple[int, ...]:
    """``axis`` (one, several, or None for all) as a tuple of different non-negative numbers.

    Raises:
        numpy.exceptions.AxisError: out of range.
        ValueError: an axis named twice.

    Example:
        >>> some_axes(None, 2), some_axes(-1, 2), some_axes((1, -2), 2)
        ((0, 1), (1,), (1, 0))
    """
    if axis is None:
        return (0,) if rank == 1 else tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    several: Any = axis if isinstance(axis, (tuple, list)) or np.ndim(axis) else (axis,)
    found = tuple(one_axis(a, rank) for a in several)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def all_axes(rank: int) -> tuple[int, ...]:
    """Every axis of an array of ``rank``.

    Example:
        >>> all_axes(3)
        (0, 1, 2)
    """
    return (0,) if rank == 1 else tuple(range(rank))


def kept(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """``shape`` with length 1 along ``axes``: what ``keepdims=True`` leaves.

    Example:
        >>> kept((2, 3, 4), (0, 2))
        (1, 3, 1)
    """
    return tuple(1 if i in axes else n for i, n in enumerate(shape))
