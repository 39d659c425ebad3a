"""Learn to read handwritten digits with a pipeline of pure functions, then check the gradient of the training.

Run ``make demo``, or ``python examples/digits.py``. The seed is fixed: every run gives the same numbers. The picture
goes to ``out/digits.png``. With FUNCGRAD_QUICK=1 the training is very short.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import funcgrad.numpy as fnp
from funcgrad import curry, grad, jit, pipe, tree, value_and_grad, vmap
from funcgrad.interop import crosscheck

QUICK = bool(os.environ.get("FUNCGRAD_QUICK"))
EPOCHS, BATCH, HIDDEN, RATE = (6 if QUICK else 60), 32, 96, 2e-3
Array = np.ndarray
Params = dict[str, dict[str, Array]]


# --- the network: a pipeline of pure functions ---


@curry
def linear(layer: dict[str, Array], x: Array) -> Array:
    return x @ layer["w"] + layer["b"]


def predict(params: Params, x: Array) -> Array:
    """Return the logarithm of the probability of each digit."""
    return pipe(x, linear(params["hidden"]), fnp.tanh, linear(params["out"]), fnp.log_softmax)


def loss(params: Params, x: Array, labels: Array) -> Array:
    """Return the cross-entropy, plus a small penalty for large weights."""
    size = sum(fnp.sum(layer["w"] ** 2) for layer in params.values())
    return -fnp.mean(fnp.sum(labels * predict(params, x), axis=-1)) + 1e-4 * size


def accuracy(params: Params, x: Array, digits: Array) -> float:
    return float(np.mean(predict(params, x).argmax(axis=-1) == digits))


# --- learning: pure functions of parameters and state ---


class Moments(NamedTuple):
    """State of Adam: the number of steps, and running means of gradients and of their squares."""

    step: int
    mean: Params
    square: Params


def adam(params: Params, gradient: Params, old: Moments) -> tuple[Params, Moments]:
    step = old.step + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, old.mean, gradient)
    square = tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, old.square, gradient)
    rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    params = tree.map(lambda p, m, s: p - rate * m / (np.sqrt(s) + 1e-8), params, mean, square)
    return params, Moments(step, mean, square)


def initial(rng: np.random.Generator) -> Params:
    def layer(fan_in: int, fan_out: int) -> dict[str, Array]:
        return {"w": rng.standard_normal((fan_in, fan_out)) * fan_in**-0.5, "b": np.zeros(fan_out)}

    return {"hidden": layer(64, HIDDEN), "out": layer(HIDDEN, 10)}


class Data(NamedTuple):
    train_x: Array
    test_x: Array
    train_y: Array
    test_y: Array


def load() -> Data:
    """Return 1,347 digits for training and 450 for testing, each with 64 pixels from -1 to 1."""
    x, y = load_digits(return_X_y=True)
    return Data(*train_test_split(x / 8 - 1, y, test_size=0.25, stratify=y, random_state=0))


class Epoch(NamedTuple):
    number: int
    loss: float
    accuracy: float
    speed: float
    params: Params


def train(data: Data, rng: np.random.Generator) -> Iterator[Epoch]:
    """Go through the digits again and again; yield an ``Epoch`` after each pass."""
    params = initial(rng)
    zeros = tree.map(np.zeros_like, params)
    state = Moments(0, zeros, zeros)
    labels = np.eye(10)[data.train_y]
    count = len(labels)
    descend = jit(value_and_grad(loss), backend="numpy")  # recorded once, then plain NumPy code, equal bit for bit
    for number in range(1, EPOCHS + 1):
        total, start = 0.0, perf_counter()
        order = rng.permutation(count)
        for batch in np.split(order, range(BATCH, count, BATCH)):
            value, gradient = descend(params, data.train_x[batch], labels[batch])
            params, state = adam(params, gradient, state)
            total += float(value) * len(batch)
        speed = count / (perf_counter() - start)
        yield Epoch(number, total / count, accuracy(params, data.test_x, data.test_y), speed, params)


# --- showing ---


def watch(epochs: Iterator[Epoch]) -> list[Epoch]:
    """Show the epochs as they come: live on a terminal, as a few plain lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not Console().is_terminal:
        history = []
        for epoch in epochs:
            history.append(epoch)
            if epoch.number in (1, EPOCHS) or epoch.number % 10 == 0:
                print(f"epoch {epoch.number:3d}   loss {epoch.loss:.4f}   accuracy {epoch.accuracy:.2%}", flush=True)
        return history
    columns = (
        TextColumn("[bold]epoch {task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("loss [cyan]{task.fields[loss]:.4f}"),
        TextColumn("accuracy [green]{task.fields[accuracy]:.2%}"),
        TextColumn("[dim]{task.fields[speed]:,.0f} examples/s"),
        TimeElapsedColumn(),
    )
    history = []
    with Progress(*columns) as progress:
        task = progress.add_task("learning", total=EPOCHS, loss=float("nan"), accuracy=0.0, speed=0.0)
        for epoch in epochs:
            history.append(epoch)
            fields = {name: getattr(epoch, name) for name in ("loss", "accuracy", "speed")}
            progress.update(task, completed=epoch.number, **fields)
    return history


INK, BLUE, GREEN, RED, PALE = "#22303c", "#2b6cb0", "#2f855a", "#c53030", "#e2e8f0"
STYLE = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": PALE,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 11,
    "xtick.color": INK,
    "ytick.color": INK,
}


def draw(history: list[Epoch], data: Data, target: Path) -> None:
    """Draw the loss and the errors, some digits with their predictions, and the pixels that mattered for them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(13, 5.8), dpi=120, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.02, h_pad=0.05)
        left, right = figure.subfigures(1, 2, width_ratios=[1, 2.2], wspace=0.02)
        draw_curves(left, history)
        draw_digits(right, history[-1].params, data)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, facecolor="white", bbox_inches="tight", pad_inches=0.15)
        plt.close(figure)


def draw_curves(figure: Any, history: list[Epoch]) -> None:
    numbers = [epoch.number for epoch in history]
    above, below = figure.subplots(2, 1, sharex=True)
    above.semilogy(numbers, [epoch.loss for epoch in history], color=BLUE, linewidth=2)
    above.set_title("Loss on the digits it learns from")
    below.plot(numbers, [100 * (1 - epoch.accuracy) for epoch in history], color=GREEN, linewidth=2)
    below.set_title(f"Misread among unseen digits: {1 - history[-1].accuracy:.1%}")
    below.set(xlabel="epoch", xlim=(1, max(numbers[-1], 2)))
    below.set_ylim(0, None)
    below.yaxis.set_major_formatter("{x:g} %")
    for axes in (above, below):
        axes.grid(color=PALE, linewidth=0.8, which="both")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(which="both", length=0)


def draw_digits(figure: Any, params: Params, data: Data) -> None:
    """Draw sixteen pairs: a digit, and the gradient of the certainty of its prediction."""
    probability = np.exp(predict(params, data.test_x))
    read = probability.argmax(axis=1)
    wrong = np.flatnonzero(read != data.test_y)[:6]
    shown = np.concatenate([np.flatnonzero(read == data.test_y)[: 16 - len(wrong)], wrong])

    def certainty(x: Any, digit: Any) -> Any:
        """Return the logarithm of the probability of ``digit``, which is one-hot."""
        return fnp.sum(predict(params, x) * digit)

    slopes = vmap(grad(certainty))(data.test_x[shown], np.eye(10)[read[shown]])
    grid = figure.add_gridspec(4, 11, width_ratios=[*[1, 1, 0.2] * 3, 1, 1])  # a narrow gap between the pairs
    for place, (i, slope) in enumerate(zip(shown, slopes, strict=True)):
        row, column = place // 4, 3 * (place % 4)
        digit, weights = figure.add_subplot(grid[row, column]), figure.add_subplot(grid[row, column + 1])
        reach = np.abs(slope).max()
        digit.imshow(data.test_x[i].reshape(8, 8), cmap="Greys", interpolation="nearest")
        weights.imshow(slope.reshape(8, 8), cmap="RdBu", vmin=-reach, vmax=reach, interpolation="nearest")
        mistaken = read[i] != data.test_y[i]
        text = f"{read[i]}   {probability[i].max():.0%} sure" + (f", but it is {data.test_y[i]}" if mistaken else "")
        digit.set_title(text, fontsize=9.5, fontweight="normal", color=RED if mistaken else INK, pad=4)
        for axes in (digit, weights):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(PALE)
    figure.suptitle(
        "Unseen digits as it read them, and where more ink would make it surer (blue) or less sure (red)",
        fontsize=11,
        fontweight="bold",
    )


def gain(params: Params, x: Array, labels: Array) -> str:
    """Return a sentence on the time of the gradient recorded as NumPy code, in parts of the eager time."""
    report = jit(value_and_grad(loss), backend="numpy").report(params, x, labels)
    recorded, eager = report.seconds
    return (
        f"a gradient takes {1e6 * recorded:.0f} us as recorded NumPy code, {recorded / eager:.2f} times the eager time"
    )


def main() -> None:
    start = perf_counter()
    data = load()
    history = watch(train(data, np.random.default_rng(0)))
    last = history[-1]
    print(f"accuracy {last.accuracy:.2%} on {len(data.test_y)} unseen digits, after {perf_counter() - start:.1f} s\n")
    batch = slice(0, BATCH)
    print(gain(last.params, data.train_x[batch], np.eye(10)[data.train_y[batch]]))
    print("The gradient of the training, compared with JAX and with finite differences:")
    report = crosscheck(loss, order=2, argnums=0)(last.params, data.train_x[batch], np.eye(10)[data.train_y[batch]])
    print(report)
    target = Path("out/digits.png")
    draw(history, data, target)
    print(f"\npicture in {target}, {perf_counter() - start:.1f} s in all")
    if not report.ok:
        sys.exit("the cross-check found a difference")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nstopped")
        sys.exit(130)
