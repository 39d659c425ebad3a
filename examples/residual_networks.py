"""A ResNet and a DenseNet for handwritten digits, written as compositions.

A block is a pipeline; a skip connection is ``juxt``, which applies the block and the identity to its argument. A
residual network adds the two results (He and others 2016), a dense network joins them (Huang and others 2017).
There are no layers and no models: parameters are nested lists and dictionaries. Data: scikit-learn's digits.
``python examples/residual_networks.py`` draws ``out/residual_networks.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, progress, save
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import funcgrad.numpy as fnp
from funcgrad import compose_left, curry, identity, juxt, nn, trace, tree, value_and_grad

EPOCHS, BATCH, RATE, WIDTH, GROWTH, BLOCKS = (1 if QUICK else 16), 32, 5e-3, 16, 8, 3


@curry
def conv(layer, x):
    return nn.conv(x, layer["w"], 1, "SAME") + layer["b"][:, None, None]


@curry
def normalised(layer, x):
    """Normalise over the channels and pixels of each picture."""
    x = nn.standardize(x, axis=(1, 2, 3))
    return x * layer["scale"][:, None, None] + layer["shift"][:, None, None]


@curry
def linear(layer, x):
    return x @ layer["w"] + layer["b"]


def block(params):
    """Return a block that normalises, applies ReLU and convolves, twice (He and others 2016, Identity mappings)."""
    halves = [(normalised(half["norm"]), nn.relu, conv(half["conv"])) for half in params]
    return compose_left(*[stage for half in halves for stage in half])


def add(pair):
    return pair[0] + pair[1]


def join(pair):
    return fnp.concatenate(pair, axis=1)


@curry
def network(merge, params):
    """Return the function from pictures to logits; ``merge`` combines a block's input with its output."""
    skips = [compose_left(juxt(identity, block(p)), merge) for p in params["blocks"]]
    return compose_left(conv(params["stem"]), *skips, nn.relu, curry(fnp.mean, axis=(2, 3)), linear(params["out"]))


def init(rng, growing):
    """Return parameters; in a dense network every block takes the channels of all blocks before it."""

    def kernel(into, out):
        return {"w": rng.normal(size=(out, into, 3, 3)) * np.sqrt(2 / (9 * into)), "b": np.zeros(out)}

    def half(into, out):
        return {"norm": {"scale": np.ones(into), "shift": np.zeros(into)}, "conv": kernel(into, out)}

    channels, blocks = WIDTH, []
    for _ in range(BLOCKS):
        out = GROWTH if growing else channels
        blocks.append([half(channels, out), half(out, out)])
        channels += out if growing else 0
    out = {"w": rng.normal(size=(channels, 10)) / np.sqrt(channels), "b": np.zeros(10)}
    return {"stem": kernel(1, WIDTH), "blocks": blocks, "out": out}


def learn(model, params, x, digits, rng):
    """Return the parameters after some epochs of Adam (Kingma and Ba 2015), and the loss of every step."""

    def loss(params, x, digits):
        return fnp.mean(nn.softmax_cross_entropy_with_integer_labels(model(params)(x), digits))

    step, losses, t = value_and_grad(loss), [], 0
    mean = square = tree.map(np.zeros_like, params)
    batches = [b for _ in range(EPOCHS) for b in np.array_split(rng.permutation(len(x)), len(x) // BATCH)]
    for t, batch in enumerate(progress(batches, "learning"), 1):
        value, gradient = step(params, x[batch], digits[batch])
        mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        rate = RATE * (1 - t / len(batches)) * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        params = tree.map(lambda p, m, s, r=rate: p - r * m / (np.sqrt(s) + 1e-8), params, mean, square)
        losses.append(value)
    return params, losses


def main():
    x, digits = load_digits(return_X_y=True)
    pictures = x.reshape(-1, 1, 8, 8) / 8.0 - 1.0
    x, held_out, digits, truth = train_test_split(pictures, digits, random_state=0)
    figure, axes = plt.subplots(figsize=(6, 3.8))
    for name, merge, growing in (("ResNet", add, False), ("DenseNet", join, True)):
        model, params = network(merge), init(np.random.default_rng(0), growing)
        graph = trace(model(params))(x[:1])
        numbers = sum(leaf.size for leaf in tree.leaves(params))
        params, losses = learn(model, params, x, digits, np.random.default_rng(1))
        right = np.mean(model(params)(held_out).argmax(axis=1) == truth)
        print(f"{name}: {numbers} parameters, {len(graph)} operations; accuracy {right:.1%} on held-out digits")
        axes.plot(losses, label=f"{name}, {right:.1%} right")
        assert right > (0.2 if QUICK else 0.95)
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    axes.legend()
    save(figure, "residual_networks")


if __name__ == "__main__":
    main()
