"""Reads and writes of parts of pandas' tables: ``table[key]``, ``loc``, ``iloc``, ``at`` and ``iat``.

Before a traced value is written to a column of constants, the column becomes one of traced numbers. Imported only
after pandas.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.tables.columns import TracedColumn, column_of_rows, column_values, traced_column_of
from funcgrad.writable import is_buffer

pd: Any = import_module("pandas")


def holds_traced(x: Any) -> bool:
    """Whether a value, or one in a list, a dictionary or a table, is traced."""
    if isinstance(x, pd.DataFrame):
        return any(isinstance(x.iloc[:, i].array, TracedColumn) for i in range(x.shape[1]))
    if isinstance(x, pd.Series):
        return isinstance(x.array, TracedColumn)
    if type(x) in (list, tuple, dict):
        return any(map(holds_traced, x.values() if type(x) is dict else x))
    return isinstance(x, TracedColumn) or (isinstance(x, Tracer) and not is_buffer(x))


def plain_key(key: Any) -> Any:
    """Return a key of a table with plain values: all examples of a ``vmap`` must choose the same rows."""
    if type(key) in (list, tuple):
        return type(key)([plain_key(part) for part in key])
    if isinstance(key, pd.Series) and isinstance(key.array, TracedColumn):
        return pd.Series(np.asarray(concrete(column_values(key), "table[key]")), key.index)
    return np.asarray(concrete(key, "table[key]"))[()] if isinstance(key, Tracer) else key


def accept_writes(table: Any) -> None:
    """Make columns of constant floating-point numbers traced columns, in place."""
    if table.ndim == 1:
        if table.dtype.kind == "f" and not isinstance(table.array, TracedColumn):
            made = table._constructor(TracedColumn(table.to_numpy()), index=table.index, name=table.name)
            table._update_inplace(made)
        return
    for i in range(table.shape[1]):
        column = table.iloc[:, i]
        if column.dtype.kind == "f" and not isinstance(column.array, TracedColumn):
            table.isetitem(i, TracedColumn(column.to_numpy()))


def finish_writes(table: Any) -> None:
    """Make columns to which nothing traced was written constant again, and traced ones of those that pandas made."""
    if table.ndim == 1:
        found = _finished(table)
        if found is not None:
            table._update_inplace(table._constructor(found, index=table.index, name=table.name))
        return
    for i in range(table.shape[1]):
        found = _finished(table.iloc[:, i])
        if found is not None:
            table.isetitem(i, found)


def _finished(column: Any) -> Any:
    """Return the array that replaces that of a column; None if the column stays."""
    if isinstance(column.array, TracedColumn):
        held = column.array.held._val
        return None if isinstance(held, Tracer) else held
    return traced_column_of(column)


def _as_written(value: Any) -> Any:
    """Return a value in the form in which pandas writes it: a traced array with one axis as a column."""
    if is_buffer(value):
        return np.array(value._val)
    return TracedColumn(value) if isinstance(value, Tracer) and fnp.ndim(value) == 1 else value


def _indexer(name: str) -> Any:
    """Return pandas' class of ``table.loc``, for example, such that it takes traced values and keys."""
    base: Any = type(getattr(pd.Series(dtype=float), name))

    def read(self: Any, key: Any) -> Any:
        return base.__getitem__(self, plain_key(key))

    def write(self: Any, key: Any, value: Any) -> None:
        value = _filling(self, key, value)
        if not holds_traced(value):
            base.__setitem__(self, plain_key(key), _as_written(value))
            return
        accept_writes(self.obj)
        base.__setitem__(self, plain_key(key), _as_written(value))
        finish_writes(self.obj)

    def _filling(self: Any, key: Any, value: Any) -> Any:
        """Return one column for all columns of a frame, which pandas does not write to columns of its own arrays."""
        if type(value) not in (np.ndarray, Tracer) or fnp.ndim(value) != 2 or value.shape[1] != 1:
            return value
        target = read(self, key)
        return fnp.broadcast_to(value, target.shape) if getattr(target, "ndim", 0) == 2 else value

    return type(base.__name__, (base,), {"__getitem__": read, "__setitem__": write})


class WritableTable:
    """Mixin for tables whose parts can be read with traced keys and replaced by traced values."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(plain_key(key))  # type: ignore[misc]

    def __setitem__(self, key: Any, value: Any) -> None:
        plain = plain_key(key)
        table: Any = self
        if not holds_traced(value) or not writes_parts(table, plain):
            column = column_of_rows(value) if type(value) is list else None
            given = _as_written(value) if is_buffer(value) else value
            super().__setitem__(plain, given if column is None else column)  # type: ignore[misc]
            return
        if isinstance(plain, pd.DataFrame):
            table._update_inplace(table.mask(plain, value))
            return
        accept_writes(table)
        super().__setitem__(plain, _as_written(value))  # type: ignore[misc]
        finish_writes(table)

    def clip(self, lower: Any = None, upper: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Replace numbers below ``lower`` and above ``upper`` by these; the limits may be traced."""
        table: Any = self
        if not holds_traced((lower, upper)) or args or kwargs:
            return super().clip(lower, upper, *args, **kwargs)  # type: ignore[misc]
        table = table if lower is None else table.mask(table < lower, lower)
        return table if upper is None else table.mask(table > upper, upper)

    def shift(self, periods: int = 1, *args: Any, fill_value: Any = None, **kwargs: Any) -> Any:
        """Move the rows by ``periods`` and write ``fill_value``, which may be traced, to the rows left empty."""
        table: Any = self
        if not isinstance(fill_value, Tracer):
            given = kwargs if fill_value is None else kwargs | {"fill_value": fill_value}
            return super().shift(periods, *args, **given)  # type: ignore[misc]
        moved = table.shift(periods, *args, **kwargs)
        moved.iloc[slice(periods) if periods > 0 else slice(periods, None)] = fill_value
        return moved


def _writing_method(name: str) -> Any:
    """Return the method ``name`` of a table, which replaces some of the numbers, such that it takes traced ones."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not holds_traced((args, kwargs)):
            return getattr(super(WritableTable, self), name)(*args, **kwargs)
        if name in ("where", "mask") and self.ndim == 2 and len(args) > 1 and isinstance(args[1], Tracer):
            args = (args[0], _frame_like(self, args[1]), *args[2:])
        table = self if name == "update" or kwargs.get("inplace") else self.copy()
        accept_writes(table)
        found = getattr(super(WritableTable, table), name)(*args, **kwargs)
        finish_writes(table if found is None else found)
        return found

    return method


def _frame_like(table: Any, x: Any) -> Any:
    """Return a traced number or matrix with the labels of a frame."""
    x = fnp.broadcast_to(x, table.shape)
    made = table._constructor({i: TracedColumn(x[:, i]) for i in range(table.shape[1])}, index=table.index)
    return made.set_axis(table.columns, axis=1)


def writes_parts(table: Any, key: Any) -> bool:
    """Whether a write with this key replaces parts of columns: rows of a frame, any part of a series."""
    is_choice = isinstance(key, (slice, pd.DataFrame)) or getattr(getattr(key, "dtype", None), "kind", "") == "b"
    return table.ndim == 1 or is_choice


for _name in ("fillna", "where", "mask", "replace", "update"):
    setattr(WritableTable, _name, _writing_method(_name))
for _name in ("loc", "iloc", "at", "iat"):
    setattr(WritableTable, _name, property(partial(_indexer(_name), _name)))
