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
_SHOWING = ARITHMETIC | {"sin", "cos", "absolute"}
_COMPARING = frozenset(("greater", "less", "greater_equal", "less_equal", "equal", "not_equal"))


def plain_numbers(graph: Graph) -> tuple[set[int], dict[int, list[int]]]:
    """The values, floats of NumPy's in the function, that a program may have as Python's.

    With them come, by answers of comparisons that Python asked for, numbers that no result shows: there the program
    looks whether they are numbers.
    """
    facts, numbers, double = graph.facts, graph.numbers, np.float64
    known = [0] * len(graph.shapes)
    for v in graph.outputs:
        if type(v) is int:
            known[v] = _TAKEN | _SHOWN
    plain: set[int] = set()
    looks: dict[int, list[int]] = {}
    for item in reversed(graph.items):  # whatever uses a value comes before it
        if type(item) is Ask:
            known[item.value] |= _USED
            continue
        name, args, mine = item.name, item.args, known[item.outs[0]]
        of_numbers = True
        for a in args:
            of_numbers = of_numbers and (numbers[a] if type(a) is int else a.is_number)
        if name in _COMPARING and not mine & _TAKEN and of_numbers:
            looks[item.outs[0]] = [a for a in args if type(a) is int and not known[a] & _SHOWN]
            says = _TAKEN | _USED | _SHOWN  # whether Python's or NumPy's, the answer is the same
        elif facts[item.outs[0]].kind is not double or item.primitive.multiple:
            says = _TAKEN | _KEPT
        else:
            computed = name in ARITHMETIC
            is_plain = not mine & _KEPT and mine & (_SHOWN if computed else _USED)
            if is_plain:
                plain.add(item.outs[0])
            says = _TAKEN | _USED | (_SHOWN if of_numbers and mine & _SHOWN and name in _SHOWING else 0)
            if not (of_numbers and (is_plain if computed else len(args) == 1 and is_ufunc(item))):
                says |= _KEPT
        for a in args:
            if type(a) is int:
                known[a] |= says
    inputs = range(graph.inputs)
    plain.update([i for i in inputs if facts[i].kind is double and known[i] & _USED and not known[i] & _KEPT])
    return plain, {v: [a for a in values if a in plain] for v, values in looks.items()}


#: What is known of a value: something takes it, and not only asks; something computes with it; a result shows where it
#: is no number; something takes it that wants NumPy's.
_TAKEN, _USED, _SHOWN, _KEPT = 1, 2, 4, 8
