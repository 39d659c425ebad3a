"""The ``dtype`` argument of the elementwise functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.backend import dtype_of
from funcgrad.numpy.creation import as_value, astype
from funcgrad.typing import Array, ArrayLike

__all__ = ["cast"]

_WEAK = (int, float, complex)  # Python numbers of these types adapt to the dtypes of arrays


def cast(ufunc: np.ufunc, dtype: Any, *args: ArrayLike, casting: Any = "same_kind") -> tuple[Array, ...]:
    """``args`` in the dtypes that ``ufunc`` computes in when its results are to have ``dtype``.

    Raises:
        TypeError: there is no such computation, or ``casting`` does not allow it.

    Example:
        >>> cast(np.add, "float32", np.ones(2), np.float32(2))
        (array([1., 1.], dtype=float32), np.float32(2.0))
    """
    values = [as_value(a) for a in args]
    given = [type(v) if type(v) in _WEAK else dtype_of(v) for v in values]
    wanted = None if dtype is None else np.dtype(dtype)
    loop = ufunc.resolve_dtypes(
        (*given, *[None] * ufunc.nout),
        signature=(*[None] * ufunc.nin, *[wanted] * ufunc.nout),
        casting=casting,
    )
    return tuple([astype(v, to) for v, to in zip(values, loop, strict=False)])
