"""Rigid transformations, which SciPy computes in Python since version 1.17: derivatives at no rotation, of matrices."""

import numpy as np
import pytest
import scipy.spatial.transform
from helpers import differences, traced

from funcgrad import grad, hessian, jacfwd, jacobian, jacrev, jvp, vmap

Transform = scipy.spatial.transform.RigidTransform
WEIGHTS = np.cos(np.arange(16.0)).reshape(4, 4)
POINTS = {
    "no rotation": np.array([0.0, 0.0, 0.0, 0.3, -0.5, 1.0]),
    "nearly none": np.array([3e-4, -2e-4, 0.0, 0.3, -0.5, 1.0]),
    "angle 1": np.array([0.6, 0.0, 0.8, 0.3, -0.5, 1.0]),
    "large": np.array([1.2, -2.0, 0.7, 0.3, -0.5, 1.0]),
}


def there_and_back(v):
    """Return the matrix of exponential coordinates, weighted; and the coordinates of its product with a constant."""
    transform = Transform.from_exp_coords(v)
    turned = transform * Transform.from_exp_coords([0.2, 0.1, -0.3, 1.0, 2.0, 3.0])
    return (transform.as_matrix() * WEIGHTS).sum() + turned.as_exp_coords() @ np.arange(6.0)


@pytest.mark.parametrize("name", POINTS)
def test_exponential_coordinates(name):
    v, f = POINTS[name], there_and_back
    np.testing.assert_allclose(grad(f)(v), differences(f, v, 1e-4), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(jacfwd(f)(v), grad(f)(v), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(hessian(f)(v), differences(grad(f), v, 1e-4), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([v, 1.1 * v]))[0], grad(f)(v), rtol=1e-11, atol=1e-12)
    third = lambda v: hessian(f)(v)[0] @ np.arange(6.0)
    np.testing.assert_allclose(jacobian(third)(v), differences(third, v, 1e-4), rtol=1e-7, atol=1e-7)
    back = lambda v: Transform.from_exp_coords(v).as_exp_coords()
    np.testing.assert_allclose(jacobian(back)(v), np.eye(6), atol=1e-12)


@pytest.mark.parametrize("away", [0.0, 0.02])
def test_rotation_nearest_to_a_matrix(away):
    """SciPy returns the nearest rotation, also next to a matrix that is one."""
    start = Transform.from_exp_coords(POINTS["angle 1"]).as_matrix()[:3] + away * WEIGHTS[:3]
    matrix = lambda m: Transform.from_matrix(np.concatenate([m, [[0.0, 0.0, 0.0, 1.0]]])).as_matrix()
    np.testing.assert_allclose(jacobian(matrix)(start), differences(matrix, start, 1e-4), rtol=1e-8, atol=1e-9)


DIRECTION = np.cos(np.arange(12.0)).reshape(4, 3)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_splines_through_equal_rotations(order):
    """Angles between equal rotations are 0, where SciPy's formulas divide by zero or stop after the first step."""
    times, at = [0.0, 1.0, 2.5, 3.0], np.array([1.5, 2.7])
    equal = np.tile([0.1, 0.2, 0.3], (4, 1))
    pairs = np.repeat([[0.1, 0.2, 0.3], [0.5, 0.1, 0.2]], 2, axis=0)

    def f(x):
        rotations = scipy.spatial.transform.Rotation.from_rotvec(x)
        found = scipy.spatial.transform.RotationSpline(times, rotations)(at, order)
        return found.as_matrix() if order == 0 else found

    for x in (equal, pairs):
        np.testing.assert_allclose(traced(f, x), f(x), rtol=1e-12, atol=1e-12)
        want = differences(lambda y: traced(f, y), x, 1e-3)
        np.testing.assert_allclose(jacfwd(f)(x), want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(vmap(jacrev(f))(np.stack([x + 0.1, x]))[1], want, rtol=1e-9, atol=1e-9)
        bend = differences(lambda h: jacrev(f)(x + h * DIRECTION), 0.0, 1e-3)  # noqa: B023
        np.testing.assert_allclose(jvp(jacrev(f), (x,), (DIRECTION,))[1], bend, rtol=1e-9, atol=1e-9)
