"""Functions that run for all examples of a ``vmap``, though some examples do not need the result.

Such an example gives the result the cotangent 0, and 0 times an infinite derivative is NaN, which must not reach the
values that the function uses. So these values are constants in that example, also those that the function closes over.
JAX does the same in ``jax.lax.cond``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any

import funcgrad.numpy as fnp
from funcgrad import backend, blocks, tree
from funcgrad.core import Tracer, plain_value
from funcgrad.forward import ForwardTrace
from funcgrad.reverse import ReverseTrace, number_of
from funcgrad.shared_state import active_traces
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.vectorize import is_true_for_any_example
from funcgrad.writable import identity_key


def call_where_needed(fun: Callable[..., Any], args: tuple[Any, ...], skipped: Any, operands: Any) -> Any:
    """Call ``fun(*args)``; values from outside are constants in the examples where ``skipped`` is true.

    This does nothing if no example is skipped, or without reverse mode, funcgrad's or JAX's. JAX's shows in
    ``operands``, or in the result if ``fun`` closes over the values of JAX: then ``fun`` is called again.
    """
    starts = {trace: trace.next_number() for trace in active_traces() if isinstance(trace, ReverseTrace)}
    if starts or any(map(_is_of_jax, tree.leaves(operands))):
        with _constant_where(skipped, starts):
            return fun(*args)
    result = fun(*args)
    if any(map(_is_of_jax, tree.leaves(result))):
        with _constant_where(skipped, starts):
            return fun(*args)
    return result


def _constant_where(skipped: Any, starts: dict[ReverseTrace, int]) -> AbstractContextManager[Any]:
    """Return a block in which values from outside are constants in the examples where ``skipped`` is true."""
    if not is_true_for_any_example(skipped):
        return nullcontext()
    gate = _Gate(skipped, starts)
    return blocks.Block(lambda state: state._replace(gate=gate))


def _is_of_jax(x: Any) -> bool:
    return backend.is_jax_tracer(plain_value(x))


#: Block for replacements, which also serve after a ``no_grad`` inside.
_open = blocks.Block(lambda state: state._replace(gate=None, min_level=0))


class _Gate:
    """Gate that makes values from outside constants in some examples.

    Args:
        skipped: for each example, whether values are constants.
        starts: for each trace of reverse mode, the number of its first record inside.
    """

    def __init__(self, skipped: Any, starts: dict[ReverseTrace, int]) -> None:
        self._skipped, self._starts = skipped, starts
        #: By the key of a value: the value, which keeps the key its own, and what operations get in its place.
        self._known: dict[Any, tuple[Any, Any]] = {}

    def renewed(self) -> _Gate:
        """Return a gate that does the same and remembers nothing."""
        return _Gate(self._skipped, self._starts)

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return ``args`` with constants in place of values from outside, in the skipped examples."""
        new = [x if self._is_made_inside(x) else self._replacement_of(x) for x in args]
        return args if all(map(is_, new, args)) else tuple(new)

    def _is_made_inside(self, x: Any) -> bool:
        """Whether no derivative can pass from ``x`` to values outside, other than through the gate."""
        if not isinstance(x, Tracer):
            return not backend.is_jax_tracer(x)
        if x._trace in self._starts:
            return number_of(x.node) <= self._starts[x._trace]
        return self._is_made_inside(x._val) and (type(x._trace) is not ForwardTrace or self._is_made_inside(x.tangent))

    def _replacement_of(self, x: Any) -> Any:
        key = identity_key(x)
        if key not in self._known:
            made = x
            if backend.is_inexact(x):
                with _open:
                    made = fnp.where(self._skipped, stop_gradient(x), x)
            parts = (x._val, x.link) if isinstance(x, Tracer) else x
            self._known[key] = self._known[identity_key(made)] = parts, made
        made = self._known[key][1]
        return x if identity_key(made) == key else made
