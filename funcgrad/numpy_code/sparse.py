"""SciPy's sparse matrices in code that was built anew: constants, and matrices that are made of traced values."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
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
        self.matrix = matrix

    __class__ = property(lambda self: type(self.matrix))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matrix, name)

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


def _is_own(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of funcgrad's."""
    home = sys.modules.get("funcgrad.scipy.sparse")
    return home is not None and issubclass(type(x), home.SparseArray)


def _operator(name: str, right: bool = False) -> Callable[..., Any]:
    """An operator that SciPy's object has, and those of funcgrad's beside one of these."""
    function = getattr(operator, name)

    def applied(self: Constant, *others: Any) -> Any:
        mine = self._followed() if any(map(_is_own, others)) else self.matrix
        given = [_plain(x) for x in others]
        return function(*given, mine) if right else function(mine, *given)

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


#: Methods that give a matrix in another format; all of these have one.
_FORMATS: dict[str, Any] = dict.fromkeys(("tocsr", "tocsc", "tocoo", "copy"), lambda self, copy=False: self)
_FORMATS["asformat"] = lambda self, format, copy=False: self


@cache
def made_of(theirs: type) -> Any:
    """The class that stands for a class of SciPy's sparse matrices, whose matrices may have traced values.

    Of the older classes, ``csr_matrix`` and the like, ``*`` is the product of matrices.
    """
    base = _own("SparseArray")
    in_columns, of_matrices = theirs.__name__.startswith("csc"), theirs.__name__.endswith("_matrix")
    make = _own("csc_array" if in_columns else "csr_array")

    class Kind(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, theirs) or type(x) is cls

        def __call__(cls, arg: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Any:
            plain = getattr(arg, "matrix", arg)
            if not isinstance(plain, base) and not holds_traced([plain]):
                return Constant(theirs(plain, shape, dtype))
            found = make(_every_element(plain), shape)
            return of(found if dtype is None else found.with_data(found.data.astype(dtype)))

        def holding(cls, matrix: Any) -> Any:
            """A matrix of this class with the values of one of SciPy's."""
            return of(make(matrix))

    def of(found: Any) -> Any:
        if type(found) is not base:
            return found
        made: Any = object.__new__(Matrix)
        made.__init__(found.data, found.structure, found.transposed)
        return made

    def refilled(rest: Any, parts: Any) -> Any:
        return of(base(*parts, *rest))

    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)
        return lambda self, *args: of(plain(self, *args))

    names = ["add", "radd", "sub", "rsub", "neg", "mul", "rmul", "truediv", "getitem", "matmul", "rmatmul"]
    others = ("dot", "multiply", "transpose", "with_data")
    methods: dict[str, Any] = {name: kept(name) for name in (*[f"__{name}__" for name in names], *others)}
    methods.update(_FORMATS)
    methods["T"] = property(lambda self: of(base.T.fget(self)))
    methods["todense"] = base.toarray
    if of_matrices:
        multiply, product = methods["multiply"], methods["__matmul__"]
        turned = methods["__rmatmul__"]
        methods["__mul__"] = lambda self, x: multiply(self, x) if _is_number(x) else product(self, x)
        methods["__rmul__"] = lambda self, x: multiply(self, x) if _is_number(x) else turned(self, x)
    Matrix: Any = Kind(theirs.__name__, (base,), {**methods, "theirs": theirs})
    tree.register_pytree_node(Matrix, lambda a: ((a.data,), (a.structure, a.transposed)), refilled)
    return Matrix


@cache
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
    return home is not None and cls.__name__ in _NAMES and getattr(home, cls.__name__, None) is cls


_FAMILIES = frozenset(("SparseABC", "_spbase", "sparray", "spmatrix"))
_NAMES = frozenset(f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia") for kind in ("array", "matrix"))
