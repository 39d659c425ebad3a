"""Some eigenvalues of sparse matrices: against all of dense matrices, differences, equal eigenvalues, errors."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg as linalg
from helpers import at_least, differences

from funcgrad import check_grads, grad, hessian, jacobian, jit, jvp, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.scipy import sparse

N = 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=N) ** 2 + 1.0
WEIGHTS = RNG.normal(size=(N, 3))
START = RNG.normal(size=N)
TURN = np.exp(1j * np.arange(N - 1.0))


def stiffness(x, form="csc", turn=1.0):
    """Return a Hermitian matrix of three diagonals."""
    beside = x[1:] * x[:-1] / 4 * turn
    return scipy.sparse.diags([np.conj(beside), np.arange(N) / 9 + x, beside], [-1, 0, 1], format=form)


def masses(x):
    return scipy.sparse.diags([x[1:] / 9, 2.0 + x**2, x[1:] / 9], [-1, 0, 1]).tocsr()


def signless(v, weights=WEIGHTS):
    """Return a number that depends on every element of the vectors, but not on their signs or phases."""
    return np.sum(np.abs(weights[:, : v.shape[1]].T @ v) ** 2 * np.arange(1.0, 1 + v.shape[1]))


def both(found):
    w, v = found
    return np.sum(w**2) + signless(v) * np.sum(w)


HERMITIAN = {
    "largest": lambda x: both(linalg.eigsh(stiffness(x), k=3, v0=START)),
    "smallest": lambda x: both(linalg.eigsh(stiffness(x, "csr"), k=2, which="SA", v0=START)),
    "near": lambda x: both(linalg.eigsh(stiffness(x, "coo"), k=3, sigma=1.9, v0=START)),
    "values": lambda x: np.sum(linalg.eigsh(stiffness(x), 3, v0=START, return_eigenvectors=False) ** 2),
    "complex": lambda x: both(linalg.eigsh(stiffness(x, turn=TURN), k=3, v0=START)),
    "weighted": lambda x: both(linalg.eigsh(stiffness(x), k=3, M=masses(x), v0=START)),
    "weighted, near": lambda x: both(linalg.eigsh(stiffness(x), k=2, M=masses(x), sigma=0.5, v0=START)),
    "weights only": lambda x: both(linalg.eigsh(stiffness(X).tocsc(), k=2, M=masses(x), v0=START)),
    "dense": lambda x: both(linalg.eigsh(stiffness(x).toarray(), k=3, v0=START)),
    "operator": lambda x: both(
        linalg.eigsh(linalg.LinearOperator((N, N), matvec=lambda u: stiffness(x) @ u, dtype=float), k=2, v0=START)
    ),
    "singular values": lambda x: np.sum(
        linalg.svds(stiffness(x)[:, :8].tocsr(), k=3, return_singular_vectors=False) ** 3
    ),
    "singular vectors": lambda x: both(linalg.svds(stiffness(x)[:, :8], k=2, v0=START[:8])[1::-1]),
    "lobpcg": lambda x: np.sum(
        linalg.lobpcg(stiffness(x), WEIGHTS[:, :2].copy(), largest=False, tol=1e-13, maxiter=400)[0] ** 2
    ),
}


#: Functions for which two runs differ within rounding.
ITERATED = ("singular values", "lobpcg")


@pytest.mark.parametrize("name", HERMITIAN)
def test_eigenvalues_of_hermitian_matrices(name):
    fun = HERMITIAN[name]
    if name in ITERATED:
        np.testing.assert_allclose(grad(fun)(X), differences(fun, X, 1e-3), rtol=1e-5, atol=1e-6)
    else:
        check_grads(fun, (X,), order=2)
        rows = vmap(grad(fun))(np.stack([X, 1.1 * X]))
        np.testing.assert_allclose(rows[1], grad(fun)(1.1 * X), rtol=1e-8)


def nonsymmetric(x, form="csr"):
    return scipy.sparse.diags([x[1:] ** 2, np.arange(N) / 9 + x, x[:-1] / 5], [-1, 0, 1], format=form)


def pairs(x):
    return scipy.sparse.diags([x[1:], -x[1:]], [1, -1])


GENERAL = {
    "real": lambda x: both(linalg.eigs(nonsymmetric(x), k=2, v0=START)).real,
    "in pairs": lambda x: np.sum(
        np.abs(linalg.eigs(scipy.sparse.diags([x[1:], -x[1:]], [1, -1]), k=4, v0=START)[0] - 1.0j) ** 3
    ),
    "vectors in pairs": lambda x: both(linalg.eigs(nonsymmetric(x) - 4 * nonsymmetric(x[::-1]).T, k=2, v0=START)).real,
    "weighted": lambda x: both(linalg.eigs(nonsymmetric(x, "csc"), k=2, M=masses(X).tocsc(), v0=START)).real,
    "near": lambda x: np.sum(
        linalg.eigs(nonsymmetric(x, "csc"), k=2, sigma=3.0, v0=START, return_eigenvectors=False).real ** 2
    ),
}


@pytest.mark.parametrize("name", GENERAL)
def test_eigenvalues_of_general_matrices(name):
    fun = GENERAL[name]
    check_grads(fun, (X,), order=2)
    rows = vmap(grad(fun))(np.stack([X, 1.1 * X]))
    np.testing.assert_allclose(rows[1], grad(fun)(1.1 * X), rtol=1e-8)


def test_all_eigenvalues_match_dense_matrix():
    """Check against all eigenvalues of a dense matrix, with third derivatives and recorded."""

    def some(x):
        w, v = linalg.eigsh(stiffness(x), k=2, which="SA", v0=START)
        return np.sum(w**2) + signless(v)

    def of_all(x):
        w, v = np.linalg.eigh(stiffness(x).toarray())
        return np.sum(w[:2] ** 2) + signless(v[:, :2])

    assert some(X) == pytest.approx(of_all(X))
    np.testing.assert_allclose(hessian(some)(X), hessian(of_all)(X), rtol=1e-8, atol=1e-10)
    third = [jvp(hessian(f), (X,), (WEIGHTS[:, 0],))[1] for f in (some, of_all)]
    np.testing.assert_allclose(third[0], third[1], rtol=1e-6, atol=1e-8)
    run = jit(grad(some), backend="numpy")
    run(X)
    np.testing.assert_allclose(run(1.1 * X), grad(of_all)(1.1 * X), rtol=1e-8)


def rings(x, size=12):
    """Return the Laplacian of a ring: all eigenvalues but two coincide with another."""
    ring = scipy.sparse.diags([-np.ones(size - 1), -np.ones(size - 1), [-1.0], [-1.0]], [1, -1, size - 1, 1 - size])
    return (ring + scipy.sparse.diags([x], [0])).tocsc()


def test_repeated_eigenvalues():
    x = np.full(12, 2.0)
    trace = lambda find: lambda x: find(x)[0] @ np.ones(3)
    some = lambda x: linalg.eigsh(rings(x), k=3, sigma=-0.1, v0=START)
    of_all = lambda x: tuple(part[..., :3] for part in np.linalg.eigh(rings(x).toarray()))
    np.testing.assert_allclose(grad(trace(some))(x), grad(trace(of_all))(x), rtol=1e-9)
    np.testing.assert_allclose(hessian(trace(some))(x), hessian(trace(of_all))(x), rtol=1e-6, atol=1e-8)
    projector = lambda find: lambda x: np.sum((find(x)[1] @ find(x)[1].T)[:3, 2:7] ** 2)
    np.testing.assert_allclose(grad(projector(some))(x), grad(projector(of_all))(x), rtol=1e-6, atol=1e-10)
    assert np.isnan(grad(lambda x: some(x)[1][0, 1] ** 2)(x)).any()
    assert np.isnan(jvp(lambda x: some(x)[1], (x,), (np.arange(12.0),))[1]).any()
    cut = lambda x: linalg.eigsh(rings(x), k=2, sigma=-0.1, v0=START)  # the third eigenvalue coincides with the second
    assert np.isfinite(grad(lambda x: cut(x)[0].sum())(x)).all()
    assert np.isnan(grad(lambda x: cut(x)[1][0, 1] ** 2)(x)).any()
    assert np.isfinite(grad(lambda x: cut(x)[1][0, 0] ** 2)(x)).all()


def test_scipy_functions_dispatch():
    A = sparse.csr_array(stiffness(X).tocsr())
    np.testing.assert_allclose(sparse.linalg.eigsh(A, 2)[0], linalg.eigsh(stiffness(X), 2)[0])
    ours, theirs = sparse.linalg.eigs(stiffness(X).tocsr(), 2)[0], linalg.eigs(stiffness(X), 2)[0]
    np.testing.assert_allclose(np.sort(ours), np.sort(theirs))  # from random vectors, the order is arbitrary
    found = grad(lambda a: sparse.linalg.eigsh(a, 1)[0][0])(A)
    v = linalg.eigsh(stiffness(X), 1)[1][:, 0]
    np.testing.assert_allclose(found.data, np.multiply(*(v[places] for places in A.places())), rtol=1e-9, atol=1e-14)
    turned = jacobian(lambda d: sparse.linalg.eigsh(A.T.with_data(d), 2)[0])(A.data)
    np.testing.assert_allclose(turned, jacobian(lambda d: sparse.linalg.eigsh(A.with_data(d), 2)[0])(A.data), atol=1e-9)
    single = grad(lambda x: sparse.linalg.eigsh(sparse.diags_array([x]), 1)[0][0])(np.arange(5, dtype=np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, [0, 0, 0, 0, 1], atol=1e-5)


def test_invalid_calls_raise():
    make = lambda x: scipy.sparse.diags([x, x[1:]], [0, 1], format="csc")
    for fun, error, problem in (
        (lambda x: linalg.eigsh(make(x), 2, sigma=1.0, mode="cayley")[0], InputError, "mode must be 'normal'"),
        (lambda x: linalg.eigs(make(x), 2, M=make(x))[0].real, InputError, "M must be constant"),
        (lambda x: linalg.eigsh(make(x)[:, :4], 2)[0], ShapeError, "must be square"),
    ):
        with pytest.raises(error, match=problem):
            grad(lambda x, fun=fun: np.sum(fun(x)))(X)


@pytest.mark.parametrize("name", ["eigsh", "eigs", "svds"])
def test_traced_settings_are_constants(name):
    """ARPACK, compiled code, reads them without asking whether they are numbers."""

    def f(s):
        settings = {"tol": 1e-12 * s} if name == "svds" else {"tol": 1e-12 * s, "sigma": 3.0 * s}
        found = getattr(linalg, name)(stiffness(X) * s, 1, **settings)
        return np.real(found[1 if name == "svds" else 0][0])

    assert grad(f)(1.2) == pytest.approx(f(1.2) / 1.2)
    assert vmap(grad(f))(np.array([1.2, 1.2])).tolist() == pytest.approx([grad(f)(1.2)] * 2)


@pytest.mark.parametrize("name", ["eigsh", "eigs"])
def test_traced_starting_vectors_are_constants(name):
    def f(v):
        return np.real(getattr(linalg, name)(stiffness(X) * v[0], 1, v0=v)[0][0])

    slope = grad(f)(START)
    assert slope[0] == pytest.approx(f(START) / START[0])
    assert not slope[1:].any()


@pytest.mark.parametrize("values", [[1.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 2.0, 3.0, 4.0, 5.0]])
def test_repeated_eigenvalues_of_general_matrices(values):
    x = np.array(values)
    find = lambda x: linalg.eigs(scipy.sparse.diags([x], [0]).tocsc(), k=2, sigma=1.4, v0=np.ones(6))
    for i, value in enumerate(find(x)[0].real.round(9)):
        repeated = values.count(value) > 1
        vector = lambda x, i=i: (find(x)[1][:, i].real ** 2 * np.arange(6.0)).sum()
        for f in (lambda x, i=i: find(x)[0][i].real, vector):
            assert np.isnan(grad(f)(x)).all() == repeated
            assert np.isnan(jvp(f, (x,), (np.arange(6.0),))[1]) == repeated


def test_eigenvalues_alone_of_a_pair_of_matrices():
    f = lambda x: linalg.eigsh(stiffness(x), k=3, M=masses(x), sigma=0.0, v0=START, return_eigenvectors=False)
    np.testing.assert_allclose(jacobian(f)(X), differences(f, X, 1e-4), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["the matrix", "both", "neither"])
def test_linear_operators_with_a_traced_second_matrix(kind):
    weights = scipy.sparse.csr_array(np.diag([1.0, 2.0, 3.0]))
    operator = linalg.LinearOperator((3, 3), matvec=lambda x: weights @ x, dtype=float)

    def least(x):
        M = scipy.sparse.csr_array(np.diag([4.0, 5.0, 6.0])) * x[0] + scipy.sparse.csr_array(
            np.eye(3, k=1) + np.eye(3, k=-1)
        )
        traced = linalg.LinearOperator((3, 3), matvec=lambda y: M @ y, dtype=float)
        A = weights if kind == "neither" else operator
        return linalg.eigsh(A, 1, traced if kind == "both" else M, v0=np.ones(3))[0][0]

    dense = lambda x: np.linalg.eigvals(
        np.linalg.solve(np.diag([4.0, 5.0, 6.0]) * x[0] + np.eye(3, k=1) + np.eye(3, k=-1), np.diag([1.0, 2.0, 3.0]))
    ).real.max()
    x = np.array([1.3])
    np.testing.assert_allclose(grad(least)(x), differences(dense, x), rtol=1e-7)


@pytest.mark.parametrize("search", ["svds", *(("eigsh", "eigs") if at_least(scipy, "1.17.0") else ())])
def test_start_from_a_generator(search):
    """The generator is given, or made in the function."""
    given = np.random.default_rng(3)

    def largest(x, rng=None):
        rng = np.random.default_rng(3) if rng is None else rng
        found = getattr(linalg, search)(stiffness(x), 2, rng=rng)
        return np.max((found[1] if search == "svds" else found[0]).real)

    want = differences(lambda x: np.linalg.eigvalsh(stiffness(x).toarray()).max(), X)
    np.testing.assert_allclose(grad(largest)(X), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grad(lambda x: largest(x, given))(X), want, rtol=1e-6, atol=1e-8)
