"""Reads of array parts, and the transpose: sums of parts in an array of zeros.

The backward pass handles many reads of one array together: each read gives a sparse cotangent, and one pass adds all
of them into one buffer. So n reads cost n times their own size, not n arrays of full size, at every order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import prod
from operator import is_not, itemgetter
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTrace
from funcgrad.core import DOUBLE, Primitive, Tracer, bind, call_operation, tracer_of
from funcgrad.forward import ForwardTrace
from funcgrad.graph import GraphTrace, stands_for_array
from funcgrad.kinds.linear import linear, permute, reshape, to_batch
from funcgrad.kinds.rules import Operation, finish_operation
from funcgrad.ownership import is_first_unshared
from funcgrad.primitives.accumulating import NUMPY_TYPES, add_in_place
from funcgrad.primitives.index_spec import (
    ARRAY,
    Spec,
    WholeSpec,
    batched_index,
    copied_index,
    covers_all,
    getitem_of_array,
    index_from_spec,
    is_concrete,
    is_numpy,
    is_static,
    parse_index,
    selection,
    whole_rows,
)
from funcgrad.primitives.shaping import concatenate
from funcgrad.reverse import SparseCotangent, make_recorder, vjp_for_all, vjp_of_each
from funcgrad.typing import Array, Shape
from funcgrad.views import copy_small_part, inverse_permutation, note_view, shares_memory
from funcgrad.writable import CONSTANTS, as_array, is_buffer, make_buffer, writable_result

ndarray = np.ndarray
float64 = np.float64
_NUMPY_OR_NONE = NUMPY_TYPES | {type(None)}
#: The number of elements that are added to a sum at a time. Their places then fit into the processor's cache.
_PIECE = 2**14


def getitem(x: Array, index: Any) -> Array:
    """Return ``x[index]`` by NumPy's rules.

    Raises:
        IndexError: NumPy refuses the index; the message is NumPy's.
        ConcretizationError: a boolean mask in the index differs between examples of a ``vmap``, and does not come
            first, see ``selection``.

    Example:
        >>> fnp.getitem(np.array([1.0, 2.0, 3.0]), slice(0, 2))
        array([1., 2.])
        >>> grad(lambda x: fnp.getitem(x, 1) ** 2)(np.array([1.0, 2.0, 3.0]))
        array([0., 4., 0.])
    """
    if type(x) is not Tracer:
        return _getitem_constant(x, index)
    kind = type(x._trace)
    if x._trace.fast_counter is not None:
        static = type(index) is int or is_static(index)
        if static or is_concrete(index):
            value, trace, parent = x._val, x._trace, x.node
            kept = index if static else copied_index(index)
            if type(value) is ndarray:
                ans = value[index] if static else getitem_of_array(value, index)
                dtype = value.dtype
                made = _record_read(trace, ans, parent, kept, None, x.aval or value.shape, dtype)
                if dtype is DOUBLE:
                    made.aval = ans.shape if type(ans) is ndarray else float64
                if static and (type(ans) is not ndarray or ans.ndim):  # a number or a view
                    if type(ans) is ndarray:
                        note_view(x, made, getitem, {"index": index})
                    return made
            else:
                ans, shape = getitem(value, index), backend.shape_of(value)
                made = _record_read(trace, ans, parent, kept, None, shape, backend.dtype_of(value))
                if type(index) is slice or (type(index) is int and len(shape) > 1):  # clearly a view
                    note_view(x, made, getitem, {"index": index})
                    return made
            return _noted_as_view(x, made, index, value)
    elif kind is BatchTrace and is_static(index) and x._trace.fast:
        if (part := _getitem_of_examples(x, index)) is not None:
            return part
    else:
        return _getitem_traced(x, index)
    return _getitem_general(x, index)


def _getitem_traced(x: Tracer, index: Any) -> Any:
    """Return ``x[index]`` of a traced value, by a fast path in forward mode, on a graph, and for constants."""
    trace, value, t = x._trace, x._val, x.link
    kind = type(trace)
    if kind is ForwardTrace and is_concrete(index) and trace.fast:
        ans = getitem_of_array(value, index) if type(value) is ndarray else getitem(value, index)
        moved = getitem_of_array(t, index) if type(t) is ndarray else getitem(t, index)
        return _noted_as_view(x, tracer_of(ans, trace, moved), index, value)
    if kind is GraphTrace and is_static(index) and trace.fast:
        if (found := _getitem_on_graph(x, index)) is not None:
            return found
    elif trace is CONSTANTS and type(value) is ndarray and is_concrete(index):
        return _buffer_part(x, value, value[index], index)
    return _getitem_general(x, index)


def _getitem_constant(x: Any, index: Any) -> Any:
    if is_concrete(index) or is_numpy(index):
        if type(x) is ndarray:
            return getitem_of_array(x, index)
        if issubclass(type(x), np.generic):
            return x[index]
    return _getitem_general(x, index)


def _getitem_general(x: Any, index: Any) -> Any:
    """Return ``x[index]`` of any operands, by the general path."""
    if (plain := _without_buffers(index)) is not index or (plain := _positions(index)) is not index:
        return getitem(x, plain)
    if (part := selection(x, index)) is not None:
        return part
    spec, arrays, to = parse_index(index, backend.shape_of(x))
    found = read(x if to is None else reshape(x, to=to), *arrays, spec=spec)
    if not isinstance(x, Tracer) or arrays:
        return found
    if _is_array_result(found, index) and not _has_arrays(index):  # a view
        if not isinstance(found, Tracer):  # no axes, another library, or in ``no_grad``: here a view too
            found = make_buffer(np.asarray(found) if isinstance(found, np.generic) else found)
        _share(x, found, index)
    elif is_buffer(found) and type(found._val) is ndarray:
        found = make_buffer(found._val.copy())
    return found


def _positions(index: Any) -> Any:
    """Return an array for a list of integers; return anything else unchanged."""
    return np.array(index) if type(index) is list and set(map(type, index)) == {int} else index


def _without_buffers(index: Any) -> Any:
    """Return ``index`` with arrays in place of buffers, which the program may write to: ``getitem`` copies them."""
    if type(index) is not tuple:
        return index._val if is_buffer(index) and type(index._val) is ndarray and index._val.ndim else index
    made = tuple(map(_without_buffers, index)) if any(map(is_buffer, index)) else index
    return made if any(map(is_not, made, index)) else index


def _getitem_of_examples(x: Tracer, index: Any) -> Tracer | None:
    """Return ``x[index]`` of each example for a static index; None if NumPy refuses it."""
    value, whole = x._val, (slice(None), *index) if type(index) is tuple else (slice(None), index)
    try:
        made = value[whole] if type(value) is ndarray else getitem(value, whole)
    except IndexError:  # the message would name another axis
        return None
    part = tracer_of(made, x._trace)
    one = type(index) is int and type(made) is ndarray  # the most common case
    if made.ndim > 1 if one else _is_array_result(part, index):
        _share(x, part, index)
    else:
        copy_small_part(x, part)
    return part


def _getitem_on_graph(x: Tracer, index: Any) -> Any:
    """Return ``x[index]`` on a graph for a static index; None if the general path must handle it."""
    value, trace = x._val, x._trace
    spec, _, to = parse_index(index, x.shape)
    if to is not None:
        return None
    ans = value[index] if type(value) is ndarray else getitem(value, index)
    return _noted_as_view(x, trace.record_result(_read, (x.slot,), {"spec": spec}, ans), index, value)


def _noted_as_view(x: Any, made: Any, index: Any, value: Any) -> Any:
    """Return ``made``, which is ``x[index]``, noted as a view if NumPy gives one; ``value`` is what ``x`` held."""
    ans = made._val
    if type(value) is not ndarray:
        view = is_static(index) and _is_array_result(made, index)
    else:  # slices and integers give a view or a scalar
        view = type(ans) is ndarray and (type(index) is slice or type(index) is int or shares_memory(value, ans))
    if not view:
        if type(value) is not ndarray:
            copy_small_part(x, made)
    elif type(ans) is ndarray and ans.ndim:
        note_view(x, made, getitem, {"index": index})
    else:
        _share(x, made, index)
    return made


def _is_array_result(made: Any, index: Any) -> bool:
    """Whether NumPy's result is an array, not a scalar: with an ellipsis it is an array even without axes."""
    return bool(made.shape) or index is ... or (type(index) is tuple and any(e is ... for e in index))


def _share(x: Tracer, made: Any, index: Any) -> None:
    note_view(x, made, getitem, {"index": index})
    value = made._val
    if not (value if type(value) is ndarray and not made._trace.hidden_axes else made).shape:
        as_array(made)  # an ellipsis gives an array without axes, not a scalar


def _has_arrays(index: Any) -> bool:
    """Whether ``index`` contains an ndarray; even one without axes makes NumPy copy, unlike a number."""
    return any(type(e) is ndarray for e in (index if type(index) is tuple else (index,)))


def _buffer_part(x: Tracer, value: ndarray, part: Any, index: Any) -> Any:
    """Return ``part`` of the buffer ``x``, which held ``value``, as a buffer; a scalar stays a constant."""
    if type(part) is not ndarray:
        return part
    made = make_buffer(part)
    if shares_memory(value, part):
        note_view(x, made, getitem, {"index": index})
    return made


class IndexedCotangent(SparseCotangent):
    """Cotangent of a part of an array: ``(ct, index, arrays, shape, dtype)`` with the array's shape and dtype.

    If ``arrays`` is None, ``index`` is an index as the program wrote it, else a spec for ``arrays`` (``index_spec``).
    """

    __slots__ = ()

    @staticmethod
    def sum_of(entries: list[Any]) -> Any:
        """Add up all parts; the first entry may be a whole cotangent."""
        if (found := _sum_of_slices(entries)) is not None:
            return found
        parts, plain, total = [], True, None
        alone = type(entries[0]) is not IndexedCotangent and is_first_unshared(entries)
        alone = alone and (type(entries[0]) is not ndarray or entries[0].flags.c_contiguous)
        for part in entries:
            if type(part) is not IndexedCotangent:
                alone, total = alone and total is None, part if total is None else total + part
            else:
                parts.append(part)
                ct, _, arrays, shape, dtype = part
                plain = plain and type(ct) in NUMPY_TYPES and (arrays is None or set(map(type, arrays)) <= {ndarray})
        if plain and (total is None or type(total) is ndarray):
            return _sum_in_place(total if total is None or alone else total.copy(), parts, shape, dtype)
        if total is None and (found := _concatenated(parts)) is not None:
            return found
        if total is not None and (found := add_in_place(total, parts, alone)) is not None:
            return found
        found = _sum_in_forward_mode(total, parts)
        return _sum_by_scatter(total, parts) if found is None else found


def _read_vjp_for_all(ct: Any, *saved: Any) -> tuple[Any]:
    """Return the VJP of a read whose index arrays are on the tape too: these integers get no cotangent."""
    return (IndexedCotangent((ct, *saved)),)


_SHARED = {"IndexedCotangent": IndexedCotangent, "__name__": __name__}
_read_vjp = vjp_of_each(
    "getitem",
    ["IndexedCotangent((ct, index, arrays, shape, dtype))"],
    ["index", "arrays", "shape", "dtype"],
    _SHARED,
)


_record_read = make_recorder(_read_vjp, ["parent"], ["index", "arrays", "shape", "dtype"])


def _read_one_level_out(args: Any, params: Any) -> Any:
    """Read an array of the level outside, which a read by integers and slices notes as a view there."""
    if len(args) == 1 and type(args[0]) is Tracer:
        return getitem(args[0], index_from_spec(params["spec"], ()))
    return call_operation(read, args, params)


def _reverse(args: Any, traced: Any, params: Any) -> Any:
    ans = _read_one_level_out(args, params)
    if traced[0] != 0:
        return ans, None, ()
    x = args[0]
    vjp = _read_vjp if len(traced) == 1 else vjp_for_all("getitem", _read_vjp_for_all, len(traced))
    return ans, vjp, (params["spec"], args[1:], backend.shape_of(x), backend.dtype_of(x))


def _forward(args: Any, tangents: Any, params: Any) -> Any:
    ans = _read_one_level_out(args, params)
    return ans, None if tangents[0] is None else _read_one_level_out((tangents[0], *args[1:]), params)


def _batch_read(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    spec, arrays, axes = batched_index(size, params["spec"], args[1:], batched[1:], x_batched=batched[0])
    if not arrays:
        return _read_one_level_out((args[0],), {"spec": spec}), True
    ans = read(args[0], *arrays, spec=spec)
    return ans if axes is None else permute(ans, axes=axes), True


_read = Primitive(
    "getitem",
    lambda xp, x, *arrays, spec: getitem_of_array(xp.asarray(x), index_from_spec(spec, arrays)),
    reverse=_reverse,
    forward=_forward,
    batch=_batch_read,
)


def _compute_read(*args: Any, spec: Spec) -> Any:
    """Compute ``read(x, *arrays, spec)``, the primitive behind ``getitem``; ``index_spec`` explains ``spec``."""
    plain = len(args) == 1 and type(args[0]) is ndarray
    return args[0][index_from_spec(spec, ())] if plain else writable_result(args, bind(_read, args, {"spec": spec}))


read: Operation = finish_operation(_read, _compute_read)


def _sum_by_scatter(total: Any, parts: Sequence[tuple[Any, ...]]) -> Any:
    shape, dtype = parts[0][3:]
    cts: list[Any] = []
    specs: list[Spec] = []
    positions: list[Any] = []
    if total is not None:  # the parts are added in order, as above
        cts, specs = [total], [WholeSpec([(0, n, 1) for n in shape])]
    for ct, index, arrays, *_ in parts:
        spec, arrays = (index, arrays) if arrays is not None else _spec_of_read(index, shape)
        cts.append(ct)
        specs.append(spec)
        positions.extend(arrays)
    return scatter_sum(*cts, *positions, specs=tuple(specs), shape=shape, dtype=dtype)


def _spec_of_read(index: Any, shape: Shape) -> tuple[Spec, tuple[Any, ...]]:
    """Return the spec and the arrays of the ``index`` with which a part was read, see ``parse_index``."""
    if type(index) is int:  # by far the most common case in long lists
        return (index % shape[0], *[(0, n, 1) for n in shape[1:]]), ()
    entries = index if type(index) is tuple else (index,)
    for e in entries:
        if type(e) is not ndarray or e.dtype.kind != "i":
            return parse_index(index, shape)[:2]
    return (*[ARRAY] * len(entries), *[(0, n, 1) for n in shape[len(entries) :]]), entries


def _sum_in_place(total: ndarray | None, parts: Sequence[tuple[Any, ...]], shape: Shape, dtype: Any) -> Any:
    """Add the parts, NumPy arrays and numbers, to ``total`` in place."""
    total = np.zeros(shape, dtype) if total is None else total
    for ct, index, arrays, *_ in parts:
        _accumulate(index if arrays is None else index_from_spec(index, arrays), (total, ct))
    return total if shape else total[()]


def _sum_of_slices(entries: list[Any]) -> ndarray | None:
    """Add up parts that are slices of ndarrays, the most common case; None for other entries."""
    total = None
    for found in entries:
        if type(found) is not IndexedCotangent:
            return None
        ct, index, _, shape, dtype = found
        if type(index) is not slice or type(ct) is not ndarray:
            return None
        if total is None:
            total = np.zeros(shape, dtype)
        part = total[index]
        part += ct  # added to 0 like the others, so that it is never -0
    return total


def _concatenated(parts: Sequence[tuple[Any, ...]]) -> Any:
    """Concatenate parts that are adjacent rows of the whole array, such as all parameters; None for other parts.

    Specs decide, so that a read recorded by the general path is added up by the same operations.
    """
    shape = parts[0][3]
    columns, end, pieces = tuple([(0, n, 1) for n in shape[1:]]), 0, []
    for ct, index, arrays, *_ in parts:
        spec, arrays = (index, arrays) if arrays is not None else _spec_of_read(index, shape)
        is_slice = not arrays and spec and type(spec[0]) is tuple and spec[0][-1] == 1
        if not is_slice or spec[1:] != columns or stands_for_array(ct):
            return None
        pieces.append((spec[0], ct))
    pieces.sort(key=itemgetter(0))
    for (start, stop, _), _ in pieces:
        if start != end or stop < start:
            return None
        end = stop
    return concatenate(*[ct for _, ct in pieces], axis=0) if end == shape[0] else None


def _sum_in_forward_mode(total: Any, parts: Sequence[tuple[Any, ...]]) -> Any:
    """Add the parts in forward mode, if values and tangents are NumPy's, without recording; None for other parts."""
    trace, given = None, [total]
    for ct, _, arrays, *_ in parts:
        if arrays is not None and not {ndarray}.issuperset(map(type, arrays)):
            return None
        given.append(ct)
    for ct in given:
        if type(ct) is Tracer:
            trace = ct._trace
            break
    if type(trace) is not ForwardTrace or not trace.fast:
        return None
    values, tangents = [], []
    for ct in given:
        mine = type(ct) is Tracer and ct._trace is trace
        values.append(ct._val if mine else ct)
        tangents.append(ct.tangent if mine else None)
    if not _NUMPY_OR_NONE.issuperset(map(type, (*values, *tangents))):
        return None
    *_, shape, dtype = parts[0]
    sums = [np.zeros(shape, dtype) if x is None else np.array(x, dtype, order="C") for x in (values[0], tangents[0])]
    for (_, index, arrays, *_), *cts in zip(parts, values[1:], tangents[1:], strict=True):
        pairs = [(into, ct) for into, ct in zip(sums, cts, strict=True) if ct is not None]
        _accumulate(index if arrays is None else index_from_spec(index, arrays), *pairs)
    value, tangent = sums if shape else [one[()] for one in sums]
    return tracer_of(value, trace, tangent)


def _accumulate(index: Any, *pairs: tuple[ndarray, Any]) -> None:
    """Compute ``total[index] += ct`` for each pair; an element that is named several times receives all shares."""
    total, ct = pairs[0]
    if type(index) is slice or is_static(index) or _has_no_duplicates(index, total.shape):
        for total, ct in pairs:
            total[index] += ct
    elif total.ndim == 1 or 16 * np.asarray(ct).size < total.size:
        for total, ct in pairs:
            np.add.at(total, index, ct)
    else:  # add.at is fast in one dimension only
        flat = [(total.reshape(-1), np.asarray(ct).reshape(-1)) for total, ct in pairs]
        for piece, places in _flat_places(index, total.shape):
            for into, elements in flat:
                np.add.at(into, places, elements[piece])


def _flat_places(index: Any, shape: Shape) -> Iterator[tuple[slice, ndarray]]:
    """Yield the flat positions of the elements that ``index`` names, a piece at a time, which needs less memory."""
    table = np.arange(prod(shape)).reshape(shape)
    rows = whole_rows(index, shape)
    if rows is None:
        yield slice(None), table[index].reshape(-1)
        return
    rows, length = rows.reshape(-1), prod(shape[1:])
    step = max(_PIECE // max(length, 1), 1)
    for i in range(0, len(rows), step):
        yield slice(i * length, (i + step) * length), table.take(rows[i : i + step], 0).reshape(-1)


def _has_no_duplicates(index: Any, shape: Shape) -> bool:
    """Whether a cheap check shows that ``index`` names no element twice."""
    array, axis, passed = None, 0, 0
    for e in index if type(index) is tuple else (index,):
        if e is ... or (type(e) is ndarray and array is not None):
            return False
        if type(e) is ndarray:
            array, axis = e, passed
        passed += e is not None
    if array is None or array.dtype.kind == "b":
        return array is not None
    if len(shape) == 1 or array.size > shape[axis]:
        return False
    hit = np.zeros(shape[axis], bool)
    hit[array] = True
    return int(np.count_nonzero(hit)) == array.size


def _scatter(xp: Any, *args: Any, specs: tuple[Spec, ...], shape: Shape, dtype: Any) -> Any:
    if xp is not np:
        return _scatter_immutable(xp, xp.zeros(shape, dtype), args, specs)
    has_first = type(specs[0]) is WholeSpec
    total = np.array(args[0], dtype, order="C") if has_first else np.zeros(shape, dtype)
    for ct, spec, arrays in islice(zip(args, specs, _arrays_of_each(args, specs), strict=False), has_first, None):
        _accumulate(index_from_spec(spec, arrays), (total, ct))
    return total if shape or not has_first else total[()]


def _scatter_immutable(xp: Any, total: Any, args: tuple[Any, ...], specs: tuple[Spec, ...]) -> Any:
    """Scatter into arrays that each addition copies: reads that differ in integers only are added at once.

    What belongs to one place is added up before: XLA would compute the many parts of a joined array one by one, each
    with all that it depends on.
    """
    groups: dict[Spec, dict[Spec, Any]] = {}
    for ct, spec, arrays in zip(args, specs, _arrays_of_each(args, specs), strict=False):
        numbers = [i for i, e in enumerate(spec) if type(e) is int]
        together = bool(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers)
        if together and all(type(e) is int or type(e) is tuple for e in spec):
            members = groups.setdefault(tuple([ARRAY if type(e) is int else e for e in spec]), {})
            members[spec] = members[spec] + ct if spec in members else ct
        elif covers_all(spec, total.shape):
            total = total + xp.reshape(ct, total.shape)
        else:
            total = total.at[index_from_spec(spec, arrays)].add(ct)
    for spec, members in groups.items():
        places = [i for i, e in enumerate(spec) if e == ARRAY]
        arrays = tuple([np.array([numbered[i] for numbered in members]) for i in places])
        total = total.at[index_from_spec(spec, arrays)].add(xp.stack(list(members.values()), axis=places[0]))
    return total


def _arrays_of_each(args: tuple[Any, ...], specs: tuple[Spec, ...]) -> list[tuple[Any, ...]]:
    """Return the index arrays of each piece. In ``args`` they follow the cotangents."""
    if len(args) == len(specs):
        return [()] * len(specs)
    rest = iter(args[len(specs) :])
    return [tuple([next(rest) for e in spec if e == ARRAY]) for spec in specs]


def _scatter_vjp(ct: Any, traced: Any, split: Any, specs: Any) -> list[Any]:
    n = len(specs)
    return [_read_cotangent(ct, specs[i], split[i]) if i < n else None for i in traced]


def _read_cotangent(ct: Any, spec: Spec, arrays: tuple[Any, ...]) -> Any:
    """Compute ``read``, by the fast path if no array of the index is traced."""
    known = {ndarray}.issuperset(map(type, arrays))
    return getitem(ct, index_from_spec(spec, arrays)) if known else read(ct, *arrays, spec=spec)


def _reverse_scatter(args: Any, traced: Any, params: Any) -> Any:
    ans = call_operation(scatter_sum, args, params)
    specs = params["specs"]
    if traced[0] >= len(specs):
        return ans, None, ()
    return ans, vjp_for_all("scatter_sum", _scatter_vjp, len(traced)), (traced, _arrays_of_each(args, specs), specs)


def _forward_scatter(args: Any, tangents: Any, params: Any) -> Any:
    ans = call_operation(scatter_sum, args, params)
    specs, split = params["specs"], _arrays_of_each(args, params["specs"])
    moving = [i for i in range(len(specs)) if tangents[i] is not None]
    if not moving:
        return ans, None
    positions = [a for i in moving for a in split[i]]
    chosen = {**params, "specs": tuple([specs[i] for i in moving])}
    return ans, scatter_sum(*[tangents[i] for i in moving], *positions, **chosen)


def _batch_scatter(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    specs = params["specs"]
    cts: list[Any] = []
    positions: list[Any] = []
    lifted: list[Spec] = []
    flags = _arrays_of_each(batched, specs)
    for i, (spec, arrays) in enumerate(zip(specs, _arrays_of_each(args, specs), strict=True)):
        kind = type(spec)
        spec, arrays, axes = batched_index(size, spec, arrays, flags[i], x_batched=True)
        ct = args[i] if batched[i] else to_batch(args[i], size)
        if axes is not None:
            ct = permute(ct, axes=inverse_permutation(axes))
        cts.append(ct)
        positions.extend(arrays)
        lifted.append(kind(spec))
    shape = (size, *params["shape"])
    return scatter_sum(*cts, *positions, **{**params, "specs": tuple(lifted), "shape": shape}), True


#: ``scatter_sum(*cts, *arrays, specs, shape, dtype)``: zeros with every ``ct`` added at its index, the transpose
#: of several reads. ``arrays`` holds the arrays of all specs, in order.
scatter_sum: Operation = finish_operation(
    Primitive("scatter_sum", _scatter, reverse=_reverse_scatter, forward=_forward_scatter, batch=_batch_scatter)
)


def _add_along_axis(xp: Any, ct: Any, y: Any, *, axis: int, shape: Shape, unique: bool = False) -> Any:
    """Return zeros of ``shape`` with ``ct`` added at ``y``."""
    if xp is not np:
        grid = list(xp.ogrid[tuple(slice(n) for n in shape)])
        grid[axis] = y
        return xp.zeros(shape, ct.dtype).at[tuple(grid)].add(ct, unique_indices=unique)
    total = np.zeros(shape, ct.dtype)
    if unique and ct.shape == y.shape:
        np.put_along_axis(total, y, ct, axis)
    else:
        # add.at is fast in one dimension only
        places = np.take_along_axis(np.arange(total.size).reshape(shape), y, axis)
        np.add.at(total.reshape(-1), places.reshape(-1), ct.reshape(-1))
    return total


def _batch_take(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    # all axes but ``axis`` broadcast, so an argument without a batch axis gets a leading axis of length 1
    x, y = (a if b else reshape(a, to=(1, *backend.shape_of(a))) for a, b in zip(args, batched, strict=True))
    return take_along_axis(x, y, **{**params, "axis": params["axis"] + 1}), True


def _batch_add(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    ct = args[0] if batched[0] else to_batch(args[0], size)
    y = args[1] if batched[1] else reshape(args[1], to=(1, *backend.shape_of(args[1])))
    shifted = {**params, "axis": params["axis"] + 1, "shape": (size, *params["shape"])}
    return add_along_axis(ct, y, **shifted), True


#: ``take_along_axis(x, y, *, axis, unique=False)``: the elements of ``x`` at the positions ``y`` along
#: ``axis``; the other axes broadcast. ``unique`` promises that no position along the axis is read twice.
take_along_axis: Operation = linear(
    "take_along_axis",
    lambda xp, x, y, *, axis, unique=False: xp.take_along_axis(x, y, axis),
    transpose=lambda ct, shape, y, *, axis, unique=False: add_along_axis(ct, y, axis=axis, shape=shape, unique=unique),
    conforms=True,
    batch=_batch_take,
)

#: ``add_along_axis(x, y, *, axis, shape, unique=False)``: the transpose of ``take_along_axis``.
add_along_axis: Operation = linear(
    "add_along_axis",
    _add_along_axis,
    transpose=lambda ct, y, *, axis, shape, unique=False: take_along_axis(ct, y, axis=axis, unique=unique),
    conforms=True,
    batch=_batch_add,
)


def _pad_zeros(xp: Any, x: Any, *, widths: tuple[tuple[int, int], ...]) -> Any:
    if xp is not np:
        return xp.pad(x, widths)
    # four times as fast as numpy.pad on small arrays
    shape = tuple([a + n + b for n, (a, b) in zip(x.shape, widths, strict=True)])
    padded = np.zeros(shape, x.dtype)
    padded[tuple([slice(a, a + n) for n, (a, _) in zip(x.shape, widths, strict=True)])] = x
    return padded


#: ``pad_zeros(x, *, widths)``: ``x`` surrounded by zeros; ``widths`` has (before, after) for each axis.
pad_zeros: Operation = linear(
    "pad_zeros",
    _pad_zeros,
    transpose=lambda ct, shape, *, widths: getitem(
        ct, tuple([slice(a, a + n) for n, (a, _) in zip(shape, widths, strict=True)])
    ),
    conforms=True,
    batch=lambda size, args, batched, params: (pad_zeros(args[0], widths=((0, 0), *params["widths"])), True),
)
