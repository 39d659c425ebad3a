"""Structured matrices: systems solved by Fourier transforms; tridiagonal and banded matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.scipy.linalg import operations as prim
from funcgrad.scipy.linalg.factors import refuse
from funcgrad.scipy.linalg.solving import floating, hermitian_of, in_columns, pinv, square
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["cho_solve_banded", "eigh_tridiagonal", "pinvh", "solve_circulant"]


@mirrors
def pinvh(
    a: ArrayLike,
    atol: float | None = None,
    rtol: float | None = None,
    lower: bool = True,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the pseudo-inverse of Hermitian matrices, of which one triangle is read; see ``pinv``.

    Args:
        a: matrices in the last two axes.
        atol: eigenvalues whose absolute value is at most ``atol + rtol * largest`` count as zero.
        rtol: see ``atol``; the number of rows times the dtype's epsilon, if neither is given.
        lower: whether the lower triangles are read.
        return_rank: whether to return the rank too.
        check_finite: used by SciPy alone.

    Raises:
        LinAlgError: a matrix is not square.
        ValueError: a tolerance is negative.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.pinvh([[2.0, 0.0], [0.0, 0.0]])
        array([[0.5, 0. ],
               [0. , 0. ]])
    """
    return pinv(hermitian_of(square("pinvh", a), bool(lower)), atol=atol, rtol=rtol, return_rank=return_rank)


@mirrors
def solve_circulant(
    c: ArrayLike,
    b: ArrayLike,
    singular: str = "raise",
    tol: float | None = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Array:
    """Return the solution ``x`` of ``circulant(c) @ x = b``, by Fourier transforms.

    Args:
        c: first columns.
        b: right-hand sides.
        singular: "raise", or "lstsq" for the smallest least squares solution; its derivative is at constant rank.
        tol: eigenvalues up to this size count as zero; if not given, a multiple of the largest one's rounding error.
        caxis: the axis of ``c`` that holds a column.
        baxis: the axis of ``b`` that holds a right-hand side.
        outaxis: the axis of the result that holds a solution.

    Raises:
        LinAlgError: the matrix is singular. Under ``jax.jit``, where values are unknown, it gives infinities instead.
        ValueError: lengths differ.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.solve_circulant([2.0, 1.0, 0.0], [5.0, 5.0, 8.0]).round(12)
        array([1., 2., 3.])
    """
    columns = fnp.moveaxis(fnp.atleast_1d(floating(c)), caxis, -1)
    right = fnp.moveaxis(fnp.atleast_1d(floating(b)), baxis, -1)
    n = backend.shape_of(columns)[-1]
    if backend.shape_of(right)[-1] != n:
        raise ValueError(f"solve_circulant: c and b differ in length, got {describe(c)} and {describe(b)}. Check them.")
    values = fnp.fft.fft(columns)
    fraction = n * np.finfo(np.float64).eps

    def zeros(values: Any) -> Any:
        sizes = fnp.abs(values)
        return sizes <= (fraction * fnp.max(sizes, axis=-1, keepdims=True) if tol is None else tol)

    if singular == "lstsq":
        zero = zeros(values)
        quotient = fnp.where(zero, 0.0, fnp.fft.fft(right) / fnp.where(zero, 1.0, values))
    else:
        if any_true(zeros, values):
            raise np.linalg.LinAlgError("solve_circulant: the matrix is singular, got eigenvalues of 0. Take 'lstsq'.")
        quotient = fnp.fft.fft(right) / values
    x = fnp.fft.ifft(quotient)
    is_complex = "c" in {backend.dtype_of(columns).kind, backend.dtype_of(right).kind}
    return fnp.moveaxis(x if is_complex else x.real, -1, outaxis)


@mirrors
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: Any = None,
    check_finite: bool = True,
    tol: float = 0.0,
    lapack_driver: str = "auto",
) -> Any:
    """Compute eigenvalues, ascending, and eigenvectors of a real symmetric tridiagonal matrix; see ``eigh``.

    For traced values the whole matrix is built.

    Args:
        d: the diagonal (N,).
        e: the diagonal next to it (N-1,). Axes before the last are batches.
        eigvals_only: whether to return the eigenvalues alone.
        select: "a" for all, "i" for those with the indices of ``select_range``; "v" for plain arrays only.
        select_range: the first and the last index of the wanted eigenvalues.
        check_finite: used by SciPy alone, like ``tol`` and ``lapack_driver``.

    Raises:
        ValueError: lengths do not match.
        NotDifferentiableError: ``select="v"`` with traced values.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.eigh_tridiagonal([2.0, 2.0], [1.0], eigvals_only=True)
        array([1., 3.])
    """
    if select in ("v", "value", 1):
        refuse("eigh_tridiagonal", "select='v'", "Take select='i', or choose from all with where.")
    chosen = select_range if select in ("i", "index", 2) else None
    d, e = floating(d), floating(e)
    batch, n = backend.shape_of(d)[:-1], (*backend.shape_of(d), 0)[len(backend.shape_of(d)) - 1]
    if not backend.shape_of(d) or backend.shape_of(e) != (*batch, n - 1):
        raise ValueError(
            f"eigh_tridiagonal: e must be one shorter than d, got {describe(d)} and {describe(e)}. Check them."
        )
    above = fnp.pad(e[..., None] * np.eye(n - 1, dtype=np.int8), (*[(0, 0)] * len(batch), (0, 1), (1, 0)))
    whole = d[..., None] * np.eye(n, dtype=np.int8) + above + fnp.swapaxes(above, -1, -2)
    w, v = fnp.linalg.eigh(whole)
    part = slice(None) if chosen is None else slice(int(chosen[0]), int(chosen[1]) + 1)
    w, v = w[..., part], v[..., :, part]
    if eigvals_only:
        return w
    limits = None if chosen is None else tuple(map(int, chosen))
    options = (("select", "a" if chosen is None else "i"), ("select_range", limits), ("lapack_driver", lapack_driver))
    return w, v * prim.phases(v, d, e, call="eigh_tridiagonal", options=options)[..., None, :]


@mirrors
def cho_solve_banded(
    cb_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Return the solution ``x`` of ``a @ x = b``, given the Cholesky factor of a banded matrix.

    Args:
        cb_and_lower: the diagonals of the factor as rows, as ``scipy.linalg.cholesky_banded`` returns them, and
            whether the factor is the lower one.
        b: a vector, or a matrix of right-hand sides.
        overwrite_b: used by SciPy alone, like ``check_finite``.

    Raises:
        ValueError: lengths do not match.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.cho_solve_banded(([[0.0, 1.0], [2.0, 3.0]], False), [6.0, 12.0])
        array([1., 1.])
    """
    bands, lower = floating(as_value(cb_and_lower[0])), bool(cb_and_lower[1])
    others = backend.shape_of(bands)[-2] - 1
    below, above = (others, 0) if lower else (0, others)
    turned = fnp.conjugate(prim.banded_transposed(bands, below, above))
    parts = [(bands, below, above), (turned, above, below)]

    def solved(x: Array) -> Array:
        for part, down, up in parts if lower else reversed(parts):
            x = prim.solve_banded(part, x, lower=down, upper=up)
        return x

    return in_columns("cho_solve_banded", b, backend.shape_of(bands)[-1], solved)
