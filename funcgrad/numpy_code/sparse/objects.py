"""SciPy's sparse matrices in rebuilt code: constant matrices, and matrices of traced values."""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.creation import as_buffer
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy_code.conversions import holds_traced, is_traced, map_nested
from funcgrad.numpy_code.matrices import Matrix, arrays_of, is_number
from funcgrad.numpy_code.own import known_value, own
from funcgrad.numpy_code.sparse import coordinates, members
from funcgrad.numpy_code.sparse.dimensions import CoordinateArray, extreme_method, item_method, with_other_axes
from funcgrad.numpy_code.sparse.older import older_class_methods
from funcgrad.numpy_code.sparse.recognition import (
    ARRAY_CLASSES,
    FILLABLE_CLASSES,
    call_function,
    changes_module,
    is_funcgrad_matrix,
    is_scipy_matrix,
    scipy_class_of,
    sparse_class,
)
from funcgrad.primitives.sparse import Structure
from funcgrad.writable import COPY_ON_WRITE, is_buffer, make_buffer, root_of, unshare


def _replacement_for(matrix: Any) -> Any:
    """Return the replacement for the class of SciPy's object ``matrix``."""
    theirs: Any = type(matrix)
    return replacement_class(theirs)


class ConstantMatrix:
    """Constant sparse matrix whose products with traced values and with matrices of traced values are funcgrad's.

    All other methods are SciPy's. A matrix that the program has made becomes a matrix of traced values as soon as a
    traced value is written to it, or to the array of its values.

    Args:
        matrix: SciPy's object.
        values_buffer: the buffer that replaces the array of its values, if there is one.
        is_mutable: whether the program has made the matrix, so that it may change.
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operator to this class
    __class__ = property(lambda self: type(self.matrix))
    call_function = call_function
    type_of = staticmethod(lambda x: _replacement_for(x.matrix))  # what ``type(x)`` is in rebuilt code

    def __init__(self, matrix: Any, values_buffer: Any = None, *, is_mutable: bool = False) -> None:
        vars(self).update(matrix=matrix, values_buffer=values_buffer, is_mutable=is_mutable)

    def __setattr__(self, name: str, value: Any) -> None:
        now = _up_to_date(self)
        if type(now) is not ConstantMatrix:
            setattr(now, name, value)
        elif name == "data" and self.is_mutable and type(self.matrix).__name__[:3] != "dia":
            if holds_traced([value]):
                _turn_traced(self, fnp.asarray(value))
            else:
                vars(self)["values_buffer"] = value if is_buffer(value) else None
                self.matrix.data = value._val if is_buffer(value) else value
        elif holds_traced([value]):
            kind = type(self.matrix).__name__
            raise InputError(
                f"{kind}.{name}: a constant matrix cannot take traced values, got {describe(value)}. Make one of them: "
                f"{kind}((values, A.indices, A.indptr), shape=A.shape)."
            )
        else:
            setattr(self.matrix, name, value)

    def __getattr__(self, name: str) -> Any:
        if _up_to_date(self) is not self or type(self) is not ConstantMatrix:
            return getattr(self, name)
        if name == "data" and self.is_mutable and isinstance(self.matrix.data, np.ndarray):
            return _values_buffer(self)
        found = getattr(self.matrix, name)
        return _method(self, name, found) if callable(found) else _as_traceable(found, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not holds_traced([value]) and not is_funcgrad_matrix(value):
            _change(self, "__setitem__", key, _plain(value))
        else:
            _turn_traced(self)[key] = value

    def __imul__(self, other: Any) -> Any:
        return _scale(self, "__imul__", other)

    def __itruediv__(self, other: Any) -> Any:
        return _scale(self, "__itruediv__", other)

    def __matmul__(self, other: Any) -> Any:
        if is_traced(other) and self.matrix.ndim == 2:
            return fnp.matmul(_borrowed(self), other)
        return _as_traceable(_matching(self, other) @ _plain(other), self)

    def __rmatmul__(self, other: Any) -> Any:
        if is_traced(other) and self.matrix.ndim == 2:
            return fnp.matmul(other, _borrowed(self))
        return _as_traceable(_plain(other) @ _matching(self, other), self)

    def dot(self, other: Any) -> Any:
        """Return the matrix product, or the product with a number."""
        return self * other if is_number(other) else self @ other

    def multiply(self, other: Any) -> Any:
        """Return the elementwise product."""
        return _as_traceable(_matching(self, other).multiply(_plain(other)), self)


#: Methods of SciPy's matrices that change the matrix in place.
_CHANGING_METHODS = frozenset(
    ("eliminate_zeros", "prune", "resize", "set_shape", "setdiag", "sort_indices", "sum_duplicates")
)


def _values_buffer(x: ConstantMatrix) -> Any:
    """Return the buffer that replaces the array of the values."""
    if x.values_buffer is None:
        vars(x)["values_buffer"] = made = make_buffer(x.matrix.data)
        made.link = COPY_ON_WRITE
    return x.values_buffer


def _up_to_date(x: ConstantMatrix) -> Any:
    """Return ``x`` with the writes to the array of its values applied: a matrix of traced values, or a constant."""
    held = x.values_buffer
    if held is not None:
        if not is_buffer(held):
            return _turn_traced(x, held)
        if x.matrix.data is not held._val:
            x.matrix.data = held._val
    return x


def _borrowed(x: ConstantMatrix) -> Any:
    """Return SciPy's matrix for code that may keep its values: the next write goes to a copy."""
    if x.is_mutable:
        root_of(_values_buffer(x)).link = COPY_ON_WRITE
    return x.matrix


def _matching(x: ConstantMatrix, other: Any) -> Any:
    """Return the matrix as funcgrad's if ``other`` is traced or has traced values, else as SciPy's."""
    other_is_traced = is_traced(other) or is_funcgrad_matrix(other) or type(other) is CoordinateArray
    return _as_traced(_borrowed(x)) if other_is_traced else x.matrix


def _as_traced(matrix: Any) -> Any:
    if matrix.ndim != 2:
        matrix = matrix.tocoo()
        return CoordinateArray(matrix.data, matrix.coords, matrix.shape)
    kind: Any = type(matrix)
    if kind.__name__ not in ARRAY_CLASSES:  # LIL and DOK, which are filled element by element
        kind = _in_family(kind, "csr")
    return replacement_class(kind).from_scipy(matrix)


def _turn_traced(x: ConstantMatrix, values: Any = None) -> Any:
    """Turn the object ``x`` into a matrix of traced ``values`` with the same coordinates.

    Raises:
        InputError: the program has not made the matrix, so that other references would not see the write.
    """
    if not x.is_mutable:
        raise InputError(
            f"{type(x.matrix).__name__}: a constant matrix made outside cannot take traced values, got one. Change a "
            "copy of it, A.copy()."
        )
    matrix, values = x.matrix, _values_buffer(x) if values is None else values
    kind, form = _replacement_for(matrix), type(matrix).__name__[:3]
    if values.shape != matrix.data.shape:
        raise ShapeError(f"{type(matrix).__name__}.data: the shape must stay {matrix.data.shape}, got {values.shape}.")
    if form == "coo":
        places = [(matrix.row, matrix.col)]
    else:
        places = [matrix.offsets] if form == "dia" else [matrix.indices, matrix.indptr]
    made = kind((values, *places), shape=matrix.shape, traced=True)
    vars(x).clear()
    object.__dict__["__class__"].__set__(x, type(made))  # the same object, for every reference to it
    vars(x).update(vars(made))
    return x


def _change(x: ConstantMatrix, name: str, *args: Any, **kwargs: Any) -> Any:
    """Let SciPy change the matrix of ``x``, without a change of arrays that hold its earlier values."""
    if x.is_mutable and isinstance(getattr(x.matrix, "data", None), np.ndarray):
        unshare(root_of(_values_buffer(x)))
        x.matrix.data = x.values_buffer._val
    found = getattr(x.matrix, name)(*args, **kwargs)
    if x.values_buffer is not None and x.matrix.data is not x.values_buffer._val:
        vars(x)["values_buffer"] = None
    return x if found is x.matrix else found


def _scale(x: ConstantMatrix, name: str, other: Any) -> Any:
    if not is_number(other):
        return NotImplemented
    return getattr(_turn_traced(x), name)(other) if is_traced(other) else _change(x, name, other)


def _plain(x: Any) -> Any:
    if type(x) is FillableMatrix:
        return x.as_csr() if x.traced_values else x.matrix
    if type(x) is ConstantMatrix:
        x = _up_to_date(x)
        return x.matrix if type(x) is ConstantMatrix else x
    return x


def has_traced_values(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of traced values."""
    if type(x) is FillableMatrix:
        return bool(x.traced_values)
    now = _up_to_date(x) if type(x) is ConstantMatrix else x
    return is_funcgrad_matrix(now) and is_traced(now.values)


def plain_matrix(x: Any) -> Any:
    """Return SciPy's matrix for a matrix of constants; any other value unchanged."""
    x = _plain(x)
    is_constant = is_funcgrad_matrix(x) and (is_plain(x.values) or is_buffer(x.values))
    return members.without_zeros(x).plain("a function of SciPy's") if is_constant else x


def as_traceable(x: Any) -> Any:
    """Return a result of compiled code with sparse matrices that take traced values."""
    if type(x) is tuple:
        return tuple(map(as_traceable, x))
    return _as_traceable(x) if type(x).__module__.startswith("scipy.sparse") else x


def _as_traceable(x: Any, source: ConstantMatrix | None = None) -> Any:
    """Return a matrix that a SciPy method returned as one that takes traced values; any other value unchanged.

    Args:
        x: the result of the method.
        source: the matrix whose method it was; ``x`` may share memory with its values.
    """
    if type(x) is np.matrix:
        return Matrix(as_buffer(np.asarray(x)))
    if not is_scipy_matrix(x):
        return x
    if type(x).__name__ in FILLABLE_CLASSES:
        return FillableMatrix(x)
    if source is None:
        return ConstantMatrix(x, is_mutable=True)
    if x is source.matrix:
        return source
    ours, theirs = getattr(source.matrix, "data", None), x.data
    shares = type(ours) is type(theirs) is np.ndarray and np.may_share_memory(ours, theirs)
    if not shares or not source.is_mutable:
        return ConstantMatrix(x, is_mutable=not shares)
    values_buffer = _values_buffer(source)
    has_all = theirs.shape == values_buffer.shape and theirs.dtype == values_buffer.dtype
    return ConstantMatrix(x, values_buffer if has_all else None, is_mutable=True)


def _method(x: ConstantMatrix, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        changes = name in _CHANGING_METHODS
        if any(is_traced(a) or is_funcgrad_matrix(_plain(a)) for a in args):
            owner = _turn_traced(x) if changes else _as_traced(_borrowed(x))
            return getattr(owner, name)(*args, **kwargs)
        given = [_plain(a) for a in args]
        return _change(x, name, *given, **kwargs) if changes else _as_traceable(plain(*given, **kwargs), x)

    return call


class FillableMatrix:
    """Sparse matrix that a program fills, ``lil_matrix`` or ``dok_matrix``, also with traced values.

    Args:
        matrix: SciPy's object, which holds the constants.

    Attributes:
        traced_values: the traced values, by row and column.
    """

    __array_ufunc__ = None
    __class__ = property(lambda self: type(self.matrix))
    call_function = call_function
    type_of = staticmethod(lambda x: _replacement_for(x.matrix))
    __slots__ = ("matrix", "traced_values")

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.traced_values: dict[tuple[int, int], Any] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        value = value.toarray() if hasattr(value, "toarray") else value
        if not holds_traced([value]) and not self.traced_values:
            self.matrix[key] = value
            return
        rows, columns = changes_module().positions_of(key, self.matrix.shape)
        value = fnp.asarray(value)
        parts = fnp.reshape(value if value.size == rows.size else fnp.broadcast_to(value, rows.shape), -1)
        for place, part in zip(zip(rows.flat, columns.flat, strict=True), parts, strict=True):
            if is_traced(part):
                self.traced_values[place] = part
                self.matrix[place] = 1.0  # a zero is not stored
            else:
                self.traced_values.pop(place, None)
                self.matrix[place] = part

    def __getitem__(self, key: Any) -> Any:
        rows, columns = changes_module().positions_of(key, self.matrix.shape)
        places = list(zip(rows.flat, columns.flat, strict=True))
        constants = self.matrix[key]
        if self.traced_values.keys().isdisjoint(places):
            return _as_traceable(constants)
        if type(constants) is type(self.matrix) and constants.ndim == 2:
            part = FillableMatrix(constants)
            at = zip(np.ndindex(constants.shape), places, strict=True)
            part.traced_values = {new: self.traced_values[old] for new, old in at if old in self.traced_values}
            return part
        found = [self.traced_values.get(place, self.matrix[place]) for place in places]
        return fnp.stack(found).reshape(rows.shape) if rows.shape else found[0]

    def as_csr(self) -> Any:
        """Return the matrix in compressed rows (CSR)."""
        if not self.traced_values:
            return ConstantMatrix(self.matrix.tocsr(), is_mutable=True)
        rest = self.matrix.tocoo()
        flat_indices = [row * rest.shape[1] + column for row, column in self.traced_values]
        there = (rest.data != 0) & ~np.isin(rest.row * rest.shape[1] + rest.col, flat_indices)
        rows, columns = np.transpose(list(self.traced_values))
        data = fnp.concatenate([rest.data[there], fnp.stack(list(self.traced_values.values()))])
        places = np.concatenate([rest.row[there], rows]), np.concatenate([rest.col[there], columns])
        kind = _in_family(type(self.matrix), "csr")
        return replacement_class(kind)((data, places), self.matrix.shape)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write to the ``k``-th diagonal."""
        rows, columns, values = changes_module().on_diagonal(values, k, self.matrix.shape)
        self[rows, columns] = values

    def resize(self, *shape: Any) -> None:
        """Change the shape in place, and drop the elements outside of it."""
        self.matrix.resize(*shape)
        rows, columns = self.matrix.shape
        self.traced_values = {(i, j): x for (i, j), x in self.traced_values.items() if i < rows and j < columns}

    def get(self, key: Any, default: Any = 0.0) -> Any:
        """Return the element at ``key``, or ``default`` if there is none, as ``dok_matrix.get`` does."""
        return self.traced_values[key] if key in self.traced_values else self.matrix.get(key, default)

    def items(self) -> list[tuple[tuple[int, int], Any]]:
        """Return the coordinates and their elements, as ``dok_matrix.items`` does."""
        return [(place, self.traced_values.get(place, value)) for place, value in self.matrix.items()]

    def keys(self) -> Any:
        """Return the coordinates, as ``dok_matrix.keys`` does."""
        return self.matrix.keys()

    def values(self) -> list[Any]:
        """Return the elements, as ``dok_matrix.values`` does."""
        return [value for _, value in self.items()]

    def __len__(self) -> int:
        return len(self.matrix)

    def copy(self) -> FillableMatrix:
        """Return a copy, which can be filled further."""
        made = FillableMatrix(self.matrix.copy())
        made.traced_values = dict(self.traced_values)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.as_csr() if self.traced_values else ConstantMatrix(self.matrix, is_mutable=True), name)


def _operator_of_csr(name: str) -> Callable[..., Any]:
    function = getattr(operator, name.removeprefix("r"))
    if name.startswith("r"):
        return lambda self, other: function(other, self.as_csr())
    return lambda self, *others: function(self.as_csr(), *others)


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
for _name in ("add", "sub", "mul", "matmul", "truediv", "neg", "radd", "rsub", "rmul", "rmatmul", "abs", "pow"):
    setattr(FillableMatrix, f"__{_name}__", _operator_of_csr(_name))
for _name in _COMPARISONS:
    setattr(FillableMatrix, f"__{_name}__", _operator_of_csr(_name))


def _operator(name: str, right: bool = False) -> Callable[..., Any]:
    """Return an operator of ``ConstantMatrix``: SciPy's, or funcgrad's if the other operand has traced values."""
    function = getattr(operator, name)

    def applied(self: ConstantMatrix, *others: Any) -> Any:
        given = [_plain(x) for x in others]
        scales = name in ("mul", "truediv") and is_traced(given[0])
        mine = _as_traced(_borrowed(self)) if scales or any(map(is_funcgrad_matrix, given)) else self.matrix
        if name in ("add", "sub") and is_traced(given[0]):
            mine = mine.toarray()  # the sum with an array is an array
        return _as_traceable(function(*given, mine) if right else function(mine, *given), self)

    return applied


def _redirected_if_traced(name: str) -> Callable[..., Any]:
    """Return a method of ``ConstantMatrix`` that runs the method for traced values once the matrix has such."""
    plain = getattr(ConstantMatrix, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        now = _up_to_date(self)
        return (plain if type(now) is ConstantMatrix else getattr(type(now), name))(now, *args, **kwargs)

    return method


for _name in ("add", "sub", "mul", "truediv", "neg", "abs", "pow", "getitem", *_COMPARISONS):
    setattr(ConstantMatrix, f"__{_name}__", _operator(_name))
for _name in ("add", "sub", "mul"):
    setattr(ConstantMatrix, f"__r{_name}__", _operator(_name, right=True))
for _name in [name for name in vars(ConstantMatrix) if callable(vars(ConstantMatrix)[name])]:
    if _name not in ("__init__", "__getattr__", "__setattr__", "type_of"):
        setattr(ConstantMatrix, _name, _redirected_if_traced(_name))


@functools.cache
def replacement_class(scipy_class: type) -> Any:
    """Return the class that replaces a SciPy sparse class, and whose matrices may have traced values.

    In the older classes, such as ``csr_matrix``, ``*`` is the matrix product and ``**`` the matrix power.
    """
    base, form = sparse_class("SparseArray"), scipy_class.__name__[:3]
    make = sparse_class(f"{form}_array" if form in ("csc", "coo") else "csr_array")

    class Kind(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, scipy_class) or type(x) is cls

        def __call__(
            cls, arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False, traced: bool = False, **rest: Any
        ) -> Any:
            arg = arrays_of(arg)
            is_filled = type(arg) is FillableMatrix and arg.traced_values
            plain = arg.as_csr() if is_filled else _plain(getattr(arg, "matrix", arg))
            plain = fnp.asarray(plain) if type(plain) is list and holds_traced(plain) else plain
            other_axes = None if traced else with_other_axes(scipy_class.__name__, plain, shape)
            if other_axes is not None:
                return other_axes
            if not isinstance(plain, base) and not traced and not holds_traced([plain]):
                made = _constant_matrix(scipy_class, plain, shape, dtype, copy, **rest)
                return _as_traceable(made.matrix, arg) if type(arg) is type(made) is ConstantMatrix else made
            if form == "dia" and isinstance(plain, tuple):
                plain = coordinates.of_diagonals(shape, *plain)
            if form == "bsr" and isinstance(plain, tuple) and len(plain) == 3:
                plain = coordinates.of_blocks(fnp.asarray(plain[0]), plain[1:])
            found = plain if isinstance(plain, base) else make(*coordinates.of_elements(plain, shape))
            found.of_dense = found.of_dense or is_traced(plain)
            if isinstance(plain, base) and scipy_class_of(plain).__name__.startswith("coo") and form in ("csc", "csr"):
                found = found.summed()
            as_given = form == getattr(found, "format", "") and isinstance(plain, tuple) and len(plain) == 3
            found = _as_replacement(scipy_class, found) if as_given else _in_format(scipy_class, form, found)
            if form == "coo" and isinstance(plain, tuple):
                found.values_as_given = fnp.asarray(plain[0])  # later writes to this array change the matrix as well
            found = found if dtype is None else found.astype(dtype, copy=False)
            return found.copy() if copy else found

        def from_scipy(cls, matrix: Any) -> Any:
            """Return a matrix of this class with the values of a SciPy matrix."""
            return _in_format(scipy_class, form, make(matrix))

    methods = {**_methods(scipy_class, base, form), "scipy_class": scipy_class, "call_function": call_function}
    methods |= members.methods_of_format(form, scipy_class)
    if scipy_class.__name__.endswith("_array") and hasattr(scipy_class, "__getitem__"):
        methods["__getitem__"] = item_method(methods["__getitem__"])
    methods |= members.members_of_stored(base, methods)
    if scipy_class.__name__.endswith("_matrix"):
        methods.update(older_class_methods(methods, base))
    Matrix: Any = Kind(scipy_class.__name__, (base,), methods)
    tree.register_pytree_node(
        Matrix,
        lambda a: ((a.values,), (a.structure, a.transposed)),
        lambda rest, parts: _as_replacement(scipy_class, base(*parts, *rest)),
    )
    return Matrix


def _constant_matrix(scipy_class: type, plain: Any, shape: Any, dtype: Any, copy: bool, **rest: Any) -> Any:
    """Return a matrix of constants that sees later writes to the array of its values."""
    if scipy_class.__name__ in FILLABLE_CLASSES:
        return FillableMatrix(scipy_class(plain, shape, dtype, copy))
    given: Any = plain[0] if isinstance(plain, tuple) and is_buffer(plain[0]) else None
    if given is not None:
        plain = (given._val, *plain[1:])
    made: Any = scipy_class(plain, shape, dtype, copy, **rest)
    if given is None or made.data.shape != given.shape or not np.may_share_memory(made.data, given._val):
        return ConstantMatrix(made, is_mutable=True)
    made.data = given._val
    return ConstantMatrix(made, given, is_mutable=True)


def _as_replacement(scipy_class: type, found: Any) -> Any:
    """Return the matrix ``found`` as one of the class that replaces ``scipy_class``."""
    made: Any = object.__new__(replacement_class(scipy_class))
    made.__init__(found.values, found.structure, found.transposed)
    made.of_dense = found.of_dense
    return made


def _in_family(scipy_class: type, wanted: str) -> Any:
    """Return the SciPy class of the format ``wanted``, an array class or a matrix class like ``scipy_class``."""
    name = f"{wanted}_{scipy_class.__name__.partition('_')[2]}"
    return scipy_class if name == scipy_class.__name__ else getattr(sys.modules["scipy.sparse"], name)


def _in_format(scipy_class: type, wanted: str, found: Any) -> Any:
    """Return ``found`` in the format ``wanted``. As in SciPy, only conversions from COO add up duplicates."""
    given = found.values_as_given if wanted == "coo" and hasattr(found, "values_as_given") else None
    of_dense = found.of_dense
    found = sparse_class("SparseArray")(found.values, found.structure, found.transposed)
    if wanted in ("csc", "csr"):
        found = found.tocsc() if wanted == "csc" else found.tocsr()
        found = found.summed() if scipy_class.__name__.startswith("coo") else found
        a = found.structure
        found.structure = a if a.order is None else Structure(a.indices, a.indptr, a.shape)
    made = _as_replacement(_in_family(scipy_class, wanted), found)
    made.of_dense = of_dense
    if given is not None:
        made.values_as_given = given  # values that other references share
    return made


def _result_as(scipy_class: type, found: Any) -> Any:
    """Return the result of a method of the class that replaces ``scipy_class``; a transpose may change CSR to CSC."""
    if type(found) is not sparse_class("SparseArray"):
        return found
    is_compressed = scipy_class.__name__[:3] in ("csc", "csr")
    return _in_format(scipy_class, found.format, found) if is_compressed else _as_replacement(scipy_class, found)


def _methods(scipy_class: type, base: Any, form: str) -> dict[str, Any]:
    elementwise = own("scipy.sparse.matrices").ELEMENTWISE

    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)
        sums_up = name in ("__abs__", "power", *elementwise)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if sums_up:  # SciPy's methods do so in place
                self.sum_duplicates()
            found = plain(self, *map(arrays_of, args), **kwargs)
            if self.of_dense and is_funcgrad_matrix(found):
                found.of_dense = self.of_dense
            like = _scipy_result(name, (self, *args), kwargs) if is_funcgrad_matrix(found) else None
            return _result_as(scipy_class, found) if like is None else arranged_as(like, found)

        return method

    return {
        **{
            name: kept(name)
            for name in (*[f"__{name}__" for name in _OPERATORS.split()], *_WRAPPED_METHODS, *elementwise)
        },
        **{f"__{name}__": _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
        **{name: members.index_method(name) for name in ("argmax", "argmin")},
        **{name: extreme_method(name) for name in ("max", "min")},
        **_memory_methods(scipy_class, base, form),
        **{f"to{wanted}": _other_conversion(wanted) for wanted in ("bsr", "dia", "dok", "lil")},
        "__getattr__": members.raise_missing,
        "__hash__": None,
        "format": property(lambda self: form),
        "imag": property(lambda self: _result_as(scipy_class, base.imag.fget(self))),
        "todense": base.toarray,
        "_shape_as_2d": property(lambda self: self.shape),
    }


def _conversion(scipy_class: type, form: str, wanted: str) -> Callable[..., Any]:
    plain = signature(getattr(scipy_class, f"to{wanted}")).parameters["copy"].default

    def turn(self: Any, copy: bool = plain) -> Any:
        if wanted == form:
            return self.copy() if copy else self
        made = _in_format(scipy_class, wanted, self)
        made.of_dense = made.of_dense or form == "dia"  # SciPy drops zeros on diagonals
        return made.copy() if (copy or form == "coo") and made.stored is self.stored else made

    return turn


def _memory_methods(scipy_class: type, base: Any, form: str) -> dict[str, Any]:
    """Return the methods whose results share memory with the matrix, or do not, as SciPy's do."""

    def formatted(self: Any, format: str | None, copy: bool = False) -> Any:
        if format in ("array", "dense"):  # a format without a copy of its own
            return self.toarray() if format == "array" else self.todense()
        return getattr(self, f"to{format or form}")(copy=copy)

    def turn(self: Any, axes: Any = None, copy: bool = False) -> Any:
        found = _result_as(scipy_class, base.T.fget(self))
        if form == "coo" and self.structure is found.structure:
            found.values_as_given = self.values_as_given
        return found.copy() if copy else found

    def conjugate(self: Any, copy: bool = True) -> Any:
        if self.dtype.kind == "c":
            return _result_as(scipy_class, base.conjugate(self))
        return self.copy() if copy else self

    def cast(self: Any, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        if np.dtype(dtype) == self.dtype:
            return self.copy() if copy else self
        made = _result_as(scipy_class, base.astype(self, dtype))
        made.sum_duplicates()
        return made

    def copied(self: Any) -> Any:
        made = _as_replacement(scipy_class, self)
        made.stored = fnp.copy(self.stored)
        return made

    def real(self: Any) -> Any:
        if self.dtype.kind == "c":
            return _result_as(scipy_class, base.real.fget(self))
        return _in_format(scipy_class, form, self)

    return {
        **{f"to{wanted}": _conversion(scipy_class, form, wanted) for wanted in ("csc", "csr", "coo")},
        "T": property(turn),
        "asformat": formatted,
        "astype": cast,
        "conj": conjugate,
        "conjugate": conjugate,
        "copy": copied,
        "real": property(real),
        "transpose": turn,
    }


def _comparison(name: str) -> Callable[..., Any]:
    """Return a comparison of the elements: it returns SciPy's matrix of booleans, which Python may branch on."""
    function = getattr(operator, name)

    def compare(self: Any, other: Any) -> Any:
        other = other.plain(name) if is_funcgrad_matrix(other) else _plain(other)
        return _as_traceable(function(self.plain(name), known_value(other, name)))

    return compare


def _other_conversion(wanted: str) -> Callable[..., Any]:
    """Return a conversion to a format without a class for traced values: filled (DOK, LIL), or to BSR or DIA."""

    def convert(self: Any, blocksize: Any = None, copy: bool = False) -> Any:
        theirs: Any = type(self).scipy_class
        if blocksize is not None and any(n % size for n, size in zip(self.shape, blocksize, strict=True)):
            raise ValueError(f"invalid blocksize {blocksize}")
        kind = _in_family(theirs, wanted)
        if kind is theirs:
            return self.copy() if copy else self
        if kind.__name__ not in FILLABLE_CLASSES:
            return _in_format(theirs, wanted, self.summed().copy())
        made, whole = FillableMatrix(kind(self.shape)), self.summed()
        for *place, value in zip(*whole.places(), whole.values, strict=True):
            made[tuple(place)] = value
        return made

    return convert


_OPERATORS = "abs add radd sub rsub neg mul rmul truediv getitem matmul rmatmul pow"
_WRAPPED_METHODS = ("dot", "maximum", "minimum", "multiply", "power", "reshape", "with_data")


#: Generator of the numbers that replace traced values: all differ, so that no sum of them is zero. ``numpy.random`` is
#: imported at the first call.
_number_generator = functools.cache(lambda: np.random.default_rng(0))


def placeholder(x: Any) -> Any:
    """Return what SciPy gets in place of ``x``: constants unchanged, random numbers for traced values."""
    x = _plain(x.as_csr() if type(x) is FillableMatrix else x)
    if is_buffer(x):
        return x._val
    if is_funcgrad_matrix(x):
        values = _number_generator().uniform(0.5, 1.5, len(x.structure.indices))
        return members.with_values(scipy_class_of(x), x, values)
    if isinstance(x, Tracer):
        return _number_generator().uniform(0.5, 1.5, x.shape)
    return x._val if type(x) is Matrix else x


def _scipy_result(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of SciPy's method for the stand-ins of ``args``; None if it is not a sparse matrix."""
    owner, *given = map_nested(placeholder, args)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            like = getattr(owner, name)(*given, **kwargs)
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
        return None
    return like if is_scipy_matrix(like) else None


def arranged_as(like: Any, found: Any) -> Any:
    """Return ``found`` in the class, format and order of SciPy's matrix ``like`` if their coordinates agree."""
    form, places = like.format, like.tocoo()
    if form not in ("coo", "csc", "csr") or like.ndim != 2 or like.nnz == 0:
        return _in_format(type(like), form, found)
    whole = sparse_class("SparseArray")(found.values, found.structure, found.transposed).tocsr().summed()
    first, many, order = whole._found(places.row, places.col)
    if len(places.row) != whole.nnz or (many != 1).any() or len(np.unique(first)) < whole.nnz:
        return _in_format(type(like), form, found)
    values = whole.values[order[first]]
    data = (values, (places.row, places.col)) if form == "coo" else (values, like.indices, like.indptr)
    made = _replacement_for(like)(data, shape=like.shape, traced=True)
    made.of_dense = found.of_dense
    return made


@functools.cache
def with_scipy_format(operation: Callable[..., Any], scipy_function: Any) -> Any:
    """Return a function of ``scipy.sparse`` that makes matrices of the class and format that SciPy's makes."""

    @functools.wraps(scipy_function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = map_nested(lambda x: x.as_csr() if type(x) is FillableMatrix else x, args)
        given: list[Any] = []
        map_nested(given.append, (*args, *kwargs.values()))
        like = scipy_function(*map_nested(placeholder, args), **kwargs)
        if not any(is_traced(x) or is_funcgrad_matrix(_plain(x)) for x in given):
            return _as_traceable(like)
        return arranged_as(like, operation(*map_nested(_plain, args), **kwargs))

    return call
