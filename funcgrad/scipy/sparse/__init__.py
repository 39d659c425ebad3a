"""Sparse matrices with differentiable values; the positions of the values are static.

Example:
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import sparse
    >>> A = sparse.csr_array(scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]])))
    >>> b = np.array([2.0, 5.0])
    >>> grad(lambda values: sparse.linalg.spsolve(A.with_data(values), b)[1])(A.data)
    array([ 0.125, -0.25 , -0.25 ])
"""

from typing import Any

from funcgrad.scipy.own_code import missing_name
from funcgrad.scipy.sparse import construction, linalg, matrices
from funcgrad.scipy.sparse.construction import *
from funcgrad.scipy.sparse.matrices import *

__all__ = ["linalg"]
__all__ += matrices.__all__ + construction.__all__


def __getattr__(name: str) -> Any:
    raise missing_name("sparse", name)
