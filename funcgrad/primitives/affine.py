"""The product with a matrix plus a bias, in one record."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from funcgrad import core
from funcgrad.kinds.linear import summed, unbroadcast
from funcgrad.kinds.rules import pull_of
from funcgrad.primitives.products import are_matrices, swapped, times
from funcgrad.reverse import ReverseTracer, tracer_of

__all__ = ["biased_product"]

ndarray = np.ndarray
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
Pull = Callable[[Any, Any], Any]


def _to_rows(ct: Any, node: Any) -> Any:
    y = node[5]
    return ct.dot(y.T) if are_matrices(ct, y) else times(ct, swapped(y))


def _to_matrix(ct: Any, node: Any) -> Any:
    x = node[4]
    return x.T.dot(ct) if are_matrices(x, ct) else times(swapped(x), ct)


def _to_bias(ct: Any, node: Any) -> Any:
    return summed(ct, (0,)) if type(ct) is ndarray and len(ct) > 1 else unbroadcast(ct, node[6])


#: The cotangents of ``x``, ``y`` and ``z`` in ``x @ y + z``; ``node[4:]`` are ``x``, ``y`` and the shape of ``z``.
_COTANGENTS: tuple[Pull, ...] = (_to_rows, _to_matrix, _to_bias)


def _pull(traced: tuple[int, ...]) -> Pull:
    """The pull of a record whose parents are the arguments at these positions."""
    rules = [_COTANGENTS[i] for i in traced]
    first, last = rules[0], rules[-1]
    if len(rules) == 1:
        return pull_of("linear", lambda ct, node: first(ct, node))
    if len(rules) == 2:
        return pull_of("linear", lambda ct, node: (first(ct, node), last(ct, node)))
    return pull_of("linear", lambda ct, node: [rule(ct, node) for rule in rules])


_PULLS = {traced: _pull(traced) for n in (1, 2, 3) for traced in combinations(range(3), n)}


def biased_product(x: Any, y: Any, z: Any) -> Any:
    """``x @ y + z`` of two matrices and a vector, of one dtype, plain or of one run of reverse mode; else None.

    All else is for who asks to compute as a product and a sum: forward mode, batches, runs in runs, other shapes.
    """
    if core.no_grad_blocks or core.kernel_runners:
        return None
    trace: Any = None
    values, parents, traced = [], [], []
    for position, a in enumerate((x, y, z)):
        if type(a) is ReverseTracer:
            if trace is None:
                trace = a._trace
            elif trace is not a._trace:
                return None
            parents.append(a.node)
            traced.append(position)
            a = a.value
        if type(a) is not ndarray:
            return None
        values.append(a)
    v, w, c = values
    if not (v.dtype is w.dtype is c.dtype and v.dtype in _DTYPES and v.ndim == w.ndim == 2):
        return None
    if v.shape[1] != w.shape[0] or c.shape != w.shape[1:]:
        return None
    ans = v.dot(w)
    ans += c
    if trace is None:
        return ans
    positions = tuple(traced)
    first, second = parents[0], None
    if len(parents) == 2:
        second = parents[1]
    elif len(parents) == 3:
        first, second = None, tuple(parents)
    kept = v if 1 in positions else None, w if 0 in positions else None, c.shape
    return tracer_of(ans, trace, (next(trace.numbers), _PULLS[positions], first, second, *kept))
