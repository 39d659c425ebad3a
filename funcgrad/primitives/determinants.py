"""Determinants of the matrices in the last two axes, differentiable at singular matrices too.

The gradient of the determinant is the matrix of cofactors, which is a polynomial of the elements. Most
libraries compute it from the inverse, which exists only for regular matrices. For up to three rows the
polynomial is short and is written out, which makes derivatives of every order exact. For more rows the
cofactors come from the singular values: with ``x = U S V`` they are ``det(U V) conj(U) cof(S) conj(V)``, where
``cof(S)`` has products of singular values, and the same holds for their derivatives of every order. The
derivative of order k of ``det`` at a diagonal matrix ``S`` along ``Y_1, ..., Y_k`` is the sum over all indices
``i_1, ..., i_k`` of the product of the elements of ``S`` at the other indices times the determinant of the matrix
with the elements ``Y_a[i_a, i_b]``: Bhatia and Jain, "Higher order derivatives and perturbation bounds for
determinants", Linear Algebra and its Applications 431 (2009), pages 2102 to 2108, written for a diagonal matrix. The
formula has no division, so it is exact at every rank.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import expand_to, imag, real, reduce_sum
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.products import LETTERS, matmul, swap_last_axes
from funcgrad.primitives.shaping import flip
from funcgrad.typing import Array, Shape

_SIGNS = np.array([[1, -1], [-1, 1]], np.int8)  # int8 promotes no other dtype
_CYCLIC = np.array([0, 1, 2, 0, 1])


def _last_two(shape: Shape) -> tuple[int, int]:
    return len(shape) - 2, len(shape) - 1


def _cofactor_matrix(x: Array) -> Array:
    """Return the matrix of cofactors of ``x``."""
    shape = backend.shape_of(x)
    n = shape[-1]
    if n > 3:
        return cofactors(x)
    if n == 3:  # each is a determinant of the next two rows and columns, counted cyclically
        wide = getitem(x, (..., _CYCLIC[:, None], _CYCLIC))
        part = [getitem(wide, (..., slice(i, i + 3), slice(j, j + 3))) for i in (1, 2) for j in (1, 2)]
        return part[0] * part[3] - part[1] * part[2]
    if n == 2:
        return flip(x, axis=_last_two(shape)) * _SIGNS
    return backend.ones_like(x)


def _products_of_others(xp: Any, s: Any) -> Any:
    """Return, at i, j, the product of all singular values but those two: exact, however many are zero."""
    n = s.shape[-1]
    rows = xp.where(np.eye(n, dtype=bool), xp.ones((), s.dtype), s[..., None, :])
    one = xp.ones_like(rows[..., :1])
    before = xp.cumprod(xp.concatenate([one, rows[..., :-1]], -1), -1)
    after = xp.cumprod(xp.concatenate([one, rows[..., :0:-1]], -1), -1)[..., ::-1]
    return before * after


def _phase_and_svd(xp: Any, x: Any) -> tuple[Any, ...]:
    """Return ``det(U V)``, conj(U), conj(V), and the singular values; the first is NaN if ``x`` is not finite."""
    finite = xp.isfinite(x).all((-2, -1))
    u, s, v = xp.linalg.svd(xp.where(finite[..., None, None], x, 0))
    phase = xp.where(finite, xp.linalg.det(u) * xp.linalg.det(v), x.dtype.type(np.nan))
    return phase[..., None, None], u.conj(), v.conj(), s


def _cofactors(xp: Any, x: Any) -> Any:
    if xp is not np:  # JAX differentiates its determinant exactly, at every order
        values, pullback = loaded_jax().vjp(xp.linalg.det, x)
        return pullback(xp.ones_like(values))[0]
    with np.errstate(all="ignore"):  # values that overflow are results too
        try:
            # The determinant and the inverse come from the same factors, so their errors cancel.
            ans = np.linalg.det(x)[..., None, None] * np.linalg.inv(x).swapaxes(-1, -2)
            if np.isfinite(ans).all():
                return ans
        except np.linalg.LinAlgError:
            pass
        phase, u, v, s = _phase_and_svd(np, x)
        return phase * ((u * np.diagonal(_products_of_others(np, s), 0, -2, -1)[..., None, :]) @ v)


def _first_derivative(xp: Any, x: Any, y: Any) -> Any:
    phase, u, v, s = _phase_and_svd(xp, x)
    products = _products_of_others(xp, s)
    turned = u.swapaxes(-1, -2) @ y @ v.swapaxes(-1, -2)
    off = 1 - np.eye(x.shape[-1], dtype=np.int8)
    on = (xp.diagonal(turned, 0, -2, -1)[..., None, :] * products * off).sum(-1)
    inner = on[..., None] * (1 - off) - (turned * products).swapaxes(-1, -2) * off
    return phase * (u @ inner @ v)


def _products_outside(xp: Any, s: Any, order: int) -> Any:
    """Return the tensor with ``order`` axes of the products of all singular values but those at its indices."""
    n = s.shape[-1]
    ans = xp.ones((*s.shape[:-1], *[1] * order), s.dtype)
    for m in range(n):
        taken = np.arange(n) == m
        inside = functools.reduce(np.logical_or.outer, [taken] * order)
        ans = ans * xp.where(inside, xp.ones((), s.dtype), s[..., m].reshape(*s.shape[:-1], *[1] * order))
    return ans


@functools.cache
def _signed_permutations(n: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return all permutations of ``range(n)``, each as a pair of sign and permutation."""

    def sign(p: tuple[int, ...]) -> int:
        return -1 if sum(a > b for a, b in itertools.combinations(p, 2)) % 2 else 1

    return [(sign(p), p) for p in itertools.permutations(range(n))]


def _higher_derivative(xp: Any, x: Any, *ys: Any) -> Any:
    n, order = x.shape[-1], len(ys) + 1
    if order > n:  # the determinant is a polynomial of degree n
        return xp.zeros_like(x)
    phase, u, v, s = _phase_and_svd(xp, x)
    products = _products_outside(xp, s, order)
    turned = [u.swapaxes(-1, -2) @ y @ v.swapaxes(-1, -2) for y in ys]
    letters, diagonal_of = LETTERS[:order], np.eye(n, dtype=np.int8)
    inner: Any = 0
    for sign, p in _signed_permutations(order):
        pairs = [letters[a] + letters[p[a]] for a in range(order)]
        fixed = p[-1] == order - 1
        inputs = ",".join(["..." + pair for pair in [letters, *pairs[:-1]]])
        part = xp.einsum(f"{inputs}->...{letters[-1] if fixed else pairs[-1]}", products, *turned)
        inner = inner + sign * (part[..., None] * diagonal_of if fixed else part)
    return phase * (u @ inner @ v)


@functools.cache
def _cofactor_derivative(order: int) -> Operation:
    """Return the derivative of ``cofactors`` of this order: ``change(x, y_1, ..., y_order)``.

    ``change`` is linear in each ``y`` and symmetric in all of them, and its inner product with another matrix is
    symmetric in that matrix too. So its derivative in ``x`` is ``change`` of the next order, in both modes.
    """

    def along(position: int) -> Any:
        if position == 0:
            return lambda t, args: _cofactor_derivative(order + 1)(*args, t)
        return lambda t, args: _cofactor_derivative(order)(*args[:position], *args[position + 1 :], t)

    rules = [along(i) for i in range(order + 1)]
    impl = _first_derivative if order == 1 else _higher_derivative
    return primitive(f"cofactors_change_{order}", impl, vjps=rules, jvps=rules, batch="leading")


#: ``cofactors_change(x, y)``: the derivative of ``cofactors`` along ``y``.
cofactors_change: Operation = _cofactor_derivative(1)

#: ``cofactors(x)``: the gradient of the determinant of four rows and more. Its Jacobian is symmetric, as a Hessian.
cofactors: Operation = primitive(
    "cofactors",
    _cofactors,
    vjps=[lambda ct, x: cofactors_change(x, ct)],
    jvps=[lambda t, x: cofactors_change(x, t)],
    batch="leading",
)

det: Operation = primitive(
    "det",
    lambda xp, x: xp.linalg.det(x),
    vjps=[lambda ct, x, shape: expand_to(ct, shape, axis=_last_two(shape)) * _cofactor_matrix(x)],
    jvps=[lambda t, x, shape: reduce_sum(t * _cofactor_matrix(x), axis=_last_two(shape))],
    batch="leading",
)


def _lenient_inv(xp: Any, x: Any) -> Any:
    if xp is not np:
        return xp.linalg.inv(x)
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:  # NumPy does not say which matrix is singular
        ans = np.empty(x.shape, np.linalg.inv(x[..., :0, :0]).dtype)
    for index in np.ndindex(x.shape[:-2]):
        try:
            ans[index] = np.linalg.inv(x[index])
        except np.linalg.LinAlgError:
            with np.errstate(divide="ignore", invalid="ignore"):
                ans[index] = swap_last_axes(_cofactor_matrix(x[index])) / 0.0
    return ans


#: ``lenient_inv(x)``: ``inv``, but the result for a singular matrix is its cofactors divided by zero (infinity or NaN),
#: where NumPy raises an error for the whole batch.
lenient_inv: Operation = primitive(
    "lenient_inv",
    _lenient_inv,
    vjps=[lambda ct, ans: -matmul(swap_last_axes(ans), matmul(ct, swap_last_axes(ans)))],
    jvps=[lambda t, ans: -matmul(ans, matmul(t, ans))],
    batch="leading",
)


def _slogdet_jvp(t: Array, x: Array, ans: Any, shape: Shape) -> list[Array]:
    slope = reduce_sum(t * swap_last_axes(lenient_inv(x)), axis=_last_two(shape))
    sign = ans[0]
    if backend.dtype_of(x).kind == "c":
        return [sign * imag(slope) * 1j, real(slope)]
    return [backend.zeros_like(sign), slope]


def _slogdet_vjp(ct: Any, x: Array, ans: Any, shape: Shape) -> Array | None:
    ct_sign, weight = ct
    if backend.dtype_of(x).kind == "c" and ct_sign is not None:
        turned = -real(ct_sign * ans[0] * 1j) * 1j
        weight = turned if weight is None else weight + turned
    if weight is None:  # a real sign is constant, even where the logarithm has an infinite slope
        return None
    return expand_to(weight, shape, axis=_last_two(shape)) * swap_last_axes(lenient_inv(x))


#: ``slogdet(x)``: the sign, and the logarithm of the absolute value. The phase of a complex sign depends on ``x``.
slogdet: Operation = primitive(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    vjps=[_slogdet_vjp],
    jvps=[_slogdet_jvp],
    batch="leading",
    multiple=True,
    none_for_zero=True,
)
