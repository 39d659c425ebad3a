"""Tables of pandas while JAX compiles: which numbers are missing is known only later, and results are the same."""

import numpy as np
import pandas as pd
import pytest

from funcgrad import grad
from funcgrad.errors import StagingError
from funcgrad.interop import jit

pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
DAYS = pd.date_range("2024-01-01", periods=6)
GAPS = pd.Series([1.0, 2.0, np.nan, 4.0, 5.0, 6.0], index=DAYS)
KEY = np.array(list("aababb"))
X = np.array([1.3, 0.7, 2.1, 1.6, 0.9, 2.4])


def frame(x):
    return pd.DataFrame({"a": x, "b": (GAPS * x**2).to_numpy()})


REDUCTIONS = ("sum", "mean", "prod", "std", "var", "min", "max", "median", "skew", "kurt")
SAME = {
    **{name: lambda x, name=name: getattr(GAPS * x, name)() for name in REDUCTIONS},
    **{f"rows, {name}": lambda x, name=name: getattr(frame(x), name)(axis=1).std() for name in REDUCTIONS[:7]},
    "too few": lambda x: (GAPS * x).sum(min_count=6) * 0.0 + x[0],
    "missing ones counted": lambda x: pd.Series(x).sum(skipna=False),
    "quantile": lambda x: (GAPS * x).quantile(0.3),
    "cumsum": lambda x: (GAPS * x).cumsum().iloc[[1, 5]].prod(),
    "rank": lambda x: ((GAPS * x).rank() * x).sum() + ((GAPS * x).rank(pct=True) * x).max(),
    "shift": lambda x: (pd.Series(x) - pd.Series(x).shift(1)).std(),
    "diff": lambda x: pd.Series(x).diff().std(),
    "pct_change": lambda x: pd.Series(x).pct_change(fill_method=None).mean(),
    "where": lambda x: pd.Series(x).where(np.arange(6) > 2).sum(),
    "ufuncs": lambda x: np.log(GAPS * x).sum() * np.maximum(GAPS, x).mean(),
    "rolling": lambda x: pd.Series(x).pct_change(fill_method=None).rolling(2).std().sum(),
    "rolling, some missing": lambda x: (GAPS * x).rolling(3, min_periods=2).mean().max(),
    "expanding": lambda x: (GAPS * x).expanding().median().sum(),
    "groups": lambda x: (GAPS * x).groupby(KEY).mean().prod(),
    "resample": lambda x: (GAPS * x).resample("2D").sum().std(),
    "cov": lambda x: frame(x).cov().iloc[0, 1],
    "corr": lambda x: frame(x).corr(min_periods=5).iloc[0, 1],
    "joined": lambda x: pd.concat([pd.Series(x[:3]), pd.Series(x[2:])], axis=1).sum().prod(),
}


@pytest.mark.parametrize("name", SAME)
def test_missing_values_are_skipped(name):
    f = lambda x: SAME[name](x) * 1.0
    value, slope = f(X), grad(f)(X)
    if name == "too few":
        assert np.isnan(value)
        assert np.isnan(float(jit(f)(X)))
        return
    np.testing.assert_allclose(jit(f)(X), value, rtol=2e-5)
    np.testing.assert_allclose(jit(grad(f))(X), slope, rtol=1e-4, atol=1e-5)


REFUSED = {
    "dropna": lambda x: (GAPS * x).dropna().prod(),
    "fillna": lambda x: (GAPS * x).fillna(2.0).prod(),
    "count": lambda x: (GAPS * x).count() * x[0],
    "ewm": lambda x: (GAPS * x).ewm(span=3).mean().iloc[-1],
    "interpolate": lambda x: (GAPS * x).interpolate().sum(),
    "sem": lambda x: (GAPS * x).sem(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_methods_that_need_missing_values_raise(name):
    for run in (jit(REFUSED[name]), jit(grad(REFUSED[name]))):
        with pytest.raises(StagingError, match=r"^series\.isna\(\): pandas asks which numbers are missing"):
            run(X)
