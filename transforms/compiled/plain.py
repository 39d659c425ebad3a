"""Which numbers a program may compute as Python's floats, though the function has NumPy's: in a seventh of the time.

Both compute sums and products alike, to the last bit. Only NumPy warns where these overflow, or are no numbers. So a
number is Python's only where that would still be seen in a result: then the function is run as it stands, and warns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Const, Graph, Op
from funcgrad.transforms.compiled.storage import is_ufunc

__all__ = ["ARITHMETIC", "plain_numbers"]

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "one_minus_square"))
#: What gives no number of what is none or infinite.
_SHOWING = ARITHMETIC | {"sin", "cos"}
_CONSTANTS = (float, int, np.float64)


def plain_numbers(graph: Graph) -> set[int]:
    """The values, floats of NumPy's in the function, that a program may have as Python's."""
    uses: dict[int, list[Any]] = {}
    for item in graph.items:
        for a in [item.value] if type(item) is Ask else item.args:
            if type(a) is int:
                uses.setdefault(a, []).append(item)
    outputs = {v for v in graph.outputs if type(v) is int}
    plain: set[int] = set()
    shown: set[int] = set()
    made = [(v, op) for op in graph.operations for v in op.outs]
    for v, op in [*reversed(made), *[(i, None) for i in range(graph.inputs)]]:
        if graph.facts[v].kind is not np.float64 or (op is not None and op.primitive.multiple):
            continue
        of_it = uses.get(v, [])
        if v in outputs or any(_shows(graph, use) and use.outs[0] in shown for use in of_it):
            shown.add(v)
        computed = op is not None and op.name in ARITHMETIC
        worth = v in shown if computed else bool(of_it)
        if worth and all(_takes(graph, use, plain) for use in of_it):
            plain.add(v)
    return plain


def _shows(graph: Graph, use: Any) -> bool:
    return type(use) is Op and use.name in _SHOWING and _of_numbers(graph, use)


def _takes(graph: Graph, use: Any, plain: set[int]) -> bool:
    """Whether it may be given a float of Python's."""
    if type(use) is Ask:
        return True
    if not _of_numbers(graph, use):
        return False
    return use.outs[0] in plain if use.name in ARITHMETIC else len(use.args) == 1 and is_ufunc(use)


def _of_numbers(graph: Graph, op: Op) -> bool:
    """Whether a float of NumPy's is made of numbers alone."""
    if graph.facts[op.outs[0]].kind is not np.float64:
        return False
    return all(type(a.value) in _CONSTANTS if type(a) is Const else graph.is_number(a) for a in op.args)
