"""Rows for arrays as sets."""

import jax.numpy as jnp
import numpy as np
from helpers import at_least

import funcgrad.numpy as fnp
from operations.spec import Sample, op, spread

S = Sample
#: All have one size: outside of ``jit`` JAX compiles again for every size.
X = spread(4)
Y = spread(4, seed=1)
SQUARE = X.reshape(2, 2)
VALUES = "the number of elements depends on the values"
ZERO = VALUES + "; JAX's derivative is zero"
ORDER = ZERO + ", and NumPy's order is its own"
COUNTED = {"return_index": True, "return_inverse": True, "return_counts": True}
TIES = np.array([2, 0, 2, 1])


def alone(*args, **options):
    """Return a sample whose arguments ``vmap`` does not map."""
    return S(args, options, unbatched=tuple(range(len(args))))


def row(name, *samples, reason=ZERO, **options):
    return op(name, *samples, jit=False, jax=None, reason=reason, **options)


def tied(name, *samples, change, **options):
    """Return a row of arrays with equal elements: ``change(x)`` makes them, so they stay equal as ``x`` changes."""

    def fun(xp):
        return lambda x, *args, **kwargs: getattr(xp, name)(*change(x), *args, **kwargs)

    return row(name, *samples, fun=fun(fnp), numpy=fun(np), **options)


def halves(x):
    """Return two arrays with two common elements."""
    return x[:3], x[1:]


OPS = [
    row("unique", alone(X), alone(SQUARE, axis=1), complex_samples=[alone(X + 1j * Y)]),
    tied(
        "unique",
        alone(X, **COUNTED),
        *[alone(X, sorted=False)] * at_least(np, "2.3.0"),  # older versions have no argument sorted
        change=lambda x: (x[TIES],),
        portable=False,
        reason=ORDER,
    ),
    tied("unique", alone(SQUARE, axis=0, **COUNTED), change=lambda x: (x[TIES % 2],)),
    row("unique_all", alone(X)),
    row("unique_counts", alone(X)),
    row("unique_inverse", alone(SQUARE)),
    row("unique_values", alone(X), portable=False, reason=ORDER),
    row("union1d", alone(SQUARE, Y)),
    row("intersect1d", alone(X, Y)),
    tied("intersect1d", alone(X, return_indices=True), alone(X, assume_unique=True), change=halves),
    row("setdiff1d", alone(X, Y)),
    tied("setdiff1d", alone(X, assume_unique=True), change=halves),
    row("setxor1d", alone(X, Y)),
    tied("setxor1d", alone(X), change=halves),
    row("trim_zeros", alone(X), reason="how much is cut off depends on the values"),
    op(
        "trim_zeros",
        alone(SQUARE),
        alone(SQUARE, axis=0),
        alone(X, "f"),
        fun=lambda x, *args, **kwargs: fnp.trim_zeros(fnp.pad(x, 1), *args, **kwargs),
        numpy=lambda x, *args, **kwargs: np.trim_zeros(np.pad(x, 1), *args, **kwargs),
        jit=False,
        jax=None,
        reason="how much is cut off depends on the values",
    ),
    op(
        "sort_complex",
        (SQUARE,),
        (np.float32(SQUARE),),
        complex_samples=[(SQUARE + 1j * SQUARE[::-1],)],
        jax=None,
        reason="JAX makes complex64 of float32",
    ),
    op(
        "isin",
        (np.arange(4.0).reshape(2, 2), np.array([3.0, 1.0, 7.0])),
        S((np.arange(3), np.array([[1, 1], [2, 5]])), {"invert": True}),
        S((np.arange(3), np.arange(0)), {"kind": "sort"}),
        differentiable=False,
        jax=lambda x, y, kind=None, **options: jnp.isin(x, y, **options),
    ),
    op(
        "lexsort",
        ((np.array([3, 1, 2, 0]), np.array([0.5, 0.25, 0.5, 0.125])),),
        (np.round(spread(2, 2, 3)), 0),
        differentiable=False,
    ),
]
