"""Equal entries of a batch are computed once, such as those of the unit vectors for Jacobians and Hessians.

Unit vectors have few different numbers in a column: zeros and a one. Elementwise operations on them, and on arrays
that are the same for all rows, give as few. So a *short* array with a row for each different number is computed
instead of the whole array, and expanded to the whole where another operation needs it. An entry is computed from the
same numbers by the same operation, so it has the same bits, even if it is -0, infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from funcgrad.primitives.index_spec import ARRAY, index_from_spec
from funcgrad.transforms.compiled.graphs import (
    C_CONTIGUOUS,
    VIEWS,
    Const,
    Fact,
    Graph,
    Op,
    Value,
    fact_of,
    primitive_without_rules,
)
from funcgrad.views import inverse_permutation

ndarray = np.ndarray
#: Elementwise operations that round correctly, so that the bits of an entry do not depend on its place in memory.
_EXACT = frozenset(("add", "subtract", "multiply", "divide", "negative", "absolute", "square", "sqrt", "where"))
#: Operations that move entries, each to one place at most.
_MOVING = frozenset(("getitem", "reshape", "permute", "roll", "flip"))
#: Least number of rows; least ratio to the rows of the short array; at most one entry in so many may be unusual.
_MIN_ROWS, _MIN_RATIO, _SPARSE = 16, 4, 8
#: Cost of expanding a short array, and of rearranging one, in elements that are computed in the same time.
_EXPAND_COST, _REARRANGE_COST = 5_000, 2_000


class RowPattern(NamedTuple):
    """Pattern by which the rows of an array repeat.

    Attributes:
        which: for each entry of the array, the row of the short array with the same number in the same column.
        first: for each entry of the short array, a row of the array with the same number in the same column.
    """

    which: ndarray
    first: ndarray


class _Short(NamedTuple):
    """Short array: a value, or the whole constant that it is taken from."""

    value: Value
    rows: RowPattern


def compute_equal_rows_once(graph: Graph) -> None:
    """Rewrite ``graph`` so that equal rows are computed once, if that is faster."""
    known = _patterns_of_constants(graph)
    if not known:
        return
    values, rewritten = len(graph.shapes), _RewrittenGraph(graph, known)
    for op in graph.ops:
        rewritten.add(op)
    rewritten.end()
    if rewritten.is_faster():
        graph.ops = rewritten.ops
        for v, fact in rewritten.facts.items():
            graph.facts[v] = fact
        graph.drop_unneeded()
    else:
        for of in (graph.shapes, graph.dtypes, graph.facts):
            del of[values:]


def _patterns_of_constants(graph: Graph) -> dict[int, RowPattern]:
    """Return the row patterns of constant arguments, by identity; constants of one shape share a pattern."""
    found: dict[tuple[int, ...], dict[int, RowPattern]] = {}
    tried: set[int] = set()
    for op in graph.ops:
        for a in op.args if op.name in _EXACT or op.name == "scatter_sum" else ():
            is_tall = type(a) is Const and len(a.shape) > 1 and a.shape[0] >= _MIN_ROWS
            if is_tall and id(a) not in tried and _has_bits(a):
                tried.add(id(a))
                rows = _row_pattern(np.ascontiguousarray(a.value).view(f"i{a.value.itemsize}"))
                if rows is not None:
                    found.setdefault(a.shape, {})[id(a)] = rows
    together = {shape: _common_pattern(of.values()) for shape, of in found.items()}
    return {a: rows for shape, of in found.items() for a in of if (rows := together[shape]) is not None}


def _has_bits(a: Const) -> bool:
    return type(a.value) is ndarray and not a.is_reread and a.value.dtype.kind == "f" and a.value.dtype.itemsize <= 8


def _row_pattern(keys: ndarray) -> RowPattern | None:
    """Return the row pattern of an array of integers, usual entries first; None if it repeats too little."""
    n = len(keys)
    one, other = keys[n // 3], keys[2 * n // 3]
    usual = np.where(one == other, one, keys[0])
    where = np.flatnonzero(keys != usual)
    if len(where) * _SPARSE > keys.size:
        return None
    row, column = np.divmod(where, usual.size)
    found = keys.reshape(-1)[where]
    order = np.lexsort((row, found, column))
    row, column, found = row[order], column[order], found[order]
    starts = np.ones(len(where), bool)
    starts[1:] = (column[1:] != column[:-1]) | (found[1:] != found[:-1])
    row, column_of, counts = row[starts], column[starts], starts.cumsum()
    ranks = counts - np.searchsorted(column_of, column)
    count = int(ranks.max(initial=0)) + 1
    if count * _MIN_RATIO > n:
        return None
    which = np.zeros(keys.shape, np.int32)
    which.reshape(-1)[where[order]] = ranks
    first = np.repeat((keys == usual).argmax(0)[None], count, 0)
    first.reshape(count, -1)[ranks[starts], column_of] = row
    return RowPattern(which, first)


def _common_pattern(several: Iterable[RowPattern]) -> RowPattern | None:
    """Return a pattern that fits several arrays; None if they repeat too little."""
    joined: RowPattern | None
    joined, *others = sorted(several, key=lambda rows: -len(rows.first))
    for rows in others:
        if joined is None:
            return None
        if joined.which is not rows.which and not np.array_equal(joined.which, rows.which):
            joined = _row_pattern(joined.which * np.int32(len(rows.first)) + rows.which)
    return joined


class _RewrittenGraph:
    """Operations of a graph, rewritten with short arrays.

    Attributes:
        ops: the new operations and questions.
        facts: the new facts about values whose memory layout has changed.
    """

    def __init__(self, graph: Graph, known: dict[int, RowPattern]) -> None:
        self.graph, self._known = graph, known
        self.ops: list[Op] = []
        self.facts: dict[int, Fact] = {}
        self._short: dict[int, _Short] = {}
        self._made: dict[int, Op] = {}  # the operation of each short value in the original graph
        self._whole: set[int] = set()
        self._used = {a for op in graph.ops for a in op.values}
        self._saved = 0  # number of elements that need not be computed

    def add(self, op: Op) -> None:
        """Add an operation or question, with short arrays if possible."""
        ways = (self._add_elementwise, self._add_moved, self._add_sum, self._add_permuted)
        if any(way(op) for way in ways):
            return
        for a in op.args:
            self._expand(a)
        self.ops.append(op)

    def end(self) -> None:
        """Add the operations that expand the results."""
        for v in self.graph.outputs:
            self._expand(v)

    def is_faster(self) -> bool:
        """Whether the new graph computes less, including the cost of moving entries."""
        return self._saved > 0

    # ---- operations of short arrays ------------------------------------------------------------------------------

    def _add_elementwise(self, op: Op) -> bool:
        if op.name not in _EXACT or op.params:
            return False
        shorts = [self._short_of(a) for a in op.args]
        found = [short for short in shorts if short is not None]
        if not found or not self.graph.facts[op.outs[0]].contiguous:
            return False
        if not all(self._fits(a, short, op.outs[0]) for a, short in zip(op.args, shorts, strict=True)):
            return False
        rows = _common_pattern([short.rows for short in found])
        if rows is None:
            return False
        args = [a if s is None else self._rearranged(s, rows) for a, s in zip(op.args, shorts, strict=True)]
        self._add(op, args, {}, rows, C_CONTIGUOUS)
        return True

    def _short_of(self, a: Value) -> _Short | None:
        """Return the short array of an argument, or None."""
        if type(a) is int:
            return self._short.get(a)
        rows = self._known.get(id(a))
        return None if rows is None else _Short(a, rows)

    def _fits(self, a: Value, short: _Short | None, v: int) -> bool:
        """Whether an argument of the operation for ``v`` is short or the same for all rows, and is C-contiguous."""
        shape, mine = self.graph.shapes[v], self.graph.shape(a)
        if short is not None:
            return mine == shape and bool(short.rows.first.copy("K").flags.c_contiguous)
        if len(mine) == len(shape) and mine[0] != 1:
            return False
        if type(a) is int:
            fact = self.graph.facts[a]
            return fact.kind is not ndarray or len(mine) < 2 or fact.contiguous
        return not mine or fact_of(a.value).contiguous

    def _add_moved(self, op: Op) -> bool:
        if op.name not in _MOVING or len(op.args) != 1 or op.args[0] not in self._short:
            return False
        short, kernel = self._short[op.args[0]], op.primitive.kernel(np)
        which = kernel(short.rows.which, **op.params)
        numbers = kernel(_row_numbers(short.rows.which), **op.params)
        if which.ndim < 2 or not _keeps_rows(numbers, len(short.rows.which)):
            return False
        params = dict(op.params)
        if op.name == "getitem":
            params["spec"] = _all_rows(params["spec"])
        elif op.name == "reshape":
            params["to"] = (len(short.rows.first), *params["to"][1:])
        first = kernel(short.rows.first, **params)
        self._add(op, [short.value], params, RowPattern(which, first), fact_of(first))
        return True

    def _add_sum(self, op: Op) -> bool:
        """Add a sum of parts in zeros with short arrays; return whether that is possible."""
        if op.name != "scatter_sum" or len(op.args) != len(op.params["specs"]):
            return False
        shape, specs = op.params["shape"], op.params["specs"]
        parts = [part for a in op.args if (part := self._short_of(a)) is not None]
        if len(shape) < 2 or len(parts) < len(specs) or any(ARRAY in spec for spec in specs):
            return False
        places, numbers = [index_from_spec(spec, ()) for spec in specs], _row_numbers(np.empty(shape, bool))
        if not all(_keeps_rows(numbers[place], shape[0]) for place in places):
            return False
        laid = [_pattern_after_write(part.rows, place, shape) for part, place in zip(parts, places, strict=True)]
        known = [rows for rows in laid if rows is not None]
        rows = _common_pattern(known) if len(known) == len(laid) else None
        if rows is None:
            return False
        specs = tuple([_all_rows(spec) for spec in specs])
        args = []
        for part, place, spec in zip(parts, places, specs, strict=True):
            args.append(self._rearranged(part, RowPattern(rows.which[place], rows.first[index_from_spec(spec, ())])))
        params = {**op.params, "specs": specs, "shape": rows.first.shape}
        self._add(op, args, params, rows, C_CONTIGUOUS)
        return True

    def _add_permuted(self, op: Op) -> bool:
        """Expand a permuted result directly, in its new order of axes; return whether that is possible."""
        if op.name != "permute" or op.args[0] not in self._short or op.outs[0] in self._used:
            return False
        self._add_expansion(op.outs[0], self._short[op.args[0]], op.params["axes"], op.line)
        self.facts[op.outs[0]] = C_CONTIGUOUS
        return True

    def _add(self, op: Op, args: Sequence[Value], params: dict[str, Any], rows: RowPattern, fact: Fact) -> None:
        """Add ``op`` for short arrays, with a short result."""
        v = op.outs[0]
        made = self.graph.new_value(rows.first.shape, self.graph.dtypes[v], fact)
        self.ops.append(Op(op.primitive, args, params, [made], op.line))
        self._short[v], self._made[v] = _Short(made, rows), op
        if op.name not in VIEWS:
            self._saved += rows.which.size - rows.first.size

    def _rearranged(self, short: _Short, rows: RowPattern) -> Value:
        """Return the short array, rearranged to the pattern ``rows``."""
        if type(short.value) is Const:
            return self.graph.constant(np.take_along_axis(short.value.value, rows.first, 0))
        at = np.take_along_axis(short.rows.which, rows.first, 0)
        if _keeps_rows(at, len(short.rows.first)):
            return short.value
        made = self.graph.new_value(at.shape, self.graph.dtypes[short.value], C_CONTIGUOUS)
        self.ops.append(Op(_TAKEN_ANEW, [short.value], {"at": _flat(at)}, [made], None))
        self._saved -= _REARRANGE_COST
        return made

    # ---- whole arrays --------------------------------------------------------------------------------------------

    def _expand(self, v: Value) -> None:
        """Add the operations that make the whole array of a short one, once."""
        if type(v) is not int or v not in self._short or v in self._whole:
            return
        self._whole.add(v)
        op = self._made[v]
        if self.graph.facts[v].contiguous:
            self._add_expansion(v, self._short[v], None, op.line)
        else:
            self._expand(op.args[0])
            self.ops.append(op)

    def _add_expansion(self, v: int, short: _Short, axes: tuple[int, ...] | None, line: Any) -> None:
        which = short.rows.which
        axes = axes or tuple(range(which.ndim))
        laid = which.transpose(axes)
        where = np.flatnonzero(laid)
        source = _flat(which).transpose(axes).reshape(-1)[where]
        params = {"shape": laid.shape, "back": inverse_permutation(axes), "where": where, "source": source}
        self.ops.append(Op(_SPREAD_OUT, [short.value], params, [v], line))
        self._saved -= _EXPAND_COST + which.size + _SPARSE * len(where)


def _row_numbers(x: ndarray) -> ndarray:
    """Return, for each entry of an array, the number of its row."""
    return np.broadcast_to(np.arange(len(x)).reshape((-1, *(1,) * (x.ndim - 1))), x.shape)


def _keeps_rows(numbers: ndarray, count: int) -> bool:
    """Whether there are ``count`` rows, and every entry of ``numbers`` is the number of its own row."""
    return len(numbers) == count and numbers.size > 0 and np.array_equal(numbers, _row_numbers(numbers))


def _all_rows(spec: Any) -> Any:
    """Return the index ``spec``, which reads all rows, for arrays with fewer rows."""
    return type(spec)(((None, None, 1), *spec[1:])) if spec and type(spec[0]) is tuple else spec


def _pattern_after_write(rows: RowPattern, place: Any, shape: tuple[int, ...]) -> RowPattern | None:
    """Return the row pattern of zeros to which an array was added at ``place``."""
    which = np.full(shape, len(rows.first))
    which[place] = rows.which
    return _row_pattern(which)


def _flat(rows: ndarray) -> ndarray:
    """Return the positions of entries in the flattened array, from their rows; entries stay in their columns."""
    columns = prod(rows.shape[1:])
    return rows * columns + np.arange(columns).reshape(rows.shape[1:])


def _spread_out(xp: Any, x: Any, *, shape: Any, back: Any, where: Any, source: Any) -> Any:
    """Return the whole array: row 0 of ``x`` in all rows, but the entries ``source`` of ``x`` at ``where``."""
    made = xp.empty(shape, x.dtype)
    made.transpose(back)[...] = x[0]
    made.reshape(-1)[where] = x.take(source)
    return made


def _taken_anew(xp: Any, x: Any, *, at: Any) -> Any:
    return x.take(at)


_SPREAD_OUT = primitive_without_rules("spread_out", _spread_out)
_TAKEN_ANEW = primitive_without_rules("taken_anew", _taken_anew)
