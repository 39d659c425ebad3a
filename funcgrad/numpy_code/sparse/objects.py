"""SciPy's sparse matrices in rebuilt code: constant matrices, and matrices of traced values."""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.numpy.concretization import concrete
from funcgrad.numpy.creation import new
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy_code.conversions import holds_traced, is_traced
from funcgrad.numpy_code.matrices import Matrix, arrays_of
from funcgrad.numpy_code.sparse.coordinates import COORDINATES, changes, every_element, of_blocks, of_diagonals
from funcgrad.numpy_code.sparse.older import of_matrices
from funcgrad.numpy_code.sparse.recognition import FILLED, NAMES, class_of_ours, is_number, is_own, is_scipys, kind_of
from funcgrad.primitives.sparse import Structure
from funcgrad.writable import COPY_ON_WRITE, buffer, is_buffer, own, root_of


class Constant:
    """Constant sparse matrix whose products with traced values and with matrices of traced values are funcgrad's.

    All other methods are SciPy's. A matrix that the program has made becomes a matrix of traced values as soon as a
    traced value is written to it, or to the array of its values.

    Args:
        matrix: SciPy's object.
        held: the buffer that replaces the array of its values, if there is one.
        is_own: whether the program has made the matrix, so that it may change.
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operator to this class

    def __init__(self, matrix: Any, held: Any = None, *, is_own: bool = False) -> None:
        vars(self).update(matrix=matrix, held=held, is_own=is_own)

    __class__ = property(lambda self: type(self.matrix))

    @staticmethod
    def type_of(x: Any) -> Any:
        """Return what ``type(x)`` is in rebuilt code."""
        theirs: Any = type(x.matrix)
        return made_of(theirs)

    def __setattr__(self, name: str, value: Any) -> None:
        now = _now(self)
        if type(now) is not Constant:
            setattr(now, name, value)
        elif name == "data" and self.is_own and type(self.matrix).__name__[:3] != "dia":
            if holds_traced([value]):
                _become(self, fnp.asarray(value))
            else:
                vars(self)["held"] = value if is_buffer(value) else None
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
        if _now(self) is not self or type(self) is not Constant:
            return getattr(self, name)
        if name == "data" and self.is_own and isinstance(self.matrix.data, np.ndarray):
            return _held(self)
        found = getattr(self.matrix, name)
        return _method(self, name, found) if callable(found) else _constant(found, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not holds_traced([value]) and not is_own(value):
            _change(self, "__setitem__", key, _plain(value))
        else:
            _become(self)[key] = value

    def __imul__(self, other: Any) -> Any:
        return _scale(self, "__imul__", other)

    def __itruediv__(self, other: Any) -> Any:
        return _scale(self, "__itruediv__", other)

    def __mul__(self, other: Any) -> Any:
        return _beside(self, other) * _plain(other)

    def __rmul__(self, other: Any) -> Any:
        mine = _beside(self, other)
        return mine.__rmul__(other) if is_traced(other) else _plain(other) * mine

    def __truediv__(self, other: Any) -> Any:
        return _beside(self, other) / _plain(other)

    def __matmul__(self, other: Any) -> Any:
        return fnp.matmul(_sharing(self), other) if is_traced(other) else _beside(self, other) @ _plain(other)

    def __rmatmul__(self, other: Any) -> Any:
        return fnp.matmul(other, _sharing(self)) if is_traced(other) else _plain(other) @ _beside(self, other)

    def dot(self, other: Any) -> Any:
        """Return the matrix product, or the product with a number."""
        return self * other if is_number(other) else self @ other

    def multiply(self, other: Any) -> Any:
        """Return the elementwise product."""
        return _beside(self, other).multiply(_plain(other))


#: Methods of SciPy's matrices that change the matrix in place.
_CHANGES = frozenset(("eliminate_zeros", "prune", "resize", "set_shape", "setdiag", "sort_indices", "sum_duplicates"))


def _held(x: Constant) -> Any:
    """Return the buffer that replaces the array of the values."""
    if x.held is None:
        vars(x)["held"] = made = buffer(x.matrix.data)
        made.link = COPY_ON_WRITE
    return x.held


def _now(x: Constant) -> Any:
    """Return ``x`` with the writes to the array of its values applied: a matrix of traced values, or a constant."""
    held = x.held
    if held is not None:
        if not is_buffer(held):
            return _become(x, held)
        if x.matrix.data is not held._val:
            x.matrix.data = held._val
    return x


def _sharing(x: Constant) -> Any:
    """Return SciPy's matrix for code that may keep its values: the next write goes to a copy."""
    if x.is_own:
        root_of(_held(x)).link = COPY_ON_WRITE
    return x.matrix


def _beside(x: Constant, other: Any) -> Any:
    """Return the matrix as funcgrad's if ``other`` is traced or has traced values, else as SciPy's."""
    return _followed(_sharing(x)) if is_traced(other) or is_own(other) else x.matrix


def _followed(matrix: Any) -> Any:
    home, name = sys.modules["scipy.sparse"], type(matrix).__name__
    if name not in NAMES:  # LIL and DOK, which are filled element by element
        name = f"csr_{name.partition('_')[2]}"
    return made_of(getattr(home, name)).holding(matrix)


def _become(x: Constant, values: Any = None) -> Any:
    """Turn the object ``x`` into a matrix of traced ``values`` with the same coordinates.

    Raises:
        InputError: the program has not made the matrix, so that other references would not see the write.
    """
    if not x.is_own:
        raise InputError(
            f"{type(x.matrix).__name__}: a constant matrix made outside cannot take traced values, got one. Change a "
            "copy of it, A.copy()."
        )
    matrix, values = x.matrix, _held(x) if values is None else values
    theirs: Any = type(matrix)
    kind, form = made_of(theirs), theirs.__name__[:3]
    if values.shape != matrix.data.shape:
        raise ShapeError(f"{type(matrix).__name__}.data: the shape must stay {matrix.data.shape}, got {values.shape}.")
    places = (
        (matrix.row, matrix.col)
        if form == "coo"
        else (matrix.offsets,)
        if form == "dia"
        else (matrix.indices, matrix.indptr)
    )
    made = kind((values, *([places] if form == "coo" else places)), shape=matrix.shape, traced=True)
    vars(x).clear()
    object.__dict__["__class__"].__set__(x, type(made))  # the same object, for every reference to it
    vars(x).update(vars(made))
    return x


def _change(x: Constant, name: str, *args: Any, **kwargs: Any) -> Any:
    """Let SciPy change the matrix of ``x``, without a change of arrays that hold its earlier values."""
    if x.is_own and isinstance(getattr(x.matrix, "data", None), np.ndarray):
        own(root_of(_held(x)))
        x.matrix.data = x.held._val
    found = getattr(x.matrix, name)(*args, **kwargs)
    if x.held is not None and x.matrix.data is not x.held._val:
        vars(x)["held"] = None
    return x if found is x.matrix else found


def _scale(x: Constant, name: str, other: Any) -> Any:
    if not is_number(other):
        return NotImplemented
    return getattr(_become(x), name)(other) if is_traced(other) else _change(x, name, other)


def _plain(x: Any) -> Any:
    if type(x) is Constant:
        x = _now(x)
        return x.matrix if type(x) is Constant else x
    return x


def holds_values(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of traced values."""
    now = _now(x) if type(x) is Constant else x
    return is_own(now) and is_traced(now.values)


def plain_matrix(x: Any) -> Any:
    """Return SciPy's matrix for a matrix of constants; any other value unchanged."""
    x = _plain(x)
    return x.plain("a function of SciPy's") if is_own(x) and (is_plain(x.values) or is_buffer(x.values)) else x


def standing_for(x: Any) -> Any:
    """Return a result of compiled code with sparse matrices that take traced values."""
    if type(x) is tuple:
        return tuple(map(standing_for, x))
    return _constant(x) if type(x).__module__.startswith("scipy.sparse") else x


def _constant(x: Any, source: Constant | None = None) -> Any:
    """Return a matrix that a SciPy method returned as one that takes traced values; any other value unchanged.

    Args:
        x: the result of the method.
        source: the matrix whose method it was; ``x`` may share memory with its values.
    """
    if type(x) is np.matrix:
        return Matrix(new(np.asarray(x)))
    if not is_scipys(x):
        return x
    if type(x).__name__ in FILLED:
        return Filled(x)
    if source is None:
        return Constant(x, is_own=True)
    if x is source.matrix:
        return source
    ours, theirs = getattr(source.matrix, "data", None), x.data
    shares = type(ours) is type(theirs) is np.ndarray and np.may_share_memory(ours, theirs)
    if not shares or not source.is_own:
        return Constant(x, is_own=not shares)
    held = _held(source)
    return Constant(x, held if theirs.shape == held.shape and theirs.dtype == held.dtype else None, is_own=True)


def _method(x: Constant, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(is_traced(a) or is_own(_plain(a)) for a in args):
            return getattr(_become(x) if name in _CHANGES else _followed(_sharing(x)), name)(*args, **kwargs)
        given = [_plain(a) for a in args]
        return _change(x, name, *given, **kwargs) if name in _CHANGES else _constant(plain(*given, **kwargs), x)

    return call


class Filled:
    """Sparse matrix that a program fills, ``lil_matrix`` or ``dok_matrix``, also with traced values.

    Args:
        matrix: SciPy's object, which holds the constants.

    Attributes:
        written: the traced values, by row and column.
    """

    __array_ufunc__ = None

    __slots__ = ("matrix", "written")

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.written: dict[tuple[int, int], Any] = {}

    __class__ = property(lambda self: type(self.matrix))

    @staticmethod
    def type_of(x: Any) -> Any:
        """Return what ``type(x)`` is in rebuilt code."""
        theirs: Any = type(x.matrix)
        return made_of(theirs)

    def __setitem__(self, key: Any, value: Any) -> None:
        value = value.toarray() if hasattr(value, "toarray") else value
        if not holds_traced([value]) and not self.written:
            self.matrix[key] = value
            return
        rows, columns = _places_of(key, self.matrix.shape)
        value = fnp.asarray(value)
        parts = fnp.reshape(value if value.size == rows.size else fnp.broadcast_to(value, rows.shape), -1)
        for place, part in zip(zip(rows.flat, columns.flat, strict=True), parts, strict=True):
            if is_traced(part):
                self.written[place] = part
                self.matrix[place] = 1.0  # a zero is not stored
            else:
                self.written.pop(place, None)
                self.matrix[place] = part

    def __getitem__(self, key: Any) -> Any:
        rows, columns = _places_of(key, self.matrix.shape)
        places = list(zip(rows.flat, columns.flat, strict=True))
        if self.written.keys().isdisjoint(places):
            return _constant(self.matrix[key])
        found = [self.written.get(place, self.matrix[place]) for place in places]
        return fnp.stack(found).reshape(rows.shape) if rows.shape else found[0]

    def finished(self) -> Any:
        """Return the matrix in compressed rows (CSR)."""
        if not self.written:
            return Constant(self.matrix.tocsr(), is_own=True)
        rest = self.matrix.tocoo()
        there = (rest.data != 0) & ~np.isin(rest.row * rest.shape[1] + rest.col, self._numbers())
        rows, columns = np.transpose(list(self.written))
        data = fnp.concatenate([rest.data[there], fnp.stack(list(self.written.values()))])
        places = np.concatenate([rest.row[there], rows]), np.concatenate([rest.col[there], columns])
        kind = f"csr_{type(self.matrix).__name__.partition('_')[2]}"
        return made_of(getattr(sys.modules["scipy.sparse"], kind))((data, places), self.matrix.shape)

    def _numbers(self) -> list[int]:
        """Return the flat indices of the elements with traced values."""
        return [row * self.matrix.shape[1] + column for row, column in self.written]

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write to the ``k``-th diagonal."""
        rows, columns, values = changes().on_diagonal(values, k, self.matrix.shape)
        self[rows, columns] = values

    def get(self, key: Any, default: Any = 0.0) -> Any:
        """Return the element at ``key``, or ``default`` if there is none, as ``dok_matrix.get`` does."""
        return self.written[key] if key in self.written else self.matrix.get(key, default)

    def items(self) -> list[tuple[tuple[int, int], Any]]:
        """Return the coordinates and their elements, as ``dok_matrix.items`` does."""
        return [(place, self.written.get(place, value)) for place, value in self.matrix.items()]

    def keys(self) -> Any:
        """Return the coordinates, as ``dok_matrix.keys`` does."""
        return self.matrix.keys()

    def values(self) -> list[Any]:
        """Return the elements, as ``dok_matrix.values`` does."""
        return [value for _, value in self.items()]

    def __len__(self) -> int:
        return len(self.matrix)

    def copy(self) -> Filled:
        """Return a copy, which can be filled further."""
        made = Filled(self.matrix.copy())
        made.written = dict(self.written)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finished() if self.written else Constant(self.matrix, is_own=True), name)


def _places_of(key: Any, shape: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = changes().places_of(key, shape)
    return found


def _by_finished(name: str) -> Callable[..., Any]:
    function = getattr(operator, name.removeprefix("r"))
    if name.startswith("r"):
        return lambda self, other: function(other, self.finished())
    return lambda self, *others: function(self.finished(), *others)


for _name in ("add", "sub", "mul", "matmul", "truediv", "neg", "radd", "rsub", "rmul", "rmatmul"):
    setattr(Filled, f"__{_name}__", _by_finished(_name))


def _operator(name: str, right: bool = False) -> Callable[..., Any]:
    """Return an operator of ``Constant``: SciPy's, or funcgrad's if the other operand is funcgrad's matrix."""
    function = getattr(operator, name)

    def applied(self: Constant, *others: Any) -> Any:
        given = [_plain(x) for x in others]
        mine = _followed(_sharing(self)) if any(map(is_own, given)) else self.matrix
        if name in ("add", "sub") and is_traced(given[0]):
            mine = mine.toarray()  # the sum with an array is an array
        return _constant(function(*given, mine) if right else function(mine, *given), self)

    return applied


def _unless_traced(name: str) -> Callable[..., Any]:
    """Return a method of ``Constant`` that runs the method for traced values once these were written to the matrix."""
    plain = getattr(Constant, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        now = _now(self)
        return (plain if type(now) is Constant else getattr(type(now), name))(now, *args, **kwargs)

    return method


for _name in ("add", "sub", "neg", "abs", "pow", "getitem", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Constant, f"__{_name}__", _operator(_name))
for _name in ("add", "sub"):
    setattr(Constant, f"__r{_name}__", _operator(_name, right=True))
for _name in [name for name in vars(Constant) if callable(vars(Constant)[name])]:
    if _name not in ("__init__", "__getattr__", "__setattr__", "type_of"):
        setattr(Constant, _name, _unless_traced(_name))


@functools.cache
def made_of(theirs: type) -> Any:
    """Return the class that replaces a SciPy sparse class, and whose matrices may have traced values.

    In the older classes, such as ``csr_matrix``, ``*`` is the matrix product and ``**`` the matrix power.
    """
    base, form = class_of_ours("SparseArray"), theirs.__name__[:3]
    make = class_of_ours(f"{form}_array" if form in ("csc", "coo") else "csr_array")

    class Kind(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, theirs) or type(x) is cls

        def __call__(
            cls, arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False, traced: bool = False, **rest: Any
        ) -> Any:
            arg = arrays_of(arg)
            plain = arg.finished() if type(arg) is Filled and arg.written else _plain(getattr(arg, "matrix", arg))
            if not isinstance(plain, base) and not traced and not holds_traced([plain]):
                made = _of_constants(theirs, plain, shape, dtype, copy, **rest)
                return _constant(made.matrix, arg) if type(arg) is type(made) is Constant else made
            if form == "dia" and isinstance(plain, tuple):
                plain = of_diagonals(shape, *plain)
            if form == "bsr" and isinstance(plain, tuple) and len(plain) == 3:
                plain = of_blocks(shape, fnp.asarray(plain[0]), plain[1:])
            found = plain if isinstance(plain, base) else make(every_element(plain), shape)
            as_given = form == getattr(found, "format", "") and isinstance(plain, tuple) and len(plain) == 3
            found = _filled(theirs, found) if as_given else _in_format(theirs, form, found)
            if form == "coo" and isinstance(plain, tuple):
                found.given = fnp.asarray(plain[0])  # later writes to this array change the matrix as well
            found = found if dtype is None else found.astype(dtype, copy=False)
            return found.copy() if copy else found

        def holding(cls, matrix: Any) -> Any:
            """Return a matrix of this class with the values of a SciPy matrix."""
            return _in_format(theirs, form, make(matrix))

    methods = {**_methods(theirs, base, form), "theirs": theirs}
    methods |= COORDINATES if form == "coo" else {} if form in ("csc", "csr") else {"data": _of_other_form(theirs)}
    if theirs.__name__.endswith("_matrix"):
        methods.update(of_matrices(methods, base))
    Matrix: Any = Kind(theirs.__name__, (base,), methods)
    tree.register_pytree_node(
        Matrix,
        lambda a: ((a.values,), (a.structure, a.transposed)),
        lambda rest, parts: _filled(theirs, base(*parts, *rest)),
    )
    return Matrix


def _of_constants(theirs: type, plain: Any, shape: Any, dtype: Any, copy: bool, **rest: Any) -> Any:
    """Return a matrix of constants that sees later writes to the array of its values."""
    if theirs.__name__ in FILLED:
        return Filled(theirs(plain, shape, dtype, copy))
    given: Any = plain[0] if isinstance(plain, tuple) and is_buffer(plain[0]) else None
    if given is not None:
        plain = (given._val, *plain[1:])
    made: Any = theirs(plain, shape, dtype, copy, **rest)
    if given is None or made.data.shape != given.shape or not np.may_share_memory(made.data, given._val):
        return Constant(made, is_own=True)
    made.data = given._val
    return Constant(made, given, is_own=True)


def _filled(theirs: type, found: Any) -> Any:
    """Return the matrix ``found`` as one of the class that replaces ``theirs``."""
    made: Any = object.__new__(made_of(theirs))
    made.__init__(found.values, found.structure, found.transposed)
    return made


def _in_format(theirs: type, wanted: str, found: Any) -> Any:
    """Return ``found`` in the format ``wanted``. As in SciPy, only conversions from COO add up duplicates."""
    given = found.given if wanted == "coo" and hasattr(found, "given") else None
    found = class_of_ours("SparseArray")(found.values, found.structure, found.transposed)
    if wanted in ("csc", "csr"):
        found = found.tocsc() if wanted == "csc" else found.tocsr()
        found = found.summed() if theirs.__name__.startswith("coo") else found
        a = found.structure
        found.structure = a if a.order is None else Structure(a.indices, a.indptr, a.shape)
    name = f"{wanted}_{theirs.__name__.partition('_')[2]}"
    made = _filled(theirs if name == theirs.__name__ else getattr(sys.modules["scipy.sparse"], name), found)
    if given is not None:
        made.given = given  # values that other references share
    return made


def _of(theirs: type, found: Any) -> Any:
    """Return the result of a method of the class that replaces ``theirs``; a transpose may change CSR to CSC."""
    if type(found) is not class_of_ours("SparseArray"):
        return found
    form = theirs.__name__[:3]
    return _in_format(theirs, found.format, found) if form in ("csc", "csr") else _filled(theirs, found)


def _methods(theirs: type, base: Any, form: str) -> dict[str, Any]:
    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)
        sums_up = name in ("__abs__", "power", *_elementwise())

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if sums_up:  # SciPy's methods do so in place
                self.sum_duplicates()
            found = plain(self, *map(arrays_of, args), **kwargs)
            like = _liked(name, (self, *args), kwargs) if is_own(found) else None
            return _of(theirs, found) if like is None else _arranged(like, found)

        return method

    def part(name: str) -> property:
        plain = getattr(base, name).fget
        return property(lambda self: _of(theirs, plain(self)))

    return {
        **{name: kept(name) for name in (*[f"__{name}__" for name in _OPERATORS], *_KEPT, *_elementwise())},
        **{f"__{name}__": _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
        **{name: _asked(name) for name in ("argmax", "argmin")},
        **_shared(theirs, base, form),
        **{f"to{wanted}": _converted(wanted) for wanted in ("bsr", "dia", "dok", "lil")},
        "__getattr__": _missing,
        "__hash__": None,
        "format": property(lambda self: form),
        "imag": part("imag"),
        "todense": base.toarray,
        "_shape_as_2d": property(lambda self: self.shape),
    }


def _turned(theirs: type, form: str, wanted: str) -> Callable[..., Any]:
    plain = signature(getattr(theirs, f"to{wanted}")).parameters["copy"].default

    def turn(self: Any, copy: bool = plain) -> Any:
        if wanted == form:
            return self.copy() if copy else self
        made = _in_format(theirs, wanted, self)
        return made.copy() if (copy or form == "coo") and made.stored is self.stored else made

    return turn


def _shared(theirs: type, base: Any, form: str) -> dict[str, Any]:
    """Return the methods whose results share memory with the matrix, or do not, as SciPy's do."""

    def formatted(self: Any, format: str | None, copy: bool = False) -> Any:
        return getattr(self, f"to{format or form}")(copy=copy)

    def turn(self: Any, axes: Any = None, copy: bool = False) -> Any:
        found = _of(theirs, base.T.fget(self))
        if form == "coo" and self.structure is found.structure:
            found.given = self.given
        return found.copy() if copy else found

    def conjugate(self: Any, copy: bool = True) -> Any:
        if self.dtype.kind == "c":
            return _of(theirs, base.conjugate(self))
        return self.copy() if copy else self

    def cast(self: Any, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        if np.dtype(dtype) == self.dtype:
            return self.copy() if copy else self
        return _of(theirs, base.astype(self, dtype))

    def copied(self: Any) -> Any:
        made = _filled(theirs, self)
        made.stored = fnp.copy(self.stored)
        return made

    def real(self: Any) -> Any:
        return _in_format(theirs, form, self) if self.dtype.kind != "c" else _of(theirs, base.real.fget(self))

    return {
        **{f"to{wanted}": _turned(theirs, form, wanted) for wanted in ("csc", "csr", "coo")},
        "T": property(turn),
        "asformat": formatted,
        "astype": cast,
        "conj": conjugate,
        "conjugate": conjugate,
        "copy": copied,
        "real": property(real),
        "transpose": turn,
    }


def _missing(self: Any, name: str) -> Any:
    theirs = type(self).theirs
    advice = "" if name.startswith("_") or not hasattr(theirs, name) else ". Use A.toarray(), or a method that it has"
    raise AttributeError(f"{theirs.__name__} of traced values has no attribute {name!r}{advice}", name=name, obj=self)


def _comparison(name: str) -> Callable[..., Any]:
    """Return a comparison of the elements: it returns SciPy's matrix of booleans, which Python may branch on."""
    function = getattr(operator, name)

    def compare(self: Any, other: Any) -> Any:
        other = other.plain(name) if is_own(other) else _plain(other)
        return _constant(function(self.plain(name), concrete(other, name) if isinstance(other, Tracer) else other))

    return compare


def _asked(name: str) -> Callable[..., Any]:
    """Return a method whose result is an index, not an element, which Python may use."""
    return lambda self, *args, **kwargs: getattr(self.plain(name), name)(*args, **kwargs)


def _converted(wanted: str) -> Callable[..., Any]:
    """Return a conversion to a format without a class for traced values: filled (DOK, LIL), or to BSR or DIA."""

    def convert(self: Any, *args: Any, copy: bool = False) -> Any:
        theirs: Any = type(self).theirs
        kind = getattr(sys.modules["scipy.sparse"], f"{wanted}_{theirs.__name__.partition('_')[2]}")
        if kind is theirs:
            return self.copy() if copy else self
        if kind.__name__ not in FILLED:
            return _in_format(theirs, wanted, self.copy())
        made, whole = Filled(kind(self.shape)), self.summed()
        for *place, value in zip(*whole.places(), whole.values, strict=True):
            made[tuple(place)] = value
        return made

    return convert


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
_KEPT = ("dot", "maximum", "minimum", "multiply", "power", "reshape", "with_data")


def _elementwise() -> tuple[str, ...]:
    found: tuple[str, ...] = import_module("funcgrad.scipy.sparse.matrices").ELEMENTWISE
    return found


def _of_other_form(theirs: type) -> property:
    """Return a ``data`` that raises: this format keeps values in an array of several axes, here they are row by row."""
    name = theirs.__name__

    def refuse(_: Any) -> Any:
        raise InputError(f"{name}.data: traced values stand in no array of this form, got {name}. Use A.tocsr().data.")

    return property(refuse)


@functools.cache
def _numbers() -> Any:
    """Return the generator of the numbers that replace traced values: all differ, so that no sum of them is zero.

    ``numpy.random`` is imported at the first call.
    """
    return np.random.default_rng(0)


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """Apply ``change`` to the leaves of nested lists and tuples, and of an object array."""
    if type(x) is np.ndarray and x.dtype == object:
        x = x.tolist()
    return type(x)(_mapped(change, part) for part in x) if type(x) in (list, tuple) else change(x)


def _stand_in(x: Any) -> Any:
    """Return what SciPy gets in place of ``x``: constants unchanged, random numbers for traced values."""
    x = _plain(x)
    if is_buffer(x):
        return x._val
    if is_own(x):
        theirs: Any = kind_of(x)
        values = _numbers().uniform(0.5, 1.5, x.nnz)
        if theirs.__name__[:3] in ("csc", "csr"):
            return theirs((values, x.indices, x.indptr), shape=x.shape)
        return theirs(sys.modules["scipy.sparse"].coo_array((values, x.coords), shape=x.shape))
    if isinstance(x, Tracer):
        return _numbers().uniform(0.5, 1.5, x.shape)
    return x.finished().matrix if type(x) is Filled else x._val if type(x) is Matrix else x


def _liked(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of SciPy's method for the stand-ins of ``args``; None if it is not a sparse matrix."""
    owner, *given = _mapped(_stand_in, args)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            like = getattr(owner, name)(*given, **kwargs)
    except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
        return None
    return like if is_scipys(like) else None


def _arranged(like: Any, found: Any) -> Any:
    """Return ``found`` in the class, format and order of SciPy's matrix ``like`` if their coordinates agree."""
    form, places = like.format, like.tocoo()
    if form not in ("coo", "csc", "csr") or like.ndim != 2 or like.nnz == 0:
        return _in_format(type(like), form, found)
    whole = class_of_ours("SparseArray")(found.values, found.structure, found.transposed).tocsr().summed()
    first, many, order = whole._found(places.row, places.col)
    if len(places.row) != whole.nnz or (many != 1).any() or len(np.unique(first)) < whole.nnz:
        return _in_format(type(like), form, found)
    values = whole.values[order[first]]
    data = (values, (places.row, places.col)) if form == "coo" else (values, like.indices, like.indptr)
    theirs: Any = type(like)
    return made_of(theirs)(data, shape=like.shape, traced=True)


@functools.cache
def standing(ours: Callable[..., Any], theirs: Any) -> Any:
    """Return a function of ``scipy.sparse`` that makes matrices of the class and format that SciPy's makes."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = _mapped(lambda x: x.finished() if type(x) is Filled else x, args)
        given: list[Any] = []
        _mapped(given.append, (*args, *kwargs.values()))
        like = theirs(*_mapped(_stand_in, args), **kwargs)
        if not any(is_traced(x) or is_own(_plain(x)) for x in given):
            return _constant(like)
        return _arranged(like, ours(*_mapped(_plain, args), **kwargs))

    return call
