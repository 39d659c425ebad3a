"""Rows for filters, interpolation and measurements of images."""

import jax.scipy.ndimage
import numpy as np
import scipy.ndimage

from operations.spec import Sample, array, op, spread

NO_JAX = {"jax": None, "reason": "JAX has no such function"}
IMAGE, PLACES = array(4, 3), np.array([[0.4, 2.3], [1.6, 0.7]])
LABELS = np.array([[0, 1, 1], [2, 2, 1], [1, 1, 2], [0, 2, 2]])


def theirs(name):
    """Return SciPy's function, made to refuse float16."""

    def call(*args, **kwargs):
        if any(getattr(a, "dtype", None) == np.float16 for a in args):
            raise TypeError("float16")
        return getattr(scipy.ndimage, name)(*args, **kwargs)

    return call


def row(name, *samples, **options):
    options = {**({} if "jax" in options else NO_JAX), **options}
    return op(f"scipy.ndimage.{name}", *samples, numpy=theirs(name), **options)


def in_jax(x, at, order=3, mode="constant"):
    return jax.scipy.ndimage.map_coordinates(x, list(at), order, mode)


def labelled(name):
    """Return a row with labels that count from 0: for others SciPy divides by zero."""
    return row(name, Sample((IMAGE, LABELS, [2, 1]), frozen=(1, 2), unbatched=(1, 2)))


OPS = [
    row(
        "correlate1d",
        Sample((IMAGE, array(3, seed=1)), {"axis": 0}),
        complex_samples=[Sample((array(3, kind="complex"), array(2, seed=1, kind="complex")), {"mode": "wrap"})],
    ),
    row("convolve1d", Sample((IMAGE, array(2, seed=1)), {"mode": "constant", "cval": 0.5, "origin": -1})),
    row(
        "correlate",
        Sample((IMAGE, array(2, 3, seed=1)), {"mode": "mirror"}),
        complex_samples=[(array(3, 2, kind="complex"), array(2, 2, seed=1, kind="complex"))],
    ),
    row("convolve", Sample((IMAGE, array(3, 2, seed=1)), {"mode": "constant"})),
    row("uniform_filter1d", Sample((IMAGE, 2), {"axis": 0}, frozen=(1,))),
    row("uniform_filter", Sample((IMAGE, 3), {"mode": "nearest"}, frozen=(1,))),
    row("gaussian_filter1d", Sample((array(4), 0.8), {"order": 1, "radius": 3})),
    row("gaussian_filter", Sample((IMAGE, 0.8), {"mode": "mirror", "radius": 2})),
    row("gaussian_laplace", Sample((IMAGE, 0.6), unbatched=(1,), frozen=(1,))),
    row("gaussian_gradient_magnitude", Sample((IMAGE, 0.6), unbatched=(1,), frozen=(1,))),
    row("prewitt", (IMAGE,)),
    row("sobel", Sample((IMAGE,), {"axis": 0, "mode": "wrap"})),
    row("laplace", (IMAGE,)),
    row("maximum_filter1d", Sample((spread(4, 3), 3), {"axis": 0}, frozen=(1,))),
    row("minimum_filter1d", Sample((spread(4, 3), 2), frozen=(1,))),
    row("maximum_filter", Sample((spread(4, 3), 3), {"mode": "constant"}, frozen=(1,))),
    row("minimum_filter", Sample((spread(4, 3),), {"footprint": np.eye(2, dtype=bool)})),
    row("median_filter", Sample((spread(4, 3), 3), frozen=(1,))),
    row("percentile_filter", Sample((spread(4, 3), 40, 2), frozen=(1, 2))),
    row("rank_filter", Sample((spread(5), -2, 3), frozen=(1, 2))),
    row(
        "map_coordinates",
        Sample((IMAGE, PLACES), {"order": 1, "mode": "nearest"}),
        Sample((IMAGE, PLACES), {"order": 1}),
        jax=in_jax,
    ),
    row("map_coordinates", (IMAGE, PLACES), complex_samples=[(array(4, 3, kind="complex"), PLACES)]),
    row("shift", Sample((IMAGE, 0.4), {"mode": "reflect"})),
    row("zoom", Sample((IMAGE, 1.4), frozen=(1,), unbatched=(1,))),
    row(
        "affine_transform",
        Sample((IMAGE, np.array([[0.7, 0.2], [-0.1, 0.8]]), np.array([0.33, 0.57])), {"mode": "mirror"}),
    ),
    row("rotate", Sample((IMAGE, 20.0), {"mode": "mirror", "reshape": False})),
    row("spline_filter1d", Sample((IMAGE,), {"axis": 0})),
    row("spline_filter", Sample((IMAGE,), {"mode": "grid-wrap"})),
    labelled("sum_labels"),
    labelled("mean"),
    labelled("variance"),
    labelled("standard_deviation"),
    labelled("center_of_mass"),
    labelled("minimum"),
    labelled("maximum"),
]
