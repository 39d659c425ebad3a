"""The dense layer; convolution and its transpose in any number of dimensions, with arguments as in ``jax.lax``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from funcgrad import backend
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import permute, reshape
from funcgrad.nn.narrow import tell_shapes
from funcgrad.nn.operations.affine import biased_product, is_biased_product
from funcgrad.nn.operations.convolution import Geometry, convolution
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.elementwise import add
from funcgrad.numpy.products import matmul
from funcgrad.primitives.shaping import flip
from funcgrad.typing import Array, ArrayLike
from funcgrad.views import inverse_permutation

__all__ = ["conv", "conv_transpose", "linear"]


#: Borders: "SAME", "SAME_LOWER", "VALID", one number for both sides of all axes, or (before, after) for each axis.
Padding: TypeAlias = str | int | Sequence[tuple[int, int]]
Ints = tuple[int, ...]


class Layout(NamedTuple):
    """Positions of the axes (batch, feature, *spatial), in the kernel (output, input, *spatial), for each array."""

    lhs: Ints
    rhs: Ints
    out: Ints


def per_axis(call: str, name: str, value: Any, rank: int) -> Ints:
    """Return one integer per spatial axis, from a sequence or from one integer for all; None means ones.

    Raises:
        ValueError: a wrong number of integers, or an integer below 1.

    Example:
        >>> per_axis("conv", "window_strides", 2, 2)
        (2, 2)
    """
    if value is None:
        value = 1
    found = (
        tuple([operator.index(v) for v in value]) if isinstance(value, Sequence) else (operator.index(value),) * rank
    )
    if len(found) != rank or any(v < 1 for v in found):
        raise ShapeError(
            f"{call}: {name} must be {rank} integers of at least 1, got {value!r}. Give one per spatial axis, or "
            "one for all."
        )
    return found


def borders(call: str, padding: Padding, lengths: Ints, windows: Ints, strides: Ints) -> tuple[tuple[int, int], ...]:
    """Return the borders (before, after) for each spatial axis.

    "SAME" makes the result as long as the array divided by the stride, rounded up; an odd border is longer after
    the array ("SAME_LOWER": before the array). "VALID" has no border.

    Example:
        >>> borders("conv", "SAME", (5,), (4,), (2,))
        ((1, 2),)
    """
    if not isinstance(padding, str):
        pairs = [(padding, padding)] * len(lengths) if isinstance(padding, int) else list(padding)
        if len(pairs) != len(lengths) or any(len(p) != 2 for p in pairs):
            raise ShapeError(
                f"{call}: padding must be a pair (before, after) for each of {len(lengths)} spatial axes, got "
                f"{padding!r}. Give as many pairs, 'SAME' or 'VALID'."
            )
        return tuple([(operator.index(low), operator.index(high)) for low, high in pairs])
    name = padding.upper()
    if name == "VALID":
        return ((0, 0),) * len(lengths)
    if name not in ("SAME", "SAME_LOWER"):
        raise InputError(f"{call}: unknown padding, got {padding!r}. Use 'SAME', 'SAME_LOWER', 'VALID' or pairs.")
    found = []
    for n, k, s in zip(lengths, windows, strides, strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        small = total // 2
        found.append((small, total - small) if name == "SAME" else (total - small, small))
    return tuple(found)


def _layout(call: str, numbers: Any, rank: int) -> Layout:
    """Convert ``dimension_numbers`` to indices of axes; ``rank`` is the number of axes of the arrays."""
    if numbers is None:
        plain = tuple(range(rank))
        return Layout(plain, plain, plain)
    if hasattr(numbers, "lhs_spec"):
        return Layout(tuple(numbers.lhs_spec), tuple(numbers.rhs_spec), tuple(numbers.out_spec))
    texts = tuple(numbers) if isinstance(numbers, Sequence) and not isinstance(numbers, str) else ()
    fits = len(texts) == 3 and all(isinstance(t, str) and len(set(t)) == len(t) == rank for t in texts)
    letters = [set(t) - set(own) for t, own in zip(texts, ("NC", "OI", "NC"), strict=True)] if fits else []
    if not fits or any(part != letters[0] or len(part) != rank - 2 for part in letters):
        raise InputError(
            f"{call}: dimension_numbers must be three texts of {rank} letters such as ('NHWC', 'HWIO', 'NHWC'), got "
            f"{numbers!r}. N and C mark batch and feature axes, O and I those of the kernel."
        )
    spatial = [letter for letter in texts[1] if letter not in "OI"]
    orders = [(*own, *spatial) for own in ("NC", "OI", "NC")]
    return Layout(*[tuple([text.index(i) for i in order]) for text, order in zip(texts, orders, strict=True)])


def arranged(x: Array, axes: Ints) -> Array:
    """Return ``x`` with its axes in this order."""
    return x if axes == tuple(range(len(axes))) else permute(x, axes=axes)


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: int | Sequence[int] = 1,
    padding: Padding = "VALID",
    lhs_dilation: int | Sequence[int] | None = None,
    rhs_dilation: int | Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> Array:
    """Compute the convolution of neural networks: slide the kernels ``rhs`` over the arrays ``lhs``.

    The kernel is not flipped. The result is linear in each of both arguments, so derivatives of any order are
    convolutions again. The arguments are those of ``jax.lax.conv_general_dilated``. Convolution of NumPy arrays with
    long kernels uses Fourier transforms; rounding errors are then relative to the largest element.

    Args:
        lhs: a batch of arrays, of shape (batch, features, *spatial) unless ``dimension_numbers`` says otherwise.
        rhs: kernels, of shape (output features, input features / groups, *spatial).
        window_strides: the step of the kernel along each axis.
        padding: zeros around ``lhs``: "SAME", "SAME_LOWER", "VALID", a number, or (before, after) for each spatial
            axis. A negative number removes elements.
        lhs_dilation: the distance between the elements of ``lhs``, with zeros between them.
        rhs_dilation: the distance between the elements of ``rhs``, with zeros between them.
        dimension_numbers: the layouts of ``lhs``, ``rhs`` and the result, such as ("NHWC", "HWIO", "NHWC"), or the
            result of ``jax.lax.conv_dimension_numbers``; by default as above.
        feature_group_count: the number of groups of features; each group has its own kernels.
        batch_group_count: the number of groups of the batch; each group has its own kernels.

    Raises:
        ShapeError: shapes that do not fit each other (a ``ValueError``).
        InputError: an unknown padding or layout (a ``TypeError``).

    Example:
        >>> image = np.arange(16.0).reshape(1, 1, 4, 4)
        >>> fnn.conv(image, np.ones((1, 1, 2, 2)), window_strides=2)[0, 0]
        array([[10., 18.],
               [42., 50.]])
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    rank = len(backend.shape_of(lhs))
    if rank < 2 or len(backend.shape_of(rhs)) != rank:
        raise ShapeError(
            f"conv: lhs and rhs must have the same number of axes, at least 2, got shapes {backend.shape_of(lhs)} and "
            f"{backend.shape_of(rhs)}. Add axes of length 1 for batch and features."
        )
    layout = _layout("conv", dimension_numbers, rank)
    lhs, rhs = arranged(lhs, layout.lhs), arranged(rhs, layout.rhs)
    strides = per_axis("conv", "window_strides", window_strides, rank - 2)
    stretch = per_axis("conv", "lhs_dilation", lhs_dilation, rank - 2)
    dilation = per_axis("conv", "rhs_dilation", rhs_dilation, rank - 2)
    lengths, places = backend.shape_of(lhs)[2:], backend.shape_of(rhs)[2:]
    windows = tuple([r * (k - 1) + 1 if k else 0 for r, k in zip(dilation, places, strict=True)])
    pairs = borders("conv", padding, lengths, windows, strides)
    spans = [(e * (n - 1) + 1 if n else 0) + sum(p) for e, n, p in zip(stretch, lengths, pairs, strict=True)]
    out = tuple([max(0, (n - k) // s + 1) for n, k, s in zip(spans, windows, strides, strict=True)])
    geometry = Geometry(strides, tuple([low for low, _ in pairs]), stretch, dilation, out)
    lhs, rhs = _grouped(lhs, rhs, feature_group_count, batch_group_count)
    ans = convolution(lhs, rhs, geometry=geometry)
    groups, a, b = backend.shape_of(ans)[:3]
    ans = permute(ans, axes=(1, 0, 2, *range(3, rank + 1))) if groups > 1 else ans
    ans = reshape(ans, to=(a, groups * b, *out))
    return arranged(ans, inverse_permutation(layout.out))


def _grouped(lhs: Array, rhs: Array, features: int, batches: int) -> tuple[Array, Array]:
    """Return both arguments with a leading axis of groups."""
    (n, c, *lengths), (o, i, *places) = backend.shape_of(lhs), backend.shape_of(rhs)
    count = features * batches
    fits = features >= 1 and batches >= 1 and 1 in (features, batches) and c == i * features
    if not fits or o % count or n % batches:
        got = (
            f"got lhs {(n, c, *lengths)} as (batch, features, *spatial), rhs {(o, i, *places)} as (outputs, inputs, "
            "*spatial)"
        )
        if count == 1:
            raise ShapeError(
                f"conv: {c} features do not fit a kernel of {i} inputs, {got}. Where the features come last, pass "
                "dimension_numbers, such as ('NHWC', 'HWIO', 'NHWC')."
            )
        raise ShapeError(
            f"conv: features do not fit a kernel in {features} groups of features and {batches} groups of the batch, "
            f"{got}. lhs needs {i * features} features; groups divide outputs and batch; one of the counts is 1."
        )
    kernels = reshape(rhs, to=(count, o // count, i, *places))
    if batches > 1:
        return reshape(lhs, to=(batches, n // batches, c, *lengths)), kernels
    arrays = reshape(lhs, to=(n, features, i, *lengths))
    return permute(arrays, axes=(1, 0, *range(2, len(lengths) + 3))), kernels


_TRANSPOSED = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    rhs_dilation: int | Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
) -> Array:
    """Compute a transposed convolution, which lengthens arrays by ``strides``; arguments as in ``jax.lax``.

    Args:
        lhs: a batch of arrays, by default of shape (batch, *spatial, features).
        rhs: kernels, by default of shape (*spatial, input features, output features).
        strides: the distance to which the elements of ``lhs`` are moved apart.
        padding: "SAME", for ``strides`` times the length of ``lhs``; "VALID", for all that the kernels reach; or the
            zeros before and after the elements that were moved apart, for each spatial axis.
        rhs_dilation: the distance between the elements of ``rhs``, with zeros between them.
        dimension_numbers: as in ``conv``; by default the features are the last axis, unlike in ``conv``.
        transpose_kernel: whether to flip ``rhs`` and exchange its feature axes. This gives the transpose (the gradient)
            of ``conv`` with the same kernel.

    Example:
        >>> fnn.conv_transpose(np.ones((1, 2, 1)), np.array([1.0, 2.0]).reshape(2, 1, 1), 2).ravel()
        array([2., 1., 2., 1.])
    """
    lhs, rhs = as_value(lhs), as_value(rhs)
    rank = len(backend.shape_of(lhs))
    numbers = _TRANSPOSED.get(rank) if dimension_numbers is None else dimension_numbers
    layout = _layout("conv_transpose", numbers, rank)
    spread = per_axis("conv_transpose", "strides", strides, rank - 2)
    dilation = per_axis("conv_transpose", "rhs_dilation", rhs_dilation, rank - 2)
    spatial = layout.rhs[2:]
    windows = [r * (backend.shape_of(rhs)[i] - 1) + 1 for i, r in zip(spatial, dilation, strict=True)]
    if isinstance(padding, str):
        padding = [_transposed_border(k, s, padding) for k, s in zip(windows, spread, strict=True)]
    if transpose_kernel:
        axes = list(range(rank))
        axes[layout.rhs[0]], axes[layout.rhs[1]] = layout.rhs[1], layout.rhs[0]
        rhs = permute(flip(rhs, axis=spatial), axes=tuple(axes))
    return conv(lhs, rhs, 1, padding, spread, dilation, numbers)


def _transposed_border(window: int, stride: int, padding: str) -> tuple[int, int]:
    name = padding.upper()
    if name not in ("SAME", "VALID"):
        raise InputError(f"conv_transpose: unknown padding, got {padding!r}. Use 'SAME', 'VALID' or pairs.")
    total = window + stride - 2 + (max(window - stride, 0) if name == "VALID" else 0)
    before = window - 1 if name == "VALID" or stride > window - 1 else -(-total // 2)
    return before, total - before


def linear(x: ArrayLike, kernel: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """Compute ``x @ kernel + bias`` as one operation if possible: one record, and no intermediate array.

    Args:
        x: an array of shape (..., inputs).
        kernel: a matrix of shape (inputs, outputs), as in Flax and Haiku; PyTorch's weight is its transpose.
        bias: a vector of length outputs, or an array that broadcasts to the result; None for no bias.

    Returns:
        An array of shape (..., outputs).

    Raises:
        ValueError: shapes that do not fit: NumPy's error, with a note that names the arguments.

    Example:
        >>> fnn.linear([[1.0, 2.0]], [[1.0], [10.0]], [0.5])
        array([[21.5]])
    """
    try:
        if bias is None:
            return matmul(x, kernel)
        if is_biased_product(x, kernel, bias):
            ans: Array = biased_product(x, kernel, bias)
            return ans
        return add(matmul(x, kernel), bias)
    except ValueError as error:
        fits = "linear: x has shape (..., inputs), kernel (inputs, outputs), bias (outputs,)"
        tell_shapes(error, fits, x=x, kernel=kernel, bias=bias)
        raise
