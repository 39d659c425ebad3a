"""A dose schedule: when and how much to give, with a two-compartment model restarted at every dose.

A drug is injected into the blood, passes to the tissue and back, and is eliminated. Each dose is a jump, so the
equation is solved from dose to dose. Amounts and times of doses are both differentiated; the times are ends of
intervals. The rates are fitted to blood samples of one patient; then the program chooses the schedule that keeps the
concentration near a target. ``python examples/dose_schedule.py`` draws ``out/dose_schedule.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, save

import funcgrad.numpy as fnp
from funcgrad import value_and_grad
from funcgrad.scipy import integrate, optimize

TRUE = np.log([0.4, 0.6, 0.35])  # rates of elimination, of the way to the tissue, and of the way back
HOURS, TARGET, DOSES = 24.0, 5.0, 3 if QUICK else 5


def flow(t, y, rates):
    """Return the rates of change of the amounts in blood and tissue."""
    return [-(rates[0] + rates[1]) * y[0] + rates[2] * y[1], rates[1] * y[0] - rates[2] * y[1]]


def concentrations(rates, amounts, times, wanted):
    """Return times and concentrations in the blood per dose interval, at the fractions ``wanted`` of the interval."""
    y, found = np.zeros(2), []
    ends = [*[times[i] for i in range(1, len(amounts))], HOURS]
    for i, end in enumerate(ends):
        y = y + fnp.stack([amounts[i], 0.0])
        at = (1 - wanted) * times[i] + wanted * end  # not after the end by a rounding error
        part = integrate.solve_ivp(flow, (times[i], end), y, "DOP853", at, args=(rates,), rtol=1e-7, atol=1e-7)
        found.append((at, part.y[0]))
        y = part.y[:, -1]
    return found


def main():
    rng = np.random.default_rng(0)
    fractions = np.linspace(0.1, 1.0, 8)

    def first(logs):
        return fnp.concatenate([y for _, y in concentrations(fnp.exp(logs), [10.0, 8.0], [0.0, 9.0], fractions)])

    samples = first(TRUE) * np.exp(0.03 * rng.normal(size=16))
    fit = optimize.least_squares(lambda logs: fnp.log(first(logs)) - np.log(samples), np.log([0.2, 0.2, 0.2]))
    rates = np.exp(fit.x)
    print("rates fitted", rates.round(3), "true", np.exp(TRUE).round(3))

    grid = np.linspace(0.0, 1.0, 12)[1:]

    def loss(plan):
        amounts = fnp.exp(plan[:DOSES])
        gaps = fnp.exp(plan[DOSES:])
        times = fnp.concatenate([np.zeros(1), fnp.cumsum(gaps)[:-1] / fnp.sum(gaps) * HOURS])
        parts = concentrations(rates, amounts, times, grid)
        weights = [(at[-1] - at[0]) / HOURS for at, _ in parts]
        return sum(w * fnp.mean((y - TARGET) ** 2) for w, (_, y) in zip(weights, parts, strict=True))

    start = np.concatenate([np.full(DOSES, np.log(6.0)), np.zeros(DOSES)])
    steps = {"maxiter": 8 if QUICK else 60}
    best = optimize.minimize(value_and_grad(loss), start, jac=True, method="L-BFGS-B", options=steps)
    print(f"mean squared error: {loss(start):.3f} with equal doses, {best.fun:.3f} with the chosen ones")

    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    for label, plan in (("equal doses", start), ("chosen", best.x)):
        gaps = np.exp(plan[DOSES:])
        times = np.append(0.0, np.cumsum(gaps)[:-1] / gaps.sum() * HOURS)
        parts = concentrations(rates, np.exp(plan[:DOSES]), times, np.linspace(0.0, 1.0, 60)[1:])
        axes.plot(*[np.concatenate(column) for column in zip(*parts, strict=True)], label=label)
        doses = zip(np.exp(plan[:DOSES]), times, strict=True)
        print(label, [f"{amount:.1f} at {time:.1f} h" for amount, time in doses])
    axes.axhline(TARGET, color="grey", linestyle=":")
    axes.set(xlabel="hours", ylabel="amount in the blood", title="doses of a two-compartment model")
    axes.legend()
    save(figure, "dose_schedule")


if __name__ == "__main__":
    main()
