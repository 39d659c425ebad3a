"""Python's functions of numbers, and which of them give the bits of NumPy's: those take a quarter of the time.

Both ask the C library, unless NumPy was built with functions of its own for a processor. No table says for which: it is
tried, once in a process and for each function that a program needs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["MATH", "has_same_bits"]

MATH: dict[str, Any] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "exp": math.exp, "log": math.log,
    "sqrt": math.sqrt, "sinh": math.sinh, "cosh": math.cosh, "arctan": math.atan, "log1p": math.log1p,
    "expm1": math.expm1, "arcsin": math.asin, "arccos": math.acos, "arctan2": math.atan2, "hypot": math.hypot,
}  # fmt: skip
#: Numbers that are tried: other functions, however good, differ from the C library's at more than one in a thousand.
_TRIED = 1 << 14
_EXTREMES = (0.0, -0.0, 5e-324, 1e-308, 0.5, 1.0, math.pi, 1e5, 1e22, 1.7e308)


@functools.cache
def has_same_bits(name: str) -> bool:
    """Whether Python's function of one number gives the bits of NumPy's.

    Where it raises an error NumPy warns: a program is left there, and the function itself is run.

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
