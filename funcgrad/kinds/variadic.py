"""Operations linear in all their arguments together: joining arrays, scattering pieces into one array.

Any number of arguments, each entering once and none multiplied with another, so one transpose gives the
cotangents of all of them in one pass over ``ct``. The tape keeps shapes and dtypes, no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, core
from funcgrad.core import Primitive
from funcgrad.kinds.linear import Batching, batch_rule, conform
from funcgrad.kinds.rules import Operation, Rule, bind, finish, pull_of
from funcgrad.reverse import ReverseTrace, ReverseTracer, tracer_of

__all__ = ["jointly_linear"]

ndarray = np.ndarray
MIXED = object()


def jointly_linear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transpose: Rule,
    batch: Batching,
) -> Operation:
    """Define an operation of any number of arrays that is linear in all of them together.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, *arrays, **params)``.
        transpose: ``transpose(ct, shapes, wanted, *, params)`` gives the cotangents of the arguments at
            the positions ``wanted`` (rising), in that order; ``shapes`` are those of all arguments. A
            cotangent may have the result's dtype and a shape its argument broadcasts to.
        batch: how a batch axis passes, see ``funcgrad.kinds.linear.Batching``.

    Example:
        >>> total = jointly_linear(
        ...     "total",
        ...     lambda xp, *arrays: sum(arrays),
        ...     transpose=lambda ct, shapes, wanted: [ct for _ in wanted],
        ...     batch="leading",
        ... )
        >>> total(np.ones(2), np.ones(2), np.ones(2))
        array([3., 3.])
    """

    def pull(ct: Any, node: Any) -> Any:
        traced, shapes, dtypes, params = node[4:]
        cts = transpose(ct, shapes, traced, **params)
        return [conform(c, shapes[i], dtypes[i]) for i, c in zip(traced, cts, strict=True)]

    pull_of(name, pull)

    def saved(args: Any, traced: tuple[int, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """What the tape keeps, as ``pull`` unpacks it."""
        return traced, [backend.shape_of(a) for a in args], [backend.dtype_of(a) for a in args], params

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        return call(*args, **params), pull, saved(args, traced, params)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans = call(*args, **params)
        whole = [_zeros(a) if t is None else t for a, t in zip(args, tangents, strict=True)]
        return ans, conform(call(*whole, **params), None, backend.dtype_of(ans))

    def record(trace: ReverseTrace, args: tuple[Any, ...], params: dict[str, Any]) -> ReverseTracer:
        traced = tuple([i for i, a in enumerate(args) if type(a) is ReverseTracer])
        values = [a.value if type(a) is ReverseTracer else a for a in args]
        parents = tuple([args[i].node for i in traced])
        if set(map(type, values)) == {ndarray}:
            ans, shapes, dtypes = kernel(*values, **params), [v.shape for v in values], [v.dtype for v in values]
            return tracer_of(ans, trace, (trace.next(), pull, None, parents, traced, shapes, dtypes, params))
        ans = call(*values, **params)
        return tracer_of(ans, trace, (trace.next(), pull, None, parents, *saved(values, traced, params)))

    def call(*args: Any, **params: Any) -> Any:
        trace = _only_trace(args)
        if trace is None and not core.kernel_runners:
            return kernel(*args, **params)
        if trace is not None and trace is not MIXED and not core.no_grad_blocks:
            return record(trace, args, params)
        return bind(primitive, args, params)

    primitive = Primitive(name, impl, reverse, forward, batch_rule(batch, call))
    kernel = primitive.kernel(np)
    return finish(call, primitive)


def _only_trace(args: tuple[Any, ...]) -> Any:
    """The trace of all tracers among ``args``; None without tracers; MIXED where ``bind`` must look closer."""
    trace: Any = None
    for a in args:
        if type(a) is ReverseTracer:
            if trace is None:
                trace = a._trace
            elif a._trace is not trace:
                return MIXED
        elif type(a) is not ndarray or a.dtype.kind not in "fciub":
            return MIXED
    return trace


def _zeros(like: Any) -> Any:
    """The tangent of a constant argument; of its dtype, integers too, so that the result's dtype stays."""
    return np.zeros(backend.shape_of(like), backend.dtype_of(like))
