"""Linear algebra of ``scipy.linalg``; matrices are in the last two axes, leading axes are batches.

Example:
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import linalg
    >>> grad(lambda a: linalg.cholesky(a)[0, 0])(4.0 * linalg.circulant([1.0, 0.0]))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
"""

import sys
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
from funcgrad.scipy.own_code import own_code

__all__ = ["LinAlgError"]
__all__ += factors.__all__
__all__ += functions.__all__
__all__ += matrices.__all__
__all__ += solving.__all__
__all__ += structured.__all__
__all__ += triangular.__all__

#: Functions of ``scipy.linalg`` that are missing here, and a replacement for each.
_INSTEAD = {
    "cholesky_banded": "solveh_banded, or cholesky of the whole matrix",
    "cossin": "svd of the blocks",
    "eig_banded": "eigh of the whole matrix",
    "funm": "eig, if the eigenvalues differ: (v * func(w)) @ inv(v)",
    "ldl": "lu or cholesky",
    "null_space": "svd with full_matrices: the last rows of Vh",
    "orth": "svd or qr: the first columns",
    "rq": "qr",
    "signm": "a @ inv(sqrtm(a @ a))",
    "subspace_angles": "svdvals of the product of orthonormal bases, by qr",
}


#: Functions of integers, which have no derivative: SciPy's are used as they are.
_OF_INTEGERS = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")


def _other(name: str) -> Any:
    if name in _OF_INTEGERS:
        return getattr(import_scipy(f"scipy.linalg.{name}", "scipy.linalg"), name)
    hint = f" Take {_INSTEAD[name]}." if name in _INSTEAD else " help(funcgrad.scipy.linalg) lists its functions."
    raise AttributeError(
        f"funcgrad.scipy.linalg: there is no differentiable function of this name, got {name!r}.{hint}",
        name=name,
        obj=sys.modules[__name__],
    )


_listed, __getattr__ = own_code("linalg", globals(), _other)
__all__ += _listed
