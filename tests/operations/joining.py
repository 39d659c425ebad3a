"""Rows for joining and splitting arrays."""

import numpy as np

from operations.spec import Sample, array, op

S = Sample
V, W, M, N, T = array(4), array(3, seed=1), array(2, 3), array(2, 3, seed=1), array(2, 3, 4)
ZERO, EMPTY = array(), array(0, 3)
COMPLEX = array(2, 3, kind="complex")
WHOLE = np.arange(3)

JOINS = [
    op(
        "concatenate",
        S(([V, W],)),
        S(((V, W, array(1)),)),
        S(([M, N],), {"axis": 0}),
        S(([M, N], 1)),
        S(([M, N, array(2, 1)], -1)),
        S(([M, EMPTY],)),
        S(([M, ZERO, V], None)),
        S(([V],)),
        S(([V, WHOLE],)),
        S(([M, N],), {"dtype": np.complex128}),
        (M,),
        complex_samples=[S(([COMPLEX, M],)), S(([COMPLEX, COMPLEX * 2], 1))],
    ),
    op("concat", S(([M, N],), {"axis": 1}), S(([V, W],))),
    op(
        "stack",
        S(([V, V + 0.5],)),
        S(([M, N, M * 2], 1)),
        S(([M, N], -1)),
        S(([M, N],), {"axis": 2}),
        S(([ZERO, array(seed=3)],)),
        S(([W, WHOLE],)),
        S(([M],)),
        S(([EMPTY, EMPTY], 1)),
        S(([M, N],), {"dtype": np.complex128}),
        (M, 1),
        complex_samples=[S(([COMPLEX, M], 1))],
    ),
    op("vstack", S(([V, V + 0.5],)), S(([M, W],)), S(([ZERO, array(seed=3)],)), S(((M, N),), {"dtype": np.complex128})),
    op("hstack", S(([V, W],)), S(([M, N],)), S(([ZERO, V],)), S(([T, T + 0.5],))),
    op("dstack", S(([V, V + 0.5],)), S(([M, N],)), S(([T, array(2, 3, 1)],))),
    op("column_stack", S(([W, W + 0.5],)), S(([W, array(3, 2)],)), S(([ZERO, array(seed=3)],))),
    op("append", (V, W), (M, N), (M, N, 0), (M, array(2, 1), 1), (V, 0.5), (ZERO, V)),
    op(
        "block",
        S(([[M, array(2, 2)], [array(1, 3), array(1, 2)]],)),
        S(([V, W],)),
        S(([[V], [V + 0.5]],)),
        S(([[M, array(2, 1)]],)),
        S(([array(2, 1), M],)),
        S(([[[M]], [[N]]],)),
        (M,),
    ),
]

SPLITS = [
    op("split", (V, 2), S((V, [1, 3])), (M, 3, 1), (T, 2), (T, 2, -1), S((M, [1], 1)), S((V, [0, 4])), (V, 1)),
    op(
        "array_split",
        (V, 3),
        (V, 6),
        (M, 2, 1),
        S((T, [1, 2], 1)),
        complex_samples=[(COMPLEX, 2, 1)],
    ),
    op(
        "array_split",
        S((V, [3, 1])),
        S((V, [-1])),
        S((V, [2, 9])),
        S((M, [2, 1], 1)),
        jax=None,
        reason="JAX refuses cuts that are out of order, negative, or behind the end",
    ),
    op("vsplit", (M, 2), S((T, [1]))),
    op("hsplit", (V, 2), (M, 3), S((T, [1, 2]))),
    op("dsplit", (T, 2), S((T, [1]))),
    op("unstack", (V,), (M,), S((M,), {"axis": 1}), S((T,), {"axis": -1}), complex_samples=[(COMPLEX,)]),
]

OPS = [*JOINS, *SPLITS]
