"""Functions that apply functions along axes, in pieces or element by element; iterators over elements.

The given functions run as ordinary Python, so they may branch and loop, and they may hold traced values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe, plain_value
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to, permute, reshape
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_buffer, as_value, asarray, astype
from funcgrad.numpy.layout import with_layout_of, with_layout_of_ufunc
from funcgrad.numpy.plain_values.concretization import as_python_item, forget_refusal, user_line
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_dtype
from funcgrad.numpy.shaping import broadcast_to as spread
from funcgrad.numpy.shaping import expand_dims, moveaxis, ravel, result_type
from funcgrad.numpy.writes.items import with_items_set
from funcgrad.primitives.comparison import logical_not, logical_or, where
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import stack
from funcgrad.typing import Array, ArrayLike, Shape
from funcgrad.writable import as_array, is_buffer

__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction", "frompyfunc", "piecewise", "vectorize", "nditer"]


def _stack_results(results: Sequence[Array], loop: Shape, dtype: Any) -> Array:
    """Join the results of calls, one for each index of ``loop``, to one array of shape (*loop, *shape of a result)."""
    if any(backend.namespace_of(r) is not np for r in results):
        made = stack(*[as_dtype(r, dtype) for r in results], axis=0)
        return reshape(made, to=(*loop, *backend.shape_of(results[0])))
    buffer = np.zeros((*loop, *backend.shape_of(results[0])), dtype)
    for index, result in zip(np.ndindex(loop), results, strict=True):
        buffer[index] = result
    return buffer


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Apply ``func1d`` to every vector along ``axis``; the axes of its result replace that axis.

    The derivative flows to ``arr``, to further arguments, and to traced values that ``func1d`` holds. The dtype is
    that of the first result, as in NumPy.

    Args:
        func1d: a function of an array of one axis, and of the further arguments.
        axis: the axis.
        arr: the array.
        *args: further arguments.
        **kwargs: further arguments.

    Raises:
        ValueError: there is no vector, or the results have different shapes.

    Example:
        >>> fnp.apply_along_axis(lambda v: v[0] * v[-1], 1, [[1.0, 2.0], [3.0, 4.0]])
        array([ 2., 12.])
    """
    arr = as_value(arr)
    axis = normalize_axis(axis, len(backend.shape_of(arr)))
    vectors = moveaxis(arr, axis, -1)
    loop = backend.shape_of(vectors)[:-1]
    results = [as_value(func1d(getitem(vectors, (*i, ...)), *args, **kwargs)) for i in np.ndindex(loop)]
    if not results:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    made = _stack_results(results, loop, backend.dtype_of(results[0]))
    outer, rank = len(loop), len(backend.shape_of(made))
    return permute(made, axes=(*range(axis), *range(outer, rank), *range(axis, outer)))


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: Any) -> Array:
    """Apply ``func(a, axis)`` for one axis after the other; an axis that ``func`` removes stays with length 1.

    Raises:
        ValueError: the result of ``func`` has neither as many axes as ``a`` nor one fewer.

    Example:
        >>> fnp.apply_over_axes(fnp.sum, [[1.0, 2.0], [3.0, 4.0]], (0, 1))
        array([[10.]])
    """
    value = as_value(a)
    rank = len(backend.shape_of(value))
    for axis in axes if np.ndim(axes) else (axes,):
        place = rank + axis if axis < 0 else axis
        result = func(value, place)
        if len(backend.shape_of(result)) != len(backend.shape_of(value)):
            result = expand_dims(result, place)
            if len(backend.shape_of(result)) != len(backend.shape_of(value)):
                raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


# ---- pieces ----------------------------------------------------------------------------------------------------


def _conditions(condlist: Any, rank: int, functions: int) -> list[Array]:
    """Return the conditions of ``piecewise`` as arrays, with the default condition if there is one more function."""
    single = not hasattr(condlist, "__len__") or (hasattr(condlist, "shape") and not condlist.shape)
    if single or (rank and not isinstance(condlist[0], (list, np.ndarray)) and not getattr(condlist[0], "shape", ())):
        condlist = [condlist]
    conditions = [astype(as_value(c), bool) for c in condlist]
    n = len(conditions)
    if n == functions - 1:
        found = conditions[0]
        for condition in conditions[1:]:
            found = logical_or(found, condition)
        conditions.append(logical_not(found))
    elif n != functions:
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    return conditions


def _concrete_condition(condition: Array) -> Any:
    """Return a condition as an ndarray, or None if it differs between examples of a ``vmap`` or JAX traces it."""
    try:
        return np.asarray(condition)
    except TypeError:
        forget_refusal()
        return None


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Evaluate for each element the function or number that belongs to the last condition that holds there.

    Each function is called with its own elements only, so a branch that is not taken cannot make the derivative NaN.
    If a condition is not known (in a ``vmap`` over it, under ``jax.jit``), its function is called with as many
    elements as ``x`` has, with ones in place of other functions' elements. The derivative flows to ``x``, to numbers
    in ``funclist``, to further arguments and to traced values that the functions hold. The dtype is that of ``x``.

    Args:
        x: the elements.
        condlist: boolean arrays of the shape of ``x``.
        funclist: a function or number for each condition; one more is the default where none holds, else 0.
        *args: further arguments of the functions.
        **kw: further arguments of the functions.

    Raises:
        ValueError: the number of functions is wrong.
        InputError: ``x`` are integers and a result is traced, which would lose its derivative.

    Example:
        >>> x = np.array([0.0, 4.0])
        >>> grad(lambda x: fnp.sum(fnp.piecewise(x, [x > 0], [fnp.sqrt, 1.0])))(x)
        array([0.  , 0.25])
    """
    x = as_value(x)
    shape, dtype = backend.shape_and_dtype_of(x)
    y = backend.library_of(x).zeros(shape, dtype)
    for condition, piece in zip(_conditions(condlist, len(shape), len(funclist)), funclist, strict=True):
        known = _concrete_condition(condition)
        value = piece
        if callable(piece):
            chosen = where(condition, x, dtype.type(1)) if known is None else getitem(x, known)
            if 0 in backend.shape_of(chosen):
                continue
            value = piece(chosen, *args, **kw)
        value = as_value(value)
        if not is_plain(value) and backend.is_inexact(value) and not backend.is_inexact(x):
            raise InputError(
                f"piecewise: the result has the dtype of x and would lose the derivative, got {describe(x)} and the "
                f"piece {describe(value)}{user_line()}. Convert x to floating numbers."
            )
        if known is None or not is_plain(y, value):
            value = as_dtype(value, dtype)
            y = where(condition, value, y) if known is None else with_items_set(y, known, value)
        else:
            y[known] = value
    return as_array(with_layout_of(x, y) if isinstance(x, Tracer) else y)


# ---- element by element ----------------------------------------------------------------------------------------


def _core_axes(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the names of the axes of each argument and of each result."""
    ins, outs = (
        [tuple(filter(None, term.split(","))) for term in re.findall(r"\(([^)]*)\)", side)]
        for side in "".join(signature.split()).split("->")
    )
    return ins, outs


class _TracedResult(Exception):  # noqa: N818  (a signal, not an error)
    """Signal that a function of plain values returned a traced value, which it held."""


class _GuardedFunction:
    """Wrapper of a function that raises ``_TracedResult`` instead of returning a traced value to NumPy."""

    def __init__(self, pyfunc: Callable[..., Any]) -> None:
        self.pyfunc = pyfunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.pyfunc(*args, **kwargs)
        if not is_plain(result):
            raise _TracedResult
        return result


class vectorize:  # noqa: N801  (NumPy's name)
    """Version for arrays of a function of numbers, which is called element by element, with broadcasting.

    Use ``vectorize`` for functions that cannot take arrays, such as functions that branch on their argument. For plain
    values the result is NumPy's. If arguments are traced, or the function holds traced values, the same loop runs
    over their elements: this is slow, but all derivatives flow. If a function can take arrays, call it with an array
    or use ``vmap`` instead.

    Args:
        pyfunc: the function; left out if ``vectorize`` is used as a decorator with arguments.
        otypes: the dtypes of the results, as a string of type codes or a list; by default those of the first call.
        doc: a docstring.
        excluded: positions and names of arguments that are passed on whole.
        cache: whether to reuse the result of the first call, which tells the dtypes; always for traced values.
        signature: such as "(m,n),(n)->(m)", for a function of arrays with these axes; further axes are looped over.

    Raises:
        TypeError: ``pyfunc`` is not callable, or the signature names another number of arguments.
        ValueError: shapes do not fit each other or the signature; or there is no element and no ``otypes``.

    Example:
        >>> @fnp.vectorize
        ... def ramp(x):
        ...     return x if x > 0 else 0.0 * x
        >>> grad(lambda x: fnp.sum(ramp(x) ** 2))(np.array([-1.0, 3.0]))
        array([0., 6.])
    """

    def __init__(
        self,
        pyfunc: Any = np._NoValue,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc = pyfunc
        self._options = {"otypes": otypes, "doc": doc, "excluded": excluded, "cache": cache, "signature": signature}
        callee = _GuardedFunction(pyfunc) if callable(pyfunc) else pyfunc  # NumPy refuses what is not callable
        self._plain: Any = np.vectorize(callee, **self._options)
        self.otypes = self._plain.otypes
        self.excluded: set[Any] = self._plain.excluded
        self.cache = cache
        self.signature = signature
        self.__doc__ = doc if doc is not None else getattr(pyfunc, "__doc__", None)
        if hasattr(pyfunc, "__name__"):
            self.__name__ = pyfunc.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the results for every element of the arguments."""
        if not callable(self.pyfunc):
            return type(self)(*args, **{**self._options, **kwargs})
        if is_plain(args, tuple(kwargs.values())):
            try:
                return self._plain(*args, **kwargs)
            except _TracedResult:
                pass
        looped: dict[Any, Array] = {i: as_value(a) for i, a in enumerate(args) if i not in self.excluded}
        looped |= {name: as_value(a) for name, a in kwargs.items() if name not in self.excluded}
        if not looped and self.signature is None:
            return self.pyfunc(*args, **kwargs)

        def call(values: Iterable[Any]) -> Any:
            given = dict(zip(looped, values, strict=True))
            positional = [given.get(i, a) for i, a in enumerate(args)]
            return self.pyfunc(*positional, **{name: given.get(name, a) for name, a in kwargs.items()})

        return self._looped(call, list(looped.values()))

    #: Whether a first call with NumPy's numbers tells the dtypes of the results, which may be of lower precision.
    asks_for_dtypes = True

    def _looped(self, call: Callable[[Iterable[Any]], Any], values: list[Array]) -> Any:
        """Run ``call`` for each index of the loop; return the results as arrays."""
        ins, outs = ([()] * len(values), None) if self.signature is None else _core_axes(self.signature)
        sizes: dict[str, int] = {}
        loop, elements = _elements(values, ins, sizes)
        first = None
        if self.signature is None:
            numbers = list(elements)
            if numbers and self.otypes is None and self.asks_for_dtypes and any(map(_is_unlike_python, values)):
                first = call(numbers[0])
            elements = (list(map(_as_python_element, given)) for given in numbers)
        results = list(map(call, elements))
        if not results:
            return self._nothing(loop, outs, sizes)
        several = isinstance(results[0], tuple)
        first = results[0] if first is None else first
        rows = [tuple(map(as_value, r)) if several else (as_value(r),) for r in results]
        if outs is not None:
            _check_results(rows, outs, sizes)
        found = []
        for place, parts in enumerate(zip(*rows, strict=True)):
            given = None if self.otypes is None else self.otypes[place]
            dtype = np.dtype(given or backend.dtype_of(as_value(first[place] if several else first)))
            is_of_objects = dtype.kind == "O" and outs is None
            made = _object_array(parts, loop) if is_of_objects else _stack_results(parts, loop, dtype)
            found.append(with_layout_of_ufunc(made, values) if self.signature is None else made)
        return tuple(found) if several else found[0]

    def _nothing(self, loop: Shape, outs: Any, sizes: dict[str, int]) -> Any:
        if self.otypes is None:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        if outs is not None and any(name not in sizes for names in outs for name in names):
            raise ValueError(
                "cannot call `vectorize` with a signature including new output dimensions on size 0 inputs"
            )
        shapes = [loop] * len(self.otypes) if outs is None else [(*loop, *[sizes[n] for n in names]) for names in outs]
        found = tuple([np.zeros(shape, dtype) for shape, dtype in zip(shapes, self.otypes, strict=True)])
        return found if len(found) > 1 else found[0]


#: Dtypes of Python's numbers.
_PYTHON_DTYPES = frozenset(map(np.dtype, (bool, int, float, complex)))


def _is_unlike_python(x: Array) -> bool:
    """Whether an array of NumPy has elements of another precision than Python's numbers."""
    return isinstance(plain_value(x), (np.generic, np.ndarray)) and backend.dtype_of(x) not in _PYTHON_DTYPES


def _as_python_element(x: Any) -> Any:
    """Return an element as NumPy's ufuncs of Python functions pass it on: as a Python number."""
    if is_buffer(x):  # a constant
        x = x._val
    if issubclass(type(x), Tracer):
        return as_python_item(x)
    return x.item() if isinstance(x, (np.generic, np.ndarray)) else x


def _object_array(parts: Sequence[Any], loop: Shape) -> np.ndarray:
    """Return an array of Python objects, each given as an array without axes, or as a traced number."""
    made = np.empty(loop, object)
    for place, part in zip(np.ndindex(loop), parts, strict=True):
        made[place] = part.item() if type(part) is np.ndarray and not part.shape else part
    return made


def _elements(
    values: list[Array], ins: Sequence[tuple[str, ...]], sizes: dict[str, int]
) -> tuple[Shape, Iterator[list[Any]]]:
    """Return the shape of the loop and the arguments of each call; add the lengths of named axes to ``sizes``."""
    if len(values) != len(ins):
        raise TypeError(f"wrong number of positional arguments: expected {len(ins)!r}, got {len(values)!r}")
    outer = []
    for value, names in zip(values, ins, strict=True):
        shape = backend.shape_of(value)
        if len(shape) < len(names):
            raise ValueError(f"{len(shape)}-dimensional argument does not have enough dimensions for {names!r}")
        split = len(shape) - len(names)
        outer.append(shape[:split])
        _add_lengths(sizes, names, shape[split:])
    loop = np.broadcast_shapes(*outer)
    whole = [
        v if own == loop else broadcast_to(v, to=(*loop, *backend.shape_of(v)[len(own) :]))
        for v, own in zip(values, outer, strict=True)
    ]
    if not loop:
        return loop, iter([[v[()] if type(v) is np.ndarray else v for v in whole]])
    return loop, ([getitem(v, i) for v in whole] for i in np.ndindex(loop))


def _add_lengths(sizes: dict[str, int], names: tuple[str, ...], shape: Shape) -> None:
    """Add the lengths of named axes to ``sizes``; refuse a length that differs from the one there."""
    for name, n in zip(names, shape, strict=True):
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n!r} vs {sizes[name]!r}")


def _check_results(rows: list[tuple[Array, ...]], outs: Sequence[tuple[str, ...]], sizes: dict[str, int]) -> None:
    for row in rows:
        if len(row) != len(outs):
            raise ValueError(f"wrong number of outputs from pyfunc: expected {len(outs)!r}, got {len(row)!r}")
        for result, names in zip(row, outs, strict=True):
            shape = backend.shape_of(result)
            if len(shape) != len(names):
                raise ValueError(f"{len(shape)}-dimensional result where the signature names {names!r}")
            _add_lengths(sizes, names, shape)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, **kwargs: Any) -> np.ufunc:
    """Make a NumPy ufunc from a Python function, for plain values; its results are arrays of Python objects.

    The ufunc refuses traced values; ``vectorize`` takes them.

    Example:
        >>> fnp.frompyfunc(lambda x: x + 1, 1, 1)([1, 2])
        array([2, 3], dtype=object)
    """
    made: np.ufunc = np.frompyfunc(func, nin, nout, **kwargs)
    return made


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """Call ``function`` with the positions of all elements of an array of ``shape``, one array for each axis.

    The derivative flows to further arguments and to traced values that ``function`` holds.

    Example:
        >>> fnp.fromfunction(lambda i, j: i + 10 * j, (2, 2))
        array([[ 0., 10.],
               [ 1., 11.]])
    """
    return function(*np.indices(shape, dtype=dtype), **kwargs)


_ITERATOR_FLAGS = frozenset(("multi_index", "c_index", "f_index", "zerosize_ok", "refs_ok", "common_dtype"))
_WRITE_FLAGS = frozenset(("readwrite", "writeonly"))
_OPERAND_FLAGS = _WRITE_FLAGS | {"readonly", "allocate", "no_broadcast", "nbo", "aligned", "copy", "updateifcopy"}
_UNSUPPORTED = {"op_axes": None, "itershape": None, "buffersize": 0}


def nditer(op: Any, flags: Any = None, op_flags: Any = None, *args: Any, order: str = "K", **kwargs: Any) -> Any:
    """Iterate over the elements of one array, or of several that broadcast; NumPy's iterator for NumPy arrays.

    Elements of traced values carry the derivative. They can be written to, as ``element[...] = y``, if ``op_flags``
    allow it. The elements come in C order, unless ``order`` is "F", whatever the order in memory is.

    Args:
        op: an array, or a list of arrays; None for an array that the iterator makes.
        flags: for traced values "multi_index", "c_index", "f_index", "zerosize_ok" and "refs_ok".
        op_flags: for traced values "readonly", "writeonly", "readwrite" and "allocate".
        *args: see NumPy; not for traced values.
        order: "C" or "F".
        **kwargs: see NumPy; not for traced values.

    Raises:
        InputError: an option that traced values do not support.
        ValueError: there is nothing to iterate over, and "zerosize_ok" is not among the flags.

    Example:
        >>> grad(lambda x: sum(a * b for a, b in fnp.nditer([x, 2.0])))(np.ones(3))
        array([2., 2., 2.])
    """
    if is_plain(op):
        return np.nditer(op, flags, op_flags, *args, order=order, **kwargs)  # type: ignore[call-overload]
    operands = list(op) if isinstance(op, (list, tuple)) else [op]
    uses = [[op_flags] if isinstance(op_flags, str) else op_flags or ()] * len(operands)
    if op_flags and not isinstance(op_flags, str) and not all(isinstance(f, str) for f in op_flags):
        uses = [[f] if isinstance(f, str) else f for f in op_flags]
    if len(uses) != len(operands):
        raise ValueError("op_flags must be flags, or a list of them with as many entries as operands")
    dtypes = kwargs.pop("op_dtypes", None)
    if dtypes is not None and all(operand is not None for operand in operands):
        _refuse(f"op_dtypes={dtypes!r}")
    wanted = [*(flags or ()), *(f for use in uses for f in use if f not in _OPERAND_FLAGS)]
    for flag in wanted:
        if flag not in _ITERATOR_FLAGS:
            _refuse(f"{flag!r}")
    if args:
        _refuse("positional arguments after op_flags")
    for name, value in kwargs.items():
        if name != "casting" and value != _UNSUPPORTED.get(name, ...):
            _refuse(f"{name}={value!r}")
    written = [x is None or not _WRITE_FLAGS.isdisjoint(use) for x, use in zip(operands, uses, strict=True)]
    return ElementIterator(operands, frozenset(wanted), order, written, dtypes)


def _refuse(what: str) -> NoReturn:
    raise InputError(
        f"nditer: it goes through traced values one element at a time, got {what}. Use whole-array functions of "
        "funcgrad.numpy, which are faster as well."
    )


class ElementIterator:
    """Iterator for traced values, with the part of ``numpy.nditer`` that goes from element to element.

    Args:
        operands: the arrays; None for an array that the iterator makes.
        flags: the flags of the iterator.
        order: "C" or "F".
        written: for each operand, whether it is written to.
        dtypes: the dtypes of the operands, with None for an operand that keeps its dtype; None if all keep theirs.
    """

    def __init__(self, operands: Any, flags: frozenset[str], order: str, written: Any = (), dtypes: Any = None) -> None:
        self.shape: Shape = np.broadcast_shapes(*[backend.shape_of(asarray(x)) for x in operands if x is not None])
        given, common = [], result_type(*[asarray(x) for x in operands if x is not None])
        for x, dtype in zip(operands, dtypes or [None] * len(operands), strict=True):
            if x is None:
                given.append(as_buffer(np.empty(self.shape, dtype or common)))
            else:
                given.append(asarray(x) if dtype is None else astype(x, dtype))
        self._written = {number: x for number, x in enumerate(given) if written and written[number]}
        if any(backend.shape_of(x) != self.shape for x in self._written.values()):
            raise ValueError("non-broadcastable output operand: what is written to has the shape of the iteration")
        values = [x if number in self._written else spread(x, self.shape) for number, x in enumerate(given)]
        self.ndim = len(self.shape)
        self.nop = len(operands)
        self.itersize = prod(self.shape)
        if not self.itersize and "zerosize_ok" not in flags:
            raise ValueError("Iteration of zero-sized operands is not enabled")
        self.iterindex = 0
        self._order = "F" if order == "F" else "C"
        self._flags = flags
        self.operands = tuple(values)
        self._flat = [ravel(x, self._order) for x in values]

    def __iter__(self) -> ElementIterator:
        return self

    def __next__(self) -> Any:
        self.iterindex += self._begun
        if self.finished:
            raise StopIteration
        self._begun = 1
        return self.value

    _begun = 0  # whether __next__ has returned the current element

    def __enter__(self) -> ElementIterator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return self.nop

    def __getitem__(self, number: int) -> Array:
        if number in self._written:
            return getitem(self._written[number], (*self._position(), ...))
        return getitem(self._flat[number], self.iterindex)

    def __setitem__(self, number: int, value: Any) -> None:
        self[number][...] = value

    def close(self) -> None:
        """Do nothing: every write is already done."""

    def reset(self) -> None:
        """Go back to the first element."""
        self.iterindex, self._begun = 0, 0

    def iternext(self) -> bool:
        """Go to the next element; return whether there is one."""
        self.iterindex += 1
        return not self.finished

    @property
    def finished(self) -> bool:
        """Whether all elements have been visited."""
        return self.iterindex >= self.itersize

    @property
    def value(self) -> Any:
        """The current element; a tuple of elements if there are several arrays."""
        here = tuple([self[number] for number in range(self.nop)])
        return here[0] if self.nop == 1 else here

    @property
    def multi_index(self) -> tuple[int, ...]:
        """The position of the current element along each axis."""
        if "multi_index" not in self._flags:
            raise ValueError("Iterator is not tracking a multi-index")
        return self._position()

    @property
    def index(self) -> int:
        """The position of the current element in the flattened array, in C or in F order."""
        orders = [flag[0].upper() for flag in ("c_index", "f_index") if flag in self._flags]
        if not orders:
            raise ValueError("Iterator does not have an index")
        return int(np.ravel_multi_index(self._position(), self.shape, order=orders[0])) if self.ndim else 0  # type: ignore[call-overload]

    def _position(self) -> tuple[int, ...]:
        return tuple([int(i) for i in np.unravel_index(self.iterindex, self.shape, self._order)])  # type: ignore[call-overload]


class Broadcast(ElementIterator):
    """Iterator like ``numpy.broadcast``: tuples of the elements of arrays that broadcast."""

    def __init__(self, *operands: Any) -> None:
        super().__init__(operands, frozenset(("zerosize_ok",)), "C")
        self.nd, self.numiter, self.size = self.ndim, self.nop, self.itersize

    index = property(lambda self: self.iterindex)
    value = property(lambda self: tuple([self[number] for number in range(self.nop)]))
