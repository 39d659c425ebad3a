"""Discrete Fourier transforms: ``funcgrad.numpy.fft`` with SciPy's arguments.

All are linear. ``norm`` says which direction is scaled: "backward" (or None) divides the inverse transforms by the
number of entries, "forward" the others, "ortho" all of them by its square root. ``overwrite_x`` and ``workers`` are for
SciPy, which computes plain arrays; others are never overwritten. A ``plan`` is refused, as by SciPy.
"""

from __future__ import annotations

from typing import Any

from funcgrad.numpy import fft as own
from funcgrad.numpy.fft import Norm
from funcgrad.scipy.fft.arguments import check_plan, wide
from funcgrad.scipy.mirror import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


@mirrors
def fft(
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The discrete Fourier transform along ``axis``: ``sum(x[j] * exp(-2j * pi * j * k / n))`` at k.

    Args:
        x: an array.
        n: the number of entries, by cutting ``x`` or padding it with zeros; by default what there are.
        axis: the axis to transform.
        norm: "backward" (or None), "ortho" or "forward".
        overwrite_x: whether SciPy may use the memory of ``x``.
        workers: how many threads SciPy may use.
        plan: None.

    Raises:
        ValueError: ``n`` is not positive; an unknown ``norm``.
        numpy.exceptions.AxisError: ``axis`` is out of range.
        NotImplementedError: a ``plan``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.fft([1.0, 2.0, 1.0, 0.0])
        array([4.-0.j, 0.-2.j, 0.-0.j, 0.+2.j])
    """
    check_plan("fft", plan)
    return own.fft(wide(x), n, axis, norm)


@mirrors
def ifft(
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The inverse of ``fft``: ``sum(x[k] * exp(2j * pi * j * k / n)) / n`` at j; arguments as there.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ifft([4.0, -2.0j, 0.0, 2.0j]).real
        array([1., 2., 1., 0.])
    """
    check_plan("ifft", plan)
    return own.ifft(wide(x), n, axis, norm)


@mirrors
def rfft(
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The first ``n // 2 + 1`` entries of the ``fft`` of real numbers, which tell the others; arguments as there.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.rfft([1.0, 2.0, 1.0, 0.0])
        array([4.+0.j, 0.-2.j, 0.+0.j])
    """
    check_plan("rfft", plan)
    return own.rfft(wide(x), n, axis, norm)


@mirrors
def irfft(
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The inverse of ``rfft``: ``n`` real numbers, by default ``2 * (m - 1)`` of them from m entries.

    The imaginary part of the first entry, and of the last one when ``n`` is even, plays no part: its derivative is
    zero. An odd number of values must be asked for by ``n``. Arguments as for ``fft``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.irfft([4.0, -2.0j, 0.0])
        array([1., 2., 1., 0.])
    """
    check_plan("irfft", plan)
    return own.irfft(wide(x), n, axis, norm)


@mirrors
def hfft(
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The ``fft`` of numbers whose second half mirrors the first, conjugated, and is not given: it is real.

    Arguments as for ``irfft``; the result has ``n`` entries, by default ``2 * (m - 1)`` of m.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.hfft([1.0, 2.0j, 3.0])
        array([ 4.,  2.,  4., -6.])
    """
    check_plan("hfft", plan)
    return own.hfft(wide(x), n, axis, norm)


@mirrors
def ihfft(
    x: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    plan: Any = None,
) -> Array:
    """The inverse of ``hfft``: the first ``n // 2 + 1`` entries of the ``ifft`` of real numbers.

    Arguments as for ``fft``.

    Raises:
        TypeError: complex numbers.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ihfft([4.0, 2.0, 4.0, -6.0])
        array([1.+0.j, 0.+2.j, 3.+0.j])
    """
    check_plan("ihfft", plan)
    return own.ihfft(wide(x), n, axis, norm)
