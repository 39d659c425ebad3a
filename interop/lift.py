"""Lifting: functions of funcgrad and NumPy as functions that JAX can transform.

JAX's own tracers are wrapped in tracers of an interpreter that interprets nothing: it binds every
primitive on the JAX values inside and wraps the results again. So ``np.sin(x)``, a pipeline or a funcgrad
transform inside the function ends in ``jax.numpy`` on JAX's tracers, and JAX differentiates that by its
own rules, knowing none of funcgrad's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

from funcgrad import backend, core, tree
from funcgrad.core import Primitive, Trace, Tracer
from funcgrad.interop.optional import import_jax
from funcgrad.transforms.transformed import Transformed, check_callable

__all__ = ["LiftTrace", "LiftTracer", "lifted", "to_jax"]

P = ParamSpec("P")


class LiftTracer(Tracer):
    """A value of JAX in a function that was not written for JAX."""

    __slots__ = ()

    def __init__(self, value: Any, trace: LiftTrace) -> None:
        self.value = value
        self._trace = trace


class LiftTrace(Trace):
    """One run of a function on values of JAX.

    Args:
        watch: called with each primitive, the values it is applied to and its parameters.
    """

    __slots__ = ("watch",)

    def __init__(self, watch: Callable[..., None] | None = None) -> None:
        super().__init__()
        self.watch = watch

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` on what the tracers hold."""
        lowered = [a.value if type(a) is LiftTracer and a._trace is self else a for a in args]
        ans = primitive.call(*lowered, **params)
        if self.watch is not None:
            self.watch(primitive, lowered, params)
        if not primitive.multiple:
            return self.wrap(ans)
        return tuple([self.wrap(a) for a in ans])

    def wrap(self, value: Any) -> LiftTracer:
        """``value`` as a tracer; a constant for JAX too inside a ``no_grad`` that began after this run did."""
        if core.no_grad_blocks and self.level < core.no_grad_floor.get():
            value = backend.detached(backend.library_of(value), value)
        return LiftTracer(value, self)


def to_jax(fun: Callable[P, Any]) -> Callable[P, Any]:
    """``fun`` as a function that JAX can transform, whatever it is written with.

    A function of ``funcgrad.numpy`` works on JAX arrays as it is. This is for functions that call plain
    NumPy (``np.sin(x)``), which would turn a JAX array into an ndarray and refuse a JAX tracer.

    Args:
        fun: a function of arrays or pytrees, written with NumPy, funcgrad.numpy or funcgrad's transforms.

    Returns:
        A function of the same arguments. Floating and complex arrays, and all JAX arrays, are computed
        with by JAX; integers, booleans and other leaves of plain Python and NumPy stay what they are.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from funcgrad.interop import to_jax
        >>> slope = jax.jit(jax.grad(to_jax(lambda x: np.sin(x) * x)))
        >>> print(f"{slope(1.0):.3f}")
        1.382
    """
    check_callable("to_jax", fun)
    return Transformed(run_lifted, fun, None, "{fun} as a function that JAX can transform.")


def run_lifted(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """What a ``to_jax`` does when it is called."""
    jax = import_jax("to_jax")
    leaves, spec = tree.flatten((args, kwargs))
    return lifted(jax, lambda *found: _apply(fun, spec, found))(*leaves)


def _apply(fun: Callable[..., Any], spec: tree.PyTreeSpec, leaves: Any) -> Any:
    args, kwargs = tree.unflatten(spec, leaves)
    return fun(*args, **kwargs)


def lifted(jax: Any, fun: Callable[..., Any], watch: Callable[..., None] | None = None) -> Callable[..., Any]:
    """``fun``, a function of leaves, as a function of JAX values; results are trees of JAX values."""

    def call(*leaves: Any) -> Any:
        trace = LiftTrace(watch)
        try:
            out = fun(*[_enter(jax, trace, leaf) for leaf in leaves])
        finally:
            trace.close()
        return tree.map_leaves(lambda leaf: _leave(trace, leaf), out)

    return call


def _enter(jax: Any, trace: LiftTrace, leaf: Any) -> Any:
    if isinstance(leaf, jax.Array):
        return LiftTracer(leaf, trace)
    if not isinstance(leaf, Tracer) and backend.is_value(leaf) and backend.is_inexact(leaf):
        return LiftTracer(jax.numpy.asarray(leaf), trace)
    return leaf


def _leave(trace: LiftTrace, leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, LiftTracer) and leaf._trace is trace else leaf
