"""Products with SciPy's sparse matrices in functions that JAX compiles or differentiates."""

import jax
import numpy as np
import pytest
import scipy.sparse

import funcgrad.numpy as fnp
from funcgrad import grad, vmap
from funcgrad.interop import jit, to_jax

DENSE = np.where(np.random.default_rng(0).random((4, 4)) < 0.6, np.arange(1.0, 17.0).reshape(4, 4), 0.0)
X = np.linspace(0.1, 1.0, 4)
PROGRAMS = {
    "left": lambda A, x: fnp.sin(fnp.matmul(A, x)),
    "right": lambda A, x: fnp.sin(x @ A),
    "both": lambda A, x: x @ fnp.matmul(A, x) + fnp.sum(fnp.matmul(A.T, x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_and_by_jax(name):
    f, A = PROGRAMS[name], scipy.sparse.csc_array(DENSE)
    np.testing.assert_allclose(jit(lambda x: f(A, x))(X), f(DENSE, X), rtol=1e-12)
    loss = lambda M: lambda x: fnp.sum(f(M, x) ** 2)
    want = grad(loss(DENSE))(X)
    np.testing.assert_allclose(jit(grad(loss(A)))(X), want, rtol=1e-11)
    np.testing.assert_allclose(jax.grad(to_jax(loss(A)))(X), want, rtol=1e-11)
    np.testing.assert_allclose(jit(vmap(grad(loss(A))))(np.stack([X, X]))[1], want, rtol=1e-11)
    np.testing.assert_allclose(to_jax(lambda x: f(A, x))(X), f(DENSE, X), rtol=1e-12)
