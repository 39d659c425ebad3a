"""A recorded run as a short list of operations: equal ones once, needless ones dropped, constants known by their bits.

A value is an int: the inputs first, then the results of operations in order. An argument is a value or a ``Const``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from funcgrad.graph import Ref
from funcgrad.transforms.compiled.capture import Captured, fact_of

__all__ = ["Ask", "Const", "Graph", "Op", "Value", "simplify"]

ndarray = np.ndarray
Value: TypeAlias = Any
_KNOWN = 4096  # bytes of an array up to which it is known by its bits


class Const:
    """A constant: a number, an array or something else that an operation takes.

    Attributes:
        value: it.
        live: whether it is an array of the program's, which is read anew at each call.
        key: equal for constants that are the same to the last bit.
    """

    __slots__ = ("dtype", "key", "live", "shape", "value")

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

    def __init__(self, primitive: Any, args: list[Value], params: dict[str, Any], outs: list[int], line: Any) -> None:
        self.name: str = primitive.name
        self.primitive, self.args, self.params, self.outs, self.line = primitive, args, params, outs, line


class Ask:
    """A question: ``value`` must give ``answer`` here."""

    __slots__ = ("answer", "line", "value")

    def __init__(self, value: int, answer: Any, line: Any) -> None:
        self.value, self.answer, self.line = value, answer, line


class Graph:
    """A simplified run.

    Attributes:
        inputs: how many there are.
        items: operations and questions, in order.
        outputs: a value or a constant for each leaf of the result.
        shapes: by value.
        dtypes: by value.
        facts: by value, see ``capture.Fact``.
        recorded: how many operations there were.
    """

    def __init__(self, inputs: list[Any]) -> None:
        self.inputs = len(inputs)
        self.items: list[Any] = []
        self.outputs: list[Value] = []
        self.shapes: list[tuple[int, ...]] = [np.shape(x) for x in inputs]
        self.dtypes: list[Any] = [np.asarray(x).dtype for x in inputs]
        self.facts = [fact_of(x) for x in inputs]
        self.recorded = 0

    @property
    def operations(self) -> list[Op]:
        """Without the questions."""
        return [item for item in self.items if type(item) is Op]

    def shape(self, value: Value) -> tuple[int, ...]:
        """That of a value or constant."""
        shape: tuple[int, ...] = self.shapes[value] if type(value) is int else value.shape
        return shape

    def is_number(self, value: Value) -> bool:
        """Whether it is a floating number of Python or NumPy, no array."""
        kind = self.facts[value].kind if type(value) is int else type(value.value)
        return kind is float or kind is np.float64

    def add(self, shapes: Any, dtypes: Any, facts: Any) -> list[int]:
        """New values."""
        first = len(self.shapes)
        self.shapes += shapes
        self.dtypes += dtypes
        self.facts += facts
        return list(range(first, len(self.shapes)))


def simplify(captured: Captured, inputs: list[Any], is_live: Any) -> Graph:
    """The graph of a run.

    Args:
        captured: the run.
        inputs: the inputs' values.
        is_live: ``is_live(array)`` says whether a constant is read anew at each call.
    """
    graph = Graph(inputs)
    graph.recorded = len(captured.steps)
    places: dict[Ref, Value] = {Ref(i, None): i for i in range(captured.inputs)}
    consts: dict[int, Const] = {}
    known: dict[Any, list[int]] = {}

    def constant(x: Any) -> Const:
        if type(x) is not ndarray:
            return Const(x)
        found = consts.get(id(x))
        if found is None:
            found = consts[id(x)] = Const(x, is_live(x))
        return found

    asked = iter([*captured.asked, None])
    question = next(asked)
    for place, step in enumerate(captured.steps):
        while question is not None and question.place <= place:
            graph.items.append(Ask(places[question.ref], question.answer, None))
            question = next(asked)
        args = [places[a] if type(a) is Ref else constant(a) for a in step.args]
        facts, line = step.note  # type: ignore[misc]
        outs = _outs(graph, known, step, args, facts, line)
        places.update((Ref(place, i), v) for i, v in enumerate(outs))
    while question is not None:
        graph.items.append(Ask(places[question.ref], question.answer, None))
        question = next(asked)
    graph.outputs = [places[x] if type(x) is Ref else constant(x) for x in captured.outputs]
    graph.items = _needed(graph)
    return graph


def _outs(graph: Graph, known: dict[Any, list[int]], step: Any, args: list[Value], facts: Any, line: Any) -> list[int]:
    """The values that a step gives: old ones, if they are the same to the last bit."""
    same = _unchanged(graph, step, args, facts)
    if same is not None:
        return [same]
    key = _key(step, args)
    outs = None if key is None else known.get(key)
    if outs is None:
        outs = graph.add(step.shapes, step.dtypes, facts)
        graph.items.append(Op(step.primitive, args, step.params, outs, line))
        if key is not None:
            known[key] = outs
    return outs


def _key(step: Any, args: list[Value]) -> Any:
    if step.primitive.calls or step.primitive.name == "write":
        return None
    params = tuple([(k, type(v), v) for k, v in step.params.items()]) if step.params else ()
    key = (step.primitive.name, id(step.primitive), tuple([a if type(a) is int else a.key for a in args]), params)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _unchanged(graph: Graph, step: Any, args: list[Value], facts: Any) -> int | None:
    """The argument that an operation gives back to the last bit."""
    name = step.primitive.name
    first = args[0] if args else None
    if name in ("reshape", "broadcast_to", "permute") and type(first) is int:
        identity = name != "permute" or step.params["axes"] == tuple(range(len(step.params["axes"])))
        alike = graph.shapes[first] == step.shapes[0] and graph.facts[first] == facts[0]
        return first if identity and alike else None
    if name in ("multiply", "divide") and len(args) == 2:
        pairs = [(args[0], args[1]), (args[1], args[0])][: 1 if name == "divide" else 2]
        for a, b in pairs:
            if type(a) is int and type(b) is Const and not b.live and not b.shape and _is_one(b.value):
                like = (graph.shapes[a], graph.dtypes[a], graph.facts[a])
                if like == (step.shapes[0], step.dtypes[0], facts[0]) and step.dtypes[0].kind == "f":
                    return a
    return None


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
    live = {v for v in graph.outputs if type(v) is int}
    kept = []
    for item in reversed(graph.items):
        if type(item) is Ask:
            live.add(item.value)
        elif item.primitive.loose or item.name in _MAY_RAISE or not live.isdisjoint(item.outs):
            live.update([a for a in item.args if type(a) is int])
        else:
            continue
        kept.append(item)
    return _asked_once(kept[::-1])


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
