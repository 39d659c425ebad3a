"""Calls of a user function with custom derivative rules, as one operation.

One of the two rules is enough. If the VJP rule is missing, the module transposes the JVP rule: this rule is linear in
the tangents, so recording it on a tape and running the backward pass gives the transpose. If the JVP rule is
missing, the module transposes the VJP rule, which is linear in the cotangents, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, named_axes
from funcgrad.core import (
    Primitive,
    Tracer,
    are_tracers_of,
    bind,
    join_repetition,
    raise_closure,
    replace_at,
    shallow_copy,
    tracer_of,
)
from funcgrad.errors import EscapedTracerError
from funcgrad.kinds.linear import reduce_sum, to_batch
from funcgrad.kinds.rules import Operation, finish_operation, transposed_vjp
from funcgrad.optional import loaded_jax
from funcgrad.reverse import ReverseTrace, backward, record_function, vjp_for_all
from funcgrad.writable import as_constant, as_results, is_buffer

Leaves = Sequence[Any]


class DeferredCotangents:
    """Expensive cotangents, which ``bwd`` may return in place of a list: those that are used are computed together.

    Args:
        compute: ``compute(indices) -> a cotangent per index`` of a leaf.
        count: the number of leaves.
    """

    __slots__ = ("compute", "count")

    def __init__(self, compute: Callable[[Sequence[int]], list[Any]], count: int) -> None:
        self.compute, self.count = compute, count


Cotangents = list[Any] | DeferredCotangents


def _choose(cotangents: Cotangents, indices: Sequence[int]) -> list[Any]:
    """Return the cotangents of the leaves at ``indices``."""
    if isinstance(cotangents, DeferredCotangents):
        return cotangents.compute(indices)
    return [cotangents[i] for i in indices]


def without_deferred(bwd: Callable[[Any, list[Any]], Cotangents]) -> Callable[[Any, list[Any]], list[Any]]:
    """Wrap ``bwd``, so that it computes all ``DeferredCotangents`` at once."""

    def compute(residuals: Any, cts: list[Any]) -> list[Any]:
        found = bwd(residuals, cts)
        return found.compute(range(found.count)) if isinstance(found, DeferredCotangents) else found

    return compute


@dataclass(frozen=True, eq=False)
class CustomRules:
    """A function of array leaves with its rules: ``fwd`` and ``bwd``, or ``jvp``, or all three.

    Attributes:
        name: the function's name, for messages.
        fun: ``fun(*leaves) -> list of result leaves``.
        fwd: ``fwd(*leaves) -> (result leaves, residuals)``; residuals are any tree.
        bwd: ``bwd(residuals, cts) -> a cotangent per leaf``, an array or None for zero; or ``DeferredCotangents``.
        jvp: ``jvp(leaves, tangents) -> (result leaves, their tangents)``, a tangent of None meaning zero.
        function: what identifies the function in a call that its own rule makes.
    """

    name: str
    fun: Callable[..., list[Any]]
    fwd: Callable[..., tuple[list[Any], Any]] | None = None
    bwd: Callable[[Any, list[Any]], Cotangents] | None = None
    jvp: Callable[[Leaves, Leaves], tuple[list[Any], list[Any]]] | None = None
    function: Any = None


def _impl(xp: Any, *leaves: Any, rules: CustomRules) -> tuple[Any, ...]:
    if xp is not np and any(map(backend.is_jax_tracer, leaves)):
        outs = _call_in_jax(loaded_jax(), rules, leaves)
    else:
        outs = rules.fun(*leaves)
    # no argument is being transformed here, so a derivative in the result came through a closure
    if any(isinstance(out, Tracer) and out._trace.differentiates for out in outs):
        raise_closure(rules.name)
    return tuple(outs)


def _call_in_jax(jax: Any, rules: CustomRules, leaves: Leaves) -> Any:
    """Call the function under JAX transforms, as a ``jax.custom_vjp`` or, without ``fwd``, a ``jax.custom_jvp``."""

    def arrays(xs: Any) -> list[Any]:
        return [jax.numpy.asarray(x) for x in xs]  # JAX has its own types for numbers

    def given(outs: Any) -> tuple[Any, ...]:
        return tuple([shallow_copy(out) for out in outs])  # results may be buffers of a function around the call

    if rules.fwd is None:

        def jvp(xs: Any, ts: Any) -> tuple[Any, Any]:
            outs, pushed = rules.jvp(arrays(xs), ts)  # type: ignore[misc]
            return given(outs), given(backend.with_zeros(pushed, outs))

        call = jax.custom_jvp(lambda *xs: given(rules.fun(*arrays(xs))))
        call.defjvp(jvp)
        return call(*leaves)
    fixed, moves, spec = [], [], tree.structure(())  # residuals that JAX does not take, which it takes, the structure

    def fwd(*xs: Any) -> tuple[Any, Any]:
        outs, residuals = rules.fwd(*arrays(xs))  # type: ignore[misc]
        nonlocal fixed, moves, spec
        flat, spec = tree.flatten(residuals)
        flat = [shallow_copy(r) for r in flat]
        moves = [backend.is_value(r) for r in flat]
        fixed = [None if m else r for r, m in zip(flat, moves, strict=True)]
        return given(outs), [r for r, m in zip(flat, moves, strict=True) if m]

    def bwd(moving: Any, cts: Any) -> Any:
        rest = iter(moving)
        flat = [next(rest) if m else r for r, m in zip(fixed, moves, strict=True)]
        return given(without_deferred(rules.bwd)(tree.unflatten(spec, flat), list(cts)))  # type: ignore[arg-type]

    call = jax.custom_vjp(lambda *xs: given(rules.fun(*arrays(xs))))
    call.defvjp(fwd, bwd)
    return call(*leaves)


def _reverse(args: Leaves, traced: tuple[int, ...], params: dict[str, Any]) -> Any:
    rules: CustomRules = params["rules"]
    traced = tuple(traced)
    if rules.fwd is None:
        outs, nodes = _recorded_jvp(rules, args, traced)
        return tuple(outs), vjp_for_all(_name, _through_record, len(traced)), (rules, nodes, len(traced))
    outs, residuals = rules.fwd(*args)
    likes = None if len(outs) == 1 else [backend.shape_and_dtype_of(a) for a in outs]
    return tuple(outs), vjp_for_all(_name, _backwards, len(traced)), (rules, residuals, traced, likes)


def _backwards(ct: Any, rules: CustomRules, residuals: Any, traced: Any, likes: Any) -> list[Any]:
    whole = ct if likes is None else [_zeros(*like) if c is None else c for c, like in zip(ct, likes, strict=True)]
    return _choose(rules.bwd(residuals, whole), traced)  # type: ignore[misc]


def _through_record(ct: Any, rules: CustomRules, nodes: Any, leaves: int) -> list[Any]:
    try:
        return backward([(n, c) for n, c in zip(nodes, ct, strict=True) if n is not None and c is not None], leaves)
    except EscapedTracerError:  # a value that the JVP rule closes over was recorded as a constant
        raise_closure(rules.name)


def _name(rules: CustomRules, *_: Any) -> str:
    """Return the name of a record from its saved values."""
    return rules.name


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """Make the cotangent of a result on which nothing depends."""
    return np.zeros(shape, dtype if dtype.kind not in "biu" else backend.FLOAT0)


def _recorded_jvp(rules: CustomRules, args: Leaves, traced: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """Record the JVP rule on a tape; return the result, and the records of its tangents on the tape."""
    outs: list[Any] = []

    def jvp(*moving: Any) -> list[Any]:
        tangents = replace_at(list(map(backend.zeros_like, args)), traced, moving)
        values, pushed = rules.jvp(args, tangents)  # type: ignore[misc]
        outs[:] = values
        return pushed

    _, nodes = record_function(jvp, [backend.zeros_like(args[i]) for i in traced], _RuleTrace(rules.function))
    return outs, nodes


class _RuleTrace(ReverseTrace):
    """The run of a JVP rule on a tape.

    The rule of a linear function may call the function with a tangent. Then the function itself is recorded: its rule
    would call it again, without end.
    """

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run ``primitive`` one level out and record it, unless it is a call of the function: run this here."""
        if primitive is _custom and self.function is not None and params["rules"].function is self.function:
            return tuple(params["rules"].fun(*args))
        return super().process(primitive, args, params)


def _forward(args: Leaves, tangents: Leaves, params: dict[str, Any]) -> Any:
    rules: CustomRules = params["rules"]
    if rules.jvp is not None:
        outs, pushed = rules.jvp(args, backend.with_zeros(tangents, args))
        return tuple(outs), tuple(pushed)
    outs, residuals = rules.fwd(*args)  # type: ignore[misc]
    moving = [i for i, t in enumerate(tangents) if t is not None]

    def vjp(cts: list[Any]) -> list[Any]:
        return _choose(rules.bwd(residuals, cts), moving)  # type: ignore[misc]

    return tuple(outs), tuple(transposed_vjp(vjp, outs, [tangents[i] for i in moving]))


def _batch(within: BatchTrace, args: Leaves, batched: tuple[bool, ...], params: dict[str, Any]) -> tuple[Any, bool]:
    """Make the same call on whole batches.

    Every rule runs inside the ``vmap`` itself while the ``vmap`` is open, so that the rule may close over its values
    and use its axis name. A pullback that is called later runs in a new ``BatchTrace`` of this name.
    """
    rules: CustomRules = params["rules"]
    flags = list(batched)
    names = [name for name, trace in named_axes.get().items() if trace is within]
    batch = partial(_open_batch, within, names)

    def fun(*leaves: Any) -> list[Any]:
        return _mapped(batch, rules.fun, leaves, flags)

    def fwd(*leaves: Any) -> tuple[list[Any], Any]:
        with batch() as trace:
            outs, residuals = rules.fwd(*_wrap(trace, leaves, flags))  # type: ignore[misc]
            kept, spec = tree.flatten(residuals)
            hidden = are_tracers_of(trace, kept)
            values = [r._val if h else r for r, h in zip(kept, hidden, strict=True)]
            return [_with_batch_axis(trace, out) for out in outs], (values, hidden, spec)

    def bwd(residuals: Any, cts: list[Any]) -> DeferredCotangents:
        values, hidden, spec = residuals

        def compute(indices: Sequence[int]) -> list[Any]:
            def one(*xs: Any) -> list[Any]:
                n = len(values)
                return _choose(rules.bwd(tree.unflatten(spec, xs[:n]), list(xs[n:])), indices)  # type: ignore[misc]

            pulled = _mapped(batch, one, [*values, *cts], [*hidden, *[True] * len(cts)])
            pairs = zip(pulled, indices, strict=True)
            return [ct if flags[i] or ct is None else reduce_sum(ct, axis=(0,)) for ct, i in pairs]

        return DeferredCotangents(compute, len(flags))

    def jvp(leaves: Leaves, tangents: Leaves) -> tuple[list[Any], list[Any]]:
        def one(*xs: Any) -> list[Any]:
            outs, pushed = rules.jvp(xs[: len(leaves)], xs[len(leaves) :])  # type: ignore[misc]
            return [*outs, *pushed]

        both = _mapped(batch, one, [*leaves, *tangents], [*flags, *flags])
        half = len(both) // 2
        return both[:half], both[half:]

    mapped = replace(
        rules,
        fun=fun,
        fwd=None if rules.fwd is None else fwd,
        bwd=None if rules.bwd is None else bwd,
        jvp=None if rules.jvp is None else jvp,
    )
    return custom_call(*args, rules=mapped), True


@contextmanager
def _open_batch(within: BatchTrace, names: Sequence[Any]) -> Generator[BatchTrace]:
    """Context manager: the trace of the ``vmap`` of a rule, or after its end a new one of the same size and name."""
    if within.open or join_repetition(within.level):
        yield within
        return
    trace, scope = BatchTrace(within.size), named_axes.get()
    named_axes.set({**scope, **dict.fromkeys(names, trace)})
    try:
        yield trace
    finally:
        named_axes.set(scope)
        trace.close()


def _wrap(trace: BatchTrace, leaves: Leaves, flags: Sequence[bool]) -> list[Any]:
    """Return batched leaves as tracers of ``trace``; batch tracers of inner traces, too, which would take over."""
    return [
        tracer_of(x if batched else to_batch(x, trace.size), trace)
        if batched or (isinstance(x, Tracer) and x._trace.level > trace.level)
        else x
        for x, batched in zip(leaves, flags, strict=True)
    ]


def _with_batch_axis(trace: BatchTrace, x: Any) -> Any:
    """Return ``x`` with a leading batch axis; None stays None."""
    if x is None:
        return None
    return x._val if type(x) is Tracer and x._trace is trace else to_batch(x, trace.size)


def _mapped(
    batch: Callable[[], AbstractContextManager[BatchTrace]],
    fun: Callable[..., list[Any]],
    leaves: Leaves,
    flags: Sequence[bool],
) -> list[Any]:
    """Map ``fun`` over the trace that ``batch`` opens, with leading batch axes in arguments and results."""
    with batch() as trace:
        return [_with_batch_axis(trace, out) for out in fun(*_wrap(trace, leaves, flags))]


_custom = Primitive("custom_call", _impl, _reverse, _forward, _batch, multiple=True, runs_user_code=True)


def _call(*leaves: Any, rules: CustomRules) -> Any:
    if any(is_buffer(x) and type(x._val) is not np.ndarray for x in leaves):
        rules = _with_buffers(rules)
    ans = bind(_custom, leaves, {"rules": rules})
    return tuple(as_results(ans, leaves)) if Tracer in map(type, leaves) else ans


def _with_buffers(rules: CustomRules) -> CustomRules:
    """Wrap the functions of ``rules``: they get constants of other libraries as buffers, so that NumPy code works."""

    def shown(x: Any) -> Any:
        return as_constant(x) if not isinstance(x, Tracer) and backend.is_of_other_library(x) else x

    def taking(fun: Callable[..., Any] | None) -> Any:
        if fun is None:
            return None
        return lambda *args: tree.map(shallow_copy, fun(*tree.map(shown, args)))

    bwd = None if rules.bwd is None else without_deferred(rules.bwd)
    return replace(rules, fun=taking(rules.fun), fwd=taking(rules.fwd), bwd=taking(bwd), jvp=taking(rules.jvp))


#: Operation ``custom_call(*leaves, rules)``: the results of ``rules.fun``, differentiated by ``rules``.
custom_call: Operation = finish_operation(_custom, _call)
