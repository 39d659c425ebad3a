"""HIPS autograd's ``core``: derivatives of functions of one argument, vector spaces, declaring rules."""

from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.differential_operators import pullback as make_vjp
from funcgrad.interop.autograd.differential_operators import pushforward as make_jvp
from funcgrad.interop.autograd.rules import (
    JVPNode,
    VJPNode,
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
from funcgrad.interop.autograd.util import subval

__all__ = [
    "Box",
    "JVPNode",
    "VJPNode",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "getval",
    "isbox",
    "make_jvp",
    "make_vjp",
    "primitive",
    "subval",
    "vspace",
]
