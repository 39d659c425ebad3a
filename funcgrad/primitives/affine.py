"""The product with a matrix plus a bias, in one record."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
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


def _pull(traced: tuple[bool, ...]) -> Pull:
    """The pull of a record whose parents are these of the three arguments."""
    rules = [rule for rule, wanted in zip(_COTANGENTS, traced, strict=True) if wanted]
    first, last = rules[0], rules[-1]
    if len(rules) == 1:
        return pull_of("linear", lambda ct, node: first(ct, node))
    if len(rules) == 2:
        return pull_of("linear", lambda ct, node: (first(ct, node), last(ct, node)))
    return pull_of("linear", lambda ct, node: [rule(ct, node) for rule in rules])


_PULLS = {traced: _pull(traced) for traced in product((False, True), repeat=3) if any(traced)}


def biased_product(x: Any, y: Any, z: Any) -> Any:
    """``x @ y + z`` of two matrices and a vector, of one dtype, plain or of one run of reverse mode; else None.

    All else is for who asks to compute as a product and a sum: forward mode, batches, runs in runs, other shapes.
    """
    if core.no_grad_blocks or core.kernel_runners:
        return None
    a, b, d = type(x) is ReverseTracer, type(y) is ReverseTracer, type(z) is ReverseTracer
    v, w, c = x.value if a else x, y.value if b else y, z.value if d else z
    if not (type(v) is ndarray and type(w) is ndarray and type(c) is ndarray and v.ndim == w.ndim == 2):
        return None
    if not (v.dtype is w.dtype is c.dtype and v.dtype in _DTYPES) or v.shape[1] != len(w) or c.shape != w.shape[1:]:
        return None
    trace = (x if a else y if b else z)._trace if a or b or d else None
    if (b and y._trace is not trace) or (d and z._trace is not trace):
        return None
    ans = v.dot(w)
    ans += c
    if trace is None:
        return ans
    if a:
        parents = (None, (x.node, y.node, z.node)) if b and d else (x.node, y.node if b else z.node if d else None)
    else:
        parents = (y.node if b else z.node, z.node if b and d else None)
    kept = v if b else None, w if a else None, c.shape
    return tracer_of(ans, trace, (next(trace.numbers), _PULLS[a, b, d], *parents, *kept))
