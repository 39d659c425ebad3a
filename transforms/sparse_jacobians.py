"""Sparse Jacobians and Hessians: one pushforward or pullback for each colour, not for each input.

A pattern, given or traced (``dependence``), tells which entries may be nonzero. Columns that share no row are pushed
forward in one tangent. Rows that share no column are pulled back in one cotangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import GradientCheckError, InputError, ShapeError
from funcgrad.kinds.linear import reshape
from funcgrad.optional import import_scipy
from funcgrad.primitives.shaping import concatenate
from funcgrad.transforms.dependence import DependenceTrace, colour_columns, split_dense_rows
from funcgrad.transforms.gradients import grad
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.vectorize import vmap

#: Number of products in one batch: a larger batch would take more memory and save no time.
_BATCH_SIZE = 64


class Sparsity(NamedTuple):
    """Request for a sparse derivative: "auto" or a pattern, and whether to compare a product with a random vector."""

    pattern: Any
    check: bool


def check_sparsity(call: str, sparsity: Any, check: bool) -> Sparsity:
    """Check the request and return it with its pattern as a sparse matrix.

    Raises:
        InputError: neither "auto" nor a matrix.
    """
    if isinstance(sparsity, str) and sparsity == "auto":
        return Sparsity(sparsity, check)
    scipy = import_scipy(call, "scipy.sparse")
    if not scipy.issparse(sparsity):
        known = isinstance(sparsity, (np.ndarray, list, tuple))
        sparsity = np.asarray(sparsity) if known else sparsity
        if not known or sparsity.ndim != 2 or sparsity.dtype.kind not in "biuf":
            raise InputError(
                f'{call}: sparsity must be "auto", a sparse matrix or a boolean matrix, got {describe(sparsity)}. '
                "Give a row for each output and a column for each input."
            )
    found = scipy.csr_matrix(sparsity)
    found.sum_duplicates()
    ones = np.ones(found.nnz, np.bool_)
    return Sparsity(scipy.csr_matrix((ones, found.indices, found.indptr), found.shape), check)


class _VectorFunction:
    """Function of leaves in the form of a function from a vector to a vector, with its derivative at a point."""

    def __init__(self, call: str, fun: Callable[..., Any], leaves: Sequence[Any]) -> None:
        self.call, self.fun, self.leaves = call, fun, leaves
        self.shapes = [backend.shape_of(x) for x in leaves]
        self.dtypes = [backend.dtype_of(x) for x in leaves]
        self.bounds = np.cumsum([0, *[int(np.prod(s)) for s in self.shapes]])
        self.inputs = int(self.bounds[-1])
        self.dtype = np.result_type(*self.dtypes)

    def split(self, rows: Any) -> tuple[Any, ...]:
        """Split each row of a matrix into a tangent of all leaves."""
        parts = zip(self.bounds[:-1], self.bounds[1:], self.shapes, self.dtypes, strict=True)
        return tuple(rows[:, a:b].reshape(len(rows), *shape).astype(dtype) for a, b, shape, dtype in parts)

    def as_vector(self, *leaves: Any) -> Any:
        """Return the result of the function as one vector."""
        return _as_vector(tree.leaves(self.fun(*leaves)))

    def push(self, tangents: Any) -> Any:
        """Multiply the derivative by each row of ``tangents``."""

        def one(*tangent: Any) -> Any:
            return jvp(self.as_vector, tuple(self.leaves), tangent)[1]

        chunks = [tangents[i : i + _BATCH_SIZE] for i in range(0, len(tangents), _BATCH_SIZE)]
        return np.concatenate([np.asarray(vmap(one)(*self.split(chunk))) for chunk in chunks])

    def pull(self, cotangents: Any) -> Any:
        """Multiply each row of ``cotangents`` by the derivative."""
        out, pullback = vjp(self.as_vector, *self.leaves)

        def one(ct: Any) -> Any:
            return _as_vector(pullback(ct))

        rows = cotangents.astype(backend.dtype_of(out))
        chunks = [rows[i : i + _BATCH_SIZE] for i in range(0, len(rows), _BATCH_SIZE)]
        return np.concatenate([np.asarray(vmap(one)(chunk)) for chunk in chunks])


def _as_vector(leaves: Sequence[Any]) -> Any:
    rows = [reshape(x, to=(int(np.prod(backend.shape_of(x))),)) for x in leaves]
    return rows[0] if len(rows) == 1 else concatenate(*rows, axis=0)


def _pattern_and_product(function: _VectorFunction, sparsity: Sparsity) -> tuple[Any, Any, Any]:
    """Return the pattern, a random tangent, and the derivative times it; "auto" finds the pattern in one run."""
    random = np.random.default_rng(1)
    tangent = random.uniform(0.5, 1, function.inputs) * random.choice([-1, 1], function.inputs)
    if not isinstance(sparsity.pattern, str):
        pushed = function.push(tangent[None])[0] if sparsity.check else None
        return sparsity.pattern, tangent, pushed
    trace = DependenceTrace(function.call, function.inputs)
    try:
        parts = [part[0] for part in function.split(tangent[None])]
        seeds = tuple(trace.leaf(part, int(start)) for part, start in zip(parts, function.bounds[:-1], strict=True))
        moved = jvp(function.as_vector, tuple(function.leaves), seeds)[1]
    finally:
        trace.close()
    pushed = moved._val if isinstance(moved, Tracer) and moved._trace is trace else moved
    return trace.pattern_of(moved), tangent, np.asarray(pushed)


def sparse_jacobian(call: str, fun: Callable[..., Any], leaves: Sequence[Any], outs: int, sparsity: Sparsity) -> Any:
    """Return the Jacobian of a function of arrays, all flattened, as a sparse matrix of ``outs`` rows.

    Either rows that are much fuller than others are pulled back and the rest is pushed forward, or columns that are
    much fuller are pushed forward and the rest is pulled back, whichever takes fewer products.
    """
    _refuse_tracers(call, leaves)
    function = _VectorFunction(call, fun, leaves)
    pattern, tangent, pushed = _pattern_and_product(function, sparsity)
    _check_shape(call, pattern, function, outs)
    forward, reverse = _split_pattern(call, pattern)
    blocks = []
    if forward.nnz:
        blocks.append(_matrix_from_products(forward, function.push, function.inputs, call))
    if reverse.nnz:
        blocks.append(_matrix_from_products(reverse.T.tocsr(), function.pull, pattern.shape[0], call).T)
    found = _sum_of_blocks(call, blocks, pattern.shape, function.dtype)
    _check_product(call, found, tangent, pushed, sparsity)
    return found


def sparse_hessian(call: str, fun: Callable[..., Any], leaves: Sequence[Any], sparsity: Sparsity) -> Any:
    """Return the Hessian of a function of arrays, all flattened, as a sparse matrix.

    Columns that are much fuller than others are pushed forward separately; by symmetry they are rows as well. The
    remaining columns are coloured.
    """
    _refuse_tracers(call, leaves)
    function = _VectorFunction(call, grad(fun, tuple(range(len(leaves)))), leaves)
    pattern, tangent, pushed = _pattern_and_product(function, sparsity)
    _check_shape(call, pattern, function, function.inputs)
    pattern = (pattern + pattern.T).tocsr()
    dense = split_dense_rows(pattern)[0]
    rest = np.ones(function.inputs, np.bool_)
    rest[dense] = False
    inner = _submatrix(pattern, rest, rest)
    if len(dense) and _colours(pattern, call).max() <= len(dense) + _colours(inner, call).max(initial=-1):
        dense, inner = dense[:0], pattern
    blocks = [_matrix_from_products(inner, function.push, function.inputs, call)] if inner.nnz else []
    if len(dense):
        columns = _matrix_from_products(
            _submatrix(pattern, np.ones_like(rest), ~rest), function.push, function.inputs, call
        )
        blocks += [columns, _submatrix(columns, rest, ~rest).T]
    found = _sum_of_blocks(call, blocks, pattern.shape, function.dtype)
    _check_product(call, found, tangent, pushed, sparsity)
    return found


def _colours(pattern: Any, call: str) -> Any:
    return colour_columns(pattern, call)


def _submatrix(matrix: Any, rows: Any, columns: Any) -> Any:
    """Return the entries of ``matrix`` in the chosen rows and columns."""
    kept = matrix.tocoo()
    live = rows[kept.row] & columns[kept.col]
    return type(matrix)((kept.data[live], (kept.row[live], kept.col[live])), matrix.shape)


def _split_pattern(call: str, pattern: Any) -> tuple[Any, Any]:
    """Split the pattern into a part to push forward and a part to pull back."""
    rows, by_columns = split_dense_rows(pattern)
    columns, by_rows = split_dense_rows(pattern.T.tocsr())
    every = [np.ones(n, np.bool_) for n in pattern.shape]
    apart = [np.ones(n, np.bool_) for n in pattern.shape]
    apart[0][rows], apart[1][columns] = False, False
    choices = {
        "rows apart": (by_columns, _submatrix(pattern, apart[0], every[1]), _submatrix(pattern, ~apart[0], every[1])),
        "columns apart": (by_rows, _submatrix(pattern, every[0], ~apart[1]), _submatrix(pattern, every[0], apart[1])),
    }
    best: tuple[int, Any, Any] | None = None
    for bound, forward, reverse in sorted(choices.values(), key=lambda choice: choice[0]):
        if best is not None and bound >= best[0]:
            break
        used = [_colours(part, call).max(initial=-1) + 1 for part in (forward, reverse.T.tocsr()) if part.nnz]
        if best is None or sum(used) < best[0]:
            best = (sum(used), forward, reverse)
    assert best is not None
    return best[1], best[2]


def _matrix_from_products(pattern: Any, product: Callable[[Any], Any], size: int, call: str) -> Any:
    """Return the matrix with this pattern, from one product with the sum of the unit vectors of each colour."""
    colours = _colours(pattern, call)
    used = np.diff(pattern.tocsc().indptr) > 0
    seeds = np.zeros((int(colours.max()) + 1, size))
    seeds[colours[used], np.flatnonzero(used)] = 1
    made = product(seeds)
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return type(pattern)((made[colours[pattern.indices], rows], pattern.indices, pattern.indptr), pattern.shape)


def _sum_of_blocks(call: str, blocks: Sequence[Any], shape: tuple[int, int], dtype: Any) -> Any:
    """Return the sum of blocks that share no entry, as one matrix in compressed rows; zeros in the pattern stay."""
    scipy = import_scipy(call, "scipy.sparse")
    if not blocks:
        return scipy.csr_matrix(shape, dtype=dtype)
    parts = [block.tocoo() for block in blocks]
    data, rows, columns = (np.concatenate([getattr(p, name) for p in parts]) for name in ("data", "row", "col"))
    found = scipy.csr_matrix((data, (rows, columns)), shape)
    found.sum_duplicates()
    return found


def _refuse_tracers(call: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            raise InputError(
                f"{call}: a sparse matrix holds numbers and no traced values, got an input that is being transformed. "
                "Leave sparsity out inside of other transforms."
            )
        if backend.dtype_of(leaf).kind != "f":
            raise InputError(
                f"{call}: with sparsity the inputs must be real floating point, got {describe(leaf)}. Leave sparsity "
                "out for complex ones."
            )


def _check_shape(call: str, pattern: Any, function: _VectorFunction, outs: int) -> None:
    if pattern.shape != (outs, function.inputs):
        raise ShapeError(
            f"{call}: sparsity has the wrong shape, got {list(pattern.shape)}, expected {[outs, function.inputs]}. "
            "Give a row for each output and a column for each input."
        )


def _check_product(call: str, found: Any, tangent: Any, pushed: Any, sparsity: Sparsity) -> None:
    """Check that the matrix times a random vector equals the derivative along that vector."""
    if not sparsity.check or pushed is None:
        return
    got = found @ tangent.astype(found.dtype)
    scale = abs(found) @ abs(tangent) + abs(pushed)
    off = abs(got - pushed) > 1e3 * np.finfo(found.dtype).eps ** 0.75 * (scale + scale.max(initial=0) * 1e-3)
    wrong = np.flatnonzero(off & np.isfinite(got) & np.isfinite(pushed))
    if len(wrong):
        i = wrong[0]
        raise GradientCheckError(
            f"{call}: the sparsity pattern lacks entries, got {got[i]} for row {i} times a random vector, where the "
            f"derivative along it is {pushed[i]} ({len(wrong)} such rows). Give a pattern that has all entries that "
            'can be nonzero at this point, or sparsity="auto".'
        )
