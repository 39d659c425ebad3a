"""Comparisons of traced values raise an error in SciPy's searches that are written in pure Python.

``brent``, ``golden``, ``newton`` and similar searches never request a plain number. They would run on tracers and give
the derivative of their steps, which is zero if a search only compares or begins at the solution. The correct result is
the derivative of the solution. After the error a transform runs the function again with funcgrad's searches, which
find the same solution.

This is the only place where the outcome depends on the calling code; values never do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.concretization import refuse_conversion

_SEARCH_MODULES = frozenset([f"scipy.optimize.{name}" for name in ("_chandrupatla", "_optimize", "_zeros_py")])


def guarded_comparison(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison operator that raises an error if called by the original code of such a search."""

    def compare(x: Tracer, y: Any) -> Any:
        names = sys._getframe(1).f_globals
        home = names.get("__name__")
        if home in _SEARCH_MODULES and vars(sys.modules[home]) is names:
            refuse_conversion(x, "a comparison in a search of scipy.optimize")
        return operation(x, y)

    return compare
