"""Columns of pandas with traced numbers, the extension arrays in series and frames. Imported only after pandas."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from threading import get_ident
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConversionError, StagingError
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import concrete_or_none
from funcgrad.numpy.tables.containers import BINARY, UNARY, TableArray, unwrap_from_table, without_missing
from funcgrad.shared_state import pending_refusals

pd: Any = import_module("pandas")

#: Reductions of pandas by name: functions of an array of numbers and of pandas' options.
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lambda x, name=name, **kwargs: getattr(fnp, name)(x) for name in ("sum", "mean", "prod", "min", "max")},
    "median": lambda x, **kwargs: fnp.median(x),
    "std": lambda x, ddof=1, **kwargs: fnp.std(x, ddof=ddof),
    "var": lambda x, ddof=1, **kwargs: fnp.var(x, ddof=ddof),
    "sem": lambda x, ddof=1, **kwargs: fnp.std(x, ddof=ddof) / np.sqrt(len(x)),
    "skew": lambda x, **kwargs: _moment(x, 3) * np.sqrt(len(x) * (len(x) - 1)) / (len(x) - 2),
    "kurt": lambda x, **kwargs: _excess_kurtosis(_moment(x, 4), len(x)),
    "any": lambda x, **kwargs: fnp.any(x),
    "all": lambda x, **kwargs: fnp.all(x),
    "first": lambda x, **kwargs: x[0],
    "last": lambda x, **kwargs: x[-1],
}
#: How many numbers a reduction needs: with fewer its result is missing. Other reductions need one number.
_NEEDED = {"sum": 0, "prod": 0, "any": 0, "all": 0, "skew": 3, "kurt": 4}
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


def _ranks(x: Any, method: str, pct: bool) -> Any:
    """Return the ranks of numbers, none of them missing; pandas' ``method`` says which rank equal numbers get."""
    ordered = fnp.sort(x)
    below, upto = fnp.searchsorted(ordered, x, "left"), fnp.searchsorted(ordered, x, "right")
    if method == "dense":
        distinct = fnp.cumsum(fnp.concatenate([np.ones(1), ordered[1:] != ordered[:-1]]))
        return distinct[below] / (distinct[-1] if pct else 1.0)
    if method == "first":
        ranks = fnp.argsort(fnp.argsort(x, stable=True)) + 1.0
    else:
        ranks = {"min": below + 1.0, "max": upto + 0.0}.get(method, (below + upto + 1) / 2)
    return ranks / len(x) if pct else ranks


#: Names of options of ranks in groups, with the names that ``rank`` has for them.
_RANK_OPTIONS = {"ties_method": "method"}


class TracedDtype(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
    """Dtype of a column of traced numbers."""

    name, kind, type = "traced", "f", np.float64
    na_value = np.nan
    _is_numeric = True

    @classmethod
    def construct_array_type(cls) -> Any:
        """Return the class of such columns."""
        return TracedColumn

    def _get_common_dtype(self, dtypes: list[Any]) -> Any:
        """Return this dtype for columns of numbers together with traced ones; None for others."""
        return self if all(isinstance(dtype, TracedDtype) or dtype.kind in "fiu" for dtype in dtypes) else None


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
        if isinstance(scalars, TracedColumn):
            return cls(scalars.held)
        whole = isinstance(scalars, (np.ndarray, Tracer)) and scalars.dtype.kind != "O"
        return cls(fnp.stack(list(scalars)) if len(scalars) and not whole else fnp.asarray(scalars, float))

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
        made[pd.api.indexers.check_array_indexer(self, key)] = values_of_column(value)
        self.held = TableArray(made)

    def isna(self) -> Any:
        """Return where numbers are missing, that is, NaN."""
        return shared_truth(fnp.isnan(self.held._val))

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

    def view(self, dtype: Any = None) -> Any:
        """Return another column of the same numbers: pandas takes views of columns also after a transform has ended."""
        return self.copy() if dtype is None else super().view(dtype)

    def _reduce(self, name: str, *, skipna: bool = True, keepdims: bool = False, **kwargs: Any) -> Any:
        if name not in _REDUCTIONS:
            raise TypeError(f"a column of traced numbers has no reduction {name!r}")
        if is_abstract(self.held._val) and skipna:
            one = _reduce_unknown(name, self.held._val, **kwargs)
            return TracedColumn(one[None]) if keepdims else one
        missing = self.isna() if skipna else np.zeros(len(self), bool)
        there = self.held._val[~missing] if skipna and missing.any() else self.held._val
        needed = max(_NEEDED.get(name, 1), kwargs.get("min_count", 0))
        if name in ("std", "var", "sem"):
            needed = kwargs.get("ddof", 1) + 1
        found: Any = _REDUCTIONS[name](there, **kwargs) if len(there) >= needed else np.float64(np.nan)
        return TracedColumn(found[None]) if keepdims else found

    def _accumulate(self, name: str, *, skipna: bool = True, **kwargs: Any) -> Any:
        accumulate, neutral = _ACCUMULATIONS[name]
        missing = missing_of(self.held._val) if skipna else np.zeros(len(self), bool)
        if type(missing) is np.ndarray and not missing.any():
            return TracedColumn(accumulate(self.held._val))
        return TracedColumn(fnp.where(missing, np.nan, accumulate(fnp.where(missing, neutral, self.held._val))))

    def _groupby_op(
        self, *, how: str, has_dropped_na: bool, min_count: int, ngroups: int, ids: Any, **kwargs: Any
    ) -> Any:
        """Reduce the numbers of each group, or compute a running result or the ranks in each group."""
        groups = [np.flatnonzero(ids == i) for i in range(ngroups)]
        if how in ("idxmax", "idxmin"):
            return np.array([rows[getattr(np, f"nanarg{how[3:]}")(self[rows]._plain())] for rows in groups])
        if how in _REDUCTIONS:
            kwargs["min_count"] = max(min_count, 0)
            return TracedColumn(fnp.stack([self[rows]._reduce(how, **kwargs) for rows in groups]))
        if how not in _ACCUMULATIONS and how != "rank":
            raise NotImplementedError(  # then pandas computes the groups one by one, if it can
                f"groupby.{how}: groups of traced values have no such method. Take agg with a function of a series."
            )
        options = {_RANK_OPTIONS.get(name, name): value for name, value in kwargs.items()}
        compute = TracedColumn._rank if how == "rank" else lambda part, **kwargs: part._accumulate(how, **kwargs)
        rows = np.concatenate([np.flatnonzero(ids < 0), *groups])
        found = [np.full(sum(ids < 0), np.nan), *[values_of_column(compute(self[part], **options)) for part in groups]]
        return TracedColumn(fnp.concatenate(found)[np.argsort(rows)])

    def _rank(
        self,
        *,
        axis: int = 0,
        method: str = "average",
        na_option: str = "keep",
        ascending: bool = True,
        pct: bool = False,
    ) -> Any:
        """Return the ranks of the numbers, which are constants."""
        x = self.held._val if ascending else -self.held._val
        if is_abstract(x) and na_option == "keep":
            missing = missing_of(x)
            ranks = _ranks(fnp.where(missing, np.inf, x), method, False)
            count = fnp.max(fnp.where(missing, 0.0, ranks)) if method == "dense" else fnp.sum(~missing)
            return _column(fnp.where(missing, np.nan, ranks / count if pct else ranks))
        missing = self.isna()
        if missing.any() and na_option != "keep":
            ranks = _ranks(fnp.where(missing, -np.inf if na_option == "top" else np.inf, x), method, pct)
        elif missing.any():
            ranks = fnp.full(len(self), np.nan)
            ranks[~missing] = _ranks(x[~missing], method, pct)
        else:
            ranks = _ranks(x, method, pct)
        return _column(ranks)

    def interpolate(self, *, method: str, axis: int, index: Any, limit: Any, limit_area: Any, **kwargs: Any) -> Any:
        """Fill missing numbers between others by straight lines, and those after the last with the last.

        Raises:
            NotImplementedError: the method or another option is not supported.
        """
        others = (limit, limit_area, kwargs.get("limit_direction") not in (None, "forward"))
        if method not in ("linear", "time", "index", "values") or any(others):
            raise NotImplementedError(
                f"interpolate: traced values have straight lines without limits, got method={method!r}. Take "
                "scipy.interpolate with series.to_numpy()."
            )
        there = ~self.isna()
        at = np.arange(len(self)) if method == "linear" else np.asarray(index).astype(float)
        if not there.any():
            return self.copy()
        found = fnp.interp(at, at[there], self.held._val[there])
        return TracedColumn(fnp.where(np.cumsum(there) > 0, found, np.nan))

    def map(self, mapper: Any, na_action: Any = None) -> Any:
        """Apply a function to each number; with ``na_action="ignore"`` missing ones stay missing."""
        kept = self.isna() if na_action == "ignore" else np.zeros(len(self), bool)
        found = _as_objects([x if stays else mapper(x) for x, stays in zip(self.held._val, kept, strict=True)])
        made = traced_column_of(pd.Series(found))
        return found if made is None else made

    def _quantile(self, qs: Any, interpolation: str) -> Any:
        if is_abstract(self.held._val):
            return TracedColumn(fnp.nanquantile(self.held._val, np.asarray(qs), method=interpolation))
        there = self.held._val[~self.isna()]
        return TracedColumn(fnp.quantile(there, np.asarray(qs), method=interpolation))

    def _plain(self) -> Any:
        """Return the plain values, which choose rows; in a ``vmap`` numbers of the same order, if examples share it."""
        held = self.held._val
        values = concrete_or_none(held)
        if values is not None and values.shape != held.shape and not np.isnan(values).any():
            held = _ranks(held, "dense", False)
        return np.asarray(concrete(held, "series.argsort()"))

    _values_for_argsort = _plain

    def _values_for_factorize(self) -> tuple[Any, Any]:
        return self._plain(), np.nan

    def unique(self) -> Any:
        """Return the numbers without repetitions, in the order of their first occurrence."""
        return self[np.sort(np.unique(self._plain(), return_index=True)[1])]

    def _mode(self, dropna: bool = True) -> Any:
        """Return the most frequent numbers in increasing order, each read where it occurs first."""
        missing = self.isna()
        there, gaps = np.flatnonzero(~missing), np.flatnonzero(missing)
        _, first, counts = np.unique(self[there]._plain(), return_index=True, return_counts=True)
        rows = there[first]
        if not dropna and len(gaps):
            rows, counts = np.append(rows, gaps[0]), np.append(counts, len(gaps))
        return self[rows[counts == counts.max(initial=0)]]

    def duplicated(self, keep: Any = "first") -> Any:
        """Return where numbers are repetitions."""
        return pd.Series(self._plain()).duplicated(keep).to_numpy()

    _from_factorized = classmethod(lambda cls, values, original: values)

    def _formatter(self, boxed: bool = False) -> Any:
        return str

    def to_numpy(self, dtype: Any = None, copy: bool = False, na_value: Any = None) -> Any:
        """Return the traced array."""
        return self.held._val

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Convert the column to another precision, or to an object array of its numbers, each traced."""
        if isinstance(dtype, TracedDtype):
            return self.copy() if copy else self
        to = np.dtype(getattr(dtype, "numpy_dtype", dtype))  # that of pandas' "Float64", whose missing values are NaN
        if to.kind == "O":
            return _as_objects(list(self.held._val))
        return TracedColumn(self.held._val.astype(to)) if to.kind in "fc" else np.asarray(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return (
            self.astype(object)
            if dtype is not None and np.dtype(dtype).kind == "O"
            else np.asarray(self.held._val, dtype)
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(is_labelled, inputs)):
            return NotImplemented
        return _column(without_missing(getattr(ufunc, method), [values_of_column(x) for x in inputs], kwargs))


def _as_objects(rows: list[Any]) -> Any:
    """Return an array of the objects ``rows``; numpy.array would request the values of traced numbers."""
    found = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        found[place] = row
    return found


def is_abstract(x: Any) -> bool:
    """Whether the numbers of a traced value are not known yet, while JAX traces."""
    while isinstance(x, Tracer):
        x = x._val
    return backend.is_jax_tracer(x)


def shared_truth(x: Any) -> Any:
    """Return truth values as an ndarray; all examples of a ``vmap`` must share them.

    Raises:
        ConcretizationError: the truth values differ between examples.
        StagingError: they are not known yet.
    """
    if is_abstract(x):
        raise StagingError(
            f"series.isna(): pandas asks which numbers are missing, which is not known while jit compiles, got "
            f"{describe(x)}{user_line()}. Call it outside of jit, or compute with series.to_numpy()."
        )
    return concrete(x, "series.isna()") if isinstance(x, Tracer) else x


def missing_of(x: Any) -> Any:
    """Return where the numbers of an array are missing: an ndarray, or traced truth values if they are not known."""
    missing = fnp.isnan(x)
    return missing if is_abstract(x) else shared_truth(missing)


def _reduce_unknown(name: str, x: Any, min_count: int = 0, **kwargs: Any) -> Any:
    """Reduce numbers of which it is not known which are missing."""
    masked, there = import_module("funcgrad.numpy.tables.windows").REDUCTIONS.get(name), ~fnp.isnan(x)
    if name == "prod":
        found, needed = fnp.nanprod(x)[None], 0
    elif masked is None or name == "sem":
        shared_truth(there)
    else:
        options = {"ddof": kwargs["ddof"]} if "ddof" in kwargs else {}
        found, needed = masked(fnp.where(there, x, 0.0)[None], there[None], **options)
    return fnp.where(fnp.sum(there) >= max(needed, min_count), found[0], np.nan)


def is_labelled(x: Any) -> bool:
    """Whether ``x`` is a table of pandas."""
    return isinstance(x, (pd.Series, pd.DataFrame, pd.Index))


def values_of_column(x: Any) -> Any:
    """Return the traced array in a column or a proxy of a table's array; any other value unchanged."""
    return x.held._val if isinstance(x, TracedColumn) else unwrap_from_table(x)


def _column(found: Any) -> Any:
    return TracedColumn(found) if isinstance(found, Tracer) and fnp.ndim(found) else found


def _binary(name: str, reflected: bool) -> Callable[..., Any]:
    apply = getattr(operator, name + "_" if name in ("and", "or") else name)

    def run(self: Any, other: Any) -> Any:
        if is_labelled(other):
            return NotImplemented
        pair = (values_of_column(other), self.held._val) if reflected else (self.held._val, values_of_column(other))
        return _column(without_missing(apply, pair, {}))

    return run


def _unary(name: str) -> Callable[..., Any]:
    apply = getattr(operator, name)
    return lambda self: _column(apply(self.held._val))


for _name in BINARY.split():
    setattr(TracedColumn, f"__{_name}__", _binary(_name, reflected=False))
    setattr(TracedColumn, f"__r{_name}__", _binary(_name, reflected=True))
for _name in UNARY.split():
    setattr(TracedColumn, f"__{_name}__", _unary(_name))


# ---- columns of lists ----


def column_of_rows(rows: Any) -> Any:
    """Return a traced column for a list of numbers, some of them traced; else None."""
    traced = [isinstance(x, Tracer) and not x.shape for x in rows]
    are_numbers = all(t or isinstance(x, (float, int, np.number)) for t, x in zip(traced, rows, strict=True))
    return TracedColumn(fnp.stack(rows)) if any(traced) and are_numbers else None


def traced_column_of(series: Any) -> Any:
    """Return a traced column for an object column of numbers, some of them traced; else None."""
    return column_of_rows(series.tolist()) if series.dtype == object else None


def column_values(series: Any) -> Any:
    """Return the numbers of a series as an array, traced if they are."""
    return series.array.held._val if isinstance(series.array, TracedColumn) else series.to_numpy(float)


def plain_numbers(x: Any) -> Any:
    """Return a traced array or series with its plain values, by which a function chooses; return others unchanged."""
    if isinstance(x, pd.Series) and isinstance(x.array, TracedColumn):
        return pd.Series(np.asarray(concrete(column_values(x), "pandas.cut(x)")), x.index, name=x.name)
    return np.asarray(concrete(x, "pandas.cut(x)")) if isinstance(x, Tracer) else x


def attempt(compute: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return ``compute()``, or ``otherwise()`` if pandas would convert traced results to plain numbers."""
    before = pending_refusals.get(get_ident())
    try:
        return compute()
    except ConversionError:
        pending_refusals.pop(get_ident(), None)  # nothing is lost
        if before is not None:
            pending_refusals[get_ident()] = before
    return otherwise()
