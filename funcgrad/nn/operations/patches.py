"""Convolution of NumPy arrays by products of matrices, or by Fourier transforms for long kernels.

One matrix consists of patches of one factor, the elements that each place uses; the other matrix is the other factor.
A BLAS accepts a matrix whose rows have a constant distance in memory, so patches overlap in memory instead of being
written out: the places along the first axis are consecutive rows, and the patches of successive places read
the same memory from different rows on. Only along the other axes is a row written once for each offset.

With Fourier transforms, long kernels need far fewer operations. The error of each element is then relative to the
largest element, not to the element itself. If elements differ by many orders of magnitude, the small elements lose
digits that sums of products keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import gcd, log2, prod
from typing import Any, NamedTuple

import numpy as np

from funcgrad.typing import Shape

_FEW = 16  # places of a kernel, below which transforms are not considered
_START = 20_000.0  # fixed cost of the transforms, in nanoseconds


@lru_cache(maxsize=1024)
def _fast(least: int) -> int:
    """Return the smallest length of at least ``least`` with no prime factor above 5, which is fast to transform."""
    best = 1 << max(0, least - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max(0, -(-least // three) - 1).bit_length())
            three *= 3
        five *= 5
    return best


def _lengths(x: Ints, y: Ints, before: Ints, out: Ints) -> Ints:
    """Return lengths of transforms that are long enough for no place to use another place by wrapping around."""
    return tuple([_fast(max(o + p, q - o + k - 1)) for p, k, o, q in zip(x, y, before, out, strict=True)])


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sum over c ``x``, of shape (g, a, c, *f), times the conjugate of ``y``, of (g, b, c, *f), to (g, a, b, *f)."""
    (groups, a, c, *lengths), b = x.shape, y.shape[1]
    y = y.conj()
    if a * b * c <= 8 * (a * c + b * c + a * b):  # transposing the matrices would take longer than their product
        total: np.ndarray = x[:, :, None, 0] * y[:, None, :, 0]
        for i in range(1, c):
            total += x[:, :, None, i] * y[:, None, :, i]
        return total
    left = x.reshape(groups, a, c, -1).transpose(0, 3, 1, 2)
    right = y.reshape(groups, b, c, -1).transpose(0, 3, 2, 1)
    made = np.matmul(np.ascontiguousarray(left), np.ascontiguousarray(right))
    return np.ascontiguousarray(made.transpose(0, 2, 3, 1)).reshape(groups, a, b, *lengths)


def by_transforms(x: np.ndarray, y: np.ndarray, before: Ints, out: Ints) -> np.ndarray:
    """Compute ``out[g, a, b, q]``, the sum of ``x[g, a, c, q + k - before] * y[g, b, c, k]`` over c and k.

    The dtype is floating or complex, all lengths are at least 1. Errors are of the size of the largest one's rounding.
    """
    lengths = _lengths(x.shape[3:], y.shape[3:], before, out)
    axes = tuple(range(3, x.ndim))
    if x.dtype.kind == "c":
        there = _products(np.fft.fftn(x, lengths, axes), np.fft.fftn(y.conj(), lengths, axes))
        ans: np.ndarray = np.fft.ifftn(there, lengths, axes)
    else:
        there = _products(np.fft.rfftn(x, lengths, axes), np.fft.rfftn(y, lengths, axes))
        ans = np.fft.irfftn(there, lengths, axes)
    for axis, o, n in zip(axes, before, lengths, strict=True):  # place q is at index q - before, modulo the length
        ans = np.take(ans, np.arange(-o, out[axis - 3] - o) % n, axis)
    return ans


def worth_transforming(x: Shape, y: Shape, before: Ints, out: Ints, dtype: np.dtype[np.generic]) -> bool:
    """Whether transforms of arrays of these shapes are faster than sums of products, by a safe margin.

    The costs were measured on one core, with arrays of 512 to 16384 and of 32 x 32 to 512 x 512 elements, kernels of 3
    to 1024 places along an axis, and 1 to 16 channels. A product and sum of float32 takes 0.02 ns, and 0.07 ns / b for
    reading the patch. Gathering an element of a patch takes 0.7 ns, except along the first of several axes. Transforms
    and the steps between them take 0.3 to 0.7 ns times n log2 n. All costs double in float64. Both methods are equally
    fast at about 40 places of one axis, and at 9 x 9 to 17 x 17 places of two axes. Transforms are 2 to 4 times as fast
    for 64 places on 16384 elements, 20 times for 256 places, 1.5 to 3 times for 17 x 17 places on 128 x 128 elements.
    """
    groups, a, c, *lengths = x
    b, places = y[1], y[3:]
    offsets = min(places, out, key=prod)
    if prod(offsets) < _FEW or dtype.kind not in "fc":
        return False
    products = groups * a * b * c * prod(places) * prod(out)
    gathered = products / b / (offsets[0] if len(out) > 1 else 1)
    n = prod(_lengths(tuple(lengths), places, before, out))
    transforms = groups * (a * c + b * c + a * b) * n * log2(n)
    return products * (0.02 + 0.07 / b) + 0.7 * gathered > 1.5 * (0.55 * transforms + _START)


Ints = tuple[int, ...]
_BLOCK = 1 << 20  # bytes that are gathered at once: they fit in a core's cache
_PRODUCT = 900_000  # multiplications up to which OpenBLAS multiplies small matrices without packing them first
_NARROW = 128  # columns, below which a matrix product is slow
_LINE = 64  # elements of an array from which on a separate product for each array pays


class Geometry(NamedTuple):
    """Relation of places p, k and q along each spatial axis: ``stride * q + dilation * k == stretch * p + before``.

    ``out`` contains the lengths of the result's axes, along which q counts from 0.
    """

    stride: Ints
    before: Ints
    stretch: Ints
    dilation: Ints
    out: Ints


def _last(parts: list[slice]) -> Any:
    return (..., *parts)


def convolved(x: np.ndarray, y: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Compute the convolution of arrays without an axis of length 0, in their dtype.

    It consists of ``_dense`` convolutions, one for each class of result places that use the same places of ``y``.
    """
    stride, before, stretch, dilation, out = geometry
    if set(stretch) <= {1}:
        return _dense(x, y, geometry)
    rank = len(out)
    simple = [e == 1 or s == r == 1 for e, s, r in zip(stretch, stride, dilation, strict=True)]
    if not all(simple):  # stretch together with stride or dilation: rare enough to write the zeros out
        kept = tuple([e if plain else 1 for e, plain in zip(stretch, simple, strict=True)])
        lengths = [n if plain else e * (n - 1) + 1 for n, e, plain in zip(x.shape[3:], stretch, simple, strict=True)]
        spread = np.zeros((*x.shape[:3], *lengths), x.dtype)
        spread[_last([slice(None, None, 1 if plain else e) for e, plain in zip(stretch, simple, strict=True)])] = x
        return convolved(spread, y, geometry._replace(stretch=kept))
    ans = np.zeros((x.shape[0], x.shape[1], y.shape[1], *out), x.dtype)
    for starts in product(*[range(min(e, n)) for e, n in zip(stretch, out, strict=True)]):
        # q = e * q' + start is related to k = e * k' + first only, and q' + k' == p + (before - start - first) / e
        first = [(o - a) % e for o, a, e in zip(before, starts, stretch, strict=True)]
        part = y[_last([slice(f, None, e) for f, e in zip(first, stretch, strict=True)])]
        if 0 in part.shape:
            continue
        inner = Geometry(
            stride,
            tuple([(o - a - f) // e for o, a, f, e in zip(before, starts, first, stretch, strict=True)]),
            (1,) * rank,
            dilation,
            tuple([-(-(n - a) // e) for n, a, e in zip(out, starts, stretch, strict=True)]),
        )
        ans[_last([slice(a, None, e) for a, e in zip(starts, stretch, strict=True)])] = _dense(x, part, inner)
    return ans


def _dense(x: np.ndarray, y: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Compute a convolution without stretch."""
    stride, before, _, dilation, out = geometry
    groups, a, c = x.shape[:3]
    b, lengths = y.shape[1], y.shape[3:]
    if {*stride, *dilation} <= {1} and not any(before) and prod(x.shape[3:]) >= _LINE:
        made: Any = None  # by matrix products without gathering, one for each array
        if prod(lengths) == 1 and x.shape[3:] == out:
            made = np.matmul(y.reshape(groups, 1, b, c), x.reshape(groups, a, c, -1))
        elif prod(out) == 1 and x.shape[3:] == lengths:
            left, right = x.swapaxes(1, 2).reshape(groups, c, a, -1), y.swapaxes(1, 2).reshape(groups, c, b, -1)
            made = np.add.reduce(np.matmul(left, right.swapaxes(2, 3)), 1)
        if made is not None:
            return np.reshape(made, (groups, a, b, *out))
    if {*stride, *dilation} <= {1} and worth_transforming(x.shape, y.shape, geometry.before, out, x.dtype):
        with np.errstate(all="ignore"):
            made = by_transforms(x, y, before, out)
        if np.isfinite(made).all():  # transforms spread infinities, and overflow earlier than sums of products
            return np.asarray(made)
    return _along(x, y, geometry) if prod(lengths) <= prod(out) else _across(x, y, geometry)


def _along(x: np.ndarray, y: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Compute a convolution from patches for each place of the result, multiplied by the kernels."""
    stride, before, _, dilation, out = geometry
    groups, a, c = x.shape[:3]
    b, lengths = y.shape[1], y.shape[3:]
    plan = _plan(x.shape[3:], lengths, out, dilation, stride, before, (groups, a, c, b), _BLOCK // x.itemsize)
    if any(piece.bordered for piece in plan.pieces) and not np.isfinite(y).all():
        return _exactly(x, y, geometry)  # zeros of the border must not be multiplied by infinities
    matrix = np.ascontiguousarray(y.reshape(groups, b, c, -1).swapaxes(2, 3)).reshape(groups, 1, b, -1)
    flat = np.empty((groups, plan.places[0], b, a * prod(plan.places[1:])), x.dtype)
    for g, u, piece, block in _blocks(x.swapaxes(1, 2), plan):
        first = u.start * prod(plan.places[1:]) + piece.first
        np.matmul(matrix[g], block, out=flat[g, piece.rows, :, first : first + block.shape[-1]])
    if not plan.free:
        return flat.reshape(groups, b, a, *out).swapaxes(1, 2)
    return np.moveaxis(flat.reshape(groups, out[0], b, a, *out[1:]), (3, 2), (1, 2))


def _across(x: np.ndarray, y: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Compute a convolution as a sum over the places of the kernels, for kernels larger than the result."""
    stride, before, _, dilation, out = geometry
    groups, a, c = x.shape[:3]
    b, lengths = y.shape[1], y.shape[3:]
    plan = _plan(x.shape[3:], out, lengths, stride, dilation, before, (groups, c, a, b), _BLOCK // x.itemsize)
    told = np.moveaxis(y.reshape(*y.shape[:3], *plan.places), 3, 1)
    total = np.zeros((groups, b, prod(out) * a), x.dtype)
    with np.errstate(invalid="ignore"):
        for g, u, piece, block in _blocks(x, plan):
            part = told[g, piece.rows, :, u, piece.places]
            part = part.reshape(*part.shape[:3], -1)
            total[g] += np.add.reduce(np.matmul(part, block.swapaxes(2, 3)), 1)
    if not np.isfinite(total).all():  # a zero of the border may have been multiplied by an infinity
        return _exactly(x, y, geometry)
    return np.moveaxis(total.reshape(groups, b, *out, a), -1, 1)


def _inside(start: int, step: int, count: int, length: int) -> tuple[slice, slice]:
    """Return slices of the i below ``count``, and of the places ``start + step * i``, that are in range(``length``)."""
    first, last = max(0, -(start // step)), min(count, (length - 1 - start) // step + 1)
    if last <= first:
        return slice(0), slice(0)
    begin = start + step * first
    return slice(first, last), slice(begin, begin + step * (last - first), step)


def _exactly(x: np.ndarray, y: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Compute a convolution without stretch term by term, for arrays with infinities or NaN."""
    stride, before, _, dilation, out = geometry
    ans = np.zeros((x.shape[0], x.shape[1], y.shape[1], *out), x.dtype)
    for k in np.ndindex(y.shape[3:]):
        here: list[Any] = []
        there: list[Any] = []
        for i, s, o, r, n, m in zip(k, stride, before, dilation, out, x.shape[3:], strict=True):
            target, source = _inside(r * i - o, s, n, m)
            here.append(target)
            there.append(source)
        part = x[_last(there)]
        ans[_last(here)] += np.einsum("gac...,gbc->gab...", part, y[(..., *k)])
    return ans


# ---- patches -----------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """Places that are gathered at once: ``rows`` along the first axis, ``places`` along the second.

    Attributes:
        length: the number of rows of ``x`` that the places use.
        first: the column at which the places begin.
        copies: pairs of indices, of these rows and of ``x``, for each offset along the other axes.
        bordered: whether the copies leave some of the elements zero.
    """

    rows: slice
    places: slice
    length: int
    first: int
    copies: tuple[tuple[Any, Any], ...]
    bordered: bool


class _Plan(NamedTuple):
    """Plan for gathering patches.

    Attributes:
        free: whether the first axis is the axis of rows; else an axis of length 1 was put in front.
        offsets: the number of offsets along each axis.
        places: the number of places along each axis.
        hop: the number of rows from one place to the next.
        several: the number of groups that are gathered at once.
        some: the number of arrays of a group that are gathered at once.
        pieces: the division of the places along the axes.
    """

    free: bool
    offsets: Ints
    places: Ints
    hop: int
    several: int
    some: int
    pieces: tuple[_Piece, ...]


@lru_cache(maxsize=1024)
def _plan(
    lengths: Ints, offsets: Ints, places: Ints, apart: Ints, step: Ints, before: Ints, sizes: Ints, block: int
) -> _Plan:
    """Make the plan for arrays of ``lengths`` that are read at indices ``step * place + apart * offset - before``.

    Args:
        lengths: the lengths of the axes of ``x``.
        offsets: the number of offsets along each axis.
        places: the number of places along each axis.
        apart: the distance between offsets.
        step: the distance between places.
        before: the negative index of the first place.
        sizes: the numbers of groups, of arrays, of rows at an offset, and of rows of the other factor.
        block: the number of elements to gather at once.
    """
    groups, arrays, height, left = sizes
    rank = len(places)
    free = rank > 1 and arrays * prod(places[1:]) >= _NARROW
    if not free:
        ones = (1,) * max(1, 2 - rank)
        lengths, offsets, places, apart, step = [(*ones, *p) for p in (lengths, offsets, places, apart, step)]
        before = (*(0,) * len(ones), *before)
    # rows at distance apart[0] are stored next to each other; places whose rows are stored together are a class
    r, s = apart[0] if offsets[0] > 1 else step[0], step[0]
    classes, hop = r // gcd(r, s), s // gcd(r, s)
    columns, inner = prod(places[1:]), prod(offsets[1:]) * height
    least = 2 * offsets[0]
    whole = (hop * (-(-places[0] // classes) - 1) + offsets[0]) * inner * columns
    fitting = max(_NARROW, _PRODUCT // (left * inner * offsets[0])) // columns
    some = min(arrays, max(1, min(block // whole, fitting)))
    several = min(groups, max(1, block // (whole * some))) if some == arrays else 1
    unit = inner * prod(places[2:])
    cut = places[1] if some > 1 else min(places[1], max(_NARROW, block // (least * unit)))
    high = places[0] if some > 1 else max(1, (max(least, block // (unit * cut)) - offsets[0]) // hop + 1)
    pieces = [
        _piece(rows, range(begin, min(begin + cut, places[1])), lengths, offsets, places, apart, step, before)
        for start in range(min(classes, places[0]))
        for rows in _parts(range(start, places[0], classes), high)
        for begin in range(0, places[1], cut)
    ]
    return _Plan(free, offsets, places, hop, several, some, tuple(pieces))


def _parts(places: range, most: int) -> list[range]:
    return [places[low : low + most] for low in range(0, len(places), most)]


def _piece(
    rows: range, columns: range, lengths: Ints, offsets: Ints, places: Ints, apart: Ints, step: Ints, before: Ints
) -> _Piece:
    """Make the piece of the places ``rows`` of the first axis and ``columns`` of the second."""
    r, s = apart[0] if offsets[0] > 1 else step[0], step[0]
    length = s // gcd(r, s) * (len(rows) - 1) + offsets[0]
    target, source = _inside(s * rows[0] - before[0], r, length, lengths[0])
    spans = [columns, *map(range, places[2:])]
    copies, bordered = _copies(lengths[1:], offsets[1:], spans, apart[1:], step[1:], before[1:])
    return _Piece(
        slice(rows[0], rows[-1] + 1, rows.step),
        slice(columns.start, columns.stop),
        length,
        columns.start * prod(places[2:]),
        tuple([((target, *to), (source, *of)) for to, of in copies]),
        bordered or target != slice(0, length),
    )


def _copies(
    lengths: Ints, offsets: Ints, spans: list[range], apart: Ints, step: Ints, before: Ints
) -> tuple[list[tuple[Any, Any]], bool]:
    """Return, for each offset, the indices of patches without first axis and of ``x``; and whether borders exist."""
    found, bordered = [], False
    for offset in np.ndindex(offsets):
        pairs = [
            _inside(s * span.start + r * i - o, s, len(span), n)
            for s, span, r, i, o, n in zip(step, spans, apart, offset, before, lengths, strict=True)
        ]
        bordered |= any(to != slice(0, len(span)) for (to, _), span in zip(pairs, spans, strict=True))
        found.append(((offset, *[to for to, _ in pairs]), tuple([of for _, of in pairs])))
    return found, bordered


def _blocks(x: np.ndarray, plan: _Plan) -> Iterator[tuple[slice, slice, _Piece, np.ndarray]]:
    """Yield patches of ``x`` (g, v, u, *p): slices of g and of u, the piece, and matrices for each g and row.

    A column of a matrix is a patch, indexed by (offset, v); the columns are indexed by (u, places of all axes but the
    first). Each block reuses the memory of the block before.
    """
    groups, height, arrays = x.shape[:3]
    if not plan.free:
        x = x.reshape(*x.shape[:3], *(1,) * (len(plan.places) - x.ndim + 3), *x.shape[3:])
    x = np.moveaxis(x, 3, 1)
    patch = prod(plan.offsets) * height
    memory: Any = None
    for piece in plan.pieces:
        width = (piece.places.stop - piece.places.start) * prod(plan.places[2:])
        shape = (plan.several, piece.length, *plan.offsets[1:], height, plan.some)
        shape = (*shape, piece.places.stop - piece.places.start, *plan.places[2:])
        if memory is None or memory.size < prod(shape):
            memory = np.empty(prod(shape), x.dtype)
        rows = memory[: prod(shape)].reshape(shape)
        if piece.bordered:
            rows[...] = 0
        for g, u in product(range(0, groups, plan.several), range(0, arrays, plan.some)):
            here, these = slice(g, min(g + plan.several, groups)), slice(u, min(u + plan.some, arrays))
            n, m = here.stop - g, these.stop - u
            for (target, offset, *to), (source, *of) in piece.copies:
                rows[(slice(n), target, *offset, slice(None), slice(m), *to)] = x[
                    (here, source, slice(None), these, *of)
                ]
            between = (rows.strides[0], plan.hop * rows.strides[1], plan.some * width * x.itemsize, x.itemsize)
            places = len(range(plan.places[0])[piece.rows])
            yield here, these, piece, np.ndarray((n, places, patch, m * width), x.dtype, rows, 0, between)
