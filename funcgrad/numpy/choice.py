"""Choices between values: extrema of two arguments, limits, conditions, replacements.

A derivative flows to the argument that the value came from. At a tie, ``maximum``, ``minimum`` and ``clip`` give half
of the derivative to each candidate; ``fmax`` and ``fmin`` give all of it to the second, as JAX does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of, library_of
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.kinds.linear import imag, real
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.elementwise import positive
from funcgrad.numpy.indexing import nonzero
from funcgrad.numpy.layout import in_c_order
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_scalar, keeping_dtype
from funcgrad.numpy.ufunc import Table
from funcgrad.numpy.writes.assignment import set_all_items
from funcgrad.primitives import arithmetic as prim
from funcgrad.primitives import comparison
from funcgrad.typing import Array, ArrayLike
from funcgrad.writable import as_array, is_number

__all__ = ["maximum", "minimum", "fmax", "fmin", "clip", "where", "select", "nan_to_num"]

table = Table(__name__)

# fmt: off
maximum = table.binary(np.maximum, prim.maximum, """The larger of ``x1`` and ``x2``; NaN if either is NaN.

    If they are equal, both derivatives are 1/2. If either is NaN, both are 0.""", "fnp.maximum([1.0, 5.0], 3.0)",
    "array([3., 5.])")
minimum = table.binary(np.minimum, prim.minimum, """The smaller of ``x1`` and ``x2``; NaN if either is NaN.

    If they are equal, both derivatives are 1/2. If either is NaN, both are 0.""", "fnp.minimum([1.0, 5.0], 3.0)",
    "array([1., 3.])")
fmax = table.binary(np.fmax, prim.fmax,
    "The larger of ``x1`` and ``x2``, ignoring NaN. If they are equal, ``x2`` gets all of the derivative.",
    'fnp.fmax([1.0, float("nan")], 3.0)', "array([3., 3.])")
fmin = table.binary(np.fmin, prim.fmin,
    "The smaller of ``x1`` and ``x2``, ignoring NaN. If they are equal, ``x2`` gets all of the derivative.",
    'fnp.fmin([1.0, float("nan")], 3.0)', "array([1., 3.])")
# fmt: on


def clip(
    a: ArrayLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    out: Any = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    **options: Any,
) -> Array:
    """Clip ``a`` to two limits: ``minimum(maximum(a, min), max)``. A limit of None does not limit.

    The limits have derivatives too: at a limit, ``a`` and the limit get half of the derivative each; beyond the limit,
    the limit gets all of it. ``a_min`` and ``a_max`` are older names of the limits. Options are those of a ufunc.

    Raises:
        ValueError: a limit is given by both of its names.

    Example:
        >>> fnp.clip([-1.0, 0.5, 2.0], 0.0, 1.0)
        array([0. , 0.5, 1. ])
    """
    if a_min is not None or a_max is not None:
        if (min is not None and a_min is not None) or (max is not None and a_max is not None):
            raise ValueError("clip: a limit is given twice. Pass min and max, or a_min and a_max.")
        min, max = a_min if min is None else min, a_max if max is None else max
    if out is not None or options:
        return _clipped(a, min, max, out, options)
    if min is not None and max is not None:
        return prim.clip(a, min, max)
    if min is None and max is None:
        return prim.positive(prim.as_numpy_number(a))
    limit = max if min is None else min
    if type(limit) is int and dtype_of(a := as_value(a)).kind in "iu":
        bounds = np.iinfo(dtype_of(a))
        if not bounds.min <= limit <= bounds.max:  # valid as a limit, but the dtype of ``a`` cannot hold it
            limit = bounds.min if limit < bounds.min else bounds.max
    return prim.minimum(a, limit) if min is None else prim.maximum(a, limit)


def _clipped(a: Any, low: Any, high: Any, out: Any, options: dict[str, Any]) -> Array:
    """Compute ``clip`` with the options of a ufunc."""
    if type(out) is tuple and len(out) == 1:
        (out,) = out
    if is_plain(a, low, high, out, options.get("where")):
        return np.clip(a, low, high, out, **options)
    if high is None:
        return positive(a, out, **options) if low is None else maximum(a, low, out, **options)
    return minimum(a if low is None else clip(a, low), high, out, **options)


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /) -> Array:
    """Return ``x`` where ``condition`` holds, ``y`` elsewhere; without both, the positions where it holds.

    The derivative flows only to the argument that the value came from. This does not remove an infinite derivative
    of the branch that is not chosen: ``where(x > 0, sqrt(x), 0)`` has the gradient NaN at 0.

    Raises:
        ValueError: only one of ``x`` and ``y`` is given.

    Example:
        >>> fnp.where([True, False], [1.0, 2.0], 0.0)
        array([1., 0.])
        >>> fnp.where([True, False])
        (array([0]),)
    """
    if x is None or y is None:
        if x is None and y is None:
            return nonzero(condition)
        raise ValueError("where: either both or neither of x and y are given, got one. Pass both.")
    return as_array(comparison.where(False if condition is None else condition, x, y))


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """Return for each element the choice of the first condition that holds, or ``default`` where no condition holds.

    Raises:
        ValueError: there is no condition, or the numbers of choices and conditions differ.
        TypeError: the dtype of a condition is not boolean.

    Example:
        >>> x = np.arange(4.0)
        >>> fnp.select([x < 1, x < 3], [-x, 10 * x], default=7.0)
        array([-0., 10., 20.,  7.])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            "select: there must be as many choices as conditions and at least one, got "
            f"{len(choicelist)} choices and {len(condlist)} conditions. Pass one choice for each condition."
        )
    conditions, choices = [as_value(c) for c in condlist], [as_value(c) for c in choicelist]
    for condition in conditions:
        if dtype_of(condition).kind != "b":
            raise InputError(
                f"select: conditions must be boolean, got dtype {dtype_of(condition)}. Compare with something."
            )
    default = as_value(default)
    python = (int, float, complex)  # Python numbers adapt to the dtype of the other choices
    dtype = np.result_type(*[v if type(v) in python else dtype_of(v) for v in (*choices, default)])
    chosen = astype(default, dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        chosen = comparison.where(condition, choice, chosen)
    return as_array(in_c_order(chosen))


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and the infinities in ``x``.

    The defaults of ``posinf`` and ``neginf`` are the largest and smallest finite numbers. The derivative is 1 where
    ``x`` is finite and 0 elsewhere. ``copy=False`` changes ``x`` in place.

    Example:
        >>> fnp.nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0)
        array([1., 0., 9.])
    """
    x = as_value(x)
    if not isinstance(x, Tracer):
        return comparison.nan_replaced(x, copy=copy, nan=nan, posinf=posinf, neginf=neginf)
    if copy or is_number(x):
        return as_scalar(_finite(x, nan, posinf, neginf))
    set_all_items(x, _finite(x, nan, posinf, neginf))
    return x


def _finite(x: Tracer, nan: ArrayLike, posinf: ArrayLike | None, neginf: ArrayLike | None) -> Array:
    kind = x.dtype.kind
    if kind == "c":
        parts = [nan_to_num(part(x), True, nan, posinf, neginf) for part in (real, imag)]
        return prim.add(parts[0], prim.multiply(parts[1], 1j))
    if kind in "biu":
        return x
    is_finite = comparison.isfinite(x)
    if type(is_finite) in (np.ndarray, np.bool) and is_finite.all():
        return comparison.where(is_finite, x, keeping_dtype(0.0, x))  # as below, in one step
    finfo = sys.modules["ml_dtypes"].finfo if kind == "V" else library_of(x).finfo
    largest = float(finfo(x.dtype).max)
    above = comparison.where(comparison.greater(x, 0), keeping_dtype(largest if posinf is None else posinf, x), x)
    replaced = comparison.where(comparison.less(x, 0), keeping_dtype(-largest if neginf is None else neginf, x), above)
    replaced = comparison.where(comparison.isnan(x), keeping_dtype(nan, x), replaced)
    return comparison.where(is_finite, x, replaced)
