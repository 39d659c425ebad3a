"""Sparse matrices in programs of SciPy as they stand: filled bit by bit, made of diagonals, scaled, multiplied."""

import numpy as np
import pytest
import scipy.sparse as sparse
from helpers import differences

from funcgrad import grad, jvp

M = sparse.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
X = np.array([0.4, 0.6])
FILLED = [sparse.lil_matrix, sparse.lil_array, sparse.dok_matrix, sparse.dok_array]


def elements(kind):
    """One element after the other."""

    def f(x):
        K = kind((3, 3))
        for i in range(3):
            K[i, i] = x[0] + i
        K[0, 1] += x[1]
        K[0, 1] *= 2.0
        K[2, 0] = x[1]
        K[2, 0] = -1.0
        return sparse.linalg.spsolve(K.tocsr(), np.ones(3)) @ np.arange(3.0) + (K.T @ np.ones(3))[0] * K[0, 1]

    return f


def assembled(kind):
    """Stiffnesses of bars, as finite elements add them up, and a row of constants."""

    def f(x):
        K = kind((4, 4))
        for e in range(3):
            nodes = [e, e + 1]
            K[np.ix_(nodes, nodes)] += (x[0] + e) * np.array([[1.0, -1.0], [-1.0, 1.0]])
        K[0, :] = 0.0
        K[0, 0] = 1.0
        assert isinstance(K, kind)
        return sparse.linalg.spsolve(K.tocsc(), np.array([0.0, 0.0, 0.0, x[1]]))[-1]

    return f


def constants(kind):
    def f(x):
        K = kind((2, 2))
        K[0, 1] = -1.0
        K.setdiag(2.0)
        return (K.tocsr() @ x).sum() + (K * x[0]).sum() + (x[1] * K).sum()

    return f


MADE = {
    "identity": lambda x: (x[1] * sparse.identity(3)).sum(),
    "eye_array": lambda x: (x[1] * sparse.eye_array(3) - sparse.eye_array(3) * x[0]).sum(),
    "difference": lambda x: ((sparse.diags([1.0, 2.0], 0) - x[1] * sparse.eye(2)).tocsc() * x).sum(),
    "number on the left": lambda x: ((x[0] * M) * x).sum(),
    "kron of arrays": lambda x: (sparse.kron(np.eye(2), np.ones((1, 2))) * x[0]).sum(),
    "spdiags": lambda x: (sparse.spdiags(np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1], 2, 2) * x).sum(),
    "spdiags of traced": lambda x: (sparse.spdiags(np.vstack([x, x**2]), [0, 1], 2, 2) * np.array([1.0, 2.0])).sum(),
    "power": lambda x: ((M * x[0]) ** 2 * x).sum() + ((sparse.csr_array(M) * x[0]) ** 2 @ x).sum(),
    "format": lambda x: (sparse.eye(2, format="csc") * x[0] + M.tocsc() * x[1]).toarray().std(),
}
PROGRAMS = {
    **{f"{make.__name__} {kind.__name__}": make(kind) for make in (elements, assembled, constants) for kind in FILLED},
    **MADE,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    slope = grad(f)(X)
    np.testing.assert_allclose(slope, differences(f, X, 5e-4), rtol=2e-6, atol=1e-8)
    value, pushed = jvp(f, (X,), (np.array([1.0, -0.5]),))
    np.testing.assert_allclose([value, pushed], [f(X), slope @ [1.0, -0.5]], rtol=1e-9)
