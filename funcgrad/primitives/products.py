"""Matrix products, and sums of products of two arrays over any axes.

``matmul`` is NumPy's, with vectors and broadcasting. ``einsum`` multiplies two arrays whose axes have
letters, and sums over the letters that are not in its result; its transposes have the same form.

A matrix may be a factor of many products: with the weights of a recurrent network, each product would make an array of
the size of the weights for its cotangent, and add it to those of the other products. Instead, the factors of many
products wait and are multiplied at once: one product of long matrices replaces dozens of short ones.
"""

from __future__ import annotations

import operator
from functools import lru_cache, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from funcgrad import backend
from funcgrad.core import DOUBLE, Tracer
from funcgrad.graph import stands_for_array
from funcgrad.kinds import multilinear
from funcgrad.kinds.linear import fast_sum, permute, reshape, sum_over
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.arithmetic import multiply
from funcgrad.primitives.sparse import sparse_product
from funcgrad.reverse import SparseCotangent
from funcgrad.typing import Array, Shape

ndarray = np.ndarray
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BLAS = "fdFD"  # the dtypes that BLAS routines multiply
_FLAT = (1, 2)  # the ranks of vectors and matrices
_SMALL = 4096  # number of products up to which NumPy's ``einsum`` is fastest
#: Largest number of rows of a product that may wait, and how many columns per row the other factor must have.
_MAX_ROWS, _MIN_RATIO = 32, 8
#: Smallest number of entries that are combined into one product.
_MIN_ENTRIES = 8


def can_be_deferred(ct: ndarray, other: ndarray) -> bool:
    """Whether a product has so few rows that its factors take less memory than its term in the matrix's cotangent.

    Only shapes count, no other use of the matrix, so that recomputed operations add their terms in the same order.
    """
    rows = len(ct)
    return rows == 1 or (rows <= _MAX_ROWS and rows * _MIN_RATIO <= other.shape[1])


class ProductCotangent(SparseCotangent):
    """Cotangent ``left.T @ right`` of two matrices with the same number of rows."""

    __slots__ = ()
    max_pending = 64

    @staticmethod
    def sum_of(entries: list[Any]) -> Any:
        """Return the sum of all entries; many products are computed as one."""
        products = [entry for entry in entries if type(entry) is ProductCotangent]
        if len(entries) < _MIN_ENTRIES:
            return reduce(
                operator.add, [_factor_product(e[0].T, e[1]) if type(e) is ProductCotangent else e for e in entries]
            )
        left, right = np.concatenate([e[0] for e in products]), np.concatenate([e[1] for e in products])
        return reduce(
            operator.add, [_factor_product(left.T, right), *[e for e in entries if type(e) is not ProductCotangent]]
        )


class RowsCotangent(SparseCotangent):
    """Cotangent that is the sum of the rows of a matrix."""

    __slots__ = ()
    max_pending = 64

    @staticmethod
    def sum_of(entries: list[Any]) -> Any:
        """Return the sum of all entries; many sums of rows are computed as one."""
        if len(entries) < _MIN_ENTRIES:
            return reduce(operator.add, [_sum_of_rows(e[0]) if type(e) is RowsCotangent else e for e in entries])
        rows = np.concatenate([e[0] for e in entries if type(e) is RowsCotangent])
        return reduce(operator.add, [np.add.reduce(rows, 0), *[e for e in entries if type(e) is not RowsCotangent]])


def _sum_of_rows(ct: ndarray) -> Any:
    if len(ct) == 1:
        return ct[0]
    return fast_sum(ct, (0,)) if type(ct) is ndarray else sum_over(ct, axis=(0,))


def _factor_product(left: Any, right: Any) -> Any:
    return left.dot(right) if type(left) is type(right) is ndarray else left @ right


def swap_last_axes(x: Array) -> Array:
    """Return ``x`` with its last two axes exchanged."""
    rank = len(x.shape)
    axes = (*range(rank - 2), rank - 1, rank - 2)
    return x.transpose(axes) if type(x) is ndarray else permute(x, axes=axes)


def _product(x: ndarray, y: ndarray) -> Any:
    """Compute ``x @ y`` of arrays with axes.

    For matrices and vectors, ``dot`` gives the same result by the same routines. Unlike ``matmul``, ``dot`` does not
    check floating-point status flags. This check takes longer than a small product and says nothing about the result.
    Two arrays of one element go to ``matmul``: it adds their product to 0, which turns -0 into 0; ``dot`` does not.
    """
    dtype = x.dtype
    blas = y.dtype is dtype and (dtype is DOUBLE or dtype.char in _BLAS)
    if blas and x.ndim <= 2 and y.ndim <= 2 and (x.size > 1 or y.size > 1):
        try:
            return x.dot(y)
        except ValueError:  # shapes do not fit: ``matmul`` raises its own message
            pass
    return np.matmul(x, y)


def _direct_product(x: Any, y: Any) -> Any:
    """Return ``matmul(x, y)`` if the factors need no broadcasting or promotion, else None."""
    flat = type(x) is type(y) is ndarray and (dtype := x.dtype) is y.dtype and x.ndim in _FLAT and y.ndim in _FLAT
    if flat and (dtype is DOUBLE or dtype.char in _BLAS) and (x.size > 1 or y.size > 1):
        try:
            return x.dot(y)
        except ValueError:  # see ``_product``
            pass
    return matmul(x, y) if _need_no_broadcasting(x, y) else None


def fast_matmul(x: Array, y: Array) -> Array:
    """Compute ``matmul`` for derivative rules, with a fast path for ndarrays."""
    return _product(x, y) if type(x) is ndarray and type(y) is ndarray else matmul(x, y)


def _as_rows(x: Array) -> Array:
    """Return ``x`` of shape (..., m, n) as a matrix of m rows."""
    shape = x.shape
    rank = len(shape)
    if rank > 2:
        x = permute(x, axes=(rank - 2, *range(rank - 2), rank - 1))
    return _reshaped(x, (shape[-2], prod(shape[:-2]) * shape[-1]))


def _as_columns(x: Array) -> Array:
    """Return ``x`` of shape (..., n) as a matrix of n columns."""
    return _reshaped(x, (prod(x.shape[:-1]), x.shape[-1]))


def _reshaped(x: Array, to: Shape) -> Array:
    return x if backend.shape_of(x) == to else reshape(x, to=to)


def _outer(ct: Array, y: Array) -> Array:
    """Compute ``ct[..., None] * y`` for a vector ``y``."""
    column = _reshaped(ct, (*ct.shape, 1))
    if not stands_for_array(ct) and backend.library_of(ct) is np:
        # for batches this is faster than NumPy's loop over short rows
        return matmul(column, reshape(y, to=(1, *y.shape)))
    return multiply(column, y)


def _are_on_graph(ct: Any, other: Any) -> bool:
    """Whether both are on a graph, whose product must give the same bits as one of float64 ndarrays."""
    return stands_for_array(ct) and stands_for_array(other) and ct.dtype is other.dtype is DOUBLE


def _matmul_dx(ct: Array, y: Array, shape: Shape) -> Array:
    """Return the cotangent of the left factor; broadcast batch axes are summed here if that is cheap."""
    plain = type(ct) is type(y) is ndarray and ct.dtype is y.dtype is DOUBLE
    if plain and ct.ndim == y.ndim == 2:  # the most common case
        return ct.dot(y.T) if y.size > 1 else _product(ct, y.T)
    rank, other_rank = len(shape), y.ndim
    if plain and rank == 1 and other_rank == 2:
        return y.dot(ct) if y.size > 1 else _product(y, ct)
    if rank == 2 and other_rank == 1 and (plain or _are_on_graph(ct, y)):
        return ProductCotangent((ct[None], y[None]))
    if rank == other_rank == 2:
        return fast_matmul(ct, y.T if type(y) is ndarray else permute(y, axes=(1, 0)))
    if other_rank == 1:
        return multiply(ct, y) if rank == 1 else _outer(ct, y)
    if rank == 1:
        return fast_matmul(_as_rows(y), _reshaped(ct, (prod(ct.shape),)))
    if rank == 2 and other_rank > 2:
        return fast_matmul(_as_rows(ct), swap_last_axes(_as_rows(y)))
    if rank > 2 and other_rank == 2:
        return reshape(fast_matmul(_as_columns(ct), swap_last_axes(y)), to=shape)
    return fast_matmul(ct, swap_last_axes(y))


def _matmul_dy(ct: Array, x: Array, shape: Shape) -> Array:  # noqa: C901, PLR0912 - each pair of ranks is a case
    plain = type(ct) is type(x) is ndarray and ct.dtype is x.dtype is DOUBLE
    if plain and ct.ndim == x.ndim == 2:  # the most common case
        if len(ct) == 1 or can_be_deferred(ct, x):
            return ProductCotangent((x, ct))
        return x.T.dot(ct) if x.size > 1 else _product(x.T, ct)
    rank, other_rank = len(shape), x.ndim
    if plain and rank == 1 and other_rank == 2:
        return x.T.dot(ct) if x.size > 1 else _product(x.T, ct)
    if rank == 2 and other_rank == 1 and (plain or _are_on_graph(ct, x)):
        return ProductCotangent((x[None], ct[None]))
    if rank == other_rank == 2:
        if _are_on_graph(ct, x) and can_be_deferred(ct, x):
            return ProductCotangent((x, ct))
        if type(x) is ndarray:
            return fast_matmul(x.T, ct)
        if backend.library_of(x) is not np:
            # Sums of such products are transposed together, and XLA is faster at products with a long last axis.
            return swap_last_axes(matmul(swap_last_axes(ct), x))
        return fast_matmul(swap_last_axes(x), ct)
    if other_rank == 1:
        if rank == 1:
            return multiply(ct, x)
        if rank == 2 and stands_for_array(x) and stands_for_array(ct):
            return x[:, None] * ct
        return multiply(reshape(ct, to=(*ct.shape[:-1], 1, ct.shape[-1])), reshape(x, to=(*x.shape, 1)))
    if rank == 1:
        return fast_matmul(_reshaped(ct, (prod(ct.shape),)), _as_columns(x))
    if rank == 2 and other_rank > 2:
        return fast_matmul(swap_last_axes(_as_columns(x)), _as_columns(ct))
    return fast_matmul(swap_last_axes(x), ct)


def _batch_matmul(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    x, y = args
    rx, ry = (len(backend.shape_of(a)) - b for a, b in zip(args, batched, strict=True))
    if not rx or not ry:
        raise ValueError(
            f"matmul: Input operand {int(bool(rx))} does not have enough dimensions (has 0, requires at least 1)"
        )
    if rx > 2 or ry > 2:
        return _batch_matrices(size, args, batched, (rx, ry)), True
    if all(batched):
        if rx == ry == 1 and x.shape == y.shape:  # einsum would broadcast a vector of length 1
            return einsum(x, y, subscripts="ab,ab->a"), True
        return (matmul(x, y) if rx == ry == 2 else _batch_matrices(size, args, batched, (rx, ry))), True
    if batched[0]:
        if rx == ry == 2:
            return reshape(fast_matmul(_as_columns(x), y), to=(*x.shape[:-1], y.shape[-1])), True
        return matmul(x, y), True
    if ry == 1:
        return matmul(y, x if rx == 1 else swap_last_axes(x)), True
    return matmul(x, y), True


def _batch_matrices(size: int, args: tuple[Any, ...], batched: tuple[bool, ...], ranks: tuple[int, int]) -> Array:
    """Batch the general case: vectors become matrices, and the batch axis becomes one more broadcast axis."""
    most = max(2, *ranks)
    whole = []
    for position, (a, b, rank) in enumerate(zip(args, batched, ranks, strict=True)):
        own = a.shape[1:] if b else a.shape
        if rank == 1:
            own = (1, *own) if position == 0 else (*own, 1)
        whole.append(reshape(a, to=(size, *(1,) * (most - len(own)), *own)) if b else _reshaped(a, own))
    ans = matmul(*whole)
    to = list(ans.shape)
    if ranks[0] == 1:
        del to[-2]
    if ranks[1] == 1:
        del to[-1]
    return _reshaped(ans, tuple(to))


def _are_same_dtype_arrays(v: Any, w: Any) -> bool:
    """Whether two factors are arrays of one dtype, so that their cotangents have this dtype too."""
    while type(v) is Tracer and v._trace.differentiates:
        v = v._val
    while type(w) is Tracer and w._trace.differentiates:
        w = w._val
    # NumPy's product of two bfloat16 arrays is float32
    return type(v) is ndarray and type(w) is ndarray and v.dtype is w.dtype and v.dtype.kind != "V"


def _need_no_broadcasting(v: Any, w: Any) -> bool:
    """Whether ``_are_same_dtype_arrays`` holds, for matrices, vectors, or stacks that need no broadcasting."""
    if not _are_same_dtype_arrays(v, w):
        return False
    rank, other_rank = v.ndim, w.ndim
    return bool(0 < rank <= 2 >= other_rank > 0 or (rank > 2 and v.shape[:-2] == w.shape[:-2]))


#: ``matmul(x, y)``: NumPy's, with vectors and broadcasting of all axes but the last two; one may be sparse.
matmul: Operation = multilinear(
    "matmul",
    transposes=(_matmul_dx, _matmul_dy),
    batch=_batch_matmul,
    foreign=sparse_product,
    conforms=_need_no_broadcasting,
    direct=_direct_product,
    operator=operator.matmul,
)
#: The general path rounds as the fast path does.
matmul.primitive.prefer(lambda x, y: _product(x, y) if x.ndim and y.ndim else np.matmul(x, y), 2)


class _Plan(NamedTuple):
    """Plan for computing an ``einsum`` of two arrays by NumPy.

    ``x_axes`` and ``y_axes`` bring the axes into the orders (shared, left, summed) and (shared, summed,
    right); ``counts`` are the numbers of axes in the groups shared, left, summed and right; ``out_axes`` brings
    (shared, left, right) into the order of the result.
    """

    x_axes: tuple[int, ...]
    y_axes: tuple[int, ...]
    counts: tuple[int, int, int, int]
    out_axes: tuple[int, ...]


@lru_cache(maxsize=1024)
def _plan(subscripts: str) -> _Plan:
    tx, ty, out = _terms(subscripts)
    shared = [i for i in out if i in tx and i in ty]
    summed = [i for i in tx if i in ty and i not in out]
    left = [i for i in out if i not in ty]
    right = [i for i in out if i not in tx]
    made = [*shared, *left, *right]
    return _Plan(
        tuple([tx.index(i) for i in (*shared, *left, *summed)]),
        tuple([ty.index(i) for i in (*shared, *summed, *right)]),
        (len(shared), len(left), len(summed), len(right)),
        tuple([made.index(i) for i in out]),
    )


def _terms(subscripts: str) -> tuple[str, str, str]:
    factors, _, out = subscripts.partition("->")
    tx, _, ty = factors.partition(",")
    return tx, ty, out


def _einsum(xp: Any, x: Any, y: Any, *, subscripts: str) -> Any:
    if xp is not np:
        return xp.einsum(subscripts, x, y)
    x, y = np.asarray(x), np.asarray(y)
    if "V" in (x.dtype.kind, y.dtype.kind):  # NumPy's einsum does not know bfloat16; its matmul gives float32
        x, y = [v.astype(np.float32) if v.dtype.kind == "V" else v for v in (x, y)]
    x_axes, y_axes, (shared, left, summed, right), out_axes = _plan(subscripts)
    if summed and (x.size * y.size <= _SMALL or (shared and not left and not right)):
        # few products, or a product of vectors at each entry: matrix products would not be faster
        return np.einsum(subscripts, x, y)
    x, y = x.transpose(x_axes), y.transpose(y_axes)
    common, rows, columns = x.shape[:shared], x.shape[shared : shared + left], y.shape[shared + summed :]
    if summed:
        depth = prod(x.shape[shared + left :])
        ans = np.matmul(x.reshape(*common, prod(rows), depth), y.reshape(*common, depth, prod(columns)))
        ans = ans.reshape((*common, *rows, *columns))
    else:
        ans = x.reshape((*common, *rows, *(1,) * right)) * y.reshape((*common, *(1,) * left, *columns))
    return ans.transpose(out_axes) if out_axes else ans[()]


def _einsum_dx(ct: Array, y: Array, shape: Shape, *, subscripts: str) -> Array:
    tx, ty, out = _terms(subscripts)
    return einsum(ct, y, subscripts=f"{out},{ty}->{tx}")


def _einsum_dy(ct: Array, x: Array, shape: Shape, *, subscripts: str) -> Array:
    tx, ty, out = _terms(subscripts)
    return einsum(ct, x, subscripts=f"{out},{tx}->{ty}")


def _batch_einsum(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    subscripts = params["subscripts"]
    new = next(i for i in LETTERS if i not in subscripts)
    tx, ty, out = _terms(subscripts)
    tx, ty = (new * b + t for b, t in zip(batched, (tx, ty), strict=True))
    return einsum(*args, subscripts=f"{tx},{ty}->{new}{out}"), True


#: ``einsum(x, y, *, subscripts)``, as in "ij,jk->ik": no letter occurs twice in one term, and every letter of a
#: factor is also in the other factor or in the result. Lengths agree; nothing broadcasts.
einsum: Operation = multilinear(
    "einsum", _einsum, transposes=(_einsum_dx, _einsum_dy), batch=_batch_einsum, conforms=_are_same_dtype_arrays
)
