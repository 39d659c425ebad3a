"""Losses of elements or of examples; names and arguments as in ``optax.losses``.

The losses do not overflow, whatever the logits are. An infinite term with weight 0 counts as 0, with the derivative 0:
a logit of -inf excludes its class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import astype, reshape
from funcgrad.nn.narrow import floating, restored, tell_shapes, widened
from funcgrad.nn.operations import activations as prim
from funcgrad.nn.operations.cross_entropy import class_cross_entropy, cross_entropy, weighted
from funcgrad.numpy.axes import normalize_axes
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import with_signature_of
from funcgrad.numpy.reducing import as_scalar, count_of_elements, merge_axes
from funcgrad.numpy.reductions import sum as summed
from funcgrad.numpy.special import log_softmax
from funcgrad.primitives.arithmetic import absolute, maximum, minimum, square
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.elementwise import exp, sqrt
from funcgrad.primitives.indexing import take_along_axis
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = [
    "cosine_distance", "cosine_similarity", "hinge_loss", "huber_loss", "kl_divergence",
    "kl_divergence_with_log_targets", "l2_loss", "log_cosh", "perceptron_loss", "sigmoid_binary_cross_entropy",
    "smooth_labels", "softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels", "squared_error",
]  # fmt: skip


def _in_dtype(ans: Array, *arrays: Array) -> Array:
    """Convert ``ans`` to the dtype of ``arrays`` if they all have one dtype that is narrower than float32."""
    dtypes = {backend.dtype_of(a) for a in arrays}
    return as_scalar(restored(ans, dtypes.pop()) if len(dtypes) == 1 else ans)


def _errors(predictions: ArrayLike, targets: ArrayLike | None) -> tuple[Array, Array]:
    """Return the differences, at least in float32, and the predictions in their own dtype."""
    predictions = floating(predictions)
    if targets is None:
        return widened(predictions), predictions
    return widened(predictions) - widened(as_value(targets)), predictions


def squared_error(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """Compute ``(predictions - targets)**2``, element by element; ``targets`` are 0 by default.

    Example:
        >>> fnn.squared_error([1.0, 4.0], [1.0, 2.0])
        array([0., 4.])
    """
    errors, like = _errors(predictions, targets)
    return _in_dtype(square(errors), like)


def l2_loss(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """Compute half of the ``squared_error`` of ``predictions`` and ``targets``; the derivative is the error.

    Example:
        >>> fnn.l2_loss([1.0, 4.0], [1.0, 2.0])
        array([0., 2.])
    """
    errors, like = _errors(predictions, targets)
    return _in_dtype(0.5 * square(errors), like)


def huber_loss(predictions: ArrayLike, targets: ArrayLike | None = None, *, delta: ArrayLike = 1.0) -> Array:
    """Compute ``error**2 / 2`` up to an error of ``delta``, and the tangent line of this function beyond.

    The error is ``predictions - targets``; ``targets`` are 0 by default.

    Example:
        >>> fnn.huber_loss([1.0, 4.0], [0.0, 0.0])
        array([0.5, 3.5])
    """
    errors, like = _errors(predictions, targets)
    size = absolute(errors)
    quadratic = minimum(size, as_value(delta))
    return _in_dtype(0.5 * square(quadratic) + delta * (size - quadratic), like)


def log_cosh(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """Compute ``log(cosh(predictions - targets))``: half of the square of small errors, large errors less log 2.

    Example:
        >>> fnn.log_cosh([1e-8, 1000.0]).round(6)
        array([  0.      , 999.306853])
    """
    errors, like = _errors(predictions, targets)
    return _in_dtype(prim.log_cosh(errors), like)


def hinge_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    """Compute ``maximum(0, 1 - predictor_outputs * targets)`` for targets -1 and 1; at the kink, half of the slope.

    Example:
        >>> fnn.hinge_loss([0.5, 2.0], [1, 1])
        array([0.5, 0. ])
    """
    outputs = floating(predictor_outputs)
    return _in_dtype(maximum(0.0, 1 - widened(outputs) * widened(as_value(targets))), outputs)


def perceptron_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    """Compute ``maximum(0, -predictor_outputs * targets)`` for targets -1 and 1; at the kink, half of the slope.

    Example:
        >>> fnn.perceptron_loss([0.5, -2.0], [1, 1])
        array([0., 2.])
    """
    outputs = floating(predictor_outputs)
    return _in_dtype(maximum(0.0, -widened(outputs) * widened(as_value(targets))), outputs)


def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    """Compute ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))`` for each element.

    Args:
        logits: the logarithms of the odds.
        labels: 0 and 1, or probabilities, in a shape that broadcasts with the shape of ``logits``.

    Example:
        >>> fnn.sigmoid_binary_cross_entropy([1e4, 1e4], [1, 0])
        array([    0., 10000.])
    """
    logits, labels = floating(logits), as_value(labels)
    return _in_dtype(prim.binary_cross_entropy(widened(logits), widened(labels)), logits)


def _mask(where: ArrayLike | None, rank: int, axes: tuple[int, ...]) -> Array | None:
    """Return a mask that broadcasts with the elements, from a mask of elements or of examples, without ``axes``."""
    if where is None:
        return None
    where = as_value(where)
    shape = backend.shape_of(where)
    if len(shape) == rank:
        return where
    lengths = iter(shape)
    return reshape(where, to=tuple([1 if i in axes else next(lengths) for i in range(rank)]))


def _are_rows(logits: Array) -> bool:
    """Whether the logits are real and there is at least one of them."""
    return backend.dtype_of(logits).kind != "c" and 0 not in backend.shape_of(logits)


def softmax_cross_entropy(
    logits: ArrayLike, labels: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None
) -> Array:
    """Compute ``-sum(labels * log_softmax(logits))`` along ``axis``.

    Args:
        logits: logarithms of weights of the classes. -inf excludes a class.
        labels: probabilities of the classes, such as one-hot vectors.
        axis: the axis of the classes; one, several, or None for all.
        where: a mask of the classes, or of the examples, that count.

    Example:
        >>> fnn.softmax_cross_entropy([1e4, 0.0, -float("inf")], [0.0, 1.0, 0.0])
        np.float64(10000.0)
    """
    logits, labels = floating(logits), as_value(labels)
    shape = backend.shape_of(logits)
    axes = normalize_axes(axis, len(shape))
    if where is None and _are_rows(logits) and backend.shape_of(labels) == shape:
        x, weights = widened(logits), widened(labels)
        dtype = np.result_type(backend.dtype_of(x), backend.dtype_of(weights))  # a sum of booleans is an integer
        if backend.dtype_of(weights) != dtype:
            weights = astype(weights, to=dtype)
        return _in_dtype(cross_entropy(x, weights, axis=axes), logits)
    mask = _mask(where, len(shape), axes)
    scores = log_softmax(widened(logits), axis, where=mask)
    try:
        terms = weighted(widened(labels), scores)
    except ValueError as error:
        remedy = " For numbers of classes use softmax_cross_entropy_with_integer_labels."
        fits = "softmax_cross_entropy: labels are probabilities in the shape of logits"
        tell_shapes(error, fits, remedy, logits=logits, labels=labels)
        raise
    return _in_dtype(-summed(terms, axis, where=True if mask is None else mask), logits)


def softmax_cross_entropy_with_integer_labels(
    logits: ArrayLike, labels: ArrayLike, axis: int | Sequence[int] = -1, where: ArrayLike | None = None
) -> Array:
    """Compute ``softmax_cross_entropy`` from the indices of the right classes.

    Args:
        logits: logarithms of weights of the classes. -inf excludes a class.
        labels: the index of the right class of each example.
        axis: the axis of the classes; for several axes, the index of a class is its index in the flattened axes.
        where: a mask of the classes, or of the examples, that count; the loss of an example without classes is 0.

    Raises:
        InputError: the labels are no integers (a ``TypeError``).
        ShapeError: there is not one label for each example (a ``ValueError``); an axis of length 1 stands for any.
        IndexError: there is no class with such an index.

    Example:
        >>> fnn.softmax_cross_entropy_with_integer_labels([[0.0, 0.0], [0.0, 1e4]], [1, 0]).round(6)
        array([6.93147e-01, 1.00000e+04])
    """
    logits, labels = floating(logits), as_value(labels)
    if backend.dtype_of(labels).kind not in "iu":
        raise InputError(
            f"softmax_cross_entropy_with_integer_labels: labels must be integers, got {describe(labels)}. Write "
            "labels.astype(int); for probabilities use softmax_cross_entropy."
        )
    rank = len(backend.shape_of(logits))
    axes = normalize_axes(axis, rank)
    shape = backend.shape_of(labels)
    if where is None and _are_rows(logits):
        rows = merge_axes(widened(logits), axes)
        if backend.shape_of(rows)[:-1] == shape:
            return _in_dtype(class_cross_entropy(rows, labels), logits)
    mask = _mask(where, rank, axes)
    scores = merge_axes(log_softmax(widened(logits), axis, where=mask), axes)
    examples = backend.shape_of(scores)[:-1]
    if len(shape) != len(examples) or any(n != m and 1 not in (n, m) for n, m in zip(shape, examples, strict=True)):
        raise ShapeError(
            f"softmax_cross_entropy_with_integer_labels: labels must have the shape {list(examples)}, one for each row "
            f"of classes, got {describe(labels)}. Reshape them, or pass another axis."
        )
    chosen = take_along_axis(scores, reshape(labels, to=(*shape, 1)), axis=len(shape))
    losses = -reshape(chosen, to=backend.shape_of(chosen)[:-1])
    if mask is not None:
        losses = choose(count_of_elements(logits, axes, mask), losses, 0.0)
    return _in_dtype(losses, logits)


def kl_divergence(
    log_predictions: ArrayLike, targets: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None
) -> Array:
    """Compute ``sum(targets * (log(targets) - log_predictions))`` along ``axis``; the term of a zero target is 0.

    The derivative in a target of 0 is -inf, as for ``x * log(x)``. ``where`` chooses the elements that count.

    Example:
        >>> fnn.kl_divergence(np.log([0.5, 0.5]), [1.0, 0.0]).round(6)
        np.float64(0.693147)
    """
    x, y = floating(log_predictions), floating(targets)
    terms = prim.x_log_x(widened(y)) - weighted(widened(y), widened(x))
    return _in_dtype(summed(terms, axis, where=True if where is None else where), x, y)


def kl_divergence_with_log_targets(
    log_predictions: ArrayLike, log_targets: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None
) -> Array:
    """Compute ``kl_divergence(log_predictions, exp(log_targets))`` from the logarithms of the targets.

    The sum is along ``axis``, over the elements that ``where`` chooses.

    Example:
        >>> fnn.kl_divergence_with_log_targets(np.log([0.5, 0.5]), [0.0, -np.inf]).round(6)
        np.float64(0.693147)
    """
    x, y = floating(log_predictions), floating(log_targets)
    weights, there = exp(widened(y)), widened(y)
    terms = weighted(weights, there) - weighted(weights, widened(x))
    return _in_dtype(summed(terms, axis, where=True if where is None else where), x, y)


def cosine_similarity(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: ArrayLike = 0.0,
    axis: Axes = -1,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the cosine of the angle between the vectors ``predictions`` and ``targets`` along ``axis``.

    The cosine is NaN for a vector of zeros, unless ``epsilon``, a lower bound of the squared lengths, is positive.
    ``where`` chooses the elements that count.

    Example:
        >>> fnn.cosine_similarity([1.0, 0.0], [3.0, 4.0])
        np.float64(0.6)
    """
    x, y = floating(predictions), floating(targets)
    mask = True if where is None else where
    units = []
    for vector in (widened(x), widened(y)):
        squares = summed(square(vector), axis, keepdims=True, where=mask)
        units.append(vector / sqrt(maximum(squares, as_value(epsilon))))
    return _in_dtype(summed(units[0] * units[1], axis, where=mask), x, y)


@with_signature_of(cosine_similarity)
def cosine_distance(*args: Any, **kwargs: Any) -> Array:
    """Compute ``1 - cosine_similarity``, with the same arguments.

    Example:
        >>> fnn.cosine_distance([1.0, 0.0], [3.0, 4.0])
        np.float64(0.4)
    """
    return 1.0 - cosine_similarity(*args, **kwargs)


def smooth_labels(labels: ArrayLike, alpha: ArrayLike, *, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Compute ``(1 - alpha) * labels + alpha / n``, where n is the number of classes.

    The classes are along ``axis``; ``where`` chooses the classes that count.

    Raises:
        ShapeError: there is no class (a ``ValueError``).

    Example:
        >>> fnn.smooth_labels([1.0, 0.0], 0.5)
        array([0.75, 0.25])
    """
    labels = floating(labels)
    alpha = as_value(alpha)
    shape = backend.shape_of(labels)
    if where is None:
        count = math.prod([shape[i] for i in normalize_axes(axis, len(shape))])
        if not count:
            raise ShapeError(f"smooth_labels: there must be a class, got labels of shape {shape}. Give their axis.")
        return (1.0 - alpha) * labels + alpha / count
    return (1.0 - alpha) * labels + alpha / count_of_elements(labels, axis, where, keepdims=True)
