"""Norms of vectors and matrices, condition numbers, ranks."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.kinds.linear import reshape
from funcgrad.numpy import reductions
from funcgrad.numpy.axes import ALL_AXES, keepdims_shape, normalize_axes, normalize_axis
from funcgrad.numpy.creation import as_value, asarray, astype
from funcgrad.numpy.linalg.decompositions import eigvalsh, svdvals
from funcgrad.numpy.linalg.solving import square
from funcgrad.numpy.plain_values.peeking import any_true, is_numpy_only, is_plain
from funcgrad.numpy.reducing import as_floating, as_scalar, reduce_axes
from funcgrad.numpy.shaping import moveaxis
from funcgrad.primitives.arithmetic import absolute, divide, multiply, power
from funcgrad.primitives.comparison import equal, greater, isnan, logical_and, logical_not, not_equal, where
from funcgrad.primitives.determinants import lenient_inv
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.norms import euclidean
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


def norm(x: ArrayLike, ord: Any = None, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    """Return a norm of vectors along one axis, or of matrices along two.

    Derivatives where a norm is not smooth: the Euclidean and Frobenius norms and ``p`` norms have the derivative NaN
    at zero. Norms that sum absolute values use 1 as the slope of the absolute value at 0. If several elements, sums or
    singular values are the extremum, each has an equal share. ``ord=0`` has the derivative zero.

    Args:
        x: an array. Integers are converted to floating-point numbers.
        ord: for vectors None or 2, ``inf``, ``-inf``, 0 (the number of nonzero elements), or a power p, which may be
            traced; for matrices None or "fro", "nuc", 1, -1, ``inf``, ``-inf`` (sums of absolute values along
            columns or rows), 2, -2 (the largest and the smallest singular value).
        axis: one axis for vectors, a pair for matrices. None treats an array with one axis as a vector, with
            two axes as a matrix, and with ``ord=None`` any array as one long vector.
        keepdims: keep the reduced axes, with length 1.

    Raises:
        ValueError: an unknown ``ord``, or more than two axes.
        TypeError: ``axis`` is neither an integer nor a tuple; a traced ``ord`` for matrices.

    Example:
        >>> fnp.linalg.norm(np.array([3.0, 4.0]))
        np.float64(5.0)
        >>> grad(fnp.linalg.norm)(np.array([3.0, 4.0]))
        array([0.6, 0.8])
    """
    x = as_value(x)
    if is_numpy_only(x) and not isinstance(ord, Tracer):
        plain: Any = np.linalg.norm
        return plain(x, ord, axis, keepdims)
    x = as_floating(x)
    rank = len(backend.shape_of(x))
    if axis is None:
        if ord is None:
            return reduce_axes(euclidean, x, None, keepdims)
        axis = ALL_AXES[rank]
    elif not isinstance(axis, tuple):
        try:
            axis = (int(axis),)
        except Exception as error:
            raise InputError(
                f"norm: axis is an integer, a pair of them or None, got {axis!r}. Pass axis=(-2, -1) for matrices."
            ) from error
    if len(axis) == 1:
        return _vector_norms("norm", x, ord, axis, keepdims)
    if len(axis) != 2:
        raise ValueError(f"norm: one axis for vectors, two for matrices, got {len(axis)} axes. Name them: axis=-1.")
    row, column = normalize_axis(axis[0], rank), normalize_axis(axis[1], rank)
    if row == column:
        raise ValueError(f"norm: a matrix has two different axes, got axis={axis}. Pass axis=(-2, -1).")
    ans = _matrix_norms(x, ord, row, column)
    return reshape(ans, to=keepdims_shape(backend.shape_of(x), (row, column))) if keepdims else ans


def _vector_norms(name: str, x: Array, ord: Any, axis: Axes, keepdims: bool) -> Array:
    """Return the vector norm along ``axis``; several axes together are one vector."""
    if isinstance(ord, Tracer):
        return _norm_of_traced_order(name, x, as_floating(ord), axis, keepdims)
    if ord is None or (not isinstance(ord, str) and ord == 2):
        return reduce_axes(euclidean, x, axis, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"{name}: vectors have no norm of this name, got ord={ord!r}. Take a number.")
    if ord == 0:
        return reductions.sum(
            astype(not_equal(x, 0), np.empty(0, backend.dtype_of(x)).real.dtype), axis, keepdims=keepdims
        )
    size = absolute(x)
    if ord == math.inf:
        return reductions.max(size, axis, keepdims=keepdims, initial=0)
    if ord == -math.inf:
        return reductions.min(size, axis, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axis, keepdims=keepdims)
    p = ord if type(ord) is int else float(ord)
    return power(reductions.sum(power(size, p), axis, keepdims=keepdims), 1 / p)


def _norm_of_traced_order(name: str, x: Array, p: Array, axis: Axes, keepdims: bool) -> Array:
    """Return the vector norm by the formula of all powers, which has a derivative in the power ``p``."""
    limits = [limit for limit in (0, math.inf, -math.inf) if any_true(partial(operator.eq, limit), p)]
    q = p
    for limit in limits:
        q = where(equal(q, limit), 1, q)
    ans = power(reductions.sum(power(absolute(x), q), axis, keepdims=keepdims), divide(1, q))
    for limit in limits:  # for these powers NumPy has definitions of their own
        ans = where(equal(p, limit), _vector_norms(name, x, limit, axis, keepdims), ans)
    return as_scalar(ans) if limits else ans


def _matrix_norms(x: Array, ord: Any, row: int, column: int) -> Array:
    """Return the norm of the matrices that two axes span, without these axes."""
    if isinstance(ord, Tracer):
        raise InputError(
            f"norm: matrices have norms for a few numbers only, so there is no derivative in them, got "
            f"ord={describe(ord)}. Pass stop_gradient(ord)."
        )
    if ord is None or ord in ("fro", "f"):
        return euclidean(x, axis=(row, column))
    if ord == "nuc" or ord in (2, -2):
        values = svdvals(moveaxis(x, (row, column), (-2, -1)))
        if ord == "nuc":
            return reductions.sum(values, -1)
        return reductions.max(values, -1, initial=0) if ord == 2 else reductions.min(values, -1)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(
            f"norm: matrices have no such norm, got ord={ord!r}. Take fro, nuc, 1, -1, 2, -2, inf or -inf."
        )
    summed, compared = (row, column) if abs(ord) == 1 else (column, row)
    sums = reductions.sum(absolute(x), summed)
    compared -= compared > summed
    return reductions.max(sums, compared, initial=0) if ord > 0 else reductions.min(sums, compared)


def vector_norm(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2
) -> Array:
    """Return a norm of vectors along any number of axes, by default of all elements.

    Args:
        x: an array. Integers are converted to floating-point numbers.
        axis: one axis, several, or None for all; several axes together are one vector.
        keepdims: keep the reduced axes, with length 1.
        ord: as for vectors in ``norm``, which also tells where there is no derivative.

    Raises:
        ValueError: an unknown ``ord``.

    Example:
        >>> fnp.linalg.vector_norm(np.full((2, 2), 3.0))
        np.float64(6.0)
    """
    x = as_value(x)
    if is_numpy_only(x) and not isinstance(ord, Tracer):
        return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)  # type: ignore[arg-type]  # stub lacks None
    x = as_floating(x)
    return _vector_norms("vector_norm", x, ord, normalize_axes(axis, len(backend.shape_of(x))), keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return a norm of the matrices in the last two axes.

    Args:
        x: an array of two axes or more. Integers are converted to floating-point numbers.
        keepdims: keep the last two axes, with length 1.
        ord: as for matrices in ``norm``, which also tells where there is no derivative.

    Raises:
        ValueError: an unknown ``ord``, or fewer than two axes.

    Example:
        >>> fnp.linalg.matrix_norm(np.array([[1.0, -2.0], [3.0, 4.0]]), ord=1)
        np.float64(6.0)
    """
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: ArrayLike, p: Any = None) -> Array:
    """Return the condition numbers of matrices: the norm times the norm of the inverse.

    Singular matrices have an infinite condition number; the derivative is then NaN or infinite.

    Args:
        x: matrices in the last two axes; square ones, unless ``p`` is None, 2 or -2.
        p: an ``ord`` of ``norm``; None means 2: the largest singular value divided by the smallest.

    Raises:
        LinAlgError: no elements, or a matrix that is not square although ``p`` requires it.

    Example:
        >>> fnp.linalg.cond(np.array([[2.0, 0.0], [0.0, 1.0]]), 1)
        np.float64(2.0)
    """
    x = as_value(x)
    if is_numpy_only(x):
        return np.linalg.cond(x, p)
    shape = backend.shape_of(x)
    if 0 in shape[-2:]:
        raise LinAlgError(
            f"cond: matrices without elements have no condition number, got {describe(x)}. Leave them out."
        )
    x = as_floating(x)
    if p is None or p in (2, -2):
        values = svdvals(x)
        first, last = getitem(values, (..., 0)), getitem(values, (..., -1))
        ans = divide(last, first) if p == -2 else divide(first, last)
    else:
        ans = multiply(norm(square("cond", x), p, (-2, -1)), norm(lenient_inv(x), p, (-2, -1)))
    # a singular matrix gives NaN, which means infinity here
    unknown = logical_and(isnan(ans), logical_not(reductions.any(isnan(x), (-2, -1))))
    return as_scalar(where(unknown, math.inf, ans))


def matrix_rank(A: ArrayLike, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Return the number of singular values of matrices above a tolerance; no derivative passes.

    Args:
        A: matrices in the last two axes. With fewer axes the rank is 1, or 0 if all elements are zero.
        tol: one tolerance, or one for each matrix; by default ``rtol`` times the largest singular value.
        hermitian: whether the matrices are Hermitian; then eigenvalues are computed instead.
        rtol: a relative tolerance; by default the larger side of the matrices times the epsilon of their dtype.

    Raises:
        ValueError: both ``tol`` and ``rtol`` are given.

    Example:
        >>> fnp.linalg.matrix_rank(np.ones((2, 3)))
        np.int64(1)
    """
    A = as_value(A)
    if is_plain(A, tol, rtol):
        return np.linalg.matrix_rank(A, tol, hermitian, rtol=rtol)
    if rtol is not None and tol is not None:
        raise ValueError(f"matrix_rank: one tolerance is enough, got tol={tol!r} and rtol={rtol!r}. Leave one out.")
    shape = backend.shape_of(A)
    if len(shape) < 2:
        return astype(reductions.any(not_equal(A, 0)), int)
    values = absolute(eigvalsh(A)) if hermitian else svdvals(A)
    if tol is None:
        eps = max(shape[-2:]) * float(np.finfo(backend.dtype_of(values)).eps)
        share = eps if rtol is None else getitem(asarray(rtol), (..., None))
        tol = multiply(reductions.max(values, -1, keepdims=True, initial=0), share)
    else:
        tol = getitem(asarray(tol), (..., None))
    return reductions.count_nonzero(greater(values, tol), -1)
