"""Functions of ``scipy.linalg`` for one matrix that call LAPACK and are not in ``funcgrad.scipy.linalg``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.numpy.plain_values.peeking import any_true, shared_numbers
from funcgrad.numpy_code.kernels.wrapping import Built, around
from funcgrad.numpy_code.own import own
from funcgrad.optional import import_scipy


def _call_scipy(name: str, *args: Any, **options: Any) -> Any:
    """Call SciPy's function with plain values: pivots and powers of two, which do not change with the values."""
    return getattr(import_scipy(f"linalg.{name}", "scipy.linalg"), name)(*map(shared_numbers, args), **options)


def _bandwidth(a: Any) -> Any:
    return _call_scipy("bandwidth", a)


def _matrix_balance(
    A: Any, permute: bool = True, scale: bool = True, separate: bool = False, overwrite_a: bool = False
) -> tuple[Any, Any]:
    """Compute ``scipy.linalg.matrix_balance``: the matrix of order and scale is a constant."""
    (balanced, by), (_, found) = [_call_scipy("matrix_balance", A, permute, scale, s) for s in (False, separate)]
    by = by.astype(balanced.real.dtype)
    back = np.where(by == 0, 0, 1 / np.where(by == 0, 1, by)).T
    return back @ fnp.asarray(A).astype(balanced.dtype) @ by, found


def _rq(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", check_finite: bool = True) -> Any:
    """Compute ``scipy.linalg.rq`` by ``qr`` of the adjoint with rows and columns reversed."""
    q, r = own("scipy.linalg").qr(fnp.conj(fnp.asarray(a))[::-1, ::-1].T, mode="full" if mode == "r" else mode)
    r, q = [fnp.conj(m.T)[::-1, ::-1] for m in (r, q)]
    return r if mode == "r" else (r, q)


def _qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    q, *rest = own("scipy.linalg").qr(a, mode="economic", pivoting=pivoting)
    q = fnp.conj(q) if conjugate else q
    return (fnp.asarray(c) @ q if mode == "right" else q @ fnp.asarray(c), *rest)


def _signm(A: Any, disp: Any = True) -> Any:
    """Compute ``scipy.linalg.signm``: ``A`` divided by the root of its square."""
    found = fnp.linalg.solve(own("scipy.linalg").sqrtm(A @ A), A)
    return found if disp in (True, np._NoValue) else (found, fnp.linalg.norm(found @ found - found, 1))


def _funm(A: Any, func: Callable[..., Any], disp: bool = True) -> Any:
    """Compute ``scipy.linalg.funm`` by eigenvalues, which must be distinct."""
    values, vectors = fnp.linalg.eig(fnp.asarray(A) * 1.0)
    found = fnp.linalg.solve(vectors.T, (vectors * func(values * (1 + 0j))).T).T
    is_complex = lambda x: np.abs(np.imag(x)) > 1e3 * np.finfo(float).eps * np.abs(x).max(initial=0.0)
    if A.dtype.kind != "c" and not any_true(is_complex, found):
        found = fnp.real(found)
    return found if disp else (found, 0.0)


def _rank(s: Any, rcond: Any, shape: tuple[int, int]) -> int:
    tol = fnp.max(s, initial=0.0) * (np.finfo(s.dtype).eps * max(shape) if rcond is None else rcond)
    return operator.index(fnp.sum(s > tol))


def _orth(A: Any, rcond: Any = None) -> Any:
    u, s, vh = own("scipy.linalg").svd(A, full_matrices=False)
    return u[:, : _rank(s, rcond, (u.shape[0], vh.shape[1]))]


def _null_space(
    A: Any, rcond: Any = None, *, overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
) -> Any:
    u, s, vh = own("scipy.linalg").svd(A, full_matrices=True)
    return fnp.conj(vh[_rank(s, rcond, (u.shape[0], vh.shape[1])) :].T)


def _angles(matrices: list[Any], ranks: list[int]) -> Any:
    """Return the angles between two subspaces, from any orthonormal bases."""
    bases = [
        own("scipy.linalg").qr(a, mode="economic")[0] if rank == a.shape[1] else _orth(a)
        for a, rank in zip(matrices, ranks, strict=True)
    ]
    larger, smaller = bases if ranks[0] >= ranks[1] else bases[::-1]
    inner = fnp.conj(larger.T) @ smaller
    cosines, sines = [fnp.linalg.svdvals(x) for x in (inner, smaller - larger @ inner)]
    return fnp.arctan2(sines, cosines[::-1])


@around
def angles_without_singular_vectors(built: Built, A: Any, B: Any) -> Any:
    """Wrap ``subspace_angles``: SciPy's bases have no derivative for equal singular values, nor has arccos at 1."""
    fixed = [own("transforms.stopping").stop_gradient(fnp.asarray(x)) for x in (A, B)]
    found = built(*fixed)
    given = [fnp.asarray(x) * 1.0 for x in (A, B)]
    ranks = [_orth(x).shape[1] for x in fixed]
    angles = _angles(fixed, ranks)
    # an angle of 0 has no derivative: 0 by convention
    moves = angles > 10 * len(fixed[0]) * np.finfo(angles.dtype).eps
    return found + fnp.where(moves, _angles(given, ranks) - angles, 0.0)


def _ldl(
    A: Any, lower: bool = True, hermitian: bool = True, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Compute ``scipy.linalg.ldl`` with constant pivots: eliminate blocks of one or two rows one after the other."""
    a = fnp.asarray(A) * 1.0
    _, inner, perm = _call_scipy("ldl", a, lower, hermitian)
    n, step = len(perm), 1 if lower else -1
    half = fnp.tril(a) if lower else fnp.triu(a)
    middle = fnp.diagonal(half)
    rest = half + (fnp.conj(half.T) - fnp.diag(fnp.conj(middle)) if hermitian else half.T - fnp.diag(middle))
    rest = rest - fnp.diag(1j * middle.imag) if hermitian and rest.dtype.kind == "c" else rest
    rest = rest[perm][:, perm][::step, ::step]
    paired = np.diagonal(inner, -1)[::step] != 0
    columns, blocks, k = [], fnp.zeros((n, n), a.dtype), 0
    while k < n:
        m = 2 if k < n - 1 and paired[k] else 1
        block = rest[k : k + m, k : k + m]
        column = fnp.linalg.solve(block.T, rest[:, k : k + m].T).T
        columns.append(column)
        blocks[k : k + m, k : k + m] = block
        rest = rest - column @ rest[k : k + m]
        k += m
    factor = fnp.tril(fnp.concatenate(columns, axis=1))[::step, ::step]
    return factor[np.argsort(perm)], blocks[::step, ::step], perm


FACTORIZATIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.linalg._cythonized_array_utils", "bandwidth"): _bandwidth,
    ("scipy.linalg._batched_linalg", "_bandwidth"): _bandwidth,  # with SciPy 1.18
    ("scipy.linalg._basic", "matrix_balance"): _matrix_balance,
    ("scipy.linalg._decomp_qr", "qr_multiply"): _qr_multiply,
    ("scipy.linalg._decomp_qr", "rq"): _rq,
    ("scipy.linalg._decomp_ldl", "ldl"): _ldl,
    ("scipy.linalg._decomp_svd", "orth"): _orth,
    ("scipy.linalg._decomp_svd", "null_space"): _null_space,
    ("scipy.linalg._matfuncs", "funm"): _funm,
    ("scipy.linalg._matfuncs", "signm"): _signm,
}
