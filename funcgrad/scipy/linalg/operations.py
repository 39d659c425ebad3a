"""Factors and equations of LAPACK that NumPy lacks: LU, banded systems, Sylvester's equation, polar factors.

Matrices are in the last two axes, leading axes are batches. SciPy computes NumPy arrays, matrix by matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy, loaded_jax
from funcgrad.primitives.comparison import where
from funcgrad.primitives.decompositions import eigh_cotangent, eigh_tangent
from funcgrad.primitives.indexing import pad_zeros
from funcgrad.primitives.products import matmul, swap_last_axes
from funcgrad.primitives.shaping import concatenate, stack, tril, triu
from funcgrad.primitives.solving import adjoint, as_hermitian, solve, solve_triangular
from funcgrad.typing import Array, Shape


def each(compute: Callable[..., Any], ranks: tuple[int, ...], *arrays: Any) -> list[Any]:
    """Return the results of ``compute`` for every matrix of the batches, which broadcast; a list for each result.

    For an empty batch, a computation with numbers that make no matrix singular gives shapes and dtypes.
    """
    shapes = [(a.shape[: a.ndim - r], a.shape[a.ndim - r :]) for a, r in zip(arrays, ranks, strict=True)]
    batch = np.broadcast_shapes(*[outer for outer, _ in shapes])
    whole = [np.broadcast_to(a, batch + inner) for a, (_, inner) in zip(arrays, shapes, strict=True)]
    if not prod(batch):
        found = [compute(*[_any(inner).astype(a.dtype) for a, (_, inner) in zip(arrays, shapes, strict=True)])]
    else:
        found = [compute(*[a[place] for a in whole]) for place in np.ndindex(batch)]
    parts = [np.stack(results) for results in zip(*found, strict=True)]
    return [part[: prod(batch)].reshape(batch + part.shape[1:]) for part in parts]


def _any(shape: Shape) -> Any:
    return np.cos(np.arange(1.0, 1 + prod(shape)) ** 2).reshape(shape)


def _scipy_linalg(call: str) -> Any:
    return import_scipy(f"scipy.linalg.{call}", "scipy.linalg")


# ---- eigenvectors ------------------------------------------------------------------------------------------


def _eigh(xp: Any, x: Any, *, lower: bool, driver: str | None) -> tuple[Any, Any]:
    if xp is not np:
        return tuple(xp.linalg.eigh(as_hermitian(xp, x, lower=lower)))
    compute = _scipy_linalg("eigh").eigh
    return tuple(each(lambda a: compute(a, lower=lower, driver=driver, check_finite=False), (2,), x))


#: ``scipy_eigh(x, *, lower, driver)``: as ``primitives.decompositions.eigh``, with the signs of SciPy's eigenvectors.
scipy_eigh: Operation = primitive(
    "scipy_eigh",
    _eigh,
    vjps=[lambda ct, x, ans, *, lower, driver: eigh_cotangent(ct, x, ans, lower=lower)],
    jvps=[lambda t, x, ans, *, lower, driver: eigh_tangent(t, x, ans, lower=lower)],
    batch="leading",
    multiple=True,
    none_for_zero=True,
)


def _phases(xp: Any, v: Any, *arrays: Any, call: str, options: tuple[tuple[str, Any], ...]) -> Any:
    batch = v.shape[:-2]
    if xp is not np or not prod(batch):
        return xp.ones(batch + v.shape[-1:], v.dtype)
    compute = partial(getattr(_scipy_linalg(call), call), check_finite=False, **dict(options))
    ranks = (1, 1) if call == "eigh_tridiagonal" else (2,) * len(arrays)
    (theirs,) = each(lambda *parts: (compute(*parts)[1],), ranks, *arrays)
    inner = (v.conj() * theirs).sum(-2)
    size = abs(inner)
    return np.where(size > 0, inner / np.where(size > 0, size, 1), 1).astype(v.dtype)


#: ``phases(v, *arrays, *, call, options)``: the numbers of absolute value 1 by which the eigenvectors ``v`` are
#: multiplied to be those that the function ``call`` of ``scipy.linalg`` returns for the arrays.
phases: Operation = nondifferentiable("phases", _phases, batch="leading")


def _order_of_eigenvalues(xp: Any, w: Any, a: Any, b: Any) -> Any:
    if xp is not np or 0 in w.shape:
        return np.broadcast_to(np.arange(w.shape[-1]), w.shape)
    compute = partial(_scipy_linalg("eig").eig, right=False, check_finite=False)
    (theirs,) = each(lambda a, b: (compute(a, b),), (2, 2), a, b)
    order = np.empty(w.shape, int)
    for place in np.ndindex(w.shape[:-1]):
        free = w[place].astype(complex)
        for i, value in enumerate(theirs[place]):
            order[(*place, i)] = nearest = np.nanargmin(abs(free - value))
            free[nearest] = np.inf
    return order


#: ``order_of_eigenvalues(w, a, b)``: order in which the eigenvalues ``w`` are those of ``scipy.linalg.eig(a, b)``.
order_of_eigenvalues: Operation = nondifferentiable("order_of_eigenvalues", _order_of_eigenvalues, batch="leading")


# ---- LU ----------------------------------------------------------------------------------------------------


def _lu(xp: Any, x: Any, *, warns: bool) -> tuple[Any, Any]:
    if xp is not np:
        return tuple(loaded_jax().lax.linalg.lu(x)[:2])
    if 0 in x.shape[-2:]:
        dtype = np.result_type(x.dtype, np.float32)
        return np.zeros(x.shape, dtype), np.zeros((*x.shape[:-2], min(x.shape[-2:])), np.int32)
    (routine,) = _scipy_linalg("lu_factor").get_lapack_funcs(("getrf",), (x,))
    factors = partial(_scipy_linalg("lu_factor").lu_factor, check_finite=False) if warns else lambda a: routine(a)[:2]
    return tuple(each(factors, (2,), x))


def _permutation(xp: Any, x: Any, *, rows: int) -> Any:
    if xp is not np:
        return loaded_jax().lax.linalg.lu_pivots_to_permutation(xp.asarray(x, "int32"), rows)
    order = np.broadcast_to(np.arange(rows, dtype=x.dtype), (*x.shape[:-1], rows)).copy()
    places: tuple[Any, ...] = np.ix_(*[np.arange(n) for n in x.shape[:-1]])
    for i in range(x.shape[-1]):
        j = x[..., i]
        first, second = order[(*places, i)].copy(), order[(*places, j)].copy()
        order[(*places, i)], order[(*places, j)] = second, first
    return order


#: ``permutation(pivots, *, rows)``: order of the rows after exchanging row i with row ``pivots[i]``, for each i in
#: turn.
permutation: Operation = nondifferentiable("permutation", _permutation, batch="leading")


def _pivots(xp: Any, x: Any) -> Any:
    if xp is not np:
        raise InputError("linalg.qr: pivoting is LAPACK's of NumPy arrays, got JAX's. Pass NumPy's, or pivoting=False.")
    return each(lambda a: (_scipy_linalg("qr").qr(a, mode="r", pivoting=True)[-1],), (2,), x)[0]


#: ``pivots(x)``: order in which a QR factorization with pivoting takes columns.
pivots: Operation = nondifferentiable("pivots", _pivots, batch="leading")


def _lower(x: Array, k: int) -> Array:
    """Return the first ``k`` columns of L, which is stored without its diagonal of ones."""
    eye = np.eye(x.shape[-2], k).astype(backend.dtype_of(x))
    return tril(x[..., :k], k=-1) + eye


def _divided(factor: Array, x: Array, *, lower: bool, left: bool) -> Array:
    """Return ``inv(L) x`` or ``x inv(U)``."""
    options = {"lower": lower, "unit_diagonal": lower}
    if left:
        return solve_triangular(factor, x, transposed=False, **options)
    return swap_last_axes(solve_triangular(factor, swap_last_axes(x), transposed=True, **options))


def _lu_jvp(t: Array, ans: Any, *, warns: bool) -> list[Array]:
    """Return tangents, from ``A = L U`` for permuted rows: ``inv(L) dA inv(U) = inv(L) dL + dU inv(U)``.

    The first term is strictly lower, the second upper triangular. Rows and columns beyond the square part follow. Only
    rows below the square part need the last pivot, which is 0 if the rank is one less than full.
    """
    packed, pivots = ans
    rows, columns = packed.shape[-2:]
    k = min(rows, columns)
    order = permutation(pivots, rows=rows)
    turn = (order[..., :, None] == np.arange(rows)).astype(backend.dtype_of(packed))
    t = matmul(turn, t)
    low, up = _lower(packed, k), triu(packed[..., :k, :], k=0)
    top, right = low[..., :k, :], up[..., :, :k]
    inner = _divided(top, t[..., :k, :k], lower=True, left=True)
    is_last = np.arange(k) == k - 1
    strictly = tril(_divided(where(np.outer(is_last, is_last), 1.0, right), inner, lower=False, left=False), k=-1)
    of_low, of_up = matmul(top, strictly), triu(inner - matmul(strictly, right), k=0)
    moved = of_low + of_up
    rank = len(packed.shape)
    if rows > k:
        below = t[..., k:, :] - matmul(low[..., k:, :], of_up)
        moved = concatenate(moved, _divided(right, below, lower=False, left=False), axis=rank - 2)
    if columns > k:
        beside = t[..., :, k:] - matmul(of_low, up[..., :, k:])
        moved = concatenate(moved, _divided(top, beside, lower=True, left=True), axis=rank - 1)
    return [moved, backend.zeros_like(pivots)]


#: ``lu(x, *, warns)``: L without its diagonal of ones and U, in one array, and for each row the row that it is
#: exchanged with; ``warns``: whether a pivot that is 0 raises SciPy's warning.
lu: Operation = primitive("lu", _lu, jvps=[_lu_jvp], batch="leading", multiple=True)

# ---- banded systems ----------------------------------------------------------------------------------------


def dense_of_bands(xp: Any, x: Any, lower: int, upper: int) -> Any:
    """Return the matrix whose diagonals are the rows of ``x``, the highest first."""
    n = x.shape[-1]
    i, j = np.arange(n)[:, None], np.arange(n)
    within = (i - j <= lower) & (j - i <= upper)
    return xp.where(within, x[..., np.clip(upper + i - j, 0, lower + upper), np.broadcast_to(j, (n, n))], 0)


def _solve_banded(xp: Any, x: Any, y: Any, *, lower: int, upper: int) -> Any:
    if xp is not np:
        return xp.linalg.solve(dense_of_bands(xp, x, lower, upper), y)
    solve = _scipy_linalg("solve_banded").solve_banded
    return each(lambda ab, b: (solve((lower, upper), ab, b, check_finite=False),), (2, 2), x, y)[0]


def _shifted(x: Array, by: int, axis: int) -> Array:
    """Return ``x`` moved by ``by`` entries along ``axis``, with zeros moved in."""
    n, rank = x.shape[axis], len(x.shape)
    by = max(-n, min(n, by))
    cut = [slice(None)] * rank
    cut[axis] = slice(max(0, -by), n - max(0, by))
    widths = [(0, 0)] * rank
    widths[axis] = (max(0, by), max(0, -by))
    return pad_zeros(x[tuple(cut)], widths=tuple(widths))


def _banded_product(x: Array, z: Array, lower: int, upper: int) -> Array:
    """Return the product of the banded matrix ``x`` and the matrix ``z``."""
    axis = max(len(x.shape), len(z.shape)) - 2
    parts = [_shifted(x[..., r, :, None] * z, r - upper, axis) for r in range(lower + upper + 1)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def banded_transposed(x: Array, lower: int, upper: int) -> Array:
    """Return the bands of the transposed matrix, which has ``upper`` diagonals below the main one."""
    axis = len(x.shape) - 1
    rows = [_shifted(x, r - upper, axis)[..., r, :] for r in reversed(range(lower + upper + 1))]
    return stack(*rows, axis=axis - 1)


def _bands(left: Array, right: Array, lower: int, upper: int) -> Array:
    """Return the bands of ``left @ right.T``."""
    axis = len(left.shape) - 2
    rows = [reduce_sum(_shifted(left, upper - r, axis) * right, axis=(axis + 1,)) for r in range(lower + upper + 1)]
    return stack(*rows, axis=axis)


def _banded_back(ct: Array, x: Array, lower: int, upper: int) -> Array:
    return solve_banded(banded_transposed(x, lower, upper), ct, lower=upper, upper=lower)


#: ``solve_banded(x, y, *, lower, upper)``: solution Z of ``M Z = y``, where the diagonals of M are the rows of ``x``:
#: entry i, j of M is entry ``upper + i - j``, j of ``x``.
solve_banded: Operation = primitive(
    "solve_banded",
    _solve_banded,
    vjps=[
        lambda ct, x, ans, *, lower, upper: -_bands(_banded_back(ct, x, lower, upper), ans, lower, upper),
        lambda ct, x, *, lower, upper: _banded_back(ct, x, lower, upper),
    ],
    jvps=[
        lambda t, x, ans, *, lower, upper: (
            -solve_banded(x, _banded_product(t, ans, lower, upper), lower=lower, upper=upper)
        ),
        lambda t, x, *, lower, upper: solve_banded(x, t, lower=lower, upper=upper),
    ],
    batch="elementwise",
)

# ---- Sylvester's equation ----------------------------------------------------------------------------------


def _solve_sylvester(xp: Any, x: Any, y: Any, z: Any) -> Any:
    if xp is np:
        solve = _scipy_linalg("solve_sylvester").solve_sylvester
        # SciPy treats a real matrix's Schur form, with blocks of two rows, as triangular if another matrix is complex.
        x, y, z = [a.astype(np.result_type(x, y, z), copy=False) for a in (x, y, z)]
        return each(lambda a, b, q: (solve(a, b, q),), (2, 2, 2), x, y, z)[0]
    m, n = x.shape[-1], y.shape[-1]
    left = np.eye(n, dtype=np.int8)[:, None, :, None] * x[..., None, :, None, :]
    right = y.swapaxes(-1, -2)[..., :, None, :, None] * np.eye(m, dtype=np.int8)[:, None, :]
    whole = left + right
    whole = whole.reshape((*whole.shape[:-4], m * n, m * n))
    columns = z.swapaxes(-1, -2)
    solved = xp.linalg.solve(whole, columns.reshape((*z.shape[:-2], m * n, 1)))
    return solved.reshape((*solved.shape[:-2], n, m)).swapaxes(-1, -2)


def _sylvester_back(ct: Array, x: Array, y: Array) -> Array:
    return solve_sylvester(swap_last_axes(x), swap_last_axes(y), ct)


#: ``solve_sylvester(x, y, z)``: matrix X with ``x X + X y = z``.
solve_sylvester: Operation = primitive(
    "solve_sylvester",
    _solve_sylvester,
    vjps=[
        lambda ct, x, y, ans: -matmul(_sylvester_back(ct, x, y), swap_last_axes(ans)),
        lambda ct, x, y, ans: -matmul(swap_last_axes(ans), _sylvester_back(ct, x, y)),
        lambda ct, x, y: _sylvester_back(ct, x, y),
    ],
    jvps=[
        lambda t, x, y, ans: -solve_sylvester(x, y, matmul(t, ans)),
        lambda t, x, y, ans: -solve_sylvester(x, y, matmul(ans, t)),
        lambda t, x, y: solve_sylvester(x, y, t),
    ],
    batch="elementwise",
)

# ---- polar factors -----------------------------------------------------------------------------------------


def _polar(xp: Any, x: Any) -> tuple[Any, Any]:
    w, s, vh = xp.linalg.svd(x, full_matrices=False)
    return w @ vh, (vh.swapaxes(-1, -2).conj() * s[..., None, :]) @ vh


def _polar_jvp(t: Array, ans: Any) -> list[Array]:
    """Return tangents. ``adjoint(U) dU`` is skew: Sylvester's equation solves ``dA = dU P + U dP``; no gap divides."""
    u, p = ans
    moved = matmul(adjoint(u), t)
    turn = solve_sylvester(p, p, moved - adjoint(moved))
    of_u = matmul(u, turn)
    if u.shape[-2] > u.shape[-1]:
        rest = t - matmul(u, moved)
        of_u = of_u + adjoint(solve(p, adjoint(rest)))
    return [of_u, moved - matmul(turn, p)]


#: ``polar(x)``: U with orthonormal columns and the Hermitian P with ``x = U P``, for matrices with no more columns than
#: rows.
polar: Operation = primitive("polar", _polar, jvps=[_polar_jvp], batch="leading", multiple=True)
