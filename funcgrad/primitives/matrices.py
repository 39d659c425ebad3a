"""Products of matrices of doubles, the commonest, with less ado; and products that share a matrix with many others.

Each product with the weights of a recurrent network, say, would make an array of the size of the weights for its
cotangent, and add it to what the others made. Instead the factors of each wait until all are there, and are multiplied
at once: one product of long matrices for a hundred of short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import core
from funcgrad.kinds.linear import summed
from funcgrad.kinds.rules import pull_of
from funcgrad.reverse import Node, ReverseTracer, tracer_of
from funcgrad.typing import Array

__all__ = ["gathered", "gathered_rows", "is_shared", "recorder"]

ndarray = np.ndarray
_DOUBLE = np.dtype(np.float64)
#: A matrix that was recorded so many records before a product is one that other products have too.
_LONG = 64
#: So many rows may wait for each product. What waits is no more than the tape held of it.
_FEW = 32


def is_shared(weight: int, node: Node, ct: ndarray) -> bool:
    """Whether the cotangent of a matrix, a factor in a product of few rows, is to be gathered.

    Args:
        weight: the number of the matrix's record.
        node: the product's record.
        ct: its cotangent, of which each row stands for one product.
    """
    return weight - node[0] > _LONG and len(ct) <= _FEW


def gathered(left: ndarray, right: ndarray) -> tuple[Any, ...]:
    """The cotangent ``left.T @ right`` of matrices of as many rows, in time."""
    return _products, left, right


def gathered_rows(ct: ndarray) -> tuple[Any, ...]:
    """The sum of the rows of a matrix, in time."""
    return _sums, ct


def _products(parts: list[Any]) -> Any:
    pairs = [part for part in parts if type(part) is tuple]
    if len(pairs) == 1:
        ((_, left, right),) = pairs
    else:
        left, right = np.concatenate([p[1] for p in pairs]), np.concatenate([p[2] for p in pairs])
    total = left.T.dot(right)
    for part in parts:
        if type(part) is not tuple:
            total = part + total
    return total


def _sums(parts: list[Any]) -> Any:
    total = summed(np.concatenate([part[1] for part in parts if type(part) is tuple]), (0,))
    for part in parts:
        if type(part) is not tuple:
            total = part + total
    return total


def recorder(dx: Callable[..., Array], dy: Callable[..., Array]) -> Callable[[Any, Any], ReverseTracer | None]:
    """What records a product of which a matrix of doubles is differentiated, and gives None where there is more to see.

    Args:
        dx: the transpose ``dx(ct, y, shape)`` for the left factor, of cotangents that are no matrices.
        dy: the same for the right factor, ``dy(ct, x, shape)``.
    """

    def pull_left(ct: Any, node: Any) -> Any:
        y = node[5]
        return ct.dot(y.T) if type(ct) is ndarray and not core.kernel_runners else dx(ct, y, node[4])

    def pull_right(ct: Any, node: Any) -> Any:
        x = node[4]
        if type(ct) is not ndarray or core.kernel_runners:
            return dy(ct, x, node[5])
        return (_products, x, ct) if is_shared(node[2][0], node, ct) else x.T.dot(ct)

    def pull_both(ct: Any, node: Any) -> Any:
        x, y = node[4], node[5]
        if type(ct) is not ndarray or core.kernel_runners:
            return dx(ct, y, x.shape), dy(ct, x, y.shape)
        return ct.dot(y.T), (_products, x, ct) if is_shared(node[3][0], node, ct) else x.T.dot(ct)

    for pull in (pull_left, pull_right, pull_both):
        pull_of("matmul", pull)

    def recorded(x: Any, y: Any) -> ReverseTracer | None:
        left, right = type(x) is ReverseTracer, type(y) is ReverseTracer
        v, w = x.value if left else x, y.value if right else y
        if not (type(v) is ndarray and type(w) is ndarray and v.dtype is w.dtype is _DOUBLE and v.ndim == w.ndim == 2):
            return None
        try:
            ans = v.dot(w)
        except ValueError:  # shapes that do not fit: matmul says it in its own words
            return None
        if not left:
            return tracer_of(ans, y._trace, (next(y._trace.numbers), pull_right, y.node, None, v, w.shape))
        trace = x._trace
        if not right:
            return tracer_of(ans, trace, (next(trace.numbers), pull_left, x.node, None, v.shape, w))
        if y._trace is not trace:
            return None
        return tracer_of(ans, trace, (next(trace.numbers), pull_both, x.node, y.node, v, w))

    return recorded
