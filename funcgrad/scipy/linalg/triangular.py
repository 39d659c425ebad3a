"""Triangular and Hessenberg forms of a matrix, or of two, by unitary changes of basis.

With ``A = Z T adjoint(Z)`` and the skew ``X = adjoint(Z) dZ`` the derivative is ``dT = M + T X - X T``, where
``M = adjoint(Z) dA Z``. dT is zero below the diagonal, which determines X column by column, by triangular systems;
see M. Konstantinov, P. Petkov and N. Christov, "Nonlocal perturbation analysis of the Schur system of a matrix" (1994).
Therefore eigenvalues must differ, and their order is a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.optional import import_scipy
from funcgrad.primitives.products import matmul
from funcgrad.primitives.solving import adjoint, solve_triangular
from funcgrad.scipy.linalg.operations import each
from funcgrad.scipy.linalg.solving import square
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["hessenberg", "ordqz", "qz", "schur"]


def _run_scipy(name: str, xp: Any, *arrays: Any, **options: Any) -> tuple[Any, ...]:
    """Return the arrays that SciPy's function computes, one example after the other."""
    if xp is not np:
        raise InputError(f"linalg.{name}: LAPACK computes on NumPy arrays, got JAX's. Pass NumPy's, or use eig.")
    theirs = getattr(import_scipy(f"linalg.{name}", "scipy.linalg"), name)
    return tuple(each(lambda *one: theirs(*one, **options), (2,) * len(arrays), *arrays))


def _with_column(below: Array, column: Array) -> Array:
    """Return the columns ``below`` and one more, whose first entries, above ``column``, are zero."""
    above = [(below.shape[-2] - column.shape[-2], 0), (0, 0)]
    return fnp.concatenate([below, fnp.pad(column, [(0, 0)] * (column.ndim - 2) + above)], axis=-1)


def _skew(below: Array) -> Array:
    """Return the skew matrix with these columns below its diagonal: all columns but the last, which is zero."""
    below = fnp.pad(below, [(0, 0)] * (below.ndim - 1) + [(0, 1)])
    return below - adjoint(below)


def _by_triangle(s: Array, right: Array) -> Array:
    return solve_triangular(s, right, lower=False, transposed=False, unit_diagonal=False)


# ---- Schur's form ------------------------------------------------------------------------------------------


def _skew_generator(s: Array, m: Array) -> Array:
    """Return the skew X for which ``m + s X - X s`` is zero below the diagonal."""
    n = s.shape[-1]
    below = s[..., :0]
    for j in range(n - 1):
        right = matmul(below[..., j + 1 :, :], s[..., :j, j, None]) - m[..., j + 1 :, j, None]
        moved = s[..., j + 1 :, j + 1 :] - s[..., j, j, None, None] * np.eye(n - j - 1)
        below = _with_column(below, _by_triangle(moved, right))
    return _skew(below)


#: ``pairs(t)``: 1 where an entry below the diagonal of a real form is not zero, so two eigenvalues are conjugate.
pairs: Operation = nondifferentiable(
    "pairs", lambda xp, t: (xp.diagonal(t, -1, -2, -1) != 0).astype(t.dtype), batch="leading"
)


def _diagonal_matrix(x: Array, k: int) -> Array:
    """Return the matrix with ``x`` on its ``k``-th diagonal."""
    row = fnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(int(k > 0), int(k < 0))])
    return row[..., None, :] * np.eye(x.shape[-1] + 1, k=k)


def _real_skew_generator(t: Array, m: Array) -> Array:
    """Return the skew X of ``_skew_generator`` for the real form, where conjugate eigenvalues have blocks of two rows.

    A block is triangular in complex numbers, which determines all of X outside of the block. Inside, X keeps the two
    entries on the diagonal equal, as LAPACK does.
    """
    pair = pairs(t)
    upper, lower = fnp.diagonal(t, 1, -2, -1), fnp.diagonal(t, -1, -2, -1)
    b, c = fnp.where(pair, upper, 1.0), fnp.where(pair, lower, -1.0)
    size = fnp.sqrt(b * (b - c))
    cos, sin = fnp.where(pair, b / size, 1.0), fnp.where(pair, fnp.sqrt(-b * c) / size, 0.0)
    turn = _diagonal_matrix(sin, 1) * 1j + _diagonal_matrix(sin, -1) * 1j + _block_diagonal(cos)
    s, of_m = (matmul(adjoint(turn), matmul(a, turn)) for a in (t, m))
    x = matmul(turn, matmul(_skew_generator(s, of_m), adjoint(turn))).real
    inside = _diagonal_matrix(pair, 1) + _diagonal_matrix(pair, -1)
    x = x * (1 - inside)
    rest = fnp.diagonal(m + matmul(t, x) - matmul(x, t), 0, -2, -1)
    rate = fnp.where(pair, rest[..., 1:] - rest[..., :-1], 0.0) / fnp.where(pair, 2 * (b + c), 1.0)
    return x + _diagonal_matrix(rate, -1) - _diagonal_matrix(rate, 1)


def _block_diagonal(x: Array) -> Array:
    """Return the diagonal matrix that has ``x`` in both rows of a block, and 1 outside of blocks."""
    ones = np.ones((*x.shape[:-1], 1))
    diagonal = fnp.concatenate([x, ones], axis=-1) * fnp.concatenate([ones, x], axis=-1)
    return diagonal[..., None, :] * np.eye(x.shape[-1] + 1)


def _schur_jvp(dx: Array, ans: Any, *, output: str, sort: Any) -> list[Array]:
    t, z = ans[:2]
    m = matmul(adjoint(z), matmul(dx, z))
    is_real = backend.dtype_of(t).kind == "f"
    x = _real_skew_generator(t, m) if is_real else _skew_generator(t, m)
    moved = m + matmul(t, x) - matmul(x, t)
    kept = fnp.triu(moved) + (_diagonal_matrix(fnp.diagonal(moved, -1, -2, -1) * pairs(t), -1) if is_real else 0)
    return [kept, matmul(z, x), *[backend.zeros_like(part) for part in ans[2:]]]


#: ``schur(x, *, output, sort)``: SciPy's T and Z, and with ``sort`` the number of eigenvalues that come first.
_schur: Operation = primitive(
    "schur",
    lambda xp, x, **options: _run_scipy("schur", xp, x, **options),
    jvps=[_schur_jvp],
    batch="leading",
    multiple=True,
)


@mirrors
def schur(
    a: ArrayLike,
    output: str = "real",
    lwork: int | None = None,
    overwrite_a: bool = False,
    sort: Any = None,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Compute Schur's form ``a = Z @ T @ Z^H``: Z unitary, T upper triangular with the eigenvalues on its diagonal.

    A real T has a block of two rows for each pair of conjugate eigenvalues. The derivative needs eigenvalues that
    differ, and ``b + c`` that is not 0 for a block ``[[a, b], [c, a]]``. The derivative leaves the phases of the
    columns of a complex Z unchanged.

    Args:
        a: matrices in the last two axes.
        output: "real" or "complex", the form of real matrices.
        lwork: used by SciPy alone, like ``overwrite_a`` and ``check_finite``.
        sort: which eigenvalues come first: "lhp", "rhp", "iuc", "ouc", or a function, as in SciPy.

    Returns:
        T and Z, and with ``sort`` the number of eigenvalues that come first.

    Raises:
        LinAlgError: a matrix is not square; in a derivative, eigenvalues are equal.
        InputError: ``a`` is a JAX array.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda a: linalg.schur(a)[0][1, 1])(np.array([[1.0, 2.0], [0.0, 3.0]]))
        array([[0., 0.],
               [1., 1.]])
    """
    a = square("schur", a)
    kind = backend.dtype_of(a).kind
    if kind == "f" and output in ("complex", "c"):
        a = a * (1 + 0j)
    found: tuple[Array, ...] = tuple(_schur(a, output=output, sort=sort))
    return found


# ---- Hessenberg's form -------------------------------------------------------------------------------------


def _hessenberg_jvp(dx: Array, ans: Any) -> list[Array]:
    """Return tangents of H and Q: Q's first column is fixed, others follow; entries below the diagonal stay real."""
    h, q = ans
    n = h.shape[-1]
    m = matmul(adjoint(q), matmul(dx, q))
    x = h * 0
    is_complex = h.dtype.kind == "c"
    for j in range(n - 2 + is_complex if n > 2 else 0):  # smaller matrices have this form already
        residual = m[..., :, j, None] + matmul(h, x[..., :, j, None]) - matmul(x, h[..., :, j, None])
        below = h[..., j + 1, j, None, None]
        column = residual / fnp.where(below == 0, np.nan, below)
        at = np.arange(n) == j + 1
        moved = fnp.where((np.arange(n) > j + 1)[:, None] & at, column, 0.0)
        x = x + moved - adjoint(moved)
        if is_complex:
            x = x + 1j * fnp.where(np.diag(at), column[..., j + 1, None, :].imag, 0.0)
    moved = m + matmul(h, x) - matmul(x, h)
    return [fnp.triu(moved, -1), matmul(q, x)]


_hessenberg: Operation = primitive(
    "hessenberg",
    lambda xp, x: _run_scipy("hessenberg", xp, x, calc_q=True),
    jvps=[_hessenberg_jvp],
    batch="leading",
    multiple=True,
)


@mirrors
def hessenberg(a: ArrayLike, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Compute Hessenberg's form ``a = Q @ H @ Q^H``: Q is unitary, H is zero below its first subdiagonal.

    The derivative needs a first subdiagonal without zeros.

    Args:
        a: matrices in the last two axes.
        calc_q: whether to return H and Q, or H alone.
        overwrite_a: used by SciPy alone, like ``check_finite``.

    Raises:
        LinAlgError: a matrix is not square.
        InputError: ``a`` is a JAX array.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda a: linalg.hessenberg(a)[0, 0])(np.eye(3) + 1.0)[0]
        array([1., 0., 0.])
    """
    found: tuple[Array, Array] = tuple(_hessenberg(square("hessenberg", a)))
    return found if calc_q else found[0]


# ---- two matrices ------------------------------------------------------------------------------------------


def _qz_moved(s: Array, t: Array, m: Array, n: Array) -> list[Array]:
    """Return the tangents of ``s``, ``t`` and both bases: ``m + s Y - X s`` and ``n + t Y - X t`` stay triangular."""
    size = s.shape[-1]
    left = right = s[..., :0]
    for j in range(size - 1):
        of_s = matmul(left[..., j + 1 :, :], s[..., :j, j, None]) - m[..., j + 1 :, j, None]
        of_t = matmul(left[..., j + 1 :, :], t[..., :j, j, None]) - n[..., j + 1 :, j, None]
        a, b = s[..., j, j, None, None], t[..., j, j, None, None]
        s_rest, t_rest = s[..., j + 1 :, j + 1 :], t[..., j + 1 :, j + 1 :]
        y = _by_triangle(b * s_rest - a * t_rest, b * of_s - a * of_t)
        both = fnp.conj(a) * (matmul(s_rest, y) - of_s) + fnp.conj(b) * (matmul(t_rest, y) - of_t)
        left = _with_column(left, both / (fnp.abs(a) ** 2 + fnp.abs(b) ** 2))
        right = _with_column(right, y)
    x, y = _skew(left), _skew(right)
    if s.dtype.kind == "c":  # the diagonal of T stays real
        diagonal = fnp.diagonal(t, 0, -2, -1).real
        phase = fnp.diagonal(n + matmul(t, y) - matmul(x, t), 0, -2, -1).imag / fnp.where(diagonal == 0, 1.0, diagonal)
        x = x + phase[..., None, :] * 1j * np.eye(size)
    return [fnp.triu(m + matmul(s, y) - matmul(x, s)), fnp.triu(n + matmul(t, y) - matmul(x, t)), x, y]


def _qz_jvp(place: int) -> Callable[..., list[Array]]:
    def jvp(dx: Array, ans: Any, *, output: str, sort: Any) -> list[Array]:
        s, t, q, z = ans
        if backend.dtype_of(s).kind == "f" and any_true(lambda pair: pair != 0, pairs(s)):
            raise NotDifferentiableError(
                "linalg.qz: a real form with a pair of conjugate eigenvalues has no derivative rule, got "
                "output='real'. Pass output='complex'."
            )
        m = matmul(adjoint(q), matmul(dx, z))
        ds, dt, x, y = _qz_moved(s, t, *((m, m * 0) if place == 0 else (m * 0, m)))
        return [ds, dt, matmul(q, x), matmul(z, y)]

    return jvp


def _qz_impl(xp: Any, x: Any, y: Any, *, output: str, sort: Any) -> tuple[Any, ...]:
    if sort is None:
        return _run_scipy("qz", xp, x, y, output=output)
    s, t, _, _, q, z = _run_scipy("ordqz", xp, x, y, output=output, sort=sort)
    return s, t, q, z


_qz: Operation = primitive("qz", _qz_impl, jvps=[_qz_jvp(0), _qz_jvp(1)], batch="leading", multiple=True)


def _pair_of(name: str, A: ArrayLike, B: ArrayLike, output: str, sort: Any) -> tuple[Array, ...]:
    A, B = square(name, A), square(name, B)
    if output in ("complex", "c") or "c" in (backend.dtype_of(A).kind, backend.dtype_of(B).kind):
        A, B = A * (1 + 0j), B * (1 + 0j)
    if backend.shape_of(A) != backend.shape_of(B):  # a batch broadcasts both along their leading axes
        A, B = fnp.broadcast_arrays(A, B)
    found: tuple[Array, ...] = tuple(_qz(A, B, output=output, sort=sort))
    return found


@mirrors
def qz(
    A: ArrayLike,
    B: ArrayLike,
    output: str = "real",
    lwork: int | None = None,
    sort: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Compute Schur's form of two matrices, ``A = Q @ AA @ Z^H``, ``B = Q @ BB @ Z^H``: AA, BB upper triangular.

    Ratios of the diagonals are the eigenvalues of ``A v = w B v``, which must differ for a derivative. See ``schur``.

    Args:
        A: matrices in the last two axes.
        B: matrices of the same shape.
        output: "real" or "complex". The derivative of a real form needs real eigenvalues.
        lwork: used by SciPy alone, like ``overwrite_a``, ``overwrite_b`` and ``check_finite``.
        sort: None; see ``ordqz``.

    Returns:
        AA, BB, Q and Z.

    Raises:
        LinAlgError: a matrix is not square.
        ValueError: ``sort`` is given.
        InputError: an argument is a JAX array.
        NotDifferentiableError: in a derivative, a real form has a pair of conjugate eigenvalues.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda a: linalg.qz(a, np.eye(2))[0][1, 1])(np.array([[1.0, 2.0], [0.0, 3.0]])).round(12) + 0
        array([[0., 0.],
               [1., 1.]])
    """
    if sort is not None:
        raise ValueError(f"qz: sort is None, got {sort!r}. Use ordqz.")
    return _pair_of("qz", A, B, output, None)


@mirrors
def ordqz(
    A: ArrayLike,
    B: ArrayLike,
    sort: Any = "lhp",
    output: str = "real",
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Compute ``qz`` with chosen eigenvalues first, and alpha and beta, whose ratios are the eigenvalues.

    Args:
        A: matrices in the last two axes.
        B: matrices of the same shape.
        sort: which eigenvalues come first: "lhp", "rhp", "iuc", "ouc", or a function of alpha and beta.
        output: see ``qz``.
        overwrite_a: used by SciPy alone, like ``overwrite_b`` and ``check_finite``.

    Returns:
        AA, BB, alpha, beta, Q and Z.

    Raises:
        LinAlgError: a matrix is not square.
        InputError: an argument is a JAX array.
        NotDifferentiableError: a real form has a pair of conjugate eigenvalues.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> grad(lambda a: linalg.ordqz(a, np.eye(2), "rhp")[2][0].real)(np.diag([-1.0, 3.0])).round(12) + 0
        array([[0., 0.],
               [0., 1.]])
    """
    s, t, q, z = _pair_of("ordqz", A, B, output, sort)
    if backend.dtype_of(s).kind == "f" and any_true(lambda pair: pair != 0, pairs(s)):
        raise NotDifferentiableError(
            "linalg.ordqz: alpha and beta of a real form with a pair of conjugate eigenvalues have no derivative rule, "
            "got output='real'. Pass output='complex'."
        )
    alpha, beta = (fnp.diagonal(part, 0, -2, -1) for part in (s, t))
    return s, t, alpha * (1 + 0j), beta, q, z
