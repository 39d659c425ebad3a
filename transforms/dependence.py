"""Sparsity patterns of derivatives, found in one run of the function, and colours for their columns.

The function is pushed forward with tangents that know on which entries of the inputs they depend. The rules of
forward mode are linear in the tangents, so only linear operations get such a tangent. The pattern of an
operation is known by its name or found by trials: a linear map is zero where it gives zero for random
entries. Branches and ``where`` behave as they do at the point; the pattern is a superset of that of the
derivative at this point.

Columns of one colour have no row in common. Then one product of the matrix with the sum of their unit vectors gives all
their entries: a Jacobian costs as many products as there are colours (Curtis, Powell and Reid, On the estimation of
sparse Jacobian matrices, 1974).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, tracer_of
from funcgrad.errors import InputError
from funcgrad.kinds import elementwise
from funcgrad.kinds.linear import astype, conj, imag, real, reduce_sum
from funcgrad.optional import import_scipy
from funcgrad.primitives import products
from funcgrad.typing import Shape


def colour_columns(pattern: Any, call: str = "jacobian", max_colours: int | None = None) -> Any:
    """Colour the columns greedily: in their order and, if that is not the best, also with the fullest first.

    Args:
        pattern: a sparse matrix; each stored entry counts.
        call: the public call, for messages.
        max_colours: the largest number of colours; return None if more colours are needed.

    Returns:
        A number from 0 on for each column. Columns without entries have colour 0.

    Example:
        >>> import scipy.sparse
        >>> colour_columns(scipy.sparse.diags([1.0, 1.0, 1.0], [-1, 0, 1], (6, 6)))
        array([0, 1, 2, 0, 1, 2])
    """
    rows = import_scipy(call, "scipy.sparse").csr_matrix(pattern)
    least = int(np.diff(rows.indptr).max(initial=0))  # all columns of one row differ in colour
    if max_colours is not None and least > max_colours:
        return None
    columns = rows.tocsc()
    found = _greedy_colours(columns, range(columns.shape[1]))
    if found.max(initial=-1) + 1 > least:
        fullest = np.argsort(-np.diff(columns.indptr), kind="stable")
        other = _greedy_colours(columns, fullest.tolist())
        found = min(found, other, key=lambda colours: colours.max(initial=-1))
    return None if max_colours is not None and found.max(initial=-1) >= max_colours else found


def _greedy_colours(columns: Any, order: Any) -> Any:
    """Give each column the first colour that none of its rows has yet; ``taken`` holds a row's colours as bits."""
    taken = [0] * columns.shape[0]
    indptr, indices = columns.indptr.tolist(), columns.indices.tolist()
    colours = np.zeros(columns.shape[1], int)
    for j in order:
        mine = indices[indptr[j] : indptr[j + 1]]
        used = 0
        for i in mine:
            used |= taken[i]
        free = ~used & (used + 1)
        colours[j] = free.bit_length() - 1
        for i in mine:
            taken[i] |= free
    return colours


def split_dense_rows(pattern: Any) -> tuple[Any, int]:
    """Return the rows that are better left to the other mode, and a lower bound for the products needed then.

    Each row set apart costs one product; the other rows need as many products as the fullest of them has entries.

    Returns:
        The numbers of the rows set apart, and the lower bound.
    """
    counts = np.diff(pattern.indptr)
    order = np.argsort(-counts, kind="stable")
    bounds = np.arange(len(counts) + 1) + np.append(counts[order], 0)
    apart = int(np.argmin(bounds))
    return np.sort(order[:apart]), int(bounds[apart])


#: Number of trials of an unknown operation; if it is exceeded, each result is taken to depend on all entries.
_MAX_TRIALS = 96
#: Number of entries above which a pattern is no longer sparse.
_MAX_ENTRIES = 50_000_000

#: Module that defines the rules of elementwise operations, also of extensions; it identifies such operations.
_ELEMENTWISE = elementwise.__module__
_SAME_PATTERN = frozenset(operation.primitive for operation in (astype, conj, real, imag))


class DependenceTrace(Trace):
    """One run of a linear function of the inputs.

    The ``link`` of a tracer is a sparse matrix with a row for each entry, which tells the inputs that it depends on.

    Args:
        call: the public call, for messages.
        inputs: the number of entries of all inputs.
    """

    __slots__ = ("call", "inputs", "random", "sparse")

    def __init__(self, call: str, inputs: int) -> None:
        super().__init__()
        self.call = call
        self.inputs = inputs
        self.sparse = import_scipy(call, "scipy.sparse")
        self.random = np.random.default_rng(0)

    def leaf(self, value: Any, start: int) -> Tracer:
        """Return a tracer for an input whose first entry is number ``start``."""
        size = prod(backend.shape_of(value))
        made = tracer_of(value, self, self.matrix(np.arange(size), start + np.arange(size), size, self.inputs))
        made.alias = READ_ONLY
        return made

    def matrix(self, rows: Any, columns: Any, height: int, width: int) -> Any:
        """Return the pattern with entries at ``rows`` and ``columns``."""
        found = self.sparse.csr_matrix((np.ones(len(rows), np.bool_), (rows, columns)), (height, width))
        found.sum_duplicates()
        return found

    def pattern_of(self, leaf: Any) -> Any:
        """Return the pattern of a leaf of a result; empty if the leaf is a constant."""
        if type(leaf) is Tracer and leaf._trace is self:
            return leaf.link
        return self.sparse.csr_matrix((prod(backend.shape_of(leaf)), self.inputs), dtype=np.bool_)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive``, and find the inputs that its results depend on."""
        mine = [i for i, a in enumerate(args) if type(a) is Tracer and a._trace is self]
        values = [a._val if i in mine else a for i, a in enumerate(args)]
        ans = primitive.call(*values, **params)
        if primitive.forward is None:
            return ans
        parts = ans if primitive.multiple else (ans,)
        total: Any = None
        for i in mine:
            # an operation that is linear in these arguments jointly is tried with zeros for the others
            alone = [np.zeros_like(v) if j in mine and j != i else v for j, v in enumerate(values)]
            pattern = self._pattern_through(primitive, alone, i, params, parts, args[i].link)
            total = pattern if total is None else total + pattern
        if primitive.multiple:
            bounds = np.cumsum([0, *[prod(backend.shape_of(p)) for p in parts]])
            rows = itertools.pairwise(bounds)
            return tuple(tracer_of(p, self, total[a:b]) for p, (a, b) in zip(parts, rows, strict=True))
        return tracer_of(ans, self, total)

    def _pattern_through(
        self, primitive: Primitive, values: list[Any], position: int, params: Any, parts: Sequence[Any], inner: Any
    ) -> Any:
        """Return the pattern of the results through the argument at ``position``, whose pattern is ``inner``."""
        shape = backend.shape_of(values[position])
        sizes = [prod(backend.shape_of(p)) for p in parts]
        if primitive in _SAME_PATTERN or getattr(primitive.forward, "__module__", None) == _ELEMENTWISE:
            out = backend.shape_of(parts[0])
            return inner if out == shape else inner[_broadcast_numbers(shape, out)]
        local = self._operation_pattern(primitive, values, position, params, parts)
        if local is None:
            used = np.unique(inner.indices)
            self._check(primitive, sum(sizes) * len(used))
            rows, columns = np.repeat(np.arange(sum(sizes)), len(used)), np.tile(used, sum(sizes))
            return self.matrix(rows, columns, sum(sizes), self.inputs)
        found = local @ inner
        self._check(primitive, found.nnz)
        return found

    def _check(self, primitive: Primitive, entries: int) -> None:
        if entries > _MAX_ENTRIES:
            raise InputError(
                f"{self.call}: the derivative is not sparse, got {entries} entries that depend on each other through "
                f"{primitive.name}. Leave sparsity out, or pass the pattern."
            )

    def _operation_pattern(
        self, primitive: Primitive, values: list[Any], position: int, params: Any, parts: Sequence[Any]
    ) -> Any | None:
        """Return the pattern of the operation itself, or None if it is not found."""
        shape = backend.shape_of(values[position])
        outs = [backend.shape_of(p) for p in parts]
        if primitive is reduce_sum.primitive:
            kept = _without_axes(shape, params["axis"])
            return self.matrix(_broadcast_numbers(kept, shape), np.arange(prod(shape)), prod(kept), prod(shape))
        if primitive is products.matmul.primitive:
            return self._product_pattern(
                _subscripts(*[len(backend.shape_of(v)) for v in values]), values, position, outs[0]
            )
        if primitive is products.einsum.primitive:
            return self._product_pattern(params["subscripts"], values, position, outs[0])
        if primitive.runs_user_code or "callback" in primitive.name:  # a user's function is not called for trials
            return None
        tried = _Trial(self, primitive, values, position, params)
        try:
            found = tried.pattern_of_copies()
            return tried.pattern_by_trials() if found is None else found
        except _UnknownError:
            return self._pattern_along_axes(params, shape, outs)

    def _product_pattern(self, subscripts: str, values: list[Any], position: int, out: Shape) -> Any | None:
        """Return the pattern of a product with a constant factor, from the nonzero entries of that factor."""
        factors, _, letters = subscripts.partition("->")
        terms = factors.split(",")
        other = np.asarray(values[1 - position])
        shapes = [backend.shape_of(v) for v in values]
        lengths: dict[str, int] = {}
        for term, shape in zip(terms, shapes, strict=True):
            for letter, n in zip(term, shape, strict=True):
                lengths[letter] = max(lengths.get(letter, 1), n)
        if prod(lengths.values()) > _MAX_ENTRIES:
            return None
        order = "".join(lengths)

        def numbers(term: str, shape: Shape, entries: Any) -> Any:
            """Broadcast ``entries`` of ``shape`` to the axes of all letters."""
            axes = sorted(range(len(term)), key=lambda i: order.index(term[i]))
            there = {term[i]: shape[i] for i in axes}
            aligned = entries.reshape(shape).transpose(axes).reshape([there.get(letter, 1) for letter in order])
            return np.broadcast_to(aligned, list(lengths.values()))

        row = numbers(letters, out, np.arange(prod(out)))
        source = numbers(terms[position], shapes[position], np.arange(prod(shapes[position])))
        live = numbers(terms[1 - position], shapes[1 - position], other != 0)
        return self.matrix(row[live], source[live], prod(out), prod(shapes[position]))

    def _pattern_along_axes(self, params: Any, shape: Shape, outs: Sequence[Shape]) -> Any | None:
        """Return a pattern that is dense along the operation's axes; None unless all other axes keep their lengths."""
        axis = params.get("axis")
        axes = (axis,) if isinstance(axis, int) else axis
        if len(outs) != 1 or not isinstance(axes, tuple) or not all(isinstance(a, int) and a >= 0 for a in axes):
            return None
        out = outs[0]
        kept = _without_axes(shape, axes)
        if kept != _without_axes(out, axes) or prod(out) * prod([shape[a] for a in axes]) > _MAX_ENTRIES:
            return None
        there, here = [_broadcast_numbers(kept, s) for s in (out, shape)]
        rows = self.matrix(np.arange(prod(out)), there, prod(out), prod(kept))
        return rows @ self.matrix(here, np.arange(prod(shape)), prod(kept), prod(shape))


def _without_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return ``shape`` with 1 for each of ``axes``."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def _broadcast_numbers(shape: Shape, to: Shape) -> Any:
    """Return, for each entry of an array broadcast from ``shape`` to ``to``, the number of the entry it comes from."""
    return np.broadcast_to(np.arange(prod(shape)).reshape(shape), to).ravel()


class _UnknownError(Exception):
    """Failure of the trials to show a sparse pattern."""


class _Trial:
    """Linear operation, called with chosen entries of its argument to see which results they reach."""

    def __init__(
        self, trace: DependenceTrace, primitive: Primitive, values: list[Any], position: int, params: Any
    ) -> None:
        self.trace, self.primitive, self.params = trace, primitive, params
        self.position = position
        self.values = values
        like = values[position]
        self.shape, self.dtype = backend.shape_and_dtype_of(like)
        self.size = prod(self.shape)
        # single precision has too few different numbers to tell entries apart
        self.kind = np.dtype(complex if self.dtype.kind == "c" else float)
        self.calls = 0
        self.at_zero = self.run(np.zeros(self.size, self.kind))

    def run(self, entries: Any) -> Any:
        """Run the operation on ``entries``, and return all results in one row."""
        self.calls += 1
        if self.calls > _MAX_TRIALS:
            raise _UnknownError
        args = list(self.values)
        args[self.position] = entries.reshape(self.shape)[()] if self.shape else self.kind.type(entries[0])
        with np.errstate(all="ignore"):
            ans = self.primitive.call(*args, **self.params)
        parts = ans if self.primitive.multiple else (ans,)
        return np.concatenate([np.asarray(p).ravel() for p in parts])

    def pattern_of_copies(self) -> Any | None:
        """Return the pattern of an operation that copies entries, with either sign, or leaves zeros; else None."""
        entries = 1 + self.trace.random.random(self.size)
        order = np.argsort(entries)
        got = self.run(entries.astype(self.kind))
        if self.at_zero.any() or got.dtype.kind not in "fc":
            return None
        if not self.size:
            return self.trace.matrix([], [], len(got), 0)
        size = abs(got.real)
        source = order[np.minimum(np.searchsorted(entries, size, sorter=order), self.size - 1)]
        live = size != 0
        if not np.array_equal(entries[source[live]], size[live]) or (got.dtype.kind == "c" and got.imag.any()):
            return None
        return self.trace.matrix(np.flatnonzero(live), source[live], len(got), self.size)

    def pattern_by_trials(self) -> Any:
        """Return the pattern of any operation, from trials of ever smaller blocks of entries, several at a time.

        Two blocks that reach no common result share a trial. If a block does not reach a result, its parts do not.
        """
        trace, height = self.trace, len(self.at_zero)
        width = 1
        known = trace.matrix(np.arange(height), np.zeros(height, int), height, 1)
        while width < self.size:
            parts = min(4 * width, self.size)
            edges, finer = [np.arange(n + 1) * self.size // n for n in (width, parts)]
            parent = np.searchsorted(edges, finer[:-1], side="right") - 1
            across = np.searchsorted(edges, finer[1:] - 1, side="right") - 1
            family = trace.matrix([*parent, *across], [*range(parts), *range(parts)], width, parts)
            candidates = known @ family
            candidates.sort_indices()
            known, width = self._reached_blocks(candidates, np.repeat(np.arange(parts), np.diff(finer))), parts
        return known

    def _reached_blocks(self, candidates: Any, block: Any) -> Any:
        """Select the ``candidates``, pairs of a result and a block, in which the result depends on the block."""
        colours = colour_columns(candidates, self.trace.call, max_colours=_MAX_TRIALS - self.calls)
        if colours is None:
            raise _UnknownError
        rows = np.repeat(np.arange(candidates.shape[0]), np.diff(candidates.indptr))
        shade = colours[candidates.indices]
        hit = np.zeros(len(rows), np.bool_)
        for colour in range(colours.max(initial=-1) + 1):
            entries = np.where(colours[block] == colour, 1 + self.trace.random.random(self.size), 0)
            changed = self.run(entries.astype(self.kind)) != self.at_zero
            mine = shade == colour
            hit[mine] = changed[rows[mine]]
        return self.trace.matrix(rows[hit], candidates.indices[hit], *candidates.shape)


def _subscripts(left: int, right: int) -> str:
    """Return the subscripts of ``matmul`` for arrays with ``left`` and ``right`` axes."""
    i, j, k = list(ascii_letters[:3])
    outer = ascii_letters[3 : 1 + max(left, right, 2)]
    x = j if left == 1 else outer[len(outer) - (left - 2) :] + i + j
    y = j if right == 1 else outer[len(outer) - (right - 2) :] + j + k
    return f"{x},{y}->{outer}{i * (left > 1)}{k * (right > 1)}"
