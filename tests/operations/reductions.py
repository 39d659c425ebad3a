"""Rows for reductions, running sums and products, and exponential means."""

import jax.nn
import jax.numpy as jnp
import numpy as np
import scipy.special

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op, positive, spread

S = Sample
CUBE = array(2, 3, 4)
MATRIX = array(3, 4, seed=2)
APART = spread(2, 3, 4)
EMPTY = array(0, 3)
COMPLEX = array(2, 3, kind="complex")
MASK = np.arange(24).reshape(2, 3, 4) % 5 < 3
ROW = np.array([True, False, True, True])
ZEROS = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 1, 0.0, CUBE)  # up to two zeros in each lane
HOLES = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 2, np.nan, APART)


def everywhere(x, **more):
    """Return samples for all forms of ``axis``."""
    return [
        S((x,), more),
        S((x,), {"axis": 1, **more}),
        S((x,), {"axis": (0, -1), **more}),
        S((x,), {"axis": -2, "keepdims": True, **more}),
        S((x,), {"keepdims": True, **more}),
    ]


def plain(name, x=CUBE, numbers=COMPLEX, **options):
    """Return a row for a reduction: over all axes, no axes, no elements, and of arrays without axes."""
    samples = [*everywhere(x), S((x[0, 0, 0],)), S((EMPTY,), {"axis": 1}), S((1.5,)), S((x[:1],), {"axis": 0})]
    numbers = [] if numbers is None else [S((numbers,)), S((numbers,), {"axis": -1, "keepdims": True})]
    return op(name, *samples, complex_samples=numbers, **options)


def masked(name, x=CUBE, **more):
    """Return a row for a reduction with a mask, which ``vmap`` maps too."""

    def of(function):
        return lambda x, where: function(x, axis=(1, -1), where=where, **more)

    return op(
        name,
        (x, MASK),
        (x, MASK[:1]),
        (x, ROW),
        fun=of(getattr(fnp, name)),
        numpy=of(getattr(np, name)),
        jax=of(getattr(jnp, name)),
    )


def starting(name, initial):
    """Return a row for a reduction with a differentiated initial value."""

    def of(function):
        return lambda x, initial: function(x, axis=1, initial=initial, keepdims=True)

    return op(
        name, (APART, initial), fun=of(getattr(fnp, name)), numpy=of(getattr(np, name)), jax=of(getattr(jnp, name))
    )


SUMS = [
    plain("sum"),
    op("sum", S((EMPTY,), {"axis": 0}), S((MATRIX,), {"axis": ()}), S((MATRIX,), {"dtype": np.float64})),
    masked("sum"),
    starting("sum", 0.7),
    plain("prod"),
    op("prod", *everywhere(ZEROS), S((EMPTY,), {"axis": 0}), S((array(0),)), S((MATRIX,), {"axis": ()})),
    masked("prod"),
    starting("prod", 0.7),
    plain("mean", numbers=COMPLEX),
    masked("mean"),
    op("mean", (np.array([[1, 2], [3, 5]]),), (np.array([True, False]),)),
]

SPREADS = [
    op(
        "var",
        *everywhere(CUBE),
        *everywhere(CUBE, ddof=1),
        S((CUBE,), {"axis": 1, "correction": 0.5}),
        complex_samples=[(COMPLEX,), S((COMPLEX,), {"axis": -1, "ddof": 1})],
    ),
    op(
        "std",
        *everywhere(CUBE),
        *everywhere(CUBE, ddof=1),
        complex_samples=[(COMPLEX,), S((COMPLEX,), {"axis": -1, "ddof": 1})],
    ),
    masked("var"),
    masked("var", ddof=1),
    masked("std"),
    op(
        "var",
        (CUBE, array(2, 1, 4, seed=3)),
        fun=lambda x, mean: fnp.var(x, axis=1, mean=mean),
        numpy=lambda x, mean: np.var(x, axis=1, mean=mean),
        jax=lambda x, mean: jnp.mean((x - mean) ** 2, axis=1),
    ),
    op(
        "average",
        (CUBE,),
        (CUBE, 1),
        (CUBE, None, positive(2, 3, 4)),
        (CUBE, 1, positive(3)),
        (CUBE, (0, 2), positive(2, 4)),
        S((CUBE, -1, positive(4)), {"keepdims": True}),
        S((CUBE, 1, positive(2, 3, 4)), {"returned": True}),
        S((CUBE, 1), {"returned": True}),
    ),
]

EXTREMA = [
    plain("max", x=APART, numbers=None),
    plain("min", x=APART, numbers=None),
    op("amax", *everywhere(APART)),
    op("amin", *everywhere(APART)),
    plain("ptp", x=APART, numbers=None),
    masked("max", x=APART, initial=-9.0),
    masked("min", x=APART, initial=9.0),
    starting("max", 0.2),
    starting("min", -0.2),
]

LOGIC = [
    op("all", *everywhere(np.round(CUBE)), S((EMPTY,), {"axis": 0}), differentiable=False),
    op("any", *everywhere(np.round(CUBE)), S((EMPTY,), {"axis": 0}), differentiable=False),
    op("count_nonzero", *everywhere(np.round(CUBE)), S((EMPTY,), {"axis": 0}), differentiable=False),
]

SCANS = [
    op(
        name,
        (MATRIX,),
        (MATRIX, 0),
        (MATRIX, -1),
        (MATRIX[0, 0],),
        (array(0, 3), 0),
        (array(1),),
        (array(7), 0),
        *zeros,
        complex_samples=[(COMPLEX, 1)],
    )
    for name, zeros in (("cumsum", []), ("cumprod", [(ZEROS, 0), (ZEROS, 1), (ZEROS, 2), (ZEROS,)]))
] + [
    op(
        name,
        S((array(4),)),
        S((MATRIX,), {"axis": 0}),
        S((MATRIX,), {"axis": -1, "include_initial": True}),
    )
    for name in ("cumulative_sum", "cumulative_prod")
]

WITHOUT_NAN = [
    op("nansum", *everywhere(HOLES), *everywhere(APART)),
    op("nanprod", *everywhere(HOLES), S((APART,), {"axis": 0})),
    op("nanmean", *everywhere(HOLES), S((APART,), {"axis": 0})),
    op("nanvar", *everywhere(HOLES), S((HOLES,), {"axis": 1, "ddof": 1})),
    op("nanstd", *everywhere(HOLES)),
    op("nanmax", *everywhere(HOLES), S((APART,), {"axis": 0})),
    op("nanmin", *everywhere(HOLES), S((APART,), {"axis": 0})),
    op("nancumsum", (HOLES,), (HOLES, 1)),
    op("nancumprod", (HOLES,), (HOLES, 1)),
]


def weighted(x, b):
    return fnp.logsumexp(x, axis=1, b=b, return_sign=True)[0]


def normalised(name):
    """Return a row for the softmax or its logarithm; SciPy reduces all axes by default."""
    theirs = getattr(scipy.special, name)
    return op(
        name,
        (CUBE,),
        S((CUBE,), {"axis": 1}),
        S((CUBE,), {"axis": (0, 2)}),
        S((CUBE,), {"axis": None}),
        numpy=lambda x, axis=-1: theirs(x, axis),
        jax=getattr(jax.nn, name),
    )


SIGNED = np.where(np.arange(24).reshape(2, 3, 4) % 4 == 1, -0.3, 1.2)

EXPONENTIAL = (
    [
        op(
            "logsumexp",
            *everywhere(CUBE),
            S((array(),)),
            S((CUBE * 1e3 / 4,), {"axis": 1}),
            numpy=scipy.special.logsumexp,
            jax=jax.nn.logsumexp,
            complex_samples=[(COMPLEX,), S((COMPLEX,), {"axis": 1})],
        ),
        op(
            "logsumexp",
            (CUBE, SIGNED),
            (CUBE, positive(3, 1)),
            fun=weighted,
            numpy=lambda x, b: scipy.special.logsumexp(x, axis=1, b=b, return_sign=True)[0],
            jax=lambda x, b: jax.nn.logsumexp(x, axis=1, b=b, return_sign=True)[0],
        ),
        op(
            "logsumexp",
            (CUBE, positive(2, 3, 4)),
            fun=lambda x, b: fnp.logsumexp(x, b=b, axis=(0, 2), keepdims=True),
            numpy=lambda x, b: scipy.special.logsumexp(x, b=b, axis=(0, 2), keepdims=True),
            jax=lambda x, b: jax.nn.logsumexp(x, b=b, axis=(0, 2), keepdims=True),
        ),
        op(
            "logsumexp",
            (CUBE, MASK),
            fun=lambda x, where: fnp.logsumexp(x, axis=1, where=where),
            numpy=None,
            jax=lambda x, where: jax.nn.logsumexp(x, axis=1, where=where),
            reason="SciPy has no mask",
        ),
    ]
    + [normalised(name) for name in ("softmax", "log_softmax")]
    + [
        op(
            "softmax",
            (CUBE, MASK),
            fun=lambda x, where: fnp.softmax(x, axis=1, where=where),
            numpy=None,
            jax=lambda x, where: jax.nn.softmax(x, axis=1, where=where),
            reason="SciPy has no mask",
        ),
    ]
)

OPS = [*SUMS, *SPREADS, *EXTREMA, *LOGIC, *SCANS, *WITHOUT_NAN, *EXPONENTIAL]
