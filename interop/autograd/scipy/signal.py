"""HIPS autograd's ``scipy.signal``: autograd's ``convolve``, and SciPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.interop.autograd.lookup import names_of_scipy
from funcgrad.numpy.creation import as_value

__getattr__, __dir__ = names_of_scipy("signal")

Two = tuple[Sequence[int], Sequence[int]] | Sequence[Sequence[int]]


def convolve(A: Any, B: Any, axes: Two | None = None, dot_axes: Two = ((), ()), mode: str = "full") -> Any:
    """Return the convolution of two arrays along some axes, with products summed over other axes.

    The result has the remaining axes of ``A``, then the remaining axes of ``B``, then the convolved axes.

    Args:
        A: an array.
        B: another array. The cost grows with the size of the smaller array along the convolved axes.
        axes: the convolved axes of both arrays; by default all.
        dot_axes: the axes of both arrays along which products are summed.
        mode: "full", "valid", or "same" for the size of ``A``.

    Raises:
        InputError: ``mode`` is unknown.
        ShapeError: in mode "valid", neither array is the smaller one along all convolved axes.

    Example:
        >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0]))
        array([ 1.,  1.,  1., -3.])
    """
    if mode not in ("full", "valid", "same"):
        raise InputError(f"convolve: mode must be 'full', 'valid' or 'same', got {describe(mode)}. Pass one of them.")
    both = [as_value(x) for x in (A, B)]
    convolved = [tuple(range(fnp.ndim(x))) for x in both] if axes is None else [tuple(a) for a in axes]
    arranged = [_arranged(x, conv, tuple(dot)) for x, conv, dot in zip(both, convolved, dot_axes, strict=True)]
    (a, ignored_a), (b, ignored_b) = arranged
    swap = prod(a.shape[2:]) < prod(b.shape[2:])
    out = _slid(b, a, mode) if swap else _slid(a, b, mode)
    if swap:
        out = fnp.swapaxes(out, 0, 1)
    if mode == "same":
        starts = [(n - 1) // 2 for n in b.shape[2:]]
        out = out[(..., *[slice(s, s + n) for s, n in zip(starts, a.shape[2:], strict=True)])]
    return fnp.reshape(out, (*ignored_a, *ignored_b, *out.shape[2:]))


def _arranged(x: Any, conv: tuple[int, ...], dot: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Return ``x`` with axes (remaining, summed, each convolved one), and the lengths of the remaining axes."""
    ignored = tuple(i for i in range(fnp.ndim(x)) if i not in conv and i not in dot)
    shape = x.shape
    lengths = tuple(shape[i] for i in ignored)
    ordered = fnp.transpose(x, (*ignored, *dot, *conv))
    return fnp.reshape(ordered, (prod(lengths), prod(shape[i] for i in dot), *[shape[i] for i in conv])), lengths


def _slid(large: Any, small: Any, mode: str) -> Any:
    """Return the convolution of arranged arrays, as a sum over the entries of the small one."""
    sizes = small.shape[2:]
    if mode == "valid":
        if any(n < k for n, k in zip(large.shape[2:], sizes, strict=True)):
            raise ShapeError(
                f"convolve: one array must be the larger along all convolved axes, got lengths {large.shape[2:]} and "
                f"{sizes}. Use another mode."
            )
    else:
        large = fnp.pad(large, [(0, 0), (0, 0), *[(k - 1, k - 1) for k in sizes]])
    lengths = [n - k + 1 for n, k in zip(large.shape[2:], sizes, strict=True)]
    total: Any = 0.0
    for place in np.ndindex(*sizes):
        window = large[(slice(None), slice(None), *[slice(p, p + n) for p, n in zip(place, lengths, strict=True)])]
        weights = small[(slice(None), slice(None), *[k - 1 - p for p, k in zip(place, sizes, strict=True)])]
        total = total + fnp.einsum("id...,sd->is...", window, weights)
    return total
