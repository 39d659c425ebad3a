"""Rows for convolution, correlation, interpolation and window functions."""

import numpy as np

from operations.spec import Sample, array, op

S = Sample
MODES = ("full", "same", "valid")
KNOTS = np.array([-1.5, -0.4, 0.3, 1.7])
BETWEEN = np.array([[-1.0, 1.1, 0.1], [-2.2, 2.3, -0.7]])  # two are out of range


def pair(n, m, mode, kind="float"):
    return S((array(n, kind=kind), array(m, seed=1, kind=kind), mode))


def line(x=BETWEEN, kind="float"):
    return x, KNOTS, array(4, seed=2, kind=kind)


OPS = [
    op(
        "convolve",
        (array(3), array(2, seed=1)),
        pair(4, 2, "same"),
        pair(2, 4, "same"),
        pair(4, 2, "valid"),
        pair(3, 5, "valid"),
        complex_samples=[pair(3, 2, "full", "complex"), (array(2), array(4, seed=1, kind="complex"), "same")],
    ),
    op("convolve", (2.5, array(2, seed=1)), jax=None, reason="JAX takes no numbers"),
    op(
        "correlate",
        (array(4), array(2, seed=1)),
        pair(2, 3, "valid"),
        pair(3, 2, "full"),
        pair(5, 4, "same"),
        complex_samples=[
            pair(4, 2, "valid", "complex"),
            pair(2, 3, "full", "complex"),
            (array(4), array(3, seed=1, kind="complex"), "same"),
        ],
    ),
    op(
        "interp",
        S(line(), ordered=True),
        S(line(0.6), ordered=True),
        S((BETWEEN[1], KNOTS, array(4, seed=2), 0.5, -0.7), ordered=True),
        S((array(2), KNOTS[:1], array(1, seed=1)), ordered=True),
        complex_samples=[S(line(kind="complex"), ordered=True)],
    ),
    op("i0", (array(2, 2, low=-40.0, high=40.0),), (0.5,)),
    op("bartlett", (5,), (1,), (0,)),
    op("blackman", (5,), (1,)),
    op("hamming", (4,), (1,)),
    op("hanning", (4,), (1,)),
    op("kaiser", (5, 8.6), (1, 2.5)),
]
