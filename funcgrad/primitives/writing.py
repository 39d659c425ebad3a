"""Writes into parts of an array: ``write``, and the meaning of duplicates in an index.

``write`` returns a new array; ``numpy.writes.assignment`` implements ``x[i] = y`` by it. ``write`` is linear in the
array and the written values together: the cotangent of the array is zero at the written entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Primitive, call_operation
from funcgrad.kinds.linear import broadcast_to, conform, nondifferentiable, permute, reshape, to_batch
from funcgrad.kinds.rules import Operation, finish_operation
from funcgrad.primitives.accumulating import copy_with_own_memory
from funcgrad.primitives.index_spec import Spec, batched_index, covers_all, index_from_spec
from funcgrad.primitives.indexing import read
from funcgrad.primitives.shaping import arranged
from funcgrad.reverse import vjp_for_all
from funcgrad.typing import Shape
from funcgrad.views import array_with_layout_of, inverse_permutation

_NUMPY = frozenset((np.ndarray, int, float, complex, np.float64, np.float32))


def shape_of_region(spec: Spec, arrays: tuple[Any, ...], shape: Shape) -> Shape:
    """Return the shape of the part of an array of ``shape`` that ``spec`` names."""
    stand_ins = tuple([np.zeros(backend.shape_of(a), int) for a in arrays])
    found: Shape = np.broadcast_to(np.False_, shape)[index_from_spec(spec, stand_ins)].shape
    return found


def _write(xp: Any, x: Any, y: Any, *arrays: Any, spec: Spec) -> Any:
    if xp is np:
        ans = np.array(x)
        ans[index_from_spec(spec, arrays)] = y
        return ans
    x = xp.asarray(x)
    y = xp.asarray(y).astype(x.dtype)
    if covers_all(spec, x.shape):
        return xp.reshape(xp.broadcast_to(y, shape_of_region(spec, (), x.shape)), x.shape)
    return x.at[index_from_spec(spec, arrays)].set(y)


def _write_in_place(x: Any, y: Any, *arrays: Any, spec: Spec) -> Any:
    if type(x) is not np.ndarray or not all(type(a) in _NUMPY for a in (y, *arrays)):
        return write(x, y, *arrays, spec=spec)
    x[index_from_spec(spec, arrays)] = y
    return x


def _vjp_each(ct: Any, traced: Any, arrays: Any, spec: Spec, like: Any) -> list[Any]:
    cts: dict[int, Any] = {}  # in the order in which the rules of writes in place compute them
    if 1 in traced:
        cts[1] = conform(copy_with_own_memory(read(ct, *arrays, spec=spec)), *like)  # a copy, as for writes in place
    if 0 in traced:
        cts[0] = write(ct, 0.0, *arrays, spec=spec)
    return [cts.get(i) for i in traced]


def _reverse(args: Any, traced: Any, params: Any) -> Any:
    ans = call_operation(write, args, params)
    if traced[0] > 1:
        return ans, None, ()
    like = backend.shape_and_dtype_of(args[1])
    return ans, vjp_for_all("write", _vjp_each, len(traced)), (traced, args[2:], params["spec"], like)


def _forward(args: Any, tangents: Any, params: Any) -> Any:
    ans = call_operation(write, args, params)
    if tangents[0] is None and tangents[1] is None:
        return ans, None
    t = backend.zeros_like(ans) if tangents[0] is None else tangents[0]
    return ans, write(t, 0.0 if tangents[1] is None else tangents[1], *args[2:], **params)


def _batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    x = args[0] if batched[0] else to_batch(args[0], size)
    one = backend.shape_of(x)[1:]
    flags = batched[2:]
    examples = tuple([np.empty(backend.shape_of(a)[b:]) for a, b in zip(args[2:], flags, strict=True)])
    spec, arrays, axes = batched_index(size, params["spec"], args[2:], flags, x_batched=True)
    y, part_shape = args[1], shape_of_region(params["spec"], examples, one)
    if batched[1]:
        have = backend.shape_of(y)[1:]
        if len(part_shape) > len(have):  # else it broadcasts as it is
            y = reshape(y, to=(size, *(1,) * (len(part_shape) - len(have)), *have))
    if axes is not None:
        y = broadcast_to(y, to=(size, *part_shape))
        y = permute(y, axes=inverse_permutation(axes))
    return write(x, y, *map(_in_c_order, arrays), spec=spec), True


def _in_c_order(places: Any) -> Any:
    """Return ``places`` in C order, as NumPy visits those of one example: it visits several axes in memory order."""
    like = array_with_layout_of(places)
    return places if like.flags.c_contiguous else arranged(places, axes=tuple(range(like.ndim)))


#: ``write(x, y, *arrays, spec)``: a copy of ``x`` with ``y`` written to the part that ``spec`` and its ``arrays`` name
#: (see ``index_spec``). ``y`` broadcasts to it and has no more axes. If ``y`` is not constant, no element occurs twice.
write: Operation = finish_operation(
    Primitive("write", _write, reverse=_reverse, forward=_forward, batch=_batch, reuse=_write_in_place)
)


def _winners(xp: Any, places: Any, *, size: int) -> Any:
    flat = xp.reshape(places, -1)
    order = xp.arange(flat.shape[0])
    if xp is np:
        last = np.zeros(size, int)
        last[flat] = order
    else:
        last = xp.zeros(size, order.dtype).at[flat].max(order)
    return xp.reshape(last[flat] == order, places.shape)


def _batch_winners(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    """Join the examples, each with its own range of places."""
    n, rank = params["size"], len(backend.shape_of(args[0])) - 1
    return winners(args[0] + n * np.arange(size).reshape(size, *(1,) * rank), size=n * size), True


#: ``winners(places, *, size)``: the mask of the writes that count: of several writes to the same place, the last one.
#: ``places`` are numbers below ``size``.
winners: Operation = nondifferentiable("winners", _winners, batch=_batch_winners)
