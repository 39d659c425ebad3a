"""Tables of pandas that a function makes from traced arrays, with labels of its own."""

import math
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
from helpers import differences
from pandas import DataFrame, MultiIndex
from pandas.core import nanops

from funcgrad import grad, value_and_grad, vmap
from funcgrad.errors import ConversionError, ReadOnlyError

X = np.array([[1.3, 0.7, 2.1], [1.4, 0.9, 1.7], [1.1, 1.2, 1.9], [1.6, 0.8, 2.4]])
DAYS = pd.date_range("2020-01-01", periods=4)
FACTOR, WEIGHTS = 2.5, np.arange(1.0, 5.0)
CONSTANT = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [4.0, 5.0, 7.0, 6.0]})


def named(x):
    return pd.DataFrame(x, columns=list("abc"))


def with_missing(x):
    return named(x).pct_change()


def written(x):
    frame = CONSTANT.copy()
    frame["c"] = x[:, 0]
    frame["d"] = x[1, 1]
    frame.insert(0, "e", x[:, 2] ** 2)
    frame[["a", "b"]] = x[:, :2] * 2.0
    return frame.prod(axis=1).sum()


def rows(x):
    made = []
    for i in range(4):
        made.append({"v": x[i, 0] ** 2, "k": i})
    table = pd.DataFrame(made)
    return (np.log(table["v"]) * table["k"]).sum()


def from_imports_of_its_own(x):
    import pandas
    from pandas import DataFrame

    frames = [kind.from_dict({"a": x[:, 0], "b": x[:, 1] ** 2}) for kind in (pandas.DataFrame, DataFrame)]
    frames += [pandas.DataFrame.from_dict({"a": x[:, 0]}), DataFrame.from_dict({"a": x[:, 2]})]
    return sum(frame["a"].std() for frame in frames)


def like_a_column(column):
    """Return a sum of arrays that NumPy makes from a column."""
    made = np.add(column, 1.0, out=np.empty_like(column)) + np.zeros_like(column) + np.ones_like(column)
    made += np.full_like(column, column.iloc[0]) * np.copy(column) + np.hypot(column, column.values)
    return made + np.ascontiguousarray(column) * np.asfortranarray(column) + np.asanyarray(column) ** 2


class Design(np.ndarray):
    """Matrix of numbers with a description, as packages of formulas make."""


def matrices_of_a_class(x):
    design = np.array([x[0], x[1] ** 2]).view(Design)
    both = pd.DataFrame({"u": design[0], "v": pd.Series(design[1] * 2.0)})
    return pd.DataFrame(design, columns=list("abc"))["b"].prod() * both["v"].prod()


def labels_of_class_methods(x):
    weights = np.ones(3)
    labels = MultiIndex.from_product([[0, 1], [2, 3]])
    return pd.Series(x[:, 0] * weights.dot(x[0]), index=labels).loc[1].prod()


def lists_as_columns(x):
    table = pd.DataFrame(np.zeros((2, 2)), columns=["a", "b"])
    table["a"] = [x[0, 0], x[1, 1]]
    table.loc[table.index[1:], "b"] = -np.diff(table["a"].values)
    table["c"] = table["a"].diff() / table["b"] / x[2, 2]  # 0.0 / 0.0 in the first row
    return table["c"].sum() + table["b"].sum()


def copies_of_constants(x):
    values, column = CONSTANT.values.copy(), CONSTANT["b"].to_numpy().copy()
    values[1] = x[1, :2]
    column[2:] *= x[0, 1]
    return (values**2).sum() * column.sum()


def rows_with_labels_of_their_own(x):
    parts = (named(x) * x[0, 0]).groupby([0, 1, 1, 2]).apply(lambda part: pd.Series([part["a"].sum()], [len(part)]))
    return parts.prod() + pd.DataFrame([pd.Series(x[0]), pd.Series(x[1] ** 2)]).loc[1].prod()


MADE = {
    "rows with labels of their own": rows_with_labels_of_their_own,
    "columns": lambda x: named(x)["b"].prod(),
    "keywords": lambda x: pd.DataFrame(data=x, columns=["u", "v", "w"], index=DAYS).loc["2020-01-02", "v"] ** 2,
    "positions": lambda x: pd.DataFrame(x, DAYS, list("abc")).loc["2020-01-02":].mean().prod(),
    "more levels": lambda x: pd.DataFrame(x, columns=pd.MultiIndex.from_product([["a"], [1, 2, 3]]))["a"][2].prod(),
    "dropna": lambda x: with_missing(x).dropna(how="all").prod().sum(),
    "count": lambda x: with_missing(x).count().sum() * x[0, 0],
    "cov": lambda x: named(x).cov().to_numpy()[0] @ np.arange(3.0),
    "corr": lambda x: named(x).corr().loc["a", "c"],
    "cov where numbers are missing": lambda x: with_missing(x).cov(ddof=0).to_numpy()[1] @ np.arange(3.0),
    "cov of few": lambda x: with_missing(x).cov(min_periods=4).isna().sum().sum() * x[0, 0],
    "semicovariance": lambda x: (with_missing(x).dropna() * (with_missing(x).dropna() < 0)).cov().iloc[0, 1],
    "apply": lambda x: named(x).apply(lambda column: column.mean() ** 2).std(),
    "apply to rows": lambda x: named(x).apply(lambda row: row["a"] * row["c"], axis=1).prod(),
    "arrays like a column": lambda x: like_a_column(named(x)["b"]) @ x[:, 0],
    "matrices of a class": matrices_of_a_class,
    "labels of class methods": labels_of_class_methods,
    "lists as columns": lists_as_columns,
    "means without missing numbers": lambda x: nanops.nanmean(x[0] * x[1], axis=0) + nanops.nansum(x[0]),
    "rows from columns": lambda x: named(x).apply(lambda row: row / row.sum(), axis="columns")["a"].prod(),
    "apply to numbers": lambda x: pd.Series(x[0]).apply(lambda v: v**2).sum(),
    "one number": lambda x: (pd.Series(x[0, 0], index=[0, 1]) * np.array([2.0, 3.0])).sum(),
    "one number for a frame": lambda x: pd.DataFrame(x[0, 0], index=[0, 1], columns=list("ab")).prod().sum(),
    "a list after a constant": lambda x: np.log(pd.Series([CONSTANT["a"].std(), x[0, 0], x[0, 1]])).sum(),
    "crosstab of an array": lambda x: (
        pd.crosstab(["p", "p", "q", "q"], [0, 1, 0, 1], values=x[:, 0], aggfunc="sum").loc["p"].prod()
    ),
    "a list": lambda x: np.log(pd.Series([x[0, 0], x[0, 1], 2.0])).std(),
    "a number and a list": lambda x: (x[0, 1] * pd.Series([x[0, 0], 2.0])).prod(),
    "a list and a number": lambda x: (pd.Series([x[0, 0], 2.0]) / x[0, 1]).prod(),
    "a number and rows": lambda x: (x[0, 1] * pd.DataFrame([[x[0, 0], 2.0], [1.0, x[1, 1]]])).sum().prod(),
    "series as rows": lambda x: (
        pd.DataFrame([pd.Series(x[0, :2], index=["p", "q"], name="r"), pd.Series({"q": x[1, 0], "s": 2.0})])
        .fillna(1.0)
        .loc["r"]
        .prod()
        + pd.DataFrame([pd.Series([1.0, 2.0]), pd.Series(x[1, :2])], index=["p", "q"]).loc["q", 1] ** 2
    ),
    "a series for each number": lambda x: (
        pd.Series(x[0]).apply(lambda v: pd.Series({"s": v**2, "c": math.cos(v)})).prod(axis=1).sum()
    ),
    "lists": lambda x: np.exp(pd.DataFrame({"a": [x[0, 0], x[0, 1]], "b": [1.0, x[0, 2]]})).mean().prod(),
    "rows": rows,
    "a dictionary": lambda x: pd.Series({"a": x[0, 0], "b": x[0, 1]}).std(),
    "an ordered dictionary": lambda x: pd.DataFrame(OrderedDict(a=x[:, 0], b=x[:, 1] ** 2), index=DAYS)["b"].std(),
    "a number beside columns": lambda x: pd.DataFrame({"a": x[:, 0], "b": x[0, 1]}).prod(axis=1).sum(),
    "written": written,
    "from columns": lambda x: pd.DataFrame.from_dict({"a": x[:, 0], "b": x[:, 1]}).prod(axis=1).std(),
    "from rows": lambda x: pd.DataFrame.from_dict({"u": x[0], "v": x[2]}, orient="index", columns=list("abc"))[
        "b"
    ].std(),
    "from rows of numbers": lambda x: (
        pd.DataFrame.from_dict({"u": [x[0, 0], 2.0], "v": [1.0, x[1, 1]]}, "index").std().prod()
    ),
    "from dictionaries": lambda x: pd.DataFrame.from_dict({"u": {"a": x[0, 0]}, "v": {"a": x[1, 1]}}, "index")[
        "a"
    ].std(),
    "from records": lambda x: DataFrame.from_records([(1.0, x[0, 0]), (2.0, x[1, 1])], columns=["t", "v"])["v"].std(),
    "from imports of its own": from_imports_of_its_own,
    "names of the module": lambda x: named(x).eval("a * @FACTOR + b * @WEIGHTS").prod() + pd.eval("x * FACTOR").sum(),
    "names of the module for rows": lambda x: named(x).query("a > @FACTOR / 2")["b"].prod(),
    "constant names of the module": lambda x: CONSTANT.eval("a * @FACTOR + b").prod() * x[0, 0],
    "copies of constants": copies_of_constants,
}


def test_positions_that_examples_share():
    """A table that holds a batch of traced arrays itself, as pandas makes it, finds no position."""

    def f(x):
        s = pd.Series(x, index=list("abc"))
        return s[s.idxmax()] * s.iloc[s.argmin()] ** 2

    def filtered(x):
        return (
            pd.DataFrame({"v": x, "g": list("aab")}).groupby("g").filter(lambda part: part["v"].sum() > 3.5)["v"].prod()
        )

    batch = np.array([[1.0, 3.0, 2.0], [2.0, 5.0, 3.0]])
    assert vmap(filtered)(batch).tolist() == [3.0, 10.0]
    batch = np.array([[1.0, 3.0, 2.0], [2.0, 5.0, 4.0]])
    assert vmap(f)(batch).tolist() == [3.0, 20.0]
    assert vmap(grad(f))(batch).tolist() == [[6.0, 1.0, 0.0], [20.0, 4.0, 0.0]]


@pytest.mark.parametrize("name", MADE)
def test_frames_of_traced_matrices_have_labels(name):
    def f(x):
        return MADE[name](x) * 1.0

    value, gradient = value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(gradient, differences(f, X, 1e-5), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, X + 0.01]))[1], grad(f)(X + 0.01))


def test_wrong_labels_raise():
    for made in (
        lambda x: pd.DataFrame(x, columns=list("ab")),
        lambda x: pd.DataFrame(x, index=list("ab")),
        lambda x: pd.Series(x),
    ):
        with pytest.raises(ValueError, match=r"match|imply|1-dim"):
            made(X)
        with pytest.raises(ValueError, match=r"match|1-dim"):
            grad(lambda x, made=made: made(x).sum().sum())(X)


def test_table_values_are_read_only_if_write_would_show(monkeypatch):
    def f(x):
        values = named(x).values
        values[0] = 0.0
        return values.sum()

    monkeypatch.setattr("funcgrad.numpy.tables.frames._WRITES_THROUGH", True)  # as before pandas 3
    with pytest.raises(ReadOnlyError, match=r"x\.copy\(\)"):
        grad(f)(X)


def test_ranks_are_constants():
    with pytest.raises(TypeError, match=r"frame\.corr: traced values have only the correlation of Pearson"):
        grad(lambda x: named(x).corr(method="spearman").iloc[0, 1])(X)


CHOSEN = {
    "where": lambda x: pd.Series(x, name="q").where(pd.Series(x) > 1.0, 5.0).rename("r").prod(),
    "where, a function": lambda x: pd.Series(x).where(lambda s: s < 1.0, pd.Series(x) * 2.0).prod(),
    "mask": lambda x: pd.Series(x, index=list("abc")).mask(lambda s: s > 1.0, 0.5).prod(),
    "clip": lambda x: pd.Series(x).clip(0.8, 2.0).prod(),
    "frames": lambda x: named(np.outer(x, x)).where(lambda d: d > 1.0, 0.0).clip(upper=3.0).sum().sum(),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_batch_examples_choose_differently(name):
    rows = np.array([[1.3, 0.7, 2.1], [0.4, 1.9, -0.3]])

    def f(x):
        return CHOSEN[name](x) * 1.0

    found = vmap(grad(f))(rows)
    np.testing.assert_allclose(found, [grad(f)(x) for x in rows])
    np.testing.assert_allclose(found[0], differences(f, rows[0], 1e-5), rtol=1e-5, atol=1e-8)


def test_where_keeps_labels():
    def f(x):
        kept = pd.Series(x, index=list("abc"), name="q").where(lambda s: s > 1.0, 0.0)
        assert kept.name == "q"
        assert list(kept.index) == list("abc")
        return kept.sum()

    assert vmap(grad(f))(np.array([[1.3, 0.7, 2.1], [0.4, 1.9, -0.3]])).tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


# ---- in-place operators ---------------------------------------------------------------------------------------------

TABLE = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})


def series_times(x):
    s = TABLE["a"].copy()
    s -= x
    s /= x
    s **= 2
    return s.sum()


def column_plus(x):
    d = TABLE.copy()
    d["a"] += np.array([x, 2 * x])
    return (d["a"] * d["b"]).sum()


def columns_times(x):
    d = TABLE.copy()
    d[["a", "b"]] *= x
    return (d**2).to_numpy().sum()


def frame_times_and_another_name(x):
    d = TABLE.copy()
    same = d
    d *= x
    d //= 1.0
    d += x
    return same["b"].sum() + TABLE["b"].sum()


@pytest.mark.parametrize("fun", [series_times, column_plus, columns_times, frame_times_and_another_name])
def test_in_place_changes_of_tables(fun):
    value, slope = value_and_grad(fun)(2.3)
    assert value == pytest.approx(fun(2.3))
    assert slope == pytest.approx((fun(2.3 + 1e-5) - fun(2.3 - 1e-5)) / 2e-5)
    assert np.allclose(vmap(fun)(np.array([1.3, 2.3])), [fun(1.3), fun(2.3)])
    assert TABLE.to_numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_labels_are_constants():
    """In code whose arrays can be written to, arrays of numbers that it makes are labels as before."""

    def labelled(x):
        written = np.zeros(3)
        written[1] = x
        labels = pd.Index(np.arange(3))
        column = pd.Series(written, index=pd.RangeIndex(3), name="a") + pd.Series(1.0, index=labels)
        return (column * labels.to_numpy()).sum() + np.diff(labels).sum() * x + (labels == 1).sum() * x

    assert grad(labelled)(2.0) == 4.0
    with pytest.raises(ConversionError, match=r"pandas\.Index\(x\)"):
        grad(lambda x: np.asarray(pd.Index(x)).sum())(np.ones(3))


def test_code_may_ask_for_the_class_of_a_table():
    """Code that asks for a class of pandas takes the branch for it, for tables of traced values and for constants."""

    def chosen(x):
        total = 0.0
        for table in (pd.Series(x[0]), named(x), CONSTANT, CONSTANT["a"]):
            kind = type(table)
            assert table.__class__ is kind
            if kind is pd.Series:
                total += table.sum() ** 2
            elif kind.__name__ == "DataFrame":
                total += table.sum().sum() * x[1, 1]
        return total + type(CONSTANT["a"])(x[2]).sum()

    np.testing.assert_allclose(grad(chosen)(X), differences(chosen, X, 1e-5), rtol=1e-6)
