"""Evenly spaced numbers, histograms, sets and bits: positions that depend on the values of an array.

Positions are integers, so no derivative passes to them; it passes to the elements that are read there. The
number of positions depends on the values, so these operations refuse a batch axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.errors import ConcretizationError
from funcgrad.kinds import nondifferentiable
from funcgrad.kinds.linear import reduce_sum, reshape, to_batch
from funcgrad.kinds.rules import Operation
from funcgrad.kinds.variadic import jointly_linear
from funcgrad.primitives.arithmetic import multiply
from funcgrad.primitives.comparison import equal, logical_not
from funcgrad.primitives.reductions import reduce_any
from funcgrad.typing import Shape

# ---- histograms --------------------------------------------------------------------------------------------


def _linspace(xp: Any, x: Any, y: Any, *, num: int, endpoint: bool, dtype: Any) -> Any:
    made = xp.linspace(x, y, num, endpoint, dtype=backend.native_dtype(xp, dtype))
    return made if made.ndim == 1 else xp.moveaxis(made, 0, -1)


def _linspace_transpose(
    ct: Any, shapes: Any, wanted: tuple[int, ...], *, num: int, endpoint: bool, dtype: Any
) -> list[Any]:
    """Return cotangents of the bounds: number i has the weights ``1 - t`` and ``t`` with ``t = i / (num - 1)``."""
    last = np.linspace(0, 1, num, endpoint, dtype=np.empty(0, dtype).real.dtype)
    axis = (len(backend.shape_of(ct)) - 1,)
    return [reduce_sum(multiply(ct, last if i else 1 - last), axis=axis) for i in wanted]


#: ``linspace(first, last, *, num, endpoint, dtype)``: NumPy's numbers, bit for bit, along a new last axis.
linspace: Operation = jointly_linear(
    "linspace",
    _linspace,
    transpose=_linspace_transpose,
    batch="leading",
)


def _refuse_batch(*_: Any) -> Any:
    raise ConcretizationError(
        "histogram: the number of bins that a rule finds depends on the values, which differ between the examples of a "
        "vmap, got a batched array. Pass a number of bins, or call it outside vmap."
    )


def _estimated(xp: Any, x: Any, first: Any, last: Any, *, rule: str) -> Any:
    x, first, last = (np.asarray(a) for a in (x, first, last))
    return np.intp(np.histogram_bin_edges(x, rule, (first, last)).size - 1)


#: ``estimated_bins(x, first, last, *, rule)``: the number of bins that NumPy's ``rule`` chooses for ``x``.
estimated_bins: Operation = nondifferentiable("estimated_bins", _estimated, batch=_refuse_batch)


def _rounding(xp: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return x - (xp.clip(xp.real(x), -1, 1) + 1j * xp.clip(xp.imag(x), -1, 1))
    return x - xp.clip(x, -1, 1)


#: Excess of a correlation over the interval from -1 to 1: a rounding error, which has no derivative.
rounding_over_one: Operation = nondifferentiable("rounding_over_one", _rounding, batch="leading")

# ---- sets --------------------------------------------------------------------------------------------------


def _unique_positions(
    xp: Any, x: Any, *, axis: int | None, equal_nan: bool, ordered: bool, with_counts: bool
) -> tuple[Any, ...]:
    _, first, *rest = xp.unique(x, True, with_counts, with_counts, axis, equal_nan=equal_nan)
    if not ordered and xp is np:  # NumPy promises no order but has one: traced arrays must get the same order
        found = np.unique(x, equal_nan=equal_nan, sorted=False) if equal_nan else np.unique_values(x)
        first = first[np.argsort(np.argsort(found, stable=True), stable=True)]
    return (first, rest[0].reshape(-1), rest[1]) if with_counts else (first,)


#: ``unique_positions(x, *, axis, equal_nan, ordered, with_counts)``: the first position of each distinct element (or
#: slice along ``axis``), elements in rising order; if ``with_counts`` also the inverse indices and the counts, as
#: ``np.unique`` has them.
unique_positions: Operation = nondifferentiable(
    "unique_positions",
    _unique_positions,
    batch="loop",
    multiple=True,
    data_dependent=True,
)

#: ``common_positions(x, y, *, assume_unique)``: the positions of the common elements in ``x`` and in ``y``.
common_positions: Operation = nondifferentiable(
    "common_positions",
    lambda xp, x, y, *, assume_unique: tuple(xp.intersect1d(x, y, assume_unique, True)[1:]),
    batch="loop",
    multiple=True,
    data_dependent=True,
)


def _isin(xp: Any, x: Any, y: Any, **params: Any) -> Any:
    if xp is np:
        return np.isin(x, y, **params)[()]
    return xp.isin(x, y, assume_unique=params["assume_unique"], invert=params["invert"])


def _isin_batch(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    x, y = args
    if not batched[1]:
        return isin(x, y, **params), True
    x = x if batched[0] else to_batch(x, size)
    shape: Shape = backend.shape_of(x)
    sizes = [np.prod(backend.shape_of(a)[1:], dtype=int) for a in (x, y)]
    same = equal(reshape(x, to=(size, sizes[0], 1)), reshape(y, to=(size, 1, sizes[1])))
    found = reshape(reduce_any(same, axis=(2,)), to=shape)
    return logical_not(found) if params["invert"] else found, True


#: ``isin(x, y, *, assume_unique, invert, kind)``: a mask of the elements of ``x`` that are in ``y``.
isin: Operation = nondifferentiable("isin", _isin, batch=_isin_batch)

#: ``lexsort(*keys, axis)``: the positions that sort by the last key; ties are broken by the keys before it.
lexsort: Operation = nondifferentiable("lexsort", lambda xp, *keys, axis: xp.lexsort(keys, axis), batch="axis")

# ---- bits --------------------------------------------------------------------------------------------------


#: ``packbits(x, *, axis, bitorder)``.
packbits: Operation = nondifferentiable("packbits", batch="axis")
#: ``unpackbits(x, *, axis, count, bitorder)``.
unpackbits: Operation = nondifferentiable("unpackbits", batch="axis")
