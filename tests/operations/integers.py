"""Rows for operations with integer results or arguments that are differentiable on floating arrays."""

import numpy as np

from operations.spec import array, op

COUNTS = np.array([[3, -1, 2], [0, 5, -4]])

OPS = [
    op(
        "astype",
        (array(2, 3), "int64"),
        (array(2, 3), "bool"),
        (COUNTS, "int8"),
        numpy=lambda x, dtype: x.astype(dtype),
        differentiable=False,
    ),
    op("nan_to_num", (COUNTS,), differentiable=False),
    op("absolute", (COUNTS,), differentiable=False),
    op("multiply", (COUNTS, COUNTS[0]), differentiable=False),
    op("sum", (COUNTS, 0), (COUNTS > 0,), differentiable=False),
    op("max", (COUNTS, 1), differentiable=False),
    op("cumsum", (COUNTS, 1), differentiable=False),
    op("matmul", (COUNTS, COUNTS.T), differentiable=False),
    op("sort", (COUNTS, 1), differentiable=False),
]
