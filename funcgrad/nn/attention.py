"""Attention: means of values, weighted by the softmax of the products of a query and the keys."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import ShapeError
from funcgrad.kinds.linear import astype, broadcast_to, permute, reshape
from funcgrad.nn.narrow import floating, widened
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.special import logsumexp
from funcgrad.primitives.comparison import less, logical_and, where
from funcgrad.primitives.products import matmul, swap_last_axes
from funcgrad.primitives.reductions import softmax
from funcgrad.typing import Array, ArrayLike

__all__ = ["dot_product_attention"]

#: Logit of a masked pair. It is finite, so that a query without keys gets uniform weights, as in JAX.
_NEVER = -0.7 * float(np.finfo(np.float32).max)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Compute ``softmax(query @ key.T * scale + bias) @ value`` per head; arguments as in ``jax.nn``.

    The softmax has the precision of its arguments, at least float32; JAX always uses float32.

    Args:
        query: an array of shape (batch, T, heads, features), or without batch.
        key: an array of shape (batch, S, K, features); K divides heads, and heads / K consecutive heads share a key.
        value: an array of the shape of ``key``.
        bias: an array to add to the logits; it broadcasts to (batch, heads, T, S).
        mask: booleans, True for the pairs that take part; they broadcast to (batch, heads, T, S).
        scale: the factor of the logits; by default 1 / sqrt(features).
        is_causal: whether a query sees only keys at its own and at earlier positions.
        query_seq_lengths: the number of queries of each example that count; the results of others are 0.
        key_value_seq_lengths: the number of keys of each example that take part.
        local_window_size: the number of positions that a query sees before and after its own; one number for both.
        implementation: accepted for compatibility with JAX, and ignored.
        return_residual: whether to return the logsumexp of the logits, too; it has a derivative, unlike in JAX.

    Raises:
        ShapeError: shapes that do not fit each other (a ``ValueError``).

    Example:
        >>> x = np.arange(3.0).reshape(3, 1, 1)
        >>> fnn.dot_product_attention(np.zeros((3, 1, 1)), x, x, is_causal=True).ravel()
        array([0. , 0.5, 1. ])
    """
    query, key, value = floating(query), floating(key), floating(value)
    shape, dtype = backend.shape_of(query), backend.dtype_of(key)
    q, k, v = _fitting(query, key, value)
    (b, t, n, h), (s, heads) = backend.shape_of(q), backend.shape_of(k)[1:3]
    q = permute(reshape(q, to=(b, t, heads, n // heads, h)), axes=(0, 2, 3, 1, 4))
    k, v = [reshape(permute(x, axes=(0, 2, 1, 3)), to=(b, heads, 1, s, h)) for x in (k, v)]
    logits = matmul(widened(q), swap_last_axes(widened(k))) * float(1 / math.sqrt(h) if scale is None else scale)
    if bias is not None:
        logits = logits + astype(_by_head(bias, heads, n), to=backend.dtype_of(logits))
    rows = None if query_seq_lengths is None else _within(query_seq_lengths, t, (1, 1, t, 1))
    keys = None if key_value_seq_lengths is None else _within(key_value_seq_lengths, s, (1, 1, 1, s))
    masks = (_seen(t, s, is_causal, local_window_size), mask if mask is None else _by_head(mask, heads, n), keys, rows)
    if given := [m for m in masks if m is not None]:
        logits = where(functools.reduce(logical_and, given), logits, _NEVER)
    weights = softmax(logits, axis=(4,))
    ans = matmul(astype(weights, to=dtype) if dtype != backend.dtype_of(weights) else weights, v)
    ans = ans if rows is None else where(rows, ans, 0.0)
    ans = reshape(permute(ans, axes=(0, 3, 1, 2, 4)), to=shape)
    ans = ans if backend.dtype_of(ans) == dtype else astype(ans, to=dtype)
    if not return_residual:
        return ans
    total = reshape(permute(logsumexp(logits, axis=-1), axes=(0, 3, 1, 2)), to=shape[:-1])
    return ans, total if backend.dtype_of(total) == dtype else astype(total, to=dtype)


def _four(x: Array) -> Array:
    shape = backend.shape_of(x)
    return x if len(shape) == 4 else reshape(x, to=(*(1,) * (4 - len(shape)), *shape))


def _fitting(query: Array, key: Array, value: Array) -> list[Array]:
    """Return the three arguments with four axes each; check that their shapes fit."""
    q, k, v = [_four(x) for x in (query, key, value)]
    (b, _, n, h), (s, heads) = backend.shape_of(q), backend.shape_of(k)[1:3]
    if backend.shape_of(k) != (b, s, heads, h) or backend.shape_of(v) != (b, s, heads, h) or n % heads:
        raise ShapeError(
            f"dot_product_attention: shapes do not fit, got query {describe(query)}, key {describe(key)}, value "
            f"{describe(value)}. They are (batch, places, heads, features); the heads of query divide by those of key."
        )
    return [q, k, v]


def _by_head(x: ArrayLike, heads: int, n: int) -> Array:
    """Reshape ``x``, which broadcasts to (batch, heads, T, S), to groups of heads: (batch, groups, heads, T, S)."""
    x = _four(as_value(x))
    b, have, t, s = backend.shape_of(x)
    if have == 1:
        return reshape(x, to=(b, 1, 1, t, s))
    return reshape(broadcast_to(x, to=(b, n, t, s)), to=(b, heads, n // heads, t, s))


def _within(lengths: ArrayLike, count: int, to: tuple[int, ...]) -> Array:
    """Return a mask of the positions, of ``count``, that are below the length of each example."""
    lengths = as_value(lengths)
    return less(np.arange(count).reshape(to), reshape(lengths, to=(*backend.shape_of(lengths), 1, 1, 1, 1)))


def _seen(t: int, s: int, is_causal: bool, window: int | tuple[int, int] | None) -> Any:
    """Return a mask of the pairs of positions that take part by their distance; None if all do."""
    if not is_causal and window is None:
        return None
    ahead = np.arange(s) - np.arange(t)[:, None]
    seen = np.ones((t, s), bool) if not is_causal else ahead <= 0
    if window is None:
        return seen
    before, after = (window, window) if isinstance(window, int) else window
    return seen & (ahead >= -before) & (ahead <= after)
