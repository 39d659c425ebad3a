"""Rows for sparse matrices: functions of their values and of an array."""

import numpy as np

import funcgrad
import funcgrad.numpy as fnp
import funcgrad.scipy.sparse as sparse
from operations.spec import array, op

INDICES, INDPTR = np.array([0, 2, 1, 0, 2]), np.array([0, 2, 3, 5])
VALUES = array(5) + np.array([4.0, 0.0, 4.0, 0.0, 4.0])
ROWS, COLUMNS = np.array([0, 2, 1, 0, 2]), np.array([1, 0, 0, 1, 2])
NO_JAX = "JAX has no such function under this name"


def ours(data):
    return sparse.csr_array((data, INDICES, INDPTR), (3, 3))


WIDE = np.zeros(())


def of_values(name, fun, numpy):
    return op(
        f"scipy.sparse.{name}",
        (VALUES,),
        fun=lambda data: fun(data).toarray(),
        numpy=numpy,
        jax=None,
        reason=NO_JAX,
    )


def definite(data):
    """Return a symmetric positive definite matrix."""
    places = np.arange(3).repeat(3), np.tile(np.arange(3), 3)
    full = sparse.csr_array((np.full(9, 0.5), places))
    return sparse.diags_array(data[:3] ** 2 + 1.0) + full


def of_eigen(w, v):
    """Combine eigenvalues and vectors so that signs and phases of the vectors do not matter."""
    return fnp.sum(fnp.abs(v) ** 2 * np.array([[1.0], [2.0], [4.0]]), axis=0) * fnp.real(w)


def largest(data):
    """Return a sum of two eigenvalues, whose gradient has a derivative of its own."""
    return fnp.sum(sparse.linalg.eigsh(definite(data), 2, v0=np.ones(3), return_eigenvectors=False))


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
    of_values("csc_array", lambda data: sparse.csc_array((data, INDICES, INDPTR), (3, 3)), lambda data: dense(data).T),
    of_values(
        "diags_array",
        lambda data: sparse.diags_array([data[:3], data[3:], data[0]], offsets=[0, 1, -2], shape=(3, 3)),
        lambda data: np.diag(data[:3]) + np.diag(data[3:], 1) + np.diag(data[:1], -2),
    ),
    of_values("eye_array", lambda data: sparse.eye_array(3) + ours(data), lambda data: dense(data) + np.eye(3)),
    of_values("kron", lambda data: sparse.kron(ours(data), ours(data)), lambda data: np.kron(dense(data), dense(data))),
    of_values(
        "block_array",
        lambda data: sparse.block_array([[ours(data), None], [None, ours(data).T]]),
        lambda data: np.block([[dense(data), np.zeros((3, 3))], [np.zeros((3, 3)), dense(data).T]]).astype(data.dtype),
    ),
    of_values("hstack", lambda data: sparse.hstack([ours(data)] * 2), lambda data: np.hstack([dense(data)] * 2)),
    of_values("vstack", lambda data: sparse.vstack([ours(data)] * 2), lambda data: np.vstack([dense(data)] * 2)),
    of_values("tril", lambda data: sparse.tril(ours(data)), lambda data: np.tril(dense(data))),
    of_values("triu", lambda data: sparse.triu(ours(data), k=1), lambda data: np.triu(dense(data), k=1)),
    *[
        op(
            f"scipy.sparse.linalg.{name}",
            (VALUES, array(3, seed=1)),
            fun=fun,
            numpy=lambda data, b: np.linalg.solve(dense(data), b),
            jax=None,
            reason=NO_JAX,
        )
        for name, fun in (
            ("splu", lambda data, b: sparse.linalg.splu(ours(data)).solve(b)),
            ("factorized", lambda data, b: sparse.linalg.factorized(ours(data))(b)),
        )
    ],
    *[
        op(
            f"scipy.sparse.linalg.{name}",
            (VALUES, array(3, seed=1)),
            fun=lambda data, b, name=name: getattr(sparse.linalg, name)(definite(data), 1.0 * b + WIDE, rtol=1e-14)[0],
            numpy=lambda data, b: np.linalg.solve(np.diag(data[:3] ** 2 + 1.0) + 0.5 + WIDE, b),
            jax=None,
            on_jax=False,
            reason=NO_JAX,
        )
        for name in ("cg", "gmres", "bicgstab")
    ],
    *[
        op(
            f"scipy.sparse.linalg.{name}",
            (VALUES,),
            fun=lambda data, name=name: of_eigen(
                *getattr(sparse.linalg, name)(definite(data), 1, v0=np.arange(1.0, 4))
            ),
            numpy=lambda data: of_eigen(*(x[..., 2:] for x in np.linalg.eigh(np.diag(data[:3] ** 2 + 1.0) + 0.5))),
            jax=None,
            on_jax=False,
            reason=NO_JAX,
        )
        for name in ("eigsh", "eigs")
    ],
    op(
        "scipy.sparse.linalg.eigsh",
        (VALUES + 1.0,),
        fun=funcgrad.grad(largest),
        numpy=None,
        jax=None,
        on_jax=False,
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
