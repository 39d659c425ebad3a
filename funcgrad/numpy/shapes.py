"""Sorting out shape arguments: what NumPy accepts in, full tuples of lengths out."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from funcgrad.typing import Shape

__all__ = ["as_shape", "completed"]


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
