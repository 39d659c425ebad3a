"""Specs of indices: the static part of an index, the integer arrays in it, and how a batch axis changes both.

A *spec* is a tuple with one entry per axis or new axis: an integer, a slice as ``(start, stop, step)``,
None for a new axis, ``ARRAY`` as a placeholder for the next integer array, and ``...`` only if an ellipsis
represents no axis at all (NumPy lets even such an ellipsis separate two arrays). A spec is hashable, and its
numbers count from 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.batching import is_batched, is_in_batch, unbatched_if_equal
from funcgrad.core import Tracer, plain_value
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.graph import report_answer
from funcgrad.kinds.arguments import ARRAY_MAKER
from funcgrad.kinds.linear import reshape
from funcgrad.shared_state import note_refusal
from funcgrad.typing import Shape
from funcgrad.writable import Proxy

Spec: TypeAlias = tuple[Any, ...]


class WholeSpec(tuple[Any, ...]):
    """Spec of the first term of a sum, if that is a whole array. Added to zeros, its -0 would be lost."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is WholeSpec and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return tuple.__hash__(self)


#: List with the function that returns a part of an array whose length is not known, see ``numpy.selections``.
SELECTION_MAKER: list[Callable[[Any, Any], Any]] = []
ARRAY = "array"
ndarray = np.ndarray
_STATIC = frozenset((int, slice, type(None), type(...), np.int64))


def is_static(index: Any) -> bool:
    """Whether ``index`` consists of integers, slices, None and ellipses only.

    Example:
        >>> is_static(3), is_static((slice(None), None)), is_static([0, 1])
        (True, True, False)
    """
    kind = type(index)
    if kind is tuple:
        return _STATIC.issuperset(map(type, index))
    return kind in _STATIC


def is_concrete(index: Any) -> bool:
    """Whether ``index`` consists of what ``is_static`` allows and of ndarrays with axes.

    Example:
        >>> is_concrete((slice(None), np.array([0, 2]))), is_concrete(True)
        (True, False)
    """
    for e in index if type(index) is tuple else (index,):
        if type(e) not in _STATIC and not (type(e) is ndarray and e.ndim and e.dtype.kind in "iub"):
            return False
    return True


def is_numpy(index: Any) -> bool:
    """Whether NumPy can handle ``index``: it contains neither a tracer nor another library's array."""
    entries = index if type(index) is tuple else (index,)
    return Tracer not in map(type, entries) and backend.namespace(entries) is np


def copied_index(index: Any) -> Any:
    """Return a concrete ``index`` with copies of its arrays.

    The tape keeps an index until the backward pass. A program that changes its index array in between must
    not change where the cotangents go.
    """
    if type(index) is tuple:
        return tuple([e.copy() if type(e) is ndarray else e for e in index]) if ndarray in map(type, index) else index
    return index.copy() if type(index) is ndarray else index


def index_from_spec(spec: Spec, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index that ``spec`` and its ``arrays`` represent, as an array library takes it."""
    rest = iter(arrays)
    return tuple([slice(*e) if type(e) is tuple else next(rest) if e == ARRAY else e for e in spec])


def getitem_of_array(x: Any, index: Any) -> Any:
    """Return ``x[index]``. NumPy rows at integer positions are read by ``take``, in a tenth of the time.

    Example:
        >>> getitem_of_array(np.array([[1, 2], [3, 4]]), np.array([1, -1, 0]))
        array([[3, 4],
               [3, 4],
               [1, 2]])
    """
    rows = whole_rows(index, x.shape) if type(x) is ndarray else None
    return x[index] if rows is None or not x.flags.c_contiguous or not rows.flags.c_contiguous else x.take(rows, 0)


def whole_rows(index: Any, shape: Shape) -> Any:
    """Return the array of integers with which ``index`` names whole rows of an array of ``shape``; None if it does not.

    Example:
        >>> whole_rows((np.array([1, 0]), slice(None)), (2, 2))
        array([1, 0])
    """
    rows, rest = (index[0], index[1:]) if type(index) is tuple and index else (index, ())
    if type(rows) is not ndarray or not 1 < len(shape) > len(rest) or not rows.ndim or rows.dtype.kind != "i":
        return None
    for axis, e in enumerate(rest, 1):
        if type(e) is not slice or e.indices(shape[axis]) != (0, shape[axis], 1):
            return None
    return rows


def covers_all(spec: Spec, shape: Shape) -> bool:
    """Whether ``spec`` names all elements of an array of ``shape``, in order.

    A write to all elements must not become a scatter in other libraries: XLA turns that scatter into a map, and if the
    result is then read in reverse (``x.at[...].set(y)[::-1]``), XLA's simplifier ends the process.

    Example:
        >>> covers_all(((0, 2, 1), None), (2,)), covers_all(((0, 1, 1),), (2,))
        (True, False)
    """
    return [e for e in spec if e is not None and e is not ...] == [(0, n, 1) for n in shape]


def is_unknown(x: Any) -> bool:
    """Whether ``x`` is an array without one value: examples of a ``vmap`` differ in it, or JAX has not computed it."""
    x = unbatched_if_equal(x)
    return is_in_batch(x) or backend.is_jax_tracer(plain_value(x))


def unknown_mask(entry: Any) -> Any:
    """Return a traced mask of which nobody knows which elements are true; None for any other entry of an index."""
    is_mask = type(entry) is Tracer and entry.dtype.kind == "b" and bool(entry.shape)
    return entry if is_mask and is_unknown(entry) else None


def selection(x: Any, index: Any) -> Any:
    """Return ``x[index]`` if ``index`` begins with a mask whose true elements cannot be counted, else None."""
    entry = index[0] if type(index) is tuple and index else index
    selects = unknown_mask(entry) is not None or (isinstance(entry, Proxy) and entry.is_selection)
    return SELECTION_MAKER[0](x, index) if selects else None


def concrete_mask(mask: Any, what: str) -> np.ndarray:
    """Return the ndarray in ``mask``; raise an error if it differs between examples, which have different counts."""
    given = mask = unbatched_if_equal(mask)
    while isinstance(mask, Tracer):
        if is_batched(mask):
            error = ConcretizationError(
                f"{what}: the number of selected elements depends on the values of a batched array, got a mask "
                f"of shape {mask.shape} that differs between examples of a vmap. Use where(mask, x, fill) instead."
            )
            raise note_refusal(error)
        mask = mask._val
    try:
        values = np.asarray(mask)
    except TypeError as error:
        note_refusal(error, f"{what}: the mask is not known yet.")
        raise
    found: np.ndarray = report_answer(given, values)
    return found


def parse_index(index: Any, shape: Shape) -> tuple[Spec, tuple[Any, ...], Shape | None]:
    """Split ``index`` of an array of ``shape`` into a spec and integer arrays.

    Returns:
        The spec, its integer arrays, and the shape to give the array first if a boolean scalar in the
        index needs an axis of length 1 (else None).

    Raises:
        IndexError: NumPy refuses the index; the message is NumPy's.
        ConcretizationError: a boolean mask differs between examples of a ``vmap``.
    """
    if type(index) is int and shape and -shape[0] <= index < shape[0]:  # the most common case
        return (index % shape[0], *[(0, n, 1) if n else (0, 0, 1) for n in shape[1:]]), (), None
    entries = [_normalized_entry(e, index, shape) for e in (index if type(index) is tuple else (index,))]
    used = sum([_axes_used(e) for e in entries])
    if used > len(shape) or sum([e is ... for e in entries]) > 1:
        _raise_index_error(index, shape)
    if not any(e is ... for e in entries):
        entries.append(...)
    spec: list[Any] = []
    arrays: list[Any] = []
    lengths: list[int] = []  # lengths of the array's axes, with a 1 for each boolean scalar
    rest = list(shape)
    for entry in entries:
        if entry is ...:
            spec.extend([(0, n, 1) for n in rest[: len(shape) - used]] if used < len(shape) else (...,))
            lengths.extend(rest[: len(shape) - used])
            del rest[: len(shape) - used]
        elif _is_mask(entry):
            lengths_there = rest[: entry.ndim]
            if any(m not in (n, 0) for m, n in zip(entry.shape, lengths_there, strict=True)):  # NumPy accepts 0
                _raise_index_error(index, shape)
            del rest[: entry.ndim]
            lengths.extend(lengths_there or [1])
            arrays.extend(entry.nonzero() if lengths_there else (np.zeros(int(entry), int),))
            spec.extend([ARRAY] * max(1, len(lengths_there)))
        elif entry is None:
            spec.append(None)
        else:
            lengths.append(rest.pop(0))
            spec.append(_spec_entry(entry, lengths[-1], index, shape, arrays))
    if spec and spec[-1] is ...:
        spec.pop()
    if len(arrays) > 1:
        _check_shapes(arrays, index, shape)
    return tuple(spec), tuple(arrays), tuple(lengths) if len(lengths) > len(shape) else None


def _is_mask(entry: Any) -> bool:
    return type(entry) is ndarray and entry.dtype.kind == "b"


def _axes_used(entry: Any) -> int:
    if _is_mask(entry):
        return int(entry.ndim)
    return 0 if entry is None or entry is ... else 1


def _normalized_entry(entry: Any, index: Any, shape: Shape) -> Any:
    """Return one entry as an int, a slice, None, an ellipsis, an ndarray of booleans, or an array of integers."""
    if type(entry) in _STATIC:
        return int(entry) if type(entry) is np.int64 else entry
    if issubclass(type(entry), (bool, np.bool_)):
        return np.asarray(entry)
    if isinstance(entry, Proxy):
        entry = entry.as_array()
    is_sequence = isinstance(entry, (list, tuple, range))
    if is_sequence or (hasattr(entry, "__array__") and not backend.is_value(entry)):
        entry = ARRAY_MAKER[0](entry)  # the list may contain positions that are batched, a table may hold them
        if is_sequence and not entry.size:
            entry = entry.astype(int)
    elif not hasattr(entry, "dtype"):
        try:
            return operator.index(entry)
        except TypeError:
            _raise_index_error(index, shape)
    kind = entry.dtype.kind
    if kind == "b":
        return concrete_mask(entry, "indexing")
    if kind not in "iu":
        _raise_index_error(index, shape)
    return int(entry) if issubclass(type(entry), (ndarray, np.generic)) and not entry.ndim else entry


def _spec_entry(entry: Any, n: int, index: Any, shape: Shape, arrays: list[Any]) -> Any:
    """Return the spec's entry for an index into an axis of length ``n``; an array is appended to ``arrays``."""
    if issubclass(type(entry), int):
        if not -n <= entry < n:
            _raise_index_error(index, shape)
        return entry % n
    if isinstance(entry, slice):
        start, stop, step = entry.indices(n)
        # None, because -1 would count from the end
        return (start, stop if stop >= 0 else None, step) if range(start, stop, step) else (0, 0, 1)
    if issubclass(type(entry), ndarray) and entry.size and not (-n <= entry.min() and entry.max() < n):
        _raise_index_error(index, shape)
    arrays.append(entry.copy() if type(entry) is ndarray else entry)  # see ``copied_index``
    return ARRAY


def _check_shapes(arrays: list[Any], index: Any, shape: Shape) -> None:
    try:
        np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:
        _raise_index_error(index, shape)


def _raise_index_error(index: Any, shape: Shape) -> NoReturn:
    """Raise NumPy's error for ``index``, from an array that takes no memory."""

    def stand_in(entry: Any) -> Any:
        if isinstance(entry, Tracer) or (hasattr(entry, "dtype") and not isinstance(entry, ndarray)):
            return np.zeros(entry.shape, entry.dtype)
        return entry

    probe = tuple([stand_in(e) for e in index]) if type(index) is tuple else stand_in(index)
    np.broadcast_to(np.False_, shape)[probe]
    raise InputError(
        f"indexing: the index does not fit an array of shape {shape}, got {index!r}. Use integers, slices, None, "
        "an ellipsis, and arrays of integers or booleans."
    )


def batched_index(
    size: int, spec: Spec, arrays: tuple[Any, ...], batched: tuple[bool, ...], *, x_batched: bool
) -> tuple[Spec, tuple[Any, ...], tuple[int, ...] | None]:
    """Return the index that reads a whole batch at once.

    Args:
        size: the number of examples.
        spec: the spec for one example.
        arrays: its integer arrays.
        batched: for each of ``arrays``, whether it has a leading batch axis.
        x_batched: whether the array that is read has a batch axis.

    Returns:
        The new spec, the new arrays, and the permutation of axes to apply to the array that they read, so that
        the batch axis comes first and then the axes of one example's result; None for no permutation.
    """
    if not arrays:
        return ((0, size, 1), *spec), arrays, None
    ranks = [len(backend.shape_of(a)) - b for a, b in zip(arrays, batched, strict=True)]
    read = max(ranks)  # number of axes that the arrays make
    rank = read + sum([e is None or type(e) is tuple for e in spec])
    before, separated = _position_of_array_axes(spec)
    if not any(batched):
        axes = (read, *range(read), *range(read + 1, rank + 1)) if separated else ()
        return ((0, size, 1), *spec), arrays, _none_if_sorted(axes)
    arrays = tuple(
        [
            reshape(a, to=(size, *(1,) * (read - r), *backend.shape_of(a)[1:])) if b else a
            for a, b, r in zip(arrays, batched, ranks, strict=True)
        ]
    )
    if not x_batched:
        return spec, arrays, _none_if_sorted((before, *range(before), *range(before + 1, rank + 1)))
    # One more array selects the example. It comes first, and so do the axes that the arrays make.
    each = np.arange(size).reshape(size, *(1,) * read)
    order = (*range(read, read + before), *range(read), *range(read + before, rank))
    return (ARRAY, *spec), (each, *arrays), _none_if_sorted((0, *[i + 1 for i in order]))


def _position_of_array_axes(spec: Spec) -> tuple[int, bool]:
    """Return the position in the result of the axes that arrays make, and whether other entries separate the arrays.

    Integers count as arrays here. The axes of separated arrays come first; others stay in place.
    """
    fancy = [i for i, e in enumerate(spec) if e == ARRAY or type(e) is int]
    if not fancy or fancy[-1] - fancy[0] + 1 > len(fancy):
        return 0, bool(fancy)
    return sum([e is not ... for e in spec[: fancy[0]]]), False


def _none_if_sorted(axes: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if axes == tuple(range(len(axes))) else axes
