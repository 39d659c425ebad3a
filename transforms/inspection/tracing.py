"""``tape`` and ``trace``: the tape of a pullback and the graph of a run, for inspection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any, Never, ParamSpec

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.core import Primitive, Tracer, describe, is_array, own_results, shallow_copy
from funcgrad.errors import InputError, NotDifferentiableError, ShapeError
from funcgrad.graph import Note, PipelineStage, Recording
from funcgrad.keeping import copy_shared_constants
from funcgrad.kinds.custom import custom_call
from funcgrad.numpy_code import CheckedForWrites, is_rebuilt
from funcgrad.reverse import number_of, operation_of, parents_of, reachable, saved_by, vjp_of
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.closures import DecisionTrace
from funcgrad.transforms.debugging import saved_values
from funcgrad.transforms.inspection.drawing import Picture
from funcgrad.transforms.inspection.nodes import Node, Operand
from funcgrad.transforms.origins import Origins
from funcgrad.transforms.products import Pullback
from funcgrad.transforms.static_arguments import leaf_names
from funcgrad.transforms.transformed import Transformed, check_callable, hide_extra_arguments, name_of
from funcgrad.typing import PyTree
from funcgrad.writable import as_results, identity_key


class Tape(Picture):
    """Tape of a pullback: the records that the backward pass will visit, from the latest to the earliest.

    ``tape`` makes it. Iterating gives the records in order of execution. ``node.index`` is the index of the record in
    that order, ``node.saved`` the bytes that the record keeps; ``saved`` counts each array once. A tape does not know
    shapes. It knows lines and stages only if it was recorded under ``debug_nans``.

    Example:
        >>> from funcgrad import tape, vjp
        >>> y, pullback = vjp(lambda x: fnp.sum(fnp.exp(x) * 2.0), np.ones(3))
        >>> [(node.index, node.name, node.saved) for node in tape(pullback)]
        [(1, 'exp', 24), (2, 'multiply', 0), (3, 'reduce_sum', 0)]
    """

    kind = "tape"


def tape(pullback: Pullback) -> Tape:
    """Return the tape of a pullback that ``vjp`` returned, for inspection. The pullback does not change.

    Args:
        pullback: the second result of ``vjp``.

    Raises:
        TypeError: ``pullback`` is not a pullback.

    Example:
        >>> from funcgrad import tape, vjp
        >>> y, pullback = vjp(lambda a, b: a * b + a, np.ones(3), np.ones(3))
        >>> print(tape(pullback))
        tape of <lambda>: 2 inputs, 2 operations, 1 output; reverse mode saves 48 B
                    operation  result      arguments               saved
        primals[0]  input      float64[3]
        primals[1]  input      float64[3]
        %2          multiply               primals[0], primals[1]  48 B
        %3          add                    %2, primals[0]
        returns %3
    """
    if not isinstance(pullback, Pullback):
        raise InputError(f"tape: a pullback is needed, got {describe(pullback)}. Pass the second result of vjp.")
    names = [f"primals{path}" for path in tree.flatten_with_path(tree.unflatten(pullback._spec, pullback._leaves))[0]]
    live = [(n, x) for n, x, flag in zip(names, pullback._leaves, pullback._live, strict=True) if flag]
    inputs = [
        Node(i, name, "input", shapes=(backend.shape_of(x),), dtypes=(backend.dtype_of(x),))
        for i, (name, x) in enumerate(live)
    ]
    made: dict[int, Node] = dict(enumerate(inputs))
    kept: dict[int, int] = {}
    records = reachable(pullback._nodes)
    for number in sorted(records):
        if number >= len(inputs):
            record = records[number]
            arrays = saved_arrays(saved_by(record))
            kept.update(arrays)
            args = tuple([Operand(made[-number_of(parent)], 0) for parent in parents_of(record)])
            made[number] = Node(number, operation_of(record), args=args, saved=sum(arrays.values()))
            made[number].source, made[number].stage = getattr(vjp_of(record), "origin", (None, None))
    nodes = [node for number, node in made.items() if number >= len(inputs)]
    outputs = [
        out if record is None else Operand(made[-number_of(record)], 0)
        for out, record in zip(pullback._outs, pullback._nodes, strict=True)
    ]
    return Tape(pullback._name, inputs, nodes, outputs, saved=sum(kept.values()))


def saved_arrays(saved: Any) -> dict[Any, int]:
    """Return the bytes of the arrays that a record saved, by identity; skip constant numbers, arrays without axes."""
    arrays = [x for x in saved_values(saved) if hasattr(x, "dtype") and hasattr(x, "nbytes")]
    return {identity_key(x): int(x.nbytes) for x in arrays if type(x) is not np.ndarray or x.ndim}


P = ParamSpec("P")


class Graph(Picture):
    """Operations of one run of a function, and how they depend on each other.

    ``trace`` makes it. Iterating gives the operations in order of execution; ``inputs`` and ``outputs``
    are where to begin. A call, or ``evaluate``, runs the same operations on other inputs: the graph is a
    function of the same positional arguments and can be transformed like any other.

    Attributes:
        inputs: the nodes of the array arguments.
        outputs: for each leaf of the result its node, or the constant that it is.
        saved: the bytes that reverse mode would keep, each value counted once.
        rebuilt: whether the function ran with funcgrad's functions in place of NumPy's, SciPy's and ``math``'s, see
            ``as_written``.

    Example:
        >>> from funcgrad import grad, trace
        >>> graph = trace(lambda x, y: x * y + y)(3.0, 4.0)
        >>> [node.name for node in graph]
        ['multiply', 'add']
        >>> graph(1.0, 2.0), grad(graph)(1.0, 2.0)
        (np.float64(4.0), np.float64(2.0))
        >>> [parent.name for parent in graph.output.parents]
        ['multiply', 'y']
    """

    kind = "graph"

    def __init__(
        self, name: str, recording: Recording, arguments: _Arguments, out_spec: tree.PyTreeSpec, rebuilt: bool = False
    ) -> None:
        self.__name__, self.rebuilt = name, rebuilt
        self._recording, self._arguments, self._out_spec = recording, arguments, out_spec
        inputs, nodes, outputs = _nodes_of(recording, arguments)
        kept = dict(pair for step in recording.operations if step.note is not None for pair in step.note.saved)
        super().__init__(name, inputs, nodes, outputs, saved=sum(kept.values()))

    def evaluate(self, *args: PyTree) -> PyTree:
        """Return the result of the recorded operations for arguments of the same structure, shapes and dtypes.

        Raises:
            TypeError: another structure or dtype, or another value for a constant of the graph.
            ValueError: another shape; or arguments for which the function would take another branch.
        """
        found = self._recording.evaluate(*self._arguments.match_inputs(args))
        results = own_results([shallow_copy(x) for x in found])
        return tree.unflatten(self._out_spec, as_results(results, args))

    __call__ = evaluate

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the data that nodes are made from: nodes refer to each other, as deep as the graph is."""
        return type(self), (self.__name__, self._recording, self._arguments, self._out_spec, self.rebuilt)


class _Arguments:
    """Arguments of a traced call: which leaves are inputs, their names, and what other arguments must be like."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.leaves, self.spec = tree.flatten(args)
        # Python's integers, like strings and functions, decide lengths, axes and flags. They are part of the graph.
        self.live = [is_array(x) and type(x) not in (int, bool) for x in self.leaves]
        self.likes = [backend.shape_and_dtype_of(x) for x in self.moving(self.leaves)]
        self.paths = leaf_names(fun, args, {})
        self.names = self.moving(self.paths)

    def moving(self, leaves: list[Any]) -> list[Any]:
        """Return the leaves that are inputs."""
        return list(compress(leaves, self.live))

    def with_inputs(self, moving: list[Any]) -> tuple[Any, ...]:
        """Return the arguments with these inputs."""
        args: tuple[Any, ...] = tree.unflatten(self.spec, merge_leaves(self.leaves, self.live, moving))
        return args

    def match_inputs(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the inputs among other arguments, after a check that they are like the traced arguments."""
        leaves, spec = tree.flatten(args)
        if spec != self.spec:
            raise InputError(
                f"graph: the arguments have another structure than those that were traced, got {spec}, expected "
                f"{self.spec}. Trace the function again for them."
            )
        likes = iter(self.likes)
        for path, flag, old, new in zip(self.paths, self.live, self.leaves, leaves, strict=True):
            if flag:
                _check_like(path, new, *next(likes), weak=type(old) in (float, complex))
            elif old is not new and (isinstance(new, Tracer) or type(old) is not type(new) or old != new):
                raise InputError(
                    f"graph: {path} is a constant of the graph, got {describe(new)}, traced {describe(old)}. Trace "
                    "the function again for it; a number that is an input must be a float or an array."
                )
        return self.moving(leaves)


def _check_like(path: str, new: Any, shape: tuple[int, ...], dtype: Any, *, weak: bool) -> None:
    if not is_array(new):
        raise InputError(
            f"graph: {path} must be an array or a number, got {describe(new)}. Pass something like what was traced."
        )
    if backend.shape_of(new) != shape:
        raise ShapeError(
            f"graph: {path} has another shape than what was traced, got {backend.shape_of(new)}, expected "
            f"{shape}. Trace the function again for it."
        )
    have = backend.dtype_of(new)
    number = weak or type(new) in (int, float, complex)
    if have != dtype and not (number and "biufc".find(have.kind) <= "biufc".find(dtype.kind)):
        raise InputError(
            f"graph: {path} has another dtype than what was traced, got {have}, expected {dtype}. Convert it with "
            f".astype({str(dtype)!r}), or trace the function again."
        )


@hide_extra_arguments
def trace(fun: Callable[P, Any], *_others: Never) -> Callable[P, Graph]:
    """Return a function that runs ``fun`` and returns the ``Graph`` of its operations.

    The run computes with values, so Python's branches and loops depend on them, and runs that take different branches
    have different graphs. Arrays, NumPy scalars, floats and complex numbers in the positional arguments are inputs.
    Python's ints and bools are part of the graph, like all other leaves that are not arrays; so are keyword arguments.
    Operations that the result does not need are left out. The graph has the stages of a toolz pipeline, and the user's
    line of each operation.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.

    Raises:
        TypeError: ``fun`` is not callable, or a leaf of its result is not an array or number.

    Example:
        >>> from funcgrad import compose_left, grad, trace
        >>> graph = trace(compose_left(fnp.square, fnp.sin, fnp.sum))(np.ones(3))
        >>> [(str(node.stage), node.shape) for node in graph]
        [('1 square', (3,)), ('2 sin', (3,)), ('3 sum', ())]
        >>> [node.name for node in trace(grad(fnp.sin))(1.0)]
        ['cos', 'multiply']
    """
    check_callable("trace", fun, _others)
    return Transformed(run_trace, fun, None, "The graph of a run of {fun}.")


def run_trace(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Graph:
    """Run a call of ``trace(fun)``."""
    arguments = _Arguments(fun, args)
    watch = TracingTrace()
    try:
        wrapped = [watch.input(x) for x in arguments.moving(arguments.leaves)]
        out = with_stage_reports(fun, watch)(*arguments.with_inputs(wrapped), **kwargs)
    finally:
        watch.close()
    results, out_spec = tree.flatten(out)
    for number, leaf in enumerate(results):
        if not is_array(leaf):
            raise InputError(
                f"trace: result leaf {number} of the function is not an array or a number, got {describe(leaf)}. "
                "Return arrays, numbers, or containers of them."
            )
    recording = watch.recording(results, watch.decisions)
    del watch, wrapped, out, results
    copy_shared_constants(recording)
    return Graph(name_of(fun), recording, arguments, out_spec, is_rebuilt(fun))


class TracingTrace(DecisionTrace):
    """Graph trace that notes, for each operation, line, stage, and the values that reverse mode would keep."""

    __slots__ = ("_cut", "_origins", "stage")

    def __init__(self) -> None:
        super().__init__()
        self.stage: PipelineStage | None = None
        self._cut: set[int] = set()  # the slots of results through which no derivative passes
        self._origins = Origins()

    def run(
        self, primitive: Primitive, args: tuple[Any, ...], slots: tuple[int, ...], params: dict[str, Any]
    ) -> tuple[Any, Callable[[tuple[int, ...]], Note]]:
        """Return the result, computed by the reverse-mode rule if there is one: it tells what it would keep."""
        traced = self._traced(args, slots)
        ans, vjp, saved = self._run_reverse_rule(primitive, args, traced, params)
        stage = self.stage or self._origins.stage(lambda frame, found: frame.f_code is run_trace.__code__)
        line = self._origins.line()

        def make_note(outs: tuple[int, ...]) -> Note:
            if vjp is None:
                self._cut.update(outs)
            known: dict[Any, Any] = {}
            for a, slot in zip(args, slots, strict=True):
                known[identity_key(a)] = ("constant", id(a)) if slot in self.constants else slot
            known.update(zip(map(identity_key, ans if primitive.multiple else (ans,)), outs, strict=True))
            return Note(line, stage, _saved_identities(saved, known, outs))

        return ans, make_note

    def _traced(self, args: tuple[Any, ...], slots: tuple[int, ...]) -> tuple[int, ...]:
        """Return the positions of the arguments through which a derivative would pass."""
        if self.level < blocks.current().min_level:
            return ()
        moving = [slot not in self.constants and slot not in self._cut for slot in slots]
        return tuple([i for i, flag in enumerate(moving) if flag and backend.is_inexact(args[i])])

    def _run_reverse_rule(
        self, primitive: Primitive, args: tuple[Any, ...], traced: tuple[int, ...], params: dict[str, Any]
    ) -> tuple[Any, Any, Any]:
        """Return the result, the VJP rule if there is one, and the values that the rule saves."""
        if not traced or primitive.reverse is None:
            return primitive.call(*args, **params), None, None
        if primitive is CUSTOM:  # a user's rule does not run in place of the function: it may have side effects
            return primitive.call(*args, **params), CUSTOM, None
        try:
            found: tuple[Any, Any, Any] = primitive.reverse(args, traced, params)
        except NotDifferentiableError:
            return primitive.call(*args, **params), None, None
        return found

    def close(self) -> None:
        """Mark the function as finished, and drop the references to its frames."""
        super().close()
        self._origins.forget()


def _saved_identities(saved: Any, known: dict[Any, Any], outs: tuple[int, ...]) -> tuple[tuple[Any, int], ...]:
    """Return the arrays in ``saved``, of the operation with ``outs``: an identity that outlives each, and its bytes."""
    if saved is None:
        return ()
    return tuple((known.get(key, ("own", outs, n)), size) for n, (key, size) in enumerate(saved_arrays(saved).items()))


CUSTOM: Primitive = custom_call.primitive


def with_stage_reports(fun: Any, watch: Any) -> Any:
    """Return ``fun``; if it is a pipeline or a transformed one, it sets ``watch.stage`` to its current stage."""
    if type(fun) is Transformed:
        inner = with_stage_reports(fun.fun, watch)
        return fun if inner is fun.fun else Transformed(fun.run, inner, fun.options, fun.summary)
    if type(fun) is CheckedForWrites:
        return fun.with_fun(with_stage_reports(fun.fun, watch))
    stages = list(_stages(fun))
    return fun if len(stages) < 2 else _StageReporter(fun, stages, watch)


def _stages(fun: Any) -> Iterator[Any]:
    """Yield the functions that a composition applies, first to last, nested compositions split up; else ``fun``."""
    waiting = [fun]
    while waiting:
        fun = waiting.pop()
        if type(fun).__name__ == "Compose" and hasattr(fun, "first") and hasattr(fun, "funcs"):  # toolz, cytoolz
            waiting += [*reversed(fun.funcs), fun.first]
        else:
            yield fun


class _StageReporter:
    """Pipeline that reports its current stage as ``watch.stage``."""

    def __init__(self, fun: Any, stages: list[Any], watch: Any) -> None:
        self.__name__, self.__wrapped__ = name_of(fun), stages[0]
        self.stages = [(PipelineStage(i, name_of(fun)), fun) for i, fun in enumerate(stages, 1)]
        self.watch = watch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer = self.watch.stage
        try:
            for stage, fun in self.stages:
                self.watch.stage = outer or stage
                args, kwargs = (fun(*args, **kwargs),), {}
        finally:
            self.watch.stage = outer
        return args[0]


def _nodes_of(recording: Recording, arguments: _Arguments) -> tuple[list[Node], list[Node], list[Any]]:
    """Return a node per input, a node per operation, and for each output an ``Operand`` or the constant it is."""
    decided, known = recording.decisions, dict(recording.constants)
    inputs: list[Node] = []
    for slot, name, (shape, dtype) in zip(recording.inputs, arguments.names, arguments.likes, strict=True):
        inputs.append(Node(len(inputs), name, "input", shapes=(shape,), dtypes=(dtype,), decided=decided.get(slot)))
        known[slot] = Operand(inputs[-1], 0)
    nodes: list[Node] = []
    for index, step in enumerate(recording.operations):
        source, stage, kept = step.note or Note(None, None, ())
        node = Node(
            index,
            _name(step.primitive, step.params),
            primitive=step.primitive,
            args=tuple([known[slot] for slot in step.args]),
            params=step.params,
            shapes=step.shapes,
            dtypes=step.dtypes,
            saved=sum(size for _, size in kept),
            source=source,
            stage=stage,
            decided=decided.get(step.outs[0]),
        )
        nodes.append(node)
        known.update({slot: Operand(node, i) for i, slot in enumerate(step.outs)})
    return inputs, nodes, [known[slot] for slot in recording.outputs]


def _name(primitive: Primitive, params: dict[str, Any]) -> str:
    """Return the primitive's name, or the function's name if it has custom rules."""
    return params["rules"].name if primitive is CUSTOM else primitive.name
