"""Rows for shapes, orders of axes, rotation, repetition, padding, diagonals and triangles."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op

S = Sample
V, M, T = array(4), array(2, 3), array(2, 3, 4)
ZERO, EMPTY = array(), array(0, 3)
COMPLEX = array(2, 3, kind="complex")
MASK = np.array([True, False, True])


def positions(name):
    """Return JAX's function, with lists of positions converted to the arrays that it requires."""
    theirs = getattr(jnp, name)
    return lambda x, where, *rest: theirs(x, np.asarray(where) if isinstance(where, list) else where, *rest)


SHAPES = [
    op(
        "reshape",
        S((M, (3, 2))),
        S((T, -1)),
        S((T, (4, -1))),
        S((M, (3, 2)), {"order": "F"}),
        S((T, (-1, 2)), {"order": "F"}),
        S((ZERO, (1, 1))),
        S((1.5, -1)),
        S((EMPTY, (3, 0))),
        complex_samples=[S((COMPLEX, 6))],
    ),
    op("ravel", (M,), (ZERO,), (V,), (EMPTY,), S((T,), {"order": "F"}), complex_samples=[(COMPLEX,)]),
    op(
        "transpose",
        (V,),
        (M,),
        (T,),
        (ZERO,),
        S((T, (1, 2, 0))),
        S((T, (-1, 0, 1))),
        S((T,), {"axes": (2, 0, 1)}),
        complex_samples=[(COMPLEX,)],
    ),
    op("permute_dims", S((T, (1, 2, 0)))),
    op("matrix_transpose", (M,), (T,)),
    op("swapaxes", (T, 0, 2), (T, -1, 1), (M, 0, 0)),
    op("moveaxis", (T, 0, -1), (T, 2, 0), S((T, (0, 1), (-1, 0))), S((T, [2, 0], [0, 1]))),
    op("rollaxis", (T, 2), (T, 0, 3), (T, -1, 1), (T, 1, 1)),
    op("expand_dims", (V, 0), (M, -1), (ZERO, 0), S((V, (0, 2))), S((M, (-1, 1))), (T, 2)),
    op(
        "squeeze",
        (array(1, 3, 1),),
        (array(1, 3, 1), 0),
        (array(1, 3, 1), -1),
        S((array(1, 3, 1), (0, 2))),
        (array(1, 1),),
        (M,),
    ),
    op("broadcast_to", S((V, (3, 4))), S((array(2, 1), (3, 2, 4))), S((ZERO, (2,))), S((1.5, (2, 2))), S((M, (2, 3)))),
    op("broadcast_arrays", (array(2, 1), array(3)), (V, 1.5), (M, M + 0.5), (T, ZERO, array(4))),
    op("atleast_1d", (ZERO,), (V,), (1.5, M)),
    op("atleast_2d", (ZERO,), (V,), (M, V)),
    op("atleast_3d", (ZERO,), (V,), (M,), (T, V)),
    op(
        "astype",
        S((M, "complex128")),
        S((V, float)),
        numpy=lambda x, dtype: x.astype(dtype),
        complex_samples=[S((COMPLEX, complex))],
    ),
]

TURNS = [
    op("flip", (M,), (T, 1), (T, -1), S((T, (0, 2))), (V,), (EMPTY, 1), complex_samples=[(COMPLEX, 0)]),
    op("flipud", (M,), (V,)),
    op("fliplr", (M,), (T,)),
    op("rot90", (M,), (M, 2), (M, 3), (M, 4), (M, -1), S((T, 1, (1, 2))), S((T, 3, (2, 0))), S((T, 2, (0, 2)))),
    op(
        "roll",
        (V, 1),
        (V, -3),
        (M, 2),
        (M, 1, 0),
        (T, 5, -1),
        S((T, (1, -2), (0, 2))),
        S((T, 2, (0, 1))),
        S((T, (1, 1), 1)),
        (EMPTY, 1, 1),
        complex_samples=[(COMPLEX, 1, 1)],
    ),
    op("tile", (V, 2), S((V, (2, 3))), S((M, (2, 1))), (M, 2), S((T, (2, 1, 1, 2))), (ZERO, 3), S((V, ())), S((V, 0))),
    op(
        "repeat",
        (V, 2),
        (M, 3),
        (M, 2, 0),
        (M, 2, -1),
        (V, 0),
        (ZERO, 3),
        S((V, [1, 0, 2, 3])),
        S((M, [1, 2], 0)),
        S((T, [2, 0, 1], 1)),
        S((M, [2], 1)),
        jax=positions("repeat"),
    ),
    op("resize", S((V, (2, 3))), S((M, (2, 2))), (M, 20), S((ZERO, (2,))), S((V, (0,))), S((array(0), (2, 2)))),
    op(
        "pad",
        (V, 2),
        S((M, ((1, 2), (0, 1)))),
        S((M, (1, 2))),
        (ZERO, 1),
        (EMPTY, 1),
        S((V, 2, "edge")),
        S((M, ((1, 2), (0, 1)), "edge")),
        S((V, 6, "reflect")),
        S((M, 1, "reflect")),
        S((M, 4, "symmetric")),
        S((M, ((5, 1), (2, 7)), "wrap")),
        S((V, 1), {"constant_values": 1.5}),
        S((M, 1), {"constant_values": (0.5, -1.5)}),
        S((M, ((1, 2), (1, 0))), {"constant_values": ((0.5, 1.5), (2.5, 3.5))}),
        S((M, ((1, 2), (1, 0)), "linear_ramp"), {"end_values": (0.5, -1.5)}),
        S((M, ((1, 2), (2, 0)), "mean"), {"stat_length": ((1, 2), (2, 1))}),
        S((M, ((2, 3), (1, 6)), "reflect"), {"reflect_type": "odd"}),
        complex_samples=[(COMPLEX, 1), (COMPLEX, 1, "wrap")],
    ),
    op(
        "pad",
        (V, 0.5),
        (M, 0.5),
        (M, array(2)),
        (M, array(2, 2)),
        (M, array(2, 1)),
        fun=lambda x, values: fnp.pad(x, 1, constant_values=values),
        numpy=lambda x, values: np.pad(x, 1, constant_values=values),
        jax=lambda x, values: jnp.pad(x, 1, constant_values=values),
    ),
    op(
        "delete",
        (V, 1),
        (V, -1),
        S((V, [0, 2])),
        S((V, slice(1, 3))),
        (M, 1),
        (M, 1, 1),
        S((T, [0, -1], 2)),
        S((M, MASK, 1), frozen=(1,), unbatched=(1,)),
        jax=positions("delete"),
    ),
    op(
        "insert",
        (V, 1, 0.5),
        (V, -1, 0.5),
        (V, 4, array(2)),
        S((V, [1, 3], array(2))),
        S((V, [2, 0], 0.5)),
        S((V, slice(1, 3), array(2))),
        (M, 1, 0.5),
        (M, 1, array(2), 1),
        (M, 1, array(3), 0),
        (M, 0, array(2, 3), 0),
        S((M, [1], array(2, 1), 1)),
        S((M, [0, 2], array(2, 2), 1)),
        S((M, [0, 0], array(2), 1)),
        (T, 2, array(3, 4), 0),
        jax=positions("insert"),
    ),
]

DIAGONALS = [
    op(
        "diagonal",
        (M,),
        (M, 1),
        (M, -1),
        (M, 5),
        (T, 0, 1, 2),
        (T, 1, 2, 0),
        (T, 0, -1, 0),
        (EMPTY,),
        complex_samples=[(COMPLEX, 1)],
    ),
    op("diag", (V,), (V, 2), (V, -1), (M,), (M, 1), (array(3, 3), -1), (array(0),), complex_samples=[(COMPLEX,)]),
    op("diagflat", (V,), (M, 1), (ZERO,)),
    op("tril", (M,), (M, 1), (T, -1), (array(3, 3),), complex_samples=[(COMPLEX,)]),
    op("triu", (M,), (M, 1), (T, -1), (array(3, 3),), complex_samples=[(COMPLEX,)]),
    op("tril", (V,), jax=None, reason="JAX refuses a vector"),
    op("triu", (V, 1), jax=None, reason="JAX refuses a vector"),
    op("vander", (V,), (V, 3), (V, 5, True), (V, 1), (V, 0), complex_samples=[(array(3, kind="complex"),)]),
]


OPS = [*SHAPES, *TURNS, *DIAGONALS]
