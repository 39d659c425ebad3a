"""Groups of traced tables of pandas: what pandas computes in compiled code. Imported only after pandas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import ConversionError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.tables.columns import TracedColumn, traced_column_of
from funcgrad.numpy.tables.windows import PAIRING

pd: Any = import_module("pandas")
_groups: Any = import_module("pandas.core.groupby.generic")


class _Groups:
    """Mixin for groups of a traced table: windows and quantiles of each group."""

    def _gotitem(self, *args: Any, **kwargs: Any) -> Any:
        return with_traced_groups(super()._gotitem(*args, **kwargs))  # type: ignore[misc]

    def rolling(self, *args: Any, **kwargs: Any) -> Any:
        """Return the windows in each group."""
        return _GroupWindows(self, lambda table: table.rolling(*args, **kwargs))

    def expanding(self, *args: Any, **kwargs: Any) -> Any:
        """Return the windows from the first row of each group to each row."""
        return _GroupWindows(self, lambda table: table.expanding(*args, **kwargs))

    def ewm(self, *args: Any, **kwargs: Any) -> Any:
        """Return windows with decaying weights in each group."""
        return _GroupWindows(self, lambda table: table.ewm(*args, **kwargs))

    def quantile(self, q: Any = 0.5, interpolation: str = "linear", numeric_only: bool = False) -> Any:
        """Return a quantile of each group; for a list, one of each."""
        options = {"numeric_only": True} if numeric_only else {}  # which a series does not know
        return self.apply(  # type: ignore[attr-defined]
            lambda part: part.quantile(q, interpolation=interpolation, **options)
        )

    def filter(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the rows of the groups for which a condition holds: in a ``vmap`` one that all examples share."""

        def holds(*given: Any, **options: Any) -> Any:
            found = func(*given, **options)
            return bool(found) if isinstance(found, Tracer) else found

        return super().filter(holds, *args, **kwargs)  # type: ignore[misc]

    def ohlc(self) -> Any:
        """Return the first, the largest, the smallest and the last number of each group."""
        groups: Any = self
        if groups.obj.ndim == 1:
            return groups.agg(["first", "max", "min", "last"]).set_axis(["open", "high", "low", "close"], axis=1)
        return groups._apply_to_column_groupbys(lambda part: with_traced_groups(part).ohlc())

    def parts(self) -> list[tuple[Any, Any]]:
        """Return the groups with their keys, without the columns of the keys."""
        shown: Any = self
        without = list(getattr(shown, "exclusions", ())) if shown.obj.ndim == 2 and shown.ndim == 2 else []
        return [(key, part.drop(columns=without, errors="ignore")) for key, part in shown] if without else list(shown)


class _SeriesGroups(_Groups, _groups.SeriesGroupBy):  # type: ignore[misc]
    """Groups of a traced series."""


class _FrameGroups(_Groups, _groups.DataFrameGroupBy):  # type: ignore[misc]
    """Groups of a traced frame."""

    def apply(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply a function to each group; series with the same labels become the rows of a frame."""
        if not callable(func):
            return super().apply(func, *args, **kwargs)
        options = {name: x for name, x in kwargs.items() if name != "include_groups"}
        found = [func(part, *args, **options) for _, part in self.parts()]
        made = frame_of_rows(found, self._grouper.result_index)
        return super().apply(func, *args, **kwargs) if made is None else self.obj._constructor(made)


def frame_of_rows(found: list[Any], index: Any) -> Any:
    """Return the frame whose rows are series of traced numbers; None if they are not, or have different labels."""
    if not found or not all(isinstance(one, pd.Series) and one.index.equals(found[0].index) for one in found):
        return None
    columns = [traced_column_of(one) or one.array for one in found]
    if not all(isinstance(column, TracedColumn) for column in columns):
        return None
    rows = fnp.stack([column.held.as_array() for column in columns])
    made = pd.DataFrame({i: TracedColumn(rows[:, i]) for i in range(rows.shape[1])}, index=index)
    return made.set_axis(found[0].index, axis=1)


class _GroupWindows:
    """Windows in each group; results have the keys of the groups as their first labels.

    Args:
        groups: the groups.
        begin: the call, ``rolling`` for example, with its options, that makes windows of a table.
    """

    def __init__(self, groups: Any, begin: Callable[[Any], Any]) -> None:
        self.groups, self.begin = groups, begin

    def __getitem__(self, key: Any) -> Any:
        return _GroupWindows(self.groups[key], self.begin)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("groups", "begin"):
            raise AttributeError(name)
        return partial(self._compute, name)

    def _compute(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name in PAIRING and (*args, kwargs.get("other"))[0] is not None:
            raise ConversionError(
                f"groups.{name}: pandas pairs groups with the rows of another table in its own way{user_line()}. Take "
                f"groups.apply(lambda part: part.rolling(5).{name}(other.loc[part.index])), or put both into one table."
            )
        parts = self.groups.parts()
        found = [getattr(self.begin(part), name)(*args, **kwargs) for _, part in parts]
        return pd.concat(found, keys=[key for key, _ in parts], names=self.groups._grouper.names)


def with_traced_groups(groups: Any) -> Any:
    """Convert groups of pandas to those of a traced table."""
    if type(groups) is _groups.SeriesGroupBy:
        groups.__class__ = _SeriesGroups
    elif type(groups) is _groups.DataFrameGroupBy:
        groups.__class__ = _FrameGroups
    return groups
