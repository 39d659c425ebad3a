"""Densities of SciPy for covariances whose eigenvectors have no derivative, because variances are equal."""

import numpy as np
import pytest
from helpers import differences
from scipy import stats

from funcgrad import grad, hessian, value_and_grad, vmap

X, POINT = np.array([1.3, 0.7, 2.1]), np.array([0.3, -0.2, 0.5])
DENSITIES = {
    "one variance": lambda x: stats.multivariate_normal.logpdf(POINT, 0.1 * x, np.eye(3) * x[0]),
    "two variances": lambda x: stats.multivariate_normal(np.zeros(3), np.diag([x[0], x[0], x[1]])).logpdf(POINT * x[2]),
    "several points": lambda x: stats.multivariate_normal.logpdf(np.outer(x, POINT), None, np.eye(3) * x[0]).sum(),
    "pdf": lambda x: stats.multivariate_normal.pdf(POINT * x, cov=np.eye(3) * x[1] + 0.3 * x[0]),
    "entropy": lambda x: stats.multivariate_normal.entropy(None, np.eye(3) * x[0]),
    "Student": lambda x: stats.multivariate_t.logpdf(POINT, 0.1 * x, np.eye(3) * x[0], df=3.0 + x[1]),
    "matrix": lambda x: stats.matrix_normal.logpdf(
        np.outer(x, POINT), rowcov=np.eye(3) * x[0], colcov=np.eye(3) * x[1]
    ),
    "singular": lambda x: stats.multivariate_normal.logpdf(
        np.array([1.0, 1.0, 0.0]) * x[1], np.zeros(3), np.diag([x[0], x[2], 0.0]), allow_singular=True
    ),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_with_equal_variances(name):
    def f(x):
        return DENSITIES[name](x) * 1.0

    value, gradient = value_and_grad(f)(X)
    assert float(value) == pytest.approx(float(f(X)), rel=1e-12)
    np.testing.assert_allclose(gradient, differences(f, X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 2 * X]))[1], grad(f)(2 * X), rtol=1e-10)
    with np.errstate(invalid="ignore"):  # of a distance 0 that is compared only
        np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X), rtol=1e-6, atol=1e-8)


def test_indefinite_covariance_raises_as_scipy():
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        grad(lambda x: stats.multivariate_normal.logpdf(POINT, None, np.diag([x[0], x[1], 0.0])))(X)
    with pytest.raises(ValueError, match="positive semidefinite"):
        grad(lambda x: stats.multivariate_normal.logpdf(POINT, None, np.diag([x[0], x[1], -1.0])))(X)
