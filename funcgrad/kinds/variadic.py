"""Operations linear in all their arguments together: joining arrays, scattering pieces into one array.

Any number of arguments, each entering once and none multiplied with another, so one transpose gives the
cotangents of all of them in one pass over ``ct``. The tape keeps shapes and dtypes, no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, blocks
from funcgrad.blocks import here
from funcgrad.core import Primitive
from funcgrad.kinds.linear import Batching, batch_rule, conform
from funcgrad.kinds.rules import Operation, Rule, bind, finish, pull_of
from funcgrad.records import reading
from funcgrad.reverse import ReverseTracer, tracer_of

__all__ = ["jointly_linear"]

ndarray = np.ndarray
_DOUBLE = np.dtype(np.float64)


def jointly_linear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transpose: Rule,
    batch: Batching,
    numpy: Callable[..., Any] | None = None,
    fits: bool = False,
) -> Operation:
    """Define an operation of any number of arrays that is linear in all of them together.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, *arrays, **params)``.
        transpose: ``transpose(ct, shapes, wanted, *, params)`` gives the cotangents of the arguments at
            the positions ``wanted`` (rising), in that order; ``shapes`` are those of all arguments. A
            cotangent may have the result's dtype and a shape its argument broadcasts to.
        batch: how a batch axis passes, see ``funcgrad.kinds.linear.Batching``.
        numpy: a faster way to compute it on ndarrays.
        fits: whether a cotangent always has the shape of its argument.

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

    def pull_each(ct: Any, traced: Any, shapes: Any, dtypes: Any, params: Any) -> Any:
        cts = transpose(ct, shapes, traced, **params)
        if dtypes is None and fits:
            return cts
        likes = dtypes or [backend.dtype_of(ct)] * len(shapes)
        return [conform(c, shapes[i], likes[i]) for i, c in zip(traced, cts, strict=True)]

    pull = pull_of(name, reading(pull_each))

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        shapes, dtypes = [backend.shape_of(a) for a in args], [backend.dtype_of(a) for a in args]
        return call(*args, **params), pull, (traced, shapes, dtypes, params)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans = call(*args, **params)
        whole = [_zeros(a) if t is None else t for a, t in zip(args, tangents, strict=True)]
        return ans, conform(call(*whole, **params), None, backend.dtype_of(ans))

    def call(*args: Any, **params: Any) -> Any:
        if not (blocks.entered and here()) and (made := _recorded(args, params, kernel, call, pull)) is not None:
            return made
        if not (blocks.runners and here()) and all(type(a) is ndarray and a.dtype.kind in "fciub" for a in args):
            return kernel(*args, **params)
        return bind(primitive, args, params)

    primitive = Primitive(name, impl, reverse, forward, batch_rule(batch, call))
    kernel = numpy or primitive.kernel(np)
    return finish(call, primitive)


def _recorded(
    args: tuple[Any, ...], params: dict[str, Any], kernel: Operation, call: Operation, pull: Rule
) -> ReverseTracer | None:
    """The quick way of tracers of one run beside ndarrays; None where there is more to see."""
    trace: Any = None
    compute = kernel
    values, traced, parents, shapes, doubles = [], [], [], [], True
    for i, a in enumerate(args):
        form = None
        if type(a) is ReverseTracer:
            if a._trace is not trace:
                if trace is not None:
                    return None
                trace = a._trace
            a, form, parent = a.value, a.form, a.node
            traced.append(i)
            parents.append(parent)
        if type(form) is not tuple:  # it is not known for an array of doubles
            if type(a) is ReverseTracer:
                compute = call
            elif type(a) is not ndarray or a.dtype.kind not in "fciub":
                return None
            form, doubles = a.shape, doubles and a.dtype is _DOUBLE
        values.append(a)
        shapes.append(form)
    if trace is None:
        return None
    ans = compute(*values, **params)
    dtypes = None if doubles else [v.dtype for v in values]
    kept = shapes, None if dtypes is None or dtypes.count(ans.dtype) == len(dtypes) else dtypes, params
    return tracer_of(ans, trace, (next(trace.numbers), pull, None, tuple(parents), tuple(traced), *kept))


def _zeros(like: Any) -> Any:
    """The tangent of a constant argument; of its dtype, integers too, so that the result's dtype stays."""
    return np.zeros(backend.shape_of(like), backend.dtype_of(like))
