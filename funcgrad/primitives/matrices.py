"""Products of matrices of doubles, the commonest, with less ado; and products that share a matrix with many others.

Each product with the weights of a recurrent network, say, would make an array of the size of the weights for its
cotangent, and add it to what the others made. Instead the factors of many wait and are multiplied at once: one product
of long matrices for dozens of short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np

from funcgrad import blocks
from funcgrad.blocks import here
from funcgrad.graph import stands_for_array
from funcgrad.kinds.linear import sum_over, summed
from funcgrad.kinds.rules import Rule, pull_of
from funcgrad.records import reading
from funcgrad.reverse import ReverseTracer, collecting, tracer_of
from funcgrad.typing import Shape

__all__ = ["can_wait", "gathered", "gathered_rows", "in_time", "recorder"]

ndarray = np.ndarray
Way: TypeAlias = Callable[[ndarray, ndarray], Any]
_DOUBLE = np.dtype(np.float64)
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


def gathered(left: ndarray, right: ndarray) -> tuple[Any, ...]:
    """The cotangent ``left.T @ right`` of matrices of as many rows, in time."""
    return _products, left, right


def gathered_rows(ct: ndarray) -> tuple[Any, ...]:
    """The sum of the rows of a matrix, in time."""
    return _sums, ct


@collecting(most=64)
def _products(parts: list[Any]) -> Any:
    if len(parts) < _MANY:
        return reduce(add, [_dot(part[1].T, part[2]) if type(part) is tuple else part for part in parts])
    waiting = [part for part in parts if type(part) is tuple]
    left, right = np.concatenate([part[1] for part in waiting]), np.concatenate([part[2] for part in waiting])
    return reduce(add, [_dot(left.T, right), *[part for part in parts if type(part) is not tuple]])


@collecting(most=64)
def _sums(parts: list[Any]) -> Any:
    if len(parts) < _MANY:
        return reduce(add, [_row(part[1]) if type(part) is tuple else part for part in parts])
    rows = np.concatenate([part[1] for part in parts if type(part) is tuple])
    return reduce(add, [np.add.reduce(rows, 0), *[part for part in parts if type(part) is not tuple]])


def _row(ct: ndarray) -> Any:
    if len(ct) == 1:
        return ct[0]
    return summed(ct, (0,)) if type(ct) is ndarray else sum_over(ct, axis=(0,))


def _dot(left: Any, right: Any) -> Any:
    return left.dot(right) if type(left) is type(right) is ndarray else left @ right


def _left_of_matrices(ct: ndarray, y: ndarray) -> Any:
    return ct.dot(y.T)


def _right_of_matrices(ct: ndarray, x: ndarray) -> Any:
    return (_products, x, ct) if can_wait(ct, x) else x.T.dot(ct)


#: By the numbers of axes of two factors: the cotangent of the left one, of ``ct`` and ``y``, and of the right one, of
#: ``ct`` and ``x``.
_WAYS: dict[tuple[int, int], tuple[Way, Way]] = {
    (2, 2): (_left_of_matrices, _right_of_matrices),
    (1, 2): (lambda ct, y: y.dot(ct), lambda ct, x: (_products, x[None], ct[None])),
    (2, 1): (lambda ct, y: (_products, ct[None], y[None]), lambda ct, x: x.T.dot(ct)),
}
#: The same of values on a graph that must give the same bits, see ``graph.stands_for_array``.
_CAPTURED: dict[tuple[int, int], tuple[Way, Way]] = {
    (2, 2): (lambda ct, y: ct @ y.T, lambda ct, x: (_products, x, ct) if can_wait(ct, x) else x.T @ ct),
    (1, 2): (lambda ct, y: y @ ct, lambda ct, x: (_products, x[None], ct[None])),
    (2, 1): (lambda ct, y: (_products, ct[None], y[None]), lambda ct, x: x.T @ ct),
}


def _pulls(dx: Rule, dy: Rule, to_left: Way, to_right: Way) -> tuple[Rule, Rule, Rule]:
    """The pulls of a product of which the left factor is differentiated, the right one, both."""

    def of_left(ct: Any, shape: Any, y: Any) -> Any:
        plain = type(ct) is ndarray and not (blocks.runners and here())
        return to_left(ct, y) if plain else dx(ct, y, shape)

    def of_right(ct: Any, x: Any, shape: Any) -> Any:
        plain = type(ct) is ndarray and not (blocks.runners and here())
        return to_right(ct, x) if plain else dy(ct, x, shape)

    def of_both(ct: Any, x: Any, y: Any) -> Any:
        if type(ct) is ndarray and not (blocks.runners and here()):
            return to_left(ct, y), to_right(ct, x)
        return dx(ct, y, x.shape), dy(ct, x, y.shape)

    left, right, both = [pull_of("matmul", reading(rule)) for rule in (of_left, of_right, of_both)]
    return left, right, both


def in_time(dx: Rule, dy: Rule) -> tuple[Rule, Rule]:
    """Transposes ``dx(ct, y, shape)`` and ``dy(ct, x, shape)`` that may give a part where the recorder's pulls do.

    So the sums are the same, to the last bit, where operations take the long way.
    """

    def to_left(ct: Any, y: Any, shape: Shape) -> Any:
        ways = _ways(ct, y, (len(shape), len(y.shape)))
        return dx(ct, y, shape) if ways is None else ways[0](ct, y)

    def to_right(ct: Any, x: Any, shape: Shape) -> Any:
        ways = _ways(ct, x, (len(x.shape), len(shape)))
        return dy(ct, x, shape) if ways is None else ways[1](ct, x)

    return to_left, to_right


def _ways(ct: Any, other: Any, ranks: tuple[int, int]) -> tuple[Way, Way] | None:
    if ct.dtype is not _DOUBLE or other.dtype is not _DOUBLE or (blocks.runners and here()):
        return None
    if type(ct) is type(other) is ndarray:
        return _WAYS.get(ranks)
    return _CAPTURED.get(ranks) if stands_for_array(ct) and stands_for_array(other) else None


def recorder(dx: Rule, dy: Rule) -> Callable[[Any, Any], ReverseTracer | None]:
    """What records a product of a matrix of doubles and another or a vector; it gives None where there is more to see.

    Args:
        dx: the transpose ``dx(ct, y, shape)`` for the left factor, of cotangents that are no ndarrays.
        dy: the same for the right factor, ``dy(ct, x, shape)``.
    """
    pulls = {ranks: _pulls(dx, dy, *ways) for ranks, ways in _WAYS.items()}
    of_matrices = pulls[2, 2]

    def recorded(x: Any, y: Any) -> ReverseTracer | None:
        left, right = type(x) is ReverseTracer, type(y) is ReverseTracer
        v, w = x.value if left else x, y.value if right else y
        if not (type(v) is ndarray and type(w) is ndarray and v.dtype is w.dtype is _DOUBLE) or not (left or right):
            return None
        found = of_matrices if v.ndim == w.ndim == 2 else pulls.get((v.ndim, w.ndim))
        if found is None or (left and right and x._trace is not y._trace):
            return None
        try:
            ans = v.dot(w)
        except ValueError:  # shapes that do not fit: matmul says it in its own words
            return None
        pull_left, pull_right, pull_both = found
        if not left:
            trace, other = y._trace, y.node
            return tracer_of(ans, trace, (next(trace.numbers), pull_right, other, None, v, w.shape))
        trace, parent = x._trace, x.node
        if not right:
            return tracer_of(ans, trace, (next(trace.numbers), pull_left, parent, None, v.shape, w))
        other = y.node
        return tracer_of(ans, trace, (next(trace.numbers), pull_both, parent, other, v, w))

    return recorded
