"""Solving sparse systems."""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.primitives.sparse import sparse_solve
from funcgrad.scipy.sparse.matrices import as_sparse, on_columns
from funcgrad.typing import Array, ArrayLike

__all__ = ["spsolve"]


def spsolve(A: Any, b: ArrayLike) -> Array:
    """The solution x of ``A @ x = b``, by SuperLU; differentiable in the values of ``A`` and in ``b``.

    The factors of the last values are kept with the structure of ``A``, so that a pullback or a pushforward costs
    two triangular solves. On JAX arrays it is JAX's ``spsolve``.

    Args:
        A: a square ``SparseArray``, whose values may be traced, or a sparse matrix of SciPy, which is a constant.
        b: of shape (n,) or (n, k), dense.

    Raises:
        ValueError: shapes that do not fit.
        LinAlgError: ``A`` is singular.

    Example:
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from funcgrad import grad
        >>> A = scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> grad(lambda b: spsolve(A, b)[1])(np.ones(2))
        array([-0.125,  0.25 ])
    """
    A, b = as_sparse("sparse.linalg.spsolve", A), as_value(b)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"sparse.linalg.spsolve: A must be square, got {list(A.shape)}. Use lstsq of a dense matrix.")
    return on_columns("sparse.linalg.spsolve", sparse_solve, A, b, A.shape[0])
