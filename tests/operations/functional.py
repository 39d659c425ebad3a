"""Rows for functions that take functions."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op

S = Sample
X, Y = array(2, 3), array(3, seed=1)
ALONE = "JAX traces the function, whose branches depend on values"


def squares(v):
    return v * v[0]


def pairs(v, w=1.0):
    return v[:, None] * v * w


def branching(x, y=2.0):
    return x * x * y if x > 0 else -x * y


def both(x, y):
    return (x * y, x) if x > y else (x + y, y)


def scaled(a, b):
    return a * b[0] + b


def rows_times(m, v):
    return m @ v, v[0]


def along(module):
    return lambda f, axis, x, *rest: module.apply_along_axis(f, axis, x, *rest)


def pieces(module):
    """Return a function that differs on parts of x: two functions and a number."""

    def fun(x, c):
        return module.piecewise(x, [x < -0.5, x > 1], [lambda v: v * v * c, c * 3.0, lambda v: v * v * v])

    return fun


def product(x, y):
    return x * x * y


def branched(*args):
    """Return a sample for a function that branches, which ``vmap`` refuses."""
    return S(args, unbatched=(0, 1))


def vectorized(function, **options):
    return {"fun": fnp.vectorize(function, **options), "numpy": np.vectorize(function, **options)}


def from_positions(module):
    return lambda c: module.fromfunction(lambda i, j: i * c + j * c * c, (2, 3))


def from_python(module):
    return lambda n: module.frompyfunc(lambda x: x + n, 1, 1)([1, 2]).astype(int)


OPS = [
    op(
        "apply_along_axis",
        S((squares, 0, X), unbatched=(0, 1)),
        S((pairs, -1, X, 1.5), unbatched=(0, 1)),
        S((fnp.sum, 1, array(2, 2, 3)), unbatched=(0, 1)),
        numpy=lambda f, axis, x, *rest: np.apply_along_axis(np.sum if f is fnp.sum else f, axis, x, *rest),
        jax=lambda f, axis, x, *rest: jnp.apply_along_axis(jnp.sum if f is fnp.sum else f, axis, x, *rest),
        complex_samples=[S((squares, 0, array(2, 3, kind="complex")), unbatched=(0, 1))],
    ),
    op(
        "apply_over_axes",
        S((fnp.sum, array(2, 3, 2), (0, -1)), unbatched=(0, 2)),
        S((fnp.cumsum, X, 1), unbatched=(0, 2)),
        numpy=lambda f, x, axes: np.apply_over_axes(np.sum if f is fnp.sum else np.cumsum, x, axes),
        jax=lambda f, x, axes: jnp.apply_over_axes(jnp.sum if f is fnp.sum else jnp.cumsum, x, np.atleast_1d(axes)),
    ),
    op(
        "piecewise",
        (X, 1.5),
        (array(), array(seed=2)),
        fun=pieces(fnp),
        numpy=pieces(np),
        jax=lambda x, c: jnp.where(x < -0.5, x * x * c, jnp.where(x > 1, c * 3.0, x * x * x)),
    ),
    op("vectorize", branched(X, Y), branched(X, 1.5), jax=None, jit=False, reason=ALONE, **vectorized(branching)),
    op("vectorize", branched(X, Y), jax=None, jit=False, reason=ALONE, **vectorized(both)),
    op("vectorize", (X, Y), jax=jnp.vectorize(product), **vectorized(product)),
    op(
        "vectorize",
        (X, Y),
        jax=jnp.vectorize(scaled, excluded={1}, signature="()->(n)"),
        **vectorized(scaled, excluded={1}, signature="()->(n)"),
    ),
    op(
        "vectorize",
        (array(2, 2, 3), array(2, 1, 3)),
        jax=jnp.vectorize(rows_times, signature="(m,n),(n)->(m),()"),
        **vectorized(rows_times, signature="(m,n),(n)->(m),()"),
    ),
    op("fromfunction", (1.5,), (array(),), fun=from_positions(fnp), numpy=from_positions(np), jax=from_positions(jnp)),
    op("frompyfunc", (3,), fun=from_python(fnp), numpy=from_python(np), jax=None, reason="JAX has none"),
]
