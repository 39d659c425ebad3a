"""SciPy's sparse matrices in code that was built anew: constants, and matrices that are made of traced values."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from funcgrad.numpy_code.conversions import holds_traced, is_traced

__all__ = ["Constant", "is_sparse_class", "made_of"]


def _own(name: str) -> Any:
    return getattr(import_module("funcgrad.scipy.sparse"), name)


class Constant:
    """A constant sparse matrix, whose product with a traced number has traced values. All else is SciPy's.

    Args:
        matrix: SciPy's object.
    """

    __array_ufunc__ = None  # an ndarray on the left leaves the operator to this class

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    __class__ = property(lambda self: type(self.matrix))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matrix, name)

    def _traced(self) -> Any:
        return _own("csr_array")(self.matrix.tocsr())

    def __mul__(self, other: Any) -> Any:
        return self._traced() * other if is_traced(other) and not other.shape else self.matrix * other

    def __rmul__(self, other: Any) -> Any:
        return self._traced() * other if is_traced(other) and not other.shape else other * self.matrix

    def __truediv__(self, other: Any) -> Any:
        return self._traced() / other if is_traced(other) and not other.shape else self.matrix / other

    def multiply(self, other: Any) -> Any:
        """The product element by element."""
        return self._traced().multiply(other) if is_traced(other) else self.matrix.multiply(other)


def _plain(x: Any) -> Any:
    return x.matrix if type(x) is Constant else x


def _operator(name: str, right: bool = False) -> Callable[..., Any]:
    """An operator that SciPy's object has."""
    function = getattr(operator, name)

    def applied(self: Constant, *others: Any) -> Any:
        return (
            function(*[_plain(x) for x in others], self.matrix)
            if right
            else function(self.matrix, *[_plain(x) for x in others])
        )

    return applied


for _name in ("add", "sub", "matmul", "neg", "abs", "pow", "getitem", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Constant, f"__{_name}__", _operator(_name))
for _name in ("add", "sub", "matmul"):
    setattr(Constant, f"__r{_name}__", _operator(_name, right=True))


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) or getattr(x, "shape", None) == ()


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
            found = make(plain, shape)
            return of(found if dtype is None else found.with_data(found.data.astype(dtype)))

    def of(found: Any) -> Any:
        if type(found) is not base:
            return found
        made: Any = object.__new__(Matrix)
        made.__init__(found.data, found.structure, found.transposed)
        return made

    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)
        return lambda self, *args: of(plain(self, *args))

    names = ("__add__", "__radd__", "__sub__", "__rsub__", "__neg__", "__truediv__", "__getitem__", "__matmul__")
    others = ("multiply", "transpose", "with_data")
    methods: dict[str, Any] = {name: kept(name) for name in (*names, *others)}
    for name in ("tocsr", "tocsc", "tocoo", "copy"):
        methods[name] = lambda self, copy=False: self
    methods["T"] = property(lambda self: of(base.T.fget(self)))
    methods["todense"] = base.toarray
    if of_matrices:
        multiply, product = methods["multiply"], methods["__matmul__"]
        methods["__mul__"] = lambda self, x: multiply(self, x) if _is_number(x) else product(self, x)
        methods["__rmul__"] = lambda self, x: multiply(self, x) if _is_number(x) else of(base.__rmatmul__(self, x))
    Matrix: Any = Kind(theirs.__name__, (base,), methods)
    return Matrix


def is_sparse_class(cls: type) -> bool:
    """Whether ``cls`` is one of SciPy's classes of sparse matrices."""
    home = sys.modules.get("scipy.sparse")
    return home is not None and cls.__name__ in _NAMES and getattr(home, cls.__name__, None) is cls


_NAMES = frozenset(f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia") for kind in ("array", "matrix"))
