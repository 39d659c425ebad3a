"""Sorting out arguments of axes and shapes: what NumPy accepts in, non-negative numbers and full tuples out."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from funcgrad.typing import Axes, Shape


def one_axis(axis: Any, rank: int) -> int:
    """``axis`` as a number from 0 to ``rank - 1``.

    Raises:
        numpy.exceptions.AxisError: out of range.
    """
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise np.exceptions.AxisError(number, rank)
    return number % rank


def takes_all(axis: Any, rank: int) -> bool:
    """Whether ``axis`` means all elements: it is None, or 0 or -1 of a number, which many functions of NumPy take.

    Example:
        >>> takes_all(-1, 0), takes_all(-1, 1)
        (True, False)
    """
    return axis is None or (not rank and isinstance(axis, int | np.integer) and axis in (0, -1))


def some_axes(axis: Axes, rank: int, *, of_numbers: bool = False) -> tuple[int, ...]:
    """``axis`` (one, several, or None for all) as a tuple of different non-negative numbers.

    With ``of_numbers`` 0 and -1 are axes of a number, see ``takes_all``.

    Raises:
        numpy.exceptions.AxisError: out of range.
        ValueError: an axis named twice.
    """
    if axis is None:
        return (0,) if rank == 1 else tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    if of_numbers and takes_all(axis, rank):
        return ()
    several: Any = axis if isinstance(axis, (tuple, list)) or np.ndim(axis) else (axis,)
    found = tuple(one_axis(a, rank) for a in several)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def all_axes(rank: int) -> tuple[int, ...]:
    """Every axis of an array of ``rank``."""
    return (0,) if rank == 1 else tuple(range(rank))


def kept(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """``shape`` with length 1 along ``axes``: what ``keepdims=True`` leaves."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def as_shape(shape: Any) -> Shape:
    """A length or a sequence of lengths as a tuple.

    Example:
        >>> as_shape(3), as_shape([2, 3])
        ((3,), (2, 3))
    """
    if type(shape) is int:
        return (shape,)
    try:
        return tuple([operator.index(n) for n in shape])
    except TypeError:
        return (operator.index(shape),)


def completed(shape: Any, have: Shape) -> Shape:
    """``shape`` for the elements of an array of shape ``have``, with a length of -1 worked out.

    Raises:
        ValueError: the elements do not fill ``shape``, or two lengths are negative.

    Example:
        >>> completed((3, -1), (2, 6))
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
