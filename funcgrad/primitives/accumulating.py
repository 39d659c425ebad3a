"""In-place addition of cotangents of array parts to the cotangent of the whole array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.batching import BatchTrace, is_batched
from funcgrad.core import Tracer, shallow_copy
from funcgrad.forward import ForwardTrace
from funcgrad.graph import stands_for_array
from funcgrad.ownership import has_unshared
from funcgrad.primitives.index_spec import index_from_spec, is_static
from funcgrad.primitives.shaping import arranged

ndarray = np.ndarray
NUMPY_TYPES = frozenset((ndarray, float, complex, np.float64, np.float32, np.float16, np.complex128, np.complex64))


def add_in_place(total: Any, parts: Sequence[tuple[Any, ...]], alone: bool) -> Any:
    """Add ``parts`` to ``total``, in place if nothing else holds its memory (same bits); None for other operands."""
    for ct, index, arrays, *_ in parts:
        if arrays or not (arrays is not None or is_static(index)) or not _can_add(total, ct):
            return None
    if not (alone and _is_unshared(total)):
        total = copy_with_own_memory(total)
    for ct, index, arrays, *_ in parts:
        _add_at(total, index if arrays is None else index_from_spec(index, ()), ct)
    return total


def copy_with_own_memory(x: Any) -> Any:
    """Return ``x`` as a value with memory of its own; ``x`` may be a view of another array."""
    if type(x) is ndarray:
        return x.copy()
    if not isinstance(x, Tracer):
        return x
    if stands_for_array(x) and not x._val.flags.c_contiguous:
        return arranged(x, axes=tuple(range(x._val.ndim)))
    made = shallow_copy(x)
    if not isinstance(made, Tracer):  # ``x`` is a buffer of constants: ``shallow_copy`` returns its array
        return copy_with_own_memory(made)
    made._val = copy_with_own_memory(made._val)
    if isinstance(made._trace, ForwardTrace):
        made.link = copy_with_own_memory(made.link)
    return made


def _is_unshared(x: Any) -> bool:
    """Whether nothing else holds the values in the tracer ``x``, and they are C-contiguous (sums depend on that)."""
    while isinstance(x, Tracer):
        if isinstance(x._trace, ForwardTrace) and not (has_unshared(x, "link") and _is_unshared(x.link)):
            return False
        if not has_unshared(x, "_val"):
            return False
        x = x._val
    return bool(x.flags.c_contiguous)


def _is_batched_or_dual(x: Any) -> bool:
    """Whether ``x`` is a tracer of ``vmap`` or of forward mode."""
    return isinstance(x, Tracer) and isinstance(x._trace, (BatchTrace, ForwardTrace))


def _can_add(total: Any, ct: Any) -> bool:
    if type(total) is ndarray:
        return type(ct) in NUMPY_TYPES
    if not _is_batched_or_dual(total) or not total._trace.fast:
        return False
    mine = isinstance(ct, Tracer) and ct._trace is total._trace
    if isinstance(total._trace, ForwardTrace) and mine and not _can_add(total.link, ct.link):
        return False
    return _can_add(total._val, ct._val if mine else ct)


def _add_at(total: Any, index: Any, ct: Any) -> None:
    """Compute ``total[index] += ct``, level by level."""
    if type(total) is ndarray:
        total[index] += ct
        return
    mine = isinstance(ct, Tracer) and ct._trace is total._trace
    if isinstance(total._trace, ForwardTrace) and mine:
        _add_at(total.link, index, ct.link)
    if is_batched(total):
        index = (slice(None), *index) if type(index) is tuple else (slice(None), index)
    _add_at(total._val, index, ct._val if mine else ct)
