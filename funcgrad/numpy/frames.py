"""Tables of pandas with traced values: products, windows, containers. Imported when pandas has been."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core import Tracer
from funcgrad.errors import ConversionError
from funcgrad.numpy.callers import user_line
from funcgrad.numpy.columns import TracedColumn, TracedDtype, is_labelled
from funcgrad.numpy.tables import Held, Labels, fits, taken_out

pd: Any = import_module("pandas")
__all__ = ["TracedFrame", "TracedSeries", "join", "labelled", "of_traced", "open_to_traced", "values"]

#: Where a table says what stands in the place of its numbers, which is none of them.
_LEAF = "⟨leaf⟩"


# ---- tables whose products take traced values --------------------------------------------------------------


class _Table:
    """What a table has that traced values are in, or beside: products, and its values as an array."""

    def dot(self, other: Any) -> Any:
        """The matrix product, with pandas' labels."""
        left, right = _aligned(self, other)
        if not (_holds_traced(left) or _holds_traced(right)):
            return super().dot(other)  # type: ignore[misc]
        found = fnp.matmul(values(left), values(right))
        ends: list[Any] = [left.index] if left.ndim == 2 else []
        if len(fnp.shape(right)) == 2:
            ends.append(right.columns if isinstance(right, pd.DataFrame) else None)
        is_array = not isinstance(self, pd.DataFrame) and not is_labelled(other)
        return found if is_array else labelled(found, *ends)

    def __matmul__(self, other: Any) -> Any:
        return self.dot(other)

    def __rmatmul__(self, other: Any) -> Any:
        if not (_holds_traced(self) or _holds_traced(other)):
            return super().__rmatmul__(other)  # type: ignore[misc]
        found = fnp.matmul(other, values(self))
        if not isinstance(self, pd.DataFrame):
            return found
        return labelled(found, *[None] * (fnp.ndim(found) - 1), self.columns)


def _beside(name: str) -> Callable[..., Any]:
    """A method that computes with an array by an operator: a traced one gets the labels of the table's axis first."""

    def method(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(other, Tracer) and fnp.ndim(other):
            by_columns = isinstance(self, pd.DataFrame) and (args[:1] or [kwargs.get("axis", 1)])[0] in (1, "columns")
            ends = (self.columns if by_columns else self.index,) if fnp.ndim(other) == 1 else (self.index, self.columns)
            other = labelled(other, *ends)
        return getattr(super(_Table, self), name)(other, *args, **kwargs)

    return method


for _name in ["add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow"]:
    for _method in (_name, f"r{_name}"):
        setattr(_Table, _method, _beside(_method))
for _method in ["multiply", "subtract", "divide", "lt", "le", "gt", "ge", "eq", "ne"]:
    setattr(_Table, _method, _beside(_method))


class TracedSeries(_Table, pd.Series):  # type: ignore[misc]
    """A series that traced values are in, or beside."""

    def rolling(self, window: Any, min_periods: Any = None, **kwargs: Any) -> Any:
        """The windows of so many numbers."""
        if not _holds_traced(self):
            return super().rolling(window, min_periods, **kwargs)
        if not isinstance(window, int) or min_periods not in (None, window) or any(kwargs.values()):
            raise ConversionError(
                "series.rolling: of traced values there are windows of a whole number of rows, without other options, "
                f"got {window!r}{user_line()}. Take windows of series.to_numpy() with "
                "funcgrad.numpy.lib.stride_tricks.sliding_window_view."
            )
        return _Windows(self, window)

    _constructor = property(lambda self: TracedSeries)
    _constructor_expanddim = property(lambda self: TracedFrame)


class TracedFrame(_Table, pd.DataFrame):  # type: ignore[misc]
    """A frame that traced values are in, or beside."""

    _constructor = property(lambda self: TracedFrame)
    _constructor_sliced = property(lambda self: TracedSeries)
    values = property(lambda self: values(self))

    def to_numpy(self, *args: Any, **kwargs: Any) -> Any:
        """The values as one array, which is traced where columns are."""
        return values(self) if _holds_traced(self) else super().to_numpy(*args, **kwargs)


class _Windows:
    """The windows of a traced series, with the reductions that pandas has of them."""

    def __init__(self, series: Any, window: int) -> None:
        self.series, self.window = series, window

    def __getattr__(self, name: str) -> Any:
        reduce = _WINDOWED.get(name)
        if reduce is None:
            raise AttributeError(f"windows of traced values have no {name!r}")
        return lambda **kwargs: self._reduced(lambda x: reduce(x, **kwargs))

    def _reduced(self, reduce: Callable[[Any], Any]) -> Any:
        x, n = self.series.array.held.value, self.window
        empty = np.full(min(n - 1, len(x)), np.nan)
        found = reduce(fnp.lib.stride_tricks.sliding_window_view(x, n)) if len(x) >= n else empty[:0]
        return _series(fnp.concatenate([empty, found]), self.series.index, self.series.name)


_WINDOWED: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name: getattr(fnp, name)(x, axis=-1) for name in ("sum", "mean", "min", "max", "median")},
    "std": lambda x, ddof=1: fnp.std(x, axis=-1, ddof=ddof),
    "var": lambda x, ddof=1: fnp.var(x, axis=-1, ddof=ddof),
}


def open_to_traced(table: Any) -> Any:
    """A table of pandas as one whose products take traced values."""
    if isinstance(table, _Table) or type(table) not in (pd.Series, pd.DataFrame):
        return table
    return (TracedSeries if table.ndim == 1 else TracedFrame)(table)


def _holds_traced(x: Any) -> bool:
    if isinstance(x, pd.DataFrame):
        return any(isinstance(dtype, TracedDtype) for dtype in x.dtypes)
    return isinstance(getattr(x, "array", x), (TracedColumn, Held, Tracer))


def values(x: Any) -> Any:
    """The values of a table, or of an array, without labels."""
    if isinstance(x, pd.DataFrame):
        if not _holds_traced(x):
            return pd.DataFrame(x).to_numpy()
        return fnp.stack([values(x.iloc[:, i]) for i in range(x.shape[1])], axis=1)
    inside = getattr(x, "array", x) if is_labelled(x) else x
    return (
        inside.held.value if isinstance(inside, TracedColumn) else taken_out(inside) if x is inside else np.asarray(x)
    )


def labelled(found: Any, *ends: Any) -> Any:
    """A traced array as a series or a frame with these labels along its axes; a number as it is."""
    if not ends:
        return found
    made = of_traced(found)
    if len(ends) == 1:
        return TracedSeries(made, ends[0])
    for axis, labels in enumerate(ends):
        made = made if labels is None else made.set_axis(labels, axis=axis)
    return made


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Both factors of a product in the same order of labels.

    Raises:
        ValueError: they have others.
    """
    if not isinstance(right, (pd.Series, pd.DataFrame)):
        return left, right
    inner = left.columns if isinstance(left, pd.DataFrame) else left.index
    common = inner.union(right.index)
    if len(common) > len(inner) or len(common) > len(right.index):
        raise ValueError("matrices are not aligned")
    axis = {"columns" if isinstance(left, pd.DataFrame) else "index": common}
    return left.reindex(**axis), right.reindex(index=common)


# ---- containers -----------------------------------------------------------------------------------------------


def _numbers(series: Any) -> Any:
    """What is the leaf of a series."""
    if _LEAF in series.attrs:
        return series.attrs[_LEAF]
    return series.array.held.value if isinstance(series.array, TracedColumn) else series.to_numpy()


def _series(leaf: Any, index: Any, name: Any) -> Any:
    """The series with this leaf."""
    if isinstance(leaf, Tracer):
        return TracedSeries(TracedColumn(leaf), index, name=name)
    if hasattr(leaf, "ndim"):
        return pd.Series(np.asarray(leaf), index, name=name)
    made = pd.Series(np.zeros(len(index)), index, name=name)
    made.attrs[_LEAF] = leaf
    return made


def _of_series(series: Any) -> tuple[Any, Any]:
    return (_numbers(series),), Labels(pd.Series(np.zeros(len(series)), series.index, name=series.name))


def _to_series(labels: Labels, leaves: Any) -> Any:
    (leaf,) = leaves
    shell = labels.template
    return _series(leaf, shell.index, shell.name) if fits(leaf, shell.shape) else leaf


def _is_of_numbers(series: Any) -> bool:
    return isinstance(series.array, TracedColumn) or getattr(series.dtype, "kind", "O") in "fc"


def _of_frame(frame: Any) -> tuple[Any, Any]:
    places = [i for i in range(frame.shape[1]) if _is_of_numbers(frame.iloc[:, i])]
    shell = frame.copy()
    for i in places:
        shell.isetitem(i, np.zeros(len(frame)))
    shell.attrs = {}
    found = frame.attrs[_LEAF] if _LEAF in frame.attrs else [_numbers(frame.iloc[:, i]) for i in places]
    return found, (tuple(places), Labels(pd.DataFrame(shell)))


def _to_frame(static: Any, leaves: Any) -> Any:
    places, labels = static
    leaves, made = list(leaves), labels.template.copy()
    if not all(fits(leaf, (len(made),)) for leaf in leaves):
        return dict(zip([made.columns[i] for i in places], leaves, strict=True))
    if any(not hasattr(leaf, "ndim") for leaf in leaves):
        made.attrs[_LEAF] = leaves
        return made
    for i, leaf in zip(places, leaves, strict=True):
        made.isetitem(i, _series(leaf, made.index, None).array)
    return TracedFrame(made) if any(isinstance(leaf, Tracer) for leaf in leaves) else made


def join() -> None:
    """Let tables of pandas be containers."""
    for series, frame in ((pd.Series, pd.DataFrame), (TracedSeries, TracedFrame)):
        tree.register_pytree_node(series, _of_series, _to_series)
        tree.register_pytree_node(frame, _of_frame, _to_frame)


def of_traced(x: Any) -> Any:
    """A traced array as what pandas makes a column, or a table, of."""
    return TracedColumn(x) if x.ndim == 1 else TracedFrame({i: TracedColumn(x[:, i]) for i in range(x.shape[1])})
