"""Colours for the columns of a sparse pattern: those of one colour have no row in common.

Then one product of the matrix with the sum of their unit vectors tells all of them apart: a Jacobian costs as many
products as there are colours (Curtis, Powell and Reid, On the estimation of sparse Jacobian matrices, 1974).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.optional import import_scipy

__all__ = ["colour_columns", "split_dense_rows"]


def colour_columns(pattern: Any, call: str = "jacobian", most: int | None = None) -> Any:
    """A colour for each column, greedily: in their order, and where that is not the best, the fullest first.

    Args:
        pattern: a sparse matrix; what is stored counts.
        call: the public call, for messages.
        most: to give up, and return None, where more colours are needed.

    Returns:
        Numbers from 0 on. Columns without entries have colour 0.

    Example:
        >>> import scipy.sparse
        >>> colour_columns(scipy.sparse.diags([1.0, 1.0, 1.0], [-1, 0, 1], (6, 6)))
        array([0, 1, 2, 0, 1, 2])
    """
    rows = import_scipy(call, "scipy.sparse").csr_matrix(pattern)
    least = int(np.diff(rows.indptr).max(initial=0))  # the columns of one row all differ
    if most is not None and least > most:
        return None
    columns = rows.tocsc()
    found = _greedy(columns, range(columns.shape[1]))
    if found.max(initial=-1) + 1 > least:
        fullest = np.argsort(-np.diff(columns.indptr), kind="stable")
        other = _greedy(columns, fullest.tolist())
        found = min(found, other, key=lambda colours: colours.max(initial=-1))
    return None if most is not None and found.max(initial=-1) >= most else found


def _greedy(columns: Any, order: Any) -> Any:
    """The first colour that no row of the column has yet; those that a row has are the bits of a number."""
    taken = [0] * columns.shape[0]
    indptr, indices = columns.indptr.tolist(), columns.indices.tolist()
    colours = np.zeros(columns.shape[1], int)
    for j in order:
        mine = indices[indptr[j] : indptr[j + 1]]
        used = 0
        for i in mine:
            used |= taken[i]
        free = ~used & (used + 1)
        colours[j] = free.bit_length() - 1
        for i in mine:
            taken[i] |= free
    return colours


def split_dense_rows(pattern: Any) -> tuple[Any, int]:
    """Which rows are better left to the other mode, and how many products at least are needed then.

    Each row set apart costs a product of its own; the others need as many as the fullest of them has entries.

    Returns:
        The numbers of the rows set apart, and the lower bound.
    """
    counts = np.diff(pattern.indptr)
    order = np.argsort(-counts, kind="stable")
    bounds = np.arange(len(counts) + 1) + np.append(counts[order], 0)
    apart = int(np.argmin(bounds))
    return np.sort(order[:apart]), int(bounds[apart])
