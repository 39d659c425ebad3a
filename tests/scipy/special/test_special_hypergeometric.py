"""Hypergeometric functions: against mpmath, in every argument; JAX's kernels."""

import jax
import jax.scipy.special
import mpmath as mp
import numpy as np
import pytest

import funcgrad.scipy.special as fsp
from funcgrad import grad, jacfwd, vmap
from funcgrad.errors import NotDifferentiableError

CASES = {
    "hyp0f1": (mp.hyp0f1, [(0.5, 0.3), (2.0, -4.0), (-1.5, 1.0), (30.0, 20.0)]),
    "hyp1f1": (mp.hyp1f1, [(0.7, 1.5, 0.5), (1.2, 1.5, -2.0), (-0.4, 2.5, 8.0), (5.0, 2.3, -20.0)]),
    "hyp2f1": (mp.hyp2f1, [(0.7, 0.9, 1.5, 0.5), (1.2, 0.3, 1.5, -2.0), (0.4, 2.5, 3.0, 0.9)]),
    "hyperu": (mp.hyperu, [(0.7, 1.5, 0.5), (1.2, 1.0, 2.0), (2.0, 2.5, 8.0), (0.3, 2.3, 20.0), (5.0, -3.0, 0.1)]),
    "hyperu of a <= 0": (mp.hyperu, [(-0.5, 1.5, 0.3), (0.0, 1.3, 2.1), (-2.0, 8.0, 0.1), (-7.3, 2.2, 20.0)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", [grad, jacfwd])
def test_derivatives_in_every_argument(name, mode):
    fun, (reference, points) = getattr(fsp, name.partition(" ")[0]), CASES[name]
    for point in points:
        for i in range(len(point)):
            with mp.workdps(30):
                want = mp.diff(reference, point, tuple(int(j == i) for j in range(len(point))))
            assert abs(mode(fun, i)(*point) - want) <= 1e-12 * max(abs(want), abs(reference(*point)))


@pytest.mark.parametrize("name", ["hyp1f1", "hyp2f1", "hyperu of a <= 0"])
def test_second_derivatives_in_every_pair(name):
    fun, (reference, points) = getattr(fsp, name.partition(" ")[0]), CASES[name]
    point = points[0]
    for i in range(len(point)):
        for j in range(i + 1):
            with mp.workdps(30):
                want = mp.diff(reference, point, tuple((k == i) + (k == j) for k in range(len(point))))
            for outer in (grad, jacfwd):
                got = outer(lambda *a, i=i: grad(fun, i)(*a), j)(*point)
                assert abs(got - want) <= 1e-11 * max(abs(want), abs(reference(*point)))


def test_parameters_under_vmap():
    a, b, x = np.array([0.3, 0.7]), np.array([1.5, 2.5]), np.array([0.4, -1.0])
    for i in range(3):
        alone = [grad(fsp.hyp1f1, i)(*point) for point in zip(a, b, x, strict=True)]
        np.testing.assert_allclose(vmap(grad(fsp.hyp1f1, i))(a, b, x), alone, rtol=1e-13)


def test_series_that_end_before_a_pole():
    """Check whole parameters below 0 in the numerator, with a pole of the endless series in the denominator."""
    for fun, reference, point in (
        (fsp.hyp1f1, mp.hyp1f1, (-2.0, -3.0, 0.7)),
        (fsp.hyp1f1, mp.hyp1f1, (-2.0, -2.0, 0.7)),
        (fsp.hyp2f1, mp.hyp2f1, (-2.0, 1.5, -3.0, 0.3)),
    ):
        for i in range(1, len(point)):
            slope = fun
            for order in (1, 2, 3, 4):
                slope = grad(slope, i)
                with mp.workdps(30):
                    want = mp.diff(reference, point, tuple(order * (j == i) for j in range(len(point))))
                assert slope(*point) == pytest.approx(float(want), rel=1e-8, abs=1e-10), (point, i, order)
        assert np.isnan(grad(fun)(*point))  # SciPy's function jumps
    assert np.isnan(grad(fsp.hyp2f1, 2)(-2.0, 1.5, -2.0, 0.3))  # SciPy cancels equal parameters, at this point only


def test_no_derivative_at_poles():
    with np.errstate(all="ignore"):
        assert np.isnan(grad(fsp.hyp1f1, 1)(0.5, -1.0, 0.3))


def test_hyperu_derivatives_at_nonpositive_parameters():
    a, b, x = np.array([0.7, 1e-5, 0.0, -1.0, -30.6]), 1.5, 4.0
    slopes = [grad(fsp.hyperu)(v, b, x) for v in a]
    with mp.workdps(30):
        want = [mp.diff(lambda v: mp.hyperu(v, b, x), v) for v in a]
    np.testing.assert_allclose(slopes, np.array(want, float), rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(fsp.hyperu), in_axes=(0, None, None))(a, b, x), slopes, rtol=1e-12)
    assert np.isnan(grad(fsp.hyperu)(-20_000.5, b, x)), "too far below"


def test_fifth_derivatives_in_parameters_raise():
    def nth(n):
        return fsp.hyp1f1 if n == 0 else grad(nth(n - 1))

    with pytest.raises(NotDifferentiableError, match="up to order 4"):
        nth(5)(0.5, 1.5, 0.3)


def test_derivatives_in_a_parameter_on_jax_arrays():
    point = tuple(jax.numpy.asarray(v) for v in (0.7, 1.5, 0.5))
    slope = jax.jit(grad(fsp.hyp1f1))(*point)
    np.testing.assert_allclose(slope, jax.jit(jax.grad(jax.scipy.special.hyp1f1))(*point), rtol=1e-9)
    np.testing.assert_allclose(slope, grad(fsp.hyp1f1)(*map(float, point)), rtol=1e-10)
