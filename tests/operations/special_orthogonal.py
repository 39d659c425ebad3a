"""Rows for orthogonal polynomials, Legendre functions and spherical harmonics."""

import numpy as np

from operations.spec import Sample, op

X = np.array([0.35, -0.64])
N = np.array([3, 4])
REAL = np.array([0.5, -1.5])  # non-integer degrees, for which the functions have poles in alpha, too
A, B = np.array([0.6, 1.7]), np.array([1.2, 0.3])
NO_JAX = {"jax": None, "on_jax": False, "reason": "JAX has no such kernel"}


def row(name, *samples, **options):
    return op(f"scipy.special.{name}", *samples, **{**NO_JAX, **options})


OPS = [
    *[
        row(f"eval_{name}", (N, X))
        for name in (
            "legendre",
            "chebyt",
            "chebyu",
            "hermite",
            "hermitenorm",
            "laguerre",
            "sh_legendre",
            "sh_chebyt",
            "sh_chebyu",
            "chebyc",
            "chebys",
        )
    ],
    *[row(f"eval_{name}", (N, A, X), Sample((REAL, A, X), frozen=(0,))) for name in ("genlaguerre", "gegenbauer")],
    row("eval_jacobi", (N, A, B, X), Sample((REAL, A, B, X), frozen=(0,))),
    row("eval_sh_jacobi", (N, A + 2.0, B + 1.0, X)),
    row("lpmv", (np.array([1, 2]), N, X)),
    op("scipy.special.sph_harm_y", (N, np.array([2, -1]), np.array([0.7, 2.1]), A)),
]
