"""Parts ``x[mask]`` whose number of elements is not known.

In a ``vmap`` this number differs between the examples, and while JAX compiles it has no value. A selection computes
with all elements, and remembers the mask. In the place of each element that is not selected stands the first one that
is. So operations meet only numbers that the program gives them, and what they compute there takes part in no result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import READ_ONLY, Tracer, plain_value, shallow_copy
from funcgrad.errors import InputError
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.numpy.reducing import identity_of_extremum
from funcgrad.numpy.writes.assignment import constant_for_write, is_in_no_grad, with_derivatives
from funcgrad.numpy.writes.items import check_dtype
from funcgrad.primitives.comparison import stop_gradient
from funcgrad.primitives.index_spec import concrete_mask, is_static, is_unknown, unknown_mask
from funcgrad.primitives.indexing import getitem
from funcgrad.writable import Proxy, identity_key, is_buffer


class Selection(Proxy):
    """The elements of an array that a mask selects, with the axes of the mask as one axis.

    Args:
        value: all elements; the first axis is that of the mask.
        mask: the mask, a vector.
        given: the mask in its own shape, which no write reaches.
        line: where the program read the elements, for messages.
        places: for the positions of the true elements of a mask along an axis, this axis; else None.
    """

    __slots__ = ("_given", "_line", "_mask", "_places", "_shares", "_val")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 2000.0
    is_selection = has_own_functions = True

    def __init__(self, value: Any, mask: Any, given: Any, line: str = "", places: int | None = None) -> None:
        self._val, self._mask, self._given, self._line, self._places = value, mask, given, line, places
        self._shares = False  # whether NumPy's array would share memory with another one

    type_of = staticmethod(lambda x: np.ndarray)
    __class__ = property(lambda self: np.ndarray)  # for ``isinstance`` in programs
    ndim = property(lambda self: len(self._val.shape))
    dtype = property(lambda self: self._val.dtype)
    shape = property(lambda self: (self._count(), *self._val.shape[1:]), lambda self, to: self.refuse())
    size = property(lambda self: self._count() * int(np.prod(self._val.shape[1:])))
    real = property(lambda self: self._view(self._val.real), lambda self, to: self.refuse())
    imag = property(lambda self: self._view(self._val.imag), lambda self, to: self.refuse())
    T = property(lambda self: self if self.ndim == 1 else self.refuse())

    def _count(self) -> Any:
        return fnp.sum(self._mask)

    def _like(self, value: Any) -> Selection:
        return Selection(value, self._mask, self._given, self._line)

    def stopped(self) -> Selection:
        """Return the elements as constants for every derivative."""
        return self._like(stop_gradient(self._val))

    def _view(self, value: Any) -> Selection:
        """Return a selection that is a view in NumPy; writes to both are refused from now on."""
        made = self._like(value)
        made._shares = self._shares = True
        return made

    def refuse(self) -> NoReturn:
        """Raise the error for a selection that something needs as an array."""
        concrete_mask(self._given, "indexing")
        raise InputError(f"indexing: the number of selected elements is not known{user_line()}.")

    def refuse_as_result(self) -> NoReturn:
        """Raise the error for a function that returns the selection."""
        try:
            self.refuse()
        except Exception as error:
            forget_refusal()  # the function, which might have caught the error, has ended
            error.user_line = self._line  # type: ignore[attr-defined]
            raise

    def as_array(self) -> Any:
        """Refuse: the number of elements is not known."""
        self.refuse()

    as_target = as_array

    def array_class(self) -> type:
        """Return ``numpy.ndarray``."""
        return np.ndarray

    def as_index(self, index: Any) -> Any:
        """Return an index that begins with positions of the true elements of a mask as one with the mask."""
        given, count = _mask_of_places(index if type(index) is tuple else (index,))
        return (given, *index[count:]) if type(index) is tuple and len(index) > count else given

    def as_written(self, x: Any, index: Any) -> tuple[Any, Any]:
        """Return an index of ``x`` and what to write there in place of this selection at ``index``."""
        mask = index[0] if type(index) is tuple and len(index) == 1 else index
        if type(mask) not in (Tracer, np.ndarray) or mask.dtype.kind != "b":
            self.refuse()
        grid, rest = mask.shape, self._val.shape[1:]
        if grid != x.shape[: len(grid)] or len(rest) != len(x.shape) - len(grid):
            self.refuse()
        self._check_same(Selection(None, fnp.reshape(mask, (-1,)), mask))
        column = fnp.reshape(self._mask, (*grid, *(1,) * len(rest)))
        return ..., fnp.where(column, fnp.reshape(self._val, (*grid, *rest)), shallow_copy(x))

    def replace_call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the result of an elementwise operation on ``args``; None for other operations."""
        compute = _elementwise_of(name)
        return None if compute is None else _elementwise(compute, *args)

    def call_function(self, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a function of NumPy on this selection."""
        return _call_function(name, args, kwargs)

    def __array_function__(self, fun: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _call_function(fun.__name__, args, kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        compute = _elementwise_of(ufunc.__name__)
        if method != "__call__" or kwargs or compute is None:
            self.refuse()
        return _elementwise(compute, *inputs)

    def operand(self, x: Any) -> Any:
        """Return what an elementwise operation with this selection takes in place of ``x``."""
        if isinstance(x, Selection):
            if x.ndim != self.ndim:
                self.refuse()
            self._check_same(x)
            return x._val
        x = fnp.asarray(x) if backend.is_sequence(x) else x
        if not isinstance(x, Tracer) and not backend.is_value(x):
            self.refuse()
        shape = backend.shape_of(x)
        if len(shape) > self.ndim or (len(shape) == self.ndim and shape[0] != 1):
            self.refuse()
        if not isinstance(x, Tracer) or is_buffer(x):
            return x
        # no cotangent comes from elements that are not selected: it would be NaN if none is
        return fnp.where(self._column(self._mask), x, stop_gradient(x))

    def _column(self, mask: Any) -> Any:
        return fnp.reshape(mask, (-1, *(1,) * (self.ndim - 1)))

    def _check_same(self, other: Selection) -> None:
        """Check that ``other`` selects the same elements; it shares the mask of this selection from now on."""
        if other._mask is self._mask or identity_key(other._given) == identity_key(self._given):
            return
        if other._given.shape != self._given.shape:
            self._refuse_other_mask()
        _refuse_if(fnp.any(other._mask != self._mask), self._refuse_other_mask)

    def _refuse_other_mask(self) -> NoReturn:
        raise InputError(
            f"indexing: parts of two masks are combined while their lengths are not known{user_line()}, got masks that "
            "differ. Combine whole arrays, and select with where(mask, x, fill)."
        )

    def filled(self, fill: Any) -> Any:
        """Return all elements, with ``fill`` in the place of those that are not selected."""
        return fnp.where(self._column(self._mask), self._val, self.dtype.type(fill))

    def _narrowed(self, chosen: Any) -> Selection:
        """Return the elements for which ``chosen``, a vector, is true, too."""
        mask = fnp.logical_and(self._mask, chosen)
        return _padded(self._val, fnp.reshape(mask, self._given.shape), self._line)

    def __getitem__(self, key: Any) -> Any:
        first, rest = (key[0], key[1:]) if type(key) is tuple and key else (key, ())
        if first is ... or (type(first) is slice and first == slice(None)):
            if not is_static(rest) or (first is ... and len(rest) >= self.ndim):
                self.refuse()
            return self._view(self._val[(slice(None) if first is not ... else ..., *rest)])
        if isinstance(first, Selection) and first.dtype.kind == "b" and first.ndim == 1:
            self._check_same(first)
            found = self._narrowed(first._val)
            return found[(slice(None), *rest)] if rest else found
        if type(first) is int and is_static(rest):
            return self._element(first)[rest] if rest else self._element(first)
        self.refuse()

    def _element(self, i: int) -> Any:
        """Return the element at position ``i``, counted from the end if negative; a row is a view in NumPy."""
        count, places = self._count(), fnp.cumsum(self._mask)
        wanted = i + 1 if i >= 0 else count + i + 1

        def fail() -> NoReturn:
            raise IndexError(f"index {i} is out of bounds for axis 0: the mask selects fewer elements")

        _refuse_if(count < (i + 1 if i >= 0 else -i), fail)
        found = self._val[fnp.argmax(fnp.logical_and(places == wanted, self._mask))]
        if self.ndim > 1:
            self._shares, found.alias = True, READ_ONLY
        return found

    def _store(self, value: Any, written: Any) -> None:
        """Replace all elements by ``value``, the result of a write of ``written``, if NumPy can do this write."""
        if self._shares:
            raise InputError(
                f"indexing: a part of x[mask] and x[mask] itself share memory{user_line()}, which writes to them while "
                "the number of elements is not known cannot show. Copy the part."
            )
        check_dtype(self._val, written)
        if value.shape != self._val.shape:
            raise ValueError(f"could not broadcast rows of shape {value.shape[1:]} into {self._val.shape[1:]}")
        self._val, self._places = fnp.astype(value, self.dtype), None

    def __setitem__(self, key: Any, value: Any) -> None:
        if is_in_no_grad():
            with with_derivatives():
                return self.__setitem__(key, constant_for_write(value))
        if key is ... or (type(key) is slice and key == slice(None)):
            chosen = self._mask
        elif isinstance(key, Selection) and key.dtype.kind == "b" and key.ndim == 1:
            self._check_same(key)
            chosen = key._val
        else:
            self.refuse()
        if isinstance(value, Selection) and key is not ... and not isinstance(key, slice):
            narrowed = self._narrowed(chosen)
            narrowed._check_same(value)
            value = value._val
        else:
            value = self.operand(value)
        self._store(fnp.where(self._column(chosen), value, self._val), value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        self.refuse()

    def __len__(self) -> int:
        self.refuse()

    def __iter__(self) -> Iterator[Any]:
        self.refuse()

    def __bool__(self) -> bool:
        self.refuse()

    def __float__(self) -> float:
        self.refuse()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.refuse()

    def __repr__(self) -> str:
        return f"Selection({self._val!r}, mask={self._given!r})"

    def reduced(self, reduce: Callable[..., Any], axis: Any, **options: Any) -> Any:
        """Return the result of ``reduce``, one of funcgrad's functions, which leaves out what is not selected."""
        axes = tuple(range(self.ndim)) if axis is None else normalize_axis_tuple(axis, self.ndim)
        where = options.pop("where", True)
        if 0 not in axes:
            return self._like(reduce(self._val, axes, **options)) if where is True else self.refuse()
        column = self._column(self._mask)
        column = column if where is True else fnp.logical_and(column, self.operand(where))
        if reduce in (fnp.max, fnp.min) and options.get("initial") is None and where is True:
            _refuse_if(fnp.logical_not(fnp.any(column)), partial(_refuse_extremum, reduce.__name__))
            options["initial"] = identity_of_extremum(reduce.__name__, self.dtype)
        return reduce(self._val, axes, where=column, **options)

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the running sums of a vector."""
        if self.ndim > 1 or axis not in (None, 0, -1):
            self.refuse()
        return _padded(fnp.cumsum(self.filled(0), dtype=dtype), self._given, self._line)

    def dot(self, other: Any) -> Any:
        """Return the product of two vectors that the same mask selects, or of rows with a matrix or vector."""
        if isinstance(other, Selection):
            return fnp.sum(_elementwise(fnp.multiply, self, other)) if self.ndim == other.ndim == 1 else self.refuse()
        if self.ndim < 2 or len(backend.shape_of(other)) not in (1, 2):
            self.refuse()
        return self._like(fnp.matmul(self._val, other))

    __matmul__ = dot

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return _elementwise(fnp.floor_divide, self, other), _elementwise(fnp.remainder, self, other)

    def inner(self, other: Any) -> Any:
        """Return the product of two vectors that the same mask selects, or of rows with a vector."""
        return self.dot(other) if isinstance(other, Selection) or len(backend.shape_of(other)) == 1 else self.refuse()

    def clip(self, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Any:
        """Return the elements, limited to an interval."""
        low, high = a_min if min is None else min, a_max if max is None else max
        found = self.copy() if low is None else _elementwise(fnp.maximum, self, low)
        return found if high is None else _elementwise(fnp.minimum, found, high)

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: Any = True
    ) -> Any:
        """Return the elements in another dtype."""
        to = np.dtype(dtype)
        if not np.can_cast(self.dtype, to, casting):
            raise TypeError(f"Cannot cast array data from {self.dtype!r} to {to!r} according to the rule {casting!r}")
        return self._like(fnp.astype(self._val, to)) if copy or to != self.dtype else self

    def round(self, decimals: int = 0) -> Selection:
        """Return rounded elements."""
        return self._like(fnp.round(self._val, decimals))

    def copy(self, order: str = "C") -> Selection:
        """Return a copy."""
        return self._like(fnp.copy(self._val))

    def conj(self) -> Selection:
        """Return complex conjugates, for real elements this selection itself, as NumPy does."""
        return self._like(fnp.conj(self._val)) if self.dtype.kind == "c" else self

    conjugate = conj

    def ravel(self, order: str = "C") -> Selection:
        """Return a vector of the elements, a view."""
        return self._view(self._val) if self.ndim == 1 else self.refuse()

    def flatten(self, order: str = "C") -> Selection:
        """Return a vector of the elements, a copy."""
        return self.copy() if self.ndim == 1 else self.refuse()


def selection_of(x: Any, index: Any) -> Selection | None:
    """Return ``x[index]`` if ``index`` begins with a mask of which the true elements cannot be counted; else None."""
    entry, *rest = index if type(index) is tuple and index else (index,)
    if isinstance(entry, Selection):
        given, count = _mask_of_places((entry, *rest))
        rest = rest[count - 1 :]
    elif (given := unknown_mask(entry)) is None:
        return None
    shape, rank = backend.shape_of(x), len(given.shape)
    if given.shape != shape[:rank] or not is_static(tuple(rest)):
        return None
    found = _padded(fnp.reshape(x, (-1, *shape[rank:])), shallow_copy(given), _line_of(given))
    if rest:
        found = found[(slice(None), *rest)]
        found._shares = False  # NumPy copies
    return found


def _mask_of_places(index: tuple[Any, ...]) -> tuple[Any, int]:
    """Return the mask whose true elements the first entries of an index name, and how many entries these are."""
    first = index[0]
    rank = len(first._given.shape)
    key = identity_key(first._given)
    named = [x._places if isinstance(x, Selection) and identity_key(x._given) == key else None for x in index[:rank]]
    if named != list(range(rank)):
        first.refuse()
    return first._given, rank


def places_of(x: Any) -> tuple[Selection, ...] | None:
    """Return the positions of the elements of ``x`` that are not zero along each axis; None if they can be counted."""
    given = unknown_mask(x if x.dtype.kind == "b" else fnp.not_equal(x, 0))
    if given is None or not is_unknown(fnp.sum(given)):
        return None
    given, line = shallow_copy(given), _line_of(given)
    grids = np.indices(given.shape).reshape(len(given.shape), -1)
    found = [_padded(grid, given, line) for grid in grids]
    for axis, part in enumerate(found):
        part._places = axis
    return tuple(found)


def _line_of(given: Any) -> str:
    """Return the user's line that reads elements by a mask, if JAX compiles; in a batch that would take long."""
    return user_line() if backend.is_jax_tracer(plain_value(given)) else ""


def _padded(rows: Any, given: Any, line: str) -> Selection:
    """Return the selection of ``rows``; the first one that is selected, or 1, stands where none is selected."""
    mask = fnp.reshape(given, (-1,))
    if not rows.shape[0]:
        return Selection(rows, mask, given, line)
    column = fnp.reshape(mask, (-1, *(1,) * (len(rows.shape) - 1)))
    first = fnp.where(fnp.any(mask), getitem(stop_gradient(rows), fnp.argmax(mask)), rows.dtype.type(1))
    return Selection(fnp.where(column, rows, first), mask, given, line)


def _refuse_if(condition: Any, refuse: Callable[[], NoReturn]) -> None:
    """Call ``refuse`` if a condition is true, in any example of a ``vmap``."""
    known = concrete_or_none(condition)
    if bool(condition) if known is None else known.any():
        refuse()


def _elementwise_of(name: str) -> Callable[..., Any] | None:
    """Return the elementwise function of this name, of NumPy or else of ``scipy.special``; None if there is none."""
    for home in ("numpy",) if hasattr(np, name) else ("scipy.special",):
        ufunc = getattr(sys.modules.get(home), name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None and ufunc.nout == 1:
            found: Callable[..., Any] | None = getattr(import_module(f"funcgrad.{home}"), name, None)
            return found
    return fnp.where if name == "where" else None


def _elementwise(compute: Callable[..., Any], *args: Any) -> Selection:
    first = max((x for x in args if isinstance(x, Selection)), key=lambda x: x.ndim)
    return first._like(compute(*[first.operand(x) for x in args]))


def _refuse_extremum(name: str) -> NoReturn:
    raise ValueError(f"zero-size array to reduction operation {name}imum which has no identity")


#: Functions of NumPy that call the method of a selection, by the name of the method.
_METHODS = {
    **{name: name for name in ("clip", "copy", "cumsum", "dot", "inner", "ravel", "round")},
    **{"around": "round", "matmul": "dot"},
}
#: Functions that take a selection, and are methods of it.
_REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "ptp", "std", "sum", "var")
_TAKING = frozenset((*_REDUCTIONS, "amax", "amin", "average", "count_nonzero"))


def _call_function(name: str, args: Any, kwargs: Any) -> Any:
    """Compute a function of NumPy with a selection among its arguments."""
    if not args and "a" in kwargs:
        args, kwargs = (kwargs["a"],), {key: value for key, value in kwargs.items() if key != "a"}
    if name == "where" and len(args) == 3:
        return _elementwise(fnp.where, *args)
    first, rest = (args[0], args[1:]) if args else (None, ())
    if not isinstance(first, Selection):
        next(_selections_in((*args, *kwargs.values()))).refuse()
    if name in ("ndim", "shape", "size", "real", "imag"):
        return getattr(first, name)
    if name in _METHODS:
        return getattr(first, _METHODS[name])(*rest, **kwargs)
    if name in _TAKING:
        return getattr(fnp, name)(*args, **kwargs)
    if name == "norm" and not rest and not kwargs:
        some = fnp.any(first._mask)  # the norm of zeros has no derivative
        return fnp.where(some, fnp.linalg.norm(fnp.where(some, first.filled(0), 1)), 0.0)
    if name in ("zeros_like", "ones_like", "empty_like") and not rest and not kwargs:
        return first._like(getattr(fnp, name)(first._val))
    first.refuse()


def _selections_in(values: Any) -> Iterator[Selection]:
    """Yield the selections among values and in lists and tuples of them."""
    for x in values:
        if isinstance(x, Selection):
            yield x
        elif type(x) in (list, tuple):
            yield from _selections_in(x)


#: Elementwise functions by the name of the operator.
_OPERATORS = {
    **{"add": fnp.add, "sub": fnp.subtract, "mul": fnp.multiply, "truediv": fnp.divide},
    **{"floordiv": fnp.floor_divide, "mod": fnp.remainder, "pow": fnp.power, "and": fnp.bitwise_and},
    **{"or": fnp.bitwise_or, "xor": fnp.bitwise_xor, "lshift": fnp.left_shift, "rshift": fnp.right_shift},
}
_OTHERS = {
    **{"lt": fnp.less, "le": fnp.less_equal, "gt": fnp.greater, "ge": fnp.greater_equal, "eq": fnp.equal},
    **{"ne": fnp.not_equal, "neg": fnp.negative, "pos": fnp.positive, "abs": fnp.abs, "invert": fnp.invert},
}


def _operator(compute: Any) -> Callable[..., Any]:
    return lambda *args: _elementwise(compute, *args)


def _in_place(compute: Any) -> Callable[..., Any]:
    def method(self: Selection, other: Any) -> Selection:
        found = _elementwise(compute, self, other)
        check_dtype(self._val, found._val)
        if found.dtype != self.dtype and not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast output from dtype {found.dtype} to dtype {self.dtype} of the array written to"
            )
        self._store(found._val, found._val)
        return self

    return method


for _name in _REDUCTIONS:
    setattr(Selection, _name, lambda self, *args, name=_name, **kwargs: getattr(fnp, name)(self, *args, **kwargs))
for _name, _compute in {**_OPERATORS, **_OTHERS}.items():
    setattr(Selection, f"__{_name}__", _operator(_compute))
for _name, _compute in _OPERATORS.items():
    setattr(Selection, f"__r{_name}__", lambda self, other, compute=_compute: _elementwise(compute, other, self))
    setattr(Selection, f"__i{_name}__", _in_place(_compute))
