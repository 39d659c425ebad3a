"""Rows for functions whose results are complex outside of their domain, and for sliding windows.

Separate tests cover arguments outside of the domain: a row cannot state that an empty batch has another dtype.
"""

from operations.spec import Sample, array, op, positive

BY_VALUE = "the dtype depends on values; jax.numpy has no emath"
VIEWS = "jax.numpy has none"


def by_value(name, *samples, **options):
    return op(f"emath.{name}", *samples, jax=None, jit=False, reason=BY_VALUE, **options)


OPS = [
    by_value("sqrt", (positive(2),), complex_samples=[(array(2, kind="complex"),)]),
    by_value("log", (positive(2),)),
    by_value("log2", (positive(2),)),
    by_value("log10", (positive(2),)),
    by_value("logn", (positive(2), positive(2, seed=1, low=1.5))),
    by_value("power", (positive(2), array(2))),
    by_value("arccos", (array(2, low=-0.9, high=0.9),)),
    by_value("arcsin", (array(2, low=-0.9, high=0.9),)),
    by_value("arctanh", (array(2, low=-0.9, high=0.9),)),
    op(
        "lib.stride_tricks.sliding_window_view",
        Sample((array(5),), {"window_shape": 3}),
        Sample((array(3, 4),), {"window_shape": (2, 3)}),
        Sample((array(2, 4),), {"window_shape": (2, 2), "axis": (1, 1)}),
        complex_samples=[Sample((array(3, 2, kind="complex"),), {"window_shape": [2], "axis": 0})],
        jax=None,
        reason=VIEWS,
    ),
]
