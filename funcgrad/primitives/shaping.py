"""Rearranging, cutting and joining: every element of a result is an element of an argument, or zero.

Axes are non-negative, shapes are complete and cuts are in order here: callers resolve what NumPy accepts.
Most operations come in pairs, each the other's transpose: concatenate and split, stack and unstack,
diagonal and from_diagonal.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from funcgrad.backend import native_dtype
from funcgrad.kinds import jointly_linear, linear, nondifferentiable, primitive
from funcgrad.kinds.linear import to_batch
from funcgrad.kinds.rules import Operation
from funcgrad.views import array_with_layout_of, inverse_permutation

ndarray = np.ndarray
_SCALARS = frozenset((float, np.float64))


def _pieces(x: Any, at: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    before = (slice(None),) * axis
    ends = (*at[1:], x.shape[axis])
    return tuple([x[(*before, slice(start, end))] for start, end in zip(at, ends, strict=True)])


def _layers(x: Any, axis: int) -> tuple[Any, ...]:
    before = (slice(None),) * axis
    return tuple([x[(*before, i)] for i in range(x.shape[axis])])


def _concatenate_transpose(ct: Any, shapes: Any, wanted: tuple[int, ...], *, axis: int) -> list[Any]:
    if type(ct) is ndarray and not axis and len(wanted) == len(shapes) == shapes.count(shapes[0]):
        return list(ct.reshape(len(shapes), *shapes[0]))
    at = list(accumulate([shape[axis] for shape in shapes], initial=0))
    if type(ct) is not ndarray:
        parts = split(ct, at=tuple(at[:-1]), axis=axis)
        return [parts[i] for i in wanted]
    if not axis:
        return [ct[at[i] : at[i + 1]] for i in wanted]
    before = (slice(None),) * axis
    return [ct[(*before, slice(at[i], at[i + 1]))] for i in wanted]


def _stack(xp: Any, *arrays: Any, axis: int) -> Any:
    """Compute ``numpy.stack``; arrays take half the time of NumPy's function, numbers a twentieth."""
    kinds = set(map(type, arrays))
    if kinds == {ndarray} and len({a.shape for a in arrays}) == 1:
        index = (*(slice(None),) * axis, None)
        return np.concatenate([a[index] for a in arrays], axis)
    return np.array(arrays) if kinds <= _SCALARS else xp.stack(arrays, axis)


def _stack_transpose(ct: Any, shapes: Any, wanted: tuple[int, ...], *, axis: int) -> list[Any]:
    parts = _layers(ct, axis) if type(ct) is ndarray else unstack(ct, axis=axis)
    return [parts[i] for i in wanted]


def _arranged(xp: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    if xp is not np:
        return x
    like = np.empty([x.shape[axis] for axis in axes], x.dtype)
    made = np.empty_like(like.transpose(inverse_permutation(axes)))  # it owns its memory
    made[...] = x
    return made


#: ``arranged(x, *, axes)``: a copy of ``x`` with its axes in this order in memory, the slowest first.
arranged: Operation = linear(
    "arranged",
    _arranged,
    transpose=lambda ct, *, axes: ct,
    conforms=True,
    batch=lambda size, args, batched, params: (
        arranged(args[0], axes=(0, *[axis + 1 for axis in params["axes"]])),
        True,
    ),
)


def _batch_of_joined(
    call: Operation, args: tuple[Any, ...], batched: tuple[bool, ...], size: int, axis: int
) -> tuple[Any, bool]:
    """Join batches; examples in C order give a result in C order, even if the batch axis is last in memory."""
    ans = call(*[a if b else to_batch(a, size) for a, b in zip(args, batched, strict=True)], axis=axis + 1)
    like = array_with_layout_of(ans)
    if like.flags.c_contiguous or not like.size:
        return ans, True
    examples = [array_with_layout_of(a)[0] for a, b in zip(args, batched, strict=True) if b]
    return (arranged(ans, axes=tuple(range(like.ndim))) if all(map(_is_in_c_order, examples)) else ans), True


def _is_in_c_order(x: ndarray) -> bool:
    """Whether the axes are in C order in memory, with or without gaps."""
    strides = [abs(stride) for stride, length in zip(x.strides, x.shape, strict=True) if length != 1]
    return strides == sorted(strides, reverse=True)


#: ``concatenate(*arrays, axis)``, for arrays with at least one axis.
concatenate: Operation = jointly_linear(
    "concatenate",
    lambda xp, *arrays, axis: xp.concatenate(arrays, axis),
    numpy=lambda *arrays, axis: np.concatenate(arrays, axis),
    transpose=_concatenate_transpose,
    conforms=True,
    batch=lambda size, args, batched, params: _batch_of_joined(concatenate, args, batched, size, **params),
)

#: ``stack(*arrays, axis)``, for arrays of one shape, along a new axis.
stack: Operation = jointly_linear(
    "stack",
    _stack,
    numpy=lambda *arrays, axis: _stack(np, *arrays, axis=axis),
    transpose=_stack_transpose,
    conforms=True,
    batch=lambda size, args, batched, params: _batch_of_joined(stack, args, batched, size, **params),
)

#: ``split(x, *, at, axis)``: the pieces that begin at the rising positions ``at``; the first position is 0.
split: Operation = primitive(
    "split",
    lambda xp, x, *, at, axis: _pieces(x, at, axis),
    vjps=[lambda ct, *, at, axis: concatenate(*ct, axis=axis)],
    jvps=[lambda t, *, at, axis: split(t, at=at, axis=axis)],
    batch="axis",
    multiple=True,
)

#: ``unstack(x, *, axis)``: the tuple of slices of ``x`` along ``axis``, without that axis.
unstack: Operation = primitive(
    "unstack",
    lambda xp, x, *, axis: _layers(x, axis),
    vjps=[lambda ct, *, axis: stack(*ct, axis=axis)],
    jvps=[lambda t, *, axis: unstack(t, axis=axis)],
    batch="axis",
    multiple=True,
)


#: ``flip(x, *, axis)``, along a tuple of axes.
flip: Operation = linear(
    "flip",
    lambda xp, x, *, axis: x[tuple([slice(None, None, -1 if i in axis else 1) for i in range(x.ndim)])],
    transpose=lambda ct, *, axis: flip(ct, axis=axis),
    conforms=True,
    batch="axis",
    view=True,
)


def _roll(xp: Any, x: Any, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    """Compute ``numpy.roll``; along one axis of a small array it takes a fifth of the time of NumPy's function."""
    if type(x) is not ndarray or len(axis) != 1 or not x.shape[axis[0]]:
        return xp.roll(x, shift, axis)
    length, before, made = x.shape[axis[0]], (slice(None),) * axis[0], np.empty_like(x)
    at = -shift[0] % length
    made[(*before, slice(length - at))] = x[(*before, slice(at, None))]
    made[(*before, slice(length - at, None))] = x[(*before, slice(at))]
    return made


#: ``roll(x, *, shift, axis)``: ``shift`` and ``axis`` are tuples of one length.
roll: Operation = linear(
    "roll",
    _roll,
    transpose=lambda ct, *, shift, axis: roll(ct, shift=tuple([-s for s in shift]), axis=axis),
    conforms=True,
    batch="axis",
)

#: ``tril(x, *, k)`` for the last two axes.
tril: Operation = linear("tril", transpose=lambda ct, *, k: tril(ct, k=k), conforms=True, batch="leading")

#: ``triu(x, *, k)`` for the last two axes.
triu: Operation = linear("triu", transpose=lambda ct, *, k: triu(ct, k=k), conforms=True, batch="leading")


def _from_diagonal(xp: Any, x: Any, *, offset: int, rows: int, columns: int) -> Any:
    shape = (*x.shape[:-1], rows, columns)
    if xp is not np:
        i = np.arange(x.shape[-1])
        return xp.zeros(shape, x.dtype).at[..., i + max(-offset, 0), i + max(offset, 0)].set(x)
    whole = np.zeros(shape, x.dtype)
    _diagonal(np, whole, offset=offset)[...] = x
    return whole


def _diagonal(xp: Any, x: Any, *, offset: int) -> Any:
    """Return the diagonal as a view that is writable if ``x`` is; NumPy's ``diagonal`` gives a read-only view."""
    found = x.diagonal(offset, -2, -1)
    if xp is np:
        found.flags.writeable = x.flags.writeable
    return found


#: ``diagonal(x, *, offset)`` for the last two axes.
diagonal: Operation = linear(
    "diagonal",
    _diagonal,
    transpose=lambda ct, shape, *, offset: from_diagonal(ct, offset=offset, rows=shape[-2], columns=shape[-1]),
    conforms=True,
    batch="leading",
    view=True,
)

#: ``from_diagonal(x, *, offset, rows, columns)``: matrices of zeros with the last axis of ``x`` on a diagonal.
from_diagonal: Operation = linear(
    "from_diagonal",
    _from_diagonal,
    transpose=lambda ct, *, offset, rows, columns: diagonal(ct, offset=offset),
    conforms=True,
    batch="leading",
)

#: ``cast(x, *, to)``: ``x`` in an integer or boolean dtype, a step function of ``x``.
cast: Operation = nondifferentiable(
    "cast", lambda xp, x, *, to: xp.asarray(x).astype(native_dtype(xp, to)), batch="leading"
)
