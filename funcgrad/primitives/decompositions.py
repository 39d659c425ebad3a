"""Eigenvalues of Hermitian matrices and singular values, with their vectors.

Matrices occupy the last two axes; leading axes are batches. The derivatives are those of first order
perturbation theory. With ``x = V diag(w) adjoint(V)`` and ``T = adjoint(V) dx V`` they are ``dw = diag(T)`` and
``dV = V (F * T)``, where ``F[i, j] = 1 / (w[j] - w[i])``; see M. Giles, "Collected matrix derivative results for
forward and reverse mode algorithmic differentiation" (2008), and for singular values J. Townsend,
"Differentiating the singular value decomposition" (2016).

Where w[i] and w[j] *coincide* (within the rounding of the decomposition), the vectors i and j may rotate into
each other. The vectors then have no derivative, but functions that such a rotation does not change have one.
The pullback detects such functions from the cotangent B of V: if ``adjoint(V) B`` is Hermitian at i, j, the pair
contributes nothing; otherwise the result is NaN. If the eigenvalues have a cotangent too, they may act together
with the vectors of the pair, as in ``V diag(f(w)) adjoint(V)``. The contribution of the pair then depends on second
derivatives of the function, which no cotangent contains: the result is NaN again, unless the vectors of the pair
have no cotangent and their eigenvalues have equal cotangents. Forward mode knows the vectors only, and gives NaN
as soon as the tangent rotates the pair. Derivatives of the pullback exist if the pair has no cotangent: then the
cotangent of ``x`` consists of resolvents, which have derivatives where the vectors have none.

The same rules hold for singular values, with their pairs of vectors. The two vectors of a singular value that
is zero may rotate independently of each other, among all vectors that ``x`` maps to zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core import traces_of
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.comparison import logical_and, not_equal, where
from funcgrad.primitives.elementwise import conjugated, is_complex, real_part
from funcgrad.primitives.products import matmul, swap_last_axes
from funcgrad.primitives.shaping import concatenate, diagonal
from funcgrad.primitives.solving import adjoint, as_hermitian, hermitian_cotangent, hermitian_part, hermitian_tangent
from funcgrad.typing import Array

#: Number of units of rounding, relative to the largest entry, up to which a term of a derivative counts as zero.
NOISE_UNITS = 1000
#: Number of units up to which a gap between eigenvalues counts as zero, times the square root of their number.
GAP_UNITS = 8


def is_constant(x: Any) -> bool:
    """Whether no derivative is taken with respect to ``x``."""
    return not any(trace.differentiates for trace in traces_of([x]))


# ---- what coincides ----------------------------------------------------------------------------------------


def rounding_unit(x: Any) -> float:
    """Return the relative distance of neighbouring numbers of the dtype of ``x``."""
    return float(np.finfo(x.dtype).eps)


def _largest(x: Any, axis: int) -> Any:
    return abs(x).max(axis, keepdims=True, initial=0)


def _close_pairs(xp: Any, x: Any, *, units: float) -> Any:
    """Whether x[i] and x[j] are equal within ``units`` of rounding of the largest absolute value."""
    return abs(x[..., None, :] - x[..., :, None]) <= units * rounding_unit(x) * _largest(x, -1)[..., None]


def _vanishing(xp: Any, x: Any) -> Any:
    return x <= GAP_UNITS * math.sqrt(x.shape[-1]) * rounding_unit(x) * _largest(x, -1)


def _undefined_pairs(xp: Any, same: Any, k: Any, columns: Any) -> Any:
    return same & (abs(k) > NOISE_UNITS * rounding_unit(columns) * _largest(columns, -1)[..., None])


def _unknown_pairs(xp: Any, same: Any, columns: Any, c: Any) -> Any:
    used = columns > NOISE_UNITS * rounding_unit(columns) * _largest(columns, -1)
    return same & (used[..., None, :] | used[..., :, None] | ~_close_pairs(xp, c, units=NOISE_UNITS))


#: ``close_pairs(x, *, units)``: the mask of pairs of entries of the vectors ``x`` that are equal within ``units``.
close_pairs: Operation = nondifferentiable("close_pairs", _close_pairs, batch="leading")
#: ``vanishing(x)``: the mask of the singular values ``x`` that are zero within rounding.
vanishing: Operation = nondifferentiable("vanishing", _vanishing, batch="leading")
#: ``column_sizes(x)``: the largest absolute value in each column.
column_sizes: Operation = nondifferentiable("column_sizes", lambda xp, x: abs(x).max(-2, initial=0), batch="leading")
#: ``undefined_pairs(same, k, columns)``: the mask of those pairs in ``same`` whose derivative is undefined because
#: ``k`` is not zero within the rounding of the terms of ``k``, which are as large as the largest of ``columns``.
undefined_pairs: Operation = nondifferentiable("undefined_pairs", _undefined_pairs, batch="leading")
#: ``unknown_pairs(same, columns, c)``: the mask of those pairs in ``same`` whose derivative is unknown, because vectors
#: (with cotangents as large as ``columns``) and values (with cotangents ``c``) may act together.
unknown_pairs: Operation = nondifferentiable("unknown_pairs", _unknown_pairs, batch="leading")
#: ``any_pair(x)``: whether the mask ``x`` of pairs has any.
any_pair: Operation = nondifferentiable("any_pair", lambda xp, x: x.any((-2, -1), keepdims=True), batch="leading")
#: ``held_fixed(x)``: ``x`` as a constant.
held_fixed: Operation = nondifferentiable("held_fixed", lambda xp, x: x + 0, batch="leading")
#: ``column_phases(x, y)``: the factors of the columns of ``x`` in those of ``y``, conjugate, as one row.
column_phases: Operation = nondifferentiable(
    "column_phases", lambda xp, x, y: (x * y.conj()).sum(-2, keepdims=True), batch="leading"
)
#: ``vanishing_with_cotangent(x, c)``: the mask of the zero singular values in ``x`` that have nonzero cotangents ``c``.
vanishing_with_cotangent: Operation = nondifferentiable(
    "vanishing_with_cotangent",
    lambda xp, x, c: _vanishing(xp, x) & (abs(c) > NOISE_UNITS * rounding_unit(c) * _largest(c, -1)),
    batch="leading",
)


def _coinciding(w: Array) -> Array:
    return close_pairs(w, units=GAP_UNITS * math.sqrt(w.shape[-1]))


def without_diagonal(same: Array) -> Array:
    """Return the mask ``same`` of pairs, with False for the pairs of an entry with itself."""
    return logical_and(same, ~np.eye(same.shape[-1], dtype=bool))


def _inverse(x: Array, zero: Array) -> Array:
    """Return 1 / x, and 0 where ``zero``."""
    return where(zero, 0, 1 / where(zero, 1, x))


def inverse_gaps(w: Array, same: Array) -> Array:
    """Return 1 / (w[j] - w[i]), and 0 where the two coincide, which ``same`` marks."""
    return _inverse(w[..., None, :] - w[..., :, None], same)


def join_columns(*parts: Array) -> Array:
    """Join matrices column by column."""
    return parts[0] if len(parts) == 1 else concatenate(*parts, axis=len(parts[0].shape) - 1)


def skew(x: Array) -> Array:
    """Return ``x - adjoint(x)``, twice the skew-Hermitian part of ``x``."""
    return x - adjoint(x)


def or_nan(undefined: Array, x: Array) -> Array:
    """Return ``x``, with NaN where ``undefined``."""
    return where(undefined, math.nan, x)


def with_diagonal(x: Array, d: Array) -> Array:
    """Return ``x`` with ``d`` added to its diagonal."""
    return x + d[..., None, :] * np.eye(d.shape[-1], dtype=np.int8)  # int8 promotes no other dtype


# ---- Hermitian matrices ------------------------------------------------------------------------------------


def _eigh(xp: Any, x: Any, *, lower: bool) -> tuple[Any, Any]:
    return tuple(xp.linalg.eigh(as_hermitian(xp, x, lower=lower), UPLO="L" if lower else "U"))


def eigh_tangent(t: Array, x: Array, ans: Any, *, lower: bool) -> list[Array]:
    """Return the tangents of eigenvalues and eigenvectors, see ``eigh``."""
    w, v = ans
    t = hermitian_tangent(t, x, lower=lower)
    moved = matmul(adjoint(v), matmul(t, v))
    same = _coinciding(w)
    undefined = undefined_pairs(without_diagonal(same), moved, column_sizes(t))
    dw = real_part(diagonal(moved, offset=0))
    return [dw, matmul(v, or_nan(undefined, inverse_gaps(w, same) * moved))]


def eigh_cotangent(ct: Any, x: Array, ans: Any, *, lower: bool) -> Array:
    """Return the cotangent of the matrices, see ``eigh``."""
    w, v = ans
    ct_w, ct_v = ct
    if ct_v is None:
        if is_constant(ct_w) and not is_constant(v):
            return hermitian_cotangent(conjugated(eigen_sum(x, ct_w, lower=lower)), x, lower=lower)
        return hermitian_cotangent(conjugated(matmul(v * ct_w[..., None, :], adjoint(v))), x, lower=lower)
    ct_v = conjugated(ct_v)
    k = skew(matmul(adjoint(v), ct_v))
    same = _coinciding(w)
    pairs = without_diagonal(same)
    inner = or_nan(undefined_pairs(pairs, k, column_sizes(ct_v)), inverse_gaps(w, same) * k * 0.5)
    if ct_w is not None:
        inner = with_diagonal(or_nan(unknown_pairs(pairs, column_sizes(ct_v), ct_w), inner), ct_w)
    found = matmul(v, matmul(inner, adjoint(v)))
    if not is_constant(v) and (ct_w is None or is_constant(ct_w)):
        again = hermitian_part(vectors_moved(x, ct_v, held_fixed(v), lower=lower))
        again = again if ct_w is None else again + eigen_sum(x, ct_w, lower=lower)
        found = where(any_pair(unknown_pairs(pairs, column_sizes(ct_v), 0 * w if ct_w is None else ct_w)), found, again)
    return hermitian_cotangent(conjugated(found), x, lower=lower)


#: ``eigh(x, *, lower)``: eigenvalues in rising order, and eigenvectors. Reads one triangle of ``x``; tangents and
#: cotangents are those of Hermitian matrices, see ``triangle_shares``. The phases of eigenvectors change such that
#: ``diag(adjoint(V) dV)`` is zero.
eigh: Operation = primitive(
    "eigh", _eigh, vjps=[eigh_cotangent], jvps=[eigh_tangent], batch="leading", multiple=True, none_for_zero=True
)


def _eigen_sum(xp: Any, x: Any, y: Any, *, lower: bool) -> Any:
    _, v = _eigh(xp, x, lower=lower)
    return (v * y[..., None, :]) @ v.swapaxes(-1, -2).conj()


def _eigen_sum_tangent(t: Array, x: Array, y: Array, lower: bool) -> Array:
    """Return the tangent of the sum. Pairs of coinciding eigenvalues with equal weights contribute nothing."""
    w, v = eigh(x, lower=lower)
    moved = matmul(adjoint(v), matmul(t, v))
    same = _coinciding(w)
    uneven = logical_and(same, ~close_pairs(y, units=NOISE_UNITS))
    shares = (y[..., None, :] - y[..., :, None]) * inverse_gaps(w, same)
    return matmul(v, matmul(or_nan(undefined_pairs(uneven, moved, column_sizes(t)), shares * moved), adjoint(v)))


def _eigen_sum_vjp(ct: Array, x: Array, y: Array, *, lower: bool) -> Array:
    found = _eigen_sum_tangent(hermitian_part(conjugated(ct)), x, y, lower)
    return hermitian_cotangent(conjugated(found), x, lower=lower)


#: ``eigen_sum(x, y, *, lower)``: ``V diag(y) adjoint(V)``, the gradient of ``sum(y * w)`` for constant weights ``y``.
#: Unlike the product of its factors it has a JVP where eigenvalues coincide, if their weights are equal.
eigen_sum: Operation = primitive(
    "eigen_sum",
    _eigen_sum,
    vjps=[_eigen_sum_vjp, None],
    jvps=[lambda t, x, y, *, lower: _eigen_sum_tangent(hermitian_tangent(t, x, lower=lower), x, y, lower), None],
    batch="leading",
)


def _resolved(w: Array, v: Array, y: Array) -> Array:
    """Return the product of each column of ``y`` and the inverse of ``w[k] - x`` off the eigenvectors of ``w[k]``."""
    return matmul(v, inverse_gaps(w, _coinciding(w)) * matmul(adjoint(v), y))


def _vectors_moved(xp: Any, x: Any, y: Any, z: Any, *, lower: bool) -> Any:
    w, v = _eigh(xp, x, lower=lower)
    y = y * (v * z.conj()).sum(-2, keepdims=True)
    same = _close_pairs(xp, w, units=GAP_UNITS * math.sqrt(w.shape[-1]))
    gaps = xp.where(same, 1, w[..., None, :] - w[..., :, None])
    turned = v.swapaxes(-1, -2).conj()
    return (v @ (xp.where(same, 0, 1 / gaps) * (turned @ y))) @ turned


def _vectors_moved_tangent(t: Array, x: Array, y: Array, z: Array, *, lower: bool) -> Array:
    """Return the tangent in ``x``, with that of pseudo-inverses (Golub and Pereyra, 1973)."""
    w, v = eigh(x, lower=lower)
    y = y * column_phases(v, z)
    t = hermitian_tangent(t, x, lower=lower)
    turned, r = matmul(t, v), _resolved(w, v, y)
    dv, dw = _resolved(w, v, turned), _columns_times(adjoint(v), turned)
    dr = _resolved(w, v, matmul(t, r) - r * dw - dv * _columns_times(adjoint(v), y))
    dr = dr - v * _columns_times(matmul(adjoint(v), t), _resolved(w, v, r))
    return matmul(dr, adjoint(v)) + matmul(r, adjoint(dv))


def _vectors_moved_vjp(ct: Array, x: Array, y: Array, z: Array, *, lower: bool) -> Array:
    """Return the cotangent of ``x``: the transpose of ``_vectors_moved_tangent``, term by term."""
    w, v = eigh(x, lower=lower)
    y = y * column_phases(v, z)
    ct, r = conjugated(ct), _resolved(w, v, y)
    moved = matmul(ct, v)
    p, back = _resolved(w, v, moved), adjoint(v)
    found = matmul(p, adjoint(r)) + matmul(_resolved(w, v, matmul(adjoint(ct), r)), back)
    found = found - matmul(v * real_part(_columns_times(adjoint(p), r)), back)
    found = found - matmul(_resolved(w, v, p) * conjugated(_columns_times(back, y)), back)
    found = found - matmul(v * _columns_times(back, moved), adjoint(_resolved(w, v, r)))
    return hermitian_cotangent(conjugated(hermitian_part(found)), x, lower=lower)


def _vectors_moved_transposed(ct: Array, x: Array, z: Array, *, lower: bool) -> Array:
    w, v = eigh(x, lower=lower)
    return conjugated(_resolved(w, v, matmul(conjugated(ct), v))) * column_phases(v, z)


def _columns_times(x: Array, y: Array) -> Array:
    """Return the diagonal of a product of matrices as one row."""
    return diagonal(matmul(x, y), offset=0)[..., None, :]


#: ``vectors_moved(x, y, z, *, lower)``: ``V (F * adjoint(V) y) adjoint(V)``, the gradient for cotangents ``y`` of the
#: vectors, whose phases are those of the constant ``z``. Unlike the product of its factors it has derivatives where
#: eigenvalues coincide, if their vectors have no cotangents.
vectors_moved: Operation = primitive(
    "vectors_moved",
    _vectors_moved,
    vjps=[_vectors_moved_vjp, _vectors_moved_transposed, None],
    jvps=[_vectors_moved_tangent, lambda t, x, z, *, lower: vectors_moved(x, t, z, lower=lower), None],
    batch="leading",
)


# ---- singular values ---------------------------------------------------------------------------------------


class _Singular:
    """Masks of coinciding and vanishing singular values, and the inverses of their differences and sums."""

    def __init__(self, s: Array) -> None:
        k = s.shape[-1]
        self.zero = vanishing(s)
        self.same = _coinciding(s)
        self.inverse = _inverse(s, self.zero)
        self.both_zero = logical_and(self.zero[..., None, :], self.zero[..., :, None])
        self.gaps = inverse_gaps(s, self.same)
        self.sums = _inverse(s[..., None, :] + s[..., :, None], self.both_zero)
        self.pairs = without_diagonal(self.same)
        #: The common phase of a pair of vectors is free; the phase of the right vector is held fixed, as in JAX.
        self.phases = self.sums * np.eye(k, dtype=np.int8)


def _svd(xp: Any, x: Any, *, full_matrices: bool) -> tuple[Any, Any, Any]:
    return tuple(xp.linalg.svd(x, full_matrices=full_matrices))


def split_columns(x: Array, k: int) -> tuple[Array, Array | None]:
    """Split ``x`` into the first ``k`` columns and the remaining ones, or None if none remain."""
    return (x, None) if x.shape[-1] == k else (x[..., :k], x[..., k:])


def _divided_by_values(rest: Array, g: _Singular, columns: Array) -> Array:
    """Divide the columns of ``rest`` by the singular values; where those are zero, 0 gives 0 and all else NaN."""
    return or_nan(undefined_pairs(g.zero[..., None, :], rest, columns), rest * g.inverse[..., None, :])


def _vectors_tangent(moved: Array, u: Array, u_rest: Array | None, x: Array, g: _Singular, size: Array) -> Array:
    """Return the tangent of singular vectors ``u``, and of the vectors that complete them to a basis.

    Args:
        moved: ``dx V``; ``u`` and ``u_rest`` span its space.
        u: the singular vectors.
        u_rest: the vectors that complete them, or None if they are not computed. They do not rotate among themselves.
        x: the rotation of ``u`` within its own span.
        g: masks and inverses for the singular values.
        size: the sizes of the columns of dx.
    """
    tangent = matmul(u, x)
    if u.shape[-2] == u.shape[-1]:
        return tangent
    if u_rest is None:
        return tangent + _divided_by_values(moved - matmul(u, matmul(adjoint(u), moved)), g, size)
    out = _divided_by_values(matmul(adjoint(u_rest), moved), g, size)
    return join_columns(tangent + matmul(u_rest, out), -matmul(u, adjoint(out)))


def _svd_jvp(t: Array, ans: Any, *, full_matrices: bool) -> list[Array]:
    u, s, vh = ans
    (u, u_rest), (v, v_rest) = split_columns(u, s.shape[-1]), split_columns(adjoint(vh), s.shape[-1])
    g, size = _Singular(s), column_sizes(t)
    of_u, of_v = matmul(t, v), matmul(adjoint(t), u)
    moved = matmul(adjoint(u), of_u)
    even, odd = moved + adjoint(moved), skew(moved)
    added = g.gaps * even
    if is_complex(t):
        added = added + g.phases * odd
    added = or_nan(undefined_pairs(g.pairs, even, size), added)
    lost = or_nan(undefined_pairs(g.both_zero, odd, size), g.sums * odd)
    ds = real_part(diagonal(moved, offset=0))
    du = _vectors_tangent(of_u, u, u_rest, (added + lost) * 0.5, g, size)
    dv = _vectors_tangent(of_v, v, v_rest, (added - lost) * 0.5, g, size)
    return [du, ds, adjoint(dv)]


def _outside_span(ct: Array, inner: Array, u: Array, u_rest: Array | None, g: _Singular, columns: Array) -> Array:
    """Return the part of the cotangent ``ct`` that is outside the span of ``u``, over the singular values."""
    if u_rest is None:
        rest = ct - matmul(u, inner)
    else:
        own, other = split_columns(ct, u.shape[-1])
        rest = matmul(u_rest, matmul(adjoint(u_rest), own) - adjoint(matmul(adjoint(u), other)))
    return _divided_by_values(rest, g, columns)


def singular_gradient(ct_s: Array, x: Array, u: Array, vh: Array) -> Array:
    """Return the cotangent of ``x`` from a cotangent of its singular values; ``u`` and ``vh`` are the thin vectors."""
    if is_constant(ct_s) and not is_constant(u):
        return conjugated(singular_sum(x, ct_s))
    return conjugated(matmul(u * ct_s[..., None, :], vh))


def _svd_vjp(ct: Any, x: Array, ans: Any, *, full_matrices: bool) -> Array | None:
    u, s, vh = ans
    ct_u, ct_s, ct_vh = ct
    k = s.shape[-1]
    (u, u_rest), (v, v_rest) = split_columns(u, k), split_columns(adjoint(vh), k)
    if ct_u is None and ct_vh is None:
        return None if ct_s is None else singular_gradient(ct_s, x, u, adjoint(v))
    g = _Singular(s)
    ct_u, ct_v = None if ct_u is None else conjugated(ct_u), None if ct_vh is None else swap_last_axes(ct_vh)
    left = None if ct_u is None else matmul(adjoint(u), split_columns(ct_u, k)[0])
    right = None if ct_v is None else matmul(adjoint(v), split_columns(ct_v, k)[0])
    sizes = [column_sizes(c) for c in (ct_u, ct_v) if c is not None]
    columns = join_columns(*sizes)
    inner = _within_span(left, right, is_complex(u), g, columns)
    if ct_s is not None:
        used = sum([size[..., :k] for size in sizes])
        inner = with_diagonal(or_nan(unknown_pairs(g.pairs, used, ct_s), inner), ct_s)
        if is_complex(u) or u.shape[-2] != v.shape[-2]:  # vectors of a zero may rotate independently
            inner = or_nan(vanishing_with_cotangent(s, ct_s)[..., None, :], inner)
    ans = matmul(u, matmul(inner, adjoint(v)))
    if left is not None and u.shape[-2] > k:
        ans = ans + matmul(_outside_span(ct_u, left, u, u_rest, g, columns), adjoint(v))
    if right is not None and v.shape[-2] > k:
        ans = ans + matmul(u, adjoint(_outside_span(ct_v, right, v, v_rest, g, columns)))
    return conjugated(ans)


def _within_span(left: Array | None, right: Array | None, free_phases: bool, g: _Singular, columns: Array) -> Array:
    """Return the cotangent of ``adjoint(U) x V`` that comes from rotations of the vectors among themselves.

    Args:
        left: ``adjoint(U) B`` with the cotangent B of U, or None.
        right: ``adjoint(V) B`` with the cotangent B of V, or None.
        free_phases: whether the phases of the vectors are free.
        g: masks and inverses for the singular values.
        columns: the sizes of the columns of the cotangents.
    """
    if right is None:
        total = difference = left
    elif left is None:
        total, difference = right, -right
    else:
        total, difference = left + right, left - right
    even, odd = skew(total), skew(difference)
    inner = g.gaps * even + g.sums * odd
    if free_phases:
        inner = inner + g.phases * even
    inner = or_nan(undefined_pairs(g.both_zero, abs(even) + abs(odd), columns), inner * 0.5)
    return or_nan(undefined_pairs(g.pairs, even, columns), inner)


#: ``svd(x, *, full_matrices)``: U, the singular values in falling order, and adjoint(V). Undetermined derivatives are
#: zero: vectors that complete a basis do not rotate among themselves, the diagonal of ``adjoint(V) dV`` is zero.
svd: Operation = primitive(
    "svd", _svd, vjps=[_svd_vjp], jvps=[_svd_jvp], batch="leading", multiple=True, none_for_zero=True
)


def _singular_sum(xp: Any, x: Any, y: Any) -> Any:
    u, _, vh = _svd(xp, x, full_matrices=False)
    return (u * y[..., None, :]) @ vh


def _singular_sum_tangent(t: Array, x: Array, y: Array) -> Array:
    """Return the tangent of the sum. Pairs of coinciding singular values with equal weights contribute nothing."""
    u, s, vh = svd(x, full_matrices=False)
    v, g, size, live = adjoint(vh), _Singular(s), column_sizes(t), not_equal(y, 0)
    of_u, of_v = matmul(t, v), matmul(adjoint(t), u)
    moved = matmul(adjoint(u), of_u)
    even, odd = moved + adjoint(moved), skew(moved)
    uneven = logical_and(g.same, ~close_pairs(y, units=NOISE_UNITS))
    inner = or_nan(undefined_pairs(uneven, even, size), (y[..., None, :] - y[..., :, None]) * g.gaps * even)
    open_pairs = logical_and(g.both_zero, live[..., None, :] | live[..., :, None])
    inner = inner + or_nan(undefined_pairs(open_pairs, odd, size), (y[..., None, :] + y[..., :, None]) * g.sums * odd)
    weights, open_columns = (y * g.inverse)[..., None, :], logical_and(g.zero, live)[..., None, :]

    def beyond(moved: Array, u: Array) -> Array:
        rest = moved - matmul(u, matmul(adjoint(u), moved))
        return or_nan(undefined_pairs(open_columns, rest, size), rest * weights)

    ans = matmul(u, matmul(inner * 0.5, vh))
    if u.shape[-2] > u.shape[-1]:
        ans = ans + matmul(beyond(of_u, u), vh)
    if v.shape[-2] > v.shape[-1]:
        ans = ans + matmul(u, adjoint(beyond(of_v, v)))
    return ans


#: ``singular_sum(x, y)``: ``U diag(y) adjoint(V)``, the gradient of ``sum(y * s)`` for constant weights ``y``; see
#: ``eigen_sum``.
singular_sum: Operation = primitive(
    "singular_sum",
    _singular_sum,
    vjps=[lambda ct, x, y: conjugated(_singular_sum_tangent(conjugated(ct), x, y)), None],
    jvps=[lambda t, x, y: _singular_sum_tangent(t, x, y), None],
    batch="leading",
)
