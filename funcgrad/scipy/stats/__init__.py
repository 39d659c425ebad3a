"""Probability distributions of ``scipy.stats``, differentiable in their values and parameters.

A distribution is a namespace, ``norm.logpdf(x, loc, scale)``, or takes its parameters first,
``norm(loc, scale).logpdf(x)``. Names, order of parameters, broadcasting and values are SciPy's. Functions have
derivatives in values inside of the support, in location and scale, and in every shape parameter. Outside of the
support ``pdf``, ``cdf`` and similar functions are constant, and so are logarithms that are minus infinity. Parameters
that are not allowed give NaN, and NaN as the derivatives in these parameters.

Example:
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import stats
    >>> grad(stats.gamma.logpdf, 1)(2.0, 3.0).round(6)
    np.float64(-0.229637)
"""

from typing import Any

from funcgrad.scipy.own_code import missing_name
from funcgrad.scipy.stats import continuous, discrete, multivariate, shaped
from funcgrad.scipy.stats.continuous import *
from funcgrad.scipy.stats.discrete import *
from funcgrad.scipy.stats.multivariate import *
from funcgrad.scipy.stats.shaped import *

__all__: list[str] = []
__all__ += continuous.__all__
__all__ += discrete.__all__
__all__ += multivariate.__all__
__all__ += shaped.__all__


def __getattr__(name: str) -> Any:
    raise missing_name("stats", name)
