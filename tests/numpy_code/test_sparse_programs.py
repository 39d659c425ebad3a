"""Sparse matrices in unchanged programs of SciPy: filled by element, made of diagonals, scaled, multiplied."""

import sys

import numpy as np
import pytest
import scipy.sparse as sparse
from helpers import differences

from funcgrad import grad, hessian, jacobian, jvp, stop_gradient, value_and_grad, vmap
from funcgrad.errors import ConversionError, NotDifferentiableError, ShapeError
from funcgrad.numpy_code.sparse.recognition import is_sparse_family

M = sparse.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
X = np.array([0.4, 0.6])
COMPRESSED = [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix]
FILLED = [sparse.lil_matrix, sparse.lil_array, sparse.dok_matrix, sparse.dok_array]


def elements(kind):
    """Return a program that writes one element after another."""

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
    """Return a program that adds up the stiffnesses of bars, as finite elements do, and writes a row of constants."""

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
    "dense matrix on the left": lambda x: (
        (np.identity(2) - sparse.csr_array(np.outer(x, x))) * (np.outer(x, x) + sparse.dia_matrix(np.diag(x)))
    ).sum(),
    "number on the left": lambda x: ((x[0] * M) * x).sum(),
    "kron of arrays": lambda x: (sparse.kron(np.eye(2), np.ones((1, 2))) * x[0]).sum(),
    "spdiags": lambda x: (sparse.spdiags(np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1], 2, 2) * x).sum(),
    "spdiags of traced": lambda x: (sparse.spdiags(np.vstack([x, x**2]), [0, 1], 2, 2) * np.array([1.0, 2.0])).sum(),
    "conj": lambda x: np.imag(np.conj(M * (x[0] + 2j * x[1])) * x).sum(),
    "power": lambda x: ((M * x[0]) ** 2 * x).sum() + ((sparse.csr_array(M) * x[0]) ** 2 @ x).sum(),
    "format": lambda x: (sparse.eye(2, format="csc") * x[0] + M.tocsc() * x[1]).toarray().std(),
}
EDGES = ([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
LENGTHS = np.array([1.0, 2.0, 0.5, 1.5, 0.7])


def graph(x, kind=sparse.csr_matrix):
    """Return a graph whose edges count in both directions, with weights that depend on two numbers."""
    weights = LENGTHS * (1.0 + x[0] * np.arange(5) / 9) + x[1] ** 2
    i, j = EDGES
    return kind((np.concatenate([weights, weights]), (i + j, j + i)), shape=(4, 4))


def dense(x, kind=np.asarray):
    return kind(graph(x).toarray())


def scaled_rows(x):
    """Use older sparse classes, which return NumPy matrices with matrix products and two axes."""
    A = graph(x)
    P = A.multiply(1.0 / A.sum(axis=1))
    return np.asarray(P.todense()).dot(np.arange(4.0)).std() + (A / A.sum(axis=0)).sum() ** 2


def matrices(x):
    M, A = graph(x).todense(), graph(x)
    v = np.arange(4.0)[:, None]
    some = (M * v).sum() ** 2 + (M * M)[0, 1] + (M**2)[1, 0] + (v.T * M * v)[0, 0] + (np.sqrt(M + 1) * M).sum()
    more = (A.sum(axis=1) - A.sum(axis=1).T)[0, 2] ** 3 + M[1].sum(axis=1)[0, 0] + M[:, 2].shape[0] * M.I[0, 1]
    rest = (A + np.ones((4, 4))) * v / 3.0 - np.eye(4) * M[:, 0]
    return some + more + (rest.T * rest).A1[0] + M.A[1] @ M.A1[:4] + np.squeeze(np.asarray(M.mean(axis=0))) @ v[:, 0]


def written_matrices(x):
    d = graph(x).sum(axis=1)
    d += 1
    d[0, 0] = x[0] ** 2
    d[d > 7.0] = 2.5
    D = sparse.diags(d.A1) + sparse.spdiags(d.T, 0, 4, 4)
    return (d.T * d)[0, 0] + (np.ones(4) * D).sum() + (np.ones((2, 4)) * D * np.arange(4.0)).sum() ** 2


def constant_sums(x):
    A = sparse.csr_matrix(np.arange(1.0, 5).reshape(2, 2))
    weights = np.multiply(x[:, None], A.sum(axis=1)).sum() ** 2
    return weights + (x * A.sum(axis=1)).sum() + (A.todense() * x[:, None]).sum() ** 2


def rows_and_columns(x):
    A = graph(x)
    found = (A.getrow(1) @ A.getcol(2))[0, 0] + A[1].sum() * A[:, 0].max() + sum(row.sum() ** 2 for row in A)
    return found + np.asarray(A[[0, 1], [1, 2]])[0, 1] + sparse.vstack([A, A[0]]).tocsr()[4, 1]


def products_of_kinds(x):
    """Multiply results of SciPy with ``*``: a matrix product for matrix classes, elementwise for array classes."""
    older, newer = sparse.diags(1.0 + x), sparse.diags_array(1.0 + x)
    v = np.array([[1.0, 2.0], [3.0, 5.0]])
    found = sparse.kron(older, sparse.eye(1)) * v + sparse.hstack([older, older]) * np.vstack([v, v])
    return found.sum() ** 2 + (sparse.tril(newer) * v).sum() ** 2 + (sparse.kronsum(older, older) * v.ravel()).sum()


csgraph, linalg = sparse.csgraph, sparse.linalg


def corner(x):
    return np.array([[0.0, x[0], 1.5], [0.0, 0.0, x[1]], [0.0, 0.0, 0.0]])


def stored_of_dense(x):
    """Use what SciPy stores of a dense array, which are its elements that are not zero."""
    A, B = sparse.csr_matrix(corner(x)), sparse.coo_array(corner(x))
    A.data = np.exp(-A.data)
    places = np.diff(A.indptr) @ np.arange(3.0) + B.row @ B.col + len(A.indices) + A.T.nnz
    made = sparse.csc_matrix((A.data**2, A.indices, A.indptr), shape=A.shape)
    return A.sum() / A.nnz + B.data @ np.arange(3.0) + places * x[1] + made.sum() + B.power(-1).sum()


def zeros_of_dense(x):
    """Use elements that are zero now, but have a derivative."""
    A = sparse.csr_matrix(corner(x - X))
    A = A + sparse.triu(A, 1) + sparse.tril(corner(x - X), 1)
    B = sparse.csc_matrix(corner(x - X) + np.eye(3))
    return (A @ np.arange(3.0)).sum() + (A @ A.T).sum() * x[0] + linalg.spsolve(B, np.ones(3)).sum()


def laplacian_of_dense(x):
    """Laplacian of a graph with edges of length zero, whose lengths have derivatives on and off the diagonal."""
    kinds = (sparse.csr_array, sparse.coo_matrix, sparse.lil_array)
    found = [csgraph.laplacian(kind(corner(x - X)), symmetrized=kind is kinds[0]) for kind in kinds]
    assert (x != X).any() or [L.nnz for L in found] == [5, 4, 4]
    weights = np.arange(9.0).reshape(3, 3) ** 2
    return sum((L.toarray() * weights).sum() for L in found) + sparse.csr_array(corner(x - X)).power(1).sum()


def tree(x):
    T = csgraph.minimum_spanning_tree(graph(x))
    return (T.toarray() * np.arange(16.0).reshape(4, 4)).sum() + csgraph.breadth_first_tree(dense(x), 0).power(2).sum()


def components(x):
    count, labels = csgraph.connected_components(graph(x))
    return graph(x).sum() * count + labels @ dense(x)[0] + csgraph.minimum_spanning_tree(np.abs(x[:, None] - x)).sum()


def constant_tree(x):
    """Use the result of compiled code of constants, which accepts traced values too."""
    return (csgraph.minimum_spanning_tree(graph(np.ones(2))) @ np.append(x, x)).sum()


def by_operators(x):
    A = linalg.LinearOperator((4, 4), matvec=lambda v: dense(x) @ v + 9 * v, dtype=float)
    B = linalg.aslinearoperator(sparse.diags(1 + np.append(x, x)))
    return linalg.cg(A, np.ones(4), rtol=1e-13)[0] @ np.arange(4.0) + ((B * 2 + B.T) @ np.ones(4)).prod()


def preconditioned(x):
    incomplete = linalg.spilu(sparse.csc_matrix(np.diag([4.0, 5.0, 6.0, 7.0])))
    M = linalg.LinearOperator((4, 4), incomplete.solve)
    A = (graph(x) / 9 + sparse.diags(np.arange(4.0, 8))).tocsc()
    return sum(solve(A, np.ones(4), M=M, rtol=1e-12)[0] @ np.arange(4.0) for solve in (linalg.gmres, linalg.cg))


K = sparse.diags_array([np.full(3, -1.0), np.full(4, 3.0), np.full(3, -0.5)], offsets=[-1, 0, 1]).tocsc()
FACTORS, SOLVE, INCOMPLETE = linalg.splu(K), linalg.factorized(K), linalg.spilu(K)
COMPLEX = linalg.splu((K + 1j * sparse.eye_array(4)).tocsc())


def factors_made_outside(x):
    """Use factors that were computed before the function runs, as solvers and as a preconditioner."""
    b = np.concatenate([x, x**2])
    several = FACTORS.solve(np.outer(b, x)).sum(axis=0).prod() + linalg.spilu(K).solve(b)[1]
    turned = FACTORS.solve(b, "T") @ SOLVE(b) + INCOMPLETE.solve(b).sum() ** 2 + FACTORS.solve(np.ones(4))[0] * x[0]
    both = np.abs(COMPLEX.solve(b * (1 + 2j), trans="H")).sum() + (FACTORS.L @ b).sum()
    M = linalg.LinearOperator((4, 4), INCOMPLETE.solve)
    A = (K + sparse.diags_array(np.append(x, x))).tocsc()
    return several + turned + both + linalg.gmres(A, b, M=M, rtol=1e-12)[0].prod()


def preconditioned_by_constants(x):
    A = (K + sparse.diags_array(np.append(x, x))).tocsc()
    M = linalg.LinearOperator((4, 4), linalg.spilu(stop_gradient(A)).solve)
    return linalg.gmres(A, np.ones(4), M=M, rtol=1e-12)[0].prod()


def determinant(x):
    """Compute the determinant from the factors, whose rows and columns are permuted."""
    A = (sparse.triu(graph(x)) - 2 * sparse.tril(graph(x)) + sparse.eye(4)).tocsc()
    factors = linalg.splu(A, permc_spec="COLAMD")
    rest = (factors.L @ factors.U).toarray()[factors.perm_r][:, factors.perm_c] - A.toarray()
    assert np.allclose(rest, 0.0)
    return np.log(np.abs(factors.U.diagonal())).sum() + factors.L.sum() ** 2 + factors.solve(np.ones(4)).sum()


def by_items(x):
    K = sparse.dok_matrix((3, 3))
    K[0, 1], K[1, 2] = x
    for (i, j), value in list(K.items()):
        K[j, i] = 2 * value
    return K.tocsr().power(3).sum() + len(K) * sum(K.values()) + K[0, 1] * len(K.keys())


def spread(x):
    A = graph(x)
    squares = A.copy()
    squares.data **= 2
    return float(np.sum(np.sqrt(squares.mean(axis=0) - np.square(A.mean(axis=0)))))


def places_in_a_table(x):
    """Take rows and columns from a table of floating-point numbers, some of which are traced."""
    table = np.array([[0.0, 1.0, x[0]], [2.0, 0.0, x[1]], [1.0, 2.0, x[0] * x[1]]])
    A = sparse.csr_matrix((table[:, 2], (table[:, 0], table[:, 1])), shape=(3, 3))
    B = sparse.csr_matrix((table[:, 2], table[:, 1], [0.0, 1.0, 1.0, 3.0]), shape=(3, 3))
    return (A * A + B.T * A).sum() + (A + sparse.coo_matrix((x, ([0.0, 1.0], [0.0, 0.0])), shape=(3, 3))).power(2).sum()


def scaled_constant(kind):
    """Return a program with products and quotients of constant matrices, multiplied by and overwritten with values."""

    def f(x):
        A = kind(np.array([[1.0, 2.0], [3.0, 4.0]]))
        made = [A * 2.0, 2.0 * A, A / 2.0, A @ A, A.multiply(A), A.dot(A)]
        products = sum((i + 1) * (B @ x).sum() for i, B in enumerate(made))
        for B in made:
            B.data[1] = x[0] * x[1]
        return products + sum((B @ np.ones(2)).sum() for B in made)

    return f


def eliminated_zeros(x):
    """Assemble a matrix as scikit-fem does; the element that is 0 has a derivative."""
    places = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 2, 0])
    K = sparse.coo_matrix((np.array([2.0, x[1] - 0.6, x[0], 3.0, x[1], 0.0]), places), shape=(3, 3)).tocsr()
    K.eliminate_zeros()
    inner = K[[0, 1]].T[[0, 1]].T.tocsc()
    return linalg.spsolve(inner, np.array([1.0, 2.0])) @ x + (K * K).sum() + K.diagonal() @ K.toarray()[0]


def preconditioned_by_traced_values(x):
    """Precondition by the diagonal, in all forms that SciPy takes; the solution does not depend on it."""
    A = (graph(x) / 9 + sparse.diags(np.arange(4.0, 8))).tocsc()
    D = A.diagonal()
    forms = (
        sparse.diags(1 / D),
        np.diag(1 / D),
        linalg.LinearOperator((4, 4), lambda v: v / D),
        linalg.aslinearoperator(A),
    )
    found = [linalg.bicgstab(A, np.ones(4), M=M, rtol=1e-12)[0] for M in forms]
    return sum(v @ np.arange(4.0) for v in found) + linalg.gmres(A, x.repeat(2), M=forms[0], rtol=1e-12)[0].sum()


def factors_of_dense(x):
    """Factors of a dense matrix, whose zeros SciPy does not store, so that it exchanges other columns."""
    dense = np.array([[4.0, 1, 0, 0], [1, 5, 0, x[1]], [0, x[0] - X[0], 3, 1], [0.5, 2, x[0], 6]])
    factors = linalg.splu(sparse.csc_matrix(dense))
    assert (x != X).any() or (factors.L.nnz, factors.perm_c.tolist()) == (8, [0, 1, 3, 2])
    weights = np.arange(16.0).reshape(4, 4) ** 2
    return (factors.L.toarray() * weights).sum() + (factors.U.toarray() * weights).sum()


def empty_system(x):
    """Solve for no unknowns, as finite elements without free nodes do."""
    inner = (graph(x).tocsc())[[]][:, []]
    return linalg.spsolve(inner, np.zeros(0)).sum() + sparse.csr_array(np.zeros((0, 2)) * x).sum() + x.prod()


def filled_graphs(x):
    """Graphs that a program fills, with constants and traced weights."""
    found = []
    for kind, last in ((sparse.lil_matrix, x[1]), (sparse.dok_array, x[1]), (sparse.lil_array, 2.0)):
        A = kind((3, 3))
        A[0, 1], A[1, 2] = 1.5 if last == 2.0 else x[0], last
        found += [csgraph.shortest_path(A)[0, 2], csgraph.minimum_spanning_tree(A).power(2).sum()]
    return np.array(found) @ np.arange(6.0) + csgraph.yen(A, 0, 2, 1).sum() * x[0]


def written_sums(x):
    sums, means = np.asmatrix(np.zeros((1, 4))), np.asmatrix(np.zeros((4, 1)))
    graph(x).sum(axis=0, out=sums)
    return (graph(x).mean(axis=1, out=means) * sums).sum() + (sums * means)[0, 0] ** 2


def filled_and_changed(x):
    """Compare, resize and raise to powers what a program has filled."""
    total = 0.0
    for kind in FILLED:
        A = kind((3, 3))
        A[0, 0], A[1, 2], A[2, 1], A[0, 2] = x[0], -x[1], 2.0, x[0] * x[1]
        total += ((A != 0) * x[0]).sum() + ((A == 2.0) * x[1]).sum() + ((A > 0.5) * x[1]).sum() + abs(A).sum() ** 2
        total += (A**2).sum()
        A.resize((2, 4))
        total += (A * x[1]).sum() * A.shape[1]
    return total


def repeated_places(x):
    """Convert a matrix with two values at a place to a form that has one."""
    A = sparse.coo_array((np.array([x[0], x[1], x[0] * x[1]]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    return A.tobsr().nnz * x[0] + (A.tobsr().tocsr().data ** 2).sum()


GRAPHS = {
    "eliminated zeros": eliminated_zeros,
    "empty system": empty_system,
    "factors of dense": factors_of_dense,
    "preconditioned by traced values": preconditioned_by_traced_values,
    "places in a table": places_in_a_table,
    "preconditioned": preconditioned,
    "determinant": determinant,
    "items": by_items,
    "spread": spread,
    "scaled rows": scaled_rows,
    "matrices": matrices,
    "constant sums": constant_sums,
    "written matrices": written_matrices,
    "written sums": written_sums,
    "filled and changed": filled_and_changed,
    "repeated places": repeated_places,
    "rows and columns": rows_and_columns,
    "products of kinds": products_of_kinds,
    "stored elements of dense": stored_of_dense,
    "zeros of dense": zeros_of_dense,
    "laplacian of dense": laplacian_of_dense,
    "graphs of dense": lambda x: (
        csgraph.minimum_spanning_tree(sparse.csr_matrix(np.array([[0, x[0], 1.5], [0, 0, x[1]], [0, 0, 0]])))
        .power(2)
        .sum()
        * csgraph.connected_components(sparse.csc_array(np.diag(x)))[0]
    ),
    "paths in parts of dense": lambda x: (
        (
            csgraph.shortest_path(sparse.triu(sparse.csr_array(corner(x))).tocsr())[0]
            + csgraph.shortest_path(sparse.vstack([corner(x)[:1], sparse.csr_array(corner(x))[1:]]).tocsr())[0]
        )[:2]
        @ x
        + sparse.diags_array(np.stack([x[0], 0.0 * x[1], x[1]])).tocsr().nnz * x[1]
    ),
    "shortest paths": lambda x: csgraph.shortest_path(graph(x)) @ np.arange(4.0) @ np.arange(1.0, 5),
    "paths of dense": lambda x: csgraph.dijkstra(dense(x), directed=False, indices=[1, 3])[:, 0].prod(),
    "paths one way": lambda x: csgraph.johnson(sparse.triu(graph(x)).tocsr(), return_predecessors=True)[0][0, 3],
    "paths of both directions": lambda x: csgraph.bellman_ford(
        graph(x) + sparse.triu(graph(x)), directed=False, indices=0
    ).sum(),
    "counted paths": lambda x: csgraph.floyd_warshall(dense(x), unweighted=True).sum() * x[0] ** 2,
    "parallel edges": lambda x: (
        csgraph.dijkstra(
            sparse.csr_array((np.array([x[0], 3.0, 1.5, x[1]]), [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
        ).prod()
        + (
            csgraph.csgraph_to_dense(sparse.csc_array((np.array([3.0, x[0]]), [1, 1], [0, 2, 2]), shape=(2, 2))) ** 2
        ).sum()
    ),
    "dense with a traced null value": lambda x: (
        csgraph.csgraph_to_dense(sparse.csr_array(np.array([[0.0, 2.0], [0.0, 3.0]])), x[0]) ** 2
    ).sum(),
    "nested lists": lambda x: (
        csgraph.dijkstra([[0, x[0], 2], [0, 0, x[1]], [0, 0, 0]])[0, 2] ** 2
        + (sparse.coo_array([[[x[0], 2, 3], [2, 0, x[1]]]]).toarray() ** 2).sum()
        + sparse.coo_array([x[0], 2, 0]).ndim * x[1]
    ),
    "masked graphs": lambda x: (
        csgraph.dijkstra(np.ma.masked_equal(corner(x), 0.0), directed=False)[:, 0].prod()
        + csgraph.johnson(np.ma.array([[0, x[0]], [0, x[1]]], mask=[[1, 0], [0, 1]]), directed=False)[0, 1]  # 0 counts
        + csgraph.csgraph_from_masked(np.ma.masked_less(dense(x), 0.5)).power(2).sum()
        + (csgraph.csgraph_masked_from_dense(corner(x)) ** 2).sum()
        + csgraph.minimum_spanning_tree(np.matrix(dense(x))).power(2).sum()
    ),
    "filled graphs": filled_graphs,
    "nearest": lambda x: csgraph.dijkstra(graph(x), indices=[0, 1], min_only=True).sum() ** 2,
    "tree": tree,
    "components": components,
    "constant tree": constant_tree,
    "triangular": lambda x: linalg.spsolve_triangular(
        sparse.tril(graph(x)).tocsr() + sparse.eye(4), np.append(x, x)
    ).sum(),
    "triangular of ones": lambda x: linalg.spsolve_triangular(
        sparse.triu(graph(x)).tocsr(), np.append(x, x), lower=False, unit_diagonal=True
    ).sum(),
    "operators": by_operators,
    "diagonals": lambda x: (sparse.diags(x).copy() * np.arange(2.0)).sum() ** 2 + sparse.diags(x).conj().trace(),
    "filled": lambda x: graph(x, sparse.csr_matrix).todok().get((0, 1), 0.0) ** 2 + graph(x).tolil()[0, 2],
}


def blocks(x):
    """Matrices of blocks, and matrices of matrices in an array of objects."""
    rows = np.outer(x, [1.0, x[0], 2.0])
    data = np.stack([rows, rows**2, 2.0 * rows])
    A = sparse.bsr_array((data, [0, 1, 1], [0, 2, 3]), shape=(4, 6))
    B = sparse.bsr_matrix((data, [0, 1, 1], [0, 2, 3]))
    assert isinstance(A, sparse.sparray)
    assert issubclass(sparse.bsr_array, sparse.sparray)
    assert not isinstance(B, sparse.sparray)
    whole = np.array([[A, None], [None, sparse.csr_array(np.eye(2))]], dtype=object)
    return (A @ np.arange(6.0)) @ np.arange(4.0) + (B.T @ np.arange(4.0)).prod() + sparse.block_array(whole).sum()


def constant_matrices(x):
    """Products of constants, and writes to them."""
    A = sparse.lil_array((2, 2))
    A[0, 1] = x[0]
    B = A.copy()
    B[0, 1] = 5.0
    A[1, 1] = 2.0
    C = sparse.csr_matrix(np.eye(2))
    C *= sparse.csr_matrix(np.outer(x, x))
    C.note = 3.0
    constant = sparse.lil_array((2, 2))
    constant[1, 0] = 4.0
    products = constant.multiply(np.outer(x, x)) + constant * x[1]
    left = np.outer(x, x) @ sparse.csr_array(M) + x @ sparse.csr_array(M)
    assert (x @ sparse.csr_array(M) == sparse.csr_array(M).__rmatmul__(x)).all()
    return (A.toarray() ** 2).sum() + B.sum() + C.sum() * C.note + (products**2).sum() + (left**2).sum()


PROGRAMS = {
    "blocks": blocks,
    "constant matrices": constant_matrices,
    **GRAPHS,
    **{f"{make.__name__} {kind.__name__}": make(kind) for make in (elements, assembled, constants) for kind in FILLED},
    **{f"products of a constant {kind.__name__}": scaled_constant(kind) for kind in COMPRESSED},
    **MADE,
    "factors made outside": factors_made_outside,
    "preconditioned by constants": preconditioned_by_constants,
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.filterwarnings("ignore:`(kron|tril)` is switching")  # since SciPy 1.18
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    slope = grad(f)(X)
    np.testing.assert_allclose(slope, differences(f, X, 5e-4), rtol=2e-6, atol=1e-8)
    value, pushed = jvp(f, (X,), (np.array([1.0, -0.5]),))
    np.testing.assert_allclose([value, pushed], [f(X), slope @ [1.0, -0.5]], rtol=1e-9)


@pytest.mark.parametrize("kind", FILLED)
def test_parts_of_matrices_that_a_program_fills(kind):
    free = np.array([1, 3])

    def f(x):
        K = kind((4, 4))
        for i in range(4):
            for j in range(i + 1):
                K[i, j] += x * np.sin(4 * i + j) + (i == j)
        inner = K[1:-1, 1:-1]
        inner[0, 1] = x**2
        return inner.tocsc().sum() + K[np.ix_(free, free)].toarray()[1, 0] ** 2 + K[:, free][free].trace() + K.sum()

    assert type(kind((4, 4))[1:-1, 1:-1]) is kind
    assert grad(f)(0.7) == pytest.approx((f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6, rel=1e-8)


@pytest.mark.parametrize("f", [factors_made_outside, preconditioned_by_constants])
def test_factorizations_of_constant_matrices(f):
    rows = np.stack([X, 1.1 * X])
    directional = differences(lambda h: grad(f)(X + h * X), 0.0, 5e-4)
    np.testing.assert_allclose(hessian(f)(X) @ X, directional, rtol=1e-5, atol=1e-7)
    if f is factors_made_outside:
        np.testing.assert_allclose(vmap(grad(f))(rows), [grad(f)(row) for row in rows], rtol=1e-9)


def test_values_of_another_shape_raise():
    def f(x):
        A = sparse.csr_matrix(np.eye(3))
        A.data = x
        return A.sum()

    with pytest.raises(ShapeError, match=r"csr_matrix\.data: the shape must stay \(3,\), got \(2,\)"):
        grad(f)(X)


def test_incomplete_factorization_of_tracers_raises():
    with pytest.raises(
        NotDifferentiableError, match=r"^sparse\.linalg\.spilu: .*Pass a constant such as .*stop_gradient"
    ):
        grad(lambda x: linalg.spilu((K + sparse.diags_array(np.append(x, x))).tocsc()).solve(np.ones(4))[0])(X)


def test_sparse_matrix_as_result():
    found = jacobian(lambda x: graph(x).sum(axis=1))(X)
    assert found.shape == (4, 1, 2)
    np.testing.assert_allclose(found[:, 0], jacobian(lambda x: dense(x).sum(axis=1))(X))


@pytest.mark.parametrize("dtype", [bool, int])
def test_a_dense_matrix_as_a_matrix_of_constants_stores_no_zeros(dtype):
    def f(x):
        A = sparse.csr_matrix(np.diag(x), dtype=dtype)
        count, labels = csgraph.connected_components(A)
        return count * x[0] + labels @ x + csgraph.breadth_first_order(A, 0)[0].size

    value, slope = value_and_grad(f)(np.array([1.5, 2.5, 0.0]))
    assert value == f(np.array([1.5, 2.5, 0.0]))
    np.testing.assert_array_equal(slope, [3.0, 1.0, 2.0])


def test_linear_operators_as_results():
    """Check operators that multiply plain arrays after the run: SciPy 1.18 uses the library of the arrays in them."""
    outside = linalg.aslinearoperator(np.eye(2))

    def f(x):
        made = linalg.aslinearoperator(np.diag([2.0, 3.0]))
        own = linalg.LinearOperator((2, 2), matvec=lambda v: 5.0 * v)
        return ((made + outside + own) @ x).sum(), (made, own, made @ own, outside)

    slope, operators = grad(f, has_aux=True)(X)
    np.testing.assert_allclose(slope, [8.0, 9.0])
    for operator, want in zip(operators, ([2.0, 3.0], [5.0, 5.0], [10.0, 15.0], [1.0, 1.0]), strict=True):
        np.testing.assert_allclose(operator @ np.ones(2), want)


def test_csgraph_with_traced_weights_raises():
    with pytest.raises(
        ConversionError, match=r"maximum_flow: it is compiled code.*got a traced matrix or list with one"
    ):
        grad(lambda x: csgraph.maximum_flow(graph(x), 0, 2).flow_value * x[0])(X)


def test_sparse_check_without_scipy_sparse_loaded(monkeypatch):
    asked = sparse.issparse.__globals__
    family = asked.get("SparseABC", asked.get("_spbase"))  # before SciPy 1.17 the name was _spbase
    monkeypatch.delitem(sys.modules, "scipy.sparse")
    assert is_sparse_family(family)
    assert not is_sparse_family(int)


@pytest.mark.parametrize("kind", [*COMPRESSED, *FILLED, sparse.coo_matrix])
def test_functions_of_numpy_that_call_methods_of_matrices(kind):
    constant = kind(np.array([[1.0, 2.0, 0.0], [0.0, -3.0, 4.0]]))

    def f(x):
        A = sparse.csr_matrix(constant * x[0])
        sums = np.sum(A) * x[1] + np.mean(A) + np.max(A) * x[1] + np.min(A)
        of_constant = np.sum(constant) * x[0] + np.max(sparse.csr_matrix(constant)) * x[1] + np.mean(constant) * x[0]
        last = np.transpose(A)[1, 0] * np.argmax(A.toarray()) + np.reshape(A, (3, 2)).tocsr()[0, 1]
        return sums + of_constant + last + (np.shape(A)[1] + np.ndim(constant)) * x[0]

    np.testing.assert_allclose(grad(f)(np.array([1.5, 0.5])), differences(f, np.array([1.5, 0.5]), 1e-3), rtol=1e-9)


def test_sums_of_rows_by_a_function_of_numpy():
    f = lambda x: np.sum(sparse.csr_array(M * x), axis=1) @ np.array([1.0, 2.0]) + np.sum(M, axis=0)[0, 1] * x
    assert grad(f)(0.5) == 3.0 + 14.0 + 6.0
    assert vmap(grad(f))(np.array([0.5, 2.0])).tolist() == [23.0, 23.0]
