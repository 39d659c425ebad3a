"""An inverse problem through a differential equation: sources and sinks of carbon dioxide from its measurements.

The data are from Mauna Loa, 1959 to 2001 (statsmodels). The model of the yearly mean c(t), in parts per million, is

    dc/dt = e exp(g (t - 1959)) - k (c - 280)

Emissions grow by g a year. Land and sea take up a share k, about a fiftieth a year, of the excess over the
concentration before industry. Least squares find emissions, their growth and the first concentration; the Jacobian
goes through all steps of the solver and gives error bars of a forecast. ``python examples/carbon_dioxide.py`` draws
``out/carbon_dioxide.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import save
from statsmodels.datasets import co2

import funcgrad.numpy as fnp
from funcgrad import jacfwd, jacrev
from funcgrad.interop.scipy import least_squares
from funcgrad.scipy.integrate import odeint

BEFORE_INDUSTRY, UPTAKE, START = 280.0, 0.02, 1959.0


def load():
    """Return the years, and the mean of the measurements of each year."""
    weekly = co2.load().data["co2"].dropna()
    yearly = weekly.groupby(weekly.index.year).mean()
    complete = weekly.groupby(weekly.index.year).size() > 40
    return yearly.index[complete].to_numpy(float), yearly[complete].to_numpy(float)


def flow(c, t, emissions, growth, uptake):
    return emissions * fnp.exp(growth * (t - START)) - uptake * (c - BEFORE_INDUSTRY)


def concentrations(params, years):
    """Return the solution of the equation at ``years``; the first year is the initial time."""
    args = params["emissions"], params["growth"], params.get("uptake", UPTAKE)
    return odeint(flow, params["first"], years, args, rtol=1e-11, atol=1e-11)[:, 0]


def by_hand(params, years):
    """Return the solution in closed form."""
    t, g, k = years - years[0], params["growth"], params["uptake"]
    e = params["emissions"] * np.exp(g * (years[0] - START)) / (g + k)
    return BEFORE_INDUSTRY + e * np.exp(g * t) + (params["first"] - BEFORE_INDUSTRY - e) * np.exp(-k * t)


def main():
    years, measured = load()
    guess = {"emissions": 1.0, "growth": 0.02, "first": measured[0]}

    # Compute the same derivatives in three ways: forward and backward through the steps, and from the closed form.
    at = {**guess, "uptake": UPTAKE}
    forward = jacfwd(concentrations)(at, years)["uptake"]
    backward = jacrev(concentrations)(at, years)["uptake"]
    exact = jacfwd(by_hand)(at, years)["uptake"]
    apart = max(np.abs(forward - backward).max(), np.abs(forward - exact).max())
    print(f"dc/dk in forward mode, reverse mode and closed form: largest difference {apart:.1e}")

    found = least_squares(lambda p: concentrations(p, years) - measured, guess, x_scale="jac")
    params, residuals = found.x, concentrations(found.x, years) - measured
    names = list(params)
    jacobian = np.column_stack([jacfwd(concentrations)(params, years)[name] for name in names])
    covariance = np.linalg.inv(jacobian.T @ jacobian) * np.sum(residuals**2) / (len(years) - len(names))
    for name, deviation in zip(names, np.sqrt(np.diag(covariance)), strict=True):
        print(f"{name:>10} {params[name]:9.4f} ± {deviation:.4f}")
    print(f"typical residual {residuals.std():.2f} ppm over {len(years)} years")

    ahead = np.arange(years[0], 2026.0)
    slopes = jacfwd(concentrations)(params, ahead)
    slopes = np.column_stack([slopes[name] for name in names])
    error = np.sqrt(np.sum((slopes @ covariance) * slopes, axis=1))
    forecast = concentrations(params, ahead)
    print(f"forecast for 2025: {forecast[-1]:.1f} ± {2 * error[-1]:.1f} ppm")

    figure, axes = plt.subplots(figsize=(6.5, 4))
    axes.plot(years, measured, "k.", markersize=4, label="measured")
    axes.plot(ahead, forecast, label="fitted, and forecast")
    axes.fill_between(ahead, forecast - 2 * error, forecast + 2 * error, alpha=0.3, label="two standard deviations")
    axes.set(xlabel="year", ylabel="carbon dioxide, ppm")
    axes.legend()
    save(figure, "carbon_dioxide")
    assert apart < 1e-5
    assert residuals.std() < 1.0


if __name__ == "__main__":
    main()
