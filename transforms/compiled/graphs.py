"""Recorded runs as short lists of operations, without duplicates or unneeded ones, and with shared constants.

A value is an int: first the inputs, then the results of operations in order. An argument is a value or a ``Const``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad import backend
from funcgrad.core import DOUBLE, Primitive

ndarray = np.ndarray
Value: TypeAlias = Any
_MAX_COMPARED_BYTES = 4096  # largest size in bytes of arrays that are compared by their bits
#: Size in bytes from which an array is large: its memory is not kept between calls.
LARGE = 1 << 16
#: Operations whose result is a view of their first argument, or of a copy of it.
VIEWS = frozenset(
    (
        "reshape", "permute", "getitem", "split", "unstack", "flip", "broadcast_to", "broadcast_view", "diagonal",
        "real",
    )
)  # fmt: skip


class Fact(NamedTuple):
    """Facts about a result besides its shape and dtype.

    Attributes:
        kind: its type: ndarray, a scalar type of NumPy, or a Python number type.
        contiguous: whether it is a C-contiguous array.
        is_number: whether it is a floating-point number of Python or NumPy, not an array.
    """

    kind: type
    contiguous: bool = False
    is_number: bool = False


C_CONTIGUOUS, _NOT_CONTIGUOUS = Fact(ndarray, True), Fact(ndarray)
_SCALARS = {kind: Fact(kind, is_number=True) for kind in (np.float64, float)}
_NUMBERS = frozenset((float, int, np.float64))


def fact_of(x: Any) -> Fact:
    """Return the facts about ``x``. An axis of length 1 may have any stride, but loops depend on the stride."""
    if type(x) is ndarray:
        is_contiguous = x.flags.c_contiguous and (not x.ndim or x.strides[-1] == x.itemsize)
        return C_CONTIGUOUS if is_contiguous else _NOT_CONTIGUOUS
    return _SCALARS.get(type(x)) or _SCALARS.setdefault(type(x), Fact(type(x)))


class Const:
    """Constant argument of an operation: a number, an array or another object.

    Attributes:
        value: the constant itself.
        is_reread: whether it is an array of the user's program that is read again at each call.
        key: see ``_key_of``.
        is_number: whether it is a real number, or a double in an array without axes.
        is_one: whether it is the number 1, or an array without axes that holds 1.
    """

    __slots__ = ("dtype", "is_number", "is_one", "is_reread", "key", "shape", "value")

    def __init__(self, value: Any, is_reread: bool, key: Any) -> None:
        self.value, self.is_reread, self.key = value, is_reread, key
        self.shape: tuple[int, ...] = value.shape if isinstance(value, ndarray) else ()
        self.dtype = value.dtype if isinstance(value, ndarray) else None
        self.is_number = type(value) in _NUMBERS or (self.dtype == np.float64 and not is_reread and not self.shape)
        self.is_one = not is_reread and not self.shape and _is_one(value)


def _key_of(x: Any, is_reread: bool) -> Any:
    """Return the key of a constant: equal for constants that are equal bit for bit."""
    kind = type(x)
    if (kind is float or kind is int) and x and x == x:  # the most common case; 0 and -0 would be one key
        return kind, x
    if isinstance(x, ndarray) and not is_reread and x.nbytes <= _MAX_COMPARED_BYTES:
        return x.shape, x.strides, x.dtype.str, x.tobytes()
    return (kind, repr(x)) if isinstance(x, (bool, int, float, complex, np.generic)) else ("id", id(x))


def primitive_without_rules(name: str, impl: Callable[..., Any]) -> Primitive:
    """Return a primitive without rules: recorded operations are only computed."""

    def never(*args: Any) -> Any:
        raise NotImplementedError("a recorded operation has no rules")

    return Primitive(name, impl, None, None, never)


class Op:
    """Operation of a recorded run, or a question of Python about a value, which has no results.

    Attributes:
        name: the name of the primitive.
        primitive: the primitive.
        args: values and constants.
        params: static parameters.
        outs: the values of the results.
        line: the line of the user's program; None if it is unknown.
    """

    __slots__ = ("args", "line", "name", "outs", "params", "primitive")

    def __init__(
        self, primitive: Any, args: Sequence[Value], params: dict[str, Any], outs: list[int], line: Any
    ) -> None:
        self.name: str = primitive.name
        self.primitive, self.args, self.params, self.outs, self.line = primitive, args, params, outs, line

    @property
    def values(self) -> list[int]:
        """Arguments that are not constants."""
        return [a for a in self.args if type(a) is int]


#: Primitive of questions; the parameter ``answer`` is the value's answer on this path.
_QUESTION = primitive_without_rules("question", lambda xp, x, *, answer: ())


class Graph:
    """Recorded run: its operations and questions, later without those that nothing needs.

    Attributes:
        inputs: the number of inputs.
        ops: operations and questions, in order.
        outputs: a value or a constant for each leaf of the result.
        shapes: shapes by value.
        dtypes: dtypes by value.
        facts: facts by value.
        recorded: the number of operations that the run performed.
        rounding_sensitive: whether the way in which something is computed may change its last bits: the rounding of
            complex products depends on the order of factors, that of sums on the order of axes in memory.
        warns: whether the function itself gives warnings on this path, so that it must be run itself.
    """

    def __init__(self) -> None:
        self.inputs = self.recorded = 0
        self.ops: list[Op] = []
        self.outputs: list[Value] = []
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[Any] = []
        self.facts: list[Fact] = []
        self.rounding_sensitive = self.warns = False
        self._values_by_operation: dict[Any, list[int]] = {}  # results by operation, to find equal operations
        self._repeated_parts = 0  # number of parts of the run that were repeated so far
        self._consts: dict[Any, Const] = {}
        self._asked: set[Any] = set()  # keys of the questions

    def shape(self, value: Value) -> tuple[int, ...]:
        """Return the shape of a value or constant."""
        shape: tuple[int, ...] = self.shapes[value] if type(value) is int else value.shape
        return shape

    def is_array(self, value: Value) -> bool:
        """Whether ``value`` is a value, not a constant, and an array."""
        return type(value) is int and self.facts[value].kind is ndarray

    def nbytes(self, value: int) -> int:
        """Return the size of an array in bytes."""
        size: int = prod(self.shapes[value]) * self.dtypes[value].itemsize
        return size

    # ---- recording -----------------------------------------------------------------------------------------------

    def input(self, x: Any) -> int:
        """Return a new value for the next input."""
        self.inputs += 1
        return self._value(x, "input")

    def constant(self, x: Any, is_reread: bool = False) -> Const:
        """Return the constant for ``x``; arguments that are equal bit for bit share one."""
        key = _key_of(x, is_reread)
        return self._consts.get(key) or self._consts.setdefault(key, Const(x, is_reread, key))

    def operation(
        self, primitive: Any, args: tuple[Value, ...], params: dict[str, Any], results: Sequence[Any], line: Any
    ) -> Sequence[int]:
        """Return the values of an operation's results; an equal operation before it provides its own values."""
        self.recorded += 1
        name = primitive.name
        same = self._unchanged_argument(name, args, params, results[0]) if name in _MAY_RETURN_ARGUMENT else None
        if same is not None:
            return (same,)
        key: Any = (primitive, args)
        if params:
            key = (*key, tuple([(k, type(v), v) for k, v in params.items()]))
        try:
            outs = self._values_by_operation.get(key)
        except TypeError:  # a parameter is not hashable
            key = outs = None
        if primitive.runs_user_code or name == "write":
            key = outs = None
        elif self._repeated_parts and key is not None:
            is_large = any(type(x) is ndarray and x.nbytes >= LARGE for x in results)
            key = None if is_large else (self._repeated_parts, key)
            outs = self._values_by_operation.get(key)
        if outs is None:
            outs = [self._value(results[0], name)] if len(results) == 1 else [self._value(x, name) for x in results]
            self.ops.append(Op(primitive, args, params, outs, line))
            if key is not None:
                self._values_by_operation[key] = outs
        return outs

    def begin_repeated_part(self) -> None:
        """Note that a checkpoint repeats the following operations, and then runs their backward pass.

        From here on, results of equal operations before this point are not reused: they would have to be kept until
        now, and the checkpoint computes them again to save that memory.
        """
        self._repeated_parts += 1

    def _value(self, x: Any, name: str) -> int:
        """Return a new value for the result ``x`` of the operation ``name``."""
        fact = fact_of(x)
        if fact.is_number:
            return self.new_value((), DOUBLE, fact)
        shape, dtype = (x.shape, x.dtype) if fact.kind is ndarray else backend.shape_and_dtype_of(x)
        if dtype.kind == "c" or (fact is _NOT_CONTIGUOUS and name not in VIEWS and name != "input"):
            self.rounding_sensitive = True
        return self.new_value(shape, dtype, fact)

    def _unchanged_argument(self, name: str, args: Sequence[Value], params: Any, result: Any) -> int | None:
        """Return the argument that an operation returns unchanged, bit for bit; None if there is none."""
        first = args[0]
        if name in ("multiply", "divide"):
            if type(first) is int and (type(args[1]) is int or not args[1].is_one):
                return None  # the most common case
            for a, b in ((args[0], args[1]), (args[1], args[0]))[: 1 if name == "divide" else 2]:
                if type(a) is int and type(b) is Const and b.is_one and self.dtypes[a].kind == "f":
                    return a if self._matches(a, result) else None
        elif type(first) is int and (name != "permute" or params["axes"] == tuple(range(len(params["axes"])))):
            return first if self._matches(first, result) else None
        return None

    def _matches(self, value: int, x: Any) -> bool:
        like = (self.shapes[value], self.dtypes[value])
        return like == backend.shape_and_dtype_of(x) and self.facts[value] == fact_of(x)

    def record_question(self, value: int, answer: Any) -> None:
        """Record a question: Python looked at a value. A question that was recorded before has the same answer."""
        key = (value, type(answer), answer.tobytes() if isinstance(answer, ndarray) else repr(answer))
        if key not in self._asked:
            self._asked.add(key)
            self.ops.append(Op(_QUESTION, (value,), {"answer": answer}, [], None))

    def finish(self, outputs: list[Value]) -> None:
        """Record the results, and drop operations that neither results nor questions need."""
        self.outputs = outputs
        self.drop_unneeded()
        self._values_by_operation.clear()
        self._asked.clear()

    # ---- changing ------------------------------------------------------------------------------------------------

    def drop_unneeded(self) -> None:
        """Drop operations that neither results nor questions need."""
        live = bytearray(len(self.shapes))
        for v in self.outputs:
            if type(v) is int:
                live[v] = 1
        kept = []
        for op in reversed(self.ops):
            outs = op.outs
            if not outs or live[outs[0]] or any(live[v] for v in outs[1:]) or _is_kept(self, op):
                for a in op.args:
                    if type(a) is int:
                        live[a] = True
                kept.append(op)
        self.ops = kept[::-1]

    def new_value(self, shape: tuple[int, ...], dtype: Any, fact: Fact) -> int:
        """Return a new value with these properties."""
        self.shapes.append(shape)
        self.dtypes.append(dtype)
        self.facts.append(fact)
        return len(self.shapes) - 1


#: Operations that may return an argument unchanged, bit for bit.
_MAY_RETURN_ARGUMENT = frozenset(("reshape", "broadcast_to", "permute", "multiply", "divide"))


def _is_one(x: Any) -> bool:
    return isinstance(x, (int, float, np.generic, ndarray)) and not isinstance(x, bool) and bool(x == 1)


#: Operations that are kept because they may raise errors. A mere warning is not worth an unneeded operation.
_MAY_RAISE = frozenset(
    (
        "cholesky", "solve", "inv", "eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals", "qr", "pinv", "lstsq",
        "solve_triangular", "lu", "lu_solve", "schur", "expm", "logm", "sqrtm", "solve_banded", "cho_solve",
    )
)  # fmt: skip


#: Operators that raise errors for some of Python's numbers, unlike for those of NumPy.
_RAISING_OPERATORS = frozenset(("divide", "remainder", "floor_divide", "power", "infix_power"))


def _is_kept(graph: Graph, op: Op) -> bool:
    """Whether an operation is kept because the program may catch its error, or branch on the kind of its result."""
    if op.primitive.data_dependent or op.name in _MAY_RAISE:
        return True
    if op.name not in _RAISING_OPERATORS or graph.facts[op.outs[0]].kind is not float:
        return False
    divisor = op.args[1]
    return type(divisor) is int or "power" in op.name or not divisor.value


def copy_with_layout(x: ndarray) -> ndarray:
    """Return a copy with the memory layout of ``x``, including negative strides and gaps: loops depend on these."""
    if not x.size or x.flags.c_contiguous or x.flags.f_contiguous:
        return x.copy("K")
    reach = [stride * (n - 1) // x.itemsize for n, stride in zip(x.shape, x.strides, strict=True)]
    before = -sum([r for r in reach if r < 0])
    memory = np.zeros(before + sum([r for r in reach if r > 0]) + 1, x.dtype)
    made = as_strided(memory[before:], x.shape, x.strides)
    made[...] = x
    return made
