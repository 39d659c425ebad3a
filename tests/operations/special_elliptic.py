"""Rows for elliptic integrals and functions."""

import numpy as np

from operations.spec import op

M = np.array([0.3, 0.8])
PHI = np.array([0.9, 4.2])
X, Y, Z, P = np.array([0.4, 2.3]), np.array([1.3, 0.6]), np.array([2.6, 1.7]), np.array([0.8, 3.1])
NO_JAX = {"jax": None, "on_jax": False, "reason": "JAX has no such kernel"}


def row(name, *samples, **options):
    return op(f"scipy.special.{name}", *samples, **{**NO_JAX, **options})


OPS = [
    *[row(name, (M,)) for name in ("ellipk", "ellipkm1", "ellipe")],
    *[row(name, (PHI, M)) for name in ("ellipkinc", "ellipeinc", "ellipj")],
    *[row(name, (X, Y)) for name in ("elliprc", "agm")],
    *[row(name, (X, Y, Z)) for name in ("elliprd", "elliprf", "elliprg")],
    row("elliprj", (X, Y, Z, P)),
]
