"""Inverses, systems of equations, least squares, determinants and norms; matrices of which one triangle is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.kinds.linear import astype
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.linalg.solving import check_square
from funcgrad.numpy.reducing import as_floating
from funcgrad.primitives import solving
from funcgrad.primitives.products import swap_last_axes
from funcgrad.primitives.shaping import tril, triu
from funcgrad.primitives.solving import adjoint
from funcgrad.scipy.linalg import operations as prim
from funcgrad.scipy.linalg.matrices import toeplitz
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "det", "inv", "lstsq", "pinv", "solve", "solve_banded", "solve_toeplitz", "solve_triangular", "solveh_banded",
    "cho_factor", "cho_solve", "cholesky",
]  # fmt: skip


#: Dtypes of which LAPACK has no functions, and those that SciPy takes for them.
_OF_LAPACK = {"e": "f", "g": "d", "G": "D"}


def floating(a: ArrayLike) -> Array:
    """Return ``a`` in a dtype that LAPACK has: integers become floating numbers, half precision becomes single.

    Extended precision becomes double.

    Example:
        >>> floating([1, 2])
        array([1., 2.])
    """
    a = as_floating(as_value(a))
    to = _OF_LAPACK.get(backend.dtype_of(a).char)
    return astype(a, to=np.dtype(to)) if to else a


def double(a: Array) -> Array:
    """Return ``a`` in double precision, in which SciPy computes some functions."""
    return astype(a, to=np.result_type(backend.dtype_of(a), np.float64))


def square(name: str, a: ArrayLike, numbers: bool = False) -> Array:
    """Return ``a`` as floating numbers, after a check that its matrices are square.

    With ``numbers``, one number counts as a matrix, as in some functions of SciPy.

    Raises:
        LinAlgError: there are fewer than two axes, or the last two have different lengths.

    Example:
        >>> square("inv", [[2]])
        array([[2.]])
    """
    a = as_value(a)
    return floating(check_square(name, fnp.atleast_2d(a) if numbers and not backend.shape_of(a) else a))


def symmetric_of(a: Array, lower: bool) -> Array:
    """Return the symmetric matrix of one triangle of ``a``."""
    return tril(a, k=0) + swap_last_axes(tril(a, k=-1)) if lower else triu(a, k=0) + swap_last_axes(triu(a, k=1))


def hermitian_of(a: Array, lower: bool) -> Array:
    """Return the Hermitian matrix of one triangle of ``a``."""
    if backend.dtype_of(a).kind != "c":
        return symmetric_of(a, lower)
    strict = tril(a, k=-1) if lower else triu(a, k=1)
    return strict + adjoint(strict) + np.eye(a.shape[-1], dtype=np.int8) * a.real


@mirrors
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the triangular factors of Hermitian positive-definite matrices: ``a = U^H U``, or ``a = L L^H``.

    One triangle is read, and only that triangle has a derivative. In contrast, ``funcgrad.numpy.linalg.cholesky``
    assumes a Hermitian matrix, and its gradients are Hermitian.

    Args:
        a: matrices in the last two axes.
        lower: whether to read the lower triangle and return L.
        overwrite_a: used by SciPy alone, like ``check_finite``.

    Raises:
        LinAlgError: a matrix is not positive definite, or not square. JAX arrays give NaN for the former.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cholesky([[4.0, 2.0], [2.0, 10.0]])
        array([[2., 1.],
               [0., 3.]])
    """
    return solving.cholesky(hermitian_of(square("cholesky", a, numbers=True), bool(lower)), upper=not lower)


@mirrors
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Return the Cholesky factor for ``cho_solve``, and ``lower``.

    The other triangle is never read: SciPy leaves arbitrary values in it; for traced values it is zero.

    Args:
        a: matrices in the last two axes, of which one triangle is read.
        lower: whether the lower triangle is read.
        overwrite_a: used by SciPy alone, like ``check_finite``.

    Raises:
        LinAlgError: a matrix is not positive definite, or not square. JAX arrays give NaN for the former.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cho_solve(linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 10.0]])), np.array([6.0, 12.0])).round(12)
        array([1., 1.])
    """
    return cholesky(a, lower), lower


@mirrors
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Return the solution ``x`` of ``a @ x = b``, given the Cholesky factor of ``a``.

    Args:
        c_and_lower: the result of ``cho_factor``. Only the triangle has a derivative.
        b: a vector, or matrices of right-hand sides.
        overwrite_b: used by SciPy alone, like ``check_finite``.

    Raises:
        ValueError: lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cho_solve(([[2.0, 1.0], [0.0, 3.0]], False), [6.0, 12.0]).round(12)
        array([1., 1.])
    """
    factor, lower = square("cho_solve", c_and_lower[0]), bool(np.all(c_and_lower[1]))  # SciPy's is an array for a batch
    first, second = "NC" if lower else "CN"

    def solved(x: Array) -> Array:
        return divide_by_triangle(factor, divide_by_triangle(factor, x, lower, first), lower, second)

    return in_columns("cho_solve", b, backend.shape_of(factor)[-1], solved)


#: Entries that are read of a matrix under each name of ``assume_a``.
_READ: dict[Any, Any] = {
    None: lambda a, lower: a,
    "general": lambda a, lower: a,
    "diagonal": lambda a, lower: triu(tril(a, k=0), k=0),
    "tridiagonal": lambda a, lower: triu(tril(a, k=1), k=-1),
    "banded": lambda a, lower: a,
    "upper triangular": lambda a, lower: triu(a, k=0),
    "lower triangular": lambda a, lower: tril(a, k=0),
    "symmetric": symmetric_of,
    "hermitian": hermitian_of,
    "positive definite": hermitian_of,
}
_SHORT = {"gen": "general", "sym": "symmetric", "her": "hermitian", "pos": "positive definite"}
_TRANS: dict[Any, str] = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def _read(call: str, a: Array, assume_a: Any, lower: bool) -> Array:
    name = _SHORT.get(assume_a, assume_a)
    if name not in _READ:
        raise ValueError(
            f"{call}: assume_a must be the name of a structure, got {assume_a!r}. Pass None or one of "
            f"{', '.join(map(repr, (*_SHORT, *list(_READ)[1:])))}."
        )
    return _READ[name](a, bool(lower))


def transposition(call: str, trans: Any) -> str:
    """Return the letter N, T or C for SciPy's ``trans``."""
    if trans not in _TRANS:
        raise ValueError(f"{call}: trans is 0, 1, 2, 'N', 'T' or 'C', got {trans!r}. Give one of them.")
    return _TRANS[trans]


def in_columns(call: str, b: ArrayLike, rows: int, solve: Callable[[Array], Array]) -> Array:
    """Return ``solve`` of right-hand sides in columns; of one vector it is a vector."""
    b = floating(b)
    shape = backend.shape_of(b)
    if not shape or shape[-2:][0] != rows:
        raise ValueError(
            f"{call}: b must have a row for each of {rows} equations, got {describe(b)}. The rows are along the "
            "last axis but one, or along the only axis."
        )
    return solve(b[:, None])[..., 0] if len(shape) == 1 else solve(b)


def divide_by_triangle(a: Array, x: Array, lower: bool, letter: str = "N", unit: bool = False) -> Array:
    """Return the solution of equations with a triangle of ``a`` (N), of its transposed (T) or adjoint (C) matrix."""
    a = a.conj() if letter == "C" else a
    return solving.solve_triangular(a, x, lower=lower, transposed=letter != "N", unit_diagonal=unit)


@mirrors
def inv(
    a: ArrayLike,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Array:
    """Compute the inverses of square matrices.

    Args:
        a: matrices in the last two axes.
        overwrite_a: used by SciPy alone, like ``check_finite``.
        assume_a: a structure; see ``solve``.
        lower: whether the lower triangle of symmetric and Hermitian matrices is read.

    Raises:
        LinAlgError: a matrix is singular, or not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.inv([[2.0, 1.0], [1.0, 1.0]])
        array([[ 1., -1.],
               [-1.,  2.]])
    """
    return solving.inv(_read("inv", square("inv", a), assume_a, lower))


@mirrors
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Array:
    """Return the solution ``x`` of the linear equations ``a @ x = b``.

    Args:
        a: square matrices in the last two axes; the axes before them broadcast against those of ``b``.
        b: a vector if it has exactly one axis; otherwise matrices, each column a right-hand side.
        lower: whether the lower triangle of symmetric and Hermitian matrices is read.
        overwrite_a: used by SciPy alone, like ``overwrite_b`` and ``check_finite``.
        assume_a: structure of ``a``: "gen", "diagonal", "tridiagonal", "banded", "upper triangular",
            "lower triangular", "sym", "her", "pos", or the long names of these. Entries that the structure does not
            read have derivative zero; the derivative of an entry that is read twice is the sum of both.
        transposed: whether to solve with the transposed matrix.

    Raises:
        LinAlgError: a matrix is singular, or not square.
        ValueError: the structure is unknown, or lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0])
        array([1., 2.])
    """
    matrix = _read("solve", square("solve", a, numbers=True), assume_a, lower)
    matrix = matrix.mT if transposed else matrix
    b = fnp.atleast_1d(b)
    return in_columns("solve", b, backend.shape_of(matrix)[-1], lambda x: solving.solve(matrix, x))


@mirrors
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the solution ``x`` of ``a @ x = b`` for triangular matrices.

    Only the triangle is read and has a derivative; with ``unit_diagonal`` the diagonal has none.

    Args:
        a: square matrices in the last two axes.
        b: a vector, or matrices of right-hand sides.
        trans: 0 or "N"; 1 or "T" to solve with the transposed matrix; 2 or "C" with the adjoint matrix.
        lower: whether the lower triangle is read.
        unit_diagonal: whether ones replace the diagonal.
        overwrite_b: used by SciPy alone, like ``check_finite``.

    Raises:
        LinAlgError: a matrix is singular, or not square.
        ValueError: ``trans`` is unknown, or lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_triangular([[2.0, 9.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
        array([1., 2.])
    """
    matrix = square("solve_triangular", a)
    triangle = bool(lower), transposition("solve_triangular", trans), bool(unit_diagonal)
    rows = backend.shape_of(matrix)[-1]
    return in_columns("solve_triangular", b, rows, lambda x: divide_by_triangle(matrix, x, *triangle))


@mirrors
def solve_banded(
    l_and_u: tuple[int, int],
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the solution ``x`` of ``a @ x = b`` for banded matrices.

    Neither the solution nor a derivative builds the whole matrix, except for JAX arrays.

    Args:
        l_and_u: the numbers of diagonals below and above the main one.
        ab: the diagonals as rows, the highest first: ``ab[u + i - j, j] = a[i, j]``.
        b: a vector, or matrices of right-hand sides.
        overwrite_ab: used by SciPy alone, like ``overwrite_b`` and ``check_finite``.

    Raises:
        LinAlgError: a matrix is singular.
        ValueError: numbers of diagonals or lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_banded((1, 0), [[2.0, 1.0], [1.0, 0.0]], [2.0, 3.0])
        array([1., 2.])
    """
    lower, upper = map(int, l_and_u)
    bands = floating(ab)
    shape = backend.shape_of(bands)
    if len(shape) < 2 or shape[-2] != lower + upper + 1:
        raise ValueError(
            f"solve_banded: ab has a row for each of l + u + 1 = {lower + upper + 1} diagonals, got {describe(bands)}. "
            "Check l_and_u."
        )
    return in_columns("solve_banded", b, shape[-1], lambda x: prim.solve_banded(bands, x, lower=lower, upper=upper))


@mirrors
def solveh_banded(
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the solution ``x`` of ``a @ x = b`` for Hermitian positive-definite banded matrices.

    Args:
        ab: the diagonals of one triangle as rows: ``ab[u + i - j, j] = a[i, j]`` for the upper one,
            ``ab[i - j, j] = a[i, j]`` for the lower.
        b: a vector, or matrices of right-hand sides.
        overwrite_ab: used by SciPy alone, like ``overwrite_b`` and ``check_finite``.
        lower: whether ``ab`` has the lower triangle.

    Raises:
        LinAlgError: a matrix is singular; for plain arrays also if it is not positive definite.
        ValueError: lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solveh_banded([[0.0, 1.0], [2.0, 2.0]], [4.0, 5.0])
        array([1., 2.])
    """
    bands = floating(ab)
    rows = backend.shape_of(bands)[-2]
    others = prim.banded_transposed(bands, rows - 1, 0) if lower else prim.banded_transposed(bands, 0, rows - 1)
    main = others[..., -1:, :] if lower else others[..., :1, :]
    if backend.dtype_of(bands).kind == "c":
        others, main = others.conj(), main.real
    others, own = (others[..., :-1, :], bands[..., 1:, :]) if lower else (others[..., 1:, :], bands[..., :-1, :])
    whole = [others, main, own] if lower else [own, main, others]
    return solve_banded((rows - 1, rows - 1), fnp.concatenate(whole, axis=-2), b)


@mirrors
def solve_toeplitz(c_or_cr: Any, b: ArrayLike, check_finite: bool = True) -> Array:
    """Return the solution ``x`` of ``toeplitz(c, r) @ x = b``.

    Args:
        c_or_cr: the first column c, or a pair of the first column c and the first row r.
        b: a vector, or matrices of right-hand sides.
        check_finite: used by SciPy alone.

    Raises:
        LinAlgError: the matrix is singular.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_toeplitz(([2.0, 1.0], [2.0, 0.0]), [2.0, 3.0]).round(12)
        array([1., 1.])
    """
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return solve(double(toeplitz(c, r)), b)


@mirrors
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinants of square matrices, with gradients that are exact at singular matrices too.

    Args:
        a: matrices in the last two axes.
        overwrite_a: used by SciPy alone, like ``check_finite``.

    Raises:
        LinAlgError: a matrix is not square.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.det([[2.0, 1.0], [0.0, 3.0]])
        np.float64(6.0)
    """
    return fnp.linalg.det(double(square("det", a)))


@mirrors
def pinv(
    a: ArrayLike,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Compute the Moore-Penrose pseudo-inverse; its derivative is taken at constant rank.

    Args:
        a: matrices in the last two axes.
        atol: singular values up to ``atol + rtol * largest`` count as zero.
        rtol: see ``atol``; the larger side of the matrix times the dtype's epsilon, if neither is given.
        return_rank: whether to return the rank too.
        check_finite: used by SciPy alone.

    Raises:
        ValueError: a tolerance is negative.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
        array([[0.5, 0. ],
               [0. , 0. ]])
    """
    a = floating(a)
    atol = 0.0 if atol is None else atol
    if rtol is None:
        rtol = max(backend.shape_of(a)[-2:]) * float(np.finfo(backend.dtype_of(a)).eps) if atol == 0 else 0.0
    if atol < 0 or rtol < 0:
        raise ValueError(f"pinv: tolerances are not negative, got atol={atol} and rtol={rtol}. Give positive ones.")
    share: Any = rtol
    if not atol and not return_rank:
        return fnp.linalg.pinv(a, share)
    values = fnp.linalg.svdvals(a)
    largest = fnp.max(values, axis=-1, initial=0.0)
    if atol:
        share = rtol + atol / fnp.where(largest > 0, largest, 1.0)
    inverse = fnp.linalg.pinv(a, share)
    return (inverse, fnp.sum(values > (share * largest)[..., None], -1)) if return_rank else inverse


@mirrors
def lstsq(
    a: ArrayLike,
    b: ArrayLike,
    cond: float | None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: str | None = None,
) -> tuple[Array, Array, Any, Array]:
    """Compute least squares solutions of ``a @ x = b``; if there are several, the smallest.

    Args:
        a: a matrix (M, N).
        b: a vector (M,), or right-hand sides as columns (M, K).
        cond: singular values up to this share of the largest count as zero; the default is the dtype's epsilon.
        overwrite_a: used by SciPy alone, like ``overwrite_b``, ``check_finite`` and ``lapack_driver``.

    Returns:
        The solution; the squared residuals, empty unless ``a`` has full rank and M > N; the rank; the singular
        values. Derivatives are taken at constant rank.

    Raises:
        LinAlgError: ``a`` is not a matrix, or ``b`` has another number of rows.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0].round(12)
        array([2.])
    """
    a, b = floating(a), floating(b)
    unit = float(np.finfo(np.result_type(backend.dtype_of(a), backend.dtype_of(b), np.float32)).eps)
    x, residuals, rank, s = fnp.linalg.lstsq(a, b, unit if cond is None else cond)
    if len(backend.shape_of(b)) == 1 and backend.shape_of(residuals) == (1,):
        residuals = residuals[0]
    return x, residuals, rank, s
