"""LU, QR and polar factors, eigenvalues and singular values.

Signs and phases of vectors are arbitrary; of NumPy arrays they are SciPy's, of JAX arrays those of
``funcgrad.numpy.linalg``, whose page on decompositions says what is defined where eigenvalues or singular values
coincide.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe, shallow_copy
from funcgrad.errors import NotDifferentiableError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.primitives import solving
from funcgrad.primitives.shaping import tril, triu
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg import operations as prim
from funcgrad.scipy.linalg.solving import divide_by_triangle, floating, hermitian_of, in_columns, square, transposition
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["lu", "lu_factor", "lu_solve", "orthogonal_procrustes", "polar", "qr", "svd", "eig", "eigh"]


def _matrix(name: str, a: ArrayLike) -> Array:
    a = floating(a)
    if len(backend.shape_of(a)) < 2:
        raise ValueError(f"{name}: a matrix in the last two axes is needed, got {describe(a)}. Check its shape.")
    return a


def refuse(call: str, what: str, remedy: str) -> NoReturn:
    """Raise for a request that only SciPy can compute.

    Raises:
        NotDifferentiableError: always.
    """
    raise NotDifferentiableError(f"{call}: {what} has no derivative rule, got a traced value. {remedy}")


@mirrors
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Compute L, without its ones, and U in one array, and the pivots: row i was exchanged with row ``piv[i]``.

    The derivative is taken at constant pivots.

    Args:
        a: matrices in the last two axes, of full rank.
        overwrite_a: used by SciPy alone, like ``check_finite``.

    Raises:
        ValueError: ``a`` is not a matrix.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.lu_factor([[2.0, 4.0], [1.0, 5.0]])[0]
        array([[2. , 4. ],
               [0.5, 3. ]])
    """
    found: tuple[Array, Array] = prim.lu(_matrix("lu_factor", a), warns=True)
    return found


@mirrors
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> tuple[Array, ...]:
    """Compute the factors of ``a = P L U``: a permutation, a unit lower triangle, an upper triangle.

    The derivative is taken at constant P; P has none.

    Args:
        a: matrices in the last two axes, of full rank.
        permute_l: whether to return P L and U only.
        overwrite_a: used by SciPy alone, like ``check_finite``.
        p_indices: whether P is given as the indices p with ``a = L[p] @ U``.

    Raises:
        ValueError: ``a`` is not a matrix.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.lu([[1.0, 5.0], [2.0, 4.0]], permute_l=True)
        (array([[0.5, 1. ],
               [1. , 0. ]]), array([[2., 4.],
               [0., 3.]]))
    """
    packed, pivots = prim.lu(_matrix("lu", a), warns=False)
    rows, columns = backend.shape_of(packed)[-2:]
    k, dtype = min(rows, columns), backend.dtype_of(packed)
    low = tril(packed[..., :, :k], k=-1) + np.eye(rows, k, dtype=dtype)
    up = triu(packed[..., :k, :], k=0)
    places = fnp.argsort(prim.permutation(pivots, rows=rows), axis=-1)
    turn = fnp.astype(places[..., :, None] == np.arange(rows), np.empty(0, dtype).real.dtype)
    if permute_l:
        return turn @ low, up
    return (places if p_indices else turn), low, up


@mirrors
def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int | str = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the solution ``x`` of ``a @ x = b``, given the factors of ``a``.

    Args:
        lu_and_piv: the result of ``lu_factor``.
        b: a vector, or matrices of right-hand sides.
        trans: 0; 1 to solve with the transposed matrix; 2 with the adjoint matrix.
        overwrite_b: used by SciPy alone, like ``check_finite``.

    Raises:
        ValueError: lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.lu_solve(linalg.lu_factor([[2.0, 0.0], [1.0, 1.0]]), [2.0, 3.0])
        array([1., 2.])
    """
    packed, pivots = square("lu_solve", lu_and_piv[0]), as_value(lu_and_piv[1])
    rows = backend.shape_of(packed)[-1]
    order = prim.permutation(pivots, rows=rows)
    letter = transposition("lu_solve", trans)

    def divided(x: Array, lower: bool) -> Array:
        return divide_by_triangle(packed, x, lower, letter, unit=lower)

    def turned(x: Array, order: Array) -> Array:
        batch = np.broadcast_shapes(backend.shape_of(x)[:-2], backend.shape_of(order)[:-1])
        x, order = fnp.broadcast_to(x, (*batch, *backend.shape_of(x)[-2:])), fnp.broadcast_to(order, (*batch, rows))
        return fnp.take_along_axis(x, order[..., None], axis=-2)

    def solved(x: Array) -> Array:
        if letter == "N":
            return divided(divided(turned(x, order), True), False)
        return turned(divided(divided(x, False), True), fnp.argsort(order, axis=-1))

    return in_columns("lu_solve", b, rows, solved)


@mirrors
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Compute Q with orthonormal columns and triangular R: ``a = Q @ R``; with pivoting P, too: ``a[:, P] = Q @ R``.

    The derivative is taken at constant P.

    Args:
        a: matrices in the last two axes; see ``funcgrad.numpy.linalg.qr``.
        overwrite_a: used by SciPy alone, like ``lwork`` and ``check_finite``.
        mode: "full", where Q is square; "economic"; "r", R alone, in a tuple; "raw", for plain arrays only.
        pivoting: whether columns are exchanged.

    Raises:
        ValueError: ``mode`` is unknown.
        NotDifferentiableError: mode "raw" with traced values.
        InputError: ``pivoting`` with JAX arrays.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> abs(linalg.qr([[3.0, 1.0], [4.0, 2.0]], mode="r")[0]).round(3)
        array([[5. , 2.2],
               [0. , 0.4]])
    """
    if mode == "raw":
        refuse("qr", "mode='raw'", "Take lu, or mode='full', 'economic' or 'r'.")
    names = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in names:
        raise ValueError(f"qr: mode is 'full', 'economic' or 'r', got {mode!r}. Give one of them.")
    a = _matrix("qr", a)
    order: list[Any] = []
    if pivoting:
        order = [prim.pivots(a)]
        a = fnp.take_along_axis(a, order[0][..., None, :], axis=-1)
    found = fnp.linalg.qr(a, names[mode])
    if mode != "r":
        return (*found, *order)
    *batch, rows, columns = backend.shape_of(a)  # SciPy's R has as many rows as the matrix
    return (fnp.pad(found, [(0, 0)] * len(batch) + [(0, max(rows - columns, 0)), (0, 0)]), *order)


@mirrors
def polar(a: ArrayLike, side: str = "right") -> tuple[Array, Array]:
    """Compute the polar factors: ``a = U @ P`` (or ``P @ U``), orthonormal U, Hermitian positive semidefinite P.

    The derivative needs the shorter side of the matrix to have full rank; singular values that coincide do not
    matter.

    Args:
        a: matrices in the last two axes.
        side: "right" or "left", the side of P.

    Returns:
        U and P.

    Raises:
        ValueError: ``side`` is unknown, or ``a`` is not a matrix.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.polar([[0.0, 2.0], [3.0, 0.0]])[1].round(12)
        array([[3., 0.],
               [0., 2.]])
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side is 'right' or 'left', got {side!r}. Give one of them.")
    a = _matrix("polar", a)
    shape = backend.shape_of(a)
    wide = shape[-2] < shape[-1]
    u, p = prim.polar(adjoint(a) if wide else a)
    if (side == "left") is not wide:
        p = u @ p @ adjoint(u)
    return (adjoint(u) if wide else u), p


@mirrors
def orthogonal_procrustes(A: ArrayLike, B: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the orthogonal or unitary R that brings ``A @ R`` nearest to ``B``, and the nuclear norm of A^H B.

    Args:
        A: matrices in the last two axes; for a derivative, A^H B must have an inverse.
        B: matrices of the same shape; leading axes broadcast.
        check_finite: used by SciPy alone.

    Raises:
        ValueError: shapes differ.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.orthogonal_procrustes([[1.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [2.0, 0.0]])[0].round(12) + 0
        array([[0., 1.],
               [1., 0.]])
    """
    a, b = floating(A), floating(B)
    if backend.shape_of(a)[-2:] != backend.shape_of(b)[-2:] or len(backend.shape_of(a)) < 2:
        raise ValueError(
            f"orthogonal_procrustes: two matrices of one shape are needed, got {describe(a)} and {describe(b)}. "
            "Check them."
        )
    u, p = prim.polar(adjoint(a) @ b)
    return u, fnp.trace(p, axis1=-2, axis2=-1).real


@mirrors
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Compute singular values, descending, and singular vectors: ``a = (U * s) @ Vh``.

    Args:
        a: matrices in the last two axes; see ``funcgrad.numpy.linalg.svd``.
        full_matrices: whether U and Vh are square.
        compute_uv: whether to return U, s and Vh, or s alone.
        overwrite_a: used by SciPy alone, like ``check_finite`` and ``lapack_driver``.

    Raises:
        ValueError: ``a`` is not a matrix.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.svd([[0.0, 2.0], [3.0, 0.0]])[1]
        array([3., 2.])
    """
    found = fnp.linalg.svd(_matrix("svd", a), full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def _standard(a: Array, b: Array, lower: bool, type: int) -> tuple[Array, Array]:
    """Return the matrix of the equivalent standard problem of ``a`` and ``b``, and the factor ``b = L L^H``."""
    factor = solving.cholesky(hermitian_of(b, lower), upper=False)
    whole = hermitian_of(a, lower)
    if type == 1:
        half = divide_by_triangle(factor, whole, True)
        return adjoint(divide_by_triangle(factor, adjoint(half), True)), factor
    return adjoint(factor) @ whole @ factor, factor


def wanted_slice(w: Array, by_index: Any, by_value: Any) -> slice:
    """Return the slice of the wanted eigenvalues, which ascend; its length is the same for all examples of a vmap."""
    if by_value is not None:
        low, high = by_value
        return slice(*[operator.index(fnp.sum(w <= bound, axis=-1)) for bound in (low, high)])
    return slice(None) if by_index is None else slice(int(by_index[0]), int(by_index[1]) + 1)


@mirrors
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """Compute eigenvalues, ascending, and eigenvectors (as columns) of Hermitian matrices, or of pairs of them.

    One triangle is read. The derivative assumes a Hermitian ``a``, so its gradients are Hermitian; gradients of a pair
    are with respect to the triangles that are read.

    Args:
        a: matrices in the last two axes.
        b: positive-definite matrices, for ``a v = w b v``.
        lower: whether the lower triangles are read.
        eigvals_only: whether to return the eigenvalues alone.
        overwrite_a: used by SciPy alone, like ``overwrite_b``, ``check_finite`` and ``driver``.
        type: 1 for ``a v = w b v``, 2 for ``a b v = w v``, 3 for ``b a v = w v``.
        subset_by_index: the first and the last index of the wanted eigenvalues.
        subset_by_value: for one matrix: two numbers; eigenvalues greater than the first, up to the second, are wanted.

    Raises:
        LinAlgError: a matrix is not square, or ``b`` is not positive definite.
        ConcretizationError: ``subset_by_value`` in a ``vmap`` whose examples have different numbers of them.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.eigh([[2.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 2.0]], eigvals_only=True)
        array([1.5, 2. ])
    """
    given, factor = [square("eigh", m) for m in (a, b) if m is not None], None
    matrix = given[0]
    if b is not None:
        matrix, factor = _standard(given[0], given[1], bool(lower), type)
    uplo = "L" if lower or factor is not None else "U"
    if eigvals_only:
        w = fnp.linalg.eigvalsh(matrix, uplo)
        return w[..., wanted_slice(w, subset_by_index, subset_by_value)]
    if factor is None and subset_by_index is subset_by_value is None:
        w, v = prim.scipy_eigh(matrix, lower=bool(lower), driver=driver)
        return w, v
    w, v = fnp.linalg.eigh(matrix, uplo)
    part = wanted_slice(w, subset_by_index, subset_by_value)
    w, v = w[..., part], v[..., :, part]
    if factor is not None:
        v = factor @ v if type == 3 else divide_by_triangle(factor, v, True, "C")
    by_index = None if subset_by_index is None else tuple(map(int, subset_by_index))
    by_value = None if subset_by_value is None else tuple(map(float, subset_by_value))
    limits = (("subset_by_index", by_index), ("subset_by_value", by_value))
    options = (("lower", bool(lower)), ("type", type), ("driver", driver), *limits)
    return w, v * prim.phases(v, *given, call="eigh", options=options)[..., None, :]


@mirrors
def eig(
    a: ArrayLike,
    b: ArrayLike | None = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Compute complex eigenvalues, and eigenvectors (columns of length 1), of square matrices.

    Args:
        a: matrices in the last two axes; see ``funcgrad.numpy.linalg.eig``.
        b: matrices that have an inverse, for ``a v = w b v``.
        left: whether to return left eigenvectors, those of the adjoint matrices, before the right ones.
        right: whether to return right eigenvectors.
        overwrite_a: used by SciPy alone, like ``overwrite_b`` and ``check_finite``.
        homogeneous_eigvals: whether eigenvalues are pairs of numbers, to be divided; only without ``b``.

    Raises:
        LinAlgError: a matrix is not square; ``b`` has no inverse, with traced values.
        NotDifferentiableError: ``homogeneous_eigvals`` together with ``b``, with traced values.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.eig([[2.0, 0.0], [0.0, 3.0]])[0]
        array([2.+0.j, 3.+0.j])
    """
    if homogeneous_eigvals and b is not None:
        refuse("eig", "homogeneous_eigvals with b", "Take the diagonals of qz, whose ratios are the eigenvalues.")
    known = shallow_copy(a), shallow_copy(b)
    if b is not None and is_plain(*known):  # also writable arrays that a rebuilt function made
        return import_scipy("linalg.eig", "scipy.linalg").eig(*known, left=left, right=right)
    other = None if b is None else square("eig", b)
    matrix = square("eig", a)
    try:
        matrix = matrix if other is None else solving.solve(other, matrix)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"linalg.eig: b must have an inverse where values are traced, got a singular one, {describe(other)}. Take "
            "eig(b, a), whose eigenvalues are the reciprocals."
        ) from error

    def shown(w: Array) -> Array:
        w = w + 0j
        return fnp.stack([w, fnp.ones_like(w)]) if homogeneous_eigvals else w

    pair = None if other is None else fnp.broadcast_arrays(square("eig", a), other)
    if not left and not right:
        w = fnp.linalg.eigvals(matrix)
        return shown(w if pair is None else fnp.take_along_axis(w, prim.order_of_eigenvalues(w, *pair), -1))
    w, v = fnp.linalg.eig(matrix)
    if pair is not None:
        order = prim.order_of_eigenvalues(w, *pair)
        w, v = fnp.take_along_axis(w, order, -1), fnp.take_along_axis(v, order[..., None, :], -1)
        v = _in_phase(v, pair, left=False, right=True)
    found = [shown(w)]
    if left:
        of_adjoint = adjoint(solving.inv(v))
        of_adjoint = of_adjoint if other is None else solving.solve(adjoint(other), of_adjoint)
        of_adjoint = of_adjoint / fnp.linalg.norm(of_adjoint, axis=-2, keepdims=True)
        found.append(of_adjoint if pair is None else _in_phase(of_adjoint, pair, left=True, right=False))
    return (*found, v) if right else tuple(found)


def _in_phase(v: Array, pair: Sequence[Array], **options: bool) -> Array:
    """Return eigenvectors of a pair of matrices with SciPy's phases."""
    return v * prim.phases(v, *pair, call="eig", options=tuple(options.items()))[..., None, :]
