"""Normalization of the axis and shape arguments that NumPy accepts to non-negative numbers and full tuples."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from funcgrad.typing import Axes, Shape

#: All axes of an array, by its rank.
ALL_AXES = tuple([tuple(range(rank)) for rank in range(65)])


def normalize_axis(axis: Any, rank: int) -> int:
    """Return ``axis`` as a number from 0 to ``rank - 1``.

    Raises:
        numpy.exceptions.AxisError: ``axis`` is out of range.
    """
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise np.exceptions.AxisError(number, rank)
    return number % rank


def means_all_axes(axis: Any, rank: int) -> bool:
    """Whether ``axis`` means all elements: None, or, for a number, 0 or -1, which many functions of NumPy take."""
    return axis is None or (not rank and isinstance(axis, int | np.integer) and axis in (0, -1))


def normalize_axes(axis: Axes, rank: int, *, of_numbers: bool = False) -> tuple[int, ...]:
    """Return ``axis`` (one, several, or None for all) as a tuple of different non-negative numbers.

    With ``of_numbers``, 0 and -1 are valid axes of a number, see ``means_all_axes``.

    Raises:
        numpy.exceptions.AxisError: an axis is out of range.
        ValueError: an axis is named twice.
    """
    if axis is None:
        return ALL_AXES[rank]
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    if of_numbers and means_all_axes(axis, rank):
        return ()
    several: Any = axis if isinstance(axis, (tuple, list)) or np.ndim(axis) else (axis,)
    found = tuple(normalize_axis(a, rank) for a in several)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def keepdims_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """Return ``shape`` with length 1 along ``axes``, as ``keepdims=True`` leaves it."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def as_shape(shape: Any) -> Shape:
    """Return a length or a sequence of lengths as a tuple."""
    if type(shape) is int:
        return (shape,)
    try:
        lengths = [*shape]
    except TypeError:
        return (operator.index(shape),)
    return tuple([operator.index(n) for n in lengths])


def resolve_shape(shape: Any, have: Shape) -> Shape:
    """Return ``shape`` for the elements of an array of shape ``have``, with a length of -1 computed.

    Raises:
        ValueError: the elements do not fill ``shape``, or two lengths are negative.

    Example:
        >>> resolve_shape((3, -1), (2, 6))
        (3, 4)
    """
    to = as_shape(shape)
    size = prod(have)
    unknown = sum([n < 0 for n in to])
    if unknown > 1:
        raise ValueError("can only specify one unknown dimension")
    known = prod([n for n in to if n >= 0])
    if size != known if not unknown else known == 0 or size % known != 0:
        raise ValueError(f"cannot reshape array of size {size} into shape {to}")
    return tuple([size // known if n < 0 else n for n in to]) if unknown else to
