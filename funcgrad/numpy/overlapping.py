"""Writes whose two sides show the same memory, where NumPy writes one element after the other.

``x[:] = x[::-1]`` reads all before it writes. ``x[mask] = x[::-1]``, with a mask of all axes, and
``x.flat[...] = x[::-1]`` do not: what they read late was written early. Where everything is traced NumPy itself says
what comes of it: it does the same to an array of places, which shows for each element where its value comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from funcgrad.core import Tracer, describe, twin
from funcgrad.errors import InputError
from funcgrad.kinds.linear import imag, real, reshape
from funcgrad.numpy.concretization import user_line
from funcgrad.numpy.layout import as_before
from funcgrad.primitives.indexing import getitem
from funcgrad.views import layout
from funcgrad.writable import Step, View, is_buffer, move, refresh, root_of, views_of

__all__ = ["written_by_mask", "written_in_order"]

ndarray = np.ndarray


def written_by_mask(x: Tracer, index: Any, y: Any) -> bool:
    """``written_in_order`` for ``x[index] = y``; False too where ``index`` is no boolean array of all axes."""
    mask = index[0] if type(index) is tuple and len(index) == 1 else index
    if type(mask) is list:
        mask = np.asarray(mask)
    elif is_buffer(mask):
        mask = mask.value
    if type(mask) is not ndarray or mask.dtype.kind != "b" or not mask.ndim == len(x.shape) > 0:
        return False

    def write(target: ndarray, source: ndarray) -> None:
        target[mask] = source

    return written_in_order(x, y, write)


def written_in_order(x: Tracer, y: Any, write: Callable[[ndarray, ndarray], None]) -> bool:
    """Write ``y`` to ``x`` as NumPy does where they are views of one traced array. Who asks holds ``changing``.

    Args:
        x: what is written to.
        y: what is written.
        write: ``write(x, y)`` does it to arrays of NumPy.

    Returns:
        False where they are not: nothing has been done.

    Raises:
        InputError: real or imaginary parts of one array, one of which was taken of the other's elements.
    """
    root = root_of(x)
    if not isinstance(y, Tracer) or root_of(y) is not root or is_buffer(root) or prod(y.shape) < 2:
        return False
    mine, theirs = _steps(x), _steps(y)
    if any(step is real or step is imag for step, _ in (*mine, *theirs)):
        raise InputError(
            f"x[mask] = y: both are real or imaginary parts of one array, got {describe(x)}{user_line()}. Write a "
            "copy: x[mask] = y.copy()."
        )
    places = np.empty_like(layout(root), dtype=np.intp)
    places[...] = np.arange(places.size).reshape(places.shape)
    target, source = _taken(places, mine), _taken(places, theirs)
    if not np.may_share_memory(target, source):
        return False
    write(target, source)
    move(root, as_before(root, getitem(reshape(twin(root), to=(places.size,)), places)))
    views_of(root).written = True
    refresh(root)
    return True


def _steps(x: Tracer) -> tuple[Step, ...]:
    alias = getattr(x, "alias", None)
    return alias.steps if type(alias) is View else ()


def _taken(x: Any, steps: tuple[Step, ...]) -> Any:
    for step, params in steps:
        x = step(x, **params)
    return x
