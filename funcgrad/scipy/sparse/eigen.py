"""Some eigenvalues and eigenvectors of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy_code.random import plain_source
from funcgrad.numpy_code.sparse.objects import plain_matrix
from funcgrad.optional import import_scipy
from funcgrad.primitives.sparse_eigen import EigenSearch, sparse_eig, sparse_eigh
from funcgrad.scipy.settings import constant_settings
from funcgrad.scipy.sparse.matrices import SparseArray, as_sparse, dense_as_sparse, is_sparse

__all__ = ["eigs", "eigsh"]


def _matrix(call: str, A: Any) -> Any:
    """Return a matrix as a ``SparseArray`` if its values are traced, else in a form that SciPy takes."""
    A = plain_matrix(A)
    if not is_sparse(A) and hasattr(A, "matvec"):
        made = A @ np.eye(A.shape[1])
        A = A if is_plain(made) else made
    if isinstance(A, SparseArray) or is_sparse(A) or hasattr(A, "matvec"):
        return A
    A = as_value(A)
    return A if is_plain(A) else dense_as_sparse(A)


def _as_square_sparse(call: str, A: Any) -> SparseArray:
    if not is_sparse(A) and not isinstance(A, np.ndarray):
        A = A @ np.eye(A.shape[1])  # ``A`` is a linear operator
    A = as_sparse(call, A) if is_sparse(A) else dense_as_sparse(A)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"{call}: matrices must be square, got {list(A.shape)}. Use svds for singular values.")
    made: SparseArray = A.tocsr()
    return made


def _eigenpairs(name: str, A: Any, k: int, M: Any, vectors: bool, **options: Any) -> Any:
    call = f"sparse.linalg.{name}"
    A, M = _matrix(call, A), None if M is None else _matrix(call, M)
    given = {key: plain_source(value) for key, value in options.items() if value is not None}
    if "v0" in given:
        given["v0"] = as_value(given["v0"])
    given = constant_settings(call, given)
    if not isinstance(A, SparseArray) and not isinstance(M, SparseArray):
        routine = getattr(import_scipy(call, "scipy.sparse.linalg"), name)
        return routine(A, k, M=M, return_eigenvectors=vectors, **given)
    if given.get("mode", "normal") != "normal":
        raise InputError(f"{call}: mode must be 'normal' with traced values, got {given['mode']!r}. Leave it out.")
    if name == "eigs" and isinstance(M, SparseArray):
        raise InputError(f"{call}: M must be constant, got traced values. Use eigsh, or solve for inv(M) A.")
    A, M = _as_square_sparse(call, A), None if M is None else _as_square_sparse(call, M)
    floating = fnp.result_type(A.dtype, np.float32)
    search = EigenSearch(A.structure, None if M is None else M.structure, {"k": k, **given})
    weights = np.ones(A.shape[0], np.int8) if M is None else M.values
    operation = sparse_eigh if name == "eigsh" else sparse_eig
    w, v = operation(fnp.astype(A.values, floating), weights, search=search)
    return (w, v) if vectors else w


def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
) -> Any:
    """Find ``k`` eigenvalues and eigenvectors of a Hermitian matrix with SciPy; any order of derivatives.

    The derivative solves one bordered sparse system for each eigenvalue (R. B. Nelson, "Simplified calculation of
    eigenvector derivatives", 1976). The derivative of vectors is NaN where eigenvalues coincide, as in
    ``numpy.linalg.eigh``. The derivative is that of exact eigenvalues: leave ``tol`` at 0.

    Args:
        A: a ``SparseArray``, a sparse matrix of SciPy, a matrix, or a linear operator, of n rows and columns. The
            derivative assumes that only the Hermitian part counts. All columns of an operator with traced values are
            computed.
        k: the number of eigenvalues, fewer than n.
        M: for ``A v = w M v``: Hermitian and positive definite, its values may be traced.
        sigma: the number near which eigenvalues are searched for, a constant like ``tol``.
        which: which eigenvalues to find, in SciPy's notation.
        v0: the starting vector of the search.
        ncv: the number of vectors that are kept.
        maxiter: the largest number of iterations.
        tol: the relative accuracy.
        return_eigenvectors: whether to return eigenvectors as well.
        Minv: a linear operator for the inverse of ``M``, of plain numbers.
        OPinv: a linear operator for the inverse of ``A - sigma M``.
        mode: "normal" with traced values.
        rng: the generator that draws ``v0``.

    Returns:
        Eigenvalues of shape (k,), and eigenvectors as columns, of shape (n, k).

    Raises:
        InputError: another ``mode``, or JAX arrays.
        ShapeError: a matrix that is not square.
        scipy.sparse.linalg.ArpackNoConvergence: raised by SciPy.

    Example:
        >>> from funcgrad.scipy.sparse import diags_array
        >>> from funcgrad.scipy.sparse.linalg import eigsh
        >>> f = lambda x: eigsh(
        ...     diags_array([x, [1.0, 1.0]], offsets=[0, 1]) + diags_array([[1.0, 1.0]], offsets=[-1]), 1
        ... )
        >>> grad(lambda x: f(x)[0][0])(np.array([1.0, 1.0, 1.0])).round(6)
        array([0.25, 0.5 , 0.25])
    """
    options = {"sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol, "mode": mode}
    return _eigenpairs("eigsh", A, k, M, return_eigenvectors, **options, Minv=Minv, OPinv=OPinv, rng=rng)


def eigs(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    OPpart: Any = None,
    rng: Any = None,
) -> Any:
    """Find ``k`` eigenvalues and eigenvectors of a matrix that need not be Hermitian; see ``eigsh``.

    The phases of vectors are SciPy's, and the derivatives leave them unchanged. The derivatives of eigenvalues and
    vectors are NaN where an eigenvalue coincides with another.

    Raises:
        InputError: an ``M`` with traced values, or JAX arrays.
        ShapeError: a matrix that is not square.
        scipy.sparse.linalg.ArpackNoConvergence: raised by SciPy.

    Example:
        >>> from funcgrad.scipy.sparse.linalg import eigs
        >>> f = lambda x: eigs(fnp.array([[x, 1.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]), 1)[0].real[0]
        >>> grad(f)(1.5).round(6)
        np.float64(0.666667)
    """
    options = {"sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    return _eigenpairs("eigs", A, k, M, return_eigenvectors, **options, Minv=Minv, OPinv=OPinv, OPpart=OPpart, rng=rng)
