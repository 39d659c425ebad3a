"""Tables and columns of pandas with traced values: products, windows, pytrees. Imported only after pandas."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import READ_ONLY, Tracer
from funcgrad.errors import ConversionError, InputError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.tables.columns import (
    TracedColumn,
    TracedDtype,
    attempt,
    column_of_rows,
    is_labelled,
    missing_of,
    traced_column_of,
    values_of_column,
)
from funcgrad.numpy.tables.containers import Labels, TableArray, fits_shape
from funcgrad.numpy.tables.groups import frame_of_rows, with_traced_groups
from funcgrad.numpy.tables.windows import DecayingWindows, WeightedWindows, Windows, decay_of, with_traced_results
from funcgrad.numpy.tables.writes import WritableTable, writes_parts
from funcgrad.writable import is_buffer

pd: Any = import_module("pandas")

#: Key in ``attrs`` under which a table keeps leaves that are not arrays.
_LEAF_LABEL = "⟨leaf⟩"
#: Whether ``frame.values`` may share memory with the frame, as before pandas 3, and a write changes both.
_WRITES_THROUGH = bool(pd.DataFrame(np.zeros((1, 1))).to_numpy().flags.writeable)
#: Options of ``rolling`` after the window, in the order in which they may be given without names.
_ROLLING_OPTIONS = ("min_periods", "center", "win_type", "on", "closed", "step", "method")


# ---- tables whose products take traced values --------------------------------------------------------------


class _Table(WritableTable):
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
        return _retraced(super().apply(*args, **kwargs))  # type: ignore[misc]

    def agg(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce the table by one or more functions."""
        return _retraced(super().agg(*args, **kwargs))  # type: ignore[misc]

    def map(self, *args: Any, **kwargs: Any) -> Any:
        """Replace each number or text by that of a function or a dictionary."""
        return _retraced(super().map(*args, **kwargs))  # type: ignore[misc]

    aggregate = agg

    def asof(self, where: Any, subset: Any = None) -> Any:
        """Return the last number, or row, at or before ``where`` that is not missing."""
        if not _holds_traced(self) or pd.api.types.is_list_like(where):
            return super().asof(where, subset)  # type: ignore[misc]
        where = pd.Timestamp(where) if isinstance(where, str) else where
        return super().asof([where], subset).iloc[0]  # type: ignore[misc]  # pandas would test a single number for NaN

    def groupby(self, *args: Any, **kwargs: Any) -> Any:
        """Return the groups of rows with the same key."""
        found = super().groupby(*args, **kwargs)  # type: ignore[misc]
        return with_traced_groups(found) if _holds_traced(self) else found

    def rolling(self, window: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the windows of ``window`` rows or of a length of time."""
        if not _holds_traced(self):
            traced = Windows(self, lambda table: table.rolling(window, *args, **kwargs))
            return with_traced_results(super().rolling(window, *args, **kwargs), traced)  # type: ignore[misc]
        options = dict(zip(_ROLLING_OPTIONS, args, strict=False)) | kwargs
        if options.get("on") or options.get("method", "single") != "single":
            raise ConversionError(
                f"rolling: windows of traced values have the labels of the table, got {', '.join(options)}"
                f"{user_line()}. Take windows of series.to_numpy() with "
                "funcgrad.numpy.lib.stride_tricks.sliding_window_view."
            )
        kind = WeightedWindows if options.get("win_type") else Windows
        return kind(self, lambda table: table.rolling(window, *args, **kwargs))

    def expanding(self, *args: Any, **kwargs: Any) -> Any:
        """Return the windows from the first row to each row."""
        if not _holds_traced(self):
            traced = Windows(self, lambda table: table.expanding(*args, **kwargs))
            return with_traced_results(super().expanding(*args, **kwargs), traced)  # type: ignore[misc]
        return Windows(self, lambda table: table.expanding(*args, **kwargs))

    def ewm(
        self, com: Any = None, span: Any = None, halflife: Any = None, alpha: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Return windows with decaying weights; the decay may be traced."""
        given = com, span, halflife, alpha, *args
        if not (_holds_traced(self) or any(isinstance(x, Tracer) for x in given)):
            return super().ewm(*given, **kwargs)  # type: ignore[misc]
        options = dict(zip(("min_periods", "adjust", "ignore_na", "times"), args, strict=False)) | kwargs
        decay = decay_of(com, span, halflife, alpha, options.get("times"))
        return DecayingWindows(
            self, lambda table: table.ewm(*given, **kwargs), decay, {**options, "halflife": halflife}
        )

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
        if isinstance(other, Tracer) and not fnp.ndim(other):  # pandas would convert a number to a plain one
            other = with_labels(fnp.broadcast_to(other, self.shape), *self.axes)
        elif isinstance(other, Tracer):
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


#: Options with which a part of a table may be updated: before version 3, pandas warns that the part may be a copy.
_WITHOUT_WARNING = {
    name: False for name in ("verify_is_copy",) if name in signature(pd.DataFrame._update_inplace).parameters
}


def _in_place_operator(name: str) -> Callable[..., Any]:
    """Return the in-place operator ``name`` of a table; the method that pandas calls does not know traced values."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, Tracer):
            return getattr(super(_Table, self), f"__i{name}__")(other)
        found = getattr(operator, name)(self, other)
        self._update_inplace(found.reindex_like(self), **_WITHOUT_WARNING)
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

    def describe(self, percentiles: Any = None, include: Any = None, exclude: Any = None) -> Any:
        """Return the number of values, their mean, deviation, least and largest value, and quantiles."""
        if not _holds_traced(self):
            return super().describe(percentiles, include, exclude)
        labels = pd.Series([0.0, 1.0]).describe(percentiles).index
        ranks = [float(label.rstrip("%")) / 100 for label in labels if label.endswith("%")]
        first = [self.count(), self.mean(), self.std(), self.min()]
        return TracedSeries([*first, *map(self.quantile, ranks), self.max()], index=labels, name=self.name)

    def nlargest(self, n: int = 5, keep: str = "first") -> Any:
        """Return the ``n`` largest numbers."""
        return _first_rows(self, n, keep, ascending=False) if _holds_traced(self) else super().nlargest(n, keep)

    def nsmallest(self, n: int = 5, keep: str = "first") -> Any:
        """Return the ``n`` smallest numbers."""
        return _first_rows(self, n, keep, ascending=True) if _holds_traced(self) else super().nsmallest(n, keep)

    type_of = staticmethod(lambda x: pd.Series)  # what ``type(x)`` is in rebuilt code
    __class__: Any = property(lambda self: pd.Series)
    _constructor = property(lambda self: TracedSeries)
    _constructor_expanddim = property(lambda self: TracedFrame)


class TracedFrame(_Table, pd.DataFrame):  # type: ignore[misc]
    """Frame that holds traced values or is combined with them."""

    def __init__(self, data: Any = None, index: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(frame_of_series(data, index), index, *args, **kwargs)

    def describe(self, percentiles: Any = None, include: Any = None, exclude: Any = None) -> Any:
        """Return a description of each column of numbers."""
        if not _holds_traced(self):
            return super().describe(percentiles, include, exclude)
        table = self.select_dtypes("number")
        columns = [table.iloc[:, i].describe(percentiles) for i in range(table.shape[1])]
        return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)

    def rank(self, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
        """Return the ranks of the numbers of each column or row."""
        if not _holds_traced(self):
            return super().rank(axis, *args, **kwargs)
        table = self if axis in (0, "index") else self.T
        found = table.apply(lambda column: column.rank(0, *args, **kwargs))
        return found if table is self else found.T

    def nlargest(self, n: int, columns: Any, keep: str = "first") -> Any:
        """Return the ``n`` rows with the largest numbers in ``columns``."""
        choose = partial(_first_rows, self, n, keep, ascending=False, by=columns)
        return choose() if _holds_traced(self) else super().nlargest(n, columns, keep)

    def nsmallest(self, n: int, columns: Any, keep: str = "first") -> Any:
        """Return the ``n`` rows with the smallest numbers in ``columns``."""
        choose = partial(_first_rows, self, n, keep, ascending=True, by=columns)
        return choose() if _holds_traced(self) else super().nsmallest(n, columns, keep)

    type_of = staticmethod(lambda x: pd.DataFrame)
    __class__: Any = property(lambda self: pd.DataFrame)
    _constructor = property(lambda self: TracedFrame)
    _constructor_sliced = property(lambda self: TracedSeries)
    values = property(lambda self: self.to_numpy())

    def apply(self, func: Any, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
        """Apply a function to each column or row; rows go through the transpose, because pandas makes them arrays."""
        if axis not in (1, "columns"):
            return super().apply(func, axis, *args, **kwargs)
        if not _holds_traced(self):
            plain = partial(super().apply, func, axis, *args, **kwargs)
            return plain() if args or kwargs else attempt(plain, lambda: self._apply_to_rows(func, plain))
        found = self.T.apply(func, 0, *args, **kwargs)
        return found if found.ndim == 1 else found.T

    def _apply_to_rows(self, func: Any, plain: Any) -> Any:
        """Apply a function to the rows of constants, where it returns series of traced numbers."""
        found = frame_of_rows([func(row) for _, row in self.iterrows()], self.index)
        return plain() if found is None else TracedFrame(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value if writes_parts(self, key) else _as_columns(value, self, key))

    def _reduce(self, op: Any, name: str, *, axis: Any = 0, **kwargs: Any) -> Any:
        """Reduce the columns, or the rows, all numbers of which pandas takes if they are of one kind."""
        table = self._with_one_kind() if axis in (1, "columns") and _holds_traced(self) else self
        return accept_traced(pd.DataFrame._reduce(table, op, name, axis=axis, **kwargs))

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        """Return the table with rows and columns exchanged."""
        table = self._with_one_kind() if _holds_traced(self) else self
        return pd.DataFrame.transpose(table, *args, **kwargs)

    T = property(transpose)

    def _with_one_kind(self) -> Any:
        """Return the frame with all columns of numbers as traced columns."""
        made = self.copy()
        for i, dtype in enumerate(self.dtypes):
            if getattr(dtype, "kind", "O") in "fiu" and not isinstance(dtype, TracedDtype):
                made.isetitem(i, TracedColumn(values(self.iloc[:, i]).astype(float)))
        return made

    def eval(self, expr: str, *args: Any, **kwargs: Any) -> Any:
        """Evaluate an expression in the names of the columns."""
        in_place, level = args or kwargs.get("inplace"), kwargs.pop("level", 0) + 1
        table = self._with_one_kind() if _holds_traced(self) and not in_place else self
        given = {"global_dict": global_names(expr, level), **kwargs}
        return pd.DataFrame.eval(table, expr, *args, level=level, **given)

    def insert(self, loc: Any, column: Any, value: Any, *args: Any, **kwargs: Any) -> None:
        """Insert a column."""
        super().insert(loc, column, _as_columns(value, self, column), *args, **kwargs)

    def cov(self, min_periods: Any = None, ddof: int = 1, numeric_only: bool = False) -> Any:
        """Compute the covariances of the columns; as in pandas ``ddof`` counts where no number is missing."""
        if not _holds_traced(self):
            return super().cov(min_periods, ddof, numeric_only)
        less = 1 if ddof == 1 or self.isna().to_numpy().any() else ddof
        spread = lambda x, y, both: _shared_moment(x, y, both) / (fnp.sum(both) - less)
        return self._matrix_of_pairs(spread, min_periods, numeric_only)

    def corr(self, method: Any = "pearson", min_periods: Any = 1, numeric_only: bool = False) -> Any:
        """Compute the correlations of the columns."""
        if not _holds_traced(self):
            return super().corr(method, min_periods, numeric_only)
        if method != "pearson":
            raise ConversionError(
                f"frame.corr: traced values have only the correlation of Pearson, got {method!r}{user_line()}. Take "
                "scipy.stats.spearmanr or kendalltau of frame.to_numpy()."
            )

        def scaled(x: Any, y: Any, both: Any) -> Any:
            return _shared_moment(x, y, both) / fnp.sqrt(_shared_moment(x, x, both) * _shared_moment(y, y, both))

        return self._matrix_of_pairs(scaled, min_periods, numeric_only)

    def _matrix_of_pairs(self, measure: Callable[..., Any], min_periods: Any, numeric_only: bool) -> Any:
        """Compute ``measure`` of each pair of columns, from the rows in which neither number is missing."""
        table = self.select_dtypes("number") if numeric_only else self
        columns = [values(table.iloc[:, i]) for i in range(table.shape[1])]
        there, least = [~missing_of(x) for x in columns], max(min_periods or 1, 1)
        found: list[list[Any]] = [[None] * len(columns) for _ in columns]
        for i, x in enumerate(columns):
            for j, y in enumerate(columns[: i + 1]):
                both = there[i] & there[j]
                if type(both) is np.ndarray:
                    one = measure(x[both], y[both], both[both]) if both.sum() >= least else np.nan
                else:  # not known while jit compiles
                    one = measure(fnp.where(both, x, 0.0), fnp.where(both, y, 0.0), both)
                    one = fnp.where(fnp.sum(both) >= least, one, np.nan)
                found[i][j] = found[j][i] = one
        return with_labels(fnp.asarray(found), table.columns, table.columns)

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values as one array, which is traced if a column is."""
        if not _holds_traced(self):
            return super().to_numpy(*args, **kwargs)
        if not {getattr(dtype, "kind", "O") for dtype in self.dtypes} <= set("fciub"):  # texts, for example
            return _as_objects(self)
        found = values(self)
        if _WRITES_THROUGH:  # a write would change the table, too
            found.alias = READ_ONLY
        return found


# messages name the classes that programs know
TracedSeries.__name__, TracedFrame.__name__ = "Series", "DataFrame"


def _as_objects(table: Any) -> Any:
    """Return the values of a frame as an object array, which holds each traced number."""
    found = np.empty(table.shape, object)
    for i in range(table.shape[1]):
        for row, x in enumerate(table.iloc[:, i]):
            found[row, i] = x
    return found


def _first_rows(table: Any, n: int, keep: str, ascending: bool, **by: Any) -> Any:
    """Return the first rows of a table in the order of its numbers.

    Raises:
        NotImplementedError: ``keep`` is ``"all"``.
    """
    if keep == "all":
        raise NotImplementedError("nlargest, nsmallest: traced values have no keep='all'. Take sort_values().head(n).")
    table = table.dropna(subset=by.get("by")) if by else table.dropna()
    table = table if keep == "first" else table.iloc[::-1]
    return table.sort_values(ascending=ascending, kind="stable", **by).iloc[:n]


def global_names(expr: str, level: int) -> dict[str, Any]:
    """Return the global names for an expression: a rebuilt function finds some only at their first lookup.

    Args:
        expr: the expression.
        level: how many calls further out the function is whose names are meant, counted from the caller of this one.
    """
    caller = sys._getframe(level + 1)
    found = dict(caller.f_globals)
    for name in set(re.findall(r"\w+", expr)) - found.keys():
        with suppress(KeyError):
            found[name] = caller.f_builtins[name]
    return found


def _as_columns(value: Any, frame: Any, key: Any) -> Any:
    """Return the value to write to columns of a frame; a traced value gets the labels of the frame."""
    if not isinstance(value, Tracer) or is_buffer(value):
        return value
    if fnp.ndim(value) == 2:
        return with_labels(value, frame.index, key) if type(key) is list else value
    return TracedColumn(value if fnp.ndim(value) else fnp.full(len(frame), value))


def _shared_moment(x: Any, y: Any, both: Any) -> Any:
    """Return the sum of products of distances from the means; the numbers are 0 where not ``both`` exist."""
    n = fnp.sum(both)
    return fnp.sum(fnp.where(both, (x - fnp.sum(x) / n) * (y - fnp.sum(y) / n), 0.0))


def _retraced(found: Any) -> Any:
    """Return a result of pandas with traced columns in place of columns of traced objects."""
    return with_traced_columns(found) if is_labelled(found) else found


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
    return values_of_column(inside) if x is inside or isinstance(inside, TracedColumn) else np.asarray(x)


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
        found = dict(zip([made.columns[i] for i in places], leaves, strict=True))
        if len(found) < len(leaves):
            raise InputError(
                "DataFrame: Jacobians and batches are dictionaries with the columns as keys, got equal ones, "
                f"{list(made.columns)}. Rename the columns."
            )
        return found
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


def frame_of_series(rows: Any, index: Any = None) -> Any:
    """Return the frame that pandas makes of a list of series as rows if some hold traced values; else ``rows``."""
    if (
        type(rows) is not list
        or not all(isinstance(row, pd.Series) for row in rows)
        or not any(map(_holds_traced, rows))
    ):
        return rows
    names = [row.name for row in rows]
    if index is not None:
        names = list(index)
    elif any(name is not None for name in names):
        unnamed = (f"Unnamed {i}" for i in range(len(names)))
        names = [next(unnamed) if name is None else name for name in names]
    else:
        names = list(range(len(names)))
    return pd.concat(rows, axis=1, keys=range(len(rows)), sort=False).T.set_axis(names, axis=0)


def matrix_of_rows(rows: list[Any]) -> Any:
    """Return a traced matrix for a list of arrays with one axis, some of them traced; else None."""
    are_arrays = all(isinstance(row, (np.ndarray, Tracer)) and fnp.ndim(row) == 1 for row in rows)
    any_traced = any(isinstance(row, Tracer) and not is_buffer(row) for row in rows)
    return fnp.stack(rows) if any_traced and are_arrays else None


def with_traced_columns(table: Any) -> Any:
    """Replace the object columns that pandas made of lists of traced numbers by traced columns."""
    if table.ndim == 1:
        found = traced_column_of(table)
        return table if found is None else TracedSeries(found, table.index, name=table.name)
    for i in range(table.shape[1]):
        if (found := traced_column_of(table.iloc[:, i])) is not None:
            table.isetitem(i, found)
    return table
