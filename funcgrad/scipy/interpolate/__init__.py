"""Interpolation as in ``scipy.interpolate``, differentiable in knots, values and query points.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import interpolate
    >>> x = np.linspace(0.0, 3.0, 7)
    >>> grad(lambda q: interpolate.CubicSpline(x, x**2)(q))(1.3).round(12)
    np.float64(2.6)
"""

from typing import Any

from funcgrad.scipy.interpolate import curves, regular, scattered
from funcgrad.scipy.interpolate.curves import *
from funcgrad.scipy.interpolate.regular import *
from funcgrad.scipy.interpolate.scattered import *
from funcgrad.scipy.own_code import missing_name

__all__: list[str] = []
__all__ += curves.__all__
__all__ += regular.__all__
__all__ += scattered.__all__


def __getattr__(name: str) -> Any:
    raise missing_name("interpolate", name)
