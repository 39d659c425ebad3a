"""Windows of traced tables of pandas: ``rolling``, ``expanding`` and ``ewm``. Imported only after pandas."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.tables.columns import TracedColumn, attempt, column_values, missing_of, shared_truth
from funcgrad.optional import import_scipy

pd: Any = import_module("pandas")
_of_pairs = import_module("pandas.core.window.common").flex_binary_moment
#: Methods that pair the columns of a frame with those of another.
PAIRING = frozenset(("corr", "cov"))


class _TableWindows:
    """Windows of a table, with pandas' methods: those of a frame are computed column by column.

    Args:
        table: the series or frame.
        begin: the call, ``rolling`` for example, with its options, that makes windows of a table.
    """

    def __init__(self, table: Any, begin: Callable[[Any], Any]) -> None:
        self.table, self.begin = table, begin

    def __getitem__(self, key: Any) -> Any:
        return self.begin(self.table[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("table", "begin"):
            raise AttributeError(name)
        if self.table.ndim == 2 and name in self.table.columns:
            return self[name]
        compute = getattr(type(self), f"_{name}", None) or self._reduction(name)
        if compute is None:
            raise AttributeError(
                f"windows of traced values have no {name!r}. Take windows of series.to_numpy() with "
                "funcgrad.numpy.lib.stride_tricks.sliding_window_view."
            )
        by_columns = self.table.ndim == 2 and name not in PAIRING
        return partial(self._of_columns, name) if by_columns else partial(compute, self)

    def _cov(self, *args: Any, **kwargs: Any) -> Any:
        return self._paired("_covariances", *args, **kwargs)

    def _corr(self, *args: Any, **kwargs: Any) -> Any:
        return self._paired("_correlations", *args, **kwargs)

    def _paired(self, method: str, other: Any = None, pairwise: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Call ``method`` with pairs of columns, all pairs if ``pairwise``; a frame alone is paired with itself."""
        kwargs.pop("numeric_only", None)
        if other is None:
            other, pairwise = self.table, pairwise in (None, True)

        def of_pair(x: Any, y: Any) -> Any:
            windows = copy.copy(self)
            windows.table = x
            return getattr(windows, method)(y, *args, **kwargs).rename(None)

        return _of_pairs(self.table, other, of_pair, pairwise=bool(pairwise))

    def _reduction(self, name: str) -> Callable[..., Any] | None:
        """Return a method of this name, not defined in the class."""
        return None

    def _of_columns(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call the method ``name`` for each column; a frame as first argument has one column for each."""
        others = args[0] if args and getattr(args[0], "ndim", 0) == 2 else None
        found = []
        for i, label in enumerate(self.table.columns):
            given = args if others is None else (others[label], *args[1:])
            found.append(getattr(self.begin(self.table.iloc[:, i]), name)(*given, **kwargs))
        keys = {"keys": self.table.columns} if found and found[0].ndim == 2 else {}
        made = pd.concat(found, axis=1, **keys)
        return made if keys else made.set_axis(self.table.columns, axis=1)

    def _labelled(self, found: Any, step: int = 1) -> Any:
        """Return the results of all windows as a series."""
        data = TracedColumn(found) if isinstance(found, Tracer) else found
        return self.table._constructor(data, index=self.table.index[::step], name=self.table.name)

    def _agg(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute one reduction, or a frame with one column for each in a list."""
        if type(func) is list:
            names = [one if isinstance(one, str) else one.__name__ for one in func]
            return pd.concat([self._agg(one, *args, **kwargs) for one in func], axis=1).set_axis(names, axis=1)
        return getattr(self, func)(*args, **kwargs) if isinstance(func, str) else self.apply(func, *args, **kwargs)

    _aggregate = _agg


class Windows(_TableWindows):
    """Windows whose first and last rows pandas determines: ``rolling`` and ``expanding``."""

    def _reduction(self, name: str) -> Callable[..., Any] | None:
        reduce = REDUCTIONS.get(name)
        return None if reduce is None else lambda self, *args, **kw: self._reduce(reduce, [self.table], args, kw)

    def _bounds(self) -> tuple[Any, Any, int, int]:
        """Return the first rows of all windows, the rows after their last, how many numbers count, and the step."""
        plain = pd.Series(0.0, self.table.index)
        windows = self.begin(plain)
        indexer = windows._get_window_indexer()
        needed = indexer.window_size if windows.min_periods is None else windows.min_periods
        step = getattr(windows, "step", None) or 1
        start, end = indexer.get_window_bounds(
            len(plain), needed, getattr(windows, "center", None), getattr(windows, "closed", None), step
        )
        return start, end, max(needed, 1), step

    def _reduce(self, reduce: Callable[..., Any], parts: list[Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Apply ``reduce`` to the windows of one or two series, as rows of a matrix, with those numbers that count."""
        kwargs.pop("engine", None), kwargs.pop("engine_kwargs", None), kwargs.pop("numeric_only", None)
        numbers = [column_values(part) for part in parts]
        start, end, least, step = self._bounds()
        rows = start[:, None] + np.arange(max(int(np.max(end - start, initial=0)), 1))
        there = rows < end[:, None]
        rows = np.where(there, rows, 0)
        for x in numbers if len(self.table) else ():
            there = there & ~missing_of(x)[rows]
        enough = there.sum(1) >= least
        there = there & enough[:, None]
        # Numbers that do not count are replaced before anything is computed, so that they have no influence.
        found, needed = reduce(*[fnp.where(there, x[rows], 0.0) for x in numbers], there, *args, **kwargs)
        return self._labelled(fnp.where(enough & (there.sum(1) >= needed), found, np.nan), step)

    def _count(self, *args: Any, **kwargs: Any) -> Any:
        plain = pd.Series(np.where(self.table.isna(), np.nan, 0.0), self.table.index, name=self.table.name)
        return self.begin(plain).count(*args, **kwargs)

    def _apply(self, func: Any, raw: bool = False, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        missing = self.table.isna().to_numpy()
        start, end, least, step = self._bounds()
        found = []
        for i, j in zip(start, end, strict=True):
            part = self.table.iloc[i:j]
            given = column_values(part) if raw else part
            one = func(given, *(args or ()), **(kwargs or {})) if np.sum(~missing[i:j]) >= least else np.nan
            found.append(np.nan if missing[i:j].any() and shared_truth(fnp.isnan(one)) else one)
        return self._labelled(fnp.asarray(found), step)

    def _covariances(self, other: Any, ddof: int = 1) -> Any:
        return self._reduce(_covariance, [self.table, other], (ddof,), {})

    def _correlations(self, other: Any, ddof: int = 1) -> Any:  # ``ddof`` cancels
        return self._reduce(_correlation, [self.table, other], (), {})


def with_traced_results(windows: Any, traced: Windows) -> Any:
    """Return pandas' windows of constants such that ``apply`` takes functions whose results are traced."""
    plain = windows.apply

    def apply(*args: Any, **kwargs: Any) -> Any:
        return attempt(lambda: plain(*args, **kwargs), lambda: traced.apply(*args, **kwargs))

    windows.apply = apply
    return windows


# ---- reductions of the rows of a matrix: each returns its results and how many numbers a row must have -------------


def _total(x: Any, there: Any) -> Any:
    return fnp.sum(fnp.where(there, x, 0.0), axis=1)


def _count(there: Any, less: int = 0) -> Any:
    """Return how many numbers the rows have, at least 1, as a divisor."""
    return np.maximum(there.sum(1) - less, 1)


def _centred(x: Any, there: Any) -> Any:
    return fnp.where(there, x - (_total(x, there) / _count(there))[:, None], 0.0)


def _covariance(x: Any, y: Any, there: Any, ddof: int = 1) -> Any:
    moment = fnp.sum(_centred(x, there) * _centred(y, there), axis=1)
    return moment / _count(there, ddof), ddof + 1


def _correlation(x: Any, y: Any, there: Any) -> Any:
    moment: Callable[[Any, Any], Any] = lambda a, b: _covariance(a, b, there, 0)[0]
    return moment(x, y) / fnp.sqrt(_filled(moment(x, x), there, 2) * _filled(moment(y, y), there, 2)), 2


def _filled(x: Any, there: Any, needed: int) -> Any:
    """Return ``x`` with 1 in rows that have too few numbers, where a root has no derivative."""
    return fnp.where(there.sum(1) >= needed, x, 1.0)


def _deviation(x: Any, there: Any, ddof: int = 1) -> Any:
    return fnp.sqrt(_filled(_covariance(x, x, there, ddof)[0], there, ddof + 1)), ddof + 1


def _standardized_moment(x: Any, there: Any, order: int) -> Any:
    centred, n = _centred(x, there), _count(there)
    spread = _filled(fnp.sum(centred**2, axis=1) / n, there, 2)
    return fnp.sum(centred**order, axis=1) / n / spread ** (order / 2)


def _skewness(x: Any, there: Any) -> Any:
    n = np.maximum(there.sum(1), 3)
    return _standardized_moment(x, there, 3) * np.sqrt(n * (n - 1)) / (n - 2), 3


def _kurtosis(x: Any, there: Any) -> Any:
    n = np.maximum(there.sum(1), 4)
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * _standardized_moment(x, there, 4) - 3 * (n - 1)), 4


def _quantile(x: Any, there: Any, q: Any = 0.5, interpolation: str = "linear") -> Any:
    ordered = fnp.sort(fnp.where(there, x, np.inf), axis=1)
    at = np.asarray(q) * (_count(there) - 1)
    low, high = np.floor(at).astype(int), np.ceil(at).astype(int)
    share = {
        "linear": at - low,
        "lower": 0.0,
        "higher": 1.0,
        "midpoint": 0.5 * (low < high),
        "nearest": np.round(at) - low,
    }
    rows = np.arange(len(low))
    below, above = [fnp.where(there.any(1), ordered[rows, place], 0.0) for place in (low, high)]
    return below + share[interpolation] * (above - below), 1


@cache
def _counts_all() -> bool:
    """Whether pandas' standard error divides by the root of the number of values, as since version 3."""
    return bool(pd.Series([0.0, 1.0]).rolling(2).sem().iloc[1] == 0.5)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, there: (_total(x, there), 0),
    "mean": lambda x, there: (_total(x, there) / _count(there), 1),
    "min": lambda x, there: (fnp.min(fnp.where(there, x, np.inf), axis=1), 1),
    "max": lambda x, there: (fnp.max(fnp.where(there, x, -np.inf), axis=1), 1),
    "var": lambda x, there, ddof=1: _covariance(x, x, there, ddof),
    "std": _deviation,
    "sem": lambda x, there, ddof=1: (
        _deviation(x, there, ddof)[0] / np.sqrt(_count(there, 0 if _counts_all() else ddof)),
        ddof + 1,
    ),
    "skew": _skewness,
    "kurt": _kurtosis,
    "median": _quantile,
    "quantile": lambda x, there, q, interpolation="linear": _quantile(x, there, q, interpolation),
}


class WeightedWindows(_TableWindows):
    """Windows with weights, pandas' ``rolling(win_type=...)``; options of the weights come with each reduction."""

    def _rows(self, options: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
        """Return the weights, the rows in each window, which of them count, and which windows have enough of them."""
        options.pop("numeric_only", None)
        missing, windows = self.table.isna().to_numpy(), self._plain_windows()
        weights = getattr(import_scipy("rolling", "scipy.signal.windows"), windows.win_type)(windows.window, **options)
        ahead = (len(weights) - 1) // 2 if windows.center else 0
        rows = np.arange(len(missing))[:: windows.step, None] + np.arange(1 - len(weights), 1) + ahead
        there = (rows >= 0) & (rows < len(missing))
        rows = np.where(there, rows, 0)
        there &= ~missing[rows] if len(missing) else there
        needed = len(weights) if windows.min_periods is None else windows.min_periods
        return weights, rows, there, there.sum(1) >= max(needed, 1)

    def _plain_windows(self) -> Any:
        """Return pandas' windows of a series of zeros, which have checked the options."""
        return self.begin(pd.Series(0.0, self.table.index))

    def _finished(self, found: Any, enough: Any) -> Any:
        return self._labelled(fnp.where(enough, found, np.nan), self._plain_windows().step or 1)

    def _sum(self, **options: Any) -> Any:
        weights, rows, there, enough = self._rows(options)
        x = fnp.where(there, column_values(self.table)[rows], 0.0)
        return self._finished(fnp.sum(x * weights, axis=1), enough)

    def _mean(self, **options: Any) -> Any:
        weights, rows, there, enough = self._rows(options)
        x, total = fnp.where(there, column_values(self.table)[rows], 0.0), fnp.sum(fnp.where(there, weights, 0.0), 1)
        return self._finished(fnp.sum(x * weights, axis=1) / fnp.where(enough, total, 1.0), enough)

    def _variances(self, ddof: int, options: dict[str, Any]) -> tuple[Any, Any]:
        """Return the variances, and where there are some: in pandas a row has the same weight in all windows."""
        weights, rows, there, enough = self._rows(options)
        enough &= there.sum(1) > ddof
        weights = fnp.where(there, weights[rows % len(weights)], 0.0)
        x = fnp.where(there, column_values(self.table)[rows], 0.0)
        total = fnp.where(enough, fnp.sum(weights, 1), 1.0)
        centred = x - (fnp.sum(weights * x, 1) / total)[:, None]
        share = rows.shape[1] / max(rows.shape[1] - ddof, 1)
        return fnp.where(enough, fnp.sum(weights * centred**2, 1) / total * share, 1.0), enough

    def _var(self, ddof: int = 1, **options: Any) -> Any:
        return self._finished(*self._variances(ddof, options))

    def _std(self, ddof: int = 1, **options: Any) -> Any:
        found, enough = self._variances(ddof, options)
        return self._finished(fnp.sqrt(found), enough)


# ---- exponentially decaying weights ---------------------------------------------------------------------------------


class DecayingWindows(_TableWindows):
    """Sums whose weights decay with the distance, pandas' ``ewm``; the decay may be traced.

    Args:
        table: the series or frame.
        begin: the call ``ewm`` with its options.
        decay: the factor from one row to the next.
        options: the options of ``ewm`` that are not the decay.
    """

    def __init__(self, table: Any, begin: Callable[[Any], Any], decay: Any, options: dict[str, Any]) -> None:
        super().__init__(table, begin)
        self.decay, self.options = decay, options

    def _sums(self, parts: list[Any], fills: bool = False) -> tuple[Callable[..., Any], Any, Any, Any]:
        """Return a function that computes decaying sums, their total weight, what counts, and where results are."""
        there = ~np.logical_or.reduce([part.isna().to_numpy() for part in parts])
        times, ignore = self.options.get("times"), self.options.get("ignore_na", False)
        if times is not None:
            halflife = pd.Timedelta(self.options["halflife"])
            at = np.asarray((pd.DatetimeIndex(times) - pd.DatetimeIndex(times)[0]) / halflife)
        else:
            at = (np.cumsum(there) if ignore else np.arange(len(there))).astype(float)
        shares = np.ones(len(there)) if self.options.get("adjust", True) else _shares(self.decay, at, there, fills)
        enough = np.cumsum(there) >= max(int(self.options.get("min_periods") or 0), 1)

        def decayed(x: Any, power: int = 1) -> Any:
            return _decaying_sums(fnp.where(there, shares**power * x, 0.0), self.decay**power, at)

        return decayed, fnp.where(np.cumsum(there) > 0, decayed(np.ones(len(there))), 1.0), there, enough

    def _mean(self, *args: Any, **kwargs: Any) -> Any:
        decayed, total, there, enough = self._sums([self.table], _fills_gaps(self.decay))
        x = fnp.where(there, column_values(self.table), 0.0)
        return self._labelled(fnp.where(enough, decayed(x) / total, np.nan))

    def _sum(self, *args: Any, **kwargs: Any) -> Any:
        if not self.options.get("adjust", True):
            raise NotImplementedError("sum is not implemented with adjust=False")
        decayed, _, there, enough = self._sums([self.table])
        return self._labelled(fnp.where(enough, decayed(fnp.where(there, column_values(self.table), 0.0)), np.nan))

    def _moment(self, x: Any, y: Any, bias: bool) -> Any:
        """Return the weighted covariances of two series, and in which rows there are some."""
        decayed, total, there, enough = self._sums([x, y])
        squares: Any = decayed(np.ones(len(there)), 2)
        first, second = [fnp.where(there, column_values(part), 0.0) for part in (x, y)]
        first, second = [fnp.where(there, v - fnp.sum(v) / max(there.sum(), 1), 0.0) for v in (first, second)]
        found = decayed(first * second) / total - decayed(first) / total * (decayed(second) / total)
        enough = enough & (np.cumsum(there) > (0 if bias else 1))
        if bias:
            return found, enough
        return found * total**2 / (total**2 - fnp.where(enough, squares, 0.0)), enough

    def _var(self, bias: bool = False, numeric_only: bool = False) -> Any:
        found, enough = self._moment(self.table, self.table, bias)
        return self._labelled(fnp.where(enough, found, np.nan))

    def _std(self, bias: bool = False, numeric_only: bool = False) -> Any:
        found, enough = self._moment(self.table, self.table, bias)
        first = bias & (np.cumsum(enough) == 1)  # the deviation of one number is 0, where the root has no derivative
        root = fnp.sqrt(fnp.where(enough & ~first, found, 1.0))
        return self._labelled(fnp.where(enough, fnp.where(first, 0.0, root), np.nan))

    def _covariances(self, other: Any, bias: bool = False) -> Any:
        found, enough = self._moment(self.table, other, bias)
        return self._labelled(fnp.where(enough, found, np.nan))

    def _correlations(self, y: Any) -> Any:
        both = ~(self.table.isna() | y.isna()).to_numpy()
        x, y = self.table.where(both), y.where(both)
        (xx, enough), (yy, _), (xy, _) = [self._moment(a, b, True) for a, b in ((x, x), (y, y), (x, y))]
        enough &= np.cumsum(both) > 1
        return self._labelled(fnp.where(enough, xy / fnp.sqrt(fnp.where(enough, xx * yy, 1.0)), np.nan))


#: How many rows one matrix of weights covers.
_BLOCK = 128


def _decaying_sums(x: Any, decay: Any, at: Any) -> Any:
    """Return the sums of ``decay ** (at[j] - at[i]) * x[i]`` over all ``i`` up to ``j``, for each ``j``."""
    found, carried, last = [np.zeros(0)], 0.0, 0.0
    for begin in range(0, len(at), _BLOCK):
        here = at[begin : begin + _BLOCK]
        gaps = here[:, None] - here
        weights = fnp.where(np.tri(len(here), dtype=bool), decay ** np.maximum(gaps, 0.0), 0.0)
        part = weights @ x[begin : begin + _BLOCK] + decay ** (here - last) * carried
        found.append(part)
        carried, last = part[-1], here[-1]
    return fnp.concatenate(found)


def _shares(decay: Any, at: Any, there: Any, fills: bool) -> Any:
    """Return the weights with which numbers enter for ``adjust=False``: 1 for the first, a share for each other.

    ``fills`` says whether a number after missing ones also gets their weight.
    """
    rows = np.flatnonzero(there)
    gaps = np.diff(at[rows])
    if np.all(gaps == 1.0) or fills:
        shares = 1.0 - decay**gaps
    else:
        shares = (1.0 - decay) * fnp.concatenate([np.ones(1), fnp.cumprod(decay**gaps + 1.0 - decay)[:-1]])
    found: Any = fnp.zeros(len(there))
    found[rows[:1]] = 1.0
    found[rows[1:]] = shares
    return found


def _fills_gaps(decay: Any) -> bool:
    """Whether ``fills`` of ``_shares`` holds for means: in pandas since version 3, where the decay is one half."""
    return bool(decay == 0.5) and _fills_gaps_of_half()


@cache
def _fills_gaps_of_half() -> bool:
    return bool(pd.Series([0.0, np.nan, 1.0]).ewm(alpha=0.5, adjust=False).mean().iloc[2] == 0.75)


def decay_of(com: Any, span: Any, halflife: Any, alpha: Any, times: Any) -> Any:
    """Return the factor by which weights decay from one row to the next.

    Raises:
        ValueError: not exactly one of the options is given, or it is out of its range.
    """
    given = {
        name: x for name, x in (("com", com), ("span", span), ("halflife", halflife), ("alpha", alpha)) if x is not None
    }
    if len(given) != 1:
        raise ValueError(f"ewm: give one of com, span, halflife and alpha, got {', '.join(given) or 'none'}.")
    if times is not None:
        if halflife is None or isinstance(halflife, (int, float, Tracer)):
            raise ValueError(f"ewm(times=...): halflife must be a constant length of time, got {halflife!r}.")
        return 0.5
    (name, x), low = next(iter(given.items())), {"com": 0.0, "span": 1.0}.get(next(iter(given)), 0.0)
    if (x < low) or (name in ("halflife", "alpha") and x <= 0) or (name == "alpha" and x > 1):
        raise ValueError(f"ewm: {name} is out of its range, got {x}.")
    if name == "com":
        return x / (1 + x)
    return {"span": (x - 1) / (x + 1), "halflife": 0.5 ** (1 / x)}.get(name, 1 - x)
