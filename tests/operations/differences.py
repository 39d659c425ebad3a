"""Rows for differences, gradients on grids, integrals of samples and unwrapped phases."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op

S = Sample
GRID = np.array([-1.0, 0.2, 0.9, 2.5])
PHASES = np.array([0.3, 2.9, -2.7, 4.1, 11.0])
TURNS = np.array([[0.1, 0.7, 1.25], [0.35, 1.15, 0.2]])


def complexes(*shape):
    return array(*shape, kind="complex")


def ends(function):
    """Call ``diff`` with its ends as positional arguments."""
    return lambda a, prepend, append, axis: function(a, axis=axis, prepend=prepend, append=append)


def on_grid(function, **options):
    """Call ``gradient`` with samples and spacings."""
    return lambda f, *spacings: function(f, *spacings, **options)


def periodic(function):
    """Call ``unwrap`` with phases and a period."""
    return lambda p, period: function(p, period=period)


EDGE = "JAX has no edge_order"
OPS = [
    op("diff", (array(4),), (array(2, 3), 1, 0), (array(4), 3), complex_samples=[(complexes(3), 2)]),
    op(
        "diff",
        S((array(2, 3), array(2, 1, seed=1), array(2, 2, seed=2), 1), unbatched=(3,)),
        S((array(2, 2), 0.5, array(1, 2, seed=1), 0), unbatched=(3,)),
        fun=ends(fnp.diff),
        numpy=ends(np.diff),
        jax=ends(jnp.diff),
    ),
    op(
        "ediff1d",
        (array(2, 2),),
        (array(3), array(2, seed=1), 0.5),
        (array(1), array(1, 2, seed=1)),
        complex_samples=[(complexes(3), None, array(1))],
    ),
    op(
        "gradient",
        (array(4),),
        (array(2, 3),),
        (array(2, 3), 0.7),
        S((array(4, 3), GRID, np.array(1.3)), ordered=True),
        complex_samples=[S((complexes(4), GRID), ordered=True)],
    ),
    op("gradient", S((array(3, 2, 2),), {"axis": (-1, 0)}), S((array(2, 3), 0.5), {"axis": 1})),
    op(
        "gradient",
        S((array(4),), {"edge_order": 2}),
        S((array(3, 4), np.array(0.6), GRID), {"edge_order": 2}, ordered=True),
        jax=None,
        reason=EDGE,
    ),
    op(
        "trapezoid",
        (array(4),),
        (array(2, 3), None, 0.5, 0),
        (array(2, 3), array(3, seed=1)),
        (array(3, 2), array(3, 2, seed=1), 1.0, 0),
        complex_samples=[(complexes(3), array(3))],
    ),
    op("unwrap", (PHASES,), S((array(2, 3) * 4, None, 0), unbatched=(2,)), (PHASES, 5.0)),
    op(
        "unwrap",
        (TURNS, 1.0),
        fun=periodic(fnp.unwrap),
        numpy=periodic(np.unwrap),
        jax=periodic(jnp.unwrap),
    ),
]
