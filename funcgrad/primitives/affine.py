"""The product with a matrix plus a bias, in one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import blocks
from funcgrad.blocks import here
from funcgrad.graph import stands_for_array
from funcgrad.kinds.linear import summed, unbroadcast
from funcgrad.kinds.rules import pull_of
from funcgrad.primitives.matrices import can_wait, gathered, gathered_rows
from funcgrad.primitives.products import swapped, times
from funcgrad.records import reading
from funcgrad.reverse import ReverseTracer, tracer_of

__all__ = ["biased_product"]

ndarray = np.ndarray
_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
Rule = Callable[..., Any]

#: The cotangents of ``x``, ``y`` and ``z`` in ``x @ y + z``, of which ``x``, ``y`` and the shape of ``z`` are saved.
_GENERAL: tuple[Rule, ...] = (
    lambda ct, x, y, shape: times(ct, swapped(y)),
    lambda ct, x, y, shape: times(swapped(x), ct),
    lambda ct, x, y, shape: unbroadcast(ct, shape),
)
#: The same of ndarrays, and of such as can wait.
_PLAIN: tuple[Rule, ...] = (
    lambda ct, x, y, shape: ct.dot(y.T),
    lambda ct, x, y, shape: x.T.dot(ct),
    lambda ct, x, y, shape: summed(ct, (0,)),
)
_WAITING: tuple[Rule, ...] = (
    _PLAIN[0],
    lambda ct, x, y, shape: gathered(x, ct),
    lambda ct, x, y, shape: gathered_rows(ct),
)


def _pull(traced: tuple[bool, ...]) -> Rule:
    """The pull of a record whose parents are these of the three arguments."""
    general, plain, waiting = [_joined(rules, traced) for rules in (_GENERAL, _PLAIN, _WAITING)]

    def rule(ct: Any, x: Any, y: Any, shape: Any) -> Any:
        if type(ct) is not ndarray or (blocks.runners and here()):
            waits = x is not None and stands_for_array(ct) and can_wait(ct, x)
            return (waiting if waits else general)(ct, x, y, shape)
        return (waiting if x is not None and can_wait(ct, x) else plain)(ct, x, y, shape)

    return pull_of("linear", reading(rule))


def _joined(rules: tuple[Rule, ...], traced: tuple[bool, ...]) -> Rule:
    wanted = [rule for rule, needed in zip(rules, traced, strict=True) if needed]
    first, last = wanted[0], wanted[-1]
    if len(wanted) == 1:
        return first
    if len(wanted) == 2:
        return lambda ct, x, y, shape: (first(ct, x, y, shape), last(ct, x, y, shape))
    return lambda ct, x, y, shape: [rule(ct, x, y, shape) for rule in wanted]


#: By which of the three are differentiated: 1 for the first, 2 for the second, 4 for the third, added.
_PULLS = [_GENERAL[0], *[_pull((bool(i & 1), bool(i & 2), bool(i & 4))) for i in range(1, 8)]]


def biased_product(x: Any, y: Any, z: Any) -> Any:
    """``x @ y + z`` of two matrices and a vector, of one dtype, plain or of one run of reverse mode; else None.

    All else is for who asks to compute as a product and a sum: forward mode, batches, runs in runs, other shapes.
    """
    if (blocks.entered and here()) or (blocks.runners and here()):
        return None
    a, b, d = type(x) is ReverseTracer, type(y) is ReverseTracer, type(z) is ReverseTracer
    v, w, c = x.value if a else x, y.value if b else y, z.value if d else z
    if not (type(v) is ndarray and type(w) is ndarray and type(c) is ndarray and v.ndim == w.ndim == 2):
        standing = stands_for_array(v) and stands_for_array(w) and stands_for_array(c)
        if not standing or not (a or b or d) or not v.ndim == w.ndim == 2:
            return None
    dtype, wide = v.dtype, c.shape
    if not (dtype is w.dtype is c.dtype and (dtype is _DOUBLE or dtype is _SINGLE)) or len(wide) != 1:
        return None
    trace = (x if a else y if b else z)._trace if a or b or d else None
    if (b and y._trace is not trace) or (d and z._trace is not trace):
        return None
    try:
        ans = v.dot(w) if type(v) is type(w) is ndarray else v @ w
    except ValueError:  # shapes that do not fit: matmul says it in its own words
        return None
    if ans.shape[1] != wide[0]:
        return None
    ans = ans + c if type(ans) is not ndarray or type(c) is not ndarray else ans.__iadd__(c)
    if trace is None:
        return ans
    parents: Any
    if not a:
        parents = (y.node, z.node if d else None) if b else (z.node, None)
    elif b and d:
        parents = None, (x.node, y.node, z.node)
    else:
        parents = x.node, y.node if b else z.node if d else None
    pull, (first, second) = _PULLS[a + 2 * b + 4 * d], parents  # read before the number is taken
    node = (next(trace.numbers), pull, first, second, v if b else None, w if a else None, wide)
    return tracer_of(ans, trace, node)
