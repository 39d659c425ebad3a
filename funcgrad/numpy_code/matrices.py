"""``numpy.matrix`` with traced values, as older programs and older sparse matrices (``A.sum(axis=1)``) make it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import is_table_class, values_of
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConversionError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.array_classes import array_of, text_of_class
from funcgrad.numpy_code.own import own
from funcgrad.writable import Proxy


def matrix(x: Any) -> Any:
    """Return an array of one or two axes as a matrix; a vector becomes a row."""
    if len(x.shape) > 2:  # NumPy drops axes of length 1
        x = x.reshape([n for n in x.shape if n > 1])
        if len(x.shape) != 2:
            raise ValueError("shape too large to be a matrix.")
    return Matrix(x.reshape(1, -1) if len(x.shape) < 2 else x)


def matrix_from_data(data: Any, dtype: Any = None, copy: bool = True) -> Any:
    """Return ``numpy.matrix(data)`` or ``numpy.asmatrix(data)``, also for a text."""
    data = np.asarray(np.matrix(data)) if isinstance(data, str) else arrays_of(data)
    if type(data) in (list, tuple):
        data = [arrays_of(row) for row in data]
    return matrix(fnp.array(data, dtype) if copy else fnp.asarray(data, dtype))


def _as_matrix(x: Any) -> Any:
    return matrix(x) if len(getattr(x, "shape", ())) == 2 else x


@wraps(fnp.multiply)
def multiply(*args: Any, **kwargs: Any) -> Any:
    """Compute ``numpy.multiply``, which is elementwise for matrices, too."""
    found = fnp.multiply(*map(arrays_of, args), **kwargs)
    return _as_matrix(found) if any(type(x) is Matrix for x in args) else found


@cache
def accepting_objects(home: str, name: str, operation: Any) -> Any:
    """Return ``operation`` such that it takes matrices and tables, if NumPy's rule for them is known; else unchanged.

    For a table it calls the method of the table, as NumPy's function does.
    """
    if home == "numpy" and (name in _OF_OBJECTS or name in _OF_TABLES):

        def call(x: Any = _ABSENT, /, *args: Any, **kwargs: Any) -> Any:
            kind = type(x)
            if kind in _ARRAYS:
                return operation(x, *args, **kwargs)
            if x is _ABSENT:
                return operation(**kwargs)
            if name in _OF_OBJECTS and (found := getattr(kind, "call_function", None)) is not None:
                return _sorted(x, *args, **kwargs) if name == "sort" else found(x, name, operation, (x, *args), kwargs)
            if name not in _OF_TABLES or not is_table_class(kind):
                return operation(x, *args, **kwargs)
            if name == "clip" and hasattr(kind, "dims"):  # xarray's method has another signature
                return x.copy(data=operation(values_of(x), *args, **kwargs))
            return getattr(np, name)(x, *args, **kwargs)

    elif name in _MATRIX_FUNCTIONS.get(home, ()):

        def call(*args: Any, **kwargs: Any) -> Any:
            given = [_without_matrices(array_of(x) if name == "norm" else x) for x in args]  # ``norm`` drops classes
            if all(map(operator.is_, given, args)):
                return operation(*args, **kwargs)
            found: Any = operation(*given, **kwargs)
            if not isinstance(found, tuple):
                return _as_matrix_result(found) if name == "dot" else _as_matrix(found)
            parts = map(_as_matrix, found)
            return tuple(parts) if type(found) is tuple else type(found)(*parts)  # a named tuple

    else:
        return operation
    accepting: Any = wraps(operation)(call)
    accepting.of_arrays = operation  # the same for ordinary arrays and numbers
    return accepting


@cache
def with_arrays_of_matrices(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``scipy.linalg`` such that it takes a matrix as its array, as SciPy's own does."""

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*map(_without_matrices, args), **{name: _without_matrices(x) for name, x in kwargs.items()})

    return call


def _sorted(x: Any, axis: Any = -1, *args: Any, **kwargs: Any) -> Any:
    """Return ``numpy.sort(x)``."""
    made = x.flatten() if axis is None else x.copy()
    made.sort(-1 if axis is None else axis, *args, **kwargs)
    return made


_ARRAYS = frozenset((Tracer, np.ndarray))
_ABSENT = object()
#: Functions that call the method of a table: missing numbers and labels are the table's.
_OF_TABLES = frozenset(
    (
        *("all", "amax", "amin", "any", "argmax", "argmin", "argsort", "around", "clip", "cumprod", "cumsum", "max"),
        *("mean", "min", "prod", "repeat", "round", "searchsorted", "std", "sum", "take", "var"),
    )
)
#: Functions that call the method of a matrix, and functions that use the array of a matrix.
_METHODS = {
    *("all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "reshape", "squeeze", "std"),
    *("sum", "transpose", "var"),
}
_ARRAY_FUNCTIONS = frozenset(("diagonal", "ravel", "trace"))
#: Functions that a class of matrices or masked arrays may compute in its own way, by its method ``call_function``.
_OF_OBJECTS = frozenset(
    (
        *_METHODS,
        *_ARRAY_FUNCTIONS,
        *("amax", "amin", "argsort", "around", "clip", "copy", "expand_dims", "flip", "fliplr", "flipud", "moveaxis"),
        *("atleast_1d", "atleast_2d", "atleast_3d", "empty_like", "full_like", "ones_like", "zeros_like"),
        *(
            "ndim",
            "ptp",
            "real_if_close",
            "repeat",
            "result_type",
            "rot90",
            "round",
            "shape",
            "size",
            "sort",
            "swapaxes",
            "take",
            "tile",
        ),
    )
)
#: Functions that return matrices for matrices where they return arrays of two axes for arrays.
_MATRIX_FUNCTIONS = {
    "numpy": ("concatenate", "dot", "hstack", "kron", "vstack"),
    "numpy.linalg": (
        *("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_power", "matrix_rank", "norm"),
        *("pinv", "qr", "slogdet", "solve", "svd"),
    ),
}


def _without_matrices(x: Any) -> Any:
    """Return ``x``, or a list of arrays, with arrays in place of matrices; ``x`` itself if there are none."""
    if type(x) is Matrix:
        return x._val
    if type(x) in (list, tuple) and any(type(part) is Matrix for part in x):
        return [arrays_of(part) for part in x]
    return x


class Matrix(Proxy):
    """Traced array of two axes that multiplies as a matrix and whose parts are matrices.

    NumPy functions with a known rule for matrices use its array.

    Args:
        value: the array.
    """

    __slots__ = ("_val",)
    __array_ufunc__ = None  # an array on the left leaves the operator to this class
    __hash__ = None  # type: ignore[assignment]
    ndim = 2

    def __init__(self, value: Any) -> None:
        self._val = value

    type_of = staticmethod(lambda x: own("numpy_code.names").counterpart(np.matrix))

    def array_class(self) -> type:
        """Return ``numpy.matrix``."""
        return np.matrix

    def as_array(self) -> Any:
        """Return the array."""
        return self._val

    def as_target(self) -> Any:
        """Return the array, which shares the memory of the matrix."""
        return self._val

    def as_operand(self) -> Any:
        """Refuse the matrix: NumPy functions without a known rule may differ for matrices and arrays."""
        raise _unknown_rule_error(self)

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a function of NumPy whose first argument is this matrix."""
        _, *rest = args
        if name in _METHODS:
            return getattr(self, name)(*rest, **kwargs)
        return operation(self._val if name in _ARRAY_FUNCTIONS else self, *rest, **kwargs)

    def replace_call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the matrix product for ``array * matrix``; see ``multiply`` for NumPy's function."""
        if name == "multiply" and args[0] is not self and not is_number(args[0]):
            return matrix(_as_two_axes(args[0]) @ self._val)
        return None

    def wrap(self, ans: Any, name: str) -> Any:
        """Return ``ans`` as a matrix; in a tuple, results with one axis, such as singular values, stay arrays."""
        if type(ans) is tuple:
            return tuple(map(_as_matrix, ans))
        if len(getattr(ans, "shape", ())) not in (0, 2):
            raise _unknown_rule_error(self)
        return ans if name == "where" else _as_matrix(ans)

    shape = property(lambda self: self._val.shape)
    A = property(lambda self: self._val)
    A1 = property(lambda self: self._val.reshape(-1))
    T = property(lambda self: Matrix(self._val.T))
    H = property(lambda self: Matrix(self._val.conj().T))
    I = property(lambda self: Matrix(fnp.linalg.inv(self._val)))  # noqa: E741
    real = property(lambda self: Matrix(self._val.real))
    imag = property(lambda self: Matrix(self._val.imag))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._val, name)
        return (lambda *args, **kwargs: _as_matrix_result(found(*args, **kwargs))) if callable(found) else found

    def __getitem__(self, key: Any) -> Any:
        found = self._val[arrays_of(key)]
        if len(found.shape) != 1:
            return _as_matrix(found)
        columns = isinstance(key, tuple) and len(key) > 1 and isinstance(key[1], (int, np.integer))
        return Matrix(found.reshape(-1, 1) if columns else found.reshape(1, -1))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._val[arrays_of(key)] = arrays_of(value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._val, dtype)

    def __repr__(self) -> str:
        return text_of_class("matrix", self._val)

    def __str__(self) -> str:
        return str(self._val)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Return the sum of the diagonal, as a matrix of one element."""
        return Matrix(self._val.trace(*args, **kwargs).reshape(1, 1))

    def __mul__(self, other: Any) -> Any:
        return Matrix(self._val * other) if is_number(other) else matrix(self._val @ _as_two_axes(other))

    def __rmul__(self, other: Any) -> Any:
        return Matrix(other * self._val) if is_number(other) else matrix(_as_two_axes(other) @ self._val)

    dot = __mul__

    def __pow__(self, n: int) -> Any:
        return Matrix(fnp.linalg.matrix_power(self._val, n))


def _as_matrix_result(x: Any) -> Any:
    """Return the result of a method as a matrix if it has axes."""
    return matrix(x) if len(getattr(x, "shape", ())) > 0 else x


def _unknown_rule_error(x: Matrix) -> ConversionError:
    return ConversionError(
        f"numpy.matrix: this function of NumPy's would lose that it is a matrix, got {describe(x._val)}{user_line()}. "
        "Take a method of the matrix, such as M.sum(axis=0), or the array numpy.asarray(M)."
    )


def is_number(x: Any) -> bool:
    """Whether ``x`` is a number, so that a product with ``x`` scales each element."""
    return isinstance(x, (int, float, complex)) or getattr(x, "shape", None) == ()


def arrays_of(x: Any) -> Any:
    """Return ``x`` with arrays in place of matrices."""
    return x._val if type(x) is Matrix else tuple(map(arrays_of, x)) if type(x) is tuple else x


def _as_two_axes(x: Any) -> Any:
    """Return ``numpy.asmatrix(x)`` as an array, as the matrix product does with operands that are not matrices."""
    x = fnp.asarray(arrays_of(x))
    return x.reshape(1, -1) if x.ndim < 2 else x


for _name in ("A", "A1", "H", "I", "T"):
    setattr(Matrix, f"get{_name}", lambda self, name=_name: getattr(self, name))


def _operator(name: str, right: bool = False) -> Callable[..., Any]:
    function = getattr(operator, name)

    def applied(self: Matrix, *others: Any) -> Any:
        given = [arrays_of(x) for x in others]
        return matrix(function(*given, self._val) if right else function(self._val, *given))

    return applied


_OPERATORS = "add sub truediv floordiv mod matmul neg pos abs eq ne lt le gt ge"
for _name in _OPERATORS.split():
    setattr(Matrix, f"__{_name}__", _operator(_name))
for _name in ("add", "sub", "truediv", "matmul"):
    setattr(Matrix, f"__r{_name}__", _operator(_name, right=True))


def _reduced(name: str) -> Callable[..., Any]:
    def method(self: Matrix, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        options |= {} if dtype is None else {"dtype": dtype}
        if axis is None:
            found = getattr(self._val, name)(**options)
        else:
            found = matrix(getattr(self._val, name)(axis=axis, keepdims=True, **options))
        if out is None:
            return found
        arrays_of(out)[...] = arrays_of(found)
        return out

    return method


for _name in ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"):
    setattr(Matrix, _name, _reduced(_name))
