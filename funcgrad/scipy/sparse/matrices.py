"""Sparse matrices, made of their values and of where these stand; products with arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import permute
from funcgrad.numpy.concretization import concrete
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.sparse import Structure, compressed, sparse_matvec, sparse_product
from funcgrad.typing import Array, ArrayLike

__all__ = ["SparseArray", "coo_array", "csr_array", "matvec"]


class SparseArray:
    """A sparse matrix: a pytree with one leaf, its values.

    ``A @ x``, ``x @ A``, ``A.T``, ``A * 2.0``, ``A + B`` of one structure and ``A.toarray()`` are differentiable in
    the values and in ``x``. Made by ``csr_array`` and ``coo_array``.

    Attributes:
        data: the values, one for each stored place, row by row.
        structure: where they stand.
        transposed: whether the matrix is the transpose of that.
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operator to this class
    ndim = 2

    def __init__(self, data: Array, structure: Structure, transposed: bool = False) -> None:
        self.data, self.structure, self.transposed = data, structure, transposed

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        m, n = self.structure.shape
        return (n, m) if self.transposed else (m, n)

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return backend.dtype_of(self.data)

    @property
    def nnz(self) -> int:
        """The number of values."""
        return len(self.structure.indices)

    @property
    def T(self) -> SparseArray:  # noqa: N802  (NumPy's name)
        """The transpose, without a copy."""
        return SparseArray(self.data, self.structure, not self.transposed)

    def with_data(self, data: ArrayLike) -> SparseArray:
        """The matrix of the same structure with other values.

        Raises:
            ShapeError: not one value for each place.
        """
        data = as_value(data)
        if backend.shape_of(data) != (self.nnz,):
            raise ShapeError(
                f"SparseArray: data must have {self.nnz} values, got {describe(data)}. Give one per place."
            )
        return SparseArray(data, self.structure, self.transposed)

    def __matmul__(self, x: ArrayLike) -> Array:
        return matvec(self, x)

    def __rmatmul__(self, x: ArrayLike) -> Array:
        return sparse_product(as_value(x), self)

    def __mul__(self, factor: Any) -> SparseArray:
        if backend.shape_of(factor):
            raise InputError(f"SparseArray: only a number can scale it, got {describe(factor)}. Scale A.data.")
        return SparseArray(self.data * factor, self.structure, self.transposed)

    __rmul__ = __mul__

    def __neg__(self) -> SparseArray:
        return self * -1

    def __add__(self, other: Any) -> SparseArray:
        alike = isinstance(other, SparseArray) and self.transposed == other.transposed
        if not alike or self.structure is not other.structure:
            raise InputError(
                f"SparseArray: only a matrix of the same structure can be added, got {type(other).__name__}. Make it "
                "by with_data, or add dense arrays."
            )
        return SparseArray(self.data + other.data, self.structure, self.transposed)

    def toarray(self) -> Array:
        """The matrix with its zeros."""
        return matvec(self, np.eye(self.shape[1], dtype=self.dtype))

    def __repr__(self) -> str:
        return f"<SparseArray {self.shape[0]} x {self.shape[1]}, {self.nnz} values of {self.dtype}>"


tree.register_pytree_node(
    SparseArray, lambda a: ((a.data,), (a.structure, a.transposed)), lambda rest, parts: SparseArray(*parts, *rest)
)


def csr_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """A sparse matrix in compressed rows.

    Args:
        arg: a sparse matrix of SciPy in any format, or ``(data, indices, indptr)``; only ``data`` may be traced.
        shape: rows and columns; by default just enough for the indices.

    Raises:
        ValueError: indices or lengths that do not fit.

    Example:
        >>> import numpy as np
        >>> A = csr_array((np.array([1.0, 2.0, 3.0]), [0, 2, 1], [0, 2, 3]), shape=(2, 3))
        >>> A @ np.array([1.0, 10.0, 100.0])
        array([201.,  30.])
    """
    scipy = import_scipy("sparse.csr_array", "scipy.sparse")
    if isinstance(arg, SparseArray):
        return arg
    if scipy.issparse(arg):
        return SparseArray(*compressed(arg))
    data, indices, indptr = arg
    data = as_value(data)
    indices, indptr = [np.asarray(concrete(i, "sparse.csr_array: indices")) for i in (indices, indptr)]
    numbers = scipy.csr_array((np.arange(len(indices)), indices, indptr), shape=shape)
    numbers.check_format()
    return SparseArray(data, Structure(indices, indptr, numbers.shape)).with_data(data)


def coo_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """A sparse matrix from rows, columns and values; values at the same place are added.

    Args:
        arg: ``(data, (row, col))``; only ``data`` may be traced. Or a sparse matrix of SciPy.
        shape: rows and columns; by default just enough for the indices.

    Raises:
        ValueError: indices or lengths that do not fit.

    Example:
        >>> import numpy as np
        >>> coo_array((np.array([1.0, 2.0, 3.0]), ([1, 0, 1], [0, 1, 0]))).toarray()
        array([[0., 2.],
               [4., 0.]])
    """
    scipy = import_scipy("sparse.coo_array", "scipy.sparse")
    if isinstance(arg, SparseArray) or scipy.issparse(arg):
        return csr_array(arg)
    data, (row, col) = arg
    data = as_value(data)
    row, col = [np.asarray(concrete(i, "sparse.coo_array: indices")) for i in (row, col)]
    numbers = scipy.coo_array((np.ones(len(row)), (row, col)), shape=shape)
    order = np.lexsort((col, row))
    counts = np.bincount(row, minlength=numbers.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return SparseArray(data, Structure(col[order], indptr, numbers.shape)).with_data(getitem(data, order))


def matvec(A: Any, x: ArrayLike) -> Array:
    """The product of a sparse matrix with a vector, or with the columns of a matrix.

    Args:
        A: a ``SparseArray``, or a sparse matrix of SciPy, which is a constant.
        x: of shape (n,) or (n, k).

    Raises:
        ValueError: shapes that do not fit.

    Example:
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from funcgrad import grad
        >>> A = scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> grad(lambda x: matvec(A, x)[1])(np.ones(2))
        array([1., 4.])
    """
    A, x = as_sparse("sparse.matvec", A), as_value(x)
    return on_columns("sparse.matvec", sparse_matvec, A, x, A.shape[1])


def as_sparse(call: str, A: Any) -> SparseArray:
    """``A`` as a ``SparseArray``.

    Raises:
        InputError: it is not sparse.
    """
    if isinstance(A, SparseArray):
        return A
    if not import_scipy(call, "scipy.sparse").issparse(A):
        what = describe(A) if isinstance(A, (Tracer, np.ndarray)) else type(A).__name__
        raise InputError(f"{call}: A must be a sparse matrix, got {what}. Make one by funcgrad.scipy.sparse.csr_array.")
    return csr_array(A)


def on_columns(call: str, operation: Any, A: SparseArray, x: Array, length: int) -> Array:
    """``operation`` of the values of ``A`` and of the vector ``x``, or of each column of the matrix ``x``."""
    shape = backend.shape_of(x)
    if len(shape) not in (1, 2) or shape[0] != length:
        raise ShapeError(
            f"{call}: the array does not fit the matrix of {A.shape[0]} x {A.shape[1]}, got {list(shape)}. Pass "
            f"{length} entries, or columns of as many; use vmap for more axes."
        )
    options = {"structure": A.structure, "transposed": A.transposed}
    if len(shape) == 1:
        return operation(A.data, x, **options)
    return permute(operation(A.data, permute(x, axes=(1, 0)), **options), axes=(1, 0))
