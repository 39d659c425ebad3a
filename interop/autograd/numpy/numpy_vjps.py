"""HIPS autograd's ``numpy_vjps``: functions with which programs write their own rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import dtype_of, shape_of

__all__ = [
    "balanced_eq", "match_complex", "repeat_to_match_shape", "replace_zero", "unbroadcast", "unbroadcast_f",
]  # fmt: skip


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """Return the cotangent of a broadcast operand: ``x`` summed to the target's shape, real if the target is real.

    Args:
        x: the cotangent of the result.
        target_meta: result of ``metadata(target)``.
        broadcast_idx: where axes were added: 0 for leading axes, -1 for trailing axes.
    """
    shape, _, _, iscomplex = target_meta
    extra = fnp.ndim(x) - len(shape)
    added = tuple(range(extra)) if broadcast_idx == 0 else tuple(range(fnp.ndim(x) - extra, fnp.ndim(x)))
    if extra > 0:
        x = fnp.sum(x, axis=added)
    stretched = tuple(i for i, size in enumerate(shape) if size == 1 and shape_of(x)[i] != 1)
    if stretched:
        x = fnp.sum(x, axis=stretched, keepdims=True)
    return fnp.real(x) if dtype_of(x).kind == "c" and not iscomplex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the VJP function ``f`` with its result summed to the shape of ``target``.

    Example:
        >>> unbroadcast_f(1.0, lambda g: 2 * g)(np.ones(3))
        np.float64(6.0)
    """
    meta = (shape_of(target), len(shape_of(target)), dtype_of(target), dtype_of(target).kind == "c")
    return lambda g: unbroadcast(f(g), meta)


def repeat_to_match_shape(g: Any, shape: tuple[int, ...], dtype: Any, axis: Any, keepdims: bool) -> tuple[Any, int]:
    """Repeat a cotangent of a reduction over ``axis`` to the shape of the argument; return it and the repetitions.

    Example:
        >>> repeat_to_match_shape(1.0, (2,), np.dtype(float), None, False)
        (array([1., 1.]), 2)
    """
    if shape == ():
        return g, 1
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    places = {a % len(shape) for a in axes}
    kept = tuple(1 if i in places else n for i, n in enumerate(shape))
    repeats = int(np.prod([n for i, n in enumerate(shape) if i in places]))
    return fnp.astype(fnp.asarray(fnp.broadcast_to(fnp.reshape(g, kept), shape)), dtype), repeats


def match_complex(target: Any, x: Any) -> Any:
    """Return ``x`` as complex if ``target`` is complex, else its real part.

    Example:
        >>> match_complex(1.0, 2 + 3j)
        2.0
    """
    wanted, found = dtype_of(target).kind == "c", dtype_of(x).kind == "c"
    if found and not wanted:
        return fnp.real(x)
    return x + 0j if wanted and not found else x


def replace_zero(x: Any, val: Any) -> Any:
    """Return ``x`` with ``val`` where ``x`` is zero."""
    return fnp.where(x == 0, val, x)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """Return 1 where ``x`` equals ``z``, one half where ``y`` equals ``x`` too, and 0 elsewhere."""
    return fnp.where(x == z, fnp.where(x == y, 0.5, 1.0), 0.0)
