"""Runs of a function that interpret nothing: every operation is bound on the values inside, and its results wrapped.

So the function sees tracers where its operations see the values: those of JAX in a function that was not written for
JAX, or in the body of a compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import backend, blocks
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, tracer_of, twin
from funcgrad.numpy.hints import user_line
from funcgrad.running import noted

__all__ = ["LiftedTrace", "Prepare", "Watch"]

#: ``prepare(primitive, args, params)`` gives what the primitive is bound on instead.
Prepare = Callable[[Primitive, Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]
#: ``watch(primitive, args, params)`` is called after each operation.
Watch = Callable[[Primitive, Sequence[Any], dict[str, Any]], None]


class LiftedTrace(Trace):
    """One run of a function whose operations are bound on the values inside its tracers.

    Args:
        outer: gives what an operation is bound on for a tracer of a transform around the run; by default that tracer.
        prepare: see ``Prepare``.
        watch: see ``Watch``.
        as_numpy: whether the function takes the values for NumPy's, whatever library computes.
    """

    __slots__ = ("as_numpy", "outer", "prepare", "watch")

    shown = "LiftedTracer"
    #: What is inside its tracers are values of JAX, not of a derivative.
    runs_jax = True

    def __init__(
        self,
        outer: Callable[[Tracer], Any] | None = None,
        *,
        prepare: Prepare | None = None,
        watch: Watch | None = None,
        as_numpy: bool = False,
    ) -> None:
        super().__init__()
        self.outer = outer
        self.prepare = prepare
        self.watch = watch
        self.as_numpy = as_numpy

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` on what the tracers hold."""
        lowered: Sequence[Any] = [self.value(a) for a in args]
        if self.outer is not None:
            lowered = [self.outer(a) if self.is_outer(a) else a for a in lowered]
        if self.prepare is not None:
            lowered, params = self.prepare(primitive, lowered, params)
        try:
            ans = primitive.call(*lowered, **params)
        except (IndexError, TypeError) as error:  # who catches it goes on in another way
            if type(error).__module__.startswith("jax."):
                noted(error, f"{primitive.name}: a value is not known yet{user_line()}.")
            raise
        if self.watch is not None:
            self.watch(primitive, lowered, params)
        return tuple([self.wrap(a) for a in ans]) if primitive.multiple else self.wrap(ans)

    def is_outer(self, x: Any) -> bool:
        """Whether ``x`` is a tracer of a transform around the run."""
        return isinstance(x, Tracer) and 0 < x._trace.level < self.level

    def leaf(self, value: Any) -> Tracer:
        """An input of the function, which must not write to it."""
        made = tracer_of(value, self)
        made.alias = READ_ONLY
        return made

    def wrap(self, value: Any) -> Tracer:
        """``value`` as a tracer; a constant for JAX too inside a ``no_grad`` that began after this run did."""
        if self.level < blocks.current().floor:
            value = backend.detached(backend.library_of(value), value)
        return tracer_of(value, self)

    def value(self, x: Any) -> Any:
        """What ``x`` holds, if it is of this run."""
        return x._val if type(x) is Tracer and x._trace is self else x

    def leave(self, leaf: Any) -> Any:
        """``leaf`` as it leaves the function: its value, where it is a tracer of this run."""
        return twin(self.value(leaf))
