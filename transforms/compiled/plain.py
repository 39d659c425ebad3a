"""Which numbers a program may compute as Python's floats, though the function has NumPy's: in a seventh of the time.

Both compute sums and products alike, to the last bit. Only NumPy warns where these overflow, or are no numbers. So a
number is Python's only where that would still be seen in a result: then the function is run as it stands, and warns.
"""

from __future__ import annotations

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Const, Graph
from funcgrad.transforms.compiled.storage import is_ufunc

__all__ = ["ARITHMETIC", "plain_numbers"]

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "one_minus_square"))
#: What gives no number of what is none or infinite.
_SHOWING = ARITHMETIC | {"sin", "cos", "absolute"}
_CONSTANTS = (float, int, np.float64)
_COMPARING = frozenset(("greater", "less", "greater_equal", "less_equal", "equal", "not_equal"))


def plain_numbers(graph: Graph) -> tuple[set[int], dict[int, list[int]]]:
    """The values, floats of NumPy's in the function, that a program may have as Python's.

    With them come, by answers of comparisons that Python asked for, numbers that no result shows: there the program
    looks whether they are numbers.
    """
    facts, numbers, double = graph.facts, graph.numbers, np.float64
    shown = {v for v in graph.outputs if type(v) is int}
    plain: set[int] = set()
    used: set[int] = set()
    kept: set[int] = set()  # what something takes that wants NumPy's
    taken = set(shown)  # what is more than asked for
    looks: dict[int, list[int]] = {}
    for item in reversed(graph.items):  # whatever uses a value comes before it
        if type(item) is Ask:
            used.add(item.value)
            continue
        v, name = item.outs[0], item.name
        computed = name in ARITHMETIC
        values = [a for a in item.args if type(a) is int]
        taken.update(values)
        if name in _COMPARING and v not in taken and all(numbers[a] for a in values):
            used.update(values)  # whether Python's or NumPy's, the answer is the same
            looks[v] = [a for a in values if a not in shown]
            shown.update(values)
            continue
        if facts[v].kind is not double or item.primitive.multiple:
            kept.update(values)
            continue
        if v not in kept and v in (shown if computed else used):
            plain.add(v)
        shows, keeps = name in _SHOWING and v in shown, not (v in plain if computed else len(item.args) == 1)
        for a in item.args:
            if not (numbers[a] if type(a) is int else _is_number(a)):
                shows, keeps = False, True
        keeps = keeps or not (computed or is_ufunc(item))
        used.update(values)
        if shows:
            shown.update(values)
        if keeps:
            kept.update(values)
    plain.update([i for i in range(graph.inputs) if facts[i].kind is double and i in used and i not in kept])
    return plain, {v: [a for a in values if a in plain] for v, values in looks.items()}


def _is_number(c: Const) -> bool:
    """Whether a constant is a number, or a double in an array without axes."""
    if type(c.value) is np.ndarray:
        return not c.live and not c.shape and c.dtype == np.float64
    return type(c.value) in _CONSTANTS
