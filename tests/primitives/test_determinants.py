"""Derivatives of determinants of any order, at matrices of any rank, against exact sums over permutations."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

det = fnp.linalg.det
CASES = [(n, rank) for n in range(1, 7) for rank in range(n + 1)]


def integers(*shape, seed, kind):
    rng = np.random.default_rng([seed, *shape])
    x = rng.integers(-3, 4, shape).astype(float)
    return x + 1j * rng.integers(-3, 4, shape) if kind == "c" else x


def of_rank(n, rank, kind):
    return integers(n, rank, seed=1, kind=kind) @ integers(rank, n, seed=2, kind=kind)


def exact(x, *directions):
    """Return the derivative of det at x along the directions, which replace rows of x: det is linear in each row.

    The sum over permutations and replaced rows is computed row by row: the partial sums are indexed by the columns and
    directions used so far. For small integers every step is exact.
    """
    n, k = len(x), len(directions)
    sums = {(0, 0): 1}
    for row in range(n):
        following = {}
        for (columns, used), value in sums.items():
            for column in range(n):
                if columns >> column & 1:
                    continue
                sign = -1 if (columns >> (column + 1)).bit_count() % 2 else 1
                choices = [(used, x)]
                choices += [(used | 1 << a, y) for a, y in enumerate(directions) if not used >> a & 1]
                for taken, matrix in choices:
                    key = columns | 1 << column, taken
                    following[key] = following.get(key, 0) + sign * value * matrix[row, column]
        sums = following
    return sums.get(((1 << n) - 1, (1 << k) - 1), 0)


def size(x, *directions):
    """Return a bound of the terms of the sum, to which errors are relative."""
    if len(directions) > len(x):
        return 0.0
    norms = [np.linalg.norm(y, 2) for y in directions]
    return float(np.prod(norms) * np.linalg.norm(x, 2) ** (len(x) - len(directions)))


def forward(f, t):
    return lambda x: jvp(f, (x,), (t,))[1]


def reverse(f, t):
    return lambda x: fnp.sum(t * vjp(f, x)[1](fnp.ones_like(det(x)))[0])


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize(("n", "rank"), CASES)
def test_determinant_derivatives_at_every_rank(n, rank, kind):
    x = of_rank(n, rank, kind)
    ys = [integers(n, n, seed=3 + i, kind=kind) for i in range(4)]
    for order in (1, 2, 3, 4):
        want = exact(x, *ys[:order])
        allowed = 1e-12 * max(1.0, size(x, *ys[:order]))
        for modes in itertools.product((forward, reverse), repeat=order):
            f = det
            for mode, y in zip(modes, ys, strict=False):
                f = mode(f, y)
            assert abs(f(x) - want) <= allowed, (order, [m.__name__ for m in modes])
            if order < 4 or len(set(modes)) == 1:  # half of all combinations have order four
                assert abs(vmap(f)(np.stack([np.eye(n), x]))[1] - want) <= allowed


def test_third_derivatives_match_jacobian():
    x = of_rank(4, 2, "f")
    found = hessian(grad(det))(x)
    np.testing.assert_allclose(jacfwd(jacrev(grad(det)))(x), found, atol=1e-12)
    unit = lambda i: np.eye(16)[i].reshape(4, 4)
    for i, j, k in [(0, 5, 10), (0, 5, 15), (1, 6, 8), (0, 0, 5), (0, 1, 10)]:
        place = tuple(int(v) for axis in zip(*[divmod(m, 4) for m in (i, j, k)], strict=True) for v in axis)
        rows, columns = place[:3], place[3:]
        at = tuple(v for pair in zip(rows, columns, strict=True) for v in pair)
        assert found[at] == pytest.approx(exact(x, unit(i), unit(j), unit(k)), abs=1e-12)


def test_higher_derivatives_inside_jit():
    x, y = of_rank(5, 4, "f"), integers(5, 5, seed=3, kind="f")
    third = forward(reverse(forward(det, y), y), y)
    np.testing.assert_allclose(jax.jit(third)(jnp.array(x)), exact(x, y, y, y), rtol=1e-12)


def test_higher_derivatives_of_batch_with_nan_and_float32():
    x = np.stack([of_rank(4, 3, "f"), np.full((4, 4), np.nan)]).astype(np.float32)
    y = integers(4, 4, seed=3, kind="f").astype(np.float32)
    for mode in (forward, reverse):
        with np.errstate(invalid="ignore"):  # NumPy's det warns of NaN
            found = vmap(mode(mode(mode(det, y), y), y))(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [exact(x[0].astype(float), y, y, y), np.nan], rtol=1e-4)


def test_derivatives_of_a_higher_order_than_rows_are_zero():
    a, b = np.diag([2.0, 1.5, 1.1, 0.7]), np.arange(16.0).reshape(4, 4) / 16.0 + np.eye(4)
    derivative = lambda t: det(a + t * b)
    for _ in range(4):
        derivative = jacfwd(derivative)
    np.testing.assert_allclose(derivative(0.7), 24.0 * np.linalg.det(b), rtol=1e-9)
    assert jacfwd(derivative)(0.7) == jacrev(derivative)(0.7) == 0.0
