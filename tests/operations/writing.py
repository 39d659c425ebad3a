"""Rows for functions that write into an array (each writes to a copy made by the function), and for ``at``."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op, positive

S = Sample
X, Y, V = array(2, 3), array(2, 3, seed=1), array(3, seed=2)
MASK = np.array([[True, False, True], [False, True, True]])
INDEX = np.array([[2], [0]])
TWICE = np.array([1, 0, 1])
#: Arrays of JAX are immutable outside of a transform.
IMMUTABLE = {"portable": False, "reason": "outside of transforms an array of JAX cannot be written to"}


def row(name, jax, *samples, **options):
    """Return a row for a function that writes to its first argument; ``jax(x, *args)`` returns the changed ``x``."""

    def writing(xp):
        def fun(x, *args, **kwargs):
            made = xp.copy(x)
            if name in ("place", "putmask"):  # NumPy does not cast in these functions
                args = (args[0], args[1].astype(made.dtype))
            getattr(xp, name)(made, *args, **kwargs)
            return made

        return fun

    return op(name, *samples, fun=writing(fnp), numpy=writing(np), jax=jax, **IMMUTABLE, **options)


def updating(change, *samples, jax=None, numpy=None, **options):
    """Return a row for ``at``: ``change(at, x, *args)`` on NumPy, and on JAX's ``x.at`` unless ``jax`` is given."""
    return op(
        "at",
        *samples,
        fun=lambda x, *args: change(fnp.at, x, *args),
        numpy=numpy,
        jax=jax or (lambda x, *args: change(lambda x: jnp.asarray(x).at, x, *args)),
        **options,
    )


OPS = [
    row(
        "copyto",
        lambda x, y, where=True: jnp.where(where, y, x),
        S((X, Y)),
        S((X, V), {"where": MASK}),
        complex_samples=[S((array(3, kind="complex"), array(3, kind="complex", seed=1)))],
    ),
    row(
        "put",
        lambda x, i, y, mode="raise": x.reshape(-1).at[np.asarray(i) % 6].set(y).reshape(2, 3),
        S((X, np.array([0, -1, 3]), V)),
        S((X, np.array([8, 1, 3]), V, "wrap"), unbatched=(3,)),
    ),
    row(
        "place",
        lambda x, mask, y: jnp.asarray(x).at[np.nonzero(MASK)].set(jnp.resize(y, 4)),
        S((X, MASK, V), unbatched=(1,)),
    ),
    row("putmask", lambda x, mask, y: jnp.where(mask, jnp.resize(y, (2, 3)), x), S((X, MASK, Y)), S((X, MASK, V))),
    row(
        "put_along_axis",
        lambda x, i, y, axis: jnp.put_along_axis(x, i, y, axis, inplace=False),
        S((X, INDEX, array(2, 1, seed=3), 1), unbatched=(3,)),
        S((X, np.array([4, 0]), array(2, seed=3), None), unbatched=(3,)),
    ),
    row(
        "fill_diagonal",
        lambda x, y, wrap=False: (
            x.at[np.array([0, 1, 3, 4]), np.array([0, 1, 0, 1])].set(y)
            if wrap
            else jnp.fill_diagonal(x, y, inplace=False)
        ),
        S((array(5, 2), array(4, seed=1)), {"wrap": True}),
        S((array(2, 2, 2), 1.5)),
    ),
    updating(lambda at, x, y: at(x)[1:, ::2].set(y), S((X, array(2, seed=3)))),
    updating(lambda at, x, y: at(x)[TWICE].set(y), S((V, array(3, seed=4)))),
    updating(lambda at, x, y: at(x)[TWICE].add(y), S((V, array(3, seed=4)))),
    updating(lambda at, x, i, y: at(x)[i, 1].subtract(y), S((X, np.array([0, 1, 0]), V))),
    updating(
        lambda at, x, y: at(x)[TWICE].multiply(y),
        S((V, array(3, seed=4))),
        jax=lambda x, y: (
            jnp.asarray(x).at[np.array([0, 1])].multiply(jnp.stack([y[1], y[0] * y[2]]), unique_indices=True)
        ),
    ),
    updating(
        lambda at, x, y: at(x)[TWICE].divide(y),
        S((V, positive(3, seed=4))),
        jax=lambda x, y: x / jnp.stack([y[1], y[0] * y[2], 1.0]),
    ),
    updating(
        lambda at, x, y: at(x)[TWICE].power(y),
        S((positive(3), positive(3, seed=4))),
        jax=lambda x, y: x ** jnp.stack([y[1], y[0] * y[2], 1.0]),
    ),
    updating(lambda at, x, y: at(x)[TWICE].min(y), S((V, array(3, seed=4)))),
    updating(lambda at, x, i, y: at(x)[i].max(y), S((V, TWICE, array(3, seed=4)))),
    updating(
        lambda at, x, i: at(x)[i].apply(fnp.sin),
        S((V, TWICE)),
        jax=lambda x, i: jnp.stack([jnp.sin(x[0]), jnp.sin(jnp.sin(x[1])), x[2]]),
    ),
    updating(lambda at, x, i: at(x)[i].get(mode="fill", fill_value=0.5), S((V, np.array([5, -1, 0])))),
    updating(lambda at, x, i, y: at(x)[i].add(y, mode="drop"), S((V, np.array([5, -1, 0]), array(3, seed=4)))),
]
