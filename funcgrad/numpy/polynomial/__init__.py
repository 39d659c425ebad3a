"""Series in the families of polynomials of ``numpy.polynomial``, one module for each family.

The functions take coefficients with the constant term first.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.numpy.polynomial.chebyshev import chebval
    >>> grad(chebval)(0.5, np.array([0.0, 0.0, 1.0]))
    np.float64(2.0)
"""

from funcgrad.numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial
from funcgrad.numpy.polynomial.chebyshev import Chebyshev
from funcgrad.numpy.polynomial.hermite import Hermite
from funcgrad.numpy.polynomial.hermite_e import HermiteE
from funcgrad.numpy.polynomial.laguerre import Laguerre
from funcgrad.numpy.polynomial.legendre import Legendre
from funcgrad.numpy.polynomial.polynomial import Polynomial

__all__ = [
    "Chebyshev", "Hermite", "HermiteE", "Laguerre", "Legendre", "Polynomial", "chebyshev", "hermite", "hermite_e",
    "laguerre", "legendre", "polynomial",
]  # fmt: skip
