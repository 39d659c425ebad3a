"""SciPy's searches that are Python throughout: they get no answer when they compare traced values.

``brent``, ``golden``, ``newton`` and the like never ask for a plain number, so they would run as they are written, and
give the derivative of their steps: zero where they only compare, or begin at the solution. What they find has that of
the solution. Where the comparison is refused, a transform runs the function once more with funcgrad's own searches,
which find the same.

This is the one place where an answer depends on the code that asks. No value depends on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.concretization import refuse

__all__ = ["compared"]

_HOMES = frozenset([f"scipy.optimize.{name}" for name in ("_chandrupatla", "_optimize", "_zeros_py")])


def compared(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The operator of a comparison, refused where the code of such a search asks that was not built anew."""

    def compare(x: Tracer, y: Any) -> Any:
        names = sys._getframe(1).f_globals
        home = names.get("__name__")
        if home in _HOMES and vars(sys.modules[home]) is names:
            refuse(x, "a comparison in a search of scipy.optimize")
        return operation(x, y)

    return compare
