"""Elementwise operations of traced values with tables of pandas and xarray, and with masked arrays.

A traced array that is combined with a table gets the table's labels. Then the library computes: it aligns, names and
broadcasts as it does with plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from funcgrad.backend import is_sequence, shape_of
from funcgrad.core import Primitive, Tracer
from funcgrad.kinds.arguments import MASKED_OPERATION, TABLE_OPERATIONS
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.shaping import broadcast_to
from funcgrad.numpy.tables.containers import TableArray, register_loaded
from funcgrad.numpy.ufuncs import UFUNCS
from funcgrad.primitives.products import matmul


def install() -> None:
    """Make ufuncs with one result, and ``matmul``, call this module if a table is among their arguments."""
    for ufunc, own in UFUNCS.items():
        primitive = getattr(vars(own)["compute"], "primitive", None)
        if primitive is not None and ufunc.signature is None and ufunc.nout == 1:
            TABLE_OPERATIONS[primitive] = _elementwise(ufunc)
    TABLE_OPERATIONS[matmul.primitive] = _product
    MASKED_OPERATION.append(_of_masked_arrays)


def _of_masked_arrays(primitive: Primitive, args: tuple[Any, ...]) -> Any:
    made = import_module("funcgrad.numpy.masked").replace_call(primitive.name, args)
    return NotImplemented if made is None else made


def _elementwise(ufunc: np.ufunc) -> Callable[..., Any]:
    def computed(*args: Any) -> Any:
        table = next((x for x in args if hasattr(x, "dims") or hasattr(x, "iloc")), None)
        return NotImplemented if table is None else _apply_with_table(table, ufunc, args)

    return computed


def _apply_with_table(table: Any, ufunc: np.ufunc, args: tuple[Any, ...]) -> Any:
    """Apply a ufunc to a table and arrays; NotImplemented if the shape of a traced array does not fit the table."""
    register_loaded()
    given = []
    for x in args:
        x = as_value(x) if is_sequence(x) else x
        x = x.held.as_array() if hasattr(type(x), "_from_sequence") and hasattr(x, "held") else x  # ``series.values``
        if isinstance(x, Tracer):
            if not _fits(shape_of(x), table):
                return NotImplemented
            x = _with_labels(x, table)
        given.append(x)
    return ufunc(*given) if len(given) == 1 or not hasattr(table, "columns") else _apply_by_column(table, ufunc, given)


def _apply_by_column(table: Any, ufunc: np.ufunc, given: list[Any]) -> Any:
    """Apply a ufunc column by column to frames and numbers, where pandas would make an array; align labels first."""
    if not all(x is table or not hasattr(x, "shape") or hasattr(x, "columns") for x in given):
        return ufunc(*given)
    if len(given) == 2 and all(hasattr(x, "axes") for x in given):
        given = list(given[0].align(given[1]))
        table = given[0]
    columns = [ufunc(*[x.iloc[:, i] if hasattr(x, "iloc") else x for x in given]) for i in range(len(table.columns))]
    made = _pandas_frames().pd.concat(columns, axis=1)
    return _pandas_frames().accept_traced(made.set_axis(table.columns, axis=1))


def _fits(shape: tuple[int, ...], table: Any) -> bool:
    try:
        return np.broadcast_shapes(shape, table.shape) == tuple(table.shape)
    except ValueError:
        return False


def _with_labels(x: Tracer, table: Any) -> Any:
    if hasattr(table, "dims"):
        return TableArray(x)
    made = _pandas_frames().with_labels(broadcast_to(x, table.shape), *table.axes)
    return made.rename(table.name) if table.ndim == 1 else made


def _product(a: Any, b: Any) -> Any:
    """Compute ``a @ b`` if pandas gives the product labels, else return NotImplemented."""
    if not any(isinstance(x, _pandas_frames().pd.DataFrame) for x in (a, b) if hasattr(x, "iloc")):
        return NotImplemented
    if isinstance(a, Tracer):
        return _pandas_frames().accept_traced(b).__rmatmul__(a)
    return _pandas_frames().accept_traced(a) @ b if hasattr(a, "iloc") else NotImplemented


def _pandas_frames() -> Any:
    return import_module("funcgrad.numpy.tables.frames")
