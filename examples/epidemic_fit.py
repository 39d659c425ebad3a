"""An epidemic fitted: rates of an SIR model from weekly counts of infected people, with their uncertainty.

``solve_ivp`` solves the model. Least squares get their Jacobian by forward mode through the solver. The
curvature at the fit gives the uncertainty of the rates, of the number of first cases and of the day of the peak. The
peak is an event, whose time is an implicit function of the parameters and is differentiated as such.
``python examples/epidemic_fit.py`` draws ``out/epidemic_fit.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import save

import funcgrad.numpy as fnp
from funcgrad import jacfwd, jacrev
from funcgrad.scipy import integrate, optimize

PEOPLE, DAYS = 1000.0, np.arange(3.0, 60.0, 3.0)
TRUE = np.log([0.5, 0.15, 5.0])  # logarithms of the rates of infection and recovery, and of the number of first cases


def model(t, y, rates):
    """Return the rates of change of susceptible and infected people."""
    infections = rates[0] * y[0] * y[1] / PEOPLE
    return [-infections, infections - rates[1] * y[1]]


def peak(t, y, rates):
    """Return a value that is zero when the number of infected people neither grows nor falls."""
    return rates[0] * y[0] / PEOPLE - rates[1]


def solve(logarithms, **options):
    """Return the epidemic for the given logarithms of the parameters."""
    rates = fnp.exp(logarithms)
    start = fnp.stack([PEOPLE - rates[2], rates[2]])
    return integrate.solve_ivp(model, (0.0, 90.0), start, args=(rates,), rtol=1e-8, atol=1e-8, **options)


def main():
    rng = np.random.default_rng(3)
    expected = solve(TRUE, t_eval=DAYS).y[1]
    counted = rng.poisson(expected).astype(float)
    noise = np.sqrt(expected + 1.0)

    def residuals(logarithms):
        return (solve(logarithms, t_eval=DAYS).y[1] - counted) / noise

    fit = optimize.least_squares(residuals, np.log([0.3, 0.3, 1.0]))
    slopes = jacfwd(residuals)(fit.x)
    covariance = np.linalg.inv(slopes.T @ slopes)
    spread = np.sqrt(np.diag(covariance))
    for name, value, error, true in zip(["infection", "recovery", "first cases"], fit.x, spread, TRUE, strict=True):
        print(f"{name:12s} {np.exp(value):7.3f} +- {np.exp(value) * error:.3f}   true {np.exp(true):.3f}")

    day = lambda logarithms: solve(logarithms, events=peak).t_events[0][0]
    slope = jacrev(day)(fit.x)
    print(f"peak on day  {day(fit.x):7.2f} +- {np.sqrt(slope @ covariance @ slope):.2f}    true {day(TRUE):.2f}")

    t = np.linspace(0.0, 90.0, 181)
    curve = solve(fit.x, t_eval=t).y[1]
    along = jacfwd(lambda logarithms: solve(logarithms, t_eval=t).y[1])(fit.x)
    band = 2 * np.sqrt(np.einsum("ti,ij,tj->t", along, covariance, along))
    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    axes.fill_between(t, curve - band, curve + band, alpha=0.3, label="two standard deviations")
    axes.plot(t, curve, label="fit")
    axes.plot(DAYS, counted, "k.", label="counted")
    axes.axvline(day(fit.x), color="grey", linestyle=":")
    axes.set(xlabel="day", ylabel="infected", title="an SIR model fitted")
    axes.legend()
    save(figure, "epidemic_fit")


if __name__ == "__main__":
    main()
