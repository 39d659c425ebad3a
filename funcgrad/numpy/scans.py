"""Running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import reshape
from funcgrad.numpy.axes import one_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.output import into
from funcgrad.numpy.reducing import converted
from funcgrad.primitives import scans as prim
from funcgrad.primitives.shaping import concatenate
from funcgrad.typing import Array, ArrayLike, Axis

__all__ = ["cumprod", "cumsum", "cumulative_prod", "cumulative_sum"]


def _run(name: str, a: ArrayLike, axis: Axis, dtype: Any, out: Any) -> Array:
    operation = prim.cumsum if name == "cumsum" else prim.cumprod
    if out is not None:
        return into(cumsum if name == "cumsum" else cumprod, out, a, axis, dtype=dtype)
    a = converted(as_value(a), dtype)
    shape = backend.shape_of(a)
    if axis is None:
        a, along = reshape(a, to=(math.prod(shape),)), 0
    else:
        along = one_axis(axis, len(shape))
    return converted(operation(a, axis=along), dtype)


def cumsum(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """The running sums along ``axis``, by default of the flattened array.

    Args:
        a: an array.
        axis: the axis, or None to flatten first.
        dtype: what to convert the elements to before adding.
        out: an array for the result.

    Raises:
        numpy.exceptions.AxisError: an axis out of range.

    Example:
        >>> fnp.cumsum([1, 2, 3])
        array([1, 3, 6])
    """
    return _run("cumsum", a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: Axis = None, dtype: Any = None, out: Any = None) -> Array:
    """The running products along ``axis``, by default of the flattened array; arguments as for ``cumsum``.

    Its derivatives divide by nothing: they are exact however many elements are zero.

    Example:
        >>> fnp.cumprod([1, 2, 3, 4])
        array([ 1,  2,  6, 24])
    """
    return _run("cumprod", a, axis, dtype, out)


def _cumulative(run: Callable[..., Array], x: ArrayLike, axis: Axis, dtype: Any, before: int | None) -> Array:
    x = as_value(x)
    shape = backend.shape_of(x)
    if axis is None:
        if len(shape) > 1:
            raise ValueError(
                f"cumulative_{run.__name__[3:]}: an array of {len(shape)} axes needs the one to run along, "
                "got axis=None. Pass axis."
            )
        axis = 0
        x = reshape(x, to=shape or (1,))
    ans = run(x, axis, dtype)
    if before is None:
        return ans
    shape, along = backend.shape_of(ans), one_axis(axis, len(backend.shape_of(ans)))
    edge = np.full((*shape[:along], 1, *shape[along + 1 :]), before, backend.dtype_of(ans))
    return concatenate(edge, ans, axis=along)


def cumulative_sum(
    x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """The running sums along ``axis``, which only an array of one axis may leave out.

    Args:
        x: an array.
        axis: the axis.
        dtype: what to convert the elements to before adding.
        out: an array for the result.
        include_initial: whether a 0 stands before the first sum.

    Raises:
        ValueError: no axis given, and more than one there.

    Example:
        >>> fnp.cumulative_sum([1, 2, 3], include_initial=True)
        array([0, 1, 3, 6])
    """
    if out is not None:
        return into(cumulative_sum, out, x, axis=axis, dtype=dtype, include_initial=include_initial)
    return _cumulative(cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """The running products along ``axis``; arguments as for ``cumulative_sum``, a 1 stands at the beginning.

    Example:
        >>> fnp.cumulative_prod([2, 3], include_initial=True)
        array([1, 2, 6])
    """
    if out is not None:
        return into(cumulative_prod, out, x, axis=axis, dtype=dtype, include_initial=include_initial)
    return _cumulative(cumprod, x, axis, dtype, 1 if include_initial else None)
