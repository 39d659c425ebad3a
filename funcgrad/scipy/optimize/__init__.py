"""SciPy's ``optimize``: what its solvers find, differentiated by what they solve.

The solvers are SciPy's, on plain values. Inside a transform the result depends on what the function closes over or is
given in ``args``, by the implicit function theorem, in both modes, to any order and under ``vmap``: see
``custom_root``. It is as exact as the solver's tolerances leave the solution. Outside of transforms a call is SciPy's
own.
"""

from funcgrad.scipy.optimize.fitting import curve_fit, least_squares
from funcgrad.scipy.optimize.minima import minimize, minimize_scalar
from funcgrad.scipy.optimize.scalars import bisect, brenth, brentq, newton, ridder, root_scalar, toms748
from funcgrad.scipy.optimize.systems import fixed_point, fsolve, root

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fixed_point",
    "fsolve",
    "least_squares",
    "minimize",
    "minimize_scalar",
    "newton",
    "ridder",
    "root",
    "root_scalar",
    "toms748",
]
