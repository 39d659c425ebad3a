"""Runs that a program makes by hand, as with HIPS autograd's ``tracer``: nodes, boxes, the backward pass.

``trace`` and ``new_box`` work with nodes of reverse mode (``VJPNode``), nodes of forward mode (``JVPNode``), and nodes
of a class of the program. Such a class learns of every operation, so programs can print and draw graphs.

Example:
    >>> from funcgrad.interop.autograd.nodes import VJPNode, backward_pass, trace
    >>> value, end = trace(VJPNode.new_root(), lambda x: x * x, 3.0)
    >>> value, backward_pass(1.0, end)
    (9.0, 6.0)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any

from funcgrad import backend
from funcgrad.core import Primitive, Trace, Tracer, is_array, shallow_copy, tracer_of
from funcgrad.errors import InputError
from funcgrad.forward import ForwardTrace
from funcgrad.interop.autograd.boxes import Box, isbox
from funcgrad.numpy.plain_values.hints import user_stacklevel
from funcgrad.reverse import ReverseTrace, backward

__all__ = ["JVPNode", "Node", "VJPNode", "backward_pass", "new_box", "node_of", "trace", "trace_stack", "value_of"]


class Node:
    """Base class of nodes: a node is a run's knowledge of a value. Each operation calls ``__init__`` of a subclass.

    Args:
        value: the result of the operation.
        fun: the operation; it has a ``__name__``.
        args: its arguments, plain values.
        kwargs: its keyword arguments.
        parent_argnums: the positions of the arguments that have nodes.
        parents: the nodes of these arguments.
    """

    def __init__(
        self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: tuple[int, ...], parents: tuple[Any, ...]
    ) -> None:
        raise NotImplementedError

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Make this node the node of an input."""
        raise NotImplementedError

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the node of an input of a new run."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root

    def boxed(self, value: Any) -> Tracer:
        """Return a traced value with this node."""
        run = vars(self).setdefault("_run", _NodeTrace(type(self)))
        return _noted(value, run, self)


class _Run(ReverseTrace):
    """Run that a program began by hand.

    Attributes:
        number: number that the program gave to the run; values of runs with equal numbers are unpacked together.
    """

    __slots__ = ("number",)
    number: Any


class VJPNode(Node):
    """Node of a value in reverse mode. ``register_notrace`` takes this class for reverse mode."""

    trace: _Run
    record: Any = None

    def initialize_root(self) -> None:
        """Make this node the node of an input."""
        self.trace = _Run()
        self.trace.number = None

    def boxed(self, value: Any) -> Tracer:
        """Return a traced value with this node."""
        if self.record is not None:
            return tracer_of(shallow_copy(value), self.trace, self.record)
        made = self.trace.leaf(value)
        self.record = made.node
        return made


class JVPNode(Node):
    """Node of a value in forward mode, with its tangent ``g``. ``register_notrace`` takes it for forward mode."""

    trace: ForwardTrace
    g: Any

    def initialize_root(self, g: Any) -> None:
        """Make this node the node of an input with the tangent ``g``."""
        self.trace, self.g = ForwardTrace(), g

    def boxed(self, value: Any) -> Tracer:
        """Return a traced value with this node."""
        return self.trace.leaf(value, self.g)


class _NodeTrace(Trace):
    """Run that tells a class of nodes about each operation.

    Args:
        kind: the class of nodes.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: Callable[..., Any]) -> None:
        super().__init__()
        self.kind = kind

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level further out, and make a node for each result."""
        argnums = tuple([i for i, arg in enumerate(args) if isinstance(arg, Tracer) and arg._trace is self])
        parents = tuple([args[i].link for i in argnums])
        lowered = [arg._val if i in argnums else arg for i, arg in enumerate(args)]
        ans = primitive.call(*lowered, **params)
        fun: Any = SimpleNamespace(__name__=primitive.name, __module__="autograd.numpy")

        def noted(part: Any) -> Any:
            if not backend.is_inexact(part):
                return part
            return _noted(part, self, self.kind(part, fun, tuple(lowered), params, argnums, parents))

        return tuple(map(noted, ans)) if primitive.multiple else noted(ans)


def _noted(value: Any, run: Trace, node: Any) -> Tracer:
    return tracer_of(shallow_copy(value), run, node)


class _Sequence(tuple[Any, ...]):
    """Tuple of traced values of one run."""

    _trace: Any


def new_box(value: Any, trace: Any, node: Any) -> Any:
    """Return the traced value of ``node``, or a tuple of traced values for a list or tuple.

    Args:
        value: an array, a number, a list or tuple of them, or an object of a type in ``Box.type_mappings``.
        trace: anything; the node determines the run.
        node: result of ``new_root``.

    Raises:
        TypeError: ``value`` has another type.

    Example:
        >>> box = new_box(3.0, 0, VJPNode.new_root())
        >>> backward_pass(1.0, node_of(box * box))
        6.0
    """
    maker = Box.type_mappings.get(type(value))
    if maker is not None:
        return maker(value, trace, node)
    if isinstance(value, (list, tuple)):
        boxes = _Sequence([new_box(part, trace, node) for part in value])
        boxes._trace = boxes[0]._trace if boxes else None
        return boxes
    if not is_array(value):
        raise InputError(f"new_box: Can't differentiate w.r.t. type {type(value)}. Pass an array or a number.")
    if isinstance(node, VJPNode):
        node.trace.number = trace
    return Box(value, trace, node)


def value_of(box: Any) -> Any:
    """Return the value that a traced value represents in its run, which HIPS autograd calls ``box._value``."""
    run, value = box._trace, box._val
    while isinstance(value, Tracer) and type(run) is type(value._trace) is _Run and run.number == value._trace.number:
        value = value._val
    return value


def node_of(box: Any) -> Any:
    """Return the node of a traced value, which HIPS autograd calls ``box._node``."""
    if isinstance(box._trace, ReverseTrace):
        made: Any = VJPNode.__new__(VJPNode)
        made.trace, made.record = box._trace, box.node
        return made
    if isinstance(box._trace, ForwardTrace):
        made = JVPNode.__new__(JVPNode)
        made.trace, made.g = box._trace, box.tangent
        return made
    return box.link


def backward_pass(g: Any, end_node: VJPNode) -> Any:
    """Return the cotangent of the input, for the cotangent ``g`` of the value of ``end_node``."""
    return backward([(end_node.record, g)], 1)[0]


def trace(start_node: Any, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Run ``fun`` on ``x``, with ``start_node`` as the node of ``x``.

    Returns:
        The result and its node; None for the node, with a warning, if the result does not depend on ``x``.
    """
    start = new_box(x, 0, start_node)
    try:
        end = fun(start)
    finally:
        start._trace.close()
    if isbox(end) and end._trace is start._trace:
        return end._val, node_of(end)
    warnings.warn("Output seems independent of input.", stacklevel=user_stacklevel())
    return end, None


class _TraceStack:
    """HIPS autograd's numbers of nested runs. In funcgrad the level of a run says which run is the inner one."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = count()

    def new_trace(self) -> nullcontext[int]:
        """Return the block of a run, which yields the number of the run."""
        return nullcontext(next(self._numbers))


trace_stack = _TraceStack()
