"""Some eigenvalues and eigenvectors of sparse matrices, from SciPy's iterations, with implicit derivatives.

With ``A v = w M v`` and ``R = dA v - w dM v`` the tangents solve the bordered system

    [ A - w M    -M V ] [ x ]   [ -R ]
    [ -(M V)^H      0 ] [ . ] = [  0 ],

whose solution ``x`` is the part of the vector's tangent outside the columns of ``V``. For a Hermitian matrix, ``V``
holds all requested vectors, and ``dV`` also has the term ``V (F * adjoint(V) R)`` from these, as in
``primitives.decompositions``. For other matrices, ``V`` is the one vector, and the dot in the solution is ``dw``. See
R. B. Nelson, "Simplified calculation of eigenvector derivatives" (1976).

Coinciding eigenvalues among the requested ones follow the rules of ``primitives.decompositions``. If a requested
eigenvalue coincides with another one, the system is singular: the derivatives of its vector are NaN.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from funcgrad.errors import InputError
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import broadcast_to, reduce_sum, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy
from funcgrad.primitives.comparison import logical_and
from funcgrad.primitives.decompositions import (
    NOISE_UNITS,
    close_pairs,
    column_sizes,
    inverse_gaps,
    is_constant,
    or_nan,
    rounding_unit,
    skew,
    undefined_pairs,
    unknown_pairs,
    with_diagonal,
    without_diagonal,
)
from funcgrad.primitives.elementwise import conjugated, real_part
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.products import matmul, swap_last_axes
from funcgrad.primitives.shaping import concatenate, diagonal
from funcgrad.primitives.solving import adjoint
from funcgrad.primitives.sparse import Structure, sparse_matvec, sparse_solve
from funcgrad.typing import Array


class EigenSearch:
    """Arguments of an eigenvalue search. Compared and hashed by identity.

    Attributes:
        a: the structure of the matrix.
        m: the structure of ``M``; that of an identity if there is no ``M``.
        options: the options of SciPy's routine.
        is_plain: whether there is no ``M``.
    """

    def __init__(self, a: Structure, m: Structure | None, options: dict[str, Any]) -> None:
        n = a.shape[0]
        self.a, self.options, self.is_plain = a, options, m is None
        self.m = Structure(np.arange(n), np.arange(n + 1), (n, n)) if m is None else m

    def run(self, name: str, x: Any, m: Any) -> tuple[Any, Any]:
        """Return the eigenvalues and eigenvectors that SciPy's routine ``name`` finds."""
        linalg = import_scipy(f"sparse.linalg.{name}", "scipy.sparse.linalg")
        matrix, weights = self.a.matrix(x).tocsc(), None if self.is_plain else self.m.matrix(m).tocsc()
        found: tuple[Any, Any] = getattr(linalg, name)(matrix, M=weights, **self.options)
        return found


class _Bordered(Structure):
    """Structure of a bordered matrix; the solution of a singular system is NaN."""

    def factors(self, data: Any) -> Any:
        scale = float(abs(data).max(initial=0))
        try:
            made = super().factors(data)
        except np.linalg.LinAlgError:
            return _Factors(None, scale)
        # a right-hand side that lies in the range of a singular matrix has a small solution, which is one of many
        probe = np.cos(np.arange(self.shape[0])).astype(data.dtype)
        return _Factors(None if _is_singular(scale, probe, made.solve(probe)) else made, scale)


def _is_singular(scale: float, b: Any, x: Any) -> Any:
    """Whether solutions are so large that a matrix whose largest element is ``scale`` is singular within rounding."""
    limit = 1 / (NOISE_UNITS * rounding_unit(x))
    return scale * abs(x).max(0, initial=0) > limit * abs(b).max(0, initial=0)


class _Factors(NamedTuple):
    """Factors of a bordered matrix whose largest element is ``scale``."""

    made: Any
    scale: float

    def solve(self, b: Any, trans: str) -> Any:
        """Return the solution; NaN if the matrix is singular within rounding, and the right-hand side is not zero."""
        if self.made is None:
            return np.where(b.any(0), np.full_like(b, math.nan), 0)
        x = self.made.solve(b, trans)
        return np.where(_is_singular(self.scale, b, x), math.nan, x)


@lru_cache(maxsize=32)
def _bordered(a: Structure, m: Structure, k: int) -> Structure:
    """Return the structure of the bordered matrix: the values of A, of M, and of the border to the right and below."""
    n = a.shape[0]
    along, across = np.tile(np.arange(n), k), n + np.repeat(np.arange(k), n)
    rows = np.concatenate([a.rows, m.rows, along, across])
    columns = np.concatenate([a.indices, m.indices, across, along])
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n + k))])
    return _Bordered(columns[order], indptr, (n + k, n + k), order)


def _apply(x: Array, vectors: Array, structure: Structure, back: bool = False) -> Array:
    """Multiply the matrix, or its transpose, by vectors in rows."""
    return sparse_matvec(x[..., None, :], vectors, structure=structure, transposed=back)


def _hermitian(x: Array, rows: Array, structure: Structure) -> Array:
    """Multiply the Hermitian part of the matrix by vectors in rows."""
    back = conjugated(_apply(x, conjugated(rows), structure, back=True))
    return (_apply(x, rows, structure) + back) * 0.5


def _solve_bordered(
    search: EigenSearch, x: Array, m: Array, w: Array, border: Array, right: Array, transposed: bool = False
) -> Array:
    """Return the solutions of the bordered systems, one for each eigenvalue.

    Args:
        search: the structures of A and M.
        x: the values of A.
        m: the values of M.
        w: the eigenvalues.
        border: for each eigenvalue the vectors of the border in rows, of shape (..., k, size, n).
        right: the right-hand sides, of shape (..., k, n), or (..., k, n + size).
        transposed: whether the systems are transposed.
    """
    size, n = border.shape[-2:]
    outer = border.shape[:-2]
    flat = reshape(border, to=(*outer, size * n))
    parts = [
        broadcast_to(x[..., None, :], to=(*outer, x.shape[-1])),
        broadcast_to(-w[..., None] * m[..., None, :], to=(*outer, m.shape[-1])),
        -flat,
        -conjugated(flat),
    ]
    structure = _bordered(search.a, search.m, size)
    values = concatenate(*parts, axis=len(outer))
    if right.shape[-1] == n:
        right = concatenate(right, np.zeros((*outer, size), np.int8), axis=len(outer))
    return sparse_solve(getitem(values, (..., structure.order)), right, structure=structure, transposed=transposed)


def _search_each(name: str, xp: Any, x: Any, m: Any, search: EigenSearch) -> tuple[Any, Any]:
    if xp is not np:
        raise InputError(
            f"sparse.linalg.{name}: SciPy iterates on NumPy arrays, got JAX's. Pass NumPy's, or use numpy.linalg.eigh."
        )
    if x.ndim == 1:
        return search.run(name, x, m)
    found = [_search_each(name, xp, *pair, search) for pair in zip(x, m, strict=True)]
    if not found:
        dtype = np.result_type(x, np.complex64) if name == "eigs" else x.dtype
        (n, _), k, real = search.a.shape, search.options["k"], abs(np.zeros(0, dtype)).dtype
        shapes = (*x.shape[:-1], k), (*x.shape[:-1], n, k)
        return np.zeros(shapes[0], real if name == "eigsh" else dtype), np.zeros(shapes[1], dtype)
    return np.stack([w for w, _ in found]), np.stack([v for _, v in found])


# ---- Hermitian matrices ------------------------------------------------------------------------------------


def _times_m(search: EigenSearch, m: Array, rows: Array) -> Array:
    return rows if search.is_plain else _apply(m, rows, search.m)


def _solve_outside(search: EigenSearch, x: Array, m: Array, w: Array, rows: Array, right: Array) -> Array:
    """Solve the systems with all vectors in the border, for right-hand sides in rows."""
    k, n = rows.shape[-2:]
    border = broadcast_to(_times_m(search, m, rows)[..., None, :, :], to=(*rows.shape[:-2], k, k, n))
    return _solve_bordered(search, x, m, w, border, right)[..., :n]


def _pairs(w: Array) -> tuple[Array, Array]:
    same = close_pairs(w, units=NOISE_UNITS)
    return same, without_diagonal(same)


def _jvp(moved: Array, turned: Array | None, x: Array, m: Array, ans: Any, search: EigenSearch) -> list[Array]:
    """Return the tangents from R in rows and, if M changes, the diagonal of ``adjoint(V) dM V``."""
    w, v = ans
    rows, columns = swap_last_axes(v), swap_last_axes(moved)
    inner = matmul(adjoint(v), columns)
    same, pairs = _pairs(w)
    dw = real_part(diagonal(inner, offset=0))
    weights = or_nan(undefined_pairs(pairs, inner, column_sizes(columns)), inverse_gaps(w, same) * inner)
    if turned is not None:
        weights = with_diagonal(weights, turned * -0.5)
    dv = matmul(v, weights) + swap_last_axes(_solve_outside(search, x, m, w, rows, -moved))
    return [dw, dv]


def _matrix_jvp(t: Array, x: Array, y: Array, ans: Any, *, search: EigenSearch) -> list[Array]:
    return _jvp(_hermitian(t, swap_last_axes(ans[1]), search.a), None, x, y, ans, search)


def _weights_jvp(t: Array, x: Array, y: Array, ans: Any, *, search: EigenSearch) -> list[Array]:
    w, v = ans
    rows = swap_last_axes(v)
    change = _hermitian(t, rows, search.m)
    turned = reduce_sum(conjugated(rows) * change, axis=(len(rows.shape) - 1,))
    return _jvp(-w[..., None] * change, turned, x, y, ans, search)


def _vjp(ct: Any, x: Array, y: Array, ans: Any, search: EigenSearch) -> tuple[Array, Array | None]:
    """Return the factors of R for each vector, in rows, and the conjugated cotangents of the vectors."""
    w, v = ans
    ct_w, ct_v = ct
    if ct_v is None:
        return swap_last_axes(v) * ct_w[..., None], None
    ct_v = conjugated(ct_v)
    turned = matmul(adjoint(v), ct_v)
    same, pairs = _pairs(w)
    inner = or_nan(undefined_pairs(pairs, skew(turned), column_sizes(ct_v)), inverse_gaps(w, same) * turned)
    if ct_w is not None:
        inner = with_diagonal(or_nan(unknown_pairs(pairs, column_sizes(ct_v), ct_w), inner), ct_w)
    rows, ct_rows = swap_last_axes(v), swap_last_axes(ct_v)
    return swap_last_axes(matmul(v, inner)) - _solve_outside(search, x, y, w, rows, ct_rows), ct_rows


def _at_stored_positions(left: Array, right: Array, structure: Structure) -> Array:
    """Return sums over rows of the conjugated Hermitian products of ``left`` and ``right``, at the stored positions."""
    r, c = structure.rows, structure.indices
    there = conjugated(getitem(left, (..., r))) * getitem(right, (..., c))
    back = getitem(right, (..., r))
    found = (there + conjugated(back) * getitem(left, (..., c))) * 0.5
    return reduce_sum(found, axis=(len(found.shape) - 2,))


def _matrix_vjp(ct: Any, x: Array, y: Array, ans: Any, *, search: EigenSearch) -> Array:
    ct_w, ct_v = ct
    if search.is_plain and ct_v is None and is_constant(ct_w) and not is_constant(ans[1]):
        found: Array = sparse_eigen_sum(x, ct_w, search=search)
        return found
    return _at_stored_positions(_vjp(ct, x, y, ans, search)[0], swap_last_axes(ans[1]), search.a)


def _weights_vjp(ct: Any, x: Array, y: Array, ans: Any, *, search: EigenSearch) -> Array:
    w, v = ans
    rows, (left, ct_rows) = swap_last_axes(v), _vjp(ct, x, y, ans, search)
    found: Array = _at_stored_positions(left * -w[..., None], rows, search.m)
    if ct_rows is None:
        return found
    along = real_part(reduce_sum(conjugated(ct_rows) * rows, axis=(len(rows.shape) - 1,)))
    return found - _at_stored_positions(rows * along[..., None], rows, search.m) * 0.5


#: ``sparse_eigh(x, y, *, search)``: eigenvalues and eigenvectors of the Hermitian matrix with the values ``x``, where
#: ``M`` has the values ``y``.
sparse_eigh: Operation = primitive(
    "sparse_eigh",
    lambda xp, x, y, *, search: _search_each("eigsh", xp, x, y, search),
    vjps=[_matrix_vjp, _weights_vjp],
    jvps=[_matrix_jvp, _weights_jvp],
    batch="leading",
    multiple=True,
    none_for_zero=True,
)


def _eigen_sum(xp: Any, x: Any, y: Any, *, search: EigenSearch) -> Any:
    rows = swap_last_axes(_search_each("eigsh", xp, x, _ones(x, search), search)[1])
    return _at_stored_positions(rows * y[..., None], rows, search.a)


def _ones(x: Any, search: EigenSearch) -> Any:
    return np.ones((*x.shape[:-1], search.a.shape[0]), np.int8)


def _eigen_sum_tangent(t: Array, x: Array, y: Array, *, search: EigenSearch) -> Array:
    """Return the tangent of the sum. Pairs of coinciding eigenvalues with equal weights contribute nothing."""
    ones = _ones(x, search)
    w, v = sparse_eigh(x, ones, search=search)
    rows = swap_last_axes(v)
    moved = _hermitian(t, rows, search.a)
    inner = matmul(adjoint(v), swap_last_axes(moved))
    same = close_pairs(w, units=NOISE_UNITS)
    uneven = logical_and(same, ~close_pairs(y, units=NOISE_UNITS))
    shares = (y[..., None, :] - y[..., :, None]) * inverse_gaps(w, same)
    within = matmul(v, or_nan(undefined_pairs(uneven, inner, column_sizes(swap_last_axes(moved))), shares * inner))
    beyond = _solve_outside(search, x, ones, w, rows, -moved)
    return _at_stored_positions(swap_last_axes(within) + beyond * (2 * y)[..., None], rows, search.a)


#: ``sparse_eigen_sum(x, y, *, search)``: the gradient of ``sum(y * w)`` for constant weights ``y``, if there is no
#: ``M``. Unlike the product of its factors it has a derivative where eigenvalues with equal weights coincide.
sparse_eigen_sum: Operation = primitive(
    "sparse_eigen_sum",
    _eigen_sum,
    vjps=[_eigen_sum_tangent, None],
    jvps=[_eigen_sum_tangent, None],
    batch="leading",
)


# ---- other matrices ----------------------------------------------------------------------------------------


def _solve_single(search: EigenSearch, x: Array, m: Array, ans: Any, right: Array, transposed: bool = False) -> Array:
    """Solve the systems with a single vector in the border."""
    w, v = ans
    border = _times_m(search, m, swap_last_axes(v))[..., None, :]
    return _solve_bordered(search, x, m, w, border, right, transposed)


def _eig_jvp(t: Array, x: Array, y: Array, ans: Any, *, search: EigenSearch) -> list[Array]:
    found = _solve_single(search, x, y, ans, -_apply(t, swap_last_axes(ans[1]), search.a))
    return [found[..., -1], swap_last_axes(found[..., :-1])]


def _eig_vjp(ct: Any, x: Array, y: Array, ans: Any, *, search: EigenSearch) -> Array:
    ct_w, ct_v = ct
    w, v = ans
    below = np.zeros((*w.shape, 1), np.int8) if ct_w is None else ct_w[..., None]
    above = np.zeros(swap_last_axes(v).shape, np.int8) if ct_v is None else swap_last_axes(ct_v)
    found = _solve_single(search, x, y, ans, concatenate(above, below, axis=len(w.shape)), transposed=True)
    r, c = search.a.rows, search.a.indices
    products = getitem(found, (..., r)) * getitem(swap_last_axes(v), (..., c))
    return -reduce_sum(products, axis=(len(products.shape) - 2,))


#: ``sparse_eig(x, y, *, search)``: eigenvalues and eigenvectors of the matrix with the values ``x``, for a constant
#: ``M``. The phases of eigenvectors change such that ``diag(adjoint(M V) dV)`` is zero.
sparse_eig: Operation = primitive(
    "sparse_eig",
    lambda xp, x, y, *, search: _search_each("eigs", xp, x, y, search),
    vjps=[_eig_vjp, None],
    jvps=[_eig_jvp, None],
    batch="leading",
    multiple=True,
    none_for_zero=True,
)
