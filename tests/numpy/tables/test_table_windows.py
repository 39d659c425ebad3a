"""Windows, groups and ranks of pandas' tables with traced values."""

import numpy as np
import pandas as pd
import pytest
from helpers import at_least, differences

from funcgrad import grad, hessian, value_and_grad, vmap
from funcgrad.errors import ConcretizationError, ConversionError

X = np.array([1.3, 0.7, 2.1, 1.6, 0.9, 2.4])
DAYS = pd.date_range("2020-01-01", periods=6)
KEY = np.array(list("uvuvuw"))
S = pd.Series([1.0, 2.5, 3.0, 4.0, 5.5, 6.0], index=DAYS)
OTHER = pd.Series([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], index=DAYS)
FRAME = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": [4.0, 5, 7, 6, 1, 3]}, index=DAYS)
TABLES = {
    "series": lambda x: S * x,
    "of an array": lambda x: pd.Series(x, index=DAYS),
    "missing": lambda x: S.mask(S == 3.0) * x,
    "frame": lambda x: FRAME.mul(x, axis=0),
}


def column(t):
    return t if t.ndim == 1 else t["a"]


REDUCTIONS = ("mean", "sum", "std", "var", "min", "max", "median", "count", "skew", "kurt", "sem")
WINDOWS = {
    **{f"rolling, {name}": lambda t, name=name: getattr(t.rolling(4), name)() for name in REDUCTIONS},
    **{
        f"centred, {name}": lambda t, name=name: getattr(t.rolling(3, 1, center=True), name)()
        for name in REDUCTIONS[:6]
    },
    **{f"days, {name}": lambda t, name=name: getattr(t.rolling("3D", closed="both"), name)() for name in REDUCTIONS},
    **{f"expanding, {name}": lambda t, name=name: getattr(t.expanding(2), name)() for name in REDUCTIONS},
    "step": lambda t: t.rolling(3, step=2).mean(),
    "apply": lambda t: t.rolling(3).apply(lambda v: (v**2).sum() + v.iloc[0]),
    "apply to arrays": lambda t: t.expanding(2).apply(lambda v, k: np.prod(1.0 + v) - k, raw=True, args=(1.0,)),
    "quantile": lambda t: t.rolling(4).quantile(0.3, interpolation="midpoint"),
    "quantile of lines": lambda t: t.rolling(4, min_periods=2).quantile(0.3),
    "several": lambda t: t.rolling(3).agg(["mean", "std"]),
    "one of several": lambda t: t.rolling(3).agg("mean"),
    "correlation": lambda t: column(t).rolling(4, min_periods=3).corr(OTHER),
    "covariance": lambda t: column(t).expanding(3).cov(OTHER),
    **{
        f"{name}, {kind}": lambda t, name=name, begin=begin: getattr(begin(t), name)()
        for name in ("cov", "corr")
        for kind, begin in (
            ("rolling", lambda t: t.rolling(4, 3)),
            ("expanding", lambda t: t.expanding(3)),
            ("ewm", lambda t: t.ewm(span=3, min_periods=3)),
        )
    },
    "covariance, of each column with its own": lambda t: t.rolling(3).cov(t.shift(), False, 0),
    "covariance, of all columns with others": lambda t: t.rolling(3).cov(column(t) * FRAME["a"], ddof=0),
    "correlation, with later rows": lambda t: t.expanding(3).corr(t.shift(1, freq="D") ** 2, pairwise=True),
    **{
        f"triangles, {name}": lambda t, name=name: getattr(t.rolling(3, 2, win_type="triang"), name)()
        for name in ("mean", "sum", "var", "std")
    },
    "a curve": lambda t: t.rolling(4, win_type="gaussian", center=True).mean(std=1.5),
    "a curve, each second": lambda t: t.rolling(3, win_type="exponential", step=2).sum(center=0, tau=2.0, sym=False),
    "a curve, in order": lambda t: t.rolling(5, 1, True, "hamming").var(ddof=0),
    "ewm, mean": lambda t: t.ewm(alpha=0.3).mean(),
    "ewm, span": lambda t: t.ewm(span=4, adjust=False).mean(),
    "ewm, one half": lambda t: t.ewm(span=3, adjust=False).mean(),
    "ewm, missing ignored": lambda t: t.ewm(com=2, min_periods=2, ignore_na=True, adjust=False).mean(),
    "ewm, times": lambda t: t.ewm(halflife="2D", times=DAYS).mean(),
    "ewm, sum": lambda t: t.ewm(halflife=2).sum(),
    "ewm, var": lambda t: t.ewm(span=3, adjust=False).var(),
    "ewm, std": lambda t: t.ewm(span=3).std(),
    "ewm, biased": lambda t: t.ewm(span=3).std(bias=True),
    "ewm, corr": lambda t: column(t).ewm(span=3).corr(OTHER),
    "ewm, cov": lambda t: column(t).ewm(span=3).cov(OTHER),
    "groups, cov": lambda t: t.groupby(KEY).expanding(2).cov(),
    "groups, corr": lambda t: t.groupby(KEY).ewm(span=3).corr().iloc[2:],
    "groups, rolling": lambda t: t.groupby(KEY).rolling(2).mean(),
    "groups, expanding": lambda t: t.groupby(KEY).expanding().sum(),
    "groups, ewm": lambda t: t.groupby(KEY).ewm(span=3).mean(),
}
METHODS = {
    "describe": lambda t: t.describe(percentiles=[0.2, 0.5]),
    "pct_change": lambda t: t.pct_change(fill_method=None),
    "diff": lambda t: t.diff(2),
    "interpolate": lambda t: t.where(t > 1.0).interpolate(),
    "interpolate by time": lambda t: t.where(t > 1.0).interpolate(method="time"),
    "deviation of groups": lambda t: t.groupby(KEY).std(),  # one group has one number
    "quantile of groups": lambda t: t.groupby(KEY).quantile(0.4),
    "quantile of groups, without texts": lambda t: (
        (t.to_frame() if t.ndim == 1 else t).assign(text=KEY).groupby(KEY).quantile(0.4, numeric_only=True)
    ),
    "function of numbers": lambda t: column(t).map(lambda v: 3.0 if np.isnan(v) else v**2, na_action="ignore"),
    "products of groups": lambda t: t.groupby(KEY).cumprod(),
    "sums of groups": lambda t: t.groupby(KEY).cumsum(),
    "ranks of groups": lambda t: t.groupby(KEY).rank() * t,
    "ranks of groups by another rule": lambda t: t.groupby(KEY).rank(method="dense", ascending=False) * t,
    "function of groups": lambda t: t.groupby(KEY).apply(lambda part: (part**2).sum()),
    "deviations from groups": lambda t: t.groupby(KEY).transform(lambda v: v - v.mean()),
    "rank": lambda t: t.rank() * t,
    **{
        f"rank, {method}": lambda t, method=method: t.rank(method=method, pct=True, ascending=False) * t
        for method in ("min", "max", "first", "dense")
    },
    "rank of missing": lambda t: t.rank(na_option="top") * t.sum(),
    "agg": lambda t: t.agg(["mean", "std"]) * 2.0,
    "open, high, low, close": lambda t: t.resample("2D").ohlc(),
    "open, high, low, close of groups": lambda t: t.groupby(KEY).ohlc(),
    "asof": lambda t: t.asof("2020-01-03 12:00") * 2.0,
    "asof of several": lambda t: t.asof([DAYS[0], DAYS[4]]),
    "mode": lambda t: pd.concat([t, t.iloc[:2], t.iloc[:2]]).mode(),
    "mode of missing": lambda t: t.where(t > 1.0).mode(dropna=False) + t.sum(),
    "np.cumsum": lambda t: np.cumsum(t, axis=0),
    "np.mean": lambda t: np.mean(t, axis=0) + float(column(t).iloc[0]),
    "np.std": lambda t: np.std(t, axis=0) + float(column(t).iloc[0]),
    "np.round": lambda t: np.round(t, 3) * 0.0 + t + float(column(t).iloc[0]),
    "np.corrcoef": lambda t: np.corrcoef(column(t).dropna(), column(t).dropna() ** 2)[0, 1],
}
if not at_least(pd, "3.0.0"):  # older versions fill NumPy arrays with the results
    for old in ("agg", "np.round", "rank of missing"):
        del METHODS[old]
#: Methods whose rows depend on the order of the numbers, which the examples of a ``vmap`` must share.
ORDERED = {
    "nlargest": lambda t: t.nlargest(2) if t.ndim == 1 else t.nlargest(2, "a"),
    "nsmallest": lambda t: t.nsmallest(2, keep="last") if t.ndim == 1 else t.nsmallest(2, ["a", "b"]),
    "unique": lambda t: pd.Series(column(t).unique()),
    "idxmax of groups": lambda t: t.loc[column(t).groupby(KEY).idxmax()],
    "cut": lambda t: t.groupby(pd.cut(column(t), [0.0, 2.0, 4.0, 20.0]), observed=True).sum(),
    "qcut": lambda t: t.groupby(pd.qcut(column(t), 2), observed=True).mean(),
}


def weighted(found):
    """Return one number that depends on each number of a result, missing ones left out."""
    if np.ndim(found) == 0:
        return found * 1.0
    missing = 7.0 * found.isna().to_numpy().sum()
    weights = np.arange(1.0, found.size + 1).reshape(found.shape)
    return (found.fillna(0.0).to_numpy() * weights).sum() + missing


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", [*WINDOWS, *METHODS, *ORDERED])
def test_windows_groups_and_ranks(name, table):
    compute = {**WINDOWS, **METHODS, **ORDERED}[name]

    def f(x):
        return weighted(compute(TABLES[table](x)))

    value, gradient = value_and_grad(f)(X)
    assert float(value) == pytest.approx(float(f(X)), rel=1e-11)
    np.testing.assert_allclose(gradient, differences(f, X, 1e-5), rtol=1e-6, atol=1e-7)
    directional = differences(lambda h: grad(f)(X + h * X), 0.0, 1e-5)
    np.testing.assert_allclose(hessian(f)(X) @ X, directional, rtol=1e-5, atol=1e-6)
    if name not in ORDERED:
        np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 1.01 * X]))[0], gradient, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [*WINDOWS, *METHODS])
def test_labels_match_pandas(name):
    compute, plain = {**WINDOWS, **METHODS}[name], None

    def f(x):
        found = compute(TABLES["frame"](x))
        if isinstance(found, (pd.Series, pd.DataFrame)):
            assert found.index.equals(plain.index)
            assert list(found.index.names) == list(plain.index.names)
            assert found.ndim == 1 or found.columns.equals(plain.columns)
            assert found.ndim == 2 or found.name == plain.name
        return weighted(found)

    plain = compute(TABLES["frame"](X))
    if not isinstance(plain, np.ndarray):
        grad(f)(X)


def test_groups_are_not_paired_with_another_table():
    """Pandas computes windows of one group from rows of others."""

    def f(x):
        return (S * x).groupby(KEY).rolling(2).cov(OTHER * x).sum()

    with pytest.raises(ConversionError, match=r"groups.cov: .* Take groups.apply"):
        grad(f)(X)


LONG = pd.Series(np.random.default_rng(0).normal(size=300).cumsum() + 20.0)
GAPS = LONG.mask(LONG.index % 7 == 3)
DECAYS = {
    "alpha": lambda p: LONG.ewm(alpha=p).mean(),
    "alpha of gaps": lambda p: GAPS.ewm(alpha=p, adjust=False).mean(),
    "span": lambda p: GAPS.ewm(span=1 + 3 * p).std(),
    "halflife": lambda p: LONG.ewm(halflife=p).var(),
    "com": lambda p: GAPS.ewm(com=p, ignore_na=True, adjust=False).mean(),
    "sum": lambda p: LONG.ewm(alpha=p).sum(),
    "frame": lambda p: pd.DataFrame({"a": LONG, "b": GAPS}).ewm(alpha=p).mean().sum(axis=1),
    "moving": lambda p: (LONG * p).ewm(alpha=p).mean() - (LONG * p).rolling(20).mean(),
}


@pytest.mark.parametrize("name", DECAYS)
def test_ewm_with_traced_decay(name):
    f = lambda p: (DECAYS[name](p).diff() ** 2).mean()
    assert float(value_and_grad(f)(0.4)[0]) == pytest.approx(float(f(0.4)), rel=1e-10)
    assert grad(f)(0.4) == pytest.approx(differences(f, 0.4), rel=1e-7)
    assert grad(grad(f))(0.4) == pytest.approx(differences(grad(f), 0.4), rel=1e-6)
    np.testing.assert_allclose(vmap(grad(f))(np.array([0.4, 0.6])), [grad(f)(0.4), grad(f)(0.6)], rtol=1e-10)


def test_nonnumeric_columns():
    data = FRAME.assign(k=list("xyxyxy"), n=np.arange(6))

    def f(x):
        d = data.assign(z=data["a"] * x)
        total = d.rolling(2)[["z", "n"]].mean().sum(axis=1).sum() + d.rolling(2).z.max().sum()
        by_key = d.groupby("k").agg(m=("z", "mean"), s=("z", "std"), most=("n", "max")).prod(axis=1).sum()
        by_row = d[["z", "n"]].T.sum().std() + d.groupby("k")[["z", "n"]].rolling(2).mean().sum().prod()
        total += S.rolling(2).apply(lambda v: (v * x[0]).sum()).sum() * S.rolling(2).apply(lambda v: v.sum()).sum()
        total += FRAME.expanding().apply(lambda v: v.iloc[-1] ** x[1]).sum().sum()
        total += (FRAME.mul(x, axis=0) * pd.Series(x[:2], ["a", "b"])).sum(axis=1).rolling(3).std().max()
        return total + by_key + by_row + pd.concat([d["a"], d["z"]]).std() + d.eval("z * a + sqrt(b)").sum()

    assert float(value_and_grad(f)(X)[0]) == pytest.approx(float(f(X)), rel=1e-12)
    np.testing.assert_allclose(grad(f)(X), differences(f, X), rtol=1e-7)


def test_rows_of_mixed_columns():
    data = FRAME.assign(k=list("xyxyxy"))

    def f(x):
        d, total = data.assign(z=x), 0.0
        for _, row in d.iterrows():
            total += row["z"] * row["a"] if row["k"] == "x" else row["z"] ** 2
        for row in d.itertuples(index=False):
            total += row.z * row.b
        return total + d.to_numpy()[1, 3] ** 2 + d.values[2, 0] * d.apply(lambda r: r["z"] * r["a"], axis=1).max()

    assert float(value_and_grad(f)(X)[0]) == pytest.approx(float(f(X)), rel=1e-12)
    np.testing.assert_allclose(grad(f)(X), differences(f, X), rtol=1e-7)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 1.01 * X]))[1], grad(f)(1.01 * X), rtol=1e-10)


def test_errors_name_a_remedy():
    for wrong, error, match in (
        (
            lambda x: FRAME.mul(x, axis=0).rolling(3, method="table").mean().sum(),
            ConversionError,
            "sliding_window_view",
        ),
        (lambda x: (S * x).rolling(3, win_type="triang").median().sum(), AttributeError, "sliding_window_view"),
        (lambda x: (S * x).rolling(3, win_type="square").mean().sum(), ValueError, "Invalid win_type"),
        (lambda x: (S * x).rolling(3).nunique().sum(), AttributeError, "sliding_window_view"),
        (lambda x: (S * x).ewm(alpha=x[0]).mean().sum(), ValueError, "alpha is out of its range"),
        (lambda x: (S * x).ewm(alpha=x[1], span=3).mean().sum(), ValueError, "give one of"),
        (lambda x: (S * x).ewm(halflife=x[0], times=DAYS).mean().sum(), ValueError, "constant length of time"),
        (lambda x: (S * x).nlargest(2, keep="all").sum(), NotImplementedError, "sort_values"),
        (lambda x: (S * x).interpolate(method="cubic").sum(), NotImplementedError, "scipy.interpolate"),
    ):
        with pytest.raises(error, match=match):
            grad(wrong)(X)
    with pytest.raises(ConcretizationError, match="differs between"):
        vmap(lambda x: pd.Series(x).nlargest(2).sum())(np.stack([X, X[::-1]]))


def test_tables_print():
    def f(x):
        shown.append((str(S * x), repr(FRAME.mul(x, axis=0))))
        return (S * x).sum()

    shown = []
    grad(f)(X)
    assert "2020-01-02" in shown[0][0]
    assert "a" in shown[0][1]
