"""Which numbers a program may compute as Python's floats, though the function has NumPy's: in a seventh of the time.

Both compute sums and products alike, to the last bit. Only NumPy warns where these overflow, or are no numbers. So a
number is Python's only where that would still be seen in a result: then the function is run as it stands, and warns.
"""

from __future__ import annotations

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Graph, Op
from funcgrad.transforms.compiled.storage import is_ufunc

__all__ = ["ARITHMETIC", "plain_numbers"]

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "one_minus_square"))
#: What gives no number of what is none or infinite.
_SHOWING = ARITHMETIC | {"sin", "cos"}
_CONSTANTS = (float, int, np.float64)


def plain_numbers(graph: Graph) -> set[int]:
    """The values, floats of NumPy's in the function, that a program may have as Python's."""
    facts, double = graph.facts, np.float64
    shown = {v for v in graph.outputs if type(v) is int}
    plain: set[int] = set()
    used: set[int] = set()
    kept: set[int] = set()  # what something takes that wants NumPy's
    for item in reversed(graph.items):  # whatever uses a value comes before it
        if type(item) is Ask:
            used.add(item.value)
            continue
        v, name = item.outs[0], item.name
        computed = name in ARITHMETIC
        if facts[v].kind is not double or item.primitive.multiple:
            kept.update([a for a in item.args if type(a) is int])
            continue
        if v not in kept and v in (shown if computed else used):
            plain.add(v)
        values = [a for a in item.args if type(a) is int]
        used.update(values)
        if not _of_numbers(graph, item):
            kept.update(values)
            continue
        if name in _SHOWING and v in shown:
            shown.update(values)
        if not (v in plain if computed else len(item.args) == 1 and is_ufunc(item)):
            kept.update(values)
    plain.update([i for i in range(graph.inputs) if facts[i].kind is double and i in used and i not in kept])
    return plain


def _of_numbers(graph: Graph, op: Op) -> bool:
    """Whether it is made of numbers alone."""
    return all(graph.is_number(a) if type(a) is int else type(a.value) in _CONSTANTS for a in op.args)
