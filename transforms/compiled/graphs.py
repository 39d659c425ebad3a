"""A recorded run as a short list of operations: equal ones once, needless ones dropped, constants known by their bits.

A value is an int: the inputs first, then the results of operations in order. An argument is a value or a ``Const``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad import backend
from funcgrad.core import Primitive

__all__ = ["LARGE", "VIEWS", "Ask", "Const", "Fact", "Graph", "Op", "Value", "copy_of", "fact_of"]

ndarray = np.ndarray
Value: TypeAlias = Any
_KNOWN = 4096  # bytes of an array up to which it is known by its bits
#: Bytes from which on an array is large: its memory is not kept between calls.
LARGE = 1 << 16
#: Operations whose result shows the memory of their first argument, or of a copy.
VIEWS = frozenset(
    (
        "reshape", "permute", "getitem", "split", "unstack", "flip", "broadcast_to", "broadcast_view", "diagonal",
        "real",
    )
)  # fmt: skip


class Fact(NamedTuple):
    """What is known of a result besides its shape and dtype.

    Attributes:
        kind: its type: ndarray, a scalar type of NumPy, or a type of Python's numbers.
        contiguous: whether an array lies in memory row by row.
    """

    kind: type
    contiguous: bool


_BY_ROWS, _OTHERWISE = Fact(ndarray, True), Fact(ndarray, False)
_FLOAT64, _FLOAT, _DOUBLE = Fact(np.float64, False), Fact(float, False), np.dtype(np.float64)
_SCALARS: dict[type, Fact] = {np.float64: _FLOAT64, float: _FLOAT}
_NUMBERS = frozenset((float, int, np.float64))


def fact_of(x: Any) -> Fact:
    """What is known of a value. An axis of length 1 may have any stride, and loops look at it."""
    if type(x) is ndarray:
        return _BY_ROWS if x.flags.c_contiguous and (not x.ndim or x.strides[-1] == x.itemsize) else _OTHERWISE
    found = _SCALARS.get(type(x))
    return _SCALARS.setdefault(type(x), Fact(type(x), False)) if found is None else found


class Const:
    """A constant: a number, an array or something else that an operation takes.

    Attributes:
        value: it.
        live: whether it is an array of the program's, which is read anew at each call.
        key: equal for constants that are the same to the last bit.
        is_number: whether it is a real number, or a double in an array without axes.
        is_one: whether it is the number 1, or an array without axes of it.
    """

    __slots__ = ("dtype", "is_number", "is_one", "key", "live", "shape", "value")

    def __init__(self, value: Any, live: bool = False) -> None:
        self.value, self.live = value, live
        self.shape, self.dtype = np.shape(value) if isinstance(value, (ndarray, np.generic)) else (), None
        self.key: Any
        if isinstance(value, ndarray):
            self.shape, self.dtype = value.shape, value.dtype
            small = not live and value.nbytes <= _KNOWN
            self.key = (value.shape, value.strides, value.dtype.str, value.tobytes()) if small else ("id", id(value))
        elif isinstance(value, (bool, int, float, complex, np.generic)):
            self.key = (type(value), repr(value))
        else:
            self.key = ("id", id(value))
        self.is_number = type(value) in _NUMBERS or (self.dtype == np.float64 and not live and not self.shape)
        self.is_one = not live and not self.shape and _is_one(value)


def computed(name: str, impl: Callable[..., Any]) -> Primitive:
    """An operation that is only computed: what is recorded needs no rules any more."""

    def never(*args: Any) -> Any:
        raise NotImplementedError("a recorded operation has no rules")

    return Primitive(name, impl, None, None, never)


class Op:
    """An operation.

    Attributes:
        name: the primitive's.
        primitive: it.
        args: values and constants.
        params: static parameters.
        outs: the values that it makes.
        line: the user's, None where none is known.
    """

    __slots__ = ("args", "line", "name", "outs", "params", "primitive")

    def __init__(
        self, primitive: Any, args: Sequence[Value], params: dict[str, Any], outs: list[int], line: Any
    ) -> None:
        self.name: str = primitive.name
        self.primitive, self.args, self.params, self.outs, self.line = primitive, args, params, outs, line


class Ask:
    """A question: ``value`` must give ``answer`` here."""

    __slots__ = ("answer", "line", "value")

    def __init__(self, value: int, answer: Any, line: Any) -> None:
        self.value, self.answer, self.line = value, answer, line


class Graph:
    """A run: its operations and questions, as they are recorded, and then without what nothing needs.

    Attributes:
        inputs: how many there are.
        items: operations and questions, in order.
        outputs: a value or a constant for each leaf of the result.
        shapes: by value.
        dtypes: by value.
        facts: by value.
        numbers: by value, whether it is a floating number of Python or NumPy, no array.
        recorded: how many operations there were.
        delicate: whether the way in which something is computed may change its last bits: products of complex numbers
            are rounded by the order of the factors, sums by that of the axes in memory.
        warns: whether the function gives warnings of its own on this way, so that it is to be run itself.
    """

    def __init__(self) -> None:
        self.inputs = self.recorded = 0
        self.items: list[Any] = []
        self.outputs: list[Value] = []
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[Any] = []
        self.facts: list[Fact] = []
        self.numbers: list[bool] = []
        self.delicate = self.warns = False
        self._known: dict[Any, list[int]] = {}  # the results of operations, to find equal ones
        self._part = 0  # how many parts of the run were repeated so far
        self._consts: dict[Any, Const] = {}
        self._numbers: dict[tuple[type, Any], Const] = {}

    @property
    def operations(self) -> list[Op]:
        """Without the questions."""
        return [item for item in self.items if type(item) is Op]

    def shape(self, value: Value) -> tuple[int, ...]:
        """That of a value or constant."""
        shape: tuple[int, ...] = self.shapes[value] if type(value) is int else value.shape
        return shape

    def is_array(self, value: Value) -> bool:
        """Whether it is a value, and an array."""
        return type(value) is int and self.facts[value].kind is ndarray

    def nbytes(self, value: int) -> int:
        """The bytes of an array."""
        size: int = prod(self.shapes[value]) * self.dtypes[value].itemsize
        return size

    # ---- recording -----------------------------------------------------------------------------------------------

    def input(self, x: Any) -> int:
        """The value of the next input."""
        self.inputs += 1
        return self._value(x, "input")

    def constant(self, x: Any, live: bool = False) -> Const:
        """The constant for ``x``, one for all that are the same to the last bit."""
        kind = type(x)
        if (kind is float or kind is int) and x and x == x:  # 0 and -0 are one key
            found = self._numbers.get((kind, x))
            if found is None:
                found = self._numbers[kind, x] = self._constant(x, live)
            return found
        return self._constant(x, live)

    def _constant(self, x: Any, live: bool) -> Const:
        made = Const(x, live)
        return self._consts.setdefault(made.key, made)

    def operation(
        self, primitive: Any, args: tuple[Value, ...], params: dict[str, Any], results: Sequence[Any], line: Any
    ) -> Sequence[int]:
        """The values of the results of an operation: old ones, if they are the same to the last bit."""
        self.recorded += 1
        name = primitive.name
        if name in _UNCHANGING and (same := self._unchanged(name, args, params, results[0])) is not None:
            return (same,)
        key: Any = (
            (primitive, args, tuple([(k, type(v), v) for k, v in params.items()])) if params else (primitive, args)
        )
        try:
            outs = self._known.get(key)
        except TypeError:  # a parameter has no hash
            key = outs = None
        if primitive.calls or name == "write":
            key = outs = None
        elif self._part and key is not None:
            key = None if any(type(x) is ndarray and x.nbytes >= LARGE for x in results) else (self._part, key)
            outs = self._known.get(key)
        if outs is None:
            outs = [self._value(results[0], name)] if len(results) == 1 else [self._value(x, name) for x in results]
            self.items.append(Op(primitive, args, params, outs, line))
            if key is not None:
                self._known[key] = outs
        return outs

    def repeats(self) -> None:
        """Note that what comes is repeated by a checkpoint, and then goes back through that.

        What was computed before is not looked for from here on: it would have to be kept until now, and to save that
        memory is what it is computed again for.
        """
        self._part += 1

    def _value(self, x: Any, name: str) -> int:
        """A new value."""
        number = len(self.shapes)
        kind = type(x)
        if kind is np.float64 or kind is float:
            self.numbers.append(True)
            self.shapes.append(())
            self.dtypes.append(_DOUBLE)
            self.facts.append(_FLOAT64 if kind is np.float64 else _FLOAT)
            return number
        self.numbers.append(False)
        if kind is ndarray:
            dtype, fact = x.dtype, fact_of(x)
            self.shapes.append(x.shape)
            if fact is _OTHERWISE and name not in VIEWS and name != "input":
                self.delicate = True
        else:
            dtype, fact = _DTYPES.get(kind) or backend.dtype_of(x), _SCALARS.get(kind) or fact_of(x)
            self.shapes.append(() if kind in _DTYPES else backend.shape_of(x))
        if dtype.kind == "c":
            self.delicate = True
        self.dtypes.append(dtype)
        self.facts.append(fact)
        return number

    def _unchanged(self, name: str, args: Sequence[Value], params: Any, result: Any) -> int | None:
        """The argument that an operation gives back to the last bit."""
        first = args[0]
        if name in ("multiply", "divide"):
            if type(first) is int and (type(args[1]) is int or not args[1].is_one):
                return None  # the commonest
            for a, b in ((args[0], args[1]), (args[1], args[0]))[: 1 if name == "divide" else 2]:
                if type(a) is int and type(b) is Const and b.is_one and self.dtypes[a].kind == "f":
                    return a if self._is_like(a, result) else None
        elif type(first) is int and (name != "permute" or params["axes"] == tuple(range(len(params["axes"])))):
            return first if self._is_like(first, result) else None
        return None

    def _is_like(self, value: int, x: Any) -> bool:
        like = (self.shapes[value], self.dtypes[value])
        return like == backend.like(x) and self.facts[value] == fact_of(x)

    def ask(self, value: int, answer: Any) -> None:
        """Note that Python looked at a value."""
        self.items.append(Ask(value, answer, None))

    def ends(self, outputs: list[Value]) -> None:
        """Note the results, and drop what neither these nor questions need."""
        self.outputs = outputs
        self.drop()
        self._known.clear()

    # ---- changing ------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Drop what neither results nor questions need."""
        self.items = _needed(self)

    def new(self, shape: tuple[int, ...], dtype: Any, fact: Fact) -> int:
        """A new value."""
        self.numbers.append(False)
        self.shapes.append(shape)
        self.dtypes.append(dtype)
        self.facts.append(fact)
        return len(self.shapes) - 1


#: Operations that may give an argument back to the last bit.
_UNCHANGING = frozenset(("reshape", "broadcast_to", "permute", "multiply", "divide"))
_DTYPES: dict[type, Any] = {
    kind: np.dtype(kind) for kind in (bool, int, float, complex, np.float64, np.float32, np.bool_, np.int64)
}


def _is_one(x: Any) -> bool:
    return isinstance(x, (int, float, np.generic, ndarray)) and not isinstance(x, bool) and bool(x == 1)


#: Operations that may raise or warn of a value; a warning of what no result needs is not worth computing it.
_MAY_RAISE = frozenset(
    (
        "cholesky", "solve", "inv", "eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals", "qr", "pinv", "lstsq",
        "solve_triangular", "lu", "lu_solve", "schur", "expm", "logm", "sqrtm", "solve_banded", "cho_solve",
    )
)  # fmt: skip


def _needed(graph: Graph) -> list[Any]:
    """The items without what neither a result nor a question needs."""
    live = bytearray(len(graph.shapes))
    for v in graph.outputs:
        if type(v) is int:
            live[v] = 1
    kept, asked = [], False
    for item in reversed(graph.items):
        if type(item) is Ask:
            live[item.value] = asked = True
        elif (
            live[item.outs[0]] or any(live[v] for v in item.outs[1:]) or item.primitive.loose or item.name in _MAY_RAISE
        ):
            for a in item.args:
                if type(a) is int:
                    live[a] = True
        else:
            continue
        kept.append(item)
    kept.reverse()
    return _asked_once(kept) if asked else kept


def _asked_once(items: list[Any]) -> list[Any]:
    """Without questions that were asked before."""
    found, seen = [], set()
    for item in items:
        if type(item) is Ask:
            answer = item.answer
            key = (item.value, type(answer), answer.tobytes() if isinstance(answer, ndarray) else repr(answer))
            if key in seen:
                continue
            seen.add(key)
        found.append(item)
    return found


def copy_of(x: ndarray) -> ndarray:
    """A copy that lies in memory as ``x`` does, also where that runs backwards or has gaps: loops look at it."""
    if not x.size or x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy("K")
    reach = [stride * (n - 1) // x.itemsize for n, stride in zip(x.shape, x.strides, strict=True)]
    before = -sum([r for r in reach if r < 0])
    room = np.zeros(before + sum([r for r in reach if r > 0]) + 1, x.dtype)
    made = as_strided(room[before:], x.shape, x.strides)
    made[...] = x
    return made
