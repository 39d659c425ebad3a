"""Rows for inverses, systems of equations, determinants, Cholesky factors, norms and powers of matrices."""

import jax
import jax.numpy as jnp
import numpy as np
from helpers import at_least

import funcgrad.numpy as fnp
from funcgrad import grad
from operations.spec import Sample, array, op

S = Sample
INF = np.inf


def regular(*shape, seed=0, kind="float"):
    """Return matrices that are far from singular."""
    return array(*shape, seed=seed, kind=kind) + 4 * np.eye(shape[-1])


def definite(*shape, kind="float"):
    """Return Hermitian positive definite matrices."""
    x = array(*shape, seed=5, kind=kind)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1])


def symmetrized(xp, **options):
    """Return the Cholesky factor of the Hermitian part, which has a derivative along any matrix."""

    def cholesky(a):
        return xp.linalg.cholesky((a + xp.conj(xp.swapaxes(a, -1, -2))) / 2, **options)

    return cholesky


def deficient(n, rank, kind="float"):
    """Return a matrix of low rank."""
    return array(n, rank, seed=1, kind=kind) @ array(rank, n, seed=2, kind=kind)


M, B = regular(3, 3), regular(2, 3, 3)
C = regular(3, 3, kind="complex")
X, Y = array(3, 4), array(2, 3, 2)

OPS = [
    op(
        "linalg.inv",
        (M,),
        (B,),
        (regular(1, 1),),
        (np.ones((0, 0)),),
        complex_samples=[(C,)],
    ),
    op(
        "linalg.solve",
        (M, array(3)),
        (B, array(3)),
        (M, array(3, 2)),
        (B, array(3, 2)),
        (regular(2, 1, 3, 3), array(2, 3, 1)),
        (np.ones((0, 0)), np.ones((0, 2))),
        complex_samples=[(C, array(3, kind="complex")), (C, array(2, 3, 1))],
    ),
    op(
        "linalg.det",
        (array(3, 3),),
        (regular(2, 4, 4),),
        (array(2, 2),),
        (array(1, 1),),
        (np.array([[1.0, 2.0], [2.0, 4.0]]),),
        (np.outer([1.0, -2.0, 3.0], [1.0, 2.0, 4.0]),),
        complex_samples=[(C,)],
    ),
    op(
        "linalg.det",
        (deficient(4, 3),),
        (deficient(4, 2),),
        (deficient(5, 1),),
        (np.diag([1.0, 0.0, 2.0, 0.0]),),
        (np.ones((2, 0, 0)),),
        complex_samples=[(deficient(4, 2, kind="complex"),)],
        jax=None,
        reason="JAX's second derivative is 0 where two ranks of four lack, and of no rows it has no derivative",
    ),
    op(
        "linalg.det",
        (regular(4, 4),),
        fun=grad(fnp.linalg.det),
        numpy=lambda x: np.linalg.det(x) * np.linalg.inv(x).T,
        jax=jax.grad(jnp.linalg.det),
    ),
    op(
        "linalg.slogdet",
        (M,),
        (-B,),
        (np.ones((0, 0)),),
        complex_samples=[(C,)],
    ),
    *[
        op(
            "linalg.cholesky",
            (definite(3, 3),),
            (definite(2, 2, 2),),
            (np.ones((0, 0)),),
            complex_samples=[(definite(3, 3, kind="complex"),)],
            fun=symmetrized(fnp, upper=upper),
            numpy=symmetrized(np, upper=upper),
            jax=symmetrized(jnp, upper=upper),
        )
        for upper in (False, True)
    ],
    op(
        "linalg.tensorinv",
        S((regular(6, 6).reshape(2, 3, 3, 2),)),
        S((regular(4, 4).reshape(4, 2, 2),), {"ind": 1}),
        complex_samples=[S((regular(4, 4, kind="complex").reshape(2, 2, 4),), {"ind": 2})],
    ),
    op(
        "linalg.tensorsolve",
        (regular(6, 6).reshape(2, 3, 3, 2), array(2, 3)),
        S((regular(4, 4).reshape(2, 4, 2), array(4)), {"axes": (0,)}),
        complex_samples=[(regular(4, 4, kind="complex").reshape(4, 2, 2), array(4))],
    ),
    op(
        "linalg.matrix_power",
        *[S((M, n)) for n in (0, 1, 3, -2)],
        (B, 2),
        complex_samples=[(C, 5)],
    ),
    op(
        "linalg.multi_dot",
        ([array(2, 3), array(3, 4)],),
        ([array(3), array(3, 2), array(2, 4), array(4)],),
        ([array(2, 3), array(3, 4), array(4)],),
        complex_samples=[([array(2, 3, kind="complex"), array(3, 2), array(2, 3)],)],
    ),
    op("linalg.cross", (array(3), array(2, 3)), S((array(3, 2), array(3, 2, seed=1)), {"axis": 0})),
    op("linalg.outer", (array(2), array(3)), complex_samples=[(array(2, kind="complex"), array(3))]),
    op(
        "linalg.tensordot",
        (array(2, 3), array(2, 3, seed=1)),
        S((array(2, 3), array(3, 2)), {"axes": 1}),
        S((array(2, 3, 4), array(4, 3, 2)), {"axes": ([1, 2], [1, 0])}),
    ),
    op("linalg.diagonal", (array(2, 3, 4),), S((array(3, 3),), {"offset": -1})),
    op("linalg.trace", (array(2, 3, 4),), S((array(3, 3),), {"offset": 1, "dtype": np.float64})),
    op(
        "linalg.norm",
        # one vector
        *[S((array(5),), {"ord": p}) for p in (None, 1, 2, INF, -INF, 0, 3, -1.5)],
        (array(2, 3, 2),),
        (np.float64(-1.5),),
        # vectors and matrices along axes
        (X, None, 0),
        S((X,), {"ord": INF, "axis": 1, "keepdims": True}),
        S((array(2, 3, 2),), {"ord": 2.5, "axis": -2, "keepdims": True}),
        *[S((X,), {"ord": p}) for p in ("fro", 1, -1, INF, -INF)],
        S((Y,), {"ord": 1, "axis": (2, 0)}),
        S((Y,), {"ord": -INF, "axis": (2, 1), "keepdims": True}),
        S((Y,), {"axis": (0, 1)}),
        complex_samples=[
            *[S((array(4, kind="complex"),), {"ord": p}) for p in (None, 1, 3, INF)],
            (array(2, 3, kind="complex"), "fro"),
            (array(2, 3, kind="complex"), 1, (0, 1), True),
        ],
    ),
    op(
        "linalg.norm",
        *[(X, p) for p in ("nuc", 2, -2)],
        S((Y, 2), {"axis": (2, 0), "keepdims": True}),
        S((Y, "nuc"), {"axis": (1, 2)}),
        complex_samples=[(array(3, 2, kind="complex"), "nuc"), (array(2, 3, kind="complex"), 2)],
    ),
    op(
        "linalg.vector_norm",
        (X,),
        S((Y,), {"axis": (2, 0), "ord": 3}),
        S((Y,), {"axis": (0, 1), "ord": INF, "keepdims": True}),
        S((Y,), {"axis": -1, "ord": 1}),
        complex_samples=[S((array(2, 3, kind="complex"),), {"axis": (1, 0)})],
    ),
    op(
        "linalg.matrix_norm",
        (Y,),
        S((Y,), {"ord": 1, "keepdims": True}),
        S((Y,), {"ord": "nuc"}),
    ),
    op(
        "linalg.cond",
        (X,),
        *[S((M,), {"p": p}) for p in (-2, 1, -1, INF, "fro")],
        (B, 2),
        complex_samples=[(C, None), *[(C, "fro")] * at_least(np, "2.4.0")],  # older versions return a complex number
    ),
    op(
        "linalg.matrix_rank",
        (X,),
        (np.stack([deficient(3, 2), M]),),
        (array(3),),
        (np.float64(0.0),),
        S((definite(3, 3),), {"hermitian": True}),
        S((np.stack([M, M]),), {"tol": np.array([0.0, 100.0])}),
        complex_samples=[(C,)],
        differentiable=False,
    ),
    op(
        "linalg.matrix_rank",
        S((X,), {"rtol": 0.5}),
        differentiable=False,
        jax=None,
        reason="JAX takes rtol for an absolute tolerance",
    ),
]
