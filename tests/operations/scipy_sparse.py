"""Rows for sparse matrices: functions of their values and of an array."""

import numpy as np

import funcgrad.scipy.sparse as sparse
from operations.spec import array, op

INDICES, INDPTR = np.array([0, 2, 1, 0, 2]), np.array([0, 2, 3, 5])
VALUES = array(5) + np.array([4.0, 0.0, 4.0, 0.0, 4.0])
ROWS, COLUMNS = np.array([0, 2, 1, 0, 2]), np.array([1, 0, 0, 1, 2])
NO_JAX = "JAX has no such function under this name"


def ours(data):
    return sparse.csr_array((data, INDICES, INDPTR), (3, 3))


def dense(data, rows=(0, 0, 1, 2, 2), columns=INDICES):
    made = np.zeros((3, 3), data.dtype)
    np.add.at(made, (np.asarray(rows), columns), data)
    return made


OPS = [
    op(
        "scipy.sparse.matvec",
        (VALUES, array(3, seed=1)),
        (VALUES, array(3, 2, seed=1)),
        fun=lambda data, x: sparse.matvec(ours(data), x),
        numpy=lambda data, x: dense(data) @ x,
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.sparse.csr_array",
        (VALUES, array(3, 2, seed=1)),
        fun=lambda data, x: (2.0 * (one := ours(data).T) + one) @ x,
        numpy=lambda data, x: 3 * dense(data).T @ x,
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.sparse.coo_array",
        (array(5),),
        fun=lambda data: sparse.coo_array((data, (ROWS, COLUMNS)), (3, 3)).toarray(),
        numpy=lambda data: dense(data, ROWS, COLUMNS),
        jax=None,
        reason=NO_JAX,
    ),
    op(
        "scipy.sparse.linalg.spsolve",
        (VALUES, array(3, seed=1)),
        (VALUES, array(3, 2, seed=1)),
        fun=lambda data, b: sparse.linalg.spsolve(ours(data), b),
        numpy=lambda data, b: np.linalg.solve(dense(data), b),
        jax=None,
        reason=NO_JAX,
    ),
]
