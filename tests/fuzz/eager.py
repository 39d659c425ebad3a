"""JAX's transforms on NumPy values, one operation after the other: nothing is recorded or compiled.

The module replaces JAX's evaluation below all transforms. It uses JAX's traces, which are not public, so if anything
goes wrong here, ``evaluating`` runs the program instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax._src import core

from fuzz.evaluating import computed, evaluated

__all__ = ["run_eagerly"]


def run_eagerly(fun: Callable[..., Any], *args: Any, unrolled: bool = True) -> Any:
    """Run ``fun(*args)``, for a function ``fun`` of JAX that uses no array without elements.

    Loops of JAX are ``unrolled``, or recorded once, and NumPy runs them.
    """
    if "aval" not in core.Tracer.__slots__:  # an older JAX, whose values are made in another way
        return evaluated(fun, *args)
    trace = NumpyTrace()
    with core.set_current_trace(trace), jax.disable_jit(unrolled):
        out = fun(*jax.tree.map(trace.stage_value, args))
    return jax.tree.map(_value, out)


class NumpyTracer(core.Tracer):  # type: ignore[misc]
    """NumPy array as JAX sees it."""

    __slots__ = ("value",)

    def __init__(self, trace: NumpyTrace, value: Any) -> None:
        super().__init__(trace, _aval(value.shape, value.dtype))
        self.value = value

    def full_lower(self) -> Any:
        """Return the tracer itself."""
        return self

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


@lru_cache(maxsize=1000)
def _aval(shape: Any, dtype: Any) -> Any:
    return core.ShapedArray(shape, dtype)


def _value(x: Any) -> Any:
    return x.value if type(x) is NumpyTracer else np.asarray(x)


class NumpyTrace(core.Trace):  # type: ignore[misc]
    """Trace that computes each operation with NumPy."""

    def stage_value(self, val: Any) -> Any:
        """Return a value as an array of JAX."""
        return val if type(val) is NumpyTracer else NumpyTracer(self, np.asarray(val))

    def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
        """Compute one operation."""
        outs = computed(primitive, [_value(t) for t in tracers], params)
        made = [NumpyTracer(self, out if type(out) is np.ndarray else np.asarray(out)) for out in outs]
        return made if primitive.multiple_results else made[0]

    def process_call(self, _primitive: Any, f: Any, tracers: Any, _params: Any, /) -> Any:
        """Run a function inside the program."""
        with core.set_current_trace(self):
            return f.call_wrapped(*tracers)

    def process_custom_jvp_call(self, _primitive: Any, fun: Any, _jvp: Any, tracers: Any, /, **_: Any) -> Any:
        """Run a function with custom rules, which is not differentiated here any more."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(
        self, _primitive: Any, fun: Any, _fwd: Any, _bwd: Any, tracers: Any, /, **_: Any
    ) -> Any:
        """Run a function with a custom VJP, which is not differentiated here any more."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)
