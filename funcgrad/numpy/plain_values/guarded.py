"""Comparisons of traced values raise an error in code of NumPy and SciPy whose steps do not have the derivative.

Such code never requests a plain number, so it would run on traced values, and the result would have no derivative or a
wrong one. After the error a transform runs the function again with funcgrad's functions:

- ``brent``, ``golden``, ``newton`` and similar searches would give the derivative of their steps, which is zero if a
  search only compares or begins at the solution. The correct result is the derivative of the solution.
- Functions that treat some values of a parameter apart, such as ``numpy.linalg.norm`` of the order 2, compute without
  the parameter there, so the derivative in it would be 0; see ``numpy_code.kernels.numbers_apart``.

This is the only place where the outcome depends on the calling code; values never do.

Comparisons also tell the path of a call, if it is followed, see ``numpy_code.overwriting``: Python may branch on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import refuse_conversion
from funcgrad.shared_state import followed_paths, note_answer

#: Modules whose searches compare.
_SEARCHES = frozenset([f"scipy.optimize.{name}" for name in ("_chandrupatla", "_optimize", "_zeros_py")])
#: Modules with code that treats some numbers apart.
_NUMBERS_APART = frozenset(
    (
        *("numpy.linalg._linalg", "scipy.signal._filter_design", "scipy.signal._signaltools"),
        *("scipy.signal._ltisys", "scipy.linalg._misc", "scipy.spatial._kdtree", "scipy.spatial.transform._rotation"),
        "scipy.special._orthogonal",
        *("scipy.stats._distn_infrastructure", "scipy.stats._morestats", "scipy.stats._stats_py"),
    )
)
#: Modules with code that treats numbers near 0 apart, ``abs(lmbda) < eps``, and numbers in arrays, ``loc == 0``.
_APART_BY_SIZE, _APART_IN_ARRAYS = "scipy.stats._morestats", "scipy.stats._distn_infrastructure"


def _has_derivative(x: Any) -> bool:
    while isinstance(x, Tracer) and not x._trace.differentiates:
        x = x._val
    return isinstance(x, Tracer)


def check_question(x: Any, level: int) -> None:
    """Check ``numpy.any(x)`` in the code ``level`` calls above: ``scipy.signal.lsim`` leaves out an input of zeros.

    Raises:
        ConversionError: it is code that treats some numbers apart, and ``x`` has a derivative (a ``TypeError``).
    """
    names = sys._getframe(level).f_globals
    home = names.get("__name__")
    if home in _NUMBERS_APART and vars(sys.modules[home]) is names and _has_derivative(x) and x.dtype.kind in "fc":
        refuse_conversion(x, "a question in code that treats some numbers apart")


def guarded_comparison(operation: Callable[[Any, Any], Any], equality: bool = False) -> Callable[[Any, Any], Any]:
    """Return a comparison operator that raises an error if called by the original code of such a module.

    Args:
        operation: the operator.
        equality: whether it is ``==`` or ``!=``.
    """

    def compare(x: Tracer, y: Any) -> Any:
        names = sys._getframe(1).f_globals
        home = names.get("__name__")
        if (home in _SEARCHES or home in _NUMBERS_APART) and vars(sys.modules[home]) is names:
            if home in _SEARCHES:
                refuse_conversion(x, "a comparison in a search of scipy.optimize")
            asks = equality or home == _APART_BY_SIZE
            if asks and (not x.shape or home == _APART_IN_ARRAYS) and x.dtype.kind in "fc" and _has_derivative(x):
                refuse_conversion(x, "a comparison in code that treats some numbers apart")
        found = operation(x, y)
        if followed_paths:
            note_answer(found)
        return found

    return compare
