"""Operators, attributes and methods with which tracers behave like ndarrays.

``install`` sets them on ``core.Tracer`` once, when funcgrad is imported, because the engine in lower layers does not
know NumPy's functions. Operators are the functions of primitives, so ``x * y`` costs one call.

Tracers that a program made can be written to, see ``writes.assignment``. Like an ndarray, a tracer is not hashable.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from types import MethodType
from typing import Any, NoReturn

import numpy as np

from funcgrad.backend import dtype_of, is_table, namespace_of
from funcgrad.core import READ_ONLY, Primitive, Tracer, describe, plain_value, shallow_copy
from funcgrad.errors import ConversionError, InputError, ShapeError, UnsizedError
from funcgrad.generated import with_values
from funcgrad.kinds.arguments import ARRAY_MAKER, bind_checked
from funcgrad.kinds.linear import permute
from funcgrad.kinds.linear import reshape as refill
from funcgrad.numpy import (
    choice,
    creation,
    cumulative,
    diagonals,
    elementwise,
    indexing,
    products,
    rearranging,
    reductions,
    shaping,
    sorting,
    writing,
)
from funcgrad.numpy.axes import resolve_shape
from funcgrad.numpy.flat import Flat, write_flat
from funcgrad.numpy.layout import in_memory_order
from funcgrad.numpy.plain_values.concretization import CONCRETIZATION, user_line
from funcgrad.numpy.plain_values.guarded import guarded_comparison
from funcgrad.numpy.protocols import PROTOCOLS
from funcgrad.numpy.tables import operations
from funcgrad.numpy.updating import At
from funcgrad.numpy.writes import viewing
from funcgrad.numpy.writes.assignment import in_place_operator, set_all_items, set_item
from funcgrad.primitives import arithmetic, comparison
from funcgrad.primitives.index_spec import SELECTION_MAKER
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.products import matmul
from funcgrad.typing import Array
from funcgrad.writable import is_buffer, is_number

Method = Callable[..., Any]


def install(cls: type[Tracer]) -> None:
    """Set the operators, attributes and methods of an ndarray that a tracer can have on ``cls``.

    Example:
        >>> grad(lambda x: (2 * x.T[0] ** 2).sum())(np.array([3.0, 4.0]))
        array([12.,  0.])
    """
    members = {**_OPERATORS, **_CONTAINER, **_ATTRIBUTES, **_METHODS, **_IN_PLACE, **CONCRETIZATION, **PROTOCOLS}
    for name, member in members.items():
        setattr(cls, name, member)
    operations.install()
    ARRAY_MAKER.append(creation.as_value)
    SELECTION_MAKER.append(lambda x, index: import_module("funcgrad.numpy.selections").selection_of(x, index))
    setattr(cls, "shape", cls.__dict__["shape"].setter(viewing.set_shape))  # noqa: B010  (mypy takes it for a method)
    setattr(cls, "dtype", cls.__dict__["dtype"].setter(viewing.refuse_dtype))  # noqa: B010


def _as_operator(operation: Method, *, reflected: bool = False, in_place: bool = False) -> Method:
    """Return the operator for an operation of two arguments; a replayed graph records it as an operator.

    Python's operators may round differently from NumPy's functions: products of complex numbers depend on the order.
    """

    def bound(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        trace = args[0]._trace
        if not trace.is_bit_exact:
            return bind_checked(primitive, args, params)
        return trace.compute_operator(operation, *(args[::-1] if reflected else args), in_place=in_place)

    made: Method = with_values(
        operation, bind_checked=bound, mixed=with_values(operation.__globals__["mixed"], bind_checked=bound)
    )
    return made


def _reflected_power(x: Tracer, y: Any) -> Any:
    return x._trace.compute_operator(arithmetic.power, y, x) if x._trace.is_bit_exact else arithmetic.power(y, x)


def _equality(operation: Method, numpys: Method) -> Method:
    """Return ``==`` or ``!=``; values that are not numeric never equal a tracer, so ``x == None`` is allowed.

    As in NumPy, arrays and NumPy's numbers are compared with each element of a sequence, a buffer, or an object that
    converts itself to an array.
    """

    def compare(x: Array, y: Any) -> Any:
        if is_buffer(x) and x.dtype.kind in "SU":  # a constant array of strings, which only NumPy can compare
            return numpys(x._val, y._val if is_buffer(y) else y)
        if namespace_of(y) is not None or isinstance(y, Tracer) or is_table(y):
            return operation(x, y)
        if isinstance(x, (float, complex)) and not isinstance(x, np.generic):  # Python's own number: y decides
            return operation(x, y) if isinstance(y, Decimal) else NotImplemented
        other = _as_operand(y)
        return NotImplemented if other is None else operation(x, other)

    return compare


def _as_operand(y: Any) -> Any:
    """Return ``y``, which is no array or number, as what NumPy's ``==`` compares; None if that has no numbers."""
    if isinstance(y, (list, tuple, Decimal)):  # a Decimal is refused, with a remedy
        return y
    kind = type(y)
    if hasattr(kind, "__array__"):  # unless NumPy leaves the comparison to y
        own = hasattr(kind, "__array_ufunc__") or getattr(kind, "__array_priority__", 0.0) > 0.0
        return None if own else y
    if isinstance(y, (memoryview, array)) or hasattr(y, "__array_interface__"):
        return np.asarray(y)
    return list(y) if isinstance(y, Sequence) and not isinstance(y, (str, bytes, bytearray)) else None


def _abs(x: Tracer) -> Any:
    return x._trace.compute_operator(arithmetic.absolute, x) if x._trace.is_bit_exact else arithmetic.absolute(x)


def _operators(name: str, symbol: str, operation: Method, *, commutes: bool = False) -> dict[str, Method]:
    """Return an operator, its reflection, which Python calls on the right operand, and the operator in place."""
    reflected = operation if commutes else lambda x, y: operation(y, x)
    return {f"__{name}__": operation, f"__r{name}__": reflected, f"__i{name}__": in_place_operator(operation, symbol)}


_OPERATORS: dict[str, Any] = {
    **_operators("add", "+=", arithmetic.add, commutes=True),
    **_operators("sub", "-=", arithmetic.subtract),
    "__mul__": _as_operator(arithmetic.multiply),
    "__rmul__": _as_operator(arithmetic.multiply, reflected=True),
    "__imul__": in_place_operator(_as_operator(arithmetic.multiply, in_place=True), "*="),
    **_operators("truediv", "/=", arithmetic.divide),
    "__pow__": _as_operator(arithmetic.power),
    "__rpow__": _reflected_power,
    "__ipow__": in_place_operator(_as_operator(arithmetic.power, in_place=True), "**="),
    **_operators("floordiv", "//=", comparison.floor_divide),
    **_operators("mod", "%=", arithmetic.remainder),
    "__divmod__": lambda x, y: (comparison.floor_divide(x, y), arithmetic.remainder(x, y)),
    "__rdivmod__": lambda x, y: (comparison.floor_divide(y, x), arithmetic.remainder(y, x)),
    **_operators("matmul", "@=", matmul),
    **_operators("and", "&=", comparison.bitwise_and, commutes=True),
    **_operators("or", "|=", comparison.bitwise_or, commutes=True),
    **_operators("xor", "^=", comparison.bitwise_xor, commutes=True),
    **_operators("lshift", "<<=", comparison.left_shift),
    **_operators("rshift", ">>=", comparison.right_shift),
    "__neg__": arithmetic.negative,
    "__pos__": arithmetic.positive,
    "__abs__": _abs,
    "__invert__": comparison.invert,
    "__lt__": guarded_comparison(comparison.less),
    "__le__": guarded_comparison(comparison.less_equal),
    "__gt__": guarded_comparison(comparison.greater),
    "__ge__": guarded_comparison(comparison.greater_equal),
    "__eq__": guarded_comparison(_equality(comparison.equal, operator.eq), equality=True),
    "__ne__": guarded_comparison(_equality(comparison.not_equal, operator.ne), equality=True),
}


class _Length:
    """Descriptor of ``__len__``; numbers have none, so ``hasattr(x, "__len__")`` is False for numbers."""

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is not None and not x.shape and np.isscalar(x):
            raise UnsizedError(
                f"len(x): a number has none, got {describe(x)}{user_line()}. Use np.atleast_1d(x) for an array."
            )
        return self if x is None else MethodType(_len, x)


def _len(x: Array) -> int:
    if not x.shape:
        raise TypeError("len() of unsized object")
    length: int = x.shape[0]
    return length


def _iter(x: Array) -> Iterator[Array]:
    """Iterate over the first axis; the pullback adds all cotangents of the entries into one array."""
    if not x.shape:
        if np.isscalar(x):  # in rebuilt code np.isscalar is True for traced numbers
            raise ConversionError(
                f"iter(x): a number has no elements, got {describe(x)}{user_line()}. Use np.atleast_1d(x) for an array."
            )
        raise TypeError("iteration over a 0-d array")
    return (getitem(x, i) for i in range(x.shape[0]))


def _round_number(x: Array, digits: int | None = None) -> Array:
    """Round as Python's ``round``: without ``digits`` the result is an integer."""
    rounded = comparison.round(x, decimals=digits or 0)
    if digits is not None:
        return rounded
    known = type(rounded) is not Tracer and isinstance(rounded, (float, np.floating))
    return int(rounded) if known else rounded.astype(int)


def _delete_item(x: Tracer, index: Any) -> None:
    raise ShapeError(
        f"del x[i]: an array keeps its elements, got {describe(x)}{user_line()}. Use funcgrad.numpy.delete(x, i)."
    )


_CONTAINER: dict[str, Any] = {
    "__len__": _Length(),
    "__iter__": _iter,
    "__contains__": lambda x, y: bool(reductions.any(x == y)),
    "__getitem__": getitem,
    "__setitem__": set_item,
    "__delitem__": _delete_item,
    "__round__": _round_number,
    "is_integer": lambda x: bool(x == comparison.rint(x)),
}


def _matrix_transpose(x: Array) -> Array:
    if len(x.shape) < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return shaping.matrix_transpose(x)


def _set_imag(x: Tracer, y: Any) -> None:
    if x.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    set_item(elementwise.imag(x), ..., y)


#: Replacements for attributes of PyTorch's tensors.
TORCH_HINTS = {
    "backward": "grad(f)(x), where f returns the value computed here",
    "detach": "stop_gradient(x)",
    "numpy": "x as it is: NumPy's functions take it",
    "clone": "x.copy()",
    "grad": "grad(f)(x): gradients are returned",
    "permute": "x.transpose(axes)",
    "unsqueeze": "numpy.expand_dims(x, axis)",
    **dict.fromkeys(("contiguous", "cpu"), "x as it is"),
    **dict.fromkeys(("requires_grad_", "requires_grad"), "grad(f)(x), which differentiates f with respect to x"),
}


def _torch_attribute(name: str, instead: str) -> property:
    """Return a property that raises ``AttributeError`` with a hint, so that ``hasattr`` is False."""

    def get(x: Tracer) -> Any:
        raise AttributeError(
            f"x.{name}: PyTorch's tensors have this attribute, traced values do not, got {describe(x)}{user_line()}. "
            f"Use {instead}.",
            name=name,
        )

    return property(get, doc=f"Not available: use {instead}.")


_ATTRIBUTES: dict[str, Any] = {
    "ndim": property(lambda x: len(x.shape), doc="Number of axes."),
    "size": property(lambda x: math.prod(x.shape), doc="Number of elements."),
    "itemsize": property(lambda x: x.dtype.itemsize, doc="Number of bytes of one element."),
    "nbytes": property(lambda x: math.prod(x.shape) * x.dtype.itemsize, doc="Number of bytes of all elements."),
    "T": property(lambda x: permute(x, axes=tuple(range(len(x.shape) - 1, -1, -1))), doc="Axes in reverse order."),
    "mT": property(_matrix_transpose, doc="Last two axes exchanged."),
    "real": property(
        lambda x: elementwise.real(x),
        lambda x, y: set_item(elementwise.real(x), ..., y),
        doc="Real part, which can be written to.",
    ),
    "imag": property(lambda x: elementwise.imag(x), _set_imag, doc="Imaginary part, which can be written to."),
    "flat": property(Flat, write_flat, doc="Flat view of the elements, to read and to write."),
    "at": property(At, doc="Changed copies of the array, as in ``x.at[i].set(y)``."),
    "device": property(lambda x: getattr(plain_value(x), "device", "cpu"), doc="Device of the value."),
    **viewing.ATTRIBUTES,
    **{name: _torch_attribute(name, instead) for name, instead in TORCH_HINTS.items()},
}


def _reshape(x: Array, /, *shape: Any, order: Any = "C", copy: bool | None = None) -> Array:
    to = shape[0] if len(shape) == 1 else shape
    if order == "C" and copy is None:  # fast path to the primitive
        return refill(x, to=resolve_shape(to, x.shape))
    return shaping.reshape(x, to, order, copy=copy)


def _transpose(x: Array, /, *axes: Any) -> Array:
    return shaping.transpose(x, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)


def _astype(
    x: Array, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Array:
    if casting != "unsafe":
        np.empty(0, dtype_of(x)).astype(dtype, casting=casting)  # so that NumPy raises its error
    made = creation.astype(x, dtype, copy=copy)
    return made if order == "K" or not isinstance(made, Tracer) else in_memory_order(made, order)


def _conjugate(x: Array) -> Array:
    """Return the conjugate; real arrays are returned as they are, as by an ndarray's method. The function copies."""
    return elementwise.conjugate(x) if x.dtype.kind == "c" else x


def _copy(x: Array, order: Any = "C") -> Array:
    """Return a copy; the copy of a number is a number, as for NumPy's scalars."""
    return shallow_copy(x) if is_number(x) else creation.copy(x, order)


def _flatten(x: Array, order: Any = "C") -> Array:
    """Return a flattened copy; ``ravel`` returns a view if possible."""
    return creation.copy(shaping.ravel(x, order), "C")


def _fill(x: Tracer, value: Any) -> None:
    if np.shape(value):
        raise ValueError("setting an array element with a sequence.")
    set_item(x, ..., value)


def _sort(
    x: Tracer,
    axis: int = -1,
    kind: Any = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> None:
    """Sort in place, as an ndarray's method does."""
    set_all_items(x, sorting.sort(x, axis, kind, order, stable=stable, descending=bool(descending)))


def _partition(x: Tracer, kth: Any, axis: int = -1, kind: Any = "introselect", order: None = None) -> None:
    """Partition in place, as an ndarray's method does."""
    set_all_items(x, sorting.partition(x, kth, axis, kind, order))


#: Methods that are functions of the same name, by the modules of these functions.
_FUNCTIONS: dict[Any, str] = {
    choice: "clip",
    cumulative: "cumprod cumsum",
    diagonals: "diagonal",
    elementwise: "round",
    indexing: "choose nonzero take",
    products: "dot trace",
    rearranging: "repeat",
    reductions: "all any max mean min prod std sum var",
    shaping: "ravel squeeze swapaxes",
    sorting: "argmax argmin argpartition argsort searchsorted",
    viewing: "resize view",
    writing: "put",
}
_METHODS: dict[str, Any] = {
    **{name: getattr(module, name) for module, names in _FUNCTIONS.items() for name in names.split()},
    "astype": _astype,
    "compress": lambda x, condition, axis=None, out=None: indexing.compress(condition, x, axis, out),
    "conj": _conjugate,
    "conjugate": _conjugate,
    "copy": _copy,
    "fill": _fill,
    "flatten": _flatten,
    "partition": _partition,
    "reshape": _reshape,
    "sort": _sort,
    "transpose": _transpose,
}


def _refusing_method(name: str, instead: str) -> Method:
    def method(x: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise InputError(
            f"x.{name}(): it needs or changes the memory of an array, which a traced value does not have, got "
            f"{describe(x)}{user_line()}. Use {instead}."
        )

    return method


def _setflags(x: Tracer, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Make an array read-only, as constructors do with arrays that they keep; a view stays as it is."""
    if write is None or write or align is not None or uic is not None:
        _refusing_method("setflags", "x.copy() to have an array that can be written to")(x)
    if x.alias is None:
        x.alias = READ_ONLY


_IN_PLACE: dict[str, Method] = {
    "byteswap": _refusing_method("byteswap", "stop_gradient(x)"),
    "getfield": _refusing_method("getfield", "x.astype(dtype)"),
    "setfield": _refusing_method("setfield", "x[...] = y"),
    "setflags": _setflags,
}
