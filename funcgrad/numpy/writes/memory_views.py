"""Views of memory: elements at given distances, and complex numbers as pairs of real ones.

They are steps of ``views.note_view``. Applied to an ndarray or a buffer, a step returns a view of its memory; applied
to a traced value, it computes the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.kinds.linear import astype, imag, real, reshape
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.writes.items import with_items_set
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import stack
from funcgrad.typing import Array, Shape
from funcgrad.writable import ViewStep, is_buffer, make_buffer


def strided(x: Any, *, places: np.ndarray, shape: Shape, strides: Shape, own: Shape) -> Any:
    """Return the elements of ``x`` at the distances ``strides`` in memory.

    Args:
        x: an array whose distances are ``own``, or one in another memory order.
        places: the positions of the elements in C order.
        shape: the shape of the result.
        strides: for each axis of the result the distance between neighbours, in bytes.
        own: those of ``x`` when the view was made.
    """
    value = x._val if is_buffer(x) else x
    if type(value) is np.ndarray and value.strides == own:
        made = np.lib.stride_tricks.as_strided(value, shape, strides)
        return made if value is x else make_buffer(made)
    return getitem(reshape(x, to=(prod(backend.shape_of(x)),)), places)


def viewed_as(x: Any, *, to: np.dtype[Any]) -> Any:
    """Return complex numbers as pairs of real ones along the last axis, or pairs as complex numbers; constants anyhow.

    Raises:
        InputError: a traced value under another dtype, whose bits have no derivative.
    """
    value = x._val if is_buffer(x) else x
    if type(value) is np.ndarray:
        return value.view(to) if value is x else make_buffer(value.view(to))
    if to not in viewable_dtypes(x.dtype):
        refuse_bits(x, to)
    *outer, n = x.shape
    if to.kind == "c":
        return astype(x[..., ::2], to=to) + astype(x[..., 1::2], to=to) * to.type(1j)
    return reshape(stack(real(x), imag(x), axis=len(x.shape)), to=(*outer, 2 * n))


def viewable_dtypes(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return the dtypes under which the same numbers can be viewed."""
    if dtype.kind == "c":
        return dtype, np.empty(0, dtype).real.dtype
    return (dtype, np.result_type(dtype, np.complex64)) if dtype.char in "fdg" else (dtype,)


def refuse_bits(x: Any, asked: Any) -> NoReturn:
    """Raise the error about a view of a traced value that would show its bits."""
    raise InputError(
        f"x.view(): it shows the bits of an array in another way, which has no derivative, got {describe(x)} and "
        f"{asked}{user_line()}. Use x.astype(dtype) or x.reshape(shape); complex numbers can be viewed as pairs of "
        "real ones, and pairs as complex numbers."
    )


def has_repeated_places(shape: Shape, steps: Sequence[ViewStep], index: Any) -> bool:
    """Whether ``index`` of a view of an array of this ``shape`` names an element of the array several times."""
    places, others = places_in_pairs(shape, False, steps)
    found = [np.asarray(getitem(part, index)).ravel() for part in (places, others) if part is not None]
    return any(np.unique(part).size < part.size for part in found)


def places_in_pairs(shape: Shape, is_complex: bool, steps: Sequence[ViewStep]) -> tuple[Any, Any]:
    """Return the places of the elements of a view in the flattened array: of real and of imaginary parts, or None.

    Args:
        shape: the shape of the array.
        is_complex: whether places are counted among the real numbers of a complex array.
        steps: the steps from the array to the view.
    """
    first: Any = np.arange(prod(shape)).reshape(shape)
    second: Any = None
    if is_complex:
        first, second = 2 * first, 2 * first + 1
    for step, params in steps:
        if step is real or step is imag:
            first, second = second if step is imag and second is not None else first, None
        elif step is viewed_as and params["to"].kind == "c":
            first, second = first[..., ::2], first[..., 1::2]
        elif step is viewed_as:
            first, second = np.stack([first, second], -1).reshape(*first.shape[:-1], -1), None
        else:
            first, second = step(first, **params), None if second is None else step(second, **params)
    return first, second


def written_in_pairs(source: Any, steps: Sequence[ViewStep], index: Any, y: Any) -> Array:
    """Return ``source`` after a write of ``y`` to ``index`` of the view to which ``steps`` lead."""
    shape, dtype = backend.shape_and_dtype_of(source)
    is_complex, parts = dtype.kind == "c", (y, None)
    flat = reshape(source, to=(prod(shape),))
    if is_complex:
        flat = viewed_as(flat, to=np.empty(0, dtype).real.dtype)
    places = places_in_pairs(shape, is_complex, steps)
    if places[1] is not None:
        parts = real(y), imag(y)
    for at, part in zip(places, parts, strict=True):
        flat = flat if at is None else with_items_set(flat, getitem(at, index), part)
    return reshape(viewed_as(flat, to=dtype) if is_complex else flat, to=shape)
