"""What the filters have in common: the dtype of the result, axes, one entry for each axis, the names of borders."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.typing import Array, ArrayLike

__all__ = ["axes_of", "entries", "mode_of", "prepared", "shift_of", "value_of", "zero"]

_MODES = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "mirror": "mirror",
    "nearest": "nearest",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def prepared(call: str, input: ArrayLike, output: Any, *, complex: bool = False) -> tuple[Array, np.dtype[Any]]:
    """The array in the precision to compute in, and the dtype of the result.

    Raises:
        InputError: an array for ``output``, for arrays are values here; a result of integers, without derivative.
    """
    if not (output is None or isinstance(output, (type, str, np.dtype))):
        raise InputError(
            f"ndimage.{call}: output must be a dtype or None, got {type(output).__name__}. Assign the result instead."
        )
    x = as_value(input)
    have = backend.dtype_of(x)
    dtype = have if output is None else np.dtype(output)
    if dtype.kind in "biu":
        raise InputError(
            f"ndimage.{call}: the result has the dtype of input, or output, and integers have no derivative, got "
            f"{describe(x)} and output={output}. Convert the input, or pass output=float."
        )
    if complex or have.kind == "c":
        dtype = np.promote_types(dtype, np.complex64)
    wide = np.promote_types(have, dtype) if dtype.kind != "V" else dtype
    wide = wide if have.kind == "c" else np.empty(0, wide).real.dtype
    return (x if wide == have else fnp.astype(x, wide)), dtype


def axes_of(call: str, axes: Any, rank: int) -> tuple[int, ...]:
    """The axes as non-negative numbers; None stands for all.

    Raises:
        ShapeError: an axis that there is not, or one twice.
    """
    given = range(rank) if axes is None else axes if isinstance(axes, Iterable) else (axes,)
    found = [operator.index(axis) for axis in given]
    if any(not -rank <= axis < rank for axis in found) or len({axis % rank for axis in found}) < len(found):
        raise ShapeError(f"ndimage.{call}: axes must be different axes of an array of {rank}, got {axes}.")
    return tuple([axis % rank for axis in found])


def entries(call: str, name: str, given: Any, count: int) -> list[Any]:
    """``given`` for each of so many axes: one for all, or a sequence of them.

    Raises:
        ShapeError: a sequence of another length.
    """
    if isinstance(given, str) or given is None or (not isinstance(given, (list, tuple)) and not fnp.ndim(given)):
        return [given] * count
    listed = [given[i] for i in range(len(given))]
    if len(listed) != count:
        raise ShapeError(f"ndimage.{call}: {name} must be one, or one for each axis, got {len(listed)} for {count}.")
    return listed


def mode_of(call: str, mode: Any) -> str:
    """The one name of a border that has several.

    Raises:
        ShapeError: there is no such border.
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise ShapeError(f"ndimage.{call}: mode must be one of {', '.join(_MODES)}, got {mode!r}.")
    return _MODES[mode]


def shift_of(call: str, origin: Any, length: int) -> int:
    """The origin of a window of ``length``, which must lie in it.

    Raises:
        ShapeError: it does not.
    """
    origin = operator.index(origin)
    if not -(length // 2) <= origin <= (length - 1) // 2:
        raise ShapeError(
            f"ndimage.{call}: origin must leave the place inside of its window of {length}, got {origin}. Take one "
            f"from {-(length // 2)} to {(length - 1) // 2}."
        )
    return int(origin)


def value_of(x: Any) -> np.ndarray | None:
    """The numbers behind ``x``, of all examples of a ``vmap`` together; None where JAX has not computed them yet."""
    while isinstance(x, Tracer):
        x = x.value
    return None if backend.is_stand_in(x) else np.asarray(x)


def zero(value: Any) -> bool:
    """Whether ``value`` is the number 0, and not something that is traced."""
    return type(value) in (int, float, complex) and value == 0
