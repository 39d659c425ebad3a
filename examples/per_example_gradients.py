"""Gradients of single examples: training on which no single example has much influence.

``vmap(grad(loss))`` computes the gradient of every example of a batch at once. Each is clipped in length; the mean gets
noise: differentially private stochastic gradient descent (Abadi and others 2016, algorithm 1), on scikit-learn's
handwritten digits. ``python examples/per_example_gradients.py`` draws ``out/per_example_gradients.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, progress, save
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import funcgrad.numpy as fnp
from funcgrad import compose_left, curry, grad, tree, vmap

EPOCHS, BATCH, RATE, CLIP, NOISE = (3 if QUICK else 25), 64, 0.5, 0.5, 0.02


@curry
def linear(layer, x):
    return x @ layer["w"] + layer["b"]


def logits(params, x):
    return compose_left(linear(params["hidden"]), fnp.tanh, linear(params["out"]))(x)


def loss(params, x, label):
    """Return minus the logarithm of the probability of the label of one example."""
    return -fnp.log_softmax(logits(params, x))[label]


def clipped(gradient):
    """Return the gradient of one example, scaled down to a length of at most ``CLIP``."""
    length = fnp.sqrt(sum(fnp.sum(g**2) for g in tree.leaves(gradient)))
    factor = fnp.minimum(1.0, CLIP / (length + 1e-12))
    return tree.map(lambda g: g * factor, gradient), length


def init(rng):
    return {
        "hidden": {"w": rng.normal(0, 0.15, (64, 32)), "b": np.zeros(32)},
        "out": {"w": rng.normal(0, 0.15, (32, 10)), "b": np.zeros(10)},
    }


def learn(x, digits, private, rng):
    """Return the parameters after some epochs, and the lengths of the gradients of the last epoch."""
    params, lengths = init(np.random.default_rng(1)), []
    each = vmap(compose_left(grad(loss), clipped), in_axes=(None, 0, 0))
    for _ in progress(range(EPOCHS), "private" if private else "plain"):
        lengths = []
        for batch in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
            gradients, sizes = each(params, x[batch], digits[batch])
            lengths.append(sizes)
            if private:
                step = tree.map(lambda g: g.mean(axis=0) + NOISE * CLIP * rng.normal(size=g.shape[1:]) / 8, gradients)
            else:
                step = grad(lambda p, b=batch: fnp.mean(vmap(loss, in_axes=(None, 0, 0))(p, x[b], digits[b])))(params)
            params = tree.map(lambda p, g: p - RATE * g, params, step)
    return params, np.concatenate(lengths)


def main():
    rng = np.random.default_rng(0)
    x, digits = load_digits(return_X_y=True)
    x, held_out, digits, truth = train_test_split(x / 16.0, digits, random_state=0)

    params = init(rng)
    gradients = vmap(grad(loss), in_axes=(None, 0, 0))(params, x[:8], digits[:8])
    one = grad(loss)(params, x[3], digits[3])
    apart = max(np.abs(g[3] - o).max() for g, o in zip(tree.leaves(gradients), tree.leaves(one), strict=True))
    print(f"the fourth of eight gradients differs from that of the fourth example alone by at most {apart:.1e}")

    figure, axes = plt.subplots(figsize=(7, 4))
    scores = {}
    for name, private in (("plain", False), ("clipped, with noise", True)):
        params, lengths = learn(x, digits, private, rng)
        scores[name] = np.mean(logits(params, held_out).argmax(axis=1) == truth)
        print(f"{name:>20}: {scores[name]:.1%} of the held-out digits; longest gradient {lengths.max():.2f}")
        axes.hist(np.log10(lengths + 1e-6), bins=40, alpha=0.6, label=name)
    axes.axvline(np.log10(CLIP), color="k", linewidth=1)
    axes.set(xlabel="log10 of the length of an example's gradient", ylabel="examples", title="the last epoch")
    axes.legend()
    save(figure, "per_example_gradients")
    assert apart < 1e-12
    assert scores["clipped, with noise"] > (0.3 if QUICK else 0.9)


if __name__ == "__main__":
    main()
