"""HIPS autograd's ``core``: derivatives of functions of one argument, vector spaces, declaring rules."""

from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.differential_operators import pullback as make_vjp
from funcgrad.interop.autograd.differential_operators import pushforward as make_jvp
from funcgrad.interop.autograd.nodes import JVPNode, Node, VJPNode, backward_pass, trace
from funcgrad.interop.autograd.rules import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
)
from funcgrad.interop.autograd.spaces import VSpace, vspace
from funcgrad.interop.autograd.util import func, subval, toposort

__all__ = [
    "Box", "JVPNode", "Node", "VJPNode", "VSpace", "backward_pass", "def_linear", "defjvp", "defjvp_argnum",
    "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums", "func", "getval", "isbox", "make_jvp", "make_vjp",
    "primitive", "subval", "toposort", "trace", "vspace",
]  # fmt: skip
