"""Sparse matrices, made of their values and the positions of these, and their products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import permute
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.reducing import identity_of_extremum
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.sparse import Structure, is_spmatrix, sparse_matvec, sparse_product, values_and_structure
from funcgrad.scipy.sparse.changes import InPlaceMethods, compressed, keys_of
from funcgrad.typing import Array, ArrayLike

__all__ = ["SparseArray", "coo_array", "csc_array", "csr_array", "matvec"]


class SparseArray(InPlaceMethods):
    """A sparse matrix: a pytree with one leaf, its values.

    Products, sums, parts and ``A.toarray()`` are differentiable in the values and in ``x``. ``*`` is the elementwise
    product, as for SciPy's sparse arrays, and ``@`` the matrix product. ``csr_array`` and others make such matrices.

    Attributes:
        data: the values, one for each stored position, row by row; column by column if transposed.
        structure: the positions of the values.
        transposed: whether the matrix is the transpose of the one that ``structure`` describes.
        of_dense: whether SciPy stores no zeros of this matrix: the values are a part of those of a dense matrix, or
            ``eliminate_zeros`` was called, which is a true text then.
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operator to this class
    ndim = 2
    of_dense: bool | str = False

    def __init__(self, data: Array, structure: Structure, transposed: bool = False) -> None:
        self.structure, self.transposed = structure, transposed
        self.values = data

    @property
    def data(self) -> Array:
        """Values of the matrix."""
        return self.values

    @data.setter
    def data(self, values: Array) -> None:
        self.values = self.with_data(values).values

    @property
    def format(self) -> str:
        """SciPy's name of the format whose values have this order."""
        return "csc" if self.transposed else "csr"

    @property
    def indices(self) -> Any:
        """Column of each value; its row if transposed."""
        return self.structure.indices

    @property
    def indptr(self) -> Any:
        """Index of the first value of each row, or column, followed by the number of values."""
        return self.structure.indptr

    @property
    def nnz(self) -> int:
        """Number of values."""
        return len(self.structure.indices)

    @property
    def T(self) -> SparseArray:  # noqa: N802  (NumPy's name)
        """Transpose of the matrix, without a copy."""
        made = SparseArray(self.values, self.structure, not self.transposed)
        made.of_dense = self.of_dense
        return made

    def with_data(self, data: ArrayLike) -> SparseArray:
        """Return the matrix of the same structure with other values.

        Raises:
            ShapeError: the number of values is not the number of positions.
        """
        data = as_value(data)
        count = len(self.structure.indices)
        if backend.shape_of(data) != (count,):
            raise ShapeError(f"SparseArray: data must have {count} values, got {describe(data)}. Give one per place.")
        made = SparseArray(data, self.structure, self.transposed)
        made.of_dense = self.of_dense
        return made

    def map_values(self, change: Callable[[Any], Any]) -> SparseArray:
        """Apply ``change``, which must map zero to zero, to the values, one for each position; return the matrix."""
        whole = self.summed()
        return whole.with_data(change(whole.values))

    def summed(self) -> SparseArray:
        """Return the matrix with one value for each position, in order."""
        return canonical(self.T).T if self.transposed else canonical(self)

    def __matmul__(self, x: Any) -> Any:
        return sparse_times_sparse(self, as_sparse("matmul", x)) if is_sparse(x) else matvec(self, x)

    def __rmatmul__(self, x: Any) -> Any:
        return sparse_times_sparse(as_sparse("matmul", x), self) if is_sparse(x) else sparse_product(as_value(x), self)

    dot = __matmul__

    def multiply(self, other: Any) -> SparseArray:
        """Multiply elementwise with a number, an array that broadcasts to the shape, or a sparse matrix."""
        if is_sparse(other):
            return _elementwise_product(self, as_sparse("SparseArray.multiply", other))
        return SparseArray(self.values * _at_positions(self, other), self.structure, self.transposed)

    __mul__ = multiply

    def __rmul__(self, other: Any) -> SparseArray:
        return (
            sparse_times_sparse(as_sparse("SparseArray", other), self) if is_spmatrix(other) else self.multiply(other)
        )

    def __truediv__(self, other: Any) -> SparseArray:
        if is_sparse(other):
            raise InputError("SparseArray: a quotient of sparse matrices is not sparse, got two. Divide arrays.")
        return SparseArray(self.values / _at_positions(self, other), self.structure, self.transposed)

    def __neg__(self) -> SparseArray:
        return self * -1

    def __abs__(self) -> SparseArray:
        return self.map_values(fnp.abs)

    def power(self, n: Any, dtype: Any = None) -> SparseArray:
        """Raise the values to the power of ``n``, elementwise.

        Raises:
            InputError: the power 0, which would fill the matrix.
        """
        if type(n) is int and n == 0:
            raise InputError(
                "SparseArray.power: n must not be 0, which fills the matrix, got 0. Write np.ones(A.shape)."
            )
        return (self if dtype is None else self.astype(dtype)).map_values(lambda values: values**n)

    __pow__ = power

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> SparseArray:
        """Return the matrix with its values in another dtype."""
        return self.with_data(fnp.astype(self.values, dtype))

    def conjugate(self, copy: bool = True) -> SparseArray:
        """Return the complex conjugate."""
        return self.with_data(fnp.conjugate(self.values))

    conj = conjugate

    @property
    def real(self) -> SparseArray:
        """Real parts of the elements."""
        return self.with_data(fnp.real(self.values))

    @property
    def imag(self) -> SparseArray:
        """Imaginary parts of the elements."""
        return self.with_data(fnp.imag(self.values))

    def __add__(self, other: Any) -> Any:
        if not is_sparse(other):
            return self if type(other) is int and other == 0 else self.toarray() + other
        other = as_sparse("SparseArray", other)
        if self.transposed == other.transposed and self.structure is other.structure:
            return SparseArray(self.values + other.values, self.structure, self.transposed)
        if self.shape != other.shape:
            raise ShapeError(
                f"SparseArray: shapes differ, got {self.shape} and {other.shape}. Add matrices of one shape."
            )
        rows, columns = (np.concatenate(pair) for pair in zip(self.places(), other.places(), strict=True))
        return assembled(fnp.concatenate([self.values, other.values]), rows, columns, self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -1 * (as_sparse("SparseArray", other) if is_sparse(other) else as_value(other))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __getitem__(self, key: Any) -> Any:
        """Return a matrix for slices and arrays of rows and columns; elements for two numbers, two arrays or a mask."""
        if isinstance(key, tuple) and len(key) == 2 and all(issubclass(type(k), (int, np.integer)) for k in key):
            i, j = (range(n)[k] for k, n in zip(key, self.shape, strict=True))  # which raises an IndexError
            rows, columns = self.places()
            return fnp.sum(getitem(self.values, np.flatnonzero((rows == i) & (columns == j))))
        key = key.nonzero() if is_sparse(key) else key
        return rearrange(lambda numbers: numbers[key], self)

    def diagonal(self, k: int = 0) -> Array:
        """Return the ``k``-th diagonal."""
        rows, columns = self.places()
        on = np.flatnonzero(columns - rows == k)
        length = max(0, min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0)))
        return _sums_by_position(getitem(self.values, on), np.minimum(rows[on], columns[on]), length)

    def sum(self, axis: int | None = None) -> Array:
        """Sum all values, or those of each column (``axis=0``) or row (``axis=1``)."""
        if axis is None:
            return fnp.sum(self.values)
        kept = 1 - axis % 2
        return _sums_by_position(self.values, self.places()[kept], self.shape[kept])

    def mean(self, axis: int | None = None) -> Array:
        """Return the mean of all elements, zeros included, or of each column (``axis=0``) or row (``axis=1``)."""
        return SparseArray.sum(self, axis) / (prod(self.shape) if axis is None else self.shape[axis])

    def trace(self, offset: int = 0) -> Array:
        """Return the sum of the ``offset``-th diagonal."""
        return fnp.sum(self.diagonal(offset))

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Array:
        """Return the largest element, or that of each column (``axis=0``) or row (``axis=1``).

        With ``explicit=True`` only stored elements count.
        """
        return self._extreme("max", axis, out, explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Array:
        """Return the smallest element; arguments as for ``max``."""
        return self._extreme("min", axis, out, explicit)

    def _extreme(self, name: str, axis: Any, out: Any, explicit: bool) -> Array:
        if out is not None:
            raise InputError(f"SparseArray.{name}: out must be None, got {type(out).__name__}. Take the result.")
        whole, kept = canonical(self), 1 - (axis or 0) % 2
        lines, count, length = whole.places()[kept], self.shape[kept], self.shape[1 - kept]
        if axis is None:  # all elements are one line
            lines, count, length = np.zeros_like(lines), 1, prod(self.shape)
        lacking = np.flatnonzero(np.bincount(lines, minlength=count) < (min(1, length) if explicit else length))
        lines = np.append(lines, lacking)  # a zero more for a line with an element that is not stored
        many, order = np.bincount(lines, minlength=count), np.argsort(lines, kind="stable")
        at = np.full((count, max(many, default=0)), len(lines))  # the indices of each line's values, then of the last
        at[lines[order], np.arange(len(lines)) - compressed(lines, count)[lines[order]]] = order
        more = [np.zeros(len(lacking), self.dtype), np.full(1, identity_of_extremum(name, self.dtype), self.dtype)]
        found: Array = getattr(fnp, name)(getitem(fnp.concatenate([whole.values, *more]), at), axis=1)
        return found[0] if axis is None else found

    def count_nonzero(self, axis: Any = None) -> Any:
        """Return the number of elements that are not zero, or that of each column (``axis=0``) or row (``axis=1``)."""
        whole = canonical(self)
        if axis is None:
            return fnp.count_nonzero(whole.values)
        return SparseArray.sum(whole.with_data(fnp.astype(whole.values != 0, int)), axis)

    def _deduped_data(self) -> Array:
        """Return one value for each position; SciPy's code calls this method."""
        return self.summed().values

    def toarray(self, order: Any = None) -> Array:
        """Return the matrix as a dense array."""
        places = keys_of(*self.places(), self.shape)  # a product with the identity would spread infinite values
        return fnp.reshape(fnp.astype(_sums_by_position(self.values, places, prod(self.shape)), self.dtype), self.shape)

    todense = toarray

    def tocsr(self, copy: bool = False) -> SparseArray:
        """Return the matrix with its values row by row."""
        if not self.transposed:
            return self
        rows, columns = self.places()
        order = np.argsort(rows, kind="stable")
        structure = Structure(columns[order], compressed(rows, self.shape[0]), self.shape)
        return SparseArray(getitem(self.values, order), structure)

    def tocsc(self, copy: bool = False) -> SparseArray:
        """Return the matrix with its values column by column."""
        return self if self.transposed else self.T.tocsr().T

    def tocoo(self, copy: bool = False) -> SparseArray:
        """Return the matrix itself, which knows its positions."""
        return self

    def copy(self) -> SparseArray:
        """Return the matrix with its own copy of the values: a write to either matrix does not change the other."""
        return SparseArray(fnp.copy(self.values), self.structure, self.transposed)

    def transpose(self, axes: Any = None, copy: bool = False) -> SparseArray:
        """Return the transpose; with ``copy=True`` with its own copy of the values."""
        return self.copy().T if copy else self.T

    @property
    def size(self) -> int:
        """Number of values."""
        return self.nnz

    def nonzero(self) -> tuple[Any, Any]:
        """Return rows and columns of the non-zero values; the values steer the run, like a branch."""
        there = _as_plain(self.data != 0, "sparse.nonzero")
        rows, columns = (places[there] for places in self.coords)
        if self.format != "csc":
            return rows, columns
        by_row = np.argsort(rows, kind="stable")
        return rows[by_row], columns[by_row]

    def plain(self, asked: str) -> Any:
        """Return SciPy's matrix of the plain values, one for each position; they steer the run, like a branch."""
        whole = canonical(self)
        return whole.structure.matrix(_as_plain(whole.values, asked))

    def reshape(self, *shape: Any, **options: Any) -> SparseArray:
        """Return the matrix with its elements, row by row, in another shape of two axes."""
        made: SparseArray = rearrange(lambda numbers: numbers.reshape(*shape, **options).tocsr(), self)
        return made

    def resize(self, *shape: Any) -> None:
        """Give the matrix other numbers of rows and columns; values outside are dropped."""
        m, n = shape[0] if len(shape) == 1 else shape
        (rows, columns), turned = self.places(), (n, m) if self.transposed else (m, n)
        inside = (rows < m) & (columns < n)
        at = (columns[inside], rows[inside]) if self.transposed else (rows[inside], columns[inside])
        made = assembled(self.values[inside], *at, turned)
        self.take(made.T if self.transposed else made)

    def maximum(self, other: Any) -> SparseArray:
        """Return the elementwise maximum of two matrices, or of a matrix and a number."""
        return self._compared(fnp.maximum, other)

    def minimum(self, other: Any) -> SparseArray:
        """Return the elementwise minimum of two matrices, or of a matrix and a number."""
        return self._compared(fnp.minimum, other)

    def _compared(self, choose: Callable[[Any, Any], Any], other: Any) -> SparseArray:
        if is_sparse(other):
            other = as_sparse("SparseArray", other)
            whole: SparseArray = (self + other).summed()
            return whole.with_data(choose(*(_elements(A, *whole.places()) for A in (self, other))))
        if _as_plain(fnp.asarray(choose(0.0, other) == 0.0), "maximum").all():
            return self.map_values(lambda values: choose(values, other))
        return dense_as_sparse(choose(self.toarray(), other))

    def getnnz(self, axis: int | None = None) -> Any:
        """Return the number of values, or of the values of each column (``axis=0``) or row (``axis=1``)."""
        if axis is None:
            return self.nnz
        kept = 1 - axis % 2
        return np.bincount(self.places()[kept], minlength=self.shape[kept])

    def __repr__(self) -> str:
        return f"<SparseArray {self.shape[0]} x {self.shape[1]}, {self.nnz} values of {self.dtype}>"


def _elementwise_method(name: str) -> Callable[[SparseArray], SparseArray]:
    def method(self: SparseArray) -> SparseArray:
        return self.map_values(getattr(fnp, name))

    method.__name__, method.__doc__ = name, f"Compute ``{name}`` of each element."
    return method


#: Names of the elementwise methods of SciPy's sparse arrays: functions that map zero to zero.
ELEMENTWISE = (
    *("arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg", "rint"),
    *("sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
for _name in ELEMENTWISE:
    setattr(SparseArray, _name, _elementwise_method(_name))

tree.register_pytree_node(
    SparseArray, lambda a: ((a.values,), (a.structure, a.transposed)), lambda rest, parts: SparseArray(*parts, *rest)
)


def is_sparse(x: Any) -> bool:
    return isinstance(x, SparseArray) or (not isinstance(x, (Tracer, np.ndarray)) and hasattr(x, "tocsr"))


def _elements(A: SparseArray, rows: Any, columns: Any) -> Array:
    """Return the elements of ``A`` at these positions."""
    whole = canonical(A)
    first, many, order = whole._found(rows, columns)
    at = np.where(many > 0, np.append(order, -1)[first], -1)
    return getitem(fnp.append(whole.values, np.zeros(1, whole.dtype)), at)


def _as_plain(x: Any, asked: str) -> Any:
    return np.asarray(concrete(x, asked) if isinstance(x, Tracer) else x)


def _sums_by_position(values: Array, places: Any, length: int) -> Array:
    """Return a vector of ``length`` entries: the sums of the values at each place."""
    chosen = Structure(np.argsort(places, kind="stable"), compressed(places, length), (length, len(places)))
    return sparse_matvec(np.ones(len(places), np.int8), values, structure=chosen, transposed=False)


def assembled(data: Array, rows: Any, columns: Any, shape: tuple[int, int]) -> SparseArray:
    """Build the matrix from values and their positions; values at the same position are added."""
    keys = keys_of(rows, columns, shape)
    places, first, number = np.unique(keys, return_index=True, return_inverse=True)
    data = getitem(data, first) if len(places) == len(keys) else _sums_by_position(data, number.ravel(), len(places))
    rows, columns = np.divmod(places, max(shape[1], 1))
    return SparseArray(data, Structure(columns, compressed(rows, shape[0]), shape))


def dense_as_sparse(x: Array) -> SparseArray:
    """Return a dense matrix as a sparse one that stores all elements."""
    m, n = backend.shape_of(x)
    return SparseArray(fnp.ravel(x), Structure(np.tile(np.arange(n), m), np.arange(0, m * n + 1, n), (m, n)))


def is_of_dense(A: SparseArray) -> bool:
    """Whether SciPy stores no zeros of ``A``, which holds elements of a dense matrix; one that is full may do so."""
    return bool(A.of_dense) or len(A.structure.indices) == prod(A.shape)


def canonical(A: SparseArray) -> SparseArray:
    """Return the matrix row by row, with one value for each position."""
    return A if A.has_canonical_format and not A.transposed else assembled(A.values, *A.places(), A.shape)


def rearrange(arrange: Any, *matrices: SparseArray) -> Any:
    """Apply ``arrange``, which moves values of SciPy's sparse matrices: numbers take the values' places in the call."""
    whole, numbered, count = [canonical(A) for A in matrices], [], 1
    for A in whole:
        size = len(A.structure.indices)
        numbered.append(A.structure.matrix(np.arange(count, count + size)))
        count += size
    made, values = arrange(*numbered), fnp.concatenate([A.values for A in whole])
    if isinstance(made, np.ndarray):  # elements, which may include zeros that are not stored
        return getitem(fnp.append(values, np.zeros(1, backend.dtype_of(values))), np.asarray(made) - 1)
    if made.ndim != 2:
        raise InputError(
            f"SparseArray: a matrix is made by slices and arrays, got {made.ndim} axes. Write A[i : i + 1]."
        )
    numbers, structure = values_and_structure(made)
    found = SparseArray(getitem(values, numbers - 1), structure)
    found.of_dense = next((A.of_dense for A in matrices if A.of_dense), False)
    return found


def _at_positions(A: SparseArray, other: Any) -> Any:
    """Return a number, or the elements of an array at the positions of ``A``."""
    other = as_value(other)
    if not backend.shape_of(other):
        return other
    return getitem(fnp.broadcast_to(other, A.shape), A.places())


def _elementwise_product(A: SparseArray, B: SparseArray) -> SparseArray:
    """Return the elementwise product."""
    if A.shape != B.shape:
        raise ShapeError(f"SparseArray: shapes differ, got {A.shape} and {B.shape}. Multiply matrices of one shape.")
    A, B = canonical(A), canonical(B)
    keys = [keys_of(*M.places(), M.shape) for M in (A, B)]
    both, first, second = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    rows, columns = np.divmod(both, max(A.shape[1], 1))
    return assembled(getitem(A.values, first) * getitem(B.values, second), rows, columns, A.shape)


def sparse_times_sparse(A: SparseArray, B: SparseArray) -> SparseArray:
    """Return the product of two sparse matrices."""
    if A.shape[1] != B.shape[0]:
        raise ShapeError(f"matmul: sparse matrices do not fit, got {A.shape} and {B.shape}. Check their shapes.")
    (rows, inner), (outer, columns) = A.places(), B.places()
    order, counts = np.argsort(outer, kind="stable"), np.bincount(outer, minlength=B.shape[0])
    starts = np.cumsum(counts) - counts
    many = counts[inner]  # each value of A is multiplied with all values in a row of B
    left = np.repeat(np.arange(len(inner)), many)
    within = np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many)
    right = order[starts[inner][left] + within]
    return assembled(
        getitem(A.values, left) * getitem(B.values, right), rows[left], columns[right], (A.shape[0], B.shape[1])
    )


def csr_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """Build a sparse matrix with compressed rows.

    Args:
        arg: a sparse matrix of SciPy in any format; ``(data, indices, indptr)``; ``(data, (row, col))``, whose values
            at the same position are added; an array of plain numbers, whose zeros are dropped; or a shape, for a matrix
            without values. Only ``data`` may be traced.
        shape: numbers of rows and columns; by default just enough for the indices.

    Raises:
        ValueError: indices or lengths that do not match.
        ConcretizationError: a traced array, whose zeros are unknown.

    Example:
        >>> from funcgrad.scipy.sparse import csr_array
        >>> A = csr_array((np.array([1.0, 2.0, 3.0]), [0, 2, 1], [0, 2, 3]), shape=(2, 3))
        >>> A @ np.array([1.0, 10.0, 100.0])
        array([201.,  30.])
    """
    scipy = import_scipy("sparse.csr_array", "scipy.sparse")
    if isinstance(arg, SparseArray):
        return arg
    if scipy.issparse(arg):
        return SparseArray(*values_and_structure(arg))
    if not isinstance(arg, tuple) or all(isinstance(n, (int, np.integer)) for n in arg):
        return SparseArray(*values_and_structure(scipy.csr_array(arg, shape=shape)))
    if len(arg) == 2:
        return canonical(coo_array(arg, shape))
    data, indices, indptr = arg
    data = as_value(data)
    indices, indptr = [np.asarray(concrete(i, "sparse.csr_array: indices")) for i in (indices, indptr)]
    numbers = scipy.csr_array((np.arange(len(indices)), indices, indptr), shape=shape)
    numbers.check_format()
    structure = Structure(numbers.indices, numbers.indptr, numbers.shape)  # integers, for indices of any dtype
    return SparseArray(data, structure).with_data(data)


def csc_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """Build a sparse matrix with compressed columns; arguments as for ``csr_array``.

    Raises:
        ValueError: indices or lengths that do not match.

    Example:
        >>> from funcgrad.scipy.sparse import csc_array
        >>> csc_array((np.array([1.0, 2.0, 3.0]), [0, 1, 1], [0, 1, 1, 3]), shape=(2, 3)).toarray()
        array([[1., 0., 0.],
               [0., 0., 5.]])
    """
    if isinstance(arg, tuple) and len(arg) == 3:
        return csr_array(arg, None if shape is None else shape[::-1]).T
    return csr_array(arg, shape)


def coo_array(arg: Any, shape: tuple[int, int] | None = None) -> SparseArray:
    """Build a sparse matrix from rows, columns and values; values at the same position are added.

    Args:
        arg: ``(data, (row, col))``; only ``data`` may be traced. Or any other argument of ``csr_array``.
        shape: numbers of rows and columns; by default just enough for the indices.

    Raises:
        ValueError: indices or lengths that do not match.

    Example:
        >>> from funcgrad.scipy.sparse import coo_array
        >>> coo_array((np.array([1.0, 2.0, 3.0]), ([1, 0, 1], [0, 1, 0]))).toarray()
        array([[0., 2.],
               [4., 0.]])
    """
    scipy = import_scipy("sparse.coo_array", "scipy.sparse")
    if not isinstance(arg, tuple) or len(arg) != 2 or isinstance(arg[1], (int, np.integer)):
        return csr_array(arg, shape)
    data, (row, col) = arg
    data = as_value(data)
    row, col = [np.asarray(concrete(i, "sparse.coo_array: indices")) for i in (row, col)]
    numbers = scipy.coo_array((np.ones(len(row)), (row, col)), shape=shape)
    row, col = numbers.coords  # integers, for indices of any dtype
    order = np.lexsort((col, row))
    structure = Structure(col[order], compressed(row, numbers.shape[0]), numbers.shape, order)
    return SparseArray(data, structure).with_data(getitem(data, order))


def matvec(A: Any, x: ArrayLike) -> Array:
    """Multiply a sparse matrix with a vector, or with the columns of a matrix.

    Args:
        A: a ``SparseArray``, or a sparse matrix of SciPy, which is a constant.
        x: of shape (n,) or (n, k).

    Raises:
        ValueError: shapes that do not match.

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse import matvec
        >>> A = scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> grad(lambda x: matvec(A, x)[1])(np.ones(2))
        array([1., 4.])
    """
    A, x = as_sparse("sparse.matvec", A), as_value(x)
    return on_columns("sparse.matvec", sparse_matvec, A, x, A.shape[1])


def as_sparse(call: str, A: Any) -> SparseArray:
    """Return ``A`` as a ``SparseArray``.

    Raises:
        InputError: ``A`` is not sparse.
    """
    if isinstance(A, SparseArray):
        return A
    if not import_scipy(call, "scipy.sparse").issparse(A):
        what = describe(A) if isinstance(A, (Tracer, np.ndarray)) else type(A).__name__
        raise InputError(f"{call}: A must be a sparse matrix, got {what}. Make one by funcgrad.scipy.sparse.csr_array.")
    return csr_array(A)


def on_columns(call: str, operation: Any, A: SparseArray, x: Array, length: int) -> Array:
    """Apply ``operation`` to the values of ``A`` and the vector ``x``, or each column of the matrix ``x``."""
    shape = backend.shape_of(x)
    if len(shape) not in (1, 2) or shape[0] != length:
        raise ShapeError(
            f"{call}: the array does not fit the matrix of {A.shape[0]} x {A.shape[1]}, got {list(shape)}. Pass "
            f"{length} entries, or columns of as many; use vmap for more axes."
        )
    options = {"structure": A.structure, "transposed": A.transposed}
    if len(shape) == 1:
        return operation(A.values, x, **options)
    return permute(operation(A.values, permute(x, axes=(1, 0)), **options), axes=(1, 0))
