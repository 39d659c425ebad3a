"""Sparse matrices with traced values: against dense matrices and SciPy's, and errors."""

import numpy as np
import pytest
import scipy
import scipy.sparse
import scipy.sparse.linalg
from helpers import at_least, differences

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacobian, vmap
from funcgrad.errors import ConvergenceError, InputError, ShapeError
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


def test_values_match_scipy():
    np.testing.assert_allclose(sparse.linalg.spsolve(MATRIX, B), scipy.sparse.linalg.spsolve(MATRIX, B), rtol=1e-13)
    np.testing.assert_allclose(sparse.matvec(MATRIX.tocoo(), B), MATRIX @ B, rtol=1e-13)
    np.testing.assert_allclose(A.T.toarray(), MATRIX.toarray().T)
    assert (A.T @ B).dtype == float
    assert A.shape == (8, 8)
    assert A.nnz == MATRIX.nnz
    many = RNG.normal(size=(8, 3))
    np.testing.assert_allclose(sparse.linalg.spsolve(A.T, many), np.linalg.solve(MATRIX.toarray().T, many), rtol=1e-12)


@pytest.mark.parametrize("solve", ["spsolve", "spsolve_triangular", "splu"])
@pytest.mark.parametrize("columns", [1, 2])
def test_shapes_of_right_sides_are_those_of_scipy(solve, columns):
    """``spsolve`` returns a vector for one column, its relatives a column."""
    lib = scipy.sparse.linalg
    call = (lambda a, b: lib.splu(a).solve(b)) if solve == "splu" else getattr(lib, solve)
    b = np.stack([B, 2 * B], 1)[:, :columns]
    lower = scipy.sparse.tril(MATRIX).tocsc()

    def shape(data):
        return call(scipy.sparse.csc_array((data, lower.indices, lower.indptr)), b).shape

    assert grad(lambda d: (d.sum(), shape(d)), has_aux=True)(lower.data)[1] == shape(lower.data)
    if solve == "spsolve" and columns == 1:
        found = jacobian(lambda s: lib.spsolve(lower, s * scipy.sparse.csc_array(b)))(1.0)
        np.testing.assert_allclose(found, lib.spsolve(lower, B))


def test_derivatives_match_dense_matrices():
    for position in (0, 1):
        got, want = (jacobian(f, position)(A.data, B) for f in (by_sparse, by_dense))
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
    got, want = (hessian(lambda d, f=f: fnp.sum(f(d, B) ** 2))(A.data) for f in (by_sparse, by_dense))
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    check_grads(by_sparse, (A.data, B), order=3)


def test_sparse_matrix_is_a_pytree():
    found = grad(lambda a: fnp.sum((a.T @ B) ** 2))(A)
    assert found.structure is A.structure
    want = 2 * np.outer(B, MATRIX.T @ B)
    np.testing.assert_allclose(found.data, want[A.structure.rows, A.structure.indices], rtol=1e-12)
    batch = vmap(lambda d: A.with_data(d) @ B)(np.stack([A.data, 2 * A.data]))
    np.testing.assert_allclose(batch[1], 2 * (MATRIX @ B))


def test_one_factorization_for_modes_and_right_sides(monkeypatch):
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


def test_duplicate_entries_are_added():
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
    for fails in (
        lambda: A + sparse.eye_array(3),
        lambda: A * sparse.eye_array(3),
        lambda: A @ sparse.eye_array(3),
        lambda: sparse.diags_array([np.ones(3)], offsets=[1], shape=(5, 5)),
        lambda: sparse.diags_array([np.ones(3)], offsets=[4], shape=(3, 3)),
        lambda: sparse.diags_array([np.ones(3), np.ones(3)], offsets=[0, 0]),
        lambda: sparse.diags_array([np.ones(3), np.ones(2)]),
        lambda: sparse.diags_array([np.ones(3)], offsets=[0, 1]),
    ):
        with pytest.raises(ShapeError):
            fails()
    with pytest.raises(InputError, match="not sparse"):
        A / A
    with pytest.raises(InputError, match="slices and arrays"):
        A[0]
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        by_sparse(np.zeros(A.nnz), B)
    with pytest.raises(ValueError, match=r"indices|index"):
        sparse.csr_array((np.ones(2), [0, 5], [0, 1, 2]), shape=(2, 2))


SMALL = scipy.sparse.random_array((5, 4), density=0.5, rng=RNG, format="csr")
WIDE = scipy.sparse.random_array((4, 5), density=0.5, rng=RNG, format="csr")
OTHER = scipy.sparse.random_array((5, 4), density=0.5, rng=RNG, format="csr")
DENSE = RNG.normal(size=(5, 4))
COMBINED = {
    "product": lambda a, b, c: a @ b,
    "product of a transpose": lambda a, b, c: a.T @ c,
    "sum": lambda a, b, c: a + c,
    "difference": lambda a, b, c: a - c,
    "sum with a transpose": lambda a, b, c: a + b.T,
    "elements": lambda a, b, c: a * c,
    "elements of a transpose": lambda a, b, c: a.multiply(b.T),
    "times an array": lambda a, b, c: a * DENSE,
    "times a row": lambda a, b, c: a * DENSE[0],
    "over an array": lambda a, b, c: a / (DENSE**2 + 1.0),
    "less a number's multiple": lambda a, b, c: -a - 2.0 * c,
    "rows": lambda a, b, c: a[1:4],
    "columns": lambda a, b, c: a.T[1:4, ::2],
    "chosen rows": lambda a, b, c: a[[2, 0]],
}


@pytest.mark.parametrize("name", COMBINED)
def test_combined_matrices_match_scipy(name):
    combine = COMBINED[name]
    ours = [sparse.csr_array(M) for M in (SMALL, WIDE, OTHER)]
    got, want = combine(*ours), combine(SMALL, WIDE, OTHER)
    np.testing.assert_allclose(got.toarray(), want.toarray(), rtol=1e-13)
    assert got.nnz == want.nnz

    def of_data(*data):
        return combine(*[M.with_data(d) for M, d in zip(ours, data, strict=True)]).toarray()

    data = tuple(M.data for M in ours)
    check_grads(of_data, data, order=2)
    batch = vmap(of_data, in_axes=(0, None, None))(np.stack([data[0], 2 * data[0]]), *data[1:])
    np.testing.assert_allclose(batch[1], of_data(2 * data[0], *data[1:]), rtol=1e-13)


def test_scipy_matrices_with_funcgrad_matrices():
    small, other = sparse.csr_array(SMALL), sparse.csr_array(OTHER)
    for got, want in (
        (SMALL @ other.T, SMALL @ OTHER.T),
        (small @ WIDE, SMALL @ WIDE),
        (SMALL + other, SMALL + OTHER),
        (SMALL - other, SMALL - OTHER),
        (SMALL * other, SMALL * OTHER),
        (scipy.sparse.csr_matrix(SMALL) * other.T, SMALL @ OTHER.T),
        (sum([small, other]), SMALL + OTHER),
    ):
        np.testing.assert_allclose(got.toarray(), want.toarray(), rtol=1e-13)
    np.testing.assert_allclose(small + DENSE, SMALL.toarray() + DENSE)
    np.testing.assert_allclose(DENSE - small, DENSE - SMALL.toarray())


def test_parts_of_matrices():
    small = sparse.csr_array(SMALL)
    for k in (-2, 0, 1, 3):
        np.testing.assert_allclose(small.diagonal(k), SMALL.diagonal(k))
    for axis in (None, 0, 1, -1):
        np.testing.assert_allclose(small.sum(axis), SMALL.sum(axis))
        np.testing.assert_array_equal(small.max(axis), SMALL.toarray().max(axis))
        np.testing.assert_array_equal(small.T.min(axis), SMALL.toarray().T.min(axis))
    with pytest.raises(InputError, match="out must be None"):
        small.max(0, np.ones(4))
    np.testing.assert_allclose(sparse.triu(DENSE, 1).toarray(), np.triu(DENSE, 1))
    assert small[1, 2] == SMALL[1, 2]
    assert small[-1, -1] == SMALL[-1, -1]
    assert small.tocsr() is small
    assert sparse.csr_array(np.eye(2)).nnz == 2
    assert sparse.csr_array((2, 3)).shape == (2, 3)
    np.testing.assert_allclose(sparse.csr_array((np.ones(3), ([0, 0, 1], [1, 1, 0]))).data, [2.0, 1.0])
    for diagonals in (B[:3], [B[:3]]):
        np.testing.assert_allclose(sparse.diags_array(diagonals).toarray(), np.diag(B[:3]))
    assert sparse.diags_array(B[:3], offsets=-1).shape == (4, 4)


DIAGONALS = {
    "integers": ([1, 2, 3], {}),
    "integers and single precision": ([np.int32([1, 2, 3]), np.float32([4, 5])], {"offsets": [0, 1]}),
    "single precision": ([np.float32([1, 2])], {"offsets": [1]}),
    "complex": ([[1j, 2], [3]], {"offsets": [0, -1]}),
    "one number for each": ([1, -2, 1], {"offsets": [-1, 0, 1], "shape": (4, 4)}),
    "longer than needed": ([[1.0, 2, 3], [4, 5]], {"offsets": [0, 1], "shape": (2, 4)}),
    "a corner": ([[1.0, 2], [4, 5]], {"offsets": [0, 1], "shape": (1, 1)}),
    "dtype": ([1, 2], {"dtype": np.float32, "offsets": 1}),
    "integers that stay": ([[1, 2], [3]], {"dtype": None, "offsets": np.array([0, 1])}),
}
if not at_least(scipy, "1.16.0"):  # in which None meant the default
    del DIAGONALS["integers that stay"]


@pytest.mark.filterwarnings("ignore:Input has data type")
@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals_of_all_kinds(name):
    diagonals, options = DIAGONALS[name]
    theirs = scipy.sparse.diags_array(diagonals, **options).toarray()
    ours = sparse.diags_array(diagonals, **options).toarray()
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype


def test_overlong_traced_diagonals():
    def f(x, module=sparse):
        made = module.diags_array([x, x**2, x[0]], offsets=[0, 1, -2], shape=(3, 4))
        return np.sum(np.cos(np.arange(12.0).reshape(3, 4)) * made.toarray())

    x = np.array([0.5, 1.5, 2.5, 3.5])
    np.testing.assert_allclose(grad(f)(x), differences(lambda x: f(x, scipy.sparse), x), rtol=1e-8)
    np.testing.assert_allclose(hessian(f)(x) @ x, differences(lambda h: grad(f)(x + h * x), 0.0), rtol=1e-8)


@pytest.mark.parametrize("name", ["cg", "gmres", "bicgstab"])
def test_iterative_solvers(name):
    made = MATRIX + MATRIX.T + 4 * scipy.sparse.eye_array(8) if name == "cg" else MATRIX
    system, ours, theirs = sparse.csr_array(made), getattr(sparse.linalg, name), getattr(scipy.sparse.linalg, name)
    np.testing.assert_array_equal(ours(system, B)[0], theirs(made.tocsr(), B)[0])
    solve = lambda d, b: ours(system.with_data(d), b, rtol=1e-13, M=np.diag(1 / made.diagonal()))[0]
    exact = lambda d, b: sparse.linalg.spsolve(system.with_data(d), b)
    for position in (0, 1):
        got, want = (jacobian(f, position)(system.data, B) for f in (solve, exact))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        vmap(lambda b: solve(system.data, b))(np.stack([B, 2 * B]))[1], 2 * exact(system.data, B)
    )
    np.testing.assert_allclose(
        jacobian(lambda b: ours(made, b, rtol=1e-13)[0])(B), np.linalg.inv(made.toarray()), atol=1e-11
    )
    with pytest.raises(ConvergenceError, match="no convergence"):
        grad(lambda b: ours(made, b, rtol=1e-13, maxiter=1, **({"restart": 1} if name == "gmres" else {}))[0][0])(B)


def test_shift_of_minres_and_traced_tolerances():
    made = (MATRIX + MATRIX.T + 4 * scipy.sparse.eye_array(8)).toarray()

    def solution(s, moving):
        return scipy.sparse.linalg.minres(made * (s if moving else 1.0), B, shift=0.5 * s, rtol=1e-13 * s)[0]

    for moving in (False, True):
        for s in (0.0, 0.3) if not moving else (0.7,):
            exact = lambda s, moving=moving: np.linalg.solve(made * (s if moving else 1.0) - 0.5 * s * np.eye(8), B)
            np.testing.assert_allclose(jacobian(solution)(s, moving), jacobian(exact)(s), rtol=1e-9, atol=1e-11)
    for name in ("cg", "bicg", "lgmres"):
        solver = getattr(scipy.sparse.linalg, name)
        got = jacobian(lambda s, solver=solver: solver(made * s, B, rtol=1e-13 * s, atol=0.0)[0])(1.0)
        np.testing.assert_allclose(got, -np.linalg.solve(made, B), rtol=1e-9, atol=1e-11)


def test_factorizations():
    for trans, full in (("N", MATRIX.toarray()), ("T", MATRIX.toarray().T), ("H", MATRIX.toarray().T)):
        got = jacobian(lambda b, trans=trans: sparse.linalg.splu(A).solve(b, trans))(B)
        np.testing.assert_allclose(got, np.linalg.inv(full), atol=1e-12)
    np.testing.assert_allclose(sparse.linalg.factorized(MATRIX)(B), by_sparse(A.data, B))
    with pytest.raises(ValueError, match="trans"):
        sparse.linalg.splu(A).solve(B, "C")


def test_solve_with_duplicate_entries():
    places, data = ([0, 0, 1, 1, 0, 2], [0, 0, 1, 0, 2, 2]), np.array([2.0, 1.0, 3.0, 0.5, 0.2, 1.5])
    right = np.array([1.0, 2.0, 3.0])
    for _ in range(2):  # the factors are cached
        check_grads(lambda d: sparse.linalg.spsolve(sparse.coo_array((d, places), (3, 3)), right), (data,))
    matrix = sparse.coo_array((data, places), (3, 3))
    for _ in range(2):
        found = grad(lambda d: fnp.sum(sparse.linalg.spsolve(matrix.with_data(d), right)))(matrix.data)
        assert found[0] == found[1] != 0  # both values have the same place
    assert data.tolist() == [2.0, 1.0, 3.0, 0.5, 0.2, 1.5]


def test_spsolve_accepts_scipy_options():
    plain = lambda b: np.sum(scipy.sparse.linalg.spsolve(MATRIX, b, permc_spec="NATURAL", use_umfpack=False) ** 2)
    ours = lambda b: fnp.sum(sparse.linalg.spsolve(MATRIX, b) ** 2)
    np.testing.assert_allclose(grad(plain)(B), grad(ours)(B), rtol=1e-12)
