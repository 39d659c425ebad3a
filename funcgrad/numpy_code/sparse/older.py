"""Differences of SciPy's older sparse classes, such as ``csr_matrix``: products, powers and ``numpy.matrix``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_buffer
from funcgrad.numpy_code.matrices import Matrix, is_number, matrix
from funcgrad.numpy_code.sparse.recognition import is_funcgrad_matrix


def _as_slice(k: Any, n: int) -> Any:
    """Return the index of one of ``n`` rows or columns as a slice; others unchanged. One outside is an IndexError."""
    return slice(range(n)[k], range(n)[k] + 1) if isinstance(k, (int, np.integer)) else k


def _with_matrix(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method ``sum`` or ``mean``, whose result along an axis is a matrix."""

    def total(self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        found = plain(self, axis)
        found = found if dtype is None else found.astype(dtype)
        found = found if axis is None else Matrix(fnp.expand_dims(found, axis))
        if out is None:
            return found
        out[...] = found
        return out

    return total


def older_class_methods(methods: dict[str, Any], base: Any) -> dict[str, Any]:
    """Return the operators of the older classes, and their methods that return a ``numpy.matrix``."""
    multiply, product, turned, item = [
        methods[name] for name in ("multiply", "__matmul__", "__rmatmul__", "__getitem__")
    ]

    def power(self: Any, n: Any) -> Any:
        if not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError(f"matrix ** n: n must be 1, 2, 3, ..., got {n}. Use A.power(n) for each element.")
        return functools.reduce(product, [self] * int(n))

    def times(self: Any, x: Any) -> Any:
        found = multiply(self, x) if is_number(x) else product(self, x)
        return matrix(found) if type(x) is Matrix else found

    def index(name: str) -> Callable[..., Any]:
        plain = methods[name]

        def found(self: Any, axis: Any = None, *rest: Any, **options: Any) -> Any:
            at = plain(self, axis, *rest, **options)
            return at if axis is None else Matrix(as_buffer(np.expand_dims(at, axis)))

        return found

    def row_or_item(self: Any, key: Any) -> Any:
        """Return an element, or a part; a row or a column stays a matrix."""
        whole = (key, slice(None)) if isinstance(key, (int, np.integer)) else key
        if isinstance(whole, tuple) and len(whole) == 2 and any(isinstance(k, slice) for k in whole):
            key = tuple(map(_as_slice, whole, self.shape))
        found = item(self, key)
        return found if is_funcgrad_matrix(found) or not found.shape else matrix(found)

    def dense(plain: Callable[..., Any]) -> Callable[..., Any]:
        def combined(self: Any, other: Any) -> Any:
            found = plain(self, other)
            return matrix(found) if isinstance(found, Tracer) and found.shape else found  # with an array: a matrix

        return combined

    return {
        **{f"__{name}__": dense(methods[f"__{name}__"]) for name in ("add", "radd", "sub", "rsub")},
        **{name: index(name) for name in ("argmax", "argmin")},
        "__getitem__": row_or_item,
        "__iter__": lambda self: (self[i] for i in range(self.shape[0])),
        "__mul__": times,
        "__rmul__": lambda self, x: multiply(self, x) if is_number(x) else turned(self, x),
        "__pow__": power,
        "getcol": lambda self, j: self.tocsr()[:, j],
        "getrow": lambda self, i: self.tocsr()[i, :],
        "getformat": lambda self: self.format,
        "getH": lambda self: self.conj().T,
        "H": property(lambda self: self.conj().T),
        "get_shape": lambda self: self.shape,
        "mean": _with_matrix(base.mean),
        "sum": _with_matrix(base.sum),
        "todense": lambda self, *_: Matrix(base.toarray(self)),
    }
