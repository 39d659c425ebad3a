"""QR factors, pseudo-inverses, and least squares solutions.

Matrices occupy the last two axes; leading axes are batches.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import plain_value
from funcgrad.graph import report_answer
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import imag, real, reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.comparison import where
from funcgrad.primitives.decompositions import (
    GAP_UNITS,
    join_columns,
    or_nan,
    rounding_unit,
    singular_gradient,
    skew,
    split_columns,
    svd,
    with_diagonal,
)
from funcgrad.primitives.determinants import lenient_inv
from funcgrad.primitives.elementwise import conjugated, is_complex, real_part
from funcgrad.primitives.products import matmul, swap_last_axes
from funcgrad.primitives.shaping import concatenate, diagonal, tril, triu
from funcgrad.primitives.solving import adjoint, as_hermitian, hermitian_cotangent, hermitian_tangent
from funcgrad.typing import Array

# ---- QR ----------------------------------------------------------------------------------------------------


def _singular(xp: Any, x: Any) -> Any:
    i = np.arange(x.shape[-1])
    size = abs(x[..., i, i])
    noise = GAP_UNITS * math.sqrt(x.shape[-1]) * rounding_unit(x)
    return (size <= noise * size.max(-1, keepdims=True, initial=0)).any(-1)


#: ``singular(x)``: whether the triangular matrix ``x`` has a zero on its diagonal within rounding.
singular: Operation = nondifferentiable("singular", _singular, batch="leading")


def _triangular_inverse(r: Array) -> Array:
    """Return the inverse of a triangular matrix, NaN if it is singular: dependent columns have no direction."""
    return or_nan(singular(r)[..., None, None], lenient_inv(r))


def _on_diagonal(of_r: Array, of_q: Array) -> Array:
    """Return the diagonal: the diagonal of R stays real, that of ``adjoint(Q) dQ`` is imaginary."""
    d = diagonal(of_r, offset=0)
    return real(d) + imag(diagonal(of_q, offset=0)) * 1j if is_complex(d) else d


def _qr_jvp(t: Array, ans: Any, *, complete: bool) -> list[Array]:
    q, r = ans
    k = min(q.shape[-2], r.shape[-1])
    (q, q_rest), (r, r_rest), (t, t_rest) = split_columns(q, k), split_columns(r[..., :k, :], k), split_columns(t, k)
    moved = matmul(t, _triangular_inverse(r))
    inner = matmul(adjoint(q), moved)
    turn = skew(tril(inner, k=-1))
    if is_complex(inner):
        turn = with_diagonal(turn, imag(diagonal(inner, offset=0)) * 1j)
    dq, dr = matmul(q, turn), matmul(inner - turn, r)
    if q_rest is not None:
        out = matmul(adjoint(q_rest), moved)
        dq = join_columns(dq + matmul(q_rest, out), -matmul(q, adjoint(out)))
    elif q.shape[-2] > k:
        dq = dq + moved - matmul(q, inner)
    if r_rest is not None:
        dr = join_columns(dr, matmul(matmul(adjoint(dq), q), r_rest) + matmul(adjoint(q), t_rest))
    if dr.shape[-2] < ans[1].shape[-2]:
        below = (*dr.shape[:-2], ans[1].shape[-2] - k, dr.shape[-1])
        zeros = backend.library_of(dr).zeros(below, backend.dtype_of(dr))
        dr = concatenate(dr, zeros, axis=len(below) - 2)
    return [dq, dr]


def _qr_vjp(ct: Any, ans: Any, *, complete: bool) -> Array:
    q, r = ans
    ct_q, ct_r = (None if c is None else conjugated(c) for c in ct)
    k = min(q.shape[-2], r.shape[-1])
    (q, q_rest), (r, r_rest) = split_columns(q, k), split_columns(r[..., :k, :], k)
    ct_q = backend.zeros_like(ans[0]) if ct_q is None else ct_q
    ct_r = backend.zeros_like(ans[1]) if ct_r is None else ct_r
    (ct_q, ct_q_rest), (ct_r, ct_r_rest) = split_columns(ct_q, k), split_columns(ct_r[..., :k, :], k)
    if r_rest is not None:  # the columns after the k-th are the product of Q and theirs in R
        ct_q = ct_q + matmul(matmul(q, r_rest), adjoint(ct_r_rest))
    turned, scaled = matmul(adjoint(q), ct_q), matmul(ct_r, adjoint(r))
    above = triu(scaled, k=1)
    inner = tril(skew(turned), k=-1) + above + adjoint(above)
    moved = matmul(q, with_diagonal(inner, _on_diagonal(scaled, turned)))
    if q_rest is not None:
        moved = moved + matmul(q_rest, matmul(adjoint(q_rest), ct_q) - adjoint(matmul(adjoint(q), ct_q_rest)))
    elif q.shape[-2] > k:
        moved = moved + ct_q - matmul(q, turned)
    ans = matmul(moved, adjoint(_triangular_inverse(r)))
    return conjugated(ans if r_rest is None else join_columns(ans, matmul(q, ct_r_rest)))


#: ``qr(x, *, complete)``: Q and R, whose diagonal is real. Columns of Q that complete a basis do not rotate among
#: themselves. VJP rule: H.-J. Liao et al., "Differentiable programming tensor networks" (2019).
qr: Operation = primitive(
    "qr",
    lambda xp, x, *, complete: tuple(xp.linalg.qr(x, mode="complete" if complete else "reduced")),
    vjps=[_qr_vjp],
    jvps=[_qr_jvp],
    batch="leading",
    multiple=True,
    none_for_zero=True,
)


# ---- pseudo-inverses ---------------------------------------------------------------------------------------


def _pinv(xp: Any, x: Any, y: Any, *, hermitian: bool) -> Any:
    if xp is np:
        return np.linalg.pinv(x, rcond=y, hermitian=hermitian)
    return xp.linalg.pinv(as_hermitian(xp, x) if hermitian else x, rtol=y, hermitian=hermitian)


def _stein(xp: Any, x: Any, y: Any, z: Any) -> Any:
    """Return the sum of ``x**k y z**k`` over k, by doubling; the norms of ``x`` and ``z`` have a product below one."""

    def normalized(x: Any) -> tuple[Any, Any]:
        scale = abs(x).max((-2, -1), keepdims=True, initial=0)
        return x / xp.where(scale > 0, scale, 1), scale

    def doubled(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, y, z, factor = state
        x, scale_x = normalized(x)  # powers of ``x`` and ``z`` would overflow
        z, scale_z = normalized(z)
        factor = factor * scale_x * scale_z
        return x @ x, y + factor * (x @ y @ z), z @ z, factor * factor

    state = (x, y, z, xp.ones((*y.shape[:-2], 1, 1), y.real.dtype))
    if xp is not np:  # JAX has no reverse mode for a loop whose length depends on values
        return loaded_jax().lax.fori_loop(0, 12, lambda _, state: doubled(state), state)[1]
    for _ in range(40):
        before = state[1]
        state = doubled(state)
        if not (abs(state[1] - before) > np.finfo(before.dtype).eps * abs(before).max(initial=0)).any():
            break
    return state[1]


def _stein_transposed(x: Array, ct: Array, z: Array) -> Array:
    return stein(swap_last_axes(x), ct, swap_last_axes(z))


#: ``stein(x, y, z)``: the solution S of ``S = y + x S z``.
stein: Operation = primitive(
    "stein",
    _stein,
    vjps=[
        lambda ct, x, z, ans: matmul(_stein_transposed(x, ct, z), swap_last_axes(matmul(ans, z))),
        lambda ct, x, z: _stein_transposed(x, ct, z),
        lambda ct, x, z, ans: matmul(swap_last_axes(matmul(x, ans)), _stein_transposed(x, ct, z)),
    ],
    jvps=[
        lambda t, x, z, ans: stein(x, matmul(matmul(t, ans), z), z),
        lambda t, x, z: stein(x, t, z),
        lambda t, x, z, ans: stein(x, matmul(matmul(x, ans), t), z),
    ],
    batch="leading",
)


#: ``all_count(x)``: whether the trace of the projector ``x`` shows that it is the identity.
all_count: Operation = nondifferentiable(
    "all_count", lambda xp, x: xp.trace(x, axis1=-2, axis2=-1).real > x.shape[-1] - 0.5, batch="leading"
)


def _neglected_part(x: Array, p: Array, space: Array, counts: Any) -> Array:
    """Return the part of ``x`` that counts as zero in its pseudo-inverse ``p``; ``counts``: whether there is none.

    The projection is repeated from both sides: the first one leaves rounding errors in the space of the other part,
    and the inverses of small singular values would amplify them.
    """
    rest = x - matmul(x, space)
    rest = rest - matmul(x, matmul(p, rest))
    rest = rest - matmul(matmul(rest, p), x)
    return where(counts[..., None, None], 0, rest)


def _are_all_true(x: Any) -> bool:
    """Whether all truth values are known and true; a graph that is replayed asks again."""
    known = plain_value(x)
    if type(known) not in (np.ndarray, np.bool):
        return False
    report_answer(x, known if known.ndim else bool(known))
    return bool(known.all())


def _pinv_tangent(t: Array, x: Array, p: Array) -> Array:
    """Return the tangent of the pseudo-inverse ``p`` of ``x`` along ``t``.

    ``rest``, the part of ``x`` that counts as zero, need not be zero. If it is, this is the formula of Golub and
    Pereyra. With singular values s that count and r that do not, that formula has ``1 / s**2`` in place of
    ``1 / (s**2 - r**2)``, which ``stein`` gives, and lacks the terms with ``rest``. The map from ``t`` to the adjoint
    of the tangent is self-adjoint, because the adjoint of ``p`` is the gradient of a function of the singular values.
    """
    if x.shape[-2] < x.shape[-1]:
        return adjoint(_pinv_tangent(adjoint(t), adjoint(x), adjoint(p)))
    t_adjoint, p_adjoint, space = adjoint(t), adjoint(p), matmul(p, x)
    counts, inside = all_count(space), matmul(p, p_adjoint)
    left = matmul(inside, t_adjoint)
    left = left - matmul(matmul(left, x), p)
    if _are_all_true(counts):  # the other terms are zero, as in most programs
        return left - matmul(p, matmul(t, p))
    rest = _neglected_part(x, p, space, counts)
    rest_adjoint = adjoint(rest)
    outside = matmul(rest_adjoint, rest)
    left = left + matmul(matmul(inside, matmul(p, t)), rest_adjoint)
    right = matmul(t_adjoint, p_adjoint)
    right = matmul(right - matmul(p, matmul(x, right)), p) + matmul(matmul(rest_adjoint, matmul(t, inside)), p)
    left = left + matmul(matmul(inside, stein(inside, matmul(left, rest), outside)), rest_adjoint)
    right = right + matmul(matmul(outside, stein(outside, matmul(right, p_adjoint), inside)), p)
    return left + right - matmul(p, matmul(t, p))


def _pinv_jvp(t: Array, x: Array, ans: Array, *, hermitian: bool) -> Array:
    t, x = (hermitian_tangent(t, x), hermitian_tangent(x, x)) if hermitian else (t, x)
    return _pinv_tangent(t, x, ans)


def _pinv_vjp(ct: Array, x: Array, ans: Array, *, hermitian: bool) -> Array:
    if not hermitian:
        return swap_last_axes(_pinv_tangent(swap_last_axes(ct), x, ans))
    found = _pinv_tangent(swap_last_axes(ct), hermitian_tangent(x, x), ans)
    return hermitian_cotangent(swap_last_axes(found), x)


#: ``pinv(x, y, *, hermitian)``: singular values up to ``y`` times the largest count as zero; ``y`` has the shape of the
#: batch. The derivative assumes constant rank; see G. H. Golub and V. Pereyra, "The differentiation of
#: pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
pinv: Operation = primitive("pinv", _pinv, vjps=[_pinv_vjp, None], jvps=[_pinv_jvp, None], batch="leading")


# ---- least squares -----------------------------------------------------------------------------------------


def _lstsq(xp: Any, x: Any, y: Any, *, rcond: float) -> tuple[Any, ...]:
    """Solve one or many systems: for one, by NumPy's or JAX's function, which take a single matrix."""
    if x.ndim == 2:
        return tuple(xp.linalg.lstsq(x, y, rcond))
    dtype = xp.result_type(x, y)
    x, y = x.astype(dtype), y.astype(dtype)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    counts = s > rcond * s.max(-1, keepdims=True, initial=0)
    inverse = xp.where(counts, 1 / xp.where(counts, s, 1), 0)
    z = vh.swapaxes(-1, -2).conj() @ (inverse[..., None] * (u.swapaxes(-1, -2).conj() @ y))
    rank = counts.sum(-1)
    rest = (abs(y - x @ z) ** 2).sum(-2)
    rows, columns = x.shape[-2:]
    if xp is np and (rows <= columns or (rank.size and (rank < columns).all())):
        rest = rest[..., :0]  # as in NumPy
    elif xp is np:
        rest[rank < columns] = np.nan
    return z, rest, rank.astype(np.int32), s


def _pinv_for(x: Array, rcond: float) -> Array:
    return pinv(x, np.full(x.shape[:-2], rcond), hermitian=False)


def _columns_product(x: Array, y: Array) -> Array:
    """Return the real parts of ``adjoint(x) y``, column by column."""
    return real_part(reduce_sum(conjugated(x) * y, axis=(len(x.shape) - 2,)))


def _lstsq_jvp_x(t: Array, args: Any, ans: Any, *, rcond: float) -> list[Any]:
    x, y = args
    dz = matmul(_pinv_tangent(t, x, _pinv_for(x, rcond)), y)
    u, _, vh = svd(x, full_matrices=False)
    ds = real_part(diagonal(matmul(adjoint(u), matmul(t, adjoint(vh))), offset=0))
    return [dz, _rest_jvp(-matmul(t, ans[0]), dz, args, ans), 0, ds]


def _lstsq_jvp_y(t: Array, args: Any, ans: Any, *, rcond: float) -> list[Any]:
    dz = matmul(_pinv_for(args[0], rcond), t)
    return [dz, _rest_jvp(t, dz, args, ans), 0, backend.zeros_like(ans[3])]


def _rest_jvp(moved: Array, dz: Array, args: Any, ans: Any) -> Array:
    """Return the tangent of the squared residuals."""
    (x, y), (z, squares, _, _) = args, ans
    if not squares.shape[-1]:
        return backend.zeros_like(squares)
    return _columns_product(y - matmul(x, z), moved - matmul(x, dz)) * 2


def _lstsq_cts(ct: Any, args: Any, ans: Any) -> tuple[Array | None, Array | None]:
    """Return the conjugated cotangents of the solution z and of ``y - x z``, whose squares are the residuals."""
    (x, y), (ct_z, ct_squares, _, _) = args, ct
    ct_z = None if ct_z is None else conjugated(ct_z)
    if ct_squares is None or not ans[1].shape[-1]:
        return ct_z, None
    ct_rest = (y - matmul(x, ans[0])) * (ct_squares * 2)[..., None, :]
    if backend.library_of(x) is not np:  # NumPy has residuals at full rank only, and then they are orthogonal to x
        through = matmul(adjoint(x), ct_rest)
        ct_z = -through if ct_z is None else ct_z - through
    return ct_z, ct_rest


def _lstsq_vjp_x(ct: Any, args: Any, ans: Any, *, rcond: float) -> Array | None:
    x, y = args
    ct_z, ct_rest = _lstsq_cts(ct, args, ans)
    parts = []
    if ct_z is not None:
        parts.append(adjoint(_pinv_tangent(matmul(y, adjoint(ct_z)), x, _pinv_for(x, rcond))))
    if ct_rest is not None:
        parts.append(-matmul(ct_rest, adjoint(ans[0])))
    if ct[3] is not None:
        u, _, vh = svd(x, full_matrices=False)
        parts.append(conjugated(singular_gradient(ct[3], x, u, vh)))
    return conjugated(sum(parts[1:], parts[0])) if parts else None


def _lstsq_vjp_y(ct: Any, args: Any, ans: Any, *, rcond: float) -> Array | None:
    ct_z, ct_rest = _lstsq_cts(ct, args, ans)
    parts = [] if ct_rest is None else [ct_rest]
    if ct_z is not None:
        parts.append(matmul(adjoint(_pinv_for(args[0], rcond)), ct_z))
    return conjugated(sum(parts[1:], parts[0])) if parts else None


#: ``lstsq(x, y, *, rcond)``: the solution of least norm for each column of ``y``, the squared residuals, the rank, and
#: the singular values.
lstsq: Operation = primitive(
    "lstsq",
    _lstsq,
    vjps=[_lstsq_vjp_x, _lstsq_vjp_y],
    jvps=[_lstsq_jvp_x, _lstsq_jvp_y],
    batch="leading",
    multiple=True,
    none_for_zero=True,
    data_dependent=True,
)
