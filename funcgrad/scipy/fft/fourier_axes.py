"""Discrete Fourier transforms along several axes; arguments as ``fourier`` has them.

Each axis may be named once, and lengths and axes may be single numbers: so SciPy reads them, and NumPy does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.kinds.linear import conj
from funcgrad.numpy import fft as own
from funcgrad.numpy.fft import Norm
from funcgrad.primitives.fourier import NORMS
from funcgrad.scipy.fft.arguments import check_plan, lengths_and_axes, wide
from funcgrad.scipy.mirror import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["fft2", "fftn", "hfft2", "hfftn", "ifft2", "ifftn", "ihfft2", "ihfftn", "irfft2", "irfftn", "rfft2", "rfftn"]


def _several(name: str, of_axes: Callable[..., Array], x: ArrayLike, s: Any, axes: Any, norm: Norm, plan: Any) -> Array:
    check_plan(name, plan)
    x = wide(x)
    lengths, along = lengths_and_axes(name, x, s, axes)
    if not along and set("rh") & set(name):
        raise ValueError(f"scipy.fft.{name}: a transform of real numbers needs an axis, got none. Name one.")
    return of_axes(x, lengths, along, norm)


def _turned(norm: Norm) -> Any:
    """``norm`` for the transform in the other direction; what is none is refused further on."""
    return NORMS.get(norm or "backward", norm)


def _hfftn(x: Array, s: Any, axes: Any, norm: Norm) -> Array:
    return own.irfftn(conj(x), s, axes, _turned(norm))


def _ihfftn(x: Array, s: Any, axes: Any, norm: Norm) -> Array:
    return conj(own.rfftn(x, s, axes, _turned(norm)))


@mirrors
def fftn(
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``fft`` along several axes, by default all.

    Args:
        x: an array.
        s: the number of entries along each of ``axes``; -1 for what there are.
        axes: the axes, all different; by default all, the last ones where ``s`` is given.
        norm: "backward" (or None), "ortho" or "forward".
        overwrite_x: whether SciPy may use the memory of ``x``.
        workers: how many threads SciPy may use.
        plan: None.

    Raises:
        ValueError: ``s`` and ``axes`` of different lengths, an axis twice, or as ``fft``.
        NotImplementedError: a ``plan``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.fftn([[1.0, 2.0], [3.0, 4.0]]).real
        array([[10., -2.],
               [-4.,  0.]])
    """
    return _several("fftn", own.fftn, x, s, axes, norm, plan)


@mirrors
def fft2(
    x: ArrayLike,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``fftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.fft2([[1.0, 2.0], [3.0, 4.0]]).real
        array([[10., -2.],
               [-4.,  0.]])
    """
    return _several("fft2", own.fftn, x, s, axes, norm, plan)


@mirrors
def ifftn(
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``ifft`` along several axes, the inverse of ``fftn``; arguments as there.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ifftn([[10.0, -2.0], [-4.0, 0.0]]).real
        array([[1., 2.],
               [3., 4.]])
    """
    return _several("ifftn", own.ifftn, x, s, axes, norm, plan)


@mirrors
def ifft2(
    x: ArrayLike,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``ifftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ifft2([[10.0, -2.0], [-4.0, 0.0]]).real
        array([[1., 2.],
               [3., 4.]])
    """
    return _several("ifft2", own.ifftn, x, s, axes, norm, plan)


@mirrors
def rfftn(
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``rfft`` along the last of several axes, then ``fft`` along the others; arguments as for ``fftn``.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.rfftn([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).real
        array([[21., -3.],
               [-9.,  0.]])
    """
    return _several("rfftn", own.rfftn, x, s, axes, norm, plan)


@mirrors
def rfft2(
    x: ArrayLike,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``rfftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.rfft2([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).real
        array([[21., -3.],
               [-9.,  0.]])
    """
    return _several("rfft2", own.rfftn, x, s, axes, norm, plan)


@mirrors
def irfftn(
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``ifft`` along all of several axes but the last, then ``irfft`` along that: the inverse of ``rfftn``.

    Arguments as for ``fftn``; the last length is by default ``2 * (m - 1)`` of m entries.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.irfftn([[10.0, -2.0], [-4.0, 0.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    return _several("irfftn", own.irfftn, x, s, axes, norm, plan)


@mirrors
def irfft2(
    x: ArrayLike,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``irfftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])
        array([[1., 2.],
               [3., 4.]])
    """
    return _several("irfft2", own.irfftn, x, s, axes, norm, plan)


@mirrors
def hfftn(
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``fft`` along all of several axes but the last, then ``hfft`` along that; arguments as for ``irfftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.hfftn([[1.0, 2.0j], [3.0, 0.0]])
        array([[ 4.,  4.],
               [-2., -2.]])
    """
    return _several("hfftn", _hfftn, x, s, axes, norm, plan)


@mirrors
def hfft2(
    x: ArrayLike,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``hfftn``, by default along the last two axes; arguments as for ``irfftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.hfft2([[1.0, 2.0j], [3.0, 0.0]])
        array([[ 4.,  4.],
               [-2., -2.]])
    """
    return _several("hfft2", _hfftn, x, s, axes, norm, plan)


@mirrors
def ihfftn(
    x: ArrayLike,
    s: Any = None,
    axes: Any = None,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The inverse of ``hfftn``, of real numbers: ``ihfft`` along the last axis, ``ifft`` along the others.

    Arguments as for ``fftn``.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ihfftn([[4.0, 4.0], [-2.0, -2.0]]).real
        array([[1., 0.],
               [3., 0.]])
    """
    return _several("ihfftn", _ihfftn, x, s, axes, norm, plan)


@mirrors
def ihfft2(
    x: ArrayLike,
    s: Any = None,
    axes: Any = (-2, -1),
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """``ihfftn``, by default along the last two axes; arguments as for ``fftn``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ihfft2([[4.0, 4.0], [-2.0, -2.0]]).real
        array([[1., 0.],
               [3., 0.]])
    """
    return _several("ihfft2", _ihfftn, x, s, axes, norm, plan)
