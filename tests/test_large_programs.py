"""Random programs of large arrays, which operations overwrite if they are the only owner, against complex steps."""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import checkpoint, grad, jit, jvp, linearize, ownership, value_and_grad

ROWS, COLUMNS = 110, 100
WEIGHTS = np.cos(np.arange(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)
MATRIX = np.sin(np.arange(COLUMNS**2)).reshape(COLUMNS, COLUMNS) * 0.1


def written(xp, a, b):
    y = xp.zeros(a.shape, a.dtype) + 0.0 * a
    y[2:50] = xp.sin(a[2:50])
    y[60:80] += a[60:80] * 0.5
    y *= 0.7
    return y + b


STEPS = {
    "add": lambda xp, a, b: a + b,
    "subtract": lambda xp, a, b: a - b,
    "multiply": lambda xp, a, b: a * b,
    "swapped": lambda xp, a, b: b * a,
    "divide": lambda xp, a, b: a / (2.0 + xp.sin(b) ** 2),
    "power": lambda xp, a, b: 0.3 * a**2,
    "hypotenuse": lambda xp, a, b: xp.sqrt(a * a + b * b + 1.0),
    "gauss": lambda xp, a, b: xp.exp(-a * a),
    "tanh": lambda xp, a, b: xp.tanh(a),
    "twice": lambda xp, a, b: a * a + a,
    "chain": lambda xp, a, b: ((a * 0.3) * a + b) * a,
    "standard": lambda xp, a, b: (a - 0.9 * a.mean(0)) / (1.0 + (a * a).mean(0)),
    "matmul": lambda xp, a, b: a @ MATRIX if a.shape[-1] == COLUMNS else a,
    "rows": lambda xp, a, b: a[(7 * np.arange(len(a))) % len(a) // 2],
    "shift": lambda xp, a, b: xp.concatenate([a[1:], a[:1]]),
    "turn": lambda xp, a, b: a[::-1] * b,
    "transpose": lambda xp, a, b: xp.sin(a.T).T,
    "cumulate": lambda xp, a, b: 0.05 * xp.cumsum(a, 0),
    "choose": lambda xp, a, b: xp.where(WEIGHTS > 0, a, b),
    "write": written,
}


def program(seed):
    """Return a function of an array library and four arrays; each step takes two of the earlier values."""
    rng = np.random.default_rng(seed)
    names, places = rng.choice(list(STEPS), rng.integers(4, 12)), rng.random((12, 2))

    def run(xp, *args):
        values = list(args)
        for name, place in zip(names, places, strict=False):
            a, b = (values[int((1.0 - p * p) * len(values))] for p in place)
            values.append(STEPS[name](xp, a, b))
        return sum([xp.sum(y * WEIGHTS) for y in values[-3:]])

    return run


def arguments(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) * 0.5 for shape in ((ROWS, COLUMNS), (COLUMNS,), (ROWS, COLUMNS), (ROWS, 1))]


def test_arrays_exceed_large_threshold():
    assert ROWS * COLUMNS >= ownership.LARGE


@pytest.mark.parametrize("seed", range(200))
def test_derivatives(seed):
    run, args, directions = program(seed), arguments(seed), arguments(seed + 1000)
    kept = [a.copy() for a in args]

    def fun(*args):
        return run(fnp, *args)

    exact = run(np, *[a + 1e-30j * v for a, v in zip(args, directions, strict=True)]).imag * 1e30
    numbers = tuple(range(4))
    found = grad(fun, argnums=numbers)(*args)
    shares = [np.vdot(g, v) for g, v in zip(found, directions, strict=True)]
    scale = sum(np.abs(g * v).sum() for g, v in zip(found, directions, strict=True))
    again = grad(checkpoint(fun), argnums=numbers)(*args)
    for g, one in zip(found, again, strict=True):
        np.testing.assert_allclose(g, one, rtol=1e-12, atol=1e-12 * scale)
    for i in numbers:
        np.testing.assert_array_equal(found[i], grad(fun, argnums=i)(*args))
    pushed = jvp(fun, tuple(args), tuple(directions))[1]
    for total in (sum(shares), pushed, linearize(fun, *args)[1](*directions)):
        np.testing.assert_allclose(total, exact, rtol=0, atol=1e-12 * scale)
    for a, before in zip(args, kept, strict=True):
        np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("seed", range(200, 230))
def test_hessian_products(seed):
    run, args, directions = program(seed), arguments(seed), arguments(seed + 1000)
    slope = grad(lambda *args: run(fnp, *args), argnums=(0, 1, 2, 3))
    ahead, behind = (slope(*[a + h * v for a, v in zip(args, directions, strict=True)]) for h in (1e-5, -1e-5))
    for found, one, other in zip(jvp(slope, tuple(args), tuple(directions))[1], ahead, behind, strict=True):
        np.testing.assert_allclose(found, (one - other) / 2e-5, rtol=0, atol=1e-6 * (1.0 + np.abs(found).max()))


@pytest.mark.parametrize("seed", range(300, 340))
def test_recorded_programs(seed):
    run = program(seed)
    fun = value_and_grad(lambda *args: run(fnp, *args), argnums=(0, 1, 2, 3))
    fast = jit(fun, backend="numpy")
    for args in (arguments(seed), arguments(seed + 1), arguments(seed)):
        value, slopes = fast(*args)
        expected, others = fun(*args)
        assert value == expected
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_array_equal(one, other)
