"""Rows for hypergeometric functions."""

import numpy as np

from operations.spec import Sample, op

A, B, C = np.array([0.6, 1.7]), np.array([1.4, 0.8]), np.array([2.3, 1.6])
X = np.array([0.3, -0.7])
NO_JAX = {"jax": None, "on_jax": False, "reason": "JAX has no such kernel"}


def row(name, *samples, **options):
    return op(f"scipy.special.{name}", *samples, **{**NO_JAX, **options})


OPS = [
    row("hyp0f1", (B, X)),
    *[
        row(name, Sample((A, B, np.array([0.3, 0.7])), frozen=(0, 1)))
        for name in ("wright_bessel", "log_wright_bessel")
    ],
    row("hyperu", (A, B, np.array([0.6, 1.3]))),
    # JAX compiles each derivative in a parameter for seconds: test_special_hypergeometric.py has those.
    op("scipy.special.hyp1f1", Sample((A, B, X), frozen=(0, 1))),
    op(
        "scipy.special.hyp2f1",
        Sample((A, B, C, X), frozen=(0, 1, 2)),
        jax=None,
        reason="JAX's derivatives take 15 s to compile; ours on its arrays are compared with those on NumPy's",
    ),
]
