"""Linear algebra, as ``scipy.linalg`` has it; matrices stand in the last two axes, the others are batches.

Example:
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import linalg
    >>> grad(lambda a: linalg.cholesky(a)[0, 0])(4.0 * linalg.circulant([1.0, 0.0]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
"""

from typing import NoReturn

from numpy.linalg import LinAlgError

from funcgrad.scipy.linalg import eigen, factors, functions, matrices, solving, triangles
from funcgrad.scipy.linalg.eigen import *
from funcgrad.scipy.linalg.factors import *
from funcgrad.scipy.linalg.functions import *
from funcgrad.scipy.linalg.matrices import *
from funcgrad.scipy.linalg.solving import *
from funcgrad.scipy.linalg.triangles import *

__all__ = ["LinAlgError"]
__all__ += eigen.__all__
__all__ += factors.__all__
__all__ += functions.__all__
__all__ += matrices.__all__
__all__ += solving.__all__
__all__ += triangles.__all__

#: Functions of ``scipy.linalg`` that are not here, and what to take.
_INSTEAD = {
    "funm": "eig, if the eigenvalues differ: (v * func(w)) @ inv(v)",
    "hessenberg": "lu, qr or eig",
    "ldl": "lu or cholesky",
    "null_space": "svd with full_matrices: the last rows of Vh",
    "orth": "svd or qr: the first columns",
    "qz": "eig",
    "rq": "qr",
    "schur": "eig, or expm, sqrtm and logm, which need no triangular form",
}


def __getattr__(name: str) -> NoReturn:
    hint = f" Take {_INSTEAD[name]}." if name in _INSTEAD else " It has those of scipy.linalg in its __all__."
    raise AttributeError(
        f"funcgrad.scipy.linalg: there is no differentiable function of this name, got {name!r}.{hint}"
    )
