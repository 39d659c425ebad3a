"""The dense layer: a product with a matrix plus a bias."""

from __future__ import annotations

from funcgrad.nn.operations.affine import biased_product, is_biased_product
from funcgrad.numpy.elementwise import add
from funcgrad.numpy.products import matmul
from funcgrad.typing import Array, ArrayLike

__all__ = ["linear"]


def linear(x: ArrayLike, kernel: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """``x @ kernel + bias``, in one step where it can be: less to record, and no array in between.

    Args:
        x: an array of shape (..., inputs).
        kernel: a matrix of shape (inputs, outputs), as in Flax and Haiku; PyTorch's weight is its transpose.
        bias: a vector of length outputs, or what broadcasts to the result; none by default.

    Returns:
        An array of shape (..., outputs).

    Raises:
        ValueError: shapes that do not go together, NumPy's own.

    Example:
        >>> fnn.linear([[1.0, 2.0]], [[1.0], [10.0]], [0.5])
        array([[21.5]])
    """
    if bias is None:
        return matmul(x, kernel)
    if is_biased_product(x, kernel, bias):
        ans: Array = biased_product(x, kernel, bias)
        return ans
    return add(matmul(x, kernel), bias)
