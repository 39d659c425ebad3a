"""Eigenvalues and eigenvectors.

Signs and phases of vectors are open; those of traced values are the ones of ``funcgrad.numpy.linalg``, whose page
on decompositions says what is defined where eigenvalues coincide.
"""

from __future__ import annotations

from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.primitives import solving
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg.factors import refuse
from funcgrad.scipy.linalg.mirror import mirrors
from funcgrad.scipy.linalg.triangles import hermitian_of, square
from funcgrad.typing import Array, ArrayLike

__all__ = ["eig", "eigh"]


def _standard(a: Array, b: Array, lower: bool, type: int) -> tuple[Array, Array]:
    """The matrix with the eigenvalues of the problem of ``a`` and ``b``, and the factor ``b = L L^H``."""
    factor = solving.cholesky(hermitian_of(b, lower), upper=False)
    whole = hermitian_of(a, lower)
    if type == 1:
        half = _by(factor, whole)
        return adjoint(_by(factor, adjoint(half))), factor
    return adjoint(factor) @ whole @ factor, factor


def _by(factor: Array, x: Array, adjoint_one: bool = False) -> Array:
    part = factor.conj() if adjoint_one else factor
    return solving.solve_triangular(part, x, lower=True, transposed=adjoint_one, unit_diagonal=False)


def _chosen(name: str, count: int, by_index: Any, by_value: Any) -> slice:
    if by_value is not None:
        refuse(name, "subset_by_value", "Take subset_by_index, or choose from all with where.")
    return slice(0, count) if by_index is None else slice(int(by_index[0]), int(by_index[1]) + 1)


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
    """Eigenvalues, rising, and eigenvectors (as columns) of Hermitian matrices, or of pairs of them.

    One triangle is read. The derivative takes ``a`` for a Hermitian matrix, so its gradients are Hermitian; those of
    a pair are of the triangles that are read.

    Args:
        a: matrices in the last two axes.
        b: positive-definite ones, for ``a v = w b v``.
        lower: whether the lower triangles are read.
        eigvals_only: whether to return the eigenvalues alone.
        overwrite_a: for SciPy alone, as ``overwrite_b``, ``check_finite`` and ``driver`` are.
        overwrite_b: see ``overwrite_a``.
        type: 1 for ``a v = w b v``, 2 for ``a b v = w v``, 3 for ``b a v = w v``.
        check_finite: see ``overwrite_a``.
        subset_by_index: the first and the last of the eigenvalues that are wanted.
        subset_by_value: of plain arrays only.
        driver: see ``overwrite_a``.

    Raises:
        LinAlgError: matrices that are not square, or ``b`` not positive definite.
        NotDifferentiableError: ``subset_by_value`` of traced values.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.eigh([[2.0, 0.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 2.0]], eigvals_only=True)
        array([1.5, 2. ])
    """
    matrix, factor = square("eigh", a), None
    if b is not None:
        matrix, factor = _standard(matrix, square("eigh", b), bool(lower), type)
    part = _chosen("eigh", backend.shape_of(matrix)[-1], subset_by_index, subset_by_value)
    uplo = "L" if lower or factor is not None else "U"
    if eigvals_only:
        return fnp.linalg.eigvalsh(matrix, uplo)[..., part]
    w, v = fnp.linalg.eigh(matrix, uplo)
    w, v = w[..., part], v[..., :, part]
    if factor is not None:
        v = factor @ v if type == 3 else _by(factor, v, adjoint_one=True)
    return w, v


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
    """Eigenvalues, which are complex, and eigenvectors (columns of length 1) of square matrices.

    Args:
        a: matrices in the last two axes; see ``funcgrad.numpy.linalg.eig``.
        b: matrices that have an inverse, for ``a v = w b v``.
        left: whether to return left eigenvectors; of plain arrays only.
        right: whether to return right eigenvectors.
        overwrite_a: for SciPy alone, as ``overwrite_b`` and ``check_finite`` are.
        overwrite_b: see ``overwrite_a``.
        check_finite: see ``overwrite_a``.
        homogeneous_eigvals: of plain arrays only.

    Raises:
        LinAlgError: matrices that are not square.
        NotDifferentiableError: ``left`` or ``homogeneous_eigvals`` of traced values.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.eig([[2.0, 0.0], [0.0, 3.0]])[0]
        array([2.+0.j, 3.+0.j])
    """
    if left or homogeneous_eigvals:
        what = "left" if left else "homogeneous_eigvals"
        refuse("eig", what, "Left vectors are the right ones of the adjoint matrix.")
    matrix = square("eig", a) if b is None else solving.solve(square("eig", b), square("eig", a))
    if not right:
        return fnp.linalg.eigvals(matrix) + 0j
    w, v = fnp.linalg.eig(matrix)
    return w + 0j, v
