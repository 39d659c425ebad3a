"""Eigenvalues, singular values, QR, pseudo-inverses and least squares.

Eigenvectors and singular vectors have derivatives where their values differ. Where values *coincide* (within
the rounding of the decomposition) their vectors could be any others of the space they span, and single ones
have no derivative. This is what can be relied on there:

- Values: the derivative of w[i] is that along the vector i of the basis returned, in both modes. Functions that
  treat those that coincide alike (``sum(w)``, or ``sum(w[:2])`` where w[0] and w[1] coincide) have their true
  derivative, to second order too; higher ones are NaN.
- Functions of vectors alone, reverse mode: the true gradient where the function does not depend on the choice
  of vectors, such as the projector ``V[:, :2] @ V[:, :2].T``; NaN where it does. That it does is seen by its first
  derivative along such a choice: V[0, 0] at V = I passes for a function that does not.
- Functions of values and vectors together, reverse mode: the true gradient as long as those that coincide are
  not both used. Else NaN: ``V @ diag(f(w)) @ V.T`` has a gradient, but the cotangents of V and w do not tell it.
  ``matrix_power``, ``expm``, ``sqrtm``, ``logm`` and ``pinv`` have it. One use passes for none: that of vectors where
  f(w) = 0, if the gradients of their values are equal.
- Forward mode: the tangent of vectors is NaN where the direction mixes vectors whose values coincide,
  also if what is made of them does not depend on their choice. Use reverse mode there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds.linear import broadcast_to
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.reducing import as_floating
from funcgrad.primitives import decompositions as prim
from funcgrad.primitives import least_squares, nonsymmetric
from funcgrad.primitives.arithmetic import absolute, copysign
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.shaping import flip
from funcgrad.primitives.solving import adjoint
from funcgrad.primitives.sorting import argsort, sort
from funcgrad.typing import Array, ArrayLike

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "lstsq", "pinv", "qr", "svd", "svdvals"]

_ONE = np.eye(1)
EigResult: Any = type(np.linalg.eig(_ONE))
EighResult: Any = type(np.linalg.eigh(_ONE))
QRResult: Any = type(np.linalg.qr(_ONE))
SVDResult: Any = type(np.linalg.svd(_ONE))


def _is_lower(uplo: str) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo.upper() == "L"


def _is_traced(a: Array) -> bool:
    return isinstance(a, Tracer) and not is_plain(a)


def _values(name: str, a: Array, **options: Any) -> Array:
    """What a function of the array's own library says that computes no vectors."""
    made: Array = getattr(backend.namespace((a,)).linalg, name)(a, **options)
    return made


def eigh(a: ArrayLike, UPLO: str = "L") -> Any:
    """Eigenvalues, rising, and eigenvectors (as columns) of Hermitian matrices: ``EighResult``.

    Only the triangle ``UPLO`` is read; of JAX arrays the Hermitian part. The derivative takes ``a`` for a
    Hermitian matrix, so gradients are Hermitian. Complex vectors turn such that ``diag(V^H dV)`` is zero.
    What is defined where eigenvalues coincide is said at the top of this module.

    Raises:
        ValueError: ``UPLO`` is neither "L" nor "U".
        LinAlgError: matrices that are not square, or no convergence.

    Example:
        >>> fnp.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
        array([2., 3.])
    """
    return EighResult(*prim.eigh(as_value(a), lower=_is_lower(UPLO)))


def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Array:
    """Eigenvalues, rising, of Hermitian matrices; see ``eigh``.

    The gradient of eigenvalue i is ``v v^H`` with its vector v, also where eigenvalues coincide: then v is the
    vector that ``eigh`` returns. Sums over all that coincide have their true derivative.

    Raises:
        ValueError: ``UPLO`` is neither "L" nor "U".
        LinAlgError: matrices that are not square, or no convergence.

    Example:
        >>> import funcgrad
        >>> funcgrad.grad(lambda a: fnp.linalg.eigvalsh(a)[1])(fnp.asarray([[2.0, 0.0], [0.0, 3.0]]))
        array([[0., 0.],
               [0., 1.]])
    """
    a, lower = as_value(a), _is_lower(UPLO)
    return prim.eigh(a, lower=lower)[0] if _is_traced(a) else _values("eigvalsh", a, UPLO=UPLO)


def eig(a: ArrayLike) -> Any:
    """Eigenvalues and eigenvectors (columns of length 1) of square matrices: ``EigResult``.

    Both are real if ``a`` is real and all eigenvalues are; of JAX arrays and with NumPy 2.5 they are always complex.
    The derivative of a complex vector keeps its largest element real, as LAPACK has it. Of matrices that lack
    eigenvectors it is NaN, except for functions that treat coinciding eigenvalues alike.

    Raises:
        LinAlgError: matrices that are not square, infinities or NaN, or no convergence.

    Example:
        >>> fnp.linalg.eig([[2.0, 0.0], [0.0, 3.0]]).eigenvalues.real
        array([2., 3.])
    """
    return EigResult(*nonsymmetric.eig(as_value(a)))


def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices; see ``eig``.

    Raises:
        LinAlgError: matrices that are not square, infinities or NaN, or no convergence.

    Example:
        >>> fnp.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]])
        array([0.+1.j, 0.-1.j])
    """
    a = as_value(a)
    return nonsymmetric.eig(a)[0] if _is_traced(a) else _values("eigvals", a)


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular values, falling, and singular vectors: ``SVDResult`` with ``a = (U * S) @ Vh``.

    With ``full_matrices`` U and Vh are square. The vectors that complete them are open up to turns among
    themselves; their derivative is the smallest possible, without such turns. The phases of complex vectors
    are open too: the diagonal of ``V^H dV`` is zero. With ``hermitian`` the vectors are made of those of ``eigh``.
    What is defined where singular values coincide is said at the top of this module; a singular value of zero has
    coinciding vectors too, U and V then being independent of each other.

    Returns:
        ``SVDResult``; without ``compute_uv`` the singular values alone.

    Raises:
        LinAlgError: not a matrix, or no convergence.

    Example:
        >>> fnp.linalg.svd([[0.0, 2.0], [3.0, 0.0]]).S
        array([3., 2.])
    """
    a = as_value(a)
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    return SVDResult(*prim.svd(a, full_matrices=bool(full_matrices))) if compute_uv else svdvals(a)


def _hermitian_svd(a: Array, compute_uv: bool) -> Any:
    if not _is_traced(a):
        found = _values("svd", a, compute_uv=compute_uv, hermitian=True)
        return SVDResult(*found) if compute_uv else found
    w, v = prim.eigh(a, lower=True)
    size, last = absolute(w), len(w.shape) - 1
    if not compute_uv:
        return flip(sort(size, axis=last), axis=(last,))
    order = flip(argsort(size, axis=last), axis=(last,))
    sign = take_along_axis(copysign(1.0, w), order, axis=last, unique=True)
    u = take_along_axis(v, order[..., None, :], axis=last + 1, unique=True)
    vh = adjoint(u * sign[..., None, :])
    return SVDResult(u, take_along_axis(size, order, axis=last, unique=True), vh)


def svdvals(x: ArrayLike, /) -> Array:
    """Singular values, falling.

    The gradient of singular value i is ``u v^H`` with its vectors, also where singular values coincide; sums over
    all that coincide have their true derivative.

    Raises:
        LinAlgError: not a matrix, or no convergence.

    Example:
        >>> fnp.linalg.svdvals([[0.0, 2.0], [3.0, 0.0]])
        array([3., 2.])
    """
    x = as_value(x)
    if _is_traced(x):
        return prim.svd(x, full_matrices=False)[1]
    return _values("svd", x, compute_uv=False)


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R: ``QRResult`` with ``a = Q @ R``.

    Args:
        a: matrices.
        mode: "reduced"; "complete", where Q is square; "r", R alone; "raw", LAPACK's own form, of constants only.

    The derivative needs the first columns (as many as Q has in reduced mode) to be independent, and is NaN
    where they are not. The columns that complete a basis in mode "complete" do not turn among themselves:
    of all derivatives they could have it is the smallest.

    Raises:
        ValueError: an unknown ``mode``.
        LinAlgError: not a matrix.
        NotDifferentiableError: mode "raw" of traced values.

    Example:
        >>> fnp.abs(fnp.linalg.qr([[3.0, 1.0], [4.0, 2.0]], mode="r")).round(3)
        array([[5. , 2.2],
               [0. , 0.4]])
    """
    a = as_value(a)
    if mode in ("reduced", "complete"):
        return QRResult(*least_squares.qr(a, complete=mode == "complete"))
    if not _is_traced(a):
        return _values("qr", a, mode=mode)
    if mode == "r":
        return least_squares.qr(a, complete=False)[1]
    if mode == "raw":
        raise NotDifferentiableError(
            f"linalg.qr: the reflectors of mode='raw' have no derivative rule, got {describe(a)}. "
            "Use mode='reduced', 'complete' or 'r'."
        )
    raise ValueError(f"Unrecognized mode '{mode}'")


def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
        a: matrices.
        rcond: singular values up to this share of the largest count as zero; one number, or one for each
            matrix. 1e-15 if neither this nor ``rtol`` is given. No derivative passes.
        hermitian: whether ``a`` is Hermitian. Then only its lower triangle is read, and gradients are Hermitian.
        rtol: another name of ``rcond``; None stands for the larger side of the matrix times the dtype's rounding.

    The derivative is that at constant rank, finite where columns depend on each other too.

    Raises:
        ValueError: both ``rcond`` and ``rtol``.
        LinAlgError: not a matrix, or no convergence.

    Example:
        >>> fnp.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
        array([[0.5, 0. ],
               [0. , 0. ]])
    """
    a = as_value(a)
    shape = backend.shape_of(a)
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    if rcond is None:
        rcond = max(shape[-2:]) * np.finfo(backend.dtype_of(a)).eps
    cutoff = as_value(rcond)
    if len(shape) > 2:
        cutoff = broadcast_to(np.asarray(cutoff) if type(cutoff) in (int, float) else cutoff, to=shape[:-2])
    return least_squares.pinv(a, cutoff, hermitian=bool(hermitian))


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None) -> tuple[Array, Array, Any, Array]:
    """Least squares solutions x of ``a @ x = b``: of all that are nearest, the smallest.

    Args:
        a: a matrix (M, N).
        b: a vector (M,), or right-hand sides as columns (M, K).
        rcond: singular values up to this share of the largest count as zero. None stands for the larger side of
            ``a`` times the dtype's rounding, a negative number for the rounding.

    Returns:
        The solution; the squared residuals (K,), which are empty unless ``a`` has full rank and M > N (of JAX
        arrays they are always there); the rank, an integer; the singular values. Derivatives are those at constant
        rank. Examples of a ``vmap`` whose rank is lower than others' have the residual NaN.

    Raises:
        LinAlgError: not a matrix, another number of rows in ``b``, or no convergence.

    Example:
        >>> fnp.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])[0].round(12)
        array([2.])
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.linalg.lstsq(a, b, rcond)
    shape = backend.shape_of(a)
    is_vector = len(backend.shape_of(b)) == 1
    right = b[:, None] if is_vector else b
    for x in (a, right):
        if len(backend.shape_of(x)) != 2:
            raise np.linalg.LinAlgError(
                f"{len(backend.shape_of(x))}-dimensional array given. Array must be two-dimensional"
            )
    if shape[0] != backend.shape_of(right)[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    a, right = as_floating(a), as_floating(right)
    unit = float(np.finfo(np.result_type(backend.dtype_of(a), backend.dtype_of(right))).eps)
    if rcond is None or not 0 <= rcond < 1:  # LAPACK takes its own where no share is meant
        rcond = unit * max(shape) if rcond is None else unit
    x, residuals, rank, s = least_squares.lstsq(a, right, rcond=float(rcond))
    return x[:, 0] if is_vector else x, residuals, rank, s
