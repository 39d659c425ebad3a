"""Rows for sorting, positions, searching and quantiles."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, op, positive, spread

S = Sample
MATRIX = spread(3, 4)
CUBE = spread(2, 3, 4)
VECTOR = spread(7)
EMPTY = spread(0, 3)
HOLES = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 2, np.nan, CUBE)
EXACT = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
INTERPOLATING = (
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
    "interpolated_inverted_cdf",
    "averaged_inverted_cdf",
    "midpoint",
)


def parts(xp, x, kth, axis):
    """Return what partitioning determines: the sum before ``kth``, the element there, and the sum after it."""
    moved = xp.moveaxis(xp.partition(x, kth, axis), axis, 0)
    at = np.arange(moved.shape[0]).reshape(-1, *[1] * (moved.ndim - 1))
    kth = kth % moved.shape[0]
    return tuple(xp.sum(moved, 0, where=where) for where in (at < kth, at == kth, at > kth))


SORTED = [
    op(
        "sort",
        (VECTOR,),
        (CUBE,),
        (CUBE, 1),
        (CUBE, None),
        (EMPTY, 0),
        (EMPTY,),
        complex_samples=[(spread(2, 3) + 1j * spread(2, 3, seed=1), 1)],
    ),
    op(
        "partition",
        *[(x, kth, axis) for x, kth, axis in ((VECTOR, 3, -1), (CUBE, 1, 1), (CUBE, -1, 0))],
        fun=lambda *args: parts(fnp, *args),
        numpy=lambda *args: parts(np, *args),
        jax=lambda *args: parts(jnp, *args),
    ),
    op(
        "partition",
        # enough positions to determine the whole order
        (CUBE, (0, -1, 1)),
        (CUBE, (0, 1, 2), 1),
        (CUBE, tuple(range(23)), None),
        jax=None,
        reason="JAX parts at one position only",
    ),
    op(
        "argsort",
        (VECTOR,),
        (CUBE,),
        (CUBE, 1),
        (CUBE, None),
        (EMPTY, 0),
        differentiable=False,
    ),
    op(
        "argpartition",
        (VECTOR, 3),
        (CUBE, 1, 1),
        (CUBE, (0, -1)),
        differentiable=False,
        jax=None,
        portable=False,
        reason="the order within the parts is JAX's own",
    ),
]

POSITIONS = [
    op(
        name,
        S((x,)),
        S((x,), {"axis": 1}),
        S((x,), {"axis": -1, "keepdims": True}),
        S((x,), {"keepdims": True}),
        S((np.round(x),), {"axis": 0}),
        differentiable=False,
    )
    for name, x in (("argmax", CUBE), ("argmin", CUBE), ("nanargmax", HOLES), ("nanargmin", HOLES))
]

RISING = np.sort(VECTOR)
SEARCH = [
    op(
        "searchsorted",
        *[
            S((a, v), {"side": side}, ordered=True)
            for side in ("left", "right")
            for a, v in (
                (RISING, CUBE),
                (RISING, spread()),
                (RISING, RISING),
                (np.array([1, 2, 2, 3]), np.array([0, 2, 9])),
            )
        ],
        differentiable=False,
    ),
    op(
        "searchsorted",
        S((VECTOR, MATRIX, np.argsort(VECTOR)), ordered=True),
        fun=lambda a, v, sorter: fnp.searchsorted(a, v, sorter=sorter),
        numpy=lambda a, v, sorter: np.searchsorted(a, v, sorter=sorter),
        jax=lambda a, v, sorter: jnp.searchsorted(a, v, sorter=sorter),
        differentiable=False,
    ),
]


def lanes(x):
    """Return samples with even and odd numbers of elements, several axes, kept axes, and single elements."""
    return [
        S((x,)),
        S((x,), {"axis": 1}),
        S((x,), {"axis": 2, "keepdims": True}),
        S((x,), {"axis": (0, -1)}),
        S((x[:1],), {"axis": 0}),
    ]


def quantiles(name, whole, x):
    """Return a row in which the quantiles are differentiated too: numbers and arrays of them."""
    return op(
        name,
        S((x, 0.3 * whole)),
        S((x, 0.63 * whole), {"axis": 1}),
        S((x, np.array([0.13, 0.92]) * whole), {"axis": (0, -1)}),
        S((x, np.array([0.77]) * whole), {"axis": 1, "keepdims": True}),
    )


QUANTILES = [
    op("median", *lanes(CUBE), S((VECTOR,)), S((1.5,))),
    op("nanmedian", *lanes(HOLES)[:-1], S((VECTOR,)), S((CUBE,), {"axis": 1})),
    quantiles("quantile", 1, CUBE),
    quantiles("percentile", 100, CUBE),
    quantiles("nanquantile", 1, HOLES),
    quantiles("nanpercentile", 100, HOLES),
    op("quantile", *[S((CUBE, 0.37), {"axis": 1, "method": m}) for m in ("lower", "higher", "midpoint", "nearest")]),
    op(
        "quantile",
        *[S((CUBE, 0.37), {"axis": 1, "method": m}) for m in (*INTERPOLATING, *EXACT)],
        *[S((CUBE, np.array([0.11, 0.52])), {"axis": (0, 2), "method": m}) for m in (*INTERPOLATING, *EXACT)],
        jax=None,
        reason="JAX has four of the methods",
    ),
    op(
        "nanquantile",
        *[S((HOLES, 0.37), {"axis": (0, 2), "method": m}) for m in (*INTERPOLATING, *EXACT)],
        jax=None,
        reason="JAX has four of the methods",
    ),
    op(
        "quantile",
        S((CUBE, positive(3)), frozen=(1,)),
        S((CUBE, positive(2, 3, 4)), frozen=(1,)),
        fun=lambda x, w: fnp.quantile(x, 0.37, 1, weights=w, method="inverted_cdf"),
        numpy=lambda x, w: np.quantile(x, 0.37, 1, weights=w, method="inverted_cdf"),
        jax=None,
        reason="JAX has no weights",
    ),
    op(
        "nanquantile",
        S((HOLES, positive(2, 3, 4)), frozen=(1,)),
        fun=lambda x, w: fnp.nanquantile(x, 0.37, 1, weights=w, method="inverted_cdf"),
        numpy=lambda x, w: np.nanquantile(x, 0.37, 1, weights=w, method="inverted_cdf"),
        jax=None,
        reason="JAX has no weights",
    ),
]

OPS = [*SORTED, *POSITIONS, *SEARCH, *QUANTILES]
