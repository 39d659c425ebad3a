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

from funcgrad.transforms.compiled.graphs import Graph
from funcgrad.transforms.compiled.storage import is_ufunc

ARITHMETIC = frozenset(("add", "subtract", "multiply", "negative", "one_minus_square"))
#: Operations whose result is infinite or NaN if an operand is.
_PROPAGATING = ARITHMETIC | {"sin", "cos", "absolute"}
_COMPARISONS = frozenset(("greater", "less", "greater_equal", "less_equal", "equal", "not_equal", "isfinite"))


def python_float_values(graph: Graph) -> tuple[set[int], dict[int, list[int]]]:
    """Return the values, NumPy floats in the function, that a program may compute as Python floats.

    The second result has, for comparisons that Python asked about, the operands that no result shows. There the program
    checks that these operands are finite.
    """
    facts, double = graph.facts, np.float64
    flags = [0] * len(graph.shapes)
    for v in graph.outputs:
        if type(v) is int:
            flags[v] = _CONSUMED | _SHOWN
    plain: set[int] = set()
    finite_checks: dict[int, list[int]] = {}
    for op in reversed(graph.ops):  # all users of a value come before it
        name, args = op.name, op.args
        if not op.outs:
            flags[args[0]] |= _COMPUTED
            continue
        v = op.outs[0]
        own_flags = flags[v]
        all_numbers = True
        for a in args:
            all_numbers = all_numbers and (facts[a] if type(a) is int else a).is_number
        if name in _COMPARISONS and not own_flags & _CONSUMED and all_numbers:
            finite_checks[v] = [a for a in args if type(a) is int and not flags[a] & _SHOWN]
            passed = _CONSUMED | _COMPUTED | _SHOWN  # the answer is the same for Python's and NumPy's numbers
        elif facts[v].kind is not double or op.primitive.multiple:
            passed = _CONSUMED | _AS_NUMPY
        else:
            computed = name in ARITHMETIC
            is_plain = not own_flags & _AS_NUMPY and own_flags & (_SHOWN if computed else _COMPUTED)
            if is_plain:
                plain.add(v)
            shows = all_numbers and own_flags & _SHOWN and name in _PROPAGATING
            passed = _CONSUMED | _COMPUTED | (_SHOWN if shows else 0)
            if not (all_numbers and (is_plain if computed else len(args) == 1 and is_ufunc(op))):
                passed |= _AS_NUMPY
        for a in args:
            if type(a) is int:
                flags[a] |= passed
    inputs = range(graph.inputs)
    plain.update([i for i in inputs if facts[i].kind is double and flags[i] & _COMPUTED and not flags[i] & _AS_NUMPY])
    return plain, {v: [a for a in values if a in plain] for v, values in finite_checks.items()}


#: Flags of a value: it is taken, and not only by a question; it is used in a computation; a result shows whether it is
#: finite; something needs it as a NumPy number.
_CONSUMED, _COMPUTED, _SHOWN, _AS_NUMPY = 1, 2, 4, 8


MATH: dict[str, Any] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "exp": math.exp, "log": math.log,
    "sqrt": math.sqrt, "sinh": math.sinh, "cosh": math.cosh, "arctan": math.atan, "log1p": math.log1p,
    "expm1": math.expm1, "arcsin": math.asin, "arccos": math.acos, "arctan2": math.atan2, "hypot": math.hypot,
}  # fmt: skip
#: Number of trials. Other implementations, however good, differ from the C library's in more than one of a thousand.
_TRIALS = 1 << 14
_EXTREMES = (0.0, -0.0, 5e-324, 1e-308, 0.5, 1.0, math.pi, 1e5, 1e22, 1.7e308)


@functools.cache
def has_same_bits(name: str) -> bool:
    """Whether Python's function of one number gives the bits of NumPy's.

    Where Python's function raises an error, NumPy's warns: the program stops there, and the function itself is run.

    Example:
        >>> has_same_bits("sqrt")  # which all round correctly
        True
    """
    python_function: Callable[..., float] = MATH[name]
    numpy_function: np.ufunc = getattr(np, name)
    if numpy_function.nin != 1:
        return False
    rng = np.random.default_rng(22)
    tried = rng.normal(size=_TRIALS) * 10.0 ** rng.uniform(-6, 3, _TRIALS)
    tried[: _TRIALS // 4] = rng.uniform(-1, 1, _TRIALS // 4)
    points = np.concatenate([tried, _EXTREMES, [-x for x in _EXTREMES]])
    with np.errstate(all="ignore"):
        points = points[np.isfinite(numpy_function(points))]
        expected = numpy_function(points)
    try:
        found = np.array(list(map(python_function, points.tolist())))
    except (ValueError, OverflowError):
        return False
    return bool(found.tobytes() == expected.tobytes())
