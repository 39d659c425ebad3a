"""Runs of a function that interpret nothing: every operation is bound on the values inside, and its results wrapped.

So the function sees tracers where its operations see the values: those of JAX in a function that was not written for
JAX, or in the body of a compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import backend, blocks
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, twin
from funcgrad.numpy.concretization import CONCRETIZATION
from funcgrad.numpy.protocols import array_namespace

__all__ = ["LiftedTrace", "LiftedTracer", "Prepare", "Watch"]

#: ``prepare(primitive, args, params)`` gives what the primitive is bound on instead.
Prepare = Callable[[Primitive, Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]
#: ``watch(primitive, args, params)`` is called after each operation.
Watch = Callable[[Primitive, Sequence[Any], dict[str, Any]], None]


def _answer(name: str, of_value: Callable[..., Any]) -> Callable[..., Any]:
    """A method that asks the value in a run for NumPy's programs, and is the one of all tracers in others."""
    refusing = CONCRETIZATION[name]

    def method(self: LiftedTracer, *args: Any, **kwargs: Any) -> Any:
        if self._trace.for_numpy:
            return of_value(self.value, *args, **kwargs)
        return refusing(self, *args, **kwargs)

    return method


class LiftedTracer(Tracer):
    """A value in a run that interprets nothing.

    Where Python or NumPy ask it for a plain value in a run for NumPy's programs, the value answers, if it knows.
    """

    __slots__ = ()

    _trace: LiftedTrace

    def __init__(self, value: Any, trace: LiftedTrace) -> None:
        self.value = value
        self._trace = trace

    @property
    def as_numpy(self) -> bool:  # type: ignore[override]
        """Whether it stands for an array of NumPy though another library's computes."""
        return self._trace.for_numpy

    __float__ = _answer("__float__", float)
    __int__ = _answer("__int__", int)
    __complex__ = _answer("__complex__", complex)
    __array__ = _answer("__array__", lambda value, dtype=None, copy=None: np.array(value, dtype, copy=copy))

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        xp = array_namespace(self, api_version=api_version)
        return xp if self._trace.namespace is None else self._trace.namespace

    item = _answer("item", lambda value, *args: np.asarray(value).item(*args))
    tolist = _answer("tolist", lambda value: np.asarray(value).tolist())


class LiftedTrace(Trace):
    """One run of a function whose operations are bound on the values inside its tracers.

    Args:
        outer: gives what an operation is bound on for a tracer of a transform around the run; by default that tracer.
        prepare: see ``Prepare``.
        watch: see ``Watch``.
        for_numpy: whether the function takes the values for NumPy's, whatever library computes.
    """

    __slots__ = ("for_numpy", "outer", "prepare", "watch")

    #: What is inside its tracers are values of JAX, not of a derivative.
    runs_jax = True
    #: What they answer to code for any array library, in place of ``funcgrad.numpy``.
    namespace: Any = None

    def __init__(
        self,
        outer: Callable[[Tracer], Any] | None = None,
        *,
        prepare: Prepare | None = None,
        watch: Watch | None = None,
        for_numpy: bool = False,
    ) -> None:
        super().__init__()
        self.outer = outer
        self.prepare = prepare
        self.watch = watch
        self.for_numpy = for_numpy

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` on what the tracers hold."""
        lowered: Sequence[Any] = [self.value(a) for a in args]
        if self.outer is not None:
            lowered = [self.outer(a) if self.is_outer(a) else a for a in lowered]
        if self.prepare is not None:
            lowered, params = self.prepare(primitive, lowered, params)
        ans = primitive.call(*lowered, **params)
        if self.watch is not None:
            self.watch(primitive, lowered, params)
        return tuple([self.wrap(a) for a in ans]) if primitive.multiple else self.wrap(ans)

    def is_outer(self, x: Any) -> bool:
        """Whether ``x`` is a tracer of a transform around the run."""
        return isinstance(x, Tracer) and 0 < x._trace.level < self.level

    def leaf(self, value: Any) -> LiftedTracer:
        """An input of the function, which must not write to it."""
        made = LiftedTracer(value, self)
        made.alias = READ_ONLY
        return made

    def wrap(self, value: Any) -> LiftedTracer:
        """``value`` as a tracer; a constant for JAX too inside a ``no_grad`` that began after this run did."""
        if self.level < blocks.current().floor:
            value = backend.detached(backend.library_of(value), value)
        return LiftedTracer(value, self)

    def value(self, x: Any) -> Any:
        """What ``x`` holds, if it is of this run."""
        return x.value if type(x) is LiftedTracer and x._trace is self else x

    def leave(self, leaf: Any) -> Any:
        """``leaf`` as it leaves the function: its value, where it is a tracer of this run."""
        return twin(self.value(leaf))
