"""Convolution by Fourier transforms: of long kernels it needs far fewer operations than sums of products.

The error of an element is of the order of the rounding of the largest one, not of its own: where elements differ by
many orders of magnitude the small ones lose digits that sums of products keep.
"""

from __future__ import annotations

from functools import lru_cache
from math import log2, prod

import numpy as np

from funcgrad.typing import Shape

__all__ = ["by_transforms", "worth_transforming"]

Ints = tuple[int, ...]
_FEW = 16  # places of kernels; with fewer of them nobody needs to reckon
_START = 20_000.0  # nanoseconds until the transforms begin


@lru_cache(maxsize=1024)
def _fast(least: int) -> int:
    """The smallest length of at least ``least`` with no prime factor above 5, which transforms like."""
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
    """Those of the transforms: so long that no place meets one that it should not meet by way of a whole turn."""
    return tuple([_fast(max(o + p, q - o + k - 1)) for p, k, o, q in zip(x, y, before, out, strict=True)])


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``x`` of shape (g, a, c, *f) and the conjugate of ``y`` of (g, b, c, *f), summed over c: (g, a, b, *f)."""
    (groups, a, c, *lengths), b = x.shape, y.shape[1]
    y = y.conj()
    if a * b * c <= 8 * (a * c + b * c + a * b):  # to turn the matrices round would take longer than their product
        total: np.ndarray = x[:, :, None, 0] * y[:, None, :, 0]
        for i in range(1, c):
            total += x[:, :, None, i] * y[:, None, :, i]
        return total
    left = x.reshape(groups, a, c, -1).transpose(0, 3, 1, 2)
    right = y.reshape(groups, b, c, -1).transpose(0, 3, 2, 1)
    made = np.matmul(np.ascontiguousarray(left), np.ascontiguousarray(right))
    return np.ascontiguousarray(made.transpose(0, 2, 3, 1)).reshape(groups, a, b, *lengths)


def by_transforms(x: np.ndarray, y: np.ndarray, before: Ints, out: Ints) -> np.ndarray:
    """``out[g, a, b, q]``, the sum of ``x[g, a, c, q + k - before] * y[g, b, c, k]`` over c and k.

    Of floating dtype, all lengths at least 1. The error is about that of rounding relative to the largest element.
    """
    lengths = _lengths(x.shape[3:], y.shape[3:], before, out)
    axes = tuple(range(3, x.ndim))
    if x.dtype.kind == "c":
        there = _products(np.fft.fftn(x, lengths, axes), np.fft.fftn(y.conj(), lengths, axes))
        ans: np.ndarray = np.fft.ifftn(there, lengths, axes)
    else:
        there = _products(np.fft.rfftn(x, lengths, axes), np.fft.rfftn(y, lengths, axes))
        ans = np.fft.irfftn(there, lengths, axes)
    for axis, o, n in zip(axes, before, lengths, strict=True):  # place q stands at q - before, modulo the length
        ans = np.take(ans, np.arange(-o, out[axis - 3] - o) % n, axis)
    return ans


def worth_transforming(x: Shape, y: Shape, before: Ints, out: Ints, dtype: np.dtype[np.generic]) -> bool:
    """Whether transforms of arrays of these shapes are faster than sums of products, by so much that it is sure.

    The costs were measured on one core, over arrays of 512 to 16384 and of 32 x 32 to 512 x 512 elements, kernels of 3
    to 1024 places along an axis, 1 to 16 channels. A product and sum of float32 takes 0.02 ns and 0.07 ns / b for
    reading the patch; 0.7 ns gather an element of a patch, which along a first axis of several is not done; transforms
    and what is between them take 0.3 to 0.7 ns times n log2 n. All of it doubles in float64. So the two meet at about
    40 places of one axis, and at 9 x 9 to 17 x 17 of two: at 64 places of 16384 transforms are 2 to 4 times as fast, at
    256 of them 20 times, at 17 x 17 places of 128 x 128 1.5 to 3 times.
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
