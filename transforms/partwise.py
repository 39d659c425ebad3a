"""Linear functions of large spaces, computed part by part of the standard basis to save memory.

A batch of all unit vectors makes arrays many times as large as those of the function. Batches of a part of the basis
give the same rows from memory that stays in the processor's cache. ``PartwiseTrace`` records the operations on
tangents, so that the function runs only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any
from weakref import ref

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTrace
from funcgrad.core import READ_ONLY, Primitive, Tracer, are_tracers_of, refuse_closure, tracer_of
from funcgrad.graph import GraphTrace, Recording, Step
from funcgrad.kinds.linear import reshape, to_batch
from funcgrad.shared_state import write_lock
from funcgrad.transforms.vectorize import vmap
from funcgrad.writable import rebind

#: Number of entries above which a basis is large.
LARGE = 1 << 18
#: Number of entries that a part of a batch may hold at a time, and the fewest rows of a part, which take precedence.
_PART_ENTRIES, _MIN_ROWS = 1 << 19, 16
#: Number of entries that an operation must compute per call, on average, for parts to pay.
_MIN_WORK = 20_000
#: Bytes counted for a recorded operation, and bytes that a recording may take besides twice those of the basis.
_STEP_BYTES, _RECORDING_BYTES = 1_000, 1 << 25
#: Number of operations after which the trace checks whether recording them pays.
_PROBE_OPERATIONS = 4


def split_rows(total: int, live: int, numbers: int, operations: int) -> list[range]:
    """Split ``range(total)`` into parts if operations on such parts of the rows pay; else return it as one part.

    Args:
        total: the number of rows.
        live: how many entries of one row are alive at a time.
        numbers: how many entries of one row the operations compute or use.
        operations: the number of operations.
    """
    count = -(-total // max(_MIN_ROWS, _PART_ENTRIES // max(live, 1)))
    if total * numbers < _MIN_WORK * operations * count:
        return [range(total)]
    return [range(total * i // count, total * (i + 1) // count) for i in range(count)]


def compute_rows(parts: Sequence[range], compute: Callable[[range], list[Any]]) -> list[Any]:
    """Return the arrays that ``compute`` gives for all ``parts`` of the rows, joined along axis 0."""
    if len(parts) == 1:
        return compute(parts[0])
    found = compute(parts[0])
    wholes = [np.empty((parts[-1].stop, *x.shape[1:]), x.dtype) for x in found]
    for part in parts:
        found = found or compute(part)
        for whole in wholes:
            whole[part.start : part.stop] = found.pop(0)
    return wholes


def basis(leaves: Sequence[Any], rows: range | None = None) -> list[Any]:
    """Return ``rows`` (default: all) of the standard basis of the space of ``leaves``, along axis 0 of each leaf."""
    sizes = [prod(backend.shape_of(x)) for x in leaves]
    rows, start, found = range(sum(sizes)) if rows is None else rows, 0, []
    for leaf, size in zip(leaves, sizes, strict=True):
        found.append(_unit_rows(leaf, size, start, rows))
        start += size
    return found


def _unit_rows(leaf: Any, size: int, start: int, rows: range) -> Any:
    """Return ``rows`` of the basis for one ``leaf``, whose first entry is 1 in the row ``start``."""
    ones = backend.library_of(leaf).eye(len(rows), size, rows.start - start, dtype=backend.dtype_of(leaf))
    return reshape(backend.taken_like(leaf, ones), to=(len(rows), *backend.shape_of(leaf)))


class _SlotLink:
    """Link of a tracer, which names the slot of its value. While the link is alive, the value may still be needed."""

    __slots__ = ("__weakref__", "slot")

    def __init__(self, slot: int) -> None:
        self.slot = slot


class PartwiseTrace(GraphTrace):
    """One run of a function that records the operations on tangents and computes them for parts of the basis.

    The recording stays small: if it grows too large, the trace computes the values that may still be needed and begins
    a new one. If the first operations compute few numbers, all operations run on the whole basis at once.

    Args:
        leaves: the inputs of the function; the basis is that of their space.
    """

    __slots__ = ("_alive", "_batch", "_batches", "_bytes", "_copies", "_limit", "_row_makers", "_shallow_copies")

    def __init__(self, leaves: Sequence[Any]) -> None:
        total = sum([prod(backend.shape_of(x)) for x in leaves])
        self._batch = BatchTrace(total)  # made first: operations on tracers of both then come to this trace
        super().__init__("jacfwd")
        self._limit = _RECORDING_BYTES + 16 * total * total
        #: By slot: functions for rows of the values that the recording begins with; whole values, None while recording.
        self._row_makers: dict[int, Callable[[range], Any]] = {}
        self._batches: dict[int, Any] | None = None
        self._shallow_copies: list[ref[Tracer]] = []
        self._alive: dict[int, ref[_SlotLink]] = {}
        self._begin()

    def _begin(self) -> None:
        self.constants, self.operations, self._bytes = {}, [], 0
        self._copies: dict[int, tuple[Any, Any]] = {}

    def close(self) -> None:
        """Mark the transform as finished."""
        self._batch.close()
        super().close()

    def tangents(self, leaves: Sequence[Any]) -> list[Tracer]:
        """Return the tracers that represent the tangents of the inputs."""
        start, found = 0, []
        for leaf in leaves:
            tracer, size = self._new_tracer(backend.zeros_like(leaf)), prod(backend.shape_of(leaf))
            self._row_makers[tracer.link.slot] = partial(_unit_rows, leaf, size, start)
            tracer.alias = READ_ONLY
            found.append(tracer)
            start += size
        return found

    def shallow_copy_of(self, x: Tracer) -> Any:
        """Return a shallow copy of ``x``."""
        tracer = super().shallow_copy_of(x)
        if not self.operations:
            self._shallow_copies.append(ref(tracer))
        return tracer

    def _new_tracer(self, value: Any) -> Tracer:
        """Return the tracer of a new slot."""
        link = _SlotLink(next(self._slots))
        self._alive[link.slot] = ref(link)
        return tracer_of(value, self, link)

    def slot_of(self, x: Any) -> int:
        """Return the slot of ``x``. An ordinary array gets the slot of a copy, because the program may write to it."""
        if type(x) is Tracer and x._trace is self:
            slot: int = x.link.slot
            return slot
        return int(self.constant(self._copy_of(x) if type(x) is np.ndarray and x.ndim else x))

    def _copy_of(self, x: Any) -> Any:
        known, copy = self._copies.get(id(x), (None, None))
        if known is None or known() is not x or not np.array_equal(copy, x, equal_nan=x.dtype.kind in "fc"):
            copy = x.copy("K")
            self._copies[id(x)] = ref(x), copy
            self._bytes += copy.nbytes
        return copy

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``primitive`` and run it on zeros; once recording has ended, run it on the whole batch."""
        mine = are_tracers_of(self, args)
        if self._batches is not None:
            batches = [self._batches[a.link.slot] if flag else a for a, flag in zip(args, mine, strict=True)]
            return self._batch.process(primitive, tuple(batches), params)
        slots = tuple(map(self.slot_of, args))
        ans = primitive.call(*[a._val if flag else a for a, flag in zip(args, mine, strict=True)], **params)
        tracers = self._record(primitive, slots, params, ans if primitive.multiple else (ans,))
        if self._bytes > self._limit:
            self._flush()
        elif (
            len(self.operations) == _PROBE_OPERATIONS
            and self._batch.size * _count_entries(self.operations) < _MIN_WORK * _PROBE_OPERATIONS
        ):
            self._switch_to_whole_batch()  # the operations so far computed few numbers
        return tracers if primitive.multiple else tracers[0]

    def _record(
        self, primitive: Primitive, slots: tuple[int, ...], params: dict[str, Any], results: Sequence[Any]
    ) -> tuple[Tracer, ...]:
        """Add an operation to the recording and return the tracers of its ``results``."""
        refuse_closure(self, primitive, results, params)
        tracers = tuple(map(self._new_tracer, results))
        outs = tuple([one.link.slot for one in tracers])
        facts: tuple[Any, ...] = outs, tuple(map(backend.shape_of, results)), tuple(map(backend.dtype_of, results))
        if not primitive.multiple:
            facts = tuple([one for (one,) in facts])
        self.operations.append(Step(primitive, slots, params, *facts))
        self._bytes += _STEP_BYTES
        return tracers

    def _flush(self) -> None:
        """Compute the values that may still be needed and drop the recording, unless they take more memory than it."""
        needed = self._needed_slots()
        shapes = {slot: shape for step in self.operations for slot, shape in zip(step.outs, step.shapes, strict=True)}
        if 8 * self._batch.size * sum([prod(shapes[slot]) for slot in needed]) > self._bytes:
            self._limit = 2 * self._bytes
            return
        found = self._evaluate(needed)
        self._row_makers = {slot: rows for slot, rows in self._row_makers.items() if slot in self._alive}
        self._row_makers.update({slot: partial(_rows, whole) for slot, whole in zip(needed, found, strict=True)})
        self._begin()

    def _needed_slots(self) -> list[int]:
        """Return the slots of results that may still be needed; forget all others."""
        self._alive = {slot: link for slot, link in self._alive.items() if link() is not None}
        return sorted(self._alive.keys() - self._row_makers.keys())

    def _switch_to_whole_batch(self) -> None:
        """Compute with the whole batch from here on, as if nothing had been recorded."""
        wholes = {slot: rows(range(self._batch.size)) for slot, rows in self._row_makers.items()}
        self._row_makers = {slot: partial(_rows, whole) for slot, whole in wholes.items()}
        needed = self._needed_slots()
        wholes.update(zip(needed, self._evaluate(needed), strict=True))
        self._batches = {slot: tracer_of(whole, self._batch) for slot, whole in wholes.items()}
        self._begin()
        with write_lock:
            for known in self._shallow_copies:
                if (one := known()) is not None:
                    rebind(one, self._batches[one.link.slot])

    def rows_of(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the rows of each of ``tangents``, the tangents of the results, along axis 0."""
        mine = [t.link.slot for t in tangents if type(t) is Tracer and t._trace is self]
        if self._batches is None:
            rows = dict(zip(mine, self._evaluate(mine), strict=True))
        else:
            rows = {slot: self._batches[slot]._val for slot in mine}
        found = []
        for t in tangents:
            trace = t._trace if type(t) is Tracer else None
            size = self._batch.size
            found.append(rows[t.link.slot] if trace is self else t._val if trace is self._batch else to_batch(t, size))
        return found

    def _evaluate(self, slots: list[int]) -> list[Any]:
        """Return all rows of the values in ``slots``."""
        recording = Recording([], self.constants, self.operations, slots)
        needed = {slot for step in recording.operations for slot in step.args}.union(slots)
        recording.inputs = [slot for slot in self._row_makers if slot in needed]
        parts = split_rows(
            self._batch.size, self._peak_entries(recording), _count_entries(recording.operations), len(recording)
        )
        evaluate, given = vmap(recording.evaluate), [self._row_makers[slot] for slot in recording.inputs]
        return compute_rows(parts, lambda part: evaluate(*[rows(part) for rows in given])) if slots else []

    def _peak_entries(self, recording: Recording) -> int:
        """Return the largest number of entries of one row that are alive at a time, inputs and outputs included."""
        last = {slot: n for n, step in enumerate(recording.operations) for slot in step.args}
        ends: dict[int, int] = {}
        most = now = self._batch.size
        for n, step in enumerate(recording.operations):
            for slot, shape in zip(step.outs, step.shapes, strict=True):
                now += prod(shape)
                end = last.get(slot, n)
                ends[end] = ends.get(end, 0) + prod(shape)
            most = max(most, now)
            now -= ends.pop(n, 0)
        return most


def _count_entries(operations: Sequence[Step]) -> int:
    """Return how many entries of one row ``operations`` compute."""
    return sum([prod(shape) for step in operations for shape in step.shapes])


def _rows(whole: Any, part: range) -> Any:
    return whole[part.start : part.stop]
