"""Long chains save a few bytes per step, which check a repeated step against the first run."""

import gc
import tracemalloc
from math import comb

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import checkpoint_chain, grad
from funcgrad.errors import ReplayError
from funcgrad.replay.chronicle import Digests, StepNumbers

rng = np.random.default_rng(3)


def test_step_numbers_round_trip():
    kept, found = {}, StepNumbers()
    number = 0
    for step in range(400):
        if rng.random() < 0.1:
            continue  # not on this tape
        count, gap = int(rng.integers(1, 4)) if step > 100 else 2, int(rng.integers(1, 9)) if step > 200 else 3
        numbers = tuple(number - k - (k == count - 1 and rng.random() < 0.05) for k in range(count))
        number = numbers[-1] - gap
        kept[step] = numbers, int(rng.integers(0, 2)) if step > 300 else -(2**62)
        found.add(step, *kept[step])
    assert [found.get(step) for step in range(-1, 401)] == [kept.get(step) for step in range(-1, 401)]
    for step in (3, 399, 7):  # later, out of order
        if step not in kept:
            kept[step] = (number,), 5
            found.add(step, *kept[step])
    assert [found.get(step) for step in range(400)] == [kept.get(step) for step in range(400)]
    even = StepNumbers()
    for step in range(5, 1000):
        even.add(step, (-2 * step, -2 * step - 1), 9)
    assert even.pieces == 1


@pytest.mark.parametrize("step", [0, 31, 32, 500])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_digests_differ_for_different_numbers(step, dtype):
    x = rng.normal(size=(3, 4)).astype(dtype)
    large = rng.normal(size=400).astype(dtype)
    special = np.array([np.nan, 1.0, np.inf, -np.inf, 0.0], dtype)
    tree = [x, large, special, np.arange(3), dtype(2.0), np.zeros(2, dtype)]

    def agree(*others):
        digests = Digests()
        for i in range(step):
            digests.agree(i, tree)
        assert digests.agree(step, tree)
        return [digests.agree(step, other) for other in others]

    eps = float(np.finfo(dtype).eps)

    def changed(place, by, at=0):
        leaf = np.array(tree[place])
        leaf.reshape(-1)[at] += by
        return [*tree[:place], leaf, *tree[place + 1 :]]

    rounded = [x * (1 + 4 * eps), large * (1 - 4 * eps), *tree[2:]]
    twice = [x, large, special, np.arange(3), dtype(4.0), np.zeros(2, dtype)]
    other = [x.astype(np.float16), *tree[1:]] if dtype is not np.complex128 else [x.real.copy(), *tree[1:]]
    assert agree(tree, rounded) == [True, True]
    far = 100 * np.sqrt(eps)
    different = [changed(i, far) for i in (0, 1, 4, 5)]
    different += [changed(0, far, -1), changed(1, 400 * far, 5), changed(2, far, 1), changed(2, np.inf, 1)]
    different += [twice, other, tree[:-1], [*tree, x], [x.reshape(-1)[:-1], *tree[1:]]]
    assert agree(*different) == [False] * len(different)


def chain(count, kind):
    step = lambda h, x, w: h - 0.01 * fnp.sin(w * h) * x / count
    xs = {"range": range(count), "array": np.linspace(0.0, 1.0, count), "none": None}[kind]
    one = (lambda h, w: step(h, 1.0, w)) if xs is None else step
    return lambda w: checkpoint_chain(one, 0.5, xs, length=count, args=(w,), budget=40)


@pytest.mark.parametrize("kind", ["none", "range", "array"])
def test_step_uses_a_few_bytes(kind):
    """Two numbers of eight bytes; a record, its mark and a sample took a thousand bytes."""

    def peak(count):
        gc.collect()
        tracemalloc.start()
        grad(chain(count, kind))(0.5)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(50)
    short = peak(1000)
    # a second try: other allocations that stay meanwhile, such as a growing table, do not belong to the steps
    assert any((peak(1600) - short) / 600 < 32 for _ in range(2))


@pytest.mark.parametrize(("count", "budget"), [(300, 5), (2000, 20), (2000, 61), (700, 700)])
def test_number_of_runs_is_binomial(count, budget):
    """Griewank and Walther: ``r n - C(s + r, s + 1)`` runs to reach states, one with the tape, and one to the end."""
    calls = []

    def step(h, w):
        calls.append(1)
        return h - 0.01 * fnp.sin(w * h)

    grad(lambda w: checkpoint_chain(step, 0.1, length=count, args=(w,), budget=budget))(0.5)
    states, repeats = budget + 1, 1
    while comb(states + repeats, states) < count:
        repeats += 1
    best = repeats * count - comb(states + repeats, states + 1) + count
    assert best <= len(calls) <= best + 10  # when no state is left, the last few steps run once more


def test_one_changed_step_among_thousands_raises():
    count, odd = 2000, 1234
    noise = iter(range(10**6))

    def step(h, i, w):
        return h - 0.01 * fnp.sin(w * h) + (1e-5 * next(noise) if i == odd else 0.0)

    with pytest.raises(ReplayError, match="other numbers"):
        grad(lambda w: checkpoint_chain(step, 0.1, range(count), args=(w,), budget=10))(0.5)
