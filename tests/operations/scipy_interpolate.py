"""Rows for interpolation: each class as a function of knots, values and queries."""

import numpy as np
import scipy.interpolate

from funcgrad.scipy import interpolate
from operations.spec import Sample, array, op

KNOTS = np.array([0.1, 0.7, 1.6, 2.2, 3.1])
QUERIES = np.array([0.3, 1.9])
NO_JAX = "JAX has no such function"


def row(name, sample, *args, **kwargs):
    def of(module):
        return lambda x, y, q: getattr(module, name)(x, y, *args, **kwargs)(q)

    options = {"jax": None, "reason": NO_JAX}
    full = f"scipy.interpolate.{name}"
    return op(full, Sample(sample, ordered=True), fun=of(interpolate), numpy=of(scipy.interpolate), **options)


def on_grid(module):
    return lambda x, values, q: module.RegularGridInterpolator((x, x[:3]), values)(q)


def scattered(module, name, **options):
    corners = np.array([[0.0, 0.0], [1.0, 0.1], [0.1, 1.0], [1.2, 1.3]])
    return lambda values, q: getattr(module, name)(corners, values, **options)(q)


OPS = [
    row("interp1d", (KNOTS, array(2, 5), QUERIES)),
    row("CubicSpline", (KNOTS, array(5), QUERIES)),
    row("PchipInterpolator", (KNOTS, array(5), QUERIES)),
    row("Akima1DInterpolator", (KNOTS, array(5), QUERIES)),
    op(
        "scipy.interpolate.RegularGridInterpolator",
        Sample((KNOTS, array(5, 3), np.array([[0.3, 1.2], [2.7, 0.2]])), ordered=True),
        fun=on_grid(interpolate),
        numpy=on_grid(scipy.interpolate),
        jax=None,
        reason=NO_JAX,
    ),
    *[
        op(
            f"scipy.interpolate.{name}",
            Sample((array(4), np.array([[0.5, 0.4], [0.3, 0.6]]))),
            fun=scattered(interpolate, name),
            numpy=scattered(scipy.interpolate, name, **options),
            jax=None,
            reason=NO_JAX,
        )
        for name, options in (("LinearNDInterpolator", {}), ("CloughTocher2DInterpolator", {"tol": 1e-15}))
    ],
]
