"""Bayesian regression by Hamiltonian Monte Carlo: several chains at once, by ``vmap``.

The data are ten measurements of 442 patients and the progression of a disease after a year (scikit-learn). The noise
is unknown and has heavy tails, so there is no closed form. The sampler needs the gradient of the log-density; ``vmap``
runs all chains at once. ``python examples/hamiltonian_monte_carlo.py`` draws ``out/hamiltonian_monte_carlo.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, progress, save
from sklearn.datasets import load_diabetes

import funcgrad.numpy as fnp
from funcgrad import value_and_grad, vmap

CHAINS, WARMUP, DRAWS, LEAPS = 4, (60 if QUICK else 300), (60 if QUICK else 700), 12
NAMES = ["intercept", *load_diabetes().feature_names]


def load():
    """Return measurements and answers, with mean 0 and variance 1; the first column of the measurements is ones."""
    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    return np.column_stack([np.ones(len(x)), x]), y


def log_density(position, x, y):
    """Return the log-density: normal weights, Student residuals with 4 degrees of freedom, a log-normal scale."""
    weights, log_scale = position[:-1], position[-1]
    residuals = (y - x @ weights) * fnp.exp(-log_scale)
    likelihood = -2.5 * fnp.sum(fnp.log1p(residuals**2 / 4)) - len(y) * log_scale
    return likelihood - 0.5 * fnp.sum(weights**2) - 0.5 * log_scale**2


def leapfrog(slopes, positions, momenta, gradients, step):
    """Return positions and momenta after ``LEAPS`` steps of a path that nearly conserves the energy."""
    for _ in range(LEAPS):
        momenta = momenta + 0.5 * step * gradients
        positions = positions + step * momenta
        values, gradients = slopes(positions)
        momenta = momenta + 0.5 * step * gradients
    return positions, momenta, values, gradients


def sample(x, y, rng):
    """Return the draws of all chains, and the share of proposals that were accepted after the warm-up."""
    slopes = vmap(value_and_grad(lambda position: log_density(position, x, y)))
    positions = rng.normal(size=(CHAINS, x.shape[1] + 1)) * 0.1
    values, gradients = slopes(positions)
    step, draws, taken = 0.02, [], []
    for t in progress(range(WARMUP + DRAWS), "sampling"):
        start = rng.normal(size=positions.shape)
        new, end, new_values, new_gradients = leapfrog(slopes, positions, start, gradients, step)
        gain = new_values - values - 0.5 * np.sum(end**2 - start**2, axis=1)
        chance = np.exp(np.minimum(gain, 0.0))
        accept = rng.uniform(size=CHAINS) < chance
        positions = np.where(accept[:, None], new, positions)
        gradients = np.where(accept[:, None], new_gradients, gradients)
        values = np.where(accept, new_values, values)
        if t < WARMUP:
            step *= np.exp(0.1 * (chance.mean() - 0.8))
        else:
            draws.append(positions)
            taken.append(accept.mean())
    return np.stack(draws, axis=1), float(np.mean(taken))


def between_chains(draws):
    """Return Gelman and Rubin's ratio (1992, section 2.2) of each parameter: 1 if the chains agree."""
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = n * draws.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt(((n - 1) / n * within + between / n) / within)


def main():
    x, y = load()
    draws, accepted = sample(x, y, np.random.default_rng(0))
    ratios = between_chains(draws)
    pooled = draws.reshape(-1, draws.shape[-1])
    mean, deviation = pooled.mean(axis=0), pooled.std(axis=0)
    print(f"accepted {accepted:.0%}; chains agree to {ratios.max():.3f} (1 is perfect)")
    for name, m, s in zip(NAMES, mean, deviation, strict=False):
        print(f"{name:>10}  {m:6.3f} ± {s:.3f}")
    least_squares = np.linalg.lstsq(x, y, rcond=None)[0]
    apart = np.abs(mean[:-1] - least_squares) / deviation[:-1]

    figure, axes = plt.subplots(figsize=(7, 4))
    axes.violinplot(list(pooled[:, :-1].T), showmedians=True)
    axes.plot(np.arange(1, len(least_squares) + 1), least_squares, "k_", markersize=14, label="least squares")
    axes.set_xticks(np.arange(1, len(NAMES) + 1), NAMES, rotation=45, ha="right")
    axes.set_ylabel("weight")
    axes.legend()
    save(figure, "hamiltonian_monte_carlo")
    assert accepted > 0.5
    assert ratios.max() < (1.5 if QUICK else 1.1)
    assert apart[[3, 4]].max() < 3, "body mass and blood pressure are well determined"


if __name__ == "__main__":
    main()
