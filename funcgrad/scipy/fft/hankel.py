"""Fast Hankel transforms of logarithmically spaced samples, by SciPy's Python code."""

from __future__ import annotations

from typing import Any

from funcgrad.numpy_code import run_anywhere
from funcgrad.optional import import_scipy
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["fht", "ifht"]


def _transformed(name: str, *args: Any) -> Array:
    """Run the code behind SciPy's public function, which only looks for it."""
    found: Array = run_anywhere(getattr(import_scipy(f"fft.{name}", "scipy.fft._fftlog_backend"), name), args, {})
    return found


@mirrors
def fht(a: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Compute the Hankel transform of order ``mu`` of samples at ``r[0] * exp(dln * j)``, at as many points.

    Args:
        a: samples, along the last axis.
        dln: the logarithmic distance of samples.
        mu: the order of the Bessel function.
        offset: the offset of the points of the result, see SciPy's ``fhtoffset``.
        bias: the exponent of a power law that is removed from the samples.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.fht([1.0, 2.0, 1.0], 0.5, 0.0).round(6)
        array([0.870996, 1.14855 , 1.980454])
    """
    return _transformed("fht", a, dln, mu, offset, bias)


@mirrors
def ifht(A: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Compute the inverse of ``fht``; arguments as for ``fht``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ifht(fft.fht([1.0, 2.0, 1.0], 0.5, 0.0), 0.5, 0.0).round(6)
        array([1., 2., 1.])
    """
    return _transformed("ifht", A, dln, mu, offset, bias)
