"""Functions of a program as functions of JAX values, with what they close over taken out.

JAX runs the body of a loop in a trace of its own, where a tracer of funcgrad must not be met: an operation
on it would take a value of that trace out to the tapes outside. So the body is run twice. The first run
is for shapes only; whatever tracer of an outer transform an operation meets is noted, and something of the
same shape stands in for it. In the run that counts, arguments of the call stand in for those tracers.
Nothing is dropped in silence: what the first run has not met is refused in the second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from funcgrad import backend, blocks, tree
from funcgrad.batching import named_axes
from funcgrad.core import Primitive, Trace, Tracer, bind, describe, raise_escaped, tracer_of, twin
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.optional import loaded_jax
from funcgrad.reverse import called
from funcgrad.transforms.control.staging import Like, example, like, native, rehearsing
from funcgrad.transforms.lifting import LiftedTrace
from funcgrad.writable import argument

__all__ = ["Captured"]


class Captured:
    """The tracers that the functions of one call close over.

    Args:
        call: the public call, for messages.

    Attributes:
        held: the tracers, to be arguments of the call.
    """

    def __init__(self, call: str) -> None:
        self.call = call
        self.held: list[Tracer] = []
        self._places: dict[Any, int] = {}

    def rehearse(self, fun: Callable[..., Any], likes: Sequence[Like]) -> tuple[tree.PyTreeSpec, list[Like]]:
        """What ``fun``, a function of leaves, returns: structure and leaves. What it closes over joins ``held``."""
        jax = loaded_jax()
        found: list[Any] = []

        def run(*leaves: Any) -> tuple[()]:
            found[:] = self._run(fun, leaves, None)
            found[1] = [like(x) for x in found[1]]
            return ()

        token = rehearsing.set(True)
        try:
            jax.eval_shape(run, *[example(one) for one in likes])
        finally:
            rehearsing.reset(token)
        spec, results = found
        return spec, [native(one) for one in results]

    def run(self, fun: Callable[..., Any], leaves: Sequence[Any], held: Sequence[Any], likes: Sequence[Like]) -> Any:
        """The leaves of the result, as arrays of the dtypes of ``likes``, with ``held`` in place of the tracers."""
        jnp = loaded_jax().numpy
        _, results = self._run(fun, leaves, held)
        return tuple([jnp.asarray(x, one.dtype) for x, one in zip(results, likes, strict=True)])

    def place(self, x: Tracer, *, known: bool) -> int:
        """The place of ``x`` in ``held``. Copies of a tracer are one and the same."""
        key = (id(x._trace), id(x.value), id(x.link))
        if key not in self._places:
            if known:
                raise NotDifferentiableError(
                    f"{self.call}: a function closes over a traced value that it did not close over when it was run "
                    f"before, got {describe(x)}. Let it do the same in every call, and write to nothing outside."
                )
            self._places[key] = len(self.held)
            self.held.append(twin(x))  # the program may write to ``x``
        return self._places[key]

    def _run(
        self, fun: Callable[..., Any], leaves: Sequence[Any], held: Sequence[Any] | None
    ) -> tuple[tree.PyTreeSpec, list[Any]]:
        stand_ins = _StandIns(self, held)
        trace = stand_ins.trace
        # A vmap outside is made JAX's around the whole call: its axis has no name in here.
        token = named_axes.set(MappingProxyType({}))
        try:
            with blocks.Block(lambda state: state._replace(watch=_Substitution(stand_ins))):
                out = fun(*[argument(trace.wrap(leaf)) for leaf in leaves])
                found, spec = tree.flatten(out)
                return spec, [stand_ins.leave(leaf) for leaf in found]
        finally:
            named_axes.reset(token)
            trace.close()


class _StandIns:
    """What stands in for outer tracers in one run: zeros like them, or the values of ``held`` once these are known."""

    def __init__(self, captured: Captured, held: Sequence[Any] | None) -> None:
        self.captured, self.held = captured, held
        self.stands: dict[int, Tracer] = {}
        self.trace = LiftedTrace(lambda x: self.of(x).value)

    def of(self, x: Tracer) -> Tracer:
        """What stands for the outer tracer ``x``."""
        place = self.captured.place(x, known=self.held is not None)
        if place not in self.stands:
            value = _zeros(like(x)) if self.held is None else self.held[place]
            # no constant, though it may be met first in a no_grad
            self.stands[place] = tracer_of(value, self.trace)
        return self.stands[place]

    def leave(self, leaf: Any) -> Any:
        """A result as a value of JAX."""
        leaf = twin(leaf)
        leaf = self.trace.leave(self.of(leaf) if self.trace.is_outer(leaf) else leaf)
        if isinstance(leaf, Tracer):
            raise_escaped(type(leaf._trace))
        if not backend.is_value(leaf):
            raise InputError(
                f"{self.captured.call}: a function returned something that is not an array or a number, got "
                f"{describe(leaf)}. Return pytrees of arrays."
            )
        return loaded_jax().numpy.asarray(leaf)


class _Substitution:
    """Looks on while a body runs: operations that know outer tracers only are to be part of it too."""

    nans = all = False  # a debug_nans inside asks

    def __init__(self, stand_ins: _StandIns) -> None:
        self.stand_ins = stand_ins
        self.dropped: list[Any] = []
        self.meter = self  # a debug_nans inside lets this process what it looks at

    def begin_pass(self) -> Callable[..., Any]:
        """Pulls are called as always."""
        return called

    def begin(self, trace: Trace) -> None:
        """Nothing is kept for new traces."""

    def hidden(self, trace: Trace, args: tuple[Any, ...]) -> None:
        """What ``no_grad`` hides is a constant."""

    def backward_pass(self, pending: dict[int, Any]) -> None:
        """Backward passes go as always."""

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let the operation see what stands in for outer tracers."""
        mine = self.stand_ins
        outer = mine.trace.is_outer
        if any(outer(a) for a in args):
            return bind(primitive, tuple([mine.of(a) if outer(a) else a for a in args]), params)
        return trace.process(primitive, args, params)


def _zeros(one: Like) -> Any:
    """Zeros of JAX like ``one``."""
    given = example(one)
    jnp = loaded_jax().numpy
    return jnp.asarray(given) if one.weak else jnp.zeros(given.shape, given.dtype)
