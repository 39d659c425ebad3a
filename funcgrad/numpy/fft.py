"""Discrete Fourier transforms, with the interface of ``numpy.fft``.

All transforms are linear. A derivative costs as much as the transform, because the transpose of a fast Fourier
transform is another one. ``norm`` chooses which direction is scaled: "backward" divides the inverse transforms
by n, "forward" divides the forward transforms by n, "ortho" divides both by the square root of n.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import conj
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_buffer, as_value, astype
from funcgrad.numpy.function_tables import docstring, set_identity
from funcgrad.numpy.plain_values.peeking import is_numpy_only, warn
from funcgrad.numpy.rearranging import roll
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import fourier as prim
from funcgrad.typing import Array, ArrayLike, Axes, Scalar, Shape

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


Norm: TypeAlias = Literal["backward", "ortho", "forward"] | None


def _norm(norm: str | None) -> str:
    """Check ``norm``, and return "backward" for None."""
    if norm is None:
        return "backward"
    if norm not in prim.NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return norm


def _along(operation: Callable[..., Array], a: Array, n: Any, axis: int, norm: str | None) -> Array:
    """Transform along one axis; ``n`` defaults to the length of the axis, or for ``irfft`` to that before ``rfft``."""
    shape = backend.shape_of(a)
    along = normalize_axis(axis, len(shape))
    if n is None:
        n = 2 * (shape[along] - 1) if operation is prim.irfft else shape[along]
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return operation(a, n=n, axis=along, norm=_norm(norm))


def _axes_and_lengths(shape: Shape, s: Any, axes: Any, of_reals: str | None = None) -> list[tuple[int, Any]]:
    """Return the axes to transform, each with its number of entries.

    ``of_reals`` names a transform to or from real numbers: it needs an axis, and "irfftn" has its own default length.
    """
    lengths = None if s is None else list(s)
    if axes is None:
        if lengths is not None:
            _deprecated("s without axes transforms the last axes. Name them")
        axes = range(-len(shape if lengths is None else lengths), 0)
    along = [normalize_axis(axis, len(shape)) for axis in axes]
    if of_reals is not None and not along:
        raise ShapeError(f"{of_reals}: a transform of real numbers needs an axis, got none. Name one.")
    if lengths is None:
        lengths = [shape[axis] for axis in along]
        if of_reals == "irfftn":
            lengths[-1] = 2 * (lengths[-1] - 1)
    if len(lengths) != len(along):
        raise ValueError("Shape and axes have different lengths.")
    if None in lengths:
        _deprecated("None in s stands for the length of the axis. Give the length, or -1")
    return [(axis, shape[axis] if n == -1 else n) for axis, n in zip(along, lengths, strict=True)]


def _deprecated(message: str) -> None:
    warn(f"{message}: NumPy deprecates it and will refuse it.", DeprecationWarning)


class TransformAlongAxis(Protocol):
    """Type of a transform along one axis."""

    def __call__(self, a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
        """Compute the transform."""


class TransformAlongAxes(Protocol):
    """Type of a transform along several axes."""

    def __call__(self, a: ArrayLike, s: Any = None, axes: Any = None, norm: Norm = None, out: Any = None) -> Array:
        """Compute the transform."""


def _compute_transform(name: str, traced: Callable[..., Array], a: ArrayLike, *options: Any) -> Array:
    """Compute the transform, of NumPy's arrays by NumPy and of other arrays by ``traced``."""
    a = as_value(a)
    # NumPy 2.4 returns arbitrary real numbers for an empty array
    numpys = is_numpy_only(a) and not (name in _REAL_RESULTS and np.size(a) == 0)
    return getattr(np.fft, name)(a, *options) if numpys else traced(a, *options)


_REAL_RESULTS = ("irfft", "hfft", "irfftn", "irfft2")


def _along_one(name: str, traced: Callable[..., Array], text: str, example: str, shows: str) -> TransformAlongAxis:
    def call(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
        if out is not None:
            return compute_into(call, out, a, n, axis, norm)
        return _compute_transform(name, traced, a, n, axis, norm)

    return set_identity(call, __name__, name, docstring(text, example, shows))


def _along_several(name: str, traced: Callable[..., Array], text: str, example: str, shows: str) -> TransformAlongAxes:
    by_default = (-2, -1) if name.endswith("2") else None

    def call(a: ArrayLike, s: Any = None, axes: Any = by_default, norm: Norm = None, out: Any = None) -> Array:
        if out is not None:
            return compute_into(call, out, a, s, axes, norm)
        return _compute_transform(name, traced, a, s, axes, norm)

    return set_identity(call, __name__, name, docstring(text, example, shows))


def _over_axes(operation: Callable[..., Array]) -> Callable[..., Array]:
    def traced(a: Array, s: Any, axes: Any, norm: Norm) -> Array:
        for axis, n in reversed(_axes_and_lengths(a.shape, s, axes)):
            a = _along(operation, a, n, axis, norm)
        return a

    return traced


def _rfftn(a: Array, s: Any, axes: Any, norm: Norm) -> Array:
    *others, (last, n) = _axes_and_lengths(a.shape, s, axes, "rfftn")
    a = _along(prim.rfft, a, n, last, norm)
    for axis, n in reversed(others):
        a = _along(prim.fft, a, n, axis, norm)
    return a


def _irfftn(a: Array, s: Any, axes: Any, norm: Norm) -> Array:
    *others, (last, n) = _axes_and_lengths(a.shape, s, axes, "irfftn")
    for axis, m in others:
        a = _along(prim.ifft, a, m, axis, norm)
    return _along(prim.irfft, a, n, last, norm)


# fmt: off
fft = _along_one("fft", partial(_along, prim.fft),
    """The discrete Fourier transform along ``axis``. Its entry k is ``sum(a[j] * exp(-2j * pi * j * k / n))``.

    Args:
        a: an array.
        n: the number of entries, to which ``a`` is cut or padded with zeros; the default keeps the length.
        axis: the axis to transform.
        norm: "backward" (or None), "ortho" or "forward".
        out: an array for the result.

    Raises:
        ValueError: ``n`` is not positive, or ``norm`` is unknown.
        IndexError: ``axis`` is out of range.""", "fnp.fft.fft([1.0, 2.0, 1.0, 0.0])",
    "array([4.+0.j, 0.-2.j, 0.+0.j, 0.+2.j])")
ifft = _along_one("ifft", partial(_along, prim.ifft),
    "The inverse of ``fft``. Its entry j is ``sum(a[k] * exp(2j * pi * j * k / n)) / n``; arguments as for ``fft``.",
    "fnp.fft.ifft([4.0, -2.0j, 0.0, 2.0j]).real", "array([1., 2., 1., 0.])")
rfft = _along_one("rfft", partial(_along, prim.rfft),
    """The first ``n // 2 + 1`` entries of the ``fft`` of real numbers; arguments as for ``fft``.

    Raises:
        TypeError: ``a`` is complex.""", "fnp.fft.rfft([1.0, 2.0, 1.0, 0.0])", "array([4.+0.j, 0.-2.j, 0.+0.j])")
irfft = _along_one("irfft", partial(_along, prim.irfft),
    """The inverse of ``rfft``: ``n`` real numbers, by default ``2 * (m - 1)`` for m entries.

    The imaginary part of the first entry is ignored, and for even ``n`` that of the last entry: their derivatives
    are zero. Pass ``n`` to get an odd number of values. Arguments as for ``fft``.""",
    "fnp.fft.irfft([4.0, -2.0j, 0.0])", "array([1., 2., 1., 0.])")
hfft = _along_one("hfft", lambda a, n, axis, norm: _along(prim.irfft, conj(a), n, axis, prim.NORMS[_norm(norm)]),
    """The ``fft``, which is real, of a sequence with Hermitian symmetry, of which ``a`` is the first half.

    Arguments as for ``irfft``; the result has ``n`` entries, by default ``2 * (m - 1)`` for m entries.""",
    "fnp.fft.hfft([1.0, 2.0j, 3.0])", "array([ 4.,  2.,  4., -6.])")
ihfft = _along_one("ihfft", lambda a, n, axis, norm: conj(_along(prim.rfft, a, n, axis, prim.NORMS[_norm(norm)])),
    "The inverse of ``hfft``: the first ``n // 2 + 1`` entries of the ``ifft``; arguments as for ``rfft``.",
    "fnp.fft.ihfft([4.0, 2.0, 4.0, -6.0])", "array([1.-0.j, 0.+2.j, 3.-0.j])")
fftn = _along_several("fftn", _over_axes(prim.fft),
    """The ``fft`` along several axes, by default all; an axis that is named twice is transformed twice.

    Args:
        a: an array.
        s: the number of entries along each of ``axes``; -1 keeps the length.
        axes: the axes; the default is all, or with ``s`` the last ones.
        norm: "backward" (or None), "ortho" or "forward".
        out: an array for the result.

    Raises:
        ValueError: ``s`` and ``axes`` have different lengths, or as for ``fft``.""",
    "fnp.fft.fftn([[1.0, 2.0], [3.0, 4.0]]).real", "array([[10., -2.],\n       [-4.,  0.]])")
fft2 = _along_several("fft2", _over_axes(prim.fft),
    "The ``fftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fnp.fft.fft2([[1.0, 2.0], [3.0, 4.0]]).real", "array([[10., -2.],\n       [-4.,  0.]])")
ifftn = _along_several("ifftn", _over_axes(prim.ifft),
    "The inverse of ``fftn``: the ``ifft`` along several axes; arguments as for ``fftn``.",
    "fnp.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]).real", "array([[1., 2.],\n       [3., 4.]])")
ifft2 = _along_several("ifft2", _over_axes(prim.ifft),
    "The ``ifftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fnp.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]).real", "array([[1., 2.],\n       [3., 4.]])")
rfftn = _along_several("rfftn", _rfftn,
    """The ``rfft`` along the last of several axes, then the ``fft`` along the others; arguments as for ``fftn``.

    Raises:
        TypeError: ``a`` is complex.""", "fnp.fft.rfftn([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).real",
    "array([[21., -3.],\n       [-9.,  0.]])")
rfft2 = _along_several("rfft2", _rfftn, "The ``rfftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fnp.fft.rfft2([[1.0, 2.0], [3.0, 4.0]]).real", "array([[10., -2.],\n       [-4.,  0.]])")
irfftn = _along_several("irfftn", _irfftn,
    """The inverse of ``rfftn``: the ``ifft`` along all but the last of several axes, then the ``irfft`` along the last.

    Arguments as for ``fftn``; the last length is by default ``2 * (m - 1)`` for m entries.""",
    "fnp.fft.irfftn([[10.0, -2.0], [-4.0, 0.0]])", "array([[1., 2.],\n       [3., 4.]])")
irfft2 = _along_several("irfft2", _irfftn,
    "The ``irfftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fnp.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])", "array([[1., 2.],\n       [3., 4.]])")
# fmt: on


def _count(n: Any) -> int:
    if not isinstance(n, (int, np.integer)):
        raise ValueError("n should be an integer")
    return int(n)


def fftfreq(n: int, d: Scalar = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """Return the frequencies of the entries of ``fft`` of ``n`` samples; the derivative flows to ``d``.

    Args:
        n: the number of samples.
        d: the distance between samples.
        device: as in NumPy.
        dtype: a real floating dtype, by default float64.

    Raises:
        ValueError: ``n`` is not an integer.
        TypeError: ``dtype`` is not a real floating dtype.

    Example:
        >>> fnp.fft.fftfreq(4, 0.5)
        array([ 0. ,  0.5, -1. , -0.5])
    """
    if namespace_of(d) is np:
        return _in_dtype("fftfreq", as_buffer(np.fft.fftfreq(n, d, device)), dtype)
    n = _count(n)
    return _in_dtype("fftfreq", ((np.arange(n) + n // 2) % n - n // 2) * (1.0 / (n * d)), dtype)


def rfftfreq(n: int, d: Scalar = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """Return the frequencies of the entries of ``rfft`` of ``n`` samples; arguments as for ``fftfreq``.

    Example:
        >>> fnp.fft.rfftfreq(4, 0.5)
        array([0. , 0.5, 1. ])
    """
    if namespace_of(d) is np:
        return _in_dtype("rfftfreq", as_buffer(np.fft.rfftfreq(n, d, device)), dtype)
    n = _count(n)
    return _in_dtype("rfftfreq", np.arange(n // 2 + 1) * (1.0 / (n * d)), dtype)


def _in_dtype(name: str, frequencies: Array, dtype: Any) -> Array:
    if dtype is None:
        return frequencies
    if np.dtype(dtype).kind != "f":
        raise InputError(f"{name}: frequencies are real numbers, got dtype={dtype!r}. Give a real floating dtype.")
    return astype(frequencies, dtype)


def _shifted(x: ArrayLike, axes: Axes, sign: int) -> Array:
    x = as_value(x)
    shape = backend.shape_of(x)
    if axes is None:
        axes = tuple(range(len(shape)))
    along = [axes] if isinstance(axes, (int, np.integer)) else axes
    return roll(x, tuple([sign * (shape[axis] // 2) for axis in along]), tuple(along))


def fftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """Roll ``x`` by half its length, so that frequency 0 is in the middle.

    Args:
        x: an array.
        axes: one axis or several, by default all.

    Example:
        >>> fnp.fft.fftshift([0, 1, -2, -1])
        array([-2, -1,  0,  1])
    """
    return _shifted(x, axes, 1)


def ifftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """Invert ``fftshift``; the two differ if a length is odd; arguments as for ``fftshift``.

    Example:
        >>> fnp.fft.ifftshift([-1, 0, 1])
        array([ 0,  1, -1])
    """
    return _shifted(x, axes, -1)
