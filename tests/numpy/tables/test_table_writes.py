"""Traced values written to tables of pandas, and methods that replace numbers by traced ones."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from helpers import at_least, differences

from funcgrad import grad, hessian, value_and_grad, vmap
from funcgrad.errors import ConcretizationError

X = np.array([1.3, 0.7, 2.1, 1.6, 0.9, 2.4])
S = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], index=list("abcdef"))
FRAME = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": [4.0, 5, 7, 6, 1, 3]})
GAPS = S.mask(S == 3.0)


def items(x):
    s = S.copy()
    s["b"] = x[0]
    s.iloc[2] = x[1] ** 2
    s.loc[["d", "e"]] = x[:2]
    return s


def single_items(x):
    s = S.copy()
    s.at["b"] = x[0]
    s.iat[3] = x[1]
    return s * s.at["b"] + s.iat[3] ** 2


def chosen(x):
    s = S.copy()
    s[s > 3] = x[0]
    s[:2] = x[1:3]
    s[s < 1.0] *= x[5]
    return s


def slices(x):
    s = S.copy()
    s.iloc[1:4] = x[:3]
    s.iloc[-1] += x[4]
    return s


def rows(x):
    d = FRAME.copy()
    d.loc[2, "a"] = x[0]
    d.loc[3] = x[:2]
    d.iloc[1] = x[2:4]
    d.iloc[4:, 1] = x[4:]
    d.iloc[4:, :] *= np.outer(x[:2], x[:2])
    d.iloc[:2, :] *= d.iloc[:2, :]
    d.loc[2:3, :] = x[:2].reshape(2, 1)  # for both columns
    d.iloc[3:4] = np.array([[3.0]])
    return d


def columns(x):
    d = FRAME.copy()
    d.loc[:, "a"] = x
    d.loc[:, "c"] = x * 2
    d.iloc[:, 1] *= x[5]
    return d


def chosen_rows(x):
    d = FRAME.copy()
    d.loc[d["b"] > 4, "a"] = x[0]
    d.loc[d["b"] <= 4, "b"] *= x[1]
    d[d > 5.5] = x[2]
    d[:1] = x[3]
    return d


def single_numbers(x):
    d = FRAME.copy()
    d.at[1, "a"] = x[0]
    d.iat[2, 1] = x[3]
    return d * d.at[1, "a"] + d.iat[2, 1]


def recurrence(x):
    d = FRAME.copy()
    d["c"] = 0.0
    for i in range(1, 6):
        d.loc[i, "c"] = d.loc[i - 1, "c"] * 0.5 + d.loc[i, "a"] * x[i]
    return d["c"]


def recurrence_by_position(x):
    d = FRAME.assign(c=0.0)
    for i in range(1, 6):
        d.iloc[i, 2] = d.iloc[i - 1, 2] * 0.5 + d["a"].iloc[i] * x[i]
    return d


def replaced(x):
    return S.replace(3.0, x[0])


def mapped(x):
    return np.log(pd.Series(list("aba")).map({"a": x[0], "b": x[1] ** 2})) * float(x[0])


def joined(x):
    return pd.concat([S, S * x])


def empty(x):
    s, d = pd.Series(dtype=float), pd.DataFrame(columns=["t", "v"], dtype=float)
    for i in range(6):
        s.loc[i] = x[i] ** 2
        d.loc[len(d)] = [float(i), x[i]]
    return s * d["v"] + d["t"]


def prepared(x):
    d = pd.DataFrame(np.zeros((6, 2)), columns=["a", "b"])
    s = pd.Series(0.0, index=range(6))
    for i in range(6):
        d.at[i, "a"] = x[i]
        d.loc[i, "b"] = x[i] ** 2
        s[i] = x[i]
    return d.mul(s, axis=0)


def traced_tables(x):
    d = pd.DataFrame({"a": x, "b": x**2})
    d.loc[2, "a"] = 5.0
    d.iloc[1] = 2.0
    d.iloc[0, 1] = d.iloc[3, 0] * d.loc[4, "b"]
    d.loc[d["b"] > 1, "b"] = x[0]
    return d


def updated(x):
    s = GAPS.copy()
    s.update(S * x)
    s.fillna(x[0], inplace=True)
    return s


def aliases(x):
    s = S.copy()
    same, before = s, s.copy()
    s.iloc[0] = x[0]
    return same + before


WRITES = [
    *(items, single_items, chosen, slices, rows, columns, chosen_rows, single_numbers, recurrence),
    *(recurrence_by_position, joined, replaced, mapped, empty, prepared, traced_tables, updated, aliases),
    lambda x: GAPS.fillna(x[0]),
    lambda x: GAPS.fillna(S * x),
    lambda x: S.where(S > 3, x[0]) + S.where(S > 2, S * x),
    lambda x: S.mask(S > 3, x[0]),
    lambda x: S.clip(x[0], x[5] * 2) + S.clip(upper=4 * x[1]),
    lambda x: FRAME.clip(lower=x[2]),
    lambda x: S.shift(2, fill_value=x[0]) + S.shift(-1, fill_value=x[1]),
]


if not at_least(pd, "3.0.0"):  # older versions fill NumPy arrays with the results, and make integers fractions
    for old in (empty, mapped, replaced):
        WRITES.remove(old)


@pytest.mark.parametrize("fun", WRITES)
def test_writes_to_tables(fun):
    def f(x):
        return (fun(x).fillna(0.0).to_numpy() ** 2).sum()

    before = S.copy(), FRAME.copy(), GAPS.copy()
    value, gradient = value_and_grad(f)(X)
    assert float(value) == pytest.approx(float(f(X)), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(f, X, 1e-5), rtol=1e-7, atol=1e-8)
    directional = differences(lambda h: grad(f)(X + h * X), 0.0, 1e-5)
    np.testing.assert_allclose(hessian(f)(X) @ X, directional, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 1.01 * X]))[1], grad(f)(1.01 * X), rtol=1e-10)
    for table, kept in zip((S, FRAME, GAPS), before, strict=True):
        assert table.equals(kept)


MADE = {
    "rows of arrays": lambda x: pd.DataFrame([x, x**2, np.ones(6)], columns=list("abcdef")).loc[1, "b"] * x[0],
    "methods with a number": lambda x: (FRAME.mul(x[0]).radd(x[1]) + FRAME["a"].rsub(x[2]).iloc[0]).prod().sum(),
    "series of rows": lambda x: (
        FRAME.apply(lambda r: pd.Series({"m": r["a"] * x[0], "s": r["b"] ** x[1]}), axis=1).prod().sum()
    ),
    "tables of pandas' functions": lambda x: (
        pd.concat([FRAME, FRAME]).reset_index(drop=True).where(lambda d: d > 2.0, x[0]).sum().prod()
    ),
    "text": lambda x: pd.read_csv(StringIO("p,q\n1.5,2\n3,4\n")).fillna(0.0).replace(1.5, x[0])["p"].prod(),
}


@pytest.mark.parametrize("name", MADE)
def test_writes_to_tables_made_inside(name):
    f = lambda x: MADE[name](x) * 1.0
    value, gradient = value_and_grad(f)(X)
    assert float(value) == pytest.approx(float(f(X)), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(f, X, 1e-5), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 1.01 * X]))[1], grad(f)(1.01 * X), rtol=1e-10)


def test_sort_order_shared_by_batch():
    def f(x):
        s = pd.Series(x)
        return s.sort_values().iloc[:2].prod() * s.idxmax() + s.nlargest(3).std() + s.rank(method="first") @ s

    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 1.01 * X]))[1], grad(f)(1.01 * X), rtol=1e-10)
    with pytest.raises(ConcretizationError, match="differs between"):
        vmap(f)(np.stack([X, X[::-1]]))


def test_columns_without_traced_values_stay_constant():
    def f(x):
        d = FRAME.copy()
        d.loc[0, "a"] = x[0]
        assert d["b"].dtype == float
        return d["a"].sum()

    assert grad(f)(X)[0] == 1.0


def test_write_to_integer_column():
    table = pd.DataFrame({"n": [1, 2, 3]})

    def f(x):
        d = table.copy()
        d.loc[0, "n"] = x[0]
        return d["n"].sum()

    if at_least(pd, "3.0.0"):
        with pytest.raises(TypeError, match="int64"):
            grad(f)(X)


def test_boolean_keys_shared_by_batch():
    def f(x):
        s = pd.Series(x)
        return s[s.between(1.0, 2.0)].sum() + pd.DataFrame({"a": x, "b": x**2}).query("a > 1.0")["b"].sum()

    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, X + 0.01]))[0], grad(f)(X))
