"""Cotangents of matrices that are factors of many products.

For example, each product with the weights of a recurrent network would make an array of the size of the weights for its
cotangent, and add it to those of the other products. Instead, the factors of many products wait and are multiplied
at once: one product of long matrices replaces dozens of short ones.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from funcgrad.kinds.linear import fast_sum, sum_over
from funcgrad.reverse import SparseCotangent

ndarray = np.ndarray
#: Largest number of rows of a product that may wait, and how many columns per row the other factor must have.
_MAX_ROWS, _MIN_RATIO = 32, 8
#: Smallest number of entries that are combined into one product.
_MIN_ENTRIES = 8


def can_be_deferred(ct: ndarray, other: ndarray) -> bool:
    """Whether a product has so few rows that its factors take less memory than its term in the matrix's cotangent.

    Only shapes count, no other use of the matrix, so that recomputed operations add their terms in the same order.
    """
    rows = len(ct)
    return rows == 1 or (rows <= _MAX_ROWS and rows * _MIN_RATIO <= other.shape[1])


class ProductCotangent(SparseCotangent):
    """Cotangent ``left.T @ right`` of two matrices with the same number of rows."""

    __slots__ = ()
    max_pending = 64

    @staticmethod
    def sum_of(entries: list[Any]) -> Any:
        """Return the sum of all entries; many products are computed as one."""
        products = [entry for entry in entries if type(entry) is ProductCotangent]
        if len(entries) < _MIN_ENTRIES:
            return reduce(add, [_dot(e[0].T, e[1]) if type(e) is ProductCotangent else e for e in entries])
        left, right = np.concatenate([e[0] for e in products]), np.concatenate([e[1] for e in products])
        return reduce(add, [_dot(left.T, right), *[e for e in entries if type(e) is not ProductCotangent]])


class RowsCotangent(SparseCotangent):
    """Cotangent that is the sum of the rows of a matrix."""

    __slots__ = ()
    max_pending = 64

    @staticmethod
    def sum_of(entries: list[Any]) -> Any:
        """Return the sum of all entries; many sums of rows are computed as one."""
        if len(entries) < _MIN_ENTRIES:
            return reduce(add, [_sum_of_rows(e[0]) if type(e) is RowsCotangent else e for e in entries])
        rows = np.concatenate([e[0] for e in entries if type(e) is RowsCotangent])
        return reduce(add, [np.add.reduce(rows, 0), *[e for e in entries if type(e) is not RowsCotangent]])


def _sum_of_rows(ct: ndarray) -> Any:
    if len(ct) == 1:
        return ct[0]
    return fast_sum(ct, (0,)) if type(ct) is ndarray else sum_over(ct, axis=(0,))


def _dot(left: Any, right: Any) -> Any:
    return left.dot(right) if type(left) is type(right) is ndarray else left @ right
