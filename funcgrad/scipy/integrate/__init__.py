"""Integrals and differential equations, as in ``scipy.integrate``.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import integrate
    >>> grad(lambda k: integrate.odeint(lambda y, t: -k * y, 1.0, np.array([0.0, 1.0]))[1, 0])(0.5).round(6)
    np.float64(-0.606531)
"""

from typing import Any

from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate import adaptive, boundary, boxes, elementwise, lsoda, ode, sampled
from funcgrad.scipy.integrate.adaptive import *
from funcgrad.scipy.integrate.boundary import *
from funcgrad.scipy.integrate.boxes import *
from funcgrad.scipy.integrate.elementwise import *
from funcgrad.scipy.integrate.lsoda import *
from funcgrad.scipy.integrate.ode import *
from funcgrad.scipy.integrate.sampled import *
from funcgrad.scipy.own_code import missing_name, own_code

__all__: list[str] = []
__all__ += adaptive.__all__
__all__ += boundary.__all__
__all__ += boxes.__all__
__all__ += elementwise.__all__
__all__ += lsoda.__all__
__all__ += ode.__all__
__all__ += sampled.__all__

#: SciPy's classes that are exported unchanged: solvers to be stepped by hand with plain values, and parts of results.
_CLASSES = ("BDF", "DOP853", "LSODA", "RK23", "RK45", "DenseOutput", "OdeSolution", "OdeSolver", "Radau")


def _other(name: str) -> Any:
    """Return a class of SciPy; the first request for one imports SciPy."""
    if name == "OdeResult":
        return import_scipy("integrate.OdeResult", "scipy.integrate._ivp.ivp").OdeResult
    if name in _CLASSES:
        return getattr(import_scipy(f"integrate.{name}", "scipy.integrate"), name)
    raise missing_name("integrate", name)


_listed, __getattr__ = own_code("integrate", globals(), _other)
__all__ += _listed


def __dir__() -> list[str]:
    return sorted([*globals(), *_CLASSES, "OdeResult"])
