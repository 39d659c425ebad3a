"""One run of a function, listed: its operations in order, and the questions that Python asked of values.

The capture of ``trace`` notes a line of source and what reverse mode would keep for every operation, which takes most
of its time. Here an operation is a tuple, and its line a frame that was met.

NumPy rounds some of Python's operators otherwise than its functions. ``x ** y`` of two numbers is C's power,
``np.power(x, y)`` the loop of arrays, which differs in the last bit of one result in twenty. Products, powers and
absolute values of complex numbers are others, and products in place. Which of them a program calls, the operators of a
tracer of a graph say, see ``graph.GraphTrace.by_operator``.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from funcgrad import reverse, tree
from funcgrad.core import READ_ONLY, Primitive, Tracer, bind, describe, refuse_closure, tracer_of, twin
from funcgrad.errors import InputError
from funcgrad.graph import GraphTrace
from funcgrad.kinds.avals import are_doubles, aval_of
from funcgrad.kinds.custom import custom_call
from funcgrad.running import repeating, running
from funcgrad.transforms.compiled.graphs import Const, Graph, computed, copy_of, fact_of

__all__ = ["AROUND", "UnrecordableError", "capture", "operator_for"]

ndarray = np.ndarray


def _as_operator(name: str, compute: Callable[..., Any]) -> Primitive:
    """A primitive that ``compute`` computes; graphs that are recorded once are only computed."""
    made = computed(name, lambda xp, *args: compute(*args))
    made.call = compute
    return made


def _multiplied_in_place(x: Any, y: Any) -> Any:
    made = copy_of(x)
    made *= y
    return made


#: By the name of an operation, what Python's operator for it is, and the operator in place.
INFIX = {
    "multiply": _as_operator("infix_multiply", operator.mul),
    "power": _as_operator("infix_power", operator.pow),
    "absolute": _as_operator("infix_absolute", abs),
}
_IN_PLACE = _as_operator("multiply_in_place", _multiplied_in_place)
DIFFERING = frozenset(INFIX)


def operator_for(name: str, values: Sequence[Any], in_place: bool) -> Primitive | None:
    """What computes an operator as Python does; None where that is what computes the operation.

    Args:
        name: the operation's.
        values: what the operator is asked for.
        in_place: whether it is one such as ``*=``.
    """
    if any(issubclass(type(x), Tracer) for x in values):  # of another run, in which nobody sees the number
        return None
    arrays = ndarray in map(type, values)
    if not any(map(_is_complex, values)):
        return INFIX[name] if name == "power" and not arrays else None
    if not arrays:
        return INFIX[name]
    if name == "multiply" and in_place and type(values[0]) is ndarray:
        return _IN_PLACE if values[0].size == 1 or not fact_of(values[0]).contiguous else None
    return INFIX[name] if name == "power" else None


def doubtful(name: str, args: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether it cannot be known if an operator or a function was called.

    An operator with a number of NumPy's on the left is one of that number, which asks its right operand by the same
    name as the function does.
    """
    return issubclass(type(args[0]), np.generic) and len(args) == 2 and operator_for(name, values, False) is not None


def _is_complex(x: Any) -> bool:
    return type(x) is complex or (isinstance(x, (ndarray, np.generic)) and x.dtype.kind == "c")


_PYTHON = frozenset((bool, int, float, complex))
#: Packages whose frames are not the user's.
_BETWEEN = frozenset(("funcgrad", "numpy", "scipy", "toolz", "cytoolz", "optree", "functools"))
#: Operations that give a Python number of Python numbers, as Python's own arithmetic does.
_ARITHMETIC = frozenset(("add", "subtract", "multiply", "divide", "negative", "positive", "power", "remainder"))

#: What Python's operators compute of doubles as NumPy's functions do, in a third of the time.
_QUICK: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg
}  # fmt: skip
_DOUBLES = frozenset((float, np.float64))


class UnrecordableError(InputError):
    """What a function does cannot be listed so that the list gives the same."""


class Line(NamedTuple):
    """A line of the user's program."""

    path: str
    number: int
    function: str


#: What transforms do around the function, on the way back say.
AROUND = Line("", 0, "")


def capture(
    fun: Callable[..., Any],
    fill: Callable[[list[Any]], Any],
    values: Sequence[Any],
    held: Callable[[ndarray], Any],
    is_live: Callable[[ndarray], bool],
    names: Collection[str],
) -> tuple[Graph, tree.PyTreeSpec]:
    """Run ``fun`` once.

    Args:
        fun: the function.
        fill: ``fill(inputs) -> (args, kwargs)`` puts the inputs where they belong among the arguments.
        values: the inputs.
        held: ``held(array)`` gives what stands for an ndarray that is no input: itself, or a copy of what it is now.
        is_live: whether such an array is read anew at each call.
        names: the names that the function and those that it can reach use, see ``doubtful``.

    Returns:
        What it did, and the structure of its result.
    """
    run = Capture(held, is_live, names)
    try:
        args, kwargs = fill([run.input(x) for x in values])
        out = fun(*args, **kwargs)
    finally:
        run.close()
    leaves, spec = tree.flatten(out)
    run.graph.ends([run.leave(leaf) for leaf in leaves])
    return run.graph, spec


def _is_for_blas(x: Any) -> bool:
    """Whether an array of one or two axes lies in memory so that products of all kinds are by one routine of BLAS."""
    if type(x) is not ndarray or x.ndim > 2 or x.flags.c_contiguous or x.flags.f_contiguous:
        return True
    return min(x.strides) > 0 and (x.ndim == 1 or min(x.strides) == x.itemsize)


def _form(x: Any) -> Any:
    """By which operations of tracers that hold the tracer of ``x`` take their short cases."""
    return np.float64 if type(x) is np.float64 else aval_of(x) if type(x) is ndarray else None


_CUSTOM: Primitive = custom_call.primitive  # type: ignore[attr-defined]
#: What calls the user's function and what calls rules: operations that these ask for belong to no line of the user's.
_AROUND = frozenset(id(fun.__code__) for fun in (capture, reverse.backward, reverse._visit))


class Capture(GraphTrace):
    """The trace of such a run. The ``slot`` of its tracers is a value of the graph."""

    __slots__ = ("codes", "graph", "held", "is_live", "lines", "names", "order", "repeated", "users")

    repeats = True
    #: A call of XLA's keeps for its derivative what it keeps in a run without this.
    runs_jax = True

    def __init__(self, held: Any, is_live: Any, names: Collection[str]) -> None:
        super().__init__()
        self.order = Lock()  # the function may compute in several threads
        self.graph = Graph()
        self.held, self.is_live, self.names = held, is_live, names
        self.repeated: Any = ()  # what is being repeated, see ``running.repeating``
        self.users: dict[int, int] = {}  # by the identity of code: whose it is, see ``_whose``
        self.codes: list[Any] = []  # what is known by its identity must live
        self.lines: dict[tuple[int, int], Line] = {}  # by the identity of code and a place in it

    def input(self, value: Any) -> Tracer:
        """The next input of the function, which must not write to it."""
        made = tracer_of(twin(value), self, self.graph.input(value), _form(value))
        made.alias = READ_ONLY
        return made

    def run(self, *args: Any) -> Any:
        """Not used: who finds it overridden takes the general way."""
        raise NotImplementedError

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``primitive`` and compute it. A function with own rules is entered: what it does is recorded.

        A program of XLA's is one operation: nobody sees inside.
        """
        if primitive is _CUSTOM and primitive.impl is not None:
            ans = primitive.impl(np, *args, **params)
            refuse_closure(self, primitive, (), params)
            return ans
        return self._noted(primitive, args, params)

    def _noted(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The results of ``primitive``, which is recorded."""
        places, values = [], []
        for x in args:
            if type(x) is Tracer and x._trace is self:
                places.append(x.slot)
                values.append(x._val)
            else:
                places.append(self.constant(x))
                values.append(x)
        name = primitive.name
        if name in _QUICK and type(values[0]) in _DOUBLES and type(values[-1]) in _DOUBLES:  # of one or two
            ans = _QUICK[name](*values)
        else:
            ans = primitive.call(*values, **params)
            if name == "matmul" and not all(map(_is_for_blas, values)):
                self.graph.delicate = True  # NumPy's matmul rounds otherwise than its dot there
            if name in _ARITHMETIC and type(ans) not in _PYTHON and _PYTHON.issuperset(map(type, values)):
                ans = ans.item()
        line = self._line()
        results = ans if primitive.multiple else (ans,)
        with self.order:
            if (again := repeating.get()) is not self.repeated:
                self.repeated = again
                if again:
                    self.graph.repeats()
            outs = self.graph.operation(primitive, tuple(places), params, results, line)
        if not primitive.multiple:
            return tracer_of(ans, self, outs[0], _form(ans))
        return tuple([tracer_of(a, self, v, _form(a)) for a, v in zip(ans, outs, strict=True)])

    def by_numpy(self, operation: Any, *args: Any) -> Any:
        """What NumPy asked for, which may be an operator of a number of its own."""
        primitive = getattr(operation, "primitive", None)
        name = None if primitive is None else primitive.name
        first_is_mine = type(args[0]) is Tracer and args[0]._trace.repeats
        if name not in DIFFERING or first_is_mine or not doubtful(name, args, self._values(args)):
            return operation(*args)
        if name in self.names:
            raise UnrecordableError(
                f"jit: an operator of a NumPy number and a traced one cannot be told from numpy.{name}, which rounds "
                "otherwise, got both. Write the number as a number of Python's: float(x)."
            )
        return self.by_operator(operation, *args)

    def by_operator(self, operation: Any, *args: Any, in_place: bool = False) -> Any:
        """What Python's operator gives, which may be rounded otherwise than what the function ``operation`` does."""
        values = self._values(args)
        if _DOUBLES.issuperset(map(type, values)) and self.live:  # the commonest
            primitive = operation.primitive
            return self._noted(INFIX["power"] if primitive.name == "power" else primitive, args, {})
        found = operator_for(operation.primitive.name, values, in_place)
        if found is not None and ndarray in map(type, values) and self._is_within():
            # in a run without this trace it is an array of NumPy's, or one that asks the function
            raise UnrecordableError(
                f"jit: an operator of complex arrays in a transform cannot be told from {operation.primitive.name}, "
                "which rounds otherwise, got such arrays. Call the function."
            )
        return operation(*args) if found is None else bind(found, args, {})

    def _is_within(self) -> bool:
        """Whether this thread is in a transform inside of the function."""
        return any(trace.level > self.level and trace.thread == self.thread for trace in running())

    def by_rule(self, operation: Any, *args: Any, short: bool) -> Any:
        """The same of the rule of another transform, whose short cases call operators of doubles."""
        primitive, values = operation.primitive, self._values(args)
        if any(issubclass(type(x), Tracer) for x in values):
            return operation(*args)
        pythons = primitive.arithmetic and float in (kinds := set(map(type, values))) and _PYTHON.issuperset(kinds)
        if primitive.name == "power" and (pythons or (short and are_doubles(values))):
            return bind(INFIX["power"], args, {})
        return self._noted(primitive, args, {}) if self.live else operation(*args)

    def _values(self, args: tuple[Any, ...]) -> list[Any]:
        return [x._val if type(x) is Tracer and x._trace is self else x for x in args]

    def constant(self, x: Any) -> Const:
        """What stands for an argument that is no value of the graph's."""
        if type(x) is not ndarray:
            return self.graph.constant(x)
        x = self.held(x)
        return self.graph.constant(x, self.is_live(x))

    def composes(self) -> None:
        """Have the program tried for more arguments."""
        self.graph.delicate = True

    def warns(self) -> bool:
        """Note that the function warns: it has done so in the run before, and is to do it again at each call."""
        self.graph.warns = True
        return True

    def decide(self, tracer: Tracer, answer: Any) -> None:
        """Note the question; where a checkpoint repeats a part, it has had its answer."""
        with self.order:
            if not repeating.get():
                self.graph.ask(tracer.slot, answer)

    def leave(self, leaf: Any) -> Any:
        """Where a leaf of the result comes from, or the constant that it is."""
        if type(leaf) is Tracer and leaf._trace is self:
            return leaf.slot
        leaf = twin(leaf)
        if isinstance(leaf, Tracer):
            raise UnrecordableError(
                f"jit: the function returned a value of another transform, got {describe(leaf)}. Return values that "
                "are computed from the arguments."
            )
        return self.constant(leaf)

    def _line(self) -> Line | None:
        frame: Any = sys._getframe(4)  # before these are this class's and the operation's
        known = self.users.get
        while not (whose := known(id(code := frame.f_code))):  # the hash of code is that of all that is in it
            if whose is None:
                self.users[id(code)] = _whose(frame)
                self.codes.append(code)
            elif (frame := frame.f_back) is None:
                return None
        if whose is _TRANSFORMS:
            return AROUND
        place = id(code), frame.f_lasti
        found = self.lines.get(place)
        if found is None:
            found = self.lines[place] = Line(code.co_filename, frame.f_lineno, code.co_name)
        return found


_NOBODYS, _TRANSFORMS, _USERS = range(3)


def _whose(frame: Any) -> int:
    if id(frame.f_code) in _AROUND:
        return _TRANSFORMS
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return _NOBODYS if package in _BETWEEN else _USERS
