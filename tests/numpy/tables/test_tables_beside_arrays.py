"""Tables of pandas and xarray next to traced values: labels stay, and programs run unchanged."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import at_least, differences

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, value_and_grad, vmap

RNG = np.random.default_rng(0)
R = pd.DataFrame(RNG.normal(0, 0.02, (40, 3)), columns=list("abc"), index=pd.date_range("2020", periods=40))
MISSING = R.copy()
MISSING.iloc[3, 1] = np.nan
S = (R.iloc[0] + 1.0).rename("w")
COVARIANCE, MEAN = R.cov(), R.mean()
ARRAY = xr.DataArray(R.values[:6], dims=("t", "u"), coords={"u": list("abc")})
DATASET = xr.Dataset({"p": ("u", [1.0, 2, 3]), "q": ("u", [0.5, 0.6, 0.7])})
GAPS = xr.DataArray([1.0, np.nan, 3.0], dims="u")
X = np.array([0.3, 0.5, 0.9])


def assigned(w):
    d = R.copy()
    d["d"] = d["a"] * w[0]
    d["e"] = d["d"] ** 2
    return d["e"].sum() + d.d.mean()


def constant_tables(w):
    """Compute with tables that hold no traced values, in a run that has traced ones."""
    s, mixed = pd.Series(w), pd.DataFrame({"a": w, "b": [3.0, 4.0, 6.0]})
    f = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]})
    square = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["a", "b"])
    products = S.dot(S) + square.dot(square).iloc[0, 0] + mixed["b"].dot(mixed["b"]) + (np.ones((2, 3)) @ f).iloc[0, 0]
    products += (
        [1.0, 1.0, 1.0] @ mixed["a"]
        + [1.0, 1.0, 1.0] @ mixed["b"]
        + (np.ones((2, 3)) @ mixed["b"])[1]
        + (np.ones((2, 3)) @ mixed["a"])[0]
    )
    shown = f.describe().iloc[1, 1] + S.describe().iloc[1] + mixed["b"].describe().iloc[2]
    shown += mixed[["b"]].describe().iloc[1, 0] + f.rank().iloc[2, 0] + f.rank(axis=1).iloc[2, 0]
    spread = f.cov().iloc[0, 1] + f.corr("spearman").iloc[0, 1] + mixed[["b"]].corr().iloc[0, 0]
    smooth = f.ewm(alpha=0.3).mean()["a"] * s + f["a"].ewm(1.0).mean()
    return products * (s**2).sum() + shown * w[0] + spread * w[1] + smooth.sum()


def groups_of_rows(w):
    f = pd.DataFrame({"a": w, "b": [1.0, 2.0, 3.0], "g": [1, 1, 2]})
    groups = f.groupby("g")
    sums = groups.apply(lambda t: pd.Series({"u": t["a"].sum(), "v": t["b"].sum()}), include_groups=False)
    plain = groups.apply(lambda t: pd.Series({"u": t["b"].sum(), "v": t["b"].mean()}), include_groups=False)
    windows, last = groups.rolling(2, min_periods=1), f.rolling(2, min_periods=1)
    private = hasattr(windows, "_unknown") + hasattr(last, "_unknown")
    rows = windows[["a", "b"]].sum()["a"].iloc[1] + last.b.sum().sum() * last["a"].sum().iloc[2]
    rows = rows + groups.apply("mean")["a"].iloc[1] ** 2
    return groups["a"].apply("sum").iloc[0] * sums["u"].iloc[0] + plain["v"].iloc[0] * w[0] + rows + private


def columns_of_pandas(w):
    s = pd.Series(w)
    a, missing = s.array, (s * np.nan).interpolate()
    again = pd.Series(type(a)._from_sequence(a)) * pd.Series(pd.array(a, dtype=a.dtype))
    narrow = s.astype("Float64").astype(float) * s.astype("float64") * s.drop_duplicates()
    bins = np.asarray(pd.cut(w, [0.0, 0.4, 0.7, 1.0], labels=False)) + np.asarray(pd.qcut(w, 2, labels=False))
    counts = missing.isna().sum() + s.duplicated().sum() + bins.sum()
    return (again + narrow + a * s + np.add(s, a)).sum() * counts + (np.asarray(bins) * w).sum()


def products_with_matrices(w):
    m = np.outer(w, w)
    f = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]})
    left, right = (f.T @ m).to_numpy() + np.asarray(np.matmul(f.T, m)), (m @ f).to_numpy()
    return (left * right.T).sum() + (f.T @ w).prod() + (w @ f).sum() + (f.T @ pd.Series(w)).sum()


def frames_with_other_labels(w):
    f, g = pd.DataFrame({"a": w, "b": [3.0, 1.0, 2.0]}), pd.DataFrame({"b": w, "a": w**2}, index=[1, 2, 0])
    wider = np.hypot(f, pd.DataFrame({"b": w, "c": w}, index=[1, 2, 5]))
    whole = np.hypot(f, g)["b"].loc[[0, 2]].prod() + np.multiply(f, g).loc[1, "a"] + np.hypot(f, 2.0).sum().sum()
    return whole + wider.sum().sum() * wider.isna().to_numpy().sum() * wider.shape[1]


def rows_of_constants(w):
    made = R.iloc[:3].apply(lambda row: pd.Series(w[:2] * row.to_numpy()[:2], index=["u", "v"]), axis=1)
    return (made["u"] * w).sum() * 100.0 + made["v"].sum()


PROGRAMS = {
    "assigned": assigned,
    "constant tables": constant_tables,
    "groups of rows": groups_of_rows,
    "columns of pandas": columns_of_pandas,
    "products with matrices": products_with_matrices,
    "frames with other labels": frames_with_other_labels,
    "rows of constants": rows_of_constants,
    "port": lambda w: np.sqrt(w.T @ COVARIANCE @ w),
    "port dot": lambda w: np.sqrt(np.dot(w.T, np.dot(COVARIANCE * 252, w))),
    "sharpe": lambda w: (R @ w).mean() / (R @ w).std(),
    "sharpe2": lambda w: R.dot(w).mean() / R.dot(w).std() * np.sqrt(252),
    "sharpe3": lambda w: (R * w).sum(axis=1).mean() / (R * w).sum(axis=1).std(),
    "prod": lambda w: (1 + R @ w).prod(),
    "cumprod": lambda w: (1 + (R * w).sum(axis=1)).cumprod().iloc[-1],
    "drawdown": lambda w: ((1 + R.dot(w)).cumprod() / (1 + R.dot(w)).cumprod().cummax() - 1).min(),
    "mu": lambda w: np.sum(MEAN * w) * 252 - w @ MEAN,
    "mu2": lambda w: MEAN.dot(w) + (MEAN * w).sum() + MEAN @ w,
    "col": lambda w: (w[0] * R["a"] + w[1] * R["b"] ** 2).sum(),
    "scalar": lambda w: (w[0] * S).std() + (S / w[1]).var() + (S ** w[2]).mean(),
    "frame scalar": lambda w: (R * w[0]).mean().max() + (R - w[1]).abs().sum().sum(),
    "nan": lambda w: (MISSING * w).sum().sum() + (MISSING * w).mean().sum() + (MISSING["b"] * w[0]).std(),
    "labels": lambda w: (w * S)["a"] + (w * S).loc["b"] * 2 + (w * S).iloc[2],
    "new": lambda w: (
        pd.Series(w, index=list("abc")).mul(MEAN).sum() + (pd.Series(w, index=list("abc")) @ COVARIANCE).sum()
    ),
    "assign": lambda w: R.assign(d=R["a"] * w[0] + w[1])["d"].std(),
    "loop": lambda w: sum(w[i] * MEAN[n] * math.exp(w[0]) for i, n in enumerate(R.columns)),
    "iter": lambda w: sum((row * w).sum() ** 2 for _, row in R.iterrows()),
    "exp": lambda w: np.exp(R * w).sum().sum() + np.log1p(R * w).std().sum(),
    "max": lambda w: np.maximum(R * w, 0.0).sum().sum() + np.minimum(w, S).sum(),
    "where": lambda w: (R * w).where(R > 0, 0.0).sum().sum(),
    "clip": lambda w: (S * w).clip(0.5, 1.2).sum(),
    "diff": lambda w: (R @ w).diff().dropna().std(),
    "gaps": lambda w: (GAPS * w).sum() + (w * GAPS).mean() + np.exp(GAPS * xr.DataArray(w, dims="u")).mean(),
    "gaps times numbers": lambda w: (GAPS * w[0]).sum() + (w[1] ** GAPS).mean() + np.multiply(GAPS, w).std(),
    "missing": lambda w: np.nan_to_num(MISSING["b"] * w[0]).sum() + np.nan_to_num(MISSING * w, nan=w[1]).sum(),
    "lists": lambda w: (np.multiply(R * w, [1.0, w[0], 3.0]) ** 2).iloc[:, 1].sum() + np.add(R, [1, 2, 3]).iloc[5] @ w,
    "positions": lambda w: (w[pd.Series([2, 0, 2])] * w[pd.Index([1, 0, 0])]).sum() + w[S > 1.0].sum(),
    "ranks": lambda w: (np.asarray(S * w)[np.argsort(S * w)] * X).sum(),
    "shift": lambda w: (R @ w * (R @ w).shift(1)).sum(),
    "pct": lambda w: (1 + R @ w).cumprod().pct_change().dropna().mean(),
    "rolling": lambda w: (R @ w).rolling(3).mean().dropna().sum(),
    "apply": lambda w: R.apply(lambda col: (col * w[0]).sum()).sum(),
    "T": lambda w: (R.T * w[:, None]).sum().std(),
    "methods of operators": lambda w: (
        R.mul(w).std().sum() + R.rsub(w[:2].sum() + w, axis="columns").div(w).abs().sum().sum() + S.rpow(w).add(w).sum()
    ),
    "methods by rows": lambda w: (
        (R.iloc[:3].radd(w, axis=0).pow(2.0, axis=0) * w).sum().sum() + R.iloc[:3].truediv(np.outer(w, w)).std().sum()
    ),
    "values": lambda w: (R.values @ w).std() + (R.to_numpy() * w).sum(),
    "groupby": lambda w: (R @ w).groupby(R.index.month).sum().max(),
    "corr": lambda w: (R @ w).corr(R["a"]),
    "covs": lambda w: (R @ w).cov(R["a"]),
    "xr1": lambda w: (ARRAY * w).mean("t").std().item(),
    "xr2": lambda w: (w * ARRAY).sum("u").std(),
    "xr3": lambda w: (ARRAY * w[0]).sel(u="a").sum() + (DATASET * w[1]).p.sum(),
    "xr4": lambda w: (ARRAY @ xr.DataArray(w, dims="u")).var(),
    "xr5": lambda w: np.exp(ARRAY * w).mean(),
    "xr6": lambda w: ARRAY.dot(xr.DataArray(w, dims="u")).sum(),
    "xr7": lambda w: (DATASET["p"] * w + DATASET["q"]).max(),
    "xr8": lambda w: (np.exp(ARRAY) * w).cumsum("t").isel(t=-1).sum(),
    "quantile": lambda w: (R @ w).quantile(0.3),
    "sort": lambda w: (R @ w).sort_values().iloc[:4].sum(),
    "agg": lambda w: (R * w).agg(["mean", "std"]).sum().sum(),
    "describe": lambda w: (R * w).std(axis=1).sum(),
    "skew": lambda w: (R @ w).skew(),
    "merge": lambda w: pd.concat([R["a"] * w[0], R["b"] * w[1]], axis=1).sum(axis=1).std(),
    "eval": lambda w: (R * w).eval("a+b").sum(),
    "norm": lambda w: np.linalg.norm(R @ w) + np.linalg.norm(S * w),
    "np.std": lambda w: np.std(R @ w) + np.mean((R * w).sum()) + np.var(S * w),
    "np.sum": lambda w: np.sum(R * w, axis=0).max() + np.sum(np.sum(R * w)),
    "dot ss": lambda w: S * w @ (S * w) + (S * w).dot(MEAN),
    "div": lambda w: (R / w).div(MEAN).sum().sum() + (R * w).add(1.0).mul(2).sum().sum(),
    "round": lambda w: (S * w).round(1).sum() + w[0],
    "isna": lambda w: (MISSING * w).fillna(0.5).sum().sum(),
    "interp": lambda w: np.interp(0.5, S.sort_values() * 1.0, w),
    "lstsq": lambda w: np.linalg.lstsq(R[["b", "c"]], R["a"] * w[0], rcond=None)[0].sum(),
    "solve": lambda w: np.linalg.solve(COVARIANCE * 10000.0, w).sum(),
    "abs": lambda w: (S * w).abs().sum() + abs(S - w).sum(),
}
if not at_least(pd, "3.0.0"):  # older versions fill NumPy arrays with the results, inspect them, or warn
    for name in ("apply", "methods of operators", "agg", "round", "np.sum"):
        del PROGRAMS[name]
#: Programs that take a different branch for each example of a batch.
STEERED = ("clip", "sort", "columns of pandas")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    value, slope = value_and_grad(f)(X)
    assert float(value) == pytest.approx(float(f(X)), rel=1e-12)
    assert slope == pytest.approx(differences(lambda w: float(f(w)), X), rel=1e-6, abs=1e-8)
    assert float(jvp(f, (X,), (np.ones(3),))[1]) == pytest.approx(slope.sum(), rel=1e-9, abs=1e-12)
    assert np.isfinite(hessian(f)(X)).all()
    if name not in STEERED:
        assert vmap(grad(f))(np.stack([X, X + 0.01]))[0] == pytest.approx(slope, rel=1e-9)


OPERATORS = {
    "times": lambda x, c: x * c,
    "times on the right": lambda x, c: c * x,
    "plus": lambda x, c: x + c,
    "minus": lambda x, c: c - x,
    "over": lambda x, c: x / c,
    "under": lambda x, c: c / x,
    "power": lambda x, c: x**c,
    "power on the right": lambda x, c: c**x,
    "np.power": lambda x, c: np.power(c, x),
    "fnp.power": lambda x, c: fnp.power(x, c),
    "fnp.exp": lambda x, c: fnp.exp(c) * x,
    "np.exp": lambda x, c: np.exp(c * x),
    "np.maximum": lambda x, c: np.maximum(c, x),
    "fnp.arctan2": lambda x, c: fnp.arctan2(c, x),
    "comparison": lambda x, c: x * (c > x),
    "equality": lambda x, c: x * (x == c),
    "number": lambda x, c: x[0] * c + c / x[1],
    "in place": lambda x, c: (1.0 * x).__iadd__(c if np.ndim(c) == 1 else c[0]),
}

CONSTANTS = {"series": S, "frame": R.iloc[:2] + 1.0, "array": ARRAY[0] + 1.0, "named axes": ARRAY + 1.0}


@pytest.mark.parametrize("table", CONSTANTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name, table):
    apply, constant = OPERATORS[name], CONSTANTS[table]
    if name == "in place":
        constant = constant.iloc[0] if table == "frame" else constant[0] if table == "named axes" else constant

    def f(x):
        found = apply(x, constant)
        assert isinstance(found, type(plain)) or name == "in place"
        assert found.shape == plain.shape
        return found.sum().sum()

    plain = apply(X, constant)
    slope = grad(f)(X)
    assert slope == pytest.approx(differences(lambda x: float(apply(x, constant).sum().sum()), X), rel=1e-6, abs=1e-8)


def test_numpy_functions_use_table_values():
    for table in (S, COVARIANCE, ARRAY[0]):
        slope = grad(lambda x, c=table: fnp.sum(fnp.dot(c, x)) + np.sum(np.dot(x, c)))(X)
        found = differences(lambda x, c=table: float(np.sum(np.dot(c, x)) + np.sum(np.dot(x, c))), X)
        assert slope == pytest.approx(found, rel=1e-6)
    assert grad(lambda x: fnp.where(S > 1.0, x, 0.0).sum())(X).tolist() == (S > 1.0).astype(float).tolist()


def test_arrays_that_do_not_fit_a_table_raise():
    for call in (lambda x: np.multiply(R, x[:2]), lambda x: np.multiply(R, np.outer(x, x)[None]), lambda x: x[:2] * S):
        for run in (call, lambda x, call=call: grad(lambda x: call(x).sum().sum())(x)):
            with pytest.raises(ValueError, match=r"broadcast|coerce"):
                run(X)
    with pytest.raises(TypeError, match="a column of traced numbers has no reduction 'unknown'"):
        grad(lambda x: pd.Series(x).array._reduce("unknown"))(X)

    def matrix(x):
        y = np.zeros(3)
        y[0] = x[0]
        return pd.Series(np.outer(x, y)).sum()

    with pytest.raises(ValueError, match="Data must be 1-dimensional"):
        grad(matrix)(X)


def test_unshared_labels():
    other = pd.Series([1.0, 2.0, 3.0], index=list("bcd"))
    f = lambda x: ((x * S) * other).sum() + ((x * S) + other).count()
    assert grad(f)(X) == pytest.approx(differences(f, X), rel=1e-7)
    with pytest.raises(ValueError, match="not aligned"):
        grad(lambda x: (x * S) @ other)(X)
