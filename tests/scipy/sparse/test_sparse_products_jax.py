"""Products with SciPy's sparse matrices in functions that JAX compiles or differentiates."""

import jax
import numpy as np
import pytest
import scipy.sparse
from helpers import differences

import funcgrad.numpy as fnp
from funcgrad import grad, vmap
from funcgrad.errors import InputError
from funcgrad.interop import from_numpy, jit, to_jax
from funcgrad.scipy import sparse

DENSE = np.where(np.random.default_rng(0).random((4, 4)) < 0.6, np.arange(1.0, 17.0).reshape(4, 4), 0.0)
X = np.linspace(0.1, 1.0, 4)
PROGRAMS = {
    "left": lambda A, x: fnp.sin(fnp.matmul(A, x)),
    "right": lambda A, x: fnp.sin(x @ A),
    "both": lambda A, x: x @ fnp.matmul(A, x) + fnp.sum(fnp.matmul(A.T, x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_under_jit_and_jax_grad(name):
    f, A = PROGRAMS[name], scipy.sparse.csc_array(DENSE)
    np.testing.assert_allclose(jit(lambda x: f(A, x))(X), f(DENSE, X), rtol=1e-12)
    loss = lambda M: lambda x: fnp.sum(f(M, x) ** 2)
    want = grad(loss(DENSE))(X)
    np.testing.assert_allclose(jit(grad(loss(A)))(X), want, rtol=1e-11)
    np.testing.assert_allclose(jax.grad(to_jax(loss(A)))(X), want, rtol=1e-11)
    np.testing.assert_allclose(jit(vmap(grad(loss(A))))(np.stack([X, X]))[1], want, rtol=1e-11)
    np.testing.assert_allclose(to_jax(lambda x: f(A, x))(X), f(DENSE, X), rtol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_solve_with_duplicate_entries(turned):
    places, data = ([0, 2, 0, 1, 1, 0, 2], [0, 0, 0, 1, 0, 2, 2]), np.array([2.0, 0.4, 1.0, 3.0, 0.5, 0.2, 1.5])

    def f(d, b):
        A = sparse.coo_array((d, places), (3, 3))
        return fnp.sum(sparse.linalg.spsolve(A.T if turned else A, b) ** 2)

    for position in (0, 1):
        want = grad(f, position)(data, X[:3])
        np.testing.assert_allclose(grad(f, position)(jax.numpy.asarray(data), X[:3]), want, rtol=1e-9)
        np.testing.assert_allclose(jax.grad(to_jax(f), position)(data, X[:3]), want, rtol=1e-9)


def test_eigenvalues_under_jit_raise():
    def largest(x):
        return sparse.linalg.eigsh(sparse.diags_array([x]), 2)[0].sum()

    np.testing.assert_allclose(grad(largest)(X), [0, 0, 1, 1], atol=1e-14)
    with pytest.raises(InputError, match="SciPy iterates on NumPy arrays, got JAX's"):
        grad(largest)(jax.numpy.asarray(X))


def with_diagonal(x):
    A = sparse.csr_array(DENSE)
    A.setdiag(x)
    return fnp.sum(A.toarray() ** 2)


def with_constant_diagonal(x):
    A = sparse.csr_array((x, (np.arange(4), np.arange(4)[::-1])), shape=(4, 4)) * x[0]
    A.setdiag(np.array([1.0, 0.0, 2.0, 3.0]))
    return fnp.sum(A.toarray() ** 2)


def with_elements(x):
    A = scipy.sparse.csr_array(DENSE) * x[3]
    (first, second, *_), (left, right, *_) = DENSE.nonzero()
    A[first, left], A[second, right] = x[0] * x[1], x[2]
    A[DENSE > 5.5] = 2.0
    A /= 2.0
    A /= np.arange(1.0, 5.0)
    return (A.toarray() ** 2).sum()


@pytest.mark.parametrize("fun", [with_diagonal, with_constant_diagonal, from_numpy(with_elements)])
def test_writes_in_functions_that_jax_compiles(fun):
    expected = grad(fun)(X)
    np.testing.assert_allclose(expected, differences(fun, X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(fun)(X), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.grad(fun))(X), expected, rtol=1e-12)
    assert float(jax.jit(fun)(X)) == pytest.approx(float(fun(X)), rel=1e-12)
