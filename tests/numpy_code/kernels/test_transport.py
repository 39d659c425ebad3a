"""Wasserstein's distance of points, whose linear program has solutions that are not unique."""

import numpy as np
import pytest
import scipy.stats
from helpers import differences

from funcgrad import grad, jacfwd, vmap
from funcgrad.errors import NotDifferentiableError

RNG = np.random.default_rng(0)
U, V = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 2))
FIRST, SECOND, MOVE = RNG.uniform(0.5, 1.0, 3), RNG.uniform(0.5, 1.0, 4), RNG.normal(size=(3, 2))
distance = scipy.stats.wasserstein_distance_nd
PROGRAMS = {
    "points": lambda t: distance(U + t * MOVE, V),
    "as many points": lambda t: distance(U + t * MOVE, V[:3] * np.exp(t)) ** 2,
    "weights": lambda t: distance(U, V, FIRST + t * MOVE[:, 0] / 10, SECOND),
    "both": lambda t: distance(U + t * MOVE, V, FIRST, SECOND * np.exp(t * SECOND)),
    "one axis": lambda t: distance(U[:, 0] + t, V[:, 0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_distance_of_points(name):
    f = PROGRAMS[name]
    np.testing.assert_allclose(grad(f)(0.0), differences(f, 0.0, 1e-4), rtol=1e-7)
    np.testing.assert_allclose(jacfwd(f)(0.0), grad(f)(0.0), rtol=1e-12)
    np.testing.assert_allclose(grad(grad(f))(0.0), differences(grad(f), 0.0, 1e-4), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(vmap(grad(f))(np.array([0.0, 0.1])), [grad(f)(0.0), grad(f)(0.1)], rtol=1e-12)


def test_weights_of_points_that_are_equal_together_raise():
    with pytest.raises(NotDifferentiableError, match="a kink, got traced weights"):
        grad(lambda w: distance(U, V[:3], w))(np.ones(3))
    with pytest.raises(ValueError, match="same number of columns"):
        grad(lambda u: distance(u, V[:, :1]))(U)
