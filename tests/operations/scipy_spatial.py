"""Rows for distances."""

import numpy as np
import scipy.spatial.distance

from funcgrad.scipy.spatial import distance
from operations.spec import Sample, array, op, positive

NO_JAX = {"jax": None, "reason": "JAX has no such function"}
U, V, W = array(3), array(3, seed=1), positive(3, seed=2)
X, Y = array(3, 2), array(2, 2, seed=1)
INVERSE = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])


def theirs(name, weighted):
    """Return SciPy's function, made to refuse float16, with which it fails or computes other numbers."""

    def call(*args, **kwargs):
        if any(getattr(a, "dtype", None) == np.float16 for a in args):
            raise TypeError("float16")
        function = getattr(scipy.spatial.distance, name)
        return function(*args[:2], w=args[2], **kwargs) if weighted else function(*args, **kwargs)

    return call


def row(name, *samples, **options):
    return op(f"scipy.spatial.distance.{name}", *samples, numpy=theirs(name, False), **{**NO_JAX, **options})


def weighted(name, *samples):
    def ours(u, v, w):
        return getattr(distance, name)(u, v, w=w)

    options = {"fun": ours, "numpy": theirs(name, True), **NO_JAX}
    return op(f"scipy.spatial.distance.{name}", (U, V, W), **options)


def by_options(name, key, x, y, value):
    """Return a row for all pairs by a metric with an option."""

    def of(module):
        return lambda x, y, value: module.cdist(x, y, name, **{key: value})

    options = {"fun": of(distance), "numpy": of(scipy.spatial.distance), **NO_JAX}
    return op("scipy.spatial.distance.cdist", (x, y, value), **options)


OPS = [
    row("cdist", (X, Y), (X, Y, "sqeuclidean"), (X, Y, "cosine")),
    by_options("mahalanobis", "VI", array(2, 3), array(2, 3, seed=1), INVERSE),
    by_options("minkowski", "w", X, Y, positive(2)),
    row("pdist", (X,), (X, "cityblock"), (X, "seuclidean")),
    row(
        "squareform",
        (array(3),),
        Sample((np.array([[0.0, 1.2], [1.2, 0.0]]),), {"checks": False}, ordered=True),
    ),
    row("euclidean", (U, V)),
    row("sqeuclidean", (U, V)),
    row("minkowski", (U, V, 3.4)),
    row("jensenshannon", (positive(3), positive(3, seed=1), 2.0)),
    row("mahalanobis", (U, V, INVERSE)),
    row("seuclidean", (U, V, W)),
    weighted("cityblock"),
    weighted("chebyshev"),
    weighted("correlation"),
    weighted("cosine"),
    weighted("canberra"),
    weighted("braycurtis"),
]
