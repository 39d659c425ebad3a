"""Rows for covariances, correlations, histograms and counts."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op, positive, spread

S = Sample
MATRIX = array(3, 5)
POINTS = spread(6)
COUNTS = np.array([0, 3, 1, 1])
REPEATS = np.array([1, 3, 0, 2, 2])
EDGES = np.array([-2.5, -1.0, 0.3, 2.6])

COVARIANCES = [
    op(
        "cov",
        (MATRIX,),
        (array(5),),
        S((MATRIX,), {"rowvar": False, "bias": True}),
        S((MATRIX, array(2, 5, seed=1)), {"ddof": 2}),
        S((array(3, 2), array(3, 1, seed=1)), {"rowvar": False}),
        complex_samples=[(array(2, 4, kind="complex"), array(4, seed=1))],
    ),
    op(
        "cov",
        (MATRIX, REPEATS, positive(5)),
        fun=lambda m, f, a: fnp.cov(m, fweights=f, aweights=a),
        numpy=lambda m, f, a: np.cov(m, fweights=f, aweights=a),
        jax=lambda m, f, a: jnp.cov(m, fweights=f, aweights=a),
    ),
    op("corrcoef", (MATRIX,), (array(4), array(4, seed=1)), complex_samples=[(array(2, 4, kind="complex"),)]),
]


def in_order(function):
    """Return JAX's histogram with NumPy's order of arguments: JAX takes ``density`` last."""
    return lambda *args: function(*args[:-2], *args[:-3:-1])


HISTOGRAMS = [
    op(
        "histogram",
        (POINTS, 3, None, True, None),
        (POINTS, EDGES, None, True, positive(6)),
        S((spread(2, 3), 4, (-2.0, 2.5), None, positive(2, 3)), unbatched=(2,)),
        complex_samples=[S((POINTS, 2, None, None, array(6, kind="complex")), frozen=(0,))],
        jax=in_order(jnp.histogram),
    ),
    op("histogram_bin_edges", (POINTS, 3), S((POINTS, 2, np.array([-4.5, 3.0])), ordered=True)),
    op(
        "histogram_bin_edges",
        S((POINTS, "sqrt"), unbatched=(0,)),
        S((spread(20), "fd", (-2.0, 2.0)), unbatched=(0,)),
        jax=None,
        jit=False,
        reason="the number of bins depends on the values; JAX has no rules for it",
    ),
    op(
        "histogram2d",
        (POINTS, spread(6, seed=1), [2, 3], None, True, positive(6)),
        jax=in_order(jnp.histogram2d),
    ),
    op(
        "histogramdd",
        (spread(6, 2), 2, None, True, None),
        (spread(4, 2), [1, EDGES], None, None, positive(4)),
        jax=in_order(jnp.histogramdd),
    ),
]
COUNTED = [
    op(
        "bincount",
        S((COUNTS, positive(4)), unbatched=(0,)),
        S((COUNTS, positive(4)), {"minlength": 6}),
        jax=lambda x, w, minlength=4: jnp.bincount(x, w, length=minlength),
    ),
    op(
        "bincount",
        S((COUNTS,), unbatched=(0,)),
        S((COUNTS,), {"minlength": 5}),
        jax=lambda x, minlength=4: jnp.bincount(x, length=minlength),
        differentiable=False,
    ),
    op(
        "digitize",
        S((spread(2, 3), EDGES), ordered=True),
        S((EDGES, EDGES), {"right": True}, ordered=True),
        S((EDGES, EDGES[::-1]), ordered=True),
        differentiable=False,
    ),
]
OPS = [*COVARIANCES, *HISTOGRAMS, *COUNTED]
