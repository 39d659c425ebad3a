"""Sums, means and extrema of the regions of an array that bear labels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import describe, twin
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to, reshape
from funcgrad.nn.segments import segment_max, segment_min, segment_sum
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain
from funcgrad.primitives.indexing import getitem
from funcgrad.scipy.ndimage.arguments import scipys
from funcgrad.typing import Array, ArrayLike

__all__ = ["center_of_mass", "maximum", "mean", "minimum", "standard_deviation", "sum_labels", "variance"]


class _Regions:
    """The regions that are asked for; which elements belong to them.

    Attributes:
        values: the elements, in one row; of a single region its own.
        numbers: the region of each element, None of a single region.
        counts: how many elements each has.
    """

    def __init__(self, call: str, input: ArrayLike, labels: Any, index: Any) -> None:
        x = as_value(input)
        labels, index = twin(labels), twin(index)  # made inside a transform they may be arrays to write to
        if not is_plain(labels, index):
            raise InputError(f"ndimage.{call}: labels and index say which elements to take, and must be plain arrays.")
        if not backend.is_inexact(x):
            x = fnp.astype(x, float)
        self.single = labels is None or index is None or not np.ndim(index)
        self.numbers: np.ndarray | None = None
        if labels is not None:
            labels = np.asarray(labels)
            shape = np.broadcast_shapes(backend.shape_of(x), labels.shape)
            x, labels = broadcast_to(x, to=shape), np.broadcast_to(labels, shape)
        flat = reshape(x, to=(prod(backend.shape_of(x)),))
        if self.single:
            if labels is not None:
                (places,) = np.nonzero((labels > 0 if index is None else labels == index).ravel())
                flat = getitem(flat, places)
            self.values, self.counts = flat, np.float64(backend.shape_of(flat)[0])
            return
        if backend.dtype_of(flat).kind == "c":
            raise InputError(f"ndimage.{call}: by labels only real numbers are summed, got {describe(x)}.")
        self.wanted, self.back = np.unique(np.asarray(index), return_inverse=True)
        places = np.searchsorted(self.wanted, labels.ravel())
        places[places == len(self.wanted)] = 0
        self.numbers = np.where(self.wanted[places] == labels.ravel(), places, len(self.wanted))
        self.values = flat
        self.counts = self.spread(np.bincount(self.numbers, minlength=len(self.wanted) + 1)[:-1].astype(float))

    def spread(self, found: Array) -> Array:
        """What was found for each region, in the shape of ``index``."""
        return getitem(found, self.back)

    def sums(self, values: Array) -> Array:
        """The sum over each region."""
        if self.numbers is None:
            return fnp.sum(values)
        return self.spread(segment_sum(fnp.astype(values, float), self.numbers, len(self.wanted)))

    def centred(self, means: Array) -> Array:
        """The elements less the means of their regions; those of no region are of no matter."""
        if self.numbers is None:
            return self.values - means
        first = np.zeros(len(self.wanted) + 1, int)  # one of the entries of each region in ``index``
        first[self.back.ravel()] = np.arange(self.back.size)
        return self.values - getitem(reshape(means, to=(self.back.size,)), first[self.numbers])


def sum_labels(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """The sums over the regions of an array.

    Args:
        input: an array.
        labels: the label of each element, or what broadcasts to that; None takes all as one region.
        index: the labels to take: one, or an array of them; None takes all that are positive as one region.

    Returns:
        A number, or an array of the shape of ``index``.

    Raises:
        TypeError: traced labels.

    Example:
        >>> from funcgrad import grad
        >>> sum_labels([1.0, 2.0, 4.0], [1, 2, 1], [1, 2])
        array([5., 2.])
        >>> grad(lambda x: sum_labels(x, [1, 2, 1], 1))(np.ones(3))
        array([1., 0., 1.])
    """
    if is_plain(input, labels, index):
        return scipys("sum_labels")(input, labels, index)
    regions = _Regions("sum_labels", input, labels, index)
    return regions.sums(regions.values)


def mean(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """The means over the regions of an array; arguments as for ``sum_labels``.

    Example:
        >>> mean([1.0, 2.0, 4.0], [1, 2, 1], [1, 2])
        array([2.5, 2. ])
    """
    if is_plain(input, labels, index):
        return scipys("mean")(input, labels, index)
    regions = _Regions("mean", input, labels, index)
    return regions.sums(regions.values) / regions.counts


def variance(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """The variances of the regions of an array; arguments as for ``sum_labels``.

    Example:
        >>> variance([1.0, 2.0, 4.0], [0, 1, 0], [0, 1])
        array([2.25, 0.  ])
    """
    if is_plain(input, labels, index):
        return scipys("variance")(input, labels, index)
    return _variance("variance", input, labels, index)


def _variance(call: str, input: ArrayLike, labels: Any, index: Any) -> Array:
    regions = _Regions(call, input, labels, index)
    apart = regions.centred(regions.sums(regions.values) / regions.counts)
    squares = apart * fnp.conj(apart) if backend.dtype_of(apart).kind == "c" else apart * apart
    return regions.sums(squares) / regions.counts


def standard_deviation(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """The standard deviations of the regions of an array, whose derivative is NaN where all elements are equal.

    Arguments as for ``sum_labels``.

    Example:
        >>> standard_deviation([1.0, 2.0, 4.0], [0, 1, 0], [0, 1])
        array([1.5, 0. ])
    """
    if is_plain(input, labels, index):
        return scipys("standard_deviation")(input, labels, index)
    return fnp.sqrt(_variance("standard_deviation", input, labels, index))


def center_of_mass(input: ArrayLike, labels: Any = None, index: Any = None) -> Any:
    """The centres of mass of the regions of an array; arguments as for ``sum_labels``.

    Returns:
        A tuple of coordinates, or a list with one for each label in ``index``.

    Example:
        >>> center_of_mass([[1.0, 1.0], [0.0, 2.0]])
        (np.float64(0.5), np.float64(0.75))
    """
    if is_plain(input, labels, index):
        return scipys("center_of_mass")(input, labels, index)
    x = as_value(input)
    shape = backend.shape_of(x)
    total = sum_labels(x, labels, index)
    found = [
        sum_labels(x * grid, labels, index) / total for grid in np.ogrid[tuple([slice(0.0, float(n)) for n in shape])]
    ]
    if not backend.shape_of(found[0]):
        return tuple(found)
    return [tuple([f[i] for f in found]) for i in range(backend.shape_of(found[0])[0])]


def minimum(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """The least elements of the regions of an array, 0 of none; equal ones share the derivative.

    Arguments as for ``sum_labels``.

    Example:
        >>> minimum([1.0, 2.0, 4.0], [1, 2, 1], [1, 2])
        array([1., 2.])
    """
    return _extremes("minimum", input, labels, index)


def maximum(input: ArrayLike, labels: Any = None, index: Any = None) -> Array:
    """The largest elements of the regions of an array, 0 of none; equal ones share the derivative.

    Arguments as for ``sum_labels``.

    Example:
        >>> maximum([1.0, 2.0, 4.0], [1, 2, 1], [1, 2])
        array([4., 2.])
    """
    return _extremes("maximum", input, labels, index)


def _extremes(call: str, input: ArrayLike, labels: Any, index: Any) -> Array:
    if is_plain(input, labels, index):
        return scipys(call)(input, labels, index)
    regions = _Regions(call, input, labels, index)
    if regions.numbers is None:
        return fnp.max(regions.values) if call == "maximum" else fnp.min(regions.values)
    of = segment_max if call == "maximum" else segment_min
    found = regions.spread(of(regions.values, regions.numbers, len(regions.wanted)))
    return fnp.where(regions.counts == 0, 0, found)
