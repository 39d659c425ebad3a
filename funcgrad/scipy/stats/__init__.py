"""Probability distributions: those of ``scipy.stats``, differentiable in their values and parameters.

A distribution is used as a namespace, ``norm.logpdf(x, loc, scale)``, or with its parameters given first,
``norm(loc, scale).logpdf(x)``. Names, order of parameters, broadcasting and values are SciPy's. Values in the support
have derivatives in the value, in location and scale, and in every parameter of shape. Outside of it ``pdf``,
``cdf`` and their like are constant, as are logarithms that are minus infinity; where parameters are not allowed
results are NaN, and so are derivatives in them.

Example:
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import stats
    >>> grad(stats.gamma.logpdf, 1)(2.0, 3.0).round(6)
    np.float64(-0.229637)
"""

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
