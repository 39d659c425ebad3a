"""Rows for arrays made from values that may be traced."""

import numpy as np

from operations.spec import Sample, array, op, positive

S = Sample
V, M = array(3), array(2, 3)

MADE = [
    op(
        "array",
        S(([V, V + 0.5],)),
        S(([[M, M + 1.0], [M * 2, M]],)),
        S(([V, [1.0, 2.0, 3.0]],)),
        S(((V, V),), {"ndmin": 3}),
        S((M,), {"dtype": complex}),
        S((M,), {"ndmin": 4}),
        (1.5,),
        complex_samples=[S(([V, V * 1j],))],
        jax=None,
        reason="JAX's array takes no nested lists that hold lists of numbers beside arrays in the same way",
    ),
    op("asarray", (M,), S((M, complex)), S(([V, V],)), (1.5,)),
    op("asanyarray", (M,), S(([V, V],)), jax=None, reason="JAX has no subclasses"),
    op("ascontiguousarray", (M,), (1.5,), jax=None, reason="JAX has no memory layout"),
    op("asfortranarray", (M,), (1.5,), jax=None, reason="JAX has no memory layout"),
    op("copy", (M,), (V,)),
    op("full", S(((2, 3), 1.5)), S((2, 0.5)), S(((2, 3), V)), S(((2, 2), 0.5), {"dtype": complex}), S(((), 1.5))),
    op(
        "full_like",
        S((M, 1.5), frozen=(0,)),
        S((M, V), frozen=(0,)),
        S((M, 0.5), {"shape": (4,)}, frozen=(0,)),
        S((M, 0.5), {"dtype": complex}, frozen=(0,)),
    ),
    op("zeros_like", (M,), (1.5,), S((M,), {"shape": (2,)}), S((M,), {"dtype": int}), differentiable=False),
    op("ones_like", (M,), (1.5,), S((M,), {"shape": (2,)}), S((M,), {"dtype": np.float32}), differentiable=False),
]

SEQUENCES = [
    op(
        "linspace",
        (0.5, 2.5),
        (0.5, 2.5, 7),
        S((0.5, 2.5, 4), {"endpoint": False}),
        S((0.5, 2.5, 4), {"retstep": True}),
        S((V, V + 1.5, 4)),
        S((V, V + 1.5, 4), {"axis": 1}),
        S((M, 2.5, 4), {"axis": -1}),
        (V, array(2, 1), 3),
        (0.5, 2.5, 1),
        (0.5, 2.5, 0),
        S((0.5, 2.5, 4), {"dtype": complex}),
        complex_samples=[(0.5 + 1j, 2.5 - 0.5j, 4)],
    ),
    op(
        "logspace",
        (0.5, 2.5, 4),
        (0.5, 2.5, 4, True, 2.5),
        (V, V + 0.5, 3, False, 1.5),
        (V, V + 0.5, 3, True, positive(3)),
        S((V, 1.5, 3), {"axis": -1}),
    ),
    op(
        "geomspace",
        (0.5, 2.5, 4),
        (2.5, 0.5, 4, False),
        (-2.5, -0.5, 4),
        (positive(3), 2.5, 3),
        S((positive(2, 3), 2.5, 3), {"axis": 1}),
        complex_samples=[(0.5 + 1j, 2.5 + 1j, 4)],
    ),
    op(
        "arange",
        S((np.float64(0.5), np.float64(3.1), np.float64(0.7)), unbatched=(0, 1, 2)),
        S((np.float64(0.5), np.float64(3.1)), unbatched=(0, 1)),
        S((np.float64(2.6),), unbatched=(0,)),
        jax=None,
        jit=False,
        reason="JAX's derivative in start and step is zero; the length depends on values",
    ),
    op(
        "meshgrid",
        (V, array(2)),
        S((V, array(2)), {"indexing": "ij"}),
        S((V, array(2), array(4)), {"indexing": "ij"}),
        (V, array(2), array(4)),
        S((V, array(2)), {"sparse": True}),
        (V,),
    ),
    op("meshgrid", (V, 0.5), jax=None, reason="JAX refuses numbers"),
]

OPS = [*MADE, *SEQUENCES]
