"""Record of one run of a function: its operations in order, and the questions that Python asked about values.

The capture of ``trace`` records a source line and the values for reverse mode with every operation, which takes most
of its time. Here an operation is a tuple, and its source line is looked up once for each position in the code.

NumPy rounds some of Python's operators differently from its functions. ``x ** y`` of two numbers is C's power, while
``np.power(x, y)`` uses the loop for arrays, which differs in the last bit of one result in twenty. Products, powers and
absolute values of complex numbers differ too, and so do products in place. The operators of a graph's tracer report
which of the two a program calls, see ``compute_operator``.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Any

import numpy as np

from funcgrad import reverse, tree
from funcgrad.core import (
    READ_ONLY,
    Primitive,
    Tracer,
    are_doubles,
    aval_of,
    bind,
    describe,
    refuse_closure,
    shallow_copy,
    tracer_of,
)
from funcgrad.errors import InputError
from funcgrad.graph import GraphTrace, Source
from funcgrad.kinds.custom import custom_call
from funcgrad.numpy_code import may_use_text_of_examples, restore_refusal, take_refusal
from funcgrad.shared_state import pending_refusals, repetitions, unfinished_traces
from funcgrad.transforms.compiled.graphs import Const, Graph, copy_with_layout, fact_of, primitive_without_rules

ndarray = np.ndarray


def _operator_primitive(name: str, compute: Callable[..., Any]) -> Primitive:
    """Return a primitive that ``compute`` computes. It has no rules, because recorded graphs are only computed."""
    made = primitive_without_rules(name, lambda xp, *args: compute(*args))
    made.call = compute
    return made


def _multiply_in_place(x: Any, y: Any) -> Any:
    made = copy_with_layout(x)
    made *= y
    return made


#: Python's operators as primitives, by the name of the operation. ``_IN_PLACE`` is the operator ``*=``.
INFIX = {
    "multiply": _operator_primitive("infix_multiply", operator.mul),
    "power": _operator_primitive("infix_power", operator.pow),
    "absolute": _operator_primitive("infix_absolute", abs),
}
_IN_PLACE = _operator_primitive("multiply_in_place", _multiply_in_place)
ROUNDED_DIFFERENTLY = frozenset(INFIX)


def operator_for(name: str, values: Sequence[Any], in_place: bool) -> Primitive | None:
    """Return the primitive for a Python operator; None if the operation itself rounds like the operator.

    Args:
        name: the name of the operation.
        values: the operands.
        in_place: whether the operator is an in-place one such as ``*=``.
    """
    if any(issubclass(type(x), Tracer) for x in values):  # of another run: the number is not visible
        return None
    arrays = ndarray in map(type, values)
    if not any(map(_is_complex, values)):
        return INFIX[name] if name == "power" and not arrays else None
    if not arrays:
        return INFIX[name]
    if name == "multiply" and in_place and type(values[0]) is ndarray:
        return _IN_PLACE if values[0].size == 1 or not fact_of(values[0]).contiguous else None
    return INFIX[name] if name == "power" else None


def is_ambiguous(name: str, args: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether it is unknown if an operator or a function was called.

    An operator with a NumPy number on the left is an operator of that number. It dispatches to its right operand under
    the same name as the function.
    """
    return issubclass(type(args[0]), np.generic) and len(args) == 2 and operator_for(name, values, False) is not None


def _is_complex(x: Any) -> bool:
    return type(x) is complex or (isinstance(x, (ndarray, np.generic)) and x.dtype.kind == "c")


_PYTHON = frozenset((bool, int, float, complex))
#: Packages whose frames are not the user's code.
_LIBRARIES = frozenset(("funcgrad", "numpy", "scipy", "toolz", "cytoolz", "optree", "functools"))
#: Operations that return a Python number for Python numbers, as Python's arithmetic does.
_ARITHMETIC = frozenset(
    ("add", "subtract", "multiply", "divide", "negative", "positive", "power", "remainder", "floor_divide")
)

#: Python's operators that round doubles like NumPy's functions, in a third of the time.
_FAST_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg
}  # fmt: skip
_DOUBLES = frozenset((float, np.float64))


class UnrecordableError(InputError):
    """Error for a function whose recorded operations might not give the same result."""


#: Line of operations that transforms perform around the function, such as the backward pass.
OUTSIDE_FUNCTION = Source("", 0, "")


def capture(
    fun: Callable[..., Any],
    fill: Callable[[list[Any]], Any],
    values: Sequence[Any],
    constant_array: Callable[[ndarray], Any],
    is_reread: Callable[[ndarray], bool],
    names: Collection[str],
) -> tuple[Graph, tree.PyTreeSpec]:
    """Run ``fun`` once and record its operations.

    Args:
        fun: the function.
        fill: ``fill(inputs) -> (args, kwargs)`` puts the inputs in their places among the arguments.
        values: the inputs.
        constant_array: ``constant_array(array)`` returns an array that is no input, or a copy of its values.
        is_reread: returns whether such an array is read again at each call.
        names: the names used by the function and the functions that it can reach, see ``is_ambiguous``.

    Returns:
        The recorded graph, and the structure of the result.
    """
    run, around = Capture(constant_array, is_reread, names), take_refusal() if pending_refusals else None
    try:
        args, kwargs = fill([run.input(x) for x in values])
        out = fun(*args, **kwargs)
        if pending_refusals and may_use_text_of_examples(fun):
            raise UnrecordableError("a text shows a number that each later run has anew, and the function may use it.")
    finally:
        run.close()
        if pending_refusals or around is not None:
            restore_refusal(around, fun)
    leaves, spec = tree.flatten(out)
    run.graph.finish([run.output(leaf) for leaf in leaves])
    return run.graph, spec


def _is_for_blas(x: Any) -> bool:
    """Whether an array of one or two axes has a layout for which all kinds of products use one BLAS routine."""
    if type(x) is not ndarray or x.ndim > 2 or x.flags.c_contiguous or x.flags.f_contiguous:
        return True
    return min(x.strides) > 0 and (x.ndim == 1 or min(x.strides) == x.itemsize)


def _aval_for_tracer(x: Any) -> Any:
    """Return the ``form`` of a tracer of ``x``; operations of tracers that hold this tracer choose fast paths by it."""
    return np.float64 if type(x) is np.float64 else aval_of(x) if type(x) is ndarray else None


_CUSTOM: Primitive = custom_call.primitive
#: Code that calls the user's function or rules: operations that this code calls belong to no line of the user.
_TRANSFORM_CODES = frozenset(id(fun.__code__) for fun in (capture, reverse.backward, reverse._visit))


class Capture(GraphTrace):
    """Trace that records a run. The ``slot`` of its tracers is a value of the graph."""

    __slots__ = (
        "code_owners", "codes", "constant_array", "graph", "is_reread", "lines", "lock", "may_raise", "names",
        "repeated_part",
    )  # fmt: skip

    is_bit_exact = True
    #: A call of an XLA program keeps the same values for its derivative as in a run that is not recorded.
    runs_jax = True

    def __init__(self, constant_array: Any, is_reread: Any, names: Collection[str]) -> None:
        super().__init__()
        self.lock = Lock()  # the function may compute in several threads
        self.graph = Graph()
        self.constant_array, self.is_reread, self.names = constant_array, is_reread, names
        self.may_raise = not {"errstate", "seterr"}.isdisjoint(names)  # and has no errors where NumPy warns
        self.repeated_part: Any = ()  # the part that is being repeated, see ``shared_state.repetitions``
        self.code_owners: dict[int, int] = {}  # owner of each code object, by identity, see ``_owner``
        self.codes: list[Any] = []  # keeps objects alive whose identity is a key
        self.lines: dict[tuple[int, int], Source] = {}  # by the identity of code and a position in it

    def input(self, value: Any) -> Tracer:
        """Return the tracer of the next input; the function must not write to it."""
        made = tracer_of(shallow_copy(value), self, self.graph.input(value), _aval_for_tracer(value))
        made.alias = READ_ONLY
        return made

    def run(self, *args: Any) -> Any:
        """Raise an error: callers that find this method overridden take the general path."""
        raise NotImplementedError

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``primitive`` and compute it. A function with custom rules is entered, to record its operations.

        An XLA program is recorded as one operation, because its own operations are not visible.
        """
        if primitive is _CUSTOM and primitive.impl is not None:
            ans = primitive.impl(np, *args, **params)
            refuse_closure(self, primitive, (), params)
            return ans
        return self._record(primitive, args, params)

    def _record(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record ``primitive`` and return its results."""
        places, values = [], []
        for x in args:
            if type(x) is Tracer and x._trace is self:
                places.append(x.slot)
                values.append(x._val)
            else:
                places.append(self.constant(x))
                values.append(x)
        name = primitive.name
        if name in _FAST_OPERATORS and type(values[0]) in _DOUBLES and type(values[-1]) in _DOUBLES:  # one or two
            ans = _FAST_OPERATORS[name](*values)
        else:
            ans = self._computed(primitive, args, values, params)
            if name == "matmul" and not all(map(_is_for_blas, values)):
                self.graph.rounding_sensitive = True  # here NumPy's matmul rounds differently from its dot
            if name in _ARITHMETIC and type(ans) not in _PYTHON and _PYTHON.issuperset(map(type, values)):
                ans = ans.item()
        line = self._line()
        results = ans if primitive.multiple else (ans,)
        with self.lock:
            if (part := repetitions.get()) is not self.repeated_part:
                self.repeated_part = part
                if part:
                    self.graph.begin_repeated_part()
            outs = self.graph.operation(primitive, tuple(places), params, results, line)
        if not primitive.multiple:
            return tracer_of(ans, self, outs[0], _aval_for_tracer(ans))
        return tuple([tracer_of(a, self, v, _aval_for_tracer(a)) for a, v in zip(ans, outs, strict=True)])

    def _computed(self, primitive: Primitive, args: tuple[Any, ...], values: list[Any], params: dict[str, Any]) -> Any:
        """Compute ``primitive``; if that raises an error, which the program may catch, other numbers may not."""
        if self.may_raise and "raise" in np.geterr().values():
            raise UnrecordableError(
                "jit: recorded programs do not raise NumPy's warnings as errors, got numpy.errstate with 'raise'. Ask "
                "for the numbers: if x <= 0."
            )
        try:
            return primitive.call(*values, **params)
        except Exception:
            for x in args:
                if type(x) is Tracer and x._trace is self:
                    self.note_decision(x, np.asarray(x._val))
            raise

    def compute_function(self, operation: Any, *args: Any) -> Any:
        """Compute ``operation`` for a NumPy function, or for the operator of a NumPy number and a tracer."""
        primitive = getattr(operation, "primitive", None)
        name = None if primitive is None else primitive.name
        first_is_mine = type(args[0]) is Tracer and args[0]._trace.is_bit_exact
        if name not in ROUNDED_DIFFERENTLY or first_is_mine or not is_ambiguous(name, args, self._values(args)):
            return operation(*args)
        if name in self.names:
            raise UnrecordableError(
                f"jit: an operator of a NumPy number and a traced one cannot be told from numpy.{name}, which rounds "
                "otherwise, got both. Write the number as a number of Python's: float(x)."
            )
        return self.compute_operator(operation, *args)

    def compute_operator(self, operation: Any, *args: Any, in_place: bool = False) -> Any:
        """Compute Python's operator, which may round differently from the function ``operation``."""
        values = self._values(args)
        if _DOUBLES.issuperset(map(type, values)) and self.fast:  # the most common case
            primitive = operation.primitive
            return self._record(INFIX["power"] if primitive.name == "power" else primitive, args, {})
        found = operator_for(operation.primitive.name, values, in_place)
        if found is not None and ndarray in map(type, values) and self._is_in_transform():
            # in a run that is not recorded the operand is an ndarray, or a tracer that calls the function
            raise UnrecordableError(
                f"jit: an operator of complex arrays in a transform cannot be told from {operation.primitive.name}, "
                "which rounds otherwise, got such arrays. Call the function."
            )
        return operation(*args) if found is None else bind(found, args, {})

    def _is_in_transform(self) -> bool:
        """Whether this thread runs a transform inside of the function."""
        return any(trace.level > self.level and trace.thread == self.thread for trace in unfinished_traces())

    def compute_for_rule(self, operation: Any, *args: Any, short: bool) -> Any:
        """Compute ``operation`` for a rule of another trace; if ``short``, its fast path uses Python's operator."""
        primitive, values = operation.primitive, self._values(args)
        if any(issubclass(type(x), Tracer) for x in values):
            return operation(*args)
        pythons = primitive.arithmetic and float in (kinds := set(map(type, values))) and _PYTHON.issuperset(kinds)
        if primitive.name == "power" and (pythons or (short and are_doubles(values))):
            return bind(INFIX["power"], args, {})
        return self._record(primitive, args, {}) if self.fast else operation(*args)

    def _values(self, args: tuple[Any, ...]) -> list[Any]:
        return [x._val if type(x) is Tracer and x._trace is self else x for x in args]

    def constant(self, x: Any) -> Const:
        """Return the constant for an argument that is not a value of the graph."""
        if type(x) is not ndarray:
            return self.graph.constant(x)
        x = self.constant_array(x)
        return self.graph.constant(x, self.is_reread(x))

    def note_composed(self) -> None:
        """Note that the run composes operations for a function of NumPy: the program needs trials of more arguments."""
        self.graph.rounding_sensitive = True

    def note_warning(self) -> None:
        """Note that the function warns: it did so in the first run, and must do so again at each call."""
        self.graph.warns = True

    def note_decision(self, tracer: Tracer, answer: Any) -> None:
        """Record a question; in a part that a checkpoint repeats it was answered before."""
        with self.lock:
            if not repetitions.get():
                self.graph.record_question(tracer.slot, answer)

    def output(self, leaf: Any) -> Any:
        """Return the value of the graph for a leaf of the result, or the constant that the leaf is."""
        if type(leaf) is Tracer and leaf._trace is self:
            return leaf.slot
        leaf = shallow_copy(leaf)
        if isinstance(leaf, Tracer):
            raise UnrecordableError(
                f"jit: the function returned a value of another transform, got {describe(leaf)}. Return values that "
                "are computed from the arguments."
            )
        return self.constant(leaf)

    def _line(self) -> Source | None:
        frame: Any = sys._getframe(4)  # skips frames of this class and of the operation
        known = self.code_owners.get
        while not (owner := known(id(code := frame.f_code))):  # a hash of code would hash its contents
            if owner is None:
                self.code_owners[id(code)] = _owner(frame)
                self.codes.append(code)
            elif (frame := frame.f_back) is None:
                return None
        if owner is _TRANSFORM:
            return OUTSIDE_FUNCTION
        position = id(code), frame.f_lasti
        found = self.lines.get(position)
        if found is None:
            found = self.lines[position] = Source(code.co_filename, frame.f_lineno, code.co_name)
        return found


_LIBRARY, _TRANSFORM, _USER = range(3)


def _owner(frame: Any) -> int:
    if id(frame.f_code) in _TRANSFORM_CODES:
        return _TRANSFORM
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return _LIBRARY if package in _LIBRARIES else _USER
