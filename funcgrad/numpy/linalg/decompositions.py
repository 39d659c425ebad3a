"""Eigenvalues, singular values, QR, pseudo-inverses and least squares.

Eigenvectors and singular vectors have derivatives if their values differ. If values *coincide* (within the rounding
of the decomposition), any basis of the space that their vectors span is possible, and single vectors have no
derivative. These derivatives are defined for coinciding values:

- Values: the derivative of w[i] is the derivative along vector i of the returned basis, in both modes. Functions that
  treat coinciding values alike (``sum(w)``, or ``sum(w[:2])`` if w[0] and w[1] coincide) have their true first and
  second derivatives; higher derivatives are NaN.
- Functions of vectors alone, reverse mode: the true gradient if the function does not depend on the choice of
  vectors, such as the projector ``V[:, :2] @ V[:, :2].T``; NaN if it does. Only the first derivative along changes
  of the basis is tested: V[0, 0] at V = I passes as a function that does not depend on the choice.
- Functions of values and vectors together, reverse mode: the true gradient unless both coinciding values and their
  vectors are used; NaN otherwise. ``V @ diag(f(w)) @ V.T`` has a gradient, but the cotangents of V and w do not
  determine it; ``matrix_power``, ``expm``, ``sqrtm``, ``logm`` and ``pinv`` do have it. Vectors with f(w) = 0 do not
  count as used if the gradients of their values are equal.
- Forward mode: the tangent of vectors is NaN if the direction mixes vectors whose values coincide, even if the
  result does not depend on the choice of vectors. Use reverse mode there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds.linear import broadcast_to
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_floating
from funcgrad.primitives import decompositions as prim
from funcgrad.primitives import least_squares, nonsymmetric
from funcgrad.primitives.arithmetic import absolute, copysign
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.primitives.shaping import flip
from funcgrad.primitives.solving import adjoint, as_hermitian
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
    """Call the function ``name`` of the linear algebra of the array's library."""
    made: Array = getattr(backend.namespace((a,)).linalg, name)(a, **options)
    return made


def eigh(a: ArrayLike, UPLO: str = "L") -> Any:
    """Return the ascending eigenvalues and the eigenvectors (as columns) of Hermitian matrices: ``EighResult``.

    Only the triangle ``UPLO`` is read, also of JAX's arrays. If ``a`` is Hermitian, so are gradients; if it is not, or
    diagonal, the derivative is in the triangle that is read. For complex vectors the derivative keeps the phases:
    ``diag(V^H dV)`` is zero.
    The docstring of this module tells which derivatives are defined if eigenvalues coincide.

    Raises:
        ValueError: ``UPLO`` is neither "L" nor "U".
        LinAlgError: matrices that are not square, or no convergence.

    Example:
        >>> fnp.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
        array([2., 3.])
    """
    return EighResult(*prim.eigh(as_value(a), lower=_is_lower(UPLO)))


def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Array:
    """Return the ascending eigenvalues of Hermitian matrices; see ``eigh``.

    The gradient of eigenvalue i is ``v v^H`` with its vector v. If eigenvalues coincide, v is the vector that ``eigh``
    returns. Sums over all coinciding eigenvalues have their true derivative.

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
    if _is_traced(a):
        return prim.eigh(a, lower=lower)[0]
    return _values("eigvalsh", as_hermitian(backend.namespace((a,)), a, lower=lower), UPLO=UPLO)


def eig(a: ArrayLike) -> Any:
    """Return the eigenvalues and eigenvectors (columns of norm 1) of square matrices: ``EigResult``.

    Both are real if ``a`` and all eigenvalues are real; for JAX arrays and with NumPy 2.5 both are always complex.
    The derivative of a complex vector keeps its largest element real, as LAPACK does. For defective matrices the
    derivative is NaN, except for functions that treat coinciding eigenvalues alike.

    Raises:
        LinAlgError: matrices that are not square, infinities or NaN, or no convergence.

    Example:
        >>> fnp.linalg.eig([[2.0, 0.0], [0.0, 3.0]]).eigenvalues.real
        array([2., 3.])
    """
    return EigResult(*nonsymmetric.eig(as_value(a)))


def eigvals(a: ArrayLike) -> Array:
    """Return the eigenvalues of square matrices; see ``eig``.

    Raises:
        LinAlgError: matrices that are not square, infinities or NaN, or no convergence.

    Example:
        >>> fnp.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]])
        array([0.+1.j, 0.-1.j])
    """
    a = as_value(a)
    return nonsymmetric.eig(a)[0] if _is_traced(a) else _values("eigvals", a)


def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return the descending singular values and the singular vectors: ``SVDResult`` with ``a = (U * S) @ Vh``.

    With ``full_matrices`` U and Vh are square. The vectors that complete U or Vh are unique only up to rotations among
    themselves; their derivative is the smallest possible, without such rotations. The phases of complex vectors are
    free too; the derivative keeps the diagonal of ``V^H dV`` zero. With ``hermitian`` the vectors come from ``eigh``.
    The docstring of this module tells which derivatives are defined if singular values coincide. Vectors of a singular
    value of zero count as coinciding too, because U and V are then independent of each other.

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
        found = _values("svd", as_hermitian(backend.namespace((a,)), a), compute_uv=compute_uv, hermitian=True)
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
    """Return the descending singular values.

    The gradient of singular value i is ``u v^H`` with its vectors, also if singular values coincide. Sums over all
    coinciding singular values have their true derivative.

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
    """Return Q with orthonormal columns and upper triangular R: ``QRResult`` with ``a = Q @ R``.

    Args:
        a: matrices.
        mode: "reduced"; "complete" for a square Q; "r" for R alone; "raw" for LAPACK's form, of constants only.

    The first columns (as many as Q has in reduced mode) must be linearly independent; otherwise the derivative is
    NaN. The columns that complete a basis in mode "complete" do not rotate among themselves, which makes their
    derivative the smallest possible.

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
    if mode in ("raw", "e", "economic"):
        raise NotDifferentiableError(
            f"linalg.qr: the reflectors of mode={mode!r} have no derivative rule, got {describe(a)}. "
            "Use mode='reduced', 'complete' or 'r'."
        )
    raise ValueError(f"Unrecognized mode '{mode}'")


def pinv(a: ArrayLike, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Array:
    """Return the Moore-Penrose pseudo-inverse.

    Args:
        a: matrices.
        rcond: singular values up to ``rcond`` times the largest count as zero; one number, or one for each
            matrix. The default is 1e-15 if ``rtol`` is not given either. No derivative passes.
        hermitian: whether ``a`` is Hermitian. Then only its lower triangle is read, as in ``eigh``.
        rtol: another name for ``rcond``; None means the larger side of the matrix times the dtype's epsilon.

    The derivative is taken at constant rank and is finite for linearly dependent columns too.

    Raises:
        ValueError: both ``rcond`` and ``rtol`` are given.
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
    """Return the least squares solution x of ``a @ x = b`` that has the smallest norm.

    Args:
        a: a matrix (M, N).
        b: a vector (M,), or right-hand sides as columns (M, K).
        rcond: singular values up to ``rcond`` times the largest count as zero. None means the larger side of
            ``a`` times the dtype's epsilon; a number below 0, or 1 and more, means the epsilon.

    Returns:
        The solution; the squared residuals (K,), which are empty unless ``a`` has full rank and M > N (for JAX
        arrays they are always there); the rank, an integer; the singular values. Derivatives are taken at constant
        rank. Examples of a ``vmap`` with a lower rank than other examples have NaN as residual.

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
    if rcond is None or not 0 <= rcond < 1:  # LAPACK's default outside [0, 1)
        rcond = unit * max(shape) if rcond is None else unit
    x, residuals, rank, s = least_squares.lstsq(a, right, rcond=float(rcond))
    return x[:, 0] if is_vector else x, residuals, rank, s
