"""Products and systems of sparse matrices. Their values are an ordinary array; the positions are static.

Vectors are along the last axis; leading axes broadcast and hold many examples.
"""

from __future__ import annotations

import importlib
from math import prod
from typing import Any

import numpy as np

from funcgrad.backend import shape_of
from funcgrad.core import Tracer, is_array
from funcgrad.errors import ShapeError
from funcgrad.kinds import multilinear, primitive
from funcgrad.kinds.arguments import ARRAY_MAKER
from funcgrad.kinds.linear import permute
from funcgrad.kinds.rules import Operation
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import getitem


class Structure:
    """Positions of the values of a sparse matrix, in compressed rows. Compared and hashed by identity.

    Attributes:
        indices: the column of each value.
        indptr: the position in ``indices`` where each row begins, and the end.
        shape: rows and columns.
        rows: the row of each value.
        order: the original position of each value, before they were put in this order; None if the order is unchanged.
    """

    __slots__ = ("_factors", "indices", "indptr", "order", "rows", "shape")

    def __init__(self, indices: Any, indptr: Any, shape: tuple[int, int], order: Any = None) -> None:
        self.indices, self.indptr, self.shape, self.order = indices, indptr, shape, order
        self.rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
        self._factors: tuple[Any, Any] | None = None

    def __repr__(self) -> str:
        return f"<{self.shape[0]} x {self.shape[1]}, {len(self.indices)} values>"

    def matrix(self, data: Any, call: str = "sparse") -> Any:
        """Return SciPy's matrix with the values ``data``."""
        return import_scipy(call, "scipy.sparse").csr_array((data, self.indices, self.indptr), shape=self.shape)

    def rows_and_columns(self, transposed: bool) -> tuple[Any, Any]:
        """Return rows and columns of the values, of the matrix or of its transpose."""
        return (self.indices, self.rows) if transposed else (self.rows, self.indices)

    def factors(self, data: Any) -> Any:
        """Return SuperLU's factors of the transpose; the last factors are cached, because both modes use them again."""
        data, known = np.ascontiguousarray(data), self._factors
        if known is not None and known[0].dtype == data.dtype and np.array_equal(known[0], data):
            return known[1]
        linalg = import_scipy("sparse.linalg.spsolve", "scipy.sparse.linalg")
        matrix = self.matrix(data, "sparse.linalg.spsolve")
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # SciPy adds up values at the same position in place
        try:  # the transpose of compressed rows has compressed columns, which SuperLU needs
            made = linalg.splu(matrix.T)
        except RuntimeError as error:
            raise np.linalg.LinAlgError("Singular matrix") from error
        self._factors = (data.copy(), made)
        return made


def values_and_structure(matrix: Any) -> tuple[Any, Structure]:
    """Return the values of a SciPy sparse matrix in compressed rows, and their positions."""
    made = matrix.tocsr()
    if not made.has_canonical_format:
        made = made.copy()  # SciPy's matrix is not changed
        made.sum_duplicates()
    return made.data, Structure(made.indices, made.indptr, made.shape)


def _matvec(xp: Any, x: Any, y: Any, *, structure: Structure, transposed: bool) -> Any:
    to, source = structure.rows_and_columns(transposed)
    length = structure.shape[transposed]
    x, y = xp.asarray(x), xp.asarray(y)
    if xp is np and x.ndim == 1 and {x.dtype.kind, y.dtype.kind} <= set("fciub") and x.dtype != np.float16 != y.dtype:
        matrix = structure.matrix(x)
        columns = (matrix.T if transposed else matrix) @ y.reshape(prod(y.shape[:-1]), y.shape[-1]).T
        return np.ascontiguousarray(columns.T).reshape(*y.shape[:-1], length)
    terms = x * y[..., source]
    if xp is not np:
        return xp.zeros((*terms.shape[:-1], length), terms.dtype).at[..., to].add(terms)
    ans = np.zeros((*terms.shape[:-1], length), terms.dtype)
    place: Any = (..., to)
    np.add.at(ans, place, terms)
    return ans


def _values_ct(ct: Any, y: Any, structure: Structure, transposed: bool) -> Any:
    """Return the cotangent of the values: the product of the entries of row and column at each position."""
    to, source = structure.rows_and_columns(transposed)
    return getitem(ct, (..., to)) * getitem(y, (..., source))


#: ``sparse_matvec(x, y, *, structure, transposed)``: the matrix with the values ``x`` times the vector ``y``.
sparse_matvec: Operation = multilinear(
    "sparse_matvec",
    _matvec,
    transposes=[
        lambda ct, y, *, structure, transposed: _values_ct(ct, y, structure, transposed),
        lambda ct, x, *, structure, transposed: sparse_matvec(x, ct, structure=structure, transposed=not transposed),
    ],
    batch="elementwise",
)


def _sparse_operand(matrix: Any) -> tuple[Any, Structure, bool] | None:
    """Return the values, the structure and whether it is transposed, of a sparse matrix; None of other objects."""
    if isinstance(matrix, (Tracer, np.ndarray)):
        return None
    if type(getattr(matrix, "structure", None)) is Structure:
        return matrix.values, matrix.structure, matrix.transposed
    if callable(getattr(matrix, "tocsr", None)) and matrix.ndim == 2:
        return *values_and_structure(matrix), False
    return None


def sparse_product(x: Any, y: Any) -> Any:
    """Compute NumPy's ``x @ y`` where one operand is a sparse matrix; return None if neither is sparse.

    Raises:
        ShapeError: shapes that do not fit.
    """
    left, right = _sparse_operand(x), _sparse_operand(y)
    if left is None and right is None:
        return None
    data, structure, transposed = left or right  # type: ignore[misc]
    dense = y if left else x
    if isinstance(dense, (list, tuple)):
        dense = ARRAY_MAKER[0](dense)  # its numbers may be traced
    shape, length = shape_of(dense), structure.shape[not transposed if left else transposed]
    on_columns = left is not None and len(shape) > 1
    if not shape or shape[-2 if on_columns else -1] != length:
        size = " x ".join(map(str, structure.shape[::-1] if transposed else structure.shape))
        raise ShapeError(
            f"matmul: the array does not fit the sparse matrix of {size}, got {list(shape)} on its "
            f"{'right' if left else 'left'}. Pass {length} entries along that axis."
        )
    options = {"structure": structure, "transposed": transposed if left else not transposed}
    if not on_columns:
        return sparse_matvec(data, dense, **options)
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    return permute(sparse_matvec(data, permute(dense, axes=order), **options), axes=order)


def is_spmatrix(x: Any) -> bool:
    """Whether ``x`` is a matrix of SciPy's older sparse classes, whose ``*`` is the matrix product."""
    return not isinstance(x, (Tracer, np.ndarray)) and any(base.__name__ == "spmatrix" for base in type(x).__mro__)


def sparse_multiply(x: Any, y: Any) -> Any:
    """Compute ``x * y``: ``x @ y`` for older classes, scaling for funcgrad's matrices; None for other operands.

    Raises:
        ShapeError: shapes do not fit.
    """
    if isinstance(x, Tracer) and hasattr(type(y), "with_data"):
        return y.__rmul__(x)
    for own, other in ((x, y), (y, x)):
        if hasattr(type(own), "with_data") and isinstance(other, Tracer) and not shape_of(other):
            return own * other
    array = y if is_spmatrix(x) else x if is_spmatrix(y) else None
    return None if array is None or not is_array(array) or not shape_of(array) else sparse_product(x, y)


def _solve(xp: Any, x: Any, y: Any, *, structure: Structure, transposed: bool) -> Any:
    dtype = xp.result_type(x, y)
    if dtype.kind not in "fc":
        dtype = np.dtype(float)
    if xp is np and dtype.char not in "fdFD":
        dtype = np.dtype(np.float32 if dtype.char == "e" else np.float64 if dtype.kind == "f" else np.complex128)
    x, y = xp.asarray(x, dtype), xp.asarray(y, dtype)
    outer = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    how = "N" if transposed else "T"  # the factors are those of the transpose
    if xp is np and 0 in (*outer, y.shape[-1]):
        return np.zeros((*outer, y.shape[-1]), dtype)
    if xp is np and x.ndim == 1:
        columns = np.ascontiguousarray(y.reshape(-1, y.shape[-1]).T)
        return structure.factors(x).solve(columns, how).T.reshape(y.shape)
    xs, ys = (xp.broadcast_to(a, (*outer, a.shape[-1])).reshape(-1, a.shape[-1]) for a in (x, y))
    if xp is np:
        solved = [structure.factors(a).solve(b, how) for a, b in zip(xs, ys, strict=True)]
    else:
        solved = [_solve_in_jax(xp, xs[i], ys[i], structure, transposed) for i in range(len(ys))]
    return xp.stack(solved).reshape(*outer, y.shape[-1]) if solved else xp.zeros((*outer, y.shape[-1]), dtype)


def _solve_in_jax(xp: Any, x: Any, y: Any, structure: Structure, transposed: bool) -> Any:
    linalg = importlib.import_module(xp.__name__.replace(".numpy", ".experimental.sparse.linalg"))
    rows, columns = structure.rows_and_columns(transposed)
    keys, number = np.unique(rows.astype(np.int64) * structure.shape[0] + columns, return_inverse=True)
    if len(keys) < len(rows):  # values at the same place are added
        x = xp.zeros(len(keys), x.dtype).at[number.ravel()].add(x)
    else:
        x = x[np.argsort(number.ravel())]
    rows, columns = np.divmod(keys, structure.shape[0])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=structure.shape[0]))])
    return linalg.spsolve(x, columns.astype(np.int32), indptr.astype(np.int32), y)


def _solve_values_ct(ct: Any, x: Any, ans: Any, *, structure: Structure, transposed: bool) -> Any:
    back = sparse_solve(x, ct, structure=structure, transposed=not transposed)
    return -_values_ct(back, ans, structure, transposed)


def _solve_values_jvp(t: Any, x: Any, ans: Any, *, structure: Structure, transposed: bool) -> Any:
    moved = sparse_matvec(t, ans, structure=structure, transposed=transposed)
    return -sparse_solve(x, moved, structure=structure, transposed=transposed)


#: ``sparse_solve(x, y, *, structure, transposed)``: the solution z of ``sparse_matvec(x, z) == y``.
sparse_solve: Operation = primitive(
    "sparse_solve",
    _solve,
    vjps=[
        _solve_values_ct,
        lambda ct, x, *, structure, transposed: sparse_solve(x, ct, structure=structure, transposed=not transposed),
    ],
    jvps=[
        _solve_values_jvp,
        lambda t, x, *, structure, transposed: sparse_solve(x, t, structure=structure, transposed=transposed),
    ],
    batch="elementwise",
)
