"""Linear algebra of ``scipy.linalg``; matrices are in the last two axes, leading axes are batches.

Example:
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import linalg
    >>> grad(lambda a: linalg.cholesky(a)[0, 0])(4.0 * linalg.circulant([1.0, 0.0]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
"""

from typing import Any

from numpy.linalg import LinAlgError

from funcgrad.optional import import_scipy
from funcgrad.scipy.linalg import factors, functions, matrices, solving, structured, triangular
from funcgrad.scipy.linalg.factors import *
from funcgrad.scipy.linalg.functions import *
from funcgrad.scipy.linalg.matrices import *
from funcgrad.scipy.linalg.solving import *
from funcgrad.scipy.linalg.structured import *
from funcgrad.scipy.linalg.triangular import *
from funcgrad.scipy.own_code import missing_name, own_code

__all__ = ["LinAlgError"]
__all__ += factors.__all__
__all__ += functions.__all__
__all__ += matrices.__all__
__all__ += solving.__all__
__all__ += structured.__all__
__all__ += triangular.__all__

#: Functions of integers, which have no derivative: SciPy's are used as they are.
_OF_INTEGERS = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")


def _other(name: str) -> Any:
    if name in _OF_INTEGERS:
        return getattr(import_scipy(f"scipy.linalg.{name}", "scipy.linalg"), name)
    raise missing_name("linalg", name)


_listed, __getattr__ = own_code("linalg", globals(), _other)
__all__ += _listed
