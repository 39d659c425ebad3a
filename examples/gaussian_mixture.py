"""A Gaussian mixture fitted by its likelihood: SciPy's L-BFGS with exact gradients of a tree of parameters.

The data are three kinds of iris, with four measurements of each flower (scikit-learn); the fit does not see the kinds.
Covariances are products of triangular factors, weights a softmax. Every vector of parameters is therefore a mixture,
without constraints. The likelihood is compared with scikit-learn's expectation maximisation.
``python examples/gaussian_mixture.py`` draws ``out/gaussian_mixture.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, save
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import funcgrad.numpy as fnp
from funcgrad import vmap
from funcgrad.interop.scipy import minimize

KINDS, STEPS = 3, (40 if QUICK else 400)
DIAGONAL = np.arange(4)


def factor(free):
    """Return the factor of a precision matrix: a lower triangle with a positive diagonal, from a free matrix."""
    return fnp.tril(free, -1) + fnp.diag(fnp.exp(free[DIAGONAL, DIAGONAL]))


def log_normal(x, mean, free):
    """Return the logarithm of a normal density with precision ``F F'``, at the rows of ``x``."""
    whitened = (x - mean) @ factor(free)
    log_det = fnp.sum(free[DIAGONAL, DIAGONAL])
    return log_det - 0.5 * fnp.sum(whitened**2, axis=1) - 2 * np.log(2 * np.pi)


def joint(params, x):
    """Return the logarithm of each component's weighted density at each flower."""
    densities = vmap(log_normal, in_axes=(None, 0, 0), out_axes=1)(x, params["means"], params["factors"])
    return fnp.log_softmax(params["weights"]) + densities


def loss(params, x):
    """Return minus the mean log-likelihood; a weak prior keeps a component from collapsing on one flower."""
    return -fnp.mean(fnp.logsumexp(joint(params, x), axis=1)) + 1e-4 * fnp.mean(params["factors"] ** 2)


def ellipse(mean, free, turns):
    """Return the points at two standard deviations, in the plane of the last two measurements."""
    precision = factor(free) @ factor(free).T
    covariance = np.linalg.inv(precision)[2:, 2:]
    circle = np.stack([np.cos(turns), np.sin(turns)])
    return mean[2:, None] + 2 * np.linalg.cholesky(covariance) @ circle


def main():
    data = load_iris()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    rng = np.random.default_rng(0)
    starts = [
        {
            "weights": np.zeros(KINDS),
            "means": x[rng.choice(len(x), KINDS, replace=False)],
            "factors": np.stack([0.3 * np.eye(4)] * KINDS),
        }
        for _ in range(2 if QUICK else 6)
    ]
    found = [minimize(loss, start, (x,), method="L-BFGS-B", options={"maxiter": STEPS}) for start in starts]
    best = min(found, key=lambda result: result.fun)
    params = best.x
    theirs = GaussianMixture(KINDS, n_init=10, random_state=0, reg_covar=1e-6).fit(x)
    ours = np.mean(np.asarray(fnp.logsumexp(joint(params, x), axis=1)))
    group = np.asarray(joint(params, x)).argmax(axis=1)
    agreement = adjusted_rand_score(data.target, group)
    print(f"{best.nit} steps; mean log-likelihood {ours:.5f}, scikit-learn's {theirs.score(x):.5f}")
    print(f"agreement of the groups with the kinds of iris: {agreement:.3f} (1 is perfect)")

    figure, axes = plt.subplots(figsize=(6, 4.5))
    for k, colour in enumerate(("tab:blue", "tab:orange", "tab:green")):
        axes.scatter(*x[data.target == k, 2:].T, s=12, color=colour, label=data.target_names[k])
        axes.plot(*ellipse(params["means"][k], params["factors"][k], np.linspace(0, 2 * np.pi, 90)), "k", linewidth=1)
    axes.set(xlabel="length of petals, scaled", ylabel="width of petals, scaled", title="two standard deviations")
    axes.legend()
    save(figure, "gaussian_mixture")
    assert ours > theirs.score(x) - (0.2 if QUICK else 0.05)


if __name__ == "__main__":
    main()
