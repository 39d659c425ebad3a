"""Discrete Fourier transforms: ``funcgrad.numpy.fft`` with SciPy's arguments; frequencies, and fast lengths.

All are linear. ``norm`` says which direction is scaled: "backward" (or None) divides the inverse transforms by the
number of entries, "forward" the forward ones, "ortho" all of them by its square root. SciPy uses ``overwrite_x`` and
``workers`` for plain arrays; other arrays are never overwritten. A ``plan`` raises, as in SciPy.

As in SciPy, and unlike NumPy, transforms along several axes take each axis only once, and accept single numbers as
lengths and axes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import conj
from funcgrad.numpy import fft as numpy_fft
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.fft import Norm, fftshift, ifftshift
from funcgrad.optional import import_scipy
from funcgrad.primitives.fourier import NORMS
from funcgrad.scipy.own_code import mirror_rows
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2", "ihfftn", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftn", "fftshift", "ifftshift", "next_fast_len", "prev_fast_len",
]  # fmt: skip


@mirror_rows
def _along_one(
    name: str,
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """Compute the transform ``name`` of ``funcgrad.numpy.fft`` with SciPy's arguments."""
    check_plan(name, plan)
    transformed: Array = getattr(numpy_fft, name)(wide(x), n, axis, norm)
    return transformed


@mirror_rows
def _along_several(
    name: str,
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """Compute the transform of ``funcgrad.numpy.fft`` that SciPy calls ``name``, with SciPy's arguments."""
    check_plan(name, plan)
    x = wide(x)
    lengths, along = lengths_and_axes(name, x, s, axes)
    if not along and set("rh") & set(name):
        raise ValueError(f"scipy.fft.{name}: a transform of real numbers needs an axis, got none. Name one.")
    of_all = name.replace("2", "n")
    transform: Callable[..., Array] = _HERMITIAN.get(of_all) or getattr(numpy_fft, of_all)
    return transform(x, lengths, along, norm)


def _opposite_norm(norm: Norm) -> Any:
    """Return ``norm`` for the transform in the other direction; an unknown norm is refused later."""
    return NORMS.get(norm or "backward", norm)


_HERMITIAN: dict[str, Callable[..., Array]] = {
    "hfftn": lambda x, s, axes, norm: numpy_fft.irfftn(conj(x), s, axes, _opposite_norm(norm)),
    "ihfftn": lambda x, s, axes, norm: conj(numpy_fft.rfftn(x, s, axes, _opposite_norm(norm))),
}

# fmt: off
fft = _along_one("fft",
    """The discrete Fourier transform along ``axis``. Its entry k is ``sum(x[j] * exp(-2j * pi * j * k / n))``.

    Args:
        x: an array.
        n: the number of entries, to which ``x`` is cut or padded with zeros; the default keeps the length.
        axis: the axis to transform.
        norm: "backward" (or None), "ortho" or "forward".
        overwrite_x: whether SciPy may use the memory of ``x``.
        workers: how many threads SciPy may use.
        plan: None.

    Raises:
        ValueError: ``n`` is not positive, or ``norm`` is unknown.
        IndexError: ``axis`` is out of range.
        NotImplementedError: ``plan`` is given.""",
    "fft.fft([1.0, 2.0, 1.0, 0.0])", "array([4.-0.j, 0.-2.j, 0.-0.j, 0.+2.j])")
ifft = _along_one("ifft",
    "The inverse of ``fft``. Its entry j is ``sum(x[k] * exp(2j * pi * j * k / n)) / n``; arguments as for ``fft``.",
    "fft.ifft([4.0, -2.0j, 0.0, 2.0j]).real", "array([1., 2., 1., 0.])")
rfft = _along_one("rfft",
    """The first ``n // 2 + 1`` entries of the ``fft`` of real numbers; arguments as for ``fft``.

    Raises:
        TypeError: ``x`` is complex.""", "fft.rfft([1.0, 2.0, 1.0, 0.0])", "array([4.+0.j, 0.-2.j, 0.+0.j])")
irfft = _along_one("irfft",
    """The inverse of ``rfft``: ``n`` real numbers, by default ``2 * (m - 1)`` for m entries.

    The imaginary part of the first entry is ignored, and for even ``n`` that of the last entry: their derivatives
    are zero. Pass ``n`` to get an odd number of values. Arguments as for ``fft``.""",
    "fft.irfft([4.0, -2.0j, 0.0])", "array([1., 2., 1., 0.])")
hfft = _along_one("hfft",
    """The ``fft``, which is real, of a sequence with Hermitian symmetry, of which ``x`` is the first half.

    Arguments as for ``irfft``; the result has ``n`` entries, by default ``2 * (m - 1)`` for m entries.""",
    "fft.hfft([1.0, 2.0j, 3.0])", "array([ 4.,  2.,  4., -6.])")
ihfft = _along_one("ihfft",
    """The inverse of ``hfft``: the first ``n // 2 + 1`` entries of the ``ifft`` of real numbers.

    Arguments as for ``fft``.

    Raises:
        TypeError: ``x`` is complex.""", "fft.ihfft([4.0, 2.0, 4.0, -6.0])", "array([1.+0.j, 0.+2.j, 3.+0.j])")
fftn = _along_several("fftn",
    """The ``fft`` along several axes, by default all.

    Args:
        x: an array.
        s: the number of entries along each of ``axes``; -1 keeps the length.
        axes: the axes, all different; the default is all, or with ``s`` the last ones.
        norm: "backward" (or None), "ortho" or "forward".
        overwrite_x: whether SciPy may use the memory of ``x``.
        workers: how many threads SciPy may use.
        plan: None.

    Raises:
        ValueError: ``s`` and ``axes`` have different lengths, an axis is given twice, or as for ``fft``.
        NotImplementedError: ``plan`` is given.""", "fft.fftn([[1.0, 2.0], [3.0, 4.0]]).real",
    "array([[10., -2.],\n       [-4.,  0.]])")
fft2 = _along_several("fft2", "The ``fftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fft.fft2([[1.0, 2.0], [3.0, 4.0]]).real", "array([[10., -2.],\n       [-4.,  0.]])", axes=(-2, -1))
ifftn = _along_several("ifftn", "The inverse of ``fftn``: the ``ifft`` along several axes; arguments as for ``fftn``.",
    "fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]).real", "array([[1., 2.],\n       [3., 4.]])")
ifft2 = _along_several("ifft2", "The ``ifftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]).real", "array([[1., 2.],\n       [3., 4.]])", axes=(-2, -1))
rfftn = _along_several("rfftn",
    """The ``rfft`` along the last of several axes, then the ``fft`` along the others; arguments as for ``fftn``.

    Raises:
        TypeError: ``x`` is complex.""", "fft.rfftn([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).real",
    "array([[21., -3.],\n       [-9.,  0.]])")
rfft2 = _along_several("rfft2", "The ``rfftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fft.rfft2([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).real", "array([[21., -3.],\n       [-9.,  0.]])", axes=(-2, -1))
irfftn = _along_several("irfftn",
    """The inverse of ``rfftn``: the ``ifft`` along all but the last of several axes, then the ``irfft`` along the last.

    Arguments as for ``fftn``; the last length is by default ``2 * (m - 1)`` for m entries.""",
    "fft.irfftn([[10.0, -2.0], [-4.0, 0.0]])", "array([[1., 2.],\n       [3., 4.]])")
irfft2 = _along_several("irfft2", "The ``irfftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])", "array([[1., 2.],\n       [3., 4.]])", axes=(-2, -1))
hfftn = _along_several("hfftn",
    "The ``fft`` along all axes but the last, then the ``hfft`` along the last; arguments as for ``irfftn``.",
    "fft.hfftn([[1.0, 2.0j], [3.0, 0.0]])", "array([[ 4.,  4.],\n       [-2., -2.]])")
hfft2 = _along_several("hfft2", "The ``hfftn``, by default along the last two axes; arguments as for ``irfftn``.",
    "fft.hfft2([[1.0, 2.0j], [3.0, 0.0]])", "array([[ 4.,  4.],\n       [-2., -2.]])", axes=(-2, -1))
ihfftn = _along_several("ihfftn",
    """The inverse of ``hfftn`` for real numbers: the ``ihfft`` along the last axis, the ``ifft`` along the others.

    Arguments as for ``fftn``.

    Raises:
        TypeError: ``x`` is complex.""", "fft.ihfftn([[4.0, 4.0], [-2.0, -2.0]]).real",
    "array([[1., 0.],\n       [3., 0.]])")
ihfft2 = _along_several("ihfft2", "The ``ihfftn``, by default along the last two axes; arguments as for ``fftn``.",
    "fft.ihfft2([[4.0, 4.0], [-2.0, -2.0]]).real", "array([[1., 0.],\n       [3., 0.]])", axes=(-2, -1))
# fmt: on


def wide(x: ArrayLike) -> Array:
    """Return ``x`` as an array or number, in at least single precision, with which SciPy's transforms begin."""
    x = as_value(x)
    return astype(x, np.float32) if backend.is_inexact(x) and backend.dtype_of(x).itemsize <= 2 else x


def check_plan(name: str, plan: Any) -> None:
    """Raise if a plan is given, as SciPy does.

    Raises:
        NotImplementedError: ``plan`` is not None.
    """
    if plan is not None:
        raise NotImplementedError(
            f"scipy.fft.{name}: there are no plans computed in advance, got plan={plan!r}. Leave it out."
        )


def _numbers(value: Any) -> list[int]:
    return [operator.index(n) for n in value] if np.iterable(value) else [operator.index(value)]


def lengths_and_axes(name: str, x: Array, s: Any, axes: Any) -> tuple[list[int] | None, list[int]]:
    """Return the lengths to transform, None if they were left out, and the axes, non-negative and all different.

    Args:
        name: the name of the function, for error messages.
        x: the array to transform.
        s: one length or several, -1 to keep a length; None to keep all.
        axes: one axis or several; None for the last ones that have lengths, or for all.

    Raises:
        ValueError: an axis is given twice or out of range, or there are not as many lengths as axes.

    Example:
        >>> lengths_and_axes("fftn", np.ones((2, 3)), (-1, 4), None)
        ([2, 4], [0, 1])
    """
    shape = backend.shape_of(x)
    lengths = None if s is None else _numbers(s)
    if axes is None:
        first = 0 if lengths is None else len(shape) - len(lengths)
        if first < 0:
            raise ValueError(f"scipy.fft.{name}: more lengths than axes, got s={s} for an array of {list(shape)}.")
        found = list(range(first, len(shape)))
    else:
        found = [normalize_axis(axis, len(shape)) for axis in _numbers(axes)]
    if len(set(found)) < len(found):
        raise ValueError(f"scipy.fft.{name}: all axes must be different, got axes={axes}. Name each once.")
    if lengths is not None:
        if len(lengths) != len(found):
            raise ValueError(
                f"scipy.fft.{name}: there must be as many lengths as axes, got s={s} and axes={axes}. "
                "Name an axis for each length, -1 for what there is."
            )
        lengths = [shape[axis] if n == -1 else n for n, axis in zip(lengths, found, strict=True)]
    return lengths, found


def next_fast_len(target: int, real: bool = False) -> int:
    """Return the smallest length, ``target`` or more, that has a fast transform, by SciPy.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.next_fast_len(13)
        14
    """
    found: int = import_scipy("scipy.fft.next_fast_len", "scipy.fft").next_fast_len(target, real)
    return found


def prev_fast_len(target: int, real: bool = False) -> int:
    """Return the largest length, ``target`` or less, that has a fast transform, by SciPy.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.prev_fast_len(13)
        12
    """
    found: int = import_scipy("scipy.fft.prev_fast_len", "scipy.fft").prev_fast_len(target, real)
    return found
