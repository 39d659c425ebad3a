"""Code written for xarray whose methods convert arrays, or write to tables, compared with central differences."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import differences

from funcgrad import as_written, grad, hessian, jvp, value_and_grad, vmap
from funcgrad.errors import ConcretizationError, ConversionError, ReadOnlyError

T = np.array([0.0, 1.0, 2.5, 3.0, 4.0, 6.0])
X = np.array([0.3, -1.2, 0.8, 1.7, -0.4, 0.9])
GRID = xr.DataArray(
    np.sin(np.arange(18.0)).reshape(6, 3), dims=("t", "x"), coords={"t": T, "x": [10, 20, 30]}, name="grid"
)
GAPS = GRID.where(GRID > -0.5)
WEIGHTS = xr.DataArray(np.linspace(0.5, 1.0, 6), dims="t", coords={"t": T})
WRITTEN = xr.DataArray(np.array([1.0, 2.0, 3.0]), dims="t")
WRITTEN_VALUES = WRITTEN.values


def line(x):
    return xr.DataArray(x, dims="t", coords={"t": T}, name="v", attrs={"unit": "K"})


def days(x):
    return xr.DataArray(x, dims="t", coords={"t": pd.date_range("2020-01-01", periods=6, freq="12h")})


def places(x):
    return xr.DataArray((2 + 0.1 * x).reshape(2, 3), dims=("y", "z"))  # in xarray 2024.11, one axis makes an index


def gaps(x):
    made = line(x**2)
    return made.where(~made.t.isin([1.0, 3.0]))


def both(x):
    return xr.Dataset({"a": line(x**2), "b": GRID})


def total(table):
    if isinstance(table, xr.Dataset):
        return sum(total(table[name]) for name in table.data_vars)
    return (table * (1.0 + np.arange(table.size).reshape(table.shape))).sum() if table.ndim else table


METHODS = {
    "fillna with a traced number": lambda x: GAPS.fillna(x[0] ** 2),
    "fillna with a table": lambda x: gaps(x).fillna(WEIGHTS * x[0]),
    "where with a traced number": lambda x: GRID.where(GRID > 0, x[0] ** 2),
    "where with drop": lambda x: line(x**2).where(line(x) > 0, drop=True),
    "clip by NumPy's function": lambda x: np.clip(line(x**2), 0.5, x[0] + 1.0) * line(x),
    "interpolate_na": lambda x: gaps(x).interpolate_na("t"),
    "interpolate_na by position": lambda x: gaps(x).interpolate_na("t", use_coordinate=False),
    "interpolate_na, extrapolated": lambda x: gaps(x).interpolate_na("t", fill_value="extrapolate"),
    "interp at a number": lambda x: line(x**2).interp(t=1.3),
    "interp at numbers": lambda x: line(x**2).interp(t=[0.2, 1.3, 5.0]),
    "interp, nearest": lambda x: line(x**2).interp(t=[0.2, 1.3, 5.0], method="nearest"),
    "interp, cubic": lambda x: line(x**2).interp(t=[0.2, 1.3, 5.0], method="cubic"),
    "interp on a plane": lambda x: (GRID * line(x**2)).interp(t=[0.2, 1.3], x=[12.0, 25.0]),
    "interp at traced places": lambda x: (GRID * line(x)).interp(t=places(x)),
    "interp along one axis at traced places": lambda x: line(x**2).interp(t=places(x)),
    "interp of constants at traced places": lambda x: GRID.interp(t=places(x**2)),
    "interp_like": lambda x: line(x**2).interp_like(xr.DataArray([1.0, 2.0], dims="t", coords={"t": [0.5, 2.7]})),
    "interp after other methods": lambda x: np.exp(line(x).rolling(t=2).mean().dropna("t")).interp(t=[1.3, 2.0]),
    "resample": lambda x: days(x**2).resample(t="6h").interpolate("linear"),
    "weighted quantile": lambda x: (GRID * line(x**2)).weighted(WEIGHTS).quantile(0.3, dim="t"),
    "curvefit": lambda x: line(x**2).curvefit("t", lambda t, a, b: a + b * t).curvefit_coefficients,
    "reduce": lambda x: (GRID * line(x**2)).reduce(np.mean, "t"),
    "windows reduced": lambda x: line(x**2).rolling(t=3).reduce(np.sum),
    "deviation in windows": lambda x: line(x**2).rolling(t=3).var() ** 0.5,
    "groups": lambda x: (
        line(x**2).assign_coords(g=("t", list("aabbca"))).groupby("g").map(lambda part: part - part.mean())
    ),
    "to_dataframe": lambda x: (
        (line(x).to_dataframe(name="v")["v"] ** 2).sum()
        + xr.Dataset({"v": GRID * line(x), "w": line(x) ** 2, "c": GRID})
        .to_dataframe(dim_order=["t", *[dim for dim in GRID.dims if dim != "t"]])
        .prod(axis=1)
        .iloc[3:]
        .sum()
        + (GRID * line(x)).stack(z=GRID.dims).rename("q").to_dataframe()["q"].iloc[2] ** 3
    ),
    "to_pandas": lambda x: (line(x).to_pandas() ** 2).sum() + (line(x).to_series() ** 3).sum(),
    "values": lambda x: (line(x).values ** 2).sum() + (line(x).to_numpy() ** 3).sum(),
    "full_like": lambda x: xr.full_like(GRID, x[0] ** 2),
    "copy with data": lambda x: GRID.copy(data=GRID.values * x[0] ** 2),
    "coordinates without index": lambda x: line(x).assign_coords(q=("t", x**2)).q * line(x),
    "variable": lambda x: xr.Variable("t", x) ** 2,
    "map_blocks": lambda x: line(x).map_blocks(lambda part: part**2),
    "integrals": lambda x: line(x**2).integrate("t") * line(x).cumulative_integrate("t").differentiate("t"),
    "dot": lambda x: GRID.dot(line(x**2)) + xr.dot(GRID, line(x), WEIGHTS, dim="t"),
    "polyfit": lambda x: xr.polyval(WEIGHTS.t, line(x**2).polyfit("t", 2).polyfit_coefficients),
    "dataset: interp": lambda x: both(x).interp(t=[0.3, 1.1]),
    "dataset: fillna": lambda x: xr.Dataset({"a": gaps(x), "b": GAPS}).fillna(x[0]),
    "dataset: interpolate_na": lambda x: xr.Dataset({"a": gaps(x), "b": GRID}).interpolate_na("t"),
    "dataset: windows": lambda x: both(x).rolling(t=2).mean(),
    "dataset: weights": lambda x: both(x).weighted(WEIGHTS).mean("t"),
}


def write_element(x):
    made = line(x * 1)
    made[0] = x[1] ** 2
    return made


def write_parts(x):
    made = xr.zeros_like(GRID)
    made[0] = x[:3] ** 2
    made[1, 2] = x[3] ** 2
    made[{"t": xr.DataArray([2, 3], dims="k"), "x": xr.DataArray([1, 2], dims="k")}] = x[:2] ** 2
    return made


def write_by_labels(x):
    made = line(x**2)
    made.loc[1.0] = x[2] ** 3
    made.loc[{"t": 4.0}] = 3.0
    made.loc[{"t": slice(2, 3)}] *= x[0]
    return made


def write_values(x):
    made = line(np.zeros(6))
    made.values[2] = x[0] ** 2
    made.data[3] = x[1] ** 2
    made.values[4:] = x[:2] ** 2
    return made


def replace_values(x):
    first, second = line(np.zeros(6)), line(np.zeros(6))
    first.values = x**2
    second.data = x**3
    return first * second


def write_by_mask(x):
    made = line(x**2)
    made[made > 0.5] = x[0]
    return made


def write_in_a_loop(x):
    made = xr.DataArray(np.zeros(6), dims="t", coords={"t": T})
    for i in range(1, 6):
        made[i] = made[i - 1] * x[i] + x[0]
    return made


def write_to_views(x):
    made = line(x**2)
    part = made[1:4]
    made[1] = 0.0
    part[1] = x[0] ** 3
    made.T[3] = x[1] ** 2
    made.copy(deep=False)[0] = x[2] ** 2
    made.copy()[5] = 7.0
    return xr.Dataset({"made": made, "part": part.drop_vars("t").rename(t="u")})


def write_to_shared_arrays(x):
    first, second = np.zeros(6), np.zeros(6)
    table, other = xr.DataArray(first, dims="t"), xr.DataArray(second, dims="t")
    table[0] = x[0] ** 2
    second[1] = x[1] ** 2
    return xr.DataArray(first, dims="u") + other


def write_to_results(x):
    made = np.exp(xr.DataArray([0.0, 1.0, 2.0], dims="t"))
    made[1] = x[0] ** 2
    mean = GRID.mean("x")
    mean[0] = x[1] ** 2
    return xr.Dataset({"made": made.rename(t="u"), "mean": mean})


def write_to_dataset(x):
    made = xr.Dataset({"b": GRID.copy(), "c": ("t", np.zeros(6))})
    made["a"] = ("t", x**2)
    made["c"][0] = x[0] ** 2
    made["c"].values[1] = x[1] ** 2
    made["b"].loc[{"t": 1.0}] = x[:3] ** 2
    made.loc[{"t": 4.0}] = x[0] ** 2
    made["d"] = made.a * made.b
    return made


WRITES = [
    write_element,
    write_parts,
    write_by_labels,
    write_values,
    replace_values,
    write_by_mask,
    write_in_a_loop,
    write_to_views,
    write_to_shared_arrays,
    write_to_results,
    write_to_dataset,
]


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept context:DeprecationWarning")  # of xarray before 2024.10
@pytest.mark.parametrize("f", [*METHODS.values(), *WRITES], ids=[*METHODS, *[f.__name__ for f in WRITES]])
def test_derivatives(f):
    g = lambda x: total(f(x))
    value, gradient = value_and_grad(g)(X)
    np.testing.assert_allclose(value, float(g(X)), rtol=1e-10)
    np.testing.assert_allclose(gradient, differences(lambda x: float(g(x)), X, 1e-5), rtol=1e-6, atol=2e-5)
    np.testing.assert_allclose(jvp(g, (X,), (X,))[1], gradient @ X, rtol=1e-9)
    directional = differences(lambda h: grad(g)(X + h * X), 0.0, 1e-5)
    np.testing.assert_allclose(hessian(g)(X) @ X, directional, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(vmap(grad(g))(np.stack([X, 1.001 * X]))[1], grad(g)(1.001 * X), rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["interp at numbers", "interpolate_na", "where with drop", "dataset: interp", "reduce"]
)
def test_results_are_xarrays(name):
    f = METHODS[name]
    expected, (value, tangent) = f(X), jvp(f, (X,), (np.ones(6),))
    for found in (value, tangent):
        assert type(found) is type(expected)
        assert found.coords.identical(expected.coords)
        assert found.attrs == expected.attrs
    xr.testing.assert_allclose(value, expected, rtol=1e-13)


def test_table_arguments():
    f = lambda d: (d.interpolate_na("t") ** 2).sum() + d.interp(t=2.0, method="nearest")
    table = WEIGHTS.where(WEIGHTS.t != 3.0)
    slope = grad(f)(table)
    assert type(slope) is xr.DataArray
    h = 1e-6 * (WEIGHTS.t == 4.0)
    assert slope.sel(t=4.0).item() == pytest.approx(float(f(table + h) - f(table - h)) / 2e-6, rel=1e-6)

    def doubled(d):
        made = d.copy()
        made[0] = d[1] * 2
        return (made**2).sum()

    assert grad(doubled)(WRITTEN).values.tolist() == [0.0, 20.0, 6.0]
    with pytest.raises(ReadOnlyError, match="write to a copy"):
        grad(lambda d: (d.__setitem__(0, 3.0), (d**2).sum())[1])(WRITTEN)


def test_constants_of_the_program_are_kept():
    def f(x):
        WRITTEN[0] = x
        return WRITTEN.sum() + WRITTEN_VALUES.sum()

    assert grad(f)(7.0) == 2.0
    assert WRITTEN.values.tolist() == [1.0, 2.0, 3.0]


def test_types_are_xarrays():
    def f(x):
        made = xr.DataArray(x, dims="t")
        assert isinstance(made, xr.DataArray)
        return float(x[0]) * (type(made) is xr.DataArray) * x.sum()

    assert grad(f)(np.ones(3)).tolist() == [4.0, 1.0, 1.0]


def test_filling_forward_and_backward(monkeypatch):
    # xarray needs the package bottleneck for this; funcgrad does not call its function
    stand_in = ModuleType("bottleneck")
    stand_in.push = lambda array, n, axis: np.asarray(array)
    monkeypatch.setitem(sys.modules, "bottleneck", stand_in)
    weights = np.arange(1.0, 7.0)
    for fill, expected in {
        lambda d: d.ffill("t"): [3, 0, 7, 0, 5, 6],
        lambda d: d.bfill("t"): [1, 0, 5, 0, 9, 6],
        lambda d: xr.Dataset({"d": d}).ffill("t").d: [3, 0, 7, 0, 5, 6],
    }.items():
        f = lambda x, fill=fill: (fill(line(x).where(~line(x).t.isin([1.0, 3.0]))) * weights).sum()
        assert grad(f)(X).tolist() == expected
        assert vmap(grad(f))(np.stack([X, 2 * X]))[1].tolist() == expected
    long = lambda x: (line(x).where(line(x).t < 1.0).ffill("t", limit=2) * weights).sum()
    assert grad(long)(X).tolist() == [6, 0, 0, 0, 0, 0]


@pytest.mark.counts  # without them the write before the refusal is refused
def test_refused():
    with as_written(), pytest.raises(ConversionError, match="xarray accepts no traced values here"):
        grad(lambda x: line(x).interp(t=1.5))(X)
    apart = lambda x: line(np.where(x > 0, x, np.nan)).interpolate_na("t").sum()
    with pytest.raises(ConcretizationError, match="differs between examples"):
        vmap(apart)(np.stack([X, -X]))
