"""Operations that are linear in all their arguments together: joining arrays, scattering pieces into one array.

The operations take any number of arguments and multiply none with another, so one transpose gives the
cotangents of all arguments in one pass over ``ct``. The tape saves shapes and dtypes, but no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Primitive, call_operation
from funcgrad.kinds.linear import Batching, batch_rule, conform
from funcgrad.kinds.rules import Operation, Rule, checked_routine, finish_operation, make_any
from funcgrad.reverse import vjp_for_all

ndarray = np.ndarray
_NO_NUMBERS = "type(arg) is not ndarray or arg.dtype.kind not in 'fciub'"


def jointly_linear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transpose: Rule,
    batch: Batching,
    numpy: Callable[..., Any] | None = None,
    conforms: bool = False,
) -> Operation:
    """Define an operation of any number of arrays that is linear in all of them together.

    Args:
        name: the name of the operation, and of the array namespace's function if ``impl`` is None.
        impl: ``impl(xp, *arrays, **params)``.
        transpose: ``transpose(ct, shapes, wanted, *, params)`` returns the cotangents of the arguments at
            the positions ``wanted`` (increasing), in that order; ``shapes`` are the shapes of all arguments. A
            cotangent may have the dtype of the result, and a shape to which its argument broadcasts.
        batch: how the operation takes a batch axis: "elementwise"; "leading", if it maps over all leading axes; "axis",
            if it works along its parameter ``axis``; "loop", one example after another; or a batching rule.
        numpy: a faster kernel for ndarrays.
        conforms: whether a cotangent always has the shape of its argument.

    Example:
        >>> import numpy as np
        >>> from funcgrad.extend import jointly_linear
        >>> total = jointly_linear(
        ...     "total",
        ...     lambda xp, *arrays: sum(arrays),
        ...     transpose=lambda ct, shapes, wanted: [ct for _ in wanted],
        ...     batch="elementwise",
        ... )
        >>> total(np.ones(2), np.ones(2), np.ones(2))
        array([3., 3.])
    """

    def vjp_each(ct: Any, traced: Any, shapes: Any, dtypes: Any, params: Any) -> Any:
        cts = transpose(ct, shapes, traced, **params)
        if dtypes is None and conforms:
            return cts
        likes = dtypes or [backend.dtype_of(ct)] * len(shapes)
        return [conform(c, shapes[i], likes[i]) for i, c in zip(traced, cts, strict=True)]

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        return plan_vjp(args, traced, params, call_operation(call, args, params))

    def plan_vjp(args: Any, traced: Any, params: Any, ans: Any) -> Any:
        dtype, shapes, dtypes = backend.dtype_of(ans), [], None
        for a in args:
            shape, own = (a.shape, a.dtype) if type(a) is ndarray else backend.shape_and_dtype_of(a)
            shapes.append(shape)
            if own is not dtype and dtypes is None:
                dtypes = list(map(backend.dtype_of, args))
        return ans, vjp_for_all(name, vjp_each, len(traced)), (traced, shapes, dtypes, params)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans = call_operation(call, args, params)
        whole = [_zeros(a) if t is None else t for a, t in zip(args, tangents, strict=True)]
        return ans, conform(call(*whole, **params), None, backend.dtype_of(ans))

    primitive = Primitive(name, checked_routine(name, impl), reverse, forward, batch_rule(batch, lambda: call))
    kernel = numpy or primitive.kernel(np)
    call = make_any(primitive, kernel, plan_vjp, foreign=_NO_NUMBERS, numbers="()")
    return finish_operation(primitive, call)


def _zeros(like: Any) -> Any:
    """Make the tangent of a constant argument in the argument's dtype, also of integers, to keep the result's dtype."""
    return np.zeros(*backend.shape_and_dtype_of(like))
