"""Which numbers a program may compute as Python's floats, though the function has NumPy's: in a seventh of the time.

Both compute sums and products alike, to the last bit. Only NumPy warns where these overflow, or are no numbers. So a
number is Python's only where that would still be seen in a result: then the function is run as it stands, and warns.
"""

from __future__ import annotations

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Graph
from funcgrad.transforms.compiled.storage import is_ufunc

__all__ = ["ARITHMETIC", "plain_numbers"]

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "one_minus_square"))
#: What gives no number of what is none or infinite.
_SHOWING = ARITHMETIC | {"sin", "cos"}
_CONSTANTS = (float, int, np.float64)


def plain_numbers(graph: Graph) -> set[int]:
    """The values, floats of NumPy's in the function, that a program may have as Python's."""
    facts, numbers, double = graph.facts, graph.numbers, np.float64
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
        shows, keeps = name in _SHOWING and v in shown, not (v in plain if computed else len(item.args) == 1)
        for a in item.args:
            if not (numbers[a] if type(a) is int else type(a.value) in _CONSTANTS):
                shows, keeps = False, True
        keeps = keeps or not (computed or is_ufunc(item))
        for a in item.args:
            if type(a) is int:
                used.add(a)
                if shows:
                    shown.add(a)
                if keeps:
                    kept.add(a)
    plain.update([i for i in range(graph.inputs) if facts[i].kind is double and i in used and i not in kept])
    return plain
