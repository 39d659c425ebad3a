"""Forward mode: every value carries its tangent."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core import DOUBLE, READ_ONLY, Primitive, Trace, Tracer, refuse_closure, shallow_copy, tracer_of


class ForwardTrace(Trace):
    """One run of a function that computes a directional derivative, too."""

    __slots__ = ()
    tracer_name = "ForwardTracer"
    differentiates = True

    def leaf(self, value: Any, tangent: Any) -> Tracer:
        """Make a read-only input of the function."""
        made = tracer_of(shallow_copy(value), self, shallow_copy(tangent))
        if type(value) is np.ndarray:
            made.aval = value.shape if value.dtype is DOUBLE else None
        elif type(value) is np.float64:
            made.aval = np.float64
        made.alias = READ_ONLY
        return made

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` and its JVP rule one level out."""
        lowered, tangents = list(args), [None] * len(args)
        for position, arg in enumerate(args):
            if type(arg) is Tracer and arg._trace is self:
                lowered[position], tangents[position] = arg._val, arg.tangent
        if primitive.forward is None:
            return primitive.call_lowered(tuple(lowered), params)
        ans, tangent = primitive.forward(tuple(lowered), tuple(tangents), params)
        if tangent is None:
            return ans
        if not primitive.multiple:
            return tracer_of(ans, self, tangent)
        refuse_closure(self, primitive, (*ans, *tangent), params)
        pairs = zip(ans, tangent, strict=True)
        return tuple(a if t is None else tracer_of(a, self, t) for a, t in pairs)
