"""Differentiating through an optimiser: penalties and a learning rate that are themselves learned.

Ridge regression has a separate penalty for each measurement, and is solved by a hundred steps of gradient descent with
momentum. The error on held-out patients is a function of the penalties and of the learning rate, and its gradient
goes through all the steps. ``checkpoint_chain`` keeps only a few states of the descent. Data: scikit-learn's
diabetes study. ``python examples/through_an_optimiser.py`` draws ``out/through_an_optimiser.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, progress, save
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import funcgrad.numpy as fnp
from funcgrad import checkpoint_chain, grad, value_and_grad

STEPS, OUTER = (20 if QUICK else 100), (8 if QUICK else 60)


def load():
    """Return training and held-out patients, scaled; forty columns of noise make penalties worthwhile."""
    x, y = load_diabetes(return_X_y=True)
    x = np.column_stack([x, np.random.default_rng(0).normal(size=(len(x), 40)) * x.std()])
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    return train_test_split(x, y, test_size=0.4, random_state=0)


def error(weights, x, y):
    return fnp.mean((x @ weights - y) ** 2)


def fitted(hyper, x, y, steps=STEPS):
    """Return weights after the descent, as a function of logarithms of the penalties and of the learning rate."""
    rate, penalties = fnp.exp(hyper["rate"]), fnp.exp(hyper["penalties"])
    slope = grad(lambda w: error(w, x, y) + fnp.sum(penalties * w**2))

    def step(state):
        weights, speed = state
        speed = 0.8 * speed - rate * slope(weights)
        return weights + speed, speed

    start = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    return checkpoint_chain(step, start, length=steps, budget=10)[0]


def main():
    x, held_x, y, held_y = load()
    hyper = {"rate": np.log(0.03), "penalties": np.full(x.shape[1], np.log(0.01))}
    outer = value_and_grad(lambda hyper: error(fitted(hyper, x, y), held_x, held_y))

    # Check the gradient through the whole descent as any other gradient: against a difference.
    direction = np.random.default_rng(1).normal(size=x.shape[1])
    _, slopes = outer(hyper)
    ahead, behind = ({**hyper, "penalties": hyper["penalties"] + e * direction} for e in (1e-5, -1e-5))
    measured = (outer(ahead)[0] - outer(behind)[0]) / 2e-5
    along = slopes["penalties"] @ direction
    print(f"along a direction: {along:.9f}, measured {measured:.9f}")

    errors = []
    for _ in progress(range(OUTER), "learning to learn"):
        value, slopes = outer(hyper)
        errors.append(float(value))
        moved = hyper["penalties"] - 0.2 * slopes["penalties"] / np.std(slopes["penalties"])
        hyper = {
            "rate": hyper["rate"] - 0.3 * np.clip(slopes["rate"], -0.5, 0.5),
            "penalties": np.minimum(moved, np.log(10.0)),  # with larger ones the inner descent would diverge
        }
    penalties = np.exp(hyper["penalties"])
    print(f"held-out error {errors[0]:.4f} -> {errors[-1]:.4f}, learning rate {np.exp(hyper['rate']):.4f}")
    print(f"largest penalty: {penalties[:10].max():.3f} on a measurement, {penalties[10:].max():.3f} on noise")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    left.plot(errors)
    left.set(xlabel="step of the outer descent", ylabel="held-out error")
    right.bar(np.arange(len(penalties)), penalties, color=["tab:blue"] * 10 + ["tab:grey"] * 40)
    right.set(xlabel="column (blue: measured, grey: noise)", ylabel="penalty", yscale="log")
    save(figure, "through_an_optimiser")
    assert abs(along - measured) < 1e-6 * abs(measured)
    assert errors[-1] < errors[0]
    assert penalties[10:].max() > penalties[:10].max(), "what only looked useful is given up"


if __name__ == "__main__":
    main()
