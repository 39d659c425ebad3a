"""Products with the Jacobians of many stages, one after the other, as long sweeps need them; sparse Jacobians.

A pullback of the engine, which is in Python, costs more than a right-hand side of a few hundred numbers. So a product
is recorded at one stage. The part that does not depend on the vector is computed for all stages at once, as a batch.
The rest, the linear part, becomes straight NumPy code that runs for each stage with the numbers of that stage. If a
right-hand side is recorded as an earlier one was, both parts come from a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
from funcgrad.batching import is_batched
from funcgrad.core import plain_value
from funcgrad.errors import (
    BranchError,
    ConcretizationError,
    InputError,
    NotDifferentiableError,
    ShapeError,
    StagingError,
)
from funcgrad.graph import Recording
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code.rebuilding import run_or_rebuild
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.flows import Flow
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.compiled.straight import StraightProgram, input_kind, recording_key, with_constants_as_inputs
from funcgrad.transforms.dependence import DependenceTrace, colour_columns
from funcgrad.transforms.products import evaluate_vjp, jvp, vjp
from funcgrad.transforms.vectorize import vmap


def find_pattern(fun: Callable[[Any], Any], y: Any) -> Pattern | None:
    """Return the Jacobian's sparsity pattern at ``y``; None if it is not sparse or its pattern cannot be found.

    The Jacobian may have more entries at other states: see ``Pattern.entries``.
    """
    trace = DependenceTrace(_CALL, len(y))
    tangent = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    try:
        moved = jvp(fun, (y,), (trace.leaf(tangent, 0),))[1]
    except (ConcretizationError, InputError, NotDifferentiableError, StagingError):
        forget_refusal()
        return None
    finally:
        trace.close()
    entries = import_scipy(_CALL, "scipy.sparse").csr_matrix(trace.pattern_of(moved))
    if 4 * np.diff(entries.indptr).max(initial=0) > len(y):
        return None  # the entries of one row all need different colours
    pattern = Pattern(entries, len(y))
    return pattern if pattern.is_sparse else None


def exact_jacobian(flow: Callable[..., Any], sparsity: Any, values: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Return the Jacobian of ``flow`` by forward mode, in SciPy's form: one run of as many columns as needed.

    Args:
        flow: a function of time, a real state and ``values``.
        sparsity: the sparsity pattern of the Jacobian, or None for a dense Jacobian.
        values: the other values that the function depends on, in plain numbers.
    """

    def columns_of(t: Any, y: Any, seeds: Any) -> Any:
        return vmap(lambda seed: jvp(lambda y: flow(t, y, *values), (y,), (seed,))[1])(seeds)

    if sparsity is None:
        return lambda t, y: columns_of(t, y, np.eye(len(y))).T
    pattern: list[Pattern] = []  # filled at the first call, when the length is known

    def sparse(t: Any, y: Any) -> Any:
        if not pattern:
            pattern.append(Pattern(sparsity, len(y)))
        return pattern[0].matrix(lambda seeds: columns_of(t, y, seeds))

    return sparse


class Pattern:
    """Sparsity pattern of a Jacobian.

    Args:
        matrix: a sparse or dense matrix, whose entries that are not zero form the pattern.
        size: the length of a state.

    Attributes:
        count: the number of entries.
        colours: a colour for each column; columns of one colour share no row.
    """

    def __init__(self, matrix: Any, size: int) -> None:
        sparse = import_scipy(_CALL, "scipy.sparse")
        rows = sparse.csr_matrix(matrix)
        if rows.shape != (size, size):
            raise ShapeError(
                f"{_CALL}: jac_sparsity must be a square matrix of the length of y, got {list(rows.shape)}, expected "
                f"[{size}, {size}]."
            )
        rows.sum_duplicates()
        rows.sort_indices()
        self.size, self.count, self.indptr, self.columns = size, rows.nnz, rows.indptr, rows.indices
        self.rows = np.repeat(np.arange(size), np.diff(rows.indptr))
        self.colours = colour_columns(rows, _CALL)
        self._row_entries = _table(self.rows, size, self.count)
        self._row_columns = np.append(self.columns, 0)[self._row_entries]
        self._column_entries = _table(self.columns, size, self.count)
        self._column_rows = np.append(self.rows, 0)[self._column_entries]
        self._systems: dict[int, Any] = {}

    @property
    def is_sparse(self) -> bool:
        """Whether there are few enough colours that the pattern saves time."""
        return bool(4 * (self.colours.max(initial=-1) + 1) <= self.size)

    def entries(self, steps: Any) -> Any:
        """Return the entries at each stage, followed by a zero: ``(N, s, count + 1)``.

        Return None if the pattern lacks entries at a stage, which a product with a random vector shows.
        """
        found = np.zeros((*steps.Y.shape[:2], self.count + 1))
        for colour in range(int(self.colours.max(initial=-1)) + 1):
            mine = self.colours == colour
            pushed = steps.jacobian_products(np.broadcast_to(mine.astype(float), steps.Y.shape).copy())
            here = np.flatnonzero(mine[self.columns])
            found[..., here] = pushed[..., self.rows[here]]
        vector = np.random.default_rng(1).uniform(0.5, 1.5, self.size)
        got = np.einsum("nsik,ik->nsi", found[..., self._row_entries], vector[self._row_columns])
        wanted = steps.jacobian_products(np.broadcast_to(vector, steps.Y.shape).copy())
        size = np.einsum("nsik,ik->nsi", np.abs(found[..., self._row_entries]), vector[self._row_columns])
        return found if np.all(np.abs(got - wanted) <= 1e-9 * (size + np.abs(wanted))) else None

    def matrix(self, multiply: Callable[[Any], Any]) -> Any:
        """Return the Jacobian at one state as a sparse matrix; ``multiply`` multiplies it with vectors in rows."""
        seeds = self.colours == np.arange(self.colours.max(initial=0) + 1)[:, None]
        data = multiply(seeds.astype(float))[self.colours[self.columns], self.rows]
        sparse = import_scipy(_CALL, "scipy.sparse")
        return sparse.csr_matrix((data, self.columns, self.indptr), shape=(self.size, self.size)).tocsc()

    def times(self, entries: Any, v: Any) -> Any:
        """Multiply the matrix with a vector."""
        return np.einsum("ik,ik->i", entries[self._row_entries], v[self._row_columns])

    def times_transposed(self, entries: Any, v: Any) -> Any:
        """Multiply the transposed matrix with a vector."""
        return np.einsum("ik,ik->i", entries[self._column_entries], v[self._column_rows])

    def factor(self, entries: Any, V: Any) -> Any:
        """Return a solver for the matrix of blocks ``delta_ij I - V_ij J_i``, and for its transpose."""
        stages = len(V)
        if stages not in self._systems:
            self._systems[stages] = self._system(stages)
        indices, indptr, order, diagonal = self._systems[stages]
        whole = np.concatenate([(-V[:, :, None] * entries[:, None, :-1]).ravel(), np.ones(diagonal)])
        data = np.add.reduceat(whole[order[0]], order[1])
        size = stages * self.size
        sparse = import_scipy(_CALL, "scipy.sparse")
        factors = import_scipy(_CALL, "scipy.sparse.linalg").splu(
            sparse.csc_matrix((data, indices, indptr), shape=(size, size)), permc_spec="COLAMD"
        )
        return lambda rhs, transposed: factors.solve(rhs.ravel(), "T" if transposed else "N").reshape(rhs.shape)

    def _system(self, stages: int) -> Any:
        """Return where block entries and diagonal ones stand, column by column, and how entries are added up."""
        n = self.size
        i, j = np.divmod(np.arange(stages * stages), stages)
        rows = np.concatenate([(i[:, None] * n + self.rows).ravel(), np.arange(stages * n)])
        columns = np.concatenate([(j[:, None] * n + self.columns).ravel(), np.arange(stages * n)])
        order = np.lexsort((rows, columns))
        rows, columns = rows[order], columns[order]
        new = np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))
        starts = np.flatnonzero(new)
        indptr = np.searchsorted(columns[starts], np.arange(stages * n + 1))
        return rows[starts], indptr, (order, starts), stages * n


def _table(lines: Any, size: int, count: int) -> Any:
    """Return for each line the indices of its entries, padded with ``count``."""
    order = np.argsort(lines, kind="stable")
    lengths = np.bincount(lines, minlength=size)
    width = int(lengths.max(initial=0))
    starts = np.cumsum(lengths) - lengths
    places = np.full((size, max(width, 1)), count)
    within = np.arange(len(lines)) - np.repeat(starts, lengths)
    places[lines[order], within] = order
    return places


_CALL = "integrate.solve_ivp"
#: Largest state whose products are recorded: longer ones cost more than Python does, and their values take memory.
_MAX_RECORDED_SIZE = 1 << 13
#: Number of products above which writing the linear part as code pays: writing takes as long as thirty products.
_COMPILE_ABOVE = 40


def value_cotangents(flow: Flow, T: Any, Y: Any, values: tuple[Any, ...], ct: Any) -> list[Any]:
    """Return the cotangents of ``values`` from the cotangents ``ct`` of the slopes at all states ``Y``."""
    return list(vjp(lambda *some: flow.slopes(T, Y, *some), *values)[1](ct)) if values else []


class Products:
    """Products of the Jacobian, or of the transposed Jacobian, with a vector, at each of many points.

    Args:
        flow: the right-hand side.
        T: the times of the points, ``(m,)``, or ``(m, s)`` if each point has several stages.
        Y: the states at the points, ``(m, n)`` or ``(m, s, n)``.
        values: the other values that the right-hand side depends on.
        transposed: whether to multiply with the transposed Jacobians.
    """

    def __init__(self, flow: Flow, T: Any, Y: Any, values: tuple[Any, ...], transposed: bool) -> None:
        self.flow, self.T, self.Y, self.values, self.transposed = flow, T, Y, values, transposed
        self._run: Callable[..., Any] | None = None  # returns the product as the first entry of a tuple
        self._values_at_points: list[Any] = []  # for each point the values that its product needs
        self._pullback: Callable[[Any], Any] | None = None  # to the values, if all points share a recording
        if len(Y) > 1 and Y.shape[-1] <= _MAX_RECORDED_SIZE and not flow.one_by_one:
            try:
                self._record_all()
            except (BranchError, ConcretizationError, NotDifferentiableError, InputError, TypeError, IndexError):
                forget_refusal()
                self._run = self._pullback = None  # the function looks at values

    def _record_all(self) -> None:
        """Record the product at one point, and compute the part that does not depend on the vector for all points."""
        slope = self.flow if self.Y.ndim == 2 else self.flow.slopes
        at = (self.T[0], self.Y[0], list(self.values))
        recorded_slope = RecordedClosure(
            _CALL, lambda x: slope(x[0], x[1], *x[2]), at, checks_branches=True, lasting=False
        )
        ahead, linear, held = self._parts(recorded_slope, slope, tree.leaves(at))
        found: list[Any] = []

        def slopes(*values: Any) -> Any:
            def slope(t: Any, y: Any) -> Any:
                value, *found[:] = ahead.evaluate(t, y, *values, *held)
                return value

            return vmap(slope)(self.T, self.Y)

        if self.transposed and self.values:
            self._pullback = _fast_vjp(slopes, *self.values)[1]
        else:
            slopes(*self.values)
        columns = [plain_value(value._val) if is_batched(value) else repeat(plain_value(value)) for value in found]
        written = None
        if len(self.Y) > _COMPILE_ABOVE:
            first = [column[0] if type(column) is np.ndarray else next(column) for column in columns]
            written = linear.program(self.Y.shape[1:], first)
        if written is None:
            self._run = lambda v, *held: (linear.closure(v, held),)
        else:
            self._run = written[0]
            columns += map(repeat, written[1])
        self._values_at_points = list(zip(*columns, strict=False)) if columns else [()] * len(self.Y)

    def _parts(self, recorded_slope: RecordedClosure, slope: Callable[..., Any], inputs: list[Any]) -> _Parts:
        """Return the parts of a recorded slope, from the cache if an equal recording was split before."""
        inner: list[Any] = []
        key = None if recorded_slope.captured else recording_key(recorded_slope.recording, inner)
        if key is None:
            return self._split(slope, inputs)
        lasting = [*inputs, *inner]
        known = (self.transposed, key, tuple(map(input_kind, lasting)))
        parts = _parts.get(known)
        if parts is None:
            parts = self._split(with_constants_as_inputs(recorded_slope.recording, len(inputs)), lasting)
            if parts.captured or parts.ahead.decisions:
                return self._split(slope, inputs)
            _parts[known] = parts
            while len(_parts) > _CACHE_SIZE:
                _parts.pop(next(iter(_parts)), None)
        return parts._replace(captured=inner)

    def _split(self, slope: Callable[..., Any], inputs: list[Any]) -> _Parts:
        """Return the parts of the slope and the product of a function of ``inputs``."""

        def both(x: Any) -> Any:
            t, y, *rest, v = x
            value, product = self._product(lambda y: slope(t, y, *rest), y)
            return value, product(v)

        whole = RecordedClosure(_CALL, both, [*inputs, np.zeros(self.Y.shape[1:])], checks_branches=True)
        return _split(whole, len(inputs))

    def _product(self, fun: Callable[[Any], Any], y: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Return the slope at ``y`` (``y`` itself unless transposed) and a function that multiplies by the Jacobian."""
        if self.transposed:
            value, pullback = _fast_vjp(fun, y)
            return value, lambda v: pullback(v)[0]
        return y, lambda v: jvp(fun, (y,), (v,))[1]

    def __call__(self, i: int, v: Any) -> Any:
        """Return the product at point ``i`` with ``v``."""
        if self._run is not None:
            return self._run(v, *self._values_at_points[i])[0]
        slope, t = (self.flow, float(self.T[i])) if self.Y.ndim == 2 else (self.flow.slopes, self.T[i])
        return self._product(lambda y: slope(t, y, *self.values), self.Y[i])[1](v)

    def value_cotangents(self, ct: Any) -> list[Any]:
        """Return the cotangents of the values from the cotangents of the slopes at all points."""
        if self._pullback is not None:
            return list(self._pullback(ct))
        return value_cotangents(self.flow, self.T, self.Y, self.values, ct)


class _Linear(RecordedClosure):
    """A recording as a function of its first input.

    Args:
        recording: a recording of this input and of the values that the function holds.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    def __call__(self, x: Any, held: Sequence[Any]) -> Any:
        """Return the result of the recording."""
        return self.recording.evaluate(x, *held)[0]


class _Parts(NamedTuple):
    """A recorded slope and product, split into two parts.

    Attributes:
        ahead: computes the slope, and the values that the product needs besides its vector.
        linear: the product as a program, of the vector and of these values.
        captured: further arguments of ``ahead``, after its inputs.
    """

    ahead: Recording
    linear: StraightProgram
    captured: list[Any]


def _split(both: RecordedClosure, number: int) -> _Parts:
    """Split a recording whose input ``number`` is the vector and whose results are slope and product."""
    whole = both.recording
    vector, (value, product) = whole.inputs[number], whole.outputs
    moving, ahead, after = {vector}, [], []
    for step in whole.operations:
        if moving.isdisjoint(step.args):
            ahead.append(step)
        else:
            after.append(step)
            moving.update(step.outs)
    used = dict.fromkeys([*[slot for step in after for slot in step.args], product])
    needed = [slot for slot in used if slot not in moving and slot not in whole.constants]
    decided: list[dict[int, Any]] = [{}, {}]
    for slot, answer in whole.decisions.items():
        decided[slot in moving][slot] = answer
    inputs = [slot for slot in whole.inputs if slot != vector]
    first = Recording(inputs, dict(whole.constants), ahead, [value, *needed], decided[0])
    second = Recording([vector, *needed], dict(whole.constants), after, [product], decided[1])
    return _Parts(first, StraightProgram(_Linear(second)), both.captured)


#: Parts by the key of the right-hand side, the oldest first.
_parts: dict[Any, _Parts] = {}
_CACHE_SIZE = 64


def _fast_vjp(fun: Callable[..., Any], *primals: Any) -> tuple[Any, ...]:
    """Compute ``vjp``; its pullback must be used before other code can write to an array."""
    found: tuple[Any, ...] = run_or_rebuild(fun, lambda fun: evaluate_vjp(fun, primals, False, {}, lasting=False))
    return found
