"""Sorting out the arguments of transforms: lengths and axes as SciPy reads them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.numpy.axes import one_axis
from funcgrad.numpy.creation import as_value, astype
from funcgrad.typing import Array, ArrayLike

__all__ = ["check_plan", "lengths_and_axes", "wide"]


def wide(x: ArrayLike) -> Array:
    """``x`` as an array or number, in at least the single precision that SciPy's transforms begin with.

    Example:
        >>> wide(np.ones(2, np.float16)).dtype
        dtype('float32')
    """
    x = as_value(x)
    return astype(x, np.float32) if backend.is_inexact(x) and backend.dtype_of(x).itemsize <= 2 else x


def check_plan(name: str, plan: Any) -> None:
    """Refuse a plan, as SciPy does.

    Raises:
        NotImplementedError: ``plan`` is not None.

    Example:
        >>> check_plan("fft", None)
    """
    if plan is not None:
        raise NotImplementedError(
            f"scipy.fft.{name}: there are no plans computed in advance, got plan={plan!r}. Leave it out."
        )


def _numbers(value: Any) -> list[int]:
    return [operator.index(n) for n in value] if np.iterable(value) else [operator.index(value)]


def lengths_and_axes(name: str, x: Array, s: Any, axes: Any) -> tuple[list[int] | None, list[int]]:
    """The lengths to transform, None where they were left out, and the axes, non-negative and all different.

    Args:
        name: the function, for messages.
        x: what is transformed.
        s: one length or several, -1 for what there is; None for all of that kind.
        axes: one axis or several; None for the last ones that have lengths, or for all.

    Raises:
        ValueError: an axis twice, or out of range; not as many lengths as axes.

    Example:
        >>> lengths_and_axes("fftn", np.ones((2, 3)), (-1, 4), None)
        ([2, 4], [0, 1])
    """
    shape = backend.shape_of(x)
    lengths = None if s is None else _numbers(s)
    if axes is None:
        first = 0 if lengths is None else len(shape) - len(lengths)
        if first < 0:
            raise ValueError(f"scipy.fft.{name}: more lengths than axes, got s={s} for an array of {list(shape)}.")
        found = list(range(first, len(shape)))
    else:
        found = [one_axis(axis, len(shape)) for axis in _numbers(axes)]
    if len(set(found)) < len(found):
        raise ValueError(f"scipy.fft.{name}: all axes must be different, got axes={axes}. Name each once.")
    if lengths is not None:
        if len(lengths) != len(found):
            raise ValueError(
                f"scipy.fft.{name}: there must be as many lengths as axes, got s={s} and axes={axes}. "
                "Name an axis for each length, -1 for what there is."
            )
        lengths = [shape[axis] if n == -1 else n for n, axis in zip(lengths, found, strict=True)]
    return lengths, found
