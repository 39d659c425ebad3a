"""HIPS autograd's ``extend``: functions with derivative rules of their own.

Example:
    >>> import funcgrad.interop.autograd.numpy as np
    >>> from funcgrad.interop.autograd import grad
    >>> @primitive
    ... def logsumexp(x):
    ...     largest = np.max(x)
    ...     return largest + np.log(np.sum(np.exp(x - largest)))
    >>> defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    >>> grad(logsumexp)(np.zeros(4))
    array([0.25, 0.25, 0.25, 0.25])
"""

from funcgrad.interop.autograd.boxes import Box
from funcgrad.interop.autograd.nodes import JVPNode, VJPNode
from funcgrad.interop.autograd.rules import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
)
from funcgrad.interop.autograd.spaces import VSpace, vspace

__all__ = [
    "Box", "JVPNode", "VJPNode", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp",
    "defvjp_argnum", "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace", "vspace",
]  # fmt: skip
