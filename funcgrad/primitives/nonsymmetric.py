"""Eigenvalues and eigenvectors of matrices that need not be Hermitian.

With ``x V = V diag(w)`` and ``T = inv(V) dx V`` the derivatives are ``dw = diag(T)`` and
``dV = V (F * T) + V diag(c)``, where ``F[i, j] = 1 / (w[j] - w[i])``; see M. Giles, "Collected matrix derivative
results for forward and reverse mode algorithmic differentiation" (2008). ``c`` keeps each vector's length at
one and its largest element real, as LAPACK does.

The rules of ``primitives.decompositions`` for coinciding eigenvalues hold here too. The rounding within which
eigenvalues coincide is larger, by the condition number of the eigenvalue. If that is so large that the matrix is
*defective* within rounding (it lacks eigenvectors), the derivatives of the eigenvalues are infinite. The result is
then NaN, except for functions that treat the coinciding eigenvalues alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.linear import conj, imag, real, reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.comparison import logical_and, where
from funcgrad.primitives.decompositions import (
    GAP_UNITS,
    NOISE_UNITS,
    close_pairs,
    column_sizes,
    inverse_gaps,
    or_nan,
    rounding_unit,
    undefined_pairs,
    unknown_pairs,
    with_diagonal,
    without_diagonal,
)
from funcgrad.primitives.determinants import lenient_inv
from funcgrad.primitives.elementwise import conjugated, is_complex
from funcgrad.primitives.products import matmul
from funcgrad.primitives.shaping import diagonal
from funcgrad.primitives.solving import adjoint
from funcgrad.typing import Array


def _conditions(x: Any) -> Any:
    """Return the condition numbers of eigenvalues, given the inverse ``x`` of the matrix of unit eigenvectors."""
    return abs(x).max(-1, initial=1)


def _merging(xp: Any, x: Any, y: Any) -> Any:
    noise = GAP_UNITS * math.sqrt(x.shape[-1]) * rounding_unit(x) * abs(x).max(-1, keepdims=True, initial=0)
    within = noise * _conditions(y)
    gaps = abs(x[..., None, :] - x[..., :, None])
    return (gaps <= xp.maximum(within[..., None, :], within[..., :, None])) | np.eye(x.shape[-1], dtype=bool)


def _defective(xp: Any, x: Any, y: Any) -> Any:
    condition = _conditions(y)
    worst = xp.maximum(condition[..., None, :], condition[..., :, None])
    limit = 0.01 / math.sqrt(rounding_unit(y))
    return x & (worst > limit) & ~np.eye(x.shape[-1], dtype=bool)


def _largest_rows(xp: Any, x: Any) -> Any:
    if not x.shape[-2]:  # no element is the largest
        return np.zeros(x.shape, np.int8)
    rows = np.arange(x.shape[-2])[:, None]
    return (rows == abs(x).argmax(-2)[..., None, :]).astype(np.int8)


#: ``merging(w, inverse)``: the mask of pairs of eigenvalues that coincide, including each one with itself.
merging: Operation = nondifferentiable("merging", _merging, batch="leading")
#: ``defective(pairs, inverse)``: the mask of those ``pairs`` whose eigenvectors coincide too.
defective: Operation = nondifferentiable("defective", _defective, batch="leading")
#: ``largest_rows(v)``: 1 at the element of each column that LAPACK makes real, else 0.
largest_rows: Operation = nondifferentiable("largest_rows", _largest_rows, batch="leading")


def _columns_sum(x: Array) -> Array:
    return reduce_sum(x, axis=(len(x.shape) - 2,))


def _normalized(u: Array, v: Array) -> Array:
    """Return the tangent ``u`` of eigenvectors ``v``, corrected so that lengths and phases are kept."""
    change = -_columns_sum(conjugated(v) * u)
    if is_complex(v):
        mark = largest_rows(v)
        change = real(change) - imag(_columns_sum(u * mark)) / real(_columns_sum(v * mark)) * 1j
    return u + v * change[..., None, :]


def _normalized_transpose(ct: Array, v: Array) -> Array:
    """Apply the transpose of ``_normalized`` to conjugated cotangents."""
    along = _columns_sum(conjugated(v) * ct)
    if not is_complex(v):
        return ct - v * along[..., None, :]
    mark = largest_rows(v)
    phase = imag(along) / real(_columns_sum(v * mark))
    return ct - v * real(along)[..., None, :] - mark * (phase * 1j)[..., None, :]


def _eig_jvp(t: Array, ans: Any) -> list[Array]:
    w, v = ans
    inverse = lenient_inv(v)
    moved = matmul(inverse, matmul(t, v))
    same = merging(w, inverse)
    pairs = without_diagonal(same)
    undefined = undefined_pairs(pairs, moved, column_sizes(t))
    lost = column_sizes(defective(pairs, inverse)) > 0
    dv = matmul(v, or_nan(undefined, inverse_gaps(w, same) * moved))
    return [or_nan(lost, diagonal(moved, offset=0)), _normalized(dv, v)]


def _eig_vjp(ct: Any, ans: Any) -> Array:
    w, v = ans
    ct_w, ct_v = ct
    inverse = lenient_inv(v)
    same = merging(w, inverse)
    pairs = without_diagonal(same)
    lost = defective(pairs, inverse)
    if ct_v is None:
        inner = where(np.eye(w.shape[-1], dtype=bool), conjugated(ct_w)[..., None, :], 0)
    else:
        ct_v, weights = conjugated(ct_v), column_sizes(ct_v) * 0 if ct_w is None else ct_w
        turned, sizes = matmul(adjoint(v), _normalized_transpose(ct_v, v)), column_sizes(ct_v)
        inner = conjugated(inverse_gaps(w, same)) * turned
        inner = or_nan(undefined_pairs(pairs, turned, sizes), inner)
        inner = or_nan(unknown_pairs(lost if ct_w is None else pairs, sizes, weights), inner)
    if ct_w is not None:
        inner = or_nan(logical_and(lost, ~close_pairs(ct_w, units=NOISE_UNITS)), inner)
        inner = inner if ct_v is None else with_diagonal(inner, conjugated(ct_w))
    return conj(matmul(adjoint(inverse), matmul(inner, adjoint(v))))


def _eig(xp: Any, x: Any) -> tuple[Any, Any]:
    if xp is np:
        w, v = np.linalg.eig(x)
        return w, v
    floating = x if x.dtype.kind in "fc" else x * 1.0
    options = {"compute_left_eigenvectors": False, "enable_eigvec_derivs": True}
    try:
        return tuple(loaded_jax().lax.linalg.eig(floating, **options))
    except TypeError:  # in older versions, JAX's derivatives cover eigenvalues only
        return tuple(xp.linalg.eig(x))


#: ``eig(x)``: eigenvalues and eigenvectors of length one; real if NumPy finds all eigenvalues real.
eig: Operation = primitive(
    "eig",
    _eig,
    vjps=[_eig_vjp],
    jvps=[_eig_jvp],
    batch="leading",
    multiple=True,
    none_for_zero=True,
    data_dependent=True,
)
