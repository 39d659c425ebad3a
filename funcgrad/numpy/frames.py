"""Tables and columns of pandas with traced values: products, windows, pytrees. Imported only after pandas."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer
from funcgrad.errors import ConversionError
from funcgrad.numpy.concretization import concrete
from funcgrad.numpy.hints import user_line
from funcgrad.numpy.tables import BINARY, UNARY, Labels, TableArray, fits_shape, unwrap_from_table
from funcgrad.writable import is_buffer, plain_value

pd: Any = import_module("pandas")

#: Key in ``attrs`` under which a table keeps leaves that are not arrays.
_LEAF_LABEL = "⟨leaf⟩"


# ---- tables whose products take traced values --------------------------------------------------------------


class _Table:
    """Mixin for tables that hold traced values or are combined with them: matrix products."""

    def dot(self, other: Any) -> Any:
        """Compute the matrix product, with pandas' labels."""
        left, right = _aligned(self, other)
        if not (_holds_traced(left) or _holds_traced(right)):
            return super().dot(other)  # type: ignore[misc]
        found = fnp.matmul(values(left), values(right))
        ends: list[Any] = [left.index] if left.ndim == 2 else []
        if len(fnp.shape(right)) == 2:
            ends.append(right.columns if isinstance(right, pd.DataFrame) else None)
        is_array = not isinstance(self, pd.DataFrame) and not is_labelled(other)
        return found if is_array else with_labels(found, *ends)

    def where(self, cond: Any, other: Any = np.nan, **kwargs: Any) -> Any:
        """Return the numbers where ``cond`` holds, ``other`` elsewhere; each example of a ``vmap`` has its own."""
        return self._choose("where", cond, other, kwargs)

    def mask(self, cond: Any, other: Any = np.nan, **kwargs: Any) -> Any:
        """Return ``other`` where ``cond`` holds, the numbers elsewhere."""
        return self._choose("mask", cond, other, kwargs)

    def _choose(self, name: str, cond: Any, other: Any, kwargs: dict[str, Any]) -> Any:
        """Return a table with the labels of ``self`` and the numbers that a condition chooses."""
        cond = cond(self) if callable(cond) else cond
        if not _holds_traced(cond) or any(kwargs.values()):
            return getattr(super(), name)(cond, other, **kwargs)
        args: Any = (cond, self, other) if name == "where" else (cond, other, self)
        args = [values(x.reindex_like(self)) if is_labelled(x) else x for x in args]
        made = with_labels(fnp.where(*args), *self.axes)  # type: ignore[attr-defined]
        return made if made.ndim == 2 else made.rename(self.name)  # type: ignore[attr-defined]

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        """Apply a function to each number, column or row."""
        found = super().apply(*args, **kwargs)  # type: ignore[misc]
        return with_traced_columns(found) if is_labelled(found) else found

    def __matmul__(self, other: Any) -> Any:
        return self.dot(other)

    def __rmatmul__(self, other: Any) -> Any:
        if not (_holds_traced(self) or _holds_traced(other)):
            return super().__rmatmul__(other)  # type: ignore[misc]
        found = fnp.matmul(other, values(self))
        if not isinstance(self, pd.DataFrame):
            return found
        return with_labels(found, *[None] * (fnp.ndim(found) - 1), self.columns)


def _labelling_method(name: str) -> Callable[..., Any]:
    """Return the arithmetic method ``name``, which gives a traced array the labels of the table's axis first."""

    def method(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(other, Tracer) and fnp.ndim(other):
            by_columns = isinstance(self, pd.DataFrame) and (args[:1] or [kwargs.get("axis", 1)])[0] in (1, "columns")
            ends = (self.columns if by_columns else self.index,) if fnp.ndim(other) == 1 else (self.index, self.columns)
            other = with_labels(other, *ends)
        return getattr(super(_Table, self), name)(other, *args, **kwargs)

    return method


for _name in ["add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow"]:
    for _method in (_name, f"r{_name}"):
        setattr(_Table, _method, _labelling_method(_method))
for _method in ["multiply", "subtract", "divide", "lt", "le", "gt", "ge", "eq", "ne"]:
    setattr(_Table, _method, _labelling_method(_method))


def _in_place_operator(name: str) -> Callable[..., Any]:
    """Return the in-place operator ``name`` of a table; the method that pandas calls does not know traced values."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, Tracer):
            return getattr(super(_Table, self), f"__i{name}__")(other)
        found = getattr(operator, name)(self, other)
        self._update_inplace(found.reindex_like(self))
        return self

    return method


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]:
    setattr(_Table, f"__i{_name}__", _in_place_operator(_name))


class TracedSeries(_Table, pd.Series):  # type: ignore[misc]
    """Series that holds traced values or is combined with them."""

    def __init__(self, data: Any = None, index: Any = None, *args: Any, **kwargs: Any) -> None:
        named = type(data) is dict and index is None
        found = column_of_rows(list(data.values()) if named else data) if named or type(data) is list else None
        if found is not None:
            data, index = found, list(data) if named else index
        super().__init__(data, index, *args, **kwargs)

    def rolling(self, window: Any, min_periods: Any = None, **kwargs: Any) -> Any:
        """Return the windows of ``window`` numbers."""
        if not _holds_traced(self):
            return super().rolling(window, min_periods, **kwargs)
        if not isinstance(window, int) or min_periods not in (None, window) or any(kwargs.values()):
            raise ConversionError(
                "series.rolling: windows of traced values must have a whole number of rows and no other options, "
                f"got {window!r}{user_line()}. Take windows of series.to_numpy() with "
                "funcgrad.numpy.lib.stride_tricks.sliding_window_view."
            )
        return _Windows(self, window)

    _constructor = property(lambda self: TracedSeries)
    _constructor_expanddim = property(lambda self: TracedFrame)


class TracedFrame(_Table, pd.DataFrame):  # type: ignore[misc]
    """Frame that holds traced values or is combined with them."""

    _constructor = property(lambda self: TracedFrame)
    _constructor_sliced = property(lambda self: TracedSeries)
    values = property(lambda self: values(self))

    def apply(self, func: Any, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
        """Apply a function to each column or row; rows go through the transpose, because pandas makes them arrays."""
        if axis not in (1, "columns") or not _holds_traced(self):
            return super().apply(func, axis, *args, **kwargs)
        found = self.T.apply(func, 0, *args, **kwargs)
        return found if found.ndim == 1 else found.T

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, _as_columns(value, self, key))

    def insert(self, loc: Any, column: Any, value: Any, *args: Any, **kwargs: Any) -> None:
        """Insert a column."""
        super().insert(loc, column, _as_columns(value, self, column), *args, **kwargs)

    def cov(self, min_periods: Any = None, ddof: int = 1, numeric_only: bool = False) -> Any:
        """Compute the covariances of the columns; as in pandas ``ddof`` counts where no number is missing."""
        if not _holds_traced(self):
            return super().cov(min_periods, ddof, numeric_only)
        less = 1 if self.isna().to_numpy().any() else ddof
        return self._matrix_of_pairs(lambda x, y: _shared_moment(x, y) / (len(x) - less), min_periods, numeric_only)

    def corr(self, method: Any = "pearson", min_periods: Any = 1, numeric_only: bool = False) -> Any:
        """Compute the correlations of the columns."""
        if not _holds_traced(self):
            return super().corr(method, min_periods, numeric_only)
        if method != "pearson":
            raise ConversionError(
                f"frame.corr: traced values have only the correlation of Pearson, got {method!r}{user_line()}. Take "
                "scipy.stats.spearmanr or kendalltau of frame.to_numpy()."
            )
        scaled = lambda x, y: _shared_moment(x, y) / fnp.sqrt(_shared_moment(x, x) * _shared_moment(y, y))
        return self._matrix_of_pairs(scaled, min_periods, numeric_only)

    def _matrix_of_pairs(self, measure: Callable[..., Any], min_periods: Any, numeric_only: bool) -> Any:
        """Compute ``measure`` of each pair of columns, from the rows in which neither number is missing."""
        table = self.select_dtypes("number") if numeric_only else self
        columns = [values(table.iloc[:, i]) for i in range(table.shape[1])]
        there = [~_shared_truth(fnp.isnan(x)) for x in columns]
        found: list[list[Any]] = [[None] * len(columns) for _ in columns]
        for i, x in enumerate(columns):
            for j, y in enumerate(columns[: i + 1]):
                both = there[i] & there[j]
                enough = both.sum() >= max(min_periods or 1, 1)
                found[i][j] = found[j][i] = measure(x[both], y[both]) if enough else np.nan
        return with_labels(fnp.asarray(found), table.columns, table.columns)

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values as one array, which is traced if a column is."""
        return values(self) if _holds_traced(self) else super().to_numpy(*args, **kwargs)


def _as_columns(value: Any, frame: Any, key: Any) -> Any:
    """Return the value to write to columns of a frame; a traced value gets the labels of the frame."""
    if not isinstance(value, Tracer) or is_buffer(value):
        return value
    if fnp.ndim(value) == 2:
        return with_labels(value, frame.index, key) if type(key) is list else value
    return TracedColumn(value if fnp.ndim(value) else fnp.full(len(frame), value))


def _shared_moment(x: Any, y: Any) -> Any:
    return fnp.sum((x - fnp.mean(x)) * (y - fnp.mean(y)))


class _Windows:
    """Windows of a traced series, with pandas' reductions."""

    def __init__(self, series: Any, window: int) -> None:
        self.series, self.window = series, window

    def __getattr__(self, name: str) -> Any:
        reduce = _WINDOWED.get(name)
        if reduce is None:
            raise AttributeError(f"windows of traced values have no {name!r}")
        return lambda **kwargs: self._reduced(lambda x: reduce(x, **kwargs))

    def _reduced(self, reduce: Callable[[Any], Any]) -> Any:
        x, n = self.series.array.held._val, self.window
        empty = np.full(min(n - 1, len(x)), np.nan)
        found = reduce(fnp.lib.stride_tricks.sliding_window_view(x, n)) if len(x) >= n else empty[:0]
        return _series_of_leaf(fnp.concatenate([empty, found]), self.series.index, self.series.name)


_WINDOWED: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name: getattr(fnp, name)(x, axis=-1) for name in ("sum", "mean", "min", "max", "median")},
    "std": lambda x, ddof=1: fnp.std(x, axis=-1, ddof=ddof),
    "var": lambda x, ddof=1: fnp.var(x, axis=-1, ddof=ddof),
}


def accept_traced(table: Any) -> Any:
    """Convert a table of pandas to one whose products take traced values."""
    if isinstance(table, _Table) or type(table) not in (pd.Series, pd.DataFrame):
        return table
    return (TracedSeries if table.ndim == 1 else TracedFrame)(table)


def _holds_traced(x: Any) -> bool:
    if isinstance(x, pd.DataFrame):
        return any(isinstance(dtype, TracedDtype) for dtype in x.dtypes)
    return isinstance(getattr(x, "array", x), (TracedColumn, TableArray, Tracer))


def values(x: Any) -> Any:
    """Return the values of a table or an array, without labels."""
    if isinstance(x, pd.DataFrame):
        if not _holds_traced(x):
            return pd.DataFrame(x).to_numpy()
        return fnp.stack([values(x.iloc[:, i]) for i in range(x.shape[1])], axis=1)
    inside = getattr(x, "array", x) if is_labelled(x) else x
    return _values(inside) if x is inside or isinstance(inside, TracedColumn) else np.asarray(x)


def with_labels(found: Any, *ends: Any) -> Any:
    """Convert a traced array to a series or a frame with these labels along its axes; return a number unchanged."""
    if not ends:
        return found
    made = as_table(found)
    if len(ends) == 1:
        return TracedSeries(made, ends[0])
    for axis, labels in enumerate(ends):
        made = made if labels is None else made.set_axis(labels, axis=axis)
    return made


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both factors of a product with their labels in the same order; refuse different labels."""
    if not isinstance(right, (pd.Series, pd.DataFrame)):
        return left, right
    inner = left.columns if isinstance(left, pd.DataFrame) else left.index
    common = inner.union(right.index)
    if len(common) > len(inner) or len(common) > len(right.index):
        raise ValueError("matrices are not aligned")
    axis = {"columns" if isinstance(left, pd.DataFrame) else "index": common}
    return left.reindex(**axis), right.reindex(index=common)


# ---- containers -----------------------------------------------------------------------------------------------


def _leaf_of_series(series: Any) -> Any:
    if _LEAF_LABEL in series.attrs:
        return series.attrs[_LEAF_LABEL]
    return series.array.held._val if isinstance(series.array, TracedColumn) else series.to_numpy()


def _series_of_leaf(leaf: Any, index: Any, name: Any) -> Any:
    if isinstance(leaf, Tracer):
        return TracedSeries(TracedColumn(leaf), index, name=name)
    if hasattr(leaf, "ndim"):
        return pd.Series(np.asarray(leaf), index, name=name)
    made = pd.Series(np.zeros(len(index)), index, name=name)
    made.attrs[_LEAF_LABEL] = leaf
    return made


def _flatten_series(series: Any) -> tuple[Any, Any]:
    return (_leaf_of_series(series),), Labels(pd.Series(np.zeros(len(series)), series.index, name=series.name))


def _unflatten_series(labels: Labels, leaves: Any) -> Any:
    (leaf,) = leaves
    shell = labels.template
    return _series_of_leaf(leaf, shell.index, shell.name) if fits_shape(leaf, shell.shape) else leaf


def _is_numeric_series(series: Any) -> bool:
    return isinstance(series.array, TracedColumn) or getattr(series.dtype, "kind", "O") in "fc"


def _flatten_frame(frame: Any) -> tuple[Any, Any]:
    places = [i for i in range(frame.shape[1]) if _is_numeric_series(frame.iloc[:, i])]
    shell = frame.copy()
    for i in places:
        shell.isetitem(i, np.zeros(len(frame)))
    shell.attrs = {}
    found = (
        frame.attrs[_LEAF_LABEL] if _LEAF_LABEL in frame.attrs else [_leaf_of_series(frame.iloc[:, i]) for i in places]
    )
    return found, (tuple(places), Labels(pd.DataFrame(shell)))


def _unflatten_frame(static: Any, leaves: Any) -> Any:
    places, labels = static
    leaves, made = list(leaves), labels.template.copy()
    if not all(fits_shape(leaf, (len(made),)) for leaf in leaves):
        return dict(zip([made.columns[i] for i in places], leaves, strict=True))
    if any(not hasattr(leaf, "ndim") for leaf in leaves):
        made.attrs[_LEAF_LABEL] = leaves
        return made
    for i, leaf in zip(places, leaves, strict=True):
        made.isetitem(i, _series_of_leaf(leaf, made.index, None).array)
    return TracedFrame(made) if any(isinstance(leaf, Tracer) for leaf in leaves) else made


def register_pytrees() -> None:
    """Register tables of pandas as pytrees."""
    for series, frame in ((pd.Series, pd.DataFrame), (TracedSeries, TracedFrame)):
        tree.register_pytree_node(series, _flatten_series, _unflatten_series)
        tree.register_pytree_node(frame, _flatten_frame, _unflatten_frame)


def as_table(x: Any) -> Any:
    """Convert a traced array to a column, or an array of two axes to a table."""
    return TracedColumn(x) if x.ndim == 1 else TracedFrame({i: TracedColumn(x[:, i]) for i in range(x.shape[1])})


def table_of_array(
    cls: Any, data: Any, index: Any = None, columns: Any = None, dtype: Any = None, name: Any = None, copy: Any = None
) -> Any:
    """Return the series or frame that pandas makes of a traced number or matrix, with the given labels.

    Raises:
        ValueError: the number of labels differs from the number of rows or columns.
    """
    data = data if dtype is None else fnp.astype(data, dtype)
    if issubclass(cls, pd.DataFrame):
        return with_labels(data if data.ndim else fnp.full((len(index), len(columns)), data), index, columns)
    if data.ndim:
        raise ValueError(f"Data must be 1-dimensional, got ndarray of shape {data.shape} instead")
    return _series_of_leaf(fnp.full(1 if index is None else len(index), data), index, name)


def with_traced_columns(table: Any) -> Any:
    """Replace the object columns that pandas made of lists of traced numbers by traced columns."""
    if table.ndim == 1:
        found = _traced_column_of(table)
        return table if found is None else TracedSeries(found, table.index, name=table.name)
    for i in range(table.shape[1]):
        if (found := _traced_column_of(table.iloc[:, i])) is not None:
            table.isetitem(i, found)
    return table


def _traced_column_of(series: Any) -> Any:
    """Return a traced column for an object column of numbers, some of them traced; else None."""
    return column_of_rows(series.tolist()) if series.dtype == object else None


def column_of_rows(rows: Any) -> Any:
    """Return a traced column for a list of numbers, some of them traced; else None."""
    traced = [isinstance(x, Tracer) and not x.shape for x in rows]
    are_numbers = all(t or isinstance(x, (float, int, np.number)) for t, x in zip(traced, rows, strict=True))
    return TracedColumn(fnp.stack(rows)) if any(traced) and are_numbers else None


#: Reductions of pandas by name: functions of an array of numbers and of pandas' options.
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name, **kwargs: getattr(fnp, name)(x) for name in ("sum", "mean", "prod", "min", "max")},
    "median": lambda x, **kwargs: fnp.median(x),
    "std": lambda x, ddof=1, **kwargs: fnp.std(x, ddof=ddof),
    "var": lambda x, ddof=1, **kwargs: fnp.var(x, ddof=ddof),
    "sem": lambda x, ddof=1, **kwargs: fnp.std(x, ddof=ddof) / np.sqrt(len(x)),
    "skew": lambda x, **kwargs: _moment(x, 3) * np.sqrt(len(x) * (len(x) - 1)) / (len(x) - 2),
    "kurt": lambda x, **kwargs: _excess_kurtosis(_moment(x, 4), len(x)),
}
#: Cumulative functions of pandas by name, each with the neutral number that replaces a missing number.
_ACCUMULATIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "cumsum": (fnp.cumsum, 0.0),
    "cumprod": (fnp.cumprod, 1.0),
    "cummax": (fnp.maximum.accumulate, -np.inf),
    "cummin": (fnp.minimum.accumulate, np.inf),
}


def _moment(x: Any, order: int) -> Any:
    centred = x - fnp.mean(x)
    return fnp.mean(centred**order) / fnp.mean(centred**2) ** (order / 2)


def _excess_kurtosis(moment: Any, n: int) -> Any:
    """Compute pandas' kurtosis from the fourth standardized moment of ``n`` numbers."""
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * moment - 3 * (n - 1))


class TracedDtype(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
    """Dtype of a column of traced numbers."""

    name, kind, type = "traced", "f", np.float64
    na_value = np.nan
    _is_numeric = True

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the class of such columns."""
        return TracedColumn


class TracedColumn(pd.api.extensions.ExtensionArray):  # type: ignore[misc]
    """Column of traced numbers, with pandas' interface ``pandas.api.extensions.ExtensionArray``.

    Args:
        value: a traced array with one axis.
    """

    __array_priority__ = 2000

    def __init__(self, value: Any) -> None:
        self.held = TableArray(unwrap_from_table(value))

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:
        return cls(fnp.stack(list(scalars)) if len(scalars) else np.zeros(0))

    @classmethod
    def _concat_same_type(cls, parts: Any) -> Any:
        return cls(fnp.concatenate([part.held._val for part in parts]))

    dtype = property(lambda self: TracedDtype())
    nbytes = property(lambda self: self.held.nbytes)

    def __len__(self) -> int:
        return len(self.held)

    def __getattr__(self, name: str) -> Any:
        """Look up a method of arrays, for programs that use the values of a series."""
        if name.startswith("_") or name == "held":
            raise AttributeError(name)
        return getattr(self.held._val, name)

    def __getitem__(self, key: Any) -> Any:
        found = self.held._val[pd.api.indexers.check_array_indexer(self, key)]
        return TracedColumn(found) if found.ndim else found

    def __setitem__(self, key: Any, value: Any) -> None:
        made = fnp.copy(self.held._val)
        made[pd.api.indexers.check_array_indexer(self, key)] = _values(value)
        self.held = TableArray(made)

    def isna(self) -> Any:
        """Return where numbers are missing, that is, NaN."""
        return _shared_truth(fnp.isnan(self.held._val))

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Any:
        """Return the numbers at ``indices``; with ``allow_fill``, -1 yields ``fill_value``, by default NaN."""
        indices = np.asarray(indices)
        found = self.held._val[indices]
        if allow_fill and (indices < 0).any():
            found = fnp.where(indices < 0, np.nan if fill_value is None else fill_value, found)
        return TracedColumn(found)

    def copy(self) -> Any:
        """Return another column of the same numbers."""
        return TracedColumn(self.held)

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **kwargs: Any) -> Any:
        if name not in _REDUCTIONS:
            raise TypeError(f"a column of traced numbers has no reduction {name!r}")
        missing = self.isna()
        there = self.held._val[~missing] if skipna and missing.any() else self.held._val
        found = _REDUCTIONS[name](there, **kwargs)
        return TracedColumn(found[None]) if keepdims else found

    def _accumulate(self, name: str, *, skipna: bool = True, **kwargs: Any) -> Any:
        missing, (accumulate, neutral) = self.isna(), _ACCUMULATIONS[name]
        if not skipna or not missing.any():
            return TracedColumn(accumulate(self.held._val))
        return TracedColumn(fnp.where(missing, np.nan, accumulate(fnp.where(missing, neutral, self.held._val))))

    def _groupby_op(
        self, *, how: str, has_dropped_na: bool, min_count: int, ngroups: int, ids: Any, **kwargs: Any
    ) -> Any:
        if how not in _REDUCTIONS:
            raise NotImplementedError(how)  # then pandas computes the groups one by one
        return TracedColumn(
            fnp.stack([TracedColumn(self.held._val[ids == i])._reduce(how, **kwargs) for i in range(ngroups)])
        )

    def map(self, mapper: Any, na_action: Any = None) -> Any:
        """Apply a function to each number."""
        found = _as_objects([mapper(x) for x in self.held._val])
        made = _traced_column_of(pd.Series(found))
        return found if made is None else made

    def _quantile(self, qs: Any, interpolation: str) -> Any:
        there = self.held._val[~self.isna()]
        return TracedColumn(fnp.quantile(there, np.asarray(qs), method=interpolation))

    def _values_for_argsort(self) -> Any:
        return np.asarray(concrete(self.held._val, "series.argsort()"))

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> Any:
        """Return the traced array."""
        return self.held._val

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Convert the column to another precision, or to an object array of its numbers, each traced."""
        if isinstance(dtype, TracedDtype):
            return self.copy() if copy else self
        if np.dtype(dtype) == object:
            return _as_objects(list(self.held._val))
        return TracedColumn(self.held._val.astype(dtype)) if np.dtype(dtype).kind in "fc" else np.asarray(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.held._val, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(is_labelled, inputs)):
            return NotImplemented
        return _column(_without_missing(getattr(ufunc, method), [_values(x) for x in inputs], kwargs))


def _as_objects(rows: list[Any]) -> Any:
    """Return an array of the objects ``rows``; numpy.array would request the values of traced numbers."""
    found = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        found[place] = row
    return found


def _shared_truth(x: Any) -> Any:
    """Return truth values as an ndarray, False for abstract ones; all examples of a ``vmap`` must share them."""
    bottom = plain_value(x)
    if not isinstance(x, Tracer) or backend.is_jax_tracer(bottom):
        return x if bottom is x else np.zeros(x.shape, bool)
    return concrete(x, "series.isna()")


def is_labelled(x: Any) -> bool:
    """Whether ``x`` is a table of pandas."""
    return isinstance(x, (pd.Series, pd.DataFrame, pd.Index))


def _values(x: Any) -> Any:
    return x.held._val if isinstance(x, TracedColumn) else unwrap_from_table(x)


def _column(found: Any) -> Any:
    return TracedColumn(found) if isinstance(found, Tracer) and fnp.ndim(found) else found


def _without_missing(apply: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute ``apply(*args)``; missing numbers, which pandas leaves out, get no derivative."""
    found = apply(*args, **kwargs)
    if not isinstance(found, Tracer) or found.dtype.kind not in "fc":
        return found
    missing = _shared_truth(fnp.isnan(found))
    if not missing.any():
        return found
    args = [fnp.where(missing, 1.0, x) if fnp.shape(x) == missing.shape else x for x in args]
    return fnp.where(missing, np.nan, apply(*args, **kwargs))


def _binary(name: str, reflected: bool) -> Callable[..., Any]:
    apply = getattr(operator, name + "_" if name in ("and", "or") else name)

    def run(self: Any, other: Any) -> Any:
        if is_labelled(other):
            return NotImplemented
        pair = (_values(other), self.held._val) if reflected else (self.held._val, _values(other))
        return _column(_without_missing(apply, pair, {}))

    return run


def _unary(name: str) -> Callable[..., Any]:
    apply = getattr(operator, name)
    return lambda self: _column(apply(self.held._val))


for _name in BINARY.split():
    setattr(TracedColumn, f"__{_name}__", _binary(_name, reflected=False))
    setattr(TracedColumn, f"__r{_name}__", _binary(_name, reflected=True))
for _name in UNARY.split():
    setattr(TracedColumn, f"__{_name}__", _unary(_name))
