"""``x.at[index].set(y)`` and related methods: changed copies instead of writes such as ``x[index] = y``.

The methods are those of JAX arrays. ``at(x)[index]`` works also for arrays without ``x.at``, such as an ndarray.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to
from funcgrad.numpy import reductions
from funcgrad.numpy.choice import maximum, minimum
from funcgrad.numpy.creation import as_buffer, as_value, asarray, astype, copy
from funcgrad.numpy.function_tables import set_identity
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.reducing import identity_of_extremum
from funcgrad.numpy.shaping import ravel, reshape
from funcgrad.numpy.writes.items import as_where_mask, cast_for_write, may_repeat, with_items_set, without_excess_axes
from funcgrad.primitives.arithmetic import add, clip, divide, multiply, power, remainder
from funcgrad.primitives.comparison import where
from funcgrad.primitives.index_spec import ARRAY, concrete_mask
from funcgrad.primitives.indexing import getitem, scatter_sum
from funcgrad.typing import ArrayLike, Shape

ndarray = np.ndarray
#: Function that combines elements of ``x`` with the values to write to these elements.
Combine: TypeAlias = Callable[[Any, Any], Any]
_MODES = (None, "promise_in_bounds", "clip", "drop", "fill", "wrap")


def _in_turn(operation: Combine) -> Combine:
    """Apply ``operation`` once for each value that is written to an element."""

    def combine(x: Any, ys: Any) -> Any:
        for j in range(backend.shape_of(ys)[-1]):
            x = operation(x, getitem(ys, (..., j)))
        return x

    return combine


def _as_often(func: Callable[[Any], Any]) -> Combine:
    """Apply ``func`` to an element as many times as ones are written to the element."""

    def combine(x: Any, ones: Any) -> Any:
        n = backend.shape_of(ones)[-1]
        if type(ones) is ndarray:
            for _ in range(n):
                x = func(x)
            return x
        first, times = x, reductions.sum(ones, -1)
        for j in range(n):
            active = times > j
            x = where(active, func(where(active, x, first)), x)  # avoids infinite derivatives at inactive elements
        return x

    return combine


def _extreme(reduction: Callable[..., Any]) -> Combine:
    return lambda x, ys: reduction(concatenate([getitem(x, (..., None)), ys], -1), -1)


class Change(NamedTuple):
    """Effect of a method on the elements of ``x``.

    Attributes:
        once: combines ``x[i]`` and one ``y``.
        several: combines ``x[i]`` and several ``y`` along a trailing axis; None for sums and if the last ``y`` counts.
        neutral: returns the ``y`` of a dtype that changes nothing.
    """

    once: Combine
    several: Combine | None = None
    neutral: Callable[[Any], Any] = lambda dtype: 1


_SET = Change(lambda x, y: y)
_ADD = Change(add)
_MULTIPLY = Change(multiply, lambda x, ys: x * reductions.prod(ys, -1))
_DIVIDE = Change(divide, _in_turn(divide))
_POWER = Change(power, _in_turn(power))
_MIN = Change(minimum, _extreme(reductions.min), lambda dtype: identity_of_extremum("min", dtype))
_MAX = Change(maximum, _extreme(reductions.max), lambda dtype: identity_of_extremum("max", dtype))


class Update(Protocol):
    """Protocol of a method of ``x.at[index]`` that writes ``values``."""

    def __call__(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """Return the changed copy."""


def _method(name: str, does: str, change: Change, negative: bool = False) -> Any:
    """Return the method ``name``, which makes ``change`` with the values, or with the negated values."""

    def method(
        self: IndexUpdate,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        if change is _DIVIDE and self._x.dtype.kind in "iub":
            self = IndexUpdate(self._x * 1.0, self._index)
        return _changed_copy(self, -as_value(values) if negative else values, mode, unique_indices, change)

    set_identity(method, __name__, name, f"Return a copy of ``x`` {does}").__qualname__ = f"Place.{name}"
    return method


class At:
    """Object ``x.at``, which takes an index."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> IndexUpdate:
        return IndexUpdate(self._x, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise InputError(
            f"x.at[i] = y: x.at gives changed copies, got an assignment{user_line()}. Write x = x.at[i].set(y)."
        )

    def __repr__(self) -> str:
        return f"at({self._x!r})"


def at(x: ArrayLike) -> At:
    """Return ``x.at`` for any array: ``at(x)[index].set(y)`` is a copy of ``x`` with ``y`` at ``index``.

    Nothing is written to ``x``, so ``x`` may be an argument of a transformed function. The methods are ``set``,
    ``add``, ``subtract``, ``multiply``, ``divide``, ``power``, ``min``, ``max``, ``apply`` (of a function) and ``get``,
    as on JAX arrays; tracers have these methods as ``x.at[index]`` too. If an index selects an element several times,
    the last ``set`` counts, and the other methods are applied that many times. In ``min`` and ``max``, equal numbers
    share the derivative equally.

    All methods accept

    - ``mode``: indices out of range raise an error by default (None), "clip" to the ends, "wrap" around, or are left
      out ("drop" or "fill"). "promise_in_bounds" is the same as None.
    - ``unique_indices=True``, a promise that no element is selected several times, which saves a check;
    - ``indices_are_sorted``, which makes no difference here.

    ``get`` also accepts ``fill_value``, the value to read out of range in mode "fill". The default is NaN for inexact
    dtypes, the smallest value for signed integers, the largest for unsigned ones, and True for booleans.

    Raises:
        IndexError: an index that NumPy refuses.
        ValueError: another mode, or a value that does not broadcast.
        InputError: traced or complex numbers for a dtype that cannot hold them.

    Example:
        >>> fnp.at([1.0, 2.0, 3.0])[[0, 0]].add(10.0)
        array([21.,  2.,  3.])
        >>> grad(lambda x: fnp.prod(x.at[1].multiply(x[0])))(np.array([2.0, 3.0]))
        array([12.,  4.])
    """
    return At(asarray(x))


class IndexUpdate:
    """Object ``x.at[index]``, whose methods return copies of ``x`` changed at the index."""

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        self._x, self._index = x, index

    def __repr__(self) -> str:
        return f"at({self._x!r})[{self._index!r}]"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: Any = None,
    ) -> Any:
        """Return ``x[index]`` as a copy."""
        x = self._x
        index = _bring_into_range(self._index, x.shape, mode if mode or fill_value is None else "fill")
        if not isinstance(index, _InRangePart):
            return copy(found) if backend.shape_of(found := getitem(x, index)) else found
        if fill_value is None:
            kind = x.dtype.kind
            fill_value = np.nan if kind not in "iub" else np.iinfo(x.dtype).min if kind == "i" else not 0
            fill_value = np.iinfo(x.dtype).max if kind == "u" else fill_value
        if not prod(x.shape):
            return copy(broadcast_to(cast_for_write(fill_value, x), to=backend.shape_of(index.places)))
        found = getitem(ravel(x), where(index.valid, index.places, 0))
        return where(index.valid, found, cast_for_write(fill_value, x))

    set: Update = _method("set", "with ``values`` at the index.", _SET)
    add: Update = _method("add", "with ``values`` added at the index.", _ADD)
    subtract: Update = _method("subtract", "with ``values`` subtracted at the index.", _ADD, negative=True)
    multiply: Update = _method("multiply", "multiplied by ``values`` at the index.", _MULTIPLY)
    mul = multiply
    divide: Update = _method("divide", "divided by ``values`` at the index; integers become floats.", _DIVIDE)
    power: Update = _method("power", "raised to the power ``values`` at the index.", _POWER)
    min: Update = _method("min", "with the minimum of ``x`` and ``values`` at the index.", _MIN)
    max: Update = _method("max", "with the maximum of ``x`` and ``values`` at the index.", _MAX)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """Return a copy of ``x`` with the elementwise function ``func`` applied at the index."""
        change = Change(lambda x, y: func(x), _as_often(func), lambda dtype: 0)
        return _changed_copy(self, 1, mode, unique_indices, change)


class _InRangePart:
    """Index with entries that are left out because they are out of range.

    Attributes:
        places: the positions of the elements in C order, -1 for entries out of range.
        valid: a mask that is True for entries in range.
    """

    def __init__(self, places: Any) -> None:
        self.valid = places >= 0
        self.places = places


def _bring_into_range(index: Any, shape: Shape, mode: str | None) -> Any:
    """Return ``index`` of an array of ``shape`` brought into range by ``mode``, or a ``_InRangePart``."""
    if mode not in _MODES:
        raise ValueError(f"x.at[i]: the mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}.")
    if mode is None or mode == "promise_in_bounds":
        return index
    partial = mode == "drop" or mode == "fill"
    entries: list[Any] = []
    for entry, n in _with_lengths(index, shape):
        if entry is None or entry is ... or not (isinstance(entry, slice) or n is not None):
            entries.append(entry)
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(n)
            entries.append(slice(start, stop if stop >= 0 else None, step))
        elif mode == "wrap":
            entries.append(remainder(entry, n))
        else:
            entry = where(entry < 0, entry + n, entry)
            entries.append(where((entry >= 0) & (entry < n), entry, n) if partial else clip(entry, 0, n - 1))
    if not partial:
        return tuple(entries)
    # one more position along each axis represents indices out of range
    places = np.full([n + 1 for n in shape], -1)
    places[tuple([slice(n) for n in shape])] = np.arange(prod(shape)).reshape(shape)
    return _InRangePart(getitem(places, tuple(entries)))


def _with_lengths(index: Any, shape: Shape) -> list[tuple[Any, Any]]:
    """Return the entries of an index with the lengths of their axes (None for new axes); masks become positions."""
    entries: list[Any] = []
    for entry in index if type(index) is tuple else (index,):
        if entry is None or entry is ... or isinstance(entry, slice):
            entries.append(entry)
            continue
        entry = as_value(entry)
        if backend.dtype_of(entry).kind == "b" and backend.shape_of(entry):
            entries.extend(concrete_mask(entry, "x.at[i]").nonzero())
        else:
            entries.append(entry.astype(int) if issubclass(type(entry), ndarray) and not entry.size else entry)
    used = sum([entry is not None and entry is not ... for entry in entries])
    if not any(entry is ... for entry in entries):
        entries.append(...)
    found: list[tuple[Any, Any]] = []
    axis = 0
    for entry in entries:
        if entry is ...:
            found += [(slice(None), n) for n in shape[axis : len(shape) - used + axis]]
            axis += len(shape) - used
            continue
        found.append((entry, None if entry is None or axis >= len(shape) else shape[axis]))
        axis += entry is not None
    return found


def _changed_copy(place: IndexUpdate, values: ArrayLike, mode: str | None, unique: bool, change: Change) -> Any:
    """Return a copy of ``x`` with ``change`` made at an index."""
    x, y = place._x, cast_for_write(as_value(values), place._x)
    index = _bring_into_range(place._index, x.shape, mode)
    if isinstance(index, _InRangePart):
        return as_buffer(_scatter(x, index.places, y, change, partial=True))
    chosen = as_where_mask(index, x.shape, backend.shape_of(y))
    if chosen is not None:
        inert = where(chosen, x, 1), where(chosen, y, 1)  # avoids infinite derivatives where nothing is selected
        return where(chosen, astype(change.once(*inert), x.dtype), x)
    if change is _SET or unique or not may_repeat(index, x.shape):
        written = y if change is _SET else astype(change.once(getitem(x, index), y), x.dtype)
        return as_buffer(with_items_set(x, index, written, unique=unique or change is not _SET))
    return as_buffer(_scatter(x, getitem(np.arange(prod(x.shape)).reshape(x.shape), index), y, change))


def _scatter(x: Any, places: Any, y: Any, change: Change, partial: bool = False) -> Any:
    """Return a copy of ``x`` with ``change`` made at the positions ``places`` in C order, which may repeat."""
    room, n = backend.shape_of(places), prod(x.shape)
    y = ravel(broadcast_to(without_excess_axes(y, room), to=room))
    row, places = ravel(x), ravel(places)
    if partial and type(places) is ndarray:
        kept = np.flatnonzero(places >= 0)
        y, places = getitem(y, kept), places[kept]
    elif partial:  # positions out of range are traced: they go to one extra element, which is removed at the end
        row = concatenate([row, np.ones(1, x.dtype)])
        places = where(places >= 0, places, n)
    if not places.shape[0]:
        return copy(x)
    if change is _ADD:
        row = row + scatter_sum(y, places, specs=((ARRAY,),), shape=row.shape, dtype=x.dtype)
    elif change.several is None:
        row = with_items_set(row, places, y)
    elif type(places) is ndarray:
        row = _apply_by_group(row, places, y, change.several)
    else:  # repeated positions are traced: each write is compared with all others
        same = getitem(places, (slice(None), None)) == places
        everything = change.several(getitem(row, places), where(same, y, cast_for_write(change.neutral(x.dtype), x)))
        row = with_items_set(row, places, astype(everything, x.dtype))
    return reshape(getitem(row, slice(0, n)) if row.shape[0] > n else row, x.shape)


def _apply_by_group(row: Any, places: ndarray, y: Any, several: Combine) -> Any:
    """Apply ``several`` to groups of elements that are selected equally often, so that no padding is needed."""
    order = np.argsort(places, kind="stable")
    named, starts, counts = np.unique(places[order], return_index=True, return_counts=True)
    changed, where_to = [], []
    for count in np.unique(counts):
        these = np.flatnonzero(counts == count)
        table = order[starts[these][:, None] + np.arange(count)]
        changed.append(astype(several(getitem(row, named[these]), getitem(y, table)), row.dtype))
        where_to.append(named[these])
    return with_items_set(row, np.concatenate(where_to), concatenate(changed), unique=True)
