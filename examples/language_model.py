"""A recurrent language model over sequences of any length: the loop is a Python loop.

The model learns to spell the words of scikit-learn's descriptions of its data sets, letter by letter. Words have
different lengths, so every example has its own graph; nothing is padded and nothing is compiled. Afterwards the model
invents words. ``python examples/language_model.py`` draws ``out/language_model.png``.
"""

import re
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, progress, save
from sklearn import datasets

import funcgrad.numpy as fnp
from funcgrad import curry, grad, tree, value_and_grad

LETTERS = "abcdefghijklmnopqrstuvwxyz."  # the dot begins and ends a word
HIDDEN, RATE, STEPS, BATCH = 64, 4e-3, (60 if QUICK else 1500), 16


def words():
    """Return the words of at least three letters in the descriptions."""
    loaders = (datasets.load_iris, datasets.load_wine, datasets.load_diabetes, datasets.load_breast_cancer)
    text = " ".join(load().DESCR for load in (*loaders, datasets.load_digits, datasets.load_linnerud))
    return sorted({word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2})


def init(rng):
    def weights(*shape):
        return rng.normal(size=shape) / np.sqrt(shape[0])

    n = len(LETTERS)
    return {
        "letters": weights(n, 3 * HIDDEN),
        "state": weights(HIDDEN, 3 * HIDDEN),
        "bias": np.zeros(3 * HIDDEN),
        "out": weights(HIDDEN, n),
    }


def cell(params, state, letter):
    """Return the next state of a gated recurrent unit (Cho and others 2014)."""
    seen, known = params["letters"][letter] + params["bias"], state @ params["state"]
    update = 1 / (1 + fnp.exp(-(seen[:HIDDEN] + known[:HIDDEN])))
    reset = 1 / (1 + fnp.exp(-(seen[HIDDEN:-HIDDEN] + known[HIDDEN:-HIDDEN])))
    new = fnp.tanh(seen[-HIDDEN:] + reset * known[-HIDDEN:])
    return update * state + (1 - update) * new


@curry
def surprise(word, params):
    """Return minus the logarithm of the probability of a word."""
    state, total = np.zeros(HIDDEN), 0.0
    numbers = [LETTERS.index(letter) for letter in f".{word}."]
    for letter, following in pairwise(numbers):
        state = cell(params, state, letter)
        total = total - fnp.log_softmax(state @ params["out"])[following]
    return total


def invent(params, rng):
    """Return a word that the model makes up."""
    state, letter, word = np.zeros(HIDDEN), LETTERS.index("."), ""
    while len(word) < 20:
        state = cell(params, state, letter)
        letter = rng.choice(len(LETTERS), p=np.exp(fnp.log_softmax(state @ params["out"])))
        if LETTERS[letter] == ".":
            break
        word += LETTERS[letter]
    return word


def adam(params, moments, gradient, t):
    """Do one step of Adam (Kingma and Ba 2015, algorithm 1)."""
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, moments[1], gradient)
    rate = RATE * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
    return tree.map(lambda p, m, s: p - rate * m / (np.sqrt(s) + 1e-8), params, mean, square), (mean, square)


def main():
    rng = np.random.default_rng(0)
    known = words()
    params = init(rng)
    zeros = tree.map(np.zeros_like, params)
    moments, bits = (zeros, zeros), []
    for t in progress(range(1, STEPS + 1), f"learning {len(known)} words"):
        batch = rng.choice(known, BATCH)
        letters = sum(len(word) + 1 for word in batch)
        value, gradient = value_and_grad(lambda p, b=batch, n=letters: sum(surprise(w, p) for w in b) / n)(params)
        params, moments = adam(params, moments, gradient, t)
        bits.append(value / np.log(2))

    # The gradient of a word is nonzero only for the letters of the word.
    touched = np.flatnonzero(np.abs(grad(surprise("wine"))(params)["letters"]).sum(axis=1))
    print(f"the gradient of 'wine' touches the letters {''.join(LETTERS[i] for i in touched)}")
    start, end = np.mean(bits[:5]), np.mean(bits[-50:])
    print(f"bits per letter: {start:.2f} -> {end:.2f} (uniform guessing: {np.log2(len(LETTERS)):.2f})")
    print("invented:", ", ".join(invent(params, rng) for _ in range(12)))

    figure, axes = plt.subplots(figsize=(6, 3.6))
    axes.plot(np.convolve(bits, np.ones(20) / 20, mode="valid"))
    axes.set(xlabel="step", ylabel="bits per letter", title="a word is a graph of its own")
    save(figure, "language_model")
    assert {LETTERS[i] for i in touched} == set("wine.")
    assert end < (4.4 if QUICK else 3.0)


if __name__ == "__main__":
    main()
