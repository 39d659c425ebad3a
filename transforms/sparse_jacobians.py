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
from funcgrad.transforms.gradients import gradient_of_all
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
        _check_inputs(call, leaves)
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
        push = vmap(lambda *tangent: jvp(self.as_vector, tuple(self.leaves), tangent)[1])
        return _in_batches(lambda rows: push(*self.split(rows)), tangents)

    def pull(self, cotangents: Any) -> Any:
        """Multiply each row of ``cotangents`` by the derivative."""
        out, pullback = vjp(self.as_vector, *self.leaves)
        pull = vmap(lambda ct: _as_vector(pullback(ct)))
        return _in_batches(pull, cotangents.astype(backend.dtype_of(out)))


def _in_batches(fun: Callable[[Any], Any], rows: Any) -> Any:
    """Return ``fun(rows)``, computed for batches of the rows."""
    return np.concatenate([np.asarray(fun(rows[i : i + _BATCH_SIZE])) for i in range(0, len(rows), _BATCH_SIZE)])


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


def sparse_jacobian(fun: Callable[..., Any], leaves: Sequence[Any], outs: int, sparsity: Sparsity) -> Any:
    """Return the Jacobian of a function of arrays, all flattened, as a sparse matrix of ``outs`` rows.

    Either rows that are much fuller than others are pulled back and the rest is pushed forward, or columns that are
    much fuller are pushed forward and the rest is pulled back, whichever takes fewer products.
    """
    return _sparse_derivative(_VectorFunction("jacobian", fun, leaves), outs, sparsity, _jacobian_blocks)


def sparse_hessian(fun: Callable[..., Any], leaves: Sequence[Any], sparsity: Sparsity) -> Any:
    """Return the Hessian of a function of arrays, all flattened, as a sparse matrix.

    Columns that are much fuller than others are pushed forward separately; by symmetry they are rows as well. The
    remaining columns are coloured.
    """
    function = _VectorFunction("hessian", gradient_of_all("hessian", fun, len(leaves)), leaves)
    return _sparse_derivative(function, function.inputs, sparsity, _hessian_blocks)


def _sparse_derivative(
    function: _VectorFunction, outs: int, sparsity: Sparsity, blocks: Callable[[_VectorFunction, Any], list[Any]]
) -> Any:
    """Return the derivative as the sum of ``blocks(function, pattern)``, which share no entry, and check it."""
    pattern, tangent, pushed = _pattern_and_product(function, sparsity)
    if pattern.shape != (outs, function.inputs):
        raise ShapeError(
            f"{function.call}: sparsity has the wrong shape, got {pattern.shape}, expected "
            f"{(outs, function.inputs)}. Give a row for each output and a column for each input."
        )
    found = _sum_of_blocks(function, blocks(function, pattern), pattern.shape)
    if sparsity.check and pushed is not None:
        _check_product(function.call, found, tangent, pushed)
    return found


def _jacobian_blocks(function: _VectorFunction, pattern: Any) -> list[Any]:
    forward, reverse = _split_pattern(function.call, pattern)
    blocks = [_matrix_from_products(function.call, forward, function.push)] if forward.nnz else []
    if reverse.nnz:
        blocks.append(_matrix_from_products(function.call, reverse.T.tocsr(), function.pull).T)
    return blocks


def _hessian_blocks(function: _VectorFunction, pattern: Any) -> list[Any]:
    call, pattern = function.call, (pattern + pattern.T).tocsr()
    dense = split_dense_rows(pattern)[0]
    rest = np.ones(function.inputs, np.bool_)
    rest[dense] = False
    inner = _submatrix(pattern, rest, rest)
    if len(dense) and _count_colours(call, pattern) <= len(dense) + _count_colours(call, inner):
        dense, inner = dense[:0], pattern
    blocks = [_matrix_from_products(call, inner, function.push)] if inner.nnz else []
    if len(dense):
        columns = _matrix_from_products(call, _submatrix(pattern, np.ones_like(rest), ~rest), function.push)
        blocks += [columns, _submatrix(columns, rest, ~rest).T]
    return blocks


def _count_colours(call: str, pattern: Any) -> int:
    return int(colour_columns(pattern, call).max(initial=-1)) + 1


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
    sparse = [np.ones(n, np.bool_) for n in pattern.shape]
    sparse[0][rows], sparse[1][columns] = False, False
    choices = [
        (by_columns, _submatrix(pattern, sparse[0], every[1]), _submatrix(pattern, ~sparse[0], every[1])),
        (by_rows, _submatrix(pattern, every[0], ~sparse[1]), _submatrix(pattern, every[0], sparse[1])),
    ]
    (_, *best), (bound, *other) = sorted(choices, key=lambda choice: choice[0])

    def products(forward: Any, reverse: Any) -> int:
        return sum(_count_colours(call, part) for part in (forward, reverse.T.tocsr()) if part.nnz)

    fewest = products(*best)
    return tuple(other if bound < fewest and products(*other) < fewest else best)


def _matrix_from_products(call: str, pattern: Any, product: Callable[[Any], Any]) -> Any:
    """Return the matrix with this pattern, from one product with the sum of the unit vectors of each colour."""
    colours = colour_columns(pattern, call)
    used = np.diff(pattern.tocsc().indptr) > 0
    seeds = np.zeros((int(colours.max()) + 1, pattern.shape[1]))
    seeds[colours[used], np.flatnonzero(used)] = 1
    made = product(seeds)
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return type(pattern)((made[colours[pattern.indices], rows], pattern.indices, pattern.indptr), pattern.shape)


def _sum_of_blocks(function: _VectorFunction, blocks: Sequence[Any], shape: tuple[int, int]) -> Any:
    """Return the sum of blocks that share no entry, as one matrix in compressed rows; zeros in the pattern stay."""
    scipy = import_scipy(function.call, "scipy.sparse")
    if not blocks:
        return scipy.csr_matrix(shape, dtype=function.dtype)
    parts = [block.tocoo() for block in blocks]
    data, rows, columns = (np.concatenate([getattr(p, name) for p in parts]) for name in ("data", "row", "col"))
    found = scipy.csr_matrix((data, (rows, columns)), shape)
    found.sum_duplicates()
    return found


def _check_inputs(call: str, leaves: Sequence[Any]) -> None:
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


def _check_product(call: str, found: Any, tangent: Any, pushed: Any) -> None:
    """Check that the matrix times a random vector equals the derivative along that vector."""
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
