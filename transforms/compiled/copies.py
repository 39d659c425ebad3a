"""Copies that lie in memory as what they are copies of."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = ["copy_of"]

ndarray = np.ndarray


def copy_of(x: ndarray) -> ndarray:
    """A copy that lies in memory as ``x`` does, also where that runs backwards or has gaps: loops look at it."""
    if not x.size or x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy("K")
    reach = [stride * (n - 1) // x.itemsize for n, stride in zip(x.shape, x.strides, strict=True)]
    before = -sum([r for r in reach if r < 0])
    room = np.zeros(before + sum([r for r in reach if r > 0]) + 1, x.dtype)
    made = as_strided(room[before:], x.shape, x.strides)
    made[...] = x
    return made
