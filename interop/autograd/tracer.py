"""HIPS autograd's ``tracer``: looking through boxes, and declaring primitives.

Nodes and traces of one's own have no counterpart here: what a function did is shown by ``funcgrad.trace``.
"""

from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.rules import notrace_primitive, primitive, register_notrace

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]
