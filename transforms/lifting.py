"""Runs of a function that only unwrap and wrap: each operation is bound on the values inside the tracers.

The function sees tracers; its operations see the values. The values are JAX's, for example, in a function that was not
written for JAX or in the body of a compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from funcgrad import backend, blocks
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, shallow_copy, tracer_of
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.shared_state import note_refusal
from funcgrad.writable import is_selection

#: ``prepare(primitive, args, params)`` returns the arguments and parameters on which the primitive is bound instead.
Prepare = Callable[[Primitive, Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]
#: ``watch(primitive, args, params)`` is called after each operation.
Watch = Callable[[Primitive, Sequence[Any], dict[str, Any]], None]


#: Run of the innermost body of a compiled loop or branch that is running. What is made there belongs to it.
innermost_body: ContextVar[LiftedTrace | None] = ContextVar("innermost_body", default=None)


class LiftedTrace(Trace):
    """One run of a function that binds each operation on the values inside its tracers.

    Args:
        outer: maps a tracer of an outer transform to the value on which operations are bound; by default the tracer.
        prepare: see ``Prepare``.
        watch: see ``Watch``.
        as_numpy: whether the function takes the values for NumPy arrays, whichever library computes.
    """

    __slots__ = ("as_numpy", "outer", "prepare", "watch")

    tracer_name = "LiftedTracer"
    #: Whether the values inside its tracers are JAX's, not those of a derivative.
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
        """Run ``primitive`` on the values inside the tracers."""
        lowered: Sequence[Any] = [self.value(a) for a in args]
        if self.outer is not None:
            lowered = [self.outer(a) if self.is_outer(a) else a for a in lowered]
        if self.prepare is not None:
            lowered, params = self.prepare(primitive, lowered, params)
        try:
            ans = primitive.call(*lowered, **params)
        except (IndexError, TypeError) as error:  # a caller that catches the error continues in another way
            if type(error).__module__.startswith("jax."):
                note_refusal(error, f"{primitive.name}: a value is not known yet{user_line()}.")
            raise
        if self.watch is not None:
            self.watch(primitive, lowered, params)
        return tuple([self.wrap(a) for a in ans]) if primitive.multiple else self.wrap(ans)

    def is_outer(self, x: Any) -> bool:
        """Whether ``x`` is a tracer of a transform around the run."""
        return isinstance(x, Tracer) and 0 < x._trace.level < self.level

    def leaf(self, value: Any) -> Tracer:
        """Return a tracer for an input of the function, which must not write to it."""
        made = tracer_of(value, self)
        made.alias = READ_ONLY
        return made

    def wrap(self, value: Any) -> Tracer:
        """Return ``value`` as a tracer; in a ``no_grad`` that began after this run it is a constant for JAX too."""
        body = innermost_body.get()
        if body is not None and self.level < body.level:
            return body.wrap(value)
        if self.level < blocks.current().min_level:
            value = backend.detached(backend.library_of(value), value)
        return tracer_of(value, self)

    def value(self, x: Any) -> Any:
        """Return the value inside ``x`` if ``x`` is a tracer of this run, else ``x``."""
        return x._val if type(x) is Tracer and x._trace is self else x

    def leave(self, leaf: Any) -> Any:
        """Return ``leaf`` as it leaves the function: the value inside it, if it is a tracer of this run."""
        if is_selection(leaf):
            leaf.refuse_as_result()
        return shallow_copy(self.value(leaf))
