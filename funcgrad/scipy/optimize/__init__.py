"""The solvers of ``scipy.optimize``, with differentiable solutions.

SciPy solves with plain values. The derivative of the solution follows from the equation that the solution satisfies, by
the implicit function theorem: with respect to ``args`` and the variables that the function closes over, to any order.

Example:
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import optimize
    >>> grad(lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 3.0))(8.0).round(9)
    np.float64(0.083333333)
"""

from typing import Any

from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize import elementwise, fitting, minima, programs, scalar, systems
from funcgrad.scipy.optimize.fitting import *
from funcgrad.scipy.optimize.minima import *
from funcgrad.scipy.optimize.programs import *
from funcgrad.scipy.optimize.scalar import *
from funcgrad.scipy.optimize.systems import *
from funcgrad.scipy.own_code import missing_name

__all__: list[str] = ["elementwise"]
__all__ += fitting.__all__
__all__ += minima.__all__
__all__ += programs.__all__
__all__ += scalar.__all__
__all__ += systems.__all__


def __getattr__(name: str) -> Any:
    """Return SciPy's class of this name: classes of bounds, constraints and results need no derivatives."""
    if not name.startswith("_"):
        theirs = getattr(import_scipy("optimize", "scipy.optimize"), name, None)
        if isinstance(theirs, type):
            return theirs
    raise missing_name("optimize", name)
