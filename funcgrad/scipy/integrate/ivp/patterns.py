"""Sparse Jacobians of a right-hand side: where they have entries, and what these are at many states at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.errors import ConcretizationError, InputError, NotDifferentiableError, ShapeError
from funcgrad.numpy.concretization import forgive
from funcgrad.optional import import_scipy
from funcgrad.transforms.dependence import DependenceTrace, colour_columns
from funcgrad.transforms.products import jvp
from funcgrad.transforms.vectorize import vmap

__all__ = ["Pattern", "exact_jacobian", "found_pattern"]

_CALL = "integrate.solve_ivp"


def found_pattern(fun: Callable[[Any], Any], y: Any) -> Pattern | None:
    """Where the Jacobian of ``fun`` has entries at ``y``; None where it is not sparse, or has no pattern to be found.

    At other states there may be more: see ``Pattern.entries``.
    """
    trace = DependenceTrace(_CALL, len(y))
    tangent = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    try:
        moved = jvp(fun, (y,), (trace.leaf(tangent, 0),))[1]
    except (ConcretizationError, NotDifferentiableError, InputError):
        forgive()
        return None
    finally:
        trace.close()
    entries = import_scipy(_CALL, "scipy.sparse").csr_matrix(trace.pattern_of(moved))
    if 4 * np.diff(entries.indptr).max(initial=0) > len(y):
        return None  # each of a row has a colour of its own
    pattern = Pattern(entries, len(y))
    return pattern if pattern.is_sparse else None


def exact_jacobian(flow: Callable[..., Any], sparsity: Any, values: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """The Jacobian of ``flow`` by forward mode, as SciPy's solvers ask for it: one run of as many columns as needed.

    Args:
        flow: a function of time, a real state and ``values``.
        sparsity: where the Jacobian may have entries, or None: then it is dense.
        values: what the function depends on besides, in plain numbers.
    """

    def pushed(t: Any, y: Any, seeds: Any) -> Any:
        return vmap(lambda seed: jvp(lambda y: flow(t, y, *values), (y,), (seed,))[1])(seeds)

    if sparsity is None:
        return lambda t, y: pushed(t, y, np.eye(len(y))).T
    pattern: list[Pattern] = []  # made when the length is known

    def sparse(t: Any, y: Any) -> Any:
        if not pattern:
            pattern.append(Pattern(sparsity, len(y)))
        return pattern[0].matrix(lambda seeds: pushed(t, y, seeds))

    return sparse


class Pattern:
    """Where the Jacobian may have entries.

    Args:
        matrix: a sparse or dense matrix; what is not zero counts.
        size: the length of a state.

    Attributes:
        count: the number of entries.
        colours: a colour for each column; those of one colour are told apart by their rows.
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
        self._row_places = _table(self.rows, size, self.count)
        self._row_columns = np.append(self.columns, 0)[self._row_places]
        self._column_places = _table(self.columns, size, self.count)
        self._column_rows = np.append(self.rows, 0)[self._column_places]
        self._systems: dict[int, Any] = {}

    @property
    def is_sparse(self) -> bool:
        """Whether it pays to know the pattern."""
        return bool(4 * (self.colours.max(initial=-1) + 1) <= self.size)

    def entries(self, steps: Any) -> Any:
        """The entries at each stage, and a zero behind them: ``(N, s, count + 1)``.

        None where the pattern lacks entries at one of the stages, as a product with a vector tells.
        """
        found = np.zeros((*steps.Y.shape[:2], self.count + 1))
        for colour in range(int(self.colours.max(initial=-1)) + 1):
            mine = self.colours == colour
            pushed = steps.pushed(np.broadcast_to(mine.astype(float), steps.Y.shape).copy())
            here = np.flatnonzero(mine[self.columns])
            found[..., here] = pushed[..., self.rows[here]]
        vector = np.random.default_rng(1).uniform(0.5, 1.5, self.size)
        got = np.einsum("nsik,ik->nsi", found[..., self._row_places], vector[self._row_columns])
        wanted = steps.pushed(np.broadcast_to(vector, steps.Y.shape).copy())
        size = np.einsum("nsik,ik->nsi", np.abs(found[..., self._row_places]), vector[self._row_columns])
        return found if np.all(np.abs(got - wanted) <= 1e-9 * (size + np.abs(wanted))) else None

    def matrix(self, push: Callable[[Any], Any]) -> Any:
        """The Jacobian of one state as a sparse matrix; ``push`` takes vectors in rows to their products with it."""
        seeds = self.colours == np.arange(self.colours.max(initial=0) + 1)[:, None]
        data = push(seeds.astype(float))[self.colours[self.columns], self.rows]
        sparse = import_scipy(_CALL, "scipy.sparse")
        return sparse.csr_matrix((data, self.columns, self.indptr), shape=(self.size, self.size)).tocsc()

    def times(self, entries: Any, v: Any) -> Any:
        """The matrix times a vector."""
        return np.einsum("ik,ik->i", entries[self._row_places], v[self._row_columns])

    def times_transposed(self, entries: Any, v: Any) -> Any:
        """The transposed matrix times a vector."""
        return np.einsum("ik,ik->i", entries[self._column_places], v[self._column_rows])

    def factor(self, entries: Any, V: Any) -> Any:
        """What solves with the matrix of blocks ``delta_ij I - V_ij J_i``, or with its transpose."""
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
        """Where the entries of the blocks and the ones of the diagonal stand, by columns, and how they are added up."""
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
    """For each line the places of its entries, filled up with ``count``."""
    order = np.argsort(lines, kind="stable")
    lengths = np.bincount(lines, minlength=size)
    width = int(lengths.max(initial=0))
    starts = np.cumsum(lengths) - lengths
    places = np.full((size, max(width, 1)), count)
    within = np.arange(len(lines)) - np.repeat(starts, lengths)
    places[lines[order], within] = order
    return places
