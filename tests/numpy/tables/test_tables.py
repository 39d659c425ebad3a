"""Tables of pandas and xarray as arguments of transforms: results are tables with the same labels."""

import copy

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import differences

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jacrev, jvp, tree, value_and_grad, vjp, vmap
from funcgrad.errors import ConcretizationError, ConversionError, FuncgradError, InputError
from funcgrad.numpy.tables.containers import TableArray, unlabel_number

SERIES = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="rate")
FRAME = pd.DataFrame({"u": [1.0, 2.0], "name": ["x", "y"], "v": [3.0, 4.0]}, index=[10, 20])
ARRAY = xr.DataArray(
    np.arange(1.0, 7.0).reshape(2, 3), dims=("t", "x"), coords={"t": [10, 20]}, name="heat", attrs={"unit": "K"}
)
DATASET = xr.Dataset({"a": ARRAY, "b": ("x", np.array([0.5, 1.0, 2.0])), "label": ("x", list("pqr"))})

OF_SERIES = {
    "sum": lambda s: (s**2).sum(),
    "labels": lambda s: s["a"] * s.loc["b"] + s.iloc[2] ** 2,
    "mean and std": lambda s: s.mean() * s.std() + s.var(ddof=0),
    "extremes": lambda s: s.max() * s.min() + s.prod() + s.median(),
    "mask": lambda s: (s[s > 1.5] ** 2).sum(),
    "ufuncs": lambda s: np.exp(s).sum() + np.log(s).mean() + np.add(s, s**2).sum(),
    "funcgrad": lambda s: fnp.sum(fnp.sin(s)) + fnp.dot(s, s),
    "numpy": lambda s: np.sum(s * s) + np.dot(s, s),
    "slices": lambda s: (s.iloc[1:] * 2.0).sum() + (s.iloc[::2] ** 2).sum(),
    "constants": lambda s: (s * SERIES + 2.0 / s - np.ones(3)).sum(),
    "cumulated": lambda s: (s.cumsum() ** 2).sum(),
    "to_numpy": lambda s: (s.to_numpy() ** 2).sum(),
    "values": lambda s: (s.values**3).sum(),
    "negative": lambda s: (-s).abs().sum() * 2.0,
    "comparison": lambda s: float((s > 2.5).sum()) * s.sum(),
    "joined": lambda s: (pd.concat([s, s * 2.0]) ** 2).sum(),
}


@pytest.mark.parametrize("name", OF_SERIES)
def test_series(name):
    f = OF_SERIES[name]
    expected = differences(lambda x: float(f(pd.Series(x, SERIES.index, name="rate"))), SERIES.to_numpy())
    for _ in range(2):
        found = grad(f)(SERIES)
        assert type(found) is pd.Series
        assert found.index.equals(SERIES.index)
        assert found.name == "rate"
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-7, atol=1e-7)
    tangent = pd.Series([0.5, -1.0, 2.0], SERIES.index, name="rate")
    pushed = jvp(f, (SERIES,), (tangent,))[1]
    assert float(pushed) == pytest.approx(expected @ tangent.to_numpy(), rel=1e-6, abs=1e-6)


def test_columns_are_writable():
    def written(s):
        s.iloc[0] = s.iloc[1] * 3.0
        return (s**2).sum()

    before = SERIES.copy()
    y = SERIES.to_numpy()
    np.testing.assert_allclose(grad(written)(SERIES).to_numpy(), [0.0, 20.0 * y[1], *(2.0 * y[2:])], rtol=1e-14)
    pd.testing.assert_series_equal(SERIES, before)

    def copied(s):
        x = s.to_numpy().copy()
        x[0] = 2.0
        return np.sum(x**2)

    np.testing.assert_array_equal(grad(copied)(SERIES).to_numpy(), [0.0, *(2.0 * SERIES.to_numpy()[1:])])


OF_FRAME = {
    "columns": lambda d: (d["u"] * d["v"]).sum(),
    "attributes": lambda d: (d.u**2 + d.v).mean(),
    "reductions": lambda d: (d[["u", "v"]] ** 2).sum().sum(),
    "assigned": lambda d: d.assign(w=d.u * d.v)["w"].sum(),
    "rows": lambda d: d.loc[10, "u"] * d.iloc[1, 2],
    "selected": lambda d: (d[d["name"] == "y"]["v"] ** 2).sum(),
}


@pytest.mark.parametrize("name", OF_FRAME)
def test_frames(name):
    f = OF_FRAME[name]

    def made(values):
        return FRAME.assign(u=values[0], v=values[1])

    expected = differences(lambda x: float(f(made(x))), FRAME[["u", "v"]].to_numpy().T)
    found = grad(f)(FRAME)
    assert type(found) is pd.DataFrame
    assert list(found.columns) == ["u", "name", "v"]
    assert list(found["name"]) == ["x", "y"]
    assert found.index.equals(FRAME.index)
    np.testing.assert_allclose([found["u"], found["v"]], expected, rtol=1e-7, atol=1e-7)


OF_ARRAY = {
    "number with labels": lambda d: (d**2).sum(),
    "data": lambda d: (d**2).mean().data,
    "float": lambda d: float((d**2).mean()),
    "by label": lambda d: (d.sel(t=10) ** 2).sum() + d.isel(x=0).mean(),
    "by name": lambda d: (d.sum("x") ** 2).mean("t"),
    "transposed": lambda d: d.transpose("x", "t").data[0, 1] ** 2,
    "where": lambda d: d.where(d > 2.5, 0.0).max() + xr.where(d > 3.5, d**2, d).sum(),
    "ufuncs": lambda d: np.exp(d).mean(dim="t").sum() + np.sqrt(d).sum(),
    "differences": lambda d: (d.diff("x") ** 2).sum() + d.std() + d.var("t").sum(),
    "contraction": lambda d: (d @ d) + xr.dot(d, ARRAY, dim=["t", "x"]),
    "rolling": lambda d: (d.rolling(x=2).mean() ** 2).sum(),
    "joined": lambda d: (xr.concat([d, d * 2.0], "t") ** 2).sum(),
    "renamed": lambda d: (d.rename(x="y") * ARRAY.rename(x="y")).sum(),
    "broadcast": lambda d: (d.isel(t=0) * d).sum(),
    "funcgrad": lambda d: fnp.sum(fnp.sin(d)) + fnp.sum(d.data * 2.0),
    "shifted": lambda d: (d.shift(x=1, fill_value=0.0) * d).sum(),
}


@pytest.mark.parametrize("name", OF_ARRAY)
def test_arrays_with_names(name):
    f = OF_ARRAY[name]
    expected = differences(lambda x: float(f(ARRAY.copy(data=x))), ARRAY.to_numpy())
    for _ in range(2):
        found = grad(f)(ARRAY)
        assert found.dims == ("t", "x")
        assert found.coords.equals(ARRAY.coords)
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-6, atol=1e-6)


def test_datasets():
    def f(d):
        return (d["a"] * d["b"]).sum() + (d.b**2).sum()

    value, found = value_and_grad(f)(DATASET)
    assert float(value) == float(f(DATASET))
    assert set(found.data_vars) == {"a", "b", "label"}
    np.testing.assert_allclose(found["a"], np.broadcast_to(DATASET["b"], (2, 3)))
    np.testing.assert_allclose(found["b"], ARRAY.sum("t") + 2 * DATASET["b"])
    assert list(found["label"].values) == list("pqr")


WRAPPED = {
    "array": lambda x: (xr.DataArray(x, dims="x") ** 2).sum("x").data,
    "with labels": lambda x: (xr.DataArray(x, dims=("x",), coords={"x": [1, 2, 3]}).sel(x=2) ** 2).data,
    "beside another": lambda x: (xr.DataArray(x, dims=("x",)) * ARRAY).sum("x").mean().data,
    "returned": lambda x: np.exp(xr.DataArray(x, dims=("x",))).mean(),
    "dataset": lambda x: (xr.Dataset({"a": ("x", x)})["a"] ** 2).sum(),
    "series": lambda x: (pd.Series(x, index=list("abc")) * SERIES).sum(),
    "series by label": lambda x: pd.Series(x, index=list("abc"))["b"] ** 2,
    "frame": lambda x: pd.DataFrame({"u": x, "v": x**2}).sum().sum(),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_tables_made_of_traced_arrays(name):
    f, x = WRAPPED[name], np.array([0.5, 1.5, 2.0])
    np.testing.assert_allclose(grad(f)(x), differences(f, x), rtol=1e-6, atol=1e-7)


T = np.arange(6.0)


def timed(x):
    return xr.DataArray(x, dims="t", coords={"t": T})


def pair(x):
    least, running = xr.apply_ufunc(
        lambda a: (np.min(a, -1), np.cumsum(a, -1)), timed(x), input_core_dims=[["t"]], output_core_dims=[[], ["t"]]
    )
    return least * (running**2).sum()


def first_or_twice_the_next(a):
    return a[0] if a[0] > 1.0 else 2.0 * a[1]


LABELLED = {
    "a function of arrays": lambda x: xr.apply_ufunc(lambda a: a**2 + np.sin(a), timed(x)).sum(),
    "a function to a number": lambda x: xr.apply_ufunc(
        np.sum, timed(x) ** 2, input_core_dims=[["t"]], kwargs={"axis": -1}
    ),
    "a function of two": lambda x: xr.apply_ufunc(lambda a, k: a**k, timed(x), x[0]).mean(),
    "a function with two results": pair,
    "rows": lambda x: (
        xr.apply_ufunc(np.dot, timed(x).expand_dims(q=3), timed(T), input_core_dims=[["t"], ["t"]], vectorize=True) ** 2
    ).sum(),
    "rows with branches": lambda x: xr.apply_ufunc(
        first_or_twice_the_next, timed(x).expand_dims(q=[1, 2]), input_core_dims=[["t"]], vectorize=True
    ).prod(),
    "a choice": lambda x: (xr.where(timed(x) > 1.0, x[0], timed(x)) ** 2).sum(),
    "full": lambda x: (xr.full_like(timed(T), x[0]) * timed(T)).sum() * (xr.ones_like(timed(T)) * x).mean(),
    "broadcast": lambda x: np.multiply(*xr.broadcast(timed(x), xr.DataArray([1.0, 3.0], dims="u"))).std(),
    "largest": lambda x: timed(x).isel(t=timed(x).argmax("t")) ** 2,
    "rows of a condition": lambda x: (timed(x).where(timed(x) > 1.0).dropna("t") ** 2).sum(),
    "polynomial": lambda x: (xr.polyval(timed(T), timed(x).polyfit("t", 2).polyfit_coefficients) ** 2).sum(),
    "weights": lambda x: timed(T).weighted(timed(x**2)).mean() ** 2,
    "groups": lambda x: (timed(x).groupby(xr.DataArray(T % 2, dims="t", name="k")).mean() ** 2).sum(),
    "windows": lambda x: (timed(x).rolling(t=3, center=True, min_periods=1).mean() ** 2).sum(),
    "blocks": lambda x: (timed(x).coarsen(t=2).max() ** 2).sum() + timed(x).integrate("t") ** 2,
}


@pytest.mark.parametrize("name", LABELLED)
def test_methods_and_functions_of_xarray(name):
    f, x = LABELLED[name], np.array([1.3, 0.7, 2.1, 1.6, 0.9, 2.4])
    value, gradient = value_and_grad(f)(x)
    np.testing.assert_allclose(value, float(f(x)), rtol=1e-12)
    np.testing.assert_allclose(gradient, differences(lambda x: float(f(x)), x, 1e-5), rtol=1e-6, atol=1e-7)
    directional = differences(lambda h: grad(f)(x + h * x), 0.0, 1e-5)
    np.testing.assert_allclose(hessian(f)(x) @ x, directional, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, 1.01 * x]))[1], grad(f)(1.01 * x), rtol=1e-10)


def test_differing_positions_in_batch_raise():
    f = lambda x: timed(x).isel(t=timed(x).argmax("t"))
    with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
        vmap(f)(np.stack([T, -T]))


def test_traced_labels_of_xarray_raise():
    f = lambda x: xr.DataArray(T, dims="t", coords={"t": x}).interp(t=1.5)
    with pytest.raises(ConversionError, match=r"xarray accepts no traced values.*interp\(t, labels, table\.data\)"):
        grad(f)(T)


def test_tables_in_other_containers():
    found = grad(lambda p: (p["s"] ** 2).sum() * p["k"])({"s": SERIES, "k": 2.0})
    assert found["s"].tolist() == [4.0, 8.0, 12.0]
    assert found["k"] == 14.0
    value, pullback = vjp(lambda d: d * 2.0, ARRAY)
    assert value.identical(ARRAY * 2.0) or value.equals(ARRAY * 2.0)
    assert pullback(value)[0].equals(ARRAY * 4.0)


def test_mismatched_labels_raise():
    other = pd.Series([1.0, 2.0, 3.0], index=list("xyz"), name="rate")
    with pytest.raises(FuncgradError, match="structure"):
        jvp(lambda s: s.sum(), (SERIES,), (other,))
    with pytest.raises(FuncgradError, match="structure"):
        jvp(lambda d: d.sum(), (ARRAY,), (ARRAY.rename(x="y"),))


def test_jacobians_are_arrays():
    assert jacrev(lambda s: s.to_numpy() ** 2)(SERIES).tolist() == np.diag([2.0, 4.0, 6.0]).tolist()
    assert jacrev(lambda d: fnp.sum(d.data, axis=1))(ARRAY).shape == (2, 2, 3)


#: Functions of tables and their arguments, and the tables in which their Jacobians are, if in any.
JACOBIANS = {
    "series to series": (lambda s: s**2 * s["a"], SERIES, np.ndarray),
    "series to number": (lambda s: (s**3).prod(), SERIES, pd.Series),
    "number to series": (lambda x: x * SERIES**x, 2.0, pd.Series),
    "series in a dictionary": (lambda s: {"all": s.ewm(com=1.0).mean() ** 2, "first": s["a"]}, SERIES, dict),
    "frame to series": (lambda f: f["u"] * f["v"], FRAME, dict),
    "frame to frame": (lambda f: f[["u", "v"]] ** 2 * f["u"].sum(), FRAME, dict),
    "frame to number": (lambda f: (f["u"] * f["v"]).prod(), FRAME, pd.DataFrame),
    "number to frame": (lambda x: x**2 * FRAME[["u", "v"]], 2.0, pd.DataFrame),
    "array with labels": (lambda d: d.mean("t") ** 2, ARRAY, np.ndarray),
    "number to array with labels": (lambda x: x**2 * ARRAY, 2.0, xr.DataArray),
    "dataset to array with labels": (lambda d: d["a"] * d["b"], DATASET, dict),
    "dataset to dataset": (lambda d: d[["a", "b"]] * d["b"].sum(), DATASET, dict),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians_of_tables(name):
    f, x, kind = JACOBIANS[name]
    leaves, spec = tree.flatten(x)
    sizes = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    flat = np.concatenate([np.ravel(leaf) for leaf in leaves])

    def of_flat(v):
        parts = [np.reshape(v, np.shape(leaf)) for v, leaf in zip(np.split(v, sizes), leaves, strict=True)]
        return np.concatenate([np.ravel(leaf) for leaf in tree.leaves(f(tree.unflatten(spec, parts)))])

    def matrix(found):
        blocks = iter(tree.leaves(found))
        return np.block([[np.reshape(next(blocks), (np.size(y), -1)) for _ in leaves] for y in tree.leaves(f(x))])

    expected = np.stack([(of_flat(flat + e) - of_flat(flat - e)) / 2e-5 for e in 1e-5 * np.eye(flat.size)], axis=1)
    for jacobian_of in (jacrev, jacfwd):
        found = jacobian_of(f)(x)
        assert type(found) is kind
        np.testing.assert_allclose(matrix(found), expected, rtol=1e-6, atol=1e-7)


def test_hessians_of_tables():
    found = hessian(lambda s: (s**3).sum() + s["a"] * s["c"])(SERIES)
    np.testing.assert_allclose(found, [[6.0, 0.0, 1.0], [0.0, 12.0, 0.0], [1.0, 0.0, 18.0]])
    found = hessian(lambda f: (f["u"] * f["v"] ** 2).sum())(FRAME)
    np.testing.assert_allclose(found["u"]["v"], np.diag(2 * FRAME["v"]))
    np.testing.assert_allclose(found["v"]["v"], np.diag(2 * FRAME["u"]))
    found = hessian(lambda d: (d.mean("t") ** 3).sum())(ARRAY)
    np.testing.assert_allclose(found[0, :, 1], np.diag(1.5 * ARRAY.mean("t")))


def test_jacobians_of_equal_columns_raise():
    twice = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    with pytest.raises(InputError, match=r"got equal ones, \['a', 'a'\]. Rename"):
        jacrev(lambda f: f.sum(axis=1) ** 2)(twice)


def test_cotangents_of_tables_are_tables():
    assert vjp(lambda s: s**2, SERIES)[1](SERIES)[0].equals(2 * SERIES**2)
    pulled = vjp(lambda f: {"twice": 2 * f[["u", "v"]], "sum": f["u"].sum()}, FRAME)[1]
    found = pulled({"twice": FRAME[["u", "v"]], "sum": 1.0})[0]
    assert found["u"].tolist() == (2 * FRAME["u"] + 1).tolist()
    assert found["v"].tolist() == (2 * FRAME["v"]).tolist()
    with pytest.raises(InputError, match="another structure"):
        pulled({"twice": FRAME[["v", "u"]], "sum": 1.0})


def test_tangents_of_frames_are_frames():
    value, tangent = jvp(lambda x: x**2 * FRAME[["u", "v"]], (3.0,), (1.0,))
    assert value.equals(FRAME[["u", "v"]] * 9.0)
    assert tangent.equals(FRAME[["u", "v"]] * 6.0)


def test_lost_derivative_raises():
    with pytest.raises((ConversionError, TypeError)):
        grad(lambda s: s.rolling(2, method="table").sum().sum())(SERIES)
    with pytest.raises((ConversionError, TypeError)):
        grad(lambda d: (xr.DataArray(d.to_series()) ** 2).sum())(ARRAY)


def test_table_array_behaves_like_its_array():
    def f(x):
        held = TableArray(x)
        assert (held.shape, held.ndim, held.size, len(held), held.nbytes) == ((3,), 1, 3, 3, 24)
        assert bool(held[0] < held[1])
        assert type(copy.copy(held)) is type(copy.deepcopy(held)) is TableArray
        assert repr(held) == repr(x)
        assert not hasattr(held, "__missing__")
        assert unlabel_number(held[0]) is not held
        return fnp.sum(held * held) + fnp.dot(held, np.ones(3)) + unlabel_number(held.sum()) + 2.0 / held[0]

    np.testing.assert_allclose(grad(f)(np.array([1.0, 2.0, 3.0])), [2.0, 6.0, 8.0])
    assert tree.leaves(TableArray(1.0)) == [1.0]


def test_trees_of_leaves_that_fill_no_table():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    for table, leaves in ((SERIES, [7]), (frame, [7, 7])):
        marked = tree.map(lambda leaf: 7, table)
        assert type(marked) is type(table)
        assert marked.shape == table.shape
        assert tree.leaves(marked) == leaves
        assert tree.leaves(tree.map(lambda a, b: a + b, marked, marked)) == [2 * leaf for leaf in leaves]
        assert hash(tree.structure(table)) == hash(tree.structure(table * 2.0))
    assert tree.map(lambda leaf: leaf[:1], frame) == {"a": [1.0], "b": [3.0]}
    dataset = xr.Dataset({"p": ("u", [1.0, 2.0])})
    assert tree.map(lambda leaf: leaf[:1], dataset) == {"p": [1.0]}
    assert hash(tree.structure(dataset)) == hash(tree.structure(dataset * 2.0))
    nowhere = tree.map(lambda leaf: None, frame)
    assert vmap(lambda x, f: f["a"] * x, in_axes=(0, nowhere))(np.ones(3), frame).shape == (3, 2)
