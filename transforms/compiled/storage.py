"""Memory of results: which arrays share memory, when each is needed last, and which memory can be reused.

Small arrays get *slots*: memory that is kept between calls, into which operations write. Large arrays get memory of the
call, where an operation may overwrite arrays that are not needed any more.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np

from funcgrad.transforms.compiled.graphs import LARGE, VIEWS, Graph, Op

ndarray = np.ndarray
#: Operations whose result never shares the memory of an argument.
FRESH = frozenset(
    (
        "matmul", "linear", "reduce_sum", "sum_over", "concatenate", "stack", "scatter_sum", "one_minus_square",
        "logistic", "where", "einsum", "logsumexp", "cumsum", "arranged", "pad_zeros", "take_along_axis",
        "add_along_axis", "write", "astype", "cast", "spread_out", "taken_anew",
    )
)  # fmt: skip
#: Largest number of elements of a broadcast array that is filled in, see ``kinds.linear.broadcast_array``.
MAX_FILLED = 100_000
#: If arrays of ``_MIDDLE`` bytes and more have ``_MANY`` bytes together, none of them is kept between calls, except in
#: programs of more than ``_SHORT`` items, where slots allow loops, see ``rolling``.
_MIDDLE, _MANY, _SHORT = 1 << 12, 1 << 19, 500
#: Size in bytes from which memory of the call waits for another result, because the system allocates it slowly.
_WAITING = 1 << 20
#: Number of views of an input from which a copy pays, and the largest size in bytes of such an input.
_MIN_VIEWS, _MAX_COPIED_BYTES = 3, 1 << 20
_NEVER = 1 << 62
_NONE: frozenset[int] = frozenset()


def is_ufunc(op: Op) -> bool:
    """Whether a NumPy function with ``out`` computes the operation."""
    return op.primitive.impl is None and op.name in _UFUNCS


_UFUNCS = frozenset([name for name, found in vars(np).items() if isinstance(found, np.ufunc)])


def _bytes_from(least: int, graph: Graph) -> int:
    """Return the total size in bytes of the arrays of ``least`` bytes and more that operations make."""
    made = [v for op in graph.ops for v in op.outs if graph.facts[v].kind is ndarray]
    return sum([size for v in made if (size := graph.nbytes(v)) >= least])


class Storage:
    """Facts about the memory of a graph's values, and the slots.

    Attributes:
        slots: for each slot ``(shape, dtype)``, or ``(slot, expression)`` for a view of another slot, named ``x``.
        large: size in bytes from which an array gets memory of the call.
        uses: the number of uses of each value.
        copied: inputs that are copied into slots, because many parts of them are read.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.slots: list[tuple[Any, Any]] = []
        short = len(graph.ops) <= _SHORT
        self.large = _MIDDLE if short and _bytes_from(_MIDDLE, graph) >= _MANY else LARGE
        self.uses = [0] * len(graph.shapes)
        self.last = [-1] * len(graph.shapes)
        self.copied: set[int] = set()
        self._view_counts: Counter[int] = Counter()
        self._owners = [_NONE] * len(graph.shapes)
        for i in range(graph.inputs):
            self._owners[i] = frozenset((i,))
        self._free: dict[Any, list[Any]] = {}
        self._memory_of: dict[int, Any] = {}
        self._temporaries = 0
        self._names: list[tuple[str, int]] = []  # of memory of the call that has been released
        self._views: dict[Any, int] = {}
        self._survey()
        self.last_uses: dict[int, list[int]] = {}
        for v, fact in enumerate(graph.facts):
            if fact.kind is ndarray and self.last[v] >= 0:
                self.last_uses.setdefault(self.last[v], []).append(v)

    def _survey(self) -> None:
        graph = self.graph
        for n, op in enumerate(graph.ops):
            arrays = False
            for a in op.args:
                if type(a) is int:
                    self.uses[a] += 1
                    self.last[a] = n
                    if self._owners[a]:
                        arrays = True
                        self._note_use(a, n)
            if not arrays and len(op.outs) == 1 and graph.facts[op.outs[0]].kind is not ndarray:
                continue  # a number from numbers
            values = op.values
            if op.name in VIEWS and values:
                self._view_counts[values[0]] += 1
            for v in op.outs:
                self._owners[v] = self._owners_of(op, v, values)
        self.outputs = [v for v in graph.outputs if type(v) is int]
        self.results = frozenset(self.outputs)
        self.escaping: set[int] = set()
        for v in self.outputs:
            self.uses[v] += 1
            self.escaping |= self._owners[v]
            for of in (v, *self._owners[v]):
                self.last[of] = _NEVER
        for i in range(graph.inputs):
            small = graph.facts[i].contiguous and graph.nbytes(i) <= _MAX_COPIED_BYTES
            if small and self._view_counts[i] >= _MIN_VIEWS and i not in self.escaping and graph.dtypes[i].kind in "fc":
                self.copied.add(i)

    def _owners_of(self, op: Op, v: int, values: list[int]) -> frozenset[int]:
        """Return the values whose memory the result ``v`` may use."""
        fact, mine = self.graph.facts[v], frozenset((v,))
        if fact.kind is not ndarray:
            return frozenset()
        filled = op.name == "broadcast_to" and prod(self.graph.shapes[v]) <= MAX_FILLED
        if is_ufunc(op) or op.name in FRESH or filled:
            return mine
        shared: frozenset[int] = frozenset().union(*[self._owners[a] for a in values])
        if op.name in VIEWS:
            return shared or mine
        return shared | mine

    def _note_use(self, v: int, n: int) -> None:
        self.last[v] = n
        for owner in self._owners[v]:
            self.last[owner] = n

    def owns_memory(self, v: int) -> bool:
        """Whether a result has memory of its own that it shares with no other value."""
        return self._owners[v] == frozenset((v,)) and v >= self.graph.inputs

    def is_last_use(self, v: int, n: int) -> bool:
        """Whether nothing after item ``n`` needs the memory of ``v``."""
        return self.last[v] <= n

    def destination(self, n: int, op: Op, may_overwrite: bool) -> tuple[Any, bool] | None:
        """Return the memory into which the first result of item ``n`` is written.

        Args:
            n: the number of the item.
            op: the operation, which is this item.
            may_overwrite: whether the result may overwrite one of the arguments.

        Returns:
            The name of the memory and whether it exists already; None if the operation makes an array itself.
        """
        v = op.outs[0]
        graph = self.graph
        fact, kind = graph.facts[v], (graph.shapes[v], graph.dtypes[v])
        if fact.kind is not ndarray or not fact.contiguous or kind[1].kind not in "fciub":
            return None
        size = graph.nbytes(v)
        if not kind[0] or not size or (size < self.large and v in self.escaping):
            return None
        if may_overwrite and not all(self._has_simple_layout(a) for a in op.args):
            return None  # NumPy's loop follows the memory layout, which a given result may change
        name = self._reusable_memory(n, op, v, kind) if may_overwrite else None
        if name is None and (stock := self._free.get(kind)):
            name = stock.pop()
        if name is not None:
            self._memory_of[v] = name
            return name, True
        name = self._new_memory(kind, size)
        self._memory_of[v] = name
        return name, name[0] == "b"

    def _has_simple_layout(self, a: Any) -> bool:
        """Whether an argument of an elementwise operation is a number or C-contiguous."""
        if type(a) is int:
            return self.graph.facts[a].kind is not ndarray or self.graph.facts[a].contiguous
        return type(a.value) is not ndarray or bool(a.value.flags.c_contiguous)

    def _reusable_memory(self, n: int, op: Op, v: int, kind: Any) -> Any:
        """Return unneeded memory of an argument; None for complex results, which NumPy rounds differently in place."""
        graph = self.graph
        if kind[1].kind == "c":
            return None
        for a in op.args:
            if type(a) is int and a in self._memory_of and self.is_last_use(a, n):
                alone = all(b == a or type(b) is not int or a not in self._owners[b] for b in op.args)
                if alone and (graph.shapes[a], graph.dtypes[a]) == kind:
                    return self._memory_of.pop(a)
        return None

    def _new_memory(self, kind: Any, size: int) -> tuple[str, int]:
        if size >= self.large:
            if self._names:
                return self._names.pop()
            self._temporaries += 1
            return "t", self._temporaries - 1
        return "b", self.slot(*kind)

    def slot(self, shape: Any, dtype: Any) -> int:
        """Add a slot and return its number."""
        self.slots.append((shape, dtype))
        return len(self.slots) - 1

    def take_over(self, v: int, of: int) -> None:
        """Note that ``v`` has been made in the memory of ``of``."""
        if of in self._memory_of:
            self._memory_of[v] = self._memory_of.pop(of)

    def view(self, slot: int, expression: str) -> int:
        """Return a slot that is a view of another slot, made once."""
        key = (slot, expression)
        if key not in self._views:
            self._views[key] = self.slot(slot, expression)
        return self._views[key]

    def release_after(self, n: int) -> list[Any]:
        """Release the memory of values that are not needed after item ``n``.

        Returns:
            The names of memory of the call that must be deleted.
        """
        gone = []
        for v in self.last_uses.get(n, ()):
            name = self._memory_of.pop(v, None)
            if name is None:
                continue
            if name[0] == "t" and self.graph.nbytes(v) < _WAITING:
                gone.append(name)
            else:
                self._free.setdefault((self.graph.shapes[v], self.graph.dtypes[v]), []).append(name)
        self._names += gone
        return gone
