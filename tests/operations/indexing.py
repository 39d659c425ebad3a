"""Rows for reading parts of arrays: by indices, by masks, along an axis."""

import jax.numpy as jnp
import numpy as np
from helpers import at_least

from operations.spec import Sample, array, op

S = Sample
V, M, T = array(5), array(3, 4), array(2, 3, 4)
ZERO, EMPTY = array(), array(0, 3)
COMPLEX = array(3, 4, kind="complex")
ALL = slice(None)
ONE, TWICE = np.array([2, 0, 1]), np.array([1, -1, 1, 0])
SQUARE, COLUMN, NUMBER = np.array([[0, 1], [1, 0]]), np.array([[0], [1]]), np.array(1)
NONE = np.array([], int)
COUNTS = np.array([[0, 3, 0], [2, 0, 1]])
MASK, MASKS, PART = M > 0, np.array([True, False, True]), T[:, :, 0] > 0
COUNTED = "the shape depends on the values of the mask"

GETITEM = [
    op(
        "getitem",
        # numbers and slices
        (V, 2),
        (V, -1),
        (M, 1),
        S((M, (1, -2))),
        S((M, (ALL, 3))),
        (V, slice(1, 4)),
        (V, slice(None, None, -2)),
        (V, slice(3, 1)),
        S((T, (slice(1, None), ALL, slice(3, 0, -1)))),
        # new axes and ellipses
        (V, None),
        (ZERO, ...),
        (ZERO, None),
        S((ZERO, ())),
        S((T, (..., 1))),
        S((T, (0, ..., slice(1, 3)))),
        S((T, (None, ALL, None, 2, ...))),
        (EMPTY, slice(0, 0)),
        S((EMPTY, (..., 1))),
        # arrays
        (V, ONE),
        (V, TWICE),
        (V, SQUARE),
        (V, NUMBER),
        (V, NONE),
        (M, ONE),
        S((M, (ALL, TWICE))),
        S((M, (ONE, ONE))),
        S((M, (COLUMN, TWICE))),
        S((M, (TWICE, 2))),
        S((T, (1, ALL, TWICE))),  # separated: the axis of the array comes first
        S((T, (ALL, 1, TWICE))),
        S((T, (NUMBER, ALL, TWICE))),
        S((T, (SQUARE, ALL, COLUMN))),
        S((T, (ALL, SQUARE, COLUMN))),
        S((T, (..., ONE))),
        S((T, (NUMBER, slice(1, 3), NUMBER))),
        S((T, (ALL, TWICE, None, 1))),
        S((T, (TWICE, None, ALL, slice(0, 4, 2)))),
        complex_samples=[(COMPLEX, 1), (COMPLEX, ONE)],
        numpy=lambda x, index: x[index],
        jax=lambda x, index: jnp.asarray(x)[index],
    ),
    op(
        "getitem",
        *[
            S((x, index), unbatched=(1,))
            for x, index in (
                (M, MASK),
                (M, MASKS),
                (M, ~MASKS & False),
                (T, PART),
                (T, (ALL, MASKS, 1)),
                (T, (MASKS[:2], ALL, NUMBER)),
                (T, (ALL, MASKS, np.array([0, 2]))),
                (M, np.array(True)),
                (M, (ALL, np.array(False))),
            )
        ],
        numpy=lambda x, index: x[index],
        jax=lambda x, index: jnp.asarray(x)[index],
        jit=False,
        reason=COUNTED,
    ),
    op(
        "getitem",
        S((V, [0, 2, 2])),
        S((M, ([0, 2], [1, 1]))),
        S((M, [True, False, True])),
        S((M, True)),
        S((T, (ALL, [1, 1], ..., [0, 2]))),  # an ellipsis for no axis separates as well
        numpy=lambda x, index: x[index],
        jax=lambda x, index: jnp.asarray(x)[tuple(map(listless, index if isinstance(index, tuple) else (index,)))],
    ),
]


def listless(index):
    """Convert a list to an array, because JAX requires arrays where NumPy takes lists."""
    return np.asarray(index) if isinstance(index, list) else index


OPS = [
    *GETITEM,
    op(
        "take",
        (V, TWICE),
        (M, TWICE),
        (M, np.array([11, 0, -3])),
        (V, NUMBER),
        (V, 2),
        (M, 1, 0),
        (M, TWICE, 0),
        (M, SQUARE, 1),
        (T, SQUARE, -2),
        (V, NONE),
        S((V, np.array([7, -8, 2])), {"mode": "wrap"}),
        S((M, np.array([[7], [-8]]), 1), {"mode": "wrap"}),
        S((V, np.array([7, -8, 2])), {"mode": "clip"}),
        S((M, np.array([7, -8, 2]), 0), {"mode": "clip"}),
        complex_samples=[(COMPLEX, TWICE, 1)],
    ),
    op(
        "take_along_axis",
        *[(V, TWICE)] * at_least(np, "2.3.0"),  # older versions had no default axis
        (M, np.array([[0, -1, 0]] * 3), 1),
        (M, np.array([[1, 2, 0, 1]]), 0),
        (M, np.array([[3], [3], [-4]]), -1),
        (M, np.array([11, 0, 0]), None),
        (T, np.array([[[1], [2], [0]]]), 2),
        (array(2, 1, 3), np.array([[[2, 0], [1, 1]]]), 2),
        (M, np.zeros((3, 0), int), 1),
        complex_samples=[(COMPLEX, np.array([[0, -1, 0]] * 3), 1)],
        jax=lambda x, index, axis=-1: jnp.take_along_axis(x, index, axis),
    ),
    op(
        "compress",
        S((MASKS, M, 0), unbatched=(0,)),
        S((MASKS, M, 1), unbatched=(0,)),
        S((MASKS, M), unbatched=(0,)),
        S(([0, 1, 0, 1], T, -1), unbatched=(0,)),
        S((MASKS & False, V), unbatched=(0,)),
        jax=lambda condition, x, axis=None: jnp.compress(np.asarray(condition), x, axis),
        jit=False,
        reason=COUNTED,
    ),
    op(
        "extract",
        S((MASK, M), unbatched=(0,)),
        S((MASKS, V), unbatched=(0,)),
        jit=False,
        reason=COUNTED,
    ),
    op(
        "choose",
        (np.array([1, 0, 1, 1]), [array(4), array(4, seed=1)]),
        (np.array([1, 0, 2, 1]), [M, array(4), array(3, 1)]),
        (np.array([[2], [1]]), M),
        (NUMBER, [V, 2.5]),
        S((np.array([4, -1, 2]), [array(3), array(3, seed=1)]), {"mode": "wrap"}),
        S((np.array([4, -1, 0]), [array(3), array(3, seed=1)]), {"mode": "clip"}),
        jax=lambda a, choices, mode="raise": jnp.choose(a, choices, mode="clip" if mode == "raise" else mode),
    ),
    # integers, because no derivative of a vmap can be tested; test_indexing.py has floats
    *[
        op(name, S((COUNTS,), unbatched=(0,)), differentiable=False, jit=False, reason="the shape depends on values")
        for name in ("nonzero", "flatnonzero", "argwhere")
    ],
    op(
        "unravel_index",
        (np.array([0, 7, 11]), (3, 4)),
        (np.array([[0, 7]]), (2, 2, 3)),
        (NUMBER, 4),
        differentiable=False,
    ),
    op(
        "unravel_index",
        S((np.array([0, 7, 11]), (3, 4)), {"order": "F"}),
        differentiable=False,
        jax=None,
        reason="JAX counts the last axis fastest only",
    ),
    op(
        "ravel_multi_index",
        ((np.array([0, 2]), np.array([3, 1])), (3, 4)),
        S(((np.array([0, 2]), np.array([3, 1])), (3, 4)), {"order": "F"}),
        S(((np.array([-1, 5]), np.array([3, 1])), (3, 4)), {"mode": "wrap"}),
        S(((np.array([-1, 5]), np.array([3, 1])), (3, 4)), {"mode": "clip"}),
        differentiable=False,
        jax=lambda parts, dims, mode="clip", order="C": jnp.ravel_multi_index(parts, dims, mode=mode, order=order),
    ),
    op("ix_", S(([0, 2], [1, 0]), unbatched=(0, 1)), differentiable=False, jax=None, reason="only lists of positions"),
]
