"""Matrices made from vectors, and from blocks."""

from __future__ import annotations

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe
from funcgrad.primitives.indexing import pad_zeros
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["block_diag", "circulant", "companion", "toeplitz"]


@mirrors
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return the matrices with constant diagonals whose first column is ``c`` and whose first row is ``r``.

    Args:
        c: first columns, along the last axis.
        r: first rows; the conjugate of ``c`` if not given. Its first element is not used.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.toeplitz([1, 2], [1, 3, 4])
        array([[1, 3, 4],
               [2, 1, 3]])
    """
    c = fnp.atleast_1d(c)
    r = fnp.conjugate(c) if r is None else fnp.atleast_1d(r)
    rows, columns = backend.shape_of(c)[-1], backend.shape_of(r)[-1]
    batch = np.broadcast_shapes(backend.shape_of(c)[:-1], backend.shape_of(r)[:-1])
    parts = [fnp.broadcast_to(v, (*batch, backend.shape_of(v)[-1])) for v in (fnp.flip(c, -1), r[..., 1:])]
    line = fnp.concatenate(parts, axis=-1)
    return line[..., rows - 1 - np.arange(rows)[:, None] + np.arange(columns)]


@mirrors
def circulant(c: ArrayLike) -> Array:
    """Return the matrices whose first column is ``c`` and whose other columns are rotations of ``c``.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.circulant([1, 2, 3])
        array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]])
    """
    c = fnp.atleast_1d(c)
    n = backend.shape_of(c)[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


@mirrors
def block_diag(*arrs: ArrayLike) -> Array:
    """Return the matrix with the given matrices along its diagonal, zeros elsewhere.

    Args:
        arrs: matrices; vectors and numbers count as one row. Axes before the last two are batches, which broadcast.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.block_diag([[1.0]], [[2.0, 3.0]])
        array([[1., 0., 0.],
               [0., 2., 3.]])
    """
    parts = [fnp.atleast_2d(a) for a in arrs]
    shapes = [backend.shape_of(p) for p in parts]
    batch = np.broadcast_shapes(*[s[:-2] for s in shapes])
    width, done, rows = sum(s[-1] for s in shapes), 0, []
    for part, shape in zip(parts, shapes, strict=True):
        whole = fnp.broadcast_to(part, (*batch, *shape[-2:]))
        beside = (done, width - done - shape[-1])
        rows.append(pad_zeros(whole, widths=((0, 0),) * (len(batch) + 1) + (beside,)))
        done += shape[-1]
    return fnp.concatenate(rows, axis=-2)


@mirrors
def companion(a: ArrayLike) -> Array:
    """Return the companion matrices of polynomials with coefficients ``a``, the highest first.

    Raises:
        ValueError: there are fewer than two coefficients.

    Example:
        >>> from funcgrad.scipy import linalg
        >>> linalg.companion([2.0, -4.0, 6.0])
        array([[ 2., -3.],
               [ 1.,  0.]])
    """
    a = fnp.atleast_1d(a)
    n = backend.shape_of(a)[-1] - 1
    if n < 1:
        raise ValueError(f"companion: two coefficients or more are needed, got {describe(a)}. Pass a longer vector.")
    first = (-a[..., 1:] / a[..., :1])[..., None, :]
    shape = (*backend.shape_of(a)[:-1], n - 1, n)
    below = np.broadcast_to(np.eye(n - 1, n, dtype=backend.dtype_of(first)), shape)
    return fnp.concatenate([first, below], axis=-2)
