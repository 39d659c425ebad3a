"""SciPy's sparse matrices in code that was built anew: constants, and matrices that are made of traced values."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.numpy_code.conversions import holds_traced, is_traced


def _own(name: str) -> Any:
    return getattr(import_module("funcgrad.scipy.sparse"), name)


class Constant:
    """A constant sparse matrix, whose products with traced values and matrices of these are funcgrad's.

    All else is SciPy's.

    Args:
        matrix: SciPy's object.
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operator to this class

    def __init__(self, matrix: Any) -> None:
        object.__setattr__(self, "matrix", matrix)

    __class__ = property(lambda self: type(self.matrix))

    def __setattr__(self, name: str, value: Any) -> None:
        if holds_traced([value]):
            kind = type(self.matrix).__name__
            raise InputError(
                f"{kind}.{name}: a constant matrix cannot take traced values, got {describe(value)}. Make one of them: "
                f"{kind}((values, A.indices, A.indptr), shape=A.shape)."
            )
        setattr(self.matrix, name, value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.matrix, name)
        return _method(found) if callable(found) else _constant(found)

    def _beside(self, other: Any) -> Any:
        """The matrix as one of funcgrad's where ``other`` is or holds traced values, else as SciPy's."""
        return self._followed() if is_traced(other) or _is_own(other) else self.matrix

    def _followed(self) -> Any:
        home, name = sys.modules["scipy.sparse"], type(self.matrix).__name__
        if name not in _NAMES:  # formats to be filled one by one
            name = f"csr_{name.partition('_')[2]}"
        return made_of(getattr(home, name)).holding(self.matrix)

    def __mul__(self, other: Any) -> Any:
        return self._beside(other) * _plain(other)

    def __rmul__(self, other: Any) -> Any:
        mine = self._beside(other)
        return mine.__rmul__(other) if is_traced(other) else _plain(other) * mine

    def __truediv__(self, other: Any) -> Any:
        return self._beside(other) / _plain(other)

    def __matmul__(self, other: Any) -> Any:
        return fnp.matmul(self.matrix, other) if is_traced(other) else self._beside(other) @ _plain(other)

    def __rmatmul__(self, other: Any) -> Any:
        return fnp.matmul(other, self.matrix) if is_traced(other) else _plain(other) @ self._beside(other)

    def dot(self, other: Any) -> Any:
        """The product of matrices, or with a number."""
        return self * other if _is_number(other) else self @ other

    def multiply(self, other: Any) -> Any:
        """The product element by element."""
        return self._beside(other).multiply(_plain(other))


def _plain(x: Any) -> Any:
    return x.matrix if type(x) is Constant else x


def _constant(x: Any) -> Any:
    """A matrix that one of SciPy's methods gives as one whose products take traced values; anything else as it is."""
    return Constant(x) if any(base.__name__ == "_spbase" for base in type(x).__mro__) else x


def _method(plain: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: _constant(plain(*map(_plain, args), **kwargs))


class Filled:
    """A sparse matrix that a program fills, ``lil_matrix`` or ``dok_matrix``: with traced values, too.

    Args:
        matrix: SciPy's object, with the constants.

    Attributes:
        written: by row and column the traced values.
    """

    __array_ufunc__ = None

    __slots__ = ("matrix", "written")

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.written: dict[tuple[int, int], Any] = {}

    __class__ = property(lambda self: type(self.matrix))

    def __setitem__(self, key: Any, value: Any) -> None:
        value = value.toarray() if hasattr(value, "toarray") else value
        if not holds_traced([value]) and not self.written:
            self.matrix[key] = value
            return
        rows, columns = self._places(key)
        value = fnp.asarray(value)
        parts = fnp.reshape(value if value.size == rows.size else fnp.broadcast_to(value, rows.shape), -1)
        for place, part in zip(zip(rows.flat, columns.flat, strict=True), parts, strict=True):
            if is_traced(part):
                self.written[place] = part
                self.matrix[place] = 0.0
            else:
                self.written.pop(place, None)
                self.matrix[place] = part

    def __getitem__(self, key: Any) -> Any:
        rows, columns = self._places(key)
        places = list(zip(rows.flat, columns.flat, strict=True))
        if self.written.keys().isdisjoint(places):
            return _constant(self.matrix[key])
        found = [self.written.get(place, self.matrix[place]) for place in places]
        return fnp.stack(found).reshape(rows.shape) if rows.shape else found[0]

    def _places(self, key: Any) -> tuple[Any, Any]:
        """Rows and columns of what an index means."""
        row, column = key if isinstance(key, tuple) else (key, slice(None))
        m, n = self.matrix.shape
        rows, columns = np.arange(m)[row], np.arange(n)[column]
        if isinstance(column, slice) or (isinstance(row, slice) and columns.ndim):
            rows = rows[..., None] if rows.ndim else rows  # a row of each
        rows, columns = np.broadcast_arrays(rows, columns)
        return rows, columns

    def finished(self) -> Any:
        """The matrix in compressed rows."""
        if not self.written:
            return Constant(self.matrix.tocsr())
        rest = self.matrix.tocoo()
        there = rest.data != 0
        rows, columns = np.transpose(list(self.written))
        data = fnp.concatenate([rest.data[there], fnp.stack(list(self.written.values()))])
        places = np.concatenate([rest.row[there], rows]), np.concatenate([rest.col[there], columns])
        kind = f"csr_{type(self.matrix).__name__.partition('_')[2]}"
        return made_of(getattr(sys.modules["scipy.sparse"], kind))((data, places), self.matrix.shape)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write to the ``k``-th diagonal."""
        length = min(self.matrix.shape[0] + min(k, 0), self.matrix.shape[1] - max(k, 0))
        places = np.arange(length)
        self[places - min(k, 0), places + max(k, 0)] = values

    def copy(self) -> Filled:
        """Another matrix of the same values, to be filled as well."""
        made = Filled(self.matrix.copy())
        made.written = dict(self.written)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finished() if self.written else Constant(self.matrix), name)


def _by_finished(name: str) -> Callable[..., Any]:
    function = getattr(operator, name.removeprefix("r"))
    if name.startswith("r"):
        return lambda self, other: function(other, self.finished())
    return lambda self, *others: function(self.finished(), *others)


for _name in ("add", "sub", "mul", "matmul", "truediv", "neg", "radd", "rsub", "rmul", "rmatmul"):
    setattr(Filled, f"__{_name}__", _by_finished(_name))


def _is_own(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of funcgrad's."""
    home = sys.modules.get("funcgrad.scipy.sparse")
    return home is not None and issubclass(type(x), home.SparseArray)


def _operator(name: str, right: bool = False) -> Callable[..., Any]:
    """An operator that SciPy's object has, and those of funcgrad's beside one of these."""
    function = getattr(operator, name)

    def applied(self: Constant, *others: Any) -> Any:
        mine = self._followed() if any(map(_is_own, others)) else self.matrix
        if name in ("add", "sub") and is_traced(others[0]):
            mine = mine.toarray()  # the sum with an array is one
        given = [_plain(x) for x in others]
        return _constant(function(*given, mine) if right else function(mine, *given))

    return applied


for _name in ("add", "sub", "neg", "abs", "pow", "getitem", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Constant, f"__{_name}__", _operator(_name))
for _name in ("add", "sub"):
    setattr(Constant, f"__r{_name}__", _operator(_name, right=True))


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) or getattr(x, "shape", None) == ()


def _every_element(x: Any) -> Any:
    """The values and places of all elements of a traced array: one that is zero now may have a derivative."""
    if not is_traced(x) and not isinstance(x, list):
        return x
    x = fnp.atleast_2d(x)
    rows, columns = np.indices(x.shape).reshape(2, -1)
    return x.reshape(-1), (rows, columns)


def _of_diagonals(shape: Any, data: Any, offsets: Any) -> Any:
    """Values and places of the elements of diagonals, each of which stands in ``data`` where its columns are."""
    data, offsets = fnp.atleast_2d(data), np.atleast_1d(np.asarray(offsets))
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    return data[inside], (rows[inside], columns[inside])


@functools.cache
def made_of(theirs: type) -> Any:
    """The class that stands for a class of SciPy's sparse matrices, whose matrices may have traced values.

    Of the older classes, ``csr_matrix`` and the like, ``*`` is the product of matrices, and ``**`` the power of one.
    """
    base, form = _own("SparseArray"), theirs.__name__[:3]
    make = _own(f"{form}_array" if form in ("csc", "coo") else "csr_array")

    class Kind(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, theirs) or type(x) is cls

        def __call__(cls, arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
            plain = arg.finished() if type(arg) is Filled else getattr(arg, "matrix", arg)
            if not isinstance(plain, base) and not holds_traced([plain]):
                kind = Filled if theirs.__name__ in _FILLED else Constant
                return kind(theirs(plain, shape, dtype))
            if form == "dia" and isinstance(plain, tuple):
                plain = _of_diagonals(shape, *plain)
            found = make(_every_element(plain), shape)
            return _in_format(theirs, form, found if dtype is None else found.astype(dtype))

        def holding(cls, matrix: Any) -> Any:
            """A matrix of this class with the values of one of SciPy's."""
            return _in_format(theirs, form, make(matrix))

    methods = {**_methods(theirs, base, form), "theirs": theirs}
    methods |= _COO if form == "coo" else {} if form in ("csc", "csr") else {"data": _of_other_form(theirs)}
    if theirs.__name__.endswith("_matrix"):
        methods.update(_of_matrices(methods))
    Matrix: Any = Kind(theirs.__name__, (base,), methods)
    tree.register_pytree_node(
        Matrix,
        lambda a: ((a.values,), (a.structure, a.transposed)),
        lambda rest, parts: _filled(theirs, base(*parts, *rest)),
    )
    return Matrix


def _filled(theirs: type, found: Any) -> Any:
    """The matrix ``found`` as one of the class that stands for ``theirs``."""
    made: Any = object.__new__(made_of(theirs))
    made.__init__(found.values, found.structure, found.transposed)
    return made


def _in_format(theirs: type, wanted: str, found: Any) -> Any:
    """A matrix of the class for ``theirs`` in the format ``wanted``; only from places and values SciPy adds some up."""
    found = _own("SparseArray")(found.values, found.structure, found.transposed)
    if wanted in ("csc", "csr"):
        found = found.tocsc() if wanted == "csc" else found.tocsr()
        found = found.summed() if theirs.__name__.startswith("coo") else found
    name = f"{wanted}_{theirs.__name__.partition('_')[2]}"
    return _filled(theirs if name == theirs.__name__ else getattr(sys.modules["scipy.sparse"], name), found)


def _of(theirs: type, found: Any) -> Any:
    """What a method of the class for ``theirs`` gives: in columns where SciPy's is, as a transpose."""
    if type(found) is not _own("SparseArray"):
        return found
    form = theirs.__name__[:3]
    return _in_format(theirs, found.format, found) if form in ("csc", "csr") else _filled(theirs, found)


def _methods(theirs: type, base: Any, form: str) -> dict[str, Any]:
    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)
        return lambda self, *args, **kwargs: _of(theirs, plain(self, *args, **kwargs))

    def part(name: str) -> property:
        plain = getattr(base, name).fget
        return property(lambda self: _of(theirs, plain(self)))

    def turned(wanted: str) -> Callable[..., Any]:
        return lambda self, copy=False: _in_format(theirs, wanted, self)

    return {
        **{name: kept(name) for name in (*[f"__{name}__" for name in _OPERATORS], *_KEPT, *_elementwise())},
        **{name: part(name) for name in ("T", "imag", "real")},
        **{f"to{wanted}": turned(wanted) for wanted in ("csc", "csr", "coo")},
        "asformat": lambda self, format, copy=False: _in_format(theirs, format or form, self),
        "copy": lambda self: _filled(theirs, self),
        "todense": base.toarray,
        "format": property(lambda self: form),
    }


_OPERATORS = (
    "abs",
    "add",
    "radd",
    "sub",
    "rsub",
    "neg",
    "mul",
    "rmul",
    "truediv",
    "getitem",
    "matmul",
    "rmatmul",
    "pow",
)
_KEPT = ("astype", "conj", "conjugate", "dot", "multiply", "power", "transpose", "with_data")


def _elementwise() -> tuple[str, ...]:
    found: tuple[str, ...] = import_module("funcgrad.scipy.sparse.matrices").ELEMENTWISE
    return found


def _of_matrices(methods: dict[str, Any]) -> dict[str, Any]:
    """What the operators of the older classes are."""
    multiply, product, turned = methods["multiply"], methods["__matmul__"], methods["__rmatmul__"]

    def power(self: Any, n: Any) -> Any:
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError(f"matrix ** n: n must be 1, 2, 3, ..., got {n}. Use A.power(n) for each element.")
        return functools.reduce(product, [self] * int(n))

    return {
        "__mul__": lambda self, x: multiply(self, x) if _is_number(x) else product(self, x),
        "__rmul__": lambda self, x: multiply(self, x) if _is_number(x) else turned(self, x),
        "__pow__": power,
    }


def _of_other_form(theirs: type) -> property:
    """The values of a format that has them in an array of several axes: here they stand row by row."""
    name = theirs.__name__

    def refuse(_: Any) -> Any:
        raise InputError(f"{name}.data: traced values stand in no array of this form, got {name}. Use A.tocsr().data.")

    return property(refuse)


# What matrices have that are made of places and values: these stand in the order in which they were given.


def _as_given(self: Any, values: Any) -> Any:
    order = self.structure.order
    return values if order is None else values[np.argsort(order)]


def _give(self: Any, values: Any) -> None:
    order = self.structure.order
    self.values = self.with_data(values if order is None else values[order]).values


_COO: dict[str, Any] = {
    "data": property(lambda self: _as_given(self, self.values), _give),
    "row": property(lambda self: _as_given(self, self.places()[0])),
    "col": property(lambda self: _as_given(self, self.places()[1])),
    "coords": property(lambda self: (self.row, self.col)),
}


@functools.cache
def family_of(theirs: type) -> Any:
    """What stands for a class that SciPy's sparse classes have in common: funcgrad's matrices are of it as well."""

    class Family(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, theirs) or (_is_own(x) and issubclass(_kind_of(x), theirs))

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(getattr(kind, "theirs", kind), theirs)

    return Family(theirs.__name__, (), {"__doc__": theirs.__doc__})


def _kind_of(x: Any) -> type:
    """The class of SciPy's that one of funcgrad's matrices stands for."""
    kind: type = getattr(type(x), "theirs", None) or sys.modules["scipy.sparse"].csr_array
    return kind


def is_sparse_family(cls: type) -> bool:
    """Whether ``cls`` is what classes of SciPy's sparse matrices have in common, as ``scipy.sparse.issparse`` asks."""
    home = sys.modules.get("scipy.sparse")
    return home is not None and cls.__name__ in _FAMILIES and cls in home.csr_array.__mro__ + home.csr_matrix.__mro__


def is_sparse_class(cls: type) -> bool:
    """Whether ``cls`` is one of SciPy's classes of sparse matrices."""
    home = sys.modules.get("scipy.sparse")
    return home is not None and cls.__name__ in _NAMES | _FILLED and getattr(home, cls.__name__, None) is cls


_FAMILIES = frozenset(("SparseABC", "_spbase", "sparray", "spmatrix"))
_FILLED = frozenset(f"{form}_{kind}" for form in ("dok", "lil") for kind in ("array", "matrix"))
_NAMES = frozenset(f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia") for kind in ("array", "matrix"))
