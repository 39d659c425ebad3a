"""Integrals and differential equations, as ``scipy.integrate`` has them.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import integrate
    >>> grad(lambda k: integrate.odeint(lambda y, t: -k * y, 1.0, np.array([0.0, 1.0]))[1, 0])(0.5).round(6)
    np.float64(-0.606531)
"""

from funcgrad.scipy.integrate import adaptive, ode, sampled
from funcgrad.scipy.integrate.adaptive import *
from funcgrad.scipy.integrate.ode import *
from funcgrad.scipy.integrate.sampled import *

__all__: list[str] = []
__all__ += adaptive.__all__
__all__ += ode.__all__
__all__ += sampled.__all__
