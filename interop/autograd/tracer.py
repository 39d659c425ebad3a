"""HIPS autograd's ``tracer``: boxes, nodes, runs made by hand, and declarations of primitives."""

from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.nodes import Node, new_box, trace, trace_stack
from funcgrad.interop.autograd.rules import notrace_primitive, primitive, register_notrace
from funcgrad.interop.autograd.util import subvals, toposort

__all__ = [
    "Box", "Node", "getval", "isbox", "new_box", "notrace_primitive", "primitive", "register_notrace", "subvals",
    "toposort", "trace", "trace_stack",
]  # fmt: skip
