"""Sparse matrices with traced values: against dense ones, SciPy's own, and what is refused."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacobian, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.scipy import sparse

RNG = np.random.default_rng(0)
MATRIX = scipy.sparse.random_array((8, 8), density=0.3, rng=RNG, format="csc") + 3 * scipy.sparse.eye_array(8)
A = sparse.csr_array(MATRIX)
B = RNG.normal(size=8)


def by_dense(data, b):
    full = fnp.zeros((8, 8))
    full[A.structure.rows, A.structure.indices] = data
    return fnp.linalg.solve(full, b)


def by_sparse(data, b):
    return sparse.linalg.spsolve(A.with_data(data), b)


def test_values_are_scipys():
    np.testing.assert_allclose(sparse.linalg.spsolve(MATRIX, B), scipy.sparse.linalg.spsolve(MATRIX, B), rtol=1e-13)
    np.testing.assert_allclose(sparse.matvec(MATRIX.tocoo(), B), MATRIX @ B, rtol=1e-13)
    np.testing.assert_allclose(A.T.toarray(), MATRIX.toarray().T)
    assert (A.T @ B).dtype == float
    assert A.shape == (8, 8)
    assert A.nnz == MATRIX.nnz
    many = RNG.normal(size=(8, 3))
    np.testing.assert_allclose(sparse.linalg.spsolve(A.T, many), np.linalg.solve(MATRIX.toarray().T, many), rtol=1e-12)


def test_derivatives_are_those_of_dense_matrices():
    for position in (0, 1):
        got, want = (jacobian(f, position)(A.data, B) for f in (by_sparse, by_dense))
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
    got, want = (hessian(lambda d, f=f: fnp.sum(f(d, B) ** 2))(A.data) for f in (by_sparse, by_dense))
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    check_grads(by_sparse, (A.data, B), order=3)


def test_a_sparse_matrix_is_a_tree():
    found = grad(lambda a: fnp.sum((a.T @ B) ** 2))(A)
    assert found.structure is A.structure
    want = 2 * np.outer(B, MATRIX.T @ B)
    np.testing.assert_allclose(found.data, want[A.structure.rows, A.structure.indices], rtol=1e-12)
    batch = vmap(lambda d: A.with_data(d) @ B)(np.stack([A.data, 2 * A.data]))
    np.testing.assert_allclose(batch[1], 2 * (MATRIX @ B))


def test_both_modes_and_several_right_sides_factorise_once(monkeypatch):
    calls = []
    splu = scipy.sparse.linalg.splu
    monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda *args: calls.append(1) or splu(*args))
    fresh = sparse.csr_array(MATRIX)
    grad(lambda d: fnp.sum(sparse.linalg.spsolve(fresh.with_data(d), B) ** 2))(fresh.data)
    jacobian(lambda d: sparse.linalg.spsolve(fresh.with_data(d), B))(fresh.data)
    assert len(calls) == 1
    sparse.linalg.spsolve(fresh.with_data(2 * fresh.data), B)
    assert len(calls) == 2


def test_complex_and_single_values():
    z = A.data + 1j * RNG.normal(size=A.nnz)
    full = A.with_data(z).toarray()
    np.testing.assert_allclose(by_sparse(z, B), np.linalg.solve(full, B), rtol=1e-12)
    check_grads(by_sparse, (z, B + 0j), order=2)
    single = by_sparse(A.data.astype(np.float32), B.astype(np.float32))
    assert single.dtype == np.float32
    assert by_sparse(np.ones(A.nnz, int) + 7 * (A.structure.rows == A.structure.indices), np.arange(8)).dtype == float


def test_values_at_one_place_are_added():
    def total(data):
        return fnp.sum(sparse.coo_array((data, ([1, 0, 1], [0, 1, 0]))).toarray() ** 2)

    np.testing.assert_allclose(grad(total)(np.array([1.0, 2.0, 3.0])), [8.0, 4.0, 8.0])


def test_errors():
    with pytest.raises(InputError, match="A must be a sparse matrix"):
        sparse.matvec(np.eye(2), np.ones(2))
    with pytest.raises(ShapeError, match="does not fit the matrix of 8 x 8"):
        sparse.matvec(A, np.ones(7))
    with pytest.raises(ShapeError, match="must be square"):
        sparse.linalg.spsolve(scipy.sparse.csr_array((2, 3)), np.ones(2))
    with pytest.raises(ShapeError, match="data must have"):
        A.with_data(np.ones(3))
    with pytest.raises(InputError, match="same structure"):
        A + sparse.csr_array(MATRIX)
    with pytest.raises(InputError, match="only a number"):
        A * np.ones(8)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        by_sparse(np.zeros(A.nnz), B)
    with pytest.raises(ValueError, match=r"indices|index"):
        sparse.csr_array((np.ones(2), [0, 5], [0, 1, 2]), shape=(2, 2))
