"""Coefficients of series: as arrays of one dtype, trimmed, lengthened."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.polynomials import coefficients, holds
from funcgrad.numpy.reducing import as_floating, converted
from funcgrad.numpy.shaping import result_type
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import less_equal
from funcgrad.typing import Array, ArrayLike

__all__ = ["as_count", "as_series", "as_wide", "lengthened", "trimmed"]


def trimmed(c: Array, tolerance: float = 0.0) -> Array:
    """``c`` without the last coefficients that are known to be at most ``tolerance``; one of them always stays."""
    n = kept = backend.shape_of(c)[0]
    while kept > 1 and holds(less_equal(absolute(getitem(c, kept - 1)), tolerance)):
        kept -= 1
    return c if kept == n else getitem(c, slice(0, kept))


def as_series(*arrays: ArrayLike) -> list[Array]:
    """Coefficients of one series each, all in one floating dtype.

    Raises:
        ValueError: no coefficient, or more than one axis.
    """
    found = [as_floating(coefficients(a)) for a in arrays]
    for a in found:
        if 0 in backend.shape_of(a):
            raise ValueError("Coefficient array is empty")
        if len(backend.shape_of(a)) != 1:
            raise ValueError("Coefficient array is not 1-d")
    to = result_type(*found)
    return [converted(a, to) for a in found]


def lengthened(c: Array, n: int) -> Array:
    """``c`` with zeros behind, ``n`` terms in all."""
    missing = n - backend.shape_of(c)[0]
    return concatenate([c, np.zeros(missing, backend.dtype_of(c))]) if missing else c


def as_count(value: Any, what: str) -> int:
    """A number of derivatives, integrals or terms.

    Raises:
        TypeError: not an integer.
        ValueError: negative.
    """
    try:
        count = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{what} must be an integer, received {value}") from error
    if count < 0:
        raise ValueError(f"{what} must be non-negative")
    return count


def as_wide(c: Array) -> Array:
    """``c`` in double precision where it is NumPy's: so NumPy returns what it computes with the numbers 0 and 1."""
    return converted(c, np.result_type(backend.dtype_of(c), np.float64)) if backend.library_of(c) is np else c
