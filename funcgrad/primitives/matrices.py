"""Products that share a matrix with many others.

Each product with the weights of a recurrent network, say, would make an array of the size of the weights for its
cotangent, and add it to what the others made. Instead the factors of many wait and are multiplied at once: one product
of long matrices for dozens of short ones.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from funcgrad.kinds.linear import sum_over, summed
from funcgrad.reverse import SparseCotangent

__all__ = ["ProductCotangent", "RowsCotangent", "can_wait"]

ndarray = np.ndarray
#: So many rows may wait for each product, where the matrix has several times as many.
_FEW, _TIMES = 32, 8
#: So many products are worth putting together.
_MANY = 8


def can_wait(ct: ndarray, other: ndarray) -> bool:
    """Whether a product is of so few rows that they take less memory than what it adds to the matrix's cotangent.

    Whatever else is done with the matrix does not count, so that what is computed again adds up in the same order.
    """
    rows = len(ct)
    return rows == 1 or (rows <= _FEW and rows * _TIMES <= other.shape[1])


class ProductCotangent(SparseCotangent):
    """The cotangent ``left.T @ right`` of two matrices of as many rows."""

    __slots__ = ()
    most = 64

    @staticmethod
    def put_together(entries: list[Any]) -> Any:
        """The sum of all products; of many at once."""
        waiting = [entry for entry in entries if type(entry) is ProductCotangent]
        if len(entries) < _MANY:
            return reduce(add, [_dot(e[0].T, e[1]) if type(e) is ProductCotangent else e for e in entries])
        left, right = np.concatenate([e[0] for e in waiting]), np.concatenate([e[1] for e in waiting])
        return reduce(add, [_dot(left.T, right), *[e for e in entries if type(e) is not ProductCotangent]])


class RowsCotangent(SparseCotangent):
    """The cotangent that is the sum of the rows of a matrix."""

    __slots__ = ()
    most = 64

    @staticmethod
    def put_together(entries: list[Any]) -> Any:
        """The sum of all rows; of many at once."""
        if len(entries) < _MANY:
            return reduce(add, [_row(e[0]) if type(e) is RowsCotangent else e for e in entries])
        rows = np.concatenate([e[0] for e in entries if type(e) is RowsCotangent])
        return reduce(add, [np.add.reduce(rows, 0), *[e for e in entries if type(e) is not RowsCotangent]])


def _row(ct: ndarray) -> Any:
    if len(ct) == 1:
        return ct[0]
    return summed(ct, (0,)) if type(ct) is ndarray else sum_over(ct, axis=(0,))


def _dot(left: Any, right: Any) -> Any:
    return left.dot(right) if type(left) is type(right) is ndarray else left @ right
