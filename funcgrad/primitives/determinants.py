"""Determinants of the matrices in the last two axes, differentiable at singular matrices too.

The gradient of the determinant is the matrix of cofactors. It is a polynomial of the elements, and
the inverse, which most libraries make it of, knows it only where the matrix has one. Up to three rows the
polynomial is short and is written out, which makes every order of derivative exact. Of more rows the
cofactors come from the singular values: with ``x = U S V`` they are ``det(U V) conj(U) cof(S) conj(V)``, where
``cof(S)`` has products of singular values, and the same holds for their derivative. From the third order on
the matrix must have an inverse.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import expand_to, imag, real, reduce_sum, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.products import matmul, swapped
from funcgrad.primitives.shaping import diagonal, flip
from funcgrad.primitives.solving import inv
from funcgrad.typing import Array, Shape

__all__ = ["cofactors", "cofactors_change", "det", "lenient_inv", "slogdet"]

_SIGNS = np.array([[1, -1], [-1, 1]], np.int8)  # the smallest of all dtypes: it promotes no other
_AROUND = np.array([0, 1, 2, 0, 1])


def _last_two(shape: Shape) -> tuple[int, int]:
    return len(shape) - 2, len(shape) - 1


def _gradient(x: Array) -> Array:
    """The cofactors of ``x``."""
    shape = backend.shape_of(x)
    n = shape[-1]
    if n > 3:
        return cofactors(x)
    if n == 3:  # each is a determinant of the two next rows and columns, counted in a circle
        wide = getitem(x, (..., _AROUND[:, None], _AROUND))
        part = [getitem(wide, (..., slice(i, i + 3), slice(j, j + 3))) for i in (1, 2) for j in (1, 2)]
        return part[0] * part[3] - part[1] * part[2]
    if n == 2:
        return flip(x, axis=_last_two(shape)) * _SIGNS
    return backend.ones_like(x)


def _products_of_others(xp: Any, s: Any) -> Any:
    """At i, j the product of all singular values but those two: exact, however many are zero."""
    n = s.shape[-1]
    rows = xp.where(np.eye(n, dtype=bool), xp.ones((), s.dtype), s[..., None, :])
    one = xp.ones_like(rows[..., :1])
    before = xp.cumprod(xp.concatenate([one, rows[..., :-1]], -1), -1)
    after = xp.cumprod(xp.concatenate([one, rows[..., :0:-1]], -1), -1)[..., ::-1]
    return before * after


def _decomposed(xp: Any, x: Any) -> tuple[Any, ...]:
    """``det(U V)``, conj(U), conj(V), and the products of singular values."""
    u, s, v = xp.linalg.svd(x)
    phase = xp.linalg.det(u) * xp.linalg.det(v)
    return phase[..., None, None], u.conj(), v.conj(), _products_of_others(xp, s)


def _cofactors(xp: Any, x: Any) -> Any:
    if xp is not np:  # JAX differentiates its determinant exactly, and can do so again
        values, pull = sys.modules["jax"].vjp(xp.linalg.det, x)
        return pull(xp.ones_like(values))[0]
    with np.errstate(all="ignore"):  # of what overflows, too, it is the value that counts
        try:
            # The determinant and the inverse come from the same factors, so their errors cancel.
            ans = np.linalg.det(x)[..., None, None] * np.linalg.inv(x).swapaxes(-1, -2)
            if np.isfinite(ans).all():
                return ans
        except np.linalg.LinAlgError:
            pass
        finite = np.isfinite(x).all((-2, -1), keepdims=True)
        phase, u, v, products = _decomposed(np, np.where(finite, x, 0))
        ans = phase * ((u * np.diagonal(products, 0, -2, -1)[..., None, :]) @ v)
    return np.where(finite, ans, x.dtype.type(np.nan))


def _cofactors_change(xp: Any, x: Any, y: Any) -> Any:
    phase, u, v, products = _decomposed(xp, x)
    turned = u.swapaxes(-1, -2) @ y @ v.swapaxes(-1, -2)
    off = 1 - np.eye(x.shape[-1], dtype=np.int8)
    on = (xp.diagonal(turned, 0, -2, -1)[..., None, :] * products * off).sum(-1)
    inner = on[..., None] * (1 - off) - (turned * products).swapaxes(-1, -2) * off
    return phase * (u @ inner @ v)


def _trace(x: Array) -> Array:
    ans = reduce_sum(diagonal(x, offset=0), axis=(len(x.shape) - 2,))
    return reshape(ans, to=(*x.shape[:-2], 1, 1))


def _second_change(x: Array, y: Array, t: Array) -> Array:
    """The derivative of ``cofactors_change(x, y)`` in ``x`` along ``t``; symmetric in ``y`` and ``t``."""
    inverse = inv(x)
    a, b = matmul(inverse, y), matmul(inverse, t)
    ab, ba = matmul(a, b), matmul(b, a)
    trace_a, trace_b = _trace(a), _trace(b)
    mixed = matmul(ab + ba - trace_a * b - trace_b * a, inverse)
    whole = (trace_a * trace_b - _trace(ab)) * inverse + mixed
    return reshape(det(x), to=(*x.shape[:-2], 1, 1)) * swapped(whole)


#: ``cofactors_change(x, y)``: the derivative of ``cofactors`` along ``y``. It is linear and symmetric in ``y``.
cofactors_change: Operation = primitive(
    "cofactors_change",
    _cofactors_change,
    vjps=[lambda ct, x, y: _second_change(x, y, ct), lambda ct, x: cofactors_change(x, ct)],
    jvps=[lambda t, x, y: _second_change(x, y, t), lambda t, x: cofactors_change(x, t)],
    batch="leading",
)

#: ``cofactors(x)``: the gradient of the determinant of four rows and more. A gradient's Jacobian is symmetric.
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
    vjps=[lambda ct, x, shape: expand_to(ct, shape, _last_two(shape)) * _gradient(x)],
    jvps=[lambda t, x, shape: reduce_sum(t * _gradient(x), axis=_last_two(shape))],
    batch="leading",
)


def _lenient_inv(xp: Any, x: Any) -> Any:
    if xp is not np:
        return xp.linalg.inv(x)
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:  # it does not say of which matrix
        ans = np.empty(x.shape, np.linalg.inv(x[..., :0, :0]).dtype)
    for place in np.ndindex(x.shape[:-2]):
        try:
            ans[place] = np.linalg.inv(x[place])
        except np.linalg.LinAlgError:
            with np.errstate(divide="ignore", invalid="ignore"):
                ans[place] = swapped(_gradient(x[place])) / 0.0
    return ans


#: ``lenient_inv(x)``: ``inv``, but of singular matrices what their cofactors divided by zero give, infinity or NaN,
#: where NumPy raises an error for the whole batch.
lenient_inv: Operation = primitive(
    "lenient_inv",
    _lenient_inv,
    vjps=[lambda ct, ans: -matmul(swapped(ans), matmul(ct, swapped(ans)))],
    jvps=[lambda t, ans: -matmul(ans, matmul(t, ans))],
    batch="leading",
)


def _slogdet_jvp(t: Array, x: Array, ans: Any, shape: Shape) -> list[Array]:
    slope = reduce_sum(t * swapped(lenient_inv(x)), axis=_last_two(shape))
    sign = ans[0]
    if backend.dtype_of(x).kind == "c":
        return [sign * imag(slope) * 1j, real(slope)]
    return [backend.zeros_like(sign), slope]


def _slogdet_vjp(ct: Any, x: Array, ans: Any, shape: Shape) -> Array | None:
    of_sign, weight = ct
    if backend.dtype_of(x).kind == "c" and of_sign is not None:
        turned = -real(of_sign * ans[0] * 1j) * 1j
        weight = turned if weight is None else weight + turned
    if weight is None:  # a real sign is constant, also where the slope of the logarithm is infinite
        return None
    return expand_to(weight, shape, _last_two(shape)) * swapped(lenient_inv(x))


#: ``slogdet(x)``: the sign, and the logarithm of the absolute value. A complex sign turns with ``x``.
slogdet: Operation = primitive(
    "slogdet",
    lambda xp, x: tuple(xp.linalg.slogdet(x)),
    vjps=[_slogdet_vjp],
    jvps=[_slogdet_jvp],
    batch="leading",
    multiple=True,
    sparse=True,
)
