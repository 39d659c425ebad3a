"""Extrema of labelled regions of an array. Sums, means and centres of mass are SciPy's code."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe, shallow_copy
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to, reshape
from funcgrad.nn.segments import segment_max, segment_min
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["maximum", "minimum"]


@mirrors
def minimum(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """Return the least elements of the regions of an array, 0 for an empty region; ties share the derivative.

    Args:
        input: an array.
        labels: the label of each element, or an array that broadcasts to it; None makes all elements one region.
        index: the labels to use: one, or an array; None makes all elements with positive labels one region.

    Returns:
        A number, or an array of the shape of ``index``.

    Raises:
        TypeError: labels are traced, or numbers are complex with several labels.

    Example:
        >>> from funcgrad.scipy.ndimage import minimum
        >>> minimum([1.0, 2.0, 4.0], [1, 2, 1], [1, 2])
        array([1., 2.])
        >>> grad(lambda x: minimum(x, [1, 2, 1], 1))([1.0, 2.0, 1.0])
        [np.float64(0.5), np.float64(0.0), np.float64(0.5)]
    """
    return _extremes("minimum", input, labels, index, fnp.min, segment_min)


@mirrors
def maximum(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """Return the largest elements of the regions of an array, 0 for an empty region; ties share the derivative.

    Arguments as for ``minimum``.

    Example:
        >>> from funcgrad.scipy.ndimage import maximum
        >>> maximum([1.0, 2.0, 4.0], [1, 2, 1], [1, 2])
        array([4., 2.])
    """
    return _extremes("maximum", input, labels, index, fnp.max, segment_max)


def _extremes(
    call: str, input: ArrayLike, labels: Any, index: Any, of_one: Callable[..., Array], of_each: Callable[..., Array]
) -> Array:
    x = as_value(input)
    # a writable array that a transformed function made becomes plain
    labels, index = shallow_copy(labels), shallow_copy(index)
    if not is_plain(labels, index):
        raise InputError(f"ndimage.{call}: labels and index say which elements to take, and must be plain arrays.")
    if labels is None:
        return of_one(x)
    labels = np.asarray(labels)
    shape = np.broadcast_shapes(backend.shape_of(x), labels.shape)
    flat, labels = reshape(broadcast_to(x, to=shape), to=(prod(shape),)), np.broadcast_to(labels, shape).ravel()
    if index is None or not np.ndim(index):
        return of_one(getitem(flat, labels > 0 if index is None else labels == index))
    if backend.dtype_of(flat).kind == "c":
        raise InputError(f"ndimage.{call}: by labels only real numbers have an order, got {describe(x)}.")
    wanted, back = np.unique(np.asarray(index), return_inverse=True)
    places = np.searchsorted(wanted, labels)
    places[places == len(wanted)] = 0
    belongs = wanted[places] == labels
    found = of_each(flat, np.where(belongs, places, len(wanted)), len(wanted))
    return fnp.where(np.isin(wanted, labels)[back], getitem(found, back), np.zeros((), backend.dtype_of(found)))
