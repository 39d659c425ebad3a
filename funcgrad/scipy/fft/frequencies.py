"""The frequencies of transforms, their order, and lengths that are transformed fast."""

from __future__ import annotations

from typing import Any

from funcgrad.numpy import fft as own
from funcgrad.numpy.fft import fftshift, ifftshift
from funcgrad.optional import import_scipy
from funcgrad.scipy.mirror import mirrors
from funcgrad.typing import Array, Scalar

__all__ = ["fftfreq", "fftshift", "ifftshift", "next_fast_len", "prev_fast_len", "rfftfreq"]


@mirrors
def fftfreq(n: int, d: Scalar = 1.0, *, xp: Any = None, device: Any = None) -> Array:
    """The frequencies that ``fft`` of ``n`` samples has, in its order; the derivative flows to ``d``.

    Args:
        n: the number of samples.
        d: the distance between samples.
        xp: SciPy's namespace of the result, where ``d`` is a plain number; else that of ``d``.
        device: likewise.

    Raises:
        ValueError: ``n`` is not an integer.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.fftfreq(4, 0.5)
        array([ 0. ,  0.5, -1. , -0.5])
    """
    return own.fftfreq(n, d)


@mirrors
def rfftfreq(n: int, d: Scalar = 1.0, *, xp: Any = None, device: Any = None) -> Array:
    """The frequencies that ``rfft`` of ``n`` samples has; arguments as for ``fftfreq``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.rfftfreq(4, 0.5)
        array([0. , 0.5, 1. ])
    """
    return own.rfftfreq(n, d)


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest length from ``target`` on that is transformed fast; SciPy's own.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.next_fast_len(13)
        14
    """
    found: int = import_scipy("scipy.fft.next_fast_len", "scipy.fft").next_fast_len(target, real)
    return found


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest length up to ``target`` that is transformed fast; SciPy's own.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.prev_fast_len(13)
        12
    """
    found: int = import_scipy("scipy.fft.prev_fast_len", "scipy.fft").prev_fast_len(target, real)
    return found
