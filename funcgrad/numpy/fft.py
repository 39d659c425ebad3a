"""Discrete Fourier transforms, as ``numpy.fft`` has them.

All are linear. The derivative costs what the transform costs: the transpose of a fast Fourier transform
is one more. ``norm`` says which direction is scaled: "backward" divides the inverse transforms by n,
"forward" the others, "ortho" all of them by the square root of n.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.backend import namespace_of
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import conj
from funcgrad.numpy.axes import one_axis
from funcgrad.numpy.creation import as_value, astype, new
from funcgrad.numpy.output import into
from funcgrad.numpy.rearranging import roll
from funcgrad.primitives import fourier as prim
from funcgrad.typing import Array, ArrayLike, Axes, Scalar, Shape

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


Norm: TypeAlias = Literal["backward", "ortho", "forward"] | None


def _norm(norm: str | None) -> str:
    """``norm`` by its full name."""
    if norm is None:
        return "backward"
    if norm not in prim.NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return norm


def _along(operation: Callable[..., Array], a: Array, n: Any, axis: int, norm: str | None) -> Array:
    """One transform along one axis; without ``n`` of as many entries as there are, or were before ``rfft``."""
    shape = backend.shape_of(a)
    along = one_axis(axis, len(shape))
    if n is None:
        n = 2 * (shape[along] - 1) if operation is prim.irfft else shape[along]
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return operation(a, n=n, axis=along, norm=_norm(norm))


def _filled(a: Array) -> bool:
    """Whether NumPy turns ``a`` into real numbers: of no entries NumPy 2.4 makes arbitrary ones."""
    return namespace_of(a) is np and np.size(a) > 0


def _plan(shape: Shape, s: Any, axes: Any, of_reals: str | None = None) -> list[tuple[int, Any]]:
    """The axes to transform, each with its number of entries.

    ``of_reals`` names a transform to or from real numbers, whose last axis is another.
    """
    lengths = None if s is None else list(s)
    if axes is None:
        if lengths is not None:
            _deprecated("s without axes transforms the last axes. Name them")
        axes = range(-len(shape if lengths is None else lengths), 0)
    along = [one_axis(axis, len(shape)) for axis in axes]
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
    warnings.warn(f"{message}: NumPy deprecates it and will refuse it.", DeprecationWarning, stacklevel=4)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
    """The discrete Fourier transform along ``axis``: ``sum(a[j] * exp(-2j * pi * j * k / n))`` at k.

    Args:
        a: an array.
        n: the number of entries, by cutting ``a`` or padding it with zeros; by default what there are.
        axis: the axis to transform.
        norm: "backward" (or None), "ortho" or "forward".
        out: an array for the result.

    Raises:
        ValueError: ``n`` is not positive; an unknown ``norm``.
        numpy.exceptions.AxisError: ``axis`` is out of range.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.fft([1.0, 2.0, 1.0, 0.0])
        array([4.+0.j, 0.-2.j, 0.+0.j, 0.+2.j])
    """
    if out is not None:
        return into(fft, out, a, n, axis, norm)
    a = as_value(a)
    return np.fft.fft(a, n, axis, norm) if namespace_of(a) is np else _along(prim.fft, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
    """The inverse of ``fft``: ``sum(a[k] * exp(2j * pi * j * k / n)) / n`` at j; arguments as there.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.ifft([4.0, -2.0j, 0.0, 2.0j]).real
        array([1., 2., 1., 0.])
    """
    if out is not None:
        return into(ifft, out, a, n, axis, norm)
    a = as_value(a)
    return np.fft.ifft(a, n, axis, norm) if namespace_of(a) is np else _along(prim.ifft, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
    """The first ``n // 2 + 1`` entries of the ``fft`` of real numbers, which tell the others; arguments as there.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.rfft([1.0, 2.0, 1.0, 0.0])
        array([4.+0.j, 0.-2.j, 0.+0.j])
    """
    if out is not None:
        return into(rfft, out, a, n, axis, norm)
    a = as_value(a)
    return np.fft.rfft(a, n, axis, norm) if namespace_of(a) is np else _along(prim.rfft, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
    """The inverse of ``rfft``: ``n`` real numbers, by default ``2 * (m - 1)`` of them from m entries.

    The imaginary part of the first entry, and of the last one when ``n`` is even, plays no part: its
    derivative is zero. An odd number of values must be asked for by ``n``. Arguments as for ``fft``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.irfft([4.0, -2.0j, 0.0])
        array([1., 2., 1., 0.])
    """
    if out is not None:
        return into(irfft, out, a, n, axis, norm)
    a = as_value(a)
    return np.fft.irfft(a, n, axis, norm) if _filled(a) else _along(prim.irfft, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
    """The ``fft`` of numbers whose second half mirrors the first, conjugated, and is not given: it is real.

    Arguments as for ``irfft``; the result has ``n`` entries, by default ``2 * (m - 1)`` of m.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.hfft([1.0, 2.0j, 3.0])
        array([ 4.,  2.,  4., -6.])
    """
    if out is not None:
        return into(hfft, out, a, n, axis, norm)
    a = as_value(a)
    if _filled(a):
        return np.fft.hfft(a, n, axis, norm)
    return _along(prim.irfft, conj(a), n, axis, prim.NORMS[_norm(norm)])


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, out: Any = None) -> Array:
    """The inverse of ``hfft``: the first ``n // 2 + 1`` entries of the ``ifft`` of real numbers; arguments as there.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.ihfft([4.0, 2.0, 4.0, -6.0])
        array([1.-0.j, 0.+2.j, 3.-0.j])
    """
    if out is not None:
        return into(ihfft, out, a, n, axis, norm)
    a = as_value(a)
    if namespace_of(a) is np:
        return np.fft.ihfft(a, n, axis, norm)
    return conj(_along(prim.rfft, a, n, axis, prim.NORMS[_norm(norm)]))


def fftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: Norm = None, out: Any = None) -> Array:
    """``fft`` along several axes, by default all; an axis named twice is transformed twice.

    Args:
        a: an array.
        s: the number of entries along each of ``axes``; -1 for what there are.
        axes: the axes, by default all, the last ones where ``s`` is given.
        norm: "backward" (or None), "ortho" or "forward".
        out: an array for the result.

    Raises:
        ValueError: ``s`` and ``axes`` of different lengths, or as ``fft``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.fftn([[1.0, 2.0], [3.0, 4.0]]).real
        array([[10., -2.],
               [-4.,  0.]])
    """
    if out is not None:
        return into(fftn, out, a, s, axes, norm)
    a = as_value(a)
    if namespace_of(a) is np:
        return np.fft.fftn(a, s, axes, norm)
    for axis, n in reversed(_plan(a.shape, s, axes)):
        a = _along(prim.fft, a, n, axis, norm)
    return a


def ifftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: Norm = None, out: Any = None) -> Array:
    """``ifft`` along several axes, the inverse of ``fftn``; arguments as there.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]).real
        array([[1., 2.],
               [3., 4.]])
    """
    if out is not None:
        return into(ifftn, out, a, s, axes, norm)
    a = as_value(a)
    if namespace_of(a) is np:
        return np.fft.ifftn(a, s, axes, norm)
    for axis, n in reversed(_plan(a.shape, s, axes)):
        a = _along(prim.ifft, a, n, axis, norm)
    return a


def rfftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: Norm = None, out: Any = None) -> Array:
    """``rfft`` along the last of several axes, then ``fft`` along the others; arguments as for ``fftn``.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.rfftn([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).real
        array([[21., -3.],
               [-9.,  0.]])
    """
    if out is not None:
        return into(rfftn, out, a, s, axes, norm)
    a = as_value(a)
    if namespace_of(a) is np:
        return np.fft.rfftn(a, s, axes, norm)
    *others, (last, n) = _plan(a.shape, s, axes, "rfftn")
    a = _along(prim.rfft, a, n, last, norm)
    for axis, n in reversed(others):
        a = _along(prim.fft, a, n, axis, norm)
    return a


def irfftn(a: ArrayLike, s: Any = None, axes: Any = None, norm: Norm = None, out: Any = None) -> Array:
    """``ifft`` along all of several axes but the last, then ``irfft`` along that: the inverse of ``rfftn``.

    Arguments as for ``fftn``; the last length is by default ``2 * (m - 1)`` of m entries.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.irfftn([[10.0, -2.0], [-4.0, 0.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    if out is not None:
        return into(irfftn, out, a, s, axes, norm)
    a = as_value(a)
    if _filled(a):
        return np.fft.irfftn(a, s, axes, norm)
    *others, (last, n) = _plan(a.shape, s, axes, "irfftn")
    for axis, m in others:
        a = _along(prim.ifft, a, m, axis, norm)
    return _along(prim.irfft, a, n, last, norm)


def fft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Any = None) -> Array:
    """``fftn``, by default along the last two axes; arguments as there.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.fft2([[1.0, 2.0], [3.0, 4.0]]).real
        array([[10., -2.],
               [-4.,  0.]])
    """
    return fftn(a, s, axes, norm, out)


def ifft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Any = None) -> Array:
    """``ifftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]).real
        array([[1., 2.],
               [3., 4.]])
    """
    return ifftn(a, s, axes, norm, out)


def rfft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Any = None) -> Array:
    """``rfftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.rfft2([[1.0, 2.0], [3.0, 4.0]]).real
        array([[10., -2.],
               [-4.,  0.]])
    """
    return rfftn(a, s, axes, norm, out)


def irfft2(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: Norm = None, out: Any = None) -> Array:
    """``irfftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    return irfftn(a, s, axes, norm, out)


def _count(n: Any) -> int:
    if not isinstance(n, (int, np.integer)):
        raise ValueError("n should be an integer")
    return int(n)


def fftfreq(n: int, d: Scalar = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """The frequencies that ``fft`` of ``n`` samples has, in its order; the derivative flows to ``d``.

    Args:
        n: the number of samples.
        d: the distance between samples.
        device: as NumPy.
        dtype: a real floating dtype, by default float64.

    Raises:
        ValueError: ``n`` is not an integer.
        TypeError: ``dtype`` is not one of real floating numbers.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.fftfreq(4, 0.5)
        array([ 0. ,  0.5, -1. , -0.5])
    """
    if namespace_of(d) is np:
        return _in_dtype("fftfreq", new(np.fft.fftfreq(n, d, device)), dtype)
    n = _count(n)
    return _in_dtype("fftfreq", ((np.arange(n) + n // 2) % n - n // 2) * (1.0 / (n * d)), dtype)


def rfftfreq(n: int, d: Scalar = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """The frequencies that ``rfft`` of ``n`` samples has; arguments as for ``fftfreq``.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.rfftfreq(4, 0.5)
        array([0. , 0.5, 1. ])
    """
    if namespace_of(d) is np:
        return _in_dtype("rfftfreq", new(np.fft.rfftfreq(n, d, device)), dtype)
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
    """``x`` rolled by half its length, so that frequency 0 stands in the middle.

    Args:
        x: an array.
        axes: one axis or several, by default all.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.fftshift([0, 1, -2, -1])
        array([-2, -1,  0,  1])
    """
    return _shifted(x, axes, 1)


def ifftshift(x: ArrayLike, axes: Axes = None) -> Array:
    """The inverse of ``fftshift``, from which it differs when a length is odd; arguments as there.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> fnp.fft.ifftshift([-1, 0, 1])
        array([ 0,  1, -1])
    """
    return _shifted(x, axes, -1)
