"""One run of a function, listed: its operations in order, and the questions that Python asked of values.

The capture of ``trace`` notes a line of source and what reverse mode would keep for every operation, which takes most
of its time. Here an operation is a tuple, and its line a frame that was met.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad import backend, tree
from funcgrad.core import Primitive, Tracer, describe, refuse_closure, twin
from funcgrad.errors import InputError
from funcgrad.graph import GraphTrace, GraphTracer, Ref, Step
from funcgrad.kinds.custom import custom_call
from funcgrad.records import backward
from funcgrad.transforms.compiled.operators import DIFFERING, operator_for

__all__ = ["AROUND", "Asked", "Captured", "Fact", "Line", "capture", "copy_of", "fact_of"]

ndarray = np.ndarray
_PYTHON = frozenset((bool, int, float, complex))
#: Packages whose frames are not the user's.
_BETWEEN = frozenset(("funcgrad", "numpy", "scipy", "toolz", "cytoolz", "optree", "functools"))
#: Operations that give a Python number of Python numbers, as Python's own arithmetic does.
_ARITHMETIC = frozenset(("add", "subtract", "multiply", "divide", "negative", "positive", "power", "remainder"))


class Line(NamedTuple):
    """A line of the user's program."""

    path: str
    number: int
    function: str


#: What transforms do around the function, on the way back say.
AROUND = Line("", 0, "")


class Fact(NamedTuple):
    """What is known of a result besides its shape and dtype.

    Attributes:
        kind: its type: ndarray, a scalar type of NumPy, or a type of Python's numbers.
        contiguous: whether an array lies in memory row by row.
    """

    kind: type
    contiguous: bool


def fact_of(x: Any) -> Fact:
    """What is known of a value. An axis of length 1 may have any stride, and loops look at it."""
    if type(x) is not ndarray:
        return Fact(type(x), False)
    return Fact(ndarray, x.flags.c_contiguous and (not x.ndim or x.strides[-1] == x.itemsize))


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


class Asked(NamedTuple):
    """A question that Python asked: before operation ``place`` the value at ``ref`` had this ``answer``."""

    place: int
    ref: Ref
    answer: Any


class Captured(NamedTuple):
    """What a run did.

    Attributes:
        steps: the operations; the ``note`` of each is ``(facts of the results, line)``.
        asked: the questions, in order.
        outputs: for each leaf of the result a ``Ref`` or a constant.
        spec: the structure of the result.
        inputs: how many inputs there are.
    """

    steps: list[Step]
    asked: list[Asked]
    outputs: list[Any]
    spec: tree.PyTreeSpec
    inputs: int


def capture(fun: Callable[..., Any], fill: Callable[[list[Any]], Any], values: Sequence[Any], held: Any) -> Captured:
    """Run ``fun`` once.

    Args:
        fun: the function.
        fill: ``fill(inputs) -> (args, kwargs)`` puts the inputs where they belong among the arguments.
        values: the inputs.
        held: ``held(array)`` gives what stands for an ndarray that is no input: itself, or a copy of what it is now.
    """
    run = Capture(held)
    try:
        args, kwargs = fill([run.input(x) for x in values])
        out = fun(*args, **kwargs)
    finally:
        run.close()
    leaves, spec = tree.flatten(out)
    outputs = [run.leave(leaf) for leaf in leaves]
    return Captured(run.operations, run.asked, outputs, spec, run.inputs)


_CUSTOM: Primitive = custom_call.primitive  # type: ignore[attr-defined]
_BEGINS, _BACKWARD = capture.__code__, backward.__code__


class Capture(GraphTrace):
    """The trace of such a run."""

    __slots__ = ("asked", "held", "users")

    #: Rules may do with a tracer what they do with the ndarray it holds, see ``graph.stands_for_array``.
    repeats = True
    #: A call of XLA's keeps for its derivative what it keeps in a run without this.
    runs_jax = True

    def __init__(self, held: Callable[[ndarray], Any]) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self.held = held
        self.users: dict[Any, bool] = {}  # by code: whether it is the user's

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
        lowered, places = list(args), list(args)
        python = primitive.name in _ARITHMETIC
        for i, arg in enumerate(args):
            if type(arg) is GraphTracer and arg._trace is self:
                lowered[i], places[i] = arg.value, arg.ref
                python = python and type(arg.value) in _PYTHON
            elif type(arg) is ndarray:
                places[i] = self.held(arg)
                python = False
            elif python and type(arg) not in _PYTHON:
                python = False
        if primitive.name in DIFFERING:
            primitive = operator_for(primitive, lowered, sys._getframe(1)) or primitive
        ans = primitive.call(*lowered, **params)
        if python and type(ans) not in _PYTHON:
            ans = ans.item()
        results = ans if primitive.multiple else (ans,)
        facts = tuple([fact_of(a) for a in results])
        shapes, dtypes = tuple([backend.shape_of(a) for a in results]), tuple([backend.dtype_of(a) for a in results])
        shape, dtype = (shapes, dtypes) if primitive.multiple else (shapes[0], dtypes[0])
        step = Step(primitive, tuple(places), params, shape, dtype, (facts, self._line()))  # type: ignore[arg-type]
        place = self.note(step).place
        if not primitive.multiple:
            return GraphTracer(ans, self, Ref(place, 0))
        return tuple([GraphTracer(a, self, Ref(place, i)) for i, a in enumerate(ans)])

    def decide(self, tracer: GraphTracer, answer: Any) -> None:
        """Note the question."""
        self.asked.append(Asked(len(self.operations), tracer.ref, answer))

    def leave(self, leaf: Any) -> Any:
        """Where a leaf of the result comes from, or the constant that it is."""
        if type(leaf) is GraphTracer and leaf._trace is self:
            return leaf.ref
        leaf = twin(leaf)
        if isinstance(leaf, Tracer):
            raise InputError(
                f"jit: the function returned a value of another transform, got {describe(leaf)}. Return values that "
                "are computed from the arguments."
            )
        return self.held(leaf) if type(leaf) is ndarray else leaf

    def _line(self) -> Line | None:
        frame: Any = sys._getframe(2)
        users = self.users
        while frame is not None:
            code = frame.f_code
            if code is _BEGINS or code is _BACKWARD:
                return AROUND
            mine = users.get(code)
            if mine is None:
                mine = users[code] = frame.f_globals.get("__name__", "").partition(".")[0] not in _BETWEEN
            if mine:
                return Line(code.co_filename, frame.f_lineno, code.co_name)
            frame = frame.f_back
        return None
