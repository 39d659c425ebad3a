"""Products of traced arrays with sparse matrices of SciPy, as programs for NumPy and SciPy write them."""

import re

import numpy as np
import pytest
import scipy.sparse

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacobian, jvp, no_grad, vmap
from funcgrad.core import Tracer
from funcgrad.errors import ConcretizationError, EscapedTracerError, InputError, ShapeError
from funcgrad.scipy import sparse

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((5, 4)) < 0.5, RNG.normal(size=(5, 4)), 0.0)
X, Y = RNG.normal(size=4), RNG.normal(size=5)
MANY, MANY5 = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 5))
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")


def energy(A, x, y):
    """Multiply from both sides, with vectors and matrices, and with transposes."""
    ahead = fnp.matmul(A, x)
    behind = y @ A
    back = fnp.matmul(A.T, ahead)
    return fnp.sum(ahead * y) ** 2 + fnp.sum(behind**3) + fnp.sum(back * fnp.sin(x)) + x @ fnp.matmul(A.T, y)


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("name", FORMATS)
def test_products_match_dense_matrix(name, kind):
    A = getattr(scipy.sparse, f"{name}_{kind}")(DENSE)
    for position in (1, 2):
        for transform in (grad, hessian):
            got, want = (transform(energy, position)(M, X, Y) for M in (A, DENSE))
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    got, want = (jvp(lambda x, M=M: energy(M, x, Y), (X,), (X[::-1].copy(),)) for M in (A, DENSE))
    np.testing.assert_allclose(got, want, rtol=1e-11)
    check_grads(lambda x, y: energy(A, x, y), (X, Y), order=2)


def test_products_with_matrices_and_batches():
    A = scipy.sparse.csr_array(DENSE)
    for f in (
        lambda M, x: fnp.sin(fnp.matmul(M, x)),
        lambda M, x: fnp.sin(x.T @ M.T),
        lambda M, x: np.matmul(M, x) ** 2 if isinstance(x, Tracer) else fnp.matmul(M, x) ** 2,
    ):
        got, want = (grad(lambda x, M=M: fnp.sum(f(M, x) ** 2))(MANY) for M in (A, DENSE))  # noqa: B023
        np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(grad(lambda x: fnp.sum(np.matmul(A, x)))(MANY), np.tile(DENSE.sum(axis=0), (3, 1)).T)
    np.testing.assert_allclose(vmap(lambda x: fnp.matmul(A, x), in_axes=1, out_axes=1)(MANY), DENSE @ MANY, rtol=1e-13)
    each = vmap(grad(lambda x: fnp.sum(fnp.matmul(A, x) ** 2)), in_axes=1, out_axes=1)(MANY)
    np.testing.assert_allclose(each, 2 * DENSE.T @ (DENSE @ MANY), rtol=1e-12)
    deep = RNG.normal(size=(2, 4, 3))
    assert jvp(lambda x: fnp.matmul(A, x), (deep,), (deep,))[1].shape == (2, 5, 3)
    np.testing.assert_allclose(jvp(lambda x: np.matmul(A, x), (deep,), (deep,))[0], DENSE @ deep, rtol=1e-13)


def test_funcgrad_matrices_on_the_right():
    A = sparse.csr_array(scipy.sparse.csr_array(DENSE))
    np.testing.assert_allclose(Y @ A, Y @ DENSE, rtol=1e-13)
    np.testing.assert_allclose(Y @ A.T.T, Y @ DENSE, rtol=1e-13)
    got = grad(lambda a: fnp.sum((Y @ a) ** 2))(A)
    want = 2 * np.outer(Y, Y @ DENSE)
    np.testing.assert_allclose(got.data, want[A.structure.rows, A.structure.indices], rtol=1e-12)
    np.testing.assert_allclose(grad(lambda y: fnp.sum((y @ A) ** 2))(Y), 2 * DENSE @ (Y @ DENSE), rtol=1e-12)


def test_matrix_is_unchanged():
    A = scipy.sparse.csr_array((np.ones(3), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    np.testing.assert_allclose(grad(lambda x: fnp.sum(fnp.matmul(A, x)))(np.ones(2)), [1.0, 2.0])
    assert A.nnz == 3
    sparse.csr_array(A)
    assert A.nnz == 3


def test_products_of_constants_match_scipy():
    A = scipy.sparse.csr_array(DENSE)

    def f(x):
        made = fnp.zeros(4)
        made[0] = 2.0
        with no_grad():
            assert isinstance(A @ x, np.ndarray)
        return fnp.sum(A @ made) * x[0]

    np.testing.assert_allclose(grad(f)(X), [2 * DENSE[:, 0].sum(), 0, 0, 0])


@pytest.mark.usefixtures("written")
def test_invalid_products_raise():
    A = scipy.sparse.csr_array(DENSE)
    for f in (lambda x: fnp.matmul(A, x), lambda x: x[:4] @ A):
        with pytest.raises(ShapeError, match="matmul: the array does not fit the sparse matrix of 5 x 4"):
            grad(lambda x, f=f: fnp.sum(f(x)))(Y)
    with pytest.raises(ValueError, match="Scalar operands are not allowed"):  # SciPy's message
        grad(lambda x: fnp.sum(A @ x[0]))(Y)
    with pytest.raises(InputError, match=r"is a sparse matrix, got csr_array. Multiply with .*matmul\(A, x\), or"):
        grad(lambda x: fnp.sum(x * A))(X)
    with pytest.raises(ConcretizationError, match=r"numpy\.asarray\(x\)"):
        grad(lambda x: fnp.sum(np.asarray(x)))(X)
    kept = []
    grad(lambda x: kept.append(x) or fnp.sum(x))(X)
    with pytest.raises(EscapedTracerError):
        A @ kept[0]
    with pytest.raises(EscapedTracerError):
        fnp.matmul(A, kept[0])


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("name", FORMATS)
def test_product_started_by_scipy_raises(name, kind):
    """Check the refusal of products that SciPy starts: SciPy converts the right factor to an ndarray."""
    A = getattr(scipy.sparse, f"{name}_{kind}")(DENSE)
    products = [lambda x: A @ x, lambda x: A.dot(x), lambda x: A @ x[:, None], lambda x: A @ fnp.outer(x, x)]
    if kind == "matrix":
        products.append(lambda x: A * x)
    remedy = r"Convert the matrix with funcgrad.scipy.sparse: csr_array\(A\) @ x; or use funcgrad.numpy.matmul\(A, x\)"
    for product in products:
        for run in (grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: lambda x: vmap(f)(np.stack([x, x]))):
            with pytest.raises((ConcretizationError, InputError) if name == "dok" else ConcretizationError) as caught:
                run(lambda x, product=product: fnp.sum(product(x)))(X)
            assert name == "dok" or re.search(remedy, str(caught.value))
    np.testing.assert_allclose(jacobian(lambda x: sparse.csr_array(A) @ x)(X), DENSE)


@pytest.mark.parametrize("name", FORMATS)
def test_star_of_sparse_matrix_is_matrix_product(name):
    A = getattr(scipy.sparse, f"{name}_matrix")(DENSE)
    np.testing.assert_allclose(jacobian(lambda y: y * A)(Y), DENSE.T)
    np.testing.assert_allclose(jvp(lambda y: y * A, (MANY5,), (MANY5,))[1], MANY5 @ DENSE)


@pytest.mark.usefixtures("written")
def test_star_respects_operand_order():
    A = scipy.sparse.csr_matrix(DENSE[:4])
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(vmap(lambda x: fnp.matmul(A, x))(batch), batch @ DENSE[:4].T)
    np.testing.assert_allclose(vmap(lambda x: x * A)(batch), batch @ DENSE[:4])

    def after_a_failure(x):
        with pytest.raises(ConcretizationError, match=r"Convert the matrix with funcgrad\.scipy\.sparse"):
            A * x[0]
        return x * A

    np.testing.assert_allclose(jacobian(after_a_failure)(X), DENSE[:4].T)


def test_lists_and_numbers():
    diagonal = lambda x: sparse.csr_array((x, (np.arange(3), np.arange(3))), shape=(3, 3))
    x = np.array([0.5, 2.1, -1.3])
    assert grad(lambda x: fnp.matmul(diagonal(x), [1.0, 2.0, 3.0]).sum())(x).tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(grad(lambda x: fnp.multiply(diagonal(x), x[0]).sum())(x), [1.8, 0.5, 0.5])
    matrix, weights = scipy.sparse.csr_matrix(np.diag([2.0, 3.0, 4.0])), np.array([1.0, 5.0, 7.0])
    for f in (lambda x: fnp.matmul(matrix, [x[0], 1.0, x[2]]), lambda x: fnp.matmul([x[0], 1.0, x[2]], matrix)):
        assert grad(lambda x, f=f: f(x) @ weights)(x).tolist() == [2.0, 0.0, 28.0]
    np.testing.assert_allclose(grad(lambda y: fnp.multiply(diagonal(x), y[0]).sum())(x), [1.3, 0.0, 0.0])
    for call in (fnp.sum, fnp.ravel, lambda a: fnp.reshape(a, (9,)), fnp.flip):
        with pytest.raises(InputError, match="the argument is a sparse matrix, got csr_matrix"):
            call(scipy.sparse.csr_matrix(np.eye(3)))
