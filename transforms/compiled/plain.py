"""Choice of the NumPy floats of a function that its program computes as Python floats, in a seventh of the time.

Both compute sums and products with the same bits. But only NumPy warns of overflow and of invalid operations. So a
program uses a Python float only if a result would show that it is infinite or NaN: then the function is run itself.

Python's functions of numbers take a quarter of the time of NumPy's. Both call the C library, unless NumPy was built
with functions of its own for a processor. No table lists the functions for which this holds, so each function that a
program needs is tried once in a process.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Graph
from funcgrad.transforms.compiled.storage import is_ufunc

__all__ = ["ARITHMETIC", "MATH", "has_same_bits", "plain_numbers"]

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "one_minus_square"))
#: Operations whose result is infinite or NaN if an operand is.
_SHOWING = ARITHMETIC | {"sin", "cos", "absolute"}
_COMPARING = frozenset(("greater", "less", "greater_equal", "less_equal", "equal", "not_equal"))


def plain_numbers(graph: Graph) -> tuple[set[int], dict[int, list[int]]]:
    """Return the values, NumPy floats in the function, that a program may compute as Python floats.

    The second result has, for comparisons that Python asked about, the operands that no result shows. There the program
    checks that these operands are finite.
    """
    facts, numbers, double = graph.facts, graph.numbers, np.float64
    known = [0] * len(graph.shapes)
    for v in graph.outputs:
        if type(v) is int:
            known[v] = _TAKEN | _SHOWN
    plain: set[int] = set()
    looks: dict[int, list[int]] = {}
    for item in reversed(graph.items):  # all users of a value come before it
        if type(item) is Ask:
            known[item.value] |= _USED
            continue
        name, args, mine = item.name, item.args, known[item.outs[0]]
        of_numbers = True
        for a in args:
            of_numbers = of_numbers and (numbers[a] if type(a) is int else a.is_number)
        if name in _COMPARING and not mine & _TAKEN and of_numbers:
            looks[item.outs[0]] = [a for a in args if type(a) is int and not known[a] & _SHOWN]
            says = _TAKEN | _USED | _SHOWN  # the answer is the same for Python's and NumPy's numbers
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


#: Flags of a value: it is taken, and not only by a question; it is used in a computation; a result shows whether it is
#: finite; something needs it as a NumPy number.
_TAKEN, _USED, _SHOWN, _KEPT = 1, 2, 4, 8


MATH: dict[str, Any] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "exp": math.exp, "log": math.log,
    "sqrt": math.sqrt, "sinh": math.sinh, "cosh": math.cosh, "arctan": math.atan, "log1p": math.log1p,
    "expm1": math.expm1, "arcsin": math.asin, "arccos": math.acos, "arctan2": math.atan2, "hypot": math.hypot,
}  # fmt: skip
#: Number of trials. Other implementations, however good, differ from the C library's in more than one of a thousand.
_TRIED = 1 << 14
_EXTREMES = (0.0, -0.0, 5e-324, 1e-308, 0.5, 1.0, math.pi, 1e5, 1e22, 1.7e308)


@functools.cache
def has_same_bits(name: str) -> bool:
    """Whether Python's function of one number gives the bits of NumPy's.

    Where Python's function raises an error, NumPy's warns: the program stops there, and the function itself is run.

    Example:
        >>> has_same_bits("sqrt")  # which all round correctly
        True
    """
    ours: Callable[..., float] = MATH[name]
    theirs: np.ufunc = getattr(np, name)
    if theirs.nin != 1:
        return False
    rng = np.random.default_rng(22)
    tried = rng.normal(size=_TRIED) * 10.0 ** rng.uniform(-6, 3, _TRIED)
    tried[: _TRIED // 4] = rng.uniform(-1, 1, _TRIED // 4)
    points = np.concatenate([tried, _EXTREMES, [-x for x in _EXTREMES]])
    with np.errstate(all="ignore"):
        points = points[np.isfinite(theirs(points))]
        expected = theirs(points)
    try:
        found = np.array(list(map(ours, points.tolist())))
    except (ValueError, OverflowError):
        return False
    return bool(found.tobytes() == expected.tobytes())
