"""Rows for grids and rows written as slices, for iteration, and for functions that return their argument."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op

S = Sample
X = array(2, 3)
A, B = np.float64(0.3), np.float64(2.7)
BOUNDS = "JAX needs bounds that are known when it traces"


def both(name, make, *samples, jax=None, reason=BOUNDS, **options):
    """Return a row for ``make(namespace, *arguments)``."""
    return op(
        name,
        *samples,
        fun=lambda *args: make(fnp, *args),
        numpy=lambda *args: make(np, *args),
        jax=jax and (lambda *args: make(jnp, *args)),
        reason="" if jax else reason,
        **options,
    )


OPS = [
    both("mgrid", lambda xp, a, b: (xp.mgrid[a:b:3j, 0:2], xp.mgrid[a:b:1j]), (A, B)),
    both("mgrid", lambda xp, a, b: xp.mgrid[a:5:b], S((A, B), unbatched=(0, 1)), jit=False),
    both("ogrid", lambda xp, a, b: (*xp.ogrid[a:b:3j, 1:b:2j], xp.ogrid[b:a:4j]), (A, B)),
    both(
        "r_",
        lambda xp, x, y, a: (xp.r_[x[0], 0, a, y[1]], xp.r_["1", x, y], xp.r_["0,2,0", x[0], 2j, y[0]]),
        (X, array(2, 3, seed=1), A),
        jax=True,
    ),
    both("r_", lambda xp, a, b: xp.r_[a:b:3j, 1:3, [a, 2.0]], (A, B)),
    both("c_", lambda xp, x, y: (xp.c_[x[0], y[1]], xp.c_[x, y, y]), (X, array(2, 3, seed=1)), jax=True),
    both("ndenumerate", lambda xp, x: [v * sum(i) for i, v in xp.ndenumerate(x)], (X,), reason="JAX has none"),
    both("nditer", lambda xp, x, y: [a * b for a, b in xp.nditer([x, y], order="C")], (X, X[0]), reason="JAX has none"),
    both("fromiter", lambda xp, x: xp.fromiter((v * v for v in x), float), (X[0],), reason="JAX takes numbers only"),
    both(
        "real_if_close",
        lambda xp, x: (xp.real_if_close(x), xp.real_if_close(x + 0j), xp.real_if_close(x + 1j)),
        S((X,), unbatched=(0,)),
        jit=False,
        reason="JAX has none; the dtype of the result depends on the values",
    ),
    op("asarray_chkfinite", (X,), jax=None, reason="JAX has none"),
    op("require", (X, None, "F"), jax=None, reason="JAX has none"),
    op("array_equiv", (X[0], np.stack([X[0], X[0]])), (X, X + 1), differentiable=False),
    op("packbits", (np.arange(20).reshape(2, 10) % 3, 1), (X > 0,), differentiable=False),
    op(
        "unpackbits",
        (np.arange(6, dtype=np.uint8).reshape(2, 3),),
        S((np.arange(4, dtype=np.uint8),), {"axis": 0, "count": -3, "bitorder": "little"}),
        differentiable=False,
    ),
]
